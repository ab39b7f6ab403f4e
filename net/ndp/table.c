// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of NDP: bound ports and connections of all network namespaces.
 *
 * A connection is found by network namespace, addresses, ports and the number that the side which
 * opened the connection has chosen at random. So packets of an earlier connection with the same
 * addresses and ports never belong to a later one. Addresses are IPv6 addresses; IPv4 addresses
 * are mapped (::ffff:0:0/96).
 *
 * Readers are in RCU read-side critical sections, writers hold ndp_table_lock. Sockets are freed
 * after an RCU grace period (SOCK_RCU_FREE).
 */

#include <linux/hashtable.h>
#include <linux/jhash.h>
#include <linux/random.h>
#include <linux/siphash.h>
#include <net/inet_sock.h>
#include <net/ip.h>

#include "ndp.h"

#define NDP_TABLE_BITS	14

/* Most sockets that are bound to one port of a namespace. Each bind() to the port, and each first
 * packet of a peer, looks at all of them. This takes 0.9 us for a socket that is not in the CPU's
 * cache, so at most 1 ms.
 */
#define NDP_PORT_SOCKETS	1024

static DEFINE_HASHTABLE(ndp_bound, 10);
static DEFINE_HASHTABLE(ndp_conns, NDP_TABLE_BITS);
static DEFINE_SPINLOCK(ndp_table_lock);
static u32 ndp_table_seed __read_mostly;
static siphash_key_t ndp_past_key __read_mostly;

static u32 ndp_port_hash(const struct net *net, u16 port)
{
	return jhash_2words(net_hash_mix(net), port, ndp_table_seed);
}

static u32 ndp_key_hash(const struct net *net, const struct ndp_key *key)
{
	return jhash2((const u32 *)key, sizeof(*key) / sizeof(u32),
		      ndp_table_seed ^ net_hash_mix(net));
}

/* ---- ports ---- */

/**
 * ndp_bound_addr() - the local address of a bound socket
 * @sk: the socket
 * @addr: filled in: an IPv6 address, IPv4 addresses mapped; the unspecified address for all
 */
void ndp_bound_addr(const struct sock *sk, struct in6_addr *addr)
{
	if (sk->sk_family == AF_INET)
		ndp_map(addr, inet_sk(sk)->inet_rcv_saddr);
#if IS_ENABLED(CONFIG_IPV6)
	else
		*addr = sk->sk_v6_rcv_saddr;
#endif
}

/* Whether a bound socket receives packets to a local address. */
static bool ndp_bound_to(const struct sock *sk, const struct in6_addr *local)
{
	struct in6_addr addr;

	ndp_bound_addr(sk, &addr);
	if (ipv6_addr_equal(&addr, local))
		return true;
	if (sk->sk_family == AF_INET)
		return !ndp_v4(&addr) && ipv6_addr_v4mapped(local);
	if (ipv6_addr_v4mapped(&addr))
		return !ndp_v4(&addr) && ipv6_addr_v4mapped(local);
	return ipv6_addr_any(&addr) && !(sk->sk_ipv6only && ipv6_addr_v4mapped(local));
}

/* Whether two sockets cannot be bound to the same port: there is an address that both receive
 * packets to. Sockets with SO_REUSEADDR share a port unless one of them listens, as with TCP.
 * @listens: @a is about to listen.
 */
static bool ndp_bound_conflict(const struct sock *a, const struct sock *b, bool listens)
{
	struct in6_addr addr_a, addr_b;

	if (a->sk_bound_dev_if && b->sk_bound_dev_if && a->sk_bound_dev_if != b->sk_bound_dev_if)
		return false;
	if (a->sk_reuse && b->sk_reuse && !listens && b->sk_state != TCP_LISTEN)
		return false;
	ndp_bound_addr(a, &addr_a);
	ndp_bound_addr(b, &addr_b);
	return ndp_bound_to(a, &addr_b) || ndp_bound_to(b, &addr_a);
}

static bool ndp_port_free(const struct sock *sk, u16 port, bool listens)
{
	struct net *net = sock_net(sk);
	struct ndp_sock *other;
	u32 others = 0;

	hash_for_each_possible(ndp_bound, other, bound, ndp_port_hash(net, port)) {
		const struct sock *with = ndp_sock_of(other);

		if (with == sk || !net_eq(sock_net(with), net) || inet_sk(with)->inet_num != port)
			continue;
		if (++others == NDP_PORT_SOCKETS || ndp_bound_conflict(sk, with, listens))
			return false;
	}
	return true;
}

