// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl nic show`: whether RTTs end with the hardware timestamps of each NIC, the settings
 * that decide this, and advice ("hints") about settings that are bad for RTTs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/timely.h>

#include "timelyctl.h"

/* Values in JSON, which the manual lists. */
static const char * const use_names[] = {
	[USE_IN_USE] = "in-use",
	[USE_LEARNING] = "learning",
	[USE_UNSEEN] = "unseen",
	[USE_OFF] = "off",
	[USE_NOT_ENABLED] = "not-enabled",
	[USE_NO_MODULE] = "no-module",
	[USE_CANNOT] = "cannot",
	[USE_UNKNOWN] = "unknown",
};

static const char * const can_stamp_names[] = {
	[CAN_STAMP_NONE] = "none",
	[CAN_STAMP_SOFTWARE] = "software",
	[CAN_STAMP_PTP] = "hardware-ptp",
	[CAN_STAMP_ALL] = "hardware-all",
};

/* All information about one device. */
struct nic {
	const struct link *link;
	const struct links *links;
	const struct report *report;	/* NULL if the module does not know the NIC */
	struct hardware hw;
	enum use use;
	int use_err;			/* the error of USE_UNKNOWN; 0: the state is unknown */
	struct hints hints;
};

/* ---- the state of a device ---- */

static bool stamps_all(const struct hardware *hw)
{
	return !hw->config_err && hw->config.rx_filter == HWTSTAMP_FILTER_ALL;
}

/* Whether RTTs end with a NIC's hardware timestamps. @report is NULL if there is none. */
enum use nic_use(const struct link *link, const struct hardware *hw, const struct report *report,
		 const struct module *module)
{
	if (hw->can_stamp != CAN_STAMP_ALL || link_is_upper(link))
		return USE_CANNOT;
	/* Old drivers do not report the filter; the module reports whether timestamps arrive. */
	if (!stamps_all(hw) && hw->config_err != -EOPNOTSUPP)
		return USE_NOT_ENABLED;
	if (module->err)
		return USE_UNKNOWN;
	if (!module->loaded)
		return USE_NO_MODULE;
	if (!report)
		return USE_UNSEEN;
	switch (report->state) {
	case TIMELY_NIC_SURE:
		return USE_IN_USE;
	case TIMELY_NIC_LEARNING:
		return USE_LEARNING;
	case TIMELY_NIC_OFF:
		return USE_OFF;
	case TIMELY_NIC_UNSEEN:
		return USE_UNSEEN;
	}
	return USE_UNKNOWN;
}

static void hint_stamps(struct nic *nic)
{
	const char *name = plain(nic->link->name);

	if (nic->use == USE_UNSEEN && !nic->link->up)
		hint_info(&nic->hints, "the device is down: ip link set %s up", name);
	if (nic->use == USE_IN_USE && nic->report->steps > 100)
		hint_info(&nic->hints, "the clock of the NIC or of the host was stepped %u times: check whether a PTP or NTP program steps one of them",
			  nic->report->steps);
}

static void hint_link_rate(struct nic *nic)
{
	const char *name = plain(nic->link->name);
	char text[32];

	if (nic->use == USE_CANNOT || nic->use == USE_NOT_ENABLED || !nic->report)
		return;
	if (nic->report->override_kbps && nic->report->link_kbps &&
	    nic->report->override_kbps != nic->report->link_kbps)
		hint_info(&nic->hints, "the link rate was set by hand; to use the reported %s: timelyctl nic set %s link-rate auto",
			  rate_text(text, sizeof(text), nic->report->link_kbps), name);
	if (!nic->report->override_kbps && !nic->report->link_kbps)
		hint_info(&nic->hints, "the link rate is not known, so RTTs include the time that the NIC needs to send a segment: timelyctl nic set %s link-rate RATE",
			  name);
}

static void hint_settings(struct nic *nic)
{
	const char *name = plain(nic->link->name);
	const struct hardware *hw = &nic->hw;

	if (hw->coalesce && hw->rx_usecs >= LONG_COALESCING_US && hw->rx_frames != 1) {
		if (nic->use == USE_IN_USE)
			hint_info(&nic->hints, "coalescing of %u us is not part of RTTs that end with hardware timestamps, but it delays TIMELY's reaction: ethtool -C %s adaptive-rx off rx-usecs 5",
				  hw->rx_usecs, name);
		else
			hint_info(&nic->hints, "coalescing of %u us is part of RTTs that end with driver timestamps: ethtool -C %s adaptive-rx off rx-usecs 5",
				  hw->rx_usecs, name);
	}
	if (hw->can_stamp != CAN_STAMP_ALL)
		return;
	if (hw->lro == 1)
		hint_info(&nic->hints, "LRO merges received packets with data in the NIC, and the merged packet has only one timestamp: ethtool -K %s lro off",
			  name);
	if (hw->gro_hw == 1)
		hint_info(&nic->hints, "GRO-HW merges received packets with data in the NIC, and the merged packet has only one timestamp: ethtool -K %s rx-gro-hw off",
			  name);
}

