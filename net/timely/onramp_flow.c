// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's state of a flow: the departures of the flow's packets, and the signals about them.
 *
 * The qdisc records when packets of a flow depart. A signal (an OR-ACK from onramp.c, or an RTT
 * from onramp_rtt.c) is about one packet. With the departure of this packet, engine/owd.c computes
 * the packet's delay from the signal. The controller (engine/pause.c) computes a pause from the
 * delay, and the qdisc applies the pause. onramp_table.c allocates the state and finds it by the
 * flow's addresses.
 *
 * As in the paper, the packet of the present signal is called the green packet.
 */

#include <linux/export.h>
#include <linux/ktime.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include <net/timely_flow.h>
#include <net/timely_peer.h>
#include <net/timely_tenant.h>
#include <timely/engine/owd.h>

#include "onramp.h"

#include <trace/events/timely_onramp.h>

/* The rate limit after a pause ends when the last pause has ended, and the last green packet has
 * departed, at least this long ago. ONRAMP_IDLE_NS is for a flow that sends again after the qdisc
 * had no packets of the flow, ONRAMP_NO_SIGNAL_NS for any other flow that sends.
 */
#define ONRAMP_IDLE_NS		NSEC_PER_MSEC
#define ONRAMP_NO_SIGNAL_NS	(10 * NSEC_PER_MSEC)

/* TCP packets with contiguous data share an entry of timely_onramp.sent if they depart within this
 * time. So TIMELY_SENT (128) entries cover at least two milliseconds of any flow that sends new
 * data.
 */
#define ONRAMP_AT_ONCE_NS	(16 * NSEC_PER_USEC)

/* ---- flows ---- */

/**
 * timely_onramp_add() - add On-Ramp's state to a flow entry
 * @flow: the flow entry; if it has the state already, nothing happens
 * @tuple: the flow's addresses; signals for these addresses go to @flow from now on, and no longer
 *	to another flow entry with the same addresses, which belongs to another qdisc or to a
 *	connection that has ended
 * @sk: the socket that sends the flow; the state counts against the budget of the socket's network
 *	namespace, and the memory is charged to the socket's memory control group
 *
 * Return: true if @flow has the state; false if there is no memory or the budget is used up.
 */
bool timely_onramp_add(struct timely_flow *flow, const struct timely_tuple *tuple,
		       const struct sock *sk)
{
	struct timely_onramp *onramp = timely_onramp_new(sk);
	bool there;

	if (!onramp)
		return false;
	onramp->tuple = *tuple;
	onramp->net_cookie = sock_net(sk)->net_cookie;
	onramp->flow = flow;
	timely_pause_init(&onramp->pause);
	timely_resume_init(&onramp->resume);
	timely_onramp_repair_init(onramp);
	onramp->peer = timely_peer_get(sk, tuple);
	spin_lock_bh(&flow->lock);
	there = flow->onramp;
	if (!there) {
		/* Pairs with smp_load_acquire() of timely_flow_onramp(): a reader that sees the
		 * pointer sees all members of the state.
		 */
		smp_store_release(&flow->onramp, onramp);
	}
	spin_unlock_bh(&flow->lock);
	if (there) {
		timely_peer_put(onramp->peer);
		timely_onramp_free(onramp);
		return true;
	}
	timely_onramp_insert(onramp);
	return true;
}
EXPORT_SYMBOL_GPL(timely_onramp_add);

/**
 * timely_onramp_flow() - find or create a flow entry by the flow's addresses
 * @tuple: the flow's addresses
 * @sk: the socket that sends the flow; budget and memory are as for timely_onramp_add()
 *
 * The function is for flows whose congestion control creates no flow entry.
 *
 * Return: the flow entry, with On-Ramp's state, to be released with timely_flow_put(); NULL if
 * there is no memory or a budget is used up.
 */
struct timely_flow *timely_onramp_flow(const struct timely_tuple *tuple, const struct sock *sk)
{
	struct timely_onramp *onramp;
	struct timely_flow *flow = NULL;

	rcu_read_lock();
	onramp = timely_onramp_lookup(tuple);
	/* A flow entry with a key was created by a congestion control. The entry belongs to another
	 * connection, which had the same addresses before.
	 */
	if (onramp && !onramp->flow->key && refcount_inc_not_zero(&onramp->flow->ref))
		flow = onramp->flow;
	rcu_read_unlock();
	if (flow)
		return flow;
	flow = timely_flow_new(sk);
	if (flow && !timely_onramp_add(flow, tuple, sk)) {
		timely_flow_put(flow);
		flow = NULL;
	}
	return flow;
}
EXPORT_SYMBOL_GPL(timely_onramp_flow);

