// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the wait of ACKs (net/timely/engine/ack_wait.c). Cases are named function__case.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/string.h>
#include <linux/time64.h>

#include <timely/engine/ack_wait.h>

#define MS_US	1000U
#define SECOND_US	(1000 * MS_US)
/* Time that an ACK is on its way if it does not wait. */
#define WAY_US	12U

/* An ACK of a receiver whose clock shows @zero at time 0. The ACK leaves at @at_us, and waits for
 * @wait_us. Return: the wait found.
 */
static u32 ack(struct timely_ack_wait *w, u32 zero, u32 at_us, u32 wait_us)
{
	return timely_ack_wait_us(w, at_us + WAY_US + wait_us, zero + at_us);
}

/* Let the engine learn the unit, from ACKs up to and including time @at_us. */
static void learn(struct kunit *test, struct timely_ack_wait *w, u32 zero, u32 at_us)
{
	KUNIT_EXPECT_EQ(test, ack(w, zero, at_us - 20, 0), 0);
	KUNIT_EXPECT_EQ(test, w->source, TIMELY_ACK_WAIT_UNSURE);
	KUNIT_EXPECT_EQ(test, ack(w, zero, at_us, 0), 0);
	KUNIT_EXPECT_EQ(test, w->source, TIMELY_ACK_WAIT_TIMESTAMP);
}

static void ack_wait__is_found(struct kunit *test)
{
	static const u32 zeros[] = { 0, 12345678, U32_MAX - 30, U32_MAX / 2 };
	u32 i, wait_us;

	for (i = 0; i < ARRAY_SIZE(zeros); i++) {
		struct timely_ack_wait w = {};

		learn(test, &w, zeros[i], 100);
		for (wait_us = 1; wait_us <= TIMELY_ACK_WAIT_MAX_US + 1; wait_us++)
			KUNIT_EXPECT_EQ(test, ack(&w, zeros[i], 100 + wait_us, wait_us),
					wait_us - 1);
		KUNIT_EXPECT_EQ(test, ack(&w, zeros[i], 1000, 0), 0);
		KUNIT_EXPECT_EQ(test, ack(&w, zeros[i], 1000, 5000), TIMELY_ACK_WAIT_MAX_US);
	}
}

/* The first ACKs have waited: the wait is known from the first ACK on that has not. */
static void ack_wait__first_acks_have_waited(struct kunit *test)
{
	struct timely_ack_wait w = {};

	ack(&w, 7, 100, 50);
	ack(&w, 7, 120, 50);
	KUNIT_EXPECT_EQ(test, w.source, TIMELY_ACK_WAIT_TIMESTAMP);
	KUNIT_EXPECT_EQ(test, ack(&w, 7, 140, 60), 9);
	KUNIT_EXPECT_EQ(test, ack(&w, 7, 160, 20), 0);
	KUNIT_EXPECT_EQ(test, ack(&w, 7, 180, 60), 39);
	KUNIT_EXPECT_EQ(test, ack(&w, 7, 200, 0), 0);
	KUNIT_EXPECT_EQ(test, ack(&w, 7, 220, 60), 59);
}

/* Milliseconds, at all times between two ACKs, and through a wrap of the timestamp. */
static void ack_wait__needs_microseconds(struct kunit *test)
{
	u32 step_us, at_us;

	for (step_us = 3; step_us < 200 * MS_US; step_us += step_us / 2) {
		struct timely_ack_wait w = {};

		for (at_us = 0; at_us < 100 * step_us; at_us += step_us)
			KUNIT_EXPECT_EQ(test, timely_ack_wait_us(&w, at_us, at_us / MS_US - 10), 0);
		KUNIT_EXPECT_EQ(test, w.source, TIMELY_ACK_WAIT_UNSURE);
	}
}