static void hint_lower(struct nic *nic)
{
	const struct link *leaves[16];
	size_t count = link_leaves(nic->links, nic->link, leaves, ARRAY_SIZE(leaves));

	for (size_t i = 0; i < count; i++)
		hint_info(&nic->hints, "packets are timestamped by the device below it: timelyctl nic show %s",
			  plain(leaves[i]->name));
	if (!count && nic->link->elsewhere)
		hint_info(&nic->hints, "packets are timestamped by the device below it, which is in another network namespace");
}

/* What the module reports about a device; NULL if it does not know the NIC. */
const struct report *nic_report(const struct module *module, const struct link *link)
{
	for (size_t i = 0; i < module->reports.count; i++)
		if (module->reports.report[i].ifindex == link->ifindex)
			return &module->reports.report[i];
	return NULL;
}

/* Collect all information about a device. */
static void inspect_nic(struct nic *nic, const struct links *links, const struct link *link,
			const struct module *module, int fd)
{
	memset(nic, 0, sizeof(*nic));
	nic->links = links;
	nic->link = link;
	nic->report = nic_report(module, link);
	hardware_get(fd, link->name, &nic->hw);
	nic->use = nic_use(link, &nic->hw, nic->report, module);
	nic->use_err = module->err;
	if (link_is_upper(link)) {
		hint_lower(nic);
		return;
	}
	hint_stamps(nic);
	hint_link_rate(nic);
	hint_settings(nic);
}

/* ---- text ---- */

static void print_title(const char *title)
{
	printf("    %-15s ", title);
}

static void print_map(const struct report *report)
{
	char text[32];

	if (report->has_map)
		printf("clock mapping good to %s, drift %+.1f ppm, ",
		       time_text(text, sizeof(text), report->uncertainty_ns),
		       report->drift_ppb / 1000.0);
	printf("%llu pair%s, %u step%s", (unsigned long long)report->pairs,
	       report->pairs == 1 ? "" : "s", report->steps, report->steps == 1 ? "" : "s");
}

static const char *why_not(const struct nic *nic)
{
	if (link_is_upper(nic->link))
		return "see the devices below it";
	if (nic->hw.can_stamp == CAN_STAMP_PTP)
		return "not possible: this NIC timestamps PTP packets only";
	return "not possible: this device does not timestamp in hardware";
}

static void print_use(const struct nic *nic)
{
	const char *name = plain(nic->link->name);

	print_title("hardware RTTs");
	switch (nic->use) {
	case USE_IN_USE:
		fputs("in use: ", stdout);
		print_map(nic->report);
		break;
	case USE_LEARNING:
		fputs("learning the clock mapping, RTTs end with driver timestamps meanwhile: ",
		      stdout);
		printf("%llu pairs, %u steps", (unsigned long long)nic->report->pairs,
		       nic->report->steps);
		break;
	case USE_UNSEEN:
		fputs("waiting for ACKs of connections that use timely", stdout);
		break;
	case USE_OFF:
		printf("off: timelyctl nic set %s hardware on", name);
		break;
	case USE_NOT_ENABLED:
		printf("not enabled: timelyctl nic enable %s", name);
		break;
	case USE_NO_MODULE:
		fputs("module timely not loaded: modprobe tcp_timely", stdout);
		break;
	case USE_CANNOT:
		fputs(why_not(nic), stdout);
		break;
	case USE_UNKNOWN:
		if (nic->use_err)
			printf("unknown: the module does not answer: %s",
			       error_text(nic->use_err));
		else
			fputs("unknown: the module is newer than timelyctl", stdout);
		break;
	}
	putchar('\n');
}

static void print_stamps(const struct nic *nic)
{
	static const char * const texts[] = {
		[CAN_STAMP_NONE] = "nothing",
		[CAN_STAMP_SOFTWARE] = "in software only",
		[CAN_STAMP_PTP] = "in hardware PTP packets only, in software all",
		[CAN_STAMP_ALL] = "in hardware all packets",
	};

	print_title("can timestamp");
	fputs(texts[nic->hw.can_stamp], stdout);
	if (nic->hw.phc >= 0)
		printf("; clock /dev/ptp%d", nic->hw.phc);
	putchar('\n');
	if (nic->hw.can_stamp < CAN_STAMP_PTP)
		return;
	print_title("timestamps now");
	if (nic->hw.config_err == -EOPNOTSUPP)
		fputs("the driver does not report it\n", stdout);
	else if (nic->hw.config_err)
		printf("unknown: %s\n", error_text(nic->hw.config_err));
	else
		printf("rx %s, tx %s\n", filter_name(nic->hw.config.rx_filter),
		       tx_name(nic->hw.config.tx_type));
}

