// SPDX-License-Identifier: GPL-2.0
/*
 * The simulated netlink families of modules timely and timely_acker, the simulated TCP sockets of
 * sock_diag, and a simulated NIC, for timelyctl's tests, which need no modules and no root.
 *
 * timelyctl is linked with this file and with --wrap=mnl_socket_sendto,--wrap=mnl_socket_recvfrom,
 * so that the functions at the end of this file replace libmnl's.
 *
 * The environment variable FAKE_FAMILY has words KEY=NUMBER that change the values in the table
 * knobs[]. If it is not set, requests go to the kernel. Requests that change something are appended
 * to the file that FAKE_LOG names: the command, then its attributes as NAME=HEX.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/genetlink.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/if_arp.h>
#include <linux/if_link.h>
#include <linux/inet_diag.h>
#include <linux/ndp.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <sys/socket.h>

#include <linux/timely.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#define TIMELY_ID	0x21
#define ACKER_ID	0x22
#define NDP_ID		0x23

/* As in <netinet/tcp.h>, which cannot be included beside <linux/tcp.h>. */
#define TCP_ESTABLISHED	1
#define TCP_LISTEN	10

static struct {
	const char *key;
	long value;
} knobs[] = {
	{ "timely", 1 },	/* 1: module timely is loaded */
	{ "acker", 1 },		/* 1: module timely_acker is loaded */
	{ "ndp", 0 },		/* 1: module ndp is loaded */
	{ "ndp_sockets", 0 },	/* its sockets; the first listens, every other one is IPv6 */
	{ "trimmed", 0 },	/* DATA packets that arrived trimmed, of its 1000 packets */
	{ "errno", 0 },		/* errno of all requests to the modules; 0: success */
	{ "why", 0 },		/* 1: errors come with a message */
	{ "keys", 0 },		/* the keys 1 to this number exist */
	{ "used", 0 },		/* number of the used key; 0: none */
	{ "unauthenticated", 0 },
	{ "count", 0 },		/* value of each counter that has no value of its own */
	{ "received", 0 },	/* OR-ACKs received */
	{ "bad_tag", 0 },	/* of these, with a wrong tag */
	{ "old", 0 },		/* of these, replayed */
	{ "send_errors", 0 },	/* OR-ACKs not sent */
	{ "peers", 0 },		/* number of peers; every other one is IPv6 with an old offset */
	{ "flows", 0 },		/* number of flows; every other flow is IPv6 */
	{ "interrupted", 0 },	/* number of dumps that change meanwhile, before a complete one */
	{ "chooses", 0 },	/* 1: the module accepts TIMELY_A_CHOICE, and ignores it */
	{ "connections", 0 },	/* number of connections; every other one is IPv6 */
	{ "nics", 0 },		/* number of NICs, from interface index 1 on */
	{ "qdiscs", 0 },	/* number of qdiscs, attached to the classes of an mq */
	{ "rules", 0 },		/* number of rules of the receiver */
	{ "trimmed", 0 },	/* DSCP of trimmed packets that the receiver answers */
	{ "offset", 0 },	/* offset of the receiver's test clock, ns */
	{ "drift", 0 },		/* drift of the receiver's test clock, ppb */
	{ "exists4", 0 },	/* errno of changes of IPv4 rules */
	{ "exists6", 0 },	/* errno of changes of IPv6 rules */
	{ "flows_used", 100 },	/* flows in use, of flows_max */
	{ "flows_max", 100 },
	{ "hardware", 0 },	/* RTTs that ended at a hardware timestamp */
	{ "tcp", 0 },		/* RTTs that ended when TCP processed the ACK */
	{ "doubtful", 0 },	/* ACKs with a wrong hardware timestamp */
	{ "probes_unsynced", 0 },	/* base-RTT probes not by the common time */
	{ "grows", 0 },		/* 1: the second reading of these counters has twice their values */
	{ "alike", 0 },		/* instead of "connections": 10.0.0.0 to 172.0.0.0, all alike */
	{ "state", 2 },		/* their state, TIMELY_STATE_*: sending */
	{ "base", 20000 },	/* their base RTT, ns */
	{ "target", 5000 },	/* their target delay, ns */
	{ "losses", 0 },	/* their rate cuts by losses */
	{ "marks", 0 },		/* their rate cuts by ECN, which "grows" lets grow */
	{ "mapped", 0 },	/* 1: they have IPv6 sockets: ::ffff:10.0.0.0 */
	{ "min_rtt", 20 },	/* the shortest RTT that TCP has measured, us */
	{ "reports", 0 },	/* instead of "nics": number of NICs with the next values */
	{ "nic", 2 },		/* their state, TIMELY_NIC_*: sure */
	{ "pairs", 20000 },	/* their timestamp pairs */
	{ "steps", 0 },		/* their clock steps */
	{ "override", 0 },	/* their link rate that was set, kbit/s */
	{ "mtu", 0 },		/* instead of the host's devices: lo is a NIC with this MTU */
	{ "carrier", 1 },	/* whether this NIC has a carrier */
	{ "md5", 0 },		/* 1: the connections of "alike" have a key of TCP-MD5 */
	{ "unpaced", 0 },	/* qdiscs below the mq that are pfifo; the others are then fq */
	{ "random", 0 },	/* seed for answers of random attributes; 0: no random answers */
};

