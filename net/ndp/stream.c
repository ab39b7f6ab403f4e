// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of an NDP socket that send and receive data.
 *
 * Sending: the data of a call is cut into packets of the largest payload, and the call's last
 * packet has the rest. The next call fills up that packet if it still waits to be sent, because a
 * pull for a short packet takes as long as one for a full packet. Data lies in page fragments, so
 * that each transmission has headers of its own but shares the data. The checksum of the payload is
 * computed while the data is in the cache.
 *
 * Receiving: sk_receive_queue has the packets in order, with the header removed. Only the program
 * that holds the socket's lock removes packets.
 */

#include <linux/net.h>
#include <linux/tcp.h>
#include <net/busy_poll.h>
#include <net/inet_common.h>
#include <net/sock.h>

#include "ndp.h"

/* ---- send ---- */

/**
 * ndp_stream_memory_free() - check whether a program may write; stream_memory_free of struct proto
 * @sk: the socket
 * @wake: not used
 *
 * Return: true if the send buffer is not full and there is memory.
 */
bool ndp_stream_memory_free(const struct sock *sk, int wake)
{
	return READ_ONCE(sk->sk_wmem_queued) < READ_ONCE(sk->sk_sndbuf) &&
	       ndp_memory_may_queue(sk);
}

/**
 * ndp_write_space() - wake programs that wait to write, if a third of the send buffer is free
 * @sk: the socket
 */
