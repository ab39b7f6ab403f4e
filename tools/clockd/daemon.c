// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon: one thread that waits for packets, timestamps, signals and deadlines.
 *
 *	pair	each peer gets pairs of probes at random intervals, 16 per second on average, half
 *		as many while the path is idle
 *	tick	four times per second the clocks of this host are read, the estimates are computed,
 *		the common time is averaged with the peers, and the clock page is written
 *	second	once per second chrony, ntpd, On-Ramp and the service manager get the result
 *	members	every ten seconds the own address is looked up, every five minutes names are
 *		resolved again
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/signalfd.h>

#include "clockd.h"

#define TICK_NS			(NS_PER_S / 4)
#define TICKS_PER_SECOND	4
#define MEMBERS_NS		(10 * NS_PER_S)
#define RESOLVE_NS		(300 * NS_PER_S)
/* Interval between the two probes of a pair, ns: long enough that a NIC sends the first before the
 * second comes, short enough that other packets seldom come between. Timers add some 50 us.
 */
#define SPACING_NS		20000
/* Time from the first probe to one peer to that to the next, ns, if the qdisc sends packets at the
 * times that are given: longer than a probe takes on a link of 1 Gb/s, 2 us. The kernel takes its
 * timestamp when the driver gets a probe. A probe that waits behind others in the NIC after that
 * seems to have a longer path.
 */
#define APART_NS		10000
/* Many NICs timestamp one sent packet at a time (igb, ixgbe; igc four), and send others without a
 * timestamp until the driver has read it, which takes an interrupt and often a work item. If more
 * than one of STAMP_SHARE probes, of at least STAMP_PROBES, gets no timestamp but others do, each
 * probe waits for the timestamp of the one before. On other NICs that would only move the probes of
 * a pair apart by the time that the first one waits for the link, and so spoil pairs.
 */
#define STAMP_PROBES		128
#define STAMP_SHARE		8
/* Longest wait for a timestamp, ns. With 32 peers whose probes get none any more, a turn takes
 * 15 ms: packets of up to 95 ms come meanwhile, fewer than BATCH.
 */
#define STAMP_WAIT_NS		200000
/* Longest interval between pairs to a peer that does not answer, ns. */
#define SILENT_WAIT_NS		(8 * NS_PER_S)
/* Rounds over which the rate of the system clock is measured: 2 s, so that an error of a reading of
 * 50 ns is 25 ppb, and a change of the rate is followed.
 */
#define RATE_ROUNDS		8
/* Probes without a timestamp after which the log shows that. */
#define UNTIMED_PROBES		200
/* Probes after which the log shows that a peer does not answer: about eight seconds. */
#define SILENT_PROBES		12
/* Lines about a peer that the log gets in this time, ns. */
#define TELL_LINES		10
#define TELL_NS			(600 * NS_PER_S)
/* Smallest change of the common time that the log shows, ns. */
#define LOGGED_JUMP_NS		1000
/* Packets that are taken before deadlines are looked at again. */
#define BATCH			256
/* Full batches in a row, 100 to 160 ms, after which the kernel drops packets of others than peers.
 */
#define FLOOD_BATCHES		5
/* Interval at which packets are taken, and pairs are sent that are due. Packets have timestamps and
 * need no answer at once, and each wake-up costs CPU time.
 */
#define WAKE_NS			(20 * NS_PER_MS)
/* Added to this interval if the paths to all peers are idle; if only some are, their share of it,
 * but no more than lets the others have as many pairs as are set. Ticks wait for the wake-up, too:
 * if they did not, all hosts that have started at the same time would send at the same times.
 */
#define IDLE_WAKE_NS		(60 * NS_PER_MS)
/* Longest interval between pairs on an idle path, ns: a fit needs eight points in four seconds. */
#define IDLE_PAIR_NS		(NS_PER_S / 8)

/**
 * struct unused_references - references that are not used for one reason
 * @now: bit n: reference n
 * @since_ns: since when @now is as it is
 * @told: @now as the log has it
 * @told_ns: when the log got it; 0: never
 */
struct unused_references {
	unsigned int now;
	uint64_t since_ns;
	unsigned int told;
	uint64_t told_ns;
};

/**
 * struct clockd - the daemon
 * @path: path of the configuration
 * @config: the configuration
 * @resolver: resolves names
 * @members: all hosts: from the configuration and by name
 * @own: this host's address among them
 * @joined: @own is known, and the socket is open
 * @lost_told: the log has why this host has not joined
 * @peers: the peers
 * @peer_count: their number
 * @clock: the clocks of this host
 * @wire: the socket
 * @refclock: chrony and ntpd
 * @onramp: module timely
 * @group: the common time
 * @started: the common time has started
 * @goes_on: until the common time is known, the line of the session or the daemon before counts
 * @page: the clock page
 * @past: counters of former peers, and those that belong to no peer
 * @signals: file that signals are read from
 * @tick_ns: when the next tick is due
 * @ticks: number of ticks
 * @members_ns: when the own address is looked up next
 * @resolve_ns: when names are resolved next
 * @nic_lost: the NIC whose clock was used is gone: it is used again when it is back
 * @report: the clocks of this host, for the peers
 * @before: system clock minus probe clock in the last rounds, and when that was by the probe clock,
 *	0: not known; and by how much that differed from what @system_rate_q32 predicted, ns
 * @round: number of rounds
 * @system_rate_q32: how much faster the system clock runs than the probe clock, Q32
 * @unsteady_ns: error of the system clock until the next round, because of a change of its rate or
 *	an unnoticed step, ns
 * @untimed_told: the log has that sent probes get no timestamps
 * @in_turn: the NIC has no room for the timestamps of several probes
 * @probes: probes sent since the timestamps were counted last
 * @stamped: timestamps of sent probes since then
 * @full_batches: number of full batches in a row
 * @flooded: a batch was full since the members were looked at
 * @flood_told_ns: when the log got that packets of others than peers are dropped; 0: never
 * @apart: references that are known and contradict most of the others; TELL_NONE: no majority
 *	agrees
 * @inexact: references whose bounds are too large to count
 * @failed: the daemon ends because of an error
 *
 * Times without another remark are CLOCK_MONOTONIC.
 */
struct clockd {
	const char *path;
	struct config *config;
	struct resolver resolver;
	struct members members;
	struct address own;
	bool joined;
	bool lost_told;
	struct peer peers[TIMELY_CLOCK_PEERS];
	size_t peer_count;
	struct host_clock clock;
	struct wire wire;
	struct refclock refclock;
	struct onramp onramp;
	struct group *group;
	bool started;
	bool goes_on;
	struct timely_clock_page *page;
	uint64_t past[TIMELY_CLOCK_COUNTERS];
	int signals;
	uint64_t tick_ns;
	unsigned int ticks;
	uint64_t members_ns;
	uint64_t resolve_ns;
	bool nic_lost;
	struct report report;
	struct {
		int64_t offset_ns;
		uint64_t at_ns;
		uint64_t bend_ns;
	} before[RATE_ROUNDS];
	unsigned int round;
	int64_t system_rate_q32;
	uint64_t unsteady_ns;
	bool untimed_told;
	bool in_turn;
	unsigned int probes;
	unsigned int stamped;
	unsigned int full_batches;
	bool flooded;
	uint64_t flood_told_ns;
	struct unused_references apart;
	struct unused_references inexact;
	bool failed;
};

static const char *peer_text(const struct peer *peer)
{
	static char text[ADDRESS_TEXT];

	return address_text(text, &peer->address);
}

