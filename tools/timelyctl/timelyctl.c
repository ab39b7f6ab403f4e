// SPDX-License-Identifier: GPL-2.0
/*
 * timelyctl: sets up, checks and shows TIMELY on a host, and manages hardware timestamps and
 * On-Ramp's keys and receiver. timelyctl(8) is the manual.
 *
 * This file has the command line and the commands that change a NIC; timelyctl.h lists the other
 * files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/timely.h>
#include <linux/timely_version.h>

#include "timelyctl.h"

static int show_help(FILE *to)
{
	fputs("Usage: timelyctl [ -j ] nic [ show ] [ IFACE ]...\n"
	      "       timelyctl nic enable IFACE\n"
	      "       timelyctl nic disable IFACE\n"
	      "       timelyctl nic set IFACE [ link-rate { RATE | auto } ] [ hardware { on | off } ]\n"
	      "       timelyctl [ -j ] rtt\n"
	      "       timelyctl [ -j ] flows [ all ] [ from PREFIX ] [ to PREFIX ] [ port NUMBER ]\n"
	      "                 [ cgroup DIR ] [ sort { delay | rate | cuts | pauses } ] [ limit NUMBER ]\n"
	      "       timelyctl [ -j ] top [ prefix LENGTH ] [ words as for flows ]\n"
	      "       timelyctl watch [ interval MS ] [ words as for flows ]\n"
	      "       timelyctl record { FILE | - } [ interval MS ] [ duration S ] [ words as for flows ]\n"
	      "       timelyctl [ -j ] ndp [ show | paths | counters ] [ from PREFIX ] [ to PREFIX ]\n"
	      "                 [ port NUMBER ] [ limit NUMBER ]\n"
	      "       timelyctl metrics [ all ] [ output FILE | http ]\n"
	      "       timelyctl [ -j ] clock [ show | now ] [ page FILE ]\n"
	      "       timelyctl clock watch [ interval MS ] [ duration S ] [ page FILE ]\n"
	      "       timelyctl clock record { FILE | - } [ interval MS ] [ duration S ] [ page FILE ]\n"
	      "       timelyctl [ -j ] onramp [ show | flows | peers ]\n"
	      "       timelyctl onramp unauthenticated { on | off }\n"
	      "       timelyctl [ -j ] key [ list ]\n"
	      "       timelyctl key generate\n"
	      "       timelyctl key add NUMBER [ FILE | - ]\n"
	      "       timelyctl key use { NUMBER | none }\n"
	      "       timelyctl key del NUMBER\n"
	      "       timelyctl [ -j ] acker [ show ]\n"
	      "       timelyctl acker { add | del } { PREFIX[/LENGTH] | any } [ port FIRST[-LAST] ]\n"
	      "       timelyctl acker set [ every BYTES ] [ rate NUMBER ]\n"
	      "                 [ trimmed DSCP ] [ link-rate KBPS ]\n"
	      "                 [ test-clock-offset NS ] [ test-clock-drift PPB ]\n"
	      "       timelyctl [ -j ] limits\n"
	      "       timelyctl setup IFACE [ congctl ] [ --dry-run ] [ --force ]\n"
	      "       timelyctl teardown IFACE [ --dry-run ]\n"
	      "       timelyctl trial route { PREFIX[/LENGTH] | default } [ minutes NUMBER ]\n"
	      "       timelyctl trial cgroup DIRECTORY [ minutes NUMBER ]\n"
	      "       timelyctl trial { confirm | revert }\n"
	      "       timelyctl [ -j ] trial [ status ]\n"
	      "       timelyctl [ -j ] doctor [ IFACE ]\n"
	      "       timelyctl { help | -h | --help | -V | --version }\n"
	      "\n"
	      "nic show     show whether RTTs end with a NIC's hardware timestamps, and if not, why\n"
	      "nic enable   make a NIC timestamp all packets that it receives (root)\n"
	      "nic disable  make a NIC timestamp no received packets (root)\n"
	      "nic set      link-rate: the rate to use instead of the speed that the NIC reports, such as 25gbit\n"
	      "             hardware: whether its timestamps are used (root, module timely)\n"
	      "rtt          show how many RTTs ended with each kind of timestamp, and how many ACKs\n"
	      "             gave no RTT, by reason (module timely)\n"
	      "flows        list the connections that use timely, the longest queueing delay first: rate,\n"
	      "             RTT, base RTT, queueing delay, target delay, states and counters (root);\n"
	      "             all: of all network namespaces\n"
	      "top          sum up the connections by destination (root); prefix: by\n"
	      "             prefixes of this length\n"
	      "watch        as flows, again and again until q is pressed (root)\n"
	      "record       write the connections to a new CSV file at each interval, until the duration\n"
	      "             is over or Ctrl-C is pressed (root); timely-plot draws the file\n"
	      "ndp          list the sockets of NDP, most retransmissions first, and the pull queues;\n"
	      "             paths: the scoreboards of the paths; counters: of this network namespace\n"
	      "metrics      print counters, qdiscs' statistics and sums over all connections in\n"
	      "             Prometheus' text format (root); http: answer the request of HTTP at standard\n"
	      "             input\n"
	      "clock        show the clocks of other hosts as timely-clockd knows them; now: the time, with\n"
	      "             the earliest and latest value that it can have; record: write a CSV file\n"
	      "onramp       show On-Ramp's keys, and counters of OR-ACKs (the answers that report when\n"
	      "             data arrived); flows: delay and pauses of each flow (root)\n"
	      "key          manage the keys that sign OR-ACKs; add reads 32 hex digits\n"
	      "             from the file or standard input, generate prints a new key (root)\n"
	      "acker        choose which received data is answered by OR-ACKs; set: how often; trimmed:\n"
	      "             answer trimmed packets with this DSCP; the test clock makes OR-ACKs report\n"
	      "             wrong times, for tests (module timely_acker)\n"
	      "limits       show how many flows, queues and other objects this network namespace has,\n"
	      "             and how many it may have\n"
	      "setup        put the qdisc timely on every transmit queue of a device; congctl: make timely\n"
	      "             the default congestion control, too (root)\n"
	      "teardown     restore what setup has changed (root)\n"
	      "trial        let new connections by one route, or of one control group, use timely for\n"
	      "             some minutes; confirm: longer, revert: end the trial now (root)\n"
	      "--dry-run    print the commands, change nothing\n"
	      "--force      replace a qdisc that an administrator has configured; teardown restores it\n"
	      "doctor       look for what makes timely work badly on this host, with the evidence and the\n"
	      "             remedy; IFACE: check this device only, instead of all NICs (root)\n"
	      "-j           print JSON, for commands that show something\n"
	      "\n"
	      "Exit status: 0 done, 1 the kernel or the device refused, 2 wrong usage,\n"
	      "3 the NIC cannot timestamp all packets; doctor: 1 errors, 4 warnings only.\n"
	      "Manual: man timelyctl\n", to);
	return STATUS_OK;
}

/* ---- the device of a command ---- */

