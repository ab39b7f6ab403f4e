/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A model of the RTT measurement engine (rtt.h): passes random ACKs to the engine, also ACKs that
 * TCP would never see, and checks promises that must hold for any ACK. rtt_kunit.c runs the model
 * in the kernel, user/rtt_fuzz.c runs it longer in user space.
 */
#ifndef _KUNIT_RTT_MODEL_H
#define _KUNIT_RTT_MODEL_H

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>

#include <timely/engine/rtt.h>

/* What must hold for any ACK; rtt_promises[] has the texts. */
enum rtt_promise {
	RTT_REASON, RTT_RANGE, RTT_SPAN, RTT_SERIAL, RTT_BYTES, RTT_NOW, RTT_SOURCE,
	RTT_KEPT, RTT_MOVED, RTT_RATE, RTT_PROMISES
};

static const char * const rtt_promises[RTT_PROMISES] = {
	[RTT_REASON] = "an ACK is refused for the first reason that applies, or gives an RTT",
	[RTT_RANGE] = "an RTT is from 0 to ten seconds",
	[RTT_SPAN] = "an RTT is at most the time from the departure to the ACK",
	[RTT_SERIAL] = "at most the serialization of the segment is subtracted from an RTT",
	[RTT_BYTES] = "at least one byte completes, and no more than was delivered",
	[RTT_NOW] = "a completion has the time at which TCP processes the ACK",
	[RTT_SOURCE] = "the result is the source of the timestamp that was used",
	[RTT_KEPT] = "an ACK that is refused changes nothing",
	[RTT_MOVED] = "completed data do not complete again",
	[RTT_RATE] = "the rate stays between min_rate and max_rate",
};

/**
 * struct rtt_dice - random numbers: xorshift64*, or a fuzzer's input
 * @state: state of the generator, not 0
 * @input: a fuzzer's bytes to use instead; NULL for none
 * @left: number of bytes left in @input; numbers are 0 without any
 */
struct rtt_dice {
	u64 state;
	const u8 *input;
	size_t left;
};

/**
 * struct rtt_model - a connection with random ACKs
 * @dice: source of the random numbers
 * @rtt: state of the RTT engine
 * @rate: state of the rate engine that gets the completions
 * @cfg: parameters of the rate engine
 * @ack: the last ACK
 * @completion: the completion that the engine made from the last ACK
 * @result: result of the last ACK
 * @now_ns: time of the last ACK, CLOCK_MONOTONIC
 * @kept: how often each promise was checked
 * @broken: how often each promise was broken
 */
struct rtt_model {
	struct rtt_dice dice;
	struct timely_rtt rtt;
	struct timely_rate rate;
	struct timely_rate_cfg cfg;
	struct timely_ack ack;
	struct timely_completion completion;
	enum timely_rtt_result result;
	u64 now_ns;
	u64 kept[RTT_PROMISES];
	u64 broken[RTT_PROMISES];
};

/* A random number of 48 bits, or of up to 32 bits from a fuzzer's input. */
static inline u64 rtt_roll(struct rtt_dice *dice)
{
	u64 x = 0;
	int i;

	if (dice->input) {
		for (i = 0; i < 4 && dice->left; i++, dice->left--)
			x = x << 8 | *dice->input++;
		return x;
	}
	x = dice->state;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	dice->state = x;
	return x * 0x2545f4914f6cdd1dULL >> 16;
}

/* A random number from 0 to @n - 1. */
static inline u32 rtt_below(struct rtt_dice *dice, u32 n)
{
	return (u32)rtt_roll(dice) % n;
}

/* A random number; each number of bits has the same probability. */
static inline u64 rtt_any(struct rtt_dice *dice)
{
	u64 x = rtt_roll(dice) << 32 | (u32)rtt_roll(dice);

	return x >> rtt_below(dice, 64);
}

/* A random time: mostly up to 200 us before @about; else zero, the greatest, or any time before or
 * after @about.
 */
static inline u64 rtt_time(struct rtt_dice *dice, u64 about)
{
	switch (rtt_below(dice, 16)) {
	case 0:
		return 0;
	case 1:
		return U64_MAX - rtt_below(dice, 2);
	case 2:
		return rtt_any(dice);
	case 3:
		return about + rtt_any(dice);
	case 4:
		return about - rtt_any(dice);
	case 5:
		return about - TIMELY_RTT_MAX_NS - 1 + rtt_below(dice, 3);
	case 6:
		return about;
	default:
		return about - rtt_below(dice, 200000);
	}
}

