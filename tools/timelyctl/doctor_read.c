// SPDX-License-Identifier: GPL-2.0
/*
 * Reads what the checks of `timelyctl doctor` look at: files of /proc and /sys, devices, qdiscs,
 * routes, and what the modules report. What cannot be read is itself a finding, "incomplete".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/timex.h>
#include <unistd.h>

#include <netinet/in.h>

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include <linux/ndp.h>
#include <linux/timely.h>

#include "doctor.h"

/* Deepest tree of qdiscs that Linux allows, see check_loop(). Bounds the recursion. */
#define MAX_QDISC_DEPTH 8

const char * const module_names[MODULES] = {
	[MODULE_TIMELY] = "timely",
	[MODULE_TCP] = "tcp_timely",
	[MODULE_SCH] = "sch_timely",
	[MODULE_ACKER] = "timely_acker",
	[MODULE_TRIM] = "sch_trim",
	[MODULE_NDP] = "ndp",
};

/* ---- files ---- */

static void read_files(struct host *host)
{
	char path[64], base_rtt[32];

	for (int i = 0; i < MODULES; i++) {
		snprintf(path, sizeof(path), "/sys/module/%s/version", module_names[i]);
		read_line(path, host->versions[i], sizeof(host->versions[i]));
	}
	read_line("/proc/sys/net/ipv4/tcp_congestion_control", host->control,
		  sizeof(host->control));
	read_line("/proc/sys/net/ipv4/timely/preset", host->preset, sizeof(host->preset));
	host->auto_base_rtt = read_line("/proc/sys/net/ipv4/timely/min_rtt_ns", base_rtt,
					sizeof(base_rtt)) && strcmp(base_rtt, "auto") == 0;
}

bool is_loaded(const struct host *host, int module)
{
	return host->versions[module][0];
}

bool is_timely(const char *control)
{
	return strncmp(control, "timely", strlen("timely")) == 0;
}

/* Whether new connections of this network namespace use timely, or any connection does. */
bool is_used(const struct host *host)
{
	return is_timely(host->control) || host->routes.timely || host->connections.count ||
	       host->everywhere.count;
}

/* ---- routes ---- */

/* Read the metrics of a route. Writes its congestion control to @control, "" for none. */
static void read_metrics(struct routes *routes, const struct nlattr *nest, char *control,
			 size_t size)
{
	const struct nlattr *attr;

	mnl_attr_for_each_nested(attr, nest) {
		__u32 value = attr_unsigned(attr);

		if (mnl_attr_get_type(attr) == RTAX_CC_ALGO) {
			attr_text(control, size, attr);
			routes->timely += is_timely(control);
		} else if (mnl_attr_get_type(attr) == RTAX_RTO_MIN && value) {
			if (!routes->rto_min_ms || value < routes->rto_min_ms)
				routes->rto_min_ms = value;
		}
	}
}

/* Whether TCP connects by the route: not the routes of the host's own addresses, for example. */
static bool is_for_connections(const struct rtmsg *header, const struct prefix *prefix)
{
	const struct in6_addr *v6 = (const struct in6_addr *)prefix->address;

	if (header->rtm_type != RTN_UNICAST || header->rtm_table != RT_TABLE_MAIN ||
	    header->rtm_flags & RTM_F_CLONED)
		return false;
	if (header->rtm_family == AF_INET6)
		return prefix->length <= 128 && !IN6_IS_ADDR_LINKLOCAL(v6) &&
		       !IN6_IS_ADDR_LOOPBACK(v6);
	return header->rtm_family == AF_INET && prefix->length <= 32;
}

static void add_route(const struct nlmsghdr *message, void *data)
{
	struct control_route route = {};
	struct routes *routes = data;
	const struct rtmsg *header;
	const struct nlattr *attr;

	if (!message) {
		free(routes->route);
		memset(routes, 0, sizeof(*routes));
		return;
	}
	if (message->nlmsg_type != RTM_NEWROUTE ||
	    mnl_nlmsg_get_payload_len(message) < sizeof(*header))
		return;
	header = mnl_nlmsg_get_payload(message);
	route.prefix.bytes = header->rtm_family == AF_INET6 ? 16 : 4;
	route.prefix.length = header->rtm_dst_len;
	mnl_attr_for_each(attr, message, sizeof(*header)) {
		if (mnl_attr_get_type(attr) == RTA_METRICS)
			read_metrics(routes, attr, route.control, sizeof(route.control));
		else if (mnl_attr_get_type(attr) == RTA_DST &&
			 mnl_attr_get_payload_len(attr) == route.prefix.bytes)
			memcpy(route.prefix.address, mnl_attr_get_payload(attr),
			       route.prefix.bytes);
	}
	if (!is_for_connections(header, &route.prefix))
		return;
	routes->route = reallocarray(routes->route, routes->count + 1, sizeof(route));
	if (!routes->route)
		out_of_memory();
	routes->route[routes->count++] = route;
}

