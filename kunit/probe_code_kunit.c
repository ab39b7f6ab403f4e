// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the filter for coded probes (probe_code.c): pairs that keep or lose their spacing, lost,
 * duplicated and reordered probes, and the tolerance for exact and for noisy timestamps. Cases are
 * named function__case.
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/module.h>

#include <timely/engine/probe_code.h>

#define SPACING_NS	20000
#define DELAY_NS	7000
/* The receiver's clock minus the sender's. */
#define OFFSET_NS	123456789012345ULL

struct bed {
	struct timely_probe_code code;
	struct timely_probe pure;
	u32 dice;
};

static struct bed *make_bed(struct kunit *test)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bed);
	timely_probe_code_init(&bed->code);
	bed->dice = 1;
	return bed;
}

static u32 below(struct bed *bed, u32 n)
{
	bed->dice = bed->dice * 1664525 + 1013904223;
	return (bed->dice >> 8) % n;
}

/* Add a probe of pair @pair that arrives @late_ns later than the base delay. */
static enum timely_probe_verdict add(struct bed *bed, u32 pair, bool second, s64 late_ns)
{
	u64 sent_ns = 1000000000000ULL + (u64)pair * 10000000 + second * SPACING_NS;

	return timely_probe_code_add(&bed->code, pair, second, &(struct timely_probe){
		.sent_ns = sent_ns, .received_ns = sent_ns + OFFSET_NS + DELAY_NS + late_ns,
	}, &bed->pure);
}

/* Add a whole pair. */
static enum timely_probe_verdict pair(struct bed *bed, u32 number, s64 first_ns, s64 second_ns)
{
	add(bed, number, false, first_ns);
	return add(bed, number, true, second_ns);
}

static s64 pure_delay(const struct bed *bed)
{
	return (s64)(bed->pure.received_ns - bed->pure.sent_ns - OFFSET_NS);
}

/* Pairs with timestamps that are exact to @noise_ns. Return: the tolerance. */
static u32 learn(struct bed *bed, u32 pairs, u32 noise_ns)
{
	u32 i;

	for (i = 0; i < pairs; i++)
		pair(bed, i, below(bed, noise_ns + 1), below(bed, noise_ns + 1));
	return bed->code.tolerance_ns;
}

static void add__pair_in_order(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	KUNIT_EXPECT_EQ(test, add(bed, 7, false, 0), TIMELY_PROBE_WAIT);
	KUNIT_EXPECT_EQ(test, add(bed, 7, true, 0), TIMELY_PROBE_PURE);
	KUNIT_EXPECT_EQ(test, pure_delay(bed), DELAY_NS);
	KUNIT_EXPECT_EQ(test, bed->code.counts[TIMELY_PROBE_WAIT], 1);
	KUNIT_EXPECT_EQ(test, bed->code.counts[TIMELY_PROBE_PURE], 1);
}

static void add__second_probe_first(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	KUNIT_EXPECT_EQ(test, add(bed, 7, true, 3), TIMELY_PROBE_WAIT);
	KUNIT_EXPECT_EQ(test, add(bed, 8, false, 0), TIMELY_PROBE_WAIT);
	KUNIT_EXPECT_EQ(test, add(bed, 7, false, 5), TIMELY_PROBE_PURE);
	KUNIT_EXPECT_EQ(test, pure_delay(bed), DELAY_NS + 3);
	KUNIT_EXPECT_EQ(test, add(bed, 8, true, 0), TIMELY_PROBE_PURE);
}

static void add__uses_the_faster_probe(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	pair(bed, 1, 900, 400);
	KUNIT_EXPECT_EQ(test, pure_delay(bed), DELAY_NS + 400);
	pair(bed, 2, 300, 800);
	KUNIT_EXPECT_EQ(test, pure_delay(bed), DELAY_NS + 300);
}

