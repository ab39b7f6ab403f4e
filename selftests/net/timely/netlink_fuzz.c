// SPDX-License-Identifier: GPL-2.0
/*
 * Fuzzer of the netlink interface of the qdisc "timely", for qdisc_fuzz.sh and others.
 *
 *	netlink_fuzz fuzz DEVICE SEED MESSAGES [PAUSE_US]
 *	netlink_fuzz churn DEVICE SEED ROUNDS PAUSE_US
 *
 * fuzz sends messages that create, change, show and delete the device's root qdisc, with options of
 * every kind: valid ones, values at and beyond the ends of their ranges, wrong lengths, unknown and
 * repeated types, nested attributes, truncated messages and messages with inverted bits. All of
 * that depends on the seed only. After each message the fuzzer reads the qdisc's options and checks
 * that
 *
 *  - a refused change has left all options byte for byte as they were;
 *  - an accepted change shows the values that were sent, all within their ranges;
 *  - the refusal of a value out of range names the option and its range, in the words of
 *    TIMELY_QDISC_OPTIONS.
 *
 * churn creates, changes, replaces and deletes the qdisc with valid options, one after the other.
 * Traffic can pass in the pauses.
 *
 * The last line is "# N messages, ..., seed S". The status is 0 only if all checks have passed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>

#include <linux/timely.h>
#include <net/timely_qdisc.h>

#include "chance.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Upper limit of a message and its query together */
#define MESSAGE_BYTES 8192
#define DATAGRAM_BYTES 131072
#define EXCHANGES 64
#define OPTIONS_BYTES 2048
#define HANDLE 0x50000

/* ---- options and their ranges ---- */

struct range {
	unsigned int attr;
	unsigned int bits;
	__u64 min;
	__u64 max;
	__u64 value;		/* the default */
	const char *word;
	const char *unit;
	const char *field;
	const char *doc;
};

