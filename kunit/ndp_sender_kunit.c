// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of NDP's sender (ndp_sender.c): sequences of events with the results of reference_ndp.py,
 * then hand-made cases. Cases are named function__case.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/string.h>

#include <timely/engine/ndp_sender.h>

#include "ndp_vectors.h"

#define SPAN	32
#define WINDOW	10
#define RTT_NS	50000
#define RTO_NS	1000000

struct bed {
	struct timely_ndp_sender s;
	struct timely_ndp_slot slots[SPAN];
	struct timely_ndp_paths paths;
	struct timely_ndp_path path[4];
	struct timely_ndp_header sent;	/* the last packet */
	u64 now_ns;
};

static const struct timely_ndp_sender_config config = {
	.window = WINDOW, .span = SPAN, .rto_min_ns = 400000, .rto_max_ns = RTO_NS,
	.backoff_max_ns = 100 * RTO_NS,
};

static void set_up(struct kunit *test, struct bed *bed, u32 window)
{
	struct timely_ndp_sender_config mine = config;

	memset(bed, 0, sizeof(*bed));
	mine.window = window;
	timely_ndp_paths_init(&bed->paths, bed->path, 4, 1);
	KUNIT_ASSERT_EQ(test, timely_ndp_sender_init(&bed->s, &mine, bed->slots, &bed->paths), 0);
	bed->now_ns = 1000000000;
}

static struct bed *make_bed(struct kunit *test, u32 window)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	set_up(test, bed, window);
	return bed;
}

static bool sends(struct bed *bed)
{
	return timely_ndp_sender_next(&bed->s, &bed->sent, bed->now_ns) == TIMELY_NDP_SEND_DATA;
}

/* Send what may be sent. Return: number of packets. */
static u32 send_all(struct bed *bed)
{
	u32 count = 0;

	while (sends(bed))
		count++;
	return count;
}

static bool answer(struct bed *bed, u8 type, u32 seq, u32 credits, u32 owed)
{
	struct timely_ndp_header header = {
		.type = type, .seq = seq, .credits = credits, .owed = owed, .cum = bed->s.una,
		.limit = bed->s.una + 1000,
		.flags = type == TIMELY_NDP_NACK ? TIMELY_NDP_TRIMMED : 0,
		.tries = bed->slots[seq % SPAN].tries,
	};

	bed->now_ns += RTT_NS;
	return timely_ndp_sender_answer(&bed->s, &header, bed->now_ns);
}

static void come_back(struct bed *bed, u32 seq)
{
	struct timely_ndp_header header = { .seq = seq, .tries = bed->slots[seq % SPAN].tries };

	timely_ndp_sender_returned(&bed->s, &header, bed->now_ns);
}

/* ---- the reference ---- */

static bool replay_row(struct bed *bed, const struct ndp_sender_vector *v)
{
	struct timely_ndp_header header = {
		.type = v->type, .seq = v->seq, .credits = v->credits, .owed = v->owed,
		.cum = v->cum, .limit = v->limit, .flags = v->flags, .tries = v->tries,
		.arrived = v->arrived,
	};

	switch (v->event) {
	case NDP_V_QUEUE:
		timely_ndp_sender_queue(&bed->s, v->credits, v->now_ns);
		return true;
	case NDP_V_FINISH:
		timely_ndp_sender_finish(&bed->s, v->now_ns);
		return true;
	case NDP_V_ANSWER:
		return timely_ndp_sender_answer(&bed->s, &header, v->now_ns);
	case NDP_V_RETURNED:
		timely_ndp_sender_returned(&bed->s, &header, v->now_ns);
		return true;
	case NDP_V_TIMEOUT:
		timely_ndp_sender_timeout(&bed->s, v->now_ns);
		return true;
	default:
		return timely_ndp_sender_next(&bed->s, &bed->sent, v->now_ns) !=
		       TIMELY_NDP_SEND_NOTHING;
	}
}

