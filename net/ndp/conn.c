// SPDX-License-Identifier: GPL-2.0
/*
 * A connection of NDP: feeds packets, calls of the program and timers to the engines, and keeps the
 * data that the engines decide about.
 *
 * Sent data: sk_write_queue has the packets from the first one that has not arrived, in order.
 * ndp_sock.sent finds those that were sent by their number, ndp_sock.unsent is the first of the
 * others. Received data: ndp_sock.ahead keeps packets that wait for earlier ones, sk_receive_queue
 * has packets in order for the program.
 *
 * Every event is a turn: ndp_begin() takes the lock, the event changes the engines, and ndp_end()
 * lets the sender send, follows the state, sets the timer, releases the lock, and sends packets and
 * wakes the program.
 *
 * The end: when both streams have arrived at their ends, or after a reset or timeout, the
 * connection leaves the table and is recorded in the namespace's record of past connections
 * (time-wait), which answers late packets. The socket itself remains until the program closes it.
 */

#include <asm/ioctls.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/sockios.h>
#include <net/ip.h>
#include <net/tcp_states.h>
#include <uapi/linux/ndp.h>

#include "ndp.h"

#include <trace/events/ndp.h>

/* Timeout of the sender: the paper's, 1 ms. Where round trips are long because switches do not
 * trim, the engine uses a longer one. Repeated timeouts double up to a maximum.
 */
#define NDP_RTO_NS		(1 * NSEC_PER_MSEC)
#define NDP_BACKOFF_MAX_NS	(100 * NSEC_PER_MSEC)

/* The time for each credit is smoothed over about this power of two of answers. */
#define NDP_CREDIT_SHIFT	4

/* At most this many packets have one answer: as many as a switch queues. */
#define NDP_UNANSWERED		8

/* An answer waits at most this long for a pull to go with: a tenth of the sender's timeout. */
#define NDP_HOLD_NS		(100 * NSEC_PER_USEC)

/* A program that has connected gets this time to send the first data. Then the peer is told about
 * the connection, because its program may wait for that in accept().
 */
#define NDP_OPEN_NS		(1 * NSEC_PER_MSEC)

/* How long a connection without a program waits for the peer to take data or to end its stream: one
 * minute since the program has closed the socket, or since data has arrived at the peer.
 */
#define NDP_ORPHAN_NS		(60ULL * NSEC_PER_SEC)

/* A keepalive is repeated this many times within the timeout of the peer. */
#define NDP_KEEPALIVE_PROBES	8

/**
 * struct ndp_turn - what is to be done after the lock of a connection is released
 * @now_ns: time of the event, CLOCK_MONOTONIC
 * @out: packets to send
 * @readable: there is new data, or the end of the stream, to read
 * @writable: send buffer has become free
 * @changed: the state has changed
 * @more: the program is about to write more data
 * @timer: the event is that the connection's timer has expired
 * @put: number of references to the socket to release
 * @before: for trace events; the last member
 */
struct ndp_turn {
	u64 now_ns;
	struct sk_buff_head out;
	bool readable;
	bool writable;
	bool changed;
	bool more;
	bool timer;
	u32 put;
	struct ndp_before before;
};

/* ---- memory ---- */

/**
 * ndp_conn_prepare() - allocate what a connection needs
 * @sk: the socket
 * @gfp: flags of the allocation
 *
 * Return: 0; -ENOMEM, or -ENOBUFS if the network namespace has reached its limit.
 */
int ndp_conn_prepare(struct sock *sk, gfp_t gfp)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_net *nn = ndp_net(sock_net(sk));
	struct timely_ndp_sender_config config = {
		.window = READ_ONCE(nn->window),
		.span = NDP_SPAN,
		.rto_min_ns = NDP_RTO_NS,
		.rto_max_ns = NDP_RTO_NS,
		.backoff_max_ns = NDP_BACKOFF_MAX_NS,
	};

	if (!ndp_net_charge(sock_net(sk), NDP_CONN_BYTES))
		return -ENOBUFS;
	/* One allocation for all: the engine's slots, then the packets of both directions. */
	ndp->slots = kmalloc_array(NDP_SPAN, sizeof(*ndp->slots) + 2 * sizeof(struct sk_buff *),
				   gfp | __GFP_NOWARN | __GFP_ACCOUNT);
	if (!ndp->slots) {
		ndp_net_add(sock_net(sk), -NDP_CONN_BYTES);
		return -ENOMEM;
	}
	ndp->sent = (struct sk_buff **)(ndp->slots + NDP_SPAN);
	ndp->ahead = ndp->sent + NDP_SPAN;
	memset(ndp->sent, 0, 2 * NDP_SPAN * sizeof(*ndp->sent));
	timely_ndp_paths_init(&ndp->paths, ndp->path_memory, NDP_PATHS, get_random_u64() | 1);
	timely_ndp_sender_init(&ndp->sender, &config, ndp->slots, &ndp->paths);
	/* The first packet tells how many packets there is room for, see ndp_take_data(). */
	timely_ndp_receiver_init(&ndp->receiver, ndp->map, NDP_SPAN, 1);
	return 0;
}

/* Frees all data that was not sent or has not arrived, and received data out of order. */
static void ndp_purge(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct sk_buff *skb;
	u32 i;

	while ((skb = skb_peek(&sk->sk_write_queue)))
		ndp_free_sent(sk, skb);
	ndp->unsent = NULL;
	if (!ndp->slots)
		return;
	for (i = 0; i < NDP_SPAN; i++) {
		if (ndp->ahead[i])
			ndp_free_received(sk, ndp->ahead[i]);
		ndp->ahead[i] = NULL;
		ndp->sent[i] = NULL;
	}
}

/**
 * ndp_conn_free() - free what a socket without references has of its connection
 * @sk: the socket
 */
void ndp_conn_free(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct sk_buff *skb;

	ndp_purge(sk);
	while ((skb = __skb_dequeue(&sk->sk_receive_queue)))
		ndp_free_received(sk, skb);
	if (ndp->slots)
		ndp_net_add(sock_net(sk), -NDP_CONN_BYTES);
	kfree(ndp->slots);
	ndp->slots = NULL;
}

/* ---- turns ---- */

