// SPDX-License-Identifier: GPL-2.0
/*
 * The calls of an NDP socket that create, name and end connections, and the socket options.
 * stream.c sends and receives data, conn.c has the protocol.
 *
 * Locks: the socket's lock (lock_sock()) serialises calls of programs. Packets and timers do not
 * wait for that lock, because NDP's answers must leave at once: they take only ndp_sock.lock, a
 * spinlock that protects the state of the connection, the queues and the accounted memory. A call
 * that changes this state holds both locks.
 *
 * A connection needs no handshake. connect() finds a route and returns; the first packets carry
 * data. If the program waits for input before it has sent any data, an empty first packet tells
 * the listener about the connection. A refused connection is reported by the first call after the
 * refusal (ECONNREFUSED), not by connect().
 */

#include <linux/in.h>
#include <linux/net.h>
#include <linux/random.h>
#include <linux/tcp.h>
#include <net/inet_common.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/protocol.h>
#include <net/route.h>
#include <net/transp_v6.h>
#include <net/xfrm.h>
#include <uapi/linux/ndp.h>

#include <timely_inet.h>

#include "ndp.h"

/* ---- creating ---- */

/**
 * ndp_sock_init() - initialise the part of a new socket that NDP uses
 * @sk: the socket, or a clone of a listener, which has copies of the listener's members
 */
void ndp_sock_init(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	const size_t kept = offsetof(struct ndp_sock, lock);

	INIT_HLIST_NODE(&ndp->bound);
	INIT_HLIST_NODE(&ndp->hashed);
	memset(&ndp->key, 0, sizeof(ndp->key));
	memset((u8 *)ndp + kept, 0, sizeof(*ndp) - kept);
	spin_lock_init(&ndp->lock);
	INIT_LIST_HEAD(&ndp->accept_queue);
	INIT_LIST_HEAD(&ndp->accept_node);
	ndp_conn_init(sk);
	sock_set_flag(sk, SOCK_RCU_FREE);
	/* Packets on their way to the network do not count as the socket's send buffer. */
	sock_set_flag(sk, SOCK_USE_WRITE_QUEUE);
	sk->sk_write_space = ndp_write_space;
}

/* Frees what a socket without references still has. */
static void ndp_destruct(struct sock *sk)
{
	xfrm_sk_free_policy(sk);
	ndp_conn_free(sk);
	ndp_sk(sk)->destruct(sk);
}

static int ndp_create(struct sock *sk)
{
	int err = ndp_net_open(sock_net(sk));

	if (err)
		return err;
	ndp_sk(sk)->destruct = sk->sk_destruct;
	sk->sk_destruct = ndp_destruct;
	ndp_sock_init(sk);
	sk->sk_sndbuf = NDP_SNDBUF;
	sk->sk_rcvbuf = NDP_RCVBUF;
	return 0;
}

/* ---- addresses ---- */

/* The addresses of a connected socket, with IPv4 addresses mapped, for the table and packets. */
static void ndp_set_addresses(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	struct inet_sock *inet = inet_sk(sk);

	ndp_map(&ndp->key.local, inet->inet_saddr);
	ndp_map(&ndp->key.peer, inet->inet_daddr);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6) {
		const struct ipv6_pinfo *np = inet6_sk(sk);

		ndp->key.local = ipv6_addr_any(&np->saddr) ? sk->sk_v6_rcv_saddr : np->saddr;
		ndp->key.peer = sk->sk_v6_daddr;
	}
#endif
	ndp->key.local_port = htons(inet->inet_num);
	ndp->key.peer_port = inet->inet_dport;
}

/* Releases the port, unless the program has chosen the port by bind(). */
static void ndp_put_own_port(struct sock *sk)
{
	if (sk->sk_userlocks & SOCK_BINDPORT_LOCK)
		return;
	ndp_put_port(sk);
	inet_sk(sk)->inet_sport = 0;
}

