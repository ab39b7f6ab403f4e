// SPDX-License-Identifier: GPL-2.0
/*
 * White-box tests of the qdisc. Its source is included in this file, and the tests control its
 * clock, its memory and its timer (qdisc_bench.h). Cases are named function__case, by the step in
 * the path of a packet.
 *
 * Packets have 1514 bytes with 1448 bytes of payload unless a test states otherwise. A round-robin
 * slot is two packets, and ten for a new flow.
 */
#include "qdisc_bench.h"

#define PACKET_BYTES	1514
#define MSS		1448
/* Slots of the wheel are 1024 ns wide: packets may be late by that much. */
#define SLOT_NS		1024
/* A rate that charges flows almost nothing and prevents the fast path. */
#define NEARLY_UNLIMITED (1ULL << 50)

#define EXPECT_AT(test, at_ns) do {					\
	KUNIT_EXPECT_GE(test, bench.now_ns, at_ns);			\
	KUNIT_EXPECT_LT(test, bench.now_ns, (at_ns) + SLOT_NS);		\
} while (0)

static struct packet plain(struct sock *sk)
{
	return (struct packet){ .sk = sk, .hash = 1 };
}

static struct packet timestamped(struct sock *sk, u64 tstamp)
{
	return (struct packet){ .sk = sk, .hash = 1, .tstamp = tstamp };
}

static u32 give_plain(struct kunit *test, struct sock *sk)
{
	struct packet p = plain(sk);

	return bench_give(test, &p);
}

static u32 give_timestamped(struct kunit *test, struct sock *sk, u64 tstamp)
{
	struct packet p = timestamped(sk, tstamp);

	return bench_give(test, &p);
}

/* Enqueue a packet with 1000 bytes of payload; its sequence number follows the one before. */
static u32 give_kilo(struct kunit *test, struct sock *sk, u32 nr)
{
	struct packet p = { .sk = sk, .len = 1066, .seq = nr * 1000, .hash = 1 };

	return bench_give(test, &p);
}

/* ---- timestamps ---- */

static void enqueue__waits_until_the_timestamp(struct kunit *test)
{
	struct sock *sk = bench_udp(0);

	give_timestamped(test, sk, START_NS + 100 * US);
	give_timestamped(test, sk, START_NS + 5 * MS);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench.q->throttled, 1);
	EXPECT_AUDIT(test);
	bench.now_ns = START_NS + 100 * US - 1;
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + 100 * US);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 5 * MS);
	EXPECT_DONE(test);
}

static void enqueue__timestamp_in_the_past(struct kunit *test)
{
	struct sock *sk = bench_udp(0);

	give_timestamped(test, sk, START_NS);
	give_timestamped(test, sk, START_NS - 9 * SECOND);
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.wrong_clock, 0);
}

static void enqueue__orders_by_timestamp(struct kunit *test)
{
	struct sock *sk = bench_udp(0);

	give_timestamped(test, sk, START_NS + 300 * US);
	give_timestamped(test, sk, START_NS + 100 * US);
	give_timestamped(test, sk, START_NS + 400 * US);
	give_timestamped(test, sk, START_NS + 200 * US);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 100 * US);
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	EXPECT_AT(test, START_NS + 200 * US);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, START_NS + 400 * US);
	EXPECT_DONE(test);
}

static void enqueue__equal_timestamps_keep_their_order(struct kunit *test)
{
	static const u8 at_us[][6] = {
		{ 200, 100, 100, 200, 100, 200 }, { 100, 200, 100, 100, 200, 100 },
	};
	static const u8 order[][6] = { { 2, 3, 5, 1, 4, 6 }, { 1, 3, 4, 6, 2, 5 } };
	struct sock *sk = bench_udp(0);
	u32 i, n;

	for (n = 0; n < 2; n++) {
		for (i = 0; i < 6; i++)
			give_timestamped(test, sk, bench.now_ns + at_us[n][i] * US);
		EXPECT_AUDIT(test);
		for (i = 0; i < 6; i++)
			KUNIT_EXPECT_EQ(test, bench_wait(), 6 * n + order[n][i]);
		EXPECT_DONE(test);
	}
}

static void enqueue__an_earlier_timestamp_moves_the_flow(struct kunit *test)
{
	struct sock *sk = bench_udp(0);

	give_timestamped(test, sk, START_NS + SECOND);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	give_timestamped(test, sk, START_NS + 10 * US);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 10 * US);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + SECOND);
}

static void enqueue__horizon_drops(struct kunit *test)
{
	struct sock *sk = bench_udp(0);

	KUNIT_EXPECT_EQ(test, give_timestamped(test, sk, START_NS + 10 * SECOND), 1);
	KUNIT_EXPECT_EQ(test, give_timestamped(test, sk, START_NS + 10 * SECOND + 1), 0);
	KUNIT_EXPECT_EQ(test, give_timestamped(test, sk, START_NS + 3600 * SECOND), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.horizon_drops, 2);
	KUNIT_EXPECT_EQ(test, bench.sch->qstats.drops, 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + 10 * SECOND);
	EXPECT_DONE(test);
}

static void enqueue__horizon_caps(struct kunit *test)
{
	struct sock *sk = bench_udp(0);

	must_change(test, TCA_TIMELY_HORIZON_DROP, 0, TCA_TIMELY_HORIZON, 1000);
	KUNIT_EXPECT_EQ(test, give_timestamped(test, sk, START_NS + 3600 * SECOND), 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.horizon_caps, 1);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + MS);
	EXPECT_DONE(test);
}

/* Times of clocks that packets are mistakenly timestamped with. */
static const u64 wrong_times[] = {
	1, 1000 * US, START_NS - 11 * SECOND, START_NS + 25 * 3600 * SECOND,
	1763724000 * SECOND, 1763724037 * SECOND, 1ULL << 62, 1ULL << 63, U64_MAX,
};

static void enqueue__wrong_clock_goes_at_once(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	struct sk_buff *skb;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(wrong_times); i++) {
		KUNIT_EXPECT_EQ(test, give_timestamped(test, sk, wrong_times[i]), i + 1);
		skb = bench_take_skb();
		KUNIT_ASSERT_NOT_NULL(test, skb);
		/* The device must not wait for the timestamp, either. */
		KUNIT_EXPECT_EQ(test, (u64)skb->tstamp, 0);
		kfree_skb(skb);
	}
	KUNIT_EXPECT_EQ(test, bench.q->stats.wrong_clock, i);
	KUNIT_EXPECT_EQ(test, bench.q->stats.wrong_clock_drops, 0);
	EXPECT_DONE(test);
}

static void enqueue__wrong_clock_drops(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	must_change(test, TCA_TIMELY_WRONG_CLOCK_DROP, 1);
	for (i = 0; i < ARRAY_SIZE(wrong_times); i++)
		KUNIT_EXPECT_EQ(test, give_timestamped(test, sk, wrong_times[i]), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.wrong_clock, i);
	KUNIT_EXPECT_EQ(test, bench.q->stats.wrong_clock_drops, i);
	KUNIT_EXPECT_EQ(test, bench.dropped, i);
	EXPECT_DONE(test);
}

/* Kernels that store the clock of a timestamp: the packets leave at their times, which the device
 * still finds in the clock of the packet.
 */
static void enqueue__converts_other_clocks(struct kunit *test)
{
	const u64 real_ns = ktime_to_ns(ktime_mono_to_real(0));
	const u64 tai_ns = ktime_to_ns(ktime_mono_to_any(0, TK_OFFS_TAI));
	struct packet p = plain(bench_udp(0));

	#ifndef HAVE_SKB_TSTAMP_TYPE
	kunit_skip(test, "timestamps have no type");
#endif
	p.real = true;
	p.tstamp = real_ns + START_NS + MS;
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 1);
	p.real = false;
	p.tai = true;
	p.tstamp = tai_ns + START_NS + 2 * MS;
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 2 * MS);
	/* Beyond the horizon, and in the past. */
	p.tstamp = tai_ns + bench.now_ns + 11 * SECOND;
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.horizon_drops, 1);
	p.tstamp = tai_ns + bench.now_ns - 5 * SECOND;
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 4);
	KUNIT_EXPECT_EQ(test, bench_take(), 4);
	KUNIT_EXPECT_EQ(test, bench.q->stats.wrong_clock, 0);
	/* A BPF program has set a time of CLOCK_MONOTONIC, but no type. */
	p.tai = false;
	p.real = true;
	p.tstamp = bench.now_ns + MS;
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 5);
	p.tstamp = bench.now_ns + MS;
	KUNIT_EXPECT_EQ(test, bench_wait(), 5);
	EXPECT_AT(test, p.tstamp);
	EXPECT_DONE(test);
}

/* Just after the machine was started. */
static void enqueue__timestamps_near_time_zero(struct kunit *test)
{
	struct sock *sk = bench_udp(0);

	bench_destroy();
	bench.now_ns = 5 * MS;
	KUNIT_ASSERT_TRUE(test, bench_make());
	give_timestamped(test, sk, 6 * MS);
	give_timestamped(test, sk, 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.wrong_clock, 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, 5 * MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, 6 * MS);
}

/* ---- limits ---- */

static void enqueue__flow_limit(struct kunit *test)
{
	struct sock *a = bench_udp(0), *b = bench_udp(1);

	must_change(test, TCA_TIMELY_FLOW_LIMIT, 3);
	KUNIT_EXPECT_EQ(test, give_plain(test, a), 1);
	KUNIT_EXPECT_EQ(test, give_plain(test, a), 2);
	KUNIT_EXPECT_EQ(test, give_plain(test, a), 3);
	KUNIT_EXPECT_EQ(test, give_plain(test, a), 0);
	KUNIT_EXPECT_EQ(test, give_plain(test, b), 5);
	KUNIT_EXPECT_EQ(test, bench.q->stats.flows_plimit, 1);
	EXPECT_AUDIT(test);
	bench_take();
	KUNIT_EXPECT_EQ(test, give_plain(test, a), 6);
}

static void enqueue__band_limit(struct kunit *test)
{
	struct packet p = plain(bench_udp(0));
	u32 i;

	must_change(test, TCA_TIMELY_LIMIT, 4);
	for (i = 1; i <= 4; i++) {
		p.sk = bench_udp(i);
		KUNIT_EXPECT_EQ(test, bench_give(test, &p), i);
	}
	p.sk = bench_udp(5);
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.band_drops[1], 1);
	/* The other bands have their own limits. */
	p.priority = TC_PRIO_CONTROL;
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 6);
	p.priority = TC_PRIO_BULK;
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 7);
	EXPECT_AUDIT(test);
}

static void enqueue__priomap(struct kunit *test)
{
	static const u8 bands[] = TIMELY_QDISC_DEFAULT_PRIOMAP;
	struct packet p = plain(bench_udp(0));
	u32 i, want[TIMELY_BANDS] = {};

	for (i = 0; i <= 2 * TC_PRIO_MAX; i++) {
		p.priority = i;
		KUNIT_EXPECT_NE(test, bench_give(test, &p), 0);
		want[bands[i & TC_PRIO_MAX]]++;
		KUNIT_EXPECT_EQ(test, bench.q->bands[0].packets, want[0]);
		KUNIT_EXPECT_EQ(test, bench.q->bands[1].packets, want[1]);
		KUNIT_EXPECT_EQ(test, bench.q->bands[2].packets, want[2]);
	}
	EXPECT_AUDIT(test);
	while (bench_take())
		;
	EXPECT_DONE(test);
}

/* ---- round robin ---- */

static void dequeue__slots_by_quantum(struct kunit *test)
{
	static const u8 round[] = { 10, 10, 2, 2, 2, 2, 1, 1 };
	u32 i, n, marks[2] = { 0, 15 };

	for (i = 0; i < 30; i++)
		give_plain(test, bench_udp(i / 15));
	for (i = 0; i < ARRAY_SIZE(round); i++)
		for (n = 0; n < round[i]; n++)
			KUNIT_EXPECT_EQ(test, bench_take(), ++marks[i % 2]);
	EXPECT_DONE(test);
}

static void dequeue__new_flows_first(struct kunit *test)
{
	u32 i;

	for (i = 0; i < 24; i++)
		give_plain(test, bench_udp(i / 12));
	for (i = 0; i < 21; i++)
		bench_take();
	/* Both have had their first slot, and one of them is in its second. */
	give_plain(test, bench_udp(2));
	KUNIT_EXPECT_EQ(test, bench_take(), 25);
	KUNIT_EXPECT_EQ(test, bench_take(), 12);
	KUNIT_EXPECT_EQ(test, bench_take(), 23);
	KUNIT_EXPECT_EQ(test, bench_take(), 24);
	EXPECT_DONE(test);
}

/* A flow that returns with one packet each time waits until the old flows have been served. */
static void dequeue__returning_flow_waits_for_old_flows(struct kunit *test)
{
	struct packet p = { .sk = bench_udp(5), .hash = 1, .len = 100 };
	struct tq_flow *f;
	u32 i, again = 0;

	must_change(test, TCA_TIMELY_INITIAL_QUANTUM, PACKET_BYTES);
	for (i = 0; i < 5 * 40; i++)
		give_plain(test, bench_udp(i % 5));
	/* They are old flows now. */
	for (i = 0; i < 15; i++)
		bench_take();
	for (i = 0; i < 100; i++) {
		f = bench_flow(p.sk);
		if (!f || f->state == TQ_IDLE)
			bench_give(test, &p);
		again += bench_take() > 5 * 40;
	}
	/* Once per round of ten packets. */
	KUNIT_EXPECT_LE(test, again, 12);
	KUNIT_EXPECT_GE(test, again, 8);
	EXPECT_AUDIT(test);
}

static void dequeue__bands_by_weight(struct kunit *test)
{
	static const s32 weights[TIMELY_BANDS] = {
		33 * PACKET_BYTES, 22 * PACKET_BYTES, 11 * PACKET_BYTES
	};
	static const u32 priorities[TIMELY_BANDS] = {
		TC_PRIO_CONTROL, TC_PRIO_BESTEFFORT, TC_PRIO_BULK
	};
	struct sk_buff *attrs = alloc_skb(OPTION_BYTES, GFP_KERNEL);
	u32 i, band, left[TIMELY_BANDS] = {};
	struct nlattr *nest;
	struct packet p;

	KUNIT_ASSERT_NOT_NULL(test, attrs);
	nest = nla_nest_start_noflag(attrs, TCA_OPTIONS);
	nla_put(attrs, TCA_TIMELY_WEIGHTS, sizeof(weights), weights);
	nla_nest_end(attrs, nest);
	KUNIT_EXPECT_EQ(test, bench_change_attrs(attrs), 0);
	kfree_skb(attrs);
	must_change(test, TCA_TIMELY_FLOW_LIMIT, 1000);
	for (i = 0; i < 3 * 300; i++) {
		p = plain(bench_udp(i % 3));
		p.priority = priorities[i % 3];
		bench_give(test, &p);
	}
	for (i = 0; i < 5 * 66; i++) {
		band = (bench_take() - 1) % 3;
		left[band]++;
	}
	KUNIT_EXPECT_EQ(test, left[0], 5 * 33);
	KUNIT_EXPECT_EQ(test, left[1], 5 * 22);
	KUNIT_EXPECT_EQ(test, left[2], 5 * 11);
	/* The share of an empty band is not saved. */
	while (bench.q->bands[0].packets)
		bench_take();
	while (bench_take())
		;
	EXPECT_DONE(test);
}

/* ---- pacing as in fq ---- */

static void charge__by_the_sockets_rate(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	/* One packet per ms; ten at once at the start. */
	sk->sk_pacing_rate = PACKET_BYTES * 1000;
	for (i = 0; i < 90; i++)
		give_plain(test, sk);
	for (i = 1; i <= 10; i++)
		KUNIT_EXPECT_EQ(test, bench_take(), i);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	for (; i <= 90; i += 2) {
		/* A slot is two packets, which are charged after the second. */
		KUNIT_EXPECT_EQ(test, bench_wait(), i);
		EXPECT_AT(test, START_NS + (i - 9) * MS);
		KUNIT_EXPECT_EQ(test, bench_take(), i + 1);
		KUNIT_EXPECT_EQ(test, bench_take(), 0);
	}
	EXPECT_DONE(test);
}

/* The credit is used up completely before a packet is charged. */
static void charge__the_last_of_the_credit(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	must_change(test, TCA_TIMELY_INITIAL_QUANTUM, 2 * PACKET_BYTES + 1);
	sk->sk_pacing_rate = PACKET_BYTES * 1000;
	for (i = 1; i <= 4; i++)
		give_plain(test, sk);
	for (i = 1; i <= 3; i++)
		KUNIT_EXPECT_EQ(test, bench_take(), i);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	EXPECT_AT(test, START_NS + 2 * MS);
}

static void charge__low_rates_packet_by_packet(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	/* 100 ms per packet: below 550 kbit/s. */
	sk->sk_pacing_rate = PACKET_BYTES * 10;
	for (i = 1; i <= 20; i++)
		give_plain(test, sk);
	for (i = 1; i <= 20; i++) {
		KUNIT_EXPECT_EQ(test, bench_wait(), i);
		EXPECT_AT(test, START_NS + (i - 1) * 100 * MS);
	}
	/* Without the threshold, the rate is treated like any other. */
	must_change(test, TCA_TIMELY_LOW_RATE_THRESHOLD, 0);
	bench.now_ns += SECOND;
	sk = bench_udp(1);
	sk->sk_pacing_rate = PACKET_BYTES * 10;
	for (i = 0; i < 10; i++)
		give_plain(test, sk);
	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, bench_take(), 21 + i);
	EXPECT_DONE(test);
}

