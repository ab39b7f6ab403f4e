// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of On-Ramp's controller: hand-made cases for each promise of <timely/engine/pause.h>, then
 * senders that share a link. Cases are named function__case.
 *
 * In the hand-made cases there is one flow at time 1 s, T is 50 us, and b is not smoothed, so b is
 * what the last pair of packets showed.
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
	struct timely_pause_cfg cfg;
	struct timely_pause pause;
	struct timely_pause_signal signal;
};

static void start(struct flow *f)
{
	memset(f, 0, sizeof(*f));
	f->cfg = (struct timely_pause_cfg) {
		.threshold_ns = T_NS,
		.pause_max_ns = LONGEST_NS,
		.gain = ONE,
	};
	timely_pause_init(&f->pause);
	f->signal.now_ns = NOW_NS;
}

/* Report a delay @after_ns later, of a packet that departed when C was @asserted_ns. */
static bool add_signal(struct flow *f, u64 after_ns, u64 delay_ns, u64 asserted_ns)
{
	f->signal.now_ns += after_ns;
	f->signal.delay_ns = delay_ns;
	f->signal.asserted_ns = asserted_ns;
	return timely_pause_update(&f->pause, &f->cfg, &f->signal);
}

static u64 rest_ns(const struct flow *f)
{
	return f->pause.until_ns > f->signal.now_ns ? f->pause.until_ns - f->signal.now_ns : 0;
}

#define EXPECT_REST(test, f, want_ns)	KUNIT_EXPECT_EQ(test, rest_ns(f), (u64)(want_ns))
#define EXPECT_C(test, f, want_ns) \
	KUNIT_EXPECT_EQ(test, (f)->pause.asserted_ns, (u64)(want_ns))

/* ---- init ---- */

static void init__not_paused(struct kunit *test)
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
	KUNIT_EXPECT_FALSE(test, pause.have_black);
}

/* ---- the rule ---- */

static void update__pauses_for_the_delay_above_the_threshold(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 0, T_NS + 100 * US, 0));
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, NOW_NS + 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, NOW_NS);
	EXPECT_C(test, &f, 100 * US);
}

static void update__delay_at_the_threshold_does_not_pause(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 0, 0, 0));
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 0, T_NS, 0));
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, 0ULL);
	EXPECT_C(test, &f, 0);
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 0, T_NS + 1, 0));
	EXPECT_REST(test, &f, 1);
	EXPECT_C(test, &f, 1);
}

static void update__threshold_of_zero(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.cfg.threshold_ns = 0;
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 0, 0, 0));
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 0, 1, 0));
	EXPECT_REST(test, &f, 1);
	start(&f);
	f.cfg.threshold_ns = U64_MAX;
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 0, TIMELY_PAUSE_DELAY_MAX_NS, 0));
}

/* The next packet departed before the first pause was asserted. The pause answers all of its delay
 * (b = 1), a part, or none.
 */
static void update__second_signal_of_the_same_queue(struct kunit *test)
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
		add_signal(&f, 0, T_NS + 100 * US, 0);
		KUNIT_EXPECT_EQ_MSG(test, add_signal(&f, 10 * US, T_NS + 100 * US, 0),
				    cases[i].changed, "case %u", i);
		EXPECT_REST(test, &f, cases[i].want_ns);
		EXPECT_C(test, &f, 10 * US + cases[i].want_ns);
	}
}

/* "Else unchanged": a delay that requires no pause does not end the present one. */
static void update__low_delay_keeps_the_present_pause(struct kunit *test)
{
	struct flow f;

	start(&f);
	add_signal(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 30 * US, T_NS, 0));
	EXPECT_REST(test, &f, 70 * US);
	EXPECT_C(test, &f, 100 * US);
}

/* The rule does not take the maximum: the end of a pause may become earlier, and C smaller. */
static void update__end_moves_both_ways(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.cfg.strawman = true;
	add_signal(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 10 * US, T_NS + 5 * US, 0));
	EXPECT_REST(test, &f, 5 * US);
	EXPECT_C(test, &f, 15 * US);
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 2 * US, T_NS + 20 * US, 0));
	EXPECT_REST(test, &f, 20 * US);
	EXPECT_C(test, &f, 32 * US);
	/* The end stays the same. */
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 8 * US, T_NS + 12 * US, 0));
	EXPECT_C(test, &f, 32 * US);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, NOW_NS);
}

static void update__only_pauses_since_the_packet_left(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.pause.b = ONE;
	f.pause.asserted_ns = 1000 * US;
	/* 60 us of pauses were asserted since the packet left, so 40 us remain. */
	add_signal(&f, 0, T_NS + 100 * US, 940 * US);
	EXPECT_REST(test, &f, 40 * US);
	EXPECT_C(test, &f, 1040 * US);
}

static void update__c_may_wrap(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.pause.b = ONE;
	f.pause.asserted_ns = 10 * US;
	add_signal(&f, 0, T_NS + 100 * US, 0ULL - 50 * US);
	EXPECT_REST(test, &f, 40 * US);
	start(&f);
	f.pause.asserted_ns = U64_MAX;
	add_signal(&f, 0, T_NS + 100 * US, U64_MAX);
	EXPECT_REST(test, &f, 100 * US);
	EXPECT_C(test, &f, 100 * US - 1);
}