static char answer[60000];
static size_t answer_bytes;
/* The last request was answered by this file, and not by the kernel. */
static int simulated;

static long *knob(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		if (strcmp(knobs[i].key, key) == 0)
			return &knobs[i].value;
	fprintf(stderr, "fake: unknown key %s\n", key);
	abort();
}

/* Reads FAKE_FAMILY. Returns 0 if it is not set. */
static int read_knobs(void)
{
	static char text[256];
	char *given = getenv("FAKE_FAMILY");

	if (!given)
		return 0;
	if (text[0])
		return 1;
	snprintf(text, sizeof(text), "%s ", given);
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		char *value = strchr(word, '=');

		*value++ = 0;
		*knob(word) = strtol(value, NULL, 0);
	}
	text[0] = '.';
	srandom(*knob("random"));
	return 1;
}

/* ---- messages of an answer ---- */

static struct nlmsghdr *add_message(const struct nlmsghdr *request, unsigned int portid, int type)
{
	struct nlmsghdr *message = mnl_nlmsg_put_header(answer + answer_bytes);

	message->nlmsg_type = type;
	message->nlmsg_seq = request->nlmsg_seq;
	message->nlmsg_pid = portid;
	return message;
}

static struct nlmsghdr *add_genl(const struct nlmsghdr *request, unsigned int portid)
{
	struct nlmsghdr *message = add_message(request, portid, request->nlmsg_type);
	struct genlmsghdr *header = mnl_nlmsg_put_extra_header(message, sizeof(*header));

	header->version = 1;
	return message;
}

static void close_message(const struct nlmsghdr *message)
{
	answer_bytes += MNL_ALIGN(message->nlmsg_len);
}

static void end(const struct nlmsghdr *request, unsigned int portid, int err)
{
	struct nlmsghdr *message = add_message(request, portid, NLMSG_ERROR);
	struct nlmsgerr *error = mnl_nlmsg_put_extra_header(message, sizeof(*error));

	error->error = err;
	error->msg = *request;
	message->nlmsg_flags = NLM_F_CAPPED;
	if (err && *knob("why")) {
		message->nlmsg_flags |= NLM_F_ACK_TLVS;
		mnl_attr_put_strz(message, NLMSGERR_ATTR_MSG, "timely: because of the moon");
	}
	close_message(message);
}

static void end_dump(const struct nlmsghdr *request, unsigned int portid)
{
	struct nlmsghdr *message = add_message(request, portid, NLMSG_DONE);
	int *err = mnl_nlmsg_put_extra_header(message, sizeof(*err));

	*err = 0;
	message->nlmsg_flags = NLM_F_MULTI;
	if ((*knob("interrupted"))-- > 0)
		message->nlmsg_flags |= NLM_F_DUMP_INTR;
	close_message(message);
}

/* ---- attributes ---- */

/* Attributes with random types, lengths and contents, some with a wrong length. */
static void put_random(struct nlmsghdr *message)
{
	for (int i = random() % 40; i > 0; i--) {
		unsigned char data[64];
		struct nlattr *attr = mnl_nlmsg_get_payload_tail(message);

		for (size_t byte = 0; byte < sizeof(data); byte++)
			data[byte] = random() % 3 ? random() : 0xff;
		mnl_attr_put(message, random() % (TIMELY_A_MAX + 5), random() % 48, data);
		if (random() % 50 == 0)
			attr->nla_len = random();
	}
}

static void put_nest(struct nlmsghdr *message, __u16 type, const char *name, long count)
{
	struct nlattr *nest = mnl_attr_nest_start(message, type);

	mnl_attr_put_strz(message, TIMELY_A_COUNTER_NAME, name);
	mnl_attr_put_strz(message, TIMELY_A_COUNTER_DOC, "what it counts");
	mnl_attr_put_u64(message, TIMELY_A_COUNTER_VALUE, count);
	mnl_attr_nest_end(message, nest);
}