/* ---- devices ---- */

/* Whether packets wait in the qdisc: it is the root, or below mq the qdisc of a queue. */
static bool is_queue(const struct qdisc *qdisc, const struct qdisc *root)
{
	if (strcmp(root->kind, "mq") != 0)
		return qdisc == root;
	return qdisc != root && qdisc->ifindex == root->ifindex &&
	       TC_H_MAJ(qdisc->parent) == root->handle;
}

/* Whether a qdisc paces, or one that is attached to its classes, for example below a shaper. */
static bool paces(const struct host *host, const struct qdisc *qdisc, int depth)
{
	if (strcmp(qdisc->kind, "timely") == 0 || strcmp(qdisc->kind, "fq") == 0)
		return true;
	/* A qdisc without a handle has no children. */
	if (!qdisc->handle || depth == MAX_QDISC_DEPTH)
		return false;
	for (size_t i = 0; i < host->qdiscs.count; i++) {
		const struct qdisc *child = &host->qdiscs.qdisc[i];

		if (child->ifindex == qdisc->ifindex && TC_H_MAJ(child->parent) == qdisc->handle &&
		    paces(host, child, depth + 1))
			return true;
	}
	return false;
}

/* Count the qdiscs that packets of the device wait in, by kind. */
static void read_queues(const struct host *host, struct device *device)
{
	const struct qdisc *root = NULL;

	for (size_t i = 0; i < host->qdiscs.count; i++)
		if (host->qdiscs.qdisc[i].ifindex == device->link->ifindex &&
		    host->qdiscs.qdisc[i].parent == TC_H_ROOT)
			root = &host->qdiscs.qdisc[i];
	if (!root)
		return;
	device->root = root;
	for (size_t i = 0; i < host->qdiscs.count; i++) {
		const struct qdisc *qdisc = &host->qdiscs.qdisc[i];

		if (!is_queue(qdisc, root))
			continue;
		device->queues++;
		device->timely += strcmp(qdisc->kind, "timely") == 0;
		if (paces(host, qdisc, 0))
			device->paced++;
		else if (!device->unpaced)
			device->unpaced = qdisc;
	}
}

/* Without @only, NICs and devices with the qdisc timely are checked. */
static void add_device(struct host *host, int fd, const struct link *link, const struct link *only)
{
	struct device *device;

	if (only && link != only)
		return;
	device = reallocarray(host->device, host->devices + 1, sizeof(*device));
	if (!device)
		out_of_memory();
	host->device = device;
	device += host->devices;
	memset(device, 0, sizeof(*device));
	device->link = link;
	device->report = nic_report(&host->module, link);
	hardware_get(fd, link->name, &device->hw);
	device->use = nic_use(link, &device->hw, device->report, &host->module);
	device->nic = is_nic(link, &device->hw);
	read_queues(host, device);
	if (only || device->timely || (device->nic && link->up))
		host->devices++;
}

static int read_devices(struct host *host, const struct link *only)
{
	int fd = hardware_open();

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < host->links.count; i++)
		add_device(host, fd, &host->links.link[i], only);
	close(fd);
	return 0;
}

/* ---- the modules ---- */

/* Report that something could not be read, so that checks are left out. */
static void incomplete(struct host *host, const char *what, int err)
{
	host->check = "incomplete";
	if (err == -EPERM || err == -EACCES) {
		found_info(host, "%s cannot be read without CAP_NET_ADMIN, so some checks are left out",
			   what);
		remedy_info(host, "sudo timelyctl doctor");
	} else if (err == -EOPNOTSUPP) {
		found_warn(host, "the module timely that is loaded does not report %s: it is older than timelyctl",
			   what);
		remedy_info(host, "timely-switch reload replaces the loaded modules by those that are installed");
	} else if (err) {
		found_warn(host, "%s cannot be read, so some checks are left out: %s", what,
			   error_text(err));
		remedy_info(host, "repeat the command; look at the kernel's log (dmesg)");
	}
}

