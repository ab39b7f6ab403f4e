// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp (NSDI'21) in the sender: what OR-ACKs tell of a path's delay becomes a
 * pause of the flow, which the qdisc keeps to.
 *
 *	OR-ACK -> whose is it, is it true -> one-way delay -> pause.c -> the flow
 *
 * An OR-ACK is an instruction from the network to stop sending. It counts only if
 * its tag was made with a key of this network namespace, its flow is alive and
 * held by a qdisc, the packet it names departed a short while ago and after the
 * one that the last OR-ACK was about. What a flood of others may cost is bounded.
 *
 * The delay may be had in three ways:
 *
 *	absolute	receiver's time less ours, by clocks that are in step
 *	relative	by clocks as they are: the receiver's is one more remote
 *			clock that clock.c tells in our time, as OR-ACKs come back
 *			and are never early. That is the way there with the least
 *			way back; what it exceeds its own least by counts.
 *	rtt		what RTTs that TCP sees exceed their least by: no receiver
 *
 * Notable differences from the paper: an OR-ACK is authenticated; after a hold a
 * flow's rate is limited for a while, see timely_resume_hold().
 */

#include <linux/bitmap.h>
#include <linux/in.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/rhashtable.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/tracepoint.h>
#include <linux/workqueue.h>
#include <net/busy_poll.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>
#include <net/udp.h>

#include <net/timely_flow.h>
#include <net/timely_nic.h>
#include <net/timely_onramp.h>
#include <net/timely_peer.h>
#include <net/timely_tenant.h>
#include <net/timely_tracepoint.h>
#include <trace/events/tcp.h>
#include <timely/engine/clock.h>
#include <timely/engine/owd.h>

#include <timely_lookup.h>
#include <timely_memcg.h>
#include <timely_probe.h>
#include <timely_socket.h>

/* A flow of which nothing that it sent since was heard has had a rest. */
#define ONRAMP_REST_NS		NSEC_PER_MSEC
/* And one that sends, but of which nothing is heard, after this. */
#define ONRAMP_UNHEARD_NS	(10 * NSEC_PER_MSEC)

/* Packets of a flow that follow each other within this are noted together: so 128
 * entries are two milliseconds of the fastest flow.
 */
#define ONRAMP_AT_ONCE_NS	(16 * NSEC_PER_USEC)

/* OR-ACKs whose tag is right but that do not count, those of an impossible time for example: so
 * many may try for each of so many groups of addresses in each period. An OR-ACK whose tag is
 * wrong uses up nothing, as anybody can send it from any address, nor does one that is replayed.
 */
#define ONRAMP_BAD_GROUPS	256
#define ONRAMP_BAD_MAX		1024
#define ONRAMP_BAD_NS		(4 * NSEC_PER_MSEC)

/* Without users the probe stays for so long: whoever switches On-Ramp on and off in a loop
 * does not patch the kernel's text each time.
 */
#define ONRAMP_PROBE_LINGER	(5 * HZ)

/* An ACK that waited longer in this host, or whose stamp is older, has no time of arrival. */
#define ONRAMP_WAITED_MAX_NS	NSEC_PER_SEC

static ushort orack_port = TIMELY_ORACK_PORT;
module_param(orack_port, ushort, 0444);
MODULE_PARM_DESC(orack_port, "UDP port of OR-ACKs, the same on all hosts [1 to 65535]");

/**
 * struct onramp_counters - of one CPU
 * @count: by enum timely_onramp_counter
 */
struct onramp_counters {
	u64 count[TIMELY_ONRAMP_COUNTER_COUNT];
};

/**
 * struct onramp_key - a key, under RCU
 * @key: the secret
 * @rcu: readers may still look at it
 */
struct onramp_key {
	struct timely_orack_key key;
	struct rcu_head rcu;
};

/**
 * struct onramp_net - On-Ramp in a network namespace
 * @counters: per CPU
 * @lock: guards changes of what follows
 * @listeners: qdiscs that want OR-ACKs
 * @sockets: that receive them, of IPv4 and IPv6; NULL while nobody wants any
 * @rtt_users: qdiscs that want RTTs, without a receiver
 * @used: key that OR-ACKs are made with
 * @unauthenticated: do without keys
 * @bad_ns: when the present period began
 * @bad: bad OR-ACKs since, by group of addresses
 * @keys: by number
 */