static void sender__follows_the_reference(struct kunit *test)
{
	struct bed *bed = make_bed(test, WINDOW);
	u32 i, start = 0;
	u64 due;

	for (i = 0; i < ARRAY_SIZE(ndp_sender_vectors); i++) {
		const struct ndp_sender_vector *v = &ndp_sender_vectors[i];

		if (start < ARRAY_SIZE(ndp_sender_starts) && ndp_sender_starts[start].first == i)
			set_up(test, bed, ndp_sender_starts[start++].window);
		KUNIT_ASSERT_EQ_MSG(test, replay_row(bed, v), v->result, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->s.una, v->una, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->s.sent_list.count, v->flight, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->s.resend_list.count, v->again, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->s.graceful, v->graceful, "row %u", i);
		due = timely_ndp_sender_due_ns(&bed->s);
		KUNIT_EXPECT_EQ_MSG(test, due == TIMELY_NDP_NEVER ? 0 : due, v->due_ns,
				    "row %u", i);
		if (v->event != NDP_V_NEXT)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, bed->s.used, v->credits, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->sent.type, v->type, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->sent.seq, v->seq, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->sent.flags, v->flags, "row %u", i);
		KUNIT_EXPECT_EQ_MSG(test, bed->sent.tries, v->tries, "row %u", i);
	}
}

/* ---- by hand ---- */

static void init__checks_its_parameters(struct kunit *test)
{
	struct bed *bed = make_bed(test, WINDOW);
	struct timely_ndp_sender_config faults[9];
	u32 i;

	for (i = 0; i < ARRAY_SIZE(faults); i++)
		faults[i] = config;
	faults[0].window = 0;
	faults[1].window = SPAN + 1;
	faults[2].span = 16;
	faults[3].span = 48;
	faults[4].span = 2 * TIMELY_NDP_MAX_SPAN;
	faults[5].rto_min_ns = 0;
	faults[6].rto_min_ns = RTO_NS + 1;
	faults[7].backoff_max_ns = RTO_NS - 1;
	faults[8].span = 0;
	for (i = 0; i < ARRAY_SIZE(faults); i++)
		KUNIT_EXPECT_EQ_MSG(test, timely_ndp_sender_init(&bed->s, &faults[i], bed->slots,
								 &bed->paths),
				    -EINVAL, "fault %u", i);
}

static void next__pushes_the_window(struct kunit *test)
{
	struct bed *bed = make_bed(test, WINDOW);
	u32 i;

	KUNIT_EXPECT_EQ(test, timely_ndp_sender_due_ns(&bed->s), TIMELY_NDP_NEVER);
	timely_ndp_sender_queue(&bed->s, 12, bed->now_ns);
	for (i = 0; i < WINDOW; i++) {
		KUNIT_ASSERT_TRUE(test, sends(bed));
		KUNIT_EXPECT_EQ(test, bed->sent.seq, i);
		KUNIT_EXPECT_EQ(test, bed->sent.credits, i + 1);
		KUNIT_EXPECT_EQ(test, bed->sent.flags, TIMELY_NDP_SYN);
	}
	KUNIT_EXPECT_FALSE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, timely_ndp_sender_due_ns(&bed->s), bed->now_ns + RTO_NS);
	/* An ACK alone grants nothing. */
	answer(bed, TIMELY_NDP_ACK, 0, 0, WINDOW);
	KUNIT_EXPECT_FALSE(test, sends(bed));
	/* A PULL that overtook another one grants two. */
	answer(bed, TIMELY_NDP_PULL, 0, 2, WINDOW - 2);
	KUNIT_EXPECT_EQ(test, send_all(bed), 2);
	KUNIT_EXPECT_EQ(test, bed->s.next, 12);
	answer(bed, TIMELY_NDP_PULL, 0, 1, WINDOW);
	KUNIT_EXPECT_EQ(test, bed->s.granted, 2);
}