/* Timestamps that stand still, run backwards or jump are not microseconds. */
static void ack_wait__other_timestamps(struct kunit *test)
{
	struct timely_ack_wait still = {}, back = {}, jump = {};
	u32 at_us;

	for (at_us = 0; at_us < 100 * MS_US; at_us += 100) {
		KUNIT_EXPECT_EQ(test, timely_ack_wait_us(&still, at_us, 5), 0);
		KUNIT_EXPECT_EQ(test, timely_ack_wait_us(&back, at_us, 0 - at_us), 0);
		KUNIT_EXPECT_EQ(test, timely_ack_wait_us(&jump, at_us, at_us * 1000000), 0);
	}
	KUNIT_EXPECT_EQ(test, still.source, TIMELY_ACK_WAIT_UNSURE);
	KUNIT_EXPECT_EQ(test, back.source, TIMELY_ACK_WAIT_UNSURE);
	KUNIT_EXPECT_EQ(test, jump.source, TIMELY_ACK_WAIT_UNSURE);
}

/* ACKs that come rarely do not show the unit; ACKs that come often do, later. */
static void ack_wait__unit_is_measured_again(struct kunit *test)
{
	struct timely_ack_wait w = {};
	u32 i;

	for (i = 0; i < 10; i++)
		KUNIT_EXPECT_EQ(test, ack(&w, 0, i * 20 * MS_US, 0), 0);
	KUNIT_EXPECT_EQ(test, w.source, TIMELY_ACK_WAIT_UNSURE);
	KUNIT_EXPECT_EQ(test, ack(&w, 0, 9 * 20 * MS_US + 16, 0), 0);
	KUNIT_EXPECT_EQ(test, w.source, TIMELY_ACK_WAIT_TIMESTAMP);
}

/* The receiver's clock runs 50 ppm slower or faster than the arrivals' clock. */
static void ack_wait__clocks_differ(struct kunit *test)
{
	static const s32 ppm[] = { -50, 50 };
	u32 i, at_us, found_us;

	for (i = 0; i < ARRAY_SIZE(ppm); i++) {
		struct timely_ack_wait w = {};

		learn(test, &w, 0, 0);
		for (at_us = 100 * MS_US; at_us < 20 * SECOND_US; at_us += 100 * MS_US) {
			u32 drift_us = (s32)(at_us / SECOND_US) * ppm[i] +
				       (s32)(at_us % SECOND_US) / 1000 * ppm[i] / 1000;

			KUNIT_EXPECT_EQ(test, ack(&w, drift_us, at_us, 0), 0);
			found_us = ack(&w, drift_us, at_us + 10 * MS_US, 60);
			KUNIT_EXPECT_GE(test, found_us, 58);
			KUNIT_EXPECT_LE(test, found_us, 60);
		}
	}
}

/* A wait that never ends is a part of the path after a quarter of a second, and so is a longer
 * way back.
 */
static void ack_wait__that_never_ends(struct kunit *test)
{
	struct timely_ack_wait w = {};
	u32 at_us;

	learn(test, &w, 0, 100);
	for (at_us = 1000; at_us < 200 * MS_US; at_us += 1000)
		KUNIT_EXPECT_GE(test, ack(&w, 0, at_us, 80), 60);
	for (; at_us < 260 * MS_US; at_us += 1000)
		ack(&w, 0, at_us, 80);
	KUNIT_EXPECT_EQ(test, ack(&w, 0, at_us, 80), 0);
	KUNIT_EXPECT_EQ(test, ack(&w, 0, at_us, 100), 19);
}

/* A clock that is set, or a pause of any length, is forgotten at once or with the next ACK. */
static void ack_wait__after_a_long_time(struct kunit *test)
{
	static const u32 pauses_us[] = { 300 * MS_US, SECOND_US, 2000 * SECOND_US, 2200 * SECOND_US,
					 4000 * SECOND_US };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(pauses_us); i++) {
		struct timely_ack_wait w = {};

		learn(test, &w, 0, 100);
		KUNIT_EXPECT_EQ(test, ack(&w, 0, 100 + pauses_us[i], 50), 0);
		KUNIT_EXPECT_EQ(test, ack(&w, 0, 200 + pauses_us[i], 70), 19);
	}
}

