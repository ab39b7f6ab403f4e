// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the common time of many hosts (clock_loop.c): single rounds with hand-made neighbours,
 * networks of hosts that average, and surpluses and least squares of graphs. Cases are named
 * function__case.
 */
#include <kunit/test.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/time64.h>

#include <timely/engine/clock_loop.h>
#include <timely/engine/strip.h>

#define HOSTS		12
#define START_NS	1000000000000ULL

/**
 * struct bed - a network in which all hosts are neighbours
 * @loops: the hosts
 * @peers: what each host knows of the others
 * @edges: the graph
 * @work: working memory for the graph
 * @surplus: distribution of the surpluses
 * @offsets_ns: least squares
 * @clock_ns: each host's clock minus true time
 * @error_ns: error of the measured offset from one host to another; antisymmetric
 * @now_ns: true time
 * @dice: state of the random numbers
 */
struct bed {
	struct timely_loop loops[HOSTS];
	struct timely_loop_peer peers[HOSTS][HOSTS - 1];
	struct timely_loop_edge edges[HOSTS * (HOSTS - 1) / 2 + 1];
	struct timely_loop_work work;
	struct timely_loop_surplus surplus;
	s64 offsets_ns[TIMELY_LOOP_HOSTS_MAX];
	s64 clock_ns[HOSTS];
	s64 error_ns[HOSTS][HOSTS];
	u64 now_ns;
	u32 dice;
};

static u32 below(struct bed *bed, u32 n)
{
	bed->dice = bed->dice * 1664525 + 1013904223;
	return (bed->dice >> 8) % n;
}

static struct bed *make_bed(struct kunit *test)
{
	struct bed *bed = kunit_kzalloc(test, sizeof(*bed), GFP_KERNEL);
	u32 a, b;

	KUNIT_ASSERT_NOT_NULL(test, bed);
	bed->dice = 1;
	bed->now_ns = START_NS;
	for (a = 0; a < HOSTS; a++) {
		bed->clock_ns[a] = (s64)below(bed, 1 << 24) << 30;
		timely_loop_init(&bed->loops[a], bed->now_ns + bed->clock_ns[a],
				 -bed->clock_ns[a] + below(bed, 1000000), 1000 + a);
		for (b = 0; b < HOSTS - 1; b++)
			timely_loop_peer_init(&bed->peers[a][b]);
		for (b = 0; b < a; b++) {
			bed->error_ns[a][b] = (s32)below(bed, 201) - 100;
			bed->error_ns[b][a] = -bed->error_ns[a][b];
		}
	}
	return bed;
}

/* Number of the host that is neighbour @i of host @a. */
static u32 neighbour(u32 a, u32 i)
{
	return i < a ? i : i + 1;
}

/* One round of host @a. */
static enum timely_loop_verdict host_round(struct bed *bed, u32 a)
{
	u32 i, b;

	for (i = 0; i < HOSTS - 1; i++) {
		b = neighbour(a, i);
		bed->peers[a][i].fresh = true;
		bed->peers[a][i].offset_ns = bed->clock_ns[b] - bed->clock_ns[a] +
					     bed->error_ns[a][b];
		bed->peers[a][i].error_ns = 100;
		bed->peers[a][i].drift_error_ppb = 10;
		bed->peers[a][i].time = bed->loops[b].time;
	}
	return timely_loop_round(&bed->loops[a], bed->peers[a], HOSTS - 1,
				 bed->now_ns + bed->clock_ns[a]);
}

static void rounds(struct bed *bed, u32 count)
{
	u32 a;

	for (; count; count--)
		for (a = 0; a < HOSTS; a++, bed->now_ns += 20000000)
			host_round(bed, a);
}

/* The common time of a host minus that of host 1, ns: how far they disagree. */
static s64 apart(const struct bed *bed, u32 a)
{
	return timely_loop_correction_ns(&bed->loops[a].time, bed->now_ns + bed->clock_ns[a]) +
	       bed->clock_ns[a] - bed->clock_ns[1] -
	       timely_loop_correction_ns(&bed->loops[1].time, bed->now_ns + bed->clock_ns[1]);
}