/* A random number: mostly @usual, else a number next to it, an end of the range, or any number. */
static inline u32 rtt_number(struct rtt_dice *dice, u32 usual)
{
	switch (rtt_below(dice, 8)) {
	case 0:
		return 0;
	case 1:
		return U32_MAX;
	case 2:
		return 1;
	case 3:
		return (u32)rtt_any(dice);
	case 4:
		return usual + rtt_below(dice, 3) - 1;
	default:
		return usual;
	}
}

/* True with a probability of 1/16. */
static inline bool rtt_seldom(struct rtt_dice *dice)
{
	return !rtt_below(dice, 16);
}

/* A random source of a timestamp. */
static inline enum timely_rtt_result rtt_random_source(struct rtt_dice *dice)
{
	static const enum timely_rtt_result sources[] = {
		TIMELY_RTT_hardware, TIMELY_RTT_hardware, TIMELY_RTT_driver,
		TIMELY_RTT_driver, TIMELY_RTT_doubtful,
	};

	return sources[rtt_below(dice, ARRAY_SIZE(sources))];
}

/* A random ACK without timestamps. */
static inline struct timely_ack rtt_random_ack(struct rtt_model *m)
{
	struct rtt_dice *dice = &m->dice;
	u32 una = m->rtt.seq + rtt_number(dice, 14480);

	return (struct timely_ack) {
		.now_ns = m->now_ns,
		.una = una,
		.end_seq = una - rtt_number(dice, 0),
		.delivered = m->rtt.delivered + rtt_number(dice, 10),
		.mss = rtt_number(dice, 1448),
		.segment_bytes = rtt_number(dice, 16384),
		.in_flight = rtt_number(dice, 20),
		.acked = rtt_number(dice, 20),
		.ns_per_byte_q16 = rtt_number(dice, 52429),
		.tail_limit_ns = rtt_number(dice, 200000),
		.new = !rtt_seldom(dice),
		.retransmitted = rtt_seldom(dice),
		.recovery = rtt_seldom(dice),
		.delayed = rtt_seldom(dice),
		.sacked = rtt_seldom(dice),
	};
}

/* Bytes that an ACK completes, without limits: the delivered packets in bytes; without SACK at most
 * the acknowledged bytes.
 */
static inline u64 rtt_completed(const struct timely_ack *ack, const struct timely_rtt *before)
{
	u64 packets = (u32)(ack->delivered - before->delivered);
	u32 acked = ack->una - before->seq;

	if (ack->sacked || !acked)
		return packets * ack->mss;
	return min_t(u64, acked, packets * ack->mss);
}

/* The expected result of an ACK: the first reason to refuse the ACK, in the order in which the
 * engine checks, or the source of the RTT. The model leaves the members skipped and least_ns 0.
 */
static inline enum timely_rtt_result
rtt_reason(const struct timely_ack *ack, const struct timely_rtt *before)
{
	u64 end_ns = ack->arrived_ns ? ack->arrived_ns : ack->now_ns;
	u64 sent_ns = ack->sent_ns ? ack->sent_ns : ack->scheduled_ns;
	bool beyond = (u32)(ack->end_seq - ack->una - 1) < 1U << 31;
	u64 bytes = clamp_t(u64, rtt_completed(ack, before), 1, U32_MAX);
	bool lone = ack->in_flight < 2 ||
		    (ack->acked >= ack->in_flight && bytes <= ack->mss);
	const struct {
		bool holds;
		enum timely_rtt_result reason;
	} reasons[] = {
		{ !ack->new, TIMELY_RTT_nothing_new },
		{ ack->retransmitted, TIMELY_RTT_retransmitted },
		{ ack->recovery, TIMELY_RTT_recovery },
		{ beyond && !ack->sent_ns, TIMELY_RTT_partial },
		{ ack->delayed, TIMELY_RTT_delayed },
		{ ack->source == TIMELY_RTT_doubtful, TIMELY_RTT_doubtful },
		{ sent_ns > end_ns, TIMELY_RTT_negative },
		{ end_ns - sent_ns > TIMELY_RTT_MAX_NS, TIMELY_RTT_too_long },
		{ lone && end_ns - sent_ns > ack->tail_limit_ns, TIMELY_RTT_delayed },
		{ !ack->arrived_ns, TIMELY_RTT_tcp },
	};
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reasons); i++)
		if (reasons[i].holds)
			return reasons[i].reason;
	return ack->source;
}

/* Count a promise as checked, and as broken if @kept is false. */
static inline void rtt_promised(struct rtt_model *m, enum rtt_promise promise, bool kept)
{
	m->kept[promise]++;
	m->broken[promise] += !kept;
}

