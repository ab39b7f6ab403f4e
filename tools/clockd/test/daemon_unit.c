// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of daemon.c without a network, module timely and chrony: functions of wire.c, onramp.c and
 * refclock.c are replaced here.
 */
#define _GNU_SOURCE
#include "unit.h"

#define onramp_put		fake_onramp_put
#define onramp_put_common	fake_onramp_put_common
#define onramp_withdraw_common	fake_onramp_withdraw_common
#define refclock_put		fake_refclock_put
#define wire_send		fake_wire_send
#define wire_sent		fake_wire_sent
#define wire_wait_sent		fake_wire_wait_sent
#define clock_ns		fake_clock_ns

#include "../daemon.c"

#undef clock_ns

uint64_t clock_ns(clockid_t id);

/* ---- clocks ---- */

/* Time in a simulation, and CLOCK_MONOTONIC_RAW of the host that runs; 0: the clocks are real. */
static uint64_t now_ns, raw_ns;

uint64_t fake_clock_ns(clockid_t id)
{
	if (!now_ns)
		return clock_ns(id);
	return id == CLOCK_MONOTONIC_RAW ? raw_ns : now_ns;
}

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

/* ---- chrony ---- */

static struct {
	unsigned int samples;
	int64_t offset_ns;
	uint64_t error_ns;
} chrony;

int fake_refclock_put(struct refclock *refclock, const struct config *config, int64_t offset_ns,
		      uint64_t error_ns)
{
	(void)refclock;
	(void)config;
	chrony.samples++;
	chrony.offset_ns = offset_ns;
	chrony.error_ns = error_ns;
	return 1;
}

/* ---- a NIC ---- */

/* It has @room for the timestamps of so many packets: the next one that is sent before a timestamp
 * was read gets none. A timestamp takes a while.
 */
static struct {
	unsigned int room;
	uint64_t cookies[2 * TIMELY_CLOCK_PEERS];
	unsigned int held;
	bool ready;
	unsigned int sent;
	uint64_t at_ns[2 * TIMELY_CLOCK_PEERS];
	size_t to[2 * TIMELY_CLOCK_PEERS];
	unsigned int stamps;
	unsigned int waits;
	uint64_t waited_ns;
} nic;

int fake_wire_send(struct wire *wire, const struct address *to, const uint8_t *message,
		   size_t bytes, uint64_t cookie, uint64_t at_ns)
{
	(void)wire;
	(void)to;
	(void)message;
	(void)bytes;
	if (nic.sent < 2 * TIMELY_CLOCK_PEERS) {
		nic.at_ns[nic.sent] = at_ns;
		nic.to[nic.sent] = (cookie >> 32) - 1;
	}
	nic.sent++;
	if (nic.held < nic.room)
		nic.cookies[nic.held++] = cookie;
	return 0;
}

void fake_wire_wait_sent(const struct wire *wire, uint64_t ns)
{
	(void)wire;
	nic.waits++;
	nic.waited_ns = ns > nic.waited_ns ? ns : nic.waited_ns;
	nic.ready = true;
}

int fake_wire_sent(struct wire *wire, uint64_t *cookie, uint64_t *ns)
{
	(void)wire;
	if (!nic.ready || !nic.held)
		return 0;
	*cookie = nic.cookies[--nic.held];
	*ns = 1000;
	nic.ready = nic.held;
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
	memset(&chrony, 0, sizeof(chrony));
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
		EXPECT(daemon->unsteady_ns <= 4);
	}
	/* Another probe clock has another rate. */
	take_events(daemon, CLOCK_NIC_STEPPED);
	EXPECT(!daemon->system_rate_q32);
	end(daemon);
}

/* A turn in which all peers get a pair, and the beginning of the next one. Returns the number of
 * timestamps.
 */