/* The word on tc's command line is the attribute's name in lower case. */
#define RANGE(field, ATTR, bits, min, max, value, unit, doc) \
	{ TCA_TIMELY_##ATTR, bits, min##ULL, max##ULL, value##ULL, #ATTR, unit, #field, doc },
static const struct range ranges[] = { TIMELY_QDISC_OPTIONS(RANGE) };

static const struct range *range_of(unsigned int attr)
{
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (ranges[i].attr == attr)
			return &ranges[i];
	return NULL;
}

/* A default may lie outside the range: it then means "none" or "unchanged". */
static bool allowed(const struct range *r, __u64 value)
{
	return (value >= r->min && value <= r->max) || value == r->value;
}

/* ---- the user ---- */

/* Root of a user namespace other than the initial one: options that affect the host are refused. */
static bool tenant;

static bool is_tenant(void)
{
	unsigned long count = 0;
	FILE *file = fopen("/proc/self/uid_map", "r");

	if (file && fscanf(file, "%*u %*u %lu", &count) != 1)
		count = 0;
	if (file)
		fclose(file);
	return count != UINT_MAX;
}

/* ---- the state of the run ---- */

/* The options that a message has requested, as far as it is well formed */
struct asked {
	bool well_formed;	/* each attribute at most once and of the right length */
	unsigned int outside;	/* number of values out of range */
	unsigned int outside_attr;	/* attribute of the last value out of range */
	bool is[TCA_TIMELY_MAX + 1];	/* the message has this attribute */
	__u64 value[TCA_TIMELY_MAX + 1];	/* its last value, of numbers only */
};

/* The qdisc's options as the kernel shows them (TCA_OPTIONS) */
struct options {
	bool there;		/* the device has a qdisc "timely" */
	size_t bytes;
	char data[OPTIONS_BYTES];
};

/* A message and the kernel's answers */
struct exchange {
	struct nlmsghdr *nlh;
	struct asked asked;
	bool is_change;		/* the message creates or changes the qdisc */
	__u64 number;		/* of the message in this run, for complaints */
	int error;		/* errno, 0 if accepted */
	char said[256];		/* the kernel's error message */
	struct options now;	/* the qdisc's options afterwards */
};

struct run {
	struct mnl_socket *nl;
	unsigned int seq;
	int ifindex;
	__u64 seed;
	__u64 sent;
	__u64 accepted;
	__u64 refused;
	__u64 explained;	/* refusals with the option's range in the message */
	__u64 failures;		/* failed checks; the run ends after 20 */
	struct options now;	/* after the last message that was checked */
	/* Several messages in one datagram: a system call takes longer than its work. */
	unsigned int count;
	unsigned int first_seq;
	size_t bytes;
	char data[DATAGRAM_BYTES];
	struct exchange exchanges[EXCHANGES];
};

/* Count and print a failed check, with the message in hexadecimal. */
static void complain(struct run *run, const struct exchange *e, const char *fmt, ...)
{
	const unsigned char *byte = (const void *)e->nlh;
	va_list args;

	run->failures++;
	if (run->failures > 20)
		return;
	va_start(args, fmt);
	printf("# message %llu of seed %llu: ", e->number, run->seed);
	vprintf(fmt, args);
	printf("; the kernel: %d \"%s\"\n# ", e->error, e->said);
	for (size_t i = 0; i < e->nlh->nlmsg_len && i < 256; i++)
		printf("%02x", byte[i]);
	puts("");
	va_end(args);
}

static void give_up(const char *what)
{
	printf("# %s: %s\n", what, strerror(errno));
	exit(2);
}

/* ---- messages to the kernel and back ---- */

static int keep_message(const struct nlattr *attr, void *data)
{
	struct exchange *e = data;

	if (mnl_attr_get_type(attr) == NLMSGERR_ATTR_MSG)
		snprintf(e->said, sizeof(e->said), "%s", mnl_attr_get_str(attr));
	return MNL_CB_OK;
}

static void take_ack(struct exchange *e, const struct nlmsghdr *nlh)
{
	const struct nlmsgerr *err = mnl_nlmsg_get_payload(nlh);
	unsigned int offset = sizeof(*err);

	e->error = -err->error;
	if (!(nlh->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	if (!(nlh->nlmsg_flags & NLM_F_CAPPED))
		offset += err->msg.nlmsg_len - sizeof(struct nlmsghdr);
	mnl_attr_parse(nlh, offset, keep_message, e);
}

static void take_options(struct exchange *e, const struct nlmsghdr *nlh)
{
	const struct nlattr *attr;
	bool ours = false;

	mnl_attr_for_each(attr, nlh, sizeof(struct tcmsg)) {
		if (mnl_attr_get_type(attr) == TCA_KIND)
			ours = strcmp(mnl_attr_get_str(attr), "timely") == 0;
		if (mnl_attr_get_type(attr) != TCA_OPTIONS || !ours)
			continue;
		e->now.there = true;
		e->now.bytes = mnl_attr_get_payload_len(attr);
		if (e->now.bytes > OPTIONS_BYTES)
			e->now.bytes = OPTIONS_BYTES;
		memcpy(e->now.data, mnl_attr_get_payload(attr), e->now.bytes);
	}
}

/* Start the next message, about the device's root qdisc; end() completes it. */
static struct nlmsghdr *begin(struct run *run, unsigned int type, unsigned int flags)
{
	struct exchange *e = &run->exchanges[run->count];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(run->data + run->bytes);
	struct tcmsg *tcm;

	if (!run->count)
		run->first_seq = run->seq + 1;
	e->nlh = nlh;
	e->is_change = false;
	e->error = 0;
	e->said[0] = '\0';
	e->now.there = false;
	e->now.bytes = 0;
	memset(&e->asked, 0, sizeof(e->asked));
	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | flags;
	nlh->nlmsg_seq = ++run->seq;
	tcm = mnl_nlmsg_put_extra_header(nlh, sizeof(*tcm));
	tcm->tcm_ifindex = run->ifindex;
	tcm->tcm_handle = HANDLE;
	tcm->tcm_parent = TC_H_ROOT;
	return nlh;
}

/*
 * Complete a message, and append a query of the root qdisc to the datagram. The kernel always
 * answers the query, also if it refuses the message. Counted from the datagram's first sequence
 * number, messages have even numbers and queries odd ones.
 */
static void end(struct run *run)
{
	struct exchange *e = &run->exchanges[run->count];
	struct nlmsghdr *question;
	struct tcmsg *tcm;

	e->number = ++run->sent;
	run->bytes += MNL_ALIGN(e->nlh->nlmsg_len);
	question = mnl_nlmsg_put_header(run->data + run->bytes);
	question->nlmsg_type = RTM_GETQDISC;
	question->nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO;
	question->nlmsg_seq = ++run->seq;
	tcm = mnl_nlmsg_put_extra_header(question, sizeof(*tcm));
	tcm->tcm_ifindex = run->ifindex;
	tcm->tcm_parent = TC_H_ROOT;
	run->bytes += MNL_ALIGN(question->nlmsg_len);
	run->count++;
}

static void take(struct run *run, const struct nlmsghdr *nlh)
{
	unsigned int at = nlh->nlmsg_seq - run->first_seq;
	struct exchange *e = &run->exchanges[at / 2];

	if (at / 2 >= run->count)
		return;
	if (nlh->nlmsg_type == RTM_NEWQDISC && at % 2)
		take_options(e, nlh);
	else if (nlh->nlmsg_type == NLMSG_ERROR && !(at % 2))
		take_ack(e, nlh);
}

/* Send all completed messages, and receive all answers. */
static void exchange(struct run *run)
{
	static char buffers[32][16384];
	struct iovec iov[ARRAY_SIZE(buffers)];
	struct mmsghdr msgs[ARRAY_SIZE(buffers)] = {};
	bool over = false;

	for (size_t i = 0; i < ARRAY_SIZE(buffers); i++) {
		iov[i] = (struct iovec){ buffers[i], sizeof(buffers[i]) };
		msgs[i].msg_hdr.msg_iov = &iov[i];
		msgs[i].msg_hdr.msg_iovlen = 1;
	}
	if (mnl_socket_sendto(run->nl, run->data, run->bytes) < 0)
		give_up("sendto");
	while (!over) {
		int got = recvmmsg(mnl_socket_get_fd(run->nl), msgs, ARRAY_SIZE(buffers),
				   MSG_WAITFORONE, NULL);

		if (got < 0)
			give_up("no answer");
		for (int i = 0; i < got; i++) {
			const struct nlmsghdr *nlh = (const void *)buffers[i];
			int left = msgs[i].msg_len;

			for (; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
				take(run, nlh);
				over |= nlh->nlmsg_seq == run->seq;
			}
		}
	}
	run->bytes = 0;
}

/* ---- valid and invalid options ---- */

/* A value at an end of the range, next to it, anywhere in it or anywhere at all */
static __u64 value_for(const struct range *r)
{
	__u64 span = r->max - r->min;

	switch (below(8)) {
	case 0: return r->min;
	case 1: return r->max;
	case 2: return r->min - 1;	/* may wrap to the greatest number */
	case 3: return r->max + 1;	/* may wrap to 0 */
	case 4: return chance() >> below(64);
	case 5: return 255;
	default: return r->min + (span == ULLONG_MAX ? chance() : chance() % (span + 1));
	}
}

static __u64 good_value_for(const struct range *r)
{
	__u64 value;

	do {
		value = value_for(r);
		if (r->bits < 64)
			value &= (1ULL << r->bits) - 1;
	} while (!allowed(r, value));
	/* The device has no pacing offload, so only 0 is accepted. */
	if (r->attr == TCA_TIMELY_OFFLOAD_HORIZON)
		value = 0;
	/* Few large tables: allocating megabytes takes as long as hundreds of messages. */
	if (r->attr == TCA_TIMELY_BUCKETS_LOG && value > 10 && below(50))
		value -= 8;
	return value;
}

static void put_number(struct nlmsghdr *nlh, const struct range *r, __u64 value)
{
	__u32 value32 = value;
	__u8 value8 = value;

	switch (r->bits) {
	case 8:
		mnl_attr_put(nlh, r->attr, sizeof(value8), &value8);
		break;
	case 32:
		mnl_attr_put(nlh, r->attr, sizeof(value32), &value32);
		break;
	default:
		mnl_attr_put(nlh, r->attr, sizeof(value), &value);
	}
}

static void put_priomap(struct nlmsghdr *nlh, bool right)
{
	struct tc_prio_qopt map = { .bands = TIMELY_BANDS };

	for (int i = 0; i <= TC_PRIO_MAX; i++)
		map.priomap[i] = right ? below(TIMELY_BANDS) : chance();
	if (!right && one_in(2))
		map.bands = chance();
	mnl_attr_put(nlh, TCA_TIMELY_PRIOMAP, sizeof(map), &map);
}

static void put_weights(struct nlmsghdr *nlh, bool right)
{
	__s32 weights[TIMELY_BANDS];

	for (int i = 0; i < TIMELY_BANDS; i++) {
		weights[i] = TIMELY_QDISC_MIN_WEIGHT + below(1 << 20);
		if (!right)
			weights[i] = one_in(2) ? (int)chance() : TIMELY_QDISC_MIN_WEIGHT - 1;
	}
	mnl_attr_put(nlh, TCA_TIMELY_WEIGHTS, sizeof(weights), weights);
}

/* An attribute of the wrong length, type or place. */
static void put_wrong(struct nlmsghdr *nlh)
{
	static const __u16 lengths[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 20, 24, 100 };
	char data[128];
	struct nlattr *nest;
	__u16 type = below(4) ? 1 + below(TCA_TIMELY_MAX) : chance();

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = chance();
	if (one_in(8)) {
		nest = mnl_attr_nest_start(nlh, type);
		mnl_attr_put(nlh, 1 + below(TCA_TIMELY_MAX), lengths[below(6)], data);
		mnl_attr_nest_end(nlh, nest);
		return;
	}
	mnl_attr_put(nlh, type, lengths[below(ARRAY_SIZE(lengths))], data);
}

/*
 * An attribute of a known type and the right length, whose value is recorded in @asked. The value
 * is in range in at least three of four cases, and with @only_good always.
 */
static void put_right(struct nlmsghdr *nlh, struct asked *asked, bool only_good)
{
	unsigned int which = below(ARRAY_SIZE(ranges) + 2);
	const struct range *r;
	__u64 value;

	if (which >= ARRAY_SIZE(ranges)) {
		bool priomap = which == ARRAY_SIZE(ranges);
		unsigned int attr = priomap ? TCA_TIMELY_PRIOMAP : TCA_TIMELY_WEIGHTS;
		bool right = only_good || below(4);

		if (asked->is[attr] || !right)
			asked->well_formed = false;
		asked->is[attr] = true;
		if (priomap)
			put_priomap(nlh, right);
		else
			put_weights(nlh, right);
		return;
	}
	r = &ranges[which];
	value = only_good || below(4) ? good_value_for(r) : value_for(r);
	if (r->bits < 64)
		value &= (1ULL << r->bits) - 1;
	if (asked->is[r->attr])
		asked->well_formed = false;
	asked->is[r->attr] = true;
	asked->value[r->attr] = value;
	if (!allowed(r, value)) {
		asked->outside++;
		asked->outside_attr = r->attr;
	}
	/* Within its range, but refused for devices without pacing offload. */
	if (r->attr == TCA_TIMELY_OFFLOAD_HORIZON && value)
		asked->well_formed = false;
	put_number(nlh, r, value);
}

static void put_options(struct nlmsghdr *nlh, struct asked *asked, bool only_good)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, TCA_OPTIONS);
	unsigned int count = one_in(8) ? below(40) : below(6);

	asked->well_formed = true;
	for (unsigned int i = 0; i < count; i++) {
		if (only_good || below(10)) {
			put_right(nlh, asked, only_good);
		} else {
			asked->well_formed = false;
			put_wrong(nlh);
		}
	}
	mnl_attr_nest_end(nlh, nest);
	/* Without NLA_F_NESTED, as tc sends it. */
	if (one_in(2))
		nest->nla_type = TCA_OPTIONS;
}

/* Invert bits, change bytes and lengths, or truncate; the device and the parent stay. */
static void mutate(struct nlmsghdr *nlh, struct asked *asked)
{
	unsigned char *byte = (void *)nlh;
	unsigned int from = NLMSG_LENGTH(sizeof(struct tcmsg));
	unsigned int span = nlh->nlmsg_len - from;
	unsigned int count = 1 + below(4);

	asked->well_formed = false;
	if (!span)
		return;
	while (count--) {
		unsigned int at = from + below(span);

		switch (below(4)) {
		case 0:
			byte[at] ^= 1 << below(8);
			break;
		case 1:
			byte[at] = chance();
			break;
		case 2:
			byte[at & ~3U] = below(40);
			break;
		default:
			nlh->nlmsg_len = from + below(span + 1);
			span = nlh->nlmsg_len - from;
			if (!span)
				return;
		}
	}
}

/* ---- checks ---- */

static __u64 number_in(const struct nlattr *attr)
{
	switch (mnl_attr_get_payload_len(attr)) {
	case 1: return mnl_attr_get_u8(attr);
	case 4: return mnl_attr_get_u32(attr);
	case 8: return mnl_attr_get_u64(attr);
	default: return 0;
	}
}

/* May the value SEEN be shown for the requested value? Some values are rounded. */
static bool shows(const struct range *r, __u64 asked, __u64 seen)
{
	__u64 slot = 256;

	if (asked == seen)
		return true;
	switch (r->attr) {
	case TCA_TIMELY_QUANTUM:
		return asked < 256 && seen == 256;
	case TCA_TIMELY_SLOT:
		while (slot < asked)
			slot <<= 1;
		return seen == slot;
	case TCA_TIMELY_BUCKETS_LOG:
		return true;
	default:
		return false;
	}
}

/*
 * Check the options that the kernel shows: each one once, in its range and, if @asked is not NULL,
 * with the requested value.
 */
static void check_dump(struct run *run, const struct exchange *e, const struct asked *asked)
{
	bool seen[TCA_TIMELY_MAX + 1] = {};
	const struct nlattr *attr = (const void *)e->now.data;
	const char *end = e->now.data + e->now.bytes;

	for (; mnl_attr_ok(attr, end - (const char *)attr); attr = mnl_attr_next(attr)) {
		unsigned int type = mnl_attr_get_type(attr);
		const struct range *r = range_of(type);
		__u64 value = number_in(attr);

		if (type > TCA_TIMELY_MAX) {
			complain(run, e, "the dump has attribute %u", type);
			continue;
		}
		if (seen[type] && type != TCA_TIMELY_PAD)
			complain(run, e, "the dump has attribute %u twice", type);
		seen[type] = true;
		if (!r)
			continue;
		if (mnl_attr_get_payload_len(attr) != r->bits / 8)
			complain(run, e, "%s is dumped with %u bytes", r->word,
				 mnl_attr_get_payload_len(attr));
		if (!allowed(r, value))
			complain(run, e, "%s is dumped as %llu, out of range", r->word,
				 value);
		if (asked && asked->is[type] && !shows(r, asked->value[type], value))
			complain(run, e, "%s was set to %llu, but is %llu", r->word,
				 asked->value[type], value);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ranges); i++)
		if (!seen[ranges[i].attr])
			complain(run, e, "%s is not dumped", ranges[i].word);
}