/* Binds a socket to a port if the port is free. The lock is held for one list of the table. */
static bool ndp_port_take(struct sock *sk, u16 port)
{
	bool taken;

	spin_lock_bh(&ndp_table_lock);
	taken = ndp_port_free(sk, port, false);
	if (taken) {
		inet_sk(sk)->inet_num = port;
		hash_add_rcu(ndp_bound, &ndp_sk(sk)->bound, ndp_port_hash(sock_net(sk), port));
	}
	spin_unlock_bh(&ndp_table_lock);
	return taken;
}

/* Binds a socket to a free port of the namespace's range of local ports, chosen at random. May
 * sleep. Return: false if none was found.
 */
static bool ndp_port_choose(struct sock *sk)
{
	int low, high, tries;
	u32 count, start;

	inet_get_local_port_range(sock_net(sk), &low, &high);
	count = high - low + 1;
	start = get_random_u32() % count;
	for (tries = 0; tries < min_t(u32, count, 4096); tries++) {
		u16 port = low + (start + tries) % count;

		if (!inet_is_local_reserved_port(sock_net(sk), port) && ndp_port_take(sk, port))
			return true;
		cond_resched();
	}
	return false;
}

/**
 * ndp_get_port() - bind a socket to a port; the function get_port of struct proto
 * @sk: the socket, whose local address is set
 * @port: the port, host byte order; 0: choose one
 *
 * Context: process, under the socket's lock; may sleep.
 * Return: 0; -EADDRINUSE if another socket has the port, NDP_PORT_SOCKETS sockets share it, or no
 * port is free.
 */
int ndp_get_port(struct sock *sk, unsigned short port)
{
	/* A reader that has reached the socket's entry of its former port would follow the entry to
	 * another chain, and miss the rest of its own. Such sockets are rare: connect() failed.
	 */
	if (READ_ONCE(ndp_sk(sk)->unbound))
		synchronize_rcu();
	return (port ? ndp_port_take(sk, port) : ndp_port_choose(sk)) ? 0 : -EADDRINUSE;
}

/**
 * ndp_put_port() - release the port of a socket
 * @sk: the socket; need not have a port
 */
void ndp_put_port(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);

	spin_lock_bh(&ndp_table_lock);
	if (hash_hashed(&ndp->bound)) {
		hlist_del_init_rcu(&ndp->bound);
		WRITE_ONCE(ndp->unbound, true);
	}
	inet_sk(sk)->inet_num = 0;
	spin_unlock_bh(&ndp_table_lock);
}

/**
 * ndp_listen_start() - make a bound socket a listener, if the port allows it
 * @sk: the socket
 *
 * Return: 0, or -EADDRINUSE if another listener receives packets to the same address and port.
 */
int ndp_listen_start(struct sock *sk)
{
	bool possible;

	spin_lock_bh(&ndp_table_lock);
	/* Packets find the socket as soon as it has this state. */
	possible = ndp_port_free(sk, inet_sk(sk)->inet_num, true);
	if (possible)
		ndp_set_state(sk, TCP_LISTEN);
	spin_unlock_bh(&ndp_table_lock);
	return possible ? 0 : -EADDRINUSE;
}

/**
 * ndp_find_listener() - find the socket that listens at a local address and port
 * @net: network namespace
 * @local: local address
 * @port: local port, host byte order
 * @iif: index of the interface that the packet arrived at
 *
 * A listener that is bound to the address is preferred to one that is bound to all addresses.
 *
 * Context: RCU read lock.
 * Return: the listener without a reference, or NULL.
 */
struct sock *ndp_find_listener(struct net *net, const struct in6_addr *local, u16 port, int iif)
{
	struct sock *found = NULL;
	struct ndp_sock *ndp;

	hash_for_each_possible_rcu(ndp_bound, ndp, bound, ndp_port_hash(net, port)) {
		struct sock *sk = ndp_sock_of(ndp);
		struct in6_addr addr;

		if (!net_eq(sock_net(sk), net) || inet_sk(sk)->inet_num != port ||
		    inet_sk_state_load(sk) != TCP_LISTEN || !ndp_bound_to(sk, local) ||
		    (sk->sk_bound_dev_if && sk->sk_bound_dev_if != iif))
			continue;
		ndp_bound_addr(sk, &addr);
		if (ipv6_addr_equal(&addr, local))
			return sk;
		found = sk;
	}
	return found;
}

/* ---- connections ---- */

static struct sock *ndp_find_locked(const struct net *net, const struct ndp_key *key, u32 hash)
{
	struct ndp_sock *ndp;

	hash_for_each_possible_rcu(ndp_conns, ndp, hashed, hash,
				   lockdep_is_held(&ndp_table_lock))
		if (!memcmp(&ndp->key, key, sizeof(*key)) &&
		    net_eq(sock_net(ndp_sock_of(ndp)), net))
			return ndp_sock_of(ndp);
	return NULL;
}