static s64 worst_apart(const struct bed *bed, u32 first)
{
	s64 low = 0, high = 0;
	u32 a;

	for (a = first; a < HOSTS; a++) {
		low = min(low, apart(bed, a));
		high = max(high, apart(bed, a));
	}
	return high - low;
}

/* ---- the common time ---- */

static void correction__follows_the_rate(struct kunit *test)
{
	struct timely_loop_time time = {
		.at_ns = START_NS, .correction_ns = -500, .rate_q32 = 1 << 22,
		.bound_ns = 10, .growth_ppb = 100,
	};

	KUNIT_EXPECT_EQ(test, timely_loop_correction_ns(&time, START_NS), -500);
	KUNIT_EXPECT_EQ(test, timely_loop_correction_ns(&time, START_NS + 1024000), 500);
	KUNIT_EXPECT_EQ(test, timely_loop_correction_ns(&time, START_NS - 1024000), -1500);
	KUNIT_EXPECT_EQ(test, timely_loop_bound_ns(&time, START_NS), 10);
	KUNIT_EXPECT_GE(test, timely_loop_bound_ns(&time, START_NS + NSEC_PER_SEC), 109);
	KUNIT_EXPECT_LE(test, timely_loop_bound_ns(&time, START_NS + NSEC_PER_SEC), 110);
	time.bound_ns = TIMELY_LOOP_UNKNOWN_NS;
	KUNIT_EXPECT_EQ(test, timely_loop_bound_ns(&time, START_NS), TIMELY_LOOP_UNKNOWN_NS);
}

static void offset__of_two_clocks(struct kunit *test)
{
	/* The peer's clock is an hour behind, and 976 ppm faster than the own one. */
	struct timely_loop_time own = {
		.at_ns = START_NS, .correction_ns = 7000, .rate_q32 = 1 << 22, .bound_ns = 20,
	};
	struct timely_loop_time peer = {
		.at_ns = START_NS - 3600LL * NSEC_PER_SEC,
		.correction_ns = 7000 + 3600LL * NSEC_PER_SEC, .bound_ns = 30,
	};
	struct timely_loop_offset offset;

	timely_loop_offset(&own, &peer, START_NS, &offset);
	KUNIT_EXPECT_EQ(test, offset.offset_ns, -3600LL * NSEC_PER_SEC);
	KUNIT_EXPECT_EQ(test, offset.drift_q32, 1 << 22);
	/* The root of the sum of the squares of 20 and 30. */
	KUNIT_EXPECT_EQ(test, offset.bound_ns, 36);
	timely_loop_offset(&own, &peer, START_NS + 1024000, &offset);
	KUNIT_EXPECT_EQ(test, offset.offset_ns, -3600LL * NSEC_PER_SEC + 1000);
	/* The other way round: the same offset, with the other sign. */
	timely_loop_offset(&peer, &own, peer.at_ns + 1025000, &offset);
	KUNIT_EXPECT_LE(test, abs(offset.offset_ns - 3600LL * NSEC_PER_SEC + 1000), 1);
}

static void offset__of_impossible_times(struct kunit *test)
{
	struct timely_loop_time own = { .at_ns = START_NS, .bound_ns = 20 }, peer = own;
	struct timely_loop_offset offset;

	timely_loop_offset(&own, &peer, START_NS, &offset);
	KUNIT_EXPECT_EQ(test, offset.bound_ns, 28);
	/* A bound of seconds says nothing, and its square could overflow. */
	peer.bound_ns = TIMELY_LOOP_UNKNOWN_NS / 2;
	timely_loop_offset(&own, &peer, START_NS, &offset);
	KUNIT_EXPECT_EQ(test, offset.bound_ns, TIMELY_LOOP_UNKNOWN_NS);
	peer.bound_ns = 20;
	peer.rate_q32 = TIMELY_STRIP_DRIFT_MAX_Q32 + 1;
	timely_loop_offset(&own, &peer, START_NS, &offset);
	KUNIT_EXPECT_EQ(test, offset.bound_ns, TIMELY_LOOP_UNKNOWN_NS);
	peer.rate_q32 = S64_MIN;
	timely_loop_offset(&own, &peer, START_NS, &offset);
	KUNIT_EXPECT_EQ(test, offset.bound_ns, TIMELY_LOOP_UNKNOWN_NS);
	peer.rate_q32 = 0;
	peer.at_ns -= 2000ULL * NSEC_PER_SEC;
	timely_loop_offset(&own, &peer, START_NS, &offset);
	KUNIT_EXPECT_EQ(test, offset.bound_ns, TIMELY_LOOP_UNKNOWN_NS);
}

