// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of On-Ramp's one-way delays (owd.c): a path with two directions, a receiver whose clock is
 * stepped and slewed, and an attacker who replays the receiver's OR-ACKs. The effect of a wrong
 * clock on the delay is bounded in size and time. Cases are named function__case.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include <timely/engine/owd.h>

#define US		1000LL
#define MS		1000000LL
#define S		1000000000LL
/* The sender's CLOCK_REALTIME minus CLOCK_MONOTONIC. */
#define REAL_NS		1700000000000000000ULL
/* Threshold of absolute delays, above the delay of the idle path. */
#define THRESHOLD_NS	(20 * US)
/* Interval between OR-ACKs. */
#define EVERY_NS	(100 * US)

/**
 * struct path - a sender, a receiver, and the two directions between them
 * @owd: what the sender knows about the receiver
 * @timeline: what the sender knows about the clock from one flow
 * @clock: memory for @owd
 * @signal: the last OR-ACK
 * @relative: compute relative delays instead of absolute ones
 * @now_ns: the sender's CLOCK_MONOTONIC
 * @there_ns: minimum forward delay
 * @back_ns: minimum reverse delay
 * @queue_ns: queueing delay of the forward direction
 * @back_queue_ns: queueing delay of the reverse direction, random from 0 to this
 * @jitter_ns: random delay of either direction
 * @offset_ns: the receiver's clock minus the sender's CLOCK_REALTIME
 * @drift_ppm: growth of @offset_ns
 * @dice: state of the random numbers
 * @bad: signals that were ignored
 * @doubted: signals whose delay was bounded by the round trip
 * @most_ns: largest delay since reset()
 * @least_ns: smallest delay since reset()
 */
struct path {
	struct timely_owd owd;
	struct timely_timeline timeline;
	struct timely_clock clock;
	struct timely_owd_signal signal;
	bool relative;
	u64 now_ns;
	s64 there_ns;
	s64 back_ns;
	s64 queue_ns;
	u32 back_queue_ns;
	u32 jitter_ns;
	s64 offset_ns;
	s32 drift_ppm;
	u32 dice;
	u32 bad;
	u32 doubted;
	u64 most_ns;
	u64 least_ns;
};

static u32 roll(struct path *p, u32 below)
{
	p->dice = p->dice * 1664525 + 1013904223;
	return below ? (p->dice >> 8) % below : 0;
}

static void reset(struct path *p)
{
	p->bad = 0;
	p->doubted = 0;
	p->most_ns = 0;
	p->least_ns = U64_MAX;
}

static void restart(struct path *p, bool relative, s64 base_ns)
{
	memset(p, 0, sizeof(*p));
	timely_owd_init(&p->owd);
	timely_clock_init(&p->clock);
	p->owd.clock = relative ? &p->clock : NULL;
	p->relative = relative;
	p->now_ns = 1000 * S;
	p->there_ns = base_ns / 2;
	p->back_ns = base_ns - base_ns / 2;
	p->jitter_ns = 2 * US;
	reset(p);
}

static struct path *start(struct kunit *test, bool relative, s64 base_ns)
{
	struct path *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	restart(p, relative, base_ns);
	return p;
}

static u64 threshold(const struct path *p)
{
	return p->there_ns + THRESHOLD_NS;
}

/* Compute the delay of a signal. */
static enum timely_owd_verdict judge(struct path *p, const struct timely_owd_signal *signal,
				     u64 *delay_ns)
{
	return p->relative ?
	       timely_owd_relative(&p->owd, &p->timeline, signal, delay_ns) :
	       timely_owd_absolute(&p->owd, &p->timeline, signal, 0, threshold(p),
				   delay_ns);
}

/* Send the next packet, and receive its OR-ACK. */
static enum timely_owd_verdict next(struct path *p, u64 *delay_ns)
{
	struct timely_owd_signal *signal = &p->signal;
	enum timely_owd_verdict verdict;
	u64 arrived_ns;

	p->now_ns += EVERY_NS;
	p->offset_ns += p->drift_ppm * (EVERY_NS / 1000) / 1000;
	signal->sent_ns = p->now_ns;
	arrived_ns = signal->sent_ns + p->there_ns + p->queue_ns + roll(p, p->jitter_ns);
	signal->now_ns = arrived_ns + p->back_ns + roll(p, p->jitter_ns) +
			 roll(p, p->back_queue_ns) + 500;
	signal->turnaround_ns = 500;
	signal->received_ns = arrived_ns + REAL_NS + p->offset_ns;
	signal->real_ns = REAL_NS;
	verdict = judge(p, signal, delay_ns);
	p->bad += verdict == TIMELY_OWD_BAD;
	p->doubted += verdict == TIMELY_OWD_DOUBTED;
	if (verdict != TIMELY_OWD_BAD) {
		p->most_ns = max(p->most_ns, *delay_ns);
		p->least_ns = min(p->least_ns, *delay_ns);
	}
	return verdict;
}

