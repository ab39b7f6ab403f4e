// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suite of the common time of many hosts, then random networks with errors, sparse
 * graphs, asymmetric paths, clocks that drift, lost measurements and liars, and hostile published
 * times. Built with ASan and UBSan.
 *
 *   clock_loop_fuzz [ROUNDS [SEED]]
 *
 * Runs ROUNDS networks. Prints TAP. Built with -DTIMELY_LIBFUZZER, the random numbers are the
 * fuzzer's input.
 */
#include <math.h>

#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include <timely/engine/clock_loop.h>
#include <timely/engine/strip.h>

#define HOSTS_MAX	12
#define ROUND_NS	250000000LL
/* Errors are counted in blocks of this many readings. Not more than one of 100 may be outside of a
 * bound that 99.9 % do not exceed: readings of one network are not independent.
 */
#define BLOCK		20000

enum promise { LEAST, TRIANGLES, SAME, COVERED, LIAR, JOINED, LIMITS, PROMISES };

static const char * const promises[PROMISES] = {
	[LEAST] = "least squares: the residuals of each host add up to zero",
	[TRIANGLES] = "the largest surplus is that of a triangle",
	[SAME] = "averaging gives the result of least squares",
	[COVERED] = "the offsets of honest hosts are within their bounds",
	[LIAR] = "a liar or an asymmetric path is excluded, and nobody else",
	[JOINED] = "a host that joins is settled after one round",
	[LIMITS] = "rates, credibility and bounds are within their limits",
};

#define FUZZ_ROUND	"networks"
#include "fuzz.h"

static struct {
	u32 hosts;
	u32 error_ns;			/* largest error of an edge */
	bool edge[HOSTS_MAX][HOSTS_MAX];
	s64 error[HOSTS_MAX][HOSTS_MAX];	/* antisymmetric */
	s64 clock_ns[HOSTS_MAX];	/* clock minus true time, at true time 0 */
	double drift[HOSTS_MAX];
	struct timely_loop loops[HOSTS_MAX];
	struct timely_loop_peer peers[HOSTS_MAX][HOSTS_MAX];
	s64 now_ns;			/* true time */
	u32 lost;			/* percentage of measurements that are missing */
	s32 liar;			/* number of a host, or -1 */
} net;

static struct timely_loop_edge edges[HOSTS_MAX * HOSTS_MAX];
static struct timely_loop_work work;
static u64 readings, beyond;

static u64 any(void)
{
	return (roll() << 32 ^ roll()) >> below(64);
}

static s64 either(u32 most)
{
	return (s64)below(2 * most + 1) - most;
}

/* ---- the network ---- */

static u64 clock_now(u32 a)
{
	return (u64)(net.now_ns + net.clock_ns[a] + (s64)floor(net.drift[a] * net.now_ns));
}

/* A connected graph: each host has an edge to one before, and other edges with a probability. */
static void net_start(u32 least, u32 percent)
{
	u32 a, b;

	memset(&net, 0, sizeof(net));
	net.hosts = least + below(HOSTS_MAX + 1 - least);
	net.error_ns = 1 + below(1 << below(12));
	net.liar = -1;
	for (a = 0; a < net.hosts; a++) {
		net.clock_ns[a] = (s64)roll() << 12;
		net.drift[a] = either(100000) / 1e9;
		timely_loop_init(&net.loops[a], clock_now(a),
				 -net.clock_ns[a] + either(1000000), below(U32_MAX));
		for (b = 0; b < net.hosts; b++)
			timely_loop_peer_init(&net.peers[a][b]);
		for (b = 0; b < a; b++) {
			net.edge[a][b] = b + 1 == a || below(100) < percent;
			net.edge[b][a] = net.edge[a][b];
			net.error[a][b] = either(net.error_ns);
			net.error[b][a] = -net.error[a][b];
		}
	}
}