static void next__marks_the_last_packet(struct kunit *test)
{
	struct bed *bed = make_bed(test, WINDOW);

	timely_ndp_sender_queue(&bed->s, 2, bed->now_ns);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.flags, TIMELY_NDP_SYN);
	/* The last packet has not been sent, so it ends the stream. */
	KUNIT_EXPECT_FALSE(test, timely_ndp_sender_finish(&bed->s, bed->now_ns));
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.flags,
			TIMELY_NDP_SYN | TIMELY_NDP_LAST | TIMELY_NDP_FIN);
	/* A stream ends once. */
	KUNIT_EXPECT_FALSE(test, timely_ndp_sender_finish(&bed->s, bed->now_ns));
	KUNIT_EXPECT_EQ(test, bed->s.end, 2);
}

static void finish__with_an_empty_packet(struct kunit *test)
{
	struct bed *bed = make_bed(test, WINDOW);

	timely_ndp_sender_queue(&bed->s, 1, bed->now_ns);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.flags, TIMELY_NDP_SYN | TIMELY_NDP_LAST);
	KUNIT_EXPECT_TRUE(test, timely_ndp_sender_finish(&bed->s, bed->now_ns));
	KUNIT_EXPECT_EQ(test, bed->s.end, 2);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 1);
	KUNIT_EXPECT_TRUE(test, bed->sent.flags & TIMELY_NDP_FIN);
}

/* What is left of the window is for new packets; a trimmed packet waits for its pull. */
static void next__sends_again_when_pulled(struct kunit *test)
{
	struct bed *bed = make_bed(test, WINDOW);
	u16 path;

	timely_ndp_sender_queue(&bed->s, 3, bed->now_ns);
	send_all(bed);
	path = bed->slots[1].path;
	answer(bed, TIMELY_NDP_NACK, 1, 0, 3);
	KUNIT_EXPECT_FALSE(test, sends(bed));
	KUNIT_EXPECT_TRUE(test, bed->s.trims);
	timely_ndp_sender_queue(&bed->s, 1, bed->now_ns);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 3);
	KUNIT_EXPECT_FALSE(test, sends(bed));
	answer(bed, TIMELY_NDP_PULL, 0, 1, 3);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 1);
	KUNIT_EXPECT_EQ(test, bed->sent.flags, TIMELY_NDP_RTX);
	KUNIT_EXPECT_EQ(test, bed->sent.tries, 1);
	KUNIT_EXPECT_EQ(test, bed->sent.seen, 1);
	KUNIT_EXPECT_TRUE(test, bed->sent.path != path);
	KUNIT_EXPECT_FALSE(test, sends(bed));
}

/* Credits that were granted before an idle time do not count as pulls of new packets. */
static void next__waits_for_a_pull_after_an_idle_time(struct kunit *test)
{
	struct bed *bed = make_bed(test, WINDOW);

	timely_ndp_sender_queue(&bed->s, 3, bed->now_ns);
	send_all(bed);
	answer(bed, TIMELY_NDP_ACK, 0, 0, 3);
	answer(bed, TIMELY_NDP_ACK, 1, 0, 3);
	answer(bed, TIMELY_NDP_ACK, 2, 3, 0);
	KUNIT_EXPECT_EQ(test, bed->s.pulled, 3);
	timely_ndp_sender_queue(&bed->s, 1, bed->now_ns);
	KUNIT_EXPECT_EQ(test, send_all(bed), 1);
	answer(bed, TIMELY_NDP_NACK, 3, 3, 1);
	KUNIT_EXPECT_FALSE(test, sends(bed));
	answer(bed, TIMELY_NDP_PULL, 0, 4, 0);
	KUNIT_EXPECT_EQ(test, send_all(bed), 1);
}

/* The first packet that has not arrived goes before the others, which go in the order of NACKs. */
static void next__retransmissions_first(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4);

	timely_ndp_sender_queue(&bed->s, 20, bed->now_ns);
	send_all(bed);
	answer(bed, TIMELY_NDP_NACK, 3, 0, 4);
	answer(bed, TIMELY_NDP_NACK, 2, 0, 4);
	answer(bed, TIMELY_NDP_NACK, 0, 0, 4);
	answer(bed, TIMELY_NDP_PULL, 0, 4, 0);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 0);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 3);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 2);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 4);
	KUNIT_EXPECT_FALSE(test, sends(bed));
}

