/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Budgets of network namespaces, and the permission to turn on features that cost all network
 * namespaces of the host CPU time. See net/timely/tenant.c.
 */
#ifndef _NET_TIMELY_TENANT_H
#define _NET_TIMELY_TENANT_H

#include <linux/types.h>

#ifdef __KERNEL__
#include <linux/atomic.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#endif

struct net;
struct sk_buff;

/*
 * Kinds of objects that are counted for each network namespace:
 *
 *	X(name, default limit, description)
 *
 * The limits are module parameters of timely.ko, max_NAME, and apply to each network namespace. A
 * flow entry takes about 1.5 KB of memory, On-Ramp's state of a flow 3.3 KB, a peer 1 to 3 KB, and
 * a flow of sch_timely ("queues") 128 bytes.
 */
#define TIMELY_BUDGETS(X)							\
	X(flows, 65536, "flow entries shared by congestion control and qdisc")	\
	X(onramp_flows, 65536, "flows with On-Ramp state")			\
	X(peers, 4096, "destinations with On-Ramp state")		\
	X(queues, 1048576, "per-flow queues of sch_timely")

/* Highest value of a limit, objects: the references of struct timely_budget must fit in an int. */
#define TIMELY_BUDGET_MAX	(1U << 30)

#define TIMELY_BUDGET_INDEX(name, ...)	TIMELY_BUDGET_##name,
enum timely_budget_kind {
	TIMELY_BUDGETS(TIMELY_BUDGET_INDEX)
	TIMELY_BUDGET_COUNT
};

#ifdef __KERNEL__

/**
 * struct timely_budget - number of objects of one kind in a network namespace
 * @ref: one reference for the namespace and one for each object, so that an object may
 *	outlive its namespace
 * @kind: kind of the objects
 * @refused: objects that were not created because the limit was reached
 * @rcu: frees the budget after an RCU grace period
 */
struct timely_budget {
	refcount_t ref;
	enum timely_budget_kind kind;
	atomic64_t refused;
	struct rcu_head rcu;
};

/**
 * struct timely_budget_status - the state of a budget, as netlink shows it
 * @used: objects that exist
 * @limit: objects that may exist
 * @refused: objects that were not created because the limit was reached
 */
struct timely_budget_status {
	u32 used;
	u32 limit;
	u64 refused;
};

extern const char * const timely_budget_names[TIMELY_BUDGET_COUNT];
extern const char * const timely_budget_docs[TIMELY_BUDGET_COUNT];

struct timely_budget *timely_budget_take(const struct net *net, enum timely_budget_kind kind);
void timely_budget_return(struct timely_budget *budget);
void timely_budget_status(const struct net *net, enum timely_budget_kind kind,
			  struct timely_budget_status *status);
bool timely_may_affect_host(const struct net *net);
bool timely_request_may_affect_host(const struct sk_buff *request);

int timely_tenant_init(void);
void timely_tenant_exit(void);

#endif /* __KERNEL__ */

#endif /* _NET_TIMELY_TENANT_H */