static void update__recorded_c_beyond_the_present_one(struct kunit *test)
{
	static const u64 ahead[] = { 1, 1000 * US, U32_MAX, FAR - 1, FAR };
	struct flow f;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(ahead); i++) {
		start(&f);
		add_signal(&f, 0, T_NS + 100 * US, ahead[i]);
		EXPECT_REST(test, &f, 100 * US);
		KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 2);
	}
	/* A smaller delay would end in the past: the present pause is sufficient. */
	start(&f);
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 0, TIMELY_PAUSE_DELAY_MAX_NS, FAR + 1));
}

static void update__pauses_longer_than_any_delay(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.cfg.threshold_ns = 0;
	f.pause.b = 1;
	/* The delay falls by b * P: 100 us of pauses of 65536 * 100 us. */
	f.pause.asserted_ns = 6553600 * US;
	add_signal(&f, 0, 110 * US, 0);
	EXPECT_REST(test, &f, 10 * US);
}

static void update__delays_above_a_second_are_ignored(struct kunit *test)
{
	static const u64 delays[] = {
		TIMELY_PAUSE_DELAY_MAX_NS + 1, 1ULL << 32, FAR, U64_MAX
	};
	struct timely_pause before;
	struct flow f;
	u32 i;

	start(&f);
	add_signal(&f, 0, T_NS + 100 * US, 0);
	before = f.pause;
	for (i = 0; i < ARRAY_SIZE(delays); i++) {
		KUNIT_EXPECT_FALSE(test, add_signal(&f, 0, delays[i], 100 * US));
		KUNIT_EXPECT_TRUE(test, !memcmp(&before, &f.pause, sizeof(before)));
	}
	start(&f);
	f.cfg.pause_max_ns = U64_MAX;
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 0, TIMELY_PAUSE_DELAY_MAX_NS, 0));
	EXPECT_REST(test, &f, TIMELY_PAUSE_DELAY_MAX_NS - T_NS);
}

/* ---- b ---- */

/* Delay of the black packet, pauses asserted afterwards, delay of the green packet. */
static u32 learn(struct flow *f, u64 black_ns, u64 paused_ns, u64 green_ns)
{
	u64 origin_ns = f->pause.asserted_ns;

	add_signal(f, 0, black_ns, origin_ns);
	add_signal(f, 0, green_ns, origin_ns + paused_ns);
	return f->pause.b;
}

static void learn__how_much_a_pause_reduces_the_delay(struct kunit *test)
{
	static const struct { u64 black_ns, paused_ns, green_ns; u32 want; } cases[] = {
		{ 40000, 10000, 30000, ONE },
		{ 40000, 10000, 35000, ONE / 2 },
		{ 40000, 10000, 37500, ONE / 4 },
		{ 40000, 10000, 40000, 0 },
		{ 40000, 65536, 39999, 1 },
		{ 40000, 65537, 39999, 0 },
		/* The delay fell by more than the pause, or rose. */
		{ 40000, 10000, 29999, ONE },
		{ 40000, 1, 0, ONE },
		{ 40000, 10000, 40001, 0 },
		{ 0, 10000, 50000, 0 },
		/* One ns less than all. */
		{ 40000, 10000, 30001, ONE - 7 },
		/* The longest delays, and longer pauses. */
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
		f.cfg.threshold_ns = U64_MAX;
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
		f.cfg.threshold_ns = U64_MAX;
		KUNIT_EXPECT_EQ_MSG(test, learn(&f, 40000, none[i], 30000), ONE / 2,
				    "case %u", i);
	}
}

/* Signals out of order: the last reported packet is the black one in any case. */
static void learn__green_becomes_black(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.cfg.threshold_ns = U64_MAX;
	add_signal(&f, 0, 40000, 20000);
	KUNIT_EXPECT_EQ(test, f.pause.black_delay_ns, 40000ULL);
	KUNIT_EXPECT_EQ(test, f.pause.black_asserted_ns, 20000ULL);
	KUNIT_EXPECT_TRUE(test, f.pause.have_black);
	add_signal(&f, 0, 20000, 10000);
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 2);
	/* Not 10000 more than the first, but 20000 more than the second. */
	add_signal(&f, 0, 15000, 30000);
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 4);
}

static void learn__nothing_of_the_first_packet(struct kunit *test)
{
	struct flow f;

	start(&f);
	/* If the initial zeros counted as a packet, b would be 0. */
	add_signal(&f, 0, 40000, 10000);
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 2);
}

static void learn__b_moves_by_the_gain(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.cfg.threshold_ns = U64_MAX;
	f.cfg.gain = ONE / 16;
	/* 15/16 of 1/2 and 1/16 of 1. */
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 30000), ONE * 17 / 32);
	f.pause.b = ONE / 2;
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 40000), ONE * 15 / 32);
	/* Rounding to nearest: no drift in either direction. */
	f.pause.b = 100;
	f.cfg.gain = ONE / 4;
	KUNIT_EXPECT_EQ(test, learn(&f, 65536, 65536, 65536 - 102), 101U);
	f.cfg.gain = 0;
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 30000), 101U);
	/* A gain beyond 1 is 1. */
	f.cfg.gain = U32_MAX;
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 35000), ONE / 2);
}

static void learn__b_reaches_both_ends(struct kunit *test)
{
	struct flow f;
	u32 i;

	start(&f);
	f.cfg.threshold_ns = U64_MAX;
	f.cfg.gain = ONE / 16;
	for (i = 0; i < 300; i++)
		KUNIT_EXPECT_LE(test, learn(&f, 40000, 10000, 0), ONE);
	KUNIT_EXPECT_GE(test, f.pause.b, ONE - 8);
	for (i = 0; i < 300; i++)
		learn(&f, 40000, 10000, 50000);
	KUNIT_EXPECT_LE(test, f.pause.b, 8U);
}

