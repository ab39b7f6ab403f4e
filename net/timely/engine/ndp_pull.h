/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The pull queue of an interface: which stream gets the next PULL, and when. See
 * net/timely/engine/ndp_pull.c.
 *
 * Use, with the caller's lock of the interface:
 *
 *	timely_ndp_pull_set()		when a stream wants another number of pulls
 *	timely_ndp_pull_move()		when the priority, or the age of the message, has changed
 *	timely_ndp_pull_leave_room()	when a packet arrives that no pull asked for
 *	timely_ndp_pull_give_back()	when a packet arrives that is shorter than its pull assumed
 *	timely_ndp_pull_next()		at the time timely_ndp_pull_due_ns(), until it returns NULL
 *
 * timely_ndp_pull_next() returns the stream that gets a pull; the caller calls
 * timely_ndp_receiver_pull() for the stream and sends the PULL. The caller waits for
 * timely_ndp_pull_due_ns() with @node of the queue in a timing wheel (wheel.h), or with a timer.
 */
#ifndef _TIMELY_ENGINE_NDP_PULL_H
#define _TIMELY_ENGINE_NDP_PULL_H

#include <linux/types.h>

#include "wheel.h"

/* Number of priorities: those of SO_PRIORITY that need no privilege are 0 to 6. */
#define TIMELY_NDP_PRIORITIES	8

/* Number of ages of a message, see timely_ndp_pull_age(). */
#define TIMELY_NDP_AGES		4

/**
 * struct timely_ndp_pull_flow - a stream in the pull queue; all zero before its first use
 * @next: next stream of the same priority and age in round-robin order
 * @prev: stream before this one; NULL while the stream is not in the queue
 * @wanted: number of pulls that the stream wants
 * @bytes: bytes on the wire of the packet that a pull asks for, with all headers, the preamble and
 *	the gap between frames
 * @priority: 0 to TIMELY_NDP_PRIORITIES - 1; streams of a higher priority get their pulls first
 * @age: 0 to TIMELY_NDP_AGES - 1; among streams of the same priority those of a lower age get more
 *	pulls
 */
struct timely_ndp_pull_flow {
	struct timely_ndp_pull_flow *next;
	struct timely_ndp_pull_flow *prev;
	u32 wanted;
	u32 bytes;
	u8 priority;
	u8 age;
};

/**
 * struct timely_ndp_pull - the pull queue of an interface
 * @node: for the caller's timing wheel
 * @heads: for each priority and age the stream that gets the next pull, or NULL
 * @next_ns: earliest time of the next pull
 * @slack_ns: a caller that is late by up to this time makes up for it with pulls in a row, ns
 * @rate_kbps: link rate, kbit/s
 * @byte_q24: time of a byte on the link, ns, Q24
 * @rest_q24: part of a ns that @next_ns leaves out, Q24
 * @flows: number of streams in the queue
 * @pulls: pulls since the start
 * @turns: for each priority and each age but the highest, how often a stream could get a pull
 */
struct timely_ndp_pull {
	struct timely_wheel_node node;
	struct timely_ndp_pull_flow *heads[TIMELY_NDP_PRIORITIES][TIMELY_NDP_AGES];
	u64 next_ns;
	u32 slack_ns;
	u32 rate_kbps;
	u32 flows;
	u64 byte_q24;
	u32 rest_q24;
	u64 pulls;
	u32 turns[TIMELY_NDP_PRIORITIES][TIMELY_NDP_AGES - 1];
};

int timely_ndp_pull_init(struct timely_ndp_pull *q, u32 rate_kbps, u32 slack_ns);
int timely_ndp_pull_set_rate(struct timely_ndp_pull *q, u32 rate_kbps);
void timely_ndp_pull_set(struct timely_ndp_pull *q, struct timely_ndp_pull_flow *flow, u32 wanted);
u8 timely_ndp_pull_age(u64 bytes);
void timely_ndp_pull_move(struct timely_ndp_pull *q, struct timely_ndp_pull_flow *flow, u8 priority,
			  u8 age);
void timely_ndp_pull_give_back(struct timely_ndp_pull *q, u32 bytes);
void timely_ndp_pull_leave_room(struct timely_ndp_pull *q, u32 bytes, u64 now_ns);
struct timely_ndp_pull_flow *timely_ndp_pull_next(struct timely_ndp_pull *q, u64 now_ns);

/**
 * timely_ndp_pull_due_ns() - when the next pull may be sent
 * @q: the pull queue
 *
 * Return: a time, possibly in the past, or U64_MAX if no stream wants a pull.
 */
static inline u64 timely_ndp_pull_due_ns(const struct timely_ndp_pull *q)
{
	return q->flows ? q->next_ns : ~0ULL;
}

/**
 * timely_ndp_pull_only_long() - check whether all streams that want pulls have long messages
 * @q: the pull queue
 *
 * Return: true if there are streams, and none of the lowest age.
 */
static inline bool timely_ndp_pull_only_long(const struct timely_ndp_pull *q)
{
	u32 i;

	for (i = 0; i < TIMELY_NDP_PRIORITIES; i++)
		if (q->heads[i][0])
			return false;
	return q->flows;
}

#endif /* _TIMELY_ENGINE_NDP_PULL_H */
