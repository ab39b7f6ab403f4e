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
 */
#ifdef HAVE_CWND_EVENT_TX_START
#define DEFINE_TX_START_EVENT(name, function)				\
	static void name(struct sock *sk)				\
	{								\
		function(sk);						\
	}
#define TX_START_EVENT(name)	.cwnd_event_tx_start = name
#else
#define DEFINE_TX_START_EVENT(name, function)				\
	static void name(struct sock *sk, enum tcp_ca_event event)	\
	{								\
		if (event == CA_EVENT_TX_START)				\
			function(sk);					\
	}
#define TX_START_EVENT(name)	.cwnd_event = name
#endif

#endif /* _TIMELY_COMPAT_NET_TCP_H */
