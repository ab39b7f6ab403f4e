/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels in <net/tcp.h>; HAVE_* come from features.mk.
 */
#ifndef _TIMELY_COMPAT_NET_TCP_H
#define _TIMELY_COMPAT_NET_TCP_H

#include_next <net/tcp.h>

/* 6.10: cong_control also gets the ACK's number and flags. */
#ifdef HAVE_CONG_CONTROL_ACK
#define DEFINE_CONG_CONTROL(name)					\
	static void name(struct sock *sk, u32 ack, int flag,		\
			 const struct rate_sample *rs)
#else
#define DEFINE_CONG_CONTROL(name)					\
	static void name(struct sock *sk, const struct rate_sample *rs)
#endif

/* 7.1: the start of transmission is no longer one of cwnd_event's events; a
 * module that only has cwnd_event builds there and is never told.
 *
 * DEFINE_CWND_EVENTS(name, tx_start, loss): functions of a socket for when the
 * first packet after a time with none in flight leaves, and for a timeout that
 * begins a recovery.
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

#endif /* _TIMELY_COMPAT_NET_TCP_H */