struct onramp_net {
	struct onramp_counters __percpu *counters;
	struct mutex lock; /* of the settings */
	u32 listeners;
	struct socket *sockets[2];
	u32 rtt_users;
	u8 used;
	bool unauthenticated;
	u64 bad_ns;
	u16 bad[ONRAMP_BAD_GROUPS];
	struct onramp_key __rcu *keys[256];
};

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

static unsigned int onramp_net_id __read_mostly;
static u32 onramp_seed __read_mostly;

static struct onramp_net *onramp_net(const struct net *net)
{
	return net_generic(net, onramp_net_id);
}

/* ---- counters ---- */

#define ONRAMP_NAME(name, doc)	#name,

const char * const timely_onramp_counter_names[TIMELY_ONRAMP_COUNTER_COUNT] = {
	TIMELY_ONRAMP_COUNTERS(ONRAMP_NAME)
};

#define ONRAMP_DOC(name, doc)	doc,

const char * const timely_onramp_counter_docs[TIMELY_ONRAMP_COUNTER_COUNT] = {
	TIMELY_ONRAMP_COUNTERS(ONRAMP_DOC)
};

/**
 * timely_onramp_count() - one more
 * @net: network namespace
 * @index: of what
 */
void timely_onramp_count(struct net *net, enum timely_onramp_counter index)
{
	this_cpu_inc(onramp_net(net)->counters->count[index]);
}
EXPORT_SYMBOL_GPL(timely_onramp_count);

/**
 * timely_onramp_port() - the UDP port of OR-ACKs
 *
 * Return: that.
 */
u16 timely_onramp_port(void)
{
	return orack_port;
}
EXPORT_SYMBOL_GPL(timely_onramp_port);

/* ---- flows ---- */

static struct timely_onramp *onramp_lookup(const struct timely_tuple *tuple)
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
	old = onramp_lookup(tuple);
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
	onramp = onramp_lookup(tuple);
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

/**
 * struct onramp_news - what came of a flow's packet
 * @now_ns: when it was heard, CLOCK_MONOTONIC
 * @sent_ns: when the packet departed
 * @seq: its sequence number
 * @asserted_ns: pauses asserted until then, the low bits
 * @received_ns: when it was received, by the receiver's clock; 0: this is an RTT
 * @turnaround_ns: of the receiver
 * @noticed: how often a clock was found to be wrong; set by onramp_delay()
 * @doubted: the round trip shows that clocks are out of step; set by onramp_hear()
 */
struct onramp_news {
	u64 now_ns;
	u64 sent_ns;
	u32 seq;
	u32 asserted_ns;
	u64 received_ns;
	u32 turnaround_ns;
	u32 noticed;
	bool doubted;
};

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

/* When the packet departed that the byte news->seq is in, or, where @whole, that has just that
 * number; if it did more than once, the last time. Packets that departed before what was heard
 * of last are not looked for. Takes no lock.
 */
static enum timely_onramp_counter onramp_departure(const struct timely_onramp *onramp, bool whole,
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

/* Return: what became of it. */
static enum timely_onramp_counter onramp_hear(struct timely_flow *flow, struct onramp_news *news)
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

/* ---- OR-ACKs ---- */

/* The key that an OR-ACK is to be verified with, NULL without one. Under RCU. */
static enum timely_onramp_counter onramp_key(struct onramp_net *on,
					     const struct timely_orack *orack,
					     const struct timely_orack_key **key)
{
	const struct onramp_key *found = NULL;

	if (orack->key)
		found = rcu_dereference(on->keys[orack->key]);
	if (!found && (orack->key || !READ_ONCE(on->unauthenticated)))
		return TIMELY_ONRAMP_unknown_key;
	*key = found ? &found->key : NULL;
	return TIMELY_ONRAMP_accepted;
}

/* The socket that sends the flow, referenced, or NULL. */
static struct sock *onramp_socket(struct net *net, const struct timely_tuple *tuple, int iif)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (tuple->family == AF_INET6)
		return timely_inet6_lookup(net, (const struct in6_addr *)tuple->daddr,
					   tuple->dport,
					   (const struct in6_addr *)tuple->saddr,
					   ntohs(tuple->sport), iif, 0);
#endif
	return timely_inet_lookup(net, tuple->daddr[0], tuple->dport, tuple->saddr[0],
				  ntohs(tuple->sport), iif, 0);
}

/* Is the flow alive, and was the packet sent? It need not be unacknowledged: TCP's
 * own ACK often comes first, and its departure is not remembered for long. Of UDP
 * nobody knows.
 */