/* ---- averaging ---- */

static void round__without_neighbours(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	struct timely_loop_time before = bed->loops[0].time;

	KUNIT_EXPECT_EQ(test, timely_loop_round(&bed->loops[0], bed->peers[0], 3, START_NS),
			TIMELY_LOOP_ALONE);
	KUNIT_EXPECT_EQ(test, bed->loops[0].time.correction_ns, before.correction_ns);
	bed->peers[0][0].fresh = true;
	bed->peers[0][0].time.rate_q32 = S64_MAX;
	KUNIT_EXPECT_EQ(test, timely_loop_round(&bed->loops[0], bed->peers[0], 3, START_NS),
			TIMELY_LOOP_ALONE);
	KUNIT_EXPECT_EQ(test, bed->loops[0].counts[TIMELY_LOOP_ALONE], 2);
}

static void round__is_least_squares(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 a, b, n = 0;

	rounds(bed, 2);
	for (a = 0; a < HOSTS; a++)
		KUNIT_EXPECT_FALSE(test, bed->loops[a].time.settled);
	rounds(bed, 98);
	for (a = 0; a < HOSTS; a++)
		for (b = a + 1; b < HOSTS; b++)
			bed->edges[n++] = (struct timely_loop_edge) {
				.a = a, .b = b,
				.offset_ns = bed->clock_ns[b] - bed->clock_ns[a] +
					     bed->error_ns[a][b],
			};
	KUNIT_ASSERT_EQ(test, timely_loop_least_squares(bed->edges, n, HOSTS, &bed->work,
							bed->offsets_ns), 0);
	for (a = 0; a < HOSTS; a++) {
		/* The offset of least squares cancels the difference of the corrections. */
		s64 apart_ns = bed->loops[a].time.correction_ns -
			       bed->loops[0].time.correction_ns + bed->offsets_ns[a];

		KUNIT_EXPECT_LE(test, abs(apart_ns), 3);
		KUNIT_EXPECT_TRUE(test, bed->loops[a].time.settled);
		/* Errors of up to 100 ns, with 11 neighbours. */
		KUNIT_EXPECT_GE(test, bed->loops[a].time.bound_ns, 60);
		KUNIT_EXPECT_LE(test, bed->loops[a].time.bound_ns, 200);
	}
	KUNIT_EXPECT_LE(test, worst_apart(bed, 0), 160);
}

/* Errors of up to @most_ns from now on. */
static void draw_errors(struct bed *bed, u32 most_ns)
{
	u32 a, b;

	for (a = 0; a < HOSTS; a++) {
		for (b = 0; b < a; b++) {
			bed->error_ns[a][b] = (s32)below(bed, 2 * most_ns + 1) - (s32)most_ns;
			bed->error_ns[b][a] = -bed->error_ns[a][b];
		}
	}
}

/* Errors of few nanoseconds: the bound is as large as they are, and does not stay larger. */
static void round__bound_of_small_errors(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 a;

	draw_errors(bed, 10);
	rounds(bed, 100);
	for (a = 0; a < HOSTS; a++) {
		KUNIT_EXPECT_GE(test, bed->loops[a].time.bound_ns, 8);
		KUNIT_EXPECT_LE(test, bed->loops[a].time.bound_ns, 20);
	}
	draw_errors(bed, 1);
	rounds(bed, 100);
	for (a = 0; a < HOSTS; a++) {
		KUNIT_EXPECT_GE(test, bed->loops[a].time.bound_ns, 2);
		KUNIT_EXPECT_LE(test, bed->loops[a].time.bound_ns, 4);
	}
}