/* Whether a packet can share the entry @sent of the previous packet: the packet has the next bytes
 * of the stream, and departs less than ONRAMP_AT_ONCE_NS after the entry's first packet.
 */
static bool onramp_continues(const struct timely_sent *sent,
			     const struct timely_departure *departure, u32 payload)
{
	return payload && departure->end_seq - payload == sent->end_seq &&
	       departure->time_ns - sent->time_ns < ONRAMP_AT_ONCE_NS;
}

/**
 * timely_onramp_depart() - record that a packet is passed to the device
 * @onramp: On-Ramp's state of the packet's flow
 * @departure: sequence number, size and time of the packet
 * @payload: bytes of TCP payload, without a FIN; 0 for UDP
 *
 * The qdisc that sends the flow calls this function. timely_onramp_departure() reads the recorded
 * departures on any CPU, without a lock. If two qdiscs send packets of the flow at the same time,
 * some departures are lost.
 */
void timely_onramp_depart(struct timely_onramp *onramp,
			  const struct timely_departure *departure, u32 payload)
{
	struct timely_sent *sent = &onramp->sent[(onramp->next - 1) % TIMELY_SENT];
	u64 time_ns = sent->time_ns;
	u32 span_ns = 0, total = payload;

	WRITE_ONCE(onramp->bytes, onramp->bytes + departure->bytes);
	if (onramp_continues(sent, departure, payload)) {
		span_ns = departure->time_ns - time_ns;
		total += sent->payload;
	} else {
		sent = &onramp->sent[onramp->next % TIMELY_SENT];
		WRITE_ONCE(onramp->next, onramp->next + 1);
		time_ns = departure->time_ns;
	}
	WRITE_ONCE(sent->time_ns, 0);
	smp_wmb(); /* the time is 0 first; pairs with the last smp_rmb() of onramp_read() */
	WRITE_ONCE(sent->span_ns, span_ns);
	WRITE_ONCE(sent->end_seq, departure->end_seq);
	WRITE_ONCE(sent->payload, total);
	WRITE_ONCE(sent->asserted_ns, (u32)READ_ONCE(onramp->pause.asserted_ns));
	smp_wmb(); /* the time is set last; pairs with the first smp_rmb() of onramp_read() */
	WRITE_ONCE(sent->time_ns, time_ns);
}
EXPORT_SYMBOL_GPL(timely_onramp_depart);

/* Copy an entry of timely_onramp.sent. Return: false if unused or written meanwhile. */
static bool onramp_read(const struct timely_sent *entry, struct timely_sent *sent)
{
	sent->time_ns = READ_ONCE(entry->time_ns);
	smp_rmb(); /* pairs with the second smp_wmb() of timely_onramp_depart() */
	sent->span_ns = READ_ONCE(entry->span_ns);
	sent->end_seq = READ_ONCE(entry->end_seq);
	sent->payload = READ_ONCE(entry->payload);
	sent->asserted_ns = READ_ONCE(entry->asserted_ns);
	smp_rmb(); /* pairs with the first smp_wmb() of timely_onramp_depart() */
	return sent->time_ns && sent->time_ns == READ_ONCE(entry->time_ns);
}

/* Whether an entry of timely_onramp.sent is about @seq. With @whole (UDP), @seq is a digest and
 * must be equal to @end_seq. Else @seq must be one of the @payload bytes before @end_seq.
 */
static bool onramp_contains(u32 end_seq, u32 payload, u32 seq, bool whole)
{
	u32 back = end_seq - seq;

	return whole ? !back : back - 1 < payload;
}

/* Estimate when the packet with the byte @seq departed. The packets of an entry are assumed to have
 * departed at equal intervals.
 */
static u64 onramp_departed(const struct timely_sent *sent, u32 seq)
{
	if (!sent->span_ns)
		return sent->time_ns;
	return sent->time_ns +
	       div_u64((u64)sent->span_ns * (sent->payload - (sent->end_seq - seq)), sent->payload);
}

/* ---- signals ---- */

/* How the delay of a signal is obtained, TIMELY_OWD_*, with @peer->lock held. With the option
 * absolute, once a clock daemon has measured the offset of the peer's clock, absolute delays use
 * @signal->real_ns and @sample->error_ns of this offset, and delays are relative while the offset
 * is not valid or its error is above the threshold.
 */
