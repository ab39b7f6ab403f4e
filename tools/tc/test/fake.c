// SPDX-License-Identifier: GPL-2.0
/*
 * A simulated qdisc "timely" on the device lo, for tests of the output of tc's plugin
 * without the kernel module.
 *
 * This object is preloaded into tc. It replaces send(), sendmsg() and recvmsg(): a request
 * for qdiscs does not reach the kernel, and the answer is one qdisc with some options and
 * statistics. Other requests go to the kernel.
 *
 * The environment variable FAKE_QDISC has words KEY=NUMBER that change the values in the
 * table knobs[].
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/gen_stats.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <linux/timely.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static struct {
	const char *key;
	long value;
} knobs[] = {
	{ "onramp", 0 },	/* threshold, ns; 0: off */
	{ "gain", 4096 },	/* in 65536ths */
	{ "owd", TIMELY_OWD_RELATIVE },
	{ "pause_max", 10000000 },	/* ns */
	{ "strawman", 0 },
	{ "clock_error", 0 },	/* ns */
	{ "split", -1 },	/* -1: the attribute is not sent */
	{ "split_rate", 0 },
	{ "old", 0 },		/* 1: a module from before On-Ramp */
	{ "next", -1 },		/* ns until the next flow is due; -1: no flow waits */
	{ "signals", 0 },	/* in each bin of delays */
	{ "pauses", 0 },
	{ "paused_ns", 0 },
	{ "b", 0 },		/* in 65536ths */
	{ "acks", 0 },
	{ "shared", 0 },
	{ "timed", 0 },
	{ "thinned", 0 },
};

static char answer[8192];
static size_t answer_bytes;

static long knob(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		if (strcmp(knobs[i].key, key) == 0)
			return knobs[i].value;
	abort();
}

static void read_knobs(void)
{
	char *text = strdup(getenv("FAKE_QDISC") ? : "");

	for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
		size_t bytes = strcspn(word, "=");

		for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
			if (strncmp(knobs[i].key, word, bytes) == 0 && !knobs[i].key[bytes])
				knobs[i].value = strtol(word + bytes + 1, NULL, 0);
	}
	free(text);
}

/* ---- the message ---- */

static struct rtattr *put(struct nlmsghdr *n, int type, const void *data, size_t bytes)
{
	struct rtattr *attr = (void *)((char *)n + NLMSG_ALIGN(n->nlmsg_len));

	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(bytes);
	if (data)
		memcpy(RTA_DATA(attr), data, bytes);
	n->nlmsg_len = NLMSG_ALIGN(n->nlmsg_len) + RTA_ALIGN(attr->rta_len);
	return attr;
}

static void end(struct nlmsghdr *n, struct rtattr *nest)
{
	nest->rta_len = (char *)n + n->nlmsg_len - (char *)nest;
}

static void put_u32(struct nlmsghdr *n, int type, __u32 value)
{
	put(n, type, &value, sizeof(value));
}

static void put_u8(struct nlmsghdr *n, int type, __u8 value)
{
	put(n, type, &value, sizeof(value));
}

static void put_u64(struct nlmsghdr *n, int type, __u64 value)
{
	put(n, type, &value, sizeof(value));
}

static void put_options(struct nlmsghdr *n)
{
	struct rtattr *nest = put(n, TCA_OPTIONS, NULL, 0);

	put_u32(n, TCA_TIMELY_LIMIT, 10000);
	put_u8(n, TCA_TIMELY_LAZY, 1);
	if (knob("split") >= 0) {
		put_u32(n, TCA_TIMELY_SPLIT, knob("split"));
		put_u64(n, TCA_TIMELY_SPLIT_RATE, knob("split_rate"));
	}
	if (!knob("old")) {
		put_u32(n, TCA_TIMELY_ONRAMP, knob("onramp"));
		put_u32(n, TCA_TIMELY_ONRAMP_GAIN, knob("gain"));
		put_u8(n, TCA_TIMELY_ONRAMP_OWD, knob("owd"));
		put_u32(n, TCA_TIMELY_ONRAMP_PAUSE_MAX, knob("pause_max"));
		put_u8(n, TCA_TIMELY_ONRAMP_STRAWMAN, knob("strawman"));
		put_u32(n, TCA_TIMELY_ONRAMP_CLOCK_ERROR, knob("clock_error"));
	}
	end(n, nest);
}