/**
 * struct target - the device of a command
 * @links: all devices, because @link is one of them
 * @link: the device
 * @name: name of the device, for messages
 * @fd: socket for ioctl()
 */
struct target {
	struct links links;
	const struct link *link;
	const char *name;
	int fd;
};

static void target_close(struct target *target)
{
	if (target->fd >= 0)
		close(target->fd);
	links_free(&target->links);
}

/* Open the device; print an error if that fails. */
static bool target_open(struct target *target, const char *name)
{
	int err = links_get(&target->links);

	target->fd = hardware_open();
	if (!err && target->fd < 0)
		err = target->fd;
	if (err) {
		tell_err("cannot list the devices: %s", error_text(err));
		target_close(target);
		return false;
	}
	target->link = link_by_name(&target->links, name);
	target->name = plain(name);
	if (target->link)
		return true;
	tell_err("no device \"%s\" in this network namespace; ip -br link lists the devices",
		 target->name);
	target_close(target);
	return false;
}

/*
 * Print an error for a VLAN, a bond and the like, whose packets are timestamped by the devices
 * below, with the command that the user may run for each of these. @verb is the word after "nic".
 */
static void name_lower(const struct target *target, const char *verb)
{
	const struct link *leaves[64];
	size_t count = link_leaves(&target->links, target->link, leaves, ARRAY_SIZE(leaves));

	if (!count && target->link->elsewhere)
		tell_err("%s is a %s: the NIC below it is in another network namespace, %s it there",
			 target->name, target->link->kind, verb);
	else if (!count)
		tell_err("%s is a %s with no device below it: there is nothing to %s",
			 target->name, target->link->kind, verb);
	else
		tell_err("%s is a %s: packets are timestamped by the NIC%s below it; do this instead:",
			 target->name, target->link->kind, count == 1 ? "" : "s");
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "    timelyctl nic %s %s%s\n", verb, plain(leaves[i]->name),
			strcmp(verb, "set") == 0 ? " ..." : "");
}

