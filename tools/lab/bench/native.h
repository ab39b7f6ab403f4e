/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Common code of the bench modules (ack_bench, cpu_bench, onramp_bench, qdisc_bench): read the
 * processor's time stamp counter (TSC), and find out whether the host ran another process
 * in between. For User Mode Linux on x86-64 only.
 */
#ifndef _TIMELY_BENCH_NATIVE_H
#define _TIMELY_BENCH_NATIVE_H

#include <linux/kernel.h>
#include <linux/sort.h>
#include <linux/types.h>

/* The host's system call getrusage(), and its argument RUSAGE_THREAD. */
#define BENCH_HOST_GETRUSAGE	98
#define BENCH_HOST_RUSAGE_THREAD	1

/* Read the TSC: all instructions before are complete, and no instruction after has begun. */
static __always_inline u64 bench_tsc(void)
{
	u32 low, high;

	asm volatile("lfence; rdtsc; lfence" : "=a" (low), "=d" (high) : : "memory");
	return (u64)high << 32 | low;
}

static int bench_compare(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Cycles between two reads of the TSC: the median of 1001 samples. */
static u64 __maybe_unused bench_calibrate(void)
{
	static u64 sample[1001];
	unsigned int i;
	u64 start;

	for (i = 0; i < ARRAY_SIZE(sample); i++) {
		start = bench_tsc();
		sample[i] = bench_tsc() - start;
	}
	sort(sample, ARRAY_SIZE(sample), sizeof(*sample), bench_compare, NULL);
	return sample[ARRAY_SIZE(sample) / 2];
}

/* The host's count of involuntary context switches of this thread; 0 if the host does not tell. A
 * User Mode Linux kernel is a process of the host, so its system calls go to the host.
 */
static long bench_host_switches(void)
{
	long usage[18] = {};	/* struct rusage; the last member is ru_nivcsw */
	long ret = BENCH_HOST_GETRUSAGE;

	asm volatile("syscall" : "+a" (ret) : "D" (BENCH_HOST_RUSAGE_THREAD), "S" (usage)
		     : "rcx", "r11", "memory");
	return ret ? 0 : usage[17];
}

#endif /* _TIMELY_BENCH_NATIVE_H */