static enum timely_onramp_counter onramp_in_flight(struct net *net,
						   const struct timely_orack *orack, int iif)
{
	enum timely_onramp_counter result = TIMELY_ONRAMP_no_flow;
	struct sock *sk;

	if (orack->tuple.protocol != IPPROTO_TCP)
		return TIMELY_ONRAMP_accepted;
	sk = onramp_socket(net, &orack->tuple, iif);
	if (!sk)
		return TIMELY_ONRAMP_no_flow;
	if (sk_fullsock(sk))
		result = before(orack->seq, READ_ONCE(tcp_sk(sk)->snd_nxt)) ?
			 TIMELY_ONRAMP_accepted : TIMELY_ONRAMP_not_in_flight;
	sock_gen_put(sk);
	return result;
}

/* Does an OR-ACK tell of a packet that a flow has sent, and that is later than what was heard
 * of last? This takes less time than to verify the tag, takes no lock and changes nothing: what
 * anybody can send without having seen a packet, and what is replayed, ends here. Under RCU.
 */
static enum timely_onramp_counter onramp_match(const struct timely_orack *orack,
					       struct timely_onramp **found,
					       struct onramp_news *news)
{
	struct timely_onramp *onramp = onramp_lookup(&orack->tuple);

	if (!onramp || READ_ONCE(onramp->flow->closed))
		return TIMELY_ONRAMP_no_flow;
	*found = onramp;
	return onramp_departure(onramp, orack->tuple.protocol == IPPROTO_UDP, news);
}

/* Let a flow hear what an OR-ACK tells, whose tag is right. Under RCU. */
static enum timely_onramp_counter onramp_take(struct net *net, const struct timely_orack *orack,
					      int iif, struct timely_onramp *onramp,
					      struct onramp_news *news)
{
	enum timely_onramp_counter result = onramp_in_flight(net, orack, iif);

	if (result != TIMELY_ONRAMP_accepted)
		return result;
	if (!orack->received_ns)
		return TIMELY_ONRAMP_bad_time;
	result = onramp_hear(onramp->flow, news);
	if (unlikely(news->doubted))
		timely_onramp_count(net, TIMELY_ONRAMP_out_of_step);
	if (unlikely(news->noticed))
		timely_onramp_count(net, TIMELY_ONRAMP_clock_steps);
	return result;
}

static void onramp_addresses(struct timely_tuple *tuple, const struct sk_buff *skb)
{
	/* The data went the other way. */
	if (skb->protocol == htons(ETH_P_IPV6)) {
		tuple->family = AF_INET6;
		memcpy(tuple->saddr, &ipv6_hdr(skb)->daddr, sizeof(tuple->saddr));
		memcpy(tuple->daddr, &ipv6_hdr(skb)->saddr, sizeof(tuple->daddr));
	} else {
		tuple->family = AF_INET;
		tuple->saddr[0] = ip_hdr(skb)->daddr;
		tuple->daddr[0] = ip_hdr(skb)->saddr;
	}
}

/* The count of authentic but useless OR-ACKs that a sender's group of addresses may still
 * add to; NULL if it is used up.
 */
static u16 *onramp_bad(struct onramp_net *on, const struct timely_tuple *tuple, u64 now_ns)
{
	u32 group = jhash2((const u32 *)tuple->daddr, ARRAY_SIZE(tuple->daddr), onramp_seed);
	u16 *bad = &on->bad[group % ONRAMP_BAD_GROUPS];

	/* CPUs may race here: then it is a few more. */
	if (now_ns - READ_ONCE(on->bad_ns) >= ONRAMP_BAD_NS) {
		WRITE_ONCE(on->bad_ns, now_ns);
		memset(on->bad, 0, sizeof(on->bad));
	}
	return READ_ONCE(*bad) < ONRAMP_BAD_MAX ? bad : NULL;
}

/* Judge an OR-ACK that has the right form. Nothing that is limited is used up before the tag was
 * verified: a limit that forged OR-ACKs could use up would silence the peer whose address they
 * bear.
 */