/* Print an error for the errno of SIOCSHWTSTAMP. Returns an exit status. */
static int tell_refused(const struct target *target, const char *verb, int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		tell_err("%s: nic %s needs root (CAP_NET_ADMIN): sudo timelyctl nic %s %s",
			 target->name, verb, verb, target->name);
		break;
	case -EOPNOTSUPP:
		tell_err("%s: the driver has no setting for hardware timestamps (SIOCSHWTSTAMP): hardware RTTs are not possible with it",
			 target->name);
		break;
	case -ENODEV:
		tell_err("%s: the device is removed or suspended; if it is down: ip link set %s up",
			 target->name, target->name);
		break;
	case -EBUSY:
		tell_err("%s: the driver is busy; stop what uses its timestamps (a PTP program?) and try again",
			 target->name);
		break;
	default:
		tell_err("%s: the driver refused: %s", target->name, error_text(err));
	}
	return STATUS_FAILED;
}

/* ---- nic enable ---- */

static int cannot_stamp(const struct target *target, const struct hardware *hw)
{
	if (hw->can_stamp == CAN_STAMP_PTP)
		tell_err("%s timestamps PTP packets only, not all: hardware RTTs are not possible with it. Nothing was changed; RTTs end with driver timestamps.",
			 target->name);
	else
		tell_err("%s does not timestamp received packets in hardware: hardware RTTs are not possible with it. RTTs end with driver timestamps.",
			 target->name);
	return STATUS_CANNOT;
}

/*
 * The configuration to restore. If the driver does not report it, the result has no filter, and
 * timestamps of sent packets are on if the driver supports them: a PTP program may need these.
 */
static struct hwtstamp_config config_before(const struct hardware *hw)
{
	struct hwtstamp_config unknown = {
		.rx_filter = HWTSTAMP_FILTER_NONE,
		.tx_type = hw->tx_on ? HWTSTAMP_TX_ON : HWTSTAMP_TX_OFF,
	};

	return hw->config_err ? unknown : hw->config;
}

/* The driver chose a filter for fewer packets: restore the previous one. */
static int undo_narrowed(const struct target *target, const struct hwtstamp_config *got,
			 struct hwtstamp_config before)
{
	const char *narrowed = filter_name(got->rx_filter);
	int filter = before.rx_filter;
	int err = hardware_set_config(target->fd, target->link->name, &before);

	if (err || before.rx_filter != filter)
		tell_err("%s: asked to timestamp all packets, the driver chose %s, and its filter %s could not be restored (%s): if a PTP program uses this NIC, restart it",
			 target->name, narrowed, filter_name(filter),
			 err ? error_text(err) : filter_name(before.rx_filter));
	else
		tell_err("%s: asked to timestamp all packets, the driver chose %s, which is PTP packets only: hardware RTTs are not possible. Nothing was changed (rx %s).",
			 target->name, narrowed, filter_name(filter));
	return STATUS_CANNOT;
}

static void tell_enabled(const struct target *target, const struct hardware *hw)
{
	int before = hw->config_err ? HWTSTAMP_FILTER_NONE : hw->config.rx_filter;

	if (hw->config_err)
		tell_info("%s: all received packets are timestamped now (the driver does not report the previous setting)",
			  target->name);
	else
		tell_info("%s: all received packets are timestamped now (rx was %s; tx is %s as before)",
			  target->name, filter_name(before), tx_name(hw->config.tx_type));
	if (before != HWTSTAMP_FILTER_NONE)
		tell_info("A PTP program had set the filter %s; the filter all includes its packets. When the program starts again it may set its own filter; ptp4l with \"hwts_filter full\" does not.",
			  filter_name(before));
	tell_info("This lasts until the device or the driver is reset: see PERSISTENCE in man timelyctl.");
}