static void put_count(struct nlmsghdr *message, const char *name, long count)
{
	put_nest(message, TIMELY_A_COUNTER, name, count);
}

static void put_counter(struct nlmsghdr *message, const char *name)
{
	put_count(message, name, *knob("count"));
}

/* The value of a knob at reading number @reading, from 0. */
static long grown(const char *key, int reading)
{
	return *knob(key) * (1 + *knob("grows") * reading);
}

static void put_rtts(struct nlmsghdr *message)
{
	static const char * const keys[] = { "tcp", "doubtful", "probes_unsynced" };
	static int reading;

	put_count(message, "hardware", grown("hardware", reading) + *knob("count"));
	put_count(message, "too_long", *knob("count"));
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (*knob(keys[i]))
			put_count(message, keys[i], grown(keys[i], reading));
	reading++;
}

static void put_onramp(struct nlmsghdr *message)
{
	static int reading;

	mnl_attr_put_u16(message, TIMELY_A_ORACK_PORT, 20306);
	mnl_attr_put_u8(message, TIMELY_A_UNAUTHENTICATED, *knob("unauthenticated"));
	mnl_attr_put_u8(message, TIMELY_A_KEY_USED, *knob("used"));
	for (int i = 1; i <= *knob("keys"); i++)
		mnl_attr_put_u8(message, TIMELY_A_KEY, i);
	put_counter(message, "sent");
	put_counter(message, "unknown_key");
	put_counter(message, "bad_time");
	put_count(message, "received", grown("received", reading));
	put_count(message, "bad_tag", grown("bad_tag", reading));
	put_count(message, "old", grown("old", reading));
	put_count(message, "send_errors", grown("send_errors", reading));
	reading++;
}

/* Flow number @i, from 0. The last flow was paused the longest. */
static void put_flow(struct nlmsghdr *message, int i)
{
	unsigned char address[16] = { 10, 0, 0, i, [15] = 1 };

	mnl_attr_put(message, TIMELY_A_SADDR, i % 2 ? 16 : 4, address);
	address[0] = 172;
	mnl_attr_put(message, TIMELY_A_DADDR, i % 2 ? 16 : 4, address);
	mnl_attr_put_u16(message, TIMELY_A_SPORT, htons(1000 + i));
	mnl_attr_put_u16(message, TIMELY_A_DPORT, htons(80));
	mnl_attr_put_u8(message, TIMELY_A_PROTOCOL, i % 3 ? IPPROTO_TCP : IPPROTO_UDP);
	mnl_attr_put_u64(message, TIMELY_A_DELAY_NS, 50000 + i);
	mnl_attr_put_u32(message, TIMELY_A_B, 32768);
	mnl_attr_put_u64(message, TIMELY_A_SIGNALS, 10 * i);
	mnl_attr_put_u64(message, TIMELY_A_PAUSES, i);
	mnl_attr_put_u64(message, TIMELY_A_PAUSED_NS, 1000000 * i);
	mnl_attr_put_u64(message, TIMELY_A_PAUSE_LEFT_NS, i == 1 ? 20000 : 0);
}

static void put_peer(struct nlmsghdr *message, int i)
{
	struct timely_peer_clock peer = {
		.address = { i % 2 ? 0xac : 172, [2] = 0, [3] = 9, [15] = i % 2 },
		.family = i % 2 ? AF_INET6 : AF_INET,
		.valid_ms = i % 2, .at_ns = i % 2, .drift_ppb = -5 * (i % 2),
		.flows = 7 + i, .delay_ns = 15000 + 1000 * i,
	};

	mnl_attr_put(message, TIMELY_A_PEER, sizeof(peer), &peer);
}

/* One of several connections that differ in their ports only. */
static void put_alike(struct nlmsghdr *message, int i)
{
	static int reading;
	struct timely_connection connection = {
		.net_cookie = 1, .family = AF_INET, .sport = htons(1000 + i), .dport = htons(80),
		.saddr = { 10 }, .daddr = { 172 }, .state = *knob("state"),
		.base_rtt_ns = *knob("base"), .rtt_ns = *knob("base"),
		.target_ns = *knob("target"), .rate_Bps = 100000000, .link_kbps = 10000000,
		.control = "timely",
		.cuts = {
			[TIMELY_CUT_LOSS] = *knob("losses"),
			[TIMELY_CUT_ECN] = grown("marks", reading += !i),
		},
	};

	mnl_attr_put(message, TIMELY_A_CONNECTION, sizeof(connection), &connection);
}