static void run(struct path *p, u64 ns)
{
	u64 end_ns = p->now_ns + ns, delay_ns;

	reset(p);
	while (p->now_ns < end_ns)
		next(p, &delay_ns);
}

/* ---- relative ---- */

static const s64 steps_ns[] = {
	-3600 * S, -S, -MS, -200 * US, -100 * US, -50 * US, -20 * US, -US,
	US, 20 * US, 50 * US, 200 * US, MS, S, 3600 * S
};

static const s64 bases_ns[] = { 10 * US, 120 * US, 2 * MS };

/* A step of the clock never looks like a queue on an idle path, and hides no queue for long. */
static void relative__steps(struct kunit *test)
{
	struct path *p = start(test, false, 0);
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(bases_ns); i++) {
		for (j = 0; j < ARRAY_SIZE(steps_ns); j++) {
			restart(p, true, bases_ns[i]);
			p->offset_ns = 7200 * S;
			run(p, 300 * MS);
			KUNIT_EXPECT_EQ(test, p->bad, 0U);
			p->offset_ns += steps_ns[j];
			run(p, 2 * S);
			KUNIT_EXPECT_LE_MSG(test, p->most_ns, (u64)(10 * US),
					    "step %lld on %lld", steps_ns[j], bases_ns[i]);
			/* OR-ACKs are ignored for 20 ms, until the step is accepted. */
			KUNIT_EXPECT_LE_MSG(test, p->bad, 210U, "step %lld on %lld", steps_ns[j],
					    bases_ns[i]);
			p->queue_ns = 300 * US;
			run(p, 100 * MS);
			KUNIT_EXPECT_GE_MSG(test, p->least_ns, (u64)(290 * US), "step %lld on %lld",
					    steps_ns[j], bases_ns[i]);
			KUNIT_EXPECT_LE_MSG(test, p->most_ns, (u64)(310 * US), "step %lld on %lld",
					    steps_ns[j], bases_ns[i]);
			KUNIT_EXPECT_EQ(test, p->bad, 0U);
		}
	}
}

/* A queue of the reverse direction, measured before and after the step, does not count. */
static void relative__queue_of_the_reverse_direction(struct kunit *test)
{
	struct path *p = start(test, true, 120 * US);

	run(p, 300 * MS);
	p->back_queue_ns = 200 * US;
	/* The clock mapping may be in doubt for the first of the two runs. */
	run(p, 300 * MS);
	run(p, 300 * MS);
	KUNIT_EXPECT_LE(test, p->most_ns, (u64)(10 * US));
	p->back_queue_ns = 0;
	p->offset_ns = -200 * US;
	run(p, 300 * MS);
	p->back_queue_ns = 200 * US;
	/* As above, after a clock step. */
	run(p, 300 * MS);
	run(p, 300 * MS);
	KUNIT_EXPECT_LE(test, p->most_ns, (u64)(10 * US));
}

static void relative__slews(struct kunit *test)
{
	struct path *p = start(test, true, 0);
	s32 ppm;

	for (ppm = -500; ppm <= 500; ppm += 1000) {
		restart(p, true, 120 * US);
		run(p, 300 * MS);
		p->drift_ppm = ppm;
		run(p, S);
		KUNIT_EXPECT_LE(test, p->most_ns, (u64)(10 * US));
		p->drift_ppm = 0;
		run(p, S);
		KUNIT_EXPECT_LE(test, p->most_ns, (u64)(10 * US));
		KUNIT_EXPECT_EQ(test, p->bad, 0U);
	}
}

/* Without memory for a clock mapping, a relative delay is the excess of the round trip. */
static void relative__without_a_clock(struct kunit *test)
{
	struct path *p = start(test, true, 120 * US);

	p->owd.clock = NULL;
	run(p, 10 * MS);
	KUNIT_EXPECT_LE(test, p->most_ns, (u64)(5 * US));
	p->queue_ns = 100 * US;
	run(p, 10 * MS);
	KUNIT_EXPECT_GE(test, p->least_ns, (u64)(95 * US));
	p->back_queue_ns = 100 * US;
	run(p, 10 * MS);
	KUNIT_EXPECT_GE(test, p->most_ns, (u64)(180 * US));
}

/* ---- absolute ---- */

