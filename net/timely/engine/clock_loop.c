// SPDX-License-Identifier: GPL-2.0
/*
 * Clock synchronisation of many hosts: the common time by distributed averaging, and least squares.
 *
 * Each host keeps a correction: the common time minus its own clock. It publishes this correction.
 * A neighbour's correction plus the measured offset of the neighbour's clock is what the neighbour
 * says about the own correction. The difference from the own correction is the surplus of the edge:
 * the sum of errors around all loops of which the edge is a part. In each round a host moves its
 * correction by three quarters of the mean surplus. Where all hosts have done this for some
 * rounds, the surpluses of each host add up to zero. This is the condition of least squares: the
 * solution is the same as that of a central solver, timely_loop_least_squares(). The error falls
 * with the square root of the number of neighbours.
 *
 * A neighbour whose surplus is far from the median of all neighbours, by more than six times the
 * median distance, is not used in the round. If this happens again and again with more than 100 ns,
 * its credibility falls and it is excluded: it lies, or its path is asymmetric. At least three
 * neighbours are needed for a majority. A host that lies to all neighbours alike cannot be told
 * from one whose clock is different, and does no harm.
 *
 * The bound of the common time follows from the mean square of the surpluses; with fewer than six
 * neighbours that agree also from the errors that the measurements state. It grows with the time
 * since the last round (Sundial, OSDI'20). The errors of two hosts with many neighbours are almost
 * independent, so the bound of the offset between two clocks is the root of the sum of the squares
 * of both bounds. With few neighbours they are not, and bounds are half as large again. The bound
 * does not cover hosts that are far apart in a sparse graph: with two neighbours each, errors add
 * up along the ring, which no host sees. Nor does it cover a drift of the own clock that changes
 * steadily: it bends the offsets from all neighbours alike, by 20 ns in a window of four seconds
 * if the drift changes by 20 ppb/s.
 *
 * Departures from the papers. Firefly averages with a constant gain and filters by RTT; here the
 * median decides which neighbours count. Huygens spreads the surplus of loops at a central place.
 */

#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "clock_loop.h"
#include "strip.h"

#define LOOP_PPB		1000000000LL
/* A surplus this many times the median distance from the median does not agree: four standard
 * deviations of a normal distribution.
 */
#define LOOP_FAR_TIMES		6
/* Surpluses closer together than this agree, ns: twice the resolution of slow NIC clocks. */
#define LOOP_GRAIN_NS		16
/* A neighbour with a smaller surplus than this is never excluded, ns: on a quiet network surpluses
 * are so close together that chance makes one look far away.
 */
#define LOOP_EXCLUDE_NS		100
/* Number of neighbours that can outvote a host. */
#define LOOP_MAJORITY		3
/* Largest surplus of which a mean is computed, ns; with larger ones the median counts. */
#define LOOP_MEAN_MAX_NS	(1LL << 40)
/* Largest distance of a surplus from the median in a mean, ns. */
#define LOOP_REST_MAX_NS	(1LL << 30)
/* Largest surplus in a mean square, ns; if the median, or its distance from others, is half of it,
 * the bound is not known.
 */
#define LOOP_SQUARE_MAX_NS	(1LL << 22)
/* A mean square moves by an eighth of the difference in each round. */
#define LOOP_MEAN_SHIFT		3
/* Credibility moves by an eighth. Limits for exclusion and return, in quarters. */
#define LOOP_CREDIT_SHIFT	3
#define LOOP_CREDIT_OUT		(TIMELY_LOOP_CREDIT_MAX / 4)
#define LOOP_CREDIT_IN		(3 * TIMELY_LOOP_CREDIT_MAX / 4)
/* Least weight of a neighbour, Q16. With smaller weights parts of a sparse graph would converge
 * slowly.
 */
#define LOOP_WEIGHT_MIN		((1U << 16) / 16)
/* The bound as a multiple of the standard deviation: with 7, 99.9 % of errors are less in
 * simulations (results/clock-sync).
 */
#define LOOP_BOUND_TIMES	7
/* Error of the correction by rounding, ns. */
#define LOOP_ROUNDING_NS	1
/* With fewer neighbours, or if more than one of eight does not agree, surpluses alone do not show
 * the error: the others may be close together by chance.
 */
#define LOOP_SURPLUSES		6
/* Age of the measured drift, s: half of a window, and the time of the last good one. */
#define LOOP_LAG_S		2
/* A host is settled after this many rounds in which it moved by little. */
#define LOOP_SETTLE_ROUNDS	8
#define LOOP_SETTLE_NS		64
#define LOOP_SETTLE_SHARE	16

/* Sweeps over the graph for least squares, and the change below which they end, ns Q16. A ring of
 * 64 hosts, the slowest graph, needs about 2500 sweeps.
 */
