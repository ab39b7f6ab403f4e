// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of sockets. Two limits hold: that of the network namespace (max_memory_mb), and that of
 * all NDP sockets of the host. A receiver also has SO_RCVBUF, a sender SO_SNDBUF.
 *
 * Without memory no data may be in the way of other data for ever:
 *
 *  - A sender without any data in its queue may always queue one packet, and a receiver whose
 *    program has read everything always keeps the next packet of the stream. So each connection
 *    goes on, slowly, whatever other connections use. A limit may be exceeded by these packets.
 *  - The last quarter of each limit is for received packets that are in order. Packets out of order
 *    and packets to be sent do not use this quarter: the former cannot be read, and the latter free
 *    no memory, until packets in order have arrived.
 *  - A receiver that has refused a packet asks for one packet at a time, or for none while its
 *    program has data to read, see ndp_memory_wanted(). Otherwise the refused packets would come
 *    again and again, at the rate of the link.
 *  - Programs that wait for SO_RCVLOWAT bytes are told about fewer bytes, because reading frees
 *    memory, see ndp_conn_full(). Programs that wait for bytes to look at (MSG_PEEK) get fewer.
 */

#include <linux/mm.h>

#include "ndp.h"

/* Pages that all sockets use, and their limit; see struct proto. */
atomic_long_t ndp_memory_allocated;
long ndp_memory_limits[3];

/** ndp_memory_init() - set the limit of all sockets together: an eighth of the host's memory */
void ndp_memory_init(void)
{
	/* A protocol without a state of memory pressure, such as this one, gets no memory beyond
	 * the first of the three limits, except for almost empty sockets.
	 */
	ndp_memory_limits[0] = totalram_pages() / 8;
	ndp_memory_limits[1] = ndp_memory_limits[0];
	ndp_memory_limits[2] = ndp_memory_limits[0];
}

/* Whether more memory is in use than @eighths of eight eighths of a limit. */
static bool ndp_memory_beyond(const struct sock *sk, u32 eighths)
{
	return atomic_long_read(&ndp_memory_allocated) > ndp_memory_limits[2] / 8 * eighths ||
	       ndp_net_beyond(sock_net(sk), eighths);
}

/**
 * ndp_memory_short() - check whether programs should read soon
 * @sk: the socket
 *
 * Return: true if more than half of the memory that sockets may use is in use, or a packet of this
 * socket had to be refused since the program has read.
 */
bool ndp_memory_short(const struct sock *sk)
{
	return READ_ONCE(ndp_sk(sk)->starved) || ndp_memory_beyond(sk, 4);
}

/**
 * ndp_memory_may_queue() - check whether there is memory for data to be sent
 * @sk: the socket
 *
 * Return: true if a packet more may be queued.
 */
bool ndp_memory_may_queue(const struct sock *sk)
{
	return !READ_ONCE(sk->sk_wmem_queued) || !ndp_memory_beyond(sk, 6);
}

/* ---- sent data ---- */

/**
 * ndp_charge_sent() - count data that is about to be queued as memory of its socket
 * @sk: the socket, under the connection's lock
 * @bytes: memory of the data
 *
 * Return: false if there is no memory; nothing has changed then.
 */
bool ndp_charge_sent(struct sock *sk, u32 bytes)
{
	if (!ndp_memory_may_queue(sk))
		return false;
	if (sk->sk_wmem_queued && !sk_wmem_schedule(sk, bytes))
		return false;
	ndp_charge_fin(sk, bytes);
	return true;
}

/**
 * ndp_charge_fin() - as ndp_charge_sent(), for a packet that cannot be refused
 * @sk: the socket, under the connection's lock
 * @bytes: memory of the packet
 */
void ndp_charge_fin(struct sock *sk, u32 bytes)
{
	ndp_net_add(sock_net(sk), bytes);
	sk_wmem_queued_add(sk, bytes);
	sk_mem_charge(sk, bytes);
}

/**
 * ndp_add_page() - append a page fragment to a packet, or extend the packet's last fragment
 * @skb: the packet, which gets a reference to the page only with a new fragment
 * @pfrag: the page, and where the data starts; set to the end of the data
 * @bytes: bytes of data
 *
 * Return: false if the packet has as many fragments as it can have; nothing has changed then.
 */
