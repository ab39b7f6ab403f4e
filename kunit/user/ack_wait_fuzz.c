// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of the wait of ACKs, then random connections: ways back with waits, clocks
 * that drift by up to 50 ppm, timestamps in us, in ms, and random ones, IPv4 IDs with ACK times and
 * with counts of packets. Built with ASan and UBSan.
 *
 *   ack_wait_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS connections with STEPS ACKs each. Prints TAP. Built with -DTIMELY_LIBFUZZER, the
 * random numbers are the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include <timely/engine/ack_wait.h>

#define STEPS	512

enum promise { BOUNDED, FOUND, NOT_MORE, UNKNOWN, PROMISES };

static const char * const promises[PROMISES] = {
	[BOUNDED] = "no wait is longer than the longest that counts",
	[FOUND] = "a wait is found to 2 us and the drift, once an ACK did not wait",
	[NOT_MORE] = "no wait is found longer than it is, but for the drift",
	[UNKNOWN] = "timestamps in ms and IDs that count packets give no wait",
};

#define FUZZ_ROUND	"connections"
#include "fuzz.h"

static struct {
	struct timely_ack_wait wait;
	u64 now_us;
	u64 straight_us;	/* when an ACK last did not wait; 0 for never */
	s32 drift_ppm;
	u32 way_us;
	u32 zero;
	u32 unit_us;		/* of the timestamps; 0: random timestamps */
	bool ids;		/* IDs are ACK times; else they count packets */
	u16 id;
} now;

static void start(void)
{
	memset(&now, 0, sizeof(now));
	now.now_us = roll() + 1;
	now.zero = (u32)roll();
	now.way_us = below(500);
	now.drift_ppm = (s32)below(101) - 50;
	now.unit_us = below(8) ? below(4) ? 1 : 1000 : 0;
	now.ids = below(2);
	now.id = roll();
}

/* The receiver's clock in us. */
static u64 receiver_us(void)
{
	return now.now_us + (s64)now.now_us / 1000000 * now.drift_ppm +
	       (s64)(now.now_us % 1000000) * now.drift_ppm / 1000000;
}

/* The ID of a pure ACK; now and then a packet with data, which has none. */
static u32 next_id(void)
{
	now.id += 1 + below(3);
	if (!below(8))
		return TIMELY_ACK_NO_ID;
	return now.ids ? timely_ack_time_id(receiver_us()) : now.id;
}

/* An ACK arrives. Return: whether its time is known. */
static bool arrive(u32 arrived_us, u32 timestamp, u32 *found_us)
{
	u32 time_us = timestamp;
	u8 source = now.wait.source;
	bool id = timely_ack_time_us(&now.wait, arrived_us, next_id(), &time_us);

	if (now.wait.source != source)
		now.straight_us = 0;
	*found_us = 0;
	if (!id && now.wait.source == TIMELY_ACK_WAIT_ID)
		return false;
	*found_us = timely_ack_wait_us(&now.wait, arrived_us, time_us);
	return id || (now.unit_us == 1 && timely_ack_wait_is_known(&now.wait));
}

static void one_step(void)
{
	u32 waited_us = below(4) ? below(600) : 0, found_us, timestamp = (u32)roll();

	now.now_us += below(64) ? below(1000) : below(2000000);
	if (now.unit_us)
		timestamp = now.zero + (u32)(receiver_us() / now.unit_us);
	if (!arrive(now.now_us + now.way_us + waited_us, timestamp, &found_us)) {
		promise(BOUNDED, found_us <= TIMELY_ACK_WAIT_MAX_US);
		if (now.unit_us == 1000 && !now.ids)
			promise(UNKNOWN, !found_us && !timely_ack_wait_is_known(&now.wait));
		return;
	}
	promise(BOUNDED, found_us <= TIMELY_ACK_WAIT_MAX_US);
	/* The receiver's clock adds less than 61 ppm, and rounding less than 2 us. */
	promise(NOT_MORE, found_us <= waited_us + 1);
	if (!waited_us)
		now.straight_us = now.now_us;
	if (now.straight_us && now.now_us - now.straight_us < 100000)
		promise(FOUND, found_us + 2 + 12 >= min(waited_us, TIMELY_ACK_WAIT_MAX_US));
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