#define LOOP_SWEEPS		5000
#define LOOP_SWEEP_Q16		4
/* Largest surplus in least squares, ns. */
#define LOOP_RESIDUAL_MAX_NS	(1LL << 38)
/* The histogram of surpluses has this many bins per factor of 2. */
#define LOOP_BINS		16

/* ---- the common time ---- */

/**
 * timely_loop_correction_ns() - get the correction of a host's clock at a time
 * @time: what the host published
 * @clock_ns: time by the host's clock, ns; limited to 9 minutes before or after @time->at_ns
 *
 * Return: common time minus the host's clock, ns; wraps.
 */
s64 timely_loop_correction_ns(const struct timely_loop_time *time, u64 clock_ns)
{
	s64 since = clamp_t(s64, (s64)(clock_ns - time->at_ns), -TIMELY_STRIP_AGE_MAX_NS,
			    TIMELY_STRIP_AGE_MAX_NS);

	return (s64)((u64)time->correction_ns + (u64)((since * time->rate_q32) >> 32));
}

/**
 * timely_loop_bound_ns() - get the bound of the common time at a time
 * @time: what the host published
 * @clock_ns: time by the host's clock, ns
 *
 * Return: error of the common time that 99.9 % of readings do not exceed, ns;
 * TIMELY_LOOP_UNKNOWN_NS if it is not known, or was published more than 9 minutes ago.
 */
u32 timely_loop_bound_ns(const struct timely_loop_time *time, u64 clock_ns)
{
	return timely_strip_growth_ns(time->bound_ns, time->growth_ppb, time->wander_ppb_s,
				      (s64)(clock_ns - time->at_ns));
}

static bool rate_valid(s64 rate_q32)
{
	return rate_q32 >= -TIMELY_STRIP_DRIFT_MAX_Q32 && rate_q32 <= TIMELY_STRIP_DRIFT_MAX_Q32;
}

/* @ns divided by 1 + @rate_q32, for up to 9 minutes. */
static s64 without_rate(s64 ns, s64 rate_q32)
{
	s64 share_q32 = div64_s64(rate_q32 * (1LL << 32), (1LL << 32) + rate_q32);

	return ns - ((ns * share_q32) >> 32);
}

/**
 * timely_loop_offset() - compare a peer's clock with the own clock by the common time
 * @own: the own time
 * @peer: what the peer published
 * @now_ns: time by the own clock, ns
 * @offset: set to offset, drift and bound of the peer's clock
 *
 * The bound is not known if one of the two times is not known, more than 9 minutes old, or has an
 * impossible rate.
 */
void timely_loop_offset(const struct timely_loop_time *own, const struct timely_loop_time *peer,
			u64 now_ns, struct timely_loop_offset *offset)
{
	u64 common_ns = now_ns + (u64)timely_loop_correction_ns(own, now_ns), there_ns;
	s64 since = (s64)(common_ns - (u64)peer->correction_ns - peer->at_ns);
	u64 bound, peers;

	*offset = (struct timely_loop_offset) { .bound_ns = TIMELY_LOOP_UNKNOWN_NS };
	if (!rate_valid(own->rate_q32) || !rate_valid(peer->rate_q32) ||
	    since < -TIMELY_STRIP_AGE_MAX_NS || since > TIMELY_STRIP_AGE_MAX_NS)
		return;
	there_ns = peer->at_ns + (u64)without_rate(since, peer->rate_q32);
	offset->offset_ns = (s64)(there_ns - now_ns);
	offset->drift_q32 = without_rate(own->rate_q32 - peer->rate_q32, peer->rate_q32);
	bound = timely_loop_bound_ns(own, now_ns);
	peers = timely_loop_bound_ns(peer, there_ns);
	if (max(bound, peers) < TIMELY_LOOP_UNKNOWN_NS / 2)
		offset->bound_ns = int_sqrt64(bound * bound + peers * peers);
}

/* ---- averaging ---- */

/**
 * timely_loop_init() - initialise a host
 * @loop: the host
 * @now_ns: time by the own clock, ns
 * @correction_ns: a first guess of common time minus own clock, ns, for example from the system
 *	clock
 * @scale: a random number; of hosts that start together, the one with the lowest number gives the
 *	common time
 */
void timely_loop_init(struct timely_loop *loop, u64 now_ns, s64 correction_ns, u32 scale)
{
	memset(loop, 0, sizeof(*loop));
	loop->time.at_ns = now_ns;
	loop->time.correction_ns = correction_ns;
	loop->time.bound_ns = TIMELY_LOOP_UNKNOWN_NS;
	loop->time.scale = scale;
}