/* b is updated before the same signal is judged. */
static void learn__before_it_is_used(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.pause.asserted_ns = 100 * US;
	add_signal(&f, 0, 240 * US, 0);
	/* 240 - 50 - 50 */
	EXPECT_REST(test, &f, 140 * US);
	EXPECT_C(test, &f, 240 * US);
	add_signal(&f, 0, 230 * US, 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.b, 6553U);
	/* 230 - 50 - 14 */
	EXPECT_REST(test, &f, 230 * US - T_NS - 140 * US * 6553 / ONE);
}

static void learn__not_in_strawman_mode(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.cfg.strawman = true;
	KUNIT_EXPECT_EQ(test, learn(&f, 40000, 10000, 30000), ONE / 2);
	KUNIT_EXPECT_TRUE(test, f.pause.have_black);
	/* b counts as 0 whatever its value is. */
	f.pause.b = ONE;
	f.pause.asserted_ns = 1000 * US;
	add_signal(&f, 0, T_NS + 100 * US, 0);
	EXPECT_REST(test, &f, 100 * US);
	/* The last packet is known when strawman is turned off. */
	f.cfg.strawman = false;
	f.cfg.threshold_ns = U64_MAX;
	add_signal(&f, 0, T_NS + 75 * US, 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 4);
}

/* ---- bounds ---- */

static void bound__no_pause_is_longer(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 0, T_NS + LONGEST_NS, 0));
	EXPECT_REST(test, &f, LONGEST_NS);
	start(&f);
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 0, T_NS + LONGEST_NS + 1, 0));
	EXPECT_REST(test, &f, LONGEST_NS);
	EXPECT_C(test, &f, LONGEST_NS);
}

/* The longest possible delay every 100 us, for ten times as long. */
static void bound__under_endless_signals(struct kunit *test)
{
	struct flow f;
	u32 i;

	start(&f);
	f.cfg.strawman = true;
	for (i = 0; i < 10 * LONGEST_NS / (100 * US); i++) {
		add_signal(&f, i ? 100 * US : 0, TIMELY_PAUSE_DELAY_MAX_NS, f.pause.asserted_ns);
		KUNIT_EXPECT_EQ(test, f.pause.until_ns, NOW_NS + LONGEST_NS);
		EXPECT_C(test, &f, LONGEST_NS);
	}
}

static void bound__counts_from_the_start_of_the_pause(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.cfg.strawman = true;
	add_signal(&f, 0, T_NS + LONGEST_NS, 0);
	/* The pause is shortened, and lengthened again near its end. */
	add_signal(&f, LONGEST_NS / 2, T_NS + 10 * US, 0);
	EXPECT_REST(test, &f, 10 * US);
	EXPECT_C(test, &f, LONGEST_NS / 2 + 10 * US);
	add_signal(&f, 9 * US, T_NS + LONGEST_NS, 0);
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, NOW_NS + LONGEST_NS);
	EXPECT_C(test, &f, LONGEST_NS);
}

static void bound__a_packet_leaves_between_pauses(struct kunit *test)
{
	struct timely_pause before;
	struct flow f;

	start(&f);
	f.cfg.strawman = true;
	f.signal.departures = 7;
	add_signal(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_EQ(test, f.pause.departures, 7U);
	/* In its last ns the pause continues; one ns later, it is over. */
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 100 * US - 1, T_NS + 10 * US, 0));
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, NOW_NS);
	before = f.pause;
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 10 * US, T_NS + 100 * US, 0));
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, before.until_ns);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, before.since_ns);
	EXPECT_C(test, &f, before.asserted_ns);
	KUNIT_EXPECT_FALSE(test, add_signal(&f, NSEC_PER_SEC, T_NS + 100 * US, 0));

	f.signal.departures++;
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 0, T_NS + 100 * US, 0));
	EXPECT_REST(test, &f, 100 * US);
	EXPECT_C(test, &f, before.asserted_ns + 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, f.signal.now_ns);
	KUNIT_EXPECT_EQ(test, f.pause.departures, 8U);
}

/* A packet that left during the pause, such as an ACK, counts. */
static void bound__a_packet_that_left_during_a_pause(struct kunit *test)
{
	struct flow f;

	start(&f);
	add_signal(&f, 0, T_NS + 100 * US, 0);
	f.signal.departures++;
	add_signal(&f, 10 * US, T_NS + 200 * US, 0);
	KUNIT_EXPECT_EQ(test, f.pause.departures, 0U);
	KUNIT_EXPECT_TRUE(test, add_signal(&f, NSEC_PER_SEC, T_NS + 100 * US, f.pause.asserted_ns));
}

static void bound__departures_wrap(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.signal.departures = U32_MAX;
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 0, T_NS + 100 * US, 0));
	f.signal.departures++;
	KUNIT_EXPECT_TRUE(test, add_signal(&f, NSEC_PER_SEC, T_NS + 100 * US, f.pause.asserted_ns));
}

/* b and the black packet are updated even if a pause is refused. */
static void bound__a_refused_pause_updates_b(struct kunit *test)
{
	struct flow f;

	start(&f);
	add_signal(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_FALSE(test, add_signal(&f, NSEC_PER_SEC, T_NS + 75 * US, 100 * US));
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 4);
	KUNIT_EXPECT_EQ(test, f.pause.black_delay_ns, T_NS + 75 * US);
}

