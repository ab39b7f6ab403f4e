// SPDX-License-Identifier: GPL-2.0
/*
 * The pull queue of an interface. All streams that receive through the interface share the queue
 * (SIGCOMM'17, section 3.2). A pull asks for one packet. Pulls are as far apart as the packets that
 * they ask for need on the link, so that these arrive at the link rate. Packets without data and
 * trimmed packets, which no pull asks for, have their time, too. Streams of the highest priority
 * get all pulls. Among streams of the same priority and age each gets one pull in turn. So a stream
 * of longer packets gets more bytes than one of shorter packets.
 *
 * Among streams of the same priority those whose message has a lower age get seven of eight pulls.
 * The age grows with the bytes of the message that have arrived. The paper's queue is fair. That
 * makes a message wait for its share of the link until it has arrived, however short it is; most
 * messages are short, and long ones lose little by waiting for them. The eighth pull goes to the
 * next age by the same rule, and keeps long messages from being starved: the oldest get one of 512
 * while messages of all ages wait.
 *
 * The queue does not list pulls but streams, with the number of pulls that each wants. So its
 * memory does not depend on the number of packets, and to remove a stream's pulls takes no search.
 *
 * Pure: no packet, socket or clock.
 */

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "ndp_pull.h"

/* A link of one kbit/s takes this many ns for a byte. */
#define PULL_KBPS_NS	8000000ULL
/* The longest packet. A longer one counts as this, so that products fit in 64 bits. */
#define PULL_MAX_BYTES	65536U
/* A message of the lowest age has less than this power of two of bytes; the limit of each further
 * age is eight times as high.
 */
#define PULL_AGE_SHIFT	14
/* One of this many pulls goes to streams of a higher age. */
#define PULL_TURNS	8

/**
 * timely_ndp_pull_init() - set up an empty pull queue
 * @q: the queue
 * @rate_kbps: link rate, kbit/s
 * @slack_ns: a caller that is late by up to this time makes up for it with pulls in a row, ns
 *
 * Return: 0, or -EINVAL if the rate is 0.
 */
int timely_ndp_pull_init(struct timely_ndp_pull *q, u32 rate_kbps, u32 slack_ns)
{
	memset(q, 0, sizeof(*q));
	q->slack_ns = slack_ns;
	return timely_ndp_pull_set_rate(q, rate_kbps);
}
EXPORT_SYMBOL_GPL(timely_ndp_pull_init);

/**
 * timely_ndp_pull_set_rate() - change the link rate
 * @q: the queue
 * @rate_kbps: link rate, kbit/s
 *
 * Return: 0, or -EINVAL if the rate is 0; the queue is unchanged then.
 */
int timely_ndp_pull_set_rate(struct timely_ndp_pull *q, u32 rate_kbps)
{
	if (!rate_kbps)
		return -EINVAL;
	q->rate_kbps = rate_kbps;
	q->byte_q24 = div_u64(PULL_KBPS_NS << 24, rate_kbps);
	return 0;
}
EXPORT_SYMBOL_GPL(timely_ndp_pull_set_rate);

/* Append a stream to those of its priority and age: its turn comes after all others. */
static void pull_link(struct timely_ndp_pull *q, struct timely_ndp_pull_flow *flow)
{
	struct timely_ndp_pull_flow **head = &q->heads[flow->priority][flow->age];

	if (*head) {
		flow->next = *head;
		flow->prev = (*head)->prev;
		flow->prev->next = flow;
		flow->next->prev = flow;
	} else {
		flow->next = flow;
		flow->prev = flow;
		*head = flow;
	}
	q->flows++;
}

static void pull_unlink(struct timely_ndp_pull *q, struct timely_ndp_pull_flow *flow)
{
	struct timely_ndp_pull_flow **head = &q->heads[flow->priority][flow->age];

	if (*head == flow)
		*head = flow->next == flow ? NULL : flow->next;
	flow->next->prev = flow->prev;
	flow->prev->next = flow->next;
	flow->next = NULL;
	flow->prev = NULL;
	q->flows--;
}

/**
 * timely_ndp_pull_set() - set the number of pulls that a stream wants
 * @q: the queue
 * @flow: the stream, with @bytes and @priority set
 * @wanted: the number; with 0, the stream leaves the queue and may be freed
 */
void timely_ndp_pull_set(struct timely_ndp_pull *q, struct timely_ndp_pull_flow *flow, u32 wanted)
{
	flow->wanted = wanted;
	if (wanted && !flow->prev)
		pull_link(q, flow);
	else if (!wanted && flow->prev)
		pull_unlink(q, flow);
}
EXPORT_SYMBOL_GPL(timely_ndp_pull_set);

/**
 * timely_ndp_pull_age() - age of a message
 * @bytes: bytes of the message that have arrived
 *
 * Return: 0 below 16 KB, 1 below 128 KB, 2 below 1 MB, otherwise 3 (KB: 1024 bytes).
 */
