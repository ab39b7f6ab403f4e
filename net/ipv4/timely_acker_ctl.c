// SPDX-License-Identifier: GPL-2.0
/*
 * Configuration of On-Ramp's receiver: each network namespace has its own rules and settings, which
 * user space reads and changes by a generic netlink family. timely_acker_probe() reads a
 * configuration under RCU. So a configuration is not changed, but replaced by a changed copy. This
 * file also loads and unloads the module.
 */

#include <linux/module.h>
#include <linux/slab.h>
#include <uapi/linux/timely_version.h>
#include <net/genetlink.h>
#include <net/ipv6.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#include <net/timely_onramp.h>
#include <net/timely_tenant.h>
#include <uapi/linux/timely.h>

#include "timely_acker.h"

/* Highest number of rules of a namespace. */
#define ACKER_RULES_MAX		256

/* A flow gets an OR-ACK for this many bytes of IP packets. The default is ten packets of Ethernet's
 * MTU, as in On-Ramp's paper (section 4).
 */
#define ACKER_EVERY		15000
#define ACKER_EVERY_MIN		1500
#define ACKER_EVERY_MAX		10000000

/* Highest average number of OR-ACKs per second to each peer. The default is enough for 100 Gb/s of
 * data, of which every tenth packet of 1500 bytes is answered: 830000 OR-ACKs per second.
 */
#define ACKER_RATE		1000000
#define ACKER_RATE_MAX		100000000

/* Rate of the receiver's link, kbit/s. */
#define ACKER_LINK_KBPS		10000000
#define ACKER_LINK_KBPS_MIN	1000
#define ACKER_LINK_KBPS_MAX	800000000

#define ACKER_DSCP_MAX		63

/* Limits of the test clock's offset and drift: 31 years, in ns, and 0.1 %, in ppb. */
#define ACKER_TEST_OFFSET_MAX	1000000000000000000LL
#define ACKER_TEST_DRIFT_MAX	1000000

/* The last generation that was given to rules of any namespace. Guarded by timely_acker_mutex. */
static u32 acker_generation;

/* ---- namespaces ---- */

static const struct acker_config acker_default = {
	.interval_ns = NSEC_PER_SEC / ACKER_RATE,
	.link_kbps = ACKER_LINK_KBPS,
	.every = ACKER_EVERY,
	.rate = ACKER_RATE,
};

/* Get the configuration of a namespace, or the default. Under timely_acker_mutex. */
static const struct acker_config *acker_config_of(struct net *net)
{
	struct acker_net *an = net_generic(net, timely_acker_net_id);

	return rcu_dereference_protected(an->config, lockdep_is_held(&timely_acker_mutex)) ? :
	       &acker_default;
}

/* Copy a configuration, so that the caller can change the copy. The copy has @count rules: the
 * first rules of the original, and zeros beyond these rules. Return: NULL without memory.
 */
static struct acker_config *acker_copy(const struct acker_config *config, u32 count)
{
	struct acker_config *copy = kzalloc(struct_size(copy, rules, count), GFP_KERNEL_ACCOUNT);

	if (!copy)
		return NULL;
	*copy = *config;
	copy->count = count;
	memcpy(copy->rules, config->rules,
	       min(count, config->count) * sizeof(*config->rules));
	return copy;
}

/* Replace the configuration of a namespace by @config, or remove it if @config is NULL. Under
 * timely_acker_mutex. Return: 0; or -ENOMEM, after which @config is freed, and the namespace keeps
 * its old configuration. Removing cannot fail.
 */
static int acker_replace(struct net *net, struct acker_config *config)
{
	struct acker_net *an = net_generic(net, timely_acker_net_id);
	struct acker_config *old = rcu_dereference_protected(an->config,
						lockdep_is_held(&timely_acker_mutex));
	bool had = old && old->count;
	bool has = config && config->count;
	int err;

	if (has && !had) {
		err = timely_acker_get();
		if (err) {
			kfree(config);
			return err;
		}
	}
	rcu_assign_pointer(an->config, config);
	if (old)
		kfree_rcu(old, rcu);
	if (had && !has)
		timely_acker_put();
	return 0;
}

/* Stop answering packets of an exiting namespace. cleanup_net() waits for RCU readers before it
 * calls acker_net_exit_batch().
 */
static void __net_exit acker_net_pre_exit(struct net *net)
{
	mutex_lock(&timely_acker_mutex);
	acker_replace(net, NULL);
	mutex_unlock(&timely_acker_mutex);
}

