// SPDX-License-Identifier: GPL-2.0
/*
 * TIMELY as a congestion control of TCP: the glue between TCP and the engines in
 * net/timely/engine/.
 *
 *	ACK -> RTT measurement engine -> rate computation engine -> sk_pacing_rate
 *
 * TIMELY computes a rate, not a window. The qdisc fq or timely, or TCP's internal pacing, enforces
 * sk_pacing_rate. The congestion window is only the paper's static limit on outstanding data
 * (section 3.3). The window stops a connection that gets no ACKs. Except at the start of a message,
 * the window does not limit a connection while RTTs are below t_high_ns. With the window rules
 * (Swift and theta-PowerTCP), the window limits connections, too.
 *
 * Terms in tcp_timely: a segment is a pacing segment, which is the data that TCP hands to the qdisc
 * in one skb. A packet is what TCP counts as one packet, which has up to an MSS of payload. A
 * segment has several packets.
 *
 * TCP reports an ACK to its congestion control, but not the skb of the ACK, which has the NIC's
 * timestamp. tcp_timely_hooks.c copies the timestamps of each skb into the connection's state
 * before TCP processes the skb. The other files: tcp_timely_path.c has what changes with the path,
 * tcp_timely_window.c what window rules need, tcp_timely_params.c the parameters and sysctls,
 * tcp_timely_timer.c the retransmission timer, tcp_timely_realtime.c the real-time clock,
 * tcp_timely_info.c the netlink description of a connection.
 *
 * Differences from the paper in this file (Documentation/deviations.md lists all):
 *  - RTTs start when the qdisc timely passed the segment to the device. Under another qdisc, they
 *    start at the departure time that TCP scheduled, which is in microseconds.
 *  - RTTs end with the NIC's timestamp of the ACK if the NIC has one and its clock is mapped to the
 *    host's. Otherwise they end when the driver passed the ACK on. On half-closed connections, they
 *    end when TCP processed the ACK.
 *  - A rate decrease delays segments that are already queued (section 5) only under the qdisc
 *    timely. Under other qdiscs, queued segments leave at the old rate. timely_pacing_shift() keeps
 *    their number small.
 *  - The rate is halved (loss_beta_ppm), once per window, for losses beyond a share of the packets,
 *    for a timeout, and for ECN echo. The paper does not treat losses.
 *  - The retransmission timer is TCP's. The first back-off has a random part, and
 *    linear_timeouts, off by default, keeps the timer from doubling for a number of timeouts.
 */

#include <linux/inet_diag.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <net/tcp.h>

#include <net/timely_cfg.h>
#include <net/timely_common_time.h>
#include <net/timely_flow.h>
#include <net/timely_link.h>
#include <net/timely_nic.h>
#include <timely/engine/rate.h>
#include <timely/engine/real.h>
#include <timely/engine/rtt.h>
#include <timely/engine/target_delay.h>
#include <timely/engine/tune.h>

#include "tcp_timely.h"
#include "tcp_timely_realtime.h"

#include <trace/events/timely.h>

/* The congestion window is the data that the rate sends in timely_cfg.horizon_q24, plus this many
 * segments: some outstanding segments wait in the qdisc, or for an ACK of the receiver.
 */
#define TIMELY_SLACK_SEGMENTS	3

/* Segments added to the window at the start of a message, in place of TIMELY_SLACK_SEGMENTS. The
 * number is lower because no RTT has shown yet whether there is a queue, and the message must not
 * build a queue.
 */
#define TIMELY_START_SEGMENTS	2

/* The rate of a new connection does not fall below this many first windows per RTT, until
 * TIMELY_OPENING_BYTES have been acknowledged.
 */
#define TIMELY_OPENING_WINDOWS	3
#define TIMELY_OPENING_BYTES	(TIMELY_TARGET_START_KB << 10)

/* Largest segment on a quiet path, bytes: TCP's usual limit. */
#define TIMELY_QUIET_BYTES	65536

/* TCP may have data for 2^-13 s (122 us), or two segments, in the qdisc; TCP's default is 2^-10 s.
 * Data in the qdisc was scheduled at an older rate, so queued data are a delay in the control loop.
 * With a longer delay, the rates of all connections oscillate together.
 */
#define TIMELY_PACING_SHIFT_MAX	13

/* A connection that does not need driver timestamps any more stops asking for them only when its
 * number of received TCP segments is a multiple of this: see timely_arrival().
 */
#define TIMELY_TSTAMP_RELEASE	64

/* Longest time between completions, and longest interval of TCP's rate sample, us; longer times
 * count as this. The product of any rate and this time fits in 64 bits.
 */
#define TIMELY_INTERVAL_MAX_US	(USEC_PER_SEC - 1)

/* ---- the parameters in force ---- */

/* The presets of the congestion controls whose parameters cannot be changed. TIMELY_CC_NET has no
 * preset here: it uses the parameters of the network namespace.
 */
static const char * const timely_fixed_presets[TIMELY_CC_COUNT] = {
	[TIMELY_CC_PATCHED]	= "patched",
	[TIMELY_CC_PAPER]	= "paper",
	[TIMELY_CC_FAST]	= "fast",
	[TIMELY_CC_SWIFT]	= "swift",
	[TIMELY_CC_POWERTCP]	= "powertcp",
};

static struct timely_param_set timely_fixed[TIMELY_CC_COUNT] __ro_after_init;

/* The parameters that a socket with the congestion control @ops uses. @ops points into timely_ops.
 * The caller is in an RCU read-side critical section.
 */
const struct timely_param_set *timely_param_set_of(const struct sock *sk,
						   const struct tcp_congestion_ops *ops)
{
	if (likely(ops == &timely_ops[TIMELY_CC_NET]))
		return timely_net_param_set(sk);
	return &timely_fixed[ops - timely_ops];
}

/* The parameters that the connection uses, for its congestion control's operations. */
static const struct timely_param_set *timely_param_set(const struct sock *sk)
{
	return timely_param_set_of(sk, inet_csk(sk)->icsk_ca_ops);
}

/* Return: packets in a segment for a rate in bytes per second. On a quiet path segments take more
 * time, at the link rate and at the connection's own rate.
 */
static u32 timely_segment(const struct timely_sock *ts, const struct timely_cfg *cfg, u64 rate)
{
	u32 doublings = cfg->segment_grows ? ts->flow->path.quiet.doublings : 0;
	u32 most = ts->gso_most;

	if (!cfg->segment_auto)
		return most;
	if (doublings)
		most = min3(most << doublings, timely_packets(ts, TIMELY_QUIET_BYTES),
			    (u32)U8_MAX);
	rate = (rate >> TIMELY_SEGMENT_SHIFT) << doublings;
	return timely_segment_packets(timely_packets(ts, rate), most);
}

