// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of timely-clockd's files without a network: the choice of peers, messages, the exchange
 * with a peer in a simulated network, the configuration, the formats of chrony and ntpd. The tests
 * of daemon_unit.c run, too. TAP.
 *
 *	unit DIRECTORY ROUNDS SEED
 *
 * DIRECTORY is for temporary files. ROUNDS is the number of rounds of the fuzzer of messages.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <linux/capability.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#include "../clockd.h"
#include "unit.h"

static const char *directory;
static unsigned long rounds;
static uint64_t random_state;
static unsigned int number, failed;
bool good;

/* xorshift64*: the same numbers for the same seed. */
static uint64_t chance(uint64_t below)
{
	random_state ^= random_state >> 12;
	random_state ^= random_state << 25;
	random_state ^= random_state >> 27;
	return random_state * 0x2545f4914f6cdd1dULL % below;
}

static struct address host(unsigned int index)
{
	struct address address = { { [10] = 0xff, [11] = 0xff, [12] = 10, [13] = index >> 16,
				     [14] = index >> 8, [15] = index } };

	return address;
}

/* ---- the choice of peers ---- */

#define HOSTS	300

static struct members members_of(unsigned int count)
{
	struct members members = {};

	for (unsigned int i = count; i--;) {
		struct address address = host(i);

		members_add(&members, &address);
		members_add(&members, &address);
	}
	members_sort(&members);
	return members;
}

static struct address peers[HOSTS][TIMELY_CLOCK_PEERS];
static size_t peer_counts[HOSTS];

static void choose_all(unsigned int count, unsigned int degree)
{
	struct members members = members_of(count);

	EXPECT(members.count == count);
	for (unsigned int i = 0; i < count; i++) {
		struct address own = host(i);

		peer_counts[i] = graph_peers(&members, &own, degree, peers[i]);
	}
	members_free(&members);
}

static unsigned int index_of(const struct address *address)
{
	return address->bytes[13] << 16 | address->bytes[14] << 8 | address->bytes[15];
}

static bool has_peer(unsigned int of, unsigned int peer)
{
	for (size_t i = 0; i < peer_counts[of]; i++)
		if (index_of(&peers[of][i]) == peer)
			return true;
	return false;
}

static unsigned int reached(unsigned int from, bool *seen)
{
	unsigned int sum = 1;

	seen[from] = true;
	for (size_t i = 0; i < peer_counts[from]; i++)
		if (!seen[index_of(&peers[from][i])])
			sum += reached(index_of(&peers[from][i]), seen);
	return sum;
}

static void graph_peers__both_ends_agree(void)
{
	static const unsigned int counts[] = { 2, 3, 10, 11, 12, 16, 17, 64, HOSTS };

	for (size_t c = 0; c < ARRAY_LENGTH(counts); c++) {
		choose_all(counts[c], 10);
		for (unsigned int a = 0; a < counts[c]; a++) {
			EXPECT(!has_peer(a, a));
			for (unsigned int b = 0; b < counts[c]; b++)
				EXPECT(has_peer(a, b) == has_peer(b, a));
		}
	}
}

static void graph_peers__all_have_the_degree(void)
{
	unsigned int less = 0;

	choose_all(8, 10);
	for (unsigned int i = 0; i < 8; i++)
		EXPECT(peer_counts[i] == 7);
	for (unsigned int degree = 2; degree <= TIMELY_CLOCK_PEERS; degree += 5) {
		choose_all(HOSTS, degree);
		for (unsigned int i = 0; i < HOSTS; i++) {
			EXPECT(peer_counts[i] <= degree && peer_counts[i] + 1 >= degree);
			less += peer_counts[i] < degree;
		}
	}
	EXPECT(less < 10);
}

static void graph_peers__all_are_connected(void)
{
	for (unsigned int degree = 2; degree <= 10; degree += 4) {
		bool seen[HOSTS] = {};

		choose_all(HOSTS, degree);
		EXPECT(reached(0, seen) == HOSTS);
	}
}

/* One more host changes the peers of few others. */
static void graph_peers__a_new_host_disturbs_few(void)
{
	static struct address before[HOSTS][TIMELY_CLOCK_PEERS];
	unsigned int kept = 0;

	choose_all(HOSTS - 1, 10);
	memcpy(before, peers, sizeof(before));
	choose_all(HOSTS, 10);
	for (unsigned int i = 0; i < HOSTS - 1; i++)
		for (unsigned int p = 0; p < 10; p++)
			kept += has_peer(i, index_of(&before[i][p]));
	EXPECT(kept > (HOSTS - 1) * 10 * 9 / 10);
}

/* ---- messages ---- */

static const struct key key = { 7, { 0x0123456789abcdefULL, 0xfedcba9876543210ULL } };

static struct message random_message(void)
{
	struct message message = {
		.flags = chance(4), .session = chance(UINT64_MAX) + 1, .nonce = chance(UINT64_MAX),
		.echo = chance(UINT64_MAX), .seq = (uint32_t)chance(UINT64_MAX),
		.key = key.number,
	};
	struct report *report = &message.report;

	for (size_t i = 0; i < PROBE_RECORDS; i++) {
		message.received[i].seq = (uint32_t)chance(UINT64_MAX);
		message.received[i].ns = chance(UINT64_MAX);
		message.sent[i].seq = (uint32_t)chance(UINT64_MAX);
		message.sent[i].ns = chance(UINT64_MAX);
	}
	report->at_ns = chance(UINT64_MAX);
	report->system_ns = chance(UINT64_MAX);
	report->system_rate_q32 = (int32_t)chance(UINT64_MAX);
	report->system_error_ns = (uint32_t)chance(UINT64_MAX);
	report->correction_ns = (int64_t)chance(UINT64_MAX);
	report->rate_q32 = (int32_t)chance(UINT64_MAX);
	report->bound_ns = (uint32_t)chance(UINT64_MAX);
	report->growth_ppb = (uint32_t)chance(UINT64_MAX);
	report->wander_ppb_s = (uint32_t)chance(UINT64_MAX);
	report->scale = (uint32_t)chance(UINT64_MAX);
	return message;
}

static void message_encode__is_read_again(void)
{
	struct address from = host(1), to = host(2);
	uint8_t wire[MESSAGE_BYTES], again[MESSAGE_BYTES];

	for (int i = 0; i < 1000; i++) {
		struct message message = random_message(), got = {};

		message_encode(wire, &message, &from, &to, &key);
		EXPECT(message_decode(&got, wire, sizeof(wire)));
		EXPECT(message_verify(wire, &from, &to, &key));
		EXPECT(got.key == key.number && got.session == message.session &&
		       got.echo == message.echo && got.seq == message.seq &&
		       got.report.scale == message.report.scale &&
		       got.report.rate_q32 == message.report.rate_q32 &&
		       got.sent[3].ns == message.sent[3].ns);
		message_encode(again, &got, &from, &to, &key);
		EXPECT(!memcmp(wire, again, sizeof(wire)));
	}
}

/* A changed bit anywhere makes a message malformed, or its tag wrong. */
static void message_verify__every_bit_counts(void)
{
	struct address from = host(1), to = host(2), other = host(3);
	struct key other_key = key;
	struct message message = random_message(), got;
	uint8_t wire[MESSAGE_BYTES];

	message_encode(wire, &message, &from, &to, &key);
	for (size_t bit = 0; bit < 8 * sizeof(wire); bit++) {
		wire[bit / 8] ^= 1 << bit % 8;
		EXPECT(!message_decode(&got, wire, sizeof(wire)) ||
		       !message_verify(wire, &from, &to, &key));
		wire[bit / 8] ^= 1 << bit % 8;
	}
	other_key.words[1] ^= 1;
	EXPECT(message_verify(wire, &from, &to, &key));
	EXPECT(!message_verify(wire, &to, &from, &key));
	EXPECT(!message_verify(wire, &from, &other, &key));
	EXPECT(!message_verify(wire, &other, &to, &key));
	EXPECT(!message_verify(wire, &from, &to, &other_key));
}

