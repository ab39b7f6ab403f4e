// SPDX-License-Identifier: GPL-2.0
/*
 * What tcp_timely knows about the path of each connection: base RTT, base-RTT probes, link and ACK
 * aggregation. From this knowledge, the engine net/timely/engine/tune.c computes the path-dependent
 * parameters of the connection.
 *
 * The code that handles each ACK (tcp_timely.c) calls these functions when something about the path
 * has changed, in base-RTT probes, and about 15 times per second, to exchange RTTs with the other
 * connections on the path (net/timely/path.c).
 */

#include <linux/kernel.h>
#include <net/tcp.h>

#include <net/timely_cfg.h>
#include <net/timely_flow.h>
#include <net/timely_link.h>
#include <net/timely_path.h>
#include <timely/engine/ack_wait.h>
#include <timely/engine/ingress.h>
#include <timely/engine/rtt.h>
#include <timely/engine/swift.h>
#include <timely/engine/target_delay.h>
#include <timely/engine/tune.h>

#include "tcp_timely.h"

#include <trace/events/timely.h>

/* A connection adds the bytes that it has received to the link's count in portions of this size, so
 * that CPUs do not write to the same cache line for each packet.
 */
#define TIMELY_RECEIVED_PORTION		8192U

/* A connection tells its path at most once in this time that the peer sends, and asks at most once
 * in this time whether it sends, jiffies.
 */
#define TIMELY_PEER_SENDS_TELL		(HZ / 16)
#define TIMELY_PEER_SENDS_ASK		(HZ / 100)

/* ---- how connections use their link ---- */

/* The use of the connection's link by all network namespaces. If the link is not known, the use of
 * the unknown link by the network namespace, or NULL for a socket of the kernel that holds no
 * reference to its namespace: such a socket might be closed after the end of the namespace and is
 * not counted.
 */
static struct timely_load *timely_load(const struct sock *sk)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (ts->flow && ts->flow->path.link)
		return &ts->flow->path.link->load;
	if (!sk->sk_net_refcnt && !net_eq(sock_net(sk), &init_net))
		return NULL;
	return timely_net_load(sk);
}

/* Count the connection as one that has data to send, if it has a counter. */
void timely_count_sender(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_load *load = timely_load(sk);

	if (!load)
		return;
	ts->counted = 1;
	atomic_inc(&load->senders);
}

/* Number of other connections with data to send over the link, from which timely_rate_start()
 * computes a share of the link rate. For a connection that is not counted, the number for which
 * the share is the first rate.
 */
u32 timely_other_senders(const struct sock *sk)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	return ts->counted ? atomic_read(&timely_load(sk)->senders) - 1 : TIMELY_FIRST_SHARE - 1;
}

/* The connection has no data to send, or ends: undo timely_count_sender(), which has counted it. */
void timely_uncount_sender(struct sock *sk)
{
	struct timely_sock *ts = inet_csk_ca(sk);

	ts->counted = 0;
	atomic_dec(&timely_load(sk)->senders);
}

/* The connection has received @bytes. */
void timely_count_received(struct sock *sk, u32 bytes)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_path_state *path = &ts->flow->path;
	struct timely_load *load;

	path->received += bytes;
	if (path->received < TIMELY_RECEIVED_PORTION)
		return;
	load = timely_load(sk);
	if (load)
		atomic64_add(path->received, &load->received);
	path->received = 0;
	if (tcp_jiffies32 - path->told_jiffies >= TIMELY_PEER_SENDS_TELL) {
		path->told_jiffies = tcp_jiffies32;
		timely_path_received(sk, tcp_clock_ns());
	}
}

/* Add what the host has received since the last update to the average. Return: the average, Q16. */
static u32 timely_update_ingress(struct timely_load *load, u64 now_ns, u64 period_ns,
				 u32 link_kbps)
{
	u64 received = atomic64_read(&load->received);
	u32 ingress_q16 = timely_ingress_q16(load->ingress_q16, received - READ_ONCE(load->seen),
					     period_ns, link_kbps);

	WRITE_ONCE(load->seen, received);
	WRITE_ONCE(load->ingress_q16, ingress_q16);
	if (ingress_q16 >= TIMELY_INGRESS_MUCH_Q16)
		WRITE_ONCE(load->much_ns, now_ns);
	return ingress_q16;
}