static void absolute__synchronised_clocks(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);

	run(p, 100 * MS);
	KUNIT_EXPECT_GE(test, p->least_ns, (u64)(60 * US));
	KUNIT_EXPECT_LE(test, p->most_ns, (u64)(65 * US));
	p->queue_ns = 300 * US;
	run(p, 100 * MS);
	KUNIT_EXPECT_GE(test, p->least_ns, (u64)(360 * US));
	KUNIT_EXPECT_EQ(test, p->doubted, 0U);
	KUNIT_EXPECT_EQ(test, p->bad, 0U);
}

/* A path that has a queue when the first packet leaves: an absolute delay includes all of it. */
static void absolute__a_queue_from_the_beginning(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	u64 delay_ns;

	p->queue_ns = 300 * US;
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
	KUNIT_EXPECT_GE(test, delay_ns, (u64)(360 * US));
	/* The queue drains while senders pause. */
	for (; p->queue_ns > 0; p->queue_ns -= 10 * US)
		KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
}

/* With unsynchronised clocks, the delay of an idle path is above the threshold for 30 ms at most.
 * When the clocks are synchronised again, delays count again.
 */
static void absolute__steps(struct kunit *test)
{
	struct path *p = start(test, false, 0);
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(bases_ns); i++) {
		for (j = 0; j < ARRAY_SIZE(steps_ns); j++) {
			restart(p, false, bases_ns[i]);
			run(p, 300 * MS);
			p->offset_ns = steps_ns[j];
			run(p, 35 * MS);
			run(p, 2 * S);
			KUNIT_EXPECT_LE_MSG(test, p->bad ? 0 : p->most_ns, threshold(p) + 2 * US,
					    "step %lld on %lld", steps_ns[j], bases_ns[i]);
			p->offset_ns = 0;
			run(p, 35 * MS);
			p->queue_ns = 300 * US;
			run(p, 100 * MS);
			KUNIT_EXPECT_GE_MSG(test, p->least_ns, (u64)(p->there_ns + 300 * US),
					    "step %lld on %lld", steps_ns[j], bases_ns[i]);
			KUNIT_EXPECT_EQ(test, p->bad, 0U);
			KUNIT_EXPECT_EQ(test, p->doubted, 0U);
		}
	}
}

/* With unsynchronised clocks, a queue still shows in the round trip. */
static void absolute__a_queue_with_unsynchronised_clocks(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);

	run(p, 300 * MS);
	p->offset_ns = 100 * US;
	run(p, 300 * MS);
	KUNIT_EXPECT_GE(test, p->doubted, 2000U);
	p->queue_ns = 300 * US;
	run(p, 100 * MS);
	KUNIT_EXPECT_GE(test, p->least_ns, (u64)(295 * US));
	KUNIT_EXPECT_LE(test, p->most_ns, (u64)(310 * US));
}

/* Rare delays prove nothing, and a doubt ends after a silence. */
static void absolute__rare_delays(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	u64 delay_ns;
	u32 i;

	run(p, 300 * MS);
	p->offset_ns = 100 * US;
	for (i = 0; i < 100; i++) {
		p->now_ns += 10 * MS;
		KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
	}
	run(p, 300 * MS);
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_DOUBTED);
	p->now_ns += 900 * MS;
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_DOUBTED);
	p->now_ns += 1100 * MS;
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
}

/* Without a destination, only the clocks decide. */
static void absolute__without_a_destination(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	u64 delay_ns;

	next(p, &delay_ns);
	p->signal.now_ns += US;
	KUNIT_EXPECT_EQ(test, timely_owd_absolute(NULL, &p->timeline, &p->signal, 0,
						  threshold(p), &delay_ns), TIMELY_OWD_GOOD);
	KUNIT_EXPECT_GE(test, delay_ns, (u64)(60 * US));
}

static void absolute__beyond_the_slack(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	u64 delay_ns;

	p->offset_ns = -MS - 63 * US;
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_BAD);
	p->offset_ns = MS + 65 * US;
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_BAD);
}

/* ---- replays ---- */

