// SPDX-License-Identifier: GPL-2.0
/*
 * TIMELY congestion control: pace each connection at a rate computed from the
 * gradient of its RTTs.
 *
 * This file is the door between TCP and the engines in net/timely/:
 *
 *	ACK -> is it a completion? -> RTT -> rate engine -> sk_pacing_rate
 *
 * TIMELY is a rate, not a window. sk_pacing_rate carries it and fq, or TCP's
 * own pacing, enforces it. The window is only the paper's static limit on
 * outstanding data (section 3.3), so that a flow whose ACKs stop coming stops
 * too; it does not bind while RTTs are below t_high_ns.
 *
 * What counts as a completion (section 3.1): an ACK that finishes a segment,
 * that is, one transmitted skb. A receiver acknowledges a 16 KB burst in
 * pieces, and the RTTs of the pieces rise with their place in the burst; fed
 * to the engine they would show a gradient that no queue has.
 *
 * Notable differences from the paper:
 *  - RTTs end when the ACK is processed, and are not from NIC timestamps. They
 *    begin when the qdisc "timely" handed the segment to the device; under
 *    another qdisc at its scheduled departure, in microseconds.
 *  - A decrease puts queued segments back (section 5) under the qdisc "timely"
 *    only; elsewhere segments already given to the qdisc leave at their old
 *    time. They are few, see timely_pacing_shift().
 *  - Loss and ECN echo halve the rate once a window; the paper is silent.
 */

#include <linux/log2.h>
#include <linux/module.h>
#include <net/tcp.h>

#include <net/timely.h>
#include <net/timely_flow.h>

/* A full window lets this many segments wait in the qdisc and the receiver,
 * beyond what the path holds.
 */
#define TIMELY_SLACK_SEGMENTS	3

/* TCP needs two packets in flight or delayed ACKs would set its pace. */
#define TIMELY_MIN_TSO_SEGS	2

/* TCP may have 2^-13 s of data, 122 us, or two segments, waiting in the qdisc,
 * instead of a millisecond: what waits there was stamped at an older rate, and
 * that delay in the control loop makes all flows swing together.
 */
#define TIMELY_PACING_SHIFT_MAX	13

/* A longer interval counts as this one; up to it, interval * app_limited_scale
 * fits 64 bits.
 */
#define TIMELY_INTERVAL_MAX_US	(USEC_PER_SEC - 1)

/**
 * struct timely_sock - state of one connection, in icsk_ca_priv
 * @rate: the rate engine's state
 * @flow: what is shared with the qdisc, NULL if there was no memory for it
 * @undo_rate_fp: rate before the last decrease for a loss
 * @completed_seq: everything before has been counted as completed
 * @completed_delivered: tp->delivered when @completed_seq was reached
 * @completed_us: tp->tcp_mstamp then, low bits
 * @round_end: tp->delivered that ends the round of packet conservation
 * @mss_inv: 2^32 / @mss
 * @cwnd_limit: the window that limits outstanding data, packets
 * @mss: the MSS that @mss_inv stands for
 * @gso_max_segs: the socket's limit before it was lowered, 0 if it was not
 * @gso_segs: packets in a segment, the lowered limit
 * @pacing_shift: the socket's own, to be given back
 * @ca_state: TCP's state at the previous ACK
 * @conserve: in the first round of recovery: send no more than arrives
 */
struct timely_sock {
	struct timely_rate rate;
	struct timely_flow *flow;
	u64 undo_rate_fp;
	u32 completed_seq;
	u32 completed_delivered;
	u32 completed_us;
	u32 round_end;
	u32 mss_inv;
	u32 cwnd_limit;
	u32 mss;
	u16 gso_max_segs;
	u16 gso_segs;
	u8 pacing_shift;
	u8 ca_state;
	u8 conserve;
};

/* The module's parameters, ready for use; written once, at load. */
static struct {
	struct timely_rate_law law;
	u64 app_limited_scale;	/* share of the rate in use, per us, Q64 */
	u64 horizon_q32;	/* seconds of data outstanding at most, Q32 */
	u32 ns_per_byte_q16;	/* of the NIC, 0 if not known */
	u32 segment_bytes;
	u32 segment_log2;	/* rounded up */
} timely __ro_after_init ____cacheline_aligned;

static struct timely_params timely_params;

/* ---- the parameters, as the module takes them ---- */

static char *preset = "linux";
module_param(preset, charp, 0444);
MODULE_PARM_DESC(preset, "parameters to start from: " TIMELY_PRESET_NAMES);

static struct timely_override {
	u32 value;
	bool given;
} timely_overrides[TIMELY_P_COUNT];

