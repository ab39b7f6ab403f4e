// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl setup` puts the qdisc timely on every transmit queue of a device; `timelyctl teardown`
 * restores the qdiscs that were there before.
 *
 * Each change is printed as the command of tc or sysctl that does the same. Other output begins
 * with '#', so that the output of --dry-run is a shell script.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <linux/pkt_sched.h>

#include "setup.h"

/* ---- which devices ---- */

/* Whether the device is a port of a bridge that leads to a container or a guest. */
static bool leads_inside(const struct setup *setup, const struct link *link)
{
	for (size_t i = 0; i < setup->links.count; i++) {
		const struct link *master = &setup->links.link[i];

		if (master->ifindex == link->master)
			return (strcmp(master->kind, "bridge") == 0 ||
				strcmp(master->kind, "openvswitch") == 0) &&
			       (strcmp(link->kind, "veth") == 0 || strcmp(link->kind, "tun") == 0);
	}
	return false;
}

/* The name of the device becomes a word of shell commands. */
static bool add_device(struct setup *setup, const struct link *link)
{
	struct device *device = &setup->device[setup->count++];

	device->link = link;
	snprintf(device->name, sizeof(device->name), "%s", plain(link->name));
	for (const char *c = link->name; *c; c++) {
		if (!isalnum((unsigned char)*c) && !strchr("._-@+", *c)) {
			tell_err("the name of the device \"%s\" has special characters: give it another name with ip link set",
				 device->name);
			return false;
		}
	}
	return true;
}

/* Add the devices below a bond, a VLAN, a bridge and the like. */
static bool add_lower(struct setup *setup, const struct link *upper)
{
	const struct link *leaves[ARRAY_SIZE(setup->device)];
	size_t count = link_leaves(&setup->links, upper, leaves, ARRAY_SIZE(leaves));

	if (count == ARRAY_SIZE(leaves)) {
		tell_err("%s has too many devices below it: set them up one by one",
			 plain(upper->name));
		return false;
	}
	if (upper->elsewhere && !count) {
		tell_err("%s is a %s, and the device below it is in another network namespace: run this command there",
			 plain(upper->name), upper->kind);
		return false;
	}
	for (size_t i = 0; i < count; i++) {
		if (leads_inside(setup, leaves[i]))
			tell_info("# %s leads to a container or a guest: its qdisc stays as it is",
				  plain(leaves[i]->name));
		else if (!add_device(setup, leaves[i]))
			return false;
	}
	if (!setup->count) {
		tell_err("%s is a %s, and no device below it sends packets to a network: there is nothing to set up",
			 plain(upper->name), upper->kind);
		return false;
	}
	return true;
}

/* veth and dummy devices can have a qdisc, although they have none by default. */
static bool has_no_queue(const struct device *device)
{
	const struct node *root = tree_root(&device->now);
	const char *kind = device->link->kind;

	return root && !root->handle && strcmp(root->kind, "noqueue") == 0 &&
	       strcmp(kind, "veth") != 0 && strcmp(kind, "dummy") != 0;
}

static void free_device(struct device *device)
{
	tree_free(&device->now);
	tree_free(&device->before);
	free(device->former);
}

/*
 * Of the devices below @upper keep those that have a queue, and print their names. Packets of the
 * others, such as tunnels, wait in the qdisc of another device. Prints an error if none is left.
 */
static bool keep_queues(struct setup *setup, const struct link *upper)
{
	size_t count = setup->count;

	setup->count = 0;
	for (size_t i = 0; i < count; i++) {
		struct device *device = &setup->device[i];

		if (!has_no_queue(device)) {
			setup->device[setup->count++] = *device;
			continue;
		}
		tell_info("# %s has no queue: skipped", device->name);
		free_device(device);
	}
	if (!setup->count) {
		tell_err("%s is a %s, and no device below it has a queue: there is nothing to set up",
			 plain(upper->name), upper->kind);
		return false;
	}
	printf("# %s is a %s: packets wait in the qdiscs of", plain(upper->name), upper->kind);
	for (size_t i = 0; i < setup->count; i++)
		printf(" %s", setup->device[i].name);
	printf("\n");
	return true;
}

