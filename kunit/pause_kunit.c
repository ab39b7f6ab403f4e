// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of On-Ramp's controller: by hand one case for each thing that
 * <timely/engine/pause.h> promises, then senders that share a link. Cases are named
 * function__case.
 *
 * By hand, one flow at 1 s, T is 50 us, and b is not smoothed, so that it is what
 * the last pair of packets showed.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include <timely/engine/pause.h>

#define NOW_NS		1000000000ULL
#define T_NS		50000ULL
#define LONGEST_NS	10000000ULL
#define US		1000ULL
#define ONE		TIMELY_PAUSE_ONE
#define FAR		(1ULL << 63)

struct flow {
	struct timely_pause_law law;
	struct timely_pause pause;
	struct timely_pause_signal signal;
};

static void start(struct flow *f)
{
	memset(f, 0, sizeof(*f));
	f->law = (struct timely_pause_law) {
		.threshold_ns = T_NS,
		.pause_max_ns = LONGEST_NS,
		.gain = ONE,
	};
	timely_pause_init(&f->pause);
	f->signal.now_ns = NOW_NS;
}

/* @after_ns later a delay, of a packet that left when C was @asserted_ns. */
static bool hear(struct flow *f, u64 after_ns, u64 delay_ns, u64 asserted_ns)
{
	f->signal.now_ns += after_ns;
	f->signal.delay_ns = delay_ns;
	f->signal.asserted_ns = asserted_ns;
	return timely_pause_hear(&f->pause, &f->law, &f->signal);
}

static u64 rest_ns(const struct flow *f)
{
	return f->pause.until_ns > f->signal.now_ns ? f->pause.until_ns - f->signal.now_ns : 0;
}

#define EXPECT_REST(test, f, want_ns)	KUNIT_EXPECT_EQ(test, rest_ns(f), (u64)(want_ns))
#define EXPECT_C(test, f, want_ns) \
	KUNIT_EXPECT_EQ(test, (f)->pause.asserted_ns, (u64)(want_ns))

/* ---- init ---- */

static void init__was_never_held(struct kunit *test)
{
	struct timely_pause pause;

	memset(&pause, 0xff, sizeof(pause));
	timely_pause_init(&pause);
	KUNIT_EXPECT_EQ(test, pause.until_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, pause.since_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, pause.asserted_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, pause.black_delay_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, pause.black_asserted_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, pause.departures, 0U);
	KUNIT_EXPECT_EQ(test, pause.b, ONE / 2);
	KUNIT_EXPECT_FALSE(test, pause.heard);
}

/* ---- the rule ---- */

static void hear__pauses_for_what_is_above_the_threshold(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_TRUE(test, hear(&f, 0, T_NS + 100 * US, 0));
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, NOW_NS + 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, NOW_NS);
	EXPECT_C(test, &f, 100 * US);
}

static void hear__the_threshold_itself_is_put_up_with(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_FALSE(test, hear(&f, 0, 0, 0));
	KUNIT_EXPECT_FALSE(test, hear(&f, 0, T_NS, 0));
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, 0ULL);
	EXPECT_C(test, &f, 0);
	KUNIT_EXPECT_TRUE(test, hear(&f, 0, T_NS + 1, 0));
	EXPECT_REST(test, &f, 1);
	EXPECT_C(test, &f, 1);
}

static void hear__no_threshold(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.law.threshold_ns = 0;
	KUNIT_EXPECT_FALSE(test, hear(&f, 0, 0, 0));
	KUNIT_EXPECT_TRUE(test, hear(&f, 0, 1, 0));
	EXPECT_REST(test, &f, 1);
	start(&f);
	f.law.threshold_ns = U64_MAX;
	KUNIT_EXPECT_FALSE(test, hear(&f, 0, TIMELY_PAUSE_DELAY_MAX_NS, 0));
}

/* The next packet left before the first one's pause was asserted. What it saw
 * is what the pause is for, all of it (b = 1), a part, or none.
 */
static void hear__a_second_signal_of_the_same_queue(struct kunit *test)
{
	static const struct { u32 b; u64 want_ns; bool changed; } cases[] = {
		{ ONE, 90 * US, false },
		{ 0, 100 * US, true },
		{ ONE / 2, 50 * US, true },
		{ ONE / 4, 75 * US, true },
	};
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		start(&f);
		f.pause.b = cases[i].b;
		hear(&f, 0, T_NS + 100 * US, 0);
		KUNIT_EXPECT_EQ_MSG(test, hear(&f, 10 * US, T_NS + 100 * US, 0),
				    cases[i].changed, "case %u", i);
		EXPECT_REST(test, &f, cases[i].want_ns);
		EXPECT_C(test, &f, 10 * US + cases[i].want_ns);
	}
}

