// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl trial` lets the new connections of a route, or of a control group, use timely for a
 * limited time.
 *
 * What is needed to undo the trial is saved in a state file: the former route, or which program
 * was attached to the control group. A process in the background undoes the trial when the time is
 * over, unless `trial confirm` or `trial revert` has removed the state file by then. If that fails,
 * the process tries again until it succeeds, or the state file is removed. The process
 * does not depend on the terminal. It keeps a lock on the state file, by which `trial status` sees
 * that the process is alive.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <netinet/in.h>

#include "setup.h"

#define MINUTES_DEFAULT 10
#define MINUTES_MAX (24 * 60)

/* Time after which an undo that has failed is tried again, s. */
#define RETRY_S 10

/**
 * struct trial - a trial
 * @until: its end, seconds of CLOCK_BOOTTIME, which also counts while the host is suspended
 * @prefix: destination of the route
 * @route: the former route
 * @group: the control group; its path is NULL if the trial is that of a route
 * @state: name of the state file
 * @dir: directory of state files; negative for none
 * @active: there is a trial
 */
struct trial {
	__s64 until;
	struct prefix prefix;
	struct route route;
	struct group group;
	char state[STATE_NAME];
	int dir;
	bool active;
};

static __s64 boot_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return now.tv_sec;
}

/* What the trial is of, for messages. */
#define TRIAL_TEXT 160

static const char *trial_text(char *text, const struct trial *trial)
{
	char prefix[PREFIX_TEXT];

	if (trial->group.path)
		snprintf(text, TRIAL_TEXT, "the control group %s", plain(trial->group.path));
	else
		snprintf(text, TRIAL_TEXT, "the route %s", prefix_text(prefix, &trial->prefix));
	return text;
}

/* ---- the state file ---- */

static const char route_title[] = "timelyctl trial 1";
static const char group_title[] = "timelyctl trial cgroup 1";

static int save_trial(const struct trial *trial)
{
	const struct group *group = &trial->group;
	const char *path = group->path;
	char prefix[PREFIX_TEXT], *hex, *text;
	int err;

	if (path) {
		/* A path may have any characters. */
		hex = hex_text((const unsigned char *)path, strlen(path) + 1);
		err = asprintf(&text, "%s\n%lld\n%llu\n%s\n%u\n", group_title,
			       (long long)trial->until, (unsigned long long)group->id, hex,
			       group->program);
	} else {
		hex = hex_text((unsigned char *)trial->route.message, trial->route.bytes);
		err = asprintf(&text, "%s\n%lld\n%s\n%s\n", route_title,
			       (long long)trial->until, prefix_text(prefix, &trial->prefix), hex);
	}
	if (err < 0)
		out_of_memory();
	err = state_write(trial->dir, trial->state, text);
	free(hex);
	free(text);
	return err;
}

static bool load_route(struct trial *trial, char **line)
{
	unsigned char *message = NULL;

	if (!parse_prefix(line[0], &trial->prefix) ||
	    !parse_hex(line[1], &message, &trial->route.bytes))
		return false;
	trial->route.message = (struct nlmsghdr *)message;
	return route_is_valid(&trial->route);
}

static bool load_group(struct trial *trial, char **line)
{
	unsigned char *path = NULL;
	__s64 id, program;
	size_t bytes;

	if (!parse_number(line[0], 1, INT64_MAX, &id) || !parse_hex(line[1], &path, &bytes))
		return false;
	trial->group.path = (char *)path;
	if (!bytes || path[bytes - 1] || !parse_number(line[2], 1, UINT32_MAX, &program))
		return false;
	trial->group.id = id;
	trial->group.program = program;
	return true;
}

static bool load_lines(struct trial *trial, char *text)
{
	size_t count = 0;
	char *line[5];

	/* The last line has an end, too: otherwise the file is not complete. */
	while (count < ARRAY_SIZE(line) && strchr(text, '\n'))
		line[count++] = strsep(&text, "\n");
	if (count < 4 || *text || !parse_number(line[1], 0, INT64_MAX, &trial->until))
		return false;
	if (count == 4)
		return strcmp(line[0], route_title) == 0 && load_route(trial, line + 2);
	return strcmp(line[0], group_title) == 0 && load_group(trial, line + 2);
}

