/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The filter for coded probes of clock synchronisation, after Huygens (NSDI'18). probe_code.c
 * explains the method.
 *
 * A sender sends clock probes in pairs. Only pairs that arrive with the spacing of their departures
 * are used, because then probably neither probe waited in a queue. The filter learns how exact the
 * timestamps are, and derives the tolerance from that. One filter is for one direction of one path.
 * The caller has both timestamps of each probe: the departure by the sender's clock, and the
 * arrival by the receiver's clock. Nothing is allocated, and the filter reads no clock.
 */
#ifndef _TIMELY_ENGINE_PROBE_CODE_H
#define _TIMELY_ENGINE_PROBE_CODE_H

#include <linux/types.h>

/* Number of pairs of which the filter keeps the first probe until the second arrives. */
#define TIMELY_PROBE_PENDING		16
/* Longest time between the departures of the two probes of a pair, ns: clocks drift apart by at
 * most 2 ns in this time (2000 ppm).
 */
#define TIMELY_PROBE_SPACING_MAX_NS	1000000
/* Limits of the tolerance, ns: the resolution of NIC clocks is 1 to 16 ns, and software timestamps
 * that are later than this by chance are useless.
 */
#define TIMELY_PROBE_TOLERANCE_MIN_NS	16
#define TIMELY_PROBE_TOLERANCE_MAX_NS	20000

/**
 * enum timely_probe_verdict - what became of a probe or of its pair
 * @TIMELY_PROBE_PURE: the pair is complete and kept its spacing: use the pair
 * @TIMELY_PROBE_WAIT: the other probe of the pair is still missing
 * @TIMELY_PROBE_SPREAD: the pair is complete, but arrived further apart than it departed
 * @TIMELY_PROBE_CLOSER: the pair is complete, but arrived closer together than it departed, or in
 *	reverse order
 * @TIMELY_PROBE_SPACING: the departures are in the wrong order, or further apart than
 *	TIMELY_PROBE_SPACING_MAX_NS: the sender was late, or its clock was stepped
 * @TIMELY_PROBE_DUPLICATE: this probe was received before
 * @TIMELY_PROBE_LATE: the pair is older than all that the filter keeps
 * @TIMELY_PROBE_LOST: no verdict about a probe: counts pairs of which one probe never came
 * @TIMELY_PROBE_VERDICTS: number of values above
 */
enum timely_probe_verdict {
	TIMELY_PROBE_PURE,
	TIMELY_PROBE_WAIT,
	TIMELY_PROBE_SPREAD,
	TIMELY_PROBE_CLOSER,
	TIMELY_PROBE_SPACING,
	TIMELY_PROBE_DUPLICATE,
	TIMELY_PROBE_LATE,
	TIMELY_PROBE_LOST,
	TIMELY_PROBE_VERDICTS
};

/**
 * struct timely_probe - the timestamps of a probe
 * @sent_ns: departure by the sender's clock, ns, any value
 * @received_ns: arrival by the receiver's clock, ns, any value
 */
struct timely_probe {
	u64 sent_ns;
	u64 received_ns;
};

/**
 * struct timely_probe_pending - a pair in the filter
 * @pair: number of the pair
 * @seen: bit 0: the first probe was received, bit 1: the second; 0: the entry is unused
 * @probe: the probe that was received first
 */
struct timely_probe_pending {
	u32 pair;
	u8 seen;
	struct timely_probe probe;
};

/**
 * struct timely_probe_code - the state of a filter
 * @pending: the latest pairs; pair n is in entry n % TIMELY_PROBE_PENDING
 * @newest: highest number of a pair so far; numbers wrap
 * @started: @newest is known
 * @noise_q16: deviation of the spacing that one of 32 pairs does not exceed, ns, Q16
 * @tolerance_ns: deviation up to which pairs are used now, ns; computed from @noise_q16
 * @counts: number of calls by verdict; [TIMELY_PROBE_LOST]: pairs of which one probe never came
 */
struct timely_probe_code {
	struct timely_probe_pending pending[TIMELY_PROBE_PENDING];
	u32 newest;
	bool started;
	u32 noise_q16;
	u32 tolerance_ns;
	u64 counts[TIMELY_PROBE_VERDICTS];
};

void timely_probe_code_init(struct timely_probe_code *code);
void timely_probe_code_forget(struct timely_probe_code *code);
enum timely_probe_verdict timely_probe_code_add(struct timely_probe_code *code, u32 pair,
						bool second, const struct timely_probe *probe,
						struct timely_probe *pure);

#endif /* _TIMELY_ENGINE_PROBE_CODE_H */
