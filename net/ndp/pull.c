// SPDX-License-Identifier: GPL-2.0
/*
 * The pull queues: one for each interface that NDP packets arrive at, shared by all connections of
 * the interface (net/timely/engine/ndp_pull.c). A timer of the queue grants the pulls at the rate
 * of the link, so that the pulled packets arrive at this rate. To the engine a pull for two packets
 * is one for their bytes.
 *
 * The link rate is that of module timely (link.c): the administrator's or the driver's. Where it is
 * not known, such as for a veth, the sysctl net.ndp.link_rate_kbps gives the rate.
 *
 * A connection moves to another queue when its packets arrive at another interface, because its
 * route has changed. A queue does not keep its device. When the device is unregistered, connections
 * with pulls in the queue still get them, and move to another queue with their next packet.
 */

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include <net/timely_link.h>
#include <uapi/linux/ndp.h>

#include "ndp.h"

/* A timer that is late by up to this time makes up for it, ns: the time of eight packets of 1500
 * bytes at 10 Gb/s, as many as a switch queues.
 */
#define NDP_PULL_SLACK_NS	(10 * NSEC_PER_USEC)

/* Most pulls that the timer grants before other softirqs get their turn: 75 us at 10 Gb/s. */
#define NDP_PULL_BATCH		64

/* A connection moves to the queue of another interface after this many packets in a row at other
 * interfaces: twice the initial window. Fewer may be some that are late, or only a part of a
 * connection's packets where the network sends them by several interfaces.
 */
#define NDP_PULL_ELSEWHERE	64

/* A pull asks for two packets if they have at most this many bytes on the wire: packets of
 * Ethernet's usual MTU. With one packet for each pull, PULLs and ACKs took up to 15 % of the links,
 * and mean slowdowns among web search messages were 3 to 5 % longer. With four, messages of a few
 * packets took two to three times as long, as more of them found the switch's queue of eight
 * packets full.
 */
#define NDP_PAIR_BYTES		(2 * (ETH_DATA_LEN + NDP_FRAME_BYTES))

/* Rate for pulls over the loopback device, kbit/s: 100 Gb/s. */
#define NDP_LOOPBACK_KBPS	100000000

/**
 * struct ndp_queue - the pull queue of an interface
 * @hash: entry in the table of queues
 * @all: entry in the list of all queues, also of those whose interface is unregistered
 * @net: network namespace of the interface; for comparison only
 * @ifindex: index of the interface
 * @dead: the interface is unregistered
 * @mtu: MTU of the interface, bytes
 * @epoch: timely_link_epoch when the link rate was looked up
 * @looked: when the link rate was looked up, jiffies
 * @ref: references: of the table, of each connection, of the timer
 * @lock: protects the members below and the connections' entries
 * @pull: the engine
 * @packets: number of packets that pulls have asked for
 * @timer: expires when the next pull is due
 * @rcu: frees the queue after an RCU grace period
 */
struct ndp_queue {
	struct hlist_node hash;
	struct list_head all;
	const struct net *net;
	int ifindex;
	bool dead;
	u32 mtu;
	u32 epoch;
	unsigned long looked;
	refcount_t ref;
	spinlock_t lock; /* of the members below */
	struct timely_ndp_pull pull;
	u64 packets;
	struct ndp_timer timer;
	struct rcu_head rcu;
};

static DEFINE_HASHTABLE(ndp_queues, 6);
static LIST_HEAD(ndp_all_queues);
static DEFINE_SPINLOCK(ndp_queues_lock); /* of table and list */

/* A connection gets a pull for some packets; see ndp_pull_register(). */
static void (*ndp_pull_granted)(struct sock *sk, u32 packets) __ro_after_init;

static void ndp_queue_put(struct ndp_queue *q)
{
	if (!refcount_dec_and_test(&q->ref))
		return;
	spin_lock_bh(&ndp_queues_lock);
	list_del(&q->all);
	spin_unlock_bh(&ndp_queues_lock);
	kfree_rcu(q, rcu);
}

/* ---- the timer ---- */

/* Sets the timer for the next pull. A lone connection takes its pulls when its packets arrive, see
 * ndp_pull_due(), so the timer is for pauses and leaves time for the next packets, which many NICs
 * bring every 8 us. Under q->lock.
 */
