// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family "ndp": shows the sockets, pull queues and counters of a network
 * namespace. <linux/ndp.h> describes commands and attributes.
 *
 * Any user may read them, as any user may list TCP's sockets with ss. A dump copies a socket's
 * state under the connection's lock and writes the message afterwards, so packets never wait for
 * a reader.
 */

#include <linux/module.h>
#include <net/genetlink.h>
#include <net/sock.h>
#include <net/tcp_states.h>
#include <uapi/linux/ndp.h>
#include <uapi/linux/timely.h>

#include "ndp.h"

/* Most bytes of a counter in a message: the names have up to 16 characters, descriptions 80. */
#define NDP_COUNTER_BYTES	192

/**
 * struct ndp_dump - argument of the functions that put a socket or a queue into a message
 * @skb: the message
 * @cb: netlink's state of the dump
 */
struct ndp_dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
};

static struct genl_family ndp_family;

static void *ndp_put_header(const struct ndp_dump *dump, u8 command)
{
	return genlmsg_put(dump->skb, NETLINK_CB(dump->cb->skb).portid, dump->cb->nlh->nlmsg_seq,
			   &ndp_family, NLM_F_MULTI, command);
}

/* Ends a message of a dump. Return: -EMSGSIZE if the message was not complete. */
static int ndp_end_message(const struct ndp_dump *dump, void *header, int err)
{
	if (err)
		genlmsg_cancel(dump->skb, header);
	else
		genlmsg_end(dump->skb, header);
	return err ? -EMSGSIZE : 0;
}

/* ---- sockets ---- */

static void ndp_show_address(u8 *to, const struct in6_addr *addr, u16 family)
{
	if (family == AF_INET)
		memcpy(to, &addr->s6_addr32[3], sizeof(__be32));
	else
		memcpy(to, addr, sizeof(*addr));
}

static void ndp_show_listener(struct sock *sk, struct ndp_socket *to)
{
	struct in6_addr addr;

	ndp_bound_addr(sk, &addr);
	to->family = ipv6_addr_v4mapped(&addr) ? AF_INET : AF_INET6;
	ndp_show_address(to->saddr, &addr, to->family);
	to->sport = htons(inet_sk(sk)->inet_num);
	to->rmem = READ_ONCE(sk->sk_ack_backlog);
	to->wmem = READ_ONCE(sk->sk_max_ack_backlog);
	to->info.state = TCP_LISTEN;
}

static void ndp_show_path(struct ndp_path *to, const struct timely_ndp_path *path, u32 number,
			  u64 now_ns)
{
	to->left_out_ns = path->out_until_ns > now_ns ? path->out_until_ns - now_ns : 0;
	to->sport = ndp_net_port(number);
	to->acks = path->acks;
	to->nacks = path->nacks;
	to->losses = path->losses;
	to->strikes = path->strikes;
	to->reserved = 0;
}

static void ndp_show_conn(struct sock *sk, struct ndp_socket *to, struct ndp_path *paths)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	const struct ndp_key *key = &ndp->key;
	u64 now_ns = ktime_get_ns();
	u32 i;

	to->family = ipv6_addr_v4mapped(&key->local) ? AF_INET : AF_INET6;
	ndp_show_address(to->saddr, &key->local, to->family);
	ndp_show_address(to->daddr, &key->peer, to->family);
	to->sport = key->local_port;
	to->dport = key->peer_port;
	to->initiator = key->initiator;
	to->rmem = atomic_read(&sk->sk_rmem_alloc);
	to->wmem = READ_ONCE(sk->sk_wmem_queued);
	ndp_conn_info(sk, &to->info);
	spin_lock_bh(&ndp->lock);
	to->ifindex = ndp_pull_ifindex(sk);
	to->wanted = timely_ndp_receiver_wanted(&ndp->receiver);
	to->window = ndp->sender.config.window;
	to->pull_gap_ns = ndp->credit_ns;
	for (i = 0; i < NDP_PATHS; i++)
		ndp_show_path(&paths[i], &ndp->path_memory[i], i, now_ns);
	spin_unlock_bh(&ndp->lock);
}

