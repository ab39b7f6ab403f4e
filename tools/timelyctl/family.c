// SPDX-License-Identifier: GPL-2.0
/*
 * Requests to the netlink families of the modules timely and timely_acker, see <linux/timely.h>:
 * opening a family, NICs, and counters. Requests about On-Ramp are in onramp.c and acker.c.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <linux/genetlink.h>
#include <linux/netlink.h>

#include <linux/timely.h>

#include "timelyctl.h"

static struct nlmsghdr *new_request(char *buffer, __u16 type, __u16 flags, __u8 command)
{
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct genlmsghdr *header;

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST | flags;
	header = mnl_nlmsg_put_extra_header(request, sizeof(*header));
	header->cmd = command;
	header->version = TIMELY_GENL_VERSION;
	return request;
}

struct nlmsghdr *family_request(const struct family *family, char *buffer, __u16 flags,
				__u8 command)
{
	return new_request(buffer, family->id, flags, command);
}

/* ---- numbers of any width ---- */

__u64 attr_unsigned(const struct nlattr *attr)
{
	switch (mnl_attr_get_payload_len(attr)) {
	case 1:
		return mnl_attr_get_u8(attr);
	case 2:
		return mnl_attr_get_u16(attr);
	case 4:
		return mnl_attr_get_u32(attr);
	case 8:
		return mnl_attr_get_u64(attr);
	}
	return 0;
}

/* ---- the family ---- */

/**
 * struct name_search - search for a family
 * @name: its name
 * @id: its number; 0: not found
 */
struct name_search {
	const char *name;
	__u16 id;
};

static void read_id(const struct nlmsghdr *message, void *data)
{
	struct name_search *search = data;
	char name[GENL_NAMSIZ] = "";
	const struct nlattr *attr;
	__u16 id = 0;

	if (!message) {
		search->id = 0;
		return;
	}
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_ID)
			id = attr_unsigned(attr);
		else if (mnl_attr_get_type(attr) == CTRL_ATTR_FAMILY_NAME)
			attr_text(name, sizeof(name), attr);
	}
	if (strcmp(name, search->name) == 0)
		search->id = id;
}

/*
 * If the module is not loaded, there is no such family: the result is 0, and family->id is 0. The
 * family is looked for in a list of all. Asked for one that does not exist, the kernel starts
 * modprobe, which takes longer than everything else that a command does.
 */
int family_open(struct family *family, const char *name)
{
	struct name_search search = { .name = name };
	char buffer[REQUEST_BYTES] = { 0 };
	struct nlmsghdr *request;
	int err;

	memset(family, 0, sizeof(*family));
	err = talk_open(&family->talk, NETLINK_GENERIC);
	if (err)
		return err;
	request = new_request(buffer, GENL_ID_CTRL, NLM_F_DUMP, CTRL_CMD_GETFAMILY);
	err = talk_ask(&family->talk, request, read_id, &search);
	family->id = search.id;
	return err;
}

/* If the module is not loaded, the error is @missing. */
bool family_open_or_tell(struct family *family, const char *name, const char *missing)
{
	int err = family_open(family, name);

	if (!err && family->id)
		return true;
	if (err)
		tell_err("a netlink request to the kernel failed: %s", error_text(err));
	else
		tell_err("%s", missing);
	family_close(family);
	return false;
}

void family_close(struct family *family)
{
	talk_close(&family->talk);
}

/* ---- NICs ---- */