static void ndp_queue_arm(struct ndp_queue *q)
{
	u64 due_ns = timely_ndp_pull_due_ns(&q->pull);

	if (q->pull.flows == 1)
		due_ns += NDP_PULL_SLACK_NS * 7 / 8;
	if (ndp_timer_set(&q->timer, due_ns))
		refcount_inc(&q->ref);
}

/* Takes the connection that gets the next pull, with a reference to its socket: the table's
 * reference is released only after the connection has left the queue.
 */
static struct sock *ndp_queue_next(struct ndp_queue *q, u64 now_ns, u32 *packets)
{
	struct timely_ndp_pull_flow *flow;
	struct sock *sk = NULL;

	spin_lock_bh(&q->lock);
	flow = timely_ndp_pull_next(&q->pull, now_ns);
	if (flow) {
		sk = ndp_sock_of(container_of(flow, struct ndp_sock, flow));
		*packets = ndp_sk(sk)->unit;
		q->packets += *packets;
		sock_hold(sk);
	}
	spin_unlock_bh(&q->lock);
	return sk;
}

static enum hrtimer_restart ndp_queue_timer(struct hrtimer *hr)
{
	struct ndp_queue *q = container_of(hr, struct ndp_queue, timer.hr);
	u64 now_ns = ktime_get_ns();
	u32 left = NDP_PULL_BATCH, packets;
	struct sock *sk;
	bool done;

	while (left-- && (sk = ndp_queue_next(q, now_ns, &packets))) {
		ndp_pull_granted(sk, packets);
		sock_put(sk);
	}
	spin_lock_bh(&q->lock);
	ndp_timer_due(&q->timer, now_ns);
	ndp_queue_arm(q);
	done = ndp_timer_done(&q->timer);
	spin_unlock_bh(&q->lock);
	if (done)
		ndp_queue_put(q);
	return HRTIMER_NORESTART;
}

/* ---- the table ---- */

static struct ndp_queue *ndp_queue_find(const struct net *net, int ifindex)
{
	struct ndp_queue *q;

	hash_for_each_possible_rcu(ndp_queues, q, hash, ifindex,
				   lockdep_is_held(&ndp_queues_lock))
		if (q->ifindex == ifindex && net_eq(q->net, net))
			return q;
	return NULL;
}

/* Looks up the MTU, and the link rate at most once in TIMELY_LINK_LOOK unless a link has changed.
 * Connections of several CPUs may do so at the same time, with the same result.
 */
static void ndp_queue_look(struct ndp_queue *q, struct net_device *dev)
{
	u32 epoch = READ_ONCE(timely_link_epoch), kbps;
	bool beyond;

	if (READ_ONCE(q->mtu) != READ_ONCE(dev->mtu))
		WRITE_ONCE(q->mtu, READ_ONCE(dev->mtu));
	if (q->looked && q->epoch == epoch && time_before(jiffies, q->looked + TIMELY_LINK_LOOK))
		return;
	WRITE_ONCE(q->looked, jiffies | 1);
	WRITE_ONCE(q->epoch, epoch);
	timely_link_of(dev, &kbps, &beyond);
	if (!kbps)
		kbps = dev->flags & IFF_LOOPBACK ? NDP_LOOPBACK_KBPS :
						   READ_ONCE(ndp_net(dev_net(dev))->link_rate_kbps);
	spin_lock_bh(&q->lock);
	timely_ndp_pull_set_rate(&q->pull, kbps);
	spin_unlock_bh(&q->lock);
}

static struct ndp_queue *ndp_queue_new(struct net_device *dev)
{
	struct ndp_queue *q = kzalloc(sizeof(*q), GFP_ATOMIC | __GFP_NOWARN), *other;

	if (!q)
		return NULL;
	q->net = dev_net(dev);
	q->ifindex = dev->ifindex;
	spin_lock_init(&q->lock);
	timely_ndp_pull_init(&q->pull, NDP_LOOPBACK_KBPS, NDP_PULL_SLACK_NS);
	ndp_timer_init(&q->timer, ndp_queue_timer);
	/* The references of the table and of the caller. */
	refcount_set(&q->ref, 2);
	spin_lock_bh(&ndp_queues_lock);
	other = ndp_queue_find(q->net, q->ifindex);
	/* A device is closed before it leaves its namespace or is unregistered, and its queue is
	 * removed then. A packet that another CPU still handles must not create the queue again.
	 */
	if (other || dev->reg_state != NETREG_REGISTERED || !netif_running(dev)) {
		kfree(q);
		q = other && refcount_inc_not_zero(&other->ref) ? other : NULL;
	} else {
		hash_add_rcu(ndp_queues, &q->hash, q->ifindex);
		list_add(&q->all, &ndp_all_queues);
	}
	spin_unlock_bh(&ndp_queues_lock);
	return q;
}