static void bound__of_zero(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.cfg.pause_max_ns = 0;
	add_signal(&f, 0, T_NS + 100 * US, 0);
	EXPECT_REST(test, &f, 0);
	EXPECT_C(test, &f, 0);
	/* If pause_max is lowered during a pause, the pause ends with the next signal. */
	start(&f);
	f.cfg.strawman = true;
	add_signal(&f, 0, T_NS + 100 * US, 0);
	f.cfg.pause_max_ns = 30 * US;
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 40 * US, T_NS + 100 * US, 0));
	EXPECT_REST(test, &f, 0);
	EXPECT_C(test, &f, 40 * US);
}

static void bound__at_the_end_of_time(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.signal.now_ns = U64_MAX - 10;
	f.cfg.pause_max_ns = U64_MAX;
	add_signal(&f, 0, T_NS + 100 * US, 0);
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, U64_MAX);
	EXPECT_C(test, &f, 10);
	add_signal(&f, 10, T_NS + 100 * US, 10);
	EXPECT_REST(test, &f, 0);
	EXPECT_C(test, &f, 10);
}

/* CPUs may report times out of order: a pause may start later than now. */
static void bound__when_time_runs_backwards(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.cfg.strawman = true;
	add_signal(&f, 0, T_NS + 100 * US, 0);
	f.signal.now_ns -= 20 * US;
	add_signal(&f, 0, TIMELY_PAUSE_DELAY_MAX_NS, 0);
	EXPECT_REST(test, &f, LONGEST_NS);
	KUNIT_EXPECT_LE(test, f.pause.until_ns, f.pause.since_ns + LONGEST_NS);
	EXPECT_C(test, &f, LONGEST_NS - 20 * US);
}

/* ---- a flow that starts ---- */

/* Start a flow by a delay that another flow measured @age_ns ago. */
static bool start_by(struct flow *f, u64 delay_ns, u64 age_ns)
{
	f->signal.delay_ns = delay_ns;
	/* The signal of another flow must not be changed. */
	f->signal.asserted_ns = 0x5a5a5a5a5a5a5a5a;
	return timely_pause_start(&f->pause, &f->cfg, &f->signal, age_ns);
}

static void start__by_the_delay_of_another_flow(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_TRUE(test, start_by(&f, T_NS + 100 * US, 0));
	EXPECT_REST(test, &f, 100 * US);
	EXPECT_C(test, &f, 100 * US);
	KUNIT_EXPECT_EQ(test, f.pause.since_ns, NOW_NS);
	/* Neither b nor the black packet has changed. */
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 2);
	KUNIT_EXPECT_FALSE(test, f.pause.have_black);
	KUNIT_EXPECT_EQ(test, f.pause.black_delay_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, f.pause.black_asserted_ns, 0ULL);
}

static void start__less_the_age_of_the_delay(struct kunit *test)
{
	struct flow f;

	start(&f);
	start_by(&f, T_NS + 100 * US, 40 * US);
	EXPECT_REST(test, &f, 60 * US);
	start(&f);
	KUNIT_EXPECT_TRUE(test, start_by(&f, T_NS + 100 * US, 100 * US - 1));
	EXPECT_REST(test, &f, 1);
}

static void start__not_by_an_old_delay(struct kunit *test)
{
	static const u64 ages[] = { 100 * US, T_NS + 100 * US, T_NS + 100 * US + 1, FAR, U64_MAX };
	struct flow f;
	u32 i;

	start(&f);
	for (i = 0; i < ARRAY_SIZE(ages); i++)
		KUNIT_EXPECT_FALSE(test, start_by(&f, T_NS + 100 * US, ages[i]));
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, 0ULL);
	EXPECT_C(test, &f, 0);
	/* A delay at the threshold starts no pause, nor does a delay above a second. */
	KUNIT_EXPECT_FALSE(test, start_by(&f, T_NS, 0));
	KUNIT_EXPECT_FALSE(test, start_by(&f, TIMELY_PAUSE_DELAY_MAX_NS + 1, 0));
	KUNIT_EXPECT_FALSE(test, start_by(&f, U64_MAX, U64_MAX - T_NS - 100 * US));
	KUNIT_EXPECT_TRUE(test, start_by(&f, TIMELY_PAUSE_DELAY_MAX_NS, 0));
	EXPECT_REST(test, &f, LONGEST_NS);
}

static void start__not_during_a_pause(struct kunit *test)
{
	struct flow f;

	start(&f);
	add_signal(&f, 0, T_NS + 100 * US, 0);
	f.signal.departures++;
	f.signal.now_ns += 100 * US - 1;
	KUNIT_EXPECT_FALSE(test, start_by(&f, T_NS + 300 * US, 0));
	EXPECT_REST(test, &f, 1);
	EXPECT_C(test, &f, 100 * US);
	f.signal.now_ns++;
	KUNIT_EXPECT_TRUE(test, start_by(&f, T_NS + 300 * US, 0));
	EXPECT_REST(test, &f, 300 * US);
	EXPECT_C(test, &f, 400 * US);
}

static void start__not_again_without_a_departure(struct kunit *test)
{
	struct flow f;

	start(&f);
	start_by(&f, T_NS + 100 * US, 0);
	f.signal.now_ns += NSEC_PER_SEC;
	KUNIT_EXPECT_FALSE(test, start_by(&f, T_NS + 100 * US, 0));
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 0, T_NS + 100 * US, f.pause.asserted_ns));
	f.signal.departures++;
	KUNIT_EXPECT_TRUE(test, start_by(&f, T_NS + 100 * US, 0));
}