static unsigned int turn(struct clockd *daemon)
{
	unsigned int before = nic.stamps;

	for (size_t i = 0; i < daemon->peer_count; i++)
		daemon->peers[i].due_ns = 0;
	nic.ready = false;
	send_pairs(daemon);
	nic.ready = true;
	take_packets(daemon);
	return nic.stamps - before;
}

/* A daemon whose NIC has this room. */
static struct clockd *begin_with_nic(unsigned int room)
{
	struct clockd *daemon = begin(TIMELY_CLOCK_PEERS);

	daemon->clock.nic.fd = 0;
	nic.room = room;
	return daemon;
}

/* After some probes the daemon notices that few get a timestamp. */
void send_pairs__a_nic_timestamps_one_probe_at_a_time(void)
{
	struct clockd *daemon = begin_with_nic(1);

	EXPECT(turn(daemon) == 1 && turn(daemon) == 1);
	EXPECT(daemon->in_turn && !nic.waits);
	for (int i = 0; i < 8; i++)
		EXPECT(turn(daemon) == 2 * TIMELY_CLOCK_PEERS);
	EXPECT(nic.waits && nic.waited_ns <= STAMP_WAIT_NS);
	end(daemon);
}

/* On a NIC with enough room probes do not wait, nor on one that gives no timestamps. */
void send_pairs__waits_for_no_other_nic(void)
{
	static const unsigned int rooms[] = { 0, 2 * TIMELY_CLOCK_PEERS };

	for (size_t r = 0; r < ARRAY_LENGTH(rooms); r++) {
		struct clockd *daemon = begin_with_nic(rooms[r]);

		for (int i = 0; i < 8; i++)
			EXPECT(turn(daemon) == rooms[r]);
		EXPECT(!nic.waits && !daemon->in_turn);
		end(daemon);
	}
}

/* A NIC stops to timestamp: each wait has a limit, and all probes are sent. */
void send_pairs__goes_on_without_timestamps(void)
{
	struct clockd *daemon = begin_with_nic(0);

	daemon->in_turn = true;
	EXPECT(turn(daemon) == 0 && nic.sent == 2 * TIMELY_CLOCK_PEERS);
	EXPECT(nic.waits && nic.waited_ns <= STAMP_WAIT_NS);
	for (size_t i = 0; i < daemon->peer_count; i++)
		EXPECT(daemon->peers[i].due_ns);
	end(daemon);
}

/* Each peer gets both probes in the same place of the order, the times of sending are apart, and
 * each peer's turn to be the first one comes.
 */