/* Set the number of packets in a segment for a rate in bytes per second. If the number changes and
 * sk_gso_max_segs was lowered to the old number, sk_gso_max_segs is reset to the socket's original
 * value; timely_min_tso_segs() then lowers sk_gso_max_segs to the new number.
 */
static void timely_set_segment(struct sock *sk, const struct timely_cfg *cfg, u64 rate)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u32 packets = timely_segment(ts, cfg, rate);

	if (likely(packets == ts->gso_segs))
		return;
	if (ts->gso_max_segs && sk->sk_gso_max_segs == ts->gso_segs)
		sk->sk_gso_max_segs = ts->gso_max_segs;
	ts->gso_segs = packets;
}

static void timely_set_mss(struct sock *sk, const struct timely_cfg *cfg, u32 mss)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	ts->mss = mss;
	/* 1 / MSS is rounded up. Rounded down, the bytes of n whole packets would count as n - 1
	 * packets.
	 */
	ts->mss_inv = min_t(u64, div_u64((1ULL << 32) + mss - 1, mss), U32_MAX);
	ts->gso_most = clamp_t(u32, timely_packets(ts, cfg->segment_bytes),
			       TIMELY_SEGMENT_PACKETS, U8_MAX);
	timely_set_segment(sk, cfg, timely_rate_Bps(&ts->rate));
}

/* ---- the path's configuration ---- */

/* Start to use a set of parameters: the connection is new, or @set has replaced its old set. */
static void timely_adopt(struct sock *sk, const struct timely_param_set *set)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	ts->generation = set->generation;
	/* Another rule gives some members of the state another meaning. */
	timely_rate_reseed(&ts->rate);
	ts->rate.start_kb = 0;
	ts->path = set->is_auto && ts->flow;
	if (ts->path)
		timely_tune_path(sk, set);
	timely_set_mss(sk, timely_cfg(ts, set), ts->mss);
}

/* Add a new RTT to the minimum filter of the base RTT. If the path has changed, compute the path's
 * configuration again. @segment_bytes is the size of the segment that the RTT belongs to. The RTT
 * may have been longer by up to @unsure_ns; the longest RTT counts, so that the base RTT is not too
 * low.
 */
static void timely_watch_path(struct sock *sk, const struct timely_param_set *set,
			      const struct timely_completion *completion,
			      u32 unsure_ns, u32 segment_bytes)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_path_state *path = &ts->flow->path;
	u32 rtt_ns = clamp_t(u64, (u64)completion->rtt_ns + unsure_ns, 1, U32_MAX);
	u64 half_ns = path->filter.half_ns;
	enum timely_path_change change;
	u64 least_ns, base_ns;
	bool same;

	/* If the serialization time of a segment cannot be subtracted, RTTs include it, and only
	 * segments of equal size have the same base RTT. So RTTs of segments below whole_bytes are
	 * ignored. If there were no RTTs of larger segments for twice TIMELY_BASE_HALF_NS, the
	 * qdisc splits segments, and whole_bytes is reduced to the size of the parts.
	 */
	if (!path->cfg.ns_per_byte_q16 && segment_bytes < path->whole_bytes &&
	    completion->now_ns - half_ns < 2 * TIMELY_BASE_HALF_NS)
		return;
	path->whole_bytes = min(segment_bytes, path->cfg.segment_bytes);
	least_ns = timely_min_filter_add(&path->filter, completion->now_ns, TIMELY_BASE_HALF_NS,
					 rtt_ns);
	base_ns = min_t(u64, least_ns, path->shared_ns);
	path->unreported_ns = min(path->unreported_ns, rtt_ns);

	/* The path is checked if the link, the qdisc or the base RTT changes, and when the minimum
	 * filter starts a new half of its window. The path is also checked once per
	 * TIMELY_PROBE_RTT_PERIOD_NS, because no event tells that the route has another device.
	 */
	same = path->link_epoch == READ_ONCE(timely_link_epoch) &&
	       path->lag == timely_rate_lag(sk) && path->filter.half_ns == half_ns;
	if (likely(same && timely_is_near_base(path, base_ns) &&
		   completion->now_ns - path->reported_ns < TIMELY_PROBE_RTT_PERIOD_NS))
		return;
	change = timely_path_changed(sk, set, completion->now_ns, least_ns, same);
	if (change == TIMELY_PATH_SAME)
		return;
	timely_set_mss(sk, &path->cfg, ts->mss);
	/* The rate was decreased because the longer path seemed to be a queue. A restart keeps the
	 * rate, and lets the rate grow as fast as at the start of a message.
	 */
	if (change == TIMELY_PATH_LONGER && ts->rate.rate_fp < path->cfg.rate.first_rate_fp)
		timely_rate_restart(&ts->rate, &path->cfg.rate);
}

/* ---- from TCP to the engine ---- */

static u32 timely_mss(const struct sock *sk)
{
	return clamp_t(u32, tcp_sk(sk)->mss_cache, 1, U16_MAX);
}

/* If TCP has changed the MSS, compute the values that depend on the MSS again. */
static void timely_refresh_mss(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_param_set *set;
	u32 mss = timely_mss(sk);

	if (likely(ts->mss == mss))
		return;
	rcu_read_lock();
	set = timely_param_set(sk);
	if (ts->path)
		timely_tune_path(sk, set);
	timely_set_mss(sk, timely_cfg(ts, set), mss);
	rcu_read_unlock();
}

/* The value for sk_pacing_shift: TCP may have data for 2^-shift seconds at @rate in the qdisc, or
 * twice the skb that TCP is about to send. At a low rate, data for 122 us are less than a segment.
 * New data would still be sent, up to two segments. But a retransmission is a small skb: it would
 * have to wait until the queue is nearly empty, and new data can keep the queue filled. So the
 * shift is reduced until data for 2^-shift seconds are at least a segment.
 */
static u32 timely_pacing_shift(const struct timely_sock *ts, const struct timely_cfg *cfg,
			       u64 rate)
{
	int log2 = max_t(int, cfg->segment_log2, fls(ts->gso_segs * ts->mss));
	int shift = fls64(rate) - 1 - log2;

	return clamp(shift, 0, TIMELY_PACING_SHIFT_MAX);
}

/* Get the clock by which base-RTT probes start, as an offset from CLOCK_MONOTONIC: the common time
 * of the hosts, or the real-time clock if there is no common time that is exact enough.
 */
static enum timely_common_state timely_probe_clock(const struct sock *sk, u64 now_ns,
						   s64 *offset_ns)
{
	enum timely_common_state state = timely_common_time(timely_live_net(sk), now_ns,
							    TIMELY_PROBE_RTT_ERROR_MAX_NS,
							    offset_ns);
	struct timely_real real;

	if (state == TIMELY_COMMON_KNOWN)
		return state;
	timely_look_at_real(&real);
	*offset_ns = real.offset_ns + timely_test_offset_ns(sock_net(sk));
	return state;
}

