// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl limits`: how many objects the modules keep for this network namespace, and how many
 * they may keep.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/genetlink.h>

#include <linux/timely.h>
#include <linux/timely_version.h>

#include "timelyctl.h"

static void read_limit(struct limit *limit, const struct nlattr *nest)
{
	const struct nlattr *attr;

	memset(limit, 0, sizeof(*limit));
	mnl_attr_for_each_nested(attr, nest) {
		switch (mnl_attr_get_type(attr)) {
		case TIMELY_A_LIMIT_NAME:
			attr_text(limit->name, sizeof(limit->name), attr);
			break;
		case TIMELY_A_LIMIT_DOC:
			attr_text(limit->doc, sizeof(limit->doc), attr);
			break;
		case TIMELY_A_LIMIT_USED:
			limit->used = attr_unsigned(attr);
			break;
		case TIMELY_A_LIMIT_MAX:
			limit->max = attr_unsigned(attr);
			break;
		case TIMELY_A_LIMIT_REFUSED:
			limit->refused = attr_unsigned(attr);
			break;
		}
	}
}

static void read_limits(const struct nlmsghdr *message, void *data)
{
	struct limits *limits = data;
	const struct nlattr *attr;

	if (!message) {
		limits->count = 0;
		return;
	}
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == TIMELY_A_LIMIT &&
		    limits->count < ARRAY_SIZE(limits->limit))
			read_limit(&limits->limit[limits->count++], attr);
}

/* Read the budgets of this network namespace. */
int limits_get(struct family *family, struct limits *limits)
{
	return family_get(family, TIMELY_CMD_LIMITS_GET, read_limits, limits);
}

static void limits_print(const struct limits *limits)
{
	tell_info("%-14s %10s %10s %12s", "", "used", "limit", "refused");
	for (size_t i = 0; i < limits->count; i++) {
		const struct limit *limit = &limits->limit[i];

		tell_info("%-14s %10llu %10llu %12llu  %s", limit->name,
			  (unsigned long long)limit->used, (unsigned long long)limit->max,
			  (unsigned long long)limit->refused, limit->doc);
	}
	for (size_t i = 0; i < limits->count; i++) {
		const struct limit *limit = &limits->limit[i];

		if (limit->refused)
			tell_info("%s: the limit was reached; to raise it, on the host: echo NUMBER >/sys/module/timely/parameters/max_%s",
				  limit->name, limit->name);
	}
}

static void limits_json(const struct limits *limits)
{
	json_open(NULL, '{');
	for (size_t i = 0; i < limits->count; i++) {
		const struct limit *limit = &limits->limit[i];

		json_open(limit->name, '{');
		json_unsigned("used", limit->used);
		json_unsigned("limit", limit->max);
		json_unsigned("refused", limit->refused);
		json_close('}');
	}
	json_close('}');
	json_end();
}

/* Print an error. Returns an exit status. */
static int tell_failed(const struct family *family, int err)
{
	if (err == -EOPNOTSUPP)
		tell_err("the module timely that is loaded does not report limits: it is older than timelyctl; load the module of version %s",
			 TIMELY_VERSION);
	else
		tell_err("a request to module timely failed: %s",
			 family->talk.why[0] ? family->talk.why : error_text(err));
	return STATUS_FAILED;
}

int command_limits(char **words, int count, bool json)
{
	struct limits limits = {};
	struct family family;
	int err;

	if (count)
		return usage_err("limits: unexpected word \"%s\"", plain(words[0]));
	err = family_open(&family, TIMELY_GENL_NAME);
	if (!err && !family.id) {
		tell_err("module timely is not loaded: modprobe sch_timely or tcp_timely");
		family_close(&family);
		return STATUS_FAILED;
	}
	if (!err)
		err = limits_get(&family, &limits);
	if (err)
		tell_failed(&family, err);
	else if (json)
		limits_json(&limits);
	else
		limits_print(&limits);
	family_close(&family);
	return err ? STATUS_FAILED : STATUS_OK;
}
