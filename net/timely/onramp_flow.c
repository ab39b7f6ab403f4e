// SPDX-License-Identifier: GPL-2.0
/*
 * What On-Ramp knows of flows: when their packets departed, and what was heard of these packets.
 * A signal, an OR-ACK or an RTT, becomes a delay, and the controller (pause.c) makes of the delay
 * a pause, which the qdisc keeps to.
 */

#include <linux/export.h>
#include <linux/rhashtable.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include <net/timely_flow.h>
#include <net/timely_peer.h>
#include <net/timely_tenant.h>
#include <timely/engine/owd.h>

#include <timely_memcg.h>

#include "onramp.h"

/* A flow of which nothing that it sent since was heard has had a rest. */
#define ONRAMP_REST_NS		NSEC_PER_MSEC
/* And one that sends, but of which nothing is heard, after this. */
#define ONRAMP_UNHEARD_NS	(10 * NSEC_PER_MSEC)

/* Packets of a flow that follow each other within this are noted together: so 128
 * entries are two milliseconds of the fastest flow.
 */
#define ONRAMP_AT_ONCE_NS	(16 * NSEC_PER_USEC)

static int onramp_compare(struct rhashtable_compare_arg *arg, const void *object)
{
	const struct timely_onramp *onramp = object;

	return !timely_tuple_equal(&onramp->tuple, arg->key);
}

static const struct rhashtable_params onramp_tuples_params = {
	.key_len	= sizeof(struct timely_tuple),
	.key_offset	= offsetof(struct timely_onramp, tuple),
	.head_offset	= offsetof(struct timely_onramp, by_tuple),
	.obj_cmpfn	= onramp_compare,
	.automatic_shrinking = true,
};

/* 3.3 KB each: in one of a power of two a fifth of the memory would be lost. */
static struct kmem_cache *onramp_cache;
static struct rhashtable onramp_tuples;

/* ---- flows ---- */

/**
 * timely_onramp_lookup() - what On-Ramp knows of a flow
 * @tuple: the flow's addresses
 *
 * Return: that, under RCU; NULL if the flow is not known.
 */
struct timely_onramp *timely_onramp_lookup(const struct timely_tuple *tuple)
{
	return rhashtable_lookup(&onramp_tuples, tuple, onramp_tuples_params);
}

static struct timely_onramp *onramp_new(const struct sock *sk)
{
	struct timely_budget *budget = timely_budget_take(sock_net(sk),
							  TIMELY_BUDGET_onramp_flows);
	struct timely_onramp *onramp;
	struct mem_cgroup *before;

	if (!budget)
		return NULL;
	before = timely_charge_begin(sk);
	onramp = kmem_cache_zalloc(onramp_cache, GFP_ATOMIC | __GFP_ACCOUNT | __GFP_NOWARN);
	timely_charge_end(before);
	if (onramp)
		onramp->budget = budget;
	else
		timely_budget_return(budget);
	return onramp;
}

/**
 * timely_onramp_free() - nobody can find it any more
 * @onramp: what On-Ramp knew of a flow; NULL is allowed
 */
void timely_onramp_free(struct timely_onramp *onramp)
{
	struct timely_budget *budget;

	if (!onramp)
		return;
	budget = onramp->budget;
	kmem_cache_free(onramp_cache, onramp);
	timely_budget_return(budget);
}

/**
 * timely_onramp_add() - let On-Ramp know of a flow that has a record
 * @flow: the record
 * @tuple: its addresses; what is there with the same is another qdisc's, or of a
 *	connection that is gone, and is not found any more
 * @sk: the socket that sends it: its network namespace's budget is used, and the
 *	memory is charged to its memory control group
 *
 * Return: false if there was no memory, or the budget is used up.
 */