static void message_decode__refuses_other_lengths(void)
{
	struct address from = host(1), to = host(2);
	struct message message = random_message(), got;
	uint8_t wire[MESSAGE_BYTES + 1] = {};

	message_encode(wire, &message, &from, &to, &key);
	for (size_t bytes = 0; bytes <= sizeof(wire); bytes++) {
		/* The sanitizer notices if bytes beyond the length are read. */
		uint8_t *copy = malloc(bytes);

		memcpy(copy, wire, bytes);
		EXPECT(message_decode(&got, copy, bytes) == (bytes == MESSAGE_BYTES));
		free(copy);
	}
}

/* ---- the exchange with a peer ---- */

/* Two hosts and the network between them. Times are in ns, and the hosts' clocks differ. */
#define OFFSET_NS	123456789012345LL
#define DRIFT_PPB	20000
#define DELAY_NS	10000

static struct {
	struct peer peer;
} hosts[2];

static uint64_t now;

static uint64_t probe_clock(unsigned int index, uint64_t ns)
{
	return index ? ns + OFFSET_NS + ns / 1000000000 * DRIFT_PPB +
		       ns % 1000000000 * DRIFT_PPB / 1000000000 : ns + 1000000;
}

static void begin_exchange(void)
{
	now = 1000000000;
	for (unsigned int i = 0; i < 2; i++) {
		struct address other = host(!i);

		EXPECT(peer_init(&hosts[i].peer, &other, chance(UINT64_MAX) + 1,
				 chance(UINT64_MAX) + 1));
	}
}

static void end_exchange(void)
{
	peer_free(&hosts[0].peer);
	peer_free(&hosts[1].peer);
}

static struct message next_probe(unsigned int from)
{
	struct message message;

	peer_probe(&hosts[from].peer, &message, chance(UINT64_MAX) + 1, now);
	return message;
}

/* Send a probe; it is received after @delay_ns. */
static struct message send_probe(unsigned int from, uint64_t delay_ns)
{
	struct message message = next_probe(from);

	peer_sent(&hosts[from].peer, message.seq, probe_clock(from, now));
	peer_take(&hosts[!from].peer, &message, probe_clock(!from, now + delay_ns),
		  now + delay_ns);
	return message;
}

/* Pairs in both directions, 20 per second, and a solution every 250 ms. */
static void exchange(unsigned int pairs, uint64_t noise_ns)
{
	for (unsigned int i = 0; i < pairs; i++) {
		for (unsigned int from = 0; from < 2; from++) {
			uint64_t delay_ns = DELAY_NS + chance(noise_ns + 1);

			send_probe(from, delay_ns);
			now += 50000;
			send_probe(from, delay_ns + (chance(4) ? 0 : chance(noise_ns + 1)));
			now += 24950000;
		}
		for (unsigned int h = 0; i % 5 == 4 && h < 2; h++)
			estimate_solve(hosts[h].peer.estimate, probe_clock(h, now));
	}
}

static void peer_take__clocks_are_found(void)
{
	static const uint64_t noises[] = { 0, 1000, 100000 };

	for (size_t n = 0; n < ARRAY_LENGTH(noises); n++) {
		begin_exchange();
		exchange(200, noises[n]);
		for (unsigned int h = 0; h < 2; h++) {
			uint64_t own = probe_clock(h, now), other = probe_clock(!h, now);
			struct reading reading = estimate_read(hosts[h].peer.estimate, own);
			int64_t error = reading.offset_ns - difference(other, own);

			EXPECT(reading.known);
			EXPECT(llabs(error) <= (int64_t)noises[n] / 10 + 2);
			EXPECT(llabs(error) <= reading.error_ns);
			EXPECT(hosts[h].peer.counters[TIMELY_CLOCK_PAIRS_PURE] > 200);
			EXPECT(!hosts[h].peer.counters[TIMELY_CLOCK_REPLAYED]);
		}
		end_exchange();
	}
}

/* Whether the first host takes the path for idle. */
static bool path_idle(void)
{
	return estimate_path_idle(hosts[0].peer.estimate, probe_clock(0, now));
}

/* Pairs in both directions; the first and the second probe of those in the given directions wait in
 * queues.
 */
static void exchange_queued(unsigned int pairs, unsigned int queued, uint64_t first_ns,
			    uint64_t second_ns)
{
	for (unsigned int i = 0; i < 2 * pairs; i++) {
		bool waits = queued & 1 << i % 2;

		send_probe(i % 2, DELAY_NS + (waits ? first_ns : 0));
		now += 50000;
		send_probe(i % 2, DELAY_NS + (waits ? second_ns : 0));
		now += 24950000;
	}
}

static void estimate_path_idle__follows_queues(void)
{
	static const uint64_t waits[][2] = { { 0, 5000 }, { 5000, 5000 } };

	begin_exchange();
	exchange(150, 0);
	EXPECT(!path_idle());
	exchange(20, 0);
	EXPECT(path_idle());
	for (size_t i = 0; i < ARRAY_LENGTH(waits); i++) {
		for (unsigned int queued = 1; queued <= 3; queued++) {
			exchange_queued(7, queued, waits[i][0], waits[i][1]);
			EXPECT(path_idle());
			exchange_queued(3, queued, waits[i][0], waits[i][1]);
			EXPECT(!path_idle());
			exchange(100, 0);
			EXPECT(path_idle());
		}
	}
	/* The estimate is not exact any more. */
	now += 3600 * NS_PER_S;
	EXPECT(!path_idle());
	exchange(100, 0);
	EXPECT(path_idle());
	peer_restart(&hosts[0].peer, chance(UINT64_MAX) + 1);
	EXPECT(!path_idle());
	end_exchange();
}

/* The delays of a pair, of which one of 25 does not wait in a queue, as if two links had a load of
 * 80 %. Timestamps of arrivals are late by up to 10 us.
 */
static void busy_delays(uint64_t *delay_ns)
{
	bool waits = chance(25);

	for (unsigned int probe = 0; probe < 2; probe++)
		delay_ns[probe] = DELAY_NS + chance(10000) + (waits ? 20000 + chance(400000) : 0);
}

/* The long window has a pair without queues where the short one often has none. */
static void estimate_solve__few_probes_without_queues(void)
{
	struct estimate *estimate = estimate_new();
	int64_t worst = 0;

	now = 1000000000;
	for (uint32_t i = 0; i < 16 * 60; i++, now += 62500000) {
		uint64_t there_ns[2], back_ns[2];
		struct reading reading;
		int64_t error;

		busy_delays(there_ns);
		busy_delays(back_ns);
		for (unsigned int probe = 0; probe < 2; probe++) {
			uint64_t sent = now + 20000 * probe;

			estimate_probe(estimate, FORWARD, 2 * i + probe, probe_clock(0, sent),
				       probe_clock(1, sent + there_ns[probe]));
			estimate_probe(estimate, BACKWARD, 2 * i + probe, probe_clock(1, sent),
				       probe_clock(0, sent + back_ns[probe]));
		}
		if (i % 4 || i < 16 * 12)
			continue;
		estimate_solve(estimate, probe_clock(0, now));
		reading = estimate_read(estimate, probe_clock(0, now));
		error = reading.offset_ns - difference(probe_clock(1, now), probe_clock(0, now));
		EXPECT(reading.known && llabs(error) <= reading.error_ns);
		worst = llabs(error) > worst ? llabs(error) : worst;
	}
	EXPECT(worst < 10000);
	estimate_free(estimate);
}

static void peer_take__refuses_a_replayed_message(void)
{
	struct message message;

	begin_exchange();
	exchange(20, 0);
	message = send_probe(0, DELAY_NS);
	EXPECT(peer_take(&hosts[1].peer, &message, 1, now) == TIMELY_CLOCK_REPLAYED);
	exchange(40, 0);
	EXPECT(peer_take(&hosts[1].peer, &message, 1, now) == TIMELY_CLOCK_REPLAYED);
	end_exchange();
}