/**
 * timely_loop_peer_init() - initialise a neighbour
 * @peer: the neighbour
 */
void timely_loop_peer_init(struct timely_loop_peer *peer)
{
	memset(peer, 0, sizeof(*peer));
	peer->credit_q16 = TIMELY_LOOP_CREDIT_MAX / 2;
}

/* Compute a neighbour's surplus, ns. Return: false if the neighbour cannot be used. */
static bool peer_surplus(const struct timely_loop *loop, struct timely_loop_peer *peer, u64 now_ns)
{
	u64 surplus;

	peer->agrees = false;
	if (!peer->fresh || peer->error_ns == TIMELY_STRIP_UNKNOWN_NS ||
	    !rate_valid(peer->drift_q32) || !rate_valid(peer->time.rate_q32))
		return false;
	surplus = (u64)peer->offset_ns +
		  (u64)timely_loop_correction_ns(&peer->time, now_ns + (u64)peer->offset_ns) -
		  (u64)timely_loop_correction_ns(&loop->time, now_ns);
	peer->surplus_ns = clamp_t(s64, (s64)surplus, -(1LL << 60), 1LL << 60);
	return true;
}

/* The rate of the common time by a neighbour, minus the own rate, Q32. */
static s64 peer_rate(const struct timely_loop *loop, const struct timely_loop_peer *peer)
{
	s64 drift = peer->drift_q32, rate = peer->time.rate_q32;

	/* Without rounding, the common time would become slower by 2 ppm each hour. */
	return drift + rate + ((drift * rate + (1LL << 31)) >> 32) - loop->time.rate_q32;
}

static void sort(s64 *values, u32 count)
{
	u32 i, j;

	for (i = 1; i < count; i++) {
		s64 value = values[i];

		for (j = i; j && values[j - 1] > value; j--)
			values[j] = values[j - 1];
		values[j] = value;
	}
}

/* Median of values, which are sorted by this; between two values, their mean. */
static s64 median(s64 *values, u32 count)
{
	sort(values, count);
	return values[(count - 1) / 2] / 2 + values[count / 2] / 2 +
	       (values[(count - 1) / 2] % 2 + values[count / 2] % 2) / 2;
}

/**
 * struct loop_vote - what the neighbours say in a round
 * @settled: some neighbours are settled, and only these count
 * @scale: lowest number of a common time, of the own host and all neighbours
 * @count: number of neighbours that count
 * @credible: number of these that are not excluded
 * @used: number of these that agree
 * @median_ns: median of the surpluses of credible neighbours, ns
 * @mean_q16: mean of the surpluses of neighbours that agree, ns Q16
 * @rate_q32: mean of their rates minus the own rate, Q32
 * @square_q8: variance of @mean_q16 by the surpluses, ns^2, Q8
 * @rate_square_q8: variance of @rate_q32 by the rates minus the own rate, ppb^2, Q8
 * @weights: sum of the weights of the neighbours that agree, Q16
 * @error_ns: error of @mean_q16 by the errors that the measurements state, ns
 * @rate_error_ppb: least error of a drift that the measurements state, ppb
 * @wander_ppb_s: largest change of the drifts to be expected, ppb/s
 */
struct loop_vote {
	bool settled;
	u32 scale;
	u32 count;
	u32 credible;
	u32 used;
	s64 median_ns;
	s64 mean_q16;
	s64 rate_q32;
	u64 square_q8;
	u64 rate_square_q8;
	u64 weights;
	u64 error_ns;
	u64 rate_error_ppb;
	u32 wander_ppb_s;
};

/* Whether a neighbour that can be used counts. Settled ones count before others. If there is none,
 * those count that follow the same common time as the own host, or are about to.
 */
static bool peer_counts(const struct timely_loop_peer *peer, const struct loop_vote *vote)
{
	return peer->agrees && (vote->settled ? peer->time.settled :
						peer->time.scale == vote->scale);
}

/* Collect the surpluses, or with @from_median their distances from the median, of credible
 * neighbours that count. Return: their number.
 */
static u32 vote_values(const struct loop_vote *vote, const struct timely_loop_peer *peers,
		       u32 count, bool from_median, s64 *values)
{
	u32 i, n = 0;

	for (i = 0; i < count; i++) {
		if (!peer_counts(&peers[i], vote) || peers[i].excluded)
			continue;
		values[n++] = from_median ? abs(peers[i].surplus_ns - vote->median_ns) :
					    peers[i].surplus_ns;
	}
	return n;
}