/* Puts one socket into a message, under RCU. */
static int ndp_dump_socket(struct sock *sk, void *arg)
{
	const struct ndp_dump *dump = arg;
	struct ndp_path paths[NDP_PATHS];
	struct ndp_socket shown = {};
	bool listens = inet_sk_state_load(sk) == TCP_LISTEN;
	void *header = ndp_put_header(dump, NDP_CMD_SOCKET_GET);
	int err;

	if (!header)
		return -EMSGSIZE;
	shown.uid = from_kuid_munged(sk_user_ns(NETLINK_CB(dump->cb->skb).sk), sk->sk_uid);
	shown.inode = sock_i_ino(sk);
	if (listens)
		ndp_show_listener(sk, &shown);
	else
		ndp_show_conn(sk, &shown, paths);
	err = nla_put(dump->skb, NDP_A_SOCKET, sizeof(shown), &shown);
	if (!err && !listens)
		err = nla_put(dump->skb, NDP_A_PATHS, sizeof(paths), paths);
	return ndp_end_message(dump, header, err);
}

static int ndp_socket_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct ndp_dump dump = { .skb = skb, .cb = cb };

	ndp_table_walk(sock_net(cb->skb->sk), (struct ndp_place *)cb->ctx, ndp_dump_socket, &dump);
	return skb->len;
}

/* ---- pull queues ---- */

static int ndp_dump_queue(const struct ndp_pull_queue *queue, void *arg)
{
	const struct ndp_dump *dump = arg;
	void *header = ndp_put_header(dump, NDP_CMD_QUEUE_GET);

	if (!header)
		return -EMSGSIZE;
	return ndp_end_message(dump, header,
			       nla_put(dump->skb, NDP_A_QUEUE, sizeof(*queue), queue));
}

static int ndp_queue_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct ndp_dump dump = { .skb = skb, .cb = cb };

	ndp_pull_walk(sock_net(cb->skb->sk), (struct ndp_place *)cb->ctx, ndp_dump_queue, &dump);
	return skb->len;
}

/* ---- counters ---- */

#define NDP_COUNTER_DOC(name, doc)	doc,

static const char * const ndp_counter_docs[NDP_COUNTER_COUNT] = {
	NDP_COUNTERS(NDP_COUNTER_DOC)
};

static int ndp_put_counter(struct sk_buff *skb, const struct net *net, u32 index)
{
	struct nlattr *nest = nla_nest_start(skb, NDP_A_COUNTER);

	if (!nest ||
	    nla_put_string(skb, TIMELY_A_COUNTER_NAME, ndp_counter_names[index]) ||
	    nla_put_string(skb, TIMELY_A_COUNTER_DOC, ndp_counter_docs[index]) ||
	    nla_put_u64_64bit(skb, TIMELY_A_COUNTER_VALUE, ndp_net_counter(net, index),
			      TIMELY_A_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int ndp_put_counters(struct sk_buff *skb, const struct net *net)
{
	u32 i;

	for (i = 0; i < NDP_COUNTER_COUNT; i++)
		if (ndp_put_counter(skb, net, i))
			return -EMSGSIZE;
	if (nla_put_u64_64bit(skb, NDP_A_MEMORY, atomic_long_read(&ndp_net(net)->memory),
			      NDP_A_PAD) ||
	    nla_put_u64_64bit(skb, NDP_A_MAX_MEMORY, ndp_net_max_memory(), NDP_A_PAD))
		return -EMSGSIZE;
	return 0;
}

static int ndp_counter_get(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new((NDP_COUNTER_COUNT + 1) * NDP_COUNTER_BYTES,
					    GFP_KERNEL);
	void *header;

	if (!reply)
		return -ENOMEM;
	header = genlmsg_put_reply(reply, info, &ndp_family, 0, NDP_CMD_COUNTER_GET);
	if (!header || ndp_put_counters(reply, genl_info_net(info))) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

/* ---- the family ---- */

static const struct genl_ops ndp_ops[] = {
	{
		.cmd = NDP_CMD_SOCKET_GET,
		.dumpit = ndp_socket_dump,
	},
	{
		.cmd = NDP_CMD_QUEUE_GET,
		.dumpit = ndp_queue_dump,
	},
	{
		.cmd = NDP_CMD_COUNTER_GET,
		.doit = ndp_counter_get,
	},
};

/* There is no module alias for the family's name, because a query must not load the module. */
static struct genl_family ndp_family __ro_after_init = {
	.name = NDP_GENL_NAME,
	.version = NDP_GENL_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.ops = ndp_ops,
	.n_ops = ARRAY_SIZE(ndp_ops),
};

/**
 * ndp_netlink_register() - register the family
 *
 * Return: 0, or a negative error code.
 */
int __init ndp_netlink_register(void)
{
	return genl_register_family(&ndp_family);
}

/** ndp_netlink_unregister() - unregister the family, after requests in progress have ended */
void ndp_netlink_unregister(void)
{
	genl_unregister_family(&ndp_family);
}