static enum timely_onramp_counter
onramp_judge_formed(struct net *net, struct timely_orack *orack, const u8 *wire, int iif)
{
	struct onramp_news news = {
		.seq = orack->seq,
		.received_ns = orack->received_ns,
		.turnaround_ns = orack->turnaround_ns,
	};
	struct onramp_net *on = onramp_net(net);
	const struct timely_orack_key *key;
	enum timely_onramp_counter result;
	struct timely_onramp *onramp;
	u16 *bad;

	result = onramp_key(on, orack, &key);
	if (result != TIMELY_ONRAMP_accepted)
		return result;
	result = onramp_match(orack, &onramp, &news);
	if (result != TIMELY_ONRAMP_accepted)
		return result;
	if (!timely_orack_verify(orack, wire, key))
		return TIMELY_ONRAMP_bad_tag;
	news.now_ns = ktime_get_ns();
	bad = onramp_bad(on, &orack->tuple, news.now_ns);
	if (!bad)
		return TIMELY_ONRAMP_flooded;
	result = onramp_take(net, orack, iif, onramp, &news);
	if (result != TIMELY_ONRAMP_accepted)
		WRITE_ONCE(*bad, *bad + 1);
	return result;
}

static enum timely_onramp_counter onramp_judge(struct net *net, struct sk_buff *skb)
{
	struct timely_orack orack = { };
	u8 wire[TIMELY_ORACK_BYTES];

	if (skb->len != sizeof(wire) || skb_copy_bits(skb, 0, wire, sizeof(wire)) ||
	    !timely_orack_decode(&orack, wire, sizeof(wire)))
		return TIMELY_ONRAMP_malformed;
	onramp_addresses(&orack.tuple, skb);
	orack.tuple.net = (unsigned long)net;
	return onramp_judge_formed(net, &orack, wire, skb->skb_iif);
}

/* Called in softirq for each packet that the socket is given. */
static void onramp_data_ready(struct sock *sk)
{
	struct net *net = sock_net(sk);
	struct sk_buff *skb;
	int err;

	for (;;) {
		skb = skb_recv_udp(sk, MSG_DONTWAIT, &err);
		if (!skb)
			break;
		timely_onramp_count(net, TIMELY_ONRAMP_received);
		rcu_read_lock();
		if (udp_lib_checksum_complete(skb))
			timely_onramp_count(net, TIMELY_ONRAMP_malformed);
		else
			timely_onramp_count(net, onramp_judge(net, skb));
		rcu_read_unlock();
		consume_skb(skb);
	}
}

/**
 * timely_onramp_sign() - write an OR-ACK, with the namespace's key
 * @net: network namespace of the receiver
 * @orack: what it says; the key's number is filled in
 * @wire: room for TIMELY_ORACK_BYTES
 *
 * Return: false if no key is used and the namespace does not do without.
 */
bool timely_onramp_sign(struct net *net, struct timely_orack *orack, u8 *wire)
{
	struct onramp_net *on = onramp_net(net);
	const struct onramp_key *key = NULL;
	bool may;

	rcu_read_lock();
	orack->key = READ_ONCE(on->used);
	if (orack->key)
		key = rcu_dereference(on->keys[orack->key]);
	may = key || (!orack->key && READ_ONCE(on->unauthenticated));
	if (may)
		timely_orack_encode(wire, orack, key ? &key->key : NULL);
	rcu_read_unlock();
	return may;
}
EXPORT_SYMBOL_GPL(timely_onramp_sign);

/* ---- RTTs, without a receiver ---- */

/* The receiver may keep back the ACK of a lone packet: its wait is no queue's. */
static bool onramp_ack_delayed(const struct tcp_sock *tp, u32 ack)
{
	return ack == tp->snd_nxt && ack - tp->snd_una <= tp->mss_cache;
}

static void onramp_tuple(struct timely_tuple *tuple, const struct sock *sk)
{
	const struct inet_sock *inet = inet_sk(sk);

	memset(tuple, 0, sizeof(*tuple));
	tuple->net = (unsigned long)sock_net(sk);
	tuple->sport = inet->inet_sport;
	tuple->dport = inet->inet_dport;
	tuple->protocol = IPPROTO_TCP;
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr)) {
		tuple->family = AF_INET6;
		memcpy(tuple->saddr, &inet6_sk(sk)->saddr, sizeof(tuple->saddr));
		memcpy(tuple->daddr, &sk->sk_v6_daddr, sizeof(tuple->daddr));
		return;
	}
#endif
	tuple->family = AF_INET;
	tuple->saddr[0] = inet->inet_saddr;
	tuple->daddr[0] = inet->inet_daddr;
}

/* What CLOCK_REALTIME is ahead of CLOCK_MONOTONIC by, and when that was last seen to have
 * changed: an earlier stamp of a driver has no time on CLOCK_MONOTONIC.
 */
