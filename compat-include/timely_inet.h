/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions for a protocol with sockets of AF_INET and AF_INET6.
 * features.mk defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_INET_H
#define _TIMELY_COMPAT_INET_H

#include <linux/hrtimer.h>
#include <linux/uaccess.h>
#include <net/flow.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/sock.h>
#include <net/udp_tunnel.h>

/* Addresses in calls of the kernel: since Linux 6.19 those with a separate length have a type. */
#ifdef HAVE_SOCKADDR_UNSIZED
#define timely_sockaddr struct sockaddr_unsized
#else
#define timely_sockaddr struct sockaddr
#endif

/* Declares a function accept of struct proto_ops. Since Linux 6.10 a structure has the arguments.
 * The function uses sock, newsock and timely_accept_flags.
 */
#ifdef HAVE_PROTO_ACCEPT_ARG
#define TIMELY_SOCKET_ACCEPT(name) \
	int name(struct socket *sock, struct socket *newsock, struct proto_accept_arg *arg)
#define timely_accept_flags	(arg->flags)
#else
#define TIMELY_SOCKET_ACCEPT(name) \
	int name(struct socket *sock, struct socket *newsock, int accept_flags, bool kern)
#define timely_accept_flags	accept_flags
#endif

/* Last argument of the function ioctl of struct proto, for a result that is a number. Since Linux
 * 6.5 the caller copies the number to the program.
 */
#ifdef HAVE_PROTO_IOCTL_KARG
#define timely_ioctl_arg	int *
static inline int timely_ioctl_put(int *arg, int value)
{
	*arg = value;
	return 0;
}
#else
#define timely_ioctl_arg	unsigned long
static inline int timely_ioctl_put(unsigned long arg, int value)
{
	return put_user(value, (int __user *)arg);
}
#endif

/* Declares and defines a function recvmsg of struct proto: until Linux 7.0 it has a last argument
 * with the length of an address, which a stream socket does not use.
 */
#ifdef HAVE_RECVMSG_ADDR_LEN
#define TIMELY_PROTO_RECVMSG(name) \
	int name(struct sock *sk, struct msghdr *msg, size_t len, int flags, int *addr_len)
#else
#define TIMELY_PROTO_RECVMSG(name) \
	int name(struct sock *sk, struct msghdr *msg, size_t len, int flags)
#endif

/* The list of flow labels of a socket is in struct inet_sock, in older kernels in ipv6_pinfo. */
#ifdef HAVE_INET_FL_LIST
#define timely_flow_labels(sk)	(inet_sk(sk)->ipv6_fl_list)
#else
#define timely_flow_labels(sk)	(inet6_sk(sk)->ipv6_fl_list)
#endif

/* Where the IPv6 part of a socket is: before Linux 6.5 it must be the last member. */
#ifdef HAVE_IPV6_PINFO_OFFSET
#define TIMELY_IPV6_PINFO_OFFSET(type, member)	.ipv6_pinfo_offset = offsetof(type, member),
#else
#define TIMELY_IPV6_PINFO_OFFSET(type, member)
#endif

/* Since Linux 7.1 the argument is the socket's struct sock. */
#ifdef HAVE_UDP_TUNNEL_SOCK
#define timely_setup_udp_tunnel(net, sock, config) setup_udp_tunnel_sock(net, (sock)->sk, config)
#else
#define timely_setup_udp_tunnel(net, sock, config) setup_udp_tunnel_sock(net, sock, config)
#endif

/* Declares a function encap_err_rcv of a UDP socket. Its arguments that no kernel lacks are sk and
 * skb. Since Linux 6.2 there are four more instead of an offset.
 */
#ifdef HAVE_UDP_ENCAP_ERR_PAYLOAD
#define TIMELY_UDP_ENCAP_ERROR(name)						\
	void name(struct sock *sk, struct sk_buff *skb, int err, __be16 port, u32 info, u8 *payload)
#else
#define TIMELY_UDP_ENCAP_ERROR(name) \
	void name(struct sock *sk, struct sk_buff *skb, unsigned int udp_offset)
#endif

/* Since Linux 6.16 the last argument are flags of the packet's control block. */
#ifdef HAVE_UDP_TUNNEL_IPCB_FLAGS
#define timely_udp_xmit4(rt, sk, skb, saddr, daddr, tos, ttl, df, sport, dport)	\
	udp_tunnel_xmit_skb(rt, sk, skb, saddr, daddr, tos, ttl, df, sport, dport, false, true, 0)
#define timely_udp_xmit6(dst, sk, skb, saddr, daddr, tos, ttl, nocheck, sport, dport)	\
	udp_tunnel6_xmit_skb(dst, sk, skb, NULL, saddr, daddr, tos, ttl, 0, sport, dport, nocheck, \
			     0)
#else
#define timely_udp_xmit4(rt, sk, skb, saddr, daddr, tos, ttl, df, sport, dport)	\
	udp_tunnel_xmit_skb(rt, sk, skb, saddr, daddr, tos, ttl, df, sport, dport, false, true)
#define timely_udp_xmit6(dst, sk, skb, saddr, daddr, tos, ttl, nocheck, sport, dport)	\
	udp_tunnel6_xmit_skb(dst, sk, skb, NULL, (struct in6_addr *)(saddr),	\
			     (struct in6_addr *)(daddr), tos, ttl, 0, sport, dport, \
			     nocheck)
#endif

/* The route of IPv4 or IPv6 that a cached route is a part of: functions of the kernel since Linux
 * 6.10.
 */
#define timely_rtable(dst)	container_of(dst, struct rtable, dst)
#define timely_rt6_info(dst)	container_of(dst, struct rt6_info, dst)

/* Since Linux 6.13 hrtimer_setup() initialises a timer with its function. */
static inline void timely_hrtimer_setup(struct hrtimer *timer,
					enum hrtimer_restart (*function)(struct hrtimer *),
					clockid_t clock_id, enum hrtimer_mode mode)
{
#ifdef HAVE_HRTIMER_SETUP
	hrtimer_setup(timer, function, clock_id, mode);
#else
	hrtimer_init(timer, clock_id, mode);
	timer->function = function;
#endif
}

/* Since Linux 6.18 the type of service in a route lookup is a DSCP. */
static inline void timely_flowi4_tos(struct flowi4 *fl4, u8 tos)
{
#ifdef HAVE_FLOWI4_DSCP
	fl4->flowi4_dscp = inet_dsfield_to_dscp(tos);
#else
	fl4->flowi4_tos = tos & INET_DSCP_MASK;
#endif
}

#endif /* _TIMELY_COMPAT_INET_H */
