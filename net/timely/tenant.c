// SPDX-License-Identifier: GPL-2.0
/*
 * What a network namespace may cost the host.
 *
 * Objects that exist on behalf of a socket, a packet or a netlink message are counted for
 * each network namespace, and refused beyond a limit, so that a namespace that fills its
 * budget has to do without and no other namespace notices. Whoever creates such an object
 * also charges its memory to the memory control group of the sender (__GFP_ACCOUNT).
 *
 * A few features cannot be confined to a namespace: a probe on a tracepoint is called for
 * the packets of all of them. They need CAP_NET_ADMIN in the initial user namespace,
 * unless the host's administrator has set the module parameter tenants=1.
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
MODULE_PARM_DESC(tenants, "administrators of network namespaces may switch on what all namespaces pay for: On-Ramp by RTTs, On-Ramp's receiver [0 or 1]");

#define TIMELY_BUDGET_LIMIT(name, limit, doc)	\
	[TIMELY_BUDGET_##name] = limit,
static uint timely_limits[TIMELY_BUDGET_COUNT] = { TIMELY_BUDGETS(TIMELY_BUDGET_LIMIT) };

/* References are counted in an int. A lower limit than what exists refuses new objects,
 * and frees none.
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
 * struct tenant_net - what is counted for a network namespace
 * @rtt: what became of the ACKs of the namespace's connections
 * @budgets: by enum timely_budget_kind
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

/* Besides the objects the namespace itself holds a reference. */
static u32 tenant_used(const struct timely_budget *budget)
{
	return refcount_read(&budget->ref) - 1;
}

/**
 * timely_budget_take() - count an object that is about to be created
 * @net: network namespace on whose behalf
 * @kind: what kind of object
 *
 * Processors that take at the same moment may exceed the limit by one object each.
 *
 * Return: the budget, to be given to timely_budget_return() when the object has been
 * freed; NULL if the limit is reached, and the object must not be created.
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
 * timely_budget_return() - an object has been freed
 * @budget: what timely_budget_take() returned for the object; NULL is allowed
 */
void timely_budget_return(struct timely_budget *budget)
{
	if (budget && refcount_dec_and_test(&budget->ref))
		kfree_rcu(budget, rcu);
}
EXPORT_SYMBOL_GPL(timely_budget_return);

/**
 * timely_budget_status() - how much of a budget is used
 * @net: network namespace
 * @kind: which budget
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
 * timely_may_affect_host() - may the current task switch on what all namespaces pay for?
 * @net: network namespace that the request is about
 *
 * For the context of a netlink request whose sender and whose socket's opener the kernel has
 * asked for CAP_NET_ADMIN in the user namespace that owns @net, such as a request about a qdisc.
 * A tenant may hand its socket to a privileged program as a file to write to: that has the
 * capability, but the tenant's network namespace does not belong to the initial user namespace.
 *
 * Return: true with CAP_NET_ADMIN in the initial user namespace, for a network namespace that
 * this user namespace owns, or if the host's administrator has set tenants=1.
 */
bool timely_may_affect_host(const struct net *net)
{
	return READ_ONCE(tenants) ||
	       (net->user_ns == &init_user_ns && capable(CAP_NET_ADMIN));
}
EXPORT_SYMBOL_GPL(timely_may_affect_host);

/**
 * timely_request_may_affect_host() - may a netlink request switch on what all namespaces pay for?
 * @request: the netlink message
 *
 * The task that opened the socket needs the capability as well as the task that sends: a tenant
 * may hand its socket to a privileged program as a file to write to.
 *
 * Return: true if both have CAP_NET_ADMIN in the initial user namespace, or if the host's
 * administrator has set tenants=1.
 */
bool timely_request_may_affect_host(const struct sk_buff *request)
{
	return READ_ONCE(tenants) || netlink_capable(request, CAP_NET_ADMIN);
}
EXPORT_SYMBOL_GPL(timely_request_may_affect_host);

/**
 * timely_rtt_counters_of() - where the ACKs of a network namespace are counted
 * @net: network namespace
 *
 * Return: counters of each CPU, for as long as the namespace exists.
 */
struct timely_rtt_counters __percpu *timely_rtt_counters_of(const struct net *net)
{
	const struct tenant_net *tenant = net_generic(net, tenant_net_id);

	return tenant->rtt;
}
EXPORT_SYMBOL_GPL(timely_rtt_counters_of);

/**
 * timely_rtt_counter() - one of the counters of ACKs, over all CPUs
 * @net: network namespace
 * @index: which counter
 *
 * Return: how many ACKs since the namespace or the module came.
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
 * timely_tenant_init() - count the objects of all network namespaces from now on
 *
 * Return: 0 or a negative error.
 */
int timely_tenant_init(void)
{
	return register_pernet_subsys(&tenant_net_ops);
}

/** timely_tenant_exit() - no object is left */
void timely_tenant_exit(void)
{
	unregister_pernet_subsys(&tenant_net_ops);
}
