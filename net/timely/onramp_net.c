// SPDX-License-Identifier: GPL-2.0
/*
 * What On-Ramp has in each network namespace: counters, the keys that OR-ACKs are made and
 * verified with, and the sockets that receive OR-ACKs.
 */

#include <linux/bitmap.h>
#include <linux/export.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/net.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "onramp.h"

static ushort orack_port = TIMELY_ORACK_PORT;
module_param(orack_port, ushort, 0444);
MODULE_PARM_DESC(orack_port, "UDP port of OR-ACKs, the same on all hosts [1 to 65535]");

unsigned int timely_onramp_net_id __read_mostly;

/* ---- counters ---- */

#define ONRAMP_NAME(name, doc)	#name,

const char * const timely_onramp_counter_names[TIMELY_ONRAMP_COUNTER_COUNT] = {
	TIMELY_ONRAMP_COUNTERS(ONRAMP_NAME)
};

#define ONRAMP_DOC(name, doc)	doc,

const char * const timely_onramp_counter_docs[TIMELY_ONRAMP_COUNTER_COUNT] = {
	TIMELY_ONRAMP_COUNTERS(ONRAMP_DOC)
};

/**
 * timely_onramp_count() - one more
 * @net: network namespace
 * @index: of what
 */
void timely_onramp_count(struct net *net, enum timely_onramp_counter index)
{
	this_cpu_inc(onramp_net(net)->counters->count[index]);
}
EXPORT_SYMBOL_GPL(timely_onramp_count);

/**
 * timely_onramp_port() - the UDP port of OR-ACKs
 *
 * Return: that.
 */
u16 timely_onramp_port(void)
{
	return orack_port;
}
EXPORT_SYMBOL_GPL(timely_onramp_port);

/* ---- keys and settings ---- */

/**
 * timely_onramp_sign() - write an OR-ACK, with the namespace's key
 * @net: network namespace of the receiver
 * @orack: what it says; the key's number is filled in
 * @wire: room for TIMELY_ORACK_BYTES
 *
 * Return: false if no key is used and the namespace does not do without.
 */
bool timely_onramp_sign(struct net *net, struct timely_orack *orack, u8 *wire)
{
	struct onramp_net *on = onramp_net(net);
	const struct onramp_key *key = NULL;
	bool may;

	rcu_read_lock();
	orack->key = READ_ONCE(on->used);
	if (orack->key)
		key = rcu_dereference(on->keys[orack->key]);
	may = key || (!orack->key && READ_ONCE(on->unauthenticated));
	if (may)
		timely_orack_encode(wire, orack, key ? &key->key : NULL);
	rcu_read_unlock();
	return may;
}
EXPORT_SYMBOL_GPL(timely_onramp_sign);

/**
 * timely_onramp_status() - On-Ramp in a network namespace
 * @net: the namespace
 * @status: filled in
 */
void timely_onramp_status(struct net *net, struct timely_onramp_status *status)
{
	struct onramp_net *on = onramp_net(net);
	u32 i;
	int cpu;

	memset(status, 0, sizeof(*status));
	mutex_lock(&on->lock);
	status->used = on->used;
	status->unauthenticated = on->unauthenticated;
	for (i = 1; i < ARRAY_SIZE(on->keys); i++)
		if (rcu_access_pointer(on->keys[i]))
			__set_bit(i, status->keys);
	mutex_unlock(&on->lock);
	for_each_possible_cpu(cpu)
		for (i = 0; i < TIMELY_ONRAMP_COUNTER_COUNT; i++)
			status->counters[i] +=
				READ_ONCE(per_cpu_ptr(on->counters, cpu)->count[i]);
}

static struct onramp_key *onramp_key_swap(struct onramp_net *on, u8 number,
					  struct onramp_key *key)
{
	return rcu_replace_pointer(on->keys[number], key, lockdep_is_held(&on->lock));
}

static void onramp_key_free(struct rcu_head *rcu)
{
	kfree_sensitive(container_of(rcu, struct onramp_key, rcu));
}

/**
 * timely_onramp_key_set() - know a key, or know it anew
 * @net: network namespace
 * @number: its number, 1 to 255
 * @key: the secret
 *
 * Return: 0 or -ENOMEM.
 */