/* Compute the surpluses, their median, and the median distance from the median. */
static void vote_median(struct timely_loop *loop, struct timely_loop_peer *peers, u32 count,
			u64 now_ns, struct loop_vote *vote)
{
	s64 values[TIMELY_LOOP_PEERS_MAX];
	u32 i;

	vote->scale = loop->time.scale;
	for (i = 0; i < count; i++) {
		peers[i].agrees = peer_surplus(loop, &peers[i], now_ns);
		if (!peers[i].agrees || peers[i].excluded)
			continue;
		vote->settled |= peers[i].time.settled;
		vote->scale = min(vote->scale, peers[i].time.scale);
	}
	for (i = 0; i < count; i++)
		vote->count += peer_counts(&peers[i], vote);
	vote->credible = vote_values(vote, peers, count, false, values);
	if (!vote->credible)
		return;
	vote->median_ns = median(values, vote->credible);
	vote_values(vote, peers, count, true, values);
	loop->spread_ns = min_t(u64, median(values, vote->credible), U32_MAX);
}

/* Move the credibility of a neighbour. */
static void peer_credit(struct timely_loop_peer *peer, bool agrees)
{
	if (agrees)
		peer->credit_q16 += (TIMELY_LOOP_CREDIT_MAX - peer->credit_q16) >>
				    LOOP_CREDIT_SHIFT;
	else
		peer->credit_q16 -= peer->credit_q16 >> LOOP_CREDIT_SHIFT;
	if (peer->credit_q16 < LOOP_CREDIT_OUT)
		peer->excluded = true;
	else if (peer->credit_q16 > LOOP_CREDIT_IN)
		peer->excluded = false;
}

/* Decide which neighbours agree. */
static void vote_agree(const struct timely_loop *loop, struct timely_loop_peer *peers, u32 count,
		       struct loop_vote *vote)
{
	s64 far_ns = LOOP_FAR_TIMES * (s64)loop->spread_ns + LOOP_GRAIN_NS;
	u32 i;

	/* A spread of U32_MAX means that hosts have not converged. */
	if (loop->spread_ns == U32_MAX)
		far_ns = S64_MAX;
	for (i = 0; i < count; i++) {
		s64 distance_ns = abs(peers[i].surplus_ns - vote->median_ns);
		bool near = distance_ns <= far_ns;

		if (!peer_counts(&peers[i], vote)) {
			peers[i].agrees = false;
			continue;
		}
		if (near || distance_ns > LOOP_EXCLUDE_NS)
			peer_credit(&peers[i], near);
		peers[i].agrees = near && !peers[i].excluded;
		vote->used += peers[i].agrees;
	}
}

static u64 square(s64 value, s64 most)
{
	value = clamp(value, -most, most);
	return (u64)(value * value);
}

/* Weight of a neighbour, Q16: the inverse of its error, relative to the least error. */
static u32 peer_weight(const struct timely_loop_peer *peer, u64 least_ns)
{
	u64 share_q16 = div64_u64(least_ns << 16, (u64)peer->error_ns + LOOP_GRAIN_NS);

	return max_t(u64, share_q16, LOOP_WEIGHT_MIN);
}

/* Add a neighbour that agrees to the sums. */
static void vote_add(const struct timely_loop *loop, const struct timely_loop_peer *peer,
		     u64 weight, struct loop_vote *vote)
{
	s64 rest = clamp_t(s64, peer->surplus_ns - vote->median_ns, -LOOP_REST_MAX_NS,
			   LOOP_REST_MAX_NS);
	s64 rate = peer_rate(loop, peer), ppb = timely_strip_drift_ppb(rate);

	vote->weights += weight;
	vote->mean_q16 += rest * (s64)weight;
	vote->rate_q32 += rate * (s64)weight;
	vote->square_q8 += mul_u64_u64_shr(square(peer->surplus_ns, LOOP_SQUARE_MAX_NS),
					   weight * weight, 24);
	vote->rate_square_q8 += mul_u64_u64_shr(square(ppb, LOOP_SQUARE_MAX_NS), weight * weight,
						24);
	vote->rate_error_ppb = min_t(u64, vote->rate_error_ppb, peer->drift_error_ppb);
	vote->wander_ppb_s = max(vote->wander_ppb_s, peer->wander_ppb_s);
}

/* The variance of a weighted mean, from the sum of the squares of values times weights. The own
 * correction follows the neighbours, which makes surpluses smaller than errors: in a complete graph
 * their variance is (n - 1) / (n + 1) times that of the errors; in other graphs it is larger. With
 * one neighbour there is no loop, and surpluses show nothing.
 */
static u64 mean_variance(u64 sum, const struct loop_vote *vote)
{
	u64 weights = vote->weights >> 8;

	if (vote->used < 2)
		return 0;
	/* The sum is at most 2^58, and the square of the weights at least 2^16. */
	return div_u64(div64_u64(sum << 5, weights * weights >> 11) * (vote->used + 1),
		       vote->used - 1);
}

