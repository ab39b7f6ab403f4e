/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the two files of tcp_timely share: the parameters in force.
 */
#ifndef _TCP_TIMELY_H
#define _TCP_TIMELY_H

#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/sock.h>

#include <net/timely_counters.h>
#include <net/timely_law.h>

/**
 * struct timely_setting - parameters in force
 * @law: made ready; where the path decides, for one that is not known
 * @generation: another one for each that takes the place of the last
 * @is_auto: the path decides
 * @params: as they were given
 * @rcu: readers may still look at it
 *
 * Never changed: another takes its place.
 */
struct timely_setting {
	struct timely_law law;
	u16 generation;
	bool is_auto;
	struct timely_params params;
	struct rcu_head rcu;
};

/**
 * struct timely_net - what belongs to a network namespace
 * @counters: what became of the ACKs of its connections
 * @setting: its parameters, for readers under RCU
 * @sysctl: its files in /proc/sys/net/ipv4/timely
 * @senders: connections that have something to send, by rules that count them, on lines
 *	that are not known
 */
struct timely_net {
	struct timely_rtt_counters __percpu *counters;
	struct timely_setting __rcu *setting;
	struct ctl_table_header *sysctl;
	atomic_t senders ____cacheline_aligned_in_smp;
};

extern unsigned int timely_net_id;

/* The parameters that the module was loaded with. */
extern struct timely_setting timely_loaded;

void timely_law_init(struct timely_law *law, const struct timely_params *params,
		     const struct timely_params *given);
void timely_setting_init(struct timely_setting *setting,
			 const struct timely_params *params, u16 generation);
int timely_settings_init(void);
void timely_settings_exit(void);

/* The namespace's parameters. Under RCU.
 *
 * Sockets hold their namespace, but for some of the kernel's own, which might
 * outlive ours in it.
 */
static inline const struct timely_setting *timely_net_setting(const struct sock *sk)
{
	const struct net *net = sock_net(sk);
	const struct timely_net *ours;

	if (unlikely(!sk->sk_net_refcnt && !net_eq(net, &init_net)))
		return &timely_loaded;
	ours = net_generic(net, timely_net_id);
	return rcu_dereference(ours->setting);
}

/* Count what became of an ACK of a connection, or of the driver's timestamp of an ACK. A socket
 * that does not hold its namespace is counted in the first one, as for its parameters.
 */
static inline void timely_count_ack(const struct sock *sk, enum timely_rtt_result index)
{
	const struct net *net = sock_net(sk);
	const struct timely_net *ours;

	if (unlikely(!sk->sk_net_refcnt))
		net = &init_net;
	ours = net_generic(net, timely_net_id);
	this_cpu_inc(ours->counters->count[index]);
}

/* Of the namespace's connections. Only for sockets that hold it. */
static inline atomic_t *timely_senders(const struct sock *sk)
{
	struct timely_net *ours = net_generic(sock_net(sk), timely_net_id);

	return &ours->senders;
}

#endif /* _TCP_TIMELY_H */