/* The statistics of a module from before On-Ramp end before onramp_b. */
static void put_stats(struct nlmsghdr *n)
{
	struct rtattr *nest = put(n, TCA_STATS2, NULL, 0);
	struct gnet_stats_basic basic = {};
	struct gnet_stats_queue queue = {};
	struct tc_timely_stats stats = {
		.flows = 3,
		.departures = 77,
		.buckets_log = 10,
		.time_next_delayed_flow = knob("next"),
		.onramp_signals = knob("signals") * TIMELY_ONRAMP_BINS,
		.onramp_pauses = knob("pauses"),
		.onramp_paused_ns = knob("paused_ns"),
		.onramp_b = knob("b"),
		.onramp_acks_passed = knob("acks"),
		.shared_packets = knob("shared"),
		.acks_timed = knob("timed"),
		.acks_thinned = knob("thinned"),
	};

	for (int i = 0; i < TIMELY_ONRAMP_BINS; i++)
		stats.onramp_delays[i] = knob("signals");
	put(n, TCA_STATS_BASIC, &basic, sizeof(basic));
	put(n, TCA_STATS_QUEUE, &queue, sizeof(queue));
	put(n, TCA_STATS_APP, &stats, knob("old") ? offsetof(struct tc_timely_stats, onramp_b) :
						     sizeof(stats));
	end(n, nest);
}

/* The answer to @request: a message with the qdisc, then the end of the dump. */
static void make_answer(const struct nlmsghdr *request)
{
	struct nlmsghdr *n = (void *)answer;
	struct tcmsg *tc = NLMSG_DATA(n);

	memset(answer, 0, sizeof(answer));
	n->nlmsg_len = NLMSG_LENGTH(sizeof(*tc));
	n->nlmsg_type = RTM_NEWQDISC;
	n->nlmsg_flags = NLM_F_MULTI;
	n->nlmsg_seq = request->nlmsg_seq;
	tc->tcm_ifindex = 1;
	tc->tcm_parent = TC_H_ROOT;
	tc->tcm_handle = 0x10000;
	tc->tcm_info = 1;
	put(n, TCA_KIND, "timely", sizeof("timely"));
	put_options(n);
	put_stats(n);
	answer_bytes = NLMSG_ALIGN(n->nlmsg_len);
	n = (void *)(answer + answer_bytes);
	n->nlmsg_len = NLMSG_LENGTH(sizeof(int));
	n->nlmsg_type = NLMSG_DONE;
	n->nlmsg_flags = NLM_F_MULTI;
	n->nlmsg_seq = request->nlmsg_seq;
	answer_bytes += NLMSG_ALIGN(n->nlmsg_len);
}

/* Address the answer to the port of the socket, as the kernel would: tc checks the port. */
static void address(int fd)
{
	struct sockaddr_nl local = {};
	socklen_t bytes = sizeof(local);

	getsockname(fd, (void *)&local, &bytes);
	for (size_t at = 0; at < answer_bytes;) {
		struct nlmsghdr *n = (void *)(answer + at);

		n->nlmsg_pid = local.nl_pid;
		at += NLMSG_ALIGN(n->nlmsg_len);
	}
}

/* ---- functions of libc that are replaced ---- */

/* Prepares an answer if @data is a request for qdiscs. */
static int answers(const void *data, size_t bytes)
{
	const struct nlmsghdr *n = data;

	if (bytes < sizeof(*n) || n->nlmsg_type != RTM_GETQDISC)
		return 0;
	read_knobs();
	make_answer(n);
	return 1;
}

ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
	ssize_t (*real)(int fd, const void *data, size_t bytes, int flags) =
		dlsym(RTLD_NEXT, "send");

	return answers(data, bytes) ? (ssize_t)bytes : real(fd, data, bytes, flags);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	ssize_t (*real)(int fd, const struct msghdr *msg, int flags) =
		dlsym(RTLD_NEXT, "sendmsg");

	if (msg->msg_iovlen && answers(msg->msg_iov->iov_base, msg->msg_iov->iov_len))
		return msg->msg_iov->iov_len;
	return real(fd, msg, flags);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	ssize_t (*real)(int fd, struct msghdr *msg, int flags) = dlsym(RTLD_NEXT, "recvmsg");
	size_t room = msg->msg_iovlen ? msg->msg_iov->iov_len : 0;

	if (!answer_bytes)
		return real(fd, msg, flags);
	address(fd);
	memset(msg->msg_name, 0, msg->msg_namelen);
	msg->msg_flags = 0;
	if (room)
		memcpy(msg->msg_iov->iov_base, answer, room < answer_bytes ? room : answer_bytes);
	room = answer_bytes;
	if (!(flags & MSG_PEEK))
		answer_bytes = 0;
	return room;
}
