// SPDX-License-Identifier: GPL-2.0
/*
 * The clocks of this host.
 *
 *	CLOCK_MONOTONIC_RAW	the oscillator of the CPU: no step, no slewing. It pauses while the
 *				host is suspended.
 *	system clock		CLOCK_REALTIME, which programs see and chrony corrects
 *	probe clock		the clock of the timestamps that peers exchange: the clock of a NIC,
 *				or else CLOCK_MONOTONIC_RAW, to which the kernel's timestamps are
 *				converted
 *
 * The probe clock must not be corrected by anybody: steps and slewing of the system clock would
 * bend the line that relates two hosts. So all estimates are between probe clocks, and the system
 * clock is related to the own probe clock at each tick, by readings of all clocks at almost the
 * same time. Huygens, as far as it is published, has no such conversion.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clockd.h"

/* The NIC's clock is read at each tick; its line is over these readings. */
#define MAP_POINTS		256
#define MAP_WINDOW_NS		8000000000ULL
/* A change of CLOCK_REALTIME against CLOCK_MONOTONIC_RAW between two ticks that slewing cannot
 * cause: 0.1 s per second is the most that chrony slews by default, and a tick is 0.25 s.
 */
#define SLEW_DIVISOR		10
#define STEP_MIN_NS		1000000
/* Error of the difference of two readings of the system clock, ns. */
#define READING_NS		1000
/* A change of CLOCK_BOOTTIME against CLOCK_MONOTONIC that reading them in turn cannot cause, ns. */
#define SUSPEND_MIN_NS		10000000
/* Oldest timestamp of the kernel that is converted, ns. */
#define TIMESTAMP_AGE_NS	1000000000

bool host_clock_is_nic(const struct host_clock *clock)
{
	return clock->nic.fd >= 0;
}

/* Read CLOCK_REALTIME minus CLOCK_MONOTONIC_RAW. */
static void read_system(struct host_clock *clock)
{
	clock->system_error_ns = clock_difference(CLOCK_MONOTONIC_RAW, CLOCK_REALTIME,
						  &clock->system_raw_ns, &clock->system_ns);
}

static uint64_t read_suspended(void)
{
	uint64_t at_ns;
	int64_t suspended_ns;

	clock_difference(CLOCK_MONOTONIC, CLOCK_BOOTTIME, &at_ns, &suspended_ns);
	return suspended_ns;
}

/* ---- the clock of a NIC ---- */

/* CLOCK_MONOTONIC_RAW when the system clock showed @real_ns, by the last two readings. Chrony slews
 * the system clock by up to 83333 ppm, which is 6.7 ms in the 80 ms between two readings.
 */
static uint64_t raw_of(const struct host_clock *clock, uint64_t real_ns)
{
	uint64_t raw_ns = real_ns - clock->system_ns;
	double back = (double)difference(clock->system_raw_ns, raw_ns);
	double slewed = (double)(clock->system_ns - clock->before_ns);
	double interval = (double)difference(clock->system_raw_ns, clock->before_raw_ns) + slewed;

	return raw_ns + (int64_t)(slewed * back / interval);
}

/* Whether the system clock was stepped between the last two readings, by less than what
 * host_clock_refresh() notices.
 */
static bool bent(const struct host_clock *clock)
{
	int64_t elapsed = difference(clock->system_raw_ns, clock->before_raw_ns);

	/* A slow source of the system clock has large errors. */
	return elapsed <= 0 || llabs(clock->system_ns - clock->before_ns) >
			       elapsed / SLEW_DIVISOR + READING_NS + 2LL * clock->system_error_ns;
}

/* Add a reading to the line. Returns what was noticed. */
static unsigned int read_nic(struct host_clock *clock)
{
	uint64_t before, after;
	struct cross cross;

	if (nic_check(&clock->nic))
		return CLOCK_NIC_LOST;
	/* The NIC's clock is read between two readings of the system clock. */
	host_clock_refresh(clock);
	if (nic_read(&clock->nic, &cross))
		return CLOCK_NIC_LOST;
	host_clock_refresh(clock);
	if (bent(clock))
		return 0;
	before = raw_of(clock, cross.before_ns);
	after = raw_of(clock, cross.after_ns);
	line_add(clock->map, FORWARD, before, difference(cross.nic_ns, before) +
		 clock->system_error_ns);
	line_add(clock->map, BACKWARD, after, difference(cross.nic_ns, after) -
		 clock->system_error_ns);
	if (line_solve(clock->map, after) != SOLVED_OVERLAP)
		return 0;
	/* No reading from before the step may remain. */
	line_forget(clock->map);
	return CLOCK_NIC_STEPPED;
}