static struct {
	u64 offset_ns;
	u64 set_ns;
} onramp_real;

static u64 onramp_driver_ns(u64 stamp_ns, u64 now_ns)
{
	u64 offset_ns = ktime_to_ns(ktime_mono_to_real(0));

	if (unlikely(READ_ONCE(onramp_real.offset_ns) != offset_ns)) {
		WRITE_ONCE(onramp_real.offset_ns, offset_ns);
		WRITE_ONCE(onramp_real.set_ns, now_ns);
	}
	stamp_ns -= offset_ns;
	return stamp_ns >= READ_ONCE(onramp_real.set_ns) ? stamp_ns : now_ns;
}

static u32 onramp_napi_id(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_RX_BUSY_POLL
	if (skb->napi_id >= MIN_NAPI_ID)
		return skb->napi_id;
#endif
	return 0;
}

/* How long an ACK has waited in this host, for the processor or for the program that holds
 * its socket: by the NIC's stamp, else the driver's, else 0.
 */
static u32 onramp_waited_ns(const struct sk_buff *skb, u64 now_ns)
{
	u64 hardware_ns = ktime_to_ns(skb_shinfo(skb)->hwtstamps.hwtstamp);
	u64 driver_ns = ktime_to_ns(skb_tstamp(skb));
	u32 napi_id = onramp_napi_id(skb), ns_per_byte_q16;
	u64 arrived_ns = now_ns;

	if (unlikely(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP_NETDEV))
		hardware_ns = timely_nic_stamp(skb, napi_id);
	if (!hardware_ns || timely_nic_arrival(napi_id, hardware_ns, now_ns, &arrived_ns,
					       &ns_per_byte_q16) != TIMELY_STAMP_GOOD)
		arrived_ns = driver_ns ? onramp_driver_ns(driver_ns, now_ns) : now_ns;
	/* An arrival that is yet to come is a large number here. */
	return now_ns - arrived_ns <= ONRAMP_WAITED_MAX_NS ? now_ns - arrived_ns : 0;
}

/* What an ACK says of its connection's path. */
static void onramp_acked(struct sock *sk, const struct sk_buff *skb, u32 ack)
{
	struct onramp_news news = { .now_ns = ktime_get_ns(), .seq = ack - 1 };
	struct timely_onramp *onramp;
	struct timely_tuple tuple;

	timely_onramp_count(sock_net(sk), TIMELY_ONRAMP_rtt_lookups);
	onramp_tuple(&tuple, sk);
	rcu_read_lock();
	onramp = onramp_lookup(&tuple);
	if (onramp && READ_ONCE(onramp->flow->waiter) &&
	    onramp_departure(onramp, false, &news) == TIMELY_ONRAMP_accepted) {
		/* As at a receiver, what passes between arrival and processing is not the
		 * path's.
		 */
		news.turnaround_ns = onramp_waited_ns(skb, news.now_ns);
		if (onramp_hear(onramp->flow, &news) == TIMELY_ONRAMP_accepted)
			timely_onramp_count(sock_net(sk), TIMELY_ONRAMP_rtts);
	}
	rcu_read_unlock();
}

/* A packet of an established connection, of any network namespace, is about to be processed.
 * Of ACKs that waited while a program held the socket TCP makes one where it can: the number
 * of the last is in the control block, not in the header, and the stamps are the last one's.
 */
static void onramp_probe(void *unused, struct sock *sk, TIMELY_PROBE_CONST struct sk_buff *skb)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 ack;

	if (!READ_ONCE(onramp_net(sock_net(sk))->rtt_users))
		return;
	ack = TCP_SKB_CB(skb)->ack_seq;
	if (!(TCP_SKB_CB(skb)->tcp_flags & TCPHDR_ACK) || !after(ack, tp->snd_una) ||
	    after(ack, tp->snd_nxt) || onramp_ack_delayed(tp, ack))
		return;
	onramp_acked(sk, skb, ack);
}

/* Qdiscs of all network namespaces that want RTTs. */
static atomic_t onramp_probe_users = ATOMIC_INIT(0);
/* Guards what follows. Nobody takes it under RTNL. */
static DEFINE_MUTEX(onramp_probe_lock);
/* The tracepoint that is joined, or NULL. */
static struct tracepoint *onramp_tracepoint;

/* Without memory for the probe the work runs again after a second. */
#define ONRAMP_PROBE_RETRY	HZ