/*
 * A value out of range must be refused with a message such as
 * "timely: limit: allowed are 1 to 4294967295 packets".
 */
static void check_refusal(struct run *run, const struct exchange *e)
{
	const struct asked *asked = &e->asked;
	const struct range *r = range_of(asked->outside_attr);
	char word[64], wanted[256];

	if (!asked->well_formed || !asked->outside)
		return;
	if (!e->error) {
		complain(run, e, "%s=%llu was accepted", r->word,
			 asked->value[r->attr]);
		return;
	}
	/* With several values out of range the message may name any of them. */
	if (asked->outside > 1)
		return;
	for (size_t i = 0; i <= strlen(r->word); i++)
		word[i] = r->word[i] >= 'A' && r->word[i] <= 'Z' ? r->word[i] + 32 : r->word[i];
	snprintf(wanted, sizeof(wanted), "timely: %s: allowed are %llu to %llu %s",
		 word, r->min, r->max, r->unit);
	if (strncmp(e->said, wanted, strlen(wanted)) == 0)
		run->explained++;
	else
		complain(run, e, "expected the words \"%s\"", wanted);
}

static bool has(const struct nlmsghdr *nlh, unsigned int type)
{
	const struct nlattr *attr;

	mnl_attr_for_each(attr, nlh, sizeof(struct tcmsg))
		if (mnl_attr_get_type(attr) == type)
			return true;
	return false;
}