static u8 onramp_method(const struct timely_peer *peer, const struct timely_onramp_cfg *cfg,
			struct timely_owd_signal *signal, struct onramp_sample *sample)
{
	u8 owd = READ_ONCE(cfg->owd);
	s64 offset_ns;

	if (owd != TIMELY_OWD_ABSOLUTE || !peer->sync.at_ns)
		return owd;
	sample->no_offset = !timely_sync_get(&peer->sync, sample->now_ns,
					     READ_ONCE(cfg->pause.threshold_ns), &offset_ns,
					     &sample->error_ns);
	if (sample->no_offset) {
		sample->error_ns = 0;
		return TIMELY_OWD_RELATIVE;
	}
	signal->real_ns = offset_ns;
	return owd;
}

/* Compute the delay that is compared with the threshold, as the qdisc's option owd says. Relative
 * delays and RTTs need the peer's state, which has their minimum filters. Without this state only
 * absolute delays can be computed.
 */
static enum timely_owd_verdict onramp_delay(struct timely_onramp *onramp,
					    const struct timely_onramp_cfg *cfg,
					    struct onramp_sample *sample, u64 *delay_ns)
{
	struct timely_owd_signal signal = {
		.now_ns = sample->now_ns,
		.sent_ns = sample->sent_ns,
		.received_ns = sample->received_ns,
		.turnaround_ns = sample->turnaround_ns,
		.real_ns = ktime_to_ns(ktime_mono_to_real(0)),
	};
	u64 threshold_ns = READ_ONCE(cfg->pause.threshold_ns);
	enum timely_owd_verdict verdict = TIMELY_OWD_GOOD;
	struct timely_peer *peer = onramp->peer;
	u8 owd = READ_ONCE(cfg->owd);
	u32 noticed;

	if (owd == TIMELY_OWD_ABSOLUTE)
		sample->error_ns = READ_ONCE(cfg->clock_error_ns);
	if (!peer)
		return owd == TIMELY_OWD_ABSOLUTE ?
		       timely_owd_absolute(NULL, &onramp->timeline, &signal, sample->error_ns,
					   threshold_ns + sample->error_ns, delay_ns) :
		       TIMELY_OWD_BAD;
	spin_lock(&peer->lock);
	noticed = peer->owd.noticed;
	owd = onramp_method(peer, cfg, &signal, sample);
	if (owd == TIMELY_OWD_ABSOLUTE) {
		verdict = timely_owd_absolute(&peer->owd, &onramp->timeline, &signal,
					      sample->error_ns, threshold_ns + sample->error_ns,
					      delay_ns);
	} else if (sample->received_ns) {
		timely_peer_want_clock(peer);
		verdict = timely_owd_relative(&peer->owd, &onramp->timeline, &signal, delay_ns);
	} else {
		*delay_ns = timely_owd_rtt(&peer->owd, &signal);
	}
	sample->noticed = peer->owd.noticed - noticed;
	spin_unlock(&peer->lock);
	return verdict;
}

/**
 * timely_onramp_first_rtt() - report an RTT from before the first signal to the minimum filter
 * @flow: the flow entry of a flow that is new to On-Ramp
 * @now_ns: current time, CLOCK_MONOTONIC
 * @rtt_ns: lowest RTT of the path as TCP measured it, at most 5 s ago; U64_MAX if none is known
 *
 * The handshake of a connection often finds the path idle. The connection's data may then pass a
 * queue that all senders keep filled together. From signals alone, the minimum filter would take
 * the delay of that queue for the minimum.
 */
void timely_onramp_first_rtt(struct timely_flow *flow, u64 now_ns, u64 rtt_ns)
{
	struct timely_peer *peer = timely_flow_onramp(flow)->peer;

	if (!peer || rtt_ns == U64_MAX)
		return;
	spin_lock_bh(&peer->lock);
	timely_owd_add_rtt(&peer->owd, now_ns, rtt_ns);
	spin_unlock_bh(&peer->lock);
}
EXPORT_SYMBOL_GPL(timely_onramp_first_rtt);

/* Count a signal in the qdisc's statistics. Each signal's b has the weight 1/16 in the average of
 * b; CPUs may race and lose a signal.
 */
static void onramp_statistics(struct timely_onramp_cfg *cfg, u64 delay_ns, u32 b)
{
	u32 bin = fls64(delay_ns / TIMELY_ONRAMP_FIRST_BIN_NS);
	s32 off = (s32)b - (s32)READ_ONCE(cfg->b);

	atomic64_inc(&cfg->signals);
	atomic64_inc(&cfg->delays[min_t(u32, bin, TIMELY_ONRAMP_BINS - 1)]);
	WRITE_ONCE(cfg->b, cfg->b + off / 16);
}

