// SPDX-License-Identifier: GPL-2.0
/*
 * The KUnit suite of On-Ramp's controller, then flows that are lied to: random
 * delays, notes, times and departures, sane or hostile. What <timely/engine/pause.h>
 * promises must hold whatever comes, and what the engine does must be what the
 * paper's formulas say in floating point. Built with ASan and UBSan.
 *
 *   pause_fuzz [ROUNDS [SEED]]
 *
 * ROUNDS flows with STEPS signals each. Prints TAP. Built with -DTIMELY_LIBFUZZER
 * the random numbers are the fuzzer's input.
 */
#include <math.h>

#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/minmax.h>

#include <timely/engine/pause.h>

#define STEPS	1024
#define U	(1.0 / TIMELY_PAUSE_ONE)
#define NOTES	16

enum promise {
	CHANGED, REFUSED, LONGEST, B_RANGE, ASSERTED, HELD, BETWEEN, STOPPED, BLACK, B_STEP,
	B_RUN, UNTIL, KEPT, START, FLOOR_LOW, FLOOR_HIGH, FLOOR_NEW, PROMISES
};

static const char * const promises[PROMISES] = {
	[CHANGED] = "what is returned is whether the hold's end changed",
	[REFUSED] = "a delay of more than a second changes nothing",
	[LONGEST] = "no hold is longer than pause_max",
	[B_RANGE] = "b is between 0 and 1",
	[ASSERTED] = "C moves by as much as what is left of the hold",
	[HELD] = "C is the time held and that which is still to come",
	[BETWEEN] = "between two holds a packet leaves",
	[STOPPED] = "from one departure to the next no more than pause_max is held",
	[BLACK] = "the packet heard last is remembered",
	[B_STEP] = "b moves as in floating point",
	[B_RUN] = "b stays near to one that was never rounded",
	[UNTIL] = "a hold ends where floating point says",
	[KEPT] = "where no pause is due nothing but b changes",
	[START] = "a start teaches nothing, and ends no hold",
	[FLOOR_LOW] = "the floor is a value of the window",
	[FLOOR_HIGH] = "the floor is not above any value of the last half",
	[FLOOR_NEW] = "the floor forgets, whatever time does",
};

#include "fuzz.h"

static struct {
	struct timely_pause_law law;
	struct timely_pause pause;
	struct timely_pause before;
	struct timely_pause_signal signal;
	bool hostile;
	double b;		/* never rounded */
	u64 notes[NOTES];	/* C when packets left */
	u64 origin_ns;		/* C at the beginning */
	u64 held_ns;		/* the flow was, until now */
	u64 stopped_ns;		/* since the last departure */
	bool began;
} now;

/* Of any magnitude, a small one as likely as a large one; or an edge. */
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
	return min(now.law.gain, TIMELY_PAUSE_ONE) * U;
}

static bool teaches(void)
{
	return !now.law.strawman && now.before.heard &&
	       (s64)(now.signal.asserted_ns - now.before.black_asserted_ns) > 0;
}

/* What the pair showed. The engine takes no pause to be longer than any delay. */
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

	if (teaches()) {
		want = (1 - gain()) * want + gain() * shown();
		now.b = (1 - gain()) * now.b + gain() * shown();
	}
	/* What was shown is rounded down, the average to the nearest. */
	promise(B_STEP, fabs(now.pause.b * U - want) <= (gain() + 0.51) * U);
	promise(B_RUN, !gain() || fabs(now.pause.b * U - now.b) <= (1.01 + 0.51 / gain()) * U);
	promise(BLACK, now.pause.heard && now.pause.black_delay_ns == now.signal.delay_ns &&
		now.pause.black_asserted_ns == now.signal.asserted_ns);
}

/* Where O - b * P - T would have a hold end, from now; 0 or less if nowhere. */
static double excess(void)
{
	s64 pending_ns = (s64)(now.before.asserted_ns - now.signal.asserted_ns);
	double b = now.law.strawman ? 0 : now.pause.b * U;

	return now.signal.delay_ns - b * max(pending_ns, 0LL) - now.law.threshold_ns;
}