static void charge__maxrate(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	must_change(test, TCA_TIMELY_MAXRATE, PACKET_BYTES * 1000);
	/* Packets with timestamps, too. */
	for (i = 0; i < 50; i++)
		give_timestamped(test, sk, START_NS - 1);
	for (i = 1; i <= 50; i++) {
		KUNIT_EXPECT_EQ(test, bench_wait(), i);
		EXPECT_AT(test, START_NS + (i - 1) * MS);
	}
	/* The lower rate counts: 20 packets after the initial credit. */
	sk = bench_udp(1);
	sk->sk_pacing_rate = PACKET_BYTES * 2000;
	bench.now_ns = START_NS + SECOND;
	for (i = 0; i < 30; i++)
		give_plain(test, sk);
	for (i = 0; i < 30; i++)
		KUNIT_EXPECT_NE(test, bench_wait(), 0);
	EXPECT_AT(test, START_NS + SECOND + 20 * MS);
	EXPECT_DONE(test);
}

static void charge__makes_good_a_late_timer(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	sk->sk_pacing_rate = PACKET_BYTES * 10;
	for (i = 0; i < 5; i++)
		give_plain(test, sk);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	/* 30 ms late: the next packet is on time again. */
	bench.now_ns = START_NS + 130 * MS;
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, START_NS + 200 * MS);
	/* 80 ms late: only half of the packet's transmission time is made up for. */
	bench.now_ns = START_NS + 380 * MS;
	KUNIT_EXPECT_EQ(test, bench_take(), 4);
	KUNIT_EXPECT_EQ(test, bench_wait(), 5);
	EXPECT_AT(test, START_NS + 430 * MS);
}

static void charge__at_most_a_second(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	for (i = 0; i < 2; i++) {
		sk->sk_pacing_rate = i;
		bench.now_ns = START_NS + (i + 1) * 10 * SECOND;
		give_plain(test, sk);
		give_plain(test, sk);
		KUNIT_EXPECT_NE(test, bench_wait(), 0);
		KUNIT_EXPECT_NE(test, bench_wait(), 0);
		EXPECT_AT(test, START_NS + (i + 1) * 10 * SECOND + SECOND);
	}
	KUNIT_EXPECT_GE(test, bench.q->stats.pkts_too_long, 3);
	EXPECT_DONE(test);
}

static void charge__no_pacing(struct kunit *test)
{
	struct sock *sk = bench_udp(0), *tcp = bench_tcp(1);
	u32 i;

	must_change(test, TCA_TIMELY_PACING, 0);
	sk->sk_pacing_rate = 1;
	for (i = 1; i <= 20; i++)
		give_plain(test, sk);
	give_plain(test, tcp);
	for (i = 1; i <= 20; i++)
		KUNIT_EXPECT_NE(test, bench_take(), 0);
	KUNIT_EXPECT_NE(test, sk->sk_pacing_status, SK_PACING_FQ);
	KUNIT_EXPECT_NE(test, tcp->sk_pacing_status, SK_PACING_FQ);
	/* Timestamps count nevertheless. */
	give_timestamped(test, sk, START_NS + MS);
	KUNIT_EXPECT_NE(test, bench_wait(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 22);
	EXPECT_AT(test, START_NS + MS);
}

/* Pacing is turned off while packets wait: they wait for what was charged before. */
static void charge__pacing_switched_off(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	sk->sk_pacing_rate = PACKET_BYTES * 10;
	for (i = 0; i < 10; i++)
		give_plain(test, sk);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	must_change(test, TCA_TIMELY_PACING, 0);
	/* The timer was set for the old rate, so the qdisc must run. */
	KUNIT_EXPECT_EQ(test, bench.woken, 1);
	for (i = 2; i <= 10; i++)
		KUNIT_EXPECT_EQ(test, bench_wait(), i);
	KUNIT_EXPECT_LT(test, bench.now_ns, START_NS + 100 * MS + SLOT_NS);
	EXPECT_DONE(test);
}

static void start__refills_the_credit(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	struct tq_flow *f;
	u32 i;

	give_timestamped(test, bench_udp(1), START_NS + 9 * SECOND);
	for (i = 0; i < 4; i++) {
		give_plain(test, sk);
		KUNIT_EXPECT_NE(test, bench_take(), 0);
		f = bench_flow(sk);
		KUNIT_ASSERT_NOT_NULL(test, f);
		/* In its next slot the qdisc finds that the flow is empty. */
		KUNIT_EXPECT_EQ(test, bench_take(), 0);
		KUNIT_EXPECT_EQ(test, f->state, TQ_IDLE);
		f->credit = i < 3 ? -100 : 5 * PACKET_BYTES;
		bench.now_ns += i ? 41 * MS : 39 * MS;
		give_plain(test, sk);
		/* The credit is refilled, never reduced. */
		KUNIT_EXPECT_EQ(test, f->credit, !i ? -100 : i < 3 ? 2 * PACKET_BYTES :
						 5 * PACKET_BYTES);
		bench_take();
	}
}

/* ---- ECN ---- */

static u8 take_tos(struct kunit *test)
{
	struct sk_buff *skb = bench_take_skb();
	u8 tos;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	if (skb->protocol == htons(ETH_P_IP)) {
		tos = ip_hdr(skb)->tos;
		KUNIT_EXPECT_EQ(test, ip_fast_csum((u8 *)ip_hdr(skb), ip_hdr(skb)->ihl), 0);
	} else {
		tos = ipv6_get_dsfield(ipv6_hdr(skb));
	}
	kfree_skb(skb);
	return tos;
}

static void send__marks_by_queueing_time(struct kunit *test)
{
	struct packet p = plain(bench_udp(0));
	u32 i;

	must_change(test, TCA_TIMELY_CE_THRESHOLD, 100);
	for (i = 0; i < 6; i++) {
		p.tos = i % 3 ? INET_ECN_ECT_0 | 0x20 : 0x20;
		p.v6 = i % 3 == 2;
		bench_give(test, &p);
	}
	bench.now_ns += 100 * US;
	KUNIT_EXPECT_EQ(test, take_tos(test), 0x20);
	KUNIT_EXPECT_EQ(test, take_tos(test), 0x22);
	KUNIT_EXPECT_EQ(test, take_tos(test), 0x22);
	KUNIT_EXPECT_EQ(test, bench.q->stats.ce_mark, 0);
	bench.now_ns += 1;
	KUNIT_EXPECT_EQ(test, take_tos(test), 0x20);
	KUNIT_EXPECT_EQ(test, take_tos(test), 0x23);
	KUNIT_EXPECT_EQ(test, take_tos(test), 0x23);
	KUNIT_EXPECT_EQ(test, bench.q->stats.ce_mark, 2);
}

/* Waiting until a packet's timestamp does not count as queueing. */
static void send__marks_by_the_time_past_due(struct kunit *test)
{
	struct packet p = timestamped(bench_udp(0), START_NS + MS);

	must_change(test, TCA_TIMELY_CE_THRESHOLD, 100);
	p.tos = INET_ECN_ECT_1;
	bench_give(test, &p);
	bench.now_ns = START_NS + MS + 100 * US;
	KUNIT_EXPECT_EQ(test, take_tos(test), INET_ECN_ECT_1);
}

/* ---- flows of packets ---- */

static void classify__by_socket(struct kunit *test)
{
	give_plain(test, bench_udp(0));
	give_plain(test, bench_udp(1));
	give_plain(test, bench_udp(0));
	KUNIT_EXPECT_EQ(test, bench.q->flows, 2);
	KUNIT_EXPECT_EQ(test, bench_flow(bench.sk[0])->qlen, 2);
	KUNIT_EXPECT_EQ(test, bench.sk[0]->sk_pacing_status, SK_PACING_FQ);
	EXPECT_AUDIT(test);
}

static void classify__by_hash_without_a_socket(struct kunit *test)
{
	struct packet p = {};
	u32 i;

	must_change(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED);
	for (i = 0; i < 100; i++) {
		p.hash = i % 10 + 1;
		bench_give(test, &p);
	}
	KUNIT_EXPECT_EQ(test, bench.q->flows, 10);
	/* Bits beyond the mask are ignored. */
	p.hash = 1024 + 3;
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 10);
	must_change(test, TCA_TIMELY_ORPHAN_MASK, 0);
	for (i = 0; i < 5; i++) {
		p.hash = i + 1;
		bench_give(test, &p);
	}
	KUNIT_EXPECT_EQ(test, bench.q->flows, 11);
	EXPECT_AUDIT(test);
	while (bench_wait())
		;
	EXPECT_DONE(test);
}

static void classify__sockets_that_are_no_connection(struct kunit *test)
{
	static const u8 states[] = { TCP_LISTEN, TCP_NEW_SYN_RECV, TCP_TIME_WAIT };
	struct sock *sk = bench_udp(0);
	u32 i;

	must_change(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED);
	for (i = 0; i < ARRAY_SIZE(states); i++) {
		sk->sk_state = states[i];
		give_plain(test, sk);
		/* The packet is not charged to the socket any more. */
		KUNIT_EXPECT_EQ(test, bench.charged, 0);
		KUNIT_EXPECT_EQ(test, bench.q->flows, 1);
		KUNIT_EXPECT_NULL(test, bench_flow(sk));
	}
	/* Unconnected: a flow by its headers, but charged to its socket. */
	sk->sk_state = TCP_CLOSE;
	sk->sk_max_pacing_rate = ~0UL;
	give_plain(test, sk);
	KUNIT_EXPECT_EQ(test, bench.charged, 1);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 1);
	EXPECT_AUDIT(test);
}

/* Packets of others must not wait behind packets of a socket that has set its own rate. */
static void classify__rate_of_an_unconnected_socket(struct kunit *test)
{
	struct sock *slow = bench_udp(0), *other = bench_udp(1);
	struct packet p = { .sk = slow, .hash = 1, .udp = true };
	u32 i;

	must_change(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED);
	slow->sk_state = TCP_CLOSE;
	slow->sk_max_pacing_rate = 1;
	slow->sk_pacing_rate = 1;
	other->sk_state = TCP_CLOSE;
	other->sk_max_pacing_rate = ~0UL;
	for (i = 0; i < 3; i++)
		bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	/* The same hash of the headers. */
	give_plain(test, NULL);
	give_plain(test, other);
	KUNIT_EXPECT_EQ(test, bench_take(), 4);
	KUNIT_EXPECT_EQ(test, bench_take(), 5);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 2);
	KUNIT_EXPECT_NOT_NULL(test, bench_flow(slow));
	/* Another destination, the same rate. */
	p.hash = 2;
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 2);
	for (i = 1; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, bench_wait(), i == 3 ? 6 : i + 1);
		EXPECT_AT(test, START_NS + i * SECOND);
	}
	EXPECT_DONE(test);
}

/* The kernel keeps the rate of a UDP socket whose limit was raised. In a flow of the hash neither
 * this rate nor that between sub-segments may delay packets of others.
 */
static void classify__rate_without_a_limit(struct kunit *test)
{
	struct packet p = { .sk = bench_udp(0), .hash = 1, .udp = true, .gso = 10 * MSS };
	u32 i, stamps;

	p.sk->sk_state = TCP_CLOSE;
	p.sk->sk_max_pacing_rate = ~0UL;
	p.sk->sk_pacing_rate = 1;
	must_change(test, TCA_TIMELY_SPLIT, 1500);
	for (stamps = 0; stamps < 2; stamps++) {
		p.tstamp = stamps ? bench.now_ns : 0;
		bench_give(test, &p);
		bench_give(test, &p);
		give_plain(test, NULL);
		for (i = 0; i < 21; i++)
			KUNIT_EXPECT_EQ(test, bench_take(), 3 * stamps + 1 + i / 10);
		KUNIT_EXPECT_NULL(test, bench_flow(p.sk));
		EXPECT_DONE(test);
	}
}

static void classify__memory_of_another_socket(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	sk->sk_pacing_rate = PACKET_BYTES * 10;
	for (i = 0; i < 3; i++)
		give_plain(test, sk);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_flow(sk)->state, TQ_THROTTLED);
	/* Another socket at the same address gets neither the old credit nor the old pacing time.
	 */
	sk->sk_hash++;
	sk->sk_pacing_rate = ~0UL;
	sk->sk_pacing_status = SK_PACING_NONE;
	give_plain(test, sk);
	KUNIT_EXPECT_EQ(test, bench_flow(sk)->credit, 10 * PACKET_BYTES);
	KUNIT_EXPECT_EQ(test, sk->sk_pacing_status, SK_PACING_FQ);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	KUNIT_EXPECT_EQ(test, bench_take(), 3);
	KUNIT_EXPECT_EQ(test, bench_take(), 4);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 1);
	EXPECT_DONE(test);
}

static void classify__fast_path(struct kunit *test)
{
	struct sock *tcp = bench_tcp(0), *udp = bench_sock(1, SOCK_DGRAM);
	u32 i;

	KUNIT_EXPECT_EQ(test, give_plain(test, tcp), 1);
	KUNIT_EXPECT_EQ(test, give_plain(test, udp), 2);
	KUNIT_EXPECT_EQ(test, give_plain(test, NULL), 3);
	KUNIT_EXPECT_EQ(test, bench.q->stats.fastpath_packets, 3);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 0);
	KUNIT_EXPECT_EQ(test, tcp->sk_pacing_status, SK_PACING_FQ);
	EXPECT_AUDIT(test);
	/* Only a limited number. */
	for (i = 4; i <= 20; i++)
		KUNIT_EXPECT_EQ(test, give_plain(test, tcp), i);
	KUNIT_EXPECT_EQ(test, bench.q->stats.fastpath_packets, 8);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 1);
	for (i = 1; i <= 20; i++)
		KUNIT_EXPECT_EQ(test, bench_take(), i);
	EXPECT_DONE(test);
}

static void classify__fast_path_is_not_for_all(struct kunit *test)
{
	struct sock *tcp = bench_tcp(0), *limited = bench_udp(1);

	give_timestamped(test, tcp, START_NS + MS);
	give_plain(test, limited);
	KUNIT_EXPECT_EQ(test, bench.q->stats.fastpath_packets, 0);
	/* A flow has packets that may leave: it is served first. */
	give_plain(test, bench_tcp(2));
	KUNIT_EXPECT_EQ(test, bench.q->stats.fastpath_packets, 0);
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	KUNIT_EXPECT_EQ(test, bench_take(), 3);
	bench_take();
	/* The remaining flows wait for their times. */
	give_plain(test, bench_tcp(2));
	KUNIT_EXPECT_EQ(test, bench.q->stats.fastpath_packets, 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 4);
	/* The flow is due. */
	bench.now_ns = START_NS + MS + SLOT_NS;
	give_plain(test, bench_tcp(2));
	KUNIT_EXPECT_EQ(test, bench.q->stats.fastpath_packets, 1);
	EXPECT_AUDIT(test);
	must_change(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED);
	while (bench_take())
		;
	bench.now_ns += MS;
	give_plain(test, bench_tcp(2));
	KUNIT_EXPECT_EQ(test, bench.q->stats.fastpath_packets, 1);
}

static void classify__a_flows_packets_are_not_overtaken(struct kunit *test)
{
	struct sock *tcp = bench_tcp(0);

	give_timestamped(test, tcp, START_NS + 10 * US);
	bench_take();
	bench.now_ns += 11 * US + SLOT_NS;
	give_plain(test, tcp);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
}

static void gc__forgets_idle_flows(struct kunit *test)
{
	struct packet p = {};
	u32 i;

	bench_anew(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED, TCA_TIMELY_BUCKETS_LOG, 6,
		   TCA_TIMELY_ORPHAN_MASK, U32_MAX);
	for (i = 1; i <= 50; i++) {
		p.hash = i;
		bench_give(test, &p);
	}
	while (bench_wait())
		;
	/* A flow that still has a packet. */
	give_timestamped(test, NULL, bench.now_ns + 9 * SECOND);
	bench.now_ns += 2900 * MS;
	for (; i <= 60; i++) {
		p.hash = i;
		bench_give(test, &p);
	}
	KUNIT_EXPECT_EQ(test, bench.q->stats.gc_flows, 0);
	while (bench_take())
		;
	bench.now_ns += 3100 * MS;
	for (; i <= 300; i++) {
		p.hash = i;
		bench_give(test, &p);
		bench_take();
	}
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->stats.gc_flows, 59);
	KUNIT_EXPECT_EQ(test, bench_wait(), 51);
	EXPECT_DONE(test);
}

/* ---- the table ---- */

static void give_flows(struct kunit *test, u32 first, u32 last)
{
	struct packet p = {};

	for (p.hash = first; p.hash <= last; p.hash++)
		KUNIT_ASSERT_NE(test, bench_give(test, &p), 0);
}

/* More flows than the table was made for, all with a packet. */
static void grow__keeps_every_flow(struct kunit *test)
{
	u32 i, flows = 3000;

	bench_anew(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED, TCA_TIMELY_BUCKETS_LOG, 1,
		   TCA_TIMELY_ORPHAN_MASK, U32_MAX);
	for (i = 1; i <= flows; i += 100) {
		give_flows(test, i, i + 99);
		EXPECT_AUDIT(test);
	}
	KUNIT_EXPECT_EQ(test, bench.q->flows, flows);
	KUNIT_EXPECT_EQ(test, bench.q->table.buckets, flows);
	/* Each flow is found again. */
	give_flows(test, 1, flows);
	KUNIT_EXPECT_EQ(test, bench.q->flows, flows);
	EXPECT_AUDIT(test);
	for (i = 0; i < 2 * flows; i++)
		KUNIT_ASSERT_NE(test, bench_wait(), 0);
	EXPECT_DONE(test);
}

static void grow__without_memory(struct kunit *test)
{
	u32 page = PAGE_SIZE / sizeof(void *);

	bench_anew(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED, TCA_TIMELY_BUCKETS_LOG, 1,
		   TCA_TIMELY_ORPHAN_MASK, U32_MAX);
	bench.no_pages = true;
	give_flows(test, 1, page + 100);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->table.buckets, page);
	KUNIT_EXPECT_EQ(test, bench.q->flows, page + 100);
	/* Later the table grows again, by one bucket with each new flow. */
	bench.no_pages = false;
	give_flows(test, page + 101, page + 200);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->table.buckets, page + 100);
	KUNIT_EXPECT_EQ(test, bench.q->flows, page + 200);
}

