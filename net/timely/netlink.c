// SPDX-License-Identifier: GPL-2.0
/*
 * The generic netlink family "timely": shows and changes the state that module timely keeps.
 *
 * The state consists of NICs and their clock mappings, RTT counters, connections, On-Ramp's
 * settings, keys, counters, flows and peers, the common time, and budgets of network namespaces.
 * <linux/timely.h> describes commands and attributes. This file keeps no state: it checks requests
 * and converts between messages and the functions of flow.c, nic.c, link.c, onramp*.c, peer.c,
 * common_time.c and tenant.c.
 *
 * A request concerns the network namespace of its sender only, except that the administrator of the
 * host may list the connections of all namespaces. Any user may read the state, except the lists of
 * flows, peers and connections. The lists show which hosts communicate, so reading them needs
 * CAP_NET_ADMIN in the user namespace that owns the network namespace. All changes need this
 * capability, too.
 *
 * Some ranges are checked in code and not by a policy, because the policy's error message would not
 * name the range.
 */

#include <linux/bitops.h>
#include <linux/cgroup.h>
#include <linux/err.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <net/genetlink.h>
#include <net/net_namespace.h>
#include <net/sock.h>

#include <net/timely_common_time.h>
#include <net/timely_counters.h>
#include <net/timely_flow.h>
#include <net/timely_link.h>
#include <net/timely_netlink.h>
#include <net/timely_nic.h>
#include <net/timely_onramp.h>
#include <net/timely_tenant.h>
#include <timely_unaligned.h>

#include <uapi/linux/timely.h>

#include "walk.h"

/* Highest link rate that may be set, kbit/s: 1 Tb/s. A byte then takes 524 units of 2^-16 ns, the
 * unit in which nic.c stores the time of a byte, so that rounding changes the rate by up to 0.2 %.
 * Higher link rates, which would be rounded more, are refused.
 */
#define TN_MAX_LINK_KBPS	1000000000

/* Length of a key's secret, bytes. The secret is a SipHash key: two little-endian 64-bit words. */
#define TN_SECRET_BYTES		16

/**
 * struct tn_dump - position of a dump of NICs, kept in netlink_callback.ctx between messages
 * @position: number of devices, from the start of the namespace's list, that the dump has passed
 */
struct tn_dump {
	unsigned int position;
};

static struct genl_family tn_family;

static const struct nla_policy tn_nic_get_policy[] = {
	[TIMELY_A_IFINDEX] = NLA_POLICY_MIN(NLA_U32, 1),
	[TIMELY_A_IFNAME] = { .type = NLA_NUL_STRING, .len = ALTIFNAMSIZ - 1 },
};

static const struct nla_policy tn_nic_set_policy[] = {
	[TIMELY_A_IFINDEX] = NLA_POLICY_MIN(NLA_U32, 1),
	[TIMELY_A_IFNAME] = { .type = NLA_NUL_STRING, .len = ALTIFNAMSIZ - 1 },
	[TIMELY_A_NIC_USE] = NLA_POLICY_MAX(NLA_U8, 1),
	[TIMELY_A_LINK_OVERRIDE_KBPS] = { .type = NLA_U32 },
};

/* ---- finding the device of a request ---- */

/* Returns the device that a request names, in the network namespace of the request's sender, or an
 * error pointer. Under RTNL or RCU.
 */
static struct net_device *tn_find(struct genl_info *info)
{
	const struct nlattr *index = info->attrs[TIMELY_A_IFINDEX];
	const struct nlattr *name = info->attrs[TIMELY_A_IFNAME];
	struct net *net = genl_info_net(info);
	struct net_device *dev;

	if (!index == !name) {
		GENL_SET_ERR_MSG(info, "timely: name the device by either IFINDEX or IFNAME");
		return ERR_PTR(-EINVAL);
	}
	rcu_read_lock();
	/* An index above INT_MAX becomes negative and matches no device. */
	dev = index ? dev_get_by_index_rcu(net, nla_get_u32(index)) :
		      dev_get_by_name_rcu(net, nla_data(name));
	rcu_read_unlock();
	if (dev)
		return dev;
	NL_SET_ERR_MSG_ATTR(info->extack, index ? : name,
			    "timely: no such device in this network namespace");
	return ERR_PTR(-ENODEV);
}

/* Adds a message to an error of timely_nic_status() or timely_nic_change(). Returns the error. */
static int tn_explain(struct genl_info *info, int err)
{
	if (err == -ENOENT)
		GENL_SET_ERR_MSG(info,
				 "timely: this device does not timestamp received packets in hardware, or has not been up yet");
	return err;
}

/* ---- NICs ---- */

/* Converts a drift to ppb. No clock drifts by more than 100 %. Larger values are limited, so that
 * the result fits 32 bits.
 */
static s32 tn_drift_ppb(s64 drift_q32)
{
	s64 one = 1LL << 32;

	return (clamp(drift_q32, -one, one) * NSEC_PER_SEC) >> 32;
}