static void answer__of_an_earlier_transmission(struct kunit *test)
{
	struct timely_ndp_header nack = {
		.type = TIMELY_NDP_NACK, .seq = 0, .credits = 1, .limit = 100, .tries = 0
	};
	struct bed *bed = make_bed(test, 4);

	timely_ndp_sender_queue(&bed->s, 4, bed->now_ns);
	send_all(bed);
	answer(bed, TIMELY_NDP_NACK, 0, 0, 4);
	answer(bed, TIMELY_NDP_PULL, 0, 1, 3);
	KUNIT_EXPECT_EQ(test, send_all(bed), 1);
	/* A copy of the NACK comes late; the retransmission is on its way. */
	KUNIT_EXPECT_TRUE(test, timely_ndp_sender_answer(&bed->s, &nack, bed->now_ns));
	KUNIT_EXPECT_EQ(test, bed->s.resend_list.count, 0);
	/* The ACK of either transmission ends the matter. */
	nack.type = TIMELY_NDP_ACK;
	timely_ndp_sender_answer(&bed->s, &nack, bed->now_ns);
	KUNIT_EXPECT_EQ(test, bed->slots[0].state, TIMELY_NDP_SLOT_ACKED);
	KUNIT_EXPECT_EQ(test, bed->s.stats.spurious, 1);
}

static void answer__refuses_the_impossible(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4);
	struct timely_ndp_header faults[7] = {};
	struct timely_ndp_sender before;
	u32 i;

	timely_ndp_sender_queue(&bed->s, 8, bed->now_ns);
	send_all(bed);
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		faults[i].type = TIMELY_NDP_ACK;
		faults[i].limit = 100;
	}
	faults[0].cum = 5;
	faults[1].credits = 5;
	faults[2].limit = 65536;
	faults[3].seq = 4;
	faults[4].type = TIMELY_NDP_DATA;
	faults[5].type = TIMELY_NDP_PROBE;
	faults[6].limit = U32_MAX;
	for (i = 0; i < ARRAY_SIZE(faults); i++) {
		before = bed->s;
		KUNIT_EXPECT_FALSE(test, timely_ndp_sender_answer(&bed->s, &faults[i],
								  bed->now_ns));
		before.stats.invalid++;
		KUNIT_EXPECT_TRUE(test, !memcmp(&before, &bed->s, sizeof(before)));
	}
}

static bool answer_arrived(struct bed *bed, u32 cum, u32 arrived)
{
	struct timely_ndp_header header = {
		.type = TIMELY_NDP_PULL, .cum = cum, .arrived = arrived, .limit = cum + 100,
	};

	return timely_ndp_sender_answer(&bed->s, &header, bed->now_ns);
}

/* One answer says that many packets have arrived, also a trimmed one that was repeated. */
static void answer__names_packets_behind_a_gap(struct kunit *test)
{
	struct bed *bed = make_bed(test, WINDOW);

	timely_ndp_sender_queue(&bed->s, WINDOW, bed->now_ns);
	KUNIT_ASSERT_EQ(test, send_all(bed), WINDOW);
	answer(bed, TIMELY_NDP_NACK, 3, 0, 0);
	answer(bed, TIMELY_NDP_NACK, 0, 0, 0);
	KUNIT_EXPECT_TRUE(test, answer_arrived(bed, 0, 0x6));
	KUNIT_EXPECT_EQ(test, bed->slots[1].state, TIMELY_NDP_SLOT_SENT);
	KUNIT_EXPECT_EQ(test, bed->slots[2].state, TIMELY_NDP_SLOT_ACKED);
	KUNIT_EXPECT_EQ(test, bed->slots[3].state, TIMELY_NDP_SLOT_ACKED);
	KUNIT_EXPECT_EQ(test, bed->s.resend_list.count, 1);
	KUNIT_EXPECT_EQ(test, bed->s.sent_list.count, WINDOW - 3);
	KUNIT_EXPECT_EQ(test, bed->s.una, 0);
	/* The last packet that was sent, and one that was not. */
	KUNIT_EXPECT_TRUE(test, answer_arrived(bed, 0, 1 << (WINDOW - 2)));
	KUNIT_EXPECT_FALSE(test, answer_arrived(bed, 0, 1 << (WINDOW - 1)));
	KUNIT_EXPECT_EQ(test, bed->s.stats.invalid, 1);
	KUNIT_EXPECT_EQ(test, bed->s.sent_list.count, WINDOW - 4);
	/* An answer that was overtaken. */
	KUNIT_EXPECT_TRUE(test, answer_arrived(bed, 5, 0));
	KUNIT_EXPECT_TRUE(test, answer_arrived(bed, 0, 0xff));
	KUNIT_EXPECT_EQ(test, bed->s.una, 5);
	KUNIT_EXPECT_EQ(test, bed->s.resend_list.count, 0);
	KUNIT_EXPECT_EQ(test, bed->slots[8].state, TIMELY_NDP_SLOT_ACKED);
}

