// SPDX-License-Identifier: GPL-2.0
/*
 * The messages of timely-clockd, see message.h. Pure: no socket and no clock.
 *
 * Whoever can change a time in a message can shift a clock. Therefore each message has a tag:
 * SipHash-2-4 with On-Ramp's key over the addresses of sender and receiver and over all bytes
 * before the tag. The tag makes forged, changed and reflected messages useless. A recorded message
 * that is sent again has a right tag; peer.c detects it by session, echo and sequence number.
 *
 * All hosts have the same key: a host that is taken over can forge messages of every other host.
 * The tag does not prevent that messages are delayed in one direction, which shifts the estimate by
 * half of the delay. Loops (clock_loop.c) detect that as long as most paths are sound.
 */
#include <string.h>

#include <linux/siphash.h>
#include <timely_unaligned.h>

#include "message.h"

#define VERSION			1
#define RECORDS			36
#define RECORD_BYTES		12
#define REPORT			(RECORDS + 2 * PROBE_RECORDS * RECORD_BYTES)
#define REPORT_BYTES		60
#define TAG			(REPORT + REPORT_BYTES)
#define FLAGS			(MESSAGE_HARDWARE | MESSAGE_SETTLED)
#define ADDRESS_BYTES		sizeof(struct address)

_Static_assert(TAG + 8 == MESSAGE_BYTES);

static uint64_t message_tag(const uint8_t *wire, const struct address *from,
			    const struct address *to, const struct key *key)
{
	uint8_t text[2 * ADDRESS_BYTES + TAG];
	siphash_key_t sip = { { key->words[0], key->words[1] } };

	memcpy(text, from->bytes, ADDRESS_BYTES);
	memcpy(text + ADDRESS_BYTES, to->bytes, ADDRESS_BYTES);
	memcpy(text + 2 * ADDRESS_BYTES, wire, TAG);
	return siphash(text, sizeof(text), &sip);
}

static void record_encode(uint8_t *wire, const struct record *record)
{
	put_unaligned_be32(record->seq, wire);
	put_unaligned_be64(record->ns, wire + 4);
}

static void report_encode(uint8_t *wire, const struct report *report)
{
	put_unaligned_be64(report->at_ns, wire);
	put_unaligned_be64(report->system_ns, wire + 8);
	put_unaligned_be32((uint32_t)report->system_rate_q32, wire + 16);
	put_unaligned_be32(report->system_error_ns, wire + 20);
	put_unaligned_be64((uint64_t)report->correction_ns, wire + 24);
	put_unaligned_be32((uint32_t)report->rate_q32, wire + 32);
	put_unaligned_be32(report->bound_ns, wire + 36);
	put_unaligned_be32(report->growth_ppb, wire + 40);
	put_unaligned_be32(report->wander_ppb_s, wire + 44);
	put_unaligned_be32(report->scale, wire + 48);
	put_unaligned_be64(0, wire + 52);
}

/**
 * message_encode() - write a message
 * @wire: buffer of MESSAGE_BYTES bytes
 * @message: the contents; the key number is that of @key
 * @from: address of the sender
 * @to: address of the receiver
 * @key: key for the tag
 */
void message_encode(uint8_t *wire, const struct message *message, const struct address *from,
		    const struct address *to, const struct key *key)
{
	uint8_t *record = wire + RECORDS;

	put_unaligned_be16(MESSAGE_MAGIC, wire);
	wire[2] = VERSION;
	wire[3] = 0;
	wire[4] = key->number;
	wire[5] = message->flags;
	put_unaligned_be16(MESSAGE_BYTES, wire + 6);
	put_unaligned_be64(message->session, wire + 8);
	put_unaligned_be64(message->nonce, wire + 16);
	put_unaligned_be64(message->echo, wire + 24);
	put_unaligned_be32(message->seq, wire + 32);
	for (size_t i = 0; i < PROBE_RECORDS; i++, record += RECORD_BYTES) {
		record_encode(record, &message->received[i]);
		record_encode(record + PROBE_RECORDS * RECORD_BYTES, &message->sent[i]);
	}
	report_encode(wire + REPORT, &message->report);
	put_unaligned_be64(message_tag(wire, from, to, key), wire + TAG);
}

static bool message_well_formed(const uint8_t *wire, size_t bytes)
{
	return bytes == MESSAGE_BYTES && get_unaligned_be16(wire) == MESSAGE_MAGIC &&
	       wire[2] == VERSION && !wire[3] && wire[4] && !(wire[5] & ~FLAGS) &&
	       get_unaligned_be16(wire + 6) == bytes && get_unaligned_be64(wire + 8) &&
	       !get_unaligned_be64(wire + TAG - 8);
}

static void record_decode(struct record *record, const uint8_t *wire)
{
	record->seq = get_unaligned_be32(wire);
	record->ns = get_unaligned_be64(wire + 4);
}

static void report_decode(struct report *report, const uint8_t *wire)
{
	report->at_ns = get_unaligned_be64(wire);
	report->system_ns = get_unaligned_be64(wire + 8);
	report->system_rate_q32 = (int32_t)get_unaligned_be32(wire + 16);
	report->system_error_ns = get_unaligned_be32(wire + 20);
	report->correction_ns = (int64_t)get_unaligned_be64(wire + 24);
	report->rate_q32 = (int32_t)get_unaligned_be32(wire + 32);
	report->bound_ns = get_unaligned_be32(wire + 36);
	report->growth_ppb = get_unaligned_be32(wire + 40);
	report->wander_ppb_s = get_unaligned_be32(wire + 44);
	report->scale = get_unaligned_be32(wire + 48);
}

/**
 * message_decode() - read a message
 * @message: set to the contents, which must not be trusted before message_verify() returned true
 * @wire: UDP payload
 * @bytes: length of the payload
 *
 * Return: true if the payload has the format of a message. Numbers may have any value.
 */
bool message_decode(struct message *message, const uint8_t *wire, size_t bytes)
{
	const uint8_t *record = wire + RECORDS;

	if (!message_well_formed(wire, bytes))
		return false;
	message->key = wire[4];
	message->flags = wire[5];
	message->session = get_unaligned_be64(wire + 8);
	message->nonce = get_unaligned_be64(wire + 16);
	message->echo = get_unaligned_be64(wire + 24);
	message->seq = get_unaligned_be32(wire + 32);
	for (size_t i = 0; i < PROBE_RECORDS; i++, record += RECORD_BYTES) {
		record_decode(&message->received[i], record);
		record_decode(&message->sent[i], record + PROBE_RECORDS * RECORD_BYTES);
	}
	report_decode(&message->report, wire + REPORT);
	return true;
}

/**
 * message_verify() - check the tag of a message that message_decode() has accepted
 * @wire: UDP payload
 * @from: address of the sender, from the IP packet
 * @to: own address
 * @key: the key with the message's number
 *
 * Return: true if the tag is right. The time that the function takes does not depend on the tag.
 */
bool message_verify(const uint8_t *wire, const struct address *from, const struct address *to,
		    const struct key *key)
{
	return !(message_tag(wire, from, to, key) ^ get_unaligned_be64(wire + TAG));
}

/**
 * hash_words() - hash bytes
 * @seed: another seed gives another hash
 * @bytes: the bytes
 * @size: their number
 *
 * Return: the same number on all hosts. The hash is no secret.
 */
uint64_t hash_words(uint64_t seed, const void *bytes, size_t size)
{
	siphash_key_t sip = { { seed, 0 } };

	return siphash(bytes, size, &sip);
}