/* Compute means of the neighbours that agree, weighted by the errors that they state. */
static void vote_mean(const struct timely_loop *loop, const struct timely_loop_peer *peers,
		      u32 count, struct loop_vote *vote)
{
	u64 least_ns = U32_MAX;
	u32 i;

	for (i = 0; i < count; i++)
		if (peers[i].agrees)
			least_ns = min_t(u64, least_ns, (u64)peers[i].error_ns + LOOP_GRAIN_NS);
	vote->rate_error_ppb = U32_MAX;
	for (i = 0; i < count; i++)
		if (peers[i].agrees)
			vote_add(loop, &peers[i], peer_weight(&peers[i], least_ns), vote);
	/* Sums of products with Q16 weights, divided by the Q16 sum of the weights. */
	vote->rate_q32 = div64_s64(vote->rate_q32, vote->weights);
	vote->mean_q16 = div64_s64(vote->mean_q16 * (1 << 10), vote->weights) * (1 << 6);
	if (abs(vote->median_ns) <= LOOP_MEAN_MAX_NS)
		vote->mean_q16 += vote->median_ns * (1 << 16);
	vote->square_q8 = mean_variance(vote->square_q8, vote);
	vote->rate_square_q8 = mean_variance(vote->rate_square_q8, vote);
	/* The error of each neighbour times its weight is the least error. */
	vote->error_ns = div64_u64((least_ns * int_sqrt64((u64)vote->used << 16)) << 8,
				   vote->weights);
}

/* Follow a mean square. While hosts converge it falls faster, by half. */
static void mean_square(u64 *mean, u64 value)
{
	u32 shift = value < *mean / 8 ? 1 : LOOP_MEAN_SHIFT;

	*mean = *mean ? *mean - (*mean >> shift) + (value >> shift) : value;
}

/* Whether a host moves by little, at most the error of its measurements or a share of their spread.
 * While hosts converge, their spread falls as fast as they move.
 */
static void loop_settle(struct timely_loop *loop, const struct loop_vote *vote)
{
	u64 little = max_t(u64, LOOP_SETTLE_NS + vote->error_ns,
			   loop->spread_ns / LOOP_SETTLE_SHARE);

	if (abs(vote->median_ns) > LOOP_MEAN_MAX_NS || abs(vote->mean_q16) >> 16 > little)
		loop->calm = 0;
	else if (loop->calm < LOOP_SETTLE_ROUNDS)
		loop->calm++;
	if (loop->calm == LOOP_SETTLE_ROUNDS)
		loop->time.settled = true;
}

/* The part of a difference by which averaging moves. With all of it, two hosts that average at the
 * same time would swap their values.
 */
static s64 part(s64 difference)
{
	return difference - difference / 4;
}

/* Move the correction and its rate to the mean of the neighbours, or a part of the way. */
static void loop_move(struct timely_loop *loop, const struct loop_vote *vote, u64 now_ns,
		      bool whole)
{
	struct timely_loop_time *time = &loop->time;
	s64 move_ns;

	if (abs(vote->median_ns) > LOOP_MEAN_MAX_NS) {
		move_ns = whole ? vote->median_ns : part(vote->median_ns);
	} else {
		loop->rest_q16 += whole ? vote->mean_q16 : part(vote->mean_q16);
		move_ns = loop->rest_q16 >> 16;
		loop->rest_q16 -= move_ns * (1 << 16);
	}
	time->correction_ns = (s64)((u64)timely_loop_correction_ns(time, now_ns) + (u64)move_ns);
	time->at_ns = now_ns;
	time->rate_q32 = clamp(time->rate_q32 + (whole ? vote->rate_q32 : part(vote->rate_q32)),
			       -TIMELY_STRIP_DRIFT_MAX_Q32, TIMELY_STRIP_DRIFT_MAX_Q32);
	time->scale = vote->scale;
}

/* Error that 99.9 % do not exceed. */
static u64 likely_error(u64 variance_q8)
{
	/* The root has four more bits. */
	return LOOP_BOUND_TIMES * int_sqrt64(variance_q8) >> 4;
}