/*
 * Count the transmit queues in use, which netlink does not report. /sys may belong to another
 * network namespace.
 */
static bool count_queues(struct device *device)
{
	char path[96];
	struct dirent *entry;
	__s64 ifindex;
	DIR *dir = NULL;

	snprintf(path, sizeof(path), "/sys/class/net/%s/ifindex", device->link->name);
	if (!read_number(path, &ifindex))
		ifindex = 0;
	snprintf(path, sizeof(path), "/sys/class/net/%s/queues", device->link->name);
	if (ifindex == device->link->ifindex)
		dir = opendir(path);
	if (!dir) {
		tell_err("%s: /sys does not show this device: mount the sysfs of this network namespace (ip netns exec does that)",
			 device->name);
		return false;
	}
	while ((entry = readdir(dir)))
		device->queues += strncmp(entry->d_name, "tx-", 3) == 0;
	closedir(dir);
	return true;
}

static bool read_device(struct setup *setup, struct device *device)
{
	int err = tree_get(&setup->talk, device->link->ifindex, &device->now);

	if (!err)
		err = state_name(device->state, "setup", device->link->ifindex);
	if (err) {
		tell_kernel(setup, device, "the qdiscs cannot be read", err);
		return false;
	}
	return count_queues(device) && load(setup, device);
}

/* Find the devices of the command line, and read their qdiscs. Prints errors. */
static bool read_devices(struct setup *setup, const char *name)
{
	const struct link *link;
	int err = links_get(&setup->links);

	if (!err)
		err = talk_open(&setup->talk, NETLINK_ROUTE);
	if (err) {
		tell_err("cannot list the devices: %s", error_text(err));
		return false;
	}
	link = link_by_name(&setup->links, name);
	if (!link) {
		tell_err("no device \"%s\" in this network namespace; ip -br link lists the devices",
			 plain(name));
		return false;
	}
	if (!(link_is_upper(link) ? add_lower(setup, link) : add_device(setup, link)))
		return false;
	for (size_t i = 0; i < setup->count; i++)
		if (!read_device(setup, &setup->device[i]))
			return false;
	setup->upper = link_is_upper(link);
	return !setup->upper || keep_queues(setup, link);
}

static void close_setup(struct setup *setup)
{
	for (size_t i = 0; i < setup->count; i++)
		free_device(&setup->device[i]);
	talk_close(&setup->talk);
	links_free(&setup->links);
	if (setup->dir >= 0)
		close(setup->dir);
}

/* ---- setup: is it possible? ---- */

static bool is_one_of(const char *word, const char * const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(word, list[i]) == 0)
			return true;
	return false;
}

/*
 * May this qdisc be replaced? The kernel's defaults and qdiscs without a policy of their own may;
 * others that a teardown can restore only with --force. The options of qdiscs with classes are only
 * a part of their configuration: they cannot be restored.
 */
static bool may_replace(struct setup *setup, const struct device *device, const struct node *node)
{
	static const char * const usual[] = {
		"mq", "noqueue", "pfifo_fast", "fq", "fq_codel", "timely",
	};
	static const char * const classless[] = {
		"cake", "codel", "sfq", "hhf", "pfifo", "bfifo", "pfifo_head_drop",
	};
	bool is_usual = is_one_of(node->kind, usual, ARRAY_SIZE(usual));
	int filters;

	if (!node->handle)
		return true;
	if (!is_usual && !is_one_of(node->kind, classless, ARRAY_SIZE(classless))) {
		tell_err("%s: the qdisc %s has parts that timelyctl cannot restore; to use timely with it, put timely below its classes, for example: tc qdisc replace dev %s parent 1:10 timely",
			 device->name, plain(node->kind), device->name);
		return false;
	}
	filters = tree_has_filters(&setup->talk, device->link->ifindex, node->handle);
	if (filters || device->now.resized) {
		tell_err("%s: the qdisc %s has %s, which timelyctl cannot restore; remove them first",
			 device->name, plain(node->kind), filters ? "filters" : "a size table");
		return false;
	}
	if (!is_usual && !setup->force) {
		tell_err("%s: the qdisc %s was configured by an administrator; --force replaces it, and timelyctl teardown restores it",
			 device->name, plain(node->kind));
		return false;
	}
	return true;
}