bool timely_onramp_add(struct timely_flow *flow, const struct timely_tuple *tuple,
		       const struct sock *sk)
{
	struct timely_onramp *onramp = onramp_new(sk);
	struct mem_cgroup *before;
	struct timely_onramp *old;
	bool there;

	if (!onramp)
		return false;
	onramp->tuple = *tuple;
	onramp->flow = flow;
	timely_pause_init(&onramp->pause);
	timely_resume_init(&onramp->resume);
	before = timely_charge_begin(sk);
	onramp->peer = timely_peer_get(sock_net(sk), tuple);
	timely_charge_end(before);
	spin_lock_bh(&flow->lock);
	there = flow->onramp;
	if (!there) {
		/* Pairs with timely_flow_onramp(): who sees the pointer sees all members. */
		smp_store_release(&flow->onramp, onramp);
	}
	spin_unlock_bh(&flow->lock);
	if (there) {
		timely_peer_put(onramp->peer);
		timely_onramp_free(onramp);
		return true;
	}
	rcu_read_lock();
	old = timely_onramp_lookup(tuple);
	if (old)
		rhashtable_remove_fast(&onramp_tuples, &old->by_tuple, onramp_tuples_params);
	/* Without a place in the table no OR-ACK finds it: it is just not held. */
	rhashtable_insert_fast(&onramp_tuples, &onramp->by_tuple, onramp_tuples_params);
	rcu_read_unlock();
	return true;
}
EXPORT_SYMBOL_GPL(timely_onramp_add);

/**
 * timely_onramp_flow() - the record of a flow whose congestion control wants none
 * @tuple: its addresses
 * @sk: as for timely_onramp_add()
 *
 * Return: the record, to be released with timely_flow_put(); NULL if there is no
 * memory, or a budget is used up.
 */
struct timely_flow *timely_onramp_flow(const struct timely_tuple *tuple, const struct sock *sk)
{
	struct timely_onramp *onramp;
	struct timely_flow *flow = NULL;