/* Undoes the addresses of a connect() that failed. */
static void ndp_clear_peer(struct sock *sk)
{
	struct inet_sock *inet = inet_sk(sk);

	inet->inet_daddr = 0;
	inet->inet_dport = 0;
	if (!(sk->sk_userlocks & SOCK_BINDADDR_LOCK))
		inet_reset_saddr(sk);
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6)
		memset(&sk->sk_v6_daddr, 0, sizeof(sk->sk_v6_daddr));
#endif
	ndp_put_own_port(sk);
	sk_dst_reset(sk);
	ndp_set_state(sk, TCP_CLOSE);
}

/* ---- connect ---- */

/* Finds route and source address. The functions for datagram sockets do just this, for mapped and
 * link-local addresses too.
 */
static int ndp_connect_route(struct sock *sk, timely_sockaddr *uaddr, int addr_len)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6)
		return __ip6_datagram_connect(sk, uaddr, addr_len);
#endif
	return __ip4_datagram_connect(sk, uaddr, addr_len);
}

static bool ndp_is_unicast(const struct in6_addr *addr)
{
	if (ipv6_addr_v4mapped(addr))
		return !ipv4_is_multicast(ndp_v4(addr)) && !ipv4_is_lbcast(ndp_v4(addr)) &&
		       !ipv4_is_zeronet(ndp_v4(addr));
	return !ipv6_addr_is_multicast(addr) && !ipv6_addr_any(addr);
}

static int ndp_connect(struct sock *sk, timely_sockaddr *uaddr, int addr_len)
{
	struct inet_sock *inet = inet_sk(sk);
	int err;

	if (addr_len < (int)sizeof(struct sockaddr_in))
		return -EINVAL;
	if (!((struct sockaddr_in *)uaddr)->sin_port)
		return -EADDRNOTAVAIL;
	err = ndp_connect_route(sk, uaddr, addr_len);
	if (err)
		return err;
	ndp_set_addresses(sk);
	err = -ENETUNREACH;
	if (!ndp_is_unicast(&ndp_sk(sk)->key.peer))
		goto failed;
	err = inet->inet_num ? 0 : ndp_get_port(sk, 0);
	if (err)
		goto failed;
	inet->inet_sport = htons(inet->inet_num);
	ndp_set_addresses(sk);
	/* The route was looked up for the socket's protocol, which is not that of the packets. */
	sk_dst_reset(sk);
	err = ndp_conn_start(sk);
	if (!err)
		return 0;
failed:
	ndp_clear_peer(sk);
	return err;
}

/* ---- listen and accept ---- */

static int ndp_listen(struct socket *sock, int backlog)
{
	struct sock *sk = sock->sk;
	int err = -EINVAL;

	lock_sock(sk);
	if (sock->state != SS_UNCONNECTED || !((1 << sk->sk_state) & (TCPF_CLOSE | TCPF_LISTEN)))
		goto out;
	WRITE_ONCE(sk->sk_max_ack_backlog, backlog);
	err = 0;
	if (sk->sk_state == TCP_LISTEN)
		goto out;
	if (!inet_sk(sk)->inet_num) {
		err = ndp_get_port(sk, 0);
		if (err)
			goto out;
		inet_sk(sk)->inet_sport = htons(inet_sk(sk)->inet_num);
	}
	err = ndp_listen_start(sk);
out:
	release_sock(sk);
	return err;
}

/* Takes the first connection that waits to be accepted; NULL if there is none. */
static struct sock *ndp_accept_first(struct sock *sk)
{
	struct ndp_sock *listener = ndp_sk(sk), *child;

	spin_lock_bh(&listener->lock);
	child = list_first_entry_or_null(&listener->accept_queue, struct ndp_sock, accept_node);
	if (child) {
		list_del_init(&child->accept_node);
		sk_acceptq_removed(sk);
	}
	spin_unlock_bh(&listener->lock);
	return child ? ndp_sock_of(child) : NULL;
}

