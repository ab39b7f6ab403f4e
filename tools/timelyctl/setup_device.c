// SPDX-License-Identifier: GPL-2.0
/*
 * One device of `timelyctl setup` and `teardown`: single changes, which are printed as commands of
 * tc and sysctl; the state file, which has the former qdiscs; and restoring these.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/pkt_sched.h>

#include "setup.h"

#define CONGCTL "/proc/sys/net/ipv4/tcp_congestion_control"

/* ---- messages ---- */

/* A handle or class as tc writes it: "root", "1:" or "1:a". */
static const char *class_text(char *text, __u32 class)
{
	if (class == TC_H_ROOT)
		return "root";
	if (TC_H_MIN(class))
		sprintf(text, "%x:%x", TC_H_MAJ(class) >> 16, TC_H_MIN(class));
	else
		sprintf(text, "%x:", TC_H_MAJ(class) >> 16);
	return text;
}

static void tell_put(const struct device *device, const struct node *node)
{
	char parent[16], handle[16];

	printf("tc qdisc replace dev %s %s%s", device->name,
	       node->parent == TC_H_ROOT ? "" : "parent ", class_text(parent, node->parent));
	if (node->handle)
		printf(" handle %s", class_text(handle, node->handle));
	tell_info(" %s%s", node->kind, node->bytes ? "	# with its former options" : "");
}

void tell_kernel(const struct setup *setup, const struct device *device, const char *what, int err)
{
	if (err == -EPERM)
		tell_err("%s: this needs root (CAP_NET_ADMIN)", device->name);
	else if (setup->talk.why[0])
		tell_err("%s: %s: %s", device->name, what, setup->talk.why);
	else
		tell_err("%s: %s: %s", device->name, what, error_text(err));
}

/* ---- single changes ---- */

/* Install a qdisc, or with --dry-run print the command. Prints errors; returns 0 or an errno. */
int put(struct setup *setup, struct device *device, const struct node *node)
{
	char what[64];
	int err;

	tell_put(device, node);
	if (setup->dry)
		return 0;
	err = tree_put(&setup->talk, device->link->ifindex, node);
	if (!err) {
		device->changed = true;
		return 0;
	}
	snprintf(what, sizeof(what), "the kernel does not install the qdisc %s", node->kind);
	tell_kernel(setup, device, what, err);
	if (err == -ENOENT && strcmp(node->kind, "timely") == 0)
		tell_err("is the module loaded? modprobe sch_timely");
	return err;
}

int put_kind(struct setup *setup, struct device *device, __u32 parent, __u32 handle,
	     const char *kind)
{
	struct node node = { .parent = parent, .handle = handle };

	snprintf(node.kind, sizeof(node.kind), "%s", kind);
	return put(setup, device, &node);
}

static int clear(struct setup *setup, struct device *device)
{
	int err = 0;

	tell_info("tc qdisc del dev %s root", device->name);
	if (!setup->dry)
		err = tree_clear(&setup->talk, device->link->ifindex);
	if (err)
		tell_kernel(setup, device, "the root qdisc cannot be deleted", err);
	return err;
}

/* Is the default congestion control another one than timely? Writes its name to @value. */
bool has_other_congctl(char *value, size_t size)
{
	return read_line(CONGCTL, value, size) && strcmp(value, "timely") != 0;
}

int set_congctl(const struct setup *setup, const char *value)
{
	int err = 0;

	tell_info("sysctl -w net.ipv4.tcp_congestion_control=%s", value);
	if (!setup->dry)
		err = write_line(CONGCTL, value);
	if (err == -ENOENT)
		tell_err("there is no congestion control %s: modprobe tcp_%s", value, value);
	else if (err)
		tell_err("the congestion control cannot be set to %s: %s", value, error_text(err));
	return err;
}

/* ---- the state file of a device ---- */

/*
 * Write the state file. While the qdiscs are changed it has the line "unfinished": if the program
 * is killed, the next one must not take a part of the change for the work of an administrator.
 */
int save(struct setup *setup, struct device *device, bool unfinished)
{
	const struct tree *tree = &device->before;
	char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);
	int err;

	if (!file)
		out_of_memory();
	fprintf(file, "timelyctl setup 1\n");
	if (unfinished)
		fprintf(file, "unfinished\n");
	if (device->congctl[0])
		fprintf(file, "congctl %s\n", device->congctl);
	for (size_t i = 0; i < tree->count; i++) {
		const struct node *node = &tree->node[i];
		char *options = hex_text(node->options, node->bytes);

		fprintf(file, "qdisc %x %x %s %s\n", node->parent, node->handle, node->kind,
			options);
		free(options);
	}
	fprintf(file, "end\n");
	if (fclose(file))
		out_of_memory();
	err = state_write(setup->dir, device->state, text);
	free(text);
	return err;
}

/* May the word be the name of a qdisc or a congestion control? Those in BPF may have a dot. */
static bool is_name(const char *word, size_t size)
{
	size_t length = 0;

	while (isalnum((unsigned char)word[length]) ||
	       (word[length] && strchr("_-.", word[length])))
		length++;
	return length && length < size && !word[length];
}