static u64 rest(const struct timely_pause *pause)
{
	return pause->until_ns > now.signal.now_ns ? pause->until_ns - now.signal.now_ns : 0;
}

static bool may_hold(void)
{
	return rest(&now.before) || !now.before.until_ns ||
	       now.signal.departures != now.before.departures;
}

/* How long a hold may last from now. */
static double longest(void)
{
	u64 since_ns = rest(&now.before) ? now.before.since_ns : now.signal.now_ns;
	double held_ns = now.signal.now_ns > since_ns ? now.signal.now_ns - since_ns : 0;

	return min(max(now.law.pause_max_ns - held_ns, 0.0),
		   (double)(U64_MAX - now.signal.now_ns));
}

static bool is_hold_unchanged(void)
{
	return now.pause.until_ns == now.before.until_ns &&
	       now.pause.since_ns == now.before.since_ns &&
	       now.pause.asserted_ns == now.before.asserted_ns &&
	       now.pause.departures == now.before.departures;
}

static void check_until(double due)
{
	double want = min(due, longest());
	/* The smallest part of so large a number. */
	double blur = 1 + want / (1ULL << 50);

	/* A ns around 0 is decided by how it is rounded. */
	if (fabs(due) <= 1)
		return;
	if (due < 0 || !may_hold())
		promise(KEPT, is_hold_unchanged());
	else
		promise(UNTIL, fabs(rest(&now.pause) - want) <= blur);
}

/* ---- whatever comes ---- */

static void check_always(bool changed)
{
	const struct timely_pause *p = &now.pause, *b = &now.before;
	bool began = rest(p) && !rest(b);

	promise(CHANGED, changed == (p->until_ns != b->until_ns));
	promise(B_RANGE, p->b <= TIMELY_PAUSE_ONE);
	promise(LONGEST, p->until_ns <= p->since_ns ||
		p->until_ns - p->since_ns <= now.law.pause_max_ns);
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
		promise(KEPT, is_hold_unchanged() || now.pause.until_ns == now.before.until_ns);
}

static void check_start(bool changed, u64 age_ns)
{
	double due = (double)now.signal.delay_ns - (double)age_ns - (double)now.law.threshold_ns;

	promise(START, now.pause.b == now.before.b && now.pause.heard == now.before.heard &&
		now.pause.black_delay_ns == now.before.black_delay_ns &&
		now.pause.black_asserted_ns == now.before.black_asserted_ns);
	if (rest(&now.before) || now.signal.delay_ns > TIMELY_PAUSE_DELAY_MAX_NS)
		promise(START, !changed && is_hold_unchanged());
	else
		check_until(due);
}

static void tell(void)
{
	bool changed;
	u64 age_ns;

	now.before = now.pause;
	if (below(16)) {
		changed = timely_pause_hear(&now.pause, &now.law, &now.signal);
		check_always(changed);
		check_signal(changed);
		return;
	}
	age_ns = now.hostile && below(2) ? any() : below(300000);
	changed = timely_pause_start(&now.pause, &now.law, &now.signal, age_ns);
	check_always(changed);
	check_start(changed, age_ns);
}

/* ---- flows ---- */

static void hostile_step(void)
{
	u64 about_ns = now.signal.now_ns;

	now.signal.now_ns = below(4) ? about_ns + below(1000000) :
			    below(2) ? about_ns - below(1000000) : any();
	now.signal.delay_ns = below(2) ? any() : now.law.threshold_ns + below(1000000);
	now.signal.asserted_ns = below(2) ? any() : now.pause.asserted_ns + any() - any();
	now.signal.departures = below(4) ? now.pause.departures + below(2) : (u32)any();
	tell();
}

/* A packet leaves, if none is held: C is noted. */
static void depart(u64 at_ns)
{
	if (at_ns < now.pause.until_ns)
		return;
	now.signal.departures++;
	now.notes[now.signal.departures % NOTES] = now.pause.asserted_ns;
	now.stopped_ns = 0;
}

