// SPDX-License-Identifier: GPL-2.0
/*
 * The exchange of messages with a peer. Pure: the time is an argument, and random numbers too.
 *
 * Both hosts send pairs of probes all the time. Each probe carries the timestamps of earlier ones:
 * when the sender's last probes left, and when the peer's last probes arrived. So each host learns
 * both timestamps of all probes in both directions, and computes its own estimate. A lost probe
 * costs nothing but its own timestamps. Huygens has no published format.
 *
 * The times in a message are used only if the message is proven to be recent and new:
 *
 *	session		a random number that a host chooses for a peer when it starts, and when its
 *			probe clock changes. Timestamps of different sessions are never combined.
 *	nonce, echo	a message must return a nonce that this host has sent within the last
 *			seconds. So a message of an earlier session of this host is not accepted,
 *			and a new session of the peer only if the peer is alive. The session before
 *			is never accepted again.
 *	sequence	a message that was received before, or that is older than 64 others, is not
 *			accepted.
 *
 * A message that fails only by its echo may be the first after a start: its nonce is returned, so
 * that the next messages of both hosts are proven. While messages with a proven session arrive,
 * messages of another session cannot change even that.
 */
#include <string.h>

#include "peer.h"

/* Age at which a nonce is replaced, ns. */
#define NONCE_NS	1000000000ULL
/* Longest time until a peer that was silent gets an answer, ns: not each message at once. */
#define ANSWER_NS	100000000ULL

/* Largest difference of the rates of two clocks of a host, Q32: 0.125. chrony slews by 0.083. */
#define RATE_MAX_Q32	(1 << 29)

/* @session and @random: random numbers other than 0. Returns false without memory. */
bool peer_init(struct peer *peer, const struct address *address, uint64_t session,
	       uint64_t random)
{
	*peer = (struct peer){
		.address = *address,
		.own_session = session,
		.nonce = random,
		.announced = TIMELY_CLOCK_PEER_LEARNING,
	};
	peer->estimate = estimate_new();
	return peer->estimate;
}

void peer_free(struct peer *peer)
{
	estimate_free(peer->estimate);
	peer->estimate = NULL;
}

/* The peer's clock or the own one is another one now. Sequence numbers sent go on. */
static void peer_forget(struct peer *peer)
{
	memset(peer->sent, 0, sizeof(peer->sent));
	memset(peer->received, 0, sizeof(peer->received));
	peer->report = (struct report){};
	/* The filter must not combine probes of a pair from before and after. */
	peer->seq = (peer->seq + 2) & ~1U;
	peer->path_idle = false;
	estimate_forget(peer->estimate);
}

/* The own clock is another one now. @session: a random number other than 0. */
void peer_restart(struct peer *peer, uint64_t session)
{
	peer->own_session = session;
	peer_forget(peer);
}

bool peer_heard(const struct peer *peer, uint64_t now_ns)
{
	return peer->heard_ns && now_ns - peer->heard_ns < PEER_FRESH_NS;
}

static void peer_renew_nonce(struct peer *peer, uint64_t random, uint64_t now_ns)
{
	if (now_ns - peer->nonce_ns < NONCE_NS)
		return;
	peer->nonce_before = peer->nonce;
	peer->nonce = random;
	peer->nonce_ns = now_ns;
}

/*
 * Copy up to PROBE_RECORDS records, the newest of which has the number @seq. Only own timestamps
 * are copied: the peer knows its own.
 */
static void copy_records(struct record *record, const struct exchanged *probes, uint32_t seq)
{
	for (uint32_t back = 0; back < PROBE_RECORDS; back++) {
		const struct exchanged *probe = &probes[(seq - back) % PEER_PROBES];

		if (probe->own_ns && probe->seq == seq - back)
			record[back] = (struct record){ probe->seq, probe->own_ns };
	}
}

/**
 * peer_probe() - fill in the next probe to a peer
 * @peer: the peer
 * @message: set to the probe, without flags and report
 * @random: a new random number
 * @now_ns: time, CLOCK_MONOTONIC
 *
 * The second probe of a pair has the records before those of the first.
 */
