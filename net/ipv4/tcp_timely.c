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
 *  - Losses beyond a share of the packets, a timeout and ECN echo halve the rate
 *    once a window; the paper is silent.
 *  - The retransmission timer is TCP's, but for a random part at the first back-off and,
 *    on request (linear_timeouts), a number of timeouts that do not double it.
 */

#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/seqlock.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <net/busy_poll.h>
#include <net/tcp.h>

#include <net/timely_counters.h>
#include <net/timely_flow.h>
#include <net/timely_law.h>
#include <net/timely_link.h>
#include <net/timely_nic.h>
#include <net/timely_path.h>
#include <net/timely_tracepoint.h>
#include <trace/events/tcp.h>
#include <timely/engine/rate.h>
#include <timely/engine/real.h>
#include <timely/engine/rtt.h>
#include <timely/engine/steer.h>
#include <timely/engine/tune.h>

#include <timely_probe.h>

#include "tcp_timely.h"

#define CREATE_TRACE_POINTS
#include <trace/events/timely.h>

/* A full window lets this many segments wait in the qdisc and the receiver,
 * beyond what the path holds.
 */
#define TIMELY_SLACK_SEGMENTS	3

/* And so many where a message begins, beyond what the path holds without a queue: until
 * it is heard of, nobody knows of one.
 */
#define TIMELY_BEGIN_SEGMENTS	2

/* TCP may have 2^-13 s of data, 122 us, or two segments, waiting in the qdisc,
 * instead of a millisecond: what waits there was stamped at an older rate, and
 * that delay in the control loop makes all flows swing together.
 */
#define TIMELY_PACING_SHIFT_MAX	13

/* Drivers' stamps that are not needed are given back at one ACK of so many. */
#define TIMELY_STAMPS_KEPT	64

/* The first back-off makes the timer longer by up to 2^-2 of it, at random. */
#define TIMELY_SPREAD_SHIFT	2

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
 * @gso_most: and in the largest that the law allows
 * @generation: the setting's that was adopted, not another's within 65536 changes
 * @pacing_shift: the socket's own, to be given back
 * @ca_state: TCP's state at the previous ACK
 * @departure: where the last departure was found
 * @source: what the last RTT ended with
 * @conserve: in the first round of recovery: send no more than arrives
 * @stamped: drivers' stamps are enabled for this socket
 * @own: it obeys a law of its own, made for its path, in @flow
 * @counted: it is one of those that send, see timely_count()
 * @cut: losses of this window have been answered
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
	u8 gso_segs;
	u8 gso_most;
	u16 generation;
	u8 pacing_shift;
	u8 ca_state;
	u8 departure;
	u8 source:2,
	   conserve:1,
	   stamped:1,
	   own:1,
	   counted:1,
	   cut:1;
};

/* ---- the parameters in force ---- */

/* The congestion controls: the first obeys the namespace's parameters, the others
 * are presets as they stand, for a socket or a route.
 */
enum {
	TIMELY_CC_NET,
	TIMELY_CC_PATCHED,
	TIMELY_CC_PAPER,
	TIMELY_CC_FAST,
	TIMELY_CC_COUNT
};

static struct tcp_congestion_ops timely_ops[TIMELY_CC_COUNT];

static const char * const timely_fixed_presets[TIMELY_CC_COUNT] = {
	[TIMELY_CC_PATCHED]	= "patched",
	[TIMELY_CC_PAPER]	= "paper",
	[TIMELY_CC_FAST]	= "fast",
};

static struct timely_setting timely_fixed[TIMELY_CC_COUNT] __ro_after_init;

/* What a connection is to obey. Under RCU. */
static const struct timely_setting *timely_setting(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;

	if (likely(ops == &timely_ops[TIMELY_CC_NET]))
		return timely_net_setting(sk);
	return &timely_fixed[ops - timely_ops];
}

/* And what that comes to, for its path. */
static const struct timely_law *timely_law(const struct timely_sock *ts,
					   const struct timely_setting *setting)
{
	return ts->own ? &ts->flow->own.law : &setting->law;
}

static u32 timely_packets(const struct timely_sock *ts, u64 bytes)
{
	return min_t(u64, min_t(u64, bytes, U32_MAX) * ts->mss_inv >> 32, U16_MAX);
}

/* How many packets are a segment, at a rate in bytes per second. The limit that was
 * ours makes room for another.
 */
static void timely_set_segment(struct sock *sk, const struct timely_law *law, u64 rate)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u32 packets = ts->gso_most;

	if (law->segment_derived)
		packets = timely_segment_packets(timely_packets(ts, rate >> TIMELY_SEGMENT_SHIFT),
						 packets);
	if (likely(packets == ts->gso_segs))
		return;
	if (ts->gso_max_segs && sk->sk_gso_max_segs == ts->gso_segs)
		sk->sk_gso_max_segs = ts->gso_max_segs;
	ts->gso_segs = packets;
}

static void timely_set_mss(struct sock *sk, const struct timely_law *law, u32 mss)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	ts->mss = mss;
	/* Up, or whole numbers of packets would come out as one less. */
	ts->mss_inv = min_t(u64, div_u64((1ULL << 32) + mss - 1, mss), U32_MAX);
	ts->gso_most = clamp_t(u32, timely_packets(ts, law->segment_bytes),
			       TIMELY_SEGMENT_PACKETS, U8_MAX);
	timely_set_segment(sk, law, timely_rate_Bps(&ts->rate));
}

/* ---- those that send ---- */

/* Connections are counted for the line that they leave by, in whatever namespace they are;
 * where that is not known, for their namespace. Some of the kernel's own sockets do not
 * hold their namespace, and might be taken off after it; the first one stays.
 */