/* "Else unchanged": a delay that asks for no pause ends none. */
static void hear__nothing_due_keeps_the_present_hold(struct kunit *test)
{
	struct flow f;

	start(&f);
	hear(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_FALSE(test, hear(&f, 30 * US, T_NS, 0));
	EXPECT_REST(test, &f, 70 * US);
	EXPECT_C(test, &f, 100 * US);
}

/* No maximum: the end may move earlier, and C with it. */
static void hear__the_end_moves_both_ways(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.law.strawman = true;
	hear(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_TRUE(test, hear(&f, 10 * US, T_NS + 5 * US, 0));
	EXPECT_REST(test, &f, 5 * US);
	EXPECT_C(test, &f, 15 * US);
	KUNIT_EXPECT_TRUE(test, hear(&f, 2 * US, T_NS + 20 * US, 0));
	EXPECT_REST(test, &f, 20 * US);
	EXPECT_C(test, &f, 32 * US);
	/* To where it is already. */
	KUNIT_EXPECT_FALSE(test, hear(&f, 8 * US, T_NS + 12 * US, 0));
	EXPECT_C(test, &f, 32 * US);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, NOW_NS);
}

static void hear__only_pauses_since_the_packet_left(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.pause.b = ONE;
	f.pause.asserted_ns = 1000 * US;
	/* 60 us of them: 40 are left. */
	hear(&f, 0, T_NS + 100 * US, 940 * US);
	EXPECT_REST(test, &f, 40 * US);
	EXPECT_C(test, &f, 1040 * US);
}

static void hear__c_may_wrap(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.pause.b = ONE;
	f.pause.asserted_ns = 10 * US;
	hear(&f, 0, T_NS + 100 * US, 0ULL - 50 * US);
	EXPECT_REST(test, &f, 40 * US);
	start(&f);
	f.pause.asserted_ns = U64_MAX;
	hear(&f, 0, T_NS + 100 * US, U64_MAX);
	EXPECT_REST(test, &f, 100 * US);
	EXPECT_C(test, &f, 100 * US - 1);
}

static void hear__a_note_ahead_of_c_is_none(struct kunit *test)
{
	static const u64 ahead[] = { 1, 1000 * US, U32_MAX, FAR - 1, FAR };
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ahead); i++) {
		start(&f);
		hear(&f, 0, T_NS + 100 * US, ahead[i]);
		EXPECT_REST(test, &f, 100 * US);
		KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 2);
	}
	/* Beyond that it lies behind, and all is paused already. */
	start(&f);
	KUNIT_EXPECT_FALSE(test, hear(&f, 0, TIMELY_PAUSE_DELAY_MAX_NS, FAR + 1));
}

static void hear__pauses_beyond_any_delay(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.law.threshold_ns = 0;
	f.pause.b = 1;
	/* 65536 times 100 us show as 100 us. */
	f.pause.asserted_ns = 6553600 * US;
	hear(&f, 0, 110 * US, 0);
	EXPECT_REST(test, &f, 10 * US);
}

static void hear__no_delay_longer_than_a_second(struct kunit *test)
{
	static const u64 delays[] = {
		TIMELY_PAUSE_DELAY_MAX_NS + 1, 1ULL << 32, FAR, U64_MAX
	};
	struct timely_pause before;
	struct flow f;
	u32 i;

	start(&f);
	hear(&f, 0, T_NS + 100 * US, 0);
	before = f.pause;
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		KUNIT_EXPECT_FALSE(test, hear(&f, 0, delays[i], 100 * US));
		KUNIT_EXPECT_TRUE(test, !memcmp(&before, &f.pause, sizeof(before)));
	}
	start(&f);
	f.law.pause_max_ns = U64_MAX;
	KUNIT_EXPECT_TRUE(test, hear(&f, 0, TIMELY_PAUSE_DELAY_MAX_NS, 0));
	EXPECT_REST(test, &f, TIMELY_PAUSE_DELAY_MAX_NS - T_NS);
}

/* ---- b ---- */

/* B had @black_ns, then @paused_ns were asserted, and G has @green_ns. */
static u32 learn(struct flow *f, u64 black_ns, u64 paused_ns, u64 green_ns)
{
	u64 origin_ns = f->pause.asserted_ns;

	hear(f, 0, black_ns, origin_ns);
	hear(f, 0, green_ns, origin_ns + paused_ns);
	return f->pause.b;
}

static void learn__how_much_a_pause_takes_off_the_delay(struct kunit *test)
{
	static const struct { u64 black_ns, paused_ns, green_ns; u32 want; } cases[] = {
		{ 40000, 10000, 30000, ONE },
		{ 40000, 10000, 35000, ONE / 2 },
		{ 40000, 10000, 37500, ONE / 4 },
		{ 40000, 10000, 40000, 0 },
		{ 40000, 65536, 39999, 1 },
		{ 40000, 65537, 39999, 0 },
		/* It fell by more, or rose. */
		{ 40000, 10000, 29999, ONE },
		{ 40000, 1, 0, ONE },
		{ 40000, 10000, 40001, 0 },
		{ 0, 10000, 50000, 0 },
		/* One ns short of all. */
		{ 40000, 10000, 30001, ONE - 7 },
		/* Of the longest delays, and longer pauses. */
		{ 1000000000, 1000000000, 0, ONE },
		{ 1000000000, 1000000000, 500000000, ONE / 2 },
		{ 1000000000, FAR - 1, 0, ONE },
		{ 1000000000, FAR - 1, 500000000, ONE / 2 },
		{ 1000000000, 1ULL << 32, 500000000, ONE / 2 },
	};
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		start(&f);
		f.law.threshold_ns = U64_MAX;
		KUNIT_EXPECT_EQ_MSG(test, learn(&f, cases[i].black_ns, cases[i].paused_ns,
						cases[i].green_ns), cases[i].want, "case %u", i);
	}
}

static void learn__nothing_without_a_pause_between(struct kunit *test)
{
	static const u64 none[] = { 0, 0ULL - 1, 0ULL - 10000, FAR, FAR + 1 };
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(none); i++) {
		start(&f);
		f.law.threshold_ns = U64_MAX;
		KUNIT_EXPECT_EQ_MSG(test, learn(&f, 40000, none[i], 30000), ONE / 2,
				    "case %u", i);
	}
}

/* Out of order: the packet acknowledged last is the black one all the same. */
static void learn__green_becomes_black(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.law.threshold_ns = U64_MAX;
	hear(&f, 0, 40000, 20000);
	KUNIT_EXPECT_EQ(test, f.pause.black_delay_ns, 40000ULL);
	KUNIT_EXPECT_EQ(test, f.pause.black_asserted_ns, 20000ULL);
	KUNIT_EXPECT_TRUE(test, f.pause.heard);
	hear(&f, 0, 20000, 10000);
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 2);
	/* Not 10000 more than the first, but 20000 more than the second. */
	hear(&f, 0, 15000, 30000);
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 4);
}