/* Finds or creates the queue of a device, with a reference. NULL if there is no memory. */
static struct ndp_queue *ndp_queue_get(struct net_device *dev)
{
	struct ndp_queue *q = ndp_queue_find(dev_net(dev), dev->ifindex);

	return q && refcount_inc_not_zero(&q->ref) ? q : ndp_queue_new(dev);
}

static int ndp_queue_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct ndp_queue *q;

	if (event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	spin_lock_bh(&ndp_queues_lock);
	q = ndp_queue_find(dev_net(dev), dev->ifindex);
	if (q) {
		hash_del_rcu(&q->hash);
		WRITE_ONCE(q->dead, true);
	}
	spin_unlock_bh(&ndp_queues_lock);
	if (q)
		ndp_queue_put(q);
	return NOTIFY_DONE;
}

static struct notifier_block ndp_queue_notifier = {
	.notifier_call = ndp_queue_event,
};

/* ---- connections ---- */

/* Whether the packets of a connection no longer arrive at the interface of its queue. */
static bool ndp_pull_moved(struct ndp_sock *ndp, int ifindex)
{
	if (READ_ONCE(ndp->queue->dead))
		return true;
	ndp->elsewhere = ndp->queue->ifindex == ifindex ? 0 : ndp->elsewhere + 1;
	return ndp->elsewhere == NDP_PULL_ELSEWHERE;
}

/**
 * ndp_pull_attach() - let a connection use the pull queue of the interface of a packet
 * @sk: the socket
 * @skb: the packet that has arrived
 *
 * A connection keeps its queue, even if some of its packets arrive at another interface, until
 * NDP_PULL_ELSEWHERE packets in a row have done so, or the queue's interface is unregistered.
 *
 * Context: softirq, RCU read lock, under the connection's lock.
 */
void ndp_pull_attach(struct sock *sk, const struct sk_buff *skb)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	bool moved = ndp->queue && ndp_pull_moved(ndp, skb->dev->ifindex);

	if (moved)
		ndp_pull_detach(sk);
	if (!ndp->queue)
		ndp->queue = ndp_queue_get(skb->dev);
	if (ndp->queue && ndp->queue->ifindex == skb->dev->ifindex)
		ndp_queue_look(ndp->queue, skb->dev);
	/* The pulls that waited in the former queue wait in the new one. */
	if (moved)
		ndp_pull_want(sk, ndp_memory_wanted(sk));
}

/**
 * ndp_pull_detach() - take a connection out of its pull queue
 * @sk: the socket, under the connection's lock
 */
void ndp_pull_detach(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	if (!ndp->queue)
		return;
	ndp_pull_want(sk, 0);
	/* If ndp_queue_next() has just taken the connection, it has its reference now. */
	spin_lock_bh(&ndp->queue->lock);
	spin_unlock_bh(&ndp->queue->lock);
	ndp_queue_put(ndp->queue);
	ndp->queue = NULL;
	ndp->elsewhere = 0;
	/* The time was that of this queue. */
	ndp->guessed = 0;
}

/**
 * ndp_pull_again() - a packet arrived trimmed, and a pull will ask for the packet again
 * @ndp: the connection, under the connection's lock
 * @seq: number of the packet
 * @payload: bytes of data that the packet had
 *
 * The peer sends trimmed packets again before others, in the order of the NACKs, except for the
 * first missing one. So a pull for a short one need not wait as long as for a full one.
 */
void ndp_pull_again(struct ndp_sock *ndp, u32 seq, u32 payload)
{
	ndp->trimmed |= BIT_ULL(seq % 64);
	if ((u8)(ndp->again_end - ndp->again_first) < NDP_AGAIN)
		ndp->again[ndp->again_end++ % NDP_AGAIN] = payload;
}