static atomic_t *timely_counter(const struct sock *sk)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (ts->flow && ts->flow->own.link)
		return &ts->flow->own.link->senders;
	if (!sk->sk_net_refcnt && !net_eq(sock_net(sk), &init_net))
		return NULL;
	return timely_senders(sk);
}

/* From now on the connection has something to send. */
static void timely_count(struct sock *sk, const struct timely_law *law)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	atomic_t *counter;

	if (ts->counted || !law->rate.share_fp)
		return;
	counter = timely_counter(sk);
	if (!counter)
		return;
	ts->counted = 1;
	atomic_inc(counter);
}

/* How many other connections have something to send on the line? For a connection that is
 * not counted itself, as many as leave it a new flow's rate.
 */
static u32 timely_others(const struct sock *sk)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	return ts->counted ? atomic_read(timely_counter(sk)) - 1 : TIMELY_FIRST_SHARE - 2;
}

static void timely_discount(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	if (!ts->counted)
		return;
	ts->counted = 0;
	atomic_dec(timely_counter(sk));
}

/* The connection leaves by another line than before; NULL: by one that is not known. */
static void timely_set_link(struct sock *sk, struct timely_link *link)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_own *own = &ts->flow->own;
	bool counted = ts->counted;
	atomic_t *counter;

	if (own->link == link)
		return;
	timely_discount(sk);
	timely_link_put(own->link);
	own->link = timely_link_get(link);
	counter = counted ? timely_counter(sk) : NULL;
	if (counter) {
		ts->counted = 1;
		atomic_inc(counter);
	}
}

/* Which line does the connection leave by, and how fast is it? Looked for at the beginning,
 * when the device or any line has changed, and each TIMELY_LINK_LOOK.
 */
static void timely_find_line(struct sock *sk)
{
	struct timely_own *own = &((struct timely_sock *)inet_csk_ca(sk))->flow->own;
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 epoch = READ_ONCE(timely_link_epoch);
	const struct net_device *dev = own->link_dev;
	bool same = own->link_epoch == epoch;
	struct timely_link *link;

	own->link_epoch = epoch;
	/* A connection without a route looks when it has one again. */
	own->link_dev = dst ? dst->dev : NULL;
	if (!dst || (dev == dst->dev && same &&
		     time_before(jiffies, own->link_jiffies + TIMELY_LINK_LOOK)))
		return;
	own->link_jiffies = jiffies;
	link = timely_link_of(dst->dev, &own->link_kbps, &own->link_beyond);
	timely_set_link(sk, link);
}

/* ---- the connection's own law ---- */

static enum timely_lateness timely_lateness(const struct sock *sk)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (!timely_flow_is_late(ts->flow))
		return TIMELY_ON_TIME;
	return READ_ONCE(sk->sk_pacing_status) == SK_PACING_FQ ? TIMELY_LATE_BY_SLACK :
								 TIMELY_LATE;
}

/* Derive the connection's own law from what is known of its path. */
static void timely_tune_own(struct sock *sk, const struct timely_setting *setting)
{
	struct timely_flow *flow = ((struct timely_sock *)inet_csk_ca(sk))->flow;
	struct timely_params params = setting->params;
	struct timely_own *own = &flow->own;
	struct timely_path path;

	timely_find_line(sk);
	own->late = timely_lateness(sk);
	path = (struct timely_path) {
		.base_rtt_ns = own->base_rtt_ns,
		.noise_ns = own->noise_ns,
		.line_kbps = own->link_beyond ? 0 : own->link_kbps,
		.likely_kbps = own->link_kbps,
		.mss = tcp_sk(sk)->mss_cache,
		.late = own->late,
	};
	timely_tune(&params, &path);
	trace_timely_derived(sk, &params, own->late, own->apart);
	if (own->law.segment_bytes != params.segment_bytes)
		own->whole_bytes = params.segment_bytes;
	timely_law_init(&own->law, &params, &setting->params);
	own->law.rate.lags = own->late;
	if (setting->params.min_rtt_ns == TIMELY_AUTO)
		timely_drain_set(&own->drain, params.min_rtt_ns);
	else
		timely_drain_init(&own->drain, tcp_sk(sk)->tcp_clock_cache);
}

/* Is the path's noise another? A law is good for one that differs by an eighth. */
static bool timely_set_noise(struct timely_own *own, u32 noise_ns)
{
	u32 before_ns = own->noise_ns;

	if (max(noise_ns, before_ns) - min(noise_ns, before_ns) <= before_ns / 8)
		return false;
	own->noise_ns = noise_ns;
	return true;
}

/* Tell other connections on the path of the least round trip of a whole segment since the
 * last time, TIMELY_PATH_ASK for none, and hear theirs. Is the path's noise another?
 */
static bool timely_share_base(struct sock *sk, u64 now_ns, u32 rtt_ns)
{
	struct timely_own *own = &((struct timely_sock *)inet_csk_ca(sk))->flow->own;
	u32 segment_ns = own->law.ns_per_byte_q16 ? 0 : timely_first_base_ns(0, own->whole_bytes);
	struct timely_path_news news;

	if (rtt_ns != TIMELY_PATH_ASK) {
		rtt_ns -= min(rtt_ns - 1, segment_ns);
		own->untold_ns = TIMELY_PATH_ASK;
		own->told_ns = now_ns;
	}
	timely_path_tell(sk, now_ns, rtt_ns, &news);
	own->apart = news.apart;
	own->shared_ns = min_t(u64, (u64)news.base_ns + segment_ns, U32_MAX);
	if (own->doubt_ns && now_ns - own->doubt_ns < 2 * TIMELY_BASE_HALF_NS)
		own->shared_ns = U32_MAX;
	return timely_set_noise(own, news.noise_ns);
}

/* A law is good for round trips that differ by an eighth from what it was made for. */
static void timely_set_base(struct timely_own *own, u32 base_rtt_ns)
{
	own->base_rtt_ns = base_rtt_ns;
	own->base_low_ns = base_rtt_ns - base_rtt_ns / 8;
}

