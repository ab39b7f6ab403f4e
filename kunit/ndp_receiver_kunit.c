// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of NDP's receiver (ndp_receiver.c): sequences of events with the results of
 * reference_ndp.py, hand-made cases, and the record of past connections. Cases are named
 * function__case.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/string.h>

#include <timely/engine/ndp_receiver.h>

#include "ndp_vectors.h"

#define SPAN	64
#define LIMIT	32

struct bed {
	struct timely_ndp_receiver r;
	u64 map[SPAN / 64];
	struct timely_ndp_header answer;
};

static void set_up(struct kunit *test, struct bed *bed, u32 limit)
{
	KUNIT_ASSERT_EQ(test, timely_ndp_receiver_init(&bed->r, bed->map, SPAN, limit), 0);
}

static struct bed *make_bed(struct kunit *test, u32 limit)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	set_up(test, bed, limit);
	return bed;
}

/* A packet of a sender that has used @credits. */
static enum timely_ndp_verdict arrive(struct bed *bed, u32 seq, u32 credits, u16 flags,
				      enum timely_ndp_payload payload)
{
	struct timely_ndp_header header = {
		.type = TIMELY_NDP_DATA, .seq = seq, .credits = credits, .flags = flags,
		.path = 3, .tries = 2,
	};

	return timely_ndp_receiver_data(&bed->r, &header, payload, &bed->answer);
}

/* ---- the reference ---- */

static u8 replay_row(struct bed *bed, const struct ndp_receiver_vector *v)
{
	struct timely_ndp_header header = {
		.type = TIMELY_NDP_DATA, .seq = v->seq, .credits = v->credits, .seen = v->seen,
		.flags = v->flags,
	};

	memset(&bed->answer, 0, sizeof(bed->answer));
	switch (v->event) {
	case NDP_V_DATA:
		return timely_ndp_receiver_data(&bed->r, &header, v->payload, &bed->answer);
	case NDP_V_PROBE:
		return timely_ndp_receiver_probe(&bed->r, &header, &bed->answer);
	case NDP_V_ROOM:
		return timely_ndp_receiver_room(&bed->r, v->credits, &bed->answer);
	default:
		timely_ndp_receiver_pull(&bed->r, v->credits, &bed->answer);
		return true;
	}
}

static void receiver__follows_the_reference(struct kunit *test)
{
	struct bed *bed = make_bed(test, LIMIT);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ndp_receiver_vectors); i++) {
		const struct ndp_receiver_vector *v = &ndp_receiver_vectors[i];

		if (i % NDP_V_RECEIVER_ROWS == 0)
			set_up(test, bed, ndp_receiver_limits[i / NDP_V_RECEIVER_ROWS]);
		KUNIT_EXPECT_EQ_MSG(test, replay_row(bed, v), v->result, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->answer.type, v->type, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->answer.flags, v->answer_flags, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->answer.credits, v->granted, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->answer.owed, v->owed, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->answer.cum, v->cum, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->answer.arrived, v->arrived, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->answer.limit, v->limit, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, timely_ndp_receiver_wanted(&bed->r), v->wanted,
				    "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->r.cum, v->cum_after, "row %u", i);
	}
}

/* ---- by hand ---- */

