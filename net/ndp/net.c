// SPDX-License-Identifier: GPL-2.0
/*
 * NDP's state of each network namespace: the UDP sockets that carry the packets, memory, counters
 * (/proc/net/ndp_stat), and the sysctls net.ndp.*.
 *
 * The UDP sockets are opened when the first NDP socket of the namespace is created, and remain open
 * until the namespace or the module goes away: connections in time-wait need them. A namespace
 * without NDP sockets receives no NDP packets.
 */

#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mm.h>
#include <linux/percpu.h>
#include <linux/proc_fs.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/udp.h>
#include <net/net_namespace.h>
#include <net/udp_tunnel.h>

#include <timely_sysctl.h>

#include "ndp.h"

/* Default of the first UDP port: 20307 to 20322. 20306 is that of On-Ramp's OR-ACKs. */
#define NDP_PORT	20307

/* Ended connections that are remembered: 768 KB for each namespace with NDP sockets. They are in
 * 4096 sets of 8, and while a set has too few places, new connections need a cookie. With the
 * default of time_wait_ms, half a second, 2 % of the connections need one at 10000 connections per
 * second, and nearly all at 20000.
 */
#define NDP_PAST	32768

/* An initial window of 30 packets, as the paper's. */
#define NDP_WINDOW	TIMELY_NDP_WINDOW

static ushort port = NDP_PORT;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "first of 16 UDP ports of NDP packets, the same on all hosts: packets are sent to this port, and the source port selects the path [1 to 65520]");

static uint max_memory_mb;
module_param(max_memory_mb, uint, 0644);
MODULE_PARM_DESC(max_memory_mb, "limit for each network namespace: memory of connections and their data, MB; 0: a sixteenth of the host's memory [0 or more]");

unsigned int ndp_net_id __read_mostly;

/**
 * ndp_net_port() - a UDP port of NDP packets
 * @path: number of the path; 0: the port that packets are sent to
 *
 * Return: the port, network byte order.
 */
__be16 ndp_net_port(u32 path)
{
	return htons(port + path % NDP_PATHS);
}

/* ---- memory ---- */

static long ndp_max_memory(void)
{
	uint mb = READ_ONCE(max_memory_mb);

	return mb ? (long)min(mb, 1U << 20) << (20 - PAGE_SHIFT) : totalram_pages() / 16;
}

/**
 * ndp_net_max_memory() - memory that a network namespace may use
 *
 * Return: bytes.
 */
u64 ndp_net_max_memory(void)
{
	return (u64)ndp_max_memory() << PAGE_SHIFT;
}

/**
 * ndp_net_charge() - count memory that a socket is about to use, if the limit allows that
 * @net: network namespace
 * @bytes: the memory
 *
 * Return: false if the namespace has no memory left; nothing has changed then.
 */
bool ndp_net_charge(struct net *net, long bytes)
{
	struct ndp_net *nn = ndp_net(net);

	if (atomic_long_add_return(bytes, &nn->memory) >> PAGE_SHIFT < ndp_max_memory())
		return true;
	ndp_net_add(net, -bytes);
	return false;
}

/**
 * ndp_net_add() - count memory without a check
 * @net: network namespace
 * @bytes: the memory; negative if it is not used any more
 */
void ndp_net_add(struct net *net, long bytes)
{
	atomic_long_add(bytes, &ndp_net(net)->memory);
}

/**
 * ndp_net_beyond() - check how much of a namespace's memory is in use
 * @net: network namespace
 * @eighths: 1 to 8
 *
 * Return: true if more memory is in use than this number of eighths of the limit.
 */
bool ndp_net_beyond(const struct net *net, u32 eighths)
{
	return atomic_long_read(&ndp_net(net)->memory) >> PAGE_SHIFT >
	       ndp_max_memory() / 8 * eighths;
}

/* ---- UDP sockets ---- */

/* The functions of the UDP sockets; see ndp_net_init(). */
static struct udp_tunnel_sock_cfg ndp_net_tunnel __ro_after_init;

static int ndp_open_socket(struct net *net, int family, u32 path, struct socket **result)
{
	struct udp_tunnel_sock_cfg tunnel = ndp_net_tunnel;
	struct udp_port_cfg config = {
		.family = family,
		.local_udp_port = ndp_net_port(path),
		.ipv6_v6only = 1,
	};
	int err = udp_sock_create(net, &config, result);

	tunnel.sk_user_data = ndp_net(net);
	if (!err)
		timely_setup_udp_tunnel(net, *result, &tunnel);
	return err;
}

/* Closes the sockets. ndp_input() drops what arrives afterwards. It also runs for packets whose
 * socket was found before the socket was closed, and reads @nn, which the caller frees.
 */