/* Read the state file, if there is one. Prints an error if the file is not valid. */
static bool trial_open(struct trial *trial, bool create)
{
	char *text = NULL;
	int err;

	memset(trial, 0, sizeof(*trial));
	trial->dir = state_open(create);
	if (trial->dir == -ENOENT)
		return true;
	if (trial->dir < 0)
		return false;
	err = state_name(trial->state, "trial", 0);
	if (!err)
		text = state_read(trial->dir, trial->state);
	if (!err && !text && errno == ENOENT)
		return true;
	trial->active = text && load_lines(trial, text);
	free(text);
	if (!trial->active)
		tell_err("the state file /run/timely/%s cannot be read: restore the route with ip route, or the control group with bpftool cgroup, and delete the file",
			 trial->state);
	return trial->active;
}

static void trial_close(struct trial *trial)
{
	route_free(&trial->route);
	free(trial->group.path);
	if (trial->dir >= 0)
		close(trial->dir);
}

/* ---- the end of a trial ---- */

/* What revert() has done. */
enum reverted {
	REVERTED,
	REVERTED_GONE,		/* the route or the control group does not exist any more */
	REVERTED_CHANGED,	/* the route was changed meanwhile */
	REVERTED_ERROR,
	REVERTED_COUNT,
};

static const char * const route_reverted[REVERTED_COUNT] = {
	[REVERTED] = "the former route is restored",
	[REVERTED_GONE] = "the route does not exist any more: nothing to restore",
	[REVERTED_CHANGED] = "the route was changed during the trial: it stays as it is",
	[REVERTED_ERROR] = "the former route cannot be restored",
};

static const char * const group_reverted[REVERTED_COUNT] = {
	[REVERTED] = "new connections of the control group do not use timely by it any more",
	[REVERTED_GONE] = "the control group, or its program, does not exist any more",
	[REVERTED_ERROR] = "the program cannot be detached from the control group",
};

static const char *reverted_text(const struct trial *trial, enum reverted result)
{
	return (trial->group.path ? group_reverted : route_reverted)[result];
}

/* Restore the route, unless somebody has changed it meanwhile. @err is set for REVERTED_ERROR. */
static enum reverted revert_route(const struct trial *trial, int *err)
{
	char congctl[16];
	struct route now;
	struct talk talk;
	enum reverted result = REVERTED_ERROR;

	*err = talk_open(&talk, NETLINK_ROUTE);
	if (*err)
		return result;
	*err = route_find(&talk, &trial->prefix, &trial->route, &now);
	if (*err == -ENOENT) {
		result = REVERTED_GONE;
	} else if (!*err) {
		route_congctl(&now, congctl, sizeof(congctl));
		if (strcmp(congctl, "timely") != 0 || !route_same(&now, &trial->route)) {
			result = REVERTED_CHANGED;
		} else {
			*err = route_set(&talk, &trial->route, NULL);
			result = *err ? REVERTED_ERROR : REVERTED;
		}
	}
	route_free(&now);
	talk_close(&talk);
	return result;
}

static enum reverted revert_group(const struct trial *trial, int *err)
{
	*err = group_detach(&trial->group);
	if (*err == -ENOENT)
		return REVERTED_GONE;
	return *err ? REVERTED_ERROR : REVERTED;
}

static enum reverted revert(const struct trial *trial, int *err)
{
	enum reverted result = trial->group.path ? revert_group(trial, err) :
						   revert_route(trial, err);

	if (result != REVERTED_ERROR)
		state_remove(trial->dir, trial->state);
	return result;
}

/* ---- the process in the background ---- */

/* The state file has been removed. */
static bool is_over(int file)
{
	struct stat stat;

	return fstat(file, &stat) || !stat.st_nlink;
}