static void round__host_joins(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	rounds(bed, 40);
	timely_loop_init(&bed->loops[5], bed->now_ns + bed->clock_ns[5], 77, 0);
	KUNIT_EXPECT_EQ(test, host_round(bed, 5), TIMELY_LOOP_JUMPED);
	KUNIT_EXPECT_LE(test, worst_apart(bed, 0), 200);
	KUNIT_EXPECT_TRUE(test, bed->loops[5].time.settled);
}

static void round__own_clock_is_stepped(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	rounds(bed, 40);
	bed->clock_ns[5] -= 3600LL * NSEC_PER_SEC;
	KUNIT_EXPECT_EQ(test, host_round(bed, 5), TIMELY_LOOP_JUMPED);
	KUNIT_EXPECT_LE(test, worst_apart(bed, 0), 200);
}

static void round__liar(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	s64 before;
	u32 a, i;

	rounds(bed, 40);
	before = worst_apart(bed, 1);
	for (i = 0; i < 40; i++) {
		for (a = 1; a < HOSTS; a++) {
			bed->error_ns[a][0] = (s32)below(bed, 2000000) - 1000000;
			bed->error_ns[0][a] = -bed->error_ns[a][0];
		}
		rounds(bed, 1);
		KUNIT_EXPECT_LE(test, worst_apart(bed, 1), before + before / 5);
	}
	for (a = 1; a < HOSTS; a++)
		for (i = 0; i < HOSTS - 1; i++)
			KUNIT_EXPECT_EQ(test, bed->peers[a][i].excluded, i == 0);
	/* Host 0 becomes honest again. */
	for (a = 1; a < HOSTS; a++) {
		bed->error_ns[a][0] = 0;
		bed->error_ns[0][a] = 0;
	}
	rounds(bed, 8);
	/* It does not count at once. */
	for (a = 1; a < HOSTS; a++)
		KUNIT_EXPECT_FALSE(test, bed->peers[a][0].agrees);
	rounds(bed, 20);
	for (a = 1; a < HOSTS; a++)
		KUNIT_EXPECT_FALSE(test, bed->peers[a][0].excluded);
	KUNIT_EXPECT_LE(test, worst_apart(bed, 0), 160);
}

static void round__asymmetric_path(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	s64 before;

	rounds(bed, 40);
	before = worst_apart(bed, 0);
	bed->error_ns[3][4] = 2500;
	bed->error_ns[4][3] = -2500;
	rounds(bed, 40);
	KUNIT_EXPECT_TRUE(test, bed->peers[3][3].excluded);
	KUNIT_EXPECT_TRUE(test, bed->peers[4][3].excluded);
	KUNIT_EXPECT_LE(test, worst_apart(bed, 0), before + before / 5);
}

/* Without other errors, 50 ns are far from the median, but no reason to exclude a neighbour. */
static void round__small_surplus(struct kunit *test)
{
	struct bed *bed = make_bed(test);

	memset(bed->error_ns, 0, sizeof(bed->error_ns));
	rounds(bed, 40);
	bed->error_ns[3][4] = 50;
	bed->error_ns[4][3] = -50;
	rounds(bed, 40);
	KUNIT_EXPECT_FALSE(test, bed->peers[3][3].agrees);
	KUNIT_EXPECT_FALSE(test, bed->peers[3][3].excluded);
	bed->error_ns[3][4] = 500;
	bed->error_ns[4][3] = -500;
	rounds(bed, 40);
	KUNIT_EXPECT_TRUE(test, bed->peers[3][3].excluded);
}

static void round__no_majority(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 a, i;

	rounds(bed, 40);
	/* Six of eleven neighbours are excluded. */
	for (i = 0; i < 6; i++) {
		bed->peers[0][i].credit_q16 = 0;
		bed->peers[0][i].excluded = true;
		a = neighbour(0, i);
		bed->error_ns[0][a] = 1000000;
		bed->error_ns[a][0] = -1000000;
	}
	KUNIT_EXPECT_EQ(test, host_round(bed, 0), TIMELY_LOOP_SPLIT);
}