/* What host @a measures of host @b, the neighbour in @peer. */
static void measure(u32 a, u32 b, struct timely_loop_peer *peer)
{
	peer->fresh = below(100) >= net.lost;
	peer->offset_ns = (s64)(clock_now(b) - clock_now(a)) + net.error[a][b];
	peer->drift_q32 = (s64)(((1 + net.drift[b]) / (1 + net.drift[a]) - 1) * 4294967296.0);
	peer->error_ns = net.error_ns;
	peer->drift_error_ppb = 5;
	peer->wander_ppb_s = 5;
	peer->time = net.loops[b].time;
	if (net.liar == (s32)b) {
		peer->offset_ns += either(100000) * 10 * (s64)net.error_ns;
		peer->time.correction_ns += either(1000000);
	}
}

static void host_round(u32 a)
{
	struct timely_loop_peer peers[HOSTS_MAX];
	u32 b, n = 0;

	for (b = 0; b < net.hosts; b++)
		if (net.edge[a][b]) {
			measure(a, b, &net.peers[a][b]);
			peers[n++] = net.peers[a][b];
		}
	timely_loop_round(&net.loops[a], peers, n, clock_now(a));
	for (b = 0, n = 0; b < net.hosts; b++)
		if (net.edge[a][b])
			net.peers[a][b] = peers[n++];
	promise(LIMITS, abs(net.loops[a].time.rate_q32) <= TIMELY_STRIP_DRIFT_MAX_Q32 &&
		net.peers[a][0].credit_q16 <= TIMELY_LOOP_CREDIT_MAX);
}

static void rounds(u32 count)
{
	u32 a;

	for (; count; count--)
		for (a = 0; a < net.hosts; a++) {
			net.now_ns += ROUND_NS / net.hosts;
			host_round(a);
		}
}

/* The edges of the network, with measured offsets at this moment. */
static u32 graph(void)
{
	u32 a, b, n = 0;

	for (a = 0; a < net.hosts; a++)
		for (b = 0; b < a; b++)
			if (net.edge[a][b])
				edges[n++] = (struct timely_loop_edge) {
					.a = a, .b = b, .offset_ns = net.error[a][b] +
						(s64)(clock_now(b) - clock_now(a)),
				};
	return n;
}

/* Compare the offsets between honest hosts with the truth. */
static void read_all(void)
{
	struct timely_loop_offset offset;
	u32 a, b;

	for (a = 0; a < net.hosts; a++)
		for (b = 0; b < net.hosts; b++) {
			if (a == b || net.liar == (s32)a || net.liar == (s32)b)
				continue;
			timely_loop_offset(&net.loops[a].time, &net.loops[b].time, clock_now(a),
					   &offset);
			if (offset.bound_ns == TIMELY_LOOP_UNKNOWN_NS)
				continue;
			readings++;
			beyond += abs(offset.offset_ns - (s64)(clock_now(b) - clock_now(a))) >
				  offset.bound_ns + 2;
		}
	if (readings < BLOCK)
		return;
	promise(COVERED, beyond * 100 <= readings);
	readings = 0;
	beyond = 0;
}

/* ---- one kind of network each ---- */

/* A sparse or dense graph: triangles, least squares. */
static void graphs(void)
{
	s64 offsets[HOSTS_MAX], sums[HOSTS_MAX] = {}, worst = 0, sum;
	struct timely_loop_surplus surplus;
	u32 n, i, a, b, c;

	net_start(1, below(101));
	n = graph();
	for (a = 0; a < net.hosts; a++)
		for (b = 0; b < a; b++)
			for (c = 0; c < b; c++) {
				sum = net.error[a][b] + net.error[b][c] + net.error[c][a];
				if (net.edge[a][b] && net.edge[b][c] && net.edge[c][a])
					worst = max(worst, (s64)abs(sum));
			}
	promise(TRIANGLES, !timely_loop_triangles(edges, n, &work, &surplus) &&
		surplus.max_ns == worst && surplus.p99_ns <= worst);
	for (i = 0; i < n; i++)
		edges[i].excluded = false;
	if (timely_loop_least_squares(edges, n, net.hosts, &work, offsets)) {
		promise(LEAST, false);
		return;
	}
	for (i = 0; i < n; i++) {
		sums[edges[i].a] += edges[i].residual_ns;
		sums[edges[i].b] -= edges[i].residual_ns;
	}
	/* Each residual has the rounding errors of two offsets. */
	for (a = 0; a < net.hosts; a++)
		promise(LEAST, abs(sums[a]) <= (s64)net.hosts);
}