static int onramp_probe_join(void)
{
	struct tracepoint *tracepoint = timely_tracepoint_find("tcp_probe");
	int err;

	check_trace_callback_type_tcp_probe(onramp_probe);
	if (!tracepoint)
		return -ENOENT;
	err = tracepoint_probe_register(tracepoint, onramp_probe, NULL);
	if (err) {
		pr_err_ratelimited("timely: On-Ramp cannot join the tracepoint tcp_probe (error %d): owd rtt holds no flow until it can\n",
				   err);
		return err;
	}
	net_enable_timestamp();
	onramp_tracepoint = tracepoint;
	return 0;
}

static void onramp_probe_leave(void)
{
	if (!onramp_tracepoint)
		return;
	tracepoint_probe_unregister(onramp_tracepoint, onramp_probe, NULL);
	tracepoint_synchronize_unregister();
	net_disable_timestamp();
	onramp_tracepoint = NULL;
}

/* To join and to leave may patch the kernel's text and wait for a grace period: work, as
 * qdiscs come and go under RTNL.
 */
static void onramp_probe_work(struct work_struct *work);

/* The first user does not wait until the last one's leaving is due. */
static DECLARE_WORK(onramp_probe_soon, onramp_probe_work);
static DECLARE_DELAYED_WORK(onramp_probe_later, onramp_probe_work);

static void onramp_probe_work(struct work_struct *work)
{
	bool wanted;

	mutex_lock(&onramp_probe_lock);
	wanted = atomic_read(&onramp_probe_users);
	if (wanted && !onramp_tracepoint && onramp_probe_join() == -ENOMEM)
		mod_delayed_work(system_wq, &onramp_probe_later, ONRAMP_PROBE_RETRY);
	else if (!wanted)
		onramp_probe_leave();
	mutex_unlock(&onramp_probe_lock);
}

static int onramp_rtt_join(const struct net *net, struct onramp_net *on)
{
	if (!timely_may_affect_host(net))
		return -EPERM;
	/* Probes run with preemption disabled, where PREEMPT_RT's spinlocks must not be taken. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT) || !timely_tracepoint_find("tcp_probe"))
		return -EOPNOTSUPP;
	mutex_lock(&on->lock);
	WRITE_ONCE(on->rtt_users, on->rtt_users + 1);
	mutex_unlock(&on->lock);
	atomic_inc(&onramp_probe_users);
	schedule_work(&onramp_probe_soon);
	return 0;
}

static void onramp_rtt_leave(struct onramp_net *on)
{
	mutex_lock(&on->lock);
	WRITE_ONCE(on->rtt_users, on->rtt_users - 1);
	mutex_unlock(&on->lock);
	if (atomic_dec_and_test(&onramp_probe_users))
		schedule_delayed_work(&onramp_probe_later, ONRAMP_PROBE_LINGER);
}

/* ---- listening ---- */

static int onramp_listen(struct net *net, int family, struct socket **result)
{
	union {
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} addr = { };
	struct socket *sock;
	int err;

	err = sock_create_kern(net, family, SOCK_DGRAM, IPPROTO_UDP, &sock);
	if (err)
		return err;
	if (family == AF_INET6) {
		err = ip6_sock_set_v6only(sock->sk);
		addr.v6.sin6_family = AF_INET6;
		addr.v6.sin6_port = htons(orack_port);
	} else {
		addr.v4.sin_family = AF_INET;
		addr.v4.sin_port = htons(orack_port);
	}
	/* Not the process's own: softirqs hand packets over. */
	sock->sk->sk_allocation = GFP_ATOMIC;
#ifdef CONFIG_NET_RX_BUSY_POLL
	/* What reads the socket runs in a NAPI's poll: it must not poll another one. */
	WRITE_ONCE(sock->sk->sk_ll_usec, 0);
#endif
	if (!err)
		err = timely_kernel_bind(sock, &addr, family == AF_INET6 ? sizeof(addr.v6) :
									   sizeof(addr.v4));
	if (err) {
		sock_release(sock);
		return err;
	}
	write_lock_bh(&sock->sk->sk_callback_lock);
	sock->sk->sk_data_ready = onramp_data_ready;
	write_unlock_bh(&sock->sk->sk_callback_lock);
	*result = sock;
	return 0;
}

static void onramp_deafen(struct onramp_net *on)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(on->sockets); i++) {
		if (on->sockets[i])
			sock_release(on->sockets[i]);
		on->sockets[i] = NULL;
	}
}