void send_pairs__probes_are_apart(void)
{
	bool was_first[TIMELY_CLOCK_PEERS] = {};
	size_t firsts = 0;

	for (int i = 0; i < 1000; i++) {
		struct clockd *daemon = begin_with_nic(2 * TIMELY_CLOCK_PEERS);
		const uint64_t *at = nic.at_ns;

		turn(daemon);
		EXPECT(nic.sent == 2 * TIMELY_CLOCK_PEERS);
		for (size_t k = 0; k < TIMELY_CLOCK_PEERS; k++) {
			const uint64_t *second = at + TIMELY_CLOCK_PEERS;

			EXPECT(nic.to[k] == nic.to[k + TIMELY_CLOCK_PEERS]);
			EXPECT(at[k] - at[0] == k * APART_NS);
			EXPECT(second[k] - second[0] == k * APART_NS);
			EXPECT(second[k] - at[k] >= SPACING_NS);
			EXPECT((second[k] - at[0]) % APART_NS == APART_NS / 2);
		}
		firsts += !was_first[nic.to[0]];
		was_first[nic.to[0]] = true;
		end(daemon);
	}
	EXPECT(firsts == TIMELY_CLOCK_PEERS);
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

/* chrony gets the common time, or the reference time if there are references; on a reference
 * nothing.
 */
void give_refclock__follows_the_references(void)
{
	struct clockd *daemon = begin(2);

	daemon->own = (struct address){ { 9 } };
	page.system_offset_ns = 1000;
	page.bound_ns = 30;
	give_refclock(daemon);
	EXPECT(chrony.samples == 1 && chrony.offset_ns == 1000 && chrony.error_ns == 30);
	page.references = 1;
	page.reference_offset_ns = -5000;
	page.reference_bound_ns = 200;
	give_refclock(daemon);
	EXPECT(chrony.samples == 1);
	page.references_used = 1;
	give_refclock(daemon);
	EXPECT(chrony.samples == 2 && chrony.offset_ns == -4000 && chrony.error_ns == 230);
	config.references[0] = daemon->own;
	config.reference_count = 1;
	give_refclock(daemon);
	EXPECT(chrony.samples == 2);
	end(daemon);
}

static bool is_listed(const struct address *list, size_t count, const struct address *address)
{
	for (size_t i = 0; i < count; i++)
		if (memcmp(&list[i], address, sizeof(*address)) == 0)
			return true;
	return false;
}

/* With the smallest degree: a reference has all members as peers, and each of them has it. */
void list_peers__references_are_peers_of_all(void)
{
	struct clockd *daemon = begin(0);
	struct address chosen[TIMELY_CLOCK_PEERS];

	config.degree = 2;
	for (unsigned int i = 0; i <= TIMELY_CLOCK_PEERS; i++)
		members_add(&daemon->members, &(struct address){ { 10, [15] = i } });
	members_sort(&daemon->members);
	config.references[0] = daemon->members.address[7];
	config.references[1] = daemon->members.address[20];
	config.reference_count = 2;
	for (size_t i = 0; i < daemon->members.count; i++) {
		size_t count;

		daemon->own = daemon->members.address[i];
		count = list_peers(daemon, chosen);
		EXPECT(i == 7 || i == 20 ? count == TIMELY_CLOCK_PEERS : count >= 2 && count <= 4);
		EXPECT(!is_listed(chosen, count, &daemon->own));
		EXPECT(i == 7 || is_listed(chosen, count, &config.references[0]));
		EXPECT(i == 20 || is_listed(chosen, count, &config.references[1]));
	}
	/* Names have brought one member more than is possible. */
	members_add(&daemon->members, &(struct address){ { 11 } });
	members_sort(&daemon->members);
	EXPECT(list_peers(daemon, chosen) <= 2);
	members_free(&daemon->members);
	end(daemon);
}

/* ---- hosts with a reference ---- */

#define SIM_HOSTS	4
#define SIM_REFERENCE	(SIM_HOSTS - 1)
#define SIM_PAIR_NS	(50 * NS_PER_MS)
#define SIM_DELAY_NS	10000
/* Rounds after which hosts agree. */
#define SIM_SETTLED	100

/* The hosts. @system_ns is a host's system clock, which runs faster by @slew_ppm than the time, and
 * is read with an error of @error_ns.
 */
static struct {
	struct clockd daemon;
	struct config config;
	struct timely_clock_page page;
	uint64_t system_ns;
	int64_t slew_ppm;
	uint32_t error_ns;
	bool up;
} sim[SIM_HOSTS];

static struct address sim_address(unsigned int host)
{
	return (struct address){ { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = host + 1 } };
}

/* The probe clock of a host, which drifts by 10 ppm for each host before it. */
static uint64_t sim_probe(unsigned int host, uint64_t ns)
{
	return ns + host * NS_PER_S + ns / 100000 * host;
}

static struct peer *sim_peer(unsigned int host, unsigned int other)
{
	return &sim[host].daemon.peers[other - (other > host)];
}

static void sim_begin_host(unsigned int host)
{
	struct clockd *daemon = &sim[host].daemon;

	sim[host].config = (struct config){
		.pairs = 16, .shm = -1, .reference_count = 1,
		.references = { sim_address(SIM_REFERENCE) },
	};
	sim[host].page = (struct timely_clock_page){ .state = TIMELY_CLOCK_STARTING };
	*daemon = (struct clockd){
		.config = &sim[host].config, .page = &sim[host].page, .group = group_new(),
		.joined = true, .clock.nic.fd = -1, .wire.fd = -1, .own = sim_address(host),
	};
	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		struct address address = sim_address(i);

		if (i != host)
			peer_init(&daemon->peers[daemon->peer_count++], &address, i + 1, i + 1);
	}
	sim[host].up = true;
}