static void init__checks_its_parameters(struct kunit *test)
{
	u64 map[SPAN / 64];
	struct timely_ndp_receiver r;

	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_init(&r, map, 0, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_init(&r, map, 32, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_init(&r, map, 96, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_init(&r, map, 65536, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_init(&r, map, 64, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_init(&r, map, 64, 65), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_init(&r, map, 64, 64), 0);
}

static void data__in_any_order(struct kunit *test)
{
	struct bed *bed = make_bed(test, LIMIT);
	u32 i;

	/* Each third packet, from the last to the first. */
	for (i = 0; i < LIMIT; i++) {
		u32 seq = (LIMIT - 1 - i) * 3 % LIMIT;
		u16 flags = seq == LIMIT - 1 ? TIMELY_NDP_FIN | TIMELY_NDP_LAST : 0;

		KUNIT_EXPECT_FALSE(test, timely_ndp_receiver_done(&bed->r));
		KUNIT_EXPECT_EQ(test, arrive(bed, seq, i + 1, flags, TIMELY_NDP_PAYLOAD_WHOLE),
				TIMELY_NDP_RECEIVED);
	}
	KUNIT_EXPECT_EQ(test, bed->r.cum, LIMIT);
	KUNIT_EXPECT_TRUE(test, timely_ndp_receiver_done(&bed->r));
}

static void data__is_answered_at_once(struct kunit *test)
{
	struct bed *bed = make_bed(test, LIMIT);

	arrive(bed, 1, 2, 0, TIMELY_NDP_PAYLOAD_CUT);
	KUNIT_EXPECT_EQ(test, bed->answer.type, TIMELY_NDP_NACK);
	KUNIT_EXPECT_EQ(test, bed->answer.flags, TIMELY_NDP_TRIMMED);
	KUNIT_EXPECT_EQ(test, bed->answer.seq, 1);
	KUNIT_EXPECT_EQ(test, bed->answer.path, 3);
	KUNIT_EXPECT_EQ(test, bed->answer.tries, 2);
	KUNIT_EXPECT_EQ(test, bed->answer.owed, 2);
	arrive(bed, 1, 2, 0, TIMELY_NDP_PAYLOAD_BAD);
	KUNIT_EXPECT_EQ(test, bed->answer.type, TIMELY_NDP_NACK);
	KUNIT_EXPECT_EQ(test, bed->answer.flags, 0);
	arrive(bed, 1, 3, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, bed->answer.type, TIMELY_NDP_ACK);
	KUNIT_EXPECT_EQ(test, bed->answer.cum, 0);
	KUNIT_EXPECT_EQ(test, bed->answer.limit, LIMIT);
	KUNIT_EXPECT_EQ(test, bed->r.stats.trimmed, 1);
	KUNIT_EXPECT_EQ(test, bed->r.stats.bad, 1);
	KUNIT_EXPECT_EQ(test, bed->r.stats.received, 1);
}

/* The 32 packets behind the first missing one, wherever that is in the map, which wraps here. */
static void data__names_what_arrived_behind_a_gap(struct kunit *test)
{
	struct bed *bed = make_bed(test, LIMIT);
	u32 cum, seq;

	for (cum = 0; cum < 200; cum++) {
		KUNIT_ASSERT_EQ(test, bed->r.cum, cum);
		timely_ndp_receiver_room(&bed->r, cum + SPAN, &bed->answer);
		for (seq = cum + 1; seq < cum + SPAN; seq++) {
			u32 after = seq - cum - 1;
			bool comes = after == 0 || after % 7 == 3 || after >= 31;

			if (comes)
				arrive(bed, seq, 1, 0, TIMELY_NDP_PAYLOAD_WHOLE);
			KUNIT_EXPECT_EQ(test, timely_ndp_says_arrived(&bed->answer, seq),
					comes && after < 32);
		}
		KUNIT_EXPECT_EQ(test, bed->answer.cum, cum);
		KUNIT_EXPECT_EQ(test, bed->answer.arrived & 1, 1);
		KUNIT_EXPECT_FALSE(test, timely_ndp_says_arrived(&bed->answer, cum));
		KUNIT_EXPECT_TRUE(test, timely_ndp_says_arrived(&bed->answer, cum - 1));
		/* Begin again one packet later. */
		set_up(test, bed, LIMIT);
		for (seq = 0; seq <= cum; seq++) {
			timely_ndp_receiver_room(&bed->r, seq + LIMIT, &bed->answer);
			arrive(bed, seq, 1, 0, TIMELY_NDP_PAYLOAD_WHOLE);
		}
		KUNIT_EXPECT_EQ(test, bed->answer.arrived, 0);
	}
}

/* A packet that comes again, even trimmed, is acknowledged, because it has arrived. */
static void data__repeated_is_acknowledged(struct kunit *test)
{
	struct bed *bed = make_bed(test, LIMIT);

	arrive(bed, 0, 1, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	arrive(bed, 2, 3, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, arrive(bed, 0, 1, 0, TIMELY_NDP_PAYLOAD_WHOLE),
			TIMELY_NDP_REPEATED);
	KUNIT_EXPECT_EQ(test, arrive(bed, 2, 3, 0, TIMELY_NDP_PAYLOAD_CUT), TIMELY_NDP_REPEATED);
	KUNIT_EXPECT_EQ(test, bed->answer.type, TIMELY_NDP_ACK);
	KUNIT_EXPECT_EQ(test, bed->answer.flags, 0);
	KUNIT_EXPECT_EQ(test, bed->answer.cum, 1);
	KUNIT_EXPECT_EQ(test, bed->r.stats.repeated, 2);
}

static void data__without_room(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4);

	KUNIT_EXPECT_EQ(test, arrive(bed, 4, 5, 0, TIMELY_NDP_PAYLOAD_WHOLE), TIMELY_NDP_MISSED);
	KUNIT_EXPECT_EQ(test, bed->answer.type, TIMELY_NDP_NACK);
	KUNIT_EXPECT_EQ(test, bed->answer.flags, 0);
	KUNIT_EXPECT_EQ(test, bed->answer.limit, 4);
	KUNIT_EXPECT_EQ(test, arrive(bed, 3, 5, 0, TIMELY_NDP_PAYLOAD_WHOLE),
			TIMELY_NDP_RECEIVED);
	KUNIT_EXPECT_EQ(test, bed->r.stats.no_room, 1);
}

/* Packets 0 to 63 fill the whole map; then numbers start again at the first bit. */
static void data__fills_the_whole_map(struct kunit *test)
{
	struct bed *bed = make_bed(test, SPAN);
	u32 i;

	for (i = SPAN - 1; i; i--)
		arrive(bed, i, SPAN, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, bed->r.cum, 0);
	arrive(bed, 0, SPAN, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, bed->r.cum, SPAN);
	KUNIT_EXPECT_EQ(test, bed->r.ahead, 0);
	KUNIT_EXPECT_TRUE(test, !bed->map[0]);
}

static void data__refuses_the_impossible(struct kunit *test)
{
	struct bed *bed = make_bed(test, LIMIT);
	struct timely_ndp_receiver before;
	struct timely_ndp_header header = { .seen = 1 };

	arrive(bed, 5, 6, TIMELY_NDP_FIN | TIMELY_NDP_LAST, TIMELY_NDP_PAYLOAD_CUT);
	before = bed->r;
	KUNIT_EXPECT_EQ(test, arrive(bed, 6, 6, 0, 0), TIMELY_NDP_REFUSED);
	KUNIT_EXPECT_EQ(test, arrive(bed, 4, 6, TIMELY_NDP_FIN, 0), TIMELY_NDP_REFUSED);
	KUNIT_EXPECT_EQ(test, arrive(bed, 0, TIMELY_NDP_MAX_CREDITS + 1, 0, 0),
			TIMELY_NDP_REFUSED);
	KUNIT_EXPECT_EQ(test, arrive(bed, 70000, 6, 0, 0), TIMELY_NDP_REFUSED);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_data(&bed->r, &header, 0, &bed->answer),
			TIMELY_NDP_REFUSED);
	KUNIT_EXPECT_FALSE(test, timely_ndp_receiver_probe(&bed->r, &header, &bed->answer));
	KUNIT_EXPECT_EQ(test, bed->r.stats.refused, 6);
	before.stats = bed->r.stats;
	KUNIT_EXPECT_TRUE(test, !memcmp(&before, &bed->r, sizeof(before)));
	/* The end of the stream cannot come before a packet that was seen. */
	set_up(test, bed, LIMIT);
	arrive(bed, 5, 6, 0, TIMELY_NDP_PAYLOAD_CUT);
	KUNIT_EXPECT_EQ(test, arrive(bed, 4, 6, TIMELY_NDP_FIN, 0), TIMELY_NDP_REFUSED);
}

/* ---- pulls ---- */

static void wanted__all_credits(struct kunit *test)
{
	struct bed *bed = make_bed(test, LIMIT);

	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 0);
	/* Packet 0 is lost; its credit is known from the next packet. */
	arrive(bed, 1, 2, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	arrive(bed, 2, 3, 0, TIMELY_NDP_PAYLOAD_CUT);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 3);
	timely_ndp_receiver_pull(&bed->r, 1, &bed->answer);
	KUNIT_EXPECT_EQ(test, bed->answer.type, TIMELY_NDP_PULL);
	KUNIT_EXPECT_EQ(test, bed->answer.credits, 1);
	KUNIT_EXPECT_EQ(test, bed->answer.owed, 2);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 2);
	/* No more than what is owed is granted. */
	timely_ndp_receiver_pull(&bed->r, 100, &bed->answer);
	KUNIT_EXPECT_EQ(test, bed->answer.credits, 3);
}

/* After the last packet, only those that are missing are pulled. */
static void wanted__ends_with_the_last_packet(struct kunit *test)
{
	struct bed *bed = make_bed(test, LIMIT);

	arrive(bed, 0, 1, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	arrive(bed, 1, 2, 0, TIMELY_NDP_PAYLOAD_CUT);
	arrive(bed, 2, 3, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 3);
	arrive(bed, 3, 4, TIMELY_NDP_LAST, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 1);
	KUNIT_EXPECT_EQ(test, bed->answer.credits, 0);
	/* The rest is granted when all has arrived: what follows is pushed. */
	arrive(bed, 1, 5, TIMELY_NDP_RTX, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 0);
	KUNIT_EXPECT_EQ(test, bed->answer.credits, 5);
	KUNIT_EXPECT_EQ(test, bed->answer.owed, 0);
	KUNIT_EXPECT_EQ(test, bed->r.stats.returned, 5);
	/* A later packet without the flag begins again. */
	arrive(bed, 4, 6, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 1);
}

static void wanted__not_what_is_on_its_way(struct kunit *test)
{
	struct timely_ndp_header header = { .seq = 1, .credits = 3, .seen = 1 };
	struct bed *bed = make_bed(test, LIMIT);

	arrive(bed, 0, 1, 0, TIMELY_NDP_PAYLOAD_CUT);
	arrive(bed, 1, 2, TIMELY_NDP_LAST, TIMELY_NDP_PAYLOAD_CUT);
	timely_ndp_receiver_pull(&bed->r, 1, &bed->answer);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 1);
	timely_ndp_receiver_pull(&bed->r, 1, &bed->answer);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 0);
	/* The sender has had the first pull, and its packet was trimmed again. */
	header.flags = TIMELY_NDP_LAST;
	timely_ndp_receiver_data(&bed->r, &header, TIMELY_NDP_PAYLOAD_CUT, &bed->answer);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 1);
}

