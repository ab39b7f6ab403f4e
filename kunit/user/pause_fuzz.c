// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of On-Ramp's controller, then flows with random delays, values of C, times
 * and departures, plausible or hostile. The promises of <timely/engine/pause.h> must hold for any
 * input, and the results must equal the paper's formulas in floating point. Built with ASan and
 * UBSan.
 *
 *   pause_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS flows with STEPS signals each. Prints TAP. Built with -DTIMELY_LIBFUZZER, the random
 * numbers are the fuzzer's input.
 */
#include <math.h>

#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include <timely/engine/pause.h>

#define STEPS	1024
#define U	(1.0 / TIMELY_PAUSE_ONE)
#define RECORDS	16

enum promise {
	CHANGED, REFUSED, LONGEST, B_RANGE, ASSERTED, PAUSED, BETWEEN, STOPPED, BLACK, B_STEP,
	B_RUN, UNTIL, KEPT, START, FLOOR_LOW, FLOOR_HIGH, FLOOR_NEW, PROMISES
};

static const char * const promises[PROMISES] = {
	[CHANGED] = "the return value is whether the end of the pause changed",
	[REFUSED] = "a delay of more than a second changes nothing",
	[LONGEST] = "no pause is longer than pause_max",
	[B_RANGE] = "b is between 0 and 1",
	[ASSERTED] = "C changes by as much as the rest of the pause",
	[PAUSED] = "C is the time paused so far and the rest of the pause",
	[BETWEEN] = "a packet leaves between two pauses",
	[STOPPED] = "a flow is paused for at most pause_max between departures",
	[BLACK] = "the packet of the last signal is the black packet",
	[B_STEP] = "b changes as in floating point",
	[B_RUN] = "b stays near a b that is never rounded",
	[UNTIL] = "a pause ends when floating point says",
	[KEPT] = "if no pause is due, only b changes",
	[START] = "a start does not change b, and ends no pause",
	[FLOOR_LOW] = "the minimum is a value of the window",
	[FLOOR_HIGH] = "the minimum is not above any value of the last half",
	[FLOOR_NEW] = "old values expire, whatever the clock does",
};

#define FUZZ_ROUND	"a flow with signals, a window"
#include "fuzz.h"

static struct {
	struct timely_pause_cfg cfg;
	struct timely_pause pause;
	struct timely_pause before;
	struct timely_pause_signal signal;
	bool hostile;
	double b;		/* never rounded */
	u64 asserted[RECORDS];	/* C at the departures of packets */
	u64 origin_ns;		/* C at the start */
	u64 paused_ns;		/* sum of the pauses so far */
	u64 stopped_ns;		/* pause time since the last departure */
	bool began;
} now;

/* Any magnitude with the same probability, or a limit. */
static u64 any(void)
{
	static const u64 edges[] = {
		0, U32_MAX, TIMELY_PAUSE_DELAY_MAX_NS, 1ULL << 62, 1ULL << 63, U64_MAX
	};
	u64 x = roll() << 32 ^ roll();

	if (!below(8))
		return edges[below(ARRAY_SIZE(edges))] + below(3) - 1;
	return x >> below(64);
}

/* ---- the same in floating point ---- */