/* Puts a NIC's clock mapping; puts nothing before the NIC's first hardware timestamp. */
static int tn_put_map(struct sk_buff *skb, const struct timely_nic_status *status)
{
	const struct timely_clock_map *map = &status->map;

	if (map->state == TIMELY_CLOCK_NONE)
		return 0;
	if (nla_put_u32(skb, TIMELY_A_UNCERTAINTY_NS, status->uncertainty_ns) ||
	    nla_put_s32(skb, TIMELY_A_DRIFT_PPB, tn_drift_ppb(map->drift_q32)) ||
	    nla_put_u64_64bit(skb, TIMELY_A_MAP_NIC_NS, map->nic_ns, TIMELY_A_PAD) ||
	    nla_put_u64_64bit(skb, TIMELY_A_MAP_HOST_NS, map->host_ns, TIMELY_A_PAD) ||
	    nla_put_s64(skb, TIMELY_A_MAP_DRIFT_Q32, map->drift_q32, TIMELY_A_PAD))
		return -EMSGSIZE;
	return 0;
}

static int tn_put_nic(struct sk_buff *skb, const struct net_device *dev,
		      const struct timely_nic_status *status)
{
	if (nla_put_u32(skb, TIMELY_A_IFINDEX, dev->ifindex) ||
	    nla_put_string(skb, TIMELY_A_IFNAME, dev->name) ||
	    nla_put_u8(skb, TIMELY_A_NIC_STATE, status->state) ||
	    nla_put_u8(skb, TIMELY_A_NIC_USE, status->use) ||
	    nla_put_u32(skb, TIMELY_A_LINK_KBPS, status->link_kbps) ||
	    nla_put_u32(skb, TIMELY_A_LINK_OVERRIDE_KBPS, status->override_kbps) ||
	    nla_put_u64_64bit(skb, TIMELY_A_PAIRS, status->pairs, TIMELY_A_PAD) ||
	    nla_put_u64_64bit(skb, TIMELY_A_CROSS_TIMESTAMPS, status->cross_timestamps,
			      TIMELY_A_PAD) ||
	    nla_put_u32(skb, TIMELY_A_STEPS, status->steps) ||
	    nla_put_s32(skb, TIMELY_A_PHC, status->phc))
		return -EMSGSIZE;
	return tn_put_map(skb, status);
}

/* Puts the state of the NIC that a request names. RTNL is not held: if the device is renamed at the
 * same time, IFNAME may be a mixture of both names.
 */
static int tn_answer(struct sk_buff *reply, struct genl_info *info)
{
	struct timely_nic_status status;
	struct net_device *dev;
	int err;

	rcu_read_lock();
	dev = tn_find(info);
	err = PTR_ERR_OR_ZERO(dev);
	if (!err)
		err = tn_explain(info, timely_nic_status(dev, &status));
	if (!err)
		err = tn_put_nic(reply, dev, &status);
	rcu_read_unlock();
	return err;
}

