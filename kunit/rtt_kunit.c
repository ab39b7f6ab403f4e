// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the RTT measurement engine: by hand one case for each thing that
 * <timely/engine/rtt.h> promises, then connections whose RTTs are known, then ACKs
 * that nobody would send (rtt_model.h). Cases are named function__case.
 *
 * By hand, a segment of ten packets was handed to the device at 1 s, its last
 * packet is acknowledged 100 us later, and the line takes 1 ns a byte.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/time64.h>

#include <timely/engine/rtt.h>
#include <timely/engine/tune.h>

#include "rtt_model.h"

#define MSS		1000
#define SEGMENT		(10 * MSS)
#define START_SEQ	5000
#define SENT_NS		1000000000ULL
#define RTT_NS		100000
#define TAIL_NS		200000
#define NS_PER_BYTE	(1 << 16)

struct flow {
	struct timely_rtt rtt;
	struct timely_ack ack;
	struct timely_completion completion;
};

static const struct timely_rtt plain_rtt = {
	.seq = START_SEQ,
	.delivered = 70,
};

static const struct timely_ack plain_ack = {
	.now_ns = SENT_NS + RTT_NS + 30000,
	.arrived_ns = SENT_NS + RTT_NS,
	.sent_ns = SENT_NS,
	.scheduled_ns = SENT_NS - 7000,
	.source = TIMELY_RTT_hardware,
	.una = START_SEQ + SEGMENT,
	.end_seq = START_SEQ + SEGMENT,
	.delivered = 80,
	.mss = MSS,
	.segment_bytes = SEGMENT,
	.in_flight = 20,
	.ns_per_byte_q16 = NS_PER_BYTE,
	.tail_limit_ns = TAIL_NS,
	.new = true,
};

static void start(struct flow *f)
{
	memset(f, 0, sizeof(*f));
	f->rtt = plain_rtt;
	f->ack = plain_ack;
}

static enum timely_rtt_result measure(struct flow *f)
{
	f->completion = (struct timely_completion) {};
	return timely_rtt_measure(&f->rtt, &f->ack, &f->completion);
}

#define EXPECT_RTT(test, f, want_ns) do {				\
	KUNIT_EXPECT_LE(test, measure(f), TIMELY_RTT_tcp);		\
	KUNIT_EXPECT_EQ(test, (f)->completion.rtt_ns, want_ns);		\
} while (0)

#define EXPECT_REFUSED(test, f, reason) \
	KUNIT_EXPECT_EQ(test, measure(f), TIMELY_RTT_##reason)

/* The reasons to refuse an ACK, in their order. */
static void not_new(struct timely_ack *ack)
{
	ack->new = false;
}

static void sent_twice(struct timely_ack *ack)
{
	ack->retransmitted = true;
}

static void in_recovery(struct timely_ack *ack)
{
	ack->recovery = true;
}

static void departure_skipped(struct timely_ack *ack)
{
	ack->skipped = true;
	ack->sent_ns = 0;
}

static void ends_within(struct timely_ack *ack)
{
	ack->una -= MSS;
	ack->delivered--;
	ack->sent_ns = 0;
}

static void kept_back(struct timely_ack *ack)
{
	ack->delayed = true;
}

static void contradicted(struct timely_ack *ack)
{
	ack->source = TIMELY_RTT_doubtful;
}

static void before_it_was_sent(struct timely_ack *ack)
{
	ack->sent_ns = ack->sent_ns ? ack->arrived_ns + 1 : 0;
	ack->scheduled_ns = ack->arrived_ns + 1;
}

static void too_long_ago(struct timely_ack *ack)
{
	/* Not both, or it would be neither. */
	if (ack->scheduled_ns > ack->arrived_ns)
		return;
	ack->now_ns += 2 * TIMELY_RTT_MAX_NS;
	ack->arrived_ns += 2 * TIMELY_RTT_MAX_NS;
}

static void lone_tail(struct timely_ack *ack)
{
	ack->in_flight = 1;
	ack->tail_limit_ns = RTT_NS / 2;
}

static const struct {
	void (*make)(struct timely_ack *ack);
	enum timely_rtt_result reason;
} reasons[] = {
	{ not_new, TIMELY_RTT_nothing_new },
	{ sent_twice, TIMELY_RTT_retransmitted },
	{ in_recovery, TIMELY_RTT_recovery },
	{ departure_skipped, TIMELY_RTT_partial },
	{ ends_within, TIMELY_RTT_partial },
	{ kept_back, TIMELY_RTT_delayed },
	{ contradicted, TIMELY_RTT_doubtful },
	{ before_it_was_sent, TIMELY_RTT_negative },
	{ too_long_ago, TIMELY_RTT_too_long },
	{ lone_tail, TIMELY_RTT_delayed },
};

/* ---- what is refused ---- */

static void refuse__each_reason_by_itself(struct kunit *test)
{
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reasons); i++) {
		start(&f);
		reasons[i].make(&f.ack);
		KUNIT_EXPECT_EQ_MSG(test, measure(&f), reasons[i].reason, "reason %u", i);
	}
	start(&f);
	KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_hardware);
}