/* Moves of less than 1 ns add up. */
static void round__parts_of_a_nanosecond(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	struct timely_loop *loop = &bed->loops[0];
	struct timely_loop_peer *peers = bed->peers[0];
	bool moved = false;
	u32 i;

	timely_loop_init(loop, START_NS, 0, 0);
	for (i = 0; i < 3; i++) {
		peers[i].fresh = true;
		peers[i].error_ns = 10;
		peers[i].offset_ns = i > 0;
		peers[i].time = (struct timely_loop_time) { .at_ns = START_NS };
	}
	for (i = 0; i < 20; i++) {
		timely_loop_round(loop, peers, 3, START_NS);
		moved |= loop->time.correction_ns == 1;
		KUNIT_EXPECT_LE(test, abs(loop->time.correction_ns), 1);
	}
	KUNIT_EXPECT_TRUE(test, moved);
}

/* Measure the drifts of host @a's neighbours, with errors of up to 5 ppb. */
static void measure_drifts(struct bed *bed, u32 a)
{
	u32 i;

	for (i = 0; i < HOSTS - 1; i++)
		bed->peers[a][i].drift_q32 =
			div_s64((4LL << 32) * ((s32)neighbour(a, i) - (s32)a),
				1000000 + 4 * ((s32)a - HOSTS / 2)) + (s32)below(bed, 41) - 20;
}

/* Rounds of hosts whose clocks differ by 4 ppm from host to host. */
static void drifting_rounds(struct bed *bed, u32 count)
{
	u32 a, b;

	for (; count; count--)
		for (a = 0; a < HOSTS; a++, bed->now_ns += 20000000) {
			measure_drifts(bed, a);
			host_round(bed, a);
			for (b = 0; b < HOSTS; b++)
				bed->clock_ns[b] += 80 * ((s32)b - HOSTS / 2);
		}
}

/* The common rate stays. It would move if rates were rounded down: by half a unit in each round. */
static void round__rate_stays(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	s64 rate_q32;

	drifting_rounds(bed, 200);
	rate_q32 = bed->loops[0].time.rate_q32;
	drifting_rounds(bed, 3000);
	/* 100 ppb */
	KUNIT_EXPECT_LE(test, abs(bed->loops[0].time.rate_q32 - rate_q32), 430);
}

static void round__fixed_host(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	s64 before = bed->loops[1].time.correction_ns;

	bed->loops[1].fixed = true;
	bed->loops[1].time.scale = 0;
	rounds(bed, 60);
	KUNIT_EXPECT_EQ(test, bed->loops[1].time.correction_ns, before);
	KUNIT_EXPECT_LE(test, worst_apart(bed, 0), 200);
}

/* ---- graphs ---- */

/* A complete graph without errors. */
static u32 graph(struct bed *bed)
{
	u32 a, b, n = 0;

	for (a = 0; a < HOSTS; a++)
		for (b = a + 1; b < HOSTS; b++, n++)
			bed->edges[n] = (struct timely_loop_edge) {
				.a = n & 1 ? a : b, .b = n & 1 ? b : a,
				.offset_ns = n & 1 ? bed->clock_ns[b] - bed->clock_ns[a] :
						     bed->clock_ns[a] - bed->clock_ns[b],
			};
	return n;
}

static void triangles__without_errors(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 n = graph(bed);

	KUNIT_ASSERT_EQ(test, timely_loop_triangles(bed->edges, n, &bed->work, &bed->surplus), 0);
	KUNIT_EXPECT_EQ(test, bed->surplus.loops, HOSTS * (HOSTS - 1) * (HOSTS - 2) / 6);
	KUNIT_EXPECT_EQ(test, bed->surplus.edges, n);
	KUNIT_EXPECT_EQ(test, bed->surplus.max_ns, 0);
	KUNIT_EXPECT_EQ(test, bed->surplus.excluded, 0);
	KUNIT_EXPECT_EQ(test, bed->edges[3].loops, HOSTS - 2);
}

