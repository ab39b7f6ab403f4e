// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl doctor`: looks for what makes timely work badly or not at all on this host, and prints
 * the evidence and the remedy. Doctor changes nothing.
 *
 * doctor_read.c reads the state of the host; each check is a function in another file doctor_*.c,
 * which looks at that state.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/timely.h>

#include "doctor.h"

/* A check has one function: for the host, or for each device. */
static const struct check {
	const char *name;
	void (*host)(struct host *host);
	void (*device)(struct host *host, const struct device *device);
} checks[] = {
	{ "modules-loaded", .host = check_modules_loaded },
	{ "module-signature", .host = check_module_signature },
	{ "module-version", .host = check_module_version },
	{ "kernel-version", .host = check_kernel_version },
	{ "kernel-taint", .host = check_kernel_taint },
	{ "unused", .host = check_unused },
	{ "route-control", .host = check_route_control },
	{ "allowed-control", .host = check_allowed_control },
	{ "preset", .host = check_preset },
	{ "rto-min", .host = check_rto_min },
	{ "clock", .host = check_clock },
	{ "clock-daemon", .host = check_clock_daemon },
	{ "clock-references", .host = check_clock_references },
	{ "default-qdisc", .host = check_default_qdisc },
	{ "rejected-rtts", .host = check_rejected_rtts },
	{ "late-rtts", .host = check_late_rtts },
	{ "limits", .host = check_limits },
	{ "minimum-rate", .host = check_minimum_rate },
	{ "filled-queue", .host = check_filled_queue },
	{ "other-traffic", .host = check_other_traffic },
	{ "probes-apart", .host = check_probes_apart },
	{ "probes-unsynced", .host = check_probes_unsynced },
	{ "long-path", .host = check_long_path },
	{ "mtu", .host = check_mtu },
	{ "onramp-key", .host = check_onramp_key },
	{ "onramp-unauthenticated", .host = check_onramp_unauthenticated },
	{ "onramp-port", .host = check_onramp_port },
	{ "onramp-clock", .host = check_onramp_clock },
	{ "onramp-silent", .host = check_onramp_silent },
	{ "onramp-refused", .host = check_onramp_refused },
	{ "onramp-threshold", .host = check_onramp_threshold },
	{ "onramp-split", .host = check_onramp_split },
	{ "acker-module", .host = check_acker_module },
	{ "acker-rule", .host = check_acker_rule },
	{ "acker-key", .host = check_acker_key },
	{ "acker-clock", .host = check_acker_clock },
	{ "acker-errors", .host = check_acker_errors },
	{ "acker-limited", .host = check_acker_limited },
	{ "ndp-trim", .host = check_ndp_trim },
	{ "onramp-queues", .device = check_onramp_queues },
	{ "device-down", .device = check_device_down },
	{ "qdisc-mixed", .device = check_qdisc_mixed },
	{ "qdisc-root", .device = check_qdisc_root },
	{ "qdisc-unpaced", .device = check_qdisc_unpaced },
	{ "link-rate", .device = check_link_rate },
	{ "link-rate-set", .device = check_link_rate_set },
	{ "timestamps", .device = check_timestamps },
	{ "nic-clock", .device = check_nic_clock },
	{ "nic-clock-steps", .device = check_nic_clock_steps },
	{ "coalescing", .device = check_coalescing },
	{ "merged-packets", .device = check_merged_packets },
	{ "offloads", .device = check_offloads },
};

static const char * const severity_names[] = {
	[SEVERITY_ERROR] = "error",
	[SEVERITY_WARNING] = "warning",
	[SEVERITY_NOTE] = "note",
};

/* ---- findings ---- */

void found(struct host *host, enum severity severity, const char *format, ...)
{
	struct finding *finding = reallocarray(host->findings, host->count + 1, sizeof(*finding));
	va_list args;

	if (!finding)
		out_of_memory();
	host->findings = finding;
	finding += host->count++;
	*finding = (struct finding){
		.check = host->check, .severity = severity, .ifname = host->ifname,
	};
	va_start(args, format);
	if (vasprintf(&finding->evidence, format, args) < 0)
		out_of_memory();
	va_end(args);
}

void remedy_info(struct host *host, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	if (vasprintf(&host->findings[host->count - 1].remedy, format, args) < 0)
		out_of_memory();
	va_end(args);
}

static void run_check(struct host *host, const struct check *check)
{
	host->check = check->name;
	if (check->host)
		check->host(host);
	for (size_t i = 0; check->device && i < host->devices; i++) {
		host->ifname = host->device[i].link->name;
		check->device(host, &host->device[i]);
	}
	host->ifname = NULL;
}

static void free_findings(struct host *host)
{
	for (size_t i = 0; i < host->count; i++) {
		free(host->findings[i].evidence);
		free(host->findings[i].remedy);
	}
	free(host->findings);
}