/* The peer has started again: recorded messages cannot bring its old session back. */
static void peer_take__refuses_an_earlier_session(void)
{
	struct message old, new;

	begin_exchange();
	exchange(20, 0);
	old = next_probe(0);
	now += 10000000;
	peer_restart(&hosts[0].peer, old.session ^ 1);
	hosts[0].peer.echo = 0;
	new = next_probe(0);
	/* Without an echo the new session is not proven, so nothing changes yet. */
	EXPECT(peer_take(&hosts[1].peer, &new, 1, now) == TIMELY_CLOCK_UNPROVEN);
	EXPECT(hosts[1].peer.session == old.session);
	/* The peer has received this host's nonce: now the session is proven. */
	hosts[0].peer.echo = hosts[1].peer.nonce;
	new = next_probe(0);
	EXPECT(peer_take(&hosts[1].peer, &new, 1, now) == TIMELY_CLOCK_RECEIVED);
	EXPECT(hosts[1].peer.session == new.session);
	EXPECT(hosts[1].peer.counters[TIMELY_CLOCK_PEER_RESTARTS] == 1);
	EXPECT(peer_take(&hosts[1].peer, &old, 1, now) == TIMELY_CLOCK_REPLAYED);
	EXPECT(hosts[1].peer.session == new.session);
	end_exchange();
}

/* A peer that was silent and starts again is answered soon, not after the long interval. */
static void peer_take__answers_a_peer_that_was_silent(void)
{
	struct message message;

	begin_exchange();
	exchange(20, 0);
	now += 20000000000;
	hosts[1].peer.due_ns = now + 8000000000;
	peer_restart(&hosts[0].peer, chance(UINT64_MAX) + 1);
	hosts[0].peer.echo = 0;
	message = next_probe(0);
	EXPECT(peer_take(&hosts[1].peer, &message, 1, now) == TIMELY_CLOCK_UNPROVEN);
	EXPECT(hosts[1].peer.due_ns <= now + 100000000);
	hosts[1].peer.due_ns = now + 8000000000;
	hosts[0].peer.echo = hosts[1].peer.nonce;
	message = next_probe(0);
	EXPECT(peer_take(&hosts[1].peer, &message, 1, now) == TIMELY_CLOCK_RECEIVED);
	EXPECT(hosts[1].peer.due_ns <= now + 100000000);
	end_exchange();
}

/* This host has started again: messages that were recorded before prove nothing. */
static void peer_take__refuses_an_earlier_nonce(void)
{
	struct message old;
	struct address other = host(0);

	begin_exchange();
	exchange(20, 0);
	old = next_probe(0);
	peer_free(&hosts[1].peer);
	EXPECT(peer_init(&hosts[1].peer, &other, chance(UINT64_MAX) + 1, chance(UINT64_MAX) + 1));
	EXPECT(peer_take(&hosts[1].peer, &old, 1, now) == TIMELY_CLOCK_UNPROVEN);
	EXPECT(!hosts[1].peer.session && !hosts[1].peer.report.at_ns);
	end_exchange();
}

/* A message that somebody holds back, together with all later ones, is not accepted hours later. */
static void peer_take__refuses_an_old_nonce(void)
{
	struct message held;

	begin_exchange();
	exchange(20, 0);
	held = next_probe(0);
	next_probe(0);
	for (unsigned int i = 0; i < 100; i++) {
		now += 8000000000;
		next_probe(1);
	}
	EXPECT(peer_take(&hosts[1].peer, &held, 1, now) == TIMELY_CLOCK_UNPROVEN);
	EXPECT(!peer_heard(&hosts[1].peer, now));
	exchange(200, 0);
	EXPECT(estimate_read(hosts[1].peer.estimate, probe_clock(1, now)).known);
	end_exchange();
}

static void peer_take__both_find_each_other_after_a_start(void)
{
	struct address other = host(0);

	begin_exchange();
	exchange(20, 0);
	peer_free(&hosts[1].peer);
	EXPECT(peer_init(&hosts[1].peer, &other, chance(UINT64_MAX) + 1, chance(UINT64_MAX) + 1));
	exchange(200, 0);
	for (unsigned int h = 0; h < 2; h++)
		EXPECT(estimate_read(hosts[h].peer.estimate, probe_clock(h, now)).known);
	end_exchange();
}

/* A peer with the key sends any numbers: nothing breaks. */
static void peer_take__survives_any_numbers(void)
{
	begin_exchange();
	for (unsigned long i = 0; i < rounds; i++) {
		struct message message = random_message();

		if (chance(4))
			message.session = 1 + chance(3);
		if (chance(4))
			message.echo = hosts[1].peer.nonce;
		if (chance(2))
			message.seq = hosts[1].peer.window.newest + (uint32_t)chance(80) - 40;
		for (size_t r = 0; r < PROBE_RECORDS; r++) {
			message.received[r].seq = hosts[1].peer.seq - (uint32_t)chance(70);
			message.sent[r].seq = message.seq - (uint32_t)chance(70);
			message.sent[r].ns >>= chance(64);
			message.received[r].ns >>= chance(64);
		}
		peer_take(&hosts[1].peer, &message, chance(UINT64_MAX) >> (2 + chance(62)), now);
		message = next_probe(1);
		peer_sent(&hosts[1].peer, message.seq, chance(UINT64_MAX) >> (2 + chance(62)));
		now += chance(100000000);
		if (!chance(50)) {
			struct group *group = group_new();
			struct group_peer round = {
				.estimate = hosts[1].peer.estimate,
				.report = &hosts[1].peer.report, .settled = true,
			};
			struct reading reading;

			estimate_solve(hosts[1].peer.estimate, probe_clock(1, now));
			group_start(group, probe_clock(1, now), 5, 5);
			group_round(group, &round, 1, probe_clock(1, now));
			reading = estimate_read(hosts[1].peer.estimate, now);
			group_peer_offset(group, &hosts[1].peer.report, &reading, now);
			group_free(group);
		}
	}
	EXPECT(hosts[1].peer.counters[TIMELY_CLOCK_RECEIVED] > rounds / 50);
	end_exchange();
}

/* ---- the common time ---- */

/* Pairs in both directions every 20 ms, and a round every 250 ms, with a peer that gives the common
 * time. Forward pairs wait in a queue for up to @queue_ns, both probes for the same time. Returns
 * the largest error of the common time, ns.
 */
static int64_t rounds_with_queue(struct group *group, struct estimate *estimate,
				 unsigned int seconds, uint64_t queue_ns)
{
	static uint32_t seq;
	int64_t worst = 0;

	for (unsigned int i = 1; i <= 50 * seconds; i++, seq += 2, now += 20000000) {
		uint64_t waits_ns = queue_ns / 4 + chance(queue_ns + 1);
		struct report report = { .at_ns = now + OFFSET_NS, .bound_ns = 10 };
		struct group_peer peer = { estimate, &report, .settled = true };

		for (unsigned int probe = 0; probe < 2; probe++) {
			uint64_t sent = now + 20000 * probe;

			estimate_probe(estimate, FORWARD, seq + probe, sent,
				       sent + OFFSET_NS + DELAY_NS + waits_ns);
			estimate_probe(estimate, BACKWARD, seq + probe, sent + OFFSET_NS,
				       sent + DELAY_NS);
		}
		if (i * 20 % 250 >= 20)
			continue;
		estimate_solve(estimate, now);
		group_round(group, &peer, 1, now);
		worst = llabs(group_read(group, now).offset_ns - OFFSET_NS) > worst ?
			llabs(group_read(group, now).offset_ns - OFFSET_NS) : worst;
	}
	return worst;
}

/* A port is busy for so long that the whole window has no probe that did not wait. */
static void group_round__runs_on_while_a_port_is_busy(void)
{
	struct estimate *estimate = estimate_new();
	struct group *group = group_new();

	now = 1000000000;
	group_start(group, now, 5, 5);
	rounds_with_queue(group, estimate, 10, 0);
	EXPECT(group_settled(group));
	EXPECT(rounds_with_queue(group, estimate, 10, 0) <= 2);
	EXPECT(rounds_with_queue(group, estimate, 8, 60000) <= 500);
	EXPECT(group_read(group, now).known);
	rounds_with_queue(group, estimate, 5, 0);
	EXPECT(rounds_with_queue(group, estimate, 5, 0) <= 2);
	group_free(group);
	estimate_free(estimate);
}

/* A peer says that its common time is @lie_ns later and @lie_q32 faster than it is, to
 * @growth_ppb. Returns the error of its offset, which is 90 ns as measured, ns.
 */