static int timely_param_set(const char *text, const struct kernel_param *kp)
{
	struct timely_override *override = kp->arg;
	const struct timely_param_desc *desc =
		&timely_param_descs[override - timely_overrides];
	u32 value;

	if (kstrtou32(text, 0, &value) || value < desc->min || value > desc->max) {
		pr_err("tcp_timely: %s=%s refused: allowed are %u to %u (%s)\n",
		       desc->name, text, desc->min, desc->max, desc->unit);
		return -EINVAL;
	}
	override->value = value;
	override->given = true;
	return 0;
}

static int timely_param_get(char *buffer, const struct kernel_param *kp)
{
	u32 index = (struct timely_override *)kp->arg - timely_overrides;

	return sysfs_emit(buffer, "%u\n",
			  *timely_param_ref(&timely_params, index));
}

static const struct kernel_param_ops timely_param_ops = {
	.set = timely_param_set,
	.get = timely_param_get,
};

#define TIMELY_MODULE_PARAM(field, unit, min, max, doc)			\
	module_param_cb(field, &timely_param_ops,			\
			&timely_overrides[TIMELY_P_##field], 0444);	\
	MODULE_PARM_DESC(field, doc " [" #min " to " #max " " unit "]");
TIMELY_PARAMS(TIMELY_MODULE_PARAM)

/* ---- from TCP to the engine ---- */

static u32 timely_packets(const struct timely_sock *ts, u64 bytes)
{
	return min_t(u64, mul_u64_u32_shr(bytes, ts->mss_inv, 32), U16_MAX);
}

static void timely_refresh_mss(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u32 mss = max_t(u32, tcp_sk(sk)->mss_cache, 1);

	if (likely(ts->mss == mss))
		return;
	ts->mss = mss;
	ts->mss_inv = min_t(u64, div_u64(1ULL << 32, mss), U32_MAX);
	ts->gso_segs = max_t(u32, timely_packets(ts, timely.segment_bytes),
			     TIMELY_MIN_TSO_SEGS);
}

/* At a low rate that much time is less than a segment. New data may wait in the
 * qdisc by the segment even so, but a retransmitted packet, which is small,
 * would be held back until the queue is empty, and new data keep it from that:
 * a segment's worth at least.
 */
static u32 timely_pacing_shift(u64 rate)
{
	int shift = fls64(rate) - 1 - (int)timely.segment_log2;

	return clamp(shift, 0, TIMELY_PACING_SHIFT_MAX);
}

/* Put the engine's rate into force. */
static void timely_apply(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u64 rate = timely_rate_Bps(&ts->rate);
	u64 bytes = mul_u64_u64_shr(rate, timely.horizon_q32, 32);

	rate = min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate));
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, ULONG_MAX));
	if (ts->flow)
		timely_flow_rate(ts->flow, rate);
	sk_pacing_shift_update(sk, timely_pacing_shift(rate));
	ts->cwnd_limit = max_t(u32, timely_packets(ts, bytes) +
			       TIMELY_SLACK_SEGMENTS * ts->gso_segs,
			       TCP_INIT_CWND);
}

/* Does this ACK finish a segment, and is its RTT the network's? */
static bool timely_is_completion(const struct sock *sk,
				 const struct rate_sample *rs)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (rs->rtt_us < 0 || after(rs->last_end_seq, tp->snd_una))
		return false;
	/* Karn; and in recovery an ACK may cover what was sent twice and
	 * falls back to the timestamp option, with milliseconds.
	 */
	if (rs->is_retrans || ts->ca_state >= TCP_CA_Recovery ||
	    inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery)
		return false;
	/* A packet alone in flight may wait for the receiver's delayed ACK
	 * timer, and TCP flags only those shorter than an MSS.
	 */
	if (rs->is_ack_delayed ||
	    (rs->prior_in_flight <= 1 &&
	     rs->rtt_us * NSEC_PER_USEC > timely.law.t_high_ns))
		return false;
	return true;
}

/* The paper's section 5: the rate rises only while more than 80 % of it is
 * used, be it the application, a buffer or the line that keeps it from more.
 *
 * TCP's rate sample tells how much was delivered over the last round trip, in
 * packets; those just completed, @bytes in all, tell how large they are. Where
 * the application paused that is not what it sends: then the time since the
 * last completion counts, with the pause.
 */