static void ndp_close_sockets(struct ndp_net *nn)
{
	u32 i;

	WRITE_ONCE(nn->open, false);
	synchronize_rcu();
	for (i = 0; i < 2 * NDP_PATHS; i++) {
		struct socket **sock = &nn->sockets[i / NDP_PATHS][i % NDP_PATHS];

		if (!*sock)
			continue;
		kernel_sock_shutdown(*sock, SHUT_RDWR);
		sock_release(*sock);
		*sock = NULL;
	}
	synchronize_rcu();
}

static bool ndp_has_ipv6(const struct net *net)
{
#if IS_ENABLED(CONFIG_IPV6)
	return ipv6_mod_enabled() && READ_ONCE(net->ipv6.devconf_all);
#else
	return false;
#endif
}

static int ndp_open_sockets(struct ndp_net *nn)
{
	u32 path;
	int err = 0;

	for (path = 0; !err && path < NDP_PATHS; path++) {
		err = ndp_open_socket(nn->net, AF_INET, path, &nn->sockets[0][path]);
		if (!err && ndp_has_ipv6(nn->net))
			err = ndp_open_socket(nn->net, AF_INET6, path, &nn->sockets[1][path]);
	}
	return err;
}

/* Allocates the records of past connections and of proved addresses, if they do not exist. */
static int ndp_alloc_records(struct ndp_net *nn)
{
	if (nn->past_memory)
		return 0;
	nn->proved = kvcalloc(NDP_PROVED, sizeof(*nn->proved), GFP_KERNEL_ACCOUNT);
	nn->past_memory = kvmalloc_array(NDP_PAST, sizeof(*nn->past_memory), GFP_KERNEL_ACCOUNT);
	if (nn->proved && nn->past_memory)
		return timely_ndp_past_init(&nn->past, nn->past_memory, NDP_PAST);
	kvfree(nn->proved);
	kvfree(nn->past_memory);
	nn->proved = NULL;
	nn->past_memory = NULL;
	return -ENOMEM;
}

static int ndp_open_locked(struct ndp_net *nn)
{
	int err;

	err = ndp_alloc_records(nn);
	if (err)
		return err;
	err = ndp_open_sockets(nn);
	if (err)
		ndp_close_sockets(nn);
	else
		/* ndp_input() may use the record and the sockets from now on. */
		smp_store_release(&nn->open, true);
	return err;
}

/**
 * ndp_net_open() - open the UDP sockets of a network namespace, if they are not open
 * @net: network namespace
 *
 * Context: process.
 * Return: 0; -EADDRINUSE if another socket has the UDP port; -ENOMEM; or another error of creating
 * a socket.
 */
int ndp_net_open(struct net *net)
{
	struct ndp_net *nn = ndp_net(net);
	int err = 0;

	/* Whoever sees that the sockets are open also sees the sockets. */
	if (smp_load_acquire(&nn->open))
		return 0;
	mutex_lock(&nn->lock);
	if (!nn->open)
		err = ndp_open_locked(nn);
	mutex_unlock(&nn->lock);
	return err;
}

/* ---- counters ---- */

#define NDP_COUNTER_NAME(name, doc)	#name,

const char * const ndp_counter_names[NDP_COUNTER_COUNT] = {
	NDP_COUNTERS(NDP_COUNTER_NAME)
};

/**
 * ndp_net_counter() - value of a counter
 * @net: network namespace
 * @index: the counter
 *
 * Return: the sum over all CPUs.
 */
u64 ndp_net_counter(const struct net *net, enum ndp_counter index)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(ndp_net(net)->counters, cpu)->count[index]);
	return sum;
}

static int ndp_stat_show(struct seq_file *seq, void *v)
{
	struct ndp_net *nn = ndp_net(seq_file_single_net(seq));
	u32 i;

	for (i = 0; i < NDP_COUNTER_COUNT; i++)
		seq_printf(seq, "%s %llu\n", ndp_counter_names[i], ndp_net_counter(nn->net, i));
	seq_printf(seq, "memory %ld\nmax_memory %llu\n", atomic_long_read(&nn->memory),
		   ndp_net_max_memory());
	return 0;
}

/* ---- sysctls ---- */

static const unsigned int ndp_window_max = NDP_SPAN;
static const unsigned int ndp_ms_max = 24 * 3600 * 1000;
static const unsigned int ndp_time_wait_max = 60 * 1000;
static const unsigned int ndp_proof_max = 24 * 3600;
static const unsigned int ndp_dscp_max = 63;
static const unsigned int ndp_kbps_max = U32_MAX;

#define NDP_SYSCTL(name, from, to)						\
	{									\
		.procname = #name,						\
		.data = (void *)offsetof(struct ndp_net, name),			\
		.maxlen = sizeof(u32),						\
		.mode = 0644,							\
		.proc_handler = proc_douintvec_minmax,				\
		.extra1 = (void *)(from),					\
		.extra2 = (void *)(to),						\
	}