static void ndp_begin(struct sock *sk, struct ndp_turn *turn)
{
	memset(turn, 0, offsetof(struct ndp_turn, before));
	__skb_queue_head_init(&turn->out);
	spin_lock_bh(&ndp_sk(sk)->lock);
	turn->now_ns = ktime_get_ns();
	ndp_trace_begin(sk, &turn->before, turn->now_ns);
}

static u64 ndp_timeout_ns(const struct sock *sk)
{
	return (u64)READ_ONCE(ndp_net(sock_net(sk))->timeout_ms) * NSEC_PER_MSEC;
}

static u64 ndp_keepalive_ns(const struct sock *sk)
{
	return (u64)READ_ONCE(ndp_net(sock_net(sk))->keepalive_ms) * NSEC_PER_MSEC;
}

/* Whether the peer was told about a connection without data and has not answered. */
static bool ndp_opening(const struct ndp_sock *ndp)
{
	return ndp->key.initiator && ndp->opened && !ndp->sender.answered &&
	       timely_ndp_sender_done(&ndp->sender);
}

/* Whether the peer should have answered something. */
static bool ndp_waits(const struct ndp_sock *ndp)
{
	return !timely_ndp_sender_done(&ndp->sender) || ndp_opening(ndp);
}

/* When a peer that does not answer any more counts as dead. */
static u64 ndp_dead_ns(const struct sock *sk)
{
	const struct ndp_sock *ndp = ndp_sk(sk);

	if (ndp->waits_ns)
		return max(ndp->waits_ns, ndp->heard_ns) + ndp_timeout_ns(sk);
	if (sock_flag(sk, SOCK_KEEPOPEN))
		return ndp->heard_ns + ndp_keepalive_ns(sk) + ndp_timeout_ns(sk);
	return TIMELY_NDP_NEVER;
}

/* When to send a PROBE that the engine does not know of: to repeat one that tells the peer about a
 * connection without data, or as a keepalive.
 */
static u64 ndp_probe_ns(const struct sock *sk)
{
	const struct ndp_sock *ndp = ndp_sk(sk);

	if (ndp_opening(ndp))
		return ndp->probed_ns + clamp_t(u64, ndp->probed_ns - ndp->waits_ns,
						NDP_RTO_NS, NDP_BACKOFF_MAX_NS);
	if (!sock_flag(sk, SOCK_KEEPOPEN))
		return TIMELY_NDP_NEVER;
	return max(ndp->heard_ns + ndp_keepalive_ns(sk),
		   ndp->probed_ns + div_u64(ndp_timeout_ns(sk), NDP_KEEPALIVE_PROBES));
}

/* When to tell the peer about a connection whose program has neither sent nor received. */
static u64 ndp_open_ns(const struct ndp_sock *ndp)
{
	return ndp->key.initiator && !ndp->opened ? ndp->heard_ns + NDP_OPEN_NS : TIMELY_NDP_NEVER;
}

/* When to send an answer that waits for a pull. */
static u64 ndp_hold_ns(const struct ndp_sock *ndp)
{
	return ndp->unanswered && !ndp->later ? ndp->unanswered_ns + NDP_HOLD_NS : TIMELY_NDP_NEVER;
}

static u64 ndp_due_ns(const struct sock *sk)
{
	const struct ndp_sock *ndp = ndp_sk(sk);
	u64 due = min3(timely_ndp_sender_due_ns(&ndp->sender), ndp_dead_ns(sk), ndp_probe_ns(sk));

	due = min3(due, ndp_open_ns(ndp), ndp_hold_ns(ndp));
	return ndp->orphan_ns ? min(due, ndp->orphan_ns) : due;
}

/* The data of the packet that the engine sends. @fresh: it was never sent before. */
static struct sk_buff *ndp_data(struct sock *sk, u32 seq, bool fresh)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct sk_buff *skb;

	if (!fresh)
		return ndp->sent[seq % NDP_SPAN];
	skb = ndp->unsent;
	ndp->sent[seq % NDP_SPAN] = skb;
	ndp->unsent = skb_peek_next(skb, &sk->sk_write_queue);
	return skb;
}

/* Sends what the engine allows to send. */
static void ndp_transmit(struct sock *sk, struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct timely_ndp_header header;

	for (;;) {
		u32 next = ndp->sender.next;

		switch (timely_ndp_sender_next(&ndp->sender, &header, turn->now_ns)) {
		case TIMELY_NDP_SEND_DATA:
			ndp_output_data(sk, &header, ndp_data(sk, header.seq, header.seq == next),
					&turn->out);
			break;
		case TIMELY_NDP_SEND_PROBE:
			ndp_output_control(sk, &header, &turn->out);
			break;
		default:
			return;
		}
	}
}

/* The state of the socket follows from the ends of both streams. */
static int ndp_state(const struct ndp_sock *ndp)
{
	bool closed = ndp->sender.finished;
	bool arrived = closed && timely_ndp_sender_done(&ndp->sender);

	if (timely_ndp_receiver_done(&ndp->receiver))
		return arrived ? TCP_CLOSE : closed ? TCP_LAST_ACK : TCP_CLOSE_WAIT;
	return arrived ? TCP_FIN_WAIT2 : closed ? TCP_FIN_WAIT1 : TCP_ESTABLISHED;
}

/* Records an ended connection, so that late packets do not open it again. */
static void ndp_record(struct sock *sk, u64 now_ns)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_net *nn = ndp_net(sock_net(sk));
	u64 until_ns = now_ns + (u64)READ_ONCE(nn->time_wait_ms) * NSEC_PER_MSEC;

	spin_lock(&nn->past_lock);
	timely_ndp_past_add(&nn->past, ndp_past_hash(sock_net(sk), &ndp->key),
			    ndp->reset ? NDP_PAST_RESET : ndp->receiver.cum, until_ns, now_ns);
	spin_unlock(&nn->past_lock);
}

/* Ends the connection. @err: the error that the program gets, 0 for none. */
static void ndp_finish(struct sock *sk, struct ndp_turn *turn, int err)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	ndp->ended = true;
	ndp_record(sk, turn->now_ns);
	ndp_pull_detach(sk);
	if (ndp_timer_stop(&ndp->timer))
		__sock_put(sk);
	turn->put += ndp_remove(sk);
	ndp_purge(sk);
	if (err)
		WRITE_ONCE(sk->sk_err, err);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	ndp_set_state(sk, TCP_CLOSE);
	turn->changed = true;
	if (sock_flag(sk, SOCK_DEAD))
		ndp_put_port(sk);
}

