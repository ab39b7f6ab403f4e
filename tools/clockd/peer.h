/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The exchange of messages with a peer: see peer.c.
 */
#ifndef CLOCKD_PEER_H
#define CLOCKD_PEER_H

#include "estimate.h"
#include "timely_clock.h"

/* Probes of which the timestamps are kept, for each direction. */
#define PEER_PROBES		64
/* A report is used for this long, and a peer that was heard within this time is not silent, ns. */
#define PEER_FRESH_NS		4000000000ULL

/**
 * struct window - sequence numbers that were received
 * @newest: the highest one
 * @seen: bit n: @newest - n was received
 * @started: @newest is known
 */
struct window {
	uint32_t newest;
	uint64_t seen;
	bool started;
};

/**
 * struct exchanged - a probe
 * @seq: sequence number
 * @own_ns: departure or arrival by the own probe clock, ns; 0: not known
 * @peer_ns: arrival or departure by the peer's probe clock, ns; 0: not known
 */
struct exchanged {
	uint32_t seq;
	uint64_t own_ns;
	uint64_t peer_ns;
};

/**
 * struct peer - a peer
 * @address: its address
 * @own_session: session of this host for the peer
 * @session: the peer's session; 0: none is proven yet
 * @former: the session before
 * @echo: its last nonce; 0: none
 * @nonce: nonce that the peer must return
 * @nonce_before: the nonce before
 * @nonce_ns: when @nonce was chosen
 * @window: sequence numbers received in this session
 * @seq: sequence number of the next probe
 * @sent: the last probes sent
 * @received: the last probes received
 * @heard_ns: when the last message with a right tag and a proven session came; 0: never
 * @due_ns: when the next pair is due
 * @wait_ns: interval between pairs while the peer is silent
 * @hardware: the peer's probe clock is that of a NIC
 * @report: the peer's last report; @report.at_ns is 0: there is none
 * @report_ns: when it came
 * @settled: the common time of the peer agrees with that of its peers
 * @estimate: the estimate of the peer's clock
 * @path_idle: few probes are needed
 * @round: results of the last round of averaging
 * @announced: state that the log has
 * @told_ns: since when @told counts
 * @told: lines about this peer in the log since @told_ns
 * @given: On-Ramp has an offset of this peer
 * @growth_ppb: growth of the bound of the peer's offset, ppb
 * @counters: counters of this peer, TIMELY_CLOCK_SENT to TIMELY_CLOCK_PEER_RESTARTS
 *
 * Times without another remark are CLOCK_MONOTONIC.
 */
struct peer {
	struct address address;
	uint64_t own_session;
	uint64_t session;
	uint64_t former;
	uint64_t echo;
	uint64_t nonce;
	uint64_t nonce_before;
	uint64_t nonce_ns;
	struct window window;
	uint32_t seq;
	struct exchanged sent[PEER_PROBES];
	struct exchanged received[PEER_PROBES];
	uint64_t heard_ns;
	uint64_t due_ns;
	uint64_t wait_ns;
	bool hardware;
	struct report report;
	uint64_t report_ns;
	bool settled;
	struct estimate *estimate;
	bool path_idle;
	struct group_peer round;
	enum timely_clock_peer_state announced;
	uint64_t told_ns;
	unsigned int told;
	bool given;
	uint64_t growth_ppb;
	uint64_t counters[TIMELY_CLOCK_COUNTERS];
};

bool peer_init(struct peer *peer, const struct address *address, uint64_t session,
	       uint64_t random);
void peer_free(struct peer *peer);
void peer_restart(struct peer *peer, uint64_t session);
bool peer_heard(const struct peer *peer, uint64_t now_ns);
void peer_probe(struct peer *peer, struct message *message, uint64_t random, uint64_t now_ns);
void peer_sent(struct peer *peer, uint32_t seq, uint64_t sent_ns);
enum timely_clock_counter peer_take(struct peer *peer, const struct message *message,
				    uint64_t received_ns, uint64_t now_ns);

#endif /* CLOCKD_PEER_H */