static int ndp_wait_for_child(struct sock *sk, long timeo)
{
	DEFINE_WAIT(wait);
	int err;

	for (;;) {
		prepare_to_wait_exclusive(sk_sleep(sk), &wait, TASK_INTERRUPTIBLE);
		release_sock(sk);
		if (list_empty_careful(&ndp_sk(sk)->accept_queue))
			timeo = schedule_timeout(timeo);
		sched_annotate_sleep();
		lock_sock(sk);
		err = 0;
		if (!list_empty_careful(&ndp_sk(sk)->accept_queue))
			break;
		err = -EINVAL;
		if (sk->sk_state != TCP_LISTEN)
			break;
		err = sock_intr_errno(timeo);
		if (signal_pending(current))
			break;
		err = -EAGAIN;
		if (!timeo)
			break;
	}
	finish_wait(sk_sleep(sk), &wait);
	return err;
}

/* Takes a new connection, and waits for one if @flags allow that. NULL: @err is set. */
static struct sock *ndp_accept_child(struct sock *sk, int flags, int *err)
{
	struct sock *child = NULL;
	long timeo;

	lock_sock(sk);
	timeo = sock_rcvtimeo(sk, flags & O_NONBLOCK);
	*err = -EINVAL;
	while (sk->sk_state == TCP_LISTEN) {
		child = ndp_accept_first(sk);
		if (child)
			break;
		*err = -EAGAIN;
		if (!timeo)
			break;
		*err = ndp_wait_for_child(sk, timeo);
		if (*err)
			break;
	}
	release_sock(sk);
	return child;
}

/* The function accept of struct proto_ops. inet_accept() would charge the connection's memory to
 * the program's memory control group on some kernels, under the socket's lock, which does not stop
 * packets from being charged at the same time. No kernel charges it here.
 */
static TIMELY_SOCKET_ACCEPT(ndp_accept)
{
	struct sock *child;
	int err;

	child = ndp_accept_child(sock->sk, timely_accept_flags, &err);
	if (!child)
		return err;
	lock_sock(child);
	sock_graft(child, newsock);
	newsock->state = SS_CONNECTED;
	release_sock(child);
	return 0;
}

/**
 * ndp_accept_add() - let a listener's program accept a new connection
 * @listener: the listener
 * @child: the connection's socket; the queue takes over a reference to the socket
 *
 * Return: false if the listener listens no more or its queue is full. Nothing has changed then.
 */
bool ndp_accept_add(struct sock *listener, struct sock *child)
{
	struct ndp_sock *ndp = ndp_sk(listener);
	bool added = false;

	spin_lock_bh(&ndp->lock);
	if (listener->sk_state == TCP_LISTEN && !sk_acceptq_is_full(listener)) {
		list_add_tail(&ndp_sk(child)->accept_node, &ndp->accept_queue);
		sk_acceptq_added(listener);
		added = true;
	}
	spin_unlock_bh(&ndp->lock);
	return added;
}

/* ---- close ---- */

/* Ends a connection that no program has accepted, so no call can hold the socket's lock. */
static void ndp_refuse_child(struct sock *child)
{
	sock_orphan(child);
	ndp_conn_abort(child);
	/* The reference of the queue, which accept() would have given to the program. */
	sock_put(child);
}

static void ndp_listen_stop(struct sock *sk)
{
	struct sock *child;

	spin_lock_bh(&ndp_sk(sk)->lock);
	ndp_set_state(sk, TCP_CLOSE);
	spin_unlock_bh(&ndp_sk(sk)->lock);
	while ((child = ndp_accept_first(sk)))
		ndp_refuse_child(child);
	/* Calls of accept() end. */
	sk->sk_state_change(sk);
}

static bool ndp_closing(const struct sock *sk)
{
	return (1 << inet_sk_state_load(sk)) & (TCPF_FIN_WAIT1 | TCPF_LAST_ACK);
}

