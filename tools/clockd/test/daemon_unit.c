// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of daemon.c without a network and without module timely: functions of wire.c and onramp.c
 * are replaced here.
 */
#define _GNU_SOURCE
#include "unit.h"

#define onramp_put		fake_onramp_put
#define onramp_put_common	fake_onramp_put_common
#define onramp_withdraw_common	fake_onramp_withdraw_common
#define wire_send		fake_wire_send
#define wire_sent		fake_wire_sent
#define wire_wait_sent		fake_wire_wait_sent

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

/* ---- a NIC ---- */

/* It timestamps one packet at a time: the next one that is sent before this timestamp was read gets
 * none. A timestamp takes a while. @broken: there are none.
 */
static struct {
	bool broken;
	uint64_t cookie;
	bool ready;
	unsigned int sent;
	unsigned int stamps;
	uint64_t waited_ns;
} nic;

int fake_wire_send(struct wire *wire, const struct address *to, const uint8_t *message,
		   size_t bytes, uint64_t cookie)
{
	(void)wire;
	(void)to;
	(void)message;
	(void)bytes;
	nic.sent++;
	if (!nic.cookie)
		nic.cookie = cookie;
	return 0;
}

void fake_wire_wait_sent(const struct wire *wire, uint64_t ns)
{
	(void)wire;
	nic.waited_ns = ns > nic.waited_ns ? ns : nic.waited_ns;
	nic.ready = !nic.broken;
}

int fake_wire_sent(struct wire *wire, uint64_t *cookie, uint64_t *ns)
{
	(void)wire;
	if (!nic.ready || !nic.cookie)
		return 0;
	*cookie = nic.cookie;
	*ns = 1000;
	nic.cookie = 0;
	nic.ready = false;
	nic.stamps++;
	return 1;
}

/* ---- a daemon with peers ---- */

static struct config config;
static struct timely_clock_page page;

/* A daemon that has joined, with @peers peers that are not known yet. */
static struct clockd *begin(unsigned int peers)
{
	static struct clockd daemon;

	memset(&module, 0, sizeof(module));
	memset(&nic, 0, sizeof(nic));
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

/* The system clock is 20 ppm faster than the probe clock, and is stepped by 1 s: reports have this
 * rate in each round.
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

void send_pairs__a_nic_timestamps_one_probe_at_a_time(void)
{
	struct clockd *daemon = begin(TIMELY_CLOCK_PEERS);

	daemon->clock.nic.fd = 0;
	send_pairs(daemon);
	/* The last timestamp is read in the next turn. */
	fake_wire_wait_sent(&daemon->wire, 0);
	take_sent(daemon);
	EXPECT(nic.sent == 2 * TIMELY_CLOCK_PEERS && nic.stamps == nic.sent);
	for (size_t i = 0; i < daemon->peer_count; i++)
		EXPECT(daemon->peers[i].sent[0].own_ns && daemon->peers[i].sent[1].own_ns);
	end(daemon);
}

/* Each probe costs one wait, which has a limit. */
void send_pairs__goes_on_without_timestamps(void)
{
	struct clockd *daemon = begin(TIMELY_CLOCK_PEERS);

	daemon->clock.nic.fd = 0;
	nic.broken = true;
	send_pairs(daemon);
	EXPECT(nic.sent == 2 * TIMELY_CLOCK_PEERS && !nic.stamps);
	EXPECT(nic.waited_ns && nic.waited_ns <= 200000);
	for (size_t i = 0; i < daemon->peer_count; i++)
		EXPECT(daemon->peers[i].due_ns);
	end(daemon);
}

/* The page of the daemon before, 1 s old, before the first round of this one. */
static struct clockd *begin_again(void)
{
	struct clockd *daemon = begin(2);

	page.suspended_ns = 77;
	daemon->clock.suspended_ns = page.suspended_ns;
	page.raw_ns = clock_ns(CLOCK_MONOTONIC_RAW) - NS_PER_S;
	page.common_ns = 1700000000 * NS_PER_S;
	page.bound_ns = 100;
	page.growth_ppb = 50;
	start_session(daemon);
	daemon->started = true;
	for (size_t i = 0; i < daemon->peer_count; i++) {
		daemon->peers[i].round.report = &daemon->peers[i].report;
		daemon->peers[i].settled = true;
	}
	return daemon;
}

/* Until it knows the common time again, a daemon that starts again continues the line. */
void write_page__continues_the_line_of_before(void)
{
	struct clockd *daemon = begin_again();
	uint64_t before_ns = page.raw_ns, common_ns = page.common_ns;

	for (int i = 0; i < 2; i++) {
		write_page(daemon, NS_PER_S, NS_PER_S);
		EXPECT(page.state == TIMELY_CLOCK_STARTING);
		EXPECT(page.common_ns - common_ns == page.raw_ns - before_ns);
		EXPECT(page.raw_ns - before_ns >= NS_PER_S && page.bound_ns >= 100 + 50);
		EXPECT(page.bound_ns < NS_PER_S && page.growth_ppb == TIMELY_CLOCK_STALE_PPB);
	}
	/* Not over a suspension. */
	daemon->clock.suspended_ns += NS_PER_S;
	write_page(daemon, NS_PER_S, NS_PER_S);
	EXPECT(!page.common_ns && page.bound_ns == TIMELY_CLOCK_UNKNOWN_NS);
	end(daemon);
}

/* Not if other hosts have started, too: they may agree on another time. */
void write_page__drops_the_line_when_a_peer_is_not_settled(void)
{
	struct clockd *daemon = begin_again();

	write_page(daemon, NS_PER_S, NS_PER_S);
	EXPECT(page.common_ns);
	daemon->peers[1].settled = false;
	write_page(daemon, NS_PER_S, NS_PER_S);
	EXPECT(!page.common_ns && page.bound_ns == TIMELY_CLOCK_UNKNOWN_NS);
	daemon->peers[1].settled = true;
	write_page(daemon, NS_PER_S, NS_PER_S);
	EXPECT(!page.common_ns);
	end(daemon);
}