/* Whatever else holds, the first reason is the one that counts. */
static void refuse__in_order(struct kunit *test)
{
	u32 mask, i;

	for (mask = 1; mask < 1 << ARRAY_SIZE(reasons); mask++) {
		enum timely_rtt_result first = TIMELY_RTT_COUNTER_COUNT;
		struct flow f;

		start(&f);
		for (i = 0; i < ARRAY_SIZE(reasons); i++) {
			if (!(mask & 1 << i))
				continue;
			reasons[i].make(&f.ack);
			if (first == TIMELY_RTT_COUNTER_COUNT)
				first = reasons[i].reason;
		}
		KUNIT_EXPECT_EQ_MSG(test, measure(&f), first, "reasons %x", mask);
	}
}

static void refuse__changes_nothing(struct kunit *test)
{
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(reasons); i++) {
		start(&f);
		reasons[i].make(&f.ack);
		measure(&f);
		KUNIT_EXPECT_EQ(test, f.rtt.seq, plain_rtt.seq);
		KUNIT_EXPECT_EQ(test, f.rtt.delivered, plain_rtt.delivered);
		KUNIT_EXPECT_EQ(test, f.completion.now_ns, 0);
		KUNIT_EXPECT_EQ(test, f.completion.rtt_ns, 0);
		KUNIT_EXPECT_EQ(test, f.completion.bytes, 0);
		/* And it has no later effect. */
		f.ack = plain_ack;
		EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
		KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
	}
}

static void refuse__a_doubtful_stamp_though_there_are_others(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.source = TIMELY_RTT_doubtful;
	EXPECT_REFUSED(test, &f, doubtful);
	/* Without a time of arrival as well: TCP's own is no substitute. */
	f.ack.arrived_ns = 0;
	EXPECT_REFUSED(test, &f, doubtful);
}

static void refuse__shorter_than_the_path_after_waiting(struct kunit *test)
{
	u32 rtt_ns = RTT_NS - SEGMENT;
	struct flow f;

	start(&f);
	f.ack.least_ns = rtt_ns + TIMELY_RTT_LEAST_SLACK_NS + 1;
	EXPECT_REFUSED(test, &f, doubtful);
	KUNIT_EXPECT_EQ(test, f.rtt.seq, plain_rtt.seq);
	f.ack.least_ns--;
	EXPECT_RTT(test, &f, rtt_ns);
}

/* ---- which segment ---- */

static void segment__ends_where_the_ack_does(struct kunit *test)
{
	struct flow f;
	u32 back;

	/* The one sent last of those confirmed may end before una: it was sent again. */
	for (back = 0; back <= SEGMENT; back += MSS) {
		start(&f);
		f.ack.end_seq -= back;
		KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_hardware);
	}
	/* A byte short of its end is no end. */
	start(&f);
	f.ack.sent_ns = 0;
	f.ack.una--;
	EXPECT_REFUSED(test, &f, partial);
}

static void segment__in_pieces_completes_once(struct kunit *test)
{
	struct flow f;
	u32 packets;

	start(&f);
	for (packets = 1; packets <= 10; packets++) {
		f.ack.una = START_SEQ + packets * MSS;
		f.ack.delivered = plain_rtt.delivered + packets;
		f.ack.sent_ns = packets == 10 ? SENT_NS : 0;
		if (packets < 10)
			EXPECT_REFUSED(test, &f, partial);
		else
			EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
	}
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
}

static void segment__under_another_qdisc_begins_when_scheduled(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.sent_ns = 0;
	EXPECT_RTT(test, &f, RTT_NS + 7000 - SEGMENT);
	start(&f);
	f.ack.scheduled_ns = 0;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
}

/* A departure that was seen later than TCP had planned counts, and an earlier. */
static void segment__begins_when_it_was_handed_over(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.scheduled_ns = SENT_NS + 90000;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
	start(&f);
	f.ack.scheduled_ns = SENT_NS + 2 * RTT_NS;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
}

static void segment__at_the_wrap(struct kunit *test)
{
	static const u32 origins[] = {
		0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0U - MSS, 0U - SEGMENT,
		0U - SEGMENT - 1, 0x80000000 - SEGMENT,
	};
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(origins); i++) {
		start(&f);
		f.rtt.seq = origins[i];
		f.ack.una = origins[i] + SEGMENT;
		f.ack.end_seq = f.ack.una;
		EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
		KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
		KUNIT_EXPECT_EQ(test, f.rtt.seq, f.ack.una);
		/* Part of the next one, as large as a window may be. */
		f.ack.sent_ns = 0;
		f.ack.una += MSS;
		f.ack.end_seq = f.ack.una + (1 << 30);
		EXPECT_REFUSED(test, &f, partial);
	}
}

/* ---- SACK ---- */

static void sack__completes_a_segment_whose_end_is_known(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.una = START_SEQ;
	f.ack.end_seq = START_SEQ + 2 * SEGMENT;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
	KUNIT_EXPECT_EQ(test, f.rtt.seq, START_SEQ);
	KUNIT_EXPECT_EQ(test, f.rtt.delivered, 80);
}