static void learn__nothing_of_the_first_packet(struct kunit *test)
{
	struct flow f;

	start(&f);
	/* If the zeroes of the beginning were a packet, b would be 0. */
	hear(&f, 0, 40000, 10000);
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 2);
}

static void learn__b_moves_by_the_gain(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.law.threshold_ns = U64_MAX;
	f.law.gain = ONE / 16;
	/* 15/16 of 1/2 and 1/16 of 1. */
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 30000), ONE * 17 / 32);
	f.pause.b = ONE / 2;
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 40000), ONE * 15 / 32);
	/* To the nearest: no drift to either side. */
	f.pause.b = 100;
	f.law.gain = ONE / 4;
	KUNIT_EXPECT_EQ(test, learn(&f, 65536, 65536, 65536 - 102), 101U);
	f.law.gain = 0;
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 30000), 101U);
	/* A gain beyond 1 is 1. */
	f.law.gain = U32_MAX;
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 35000), ONE / 2);
}

static void learn__b_reaches_both_ends(struct kunit *test)
{
	struct flow f;
	u32 i;

	start(&f);
	f.law.threshold_ns = U64_MAX;
	f.law.gain = ONE / 16;
	for (i = 0; i < 300; i++)
		KUNIT_EXPECT_LE(test, learn(&f, 40000, 10000, 0), ONE);
	KUNIT_EXPECT_GE(test, f.pause.b, ONE - 8);
	for (i = 0; i < 300; i++)
		learn(&f, 40000, 10000, 50000);
	KUNIT_EXPECT_LE(test, f.pause.b, 8U);
}

/* b is brought up to date first: the same signal is judged by it. */
static void learn__before_it_is_used(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.pause.asserted_ns = 100 * US;
	hear(&f, 0, 240 * US, 0);
	/* 240 - 50 - 50 */
	EXPECT_REST(test, &f, 140 * US);
	EXPECT_C(test, &f, 240 * US);
	hear(&f, 0, 230 * US, 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.b, 6553U);
	/* 230 - 50 - 14 */
	EXPECT_REST(test, &f, 230 * US - T_NS - 140 * US * 6553 / ONE);
}

static void learn__not_as_a_strawman(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.law.strawman = true;
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 30000), ONE / 2);
	KUNIT_EXPECT_TRUE(test, f.pause.heard);
	/* And b, whatever it is, counts as 0. */
	f.pause.b = ONE;
	f.pause.asserted_ns = 1000 * US;
	hear(&f, 0, T_NS + 100 * US, 0);
	EXPECT_REST(test, &f, 100 * US);
	/* The packet heard last is known when it is one no longer. */
	f.law.strawman = false;
	f.law.threshold_ns = U64_MAX;
	hear(&f, 0, T_NS + 75 * US, 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 4);
}

/* ---- bounds ---- */

static void bound__no_hold_is_longer(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_TRUE(test, hear(&f, 0, T_NS + LONGEST_NS, 0));
	EXPECT_REST(test, &f, LONGEST_NS);
	start(&f);
	KUNIT_EXPECT_TRUE(test, hear(&f, 0, T_NS + LONGEST_NS + 1, 0));
	EXPECT_REST(test, &f, LONGEST_NS);
	EXPECT_C(test, &f, LONGEST_NS);
}

/* The worst that can be said, every 100 us, for ten times as long. */
static void bound__under_signals_without_end(struct kunit *test)
{
	struct flow f;
	u32 i;

	start(&f);
	f.law.strawman = true;
	for (i = 0; i < 10 * LONGEST_NS / (100 * US); i++) {
		hear(&f, i ? 100 * US : 0, TIMELY_PAUSE_DELAY_MAX_NS, f.pause.asserted_ns);
		KUNIT_EXPECT_EQ(test, f.pause.until_ns, NOW_NS + LONGEST_NS);
		EXPECT_C(test, &f, LONGEST_NS);
	}
}

static void bound__is_that_of_the_present_hold(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.law.strawman = true;
	hear(&f, 0, T_NS + LONGEST_NS, 0);
	/* Shortened, and near its end lengthened again. */
	hear(&f, LONGEST_NS / 2, T_NS + 10 * US, 0);
	EXPECT_REST(test, &f, 10 * US);
	EXPECT_C(test, &f, LONGEST_NS / 2 + 10 * US);
	hear(&f, 9 * US, T_NS + LONGEST_NS, 0);
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, NOW_NS + LONGEST_NS);
	EXPECT_C(test, &f, LONGEST_NS);
}

static void bound__a_packet_leaves_between_holds(struct kunit *test)
{
	struct timely_pause before;
	struct flow f;

	start(&f);
	f.law.strawman = true;
	f.signal.departures = 7;
	hear(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_EQ(test, f.pause.departures, 7U);
	/* At its last ns the hold is the same one, at the next it is over. */
	KUNIT_EXPECT_TRUE(test, hear(&f, 100 * US - 1, T_NS + 10 * US, 0));
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, NOW_NS);
	before = f.pause;
	KUNIT_EXPECT_FALSE(test, hear(&f, 10 * US, T_NS + 100 * US, 0));
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, before.until_ns);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, before.since_ns);
	EXPECT_C(test, &f, before.asserted_ns);
	KUNIT_EXPECT_FALSE(test, hear(&f, NSEC_PER_SEC, T_NS + 100 * US, 0));

	f.signal.departures++;
	KUNIT_EXPECT_TRUE(test, hear(&f, 0, T_NS + 100 * US, 0));
	EXPECT_REST(test, &f, 100 * US);
	EXPECT_C(test, &f, before.asserted_ns + 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, f.signal.now_ns);
	KUNIT_EXPECT_EQ(test, f.pause.departures, 8U);
}

