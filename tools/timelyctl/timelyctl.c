// SPDX-License-Identifier: GPL-2.0
/*
 * timelyctl: see what RTTs of TIMELY end with, and have them end with stamps of
 * the NIC's hardware; On-Ramp's keys, receiver and state. timelyctl(8) is the
 * manual.
 *
 * This file has the command line and what changes a NIC; the parts are in
 * timelyctl.h.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/timely.h>

#include "timelyctl.h"

#define VERSION "1"

static int show_help(FILE *to)
{
	fputs("Usage: timelyctl [ -j ] nic [ show ] [ IFACE ]...\n"
	      "       timelyctl nic enable IFACE\n"
	      "       timelyctl nic disable IFACE\n"
	      "       timelyctl nic set IFACE [ line-rate { RATE | auto } ] [ hardware { on | off } ]\n"
	      "       timelyctl [ -j ] rtt\n"
	      "       timelyctl [ -j ] onramp [ show | flows ]\n"
	      "       timelyctl onramp unauthenticated { on | off }\n"
	      "       timelyctl [ -j ] key [ list ]\n"
	      "       timelyctl key add NUMBER [ FILE | - ]\n"
	      "       timelyctl key { use { NUMBER | none } | del NUMBER | generate }\n"
	      "       timelyctl [ -j ] acker [ show ]\n"
	      "       timelyctl acker { add | del } { PREFIX[/LENGTH] | any } [ port FIRST[-LAST] ]\n"
	      "       timelyctl acker set [ every BYTES ] [ rate NUMBER ]\n"
	      "                 [ test-clock-offset NS ] [ test-clock-drift PPB ]\n"
	      "       timelyctl [ -j ] limits\n"
	      "       timelyctl { help | --version }\n"
	      "\n"
	      "nic show     whether RTTs end with a NIC's hardware stamps, and what that depends on\n"
	      "nic enable   have a NIC stamp all packets it receives (root)\n"
	      "nic disable  have it stamp none again (root)\n"
	      "nic set      line-rate: what counts in the place of the link's speed, as 25gbit\n"
	      "             hardware: may its stamps be used? (root, module timely)\n"
	      "rtt          what RTTs ended with and why ACKs gave none, counted (module timely)\n"
	      "onramp       On-Ramp here: keys, what became of OR-ACKs; flows: who was held (root)\n"
	      "key          secrets that OR-ACKs are made and verified with; add reads 32 hex digits\n"
	      "             from the file or standard input, generate makes some (root)\n"
	      "acker        data that comes here and is answered by OR-ACKs (module timely_acker)\n"
	      "limits       how many flows, queues and such this network namespace has and may have\n"
	      "-j           JSON, for what shows something\n"
	      "\n"
	      "Exit status: 0 done, 1 the kernel or the device refused, 2 wrong usage,\n"
	      "3 the NIC cannot stamp all packets. Manual: man timelyctl\n", to);
	return STATUS_OK;
}

/* ---- one device, to change ---- */

/**
 * struct target - the device that a command is about
 * @links: all devices, as @link is one of them
 * @link: the device
 * @name: its name, for messages
 * @fd: for ioctls
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

/* Says what is wrong. */
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
	tell_err("no device \"%s\" in this network namespace; ip -br link shows what there is",
		 target->name);
	target_close(target);
	return false;
}

/* A VLAN, a bond: the stamps are those of the devices below it. */
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
		tell_err("%s is a %s: packets are stamped by the NIC%s below it; do this instead:",
			 target->name, target->link->kind, count == 1 ? "" : "s");
	for (size_t i = 0; i < count; i++)
		fprintf(stderr, "    timelyctl nic %s %s%s\n", verb, plain(leaves[i]->name),
			strcmp(verb, "set") == 0 ? " ..." : "");
}

