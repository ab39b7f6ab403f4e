// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's state of each network namespace: counters, the keys that sign and verify OR-ACKs, and
 * the sockets that receive OR-ACKs. onramp.c opens the sockets and handles what they receive.
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
 * timely_onramp_count() - increment one of On-Ramp's counters
 * @net: network namespace
 * @index: the counter
 *
 * Context: any.
 */
void timely_onramp_count(struct net *net, enum timely_onramp_counter index)
{
	this_cpu_inc(onramp_net(net)->counters->count[index]);
}
EXPORT_SYMBOL_GPL(timely_onramp_count);

/**
 * timely_onramp_port() - get the UDP port of OR-ACKs
 *
 * Return: the port, host byte order.
 */
u16 timely_onramp_port(void)
{
	return orack_port;
}
EXPORT_SYMBOL_GPL(timely_onramp_port);

/* ---- keys and settings ---- */

/**
 * timely_onramp_sign() - write an OR-ACK, signed with the network namespace's key
 * @net: network namespace of the receiver
 * @orack: the contents; the number of the key is filled in
 * @wire: buffer of TIMELY_ORACK_BYTES bytes
 *
 * Return: true if @wire is written; false if no key is set for signing and the network namespace
 * does not allow OR-ACKs without a key.
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
 * timely_onramp_key() - find a key of a network namespace
 * @net: the namespace
 * @number: number of the key
 *
 * Context: RCU read lock, until the key is no longer used.
 * Return: the key; NULL if there is none with this number, as for 0.
 */
const struct timely_orack_key *timely_onramp_key(struct net *net, u8 number)
{
	const struct onramp_key *key = rcu_dereference(onramp_net(net)->keys[number]);

	return key ? &key->key : NULL;
}
EXPORT_SYMBOL_GPL(timely_onramp_key);

/**
 * timely_onramp_key_used() - get the number of the key that a network namespace signs with
 * @net: the namespace
 *
 * Return: number of the key; 0 for none.
 */
u8 timely_onramp_key_used(struct net *net)
{
	return READ_ONCE(onramp_net(net)->used);
}
EXPORT_SYMBOL_GPL(timely_onramp_key_used);

/**
 * timely_onramp_status() - read On-Ramp's settings and counters of a network namespace
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
 * timely_onramp_key_set() - add or replace a key for OR-ACKs
 * @net: network namespace
 * @number: number of the key, 1 to 255; the caller refuses 0
 * @key: the secret; it is copied
 *
 * Return: 0 or -ENOMEM.
 */
int timely_onramp_key_set(struct net *net, u8 number, const struct timely_orack_key *key)
{
	struct onramp_net *on = onramp_net(net);
	struct onramp_key *new = kmalloc(sizeof(*new), GFP_KERNEL_ACCOUNT), *old;

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
 * timely_onramp_key_del() - delete a key for OR-ACKs
 * @net: network namespace
 * @number: number of the key
 *
 * Return: 0; -ENOENT if there is no such key; -EBUSY if OR-ACKs are signed with the key.
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
 * timely_onramp_set() - change On-Ramp's settings of a network namespace
 * @net: network namespace
 * @used: number of the key to sign OR-ACKs with, 0 for none; NULL keeps the setting
 * @unauthenticated: whether to accept and send OR-ACKs without a key; NULL keeps the setting
 *
 * Return: 0; or -ENOENT if there is no key with the number @used, and no setting is changed.
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
 * timely_onramp_close() - close the sockets that receive OR-ACKs
 * @on: On-Ramp's state of a network namespace
 *
 * Context: under @on->lock, or when the namespace exits.
 */
void timely_onramp_close(struct onramp_net *on)
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
	on->counters = alloc_percpu_gfp(struct onramp_counters, GFP_KERNEL_ACCOUNT);
	return on->counters ? 0 : -ENOMEM;
}

static void __net_exit onramp_net_exit(struct net *net)
{
	struct onramp_net *on = onramp_net(net);
	u32 i;

	/* The devices of the namespace have been removed with their qdiscs, so the sockets are
	 * closed already; a socket that is still open must not outlive the namespace.
	 */
	timely_onramp_close(on);
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
 * timely_onramp_net_init() - initialise On-Ramp's state of network namespaces at loading
 *
 * Return: 0; -EINVAL if the parameter orack_port is 0; -ENOMEM.
 */
int timely_onramp_net_init(void)
{
	if (!orack_port) {
		pr_err("timely: orack_port=0 refused: allowed are 1 to 65535\n");
		return -EINVAL;
	}
	return register_pernet_subsys(&onramp_net_ops);
}

/**
 * timely_onramp_net_exit() - free On-Ramp's state of network namespaces at unloading
 *
 * Before the call, all code that counts, sends or receives OR-ACKs has ended.
 */
void timely_onramp_net_exit(void)
{
	unregister_pernet_subsys(&onramp_net_ops);
}
