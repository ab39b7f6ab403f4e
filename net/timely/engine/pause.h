/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-Ramp's controller: a delay in, a pause out. Pure, told the time. See
 * net/timely/engine/pause.c.
 */
#ifndef _TIMELY_ENGINE_PAUSE_H
#define _TIMELY_ENGINE_PAUSE_H

#include <linux/types.h>

/* A delay beyond this is a wrong stamp, or a wrong clock. */
#define TIMELY_PAUSE_DELAY_MAX_NS	1000000000ULL

/* b and the gain are fractions of this. */
#define TIMELY_PAUSE_ONE		65536U

/* A flow's b before it was ever measured: the paper does not say. */
#define TIMELY_PAUSE_FIRST_B		(TIMELY_PAUSE_ONE / 2)

/**
 * struct timely_pause_law - what is the same for all flows of a qdisc
 * @threshold_ns: the delay that is put up with, T
 * @pause_max_ns: no flow is held for longer, ns
 * @gain: of the moving average of b, g, in 65536ths
 * @strawman: take no account of pauses whose effect is not seen yet: b is 0
 */
struct timely_pause_law {
	u64 threshold_ns;
	u64 pause_max_ns;
	u32 gain;
	bool strawman;
};

/**
 * struct timely_pause - a flow's state
 * @until_ns: data is held until then; CLOCK_MONOTONIC, 0 if never
 * @since_ns: when that hold began
 * @asserted_ns: C: all the pauses asserted so far, with what is still to come
 * @black_delay_ns: delay of the packet that was acknowledged last, O_B
 * @black_asserted_ns: C when that packet departed
 * @b: how much a delay falls for each ns that this flow pauses, in 65536ths
 * @departures: of the flow when the hold began, counted without end
 * @heard: there is a packet that was acknowledged last
 */
struct timely_pause {
	u64 until_ns;
	u64 since_ns;
	u64 asserted_ns;
	u64 black_delay_ns;
	u64 black_asserted_ns;
	u32 b;
	u32 departures;
	bool heard;
};

/**
 * struct timely_pause_signal - an OR-ACK, or an RTT, that came for a flow
 * @now_ns: when, CLOCK_MONOTONIC
 * @delay_ns: O: of the packet it is about (the green one)
 * @asserted_ns: C when that packet departed
 * @departures: of the flow by now, counted without end
 */
struct timely_pause_signal {
	u64 now_ns;
	u64 delay_ns;
	u64 asserted_ns;
	u32 departures;
};

void timely_pause_init(struct timely_pause *pause);
bool timely_pause_hear(struct timely_pause *pause, const struct timely_pause_law *law,
		       const struct timely_pause_signal *signal);
bool timely_pause_start(struct timely_pause *pause, const struct timely_pause_law *law,
			const struct timely_pause_signal *signal, u64 age_ns);

/* No such rate: the flow sends as fast as it may otherwise. */
#define TIMELY_RESUME_UNLIMITED		(~0ULL)

/**
 * struct timely_resume - how fast a flow may send between holds
 * @rate_Bps: that, bytes per second; TIMELY_RESUME_UNLIMITED
 * @average_Bps: what it sent of late, its holds included
 * @begun_ns: when its last hold began; 0 if there was none of late
 * @begun_bytes: what it had sent by then
 * @grow_ns: when @rate_Bps grows next
 */
struct timely_resume {
	u64 rate_Bps;
	u64 average_Bps;
	u64 begun_ns;
	u64 begun_bytes;
	u64 grow_ns;
};

void timely_resume_init(struct timely_resume *resume);
void timely_resume_hold(struct timely_resume *resume, u64 now_ns, u64 until_ns,
			u64 rtt_ns, u64 bytes);
void timely_resume_go_on(struct timely_resume *resume, u64 now_ns, u64 rtt_ns);

/**
 * struct timely_floor - the least of values over a sliding window, of two halves
 * @half_ns: when the present half began
 * @least: in the present half
 * @before: in the one before; all ones if there is none
 */
struct timely_floor {
	u64 half_ns;
	u64 least;
	u64 before;
};

void timely_floor_init(struct timely_floor *floor);
void timely_floor_shift(struct timely_floor *floor, s64 more);
u64 timely_floor_add(struct timely_floor *floor, u64 now_ns, u64 half_length_ns, u64 value);

#endif /* _TIMELY_ENGINE_PAUSE_H */