/* The pause counts as the flow's own, so the queue is not answered twice. */
static void start__counts_as_a_pause(struct kunit *test)
{
	struct flow f;

	start(&f);
	f.pause.b = ONE;
	start_by(&f, T_NS + 100 * US, 0);
	f.signal.departures++;
	KUNIT_EXPECT_FALSE(test, add_signal(&f, 120 * US, T_NS + 100 * US, 0));
	KUNIT_EXPECT_TRUE(test, add_signal(&f, 0, T_NS + 120 * US, 0));
	EXPECT_REST(test, &f, 20 * US);
}

/* ---- the turn of a trimmed packet ---- */

/* No threshold, and b and the black packet stay as they are. */
static void turn__pauses_until_the_turn(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_FALSE(test, timely_pause_turn(&f.pause, &f.cfg, &f.signal, 0));
	KUNIT_EXPECT_EQ(test, f.pause.until_ns, 0ULL);
	KUNIT_EXPECT_TRUE(test, timely_pause_turn(&f.pause, &f.cfg, &f.signal, 7 * US));
	EXPECT_REST(test, &f, 7 * US);
	EXPECT_C(test, &f, 7 * US);
	KUNIT_EXPECT_EQ(test, f.pause.b, ONE / 2);
	KUNIT_EXPECT_FALSE(test, f.pause.have_black);
}

static void turn__keeps_the_present_pause(struct kunit *test)
{
	struct flow f;

	start(&f);
	timely_pause_turn(&f.pause, &f.cfg, &f.signal, 7 * US);
	f.signal.departures++;
	f.signal.now_ns += 7 * US - 1;
	KUNIT_EXPECT_FALSE(test, timely_pause_turn(&f.pause, &f.cfg, &f.signal, 90 * US));
	EXPECT_REST(test, &f, 1);
	f.signal.now_ns++;
	KUNIT_EXPECT_TRUE(test, timely_pause_turn(&f.pause, &f.cfg, &f.signal, 90 * US));
	EXPECT_REST(test, &f, 90 * US);
}

static void turn__has_the_limits_of_a_pause(struct kunit *test)
{
	struct flow f;

	start(&f);
	KUNIT_EXPECT_TRUE(test, timely_pause_turn(&f.pause, &f.cfg, &f.signal, FAR));
	EXPECT_REST(test, &f, LONGEST_NS);
	/* No packet has left since the pause. */
	f.signal.now_ns += LONGEST_NS;
	KUNIT_EXPECT_FALSE(test, timely_pause_turn(&f.pause, &f.cfg, &f.signal, 7 * US));
}

/* ---- the minimum filter ---- */

#define HALF_NS		1000ULL

static void min_filter__minimum_of_the_window(struct kunit *test)
{
	static const struct { u64 now_ns, value, want; } steps[] = {
		{ 10000, 500, 500 },
		{ 10000, 600, 500 },
		{ 10999, 400, 400 },
		/* The next half: 400 is in the previous one. */
		{ 11000, 700, 400 },
		{ 11999, 450, 400 },
		/* The next half: 400 has expired, 450 has not. */
		{ 12000, 900, 450 },
		{ 12999, 800, 450 },
		{ 13000, 850, 800 },
		/* A value with an earlier time does not shift the halves. */
		{ 14999, 870, 850 },
		{ 15000, 880, 870 },
		{ 15999, 890, 870 },
		{ 16000, 895, 880 },
		/* No value for two halves. */
		{ 18000, 990, 990 },
		{ 18999, 999, 990 },
		{ 19999, 1000, 990 },
		{ 1000000, 2000, 2000 },
	};
	struct timely_min_filter filter;
	u32 i;

	timely_min_filter_init(&filter);
	for (i = 0; i < ARRAY_SIZE(steps); i++)
		KUNIT_EXPECT_EQ_MSG(test, timely_min_filter_add(&filter, steps[i].now_ns, HALF_NS,
								steps[i].value), steps[i].want,
				    "step %u", i);
}

static void min_filter__empty_at_first(struct kunit *test)
{
	static const u64 times[] = { 0, 1, HALF_NS - 1, HALF_NS, 2 * HALF_NS, FAR, U64_MAX };
	struct timely_min_filter filter;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		memset(&filter, 0, sizeof(filter));
		timely_min_filter_init(&filter);
		KUNIT_EXPECT_EQ(test, filter.before, U64_MAX);
		KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, times[i], HALF_NS, 1234),
				1234ULL);
	}
	timely_min_filter_init(&filter);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 0, HALF_NS, U64_MAX), U64_MAX);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 0, HALF_NS, 0), 0ULL);
}

static void min_filter__shifts(struct kunit *test)
{
	struct timely_min_filter filter;

	timely_min_filter_init(&filter);
	timely_min_filter_shift(&filter, 100);
	timely_min_filter_shift(&filter, -100);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10000, HALF_NS, 500), 500ULL);
	timely_min_filter_shift(&filter, 70);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10000, HALF_NS, 800), 570ULL);
	/* The previous half is shifted, too. */
	timely_min_filter_add(&filter, 10000 + HALF_NS, HALF_NS, 900);
	timely_min_filter_shift(&filter, -80);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10000 + HALF_NS, HALF_NS, 850),
			490ULL);
	timely_min_filter_shift(&filter, -491);
	KUNIT_EXPECT_EQ(test, filter.before, 0ULL);
	KUNIT_EXPECT_EQ(test, filter.least, 329ULL);
	timely_min_filter_shift(&filter, S64_MIN);
	timely_min_filter_shift(&filter, S64_MAX);
	timely_min_filter_shift(&filter, S64_MAX);
	timely_min_filter_shift(&filter, S64_MAX);
	KUNIT_EXPECT_EQ(test, filter.least, U64_MAX - 1);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10000 + HALF_NS, HALF_NS, 1), 1ULL);
}