/* Was an option that affects the host refused to a tenant, naming the parameter to set? */
static bool needs_host(const struct exchange *e)
{
	return tenant && e->error == EPERM && strstr(e->said, "timely.tenants=1");
}

static void check(struct run *run, const struct exchange *e)
{
	const struct options *before = &run->now;
	const struct asked *asked = &e->asked;
	/* With NLM_F_EXCL the kernel refuses an existing qdisc without a look at the options. */
	bool excl = e->nlh->nlmsg_flags & NLM_F_EXCL;
	/* A change of a qdisc that does not exist is always refused. */
	bool is_change = e->is_change && (before->there || e->nlh->nlmsg_flags & NLM_F_CREATE);

	if (e->error)
		run->refused++;
	else
		run->accepted++;
	if (e->now.there)
		check_dump(run, e, is_change && asked->well_formed && !e->error ? asked : NULL);
	if (is_change && !excl)
		check_refusal(run, e);
	if (is_change && asked->well_formed && !asked->outside && e->error && !excl &&
	    before->there && !needs_host(e))
		complain(run, e, "all values are in range, but the message was refused");
	/*
	 * A refused message changes no options. The exception is a wrong size table
	 * (TCA_STAB), which the kernel refuses after it has changed the options.
	 */
	if (e->error && !has(e->nlh, TCA_STAB) &&
	    (before->there != e->now.there || before->bytes != e->now.bytes ||
	     memcmp(before->data, e->now.data, before->bytes) != 0))
		complain(run, e, "the message was refused, but has changed the options");
	run->now = e->now;
}