static bool timely_is_near_base(const struct timely_own *own, u64 base_ns)
{
	u32 low_ns = own->base_low_ns;

	return base_ns - low_ns <= low_ns / 4 + low_ns / 32;
}

/* Another setting is in force than at the last ACK, or this is the first. */
static void timely_adopt(struct sock *sk, const struct timely_setting *setting)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	ts->generation = setting->generation;
	ts->own = setting->is_auto && ts->flow;
	if (ts->own)
		timely_tune_own(sk, setting);
	timely_set_mss(sk, timely_law(ts, setting), ts->mss);
}

/* Is the path so much longer that what cut the rate was no queue? The floor does not know before
 * a half is over.
 */
static bool timely_is_longer(struct timely_own *own, u64 base_ns)
{
	u32 before_ns = own->doubted_ns ?: own->base_rtt_ns;

	if (!own->drain.length_ns || own->floor.before == U64_MAX)
		return false;
	own->doubted_ns = 0;
	return base_ns / 2 > before_ns;
}

/* A round trip was measured: is the path still what the law was made for? */
static void timely_watch_path(struct sock *sk, const struct timely_setting *setting,
			      const struct timely_completion *completion,
			      u32 segment_bytes)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_own *own = &ts->flow->own;
	u32 rtt_ns = max(completion->rtt_ns, 1U);
	u64 half_ns = own->floor.half_ns;
	u64 least_ns, base_ns;
	bool same, longer;

	/* Where a segment's time on the line cannot be taken off, it is in the RTT, and
	 * only those of segments of the same size have the same base. If none comes, the
	 * qdisc lets segments go in pieces.
	 */
	if (!own->law.ns_per_byte_q16 && segment_bytes < own->whole_bytes &&
	    completion->now_ns - half_ns < 2 * TIMELY_BASE_HALF_NS)
		return;
	own->whole_bytes = min(segment_bytes, own->law.segment_bytes);
	least_ns = timely_floor_add(&own->floor, completion->now_ns, TIMELY_BASE_HALF_NS,
				    rtt_ns);
	base_ns = min_t(u64, least_ns, own->shared_ns);
	own->untold_ns = min(own->untold_ns, rtt_ns);

	/* A route may lead to another device: look once in a while. */
	same = own->link_epoch == READ_ONCE(timely_link_epoch) &&
	       own->late == timely_lateness(sk) && own->floor.half_ns == half_ns;
	if (likely(same && timely_is_near_base(own, base_ns) &&
		   completion->now_ns - own->told_ns < TIMELY_DRAIN_PERIOD_NS))
		return;
	same &= !timely_share_base(sk, completion->now_ns, own->untold_ns);
	base_ns = min_t(u64, least_ns, own->shared_ns);
	longer = timely_is_longer(own, base_ns);
	if (same && !longer && base_ns == own->base_rtt_ns)
		return;
	timely_set_base(own, base_ns);
	timely_tune_own(sk, setting);
	timely_set_mss(sk, &own->law, ts->mss);
	if (longer && ts->rate.rate_fp < own->law.rate.first_rate_fp)
		timely_rate_restart(&ts->rate, &own->law.rate);
}

/* ---- from TCP to the engine ---- */

static u32 timely_mss(const struct sock *sk)
{
	return clamp_t(u32, tcp_sk(sk)->mss_cache, 1, U16_MAX);
}

static void timely_refresh_mss(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_setting *setting;
	u32 mss = timely_mss(sk);

	if (likely(ts->mss == mss))
		return;
	rcu_read_lock();
	setting = timely_setting(sk);
	if (ts->own)
		timely_tune_own(sk, setting);
	timely_set_mss(sk, timely_law(ts, setting), mss);
	rcu_read_unlock();
}

/* At a low rate that much time is less than a segment. New data may wait in the
 * qdisc by the segment even so, but a retransmitted packet, which is small,
 * would be held back until the queue is empty, and new data keep it from that:
 * a segment's worth at least.
 */
static u32 timely_pacing_shift(const struct timely_law *law, u64 rate)
{
	int shift = fls64(rate) - 1 - (int)law->segment_log2;

	return clamp(shift, 0, TIMELY_PACING_SHIFT_MAX);
}

/* For tests only: hosts in one kernel share its real-time clock. The clock of a network
 * namespace is ahead by test_drain_offset_ns times the remainder of its cookie by
 * test_drain_clocks.
 */
static unsigned long long test_drain_offset_ns;
module_param(test_drain_offset_ns, ullong, 0644);
MODULE_PARM_DESC(test_drain_offset_ns,
		 "for tests: how far the clocks that drains go by are apart [ns]");

static unsigned int test_drain_clocks = 2;
module_param(test_drain_clocks, uint, 0644);
MODULE_PARM_DESC(test_drain_clocks,
		 "for tests: how many such clocks the network namespaces have, in turns");

static u64 timely_test_offset_ns(const struct sock *sk)
{
	u64 offset_ns = READ_ONCE(test_drain_offset_ns);

	if (likely(!offset_ns))
		return 0;
	return offset_ns * ((u32)sock_net(sk)->net_cookie % max(READ_ONCE(test_drain_clocks), 1U));
}

/* ---- the real-time clock ---- */

/* As last seen; written when it has been set. */
static struct timely_real timely_real;
static DEFINE_SEQLOCK(timely_real_lock);

static u64 timely_real_offset_ns(void)
{
	return ktime_to_ns(ktime_mono_to_real(0));
}

/* Some CPU is the first to see that the clock has been set. */
static noinline void timely_real_changed(struct timely_real *real)
{
	u64 offset_ns;

	write_seqlock_bh(&timely_real_lock);
	offset_ns = timely_real_offset_ns();
	/* The clock is the host's. */
	if (timely_real_look(&timely_real, offset_ns, ktime_get_ns()))
		this_cpu_inc(timely_rtt_counters_of(&init_net)->count[TIMELY_RTT_real_set]);
	*real = timely_real;
	write_sequnlock_bh(&timely_real_lock);
}