/* CPUs call with times that are slightly out of order: the minimum stays. */
static void min_filter__when_time_runs_backwards(struct kunit *test)
{
	struct timely_min_filter filter;

	timely_min_filter_init(&filter);
	timely_min_filter_add(&filter, 10000, HALF_NS, 500);
	timely_min_filter_add(&filter, 11000, HALF_NS, 700);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10999, HALF_NS, 600), 500ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10001, HALF_NS, 600), 500ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 11001, HALF_NS, 700), 500ULL);
	/* A value with an earlier time belongs to the present half: it counts in the next half,
	 * too, and then expires.
	 */
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 12000, HALF_NS, 700), 600ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 13000, HALF_NS, 900), 700ULL);
}

/* Set back by more: a new window starts, without waiting for the old time. */
static void min_filter__when_time_is_set_back(struct kunit *test)
{
	struct timely_min_filter filter;

	timely_min_filter_init(&filter);
	timely_min_filter_add(&filter, 1000000, HALF_NS, 500);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 1000000 - HALF_NS, HALF_NS, 700),
			700ULL);
	timely_min_filter_add(&filter, 1000000, HALF_NS, 600);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10000, HALF_NS, 800), 800ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10999, HALF_NS, 900), 800ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 12000, HALF_NS, 900), 900ULL);
	/* When time wraps, the window continues. */
	timely_min_filter_add(&filter, 0ULL - 500, HALF_NS, 300);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 400, HALF_NS, 400), 300ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 600, HALF_NS, 400), 300ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 1500, HALF_NS, 450), 400ULL);
}

static void min_filter__of_any_length(struct kunit *test)
{
	struct timely_min_filter filter;

	/* A length of 0: no value counts later than at its time. */
	timely_min_filter_init(&filter);
	timely_min_filter_add(&filter, 10000, 0, 500);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10000, 0, 600), 600ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10001, 0, 700), 700ULL);
	/* A length whose double does not fit in 64 bits: values do not expire. */
	timely_min_filter_init(&filter);
	timely_min_filter_add(&filter, 10000, FAR, 500);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, FAR - 1, FAR, 600), 500ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 10000, U64_MAX, 600), 500ULL);
	timely_min_filter_init(&filter);
	timely_min_filter_add(&filter, 0, 1, 500);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 1, 1, 600), 500ULL);
	KUNIT_EXPECT_EQ(test, timely_min_filter_add(&filter, 2, 1, 700), 600ULL);
}

/* ---- senders that share a link ---- */

#define SENDERS		8
#define ACKS		64
#define PACKET_NS	1200	/* 1500 bytes at 10 Gb/s, of the link and of each sender */
#define WIRE_NS		10000	/* delay of each direction: the base RTT is 20 us */
#define LOOP_T_NS	(WIRE_NS + 30000)
#define FIRST_NS	NSEC_PER_MSEC
#define WARM_NS		(10 * NSEC_PER_MSEC)
#define END_NS		(40 * NSEC_PER_MSEC)

/**
 * struct loop_sender - a sender that keeps a window of packets in flight, unless it is paused
 * @pause: state of the controller
 * @next_ns: when the sender's link is free again
 * @departures: packets that have departed
 * @acked: packets that have been acknowledged
 * @acks: time and contents of the OR-ACKs for packets that are not yet acknowledged
 */
struct loop_sender {
	struct timely_pause pause;
	u64 next_ns;
	u32 departures;
	u32 acked;
	struct {
		u64 at_ns;
		u64 delay_ns;
		u64 asserted_ns;
	} acks[ACKS];
};

/**
 * struct loop - senders, one queue, a link
 * @cfg: parameters of all senders
 * @senders: the senders
 * @count: number of senders
 * @window: window of each sender, packets
 * @now_ns: the time
 * @link_ns: the link is busy until then
 * @idle_ns: idle time of the link after WARM_NS
 */
