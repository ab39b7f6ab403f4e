// SPDX-License-Identifier: GPL-2.0
/*
 * A control group whose new connections use timely: a BPF program sets the congestion control of a
 * socket when it connects, and when a connection to it is established.
 *
 * The kernel runs the program for sockets of the control group and of the groups below it. The
 * program is so short that it is written here as instructions: it needs no compiler and no libbpf.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <mntent.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/magic.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#include "setup.h"

/* Returns a number that is not negative, most often a file descriptor, or a negative errno. */
static int bpf(int command, union bpf_attr *attr)
{
	int result = syscall(SYS_bpf, command, attr, sizeof(*attr));

	return result < 0 ? -errno : result;
}

/* The kernel refuses a request with other bits than the command's. */
static union bpf_attr no_attr(void)
{
	union bpf_attr attr;

	memset(&attr, 0, sizeof(attr));
	return attr;
}

/* ---- the program ---- */

#define MOVE_REG(to, from)	{ BPF_ALU64 | BPF_MOV | BPF_X, to, from, 0, 0 }
#define MOVE(to, number)	{ BPF_ALU64 | BPF_MOV | BPF_K, to, 0, 0, number }

static const char title[] = "timely_trial";

/* Load the program: returns a file descriptor or a negative errno. */
static int load_program(void)
{
	static const char name[8] = "timely";
	__s32 part[2];
	struct bpf_insn program[] = {
		MOVE_REG(BPF_REG_6, BPF_REG_1),		/* the struct bpf_sock_ops */
		{ BPF_LDX | BPF_MEM | BPF_W, BPF_REG_2, BPF_REG_1,
		  offsetof(struct bpf_sock_ops, op), 0 },
		/* Other calls than these two end here. */
		{ BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_2, 0, 1, BPF_SOCK_OPS_TCP_CONNECT_CB },
		{ BPF_JMP | BPF_JNE | BPF_K, BPF_REG_2, 0, 9, BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB },
		/* bpf_setsockopt(r6, IPPROTO_TCP, TCP_CONGESTION, name, sizeof(name)) */
		{ BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -8, 0 },
		{ BPF_ST | BPF_MEM | BPF_W, BPF_REG_10, 0, -4, 0 },
		MOVE_REG(BPF_REG_1, BPF_REG_6),
		MOVE(BPF_REG_2, IPPROTO_TCP),
		MOVE(BPF_REG_3, TCP_CONGESTION),
		MOVE_REG(BPF_REG_4, BPF_REG_10),
		{ BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_4, 0, 0, -8 },
		MOVE(BPF_REG_5, sizeof(name)),
		{ BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_setsockopt },
		MOVE(BPF_REG_0, 1),
		{ BPF_JMP | BPF_EXIT, 0, 0, 0, 0 },
	};
	union bpf_attr attr = no_attr();

	attr.prog_type = BPF_PROG_TYPE_SOCK_OPS;
	attr.insns = (uintptr_t)program;
	attr.insn_cnt = ARRAY_SIZE(program);
	attr.license = (uintptr_t)"GPL";
	memcpy(attr.prog_name, title, sizeof(title));
	memcpy(part, name, sizeof(part));
	program[4].imm = part[0];
	program[5].imm = part[1];
	return bpf(BPF_PROG_LOAD, &attr);
}

static int read_info(int program, struct bpf_prog_info *info)
{
	union bpf_attr attr = no_attr();
	int err;

	memset(info, 0, sizeof(*info));
	attr.info.bpf_fd = program;
	attr.info.info_len = sizeof(*info);
	attr.info.info = (uintptr_t)info;
	err = bpf(BPF_OBJ_GET_INFO_BY_FD, &attr);
	return err < 0 ? err : 0;
}

/* Returns a file descriptor or a negative errno. */
static int open_program(__u32 id)
{
	union bpf_attr attr = no_attr();

	attr.prog_id = id;
	return bpf(BPF_PROG_GET_FD_BY_ID, &attr);
}

/* ---- the control group ---- */