/* The peer cannot say that it owes more than was used. */
static void answer__bounds_what_is_owed(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4);

	timely_ndp_sender_queue(&bed->s, 1, bed->now_ns);
	send_all(bed);
	answer(bed, TIMELY_NDP_PULL, 0, 1, 60000);
	KUNIT_EXPECT_EQ(test, bed->s.promised, 1);
}

static void timeout__sends_one_packet(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4);
	u32 seq = 0;
	u64 due;

	timely_ndp_sender_queue(&bed->s, 8, bed->now_ns);
	send_all(bed);
	due = timely_ndp_sender_due_ns(&bed->s);
	timely_ndp_sender_timeout(&bed->s, due - 1);
	KUNIT_EXPECT_EQ(test, bed->s.stats.lost, 0);
	bed->now_ns = due;
	timely_ndp_sender_timeout(&bed->s, due);
	KUNIT_EXPECT_EQ(test, bed->s.stats.lost, 4);
	KUNIT_EXPECT_TRUE(test, bed->s.graceful);
	KUNIT_EXPECT_EQ(test, send_all(bed), 1);
	KUNIT_EXPECT_EQ(test, bed->s.used, 4);
	/* The next timeout is twice as long, up to the longest. */
	KUNIT_EXPECT_EQ(test, timely_ndp_sender_due_ns(&bed->s), bed->now_ns + 2 * RTO_NS);
	for (due = 0; due < 300; due++) {
		bed->now_ns = timely_ndp_sender_due_ns(&bed->s);
		timely_ndp_sender_timeout(&bed->s, bed->now_ns);
		KUNIT_ASSERT_TRUE(test, sends(bed));
		seq = bed->sent.seq;
		KUNIT_EXPECT_FALSE(test, sends(bed));
	}
	KUNIT_EXPECT_EQ(test, timely_ndp_sender_due_ns(&bed->s), bed->now_ns + 100 * RTO_NS);
	KUNIT_EXPECT_EQ(test, bed->s.silent, 255);
	/* One answer ends the backoff; the pulls ask for the rest. */
	answer(bed, TIMELY_NDP_ACK, seq, 4, 0);
	KUNIT_EXPECT_EQ(test, bed->s.silent, 0);
	KUNIT_EXPECT_EQ(test, bed->s.backoff, 0);
	KUNIT_EXPECT_EQ(test, send_all(bed), 4);
}

/* With nothing in flight, a lost PULL is asked for. */
static void timeout__asks_for_credits(struct kunit *test)
{
	struct bed *bed = make_bed(test, 1);
	struct timely_ndp_header header;

	timely_ndp_sender_queue(&bed->s, 2, bed->now_ns);
	send_all(bed);
	answer(bed, TIMELY_NDP_ACK, 0, 0, 1);
	KUNIT_EXPECT_FALSE(test, sends(bed));
	bed->now_ns = timely_ndp_sender_due_ns(&bed->s);
	timely_ndp_sender_timeout(&bed->s, bed->now_ns);
	KUNIT_EXPECT_EQ(test, timely_ndp_sender_next(&bed->s, &header, bed->now_ns),
			TIMELY_NDP_SEND_PROBE);
	KUNIT_EXPECT_EQ(test, header.type, TIMELY_NDP_PROBE);
	KUNIT_EXPECT_EQ(test, header.credits, 1);
	KUNIT_EXPECT_EQ(test, timely_ndp_sender_next(&bed->s, &header, bed->now_ns),
			TIMELY_NDP_SEND_NOTHING);
	answer(bed, TIMELY_NDP_PULL, 0, 1, 0);
	KUNIT_EXPECT_EQ(test, send_all(bed), 1);
}