/* Signed seconds with nanoseconds. */
static const char *seconds_text(int64_t ns)
{
	static char text[32];

	snprintf(text, sizeof(text), "%c%lld.%09lld s", ns < 0 ? '-' : '+',
		 llabs(ns) / (long long)NS_PER_S, llabs(ns) % (long long)NS_PER_S);
	return text;
}

/* Whether the log may have one more line about a peer: a member that lies could fill the log. */
static bool may_tell(struct peer *peer)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (now_ns - peer->told_ns >= TELL_NS) {
		peer->told_ns = now_ns;
		peer->told = 0;
	}
	if (peer->told < TELL_LINES)
		return ++peer->told;
	if (peer->told++ == TELL_LINES)
		tell_notice("peer %s: its state changes often: the log gets no more of this for up to %llu minutes; timelyctl clock shows the state",
			    peer_text(peer), TELL_NS / (60 * NS_PER_S));
	return false;
}

/* ---- sessions: the probe clock ---- */

/* Offsets between probe clocks are void. The line of the common time remains: line_goes_on(). */
static void clear_peers(struct clockd *daemon)
{
	page_begin(daemon->page);
	daemon->page->state = TIMELY_CLOCK_STARTING;
	daemon->page->peer_count = 0;
	/* give_offsets() must not give them to On-Ramp as new ones. */
	memset(daemon->page->peers, 0, sizeof(daemon->page->peers));
	page_end(daemon->page);
}

/* The probe clock is another one now, or was stepped: nothing from before counts. */
static void start_session(struct clockd *daemon)
{
	daemon->started = false;
	daemon->goes_on = true;
	clear_peers(daemon);
	memset(daemon->before, 0, sizeof(daemon->before));
	daemon->system_rate_q32 = 0;
	daemon->report = (struct report){};
	memset(daemon->wire.cookie, 0, sizeof(daemon->wire.cookie));
	daemon->probes = 0;
	daemon->stamped = 0;
	for (size_t i = 0; i < daemon->peer_count; i++)
		peer_restart(&daemon->peers[i], random_number());
}

static void leave(struct clockd *daemon)
{
	if (!daemon->joined)
		return;
	wire_close(&daemon->wire);
	host_clock_close(&daemon->clock);
	daemon->joined = false;
	clear_peers(daemon);
}

/* Open the probe clock and the socket. Prints errors, once. */
static void join(struct clockd *daemon)
{
	char text[ADDRESS_TEXT];
	int err = host_clock_open(&daemon->clock, daemon->config->clock, &daemon->own,
				  daemon->lost_told);

	if (err) {
		daemon->lost_told = true;
		return;
	}
	err = wire_open(&daemon->wire, &daemon->own, daemon->config->port, &daemon->clock.nic);
	if (err) {
		if (!daemon->lost_told)
			tell_err("UDP port %u of %s cannot be used: %s: it is tried again every ten seconds; %s",
				 daemon->config->port, address_text(text, &daemon->own),
				 error_text(err), err == -EADDRNOTAVAIL ?
				 "ip address shows whether this host has the address" :
				 "ss -ulpn shows what uses the port");
		daemon->lost_told = true;
		host_clock_close(&daemon->clock);
		return;
	}
	daemon->joined = true;
	daemon->lost_told = false;
	daemon->in_turn = false;
	start_session(daemon);
}

/* ---- members and peers ---- */

static void add_past(struct clockd *daemon, const struct peer *peer)
{
	for (size_t i = 0; i < TIMELY_CLOCK_COUNTERS; i++)
		daemon->past[i] += peer->counters[i];
	daemon->past[TIMELY_CLOCK_PAIRS_LOST] += estimate_lost(peer->estimate);
}

static struct peer *find_peer(struct clockd *daemon, const struct address *address)
{
	for (size_t i = 0; i < daemon->peer_count; i++)
		if (memcmp(&daemon->peers[i].address, address, sizeof(*address)) == 0)
			return &daemon->peers[i];
	return NULL;
}

/* Whether references are peers of all members, as the configuration demands if it names some. */
static bool references_possible(const struct clockd *daemon)
{
	return daemon->members.count <= TIMELY_CLOCK_PEERS + 1;
}

/* A reference and each other member are peers of each other. Returns the number of peers. */
static size_t add_references(const struct clockd *daemon, struct address *chosen, size_t count)
{
	bool own = config_has_reference(daemon->config, &daemon->own);

	for (size_t i = 0; i < daemon->members.count; i++) {
		const struct address *member = &daemon->members.address[i];
		bool new = memcmp(member, &daemon->own, sizeof(*member)) != 0 &&
			   (own || config_has_reference(daemon->config, member));

		for (size_t c = 0; new && c < count; c++)
			new = memcmp(member, &chosen[c], sizeof(*member)) != 0;
		if (new)
			chosen[count++] = *member;
	}
	return count;
}

/* Choose peers. Prints an error if references are not possible. */
static size_t list_peers(const struct clockd *daemon, struct address *chosen)
{
	size_t count = graph_peers(&daemon->members, &daemon->own, daemon->config->degree, chosen);

	if (!daemon->config->reference_count)
		return count;
	if (references_possible(daemon))
		return add_references(daemon, chosen, count);
	tell_err("there are %zu members: a reference is a peer of all members, so at most %u are possible: no reference is used",
		 daemon->members.count, TIMELY_CLOCK_PEERS + 1);
	return count;
}

/* Keep the peers that are chosen again, and replace the others. */
static void choose_peers(struct clockd *daemon)
{
	struct address chosen[TIMELY_CLOCK_PEERS];
	static struct peer kept[TIMELY_CLOCK_PEERS];
	size_t count = list_peers(daemon, chosen);
	size_t kept_count = 0;

	for (size_t i = 0; i < count; i++) {
		struct peer *peer = find_peer(daemon, &chosen[i]);

		if (peer) {
			kept[kept_count++] = *peer;
			peer->estimate = NULL;
		} else if (peer_init(&kept[kept_count], &chosen[i], random_number(),
				     random_number())) {
			kept_count++;
		}
	}
	for (size_t i = 0; i < daemon->peer_count; i++) {
		if (!daemon->peers[i].estimate)
			continue;
		add_past(daemon, &daemon->peers[i]);
		peer_free(&daemon->peers[i]);
	}
	memcpy(daemon->peers, kept, sizeof(kept));
	daemon->peer_count = kept_count;
	/* The numbers of peers in them are those of before. */
	memset(daemon->wire.cookie, 0, sizeof(daemon->wire.cookie));
	tell_info("%zu of %zu members are peers", kept_count, daemon->members.count);
}

/* Find the member that this host is. */
static bool find_own(struct clockd *daemon, struct address *own)
{
	if (!daemon->config->has_own)
		return address_of_host(&daemon->members, own);
	*own = daemon->config->own;
	if (!members_find(&daemon->members, own) && !members_add(&daemon->members, own))
		return false;
	members_sort(&daemon->members);
	return true;
}

static void list_members(struct clockd *daemon)
{
	daemon->members = (struct members){};
	for (size_t i = 0; i < daemon->config->members.count; i++)
		members_add(&daemon->members, &daemon->config->members.address[i]);
	for (size_t i = 0; i < daemon->resolver.found.count; i++)
		members_add(&daemon->members, &daemon->resolver.found.address[i]);
	members_sort(&daemon->members);
}

static bool same_members(const struct members *a, const struct members *b)
{
	return a->count == b->count &&
	       memcmp(a->address, b->address, a->count * sizeof(*a->address)) == 0;
}

