/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Charges memory that is allocated for a packet to the memory control group of the packet's socket,
 * on kernels with and without CONFIG_MEMCG. Otherwise allocations in softirq are charged to no
 * group, and allocations in a task to the task's group, although the packet may be another task's.
 */
#ifndef _TIMELY_COMPAT_MEMCG_H
#define _TIMELY_COMPAT_MEMCG_H

#include <linux/memcontrol.h>
#include <linux/sched/mm.h>
#include <net/sock.h>

struct mem_cgroup;

/**
 * timely_charge_begin() - charge the next allocations with __GFP_ACCOUNT to a socket's group
 * @sk: a full socket; NULL to charge the group of the task
 *
 * Return: the previous group, to be passed to timely_charge_end() in the same context; may be NULL.
 */
static inline struct mem_cgroup *timely_charge_begin(const struct sock *sk)
{
#ifdef CONFIG_MEMCG
	/* The socket has a reference to its group. NULL: the group of the task is charged. */
	return set_active_memcg(sk ? sk->sk_memcg : NULL);
#else
	return NULL;
#endif
}

/**
 * timely_memcg_get() - take a reference to a socket's group, for allocations without the socket
 * @sk: a full socket
 *
 * Return: the group, to be released with mem_cgroup_put(), and to be charged by set_active_memcg();
 * NULL if the socket has none.
 */
static inline struct mem_cgroup *timely_memcg_get(const struct sock *sk)
{
#ifdef CONFIG_MEMCG
	if (sk->sk_memcg)
		css_get(&sk->sk_memcg->css);
	return sk->sk_memcg;
#else
	return NULL;
#endif
}

/**
 * timely_charge_end() - restore the group from before timely_charge_begin()
 * @before: return value of timely_charge_begin()
 */
static inline void timely_charge_end(struct mem_cgroup *before)
{
	set_active_memcg(before);
}

#endif /* _TIMELY_COMPAT_MEMCG_H */
