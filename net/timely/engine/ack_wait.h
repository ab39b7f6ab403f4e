/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wait of ACKs: how long the ACKs of a connection wait on their way back. See ack_wait.c.
 */
#ifndef _TIMELY_ENGINE_ACK_WAIT_H
#define _TIMELY_ENGINE_ACK_WAIT_H

#include <linux/compiler.h>
#include <linux/types.h>

/* The longest wait that counts, us. A clock that is adjusted, or a receiver that writes wrong
 * timestamps, hides a queue of at most this length.
 */
#define TIMELY_ACK_WAIT_MAX_US	250U

/* Instead of an IPv4 ID: the packet has none that can be an ACK time. */
#define TIMELY_ACK_NO_ID	(1U << 16)

/* ACK times wrap, so they count only with RTTs below this, ns. */
#define TIMELY_ACK_TIME_RTT_NS	4000000U

/**
 * enum timely_ack_wait_source - which times of ACKs are known
 * @TIMELY_ACK_WAIT_NEW: none: there was no ACK
 * @TIMELY_ACK_WAIT_UNSURE: none: too little time has passed since the first ACK, or the receiver's
 *	timestamps are not in microseconds
 * @TIMELY_ACK_WAIT_TIMESTAMP: timestamps, which are in microseconds
 * @TIMELY_ACK_WAIT_ID: ACK times, in IPv4 IDs
 */
enum timely_ack_wait_source {
	TIMELY_ACK_WAIT_NEW,
	TIMELY_ACK_WAIT_UNSURE,
	TIMELY_ACK_WAIT_TIMESTAMP,
	TIMELY_ACK_WAIT_ID,
};

/**
 * struct timely_ack_wait - the wait of a connection's ACKs
 * @least_us: lowest recent difference between the arrival of an ACK and its timestamp, us, wraps;
 *	the timestamp of the first ACK while @source is TIMELY_ACK_WAIT_UNSURE
 * @seen_us: arrival of the ACK that @least_us is of, us, wraps
 * @source: enum timely_ack_wait_source
 * @ids: successive IPv4 IDs that may be ACK times, up to the number that is enough; equal IDs count
 *	once
 * @id: the last of @ids
 *
 * The initial state is all zero.
 */
struct timely_ack_wait {
	u32 least_us;
	u32 seen_us;
	u8 source;
	u8 ids;
	u16 id;
};

/**
 * timely_ack_wait_is_known() - check whether the times of ACKs are known
 * @w: the connection's state
 *
 * Return: true if timely_ack_wait_us() finds waits.
 */
static inline bool timely_ack_wait_is_known(const struct timely_ack_wait *w)
{
	return READ_ONCE(w->source) >= TIMELY_ACK_WAIT_TIMESTAMP;
}

u32 timely_ack_wait_us(struct timely_ack_wait *w, u32 arrived_us, u32 timestamp);
u16 timely_ack_time_id(u32 now_us);
bool timely_ack_time_us(struct timely_ack_wait *w, u32 arrived_us, u32 id, u32 *time_us);

#endif /* _TIMELY_ENGINE_ACK_WAIT_H */