/* To ask for a socket of a family that is not there loads its module, and IPv6's takes RTNL
 * to start, which is held here. A namespace has these settings since IPv6 is there.
 */
static bool onramp_has_ipv6(const struct net *net)
{
#if IS_ENABLED(CONFIG_IPV6)
	return READ_ONCE(net->ipv6.devconf_all);
#else
	return false;
#endif
}

static int onramp_listen_all(struct net *net, struct onramp_net *on)
{
	int err = onramp_listen(net, AF_INET, &on->sockets[0]);

	/* Without IPv6 there is nothing to be missed. */
	if (!err && onramp_has_ipv6(net))
		err = onramp_listen(net, AF_INET6, &on->sockets[1]);
	if (err == -EADDRINUSE)
		pr_warn_ratelimited("timely: On-Ramp refused: another socket has UDP port %u, where OR-ACKs come in: \"ss -ulpn 'sport = :%u'\" shows whose it is; free the port, or load timely with another orack_port on all hosts\n",
				    orack_port, orack_port);
	if (err)
		onramp_deafen(on);
	return err;
}

/**
 * timely_onramp_join() - a qdisc is going to hold flows
 * @net: network namespace of its device
 * @owd: TIMELY_OWD_*: what it takes for a delay
 *
 * Return: 0; -EADDRINUSE if another socket has the port of OR-ACKs; another error
 * of making one; -EOPNOTSUPP if RTTs cannot be had, as the kernel has no tracepoint for them
 * or is built with PREEMPT_RT; -EPERM if they are wanted by somebody who must not affect the
 * host, see timely_may_affect_host().
 */
int timely_onramp_join(struct net *net, u8 owd)
{
	struct onramp_net *on = onramp_net(net);
	int err = 0;

	if (owd == TIMELY_OWD_RTT)
		return onramp_rtt_join(net, on);
	mutex_lock(&on->lock);
	if (!on->listeners)
		err = onramp_listen_all(net, on);
	if (!err)
		on->listeners++;
	mutex_unlock(&on->lock);
	return err;
}
EXPORT_SYMBOL_GPL(timely_onramp_join);

/**
 * timely_onramp_leave() - and no more
 * @net: as for timely_onramp_join()
 * @owd: likewise
 */
void timely_onramp_leave(struct net *net, u8 owd)
{
	struct onramp_net *on = onramp_net(net);

	if (owd == TIMELY_OWD_RTT) {
		onramp_rtt_leave(on);
		return;
	}
	mutex_lock(&on->lock);
	if (!--on->listeners)
		onramp_deafen(on);
	mutex_unlock(&on->lock);
}
EXPORT_SYMBOL_GPL(timely_onramp_leave);

/* ---- for netlink ---- */

/**
 * timely_onramp_status() - On-Ramp in a network namespace
 * @net: the namespace
 * @status: filled in
 */
void timely_onramp_status(struct net *net, struct timely_onramp_status *status)
{
	struct onramp_net *on = onramp_net(net);
	u32 i;
	int cpu;

	memset(status, 0, sizeof(*status));
	mutex_lock(&on->lock);
	status->used = on->used;
	status->unauthenticated = on->unauthenticated;
	for (i = 1; i < ARRAY_SIZE(on->keys); i++)
		if (rcu_access_pointer(on->keys[i]))
			__set_bit(i, status->keys);
	mutex_unlock(&on->lock);
	for_each_possible_cpu(cpu)
		for (i = 0; i < TIMELY_ONRAMP_COUNTER_COUNT; i++)
			status->counters[i] +=
				READ_ONCE(per_cpu_ptr(on->counters, cpu)->count[i]);
}

static struct onramp_key *onramp_key_swap(struct onramp_net *on, u8 number,
					  struct onramp_key *key)
{
	return rcu_replace_pointer(on->keys[number], key, lockdep_is_held(&on->lock));
}

static void onramp_key_free(struct rcu_head *rcu)
{
	kfree_sensitive(container_of(rcu, struct onramp_key, rcu));
}

/**
 * timely_onramp_key_set() - know a key, or know it anew
 * @net: network namespace
 * @number: its number, 1 to 255
 * @key: the secret
 *
 * Return: 0 or -ENOMEM.
 */