static void print_rate(const struct nic *nic)
{
	__u32 override = nic->report ? nic->report->override_kbps : 0;
	char text[32];

	print_title("link rate");
	if (override)
		printf("%s, set by hand; the NIC reports: ",
		       rate_text(text, sizeof(text), override));
	if (nic->hw.speed_mbps)
		puts(rate_text(text, sizeof(text), nic->hw.speed_mbps * 1000ULL));
	else
		puts("not known");
}

static void print_coalescing(const struct hardware *hw)
{
	print_title("coalescing");
	if (!hw->coalesce) {
		puts("not known");
		return;
	}
	fputs(hw->adaptive_rx ? "adapts to the load, now: " : "", stdout);
	if (!hw->rx_usecs && hw->rx_frames <= 1)
		fputs("none, an interrupt for each packet", stdout);
	else if (!hw->rx_usecs)
		printf("interrupt after %u packets", hw->rx_frames);
	else if (!hw->rx_frames)
		printf("interrupt after %u us", hw->rx_usecs);
	else
		printf("interrupt after %u us or %u packet%s", hw->rx_usecs, hw->rx_frames,
		       hw->rx_frames == 1 ? "" : "s");
	putchar('\n');
}

static const char *on_off(int value)
{
	return value < 0 ? "unknown" : value ? "on" : "off";
}

static void print_nic(const struct nic *nic)
{
	const struct hardware *hw = &nic->hw;

	printf("%s:%s%s%s%s\n", plain(nic->link->name), hw->driver[0] ? " " : "",
	       plain(hw->driver), hw->driver[0] ? "," : "", nic->link->up ? " up" : " down");
	print_use(nic);
	print_stamps(nic);
	print_rate(nic);
	print_coalescing(hw);
	print_title("offloads");
	printf("GRO %s, TSO %s, LRO %s, GRO-HW %s\n", on_off(hw->gro), on_off(hw->tso),
	       on_off(hw->lro), on_off(hw->gro_hw));
	for (unsigned int i = 0; i < nic->hints.count; i++)
		printf("    * %s\n", nic->hints.text[i]);
}

/* ---- JSON ---- */

/* A flag: 1, 0, or -1 if it is not known. */
static void json_flag(const char *key, int value)
{
	if (value < 0)
		json_null(key);
	else
		json_bool(key, value);
}

/* A number that is 0 if it is not known, and null then. */
static void json_known(const char *key, __u64 value)
{
	if (value)
		json_unsigned(key, value);
	else
		json_null(key);
}

static void json_stamps(const struct hardware *hw)
{
	json_string("can_stamp", can_stamp_names[hw->can_stamp]);
	json_bool("can_stamp_tx", hw->can_stamp_tx);
	if (hw->config_err) {
		json_null("rx_filter");
		json_null("tx_type");
	} else {
		json_string("rx_filter", filter_name(hw->config.rx_filter));
		json_string("tx_type", tx_name(hw->config.tx_type));
	}
	if (hw->phc < 0)
		json_null("ptp_clock");
	else
		json_signed("ptp_clock", hw->phc);
}

/*
 * The mapping of the NIC's clock to the host's; without a mapping each key is null. The keys line_*
 * are the names of map_* in the last release, which remain for one release.
 */
static void json_map(const struct report *report)
{
	static const char * const keys[] = {
		"uncertainty_ns", "drift_ppb", "map_nic_ns", "map_host_ns", "map_drift_q32",
		"line_nic_ns", "line_host_ns", "line_drift_q32",
	};

	if (!report || !report->has_map) {
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
			json_null(keys[i]);
		return;
	}
	json_unsigned(keys[0], report->uncertainty_ns);
	json_signed(keys[1], report->drift_ppb);
	for (size_t i = 2; i < ARRAY_SIZE(keys); i += 3) {
		json_unsigned(keys[i], report->nic_ns);
		json_unsigned(keys[i + 1], report->host_ns);
		json_signed(keys[i + 2], report->drift_q32);
	}
}