static int64_t error_with_lie(int64_t lie_ns, int64_t lie_q32, uint32_t growth_ppb)
{
	struct reading measured = {
		.known = true, .offset_ns = OFFSET_NS + 90, .error_ns = 100, .drift_error_ppb = 50,
	}, own, offset;
	struct estimate *estimate = estimate_new();
	struct group *group = group_new();
	struct report report = { .bound_ns = 10, .growth_ppb = growth_ppb };

	group_start(group, now, 0, 5);
	rounds_with_queue(group, estimate, 10, 0);
	own = group_read(group, now);
	EXPECT(own.known && own.error_ns < 50);
	report.at_ns = now + OFFSET_NS;
	report.correction_ns = own.offset_ns - OFFSET_NS + lie_ns;
	report.rate_q32 = (int32_t)(own.drift_q32 + lie_q32);
	offset = group_peer_offset(group, &report, &measured, now);
	/* The lie cannot be told from an error of the measurement. */
	EXPECT(offset.error_ns + 100 >= llabs(lie_ns));
	group_free(group);
	estimate_free(estimate);
	return offset.offset_ns - OFFSET_NS;
}

static void group_peer_offset__a_lie_is_noticed(void)
{
	now = 1000000000;
	EXPECT(llabs(error_with_lie(0, 0, 5)) <= 2);
	EXPECT(error_with_lie(1000000, 0, 5) == 90);
	EXPECT(error_with_lie(-300, 0, 5) == 90);
	/* 10 ppm. */
	EXPECT(error_with_lie(0, 42950, 5) == 90);
	EXPECT(error_with_lie(0, 42950, UINT32_MAX) == 90);
}

/* ---- the clocks of this host ---- */

static void clock_difference__has_its_error(void)
{
	for (int i = 0; i < 1000; i++) {
		uint64_t before = clock_ns(CLOCK_MONOTONIC), at_ns;
		int64_t offset_ns;
		uint32_t error_ns = clock_difference(CLOCK_MONOTONIC, CLOCK_MONOTONIC, &at_ns,
						     &offset_ns);

		EXPECT(error_ns && llabs(offset_ns) <= error_ns);
		EXPECT(at_ns >= before && at_ns <= clock_ns(CLOCK_MONOTONIC));
	}
}

/* The system clock is slewed by @ppm, and has shown 20 ms ago and now that it is 1 h ahead. Returns
 * the largest error of a converted timestamp of this time, ns.
 */
static int64_t slewed_ns(int64_t ppm)
{
	uint64_t raw_ns = clock_ns(CLOCK_MONOTONIC_RAW);
	struct host_clock clock = {
		.nic.fd = -1,
		.system_ns = 3600 * (int64_t)NS_PER_S,
		.system_raw_ns = raw_ns,
		.before_ns = 3600 * (int64_t)NS_PER_S - 20 * ppm,
		.before_raw_ns = raw_ns - 20000000,
	};
	int64_t worst = 0;

	for (int64_t age = 0; age <= 20000000; age += 1000000) {
		uint64_t real = raw_ns - age + clock.system_ns - age / 1000000 * ppm;
		int64_t error = difference(host_clock_from_system(&clock, real), raw_ns - age);

		worst = llabs(error) > worst ? llabs(error) : worst;
	}
	return worst;
}

static void host_clock_from_system__follows_slewing(void)
{
	EXPECT(slewed_ns(0) == 0);
	EXPECT(slewed_ns(20) <= 1);
	EXPECT(slewed_ns(-500) <= 1);
	EXPECT(slewed_ns(83333) <= 1);
}

/* The clocks as if the last readings had been before a suspension of @ns: CLOCK_BOOTTIME and the
 * system clock go on meanwhile, CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW do not.
 */
static void suspend(struct host_clock *clock, int64_t ns)
{
	clock->suspended_ns -= ns;
	clock->system_ns -= ns;
}

/* A suspension is no step of the system clock, and the kernel's timestamps of the packets that it
 * interrupted are not used.
 */
static void host_clock_tick__notices_a_suspension(void)
{
	struct host_clock clock;
	struct address own = host(1);

	EXPECT(!host_clock_open(&clock, "system", &own, true));
	EXPECT(host_clock_tick(&clock) == 0);
	suspend(&clock, 100 * NS_PER_S);
	EXPECT(host_clock_tick(&clock) == CLOCK_SUSPENDED);
	EXPECT(llabs(clock.step_ns - 100 * (int64_t)NS_PER_S) < (int64_t)NS_PER_S);
	EXPECT(!host_clock_from_system(&clock, clock_ns(CLOCK_REALTIME)));
	EXPECT(host_clock_tick(&clock) == 0);
	/* Readings have errors: the timestamp must be in the past. */
	EXPECT(host_clock_from_system(&clock, clock_ns(CLOCK_REALTIME) - 200));
	/* A step without a suspension. */
	clock.system_ns -= 100 * NS_PER_S;
	EXPECT(host_clock_tick(&clock) == CLOCK_STEPPED);
	EXPECT(host_clock_tick(&clock) == 0);
	host_clock_close(&clock);
}

/* ---- the configuration ---- */