static bool may_set_up(struct setup *setup, const struct device *device)
{
	const char *kind = device->link->kind;

	if (has_no_queue(device)) {
		tell_err("%s%s%s has no queue of its own (noqueue); set up the device that sends its packets to the network instead",
			 device->name, kind[0] ? " is a " : "", kind);
		return false;
	}
	for (size_t i = 0; i < device->now.count; i++)
		if (!may_replace(setup, device, &device->now.node[i]))
			return false;
	return true;
}

/* ---- setup: what works against timely ---- */

/* Print advice. The output of --dry-run is a script, where advice is a comment. */
static void advise(const struct setup *setup)
{
	char value[512];
	__s64 least_us;
	int fd = hardware_open();

	if (!setup->congctl && has_other_congctl(value, sizeof(value)))
		tell_info("# the default congestion control is %s: connections use timely only by a route (timelyctl trial route PREFIX) or after sysctl -w net.ipv4.tcp_congestion_control=timely",
			  plain(value));
	if (read_line("/proc/sys/net/ipv4/tcp_allowed_congestion_control", value, sizeof(value)) &&
	    !has_word(value, "timely"))
		tell_info("# programs without privilege and other network namespaces may not choose timely; to allow that: sysctl -w net.ipv4.tcp_allowed_congestion_control=\"%s timely\"",
			  plain(value));
	if (read_line("/proc/sys/net/ipv4/tcp_pacing_ca_ratio", value, sizeof(value)) &&
	    atoi(value) < 100)
		tell_info("# net.ipv4.tcp_pacing_ca_ratio is %s: congestion controls without a rate of their own, such as cubic, are paced too slowly; to change that: sysctl -w net.ipv4.tcp_pacing_ca_ratio=120",
			  plain(value));
	if (read_number("/proc/sys/net/ipv4/tcp_rto_min_us", &least_us) &&
	    least_us < 1000 * LEAST_RTO_MIN_MS)
		tell_info("# net.ipv4.tcp_rto_min_us is %lld: receivers may delay ACKs for longer, and TCP then retransmits packets that were not lost; to change that: sysctl -w net.ipv4.tcp_rto_min_us=%u",
			  (long long)least_us, 1000 * LEAST_RTO_MIN_MS);
	if (read_line("/proc/sys/net/core/default_qdisc", value, sizeof(value)) &&
	    strcmp(value, "timely") != 0)
		for (size_t i = 0; i < setup->count; i++)
			if (setup->device[i].queues > 1)
				tell_info("# %s: queues that ethtool -L adds later get the qdisc %s: run timelyctl setup again after ethtool -L, or sysctl -w net.core.default_qdisc=timely before",
					  setup->device[i].name, plain(value));
	for (size_t i = 0; fd >= 0 && i < setup->count; i++) {
		struct hardware hw;

		hardware_get(fd, setup->device[i].link->name, &hw);
		if (hw.lro == 1)
			tell_info("# %s: LRO merges packets and loses their timestamps; to turn LRO off: ethtool -K %s lro off",
				  setup->device[i].name, setup->device[i].name);
	}
	if (fd >= 0)
		close(fd);
}

/* ---- setup ---- */

static bool is_timely(const struct node *node)
{
	return node && strcmp(node->kind, "timely") == 0;
}

/* Does each queue have timely, below mq or as the only qdisc? */
static bool is_set_up(const struct device *device, const struct node *root, bool has_mq)
{
	if (!has_mq)
		return device->queues < 2 && is_timely(root);
	for (unsigned int queue = 1; queue <= device->queues; queue++)
		if (!is_timely(tree_find(&device->now, root->handle | queue)))
			return false;
	return true;
}

/* Put timely on one queue, with the options of @root, the former root qdisc, if that is timely. */
static int put_timely(struct setup *setup, struct device *device, __u32 parent,
		      const struct node *root)
{
	struct node node = { .parent = parent, .kind = "timely" };

	if (is_timely(root)) {
		node.options = root->options;
		node.bytes = root->bytes;
	}
	return put(setup, device, &node);
}

