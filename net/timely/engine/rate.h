/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What TIMELY's modules share: the engines of net/timely/.
 *
 * The engines are pure. They know no socket, no packet and no clock: time is
 * an argument, so the same files run in the kernel, under KUnit and in a
 * user-space build under sanitizers.
 */
#ifndef _TIMELY_ENGINE_RATE_H
#define _TIMELY_ENGINE_RATE_H

#include <linux/types.h>

#include "params.h"

/* Rates are bytes per second with 16 fraction bits: 800 Gb/s needs 37 + 16
 * bits, and an additive step below one byte per second is not lost.
 */
#define TIMELY_RATE_SHIFT	16

/**
 * enum timely_rule - by what the rate is computed
 * @TIMELY_RULE_GRADIENT: Algorithm 1
 * @TIMELY_RULE_PATCHED: patched TIMELY between the thresholds
 * @TIMELY_RULE_FAST: FAST TCP's equation, without thresholds
 * @TIMELY_RULE_STEER: a queueing delay is steered to (net/timely/engine/steer.c)
 */
enum timely_rule {
	TIMELY_RULE_GRADIENT,
	TIMELY_RULE_PATCHED,
	TIMELY_RULE_FAST,
	TIMELY_RULE_STEER,
};

/**
 * struct timely_rate_law - parameters made ready for the hot path
 *
 * Made by timely_rate_law_init(), read-only afterwards and shared by all
 * flows: every division by a constant has become a multiplication.
 *
 * @max_rate_fp: highest rate, bytes per second, Q16
 * @min_rate_fp: lowest rate, bytes per second, Q16
 * @step_fp: additive step of a whole segment, bytes per second, Q16
 * @inv_min_rtt: 2^56 / minRTT in ns
 * @inv_rtt_ref: 2^56 / RTTref in ns
 * @inv_segment: 2^32 / segment size in bytes
 * @min_rtt_ns: minRTT, divides the gradient, ns
 * @t_low_ns: Tlow, ns
 * @t_high_ns: Thigh, ns
 * @alpha_q16: weight of a new RTT difference, Q16
 * @hai_threshold: completions until hyperactive increase, 0 for never
 * @hai_factor: steps a completion in hyperactive increase
 * @hai_count: what counts towards @hai_threshold, enum timely_hai_count
 * @hai_below_t_low: hyperactive increase below Tlow too
 * @rule: enum timely_rule
 * @scale_decrease: scale the gradient zone's decrease by the time it covers
 * @scale_step: scale the additive step by the bytes completed
 * @once_per_rtt: one update an RTT
 * @rtt_ref_ns: RTTref of the patched rule, ns
 * @beta_q16: decrease in the gradient zone, Q16
 * @beta_high_q16: decrease above Thigh, Q16
 * @loss_beta_q16: decrease at a loss, Q16
 * @first_rate_fp: rate of a new flow, bytes per second, Q16
 * @share_fp: what those who begin share, in the same unit; 0: each has @first_rate_fp
 * @flow_term: steering: what adds to RTTref at a rate of 1 as in @first_rate_fp, ns
 * @inv_scale: 2^56 / @scale_ns
 * @scale_ns: steering: the time that its gains are for: minRTT, and more where RTTs
 *	have noise, ns
 * @least_shift: steering: 2^@least_shift completions are late; 0 without noise
 * @damp_q16: steering: part of the overload taken off at once, Q16
 * @fresh_ns: steering: added to the aim at the beginning of a message, ns
 * @lags: steering: new rates are not in force for what waits in the host; false unless set
 */
struct timely_rate_law {
	u64 max_rate_fp;
	u64 min_rate_fp;
	u64 step_fp;
	u64 inv_min_rtt;
	u64 inv_rtt_ref;
	u32 inv_segment;
	u32 min_rtt_ns;
	u32 t_low_ns;
	u32 t_high_ns;
	u32 alpha_q16;
	u8 hai_threshold;
	u8 hai_factor;
	u8 hai_count;
	u8 hai_below_t_low:1,
	   rule:2,
	   scale_decrease:1,
	   scale_step:1,
	   once_per_rtt:1;
	/* 64 bytes: what follows is needed by some completions only */
	u32 rtt_ref_ns;
	u32 beta_q16;
	u32 beta_high_q16;
	u32 loss_beta_q16;
	u64 first_rate_fp;
	u64 share_fp;
	u64 flow_term;
	u64 inv_scale;
	u32 scale_ns;
	u32 damp_q16;
	u32 fresh_ns;
	u8 least_shift;
	bool lags;
};

/**
 * enum timely_hai_count - what counts towards hyperactive increase
 * @TIMELY_HAI_SMOOTHED: smoothed gradient below zero (Algorithm 1)
 * @TIMELY_HAI_RAW: difference of two RTTs below zero (authors' snippet)
 * @TIMELY_HAI_INCREASES: increases of any kind (simulators)
 */