static void sack__of_packets_within_a_segment_does_not(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.una = START_SEQ;
	f.ack.end_seq = START_SEQ + SEGMENT + 4 * MSS;
	f.ack.sent_ns = 0;
	EXPECT_REFUSED(test, &f, partial);
}

/* The second segment overtakes the first: each byte completes once. */
static void sack__of_what_overtook_counts_once(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.una = START_SEQ;
	f.ack.end_seq = START_SEQ + 2 * SEGMENT;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);

	f.ack.una = START_SEQ + 2 * SEGMENT;
	f.ack.end_seq = START_SEQ + SEGMENT;
	f.ack.delivered += 10;
	f.ack.arrived_ns += 5000;
	EXPECT_RTT(test, &f, RTT_NS + 5000 - SEGMENT);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);

	/* And the next one in order is as before. */
	f.ack.una = START_SEQ + 3 * SEGMENT;
	f.ack.end_seq = f.ack.una;
	f.ack.delivered += 10;
	EXPECT_RTT(test, &f, RTT_NS + 5000 - SEGMENT);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
}

/* Packet by packet, the hole is in the middle: the segment's last one ends it. */
static void sack__packet_by_packet(struct kunit *test)
{
	struct flow f;
	u32 i;

	start(&f);
	f.ack.una = START_SEQ + 3 * MSS;
	f.ack.sent_ns = 0;
	f.ack.delivered = plain_rtt.delivered + 3;
	f.ack.end_seq = START_SEQ + SEGMENT;
	EXPECT_REFUSED(test, &f, partial);
	f.ack.sacked = true;
	for (i = 5; i < 10; i++) {
		f.ack.delivered++;
		f.ack.end_seq = START_SEQ + i * MSS;
		EXPECT_REFUSED(test, &f, partial);
	}
	f.ack.delivered++;
	f.ack.end_seq = START_SEQ + SEGMENT;
	f.ack.sent_ns = SENT_NS;
	KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_hardware);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, 9 * MSS);
	/* The hole is filled, and with it the rest. */
	f.ack.sacked = false;
	f.ack.una = START_SEQ + SEGMENT;
	f.ack.end_seq = START_SEQ + 4 * MSS;
	f.ack.delivered++;
	KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_hardware);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, MSS);
}

/* ---- serialisation ---- */

static void line__each_size_of_a_segment(struct kunit *test)
{
	/* 1, 10, 25, 40, 100, 800 Gb/s. */
	static const u32 gbps[] = { 1, 10, 25, 40, 100, 800 };
	u32 i, packets, bytes;
	struct flow f;

	for (i = 0; i < ARRAY_SIZE(gbps); i++) {
		for (packets = 1; packets <= 64; packets++) {
			bytes = packets * 1448;
			start(&f);
			f.ack.mss = 1448;
			f.ack.segment_bytes = bytes;
			f.ack.una = START_SEQ + bytes;
			f.ack.end_seq = f.ack.una;
			f.ack.delivered = plain_rtt.delivered + packets;
			f.ack.arrived_ns = SENT_NS + 10 * NSEC_PER_MSEC;
			f.ack.ns_per_byte_q16 = (8 << 16) / gbps[i];
			KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_hardware);
			KUNIT_EXPECT_EQ(test, f.completion.bytes, bytes);
			/* To the ns, and 2^-16 ns a byte for the rate. */
			KUNIT_EXPECT_GE(test, f.completion.rtt_ns,
					10 * NSEC_PER_MSEC - 8 * bytes / gbps[i] - 1);
			KUNIT_EXPECT_LE(test, f.completion.rtt_ns,
					10 * NSEC_PER_MSEC - 8 * bytes / gbps[i] + 3);
		}
	}
}

/* One ACK for several segments: the last one's is in its RTT, and no more. */
static void line__of_one_segment_only(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.una += 4 * SEGMENT;
	f.ack.end_seq += 4 * SEGMENT;
	f.ack.delivered += 40;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, 5 * SEGMENT);
}

/* Where the segment's size is not known it is at most what was completed. */
static void line__of_what_was_completed_at_most(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.segment_bytes = 65536;
	f.ack.sent_ns = 0;
	EXPECT_RTT(test, &f, RTT_NS + 7000 - SEGMENT);
	start(&f);
	f.ack.segment_bytes = 65536;
	f.ack.sent_ns = 0;
	f.ack.una = START_SEQ + 100;
	f.ack.end_seq = f.ack.una;
	f.ack.delivered = plain_rtt.delivered + 1;
	EXPECT_RTT(test, &f, RTT_NS + 7000 - 100);
}

/* Where it is known, headers and all count. */
static void line__of_the_whole_segment(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.segment_bytes = SEGMENT + 660;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT - 660);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
}

static void line__not_known(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.ns_per_byte_q16 = 0;
	EXPECT_RTT(test, &f, RTT_NS);
}