static void grow__by_a_change(struct kunit *test)
{
	u32 log;

	bench_anew(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED, TCA_TIMELY_BUCKETS_LOG, 1,
		   TCA_TIMELY_ORPHAN_MASK, U32_MAX);
	give_flows(test, 1, 100);
	for (log = 12; log; log--) {
		KUNIT_EXPECT_EQ(test, bench_change(test, TCA_TIMELY_BUCKETS_LOG, log), 0);
		EXPECT_AUDIT(test);
		KUNIT_EXPECT_GE(test, bench.q->table.buckets, 1U << log);
		give_flows(test, 1, 100);
		KUNIT_EXPECT_EQ(test, bench.q->flows, 100);
	}
}

/* Buckets are merged one by one, down to the last one. */
static void merge__keeps_every_flow(struct kunit *test)
{
	u32 flows = 1200;

	bench_anew(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED, TCA_TIMELY_BUCKETS_LOG, 1,
		   TCA_TIMELY_ORPHAN_MASK, U32_MAX);
	give_flows(test, 1, flows);
	while (bench.q->table.buckets > 1) {
		tq_table_merge(&bench.q->table, 0);
		EXPECT_AUDIT(test);
	}
	KUNIT_EXPECT_EQ(test, bench.q->table.half, 1);
	KUNIT_EXPECT_EQ(test, bench_pages(), 1);
	/* Buckets are split again. */
	give_flows(test, flows + 1, 2 * flows);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 2 * flows);
	KUNIT_EXPECT_EQ(test, bench.q->table.buckets, 1 + flows);
	while (bench_wait())
		;
	EXPECT_DONE(test);
}

/* ---- freeing idle flows ---- */

static void reap__frees_flows_and_buckets(struct kunit *test)
{
	bench_anew(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED, TCA_TIMELY_BUCKETS_LOG, 6,
		   TCA_TIMELY_ORPHAN_MASK, U32_MAX);
	KUNIT_EXPECT_EQ(test, bench.reap, 0);
	give_flows(test, 1, 5000);
	KUNIT_EXPECT_EQ(test, bench.reap, 1);
	KUNIT_EXPECT_EQ(test, bench.q->table.buckets, 5000);
	while (bench_wait())
		;
	bench_reap(SECOND);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 5000);
	bench_reap(SECOND);
	EXPECT_AUDIT(test);
	/* Flows are freed within seven seconds. */
	bench_reap(5 * SECOND);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.gc_flows, 5000);
	KUNIT_EXPECT_EQ(test, bench.q->table.buckets, 64);
	KUNIT_EXPECT_EQ(test, bench_pages(), 1);
	/* The work does not run while there is nothing to free, and runs when there is. */
	KUNIT_EXPECT_FALSE(test, bench.q->reaping);
	bench.reap = 0;
	give_flows(test, 1, 2);
	KUNIT_EXPECT_EQ(test, bench.reap, 1);
	EXPECT_AUDIT(test);
}

/* Flows become idle one after the other, and the table shrinks meanwhile: buckets are merged with
 * buckets that have already been searched.
 */
static void reap__in_time(struct kunit *test)
{
	u32 i, each = 500;

	bench_anew(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED, TCA_TIMELY_BUCKETS_LOG, 1,
		   TCA_TIMELY_ORPHAN_MASK, U32_MAX);
	for (i = 0; i < 28; i++) {
		give_flows(test, 1 + i * each, (i + 1) * each);
		while (bench_wait())
			;
		bench.now_ns += 100 * MS;
	}
	bench_reap(6 * SECOND);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 0);
	KUNIT_EXPECT_EQ(test, bench.q->table.buckets, 2);
}

static void reap__leaves_flows_with_packets(struct kunit *test)
{
	struct sock *sk = bench_udp(0);

	give_timestamped(test, sk, START_NS + 9 * SECOND);
	give_plain(test, bench_udp(1));
	bench_reap(8 * SECOND);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	bench_reap(8 * SECOND);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 0);
	EXPECT_DONE(test);
}

/* The last packet has left, but the qdisc was not asked for another one since. */
static void reap__frees_flows_in_turn(struct kunit *test)
{
	give_plain(test, bench_udp(0));
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench.q->ready, 1);
	bench_reap(SECOND);
	KUNIT_EXPECT_EQ(test, bench.q->ready, 0);
	EXPECT_AUDIT(test);
	bench_reap(6 * SECOND);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 0);
	EXPECT_DONE(test);
}

/* The reference to the flow entry of a congestion control that has left is released at once. */
static void reap__puts_closed_entries(struct kunit *test)
{
	struct timely_flow *entry;
	struct sock *sk;

	sk = bench_recorded(test, 0, 10000000);
	give_kilo(test, sk, 0);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	entry = bench.entry[0];
	KUNIT_ASSERT_EQ(test, refcount_read(&entry->ref), 2);
	bench_reap(SECOND);
	KUNIT_EXPECT_EQ(test, refcount_read(&entry->ref), 2);
	entry->closed = true;
	bench_reap(SECOND);
	KUNIT_EXPECT_EQ(test, refcount_read(&entry->ref), 1);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 1);
	EXPECT_AUDIT(test);
	bench_reap(4 * SECOND);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 0);
}

/* An idle flow releases its flow entry; the congestion control has its own reference. */
static void reap__puts_entries_of_idle_flows(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 10000000);

	give_kilo(test, sk, 0);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	bench_reap(6 * SECOND);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&bench.entry[0]->ref), 1);
	KUNIT_EXPECT_NULL(test, bench.entry[0]->notifier);
	give_kilo(test, sk, 1);
	KUNIT_EXPECT_EQ(test, refcount_read(&bench.entry[0]->ref), 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_DONE(test);
}

/* Without a budget new flows share queues, which pace by timestamps; old flows keep their queues.
 */
static void budget__flows_share_queues(struct kunit *test)
{
	struct timely_budget_status before, after;
	struct sock *sk = bench_udp(0);
	u32 i;

	timely_budget_status(&init_net, TIMELY_BUDGET_queues, &before);
	give_plain(test, sk);
	timely_budget_status(&init_net, TIMELY_BUDGET_queues, &after);
	KUNIT_EXPECT_EQ(test, after.used, before.used + 1);
	bench.no_budget = true;
	give_plain(test, sk);
	KUNIT_EXPECT_EQ(test, bench.q->stats.shared_packets, 0);
	for (i = 1; i < 6; i++)
		give_timestamped(test, bench_udp(i), START_NS + (10 - i) * MS);
	KUNIT_EXPECT_EQ(test, bench.q->stats.shared_packets, 5);
	/* All have the same hash. */
	KUNIT_EXPECT_EQ(test, bench.q->flows, 2);
	timely_budget_status(&init_net, TIMELY_BUDGET_queues, &after);
	KUNIT_EXPECT_EQ(test, after.used, before.used + 1);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	for (i = 5; i; i--) {
		KUNIT_EXPECT_EQ(test, bench_wait(), 2 + i);
		EXPECT_AT(test, START_NS + (10 - i) * MS);
	}
	EXPECT_DONE(test);
	bench.no_budget = false;
	give_plain(test, bench_udp(5));
	KUNIT_EXPECT_EQ(test, bench.q->stats.shared_packets, 5);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 3);
	bench_reap(8 * SECOND);
	bench_wait();
	bench_reap(8 * SECOND);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 0);
	timely_budget_status(&init_net, TIMELY_BUDGET_queues, &after);
	KUNIT_EXPECT_EQ(test, after.used, before.used);
}

/* ---- lazy rate enforcement ---- */

static void due__the_rate_falls_while_it_waits(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	u32 i;

	for (i = 0; i < 3; i++)
		give_kilo(test, sk, i);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench_set_rate(0, 500000);
	KUNIT_EXPECT_EQ(test, bench.woken, 0);
	bench.now_ns = START_NS + MS + SLOT_NS;
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.put_back, 1);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 2 * MS);
	/* From then on at the new rate. */
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, START_NS + 4 * MS);
	EXPECT_DONE(test);
}

static void due__the_rate_rises_while_it_waits(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	u32 i;

	for (i = 0; i < 4; i++)
		give_kilo(test, sk, i);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench_set_rate(0, 4000000);
	KUNIT_EXPECT_EQ(test, bench.woken, 1);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 250 * US);
	KUNIT_EXPECT_EQ(test, bench.q->stats.brought_forward, 1);
	EXPECT_AUDIT(test);
	/* A small rise notifies nobody. */
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench_set_rate(0, 4400000);
	KUNIT_EXPECT_EQ(test, bench.woken, 1);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, START_NS + 500 * US);
	/* Without queued packets, a change wakes nobody. */
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	bench_set_rate(0, 400000000);
	KUNIT_EXPECT_EQ(test, bench.woken, 1);
	EXPECT_DONE(test);
}

static void bench_rate_rises(void)
{
	bench_set_rate(0, 1000000000);
}

/* The rate rises after the qdisc has read the old rate and before the qdisc has recorded that it
 * waits. Nobody is notified of this rise, and the packet must not wait for the old time.
 */
static void due__the_rate_rises_just_before_it_waits(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 10000);
	u32 i;

	for (i = 0; i < 3; i++)
		give_kilo(test, sk, i);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	bench.between = bench_rate_rises;
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_NULL(test, bench.between);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + US);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, START_NS + 2 * US);
	EXPECT_DONE(test);
}

/* The rate is so high that the time is over. */
static void due__the_rate_rises_past_now(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 10000);

	give_kilo(test, sk, 0);
	give_kilo(test, sk, 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench.now_ns += 50 * MS;
	bench_set_rate(0, 1000000000);
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	EXPECT_DONE(test);
}

/* Without lazy enforcement, the time that was computed when the last packet left does not change.
 */
static void due__not_lazy(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 10000);
	u64 due_ns = START_NS + 106600 * US;

	must_change(test, TCA_TIMELY_LAZY, 0);
	give_kilo(test, sk, 0);
	give_kilo(test, sk, 1);
	give_kilo(test, sk, 2);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	sk->sk_pacing_rate = 5000;
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, due_ns);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	sk->sk_pacing_rate = 50000;
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, due_ns + 2 * 106600 * US);
}

static void due__timestamps_of_flows_with_entries(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);

	/* TCP's timestamp, which is from an older rate, does not count. */
	tcp_sk(sk)->tcp_wstamp_ns = START_NS + 50 * MS;
	give_timestamped(test, sk, START_NS + 50 * MS);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	must_change(test, TCA_TIMELY_LAZY, 0);
	give_timestamped(test, sk, START_NS + 60 * MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 60 * MS);
	/* Without pacing, the rate does not count, either. */
	must_change(test, TCA_TIMELY_LAZY, 1, TCA_TIMELY_PACING, 0);
	sk->sk_pacing_rate = 1;
	give_timestamped(test, sk, bench.now_ns + MS);
	give_timestamped(test, sk, bench.now_ns + MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	KUNIT_EXPECT_EQ(test, bench_take(), 4);
}

/* A timestamp later than TCP's last one is that of a BPF program, which limits the rate of a pod,
 * or of TCP_TX_DELAY.
 */
static void due__timestamps_that_are_not_tcps(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000000);

	tcp_sk(sk)->tcp_wstamp_ns = START_NS;
	give_timestamped(test, sk, START_NS + 5 * MS);
	give_timestamped(test, sk, START_NS + 8 * MS);
	/* TCP's own timestamp and none, both behind the others. */
	give_timestamped(test, sk, START_NS);
	give_plain(test, sk);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + 5 * MS);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 8 * MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	KUNIT_EXPECT_LT(test, bench.now_ns, START_NS + 8 * MS + 4 * SLOT_NS);
	/* The flow's rate counts, too. */
	bench_set_rate(0, 1000);
	give_timestamped(test, sk, bench.now_ns + MS);
	give_timestamped(test, sk, bench.now_ns + 2 * MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 5);
	KUNIT_EXPECT_EQ(test, bench_wait(), 6);
	KUNIT_EXPECT_GE(test, bench.now_ns, START_NS + SECOND);
	EXPECT_DONE(test);
}

/* Long-run rate of a flow with a flow entry: payload at the socket's rate. */
static void due__keeps_to_the_rate(struct kunit *test)
{
	static const u64 rates[] = { 125000, 1250000, 125000000, 1250000000, 12500000000ULL };
	struct sock *sk = bench_recorded(test, 0, 1);
	struct packet p = { .sk = sk, .gso = 44 * MSS, .hash = 1 };
	u64 start_ns, took_ns, want_ns;
	u32 r, i, given;

	for (r = 0; r < ARRAY_SIZE(rates); r++) {
		sk->sk_pacing_rate = rates[r];
		start_ns = bench.now_ns += 2 * SECOND;
		for (i = 0, given = 0; i <= 200; i++) {
			for (; given <= 200 && given < i + 10; given++)
				bench_give(test, &p);
			KUNIT_ASSERT_NE(test, bench_wait(), 0);
		}
		took_ns = bench.now_ns - start_ns;
		want_ns = div64_u64(200ULL * 44 * MSS * SECOND, rates[r]);
		KUNIT_EXPECT_GE(test, took_ns, want_ns - want_ns / 100 - SLOT_NS);
		KUNIT_EXPECT_LE(test, took_ns, want_ns + want_ns / 100 + SLOT_NS);
		EXPECT_DONE(test);
	}
}

/* The recorded departure, or 0 if there is none. */
static u64 departed_ns(struct timely_flow *flow, u32 end_seq)
{
	struct timely_departed departed;
	u8 read = 0;

	if (timely_flow_departure(flow, &read, end_seq - 1, end_seq, bench.now_ns, &departed) !=
	    TIMELY_DEPARTURE_FOUND)
		return 0;
	return departed.time_ns;
}

static void record__departures(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct packet p = { .sk = sk, .hash = 1, .ack = true };
	u32 i;

	for (i = 0; i < 5; i++)
		give_kilo(test, sk, i);
	for (i = 1; i <= 5; i++) {
		KUNIT_EXPECT_EQ(test, departed_ns(bench.entry[0], i * 1000), 0);
		KUNIT_EXPECT_EQ(test, bench_wait(), i);
		KUNIT_EXPECT_EQ(test, departed_ns(bench.entry[0], i * 1000), bench.now_ns);
	}
	KUNIT_EXPECT_EQ(test, bench.q->stats.departures, 5);
	/* An ACK of the peer's data is not a departure. */
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_wait(), 6);
	KUNIT_EXPECT_EQ(test, bench.q->stats.departures, 5);
}

/* Record @count segments of a flow, @gap_ns apart, which end at multiples of 1000 from @first on.
 */
static void depart(struct timely_flow *flow, u32 first, u32 count, u64 gap_ns)
{
	struct timely_departure departure = { .bytes = 1000 };
	u32 i;

	for (i = first; i < first + count; i++) {
		bench.now_ns += gap_ns;
		departure.time_ns = bench.now_ns;
		departure.end_seq = i * 1000;
		timely_flow_depart(flow, &departure);
	}
}

/* Count the known departures, looked up in the order of acknowledgment. */
static u32 count_departures(struct kunit *test, struct timely_flow *flow, u32 first, u32 count,
			    enum timely_departure_result others)
{
	struct timely_departed departed;
	enum timely_departure_result found;
	u32 i, known = 0;
	u8 read = 0;

	for (i = first; i < first + count; i++) {
		found = timely_flow_departure(flow, &read, (i - 1) * 1000, i * 1000, bench.now_ns,
					      &departed);
		if (found == TIMELY_DEPARTURE_FOUND)
			known++;
		else
			KUNIT_EXPECT_EQ(test, found, others);
	}
	return known;
}

static void record__each_while_there_is_room(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct timely_flow *flow = timely_flow_get(sk);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, flow);
	/* Ten segments at a time, 15 per RTT. */
	timely_flow_keep(flow, 30000);
	for (i = 0; i < 100; i++) {
		depart(flow, 10 * i + 1, 1, 20000);
		depart(flow, 10 * i + 2, 9, 1);
	}
	KUNIT_EXPECT_EQ(test, count_departures(test, flow, 1001 - TIMELY_DEPARTURES,
					       TIMELY_DEPARTURES, TIMELY_DEPARTURE_UNKNOWN),
			TIMELY_DEPARTURES);
	timely_flow_put(flow);
}

/* Look up the departure of segment @last, as an ACK of @count segments does. It must be known. */
static void look_up_last(struct kunit *test, struct timely_flow *flow, u8 *read, u32 last,
			 u32 count, struct timely_departed *departed)
{
	KUNIT_ASSERT_EQ(test, timely_flow_departure(flow, read, (last - count) * 1000, last * 1000,
						    bench.now_ns, departed),
			TIMELY_DEPARTURE_FOUND);
}

/* Each ACK acknowledges 50 segments, the last of which was skipped. */
static void record__estimate_for_an_ack_of_many(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct timely_flow *flow = timely_flow_get(sk);
	struct timely_departed departed;
	u32 i, estimates = 0;
	u64 first_ns;
	u8 read = 0;

	KUNIT_ASSERT_NOT_NULL(test, flow);
	timely_flow_keep(flow, 1000000);
	first_ns = bench.now_ns;
	depart(flow, 1, 1000, 5000);
	for (i = 810; i < 980; i += 50) {
		look_up_last(test, flow, &read, i, 50, &departed);
		estimates += departed.unsure_ns > 0;
		/* Departures are regular: the estimate is at most a segment earlier. */
		KUNIT_EXPECT_LE(test, departed.time_ns, first_ns + i * 5000);
		KUNIT_EXPECT_GE(test, departed.time_ns, first_ns + (i - 1) * 5000);
		/* There is no second estimate: the recorded departure before it has been used. */
		if (timely_flow_departure(flow, &read, i * 1000, (i + 1) * 1000, bench.now_ns,
					  &departed) == TIMELY_DEPARTURE_FOUND) {
			KUNIT_EXPECT_EQ(test, departed.unsure_ns, 0);
			KUNIT_EXPECT_EQ(test, departed.bytes, 1000);
		}
	}
	KUNIT_EXPECT_GT(test, estimates, 1);
	timely_flow_put(flow);
}