static void tell_lost(struct clockd *daemon)
{
	/* The first names may still be on their way. */
	if (daemon->lost_told || (daemon->config->name_count && daemon->resolver.pid))
		return;
	tell_err("no address of this host is in the list of members of \"%s\": add it, or check ip address; it is tried again every ten seconds",
		 daemon->path);
	daemon->lost_told = true;
}

/* Use the clock of the NIC again when the NIC is back. */
static void regain_nic(struct clockd *daemon)
{
	char name[IFNAMSIZ];

	if (!daemon->nic_lost || host_clock_is_nic(&daemon->clock) ||
	    address_interface(&daemon->own, name) || !nic_usable(name))
		return;
	daemon->nic_lost = false;
	leave(daemon);
}

/* Choose the NIC again if the own address is on another NIC: this one gets no probes any more. */
static void follow_address(struct clockd *daemon)
{
	char name[IFNAMSIZ];

	if (!daemon->joined || !host_clock_is_nic(&daemon->clock) ||
	    strcmp(daemon->config->clock, "auto") != 0 ||
	    address_interface(&daemon->own, name) || strcmp(name, daemon->clock.nic.name) == 0)
		return;
	daemon->past[TIMELY_CLOCK_NIC_CHANGES]++;
	tell_notice("the address of this host is on %s now, and no longer on %s: the probe clock is chosen again",
		    name, daemon->clock.nic.name);
	leave(daemon);
}

/* The list of members, or this host's address, may have changed. */
static void update_members(struct clockd *daemon)
{
	struct members before = daemon->members;
	struct address own;
	bool changed;

	/* The peers may be others soon; and strangers are counted again. */
	daemon->full_batches = 0;
	daemon->flooded = false;
	if (daemon->joined)
		wire_filter(&daemon->wire, NULL, 0);
	list_members(daemon);
	if (!find_own(daemon, &own)) {
		tell_lost(daemon);
		leave(daemon);
		members_free(&before);
		/* So that peers are chosen again when there is an address. */
		members_free(&daemon->members);
		return;
	}
	changed = !same_members(&before, &daemon->members);
	members_free(&before);
	if (memcmp(&own, &daemon->own, sizeof(own)) != 0) {
		leave(daemon);
		daemon->own = own;
		changed = true;
	}
	regain_nic(daemon);
	follow_address(daemon);
	if (!daemon->joined)
		join(daemon);
	if (changed)
		choose_peers(daemon);
}

static void members_due(struct clockd *daemon, uint64_t now_ns)
{
	daemon->members_ns = now_ns + MEMBERS_NS;
	if (daemon->config->name_count && !daemon->resolver.pid && now_ns >= daemon->resolve_ns) {
		daemon->resolve_ns = now_ns + RESOLVE_NS;
		if (resolver_start(&daemon->resolver, daemon->config))
			tell_warn("names cannot be resolved now: no process or memory is left");
	}
	update_members(daemon);
}

/* SIGHUP: read the configuration again. A wrong one changes nothing. */
static void reload(struct clockd *daemon, uint64_t now_ns)
{
	struct config *config = config_read(daemon->path);

	if (!config) {
		tell_err("nothing was changed: correct the file, and send SIGHUP again");
		return;
	}
	memcpy(config->page, daemon->config->page, sizeof(config->page));
	/* Names that are still in the list keep their addresses until they are resolved again. */
	resolver_stop(&daemon->resolver, config->name_count);
	refclock_close(&daemon->refclock);
	if (config->port != daemon->config->port ||
	    strcmp(config->clock, daemon->config->clock) != 0)
		leave(daemon);
	config_free(daemon->config);
	daemon->config = config;
	refclock_open(&daemon->refclock, config);
	/* The degree may be another one, and the references. */
	daemon->members.count = 0;
	daemon->apart = (struct unused_references){};
	daemon->inexact = (struct unused_references){};
	daemon->lost_told = false;
	daemon->resolve_ns = 0;
	members_due(daemon, now_ns);
	tell_info("the configuration was read again");
}

/* ---- packets ---- */

/* Send a probe at @at_ns, or at once if that is 0. Returns whether the kernel has taken it. */
static bool send_probe(struct clockd *daemon, size_t index, uint64_t at_ns)
{
	struct peer *peer = &daemon->peers[index];
	uint8_t wire[MESSAGE_BYTES];
	struct message message;

	peer_probe(peer, &message, random_number(), clock_ns(CLOCK_MONOTONIC));
	message.flags = (host_clock_is_nic(&daemon->clock) ? MESSAGE_HARDWARE : 0) |
			(daemon->started && group_settled(daemon->group) ? MESSAGE_SETTLED : 0);
	message.report = daemon->report;
	for (size_t i = 0; i < PROBE_RECORDS; i++)
		if (message.received[i].ns)
			message.received[i].ns += daemon->config->test_lie_ns;
	message_encode(wire, &message, &daemon->own, &peer->address, &daemon->config->keys[0]);
	if (wire_send(&daemon->wire, &peer->address, wire, sizeof(wire),
		      (uint64_t)(index + 1) << 32 | message.seq, at_ns)) {
		peer->counters[TIMELY_CLOCK_NOT_SENT]++;
		return false;
	}
	daemon->probes++;
	return true;
}

/* Choose when the next pair is due. */
static void schedule(struct clockd *daemon, struct peer *peer, uint64_t now_ns)
{
	uint64_t from_ns = now_ns;

	if (peer_heard(peer, now_ns)) {
		peer->wait_ns = NS_PER_S / daemon->config->pairs;
		if (peer->path_idle && peer->wait_ns < IDLE_PAIR_NS)
			peer->wait_ns = 2 * peer->wait_ns < IDLE_PAIR_NS ? 2 * peer->wait_ns :
									   IDLE_PAIR_NS;
		/* A pair that waited for a wake-up does not delay the ones after it. */
		if (now_ns - peer->due_ns < peer->wait_ns)
			from_ns = peer->due_ns;
	} else {
		peer->wait_ns = peer->wait_ns * 2 > SILENT_WAIT_NS ? SILENT_WAIT_NS :
				peer->wait_ns ? peer->wait_ns * 2 : NS_PER_S / 4;
	}
	/* Between half and one and a half of the interval: hosts do not fall into step. */
	peer->due_ns = from_ns + peer->wait_ns / 2 + random_number() % peer->wait_ns;
}

/* Timestamps of sent probes. */
static void take_sent(struct clockd *daemon)
{
	uint64_t cookie, ns;

	for (int i = 0; i < BATCH && wire_sent(&daemon->wire, &cookie, &ns) > 0; i++) {
		size_t index = (cookie >> 32) - 1;

		daemon->stamped += ns != 0;
		if (ns && !host_clock_is_nic(&daemon->clock))
			ns = host_clock_from_system(&daemon->clock, ns);
		if (index < daemon->peer_count && ns && ns < TIME_MAX_NS)
			peer_sent(&daemon->peers[index], (uint32_t)cookie, ns);
	}
}

/* Notice a NIC that has no room for the timestamps of several probes. All timestamps of the last
 * turn have been read.
 */
static void count_timestamps(struct clockd *daemon)
{
	unsigned int missing = daemon->probes - daemon->stamped;

	if (daemon->probes < STAMP_PROBES)
		return;
	if (host_clock_is_nic(&daemon->clock) && !daemon->in_turn && daemon->stamped &&
	    daemon->stamped < daemon->probes && missing * STAMP_SHARE > daemon->probes) {
		daemon->in_turn = true;
		tell_info("%s timestamps only %u of %u probes: each now waits for the timestamp of the one before",
			  daemon->clock.nic.name, daemon->stamped, daemon->probes);
	}
	daemon->probes = 0;
	daemon->stamped = 0;
}