static void wanted__stops_without_room(struct kunit *test)
{
	struct bed *bed = make_bed(test, 2);

	arrive(bed, 0, 1, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 1);
	arrive(bed, 1, 2, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 0);
	/* The pulls that are owed will tell the sender of the room. */
	KUNIT_EXPECT_FALSE(test, timely_ndp_receiver_room(&bed->r, 4, &bed->answer));
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 2);
	/* Nor are packets pulled that were sent before the sender knew of the limit. */
	arrive(bed, 7, 8, TIMELY_NDP_LAST, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 2);
}

static void room__is_told_to_a_stalled_sender(struct kunit *test)
{
	struct bed *bed = make_bed(test, 2);

	/* With all credits granted, the sender waits for room only. */
	arrive(bed, 0, 1, TIMELY_NDP_LAST, TIMELY_NDP_PAYLOAD_WHOLE);
	arrive(bed, 1, 2, TIMELY_NDP_LAST, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_FALSE(test, timely_ndp_receiver_room(&bed->r, 2, &bed->answer));
	KUNIT_EXPECT_FALSE(test, timely_ndp_receiver_room(&bed->r, 1, &bed->answer));
	KUNIT_EXPECT_TRUE(test, timely_ndp_receiver_room(&bed->r, 3, &bed->answer));
	KUNIT_EXPECT_EQ(test, bed->answer.type, TIMELY_NDP_PULL);
	KUNIT_EXPECT_EQ(test, bed->answer.limit, 3);
	KUNIT_EXPECT_FALSE(test, timely_ndp_receiver_room(&bed->r, 4, &bed->answer));
	/* No more room than the map has bits. */
	timely_ndp_receiver_room(&bed->r, 1000, &bed->answer);
	KUNIT_EXPECT_EQ(test, bed->r.limit, 2 + SPAN);
}

/* The application reads while an answer waits. Pulls are owed, so no other packet tells of it. */
static void grant__tells_of_the_room(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4);
	struct timely_ndp_header other;
	u32 seq;

	for (seq = 0; seq < 4; seq++)
		arrive(bed, seq, seq + 1, 0, TIMELY_NDP_PAYLOAD_WHOLE);
	KUNIT_EXPECT_EQ(test, bed->answer.limit, 4);
	KUNIT_EXPECT_FALSE(test, timely_ndp_receiver_room(&bed->r, 8, &other));
	timely_ndp_receiver_grant(&bed->r, 4, &bed->answer);
	KUNIT_EXPECT_EQ(test, bed->answer.type, TIMELY_NDP_ACK);
	KUNIT_EXPECT_EQ(test, bed->answer.credits, 4);
	KUNIT_EXPECT_EQ(test, bed->answer.limit, 8);
	/* The sender has room now. */
	KUNIT_EXPECT_FALSE(test, timely_ndp_receiver_room(&bed->r, 9, &other));
}

