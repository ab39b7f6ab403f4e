/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The messages of timely-clockd: addresses, keys, encoding, decoding, verification. message.c
 * explains how messages are protected.
 *
 * Messages are UDP packets. In network byte order:
 *
 *	offset	bytes	contents
 *	 0	2	magic "TC"
 *	 2	1	version, 1
 *	 3	1	0
 *	 4	1	number of the key
 *	 5	1	flags
 *	 6	2	length of the message with its tag, 200
 *	 8	8	session of the sender
 *	16	8	nonce of the sender
 *	24	8	echo: the last nonce that the sender has received; 0 for none
 *	32	4	sequence number; probes 2n and 2n + 1 are a pair
 *	36	48	4 records of probes that the sender has received from the receiver
 *	84	48	4 records of probes that the sender has sent to the receiver
 *	132	60	report
 *	192	8	tag
 *
 * A record is a sequence number (4 bytes) and a timestamp by the sender's probe clock (8 bytes,
 * ns); the timestamp is 0 if there is no record. The report about the sender's clocks:
 *
 *	132	8	time by the sender's probe clock that the rest is for, ns; 0: no report
 *	140	8	the sender's system clock at this time, ns
 *	148	4	system clock minus probe clock: change per nanosecond, Q32
 *	152	4	error of the system clock, ns
 *	156	8	common time minus probe clock, ns
 *	164	4	change of this difference per nanosecond, Q32
 *	168	4	error of the common time, ns; 2^32 - 1: the common time is not known
 *	172	4	growth of this error, ppb
 *	176	4	expected change of the rate, ppb per second
 *	180	4	number of the common time
 *	184	8	0
 */
#ifndef CLOCKD_MESSAGE_H
#define CLOCKD_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARRAY_LENGTH(array)	(sizeof(array) / sizeof((array)[0]))

/* The UDP port. The next one is that of OR-ACKs (On-Ramp), the 16 after that are those of NDP. */
#define CLOCKD_PORT		20305

#define PROBE_RECORDS		4
/* The first two bytes of a message, and its size. */
#define MESSAGE_MAGIC		0x5443
#define MESSAGE_BYTES		200

/* Bits of a message's flags. All other bits are 0. */
#define MESSAGE_HARDWARE	1	/* the sender's probe clock is that of a NIC */
#define MESSAGE_SETTLED		2	/* the sender's common time agrees with that of its peers */

/* Timestamps and clocks lie below this, so that differences fit in 64 bits: 146 years. */
#define TIME_MAX_NS		(1ULL << 62)

/**
 * struct address - an IPv6 address, or an IPv4 address in the form ::ffff:a.b.c.d
 * @bytes: the address
 */
struct address {
	uint8_t bytes[16];
};

/**
 * struct key - a secret shared by all hosts, as for OR-ACKs
 * @number: number of the key, 1 to 255
 * @words: 128 bits
 */
struct key {
	uint8_t number;
	uint64_t words[2];
};

/**
 * struct record - when a probe was sent or received
 * @seq: sequence number of the probe
 * @ns: the time by the clock of the message's sender, ns; 0: the record is unused
 */
struct record {
	uint32_t seq;
	uint64_t ns;
};

/**
 * struct report - what a host tells its peers about its clocks
 * @at_ns: time by the sender's probe clock that the other members are for, ns; 0: no report
 * @system_ns: the sender's system clock at @at_ns, ns
 * @system_rate_q32: how much faster the system clock runs than the probe clock, Q32
 * @system_error_ns: error of @system_ns, ns
 * @correction_ns: common time minus the sender's probe clock, ns
 * @rate_q32: change of @correction_ns per nanosecond of the probe clock, Q32
 * @bound_ns: error of the common time, ns; UINT32_MAX: not known
 * @growth_ppb: growth of @bound_ns, ppb
 * @wander_ppb_s: expected change of @rate_q32, ppb per second
 * @scale: number of the common time
 */
struct report {
	uint64_t at_ns;
	uint64_t system_ns;
	int32_t system_rate_q32;
	uint32_t system_error_ns;
	int64_t correction_ns;
	int32_t rate_q32;
	uint32_t bound_ns;
	uint32_t growth_ppb;
	uint32_t wander_ppb_s;
	uint32_t scale;
};

/**
 * struct message - the contents of a message: a probe
 * @key: number of the key that made the tag
 * @flags: MESSAGE_*
 * @session: a random number of the sender for the receiver, other than 0; changes with the sender's
 *	probe clock
 * @nonce: a random number that the receiver returns
 * @echo: the nonce that the sender returns; 0 for none
 * @seq: sequence number
 * @received: probes that the sender has received
 * @sent: probes that the sender has sent
 * @report: the sender's clocks
 */
struct message {
	uint8_t key;
	uint8_t flags;
	uint64_t session;
	uint64_t nonce;
	uint64_t echo;
	uint32_t seq;
	struct record received[PROBE_RECORDS];
	struct record sent[PROBE_RECORDS];
	struct report report;
};

void message_encode(uint8_t *wire, const struct message *message, const struct address *from,
		    const struct address *to, const struct key *key);
bool message_decode(struct message *message, const uint8_t *wire, size_t bytes);
bool message_verify(const uint8_t *wire, const struct address *from, const struct address *to,
		    const struct key *key);
uint64_t hash_words(uint64_t seed, const void *bytes, size_t size);

#endif /* CLOCKD_MESSAGE_H */