/* Ends the connection and tells the peer. */
static void ndp_reset(struct sock *sk, struct ndp_turn *turn, int err)
{
	struct timely_ndp_header header = { .type = TIMELY_NDP_RESET };

	if (ndp_sk(sk)->ended)
		return;
	ndp_sk(sk)->reset = true;
	if (ndp_sk(sk)->opened) {
		ndp_output_control(sk, &header, &turn->out);
		ndp_count(sock_net(sk), NDP_resets_sent);
	}
	ndp_finish(sk, turn, err);
}

/* Sets the bits of the streams that have ended. shutdown() sets its bit without the connection's
 * lock, so bits may get lost. They are set again here, in the turn that a shutdown() of the sent
 * stream ends with, or by ndp_conn_follow_shutdown().
 */
static void ndp_follow_ends(struct sock *sk, struct ndp_turn *turn)
{
	bool ended = timely_ndp_receiver_done(&ndp_sk(sk)->receiver);
	u8 bits = (ended ? RCV_SHUTDOWN : 0) |
		  (ndp_sk(sk)->sender.finished ? SEND_SHUTDOWN : 0);

	if (!(bits & ~sk->sk_shutdown))
		return;
	WRITE_ONCE(sk->sk_shutdown, sk->sk_shutdown | bits);
	turn->readable = true;
}

static void ndp_follow_state(struct sock *sk, struct ndp_turn *turn)
{
	int state = ndp_state(ndp_sk(sk));

	ndp_follow_ends(sk, turn);
	if (state == sk->sk_state)
		return;
	turn->changed = true;
	if (state != TCP_CLOSE) {
		ndp_set_state(sk, state);
		return;
	}
	ndp_count(sock_net(sk), NDP_completed);
	ndp_finish(sk, turn, 0);
}

static void ndp_wake(struct sock *sk, const struct ndp_turn *turn)
{
	if (turn->changed)
		sk->sk_state_change(sk);
	if (turn->changed && sk->sk_err)
		sk_error_report(sk);
	if (turn->readable)
		sk->sk_data_ready(sk);
	if (turn->writable)
		sk->sk_write_space(sk);
}

/* Whether more packets than the initial window wait to be sent for the first time. */
static bool ndp_full_window(const struct ndp_sock *ndp)
{
	return ndp->sender.end - ndp->sender.next > ndp->sender.config.window;
}

static void ndp_end(struct sock *sk, struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	if (ndp->started && !ndp->ended) {
		if (!turn->more || ndp_full_window(ndp))
			ndp_transmit(sk, turn);
		if (!ndp_waits(ndp))
			ndp->waits_ns = 0;
		else if (!ndp->waits_ns)
			ndp->waits_ns = turn->now_ns;
		ndp_trace_changes(sk, &turn->before, turn->now_ns);
		ndp_follow_state(sk, turn);
	}
	if (ndp->started && !ndp->ended && ndp_timer_set(&ndp->timer, ndp_due_ns(sk)))
		sock_hold(sk);
	if (turn->timer && ndp_timer_done(&ndp->timer))
		turn->put++;
	/* A reader that is woken before the answer is sent could delay it: softirqs that are
	 * raised by softirqs wait for ksoftirqd if a task is to run.
	 */
	if (ndp->later && turn->readable && !turn->changed) {
		ndp->wake_later = true;
		turn->readable = false;
	}
	spin_unlock_bh(&ndp->lock);
	ndp_output_send(sk, &turn->out);
	ndp_wake(sk, turn);
	while (turn->put--)
		sock_put(sk);
}

/* ---- answers ---- */

/* Whether the answer that waits may wait on, for the connection's next pull. */
static bool ndp_may_hold(const struct ndp_sock *ndp, u64 now_ns)
{
	return ndp->queue && ndp->answer.type == TIMELY_NDP_ACK &&
	       now_ns < ndp->unanswered_ns + NDP_HOLD_NS;
}

/* Sends the answer that waits. Pulls that are due go with it and need no packet of their own.
 * @may_hold: the answer may wait for the connection's next pull, or the next packet
 */
static void ndp_send_answer(struct sock *sk, struct ndp_turn *turn, bool may_hold)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	u32 wanted, due;

	if (!ndp->unanswered)
		return;
	wanted = ndp_memory_wanted(sk);
	due = ndp_pull_due(sk, wanted, turn->now_ns);
	may_hold &= wanted || timely_ndp_receiver_pulls_on_way(&ndp->receiver);
	if (may_hold && !due && ndp_may_hold(ndp, turn->now_ns))
		return;
	ndp->unanswered = 0;
	timely_ndp_receiver_grant(&ndp->receiver, due, &ndp->answer);
	ndp_output_control(sk, &ndp->answer, &turn->out);
}

/* Grants credits: with the answer that waits, or in a PULL. A lone connection's other pulls that
 * are due go with them.
 */
static void ndp_send_pull(struct sock *sk, struct ndp_turn *turn, u32 packets)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct timely_ndp_header *answer = &ndp->answer;

	if (ndp->unanswered)
		timely_ndp_receiver_grant(&ndp->receiver, packets, answer);
	else
		timely_ndp_receiver_pull(&ndp->receiver, packets, answer);
	ndp->unanswered = 0;
	ndp_pull_done(ndp, packets);
	packets = ndp_pull_due(sk, ndp_memory_wanted(sk), turn->now_ns);
	timely_ndp_receiver_grant(&ndp->receiver, packets, answer);
	ndp_output_control(sk, answer, &turn->out);
}

/* ---- timer ---- */

/* A host without NDP drops DATA over IPv6 without a word, but not a PROBE, see output.c. */
static void ndp_ask_host(struct ndp_sock *ndp, u64 now_ns)
{
	if (!ndp->sender.answered && ndp->sender.used && !ipv6_addr_v4mapped(&ndp->key.local))
		timely_ndp_sender_probe(&ndp->sender, now_ns);
}

/* Tells the peer about a connection without data. */
static void ndp_open(struct ndp_sock *ndp, u64 now_ns)
{
	ndp->opened = true;
	ndp->waits_ns = now_ns;
	ndp->probed_ns = now_ns;
	timely_ndp_sender_probe(&ndp->sender, now_ns);
}