static void read_report(struct report *report, const struct nlattr *attr)
{
	switch (mnl_attr_get_type(attr)) {
	case TIMELY_A_IFINDEX:
		report->ifindex = attr_unsigned(attr);
		break;
	case TIMELY_A_NIC_STATE:
		report->state = attr_unsigned(attr);
		break;
	case TIMELY_A_NIC_USE:
		report->use = attr_unsigned(attr);
		break;
	case TIMELY_A_LINK_KBPS:
		report->link_kbps = attr_unsigned(attr);
		break;
	case TIMELY_A_LINK_OVERRIDE_KBPS:
		report->override_kbps = attr_unsigned(attr);
		break;
	case TIMELY_A_UNCERTAINTY_NS:
		report->uncertainty_ns = attr_unsigned(attr);
		report->has_map = true;
		break;
	case TIMELY_A_DRIFT_PPB:
		report->drift_ppb = attr_unsigned(attr);
		break;
	case TIMELY_A_MAP_NIC_NS:
		report->nic_ns = attr_unsigned(attr);
		break;
	case TIMELY_A_MAP_HOST_NS:
		report->host_ns = attr_unsigned(attr);
		break;
	case TIMELY_A_MAP_DRIFT_Q32:
		report->drift_q32 = attr_unsigned(attr);
		break;
	case TIMELY_A_PAIRS:
		report->pairs = attr_unsigned(attr);
		break;
	case TIMELY_A_CROSS_TIMESTAMPS:
		report->cross_timestamps = attr_unsigned(attr);
		break;
	case TIMELY_A_STEPS:
		report->steps = attr_unsigned(attr);
		break;
	}
}

static void add_report(const struct nlmsghdr *message, void *data)
{
	struct reports *reports = data;
	struct report *report;
	const struct nlattr *attr;

	if (!message) {
		reports->count = 0;
		return;
	}
	report = reallocarray(reports->report, reports->count + 1, sizeof(*report));
	if (!report)
		out_of_memory();
	reports->report = report;
	report += reports->count++;
	memset(report, 0, sizeof(*report));
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr))
		read_report(report, attr);
}

/* Read all NICs of this network namespace; the caller frees the list. */
int family_nics(struct family *family, struct reports *reports)
{
	char buffer[REQUEST_BYTES] = { 0 };

	memset(reports, 0, sizeof(*reports));
	return talk_ask(&family->talk,
			new_request(buffer, family->id, NLM_F_DUMP, TIMELY_CMD_NIC_GET),
			add_report, reports);
}

int family_set(struct family *family, int ifindex, const struct change *change)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct nlmsghdr *request = new_request(buffer, family->id, NLM_F_ACK, TIMELY_CMD_NIC_SET);

	mnl_attr_put_u32(request, TIMELY_A_IFINDEX, ifindex);
	if (change->override_kbps)
		mnl_attr_put_u32(request, TIMELY_A_LINK_OVERRIDE_KBPS, *change->override_kbps);
	if (change->use)
		mnl_attr_put_u8(request, TIMELY_A_NIC_USE, *change->use);
	return talk_ask(&family->talk, request, NULL, NULL);
}

/* ---- counters ---- */

/* Send a request without attributes, and read its single reply. */
int family_get(struct family *family, __u8 command, talk_each each, void *data)
{
	char buffer[REQUEST_BYTES] = { 0 };

	return talk_ask(&family->talk, new_request(buffer, family->id, NLM_F_ACK, command), each,
			data);
}

static void read_counter(struct counter *counter, const struct nlattr *nest)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) {
		switch (mnl_attr_get_type(attr)) {
		case TIMELY_A_COUNTER_NAME:
			attr_text(counter->name, sizeof(counter->name), attr);
			break;
		case TIMELY_A_COUNTER_DOC:
			attr_text(counter->doc, sizeof(counter->doc), attr);
			break;
		case TIMELY_A_COUNTER_VALUE:
			counter->value = attr_unsigned(attr);
			break;
		}
	}
}

void counters_add(struct counters *counters, const struct nlattr *nest)
{
	struct counter *counter = reallocarray(counters->counter, counters->count + 1,
					       sizeof(*counter));

	if (!counter)
		out_of_memory();
	counters->counter = counter;
	counter += counters->count++;
	memset(counter, 0, sizeof(*counter));
	read_counter(counter, nest);
}

static void add_counters(const struct nlmsghdr *message, void *data)
{
	struct counters *counters = data;
	const struct nlattr *attr;

	if (!message) {
		counters->count = 0;
		return;
	}
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr))
		if (mnl_attr_get_type(attr) == TIMELY_A_COUNTER)
			counters_add(counters, attr);
}

/* Read the RTT counters; the caller frees the list. */
int family_counters(struct family *family, struct counters *counters)
{
	memset(counters, 0, sizeof(*counters));
	return family_get(family, TIMELY_CMD_RTT_GET, add_counters, counters);
}