/* A genuine OR-ACK that was recorded; its sequence number now belongs to a later packet. */
static void replay__does_not_count(struct kunit *test)
{
	static const s64 ages_ns[] = { MS, 340 * MS, 3400 * MS, 3600 * S };
	struct path *p = start(test, true, 0);
	struct timely_owd_signal recorded;
	u64 delay_ns;
	u32 i, j, how;

	for (how = 0; how < 2; how++) {
		for (i = 0; i < ARRAY_SIZE(ages_ns); i++) {
			restart(p, how, 120 * US);
			run(p, 300 * MS);
			recorded = p->signal;
			/* To save time, OR-ACKs are simulated for the last second only. */
			p->now_ns += max(ages_ns[i] - S, 0LL);
			run(p, min(ages_ns[i], S));
			for (j = 0; j < 1000; j++) {
				next(p, &delay_ns);
				recorded.sent_ns = p->signal.sent_ns;
				recorded.now_ns = p->signal.now_ns + j * US;
				KUNIT_EXPECT_EQ(test, judge(p, &recorded, &delay_ns),
						TIMELY_OWD_BAD);
			}
			run(p, 100 * MS);
			KUNIT_EXPECT_EQ(test, p->bad, 0U);
			KUNIT_EXPECT_EQ(test, p->doubted, 0U);
		}
	}
}

/* A replayed OR-ACK is not accepted as the first one of another flow, either. */
static void replay__to_a_new_flow(struct kunit *test)
{
	struct timely_owd_signal recorded;
	struct path *p = start(test, true, 120 * US);
	u64 delay_ns;

	run(p, 300 * MS);
	recorded = p->signal;
	run(p, 300 * MS);
	memset(&p->timeline, 0, sizeof(p->timeline));
	recorded.sent_ns = p->signal.sent_ns;
	recorded.now_ns = p->signal.now_ns;
	KUNIT_EXPECT_EQ(test, judge(p, &recorded, &delay_ns), TIMELY_OWD_BAD);
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
}

/* The clock was stepped while no OR-ACKs arrived: the next flow accepts the new time at once. */
static void replay__not_a_step_after_a_silence(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	u64 delay_ns;

	p->offset_ns = 50 * US;
	run(p, 300 * MS);
	p->now_ns += 1100 * MS;
	p->offset_ns = -900 * US;
	memset(&p->timeline, 0, sizeof(p->timeline));
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
}

/* If only replays arrive for long, that looks like a clock that was set back. They are accepted
 * after 20 ms of agreeing replays, not before.
 */
static void replay__nothing_but_replays(struct kunit *test)
{
	struct path *p = start(test, true, 120 * US);
	u64 delay_ns, began_ns;
	u32 bad = 0;

	run(p, 300 * MS);
	p->offset_ns = -S;
	began_ns = p->now_ns;
	while (next(p, &delay_ns) == TIMELY_OWD_BAD)
		bad++;
	KUNIT_EXPECT_GE(test, p->now_ns - began_ns, (u64)(20 * MS));
	KUNIT_EXPECT_LE(test, p->now_ns - began_ns, (u64)(21 * MS));
	KUNIT_EXPECT_GE(test, bad, 8U);
}

/* ---- one signal at a time ---- */

static void init__knows_nothing(struct kunit *test)
{
	struct path *p = start(test, false, 0);
	struct timely_owd_signal signal = { .now_ns = S, .sent_ns = S - 150 * US };

	memset(&p->owd, 0xff, sizeof(p->owd));
	timely_owd_init(&p->owd);
	KUNIT_EXPECT_NULL(test, p->owd.clock);
	KUNIT_EXPECT_EQ(test, p->owd.offset.at_ns, 0ULL);
	KUNIT_EXPECT_EQ(test, p->owd.noticed, 0U);
	KUNIT_EXPECT_FALSE(test, p->owd.doubted);
	KUNIT_EXPECT_EQ(test, timely_owd_rtt(&p->owd, &signal), 0ULL);
}

/* A round trip that TCP has measured bounds the delay of an OR-ACK. */
static void add_rtt__bounds_the_delay(struct kunit *test)
{
	struct path *p = start(test, true, 150 * US);
	u64 delay_ns;

	p->owd.clock = NULL;
	p->jitter_ns = 0;
	timely_owd_add_rtt(&p->owd, p->now_ns, 100 * US);
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
	KUNIT_EXPECT_EQ(test, delay_ns, (u64)(50 * US));
}

/* Pass an OR-ACK @after_ns after the last one, whose packet took @there_ns of @rtt_ns: the offset
 * between the clocks is then between @offset_ns - (@rtt_ns - @there_ns) and @offset_ns + @there_ns.
 */
static enum timely_owd_verdict add_orack(struct path *p, s64 after_ns, s64 rtt_ns, s64 there_ns,
					 s64 offset_ns)
{
	u64 delay_ns;

	p->now_ns += after_ns;
	p->signal.now_ns = p->now_ns;
	p->signal.sent_ns = p->now_ns - rtt_ns;
	p->signal.turnaround_ns = 0;
	p->signal.received_ns = p->signal.sent_ns + there_ns + REAL_NS + offset_ns;
	p->signal.real_ns = REAL_NS;
	return judge(p, &p->signal, &delay_ns);
}