static bool timely_may_rise(const struct sock *sk,
			    const struct rate_sample *rs, u32 bytes)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 packets = tp->delivered - ts->completed_delivered;
	u64 delivered = max(rs->delivered, 0);
	u64 interval_us = max(rs->interval_us, 0L);
	u64 needed;

	if (!timely.app_limited_scale)
		return true;
	if (rs->is_app_limited || !delivered || !interval_us) {
		delivered = packets;
		interval_us = (u32)tp->tcp_mstamp - ts->completed_us;
	}
	needed = mul_u64_u64_shr(timely_rate_Bps(&ts->rate),
				 min_t(u64, interval_us, TIMELY_INTERVAL_MAX_US) *
				 timely.app_limited_scale, 64);
	return delivered * bytes >= needed * packets;
}

/* RTT = t_completion - t_send - segment / line_rate (paper, 3.1).
 *
 * The time in the qdisc is no part of it. TCP's RTT leaves out what was planned
 * of that time, the qdisc's record all of it.
 */
static u32 timely_rtt_ns(const struct sock *sk, const struct rate_sample *rs,
			 u32 bytes)
{
	u32 rtt_ns = min_t(u64, rs->rtt_us, U32_MAX / NSEC_PER_USEC) * NSEC_PER_USEC;
	struct timely_flow *flow = ((struct timely_sock *)inet_csk_ca(sk))->flow;
	u64 sent_ns = flow ? timely_flow_departure(flow, rs->last_end_seq) : 0;
	u32 segment = min(bytes, timely.segment_bytes);
	u32 serialisation_ns = ((u64)segment * timely.ns_per_byte_q16) >> 16;

	if (sent_ns)
		rtt_ns = min_t(u64, tcp_sk(sk)->tcp_clock_cache - sent_ns, U32_MAX);
	return rtt_ns - min(rtt_ns, serialisation_ns);
}

/* What is acknowledged by now is no part of the next completion. */
static void timely_close_segment(struct timely_sock *ts,
				 const struct tcp_sock *tp)
{
	ts->completed_seq = tp->snd_una;
	ts->completed_delivered = tp->delivered;
	ts->completed_us = tp->tcp_mstamp;
}

static void timely_complete(struct sock *sk, const struct rate_sample *rs)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 bytes = tp->snd_una - ts->completed_seq;
	struct timely_completion completion = {
		.now_ns = tp->tcp_mstamp * NSEC_PER_USEC,
		.rtt_ns = timely_rtt_ns(sk, rs, bytes),
		.bytes = bytes,
		.may_rise = timely_may_rise(sk, rs, bytes),
	};

	timely_rate_update(&ts->rate, &timely.law, &completion);
	timely_apply(sk);
}

/* In recovery: packet conservation for a round trip, then one packet more for
 * each that arrives.
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

static void timely_set_cwnd(struct sock *sk, const struct rate_sample *rs)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = ts->cwnd_limit;

	if (inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery)
		cwnd = min(timely_recovery_cwnd(sk, rs), cwnd);
	tcp_snd_cwnd_set(tp, clamp_t(u32, cwnd, 1, tp->snd_cwnd_clamp));
}

/* ---- TCP's hooks ---- */