static int set_up_device(struct setup *setup, struct device *device)
{
	const struct node *root = tree_root(&device->now);
	bool has_mq = root && strcmp(root->kind, "mq") == 0;
	__u32 handle = has_mq ? root->handle : 0;
	int err = 0;

	if (is_set_up(device, root, has_mq)) {
		tell_info("# %s has timely on each of its queues already", device->name);
		return 0;
	}
	if (device->queues < 2 && !has_mq)
		return put_kind(setup, device, TC_H_ROOT, 0, "timely");
	/* Below an mq without a handle, which the kernel made, no qdisc can be put. */
	if (!handle) {
		has_mq = false;
		handle = free_handle(device);
		err = put_kind(setup, device, TC_H_ROOT, handle, "mq");
	}
	for (unsigned int queue = 1; queue <= device->queues && !err; queue++) {
		if (!has_mq || !is_timely(tree_find(&device->now, handle | queue)))
			err = put_timely(setup, device, handle | queue, root);
	}
	return err;
}

/* Was a setup or teardown killed, and are these qdiscs its work? Others are an administrator's. */
static bool is_half_way(const struct device *device)
{
	for (size_t i = 0; i < device->now.count; i++) {
		const struct node *node = &device->now.node[i];

		if (node->handle && !is_timely(node) && strcmp(node->kind, "mq") != 0 &&
		    !tree_has_kind(&device->before, node->kind))
			return false;
	}
	return device->unfinished;
}

/* The state file becomes what it was when the program started. */
static void undo_state(struct setup *setup, struct device *device)
{
	if (device->former)
		state_write(setup->dir, device->state, device->former);
	else
		state_remove(setup->dir, device->state);
}

/* Restore the qdiscs of all devices that this program has changed. */
static void undo(struct setup *setup)
{
	for (size_t i = 0; i < setup->count; i++) {
		struct device *device = &setup->device[i];

		if (device->changed) {
			tell_info("# undoing the changes of %s", device->name);
			if (restore(setup, device, &device->now)) {
				tell_err("%s: the qdiscs could not be restored; try timelyctl teardown %s",
					 device->name, device->name);
				continue;
			}
		}
		if (device->written)
			undo_state(setup, device);
	}
}

/*
 * Save what a teardown restores. What an earlier setup has saved is kept while its qdiscs, or a
 * part of them, are in force: otherwise a teardown would restore the qdisc timely.
 */
static int save_first(struct setup *setup, struct device *device)
{
	bool in_force = is_half_way(device) ||
			(device->former && tree_has_kind(&device->now, "timely"));
	char congctl[sizeof(device->congctl)];
	bool other = has_other_congctl(congctl, sizeof(congctl));
	int err = 0;

	if (!in_force) {
		tree_free(&device->before);
		err = tree_get(&setup->talk, device->link->ifindex, &device->before);
	}
	/*
	 * The first device's file has the congestion control. While timely is the default one, it
	 * is an earlier setup's, and the one before is kept.
	 */
	if (other && setup->congctl && device == setup->device)
		memcpy(device->congctl, congctl, sizeof(congctl));
	else if (other && !in_force)
		device->congctl[0] = 0;
	if (err || setup->dry)
		return err;
	err = save(setup, device, true);
	device->written = !err;
	if (err)
		tell_err("%s: the present qdiscs cannot be saved in a file, and the device was not changed: %s",
			 device->name, error_text(err));
	return err;
}

/*
 * Has timely-switch taken timely from the device? Its record has the inode of the network namespace
 * and the name of the device.
 */
static bool is_switched_away(const struct device *device)
{
	FILE *record = fopen("/run/timely-switch", "re");
	char begin[64], *line = NULL;
	struct stat stat = {};
	bool found = false;
	size_t size = 0;
	int length;

	if (!record)
		return false;
	if (fstatat(AT_FDCWD, "/proc/self/ns/net", &stat, 0))
		stat.st_ino = 0;
	length = snprintf(begin, sizeof(begin), "qdisc\t%llu\t%s\t",
			  (unsigned long long)stat.st_ino, device->link->name);
	while (!found && getline(&line, &size, record) > 0)
		found = strncmp(line, begin, length) == 0;
	free(line);
	fclose(record);
	return found;
}