/* Check whether a base-RTT probe has started since the last ACK. A connection whose base RTT is
 * configured takes part in no probe.
 */
static void timely_look_for_probe(const struct sock *sk, struct timely_path_state *path)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u64 now_ns = tcp_sk(sk)->tcp_clock_cache;
	enum timely_common_state state;
	s64 offset_ns;

	if (likely(!timely_probe_rtt_may_begin(&path->probe, now_ns)))
		return;
	state = timely_probe_clock(sk, now_ns, &offset_ns);
	if (timely_probe_rtt_update(&path->probe, now_ns, now_ns + offset_ns)) {
		path->probe_before_ns = ts->rate.seeded ? ts->rate.prev_rtt_ns : 0;
		trace_timely_probe(sk, offset_ns, state == TIMELY_COMMON_KNOWN);
		if (state != TIMELY_COMMON_NONE)
			timely_count_ack(sk, state == TIMELY_COMMON_KNOWN ?
					     TIMELY_RTT_probes_common : TIMELY_RTT_probes_unsynced);
	}
	path->window_rtt_ns = min_t(u64, (u64)(tcp_sk(sk)->srtt_us >> 3) * NSEC_PER_USEC, U32_MAX);
}

/* Whether an RTT shows a base-RTT probe and must not change the rate: in a probe, RTTs fall because
 * all connections send less. An RTT above t_high_ns changes the rate in a probe, too.
 *
 * The function also detects the start of a probe, and uses an RTT that shows a probe to measure ACK
 * aggregation.
 */
static bool timely_rtt_shows_probe(struct sock *sk, const struct timely_param_set *set,
				   const struct timely_completion *completion)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_path_state *path;
	u64 age_ns;

	if (!ts->path)
		return false;
	path = &ts->flow->path;
	timely_look_for_probe(sk, path);
	age_ns = timely_probe_rtt_age_ns(&path->probe, tcp_sk(sk)->tcp_clock_cache);
	if (likely(age_ns >= path->probe.settle_ns))
		return false;
	timely_watch_ack_agg(sk, set, completion, age_ns);
	return completion->rtt_ns <= path->cfg.rate.t_high_ns;
}

/* Check whether the connection is at its minimum rate and its RTT is above t_high_ns all the same.
 * Then the base RTT in use may be too low: the path has become longer, or is longer than other
 * paths to the same address. So the connection measures the base RTT again, without the reports of
 * other connections. If a queue caused the long RTT, RTTs fall when the queue has drained.
 */
static void timely_doubt_base(struct sock *sk, const struct timely_completion *completion)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_path_state *path;

	if (!ts->path)
		return;
	path = &ts->flow->path;
	if (likely(ts->rate.rate_fp > path->cfg.rate.min_rate_fp ||
		   completion->rtt_ns <= path->cfg.rate.t_high_ns))
		return;
	timely_forget_base(sk, completion->now_ns);
}

/* Whether the connection shares the host's link with others, and only its rate limits it, not the
 * program or SO_MAX_PACING_RATE. Such connections keep the link full together. If their segments
 * were long, each would wait for those of the others, and the rates would vary.
 */
static bool timely_competes(const struct sock *sk, const struct timely_completion *completion)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	return !completion->app_limited &&
	       timely_rate_Bps(&ts->rate) < READ_ONCE(sk->sk_max_pacing_rate) &&
	       timely_other_senders(sk);
}

/* Let the engine compute the rate, and count how long the path has been without a queue. */
static void timely_update_rate(struct sock *sk, const struct timely_cfg *cfg,
			       const struct timely_completion *completion)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u32 now_us = tcp_sk(sk)->tcp_mstamp, base_ns = cfg->rate.min_rtt_ns;
	struct timely_quiet *quiet;

	timely_rate_update(&ts->rate, &cfg->rate, completion);
	if (!cfg->segment_grows)
		return;
	quiet = &ts->flow->path.quiet;
	if (timely_quiet_add(quiet, now_us, max(completion->rtt_ns, base_ns) - base_ns,
			     timely_competes(sk, completion)))
		timely_quiet_judge(quiet, now_us,
				   timely_target_ref_ns(&cfg->rate, ts->rate.rate_fp) - base_ns);
}

/* Put the engine's rate into force: set the pacing rate, the size of segments and cwnd_limit.
 * A base-RTT probe reduces the pacing rate, but not the window.
 */
static void timely_apply(struct sock *sk, const struct timely_cfg *cfg)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u64 rate = timely_rate_Bps(&ts->rate);
	u64 bytes = rate * cfg->horizon_q24 >> 24;
	u64 before = READ_ONCE(sk->sk_pacing_rate);

	if (ts->path &&
	    timely_probe_rtt_is_on(&ts->flow->path.probe, tcp_sk(sk)->tcp_clock_cache)) {
		rate = timely_window_probe_Bps(ts, cfg);
		rate -= timely_probe_rtt_cut_Bps(rate, sk->sk_hash);
	}
	rate = min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate));
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, ULONG_MAX));
	/* A packet that waits in the qdisc at this or a higher rate need not move. */
	if (ts->flow && rate > before)
		timely_flow_rate(ts->flow, rate);
	timely_set_segment(sk, cfg, rate);
	sk_pacing_shift_update(sk, timely_pacing_shift(ts, cfg, rate));
	ts->cwnd_limit = timely_packets(ts, bytes) + TIMELY_SLACK_SEGMENTS * ts->gso_segs;
	if (unlikely(timely_rate_has_window(&cfg->rate)))
		ts->cwnd_limit = timely_window_packets(ts, cfg);
}

/* Largest window on a path without a recent RTT, packets: TCP's initial window (RFC 6928), or the
 * connection's share of two such windows for all connections of the host that send. Where very many
 * start together, ten packets of each would overflow the queue. @least: window of any message
 */
static u32 timely_first_window(const struct sock *sk, u32 least)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u32 senders = ts->counted ? 1 + timely_other_senders(sk) : 1;
	u32 share = max(2 * TCP_INIT_CWND / senders, least);

	return min_t(u32, share, TCP_INIT_CWND);
}

/* Bytes per RTT below which the rate does not fall; 0 if the connection is not new. */
static u32 timely_opening_bytes(const struct sock *sk)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (likely(tcp_sk(sk)->bytes_acked >= TIMELY_OPENING_BYTES))
		return 0;
	return TIMELY_OPENING_WINDOWS * timely_first_window(sk, TIMELY_SEGMENT_PACKETS) * ts->mss;
}

/* Put the rate into force at the start of a message. Until the first ACK, the window is smaller
 * than usual, so that an RTT can show a queue before the connection sends much of the message. If
 * the path is not @known by a recent RTT, the window is at most timely_first_window().
 */