/* Departures are irregular: every fifth segment waits. */
static void record__estimates_know_the_earliest_departure(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct timely_flow *flow = timely_flow_get(sk);
	struct timely_departed departed;
	u32 i, estimates = 0;
	u64 first_ns;
	u8 read = 0;

	KUNIT_ASSERT_NOT_NULL(test, flow);
	timely_flow_keep(flow, 1000000);
	first_ns = bench.now_ns;
	for (i = 0; i < 200; i++) {
		depart(flow, 5 * i + 1, 1, 24900);
		depart(flow, 5 * i + 2, 4, 25);
	}
	for (i = 807; i < 980; i += 49) {
		u64 true_ns = first_ns + (i - 1) / 5 * 25000 + 24900 + (i - 1) % 5 * 25;

		look_up_last(test, flow, &read, i, 49, &departed);
		estimates += departed.time_ns > true_ns;
		KUNIT_EXPECT_LE(test, departed.time_ns - departed.unsure_ns, true_ns);
		/* No longer than the recorded departures are apart */
		KUNIT_EXPECT_LE(test, departed.unsure_ns, 2000000 / TIMELY_DEPARTURES);
	}
	KUNIT_EXPECT_GT(test, estimates, 0);
	timely_flow_put(flow);
}

static void record__a_subset_when_many_are_in_flight(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct timely_flow *flow = timely_flow_get(sk);
	u32 known;

	KUNIT_ASSERT_NOT_NULL(test, flow);
	/* 200 segments per RTT. */
	timely_flow_keep(flow, 1000000);
	depart(flow, 1, 1000, 5000);
	known = count_departures(test, flow, 801, 200, TIMELY_DEPARTURE_SKIPPED);
	KUNIT_EXPECT_GE(test, known, 25);
	KUNIT_EXPECT_LE(test, known, TIMELY_DEPARTURES / 2);
	/* The RTT doubles. */
	KUNIT_EXPECT_GE(test, count_departures(test, flow, 601, 400, TIMELY_DEPARTURE_SKIPPED),
			2 * known - 2);
	/* Long after the last skipped departure, another qdisc sends. */
	bench.now_ns += 3000000;
	KUNIT_EXPECT_EQ(test, count_departures(test, flow, 1001, 10, TIMELY_DEPARTURE_UNKNOWN), 0);
	timely_flow_put(flow);
}

/* The device has a backlog, so departures are recorded for later times than now. */
static void record__a_subset_ahead_of_time(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct timely_flow *flow = timely_flow_get(sk);
	const u32 ahead_ns[] = { 2000, 100000, 20000000, 999000000 };
	u64 now_ns;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, flow);
	for (i = 0; i < ARRAY_SIZE(ahead_ns); i++) {
		timely_flow_keep(flow, 1000000);
		depart(flow, 1000 * i + 1, 1000, 5000);
		now_ns = bench.now_ns;
		bench.now_ns -= ahead_ns[i];
		KUNIT_EXPECT_LE(test, count_departures(test, flow, 1000 * i + 801, 200,
						       TIMELY_DEPARTURE_SKIPPED),
				TIMELY_DEPARTURES / 2);
		bench.now_ns = now_ns;
	}
	timely_flow_put(flow);
}

static void record__is_kept_for_two_round_trips(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct timely_flow *flow = timely_flow_get(sk);

	KUNIT_ASSERT_NOT_NULL(test, flow);
	KUNIT_EXPECT_EQ(test, flow->keep_ns, 0);
	timely_flow_keep(flow, 1000);
	KUNIT_EXPECT_EQ(test, flow->keep_ns, 2000);
	/* Small changes of the RTT change nothing. */
	timely_flow_keep(flow, 1333);
	timely_flow_keep(flow, 500);
	KUNIT_EXPECT_EQ(test, flow->keep_ns, 2000);
	timely_flow_keep(flow, 1334);
	KUNIT_EXPECT_EQ(test, flow->keep_ns, 2668);
	timely_flow_keep(flow, 666);
	KUNIT_EXPECT_EQ(test, flow->keep_ns, 1332);
	timely_flow_keep(flow, U32_MAX);
	KUNIT_EXPECT_EQ(test, flow->keep_ns, U32_MAX);
	timely_flow_keep(flow, U32_MAX);
	KUNIT_EXPECT_EQ(test, flow->keep_ns, U32_MAX);
	timely_flow_put(flow);
}

/* The congestion control leaves while packets wait, and another one comes. */
static void entry__closed_while_packets_wait(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct timely_flow *old = bench.entry[0];

	give_kilo(test, sk, 0);
	give_kilo(test, sk, 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, refcount_read(&old->ref), 2);
	timely_flow_close(old);
	bench.entry[0] = timely_flow_open(sk);
	KUNIT_ASSERT_NOT_NULL(test, bench.entry[0]);
	give_kilo(test, sk, 2);
	KUNIT_EXPECT_PTR_EQ(test, bench_flow(sk)->entry, bench.entry[0]);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, START_NS + 2 * MS);
	EXPECT_DONE(test);
}

static void record__none_after_close(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);

	give_kilo(test, sk, 0);
	give_kilo(test, sk, 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	timely_flow_close(bench.entry[0]);
	bench.entry[0] = NULL;
	inet_csk(sk)->icsk_ca_ops = NULL;
	give_kilo(test, sk, 2);
	KUNIT_EXPECT_NULL(test, bench_flow(sk)->entry);
	KUNIT_EXPECT_NE(test, bench_wait(), 0);
	KUNIT_EXPECT_NE(test, bench_wait(), 0);
	EXPECT_DONE(test);
}

/* ---- several queues, as under mq ---- */

/* One socket sends through two queues. The second packet waits in the first queue until 100 ms have
 * passed at the socket's rate; the second queue is current.
 */
static struct sock *two_queues(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 10000);

	give_kilo(test, sk, 0);
	give_kilo(test, sk, 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench_swap();
	KUNIT_ASSERT_TRUE(test, bench_make());
	return sk;
}

/* Both queues have packets when the rate rises: neither waits for the old time. */
static void queues__both_wait(struct kunit *test)
{
	struct sock *sk = two_queues(test);

	give_kilo(test, sk, 2);
	give_kilo(test, sk, 3);
	KUNIT_EXPECT_EQ(test, bench_take(), 3);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench.now_ns += 10 * MS;
	bench_set_rate(0, 1000000000);
	bench_swap();
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	EXPECT_DONE_HERE(test);
	bench_swap();
	/* This queue checks again by itself. */
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	KUNIT_EXPECT_LE(test, bench.now_ns, START_NS + 11 * MS + SLOT_NS);
	EXPECT_DONE(test);
}

/* The socket moves to another queue and back: its first queue is still notified. */
static void queues__there_and_back(struct kunit *test)
{
	struct sock *sk = two_queues(test);
	struct packet p = { .sk = sk, .len = 100, .hash = 1, .seq = 2000 };

	bench_give(test, &p);
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 3);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	EXPECT_AT(test, START_NS + 3400 * US);
	EXPECT_DONE_HERE(test);
	bench_set_rate(0, 1000000000);
	bench_swap();
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	give_kilo(test, sk, 5);
	KUNIT_EXPECT_EQ(test, bench_wait(), 5);
	EXPECT_DONE(test);
}

/* A queue is notified of a flow that has left it: the notification reaches the queue that has the
 * flow now.
 */
static void queues__notification_follows_the_flow(struct kunit *test)
{
	struct sock *sk = two_queues(test);

	/* The queue was notified but has not run since, and then it loses the flow. */
	bench_swap();
	bench_set_rate(0, 20000);
	KUNIT_EXPECT_FALSE(test, llist_empty(&bench.q->notifier.changed));
	timely_flow_detach(bench.entry[0], &bench.q->notifier, bench_flow(sk));
	bench_swap();
	give_kilo(test, sk, 2);
	give_kilo(test, sk, 3);
	KUNIT_EXPECT_EQ(test, bench_take(), 3);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench.now_ns += MS;
	bench_set_rate(0, 1000000000);
	bench_swap();
	bench_take();
	bench_swap();
	KUNIT_EXPECT_EQ(test, bench_take(), 4);
	EXPECT_DONE_HERE(test);
	bench_swap();
	while (bench_wait())
		;
	EXPECT_DONE(test);
}

/* A queue without packets of a flow is not notified of it, and has no reference. */
static void queues__an_empty_one_is_not_notified(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);

	give_kilo(test, sk, 0);
	give_kilo(test, sk, 1);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench.woken = 0;
	timely_flow_pause(bench.entry[0], bench.now_ns + 5 * MS);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_TRUE(test, llist_empty(&bench.q->notifier.changed));
	KUNIT_EXPECT_EQ(test, refcount_read(&bench.entry[0]->ref), 2);
	KUNIT_EXPECT_EQ(test, bench.woken, 0);
	/* The pause counts nevertheless. */
	give_kilo(test, sk, 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, START_NS + 6 * MS);
	EXPECT_DONE(test);
}

/* ---- pauses ---- */

static void pause__stops_the_flow(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);

	timely_flow_pause(bench.entry[0], START_NS + 5 * MS);
	give_kilo(test, sk, 0);
	give_kilo(test, sk, 1);
	give_plain(test, bench_udp(1));
	KUNIT_EXPECT_EQ(test, bench_take(), 3);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + 5 * MS);
	KUNIT_EXPECT_GE(test, bench.q->stats.paused, 1);
	/* Pacing continues from there. */
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 6 * MS);
	EXPECT_DONE(test);
}

/* Pause and pacing time run in parallel, and are not added. */
static void pause__is_apart_from_pacing(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	u32 i;

	for (i = 0; i < 4; i++)
		give_kilo(test, sk, i);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	/* A pause that is shorter than the pacing time makes no difference. */
	timely_flow_pause(bench.entry[0], START_NS + 500 * US);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + MS);
	/* With a longer pause, the flow waits for the pause only. */
	timely_flow_pause(bench.entry[0], START_NS + 2500 * US);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, START_NS + 2500 * US);
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	EXPECT_AT(test, START_NS + 3500 * US);
	EXPECT_DONE(test);
}

static void pause__made_longer_and_shorter(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);

	timely_flow_pause(bench.entry[0], START_NS + 5 * MS);
	give_kilo(test, sk, 0);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	timely_flow_pause(bench.entry[0], START_NS + 8 * MS);
	bench.now_ns = START_NS + 5 * MS + SLOT_NS;
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	timely_flow_pause(bench.entry[0], START_NS + 6 * MS);
	KUNIT_EXPECT_GE(test, bench.woken, 1);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + 6 * MS);
	give_kilo(test, sk, 1);
	timely_flow_pause(bench.entry[0], START_NS + SECOND);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	timely_flow_pause(bench.entry[0], 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 7 * MS);
	EXPECT_DONE(test);
}

/* Each wait for a pause counts once, however often the qdisc checks. */
static void pause__counts_waits(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	u32 i;

	timely_flow_pause(bench.entry[0], START_NS + 5 * MS);
	for (i = 0; i < 8; i++)
		give_kilo(test, sk, i);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench.now_ns += MS;
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.paused, 1);
	/* A longer pause is the same wait. */
	timely_flow_pause(bench.entry[0], START_NS + 8 * MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + 8 * MS);
	KUNIT_EXPECT_EQ(test, bench.q->stats.paused, 1);
	/* Another wait, while the flow waits for its rate. */
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	timely_flow_pause(bench.entry[0], START_NS + 20 * MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 20 * MS);
	KUNIT_EXPECT_EQ(test, bench.q->stats.paused, 2);
	/* Waits for the rate do not count. */
	for (i = 3; i <= 8; i++)
		KUNIT_EXPECT_EQ(test, bench_wait(), i);
	KUNIT_EXPECT_EQ(test, bench.q->stats.paused, 2);
	EXPECT_DONE(test);
}

/* Data after a hop-by-hop header is data, too: it is paused, and its departure is recorded. */
static void pause__ipv6_with_options(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct packet p = { .sk = sk, .hash = 1, .v6 = true, .len = 1000 + 94, .tlv = 1 };

	timely_flow_pause(bench.entry[0], START_NS + 5 * MS);
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + 5 * MS);
	KUNIT_EXPECT_EQ(test, departed_ns(bench.entry[0], 1000), bench.now_ns);
	KUNIT_EXPECT_EQ(test, bench.q->stats.departures, 1);
	EXPECT_DONE(test);
}

/* BIG TCP: more than 64 KB, with a jumbo payload option if the kernel uses one. */
static void pause__big_tcp(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1000000);
	struct packet p = { .sk = sk, .hash = 1, .v6 = true, .gso = 46 * MSS };

	timely_flow_pause(bench.entry[0], START_NS + 5 * MS);
	p.tlv = IPV6_TLV_JUMBO;
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + 5 * MS);
	KUNIT_EXPECT_EQ(test, departed_ns(bench.entry[0], 46 * MSS), bench.now_ns);
	p.tlv = 0;
	p.seq = 46 * MSS;
	timely_flow_pause(bench.entry[0], START_NS + SECOND);
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + SECOND);
	KUNIT_EXPECT_EQ(test, departed_ns(bench.entry[0], 92 * MSS), bench.now_ns);
	EXPECT_DONE(test);
}

/* A flow that only On-Ramp uses, paused for 5 ms with a packet of data. */
static struct sock *paused_by_onramp(struct kunit *test)
{
	struct sock *sk = bench_tcp(0);
	struct tq_flow *f;