/* Waits until all sent data has arrived, with SO_LINGER. */
static void ndp_linger(struct sock *sk, long timeout)
{
	DEFINE_WAIT_FUNC(wait, woken_wake_function);

	add_wait_queue(sk_sleep(sk), &wait);
	while (timeout && !signal_pending(current))
		if (sk_wait_event(sk, &timeout, !ndp_closing(sk), &wait))
			break;
	remove_wait_queue(sk_sleep(sk), &wait);
}

/* Ends the connection of a socket that its program closes. Data that the program has not read is
 * lost, and the peer must learn that, so the connection is reset in that case.
 */
static void ndp_close_conn(struct sock *sk, long timeout)
{
	if (!skb_queue_empty(&sk->sk_receive_queue) ||
	    (sock_flag(sk, SOCK_LINGER) && !sk->sk_lingertime)) {
		ndp_conn_abort(sk);
		return;
	}
	ndp_conn_shutdown(sk);
	ndp_linger(sk, timeout);
}

static void ndp_close(struct sock *sk, long timeout)
{
	lock_sock(sk);
	WRITE_ONCE(sk->sk_shutdown, SHUTDOWN_MASK);
	if (sk->sk_state == TCP_LISTEN)
		ndp_listen_stop(sk);
	else if (sk->sk_state != TCP_CLOSE)
		ndp_close_conn(sk, timeout);
	sock_hold(sk);
	sock_orphan(sk);
	if (sk->sk_state == TCP_CLOSE)
		ndp_put_port(sk);
	else
		ndp_conn_orphaned(sk);
	release_sock(sk);
	sock_put(sk);
	sock_put(sk);
}

static void ndp_shutdown(struct sock *sk, int how)
{
	if ((how & SEND_SHUTDOWN) && sk->sk_state != TCP_CLOSE)
		ndp_conn_shutdown(sk);
	ndp_conn_follow_shutdown(sk);
}

/* connect(AF_UNSPEC), or shutdown() of a listener. A socket that was connected cannot be used
 * again: a program that wants a new connection opens a new socket.
 */
static int ndp_disconnect(struct sock *sk, int flags)
{
	if (sk->sk_state == TCP_LISTEN) {
		ndp_listen_stop(sk);
		ndp_put_own_port(sk);
	} else if (sk->sk_state != TCP_CLOSE) {
		ndp_conn_abort(sk);
	}
	sk->sk_shutdown = 0;
	return ndp_sk(sk)->started ? -EISCONN : 0;
}

/* ---- options ---- */

/* Options of TCP that programs set by habit. NDP sends data at once, so TCP_NODELAY is always on.
 * The others have no meaning for NDP and are accepted, so that programs which insist on them run.
 */
static bool ndp_tcp_option(int optname)
{
	switch (optname) {
	case TCP_NODELAY:
	case TCP_CORK:
	case TCP_QUICKACK:
	case TCP_KEEPIDLE:
	case TCP_KEEPINTVL:
	case TCP_KEEPCNT:
	case TCP_USER_TIMEOUT:
	case TCP_DEFER_ACCEPT:
		return true;
	}
	return false;
}

static int ndp_setsockopt(struct sock *sk, int level, int optname, sockptr_t optval,
			  unsigned int optlen)
{
	int value;

	if (level == SOL_NDP)
		return -ENOPROTOOPT;
	if (level != SOL_TCP) {
#if IS_ENABLED(CONFIG_IPV6)
		if (sk->sk_family == AF_INET6)
			return ipv6_setsockopt(sk, level, optname, optval, optlen);
#endif
		return ip_setsockopt(sk, level, optname, optval, optlen);
	}
	if (!ndp_tcp_option(optname))
		return -ENOPROTOOPT;
	if (optlen < sizeof(value))
		return -EINVAL;
	return copy_from_sockptr(&value, optval, sizeof(value)) ? -EFAULT : 0;
}

static int ndp_put_option(char __user *optval, int __user *optlen, const void *value, int bytes)
{
	int len;

	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	len = min(len, bytes);
	if (put_user(len, optlen) || copy_to_user(optval, value, len))
		return -EFAULT;
	return 0;
}

