// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of On-Ramp's delays, then receivers whose clocks are synchronised, wrong,
 * stepped, slewed, replayed or random. The bound of the delay must not depend on the receiver.
 * Built with ASan and UBSan.
 *
 *   owd_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS destinations with STEPS signals each. Prints TAP. Built with -DTIMELY_LIBFUZZER, the
 * random numbers are the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include <timely/engine/owd.h>

#define STEPS	1024

enum promise { RELATIVE, ABSOLUTE, DOUBTED, IGNORED, PROMISES };

static const char * const promises[PROMISES] = {
	[RELATIVE] = "a relative delay is at most the excess of the round trip",
	[ABSOLUTE] = "an absolute delay is at most the round trip",
	[DOUBTED] = "a doubted delay is at most the excess of the round trip",
	[IGNORED] = "an ignored signal does not change the minimum round trip",
};

#define FUZZ_ROUND	"destinations"
#include "fuzz.h"

static struct {
	struct timely_owd owd;
	struct timely_timeline timeline;
	struct timely_clock clock;
	struct timely_owd_signal signal;
	u64 base_ns;
	u64 offset_ns;
	u64 reported_ns;		/* a receive time that was reported */
	bool relative;
} now;

/* Any magnitude with the same probability. */
static u64 any(void)
{
	return (roll() << 32 ^ roll()) >> below(64);
}

static void start(void)
{
	memset(&now, 0, sizeof(now));
	timely_owd_init(&now.owd);
	timely_clock_init(&now.clock);
	now.relative = below(2);
	if (now.relative && below(8))
		now.owd.clock = &now.clock;
	now.base_ns = 1000 + below(2000000);
	now.signal.now_ns = (u64)NSEC_PER_SEC * (10 + below(1000));
	now.offset_ns = below(2) ? any() : now.signal.real_ns;
}

/* The receive time that the receiver reports. */
static u64 received(u64 arrived_ns)
{
	u64 true_ns = arrived_ns + now.offset_ns;

	switch (below(256)) {
	case 0:
		now.offset_ns += (below(2) ? 1 : -1) * (any() >> 8);
		break;
	case 1:
		return any();
	case 2:
		return now.reported_ns;
	case 3:
		now.reported_ns = true_ns;
		break;
	}
	return arrived_ns + now.offset_ns;
}

static void one_step(void)
{
	struct timely_owd_signal *signal = &now.signal;
	u64 queue_ns = below(4) ? below(1000) : below(5000000), rtt_ns = now.base_ns + queue_ns;
	u64 least_ns, excess_ns, delay_ns = 0;
	struct timely_min_filter before;
	enum timely_owd_verdict verdict;

	signal->now_ns += below(16) ? below(200000) : below(20000000);
	signal->turnaround_ns = below(2) ? below(2000) : 0;
	signal->sent_ns = signal->now_ns - rtt_ns - signal->turnaround_ns;
	signal->received_ns = received(signal->sent_ns + now.base_ns / 2 + queue_ns);
	before = now.owd.rtt;
	least_ns = timely_min_filter_add(&before, signal->now_ns, 5ULL * NSEC_PER_SEC, rtt_ns);
	excess_ns = rtt_ns - least_ns;
	before = now.owd.rtt;
	if (now.relative)
		verdict = timely_owd_relative(&now.owd, &now.timeline, signal, &delay_ns);
	else
		verdict = timely_owd_absolute(&now.owd, &now.timeline, signal, 0, 100000,
					      &delay_ns);
	switch (verdict) {
	case TIMELY_OWD_GOOD:
		promise(now.relative ? RELATIVE : ABSOLUTE,
			delay_ns <= (now.relative ? excess_ns : rtt_ns));
		break;
	case TIMELY_OWD_DOUBTED:
		promise(DOUBTED, !now.relative && delay_ns <= excess_ns);
		break;
	case TIMELY_OWD_BAD:
		if (!now.relative)
			promise(IGNORED, !memcmp(&before, &now.owd.rtt, sizeof(before)));
		break;
	}
}

static void fuzz_input(void)
{
	start();
	while (dice.left)
		one_step();
}

static void fuzz_round(void)
{
	start();
	for (u32 i = 0; i < STEPS; i++)
		one_step();
}
