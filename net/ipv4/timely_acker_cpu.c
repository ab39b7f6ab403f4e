// SPDX-License-Identifier: GPL-2.0
/*
 * Activation of On-Ramp's receiver. The first rule of any network namespace allocates the state of
 * each CPU and joins the tracepoints. Some time after the last rule was deleted, the tracepoints
 * are left and the state is freed. When a namespace exits, its queued OR-ACKs are discarded.
 * timely_acker_ctl.c calls this file; timely_acker.c explains how the files work together.
 */

#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include <uapi/linux/timely.h>
#include <timely/engine/orack.h>

#include "timely_acker.h"

/* The tracepoints are left when no namespace has had a rule for this long (5 s, in jiffies). The
 * kernel patches its code to join or leave a tracepoint; a user who adds and deletes rules in a
 * loop must not cause a patch each time.
 */
#define ACKER_IDLE	(5 * HZ)

/* Guards acker_users and acker_joined, and serialises writers of namespaces' configurations. */
DEFINE_MUTEX(timely_acker_mutex);
static unsigned int acker_users; /* number of namespaces with rules */
static bool acker_joined; /* the tracepoints call timely_acker_probe() */

static void acker_free_cpus(void)
{
	struct acker_cpu *cpu;
	int i;

	for_each_possible_cpu(i) {
		cpu = per_cpu(timely_acker_cpus, i);
		if (!cpu)
			continue;
		tasklet_kill(&cpu->tasklet);
		per_cpu(timely_acker_cpus, i) = NULL;
		kvfree(cpu);
	}
}

static int acker_alloc_cpus(void)
{
	struct acker_cpu *cpu;
	int i;

	for_each_possible_cpu(i) {
		cpu = kvzalloc_node(sizeof(*cpu), GFP_KERNEL_ACCOUNT, cpu_to_node(i));
		if (!cpu) {
			acker_free_cpus();
			return -ENOMEM;
		}
		cpu->last = cpu->flows[0];
		tasklet_setup(&cpu->tasklet, timely_acker_send_all);
		per_cpu(timely_acker_cpus, i) = cpu;
	}
	return 0;
}

/* Activate the receiver, unless it is active. Return: 0 or -ENOMEM. Under timely_acker_mutex. */
static int acker_join(void)
{
	int err;

	if (acker_joined)
		return 0;
	err = acker_alloc_cpus();
	if (err)
		return err;
	err = timely_acker_hooks_join(timely_acker_probe);
	if (err)
		acker_free_cpus();
	acker_joined = !err;
	return err;
}

/* Deactivate the receiver, if it is active. Under timely_acker_mutex. */
static void acker_leave(void)
{
	if (!acker_joined)
		return;
	acker_joined = false;
	timely_acker_hooks_leave(timely_acker_probe);
	acker_free_cpus();
}

/* Deactivate the receiver, unless a rule was added since the work was scheduled. */
static void acker_idle(struct work_struct *work)
{
	mutex_lock(&timely_acker_mutex);
	if (!acker_users)
		acker_leave();
	mutex_unlock(&timely_acker_mutex);
}

static DECLARE_DELAYED_WORK(acker_idle_work, acker_idle);

/**
 * timely_acker_get() - use the receiver for a network namespace that gets its first rule
 *
 * The first namespace activates the receiver.
 *
 * Context: process, under timely_acker_mutex.
 * Return: 0, or -ENOMEM if the receiver could not be activated; the namespace is not counted then.
 */
int timely_acker_get(void)
{
	int err = acker_users ? 0 : acker_join();

	acker_users += !err;
	return err;
}

/**
 * timely_acker_put() - undo timely_acker_get() for a network namespace without rules
 *
 * If no namespace has rules any more, the receiver is deactivated after ACKER_IDLE.
 *
 * Context: process, under timely_acker_mutex.
 */
void timely_acker_put(void)
{
	if (!--acker_users)
		mod_delayed_work(system_power_efficient_wq, &acker_idle_work, ACKER_IDLE);
}

/* In the ring of a CPU, mark the OR-ACKs of namespaces without a configuration as not to be sent.
 */
static void acker_forget_cpu(struct acker_cpu *cpu)
{
	struct acker_answer *answer;
	struct acker_net *an;
	struct net *net;
	u32 i;

	tasklet_disable(&cpu->tasklet);
	for (i = cpu->tail; i != acker_head(cpu); i++) {
		answer = &cpu->ring[i % ACKER_RING];
		if (!answer->orack.tuple.net)
			continue;
		net = (struct net *)(unsigned long)answer->orack.tuple.net;
		an = net_generic(net, timely_acker_net_id);
		if (!rcu_access_pointer(an->config))
			answer->orack.tuple.net = 0;
	}
	tasklet_enable(&cpu->tasklet);
}

/**
 * timely_acker_forget() - discard queued OR-ACKs of network namespaces without a configuration
 *
 * The rings contain no pointer to such a namespace afterwards. Before the call, an RCU grace period
 * must have passed since the configuration was removed.
 *
 * Context: process.
 */
void timely_acker_forget(void)
{
	struct acker_cpu *cpu;
	int i;

	mutex_lock(&timely_acker_mutex);
	for_each_possible_cpu(i) {
		cpu = per_cpu(timely_acker_cpus, i);
		if (cpu)
			acker_forget_cpu(cpu);
	}
	mutex_unlock(&timely_acker_mutex);
}

/**
 * timely_acker_init() - initialise the receiver, before its other functions are called
 */
void __init timely_acker_init(void)
{
	/* An entry of the table of flows fits in one cache line on most CPUs. */
	BUILD_BUG_ON(sizeof(struct acker_flow) > 64);

	timely_acker_seed = get_random_u32();
	timely_acker_hooks_init();
}

/**
 * timely_acker_stop() - leave the tracepoints and free the state of each CPU
 *
 * Context: process; network namespaces may still have rules.
 */
void timely_acker_stop(void)
{
	mutex_lock(&timely_acker_mutex);
	acker_leave();
	mutex_unlock(&timely_acker_mutex);
}

/**
 * timely_acker_exit() - end the delayed work when the module is unloaded
 *
 * Context: process, after the last timely_acker_put().
 */
void timely_acker_exit(void)
{
	cancel_delayed_work_sync(&acker_idle_work);
}