/* The members of TCP_INFO that have a meaning for NDP, for programs that show them. */
static void ndp_fill_tcp_info(const struct ndp_info *info, struct tcp_info *tcp)
{
	memset(tcp, 0, sizeof(*tcp));
	tcp->tcpi_state = info->state;
	tcp->tcpi_snd_mss = info->payload;
	tcp->tcpi_rcv_mss = info->payload;
	tcp->tcpi_rtt = info->rtt_us;
	tcp->tcpi_unacked = info->unacked;
	tcp->tcpi_snd_cwnd = info->credits;
	tcp->tcpi_total_retrans = info->nacked + info->returned + info->lost;
}

static int ndp_getsockopt(struct sock *sk, int level, int optname, char __user *optval,
			  int __user *optlen)
{
	struct tcp_info tcp;
	struct ndp_info info;
	int value;

	if (level == SOL_NDP) {
		if (optname != NDP_INFO)
			return -ENOPROTOOPT;
		ndp_conn_info(sk, &info);
		return ndp_put_option(optval, optlen, &info, sizeof(info));
	}
	if (level != SOL_TCP) {
#if IS_ENABLED(CONFIG_IPV6)
		if (sk->sk_family == AF_INET6)
			return ipv6_getsockopt(sk, level, optname, optval, optlen);
#endif
		return ip_getsockopt(sk, level, optname, optval, optlen);
	}
	if (optname == TCP_INFO) {
		ndp_conn_info(sk, &info);
		ndp_fill_tcp_info(&info, &tcp);
		return ndp_put_option(optval, optlen, &tcp, sizeof(tcp));
	}
	if (optname == TCP_MAXSEG)
		value = ndp_conn_payload(sk);
	else if (ndp_tcp_option(optname))
		value = optname == TCP_NODELAY;
	else
		return -ENOPROTOOPT;
	return ndp_put_option(optval, optlen, &value, sizeof(value));
}

static int ndp_ioctl(struct sock *sk, int cmd, timely_ioctl_arg arg)
{
	int bytes = ndp_conn_queued(sk, cmd);

	return bytes < 0 ? bytes : timely_ioctl_put(arg, bytes);
}

/* Sockets are entered into the tables by bind(), listen() and connect(). */
static int ndp_hash(struct sock *sk)
{
	return 0;
}

static void ndp_unhash(struct sock *sk)
{
}

/* ---- registration ---- */

static DEFINE_PER_CPU(int, ndp_memory_per_cpu_fw_alloc);
static int ndp_rmem[3] = { PAGE_SIZE, NDP_RCVBUF, NDP_RCVBUF };
static int ndp_wmem[3] = { PAGE_SIZE, NDP_SNDBUF, NDP_SNDBUF };

#define NDP_PROTO							\
	.owner			= THIS_MODULE,				\
	.init			= ndp_create,				\
	.close			= ndp_close,				\
	.connect		= ndp_connect,				\
	.disconnect		= ndp_disconnect,			\
	.ioctl			= ndp_ioctl,				\
	.shutdown		= ndp_shutdown,				\
	.setsockopt		= ndp_setsockopt,			\
	.getsockopt		= ndp_getsockopt,			\
	.sendmsg		= ndp_sendmsg,				\
	.recvmsg		= ndp_recvmsg,				\
	.hash			= ndp_hash,				\
	.unhash			= ndp_unhash,				\
	.get_port		= ndp_get_port,				\
	.put_port		= ndp_put_port,				\
	.keepalive		= ndp_conn_keepalive,			\
	.stream_memory_free	= ndp_stream_memory_free,		\
	.memory_allocated	= &ndp_memory_allocated,		\
	.per_cpu_fw_alloc	= &ndp_memory_per_cpu_fw_alloc,		\
	.sysctl_mem		= ndp_memory_limits,			\
	.sysctl_rmem		= ndp_rmem,				\
	.sysctl_wmem		= ndp_wmem,				\
	.no_autobind		= true