/* Whether the ACK in process has another DSCP than the connection's data: the receiver's qdisc
 * marks ACKs (ack_dscp), and switches send marked packets first. Rules of a firewall may have
 * changed the DSCP of the data, which the qdisc timely records; under another qdisc the socket's
 * DSCP counts.
 */
static bool timely_ack_is_marked(const struct sock *sk)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u8 own = inet_sk(sk)->tos;

	if (atomic_read(&ts->flow->next))
		own = READ_ONCE(ts->flow->dsfield);
#if IS_ENABLED(CONFIG_IPV6)
	else if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr))
		own = inet6_sk(sk)->tclass;
#endif
	/* An ACK without a DSCP is that of a host that sets none, and waits like other packets. */
	return (ts->dsfield & ~INET_ECN_MASK) && ((ts->dsfield ^ own) & ~INET_ECN_MASK);
}

/* Whether this host has received much at some time lately, and the connection's peer sends data. */
static bool timely_both_ways(struct sock *sk, u64 now_ns, u64 much_ns)
{
	struct timely_path_state *path = &((struct timely_sock *)inet_csk_ca(sk))->flow->path;

	if (!much_ns || (s64)(now_ns - much_ns) >= TIMELY_INGRESS_MUCH_NS)
		return false;
	if (tcp_jiffies32 - path->asked_jiffies >= TIMELY_PEER_SENDS_ASK) {
		path->asked_jiffies = tcp_jiffies32;
		path->peer_sends = timely_path_receives(sk, now_ns);
	}
	return path->peer_sends;
}

/* Fill in what the host has received lately, which says how long ACKs wait. A marked ACK does not
 * wait at the port towards this host. The average is updated at most once per
 * TIMELY_INGRESS_PERIOD_NS, by the connection that comes first.
 */
void timely_fill_ingress(struct sock *sk, struct timely_completion *completion)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_load *load = timely_load(sk);
	u64 now_ns = completion->now_ns, seen_ns;

	if (!load)
		return;
	seen_ns = atomic64_read(&load->seen_ns);
	if ((s64)(now_ns - seen_ns) < TIMELY_INGRESS_PERIOD_NS ||
	    atomic64_cmpxchg(&load->seen_ns, seen_ns, now_ns) != seen_ns)
		completion->ingress_q16 = READ_ONCE(load->ingress_q16);
	else
		completion->ingress_q16 = timely_update_ingress(load, now_ns, now_ns - seen_ns,
								ts->flow->path.cfg.link_kbps);
	if (completion->ingress_q16 && timely_ack_is_marked(sk))
		completion->ingress_q16 = 0;
	completion->both_ways = timely_both_ways(sk, now_ns, READ_ONCE(load->much_ns));
}

/* When the ACK in process was sent, us, by the clock of its sender. An ACK time counts if the
 * receiver writes ACK times; an ACK with data then has none. Otherwise the ACK's timestamp counts.
 * On a half-closed connection the hook does not see the ACK, and @path has the ID of an earlier
 * one.
 *
 * While the receiver sends data, too, an ACK may have the timestamp at which the receiver's next
 * segment is scheduled, which is of no use: such an ACK comes with data or after data.
 *
 * Return: whether the time is known, or may be.
 */
static bool timely_ack_sent_us(const struct sock *sk, struct timely_path_state *path,
			       u32 arrived_us, u32 rtt_ns, u32 *sent_us)
{
	u32 id = sk->sk_state == TCP_ESTABLISHED ? path->ack_id : TIMELY_ACK_NO_ID;
	const struct tcp_sock *tp = tcp_sk(sk);

	if (rtt_ns < TIMELY_ACK_TIME_RTT_NS &&
	    timely_ack_time_us(&path->ack_wait, arrived_us, id, sent_us))
		return true;
	if (path->ack_wait.source == TIMELY_ACK_WAIT_ID || !tp->rx_opt.saw_tstamp)
		return false;
	if (path->rcv_nxt != tp->rcv_nxt) {
		path->rcv_nxt = tp->rcv_nxt;
		return false;
	}
	*sent_us = tp->rx_opt.rcv_tsval;
	return true;
}