static void read_modules(struct host *host)
{
	static const struct choice here = {}, everywhere = { .all = true };
	struct family family;
	int err = family_open(&family, TIMELY_GENL_NAME);

	if (!err && family.id) {
		incomplete(host, "connections",
			   connections_get(&family, &here, &host->connections));
		/* Only root on the host may list those of all network namespaces. */
		host->is_everywhere = !connections_get(&family, &everywhere, &host->everywhere);
		if (!host->is_everywhere)
			connections_get(&family, &here, &host->everywhere);
		incomplete(host, "counters of RTTs", family_counters(&family, &host->rtts));
		incomplete(host, "limits", limits_get(&family, &host->limits));
		incomplete(host, "On-Ramp", onramp_get(&family, &host->onramp));
	}
	incomplete(host, "module timely", err);
	family_close(&family);
	err = family_open(&family, TIMELY_ACKER_GENL_NAME);
	if (!err && family.id)
		err = acker_get(&family, &host->acker);
	incomplete(host, "module timely_acker", err);
	family_close(&family);
	err = family_open(&family, NDP_GENL_NAME);
	if (!err && family.id)
		err = ndp_sums_get(&family, &host->ndp);
	incomplete(host, "module ndp", err);
	family_close(&family);
}

/* ---- counters that grow ---- */

/* What cannot be read now does not grow: the first reading has reported the error. */
static void read_again(struct host *host)
{
	static const struct choice here = {};
	struct timespec second = { .tv_sec = 1 };
	struct again *again = &host->again;
	struct family family;

	if (again->done)
		return;
	again->done = true;
	while (nanosleep(&second, &second) && errno == EINTR)
		;
	if (!family_open(&family, TIMELY_GENL_NAME) && family.id) {
		family_counters(&family, &again->rtts);
		onramp_get(&family, &again->onramp);
		connections_get(&family, &here, &again->connections);
	}
	family_close(&family);
	ask_module(&again->module);
}

/* A counter that is smaller was reset: the module was loaded again. */
static __u64 growth(__u64 before, __u64 after)
{
	return after > before ? after - before : 0;
}

__u64 rtts_growth(struct host *host, const char *name)
{
	read_again(host);
	return growth(counter_value(&host->rtts, name), counter_value(&host->again.rtts, name));
}

__u64 onramp_growth(struct host *host, const char *name)
{
	read_again(host);
	return growth(counter_value(&host->onramp.counters, name),
		      counter_value(&host->again.onramp.counters, name));
}

/* Of the clock steps that a NIC reports. */
__u32 steps_growth(struct host *host, const struct device *device)
{
	const struct report *report;

	read_again(host);
	report = nic_report(&host->again.module, device->link);
	return device->report && report ? growth(device->report->steps, report->steps) : 0;
}

const struct timely_connection *connection_again(struct host *host,
						 const struct timely_connection *connection)
{
	read_again(host);
	for (size_t i = 0; i < host->again.connections.count; i++) {
		const struct timely_connection *one = &host->again.connections.connection[i];

		if (one->family == connection->family && one->sport == connection->sport &&
		    one->dport == connection->dport &&
		    memcmp(one->saddr, connection->saddr, sizeof(one->saddr)) == 0 &&
		    memcmp(one->daddr, connection->daddr, sizeof(one->daddr)) == 0)
			return one;
	}
	return NULL;
}

/* ---- everything ---- */

static void read_clocks(struct host *host)
{
	struct timex clock = {};
	struct timely_clock *page;

	host->unsynchronised = adjtimex(&clock) >= 0 && clock.status & STA_UNSYNC;
	if (timely_clock_open(&page, NULL))
		return;
	host->has_clock = !timely_clock_read(page, &host->clock);
	timely_clock_close(page);
}

void host_read(struct host *host, const struct link *only)
{
	read_files(host);
	read_clocks(host);
	incomplete(host, "qdiscs", qdiscs_get(&host->qdiscs, NULL));
	incomplete(host, "routes", talk_dump_route(RTM_GETROUTE, sizeof(struct rtmsg), add_route,
						   &host->routes));
	ask_module(&host->module);
	read_modules(host);
	incomplete(host, "TCP connections (tcp_diag)",
		   sockets_get(&host->sockets, &host->links));
	sockets_join(&host->sockets, &host->connections);
	incomplete(host, "devices", read_devices(host, only));
}

void host_free(struct host *host)
{
	free(host->qdiscs.qdisc);
	free(host->routes.route);
	free(host->module.reports.report);
	free(host->device);
	free(host->rtts.counter);
	free(host->onramp.counters.counter);
	free(host->acker.rule);
	free(host->ndp.counts.counters.counter);
	free(host->sockets.socket);
	free(host->again.rtts.counter);
	free(host->again.onramp.counters.counter);
	free(host->again.module.reports.report);
	connections_free(&host->again.connections);
	connections_free(&host->connections);
	connections_free(&host->everywhere);
}
