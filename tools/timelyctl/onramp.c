// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp in this network namespace (module timely): `timelyctl onramp` shows the results of
 * OR-ACKs, the paused flows and (peers.c) the peers; `timelyctl key` manages the keys of OR-ACKs.
 *
 * A key is read from a file or from standard input, never from the command line, which every user
 * of the host can read with ps. A key is never shown.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <linux/timely.h>
#include <linux/timely_version.h>

#include "timelyctl.h"

/* Length of a key: 128 bits. */
#define SECRET_BYTES 16

/**
 * struct flow - On-Ramp's state of a flow
 * @address_bytes: length of the addresses, 4 or 16; 0 if there are none
 * @saddr: source address of the data
 * @daddr: destination address
 * @sport: source port, host byte order
 * @dport: destination port, host byte order
 * @protocol: IPPROTO_*
 * @b: the paper's b, in 65536ths
 * @delay_ns: delay of the last signal
 * @signals: signals that counted
 * @pauses: pauses started
 * @paused_ns: sum of the pauses' lengths
 * @left_ns: rest of the present pause
 */
struct flow {
	unsigned int address_bytes;
	unsigned char saddr[16];
	unsigned char daddr[16];
	__u16 sport;
	__u16 dport;
	__u8 protocol;
	__u32 b;
	__u64 delay_ns;
	__u64 signals;
	__u64 pauses;
	__u64 paused_ns;
	__u64 left_ns;
};

struct flows {
	struct flow *flow;
	size_t count;
};

/* ---- the module ---- */

static bool open_module(struct family *family)
{
	return family_open_or_tell(family, TIMELY_GENL_NAME,
				   "module timely is not loaded: modprobe sch_timely where data is sent, timely_acker where it is received");
}

/* Print an error. Returns an exit status. @again is the command line to repeat as root. */
static int failed(const struct family *family, const char *again, int err)
{
	if (err == -EPERM || err == -EACCES)
		tell_err("this command needs root (CAP_NET_ADMIN): sudo timelyctl %s", again);
	else if (err == -EOPNOTSUPP)
		tell_err("the module timely that is loaded has no On-Ramp: it is older than timelyctl; load the module of version %s",
			 TIMELY_VERSION);
	else
		tell_err("%s", family->talk.why[0] ? family->talk.why : error_text(err));
	return STATUS_FAILED;
}

static void read_onramp(const struct nlmsghdr *message, void *data)
{
	struct onramp *onramp = data;
	const struct nlattr *attr;

	if (!message) {
		onramp->key_count = 0;
		onramp->counters.count = 0;
		return;
	}
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr)) {
		switch (mnl_attr_get_type(attr)) {
		case TIMELY_A_ORACK_PORT:
			onramp->port = attr_unsigned(attr);
			break;
		case TIMELY_A_UNAUTHENTICATED:
			onramp->unauthenticated = attr_unsigned(attr);
			break;
		case TIMELY_A_KEY_USED:
			onramp->used = attr_unsigned(attr);
			break;
		case TIMELY_A_KEY:
			if (onramp->key_count < ARRAY_SIZE(onramp->keys))
				onramp->keys[onramp->key_count++] = attr_unsigned(attr);
			break;
		case TIMELY_A_COUNTER:
			counters_add(&onramp->counters, attr);
			break;
		}
	}
}

/* Read On-Ramp's settings and counters; the caller frees the counters. */
int onramp_get(struct family *family, struct onramp *onramp)
{
	memset(onramp, 0, sizeof(*onramp));
	return family_get(family, TIMELY_CMD_ONRAMP_GET, read_onramp, onramp);
}

/* ---- onramp show ---- */

__u64 counter_value(const struct counters *counters, const char *name)
{
	for (size_t i = 0; i < counters->count; i++)
		if (strcmp(counters->counter[i].name, name) == 0)
			return counters->counter[i].value;
	return 0;
}