static void put_report(struct nlmsghdr *message, int i)
{
	static int reading;

	mnl_attr_put_u32(message, TIMELY_A_IFINDEX, i + 1);
	mnl_attr_put_u8(message, TIMELY_A_NIC_STATE, *knob("nic"));
	mnl_attr_put_u8(message, TIMELY_A_NIC_USE, *knob("nic") != TIMELY_NIC_OFF);
	mnl_attr_put_u64(message, TIMELY_A_PAIRS, *knob("pairs"));
	mnl_attr_put_u32(message, TIMELY_A_STEPS, grown("steps", reading));
	reading += !i;
	mnl_attr_put_u32(message, TIMELY_A_LINK_OVERRIDE_KBPS, *knob("override"));
}

static void put_rule(struct nlmsghdr *message, int i)
{
	struct nlattr *nest = mnl_attr_nest_start(message, TIMELY_A_RULE);
	unsigned char address[16] = { 10 };

	mnl_attr_put(message, TIMELY_A_RULE_PREFIX, i % 2 ? 16 : 4, address);
	mnl_attr_put_u8(message, TIMELY_A_RULE_LENGTH, 8);
	if (i) {
		mnl_attr_put_u16(message, TIMELY_A_RULE_PORT_FIRST, 80);
		mnl_attr_put_u16(message, TIMELY_A_RULE_PORT_LAST, 79 + i);
	}
	mnl_attr_nest_end(message, nest);
}

static void put_acker(struct nlmsghdr *message)
{
	mnl_attr_put_u32(message, TIMELY_A_ACKER_EVERY, 15000);
	mnl_attr_put_u32(message, TIMELY_A_ACKER_RATE, 1000000);
	mnl_attr_put_u32(message, TIMELY_A_ACKER_TRIMMED, *knob("trimmed"));
	mnl_attr_put_u32(message, TIMELY_A_ACKER_LINK_KBPS, 10000000);
	mnl_attr_put_u32(message, TIMELY_A_ACKER_RULES_MAX, 256);
	mnl_attr_put_u64(message, TIMELY_A_ACKER_TEST_OFFSET_NS, *knob("offset"));
	mnl_attr_put_u32(message, TIMELY_A_ACKER_TEST_DRIFT_PPB, *knob("drift"));
	for (int i = 0; i < *knob("rules"); i++)
		put_rule(message, i);
}

/* Two budgets. Of the first one "flows_used" are in use, and "count" were refused. */
static void put_limits(struct nlmsghdr *message)
{
	static const char * const names[] = { "flows", "queues" };
	struct nlattr *nest;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		nest = mnl_attr_nest_start(message, TIMELY_A_LIMIT);
		mnl_attr_put_strz(message, TIMELY_A_LIMIT_NAME, names[i]);
		mnl_attr_put_strz(message, TIMELY_A_LIMIT_DOC, "objects of a kind");
		mnl_attr_put_u32(message, TIMELY_A_LIMIT_USED, i ? 7 : *knob("flows_used"));
		mnl_attr_put_u32(message, TIMELY_A_LIMIT_MAX, i ? 100 : *knob("flows_max"));
		mnl_attr_put_u64(message, TIMELY_A_LIMIT_REFUSED, i ? 0 : *knob("count"));
		mnl_attr_nest_end(message, nest);
	}
}

static void put_nic(struct nlmsghdr *message, int i)
{
	mnl_attr_put_u32(message, TIMELY_A_IFINDEX, i + 1);
	mnl_attr_put_u8(message, TIMELY_A_NIC_STATE, TIMELY_NIC_SURE);
	mnl_attr_put_u32(message, TIMELY_A_UNCERTAINTY_NS, 85);
	mnl_attr_put_u32(message, TIMELY_A_STEPS, 3);
}

/*
 * Connection number @i, from 0: to 172.0.i/10.9 or the like in IPv6, at (i + 1) Mbyte/s, with a
 * queueing delay of i us. The first has had no RTT, the second has a pause, and the last RTT of the
 * third was two minutes ago.
 */
