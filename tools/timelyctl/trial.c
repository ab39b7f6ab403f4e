// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl trial` gives a route the congestion control timely for a limited time.
 *
 * The route of before is saved in a state file. A process in the background restores the route when
 * the time is over, unless `trial confirm` or `trial revert` has removed the state file by then.
 * The process does not depend on the terminal. It keeps a lock on the state file, by which
 * `trial status` sees that the process is alive.
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

/**
 * struct trial - a trial
 * @prefix: destination of the route
 * @until: its end, seconds of CLOCK_BOOTTIME, which also counts while the host is suspended
 * @route: the route of before
 * @state: name of the state file
 * @dir: directory of state files; negative for none
 * @active: there is a trial
 */
struct trial {
	struct prefix prefix;
	__s64 until;
	struct route route;
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

/* ---- the state file ---- */

static int save_trial(const struct trial *trial)
{
	char prefix[PREFIX_TEXT], *route, *text;
	int err;

	route = hex_text((unsigned char *)trial->route.message, trial->route.bytes);
	if (asprintf(&text, "timelyctl trial 1\n%lld\n%s\n%s\n", (long long)trial->until,
		     prefix_text(prefix, &trial->prefix), route) < 0)
		out_of_memory();
	err = state_write(trial->dir, trial->state, text);
	free(route);
	free(text);
	return err;
}

static bool load_lines(struct trial *trial, char *text)
{
	unsigned char *message = NULL;
	char *line[4];

	for (size_t i = 0; i < ARRAY_SIZE(line); i++) {
		line[i] = strsep(&text, "\n");
		/* The last line has an end, too: otherwise the file is not complete. */
		if (!text)
			return false;
	}
	if (strcmp(line[0], "timelyctl trial 1") != 0 ||
	    !parse_number(line[1], 0, INT64_MAX, &trial->until) ||
	    !parse_prefix(line[2], &trial->prefix) ||
	    !parse_hex(line[3], &message, &trial->route.bytes))
		return false;
	trial->route.message = (struct nlmsghdr *)message;
	return route_is_valid(&trial->route);
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
		tell_err("the state file /run/timely/%s cannot be read: restore the route with ip route, and delete the file",
			 trial->state);
	return trial->active;
}

static void trial_close(struct trial *trial)
{
	route_free(&trial->route);
	if (trial->dir >= 0)
		close(trial->dir);
}

/* ---- the end of a trial ---- */

/* What revert() has done. */
enum reverted {
	REVERTED,
	REVERTED_GONE,		/* the route does not exist any more */
	REVERTED_CHANGED,	/* the route was changed meanwhile */
	REVERTED_ERROR,
};

static const char * const reverted_text[] = {
	[REVERTED] = "the route of before is restored",
	[REVERTED_GONE] = "the route does not exist any more: nothing to restore",
	[REVERTED_CHANGED] = "the route was changed during the trial: it stays as it is",
	[REVERTED_ERROR] = "the route of before cannot be restored",
};

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
	*err = route_get(&talk, &trial->prefix, &now);
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

static enum reverted revert(const struct trial *trial, int *err)
{
	enum reverted result = revert_route(trial, err);

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
	struct pollfd wait[] = {
		{ .fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC), .events = POLLIN },
		{ .fd = inotify_init1(IN_CLOEXEC), .events = POLLIN },
	};
	char events[4096];

	inotify_add_watch(wait[1].fd, STATE_DIR, IN_DELETE);
	timerfd_settime(wait[0].fd, TFD_TIMER_ABSTIME, &end, NULL);
	while (!is_over(file) && boot_seconds() < until) {
		if (poll(wait, ARRAY_SIZE(wait), 60 * 1000) <= 0)
			continue;
		if (wait[1].revents && read(wait[1].fd, events, sizeof(events)) < 0)
			wait[1].fd = -1;
	}
}

