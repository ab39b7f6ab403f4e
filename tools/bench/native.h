/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the benches share: the processor's time stamp counter, and whether the
 * host took the processor away meanwhile. User Mode Linux on x86-64 only.
 */
#ifndef _TIMELY_BENCH_NATIVE_H
#define _TIMELY_BENCH_NATIVE_H

#include <linux/kernel.h>
#include <linux/sort.h>
#include <linux/types.h>

/* Of the host's system calls. */
#define BENCH_HOST_GETRUSAGE	98
#define BENCH_HOST_RUSAGE_THREAD	1

/* Ordered on both sides: what is timed is done, and nothing else is in it. */
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

/* What reading the counter costs. */
static u64 bench_calibrate(void)
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

/* The host's count of our involuntary context switches. The kernel that we are
 * in is one of its processes, so a system call is to the host.
 */
static long bench_host_switches(void)
{
	long usage[18] = {};	/* struct rusage; its last is ru_nivcsw */
	long ret = BENCH_HOST_GETRUSAGE;

	asm volatile("syscall" : "+a" (ret) : "D" (BENCH_HOST_RUSAGE_THREAD), "S" (usage)
		     : "rcx", "r11", "memory");
	return ret ? 0 : usage[17];
}

#endif /* _TIMELY_BENCH_NATIVE_H */