/* Bytes on the wire that a packet has below the header of NDP. */
static u32 ndp_under_bytes(const struct ndp_sock *ndp)
{
	bool v4 = ipv6_addr_v4mapped(&ndp->key.local);

	return sizeof(struct udphdr) + (v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) +
	       NDP_FRAME_BYTES;
}

/* Bytes on the wire of a packet with so much payload, under the connection's lock, with a queue. A
 * header may say any length, but no frame is longer than the MTU of the interface. Otherwise a peer
 * whose headers say that packets had 64 KB would keep other connections from being pulled, or, with
 * short packets afterwards, be given back more time than its pulls have taken.
 */
static u32 ndp_frame_bytes(const struct ndp_sock *ndp, u32 payload)
{
	u32 headers = TIMELY_NDP_BYTES + (ndp->peer_tagged ? TIMELY_NDP_TAG_BYTES : 0) +
		      ndp_under_bytes(ndp);

	return min(payload + headers, READ_ONCE(ndp->queue->mtu) + NDP_FRAME_BYTES);
}

/* Bytes on the wire of the packet that is pulled after @ahead others. */
static u32 ndp_wire_bytes(const struct ndp_sock *ndp, u32 ahead)
{
	bool again = (u8)(ndp->again_end - ndp->again_first) > ahead;

	return ndp_frame_bytes(ndp, again ? ndp->again[(ndp->again_first + ahead) % NDP_AGAIN] :
					    ndp->peer_payload);
}

/**
 * ndp_pull_leave_room() - a packet without data, or a trimmed one, has arrived
 * @ndp: the connection, under the connection's lock
 * @skb: the packet, whose data starts with the header of NDP
 * @now_ns: current time
 */
void ndp_pull_leave_room(struct ndp_sock *ndp, const struct sk_buff *skb, u64 now_ns)
{
	struct ndp_queue *q = ndp->queue;

	/* Without pulls to wait, nothing would change. */
	if (!q || !READ_ONCE(q->pull.flows))
		return;
	spin_lock_bh(&q->lock);
	timely_ndp_pull_leave_room(&q->pull, skb->len + ndp_under_bytes(ndp), now_ns);
	spin_unlock_bh(&q->lock);
}

/* A packet has arrived that its sender sent without a pull, as the first packets of a message.
 * While only long messages want pulls, the next one waits for the time that it took on the link:
 * if their pulls filled the link alone, short messages would add to that, and many packets would be
 * trimmed. Pulls for short messages do not wait, as after an incast the link would be idle.
 */
static void ndp_pull_give_way(struct ndp_sock *ndp, const struct ndp_packet *packet)
{
	u32 bytes = packet->header_bytes + packet->header.length + ndp_under_bytes(ndp);
	struct ndp_queue *q = ndp->queue;

	if (!q || !READ_ONCE(q->pull.flows))
		return;
	spin_lock_bh(&q->lock);
	if (timely_ndp_pull_only_long(&q->pull))
		timely_ndp_pull_leave_room(&q->pull, bytes, packet->now_ns);
	spin_unlock_bh(&q->lock);
}

/* A packet has arrived that a switch may have returned to the peer before. Then no header has told
 * its length, and the pull for it was for a full packet. If it is shorter the pull queue gets the
 * difference back, but all packets together never more than such pulls have taken.
 */
static void ndp_give_back(struct ndp_sock *ndp, const struct timely_ndp_header *header)
{
	bool told = ndp->trimmed & BIT_ULL(header->seq % 64);
	struct ndp_queue *q = ndp->queue;
	u32 taken, bytes;

	ndp->trimmed &= ~BIT_ULL(header->seq % 64);
	if (told || !ndp->guessed || !q)
		return;
	taken = min(ndp_frame_bytes(ndp, ndp->peer_payload), ndp->guessed);
	bytes = ndp_frame_bytes(ndp, header->length);
	ndp->guessed -= taken;
	if (!(header->flags & TIMELY_NDP_RTX) || bytes >= taken || !READ_ONCE(q->pull.flows))
		return;
	spin_lock_bh(&q->lock);
	timely_ndp_pull_give_back(&q->pull, taken - bytes);
	spin_unlock_bh(&q->lock);
}

/**
 * ndp_pull_arrived() - a new packet has arrived whole
 * @ndp: the connection, under the connection's lock
 * @packet: the packet, which the receiver knows
 */