/* Send the collected messages and check them one after the other. */
static void finish(struct run *run)
{
	if (!run->count)
		return;
	exchange(run);
	for (unsigned int i = 0; i < run->count; i++)
		check(run, &run->exchanges[i]);
	run->count = 0;
}

/* ---- fuzz ---- */

static void put_kind(struct nlmsghdr *nlh)
{
	mnl_attr_put_strz(nlh, TCA_KIND, "timely");
}

static void by_default(struct run *run)
{
	put_kind(begin(run, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE));
	end(run);
}

/* Create the qdisc in a datagram of its own, so that it exists for the next messages. */
static void replace_by_default(struct run *run)
{
	finish(run);
	by_default(run);
	finish(run);
	if (!run->now.there) {
		complain(run, &run->exchanges[0], "timely cannot be made the root qdisc");
		exit(1);
	}
}

/* Mostly a change of the options; also creation, deletion and queries. One of four is mutated. */
static void fuzz_one(struct run *run)
{
	struct exchange *e = &run->exchanges[run->count];
	unsigned int which = below(40);
	struct nlmsghdr *nlh;

	if (which == 0) {
		nlh = begin(run, RTM_DELQDISC, 0);
	} else if (which == 1) {
		nlh = begin(run, RTM_GETQDISC, one_in(2) ? NLM_F_ECHO : 0);
	} else {
		nlh = begin(run, RTM_NEWQDISC, 0);
		put_kind(nlh);
		e->is_change = true;
		if (which < 10) {
			nlh->nlmsg_flags |= NLM_F_CREATE;
			nlh->nlmsg_flags |= below(4) ? NLM_F_REPLACE : 0;
			nlh->nlmsg_flags |= one_in(4) ? NLM_F_EXCL : 0;
		}
	}
	if (e->is_change || one_in(4))
		put_options(nlh, &e->asked, one_in(4));
	if (one_in(4)) {
		mutate(nlh, &e->asked);
		e->is_change = false;
	}
	end(run);
	if (which == 0 && below(4)) {
		by_default(run);
		finish(run);
	}
}