/* One that left while the flow was held, such as an ACK, does. */
static void bound__a_packet_that_left_within_a_hold(struct kunit *test)
{
	struct flow f;

	start(&f);
	hear(&f, 0, T_NS + 100 * US, 0);
	f.signal.departures++;
	hear(&f, 10 * US, T_NS + 200 * US, 0);
	KUNIT_EXPECT_EQ(test, f.pause.departures, 0U);
	KUNIT_EXPECT_TRUE(test, hear(&f, NSEC_PER_SEC, T_NS + 100 * US, f.pause.asserted_ns));
}

static void bound__departures_wrap(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.signal.departures = U32_MAX;
	KUNIT_EXPECT_TRUE(test, hear(&f, 0, T_NS + 100 * US, 0));
	f.signal.departures++;
	KUNIT_EXPECT_TRUE(test, hear(&f, NSEC_PER_SEC, T_NS + 100 * US, f.pause.asserted_ns));
}

/* b is learnt and B noted where a hold is refused. */
static void bound__a_refused_hold_teaches(struct kunit *test)
{
	struct flow f;

	start(&f);
	hear(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_FALSE(test, hear(&f, NSEC_PER_SEC, T_NS + 75 * US, 100 * US));
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 4);
	KUNIT_EXPECT_EQ(test, f.pause.black_delay_ns, T_NS + 75 * US);
}

static void bound__of_nothing(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.law.pause_max_ns = 0;
	hear(&f, 0, T_NS + 100 * US, 0);
	EXPECT_REST(test, &f, 0);
	EXPECT_C(test, &f, 0);
	/* Lowered within a hold: that ends. */
	start(&f);
	f.law.strawman = true;
	hear(&f, 0, T_NS + 100 * US, 0);
	f.law.pause_max_ns = 30 * US;
	KUNIT_EXPECT_TRUE(test, hear(&f, 40 * US, T_NS + 100 * US, 0));
	EXPECT_REST(test, &f, 0);
	EXPECT_C(test, &f, 40 * US);
}

static void bound__at_the_end_of_time(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.signal.now_ns = U64_MAX - 10;
	f.law.pause_max_ns = U64_MAX;
	hear(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, U64_MAX);
	EXPECT_C(test, &f, 10);
	hear(&f, 10, T_NS + 100 * US, 10);
	EXPECT_REST(test, &f, 0);
	EXPECT_C(test, &f, 10);
}

/* CPUs tell the time out of order: a hold began later than now. */
static void bound__when_time_runs_backwards(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.law.strawman = true;
	hear(&f, 0, T_NS + 100 * US, 0);
	f.signal.now_ns -= 20 * US;
	hear(&f, 0, TIMELY_PAUSE_DELAY_MAX_NS, 0);
	EXPECT_REST(test, &f, LONGEST_NS);
	KUNIT_EXPECT_LE(test, f.pause.until_ns, f.pause.since_ns + LONGEST_NS);
	EXPECT_C(test, &f, LONGEST_NS - 20 * US);
}

/* ---- a flow that starts ---- */

static bool begin(struct flow *f, u64 delay_ns, u64 age_ns)
{
	f->signal.delay_ns = delay_ns;
	/* Another flow's: to be left alone. */
	f->signal.asserted_ns = 0x5a5a5a5a5a5a5a5a;
	return timely_pause_start(&f->pause, &f->law, &f->signal, age_ns);
}

static void start__by_what_another_flow_measured(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_TRUE(test, begin(&f, T_NS + 100 * US, 0));
	EXPECT_REST(test, &f, 100 * US);
	EXPECT_C(test, &f, 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, NOW_NS);
	/* It taught nothing. */
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 2);
	KUNIT_EXPECT_FALSE(test, f.pause.heard);
	KUNIT_EXPECT_EQ(test, f.pause.black_delay_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, f.pause.black_asserted_ns, 0ULL);
}

static void start__less_what_has_drained(struct kunit *test)
{
	struct flow f;

	start(&f);
	begin(&f, T_NS + 100 * US, 40 * US);
	EXPECT_REST(test, &f, 60 * US);
	start(&f);
	KUNIT_EXPECT_TRUE(test, begin(&f, T_NS + 100 * US, 100 * US - 1));
	EXPECT_REST(test, &f, 1);
}

static void start__from_too_long_ago(struct kunit *test)
{
	static const u64 ages[] = { 100 * US, T_NS + 100 * US, T_NS + 100 * US + 1, FAR, U64_MAX };
	struct flow f;
	u32 i;

	start(&f);
	for (i = 0; i < ARRAY_SIZE(ages); i++)
		KUNIT_EXPECT_FALSE(test, begin(&f, T_NS + 100 * US, ages[i]));
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, 0ULL);
	EXPECT_C(test, &f, 0);
	/* Nor by no delay, nor by what is none. */
	KUNIT_EXPECT_FALSE(test, begin(&f, T_NS, 0));
	KUNIT_EXPECT_FALSE(test, begin(&f, TIMELY_PAUSE_DELAY_MAX_NS + 1, 0));
	KUNIT_EXPECT_FALSE(test, begin(&f, U64_MAX, U64_MAX - T_NS - 100 * US));
	KUNIT_EXPECT_TRUE(test, begin(&f, TIMELY_PAUSE_DELAY_MAX_NS, 0));
	EXPECT_REST(test, &f, LONGEST_NS);
}