static void sim_begin(void)
{
	now_ns = 1000 * NS_PER_S;
	memset(sim, 0, sizeof(sim));
	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		sim[i].system_ns = 1700000000 * NS_PER_S + i * NS_PER_MS;
		sim[i].slew_ppm = i * 7;
		sim[i].error_ns = 50;
	}
}

static void sim_end(void)
{
	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		end(&sim[i].daemon);
		sim[i].daemon = (struct clockd){};
	}
	now_ns = 0;
}

/* A pair of probes from one host to another, of which both know the timestamps. */
static void sim_pair(unsigned int from, unsigned int to)
{
	uint32_t seq = now_ns / SIM_PAIR_NS * 2;

	for (uint32_t probe = 0; probe < 2; probe++) {
		uint64_t sent_ns = now_ns + probe * SPACING_NS;
		uint64_t came_ns = sent_ns + SIM_DELAY_NS + now_ns / SIM_PAIR_NS * 7919 % 100;

		estimate_probe(sim_peer(from, to)->estimate, FORWARD, seq + probe,
			       sim_probe(from, sent_ns), sim_probe(to, came_ns));
		estimate_probe(sim_peer(to, from)->estimate, BACKWARD, seq + probe,
			       sim_probe(from, sent_ns), sim_probe(to, came_ns));
	}
}

/* The peers have reports of the round before. */
static void sim_report(unsigned int from, unsigned int to)
{
	struct peer *peer = sim_peer(to, from);

	peer->report = sim[from].daemon.report;
	peer->settled = group_settled(sim[from].daemon.group);
	peer->report_ns = now_ns;
	peer->heard_ns = now_ns;
}

static void sim_round_of(unsigned int host)
{
	struct host_clock *clock = &sim[host].daemon.clock;

	raw_ns = sim_probe(host, now_ns);
	clock->system_raw_ns = raw_ns;
	clock->system_ns = difference(sim[host].system_ns, raw_ns);
	clock->system_error_ns = sim[host].error_ns;
	do_round(&sim[host].daemon, now_ns);
}

static void sim_round(void)
{
	for (unsigned int from = 0; from < SIM_HOSTS; from++)
		for (unsigned int to = 0; to < SIM_HOSTS; to++)
			if (from != to && sim[from].up && sim[to].up)
				sim_report(from, to);
	for (uint64_t at = 0; at < TICK_NS; at += SIM_PAIR_NS, now_ns += SIM_PAIR_NS)
		for (unsigned int from = 0; from < SIM_HOSTS; from++)
			for (unsigned int to = 0; to < SIM_HOSTS; to++)
				if (from != to && sim[from].up && sim[to].up)
					sim_pair(from, to);
	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		sim[i].system_ns += TICK_NS + (int64_t)TICK_NS / 1000000 * sim[i].slew_ppm;
		if (sim[i].up)
			sim_round_of(i);
	}
}

/* The largest difference between the common times of two hosts, ns. */
static int64_t sim_spread(void)
{
	int64_t low = INT64_MAX, high = INT64_MIN;

	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		int64_t common = difference(sim[i].page.common_ns, sim[0].page.common_ns);

		if (sim[i].page.state != TIMELY_CLOCK_RUNNING)
			continue;
		low = common < low ? common : low;
		high = common > high ? common : high;
	}
	return high - low;
}

/* The reference time of each host contains the system clock of the reference, and is known to
 * @bound_ns.
 */