/* Parse a line "qdisc PARENT HANDLE KIND OPTIONS" without its first word. */
static bool load_node(struct tree *tree, char *words)
{
	struct node *node = tree_add(tree);
	char *kind, *options = words;
	char *parent = strsep(&options, " "), *end;
	char *handle = strsep(&options, " ");

	kind = strsep(&options, " ");
	if (!options || !is_name(kind, sizeof(node->kind)) || strlen(options) > 2 * 0xffff)
		return false;
	snprintf(node->kind, sizeof(node->kind), "%s", kind);
	node->parent = strtoul(parent, &end, 16);
	if (*end)
		return false;
	node->handle = strtoul(handle, &end, 16);
	return !*end && parse_hex(options, &node->options, &node->bytes);
}

/* Parse a state file. The last line is "end", otherwise the file is not complete. */
static bool load_lines(struct device *device, char *text)
{
	char *line = strsep(&text, "\n");

	if (strcmp(line, "timelyctl setup 1") != 0)
		return false;
	while (text && (line = strsep(&text, "\n"))) {
		if (strcmp(line, "end") == 0)
			return true;
		if (strcmp(line, "unfinished") == 0) {
			device->unfinished = true;
		} else if (strncmp(line, "qdisc ", 6) == 0) {
			if (!load_node(&device->before, line + 6))
				return false;
		} else if (strncmp(line, "congctl ", 8) == 0 &&
			   is_name(line + 8, sizeof(device->congctl))) {
			snprintf(device->congctl, sizeof(device->congctl), "%s", line + 8);
		} else {
			return false;
		}
	}
	return false;
}

/* Read the state file of the device, if there is one. */
bool load(const struct setup *setup, struct device *device)
{
	char *text = setup->dir < 0 ? NULL : state_read(setup->dir, device->state);
	bool valid;

	if (!text && (setup->dir < 0 || errno == ENOENT))
		return true;
	device->former = text ? strdup(text) : NULL;
	if (text && !device->former)
		out_of_memory();
	valid = text && load_lines(device, text);
	free(text);
	if (!valid)
		tell_err("%s: the state file /run/timely/%s cannot be read: restore the qdiscs with tc, and delete the file",
			 device->name, device->state);
	return valid;
}

/* ---- restoring ---- */

/* A handle for mq that no qdisc of the device has. */
__u32 free_handle(const struct device *device)
{
	__u32 handle = 1 << 16;

	while (tree_has_handle(&device->now, handle) || tree_has_handle(&device->before, handle))
		handle += 1 << 16;
	return handle;
}

/*
 * Install the qdiscs below mq. Qdiscs that the kernel makes by default exist already; only if the
 * default has changed, another one has to be put there. @made has the qdiscs that exist now.
 */
static int restore_queues(struct setup *setup, struct device *device, const struct tree *wanted,
			  const struct tree *made)
{
	__u32 handle = tree_root(wanted)->handle;
	int err = 0;

	/* Those with a handle come first, because the kernel may choose this handle for others. */
	for (size_t i = 0; i < 2 * wanted->count && !err; i++) {
		struct node node = wanted->node[i % wanted->count];
		const struct node *there = tree_find(made, node.parent);
		bool with_handle = i < wanted->count;

		if (node.parent == TC_H_ROOT || with_handle == !node.handle)
			continue;
		if (!node.handle && (!there || strcmp(there->kind, node.kind) == 0))
			continue;
		if (!handle) {
			handle = free_handle(device);
			err = put_kind(setup, device, TC_H_ROOT, handle, "mq");
		}
		node.parent = handle | TC_H_MIN(node.parent);
		err = err ? err : put(setup, device, &node);
	}
	return err;
}

static int restore_root(struct setup *setup, struct device *device, const struct node *root,
			struct tree *made)
{
	const struct node *there = tree_root(made);
	int err;

	if (!root->handle && (!there || strcmp(there->kind, root->kind) == 0))
		return 0;
	err = put(setup, device, root);
	if (err || setup->dry)
		return err;
	tree_free(made);
	return tree_get(&setup->talk, device->link->ifindex, made);
}

/* Give the device the qdiscs @wanted. Prints an error if that fails. */
int restore(struct setup *setup, struct device *device, const struct tree *wanted)
{
	const struct node *root = tree_root(wanted), *there;
	struct tree made;
	int err = tree_get(&setup->talk, device->link->ifindex, &made);

	there = tree_root(&made);
	if (!err && there && there->handle) {
		err = clear(setup, device);
		tree_free(&made);
		if (!err && !setup->dry)
			err = tree_get(&setup->talk, device->link->ifindex, &made);
	}
	if (!err && root)
		err = restore_root(setup, device, root, &made);
	if (!err && root)
		err = restore_queues(setup, device, wanted, &made);
	tree_free(&made);
	return err;
}
