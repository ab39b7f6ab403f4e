// SPDX-License-Identifier: GPL-2.0
/*
 * On-Ramp's receiver in this network namespace (module timely_acker): `timelyctl acker` shows and
 * changes which data is answered by OR-ACKs, and how often.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <linux/timely.h>

#include "timelyctl.h"

/* ---- the module ---- */

static bool open_module(struct family *family)
{
	return family_open_or_tell(family, TIMELY_ACKER_GENL_NAME,
				   "module timely_acker is not loaded: modprobe timely_acker");
}

/* Print an error. Returns an exit status. @verb is the word after "acker". */
static int failed(const struct family *family, const char *verb, int err)
{
	/* The kernel's message says more than that root privileges are needed. */
	if (family->talk.why[0])
		tell_err("%s", family->talk.why);
	else if (err == -EPERM || err == -EACCES)
		tell_err("acker %s needs root (CAP_NET_ADMIN): sudo timelyctl acker %s ...",
			 verb, verb);
	else
		tell_err("%s", error_text(err));
	return STATUS_FAILED;
}

static void read_rule(struct rule *rule, const struct nlattr *nest)
{
	const struct nlattr *attr;
	unsigned int bytes;

	mnl_attr_for_each_nested(attr, nest) {
		switch (mnl_attr_get_type(attr)) {
		case TIMELY_A_RULE_PREFIX:
			bytes = mnl_attr_get_payload_len(attr);
			if (bytes != 4 && bytes != 16)
				break;
			memcpy(rule->source.address, mnl_attr_get_payload(attr), bytes);
			rule->source.bytes = bytes;
			break;
		case TIMELY_A_RULE_LENGTH:
			rule->source.length = attr_unsigned(attr);
			break;
		case TIMELY_A_RULE_PORT_FIRST:
			rule->first = attr_unsigned(attr);
			break;
		case TIMELY_A_RULE_PORT_LAST:
			rule->last = attr_unsigned(attr);
			break;
		}
	}
}

static void add_rule(struct acker *acker, const struct nlattr *nest)
{
	struct rule *rule = reallocarray(acker->rule, acker->count + 1, sizeof(*rule));

	if (!rule)
		out_of_memory();
	acker->rule = rule;
	rule += acker->count++;
	memset(rule, 0, sizeof(*rule));
	read_rule(rule, nest);
}

static void read_acker(const struct nlmsghdr *message, void *data)
{
	struct acker *acker = data;
	const struct nlattr *attr;

	if (!message) {
		acker->count = 0;
		return;
	}
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr)) {
		switch (mnl_attr_get_type(attr)) {
		case TIMELY_A_ACKER_EVERY:
			acker->every = attr_unsigned(attr);
			break;
		case TIMELY_A_ACKER_RATE:
			acker->rate = attr_unsigned(attr);
			break;
		case TIMELY_A_ACKER_TRIMMED:
			acker->trimmed = attr_unsigned(attr);
			break;
		case TIMELY_A_ACKER_LINK_KBPS:
			acker->link_kbps = attr_unsigned(attr);
			break;
		case TIMELY_A_ACKER_RULES_MAX:
			acker->rules_max = attr_unsigned(attr);
			break;
		case TIMELY_A_ACKER_TEST_OFFSET_NS:
			acker->offset_ns = attr_unsigned(attr);
			break;
		case TIMELY_A_ACKER_TEST_DRIFT_PPB:
			acker->drift_ppb = attr_unsigned(attr);
			break;
		case TIMELY_A_RULE:
			add_rule(acker, attr);
			break;
		}
	}
}

/* Read the receiver's settings; the caller frees the rules. */
int acker_get(struct family *family, struct acker *acker)
{
	memset(acker, 0, sizeof(*acker));
	return family_get(family, TIMELY_CMD_ACKER_GET, read_acker, acker);
}

/* ---- acker show ---- */

