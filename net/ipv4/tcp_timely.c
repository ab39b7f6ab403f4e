// SPDX-License-Identifier: GPL-2.0
/*
 * TIMELY congestion control: pace each connection at a rate computed from the
 * gradient of its RTTs.
 *
 * This file is the door between TCP and the engines in net/timely/:
 *
 *	ACK -> RTT measurement engine -> rate computation engine -> sk_pacing_rate
 *
 * TIMELY is a rate, not a window. sk_pacing_rate carries it and fq, or TCP's
 * own pacing, enforces it. The window is only the paper's static limit on
 * outstanding data (section 3.3), so that a flow whose ACKs stop coming stops
 * too; it does not bind while RTTs are below t_high_ns.
 *
 * TCP tells its congestion control of an ACK, but not of the packet that brought
 * it, which has the NIC's stamp. The tracepoint tcp_probe sees each packet of an
 * established connection, with the socket locked, before it is processed, be it
 * from the backlog: there its stamps are noted.
 *
 * Notable differences from the paper:
 *  - RTTs begin when the qdisc "timely" handed the segment to the device; under
 *    another qdisc at its scheduled departure, in microseconds. They end with the
 *    NIC's stamp of the ACK where it has one and its clock is known, else when the
 *    driver passed the ACK on; on half-closed connections when TCP processed it.
 *  - A decrease puts queued segments back (section 5) under the qdisc "timely"
 *    only; elsewhere segments already given to the qdisc leave at their old
 *    time. They are few, see timely_pacing_shift().
 *  - Loss and ECN echo halve the rate once a window; the paper is silent.
 */

#include <linux/log2.h>
#include <linux/module.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <net/busy_poll.h>
#include <net/tcp.h>

#include <net/timely.h>
#include <net/timely_counters.h>
#include <net/timely_flow.h>
#include <net/timely_nic.h>
#include <net/timely_rtt.h>
#include <net/timely_tracepoint.h>

#define CREATE_TRACE_POINTS
#include <trace/events/timely.h>

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

/* A packet does not wait longer for its socket; what says so is a wrong stamp. */
#define TIMELY_BACKLOG_MAX_NS	NSEC_PER_SEC

/* A longer interval counts as this one; up to it, a rate times the interval fits
 * 64 bits.
 */
#define TIMELY_INTERVAL_MAX_US	(USEC_PER_SEC - 1)

/**
 * struct timely_sock - state of one connection, in icsk_ca_priv
 * @rate: the rate engine's state
 * @flow: what is shared with the qdisc, NULL if there was no memory for it
 * @undo_rate_fp: rate before the last decrease for a loss
 * @hardware_ns: of the packet being processed: the NIC's stamp on the NIC's
 *	clock, 0 for none
 * @driver_ns: and the kernel's, taken when the driver passed the packet on;
 *	CLOCK_REALTIME, 0 for none
 * @napi_id: and the NAPI instance it came through, 0 if not known
 * @rtt: the RTT measurement engine's state
 * @completed_us: tp->tcp_mstamp at the last completion, low bits
 * @round_end: tp->delivered that ends the round of packet conservation
 * @mss_inv: 2^32 / @mss
 * @cwnd_limit: the window that limits outstanding data, packets
 * @mss: the MSS that @mss_inv stands for
 * @gso_max_segs: the socket's limit before it was lowered, 0 if it was not
 * @gso_segs: packets in a segment, the lowered limit
 * @pacing_shift: the socket's own, to be given back
 * @ca_state: TCP's state at the previous ACK
 * @departure: where the last departure was found
 * @source: what the last RTT ended with
 * @conserve: in the first round of recovery: send no more than arrives
 * @stamped: drivers' stamps are enabled for this socket
 */
struct timely_sock {
	struct timely_rate rate;
	struct timely_flow *flow;
	u64 undo_rate_fp;
	u64 hardware_ns;
	u64 driver_ns;
	u32 napi_id;
	struct timely_rtt rtt;
	u32 completed_us;
	u32 round_end;
	u32 mss_inv;
	u32 cwnd_limit;
	u16 mss;
	u16 gso_max_segs;
	u16 gso_segs;
	u8 pacing_shift;
	u8 ca_state;
	u8 departure;
	u8 source:2,
	   conserve:1,
	   stamped:1;
};