static void pause_pair(void)
{
	struct timespec spacing = { .tv_nsec = SPACING_NS };

	clock_nanosleep(CLOCK_MONOTONIC, 0, &spacing, NULL);
}

/* Wait for the timestamp of the probe that the peer was sent last. */
static void await_timestamp(struct clockd *daemon, const struct peer *peer)
{
	const struct exchanged *probe = &peer->sent[(peer->seq - 1) % PEER_PROBES];
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + STAMP_WAIT_NS;

	take_sent(daemon);
	while (!probe->own_ns && now_ns < end_ns) {
		wire_wait_sent(&daemon->wire, end_ns - now_ns);
		take_sent(daemon);
		now_ns = clock_ns(CLOCK_MONOTONIC);
	}
}

/* Send pairs to these peers, each probe after the timestamp of the one before. */
static void send_in_turn(struct clockd *daemon, const size_t *due, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct peer *peer = &daemon->peers[due[i]];

		if (send_probe(daemon, due[i], 0)) {
			pause_pair();
			await_timestamp(daemon, peer);
		}
		if (send_probe(daemon, due[i], 0) && i + 1 < count)
			await_timestamp(daemon, peer);
	}
}

/* Send a probe to each of these peers: the first one, due[@first], at @at_ns, and each other one
 * APART_NS after the one before.
 */
static void send_apart(struct clockd *daemon, const size_t *due, size_t count, size_t first,
		       uint64_t at_ns)
{
	for (size_t i = 0; i < count; i++)
		send_probe(daemon, due[(first + i) % count], at_ns + i * APART_NS);
}

/* Send pairs to these peers: all first probes, then all second ones. Where the qdisc sends them
 * without a space between, only the first one does not wait for others, so each peer's turn to be
 * the first one comes.
 */
static void send_together(struct clockd *daemon, const size_t *due, size_t count)
{
	uint64_t first_ns = clock_ns(CLOCK_MONOTONIC), second_ns;
	size_t first = random_number() % count;

	send_apart(daemon, due, count, first, first_ns);
	pause_pair();
	/* If there are many, the last of the first probes are sent meanwhile. */
	second_ns = clock_ns(CLOCK_MONOTONIC);
	second_ns += APART_NS - (second_ns - first_ns + APART_NS / 2) % APART_NS;
	send_apart(daemon, due, count, first, second_ns);
}

/* Send the pairs that are due. */
static void send_pairs(struct clockd *daemon)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	size_t due[TIMELY_CLOCK_PEERS], count = 0;

	for (size_t i = 0; daemon->joined && i < daemon->peer_count; i++)
		if (daemon->peers[i].due_ns <= now_ns)
			due[count++] = i;
	if (!count)
		return;
	if (daemon->in_turn)
		send_in_turn(daemon, due, count);
	else
		send_together(daemon, due, count);
	for (size_t i = 0; i < count; i++)
		schedule(daemon, &daemon->peers[due[i]], now_ns);
}

static void count_refused(struct clockd *daemon, enum timely_clock_counter counter)
{
	daemon->past[counter]++;
}

/* Check a packet, and give it to its peer. */
static void take_packet(struct clockd *daemon, const struct arrival *arrival, uint64_t now_ns)
{
	struct peer *peer = find_peer(daemon, &arrival->from);
	uint64_t ns = arrival->ns;
	struct message message;
	const struct key *key;

	if (!peer)
		return count_refused(daemon, TIMELY_CLOCK_STRANGER);
	if (!message_decode(&message, arrival->wire, arrival->bytes))
		return count_refused(daemon, TIMELY_CLOCK_MALFORMED);
	key = config_key(daemon->config, message.key);
	if (!key)
		return count_refused(daemon, TIMELY_CLOCK_NO_KEY);
	if (!message_verify(arrival->wire, &arrival->from, &daemon->own, key))
		return count_refused(daemon, message.session == peer->own_session ?
				     TIMELY_CLOCK_REFLECTED : TIMELY_CLOCK_BAD_TAG);
	if (ns && !host_clock_is_nic(&daemon->clock))
		ns = host_clock_from_system(&daemon->clock, ns);
	peer_take(peer, &message, ns < TIME_MAX_NS ? ns : 0, now_ns);
}

/* More packets come than are taken. They would fill the socket's queue, which the packets of peers
 * and the timestamps of sent probes share: let the kernel drop those of others than peers, until
 * the members are looked at again.
 */
static void filter_flood(struct clockd *daemon, uint64_t now_ns)
{
	struct address peers[TIMELY_CLOCK_PEERS];

	for (size_t i = 0; i < daemon->peer_count; i++)
		peers[i] = daemon->peers[i].address;
	if (!daemon->peer_count || wire_filter(&daemon->wire, peers, daemon->peer_count) ||
	    (daemon->flood_told_ns && now_ns - daemon->flood_told_ns < TELL_NS))
		return;
	daemon->flood_told_ns = now_ns;
	tell_warn("more packets come to UDP port %u than can be counted: the kernel drops those that are not from peers: let a firewall drop them",
		  daemon->config->port);
}

static void take_packets(struct clockd *daemon)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct arrival arrival;
	unsigned int count = 0;

	host_clock_refresh(&daemon->clock);
	/* Timestamps of sent probes first: received records may be about them. */
	take_sent(daemon);
	count_timestamps(daemon);
	while (count < BATCH && wire_receive(&daemon->wire, &arrival) > 0) {
		take_packet(daemon, &arrival, now_ns);
		count++;
	}
	daemon->full_batches = count < BATCH ? 0 : daemon->full_batches + 1;
	daemon->flooded |= daemon->full_batches > 0;
	if (daemon->full_batches == FLOOD_BATCHES)
		filter_flood(daemon, now_ns);
}

/* ---- rounds ---- */

/* The system clock minus the probe clock. Returns false if it is not known yet. */
static bool system_minus_probe(struct clockd *daemon, int64_t *offset_ns, uint64_t *probe_ns,
			       uint32_t *error_ns)
{
	struct host_clock *clock = &daemon->clock;
	struct reading map = host_clock_map(clock, clock->system_raw_ns);

	*offset_ns = clock->system_ns - map.offset_ns;
	*probe_ns = clock->system_raw_ns + map.offset_ns;
	*error_ns = clock->system_error_ns + map.error_ns;
	return map.known;
}

/* By how much the system clock differs from what its rate says since the last round. */
static uint64_t bend_of(const struct clockd *daemon, int64_t system_ns, uint64_t probe_ns,
			unsigned int last)
{
	int64_t elapsed = difference(probe_ns, daemon->before[last].at_ns);

	if (!daemon->before[last].at_ns || elapsed <= 0 || elapsed >= 10 * (int64_t)NS_PER_S)
		return 0;
	return llabs(system_ns - daemon->before[last].offset_ns -
		     (elapsed * daemon->system_rate_q32 >> 32));
}

/* The rate is the mean of two seconds. After a step that is too small to be noticed, and while
 * chrony begins or ends to slew, it is wrong, and the largest bend of these two seconds shows by
 * how much. A report is used for about as long as two rounds take.
 */
static void update_steadiness(struct clockd *daemon, int64_t system_ns, uint64_t probe_ns,
			      unsigned int now)
{
	unsigned int last = (now + RATE_ROUNDS - 1) % RATE_ROUNDS;

	daemon->before[now].bend_ns = bend_of(daemon, system_ns, probe_ns, last);
	daemon->unsteady_ns = 0;
	for (size_t i = 0; i < RATE_ROUNDS; i++)
		if (4 * daemon->before[i].bend_ns > daemon->unsteady_ns)
			daemon->unsteady_ns = 4 * daemon->before[i].bend_ns;
}