struct loop {
	struct timely_pause_cfg cfg;
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
	loop->cfg = (struct timely_pause_cfg) {
		.threshold_ns = LOOP_T_NS,
		.pause_max_ns = NSEC_PER_MSEC,
		.gain = ONE / 16,
		.strawman = strawman,
	};
	loop->count = count;
	loop->window = window;
	for (i = 0; i < count; i++) {
		timely_pause_init(&loop->senders[i].pause);
		/* The senders start at different times. */
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

static void loop_receive(struct loop *loop, struct loop_sender *s)
{
	u32 i = s->acked++ % ACKS;
	struct timely_pause_signal signal = {
		.now_ns = loop->now_ns,
		.delay_ns = s->acks[i].delay_ns,
		.asserted_ns = s->acks[i].asserted_ns,
		.departures = s->departures,
	};

	timely_pause_update(&s->pause, &loop->cfg, &signal);
}

/* When the sender's next packet may leave, as far as is known. */
static u64 loop_ready_ns(const struct loop *loop, const struct loop_sender *s)
{
	if (s->departures - s->acked >= loop->window)
		return U64_MAX;
	return max(max(s->next_ns, s->pause.until_ns), loop->now_ns);
}

/* Simulate the next event: a packet departs, or an OR-ACK arrives. */
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
		if (s->acked != s->departures && s->acks[s->acked % ACKS].at_ns <= next_ns) {
			next_ns = s->acks[s->acked % ACKS].at_ns;
			next = s;
			ack = true;
		}
	}
	loop->now_ns = next_ns;
	if (ack)
		loop_receive(loop, next);
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

/* Long flows as in the paper's Figure 5, whose windows make up to four times the queue that T
 * allows. Both forms remove the queue; the strawman removes too much.
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

/* With much larger windows the final form loses throughput, too, but less than the strawman. */
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

/* ---- between pauses ---- */

#define RTT_NS		(100 * US)
/* Rate of a flow, bytes per second, and the bytes that it sends in a millisecond. */
#define GBPS		1000000000ULL
#define MS_BYTES	1000000ULL
/* The lowest limit of a rate: four packets of 1500 bytes in RTT_NS. */
#define LEAST_BPS	60000000ULL

/* A flow that sent 1 MB from one pause to the next, a millisecond later. */
static void pause_twice(struct timely_resume *resume)
{
	timely_resume_init(resume);
	timely_resume_pause(resume, NOW_NS, NOW_NS + 10 * US, RTT_NS, MS_BYTES);
	timely_resume_pause(resume, NOW_NS + 1000 * US, NOW_NS + 1010 * US, RTT_NS,
			    2 * MS_BYTES);
}

static void resume__unlimited_at_first(struct kunit *test)
{
	struct timely_resume resume;

	timely_resume_init(&resume);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	timely_resume_grow(&resume, NOW_NS, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
}

/* A single pause says nothing about the rate between two pauses. */
static void resume__unlimited_after_the_first_pause(struct kunit *test)
{
	struct timely_resume resume;

	timely_resume_init(&resume);
	timely_resume_pause(&resume, NOW_NS, NOW_NS + 10 * US, RTT_NS, MS_BYTES);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
}

static void resume__by_the_rate_between_two_pauses(struct kunit *test)
{
	struct timely_resume resume;

	pause_twice(&resume);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, GBPS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, 7 * GBPS / 4);
}

/* Over a long time a flow may have been idle, so what it sent is not its share. */
static void resume__ignores_a_pause_long_ago(struct kunit *test)
{
	struct timely_resume resume;

	pause_twice(&resume);
	timely_resume_pause(&resume, NOW_NS + 1000 * US + 16 * RTT_NS, NOW_NS + 3000 * US,
			    RTT_NS, 2 * MS_BYTES);
	KUNIT_EXPECT_LT(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	timely_resume_pause(&resume, NOW_NS + 1000 * US + 33 * RTT_NS, NOW_NS + 5000 * US,
			    RTT_NS, 3 * MS_BYTES);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, 0ULL);
	timely_resume_pause(&resume, NOW_NS + 1000 * US + 43 * RTT_NS, NOW_NS + 6000 * US,
			    RTT_NS, 4 * MS_BYTES);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, GBPS);
}

static void resume__averages_with_weight_one_quarter(struct kunit *test)
{
	struct timely_resume resume;

	pause_twice(&resume);
	timely_resume_pause(&resume, NOW_NS + 2000 * US, NOW_NS + 2010 * US, RTT_NS,
			    2 * MS_BYTES);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, 3 * GBPS / 4);
}

static void resume__at_least_four_packets_per_rtt(struct kunit *test)
{
	struct timely_resume resume;

	timely_resume_init(&resume);
	timely_resume_pause(&resume, NOW_NS, NOW_NS + 10 * US, RTT_NS, 0);
	timely_resume_pause(&resume, NOW_NS + 1000 * US, NOW_NS + 1010 * US, RTT_NS, 0);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, LEAST_BPS);
}

static void resume__grows_when_no_pause_follows(struct kunit *test)
{
	u64 end_ns = NOW_NS + 1010 * US, rate_Bps;
	struct timely_resume resume;

	pause_twice(&resume);
	rate_Bps = resume.rate_Bps;
	timely_resume_grow(&resume, end_ns + 2 * RTT_NS - 1, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, rate_Bps);
	timely_resume_grow(&resume, end_ns + 2 * RTT_NS, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, rate_Bps + rate_Bps / 2 + 1);
	rate_Bps = resume.rate_Bps;
	timely_resume_grow(&resume, end_ns + 3 * RTT_NS - 1, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, rate_Bps);
	timely_resume_grow(&resume, end_ns + 3 * RTT_NS, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, rate_Bps + rate_Bps / 2 + 1);
}

/* The limit ends, and the recorded pause is discarded. */
static void resume__grows_until_unlimited(struct kunit *test)
{
	struct timely_resume resume;
	u32 i;

	pause_twice(&resume);
	for (i = 0; i < 9; i++)
		timely_resume_grow(&resume, NOW_NS + 10000 * US + i * 2 * RTT_NS, RTT_NS);
	KUNIT_EXPECT_LT(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	timely_resume_grow(&resume, NOW_NS + 20000 * US, RTT_NS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, TIMELY_RESUME_UNLIMITED);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, 0ULL);
	KUNIT_EXPECT_EQ(test, resume.begun_ns, 0ULL);
}