/* With pauses for traffic, each message is sent in a datagram of its own. */
static void fuzz(struct run *run, __u64 messages, unsigned int pause_us)
{
	unsigned int together = pause_us ? 1 : EXCHANGES - 1;

	replace_by_default(run);
	while (run->sent < messages && run->failures <= 20) {
		fuzz_one(run);
		if (run->count >= together || run->bytes > DATAGRAM_BYTES - 2 * MESSAGE_BYTES)
			finish(run);
		if (pause_us)
			usleep(below(2 * pause_us + 1));
		if (!run->count && !run->now.there)
			replace_by_default(run);
	}
	replace_by_default(run);
}

/* ---- churn ---- */

/* A handle that differs from the current qdisc's makes the kernel create a new qdisc. */
static void other_handle(struct nlmsghdr *nlh, unsigned int handle)
{
	struct tcmsg *tcm = mnl_nlmsg_get_payload(nlh);

	tcm->tcm_handle = handle;
}

/* Delete the qdisc, replace it by fq or by a new timely, or change its options. */
static void churn_one(struct run *run)
{
	struct exchange *e = &run->exchanges[run->count];
	unsigned int which = below(8);
	struct nlmsghdr *nlh;

	if (which == 0) {
		begin(run, RTM_DELQDISC, 0);
	} else if (which == 1) {
		nlh = begin(run, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE);
		other_handle(nlh, HANDLE + 0x10000);
		mnl_attr_put_strz(nlh, TCA_KIND, "fq");
	} else {
		nlh = begin(run, RTM_NEWQDISC, which == 2 ? NLM_F_CREATE | NLM_F_REPLACE : 0);
		if (which == 2)
			other_handle(nlh, HANDLE + 0x20000);
		put_kind(nlh);
		put_options(nlh, &e->asked, true);
		e->is_change = true;
	}
	end(run);
	finish(run);
	if (e->error)
		complain(run, e, "the message was refused");
	if (which <= 2)
		replace_by_default(run);
}