void peer_probe(struct peer *peer, struct message *message, uint64_t random, uint64_t now_ns)
{
	uint32_t older = peer->seq % 2 ? PROBE_RECORDS : 0;
	uint32_t pair = peer->seq & ~1U;
	struct exchanged *probe;

	peer_renew_nonce(peer, random, now_ns);
	*message = (struct message){
		.session = peer->own_session,
		.nonce = peer->nonce,
		.echo = peer->echo,
		.seq = peer->seq++,
	};
	copy_records(message->sent, peer->sent, pair - 1 - older);
	copy_records(message->received, peer->received, peer->window.newest - older);
	probe = &peer->sent[message->seq % PEER_PROBES];
	if (probe->seq && !probe->own_ns)
		peer->counters[TIMELY_CLOCK_NO_TX_TIMESTAMP]++;
	*probe = (struct exchanged){ .seq = message->seq };
	peer->counters[TIMELY_CLOCK_SENT]++;
}

/* ---- timestamps ---- */

static void count_pair(struct peer *peer, enum pair_result result)
{
	static const enum timely_clock_counter counters[] = {
		[PAIR_PURE] = TIMELY_CLOCK_PAIRS_PURE,
		[PAIR_SPREAD] = TIMELY_CLOCK_PAIRS_SPREAD,
		[PAIR_CLOSER] = TIMELY_CLOCK_PAIRS_CLOSER,
		[PAIR_SPACING] = TIMELY_CLOCK_PAIRS_SPACING,
	};

	if (result != PAIR_WAIT)
		peer->counters[counters[result]]++;
}

/* Use a probe when both of its timestamps are known. */
static void use_probe(struct peer *peer, const struct exchanged *probe, enum direction direction)
{
	bool forward = direction == FORWARD;

	if (probe->own_ns && probe->peer_ns)
		count_pair(peer, estimate_probe(peer->estimate, direction, probe->seq,
						forward ? probe->own_ns : probe->peer_ns,
						forward ? probe->peer_ns : probe->own_ns));
}

/**
 * peer_sent() - take the timestamp of a probe that was sent
 * @peer: the peer
 * @seq: sequence number of the probe
 * @sent_ns: departure by the own probe clock, ns, below TIME_MAX_NS
 */
void peer_sent(struct peer *peer, uint32_t seq, uint64_t sent_ns)
{
	struct exchanged *probe = &peer->sent[seq % PEER_PROBES];

	if (probe->seq != seq || probe->own_ns)
		return;
	probe->own_ns = sent_ns;
	use_probe(peer, probe, FORWARD);
}

/* A record of the peer about a probe that this host has sent or received. */
static void take_record(struct peer *peer, struct exchanged *probes, const struct record *record,
			enum direction direction)
{
	struct exchanged *probe = &probes[record->seq % PEER_PROBES];

	if (!record->ns || probe->seq != record->seq || probe->peer_ns)
		return;
	if (record->ns >= TIME_MAX_NS) {
		peer->counters[TIMELY_CLOCK_BAD_TIMESTAMP]++;
		return;
	}
	probe->peer_ns = record->ns;
	use_probe(peer, probe, direction);
}

/* ---- received messages ---- */

/* Whether the number is new. @window changes only if it is. */
static bool window_take(struct window *window, uint32_t seq)
{
	int32_t ahead = (int32_t)(seq - window->newest);

	if (!window->started || ahead > 0) {
		window->seen = window->started && ahead < 64 ? window->seen << ahead : 0;
		window->seen |= 1;
		window->newest = seq;
		window->started = true;
		return true;
	}
	if (ahead <= -64 || window->seen & 1ULL << -ahead)
		return false;
	window->seen |= 1ULL << -ahead;
	return true;
}

/* A session that is proven to be new: the peer has started, or its clock is another one. */
static void start_session(struct peer *peer, uint64_t session)
{
	if (peer->session) {
		peer->former = peer->session;
		peer->counters[TIMELY_CLOCK_PEER_RESTARTS]++;
	}
	peer->session = session;
	peer->window = (struct window){};
	peer_forget(peer);
}