/* A path on which one OR-ACK has limited the offset to -50 to 50 us. */
static void confine(struct kunit *test, struct path *p)
{
	restart(p, true, 0);
	p->owd.clock = NULL;
	KUNIT_EXPECT_EQ(test, add_orack(p, MS, 100 * US, 50 * US, 0), TIMELY_OWD_GOOD);
}

static struct path *confined(struct kunit *test)
{
	struct path *p = start(test, true, 0);

	confine(test, p);
	return p;
}

/* Intervals may miss each other by 16 us and by the clocks' drift, 2 us in a millisecond. */
static void believe__intervals_meet(struct kunit *test)
{
	static const struct { s64 offset_ns; enum timely_owd_verdict want; } cases[] = {
		{ 110 * US, TIMELY_OWD_GOOD }, { -110 * US, TIMELY_OWD_GOOD },
		{ 125 * US, TIMELY_OWD_BAD }, { -125 * US, TIMELY_OWD_BAD },
	};
	struct path *p = start(test, true, 0);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		confine(test, p);
		KUNIT_EXPECT_EQ(test, add_orack(p, MS, 100 * US, 50 * US, cases[i].offset_ns),
				cases[i].want);
	}
}

/* In a second of silence clocks may drift by 1953 us. */
static void believe__clocks_drift(struct kunit *test)
{
	static const struct { s64 offset_ns; enum timely_owd_verdict want; } cases[] = {
		{ 2000 * US, TIMELY_OWD_GOOD }, { -2000 * US, TIMELY_OWD_GOOD },
		{ 2100 * US, TIMELY_OWD_BAD }, { -2100 * US, TIMELY_OWD_BAD },
	};
	struct path *p = start(test, true, 0);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		confine(test, p);
		KUNIT_EXPECT_EQ(test, add_orack(p, S, 100 * US, 50 * US, cases[i].offset_ns),
				cases[i].want);
	}
}

/* A short round trip narrows the interval, from both sides, here to 20 to 40 us. */
static void believe__intervals_narrow(struct kunit *test)
{
	static const s64 offsets_ns[] = { -60 * US, 115 * US };
	struct path *p = start(test, true, 0);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(offsets_ns); i++) {
		confine(test, p);
		KUNIT_EXPECT_EQ(test, add_orack(p, MS, 100 * US, 50 * US, offsets_ns[i]),
				TIMELY_OWD_GOOD);
		confine(test, p);
		KUNIT_EXPECT_EQ(test, add_orack(p, MS, 20 * US, 10 * US, 30 * US), TIMELY_OWD_GOOD);
		KUNIT_EXPECT_EQ(test, add_orack(p, MS, 100 * US, 50 * US, offsets_ns[i]),
				TIMELY_OWD_BAD);
	}
}

/* Drift counts from the last accepted OR-ACK, not from the first. */
static void believe__confirmed_each_time(struct kunit *test)
{
	struct path *p = confined(test);
	u32 i;

	for (i = 0; i < 1000; i++)
		KUNIT_EXPECT_EQ(test, add_orack(p, MS, 100 * US, 50 * US, 0), TIMELY_OWD_GOOD);
	KUNIT_EXPECT_EQ(test, add_orack(p, MS, 100 * US, 50 * US, 500 * US), TIMELY_OWD_BAD);
}

/* Offsets that other flows measured expire after a second. */
static void believe__after_a_silence(struct kunit *test)
{
	struct path *p = confined(test);

	memset(&p->timeline, 0, sizeof(p->timeline));
	KUNIT_EXPECT_EQ(test, add_orack(p, 900 * MS, 100 * US, 50 * US, -50 * MS), TIMELY_OWD_BAD);
	memset(&p->timeline, 0, sizeof(p->timeline));
	KUNIT_EXPECT_EQ(test, add_orack(p, 200 * MS, 100 * US, 50 * US, -50 * MS), TIMELY_OWD_GOOD);
}

/* A step is accepted after eight successive OR-ACKs that agree, over 20 ms. */
static void step__believed(struct kunit *test)
{
	struct path *p = confined(test);
	u32 i;

	for (i = 0; i < 7; i++)
		KUNIT_EXPECT_EQ(test, add_orack(p, 4 * MS, 100 * US, 50 * US, S), TIMELY_OWD_BAD);
	KUNIT_EXPECT_EQ(test, p->owd.noticed, 0U);
	KUNIT_EXPECT_EQ(test, add_orack(p, 4 * MS, 100 * US, 50 * US, S), TIMELY_OWD_GOOD);
	KUNIT_EXPECT_EQ(test, p->owd.noticed, 1U);
	KUNIT_EXPECT_EQ(test, add_orack(p, 4 * MS, 100 * US, 50 * US, S), TIMELY_OWD_GOOD);
	KUNIT_EXPECT_EQ(test, p->owd.noticed, 1U);
}