	rcu_read_lock();
	onramp = timely_onramp_lookup(tuple);
	/* One that a congestion control has asked for is another connection's. */
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

/**
 * timely_onramp_drop() - the last reference to a flow has gone
 * @onramp: what On-Ramp knew of it, freed after RCU readers have left
 */
void timely_onramp_drop(struct timely_onramp *onramp)
{
	rhashtable_remove_fast(&onramp_tuples, &onramp->by_tuple, onramp_tuples_params);
	timely_peer_put(onramp->peer);
}

/* May the packet be noted with the one before, as more of the same? */
static bool onramp_continues(const struct timely_sent *sent,
			     const struct timely_departure *departure, u32 payload)
{
	return payload && departure->end_seq - payload == sent->end_seq &&
	       departure->time_ns - sent->time_ns < ONRAMP_AT_ONCE_NS;
}

/**
 * timely_onramp_depart() - a packet is handed to the device
 * @onramp: of its flow
 * @departure: which, how large, and when
 * @payload: its bytes of sequence space, 0 for UDP
 *
 * Entries are written by the qdisc and read by whoever has an OR-ACK. Should two
 * qdiscs write at once some departures are lost.
 */
void timely_onramp_depart(struct timely_onramp *onramp,
			  const struct timely_departure *departure, u32 payload)
{
	struct timely_sent *sent = &onramp->sent[(onramp->next - 1) % TIMELY_SENT];
	u64 time_ns = sent->time_ns;
	u32 span_ns = 0, all = payload;

	WRITE_ONCE(onramp->bytes, onramp->bytes + departure->bytes);
	if (onramp_continues(sent, departure, payload)) {
		span_ns = departure->time_ns - time_ns;
		all += sent->payload;
	} else {
		sent = &onramp->sent[onramp->next % TIMELY_SENT];
		WRITE_ONCE(onramp->next, onramp->next + 1);
		time_ns = departure->time_ns;
	}
	WRITE_ONCE(sent->time_ns, 0);
	smp_wmb(); /* the old time is gone before what is new */
	WRITE_ONCE(sent->span_ns, span_ns);
	WRITE_ONCE(sent->end_seq, departure->end_seq);
	WRITE_ONCE(sent->payload, all);
	WRITE_ONCE(sent->asserted_ns, (u32)READ_ONCE(onramp->pause.asserted_ns));
	smp_wmb(); /* and that is there before the new time */
	WRITE_ONCE(sent->time_ns, time_ns);
}
EXPORT_SYMBOL_GPL(timely_onramp_depart);

/* Read an entry. Return: false if it is being written. */
static bool onramp_read(const struct timely_sent *entry, struct timely_sent *sent)
{
	sent->time_ns = READ_ONCE(entry->time_ns);
	smp_rmb(); /* pairs with both of timely_onramp_depart() */
	sent->span_ns = READ_ONCE(entry->span_ns);
	sent->end_seq = READ_ONCE(entry->end_seq);
	sent->payload = READ_ONCE(entry->payload);
	sent->asserted_ns = READ_ONCE(entry->asserted_ns);
	smp_rmb(); /* likewise */
	return sent->time_ns && sent->time_ns == READ_ONCE(entry->time_ns);
}

/* Is a byte among @payload ones before @end_seq, or, where @whole, is that just its number? */
static bool onramp_contains(u32 end_seq, u32 payload, u32 seq, bool whole)
{
	u32 back = end_seq - seq;

	return whole ? !back : back - 1 < payload;
}

/* When the packet departed that a byte of an entry is in: packets are spread evenly. */
static u64 onramp_departed(const struct timely_sent *sent, u32 seq)
{
	if (!sent->span_ns)
		return sent->time_ns;
	return sent->time_ns +
	       div_u64((u64)sent->span_ns * (sent->payload - (sent->end_seq - seq)), sent->payload);
}

/* ---- a signal ---- */

/* The delay that the controller is to act on. */
static enum timely_owd_verdict onramp_delay(struct timely_onramp *onramp,
					    const struct timely_onramp_law *law,
					    struct onramp_news *news, u64 *delay_ns)
{
	struct timely_owd_signal signal = {
		.now_ns = news->now_ns,
		.sent_ns = news->sent_ns,
		.received_ns = news->received_ns,
		.turnaround_ns = news->turnaround_ns,
		.real_ns = ktime_to_ns(ktime_mono_to_real(0)),
	};
	u64 error_ns = READ_ONCE(law->clock_error_ns), threshold_ns;
	enum timely_owd_verdict verdict = TIMELY_OWD_GOOD;
	struct timely_peer *peer = onramp->peer;
	u8 owd = READ_ONCE(law->owd);
	u32 noticed;

	threshold_ns = READ_ONCE(law->pause.threshold_ns) + error_ns;
	if (!peer)
		return owd == TIMELY_OWD_ABSOLUTE ?
		       timely_owd_absolute(NULL, &onramp->timeline, &signal, error_ns,
					   threshold_ns, delay_ns) : TIMELY_OWD_BAD;
	spin_lock(&peer->lock);
	noticed = peer->owd.noticed;
	if (owd == TIMELY_OWD_ABSOLUTE) {
		verdict = timely_owd_absolute(&peer->owd, &onramp->timeline, &signal, error_ns,
					      threshold_ns, delay_ns);
	} else if (news->received_ns) {
		timely_peer_want_clock(peer);
		verdict = timely_owd_relative(&peer->owd, &onramp->timeline, &signal, delay_ns);
	} else {
		*delay_ns = timely_owd_rtt(&peer->owd, &signal);
	}
	news->noticed = peer->owd.noticed - noticed;
	spin_unlock(&peer->lock);
	return verdict;
}

/**
 * timely_onramp_least() - a round trip of the path of a flow that is new to On-Ramp
 * @flow: its record
 * @now_ns: the time
 * @rtt_ns: the least that is known, all ones for none
 *
 * A connection often begins when its path is idle, and what it sends then goes
 * through a queue that all who send have made, and keep: the first delay that a
 * signal tells of is not the least.
 */
void timely_onramp_least(struct timely_flow *flow, u64 now_ns, u64 rtt_ns)
{
	struct timely_peer *peer = timely_flow_onramp(flow)->peer;

	if (!peer || rtt_ns == U64_MAX)
		return;
	spin_lock_bh(&peer->lock);
	timely_owd_least(&peer->owd, now_ns, rtt_ns);
	spin_unlock_bh(&peer->lock);
}
EXPORT_SYMBOL_GPL(timely_onramp_least);

static void onramp_statistics(struct timely_onramp_law *law, u64 delay_ns, u32 b)
{
	u32 bin = fls64(delay_ns / TIMELY_ONRAMP_FIRST_BIN_NS);
	s32 off = (s32)b - (s32)READ_ONCE(law->b);

	atomic64_inc(&law->signals);
	atomic64_inc(&law->delays[min_t(u32, bin, TIMELY_ONRAMP_BINS - 1)]);
	WRITE_ONCE(law->b, law->b + off / 16);
}

static struct timely_pause_law onramp_pause_law(const struct timely_onramp_law *law)
{
	struct timely_pause_law pause = {
		.threshold_ns = READ_ONCE(law->pause.threshold_ns),
		.pause_max_ns = READ_ONCE(law->pause.pause_max_ns),
		.gain = READ_ONCE(law->pause.gain),
		.strawman = READ_ONCE(law->pause.strawman),
	};