static void sim_expect_reference(uint64_t bound_ns)
{
	struct timely_clock_time time;

	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		if (!sim[i].up)
			continue;
		EXPECT(!timely_clock_reference_at(&sim[i].page, sim_probe(i, now_ns), 0, &time));
		EXPECT(time.earliest_ns <= (int64_t)sim[SIM_REFERENCE].system_ns &&
		       time.latest_ns >= (int64_t)sim[SIM_REFERENCE].system_ns);
		EXPECT(time.latest_ns - time.time_ns <= (int64_t)bound_ns);
	}
}

/* The reference is slewed by 100 ppm up and down, and stepped by an hour and by 0.5 ms: the hosts
 * agree as before, and the reference time follows. It starts @late rounds after the others.
 */
static void sim_follow(unsigned int late)
{
	unsigned int changed = 0, begun = late + SIM_SETTLED;

	sim_begin();
	for (unsigned int i = 0; i < SIM_REFERENCE; i++)
		sim_begin_host(i);
	for (unsigned int i = 0; i < begun + 200; i++) {
		if (i == late)
			sim_begin_host(SIM_REFERENCE);
		if (i >= begun && (i - begun) % 40 == 20) {
			changed = i;
			sim[SIM_REFERENCE].slew_ppm = (i - begun) % 80 == 20 ? 100 : -100;
			sim[SIM_REFERENCE].system_ns += (i - begun) / 40 == 3 ? 500000 : 0;
			sim[SIM_REFERENCE].system_ns += (i - begun) / 40 == 4 ? 3600 * NS_PER_S : 0;
			if ((i - begun) / 40 == 4)
				take_events(&sim[SIM_REFERENCE].daemon, CLOCK_STEPPED);
		}
		sim_round();
		EXPECT(i < begun || sim_spread() <= 60);
		/* Reports are one round old; the rate is that of 2 s, and so are its errors. */
		if (i >= begun && i >= changed + 3)
			sim_expect_reference(i >= changed + 20 ? 2000 : 2000000);
	}
	for (unsigned int i = 0; i < SIM_HOSTS; i++)
		EXPECT(!sim[i].daemon.past[TIMELY_CLOCK_EXCLUDED]);
	sim_end();
}

void fill_reference__follows_an_unsteady_reference(void)
{
	sim_follow(0);
}

void fill_reference__follows_a_late_reference(void)
{
	sim_follow(120);
}

static void sim_rounds(unsigned int rounds)
{
	while (rounds--)
		sim_round();
}

/* The masks of references that the log of each host has. */
static void sim_expect_told(unsigned int apart, unsigned int inexact)
{
	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		EXPECT(sim[i].daemon.apart.told == apart);
		EXPECT(sim[i].daemon.inexact.told == inexact);
	}
}

/* Of three references one gets a large error, then another one is stepped: the log has each fault
 * after it has lasted for five seconds.
 */
void announce_references__names_those_that_are_not_used(void)
{
	sim_begin();
	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		sim_begin_host(i);
		sim[i].slew_ppm = 0;
		sim[i].system_ns = 1700000000 * NS_PER_S;
		sim[i].config.reference_count = 3;
		for (unsigned int r = 0; r < 3; r++)
			sim[i].config.references[r] = sim_address(r + 1);
	}
	sim_rounds(SIM_SETTLED);
	sim_expect_told(0, 0);
	EXPECT(sim[0].page.references_used == 3);
	sim[3].error_ns = 2000000;
	sim_rounds(15);
	sim_expect_told(0, 0);
	EXPECT(sim[0].page.references_used == 2);
	sim[2].system_ns += NS_PER_S;
	take_events(&sim[2].daemon, CLOCK_STEPPED);
	sim_rounds(10);
	sim_expect_told(0, 1 << 2);
	sim_rounds(20);
	sim_expect_told(1 << REFERENCES_MAX, 1 << 2);
	EXPECT(!sim[0].page.references_used);
	sim_end();
}