static void update_rate(struct clockd *daemon, int64_t system_ns, uint64_t probe_ns)
{
	unsigned int now = daemon->round++ % RATE_ROUNDS, oldest = now;
	int64_t elapsed, change;

	while (!daemon->before[oldest].at_ns && (oldest + 1) % RATE_ROUNDS != now)
		oldest = (oldest + 1) % RATE_ROUNDS;
	elapsed = difference(probe_ns, daemon->before[oldest].at_ns);
	change = system_ns - daemon->before[oldest].offset_ns;
	/* Larger changes are steps, after which the clock runs on with its former rate until that
	 * is measured again. The product fits in 64 bits.
	 */
	if (daemon->before[oldest].at_ns && elapsed > 0 && elapsed < 10 * (int64_t)NS_PER_S &&
	    llabs(change) < elapsed / 10)
		daemon->system_rate_q32 = change * (1LL << 32) / elapsed;
	update_steadiness(daemon, system_ns, probe_ns, now);
	daemon->before[now].offset_ns = system_ns;
	daemon->before[now].at_ns = probe_ns;
}

static void solve_peers(struct clockd *daemon, uint64_t probe_ns, uint64_t now_ns)
{
	for (size_t i = 0; i < daemon->peer_count; i++) {
		struct peer *peer = &daemon->peers[i];
		bool recent = peer->report.at_ns && now_ns - peer->report_ns < PEER_FRESH_NS;
		enum solved solved = estimate_solve(peer->estimate, probe_ns);

		peer->path_idle = estimate_path_idle(peer->estimate, probe_ns);
		peer->round = (struct group_peer){
			.estimate = peer->estimate,
			.report = recent ? &peer->report : NULL,
			.settled = peer->settled,
			.excluded = peer->round.excluded,
		};
		if (solved == SOLVED)
			peer->counters[TIMELY_CLOCK_FITS]++;
		if (solved != SOLVED_OVERLAP)
			continue;
		peer->counters[TIMELY_CLOCK_OVERLAPS]++;
		if (may_tell(peer))
			tell_warn("peer %s: its timestamps contradict those of the last seconds, as after a step of a clock or a sudden change of its drift: its estimate starts again",
				  peer_text(peer));
	}
}

static void average(struct clockd *daemon, uint64_t probe_ns)
{
	struct group_peer round[TIMELY_CLOCK_PEERS];
	int64_t before = group_read(daemon->group, probe_ns).offset_ns, jump;
	enum round result;

	for (size_t i = 0; i < daemon->peer_count; i++)
		round[i] = daemon->peers[i].round;
	result = group_round(daemon->group, round, daemon->peer_count, probe_ns);
	for (size_t i = 0; i < daemon->peer_count; i++)
		daemon->peers[i].round = round[i];
	jump = group_read(daemon->group, probe_ns).offset_ns - before;
	if (result != ROUND_JUMPED)
		return;
	/* The line was that of another time. */
	daemon->goes_on = false;
	daemon->past[TIMELY_CLOCK_COMMON_STEPS]++;
	if (llabs(jump) >= LOGGED_JUMP_NS)
		tell_notice("the common time of the peers is adopted: it differs from this host's by %s",
			    seconds_text(jump));
}

static enum timely_clock_peer_state peer_state(const struct peer *peer, bool known,
					       uint64_t now_ns)
{
	if (!peer_heard(peer, now_ns))
		return TIMELY_CLOCK_PEER_SILENT;
	if (!known || !peer->round.report)
		return TIMELY_CLOCK_PEER_LEARNING;
	return peer->round.excluded ? TIMELY_CLOCK_PEER_EXCLUDED : TIMELY_CLOCK_PEER_GOOD;
}

/* Log changes of a peer's state. */
static void announce(struct peer *peer, enum timely_clock_peer_state state)
{
	/* A peer gets some time to answer. */
	if (state == peer->announced || (state == TIMELY_CLOCK_PEER_SILENT &&
					 peer->counters[TIMELY_CLOCK_SENT] < SILENT_PROBES))
		return;
	if (state == TIMELY_CLOCK_PEER_EXCLUDED)
		peer->counters[TIMELY_CLOCK_EXCLUDED]++;
	peer->announced = state;
	if (state == TIMELY_CLOCK_PEER_LEARNING || !may_tell(peer))
		return;
	if (state == TIMELY_CLOCK_PEER_EXCLUDED)
		tell_warn("peer %s is excluded: its clock contradicts those of the other peers by %s: does it lie, or is its path asymmetric?",
			  peer_text(peer), seconds_text(peer->round.surplus_ns));
	else if (state == TIMELY_CLOCK_PEER_GOOD)
		tell_info("peer %s: its clock is known", peer_text(peer));
	else if (state == TIMELY_CLOCK_PEER_SILENT)
		tell_notice("peer %s does not answer: is timely-clockd running there, with the same members, degree, port and key?",
			    peer_text(peer));
}

/* ---- the clock page ---- */

/* The peer's system clock minus the own one, from its last report. */
static void fill_system_offset(struct timely_clock_peer *to, const struct report *report,
			       const struct reading *offset, int64_t system_ns, uint64_t probe_ns,
			       uint64_t error_ns, int64_t own_rate_q32)
{
	uint64_t peer_probe_ns = probe_ns + offset->offset_ns;
	int64_t age = difference(peer_probe_ns, report->at_ns);

	if (age < 0 || age > (int64_t)(2 * PEER_FRESH_NS))
		return;
	to->system_offset_ns = difference(report->system_ns + age +
					  (age * report->system_rate_q32 >> 32),
					  probe_ns + system_ns);
	to->system_drift_ppb = drift_to_ppb(report->system_rate_q32 + offset->drift_q32 -
					    own_rate_q32);
	to->system_bound_ns = (uint64_t)offset->error_ns + report->system_error_ns + error_ns;
}

static void fill_peer(struct timely_clock_peer *to, struct clockd *daemon, struct peer *peer,
		      uint64_t probe_ns, uint64_t now_ns)
{
	struct reading measured = estimate_read(peer->estimate, probe_ns);
	const struct report *report = peer->round.report;
	struct reading offset = group_peer_offset(daemon->group, report, &measured, probe_ns);
	int64_t system_ns;
	uint32_t error_ns;

	memset(to, 0, sizeof(*to));
	memcpy(to->address, peer->address.bytes, sizeof(to->address));
	to->state = peer_state(peer, measured.known, now_ns);
	to->hardware = peer->hardware && host_clock_is_nic(&daemon->clock);
	to->bound_ns = TIMELY_CLOCK_UNKNOWN_NS;
	to->system_bound_ns = TIMELY_CLOCK_UNKNOWN_NS;
	if (measured.known) {
		to->offset_ns = offset.offset_ns;
		to->drift_ppb = drift_to_ppb(offset.drift_q32);
		if (offset.error_ns < UINT32_MAX)
			to->bound_ns = offset.error_ns;
		to->half_width_ns = measured.half_width_ns;
	}
	if (measured.known && report &&
	    system_minus_probe(daemon, &system_ns, &probe_ns, &error_ns))
		fill_system_offset(to, report, &offset, system_ns, probe_ns,
				   error_ns + daemon->unsteady_ns, daemon->system_rate_q32);
	peer->growth_ppb = (uint64_t)offset.drift_error_ppb + offset.wander_ppb_s;
	to->surplus_ns = peer->round.surplus_ns;
	to->loops = measured.known && report;
	to->sent = peer->counters[TIMELY_CLOCK_SENT];
	to->received = peer->counters[TIMELY_CLOCK_RECEIVED];
	to->pure = peer->counters[TIMELY_CLOCK_PAIRS_PURE];
	to->rejected = peer->counters[TIMELY_CLOCK_PAIRS_SPREAD] +
		       peer->counters[TIMELY_CLOCK_PAIRS_CLOSER] +
		       peer->counters[TIMELY_CLOCK_PAIRS_SPACING];
	to->lost = estimate_lost(peer->estimate);
}