static int tn_nic_get(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	int err = -EMSGSIZE;
	void *header;

	if (!reply)
		return -ENOMEM;
	header = genlmsg_put_reply(reply, info, &tn_family, 0, TIMELY_CMD_NIC_GET);
	if (header)
		err = tn_answer(reply, info);
	if (err) {
		nlmsg_free(reply);
		return err;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

/* Refuses a dump request with attributes. A policy would refuse them, too, but its error message
 * would not give the reason.
 */
static int tn_nic_dump_start(struct netlink_callback *cb)
{
	if (!nlmsg_attrlen(cb->nlh, GENL_HDRLEN))
		return 0;
	NL_SET_ERR_MSG(cb->extack, "timely: a dump lists all devices: remove the attributes");
	return -EINVAL;
}

/* Starts the next message of a dump. Returns NULL if there is no room. */
static void *tn_put_header(struct sk_buff *skb, const struct netlink_callback *cb, u8 command)
{
	return genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq, &tn_family,
			   NLM_F_MULTI, command);
}

/* Puts one device of a dump, if it is a NIC with hardware timestamps. Returns 0, also for other
 * devices, or -EMSGSIZE if the message is full.
 */
static int tn_dump_one(struct sk_buff *skb, struct netlink_callback *cb,
		       const struct net_device *dev)
{
	struct timely_nic_status status;
	void *header;

	if (timely_nic_status(dev, &status))
		return 0;
	header = tn_put_header(skb, cb, TIMELY_CMD_NIC_GET);
	if (!header)
		return -EMSGSIZE;
	genl_dump_check_consistent(cb, header);
	if (tn_put_nic(skb, dev, &status)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

static int tn_nic_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct tn_dump *dump = (struct tn_dump *)cb->ctx;
	struct net *net = sock_net(skb->sk);
	unsigned int position = 0;
	struct net_device *dev;

	rcu_read_lock();
	/* Devices that are added or removed during the dump shift positions: genetlink then sets
	 * NLM_F_DUMP_INTR, so that the reader repeats the dump.
	 */
	cb->seq = READ_ONCE(net->dev_base_seq);
	for_each_netdev_rcu(net, dev) {
		if (position++ < dump->position)
			continue;
		if (tn_dump_one(skb, cb, dev))
			break;
		dump->position++;
	}
	rcu_read_unlock();
	return skb->len;
}

/* Reads the settings of a NIC_SET request. The range of the link rate is checked here, because a
 * policy's error message would not name the range.
 */
static int tn_parse_change(struct genl_info *info, struct timely_nic_change *change)
{
	const struct nlattr *override = info->attrs[TIMELY_A_LINK_OVERRIDE_KBPS];
	const struct nlattr *use = info->attrs[TIMELY_A_NIC_USE];

	if (!override && !use) {
		GENL_SET_ERR_MSG(info,
				 "timely: nothing to set: give LINK_OVERRIDE_KBPS or NIC_USE");
		return -EINVAL;
	}
	if (override) {
		change->set_override = true;
		change->override_kbps = nla_get_u32(override);
	}
	if (change->override_kbps > TN_MAX_LINK_KBPS) {
		NL_SET_ERR_MSG_ATTR(info->extack, override,
				    "timely: LINK_OVERRIDE_KBPS: allowed are 0 to 1000000000 kbit/s");
		return -ERANGE;
	}
	if (use) {
		change->set_use = true;
		change->use = nla_get_u8(use);
	}
	return 0;
}

static int tn_nic_set(struct sk_buff *request, struct genl_info *info)
{
	struct timely_nic_change change = {};
	struct net_device *dev;
	int err = tn_parse_change(info, &change);

	if (err)
		return err;
	rtnl_lock();
	dev = tn_find(info);
	err = PTR_ERR_OR_ZERO(dev);
	if (!err)
		err = tn_explain(info, timely_nic_change(dev, &change));
	if (!err && change.set_override)
		timely_link_changed(dev_net(dev));
	rtnl_unlock();
	return err;
}

/* ---- RTT measurement ---- */

/* Puts a nest with one counter into a message. */
static int tn_put_counter(struct sk_buff *skb, const char *name, const char *doc, u64 value)
{
	struct nlattr *nest = nla_nest_start(skb, TIMELY_A_COUNTER);

	if (!nest ||
	    nla_put_string(skb, TIMELY_A_COUNTER_NAME, name) ||
	    nla_put_string(skb, TIMELY_A_COUNTER_DOC, doc) ||
	    nla_put_u64_64bit(skb, TIMELY_A_COUNTER_VALUE, value, TIMELY_A_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* Returns the length of a string attribute in a message, bytes. */
static size_t tn_text_bytes(const char *text)
{
	return nla_total_size(strlen(text) + 1);
}

/* Returns the length of the nests of all counters in a message, bytes. */
static size_t tn_counters_bytes(const char * const *names, const char * const *docs,
				unsigned int count)
{
	size_t bytes = 0;
	unsigned int i;

	for (i = 0; i < count; i++)
		bytes += nla_total_size(tn_text_bytes(names[i]) + tn_text_bytes(docs[i]) +
					nla_total_size_64bit(sizeof(u64)));
	return bytes;
}

static int tn_put_rtt(struct sk_buff *skb, const struct net *net)
{
	unsigned int i;
	int err = 0;

	for (i = 0; !err && i < TIMELY_RTT_COUNTER_COUNT; i++)
		err = tn_put_counter(skb, timely_rtt_counter_names[i],
				     timely_rtt_counter_docs[i], timely_rtt_counter(net, i));
	return err;
}

static int tn_rtt_get(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new(tn_counters_bytes(timely_rtt_counter_names,
							      timely_rtt_counter_docs,
							      TIMELY_RTT_COUNTER_COUNT),
					    GFP_KERNEL);
	void *header;

	if (!reply)
		return -ENOMEM;
	header = genlmsg_put_reply(reply, info, &tn_family, 0, TIMELY_CMD_RTT_GET);
	if (!header || tn_put_rtt(reply, genl_info_net(info))) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

/* ---- On-Ramp: settings and keys ---- */

static const struct nla_policy tn_onramp_set_policy[] = {
	[TIMELY_A_UNAUTHENTICATED] = NLA_POLICY_MAX(NLA_U8, 1),
	[TIMELY_A_KEY_USED] = { .type = NLA_U8 },
};

/* tn_key_number() and tn_key_set() check the values and name the allowed values in errors. */
static const struct nla_policy tn_key_set_policy[] = {
	[TIMELY_A_KEY] = { .type = NLA_U8 },
	[TIMELY_A_KEY_SECRET] = { .type = NLA_BINARY },
};

static const struct nla_policy tn_key_del_policy[] = {
	[TIMELY_A_KEY] = { .type = NLA_U8 },
};

/* Returns the maximum length of an answer to ONRAMP_GET, bytes: that with 255 keys. */
static size_t tn_onramp_bytes(void)
{
	return nla_total_size(sizeof(u16)) + 2 * nla_total_size(sizeof(u8)) +
	       U8_MAX * nla_total_size(sizeof(u8)) +
	       tn_counters_bytes(timely_onramp_counter_names, timely_onramp_counter_docs,
				 TIMELY_ONRAMP_COUNTER_COUNT);
}

static int tn_put_onramp(struct sk_buff *skb, const struct timely_onramp_status *status)
{
	unsigned long number;
	unsigned int i;
	int err = 0;

	if (nla_put_u16(skb, TIMELY_A_ORACK_PORT, timely_onramp_port()) ||
	    nla_put_u8(skb, TIMELY_A_UNAUTHENTICATED, status->unauthenticated) ||
	    nla_put_u8(skb, TIMELY_A_KEY_USED, status->used))
		return -EMSGSIZE;
	for_each_set_bit(number, status->keys, U8_MAX + 1)
		if (nla_put_u8(skb, TIMELY_A_KEY, number))
			return -EMSGSIZE;
	for (i = 0; !err && i < TIMELY_ONRAMP_COUNTER_COUNT; i++)
		err = tn_put_counter(skb, timely_onramp_counter_names[i],
				     timely_onramp_counter_docs[i], status->counters[i]);
	return err;
}

static int tn_onramp_get(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new(tn_onramp_bytes(), GFP_KERNEL);
	struct timely_onramp_status status;
	void *header;

	if (!reply)
		return -ENOMEM;
	timely_onramp_status(genl_info_net(info), &status);
	header = genlmsg_put_reply(reply, info, &tn_family, 0, TIMELY_CMD_ONRAMP_GET);
	if (!header || tn_put_onramp(reply, &status)) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

static int tn_onramp_set(struct sk_buff *request, struct genl_info *info)
{
	const struct nlattr *flag = info->attrs[TIMELY_A_UNAUTHENTICATED];
	const struct nlattr *key = info->attrs[TIMELY_A_KEY_USED];
	bool unauthenticated = flag && nla_get_u8(flag);
	u8 used = key ? nla_get_u8(key) : 0;
	int err;

	if (!flag && !key) {
		GENL_SET_ERR_MSG(info, "timely: nothing to set: give UNAUTHENTICATED or KEY_USED");
		return -EINVAL;
	}
	err = timely_onramp_set(genl_info_net(info), key ? &used : NULL,
				flag ? &unauthenticated : NULL);
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, key,
				    "timely: KEY_USED: this network namespace has no such key: add it first");
	return err;
}

/* Returns the number of the key that a request names, 1 to 255; 0, with an error message, if the
 * request names no key or key 0.
 */
static u8 tn_key_number(struct genl_info *info)
{
	const struct nlattr *attr = info->attrs[TIMELY_A_KEY];
	u8 number = attr ? nla_get_u8(attr) : 0;

	if (!number)
		GENL_SET_ERR_MSG(info, "timely: KEY: allowed are 1 to 255");
	return number;
}

/* Copies a secret from the request to @key, and clears it in the request: the kernel would free the
 * request's memory without clearing it. Returns false if the secret is missing, has the wrong
 * length or is all zero.
 */
static bool tn_read_secret(struct nlattr *attr, struct timely_orack_key *key)
{
	u8 *secret = attr ? nla_data(attr) : NULL;

	if (!attr || nla_len(attr) != TN_SECRET_BYTES || !memchr_inv(secret, 0, TN_SECRET_BYTES))
		return false;
	key->words[0] = get_unaligned_le64(secret);
	key->words[1] = get_unaligned_le64(secret + sizeof(u64));
	memzero_explicit(secret, TN_SECRET_BYTES);
	return true;
}

static int tn_key_set(struct sk_buff *request, struct genl_info *info)
{
	struct timely_orack_key key;
	u8 number = tn_key_number(info);
	int err;

	if (!number)
		return -EINVAL;
	if (!tn_read_secret(info->attrs[TIMELY_A_KEY_SECRET], &key)) {
		GENL_SET_ERR_MSG(info, "timely: KEY_SECRET: give 16 random bytes, not all 0");
		return -EINVAL;
	}
	err = timely_onramp_key_set(genl_info_net(info), number, &key);
	memzero_explicit(&key, sizeof(key));
	return err;
}

static int tn_key_del(struct sk_buff *request, struct genl_info *info)
{
	u8 number = tn_key_number(info);
	int err;

	if (!number)
		return -EINVAL;
	err = timely_onramp_key_del(genl_info_net(info), number);
	if (err == -ENOENT)
		GENL_SET_ERR_MSG(info,
				 "timely: KEY: this network namespace has no such key: ONRAMP_GET lists the keys");
	else if (err == -EBUSY)
		GENL_SET_ERR_MSG(info,
				 "timely: KEY: OR-ACKs are sent with this key: use another key, or none, first");
	return err;
}

/* ---- dumps of flows, peers and connections ---- */

/**
 * struct tn_flows - position of a dump of flows or connections, kept in netlink_callback.ctx
 *	between messages
 * @walk: position in the table of flows or connections
 * @report: puts a flow or a connection into a message: tn_dump_flow() or tn_dump_connection()
 */
struct tn_flows {
	struct timely_walk *walk;
	timely_report report;
};

/**
 * struct tn_flow_message - argument of tn_dump_flow() and tn_dump_connection()
 * @skb: the message that the flows or connections are put into
 * @cb: netlink's state of the dump
 * @choice: the connections that the request asks for
 */
struct tn_flow_message {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	struct timely_choice choice;
};

static int tn_put_tuple(struct sk_buff *skb, const struct timely_tuple *tuple)
{
	int bytes = tuple->family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);

	if (nla_put(skb, TIMELY_A_SADDR, bytes, tuple->saddr) ||
	    nla_put(skb, TIMELY_A_DADDR, bytes, tuple->daddr) ||
	    nla_put_be16(skb, TIMELY_A_SPORT, tuple->sport) ||
	    nla_put_be16(skb, TIMELY_A_DPORT, tuple->dport) ||
	    nla_put_u8(skb, TIMELY_A_PROTOCOL, tuple->protocol))
		return -EMSGSIZE;
	return 0;
}

static int tn_put_flow(struct sk_buff *skb, const struct timely_onramp_flow_status *status)
{
	if (tn_put_tuple(skb, &status->tuple) ||
	    nla_put_u64_64bit(skb, TIMELY_A_DELAY_NS, status->delay_ns, TIMELY_A_PAD) ||
	    nla_put_u32(skb, TIMELY_A_B, status->b) ||
	    nla_put_u64_64bit(skb, TIMELY_A_SIGNALS, status->signals, TIMELY_A_PAD) ||
	    nla_put_u64_64bit(skb, TIMELY_A_PAUSES, status->pauses, TIMELY_A_PAD) ||
	    nla_put_u64_64bit(skb, TIMELY_A_PAUSED_NS, status->paused_ns, TIMELY_A_PAD) ||
	    nla_put_u64_64bit(skb, TIMELY_A_PAUSE_LEFT_NS, status->left_ns, TIMELY_A_PAD))
		return -EMSGSIZE;
	return 0;
}

/* Puts one flow of a dump. timely_walk() calls this function for each flow; -EMSGSIZE, if the
 * message is full, ends the call.
 */
static int tn_dump_flow(const void *status, void *arg)
{
	struct tn_flow_message *to = arg;
	void *header = tn_put_header(to->skb, to->cb, TIMELY_CMD_FLOW_GET);

	if (!header)
		return -EMSGSIZE;
	if (tn_put_flow(to->skb, status)) {
		genlmsg_cancel(to->skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(to->skb, header);
	return 0;
}

/* Refuses a dump request with attributes. */
static int tn_check_whole(const struct netlink_callback *cb)
{
	if (!nlmsg_attrlen(cb->nlh, GENL_HDRLEN))
		return 0;
	NL_SET_ERR_MSG(cb->extack,
		       "timely: a dump lists all flows or peers: remove the attributes");
	return -EINVAL;
}

static int tn_flow_dump_start(struct netlink_callback *cb)
{
	struct tn_flows *flows = (struct tn_flows *)cb->ctx;
	int err = tn_check_whole(cb);

	if (err)
		return err;
	flows->report = tn_dump_flow;
	flows->walk = timely_onramp_walk_begin(sock_net(cb->skb->sk));
	return flows->walk ? 0 : -ENOMEM;
}

static int tn_flow_dump_done(struct netlink_callback *cb)
{
	struct tn_flows *flows = (struct tn_flows *)cb->ctx;

	timely_walk_end(flows->walk);
	return 0;
}

/* Gets the choice of a request, without a choice all connections. */
static void tn_get_choice(const struct netlink_callback *cb, struct timely_choice *choice)
{
	const struct nlattr *attr = nlmsg_find_attr(cb->nlh, GENL_HDRLEN, TIMELY_A_CHOICE);

	memset(choice, 0, sizeof(*choice));
	if (attr)
		nla_memcpy(choice, attr, sizeof(*choice));
}

/* Flows and connections that begin or end during a dump may be missed or listed twice. */
static int tn_flow_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct tn_flows *flows = (struct tn_flows *)cb->ctx;
	struct tn_flow_message to = { .skb = skb, .cb = cb };

	tn_get_choice(cb, &to.choice);
	timely_walk(flows->walk, flows->report, &to);
	return skb->len;
}

static const struct nla_policy tn_connection_policy[] = {
	[TIMELY_A_ALL_NETS] = NLA_POLICY_MAX(NLA_U8, 1),
	[TIMELY_A_CHOICE] = NLA_POLICY_EXACT_LEN(sizeof(struct timely_choice)),
};

/* Returns whether the first @bits bits of two addresses are the same. */
static bool tn_same_bits(const u8 *a, const u8 *b, u8 bits)
{
	u8 bytes = bits / 8, rest = bits % 8;

	return !memcmp(a, b, bytes) && (!rest || !((a[bytes] ^ b[bytes]) >> (8 - rest)));
}

/* Returns whether the control group is the one with this identifier, or below that. The walk is in
 * an RCU read-side critical section, and a group is freed a grace period after its last socket and
 * its last child: the group and those above it stay.
 */
static bool tn_in_cgroup(struct cgroup *cgroup, u64 id)
{
#ifdef CONFIG_SOCK_CGROUP_DATA
	for (; cgroup; cgroup = cgroup_parent(cgroup))
		if (cgroup_id(cgroup) == id)
			return true;
#endif
	return false;
}

static bool tn_is_chosen(const struct timely_choice *choice,
			 const struct timely_flow_report *report)
{
	const struct timely_connection *connection = &report->connection;

	if (choice->family && (choice->family != connection->family ||
			       !tn_same_bits(choice->saddr, connection->saddr, choice->slen) ||
			       !tn_same_bits(choice->daddr, connection->daddr, choice->dlen)))
		return false;
	if (choice->port && choice->port != connection->sport && choice->port != connection->dport)
		return false;
	return !choice->cgroup || tn_in_cgroup(report->cgroup, choice->cgroup);
}

/* Puts one connection or peer of a dump, a structure, as tn_dump_flow() a flow. */
static int tn_dump_struct(struct tn_flow_message *to, u8 command, int attr, const void *data,
			  int bytes)
{
	void *header = tn_put_header(to->skb, to->cb, command);

	if (!header)
		return -EMSGSIZE;
	if (nla_put(to->skb, attr, bytes, data)) {
		genlmsg_cancel(to->skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(to->skb, header);
	return 0;
}

static int tn_dump_connection(const void *object, void *arg)
{
	const struct timely_flow_report *report = object;
	struct tn_flow_message *to = arg;

	if (!tn_is_chosen(&to->choice, report))
		return 0;
	return tn_dump_struct(to, TIMELY_CMD_CONNECTION_GET, TIMELY_A_CONNECTION,
			      &report->connection, sizeof(report->connection));
}

static int tn_check_choice(struct netlink_callback *cb)
{
	struct timely_choice choice;
	u8 bits;

	tn_get_choice(cb, &choice);
	bits = choice.family == AF_INET ? 32 : choice.family == AF_INET6 ? 128 : 0;
	if ((!choice.family || bits) && choice.slen <= bits && choice.dlen <= bits &&
	    !choice.reserved)
		return 0;
	NL_SET_ERR_MSG(cb->extack,
		       "timely: CHOICE: allowed are AF_INET with lengths up to 32 and AF_INET6 with lengths up to 128");
	return -EINVAL;
}

static int tn_connection_dump_start(struct netlink_callback *cb)
{
	const struct nlattr *all = nlmsg_find_attr(cb->nlh, GENL_HDRLEN, TIMELY_A_ALL_NETS);
	struct tn_flows *flows = (struct tn_flows *)cb->ctx;
	const struct net *net = sock_net(cb->skb->sk);
	int err = tn_check_choice(cb);

	if (err)
		return err;
	if (all && nla_get_u8(all)) {
		if (!netlink_capable(cb->skb, CAP_NET_ADMIN)) {
			NL_SET_ERR_MSG_ATTR(cb->extack, all,
					    "timely: ALL_NETS needs CAP_NET_ADMIN in the initial user namespace");
			return -EPERM;
		}
		net = NULL;
	}
	flows->report = tn_dump_connection;
	flows->walk = timely_flow_walk_begin(net);
	return flows->walk ? 0 : -ENOMEM;
}

/* ---- peers of On-Ramp ---- */

static const struct nla_policy tn_peer_policy[] = {
	[TIMELY_A_PEER] = NLA_POLICY_EXACT_LEN(sizeof(struct timely_peer_clock)),
};

static int tn_dump_peer(const void *peer, void *arg)
{
	return tn_dump_struct(arg, TIMELY_CMD_PEER_GET, TIMELY_A_PEER, peer,
			      sizeof(struct timely_peer_clock));
}

static int tn_peer_dump_start(struct netlink_callback *cb)
{
	struct tn_flows *flows = (struct tn_flows *)cb->ctx;
	int err = tn_check_whole(cb);

	if (err)
		return err;
	flows->report = tn_dump_peer;
	flows->walk = timely_peer_walk_begin(sock_net(cb->skb->sk));
	return flows->walk ? 0 : -ENOMEM;
}

/* Returns what is wrong with a peer's offset, or NULL. */
static const char *tn_peer_fault(const struct timely_peer_clock *clock)
{
	if (clock->family != AF_INET && clock->family != AF_INET6)
		return "timely: PEER: family: allowed are AF_INET and AF_INET6";
	if (clock->family == AF_INET && memchr_inv(clock->address + 4, 0, 12))
		return "timely: PEER: address: an IPv4 address has 4 bytes; the others must be 0";
	if (clock->valid_ms > TIMELY_SYNC_VALID_MAX_NS / NSEC_PER_MSEC)
		return "timely: PEER: valid_ms: allowed are 0 to 100000";
	if (clock->valid_ms && (!clock->at_ns || clock->at_ns > ktime_get_ns()))
		return "timely: PEER: at_ns: a past time of CLOCK_MONOTONIC is needed";
	if (abs((s64)clock->drift_ppb) > TIMELY_SYNC_DRIFT_MAX_PPB)
		return "timely: PEER: drift_ppb: allowed are -1000000 to 1000000";
	if (clock->bound_ns > TIMELY_SYNC_BOUND_MAX_NS)
		return "timely: PEER: bound_ns: allowed are 0 to 1000000000";
	if (clock->growth_ppb > TIMELY_SYNC_DRIFT_MAX_PPB)
		return "timely: PEER: growth_ppb: allowed are 0 to 1000000";
	if (clock->reserved || clock->flows || clock->delay_ns)
		return "timely: PEER: reserved, flows and delay_ns must be 0";
	return NULL;
}

static int tn_peer_set(struct sk_buff *request, struct genl_info *info)
{
	const struct nlattr *attr = info->attrs[TIMELY_A_PEER];
	struct timely_peer_clock clock;
	const char *fault;
	int err;

	if (!attr) {
		GENL_SET_ERR_MSG(info,
				 "timely: PEER is missing: the peer and the offset of its clock");
		return -EINVAL;
	}
	nla_memcpy(&clock, attr, sizeof(clock));
	fault = tn_peer_fault(&clock);
	if (fault) {
		NL_SET_BAD_ATTR(info->extack, attr);
		info->extack->_msg = fault;
		return -EINVAL;
	}
	err = timely_peer_set_clock(NETLINK_CB(request).sk, &clock);
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, attr,
				    "timely: PEER: On-Ramp has no peer with this address, or no room for it");
	return err;
}

/* ---- the common time ---- */

static const struct nla_policy tn_common_time_policy[] = {
	[TIMELY_A_COMMON_TIME] = NLA_POLICY_EXACT_LEN(sizeof(struct timely_common_time)),
};

/* Returns what is wrong with a common time, or NULL. */
static const char *tn_common_time_fault(const struct timely_common_time *time)
{
	if (time->valid_ms > TIMELY_SYNC_VALID_MAX_NS / NSEC_PER_MSEC)
		return "timely: COMMON_TIME: valid_ms: allowed are 0 to 100000";
	if (time->valid_ms && (!time->at_ns || time->at_ns > ktime_get_ns()))
		return "timely: COMMON_TIME: at_ns: a past time of CLOCK_MONOTONIC is needed";
	if (abs((s64)time->drift_ppb) > TIMELY_SYNC_DRIFT_MAX_PPB)
		return "timely: COMMON_TIME: drift_ppb: allowed are -1000000 to 1000000";
	if (time->bound_ns > TIMELY_SYNC_BOUND_MAX_NS)
		return "timely: COMMON_TIME: bound_ns: allowed are 0 to 1000000000";
	if (time->growth_ppb > TIMELY_SYNC_DRIFT_MAX_PPB)
		return "timely: COMMON_TIME: growth_ppb: allowed are 0 to 1000000";
	return NULL;
}

static int tn_common_time_set(struct sk_buff *request, struct genl_info *info)
{
	const struct nlattr *attr = info->attrs[TIMELY_A_COMMON_TIME];
	struct timely_common_time time;
	const char *fault;

	if (!attr) {
		GENL_SET_ERR_MSG(info, "timely: COMMON_TIME is missing");
		return -EINVAL;
	}
	nla_memcpy(&time, attr, sizeof(time));
	fault = tn_common_time_fault(&time);
	if (fault) {
		NL_SET_BAD_ATTR(info->extack, attr);
		info->extack->_msg = fault;
		return -EINVAL;
	}
	timely_common_time_set(genl_info_net(info), &time);
	return 0;
}

/* ---- budgets ---- */

static size_t tn_limits_bytes(void)
{
	size_t bytes = 0;
	unsigned int i;

	for (i = 0; i < TIMELY_BUDGET_COUNT; i++)
		bytes += nla_total_size(tn_text_bytes(timely_budget_names[i]) +
					tn_text_bytes(timely_budget_docs[i]) +
					2 * nla_total_size(sizeof(u32)) +
					nla_total_size_64bit(sizeof(u64)));
	return bytes;
}

static int tn_put_limit(struct sk_buff *skb, const struct net *net,
			enum timely_budget_kind kind)
{
	struct nlattr *nest = nla_nest_start(skb, TIMELY_A_LIMIT);
	struct timely_budget_status status;

	timely_budget_status(net, kind, &status);
	if (!nest ||
	    nla_put_string(skb, TIMELY_A_LIMIT_NAME, timely_budget_names[kind]) ||
	    nla_put_string(skb, TIMELY_A_LIMIT_DOC, timely_budget_docs[kind]) ||
	    nla_put_u32(skb, TIMELY_A_LIMIT_USED, status.used) ||
	    nla_put_u32(skb, TIMELY_A_LIMIT_MAX, status.limit) ||
	    nla_put_u64_64bit(skb, TIMELY_A_LIMIT_REFUSED, status.refused, TIMELY_A_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int tn_limits_get(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new(tn_limits_bytes(), GFP_KERNEL);
	void *header;
	int err = 0;
	u32 kind;

	if (!reply)
		return -ENOMEM;
	header = genlmsg_put_reply(reply, info, &tn_family, 0, TIMELY_CMD_LIMITS_GET);
	for (kind = 0; header && !err && kind < TIMELY_BUDGET_COUNT; kind++)
		err = tn_put_limit(reply, genl_info_net(info), kind);
	if (!header || err) {
		nlmsg_free(reply);
		return -EMSGSIZE;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

/* ---- the family ---- */

static const struct genl_ops tn_ops[] = {
	{
		.cmd = TIMELY_CMD_NIC_GET,
		.policy = tn_nic_get_policy,
		.maxattr = ARRAY_SIZE(tn_nic_get_policy) - 1,
		.doit = tn_nic_get,
		.start = tn_nic_dump_start,
		.dumpit = tn_nic_dump,
	},
	{
		.cmd = TIMELY_CMD_NIC_SET,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = tn_nic_set_policy,
		.maxattr = ARRAY_SIZE(tn_nic_set_policy) - 1,
		.doit = tn_nic_set,
	},
	{
		.cmd = TIMELY_CMD_RTT_GET,
		.doit = tn_rtt_get,
	},
	{
		.cmd = TIMELY_CMD_ONRAMP_GET,
		.doit = tn_onramp_get,
	},
	{
		.cmd = TIMELY_CMD_ONRAMP_SET,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = tn_onramp_set_policy,
		.maxattr = ARRAY_SIZE(tn_onramp_set_policy) - 1,
		.doit = tn_onramp_set,
	},
	{
		.cmd = TIMELY_CMD_KEY_SET,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = tn_key_set_policy,
		.maxattr = ARRAY_SIZE(tn_key_set_policy) - 1,
		.doit = tn_key_set,
	},
	{
		.cmd = TIMELY_CMD_KEY_DEL,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = tn_key_del_policy,
		.maxattr = ARRAY_SIZE(tn_key_del_policy) - 1,
		.doit = tn_key_del,
	},
	{
		.cmd = TIMELY_CMD_FLOW_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.start = tn_flow_dump_start,
		.dumpit = tn_flow_dump,
		.done = tn_flow_dump_done,
	},
	{
		.cmd = TIMELY_CMD_LIMITS_GET,
		.doit = tn_limits_get,
	},
	{
		.cmd = TIMELY_CMD_CONNECTION_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = tn_connection_policy,
		.maxattr = ARRAY_SIZE(tn_connection_policy) - 1,
		.start = tn_connection_dump_start,
		.dumpit = tn_flow_dump,
		.done = tn_flow_dump_done,
	},
	{
		.cmd = TIMELY_CMD_PEER_GET,
		.flags = GENL_UNS_ADMIN_PERM,
		.start = tn_peer_dump_start,
		.dumpit = tn_flow_dump,
		.done = tn_flow_dump_done,
	},
	{
		.cmd = TIMELY_CMD_PEER_SET,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = tn_peer_policy,
		.maxattr = ARRAY_SIZE(tn_peer_policy) - 1,
		.doit = tn_peer_set,
	},
	{
		.cmd = TIMELY_CMD_COMMON_TIME_SET,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = tn_common_time_policy,
		.maxattr = ARRAY_SIZE(tn_common_time_policy) - 1,
		.doit = tn_common_time_set,
	},
};

/*
 * There is no module alias for the family's name, because a query must not load the module. The
 * module is loaded with the congestion control, the qdisc or On-Ramp's receiver.
 */
static struct genl_family tn_family __ro_after_init = {
	.name = TIMELY_GENL_NAME,
	.version = TIMELY_GENL_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.ops = tn_ops,
	.n_ops = ARRAY_SIZE(tn_ops),
};

/**
 * timely_netlink_init() - register the family
 *
 * Return: 0, or a negative error code.
 */
int timely_netlink_init(void)
{
	return genl_register_family(&tn_family);
}

/**
 * timely_netlink_exit() - unregister the family, after requests in progress have ended
 */
void timely_netlink_exit(void)
{
	genl_unregister_family(&tn_family);
}