	if (READ_ONCE(law->owd) == TIMELY_OWD_ABSOLUTE)
		pause.threshold_ns += READ_ONCE(law->clock_error_ns);
	return pause;
}

/* What the controller has changed: the flow's accounts, and the qdisc's. */
static void onramp_changed(struct timely_flow *flow, struct timely_onramp_law *law,
			   u64 asserted_ns, bool begun)
{
	struct timely_onramp *onramp = flow->onramp;
	u64 more = onramp->pause.asserted_ns - asserted_ns;

	onramp->paused_ns += more;
	atomic64_add(more, &law->paused_ns);
	if (begun) {
		onramp->pauses++;
		atomic64_inc(&law->pauses);
	}
	WRITE_ONCE(flow->pause_until_ns, onramp->pause.until_ns);
}

/* Let the controller hear of a delay, with the flow's lock held. Return: true if
 * the qdisc is to be told.
 */
static bool onramp_control(struct timely_flow *flow, struct timely_onramp_law *law,
			   const struct onramp_news *news, u64 delay_ns)
{
	struct timely_onramp *onramp = flow->onramp;
	struct timely_pause_law pause = onramp_pause_law(law);
	u64 asserted_ns = onramp->pause.asserted_ns, rtt_ns = news->now_ns - news->sent_ns;
	bool begun = news->now_ns >= onramp->pause.until_ns, changed;
	struct timely_pause_signal signal = {
		.now_ns = news->now_ns,
		.delay_ns = delay_ns,
		/* The low bits, and what has come since: less than 4 s. */
		.asserted_ns = asserted_ns - (u32)max((s32)(asserted_ns - news->asserted_ns), 0),
		.departures = READ_ONCE(onramp->next),
	};

	WRITE_ONCE(onramp->green_ns, news->sent_ns);
	WRITE_ONCE(onramp->green_seq, news->seq);
	onramp->delay_ns = delay_ns;
	onramp->signals++;
	if (onramp->peer) {
		WRITE_ONCE(onramp->peer->delay_ns, delay_ns);
		WRITE_ONCE(onramp->peer->heard_ns, news->now_ns);
	}
	if (!pause.threshold_ns)
		return false;
	changed = timely_pause_hear(&onramp->pause, &pause, &signal);
	if (changed)
		onramp_changed(flow, law, asserted_ns, begun);
	if (changed && begun)
		timely_resume_hold(&onramp->resume, news->now_ns, onramp->pause.until_ns,
				   rtt_ns, READ_ONCE(onramp->bytes));
	else
		timely_resume_go_on(&onramp->resume, news->now_ns, rtt_ns);
	WRITE_ONCE(flow->resume_Bps, onramp->resume.rate_Bps);
	onramp_statistics(law, delay_ns, onramp->pause.b);
	return changed;
}

/* Is the packet one after that of the last signal? Of a segment several packets
 * may be acknowledged. The answer counts with the flow's lock only.
 */
static bool onramp_is_later(const struct timely_onramp *onramp, const struct onramp_news *news)
{
	u64 green_ns = READ_ONCE(onramp->green_ns);

	if (news->sent_ns != green_ns)
		return news->sent_ns > green_ns;
	return (s32)(news->seq - READ_ONCE(onramp->green_seq)) > 0;
}

/**
 * timely_onramp_departure() - when a packet of a flow departed
 * @onramp: what On-Ramp knows of the flow
 * @whole: @news->seq is the number of a whole packet (UDP), not of a byte in it (TCP)
 * @news: its seq names the packet; sent_ns and asserted_ns are set
 *
 * If the packet departed more than once, the last time counts. Packets that departed before the
 * one that the last signal was about are not looked for. Takes no lock.
 *
 * Return: TIMELY_ONRAMP_accepted, _old or _not_in_flight.
 */
enum timely_onramp_counter timely_onramp_departure(const struct timely_onramp *onramp, bool whole,
						   struct onramp_news *news)
{
	u64 green_ns = READ_ONCE(onramp->green_ns), time_ns;
	u32 next = READ_ONCE(onramp->next), i;
	const struct timely_sent *entry;
	struct timely_sent sent;