/* Wait until the time is over, or the state file is removed. */
static void wait_for_end(__s64 until, int file)
{
	struct itimerspec end = { .it_value.tv_sec = until };
	int timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
	int changes = inotify_init1(IN_CLOEXEC);
	struct pollfd wait[] = {
		{ .fd = timer, .events = POLLIN },
		{ .fd = changes, .events = POLLIN },
	};
	char events[4096];

	inotify_add_watch(changes, STATE_DIR, IN_DELETE);
	timerfd_settime(timer, TFD_TIMER_ABSTIME, &end, NULL);
	while (!is_over(file) && boot_seconds() < until) {
		if (poll(wait, ARRAY_SIZE(wait), 60 * 1000) <= 0)
			continue;
		if (wait[1].revents && read(wait[1].fd, events, sizeof(events)) < 0)
			wait[1].fd = -1;
	}
	close(timer);
	close(changes);
}

/* Report a failure once, not at each repetition. */
static void log_failure(const char *what, int err, int *logged)
{
	if (err != *logged)
		syslog(LOG_DAEMON | LOG_ERR, "%s: %s; trying again every %d s", what,
		       error_text(err), RETRY_S);
	*logged = err;
}

/* Undo the trial, unless it has been ended meanwhile. Returns false if that has failed. */
static bool end_trial(int file, int *logged)
{
	char text[TRIAL_TEXT], what[256];
	struct trial trial;
	enum reverted result;
	bool ended = false;
	int err = -EBADMSG;

	if (!trial_open(&trial, false)) {
		log_failure("the state file of the trial cannot be read", err, logged);
	} else if (!trial.active || is_over(file)) {
		ended = true;
	} else {
		result = revert(&trial, &err);
		ended = result != REVERTED_ERROR;
		snprintf(what, sizeof(what), "the trial of %s is over: %s",
			 trial_text(text, &trial), reverted_text(&trial, result));
		if (ended)
			syslog(LOG_DAEMON | LOG_NOTICE, "%s", what);
		else
			log_failure(what, err, logged);
	}
	trial_close(&trial);
	return ended;
}

[[gnu::noreturn]] static void watch(__s64 until, int file)
{
	int logged = 0;

	wait_for_end(until, file);
	while (!is_over(file) && !end_trial(file, &logged))
		wait_for_end(boot_seconds() + RETRY_S, file);
	_exit(0);
}

/*
 * Leave the terminal, whose end must not end this process. The process must keep neither the lock
 * on the directory, nor a pipe that the reader of our output waits for.
 */
static void detach(int dir)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close(dir);
	if (null < 0 || chdir("/"))
		_exit(1);
}