static void ndp_expire(struct sock *sk, struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	if (turn->now_ns >= ndp_hold_ns(ndp)) {
		ndp_send_answer(sk, turn, false);
	} else if (turn->now_ns >= ndp_dead_ns(sk)) {
		ndp_count(sock_net(sk), NDP_timeouts);
		ndp_reset(sk, turn, READ_ONCE(sk->sk_err_soft) ?: ETIMEDOUT);
	} else if (ndp->orphan_ns && turn->now_ns >= ndp->orphan_ns) {
		ndp_reset(sk, turn, 0);
	} else if (turn->now_ns >= ndp_open_ns(ndp)) {
		ndp_open(ndp, turn->now_ns);
	} else {
		timely_ndp_sender_timeout(&ndp->sender, turn->now_ns);
		ndp_ask_host(ndp, turn->now_ns);
		if (turn->now_ns >= ndp_probe_ns(sk)) {
			ndp->probed_ns = turn->now_ns;
			timely_ndp_sender_probe(&ndp->sender, turn->now_ns);
		}
	}
}

static enum hrtimer_restart ndp_conn_timer(struct hrtimer *hr)
{
	struct ndp_sock *ndp = container_of(hr, struct ndp_sock, timer.hr);
	struct sock *sk = ndp_sock_of(ndp);
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	turn.timer = true;
	if (ndp_timer_due(&ndp->timer, turn.now_ns) && !ndp->ended)
		ndp_expire(sk, &turn);
	ndp_end(sk, &turn);
	return HRTIMER_NORESTART;
}

/**
 * ndp_conn_init() - initialise the part of a new socket that belongs to its connection
 * @sk: the socket
 */
void ndp_conn_init(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	ndp_timer_init(&ndp->timer, ndp_conn_timer);
	ndp->truesize = SKB_TRUESIZE(ETH_DATA_LEN);
}

/* The checksum of the payload of a received packet, which starts at @from. */
static u32 ndp_sum(struct sk_buff *skb, u32 from)
{
	struct timely_ndp_sum sum;
	struct skb_seq_state state;
	const u8 *data;
	u32 at = 0, bytes;

	timely_ndp_sum_start(&sum);
	skb_prepare_seq_read(skb, from, skb->len, &state);
	while ((bytes = skb_seq_read(at, &data, &state))) {
		timely_ndp_sum_add(&sum, data, bytes);
		at += bytes;
	}
	return timely_ndp_sum_end(&sum);
}

/* ---- calls of the program ---- */

/**
 * ndp_conn_start() - start a connection that this host opens; nothing is sent yet
 * @sk: the socket, whose addresses are set
 *
 * Return: 0, or a negative error of ndp_conn_prepare().
 */
int ndp_conn_start(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	int err = ndp->started ? -EISCONN : ndp_conn_prepare(sk, GFP_KERNEL);
	struct ndp_turn turn;

	if (err)
		return err;
	ndp->key.initiator = 1;
	ndp->heard_ns = ktime_get_ns();
	do {
		get_random_bytes(&ndp->key.conn, sizeof(ndp->key.conn));
	} while (!ndp_insert(sk));
	/* From now on another thread that waits for data, or the timer, may send a PROBE. */
	ndp_begin(sk, &turn);
	ndp->started = true;
	ndp_count(sock_net(sk), NDP_opened);
	ndp_end(sk, &turn);
	return 0;
}

/**
 * ndp_conn_open() - tell the peer about a connection without data
 * @sk: the socket
 *
 * The program waits for data of the peer. If nothing was sent yet, the peer does not know about
 * the connection. A PROBE opens it at the peer.
 */
void ndp_conn_open(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_turn turn;

	if (READ_ONCE(ndp->opened) || !READ_ONCE(ndp->started))
		return;
	ndp_begin(sk, &turn);
	if (!ndp->opened && !ndp->ended && ndp->key.initiator)
		ndp_open(ndp, turn.now_ns);
	ndp_end(sk, &turn);
}

/**
 * ndp_conn_payload() - bytes of data in a full packet
 * @sk: the socket
 *
 * Packets have room for a cookie until the peer has answered. If keys are added later, packets that
 * were cut before are sent in fragments, as after a change of the MTU.
 *
 * Return: what fits the route's MTU beside the headers; for a socket without route, what fits the
 * MTU of Ethernet.
 */
u32 ndp_conn_payload(struct sock *sk)
{
	const struct ndp_sock *ndp = ndp_sk(sk);
	u32 headers = sizeof(struct ipv6hdr) + sizeof(struct udphdr) +
		      ndp_output_header_bytes(sock_net(sk));
	u32 mtu = ETH_DATA_LEN;
	struct dst_entry *dst;

	if (ndp->started) {
		dst = ndp_output_route(sk);
		if (dst)
			mtu = dst_mtu(dst);
		dst_release(dst);
	}
	if (ipv6_addr_v4mapped(&ndp->key.peer))
		headers -= sizeof(struct ipv6hdr) - sizeof(struct iphdr);
	if (ndp->key.initiator && !READ_ONCE(ndp->sender.answered))
		headers += TIMELY_NDP_COOKIE_BYTES;
	return clamp_t(int, mtu - headers, 256, TIMELY_NDP_MAX_PAYLOAD);
}

/* Sets the checksum of the packet that was written last. More data may be added to the packet, so
 * the state of the checksum is kept.
 */
static void ndp_set_sum(const struct ndp_sock *ndp, struct sk_buff *skb)
{
	struct timely_ndp_sum sum = ndp->last;

	NDP_CB(skb)->sum = timely_ndp_sum_end(&sum);
}

/**
 * ndp_conn_write() - send a packet with data of the program
 * @sk: the socket, connected
 * @skb: the data, taken over if the function returns true
 * @sum: state of the checksum of the data
 * @more: more data of the same call of the program follows at once
 *
 * A packet is the last one for the receiver (TIMELY_NDP_LAST) if no other waits when it is sent.
 * So with @more, nothing is sent before more than a window of packets waits.
 *
 * Return: false if there is no memory for the packet, or the connection has ended.
 */
