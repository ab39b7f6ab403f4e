/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Charging memory that is allocated for a socket's packet to the memory control group
 * of the socket. In softirq the kernel knows of no task to charge; in a task it would
 * charge whoever runs.
 */
#ifndef _TIMELY_COMPAT_MEMCG_H
#define _TIMELY_COMPAT_MEMCG_H

#include <linux/sched/mm.h>
#include <net/sock.h>

struct mem_cgroup;

/**
 * timely_charge_begin() - charge what is allocated with __GFP_ACCOUNT from now on
 * @sk: socket on whose behalf, or NULL; a full one
 *
 * Return: to be given to timely_charge_end(), in the same context.
 */
static inline struct mem_cgroup *timely_charge_begin(const struct sock *sk)
{
#ifdef CONFIG_MEMCG
	/* The socket has a reference. Without a group of its own, the task's is charged. */
	return set_active_memcg(sk ? sk->sk_memcg : NULL);
#else
	return NULL;
#endif
}

/**
 * timely_charge_end() - as before timely_charge_begin()
 * @before: what that has returned
 */
static inline void timely_charge_end(struct mem_cgroup *before)
{
	set_active_memcg(before);
}

#endif /* _TIMELY_COMPAT_MEMCG_H */
