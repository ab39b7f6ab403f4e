/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The configuration of tcp_timely: its parameters in the form that the code for each ACK uses. Each
 * network namespace has a configuration for an unknown path. If some parameters depend on the path,
 * each connection has its own configuration, computed for its path. This configuration is a member
 * of struct timely_path_state, which is in the connection's flow entry (timely_flow.h).
 *
 * Segment and packet are defined in net/ipv4/tcp_timely.c.
 */
#ifndef _NET_TIMELY_CFG_H
#define _NET_TIMELY_CFG_H

#include <timely/engine/ack_wait.h>
#include <timely/engine/probe_rtt.h>
#include <timely/engine/pause.h>
#include <timely/engine/quiet.h>
#include <timely/engine/rate.h>
#include <uapi/linux/timely.h>

struct net_device;
struct timely_link;

/**
 * struct timely_cfg - parameters prepared for the code that handles ACKs
 * @rate: parameters of the rate engine
 * @app_limited_q32: share of the rate that a connection must use for the rate to rise, divided by
 *	10^6, Q32. A rate in bytes/s times a time in us times @app_limited_q32 is a number of bytes.
 *	0: the rate may always rise
 * @horizon_q24: the congestion window is the data that the rate sends in this time, seconds, Q24
 * @start_q24: a message's first window is the data that the rate sends in this time, seconds, Q24
 * @ns_per_byte_q16: serialization time of a byte, ns, Q16, used to subtract the serialization time
 *	of a segment from RTTs; 0 if not known
 * @segment_bytes: largest segment on a path that is not quiet, bytes
 * @segment_auto: @segment_bytes was computed; connections with a low rate have smaller segments
 * @segment_log2: log2 of @segment_bytes, rounded up
 * @segment_grows: segments grow beyond @segment_bytes on a quiet path
 * @link_kbps: link rate that the parameters were computed for, kbit/s
 * @loss_share_q16: share of packets that may be lost without a rate decrease, Q16
 */
struct timely_cfg {
	struct timely_rate_cfg rate;
	u64 app_limited_q32;
	u64 horizon_q24;
	u64 start_q24;
	u32 ns_per_byte_q16;
	u32 segment_bytes;
	u32 segment_log2;
	u32 loss_share_q16;
	u32 link_kbps;
	bool segment_auto;
	bool segment_grows;
};

/**
 * struct timely_path_state - what a connection knows about its path
 * @cfg: the configuration computed for the path
 * @filter: minimum filter of RTTs, for the base RTT
 * @probe: base-RTT probes of the connection
 * @reported_ns: when an RTT was last reported to other connections on the path; 0 for never
 * @base_low_ns: lowest base RTT that @cfg is valid for. The highest base RTT that @cfg is valid for
 *	is 28 % higher, see timely_is_near_base()
 * @shared_ns: base RTT that other connections on the path reported, for segments of this
 *	connection's size; U32_MAX if not known or not used
 * @unreported_ns: lowest RTT since @reported_ns; TIMELY_PATH_ASK if there was none
 * @link_epoch: timely_link_epoch at the last lookup of @link
 * @whole_bytes: size of the segments whose RTTs count for the base RTT, bytes; RTTs of smaller
 *	segments are ignored if RTTs include serialization
 * @apart: the base-RTT probes of the hosts on the path do not coincide
 * @peer_sends: the peer has sent data to this host lately
 * @lag: enum timely_rate_lag that @cfg was computed for
 * @base_rtt_ns: base RTT that @cfg was computed for; 0 if not known
 * @doubted_ns: the base RTT that timely_forget_base() discarded as doubtful; 0 for none
 * @loss: account of tolerated losses; also used if the connection has the namespace's configuration
 * @probe_before_ns: last RTT before the last base-RTT probe, ns; 0 if not known or not needed any
 *	more
 * @doubt_ns: when the base RTT was last doubted; 0 for never. For 2 * TIMELY_BASE_HALF_NS after
 *	this, reports of other connections are ignored, as they may be of another path
 * @undo_rate_fp: rate before the last decrease for losses or ECN echo, bytes per second, Q16; also
 *	used if the connection has the namespace's configuration
 * @ack_agg_ns: ACK aggregation that @cfg was computed for
 * @probe_queue_ns: excess of the last RTT in a base-RTT probe over the base RTT
 * @window_rtt_ns: window rules: TCP's smoothed RTT before the last base-RTT probe; 0 if not known
 * @last_reported_ns: @unreported_ns when it was last reported
 * @received: bytes received that timely_count_received() has not yet added to the link's count
 * @told_jiffies: when the connection last told its path that the peer sends, jiffies
 * @asked_jiffies: when the connection last asked its path whether the peer sends, jiffies
 * @ack_wait: how long ACKs wait on their way back
 * @ack_wait_ns: the wait that was subtracted from the last RTT
 * @rcv_nxt: tp->rcv_nxt at the previous completion: data that arrived since
 * @ack_id: IPv4 ID of the last packet before the connection was half-closed, if it was a pure ACK;
 *	TIMELY_ACK_NO_ID otherwise
 * @quiet: how long the path has been quiet
 * @link: the link of the connection, with a reference; NULL if not known
 * @link_dev: address of the device that @link was found for; never dereferenced; NULL before the
 *	first lookup
 * @link_kbps: rate of @link, kbit/s; 0 if not known
 * @link_beyond: @link is beyond the peer of a veth, and packets to other containers of the host do
 *	not use @link
 * @link_jiffies: when @link was looked up, jiffies
 * @cuts: causes to reduce the rate at once, by TIMELY_CUT_*; also counted if the connection has the
 *	namespace's configuration
 * @rejected: ACKs that gave no RTT, by TIMELY_REJECTED_*; likewise
 *
 * Names that end in _ns are times in ns; points in time are by CLOCK_MONOTONIC.
 */
struct timely_path_state {
	struct timely_cfg cfg;
	struct timely_min_filter filter;
	struct timely_probe_rtt probe;
	u64 reported_ns;
	u32 base_low_ns;
	u32 shared_ns;
	u32 unreported_ns;
	u32 link_epoch;
	u32 whole_bytes;
	u8 lag;
	bool apart;
	bool peer_sends;
	/* End of the first 256 bytes, which are four cache lines. Of the members below, those from
	 * @ack_wait to @link are needed for each completion with the default rule.
	 */
	u32 base_rtt_ns;
	u32 doubted_ns;
	struct timely_loss loss;
	u32 probe_before_ns;
	u64 doubt_ns;
	u64 undo_rate_fp;
	u32 ack_agg_ns;
	u32 probe_queue_ns;
	u32 window_rtt_ns;
	u32 last_reported_ns;
	u32 received;
	u32 told_jiffies;
	u32 asked_jiffies;
	struct timely_ack_wait ack_wait;
	u32 ack_wait_ns;
	u32 rcv_nxt;
	u32 ack_id;
	struct timely_quiet quiet;
	struct timely_link *link;
	const struct net_device *link_dev;
	unsigned long link_jiffies;
	u32 link_kbps;
	bool link_beyond;
	u32 cuts[TIMELY_CUTS];
	u32 rejected[TIMELY_REJECTIONS];
};

#endif /* _NET_TIMELY_CFG_H */