/* The module's parameters, ready for use; written once, at load. */
static struct {
	struct timely_rate_law law;
	u64 app_limited_q32;	/* share of the rate in use, of 10^6, Q32 */
	u64 horizon_q24;	/* seconds of data outstanding at most, Q24 */
	u32 ns_per_byte_q16;	/* of the NIC, 0 if not known */
	u32 segment_bytes;
	u32 segment_log2;	/* rounded up */
} timely __ro_after_init ____cacheline_aligned;

static struct timely_params timely_params;

/* Of the real clock, as last seen: written when it has been set. */
static struct {
	u64 offset_ns;	/* what it is ahead of CLOCK_MONOTONIC */
	u64 set_ns;	/* when that was seen to change, CLOCK_MONOTONIC */
} timely_real;

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
	return min_t(u64, min_t(u64, bytes, U32_MAX) * ts->mss_inv >> 32, U16_MAX);
}

static void timely_refresh_mss(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u32 mss = clamp_t(u32, tcp_sk(sk)->mss_cache, 1, U16_MAX);

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
	u64 bytes = rate * timely.horizon_q24 >> 24;

	rate = min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate));
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, ULONG_MAX));
	if (ts->flow)
		timely_flow_rate(ts->flow, rate);
	sk_pacing_shift_update(sk, timely_pacing_shift(rate));
	ts->cwnd_limit = max_t(u32, timely_packets(ts, bytes) +
			       TIMELY_SLACK_SEGMENTS * ts->gso_segs,
			       TCP_INIT_CWND);
}

/* The paper's section 5: the rate rises only while more than 80 % of it is
 * used, be it the application, a buffer or the line that keeps it from more.
 *
 * TCP's rate sample tells how much was delivered over the last round trip, in
 * packets; those just completed, @bytes in all, @before of them delivered at the
 * last completion, tell how large they are. Where
 * the application paused that is not what it sends: then the time since the
 * last completion counts, with the pause.
 */
static bool timely_may_rise(const struct sock *sk,
			    const struct rate_sample *rs, u32 bytes, u32 before)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 packets = tp->delivered - before;
	u64 delivered = max(rs->delivered, 0);
	u64 interval_us = max(rs->interval_us, 0L);
	u64 needed;

	if (!timely.app_limited_q32)
		return true;
	if (rs->is_app_limited || !delivered || !interval_us) {
		delivered = packets;
		interval_us = (u32)tp->tcp_mstamp - ts->completed_us;
	}
	needed = timely_rate_Bps(&ts->rate) *
		 min_t(u64, interval_us, TIMELY_INTERVAL_MAX_US) >> 16;
	needed = needed * timely.app_limited_q32 >> 16;
	return delivered * bytes >= needed * packets;
}

/* ---- when an ACK arrived ---- */

/* Drivers stamp all packets or none, at some cost: while hardware stamps are in
 * use they are not asked to.
 */
static void timely_want_driver_stamps(struct timely_sock *ts, bool want)
{
	if (likely(ts->stamped == want))
		return;
	ts->stamped = want;
	if (want)
		net_enable_timestamp();
	else
		net_disable_timestamp();
}

/* Their clock is the real one, which can be set. What was stamped before it was
 * cannot be told on ours; nor is a stamp of long ago or of the future one.
 */
static u64 timely_driver_ns(u64 stamp_ns, u64 now_ns)
{
	u64 real_ns = ktime_to_ns(ktime_mono_to_real(0));
	u64 arrived_ns = stamp_ns - real_ns;

	if (unlikely(READ_ONCE(timely_real.offset_ns) != real_ns)) {
		WRITE_ONCE(timely_real.offset_ns, real_ns);
		WRITE_ONCE(timely_real.set_ns, now_ns);
	}
	if (now_ns - arrived_ns > TIMELY_BACKLOG_MAX_NS ||
	    arrived_ns < READ_ONCE(timely_real.set_ns))
		return 0;
	return arrived_ns;
}