bool ndp_conn_write(struct sock *sk, struct sk_buff *skb, const struct timely_ndp_sum *sum,
		    bool more)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_turn turn;
	bool charged;

	ndp_begin(sk, &turn);
	turn.more = more;
	charged = !ndp->ended && !ndp->sender.finished &&
		  ndp_charge_sent(sk, skb->truesize);
	if (charged) {
		__skb_queue_tail(&sk->sk_write_queue, skb);
		if (!ndp->unsent)
			ndp->unsent = skb;
		ndp->last = *sum;
		ndp_set_sum(ndp, skb);
		ndp->opened = true;
		timely_ndp_sender_queue(&ndp->sender, 1, turn.now_ns);
	} else {
		turn.more = false;
	}
	ndp_end(sk, &turn);
	return charged;
}

/* Whether data may be added to a packet. Each page of a packet, of up to 32 KB, is kept until the
 * packet has arrived, but only the bytes of data are counted as memory. Data behind the packet's
 * last page fragment needs no other page. A program that writes to several sockets by turns has its
 * data for each in many fragments, which may lie in as many pages.
 */
static bool ndp_may_append(struct sk_buff *skb, const struct page_frag *pfrag)
{
	int frags = skb_shinfo(skb)->nr_frags;

	return frags < NDP_APPEND_FRAGS ||
	       skb_can_coalesce(skb, frags, pfrag->page, pfrag->offset);
}

/**
 * ndp_conn_append() - add data of the program to the last packet, if it has never been sent
 * @sk: the socket, connected
 * @pfrag: the data
 * @bytes: bytes of data
 * @more: more data of the same call of the program follows at once
 *
 * Return: false if a new packet is needed: the last one has been sent meanwhile, or has enough
 * fragments; or there is no memory.
 */
bool ndp_conn_append(struct sock *sk, struct page_frag *pfrag, u32 bytes, bool more)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_turn turn;
	struct sk_buff *last;
	bool added = false;

	ndp_begin(sk, &turn);
	last = skb_peek_tail(&sk->sk_write_queue);
	if (ndp->unsent && !ndp->sender.finished && ndp_may_append(last, pfrag) &&
	    ndp_charge_sent(sk, bytes)) {
		timely_ndp_sum_add(&ndp->last, page_address(pfrag->page) + pfrag->offset, bytes);
		ndp_set_sum(ndp, last);
		added = ndp_add_page(last, pfrag, bytes);
	}
	turn.more = more || !added;
	ndp_end(sk, &turn);
	return added;
}

/**
 * ndp_conn_push() - send packets that were written with @more
 * @sk: the socket
 */
void ndp_conn_push(struct sock *sk)
{
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	ndp_end(sk, &turn);
}

/* Number of packets that fit in what is left of the receive buffer. */
static u32 ndp_fitting(const struct sock *sk)
{
	int free = READ_ONCE(sk->sk_rcvbuf) - atomic_read(&sk->sk_rmem_alloc);

	return max(free, 0) / READ_ONCE(ndp_sk(sk)->truesize);
}

/* First packet number that the socket has no room for. A receive buffer that is smaller than a
 * packet has room for one packet while the buffer is empty. Otherwise nothing would ever arrive.
 */
static u32 ndp_room(const struct sock *sk)
{
	const struct timely_ndp_receiver *r = &ndp_sk(sk)->receiver;
	u32 fitting = ndp_fitting(sk);

	if (!fitting && !r->ahead && skb_queue_empty(&sk->sk_receive_queue))
		fitting = 1;
	return r->cum + r->ahead + fitting;
}

/**
 * ndp_conn_read() - the program has read a packet to its end
 * @sk: the socket
 * @skb: the packet, first in the receive queue; freed
 */
void ndp_conn_read(struct sock *sk, struct sk_buff *skb)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct timely_ndp_header header;
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	__skb_unlink(skb, &sk->sk_receive_queue);
	ndp_free_received(sk, skb);
	if (!ndp->ended) {
		WRITE_ONCE(ndp->starved, false);
		if (timely_ndp_receiver_room(&ndp->receiver, ndp_room(sk), &header))
			ndp_output_control(sk, &header, &turn.out);
		ndp_pull_want(sk, ndp_memory_wanted(sk));
	}
	ndp_end(sk, &turn);
}

/* An empty packet carries the end of the stream if all data was sent before. */
static void ndp_add_fin(struct sock *sk, struct sk_buff *skb)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	NDP_CB(skb)->sum = timely_ndp_sum(NULL, 0);
	ndp_charge_fin(sk, skb->truesize);
	__skb_queue_tail(&sk->sk_write_queue, skb);
	if (!ndp->unsent)
		ndp->unsent = skb;
}

/**
 * ndp_conn_shutdown() - end the sent stream
 * @sk: the socket, connected, under the socket's lock
 */
void ndp_conn_shutdown(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct sk_buff *skb = alloc_skb(0, GFP_KERNEL | __GFP_NOFAIL);
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	if (!ndp->ended && !ndp->sender.finished) {
		ndp->opened = true;
		if (timely_ndp_sender_finish(&ndp->sender, turn.now_ns)) {
			ndp_add_fin(sk, skb);
			skb = NULL;
		}
	}
	ndp_end(sk, &turn);
	kfree_skb(skb);
}

/**
 * ndp_conn_follow_shutdown() - set the bits of sk_shutdown again that shutdown() may have lost
 * @sk: the socket, under the socket's lock
 */
void ndp_conn_follow_shutdown(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	spin_lock_bh(&ndp->lock);
	if (ndp->ended)
		WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	spin_unlock_bh(&ndp->lock);
}

/**
 * ndp_conn_abort() - end the connection at once, and reset it at the peer
 * @sk: the socket
 */
void ndp_conn_abort(struct sock *sk)
{
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	ndp_reset(sk, &turn, 0);
	ndp_end(sk, &turn);
}

/**
 * ndp_conn_orphaned() - the program has closed a socket whose connection has not ended
 * @sk: the socket, marked as dead
 */
void ndp_conn_orphaned(struct sock *sk)
{
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	ndp_sk(sk)->orphan_ns = turn.now_ns + NDP_ORPHAN_NS;
	if (ndp_sk(sk)->ended)
		ndp_put_port(sk);
	/* Data has arrived since ndp_close_conn() looked. */
	else if (!skb_queue_empty(&sk->sk_receive_queue))
		ndp_reset(sk, &turn, 0);
	ndp_end(sk, &turn);
}