static void timely_look_at_real(struct timely_real *real)
{
	u64 offset_ns = timely_real_offset_ns();
	unsigned int seq;

	do {
		seq = read_seqbegin(&timely_real_lock);
		*real = timely_real;
	} while (read_seqretry(&timely_real_lock, seq));
	if (unlikely(real->offset_ns != offset_ns))
		timely_real_changed(real);
}

/* Has a drain begun since the last ACK? Only for flows whose base RTT is looked for. */
static void timely_look_for_drain(const struct sock *sk, struct timely_own *own)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u64 now_ns = tcp_sk(sk)->tcp_clock_cache;
	struct timely_real real;

	if (likely(!timely_drain_may_begin(&own->drain, now_ns)))
		return;
	timely_look_at_real(&real);
	timely_drain_look(&own->drain, now_ns,
			  now_ns + real.offset_ns + timely_test_offset_ns(sk),
			  ts->rate.seeded ? ts->rate.prev_rtt_ns : 0);
}

/* The first RTT of the second half of a drain: is it less than before by the queue? */
static void timely_watch_drain(struct sock *sk, const struct timely_completion *completion,
			       u32 due_ns)
{
	struct timely_own *own = &((struct timely_sock *)inet_csk_ca(sk))->flow->own;
	struct timely_path_drain drain = {
		.before_ns = own->drain.before_ns,
		.rtt_ns = completion->rtt_ns,
		.base_ns = own->law.rate.min_rtt_ns,
		.due_ns = due_ns,
	};

	own->drain.before_ns = 0;
	if (timely_path_drained(sk, &drain))
		timely_count_ack(sk, TIMELY_RTT_drains_apart);
}

/* A round trip in a drain: in its second half, when no queue is left of the time before, it
 * says what receivers add. Not of a flow that hears of a drain when it is nearly over: among
 * a thousand there is a queue still. The queue that is due is a flow's that is not slow: who
 * has lost its share to noise has to learn of it, too.
 */
static void timely_watch_noise(struct sock *sk, const struct timely_setting *setting,
			       const struct timely_completion *completion, u64 age_ns)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_rate_law *law = &ts->flow->own.law.rate;
	struct timely_own *own = &ts->flow->own;
	u32 since_us = tcp_sk(sk)->tcp_mstamp - ts->completed_us;
	u32 drain_ns = own->drain.length_ns;
	struct timely_late late = {
		.now_ns = completion->now_ns,
		.late_ns = completion->rtt_ns - min(completion->rtt_ns, law->min_rtt_ns),
		.before_ns = own->late_ns,
		.rates_lag = own->late,
	};

	own->late_ns = late.late_ns;
	if (age_ns < drain_ns / 2 || age_ns >= drain_ns ||
	    since_us >= drain_ns / (4 * NSEC_PER_USEC))
		return;
	late.due_ns = timely_steer_ref_ns(law, max(ts->rate.rate_fp, law->first_rate_fp / 2));
	late.due_ns -= min(late.due_ns, law->min_rtt_ns);
	if (own->drain.before_ns)
		timely_watch_drain(sk, completion, late.due_ns);
	if (setting->params.rtt_noise_ns == TIMELY_AUTO)
		timely_path_late(sk, &late);
}

/* What is measured in a drain, or just after it, says how long the path is, but not
 * what to do; unless more than all is lost.
 */
static bool timely_settles(struct sock *sk, const struct timely_setting *setting,
			   const struct timely_completion *completion)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_own *own;
	u64 age_ns;

	if (!ts->own)
		return false;
	own = &ts->flow->own;
	timely_look_for_drain(sk, own);
	age_ns = timely_drain_age_ns(&own->drain, tcp_sk(sk)->tcp_clock_cache);
	if (likely(age_ns >= own->drain.settle_ns))
		return false;
	timely_watch_noise(sk, setting, completion, age_ns);
	return completion->rtt_ns <= own->law.rate.t_high_ns;
}

/* At the lowest rate and a round trip that is far too long still: it may be the path
 * that is longer now, or than others' to the same address. Look anew, and alone; should it be a
 * queue, its end will show.
 */
static void timely_doubt_base(struct sock *sk, const struct timely_completion *completion)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_own *own;

	if (!ts->own)
		return;
	own = &ts->flow->own;
	if (likely(ts->rate.rate_fp > own->law.rate.min_rate_fp ||
		   completion->rtt_ns <= own->law.rate.t_high_ns))
		return;
	if (own->apart)
		timely_path_forget(sk);
	own->apart = false;
	timely_floor_init(&own->floor);
	own->shared_ns = U32_MAX;
	own->doubt_ns = completion->now_ns;
	own->doubted_ns = own->doubted_ns ?: own->base_rtt_ns;
}

/* Put the engine's rate into force. */
static void timely_apply(struct sock *sk, const struct timely_law *law)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	u64 rate = timely_rate_Bps(&ts->rate);
	u64 bytes = rate * law->horizon_q24 >> 24;

	if (ts->own && timely_drain_is_on(&ts->flow->own.drain, tcp_sk(sk)->tcp_clock_cache))
		rate -= timely_drain_Bps(rate, sk->sk_hash);
	rate = min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate));
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, ULONG_MAX));
	if (ts->flow)
		timely_flow_rate(ts->flow, rate);
	timely_set_segment(sk, law, rate);
	sk_pacing_shift_update(sk, timely_pacing_shift(law, rate));
	ts->cwnd_limit = timely_packets(ts, bytes) + TIMELY_SLACK_SEGMENTS * ts->gso_segs;
}