/* Whether the line of before counts. It does not once a peer is not settled: that peer has started,
 * too, and if all hosts have, as after an upgrade, the time that they will agree on is another one.
 */
static bool line_goes_on(struct clockd *daemon)
{
	for (size_t i = 0; i < daemon->peer_count; i++)
		if (daemon->peers[i].round.report && !daemon->peers[i].settled)
			daemon->goes_on = false;
	return daemon->goes_on;
}

/* Continue the line of before as a program does that reads the page of a daemon that has ended.
 * Returns false if the line has ended.
 */
static bool continue_line(struct timely_clock_page *page, uint64_t raw_ns, uint64_t suspended_ns)
{
	uint64_t most_ns = TIMELY_CLOCK_EXPIRE_NS / NS_PER_S * TIMELY_CLOCK_STALE_PPB, bound_ns;
	struct timely_clock_time now;

	if (timely_clock_at(page, raw_ns, suspended_ns, &now))
		return false;
	bound_ns = now.latest_ns - now.time_ns;
	if (bound_ns > most_ns)
		return false;
	page->common_ns = now.time_ns;
	page->bound_ns = bound_ns;
	if (page->growth_ppb < TIMELY_CLOCK_STALE_PPB)
		page->growth_ppb = TIMELY_CLOCK_STALE_PPB;
	return true;
}

/* The common time as a line over CLOCK_MONOTONIC_RAW. Returns whether it is known. */
static bool fill_line(struct timely_clock_page *page, struct clockd *daemon)
{
	uint64_t raw_ns = clock_ns(CLOCK_MONOTONIC_RAW);
	struct reading map = host_clock_map(&daemon->clock, raw_ns);
	struct reading group = group_read(daemon->group, raw_ns + map.offset_ns);
	bool known = map.known && group.known && daemon->started;

	if (known) {
		daemon->goes_on = false;
		page->common_ns = raw_ns + map.offset_ns + group.offset_ns;
		page->rate_ppb = drift_to_ppb(map.drift_q32 + group.drift_q32);
		page->bound_ns = (uint64_t)map.error_ns + group.error_ns;
		page->growth_ppb = (uint64_t)map.drift_error_ppb + map.wander_ppb_s +
				   group.drift_error_ppb + group.wander_ppb_s;
	} else if (!line_goes_on(daemon) ||
		   !continue_line(page, raw_ns, daemon->clock.suspended_ns)) {
		page->common_ns = 0;
		page->bound_ns = TIMELY_CLOCK_UNKNOWN_NS;
	}
	page->raw_ns = raw_ns;
	page->suspended_ns = daemon->clock.suspended_ns;
	if (page->common_ns)
		page->system_offset_ns = difference(page->common_ns,
						    raw_ns + daemon->clock.system_ns);
	return known;
}

/* ---- references ---- */

/* Growth of the error of a reference's rate, beyond that of the measurement, ppb: its rate was
 * measured in two seconds.
 */
#define REFERENCE_GROWTH_PPB	1000
/* Value of @apart.now: no majority agrees. */
#define TELL_NONE		(1U << REFERENCES_MAX)
/* How long references must be unused before the log shows that, ns: after a start they become known
 * one after another.
 */
#define REFERENCES_UNUSED_NS	(5 * NS_PER_S)

/* A reference's system clock minus the common time at @probe_ns, from its last report. @offset: its
 * probe clock minus the own one. The own system clock does not matter.
 */
static struct reference read_report(const struct clockd *daemon, const struct report *report,
				    const struct reading *offset, uint64_t probe_ns)
{
	struct reading group = group_read(daemon->group, probe_ns);
	int64_t age = difference(probe_ns + offset->offset_ns, report->at_ns);
	uint64_t system_ns;

	if (!report->at_ns || age < 0 || age > (int64_t)(2 * PEER_FRESH_NS))
		return (struct reference){};
	system_ns = report->system_ns + age + (age * report->system_rate_q32 >> 32);
	return (struct reference){
		.known = true,
		.offset_ns = difference(system_ns, probe_ns + group.offset_ns),
		.rate_ppb = drift_to_ppb(report->system_rate_q32 + offset->drift_q32 -
					 group.drift_q32),
		.bound_ns = (uint64_t)offset->error_ns + report->system_error_ns + group.error_ns,
		.growth_ppb = (uint64_t)offset->drift_error_ppb + offset->wander_ppb_s +
			      REFERENCE_GROWTH_PPB,
	};
}

/* The reference @index of the configuration, which may be this host. */
static struct reference read_reference(struct clockd *daemon, size_t index, uint64_t probe_ns,
				       uint64_t now_ns)
{
	const struct address *address = &daemon->config->references[index];
	const struct peer *peer = find_peer(daemon, address);
	const struct reading none = { .known = true };
	struct reading measured, offset;

	if (memcmp(address, &daemon->own, sizeof(*address)) == 0)
		return read_report(daemon, &daemon->report, &none, probe_ns);
	if (!peer)
		return (struct reference){};
	measured = estimate_read(peer->estimate, probe_ns);
	if (peer_state(peer, measured.known, now_ns) != TIMELY_CLOCK_PEER_GOOD)
		return (struct reference){};
	offset = group_peer_offset(daemon->group, peer->round.report, &measured, probe_ns);
	return read_report(daemon, peer->round.report, &offset, probe_ns);
}

static void note_unused(struct unused_references *unused, unsigned int now, uint64_t now_ns)
{
	if (now != unused->now)
		unused->since_ns = now_ns;
	unused->now = now;
}

/* The reference time at @page->raw_ns, if the common time is known. */
static void fill_reference(struct timely_clock_page *page, struct clockd *daemon, uint64_t now_ns)
{
	struct reading map = host_clock_map(&daemon->clock, page->raw_ns);
	struct reference references[REFERENCES_MAX], result;
	size_t count = daemon->config->reference_count;
	unsigned int apart = 0, inexact = 0;

	page->references = count;
	page->references_used = 0;
	if (page->state != TIMELY_CLOCK_RUNNING || !references_possible(daemon))
		return;
	for (size_t i = 0; i < count; i++)
		references[i] = read_reference(daemon, i, page->raw_ns + map.offset_ns, now_ns);
	page->references_used = references_agree(references, count, &result);
	for (size_t i = 0; i < count; i++) {
		if (references[i].known && !references[i].used)
			apart |= 1U << i;
		if (references[i].inexact)
			inexact |= 1U << i;
	}
	if (apart && !page->references_used)
		apart = TELL_NONE;
	note_unused(&daemon->apart, apart, now_ns);
	note_unused(&daemon->inexact, inexact, now_ns);
	page->reference_offset_ns = result.offset_ns;
	page->reference_rate_ppb = result.rate_ppb;
	page->reference_bound_ns = result.bound_ns;
	page->reference_growth_ppb = result.growth_ppb;
}