static void hint_onramp(struct hints *hints, const struct onramp *onramp)
{
	const struct counters *counters = &onramp->counters;

	if (onramp->unauthenticated)
		hint_info(hints, "WARNING: OR-ACKs without a key are accepted: anyone who can send packets to this host can pause its flows, for pause_max at a time; give keys to all hosts, then: timelyctl onramp unauthenticated off");
	if (!onramp->key_count && !onramp->unauthenticated)
		hint_info(hints, "there is no key: OR-ACKs are neither accepted nor sent: timelyctl key add");
	else if (!onramp->used && !onramp->unauthenticated)
		hint_info(hints, "no key is used: this host sends no OR-ACKs: timelyctl key use NUMBER");
	if (counter_value(counters, "unknown_key") || counter_value(counters, "bad_tag"))
		hint_info(hints, "some OR-ACKs were not signed with a key of this host: do all hosts have the same keys under the same numbers? If they do, the OR-ACKs were forged");
	if (counter_value(counters, "bad_time"))
		hint_info(hints, "some OR-ACKs were ignored because of impossible times: are the hosts' clocks synchronized? If they are not: owd relative, see timely-onramp(7)");
	if (counter_value(counters, "out_of_step"))
		hint_info(hints, "some absolute one-way delays contradict RTTs: the hosts' clocks are or were not synchronized; if out_of_step keeps growing: owd relative, see timely-onramp(7)");
	if (counter_value(counters, "no_offset"))
		hint_info(hints, "some delays were relative instead of absolute, because the clock daemon's offset of the peer was too old or too inexact: timelyctl onramp peers");
	if (counter_value(counters, "peers_refused"))
		hint_info(hints, "for some flows no peer was stored, so relative delays do not pause them: too many peers are in use, or there was no memory; raise the parameter max_peers of module timely");
}

static void print_keys(const struct onramp *onramp)
{
	if (!onramp->key_count) {
		fputs("none", stdout);
		return;
	}
	for (unsigned int i = 0; i < onramp->key_count; i++)
		printf("%s%u%s", i ? ", " : "", onramp->keys[i],
		       onramp->keys[i] == onramp->used ? " (used)" : "");
}

static void print_onramp(const struct onramp *onramp, const struct hints *hints)
{
	tell_info("OR-ACKs at UDP port %u of this network namespace", onramp->port);
	fputs("    keys             ", stdout);
	print_keys(onramp);
	printf("\n    unauthenticated  %s\n", onramp->unauthenticated ? "ON" : "off");
	for (unsigned int i = 0; i < hints->count; i++)
		printf("    * %s\n", hints->text[i]);
	counters_print(&onramp->counters);
}

static void json_keys(const struct onramp *onramp)
{
	json_open("keys", '[');
	for (unsigned int i = 0; i < onramp->key_count; i++)
		json_unsigned(NULL, onramp->keys[i]);
	json_close(']');
	if (onramp->used)
		json_unsigned("used", onramp->used);
	else
		json_null("used");
}

static void json_onramp(const struct onramp *onramp, const struct hints *hints)
{
	json_open(NULL, '{');
	json_unsigned("port", onramp->port);
	json_keys(onramp);
	json_bool("unauthenticated", onramp->unauthenticated);
	counters_json("counters", &onramp->counters);
	json_open("hints", '[');
	for (unsigned int i = 0; i < hints->count; i++)
		json_string(NULL, hints->text[i]);
	json_close(']');
	json_close('}');
	json_end();
}

static int show_onramp(bool json)
{
	struct hints hints = {};
	struct onramp onramp;
	struct family family;
	int status = STATUS_OK;
	int err;

	if (!open_module(&family))
		return STATUS_FAILED;
	err = onramp_get(&family, &onramp);
	hint_onramp(&hints, &onramp);
	if (err)
		status = failed(&family, "onramp", err);
	else if (json)
		json_onramp(&onramp, &hints);
	else
		print_onramp(&onramp, &hints);
	hints_free(&hints);
	free(onramp.counters.counter);
	family_close(&family);
	return status;
}