/* The same where a message begins. */
static void timely_begin(struct sock *sk, const struct timely_law *law)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u64 bytes = timely_rate_Bps(&ts->rate) * law->begin_q24 >> 24;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 packets;

	timely_apply(sk, law);
	packets = timely_packets(ts, bytes) + TIMELY_BEGIN_SEGMENTS * ts->gso_segs;
	tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), packets));
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
static bool timely_may_rise(const struct sock *sk, const struct timely_law *law,
			    const struct rate_sample *rs, u32 bytes, u32 before)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 packets = tp->delivered - before;
	u64 delivered = max(rs->delivered, 0);
	u64 interval_us = max(rs->interval_us, 0L);
	u64 needed;

	if (!law->app_limited_q32)
		return true;
	if (rs->is_app_limited || !delivered || !interval_us) {
		delivered = packets;
		interval_us = (u32)tp->tcp_mstamp - ts->completed_us;
	}
	needed = timely_rate_Bps(&ts->rate) *
		 min_t(u64, interval_us, TIMELY_INTERVAL_MAX_US) >> 16;
	needed = needed * law->app_limited_q32 >> 16;
	return delivered * bytes >= needed * packets;
}

/* What arrived over the last round trip, where the RTT makes that matter, Q16. */
static u64 timely_delivered_fp(const struct sock *sk, const struct timely_law *law,
			       const struct rate_sample *rs, u32 rtt_ns)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (likely(rtt_ns <= law->rate.t_high_ns) || rs->delivered <= 0 || rs->interval_us <= 0)
		return 0;
	return div64_u64((u64)rs->delivered * ts->mss * USEC_PER_SEC, rs->interval_us) <<
	       TIMELY_RATE_SHIFT;
}

/* Among noise: the first of ACKs that come together tells of less than was delivered. A
 * flow that used its rate not long ago does.
 */
static bool timely_used_of_late(struct timely_own *own,
				const struct timely_completion *completion)
{
	if (completion->may_rise)
		own->used_ns = completion->now_ns;
	return completion->now_ns - own->used_ns <= 2 * (u64)completion->rtt_ns;
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

/* When did the packet arrive, by the driver's stamp? 0 if the stamp does not tell. */
static u64 timely_driver_ns(const struct sock *sk, u64 stamp_ns, u64 now_ns)
{
	struct timely_real real;
	u64 arrived_ns;

	timely_look_at_real(&real);
	arrived_ns = timely_real_arrival_ns(&real, stamp_ns, now_ns);
	if (unlikely(!arrived_ns))
		timely_count_ack(sk, TIMELY_RTT_driver_unsure);
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
		if (ack->source == TIMELY_RTT_hardware && ts->own && !in_softirq())
			ack->least_ns = ts->flow->own.base_rtt_ns;
		if (ack->source == TIMELY_RTT_hardware ||
		    ack->source == TIMELY_RTT_doubtful) {
			/* Not with each ACK, where they come by NICs that stamp and by
			 * others in turns: it may change the kernel's text.
			 */
			if (!(tcp_sk(sk)->segs_in % TIMELY_STAMPS_KEPT))
				timely_want_driver_stamps(ts, false);
			return;
		}
		timely_count_ack(sk, ack->source);
	}
	timely_want_driver_stamps(ts, true);
	ack->source = TIMELY_RTT_driver;
	if (ts->driver_ns)
		ack->arrived_ns = timely_driver_ns(sk, ts->driver_ns, ack->now_ns);
}

/* ---- completions ---- */

/* What is acknowledged by now is no part of the next completion. */
static void timely_skip(struct timely_sock *ts, const struct tcp_sock *tp)
{
	ts->rtt.seq = tp->snd_una;
	ts->rtt.delivered = tp->delivered;
	ts->completed_us = tp->tcp_mstamp;
}

/* ACKs come for every second packet, and one packet too many puts them out of step: they end
 * within segments then, maybe for long. For a flow that has heard of no segment since, what they
 * confirm of one is one: it left together. (The rest's headers are taken for its bytes.)
 */
static void timely_piece(const struct timely_sock *ts, struct timely_ack *ack)
{
	u32 segment = ack->sent_ns ? ack->segment_bytes : ts->gso_segs * ack->mss;
	u32 rest = ack->end_seq - ack->una;

	if (rest < segment) {
		ack->segment_bytes = segment - rest;
		ack->end_seq = ack->una;
	} else {
		ack->sent_ns = 0;
	}
}

/* What the qdisc noted of the segment's departure. When TCP planned it is no substitute where
 * departures are noted: the qdisc goes by newer rates, and may have sent it earlier.
 */
static void timely_look_up(struct timely_sock *ts, struct timely_ack *ack)
{
	struct timely_departure departure;

	switch (timely_flow_departure(ts->flow, &ts->departure, ack->end_seq, ack->now_ns,
				      &departure)) {
	case TIMELY_NOTED:
		ack->sent_ns = departure.time_ns;
		ack->segment_bytes = departure.bytes;
		break;
	case TIMELY_SKIPPED:
		ack->skipped = true;
		/* Without an RTT nothing else would tell that it has grown by so much. */
		if (ack->now_ns - ack->scheduled_ns > READ_ONCE(ts->flow->keep_ns))
			timely_flow_keep(ts->flow, min_t(u64, ack->now_ns - ack->scheduled_ns,
							 U32_MAX));
		break;
	case TIMELY_NOT_SEEN:
		break;
	}
}

/* When did the segment leave that this ACK may finish? What SACK confirms is
 * one only if it is known to end there.
 */