static void line__never_below_zero(struct kunit *test)
{
	static const u32 rates[] = {
		0, 1, NS_PER_BYTE, 10 * NS_PER_BYTE - 1, 10 * NS_PER_BYTE,
		10 * NS_PER_BYTE + 1, 11 * NS_PER_BYTE, 1U << 31, U32_MAX,
	};
	static const u32 sizes[] = { 0, 1, SEGMENT, 1U << 31, U32_MAX };
	static const u32 spans[] = { 0, 1, 9999, RTT_NS, 2000000000 };
	u32 i, j, k;

	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		for (j = 0; j < ARRAY_SIZE(sizes); j++) {
			for (k = 0; k < ARRAY_SIZE(spans); k++) {
				u64 line_ns = ((u64)sizes[j] * rates[i]) >> 16;
				struct flow f;

				start(&f);
				f.ack.segment_bytes = sizes[j];
				f.ack.una = START_SEQ + sizes[j];
				f.ack.end_seq = f.ack.una;
				f.ack.delivered = plain_rtt.delivered + sizes[j];
				f.ack.ns_per_byte_q16 = rates[i];
				f.ack.arrived_ns = SENT_NS + spans[k];
				if (!sizes[j])
					continue;
				EXPECT_RTT(test, &f,
					   spans[k] > line_ns ? spans[k] - line_ns : 0);
			}
		}
	}
}

/* ---- lone tails ---- */

static void tail__later_than_the_limit_is_refused(struct kunit *test)
{
	struct flow f;
	u32 in_flight;

	for (in_flight = 0; in_flight <= 3; in_flight++) {
		start(&f);
		f.ack.in_flight = in_flight;
		f.ack.arrived_ns = SENT_NS + TAIL_NS;
		EXPECT_RTT(test, &f, TAIL_NS - SEGMENT);
		start(&f);
		f.ack.in_flight = in_flight;
		f.ack.arrived_ns = SENT_NS + TAIL_NS + 1;
		KUNIT_EXPECT_EQ(test, measure(&f), in_flight > 1 ? TIMELY_RTT_hardware :
				TIMELY_RTT_delayed);
	}
}

static void tail__of_forty_ms_is_refused_whatever_stamped_it(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.in_flight = 1;
	f.ack.arrived_ns = SENT_NS + 40 * NSEC_PER_MSEC;
	EXPECT_REFUSED(test, &f, delayed);
	f.ack.source = TIMELY_RTT_driver;
	EXPECT_REFUSED(test, &f, delayed);
	f.ack.now_ns = f.ack.arrived_ns;
	f.ack.arrived_ns = 0;
	EXPECT_REFUSED(test, &f, delayed);
	f.ack.sent_ns = 0;
	EXPECT_REFUSED(test, &f, delayed);
}

/* Small packets that are fewer bytes than the receiver acknowledges at once. */
static void tail__of_several_small_packets(struct kunit *test)
{
	static const struct {
		u32 in_flight, acked, bytes;
		enum timely_rtt_result result;
	} cases[] = {
		{ 3, 3, 300, TIMELY_RTT_delayed },
		{ 3, 4, 300, TIMELY_RTT_delayed },
		{ 3, 3, MSS, TIMELY_RTT_delayed },
		/* That much it acknowledges without waiting. */
		{ 3, 3, MSS + 1, TIMELY_RTT_hardware },
		/* It had more to expect. */
		{ 3, 2, 300, TIMELY_RTT_hardware },
	};
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		start(&f);
		f.ack.in_flight = cases[i].in_flight;
		f.ack.acked = cases[i].acked;
		f.ack.una = START_SEQ + cases[i].bytes;
		f.ack.end_seq = f.ack.una;
		f.ack.delivered = plain_rtt.delivered + 3;
		f.ack.arrived_ns = SENT_NS + TAIL_NS + 1;
		KUNIT_EXPECT_EQ_MSG(test, measure(&f), cases[i].result, "case %u", i);
		/* In time it counts. */
		f.ack.arrived_ns--;
		KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_hardware);
	}
}

/* ---- bytes ---- */

static void bytes__of_packets_short_of_an_mss(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.una -= 999;
	f.ack.end_seq = f.ack.una;
	measure(&f);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT - 999);
	/* Ten writes of a hundred bytes. */
	f.ack.una += 1000;
	f.ack.end_seq = f.ack.una;
	f.ack.delivered += 10;
	measure(&f);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, 1000);
}

/* One more in order, three beyond a hole. */
static void bytes__of_a_hole_and_what_follows(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.una = START_SEQ + MSS;
	f.ack.end_seq = START_SEQ + 5 * MSS;
	f.ack.delivered = plain_rtt.delivered + 4;
	f.ack.sacked = true;
	measure(&f);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, 4 * MSS);
}

static void bytes__one_at_least(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.una = START_SEQ;
	f.ack.end_seq = START_SEQ;
	f.ack.delivered = plain_rtt.delivered;
	measure(&f);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, 1);
	/* And with no MSS. */
	start(&f);
	f.ack.mss = 0;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, 1);
}

static void bytes__when_the_count_of_packets_wraps(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.rtt.delivered = U32_MAX - 3;
	f.ack.delivered = 6;
	measure(&f);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
	KUNIT_EXPECT_EQ(test, f.rtt.delivered, 6);
}

