/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in the operations of a congestion control. features.mk
 * defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_NET_TCP_H
#define _TIMELY_COMPAT_NET_TCP_H

#include_next <net/tcp.h>

/* The head of a function for cong_control. Since Linux 6.10 the arguments include the ACK's number
 * and flags.
 */
#ifdef HAVE_CONG_CONTROL_ACK
#define DEFINE_CONG_CONTROL(name)					\
	static void name(struct sock *sk, u32 ack, int flag,		\
			 const struct rate_sample *rs)
#else
#define DEFINE_CONG_CONTROL(name)					\
	static void name(struct sock *sk, const struct rate_sample *rs)
#endif

/* DEFINE_CWND_EVENTS(name, tx_start, loss) defines the functions that CWND_EVENTS(name) puts into a
 * struct tcp_congestion_ops. They call tx_start(sk) when a packet is sent while none is in flight,
 * and loss(sk) when a timeout begins a recovery.
 *
 * Since Linux 7.1 the start of transmission has its own operation and is no event of cwnd_event any
 * more. A module that has only cwnd_event would build, but would not be called at this start.
 */
#ifdef HAVE_CWND_EVENT_TX_START
#define DEFINE_CWND_EVENTS(name, tx_start, loss)			\
	static void name##_tx_start(struct sock *sk)			\
	{								\
		tx_start(sk);						\
	}								\
	static void name(struct sock *sk, enum tcp_ca_event event)	\
	{								\
		if (event == CA_EVENT_LOSS)				\
			loss(sk);					\
	}
#define CWND_EVENTS(name)						\
	.cwnd_event = name, .cwnd_event_tx_start = name##_tx_start
#else
#define DEFINE_CWND_EVENTS(name, tx_start, loss)			\
	static void name(struct sock *sk, enum tcp_ca_event event)	\
	{								\
		if (event == CA_EVENT_TX_START)				\
			tx_start(sk);					\
		else if (event == CA_EVENT_LOSS)			\
			loss(sk);					\
	}
#define CWND_EVENTS(name)	.cwnd_event = name
#endif

/* Whether the connection uses ECN. Kernels with AccECN have this function, and no TCP_ECN_OK. */
#ifdef TCP_ECN_OK
static inline bool tcp_ecn_mode_any(const struct tcp_sock *tp)
{
	return tp->ecn_flags & TCP_ECN_OK;
}
#endif

#endif /* _TIMELY_COMPAT_NET_TCP_H */