/* The data are offsets, to which each namespace adds the address of its struct ndp_net. */
static const struct ctl_table ndp_sysctls[] = {
	NDP_SYSCTL(link_rate_kbps, SYSCTL_ONE, &ndp_kbps_max),
	NDP_SYSCTL(window, SYSCTL_ONE, &ndp_window_max),
	NDP_SYSCTL(time_wait_ms, SYSCTL_ONE, &ndp_time_wait_max),
	NDP_SYSCTL(timeout_ms, SYSCTL_ONE, &ndp_ms_max),
	NDP_SYSCTL(keepalive_ms, SYSCTL_ONE, &ndp_ms_max),
	NDP_SYSCTL(proof_s, SYSCTL_ZERO, &ndp_proof_max),
	NDP_SYSCTL(short_first, SYSCTL_ZERO, SYSCTL_ONE),
	NDP_SYSCTL(data_dscp, SYSCTL_ZERO, &ndp_dscp_max),
	NDP_SYSCTL(control_dscp, SYSCTL_ZERO, &ndp_dscp_max),
	NDP_SYSCTL(authentication, SYSCTL_ZERO, SYSCTL_TWO),
	{ }
};

static int ndp_sysctl_register(struct ndp_net *nn)
{
	struct ctl_table *table = kmemdup(ndp_sysctls, sizeof(ndp_sysctls), GFP_KERNEL);
	u32 i;

	if (!table)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(ndp_sysctls) - 1; i++)
		table[i].data += (unsigned long)nn;
	nn->table = timely_register_sysctl(nn->net, "net/ndp", table,
					   ARRAY_SIZE(ndp_sysctls) - 1);
	if (nn->table)
		return 0;
	kfree(table);
	return -ENOMEM;
}

static void ndp_sysctl_unregister(struct ndp_net *nn)
{
	const struct ctl_table *table = nn->table->ctl_table_arg;

	unregister_net_sysctl_table(nn->table);
	kfree(table);
}

/* ---- namespaces ---- */

/* The time-wait time is longer than the paper's, because packets may wait in long queues where
 * switches do not trim.
 */
static void ndp_net_defaults(struct ndp_net *nn)
{
	nn->link_rate_kbps = 10 * 1000 * 1000;
	nn->window = NDP_WINDOW;
	nn->time_wait_ms = 500;
	nn->timeout_ms = 30 * 1000;
	nn->keepalive_ms = 60 * 1000;
	nn->proof_s = 60;
	nn->short_first = 1;
	nn->data_dscp = 0;
	nn->control_dscp = 48;
}

static int __net_init ndp_net_start(struct net *net)
{
	struct ndp_net *nn = ndp_net(net);
	int err = -ENOMEM;

	nn->net = net;
	mutex_init(&nn->lock);
	spin_lock_init(&nn->past_lock);
	get_random_bytes(&nn->secret, sizeof(nn->secret));
	ndp_net_defaults(nn);
	nn->counters = alloc_percpu(struct ndp_counters);
	if (!nn->counters)
		return err;
	err = ndp_sysctl_register(nn);
	if (err)
		goto no_sysctl;
	err = -ENOMEM;
	if (!proc_create_net_single("ndp_stat", 0444, net->proc_net, ndp_stat_show, NULL))
		goto no_proc;
	return 0;
no_proc:
	ndp_sysctl_unregister(nn);
no_sysctl:
	free_percpu(nn->counters);
	return err;
}

static void __net_exit ndp_net_stop(struct net *net)
{
	struct ndp_net *nn = ndp_net(net);

	remove_proc_entry("ndp_stat", net->proc_net);
	ndp_sysctl_unregister(nn);
	if (nn->open)
		ndp_close_sockets(nn);
	kvfree(nn->past_memory);
	kvfree(nn->proved);
	free_percpu(nn->counters);
}

static struct pernet_operations ndp_net_ops = {
	.init = ndp_net_start,
	.exit = ndp_net_stop,
	.id = &ndp_net_id,
	.size = sizeof(struct ndp_net),
};

/**
 * ndp_net_init() - initialise the state of all network namespaces when the module is loaded
 * @tunnel: the functions of the UDP sockets, which receive packets and ICMP errors
 *
 * Return: 0; -EINVAL if the parameter port is out of its range; -ENOMEM.
 */
int __init ndp_net_init(const struct udp_tunnel_sock_cfg *tunnel)
{
	ndp_net_tunnel = *tunnel;
	if (!port || port > U16_MAX - NDP_PATHS + 1) {
		pr_err("ndp: port=%u refused: allowed are 1 to 65520\n", port);
		return -EINVAL;
	}
	return register_pernet_subsys(&ndp_net_ops);
}

/** ndp_net_exit() - free the state of all network namespaces; no socket is left */
void ndp_net_exit(void)
{
	unregister_pernet_subsys(&ndp_net_ops);
}