/* An ACK that seems to arrive earlier than the one before is no reason to start again. */
static void ack_wait__earlier_arrival(struct kunit *test)
{
	struct timely_ack_wait w = {};

	learn(test, &w, 0, 10 * MS_US);
	KUNIT_EXPECT_EQ(test, ack(&w, 0, 10 * MS_US - 50, 30), 29);
	KUNIT_EXPECT_EQ(test, w.source, TIMELY_ACK_WAIT_TIMESTAMP);
}

/* As ack(), with an ACK time in the IPv4 ID. Return: the wait found; U32_MAX if not known. */
static u32 id_ack(struct timely_ack_wait *w, u32 zero, u32 at_us, u32 wait_us)
{
	u32 arrived_us = at_us + WAY_US + wait_us, time_us;

	if (!timely_ack_time_us(w, arrived_us, timely_ack_time_id(zero + at_us), &time_us))
		return U32_MAX;
	return timely_ack_wait_us(w, arrived_us, time_us);
}

/* Let the engine find out that IDs are ACK times, with ACKs at @at_us and the 7 us before it. */
static void learn_ids(struct kunit *test, struct timely_ack_wait *w, u32 zero, u32 at_us)
{
	u32 i;

	for (i = at_us - 7; i != at_us + 1; i++)
		KUNIT_EXPECT_EQ(test, id_ack(w, zero, i, 0), U32_MAX);
	KUNIT_EXPECT_FALSE(test, timely_ack_wait_is_known(w));
}

/* At all times of the 13 bits, from a receiver's clock with any time. */
static void ack_time__is_found(struct kunit *test)
{
	static const u32 zeros[] = { 0, 12345678, U32_MAX - 30, U32_MAX / 2 };
	u32 i, at_us, wait_us;

	for (i = 0; i < ARRAY_SIZE(zeros); i++) {
		struct timely_ack_wait w = {};

		learn_ids(test, &w, zeros[i], 100);
		KUNIT_EXPECT_EQ(test, id_ack(&w, zeros[i], 101, 0), 0);
		KUNIT_EXPECT_EQ(test, w.source, TIMELY_ACK_WAIT_ID);
		for (wait_us = 1; wait_us <= TIMELY_ACK_WAIT_MAX_US + 1; wait_us++)
			KUNIT_EXPECT_EQ(test, id_ack(&w, zeros[i], 101 + wait_us, wait_us),
					wait_us - 1);
		for (at_us = 1000; at_us < 20 * MS_US; at_us += 7) {
			KUNIT_EXPECT_EQ(test, id_ack(&w, zeros[i], at_us, 0), 0);
			KUNIT_EXPECT_EQ(test, id_ack(&w, zeros[i], at_us, 60), 59);
		}
		KUNIT_EXPECT_EQ(test, id_ack(&w, zeros[i], 200 * MS_US, 0), 0);
		KUNIT_EXPECT_EQ(test, id_ack(&w, zeros[i], 200 * MS_US, 60), 59);
	}
}

/* A wait of any length that the caller allows is no earlier time. */
static void ack_time__long_waits(struct kunit *test)
{
	struct timely_ack_wait w = {};
	u32 wait_us;

	learn_ids(test, &w, 5, 100);
	KUNIT_EXPECT_EQ(test, id_ack(&w, 5, 110, 0), 0);
	for (wait_us = 300; wait_us < TIMELY_ACK_TIME_RTT_NS / 1000; wait_us += 10)
		KUNIT_EXPECT_EQ(test, id_ack(&w, 5, 110, wait_us), TIMELY_ACK_WAIT_MAX_US);
	KUNIT_EXPECT_EQ(test, id_ack(&w, 5, 120, 40), 39);
	/* The first ACK that counts has waited. */
	memset(&w, 0, sizeof(w));
	learn_ids(test, &w, 5, 100);
	KUNIT_EXPECT_EQ(test, id_ack(&w, 5, 110, 3900), 0);
	KUNIT_EXPECT_EQ(test, id_ack(&w, 5, 4000, 0), 0);
	KUNIT_EXPECT_EQ(test, id_ack(&w, 5, 4010, 40), 39);
}