/* Copy the parameters of the controller, which the user may change at any time. A delay may be
 * wrong by @error_ns because of the clocks, so this error is added to the threshold.
 */
static struct timely_pause_cfg onramp_pause_cfg(const struct timely_onramp_cfg *cfg, u64 error_ns)
{
	struct timely_pause_cfg pause = {
		.threshold_ns = READ_ONCE(cfg->pause.threshold_ns),
		.pause_max_ns = READ_ONCE(cfg->pause.pause_max_ns),
		.gain = READ_ONCE(cfg->pause.gain),
		.strawman = READ_ONCE(cfg->pause.strawman),
	};

	if (pause.threshold_ns)
		pause.threshold_ns += error_ns;
	return pause;
}

/* Apply a pause that the controller has set or changed for @signal, and add the pause to the
 * statistics of the flow and the qdisc. @asserted_ns is the sum of the flow's pauses before the
 * change; @begun says that a pause started.
 */
static void onramp_changed(struct timely_flow *flow, struct timely_onramp_cfg *cfg,
			   const struct timely_pause_cfg *pause,
			   const struct timely_pause_signal *signal, u64 asserted_ns, bool begun)
{
	struct timely_onramp *onramp = flow->onramp;
	u64 more = onramp->pause.asserted_ns - asserted_ns;

	onramp->paused_ns += more;
	atomic64_add(more, &cfg->paused_ns);
	if (begun) {
		onramp->pauses++;
		atomic64_inc(&cfg->pauses);
	}
	WRITE_ONCE(flow->pause_until_ns, onramp->pause.until_ns);
	trace_timely_pause(onramp, signal, pause->threshold_ns, begun);
}

/* Pass the delay of the green packet to the controller, with the flow's lock held. Return: whether
 * the flow's pause has changed or its limit has risen, so that the qdisc must be notified.
 */
static bool onramp_control(struct timely_flow *flow, struct timely_onramp_cfg *cfg,
			   const struct onramp_sample *sample, u64 delay_ns)
{
	struct timely_onramp *onramp = flow->onramp;
	struct timely_pause_cfg pause = onramp_pause_cfg(cfg, sample->error_ns);
	u64 asserted_ns = onramp->pause.asserted_ns, rtt_ns = sample->now_ns - sample->sent_ns;
	u64 limit_Bps = onramp->resume.rate_Bps;
	bool begun = sample->now_ns >= onramp->pause.until_ns, changed;
	struct timely_pause_signal signal = {
		.now_ns = sample->now_ns,
		.delay_ns = delay_ns,
		/* @sample has the low 32 bits of the sum of pauses at the departure. Since then the
		 * sum has grown by at most 2 s: the departure was at most 1 s ago, and a pause ends
		 * at most 1 s from now. If a pause was shortened, the sum may be lower now.
		 */
		.asserted_ns = asserted_ns - (u32)max((s32)(asserted_ns - sample->asserted_ns), 0),
		.departures = READ_ONCE(onramp->next),
	};

	WRITE_ONCE(onramp->green_ns, sample->sent_ns);
	WRITE_ONCE(onramp->green_seq, sample->seq);
	onramp->delay_ns = delay_ns;
	onramp->signals++;
	if (onramp->peer) {
		WRITE_ONCE(onramp->peer->delay_ns, delay_ns);
		WRITE_ONCE(onramp->peer->error_ns, sample->error_ns);
		WRITE_ONCE(onramp->peer->signal_at_ns, sample->now_ns);
	}
	if (!pause.threshold_ns)
		return false;
	changed = sample->trimmed ?
		  timely_pause_turn(&onramp->pause, &pause, &signal, sample->turn_ns) :
		  timely_pause_update(&onramp->pause, &pause, &signal);
	if (changed)
		onramp_changed(flow, cfg, &pause, &signal, asserted_ns, begun);
	if (changed && begun)
		timely_resume_pause(&onramp->resume, sample->now_ns, onramp->pause.until_ns,
				    rtt_ns, READ_ONCE(onramp->bytes));
	else
		timely_resume_grow(&onramp->resume, sample->now_ns, rtt_ns);
	WRITE_ONCE(flow->resume_Bps, onramp->resume.rate_Bps);
	onramp_statistics(cfg, delay_ns, onramp->pause.b);
	/* A packet that waits at the former limit may leave sooner. */
	return changed || onramp->resume.rate_Bps > limit_Bps;
}