	for (i = 1; i <= TIMELY_SENT; i++) {
		entry = &onramp->sent[(next - i) % TIMELY_SENT];
		/* Most are not read as a whole. */
		if (onramp_contains(READ_ONCE(entry->end_seq), READ_ONCE(entry->payload),
				    news->seq, whole) &&
		    onramp_read(entry, &sent) &&
		    onramp_contains(sent.end_seq, sent.payload, news->seq, whole)) {
			news->asserted_ns = sent.asserted_ns;
			news->sent_ns = onramp_departed(&sent, news->seq);
			return onramp_is_later(onramp, news) ? TIMELY_ONRAMP_accepted :
							       TIMELY_ONRAMP_old;
		}
		/* 0 while it is written: that is the newest, or never was one. */
		time_ns = READ_ONCE(entry->time_ns);
		if (time_ns && time_ns <= green_ns)
			return TIMELY_ONRAMP_old;
	}
	return TIMELY_ONRAMP_not_in_flight;
}

/**
 * timely_onramp_hear() - a signal came for a flow: pause the flow if its path is overloaded
 * @flow: the flow's record
 * @news: the signal, with the times of its packet; noticed and doubted are set
 *
 * Return: what became of the signal: TIMELY_ONRAMP_accepted, _no_flow, _old or _bad_time.
 */
enum timely_onramp_counter timely_onramp_hear(struct timely_flow *flow, struct onramp_news *news)
{
	struct timely_onramp *onramp = flow->onramp;
	enum timely_onramp_counter result = TIMELY_ONRAMP_accepted;
	enum timely_owd_verdict verdict = TIMELY_OWD_BAD;
	struct timely_onramp_law *law;
	bool changed = false;
	u64 delay_ns = 0;