bool ndp_add_page(struct sk_buff *skb, struct page_frag *pfrag, u32 bytes)
{
	int i = skb_shinfo(skb)->nr_frags;

	if (skb_can_coalesce(skb, i, pfrag->page, pfrag->offset)) {
		skb_frag_size_add(&skb_shinfo(skb)->frags[i - 1], bytes);
	} else {
		if (i == MAX_SKB_FRAGS)
			return false;
		get_page(pfrag->page);
		skb_fill_page_desc(skb, i, pfrag->page, pfrag->offset, bytes);
	}
	pfrag->offset += bytes;
	skb->len += bytes;
	skb->data_len += bytes;
	skb->truesize += bytes;
	return true;
}

/**
 * ndp_free_sent() - free a packet of the queue of sent data
 * @sk: the socket, under the connection's lock
 * @skb: the packet
 */
void ndp_free_sent(struct sock *sk, struct sk_buff *skb)
{
	__skb_unlink(skb, &sk->sk_write_queue);
	sk_wmem_queued_add(sk, -(int)skb->truesize);
	sk_mem_uncharge(sk, skb->truesize);
	ndp_net_add(sock_net(sk), -(long)skb->truesize);
	consume_skb(skb);
}

/* ---- received data ---- */

static bool ndp_may_receive(struct sock *sk, struct sk_buff *skb, bool next)
{
	/* Packets within the room that the peer was told of may be longer than earlier ones. */
	if (atomic_read(&sk->sk_rmem_alloc) / 2 > READ_ONCE(sk->sk_rcvbuf))
		return false;
	return !ndp_memory_beyond(sk, next ? 8 : 7) && sk_rmem_schedule(sk, skb, skb->truesize);
}

/**
 * ndp_charge_received() - count a packet that has arrived as memory of its socket
 * @sk: the socket, under the connection's lock
 * @skb: the packet
 * @next: it is the next packet of the stream
 *
 * Return: false if there is no memory; nothing has changed then, except that the receiver asks for
 * fewer packets.
 */
bool ndp_charge_received(struct sock *sk, struct sk_buff *skb, bool next)
{
	if (!next || !skb_queue_empty(&sk->sk_receive_queue)) {
		bool refused = !ndp_may_receive(sk, skb, next);

		WRITE_ONCE(ndp_sk(sk)->starved, refused);
		if (refused)
			return false;
	}
	ndp_net_add(sock_net(sk), skb->truesize);
	skb_orphan(skb);
	skb_set_owner_r(skb, sk);
	return true;
}

/**
 * ndp_uncharge_received() - undo ndp_charge_received() for a packet that is not kept
 * @sk: the socket, under the connection's lock
 * @skb: the packet
 */
void ndp_uncharge_received(struct sock *sk, struct sk_buff *skb)
{
	ndp_net_add(sock_net(sk), -(long)skb->truesize);
	skb_orphan(skb);
}

/**
 * ndp_free_received() - free a received packet
 * @sk: the socket, under the connection's lock
 * @skb: the packet, which is in no queue
 */
void ndp_free_received(struct sock *sk, struct sk_buff *skb)
{
	ndp_net_add(sock_net(sk), -(long)skb->truesize);
	consume_skb(skb);
}

/**
 * ndp_memory_wanted() - number of pulls that a connection has use for
 * @sk: the socket, under the connection's lock
 *
 * A packet that is not the next one of the stream may be pulled after a refusal. It is refused
 * again, and the peer sends it again after all others, so the next one comes after some pulls.
 *
 * Return: the number for ndp_pull_want().
 */
u32 ndp_memory_wanted(const struct sock *sk)
{
	const struct ndp_sock *ndp = ndp_sk(sk);
	u32 wanted = timely_ndp_receiver_wanted(&ndp->receiver);

	if (!ndp->starved)
		return wanted;
	if (!skb_queue_empty(&sk->sk_receive_queue) || ndp->receiver.granted != ndp->receiver.seen)
		return 0;
	return min(wanted, 1U);
}