/* Compute the bound after a round. */
static void loop_bound(struct timely_loop *loop, const struct loop_vote *vote)
{
	u64 bound, growth;

	mean_square(&loop->variance_q8, vote->square_q8);
	mean_square(&loop->rate_variance_q8, vote->rate_square_q8);
	bound = likely_error(loop->variance_q8);
	/* Surpluses do not show that the own drift has changed since it was measured. */
	growth = likely_error(loop->rate_variance_q8) +
		 (u64)LOOP_LAG_S * vote->wander_ppb_s;
	if (vote->used < LOOP_SURPLUSES || vote->used * 8 < vote->count * 7) {
		bound = max(bound, vote->error_ns);
		bound += bound / 2;
		/* One neighbour shows no scatter: the distance from it may be the error. */
		if (vote->used < 2)
			bound += min_t(u64, abs(vote->median_ns), TIMELY_LOOP_UNKNOWN_NS);
		growth = max(growth, vote->rate_error_ppb);
	}
	/* Two groups of hosts that are far apart come together. */
	if (max_t(u64, abs(vote->median_ns), loop->spread_ns) >= LOOP_SQUARE_MAX_NS / 2)
		bound = TIMELY_LOOP_UNKNOWN_NS;
	loop->time.bound_ns = loop->time.settled ? min_t(u64, bound + LOOP_ROUNDING_NS,
							 TIMELY_LOOP_UNKNOWN_NS) :
						   TIMELY_LOOP_UNKNOWN_NS;
	loop->time.growth_ppb = min_t(u64, growth, U32_MAX);
	loop->time.wander_ppb_s = vote->wander_ppb_s;
}

/* Whether a majority of neighbours agree on a correction far from the own one. The own error is
 * then larger than any that averaging has to remove: the host joins, or its clock was stepped.
 */
static bool loop_is_away(const struct timely_loop *loop, const struct loop_vote *vote)
{
	/* An unknown bound is as large as one can be. */
	s64 bound_ns = min_t(u64, loop->time.bound_ns, LOOP_BOUND_TIMES * LOOP_SQUARE_MAX_NS);
	s64 far_ns = LOOP_FAR_TIMES * (s64)loop->spread_ns + LOOP_GRAIN_NS;

	if (!loop->time.settled)
		return vote->settled || vote->scale < loop->time.scale;
	if (!vote->settled)
		return false;
	return vote->used >= LOOP_MAJORITY &&
	       abs(vote->median_ns) > far_ns + 2 * bound_ns;
}

static enum timely_loop_verdict loop_round(struct timely_loop *loop,
					   struct timely_loop_peer *peers, u32 count, u64 now_ns)
{
	struct loop_vote vote = {};
	bool away;

	vote_median(loop, peers, count, now_ns, &vote);
	if (!vote.credible)
		return TIMELY_LOOP_ALONE;
	vote_agree(loop, peers, count, &vote);
	loop->used = vote.used;
	if (!vote.used || vote.used * 2 < vote.count)
		return TIMELY_LOOP_SPLIT;
	vote_mean(loop, peers, count, &vote);
	away = loop_is_away(loop, &vote);
	if (loop->fixed) {
		loop->time.at_ns = now_ns;
		loop->time.settled = true;
	} else {
		loop_move(loop, &vote, now_ns, away);
		loop_settle(loop, &vote);
		loop->time.settled |= away && vote.settled;
	}
	/* After a jump the surpluses are those of the time before. */
	if (away && !loop->fixed) {
		vote.square_q8 = square(loop->spread_ns, LOOP_SQUARE_MAX_NS) << 8;
		vote.median_ns = 0;
	}
	loop_bound(loop, &vote);
	/* Nobody has confirmed the only neighbour that the host has jumped to. */
	if (away && !loop->fixed && vote.used < 2)
		loop->time.bound_ns = TIMELY_LOOP_UNKNOWN_NS;
	return away && !loop->fixed ? TIMELY_LOOP_JUMPED : TIMELY_LOOP_AVERAGED;
}

/**
 * timely_loop_round() - compare the own time with the neighbours', and correct it
 * @loop: the host; @loop->time is to be published afterwards
 * @peers: the neighbours; the fields marked "in" are set by the caller, the others by this function
 * @count: number of neighbours, at most TIMELY_LOOP_PEERS_MAX; further ones are not used
 * @now_ns: current time by the own clock, ns
 *
 * To be called about once a second, when the offsets have been measured again. Hosts need not do
 * this at the same time.
 *
 * Return: the verdict, which is also counted in @loop->counts.
 */
enum timely_loop_verdict timely_loop_round(struct timely_loop *loop,
					   struct timely_loop_peer *peers, u32 count, u64 now_ns)
{
	enum timely_loop_verdict verdict;

	loop->used = 0;
	verdict = loop_round(loop, peers, min_t(u32, count, TIMELY_LOOP_PEERS_MAX), now_ns);
	loop->counts[verdict]++;
	return verdict;
}

/* ---- graphs ---- */

/* Enter the edges into the matrix. Return: 0; -EINVAL if an edge is not valid or there twice. */
static int graph_build(const struct timely_loop_edge *edges, u32 count,
		       struct timely_loop_work *work)
{
	u32 i;

	memset(work, 0, sizeof(*work));
	if (count > TIMELY_LOOP_EDGES_MAX)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		u32 a = edges[i].a, b = edges[i].b;