	/* Without OR-ACKs: the test sets the pauses. */
	bench.q->config.onramp = 1;
	give_kilo(test, sk, 0);
	f = bench_flow(sk);
	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_NOT_NULL(test, f->entry);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	timely_flow_pause(f->entry, START_NS + 5 * MS);
	give_kilo(test, sk, 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	return sk;
}

/* RTT in the minimum filters of a peer without a signal after socket @i has sent its first packet;
 * U64_MAX for none. TCP has measured its minimum, @rtt_us, @age seconds ago.
 */
static u64 first_rtt_ns(struct kunit *test, u32 i, u32 age, u32 rtt_us)
{
	struct sock *sk = bench_tcp(i);
	struct timely_peer *peer;
	u64 rtt_ns;

	minmax_reset(&tcp_sk(sk)->rtt_min, tcp_jiffies32 - age * HZ, rtt_us);
	give_kilo(test, sk, 0);
	KUNIT_EXPECT_NE(test, bench_take(), 0);
	KUNIT_ASSERT_NOT_NULL(test, bench_flow(sk));
	KUNIT_ASSERT_NOT_NULL(test, bench_flow(sk)->entry);
	peer = timely_flow_onramp(bench_flow(sk)->entry)->peer;
	KUNIT_ASSERT_NOT_NULL(test, peer);
	rtt_ns = peer->owd.rtt.least;
	KUNIT_EXPECT_EQ(test, peer->owd.raw.least, rtt_ns);
	/* The next socket finds the same peer. */
	timely_owd_init(&peer->owd);
	return rtt_ns;
}

/* TCP's minimum is that of 300 s, and an idle connection keeps its minimum for ever. The path may
 * have become longer since.
 */
static void find_entry__old_rtts_do_not_count(struct kunit *test)
{
	bench.q->config.onramp = 1;
	/* The peer may have RTTs of earlier cases. */
	first_rtt_ns(test, 0, 0, 100);
	KUNIT_EXPECT_EQ(test, first_rtt_ns(test, 1, 0, 20), 20 * US);
	KUNIT_EXPECT_EQ(test, first_rtt_ns(test, 2, 4, 21), 21 * US);
	KUNIT_EXPECT_EQ(test, first_rtt_ns(test, 3, 6, 22), U64_MAX);
	KUNIT_EXPECT_EQ(test, first_rtt_ns(test, 4, 250, 23), U64_MAX);
	KUNIT_EXPECT_EQ(test, first_rtt_ns(test, 5, 1000000, 24), U64_MAX);
	/* Nothing is known yet. */
	KUNIT_EXPECT_EQ(test, first_rtt_ns(test, 6, 0, ~0U), U64_MAX);
}

/* Two successive sockets with the same addresses are one flow for On-Ramp. */
static void queues__two_sockets_share_an_entry(struct kunit *test)
{
	struct sock *a = bench_tcp(0), *b = bench_tcp(1);
	struct timely_flow *entry;

	bench.q->config.onramp = 1;
	give_kilo(test, a, 0);
	give_kilo(test, b, 0);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	entry = bench_flow(a)->entry;
	KUNIT_ASSERT_NOT_NULL(test, entry);
	KUNIT_EXPECT_PTR_EQ(test, bench_flow(b)->entry, entry);
	timely_flow_pause(entry, START_NS + 50 * MS);
	give_kilo(test, a, 1);
	give_kilo(test, b, 1);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	bench.now_ns += 10 * MS;
	timely_flow_pause(entry, 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_AT(test, START_NS + 10 * MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	KUNIT_EXPECT_LE(test, bench.now_ns, START_NS + 11 * MS + SLOT_NS);
	EXPECT_DONE(test);
	/* The flow that the entry reports to is freed: the next packet of the other takes over. */
	timely_flow_detach(entry, &bench.q->notifier, bench_flow(a));
	timely_flow_detach(entry, &bench.q->notifier, bench_flow(b));
	KUNIT_EXPECT_NULL(test, entry->notifier);
	give_kilo(test, a, 2);
	KUNIT_EXPECT_PTR_EQ(test, entry->notifier, &bench.q->notifier);
	KUNIT_EXPECT_EQ(test, bench_take(), 5);
	EXPECT_DONE(test);
}

/* A FIN that overtakes data leaves a gap, which the receiver takes for a loss. */
static void pause__fin_stays_behind_its_data(struct kunit *test)
{
	struct sock *sk = paused_by_onramp(test);
	struct packet p = { .sk = sk, .hash = 1, .len = 66, .seq = 2000 };

	p.flags = TCPHDR_ACK | TCPHDR_FIN;
	bench_give(test, &p);
	p.flags = TCPHDR_ACK | TCPHDR_RST;
	p.seq = 2001;
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 5 * MS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	EXPECT_DONE(test);
}

/* Packets without a sequence number of their own are not paused: ACKs, window updates, probes. */
static void pause__other_empty_packets(struct kunit *test)
{
	struct sock *sk = paused_by_onramp(test);
	struct packet p = { .sk = sk, .hash = 1, .ack = true, .flags = TCPHDR_ACK, .seq = 2000 };

	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 3);
	p.ack = false;
	p.len = 66;
	p.seq = 1999;
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 4);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	EXPECT_AT(test, START_NS + 5 * MS);
	EXPECT_DONE(test);
}

/* The FIN of a packet with data has a sequence number, but is no byte of the data. An OR-ACK
 * reports the first byte.
 */
static void record__data_with_a_fin(struct kunit *test)
{
	struct packet p = { .sk = bench_tcp(0), .hash = 1, .len = 1066, .seq = 5000 };
	const struct timely_sent *sent;
	struct tq_flow *f;

	bench.q->config.onramp = 1;
	p.flags = TCPHDR_ACK | TCPHDR_FIN;
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	f = bench_flow(p.sk);
	KUNIT_ASSERT_NOT_NULL(test, f);
	KUNIT_ASSERT_NOT_NULL(test, f->entry);
	sent = timely_flow_onramp(f->entry)->sent;
	KUNIT_EXPECT_EQ(test, sent->payload, 1000);
	KUNIT_EXPECT_EQ(test, sent->end_seq, 6000);
	EXPECT_DONE(test);
	/* A congestion control asks for the end of the packet. */
	p.sk = bench_recorded(test, 1, 1000000);
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	KUNIT_EXPECT_EQ(test, departed_ns(bench.entry[1], 6001), bench.now_ns);
}

/* Fragments have no ports, or not the whole datagram that the receiver sees. */
static void record__no_departures_of_fragments(struct kunit *test)
{
	static const u16 frag_offs[] = { IP_DF, IP_MF, IP_MF | 185, 185 };
	struct packet p = { .sk = bench_udp(0), .hash = 1, .udp = true };
	struct sk_buff *skb;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(frag_offs); i++) {
		p.frag_off = frag_offs[i];
		skb = bench_packet(test, &p);
		*tq_cb(skb) = (struct tq_skb_cb) {};
		tq_set_kind(skb);
		KUNIT_EXPECT_TRUE(test, tq_cb(skb)->udp == !i);
		KUNIT_EXPECT_FALSE(test, tq_cb(skb)->tcp);
		/* Fragments are paused with the rest of their flow. */
		KUNIT_EXPECT_TRUE(test, tq_cb(skb)->data);
		kfree_skb(skb);
	}
	p.v6 = true;
	p.tlv = 1;
	skb = bench_packet(test, &p);
	*tq_cb(skb) = (struct tq_skb_cb) {};
	tq_set_kind(skb);
	KUNIT_EXPECT_TRUE(test, tq_cb(skb)->udp);
	/* The hop-by-hop header becomes a fragment header, for the first and a later fragment. */
	for (i = 0; i < 2; i++) {
		ipv6_hdr(skb)->nexthdr = NEXTHDR_FRAGMENT;
		put_unaligned_be16(i ? 1448 : IP6_MF, (u8 *)(ipv6_hdr(skb) + 1) + 2);
		*tq_cb(skb) = (struct tq_skb_cb) {};
		tq_set_kind(skb);
		KUNIT_EXPECT_FALSE(test, tq_cb(skb)->udp);
		KUNIT_EXPECT_TRUE(test, tq_cb(skb)->data);
	}
	kfree_skb(skb);
}

/* ---- splitting ---- */

/* Check the transport header of a sub-segment. */
static void check_transport(struct kunit *test, const struct sk_buff *skb,
			    const struct packet *p, u32 offset, u32 payload)
{
	__sum16 check = bench_check(skb, p->udp, payload);

	KUNIT_EXPECT_TRUE(test, skb->ip_summed == CHECKSUM_PARTIAL);
	if (p->udp) {
		KUNIT_EXPECT_EQ(test, ntohs(udp_hdr(skb)->len), sizeof(struct udphdr) + payload);
		KUNIT_EXPECT_EQ(test, udp_hdr(skb)->check, check);
		return;
	}
	KUNIT_EXPECT_EQ(test, ntohl(tcp_hdr(skb)->seq), p->seq + offset);
	KUNIT_EXPECT_EQ(test, tcp_hdr(skb)->check, check);
	/* Only the last sub-segment has PSH. */
	KUNIT_EXPECT_TRUE(test, tcp_hdr(skb)->psh == (offset + payload == p->gso));
}

static void check_ip(struct kunit *test, const struct sk_buff *skb, const struct packet *p,
		     u32 first)
{
	u32 bytes = skb->len - skb_network_offset(skb);

	if (p->v6) {
		KUNIT_EXPECT_EQ(test, ntohs(ipv6_hdr(skb)->payload_len),
				bytes - sizeof(struct ipv6hdr));
		return;
	}
	KUNIT_EXPECT_EQ(test, ntohs(ip_hdr(skb)->tot_len), bytes);
	KUNIT_EXPECT_EQ(test, ip_fast_csum((u8 *)ip_hdr(skb), ip_hdr(skb)->ihl), 0);
	if (p->gso_type & SKB_GSO_TCP_FIXEDID)
		first = 0;
	KUNIT_EXPECT_EQ(test, ntohs(ip_hdr(skb)->id), (u16)(p->ip_id + first));
}

/* Check a sub-segment. Return: payload bytes. */
static u32 check_subsegment(struct kunit *test, const struct sk_buff *skb, const struct packet *p,
			    u32 offset, u32 most)
{
	u32 headers = skb_transport_offset(skb) + bench_transport_bytes(p->udp);
	u32 payload = bench_payload(skb), mss = p->mss ? : MSS, i, wrong = 0;
	u32 segs = DIV_ROUND_UP(payload, mss);
	u8 byte;

	KUNIT_EXPECT_LE(test, skb->len - ETH_HLEN, max(most, mss + headers - ETH_HLEN));
	if (segs > 1) {
		KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_size, mss);
		KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_segs, segs);
		KUNIT_EXPECT_EQ(test, skb_shinfo(skb)->gso_type & bench_gso_type(p),
				bench_gso_type(p));
	} else {
		KUNIT_EXPECT_FALSE(test, skb_is_gso(skb));
	}
	KUNIT_EXPECT_EQ(test, qdisc_pkt_len(skb), skb->len + (segs - 1) * headers);
	check_ip(test, skb, p, offset / mss);
	check_transport(test, skb, p, offset, payload);
	KUNIT_EXPECT_NULL(test, skb->next);
	KUNIT_EXPECT_NULL(test, skb->prev);
	for (i = 0; i < payload; i++) {
		skb_copy_bits(skb, headers + i, &byte, 1);
		wrong += byte != bench_byte((offset + i) % PAGE_SIZE);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	return payload;
}

static void check_split(struct kunit *test, const struct packet *p, u32 most, u32 subsegs)
{
	u32 offset = 0, n = 0;
	struct sk_buff *skb;

	must_change(test, TCA_TIMELY_SPLIT, most);
	KUNIT_ASSERT_NE(test, bench_give(test, p), 0);
	while ((skb = bench_wait_skb()) && n < 100) {
		offset += check_subsegment(test, skb, p, offset, most);
		EXPECT_AUDIT(test);
		kfree_skb(skb);
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, subsegs);
	KUNIT_EXPECT_EQ(test, offset, p->gso);
	EXPECT_DONE(test);
}

static void split__into_subsegments(struct kunit *test)
{
	/* A packet takes 1500 bytes with its headers: ten fit. */
	struct packet p = {
		.sk = bench_udp(0), .gso = 44 * MSS, .seq = 0xffffff00, .ip_id = 0xfff0,
		.hash = 1,
	};

	check_split(test, &p, 16384, 5);
	KUNIT_EXPECT_EQ(test, bench.q->stats.segmented, 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.segments, 5);
	p.v6 = true;
	/* 1448 + 72 */
	check_split(test, &p, 16384, 5);
	/* The last sub-segment is shorter. */
	p.gso = 20 * MSS + 1;
	check_split(test, &p, 16384, 3);
	p.v6 = false;
	check_split(test, &p, 16384, 3);
	/* Sub-segments of one packet. */
	p.gso = 3 * MSS + 700;
	check_split(test, &p, 1500, 4);
	check_split(test, &p, 2999, 4);
	check_split(test, &p, 3000, 2);
	/* A sub-segment has at least one packet. */
	check_split(test, &p, 1, 4);
	p.mss = 100;
	p.gso = 6000;
	check_split(test, &p, 1520, 6);
}

static void split__udp(struct kunit *test)
{
	struct packet p = {
		.sk = bench_udp(0), .gso = 40 * MSS, .ip_id = 0xfff0, .hash = 1, .udp = true,
	};

	/* A packet takes 1476 bytes with its headers: eleven fit. */
	check_split(test, &p, 16384, 4);
	p.v6 = true;
	p.gso = 20 * MSS + 1;
	/* With the longer IPv6 header, ten fit. */
	check_split(test, &p, 16384, 3);
	check_split(test, &p, 1500, 21);
	p.v6 = false;
	check_split(test, &p, 1500, 21);
}

/* Sub-segments of a single packet are not GSO packets any more, but still UDP. */
static void split__udp_is_paced(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	struct packet p = { .sk = sk, .gso = 10 * MSS, .hash = 1, .udp = true };
	u32 i, stamps;

	sk->sk_pacing_rate = 1490000;
	for (stamps = 0; stamps < 2; stamps++) {
		u64 start_ns = bench.now_ns += SECOND;

		must_change(test, TCA_TIMELY_SPLIT, 1500);
		p.tstamp = stamps ? start_ns : 0;
		bench_give(test, &p);
		for (i = 0; i < 10; i++) {
			KUNIT_EXPECT_EQ(test, bench_wait(), stamps + 1);
			/* By payload or by whole packets: about a ms each. */
			KUNIT_EXPECT_GE(test, bench.now_ns, start_ns + i * 970 * US);
			KUNIT_EXPECT_LT(test, bench.now_ns, start_ns + (i + 1) * 1030 * US);
		}
		EXPECT_DONE(test);
	}
}

/* With offload_horizon packets leave up to a ms early, with the time at which they are due. */
static void pacing__is_left_to_the_device(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u64 early_ns = 0;
	u32 i;

	bench.q->config.offload_ns = MS;
	sk->sk_pacing_rate = 1066000;
	for (i = 0; i < 40; i++)
		give_kilo(test, sk, i);
	for (i = 1; i <= 40; i++) {
		KUNIT_EXPECT_EQ(test, bench_wait(), i);
		if (i == 20)
			early_ns = bench.now_ns;
	}
	KUNIT_EXPECT_GE(test, bench.now_ns - early_ns, 19 * MS);
	KUNIT_EXPECT_LE(test, bench.now_ns - early_ns, 21 * MS);
	EXPECT_DONE(test);
}

/* A packet forwarded after GRO: all its segments have the same IP ID. */
static void split__keeps_a_fixed_id(struct kunit *test)
{
	struct packet p = {
		.sk = bench_udp(0), .gso = 44 * MSS, .ip_id = 77, .hash = 1,
		.gso_type = SKB_GSO_TCP_FIXEDID,
	};

	check_split(test, &p, 16384, 5);
}

static void split__not(struct kunit *test)
{
	struct packet p = { .sk = bench_udp(0), .gso = 10 * MSS, .hash = 1 };
	struct sk_buff *skb;
	u32 i;

	must_change(test, TCA_TIMELY_SPLIT, 16384);
	/* A packet that fits, then kinds that are not split. */
	for (i = 0; i < 4; i++) {
		p.gso = i ? 40 * MSS : 10 * MSS;
		skb = bench_packet(test, &p);
		switch (i) {
		case 1:
			skb->encapsulation = 1;
			break;
		case 2:
			skb_shinfo(skb)->gso_type = SKB_GSO_DODGY;
			break;
		case 3:
			/* Headers that must not be trusted. */
			tcp_hdr(skb)->doff = 15;
			break;
		}
		bench_enqueue(skb);
		KUNIT_EXPECT_EQ(test, bench_take(), i + 1);
		EXPECT_AUDIT(test);
	}
	KUNIT_EXPECT_EQ(test, bench.q->stats.segmented, 0);
	KUNIT_EXPECT_EQ(test, bench.sch->q.qlen, 0);
}

/* The first sub-segment leaves at once, each of the others when the one before has been paced. */
static void split__paced_at_the_flows_rate(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 14480000);
	struct packet p = { .sk = sk, .gso = 40 * MSS, .hash = 1 };
	u32 i;

	must_change(test, TCA_TIMELY_SPLIT, 16384);
	bench_give(test, &p);
	p.seq = 40 * MSS;
	bench_give(test, &p);
	/* Ten packets of payload per ms. */
	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_EQ(test, bench_wait(), i / 4 + 1);
		EXPECT_AT(test, START_NS + i * MS);
		EXPECT_AUDIT(test);
	}
	/* The recorded departure is that of the last sub-segment. */
	KUNIT_EXPECT_EQ(test, departed_ns(bench.entry[0], 80 * MSS), bench.now_ns);
	KUNIT_EXPECT_EQ(test, bench.q->stats.departures, 2);
	EXPECT_DONE(test);
}

static void split__the_rate_falls_between_subsegments(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 14480000);
	struct packet p = { .sk = sk, .gso = 40 * MSS, .hash = 1 };

	must_change(test, TCA_TIMELY_SPLIT, 16384);
	bench_give(test, &p);
	bench_wait();
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	EXPECT_AT(test, START_NS + MS);
	bench_set_rate(0, 7240000);
	bench_wait();
	EXPECT_AT(test, START_NS + 3 * MS);
	bench_set_rate(0, 144800000);
	bench_wait();
	EXPECT_AT(test, START_NS + 3100 * US);
	EXPECT_DONE(test);
}

/* Sub-segments leave at the configured rate; then the flow waits until all have been paced. */
static void split__paced_at_split_rate(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1448000);
	struct packet p = { .sk = sk, .gso = 40 * MSS, .hash = 1 };
	u64 ns = div64_u64((20ULL * (MSS + 66) / 2) * SECOND, 151400000);
	u32 i, round;

	must_change(test, TCA_TIMELY_SPLIT, 16384, TCA_TIMELY_SPLIT_RATE, 151400000);
	for (i = 0; i < 3; i++)
		bench_give(test, &p);
	for (round = 0; round < 3; round++) {
		u64 start_ns = START_NS + round * 40 * MS;

		for (i = 0; i < 4; i++) {
			KUNIT_EXPECT_EQ(test, bench_wait(), round + 1);
			/* Each counts from the departure of the one before: delays by slots add up.
			 */
			KUNIT_EXPECT_GE(test, bench.now_ns, start_ns + i * ns);
			KUNIT_EXPECT_LT(test, bench.now_ns, start_ns + i * ns + (i + 1) * SLOT_NS);
		}
	}
	EXPECT_DONE(test);
}

/* A socket that TCP paces by timestamps. */
static void split__timestamped_packets(struct kunit *test)
{
	struct sock *sk = bench_tcp(0);
	struct packet p = { .sk = sk, .gso = 40 * MSS, .hash = 1, .tstamp = START_NS + MS };
	u32 i;

	sk->sk_pacing_rate = 14480000;
	must_change(test, TCA_TIMELY_SPLIT, 16384);
	bench_give(test, &p);
	p.tstamp = START_NS + 5 * MS;
	bench_give(test, &p);
	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_EQ(test, bench_wait(), i / 4 + 1);
		KUNIT_EXPECT_GE(test, bench.now_ns, START_NS + (i + 1) * MS);
		KUNIT_EXPECT_LT(test, bench.now_ns, START_NS + (i + 1) * MS + 4 * SLOT_NS);
	}
	EXPECT_DONE(test);
}

/* Without lazy enforcement, maxrate limits the flow nevertheless. */
static void split__maxrate_when_not_lazy(struct kunit *test)
{
	struct sock *sk = bench_tcp(0);
	struct packet p = { .sk = sk, .gso = 40 * MSS, .hash = 1, .tstamp = START_NS };
	u32 i, lazy;

	sk->sk_pacing_rate = 151400000;
	for (lazy = 0; lazy < 2; lazy++) {
		u64 start_ns = bench.now_ns += SECOND;

		p.tstamp = start_ns;
		must_change(test, TCA_TIMELY_SPLIT, 16384, TCA_TIMELY_LAZY, lazy,
			    TCA_TIMELY_MAXRATE, 15140000);
		for (i = 0; i < 3; i++)
			bench_give(test, &p);
		for (i = 0; i < 12; i++)
			KUNIT_EXPECT_NE(test, bench_wait(), 0);
		KUNIT_EXPECT_GE(test, bench.now_ns, start_ns + 11 * MS);
		KUNIT_EXPECT_LT(test, bench.now_ns, start_ns + 12 * MS);
		EXPECT_DONE(test);
	}
}