	spin_lock_bh(&flow->lock);
	law = flow->waiter ? &flow->waiter->onramp : NULL;
	if (!law || !READ_ONCE(law->pause.threshold_ns) ||
	    (READ_ONCE(law->owd) == TIMELY_OWD_RTT) == !!news->received_ns)
		result = TIMELY_ONRAMP_no_flow;
	else if (!onramp_is_later(onramp, news))
		result = TIMELY_ONRAMP_old;
	else if (news->now_ns - news->sent_ns <= TIMELY_PAUSE_DELAY_MAX_NS &&
		 news->turnaround_ns <= news->now_ns - news->sent_ns)
		verdict = onramp_delay(onramp, law, news, &delay_ns);
	if (result == TIMELY_ONRAMP_accepted && verdict == TIMELY_OWD_BAD)
		result = TIMELY_ONRAMP_bad_time;
	else if (result == TIMELY_ONRAMP_accepted)
		changed = onramp_control(flow, law, news, delay_ns);
	news->doubted = verdict == TIMELY_OWD_DOUBTED;
	spin_unlock_bh(&flow->lock);
	if (changed)
		timely_flow_changed(flow);
	return result;
}

/* A flow of which nothing was heard for so long is not limited by what it sent before. */
static void onramp_rest(struct timely_flow *flow, u64 now_ns, s64 silence_ns)
{
	struct timely_onramp *onramp = timely_flow_onramp(flow);
	u64 heard_ns = max(READ_ONCE(onramp->green_ns), READ_ONCE(flow->pause_until_ns));

	if ((s64)(now_ns - heard_ns) < silence_ns ||
	    READ_ONCE(flow->resume_Bps) == TIMELY_RESUME_UNLIMITED)
		return;
	spin_lock_bh(&flow->lock);
	timely_resume_init(&onramp->resume);
	WRITE_ONCE(flow->resume_Bps, TIMELY_RESUME_UNLIMITED);
	spin_unlock_bh(&flow->lock);
}

/**
 * timely_onramp_unheard() - a flow sends that is limited after a hold
 * @flow: its record
 * @now_ns: the time
 *
 * Only signals let the limit grow. If none comes any more, as the receiver has left
 * or the kind of delay was changed, there is none.
 */
void timely_onramp_unheard(struct timely_flow *flow, u64 now_ns)
{
	onramp_rest(flow, now_ns, ONRAMP_UNHEARD_NS);
}
EXPORT_SYMBOL_GPL(timely_onramp_unheard);

/**
 * timely_onramp_recall() - a flow starts to send, or does so anew
 * @flow: its record
 * @now_ns: the time
 *
 * If others have found its path overloaded since it sent last, it begins with the
 * pause that they would have had.
 */
void timely_onramp_recall(struct timely_flow *flow, u64 now_ns)
{
	struct timely_onramp *onramp = timely_flow_onramp(flow);
	struct timely_peer *peer = onramp->peer;
	struct timely_pause_signal signal = {
		.now_ns = now_ns,
		.departures = READ_ONCE(onramp->next),
	};
	struct timely_onramp_law *law;
	struct timely_pause_law pause;
	u64 asserted_ns, heard_ns;

	if (!peer)
		return;
	onramp_rest(flow, now_ns, ONRAMP_REST_NS);
	heard_ns = READ_ONCE(peer->heard_ns);
	signal.delay_ns = READ_ONCE(peer->delay_ns);
	if (heard_ns <= READ_ONCE(onramp->green_ns) || heard_ns > now_ns ||
	    now_ns - heard_ns > signal.delay_ns)
		return;
	spin_lock_bh(&flow->lock);
	law = flow->waiter ? &flow->waiter->onramp : NULL;
	if (law && law->pause.threshold_ns) {
		pause = onramp_pause_law(law);
		asserted_ns = onramp->pause.asserted_ns;
		if (timely_pause_start(&onramp->pause, &pause, &signal, now_ns - heard_ns))
			onramp_changed(flow, law, asserted_ns, true);
	}
	spin_unlock_bh(&flow->lock);
}
EXPORT_SYMBOL_GPL(timely_onramp_recall);

/* ---- a walk through the flows ---- */

static void onramp_flow_status(struct timely_onramp *onramp,
			       struct timely_onramp_flow_status *status)
{
	struct timely_flow *flow = onramp->flow;
	u64 now_ns = ktime_get_ns();