/* ---- onramp flows ---- */

static void read_address(struct flow *flow, unsigned char *to, const struct nlattr *attr)
{
	unsigned int bytes = mnl_attr_get_payload_len(attr);

	if (bytes != 4 && bytes != 16)
		return;
	memcpy(to, mnl_attr_get_payload(attr), bytes);
	flow->address_bytes = bytes;
}

static void read_flow(struct flow *flow, const struct nlattr *attr)
{
	switch (mnl_attr_get_type(attr)) {
	case TIMELY_A_SADDR:
		read_address(flow, flow->saddr, attr);
		break;
	case TIMELY_A_DADDR:
		read_address(flow, flow->daddr, attr);
		break;
	case TIMELY_A_SPORT:
		flow->sport = ntohs(attr_unsigned(attr));
		break;
	case TIMELY_A_DPORT:
		flow->dport = ntohs(attr_unsigned(attr));
		break;
	case TIMELY_A_PROTOCOL:
		flow->protocol = attr_unsigned(attr);
		break;
	case TIMELY_A_DELAY_NS:
		flow->delay_ns = attr_unsigned(attr);
		break;
	case TIMELY_A_B:
		flow->b = attr_unsigned(attr);
		break;
	case TIMELY_A_SIGNALS:
		flow->signals = attr_unsigned(attr);
		break;
	case TIMELY_A_PAUSES:
		flow->pauses = attr_unsigned(attr);
		break;
	case TIMELY_A_PAUSED_NS:
		flow->paused_ns = attr_unsigned(attr);
		break;
	case TIMELY_A_PAUSE_LEFT_NS:
		flow->left_ns = attr_unsigned(attr);
		break;
	}
}

static void add_flow(const struct nlmsghdr *message, void *data)
{
	struct flows *flows = data;
	const struct nlattr *attr;
	struct flow *flow;

	if (!message) {
		flows->count = 0;
		return;
	}
	flow = reallocarray(flows->flow, flows->count + 1, sizeof(*flow));
	if (!flow)
		out_of_memory();
	flows->flow = flow;
	flow += flows->count++;
	memset(flow, 0, sizeof(*flow));
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr))
		read_flow(flow, attr);
}

/* Sort by the sum of the pauses' lengths, the largest first. */
static int compare_flows(const void *a, const void *b)
{
	const struct flow *one = a, *other = b;

	return (one->paused_ns < other->paused_ns) - (one->paused_ns > other->paused_ns);
}

static const char *protocol_name(char *text, size_t size, unsigned int protocol)
{
	snprintf(text, size, "%u", protocol);
	return protocol == IPPROTO_TCP ? "tcp" : protocol == IPPROTO_UDP ? "udp" : text;
}

static void print_flow(const struct flow *flow)
{
	char source[64], destination[64], protocol[8], delay[32], paused[32], left[32];

	tell_info("%-5s %-21s %-21s %9s %5.2f %9llu %8llu %9s %9s",
		  protocol_name(protocol, sizeof(protocol), flow->protocol),
		  end_text(source, sizeof(source), flow->saddr, flow->address_bytes, flow->sport),
		  end_text(destination, sizeof(destination), flow->daddr, flow->address_bytes,
			   flow->dport),
		  time_text(delay, sizeof(delay), flow->delay_ns), flow->b / 65536.0,
		  (unsigned long long)flow->signals, (unsigned long long)flow->pauses,
		  time_text(paused, sizeof(paused), flow->paused_ns),
		  flow->left_ns ? time_text(left, sizeof(left), flow->left_ns) : "-");
}

static void print_flows(const struct flows *flows)
{
	if (!flows->count) {
		tell_info("On-Ramp has no flows in this network namespace");
		return;
	}
	tell_info("%-5s %-21s %-21s %9s %5s %9s %8s %9s %9s", "", "from", "to", "delay", "b",
		  "signals", "pauses", "paused", "pause left");
	for (size_t i = 0; i < flows->count; i++)
		print_flow(&flows->flow[i]);
}