static double clamped(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

static double gain(void)
{
	return min(now.cfg.gain, TIMELY_PAUSE_ONE) * U;
}

static bool updates_b(void)
{
	return !now.cfg.strawman && now.before.have_black &&
	       (s64)(now.signal.asserted_ns - now.before.black_asserted_ns) > 0;
}

/* The b that the last two signals show. The engine limits the pause between them to the longest
 * delay.
 */
static double shown(void)
{
	double paused_ns = min(now.signal.asserted_ns - now.before.black_asserted_ns,
			       TIMELY_PAUSE_DELAY_MAX_NS);

	return clamped(((double)now.before.black_delay_ns - now.signal.delay_ns) / paused_ns,
		       0, 1);
}

static void check_b(void)
{
	double want = now.before.b * U;

	if (updates_b()) {
		want = (1 - gain()) * want + gain() * shown();
		now.b = (1 - gain()) * now.b + gain() * shown();
	}
	/* The measured b is rounded down, the average to the nearest. */
	promise(B_STEP, fabs(now.pause.b * U - want) <= (gain() + 0.51) * U);
	promise(B_RUN, !gain() || fabs(now.pause.b * U - now.b) <= (1.01 + 0.51 / gain()) * U);
	promise(BLACK, now.pause.have_black && now.pause.black_delay_ns == now.signal.delay_ns &&
		now.pause.black_asserted_ns == now.signal.asserted_ns);
}

/* Length of a pause by the paper's formula O - b * P - T, in ns; 0 or less for no pause. */
static double excess(void)
{
	s64 pending_ns = (s64)(now.before.asserted_ns - now.signal.asserted_ns);
	double b = now.cfg.strawman ? 0 : now.pause.b * U;

	return now.signal.delay_ns - b * max(pending_ns, 0LL) - now.cfg.threshold_ns;
}

static u64 rest(const struct timely_pause *pause)
{
	return pause->until_ns > now.signal.now_ns ? pause->until_ns - now.signal.now_ns : 0;
}

static bool may_pause(void)
{
	return rest(&now.before) || !now.before.until_ns ||
	       now.signal.departures != now.before.departures;
}

/* Longest remaining pause from now. */
static double longest(void)
{
	u64 since_ns = rest(&now.before) ? now.before.since_ns : now.signal.now_ns;
	double paused_ns = now.signal.now_ns > since_ns ? now.signal.now_ns - since_ns : 0;

	return min(max(now.cfg.pause_max_ns - paused_ns, 0.0),
		   (double)(U64_MAX - now.signal.now_ns));
}

static bool is_pause_unchanged(void)
{
	return now.pause.until_ns == now.before.until_ns &&
	       now.pause.since_ns == now.before.since_ns &&
	       now.pause.asserted_ns == now.before.asserted_ns &&
	       now.pause.departures == now.before.departures;
}

static void check_until(double due)
{
	double want = min(due, longest());
	/* The resolution of a double of this size. */
	double blur = 1 + want / (1ULL << 50);

	/* Within a nanosecond of 0, rounding decides. */
	if (fabs(due) <= 1)
		return;
	if (due < 0 || !may_pause())
		promise(KEPT, is_pause_unchanged());
	else
		promise(UNTIL, fabs(rest(&now.pause) - want) <= blur);
}

/* ---- hostile input ---- */

static void check_always(bool changed)
{
	const struct timely_pause *p = &now.pause, *b = &now.before;
	bool began = rest(p) && !rest(b);

	promise(CHANGED, changed == (p->until_ns != b->until_ns));
	promise(B_RANGE, p->b <= TIMELY_PAUSE_ONE);
	promise(LONGEST, p->until_ns <= p->since_ns ||
		p->until_ns - p->since_ns <= now.cfg.pause_max_ns);
	if (changed)
		promise(ASSERTED, p->asserted_ns - b->asserted_ns == rest(p) - rest(b));
	else
		promise(ASSERTED, p->asserted_ns == b->asserted_ns);
	if (began && now.began)
		promise(BETWEEN, now.signal.departures != b->departures);
	if (began)
		promise(BETWEEN, p->departures == now.signal.departures);
	now.began |= began;
}

static void check_signal(bool changed)
{
	if (now.signal.delay_ns > TIMELY_PAUSE_DELAY_MAX_NS) {
		promise(REFUSED, !changed && !memcmp(&now.pause, &now.before, sizeof(now.pause)));
		return;
	}
	check_b();
	check_until(excess());
	if (!changed)
		promise(KEPT, is_pause_unchanged() || now.pause.until_ns == now.before.until_ns);
}

static void check_start(bool changed, u64 age_ns)
{
	double due = (double)now.signal.delay_ns - (double)age_ns - (double)now.cfg.threshold_ns;

	promise(START, now.pause.b == now.before.b &&
		now.pause.have_black == now.before.have_black &&
		now.pause.black_delay_ns == now.before.black_delay_ns &&
		now.pause.black_asserted_ns == now.before.black_asserted_ns);
	if (rest(&now.before) || now.signal.delay_ns > TIMELY_PAUSE_DELAY_MAX_NS)
		promise(START, !changed && is_pause_unchanged());
	else
		check_until(due);
}

static void signal_once(void)
{
	bool changed;
	u64 age_ns;

	now.before = now.pause;
	if (below(16)) {
		changed = timely_pause_update(&now.pause, &now.cfg, &now.signal);
		check_always(changed);
		check_signal(changed);
		return;
	}
	age_ns = now.hostile && below(2) ? any() : below(300000);
	changed = timely_pause_start(&now.pause, &now.cfg, &now.signal, age_ns);
	check_always(changed);
	check_start(changed, age_ns);
}

/* ---- flows ---- */

static void hostile_step(void)
{
	u64 about_ns = now.signal.now_ns;

	now.signal.now_ns = below(4) ? about_ns + below(1000000) :
			    below(2) ? about_ns - below(1000000) : any();
	now.signal.delay_ns = below(2) ? any() : now.cfg.threshold_ns + below(1000000);
	now.signal.asserted_ns = below(2) ? any() : now.pause.asserted_ns + any() - any();
	now.signal.departures = below(4) ? now.pause.departures + below(2) : (u32)any();
	signal_once();
}

/* A packet leaves if the flow is not paused: record C. */
static void depart(u64 at_ns)
{
	if (at_ns < now.pause.until_ns)
		return;
	now.signal.departures++;
	now.asserted[now.signal.departures % RECORDS] = now.pause.asserted_ns;
	now.stopped_ns = 0;
}

/* Times are in order, and all values except the delays are plausible. */
static void sane_step(void)
{
	u64 then_ns = now.signal.now_ns + (below(8) ? below(30000) : below(3000000));
	u64 paused_ns = min(rest(&now.pause), then_ns - now.signal.now_ns);

	now.paused_ns += paused_ns;
	now.stopped_ns += paused_ns;
	promise(STOPPED, now.stopped_ns <= now.cfg.pause_max_ns);
	now.signal.now_ns = then_ns;
	if (below(4))
		depart(then_ns);
	now.signal.asserted_ns = now.asserted[below(RECORDS)];
	now.signal.delay_ns = below(16) ? below(400000) : any();
	signal_once();
	promise(PAUSED, now.pause.asserted_ns - now.origin_ns == now.paused_ns + rest(&now.pause));
}

static struct timely_pause_cfg random_cfg(bool hostile)
{
	struct timely_pause_cfg cfg = {
		.threshold_ns = below(200000),
		.pause_max_ns = 1 + below(5000000),
		.gain = TIMELY_PAUSE_ONE >> below(9),
		.strawman = !below(4),
	};

	if (hostile) {
		cfg.threshold_ns = below(2) ? cfg.threshold_ns : any();
		cfg.pause_max_ns = below(2) ? cfg.pause_max_ns : any();
		cfg.gain = below(2) ? cfg.gain : (u32)any();
	}
	return cfg;
}

static void one_flow(u32 steps)
{
	u32 i;

	now.hostile = below(2);
	now.cfg = random_cfg(now.hostile);
	timely_pause_init(&now.pause);
	now.b = now.pause.b * U;
	/* C may wrap. */
	now.pause.asserted_ns = below(2) ? 0 : 0ULL - below(10000000);
	now.origin_ns = now.pause.asserted_ns;
	now.paused_ns = 0;
	now.stopped_ns = 0;
	now.began = false;
	now.signal = (struct timely_pause_signal) {
		.now_ns = roll() + 1,
		.departures = (u32)any(),
	};
	for (i = 0; i < RECORDS; i++)
		now.asserted[i] = now.origin_ns;
	while (steps--) {
		if (now.hostile)
			hostile_step();
		else
			sane_step();
	}
}

/* ---- the minimum filter ---- */

#define VALUES	256

/* Compare with a list of all values, with times that are slightly out of order. */
static void floor_in_time(struct timely_min_filter *window)
{
	u64 times[VALUES], values[VALUES], half_ns = 1 + (any() >> 8), now_ns = any() >> 2;
	u32 i, j;

	for (i = 0; i < VALUES; i++) {
		u64 got, late_ns = below(4) ? 0 : roll() % half_ns;

		now_ns += below(4) ? roll() % (1 + half_ns / 8) : roll() % (3 * half_ns);
		times[i] = now_ns - min(late_ns, now_ns);
		values[i] = any();
		got = timely_min_filter_add(window, times[i], half_ns, values[i]);
		/* A value with a late time may count in its half and in the next one. */
		for (j = 0; j < i && (values[j] != got || times[j] + 3 * half_ns <= times[i]); j++)
			;
		promise(FLOOR_LOW, values[j] == got);
		for (j = 0; j <= i; j++)
			if (times[j] + half_ns > now_ns)
				promise(FLOOR_HIGH, got <= values[j]);
	}
}

/* After any history, two halves of the window with increasing times remove all old values. */
static void floor_after_anything(struct timely_min_filter *window)
{
	u64 half_ns = 1 + (any() >> 8), now_ns = any(), got = 0;
	u32 i, n = below(16);

	for (i = 0; i < n; i++)
		timely_min_filter_add(window, any(), below(4) ? half_ns : any(), any());
	for (i = 0; i < 4; i++)
		got = timely_min_filter_add(window, now_ns + i * half_ns, half_ns, 12345 + i);
	promise(FLOOR_NEW, got == 12345 + 2);
}

static void one_floor(void)
{
	struct timely_min_filter window;

	timely_min_filter_init(&window);
	floor_in_time(&window);
	timely_min_filter_init(&window);
	floor_after_anything(&window);
}

static void fuzz_input(void)
{
	if (dice.left && dice.input[0] & 1)
		one_floor();
	else
		one_flow((u32)(dice.left / 32) + 1);
}

static void fuzz_round(void)
{
	one_flow(STEPS);
	one_floor();
}