static void triangles__asymmetric_path(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 n = graph(bed), i;

	bed->edges[17].offset_ns += 1000;
	timely_loop_triangles(bed->edges, n, &bed->work, &bed->surplus);
	KUNIT_EXPECT_EQ(test, bed->surplus.max_ns, 1000);
	KUNIT_EXPECT_EQ(test, bed->surplus.p50_ns, 0);
	KUNIT_EXPECT_EQ(test, bed->edges[17].surplus_ns, 1000);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, bed->edges[i].excluded, i == 17);
	KUNIT_ASSERT_EQ(test, timely_loop_least_squares(bed->edges, n, HOSTS, &bed->work,
							bed->offsets_ns), 0);
	KUNIT_EXPECT_EQ(test, bed->edges[17].residual_ns, 1000);
	KUNIT_EXPECT_EQ(test, bed->offsets_ns[5], bed->clock_ns[5] - bed->clock_ns[0]);
}

static void triangles__percentiles(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i;

	/* One triangle, with a surplus of every size. */
	for (i = 0; i < 60; i++) {
		bed->edges[0] = (struct timely_loop_edge) { .a = 0, .b = 1 };
		bed->edges[1] = (struct timely_loop_edge) { .a = 1, .b = 2 };
		bed->edges[2] = (struct timely_loop_edge) { .a = 0, .b = 2,
							    .offset_ns = (1LL << i) + i };
		timely_loop_triangles(bed->edges, 3, &bed->work, &bed->surplus);
		KUNIT_EXPECT_EQ(test, bed->surplus.loops, 1);
		KUNIT_EXPECT_EQ(test, bed->surplus.max_ns, (1LL << i) + i);
		KUNIT_EXPECT_LE(test, bed->surplus.p99_ns, bed->surplus.max_ns);
		KUNIT_EXPECT_GE(test, bed->surplus.p99_ns,
				bed->surplus.max_ns - bed->surplus.max_ns / 16);
	}
}

static void triangles__wrong_edges(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	struct timely_loop_edge *edge = bed->edges;

	edge[0] = (struct timely_loop_edge) { .a = 1, .b = 1 };
	KUNIT_EXPECT_EQ(test, timely_loop_triangles(edge, 1, &bed->work, &bed->surplus), -EINVAL);
	edge[0].b = TIMELY_LOOP_HOSTS_MAX;
	KUNIT_EXPECT_EQ(test, timely_loop_triangles(edge, 1, &bed->work, &bed->surplus), -EINVAL);
	edge[0].b = 2;
	edge[0].offset_ns = (1LL << 60) + 1;
	KUNIT_EXPECT_EQ(test, timely_loop_triangles(edge, 1, &bed->work, &bed->surplus), -EINVAL);
	edge[0].offset_ns = 0;
	KUNIT_EXPECT_EQ(test, timely_loop_triangles(edge, 1, &bed->work, &bed->surplus), 0);
	edge[1] = (struct timely_loop_edge) { .a = 2, .b = 1 };
	KUNIT_EXPECT_EQ(test, timely_loop_triangles(edge, 2, &bed->work, &bed->surplus), -EINVAL);
	KUNIT_EXPECT_EQ(test, timely_loop_triangles(edge, TIMELY_LOOP_EDGES_MAX + 1, &bed->work,
						    &bed->surplus), -EINVAL);
}

static void least_squares__spreads_a_surplus(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i;

	/* A ring of four hosts with a surplus of 40 ns: each edge gets a quarter. */
	for (i = 0; i < 4; i++)
		bed->edges[i] = (struct timely_loop_edge) { .a = i, .b = (i + 1) % 4 };
	bed->edges[0].offset_ns = 40;
	KUNIT_ASSERT_EQ(test, timely_loop_least_squares(bed->edges, 4, 4, &bed->work,
							bed->offsets_ns), 0);
	KUNIT_EXPECT_EQ(test, bed->offsets_ns[0], 0);
	KUNIT_EXPECT_EQ(test, bed->offsets_ns[1], 30);
	KUNIT_EXPECT_EQ(test, bed->offsets_ns[2], 20);
	KUNIT_EXPECT_EQ(test, bed->offsets_ns[3], 10);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, bed->edges[i].residual_ns, 10);
	/* A ring of three hosts with a surplus of 2 ns: 4/3 and 2/3 ns are rounded. */
	for (i = 0; i < 3; i++)
		bed->edges[i] = (struct timely_loop_edge) { .a = i, .b = (i + 1) % 3 };
	bed->edges[0].offset_ns = 2;
	KUNIT_ASSERT_EQ(test, timely_loop_least_squares(bed->edges, 3, 3, &bed->work,
							bed->offsets_ns), 0);
	KUNIT_EXPECT_EQ(test, bed->offsets_ns[1], 1);
	KUNIT_EXPECT_EQ(test, bed->offsets_ns[2], 1);
}