static void json_flow(const struct flow *flow)
{
	char text[INET6_ADDRSTRLEN];

	json_open(NULL, '{');
	json_string("protocol", protocol_name(text, sizeof(text), flow->protocol));
	json_string("source", address_text(text, flow->saddr, flow->address_bytes));
	json_unsigned("source_port", flow->sport);
	json_string("destination", address_text(text, flow->daddr, flow->address_bytes));
	json_unsigned("destination_port", flow->dport);
	json_unsigned("delay_ns", flow->delay_ns);
	json_fraction("b", flow->b);
	json_unsigned("signals", flow->signals);
	json_unsigned("pauses", flow->pauses);
	json_unsigned("paused_ns", flow->paused_ns);
	json_unsigned("pause_left_ns", flow->left_ns);
	json_close('}');
}

static void json_flows(const struct flows *flows)
{
	json_open(NULL, '[');
	for (size_t i = 0; i < flows->count; i++)
		json_flow(&flows->flow[i]);
	json_close(']');
	json_end();
}

static int show_flows(bool json)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct flows flows = {};
	struct family family;
	int status = STATUS_OK;
	int err;

	if (!open_module(&family))
		return STATUS_FAILED;
	err = talk_ask(&family.talk,
		       family_request(&family, buffer, NLM_F_DUMP, TIMELY_CMD_FLOW_GET),
		       add_flow, &flows);
	if (flows.count)
		qsort(flows.flow, flows.count, sizeof(*flows.flow), compare_flows);
	if (err)
		status = failed(&family, "onramp flows", err);
	else if (json)
		json_flows(&flows);
	else
		print_flows(&flows);
	free(flows.flow);
	family_close(&family);
	return status;
}

static int show_peers(bool json)
{
	struct family family;
	int err;

	if (!open_module(&family))
		return STATUS_FAILED;
	err = peers_show(&family, json);
	if (err)
		failed(&family, "onramp peers", err);
	family_close(&family);
	return err ? STATUS_FAILED : STATUS_OK;
}

/* ---- settings ---- */

/*
 * Send a request that sets the attribute @attr to @value. @secret is the key of TIMELY_CMD_KEY_SET,
 * else NULL. @again is the command line to repeat as root. Prints errors; returns an exit status.
 */
static int change(__u8 command, int attr, __u8 value, const unsigned char *secret,
		  const char *again)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct nlmsghdr *request;
	struct family family;
	int status = STATUS_OK;
	int err;

	if (!open_module(&family))
		return STATUS_FAILED;
	request = family_request(&family, buffer, NLM_F_ACK, command);
	mnl_attr_put_u8(request, attr, value);
	if (secret)
		mnl_attr_put(request, TIMELY_A_KEY_SECRET, SECRET_BYTES, secret);
	err = talk_ask(&family.talk, request, NULL, NULL);
	explicit_bzero(buffer, sizeof(buffer));
	if (err)
		status = failed(&family, again, err);
	family_close(&family);
	return status;
}

static int set_unauthenticated(const char *word)
{
	bool on = strcmp(word, "on") == 0;
	int status;

	if (!on && strcmp(word, "off") != 0)
		return usage_err("onramp unauthenticated: allowed are on and off, not \"%s\"",
				 plain(word));
	status = change(TIMELY_CMD_ONRAMP_SET, TIMELY_A_UNAUTHENTICATED, on, NULL,
			"onramp unauthenticated ...");
	if (!status && on)
		tell_info("WARNING: OR-ACKs without a key are accepted now, so anyone who can send packets to this host can pause its flows; if no key is used, this host sends OR-ACKs without a key. To end that: timelyctl onramp unauthenticated off");
	else if (!status)
		tell_info("only OR-ACKs that are signed with a key of this host are accepted now");
	return status;
}

/* ---- keys ---- */

