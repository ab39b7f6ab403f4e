/* SPDX-License-Identifier: GPL-2.0 */
/*
 * When a device will begin to send a packet that it gets: the packets that it has got before, its
 * backlog, come first. The time that a packet spends there is no part of the path's queueing delay.
 *
 * The backlog is computed from the link rate. The driver's own count of what it has not yet sent
 * is too high, because drivers learn of sent packets by interrupts, which are moderated; but it is
 * an upper bound, if the link is faster than it seems.
 *
 * Pure: no packet, socket or clock.
 */
#ifndef _TIMELY_ENGINE_DRAIN_H
#define _TIMELY_ENGINE_DRAIN_H

#include <linux/compiler.h>
#include <linux/minmax.h>
#include <linux/types.h>

/**
 * struct timely_drain - what a device has got
 * @free_ns: when the link will have sent the computed backlog
 * @queued: the driver's count of the bytes that it has got, at the last call; wraps
 * @uncounted: bytes that were passed on since @queued last changed
 */
struct timely_drain {
	u64 free_ns;
	u32 queued;
	u32 uncounted;
};

/**
 * timely_drain_add() - pass a packet on to the device
 * @drain: the state; zeroed at first
 * @queued: the driver's count of the bytes that it has got; wraps. Several packets may be passed on
 *	before the driver counts them
 * @completed: the driver's count of the bytes that it has reported as sent; wraps. It is read only
 *	while the link is busy, because the processor that frees packets writes it
 * @bytes: length of the packet on the link, bytes, less than 2^20
 * @ns_per_byte_q16: serialization time of a byte, ns, Q16; 0 if the link rate is not known
 * @now_ns: current time
 *
 * A driver that does not count leaves both counts at 0. Then no packet is taken to wait.
 *
 * Return: when the device begins to send the packet, @now_ns or later.
 */
static inline u64 timely_drain_add(struct timely_drain *drain, u32 queued, const u32 *completed,
				   u32 bytes, u32 ns_per_byte_q16, u64 now_ns)
{
	u32 unsent;

	if (drain->queued != queued) {
		drain->queued = queued;
		drain->uncounted = 0;
	}
	if (queued && drain->free_ns > now_ns) {
		unsent = queued - READ_ONCE(*completed) + drain->uncounted;
		now_ns = min(drain->free_ns, now_ns + ((u64)unsent * ns_per_byte_q16 >> 16));
	}
	drain->uncounted += bytes;
	drain->free_ns = now_ns + ((u64)bytes * ns_per_byte_q16 >> 16);
	return now_ns;
}

#endif /* _TIMELY_ENGINE_DRAIN_H */