/* Bursts without timestamps that are charged afterwards: credit must be repaid. */
static void split__bursts_keep_to_maxrate(struct kunit *test)
{
	struct packet p = { .gso = 40 * MSS, .hash = 1 };
	u32 i;

	must_change(test, TCA_TIMELY_SPLIT, 16384, TCA_TIMELY_SPLIT_RATE, 1514000000,
		    TCA_TIMELY_MAXRATE, 15140000);
	for (i = 0; i < 30; i++)
		bench_give(test, &p);
	for (i = 0; i < 120; i++)
		KUNIT_EXPECT_EQ(test, bench_wait(), i / 4 + 1);
	/* 30 packets of 4 ms; the sub-segments of the last one are not waited for. */
	KUNIT_EXPECT_GE(test, bench.now_ns, START_NS + 114 * MS);
	KUNIT_EXPECT_LT(test, bench.now_ns, START_NS + 122 * MS);
	EXPECT_DONE(test);
}

/* No packet of the flow leaves between the sub-segments of a packet. */
static void split__is_not_overtaken(struct kunit *test)
{
	struct sock *sk = bench_tcp(0);
	struct packet p = { .sk = sk, .gso = 40 * MSS, .hash = 1, .tstamp = START_NS };
	u32 i;

	sk->sk_pacing_rate = 15140000;
	must_change(test, TCA_TIMELY_SPLIT, 16384);
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	give_timestamped(test, sk, START_NS + 100 * US);
	give_timestamped(test, sk, START_NS - 100 * US);
	give_timestamped(test, sk, START_NS + 2 * MS);
	EXPECT_AUDIT(test);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 4);
	EXPECT_DONE(test);
}

/* Equal timestamps, one packet enqueued before and one after the last sub-segment has left. */
static void split__keeps_the_order_of_later_packets(struct kunit *test)
{
	struct sock *sk = bench_tcp(0);
	struct packet p = { .sk = sk, .gso = 20 * MSS, .hash = 1, .tstamp = START_NS };

	sk->sk_pacing_rate = 15140000;
	must_change(test, TCA_TIMELY_SPLIT, 16384);
	bench_give(test, &p);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	give_timestamped(test, sk, START_NS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	give_timestamped(test, sk, START_NS);
	KUNIT_EXPECT_EQ(test, bench_wait(), 2);
	KUNIT_EXPECT_EQ(test, bench_wait(), 3);
	EXPECT_DONE(test);
}

static void split__counts_as_one_packet(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1448000);
	struct packet p = { .sk = sk, .gso = 40 * MSS, .hash = 1 };

	must_change(test, TCA_TIMELY_SPLIT, 1500, TCA_TIMELY_FLOW_LIMIT, 2,
		    TCA_TIMELY_LIMIT, 2);
	bench_give(test, &p);
	bench_take();
	KUNIT_EXPECT_EQ(test, bench.sch->q.qlen, 39);
	KUNIT_EXPECT_EQ(test, bench_flow(sk)->qlen, 1);
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 2);
	KUNIT_EXPECT_EQ(test, bench_give(test, &p), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.band_drops[1], 1);
	EXPECT_AUDIT(test);
}

/* Another owner reads the same headers and the same gso_size. */
static void split__leaves_a_clone_alone(struct kunit *test)
{
	struct packet p = { .sk = bench_udp(0), .gso = 40 * MSS, .ip_id = 9, .hash = 1 };
	struct sk_buff *skb, *clone;
	u32 i;

	must_change(test, TCA_TIMELY_SPLIT, 16384);
	skb = bench_packet(test, &p);
	clone = skb_clone(skb, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, clone);
	bench.other = clone;
	bench_enqueue(skb);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, bench_wait(), 1);
	KUNIT_EXPECT_EQ(test, bench.other_size, MSS);
	KUNIT_EXPECT_EQ(test, skb_shinfo(clone)->gso_size, MSS);
	KUNIT_EXPECT_EQ(test, skb_shinfo(clone)->gso_segs, 40);
	KUNIT_EXPECT_EQ(test, ntohs(ip_hdr(clone)->id), 9);
	kfree_skb(clone);
	EXPECT_DONE(test);
}

/* Whether the packet still exists in the host, as TCP checks before a retransmission. */
static bool still_here(const struct sk_buff *original, const struct sock *sk)
{
	return skb_fclone_busy(sk, original);
}

/* Enqueue a clone as TCP does, which keeps the packet until it is acknowledged. */
static struct sk_buff *give_tcp_copy(struct kunit *test, const struct packet *p)
{
	struct sk_buff *skb = bench_packet(test, p), *clone = skb_clone(skb, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, clone);
	KUNIT_ASSERT_TRUE(test, clone->fclone == SKB_FCLONE_CLONE);
	clone->sk = skb->sk;
	clone->destructor = skb->destructor;
	skb->sk = NULL;
	skb->destructor = NULL;
	clone->mark = skb->mark;
	KUNIT_EXPECT_EQ(test, bench_enqueue(clone), NET_XMIT_SUCCESS);
	return skb;
}

/* TCP must not regard a packet as sent while sub-segments of it are queued. */
static void split__tcp_sees_queued_subsegments(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1448000);
	struct packet p = { .sk = sk, .gso = 40 * MSS, .hash = 1 };
	struct sk_buff *original[2];
	u32 i;

	must_change(test, TCA_TIMELY_SPLIT, 16384);
	original[0] = give_tcp_copy(test, &p);
	p.seq = 40 * MSS;
	original[1] = give_tcp_copy(test, &p);
	for (i = 0; i < 8; i++) {
		KUNIT_EXPECT_EQ(test, still_here(original[0], sk), i < 4);
		KUNIT_EXPECT_TRUE(test, still_here(original[1], sk));
		KUNIT_EXPECT_EQ(test, bench_wait(), i / 4 + 1);
		EXPECT_AUDIT(test);
	}
	KUNIT_EXPECT_FALSE(test, still_here(original[0], sk));
	KUNIT_EXPECT_FALSE(test, still_here(original[1], sk));
	KUNIT_EXPECT_EQ(test, bench.charged, 0);
	kfree_skb(original[0]);
	kfree_skb(original[1]);
	EXPECT_DONE(test);
}

/* The same when sub-segments are dropped: by a reset, by a lower limit, or with the qdisc. */
static void split__tcp_sees_dropped_subsegments(struct kunit *test)
{
	struct sock *sk = bench_recorded(test, 0, 1448000);
	struct packet p = { .sk = sk, .gso = 40 * MSS, .hash = 1 };
	struct sk_buff *original;
	u32 i;

	for (i = 0; i < 3; i++) {
		bench_anew(test, TCA_TIMELY_SPLIT, 16384);
		original = give_tcp_copy(test, &p);
		bench_wait();
		give_kilo(test, sk, 50);
		give_kilo(test, sk, 51);
		KUNIT_EXPECT_TRUE(test, still_here(original, sk));
		EXPECT_AUDIT(test);
		switch (i) {
		case 0:
			bench_reset();
			break;
		case 1:
			must_change(test, TCA_TIMELY_LIMIT, 1);
			EXPECT_AUDIT(test);
			break;
		case 2:
			bench_destroy();
			break;
		}
		KUNIT_EXPECT_FALSE(test, still_here(original, sk));
		KUNIT_EXPECT_EQ(test, bench.charged, i == 1);
		kfree_skb(original);
		bench_destroy();
		KUNIT_EXPECT_EQ(test, bench.charged, 0);
		KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1);
	}
}

/* Sub-segments have the sizes of the qdisc's size table. */
static void split__by_the_size_table(struct kunit *test)
{
	struct packet p = { .sk = bench_udp(0), .gso = 40 * MSS, .hash = 1 };
	struct qdisc_size_table *stab = kunit_kzalloc(test, sizeof(*stab), GFP_KERNEL);
	struct sk_buff *skb;
	u64 backlog;
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, stab);
	stab->szopts.overhead = 1000;
	must_change(test, TCA_TIMELY_SPLIT, 16384);
	rcu_assign_pointer(bench.sch->stab, stab);
	bench_give(test, &p);
	for (i = 0; i < 4; i++) {
		backlog = bench.sch->qstats.backlog;
		skb = bench_wait_skb();
		KUNIT_ASSERT_NOT_NULL(test, skb);
		KUNIT_EXPECT_EQ(test, qdisc_pkt_len(skb), skb->len + 1000);
		if (i)
			KUNIT_EXPECT_EQ(test, bench.sch->qstats.backlog,
					backlog - skb->len - 1000);
		EXPECT_AUDIT(test);
		kfree_skb(skb);
	}
	RCU_INIT_POINTER(bench.sch->stab, NULL);
	EXPECT_DONE(test);
}

static void split__size_table_of_cells(struct kunit *test)
{
	static const u16 cells[] = { 1, 10, 100 };
	struct qdisc_size_table *stab;

	stab = kunit_kzalloc(test, struct_size(stab, data, ARRAY_SIZE(cells)), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, stab);
	memcpy(stab->data, cells, sizeof(cells));
	stab->szopts.tsize = ARRAY_SIZE(cells);
	stab->szopts.cell_log = 4;
	KUNIT_EXPECT_EQ(test, tq_table_bytes(stab, 0), 1);
	KUNIT_EXPECT_EQ(test, tq_table_bytes(stab, 16), 10);
	KUNIT_EXPECT_EQ(test, tq_table_bytes(stab, 47), 100);
	KUNIT_EXPECT_EQ(test, tq_table_bytes(stab, 48), 100 + 1);
	KUNIT_EXPECT_EQ(test, tq_table_bytes(stab, 7 * 16), 200 + 10);
	stab->szopts.cell_align = -16;
	KUNIT_EXPECT_EQ(test, tq_table_bytes(stab, 0), 1);
	KUNIT_EXPECT_EQ(test, tq_table_bytes(stab, 32), 10);
	stab->szopts.overhead = 16;
	stab->szopts.size_log = 3;
	KUNIT_EXPECT_EQ(test, tq_table_bytes(stab, 32), 800);
	stab->szopts.overhead = -1000;
	KUNIT_EXPECT_EQ(test, tq_table_bytes(stab, 32), 8);
}

/* ---- pure ACKs ---- */

static u32 give_ack(struct kunit *test, struct sock *sk, bool v6, u8 tos)
{
	struct packet p = { .sk = sk, .hash = 1, .ack = true, .v6 = v6, .tos = tos };

	return bench_give(test, &p);
}

static void ack__overtakes_data(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	for (i = 0; i < 5; i++)
		give_plain(test, sk);
	give_ack(test, bench_udp(1), false, 0);
	KUNIT_EXPECT_EQ(test, bench_take(), 1);
	must_change(test, TCA_TIMELY_ACK_FIRST, 1);
	give_ack(test, bench_udp(1), false, 0);
	give_ack(test, sk, true, 0);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench_take(), 7);
	KUNIT_EXPECT_EQ(test, bench_take(), 8);
	KUNIT_EXPECT_EQ(test, bench_take(), 2);
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_first, 2);
	while (bench_take())
		;
	EXPECT_DONE(test);
}

/* ACKs that overtake are in a queue with the same limit as the others. */
static void ack__overtaking_has_a_limit(struct kunit *test)
{
	u32 i;

	must_change(test, TCA_TIMELY_ACK_FIRST, 1, TCA_TIMELY_LIMIT, 50);
	for (i = 0; i < 500; i++)
		give_ack(test, bench_udp(i % 4), false, 0);
	KUNIT_EXPECT_LE(test, bench.sch->q.qlen, 150);
	EXPECT_AUDIT(test);
}

static void ack__dscp(struct kunit *test)
{
	struct sock *sk = bench_udp(0);
	u32 i;

	must_change(test, TCA_TIMELY_ACK_DSCP, 46);
	for (i = 0; i < 8; i++)
		give_ack(test, sk, i & 1, i / 2 | 0x28);
	give_plain(test, sk);
	for (i = 0; i < 8; i++)
		KUNIT_EXPECT_EQ(test, take_tos(test), 46 << 2 | i / 2);
	KUNIT_EXPECT_EQ(test, take_tos(test), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_marked, 8);
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_first, 0);
	must_change(test, TCA_TIMELY_ACK_DSCP, 0);
	give_ack(test, sk, false, 0xfd);
	KUNIT_EXPECT_EQ(test, take_tos(test), 1);
	must_change(test, TCA_TIMELY_ACK_DSCP, TIMELY_DSCP_KEEP);
	give_ack(test, sk, false, 0xfd);
	KUNIT_EXPECT_EQ(test, take_tos(test), 0xfd);
}

static void ack__dscp_of_a_clone(struct kunit *test)
{
	struct packet p = { .sk = bench_udp(0), .hash = 1, .ack = true, .tos = 4 };
	struct sk_buff *skb = bench_packet(test, &p), *clone;

	must_change(test, TCA_TIMELY_ACK_DSCP, 46);
	clone = skb_clone(skb, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, clone);
	bench_enqueue(skb);
	KUNIT_EXPECT_EQ(test, take_tos(test), 46 << 2);
	KUNIT_EXPECT_EQ(test, ip_hdr(clone)->tos, 4);
	kfree_skb(clone);
}

/* A pure ACK that a later one may replace. */
static const struct packet plain_ack = {
	.hash = 1, .seq = 5, .ack_seq = U32_MAX - 1, .flags = TCPHDR_ACK, .ack = true,
	.stamped = true,
};

/* Give plain_ack and then @later. Return: how many packets are queued; they are taken. */
static u32 queued_with(struct kunit *test, const struct packet *later)
{
	struct packet first = plain_ack, second = *later;
	u32 queued;

	first.sk = bench_udp(0);
	first.v6 = later->v6;
	if (!second.sk)
		second.sk = first.sk;
	bench_give(test, &first);
	bench_give(test, &second);
	EXPECT_AUDIT(test);
	queued = bench.sch->q.qlen;
	while (bench_take())
		;
	EXPECT_DONE(test);
	return queued;
}

static void ack__replaces_one_that_waits(struct kunit *test)
{
	struct packet p = plain_ack;
	struct sk_buff *skb;

	/* 3 comes after U32_MAX - 1. */
	p.ack_seq = 3;
	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 1);
	p.v6 = true;
	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 1);
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_thinned, 2);
	KUNIT_EXPECT_EQ(test, bench.sch->qstats.drops, 0);

	/* The later one leaves, in the place of the earlier one. */
	p = plain_ack;
	p.sk = bench_udp(0);
	bench_give(test, &p);
	give_plain(test, bench_udp(1));
	p.ack_seq = 3;
	bench_give(test, &p);
	skb = bench_take_skb();
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, ntohl(tcp_hdr(skb)->ack_seq), 3);
	kfree_skb(skb);
	KUNIT_EXPECT_GT(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench_take(), 0);
	must_change(test, TCA_TIMELY_ACK_THIN, 0);
	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 2);
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_thinned, 3);
}

/* Nothing is lost that the sender needs: duplicate ACKs, SACK blocks, flags, data. */
static void ack__replaces_no_other(struct kunit *test)
{
	static const u8 flags[] = {
		TCPHDR_ACK | TCPHDR_ECE, TCPHDR_ACK | TCPHDR_CWR, TCPHDR_ACK | TCPHDR_PSH,
		TCPHDR_ACK | TCPHDR_FIN, TCPHDR_ACK | TCPHDR_RST, TCPHDR_ACK | TCPHDR_URG,
	};
	struct packet later = plain_ack, p = plain_ack;
	u32 i;

	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 2);
	p.ack_seq--;
	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 2);
	later.ack_seq = 3;
	p = later;
	p.stamped = false;
	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 2);
	p = later;
	p.seq++;
	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 2);
	p = later;
	p.ack = false;
	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 2);
	p = later;
	p.frag_off = IP_MF;
	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 2);
	p = later;
	p.sk = bench_udp(1);
	KUNIT_EXPECT_EQ(test, queued_with(test, &p), 2);
	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		p = later;
		p.flags = flags[i];
		KUNIT_EXPECT_EQ_MSG(test, queued_with(test, &p), 2, "flags %#x", flags[i]);
	}
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_thinned, 0);
}

/* Give a packet with the IPv4 ID 7 and take it. Return: its ID afterwards. */
static u32 id_after(struct kunit *test, struct packet *p)
{
	struct sk_buff *skb;
	u32 id;

	p->ip_id = 7;
	bench_give(test, p);
	skb = bench_take_skb();
	KUNIT_ASSERT_NOT_NULL(test, skb);
	KUNIT_EXPECT_EQ(test, ip_fast_csum((u8 *)ip_hdr(skb), ip_hdr(skb)->ihl), 0);
	id = ntohs(ip_hdr(skb)->id);
	kfree_skb(skb);
	return id;
}

static void ack__time(struct kunit *test)
{
	struct packet p = { .sk = bench_udp(0), .hash = 1, .ack = true };
	u32 first;

	first = id_after(test, &p);
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_timed, 1);
	bench.now_ns += 1000;
	KUNIT_EXPECT_EQ(test, id_after(test, &p), timely_ack_time_id((first >> 3) + 1));
	must_change(test, TCA_TIMELY_ACK_TIME, 0);
	KUNIT_EXPECT_EQ(test, id_after(test, &p), 7);
	must_change(test, TCA_TIMELY_ACK_TIME, 1, TCA_TIMELY_ACK_DSCP, 46, TCA_TIMELY_ACK_FIRST, 1);
	bench.now_ns += 5000;
	KUNIT_EXPECT_EQ(test, id_after(test, &p), timely_ack_time_id((first >> 3) + 6));
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_timed, 3);
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_marked, 1);
	EXPECT_DONE(test);
}