static const char *path_of(const char *name)
{
	static char path[PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static void write_text(const char *name, const char *text)
{
	FILE *file = fopen(path_of(name), "w");

	fputs(text, file);
	fclose(file);
	chmod(path_of(name), 0600);
}

/* Read a configuration of these lines after a key. */
[[gnu::format(printf, 1, 2)]] static struct config *config_of(const char *format, ...)
{
	char text[4096], *at = text;
	va_list args;

	write_text("key", "0123456789abcdefFEDCBA9876543210\n");
	at += sprintf(at, "key 1 %s\n", path_of("key"));
	va_start(args, format);
	vsnprintf(at, sizeof(text) - (at - text), format, args);
	va_end(args);
	write_text("conf", text);
	return config_read(path_of("conf"));
}

static void config_read__members(void)
{
	struct config *config = config_of("member 10.0.0.0/29 # six\nmember 10.0.1.5-10.0.2.4\n"
					  "member 10.9.9.9\nmember add-1.de\nmember 10.0.0.1\n");

	EXPECT(config && config->members.count == 6 + 256 + 1);
	EXPECT(config && config->name_count == 1 && config->family == AF_INET);
	EXPECT(config && config->degree == 10 && config->port == CLOCKD_PORT);
	EXPECT(config && config_key(config, 1) && !config_key(config, 2));
	config_free(config);
	config = config_of("member fd00::/126\nmember fd01::5\ndegree 4\nport 5000\nclock eth0\n"
			   "ntp-shm 2\nchrony /run/chrony.timely.sock\n");
	EXPECT(config && config->members.count == 5 && config->family == AF_INET6);
	EXPECT(config && !config->fixed && config->shm == 2 && config->degree == 4);
	config_free(config);
	write_text("list", "# hosts\n10.0.0.1\n\n10.0.0.2 # second\n");
	config = config_of("members-file %s/list\n", directory);
	EXPECT(config && config->members.count == 2);
	config_free(config);
}

static void config_read__references(void)
{
	struct config *config = config_of("member 10.0.0.1-10.0.0.30\nreference 10.0.0.7\n"
					  "reference 10.0.1.1\nchrony /run/chrony.timely.sock\n");
	struct address address;

	EXPECT(config && config->reference_count == 2 && !config->fixed);
	/* A reference is a member. */
	EXPECT(config && config->members.count == 31);
	EXPECT(address_parse("10.0.1.1", &address));
	EXPECT(config && config_has_reference(config, &address));
	config_free(config);
	/* A reference has at most 32 peers. */
	config = config_of("member 10.0.0.1-10.0.0.33\nreference 10.0.0.1\n");
	EXPECT(config && config->members.count == 33);
	config_free(config);
	EXPECT(!config_of("member 10.0.0.1-10.0.0.34\nreference 10.0.0.1\n"));
	/* The former word is as it was. */
	config = config_of("member 10.0.0.0/24\nreference yes\n");
	EXPECT(config && config->fixed && !config->reference_count);
	config_free(config);
	config = config_of("member 10.0.0.0/24\nreference no\n");
	EXPECT(config && !config->fixed);
	config_free(config);
}

static void config_read__refuses(void)
{
	static const char * const lines[] = {
		"", "member 10.0.0.1/24", "member 10.0.0.0/33", "member 10.0.0.0/x",
		"member 10.0.0.9-10.0.0.1", "member 10.0.0.9-fd00::1", "member 10.0.0.0/8",
		"member fd00::/64", "member 10.0.0.1\nmember fd00::1", "member", "member a b",
		"member a\ndegree 1", "member a\ndegree 33", "member a\nport 80",
		"member a\npairs 0", "member a\nreference maybe", "member a\nfrobnicate 1",
		"member a\nkey 1 /dev/null", "member a\nkey 2 /dev/null", "member a\nkey 256 x",
		"own 10.0.0.x\nmember a", "member a\nclock averyveryverylongname",
		"member a\nmembers-file /nonexistent", "member a\nreference yes\nntp-shm 2",
		"member a\nntp-shm -1", "member a\nkey 1",
		"own fd00::1\nmember 10.0.0.1", "own 10.0.0.1\nmember fd00::1", "member 0.0.0.0",
		"member 239.1.1.1", "member 255.255.255.255",
		"member fe80::1", "member ff02::1", "member ::", "own fe80::1\nmember a",
		"member 10.0.0.1\nmembers-file /", "member a\nreference host7",
		"member a\nreference 10.0.0.1\nreference 10.0.0.1", "member a\nreference 224.0.0.1",
		"member a\nreference 10.0.0.1\nreference fd00::1",
		"member a\nreference yes\nreference 10.0.0.1",
		"member a\nreference 10.0.0.1\nreference 10.0.0.2\nreference 10.0.0.3\n"
		"reference 10.0.0.4\nreference 10.0.0.5\nreference 10.0.0.6\n"
		"reference 10.0.0.7\nreference 10.0.0.8\nreference 10.0.0.9",
	};

	for (size_t i = 0; i < ARRAY_LENGTH(lines); i++) {
		struct config *config = config_of("%s\n", lines[i]);

		if (config)
			printf("# accepted: %s\n", lines[i]);
		EXPECT(!config);
		config_free(config);
	}
	EXPECT(!config_read("/nonexistent"));
}

/* Random bytes, and pieces of valid lines. */
static void config_read__survives_any_file(void)
{
	static const char * const words[] = {
		"member ", "10.0.0.1", "/", "-", "24", "key ", "1 ", "\n", "#", "fd00::", "degree ",
		"own\t", "\r\n", "\t", "page ", "clock ", "pairs ", "9999999999999999999999",
	};

	for (unsigned long i = 0; i < rounds / 100; i++) {
		char text[2048] = "";

		for (size_t at = 0; at < sizeof(text) - 32;) {
			if (chance(10))
				at += sprintf(text + at, "%s",
					      words[chance(ARRAY_LENGTH(words))]);
			else
				text[at++] = 1 + chance(255);
		}
		write_text("conf", text);
		config_free(config_read(path_of("conf")));
	}
}

/* ---- addresses of this host ---- */

/* Replaces the C library's function. The device eth0 has the address 10.0.0.1 with a label. */
int getifaddrs(struct ifaddrs **list)
{
	static struct sockaddr_in address = { .sin_family = AF_INET };
	static struct ifaddrs labelled = {
		.ifa_name = "eth0:1", .ifa_addr = (struct sockaddr *)&address,
	};

	address.sin_addr.s_addr = htonl(0x0a000001);
	*list = &labelled;
	return 0;
}

void freeifaddrs(struct ifaddrs *list)
{
	(void)list;
}

static void address_interface__is_the_device_without_the_label(void)
{
	struct address own = host(1), other = host(2);
	char name[IFNAMSIZ] = "";

	EXPECT(!address_interface(&own, name) && strcmp(name, "eth0") == 0);
	EXPECT(address_interface(&other, name) == -EADDRNOTAVAIL);
}

/* ---- the socket ---- */

#define WIRE_PORT	40305

/* Send @bytes bytes of @message from one address of this host to the other. */
static void send_from(const struct address *from, const struct address *to, const uint8_t *message,
		      size_t bytes)
{
	int fd = socket(address_family(from), SOCK_DGRAM, 0);
	struct sockaddr_storage address;
	socklen_t length = address_to(from, 0, &address);

	EXPECT(!bind(fd, (struct sockaddr *)&address, length));
	length = address_to(to, WIRE_PORT, &address);
	EXPECT(sendto(fd, message, bytes, 0, (struct sockaddr *)&address, length) > 0);
	close(fd);
}

static unsigned int received(struct wire *wire)
{
	struct arrival arrival;
	unsigned int count = 0;

	while (wire_receive(wire, &arrival) > 0)
		count++;
	return count;
}

/* Fill @list with peers that differ from @first in the byte @place. */
static void list_peers(struct address *list, const struct address *first, unsigned int place)
{
	for (unsigned int i = 0; i < TIMELY_CLOCK_PEERS; i++) {
		list[i] = *first;
		list[i].bytes[place] += i;
	}
}

static void wire_filter__accepts_messages_of_peers(void)
{
	uint8_t message[MESSAGE_BYTES] = { MESSAGE_MAGIC >> 8, MESSAGE_MAGIC & 0xff };
	struct address own, first, other, list[TIMELY_CLOCK_PEERS];
	const struct nic nic = { .fd = -1 };
	static struct wire wire;

	EXPECT(address_parse("127.0.0.5", &own) && address_parse("127.0.0.100", &first));
	EXPECT(address_parse("127.0.0.99", &other));
	EXPECT(!wire_open(&wire, &own, WIRE_PORT, &nic));
	list_peers(list, &first, 15);
	EXPECT(!wire_filter(&wire, list, TIMELY_CLOCK_PEERS));
	send_from(&list[0], &own, message, sizeof(message));
	send_from(&list[31], &own, message, sizeof(message));
	EXPECT(received(&wire) == 2);
	send_from(&other, &own, message, sizeof(message));
	send_from(&list[0], &own, message, sizeof(message) - 1);
	message[1] ^= 1;
	send_from(&list[0], &own, message, sizeof(message));
	EXPECT(received(&wire) == 0);
	EXPECT(!wire_filter(&wire, NULL, 0));
	send_from(&other, &own, message, sizeof(message));
	EXPECT(received(&wire) == 1);
	wire_close(&wire);
}

static void wire_filter__compares_whole_ipv6_addresses(void)
{
	uint8_t message[MESSAGE_BYTES] = { MESSAGE_MAGIC >> 8, MESSAGE_MAGIC & 0xff };
	struct address own, list[TIMELY_CLOCK_PEERS];
	const struct nic nic = { .fd = -1 };
	static struct wire wire;

	EXPECT(address_parse("::1", &own));
	if (wire_open(&wire, &own, WIRE_PORT, &nic)) {
		printf("# this host has no IPv6\n");
		return;
	}
	/* Each peer differs from ::1 in one word. */
	for (unsigned int place = 3; place < 16; place += 4) {
		list_peers(list, &own, place);
		list[0].bytes[place] ^= 0x80;
		EXPECT(!wire_filter(&wire, list, TIMELY_CLOCK_PEERS));
		send_from(&own, &own, message, sizeof(message));
		EXPECT(received(&wire) == 0);
		list[31] = own;
		EXPECT(!wire_filter(&wire, list, TIMELY_CLOCK_PEERS));
		send_from(&own, &own, message, sizeof(message));
		EXPECT(received(&wire) == 1);
	}
	wire_close(&wire);
}

/* ---- qdiscs ---- */

/* A message of the kernel's list of qdiscs. */
struct listed {
	struct nlmsghdr header;
	struct tcmsg tc;
	struct rtattr kind;
	char name[16];
};

static struct listed listed(unsigned int ifindex, const char *name)
{
	struct listed out = {
		.header = { .nlmsg_type = RTM_NEWQDISC },
		.tc.tcm_ifindex = ifindex,
		.kind = { RTA_LENGTH(strlen(name) + 1), TCA_KIND },
	};

	memcpy(out.name, name, strlen(name));
	out.header.nlmsg_len = NLMSG_SPACE(sizeof(out.tc)) + RTA_ALIGN(out.kind.rta_len);
	return out;
}

static struct qdisc_kinds kinds_of(struct listed message)
{
	struct qdisc_kinds kinds = {};

	qdisc_note(&kinds, &message.header, 7);
	return kinds;
}

static void qdisc__kinds(void)
{
	struct listed cut = listed(7, "fq");

	EXPECT(kinds_of(listed(7, "fq")).keep && !kinds_of(listed(7, "fq")).drop);
	EXPECT(kinds_of(listed(7, "timely")).keep);
	EXPECT(kinds_of(listed(7, "taprio")).drop && !kinds_of(listed(7, "taprio")).keep);
	EXPECT(kinds_of(listed(7, "etf")).drop);
	EXPECT(!kinds_of(listed(7, "fq_codel")).keep && !kinds_of(listed(7, "f")).keep);
	EXPECT(!kinds_of(listed(8, "fq")).keep && !kinds_of(listed(8, "etf")).drop);
	cut.header.nlmsg_len = NLMSG_LENGTH(sizeof(cut.tc)) - 1;
	EXPECT(!kinds_of(cut).keep);
	cut = listed(7, "fq");
	cut.kind.rta_len = RTA_LENGTH(2);
	EXPECT(!kinds_of(cut).keep);
	/* The loopback device sends at once. */
	EXPECT(!qdisc_keeps_times("lo") && !qdisc_keeps_times("no-such-device"));
}

/* ---- references ---- */

static struct reference known(int64_t offset_ns, uint64_t bound_ns)
{
	return (struct reference){
		.known = true, .offset_ns = offset_ns, .bound_ns = bound_ns, .rate_ppb = 20,
	};
}

static void references_agree__one_is_enough(void)
{
	struct reference list[] = { {}, known(-5000, 100), {} }, result;

	EXPECT(references_agree(list, 3, &result) == 1);
	EXPECT(result.offset_ns == -5000 && result.bound_ns == 100 && result.rate_ppb == 20);
	list[1].bound_ns = UINT64_MAX;
	EXPECT(!references_agree(list, 3, &result) && !result.known);
	EXPECT(!references_agree(list, 0, &result));
}

/* The result contains the intervals of those that agree. */
static void references_agree__drops_the_odd_one(void)
{
	struct reference list[] = {
		known(1000, 100), known(3600000000000, 10), known(5000, 200),
	}, result;

	EXPECT(references_agree(list, 3, &result) == 2);
	EXPECT(list[0].used && !list[1].used && list[2].used);
	EXPECT(result.offset_ns - (int64_t)result.bound_ns <= 900);
	EXPECT(result.offset_ns + (int64_t)result.bound_ns >= 5200);
	EXPECT(result.bound_ns == 2150);
}

/* A reference that states a large error agrees with anybody, but moves nobody. */
static void references_agree__one_does_not_move_the_others(void)
{
	struct reference list[] = {
		known(0, 1000), known(900000000, 900000000), known(2000, 1000),
	}, result;

	EXPECT(references_agree(list, 3, &result) == 2 && !list[1].used);
	EXPECT(!list[0].inexact && list[1].inexact && !list[1].known);
	EXPECT(result.offset_ns == 1000 && result.bound_ns == 2000);
	list[1] = known(900000, 1000);
	EXPECT(references_agree(list, 3, &result) == 3);
	EXPECT(result.offset_ns == 2000 && result.bound_ns == 899000);
	list[1] = known(900000000, 900000000);
	EXPECT(references_agree(list, 2, &result) == 1 && result.offset_ns == 0);
}

static void references_agree__needs_a_majority(void)
{
	struct reference list[] = {
		known(0, 100), known(5000000, 100), known(0, 100), known(5000000, 100),
	}, result;

	EXPECT(!references_agree(list, 2, &result) && !list[0].used && !list[1].used);
	EXPECT(references_agree(list, 3, &result) == 2 && result.offset_ns == 0);
	EXPECT(!references_agree(list, 4, &result));
	/* Bounds that are large enough explain the difference. */
	list[0].bound_ns = 2000000;
	list[1].bound_ns = 5000000;
	EXPECT(references_agree(list, 2, &result) == 2);
	/* Numbers that a liar may send. */
	list[0].offset_ns = INT64_MAX / 2;
	list[1].offset_ns = INT64_MIN / 2;
	EXPECT(!references_agree(list, 2, &result));
}

/* ---- names ---- */

/* The error of getaddrinfo() for names that begin with '?'; 0: they have an address. */
static int doubt;
/* The network of addresses, 10.0.0.0 to 10.0.255.0. */
static unsigned int address_net;
/* The configuration whose names are resolved. */
static const struct config *resolved;

/* Whether this process has the key that config_of() writes, or a capability. */
static bool is_privileged(void)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = {};

	return resolved->keys[0].words[0] || resolved->keys[0].words[1] ||
	       syscall(SYS_capget, &header, caps) || caps[0].permitted || caps[1].permitted;
}

/* Replaces the C library's function. The name "a", or "?a", has the address 10.0.NET.97, and names
 * that begin with '!' have 127.0.1.1. Names that begin with '$' are known to privileged processes.
 */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
		struct addrinfo **list)
{
	static struct sockaddr_in address = { .sin_family = AF_INET };
	static struct addrinfo info = { .ai_addr = (struct sockaddr *)&address };