/* While pulls are expected, lost packets wait for them. */
static void timeout__leaves_the_rest_to_pulls(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4);
	struct timely_ndp_header header;

	timely_ndp_sender_queue(&bed->s, 8, bed->now_ns);
	send_all(bed);
	answer(bed, TIMELY_NDP_ACK, 3, 0, 4);
	bed->now_ns = timely_ndp_sender_due_ns(&bed->s);
	timely_ndp_sender_timeout(&bed->s, bed->now_ns);
	KUNIT_EXPECT_EQ(test, bed->s.stats.lost, 3);
	/* As nothing is in flight, the PULL may have been lost. */
	KUNIT_EXPECT_EQ(test, timely_ndp_sender_next(&bed->s, &header, bed->now_ns),
			TIMELY_NDP_SEND_PROBE);
	KUNIT_EXPECT_EQ(test, send_all(bed), 0);
	answer(bed, TIMELY_NDP_PULL, 0, 2, 2);
	KUNIT_EXPECT_EQ(test, send_all(bed), 2);
}

/* Where the RTT is longer than the timeout, each packet is sent again before its ACK comes. */
static void answer__shows_that_the_timeout_is_too_short(struct kunit *test)
{
	struct timely_ndp_header ack = { .type = TIMELY_NDP_ACK, .limit = 1000 };
	struct bed *bed = make_bed(test, 1);
	u64 rtt_ns = 20 * RTO_NS, sent_ns, due;
	u32 i;

	timely_ndp_sender_queue(&bed->s, 100, bed->now_ns);
	for (i = 0; i < 10; i++) {
		KUNIT_ASSERT_TRUE(test, sends(bed));
		sent_ns = bed->now_ns;
		for (;;) {
			due = timely_ndp_sender_due_ns(&bed->s);
			if (due >= sent_ns + rtt_ns)
				break;
			bed->now_ns = due;
			timely_ndp_sender_timeout(&bed->s, due);
			send_all(bed);
		}
		bed->now_ns = sent_ns + rtt_ns;
		ack.seq = i;
		ack.cum = i + 1;
		ack.credits = i + 1;
		timely_ndp_sender_answer(&bed->s, &ack, bed->now_ns);
	}
	/* The first transmissions are known to be too early, and later ones are not. */
	KUNIT_EXPECT_LE(test, bed->s.stats.timeouts, 8);
	KUNIT_EXPECT_GT(test, bed->s.srtt_ns, rtt_ns / 2);
	KUNIT_EXPECT_LT(test, bed->s.srtt_ns, 2 * rtt_ns);
}

/* Without trimming, packets sent a quarter of an RTT before one that arrived are lost. */
static void answer__finds_gaps_without_trimming(struct kunit *test)
{
	struct bed *bed = make_bed(test, 8);

	timely_ndp_sender_queue(&bed->s, 1, bed->now_ns);
	send_all(bed);
	bed->now_ns = timely_ndp_sender_due_ns(&bed->s);
	timely_ndp_sender_timeout(&bed->s, bed->now_ns);
	send_all(bed);
	answer(bed, TIMELY_NDP_ACK, 0, 1, 0);
	KUNIT_ASSERT_TRUE(test, bed->s.graceful);
	timely_ndp_sender_queue(&bed->s, 3, bed->now_ns);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	bed->now_ns += bed->s.srtt_ns / 4 - 9;
	KUNIT_EXPECT_TRUE(test, sends(bed));
	bed->now_ns += 10;
	KUNIT_EXPECT_EQ(test, send_all(bed), 1);
	answer(bed, TIMELY_NDP_ACK, 3, 1, 2);
	KUNIT_EXPECT_EQ(test, bed->s.stats.gaps, 1);
	KUNIT_EXPECT_EQ(test, bed->s.resend_list.count, 1);
	KUNIT_EXPECT_EQ(test, bed->s.sent_list.count, 1);
	/* A trimmed packet shows that the network trims. */
	answer(bed, TIMELY_NDP_NACK, 2, 1, 2);
	KUNIT_EXPECT_FALSE(test, bed->s.graceful);
}

