// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of daemon.c without a network and without module timely, whose functions are replaced here.
 */
#define _GNU_SOURCE
#include "unit.h"

#define onramp_put		fake_onramp_put
#define onramp_put_common	fake_onramp_put_common
#define onramp_withdraw_common	fake_onramp_withdraw_common

#include "../daemon.c"

/* ---- module timely ---- */

static struct {
	struct timely_clock_peer last;
	unsigned int offsets;
	unsigned int withdrawals;
	bool common;
} module;

bool fake_onramp_put(struct onramp *onramp, const struct timely_clock_peer *peer,
		     uint64_t growth_ppb, bool before)
{
	bool known = peer->state == TIMELY_CLOCK_PEER_GOOD;

	(void)onramp;
	(void)growth_ppb;
	module.last = *peer;
	module.offsets += known;
	module.withdrawals += !known && before;
	return known;
}

void fake_onramp_put_common(struct onramp *onramp, const struct timely_clock_page *page,
			    int64_t drift_ppb)
{
	(void)onramp;
	(void)page;
	(void)drift_ppb;
	module.common = true;
}

void fake_onramp_withdraw_common(struct onramp *onramp)
{
	(void)onramp;
	module.common = false;
}

/* ---- a daemon with peers ---- */

static struct config config;
static struct timely_clock_page page;

/* A daemon that has joined, with @peers peers that are not known yet. */
static struct clockd *begin(unsigned int peers)
{
	static struct clockd daemon;

	memset(&module, 0, sizeof(module));
	page = (struct timely_clock_page){ .state = TIMELY_CLOCK_RUNNING, .peer_count = peers };
	config = (struct config){ .onramp = true, .tcp_timely = true, .pairs = 16, .shm = -1 };
	daemon = (struct clockd){
		.config = &config, .page = &page, .group = group_new(), .joined = true,
		.clock.nic.fd = -1, .wire.fd = -1, .peer_count = peers,
	};
	for (unsigned int i = 0; i < peers; i++) {
		struct address address = {
			{ [10] = 0xff, [11] = 0xff, [12] = 10, [15] = i + 1 }
		};

		EXPECT(peer_init(&daemon.peers[i], &address, i + 1, i + 1));
		memcpy(page.peers[i].address, address.bytes, sizeof(page.peers[i].address));
		page.peers[i].state = TIMELY_CLOCK_PEER_GOOD;
	}
	return &daemon;
}

static void end(struct clockd *daemon)
{
	for (size_t i = 0; i < daemon->peer_count; i++)
		peer_free(&daemon->peers[i]);
	group_free(daemon->group);
}

/* ---- tests ---- */

/* After a suspension the offsets are withdrawn from their peers at the next tick, and so is the
 * common time.
 */
void take_events__a_suspension_withdraws_offsets(void)
{
	struct clockd *daemon = begin(2);

	module.common = true;
	give_offsets(daemon, true);
	EXPECT(module.offsets == 2 && daemon->peers[0].given && daemon->peers[1].given);
	take_events(daemon, CLOCK_SUSPENDED);
	EXPECT(!module.common);
	give_offsets(daemon, false);
	EXPECT(module.withdrawals == 2 && module.offsets == 2);
	EXPECT(!daemon->peers[0].given && !daemon->peers[1].given);
	EXPECT(memcmp(module.last.address, daemon->peers[1].address.bytes,
		      sizeof(module.last.address)) == 0);
	end(daemon);
}

/* The system clock is 20 ppm faster than the probe clock, and is stepped by 1 s: peers get this rate
 * in each round.
 */
void update_rate__a_step_keeps_the_rate(void)
{
	struct clockd *daemon = begin(0);
	uint64_t probe_ns = 1000 * NS_PER_S;
	int64_t offset_ns = 5;

	for (int i = 0; i < 24; i++, probe_ns += TICK_NS, offset_ns += 5000) {
		if (i == 12) {
			take_events(daemon, CLOCK_STEPPED);
			offset_ns += NS_PER_S;
		}
		update_rate(daemon, offset_ns, probe_ns);
		EXPECT(i < 2 || llabs(drift_to_ppb(daemon->system_rate_q32) - 20000) <= 1);
		EXPECT(daemon->unsteady_ns <= 2);
	}
	/* Another probe clock has another rate. */
	take_events(daemon, CLOCK_NIC_STEPPED);
	EXPECT(!daemon->system_rate_q32);
	end(daemon);
}