		if (a >= TIMELY_LOOP_HOSTS_MAX || b >= TIMELY_LOOP_HOSTS_MAX || a == b ||
		    work->edge[a][b] || edges[i].offset_ns > 1LL << 60 ||
		    edges[i].offset_ns < -(1LL << 60))
			return -EINVAL;
		work->edge[a][b] = i + 1;
		work->edge[b][a] = i + 1;
	}
	return 0;
}

/* Offset from host @from to host @to, which have an edge. */
static s64 graph_offset(const struct timely_loop_edge *edges, const struct timely_loop_work *work,
			u32 from, u32 to)
{
	const struct timely_loop_edge *edge = &edges[work->edge[from][to] - 1];

	return edge->a == from ? edge->offset_ns : -edge->offset_ns;
}

/* The histogram of surpluses: 16 bins for each factor of 2. */
static u32 bin_of(u64 ns)
{
	u32 shift = ns < LOOP_BINS ? 0 : fls64(ns) - 5;

	return ns < LOOP_BINS ? ns : (shift << 4) + (u32)(ns >> shift);
}

/* The lowest surplus of a bin, ns. */
static u64 bin_ns(u32 bin)
{
	if (bin < 2 * LOOP_BINS)
		return bin;
	return (u64)(LOOP_BINS + bin % LOOP_BINS) << (bin / LOOP_BINS - 1);
}

/* The surplus that @percent of the surpluses in the histogram do not exceed. */
static u64 percentile(const struct timely_loop_work *work, u32 total, u32 percent)
{
	u32 bin = 0, rank = div_u64((u64)total * percent + 99, 100), seen = work->counts[0];

	while (seen < rank)
		seen += work->counts[++bin];
	return bin_ns(bin);
}

/* Compute the median surplus of an edge's triangles. Each triangle enters the histogram once, at
 * its edge between the two hosts with the lowest numbers.
 */
static void edge_triangles(struct timely_loop_edge *edge, const struct timely_loop_edge *edges,
			   struct timely_loop_work *work, struct timely_loop_surplus *surplus)
{
	s64 values[TIMELY_LOOP_HOSTS_MAX];
	u32 c, n = 0;

	for (c = 0; c < TIMELY_LOOP_HOSTS_MAX; c++) {
		if (!work->edge[edge->a][c] || !work->edge[edge->b][c])
			continue;
		values[n] = abs(edge->offset_ns + graph_offset(edges, work, edge->b, c) +
				graph_offset(edges, work, c, edge->a));
		if (c > max(edge->a, edge->b)) {
			work->counts[bin_of(values[n])]++;
			surplus->loops++;
			surplus->max_ns = max_t(u64, surplus->max_ns, values[n]);
		}
		n++;
	}
	edge->loops = n;
	edge->surplus_ns = n ? median(values, n) : 0;
}

/**
 * timely_loop_triangles() - compute the surpluses of all triangles of a graph
 * @edges: the edges, at most one for two hosts; fields marked "out" are set, except @residual_ns
 * @count: number of edges, at most TIMELY_LOOP_EDGES_MAX
 * @work: working memory
 * @surplus: set to the distribution of the surpluses
 *
 * An edge is excluded if the median surplus of its triangles is more than 6 times the median of the
 * other edges' medians, plus 16 ns. So of a host that lies to each neighbour differently, all edges
 * are excluded, and of an asymmetric path that edge alone. More than half of the edges must be
 * right.
 *
 * Return: 0; -EINVAL if an edge is not valid, or is there twice.
 */
int timely_loop_triangles(struct timely_loop_edge *edges, u32 count,
			  struct timely_loop_work *work, struct timely_loop_surplus *surplus)
{
	int error = graph_build(edges, count, work);
	u64 limit_ns;
	u32 i;

	memset(surplus, 0, sizeof(*surplus));
	if (error)
		return error;
	for (i = 0; i < count; i++) {
		edge_triangles(&edges[i], edges, work, surplus);
		surplus->edges += !!edges[i].loops;
		edges[i].excluded = false;
	}
	if (!surplus->edges)
		return 0;
	surplus->p50_ns = percentile(work, surplus->loops, 50);
	surplus->p99_ns = percentile(work, surplus->loops, 99);
	memset(work->counts, 0, sizeof(work->counts));
	for (i = 0; i < count; i++)
		if (edges[i].loops)
			work->counts[bin_of(edges[i].surplus_ns)]++;
	limit_ns = LOOP_FAR_TIMES * percentile(work, surplus->edges, 50) + LOOP_GRAIN_NS;
	for (i = 0; i < count; i++) {
		edges[i].excluded = edges[i].surplus_ns > limit_ns;
		surplus->excluded += edges[i].excluded;
	}
	return 0;
}