static void probe__repeats_what_was_granted(struct kunit *test)
{
	struct timely_ndp_header header = { .type = TIMELY_NDP_PROBE, .credits = 7 };
	struct bed *bed = make_bed(test, LIMIT);

	KUNIT_EXPECT_TRUE(test, timely_ndp_receiver_probe(&bed->r, &header, &bed->answer));
	KUNIT_EXPECT_EQ(test, bed->answer.type, TIMELY_NDP_PULL);
	KUNIT_EXPECT_EQ(test, bed->answer.credits, 0);
	KUNIT_EXPECT_EQ(test, bed->answer.owed, 7);
	/* The packets of these credits were lost; they are pulled. */
	KUNIT_EXPECT_EQ(test, timely_ndp_receiver_wanted(&bed->r), 7);
}

/* ---- past connections ---- */

static void past__until_its_time(struct kunit *test)
{
	struct timely_ndp_past_entry memory[16];
	const struct timely_ndp_past_entry *entry;
	struct timely_ndp_past past;

	KUNIT_EXPECT_EQ(test, timely_ndp_past_init(&past, memory, 4), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_ndp_past_init(&past, memory, 12), -EINVAL);
	KUNIT_ASSERT_EQ(test, timely_ndp_past_init(&past, memory, 16), 0);
	KUNIT_EXPECT_NULL(test, timely_ndp_past_find(&past, 0, 0));
	timely_ndp_past_add(&past, 42, 7, 1000, 100);
	entry = timely_ndp_past_find(&past, 42, 999);
	KUNIT_ASSERT_NOT_NULL(test, entry);
	KUNIT_EXPECT_EQ(test, entry->cum, 7);
	KUNIT_EXPECT_NULL(test, timely_ndp_past_find(&past, 42, 1000));
	KUNIT_EXPECT_NULL(test, timely_ndp_past_find(&past, 40, 999));
	/* The same connection again keeps one entry. */
	timely_ndp_past_add(&past, 42, 8, 2000, 200);
	entry = timely_ndp_past_find(&past, 42, 1500);
	KUNIT_ASSERT_NOT_NULL(test, entry);
	KUNIT_EXPECT_EQ(test, entry->cum, 8);
	KUNIT_EXPECT_FALSE(test, timely_ndp_past_full(&past, 200));
}