/* OR-ACKs are sent only if a key is used or "onramp unauthenticated" is on. */
static void hint_keys(struct hints *hints)
{
	struct onramp onramp = {};
	struct family family;

	if (!family_open(&family, TIMELY_GENL_NAME) && family.id && !onramp_get(&family, &onramp)) {
		if (onramp.unauthenticated && !onramp.used)
			hint_info(hints, "WARNING: OR-ACKs are sent without a key: forged OR-ACKs can pause the flows of senders that accept them; timelyctl key add NUMBER FILE; timelyctl key use NUMBER");
		else if (!onramp.used)
			hint_info(hints, "no key is used, so no OR-ACKs are sent: timelyctl key add NUMBER FILE; timelyctl key use NUMBER");
	}
	free(onramp.counters.counter);
	family_close(&family);
}

static void hint_acker(struct hints *hints, const struct acker *acker)
{
	if (!acker->count)
		hint_info(hints, "there is no rule, so no data is answered by OR-ACKs: timelyctl acker add PREFIX/LENGTH");
	if (acker->offset_ns || acker->drift_ppb)
		hint_info(hints, "WARNING: OR-ACKs report wrong times, because a test clock is set; to end that: timelyctl acker set test-clock-offset 0 test-clock-drift 0");
	hint_keys(hints);
}

static void print_rule(const struct rule *rule)
{
	char text[PREFIX_TEXT];

	printf("    %s", prefix_text(text, &rule->source));
	if (rule->first && rule->first == rule->last)
		printf(" port %u", rule->first);
	else if (rule->first)
		printf(" port %u-%u", rule->first, rule->last);
	putchar('\n');
}

static void print_acker(const struct acker *acker, const struct hints *hints)
{
	tell_info("an OR-ACK for each %u bytes of a flow, at most %u a second to each peer, for data from",
		  acker->every, acker->rate);
	for (size_t i = 0; i < acker->count; i++)
		print_rule(&acker->rule[i]);
	if (!acker->count)
		tell_info("    no address (there is no rule)");
	if (acker->rules_max)
		tell_info("rules: %zu of %u", acker->count, acker->rules_max);
	if (acker->trimmed)
		tell_info("an OR-ACK for each packet of TCP that a switch has trimmed (DSCP %u), with turns on a link of %u kbit/s",
			  acker->trimmed, acker->link_kbps);
	if (acker->offset_ns || acker->drift_ppb)
		tell_info("test clock: offset %+lld ns, drift %+d ppb", (long long)acker->offset_ns,
			  acker->drift_ppb);
	for (unsigned int i = 0; i < hints->count; i++)
		printf("    * %s\n", hints->text[i]);
}

static void json_rule(const struct rule *rule)
{
	char text[INET6_ADDRSTRLEN];

	json_open(NULL, '{');
	json_string("prefix", address_text(text, rule->source.address, rule->source.bytes));
	json_unsigned("length", rule->source.length);
	if (rule->first) {
		json_unsigned("port_first", rule->first);
		json_unsigned("port_last", rule->last);
	} else {
		json_null("port_first");
		json_null("port_last");
	}
	json_close('}');
}

static void json_acker(const struct acker *acker, const struct hints *hints)
{
	json_open(NULL, '{');
	json_unsigned("every_bytes", acker->every);
	json_unsigned("rate", acker->rate);
	json_unsigned("trimmed_dscp", acker->trimmed);
	json_unsigned("link_kbps", acker->link_kbps);
	json_unsigned("rules_max", acker->rules_max);
	json_signed("test_clock_offset_ns", acker->offset_ns);
	json_signed("test_clock_drift_ppb", acker->drift_ppb);
	json_open("rules", '[');
	for (size_t i = 0; i < acker->count; i++)
		json_rule(&acker->rule[i]);
	json_close(']');
	json_open("hints", '[');
	for (unsigned int i = 0; i < hints->count; i++)
		json_string(NULL, hints->text[i]);
	json_close(']');
	json_close('}');
	json_end();
}