static void bytes__at_most_what_fits(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.una = START_SEQ;
	f.ack.end_seq = START_SEQ + SEGMENT;
	f.ack.delivered = plain_rtt.delivered + U32_MAX;
	f.ack.mss = 9000;
	measure(&f);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, U32_MAX);
}

/* What a refused ACK confirmed completes with the next one that is measured. */
static void bytes__of_refused_acks_are_not_lost(struct kunit *test)
{
	struct flow f;
	u32 i;

	for (i = 1; i < ARRAY_SIZE(reasons); i++) {
		start(&f);
		reasons[i].make(&f.ack);
		measure(&f);
		f.ack = plain_ack;
		f.ack.una += SEGMENT;
		f.ack.end_seq += SEGMENT;
		f.ack.delivered += 10;
		EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
		KUNIT_EXPECT_EQ(test, f.completion.bytes, 2 * SEGMENT);
	}
}

/* ---- t_completion ---- */

static void source__is_what_the_stamp_is_from(struct kunit *test)
{
	static const enum timely_rtt_result sources[] = {
		TIMELY_RTT_hardware, TIMELY_RTT_driver, TIMELY_RTT_hardware,
	};
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		start(&f);
		f.ack.source = sources[i];
		KUNIT_EXPECT_EQ(test, measure(&f), sources[i]);
		KUNIT_EXPECT_EQ(test, f.completion.rtt_ns, RTT_NS - SEGMENT);
		KUNIT_EXPECT_EQ(test, f.completion.now_ns, plain_ack.now_ns);
		/* None: whatever it would have been from. */
		f.ack.arrived_ns = 0;
		KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_tcp);
		KUNIT_EXPECT_EQ(test, f.completion.now_ns, plain_ack.now_ns);
	}
}

/* That the ACK waited in the backlog is not in its RTT. */
static void source__the_backlog_is_not_in_the_rtt(struct kunit *test)
{
	struct flow f;
	u64 waited_ns;

	for (waited_ns = 0; waited_ns < NSEC_PER_SEC; waited_ns += 10 * NSEC_PER_MSEC) {
		start(&f);
		f.ack.now_ns = f.ack.arrived_ns + waited_ns;
		EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
		KUNIT_EXPECT_EQ(test, f.completion.now_ns, f.ack.arrived_ns + waited_ns);
		f.ack.arrived_ns = 0;
		EXPECT_RTT(test, &f, RTT_NS + waited_ns - SEGMENT);
	}
}

/* ---- the ends of the range ---- */

static void range__zero_is_an_rtt(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.arrived_ns = SENT_NS;
	EXPECT_RTT(test, &f, 0);
	start(&f);
	f.ack.arrived_ns = SENT_NS - 1;
	EXPECT_REFUSED(test, &f, negative);
	start(&f);
	f.ack.sent_ns = U64_MAX;
	EXPECT_REFUSED(test, &f, negative);
}

static void range__ten_seconds_is_the_last(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.arrived_ns = SENT_NS + TIMELY_RTT_MAX_NS;
	EXPECT_RTT(test, &f, U32_MAX);
	start(&f);
	f.ack.arrived_ns = SENT_NS + TIMELY_RTT_MAX_NS + 1;
	EXPECT_REFUSED(test, &f, too_long);
	start(&f);
	f.ack.arrived_ns = U64_MAX;
	EXPECT_REFUSED(test, &f, too_long);
}

static void range__saturates_after_serialisation(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.arrived_ns = SENT_NS + U32_MAX;
	EXPECT_RTT(test, &f, U32_MAX - SEGMENT);
	start(&f);
	f.ack.arrived_ns = SENT_NS + U32_MAX + SEGMENT;
	EXPECT_RTT(test, &f, U32_MAX);
	start(&f);
	f.ack.arrived_ns = SENT_NS + U32_MAX + SEGMENT + 1;
	EXPECT_RTT(test, &f, U32_MAX);
}

/* ---- connections whose RTTs are known ---- */

#define SEGMENTS	64

struct segment {
	u64 sent_ns;
	u32 packets;
	u32 bytes;
	u32 end;	/* from the connection's first byte */
	bool sacked;
};

struct connection {
	struct rtt_dice dice;
	struct flow flow;
	struct segment segments[SEGMENTS];
	u32 first;	/* sequence number of the first byte */
	u32 delivered;
	u64 completed;
	u64 now_ns;
};

/* Segments of all sizes, the last packet of some of them a short one. */
static struct connection *make_connection(struct kunit *test, u32 seed, bool whole)
{
	struct connection *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	u32 end = 0, i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->dice.state = seed + 1;
	c->first = (u32)rtt_roll(&c->dice) | 0xffe00000;
	c->now_ns = SENT_NS;
	for (i = 0; i < SEGMENTS; i++) {
		struct segment *s = &c->segments[i];

		s->packets = 1 + (i + seed) % 64;
		s->bytes = s->packets * MSS;
		if (!whole)
			s->bytes -= rtt_below(&c->dice, MSS);
		end += s->bytes;
		s->end = end;
		s->sent_ns = c->now_ns;
		c->now_ns += s->bytes;
	}
	start(&c->flow);
	c->flow.rtt.seq = c->first;
	c->flow.rtt.delivered = 0;
	return c;
}

