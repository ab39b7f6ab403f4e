// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the RTT measurement engine: hand-made cases for each promise of <timely/engine/rtt.h>,
 * then connections with known RTTs, then implausible ACKs (rtt_model.h). Cases are named
 * function__case.
 *
 * In the hand-made cases, a segment of ten packets was passed to the device at 1 s, its last packet
 * is acknowledged 100 us later, and the link takes 1 ns per byte.
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

/* The reasons to refuse an ACK, in the order in which they are checked. */
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
	/* Together with before_it_was_sent(), the RTT would be neither negative nor too long. */
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

/* If several reasons apply, the first one counts. */
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
		/* A refused ACK has no later effect. */
		f.ack = plain_ack;
		EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
		KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
	}
}

static void refuse__a_doubtful_timestamp_despite_other_times(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.source = TIMELY_RTT_doubtful;
	EXPECT_REFUSED(test, &f, doubtful);
	/* Without a time of arrival, too: TCP's time does not replace a doubtful timestamp. */
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

	/* The newest confirmed packet may end before una, if it was sent again. */
	for (back = 0; back <= SEGMENT; back += MSS) {
		start(&f);
		f.ack.end_seq -= back;
		KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_hardware);
	}
	/* An ACK that is one byte short completes no segment. */
	start(&f);
	f.ack.sent_ns = 0;
	f.ack.una--;
	EXPECT_REFUSED(test, &f, partial);
}

static void segment__acked_in_parts_completes_once(struct kunit *test)
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

static void segment__starts_as_scheduled_under_another_qdisc(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.sent_ns = 0;
	EXPECT_RTT(test, &f, RTT_NS + 7000 - SEGMENT);
	start(&f);
	f.ack.scheduled_ns = 0;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
}

/* The recorded departure counts, whether earlier or later than TCP had scheduled. */
static void segment__starts_at_its_departure(struct kunit *test)
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
static void sack__of_an_overtaking_segment_counts_once(struct kunit *test)
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

	/* The next segment, in order, is measured as usual. */
	f.ack.una = START_SEQ + 3 * SEGMENT;
	f.ack.end_seq = f.ack.una;
	f.ack.delivered += 10;
	EXPECT_RTT(test, &f, RTT_NS + 5000 - SEGMENT);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
}

/* SACK confirms a segment packet by packet, with a hole in the middle. The last packet completes
 * the segment.
 */
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
	/* The retransmission of the hole completes the remaining bytes. */
	f.ack.sacked = false;
	f.ack.una = START_SEQ + SEGMENT;
	f.ack.end_seq = START_SEQ + 4 * MSS;
	f.ack.delivered++;
	KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_hardware);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, MSS);
}

/* ---- serialization ---- */

static void serialization__each_segment_size(struct kunit *test)
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
			/* Rounded to a ns, and the rate to 2^-16 ns per byte. */
			KUNIT_EXPECT_GE(test, f.completion.rtt_ns,
					10 * NSEC_PER_MSEC - 8 * bytes / gbps[i] - 1);
			KUNIT_EXPECT_LE(test, f.completion.rtt_ns,
					10 * NSEC_PER_MSEC - 8 * bytes / gbps[i] + 3);
		}
	}
}

/* One ACK for several segments: only the serialization of the last one is subtracted. */
static void serialization__of_one_segment_only(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.una += 4 * SEGMENT;
	f.ack.end_seq += 4 * SEGMENT;
	f.ack.delivered += 40;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, 5 * SEGMENT);
}

/* If the size of the segment is not known, it is at most what was completed. */
static void serialization__of_what_was_completed_at_most(struct kunit *test)
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

/* If the size is known, headers are included. */
static void serialization__of_the_whole_segment(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.segment_bytes = SEGMENT + 660;
	EXPECT_RTT(test, &f, RTT_NS - SEGMENT - 660);
	KUNIT_EXPECT_EQ(test, f.completion.bytes, SEGMENT);
}

static void serialization__not_known(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.ack.ns_per_byte_q16 = 0;
	EXPECT_RTT(test, &f, RTT_NS);
}

static void serialization__never_below_zero(struct kunit *test)
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

/* ---- single last packets ---- */

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

static void tail__of_forty_ms_is_refused_with_any_timestamp(struct kunit *test)
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