static void timely_start_message(struct sock *sk, const struct timely_cfg *cfg, bool known)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u64 bytes = timely_rate_Bps(&ts->rate) * cfg->start_q24 >> 24;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 packets, least;

	if (ts->path)
		timely_quiet_reset(&ts->flow->path.quiet, tp->tcp_mstamp);
	trace_timely_rate_set(sk, timely_rate_Bps(&ts->rate), TIMELY_SET_START);
	timely_apply(sk, cfg);
	if (timely_rate_has_window(&cfg->rate)) {
		tcp_snd_cwnd_set(tp, min(ts->cwnd_limit, tp->snd_cwnd_clamp));
		return;
	}
	least = TIMELY_START_SEGMENTS * ts->gso_segs;
	packets = timely_packets(ts, bytes) + least;
	if (!known)
		packets = min(packets, timely_first_window(sk, least));
	tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), packets));
}

/* Whether the connection uses at least app_limited_percent of its rate (section 5 of the paper:
 * 80 %). The application, a socket buffer or the link may limit the use. @bytes in @packets packets
 * have been completed since the previous completion. They are compared with what the rate sends in
 * the time since then.
 *
 * Where new rates do not apply to queued packets, what TCP's rate sample says of the last round
 * trip counts instead. Its round trip includes the time that packets waited in the host. So a rate
 * that grows may not grow on before the packets that were queued at the lower rate have been
 * delivered. If the application had no data for some time, the rate sample does not show what the
 * connection sends, and is not used.
 */
static bool timely_uses_rate(const struct sock *sk, const struct timely_cfg *cfg,
			     const struct rate_sample *rs, u32 bytes, u32 packets)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u64 interval_us = (u32)tcp_sk(sk)->tcp_mstamp - ts->completed_us;
	u64 delivered = packets, needed;

	if (cfg->rate.lags && !rs->is_app_limited && rs->delivered > 0 && rs->interval_us > 0) {
		delivered = rs->delivered;
		interval_us = rs->interval_us;
	}
	needed = timely_rate_Bps(&ts->rate) *
		 min_t(u64, interval_us, TIMELY_INTERVAL_MAX_US) >> 16;
	needed = needed * cfg->app_limited_q32 >> 16;
	return delivered * bytes >= needed * packets;
}

/* Whether the rate may rise: if the connection uses its rate. ACKs that waited arrive late and
 * together, so one of the last two round trips may say so for this completion. A rate sample covers
 * several segments, so with rate samples this is needed with ACK aggregation only.
 */
static bool timely_may_rise(struct sock *sk, const struct timely_cfg *cfg,
			    const struct rate_sample *rs,
			    const struct timely_completion *completion, u32 packets)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u32 now_us = tcp_sk(sk)->tcp_mstamp;

	if (!cfg->app_limited_q32)
		return true;
	if (timely_uses_rate(sk, cfg, rs, completion->bytes, packets))
		ts->used_us = now_us;
	else if (cfg->rate.lags && !cfg->rate.least_shift)
		return false;
	return (u64)(now_us - ts->used_us) * NSEC_PER_USEC <= 2 * (u64)completion->rtt_ns;
}

/* Delivery rate over the last round trip, bytes per second, Q16; 0 if not known. Also 0 for an RTT
 * up to quiet_ns, to save a division: the rule does not use the delivery rate for such an RTT.
 */
static u64 timely_delivered_fp(const struct sock *sk, const struct timely_cfg *cfg,
			       const struct rate_sample *rs, u32 rtt_ns)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (likely(rtt_ns <= cfg->rate.quiet_ns) || rs->delivered <= 0 || rs->interval_us <= 0)
		return 0;
	return div64_u64((u64)rs->delivered * ts->mss * USEC_PER_SEC, rs->interval_us) <<
	       TIMELY_RATE_SHIFT;
}

/* ---- when an ACK arrived ---- */

/* Ask for driver timestamps, or stop asking for them. The kernel takes driver timestamps of all
 * packets while any socket asks for them, which costs some time per packet. So a connection that
 * uses hardware timestamps does not ask for driver timestamps.
 */
static void timely_want_driver_tstamps(struct timely_sock *ts, bool want)
{
	if (likely(ts->stamped == want))
		return;
	ts->stamped = want;
	if (want)
		net_enable_timestamp();
	else
		net_disable_timestamp();
}

/* Convert a driver timestamp to CLOCK_MONOTONIC. Return: the time of arrival, ns; 0 if the
 * timestamp is too old, in the future, or perhaps from before the real-time clock was set.
 */
static u64 timely_driver_arrival_ns(const struct sock *sk, u64 timestamp_ns, u64 now_ns)
{
	struct timely_real real;
	u64 arrived_ns;

	timely_look_at_real(&real);
	arrived_ns = timely_real_arrival_ns(&real, timestamp_ns, now_ns);
	if (unlikely(!arrived_ns))
		timely_count_ack(sk, TIMELY_RTT_driver_unsure);
	return arrived_ns;
}

/* Convert the ACK's hardware timestamp to the host's time. Fill in arrived_ns of @ack, and
 * ns_per_byte_q16 if the link rate of the NIC is known. Return: TIMELY_RTT_hardware, or the reason
 * why the timestamp is not used.
 */
static enum timely_rtt_result
timely_hardware_arrival(const struct timely_sock *ts, struct timely_ack *ack)
{
	int verdict;

	rcu_read_lock();
	verdict = timely_nic_arrival(ts->napi_id, ts->hardware_ns, ack->now_ns,
				     &ack->arrived_ns, &ack->ns_per_byte_q16);
	rcu_read_unlock();
	switch (verdict) {
	case TIMELY_TSTAMP_GOOD:
		return TIMELY_RTT_hardware;
	case TIMELY_TSTAMP_DOUBTFUL:
		return TIMELY_RTT_doubtful;
	case TIMELY_TSTAMP_UNSURE:
		return TIMELY_RTT_clock_unsure;
	default:
		return TIMELY_RTT_nic_unknown;
	}
}

/* Fill in when the ACK arrived: by the hardware timestamp, or by the driver timestamp if there is
 * no usable hardware timestamp. If the hardware timestamp is doubtful, the driver timestamp is not
 * used either, and the ACK gives no RTT.
 */