static void timely_departure(const struct sock *sk,
			     const struct rate_sample *rs, struct timely_ack *ack)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	bool within = after(ack->end_seq, ack->una) && !ack->sacked;
	u32 packets = ts->gso_segs;

	/* Every second segment of an odd number ends with an ACK. */
	packets <<= packets & 1;
	if (!ack->new || (within && ack->una - ts->rtt.seq < packets * ack->mss))
		return;
	ack->scheduled_ns = tp->first_tx_mstamp * NSEC_PER_USEC;
	if (ts->flow)
		timely_look_up(ts, ack);
	if (within)
		timely_piece(ts, ack);
}

static void timely_look(struct sock *sk, const struct timely_law *law,
			const struct rate_sample *rs, struct timely_ack *ack)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	ack->now_ns = tp->tcp_clock_cache;
	ack->arrived_ns = 0;
	ack->sent_ns = 0;
	ack->scheduled_ns = 0;
	ack->least_ns = 0;
	ack->source = TIMELY_RTT_tcp;
	ack->una = tp->snd_una;
	ack->end_seq = rs->last_end_seq;
	ack->delivered = tp->delivered;
	ack->mss = ts->mss;
	ack->segment_bytes = law->segment_bytes;
	ack->in_flight = rs->prior_in_flight;
	ack->acked = rs->acked_sacked;
	ack->ns_per_byte_q16 = law->ns_per_byte_q16;
	ack->tail_limit_ns = law->rate.t_high_ns;
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

/* An ACK: measure its RTT and let the engine compute the rate. */
static void timely_measure(struct sock *sk, const struct timely_setting *setting,
			   const struct rate_sample *rs)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_law *law = timely_law(ts, setting);
	u32 delivered = ts->rtt.delivered;
	struct timely_completion completion __uninitialized;
	struct timely_ack ack __uninitialized;
	enum timely_rtt_result result;

	timely_look(sk, law, rs, &ack);
	result = timely_rtt_measure(&ts->rtt, &ack, &completion);
	timely_count_ack(sk, result);
	if (result <= TIMELY_RTT_tcp) {
		/* It has no predecessor of its kind to be compared with. */
		if (ts->source != result)
			timely_rate_reseed(&ts->rate);
		ts->source = result;
		if (ts->flow)
			timely_flow_keep(ts->flow, completion.rtt_ns);
		if (ts->own)
			timely_watch_path(sk, setting, &completion,
					  timely_rtt_segment(&ack, completion.bytes));
		completion.may_rise = timely_may_rise(sk, law, rs, completion.bytes,
						      delivered);
		if (ts->own && law->rate.least_shift)
			completion.may_rise |= timely_used_of_late(&ts->flow->own,
								   &completion);
		completion.app_limited = rs->is_app_limited;
		completion.delivered_fp = timely_delivered_fp(sk, law, rs, completion.rtt_ns);
		if (timely_settles(sk, setting, &completion))
			timely_rate_reseed(&ts->rate);
		else
			timely_rate_update(&ts->rate, &law->rate, &completion);
		timely_doubt_base(sk, &completion);
		timely_apply(sk, law);
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

/* ---- losses ---- */

/* Are all that TCP took for lost since the last account put up with? */
static bool timely_losses_are_free(const struct sock *sk, const struct timely_law *law)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	return law->loss_share_q16 && ts->flow &&
	       timely_loss_is_free(&ts->flow->own.loss, law->loss_share_q16, tp->lost,
				   tp->delivered);
}

static void timely_cut(struct sock *sk, const struct timely_law *law)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	ts->cut = 1;
	timely_rate_lose(&ts->rate, &law->rate);
	timely_apply(sk, law);
}

/* More of a window may be found lost than what it was told of at first. */
static void timely_count_losses(struct sock *sk, const struct timely_law *law)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (!ts->cut && ts->flow && ts->flow->own.loss.lost != tcp_sk(sk)->lost &&
	    !timely_losses_are_free(sk, law))
		timely_cut(sk, law);
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

/* Before init there are hooks for the SYN: its ACK, its loss, the data it carries. */
static bool timely_has_begun(const struct timely_sock *ts)
{
	return ts->mss;
}

DEFINE_CONG_CONTROL(timely_cong_control)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_setting *setting;

	if (unlikely(!timely_has_begun(ts)))
		return;
	rcu_read_lock();
	setting = timely_setting(sk);
	if (unlikely(ts->generation != setting->generation))
		timely_adopt(sk, setting);
	timely_refresh_mss(sk);
	timely_measure(sk, setting, rs);
	if (unlikely(inet_csk(sk)->icsk_ca_state >= TCP_CA_Recovery))
		timely_count_losses(sk, timely_law(ts, setting));
	rcu_read_unlock();
	timely_set_cwnd(sk, rs);
	/* A receiver that does not read keeps nobody's share of the line. */
	if (!tcp_sk(sk)->packets_out &&
	    (tcp_write_queue_empty(sk) || tcp_sk(sk)->snd_wnd < ts->mss))
		timely_discount(sk);
	ts->ca_state = inet_csk(sk)->icsk_ca_state;
}

/* Called once for each window with a loss or an ECN echo, which is no loss. */
static u32 timely_ssthresh(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_law *law;

	if (unlikely(!timely_has_begun(ts)))
		goto out;
	rcu_read_lock();
	law = timely_law(ts, timely_setting(sk));
	ts->undo_rate_fp = ts->rate.rate_fp;
	ts->cut = 0;
	if (!ts->flow || ts->flow->own.loss.lost == tcp_sk(sk)->lost ||
	    !timely_losses_are_free(sk, law))
		timely_cut(sk, law);
	rcu_read_unlock();
out:
	return max(tcp_snd_cwnd(tcp_sk(sk)), 2U);
}