enum timely_hai_count {
	TIMELY_HAI_SMOOTHED,
	TIMELY_HAI_RAW,
	TIMELY_HAI_INCREASES,
};

/**
 * enum timely_zone - which branch of Algorithm 1 an update took
 * @TIMELY_ZONE_NONE: none, the completion was skipped (once_per_rtt)
 * @TIMELY_ZONE_LOW: RTT below Tlow, additive increase
 * @TIMELY_ZONE_GRADIENT: in between, by the gradient
 * @TIMELY_ZONE_HIGH: RTT above Thigh, multiplicative decrease
 */
enum timely_zone {
	TIMELY_ZONE_NONE,
	TIMELY_ZONE_LOW,
	TIMELY_ZONE_GRADIENT,
	TIMELY_ZONE_HIGH,
};

/**
 * struct timely_rate - rate computation state of one flow
 * @rate_fp: the rate, bytes per second, Q16
 * @updated_ns: when the rate was last computed
 * @diff_fp: smoothed RTT difference, ns, Q8, signed
 * @low_ns: steering, which keeps no such average: for how long the queue was short
 * @least_ns: and about the least queue of late, where RTTs have noise, ns
 * @prev_rtt_ns: RTT of the previous completion, ns
 * @hai: completions counted towards hyperactive increase
 * @seeded: @prev_rtt_ns and @updated_ns hold a sample
 * @fresh_kb: steering: so much more counts as the beginning of a message, KB
 *
 * 32 bytes: it lives in icsk_ca_priv, of which there are 104.
 */
struct timely_rate {
	u64 rate_fp;
	u64 updated_ns;
	union {
		s64 diff_fp;
		struct {
			u32 low_ns;
			u32 least_ns;
		};
	};
	u32 prev_rtt_ns;
	u8 hai;
	u8 seeded;
	u16 fresh_kb;
};

/**
 * struct timely_loss - how many losses are to be put up with
 * @credit_q16: so many, Q16
 * @lost: packets lost by the last account
 * @delivered: and delivered
 */
struct timely_loss {
	u32 credit_q16;
	u32 lost;
	u32 delivered;
};

/**
 * struct timely_completion - a segment was acknowledged
 * @now_ns: when, on any clock that does not run backwards
 * @rtt_ns: its round trip, without its serialisation at the NIC
 * @bytes: bytes completed since the last completion, at least 1
 * @may_rise: false while the application does not use the rate it has
 * @app_limited: what was completed was all that the application had to send
 * @delivered_fp: rate at which data arrived over the last round trip, bytes per second,
 *	Q16; 0 if not known; steering looks at it above Thigh
 */
struct timely_completion {
	u64 now_ns;
	u32 rtt_ns;
	u32 bytes;
	bool may_rise;
	bool app_limited;
	u64 delivered_fp;
};

void timely_rate_law_init(struct timely_rate_law *law,
			  const struct timely_params *params);
void timely_rate_init(struct timely_rate *r, const struct timely_rate_law *law);
void timely_rate_reseed(struct timely_rate *r);
void timely_rate_lose(struct timely_rate *r, const struct timely_rate_law *law);
void timely_rate_begin(struct timely_rate *r, const struct timely_rate_law *law, u32 others);
void timely_rate_restart(struct timely_rate *r,
			 const struct timely_rate_law *law);
enum timely_zone timely_rate_update(struct timely_rate *r,
				    const struct timely_rate_law *law,
				    const struct timely_completion *c);

u32 timely_loss_share_q16(u32 ppm);
void timely_loss_init(struct timely_loss *loss, u32 lost, u32 delivered);
bool timely_loss_is_free(struct timely_loss *loss, u32 share_q16, u32 lost,
			 u32 delivered);

/**
 * timely_rate_Bps() - the rate in whole bytes per second
 * @r: the flow's state
 *
 * Return: bytes per second.
 */
static inline u64 timely_rate_Bps(const struct timely_rate *r)
{
	return r->rate_fp >> TIMELY_RATE_SHIFT;
}

/**
 * timely_rate_age_ns() - the time since the rate was last computed
 * @r: the flow's state
 * @now_ns: the present time, on the clock of struct timely_completion
 *
 * A caller's clock may be coarser than that of completions, and then be behind it.
 *
 * Return: ns; 0 if @now_ns is before the last computation.
 */
static inline u64 timely_rate_age_ns(const struct timely_rate *r, u64 now_ns)
{
	s64 age_ns = now_ns - r->updated_ns;

	return age_ns > 0 ? age_ns : 0;
}

#endif /* _TIMELY_ENGINE_RATE_H */
