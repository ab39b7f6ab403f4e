/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parameters that nobody gave: derived from what a connection knows of its path.
 */
#ifndef _TIMELY_ENGINE_TUNE_H
#define _TIMELY_ENGINE_TUNE_H

#include <linux/minmax.h>
#include <linux/types.h>

#include "drain.h"
#include "params.h"

/* A round trip counts towards the path's for one to two times this, so that two
 * drains are always among them: one alone may show nothing but others' segments.
 */
#define TIMELY_BASE_HALF_NS	(2 * TIMELY_DRAIN_PERIOD_NS)

/* A segment takes a flow 2^-12 s, 244 us, at most: one that has little of a line has shorter
 * ones, down to two packets, or delayed ACKs would set its pace. A thousand flows' bursts
 * are a queue of half the length then, and each hears of it twice as often.
 */
#define TIMELY_SEGMENT_SHIFT	12
#define TIMELY_SEGMENT_PACKETS	2

/* What so many new flows may send is the line. */
#define TIMELY_FIRST_SHARE	20

/**
 * enum timely_lateness - when what waits in the host leaves
 * @TIMELY_ON_TIME: at its flow's rate of then: the qdisc "timely"
 * @TIMELY_LATE: at the rate of when it was queued: TCP's own pacing
 * @TIMELY_LATE_BY_SLACK: and later by the slack of fq's timer
 */
enum timely_lateness {
	TIMELY_ON_TIME,
	TIMELY_LATE,
	TIMELY_LATE_BY_SLACK,
};

/**
 * struct timely_path - what a connection knows of its path
 * @base_rtt_ns: the least round trip of late, 0 if none is known
 * @noise_ns: what its receivers add to round trips, on average
 * @line_kbps: of the device that it leaves by, 0 if not known
 * @likely_kbps: of a device that most of such connections leave by in the end, 0 if not
 *	known: a measure where @line_kbps is 0, but no limit
 * @mss: bytes of payload in a packet
 * @late: when what waits in the host leaves
 */
struct timely_path {
	u32 base_rtt_ns;
	u32 noise_ns;
	u32 line_kbps;
	u32 likely_kbps;
	u32 mss;
	enum timely_lateness late;
};

void timely_tune(struct timely_params *params, const struct timely_path *path);
u32 timely_first_base_ns(u32 handshake_ns, u32 segment_bytes);

/* How many packets make a segment, of a flow that sends @slice of them in 2^-12 s, and
 * of one that has the line? An even number: each second one is acknowledged.
 */
static inline u32 timely_segment_packets(u32 slice, u32 most)
{
	return min(max(slice & ~1U, TIMELY_SEGMENT_PACKETS), most);
}

#endif /* _TIMELY_ENGINE_TUNE_H */