/* Whether the packet of @sample departed after the green packet of the last accepted signal. Frames
 * of one GSO packet have the same departure time, so their sequence numbers are compared. The
 * result is reliable only with the flow's lock held.
 */
static bool onramp_is_later(const struct timely_onramp *onramp, const struct onramp_sample *sample)
{
	u64 green_ns = READ_ONCE(onramp->green_ns);

	if (sample->sent_ns != green_ns)
		return sample->sent_ns > green_ns;
	return (s32)(sample->seq - READ_ONCE(onramp->green_seq)) > 0;
}

/**
 * timely_onramp_departure() - find when a packet of a flow departed
 * @onramp: On-Ramp's state of the flow
 * @whole: @sample->seq is the digest of a UDP packet, and not the number of a byte of TCP
 * @sample: seq identifies the packet; sent_ns and asserted_ns are set on success
 *
 * If the packet departed more than once, the last departure counts. Departures before that of the
 * green packet of the last accepted signal are searched only for a trimmed packet: its loss is to
 * be repaired even if a later packet has overtaken it.
 *
 * Context: any, under RCU; takes no lock.
 * Return: TIMELY_ONRAMP_accepted; TIMELY_ONRAMP_old if the packet departed no later than the last
 * green packet; TIMELY_ONRAMP_not_in_flight if the departure was not recorded or has been
 * overwritten.
 */
enum timely_onramp_counter timely_onramp_departure(const struct timely_onramp *onramp, bool whole,
						   struct onramp_sample *sample)
{
	u64 green_ns = READ_ONCE(onramp->green_ns), time_ns;
	u32 next = READ_ONCE(onramp->next), i;
	const struct timely_sent *entry;
	struct timely_sent sent;

	for (i = 1; i <= TIMELY_SENT; i++) {
		entry = &onramp->sent[(next - i) % TIMELY_SENT];
		/* Few entries contain the packet, so compare before copying consistently. */
		if (onramp_contains(READ_ONCE(entry->end_seq), READ_ONCE(entry->payload),
				    sample->seq, whole) &&
		    onramp_read(entry, &sent) &&
		    onramp_contains(sent.end_seq, sent.payload, sample->seq, whole)) {
			sample->asserted_ns = sent.asserted_ns;
			sample->sent_ns = onramp_departed(&sent, sample->seq);
			return sample->trimmed || onramp_is_later(onramp, sample) ?
			       TIMELY_ONRAMP_accepted : TIMELY_ONRAMP_old;
		}
		/* Older entries have earlier departure times. A time of 0 says nothing: the entry
		 * is unused, or is the newest and is being written.
		 */
		time_ns = READ_ONCE(entry->time_ns);
		if (!sample->trimmed && time_ns && time_ns <= green_ns)
			return TIMELY_ONRAMP_old;
	}
	return TIMELY_ONRAMP_not_in_flight;
}

/**
 * timely_onramp_signal() - handle a signal: pause the flow if the packet's delay is too long
 * @flow: the flow entry, with On-Ramp's state
 * @sample: the signal, with the departure of its packet; noticed and doubted are set
 *
 * Context: softirq or process, under RCU.
 * Return: TIMELY_ONRAMP_accepted; or the reason why the signal is ignored: TIMELY_ONRAMP_no_flow if
 * no qdisc uses signals of this kind for the flow; TIMELY_ONRAMP_old if a signal about this or a
 * later packet was accepted before; TIMELY_ONRAMP_bad_time if the delay cannot be computed, because
 * the times are impossible or the flow has no peer.
 */
enum timely_onramp_counter timely_onramp_signal(struct timely_flow *flow,
						struct onramp_sample *sample)
{
	struct timely_onramp *onramp = flow->onramp;
	enum timely_onramp_counter result = TIMELY_ONRAMP_accepted;
	enum timely_owd_verdict verdict = TIMELY_OWD_BAD;
	struct timely_onramp_cfg *cfg;
	bool changed = false;
	u64 delay_ns = 0;