static enum timely_rtt_result
timely_hardware_ns(const struct timely_sock *ts, struct timely_ack *ack)
{
	int verdict;

	rcu_read_lock();
	verdict = timely_nic_arrival(ts->napi_id, ts->hardware_ns, ack->now_ns,
				     &ack->arrived_ns, &ack->ns_per_byte_q16);
	rcu_read_unlock();
	switch (verdict) {
	case TIMELY_STAMP_GOOD:
		return TIMELY_RTT_hardware;
	case TIMELY_STAMP_DOUBTFUL:
		return TIMELY_RTT_doubtful;
	case TIMELY_STAMP_UNSURE:
		return TIMELY_RTT_clock_unsure;
	default:
		return TIMELY_RTT_nic_unknown;
	}
}

/* Fill in when @ack arrived, and by what stamp. */
static void timely_arrival(struct sock *sk, struct timely_ack *ack)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	/* The tracepoint is passed by established connections only. */
	if (sk->sk_state != TCP_ESTABLISHED)
		return;
	if (ts->hardware_ns) {
		ack->source = timely_hardware_ns(ts, ack);
		if (ack->source == TIMELY_RTT_hardware ||
		    ack->source == TIMELY_RTT_doubtful) {
			timely_want_driver_stamps(ts, false);
			return;
		}
		timely_rtt_count(ack->source);
	}
	timely_want_driver_stamps(ts, true);
	ack->source = TIMELY_RTT_driver;
	if (ts->driver_ns)
		ack->arrived_ns = timely_driver_ns(ts->driver_ns, ack->now_ns);
}

/* ---- completions ---- */

/* What is acknowledged by now is no part of the next completion. */
static void timely_skip(struct timely_sock *ts, const struct tcp_sock *tp)
{
	ts->rtt.seq = tp->snd_una;
	ts->rtt.delivered = tp->delivered;
	ts->completed_us = tp->tcp_mstamp;
}

/* When did the segment leave that this ACK may finish? What SACK confirms is
 * one only if it is known to end there.
 */
static void timely_departure(const struct sock *sk,
			     const struct rate_sample *rs, struct timely_ack *ack)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct timely_departure departure;

	if (!ack->new || (after(ack->end_seq, ack->una) && !ack->sacked))
		return;
	ack->scheduled_ns = tp->first_tx_mstamp * NSEC_PER_USEC;
	if (!ts->flow ||
	    !timely_flow_departure(ts->flow, &ts->departure, ack->end_seq,
				   &departure))
		return;
	ack->sent_ns = departure.time_ns;
	ack->segment_bytes = departure.bytes;
}

static void timely_look(struct sock *sk, const struct rate_sample *rs,
			struct timely_ack *ack)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	ack->now_ns = tp->tcp_clock_cache;
	ack->arrived_ns = 0;
	ack->sent_ns = 0;
	ack->scheduled_ns = 0;
	ack->source = TIMELY_RTT_tcp;
	ack->una = tp->snd_una;
	ack->end_seq = rs->last_end_seq;
	ack->delivered = tp->delivered;
	ack->mss = ts->mss;
	ack->segment_bytes = timely.segment_bytes;
	ack->in_flight = rs->prior_in_flight;
	ack->acked = rs->acked_sacked;
	ack->ns_per_byte_q16 = timely.ns_per_byte_q16;
	ack->tail_limit_ns = timely.law.t_high_ns;
	ack->new = rs->rtt_us >= 0;
	ack->retransmitted = rs->is_retrans;
	ack->recovery = ts->ca_state >= TCP_CA_Recovery ||
			inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery;
	ack->delayed = rs->is_ack_delayed;
	ack->sacked = tp->sacked_out;
	timely_arrival(sk, ack);
	timely_departure(sk, rs, ack);
}