/* Rates above those of any link count as 800 Gb/s. */
static void resume__faster_than_any_link(struct kunit *test)
{
	struct timely_resume resume;

	timely_resume_init(&resume);
	timely_resume_pause(&resume, NOW_NS, NOW_NS, RTT_NS, 0);
	timely_resume_pause(&resume, NOW_NS + 1, NOW_NS + 1, RTT_NS, U64_MAX);
	KUNIT_EXPECT_EQ(test, resume.average_Bps, 100 * GBPS);
	KUNIT_EXPECT_EQ(test, resume.rate_Bps, 175 * GBPS);
}

/* For any clocks and counters, the limit is between its bounds. */
static void resume__of_hostile_numbers(struct kunit *test)
{
	static const u64 odd[] = { 0, 1, NOW_NS, FAR, U64_MAX };
	struct timely_resume resume;
	u32 i, n = ARRAY_SIZE(odd);

	timely_resume_init(&resume);
	for (i = 0; i < n * n * n * n; i++) {
		timely_resume_pause(&resume, odd[i % n], odd[i / n % n], odd[i / n / n % n],
				    odd[i / n / n / n]);
		KUNIT_EXPECT_GE(test, resume.rate_Bps, 1ULL);
		if (resume.rate_Bps != TIMELY_RESUME_UNLIMITED)
			KUNIT_EXPECT_LE(test, resume.rate_Bps, 6000 * GBPS);
		timely_resume_grow(&resume, odd[i / n % n], odd[i % n]);
		KUNIT_EXPECT_GE(test, resume.rate_Bps, 1ULL);
	}
}

static struct kunit_case pause_cases[] = {
	KUNIT_CASE(init__not_paused),
	KUNIT_CASE(update__pauses_for_the_delay_above_the_threshold),
	KUNIT_CASE(update__delay_at_the_threshold_does_not_pause),
	KUNIT_CASE(update__threshold_of_zero),
	KUNIT_CASE(update__second_signal_of_the_same_queue),
	KUNIT_CASE(update__low_delay_keeps_the_present_pause),
	KUNIT_CASE(update__end_moves_both_ways),
	KUNIT_CASE(update__only_pauses_since_the_packet_left),
	KUNIT_CASE(update__c_may_wrap),
	KUNIT_CASE(update__recorded_c_beyond_the_present_one),
	KUNIT_CASE(update__pauses_longer_than_any_delay),
	KUNIT_CASE(update__delays_above_a_second_are_ignored),
	KUNIT_CASE(learn__how_much_a_pause_reduces_the_delay),
	KUNIT_CASE(learn__nothing_without_a_pause_between),
	KUNIT_CASE(learn__green_becomes_black),
	KUNIT_CASE(learn__nothing_of_the_first_packet),
	KUNIT_CASE(learn__b_moves_by_the_gain),
	KUNIT_CASE(learn__b_reaches_both_ends),
	KUNIT_CASE(learn__before_it_is_used),
	KUNIT_CASE(learn__not_in_strawman_mode),
	KUNIT_CASE(bound__no_pause_is_longer),
	KUNIT_CASE(bound__under_endless_signals),
	KUNIT_CASE(bound__counts_from_the_start_of_the_pause),
	KUNIT_CASE(bound__a_packet_leaves_between_pauses),
	KUNIT_CASE(bound__a_packet_that_left_during_a_pause),
	KUNIT_CASE(bound__departures_wrap),
	KUNIT_CASE(bound__a_refused_pause_updates_b),
	KUNIT_CASE(bound__of_zero),
	KUNIT_CASE(bound__at_the_end_of_time),
	KUNIT_CASE(bound__when_time_runs_backwards),
	KUNIT_CASE(start__by_the_delay_of_another_flow),
	KUNIT_CASE(start__less_the_age_of_the_delay),
	KUNIT_CASE(start__not_by_an_old_delay),
	KUNIT_CASE(start__not_during_a_pause),
	KUNIT_CASE(start__not_again_without_a_departure),
	KUNIT_CASE(start__counts_as_a_pause),
	KUNIT_CASE(turn__pauses_until_the_turn),
	KUNIT_CASE(turn__keeps_the_present_pause),
	KUNIT_CASE(turn__has_the_limits_of_a_pause),
	KUNIT_CASE(min_filter__minimum_of_the_window),
	KUNIT_CASE(min_filter__empty_at_first),
	KUNIT_CASE(min_filter__shifts),
	KUNIT_CASE(min_filter__when_time_runs_backwards),
	KUNIT_CASE(min_filter__when_time_is_set_back),
	KUNIT_CASE(min_filter__of_any_length),
	KUNIT_CASE(loop__keeps_the_link_busy),
	KUNIT_CASE(loop__never_does_worse_than_the_strawman),
	KUNIT_CASE(resume__unlimited_at_first),
	KUNIT_CASE(resume__unlimited_after_the_first_pause),
	KUNIT_CASE(resume__by_the_rate_between_two_pauses),
	KUNIT_CASE(resume__ignores_a_pause_long_ago),
	KUNIT_CASE(resume__averages_with_weight_one_quarter),
	KUNIT_CASE(resume__at_least_four_packets_per_rtt),
	KUNIT_CASE(resume__grows_when_no_pause_follows),
	KUNIT_CASE(resume__grows_until_unlimited),
	KUNIT_CASE(resume__faster_than_any_link),
	KUNIT_CASE(resume__of_hostile_numbers),
	{}
};

static struct kunit_suite pause_suite = {
	.name = "timely_pause",
	.test_cases = pause_cases,
};

kunit_test_suite(pause_suite);