/**
 * ndp_conn_keepalive() - SO_KEEPALIVE was set; the function keepalive of struct proto
 * @sk: the socket
 * @on: whether the peer is asked when the connection is idle
 */
void ndp_conn_keepalive(struct sock *sk, int on)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	if (on && ndp->started && !ndp->ended) {
		sock_set_flag(sk, SOCK_KEEPOPEN);
		ndp->heard_ns = max(ndp->heard_ns, turn.now_ns);
	}
	ndp_end(sk, &turn);
}

/**
 * ndp_conn_queued() - bytes in the queues of a socket, for SIOCINQ and SIOCOUTQ
 * @sk: the socket
 * @cmd: number of the ioctl
 *
 * Return: bytes; -EINVAL for a listener; -ENOIOCTLCMD for another number.
 */
int ndp_conn_queued(struct sock *sk, int cmd)
{
	struct sk_buff *skb;
	int bytes = 0;

	if (cmd != SIOCINQ && cmd != SIOCOUTQ)
		return -ENOIOCTLCMD;
	if (sk->sk_state == TCP_LISTEN)
		return -EINVAL;
	spin_lock_bh(&ndp_sk(sk)->lock);
	if (cmd == SIOCINQ) {
		skb_queue_walk(&sk->sk_receive_queue, skb)
			bytes += skb->len - NDP_CB(skb)->offset;
	} else {
		skb_queue_walk(&sk->sk_write_queue, skb)
			bytes += skb->len;
	}
	spin_unlock_bh(&ndp_sk(sk)->lock);
	return bytes;
}

static void ndp_fill_info(const struct sock *sk, struct ndp_info *info)
{
	const struct ndp_sock *ndp = ndp_sk(sk);
	const struct timely_ndp_sender *s = &ndp->sender;
	const struct timely_ndp_receiver *r = &ndp->receiver;

	info->state = sk->sk_state;
	info->flags = (s->answered ? NDP_INFO_ANSWERED : 0) |
		      (s->graceful ? NDP_INFO_GRACEFUL : 0);
	info->rtt_us = s->srtt_ns / NSEC_PER_USEC;
	info->unacked = s->end - s->una;
	info->credits = s->config.window + s->granted - s->used;
	info->room = s->limit - s->una;
	info->sent = s->stats.sent;
	info->nacked = s->stats.nacked;
	info->returned = s->stats.returned;
	info->lost = s->stats.lost;
	info->timeouts = s->stats.timeouts;
	info->pulled = s->stats.pulls;
	info->received = r->stats.received;
	info->repeated = r->stats.repeated;
	info->trimmed = r->stats.trimmed;
	info->damaged = r->stats.bad;
	info->no_room = r->stats.no_room;
	info->pulls = r->stats.pulls;
}

/**
 * ndp_conn_info() - the state of a connection, for NDP_INFO
 * @sk: the socket
 * @info: filled in
 */
void ndp_conn_info(struct sock *sk, struct ndp_info *info)
{
	memset(info, 0, sizeof(*info));
	info->payload = ndp_conn_payload(sk);
	spin_lock_bh(&ndp_sk(sk)->lock);
	ndp_fill_info(sk, info);
	info->pull_kbps = ndp_pull_rate_kbps(sk);
	spin_unlock_bh(&ndp_sk(sk)->lock);
}

/* ---- packets ---- */

/* Notes the time for each credit, which users see. @gap_ns: time since the last answer that granted
 * credits, or 0 if none was expected since. That answer's credits needed this time.
 */
static void ndp_note_credits(struct ndp_sock *ndp, u32 credits, u64 gap_ns)
{
	u64 each_ns;

	if (!credits)
		return;
	each_ns = div_u64(gap_ns, ndp->credits_last ?: 1);
	if (!ndp->credit_ns)
		ndp->credit_ns = each_ns;
	else if (gap_ns)
		ndp->credit_ns += ((s64)(each_ns - ndp->credit_ns)) >> NDP_CREDIT_SHIFT;
	ndp->credits_last = credits;
}

/* Frees sent packets that have arrived. */
static void ndp_release_sent(struct sock *sk, struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	for (; ndp->freed != ndp->sender.una; ndp->freed++) {
		u32 i = ndp->freed % NDP_SPAN;

		ndp_free_sent(sk, ndp->sent[i]);
		ndp->sent[i] = NULL;
		turn->writable = true;
		if (ndp->orphan_ns)
			ndp->orphan_ns = turn->now_ns + NDP_ORPHAN_NS;
	}
}

/**
 * ndp_conn_full() - check whether programs should read before more data arrives
 * @sk: the socket
 *
 * Return: true if there is data to read, and more might not fit: the receive buffer is half full or
 * has no room for a packet, or memory is short.
 */
bool ndp_conn_full(const struct sock *sk)
{
	return atomic_read(&ndp_sk(sk)->unread) &&
	       (atomic_read(&sk->sk_rmem_alloc) > READ_ONCE(sk->sk_rcvbuf) / 2 ||
		!ndp_fitting(sk) || ndp_memory_short(sk));
}

/**
 * ndp_conn_readable() - check whether programs that poll for input are told
 * @sk: the socket
 *
 * Return: true if SO_RCVLOWAT bytes can be read; or less, if more might not fit.
 */
bool ndp_conn_readable(const struct sock *sk)
{
	return atomic_read(&ndp_sk(sk)->unread) >= READ_ONCE(sk->sk_rcvlowat) || ndp_conn_full(sk);
}

/* Moves packets that are in order to the program's queue. */
static void ndp_deliver(struct sock *sk, struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	for (; ndp->delivered != ndp->receiver.cum; ndp->delivered++) {
		u32 i = ndp->delivered % NDP_SPAN;
		struct sk_buff *skb = ndp->ahead[i];

		ndp->ahead[i] = NULL;
		if (!skb)
			continue;
		__skb_queue_tail(&sk->sk_receive_queue, skb);
		atomic_add(skb->len, &ndp->unread);
		turn->readable = ndp->reading || ndp_conn_readable(sk);
	}
}