/* Small packets with fewer bytes than the receiver acknowledges at once. */
static void tail__of_several_small_packets(struct kunit *test)
{
	static const struct {
		u32 in_flight, acked, bytes;
		enum timely_rtt_result result;
	} cases[] = {
		{ 3, 3, 300, TIMELY_RTT_delayed },
		{ 3, 4, 300, TIMELY_RTT_delayed },
		{ 3, 3, MSS, TIMELY_RTT_delayed },
		/* A receiver acknowledges more than an MSS without delay. */
		{ 3, 3, MSS + 1, TIMELY_RTT_hardware },
		/* More packets are in flight, so the receiver need not delay the ACK. */
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
		/* At the limit, the RTT counts. */
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

/* One packet in order and three packets beyond a hole are confirmed. */
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
	/* Without a known MSS, too. */
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

/* Data confirmed by a refused ACK completes with the next measured ACK. */
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

static void source__is_the_origin_of_the_timestamp(struct kunit *test)
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
		/* Without a timestamp, the time is TCP's, whatever the source is. */
		f.ack.arrived_ns = 0;
		KUNIT_EXPECT_EQ(test, measure(&f), TIMELY_RTT_tcp);
		KUNIT_EXPECT_EQ(test, f.completion.now_ns, plain_ack.now_ns);
	}
}

/* The time that the ACK waited in the backlog is not part of its RTT. */
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

/* ---- connections with known RTTs ---- */

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

/* Segments of all sizes; the last packet of some is short. */
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

/* An ACK up to @una that confirms @s as the newest segment. */
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

/* If one ACK confirms several segments, the RTT of the last one counts, and all bytes. */
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

/* In any order, by SACK: each segment is measured, and each byte completes once. */
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

/* Losses: ACKs in recovery are refused; what they confirmed is not lost. */
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

/* ---- random ACKs ---- */

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

static void all__random_timestamps(struct kunit *test)
{
	struct rtt_model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, m);
	for (i = 0; i < timely_preset_count; i++)
		random_stamps(test, m, &timely_presets[i]);
}

/* ---- ACK aggregation ---- */

#define DUE_NS		10000

/* Add an RTT of a flow, @since_ns after the last RTT of the path. The RTT is @probe_queue_ns above
 * the base RTT. @flow_ns is the same for the previous RTT of the flow.
 */
static void late(struct timely_ack_agg *ack_agg, u32 since_ns, u32 *flow_ns, u32 probe_queue_ns)
{
	timely_ack_agg_add(ack_agg, &(struct timely_probe_sample){
		.now_ns = ack_agg->seen_ns + since_ns,
		.probe_queue_ns = probe_queue_ns,
		.before_ns = *flow_ns,
		.due_ns = DUE_NS,
	});
	*flow_ns = probe_queue_ns;
}

static void late_by_up_to(struct timely_ack_agg *ack_agg, u32 most_ns, u32 times)
{
	struct rtt_dice dice = { .state = 20150817 };
	u32 flow_ns = 0;

	while (times--)
		late(ack_agg, 100000, &flow_ns, rtt_roll(&dice) % (most_ns + 1));
}

static void ack_agg__is_nearly_half_of_the_delay(struct kunit *test)
{
	static const u32 delays_us[] = { 40, 50, 100, 1000, 100000 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(delays_us); i++) {
		struct timely_ack_agg ack_agg = {};

		/* Delays are uniform from 0 to a maximum. The estimate from one flow is .42 of the
		 * maximum on average, and varies, as it is an average of 64 RTTs.
		 */
		late_by_up_to(&ack_agg, delays_us[i] * 1000, 1000);
		KUNIT_EXPECT_GE(test, ack_agg.mean_ns, delays_us[i] * 300);
		KUNIT_EXPECT_LE(test, ack_agg.mean_ns, delays_us[i] * 600);
	}
}

static void ack_agg__zero_up_to_the_target_delay(struct kunit *test)
{
	struct timely_ack_agg ack_agg = {};

	late_by_up_to(&ack_agg, 2 * DUE_NS, 1000);
	KUNIT_EXPECT_EQ(test, ack_agg.mean_ns, 0);
}

static void ack_agg__unknown_after_seven_rtts(struct kunit *test)
{
	struct timely_ack_agg ack_agg = {};

	late_by_up_to(&ack_agg, 1000000, 7);
	KUNIT_EXPECT_EQ(test, ack_agg.mean_ns, 0);
	late_by_up_to(&ack_agg, 1000000, 1);
	KUNIT_EXPECT_GT(test, ack_agg.mean_ns, 0);
}