static void add__spacing_that_changed(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	s64 most = TIMELY_PROBE_TOLERANCE_MAX_NS;

	bed->pure.sent_ns = 99;
	KUNIT_EXPECT_EQ(test, pair(bed, 1, 0, most + 1), TIMELY_PROBE_SPREAD);
	KUNIT_EXPECT_EQ(test, pair(bed, 2, most + 1, 0), TIMELY_PROBE_CLOSER);
	KUNIT_EXPECT_EQ(test, pair(bed, 3, 0, S64_MAX), TIMELY_PROBE_SPREAD);
	KUNIT_EXPECT_EQ(test, pair(bed, 4, 0, S64_MIN), TIMELY_PROBE_CLOSER);
	KUNIT_EXPECT_EQ(test, bed->pure.sent_ns, 99);
	KUNIT_EXPECT_EQ(test, pair(bed, 5, 0, most), TIMELY_PROBE_PURE);
	KUNIT_EXPECT_EQ(test, bed->code.counts[TIMELY_PROBE_SPREAD], 2);
	KUNIT_EXPECT_EQ(test, bed->code.counts[TIMELY_PROBE_CLOSER], 2);
}

static void add__departures_in_wrong_order(struct kunit *test)
{
	static const u64 second_ns[] = {
		0, 1, 500, 999, 1000, 1001 + TIMELY_PROBE_SPACING_MAX_NS, U64_MAX
	};
	struct bed *bed = make_bed(test);
	u32 i;

	for (i = 0; i < ARRAY_SIZE(second_ns); i++) {
		struct timely_probe first = { 1000, 5000 }, second = { second_ns[i], 5000 };

		timely_probe_code_add(&bed->code, i, false, &first, &bed->pure);
		KUNIT_EXPECT_EQ(test, timely_probe_code_add(&bed->code, i, true, &second,
							    &bed->pure), TIMELY_PROBE_SPACING);
	}
	KUNIT_EXPECT_EQ(test, bed->code.counts[TIMELY_PROBE_SPACING], ARRAY_SIZE(second_ns));
}

static void add__duplicates(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	add(bed, 5, false, 0);
	KUNIT_EXPECT_EQ(test, add(bed, 5, false, 0), TIMELY_PROBE_DUPLICATE);
	KUNIT_EXPECT_EQ(test, add(bed, 5, true, 0), TIMELY_PROBE_PURE);
	KUNIT_EXPECT_EQ(test, add(bed, 5, true, 0), TIMELY_PROBE_DUPLICATE);
	KUNIT_EXPECT_EQ(test, add(bed, 5, false, 0), TIMELY_PROBE_DUPLICATE);
	KUNIT_EXPECT_EQ(test, bed->code.counts[TIMELY_PROBE_DUPLICATE], 3);
}

static void add__lost_probes(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i;

	/* Every third pair is complete. */
	for (i = 0; i < 3 * TIMELY_PROBE_PENDING; i++)
		if (i % 3)
			add(bed, i, i % 3 == 1, 0);
		else
			pair(bed, i, 0, 0);
	KUNIT_EXPECT_EQ(test, bed->code.counts[TIMELY_PROBE_PURE], TIMELY_PROBE_PENDING);
	for (i = 0; i < TIMELY_PROBE_PENDING; i++)
		pair(bed, 3 * TIMELY_PROBE_PENDING + i, 0, 0);
	KUNIT_EXPECT_EQ(test, bed->code.counts[TIMELY_PROBE_LOST], 2 * TIMELY_PROBE_PENDING);
}

static void add__late_probes(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	add(bed, 100, false, 0);
	add(bed, 100 + TIMELY_PROBE_PENDING - 1, false, 0);
	KUNIT_EXPECT_EQ(test, add(bed, 100, true, 0), TIMELY_PROBE_PURE);
	add(bed, 100 + TIMELY_PROBE_PENDING, false, 0);
	KUNIT_EXPECT_EQ(test, add(bed, 100, true, 0), TIMELY_PROBE_LATE);
	KUNIT_EXPECT_EQ(test, add(bed, 99, true, 0), TIMELY_PROBE_LATE);
	timely_probe_code_forget(&bed->code);
	KUNIT_EXPECT_EQ(test, add(bed, 1, false, 0), TIMELY_PROBE_WAIT);
	KUNIT_EXPECT_EQ(test, bed->code.counts[TIMELY_PROBE_LATE], 2);
}