/* An ACK up to @una that confirms @s as the last one. */
static enum timely_rtt_result acknowledge(struct connection *c, u32 una,
					  const struct segment *s, u32 packets)
{
	struct timely_ack *ack = &c->flow.ack;
	enum timely_rtt_result result;

	c->delivered += packets;
	c->now_ns += 500 + rtt_below(&c->dice, 100000);
	ack->now_ns = c->now_ns + rtt_below(&c->dice, 1000000);
	ack->arrived_ns = c->now_ns;
	ack->una = c->first + una;
	ack->end_seq = c->first + s->end;
	ack->sent_ns = s->end <= una || s->sacked ? s->sent_ns : 0;
	ack->segment_bytes = s->bytes;
	ack->delivered = c->delivered;
	result = measure(&c->flow);
	if (result <= TIMELY_RTT_tcp)
		c->completed += c->flow.completion.bytes;
	return result;
}

static void expect_truth(struct kunit *test, const struct connection *c,
			 const struct segment *s)
{
	u64 want_ns = c->now_ns - s->sent_ns;

	KUNIT_EXPECT_EQ(test, c->flow.completion.rtt_ns,
			want_ns > s->bytes ? want_ns - s->bytes : 0);
}

/* In order: within segments, at their ends, over several. */
static void connection__in_order(struct kunit *test)
{
	struct connection *c = NULL;
	u32 i = 0, una = 0, up_to, packets;

	c = make_connection(test, 11, false);
	while (i < SEGMENTS) {
		const struct segment *s = &c->segments[i];
		bool ends;

		packets = (s->end - una + MSS - 1) / MSS;
		ends = rtt_below(&c->dice, 3) || packets == 1;
		if (!ends)
			packets = 1 + rtt_below(&c->dice, packets - 1);
		up_to = ends ? s->end : una + packets * MSS;
		una = up_to;
		if (!ends) {
			KUNIT_EXPECT_EQ(test, acknowledge(c, una, s, packets),
					TIMELY_RTT_partial);
			continue;
		}
		i++;
		KUNIT_EXPECT_EQ(test, acknowledge(c, una, s, packets), TIMELY_RTT_hardware);
		expect_truth(test, c, s);
	}
	KUNIT_EXPECT_EQ(test, c->completed, c->segments[SEGMENTS - 1].end);
}

/* Of several segments by one ACK the last one's RTT counts, and all bytes. */
static void connection__stretched(struct kunit *test)
{
	struct connection *c = make_connection(test, 23, false);
	u32 i = 0, packets;

	while (i < SEGMENTS) {
		u32 last = min_t(u32, i + rtt_below(&c->dice, 5), SEGMENTS - 1);

		for (packets = 0; i <= last; i++)
			packets += c->segments[i].packets;
		KUNIT_EXPECT_EQ(test, acknowledge(c, c->segments[last].end,
						  &c->segments[last], packets),
				TIMELY_RTT_hardware);
		expect_truth(test, c, &c->segments[last]);
	}
	KUNIT_EXPECT_EQ(test, c->completed, c->segments[SEGMENTS - 1].end);
}

/* In any order, by SACK: each is measured, each byte completes once. */
static void connection__out_of_order(struct kunit *test)
{
	struct connection *c = make_connection(test, 37, true);
	u32 i, next = 0, una = 0;

	for (i = 0; i < SEGMENTS; i++) {
		u32 at = next + rtt_below(&c->dice, 6);
		struct segment *s;

		while (at >= SEGMENTS || c->segments[at].sacked)
			at = at && at < SEGMENTS && at > next ? at - 1 : SEGMENTS - 1;
		s = &c->segments[at];
		s->sacked = true;
		while (next < SEGMENTS && c->segments[next].sacked)
			una = c->segments[next++].end;
		KUNIT_EXPECT_EQ(test, acknowledge(c, una, s, s->packets),
				TIMELY_RTT_hardware);
		expect_truth(test, c, s);
		KUNIT_EXPECT_EQ(test, c->flow.completion.bytes, s->bytes);
	}
	KUNIT_EXPECT_EQ(test, c->completed, c->segments[SEGMENTS - 1].end);
}

/* Losses: the ACKs of recovery are refused, what they confirmed is not lost. */
static void connection__with_losses(struct kunit *test)
{
	struct connection *c = make_connection(test, 41, true);
	u32 i;

	for (i = 0; i < SEGMENTS; i++) {
		const struct segment *s = &c->segments[i];
		u32 fate = i < SEGMENTS - 1 ? rtt_below(&c->dice, 4) : 3;

		c->flow.ack.retransmitted = fate == 0;
		c->flow.ack.recovery = fate <= 1;
		KUNIT_EXPECT_EQ(test, acknowledge(c, s->end, s, s->packets),
				fate == 0 ? TIMELY_RTT_retransmitted :
				fate == 1 ? TIMELY_RTT_recovery : TIMELY_RTT_hardware);
		if (fate > 1)
			expect_truth(test, c, s);
	}
	KUNIT_EXPECT_EQ(test, c->completed, c->segments[SEGMENTS - 1].end);
}