/* Open the directory of the control group: -ENOENT if it is another group of the same name. */
static int open_group(const struct group *group)
{
	int dir = open(group->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct stat stat;

	if (dir < 0)
		return -errno;
	if (!fstat(dir, &stat) && stat.st_ino == group->id)
		return dir;
	close(dir);
	return -ENOENT;
}

/* Find the control group of this directory. Prints errors. */
bool group_find(const char *path, struct group *group)
{
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct statfs files = {};
	struct stat stat = {};
	bool found = false;

	if (dir < 0)
		tell_err("\"%s\" cannot be opened: %s", plain(path), error_text(errno));
	else if (fstatfs(dir, &files) || fstat(dir, &stat))
		tell_err("\"%s\": %s", plain(path), error_text(errno));
	else if (files.f_type == CGROUP_SUPER_MAGIC)
		tell_err("\"%s\" is a control group of version 1: only those of version 2 are possible",
			 plain(path));
	else if (files.f_type != CGROUP2_SUPER_MAGIC)
		tell_err("\"%s\" is no directory of a control group, such as /sys/fs/cgroup/system.slice",
			 plain(path));
	else
		found = true;
	if (dir >= 0)
		close(dir);
	group->id = stat.st_ino;
	group->path = found ? realpath(path, NULL) : NULL;
	return group->path;
}

/* Load the program, without effect yet: group->file keeps it until group_attach(). */
int group_load(struct group *group)
{
	struct bpf_prog_info info;
	int err;

	group->file = load_program();
	if (group->file < 0)
		return group->file;
	err = read_info(group->file, &info);
	group->program = info.id;
	return err;
}

static int change_group(const struct group *group, int command, int program)
{
	union bpf_attr attr = no_attr();
	int dir = open_group(group);
	int err;

	if (dir < 0)
		return dir;
	attr.target_fd = dir;
	attr.attach_bpf_fd = program;
	attr.attach_type = BPF_CGROUP_SOCK_OPS;
	if (command == BPF_PROG_ATTACH)
		attr.attach_flags = BPF_F_ALLOW_MULTI;
	err = bpf(command, &attr);
	close(dir);
	return err < 0 ? err : 0;
}

/* Let new connections of the control group use timely. */
int group_attach(const struct group *group)
{
	return change_group(group, BPF_PROG_ATTACH, group->file);
}

/* The reverse: -ENOENT if the group is gone, or the program is not attached to it any more. */
int group_detach(const struct group *group)
{
	int program = open_program(group->program);
	int err;

	if (program < 0)
		return program;
	err = change_group(group, BPF_PROG_DETACH, program);
	close(program);
	return err;
}

/* ---- all control groups ---- */

/* Programs that one control group can have: BPF_CGROUP_MAX_PROGS of the kernel. */
#define MAX_PROGRAMS 64

/* Is this the program of a trial? */
static bool is_of_trial(__u32 id)
{
	struct bpf_prog_info info;
	int program = open_program(id);
	bool same;

	if (program < 0)
		return false;
	same = !read_info(program, &info) && strcmp(info.name, title) == 0;
	close(program);
	return same;
}

/* Call @see for each program of a trial that is attached to the control group of this directory. */
static void see_group(char *path, void (*see)(const struct group *group, void *data), void *data)
{
	union bpf_attr attr = no_attr();
	struct group group = { .path = path, .file = -1 };
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	__u32 id[MAX_PROGRAMS] = {};

	if (dir < 0)
		return;
	attr.query.target_fd = dir;
	attr.query.attach_type = BPF_CGROUP_SOCK_OPS;
	attr.query.prog_ids = (uintptr_t)id;
	attr.query.prog_cnt = ARRAY_SIZE(id);
	if (bpf(BPF_PROG_QUERY, &attr) < 0)
		attr.query.prog_cnt = 0;
	close(dir);
	for (__u32 i = 0; i < attr.query.prog_cnt && i < ARRAY_SIZE(id); i++) {
		group.program = id[i];
		if (is_of_trial(id[i]))
			see(&group, data);
	}
}

/* The directory of the first file system of control groups of version 2, or NULL. */
static char *find_groups(void)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");
	struct mntent *mount;
	char *path = NULL;

	while (mounts && !path && (mount = getmntent(mounts)))
		if (strcmp(mount->mnt_type, "cgroup2") == 0)
			path = strdup(mount->mnt_dir);
	if (mounts)
		endmntent(mounts);
	return path;
}

/* Call @see for each control group of this host that has the program of a trial. */
void groups_with_program(void (*see)(const struct group *group, void *data), void *data)
{
	char *root = find_groups();
	char * const path[] = { root, NULL };
	FTS *walk = root ? fts_open(path, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL) : NULL;
	FTSENT *entry;

	while (walk && (entry = fts_read(walk)))
		if (entry->fts_info == FTS_D)
			see_group(entry->fts_path, see, data);
	if (walk)
		fts_close(walk);
	free(root);
}