static void start__not_within_a_hold(struct kunit *test)
{
	struct flow f;

	start(&f);
	hear(&f, 0, T_NS + 100 * US, 0);
	f.signal.departures++;
	f.signal.now_ns += 100 * US - 1;
	KUNIT_EXPECT_FALSE(test, begin(&f, T_NS + 300 * US, 0));
	EXPECT_REST(test, &f, 1);
	EXPECT_C(test, &f, 100 * US);
	f.signal.now_ns++;
	KUNIT_EXPECT_TRUE(test, begin(&f, T_NS + 300 * US, 0));
	EXPECT_REST(test, &f, 300 * US);
	EXPECT_C(test, &f, 400 * US);
}

static void start__not_again_without_a_departure(struct kunit *test)
{
	struct flow f;

	start(&f);
	begin(&f, T_NS + 100 * US, 0);
	f.signal.now_ns += NSEC_PER_SEC;
	KUNIT_EXPECT_FALSE(test, begin(&f, T_NS + 100 * US, 0));
	KUNIT_EXPECT_FALSE(test, hear(&f, 0, T_NS + 100 * US, f.pause.asserted_ns));
	f.signal.departures++;
	KUNIT_EXPECT_TRUE(test, begin(&f, T_NS + 100 * US, 0));
}

/* The pause counts as its own: the queue that it saw is not answered twice. */
static void start__counts_as_a_pause(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.pause.b = ONE;
	begin(&f, T_NS + 100 * US, 0);
	f.signal.departures++;
	KUNIT_EXPECT_FALSE(test, hear(&f, 120 * US, T_NS + 100 * US, 0));
	KUNIT_EXPECT_TRUE(test, hear(&f, 0, T_NS + 120 * US, 0));
	EXPECT_REST(test, &f, 20 * US);
}

/* ---- the floor ---- */

#define HALF_NS		1000ULL

static void floor__is_the_least_of_the_window(struct kunit *test)
{
	static const struct { u64 now_ns, value, want; } steps[] = {
		{ 10000, 500, 500 },
		{ 10000, 600, 500 },
		{ 10999, 400, 400 },
		/* The next half: 400 is of the one before. */
		{ 11000, 700, 400 },
		{ 11999, 450, 400 },
		/* The next: it is gone, 450 is not. */
		{ 12000, 900, 450 },
		{ 12999, 800, 450 },
		{ 13000, 850, 800 },
		/* Halves do not begin anew where a value comes late. */
		{ 14999, 870, 850 },
		{ 15000, 880, 870 },
		{ 15999, 890, 870 },
		{ 16000, 895, 880 },
		/* None for two halves. */
		{ 18000, 990, 990 },
		{ 18999, 999, 990 },
		{ 19999, 1000, 990 },
		{ 1000000, 2000, 2000 },
	};
	struct timely_floor floor;
	u32 i;

	timely_floor_init(&floor);
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		KUNIT_EXPECT_EQ_MSG(test, timely_floor_add(&floor, steps[i].now_ns, HALF_NS,
							   steps[i].value), steps[i].want,
				    "step %u", i);
}

static void floor__is_empty_at_first(struct kunit *test)
{
	static const u64 times[] = { 0, 1, HALF_NS - 1, HALF_NS, 2 * HALF_NS, FAR, U64_MAX };
	struct timely_floor floor;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		memset(&floor, 0, sizeof(floor));
		timely_floor_init(&floor);
		KUNIT_EXPECT_EQ(test, floor.before, U64_MAX);
		KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, times[i], HALF_NS, 1234), 1234ULL);
	}
	timely_floor_init(&floor);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 0, HALF_NS, U64_MAX), U64_MAX);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 0, HALF_NS, 0), 0ULL);
}

/* By a little, as CPUs do: the least value stays. */
static void floor__moves_with_what_it_is_measured_from(struct kunit *test)
{
	struct timely_floor floor;

	timely_floor_init(&floor);
	timely_floor_shift(&floor, 100);
	timely_floor_shift(&floor, -100);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10000, HALF_NS, 500), 500ULL);
	timely_floor_shift(&floor, 70);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10000, HALF_NS, 800), 570ULL);
	/* The half before as well. */
	timely_floor_add(&floor, 10000 + HALF_NS, HALF_NS, 900);
	timely_floor_shift(&floor, -80);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10000 + HALF_NS, HALF_NS, 850), 490ULL);
	timely_floor_shift(&floor, -491);
	KUNIT_EXPECT_EQ(test, floor.before, 0ULL);
	KUNIT_EXPECT_EQ(test, floor.least, 329ULL);
	timely_floor_shift(&floor, S64_MIN);
	timely_floor_shift(&floor, S64_MAX);
	timely_floor_shift(&floor, S64_MAX);
	timely_floor_shift(&floor, S64_MAX);
	KUNIT_EXPECT_EQ(test, floor.least, U64_MAX - 1);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10000 + HALF_NS, HALF_NS, 1), 1ULL);
}

static void floor__when_time_runs_backwards(struct kunit *test)
{
	struct timely_floor floor;

	timely_floor_init(&floor);
	timely_floor_add(&floor, 10000, HALF_NS, 500);
	timely_floor_add(&floor, 11000, HALF_NS, 700);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10999, HALF_NS, 600), 500ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10001, HALF_NS, 600), 500ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 11001, HALF_NS, 700), 500ULL);
	/* What was late is of this half: at the next it is there, then no more. */
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 12000, HALF_NS, 700), 600ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 13000, HALF_NS, 900), 700ULL);
}

/* By more it is another time. The floor does not wait for the old one. */
static void floor__when_time_is_set_back(struct kunit *test)
{
	struct timely_floor floor;

	timely_floor_init(&floor);
	timely_floor_add(&floor, 1000000, HALF_NS, 500);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 1000000 - HALF_NS, HALF_NS, 700), 700ULL);
	timely_floor_add(&floor, 1000000, HALF_NS, 600);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10000, HALF_NS, 800), 800ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10999, HALF_NS, 900), 800ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 12000, HALF_NS, 900), 900ULL);
	/* Across the wrap it runs on. */
	timely_floor_add(&floor, 0ULL - 500, HALF_NS, 300);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 400, HALF_NS, 400), 300ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 600, HALF_NS, 400), 300ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 1500, HALF_NS, 450), 400ULL);
}