/* Keeps the payload of a new packet. A packet without payload only counts. */
static void ndp_store(struct sock *sk, struct ndp_packet *packet, struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct sk_buff *skb = packet->skb;

	if (!packet->header.length) {
		ndp_free_received(sk, skb);
	} else {
		skb_pull(skb, packet->header_bytes);
		skb_dst_drop(skb);
		skb_ext_reset(skb);
		nf_reset_ct(skb);
		NDP_CB(skb)->offset = 0;
		ndp->ahead[packet->header.seq % NDP_SPAN] = skb;
	}
	packet->skb = NULL;
	ndp_deliver(sk, turn);
}

static enum timely_ndp_payload ndp_payload_state(struct sock *sk, struct ndp_packet *packet)
{
	if (packet->cut)
		return TIMELY_NDP_PAYLOAD_CUT;
	if (ndp_sum(packet->skb, packet->header_bytes) != packet->header.sum)
		return TIMELY_NDP_PAYLOAD_BAD;
	if (ndp_charge_received(sk, packet->skb, packet->header.seq == ndp_sk(sk)->receiver.cum))
		return TIMELY_NDP_PAYLOAD_WHOLE;
	ndp_count(sock_net(sk), NDP_no_memory);
	return TIMELY_NDP_PAYLOAD_BAD;
}

/* Notes the payload of full packets, which changes with the MTU of the path. */
static void ndp_note_length(struct ndp_sock *ndp, u32 length)
{
	ndp->peer_longest = max(ndp->peer_longest, length);
	ndp->peer_payload = max(ndp->peer_payload, length);
	if (++ndp->peer_packets % NDP_RECENT)
		return;
	ndp->peer_payload = ndp->peer_longest;
	ndp->peer_longest = 0;
}

/* Answers a DATA packet: at once, with the next ones that the device's driver delivers in the same
 * poll, or with the connection's next pull. An ACK need not be sent if a later answer or PULL says
 * that this packet has arrived.
 */
static void ndp_answer(struct sock *sk, const struct ndp_packet *packet,
		       const struct timely_ndp_header *answer, struct ndp_turn *turn)
{
	const u16 at_once = TIMELY_NDP_SYN | TIMELY_NDP_LAST | TIMELY_NDP_FIN;
	struct ndp_sock *ndp = ndp_sk(sk);

	if (ndp->unanswered && !timely_ndp_says_arrived(answer, ndp->answer.seq))
		ndp_send_answer(sk, turn, false);
	ndp->answer = *answer;
	if (!ndp->unanswered++)
		ndp->unanswered_ns = turn->now_ns;
	if (answer->type != TIMELY_NDP_ACK || packet->header.flags & at_once ||
	    ndp->unanswered == NDP_UNANSWERED ||
	    /* The connection may end with this packet, and sends nothing later. */
	    timely_ndp_receiver_done(&ndp->receiver))
		ndp_send_answer(sk, turn, false);
	else
		ndp_later(sk);
}

static void ndp_take_data(struct sock *sk, struct ndp_packet *packet, struct ndp_turn *turn)
{
	enum timely_ndp_payload payload = ndp_payload_state(sk, packet);
	struct ndp_sock *ndp = ndp_sk(sk);
	struct timely_ndp_header answer;
	enum timely_ndp_verdict verdict;

	ndp->peer_tagged = packet->header.key;
	ndp_note_length(ndp, packet->header.length);
	WRITE_ONCE(ndp->truesize, max3(ndp->truesize, packet->skb->truesize,
				       (u32)SKB_TRUESIZE(packet->header.length)));
	/* There may be no memory for the packet, but data that the program was not told about. */
	turn->readable |= payload == TIMELY_NDP_PAYLOAD_BAD && ndp_conn_readable(sk);
	timely_ndp_receiver_room(&ndp->receiver, ndp_room(sk), &answer);
	verdict = timely_ndp_receiver_data(&ndp->receiver, &packet->header, payload, &answer);
	if (timely_ndp_receiver_idle(&ndp->receiver))
		ndp->message = ndp->receiver.stats.received;
	if (verdict == TIMELY_NDP_RECEIVED) {
		if (sock_flag(sk, SOCK_DEAD) && packet->header.length) {
			ndp_uncharge_received(sk, packet->skb);
			ndp_reset(sk, turn, 0);
			return;
		}
		ndp_store(sk, packet, turn);
	} else if (payload == TIMELY_NDP_PAYLOAD_WHOLE) {
		ndp_uncharge_received(sk, packet->skb);
	}
	if (verdict == TIMELY_NDP_REFUSED)
		return;
	if (verdict == TIMELY_NDP_MISSED && packet->cut)
		ndp_pull_again(ndp, packet->header.seq, packet->header.length);
	else if (verdict == TIMELY_NDP_RECEIVED)
		ndp_pull_arrived(ndp, packet);
	ndp_answer(sk, packet, &answer, turn);
}

static void ndp_take_probe(struct sock *sk, const struct ndp_packet *packet,
			   struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct timely_ndp_header answer;

	if (!timely_ndp_receiver_probe(&ndp->receiver, &packet->header, &answer))
		return;
	ndp_output_control(sk, &answer, &turn->out);
	ndp_pull_want(sk, ndp_memory_wanted(sk));
}

static void ndp_take_reset(struct sock *sk, struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	bool refused = ndp->key.initiator && !ndp->sender.answered;

	ndp_count(sock_net(sk), NDP_resets_received);
	ndp->reset = true;
	ndp_finish(sk, turn, refused ? ECONNREFUSED : ECONNRESET);
}

/* The listener wants a proof of this host's address. Packets get the cookie from now on. For the
 * engine those that were sent without it are returned packets: one is sent again at once, and the
 * listener pulls the others. But no switch has returned them.
 */
static void ndp_take_cookie(struct sock *sk, const struct ndp_packet *packet,
			    struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	u32 seq;

	if (!ndp->key.initiator || ndp->sender.answered || !packet->header.cookie ||
	    ndp->cookie == packet->header.cookie)
		return;
	ndp->cookie = packet->header.cookie;
	for (seq = ndp->sender.una; seq != ndp->sender.next; seq++) {
		const struct timely_ndp_slot *slot = &ndp->slots[seq % NDP_SPAN];
		struct timely_ndp_header header = { .seq = seq, .tries = slot->tries };

		timely_ndp_sender_came_back(&ndp->sender, &header, turn->now_ns);
	}
	if (ndp_opening(ndp))
		timely_ndp_sender_probe(&ndp->sender, turn->now_ns);
}