static void timely_arrival(struct sock *sk, struct timely_ack *ack)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	/* The timestamps come from the tracepoint tcp_probe (tcp_timely_hooks.c), which TCP raises
	 * only for established connections.
	 */
	if (sk->sk_state != TCP_ESTABLISHED)
		return;
	if (ts->hardware_ns) {
		ack->source = timely_hardware_arrival(ts, ack);
		/* Outside of softirq, the ACK has waited in the socket's backlog for an unknown
		 * time. So the time of processing cannot show that the hardware timestamp is too
		 * early, but an RTT below the base RTT can.
		 */
		if (ack->source == TIMELY_RTT_hardware && ts->path && !in_softirq())
			ack->least_ns = ts->flow->path.base_rtt_ns;
		if (ack->source == TIMELY_RTT_hardware ||
		    ack->source == TIMELY_RTT_doubtful) {
			/* Turning driver timestamps on or off may patch the kernel's code (a static
			 * key). If some NICs of the host give timestamps and others do not, the
			 * code must not be patched at each ACK.
			 */
			if (!(tcp_sk(sk)->segs_in % TIMELY_TSTAMP_RELEASE))
				timely_want_driver_tstamps(ts, false);
			return;
		}
		timely_count_ack(sk, ack->source);
	}
	timely_want_driver_tstamps(ts, true);
	ack->source = TIMELY_RTT_driver;
	if (ts->driver_ns)
		ack->arrived_ns = timely_driver_arrival_ns(sk, ts->driver_ns, ack->now_ns);
}

/* ---- completions ---- */

/* Exclude the data acknowledged up to now from the next completion. */
static void timely_skip(struct timely_sock *ts, const struct tcp_sock *tp)
{
	ts->rtt.seq = tp->snd_una;
	ts->rtt.delivered = tp->delivered;
	ts->completed_us = tp->tcp_mstamp;
}

/* Length of the headers of a packet in an Ethernet frame, without options of SACK. */
static u32 timely_header_bytes(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);

	return ETH_HLEN + icsk->icsk_af_ops->net_header_len + icsk->icsk_ext_hdr_len +
	       tcp_sk(sk)->tcp_header_len;
}

/* Handle an ACK that ends within a segment. A receiver that delays ACKs acknowledges every second
 * packet. After a single packet, the receiver's ACKs may not end at the end of a segment for a long
 * time, and would complete no segment. So the part of the segment up to the ACK counts as a
 * segment. The segment left as a whole, so the part has the departure time of the segment.
 */
static void timely_within_segment(const struct sock *sk, struct timely_ack *ack)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u32 segment = ts->gso_segs * ack->mss;
	u32 rest = ack->end_seq - ack->una;

	/* The recorded size of a segment includes headers. */
	if (ack->sent_ns) {
		segment = ack->segment_bytes;
		rest += DIV_ROUND_UP(rest, ack->mss) * timely_header_bytes(sk);
	}
	if (rest < segment) {
		ack->segment_bytes = segment - rest;
		ack->end_seq = ack->una;
	} else {
		/* The segment starts beyond the ACK: its departure time is of no use. */
		ack->sent_ns = 0;
	}
}

/* Find the departure time that the qdisc recorded for the segment that ends at @ack->end_seq.
 *
 * A qdisc that records departures may have had no room to record this departure. The time that TCP
 * scheduled cannot be used instead: such a qdisc uses newer rates, and may have sent the segment
 * earlier.
 */
static void timely_look_up(struct timely_sock *ts, struct timely_ack *ack)
{
	/* Negative if the qdisc sent the segment before the scheduled time, and its ACK is here. */
	s64 age_ns = ack->now_ns - ack->scheduled_ns;
	struct timely_departed departed;

	switch (timely_flow_departure(ts->flow, &ts->departure, ts->rtt.seq, ack->end_seq,
				      ack->now_ns, &departed)) {
	case TIMELY_DEPARTURE_FOUND:
		ack->sent_ns = departed.time_ns;
		ack->unsure_ns = departed.unsure_ns;
		ack->segment_bytes = departed.bytes;
		break;
	case TIMELY_DEPARTURE_SKIPPED:
		ack->skipped = true;
		/* Departures are kept for two RTTs. If the RTT has more than doubled, departures
		 * are overwritten before their ACKs arrive, and no RTT shows the growth. So
		 * departures are kept for twice an upper bound of the RTT instead.
		 */
		if (age_ns > READ_ONCE(ts->flow->keep_ns))
			timely_flow_keep(ts->flow, min_t(s64, age_ns, U32_MAX));
		break;
	case TIMELY_DEPARTURE_UNKNOWN:
		break;
	}
}

/* Fill in the departure time of the segment that the ACK may complete.
 *
 * Normally, an ACK completes a segment that ends at the ACK. With SACK, an ACK may complete a
 * segment beyond snd_una, but only if the qdisc recorded the departure of a segment that ends with
 * the newest SACKed data.
 *
 * An ACK that ends within a segment counts if a segment's length was acknowledged without a
 * completion, or the length of two segments if segments have an odd number of packets: a receiver
 * that acknowledges every second packet then meets the end of every second segment.
 */
static void timely_departure(const struct sock *sk,
			     const struct rate_sample *rs, struct timely_ack *ack)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	bool within = after(ack->end_seq, ack->una) && !ack->sacked;
	u32 packets = ts->gso_segs;

	packets <<= packets & 1;
	if (!ack->new || (within && ack->una - ts->rtt.seq < packets * ack->mss))
		return;
	ack->scheduled_ns = tp->first_tx_mstamp * NSEC_PER_USEC;
	if (ts->flow)
		timely_look_up(ts, ack);
	if (within)
		timely_within_segment(sk, ack);
}

/* Fill in what is known about the ACK that TCP processes. */
static void timely_fill_ack(struct sock *sk, const struct timely_cfg *cfg,
			    const struct rate_sample *rs, struct timely_ack *ack)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	ack->now_ns = tp->tcp_clock_cache;
	ack->arrived_ns = 0;
	ack->sent_ns = 0;
	ack->unsure_ns = 0;
	ack->scheduled_ns = 0;
	ack->least_ns = 0;
	ack->source = TIMELY_RTT_tcp;
	ack->una = tp->snd_una;
	ack->end_seq = rs->last_end_seq;
	ack->delivered = tp->delivered;
	ack->mss = ts->mss;
	ack->segment_bytes = cfg->segment_bytes;
	ack->in_flight = rs->prior_in_flight;
	ack->acked = rs->acked_sacked;
	ack->ns_per_byte_q16 = cfg->ns_per_byte_q16;
	ack->tail_limit_ns = cfg->rate.t_high_ns;
	ack->new = rs->rtt_us >= 0;
	ack->skipped = false;
	ack->retransmitted = rs->is_retrans;
	ack->recovery = ts->ca_state >= TCP_CA_Recovery ||
			inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery;
	ack->delayed = rs->is_ack_delayed;
	ack->sacked = tp->sacked_out;
	timely_arrival(sk, ack);
	timely_departure(sk, rs, ack);
}