static void floor__of_any_length(struct kunit *test)
{
	struct timely_floor floor;

	/* None: nothing is remembered. */
	timely_floor_init(&floor);
	timely_floor_add(&floor, 10000, 0, 500);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10000, 0, 600), 600ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10001, 0, 700), 700ULL);
	/* Twice it does not fit: all is remembered. */
	timely_floor_init(&floor);
	timely_floor_add(&floor, 10000, FAR, 500);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, FAR - 1, FAR, 600), 500ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 10000, U64_MAX, 600), 500ULL);
	timely_floor_init(&floor);
	timely_floor_add(&floor, 0, 1, 500);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 1, 1, 600), 500ULL);
	KUNIT_EXPECT_EQ(test, timely_floor_add(&floor, 2, 1, 700), 600ULL);
}

/* ---- senders that share a link ---- */

#define SENDERS		8
#define ACKS		64
#define PACKET_NS	1200	/* 1500 bytes at 10 Gb/s, of the link and of each sender */
#define WIRE_NS		10000	/* either way: an RTT of 20 us and the queue */
#define LOOP_T_NS	(WIRE_NS + 30000)
#define FIRST_NS	NSEC_PER_MSEC
#define WARM_NS		(10 * NSEC_PER_MSEC)
#define END_NS		(40 * NSEC_PER_MSEC)

/**
 * struct loop_sender - has a window's worth of packets under way, if it may
 * @pause: its state
 * @next_ns: its line is free again then
 * @departures: so many packets left
 * @heard: so many of them are acknowledged
 * @acks: of the others: when, and what their OR-ACKs will say
 */
struct loop_sender {
	struct timely_pause pause;
	u64 next_ns;
	u32 departures;
	u32 heard;
	struct {
		u64 at_ns;
		u64 delay_ns;
		u64 asserted_ns;
	} acks[ACKS];
};

/**
 * struct loop - senders, one queue, a link
 * @law: of all senders
 * @senders: the senders
 * @count: how many they are
 * @window: each one's, in packets
 * @now_ns: the time
 * @link_ns: the link is busy until then
 * @idle_ns: so long it was not, after WARM_NS
 */
struct loop {
	struct timely_pause_law law;
	struct loop_sender senders[SENDERS];
	u32 count;
	u32 window;
	u64 now_ns;
	u64 link_ns;
	u64 idle_ns;
};

static void loop_start(struct loop *loop, u32 count, u32 window, bool strawman)
{
	u32 i;

	memset(loop, 0, sizeof(*loop));
	loop->law = (struct timely_pause_law) {
		.threshold_ns = LOOP_T_NS,
		.pause_max_ns = NSEC_PER_MSEC,
		.gain = ONE / 16,
		.strawman = strawman,
	};
	loop->count = count;
	loop->window = window;
	for (i = 0; i < count; i++) {
		timely_pause_init(&loop->senders[i].pause);
		/* Not in step. */
		loop->senders[i].next_ns = FIRST_NS + 777 * i;
	}
}

static void loop_depart(struct loop *loop, struct loop_sender *s)
{
	u64 arrival_ns = loop->now_ns + WIRE_NS;
	u32 i = s->departures++ % ACKS;

	if (arrival_ns > loop->link_ns) {
		if (loop->now_ns > WARM_NS)
			loop->idle_ns += arrival_ns - loop->link_ns;
		loop->link_ns = arrival_ns;
	}
	loop->link_ns += PACKET_NS;
	s->acks[i].delay_ns = loop->link_ns - loop->now_ns;
	s->acks[i].at_ns = loop->link_ns + WIRE_NS;
	s->acks[i].asserted_ns = s->pause.asserted_ns;
	s->next_ns = loop->now_ns + PACKET_NS;
}

static void loop_hear(struct loop *loop, struct loop_sender *s)
{
	u32 i = s->heard++ % ACKS;
	struct timely_pause_signal signal = {
		.now_ns = loop->now_ns,
		.delay_ns = s->acks[i].delay_ns,
		.asserted_ns = s->acks[i].asserted_ns,
		.departures = s->departures,
	};

	timely_pause_hear(&s->pause, &loop->law, &signal);
}

/* When the sender's next packet may leave, as far as is known. */
static u64 loop_ready_ns(const struct loop *loop, const struct loop_sender *s)
{
	if (s->departures - s->heard >= loop->window)
		return U64_MAX;
	return max(max(s->next_ns, s->pause.until_ns), loop->now_ns);
}

/* Whatever is next: a packet that leaves, or an OR-ACK that comes. */
static void loop_step(struct loop *loop)
{
	struct loop_sender *s, *next = NULL;
	u64 next_ns = U64_MAX;
	bool ack = false;

	for (s = loop->senders; s < loop->senders + loop->count; s++) {
		u64 ready_ns = loop_ready_ns(loop, s);

		if (ready_ns < next_ns) {
			next_ns = ready_ns;
			next = s;
			ack = false;
		}
		if (s->heard != s->departures && s->acks[s->heard % ACKS].at_ns <= next_ns) {
			next_ns = s->acks[s->heard % ACKS].at_ns;
			next = s;
			ack = true;
		}
	}
	loop->now_ns = next_ns;
	if (ack)
		loop_hear(loop, next);
	else
		loop_depart(loop, next);
}

/* Return: for how much of the time the link was busy, in 1/10000. */
static u32 loop_run(struct loop *loop)
{
	while (loop->now_ns < END_NS)
		loop_step(loop);
	return 10000 - div_u64(loop->idle_ns, (END_NS - WARM_NS) / 10000);
}