/* Subtract from an RTT how long its ACK has waited on its way back, if the ACK tells. Only the
 * target-delay rule has this; the other rules are those of their papers. The RTT does not become
 * shorter than the base RTT.
 *
 * Return: whether the wait is known.
 */
bool timely_exclude_ack_wait(struct sock *sk, const struct timely_cfg *cfg,
			     const struct timely_ack *ack, struct timely_completion *completion)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u32 arrived_us = tcp_sk(sk)->tcp_mstamp;
	struct timely_path_state *path;
	u32 wait_ns, queue_ns, sent_us;

	if (!ts->path || cfg->rate.rule != TIMELY_RULE_TARGET_DELAY)
		return false;
	path = &ts->flow->path;
	path->ack_wait_ns = 0;
	if (ack->arrived_ns)
		arrived_us -= (u32)(ack->now_ns - ack->arrived_ns) / (u32)NSEC_PER_USEC;
	if (!timely_ack_sent_us(sk, path, arrived_us, completion->rtt_ns, &sent_us))
		return false;
	wait_ns = timely_ack_wait_us(&path->ack_wait, arrived_us, sent_us) * NSEC_PER_USEC;
	queue_ns = completion->rtt_ns - min(completion->rtt_ns, cfg->rate.min_rtt_ns);
	path->ack_wait_ns = min(wait_ns, queue_ns);
	completion->rtt_ns -= path->ack_wait_ns;
	return timely_ack_wait_is_known(&path->ack_wait);
}

/* Set the connection's link, NULL if not known, and count the connection as a sender there. */
static void timely_set_link(struct sock *sk, struct timely_link *link)
{
	struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_path_state *path = &ts->flow->path;
	bool counted = ts->counted;

	if (path->link == link)
		return;
	if (counted)
		timely_uncount_sender(sk);
	timely_link_put(path->link);
	path->link = timely_link_get(link);
	if (counted)
		timely_count_sender(sk);
}

/* Find the connection's link and the rate of the link. The lookup is repeated only if the device of
 * the route or any link has changed, or after TIMELY_LINK_LOOK.
 */
static void timely_find_link(struct sock *sk)
{
	struct timely_path_state *path = &((struct timely_sock *)inet_csk_ca(sk))->flow->path;
	const struct dst_entry *dst = __sk_dst_get(sk);
	u32 epoch = READ_ONCE(timely_link_epoch);
	const struct net_device *dev = path->link_dev;
	bool same = path->link_epoch == epoch;
	struct timely_link *link;

	path->link_epoch = epoch;
	/* A connection without a route repeats the lookup when it has a route. */
	path->link_dev = dst ? dst->dev : NULL;
	if (!dst || (dev == dst->dev && same &&
		     time_before(jiffies, path->link_jiffies + TIMELY_LINK_LOOK)))
		return;
	path->link_jiffies = jiffies;
	link = timely_link_of(dst->dev, &path->link_kbps, &path->link_beyond);
	timely_set_link(sk, link);
}

/* ---- the path's configuration ---- */

/* Compute the connection's configuration from what is known about its path.
 *
 * For a link beyond a veth (path->link_beyond), packets to other containers of the host do not use
 * the link. So the serialization time at the link rate is not subtracted from RTTs, and the link
 * rate does not limit the connection's rate.
 */