static void past__says_when_it_forgets(struct kunit *test)
{
	struct timely_ndp_past_entry memory[TIMELY_NDP_PAST_WAYS];
	struct timely_ndp_past past;
	u32 i;

	timely_ndp_past_init(&past, memory, TIMELY_NDP_PAST_WAYS);
	for (i = 0; i < TIMELY_NDP_PAST_WAYS; i++)
		timely_ndp_past_add(&past, 100 + i, i, 1000 + i, 0);
	KUNIT_EXPECT_FALSE(test, timely_ndp_past_full(&past, 0));
	for (i = 0; i < TIMELY_NDP_PAST_WAYS; i++)
		KUNIT_EXPECT_TRUE(test, !!timely_ndp_past_find(&past, 100 + i, 0));
	/* The entry that ends first is given up. */
	timely_ndp_past_add(&past, 200, 0, 5000, 0);
	KUNIT_EXPECT_NULL(test, timely_ndp_past_find(&past, 100, 0));
	KUNIT_EXPECT_TRUE(test, !!timely_ndp_past_find(&past, 101, 0));
	KUNIT_EXPECT_TRUE(test, timely_ndp_past_full(&past, 999));
	KUNIT_EXPECT_FALSE(test, timely_ndp_past_full(&past, 1000));
	/* An entry whose time is over is no loss. */
	timely_ndp_past_add(&past, 201, 0, 5000, 1001);
	KUNIT_EXPECT_FALSE(test, timely_ndp_past_full(&past, 1001));
}

static struct kunit_case ndp_receiver_cases[] = {
	KUNIT_CASE(receiver__follows_the_reference),
	KUNIT_CASE(init__checks_its_parameters),
	KUNIT_CASE(data__in_any_order),
	KUNIT_CASE(data__is_answered_at_once),
	KUNIT_CASE(data__names_what_arrived_behind_a_gap),
	KUNIT_CASE(data__repeated_is_acknowledged),
	KUNIT_CASE(data__without_room),
	KUNIT_CASE(data__fills_the_whole_map),
	KUNIT_CASE(data__refuses_the_impossible),
	KUNIT_CASE(wanted__all_credits),
	KUNIT_CASE(wanted__ends_with_the_last_packet),
	KUNIT_CASE(wanted__not_what_is_on_its_way),
	KUNIT_CASE(wanted__stops_without_room),
	KUNIT_CASE(room__is_told_to_a_stalled_sender),
	KUNIT_CASE(grant__tells_of_the_room),
	KUNIT_CASE(probe__repeats_what_was_granted),
	KUNIT_CASE(past__until_its_time),
	KUNIT_CASE(past__says_when_it_forgets),
	{}
};

static struct kunit_suite ndp_receiver_suite = {
	.name = "timely_ndp_receiver",
	.test_cases = ndp_receiver_cases,
};

kunit_test_suite(ndp_receiver_suite);