/* Time passes in order, and all is as it should be but for the delays. */
static void sane_step(void)
{
	u64 then_ns = now.signal.now_ns + (below(8) ? below(30000) : below(3000000));
	u64 held_ns = min(rest(&now.pause), then_ns - now.signal.now_ns);

	now.held_ns += held_ns;
	now.stopped_ns += held_ns;
	promise(STOPPED, now.stopped_ns <= now.law.pause_max_ns);
	now.signal.now_ns = then_ns;
	if (below(4))
		depart(then_ns);
	now.signal.asserted_ns = now.notes[below(NOTES)];
	now.signal.delay_ns = below(16) ? below(400000) : any();
	tell();
	promise(HELD, now.pause.asserted_ns - now.origin_ns == now.held_ns + rest(&now.pause));
}

static struct timely_pause_law random_law(bool hostile)
{
	struct timely_pause_law law = {
		.threshold_ns = below(200000),
		.pause_max_ns = 1 + below(5000000),
		.gain = TIMELY_PAUSE_ONE >> below(9),
		.strawman = !below(4),
	};

	if (hostile) {
		law.threshold_ns = below(2) ? law.threshold_ns : any();
		law.pause_max_ns = below(2) ? law.pause_max_ns : any();
		law.gain = below(2) ? law.gain : (u32)any();
	}
	return law;
}

static void one_flow(u32 steps)
{
	u32 i;

	now.hostile = below(2);
	now.law = random_law(now.hostile);
	timely_pause_init(&now.pause);
	now.b = now.pause.b * U;
	/* C may wrap. */
	now.pause.asserted_ns = below(2) ? 0 : 0ULL - below(10000000);
	now.origin_ns = now.pause.asserted_ns;
	now.held_ns = 0;
	now.stopped_ns = 0;
	now.began = false;
	now.signal = (struct timely_pause_signal) {
		.now_ns = roll() + 1,
		.departures = (u32)any(),
	};
	for (i = 0; i < NOTES; i++)
		now.notes[i] = now.origin_ns;
	while (steps--) {
		if (now.hostile)
			hostile_step();
		else
			sane_step();
	}
}

/* ---- the floor ---- */

#define VALUES	256

/* Values beside a list of them all, in times that run a little out of order. */
static void floor_in_time(struct timely_floor *window)
{
	u64 times[VALUES], values[VALUES], half_ns = 1 + (any() >> 8), now_ns = any() >> 2;
	u32 i, j;

	for (i = 0; i < VALUES; i++) {
		u64 got, late_ns = below(4) ? 0 : roll() % half_ns;

		now_ns += below(4) ? roll() % (1 + half_ns / 8) : roll() % (3 * half_ns);
		times[i] = now_ns - min(late_ns, now_ns);
		values[i] = any();
		got = timely_floor_add(window, times[i], half_ns, values[i]);
		/* What came late may be in a half, and in the next, that it is before. */
		for (j = 0; j < i && (values[j] != got || times[j] + 3 * half_ns <= times[i]); j++)
			;
		promise(FLOOR_LOW, values[j] == got);
		for (j = 0; j <= i; j++)
			if (times[j] + half_ns > now_ns)
				promise(FLOOR_HIGH, got <= values[j]);
	}
}

/* Anything, and then time that runs: within two halves all before is gone. */
static void floor_after_anything(struct timely_floor *window)
{
	u64 half_ns = 1 + (any() >> 8), now_ns = any(), got = 0;
	u32 i, n = below(16);

	for (i = 0; i < n; i++)
		timely_floor_add(window, any(), below(4) ? half_ns : any(), any());
	for (i = 0; i < 4; i++)
		got = timely_floor_add(window, now_ns + i * half_ns, half_ns, 12345 + i);
	promise(FLOOR_NEW, got == 12345 + 2);
}

static void one_floor(void)
{
	struct timely_floor window;

	timely_floor_init(&window);
	floor_in_time(&window);
	timely_floor_init(&window);
	floor_after_anything(&window);
}

#ifdef TIMELY_LIBFUZZER
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	dice.input = data;
	dice.left = size;
	if (size && data[0] & 1)
		one_floor();
	else
		one_flow((u32)(size / 32) + 1);
	return 0;
}
#else
static void one_round(void)
{
	one_flow(STEPS);
	one_floor();
}

int main(int argc, char **argv)
{
	return fuzz_main(argc, argv, one_round, "a flow with signals, a window");
}
#endif
