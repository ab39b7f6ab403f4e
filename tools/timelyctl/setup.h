/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations shared by the files of `timelyctl setup`, `teardown` and `trial`. Functions that can
 * fail return 0 or a negative errno, and print nothing unless their comments say so.
 */
#ifndef SETUP_H
#define SETUP_H

#include "timelyctl.h"

/* ---- setup_tree.c: the qdiscs of a device ---- */

/**
 * struct node - a qdisc
 * @parent: the class that the qdisc belongs to, or TC_H_ROOT
 * @handle: its handle; 0: the kernel made it by default (in a request: the kernel chooses a handle)
 * @kind: its kind, such as "fq_codel"
 * @options: payload of TCA_OPTIONS
 * @bytes: length of @options; 0 for none
 */
struct node {
	__u32 parent;
	__u32 handle;
	char kind[IFNAMSIZ];
	unsigned char *options;
	size_t bytes;
};

/**
 * struct tree - the qdiscs of a device for sent packets
 * @ifindex: interface index of the device
 * @node: the qdiscs
 * @count: number of qdiscs
 * @resized: a qdisc has a size table (tc's option stab), which tree_put() cannot restore
 */
struct tree {
	int ifindex;
	struct node *node;
	size_t count;
	bool resized;
};

int tree_get(struct talk *talk, int ifindex, struct tree *tree);
void tree_free(struct tree *tree);
/* The new node is zeroed and stays valid until the next call. */
struct node *tree_add(struct tree *tree);
const struct node *tree_find(const struct tree *tree, __u32 parent);
const struct node *tree_root(const struct tree *tree);
bool tree_has_kind(const struct tree *tree, const char *kind);
bool tree_has_handle(const struct tree *tree, __u32 handle);
int tree_has_filters(struct talk *talk, int ifindex, __u32 handle);
int tree_put(struct talk *talk, int ifindex, const struct node *node);
int tree_clear(struct talk *talk, int ifindex);

/* ---- setup_state.c: what a teardown restores ---- */

#define STATE_DIR "/run/timely"

/* Size of the name of a state file. */
#define STATE_NAME 64

/*
 * Open and lock the directory of state files: one program at a time. Returns a descriptor, or a
 * negative errno after an error message. -ENOENT without a message: there is no directory, and
 * @create is false.
 */
int state_open(bool create);
int state_name(char *name, const char *what, int ifindex);
/* NULL, and errno is set, if the file cannot be read. The caller frees the text. */
char *state_read(int dir, const char *name);
int state_write(int dir, const char *name, const char *text);
int state_remove(int dir, const char *name);

char *hex_text(const unsigned char *bytes, size_t count);
bool parse_hex(const char *text, unsigned char **bytes, size_t *count);

/* ---- setup_device.c: a device: changes, state file, restoring ---- */

/**
 * struct device - a device whose qdiscs are changed
 * @link: the device
 * @name: its name, printable
 * @state: name of its state file
 * @queues: transmit queues in use
 * @now: its qdiscs when the program started
 * @before: its qdiscs before the setup, from the state file
 * @congctl: the default congestion control before the setup, if the setup changed it; else ""
 * @former: text of the state file when the program started; NULL: there was none
 * @unfinished: the state file says that a setup or teardown has begun, but not that it has ended
 * @written: this program has written the state file
 * @changed: this program has changed the qdiscs
 */
struct device {
	const struct link *link;
	char name[IFNAMSIZ];
	char state[STATE_NAME];
	unsigned int queues;
	struct tree now;
	struct tree before;
	char congctl[32];
	char *former;
	bool unfinished;
	bool written;
	bool changed;
};

/**
 * struct setup - a command
 * @talk: socket for requests
 * @links: all devices
 * @device: the devices to change: the one of the command line, or those below it
 * @count: number of these devices
 * @dir: directory of state files; negative for none
 * @upper: the device of the command line has others below it
 * @congctl: make timely the default congestion control, too
 * @dry: print the commands, and change nothing
 * @force: replace qdiscs that an administrator has configured
 */
struct setup {
	struct talk talk;
	struct links links;
	struct device device[64];
	size_t count;
	int dir;
	bool upper;
	bool congctl;
	bool dry;
	bool force;
};

int put(struct setup *setup, struct device *device, const struct node *node);
int put_kind(struct setup *setup, struct device *device, __u32 parent, __u32 handle,
	     const char *kind);
int set_congctl(const struct setup *setup, const char *value);
bool has_other_congctl(char *value, size_t size);
void tell_kernel(const struct setup *setup, const struct device *device, const char *what, int err);
int save(struct setup *setup, struct device *device, bool unfinished);
bool load(const struct setup *setup, struct device *device);
__u32 free_handle(const struct device *device);
int restore(struct setup *setup, struct device *device, const struct tree *wanted);

/* ---- trial_route.c: routes of the main table ---- */

/**
 * struct route - a route
 * @message: the kernel's message that has reported the route
 * @bytes: length of the message
 */
struct route {
	struct nlmsghdr *message;
	size_t bytes;
};

void route_free(struct route *route);
int route_get(struct talk *talk, const struct prefix *prefix, struct route *route);
int route_find(struct talk *talk, const struct prefix *prefix, const struct route *former,
	       struct route *route);
bool route_is_valid(const struct route *route);
bool route_expires(const struct route *route);
void route_congctl(const struct route *route, char *name, size_t size);
bool route_same(const struct route *route, const struct route *other);
int route_set(struct talk *talk, const struct route *route, const char *congctl);

/* ---- trial_cgroup.c: control groups ---- */

/**
 * struct group - a control group whose new connections use timely
 * @path: its directory
 * @id: its identifier: the inode number of the directory
 * @program: identifier of the BPF program
 * @file: the program, from group_load() on
 */
struct group {
	char *path;
	__u64 id;
	__u32 program;
	int file;
};

bool group_find(const char *path, struct group *group);
int group_load(struct group *group);
int group_attach(const struct group *group);
int group_detach(const struct group *group);
void groups_with_program(void (*see)(const struct group *group, void *data), void *data);

#endif /* SETUP_H */