/* Whether the log shall have @unused: when that has changed, at most every ten minutes. */
static bool may_tell_unused(struct unused_references *unused, uint64_t now_ns)
{
	if (unused->now == unused->told || now_ns - unused->since_ns < REFERENCES_UNUSED_NS ||
	    (unused->told_ns && now_ns - unused->told_ns < TELL_NS))
		return false;
	if (unused->now)
		unused->told_ns = now_ns;
	unused->told = unused->now;
	return true;
}

/* Log which references are not used. Those that do not answer are in the log as peers. */
static void announce_references(struct clockd *daemon, uint64_t now_ns)
{
	bool apart = may_tell_unused(&daemon->apart, now_ns);
	bool inexact = may_tell_unused(&daemon->inexact, now_ns);
	char text[ADDRESS_TEXT];

	if (apart && daemon->apart.now == TELL_NONE)
		tell_warn("the references contradict each other, and no majority agrees: there is no reference time; compare their system clocks");
	for (size_t i = 0; i < daemon->config->reference_count; i++) {
		address_text(text, &daemon->config->references[i]);
		if (apart && daemon->apart.now & 1U << i)
			tell_warn("reference %s contradicts the other references and is not used: compare its system clock with theirs",
				  text);
		if (inexact && daemon->inexact.now & 1U << i)
			tell_warn("reference %s is not used, because its error is above 1 ms and another reference is more exact: see chronyc tracking there",
				  text);
	}
}

static void fill_counters(struct timely_clock_page *page, const struct clockd *daemon)
{
	memcpy(page->counters, daemon->past, sizeof(page->counters));
	for (size_t i = 0; i < daemon->peer_count; i++) {
		const struct peer *peer = &daemon->peers[i];

		for (size_t c = 0; c < TIMELY_CLOCK_COUNTERS; c++)
			page->counters[c] += peer->counters[c];
		page->counters[TIMELY_CLOCK_PAIRS_LOST] += estimate_lost(peer->estimate);
	}
}

static void write_page(struct clockd *daemon, uint64_t probe_ns, uint64_t now_ns)
{
	static struct timely_clock_page next;
	struct timely_clock_page *page = &next;

	*page = *daemon->page;
	page->state = fill_line(page, daemon) ? TIMELY_CLOCK_RUNNING : TIMELY_CLOCK_STARTING;
	memcpy(page->own, daemon->own.bytes, sizeof(page->own));
	snprintf(page->nic, sizeof(page->nic), "%s",
		 host_clock_is_nic(&daemon->clock) ? daemon->clock.nic.name : "");
	page->members = daemon->members.count;
	page->peer_count = daemon->peer_count;
	page->probe_ns = probe_ns;
	for (size_t i = 0; i < daemon->peer_count; i++)
		fill_peer(&page->peers[i], daemon, &daemon->peers[i], probe_ns, now_ns);
	fill_reference(page, daemon, now_ns);
	fill_counters(page, daemon);
	page_write(daemon->page, page);
	/* Readers must not wait for the log. */
	for (size_t i = 0; i < daemon->peer_count; i++)
		announce(&daemon->peers[i], page->peers[i].state);
	announce_references(daemon, now_ns);
	if (!daemon->untimed_told && !page->counters[TIMELY_CLOCK_PAIRS_PURE] &&
	    page->counters[TIMELY_CLOCK_NO_TX_TIMESTAMP] > UNTIMED_PROBES) {
		daemon->untimed_told = true;
		tell_err("probes that were sent get no timestamps: the driver of the NIC supports none (ethtool -T shows that), or another program has turned them off");
	}
}

static unsigned int count_good(const struct timely_clock_page *page)
{
	unsigned int good = 0;

	for (size_t i = 0; i < page->peer_count; i++)
		good += page->peers[i].state == TIMELY_CLOCK_PEER_GOOD;
	return good;
}

/* How much faster the common time runs than the system clock, ppb. */
static int64_t common_drift_ppb(const struct clockd *daemon)
{
	struct reading group = group_read(daemon->group, daemon->page->probe_ns);

	return drift_to_ppb(group.drift_q32 - daemon->system_rate_q32);
}

/* Give On-Ramp the offsets of all peers, or only of those that it did not take before. An offset
 * that is not known any more is withdrawn at once.
 */
static void give_offsets(struct clockd *daemon, bool all)
{
	for (size_t i = 0; daemon->config->onramp && i < daemon->peer_count; i++) {
		struct timely_clock_peer entry = daemon->page->peers[i];
		struct peer *peer = &daemon->peers[i];

		/* clear_peers() has removed the address from the page. */
		memcpy(entry.address, peer->address.bytes, sizeof(entry.address));
		if (all || !peer->given || entry.state != TIMELY_CLOCK_PEER_GOOD)
			peer->given = onramp_put(&daemon->onramp, &entry, peer->growth_ppb,
						 peer->given);
	}
}

/* Give chrony and ntpd the reference time if the configuration names references, otherwise the
 * common time. The system clock of a reference must not follow itself.
 */
static void give_refclock(struct clockd *daemon)
{
	const struct timely_clock_page *page = daemon->page;
	int64_t offset_ns = page->system_offset_ns;
	uint64_t bound_ns = page->bound_ns;
	int given;

	if (page->references) {
		if (!page->references_used ||
		    config_has_reference(daemon->config, &daemon->own))
			return;
		offset_ns += page->reference_offset_ns;
		bound_ns += page->reference_bound_ns;
	}
	given = refclock_put(&daemon->refclock, daemon->config, offset_ns, bound_ns);
	daemon->past[TIMELY_CLOCK_REFCLOCK_SAMPLES] += given;
	daemon->past[TIMELY_CLOCK_REFCLOCK_ERRORS] += !given;
}

/* Give the result to chrony, to module timely and to the service manager. */
static void give(struct clockd *daemon)
{
	const struct timely_clock_page *page = daemon->page;
	bool wanted = daemon->config->sock[0] || daemon->refclock.shm;
	/* Without a good peer the common time is this host's own guess. */
	bool agreed = page->state == TIMELY_CLOCK_RUNNING && count_good(page) &&
		      group_settled(daemon->group);

	if (agreed && wanted)
		give_refclock(daemon);
	give_offsets(daemon, true);
	if (agreed && daemon->config->tcp_timely)
		onramp_put_common(&daemon->onramp, page, common_drift_ppb(daemon));
	if (page->common_ns)
		service_info("STATUS=%u of %u peers are good; common time known to %llu ns\nWATCHDOG=1",
			     count_good(page), page->peer_count,
			     (unsigned long long)page->bound_ns);
	else
		service_info("STATUS=%u of %u peers are good; common time not known yet\nWATCHDOG=1",
			     count_good(page), page->peer_count);
}

/* Begin the common time with the system clock; averaging then moves it to that of the peers. */
static void update_group(struct clockd *daemon, int64_t system_ns, uint64_t probe_ns)
{
	if (!daemon->started)
		group_start(daemon->group, probe_ns, system_ns, (uint32_t)random_number());
	daemon->started = true;
	if (daemon->config->fixed)
		group_fix(daemon->group, probe_ns, system_ns, daemon->system_rate_q32);
	else
		group_release(daemon->group);
}

static void do_round(struct clockd *daemon, uint64_t now_ns)
{
	struct report *report = &daemon->report;
	uint64_t probe_ns, error_ns;
	uint32_t reading_error_ns;
	int64_t system_ns;

	if (!system_minus_probe(daemon, &system_ns, &probe_ns, &reading_error_ns))
		return;
	update_rate(daemon, system_ns, probe_ns);
	update_group(daemon, system_ns, probe_ns);
	solve_peers(daemon, probe_ns, now_ns);
	average(daemon, probe_ns);
	error_ns = reading_error_ns + daemon->unsteady_ns;
	report->at_ns = probe_ns;
	report->system_error_ns = error_ns > UINT32_MAX ? UINT32_MAX : (uint32_t)error_ns;
	report->system_ns = probe_ns + system_ns + daemon->config->test_clock_ns;
	report->system_rate_q32 = (int32_t)daemon->system_rate_q32;
	group_report(daemon->group, probe_ns, report);
	write_page(daemon, probe_ns, now_ns);
}