/* Counters with any step, constant IDs and zeros are no ACK times; a check passes now and then. */
static void ack_time__other_ids(struct kunit *test)
{
	u32 first, step, i, time_us, found = 0;

	for (first = 0; first <= U16_MAX; first += 251) {
		for (step = 0; step <= 256; step++) {
			struct timely_ack_wait w = {};

			for (i = 0; i < 50; i++) {
				u16 id = first + i * step;

				found += timely_ack_time_us(&w, i * 5, id, &time_us);
			}
		}
	}
	KUNIT_EXPECT_EQ(test, found, 0);
}

/* The receiver changes its qdisc: the first other ID ends the use of IDs. Packets without an ID
 * that counts change nothing.
 */
static void ack_time__ends(struct kunit *test)
{
	struct timely_ack_wait w = {};
	u32 time_us;

	learn_ids(test, &w, 9, 100);
	KUNIT_EXPECT_EQ(test, id_ack(&w, 9, 110, 0), 0);
	KUNIT_EXPECT_FALSE(test, timely_ack_time_us(&w, 130, TIMELY_ACK_NO_ID, &time_us));
	KUNIT_EXPECT_EQ(test, id_ack(&w, 9, 120, 30), 29);
	KUNIT_EXPECT_FALSE(test, timely_ack_time_us(&w, 140, timely_ack_time_id(140) ^ 1,
						    &time_us));
	KUNIT_EXPECT_FALSE(test, timely_ack_wait_is_known(&w));
	learn_ids(test, &w, 9, 200);
	KUNIT_EXPECT_EQ(test, id_ack(&w, 9, 210, 0), 0);
}

/* ACK times replace timestamps. */
static void ack_time__after_timestamps(struct kunit *test)
{
	struct timely_ack_wait w = {};
	u32 i;

	learn(test, &w, 0, 100);
	for (i = 101; i < 109; i++)
		KUNIT_EXPECT_EQ(test, id_ack(&w, 77, i, 0), U32_MAX);
	KUNIT_EXPECT_EQ(test, w.source, TIMELY_ACK_WAIT_TIMESTAMP);
	KUNIT_EXPECT_EQ(test, id_ack(&w, 77, 109, 0), 0);
	KUNIT_EXPECT_EQ(test, w.source, TIMELY_ACK_WAIT_ID);
	KUNIT_EXPECT_EQ(test, id_ack(&w, 77, 110, 9), 8);
}

static struct kunit_case timely_ack_wait_cases[] = {
	KUNIT_CASE(ack_wait__is_found),
	KUNIT_CASE(ack_wait__first_acks_have_waited),
	KUNIT_CASE(ack_wait__needs_microseconds),
	KUNIT_CASE(ack_wait__other_timestamps),
	KUNIT_CASE(ack_wait__unit_is_measured_again),
	KUNIT_CASE(ack_wait__clocks_differ),
	KUNIT_CASE(ack_wait__that_never_ends),
	KUNIT_CASE(ack_wait__after_a_long_time),
	KUNIT_CASE(ack_wait__earlier_arrival),
	KUNIT_CASE(ack_time__is_found),
	KUNIT_CASE(ack_time__long_waits),
	KUNIT_CASE(ack_time__other_ids),
	KUNIT_CASE(ack_time__ends),
	KUNIT_CASE(ack_time__after_timestamps),
	{}
};

static struct kunit_suite timely_ack_wait_suite = {
	.name = "timely_ack_wait",
	.test_cases = timely_ack_wait_cases,
};

kunit_test_suite(timely_ack_wait_suite);