/* Start the process that ends the trial. */
static int start_watch(const struct trial *trial)
{
	int file = openat(trial->dir, trial->state, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	sigset_t all, before;
	int err = 0;
	pid_t pid;

	if (file < 0 || flock(file, LOCK_EX | LOCK_NB))
		return -errno;
	fflush(stdout);
	/* The terminal may end before the new process has left it. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid < 0)
		err = -errno;
	if (!pid)
		detach(trial->dir);
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (!pid)
		watch(trial->until, file);
	close(file);
	return err;
}

/* Is the process alive, which has a lock on the state file? */
static bool is_watched(const struct trial *trial)
{
	int file = openat(trial->dir, trial->state, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool watched = file >= 0 && flock(file, LOCK_SH | LOCK_NB) && errno == EWOULDBLOCK;

	if (file >= 0)
		close(file);
	return watched;
}

/* ---- the start of a trial ---- */

/* The only trial of the network namespace. Prints an error if there is another one. */
static bool trial_is_new(const struct trial *trial)
{
	char text[TRIAL_TEXT];

	if (trial->active)
		tell_err("there is a trial of %s: end it first, with timelyctl trial confirm or timelyctl trial revert",
			 trial_text(text, trial));
	return !trial->active;
}

/*
 * Save what undoes the trial, then start the process in the background: the caller starts the trial
 * after that. Prints errors.
 */
static bool prepare(struct trial *trial, unsigned int minutes)
{
	int err;

	trial->until = boot_seconds() + minutes * 60;
	err = save_trial(trial);
	if (err) {
		tell_err("the state file cannot be written, and nothing was changed: %s",
			 error_text(err));
		return false;
	}
	err = start_watch(trial);
	if (!err)
		return true;
	state_remove(trial->dir, trial->state);
	tell_err("no process can be started that ends the trial, and nothing was changed: %s",
		 error_text(err));
	return false;
}

/* Parse the words that follow what the trial is of. Prints errors; returns an exit status. */
static int parse_minutes(const char *verb, char **words, int count, __s64 *minutes)
{
	*minutes = MINUTES_DEFAULT;
	if (!count)
		return STATUS_OK;
	if (strcmp(words[0], "minutes") != 0)
		return usage_err("trial %s: unexpected word \"%s\"", verb, plain(words[0]));
	if (count == 1)
		return usage_err("minutes: a value is missing");
	if (count > 2)
		return usage_err("trial %s: unexpected word \"%s\"", verb, plain(words[2]));
	if (!parse_number(words[1], 1, MINUTES_MAX, minutes))
		return usage_err("minutes: 1 to %d are allowed, not \"%s\"", MINUTES_MAX,
				 plain(words[1]));
	return STATUS_OK;
}

/* ---- trial route ---- */

static int tell_no_route(const struct prefix *prefix, int err)
{
	char text[PREFIX_TEXT], address[INET6_ADDRSTRLEN];

	prefix_text(text, prefix);
	if (err == -ENOENT)
		tell_err("the main table has no route of %s: ip route get %s shows the gateway and the device for: ip route add %s via GATEWAY dev DEVICE",
			 text, address_text(address, prefix->address, prefix->bytes), text);
	else if (err == -EEXIST)
		tell_err("the main table has several routes of %s with the same metric: delete all but one, or choose another prefix",
			 text);
	else
		tell_err("the routes cannot be read: %s", error_text(err));
	return STATUS_FAILED;
}

/* The route exists, and nothing prevents a trial. Prints an error otherwise. */
static bool may_try(const struct trial *trial)
{
	char congctl[16], text[PREFIX_TEXT];

	route_congctl(&trial->route, congctl, sizeof(congctl));
	prefix_text(text, &trial->prefix);
	if (strcmp(congctl, "timely") == 0)
		tell_err("the route of %s has the congestion control timely already", text);
	else if (route_expires(&trial->route))
		tell_err("the route of %s is from a router advertisement, or expires: it could not be restored exactly",
			 text);
	else
		return true;
	return false;
}

static void tell_route_refused(const struct talk *talk, int err)
{
	if (err == -EPERM)
		tell_err("trial route needs root (CAP_NET_ADMIN)");
	else if (talk->why[0])
		tell_err("the kernel does not change the route: %s", talk->why);
	else
		tell_err("the route was not changed: %s", error_text(err));
}

static int try_route(struct trial *trial, struct talk *talk, const struct prefix *prefix,
		     unsigned int minutes)
{
	char text[PREFIX_TEXT];
	int err;

	trial->prefix = *prefix;
	err = route_get(talk, prefix, &trial->route);
	if (err)
		return tell_no_route(prefix, err);
	if (!may_try(trial) || !prepare(trial, minutes))
		return STATUS_FAILED;
	err = route_set(talk, &trial->route, "timely");
	if (err) {
		state_remove(trial->dir, trial->state);
		tell_route_refused(talk, err);
		return STATUS_FAILED;
	}
	tell_info("New connections to %s use timely. In %u minute%s the former route is restored.",
		  prefix_text(text, prefix), minutes, minutes == 1 ? "" : "s");
	tell_info("timelyctl trial confirm keeps timely until the next reboot; timelyctl trial revert restores the route now.");
	return STATUS_OK;
}

static int command_route(char **words, int count)
{
	int status = STATUS_FAILED;
	struct prefix prefix;
	struct trial trial;
	struct talk talk;
	__s64 minutes;
	int err;

	if (!count)
		return usage_err("trial route: the prefix is missing");
	if (!parse_prefix(strcmp(words[0], "default") == 0 ? "0.0.0.0/0" : words[0], &prefix))
		return usage_err("trial route: allowed are default and prefixes, not \"%s\"",
				 plain(words[0]));
	if (prefix_has_host_bits(&prefix))
		return usage_err("%s: the bits after the prefix length must be 0", plain(words[0]));
	if (parse_minutes("route", words + 1, count - 1, &minutes))
		return STATUS_USAGE;
	err = talk_open(&talk, NETLINK_ROUTE);
	if (err) {
		tell_err("a netlink request to the kernel failed: %s", error_text(err));
		return STATUS_FAILED;
	}
	if (trial_open(&trial, true) && trial_is_new(&trial))
		status = try_route(&trial, &talk, &prefix, minutes);
	trial_close(&trial);
	talk_close(&talk);
	return status;
}

/* ---- trial cgroup ---- */

/* The reason why the program cannot be loaded or attached. */
static int tell_group_refused(int err)
{
	/* Only kernels with bpf(2) have this setting of it. */
	if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK)) {
		tell_err("this kernel has no BPF programs (CONFIG_BPF_SYSCALL): a trial of a route is possible");
		return STATUS_FAILED;
	}
	switch (err) {
	case -EINVAL:
		tell_err("this kernel has no BPF programs of control groups (CONFIG_CGROUP_BPF), or refuses this one: a trial of a route is possible");
		break;
	case -EPERM:
		tell_err("trial cgroup needs root (CAP_SYS_ADMIN); as root: a program that is attached to this control group, or to one above it, allows no other one");
		break;
	case -ENOENT:
		tell_err("the control group does not exist any more");
		break;
	default:
		tell_err("the kernel refuses the BPF program: %s", error_text(err));
	}
	return STATUS_FAILED;
}

/* The program cannot load the module. */
static bool has_timely(void)
{
	char list[512];

	if (read_line("/proc/sys/net/ipv4/tcp_available_congestion_control", list, sizeof(list)) &&
	    has_word(list, "timely"))
		return true;
	tell_err("module tcp_timely is not loaded: modprobe tcp_timely");
	return false;
}

static int try_group(struct trial *trial, const char *path, unsigned int minutes)
{
	char text[TRIAL_TEXT];
	int err;

	if (!group_find(path, &trial->group) || !has_timely())
		return STATUS_FAILED;
	err = group_load(&trial->group);
	if (err)
		return tell_group_refused(err);
	if (!prepare(trial, minutes))
		return STATUS_FAILED;
	err = group_attach(&trial->group);
	if (err) {
		state_remove(trial->dir, trial->state);
		return tell_group_refused(err);
	}
	tell_info("New connections of %s use timely, for %u minute%s.", trial_text(text, trial),
		  minutes, minutes == 1 ? "" : "s");
	tell_info("timelyctl trial confirm keeps timely until the next reboot; timelyctl trial revert ends the trial now.");
	return STATUS_OK;
}

static int command_group(char **words, int count)
{
	int status = STATUS_FAILED;
	struct trial trial;
	__s64 minutes;

	if (!count)
		return usage_err("trial cgroup: the directory of the control group is missing");
	if (parse_minutes("cgroup", words + 1, count - 1, &minutes))
		return STATUS_USAGE;
	if (trial_open(&trial, true) && trial_is_new(&trial))
		status = try_group(&trial, words[0], minutes);
	trial_close(&trial);
	return status;
}

/* ---- trial confirm, revert, status ---- */

static void tell_attached(const struct group *group, const char *until)
{
	tell_info("New connections of the control group %s use timely%s. To end that: bpftool cgroup detach %s sock_ops id %u",
		  plain(group->path), until, plain(group->path), group->program);
}

static int confirm(const struct trial *trial)
{
	int err = state_remove(trial->dir, trial->state);

	if (err) {
		tell_err("the trial cannot be confirmed: %s", error_text(err));
		return STATUS_FAILED;
	}
	if (trial->group.path)
		tell_attached(&trial->group, " until the next reboot");
	else
		tell_info("The route keeps congctl timely until the next reboot. Add congctl timely to the route in the network configuration to keep it longer.");
	return STATUS_OK;
}

static int revert_now(const struct trial *trial)
{
	int err;
	enum reverted result = revert(trial, &err);

	if (result == REVERTED_ERROR) {
		tell_err("%s: %s", reverted_text(trial, result), error_text(err));
		return STATUS_FAILED;
	}
	tell_info("The trial is over: %s.", reverted_text(trial, result));
	tell_info("Connections that use timely keep it until they end.");
	return STATUS_OK;
}

/* A control group with the program of a trial that was confirmed, or of another namespace. */
static void show_attached(const struct group *group, void *data)
{
	const struct trial *trial = data;

	if (group->program != trial->group.program)
		tell_attached(group, "");
}

static void show_attached_json(const struct group *group, [[gnu::unused]] void *data)
{
	json_open(NULL, '{');
	json_string("cgroup", group->path);
	json_unsigned("program", group->program);
	json_close('}');
}

static void show_json(const struct trial *trial, __s64 left)
{
	char text[PREFIX_TEXT];

	json_open(NULL, '{');
	json_bool("active", trial->active);
	if (trial->active) {
		if (trial->group.path)
			json_string("cgroup", trial->group.path);
		else
			json_string("route", prefix_text(text, &trial->prefix));
		json_signed("seconds_left", left);
		json_bool("reverts", is_watched(trial));
	}
	json_open("attached", '[');
	groups_with_program(show_attached_json, NULL);
	json_close(']');
	json_close('}');
	json_end();
}

static void show_text(struct trial *trial, __s64 left)
{
	char text[TRIAL_TEXT];

	trial_text(text, trial);
	if (!trial->active)
		tell_info("There is no trial.");
	else if (!is_watched(trial))
		tell_info("Trial of %s. WARNING: the process that would end it was killed: timelyctl trial revert",
			  text);
	else if (trial->group.path)
		tell_info("Trial of %s: it ends in %lld s.", text, (long long)left);
	else
		tell_info("Trial of %s: the former route is restored in %lld s.", text,
			  (long long)left);
	groups_with_program(show_attached, trial);
}

static int show(struct trial *trial, bool json)
{
	__s64 left = trial->until - boot_seconds();

	if (left < 0)
		left = 0;
	if (json)
		show_json(trial, left);
	else
		show_text(trial, left);
	return STATUS_OK;
}

int command_trial(char **words, int count, bool json)
{
	const char *verb = count ? words[0] : "status";
	bool is_status = strcmp(verb, "status") == 0, is_confirm = strcmp(verb, "confirm") == 0;
	int status = STATUS_FAILED;
	struct trial trial;

	if (json && !is_status)
		return usage_err("trial %s: -j is only for commands that show something",
				 plain(verb));
	if (strcmp(verb, "route") == 0)
		return command_route(words + 1, count - 1);
	if (strcmp(verb, "cgroup") == 0)
		return command_group(words + 1, count - 1);
	if (!is_status && !is_confirm && strcmp(verb, "revert") != 0)
		return usage_err("trial: allowed are %s, not \"%s\"",
				 "route, cgroup, confirm, revert and status", plain(verb));
	if (count > 1)
		return usage_err("trial %s: unexpected word \"%s\"", verb, plain(words[1]));
	if (!trial_open(&trial, false))
		status = STATUS_FAILED;
	else if (is_status)
		status = show(&trial, json);
	else if (!trial.active)
		tell_err("there is no trial");
	else
		status = is_confirm ? confirm(&trial) : revert_now(&trial);
	trial_close(&trial);
	return status;
}