u8 timely_ndp_pull_age(u64 bytes)
{
	return min((fls64(bytes >> PULL_AGE_SHIFT) + 2) / 3, TIMELY_NDP_AGES - 1);
}
EXPORT_SYMBOL_GPL(timely_ndp_pull_age);

/**
 * timely_ndp_pull_move() - change the priority and the age of a stream
 * @q: the queue
 * @flow: the stream
 * @priority: 0 to TIMELY_NDP_PRIORITIES - 1; a higher number counts as the highest
 * @age: 0 to TIMELY_NDP_AGES - 1; a higher number counts as the highest
 */
void timely_ndp_pull_move(struct timely_ndp_pull *q, struct timely_ndp_pull_flow *flow, u8 priority,
			  u8 age)
{
	bool queued = flow->prev;

	if (queued)
		pull_unlink(q, flow);
	flow->priority = min_t(u8, priority, TIMELY_NDP_PRIORITIES - 1);
	flow->age = min_t(u8, age, TIMELY_NDP_AGES - 1);
	if (queued)
		pull_link(q, flow);
}
EXPORT_SYMBOL_GPL(timely_ndp_pull_move);

/* The next pull may be sent when the packet of a pull at @from_ns has passed the link. */
static void pull_wait(struct timely_ndp_pull *q, u64 from_ns, u32 bytes)
{
	u64 wire_q24 = q->byte_q24 * min(bytes, PULL_MAX_BYTES) + q->rest_q24;

	q->next_ns = from_ns + (wire_q24 >> 24);
	q->rest_q24 = wire_q24 & ((1U << 24) - 1);
}

/**
 * timely_ndp_pull_leave_room() - a packet has arrived that no pull asked for
 * @q: the queue
 * @bytes: bytes of the packet on the wire, with all headers, the preamble and the gap
 * @now_ns: current time
 *
 * The next pull waits for the time that the packet took on the link, so that pulled packets use
 * only what these packets leave. Where more arrives than the link rate allows, such as on the
 * loopback device, pulls wait for @slack_ns and the time of a packet at most.
 */
void timely_ndp_pull_leave_room(struct timely_ndp_pull *q, u32 bytes, u64 now_ns)
{
	u64 least_ns = now_ns > q->slack_ns ? now_ns - q->slack_ns : 0;

	if (q->next_ns < now_ns + q->slack_ns)
		pull_wait(q, max(q->next_ns, least_ns), bytes);
}
EXPORT_SYMBOL_GPL(timely_ndp_pull_leave_room);

/**
 * timely_ndp_pull_give_back() - a packet has arrived that was shorter than its pull took it for
 * @q: the queue
 * @bytes: the difference
 *
 * The link was idle for the time of these bytes, so the next pulls may be earlier by this time, but
 * not by more than @slack_ns.
 */
void timely_ndp_pull_give_back(struct timely_ndp_pull *q, u32 bytes)
{
	u64 wire_ns = q->byte_q24 * min(bytes, PULL_MAX_BYTES) >> 24;

	q->next_ns -= min(q->next_ns, wire_ns);
}
EXPORT_SYMBOL_GPL(timely_ndp_pull_give_back);

/* The stream of a priority that gets the next pull; NULL if there is none. */
static struct timely_ndp_pull_flow *pull_choose(struct timely_ndp_pull *q, int priority)
{
	struct timely_ndp_pull_flow *const *heads = q->heads[priority];
	struct timely_ndp_pull_flow *flow = NULL;
	u32 age;

	for (age = 0; age < TIMELY_NDP_AGES; age++) {
		if (!heads[age])
			continue;
		flow = heads[age];
		if (age < TIMELY_NDP_AGES - 1 && ++q->turns[priority][age] % PULL_TURNS)
			break;
	}
	return flow;
}

/**
 * timely_ndp_pull_next() - take the next pull out of the queue
 * @q: the queue
 * @now_ns: current time
 *
 * Return: the stream that gets a pull; its @wanted is one less than before. NULL if no stream wants
 * a pull or none is due.
 */
struct timely_ndp_pull_flow *timely_ndp_pull_next(struct timely_ndp_pull *q, u64 now_ns)
{
	struct timely_ndp_pull_flow *flow = NULL;
	int priority;
	u64 least_ns;

	if (!q->flows || now_ns < q->next_ns)
		return NULL;
	for (priority = TIMELY_NDP_PRIORITIES - 1; !flow; priority--)
		flow = pull_choose(q, priority);
	q->heads[flow->priority][flow->age] = flow->next;
	if (!--flow->wanted)
		pull_unlink(q, flow);
	/* After an idle time pulls start afresh, and do not make up for it. */
	least_ns = now_ns > q->slack_ns ? now_ns - q->slack_ns : 0;
	pull_wait(q, max(q->next_ns, least_ns), flow->bytes);
	q->pulls++;
	return flow;
}
EXPORT_SYMBOL_GPL(timely_ndp_pull_next);