static void put_connection(struct nlmsghdr *message, int i)
{
	struct timely_connection connection = {
		.net_cookie = 1,
		.rate_Bps = 1000000 * (i + 1),
		.pacing_Bps = 1000000,
		.rtt_age_ns = i == 0 ? UINT64_MAX : i == 2 ? 120000000000 : 1000,
		.pauses = i == 1 ? 5 : 0,
		.paused_ns = i == 1 ? 100000 : 0,
		.pause_left_ns = i == 1 ? 20000 : 0,
		.saddr = { 10, 0, 0, 1, [15] = 1 },
		.daddr = { 172, 0, i / 10, 9, [15] = 1 },
		.family = i % 2 ? AF_INET6 : AF_INET,
		.sport = htons(1000 + i),
		.dport = htons(80),
		.source = TIMELY_SOURCE_DRIVER,
		.state = TIMELY_STATE_SENDING,
		.rtt_ns = i ? 30000 + 1000 * i : 0,
		.base_rtt_ns = 30000,
		.target_ns = 15000,
		.t_high_ns = 500000,
		.cuts = { i },
		.control = "timely",
	};

	mnl_attr_put(message, TIMELY_A_CONNECTION, sizeof(connection), &connection);
}

/* ---- NDP ---- */

/* Socket number @i: the first is a listener; number i has i retransmissions. */
static void put_ndp_socket(struct nlmsghdr *message, int i)
{
	struct ndp_socket socket = {
		.saddr = { 10, 0, 0, 1, [15] = 1 }, .family = i % 2 ? AF_INET6 : AF_INET,
		.sport = htons(5000), .uid = 7, .rmem = 3, .wmem = 8, .inode = 99,
		.info.state = TCP_LISTEN,
	};
	struct ndp_path paths[16] = {
		{ .sport = htons(20307), .acks = 50, .nacks = 1 },
		{ .sport = htons(20308), .losses = 6, .strikes = 2, .left_out_ns = 1500000 },
	};

	if (i) {
		socket.daddr[0] = 172;
		socket.sport = htons(5000 + i);
		socket.dport = htons(80);
		socket.initiator = i % 2;
		socket.window = 30;
		socket.pull_gap_ns = 1000;
		socket.info = (struct ndp_info){
			.state = TCP_ESTABLISHED, .rtt_us = 40, .payload = 1250, .credits = 12,
			.room = i - 1, .unacked = 5, .sent = 1000, .nacked = i, .received = 7,
			.flags = i == 3 ? 0 : NDP_INFO_ANSWERED | (i == 2 ? NDP_INFO_GRACEFUL : 0),
		};
	}
	mnl_attr_put(message, NDP_A_SOCKET, sizeof(socket), &socket);
	if (i)
		mnl_attr_put(message, NDP_A_PATHS, sizeof(paths), paths);
}

static void put_ndp_queue(struct nlmsghdr *message, int i)
{
	struct ndp_pull_queue queue = {
		.ifindex = i + 1, .kbps = 10000000, .flows = 3, .pulls = 77,
	};

	mnl_attr_put(message, NDP_A_QUEUE, sizeof(queue), &queue);
}

static void put_ndp_counters(struct nlmsghdr *message)
{
	put_nest(message, NDP_A_COUNTER, "received", 1000);
	put_nest(message, NDP_A_COUNTER, "trimmed", *knob("trimmed"));
	mnl_attr_put_u64(message, NDP_A_MEMORY, 16384);
	mnl_attr_put_u64(message, NDP_A_MAX_MEMORY, 1000000);
}

/* ---- requests ---- */

static const char * const commands[] = {
	[TIMELY_CMD_ONRAMP_SET] = "onramp-set",
	[TIMELY_CMD_KEY_SET] = "key-set",
	[TIMELY_CMD_KEY_DEL] = "key-del",
	[TIMELY_CMD_ACKER_SET] = "acker-set",
	[TIMELY_CMD_RULE_ADD] = "rule-add",
	[TIMELY_CMD_RULE_DEL] = "rule-del",
};

static const char * const attributes[] = {
	[TIMELY_A_UNAUTHENTICATED] = "unauthenticated",
	[TIMELY_A_KEY] = "key",
	[TIMELY_A_KEY_SECRET] = "secret",
	[TIMELY_A_KEY_USED] = "used",
	[TIMELY_A_RULE_PREFIX] = "prefix",
	[TIMELY_A_RULE_LENGTH] = "length",
	[TIMELY_A_RULE_PORT_FIRST] = "first",
	[TIMELY_A_RULE_PORT_LAST] = "last",
	[TIMELY_A_ACKER_EVERY] = "every",
	[TIMELY_A_ACKER_RATE] = "rate",
	[TIMELY_A_ACKER_TRIMMED] = "trimmed",
	[TIMELY_A_ACKER_LINK_KBPS] = "link",
	[TIMELY_A_ACKER_TEST_OFFSET_NS] = "offset",
	[TIMELY_A_ACKER_TEST_DRIFT_PPB] = "drift",
};