/* Explain why the kernel's timestamps are used. Returns whether the daemon can go on. */
static bool nic_refused(const char *setting, const char *name, int err)
{
	bool automatic = strcmp(setting, "auto") == 0;
	enum level level = automatic ? LEVEL_NOTICE : LEVEL_ERROR;

	if (err == -EOPNOTSUPP)
		tell(level, "%s does not timestamp all packets in hardware, in both directions: %s",
		     name, automatic ? "the kernel's timestamps are used, errors are microseconds" :
		     "give \"clock system\", or another NIC");
	else if (err == -EPERM)
		tell(level, "%s: timestamps need CAP_NET_ADMIN: %s", name,
		     automatic ? "the kernel's are used" : "start timely-clockd as root");
	else
		tell(level, "%s: hardware timestamps are not possible: %s%s", name, error_text(err),
		     automatic ? "; the kernel's are used" : "");
	return automatic;
}

int host_clock_open(struct host_clock *clock, const char *setting, const struct address *own,
		    bool quiet)
{
	char name[IFNAMSIZ] = "";
	int err;

	*clock = (struct host_clock){ .nic.fd = -1, .suspended_ns = read_suspended() };
	read_system(clock);
	if (strcmp(setting, "system") == 0)
		return 0;
	if (strcmp(setting, "auto") != 0)
		memccpy(name, setting, 0, IFNAMSIZ - 1);
	else if (address_interface(own, name))
		return 0;
	err = nic_open(&clock->nic, name);
	if (err && (quiet || nic_refused(setting, name, err)))
		return strcmp(setting, "auto") == 0 ? 0 : err;
	if (err)
		return err;
	clock->map = line_new(MAP_POINTS, MAP_WINDOW_NS);
	if (!clock->map) {
		nic_close(&clock->nic);
		return -ENOMEM;
	}
	tell_info("probes are timestamped by the clock of %s, /dev/ptp%d", name,
		  clock->nic.phc);
	return 0;
}

void host_clock_close(struct host_clock *clock)
{
	nic_close(&clock->nic);
	line_free(clock->map);
	clock->map = NULL;
}

/* ---- the clocks together ---- */

void host_clock_refresh(struct host_clock *clock)
{
	int64_t step;

	clock->before_ns = clock->system_ns;
	clock->before_raw_ns = clock->system_raw_ns;
	read_system(clock);
	step = clock->system_ns - clock->before_ns;
	clock->mistrust = llabs(step) > STEP_MIN_NS +
			  difference(clock->system_raw_ns, clock->before_raw_ns) / SLEW_DIVISOR;
	if (!clock->mistrust)
		return;
	clock->noticed |= CLOCK_STEPPED;
	clock->step_ns = step;
}

/**
 * host_clock_tick() - read all clocks
 * @clock: the clocks; to be called at least once per second
 *
 * Return: bits CLOCK_*: what has happened since the last call. @clock->step_ns has the size.
 */
unsigned int host_clock_tick(struct host_clock *clock)
{
	uint64_t suspended_ns = read_suspended();
	int64_t slept = difference(suspended_ns, clock->suspended_ns);
	unsigned int noticed;

	host_clock_refresh(clock);
	noticed = clock->noticed;
	clock->noticed = 0;
	clock->suspended_ns = suspended_ns;
	if (slept > SUSPEND_MIN_NS) {
		/* CLOCK_MONOTONIC_RAW has paused: that is no step of the system clock. */
		noticed = CLOCK_SUSPENDED;
		clock->step_ns = slept;
		if (clock->map)
			line_forget(clock->map);
	}
	if (host_clock_is_nic(clock))
		noticed |= read_nic(clock);
	return noticed;
}

struct reading host_clock_map(const struct host_clock *clock, uint64_t raw_ns)
{
	if (host_clock_is_nic(clock))
		return line_read(clock->map, raw_ns);
	return (struct reading){ .known = true };
}

uint64_t host_clock_from_system(const struct host_clock *clock, uint64_t real_ns)
{
	int64_t interval = difference(clock->system_raw_ns, clock->before_raw_ns), age;
	uint64_t raw_ns;

	if (clock->mistrust || interval <= 0)
		return 0;
	raw_ns = raw_of(clock, real_ns);
	age = difference(clock_ns(CLOCK_MONOTONIC_RAW), raw_ns);
	/* The readings say nothing about a time long before them. */
	if (age < 0 || age >= TIMESTAMP_AGE_NS ||
	    difference(clock->before_raw_ns, raw_ns) > interval)
		return 0;
	return raw_ns;
}