DEFINE_CONG_CONTROL(timely_cong_control)
{
	u8 state = inet_csk(sk)->icsk_ca_state;
	struct timely_sock *ts = inet_csk_ca(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	timely_refresh_mss(sk);
	if (timely_is_completion(sk, rs)) {
		timely_complete(sk, rs);
		timely_close_segment(ts, tp);
	} else if (state >= TCP_CA_Recovery || ts->ca_state >= TCP_CA_Recovery) {
		timely_rate_reseed(&ts->rate);
		timely_close_segment(ts, tp);
	}
	timely_set_cwnd(sk, rs);
	ts->ca_state = state;
}

/* Called once for each window with a loss or an ECN echo. */
static u32 timely_ssthresh(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	ts->undo_rate_fp = ts->rate.rate_fp;
	timely_rate_lose(&ts->rate, &timely.law);
	timely_apply(sk);
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

/* The loss was none. */
static u32 timely_undo_cwnd(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	ts->rate.rate_fp = max(ts->rate.rate_fp, ts->undo_rate_fp);
	timely_apply(sk);
	return max(tcp_snd_cwnd(tcp_sk(sk)), ts->cwnd_limit);
}

/* The first packet after a time with none in flight. A paced flow has such
 * times between segments, so only an application's pause counts: the next RTT
 * then has no predecessor to be compared with.
 */
static void timely_tx_start(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 idle_ns = tp->tcp_mstamp * NSEC_PER_USEC - ts->rate.updated_ns;

	if ((s32)(tcp_jiffies32 - tp->lsndtime) >
	    (s32)inet_csk(sk)->icsk_rto) {
		timely_rate_restart(&ts->rate, &timely.law);
		timely_apply(sk);
	} else if (tp->app_limited && idle_ns > timely.law.t_high_ns) {
		timely_rate_reseed(&ts->rate);
	}
}

DEFINE_TX_START_EVENT(timely_cwnd_event, timely_tx_start)

/* Segments of the configured size, not of TCP's choice: for an RTT below half
 * a millisecond tcp_tso_autosize() would make 64 KB bursts at any rate. The
 * route's limit may come back with a new route, hence here, for each segment.
 */
static u32 timely_min_tso_segs(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	timely_refresh_mss(sk);
	if (sk->sk_gso_max_segs > ts->gso_segs) {
		ts->gso_max_segs = sk->sk_gso_max_segs;
		sk->sk_gso_max_segs = ts->gso_segs;
	}
	return TIMELY_MIN_TSO_SEGS;
}

static void timely_init(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	memset(ts, 0, sizeof(*ts));
	timely_close_segment(ts, tcp_sk(sk));
	ts->ca_state = inet_csk(sk)->icsk_ca_state;
	timely_rate_init(&ts->rate, &timely.law);
	ts->pacing_shift = READ_ONCE(sk->sk_pacing_shift);
	timely_refresh_mss(sk);
	ts->flow = timely_flow_open(sk);
	timely_apply(sk);
	/* Without fq, TCP paces by itself. */
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void timely_release(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	/* Released without init: chosen and left again before connecting. */
	if (!ts->mss)
		return;
	if (ts->flow)
		timely_flow_close(ts->flow);
	if (ts->gso_max_segs && sk->sk_gso_max_segs == ts->gso_segs)
		sk->sk_gso_max_segs = ts->gso_max_segs;
	sk_pacing_shift_update(sk, ts->pacing_shift);
}

static struct tcp_congestion_ops timely_ops __read_mostly = {
	.name		= "timely",
	.owner		= THIS_MODULE,
	.init		= timely_init,
	.release	= timely_release,
	.cong_control	= timely_cong_control,
	.ssthresh	= timely_ssthresh,
	.undo_cwnd	= timely_undo_cwnd,
	.min_tso_segs	= timely_min_tso_segs,
	TX_START_EVENT(timely_cwnd_event),
};

/* ---- loading ---- */

static int __init timely_load_params(void)
{
	const struct timely_preset *start = timely_preset_find(preset);
	const struct timely_param_desc *desc;
	u32 i;
	int err;

	if (!start) {
		pr_err("tcp_timely: preset=%s refused: allowed are " TIMELY_PRESET_NAMES "\n",
		       preset);
		return -EINVAL;
	}
	timely_params = start->params;
	for (i = 0; i < TIMELY_P_COUNT; i++)
		if (timely_overrides[i].given)
			*timely_param_ref(&timely_params, i) =
				timely_overrides[i].value;

	err = timely_params_check(&timely_params, &i);
	if (!err)
		return 0;
	desc = &timely_param_descs[i];
	pr_err("tcp_timely: %s=%u refused: it must not be above %s=%u\n",
	       desc->name, *timely_param_ref(&timely_params, i),
	       i == TIMELY_P_t_low_ns ? "t_high_ns" : "max_rate_kbps",
	       i == TIMELY_P_t_low_ns ? timely_params.t_high_ns :
					timely_params.max_rate_kbps);
	return err;
}

static int __init timely_register(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct timely_sock) > ICSK_CA_PRIV_SIZE);

	err = timely_load_params();
	if (err)
		return err;

	timely_rate_law_init(&timely.law, &timely_params);
	timely.segment_bytes = timely_params.segment_bytes;
	timely.segment_log2 = order_base_2(timely.segment_bytes);
	timely.horizon_q32 = div_u64(2ULL * timely_params.t_high_ns << 32,
				     NSEC_PER_SEC);
	timely.app_limited_scale = div_u64(U64_MAX, 100 * USEC_PER_SEC) *
				   timely_params.app_limited_percent;
	if (timely_params.line_rate_kbps)
		timely.ns_per_byte_q16 = div_u64(8000000ULL << 16,
						 timely_params.line_rate_kbps);

	err = timely_flow_register(&timely_ops);
	if (err)
		return err;
	err = tcp_register_congestion_control(&timely_ops);
	if (err)
		timely_flow_unregister();
	return err;
}

static void __exit timely_unregister(void)
{
	tcp_unregister_congestion_control(&timely_ops);
	timely_flow_unregister();
}

module_init(timely_register);
module_exit(timely_unregister);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TIMELY: RTT-based congestion control for the datacenter");