static void ndp_take_answer(struct sock *sk, const struct ndp_packet *packet,
			    struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	u32 granted = ndp->sender.granted;
	u64 gap_ns = 0;

	if (granted != ndp->sender.promised)
		gap_ns = turn->now_ns - ndp->sender.last_pull_ns;
	if (!timely_ndp_sender_answer(&ndp->sender, &packet->header, turn->now_ns))
		return;
	ndp_note_credits(ndp, ndp->sender.granted - granted, gap_ns);
	ndp_release_sent(sk, turn);
}

static void ndp_take(struct sock *sk, struct ndp_packet *packet, struct ndp_turn *turn)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	if (packet->header.type != TIMELY_NDP_DATA || packet->cut)
		ndp_pull_leave_room(ndp, packet->skb, turn->now_ns);
	switch (packet->header.type) {
	case TIMELY_NDP_DATA:
		ndp_take_data(sk, packet, turn);
		break;
	case TIMELY_NDP_ACK:
	case TIMELY_NDP_NACK:
	case TIMELY_NDP_PULL:
		ndp_take_answer(sk, packet, turn);
		break;
	case TIMELY_NDP_PROBE:
		ndp_take_probe(sk, packet, turn);
		break;
	case TIMELY_NDP_RESET:
		ndp_take_reset(sk, turn);
		break;
	case TIMELY_NDP_COOKIE:
		ndp_take_cookie(sk, packet, turn);
		break;
	}
}

/**
 * ndp_conn_packet() - a packet of the peer has arrived
 * @sk: the socket
 * @packet: the packet; @packet->skb is set to NULL if the packet is kept
 *
 * Context: softirq, RCU read lock.
 */
void ndp_conn_packet(struct sock *sk, struct ndp_packet *packet)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	if (ndp->started && !ndp->ended) {
		ndp->heard_ns = turn.now_ns;
		WRITE_ONCE(sk->sk_err_soft, 0);
		ndp_pull_attach(sk, packet->skb);
		trace_ndp_received(sock_net(sk), &ndp->key, &packet->header, packet->cut);
		ndp_take(sk, packet, &turn);
	}
	ndp_end(sk, &turn);
}

/**
 * ndp_conn_returned() - a switch has returned a DATA packet of this connection
 * @sk: the socket
 * @packet: the packet
 *
 * Context: softirq, RCU read lock.
 */
void ndp_conn_returned(struct sock *sk, const struct ndp_packet *packet)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	if (ndp->started && !ndp->ended) {
		trace_ndp_returned(sock_net(sk), &ndp->key, &packet->header, packet->cut);
		timely_ndp_sender_returned(&ndp->sender, &packet->header, turn.now_ns);
	}
	ndp_end(sk, &turn);
}

/**
 * ndp_conn_answer() - the driver's poll is over: answer what has not been answered, unless a pull
 *	will do so, and wake the reader
 * @sk: the socket
 *
 * Context: softirq.
 */
void ndp_conn_answer(struct sock *sk)
{
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	ndp_sk(sk)->later = false;
	turn.readable = ndp_sk(sk)->wake_later;
	ndp_sk(sk)->wake_later = false;
	if (!ndp_sk(sk)->ended)
		ndp_send_answer(sk, &turn, true);
	ndp_end(sk, &turn);
}

/**
 * ndp_conn_pull() - the connection's turn in the pull queue has come
 * @sk: the socket
 * @packets: number of packets to ask for
 *
 * Context: softirq.
 */
void ndp_conn_pull(struct sock *sk, u32 packets)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	if (!ndp->ended) {
		/* Some may have arrived since the connection's turn came. */
		packets = clamp(ndp_memory_wanted(sk), 1U, packets);
		ndp_send_pull(sk, &turn, packets);
	}
	ndp_end(sk, &turn);
}

/* Whether a packet with this header is in flight. */
static bool ndp_in_flight(const struct ndp_sock *ndp, const struct timely_ndp_header *header)
{
	const struct timely_ndp_sender *s = &ndp->sender;

	if (!ndp->started || ndp->ended)
		return false;
	if (header->type == TIMELY_NDP_PROBE)
		return header->credits == s->used;
	return header->type == TIMELY_NDP_DATA && header->seq - s->una < s->next - s->una &&
	       ndp->slots[header->seq % NDP_SPAN].state != TIMELY_NDP_SLOT_ACKED;
}

/**
 * ndp_conn_in_flight() - check whether a packet may be in flight
 * @sk: the socket
 * @header: header of the packet
 *
 * Return: true if the connection has sent such a packet, which has not arrived as far as known.
 */
bool ndp_conn_in_flight(struct sock *sk, const struct timely_ndp_header *header)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	bool found;

	spin_lock_bh(&ndp->lock);
	found = ndp_in_flight(ndp, header);
	spin_unlock_bh(&ndp->lock);
	return found;
}

/**
 * ndp_conn_error() - ICMP has reported an error for a packet of this connection
 * @sk: the socket
 * @header: header of the packet
 * @err: the error, positive
 *
 * EMSGSIZE: the packet was too long for the path. New packets are shorter, as the MTU of the route
 * has become smaller; this one is sent again in fragments. Other errors end a connection whose peer
 * has never answered. Otherwise the error only becomes the reason of a timeout, as with TCP.
 *
 * Context: softirq, RCU read lock.
 */
void ndp_conn_error(struct sock *sk, const struct timely_ndp_header *header, int err)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct ndp_turn turn;

	ndp_begin(sk, &turn);
	if (!ndp_in_flight(ndp, header)) {
		/* The packet has arrived meanwhile. */
	} else if (err == EMSGSIZE) {
		if (header->type == TIMELY_NDP_DATA)
			timely_ndp_sender_came_back(&ndp->sender, header, turn.now_ns);
	} else if (ndp->key.initiator && !ndp->sender.answered) {
		ndp->reset = true;
		ndp_finish(sk, &turn, err);
	} else {
		WRITE_ONCE(sk->sk_err_soft, err);
	}
	ndp_end(sk, &turn);
}