static unsigned int count_findings(const struct host *host, enum severity severity)
{
	unsigned int count = 0;

	for (size_t i = 0; i < host->count; i++)
		count += host->findings[i].severity == severity;
	return count;
}

/* ---- output ---- */

static void print_finding(const struct finding *finding)
{
	const char *ifname = finding->ifname ? plain(finding->ifname) : "";

	tell_info("%s: %s: %s%s%s", severity_names[finding->severity], finding->check, ifname,
		  *ifname ? ": " : "", finding->evidence);
	tell_info("    remedy: %s", finding->remedy);
}

static void finding_json(const struct finding *finding)
{
	json_open(NULL, '{');
	json_string("check", finding->check);
	json_string("severity", severity_names[finding->severity]);
	if (finding->ifname)
		json_string("ifname", finding->ifname);
	else
		json_null("ifname");
	json_string("evidence", finding->evidence);
	json_string("remedy", finding->remedy);
	json_close('}');
}

/* The findings of one severity after the other, the worst first. */
static void each_finding(const struct host *host, void (*show)(const struct finding *finding))
{
	for (enum severity severity = SEVERITY_ERROR; severity <= SEVERITY_NOTE; severity++)
		for (size_t i = 0; i < host->count; i++)
			if (host->findings[i].severity == severity)
				show(&host->findings[i]);
}

static int compare_namespaces(const void *a, const void *b)
{
	const struct timely_connection *one = a, *other = b;

	return (one->net_cookie > other->net_cookie) - (one->net_cookie < other->net_cookie);
}

/* Number of network namespaces with connections that use timely. Sorts the connections by them. */
static size_t count_namespaces(struct connections *list)
{
	size_t count = 0;

	if (list->count)
		qsort(list->connection, list->count, sizeof(*list->connection), compare_namespaces);
	for (size_t i = 0; i < list->count; i++)
		count += !i || compare_namespaces(&list->connection[i], &list->connection[i - 1]);
	return count;
}

static void print_host(struct host *host)
{
	each_finding(host, print_finding);
	tell_info("errors: %u, warnings: %u, notes: %u", count_findings(host, SEVERITY_ERROR),
		  count_findings(host, SEVERITY_WARNING), count_findings(host, SEVERITY_NOTE));
	if (host->everywhere.count && host->is_everywhere)
		tell_info("connections that use timely: %zu in this network namespace, %zu in all (%zu namespaces)",
			  host->connections.count, host->everywhere.count,
			  count_namespaces(&host->everywhere));
	else if (host->everywhere.count)
		tell_info("connections that use timely: %zu in this network namespace; only root on the host may list all",
			  host->connections.count);
}

/* The number of connections of each network namespace. */
static void users_json(struct connections *list)
{
	size_t first = 0;

	count_namespaces(list);
	json_open("users", '[');
	for (size_t i = 1; i <= list->count; i++) {
		if (i < list->count &&
		    !compare_namespaces(&list->connection[i], &list->connection[first]))
			continue;
		json_open(NULL, '{');
		json_unsigned("net_cookie", list->connection[first].net_cookie);
		json_unsigned("connections", i - first);
		json_close('}');
		first = i;
	}
	json_close(']');
}

static void host_json(struct host *host)
{
	json_open(NULL, '{');
	json_open("findings", '[');
	each_finding(host, finding_json);
	json_close(']');
	users_json(&host->everywhere);
	json_bool("users_complete", host->is_everywhere);
	json_close('}');
	json_end();
}

/* ---- the command ---- */

/* Check the host, and all its NICs or only one device. Returns an exit status. */
static int examine(const struct links *links, const struct link *only, bool json)
{
	struct host host = { .links = *links };
	int status = STATUS_OK;

	host_read(&host, only);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		run_check(&host, &checks[i]);
	if (json)
		host_json(&host);
	else
		print_host(&host);
	if (count_findings(&host, SEVERITY_ERROR))
		status = STATUS_FAILED;
	else if (count_findings(&host, SEVERITY_WARNING))
		status = STATUS_WARNINGS;
	free_findings(&host);
	host_free(&host);
	return status;
}

int command_doctor(char **words, int count, bool json)
{
	const struct link *only = NULL;
	struct links links;
	int status = STATUS_FAILED;
	int err;

	if (count > 1)
		return usage_err("doctor: give one device, not \"%s\" as well", plain(words[1]));
	err = links_get(&links);
	if (!err && count)
		only = link_by_name(&links, words[0]);
	if (err)
		tell_err("cannot list the devices: %s", error_text(err));
	else if (count && !only)
		tell_err("no device \"%s\" in this network namespace; ip -br link lists the devices",
			 plain(words[0]));
	else
		status = examine(&links, only, json);
	links_free(&links);
	return status;
}