/* Other packets keep their IDs: those with data, those that may be fragmented, and IPv6. */
static void ack__time_only_of_acks(struct kunit *test)
{
	static const u16 frag_offs[] = { IP_CE, IP_MF, 185, IP_DF | IP_MF, IP_DF | 185 };
	struct packet p = { .sk = bench_udp(0), .hash = 1 };
	u32 i;

	KUNIT_EXPECT_EQ(test, id_after(test, &p), 7);
	p.ack = true;
	for (i = 0; i < ARRAY_SIZE(frag_offs); i++) {
		p.frag_off = frag_offs[i];
		KUNIT_EXPECT_EQ(test, id_after(test, &p), 7);
	}
	give_ack(test, bench_udp(0), true, 0);
	KUNIT_EXPECT_GT(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_timed, 0);
}

static void ack__time_of_a_clone(struct kunit *test)
{
	struct packet p = { .sk = bench_udp(0), .hash = 1, .ack = true, .ip_id = 7 };
	struct sk_buff *skb = bench_packet(test, &p), *clone;

	clone = skb_clone(skb, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, clone);
	bench_enqueue(skb);
	KUNIT_EXPECT_GT(test, bench_take(), 0);
	KUNIT_EXPECT_EQ(test, bench.q->stats.acks_timed, 1);
	KUNIT_EXPECT_EQ(test, ntohs(ip_hdr(clone)->id), 7);
	kfree_skb(clone);
}

static void ack__priority(struct kunit *test)
{
	struct sock *sk = bench_udp(0);

	must_change(test, TCA_TIMELY_ACK_PRIORITY, TC_PRIO_CONTROL);
	give_ack(test, sk, false, 0);
	KUNIT_EXPECT_EQ(test, bench.q->bands[0].packets, 1);
	give_plain(test, sk);
	KUNIT_EXPECT_EQ(test, bench.q->bands[1].packets, 1);
	EXPECT_AUDIT(test);
}

/* ---- options ---- */

static struct tq_options options_now(void)
{
	return bench.q->options;
}

/* Each number: the limits are accepted; values beyond are refused and change nothing. */
static void change__ends_of_ranges(struct kunit *test)
{
	u32 i;

	for (i = 0; i < TQ_O_COUNT; i++) {
		const struct timely_option_desc *desc = &tq_option_descs[i];
		u64 widest = desc->bits == 8 ? U8_MAX : desc->bits == 32 ? U32_MAX : U64_MAX;
		struct tq_options before;

		if (desc->type == TCA_TIMELY_OFFLOAD_HORIZON)
			continue;
		KUNIT_EXPECT_EQ(test, bench_change(test, desc->type, desc->min), 0);
		KUNIT_EXPECT_EQ(test, bench.q->options.value[i], desc->min);
		KUNIT_EXPECT_EQ(test, bench_change(test, desc->type, desc->max), 0);
		KUNIT_EXPECT_EQ(test, bench.q->options.value[i], desc->max);
		before = options_now();
		if (desc->min && desc->min - 1 != desc->initial)
			KUNIT_EXPECT_EQ(test, bench_change(test, TCA_TIMELY_LIMIT, 77, desc->type,
							   desc->min - 1), -EINVAL);
		if (desc->max < widest && desc->max + 1 != desc->initial)
			KUNIT_EXPECT_EQ(test, bench_change(test, TCA_TIMELY_LIMIT, 77, desc->type,
							   desc->max + 1), -EINVAL);
		KUNIT_EXPECT_EQ(test, memcmp(&before, &bench.q->options, sizeof(before)), 0);
		KUNIT_EXPECT_EQ(test, bench.sch->limit, before.value[TQ_O_limit]);
	}
	EXPECT_AUDIT(test);
}

static void change__offload_without_device_support(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, bench_change(test, TCA_TIMELY_OFFLOAD_HORIZON, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, bench_change(test, TCA_TIMELY_OFFLOAD_HORIZON, 0), 0);
}

static int change_raw(struct kunit *test, u32 type, const void *data, u32 bytes)
{
	struct sk_buff *attrs = alloc_skb(OPTION_BYTES, GFP_KERNEL);
	struct nlattr *nest;
	int err;

	KUNIT_ASSERT_NOT_NULL(test, attrs);
	nest = nla_nest_start_noflag(attrs, TCA_OPTIONS);
	nla_put(attrs, type, bytes, data);
	nla_nest_end(attrs, nest);
	err = bench_change_attrs(attrs);
	kfree_skb(attrs);
	return err;
}

static void change__invalid_bands(struct kunit *test)
{
	struct tc_prio_qopt priomap = {
		.bands = TIMELY_BANDS, .priomap = TIMELY_QDISC_DEFAULT_PRIOMAP
	};
	s32 weights[TIMELY_BANDS] = TIMELY_QDISC_DEFAULT_WEIGHTS;
	struct tq_options before = options_now();

	KUNIT_EXPECT_EQ(test, change_raw(test, TCA_TIMELY_PRIOMAP, &priomap,
					 sizeof(priomap)), 0);
	priomap.bands = 2;
	KUNIT_EXPECT_EQ(test, change_raw(test, TCA_TIMELY_PRIOMAP, &priomap,
					 sizeof(priomap)), -EINVAL);
	priomap.bands = 3;
	priomap.priomap[15] = 3;
	KUNIT_EXPECT_EQ(test, change_raw(test, TCA_TIMELY_PRIOMAP, &priomap,
					 sizeof(priomap)), -EINVAL);
	weights[2] = TIMELY_QDISC_MIN_WEIGHT - 1;
	KUNIT_EXPECT_EQ(test, change_raw(test, TCA_TIMELY_WEIGHTS, weights,
					 sizeof(weights)), -EINVAL);
	weights[2] = -1;
	KUNIT_EXPECT_EQ(test, change_raw(test, TCA_TIMELY_WEIGHTS, weights,
					 sizeof(weights)), -EINVAL);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &bench.q->options, sizeof(before)), 0);
}

static void change__invalid_attributes(struct kunit *test)
{
	struct tq_options before = options_now();
	u64 number = 1;
	u32 type, bytes;

	for (type = 1; type <= TCA_TIMELY_MAX + 1; type++)
		for (bytes = 0; bytes < 8; bytes += 3)
			KUNIT_EXPECT_NE(test, change_raw(test, type, &number, bytes), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &bench.q->options, sizeof(before)), 0);
}

/* Enqueue packets in every state that a packet can have. */
static void fill(struct kunit *test)
{
	struct sock *recorded = bench_recorded(test, 0, 1448000);
	struct packet p = { .sk = recorded, .gso = 40 * MSS, .hash = 1 };
	u32 i;

	must_change(test, TCA_TIMELY_SPLIT, 3000, TCA_TIMELY_ACK_FIRST, 1,
		    TCA_TIMELY_BUCKETS_LOG, 2, TCA_TIMELY_ORPHAN_MASK, U32_MAX);
	/* Sub-segments, before whole packets. */
	bench_give(test, &p);
	bench_take();
	bench_give(test, &p);
	bench_take();
	/* Waiting packets, some with timestamps out of order, near and far. */
	for (i = 0; i < 20; i++)
		give_timestamped(test, bench_udp(1), START_NS + (20 - i) * 300 * MS);
	bench_take();
	/* Ready packets, with and without a socket. */
	for (i = 0; i < 30; i++) {
		p = plain(i % 2 ? bench_udp(2) : NULL);
		p.hash = i;
		p.priority = i % 2 ? TC_PRIO_INTERACTIVE : i;
		bench_give(test, &p);
	}
	/* A packet without a flow. */
	give_ack(test, bench_udp(3), false, 0);
	give_ack(test, bench_udp(3), true, 0);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_GT(test, bench.q->throttled, 0);
	KUNIT_EXPECT_GT(test, bench.q->ready, 0);
	KUNIT_EXPECT_GT(test, bench.q->bypass_qlen, 0);
}

static void change__with_packets_everywhere(struct kunit *test)
{
	u32 slot, log, n = 0;

	fill(test);
	for (slot = 256; slot <= 1048576; slot *= 16) {
		for (log = 1; log <= 12; log += 3) {
			KUNIT_EXPECT_EQ(test, bench_change(test, TCA_TIMELY_SLOT, slot,
							   TCA_TIMELY_BUCKETS_LOG, log), 0);
			EXPECT_AUDIT(test);
			bench_wait();
			EXPECT_AUDIT(test);
		}
	}
	must_change(test, TCA_TIMELY_SLOT, 1000, TCA_TIMELY_SPLIT, 0);
	while (bench_wait() && n++ < 1000)
		;
	EXPECT_DONE(test);
}

/* Pacing, lazy enforcement and timestamps are turned on and off while packets wait. */
static void change__pacing_and_timestamp_options(struct kunit *test)
{
	u32 i, n = 0;

	fill(test);
	for (i = 0; i < 16; i++) {
		KUNIT_EXPECT_EQ(test, bench_change(test, TCA_TIMELY_PACING, i & 1,
						   TCA_TIMELY_LAZY, i >> 1 & 1,
						   TCA_TIMELY_MAXRATE, i & 4 ? 1000000 : U64_MAX,
						   TCA_TIMELY_SPLIT, i & 8 ? 20000 : 3000), 0);
		EXPECT_AUDIT(test);
		bench_wait();
		EXPECT_AUDIT(test);
	}
	while (bench_wait() && n++ < 1000)
		;
	EXPECT_DONE(test);
}

static void change__a_lower_limit(struct kunit *test)
{
	static const u32 limits[] = { 20, 5, 1 };
	u32 i, n = 0;

	fill(test);
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		KUNIT_EXPECT_EQ(test, bench_change(test, TCA_TIMELY_LIMIT, limits[i]), 0);
		EXPECT_AUDIT(test);
		KUNIT_EXPECT_LE(test, bench.q->bands[0].packets, limits[i]);
		KUNIT_EXPECT_LE(test, bench.q->bands[1].packets, limits[i]);
		KUNIT_EXPECT_LE(test, bench.q->bands[2].packets, limits[i]);
	}
	while (bench_wait() && n++ < 1000)
		;
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.sch->q.qlen, 0);
}

/* A change that is refused for lack of memory changes nothing. */
static void change__without_memory(struct kunit *test)
{
	struct tq_options before;
	struct tq_config config;
	u32 n, failed = 0, left = 0;

	fill(test);
	before = options_now();
	config = bench.q->config;
	for (n = 1; n < 20; n++) {
		bench.fail_at = bench.asked + n;
		if (!bench_change(test, TCA_TIMELY_SLOT, 65536, TCA_TIMELY_BUCKETS_LOG, 12,
				  TCA_TIMELY_QUANTUM, 9999, TCA_TIMELY_LIMIT, 1))
			break;
		failed++;
		KUNIT_EXPECT_EQ(test, memcmp(&before, &bench.q->options, sizeof(before)), 0);
		KUNIT_EXPECT_EQ(test, memcmp(&config, &bench.q->config, sizeof(config)), 0);
		KUNIT_EXPECT_EQ(test, bench.sch->limit, before.value[TQ_O_limit]);
		EXPECT_AUDIT(test);
	}
	bench.fail_at = 0;
	KUNIT_EXPECT_GE(test, failed, 3);
	KUNIT_EXPECT_LT(test, n, 20);
	while (bench_wait() && left++ < 1000)
		;
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.sch->q.qlen, 0);
}

/* A change is made in process context: its allocations may sleep. */
static void change__may_wait_for_memory(struct kunit *test)
{
	bench_anew(test, TCA_TIMELY_BUCKETS_LOG, 14);
	must_change(test, TCA_TIMELY_BUCKETS_LOG, 16, TCA_TIMELY_SLOT, 65536);
	KUNIT_EXPECT_EQ(test, bench.q->table.buckets, 1 << 16);
	KUNIT_EXPECT_EQ(test, bench.hurried, 0);
	EXPECT_AUDIT(test);
}

static void init__without_memory(struct kunit *test)
{
	u32 n;

	for (n = 1; n < 10; n++) {
		bench_destroy();
		bench.fail_at = bench.asked + n;
		if (bench_make())
			break;
	}
	bench.fail_at = 0;
	KUNIT_EXPECT_GE(test, n, 4);
	KUNIT_ASSERT_NOT_NULL(test, bench.sch);
	EXPECT_AUDIT(test);
}

/* ---- allocation failures in the path of a packet ---- */

/*
 * One packet of each kind passes while the n-th operation that may fail does fail, for every n:
 * each packet leaves or is dropped.
 */
static u32 pass_all_kinds(struct kunit *test)
{
	struct packet p = { .gso = 20 * MSS, .hash = 1 };
	struct sk_buff *skb, *clone;
	u32 i, asked = bench.asked;

	for (i = 0; i < 3; i++) {
		p.sk = i ? bench_udp(i) : NULL;
		p.v6 = i == 2;
		skb = bench_packet(test, &p);
		clone = i ? skb_clone(skb, GFP_KERNEL) : NULL;
		bench_enqueue(skb);
		kfree_skb(clone);
		give_ack(test, bench_udp(3), i, 0);
	}
	for (i = 0; i < 100 && bench_wait(); i++)
		;
	return bench.asked - asked;
}

static void enqueue__without_memory(struct kunit *test)
{
	u32 n, most;

	for (n = 0, most = 1; n <= most; n++) {
		bench_anew(test, TCA_TIMELY_SPLIT, 3000, TCA_TIMELY_ACK_DSCP, 46,
			   TCA_TIMELY_BUCKETS_LOG, 1, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED);
		bench.fail_at = n ? bench.asked + n : 0;
		if (n)
			pass_all_kinds(test);
		else
			most = pass_all_kinds(test);
		bench.fail_at = 0;
		EXPECT_DONE(test);
		KUNIT_EXPECT_EQ(test, bench.dropped, 0);
		KUNIT_EXPECT_EQ(test, bench.charged, 0);
		KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1);
		bench.now_ns += SECOND;
	}
	/* Flows, sub-segments, marks; or no operation has failed. */
	KUNIT_EXPECT_GE(test, most, 9);
}

static void enqueue__no_memory_for_any_flow(struct kunit *test)
{
	u32 i;

	must_change(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED);
	for (i = 1; i <= 20; i++) {
		bench.fail_at = bench.asked + 1;
		KUNIT_EXPECT_EQ(test, give_plain(test, bench_udp(0)), i);
	}
	KUNIT_EXPECT_EQ(test, bench.q->stats.allocation_errors, 20);
	EXPECT_AUDIT(test);
	for (i = 1; i <= 20; i++)
		KUNIT_EXPECT_EQ(test, bench_take(), i);
	EXPECT_DONE(test);
}

/* ---- dump ---- */

static void dump__gives_back_what_was_set(struct kunit *test)
{
	struct sk_buff *attrs = alloc_skb(OPTION_BYTES, GFP_KERNEL);
	struct tq_options before;
	struct nlattr *attr;
	int left;

	KUNIT_ASSERT_NOT_NULL(test, attrs);
	must_change(test, TCA_TIMELY_SLOT, 3000, TCA_TIMELY_MAXRATE, 12345678901ULL,
		    TCA_TIMELY_ACK_DSCP, 8, TCA_TIMELY_QUANTUM, 100);
	before = options_now();
	KUNIT_EXPECT_GT(test, tq_dump(bench.sch, attrs), 0);
	bench_destroy();
	KUNIT_ASSERT_TRUE(test, bench_make());
	KUNIT_EXPECT_NE(test, memcmp(&before, &bench.q->options, sizeof(before)), 0);
	nla_for_each_nested(attr, (struct nlattr *)attrs->data, left)
		if (nla_type(attr) != TCA_TIMELY_PAD)
			KUNIT_EXPECT_EQ(test, change_raw(test, nla_type(attr), nla_data(attr),
							 nla_len(attr)), 0);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &bench.q->options, sizeof(before)), 0);
	kfree_skb(attrs);
}

static void dump__into_too_little_room(struct kunit *test)
{
	struct sk_buff *attrs = alloc_skb(OPTION_BYTES, GFP_KERNEL);
	u32 room, tail, bytes;

	KUNIT_ASSERT_NOT_NULL(test, attrs);
	KUNIT_EXPECT_GT(test, tq_dump(bench.sch, attrs), 0);
	bytes = attrs->len;
	skb_trim(attrs, 0);
	for (room = 0; room < bytes; room += 4) {
		tail = skb_tailroom(attrs) - room;
		skb_put(attrs, tail);
		KUNIT_EXPECT_EQ(test, tq_dump(bench.sch, attrs), -EMSGSIZE);
		KUNIT_EXPECT_EQ(test, attrs->len, tail);
		skb_trim(attrs, 0);
	}
	kfree_skb(attrs);
}

static void dump_stats__counts(struct kunit *test)
{
	struct sk_buff *skb = alloc_skb(OPTION_BYTES, GFP_KERNEL);
	struct tc_timely_stats *stats;
	struct gnet_dump d;

	KUNIT_ASSERT_NOT_NULL(test, skb);
	fill(test);
	KUNIT_EXPECT_EQ(test, gnet_stats_start_copy(skb, TCA_STATS2, NULL, &d,
						    TCA_STATS_PAD), 0);
	rtnl_lock();
	KUNIT_EXPECT_EQ(test, tq_dump_stats(bench.sch, &d), 0);
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, gnet_stats_finish_copy(&d), 0);
	/* Headers of the nest and of the attribute, and padding if there is any. */
	stats = (void *)(skb_tail_pointer(skb) - sizeof(*stats));
	KUNIT_EXPECT_EQ(test, stats->flows, bench.q->flows);
	KUNIT_EXPECT_EQ(test, stats->throttled_flows, bench.q->throttled);
	KUNIT_EXPECT_EQ(test, stats->inactive_flows, bench.q->inactive);
	KUNIT_EXPECT_EQ(test, stats->band_pkt_count[1], bench.q->bands[1].packets);
	KUNIT_EXPECT_EQ(test, stats->buckets_log, 10);
	KUNIT_EXPECT_GT(test, stats->time_next_delayed_flow, 0);
	KUNIT_EXPECT_LE(test, stats->time_next_delayed_flow, (s64)SECOND);
	KUNIT_EXPECT_EQ(test, stats->acks_first, 2);
	kfree_skb(skb);
}