static void json_hardware_rtt(const struct nic *nic)
{
	const struct report *report = nic->report;

	json_open("hardware_rtt", '{');
	json_string("state", use_names[nic->use]);
	json_flag("allowed", report ? report->use : -1);
	json_map(report);
	json_unsigned("pairs", report ? report->pairs : 0);
	json_unsigned("cross_timestamps", report ? report->cross_timestamps : 0);
	/* The key's name in the last release remains for one release. */
	json_unsigned("brackets", report ? report->cross_timestamps : 0);
	json_unsigned("steps", report ? report->steps : 0);
	json_close('}');
}

static void json_settings(const struct hardware *hw)
{
	if (hw->coalesce) {
		json_unsigned("rx_coalesce_usecs", hw->rx_usecs);
		json_unsigned("rx_coalesce_frames", hw->rx_frames);
		json_bool("rx_coalesce_adaptive", hw->adaptive_rx);
	} else {
		json_null("rx_coalesce_usecs");
		json_null("rx_coalesce_frames");
		json_null("rx_coalesce_adaptive");
	}
	json_flag("gro", hw->gro);
	json_flag("tso", hw->tso);
	json_flag("lro", hw->lro);
	json_flag("gro_hw", hw->gro_hw);
}

static void json_nic(const struct nic *nic)
{
	const struct hardware *hw = &nic->hw;

	json_open(NULL, '{');
	json_string("ifname", nic->link->name);
	json_signed("ifindex", nic->link->ifindex);
	json_bool("up", nic->link->up);
	if (nic->link->kind[0])
		json_string("kind", nic->link->kind);
	else
		json_null("kind");
	json_string("driver", hw->driver);
	json_hardware_rtt(nic);
	json_stamps(hw);
	json_known("link_speed_mbps", hw->speed_mbps);
	json_known("link_rate_override_kbps", nic->report ? nic->report->override_kbps : 0);
	json_known("line_rate_override_kbps", nic->report ? nic->report->override_kbps : 0);
	json_settings(hw);
	json_open("hints", '[');
	for (unsigned int i = 0; i < nic->hints.count; i++)
		json_string(NULL, nic->hints.text[i]);
	json_close(']');
	json_close('}');
}

/* ---- selection of devices ---- */

/*
 * Is the device shown if the command names no device? Virtual devices are, if they have hardware
 * timestamps.
 */
bool is_nic(const struct link *link, const struct hardware *hw)
{
	if (!link->ethernet || link_is_upper(link))
		return false;
	return !link->kind[0] || hw->can_stamp >= CAN_STAMP_PTP;
}

/* The caller frees the reports. */
void ask_module(struct module *module)
{
	struct family family;

	memset(module, 0, sizeof(*module));
	module->err = family_open(&family, TIMELY_GENL_NAME);
	if (module->err)
		return;
	module->loaded = family.id;
	if (module->loaded)
		module->err = family_nics(&family, &module->reports);
	family_close(&family);
}

static void show_one(const struct links *links, const struct link *link,
		     const struct module *module, int fd, bool named, bool json,
		     unsigned int *shown)
{
	struct nic nic;

	inspect_nic(&nic, links, link, module, fd);
	if (named || is_nic(link, &nic.hw)) {
		if (json)
			json_nic(&nic);
		else
			print_nic(&nic);
		(*shown)++;
	}
	hints_free(&nic.hints);
}

static int show_links(const struct links *links, const char * const *names, int count, bool json,
		      int fd)
{
	int status = STATUS_OK;
	unsigned int shown = 0;
	struct module module;

	ask_module(&module);
	if (json)
		json_open(NULL, '[');
	for (int i = 0; i < count; i++) {
		const struct link *link = link_by_name(links, names[i]);

		if (link) {
			show_one(links, link, &module, fd, true, json, &shown);
			continue;
		}
		tell_err("no device \"%s\" in this network namespace; ip -br link lists the devices",
			 plain(names[i]));
		status = STATUS_FAILED;
	}
	for (size_t i = 0; !count && i < links->count; i++)
		show_one(links, &links->link[i], &module, fd, false, json, &shown);
	if (json) {
		json_close(']');
		json_end();
	} else if (!shown && !count) {
		tell_info("no NIC in this network namespace (virtual devices are shown when they are named)");
	}
	free(module.reports.report);
	return status;
}

/* Show the named devices, or all NICs. Prints errors. Returns the exit status. */
int show_nics(const char * const *names, int count, bool json)
{
	struct links links;
	int err = links_get(&links);
	int fd = hardware_open();
	int status;

	if (err || fd < 0) {
		tell_err("cannot list the devices: %s", error_text(err ? err : fd));
		status = STATUS_FAILED;
	} else {
		status = show_links(&links, names, count, json, fd);
	}
	if (fd >= 0)
		close(fd);
	links_free(&links);
	return status;
}