/*
 * Between timely-switch away and back a setup would save the qdiscs of timely-switch as those to
 * restore, and a teardown would find none of the qdiscs of the setup. Prints an error then.
 */
static bool is_away(const struct device *device)
{
	if (tree_has_kind(&device->now, "timely") || !is_switched_away(device))
		return false;
	tell_err("%s: timely-switch away has replaced its qdiscs: run timely-switch back first",
		 device->name);
	return true;
}

/* Note in the state files that the setup is complete. */
static int finish(struct setup *setup)
{
	for (size_t i = 0; i < setup->count && !setup->dry; i++) {
		struct device *device = &setup->device[i];
		int err = save(setup, device, false);

		if (!err)
			continue;
		tell_err("%s: the state file cannot be written: %s", device->name, error_text(err));
		return err;
	}
	return 0;
}

static int set_up(struct setup *setup)
{
	char congctl[32];
	int err = 0;

	for (size_t i = 0; i < setup->count; i++)
		if (is_away(&setup->device[i]) || !may_set_up(setup, &setup->device[i]))
			return STATUS_FAILED;
	for (size_t i = 0; i < setup->count && !err; i++) {
		err = save_first(setup, &setup->device[i]);
		err = err ? err : set_up_device(setup, &setup->device[i]);
	}
	err = err ? err : finish(setup);
	/* undo() does not restore this: it is the last change. */
	if (!err && setup->congctl && has_other_congctl(congctl, sizeof(congctl)))
		err = set_congctl(setup, "timely");
	if (err) {
		undo(setup);
		return STATUS_FAILED;
	}
	advise(setup);
	return STATUS_OK;
}

/* ---- teardown ---- */

/* Connections that a qdisc has paced do not pace themselves later. */
static void advise_pacing(const struct device *device)
{
	static const char * const others[] = { "mq", "fq", "timely" };

	for (size_t i = 0; i < device->before.count; i++) {
		const char *kind = device->before.node[i].kind;

		if (is_one_of(kind, others, ARRAY_SIZE(others)))
			continue;
		tell_info("# %s: connections that timely has paced send in bursts under %s until they end",
			  device->name, plain(kind));
		return;
	}
}

static int restore_congctl(const struct setup *setup, const struct device *device)
{
	char value[32];

	if (!device->congctl[0])
		return 0;
	if (!has_other_congctl(value, sizeof(value)))
		return set_congctl(setup, device->congctl);
	tell_info("# the default congestion control was changed to %s after the setup: it stays",
		  plain(value));
	return 0;
}

/* Restore the former qdiscs, or if that fails those of now. */
static int restore_before(struct setup *setup, struct device *device)
{
	int err;

	/* That the disk is full does not prevent a teardown. */
	if (!setup->dry)
		save(setup, device, true);
	err = restore(setup, device, &device->before);
	if (!err)
		return 0;
	tell_info("# putting timely on %s again", device->name);
	if (!restore(setup, device, &device->now) && !setup->dry)
		undo_state(setup, device);
	return err;
}

static int tear_down_device(struct setup *setup, struct device *device)
{
	bool has_timely = tree_has_kind(&device->now, "timely");
	int err;

	if (!device->former) {
		tell_info("# %s: nothing to restore%s", device->name, has_timely ?
			  ", because its qdisc timely was not installed by timelyctl setup" : "");
		return 0;
	}
	if (is_away(device))
		return -EBUSY;
	if (has_timely || is_half_way(device)) {
		err = restore_before(setup, device);
		if (err)
			return err;
		advise_pacing(device);
	} else {
		tell_info("# %s: its qdiscs were changed after the setup: they stay", device->name);
	}
	err = restore_congctl(setup, device);
	if (!err && !setup->dry)
		err = state_remove(setup->dir, device->state);
	return err;
}