static u32 loop_try(struct loop *loop, u32 count, u32 window, bool strawman)
{
	loop_start(loop, count, window, strawman);
	return loop_run(loop);
}

/* Long flows, as in the paper's Figure 5, whose windows make up to four times the
 * queue that T allows. Both forms take it away, the strawman more than there is.
 */
static void loop__keeps_the_link_busy(struct kunit *test)
{
	static const struct { u32 count, window; } cases[] = {
		{ 2, 24 }, { 4, 13 }, { 4, 16 }, { 8, 7 }, { 8, 10 }, { 8, 14 },
	};
	struct loop *loop = kunit_kzalloc(test, sizeof(*loop), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, loop);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		u32 count = cases[i].count, window = cases[i].window;

		KUNIT_EXPECT_GT_MSG(test, loop_try(loop, count, window, false), 9900U,
				    "%u senders, window %u", count, window);
		KUNIT_EXPECT_GT_MSG(test, 9000U, loop_try(loop, count, window, true),
				    "%u senders, window %u", count, window);
	}
}

/* With windows far beyond that the final form loses too, but never as much. */
static void loop__never_does_worse_than_the_strawman(struct kunit *test)
{
	struct loop *loop = kunit_kzalloc(test, sizeof(*loop), GFP_KERNEL);
	u32 count, total;

	KUNIT_ASSERT_NOT_NULL(test, loop);
	for (count = 1; count <= SENDERS; count++)
		for (total = 40; total <= 120; total += 16)
			KUNIT_EXPECT_GE_MSG(test,
					    loop_try(loop, count, total / count, false),
					    loop_try(loop, count, total / count, true),
					    "%u senders, %u packets", count, total);
}

/* ---- between holds ---- */

#define RTT_NS		(100 * US)
/* Of a flow that sends 1 GB/s, and in a millisecond. */
#define GBPS		1000000000ULL
#define MS_BYTES	1000000ULL
/* Four packets in RTT_NS. */
#define LEAST_BPS	60000000ULL

/* A flow that sent 1 MB from one hold to the next, a millisecond later. */
static void held_twice(struct timely_resume *resume)
{
	timely_resume_init(resume);
	timely_resume_hold(resume, NOW_NS, NOW_NS + 10 * US, RTT_NS, MS_BYTES);
	timely_resume_hold(resume, NOW_NS + 1000 * US, NOW_NS + 1010 * US, RTT_NS,
			   2 * MS_BYTES);
}

static void resume__unlimited_at_first(struct kunit *test)
{
	struct timely_resume resume;

	timely_resume_init(&resume);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	timely_resume_go_on(&resume, NOW_NS, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
}

/* One hold tells nothing of what is sent between two. */
static void resume__unlimited_by_the_first_hold(struct kunit *test)
{
	struct timely_resume resume;

	timely_resume_init(&resume);
	timely_resume_hold(&resume, NOW_NS, NOW_NS + 10 * US, RTT_NS, MS_BYTES);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
}

static void resume__by_what_was_sent_from_hold_to_hold(struct kunit *test)
{
	struct timely_resume resume;

	held_twice(&resume);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, GBPS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, 7 * GBPS / 4);
}

/* Of a long time much may have been idle: what was sent in it is no share. */
static void resume__a_hold_long_ago_says_nothing(struct kunit *test)
{
	struct timely_resume resume;

	held_twice(&resume);
	timely_resume_hold(&resume, NOW_NS + 1000 * US + 16 * RTT_NS, NOW_NS + 3000 * US,
			   RTT_NS, 2 * MS_BYTES);
	KUNIT_EXPECT_LT(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	timely_resume_hold(&resume, NOW_NS + 1000 * US + 33 * RTT_NS, NOW_NS + 5000 * US,
			   RTT_NS, 3 * MS_BYTES);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, 0ULL);
	timely_resume_hold(&resume, NOW_NS + 1000 * US + 43 * RTT_NS, NOW_NS + 6000 * US,
			   RTT_NS, 4 * MS_BYTES);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, GBPS);
}

static void resume__a_quarter_of_what_is_new(struct kunit *test)
{
	struct timely_resume resume;

	held_twice(&resume);
	timely_resume_hold(&resume, NOW_NS + 2000 * US, NOW_NS + 2010 * US, RTT_NS,
			   2 * MS_BYTES);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, 3 * GBPS / 4);
}

static void resume__four_packets_an_rtt_anyway(struct kunit *test)
{
	struct timely_resume resume;

	timely_resume_init(&resume);
	timely_resume_hold(&resume, NOW_NS, NOW_NS + 10 * US, RTT_NS, 0);
	timely_resume_hold(&resume, NOW_NS + 1000 * US, NOW_NS + 1010 * US, RTT_NS, 0);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, LEAST_BPS);
}

static void resume__grows_when_no_hold_follows(struct kunit *test)
{
	u64 end_ns = NOW_NS + 1010 * US, rate_Bps;
	struct timely_resume resume;

	held_twice(&resume);
	rate_Bps = resume.rate_Bps;
	timely_resume_go_on(&resume, end_ns + 2 * RTT_NS - 1, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, rate_Bps);
	timely_resume_go_on(&resume, end_ns + 2 * RTT_NS, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, rate_Bps + rate_Bps / 2 + 1);
	rate_Bps = resume.rate_Bps;
	timely_resume_go_on(&resume, end_ns + 3 * RTT_NS - 1, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, rate_Bps);
	timely_resume_go_on(&resume, end_ns + 3 * RTT_NS, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, rate_Bps + rate_Bps / 2 + 1);
}

