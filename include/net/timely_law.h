/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tcp_timely makes of the parameters: once for all connections of a network
 * namespace, or for each by itself where its path decides.
 */
#ifndef _NET_TIMELY_LAW_H
#define _NET_TIMELY_LAW_H

#include <timely/engine/drain.h>
#include <timely/engine/pause.h>
#include <timely/engine/rate.h>

struct net_device;
struct timely_link;

/**
 * struct timely_law - parameters made ready for the path of an ACK
 * @rate: the rate engine's
 * @app_limited_q32: share of the rate in use that lets it rise, of 10^6, Q32
 * @horizon_q24: seconds of data outstanding at most, Q24
 * @begin_q24: and where a message begins
 * @ns_per_byte_q16: time of a byte on the line to be taken off, 0 for none
 * @segment_bytes: largest segment
 * @segment_derived: it was, and is less for flows that are slow
 * @segment_log2: the same, rounded up
 * @loss_share_q16: of the packets that may be lost without an answer, Q16
 */
struct timely_law {
	struct timely_rate_law rate;
	u64 app_limited_q32;
	u64 horizon_q24;
	u64 begin_q24;
	u32 ns_per_byte_q16;
	u32 segment_bytes;
	u32 segment_log2;
	u32 loss_share_q16;
	bool segment_derived;
};

/**
 * struct timely_own - a connection's own law, derived from its path
 * @law: the law
 * @floor: round trips of late, the least counts
 * @drain: when to send less so that the base RTT can be seen
 * @told_ns: when others on the path were last told of it
 * @base_low_ns: down to this least round trip @law is good
 *	enough, and up to about a quarter more
 * @shared_ns: the least that others lately saw of the path, with a segment of this one's
 * @untold_ns: the least round trip since @told_ns
 * @link_epoch: timely_link_epoch when that was looked up
 * @whole_bytes: of a segment whose RTT counts towards the path's
 * @apart: the drains of the hosts on the path do not coincide
 * @late: timely_path.late, that @law was made for
 * @base_rtt_ns: that @law was made for, 0 if none was known
 * @doubted_ns: the base RTT that was last in doubt; 0 since it is known better
 * @loss: losses that are put up with; this one whosever law it obeys
 * @doubt_ns: when it was, 0 for never: for some time @shared_ns is not heard then, as it
 *	may be of another path
 * @used_ns: when the flow was last seen to use its rate, where RTTs have noise
 * @noise_ns: the path's, that @law was made for
 * @late_ns: what the last RTT of a drain was beyond the base
 * @link: the line that the connection leaves by, a reference; NULL if it is not known
 * @link_dev: the device that @link was found for, only as a number
 * @link_kbps: speed of @link, 0 if it is not known
 * @link_beyond: @link is in another namespace, and some packets may not leave by it
 * @link_jiffies: when @link was looked for
 */
struct timely_own {
	struct timely_law law;
	struct timely_floor floor;
	struct timely_drain drain;
	u64 told_ns;
	u32 base_low_ns;
	u32 shared_ns;
	u32 untold_ns;
	u32 link_epoch;
	u32 whole_bytes;
	u8 late;
	bool apart;
	/* 256 bytes: what follows is needed by some completions only */
	u32 base_rtt_ns;
	u32 doubted_ns;
	struct timely_loss loss;
	u64 doubt_ns;
	u64 used_ns;
	u32 noise_ns;
	u32 late_ns;
	struct timely_link *link;
	const struct net_device *link_dev;
	unsigned long link_jiffies;
	u32 link_kbps;
	bool link_beyond;
};

#endif /* _NET_TIMELY_LAW_H */