static int enable_all(const struct target *target, const struct hardware *hw)
{
	struct hwtstamp_config before = config_before(hw);
	struct hwtstamp_config got = before;
	struct hwtstamp_config read;
	int err;

	got.rx_filter = HWTSTAMP_FILTER_ALL;
	err = hardware_set_config(target->fd, target->link->name, &got);
	if (err == -ERANGE) {
		tell_err("%s: the driver does not timestamp all packets (PTP only, or none): hardware RTTs are not possible with it. Nothing was changed.",
			 target->name);
		return STATUS_CANNOT;
	}
	if (err)
		return tell_refused(target, "enable", err);
	/* Read the configuration again, if the driver allows that. */
	if (!hardware_get_config(target->fd, target->link->name, &read))
		got = read;
	if (got.rx_filter != HWTSTAMP_FILTER_ALL)
		return undo_narrowed(target, &got, before);
	tell_enabled(target, hw);
	if (!hw->config_err && got.tx_type != before.tx_type)
		tell_info("The driver changed the timestamps of sent packets: tx was %s and is %s.",
			  tx_name(before.tx_type), tx_name(got.tx_type));
	return STATUS_OK;
}

static int enable(const struct target *target)
{
	struct hardware hw;

	if (link_is_upper(target->link)) {
		name_lower(target, "enable");
		return STATUS_FAILED;
	}
	hardware_get(target->fd, target->link->name, &hw);
	if (hw.can_stamp != CAN_STAMP_ALL)
		return cannot_stamp(target, &hw);
	if (!hw.config_err && hw.config.rx_filter == HWTSTAMP_FILTER_ALL) {
		tell_info("%s: all received packets are timestamped already", target->name);
		return STATUS_OK;
	}
	return enable_all(target, &hw);
}

/* ---- nic disable ---- */

static int disable(const struct target *target)
{
	struct hwtstamp_config config;
	struct hardware hw;
	int err;

	if (link_is_upper(target->link)) {
		name_lower(target, "disable");
		return STATUS_FAILED;
	}
	hardware_get(target->fd, target->link->name, &hw);
	config = config_before(&hw);
	if (hw.can_stamp < CAN_STAMP_PTP ||
	    (!hw.config_err && config.rx_filter == HWTSTAMP_FILTER_NONE)) {
		tell_info("%s: already no received packets are timestamped in hardware",
			  target->name);
		return STATUS_OK;
	}
	if (!hw.config_err && config.rx_filter != HWTSTAMP_FILTER_ALL) {
		tell_info("%s: rx %s is a PTP program's filter, not timelyctl's: left as it is",
			  target->name, filter_name(config.rx_filter));
		return STATUS_OK;
	}
	config.rx_filter = HWTSTAMP_FILTER_NONE;
	err = hardware_set_config(target->fd, target->link->name, &config);
	if (err)
		return tell_refused(target, "disable", err);
	tell_info("%s: received packets are not timestamped any more", target->name);
	if (!hw.config_err && hw.config.tx_type != HWTSTAMP_TX_OFF)
		tell_info("Timestamps of sent packets are on (tx %s): if a PTP program uses this NIC, restart it, as it gets no more receive timestamps.",
			  tx_name(hw.config.tx_type));
	return STATUS_OK;
}

/* ---- nic set ---- */

/* The settings of a command line. Pointers of @change are NULL or point to @kbps and @use. */
struct settings {
	struct change change;
	__u32 kbps;
	__u8 use;
};

/* The name of a setting; a deprecated name is accepted with a notice. */
static const char *setting_name(const char *word)
{
	if (strcmp(word, "line-rate") != 0)
		return word;
	tell_err("nic set: line-rate is deprecated and will be removed in the next release: use link-rate");
	return "link-rate";
}

static bool parse_setting(const char *word, const char *value, struct settings *settings)
{
	if (strcmp(word, "link-rate") == 0) {
		settings->change.override_kbps = &settings->kbps;
		settings->kbps = 0;
		return strcmp(value, "auto") == 0 || parse_rate_kbps(value, &settings->kbps);
	}
	settings->change.use = &settings->use;
	settings->use = strcmp(value, "on") == 0;
	return settings->use || strcmp(value, "off") == 0;
}

