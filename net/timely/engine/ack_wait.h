/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The wait of ACKs: how long the ACKs of a connection wait on their way back. See ack_wait.c.
 */
#ifndef _TIMELY_ENGINE_ACK_WAIT_H
#define _TIMELY_ENGINE_ACK_WAIT_H

#include <linux/types.h>

/* The longest wait that counts, us. A clock that is adjusted, or a receiver that writes wrong
 * timestamps, hides a queue of at most this length.
 */
#define TIMELY_ACK_WAIT_MAX_US	250U

/**
 * enum timely_ack_wait_unit - what is known about the unit of the receiver's timestamps
 * @TIMELY_ACK_WAIT_NEW: nothing: there was no ACK
 * @TIMELY_ACK_WAIT_UNSURE: too little time has passed since the first ACK, or the unit is not 1 us
 * @TIMELY_ACK_WAIT_US: the unit is 1 us, and waits are known
 */
enum timely_ack_wait_unit {
	TIMELY_ACK_WAIT_NEW,
	TIMELY_ACK_WAIT_UNSURE,
	TIMELY_ACK_WAIT_US,
};

/**
 * struct timely_ack_wait - the wait of a connection's ACKs
 * @least_us: lowest recent difference between the arrival of an ACK and its timestamp, us, wraps;
 *	the timestamp of the first ACK while the unit is unsure
 * @seen_us: arrival of the ACK that @least_us is of, us, wraps
 * @unit: enum timely_ack_wait_unit
 *
 * The initial state is all zero.
 */
struct timely_ack_wait {
	u32 least_us;
	u32 seen_us;
	u8 unit;
};

u32 timely_ack_wait_us(struct timely_ack_wait *w, u32 arrived_us, u32 timestamp);

#endif /* _TIMELY_ENGINE_ACK_WAIT_H */