void ndp_write_space(struct sock *sk)
{
	struct socket_wq *wq;

	if (!sk_stream_is_writeable(sk))
		return;
	rcu_read_lock();
	wq = rcu_dereference(sk->sk_wq);
	if (skwq_has_sleeper(wq))
		wake_up_interruptible_poll(&wq->wait, EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
	if (wq && wq->fasync_list && !(sk->sk_shutdown & SEND_SHUTDOWN))
		sock_wake_async(wq, SOCK_WAKE_SPACE, POLL_OUT);
	rcu_read_unlock();
}

/* Copies data of the program into a new packet, and computes the state of its checksum. */
static int ndp_fill(struct sock *sk, struct sk_buff *skb, struct msghdr *msg, u32 bytes,
		    struct timely_ndp_sum *sum)
{
	timely_ndp_sum_start(sum);
	while (bytes) {
		struct page_frag *pfrag = sk_page_frag(sk);
		u32 part;
		u8 *to;

		if (!sk_page_frag_refill(sk, pfrag))
			return -ENOMEM;
		part = min_t(u32, bytes, pfrag->size - pfrag->offset);
		to = (u8 *)page_address(pfrag->page) + pfrag->offset;
		if (copy_from_iter(to, part, &msg->msg_iter) != part)
			return -EFAULT;
		timely_ndp_sum_add(sum, to, part);
		if (!ndp_add_page(skb, pfrag, part))
			return -EMSGSIZE;
		bytes -= part;
	}
	return 0;
}

/* Fills up the last packet with data of the program, if the packet was never sent and is short.
 * Return: bytes; 0 if a new packet is needed; or a negative error.
 */
static int ndp_send_more(struct sock *sk, struct msghdr *msg, u32 payload)
{
	struct page_frag *pfrag = sk_page_frag(sk);
	u32 last = ndp_sk(sk)->last.bytes, bytes;

	if (!READ_ONCE(ndp_sk(sk)->unsent) || last >= payload)
		return 0;
	if (!sk_page_frag_refill(sk, pfrag))
		return -ENOMEM;
	bytes = min3((u32)msg_data_left(msg), payload - last,
		     (u32)(pfrag->size - pfrag->offset));
	if (copy_from_iter(page_address(pfrag->page) + pfrag->offset, bytes, &msg->msg_iter) !=
	    bytes)
		return -EFAULT;
	if (ndp_conn_append(sk, pfrag, bytes, msg_data_left(msg)))
		return bytes;
	iov_iter_revert(&msg->msg_iter, bytes);
	return 0;
}

/* Sends one packet with data of the program. Return: bytes, or a negative error. */
static int ndp_send_packet(struct sock *sk, struct msghdr *msg, u32 payload)
{
	u32 bytes = min_t(size_t, msg_data_left(msg), payload);
	struct sk_buff *skb = alloc_skb(0, sk->sk_allocation);
	struct timely_ndp_sum sum;
	int err;

	if (!skb)
		return -ENOBUFS;
	err = ndp_fill(sk, skb, msg, bytes, &sum);
	if (!err && !ndp_conn_write(sk, skb, &sum, msg_data_left(msg)))
		err = -EAGAIN;
	if (!err)
		return bytes;
	if (err == -EAGAIN)
		iov_iter_revert(&msg->msg_iter, bytes);
	kfree_skb(skb);
	return err;
}

/* Sends data of the program, at most a packet. Return: bytes, or a negative error. */
static int ndp_send(struct sock *sk, struct msghdr *msg)
{
	u32 payload = ndp_conn_payload(sk);

	return ndp_send_more(sk, msg, payload) ?: ndp_send_packet(sk, msg, payload);
}

static int ndp_send_error(struct sock *sk)
{
	if (sk->sk_err || (sk->sk_shutdown & SEND_SHUTDOWN))
		return -EPIPE;
	if (sk->sk_state == TCP_CLOSE || sk->sk_state == TCP_LISTEN)
		return ndp_sk(sk)->started ? -EPIPE : -ENOTCONN;
	return 0;
}

/* Connects a socket by sendto() or sendmsg() with MSG_FASTOPEN, as TCP does. */
static int ndp_send_connect(struct sock *sk, struct msghdr *msg)
{
	if (!msg->msg_name || sk->sk_state != TCP_CLOSE)
		return msg->msg_name ? -EISCONN : -EDESTADDRREQ;
	return __inet_stream_connect(sk->sk_socket, msg->msg_name, msg->msg_namelen,
				     msg->msg_flags, 1);
}

/**
 * ndp_sendmsg() - send data of a program; the function sendmsg of struct proto
 * @sk: the socket
 * @msg: the data
 * @len: bytes of data
 *
 * Return: bytes that were sent or wait to be sent; or a negative error: -EAGAIN if the call must
 * not wait, -EPIPE if the connection is closed, -ENOTCONN, and the errors of the connection.
 */
int ndp_sendmsg(struct sock *sk, struct msghdr *msg, size_t len)
{
	long timeo;
	int err = 0;
	int sent = 0;

	if (msg->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	lock_sock(sk);
	if (msg->msg_flags & MSG_FASTOPEN)
		err = ndp_send_connect(sk, msg);
	timeo = sock_sndtimeo(sk, msg->msg_flags & MSG_DONTWAIT);
	sk_clear_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	while (!err) {
		/* A call without data fails, too, where a call with data would. */
		err = ndp_send_error(sk);
		if (err || !msg_data_left(msg))
			break;
		err = ndp_stream_memory_free(sk, 0) ? ndp_send(sk, msg) : -EAGAIN;
		if (err > 0) {
			sent += err;
			err = 0;
		} else if (err == -EAGAIN) {
			ndp_conn_push(sk);
			set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
			err = sk_stream_wait_memory(sk, &timeo);
		}
	}
	/* Packets that were written before an error do not wait for more. */
	if (err)
		ndp_conn_push(sk);
	if (sent)
		err = sent;
	else if (err)
		err = sk_stream_error(sk, msg->msg_flags, err);
	release_sock(sk);
	return err;
}

/* ---- receive ---- */

/* The packet after @skb in the receive queue, or the first packet if @skb is NULL. Packets may be
 * added at any time, but only the caller removes some.
 */
static struct sk_buff *ndp_recv_next(struct sock *sk, struct sk_buff *skb)
{
	spin_lock_bh(&ndp_sk(sk)->lock);
	skb = skb ? skb_peek_next(skb, &sk->sk_receive_queue) : skb_peek(&sk->sk_receive_queue);
	spin_unlock_bh(&ndp_sk(sk)->lock);
	return skb;
}

/* Copies data of the first packets to the program, up to @len bytes, and removes the packets that
 * were read to their end. Return: bytes; 0 if the queue is empty; or -EFAULT.
 */
static int ndp_recv_copy(struct sock *sk, struct msghdr *msg, size_t len, bool peek)
{
	struct sk_buff *skb = ndp_recv_next(sk, NULL), *next;
	int copied = 0;

	for (; skb && copied < len; skb = next) {
		u32 offset = NDP_CB(skb)->offset;
		int part = min_t(size_t, skb->len - offset, len - copied);

		if (!(msg->msg_flags & MSG_TRUNC) &&
		    skb_copy_datagram_msg(skb, offset, msg, part))
			return copied ?: -EFAULT;
		copied += part;
		next = ndp_recv_next(sk, skb);
		if (peek)
			continue;
		NDP_CB(skb)->offset += part;
		atomic_sub(part, &ndp_sk(sk)->unread);
		if (NDP_CB(skb)->offset == skb->len)
			ndp_conn_read(sk, skb);
	}
	return copied;
}

/* Whether no more data is to be expected. Data that has arrived may be in the queue. */
static bool ndp_recv_ended(const struct sock *sk)
{
	int state = inet_sk_state_load(sk);

	return READ_ONCE(sk->sk_err) || (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN) ||
	       state == TCP_CLOSE || state == TCP_LISTEN;
}

/* What a read returns then without data: 0 for the end of the stream, or a negative error. */
static int ndp_recv_end(struct sock *sk)
{
	if (READ_ONCE(sk->sk_err))
		return sock_error(sk);
	return (sk->sk_shutdown & RCV_SHUTDOWN) || ndp_sk(sk)->started ? 0 : -ENOTCONN;
}

/* Packets that arrive after this call wake the program even if they have less than SO_RCVLOWAT
 * bytes, because a part of these may have been read before.
 */
static void ndp_set_reading(struct sock *sk, bool reading)
{
	spin_lock_bh(&ndp_sk(sk)->lock);
	ndp_sk(sk)->reading = reading;
	spin_unlock_bh(&ndp_sk(sk)->lock);
}

/* Waits for more than @have unread bytes, an error, or the end of the stream or of the connection;
 * if @have is not 0, also until more might not fit. sk_wait_data() relies on the socket's lock,
 * which packets do not wait for, so it could miss the end of the stream.
 */
static void ndp_wait_data(struct sock *sk, int have, long *timeo)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	add_wait_queue(sk_sleep(sk), &wait);
	ndp_set_reading(sk, true);
	sk_set_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	sk_wait_event(sk, timeo,
		      atomic_read(&ndp_sk(sk)->unread) > have || ndp_recv_ended(sk) ||
		      (have && ndp_conn_full(sk)), &wait);
	sk_clear_bit(SOCKWQ_ASYNC_WAITDATA, sk);
	ndp_set_reading(sk, false);
	remove_wait_queue(sk_sleep(sk), &wait);
}

/* Waits until @target bytes can be read at once, or no more are to be expected. Nothing is read
 * meanwhile, so bytes that have no room would never come.
 */
static void ndp_wait_peek(struct sock *sk, size_t target, long *timeo)
{
	int have;

	while ((have = atomic_read(&ndp_sk(sk)->unread)) < target && *timeo &&
	       !ndp_recv_ended(sk) && !ndp_conn_full(sk) && !signal_pending(current)) {
		ndp_conn_open(sk);
		ndp_wait_data(sk, have, timeo);
	}
}

static int ndp_recv(struct sock *sk, struct msghdr *msg, size_t len, int flags)
{
	size_t target = sock_rcvlowat(sk, flags & MSG_WAITALL, len);
	long timeo = sock_rcvtimeo(sk, flags & MSG_DONTWAIT);
	int copied = 0;
	bool ended;

	if (flags & MSG_PEEK)
		ndp_wait_peek(sk, target, &timeo);
	for (;;) {
		int part = ndp_recv_copy(sk, msg, len - copied, flags & MSG_PEEK);

		if (part < 0)
			return copied ?: part;
		copied += part;
		/* A second look at the queue would copy the same data again. */
		if (copied >= target || (copied && (flags & MSG_PEEK)))
			return copied;
		/* The queue is looked at after the end, because data comes before the end. */
		ended = ndp_recv_ended(sk);
		if (ndp_recv_next(sk, NULL))
			continue;
		/* With data to return, an error is left to the next call. */
		if (ended)
			return copied ?: ndp_recv_end(sk);
		ndp_conn_open(sk);
		if (!timeo)
			return copied ?: -EAGAIN;
		if (signal_pending(current))
			return copied ?: sock_intr_errno(timeo);
		ndp_wait_data(sk, 0, &timeo);
	}
}

/* Gives received data to a program; the function recvmsg of struct proto. Return: bytes; 0 at the
 * end of the stream; or a negative error: -EAGAIN if the call must not wait, -ENOTCONN, and the
 * errors of the connection.
 */
TIMELY_PROTO_RECVMSG(ndp_recvmsg)
{
	int result;

	if (flags & (MSG_OOB | MSG_ERRQUEUE))
		return flags & MSG_OOB ? -EINVAL : -EAGAIN;
	if (!len)
		return 0;
	lock_sock(sk);
	/* MSG_TRUNC discards data, as with TCP. */
	msg->msg_flags = flags & MSG_TRUNC;
	result = ndp_recv(sk, msg, len, flags);
	msg->msg_flags = 0;
	release_sock(sk);
	return result;
}

/* ---- poll ---- */

/**
 * ndp_set_rcvlowat() - set SO_RCVLOWAT; the function set_rcvlowat of struct proto_ops
 * @sk: the socket
 * @bytes: programs that poll for input are told about this many bytes
 *
 * Return: 0.
 */
int ndp_set_rcvlowat(struct sock *sk, int bytes)
{
	WRITE_ONCE(sk->sk_rcvlowat, bytes ?: 1);
	/* The limit may be lower than the bytes that have arrived without a wake-up. */
	if (ndp_conn_readable(sk))
		sk->sk_data_ready(sk);
	return 0;
}

static __poll_t ndp_poll_out(struct sock *sk)
{
	if (sk_stream_is_writeable(sk))
		return EPOLLOUT | EPOLLWRNORM;
	sk_set_bit(SOCKWQ_ASYNC_NOSPACE, sk);
	set_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	/* Space may have become free before the bits were set, without a wake-up. */
	smp_mb__after_atomic();
	return sk_stream_is_writeable(sk) ? EPOLLOUT | EPOLLWRNORM : 0;
}

/**
 * ndp_poll() - what a program can do without waiting; the function poll of struct proto_ops
 * @file: not used
 * @sock: the socket
 * @wait: the table of a poll or select
 *
 * A program that polls for input waits for data of the peer, so the peer is told about the
 * connection, see ndp_conn_open().
 *
 * Return: EPOLLIN and others.
 */
__poll_t ndp_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait)
{
	struct sock *sk = sock->sk;
	__poll_t mask = 0;
	int state;

	sock_poll_wait(file, sock, wait);
	state = inet_sk_state_load(sk);
	if (state == TCP_LISTEN)
		return list_empty_careful(&ndp_sk(sk)->accept_queue) ? 0 : EPOLLIN | EPOLLRDNORM;
	if (poll_requested_events(wait) & (EPOLLIN | EPOLLRDNORM))
		ndp_conn_open(sk);
	if (READ_ONCE(sk->sk_err))
		mask |= EPOLLERR;
	if (READ_ONCE(sk->sk_shutdown) == SHUTDOWN_MASK || state == TCP_CLOSE)
		mask |= EPOLLHUP;
	if (READ_ONCE(sk->sk_shutdown) & RCV_SHUTDOWN)
		mask |= EPOLLIN | EPOLLRDNORM | EPOLLRDHUP;
	if (ndp_conn_readable(sk))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (READ_ONCE(sk->sk_shutdown) & SEND_SHUTDOWN)
		mask |= EPOLLOUT | EPOLLWRNORM;
	else if (state != TCP_CLOSE)
		mask |= ndp_poll_out(sk);
	return mask;
}