void timely_tune_path(struct sock *sk, const struct timely_param_set *set)
{
	struct timely_flow *flow = ((struct timely_sock *)inet_csk_ca(sk))->flow;
	struct timely_params params = set->params;
	struct timely_path_state *path = &flow->path;
	struct timely_path known;
	u32 link_kbps;

	timely_find_link(sk);
	path->lag = timely_rate_lag(sk);
	known = (struct timely_path) {
		.base_rtt_ns = path->base_rtt_ns,
		.ack_agg_ns = path->ack_agg_ns,
		.link_kbps = path->link_beyond ? 0 : path->link_kbps,
		.likely_kbps = path->link_kbps,
		.mss = tcp_sk(sk)->mss_cache,
		.lag = path->lag,
	};
	link_kbps = timely_tune(&params, &known);
	trace_timely_computed(sk, &params, path->lag, path->apart);
	if (path->cfg.segment_bytes != params.segment_bytes)
		path->whole_bytes = params.segment_bytes;
	timely_cfg_init(&path->cfg, &params, &set->params, link_kbps);
	path->cfg.rate.lags = path->lag;
	/* Segments grow where RTTs do not include their serialization time, and where a decrease of
	 * the rate delays segments that are already queued.
	 */
	path->cfg.segment_grows = path->cfg.segment_auto && path->cfg.ns_per_byte_q16 &&
				  params.rule == TIMELY_RULE_TARGET_DELAY && !path->lag;
	if (params.rule == TIMELY_RULE_SWIFT)
		timely_swift_cfg_packet(&path->cfg.rate, known.mss);
	/* A connection whose base RTT is configured does not probe: there is nothing to measure. */
	if (set->params.min_rtt_ns == TIMELY_AUTO)
		timely_probe_rtt_set(&path->probe, params.min_rtt_ns);
	else
		timely_probe_rtt_init(&path->probe, tcp_sk(sk)->tcp_clock_cache);
}

/* Record the path's ACK aggregation if @ack_agg_ns differs by more than an eighth from the value
 * that the configuration was computed for. Return: whether @ack_agg_ns was recorded.
 */
static bool timely_set_ack_agg(struct timely_path_state *path, u32 ack_agg_ns)
{
	u32 before_ns = path->ack_agg_ns;

	if (max(ack_agg_ns, before_ns) - min(ack_agg_ns, before_ns) <= before_ns / 8)
		return false;
	path->ack_agg_ns = ack_agg_ns;
	return true;
}

/* Report @rtt_ns, the minimum RTT since the last report, to the other connections on the path
 * (TIMELY_PATH_ASK: report nothing), and read what these connections reported. Return: whether the
 * path's ACK aggregation has changed.
 *
 * Reported RTTs are without the serialization time of a segment, because connections may have
 * segments of different sizes. If the link rate is not known, this connection's RTTs include the
 * serialization time: an estimate of this time is subtracted from the reported RTT and added to the
 * base RTT that was read.
 *
 * For twice TIMELY_BASE_HALF_NS after timely_forget_base(), reports of other connections are
 * ignored.
 */
static bool timely_share_base(struct sock *sk, u64 now_ns, u32 rtt_ns)
{
	struct timely_path_state *path = &((struct timely_sock *)inet_csk_ca(sk))->flow->path;
	u32 segment_ns = path->cfg.ns_per_byte_q16 ? 0 : timely_first_base_ns(0, path->whole_bytes);
	struct timely_path_report sample;

	if (rtt_ns != TIMELY_PATH_ASK) {
		rtt_ns -= min(rtt_ns - 1, segment_ns);
		path->last_reported_ns = path->unreported_ns;
		path->unreported_ns = TIMELY_PATH_ASK;
		path->reported_ns = now_ns;
	}
	timely_path_exchange(sk, now_ns, rtt_ns, &sample);
	path->apart = sample.apart;
	path->shared_ns = min_t(u64, (u64)sample.base_ns + segment_ns, U32_MAX);
	if (path->doubt_ns && now_ns - path->doubt_ns < 2 * TIMELY_BASE_HALF_NS)
		path->shared_ns = U32_MAX;
	return timely_set_ack_agg(path, sample.ack_agg_ns);
}

/* Set the base RTT for which a configuration will be computed. The configuration remains valid for
 * base RTTs that differ from @base_rtt_ns by up to an eighth: see timely_is_near_base().
 */
static void timely_set_base(struct timely_path_state *path, u32 base_rtt_ns)
{
	path->base_rtt_ns = base_rtt_ns;
	path->base_low_ns = base_rtt_ns - base_rtt_ns / 8;
}

/* Whether the new base RTT, @base_ns, is more than twice the base RTT before. Then the rate was
 * decreased because of a longer path and not because of a queue.
 *
 * The answer is false if the base RTT is configured, and until the minimum filter has completed a
 * half of its window: until then, the minimum may be an RTT with a queue. The first comparison
 * after timely_forget_base() is with the doubted base RTT, and ends the doubt.
 */