static int show_acker(bool json)
{
	struct hints hints = {};
	struct acker acker = {};
	struct family family;
	int status = STATUS_OK;
	int err;

	if (!open_module(&family))
		return STATUS_FAILED;
	err = acker_get(&family, &acker);
	if (err) {
		status = failed(&family, "show", err);
	} else {
		hint_acker(&hints, &acker);
		if (json)
			json_acker(&acker, &hints);
		else
			print_acker(&acker, &hints);
	}
	hints_free(&hints);
	free(acker.rule);
	family_close(&family);
	return status;
}

/* ---- acker add, acker del ---- */

/* FIRST or FIRST-LAST */
static bool parse_ports(const char *word, struct rule *rule)
{
	const char *dash = strchr(word, '-');
	char text[8] = "";
	__s64 first, last;

	if (dash && (size_t)(dash - word) < sizeof(text))
		memcpy(text, word, dash - word);
	if (!parse_number(dash ? text : word, 1, 65535, &first))
		return false;
	last = first;
	if (dash && !parse_number(dash + 1, first, 65535, &last))
		return false;
	rule->first = first;
	rule->last = last;
	return true;
}

#define PREFIXES "any and prefixes such as 10.0.0.0/8"
#define PORTS "1 to 65535 and ranges such as 80-90"

/*
 * Parse a rule, or print an error. "any" gives a rule with source.bytes 0. Returns an exit status.
 */
static int parse_rule(const char *verb, char **words, int count, struct rule *rule)
{
	memset(rule, 0, sizeof(*rule));
	if (!count)
		return usage_err("acker %s: the data's source is missing: PREFIX/LENGTH or any",
				 verb);
	if (strcmp(words[0], "any") != 0 && !parse_prefix(words[0], &rule->source))
		return usage_err("acker %s: allowed are " PREFIXES ", not \"%s\"",
				 verb, plain(words[0]));
	if (prefix_has_host_bits(&rule->source))
		return usage_err("acker %s: %s: the bits after the prefix length must be 0", verb,
				 words[0]);
	if (count == 1)
		return STATUS_OK;
	if (strcmp(words[1], "port") != 0)
		return usage_err("acker %s: unexpected word \"%s\": only port may follow", verb,
				 plain(words[1]));
	if (count == 2)
		return usage_err("acker %s: port: a value is missing", verb);
	if (!parse_ports(words[2], rule))
		return usage_err("acker %s: port: allowed are " PORTS ", not \"%s\"",
				 verb, plain(words[2]));
	if (count > 3)
		return usage_err("acker %s: unexpected word \"%s\"", verb, plain(words[3]));
	return STATUS_OK;
}

static int send_rule(struct family *family, __u8 command, const struct rule *rule)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct nlmsghdr *request = family_request(family, buffer, NLM_F_ACK, command);

	mnl_attr_put(request, TIMELY_A_RULE_PREFIX, rule->source.bytes, rule->source.address);
	mnl_attr_put_u8(request, TIMELY_A_RULE_LENGTH, rule->source.length);
	if (rule->first) {
		mnl_attr_put_u16(request, TIMELY_A_RULE_PORT_FIRST, rule->first);
		mnl_attr_put_u16(request, TIMELY_A_RULE_PORT_LAST, rule->last);
	}
	return talk_ask(&family->talk, request, NULL, NULL);
}

/*
 * "any" is one rule for IPv4 and one for IPv6. Success if at least one of the two rules was
 * changed: the other one may have existed before "add", or not have existed before "del".
 */
static int send_any(struct family *family, __u8 command, struct rule rule)
{
	int no_change = command == TIMELY_CMD_RULE_ADD ? -EEXIST : -ENOENT;
	int err, other;

	rule.source.bytes = 4;
	err = send_rule(family, command, &rule);
	if (err && err != no_change)
		return err;
	rule.source.bytes = 16;
	other = send_rule(family, command, &rule);
	return other == no_change ? err : other;
}