	spin_lock_bh(&flow->lock);
	cfg = flow->notifier ? &flow->notifier->onramp : NULL;
	/* The last condition: the signal is an OR-ACK but the qdisc uses RTTs, or vice versa. */
	if (!cfg || !READ_ONCE(cfg->pause.threshold_ns) ||
	    (READ_ONCE(cfg->owd) == TIMELY_OWD_RTT) == !!sample->received_ns)
		result = TIMELY_ONRAMP_no_flow;
	else if (!onramp_is_later(onramp, sample))
		result = TIMELY_ONRAMP_old;
	else if (sample->now_ns - sample->sent_ns <= TIMELY_PAUSE_DELAY_MAX_NS &&
		 sample->turnaround_ns <= sample->now_ns - sample->sent_ns)
		verdict = onramp_delay(onramp, cfg, sample, &delay_ns);
	if (result == TIMELY_ONRAMP_accepted && verdict == TIMELY_OWD_BAD)
		result = TIMELY_ONRAMP_bad_time;
	else if (result == TIMELY_ONRAMP_accepted)
		changed = onramp_control(flow, cfg, sample, delay_ns);
	sample->doubted = verdict == TIMELY_OWD_DOUBTED;
	spin_unlock_bh(&flow->lock);
	if (changed)
		timely_flow_changed(flow);
	return result;
}

/* End the rate limit of a flow if its last pause and the departure of its last green packet are at
 * least @silence_ns ago: the limit is computed from the flow's rate before the pause, which says
 * nothing about the path any more.
 */
static void onramp_end_limit(struct timely_flow *flow, u64 now_ns, s64 silence_ns)
{
	struct timely_onramp *onramp = timely_flow_onramp(flow);
	u64 last_ns = max(READ_ONCE(onramp->green_ns), READ_ONCE(flow->pause_until_ns));

	if ((s64)(now_ns - last_ns) < silence_ns ||
	    READ_ONCE(flow->resume_Bps) == TIMELY_RESUME_UNLIMITED)
		return;
	spin_lock_bh(&flow->lock);
	timely_resume_init(&onramp->resume);
	WRITE_ONCE(flow->resume_Bps, TIMELY_RESUME_UNLIMITED);
	spin_unlock_bh(&flow->lock);
}

/**
 * timely_onramp_no_signal() - end the rate limit of a flow that sends but gets no signals
 * @flow: the flow entry, with On-Ramp's state
 * @now_ns: current time, CLOCK_MONOTONIC
 *
 * The rate limit after a pause grows with signals only. Signals end if the receiver has stopped, or
 * if the qdisc's option owd was changed.
 */
void timely_onramp_no_signal(struct timely_flow *flow, u64 now_ns)
{
	onramp_end_limit(flow, now_ns, ONRAMP_NO_SIGNAL_NS);
}
EXPORT_SYMBOL_GPL(timely_onramp_no_signal);

/**
 * timely_onramp_start() - pause a flow that starts or was idle, by the last delay to its peer
 * @flow: the flow entry, with On-Ramp's state
 * @now_ns: current time, CLOCK_MONOTONIC
 *
 * A signal of any flow to the same peer may have shown a delay above the threshold after this
 * flow's last green packet departed. This flow then starts with the pause that the delay requires.
 */
void timely_onramp_start(struct timely_flow *flow, u64 now_ns)
{
	struct timely_onramp *onramp = timely_flow_onramp(flow);
	struct timely_peer *peer = onramp->peer;
	struct timely_pause_signal signal = {
		.now_ns = now_ns,
		.departures = READ_ONCE(onramp->next),
	};
	struct timely_onramp_cfg *cfg;
	struct timely_pause_cfg pause;
	u64 asserted_ns, signal_at_ns;

	if (!peer)
		return;
	onramp_end_limit(flow, now_ns, ONRAMP_IDLE_NS);
	signal_at_ns = READ_ONCE(peer->signal_at_ns);
	signal.delay_ns = READ_ONCE(peer->delay_ns);
	/* A queue with a delay of D ns that a signal showed more than D ns ago has drained. */
	if (signal_at_ns <= READ_ONCE(onramp->green_ns) || signal_at_ns > now_ns ||
	    now_ns - signal_at_ns > signal.delay_ns)
		return;
	spin_lock_bh(&flow->lock);
	cfg = flow->notifier ? &flow->notifier->onramp : NULL;
	if (cfg && cfg->pause.threshold_ns) {
		pause = onramp_pause_cfg(cfg, READ_ONCE(peer->error_ns));
		asserted_ns = onramp->pause.asserted_ns;
		if (timely_pause_start(&onramp->pause, &pause, &signal, now_ns - signal_at_ns))
			onramp_changed(flow, cfg, &pause, &signal, asserted_ns, true);
	}
	spin_unlock_bh(&flow->lock);
}
EXPORT_SYMBOL_GPL(timely_onramp_start);