/* ---- all at random ---- */

static void random_stamps(struct kunit *test, struct rtt_model *m,
			  const struct timely_preset *preset)
{
	struct timely_params params = preset->params;
	u32 i;

	memset(m, 0, sizeof(*m));
	timely_tune(&params, &(struct timely_path){});
	m->dice.state = 20150817;
	for (i = 0; i < 100000; i++) {
		if (i % 1000 == 0)
			rtt_model_init(m, &params);
		rtt_model_step(m);
	}
	for (i = 0; i < RTT_PROMISES; i++) {
		KUNIT_EXPECT_EQ_MSG(test, m->broken[i], 0, "%s", rtt_promises[i]);
		KUNIT_EXPECT_GT_MSG(test, m->kept[i], 1000, "%s", rtt_promises[i]);
	}
}

static void all__random_stamps(struct kunit *test)
{
	struct rtt_model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	for (i = 0; i < timely_preset_count; i++)
		random_stamps(test, m, &timely_presets[i]);
}

/* ---- what receivers add ---- */

#define DUE_NS		10000

/* An RTT of a flow, so long after the last one; @flow_ns is what its one before was late by. */
static void late(struct timely_noise *noise, u32 since_ns, u32 *flow_ns, u32 late_ns)
{
	timely_noise_add(noise, &(struct timely_late){
		.now_ns = noise->seen_ns + since_ns,
		.late_ns = late_ns,
		.before_ns = *flow_ns,
		.due_ns = DUE_NS,
	});
	*flow_ns = late_ns;
}

static void late_by_up_to(struct timely_noise *noise, u32 most_ns, u32 times)
{
	struct rtt_dice dice = { .state = 20150817 };
	u32 flow_ns = 0;

	while (times--)
		late(noise, 100000, &flow_ns, rtt_roll(&dice) % (most_ns + 1));
}

static void noise__is_nearly_half_of_what_acks_are_held_for(struct kunit *test)
{
	static const u32 holds_us[] = { 40, 50, 100, 1000, 100000 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(holds_us); i++) {
		struct timely_noise noise = {};

		/* Of one flow: .42 on average, and of 64 RTTs that is not exact. */
		late_by_up_to(&noise, holds_us[i] * 1000, 1000);
		KUNIT_EXPECT_GE(test, noise.mean_ns, holds_us[i] * 300);
		KUNIT_EXPECT_LE(test, noise.mean_ns, holds_us[i] * 600);
	}
}

static void noise__is_none_up_to_the_queue_that_is_steered_to(struct kunit *test)
{
	struct timely_noise noise = {};

	late_by_up_to(&noise, 2 * DUE_NS, 1000);
	KUNIT_EXPECT_EQ(test, noise.mean_ns, 0);
}

static void noise__is_not_known_of_seven(struct kunit *test)
{
	struct timely_noise noise = {};

	late_by_up_to(&noise, 1000000, 7);
	KUNIT_EXPECT_EQ(test, noise.mean_ns, 0);
	late_by_up_to(&noise, 1000000, 1);
	KUNIT_EXPECT_GT(test, noise.mean_ns, 0);
}

/* A queue is five times as long there; what is noise is not, but is known later. */
static void noise__is_less_where_rates_come_late(struct kunit *test)
{
	struct rtt_dice dice = { .state = 20150817 };
	struct timely_noise noise = {};
	u32 flow_ns = 0, i;

	for (i = 1; i <= 1000; i++) {
		struct timely_late late = {
			.now_ns = i * 100000ULL,
			.late_ns = rtt_roll(&dice) % (5 * DUE_NS),
			.before_ns = flow_ns,
			.due_ns = 5 * DUE_NS,
			.rates_lag = i <= 500,
		};

		timely_noise_add(&noise, &late);
		flow_ns = late.late_ns;
		if (i < 48)
			KUNIT_ASSERT_EQ(test, noise.mean_ns, 0);
		if (i == 48 || i == 500)
			KUNIT_EXPECT_GT(test, noise.mean_ns, 15000);
	}
	KUNIT_EXPECT_EQ(test, noise.mean_ns, 0);
}

static void noise__is_no_queue_that_comes_and_goes(struct kunit *test)
{
	struct timely_noise noise = {};
	u32 flow_ns = 0, i;

	/* Up to 100 us and down again, within 50 round trips. */
	for (i = 0; i < 1000; i++) {
		late(&noise, 100000, &flow_ns, 4000 * (i % 50 < 25 ? i % 50 : 50 - i % 50));
		KUNIT_ASSERT_EQ(test, noise.mean_ns, 0);
	}
}