static void __net_exit acker_net_exit_batch(struct list_head *nets)
{
	timely_acker_forget();
}

static struct pernet_operations acker_net_ops = {
	.pre_exit = acker_net_pre_exit,
	.exit_batch = acker_net_exit_batch,
	.id = &timely_acker_net_id,
	.size = sizeof(struct acker_net),
};

/* ---- netlink ---- */

static struct genl_family acker_family;

static const struct nla_policy acker_set_policy[] = {
	[TIMELY_A_ACKER_EVERY] = { .type = NLA_U32 },
	[TIMELY_A_ACKER_RATE] = { .type = NLA_U32 },
	[TIMELY_A_ACKER_TRIMMED] = { .type = NLA_U32 },
	[TIMELY_A_ACKER_LINK_KBPS] = { .type = NLA_U32 },
	[TIMELY_A_ACKER_TEST_OFFSET_NS] = { .type = NLA_S64 },
	[TIMELY_A_ACKER_TEST_DRIFT_PPB] = { .type = NLA_S32 },
};

static const struct nla_policy acker_rule_policy[] = {
	[TIMELY_A_RULE_PREFIX] = { .type = NLA_BINARY, .len = sizeof(struct in6_addr) },
	[TIMELY_A_RULE_LENGTH] = { .type = NLA_U8 },
	[TIMELY_A_RULE_PORT_FIRST] = { .type = NLA_U16 },
	[TIMELY_A_RULE_PORT_LAST] = { .type = NLA_U16 },
};

static u32 acker_address_bytes(u16 family)
{
	return family == AF_INET ? sizeof(struct in_addr) : sizeof(struct in6_addr);
}