/* If rates lag, the target delay is five times as long, but ACK aggregation is not. So a smaller
 * aggregation must be found, which takes 64 RTTs after the path's first probe. That probe has 40.
 */
static void ack_agg__found_later_if_rates_lag(struct kunit *test)
{
	struct rtt_dice dice = { .state = 20150817 };
	struct timely_ack_agg ack_agg = {};
	u32 flow_ns = 0, i;

	for (i = 1; i <= 1000; i++) {
		struct timely_probe_sample late = {
			.now_ns = i * 100000ULL + (i > 40 ? 60 * NSEC_PER_MSEC : 0),
			.probe_queue_ns = rtt_roll(&dice) % (5 * DUE_NS),
			.before_ns = flow_ns,
			.due_ns = 5 * DUE_NS,
			.rates_lag = i <= 500,
		};

		timely_ack_agg_add(&ack_agg, &late);
		flow_ns = late.probe_queue_ns;
		if (i < 40 + 64)
			KUNIT_ASSERT_EQ(test, ack_agg.mean_ns, 0);
		if (i == 40 + 64 || i == 500)
			KUNIT_EXPECT_GT(test, ack_agg.mean_ns, 15000);
	}
	KUNIT_EXPECT_EQ(test, ack_agg.mean_ns, 0);
}

/* Add RTTs that jump by @jump_ns, where rates lag, up to the first that makes a mean. Return: their
 * number, at most 100.
 */
static u32 found_after(struct timely_ack_agg *ack_agg, u32 jump_ns)
{
	u32 times;

	for (times = 0; times < 100 && !ack_agg->mean_ns; times++) {
		u32 before_ns = ack_agg->probe_queue_ns;

		timely_ack_agg_add(ack_agg, &(struct timely_probe_sample){
			.now_ns = ack_agg->seen_ns + 100000,
			.probe_queue_ns = before_ns ? 0 : jump_ns,
			.before_ns = before_ns,
			.due_ns = 5 * DUE_NS,
			.rates_lag = true,
		});
	}
	return times;
}

/* In the path's first probe, the mean must be 24/8 of a fifth of the target delay. If it is less,
 * the RTTs of that probe do not count in the next. If it is enough, but of too few RTTs, they do.
 */
static void ack_agg__first_probe_if_rates_lag(struct kunit *test)
{
	u32 enough_ns = DUE_NS * 24 / 10;
	struct timely_ack_agg ack_agg = {};

	KUNIT_EXPECT_EQ(test, found_after(&ack_agg, enough_ns), 32);

	ack_agg = (struct timely_ack_agg){};
	KUNIT_EXPECT_EQ(test, found_after(&ack_agg, enough_ns - 1), 100);
	ack_agg.seen_ns += 60 * NSEC_PER_MSEC;
	KUNIT_EXPECT_EQ(test, found_after(&ack_agg, DUE_NS * 12 / 10), 100);

	ack_agg = (struct timely_ack_agg){
		.seen_ns = 1, .samples = 20, .jump_ns = enough_ns, .due_ns = DUE_NS,
	};
	ack_agg.seen_ns += 60 * NSEC_PER_MSEC;
	KUNIT_EXPECT_EQ(test, found_after(&ack_agg, enough_ns), 12);
}

/* RTTs jump by 13/10 of a fifth of the target delay, so that the mean is 13/8 of the fifth. This is
 * the least that counts if rates lag, and of 64 RTTs only.
 */
static void ack_agg__least_that_counts_if_rates_lag(struct kunit *test)
{
	u32 jump_ns = DUE_NS * 13 / 10, less, i;

	for (less = 0; less < 2; less++) {
		struct timely_ack_agg ack_agg = {};
		struct timely_probe_sample late = { .due_ns = 5 * DUE_NS, .rates_lag = true };

		for (i = 0; i < 1 + 64; i++) {
			KUNIT_EXPECT_EQ(test, ack_agg.mean_ns, 0);
			late.now_ns += i == 1 ? 60 * NSEC_PER_MSEC : 100000;
			late.before_ns = late.probe_queue_ns;
			late.probe_queue_ns = late.before_ns ? 0 : jump_ns - less;
			timely_ack_agg_add(&ack_agg, &late);
		}
		KUNIT_EXPECT_EQ(test, ack_agg.mean_ns, less ? 0 : jump_ns * 5 / 4);
	}
}