static bool has_device(const struct setup *setup, int ifindex)
{
	for (size_t i = 0; i < setup->count; i++)
		if (setup->device[i].link->ifindex == ifindex)
			return true;
	return false;
}

/*
 * Name the state file of a device that this network namespace no longer has. If the device was
 * registered again, for example with its driver, it has another interface index. The kernel has
 * forgotten the qdiscs of the former one, but not the congestion control.
 */
static void tell_gone(const struct setup *setup, int ifindex)
{
	struct device gone = {};
	char control[96] = "", other[32];

	snprintf(gone.name, sizeof(gone.name), "if%d", ifindex);
	if (!state_name(gone.state, "setup", ifindex) && load(setup, &gone)) {
		if (gone.congctl[0] && !has_other_congctl(other, sizeof(other)))
			snprintf(control, sizeof(control),
				 "sysctl -w net.ipv4.tcp_congestion_control=%s; ", gone.congctl);
		tell_info("# /run/timely/%s belongs to a device that no longer exists, or was registered again; to restore what was before its setup: %srm /run/timely/%s",
			  gone.state, control, gone.state);
	}
	free_device(&gone);
}

/*
 * Name the other state files of this network namespace: those of devices that no longer exist, and
 * after the teardown of a bond and the like those of devices that may have been its ports.
 */
static void tell_others(const struct setup *setup)
{
	char begin[STATE_NAME];
	int fd = setup->dir < 0 || state_name(begin, "setup", 0) ? -1 :
		 openat(setup->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;

	if (!dir)
		return;
	begin[strlen(begin) - 1] = 0;
	while ((entry = readdir(dir))) {
		bool ours = strncmp(entry->d_name, begin, strlen(begin)) == 0;
		int ifindex = ours ? atoi(entry->d_name + strlen(begin)) : 0;
		const struct link *link = link_by_index(&setup->links, ifindex);

		if (ifindex && !link)
			tell_gone(setup, ifindex);
		else if (link && setup->upper && !has_device(setup, ifindex))
			tell_info("# %s was set up, too, and is not below this device: timelyctl teardown %s",
				  plain(link->name), plain(link->name));
	}
	closedir(dir);
}

static int tear_down(struct setup *setup)
{
	int status = STATUS_OK;

	for (size_t i = 0; i < setup->count; i++)
		if (tear_down_device(setup, &setup->device[i]))
			status = STATUS_FAILED;
	tell_others(setup);
	return status;
}

/* ---- commands ---- */

/* Signals wait until the change is complete. */
static int act_at_once(struct setup *setup, int (*action)(struct setup *))
{
	sigset_t before;
	int status;

	hold_signals(&before);
	status = action(setup);
	fflush(stdout);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return status;
}

static int act(const char *command, char **words, int count, bool json,
	       int (*action)(struct setup *))
{
	bool is_setup = action == set_up;
	static struct setup setup;
	const char *name = NULL;
	int status = STATUS_FAILED;

	for (int i = 0; i < count; i++) {
		const char *word = words[i];

		if (strcmp(word, "--dry-run") == 0)
			setup.dry = true;
		else if (is_setup && strcmp(word, "--force") == 0)
			setup.force = true;
		else if (is_setup && name && strcmp(word, "congctl") == 0)
			setup.congctl = true;
		else if (!name && word[0] != '-')
			name = word;
		else
			return usage_err("%s: unexpected word \"%s\"", command, plain(word));
	}
	if (json)
		return usage_err("%s: -j is only for commands that show something", command);
	if (!name)
		return usage_err("%s: the device's name is missing", command);
	setup.dir = state_open(is_setup && !setup.dry);
	if (setup.dir < 0 && setup.dir != -ENOENT)
		return STATUS_FAILED;
	if (read_devices(&setup, name))
		status = act_at_once(&setup, action);
	close_setup(&setup);
	return status;
}

int command_setup(char **words, int count, bool json)
{
	return act("setup", words, count, json, set_up);
}

int command_teardown(char **words, int count, bool json)
{
	return act("teardown", words, count, json, tear_down);
}