/* Handle an ACK: measure its RTT, and let the engine compute the rate. */
static void timely_measure(struct sock *sk, const struct timely_param_set *set,
			   const struct rate_sample *rs)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_cfg *cfg = timely_cfg(ts, set);
	u32 delivered = ts->rtt.delivered;
	struct timely_completion completion __uninitialized;
	struct timely_ack ack __uninitialized;
	enum timely_rtt_result result;
	bool waits_known;

	timely_fill_ack(sk, cfg, rs, &ack);
	result = timely_rtt_measure(&ts->rtt, &ack, &completion);
	timely_count_ack(sk, result);
	/* Results up to TIMELY_RTT_tcp say which time of arrival the RTT ends with. Higher results
	 * are reasons why the ACK gave no RTT.
	 */
	if (result <= TIMELY_RTT_tcp) {
		/* If the previous RTT ended with another kind of timestamp, the difference of the
		 * two RTTs is no gradient.
		 */
		if (ts->source != result)
			timely_rate_reseed(&ts->rate);
		ts->source = result;
		if (ts->flow)
			timely_flow_keep(ts->flow, completion.rtt_ns);
		waits_known = timely_exclude_ack_wait(sk, cfg, &ack, &completion);
		if (ts->path)
			timely_watch_path(sk, set, &completion, ack.unsure_ns,
					  timely_rtt_segment(&ack, completion.bytes));
		completion.may_rise = timely_may_rise(sk, cfg, rs, &completion,
						      tcp_sk(sk)->delivered - delivered);
		completion.app_limited = rs->is_app_limited;
		completion.opening_bytes = timely_opening_bytes(sk);
		completion.ingress_q16 = 0;
		completion.both_ways = false;
		if (ts->path && cfg->rate.rule == TIMELY_RULE_TARGET_DELAY && !waits_known)
			timely_fill_ingress(sk, &completion);
		completion.delivered_fp = timely_delivered_fp(sk, cfg, rs, completion.rtt_ns);
		if (unlikely(completion.rtt_ns > cfg->rate.t_high_ns))
			timely_count_cut(ts, TIMELY_CUT_QUEUE);
		if (timely_rtt_shows_probe(sk, set, &completion))
			timely_rate_probe(&ts->rate, &cfg->rate, &completion);
		else
			timely_update_rate(sk, cfg, &completion);
		timely_doubt_base(sk, &completion);
		timely_apply(sk, cfg);
		ts->completed_us = tcp_sk(sk)->tcp_mstamp;
	} else {
		completion.rtt_ns = 0;
		timely_count_rejected(ts, result);
		if (ack.recovery)
			timely_rate_reseed(&ts->rate);
		if (ack.recovery || result == TIMELY_RTT_delayed)
			timely_skip(ts, tcp_sk(sk));
	}
	trace_timely_rtt(sk, &ack, ts->hardware_ns, result, completion.rtt_ns,
			 timely_rate_Bps(&ts->rate));
}

/* ---- losses ---- */

/* Charge the losses since the last call to the account of tolerated losses. Return: whether these
 * losses are within the tolerated share of packets (loss_free_ppm).
 */
static bool timely_losses_are_free(const struct sock *sk, const struct timely_cfg *cfg)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!ts->flow)
		return false;
	if (!cfg->loss_share_q16) {
		ts->flow->path.loss.lost = tp->lost;
		return false;
	}
	return timely_loss_is_free(&ts->flow->path.loss, cfg->loss_share_q16, tp->lost,
				   tp->delivered);
}

/* Decrease the rate for losses, a timeout or an ECN echo, once per window. @reason is one of
 * TIMELY_CUT_*.
 */
static void timely_cut(struct sock *sk, const struct timely_cfg *cfg, u8 reason)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	ts->cut = 1;
	timely_count_cut(ts, reason);
	timely_rate_loss(&ts->rate, &cfg->rate);
	trace_timely_rate_set(sk, timely_rate_Bps(&ts->rate), reason);
	timely_apply(sk, cfg);
}

/* In recovery, TCP may detect further losses of the window after it has called timely_ssthresh().
 * Decrease the rate if these losses exceed the tolerated share and the rate has not been decreased
 * for this window. Losses of a window with a decrease are charged, too: later they would hide an
 * ECN echo.
 */
static void timely_count_losses(struct sock *sk, const struct timely_cfg *cfg)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (ts->flow && ts->flow->path.loss.lost != tcp_sk(sk)->lost &&
	    !timely_losses_are_free(sk, cfg) && !ts->cut)
		timely_cut(sk, cfg, TIMELY_CUT_LOSS);
}

/* The window in recovery. In the first round trip, TCP sends one packet for each packet delivered
 * (packet conservation). After that, the window grows by one packet for each packet delivered.
 */
static u32 timely_recovery_cwnd(struct sock *sk, const struct rate_sample *rs)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u8 state = inet_csk(sk)->icsk_ca_state;
	u32 arrived = tcp_packets_in_flight(tp) + rs->acked_sacked;
	u32 cwnd = tcp_snd_cwnd(tp);

	if (state == TCP_CA_Recovery && ts->ca_state != TCP_CA_Recovery) {
		ts->conserve = 1;
		ts->round_end = tp->delivered;
		return arrived;
	}
	if (!before(rs->prior_delivered, ts->round_end))
		ts->conserve = 0;
	cwnd = max_t(s32, cwnd - max(rs->losses, 0), 1);
	return ts->conserve ? max(cwnd, arrived) : cwnd + rs->acked_sacked;
}

/* Set the congestion window. At the start of a message the window grows by the packets delivered,
 * as in TCP's slow start: it doubles per round trip, which limits a message only if ACKs return
 * slowly. The rate alone would let a thousand connections that start within some ms overflow the
 * port.
 */
static void timely_set_cwnd(struct sock *sk, const struct rate_sample *rs)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = ts->cwnd_limit;

	if (inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery)
		cwnd = min(timely_recovery_cwnd(sk, rs), cwnd);
	else if (ts->rate.start_kb)
		cwnd = min(tcp_snd_cwnd(tp) + rs->acked_sacked, cwnd);
	tcp_snd_cwnd_set(tp, clamp_t(u32, cwnd, 1, tp->snd_cwnd_clamp));
}

/* ---- operations of the congestion control ---- */

/* Whether timely_init() has run. Before timely_init(), TCP may call other operations: for the SYN's
 * ACK, for a loss of the SYN, and for data in the SYN.
 */
static bool timely_has_begun(const struct timely_sock *ts)
{
	return ts->mss;
}