static void step__one_agrees_with_before(struct kunit *test)
{
	struct path *p = confined(test);
	u32 i;

	for (i = 0; i < 7; i++)
		KUNIT_EXPECT_EQ(test, add_orack(p, 4 * MS, 100 * US, 50 * US, S), TIMELY_OWD_BAD);
	KUNIT_EXPECT_EQ(test, add_orack(p, MS, 100 * US, 50 * US, 0), TIMELY_OWD_GOOD);
	for (i = 0; i < 7; i++)
		KUNIT_EXPECT_EQ(test, add_orack(p, 4 * MS, 100 * US, 50 * US, S), TIMELY_OWD_BAD);
}

static void step__too_few_signals(struct kunit *test)
{
	struct path *p = confined(test);

	KUNIT_EXPECT_EQ(test, add_orack(p, MS, 100 * US, 50 * US, S), TIMELY_OWD_BAD);
	KUNIT_EXPECT_EQ(test, add_orack(p, 25 * MS, 100 * US, 50 * US, S), TIMELY_OWD_BAD);
	KUNIT_EXPECT_EQ(test, add_orack(p, 25 * MS, 100 * US, 50 * US, S), TIMELY_OWD_BAD);
}

static void step__contradictions(struct kunit *test)
{
	struct path *p = confined(test);
	u32 i;

	for (i = 0; i < 100; i++)
		KUNIT_EXPECT_EQ(test, add_orack(p, MS, 100 * US, 50 * US, i & 1 ? S : -S),
				TIMELY_OWD_BAD);
}

/* The configured error of the clocks may be larger than the slack. */
static void absolute__clock_error(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	u64 delay_ns;

	p->offset_ns = -3 * MS;
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_BAD);
	KUNIT_EXPECT_EQ(test, timely_owd_absolute(&p->owd, &p->timeline, &p->signal, 5 * MS,
						  threshold(p) + 5 * MS, &delay_ns),
			TIMELY_OWD_GOOD);
	KUNIT_EXPECT_EQ(test, delay_ns, 0ULL);
}

/* A queue from the beginning that drains slowly does not look like unsynchronised clocks. */
static void absolute__a_queue_that_drains(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	u64 delay_ns;

	p->jitter_ns = 0;
	for (p->queue_ns = 300 * US; p->queue_ns > THRESHOLD_NS; p->queue_ns -= US)
		KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
}

/* Clocks are doubted after 16 delays and 10 ms. */
static void absolute__not_doubted_soon(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	u64 delay_ns;
	u32 i;

	run(p, 100 * MS);
	p->offset_ns = 100 * US;
	for (i = 0; i < 10; i++) {
		p->now_ns += 5 * MS;
		KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
	}
	p->offset_ns = 0;
	run(p, 100 * MS);
	p->offset_ns = 100 * US;
	for (i = 0; i < 99; i++)
		KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
	KUNIT_EXPECT_EQ(test, p->owd.noticed, 0U);
	run(p, 100 * MS);
	KUNIT_EXPECT_GE(test, p->doubted, 990U);
	KUNIT_EXPECT_EQ(test, p->owd.noticed, 1U);
}

/* ---- the offset that a clock daemon measured ---- */

/* An offset of 2 s at 1000 s that grows by 50 ppm, with an error of 1 us that grows by 200 ppb. */
static struct timely_sync measured_offset(void)
{
	struct timely_sync sync = {
		.at_ns = 1000 * S,
		.offset_ns = REAL_NS + 2 * S,
		.valid_ns = 10 * S,
		.bound_ns = US,
	};

	timely_sync_set(&sync, 50000, 200);
	return sync;
}

static void sync_set__all_drifts(struct kunit *test)
{
	static const s32 drifts[] = { 0, 1, 7, 999, 1000000 };
	struct timely_sync sync;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(drifts); i++) {
		timely_sync_set(&sync, drifts[i], drifts[i]);
		KUNIT_EXPECT_EQ(test, timely_sync_ppb(sync.drift_q32), drifts[i]);
		KUNIT_EXPECT_EQ(test, timely_sync_ppb(sync.growth_q32), drifts[i]);
		timely_sync_set(&sync, -drifts[i], 0);
		KUNIT_EXPECT_EQ(test, timely_sync_ppb(sync.drift_q32), -drifts[i]);
	}
}