/* Set the offsets of all hosts that edges connect with @host, by one path each. @rest_q16 is 1 for
 * hosts whose offset is set. Return: the number of hosts.
 */
static u32 graph_spread(const struct timely_loop_edge *edges, u32 count,
			struct timely_loop_work *work, s64 *offsets_ns)
{
	u32 hosts = 1, before, i;

	offsets_ns[0] = 0;
	work->rest_q16[0] = 1;
	do {
		before = hosts;
		for (i = 0; i < count; i++) {
			u32 a = edges[i].a, b = edges[i].b;

			if (edges[i].excluded || work->rest_q16[a] == work->rest_q16[b])
				continue;
			if (work->rest_q16[a])
				offsets_ns[b] = (s64)((u64)offsets_ns[a] + (u64)edges[i].offset_ns);
			else
				offsets_ns[a] = (s64)((u64)offsets_ns[b] - (u64)edges[i].offset_ns);
			work->rest_q16[a] = 1;
			work->rest_q16[b] = 1;
			hosts++;
		}
	} while (hosts > before);
	memset(work->rest_q16, 0, sizeof(work->rest_q16));
	return hosts;
}

/* The measured offset of an edge minus that of the hosts, ns Q16. */
static s64 edge_residual_q16(const struct timely_loop_edge *edge,
			     const struct timely_loop_work *work)
{
	return edge->residual_ns * (1 << 16) - work->rest_q16[edge->b] + work->rest_q16[edge->a];
}

/* Move each host to the mean of its neighbours. Return: the largest move, ns Q16. */
static s64 graph_sweep(const struct timely_loop_edge *edges, u32 hosts,
		       struct timely_loop_work *work)
{
	s64 most = 0;
	u32 a, b;

	for (a = 1; a < hosts; a++) {
		s64 sum = 0;

		for (b = 0; b < hosts; b++) {
			const struct timely_loop_edge *edge = &edges[work->edge[a][b] - 1];

			if (!work->edge[a][b] || edge->excluded)
				continue;
			sum += edge->b == a ? edge_residual_q16(edge, work) :
					      -edge_residual_q16(edge, work);
		}
		sum = div_s64(sum, work->degree[a]);
		work->rest_q16[a] += sum;
		most = max(most, abs(sum));
	}
	return most;
}

/**
 * timely_loop_least_squares() - compute the offsets of all hosts that fit all edges best
 * @edges: the edges, at most one for two hosts; excluded ones are ignored; @residual_ns is set
 * @count: number of edges, at most TIMELY_LOOP_EDGES_MAX
 * @hosts: number of hosts, at most TIMELY_LOOP_HOSTS_MAX
 * @work: working memory
 * @offsets_ns: set to the offset of each host's clock from that of host 0, ns, rounded
 *
 * The sum of the squared residuals is least. All edges count alike.
 *
 * Return: 0; -EINVAL if an edge is not valid, or is there twice; -ENOTCONN if the edges that are
 * not excluded do not connect all hosts; -ERANGE if a surplus exceeds 2^38 ns.
 */
int timely_loop_least_squares(struct timely_loop_edge *edges, u32 count, u32 hosts,
			      struct timely_loop_work *work, s64 *offsets_ns)
{
	int error = graph_build(edges, count, work);
	u32 i, sweep;

	if (error || !hosts || hosts > TIMELY_LOOP_HOSTS_MAX)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		if (edges[i].a >= hosts || edges[i].b >= hosts)
			return -EINVAL;
		work->degree[edges[i].a] += !edges[i].excluded;
		work->degree[edges[i].b] += !edges[i].excluded;
	}
	if (graph_spread(edges, count, work, offsets_ns) < hosts)
		return -ENOTCONN;
	for (i = 0; i < count; i++) {
		edges[i].residual_ns = (s64)((u64)edges[i].offset_ns -
					     (u64)offsets_ns[edges[i].b] +
					     (u64)offsets_ns[edges[i].a]);
		if (!edges[i].excluded && abs(edges[i].residual_ns) > LOOP_RESIDUAL_MAX_NS)
			return -ERANGE;
	}
	for (sweep = 0; sweep < LOOP_SWEEPS; sweep++)
		if (graph_sweep(edges, hosts, work) < LOOP_SWEEP_Q16)
			break;
	for (i = 0; i < hosts; i++)
		offsets_ns[i] += (work->rest_q16[i] + (1 << 15)) >> 16;
	for (i = 0; i < count; i++)
		edges[i].residual_ns = (s64)((u64)edges[i].offset_ns -
					     (u64)offsets_ns[edges[i].b] +
					     (u64)offsets_ns[edges[i].a]);
	return 0;
}