static int show_keys(bool json)
{
	struct onramp onramp;
	struct family family;
	int err;

	if (!open_module(&family))
		return STATUS_FAILED;
	err = onramp_get(&family, &onramp);
	if (err) {
		failed(&family, "key list", err);
	} else if (json) {
		json_open(NULL, '{');
		json_keys(&onramp);
		json_close('}');
		json_end();
	} else {
		print_keys(&onramp);
		putchar('\n');
	}
	free(onramp.counters.counter);
	family_close(&family);
	return err ? STATUS_FAILED : STATUS_OK;
}

static int generate_key(void)
{
	unsigned char secret[SECRET_BYTES];

	if (getrandom(secret, sizeof(secret), 0) != sizeof(secret)) {
		tell_err("the kernel gave no random numbers: %s", error_text(errno));
		return STATUS_FAILED;
	}
	for (size_t i = 0; i < sizeof(secret); i++)
		printf("%02x", secret[i]);
	putchar('\n');
	explicit_bzero(secret, sizeof(secret));
	return STATUS_OK;
}

static int hex_digit(int c)
{
	return isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
}

/* A key is 32 hex digits, with white space around them. */
static bool parse_secret(const char *text, unsigned char *secret)
{
	text += strspn(text, " \t\r\n");
	for (size_t i = 0; i < SECRET_BYTES; i++, text += 2) {
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
			return false;
		secret[i] = hex_digit(text[0]) << 4 | hex_digit(text[1]);
	}
	return !text[strspn(text, " \t\r\n")];
}

/* Whether the word is a key, which must not be on the command line. */
static bool is_secret(const char *word)
{
	return strlen(word) >= 2 * SECRET_BYTES &&
	       strspn(word, "0123456789abcdefABCDEF") == strlen(word);
}

static void check_mode(const char *name, int fd)
{
	struct stat stat;

	if (!fstat(fd, &stat) && S_ISREG(stat.st_mode) && stat.st_mode & 077)
		tell_err("warning: other users may read \"%s\": chmod 600 it", plain(name));
}

static FILE *open_secret(const char *name)
{
	FILE *file;

	if (strcmp(name, "-") == 0) {
		if (isatty(STDIN_FILENO))
			fputs("The key, 32 hex digits: ", stderr);
		return stdin;
	}
	file = fopen(name, "re");
	if (file)
		check_mode(name, fileno(file));
	else if (is_secret(name))
		tell_err("every user can read a key on the command line with ps: do not use this key; put a new one into a file or on standard input: timelyctl key generate");
	else
		tell_err("cannot read \"%s\": %s", plain(name), error_text(errno));
	return file;
}

/* Read a key. Error messages never contain what was read. */
static bool read_secret(const char *name, unsigned char *secret)
{
	char text[256];
	FILE *file = open_secret(name);
	size_t bytes;
	bool good;

	if (!file)
		return false;
	/* Unbuffered, so that only a line is read from a terminal. */
	setvbuf(file, NULL, _IONBF, 0);
	bytes = fgets(text, sizeof(text), file) ? strlen(text) : 0;
	good = bytes && parse_secret(text, secret);
	if (!good)
		tell_err("\"%s\": a key is one line of 32 hex digits; timelyctl key generate prints a new one",
			 plain(name));
	explicit_bzero(text, sizeof(text));
	if (file != stdin)
		fclose(file);
	return good;
}

/*
 * Replacing a key would leave hosts with different keys for some time. Prints an error if the key
 * exists.
 */
static bool has_key(__u8 number)
{
	struct onramp onramp = {};
	struct family family;
	bool found = false;

	if (!open_module(&family))
		return true;
	if (!onramp_get(&family, &onramp))
		found = memchr(onramp.keys, number, onramp.key_count);
	if (found)
		tell_err("key %u exists: add the new key with another number, use it, then delete key %u; see KEY ROTATION in man timelyctl",
			 number, number);
	free(onramp.counters.counter);
	family_close(&family);
	return found;
}