/* Parse the settings, and print an error. Returns an exit status. */
static int parse_settings(char **words, int count, struct settings *settings)
{
	if (!count)
		return usage_err("nic set: a setting is missing: link-rate or hardware");
	for (int i = 0; i < count; i += 2) {
		const char *name = setting_name(words[i]);
		bool rate = strcmp(name, "link-rate") == 0;

		if (!rate && strcmp(name, "hardware") != 0)
			return usage_err("nic set: allowed are link-rate and hardware, not \"%s\"",
					 plain(words[i]));
		if (i + 1 == count)
			return usage_err("nic set: %s: a value is missing", name);
		if (!parse_setting(name, words[i + 1], settings))
			return usage_err("nic set: %s: allowed are %s, not \"%s\"", name,
					 rate ? "auto and rates up to 1tbit such as 25gbit" :
					 "on and off", plain(words[i + 1]));
	}
	return STATUS_OK;
}

static void tell_settings(const struct target *target, const struct settings *settings)
{
	char text[32];

	if (settings->change.override_kbps && settings->kbps)
		tell_info("%s: the link rate is %s from now on", target->name,
			  rate_text(text, sizeof(text), settings->kbps));
	else if (settings->change.override_kbps)
		tell_info("%s: the link rate is the speed that the NIC reports from now on",
			  target->name);
	if (settings->change.use)
		tell_info("%s: hardware timestamps %s used", target->name,
			  settings->use ? "are" : "are not");
}

static int no_module(void)
{
	tell_err("module timely is not loaded: modprobe tcp_timely");
	return STATUS_FAILED;
}

static int family_failed(const struct family *family, const char *name, int err)
{
	const char *why = family->talk.why[0] ? family->talk.why : error_text(err);

	if (err == -EPERM || err == -EACCES)
		tell_err("%s: nic set needs root (CAP_NET_ADMIN): sudo timelyctl nic set ...",
			 name);
	else if (err == -ENOENT)
		tell_err("%s: %s: enable it first: timelyctl nic enable %s", name, why, name);
	else
		tell_err("%s: %s", name, why);
	return STATUS_FAILED;
}

static int apply_settings(const struct target *target, const struct settings *settings)
{
	struct family family;
	int status = STATUS_OK;
	int err = family_open(&family, TIMELY_GENL_NAME);

	if (link_is_upper(target->link)) {
		name_lower(target, "set");
		status = STATUS_FAILED;
	} else if (err) {
		tell_err("a netlink request to the kernel failed: %s", error_text(err));
		status = STATUS_FAILED;
	} else if (!family.id) {
		status = no_module();
	} else {
		err = family_set(&family, target->link->ifindex, &settings->change);
		if (err)
			status = family_failed(&family, target->name, err);
		else
			tell_settings(target, settings);
	}
	family_close(&family);
	return status;
}

/* ---- rtt ---- */

static int show_counters(bool json)
{
	struct counters counters;
	struct family family;
	int err = family_open(&family, TIMELY_GENL_NAME);

	if (!err && !family.id) {
		family_close(&family);
		return no_module();
	}
	if (!err)
		err = family_counters(&family, &counters);
	if (err) {
		tell_err("a request to module timely failed: %s",
			 family.talk.why[0] ? family.talk.why : error_text(err));
	} else {
		if (json) {
			counters_json(NULL, &counters);
			json_end();
		} else {
			counters_print(&counters);
		}
		free(counters.counter);
	}
	family_close(&family);
	return err ? STATUS_FAILED : STATUS_OK;
}

/* ---- the command line ---- */

static int on_target(const char *name, int (*act)(const struct target *target))
{
	struct target target;
	int status;

	if (!target_open(&target, name))
		return STATUS_FAILED;
	status = act(&target);
	target_close(&target);
	return status;
}

static int command_set(char **words, int count)
{
	struct settings settings = {};
	struct target target;
	int status = parse_settings(words + 1, count - 1, &settings);

	if (status)
		return status;
	if (!target_open(&target, words[0]))
		return STATUS_FAILED;
	status = apply_settings(&target, &settings);
	target_close(&target);
	return status;
}