DEFINE_CONG_CONTROL(timely_cong_control)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_param_set *set;

	if (unlikely(!timely_has_begun(ts)))
		return;
	rcu_read_lock();
	set = timely_param_set(sk);
	if (unlikely(ts->generation != set->generation))
		timely_adopt(sk, set);
	timely_refresh_mss(sk);
	timely_measure(sk, set, rs);
	/* The peer answers again after a timeout, or another set of parameters counts senders. */
	if (unlikely(!ts->counted && tcp_sk(sk)->packets_out &&
		     timely_cfg(ts, set)->rate.share_fp))
		timely_count_sender(sk);
	if (unlikely(inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery))
		timely_count_losses(sk, timely_cfg(ts, set));
	rcu_read_unlock();
	timely_set_cwnd(sk, rs);
	/* The connection does not count as a sender any more if it has no data in flight, and has
	 * no data to send or no room in the receiver's window. Otherwise, a receiver that does not
	 * read would reserve a share of the link.
	 */
	if (ts->counted && !tcp_sk(sk)->packets_out &&
	    (tcp_write_queue_empty(sk) || tcp_sk(sk)->snd_wnd < ts->mss))
		timely_uncount_sender(sk);
	ts->ca_state = inet_csk(sk)->icsk_ca_state;
}

/* TCP calls this once per window with a loss or an ECN echo. Losses decrease the rate if they
 * exceed the tolerated share. If nothing is lost, TCP calls this for an ECN echo, which always
 * decreases the rate. There are other calls for which tp->lost has not grown:
 *
 * - A packet that is lost during a recovery, but sent after it began, is charged in that recovery
 *   and starts the next one.
 * - A tail loss probe has repaired the loss of the last packet, which TCP has never marked as lost.
 * - The qdisc has dropped a packet in this host.
 *
 * The last two are charged as one packet; a dropped packet is charged once more when TCP finds that
 * it is lost. If the connection uses ECN, they cannot be told from an ECN echo, and are taken for
 * one.
 *
 * Return: the present window, because timely_set_cwnd() computes the window from the rate.
 */
static u32 timely_ssthresh(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct timely_cfg *cfg;
	bool echo;

	if (unlikely(!timely_has_begun(ts)))
		goto out;
	rcu_read_lock();
	cfg = timely_cfg(ts, timely_param_set(sk));
	if (ts->flow) {
		ts->flow->path.undo_rate_fp = ts->rate.rate_fp;
		timely_quiet_reset(&ts->flow->path.quiet, tp->tcp_mstamp);
	}
	ts->cut = 0;
	echo = !ts->flow || (!tp->lost_out && ts->flow->path.loss.lost == tp->lost);
	if (echo && !tcp_ecn_mode_any(tp)) {
		if (ts->flow)
			ts->flow->path.loss.lost--;
		echo = false;
	}
	if (echo)
		timely_cut(sk, cfg, TIMELY_CUT_ECN);
	else if (!timely_losses_are_free(sk, cfg))
		timely_cut(sk, cfg, TIMELY_CUT_LOSS);
	rcu_read_unlock();
out:
	return max(tcp_snd_cwnd(tp), 2U);
}

/* TCP found that nothing was lost: restore the rate from before timely_ssthresh(). */
static u32 timely_undo_cwnd(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	if (unlikely(!timely_has_begun(ts)))
		return max(tcp_snd_cwnd(tcp_sk(sk)), tcp_sk(sk)->prior_cwnd);
	if (ts->flow)
		ts->rate.rate_fp = max(ts->rate.rate_fp, ts->flow->path.undo_rate_fp);
	trace_timely_rate_set(sk, timely_rate_Bps(&ts->rate), TIMELY_SET_UNDONE);
	rcu_read_lock();
	timely_apply(sk, timely_cfg(ts, timely_param_set(sk)));
	rcu_read_unlock();
	return max(tcp_snd_cwnd(tcp_sk(sk)), ts->cwnd_limit);
}

/* TCP sends the first packet after a time without packets in flight. A paced connection also has
 * such times between segments. So a new message starts only if the connection has never measured an
 * RTT, or if the application had no data for longer than t_high_ns. If no data were sent for more
 * than an RTO, the path may have changed, and the connection starts like a new one.
 */
static void timely_tx_start(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 idle_ns = timely_rate_age_ns(&ts->rate, tp->tcp_clock_cache);
	bool known = ts->rate.prev_rtt_ns;
	const struct timely_cfg *cfg;

	if (unlikely(!timely_has_begun(ts)))
		return;
	rcu_read_lock();
	cfg = timely_cfg(ts, timely_param_set(sk));
	if (!ts->counted && cfg->rate.share_fp && inet_csk(sk)->icsk_ca_state != TCP_CA_Loss)
		timely_count_sender(sk);
	if ((s32)(tcp_jiffies32 - tp->lsndtime) > (s32)inet_csk(sk)->icsk_rto &&
	    inet_csk(sk)->icsk_ca_state != TCP_CA_Loss) {
		timely_rate_restart(&ts->rate, &cfg->rate);
		known = false;
	}
	if ((!known || (tp->app_limited && idle_ns > cfg->rate.t_high_ns)) &&
	    inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery) {
		timely_rate_start(&ts->rate, &cfg->rate, timely_other_senders(sk));
		timely_start_message(sk, cfg, known);
	}
	rcu_read_unlock();
}

/* A timeout decreases the rate for a loss (loss_beta_ppm) once per window, even if losses are
 * within the tolerated share: the path may have changed. With the target-delay rule, the rate then
 * is below the first rate: connections that lost their first packets together time out together.
 *
 * TCP calls timely_ssthresh() before this function, which has decreased the rate if the packets in
 * flight, which TCP takes for lost, exceed the tolerated share. Then the timeout only counts as a
 * further cause. If the rate fell to the first rate here, too, a connection that was alone on a
 * link of 1 Gb/s would send 8 % less in the 0.6 s after an outage of 140 ms.
 */
static void timely_timeout(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_cfg *cfg;

	if (!timely_has_begun(ts))
		return;
	if (ts->cut) {
		timely_count_cut(ts, TIMELY_CUT_TIMEOUT);
		trace_timely_rate_set(sk, timely_rate_Bps(&ts->rate), TIMELY_CUT_TIMEOUT);
		return;
	}
	rcu_read_lock();
	cfg = timely_cfg(ts, timely_param_set(sk));
	if (cfg->rate.rule == TIMELY_RULE_TARGET_DELAY)
		timely_rate_restart(&ts->rate, &cfg->rate);
	timely_cut(sk, cfg, TIMELY_CUT_TIMEOUT);
	rcu_read_unlock();
}

/* TCP's congestion state becomes @state. TCP_CA_Loss may mean a timeout: adapt the timer and the
 * rate then. TCP calls timely_timeout() for the first of several timeouts only.
 */
