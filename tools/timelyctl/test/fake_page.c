// SPDX-License-Identifier: GPL-2.0
/*
 * Writes a clock page as timely-clockd does, for tests of `timelyctl clock`:
 *
 *	fake_page FILE [AGE [STATE [DAEMON [REFERENCES]]]]
 *
 * The page is of this moment, or AGE seconds old. One peer is good, the other one is silent, or has
 * the state STATE, a number. A peer that is learning has a bound, and no surplus. DAEMON is the
 * daemon's state, by default running. REFERENCES of two references are used, by default one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../../clockd/timely_clock.h"

static uint64_t now_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return now.tv_sec * 1000000000ULL + now.tv_nsec;
}

int main(int argc, char **argv)
{
	static struct timely_clock_page page = {
		.magic = TIMELY_CLOCK_MAGIC,
		.version = TIMELY_CLOCK_VERSION,
		.bytes = sizeof(page),
		.state = TIMELY_CLOCK_RUNNING,
		.common_ns = 1700000000000000000ULL,
		.bound_ns = 40000,
		.system_offset_ns = -1500,
		.references = 2,
		.references_used = 1,
		.reference_offset_ns = 2000000,
		.reference_bound_ns = 700,
		.own = { [10] = 0xff, 0xff, 10, 0, 0, 1 },
		.nic = "eth0",
		.probe_ns = 77,
		.members = 30,
		.peer_count = 2,
		.counters = { [TIMELY_CLOCK_BAD_TAG] = 12 },
		.peers = {
			{ .address = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
			  .state = TIMELY_CLOCK_PEER_GOOD, .hardware = 1,
			  .offset_ns = 123456789012, .drift_ppb = -20000, .bound_ns = 35,
			  .system_offset_ns = -2500, .system_drift_ppb = 7,
			  .system_bound_ns = 900, .surplus_ns = 12, .loops = 1,
			  .half_width_ns = 500, .sent = 100, .received = 90, .pure = 30,
			  .rejected = 8, .lost = 2 },
			{ .address = { 0xfd, [15] = 9 },
			  .bound_ns = TIMELY_CLOCK_UNKNOWN_NS,
			  .system_bound_ns = TIMELY_CLOCK_UNKNOWN_NS },
		},
	};
	FILE *file = argc > 1 ? fopen(argv[1], "w") : NULL;
	uint64_t age_ns = argc > 2 ? atoi(argv[2]) * 1000000000ULL : 0;

	if (!file)
		return 2;
	page.peers[1].state = argc > 3 ? atoi(argv[3]) : TIMELY_CLOCK_PEER_SILENT;
	if (page.peers[1].state == TIMELY_CLOCK_PEER_LEARNING)
		page.peers[1].bound_ns = 60;
	if (argc > 4)
		page.state = atoi(argv[4]);
	if (argc > 5)
		page.references_used = atoi(argv[5]);
	page.raw_ns = now_ns(CLOCK_MONOTONIC_RAW) - age_ns;
	page.suspended_ns = now_ns(CLOCK_BOOTTIME) - now_ns(CLOCK_MONOTONIC);
	return fwrite(&page, sizeof(page), 1, file) != 1 || fclose(file);
}