static void least_squares__longest_ring(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	u32 i;

	for (i = 0; i < TIMELY_LOOP_HOSTS_MAX; i++)
		bed->edges[i] = (struct timely_loop_edge) {
			.a = i, .b = (i + 1) % TIMELY_LOOP_HOSTS_MAX,
		};
	bed->edges[20].offset_ns = 64000;
	KUNIT_ASSERT_EQ(test, timely_loop_least_squares(bed->edges, TIMELY_LOOP_HOSTS_MAX,
							TIMELY_LOOP_HOSTS_MAX, &bed->work,
							bed->offsets_ns), 0);
	for (i = 0; i < TIMELY_LOOP_HOSTS_MAX; i++)
		KUNIT_EXPECT_LE(test, abs(bed->edges[i].residual_ns - 1000), 1);
}

static void least_squares__errors(struct kunit *test)
{
	struct bed *bed = make_bed(test);
	struct timely_loop_edge *edge = bed->edges;

	edge[0] = (struct timely_loop_edge) { .a = 0, .b = 1 };
	edge[1] = (struct timely_loop_edge) { .a = 1, .b = 2 };
	edge[2] = (struct timely_loop_edge) { .a = 0, .b = 2, .offset_ns = (1LL << 38) + 1 };
	KUNIT_EXPECT_EQ(test, timely_loop_least_squares(edge, 3, 3, &bed->work, bed->offsets_ns),
			-ERANGE);
	KUNIT_EXPECT_EQ(test, timely_loop_least_squares(edge, 2, 4, &bed->work, bed->offsets_ns),
			-ENOTCONN);
	edge[1].excluded = true;
	KUNIT_EXPECT_EQ(test, timely_loop_least_squares(edge, 2, 3, &bed->work, bed->offsets_ns),
			-ENOTCONN);
	KUNIT_EXPECT_EQ(test, timely_loop_least_squares(edge, 3, 2, &bed->work, bed->offsets_ns),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, timely_loop_least_squares(edge, 0, 0, &bed->work, bed->offsets_ns),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, timely_loop_least_squares(edge, 0, 1, &bed->work, bed->offsets_ns),
			0);
}

static struct kunit_case clock_loop_cases[] = {
	KUNIT_CASE(correction__follows_the_rate),
	KUNIT_CASE(offset__of_two_clocks),
	KUNIT_CASE(offset__of_impossible_times),
	KUNIT_CASE(round__without_neighbours),
	KUNIT_CASE(round__is_least_squares),
	KUNIT_CASE(round__bound_of_small_errors),
	KUNIT_CASE(round__host_joins),
	KUNIT_CASE(round__own_clock_is_stepped),
	KUNIT_CASE(round__liar),
	KUNIT_CASE(round__asymmetric_path),
	KUNIT_CASE(round__small_surplus),
	KUNIT_CASE(round__no_majority),
	KUNIT_CASE(round__parts_of_a_nanosecond),
	KUNIT_CASE(round__rate_stays),
	KUNIT_CASE(round__fixed_host),
	KUNIT_CASE(triangles__without_errors),
	KUNIT_CASE(triangles__asymmetric_path),
	KUNIT_CASE(triangles__percentiles),
	KUNIT_CASE(triangles__wrong_edges),
	KUNIT_CASE(least_squares__spreads_a_surplus),
	KUNIT_CASE(least_squares__longest_ring),
	KUNIT_CASE(least_squares__errors),
	{}
};

static struct kunit_suite clock_loop_suite = {
	.name = "timely_clock_loop",
	.test_cases = clock_loop_cases,
};

kunit_test_suite(clock_loop_suite);