static const char *name_of(const char * const *names, size_t count, size_t index)
{
	return index < count && names[index] ? names[index] : "unknown";
}

static void write_log(const struct nlmsghdr *request)
{
	const struct genlmsghdr *header = mnl_nlmsg_get_payload(request);
	const char *log = getenv("FAKE_LOG");
	FILE *file = log ? fopen(log, "a") : NULL;
	const struct nlattr *attr;

	if (!file)
		return;
	fputs(name_of(commands, ARRAY_SIZE(commands), header->cmd), file);
	mnl_attr_for_each(attr, request, sizeof(*header)) {
		const unsigned char *data = mnl_attr_get_payload(attr);

		fprintf(file, " %s=", name_of(attributes, ARRAY_SIZE(attributes),
					      mnl_attr_get_type(attr)));
		for (int i = 0; i < mnl_attr_get_payload_len(attr); i++)
			fprintf(file, "%02x", data[i]);
	}
	fputc('\n', file);
	fclose(file);
}

/* The error of a request that adds or deletes a rule, by the address family of the rule. */
static long rule_errno(const struct nlmsghdr *request)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, request, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == TIMELY_A_RULE_PREFIX)
			return -*knob(mnl_attr_get_payload_len(attr) == 4 ? "exists4" : "exists6");
	return 0;
}

static void answer_one(const struct nlmsghdr *request, unsigned int portid,
		       void (*put)(struct nlmsghdr *message))
{
	struct nlmsghdr *message = add_genl(request, portid);

	if (*knob("random"))
		put_random(message);
	else
		put(message);
	close_message(message);
}

/* Writes @count messages of a dump. */
static void answer_dump(const struct nlmsghdr *request, unsigned int portid, long count,
			void (*put)(struct nlmsghdr *message, int i))
{
	for (int i = 0; i < count; i++) {
		struct nlmsghdr *message = add_genl(request, portid);

		message->nlmsg_flags = NLM_F_MULTI;
		if (*knob("random"))
			put_random(message);
		else
			put(message, i);
		close_message(message);
	}
	end_dump(request, portid);
}

/* The families of the modules that are loaded. */
static void answer_families(const struct nlmsghdr *request, unsigned int portid)
{
	static const struct {
		const char *knob;
		const char *name;
		int id;
	} families[] = {
		{ "timely", TIMELY_GENL_NAME, TIMELY_ID },
		{ "acker", TIMELY_ACKER_GENL_NAME, ACKER_ID },
		{ "ndp", NDP_GENL_NAME, NDP_ID },
	};

	for (size_t i = 0; i < ARRAY_SIZE(families); i++) {
		struct nlmsghdr *message;

		if (!*knob(families[i].knob))
			continue;
		message = add_genl(request, portid);
		mnl_attr_put_u16(message, CTRL_ATTR_FAMILY_ID, families[i].id);
		mnl_attr_put_strz(message, CTRL_ATTR_FAMILY_NAME, families[i].name);
		close_message(message);
	}
	end_dump(request, portid);
}

/* The qdiscs of the device with interface index 1: an mq without statistics, and its children. */
static void answer_qdiscs(const struct nlmsghdr *request, unsigned int portid)
{
	struct gnet_stats_basic basic = { .bytes = 10000000000, .packets = 7 };
	struct gnet_stats_queue queue = { .qlen = 2, .backlog = 3000, .drops = *knob("count") };
	struct tc_timely_stats stats = {
		.unthrottle_latency_ns = 1500,
		.band_drops = { 1, 2, 3 },
		.onramp_signals = 6,
		.onramp_delays = { 1, 2, [TIMELY_ONRAMP_BINS - 1] = 3 },
	};

	for (int i = 0; i <= *knob("qdiscs"); i++) {
		struct nlmsghdr *message = add_message(request, portid, RTM_NEWQDISC);
		struct tcmsg *tcm = mnl_nlmsg_put_extra_header(message, sizeof(*tcm));
		struct nlattr *nest;

		message->nlmsg_flags = NLM_F_MULTI;
		tcm->tcm_ifindex = 1;
		tcm->tcm_parent = i ? TC_H_MAKE(0x80010000, i) : TC_H_ROOT;
		tcm->tcm_handle = i ? 0 : 0x80010000;
		if (*knob("random"))
			put_random(message);
		mnl_attr_put_strz(message, TCA_KIND, !i ? "mq" : !*knob("unpaced") ? "timely" :
				  i <= *knob("unpaced") ? "pfifo" : "fq");
		nest = mnl_attr_nest_start(message, TCA_STATS2);
		mnl_attr_put(message, TCA_STATS_BASIC, sizeof(basic), &basic);
		mnl_attr_put(message, TCA_STATS_QUEUE, sizeof(queue), &queue);
		/* A kernel that is older than timelyctl sends less. */
		mnl_attr_put(message, TCA_STATS_APP, sizeof(stats) - (i == 2 ? 8 : 0), &stats);
		mnl_attr_nest_end(message, nest);
		close_message(message);
	}
	end_dump(request, portid);
}