void ndp_pull_arrived(struct ndp_sock *ndp, const struct ndp_packet *packet)
{
	ndp_give_back(ndp, &packet->header);
	if (ndp->coming)
		ndp->coming--;
	else
		ndp_pull_give_way(ndp, packet);
	/* Of a pull that asked for more than there was nothing comes any more. */
	if (timely_ndp_receiver_idle(&ndp->receiver))
		ndp->coming = 0;
}

/**
 * ndp_pull_done() - a pull was granted
 * @ndp: the connection, under the connection's lock
 * @packets: number of packets that it asks for
 */
void ndp_pull_done(struct ndp_sock *ndp, u32 packets)
{
	u8 lengths = ndp->again_end - ndp->again_first;
	u32 told = min_t(u32, lengths, packets);
	u32 full;

	ndp->again_first += told;
	/* The timer of a queue may grant a pull to a connection that has just left the queue. */
	if (!ndp->queue)
		return;
	full = ndp_frame_bytes(ndp, ndp->peer_payload);
	/* No more packets than the span can be on their way. Lost ones never arrive. */
	ndp->coming = min(ndp->coming + packets, NDP_SPAN);
	ndp->guessed = min(ndp->guessed + (packets - told) * full, NDP_SPAN * full);
}

/* Sets how many packets the next pull of a connection asks for, and their bytes. */
static void ndp_set_unit(struct ndp_sock *ndp, u32 wanted)
{
	u32 first = ndp_wire_bytes(ndp, 0), second = ndp_wire_bytes(ndp, 1);
	bool pair = wanted > 1 && first + second <= NDP_PAIR_BYTES;

	ndp->unit = pair ? 2 : 1;
	ndp->flow.bytes = pair ? first + second : first;
}

/* The age of the message that a connection receives. */
static u8 ndp_pull_age(const struct ndp_sock *ndp)
{
	u64 packets = ndp->receiver.stats.received - ndp->message;

	if (!READ_ONCE(ndp_net(sock_net(ndp_sock_of(ndp)))->short_first))
		return 0;
	return timely_ndp_pull_age(packets * ndp->peer_payload);
}

/* Sets the number of pulls that a connection wants. Under q->lock. The priority is SO_PRIORITY. */
static void ndp_queue_set(struct ndp_queue *q, struct ndp_sock *ndp, u32 wanted)
{
	u8 priority = min_t(u32, READ_ONCE(ndp_sock_of(ndp)->sk_priority),
			    TIMELY_NDP_PRIORITIES - 1);
	u8 age = ndp_pull_age(ndp);

	/* Nothing is missing. Lengths that are left are those of repeated packets. */
	if (!wanted)
		ndp->again_first = ndp->again_end;
	if (ndp->flow.priority != priority || ndp->flow.age != age)
		timely_ndp_pull_move(&q->pull, &ndp->flow, priority, age);
	ndp_set_unit(ndp, wanted);
	timely_ndp_pull_set(&q->pull, &ndp->flow, DIV_ROUND_UP(wanted, ndp->unit));
}

/**
 * ndp_pull_want() - set the number of pulls that a connection wants
 * @sk: the socket, under the connection's lock
 * @wanted: the number; 0 takes the connection out of the queue
 */
void ndp_pull_want(struct sock *sk, u32 wanted)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_queue *q = ndp->queue;

	if (!q || (!wanted && !ndp->flow.prev))
		return;
	spin_lock_bh(&q->lock);
	ndp_queue_set(q, ndp, wanted);
	ndp_queue_arm(q);
	spin_unlock_bh(&q->lock);
}

/**
 * ndp_pull_due() - set the number of pulls that a connection wants, and take those that are due
 * @sk: the socket, under the connection's lock
 * @wanted: the number
 * @now_ns: current time
 *
 * Pulls are taken only while no other connection waits for one: those get theirs from the timer.
 *
 * Return: number of packets to ask for now.
 */
u32 ndp_pull_due(struct sock *sk, u32 wanted, u64 now_ns)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_queue *q = ndp->queue;
	u32 due = 0, pulled;

	if (!q || (!wanted && !ndp->flow.prev))
		return 0;
	spin_lock_bh(&q->lock);
	ndp_queue_set(q, ndp, wanted);
	while (wanted && q->pull.flows == 1 && timely_ndp_pull_next(&q->pull, now_ns)) {
		pulled = min_t(u32, ndp->unit, wanted);
		due += pulled;
		wanted -= pulled;
		q->packets += pulled;
		ndp_pull_done(ndp, pulled);
		ndp_queue_set(q, ndp, wanted);
	}
	ndp_queue_arm(q);
	spin_unlock_bh(&q->lock);
	return due;
}