/* ---- destruction ---- */

static void reset__with_packets_everywhere(struct kunit *test)
{
	u32 i;

	fill(test);
	bench_reset();
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.sch->q.qlen, 0);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 0);
	KUNIT_EXPECT_EQ(test, bench.charged, 0);
	KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1);
	KUNIT_EXPECT_EQ(test, refcount_read(&bench.entry[0]->ref), 1);
	KUNIT_EXPECT_EQ(test, bench.armed_ns, U64_MAX);
	/* The qdisc works as before. */
	bench.made_bytes = 0;
	bench.sent_bytes = 0;
	bench.dropped_bytes = 0;
	for (i = 0; i < 20; i++)
		give_timestamped(test, bench_udp(i % 4), START_NS + i * US);
	for (i = 0; i < 20; i++)
		KUNIT_EXPECT_NE(test, bench_wait(), 0);
	EXPECT_DONE(test);
}

static void destroy__with_packets_everywhere(struct kunit *test)
{
	fill(test);
	bench.woken = 0;
	bench_set_rate(0, 1000000000);
	KUNIT_EXPECT_GT(test, bench.woken, 0);
	/* bench_exit() checks what is left. */
	bench_destroy();
	KUNIT_EXPECT_EQ(test, bench.charged, 0);
	KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1);
	/* No queue may be woken now. */
	bench.woken = 0;
	timely_flow_pause(bench.entry[0], START_NS + SECOND);
	KUNIT_EXPECT_EQ(test, bench.woken, 0);
}

static void reset__of_a_table_that_has_grown(struct kunit *test)
{
	bench_anew(test, TCA_TIMELY_MAXRATE, NEARLY_UNLIMITED, TCA_TIMELY_BUCKETS_LOG, 1,
		   TCA_TIMELY_ORPHAN_MASK, U32_MAX);
	give_flows(test, 1, 700);
	bench_reset();
	EXPECT_AUDIT(test);
	give_flows(test, 300, 2000);
	EXPECT_AUDIT(test);
	KUNIT_EXPECT_EQ(test, bench.q->flows, 1701);
	bench_destroy();
	KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1);
}

/* ---- random operations ---- */

static u32 soak_below(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

static void soak_give(struct kunit *test, struct rnd_state *rnd)
{
	u32 kind = soak_below(rnd, 16), i = soak_below(rnd, BENCH_SOCKS);
	struct packet p = {
		.sk = bench.sk[i], .hash = soak_below(rnd, 64),
		.priority = soak_below(rnd, 16), .v6 = soak_below(rnd, 2),
		.udp = i >= 4,
	};

	if (kind < 4)
		p.gso = MSS * (2 + soak_below(rnd, 40));
	else if (kind == 4 && !p.udp)
		p.ack = true;
	else
		p.len = 100 + soak_below(rnd, 1400);
	if (i == 7)
		p.sk = NULL;
	if (soak_below(rnd, 4) == 0)
		p.tstamp = bench.now_ns + soak_below(rnd, 20 * MS) - soak_below(rnd, MS);
	bench_give(test, &p);
}

static void soak_change(struct kunit *test, struct rnd_state *rnd)
{
	int err = bench_change(test, TCA_TIMELY_LAZY, soak_below(rnd, 4) != 0,
			       TCA_TIMELY_PACING, soak_below(rnd, 8) != 0,
			       TCA_TIMELY_SPLIT, soak_below(rnd, 2) * soak_below(rnd, 30000),
			       TCA_TIMELY_SPLIT_RATE, soak_below(rnd, 2) * 125000000ULL,
			       TCA_TIMELY_ACK_FIRST, soak_below(rnd, 2),
			       TCA_TIMELY_ACK_TIME, soak_below(rnd, 2),
			       TCA_TIMELY_SLOT, 256 << soak_below(rnd, 13),
			       TCA_TIMELY_BUCKETS_LOG, 1 + soak_below(rnd, 12),
			       TCA_TIMELY_MAXRATE, soak_below(rnd, 2) ? 50000000 : U64_MAX,
			       TCA_TIMELY_FLOW_LIMIT, 20 + soak_below(rnd, 200));

	if (err != -ENOMEM)
		KUNIT_EXPECT_EQ(test, err, 0);
}

static void soak_step(struct kunit *test, struct rnd_state *rnd)
{
	u32 i = soak_below(rnd, 4);

	switch (soak_below(rnd, 64)) {
	case 0:
		soak_change(test, rnd);
		break;
	case 1:
		timely_flow_pause(bench.entry[i], bench.now_ns + soak_below(rnd, 5 * MS));
		break;
	case 2:
	case 3:
	case 4:
		bench_set_rate(i, 1000000ULL << soak_below(rnd, 12));
		break;
	case 5:
		bench.sk[4 + soak_below(rnd, 3)]->sk_hash++;
		break;
	case 6:
		bench.no_pages = !bench.no_pages;
		break;
	case 7:
		/* Mostly beyond the number of operations that follow. */
		bench.fail_at = bench.asked + soak_below(rnd, 20);
		break;
	case 8 ... 30:
		soak_give(test, rnd);
		break;
	case 31 ... 33:
		bench.now_ns += soak_below(rnd, MS);
		break;
	case 34:
		bench_reap(soak_below(rnd, 8) ? 0 : soak_below(rnd, 5) * SECOND);
		break;
	case 35:
		bench.no_budget = !soak_below(rnd, 4);
		break;
	default:
		bench_wait();
	}
}

/* All operations in random order, with an audit after each. */
static void all__in_random_order(struct kunit *test)
{
	struct rnd_state rnd;
	const char *fault;
	u32 i, n = 0;

	prandom_seed_state(&rnd, 20150817);
	for (i = 0; i < 4; i++)
		bench_recorded(test, i, 10000000);
	for (; i < BENCH_SOCKS; i++)
		bench_udp(i);
	for (i = 0; i < 30000; i++) {
		soak_step(test, &rnd);
		fault = bench_audit();
		KUNIT_ASSERT_NULL_MSG(test, fault, "step %u: %s", i, fault);
	}
	bench.fail_at = 0;
	while (bench_wait() && n++ < 10000)
		;
	EXPECT_DONE(test);
	KUNIT_EXPECT_EQ(test, page_ref_count(bench.page), 1);
	KUNIT_EXPECT_EQ(test, bench.charged, 0);
	KUNIT_EXPECT_GT(test, bench.q->stats.segmented, 0);
	KUNIT_EXPECT_GT(test, bench.q->stats.put_back, 0);
	KUNIT_EXPECT_GT(test, bench.q->stats.brought_forward, 0);
	KUNIT_EXPECT_GT(test, bench.q->stats.departures, 0);
	KUNIT_EXPECT_GT(test, bench.q->stats.allocation_errors, 0);
	KUNIT_EXPECT_GT(test, bench.q->stats.gc_flows, 0);
	KUNIT_EXPECT_GT(test, bench.q->stats.shared_packets, 0);
}

/* Return: false if the packet has overtaken another one of its socket. */
static bool soak_in_order(struct sk_buff *skb, u32 *last)
{
	bool good;
	u32 i;

	for (i = 0; i < BENCH_SOCKS && bench.sk[i] != skb->sk; i++)
		;
	good = i < BENCH_SOCKS && skb->mark >= last[i];
	if (good)
		last[i] = skb->mark;
	kfree_skb(skb);
	return good;
}

/* Rates, pauses and options change; packets of a flow never overtake each other. */
static void all__in_each_flows_order(struct kunit *test)
{
	u32 i, n = 0, last[BENCH_SOCKS] = {};
	struct rnd_state rnd;
	struct sk_buff *skb;
	struct packet p;

	prandom_seed_state(&rnd, 20150818);
	for (i = 0; i < BENCH_SOCKS; i++)
		if (i < 4)
			bench_recorded(test, i, 10000000);
		else
			bench_udp(i);
	must_change(test, TCA_TIMELY_SPLIT, 3000, TCA_TIMELY_FLOW_LIMIT, 1000);
	for (i = 0; i < 20000; i++) {
		u32 s = soak_below(&rnd, BENCH_SOCKS);

		p = plain(bench.sk[s]);
		switch (soak_below(&rnd, 16)) {
		case 0:
			timely_flow_pause(bench.entry[s % 4], bench.now_ns + soak_below(&rnd, MS));
			break;
		case 1:
			bench_set_rate(s, 10000000ULL << soak_below(&rnd, 8));
			break;
		case 2:
			must_change(test, TCA_TIMELY_SLOT, 256 << soak_below(&rnd, 9),
				    TCA_TIMELY_SPLIT, 1500 * soak_below(&rnd, 9),
				    TCA_TIMELY_SPLIT_RATE, soak_below(&rnd, 2) * 1250000000ULL);
			break;
		case 3:
		case 4:
			p.gso = MSS * (2 + soak_below(&rnd, 20));
			p.udp = s >= 4;
			fallthrough;
		case 5 ... 7:
			/* The order of these flows is not checked. */
			if (s < 4 && soak_below(&rnd, 2))
				p.tstamp = bench.now_ns + soak_below(&rnd, MS);
			bench_give(test, &p);
			break;
		default:
			skb = bench_wait_skb();
			if (skb)
				KUNIT_ASSERT_TRUE(test, soak_in_order(skb, last));
		}
	}
	while ((skb = bench_wait_skb()) && n++ < 10000)
		KUNIT_ASSERT_TRUE(test, soak_in_order(skb, last));
	EXPECT_DONE(test);
}

static struct kunit_case qdisc_cases[] = {
	KUNIT_CASE(enqueue__waits_until_the_timestamp),
	KUNIT_CASE(enqueue__timestamp_in_the_past),
	KUNIT_CASE(enqueue__orders_by_timestamp),
	KUNIT_CASE(enqueue__equal_timestamps_keep_their_order),
	KUNIT_CASE(enqueue__an_earlier_timestamp_moves_the_flow),
	KUNIT_CASE(enqueue__horizon_drops),
	KUNIT_CASE(enqueue__horizon_caps),
	KUNIT_CASE(enqueue__wrong_clock_goes_at_once),
	KUNIT_CASE(enqueue__wrong_clock_drops),
	KUNIT_CASE(enqueue__converts_other_clocks),
	KUNIT_CASE(enqueue__timestamps_near_time_zero),
	KUNIT_CASE(enqueue__flow_limit),
	KUNIT_CASE(enqueue__band_limit),
	KUNIT_CASE(enqueue__priomap),
	KUNIT_CASE(dequeue__slots_by_quantum),
	KUNIT_CASE(dequeue__new_flows_first),
	KUNIT_CASE(dequeue__returning_flow_waits_for_old_flows),
	KUNIT_CASE(dequeue__bands_by_weight),
	KUNIT_CASE(charge__by_the_sockets_rate),
	KUNIT_CASE(charge__the_last_of_the_credit),
	KUNIT_CASE(charge__low_rates_packet_by_packet),
	KUNIT_CASE(charge__maxrate),
	KUNIT_CASE(charge__makes_good_a_late_timer),
	KUNIT_CASE(charge__at_most_a_second),
	KUNIT_CASE(charge__no_pacing),
	KUNIT_CASE(charge__pacing_switched_off),
	KUNIT_CASE(start__refills_the_credit),
	KUNIT_CASE(send__marks_by_queueing_time),
	KUNIT_CASE(send__marks_by_the_time_past_due),
	KUNIT_CASE(classify__by_socket),
	KUNIT_CASE(classify__by_hash_without_a_socket),
	KUNIT_CASE(classify__sockets_that_are_no_connection),
	KUNIT_CASE(classify__rate_of_an_unconnected_socket),
	KUNIT_CASE(classify__rate_without_a_limit),
	KUNIT_CASE(classify__memory_of_another_socket),
	KUNIT_CASE(classify__fast_path),
	KUNIT_CASE(classify__fast_path_is_not_for_all),
	KUNIT_CASE(classify__a_flows_packets_are_not_overtaken),
	KUNIT_CASE(gc__forgets_idle_flows),
	KUNIT_CASE(grow__keeps_every_flow),
	KUNIT_CASE(grow__without_memory),
	KUNIT_CASE(grow__by_a_change),
	KUNIT_CASE(merge__keeps_every_flow),
	KUNIT_CASE(reap__frees_flows_and_buckets),
	KUNIT_CASE(reap__in_time),
	KUNIT_CASE(reap__leaves_flows_with_packets),
	KUNIT_CASE(reap__frees_flows_in_turn),
	KUNIT_CASE(reap__puts_closed_entries),
	KUNIT_CASE(reap__puts_entries_of_idle_flows),
	KUNIT_CASE(budget__flows_share_queues),
	KUNIT_CASE(due__the_rate_falls_while_it_waits),
	KUNIT_CASE(due__the_rate_rises_while_it_waits),
	KUNIT_CASE(due__the_rate_rises_just_before_it_waits),
	KUNIT_CASE(due__the_rate_rises_past_now),
	KUNIT_CASE(due__not_lazy),
	KUNIT_CASE(due__timestamps_of_flows_with_entries),
	KUNIT_CASE(due__timestamps_that_are_not_tcps),
	KUNIT_CASE(due__keeps_to_the_rate),
	KUNIT_CASE(record__departures),
	KUNIT_CASE(record__each_while_there_is_room),
	KUNIT_CASE(record__estimate_for_an_ack_of_many),
	KUNIT_CASE(record__estimates_know_the_earliest_departure),
	KUNIT_CASE(record__a_subset_when_many_are_in_flight),
	KUNIT_CASE(record__a_subset_ahead_of_time),
	KUNIT_CASE(record__is_kept_for_two_round_trips),
	KUNIT_CASE(entry__closed_while_packets_wait),
	KUNIT_CASE(record__none_after_close),
	KUNIT_CASE(queues__both_wait),
	KUNIT_CASE(queues__there_and_back),
	KUNIT_CASE(queues__notification_follows_the_flow),
	KUNIT_CASE(queues__an_empty_one_is_not_notified),
	KUNIT_CASE(queues__two_sockets_share_an_entry),
	KUNIT_CASE(find_entry__old_rtts_do_not_count),
	KUNIT_CASE(pause__stops_the_flow),
	KUNIT_CASE(pause__counts_waits),
	KUNIT_CASE(pause__ipv6_with_options),
	KUNIT_CASE(pause__big_tcp),
	KUNIT_CASE(pause__fin_stays_behind_its_data),
	KUNIT_CASE(pause__other_empty_packets),
	KUNIT_CASE(record__data_with_a_fin),
	KUNIT_CASE(record__no_departures_of_fragments),
	KUNIT_CASE(pause__is_apart_from_pacing),
	KUNIT_CASE(pause__made_longer_and_shorter),
	KUNIT_CASE(split__into_subsegments),
	KUNIT_CASE(split__udp),
	KUNIT_CASE(split__udp_is_paced),
	KUNIT_CASE(pacing__is_left_to_the_device),
	KUNIT_CASE(split__keeps_a_fixed_id),
	KUNIT_CASE(split__not),
	KUNIT_CASE(split__paced_at_the_flows_rate),
	KUNIT_CASE(split__the_rate_falls_between_subsegments),
	KUNIT_CASE(split__paced_at_split_rate),
	KUNIT_CASE(split__timestamped_packets),
	KUNIT_CASE(split__maxrate_when_not_lazy),
	KUNIT_CASE(split__bursts_keep_to_maxrate),
	KUNIT_CASE(split__is_not_overtaken),
	KUNIT_CASE(split__keeps_the_order_of_later_packets),
	KUNIT_CASE(split__counts_as_one_packet),
	KUNIT_CASE(split__leaves_a_clone_alone),
	KUNIT_CASE(split__tcp_sees_queued_subsegments),
	KUNIT_CASE(split__tcp_sees_dropped_subsegments),
	KUNIT_CASE(split__by_the_size_table),
	KUNIT_CASE(split__size_table_of_cells),
	KUNIT_CASE(ack__overtakes_data),
	KUNIT_CASE(ack__overtaking_has_a_limit),
	KUNIT_CASE(ack__dscp),
	KUNIT_CASE(ack__dscp_of_a_clone),
	KUNIT_CASE(ack__replaces_one_that_waits),
	KUNIT_CASE(ack__replaces_no_other),
	KUNIT_CASE(ack__time),
	KUNIT_CASE(ack__time_only_of_acks),
	KUNIT_CASE(ack__time_of_a_clone),
	KUNIT_CASE(ack__priority),
	KUNIT_CASE(change__ends_of_ranges),
	KUNIT_CASE(change__offload_without_device_support),
	KUNIT_CASE(change__invalid_bands),
	KUNIT_CASE(change__invalid_attributes),
	KUNIT_CASE(change__with_packets_everywhere),
	KUNIT_CASE(change__pacing_and_timestamp_options),
	KUNIT_CASE(change__a_lower_limit),
	KUNIT_CASE(change__without_memory),
	KUNIT_CASE(change__may_wait_for_memory),
	KUNIT_CASE(init__without_memory),
	KUNIT_CASE(enqueue__without_memory),
	KUNIT_CASE(enqueue__no_memory_for_any_flow),
	KUNIT_CASE(dump__gives_back_what_was_set),
	KUNIT_CASE(dump__into_too_little_room),
	KUNIT_CASE(dump_stats__counts),
	KUNIT_CASE(reset__with_packets_everywhere),
	KUNIT_CASE(destroy__with_packets_everywhere),
	KUNIT_CASE(reset__of_a_table_that_has_grown),
	KUNIT_CASE(all__in_random_order),
	KUNIT_CASE(all__in_each_flows_order),
	{}
};

static struct kunit_suite qdisc_suite = {
	.name = "timely_qdisc",
	.init = bench_init,
	.exit = bench_exit,
	.test_cases = qdisc_cases,
};

kunit_test_suite(qdisc_suite);