static bool timely_is_longer(struct timely_path_state *path, u64 base_ns)
{
	u32 before_ns = path->doubted_ns ?: path->base_rtt_ns;

	if (!path->probe.length_ns || path->filter.before == U64_MAX)
		return false;
	path->doubted_ns = 0;
	return base_ns / 2 > before_ns;
}

/* Report the connection's minimum RTT and read the reports of other connections. If the base RTT or
 * ACK aggregation has changed, or @same is false, compute the configuration again.
 *
 * @least_ns is the connection's minimum RTT. @same is false if the link or the qdisc has changed,
 * or the minimum filter has started a new half of its window.
 *
 * This is the infrequent part of timely_watch_path(), which runs for each RTT.
 */
enum timely_path_change timely_path_changed(struct sock *sk, const struct timely_param_set *set,
					    u64 now_ns, u64 least_ns, bool same)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_path_state *path = &ts->flow->path;
	u64 base_ns;
	bool longer;

	same &= !timely_share_base(sk, now_ns, path->unreported_ns);
	base_ns = min_t(u64, least_ns, path->shared_ns);
	longer = timely_is_longer(path, base_ns);
	/* The minimum over a longer time is from before the path became longer. */
	if (longer)
		timely_path_forget(sk);
	if (same && !longer && base_ns == path->base_rtt_ns)
		return TIMELY_PATH_SAME;
	timely_set_base(path, base_ns);
	timely_tune_path(sk, set);
	return longer ? TIMELY_PATH_LONGER : TIMELY_PATH_TUNED;
}

/* Report the first RTT in the second half of a base-RTT probe. timely_path_probed() compares this
 * RTT with the last RTT before the probe: if RTTs do not fall in probes, other hosts do not probe
 * at the same time. @due_ns is the connection's target delay.
 */
static void timely_watch_probe(struct sock *sk, const struct timely_completion *completion,
			       u32 due_ns)
{
	struct timely_path_state *path = &((struct timely_sock *)inet_csk_ca(sk))->flow->path;
	struct timely_path_probe probe = {
		.before_ns = path->probe_before_ns,
		.least_ns = min3(path->unreported_ns, path->last_reported_ns, completion->rtt_ns),
		.rtt_ns = completion->rtt_ns,
		.base_ns = path->cfg.rate.min_rtt_ns,
		.due_ns = due_ns,
	};

	path->probe_before_ns = 0;
	if (timely_path_probed(sk, &probe))
		timely_count_ack(sk, TIMELY_RTT_probes_apart);
}

/* Measure ACK aggregation with an RTT in a base-RTT probe. @age_ns is for how long RTTs have shown
 * the probe.
 *
 * Only RTTs in the second half of the probe count: the queue from before the probe has drained
 * then, and the RTT shows what the receiver's ACK aggregation adds. A connection that had no
 * completion for a quarter of the probe is excluded, because it noticed the probe late: if a
 * thousand connections notice late, there is still a queue. While probes do not coincide, such
 * connections may show that there is no queue but a longer path, which has made them slow.
 *
 * ACK aggregation counts if it is large compared with the target delay, which is longer for a lower
 * rate. The target delay is computed for at least half of the first rate: a connection that lost
 * its share to ACK aggregation is slow, and must be able to measure ACK aggregation, too.
 */
