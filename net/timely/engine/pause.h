/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-Ramp's controller: computes the pause of a flow from a measured delay (owd.h), and the limit
 * of the flow's rate after the pause. onramp_flow.c calls the engine, sch_timely enforces both.
 * The minimum filter is also used for RTTs. See net/timely/engine/pause.c.
 */
#ifndef _TIMELY_ENGINE_PAUSE_H
#define _TIMELY_ENGINE_PAUSE_H

#include <linux/types.h>

/* Longest credible delay, 1 s. A longer delay means that a timestamp or a clock is wrong. */
#define TIMELY_PAUSE_DELAY_MAX_NS	1000000000ULL

/* The value 1 of b and of the gain of b: both are from 0 to 1, in 65536ths. */
#define TIMELY_PAUSE_ONE		65536U

/* b of a new flow, one half; the paper does not give a value. */
#define TIMELY_PAUSE_FIRST_B		(TIMELY_PAUSE_ONE / 2)

/**
 * struct timely_pause_cfg - parameters of the controller, for all flows of a qdisc
 * @threshold_ns: T, the highest delay that does not pause a flow, ns
 * @pause_max_ns: longest pause, ns
 * @gain: g, weight of a newly measured b in the moving average, in 65536ths
 * @strawman: the paper's strawman, with b = 0: ignore pauses that delays do not show yet
 */
struct timely_pause_cfg {
	u64 threshold_ns;
	u64 pause_max_ns;
	u32 gain;
	bool strawman;
};

/**
 * struct timely_pause - the controller's state of a flow
 * @until_ns: end of the last pause, CLOCK_MONOTONIC; 0 if there was none
 * @since_ns: start of the last pause, CLOCK_MONOTONIC
 * @asserted_ns: C, the sum of all pauses asserted so far, including the rest of the present pause
 * @black_delay_ns: O_B, delay of the packet of the previous signal (the paper's black packet)
 * @black_asserted_ns: C at the departure of the black packet
 * @b: by how much the flow's delay falls for each ns of the flow's pauses, in 65536ths
 * @departures: number of departures from the flow before the last pause started; wraps
 * @have_black: there was a signal, so @black_delay_ns and @black_asserted_ns are valid
 *
 * A pause counts as asserted from the decision to pause on, as in the paper, not when it has ended.
 */
struct timely_pause {
	u64 until_ns;
	u64 since_ns;
	u64 asserted_ns;
	u64 black_delay_ns;
	u64 black_asserted_ns;
	u32 b;
	u32 departures;
	bool have_black;
};

/**
 * struct timely_pause_signal - a delay from an OR-ACK or an RTT, for one packet of a flow
 * @now_ns: when the signal arrived, CLOCK_MONOTONIC
 * @delay_ns: O, delay of the packet (the paper's green packet)
 * @asserted_ns: C at the departure of the packet
 * @departures: number of departures from the flow so far; wraps
 */
struct timely_pause_signal {
	u64 now_ns;
	u64 delay_ns;
	u64 asserted_ns;
	u32 departures;
};

void timely_pause_init(struct timely_pause *pause);
bool timely_pause_update(struct timely_pause *pause, const struct timely_pause_cfg *cfg,
			 const struct timely_pause_signal *signal);
bool timely_pause_start(struct timely_pause *pause, const struct timely_pause_cfg *cfg,
			const struct timely_pause_signal *signal, u64 age_ns);
bool timely_pause_turn(struct timely_pause *pause, const struct timely_pause_cfg *cfg,
		       const struct timely_pause_signal *signal, u64 turn_ns);

/* Value of timely_resume.rate_Bps: On-Ramp does not limit the rate. */
#define TIMELY_RESUME_UNLIMITED		(~0ULL)

/**
 * struct timely_resume - limit of a flow's rate between pauses
 * @rate_Bps: the limit, bytes per second; TIMELY_RESUME_UNLIMITED for none
 * @average_Bps: average recent rate of the flow, including its pauses, bytes per second; 0 if
 *	not known
 * @begun_ns: start of the last pause; 0 if there was no recent pause
 * @begun_bytes: bytes that the flow had sent when the last pause started
 * @grow_ns: earliest time at which @rate_Bps grows next
 */
struct timely_resume {
	u64 rate_Bps;
	u64 average_Bps;
	u64 begun_ns;
	u64 begun_bytes;
	u64 grow_ns;
};

void timely_resume_init(struct timely_resume *resume);
void timely_resume_pause(struct timely_resume *resume, u64 now_ns, u64 until_ns,
			 u64 rtt_ns, u64 bytes);
void timely_resume_grow(struct timely_resume *resume, u64 now_ns, u64 rtt_ns);

/**
 * struct timely_min_filter - minimum over a sliding window of time, which consists of two halves
 * @half_ns: start of the present half
 * @least: minimum in the present half; all ones if there is no value
 * @before: minimum in the previous half; all ones if there is no value
 */
struct timely_min_filter {
	u64 half_ns;
	u64 least;
	u64 before;
};

void timely_min_filter_init(struct timely_min_filter *filter);
void timely_min_filter_shift(struct timely_min_filter *filter, s64 more);
u64 timely_min_filter_add(struct timely_min_filter *filter, u64 now_ns, u64 half_length_ns,
			  u64 value);

#endif /* _TIMELY_ENGINE_PAUSE_H */