static void sync_get__offset_and_error_grow(struct kunit *test)
{
	struct timely_sync sync = measured_offset();
	s64 offset_ns;
	u64 bound_ns;

	KUNIT_EXPECT_TRUE(test, timely_sync_get(&sync, sync.at_ns, US, &offset_ns, &bound_ns));
	KUNIT_EXPECT_EQ(test, offset_ns, (s64)REAL_NS + 2 * S);
	KUNIT_EXPECT_EQ(test, bound_ns, (u64)US);
	KUNIT_EXPECT_TRUE(test, timely_sync_get(&sync, sync.at_ns + 2 * S, 2 * US, &offset_ns,
						&bound_ns));
	KUNIT_EXPECT_LE(test, abs(offset_ns - (s64)(REAL_NS + 2 * S + 100 * US)), 1LL);
	KUNIT_EXPECT_GE(test, bound_ns, (u64)(US + 400));
	KUNIT_EXPECT_LE(test, bound_ns, (u64)(US + 401));
	timely_sync_set(&sync, -50000, 200);
	KUNIT_EXPECT_TRUE(test, timely_sync_get(&sync, sync.at_ns + 2 * S, 2 * US, &offset_ns,
						&bound_ns));
	KUNIT_EXPECT_LE(test, abs(offset_ns - (s64)(REAL_NS + 2 * S - 100 * US)), 1LL);
}

static void sync_get__not_valid(struct kunit *test)
{
	struct timely_sync sync = measured_offset(), none = {};
	s64 offset_ns;
	u64 bound_ns;

	KUNIT_EXPECT_FALSE(test, timely_sync_get(&none, 1000 * S, U64_MAX, &offset_ns, &bound_ns));
	/* Too old, or from the future */
	KUNIT_EXPECT_TRUE(test, timely_sync_get(&sync, sync.at_ns + sync.valid_ns - 1, U64_MAX,
						&offset_ns, &bound_ns));
	KUNIT_EXPECT_FALSE(test, timely_sync_get(&sync, sync.at_ns + sync.valid_ns, U64_MAX,
						 &offset_ns, &bound_ns));
	KUNIT_EXPECT_FALSE(test, timely_sync_get(&sync, sync.at_ns - 1, U64_MAX, &offset_ns,
						 &bound_ns));
	/* The error is larger than the caller can use. */
	KUNIT_EXPECT_FALSE(test, timely_sync_get(&sync, sync.at_ns, US - 1, &offset_ns, &bound_ns));
	KUNIT_EXPECT_FALSE(test, timely_sync_get(&sync, sync.at_ns + S, US, &offset_ns, &bound_ns));
}

/* The largest values that timely_sync_set() accepts do not overflow. */
static void sync_get__largest_values(struct kunit *test)
{
	struct timely_sync sync = {
		.at_ns = 1,
		.valid_ns = TIMELY_SYNC_VALID_MAX_NS,
		.bound_ns = TIMELY_SYNC_BOUND_MAX_NS,
	};
	s64 offset_ns;
	u64 bound_ns;

	timely_sync_set(&sync, -TIMELY_SYNC_DRIFT_MAX_PPB, TIMELY_SYNC_DRIFT_MAX_PPB);
	KUNIT_EXPECT_TRUE(test, timely_sync_get(&sync, TIMELY_SYNC_VALID_MAX_NS, U64_MAX,
						&offset_ns, &bound_ns));
	KUNIT_EXPECT_LE(test, abs(offset_ns + 100 * MS), 100LL);
	KUNIT_EXPECT_GE(test, bound_ns, 1100ULL * MS - 100);
	KUNIT_EXPECT_LE(test, bound_ns, 1100ULL * MS + 100);
}

/* With the offset of a clock that is 2 s ahead and 50 ppm fast, absolute delays are right. */
static void absolute__with_an_offset(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	struct timely_sync sync = measured_offset();
	u64 delay_ns, bound_ns;
	s64 offset_ns;
	u32 i;

	sync.valid_ns = 20 * S;
	p->drift_ppm = 50;
	p->offset_ns = 2 * S;
	p->now_ns = sync.at_ns;
	for (i = 0; i < 1000; i++) {
		p->queue_ns = i & 64 ? 300 * US : 0;
		next(p, &delay_ns);
		if (!timely_sync_get(&sync, p->signal.now_ns, 10 * US, &offset_ns, &bound_ns))
			break;
		p->signal.real_ns = offset_ns;
		KUNIT_EXPECT_EQ(test, timely_owd_absolute(&p->owd, &p->timeline, &p->signal,
							  bound_ns, threshold(p) + bound_ns,
							  &delay_ns),
				TIMELY_OWD_GOOD);
		KUNIT_EXPECT_GE(test, delay_ns + bound_ns, (u64)(p->there_ns + p->queue_ns));
		KUNIT_EXPECT_LE(test, delay_ns, p->there_ns + p->queue_ns + 3 * US + bound_ns);
	}
	KUNIT_EXPECT_EQ(test, i, 1000U);
}