/* And is none at last: what was known of it then is forgotten. */
static void resume__grows_until_there_is_none(struct kunit *test)
{
	struct timely_resume resume;
	u32 i;

	held_twice(&resume);
	for (i = 0; i < 9; i++)
		timely_resume_go_on(&resume, NOW_NS + 10000 * US + i * 2 * RTT_NS, RTT_NS);
	KUNIT_EXPECT_LT(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	timely_resume_go_on(&resume, NOW_NS + 20000 * US, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, 0ULL);
	KUNIT_EXPECT_EQ(test, resume.begun_ns, 0ULL);
}

/* More than a link carries: 800 Gb/s are the most that counts. */
static void resume__faster_than_any_link(struct kunit *test)
{
	struct timely_resume resume;

	timely_resume_init(&resume);
	timely_resume_hold(&resume, NOW_NS, NOW_NS, RTT_NS, 0);
	timely_resume_hold(&resume, NOW_NS + 1, NOW_NS + 1, RTT_NS, U64_MAX);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, 100 * GBPS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, 175 * GBPS);
}

/* Whatever clocks and counters say: some rate, and none beyond reason. */
static void resume__of_hostile_numbers(struct kunit *test)
{
	static const u64 odd[] = { 0, 1, NOW_NS, FAR, U64_MAX };
	struct timely_resume resume;
	u32 i, n = ARRAY_SIZE(odd);

	timely_resume_init(&resume);
	for (i = 0; i < n * n * n * n; i++) {
		timely_resume_hold(&resume, odd[i % n], odd[i / n % n], odd[i / n / n % n],
				   odd[i / n / n / n]);
		KUNIT_EXPECT_GE(test, resume.rate_Bps, 1ULL);
		if (resume.rate_Bps != TIMELY_RESUME_UNLIMITED)
			KUNIT_EXPECT_LE(test, resume.rate_Bps, 6000 * GBPS);
		timely_resume_go_on(&resume, odd[i / n % n], odd[i % n]);
		KUNIT_EXPECT_GE(test, resume.rate_Bps, 1ULL);
	}
}

static struct kunit_case pause_cases[] = {
	KUNIT_CASE(init__was_never_held),
	KUNIT_CASE(hear__pauses_for_what_is_above_the_threshold),
	KUNIT_CASE(hear__the_threshold_itself_is_put_up_with),
	KUNIT_CASE(hear__no_threshold),
	KUNIT_CASE(hear__a_second_signal_of_the_same_queue),
	KUNIT_CASE(hear__nothing_due_keeps_the_present_hold),
	KUNIT_CASE(hear__the_end_moves_both_ways),
	KUNIT_CASE(hear__only_pauses_since_the_packet_left),
	KUNIT_CASE(hear__c_may_wrap),
	KUNIT_CASE(hear__a_note_ahead_of_c_is_none),
	KUNIT_CASE(hear__pauses_beyond_any_delay),
	KUNIT_CASE(hear__no_delay_longer_than_a_second),
	KUNIT_CASE(learn__how_much_a_pause_takes_off_the_delay),
	KUNIT_CASE(learn__nothing_without_a_pause_between),
	KUNIT_CASE(learn__green_becomes_black),
	KUNIT_CASE(learn__nothing_of_the_first_packet),
	KUNIT_CASE(learn__b_moves_by_the_gain),
	KUNIT_CASE(learn__b_reaches_both_ends),
	KUNIT_CASE(learn__before_it_is_used),
	KUNIT_CASE(learn__not_as_a_strawman),
	KUNIT_CASE(bound__no_hold_is_longer),
	KUNIT_CASE(bound__under_signals_without_end),
	KUNIT_CASE(bound__is_that_of_the_present_hold),
	KUNIT_CASE(bound__a_packet_leaves_between_holds),
	KUNIT_CASE(bound__a_packet_that_left_within_a_hold),
	KUNIT_CASE(bound__departures_wrap),
	KUNIT_CASE(bound__a_refused_hold_teaches),
	KUNIT_CASE(bound__of_nothing),
	KUNIT_CASE(bound__at_the_end_of_time),
	KUNIT_CASE(bound__when_time_runs_backwards),
	KUNIT_CASE(start__by_what_another_flow_measured),
	KUNIT_CASE(start__less_what_has_drained),
	KUNIT_CASE(start__from_too_long_ago),
	KUNIT_CASE(start__not_within_a_hold),
	KUNIT_CASE(start__not_again_without_a_departure),
	KUNIT_CASE(start__counts_as_a_pause),
	KUNIT_CASE(floor__is_the_least_of_the_window),
	KUNIT_CASE(floor__is_empty_at_first),
	KUNIT_CASE(floor__moves_with_what_it_is_measured_from),
	KUNIT_CASE(floor__when_time_runs_backwards),
	KUNIT_CASE(floor__when_time_is_set_back),
	KUNIT_CASE(floor__of_any_length),
	KUNIT_CASE(loop__keeps_the_link_busy),
	KUNIT_CASE(loop__never_does_worse_than_the_strawman),
	KUNIT_CASE(resume__unlimited_at_first),
	KUNIT_CASE(resume__unlimited_by_the_first_hold),
	KUNIT_CASE(resume__by_what_was_sent_from_hold_to_hold),
	KUNIT_CASE(resume__a_hold_long_ago_says_nothing),
	KUNIT_CASE(resume__a_quarter_of_what_is_new),
	KUNIT_CASE(resume__four_packets_an_rtt_anyway),
	KUNIT_CASE(resume__grows_when_no_hold_follows),
	KUNIT_CASE(resume__grows_until_there_is_none),
	KUNIT_CASE(resume__faster_than_any_link),
	KUNIT_CASE(resume__of_hostile_numbers),
	{}
};

static struct kunit_suite pause_suite = {
	.name = "timely_pause",
	.test_cases = pause_cases,
};

kunit_test_suite(pause_suite);