/**
 * ndp_find() - find a connection
 * @net: network namespace
 * @key: identity of the connection
 *
 * Context: RCU read lock.
 * Return: the socket without a reference, or NULL.
 */
struct sock *ndp_find(struct net *net, const struct ndp_key *key)
{
	return ndp_find_locked(net, key, ndp_key_hash(net, key));
}

/**
 * ndp_insert() - enter a connection into the table, with a reference to the socket
 * @sk: the socket, whose key is set
 *
 * Return: false if there is a connection with the same identity; nothing has changed then.
 */
bool ndp_insert(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	u32 hash = ndp_key_hash(sock_net(sk), &ndp->key);
	bool inserted;

	spin_lock_bh(&ndp_table_lock);
	inserted = !ndp_find_locked(sock_net(sk), &ndp->key, hash);
	if (inserted) {
		sock_hold(sk);
		hash_add_rcu(ndp_conns, &ndp->hashed, hash);
	}
	spin_unlock_bh(&ndp_table_lock);
	return inserted;
}

/**
 * ndp_remove() - remove a connection from the table
 * @sk: the socket; need not be in the table
 *
 * Return: true if the caller has taken over the table's reference to the socket.
 */
bool ndp_remove(struct sock *sk)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	bool removed;

	spin_lock_bh(&ndp_table_lock);
	removed = hash_hashed(&ndp->hashed);
	if (removed)
		hlist_del_init_rcu(&ndp->hashed);
	spin_unlock_bh(&ndp_table_lock);
	return removed;
}

/* ---- reading the tables ---- */

/* Entries of the table of ports come first, then those of the table of connections. */
static struct hlist_head *ndp_bucket(u32 bucket)
{
	if (bucket < HASH_SIZE(ndp_bound))
		return &ndp_bound[bucket];
	return &ndp_conns[bucket - HASH_SIZE(ndp_bound)];
}

static int ndp_walk_bucket(const struct net *net, struct ndp_place *place,
			   int (*visit)(struct sock *sk, void *arg), void *arg)
{
	bool bound = place->bucket < HASH_SIZE(ndp_bound);
	struct hlist_node *node;
	u32 index = 0;
	int err = 0;

	rcu_read_lock();
	for (node = rcu_dereference(hlist_first_rcu(ndp_bucket(place->bucket))); node && !err;
	     node = rcu_dereference(hlist_next_rcu(node))) {
		struct ndp_sock *ndp = bound ? hlist_entry(node, struct ndp_sock, bound) :
					       hlist_entry(node, struct ndp_sock, hashed);
		struct sock *sk = ndp_sock_of(ndp);

		if (index++ < place->skip)
			continue;
		if (net_eq(sock_net(sk), net) &&
		    (!bound || inet_sk_state_load(sk) == TCP_LISTEN))
			err = visit(sk, arg);
		if (!err)
			place->skip = index;
	}
	rcu_read_unlock();
	return err;
}

/**
 * ndp_table_walk() - visit the listeners and connections of a network namespace
 * @net: network namespace
 * @place: where to begin, all zero for the first one; set to where the next call goes on
 * @visit: called for each socket, under RCU; an error ends the call, and the next call begins with
 *	the same socket
 * @arg: argument of @visit
 *
 * Sockets that come or go meanwhile may be visited twice or not at all.
 *
 * Context: process; may sleep between buckets.
 * Return: 0 if all were visited, or the error of @visit.
 */
int ndp_table_walk(const struct net *net, struct ndp_place *place,
		   int (*visit)(struct sock *sk, void *arg), void *arg)
{
	for (; place->bucket < HASH_SIZE(ndp_bound) + HASH_SIZE(ndp_conns); place->bucket++) {
		int err = ndp_walk_bucket(net, place, visit, arg);

		if (err)
			return err;
		place->skip = 0;
		cond_resched();
	}
	return 0;
}

/**
 * ndp_past_hash() - the number of a connection in the record of ended connections
 * @net: network namespace
 * @key: identity of the connection
 *
 * Return: a keyed hash, not 0.
 */
u64 ndp_past_hash(const struct net *net, const struct ndp_key *key)
{
	return siphash(key, sizeof(*key), &ndp_past_key) ?: 1;
}

/** ndp_table_init() - choose the secrets of the hashes when the module is loaded */
void ndp_table_init(void)
{
	ndp_table_seed = get_random_u32();
	get_random_bytes(&ndp_past_key, sizeof(ndp_past_key));
}