	(void)service;
	(void)hints;
	if (name[0] == '?' && doubt)
		return doubt;
	if (name[0] == '$' && !is_privileged())
		return EAI_NONAME;
	address.sin_addr.s_addr = htonl(name[0] == '!' ? 0x7f000101 :
					0x0a000000 + (address_net << 8) + name[strlen(name) - 1]);
	*list = &info;
	return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
	(void)list;
}

/* Resolve the names of @config, with this answer for names that begin with '?'. Returns the number
 * of addresses.
 */
static size_t resolve(struct resolver *resolver, struct config *config, int answer)
{
	struct pollfd result = { .events = POLLIN };

	resolved = config;
	doubt = answer;
	EXPECT(!resolver_start(resolver, config));
	result.fd = resolver->fd;
	do {
		poll(&result, 1, -1);
	} while (!resolver_read(resolver));
	return resolver->found.count;
}

/* A member is lost only if the name server says that its name has no address. */
static void resolver_read__keeps_names_without_an_answer(void)
{
	struct config *config = config_of("member a\nmember ?b\nmember c\n");
	struct resolver resolver = {};

	EXPECT(resolve(&resolver, config, EAI_AGAIN) == 2);
	EXPECT(resolve(&resolver, config, 0) == 3);
	EXPECT(resolve(&resolver, config, EAI_AGAIN) == 3);
	EXPECT(resolve(&resolver, config, EAI_FAIL) == 3);
	EXPECT(resolve(&resolver, config, EAI_NONAME) == 2);
	EXPECT(resolve(&resolver, config, EAI_AGAIN) == 2);
	resolver_stop(&resolver, false);
	config_free(config);
}

/* While one name is in doubt, another one gets a new address, and its former one is no member. */
static void resolver_read__moves_names_beside_doubtful_ones(void)
{
	struct config *config = config_of("member a\nmember ?b\n");
	struct resolver resolver = {};

	EXPECT(resolve(&resolver, config, 0) == 2);
	address_net = 1;
	EXPECT(resolve(&resolver, config, EAI_AGAIN) == 2);
	for (size_t i = 0; i < resolver.found.count; i++) {
		const uint8_t *bytes = resolver.found.address[i].bytes;

		EXPECT(bytes[14] == (bytes[15] == 'a'));
	}
	address_net = 0;
	resolver_stop(&resolver, false);
	config_free(config);
}

/* Debian gives the name of the host itself an address that no other host knows. */
static void resolver_read__ignores_addresses_of_this_host_only(void)
{
	struct config *config = config_of("member a\nmember !self\n");
	struct resolver resolver = {};

	EXPECT(resolve(&resolver, config, 0) == 1);
	resolver_stop(&resolver, false);
	config_free(config);
}