static int tell_refused(const struct target *target, const char *verb, int err)
{
	switch (err) {
	case -EPERM:
	case -EACCES:
		tell_err("%s: to %s it takes root (CAP_NET_ADMIN): sudo timelyctl nic %s %s",
			 target->name, verb, verb, target->name);
		break;
	case -EOPNOTSUPP:
		tell_err("%s: the driver does not let its stamps be set", target->name);
		break;
	case -ENODEV:
		tell_err("%s: the device is gone or asleep; is it up? ip link set %s up",
			 target->name, target->name);
		break;
	case -EBUSY:
		tell_err("%s: the driver is busy; stop what uses its stamps (a PTP program?) and try again",
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
		tell_err("%s stamps PTP packets only, not all: hardware RTTs are not possible with it. Nothing was changed; RTTs end with software stamps.",
			 target->name);
	else
		tell_err("%s does not stamp received packets in hardware: hardware RTTs are not possible with it. RTTs end with software stamps.",
			 target->name);
	return STATUS_CANNOT;
}

/* The filter before, for drivers that do not tell it: as if nobody used them. */
static struct hwtstamp_config config_before(const struct hardware *hw)
{
	struct hwtstamp_config unknown = {
		.rx_filter = HWTSTAMP_FILTER_NONE,
		.tx_type = hw->tx_on ? HWTSTAMP_TX_ON : HWTSTAMP_TX_OFF,
	};

	return hw->config_err ? unknown : hw->config;
}

/* The driver took ALL for something less. */
static int undo_narrowed(const struct target *target, const struct hwtstamp_config *got,
			 struct hwtstamp_config before)
{
	const char *narrowed = filter_name(got->rx_filter);
	int filter = before.rx_filter;
	int err = hardware_set_config(target->fd, target->link->name, &before);

	if (err || before.rx_filter != filter)
		tell_err("%s: asked for all packets the driver chose %s, and its filter %s could not be restored (%s): restart the PTP program, if there is one",
			 target->name, narrowed, filter_name(filter),
			 err ? error_text(err) : filter_name(before.rx_filter));
	else
		tell_err("%s: asked for all packets the driver chose %s: it stamps PTP packets only, hardware RTTs are not possible with it. Nothing was changed (rx %s).",
			 target->name, narrowed, filter_name(filter));
	return STATUS_CANNOT;
}

static void tell_enabled(const struct target *target, const struct hardware *hw)
{
	int before = hw->config_err ? HWTSTAMP_FILTER_NONE : hw->config.rx_filter;

	if (hw->config_err)
		tell_info("%s: all received packets are stamped now (the driver does not tell what was before)",
			  target->name);
	else
		tell_info("%s: all received packets are stamped now (rx was %s; tx is %s as before)",
			  target->name, filter_name(before), tx_name(hw->config.tx_type));
	if (before != HWTSTAMP_FILTER_NONE)
		tell_info("A PTP program had asked for %s, which all includes. When it starts again it may narrow the filter: ptp4l does not with \"hwts_filter full\".",
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
		tell_err("%s: the driver does not stamp all packets (PTP only, or none): hardware RTTs are not possible with it. Nothing was changed.",
			 target->name);
		return STATUS_CANNOT;
	}
	if (err)
		return tell_refused(target, "enable", err);
	/* What it has made of it, and once more asked, where it can be asked. */
	if (!hardware_get_config(target->fd, target->link->name, &read))
		got = read;
	if (got.rx_filter != HWTSTAMP_FILTER_ALL)
		return undo_narrowed(target, &got, before);
	tell_enabled(target, hw);
	if (!hw->config_err && got.tx_type != before.tx_type)
		tell_info("The driver made tx %s of %s.", tx_name(got.tx_type),
			  tx_name(before.tx_type));
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
		tell_info("%s: all received packets are stamped already", target->name);
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
		tell_info("%s: no received packets are stamped in hardware already", target->name);
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
	tell_info("%s: received packets are not stamped any more", target->name);
	if (!hw.config_err && hw.config.tx_type != HWTSTAMP_TX_OFF)
		tell_info("Stamps of sent packets are on (tx %s): if a PTP program uses this NIC, restart it, as it gets no more receive stamps.",
			  tx_name(hw.config.tx_type));
	return STATUS_OK;
}

/* ---- nic set ---- */

/* What was given; the change points to it. */
struct settings {
	struct change change;
	__u32 kbps;
	__u8 use;
};

static bool parse_setting(const char *word, const char *value, struct settings *settings)
{
	if (strcmp(word, "line-rate") == 0) {
		settings->change.override_kbps = &settings->kbps;
		settings->kbps = 0;
		return strcmp(value, "auto") == 0 || parse_rate_kbps(value, &settings->kbps);
	}
	settings->change.use = &settings->use;
	settings->use = strcmp(value, "on") == 0;
	return settings->use || strcmp(value, "off") == 0;
}

/* Returns an exit status, having told what is wrong. */
static int parse_settings(char **words, int count, struct settings *settings)
{
	if (!count)
		return usage_err("nic set: what? line-rate or hardware");
	for (int i = 0; i < count; i += 2) {
		bool rate = strcmp(words[i], "line-rate") == 0;

		if (!rate && strcmp(words[i], "hardware") != 0)
			return usage_err("nic set: what is \"%s\"?", plain(words[i]));
		if (i + 1 == count)
			return usage_err("nic set: %s: a value is missing", words[i]);
		if (!parse_setting(words[i], words[i + 1], settings))
			return usage_err("nic set: %s: allowed are %s, not \"%s\"", words[i],
					 rate ? "auto and rates up to 1tbit, as 25gbit" :
					 "on and off", plain(words[i + 1]));
	}
	return STATUS_OK;
}

static void tell_settings(const struct target *target, const struct settings *settings)
{
	char text[32];

	if (settings->change.override_kbps && settings->kbps)
		tell_info("%s: %s counts as the line rate", target->name,
			  rate_text(text, sizeof(text), settings->kbps));
	else if (settings->change.override_kbps)
		tell_info("%s: the link's speed counts as the line rate", target->name);
	if (settings->change.use)
		tell_info("%s: hardware stamps %s be used", target->name,
			  settings->use ? "may" : "will not");
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
		tell_err("%s: to set it takes root (CAP_NET_ADMIN): sudo timelyctl nic set ...",
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
		tell_err("cannot ask the kernel: %s", error_text(err));
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
		tell_err("cannot ask module timely: %s",
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

/* A verb, or at once the devices to show. */
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
		return usage_err("-j is for show and rtt");
	if (count < 2)
		return usage_err("nic %s: which device? nic show lists them", verb);
	if (is_set)
		return command_set(words + 1, count - 1);
	if (count > 2)
		return usage_err("nic %s: one device, not \"%s\" as well", verb,
				 plain(words[2]));
	return on_target(words[1], is_enable ? enable : disable);
}

static int command(char **words, int count, bool json)
{
	if (!count) {
		show_help(stderr);
		return STATUS_USAGE;
	}
	if (strcmp(words[0], "nic") == 0)
		return command_nic(words + 1, count - 1, json);
	if (strcmp(words[0], "rtt") == 0) {
		if (count > 1)
			return usage_err("rtt: what is \"%s\"?", plain(words[1]));
		return show_counters(json);
	}
	if (strcmp(words[0], "onramp") == 0)
		return command_onramp(words + 1, count - 1, json);
	if (strcmp(words[0], "key") == 0)
		return command_key(words + 1, count - 1, json);
	if (strcmp(words[0], "acker") == 0)
		return command_acker(words + 1, count - 1, json);
	if (strcmp(words[0], "limits") == 0)
		return command_limits(words + 1, count - 1, json);
	if (strcmp(words[0], "help") == 0)
		return show_help(stdout);
	return usage_err("what is \"%s\"?", plain(words[0]));
}

/*
 * An option may stand anywhere. Not so "-", which is standard input, and negative
 * numbers, which getopt would take for options.
 */
static bool is_option(const char *word)
{
	return word[0] == '-' && word[1] && (word[1] < '0' || word[1] > '9');
}

int main(int argc, char **argv)
{
	bool json = false;
	int count = 0;
	int status;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];

		if (!is_option(word)) {
			argv[count++] = argv[i];
		} else if (strcmp(word, "-j") == 0 || strcmp(word, "--json") == 0) {
			json = true;
		} else if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
			return show_help(stdout);
		} else if (strcmp(word, "-V") == 0 || strcmp(word, "--version") == 0) {
			puts("timelyctl " VERSION);
			return STATUS_OK;
		} else {
			return usage_err("unrecognized option \"%s\"", plain(word));
		}
	}
	status = command(argv, count, json);
	/* A full disk, a closed pipe. */
	if (fflush(stdout) || ferror(stdout)) {
		tell_err("cannot write: %s", error_text(errno));
		return STATUS_FAILED;
	}
	return status;
}