static int change_rule(const char *verb, char **words, int count)
{
	bool is_add = strcmp(verb, "add") == 0;
	__u8 command = is_add ? TIMELY_CMD_RULE_ADD : TIMELY_CMD_RULE_DEL;
	struct family family;
	struct rule rule;
	int status = parse_rule(verb, words, count, &rule);
	int err;

	if (status)
		return status;
	if (!open_module(&family))
		return STATUS_FAILED;
	if (rule.source.bytes)
		err = send_rule(&family, command, &rule);
	else
		err = send_any(&family, command, rule);
	if (err)
		status = failed(&family, verb, err);
	family_close(&family);
	return status;
}

/* ---- acker set ---- */

#define SETTINGS "every, rate, trimmed, link-rate, test-clock-offset, test-clock-drift"

static const struct setting {
	const char *word;
	int attr;
	unsigned int bytes;
	__s64 min;
	__s64 max;
} settings[] = {
	{ "every", TIMELY_A_ACKER_EVERY, 4, 0, UINT32_MAX },
	{ "rate", TIMELY_A_ACKER_RATE, 4, 0, UINT32_MAX },
	{ "trimmed", TIMELY_A_ACKER_TRIMMED, 4, 0, UINT32_MAX },
	{ "link-rate", TIMELY_A_ACKER_LINK_KBPS, 4, 0, UINT32_MAX },
	{ "test-clock-offset", TIMELY_A_ACKER_TEST_OFFSET_NS, 8, INT64_MIN, INT64_MAX },
	{ "test-clock-drift", TIMELY_A_ACKER_TEST_DRIFT_PPB, 4, INT32_MIN, INT32_MAX },
};

/*
 * Parse a setting and add it to the request, or print an error; returns an exit status. A number
 * that fits the attribute but not the setting's range is refused by the kernel, which names the
 * range.
 */
static int put_setting(struct nlmsghdr *request, const char *word, const char *value)
{
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++) {
		const struct setting *setting = &settings[i];
		__s64 number;

		if (strcmp(word, setting->word) != 0)
			continue;
		if (!value)
			return usage_err("acker set: %s: a value is missing", word);
		if (!parse_number(value, setting->min, setting->max, &number))
			return usage_err("acker set: %s: %lld to %lld are allowed, not \"%s\"",
					 word, (long long)setting->min, (long long)setting->max,
					 plain(value));
		if (setting->bytes == 8)
			mnl_attr_put_u64(request, setting->attr, number);
		else
			mnl_attr_put_u32(request, setting->attr, number);
		return STATUS_OK;
	}
	return usage_err("acker set: unknown setting \"%s\": allowed are " SETTINGS, plain(word));
}

static int set_acker(char **words, int count)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct family family = {};
	struct nlmsghdr *request = family_request(&family, buffer, NLM_F_ACK, TIMELY_CMD_ACKER_SET);
	int status;
	int err;

	if (!count)
		return usage_err("acker set: a setting is missing: " SETTINGS);
	if (count > 2 * (int)ARRAY_SIZE(settings))
		return usage_err("acker set: give each setting once");
	for (int i = 0; i < count; i += 2) {
		status = put_setting(request, words[i], i + 1 < count ? words[i + 1] : NULL);
		if (status)
			return status;
	}
	if (!open_module(&family))
		return STATUS_FAILED;
	request->nlmsg_type = family.id;
	err = talk_ask(&family.talk, request, NULL, NULL);
	status = err ? failed(&family, "set", err) : STATUS_OK;
	family_close(&family);
	return status;
}

/* ---- the command line ---- */

int command_acker(char **words, int count, bool json)
{
	const char *verb = count ? words[0] : "show";

	if (strcmp(verb, "show") == 0) {
		if (count > 1)
			return usage_err("acker show: unexpected word \"%s\"", plain(words[1]));
		return show_acker(json);
	}
	if (json)
		return usage_err("acker %s: -j is only for commands that show something",
				 plain(verb));
	if (strcmp(verb, "add") == 0 || strcmp(verb, "del") == 0)
		return change_rule(verb, words + 1, count - 1);
	if (strcmp(verb, "set") == 0)
		return set_acker(words + 1, count - 1);
	return usage_err("acker: unknown command \"%s\": allowed are show, add, del and set",
			 plain(verb));
}