/* The loss was none. */
static u32 timely_undo_cwnd(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	if (unlikely(!timely_has_begun(ts)))
		return max(tcp_snd_cwnd(tcp_sk(sk)), tcp_sk(sk)->prior_cwnd);
	ts->rate.rate_fp = max(ts->rate.rate_fp, ts->undo_rate_fp);
	rcu_read_lock();
	timely_apply(sk, timely_law(ts, timely_setting(sk)));
	rcu_read_unlock();
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
	u64 idle_ns = timely_rate_age_ns(&ts->rate, tp->tcp_clock_cache);
	const struct timely_law *law;

	if (unlikely(!timely_has_begun(ts)))
		return;
	rcu_read_lock();
	law = timely_law(ts, timely_setting(sk));
	timely_count(sk, law);
	if ((s32)(tcp_jiffies32 - tp->lsndtime) > (s32)inet_csk(sk)->icsk_rto &&
	    inet_csk(sk)->icsk_ca_state != TCP_CA_Loss) {
		timely_rate_restart(&ts->rate, &law->rate);
		timely_begin(sk, law);
	} else if (tp->app_limited && idle_ns > law->rate.t_high_ns &&
		   inet_csk(sk)->icsk_ca_state < TCP_CA_Recovery) {
		timely_rate_begin(&ts->rate, &law->rate, timely_others(sk));
		timely_begin(sk, law);
	}
	rcu_read_unlock();
}

/* A timeout halves the rate once, however few packets TCP takes for lost: what is known of
 * the path may no longer be true.
 */
static void timely_timeout(struct sock *sk)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (ts->cut || !timely_has_begun(ts))
		return;
	rcu_read_lock();
	timely_cut(sk, timely_law(ts, timely_setting(sk)));
	rcu_read_unlock();
}

/* ---- the retransmission timer ----
 *
 * The timer is TCP's own: RFC 6298 as the kernel has it, with tcp_rto_min and the route's
 * rto_min, and doubled at each timeout. TCP calls timely_set_state() at each timeout and
 * doubles icsk_rto afterwards. The two functions below change icsk_rto in between; neither
 * makes a timer shorter than the one that has just run out.
 */

/* Connections over the same link time out together when it fails. Their doubled timers would
 * run out together again. The first back-off adds a random part to the timer, and later
 * back-offs double the part too. A longer timer is within RFC 6298 and RFC 8961.
 */
static void timely_spread_timer(struct inet_connection_sock *icsk)
{
	u32 most = max(icsk->icsk_rto >> TIMELY_SPREAD_SHIFT, 1U);

	icsk->icsk_rto += reciprocal_scale(get_random_u32(), most + 1);
}

/* Half of the timer, which TCP's doubling makes the same timer again, but never less than
 * TCP computes without any back-off. icsk_backoff has to agree with icsk_rto: an ICMP message
 * makes TCP take one back-off back (RFC 6069), and TCP computes the timer from the count then.
 */
static void timely_hold_timer(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 base = max(__tcp_set_rto(tcp_sk(sk)), tcp_rto_min(sk));

	icsk->icsk_rto = max(DIV_ROUND_UP(icsk->icsk_rto, 2), base);
	icsk->icsk_backoff--;
}

/* How many timeouts in a row, after the first, leave the timer as it is? */
static u32 timely_linear_timeouts(const struct sock *sk)
{
	u32 timeouts;

	rcu_read_lock();
	timeouts = timely_setting(sk)->params.linear_timeouts;
	rcu_read_unlock();
	return timeouts;
}

/* TCP tells of the loss state at each timeout, and where a path takes smaller packets only.
 * Of the two, only a timeout leaves no timer pending. SYNs have no RTT yet, and few
 * retransmissions: their timer is left alone. A receiver without room answers each
 * retransmission: its timer is always doubled.
 */
static void timely_set_state(struct sock *sk, u8 state)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (state != TCP_CA_Loss || icsk->icsk_pending || !tp->srtt_us)
		return;
	if (!icsk->icsk_backoff)
		timely_spread_timer(icsk);
	else if (tp->snd_wnd && icsk->icsk_retransmits &&
		 icsk->icsk_retransmits <= timely_linear_timeouts(sk))
		timely_hold_timer(sk);
}

DEFINE_CWND_EVENTS(timely_cwnd_event, timely_tx_start, timely_timeout)

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
	return TIMELY_SEGMENT_PACKETS;
}

/* What is the connection's own starts anew with it. */
static void timely_own_init(struct timely_own *own, const struct tcp_sock *tp)
{
	timely_floor_init(&own->floor);
	timely_drain_init(&own->drain, tp->tcp_clock_cache);
	timely_loss_init(&own->loss, tp->lost, tp->delivered);
	own->shared_ns = U32_MAX;
	own->untold_ns = TIMELY_PATH_ASK;
	own->told_ns = 0;
	own->doubt_ns = 0;
	own->doubted_ns = 0;
	own->noise_ns = 0;
	own->late_ns = 0;
	own->link = NULL;
	own->link_dev = NULL;
	own->link_kbps = 0;
	own->apart = false;
	timely_set_base(own, 0);
}

/* The handshake may have met shorter queues than data will for some time. */
static void timely_first_base(struct sock *sk, const struct timely_setting *setting)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_own *own = &ts->flow->own;
	u32 segment = own->law.ns_per_byte_q16 ? 0 : own->law.segment_bytes;
	u32 rtt_us = tcp_min_rtt(tcp_sk(sk));
	u64 now_ns = tcp_clock_ns();
	u32 base_ns;

	if (rtt_us >= USEC_PER_SEC)
		return;
	base_ns = timely_first_base_ns(max(rtt_us, 1U) * NSEC_PER_USEC, segment);
	timely_share_base(sk, now_ns, TIMELY_PATH_ASK);
	base_ns = timely_floor_add(&own->floor, now_ns, TIMELY_BASE_HALF_NS, base_ns);
	timely_set_base(own, min(base_ns, own->shared_ns));
	timely_tune_own(sk, setting);
}

