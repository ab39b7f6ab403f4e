// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of the filter for coded probes, then pairs of probes that are queued, lost,
 * duplicated, reordered and random. A model keeps all probes of a round, and says what each verdict
 * must be. Built with ASan and UBSan.
 *
 *   probe_code_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS paths with STEPS probes each. Prints TAP. Built with -DTIMELY_LIBFUZZER, the random
 * numbers are the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include <timely/engine/probe_code.h>

#define STEPS	512
#define PAIRS	STEPS

enum promise { PURE, CHANGED, WRONG, ONCE, LATE, COUNTED, LIMITS, PROMISES };

static const char * const promises[PROMISES] = {
	[PURE] = "a pair that kept its spacing within the tolerance is used, with its faster probe",
	[CHANGED] = "a pair that lost its spacing is not used, and counted by the direction",
	[WRONG] = "a pair whose departures have a wrong spacing is not used",
	[ONCE] = "a probe that was received before is a duplicate",
	[LATE] = "a probe is late if its pair is older than the pairs that are kept",
	[COUNTED] = "each call is counted once",
	[LIMITS] = "the tolerance is within its limits",
};

#define FUZZ_ROUND	"paths"
#include "fuzz.h"

static struct {
	struct timely_probe_code code;
	struct timely_probe probes[PAIRS][2];
	bool seen[PAIRS][2];
	u32 first;		/* number of pair 0 */
	u32 newest;		/* index of the newest pair */
	u32 pair;		/* index of the next new pair */
	u64 noise_ns;
	u64 queue_ns;
	u64 calls;
} now;

static u64 any(void)
{
	return (roll() << 32 ^ roll()) >> below(64);
}

static void start(void)
{
	memset(&now, 0, sizeof(now));
	timely_probe_code_init(&now.code);
	now.first = below(2) ? below(U32_MAX) : U32_MAX - below(PAIRS);
	now.noise_ns = 1 + (any() & 0x3fff);
	now.queue_ns = 1 + (any() & 0xfffff);
}

/* Draw the timestamps of a new pair. */
static void draw(struct timely_probe *probes)
{
	u64 spacing = below(16) ? 1 + below(50000) : any(), late = below(now.noise_ns);

	probes[0].sent_ns = (roll() << 32) + below(1000);
	probes[0].received_ns = probes[0].sent_ns + 5000 + late;
	probes[1].sent_ns = probes[0].sent_ns + spacing;
	probes[1].received_ns = probes[1].sent_ns + 5000 +
				(below(2) ? below(now.noise_ns) : below(now.queue_ns));
	if (!below(32))
		probes[below(2)].received_ns = any();
}

/* What the verdict on a complete pair must be. */
static void check_pair(u32 i, enum timely_probe_verdict verdict, u32 tolerance,
		       const struct timely_probe *pure)
{
	const struct timely_probe *a = &now.probes[i][0], *b = &now.probes[i][1];
	u64 spacing = b->sent_ns - a->sent_ns;
	s64 change = (s64)(b->received_ns - a->received_ns - spacing);
	const struct timely_probe *faster = change < 0 ? b : a;

	if (!spacing || spacing > TIMELY_PROBE_SPACING_MAX_NS)
		promise(WRONG, verdict == TIMELY_PROBE_SPACING);
	else if (change > (s64)tolerance)
		promise(CHANGED, verdict == TIMELY_PROBE_SPREAD);
	else if (change < -(s64)tolerance)
		promise(CHANGED, verdict == TIMELY_PROBE_CLOSER);
	else
		promise(PURE, verdict == TIMELY_PROBE_PURE &&
			pure->sent_ns == faster->sent_ns &&
			pure->received_ns == faster->received_ns);
}

/* Pass probe @second of pair @i to the filter. */
static void pass(u32 i, bool second)
{
	bool late, again = now.seen[i][second];
	struct timely_probe pure = { 1, 2 };
	enum timely_probe_verdict verdict;
	u32 tolerance = now.code.tolerance_ns;

	now.newest = max(now.newest, i);
	late = now.newest - i >= TIMELY_PROBE_PENDING;
	verdict = timely_probe_code_add(&now.code, now.first + i, second, &now.probes[i][second],
					&pure);
	now.calls++;
	if (late) {
		promise(LATE, verdict == TIMELY_PROBE_LATE);
	} else if (again) {
		promise(ONCE, verdict == TIMELY_PROBE_DUPLICATE);
	} else {
		now.seen[i][second] = true;
		if (now.seen[i][!second])
			check_pair(i, verdict, tolerance, &pure);
		else
			promise(ONCE, verdict == TIMELY_PROBE_WAIT);
	}
	promise(LIMITS, now.code.tolerance_ns >= TIMELY_PROBE_TOLERANCE_MIN_NS &&
		now.code.tolerance_ns <= TIMELY_PROBE_TOLERANCE_MAX_NS);
}

static void one_step(void)
{
	u32 back = below(8) ? below(4) : below(40);

	if (below(4) && now.pair < PAIRS) {
		draw(now.probes[now.pair]);
		/* One of 16 probes is lost. */
		if (below(16))
			pass(now.pair, false);
		if (below(16) && below(4))
			pass(now.pair, true);
		now.pair++;
	} else if (now.pair > back) {
		pass(now.pair - 1 - back, below(2));
	}
}

static void finish(void)
{
	u64 total = 0;
	u32 i;

	for (i = 0; i < TIMELY_PROBE_VERDICTS; i++)
		total += i == TIMELY_PROBE_LOST ? 0 : now.code.counts[i];
	promise(COUNTED, total == now.calls &&
		now.code.counts[TIMELY_PROBE_LOST] <= now.pair);
}

static void fuzz_input(void)
{
	start();
	while (dice.left)
		one_step();
	finish();
}

static void fuzz_round(void)
{
	start();
	for (u32 i = 0; i < STEPS; i++)
		one_step();
	finish();
}