/* The next word is a verb, or the first of the devices to show. */
static int command_nic(char **words, int count, bool json)
{
	const char *verb = count ? words[0] : "show";
	bool is_enable = strcmp(verb, "enable") == 0;
	bool is_disable = strcmp(verb, "disable") == 0;
	bool is_set = strcmp(verb, "set") == 0;

	if (!is_enable && !is_disable && !is_set) {
		int skip = count && strcmp(verb, "show") == 0;

		return show_nics((const char * const *)words + skip, count - skip, json);
	}
	if (json)
		return usage_err("nic %s: -j is only for commands that show something", verb);
	if (count < 2)
		return usage_err("nic %s: the device's name is missing; nic show lists NICs", verb);
	if (is_set)
		return command_set(words + 1, count - 1);
	if (count > 2)
		return usage_err("nic %s: give one device, not \"%s\" as well", verb,
				 plain(words[2]));
	return on_target(words[1], is_enable ? enable : disable);
}

static int run_command(char **words, int count, bool json)
{
	if (!count) {
		show_help(stderr);
		return STATUS_USAGE;
	}
	if (strcmp(words[0], "nic") == 0)
		return command_nic(words + 1, count - 1, json);
	if (strcmp(words[0], "rtt") == 0) {
		if (count > 1)
			return usage_err("rtt: unexpected word \"%s\"", plain(words[1]));
		return show_counters(json);
	}
	if (strcmp(words[0], "flows") == 0)
		return command_flows(words + 1, count - 1, json);
	if (strcmp(words[0], "top") == 0)
		return command_top(words + 1, count - 1, json);
	if (strcmp(words[0], "watch") == 0)
		return command_watch(words + 1, count - 1, json);
	if (strcmp(words[0], "record") == 0)
		return command_record(words + 1, count - 1, json);
	if (strcmp(words[0], "ndp") == 0)
		return command_ndp(words + 1, count - 1, json);
	if (strcmp(words[0], "metrics") == 0)
		return command_metrics(words + 1, count - 1, json);
	if (strcmp(words[0], "clock") == 0)
		return command_clock(words + 1, count - 1, json);
	if (strcmp(words[0], "onramp") == 0)
		return command_onramp(words + 1, count - 1, json);
	if (strcmp(words[0], "key") == 0)
		return command_key(words + 1, count - 1, json);
	if (strcmp(words[0], "acker") == 0)
		return command_acker(words + 1, count - 1, json);
	if (strcmp(words[0], "limits") == 0)
		return command_limits(words + 1, count - 1, json);
	if (strcmp(words[0], "setup") == 0)
		return command_setup(words + 1, count - 1, json);
	if (strcmp(words[0], "teardown") == 0)
		return command_teardown(words + 1, count - 1, json);
	if (strcmp(words[0], "trial") == 0)
		return command_trial(words + 1, count - 1, json);
	if (strcmp(words[0], "doctor") == 0)
		return command_doctor(words + 1, count - 1, json);
	if (strcmp(words[0], "help") == 0)
		return show_help(stdout);
	return usage_err("unknown command \"%s\"", plain(words[0]));
}

/*
 * An option may be anywhere on the command line. "-" is standard input, and negative numbers are
 * values, which getopt would take for options.
 */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && (word[1] < '0' || word[1] > '9');
}

int main(int argc, char **argv)
{
	char *dry = NULL, *force = NULL;
	bool json = false;
	int count = 0;
	int status;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!is_option(word)) {
			argv[count++] = argv[i];
		} else if (strcmp(word, "--dry-run") == 0) {
			dry = argv[i];
		} else if (strcmp(word, "--force") == 0) {
			force = argv[i];
		} else if (strcmp(word, "-j") == 0 || strcmp(word, "--json") == 0) {
			json = true;
		} else if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
			return show_help(stdout);
		} else if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0) {
			puts("timelyctl " TIMELY_VERSION);
			return STATUS_OK;
		} else {
			return usage_err("unrecognized option \"%s\"", plain(word));
		}
	}
	/* Options that only some commands have are the last words of the command. */
	if (dry)
		argv[count++] = dry;
	if (force)
		argv[count++] = force;
	status = run_command(argv, count, json);
	/* The disk may be full, or the reader of a pipe may have closed it. */
	if (fflush(stdout) || ferror(stdout)) {
		tell_err("cannot write: %s", error_text(errno));
		return STATUS_FAILED;
	}
	return status;
}