/* A relative delay that replaces absolute ones, while there is a queue: the minimum RTT is known,
 * so the delay contains the queue.
 */
static void relative__after_absolute(struct kunit *test)
{
	struct path *p = start(test, false, 120 * US);
	u64 delay_ns;

	run(p, 100 * MS);
	p->queue_ns = 300 * US;
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
	p->relative = true;
	p->owd.clock = &p->clock;
	KUNIT_EXPECT_EQ(test, next(p, &delay_ns), TIMELY_OWD_GOOD);
	KUNIT_EXPECT_GE(test, delay_ns, (u64)(296 * US));
	KUNIT_EXPECT_LE(test, delay_ns, (u64)(305 * US));
}

/* Times that mean nothing: no overflow, no delay beyond the round trip. */
static void hostile__numbers(struct kunit *test)
{
	static const u64 edges[] = {
		0, 1, U32_MAX, 1ULL << 62, (1ULL << 63) - 1, 1ULL << 63, U64_MAX
	};
	struct path *p = start(test, true, 120 * US);
	u64 delay_ns, rtt_ns;
	u32 i;

	for (i = 0; i < 100000; i++) {
		roll(p, 0);
		p->relative = p->dice & 0x10000;
		p->signal.now_ns = 2 * S + edges[(p->dice >> 20) % ARRAY_SIZE(edges)] / 2 + i;
		rtt_ns = (p->dice >> 8) % S;
		p->signal.sent_ns = p->signal.now_ns - rtt_ns;
		p->signal.turnaround_ns = p->dice & 0x20000 ? (p->dice >> 12) % (rtt_ns + 1) : 0;
		roll(p, 0);
		p->signal.received_ns = edges[(p->dice >> 20) % ARRAY_SIZE(edges)] - (p->dice & 1);
		if (judge(p, &p->signal, &delay_ns) != TIMELY_OWD_BAD)
			KUNIT_EXPECT_LE(test, delay_ns, rtt_ns);
	}
}

static struct kunit_case owd_cases[] = {
	KUNIT_CASE(relative__steps),
	KUNIT_CASE(relative__queue_of_the_reverse_direction),
	KUNIT_CASE(relative__slews),
	KUNIT_CASE(relative__without_a_clock),
	KUNIT_CASE(absolute__synchronised_clocks),
	KUNIT_CASE(absolute__a_queue_from_the_beginning),
	KUNIT_CASE(absolute__steps),
	KUNIT_CASE(absolute__a_queue_with_unsynchronised_clocks),
	KUNIT_CASE(absolute__rare_delays),
	KUNIT_CASE(absolute__without_a_destination),
	KUNIT_CASE(absolute__beyond_the_slack),
	KUNIT_CASE(replay__does_not_count),
	KUNIT_CASE(replay__to_a_new_flow),
	KUNIT_CASE(replay__not_a_step_after_a_silence),
	KUNIT_CASE(replay__nothing_but_replays),
	KUNIT_CASE(init__knows_nothing),
	KUNIT_CASE(add_rtt__bounds_the_delay),
	KUNIT_CASE(believe__intervals_meet),
	KUNIT_CASE(believe__clocks_drift),
	KUNIT_CASE(believe__intervals_narrow),
	KUNIT_CASE(believe__confirmed_each_time),
	KUNIT_CASE(believe__after_a_silence),
	KUNIT_CASE(step__believed),
	KUNIT_CASE(step__one_agrees_with_before),
	KUNIT_CASE(step__too_few_signals),
	KUNIT_CASE(step__contradictions),
	KUNIT_CASE(absolute__clock_error),
	KUNIT_CASE(absolute__a_queue_that_drains),
	KUNIT_CASE(absolute__not_doubted_soon),
	KUNIT_CASE(sync_set__all_drifts),
	KUNIT_CASE(sync_get__offset_and_error_grow),
	KUNIT_CASE(sync_get__not_valid),
	KUNIT_CASE(sync_get__largest_values),
	KUNIT_CASE(absolute__with_an_offset),
	KUNIT_CASE(relative__after_absolute),
	KUNIT_CASE(hostile__numbers),
	{}
};

static struct kunit_suite owd_suite = {
	.name = "timely_owd",
	.test_cases = owd_cases,
};

kunit_test_suite(owd_suite);
