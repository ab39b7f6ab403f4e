// SPDX-License-Identifier: GPL-2.0
/*
 * Protects the host and other network namespaces from a tenant: budgets, and a permission check.
 *
 * Each network namespace has a budget for every kind of object that is created for a socket, a
 * packet or a netlink message. When a budget is used up, that namespace gets no more objects of
 * this kind; other namespaces are not affected. The code that creates an object also charges the
 * memory to the memory control group of the socket or task (__GFP_ACCOUNT).
 *
 * A few features cannot be confined to a namespace and cost all namespaces CPU time: the kernel
 * calls a tracepoint probe for the packets of all namespaces. These features need CAP_NET_ADMIN in
 * the initial user namespace, unless the host's administrator has set the module parameter
 * tenants=1.
 *
 * The RTT counters of each namespace are also kept here; counters.c has their names.
 */

#include <linux/capability.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/netlink.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include <net/timely_counters.h>
#include <net/timely_tenant.h>

static bool tenants;
module_param(tenants, bool, 0644);
MODULE_PARM_DESC(tenants, "administrators of network namespaces may turn on features that cost all namespaces CPU time: On-Ramp by RTTs (owd rtt), On-Ramp's receiver (timely_acker) [0 or 1]");

#define TIMELY_BUDGET_LIMIT(name, limit, doc)	\
	[TIMELY_BUDGET_##name] = limit,
static uint timely_limits[TIMELY_BUDGET_COUNT] = { TIMELY_BUDGETS(TIMELY_BUDGET_LIMIT) };

/* Sets the limit of one kind of objects. If a namespace has more objects than the new limit, none
 * is freed, but no new objects are created.
 */
static int tenant_set_limit(const char *text, const struct kernel_param *param)
{
	int err = param_set_uint_minmax(text, param, 0, TIMELY_BUDGET_MAX);

	if (err)
		pr_err("timely: %s: allowed are 0 to %u\n", param->name, TIMELY_BUDGET_MAX);
	return err;
}

static const struct kernel_param_ops tenant_limit_ops = {
	.set = tenant_set_limit,
	.get = param_get_uint,
};

#define TIMELY_BUDGET_PARAM(name, limit, doc)					\
	module_param_cb(max_##name, &tenant_limit_ops,				\
			&timely_limits[TIMELY_BUDGET_##name], 0644);		\
	__MODULE_PARM_TYPE(max_##name, "uint");					\
	MODULE_PARM_DESC(max_##name, "limit for each network namespace: " doc);
TIMELY_BUDGETS(TIMELY_BUDGET_PARAM)

#define TIMELY_BUDGET_NAME(name, limit, doc)	#name,
const char * const timely_budget_names[TIMELY_BUDGET_COUNT] = {
	TIMELY_BUDGETS(TIMELY_BUDGET_NAME)
};

#define TIMELY_BUDGET_DOC(name, limit, doc)	doc,
const char * const timely_budget_docs[TIMELY_BUDGET_COUNT] = {
	TIMELY_BUDGETS(TIMELY_BUDGET_DOC)
};

/**
 * struct tenant_net - budgets and RTT counters of a network namespace
 * @rtt: RTT counters of each CPU
 * @budgets: budgets, by enum timely_budget_kind
 */
struct tenant_net {
	struct timely_rtt_counters __percpu *rtt;
	struct timely_budget *budgets[TIMELY_BUDGET_COUNT];
};

static unsigned int tenant_net_id __read_mostly;

static struct timely_budget *tenant_budget(const struct net *net, enum timely_budget_kind kind)
{
	const struct tenant_net *tenant = net_generic(net, tenant_net_id);

	return tenant->budgets[kind];
}

/* Returns the number of objects: the budget's references, less that of the namespace. */
static u32 tenant_used(const struct timely_budget *budget)
{
	return refcount_read(&budget->ref) - 1;
}

/**
 * timely_budget_take() - count an object that is about to be created
 * @net: network namespace that the object is created for
 * @kind: kind of the object
 *
 * CPUs that call this function at the same time may exceed the limit by one object each.
 *
 * Return: the budget, to be given to timely_budget_return() when the object has been
 * freed; NULL if the limit is reached: the object must not be created then.
 */
struct timely_budget *timely_budget_take(const struct net *net, enum timely_budget_kind kind)
{
	struct timely_budget *budget = tenant_budget(net, kind);

	if (unlikely(tenant_used(budget) >= READ_ONCE(timely_limits[kind]))) {
		atomic64_inc(&budget->refused);
		return NULL;
	}
	refcount_inc(&budget->ref);
	return budget;
}
EXPORT_SYMBOL_GPL(timely_budget_take);

/**
 * timely_budget_return() - count off an object that has been freed
 * @budget: the result of timely_budget_take() for the object; NULL is allowed
 */
void timely_budget_return(struct timely_budget *budget)
{
	if (budget && refcount_dec_and_test(&budget->ref))
		kfree_rcu(budget, rcu);
}
EXPORT_SYMBOL_GPL(timely_budget_return);

/**
 * timely_budget_status() - read how much of a budget is used
 * @net: network namespace
 * @kind: kind of the objects
 * @status: filled in
 */
void timely_budget_status(const struct net *net, enum timely_budget_kind kind,
			  struct timely_budget_status *status)
{
	struct timely_budget *budget = tenant_budget(net, kind);

	status->used = tenant_used(budget);
	status->limit = READ_ONCE(timely_limits[kind]);
	status->refused = atomic64_read(&budget->refused);
}
EXPORT_SYMBOL_GPL(timely_budget_status);

/**
 * timely_may_affect_host() - check permission for a feature that costs all namespaces CPU time
 * @net: network namespace that the request of the current task is about
 *
 * The function is for netlink requests about a qdisc, and other requests for which the kernel has
 * already checked CAP_NET_ADMIN in the user namespace that owns @net, both of the task that sends
 * and of the task that opened the socket.
 *
 * The capability of the current task alone does not suffice: a tenant may hand its socket to a
 * privileged program as a file to write to. So @net must belong to the initial user namespace, too.
 *
 * Return: true if the current task has CAP_NET_ADMIN in the initial user namespace and this user
 * namespace owns @net, or if the host's administrator has set tenants=1.
 */
bool timely_may_affect_host(const struct net *net)
{
	return READ_ONCE(tenants) ||
	       (net->user_ns == &init_user_ns && capable(CAP_NET_ADMIN));
}
EXPORT_SYMBOL_GPL(timely_may_affect_host);

/**
 * timely_request_may_affect_host() - check permission for a feature that costs all namespaces
 * CPU time, by a netlink request
 * @request: the netlink message
 *
 * The task that opened the socket needs CAP_NET_ADMIN as well as the task that sends: a tenant may
 * hand its socket to a privileged program as a file to write to.
 *
 * Return: true if both tasks have CAP_NET_ADMIN in the initial user namespace, or if the host's
 * administrator has set tenants=1.
 */
bool timely_request_may_affect_host(const struct sk_buff *request)
{
	return READ_ONCE(tenants) || netlink_capable(request, CAP_NET_ADMIN);
}
EXPORT_SYMBOL_GPL(timely_request_may_affect_host);

/**
 * timely_rtt_counters_of() - get the RTT counters of a network namespace
 * @net: network namespace
 *
 * Return: the counters of each CPU, valid as long as the namespace exists; never NULL.
 */
struct timely_rtt_counters __percpu *timely_rtt_counters_of(const struct net *net)
{
	const struct tenant_net *tenant = net_generic(net, tenant_net_id);

	return tenant->rtt;
}
EXPORT_SYMBOL_GPL(timely_rtt_counters_of);

/**
 * timely_rtt_counter() - read an RTT counter, summed over all CPUs
 * @net: network namespace
 * @index: the counter
 *
 * Return: the count since the namespace was created or the module was loaded.
 */
u64 timely_rtt_counter(const struct net *net, enum timely_rtt_result index)
{
	struct timely_rtt_counters __percpu *counters = timely_rtt_counters_of(net);
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(counters, cpu)->count[index]);
	return sum;
}
EXPORT_SYMBOL_GPL(timely_rtt_counter);

static void __net_exit tenant_net_exit(struct net *net)
{
	struct tenant_net *tenant = net_generic(net, tenant_net_id);
	u32 kind;

	free_percpu(tenant->rtt);

	for (kind = 0; kind < TIMELY_BUDGET_COUNT; kind++)
		timely_budget_return(tenant->budgets[kind]);
}

static int __net_init tenant_net_init(struct net *net)
{
	struct tenant_net *tenant = net_generic(net, tenant_net_id);
	struct timely_budget *budget;
	u32 kind;

	tenant->rtt = alloc_percpu_gfp(struct timely_rtt_counters, GFP_KERNEL_ACCOUNT);
	if (!tenant->rtt)
		return -ENOMEM;
	for (kind = 0; kind < TIMELY_BUDGET_COUNT; kind++) {
		budget = kzalloc(sizeof(*budget), GFP_KERNEL_ACCOUNT);
		if (!budget) {
			tenant_net_exit(net);
			return -ENOMEM;
		}
		refcount_set(&budget->ref, 1);
		budget->kind = kind;
		tenant->budgets[kind] = budget;
	}
	return 0;
}

static struct pernet_operations tenant_net_ops = {
	.init = tenant_net_init,
	.exit = tenant_net_exit,
	.id = &tenant_net_id,
	.size = sizeof(struct tenant_net),
};

/**
 * timely_tenant_init() - create budgets and RTT counters when the module is loaded
 *
 * Return: 0, or a negative error code.
 */
int timely_tenant_init(void)
{
	return register_pernet_subsys(&tenant_net_ops);
}

/**
 * timely_tenant_exit() - free budgets and RTT counters at unloading; no counted object is left
 */
void timely_tenant_exit(void)
{
	unregister_pernet_subsys(&tenant_net_ops);
}