static void returned__waits_for_a_pull(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4);

	timely_ndp_sender_queue(&bed->s, 4, bed->now_ns);
	send_all(bed);
	come_back(bed, 0);
	KUNIT_EXPECT_FALSE(test, sends(bed));
	answer(bed, TIMELY_NDP_NACK, 1, 0, 4);
	answer(bed, TIMELY_NDP_NACK, 2, 0, 4);
	come_back(bed, 3);
	/* Nothing is in flight, but the receiver owes credits. */
	KUNIT_EXPECT_FALSE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->s.stats.returned_at_once, 0);
	answer(bed, TIMELY_NDP_PULL, 0, 1, 3);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 0);
}

static void returned__the_whole_window(struct kunit *test)
{
	struct bed *bed = make_bed(test, 4);
	u32 i;

	timely_ndp_sender_queue(&bed->s, 4, bed->now_ns);
	send_all(bed);
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_FALSE(test, sends(bed));
		come_back(bed, i);
	}
	KUNIT_EXPECT_EQ(test, send_all(bed), 1);
	KUNIT_EXPECT_EQ(test, bed->s.stats.returned_at_once, 1);
	/* It does not travel back and forth: the second time it waits for a timeout. */
	come_back(bed, 0);
	KUNIT_EXPECT_FALSE(test, sends(bed));
	/* Timeouts get longer, but not as long as those without any sign of life. */
	for (i = 0; i < 10; i++) {
		bed->now_ns = timely_ndp_sender_due_ns(&bed->s);
		timely_ndp_sender_timeout(&bed->s, bed->now_ns);
		KUNIT_ASSERT_TRUE(test, sends(bed));
		come_back(bed, bed->sent.seq);
		KUNIT_EXPECT_FALSE(test, sends(bed));
		KUNIT_EXPECT_EQ(test, timely_ndp_sender_due_ns(&bed->s) - bed->now_ns,
				RTO_NS << min(i + 1, 3U));
	}
}

/* If most packets arrive, another path is likely to work. */
static void returned__where_most_packets_arrive(struct kunit *test)
{
	struct bed *bed = make_bed(test, 20);
	u32 i;

	timely_ndp_sender_queue(&bed->s, 20, bed->now_ns);
	send_all(bed);
	for (i = 0; i < 15; i++)
		answer(bed, TIMELY_NDP_ACK, i, 0, 20);
	come_back(bed, 17);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 17);
}

/* One ACK for 15 packets shows as much as 15 ACKs. */
static void returned__where_one_answer_shows_that_most_arrive(struct kunit *test)
{
	struct timely_ndp_header header = {
		.type = TIMELY_NDP_ACK, .seq = 14, .owed = 20, .cum = 15, .limit = 1000,
	};
	struct bed *bed = make_bed(test, 20);

	timely_ndp_sender_queue(&bed->s, 20, bed->now_ns);
	send_all(bed);
	bed->now_ns += RTT_NS;
	KUNIT_EXPECT_TRUE(test, timely_ndp_sender_answer(&bed->s, &header, bed->now_ns));
	come_back(bed, 17);
	KUNIT_EXPECT_TRUE(test, sends(bed));
	KUNIT_EXPECT_EQ(test, bed->sent.seq, 17);
}