static void noise__shows_in_flows_that_keep_step(struct kunit *test)
{
	static const u32 waits_ns[] = { 5000, 45000, 20000 };
	struct timely_noise noise = {};
	u32 i, flows_ns[3] = { 5000, 45000, 20000 };

	for (i = 0; i < 300; i++)
		late(&noise, 50000, &flows_ns[i % 3], waits_ns[i % 3]);
	KUNIT_EXPECT_GT(test, noise.mean_ns, DUE_NS);
	/* Of different drains it would be the queue's difference. */
	noise = (struct timely_noise){ .seen_ns = SENT_NS };
	for (i = 0; i < 300; i++)
		late(&noise, 67000000, &flows_ns[i % 3], waits_ns[i % 3]);
	KUNIT_EXPECT_EQ(test, noise.mean_ns, 0);
}

static void noise__ends(struct kunit *test)
{
	struct timely_noise noise = {};

	late_by_up_to(&noise, 100000, 100);
	KUNIT_EXPECT_GT(test, noise.mean_ns, 0);
	late_by_up_to(&noise, 3000, 300);
	KUNIT_EXPECT_EQ(test, noise.mean_ns, 0);
}

static void noise__of_any_numbers(struct kunit *test)
{
	static const u32 values[] = { 0, 1, 1000000000, U32_MAX };
	struct timely_noise noise = {};
	u32 i;

	for (i = 0; i < 4 * 4 * 4 * 4; i++)
		timely_noise_add(&noise, &(struct timely_late){
			.now_ns = values[i % 4],
			.late_ns = values[i / 4 % 4],
			.before_ns = values[i / 16 % 4],
			.due_ns = values[i / 64],
		});
	KUNIT_EXPECT_LE(test, noise.jump_ns, 1000000000);
	KUNIT_EXPECT_LE(test, noise.due_ns, 1000000000);
	KUNIT_EXPECT_LE(test, noise.mean_ns, 1250000000);
}

static struct kunit_case rtt_cases[] = {
	KUNIT_CASE(refuse__each_reason_by_itself),
	KUNIT_CASE(refuse__in_order),
	KUNIT_CASE(refuse__changes_nothing),
	KUNIT_CASE(refuse__a_doubtful_stamp_though_there_are_others),
	KUNIT_CASE(refuse__shorter_than_the_path_after_waiting),
	KUNIT_CASE(segment__ends_where_the_ack_does),
	KUNIT_CASE(segment__in_pieces_completes_once),
	KUNIT_CASE(segment__under_another_qdisc_begins_when_scheduled),
	KUNIT_CASE(segment__begins_when_it_was_handed_over),
	KUNIT_CASE(segment__at_the_wrap),
	KUNIT_CASE(sack__completes_a_segment_whose_end_is_known),
	KUNIT_CASE(sack__of_packets_within_a_segment_does_not),
	KUNIT_CASE(sack__of_what_overtook_counts_once),
	KUNIT_CASE(sack__packet_by_packet),
	KUNIT_CASE(line__each_size_of_a_segment),
	KUNIT_CASE(line__of_one_segment_only),
	KUNIT_CASE(line__of_what_was_completed_at_most),
	KUNIT_CASE(line__of_the_whole_segment),
	KUNIT_CASE(line__not_known),
	KUNIT_CASE(line__never_below_zero),
	KUNIT_CASE(tail__later_than_the_limit_is_refused),
	KUNIT_CASE(tail__of_forty_ms_is_refused_whatever_stamped_it),
	KUNIT_CASE(tail__of_several_small_packets),
	KUNIT_CASE(bytes__of_packets_short_of_an_mss),
	KUNIT_CASE(bytes__of_a_hole_and_what_follows),
	KUNIT_CASE(bytes__one_at_least),
	KUNIT_CASE(bytes__when_the_count_of_packets_wraps),
	KUNIT_CASE(bytes__at_most_what_fits),
	KUNIT_CASE(bytes__of_refused_acks_are_not_lost),
	KUNIT_CASE(source__is_what_the_stamp_is_from),
	KUNIT_CASE(source__the_backlog_is_not_in_the_rtt),
	KUNIT_CASE(range__zero_is_an_rtt),
	KUNIT_CASE(range__ten_seconds_is_the_last),
	KUNIT_CASE(range__saturates_after_serialisation),
	KUNIT_CASE(connection__in_order),
	KUNIT_CASE(connection__stretched),
	KUNIT_CASE(connection__out_of_order),
	KUNIT_CASE(connection__with_losses),
	KUNIT_CASE(all__random_stamps),
	KUNIT_CASE(noise__is_nearly_half_of_what_acks_are_held_for),
	KUNIT_CASE(noise__is_none_up_to_the_queue_that_is_steered_to),
	KUNIT_CASE(noise__is_not_known_of_seven),
	KUNIT_CASE(noise__is_less_where_rates_come_late),
	KUNIT_CASE(noise__is_no_queue_that_comes_and_goes),
	KUNIT_CASE(noise__shows_in_flows_that_keep_step),
	KUNIT_CASE(noise__ends),
	KUNIT_CASE(noise__of_any_numbers),
	{}
};

static struct kunit_suite rtt_suite = {
	.name = "timely_rtt",
	.test_cases = rtt_cases,
};

kunit_test_suite(rtt_suite);