static int add_key(__u8 number, const char *name)
{
	unsigned char secret[SECRET_BYTES];
	int status;

	if (has_key(number) || !read_secret(name, secret))
		return STATUS_FAILED;
	status = change(TIMELY_CMD_KEY_SET, TIMELY_A_KEY, number, secret, "key add ...");
	explicit_bzero(secret, sizeof(secret));
	if (!status)
		tell_info("OR-ACKs that are signed with key %u are accepted now", number);
	return status;
}

static int use_key(__u8 number)
{
	int status = change(TIMELY_CMD_ONRAMP_SET, TIMELY_A_KEY_USED, number, NULL, "key use ...");

	if (status)
		return status;
	if (number)
		tell_info("OR-ACKs are signed with key %u now", number);
	else
		tell_info("no key is used: this host sends no OR-ACKs, or with \"onramp unauthenticated on\" OR-ACKs without a key");
	return STATUS_OK;
}

static int delete_key(__u8 number)
{
	int status = change(TIMELY_CMD_KEY_DEL, TIMELY_A_KEY, number, NULL, "key del ...");

	if (!status)
		tell_info("OR-ACKs that are signed with key %u are not accepted any more", number);
	return status;
}

/* ---- the command line ---- */

int command_onramp(char **words, int count, bool json)
{
	const char *verb = count ? words[0] : "show";

	if (strcmp(verb, "unauthenticated") == 0) {
		if (json)
			return usage_err("onramp unauthenticated: -j is only to show something");
		if (count != 2)
			return usage_err("onramp unauthenticated: give on or off");
		return set_unauthenticated(words[1]);
	}
	if (count > 1)
		return usage_err("onramp %s: unexpected word \"%s\"", plain(verb), plain(words[1]));
	if (strcmp(verb, "show") == 0)
		return show_onramp(json);
	if (strcmp(verb, "flows") == 0)
		return show_flows(json);
	if (strcmp(verb, "peers") == 0)
		return show_peers(json);
	return usage_err("onramp: allowed are show, flows, peers and unauthenticated, not \"%s\"",
			 plain(verb));
}

/* The commands of a key's number: add, use and del. */
static int command_key_number(const char *verb, char **words, int count)
{
	bool is_add = strcmp(verb, "add") == 0;
	bool is_use = strcmp(verb, "use") == 0;
	__s64 number = 0;

	if (!count)
		return usage_err("key %s: the number of the key is missing: see key list", verb);
	if (count > (is_add ? 2 : 1))
		return usage_err("key %s: unexpected word \"%s\"", verb, plain(words[count - 1]));
	if ((!is_use || strcmp(words[0], "none") != 0) &&
	    !parse_number(words[0], 1, 255, &number))
		return usage_err("key %s: allowed are 1 to 255%s, not \"%s\"", verb,
				 is_use ? " and none" : "",
				 is_secret(words[0]) ? "..." : plain(words[0]));
	if (is_add)
		return add_key(number, count > 1 ? words[1] : "-");
	return is_use ? use_key(number) : delete_key(number);
}

int command_key(char **words, int count, bool json)
{
	const char *verb = count ? words[0] : "list";
	bool is_list = strcmp(verb, "list") == 0;
	bool is_generate = strcmp(verb, "generate") == 0;

	if (json && !is_list)
		return usage_err("key %s: -j is only for commands that show something",
				 plain(verb));
	if ((is_list || is_generate) && count > 1)
		return usage_err("key %s: unexpected word \"%s\"", verb, plain(words[1]));
	if (is_list)
		return show_keys(json);
	if (is_generate)
		return generate_key();
	if (strcmp(verb, "add") == 0 || strcmp(verb, "use") == 0 || strcmp(verb, "del") == 0)
		return command_key_number(verb, words + 1, count - 1);
	return usage_err("key: unknown command \"%s\": allowed are list, add, use, del, generate",
			 plain(verb));
}