/* A receiver without room gets new packets only after it has told of room. */
static void limit__stops_new_packets(struct kunit *test)
{
	struct timely_ndp_header ack = {
		.type = TIMELY_NDP_ACK, .cum = 1, .limit = 5, .credits = 1
	};
	struct bed *bed = make_bed(test, 4);

	timely_ndp_sender_queue(&bed->s, 20, bed->now_ns);
	KUNIT_EXPECT_EQ(test, send_all(bed), 4);
	timely_ndp_sender_answer(&bed->s, &ack, bed->now_ns);
	KUNIT_EXPECT_EQ(test, send_all(bed), 1);
	ack.credits = 5;
	ack.cum = 5;
	ack.seq = 4;
	timely_ndp_sender_answer(&bed->s, &ack, bed->now_ns);
	KUNIT_EXPECT_EQ(test, send_all(bed), 0);
	ack.type = TIMELY_NDP_PULL;
	ack.limit = 7;
	timely_ndp_sender_answer(&bed->s, &ack, bed->now_ns);
	KUNIT_EXPECT_EQ(test, send_all(bed), 2);
}

static void span__bounds_the_packets_in_flight(struct kunit *test)
{
	struct bed *bed = make_bed(test, SPAN);
	u32 i;

	timely_ndp_sender_queue(&bed->s, 100, bed->now_ns);
	KUNIT_EXPECT_EQ(test, send_all(bed), SPAN);
	KUNIT_EXPECT_EQ(test, timely_ndp_sender_room(&bed->s), 0);
	/* All but the first packet arrive. */
	for (i = 1; i < SPAN; i++)
		answer(bed, TIMELY_NDP_ACK, i, i, SPAN - i);
	KUNIT_EXPECT_EQ(test, send_all(bed), 0);
	KUNIT_EXPECT_FALSE(test, timely_ndp_sender_done(&bed->s));
}

static void probe__of_the_caller(struct kunit *test)
{
	struct bed *bed = make_bed(test, WINDOW);
	struct timely_ndp_header header;

	timely_ndp_sender_probe(&bed->s, bed->now_ns);
	KUNIT_EXPECT_EQ(test, timely_ndp_sender_next(&bed->s, &header, bed->now_ns),
			TIMELY_NDP_SEND_PROBE);
	KUNIT_EXPECT_EQ(test, header.flags, TIMELY_NDP_SYN);
	KUNIT_EXPECT_EQ(test, timely_ndp_sender_due_ns(&bed->s), TIMELY_NDP_NEVER);
}

static struct kunit_case ndp_sender_cases[] = {
	KUNIT_CASE(sender__follows_the_reference),
	KUNIT_CASE(init__checks_its_parameters),
	KUNIT_CASE(next__pushes_the_window),
	KUNIT_CASE(next__marks_the_last_packet),
	KUNIT_CASE(finish__with_an_empty_packet),
	KUNIT_CASE(next__sends_again_when_pulled),
	KUNIT_CASE(next__waits_for_a_pull_after_an_idle_time),
	KUNIT_CASE(next__retransmissions_first),
	KUNIT_CASE(answer__of_an_earlier_transmission),
	KUNIT_CASE(answer__refuses_the_impossible),
	KUNIT_CASE(answer__names_packets_behind_a_gap),
	KUNIT_CASE(answer__bounds_what_is_owed),
	KUNIT_CASE(timeout__sends_one_packet),
	KUNIT_CASE(timeout__asks_for_credits),
	KUNIT_CASE(timeout__leaves_the_rest_to_pulls),
	KUNIT_CASE(answer__shows_that_the_timeout_is_too_short),
	KUNIT_CASE(answer__finds_gaps_without_trimming),
	KUNIT_CASE(returned__waits_for_a_pull),
	KUNIT_CASE(returned__the_whole_window),
	KUNIT_CASE(returned__where_most_packets_arrive),
	KUNIT_CASE(returned__where_one_answer_shows_that_most_arrive),
	KUNIT_CASE(limit__stops_new_packets),
	KUNIT_CASE(span__bounds_the_packets_in_flight),
	KUNIT_CASE(probe__of_the_caller),
	{}
};

static struct kunit_suite ndp_sender_suite = {
	.name = "timely_ndp_sender",
	.test_cases = ndp_sender_cases,
};

kunit_test_suite(ndp_sender_suite);