/* An ACK: measure its RTT and let the engine compute the rate. */
static void timely_measure(struct sock *sk, const struct rate_sample *rs)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u32 delivered = ts->rtt.delivered;
	struct timely_completion completion;
	enum timely_rtt_result result;
	struct timely_ack ack;

	timely_look(sk, rs, &ack);
	result = timely_rtt_measure(&ts->rtt, &ack, &completion);
	timely_rtt_count(result);
	if (result <= TIMELY_RTT_tcp) {
		/* It has no predecessor of its kind to be compared with. */
		if (ts->source != result)
			timely_rate_reseed(&ts->rate);
		ts->source = result;
		completion.may_rise = timely_may_rise(sk, rs, completion.bytes,
						      delivered);
		timely_rate_update(&ts->rate, &timely.law, &completion);
		timely_apply(sk);
		ts->completed_us = tcp_sk(sk)->tcp_mstamp;
	} else {
		completion.rtt_ns = 0;
		if (ack.recovery)
			timely_rate_reseed(&ts->rate);
		if (ack.recovery || result == TIMELY_RTT_delayed)
			timely_skip(ts, tcp_sk(sk));
	}
	trace_timely_rtt(sk, &ack, ts->hardware_ns, result, completion.rtt_ns,
			 timely_rate_Bps(&ts->rate));
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
	struct timely_sock *ts = inet_csk_ca(sk);

	timely_refresh_mss(sk);
	timely_measure(sk, rs);
	timely_set_cwnd(sk, rs);
	ts->ca_state = inet_csk(sk)->icsk_ca_state;
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
	timely_skip(ts, tcp_sk(sk));
	ts->ca_state = inet_csk(sk)->icsk_ca_state;
	timely_rate_init(&ts->rate, &timely.law);
	ts->pacing_shift = READ_ONCE(sk->sk_pacing_shift);
	timely_refresh_mss(sk);
	ts->flow = timely_flow_open(sk);
	timely_want_driver_stamps(ts, true);
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
	timely_want_driver_stamps(ts, false);
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

/* ---- the tracepoint ---- */

static struct tracepoint *timely_tracepoint;

static u32 timely_napi_id(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	/* Lower numbers name the CPU it was sent from. */
	if (skb->napi_id >= MIN_NAPI_ID)
		return skb->napi_id;
#endif
	return 0;
}

/* A packet of an established connection, of whatever congestion control, is
 * about to be processed.
 */
static void timely_probe(void *unused, struct sock *sk, const struct sk_buff *skb)
{
	struct timely_sock *ts;

	if (inet_csk(sk)->icsk_ca_ops != &timely_ops)
		return;
	ts = inet_csk_ca(sk);
	if (ts->flow)
		timely_flow_prefetch(ts->flow, ts->departure);
	ts->napi_id = timely_napi_id(skb);
	ts->driver_ns = ktime_to_ns(skb_tstamp(skb));
	ts->hardware_ns = ktime_to_ns(skb_shinfo(skb)->hwtstamps.hwtstamp);
	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP_NETDEV))
		ts->hardware_ns = timely_nic_stamp(skb, ts->napi_id);
}

/* Without it RTTs are TCP's own: worse, but no reason to do without them. */
static void timely_join_tracepoint(void)
{
	timely_tracepoint = timely_tracepoint_find("tcp_probe");
	if (timely_tracepoint &&
	    !tracepoint_probe_register(timely_tracepoint, timely_probe, NULL))
		return;
	timely_tracepoint = NULL;
	pr_warn("tcp_timely: this kernel has no tracepoint tcp_probe: RTTs end when TCP processes the ACK\n");
}

static void timely_leave_tracepoint(void)
{
	if (!timely_tracepoint)
		return;
	tracepoint_probe_unregister(timely_tracepoint, timely_probe, NULL);
	tracepoint_synchronize_unregister();
}

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
	timely.horizon_q24 = div_u64(2ULL * timely_params.t_high_ns << 24,
				     NSEC_PER_SEC);
	timely.app_limited_q32 = div_u64((u64)timely_params.app_limited_percent << 32,
					 100 * USEC_PER_SEC);
	if (timely_params.line_rate_kbps)
		timely.ns_per_byte_q16 = div_u64(8000000ULL << 16,
						 timely_params.line_rate_kbps);

	err = timely_flow_register(&timely_ops);
	if (err)
		return err;
	timely_join_tracepoint();
	err = tcp_register_congestion_control(&timely_ops);
	if (err) {
		timely_leave_tracepoint();
		timely_flow_unregister();
	}
	return err;
}

static void __exit timely_unregister(void)
{
	tcp_unregister_congestion_control(&timely_ops);
	timely_leave_tracepoint();
	timely_flow_unregister();
}

module_init(timely_register);
module_exit(timely_unregister);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TIMELY: RTT-based congestion control for the datacenter");