static void ack_agg__not_a_queue_that_fills_and_drains(struct kunit *test)
{
	struct timely_ack_agg ack_agg = {};
	u32 flow_ns = 0, i;

	/* The queue rises to 100 us and falls again within 50 RTTs. */
	for (i = 0; i < 1000; i++) {
		late(&ack_agg, 100000, &flow_ns, 4000 * (i % 50 < 25 ? i % 50 : 50 - i % 50));
		KUNIT_ASSERT_EQ(test, ack_agg.mean_ns, 0);
	}
}

/* A queue that a probe does not drain says nothing, however much it changes. */
static void ack_agg__not_a_queue_that_outlasts_the_probe(struct kunit *test)
{
	struct rtt_dice dice = { .state = 20150817 };
	struct timely_ack_agg ack_agg = {};
	u32 i, flow_ns = 1000000, next_ns = 0;

	late(&ack_agg, 67000000, &flow_ns, 1000000);
	for (i = 0; i < 1000; i++) {
		late(&ack_agg, 100000, &flow_ns, 1000000 + rtt_roll(&dice) % (4 * DUE_NS));
		KUNIT_ASSERT_EQ(test, ack_agg.mean_ns, 0);
	}
	/* In the next probe the queue drains. */
	late(&ack_agg, 67000000, &next_ns, 0);
	late_by_up_to(&ack_agg, 4 * DUE_NS, 100);
	KUNIT_EXPECT_GT(test, ack_agg.mean_ns, DUE_NS);
	KUNIT_EXPECT_LT(test, ack_agg.mean_ns, 3 * DUE_NS);
}

/* In the first probe the queue rises for the whole probe, and each RTT is much longer than the one
 * before. There is no queue in the second. With aggregation RTTs also rise by much, but fall again.
 */
static void ack_agg__not_a_queue_that_rises_in_the_first_probe(struct kunit *test)
{
	u32 falls, i;

	for (falls = 0; falls < 2; falls++) {
		struct timely_ack_agg ack_agg = {};
		u32 flow_ns = 5 * DUE_NS;

		late(&ack_agg, 67000000, &flow_ns, 5 * DUE_NS);
		for (i = 1; i < 10; i++)
			late(&ack_agg, 100000, &flow_ns,
			     5 * DUE_NS + (falls && i % 2 ? 0 : i * 3 * DUE_NS));
		KUNIT_EXPECT_EQ(test, ack_agg.mean_ns > 0, falls);
		late(&ack_agg, 67000000, &flow_ns, 0);
		KUNIT_EXPECT_EQ(test, ack_agg.mean_ns > 0, falls);
		KUNIT_EXPECT_EQ(test, ack_agg.samples > 1, falls);
	}
}

static void ack_agg__shows_in_flows_in_phase(struct kunit *test)
{
	static const u32 waits_ns[] = { 5000, 45000, 20000 };
	struct timely_ack_agg ack_agg = {};
	u32 i, flows_ns[3] = { 5000, 45000, 20000 };

	for (i = 0; i < 300; i++)
		late(&ack_agg, 50000, &flows_ns[i % 3], waits_ns[i % 3]);
	KUNIT_EXPECT_GT(test, ack_agg.mean_ns, DUE_NS);
	/* RTTs of different probes are not compared: they may differ by the queue. */
	ack_agg = (struct timely_ack_agg){ .seen_ns = SENT_NS };
	for (i = 0; i < 300; i++)
		late(&ack_agg, 67000000, &flows_ns[i % 3], waits_ns[i % 3]);
	KUNIT_EXPECT_EQ(test, ack_agg.mean_ns, 0);
}

static void ack_agg__ends(struct kunit *test)
{
	struct timely_ack_agg ack_agg = {};

	late_by_up_to(&ack_agg, 100000, 100);
	KUNIT_EXPECT_GT(test, ack_agg.mean_ns, 0);
	late_by_up_to(&ack_agg, 3000, 300);
	KUNIT_EXPECT_EQ(test, ack_agg.mean_ns, 0);
}