static void timely_set_state(struct sock *sk, u8 state)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_param_set *set;
	const struct timely_cfg *cfg;

	if (state != TCP_CA_Loss)
		return;
	/* Until an ACK arrives, the connection needs no share of the link: its peer may be gone,
	 * and TCP tries for a quarter of an hour.
	 */
	if (ts->counted)
		timely_uncount_sender(sk);
	rcu_read_lock();
	set = timely_param_set(sk);
	cfg = timely_cfg(ts, set);
	timely_timer_loss(sk, set->params.linear_timeouts);
	/* A timer that is pending has not expired, see timely_timer_loss(). */
	if (!inet_csk(sk)->icsk_pending && timely_has_begun(ts) &&
	    (timely_window_timeout(sk, cfg) || timely_resume_slowly(sk, cfg))) {
		trace_timely_rate_set(sk, timely_rate_Bps(&ts->rate), TIMELY_CUT_TIMEOUT);
		timely_apply(sk, cfg);
	}
	rcu_read_unlock();
}

DEFINE_CWND_EVENTS(timely_cwnd_event, timely_tx_start, timely_timeout)

/* Return: the smallest segment, packets. Also limit the largest segment, with sk_gso_max_segs, to
 * ts->gso_segs: for RTTs below half a millisecond, tcp_tso_autosize() makes segments of 64 KB at
 * any rate. This is repeated for each segment because a new route may set sk_gso_max_segs again.
 */
static u32 timely_min_tso_segs(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	/* TCP may send data before timely_init(): again after a SYN with data, or a FIN. */
	if (unlikely(!timely_has_begun(ts)))
		return TIMELY_SEGMENT_PACKETS;
	timely_refresh_mss(sk);
	if (sk->sk_gso_max_segs > ts->gso_segs) {
		ts->gso_max_segs = sk->sk_gso_max_segs;
		sk->sk_gso_max_segs = ts->gso_segs;
	}
	return TIMELY_SEGMENT_PACKETS;
}

/* A socket starts to use the congestion control: TCP calls this when the connection is established,
 * or later if the congestion control of an established connection is changed.
 */
static void timely_init(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_param_set *set;
	const struct timely_cfg *cfg;

	memset(ts, 0, sizeof(*ts));
	timely_skip(ts, tcp_sk(sk));
	ts->ca_state = inet_csk(sk)->icsk_ca_state;
	ts->pacing_shift = READ_ONCE(sk->sk_pacing_shift);
	ts->mss = timely_mss(sk);
	ts->flow = timely_flow_open(sk);
	if (ts->flow)
		timely_path_state_init(&ts->flow->path, tcp_sk(sk));
	timely_want_driver_tstamps(ts, true);
	rcu_read_lock();
	set = timely_param_set(sk);
	timely_adopt(sk, set);
	if (ts->path)
		timely_first_base(sk, set);
	cfg = timely_cfg(ts, set);
	timely_rate_init(&ts->rate, &cfg->rate);
	/* The first message sets the window when it starts: timely_tx_start(). */
	trace_timely_rate_set(sk, timely_rate_Bps(&ts->rate), TIMELY_SET_START);
	timely_apply(sk, cfg);
	rcu_read_unlock();
	/* Without the qdisc fq or timely, TCP paces internally. */
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void timely_release(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	/* timely_init() did not run: the connection was never established. */
	if (!timely_has_begun(ts))
		return;
	if (ts->counted)
		timely_uncount_sender(sk);
	timely_want_driver_tstamps(ts, false);
	if (ts->flow) {
		timely_link_put(ts->flow->path.link);
		ts->flow->path.link = NULL;
		timely_flow_close(ts->flow);
	}
	if (ts->gso_max_segs && sk->sk_gso_max_segs == ts->gso_segs)
		sk->sk_gso_max_segs = ts->gso_max_segs;
	sk_pacing_shift_update(sk, ts->pacing_shift);
}

/* Answer a request of inet_diag, for `ss -ti`. inet_diag has no attribute for this congestion
 * control. The attribute of TCP Vegas has the last RTT, without the time that packets wait in the
 * host, which TCP's own RTT includes. `ss -ti` computes `send` with it, the window divided by the
 * RTT.
 */
static size_t timely_get_info(struct sock *sk, u32 ext, int *attr, union tcp_cc_info *info)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u32 rtt_ns = READ_ONCE(ts->rate.prev_rtt_ns);

	if (!(ext & (1 << (INET_DIAG_VEGASINFO - 1))))
		return 0;
	memset(&info->vegas, 0, sizeof(info->vegas));
	info->vegas.tcpv_enabled = 1;
	info->vegas.tcpv_rtt = rtt_ns ? max(rtt_ns / (u32)NSEC_PER_USEC, 1U) : 0;
	info->vegas.tcpv_minrtt = tcp_min_rtt(tcp_sk(sk));
	*attr = INET_DIAG_VEGASINFO;
	return sizeof(info->vegas);
}

#define TIMELY_OPS(text)					\
	{							\
		.name		= text,				\
		.owner		= THIS_MODULE,			\
		.init		= timely_init,			\
		.release	= timely_release,		\
		.cong_control	= timely_cong_control,		\
		.ssthresh	= timely_ssthresh,		\
		.undo_cwnd	= timely_undo_cwnd,		\
		.set_state	= timely_set_state,		\
		.min_tso_segs	= timely_min_tso_segs,		\
		.get_info	= timely_get_info,		\
		CWND_EVENTS(timely_cwnd_event),			\
	}

struct tcp_congestion_ops timely_ops[TIMELY_CC_COUNT] __read_mostly = {
	[TIMELY_CC_NET]		= TIMELY_OPS("timely"),
	[TIMELY_CC_PATCHED]	= TIMELY_OPS("timely_patched"),
	[TIMELY_CC_PAPER]	= TIMELY_OPS("timely_paper"),
	[TIMELY_CC_FAST]	= TIMELY_OPS("timely_fast"),
	[TIMELY_CC_SWIFT]	= TIMELY_OPS("timely_swift"),
	[TIMELY_CC_POWERTCP]	= TIMELY_OPS("timely_powertcp"),
};

/* ---- registration ---- */

/* Prepare the parameters of the congestion controls in timely_fixed_presets. */
static void __init timely_init_presets(void)
{
	u32 i;

	for (i = TIMELY_CC_NET + 1; i < TIMELY_CC_COUNT; i++)
		timely_param_set_init(&timely_fixed[i],
				      &timely_preset_find(timely_fixed_presets[i])->params, 0);
}

/* Unregister the first @count congestion controls. */
static void timely_unregister_first(u32 count)
{
	while (count--)
		tcp_unregister_congestion_control(&timely_ops[count]);
}

int __init timely_register_controls(void)
{
	u32 i;
	int err;

	BUILD_BUG_ON(sizeof(struct timely_sock) > ICSK_CA_PRIV_SIZE);

	timely_init_presets();
	for (i = 0; i < TIMELY_CC_COUNT; i++) {
		err = tcp_register_congestion_control(&timely_ops[i]);
		if (err) {
			timely_unregister_first(i);
			return err;
		}
	}
	return 0;
}

void timely_unregister_controls(void)
{
	timely_unregister_first(TIMELY_CC_COUNT);
}