/* ---- ticks ---- */

static void nic_lost(struct clockd *daemon)
{
	daemon->past[TIMELY_CLOCK_NIC_CHANGES]++;
	daemon->nic_lost = true;
	tell_warn("%s is gone, was replaced, or does not timestamp any more: the probe clock is chosen again",
		  daemon->clock.nic.name);
	leave(daemon);
	join(daemon);
}

/* What has happened to the clocks of this host. */
static void take_events(struct clockd *daemon, unsigned int noticed)
{
	if (noticed & CLOCK_STEPPED) {
		daemon->past[TIMELY_CLOCK_SYSTEM_STEPS]++;
		memset(daemon->before, 0, sizeof(daemon->before));
		tell_warn("the system clock was stepped by %s: the common time does not follow; chronyc tracking or journalctl may show why",
			  seconds_text(daemon->clock.step_ns));
		/* The reference, and a host without peers, begin again with the new time. */
		if (daemon->config->fixed || !group_settled(daemon->group))
			daemon->started = false;
	}
	if (noticed & CLOCK_SUSPENDED) {
		daemon->past[TIMELY_CLOCK_SUSPENDS]++;
		tell_notice("this host was suspended for %s: all estimates start again",
			    seconds_text(daemon->clock.step_ns));
		start_session(daemon);
		/* It is relative to CLOCK_MONOTONIC, which has paused. */
		onramp_withdraw_common(&daemon->onramp);
	}
	if (noticed & CLOCK_NIC_STEPPED) {
		daemon->past[TIMELY_CLOCK_NIC_STEPS]++;
		tell_warn("the clock of %s was stepped, or its drift changed suddenly: all estimates start again; nothing else may set this clock (phc2sys, ptp4l?)",
			  daemon->clock.nic.name);
		start_session(daemon);
	}
	if (noticed & CLOCK_NIC_LOST)
		nic_lost(daemon);
}

static void tick(struct clockd *daemon, uint64_t now_ns)
{
	/* A tick that waited for a wake-up does not delay the ones after it. */
	daemon->tick_ns = now_ns - daemon->tick_ns < TICK_NS ? daemon->tick_ns + TICK_NS :
							       now_ns + TICK_NS;
	if (daemon->joined)
		take_events(daemon, host_clock_tick(&daemon->clock));
	if (now_ns >= daemon->members_ns)
		members_due(daemon, now_ns);
	if (!daemon->joined) {
		service_info("STATUS=not joined: see the log\nWATCHDOG=1");
		return;
	}
	do_round(daemon, now_ns);
	if (!(daemon->ticks++ % TICKS_PER_SECOND))
		give(daemon);
	else
		give_offsets(daemon, false);
}

/* ---- waiting ---- */

static uint64_t next_deadline(const struct clockd *daemon, uint64_t now_ns)
{
	uint64_t deadline = daemon->tick_ns, wait_ns = WAKE_NS;
	uint64_t limit_ns = WAKE_NS + IDLE_WAKE_NS;

	for (size_t i = 0; daemon->joined && i < daemon->peer_count; i++) {
		const struct peer *peer = &daemon->peers[i];

		if (peer->due_ns < deadline)
			deadline = peer->due_ns;
		if (peer->path_idle)
			wait_ns += IDLE_WAKE_NS / daemon->peer_count;
		else if (peer_heard(peer, now_ns) && peer->wait_ns / 2 < limit_ns)
			limit_ns = peer->wait_ns / 2;
	}
	if (wait_ns > limit_ns)
		wait_ns = limit_ns;
	/* A flood fills the socket's queue. */
	if (wait_ns < WAKE_NS || daemon->flooded)
		wait_ns = WAKE_NS;
	return deadline > now_ns + wait_ns ? deadline : now_ns + wait_ns;
}

/* Returns false if the signal ends the daemon. */
static bool take_signal(struct clockd *daemon)
{
	struct signalfd_siginfo info;

	if (read(daemon->signals, &info, sizeof(info)) != sizeof(info))
		return true;
	if (info.ssi_signo != SIGHUP)
		return false;
	service_info("RELOADING=1\nMONOTONIC_USEC=%llu",
		     (unsigned long long)clock_ns(CLOCK_MONOTONIC) / 1000);
	reload(daemon, clock_ns(CLOCK_MONOTONIC));
	service_info("READY=1");
	return true;
}

/* Wait for the next event and handle it. Returns false when the daemon shall end. */
static bool step(struct clockd *daemon)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	uint64_t left = next_deadline(daemon, now_ns) - now_ns;
	struct timespec timeout = { left / NS_PER_S, left % NS_PER_S };
	struct pollfd fds[] = {
		{ .fd = daemon->signals, .events = POLLIN },
		{ .fd = daemon->resolver.pid ? daemon->resolver.fd : -1, .events = POLLIN },
	};

	if (ppoll(fds, ARRAY_LENGTH(fds), &timeout, NULL) < 0 && errno != EINTR) {
		tell_err("waiting for events is not possible: %s", error_text(errno));
		daemon->failed = true;
		return false;
	}
	if (fds[0].revents && !take_signal(daemon))
		return false;
	if (daemon->joined)
		take_packets(daemon);
	if (fds[1].revents && daemon->resolver.pid && resolver_read(&daemon->resolver))
		update_members(daemon);
	now_ns = clock_ns(CLOCK_MONOTONIC);
	if (now_ns >= daemon->tick_ns)
		tick(daemon, now_ns);
	send_pairs(daemon);
	return true;
}

static int open_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void clean_up(struct clockd *daemon)
{
	service_info("STOPPING=1");
	leave(daemon);
	page_begin(daemon->page);
	daemon->page->state = TIMELY_CLOCK_STOPPED;
	page_end(daemon->page);
	resolver_stop(&daemon->resolver, false);
	refclock_close(&daemon->refclock);
	onramp_close(&daemon->onramp);
	for (size_t i = 0; i < daemon->peer_count; i++)
		peer_free(&daemon->peers[i]);
	group_free(daemon->group);
	members_free(&daemon->members);
	config_free(daemon->config);
}

/* Run until a signal ends the daemon. Prints errors; returns an exit status. */
int daemon_run(const char *path, struct config *config)
{
	static struct clockd daemon;
	int err;

	daemon = (struct clockd){
		.path = path, .config = config, .wire.fd = -1, .clock.nic.fd = -1,
		.group = group_new(), .signals = open_signals(), .page = page_open(config->page),
	};
	if (!daemon.group || daemon.signals < 0)
		tell_err("no memory or file descriptor is left");
	if (!daemon.group || daemon.signals < 0 || !daemon.page)
		return EXIT_FAILURE;
	refclock_open(&daemon.refclock, config);
	onramp_open(&daemon.onramp);
	err = drop_capabilities(true);
	if (err) {
		tell_err("privileges cannot be dropped: %s", error_text(err));
		return EXIT_FAILURE;
	}
	/* Timers shall not be late by the default of 50 us. */
	prctl(PR_SET_TIMERSLACK, 1000);
	members_due(&daemon, clock_ns(CLOCK_MONOTONIC));
	service_info("READY=1");
	while (step(&daemon))
		;
	clean_up(&daemon);
	return daemon.failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
