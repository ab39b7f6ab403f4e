/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tcp_timely makes of the parameters: once for all connections of a network
 * namespace, or for each by itself where its path decides.
 */
#ifndef _NET_TIMELY_LAW_H
#define _NET_TIMELY_LAW_H

#include <net/timely.h>
#include <net/timely_pause.h>

/**
 * struct timely_law - parameters made ready for the path of an ACK
 * @rate: the rate engine's
 * @app_limited_q32: share of the rate in use that lets it rise, of 10^6, Q32
 * @horizon_q24: seconds of data outstanding at most, Q24
 * @ns_per_byte_q16: time of a byte on the line to be taken off, 0 for none
 * @segment_bytes: largest segment
 * @segment_log2: the same, rounded up
 * @loss_share_q16: of the packets that may be lost without an answer, Q16
 */
struct timely_law {
	struct timely_rate_law rate;
	u64 app_limited_q32;
	u64 horizon_q24;
	u32 ns_per_byte_q16;
	u32 segment_bytes;
	u32 segment_log2;
	u32 loss_share_q16;
};

/**
 * struct timely_own - a connection's own law, derived from its path
 * @law: the law
 * @floor: round trips of late, the least counts
 * @loss: losses that are put up with; this one whosever law it obeys
 * @base_rtt_ns: that @law was made for, 0 if none was known
 * @base_low_ns: down to this least round trip @law is good enough
 * @base_span_ns: and up to so much more
 * @line_kbps: of the device, that @law was made for
 * @drain_ns: for how long to send less each TIMELY_DRAIN_PERIOD_NS, 0 if the base RTT
 *	was given
 * @settle_ns: and after how long what is measured shows no trace of it
 * @link_epoch: timely_link_epoch when that was looked up
 * @whole_bytes: of a segment whose RTT counts towards the path's
 * @late: timely_path.late, that @law was made for
 */
struct timely_own {
	struct timely_law law;
	struct timely_floor floor;
	struct timely_loss loss;
	u32 base_rtt_ns;
	u32 base_low_ns;
	u32 base_span_ns;
	u32 line_kbps;
	u32 drain_ns;
	u32 settle_ns;
	u32 link_epoch;
	u32 whole_bytes;
	bool late;
};

#endif /* _NET_TIMELY_LAW_H */