static int acker_put_rule(struct sk_buff *skb, const struct acker_rule *rule)
{
	struct nlattr *nest = nla_nest_start(skb, TIMELY_A_RULE);

	if (!nest ||
	    nla_put(skb, TIMELY_A_RULE_PREFIX, acker_address_bytes(rule->family),
		    rule->prefix) ||
	    nla_put_u8(skb, TIMELY_A_RULE_LENGTH, rule->length) ||
	    nla_put_u16(skb, TIMELY_A_RULE_PORT_FIRST, rule->port_first) ||
	    nla_put_u16(skb, TIMELY_A_RULE_PORT_LAST, rule->port_last))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int acker_put(struct sk_buff *skb, const struct acker_config *config)
{
	int err = 0;
	u32 i;

	if (nla_put_u32(skb, TIMELY_A_ACKER_EVERY, config->every) ||
	    nla_put_u32(skb, TIMELY_A_ACKER_RATE, config->rate) ||
	    nla_put_u32(skb, TIMELY_A_ACKER_TRIMMED, config->trimmed_tos >> 2) ||
	    nla_put_u32(skb, TIMELY_A_ACKER_LINK_KBPS, config->link_kbps) ||
	    nla_put_u32(skb, TIMELY_A_ACKER_RULES_MAX, ACKER_RULES_MAX) ||
	    nla_put_s64(skb, TIMELY_A_ACKER_TEST_OFFSET_NS, config->test_offset_ns,
			TIMELY_A_PAD) ||
	    nla_put_s32(skb, TIMELY_A_ACKER_TEST_DRIFT_PPB, config->test_drift_ppb))
		return -EMSGSIZE;
	for (i = 0; !err && i < config->count; i++)
		err = acker_put_rule(skb, &config->rules[i]);
	return err;
}

/* Size of a reply with ACKER_RULES_MAX rules. */
static size_t acker_answer_bytes(void)
{
	size_t rule = nla_total_size(sizeof(struct in6_addr)) +
		      nla_total_size(sizeof(u8)) + 2 * nla_total_size(sizeof(u16));

	return 6 * nla_total_size(sizeof(u32)) + nla_total_size_64bit(sizeof(s64)) +
	       ACKER_RULES_MAX * nla_total_size(rule);
}

static int acker_get(struct sk_buff *request, struct genl_info *info)
{
	struct sk_buff *reply = genlmsg_new(acker_answer_bytes(), GFP_KERNEL);
	int err = -EMSGSIZE;
	void *header;

	if (!reply)
		return -ENOMEM;
	header = genlmsg_put_reply(reply, info, &acker_family, 0, TIMELY_CMD_ACKER_GET);
	mutex_lock(&timely_acker_mutex);
	if (header)
		err = acker_put(reply, acker_config_of(genl_info_net(info)));
	mutex_unlock(&timely_acker_mutex);
	if (err) {
		nlmsg_free(reply);
		return err;
	}
	genlmsg_end(reply, header);
	return genlmsg_reply(reply, info);
}

/* Refuse a request with an error and a message. Ranges are checked here and not by netlink
 * policies, whose messages do not name the allowed values.
 */
#define acker_refuse(info, attr, err, message)				\
({									\
	NL_SET_ERR_MSG_ATTR((info)->extack, attr, "timely_acker: " message);	\
	(err);								\
})

static int acker_parse_limits(struct genl_info *info, struct acker_config *config)
{
	const struct nlattr *every = info->attrs[TIMELY_A_ACKER_EVERY];
	const struct nlattr *rate = info->attrs[TIMELY_A_ACKER_RATE];

	if (every)
		config->every = nla_get_u32(every);
	if (config->every < ACKER_EVERY_MIN || config->every > ACKER_EVERY_MAX)
		return acker_refuse(info, every, -ERANGE,
				    "ACKER_EVERY: allowed are 1500 to 10000000 bytes");
	if (rate)
		config->rate = nla_get_u32(rate);
	if (!config->rate || config->rate > ACKER_RATE_MAX)
		return acker_refuse(info, rate, -ERANGE,
				    "ACKER_RATE: allowed are 1 to 100000000 OR-ACKs a second");
	config->interval_ns = DIV_ROUND_UP(NSEC_PER_SEC, config->rate);
	return 0;
}

static int acker_parse_trimmed(struct genl_info *info, struct acker_config *config)
{
	const struct nlattr *trimmed = info->attrs[TIMELY_A_ACKER_TRIMMED];
	const struct nlattr *link = info->attrs[TIMELY_A_ACKER_LINK_KBPS];
	u32 dscp = trimmed ? nla_get_u32(trimmed) : config->trimmed_tos >> 2;

	if (dscp > ACKER_DSCP_MAX)
		return acker_refuse(info, trimmed, -ERANGE,
				    "ACKER_TRIMMED: allowed are DSCPs 1 to 63, or 0 for off");
	config->trimmed_tos = dscp << 2;
	if (link)
		config->link_kbps = nla_get_u32(link);
	if (config->link_kbps < ACKER_LINK_KBPS_MIN || config->link_kbps > ACKER_LINK_KBPS_MAX)
		return acker_refuse(info, link, -ERANGE,
				    "ACKER_LINK_KBPS: allowed are 1000 to 800000000 kbit/s");
	return 0;
}

static int acker_parse_test(struct genl_info *info, struct acker_config *config)
{
	const struct nlattr *offset = info->attrs[TIMELY_A_ACKER_TEST_OFFSET_NS];
	const struct nlattr *drift = info->attrs[TIMELY_A_ACKER_TEST_DRIFT_PPB];

	if (!offset && !drift)
		return 0;
	if (offset)
		config->test_offset_ns = nla_get_s64(offset);
	if (config->test_offset_ns < -ACKER_TEST_OFFSET_MAX ||
	    config->test_offset_ns > ACKER_TEST_OFFSET_MAX)
		return acker_refuse(info, offset, -ERANGE,
				    "ACKER_TEST_OFFSET_NS: allowed are -10^18 to 10^18");
	if (drift)
		config->test_drift_ppb = nla_get_s32(drift);
	if (config->test_drift_ppb < -ACKER_TEST_DRIFT_MAX ||
	    config->test_drift_ppb > ACKER_TEST_DRIFT_MAX)
		return acker_refuse(info, drift, -ERANGE,
				    "ACKER_TEST_DRIFT_PPB: allowed are -1000000 to 1000000");
	config->test_since_ns = config->test_offset_ns || config->test_drift_ppb ?
				ktime_get_ns() : 0;
	return 0;
}

static int acker_set(struct sk_buff *request, struct genl_info *info)
{
	struct net *net = genl_info_net(info);
	const struct acker_config *old;
	struct acker_config *config;
	int err;

	if (!info->attrs[TIMELY_A_ACKER_EVERY] && !info->attrs[TIMELY_A_ACKER_RATE] &&
	    !info->attrs[TIMELY_A_ACKER_TRIMMED] && !info->attrs[TIMELY_A_ACKER_LINK_KBPS] &&
	    !info->attrs[TIMELY_A_ACKER_TEST_OFFSET_NS] &&
	    !info->attrs[TIMELY_A_ACKER_TEST_DRIFT_PPB])
		return acker_refuse(info, NULL, -EINVAL,
				    "nothing to set: give ACKER_EVERY, ACKER_RATE, ACKER_TRIMMED, ACKER_LINK_KBPS or ACKER_TEST_*");
	mutex_lock(&timely_acker_mutex);
	old = acker_config_of(net);
	config = acker_copy(old, old->count);
	err = config ? acker_parse_limits(info, config) ? : acker_parse_trimmed(info, config) ? :
		       acker_parse_test(info, config) : -ENOMEM;
	if (err)
		kfree(config);
	else
		err = acker_replace(net, config);
	mutex_unlock(&timely_acker_mutex);
	return err;
}

static int acker_parse_prefix(struct genl_info *info, struct acker_rule *rule)
{
	const struct nlattr *prefix = info->attrs[TIMELY_A_RULE_PREFIX];
	const struct nlattr *length = info->attrs[TIMELY_A_RULE_LENGTH];
	struct in6_addr masked;
	u32 bytes;

	if (!prefix || !length)
		return acker_refuse(info, NULL, -EINVAL,
				    "give RULE_PREFIX and RULE_LENGTH; both 0 select all sources");
	bytes = nla_len(prefix);
	if (bytes != sizeof(struct in_addr) && bytes != sizeof(struct in6_addr))
		return acker_refuse(info, prefix, -EINVAL,
				    "RULE_PREFIX: allowed are 4 bytes for IPv4, 16 for IPv6");
	if (bytes == sizeof(struct in6_addr) && !IS_ENABLED(CONFIG_IPV6))
		return acker_refuse(info, prefix, -EAFNOSUPPORT,
				    "RULE_PREFIX: this kernel has no IPv6: give an IPv4 prefix");
	rule->family = bytes == sizeof(struct in_addr) ? AF_INET : AF_INET6;
	memcpy(rule->prefix, nla_data(prefix), bytes);
	rule->length = nla_get_u8(length);
	if (rule->length > bytes * BITS_PER_BYTE)
		return acker_refuse(info, length, -ERANGE,
				    "RULE_LENGTH: allowed are no more than 32 bits for IPv4, 128 for IPv6");
	ipv6_addr_prefix(&masked, (const struct in6_addr *)rule->prefix, rule->length);
	if (memcmp(&masked, rule->prefix, sizeof(masked)))
		return acker_refuse(info, prefix, -EINVAL,
				    "RULE_PREFIX: bits beyond RULE_LENGTH must be 0");
	return 0;
}

static int acker_parse_ports(struct genl_info *info, struct acker_rule *rule)
{
	const struct nlattr *first = info->attrs[TIMELY_A_RULE_PORT_FIRST];
	const struct nlattr *last = info->attrs[TIMELY_A_RULE_PORT_LAST];

	rule->port_first = first ? nla_get_u16(first) : 0;
	rule->port_last = last ? nla_get_u16(last) : rule->port_first;
	if (!rule->port_first == !rule->port_last && rule->port_first <= rule->port_last)
		return 0;
	return acker_refuse(info, last ? : first, -EINVAL,
			    "RULE_PORT_LAST must not be below RULE_PORT_FIRST; both 0 for all ports");
}

/* Find a rule. Return: the index of the rule; the number of rules if the rule does not exist. */
static u32 acker_find(const struct acker_config *config, const struct acker_rule *rule)
{
	u32 i;

	for (i = 0; i < config->count; i++)
		if (!memcmp(&config->rules[i], rule, sizeof(*rule)))
			break;
	return i;
}

/* Replace a namespace's configuration by @config, which has other rules. The new generation makes
 * all flows of the namespace new to the tables of the CPUs, so that the new rules are checked.
 * Generation 0 marks unused entries of these tables and is skipped.
 */
static int acker_replace_rules(struct net *net, struct acker_config *config)
{
	config->generation = ++acker_generation ? : ++acker_generation;
	return acker_replace(net, config);
}

static int acker_add(struct genl_info *info, const struct acker_rule *rule)
{
	struct net *net = genl_info_net(info);
	const struct acker_config *old = acker_config_of(net);
	struct acker_config *config;

	if (acker_find(old, rule) < old->count)
		return acker_refuse(info, NULL, -EEXIST, "this rule exists already");
	if (old->count == ACKER_RULES_MAX)
		return acker_refuse(info, NULL, -ENOSPC,
				    "a namespace has at most 256 rules: delete a rule, or use shorter prefixes");
	if (!timely_acker_has_points())
		return acker_refuse(info, NULL, -EOPNOTSUPP,
				    "this kernel was built without tracepoints (CONFIG_TRACEPOINTS)");
	config = acker_copy(old, old->count + 1);
	if (!config)
		return -ENOMEM;
	config->rules[old->count] = *rule;
	return acker_replace_rules(net, config);
}

static int acker_del(struct genl_info *info, const struct acker_rule *rule)
{
	struct net *net = genl_info_net(info);
	const struct acker_config *old = acker_config_of(net);
	u32 place = acker_find(old, rule);
	struct acker_config *config;

	if (place == old->count)
		return acker_refuse(info, NULL, -ENOENT,
				    "no such rule: give the prefix and ports exactly as ACKER_GET reports them");
	config = acker_copy(old, old->count - 1);
	if (!config)
		return -ENOMEM;
	memcpy(config->rules + place, old->rules + place + 1,
	       (config->count - place) * sizeof(*rule));
	return acker_replace_rules(net, config);
}

static int acker_change_rule(struct sk_buff *request, struct genl_info *info)
{
	struct acker_rule rule = {};
	int err = acker_parse_prefix(info, &rule) ? : acker_parse_ports(info, &rule);

	if (err)
		return err;
	/* A rule costs all namespaces time: the tracepoints are reached by packets of all
	 * namespaces, and the table of a CPU has flows of all namespaces.
	 */
	if (info->genlhdr->cmd == TIMELY_CMD_RULE_ADD &&
	    !timely_request_may_affect_host(request))
		return acker_refuse(info, NULL, -EPERM,
				    "a rule costs time for every packet that the host receives: this needs CAP_NET_ADMIN of the host, or the module parameter timely.tenants=1, which the host's administrator can set");
	mutex_lock(&timely_acker_mutex);
	err = info->genlhdr->cmd == TIMELY_CMD_RULE_ADD ? acker_add(info, &rule) :
							  acker_del(info, &rule);
	mutex_unlock(&timely_acker_mutex);
	return err;
}

static const struct genl_ops acker_ops[] = {
	{
		.cmd = TIMELY_CMD_ACKER_GET,
		.doit = acker_get,
	},
	{
		.cmd = TIMELY_CMD_ACKER_SET,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = acker_set_policy,
		.maxattr = ARRAY_SIZE(acker_set_policy) - 1,
		.doit = acker_set,
	},
	{
		.cmd = TIMELY_CMD_RULE_ADD,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = acker_rule_policy,
		.maxattr = ARRAY_SIZE(acker_rule_policy) - 1,
		.doit = acker_change_rule,
	},
	{
		.cmd = TIMELY_CMD_RULE_DEL,
		.flags = GENL_UNS_ADMIN_PERM,
		.policy = acker_rule_policy,
		.maxattr = ARRAY_SIZE(acker_rule_policy) - 1,
		.doit = acker_change_rule,
	},
};

static struct genl_family acker_family __ro_after_init = {
	.name = TIMELY_ACKER_GENL_NAME,
	.version = TIMELY_GENL_VERSION,
	.module = THIS_MODULE,
	.netnsok = true,
	.ops = acker_ops,
	.n_ops = ARRAY_SIZE(acker_ops),
};

/* ---- loading ---- */

static int __init acker_load(void)
{
	int err;

	timely_acker_init();
	err = register_pernet_subsys(&acker_net_ops);
	if (err)
		return err;
	err = genl_register_family(&acker_family);
	if (err)
		unregister_pernet_subsys(&acker_net_ops);
	return err;
}

/* The tracepoint probe reads struct acker_net of the namespaces, so the tracepoints are left before
 * struct acker_net is freed.
 */
static void __exit acker_unload(void)
{
	genl_unregister_family(&acker_family);
	timely_acker_stop();
	unregister_pernet_subsys(&acker_net_ops);
	timely_acker_exit();
}

module_init(acker_load);
module_exit(acker_unload);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(TIMELY_VERSION);
MODULE_DESCRIPTION("TIMELY: On-Ramp's receiver");