static void add__numbers_wrap(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	add(bed, U32_MAX, false, 0);
	KUNIT_EXPECT_EQ(test, pair(bed, 0, 0, 0), TIMELY_PROBE_PURE);
	KUNIT_EXPECT_EQ(test, add(bed, U32_MAX, true, 0), TIMELY_PROBE_PURE);
	KUNIT_EXPECT_EQ(test, add(bed, U32_MAX - 15, true, 0), TIMELY_PROBE_LATE);
}

static void tolerance__of_exact_timestamps(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	KUNIT_EXPECT_EQ(test, bed->code.tolerance_ns, TIMELY_PROBE_TOLERANCE_MAX_NS);
	KUNIT_EXPECT_EQ(test, learn(bed, 80, 0), TIMELY_PROBE_TOLERANCE_MIN_NS);
	/* A queue of one packet is noticed. */
	KUNIT_EXPECT_EQ(test, pair(bed, 1000, 0, 120), TIMELY_PROBE_SPREAD);
}

static void tolerance__of_noisy_timestamps(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u64 pure;

	/* Timestamps that are up to 5 us late: most pairs must pass. */
	learn(bed, 2000, 5000);
	pure = bed->code.counts[TIMELY_PROBE_PURE];
	bed->code.started = false;
	learn(bed, 2000, 5000);
	pure = bed->code.counts[TIMELY_PROBE_PURE] - pure;
	KUNIT_EXPECT_GE(test, pure, 1000);
	KUNIT_EXPECT_GE(test, bed->code.tolerance_ns, 1500);
	KUNIT_EXPECT_LE(test, bed->code.tolerance_ns, 10000);
}

static void tolerance__with_queues(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i, clean, used = 0, wrong = 0;
	s64 late;

	/* One of ten pairs is not queued. The others are queued by up to 50 us. */
	for (i = 0; i < 5000; i++) {
		clean = !below(bed, 10);
		late = clean ? below(bed, 8) : below(bed, 50000);
		if (pair(bed, i, late, clean ? below(bed, 8) : below(bed, 50000)) !=
		    TIMELY_PROBE_PURE || i < 1000)
			continue;
		used += clean;
		wrong += !clean;
	}
	KUNIT_EXPECT_GE(test, used, 350);
	KUNIT_EXPECT_LE(test, wrong, 40);
	KUNIT_EXPECT_LE(test, bed->code.tolerance_ns, 300);
}

static void tolerance__follows_the_noise_up(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	learn(bed, 100, 0);
	bed->code.started = false;
	KUNIT_EXPECT_GE(test, learn(bed, 3000, 5000), 1500);
}

static struct kunit_case probe_code_cases[] = {
	KUNIT_CASE(add__pair_in_order),
	KUNIT_CASE(add__second_probe_first),
	KUNIT_CASE(add__uses_the_faster_probe),
	KUNIT_CASE(add__spacing_that_changed),
	KUNIT_CASE(add__departures_in_wrong_order),
	KUNIT_CASE(add__duplicates),
	KUNIT_CASE(add__lost_probes),
	KUNIT_CASE(add__late_probes),
	KUNIT_CASE(add__numbers_wrap),
	KUNIT_CASE(tolerance__of_exact_timestamps),
	KUNIT_CASE(tolerance__of_noisy_timestamps),
	KUNIT_CASE(tolerance__with_queues),
	KUNIT_CASE(tolerance__follows_the_noise_up),
	{}
};

static struct kunit_suite probe_code_suite = {
	.name = "timely_probe_code",
	.test_cases = probe_code_cases,
};

kunit_test_suite(probe_code_suite);