/* A refused ACK changed neither the state nor the completion, which was filled with @canary. */
static inline void rtt_check_refused(struct rtt_model *m, const struct timely_rtt *before,
				     const struct timely_completion *canary)
{
	rtt_promised(m, RTT_KEPT, m->rtt.seq == before->seq &&
		     m->rtt.delivered == before->delivered &&
		     m->completion.now_ns == canary->now_ns &&
		     m->completion.rtt_ns == canary->rtt_ns &&
		     m->completion.bytes == canary->bytes);
}

/* Check the completion of an ACK that gave an RTT. */
static inline void rtt_check_completion(struct rtt_model *m, const struct timely_rtt *before)
{
	const struct timely_completion *c = &m->completion;
	const struct timely_ack *ack = &m->ack;
	u64 end_ns = ack->arrived_ns ? ack->arrived_ns : ack->now_ns;
	u64 span_ns = end_ns - (ack->sent_ns ? ack->sent_ns : ack->scheduled_ns);
	u64 most = rtt_completed(ack, before);
	u64 serialization_ns = (u64)ack->segment_bytes * ack->ns_per_byte_q16 / 65536;
	u64 least_ns = span_ns > serialization_ns ? span_ns - serialization_ns : 0;

	rtt_promised(m, RTT_RANGE, span_ns <= TIMELY_RTT_MAX_NS);
	rtt_promised(m, RTT_SPAN, c->rtt_ns <= span_ns);
	rtt_promised(m, RTT_SERIAL, c->rtt_ns >= min_t(u64, least_ns, U32_MAX));
	rtt_promised(m, RTT_BYTES, c->bytes >= 1 && c->bytes <= max(most, 1ULL));
	rtt_promised(m, RTT_NOW, c->now_ns == ack->now_ns);
	rtt_promised(m, RTT_SOURCE,
		     m->result == (ack->arrived_ns ? ack->source : TIMELY_RTT_tcp));
	rtt_promised(m, RTT_MOVED, m->rtt.seq == ack->una &&
		     m->rtt.delivered == ack->delivered);
}

/* Pass @m->ack to the engine, check the result, and pass the completion to the rate engine. */
static inline void rtt_model_measure(struct rtt_model *m)
{
	const struct timely_completion canary = {
		.now_ns = ~m->ack.now_ns, .rtt_ns = 0x5a5a5a5a, .bytes = 0xa5a5a5a5,
	};
	struct timely_rtt before = m->rtt;

	m->completion = canary;
	m->result = timely_rtt_measure(&m->rtt, &m->ack, &m->completion);
	rtt_promised(m, RTT_REASON, m->result == rtt_reason(&m->ack, &before));
	if (m->result > TIMELY_RTT_tcp) {
		rtt_check_refused(m, &before, &canary);
		return;
	}
	rtt_check_completion(m, &before);
	m->completion.may_rise = rtt_below(&m->dice, 4);
	timely_rate_update(&m->rate, &m->cfg, &m->completion);
	rtt_promised(m, RTT_RATE, m->rate.rate_fp >= m->cfg.min_rate_fp &&
		     m->rate.rate_fp <= m->cfg.max_rate_fp);
}

/* One random ACK with random timestamps. */
static inline void rtt_model_step(struct rtt_model *m)
{
	struct rtt_dice *dice = &m->dice;
	u64 about = m->now_ns;

	m->now_ns = rtt_seldom(dice) ? rtt_time(dice, about) : about + rtt_below(dice, 50000);
	m->ack = rtt_random_ack(m);
	m->ack.arrived_ns = rtt_time(dice, m->now_ns);
	m->ack.sent_ns = rtt_below(dice, 4) ? rtt_time(dice, m->ack.arrived_ns) : 0;
	m->ack.scheduled_ns = rtt_time(dice, m->ack.arrived_ns);
	m->ack.source = rtt_random_source(dice);
	rtt_model_measure(m);
}

/* Start a connection with random sequence number and time; @m->dice must be set. */
static inline void rtt_model_init(struct rtt_model *m, const struct timely_params *params)
{
	memset(&m->rtt, 0, sizeof(m->rtt));
	m->rtt.seq = (u32)rtt_any(&m->dice);
	m->now_ns = rtt_any(&m->dice);
	timely_rate_cfg_init(&m->cfg, params);
	timely_rate_init(&m->rate, &m->cfg);
}

#endif /* _KUNIT_RTT_MODEL_H */