/* The process that reads the answers of name servers has no key and no capability. */
static void resolver_start__drops_keys_and_privileges(void)
{
	struct config *config = config_of("member a\nmember $b\n");
	struct resolver resolver = {};

	EXPECT(resolve(&resolver, config, 0) == 1);
	EXPECT(config->keys[0].words[0] && config->keys[0].words[1]);
	resolver_stop(&resolver, false);
	config_free(config);
}

/* ---- chrony, ntpd and the page ---- */

struct sample {
	struct timeval tv;
	double offset;
	int pulse;
	int leap;
	int pad;
	int magic;
};

static void refclock_put__chrony(void)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct config config = { .shm = -1 };
	struct refclock refclock;
	struct sample sample;
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	snprintf(config.sock, sizeof(config.sock), "%s", path_of("sock"));
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", config.sock);
	refclock_open(&refclock, &config);
	EXPECT(refclock_put(&refclock, &config, 5, 5) == 0);
	EXPECT(!bind(fd, (struct sockaddr *)&address, sizeof(address)));
	EXPECT(refclock_put(&refclock, &config, -1500, 5) == 1);
	EXPECT(recv(fd, &sample, sizeof(sample), 0) == sizeof(sample));
	EXPECT(sample.magic == 0x534f434b && !sample.pulse && !sample.leap);
	EXPECT((long)(sample.offset * 1e10) == -15000);
	EXPECT(llabs(sample.tv.tv_sec - time(NULL)) < 1000);
	close(fd);
	EXPECT(refclock_put(&refclock, &config, 5, 5) == 0);
	refclock_close(&refclock);
}

static void refclock_put__ntpd(void)
{
	struct config config = { .shm = 211 };
	struct refclock refclock;
	int *shm, id;

	refclock_open(&refclock, &config);
	EXPECT(refclock.shm);
	if (!refclock.shm)
		return;
	shm = refclock.shm;
	EXPECT(refclock_put(&refclock, &config, 2000000000, 1000) == 1);
	/* mode, count, and the two times: 64-bit time_t */
	EXPECT(shm[0] == 1 && shm[1] == 2);
	EXPECT(((time_t *)shm)[1] - ((time_t *)shm)[3] == 2);
	refclock_close(&refclock);
	id = shmget(0x4e545030 + 211, 0, 0);
	EXPECT(id >= 0 && !shmctl(id, IPC_RMID, NULL));
}

static void timely_clock_at__grows_and_expires(void)
{
	struct timely_clock_page page = {
		.raw_ns = 5000, .common_ns = 1700000000000000000ULL, .rate_ppb = 1000,
		.bound_ns = 100, .growth_ppb = 50, .suspended_ns = 7,
	};
	struct timely_clock_time time;

	EXPECT(!timely_clock_at(&page, 5000 + NS_PER_S, 7, &time));
	EXPECT(time.time_ns == 1700000001000001000LL);
	EXPECT(time.latest_ns - time.time_ns == 150 && time.time_ns - time.earliest_ns == 150);
	EXPECT(!timely_clock_at(&page, 5000 + 13 * NS_PER_S, 7, &time));
	EXPECT(time.latest_ns - time.time_ns == 100 + 13 * 50 + 10 * 200000);
	EXPECT(timely_clock_at(&page, 5000 + 2000 * NS_PER_S, 7, &time) == -ESTALE);
	EXPECT(timely_clock_at(&page, 5000 + NS_PER_S, 7 + NS_PER_S, &time) == -ESTALE);
	/* A page of another boot, on a file system that outlives boots. */
	page.raw_ns = 500 * NS_PER_S;
	EXPECT(timely_clock_at(&page, 499 * NS_PER_S, 7, &time) == -ESTALE);
	EXPECT(!timely_clock_at(&page, 500 * NS_PER_S - 1000, 7, &time) && !time.age_ns);
	page.bound_ns = TIMELY_CLOCK_UNKNOWN_NS;
	EXPECT(timely_clock_at(&page, 5000, 7, &time) == -ENODATA);
}

static void timely_clock_reference_at__adds_to_the_common_time(void)
{
	struct timely_clock_page page = {
		.raw_ns = 5000, .common_ns = 1700000000000000000ULL, .rate_ppb = 1000,
		.bound_ns = 100, .growth_ppb = 50, .suspended_ns = 7, .references = 2,
		.reference_offset_ns = -7000, .reference_rate_ppb = -20000,
		.reference_bound_ns = 300, .reference_growth_ppb = 1000,
	};
	struct timely_clock_time time;

	EXPECT(timely_clock_reference_at(&page, 5000, 7, &time) == -ENODATA);
	page.references_used = 1;
	EXPECT(!timely_clock_reference_at(&page, 5000 + NS_PER_S, 7, &time));
	EXPECT(time.time_ns == 1700000001000001000LL - 7000 - 20000);
	EXPECT(time.latest_ns - time.time_ns == 150 + 300 + 1000);
	EXPECT(time.time_ns - time.earliest_ns == 150 + 300 + 1000);
	EXPECT(timely_clock_reference_at(&page, 5000, 7 + NS_PER_S, &time) == -ESTALE);
}

/* Number of readings of CLOCK_BOOTTIME after which this program is interrupted for 15 ms. */
static unsigned int interruptions;

/* Replaces the C library's function. */
int clock_gettime(clockid_t id, struct timespec *time)
{
	struct timespec pause = { .tv_nsec = 15 * NS_PER_MS };
	long err = syscall(SYS_clock_gettime, id, time);

	if (id == CLOCK_BOOTTIME && interruptions) {
		interruptions--;
		nanosleep(&pause, NULL);
	}
	return (int)err;
}

/* A program that is interrupted between the readings of two clocks was not suspended. */
static void timely_clock_now__survives_an_interruption(void)
{
	const char *path = strdup(path_of("interrupted"));
	struct timely_clock_page *page = page_open(path);
	struct timely_clock_time time;
	struct timely_clock *clock;

	EXPECT(page && !timely_clock_open(&clock, path));
	page->raw_ns = clock_ns(CLOCK_MONOTONIC_RAW);
	page->common_ns = 5;
	page->suspended_ns = timely_clock_suspended_ns();
	interruptions = 3;
	EXPECT(!timely_clock_now(clock, &time) && !interruptions);
	timely_clock_close(clock);
	munmap(page, sizeof(*page));
	free((void *)path);
}

/* A daemon that is interrupted for 10 ms while it writes: the alarm is when it goes on. */
static struct timely_clock_page *slow_page;

static void go_on(int signal)
{
	(void)signal;
	page_end(slow_page);
}

static void timely_clock_read__waits_for_the_daemon(void)
{
	struct itimerval timer = { .it_value.tv_usec = 10000 };
	const char *path = strdup(path_of("slow"));
	struct timely_clock_page copy;
	struct timely_clock *clock;

	slow_page = page_open(path);
	EXPECT(slow_page && !timely_clock_open(&clock, path));
	signal(SIGALRM, go_on);
	page_begin(slow_page);
	setitimer(ITIMER_REAL, &timer, NULL);
	EXPECT(!timely_clock_read(clock, &copy));
	timely_clock_close(clock);
	munmap(slow_page, sizeof(*slow_page));
	free((void *)path);
}

/* A program that has mapped the page of another version does not find the new layout in it. */
static void page_open__replaces_the_page_of_another_version(void)
{
	const char *path = strdup(path_of("replaced"));
	struct timely_clock_page *old = page_open(path), *new;
	struct timely_clock *clock;

	EXPECT(old);
	old->version++;
	old->common_ns = 5;
	new = page_open(path);
	EXPECT(new && !new->common_ns && new->version == TIMELY_CLOCK_VERSION);
	EXPECT(old->version == TIMELY_CLOCK_VERSION + 1 && old->common_ns == 5);
	EXPECT(!timely_clock_open(&clock, path));
	timely_clock_close(clock);
	munmap(old, sizeof(*old));
	munmap(new, sizeof(*new));
	free((void *)path);
}