/* The only device, with the interface index 1, or its address. */
static void answer_device(const struct nlmsghdr *request, unsigned int portid)
{
	bool link = request->nlmsg_type == RTM_GETLINK;
	struct nlmsghdr *message = add_message(request, portid, link ? RTM_NEWLINK : RTM_NEWADDR);

	message->nlmsg_flags = NLM_F_MULTI;
	if (link) {
		struct ifinfomsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

		info->ifi_index = 1;
		info->ifi_type = ARPHRD_ETHER;
		info->ifi_flags = IFF_UP | (*knob("carrier") ? IFF_RUNNING : 0);
		mnl_attr_put_strz(message, IFLA_IFNAME, "lo");
		mnl_attr_put_u32(message, IFLA_MTU, *knob("mtu"));
	} else {
		struct ifaddrmsg *info = mnl_nlmsg_put_extra_header(message, sizeof(*info));

		info->ifa_index = 1;
		mnl_attr_put_u32(message, IFA_LOCAL, htonl(10 << 24));
	}
	close_message(message);
	end_dump(request, portid);
}

/* Write the address @first.0.0.0, for an IPv6 socket with @mapped. */
static void put_socket_address(void *to, unsigned char first, bool mapped)
{
	static const unsigned char prefix[12] = { [10] = 0xff, [11] = 0xff };

	if (mapped)
		memcpy(to, prefix, sizeof(prefix));
	((unsigned char *)to)[mapped ? sizeof(prefix) : 0] = first;
}

/* The TCP sockets of the connections that are alike, and without "mapped" one of IPv6 by cubic. */
static void answer_sockets(const struct nlmsghdr *request, unsigned int portid)
{
	const struct inet_diag_req_v2 *diag = mnl_nlmsg_get_payload(request);
	bool mapped = *knob("mapped");
	bool timely = diag->sdiag_family == (mapped ? AF_INET6 : AF_INET);
	int count = timely ? *knob("alike") : !mapped;

	for (int i = 0; i < count; i++) {
		struct nlmsghdr *message = add_message(request, portid, request->nlmsg_type);
		struct inet_diag_msg *socket = mnl_nlmsg_put_extra_header(message, sizeof(*socket));
		struct tcp_diag_md5sig md5 = { .tcpm_keylen = 1 };
		struct tcp_info info = {
			.tcpi_min_rtt = *knob("min_rtt"), .tcpi_snd_mss = 1460,
			.tcpi_snd_wnd = 65535,
		};

		socket->idiag_family = diag->sdiag_family;
		socket->id.idiag_sport = htons(1000 + i);
		socket->id.idiag_dport = htons(80);
		put_socket_address(socket->id.idiag_src, 10, mapped);
		put_socket_address(socket->id.idiag_dst, 172, mapped);
		mnl_attr_put_strz(message, INET_DIAG_CONG, timely ? "timely" : "cubic");
		mnl_attr_put(message, INET_DIAG_INFO, sizeof(info), &info);
		if (timely && *knob("md5"))
			mnl_attr_put(message, INET_DIAG_MD5SIG, sizeof(md5), &md5);
		if (*knob("random"))
			put_random(message);
		close_message(message);
	}
	end_dump(request, portid);
}

static bool has_choice(const struct nlmsghdr *request)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, request, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == TIMELY_A_CHOICE)
			return true;
	return false;
}