static bool report_in_range(const struct report *report)
{
	return report->at_ns < TIME_MAX_NS && report->system_ns < TIME_MAX_NS &&
	       report->correction_ns < (int64_t)TIME_MAX_NS &&
	       report->correction_ns > -(int64_t)TIME_MAX_NS &&
	       report->system_rate_q32 < RATE_MAX_Q32 && report->system_rate_q32 > -RATE_MAX_Q32;
}

static void take_report(struct peer *peer, const struct message *message, uint64_t now_ns)
{
	if (!report_in_range(&message->report)) {
		peer->counters[TIMELY_CLOCK_BAD_TIMESTAMP]++;
		return;
	}
	peer->report = message->report;
	peer->report_ns = now_ns;
	peer->settled = message->flags & MESSAGE_SETTLED;
}

static void take_probe(struct peer *peer, const struct message *message, uint64_t received_ns)
{
	struct exchanged *probe = &peer->received[message->seq % PEER_PROBES];

	peer->counters[TIMELY_CLOCK_RECEIVED]++;
	*probe = (struct exchanged){ .seq = message->seq, .own_ns = received_ns };
	if (!received_ns)
		peer->counters[TIMELY_CLOCK_NO_RX_TIMESTAMP]++;
	/* The oldest first: the filter and the line need the order of time. */
	for (size_t i = PROBE_RECORDS; i--;) {
		take_record(peer, peer->sent, &message->received[i], FORWARD);
		take_record(peer, peer->received, &message->sent[i], BACKWARD);
	}
}

/* Whether a message is proven to be new. If it is, its session becomes that of the peer. */
static bool prove(struct peer *peer, const struct message *message, bool known, bool recent)
{
	if (!recent || !message->session || message->session == peer->former)
		return false;
	if (!known)
		start_session(peer, message->session);
	return true;
}

/* The interval between pairs may be long by now, because the peer was silent. */
static void answer_soon(struct peer *peer, uint64_t now_ns)
{
	if (peer->due_ns > now_ns + ANSWER_NS)
		peer->due_ns = now_ns + ANSWER_NS;
}

/**
 * peer_take() - take a message with a right tag
 * @peer: the peer that the message came from
 * @message: the message; its numbers may have any value
 * @received_ns: arrival by the own probe clock, ns, below TIME_MAX_NS; 0: there is no timestamp
 * @now_ns: time, CLOCK_MONOTONIC
 *
 * Return: TIMELY_CLOCK_RECEIVED: the message was used; TIMELY_CLOCK_REPLAYED or
 * TIMELY_CLOCK_UNPROVEN: its times were ignored.
 */
enum timely_clock_counter peer_take(struct peer *peer, const struct message *message,
				    uint64_t received_ns, uint64_t now_ns)
{
	bool known = message->session == peer->session;
	bool recent = message->echo && (message->echo == peer->nonce ||
					message->echo == peer->nonce_before);

	if (message->session == peer->former ||
	    (known && !window_take(&peer->window, message->seq)))
		goto replayed;
	if (!prove(peer, message, known, recent)) {
		/* A new session may not disturb one that is proven. */
		if (known || !peer_heard(peer, now_ns)) {
			peer->echo = message->nonce;
			answer_soon(peer, now_ns);
		}
		peer->counters[TIMELY_CLOCK_UNPROVEN]++;
		return TIMELY_CLOCK_UNPROVEN;
	}
	if (!known)
		window_take(&peer->window, message->seq);
	/* Messages may overtake each other. */
	if (peer->window.newest == message->seq) {
		peer->echo = message->nonce;
		peer->hardware = message->flags & MESSAGE_HARDWARE;
		take_report(peer, message, now_ns);
	}
	if (!peer_heard(peer, now_ns))
		answer_soon(peer, now_ns);
	peer->heard_ns = now_ns;
	take_probe(peer, message, received_ns);
	return TIMELY_CLOCK_RECEIVED;

replayed:
	peer->counters[TIMELY_CLOCK_REPLAYED]++;
	return TIMELY_CLOCK_REPLAYED;
}