void timely_watch_ack_agg(struct sock *sk, const struct timely_param_set *set,
			  const struct timely_completion *completion, u64 age_ns)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	const struct timely_rate_cfg *cfg = &ts->flow->path.cfg.rate;
	struct timely_path_state *path = &ts->flow->path;
	u32 since_us = tcp_sk(sk)->tcp_mstamp - ts->completed_us;
	u32 probe_ns = path->probe.length_ns;
	bool late = since_us >= probe_ns / (4 * NSEC_PER_USEC);
	struct timely_probe_sample sample = {
		.now_ns = completion->now_ns,
		.probe_queue_ns = completion->rtt_ns - min(completion->rtt_ns, cfg->min_rtt_ns),
		.before_ns = path->probe_queue_ns,
		.rates_lag = path->lag,
	};

	/* A packet that was overtaken makes an RTT as long as ACK aggregation does. */
	if (inet_csk(sk)->icsk_ca_state != TCP_CA_Open || ts->ca_state != TCP_CA_Open)
		return;
	path->probe_queue_ns = sample.probe_queue_ns;
	if (age_ns < probe_ns / 2 || age_ns >= probe_ns || (late && !path->apart))
		return;
	sample.due_ns = timely_target_ref_ns(cfg, max(ts->rate.rate_fp, cfg->first_rate_fp / 2));
	sample.due_ns -= min(sample.due_ns, cfg->min_rtt_ns);
	if (path->probe_before_ns)
		timely_watch_probe(sk, completion, sample.due_ns);
	if (!late && set->params.ack_aggregation_ns == TIMELY_AUTO)
		timely_path_probe_sample(sk, &sample);
}

/* Discard the base RTT, which may be too low, and measure the base RTT again with this connection's
 * RTTs only. While base-RTT probes of the hosts do not coincide, the path's base RTT is a minimum
 * over a longer time: timely_path_forget() discards this minimum, too.
 *
 * timely_doubt_base() calls this for each completion while RTTs are above t_high_ns at the minimum
 * rate. path->doubted_ns keeps the base RTT of the first call.
 */
void timely_forget_base(struct sock *sk, u64 now_ns)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_path_state *path = &ts->flow->path;

	if (path->apart)
		timely_path_forget(sk);
	path->apart = false;
	timely_min_filter_init(&path->filter);
	path->shared_ns = U32_MAX;
	path->doubt_ns = now_ns;
	path->doubted_ns = path->doubted_ns ?: path->base_rtt_ns;
}

/* Initialise the path's state of a new connection. */
void timely_path_state_init(struct timely_path_state *path, const struct tcp_sock *tp)
{
	timely_min_filter_init(&path->filter);
	timely_probe_rtt_init(&path->probe, tp->tcp_clock_cache);
	timely_loss_init(&path->loss, tp->lost, tp->delivered);
	path->shared_ns = U32_MAX;
	path->unreported_ns = TIMELY_PATH_ASK;
	path->last_reported_ns = TIMELY_PATH_ASK;
	path->reported_ns = 0;
	path->doubt_ns = 0;
	path->doubted_ns = 0;
	path->ack_agg_ns = 0;
	path->probe_queue_ns = 0;
	path->probe_before_ns = 0;
	path->window_rtt_ns = 0;
	path->received = 0;
	path->link = NULL;
	path->link_dev = NULL;
	path->link_kbps = 0;
	path->told_jiffies = tcp_jiffies32 - TIMELY_PEER_SENDS_TELL;
	path->asked_jiffies = tcp_jiffies32 - TIMELY_PEER_SENDS_ASK;
	path->apart = false;
	path->peer_sends = false;
	timely_set_base(path, 0);
}

/* Estimate the base RTT of a new connection: the lower of the handshake's RTT and the base RTT that
 * other connections on the path reported. The handshake's RTT is used because the handshake may
 * have met a shorter queue than the connection's data will meet for some time.
 *
 * If TCP has measured no RTT, it reports a value of more than a second. Such a value is not used,
 * and the base RTT is not known until the first completion.
 */
void timely_first_base(struct sock *sk, const struct timely_param_set *set)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	struct timely_path_state *path = &ts->flow->path;
	u32 segment_bytes = path->cfg.ns_per_byte_q16 ? 0 : path->cfg.segment_bytes;
	u32 rtt_us = tcp_min_rtt(tcp_sk(sk));
	u64 now_ns = tcp_clock_ns();
	u32 base_ns;

	if (rtt_us >= USEC_PER_SEC)
		return;
	base_ns = timely_first_base_ns(max(rtt_us, 1U) * NSEC_PER_USEC, segment_bytes);
	timely_share_base(sk, now_ns, TIMELY_PATH_ASK);
	base_ns = timely_min_filter_add(&path->filter, now_ns, TIMELY_BASE_HALF_NS, base_ns);
	timely_set_base(path, min(base_ns, path->shared_ns));
	timely_tune_path(sk, set);
}