static __u64 now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000ULL + now.tv_nsec / 1000;
}

/*
 * The device drops all packets while its qdisc is replaced (6.1 ms), so each pause for traffic is
 * at least as long as the change took.
 */
static void churn(struct run *run, __u64 rounds, unsigned int pause_us)
{
	replace_by_default(run);
	for (__u64 i = 0; i < rounds && run->failures <= 20; i++) {
		__u64 began_us = now_us();

		churn_one(run);
		if (pause_us)
			usleep(below(2 * pause_us + 1) + (now_us() - began_us));
	}
	replace_by_default(run);
}

/* ---- */

static void connect_kernel(struct run *run)
{
	struct timeval patience = { .tv_sec = 10 };
	int room = 16 << 20;
	int on = 1;

	run->nl = mnl_socket_open(NETLINK_ROUTE);
	if (!run->nl || mnl_socket_bind(run->nl, 0, MNL_SOCKET_AUTOPID) < 0)
		give_up("netlink");
	if (mnl_socket_setsockopt(run->nl, NETLINK_EXT_ACK, &on, sizeof(on)) < 0 ||
	    mnl_socket_setsockopt(run->nl, NETLINK_CAP_ACK, &on, sizeof(on)) < 0)
		give_up("NETLINK_EXT_ACK");
	if (setsockopt(mnl_socket_get_fd(run->nl), SOL_SOCKET,
		       tenant ? SO_RCVBUF : SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
		give_up("receive buffer");
	/* Do not wait forever for a missing answer. */
	if (setsockopt(mnl_socket_get_fd(run->nl), SOL_SOCKET, SO_RCVTIMEO, &patience,
		       sizeof(patience)) < 0)
		give_up("SO_RCVTIMEO");
}

int main(int argc, char **argv)
{
	static struct run run;
	unsigned int pause_us = argc > 5 ? atoi(argv[5]) : 0;
	__u64 count;

	if (argc < 5) {
		fputs("usage: netlink_fuzz fuzz DEVICE SEED MESSAGES [PAUSE_US]\n"
		      "       netlink_fuzz churn DEVICE SEED ROUNDS PAUSE_US\n", stderr);
		return 2;
	}
	run.ifindex = if_nametoindex(argv[2]);
	if (!run.ifindex)
		give_up(argv[2]);
	run.seed = strtoull(argv[3], NULL, 0);
	chance_state = run.seed;
	count = strtoull(argv[4], NULL, 0);
	tenant = is_tenant();
	connect_kernel(&run);
	if (strcmp(argv[1], "fuzz") == 0)
		fuzz(&run, count, pause_us);
	else
		churn(&run, count, pause_us);
	mnl_socket_close(run.nl);
	printf("# %llu messages, %llu accepted, %llu refused, ", run.sent, run.accepted,
	       run.refused);
	printf("%llu of them with the option's range, %llu failures, seed %llu\n",
	       run.explained, run.failures, run.seed);
	return run.failures ? 1 : 0;
}