int timely_onramp_key_set(struct net *net, u8 number, const struct timely_orack_key *key)
{
	struct onramp_net *on = onramp_net(net);
	struct onramp_key *new = kmalloc(sizeof(*new), GFP_KERNEL), *old;

	if (!new)
		return -ENOMEM;
	new->key = *key;
	mutex_lock(&on->lock);
	old = onramp_key_swap(on, number, new);
	mutex_unlock(&on->lock);
	if (old)
		call_rcu(&old->rcu, onramp_key_free);
	return 0;
}

/**
 * timely_onramp_key_del() - forget a key
 * @net: network namespace
 * @number: its number
 *
 * Return: 0; -ENOENT if it is not known; -EBUSY if OR-ACKs are made with it.
 */
int timely_onramp_key_del(struct net *net, u8 number)
{
	struct onramp_net *on = onramp_net(net);
	struct onramp_key *old = NULL;
	int err = 0;

	mutex_lock(&on->lock);
	if (!rcu_access_pointer(on->keys[number]))
		err = -ENOENT;
	else if (on->used == number)
		err = -EBUSY;
	else
		old = onramp_key_swap(on, number, NULL);
	mutex_unlock(&on->lock);
	if (old)
		call_rcu(&old->rcu, onramp_key_free);
	return err;
}

/**
 * timely_onramp_set() - change settings, all or none
 * @net: network namespace
 * @used: number of the key that OR-ACKs are made with, 0 for none; NULL leaves it
 * @unauthenticated: whether OR-ACKs without a key count; NULL leaves it
 *
 * Return: 0, -ENOENT if the key is not known.
 */
int timely_onramp_set(struct net *net, const u8 *used, const bool *unauthenticated)
{
	struct onramp_net *on = onramp_net(net);
	int err = 0;

	mutex_lock(&on->lock);
	if (used && *used && !rcu_access_pointer(on->keys[*used])) {
		err = -ENOENT;
	} else {
		if (used)
			WRITE_ONCE(on->used, *used);
		if (unauthenticated)
			WRITE_ONCE(on->unauthenticated, *unauthenticated);
	}
	mutex_unlock(&on->lock);
	return err;
}

/* ---- namespaces ---- */

/**
 * timely_onramp_deafen() - close the sockets that receive OR-ACKs
 * @on: On-Ramp in a network namespace; under its lock, or when the namespace goes
 */
void timely_onramp_deafen(struct onramp_net *on)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(on->sockets); i++) {
		if (on->sockets[i])
			sock_release(on->sockets[i]);
		on->sockets[i] = NULL;
	}
}

static int __net_init onramp_net_init(struct net *net)
{
	struct onramp_net *on = onramp_net(net);

	mutex_init(&on->lock);
	on->counters = alloc_percpu(struct onramp_counters);
	return on->counters ? 0 : -ENOMEM;
}

static void __net_exit onramp_net_exit(struct net *net)
{
	struct onramp_net *on = onramp_net(net);
	u32 i;

	/* Devices have left, and their qdiscs with them. */
	timely_onramp_deafen(on);
	for (i = 0; i < ARRAY_SIZE(on->keys); i++)
		kfree_sensitive(rcu_dereference_protected(on->keys[i], true));
	free_percpu(on->counters);
}

static struct pernet_operations onramp_net_ops = {
	.init = onramp_net_init,
	.exit = onramp_net_exit,
	.id = &timely_onramp_net_id,
	.size = sizeof(struct onramp_net),
};

/**
 * timely_onramp_net_init() - make ready
 *
 * Return: 0; -EINVAL for a port that is none; -ENOMEM.
 */
int timely_onramp_net_init(void)
{
	if (!orack_port) {
		pr_err("timely: orack_port=0 refused: allowed are 1 to 65535\n");
		return -EINVAL;
	}
	return register_pernet_subsys(&onramp_net_ops);
}

/** timely_onramp_net_exit() - nobody counts, sends or receives OR-ACKs any more */
void timely_onramp_net_exit(void)
{
	unregister_pernet_subsys(&onramp_net_ops);
}
