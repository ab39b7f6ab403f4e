/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Computes parameters with the value "auto" (params.h) from what a connection knows about its path.
 * See net/timely/engine/tune.c.
 */
#ifndef _TIMELY_ENGINE_TUNE_H
#define _TIMELY_ENGINE_TUNE_H

#include <linux/minmax.h>
#include <linux/types.h>

#include "probe_rtt.h"
#include "params.h"

/* Half of the window of the base RTT's minimum filter: an RTT counts for one to two times this
 * long. The window always includes two base-RTT probes (probe_rtt.h), because in a single probe all
 * RTTs of a connection may include a wait behind segments of other connections.
 */
#define TIMELY_BASE_HALF_NS	(2 * TIMELY_PROBE_RTT_PERIOD_NS)

/* A segment is at most what a connection sends at its rate in 2^-12 s, 244 us, but at least two
 * packets. So slow connections have shorter segments: with longer segments, delayed ACKs would
 * determine the rate of a slow connection. With segments half as long, a thousand connections
 * also make half the queue, and each connection measures the queue twice as often.
 */
#define TIMELY_SEGMENT_SHIFT	12
#define TIMELY_SEGMENT_PACKETS	2

/* A new connection starts at the link rate divided by this number. */
#define TIMELY_FIRST_SHARE	20

/**
 * enum timely_rate_lag - whether a new rate applies to packets that are queued in the host
 * @TIMELY_ON_TIME: yes: queued packets leave at the present rate, with the qdisc timely
 * @TIMELY_RATE_LAG: no: queued packets leave at the rate at which they were queued, with TCP's
 *	internal pacing
 * @TIMELY_RATE_LAG_SLACK: no, and packets leave up to the slack of a timer later, with the
 *	qdisc fq
 */
enum timely_rate_lag {
	TIMELY_ON_TIME,
	TIMELY_RATE_LAG,
	TIMELY_RATE_LAG_SLACK,
};

/**
 * struct timely_path - what a connection knows about its path
 * @base_rtt_ns: base RTT; 0 if not known
 * @ack_agg_ns: mean of what ACK aggregation adds to RTTs, ns; 0 for none or not known
 * @link_kbps: link rate; 0 if not known
 * @likely_kbps: the likely link rate, used where @link_kbps is 0; 0 if not known. Parameters
 *	are computed from @likely_kbps, but it does not limit the rate
 * @mss: payload bytes of a packet; 0 if not known
 * @lag: whether a new rate applies to packets that are queued in the host
 */
struct timely_path {
	u32 base_rtt_ns;
	u32 ack_agg_ns;
	u32 link_kbps;
	u32 likely_kbps;
	u32 mss;
	enum timely_rate_lag lag;
};

u32 timely_tune(struct timely_params *params, const struct timely_path *path);
u32 timely_first_base_ns(u32 handshake_ns, u32 segment_bytes);

/* Number of packets of a segment, at most @most, for a connection that sends @slice packets in
 * 2^-12 s. The result is even, because receivers acknowledge every second packet, except that an
 * odd @most stays odd.
 */
static inline u32 timely_segment_packets(u32 slice, u32 most)
{
	return min(max(slice & ~1U, TIMELY_SEGMENT_PACKETS), most);
}

#endif /* _TIMELY_ENGINE_TUNE_H */