/**
 * ndp_pull_rate_kbps() - link rate that the pulls of a connection are paced by
 * @sk: the socket, under the connection's lock
 *
 * Return: kbit/s; 0 if the connection has no queue.
 */
u32 ndp_pull_rate_kbps(struct sock *sk)
{
	return ndp_sk(sk)->queue ? READ_ONCE(ndp_sk(sk)->queue->pull.rate_kbps) : 0;
}

/**
 * ndp_pull_ifindex() - interface whose pull queue a connection uses
 * @sk: the socket, under the connection's lock
 *
 * Return: index of the interface; 0 if the connection has no queue.
 */
u32 ndp_pull_ifindex(struct sock *sk)
{
	return ndp_sk(sk)->queue ? ndp_sk(sk)->queue->ifindex : 0;
}

/* ---- reading ---- */

static void ndp_queue_show(struct ndp_queue *q, struct ndp_pull_queue *to)
{
	memset(to, 0, sizeof(*to));
	to->ifindex = q->ifindex;
	spin_lock_bh(&q->lock);
	to->pulls = q->packets;
	to->kbps = q->pull.rate_kbps;
	to->flows = q->pull.flows;
	spin_unlock_bh(&q->lock);
}

/**
 * ndp_pull_walk() - visit the pull queues of a network namespace
 * @net: network namespace
 * @place: where to begin, all zero for the first one; set to where the next call goes on
 * @visit: called for each queue, under RCU; an error ends the call, and the next call begins with
 *	the same queue
 * @arg: argument of @visit
 *
 * Queues that come or go meanwhile may be visited twice or not at all.
 *
 * Return: 0 if all were visited, or the error of @visit.
 */
int ndp_pull_walk(const struct net *net, struct ndp_place *place,
		  int (*visit)(const struct ndp_pull_queue *queue, void *arg), void *arg)
{
	int err = 0;

	for (; place->bucket < HASH_SIZE(ndp_queues); place->bucket++) {
		struct ndp_pull_queue shown;
		struct ndp_queue *q;
		u32 index = 0;

		rcu_read_lock();
		hlist_for_each_entry_rcu(q, &ndp_queues[place->bucket], hash) {
			if (index++ < place->skip || !net_eq(q->net, net))
				continue;
			ndp_queue_show(q, &shown);
			err = visit(&shown, arg);
			if (err)
				break;
			place->skip = index;
		}
		rcu_read_unlock();
		if (err)
			return err;
		place->skip = 0;
	}
	return 0;
}

/* ---- loading ---- */

/**
 * ndp_pull_register() - watch for devices that are unregistered
 * @granted: called in softirq when a connection gets a pull
 *
 * Return: 0, or a negative error code.
 */
int __init ndp_pull_register(void (*granted)(struct sock *sk, u32 packets))
{
	ndp_pull_granted = granted;
	return register_netdevice_notifier(&ndp_queue_notifier);
}

/* Takes a reference to any queue; NULL if there is none. */
static struct ndp_queue *ndp_queue_any(void)
{
	struct ndp_queue *q;

	spin_lock_bh(&ndp_queues_lock);
	list_for_each_entry(q, &ndp_all_queues, all) {
		/* Another CPU removes a queue without references from the list. */
		if (!refcount_inc_not_zero(&q->ref))
			continue;
		spin_unlock_bh(&ndp_queues_lock);
		return q;
	}
	spin_unlock_bh(&ndp_queues_lock);
	return NULL;
}

/**
 * ndp_pull_unregister() - free all queues; no connection is left
 *
 * Timers of queues that have become empty may still be set or run.
 */
void ndp_pull_unregister(void)
{
	struct ndp_queue *q;

	/* The notifier gets an event for each device, as if the device was unregistered. */
	unregister_netdevice_notifier(&ndp_queue_notifier);
	while ((q = ndp_queue_any())) {
		if (hrtimer_cancel(&q->timer.hr))
			ndp_queue_put(q);
		ndp_queue_put(q);
	}
	/* A timer that has released the last reference to its queue may not have returned. */
	synchronize_rcu();
}