	spin_lock_bh(&flow->lock);
	*status = (struct timely_onramp_flow_status) {
		.tuple = onramp->tuple,
		.delay_ns = onramp->delay_ns,
		.signals = onramp->signals,
		.pauses = onramp->pauses,
		.paused_ns = onramp->paused_ns,
		.left_ns = max((s64)(onramp->pause.until_ns - now_ns), 0LL),
		.b = onramp->pause.b,
	};
	spin_unlock_bh(&flow->lock);
}

/**
 * struct timely_onramp_walk - a walk through the flows of a network namespace
 * @net: the namespace
 * @iter: where the walk is in the table of all flows
 * @again: the flow at @iter was refused and is to be told of again
 */
struct timely_onramp_walk {
	const struct net *net;
	struct rhashtable_iter iter;
	bool again;
};

/* Flows of all namespaces are looked at; after so many the processor is offered to others. */
#define ONRAMP_WALK_TURN	1024

/**
 * timely_onramp_walk_begin() - begin a walk through the flows of a network namespace
 * @net: the namespace, which outlives the walk
 *
 * Return: the walk, to be given to timely_onramp_walk_end(); NULL if there is no memory.
 */
struct timely_onramp_walk *timely_onramp_walk_begin(const struct net *net)
{
	struct timely_onramp_walk *walk = kzalloc(sizeof(*walk), GFP_KERNEL_ACCOUNT);

	if (!walk)
		return NULL;
	walk->net = net;
	rhashtable_walk_enter(&onramp_tuples, &walk->iter);
	return walk;
}

/**
 * timely_onramp_walk_end() - end a walk
 * @walk: the walk; NULL is allowed
 */
void timely_onramp_walk_end(struct timely_onramp_walk *walk)
{
	if (!walk)
		return;
	rhashtable_walk_exit(&walk->iter);
	kfree(walk);
}

/* Tell of some flows. Return: 0 at the end; -EAGAIN to go on; what @tell returned. */
static int onramp_walk_some(struct timely_onramp_walk *walk, timely_onramp_tell tell, void *arg)
{
	struct timely_onramp_flow_status status;
	struct timely_onramp *onramp;
	int i, err = 0;

	rhashtable_walk_start(&walk->iter);
	for (i = 0; !err && i < ONRAMP_WALK_TURN; i++) {
		onramp = walk->again ? rhashtable_walk_peek(&walk->iter) :
				       rhashtable_walk_next(&walk->iter);
		walk->again = false;
		if (!onramp)
			break;
		/* The table is being resized: begun again, some come twice. */
		if (IS_ERR(onramp) || onramp->tuple.net != (unsigned long)walk->net)
			continue;
		onramp_flow_status(onramp, &status);
		err = tell(&status, arg);
		walk->again = err;
	}
	rhashtable_walk_stop(&walk->iter);
	return err ? : i == ONRAMP_WALK_TURN ? -EAGAIN : 0;
}

/**
 * timely_onramp_walk() - tell of the flows of a network namespace, from where the walk is
 * @walk: the walk
 * @tell: called for each flow, under RCU; a flow that @tell refuses is the first of the next
 *	call
 * @arg: for @tell
 *
 * Flows that come or go meanwhile may be told of twice or not at all. May sleep.
 *
 * Return: 0 at the end, or what @tell returned other than 0.
 */
int timely_onramp_walk(struct timely_onramp_walk *walk, timely_onramp_tell tell, void *arg)
{
	int err;

	while ((err = onramp_walk_some(walk, tell, arg)) == -EAGAIN)
		cond_resched();
	return err;
}

/* ---- loading ---- */

/**
 * timely_onramp_flows_init() - make ready
 *
 * Return: 0 or -ENOMEM.
 */
int timely_onramp_flows_init(void)
{
	int err;

	onramp_cache = kmem_cache_create("timely_onramp", sizeof(struct timely_onramp), 0,
					 SLAB_HWCACHE_ALIGN, NULL);
	if (!onramp_cache)
		return -ENOMEM;
	err = rhashtable_init(&onramp_tuples, &onramp_tuples_params);
	if (err)
		kmem_cache_destroy(onramp_cache);
	return err;
}

/** timely_onramp_flows_exit() - all flows have been put, and RCU's callbacks have run */
void timely_onramp_flows_exit(void)
{
	rhashtable_destroy(&onramp_tuples);
	kmem_cache_destroy(onramp_cache);
}