static void timely_init(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_setting *setting;
	const struct timely_law *law;

	memset(ts, 0, sizeof(*ts));
	timely_skip(ts, tcp_sk(sk));
	ts->ca_state = inet_csk(sk)->icsk_ca_state;
	ts->pacing_shift = READ_ONCE(sk->sk_pacing_shift);
	ts->mss = timely_mss(sk);
	ts->flow = timely_flow_open(sk);
	if (ts->flow)
		timely_own_init(&ts->flow->own, tcp_sk(sk));
	timely_want_driver_stamps(ts, true);
	rcu_read_lock();
	setting = timely_setting(sk);
	timely_adopt(sk, setting);
	if (ts->own)
		timely_first_base(sk, setting);
	law = timely_law(ts, setting);
	timely_rate_init(&ts->rate, &law->rate);
	timely_begin(sk, law);
	rcu_read_unlock();
	/* Without fq, TCP paces by itself. */
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
}

static void timely_release(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	/* Chosen and left again before connecting. */
	if (!timely_has_begun(ts))
		return;
	timely_discount(sk);
	timely_want_driver_stamps(ts, false);
	if (ts->flow) {
		timely_link_put(ts->flow->own.link);
		ts->flow->own.link = NULL;
		timely_flow_close(ts->flow);
	}
	if (ts->gso_max_segs && sk->sk_gso_max_segs == ts->gso_segs)
		sk->sk_gso_max_segs = ts->gso_max_segs;
	sk_pacing_shift_update(sk, ts->pacing_shift);
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
		CWND_EVENTS(timely_cwnd_event),			\
	}

static struct tcp_congestion_ops timely_ops[TIMELY_CC_COUNT] __read_mostly = {
	[TIMELY_CC_NET]		= TIMELY_OPS("timely"),
	[TIMELY_CC_PATCHED]	= TIMELY_OPS("timely_patched"),
	[TIMELY_CC_PAPER]	= TIMELY_OPS("timely_paper"),
	[TIMELY_CC_FAST]	= TIMELY_OPS("timely_fast"),
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
static void timely_probe(void *unused, struct sock *sk, TIMELY_PROBE_CONST struct sk_buff *skb)
{
	struct timely_sock *ts;

	if ((unsigned long)inet_csk(sk)->icsk_ca_ops - (unsigned long)timely_ops >=
	    sizeof(timely_ops))
		return;
	ts = inet_csk_ca(sk);
	if (ts->flow)
		timely_flow_prefetch(ts->flow, ts->departure, ts->own);
	ts->napi_id = timely_napi_id(skb);
	ts->driver_ns = ktime_to_ns(skb_tstamp(skb));
	ts->hardware_ns = ktime_to_ns(skb_shinfo(skb)->hwtstamps.hwtstamp);
	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP_NETDEV))
		ts->hardware_ns = timely_nic_stamp(skb, ts->napi_id);
}

/* Without the tracepoint RTTs are TCP's own, which are worse, but better than none. A lack of
 * memory is no reason to do without for as long as the module is loaded.
 */
static int timely_join_tracepoint(void)
{
	int err;

	check_trace_callback_type_tcp_probe(timely_probe);
	timely_tracepoint = timely_tracepoint_find("tcp_probe");
	if (!timely_tracepoint) {
		pr_warn("tcp_timely: this kernel has no tracepoint tcp_probe: RTTs end when TCP processes the ACK\n");
		return 0;
	}
	err = tracepoint_probe_register(timely_tracepoint, timely_probe, NULL);
	if (err) {
		timely_tracepoint = NULL;
		pr_err("tcp_timely: cannot join the tracepoint tcp_probe (error %d): not loaded, try again\n",
		       err);
	}
	return err;
}

static void timely_leave_tracepoint(void)
{
	if (!timely_tracepoint)
		return;
	tracepoint_probe_unregister(timely_tracepoint, timely_probe, NULL);
	tracepoint_synchronize_unregister();
}

/* ---- loading ---- */

static void __init timely_fix_presets(void)
{
	u32 i;

	for (i = TIMELY_CC_NET + 1; i < TIMELY_CC_COUNT; i++)
		timely_setting_init(&timely_fixed[i],
				    &timely_preset_find(timely_fixed_presets[i])->params, 0);
}

/* Of all, or of the first so many. */
static void timely_unregister_controls(u32 count)
{
	while (count--)
		tcp_unregister_congestion_control(&timely_ops[count]);
}

static int __init timely_register_controls(void)
{
	u32 i;
	int err;

	for (i = 0; i < TIMELY_CC_COUNT; i++) {
		err = tcp_register_congestion_control(&timely_ops[i]);
		if (err) {
			timely_unregister_controls(i);
			return err;
		}
	}
	return 0;
}

static int __init timely_register(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct timely_sock) > ICSK_CA_PRIV_SIZE);

	timely_real_init(&timely_real, timely_real_offset_ns());
	timely_fix_presets();
	err = timely_settings_init();
	if (err)
		return err;
	err = timely_flow_register(timely_ops, TIMELY_CC_COUNT);
	if (err)
		goto no_records;
	err = timely_join_tracepoint();
	if (err)
		goto no_tracepoint;
	err = timely_register_controls();
	if (err)
		goto no_controls;
	return 0;

no_controls:
	timely_leave_tracepoint();
no_tracepoint:
	timely_flow_unregister();
no_records:
	timely_settings_exit();
	return err;
}

static void __exit timely_unregister(void)
{
	timely_unregister_controls(TIMELY_CC_COUNT);
	timely_leave_tracepoint();
	timely_flow_unregister();
	timely_settings_exit();
}

module_init(timely_register);
module_exit(timely_unregister);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
/* By their names when they are asked for. */
MODULE_ALIAS("tcp_timely_patched");
MODULE_ALIAS("tcp_timely_paper");
MODULE_ALIAS("tcp_timely_fast");
MODULE_DESCRIPTION("TIMELY: RTT-based congestion control for the datacenter");