/* A complete graph of hosts whose errors agree. */
static void honest(void)
{
	s64 offsets[HOSTS_MAX], apart;
	u32 n, a, b, i;
	bool all = true;

	net_start(2, 100);
	net.lost = below(2) * below(20);
	rounds(60);
	/* A neighbour near the limit, which counts in some rounds only, changes the result. */
	for (i = 0; i < 20; i++) {
		rounds(1);
		read_all();
		for (a = 0; a < net.hosts; a++)
			for (b = 0; b < net.hosts; b++)
				all &= a == b || net.peers[a][b].agrees;
	}
	n = graph();
	if (all && !net.lost &&
	    !timely_loop_least_squares(edges, n, net.hosts, &work, offsets))
		for (a = 0; a < net.hosts; a++) {
			apart = (s64)((u64)timely_loop_correction_ns(&net.loops[a].time,
								     clock_now(a)) -
				      (u64)timely_loop_correction_ns(&net.loops[0].time,
								     clock_now(0)));
			/* Not all hosts have averaged since the last one has. */
			promise(SAME, abs(apart + offsets[a]) <= 5 + net.error_ns / 50);
		}
	timely_loop_init(&net.loops[0], clock_now(0), (s64)any(), 0);
	net.lost = 0;
	host_round(0);
	if (all)
		promise(JOINED, net.loops[0].time.settled);
}

/* A complete graph of at least eight hosts with a liar or an asymmetric path. */
static void dishonest(void)
{
	u32 a, b, asymmetric = below(2);
	bool right = true;

	net_start(8, 100);
	rounds(60);
	if (asymmetric) {
		net.error[0][1] = 1000 + 20 * (s64)net.error_ns;
		net.error[1][0] = -net.error[0][1];
	} else {
		net.liar = 0;
	}
	for (a = 0; a < 40; a++) {
		rounds(1);
		read_all();
	}
	for (a = 0; a < net.hosts; a++)
		for (b = 0; b < net.hosts; b++) {
			bool bad = asymmetric ? a + b == 1 : !b;

			if (a == b || (!asymmetric && !a))
				continue;
			/* Of honest neighbours, some with large errors may be excluded. */
			right &= bad ? net.peers[a][b].excluded :
				       !net.peers[a][b].excluded || net.error_ns > 8;
		}
	promise(LIAR, right);
}

/* Random published times and measurements. */
static void hostile(void)
{
	struct timely_loop_peer *peer;
	struct timely_loop_offset offset;
	u32 i, j;

	net_start(2, 100);
	for (i = 0; i < 50; i++) {
		for (j = 0; j < HOSTS_MAX; j++) {
			peer = &net.peers[0][j];
			peer->fresh = below(8);
			peer->offset_ns = (s64)any();
			peer->drift_q32 = (s64)(below(2) ? any() : any() & 0xfffff);
			peer->error_ns = any();
			peer->drift_error_ppb = any();
			peer->wander_ppb_s = any();
			peer->time = (struct timely_loop_time) {
				any(), any(), below(2) ? any() : any() & 0xfffff, any(), any(),
				any(), any(), below(2),
			};
		}
		timely_loop_round(&net.loops[0], net.peers[0], below(HOSTS_MAX + 1), any());
		timely_loop_offset(&net.loops[0].time, &net.peers[0][1].time, any(), &offset);
		timely_loop_bound_ns(&net.loops[0].time, any());
		for (j = 0; j < HOSTS_MAX; j++)
			promise(LIMITS, abs(net.loops[0].time.rate_q32) <=
				TIMELY_STRIP_DRIFT_MAX_Q32 &&
				net.peers[0][j].credit_q16 <= TIMELY_LOOP_CREDIT_MAX);
	}
	for (i = 0; i < 20; i++)
		edges[i] = (struct timely_loop_edge) {
			below(8), below(8), (s64)any(), .excluded = !below(4) };
	timely_loop_least_squares(edges, below(20), 8, &work, (s64 [HOSTS_MAX]) {});
}

static void fuzz_input(void)
{
	graphs();
	hostile();
}

static void fuzz_round(void)
{
	graphs();
	hostile();
	if (below(4))
		return;
	honest();
	dishonest();
}