int timely_onramp_key_set(struct net *net, u8 number, const struct timely_orack_key *key)
{
	struct onramp_net *on = onramp_net(net);
	struct onramp_key *new = kmalloc(sizeof(*new), GFP_KERNEL), *old;

	if (!new)
		return -ENOMEM;
	new->key = *key;
	mutex_lock(&on->lock);
	old = onramp_key_swap(on, number, new);
	mutex_unlock(&on->lock);
	if (old)
		call_rcu(&old->rcu, onramp_key_free);
	return 0;
}

/**
 * timely_onramp_key_del() - forget a key
 * @net: network namespace
 * @number: its number
 *
 * Return: 0; -ENOENT if it is not known; -EBUSY if OR-ACKs are made with it.
 */
int timely_onramp_key_del(struct net *net, u8 number)
{
	struct onramp_net *on = onramp_net(net);
	struct onramp_key *old = NULL;
	int err = 0;

	mutex_lock(&on->lock);
	if (!rcu_access_pointer(on->keys[number]))
		err = -ENOENT;
	else if (on->used == number)
		err = -EBUSY;
	else
		old = onramp_key_swap(on, number, NULL);
	mutex_unlock(&on->lock);
	if (old)
		call_rcu(&old->rcu, onramp_key_free);
	return err;
}

/**
 * timely_onramp_set() - change settings, all or none
 * @net: network namespace
 * @used: number of the key that OR-ACKs are made with, 0 for none; NULL leaves it
 * @unauthenticated: whether OR-ACKs without a key count; NULL leaves it
 *
 * Return: 0, -ENOENT if the key is not known.
 */
int timely_onramp_set(struct net *net, const u8 *used, const bool *unauthenticated)
{
	struct onramp_net *on = onramp_net(net);
	int err = 0;

	mutex_lock(&on->lock);
	if (used && *used && !rcu_access_pointer(on->keys[*used])) {
		err = -ENOENT;
	} else {
		if (used)
			WRITE_ONCE(on->used, *used);
		if (unauthenticated)
			WRITE_ONCE(on->unauthenticated, *unauthenticated);
	}
	mutex_unlock(&on->lock);
	return err;
}

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

static int __net_init onramp_net_init(struct net *net)
{
	struct onramp_net *on = onramp_net(net);

	mutex_init(&on->lock);
	on->counters = alloc_percpu(struct onramp_counters);
	return on->counters ? 0 : -ENOMEM;
}

static void __net_exit onramp_net_exit(struct net *net)
{
	struct onramp_net *on = onramp_net(net);
	u32 i;

	/* Devices have left, and their qdiscs with them. */
	onramp_deafen(on);
	for (i = 0; i < ARRAY_SIZE(on->keys); i++)
		kfree_sensitive(rcu_dereference_protected(on->keys[i], true));
	free_percpu(on->counters);
}

static struct pernet_operations onramp_net_ops = {
	.init = onramp_net_init,
	.exit = onramp_net_exit,
	.id = &onramp_net_id,
	.size = sizeof(struct onramp_net),
};

/**
 * timely_onramp_init() - make ready
 *
 * Return: 0; -EINVAL for a port that is none; -ENOMEM.
 */
int timely_onramp_init(void)
{
	int err;

	if (!orack_port) {
		pr_err("timely: orack_port=0 refused: allowed are 1 to 65535\n");
		return -EINVAL;
	}
	get_random_bytes(&onramp_seed, sizeof(onramp_seed));
	onramp_cache = kmem_cache_create("timely_onramp", sizeof(struct timely_onramp), 0,
					 SLAB_HWCACHE_ALIGN, NULL);
	if (!onramp_cache)
		return -ENOMEM;
	err = rhashtable_init(&onramp_tuples, &onramp_tuples_params);
	if (err)
		goto no_tuples;
	err = timely_peer_init();
	if (err)
		goto no_peers;
	err = register_pernet_subsys(&onramp_net_ops);
	if (err)
		goto no_net;
	return 0;

no_net:
	timely_peer_exit();
no_peers:
	rhashtable_destroy(&onramp_tuples);
no_tuples:
	kmem_cache_destroy(onramp_cache);
	return err;
}

/** timely_onramp_exit() - all qdiscs have gone, and all flows been put */
void timely_onramp_exit(void)
{
	cancel_work_sync(&onramp_probe_soon);
	cancel_delayed_work_sync(&onramp_probe_later);
	onramp_probe_leave();
	timely_peer_exit();
	unregister_pernet_subsys(&onramp_net_ops);
	rcu_barrier();
	rhashtable_destroy(&onramp_tuples);
	kmem_cache_destroy(onramp_cache);
}