/* As answer_request(), to module ndp. */
static long answer_ndp(const struct nlmsghdr *request, unsigned int portid, __u8 command)
{
	switch (command) {
	case NDP_CMD_SOCKET_GET:
		answer_dump(request, portid, *knob("ndp_sockets"), put_ndp_socket);
		return 1;
	case NDP_CMD_QUEUE_GET:
		answer_dump(request, portid, 1, put_ndp_queue);
		return 1;
	case NDP_CMD_COUNTER_GET:
		answer_one(request, portid, put_ndp_counters);
		return 0;
	}
	return -EOPNOTSUPP;
}

/*
 * Writes the answer to a request. Returns 0 or a negative errno, with which the caller has to end
 * the answer; 1 if the answer has its end already.
 */
static long answer_request(const struct nlmsghdr *request, unsigned int portid)
{
	const struct genlmsghdr *header = mnl_nlmsg_get_payload(request);

	if (request->nlmsg_type == GENL_ID_CTRL) {
		answer_families(request, portid);
		return 1;
	}
	if (request->nlmsg_type == SOCK_DIAG_BY_FAMILY) {
		answer_sockets(request, portid);
		return 1;
	}
	if (*knob("errno"))
		return -*knob("errno");
	if (request->nlmsg_type == NDP_ID)
		return answer_ndp(request, portid, header->cmd);
	switch (header->cmd) {
	case TIMELY_CMD_ONRAMP_GET:
		answer_one(request, portid, put_onramp);
		return 0;
	case TIMELY_CMD_ACKER_GET:
		answer_one(request, portid, put_acker);
		return 0;
	case TIMELY_CMD_LIMITS_GET:
		answer_one(request, portid, put_limits);
		return 0;
	case TIMELY_CMD_RTT_GET:
		answer_one(request, portid, put_rtts);
		return 0;
	case TIMELY_CMD_NIC_GET:
		if (*knob("reports"))
			answer_dump(request, portid, *knob("reports"), put_report);
		else
			answer_dump(request, portid, *knob("nics"), put_nic);
		return 1;
	case TIMELY_CMD_FLOW_GET:
		answer_dump(request, portid, *knob("flows"), put_flow);
		return 1;
	case TIMELY_CMD_PEER_GET:
		answer_dump(request, portid, *knob("peers"), put_peer);
		return 1;
	case TIMELY_CMD_CONNECTION_GET:
		if (has_choice(request) && !*knob("chooses"))
			return -EINVAL;
		if (*knob("alike"))
			answer_dump(request, portid, *knob("alike"), put_alike);
		else
			answer_dump(request, portid, *knob("connections"), put_connection);
		return 1;
	default:
		write_log(request);
		return rule_errno(request);
	}
}

/* ---- functions of libmnl that are replaced ---- */

/* Is the request for the device or its address? */
static bool is_about_device(const struct nlmsghdr *request)
{
	return request->nlmsg_type == RTM_GETLINK || request->nlmsg_type == RTM_GETADDR;
}

/* Is the request for the modules, for sock_diag, qdiscs or the device, and are they simulated? */
static int is_ours(const struct mnl_socket *nl, const struct nlmsghdr *request)
{
	int protocol = -1;
	socklen_t bytes = sizeof(protocol);

	getsockopt(mnl_socket_get_fd(nl), SOL_SOCKET, SO_PROTOCOL, &protocol, &bytes);
	if (protocol == NETLINK_ROUTE && is_about_device(request))
		return read_knobs() && *knob("mtu");
	return (protocol == NETLINK_GENERIC || protocol == NETLINK_SOCK_DIAG ||
		request->nlmsg_type == RTM_GETQDISC) && read_knobs();
}

ssize_t __wrap_mnl_socket_sendto(const struct mnl_socket *nl, const void *request, size_t bytes)
{
	unsigned int portid = mnl_socket_get_portid(nl);
	long err;

	simulated = is_ours(nl, request);
	if (!simulated)
		return send(mnl_socket_get_fd(nl), request, bytes, 0);
	memset(answer, 0, sizeof(answer));
	answer_bytes = 0;
	if (((const struct nlmsghdr *)request)->nlmsg_type == RTM_GETQDISC) {
		answer_qdiscs(request, portid);
		return bytes;
	}
	if (is_about_device(request)) {
		answer_device(request, portid);
		return bytes;
	}
	err = answer_request(request, portid);
	if (err <= 0)
		end(request, portid, err);
	return bytes;
}

ssize_t __wrap_mnl_socket_recvfrom(const struct mnl_socket *nl, void *to, size_t size)
{
	if (!simulated)
		return recv(mnl_socket_get_fd(nl), to, size, 0);
	if (answer_bytes > size)
		abort();
	memcpy(to, answer, answer_bytes);
	return answer_bytes;
}