/* The file of a daemon that died before it had written anything. */
static void page_open__takes_an_unwritten_page(void)
{
	const char *path = strdup(path_of("unwritten"));
	FILE *file = fopen(path, "w");
	struct timely_clock_page *page;

	EXPECT(file && !ftruncate(fileno(file), sizeof(*page)));
	fclose(file);
	page = page_open(path);
	EXPECT(page && page->magic == TIMELY_CLOCK_MAGIC);
	munmap(page, sizeof(*page));
	free((void *)path);
}

/* A file that is no page keeps its contents. */
static void page_open__refuses_other_files(void)
{
	const char *path = strdup(path_of("notes"));
	FILE *file = fopen(path, "w+");
	char line[16] = "";

	EXPECT(file && fputs("notes\n", file) >= 0 && !fflush(file));
	EXPECT(!page_open(path));
	rewind(file);
	EXPECT(fgets(line, sizeof(line), file) && !strcmp(line, "notes\n"));
	fclose(file);
	EXPECT(!access(path, F_OK));
	free((void *)path);
}

/* A page on a file system that outlives boots, 100 s old by a clock that begins at each boot. */
static void page_open__forgets_the_line_of_another_boot(void)
{
	const char *path = strdup(path_of("boot"));
	struct timely_clock_page *page = page_open(path);
	static const uint8_t unknown[16];
	struct timely_clock_time time;
	struct timely_clock *clock;

	EXPECT(page && memcmp(page->boot, unknown, sizeof(unknown)));
	page->raw_ns = clock_ns(CLOCK_MONOTONIC_RAW) - 100 * NS_PER_S;
	page->common_ns = 5;
	page->bound_ns = 100;
	page->suspended_ns = timely_clock_suspended_ns();
	EXPECT(!timely_clock_open(&clock, path) && !timely_clock_now(clock, &time));
	timely_clock_close(clock);
	page->boot[7] ^= 1;
	EXPECT(timely_clock_open(&clock, path) == -ENOENT);
	munmap(page, sizeof(*page));
	page = page_open(path);
	EXPECT(page && !page->common_ns);
	EXPECT(!timely_clock_open(&clock, path) && timely_clock_now(clock, &time) == -ENODATA);
	timely_clock_close(clock);
	munmap(page, sizeof(*page));
	free((void *)path);
}

static void page_open__is_read_by_programs(void)
{
	const char *path = strdup(path_of("page"));
	struct timely_clock_page *page, copy;
	struct timely_clock *clock;
	int fd;

	EXPECT(timely_clock_open(&clock, path) == -ENOENT);
	write_text("page", "no page");
	EXPECT(timely_clock_open(&clock, path) == -EPROTO);
	unlink(path);
	page = page_open(path);
	EXPECT(page && !timely_clock_open(&clock, path));
	EXPECT(!timely_clock_read(clock, &copy) && copy.state == TIMELY_CLOCK_STARTING);
	/* The next daemon keeps the line of the one before, but not that of another boot. Peers and
	 * counters are its own.
	 */
	page->common_ns = 5;
	page->raw_ns = 1;
	page->peer_count = 3;
	page->peers[2].state = TIMELY_CLOCK_PEER_GOOD;
	page->counters[TIMELY_CLOCK_SENT] = 7;
	munmap(page, sizeof(*page));
	page = page_open(path);
	EXPECT(page && page->common_ns == 5 && page->state == TIMELY_CLOCK_STARTING);
	EXPECT(page && !page->peer_count && !page->peers[2].state);
	EXPECT(page && !page->counters[TIMELY_CLOCK_SENT]);
	page->raw_ns = UINT64_MAX;
	munmap(page, sizeof(*page));
	page = page_open(path);
	EXPECT(page && !page->common_ns && page->raw_ns == UINT64_MAX);
	/* A daemon that dies while it writes. */
	page_begin(page);
	EXPECT(timely_clock_read(clock, &copy) == -EAGAIN);
	page_begin(page);
	page->state = TIMELY_CLOCK_STOPPED;
	page_end(page);
	EXPECT(!timely_clock_read(clock, &copy) && copy.state == TIMELY_CLOCK_STOPPED);
	/* The file was removed, and a new daemon has made another one. */
	unlink(path);
	fd = open(path, O_RDWR | O_CREAT, 0644);
	page->version++;
	EXPECT(write(fd, page, sizeof(*page)) == sizeof(*page));
	EXPECT(timely_clock_read(clock, &copy) == -EPROTO);
	close(fd);
	munmap(page, sizeof(*page));
	timely_clock_close(clock);
	free((void *)path);
}

/* ---- all tests ---- */

static void run(const char *name, void (*test)(void))
{
	good = true;
	test();
	printf("%s %u - %s\n", good ? "ok" : "not ok", ++number, name);
	failed += !good;
}

#define RUN(test)	run(#test, test)

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	directory = argv[1];
	rounds = strtoul(argv[2], NULL, 10);
	random_state = strtoull(argv[3], NULL, 10) | 1;
	RUN(graph_peers__both_ends_agree);
	RUN(graph_peers__all_have_the_degree);
	RUN(graph_peers__all_are_connected);
	RUN(graph_peers__a_new_host_disturbs_few);
	RUN(message_encode__is_read_again);
	RUN(message_verify__every_bit_counts);
	RUN(message_decode__refuses_other_lengths);
	RUN(peer_take__clocks_are_found);
	RUN(estimate_solve__few_probes_without_queues);
	RUN(peer_take__refuses_a_replayed_message);
	RUN(peer_take__refuses_an_earlier_session);
	RUN(peer_take__answers_a_peer_that_was_silent);
	RUN(peer_take__refuses_an_earlier_nonce);
	RUN(peer_take__refuses_an_old_nonce);
	RUN(peer_take__both_find_each_other_after_a_start);
	RUN(peer_take__survives_any_numbers);
	RUN(estimate_path_idle__follows_queues);
	RUN(group_round__runs_on_while_a_port_is_busy);
	RUN(group_peer_offset__a_lie_is_noticed);
	RUN(clock_difference__has_its_error);
	RUN(host_clock_from_system__follows_slewing);
	RUN(host_clock_tick__notices_a_suspension);
	RUN(config_read__members);
	RUN(config_read__references);
	RUN(config_read__refuses);
	RUN(config_read__survives_any_file);
	RUN(address_interface__is_the_device_without_the_label);
	RUN(wire_filter__accepts_messages_of_peers);
	RUN(wire_filter__compares_whole_ipv6_addresses);
	RUN(qdisc__kinds);
	RUN(references_agree__one_is_enough);
	RUN(references_agree__drops_the_odd_one);
	RUN(references_agree__one_does_not_move_the_others);
	RUN(references_agree__needs_a_majority);
	RUN(resolver_read__keeps_names_without_an_answer);
	RUN(resolver_read__moves_names_beside_doubtful_ones);
	RUN(resolver_read__ignores_addresses_of_this_host_only);
	RUN(resolver_start__drops_keys_and_privileges);
	RUN(refclock_put__chrony);
	RUN(refclock_put__ntpd);
	RUN(timely_clock_at__grows_and_expires);
	RUN(timely_clock_reference_at__adds_to_the_common_time);
	RUN(timely_clock_now__survives_an_interruption);
	RUN(timely_clock_read__waits_for_the_daemon);
	RUN(page_open__replaces_the_page_of_another_version);
	RUN(page_open__takes_an_unwritten_page);
	RUN(page_open__refuses_other_files);
	RUN(page_open__forgets_the_line_of_another_boot);
	RUN(page_open__is_read_by_programs);
	RUN(take_events__a_suspension_withdraws_offsets);
	RUN(update_rate__a_step_keeps_the_rate);
	RUN(send_pairs__a_nic_timestamps_one_probe_at_a_time);
	RUN(send_pairs__waits_for_no_other_nic);
	RUN(send_pairs__goes_on_without_timestamps);
	RUN(send_pairs__probes_are_apart);
	RUN(write_page__continues_the_line_of_before);
	RUN(write_page__drops_the_line_when_a_peer_is_not_settled);
	RUN(give_refclock__follows_the_references);
	RUN(list_peers__references_are_peers_of_all);
	RUN(fill_reference__follows_an_unsteady_reference);
	RUN(fill_reference__follows_a_late_reference);
	RUN(announce_references__names_those_that_are_not_used);
	printf("1..%u\n", number);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