[[gnu::noreturn]] static void watch(__s64 until, int file)
{
	char prefix[PREFIX_TEXT];
	struct trial trial;
	enum reverted result;
	int err;

	wait_for_end(until, file);
	if (!is_over(file) && trial_open(&trial, false)) {
		if (trial.active && !is_over(file)) {
			result = revert(&trial, &err);
			syslog(LOG_DAEMON | LOG_NOTICE, "the trial of the route %s is over: %s%s%s",
			       prefix_text(prefix, &trial.prefix), reverted_text[result],
			       result == REVERTED_ERROR ? ": " : "",
			       result == REVERTED_ERROR ? error_text(err) : "");
		}
		trial_close(&trial);
	}
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

/* Save the route, start the process in the background, and change the route, in this order. */
static int start(struct trial *trial, struct talk *talk)
{
	int err = save_trial(trial);

	if (err) {
		tell_err("the route cannot be saved in a file, and was not changed: %s",
			 error_text(err));
		return STATUS_FAILED;
	}
	err = start_watch(trial);
	if (err)
		tell_err("no process can be started that ends the trial, and the route was not changed: %s",
			 error_text(err));
	else
		err = route_set(talk, &trial->route, "timely");
	if (!err)
		return STATUS_OK;
	state_remove(trial->dir, trial->state);
	if (err == -EPERM)
		tell_err("trial route needs root (CAP_NET_ADMIN)");
	else if (talk->why[0])
		tell_err("the kernel does not change the route: %s", talk->why);
	else
		tell_err("the route was not changed: %s", error_text(err));
	return STATUS_FAILED;
}

static int try_route(struct trial *trial, struct talk *talk, const struct prefix *prefix,
		     unsigned int minutes)
{
	char text[PREFIX_TEXT];
	int err;

	if (trial->active) {
		tell_err("there is a trial of the route %s: end it first, with timelyctl trial confirm or timelyctl trial revert",
			 prefix_text(text, &trial->prefix));
		return STATUS_FAILED;
	}
	trial->prefix = *prefix;
	trial->until = boot_seconds() + minutes * 60;
	err = route_get(talk, prefix, &trial->route);
	if (err)
		return tell_no_route(prefix, err);
	if (!may_try(trial) || start(trial, talk))
		return STATUS_FAILED;
	tell_info("New connections to %s use timely. In %u minute%s the route of before is restored.",
		  prefix_text(text, prefix), minutes, minutes == 1 ? "" : "s");
	tell_info("timelyctl trial confirm keeps timely until the next reboot; timelyctl trial revert restores the route now.");
	return STATUS_OK;
}

static int command_route(char **words, int count)
{
	__s64 minutes = MINUTES_DEFAULT;
	int status = STATUS_FAILED;
	struct prefix prefix;
	struct trial trial;
	struct talk talk;
	int err;

	if (!count)
		return usage_err("trial route: the prefix is missing");
	if (!parse_prefix(strcmp(words[0], "default") == 0 ? "0.0.0.0/0" : words[0], &prefix))
		return usage_err("trial route: allowed are default and prefixes, not \"%s\"",
				 plain(words[0]));
	if (prefix_has_host_bits(&prefix))
		return usage_err("%s: the bits after the prefix length must be 0", plain(words[0]));
	if (count > 1 && strcmp(words[1], "minutes") != 0)
		return usage_err("trial route: unexpected word \"%s\"", plain(words[1]));
	if (count == 2)
		return usage_err("minutes: a value is missing");
	if (count > 3)
		return usage_err("trial route: unexpected word \"%s\"", plain(words[3]));
	if (count == 3 && !parse_number(words[2], 1, MINUTES_MAX, &minutes))
		return usage_err("minutes: 1 to %d are allowed, not \"%s\"", MINUTES_MAX,
				 plain(words[2]));
	err = talk_open(&talk, NETLINK_ROUTE);
	if (err) {
		tell_err("a netlink request to the kernel failed: %s", error_text(err));
		return STATUS_FAILED;
	}
	if (trial_open(&trial, true))
		status = try_route(&trial, &talk, &prefix, minutes);
	trial_close(&trial);
	talk_close(&talk);
	return status;
}

/* ---- trial confirm, revert, status ---- */

static int confirm(const struct trial *trial)
{
	int err = state_remove(trial->dir, trial->state);

	if (err) {
		tell_err("the trial cannot be confirmed: %s", error_text(err));
		return STATUS_FAILED;
	}
	tell_info("The route keeps congctl timely until the next reboot. Add congctl timely to the route in the network configuration to keep it longer.");
	return STATUS_OK;
}

static int revert_now(const struct trial *trial)
{
	int err;
	enum reverted result = revert(trial, &err);

	if (result == REVERTED_ERROR) {
		tell_err("%s: %s", reverted_text[result], error_text(err));
		return STATUS_FAILED;
	}
	tell_info("The trial is over: %s.", reverted_text[result]);
	tell_info("Connections that use timely keep it until they end.");
	return STATUS_OK;
}

static int show(const struct trial *trial, bool json)
{
	char text[PREFIX_TEXT];
	__s64 left = trial->until - boot_seconds();

	prefix_text(text, &trial->prefix);
	if (json) {
		json_open(NULL, '{');
		json_bool("active", trial->active);
		if (trial->active) {
			json_string("route", text);
			json_signed("seconds_left", left < 0 ? 0 : left);
			json_bool("reverts", is_watched(trial));
		}
		json_close('}');
		json_end();
	} else if (!trial->active) {
		tell_info("There is no trial.");
	} else if (!is_watched(trial)) {
		tell_info("Trial of the route %s. WARNING: the process that would end it was killed: timelyctl trial revert",
			  text);
	} else {
		tell_info("Trial of the route %s: the route of before is restored in %lld s.", text,
			  (long long)(left < 0 ? 0 : left));
	}
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
	if (!is_status && !is_confirm && strcmp(verb, "revert") != 0)
		return usage_err("trial: allowed are route, confirm, revert and status, not \"%s\"",
				 plain(verb));
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