static void ack_agg__of_any_numbers(struct kunit *test)
{
	static const u32 values[] = { 0, 1, 1000000000, U32_MAX };
	struct timely_ack_agg ack_agg = {};
	u32 i;

	for (i = 0; i < 4 * 4 * 4 * 4; i++)
		timely_ack_agg_add(&ack_agg, &(struct timely_probe_sample){
			.now_ns = values[i % 4],
			.probe_queue_ns = values[i / 4 % 4],
			.before_ns = values[i / 16 % 4],
			.due_ns = values[i / 64],
		});
	KUNIT_EXPECT_LE(test, ack_agg.jump_ns, 1000000000);
	KUNIT_EXPECT_LE(test, ack_agg.due_ns, 1000000000);
	KUNIT_EXPECT_LE(test, ack_agg.mean_ns, 1250000000);
}

static struct kunit_case rtt_cases[] = {
	KUNIT_CASE(refuse__each_reason_by_itself),
	KUNIT_CASE(refuse__in_order),
	KUNIT_CASE(refuse__changes_nothing),
	KUNIT_CASE(refuse__a_doubtful_timestamp_despite_other_times),
	KUNIT_CASE(refuse__shorter_than_the_path_after_waiting),
	KUNIT_CASE(segment__ends_where_the_ack_does),
	KUNIT_CASE(segment__acked_in_parts_completes_once),
	KUNIT_CASE(segment__starts_as_scheduled_under_another_qdisc),
	KUNIT_CASE(segment__starts_at_its_departure),
	KUNIT_CASE(segment__at_the_wrap),
	KUNIT_CASE(sack__completes_a_segment_whose_end_is_known),
	KUNIT_CASE(sack__of_packets_within_a_segment_does_not),
	KUNIT_CASE(sack__of_an_overtaking_segment_counts_once),
	KUNIT_CASE(sack__packet_by_packet),
	KUNIT_CASE(serialization__each_segment_size),
	KUNIT_CASE(serialization__of_one_segment_only),
	KUNIT_CASE(serialization__of_what_was_completed_at_most),
	KUNIT_CASE(serialization__of_the_whole_segment),
	KUNIT_CASE(serialization__not_known),
	KUNIT_CASE(serialization__never_below_zero),
	KUNIT_CASE(tail__later_than_the_limit_is_refused),
	KUNIT_CASE(tail__of_forty_ms_is_refused_with_any_timestamp),
	KUNIT_CASE(tail__of_several_small_packets),
	KUNIT_CASE(bytes__of_packets_short_of_an_mss),
	KUNIT_CASE(bytes__of_a_hole_and_what_follows),
	KUNIT_CASE(bytes__one_at_least),
	KUNIT_CASE(bytes__when_the_count_of_packets_wraps),
	KUNIT_CASE(bytes__at_most_what_fits),
	KUNIT_CASE(bytes__of_refused_acks_are_not_lost),
	KUNIT_CASE(source__is_the_origin_of_the_timestamp),
	KUNIT_CASE(source__the_backlog_is_not_in_the_rtt),
	KUNIT_CASE(range__zero_is_an_rtt),
	KUNIT_CASE(range__ten_seconds_is_the_last),
	KUNIT_CASE(range__saturates_after_serialisation),
	KUNIT_CASE(connection__in_order),
	KUNIT_CASE(connection__stretched),
	KUNIT_CASE(connection__out_of_order),
	KUNIT_CASE(connection__with_losses),
	KUNIT_CASE(all__random_timestamps),
	KUNIT_CASE(ack_agg__is_nearly_half_of_the_delay),
	KUNIT_CASE(ack_agg__zero_up_to_the_target_delay),
	KUNIT_CASE(ack_agg__unknown_after_seven_rtts),
	KUNIT_CASE(ack_agg__found_later_if_rates_lag),
	KUNIT_CASE(ack_agg__first_probe_if_rates_lag),
	KUNIT_CASE(ack_agg__least_that_counts_if_rates_lag),
	KUNIT_CASE(ack_agg__not_a_queue_that_fills_and_drains),
	KUNIT_CASE(ack_agg__not_a_queue_that_outlasts_the_probe),
	KUNIT_CASE(ack_agg__not_a_queue_that_rises_in_the_first_probe),
	KUNIT_CASE(ack_agg__shows_in_flows_in_phase),
	KUNIT_CASE(ack_agg__ends),
	KUNIT_CASE(ack_agg__of_any_numbers),
	{}
};

static struct kunit_suite rtt_suite = {
	.name = "timely_rtt",
	.test_cases = rtt_cases,
};

kunit_test_suite(rtt_suite);