static struct proto ndp_prot = {
	.name		= "NDP",
	NDP_PROTO,
	.obj_size	= sizeof(struct ndp_sock),
};

static const struct proto_ops ndp_ops = {
	.family		= PF_INET,
	.owner		= THIS_MODULE,
	.release	= inet_release,
	.bind		= inet_bind,
	.connect	= inet_stream_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= ndp_accept,
	.getname	= inet_getname,
	.poll		= ndp_poll,
	.ioctl		= inet_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= ndp_listen,
	.shutdown	= inet_shutdown,
	.setsockopt	= sock_common_setsockopt,
	.getsockopt	= sock_common_getsockopt,
	.sendmsg	= inet_sendmsg,
	.recvmsg	= inet_recvmsg,
	.mmap		= sock_no_mmap,
	.set_rcvlowat	= ndp_set_rcvlowat,
};

static struct inet_protosw ndp_protosw = {
	.type		= SOCK_STREAM,
	.protocol	= IPPROTO_NDP,
	.prot		= &ndp_prot,
	.ops		= &ndp_ops,
};

#if IS_ENABLED(CONFIG_IPV6)
static struct proto ndp6_prot = {
	.name		= "NDPv6",
	NDP_PROTO,
	.obj_size	= sizeof(struct ndp6_sock),
	TIMELY_IPV6_PINFO_OFFSET(struct ndp6_sock, inet6)
};

static const struct proto_ops ndp6_ops = {
	.family		= PF_INET6,
	.owner		= THIS_MODULE,
	.release	= inet6_release,
	.bind		= inet6_bind,
	.connect	= inet_stream_connect,
	.socketpair	= sock_no_socketpair,
	.accept		= ndp_accept,
	.getname	= inet6_getname,
	.poll		= ndp_poll,
	.ioctl		= inet6_ioctl,
	.gettstamp	= sock_gettstamp,
	.listen		= ndp_listen,
	.shutdown	= inet_shutdown,
	.setsockopt	= sock_common_setsockopt,
	.getsockopt	= sock_common_getsockopt,
	.sendmsg	= inet_sendmsg,
	.recvmsg	= inet_recvmsg,
	.mmap		= sock_no_mmap,
	.set_rcvlowat	= ndp_set_rcvlowat,
};

static struct inet_protosw ndp6_protosw = {
	.type		= SOCK_STREAM,
	.protocol	= IPPROTO_NDP,
	.prot		= &ndp6_prot,
	.ops		= &ndp6_ops,
};

static bool ndp6_registered;

static int ndp6_register(void)
{
	int err;

	if (!ipv6_mod_enabled())
		return 0;
	err = proto_register(&ndp6_prot, 1);
	if (err)
		return err;
	err = inet6_register_protosw(&ndp6_protosw);
	if (err)
		proto_unregister(&ndp6_prot);
	ndp6_registered = !err;
	return err;
}

static void ndp6_unregister(void)
{
	if (!ndp6_registered)
		return;
	inet6_unregister_protosw(&ndp6_protosw);
	proto_unregister(&ndp6_prot);
}
#else
static int ndp6_register(void)
{
	return 0;
}

static void ndp6_unregister(void)
{
}
#endif

/**
 * ndp_socket_register() - let programs create NDP sockets
 *
 * Return: 0, or a negative error code.
 */
int ndp_socket_register(void)
{
	int err;

	ndp_memory_init();
	err = proto_register(&ndp_prot, 1);
	if (err)
		return err;
	err = ndp6_register();
	if (err)
		goto failed;
	inet_register_protosw(&ndp_protosw);
	return 0;
failed:
	proto_unregister(&ndp_prot);
	return err;
}

/** ndp_socket_unregister() - undo ndp_socket_register(); no socket is left */
void ndp_socket_unregister(void)
{
	inet_unregister_protosw(&ndp_protosw);
	ndp6_unregister();
	proto_unregister(&ndp_prot);
}
