// SPDX-License-Identifier: GPL-2.0
/*
 * Maps the clock of a NIC to the host's clock.
 *
 * A NIC timestamps packets with its own clock, which has its own epoch and is slightly too fast or
 * too slow. Each packet gives a timestamp pair ("pair" for short): the hardware timestamp, and the
 * time at which the host handled the packet, which is never before the arrival. If the host's time
 * is plotted over the NIC's time, all pairs are above a straight line, and the lowest pairs are
 * close to that line, which is the mapping. (Section 5 of TIMELY, SIGCOMM'15, relates the clocks by
 * a linear mapping but does not say how to find the mapping.)
 *
 * A mapping passes through these states:
 *
 *  - Learning. The mapping is fitted to the lowest pairs of blocks of time (clock_fit.c), until its
 *    error is small. The mapping is sure then.
 *  - Sure. Each new block corrects the mapping. Two observations contradict the mapping and put it
 *    in doubt: a pair below it, which no delay can explain, and pairs that are all too high.
 *  - In doubt. If pairs are close to the mapping again, the mapping was right and is sure again.
 *    Otherwise a clock was stepped, and the pairs since the start of the doubt make a new mapping.
 *
 * Even the lowest pairs are handled with some minimum delay (min_handling_ns). Traffic alone cannot
 * distinguish this delay from the clock's offset. A cross-timestamp can: it is the host's time
 * before and after a reading of the NIC's clock.
 */

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "clock_fit.h"

/* Error of a drift that is not known, and the largest error of any drift, ppb: 0.1 %. */
#define CLOCK_UNKNOWN_PPB	1000000ULL
/* A batch is due after this many pairs or ns: while the mapping is sure, and in other states. */
#define CLOCK_SURE_BATCH	256
#define CLOCK_SURE_BATCH_NS	(2 * NSEC_PER_MSEC)
#define CLOCK_BATCH		64
#define CLOCK_BATCH_NS		(NSEC_PER_MSEC / 2)
/* If no pair arrives for this long, a mapping that has ceased to be sure is started again. */
#define CLOCK_PAUSE_NS		(200 * NSEC_PER_MSEC)

/* A mapping becomes sure when its error is at most CLOCK_SURE_NS, or CLOCK_LATE_SURE_NS once all
 * blocks of the track are in use. It must be fitted to at least CLOCK_SURE_POINTS blocks: fewer do
 * not show the density, which the error depends on. A mapping stops being sure when its error is
 * above CLOCK_UNSURE_NS.
 */
#define CLOCK_SURE_NS		500
#define CLOCK_SURE_POINTS	24
#define CLOCK_LATE_SURE_NS	1500
#define CLOCK_UNSURE_NS		2000
/* A pair below the mapping by more than twice the mapping's error plus this margin is not below the
 * mapping by chance.
 */
#define CLOCK_BELOW_NS		250
/* While a mapping is learned, a batch with a pair this far below the mapping is due. */
#define CLOCK_LEARNING_BELOW_NS	10000

/* The drift is compared with the drift of a second before, to measure how fast it changes. */
#define CLOCK_MARK_NS		NSEC_PER_SEC
/* Change of the drift per second, ppb/s: value before the first measurement, and limits. */
#define CLOCK_FIRST_WANDER_PPB_S	1000
#define CLOCK_MIN_WANDER_PPB_S	20ULL
#define CLOCK_MAX_WANDER_PPB_S	20000ULL
/* Largest change of the drift by a clock servo, such as that of ptp4l, between two fits. */
#define CLOCK_SERVO_PPB		2000
/* The drift may change between a fit and the next use of the drift. So its error is larger by
 * CLOCK_STEP_PPB after each fit, and grows by CLOCK_SLEEP_PPB after suspend, after a loss of the
 * link, and when a cross-timestamp shows a clock step.
 */
#define CLOCK_STEP_PPB		1000
#define CLOCK_SLEEP_PPB		10000

/* The spread (31 of 32 pairs are lower) is computed again after CLOCK_SPREAD_PAIRS pairs. A packet
 * handled more than 5/4 of the spread plus CLOCK_GATE_NS after its timestamp is doubtful.
 */
#define CLOCK_SPREAD_PAIRS	32
#define CLOCK_MIN_SPREAD_NS	512
#define CLOCK_GATE_NS		1000

/* Test whether pairs are too high: each test divides the height of the lowest of 64 pairs by the
 * expected height, and adds the quotient minus 2 (the leak) to a sum. If the sum exceeds 16, the
 * mapping is in doubt: once in 300,000 tests if heights are distributed exponentially and no clock
 * was stepped. A single pair counts at most 4, because any single packet may be late.
 */
#define CLOCK_EVIDENCE		16
#define CLOCK_EVIDENCE_LEAK	2
#define CLOCK_EVIDENCE_PAIR	4
/* If no pair has been close to the mapping for this long, a clock was stepped: no host is late for
 * so long.
 */
#define CLOCK_DOUBT_NS		(40 * NSEC_PER_MSEC)

/* Clocks are not stepped several times within seconds. If doubts have ended with another mapping
 * CLOCK_WRONGS times, each within CLOCK_WRONG_NS of the one before, then the minimum handling delay
 * changes: for example, with interrupt moderation a packet alone waits longer than each packet of a
 * burst does. Without a cross-timestamp, no mapping is right for both.
 */
#define CLOCK_WRONGS		3
#define CLOCK_WRONG_NS		(2 * NSEC_PER_SEC)

/* A cross-timestamp whose interval is longer than CLOCK_MAX_CROSS_NS is not used. If it shows a
 * minimum handling delay above CLOCK_MAX_HANDLING_NS, a clock was stepped. A mapping is made from a
 * cross-timestamp of at most CLOCK_ANCHOR_NS if the drift's error is at most CLOCK_ANCHOR_PPB.
 */
#define CLOCK_MAX_CROSS_NS	100000
#define CLOCK_MAX_HANDLING_NS	100000
#define CLOCK_ANCHOR_NS		3000
#define CLOCK_ANCHOR_PPB	60000
/* Two cross-timestamps give the drift if the time between them is within these limits. The older
 * cross-timestamp is kept for at least CLOCK_MARK_NS, and then replaced by the next one.
 */
#define CLOCK_CROSS_MIN_NS	(10 * NSEC_PER_MSEC)
#define CLOCK_CROSS_MAX_NS	(4ULL * NSEC_PER_SEC)

/* ---- the mapping ---- */

/* Error of the mapping at @now_ns, not exceeded with 99 % probability, ns. */
static u32 map_uncertainty_ns(const struct timely_clock_map *map, u64 now_ns)
{
	s64 age_ns = (s64)(now_ns - map->host_ns);

	return map->uncertainty_ns +
	       (u32)div_u64((u64)max(age_ns, 0LL) * map->growth_ppb, CLOCK_PPB);
}

/* Estimate how fast the drift changes: the difference between the drift of @fit and the recorded
 * drift (the mark), minus the errors of both. One call lowers the estimate by at most a quarter.
 */
static void clock_wander(struct timely_clock *clock, const struct timely_clock_fit *fit)
{
	u64 middle_ns = clock->map.host_ns - fit->stretch_ns / 2;
	u64 ns = middle_ns - clock->mark_ns, error = fit->slope_ppb + clock->mark_error_ppb;
	s64 drift = clock->map.drift_q32, change;
	u64 wander = 0;

	if (ns < fit->stretch_ns || ns < CLOCK_MARK_NS)
		return;
	change = abs(drift - clock->mark_drift_q32);
	change = (change * CLOCK_PPB) >> 32;
	if (ns < 2 * CLOCK_MAX_X_NS && change > error)
		wander = div64_u64((change - error) * CLOCK_PPB, ns);
	wander = max(wander, clock->wander_ppb_s - clock->wander_ppb_s / 4);
	clock->wander_ppb_s = clamp(wander, CLOCK_MIN_WANDER_PPB_S, CLOCK_MAX_WANDER_PPB_S);
	clock->mark_ns = middle_ns;
	clock->mark_drift_q32 = drift;
	clock->mark_error_ppb = fit->slope_ppb;
}

/* Correct the spread of the mapping, so that 31 of 32 pairs are lower than the spread. CPUs count
 * pairs above the published spread, so the spread may change only when the mapping is published.
 */
static void clock_spread(struct timely_clock *clock)
{
	struct timely_clock_map *map = &clock->map;
	s64 spread = map->spread_ns, above = clock->spread_above;
	u32 pairs = clock->spread_pairs;

	if (pairs >= CLOCK_SPREAD_PAIRS) {
		spread += div_s64(spread * (above * 32 - pairs), 32 * pairs);
		map->spread_ns = clamp_t(s64, spread, CLOCK_MIN_SPREAD_NS, CLOCK_MAX_Y_NS);
		clock->spread_pairs = 0;
		clock->spread_above = 0;
	}
	map->gate_ns = map->spread_ns + map->spread_ns / 4 + CLOCK_GATE_NS;
}

/* Make the mapping unsure: batches are due sooner, and no pair can put the mapping in doubt. */
static void map_unsure(struct timely_clock_map *map)
{
	map->state = TIMELY_CLOCK_LEARNING;
	map->below_ns = CLOCK_LEARNING_BELOW_NS;
	map->high_ns = U32_MAX;
	map->batch_pairs = CLOCK_BATCH;
	map->batch_ns = CLOCK_BATCH_NS;
}

/* Set the error of the mapping (@error_ns at the reference point, @slope_ppb of the drift), and
 * decide whether the mapping is sure, until when, and which pairs contradict the mapping. A batch
 * of TIMELY_CLOCK_HIGH_PAIRS pairs above high_ns is evidence enough for doubt, so it is due.
 */
static void map_error(struct timely_clock *clock, u64 error_ns, u64 slope_ppb)
{
	struct timely_clock_map *map = &clock->map;
	u64 density = max_t(u64, clock->density, CLOCK_MIN_DENSITY), high;
	u32 limit = CLOCK_SURE_NS;

	if (map->state == TIMELY_CLOCK_SURE)
		limit = CLOCK_UNSURE_NS;
	else if (timely_clock_track(clock)->count == TIMELY_CLOCK_BLOCKS)
		limit = CLOCK_LATE_SURE_NS;
	else if (timely_clock_track(clock)->count < CLOCK_SURE_POINTS)
		limit = 0;
	slope_ppb = min(slope_ppb + CLOCK_SERVO_PPB, CLOCK_UNKNOWN_PPB);
	map->uncertainty_ns = min_t(u64, error_ns, CLOCK_MAX_Y_NS);
	map->growth_ppb = slope_ppb;
	if (error_ns > limit) {
		map_unsure(map);
		return;
	}
	map->state = TIMELY_CLOCK_SURE;
	clock->stepped = false;
	map->sure_ns = div64_u64((CLOCK_UNSURE_NS - error_ns) * CLOCK_PPB, slope_ppb) + 1;
	map->below_ns = 2 * error_ns + CLOCK_BELOW_NS +
			 div_u64(2 * CLOCK_BLOCK_NS * slope_ppb, CLOCK_PPB);
	high = div_u64((CLOCK_EVIDENCE + CLOCK_EVIDENCE_LEAK + 1) * density,
		       TIMELY_CLOCK_HIGH_PAIRS);
	map->high_ns = min_t(u64, high + error_ns + clock->min_handling_ns, U32_MAX);
	map->batch_pairs = CLOCK_SURE_BATCH;
	map->batch_ns = CLOCK_SURE_BATCH_NS;
}

/* If the mapping is from a cross-timestamp, compute the minimum handling delay: the height of @fit
 * above the mapping. Return: false if @fit has a larger error than the mapping from the
 * cross-timestamp, which then stays.
 */
static bool clock_floor(struct timely_clock *clock, const struct timely_clock_fit *fit, u64 now_ns)
{
	if (!clock->anchored)
		return true;
	if (fit->error_ns > timely_clock_uncertainty_ns(&clock->map, now_ns))
		return false;
	clock->min_handling_ns = clamp(fit->at_ns, 0LL, CLOCK_MAX_HANDLING_NS);
	clock->anchored = false;
	return true;
}

/* Fit the mapping to its track, which has at least one block. Return: true if the mapping has
 * changed.
 */
static bool clock_fit(struct timely_clock *clock)
{
	const struct timely_clock_track *track = timely_clock_track(clock);
	const struct timely_clock_block *newest = &track->blocks[track->count - 1];
	struct timely_clock_map *map = &clock->map;
	s64 height = timely_clock_height(clock, newest);
	struct timely_clock_fit fit;

	clock->blocks++;
	if (height == TIMELY_CLOCK_NOWHERE || !timely_clock_fit_map(clock, &fit))
		return false;
	clock->density = fit.density;
	if (!clock_floor(clock, &fit, newest->host_ns))
		return false;
	map->nic_ns = newest->nic_ns;
	map->host_ns = newest->host_ns - height + fit.at_ns - clock->min_handling_ns;
	map->drift_q32 = clamp(map->drift_q32 + fit.slope_q32, -CLOCK_MAX_DRIFT_Q32,
			       CLOCK_MAX_DRIFT_Q32);
	clock->drift_error_ppb = min(fit.slope_ppb + CLOCK_STEP_PPB, CLOCK_UNKNOWN_PPB);
	if ((s64)(map->host_ns - clock->wrong_ns) > (s64)CLOCK_WRONG_NS)
		map->unreliable = false;
	clock_wander(clock, &fit);
	map_error(clock, fit.error_ns,
		  fit.slope_ppb + timely_clock_bend_ppb(clock, fit.stretch_ns));
	clock_spread(clock);
	return true;
}

/* Start the mapping again from the reference point @nic_ns and @host_ns. The drift is kept, and its
 * error grows by @error_ppb.
 */
static void clock_begin(struct timely_clock *clock, u64 nic_ns, u64 host_ns, u64 error_ppb)
{
	struct timely_clock_map *map = &clock->map;

	map->nic_ns = nic_ns;
	map->host_ns = host_ns;
	map->uncertainty_ns = CLOCK_MAX_Y_NS;
	map->epoch++;
	map_unsure(map);
	clock->drift_error_ppb = min(clock->drift_error_ppb + error_ppb, CLOCK_UNKNOWN_PPB);
	clock->anchored = false;
	clock->evidence = 0;
	clock->run_pairs = 0;
	clock->spread_pairs = 0;
	clock->spread_above = 0;
	clock->restarts++;
}

/* Start the mapping again from a pair, for example the first pair, or the first pair after a long
 * time without pairs.
 */
static void clock_restart(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	u64 idle_ns = sample->host_ns - clock->map.host_ns;

	if (clock->map.state == TIMELY_CLOCK_NONE)
		idle_ns = 0;
	/* Temperature changes the drift by up to 1 ppm per second. */
	clock_begin(clock, sample->nic_ns, sample->host_ns, div_u64(idle_ns, 1000000));
	timely_clock_track(clock)->count = 0;
	timely_clock_track_add(clock, timely_clock_track(clock), sample);
}

/* ---- doubt ---- */

/* Whether the lowest pairs of recent tests are too high for a right mapping (see CLOCK_EVIDENCE). A
 * test ends after CLOCK_TEST_PAIRS pairs.
 */
static bool clock_too_high(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	s64 height = sample->height_ns - clock->min_handling_ns - clock->map.uncertainty_ns;
	s64 density = max_t(s64, clock->density, CLOCK_MIN_DENSITY);
	s64 evidence;

	/* If the mapping is from a cross-timestamp and the minimum handling delay is not known yet,
	 * only a pair above gate_ns is too high.
	 */
	if (clock->anchored)
		return sample->height_ns > (s64)clock->map.gate_ns;
	height = clamp(height, 0LL, CLOCK_EVIDENCE_PAIR * density);
	if (!clock->run_pairs || height < clock->run_min_ns)
		clock->run_min_ns = height;
	clock->run_pairs += sample->pairs;
	evidence = clock->evidence + clock->run_min_ns * clock->run_pairs -
		   CLOCK_EVIDENCE_LEAK * density;
	if (clock->run_pairs >= CLOCK_TEST_PAIRS) {
		clock->evidence = max(evidence, 0LL);
		clock->run_pairs = 0;
	}
	return evidence > CLOCK_EVIDENCE * density;
}

/* Put a sure mapping in doubt. @below is 1 if a pair is below the mapping, 0 if all pairs are too
 * high.
 */
static void clock_doubt(struct timely_clock *clock, const struct timely_clock_sample *sample,
			u32 below)
{
	struct timely_clock_map *map = &clock->map;

	map->state = TIMELY_CLOCK_DOUBT;
	map->batch_pairs = CLOCK_BATCH;
	map->batch_ns = CLOCK_BATCH_NS;
	clock->doubted_ns = sample->now_ns;
	clock->doubt_pairs = 0;
	clock->below = below;
	clock->near = 0;
	clock->scatter = 0;
	clock->scatters = 0;
	/* Some pairs of this batch may be from before a clock step, so the batch is not used. */
	clock->run_pairs = 0;
	clock->evidence = CLOCK_MAX_Y_NS;
	timely_clock_trial(clock)->count = 0;
}

/* Whether the doubt can end: a pair is as close to the mapping as the lowest of 64 pairs should be,
 * or pairs scatter so widely that the lowest since the doubt started does not contradict the
 * mapping.
 */
static bool doubt_near(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	s64 height = clamp(sample->height_ns, -CLOCK_MAX_Y_NS, CLOCK_MAX_Y_NS);
	s64 floor = (s64)clock->min_handling_ns + clock->map.uncertainty_ns;
	u64 density;

	if (clock->run_pairs) {
		clock->scatter += timely_clock_scatter(height, sample->pairs, clock->run_min_ns,
						clock->run_pairs);
		clock->scatters++;
	}
	clock->run_min_ns = height;
	clock->run_pairs = sample->pairs;
	clock->evidence = min(clock->evidence, height);
	density = max(clock->density, CLOCK_MIN_DENSITY);
	if (height - floor <= (s64)(density / CLOCK_TEST_PAIRS))
		return true;
	if (clock->scatters < 4 || clock->below)
		return false;
	density = div_u64(clock->scatter, clock->scatters);
	if (clock->evidence - floor > (s64)div_u64(2 * density, clock->doubt_pairs))
		return false;
	clock->density = density;
	return true;
}

/* End the doubt: the mapping is right and is sure again. */
static void clock_trust(struct timely_clock *clock)
{
	struct timely_clock_map *map = &clock->map;

	map->state = TIMELY_CLOCK_SURE;
	map->batch_pairs = CLOCK_SURE_BATCH;
	map->batch_ns = CLOCK_SURE_BATCH_NS;
	clock->evidence = 0;
	clock->run_pairs = 0;
	clock->doubts++;
	/* The host has handled the packets that caused the doubt late, and may go on to do so. */
	clock_spread(clock);
}

/* A doubt ends with another mapping, because the present one is wrong. */
static void clock_wrong(struct timely_clock *clock, u64 now_ns)
{
	if (now_ns - clock->wrong_ns > CLOCK_WRONG_NS)
		clock->wrongs = 0;
	clock->wrong_ns = now_ns;
	clock->wrongs = min(clock->wrongs + 1, CLOCK_WRONGS);
	clock->map.unreliable = clock->wrongs == CLOCK_WRONGS;
}

/* A clock was stepped: replace the mapping by a mapping from the pairs since the doubt started. The
 * drift counts as unknown, because perhaps the drift has changed and no clock was stepped.
 */
static void clock_step(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	clock_wrong(clock, sample->now_ns);
	clock->steps++;
	clock->stepped = true;
	clock->cross_width_ns = 0;
	clock->track = !clock->track;
	clock_begin(clock, sample->nic_ns, sample->host_ns, CLOCK_UNKNOWN_PPB);
	timely_clock_track_add(clock, timely_clock_track(clock), sample);
	clock_fit(clock);
}

/* Some batches are close to the mapping and others have a pair below it, so the mapping is too
 * high. Move the mapping down to the lowest pair of this batch, and learn its error again.
 */
static void clock_lower(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	clock_wrong(clock, sample->now_ns);
	clock->doubts++;
	clock->evidence = 0;
	clock->run_pairs = 0;
	map_unsure(&clock->map);
	timely_clock_track_add(clock, timely_clock_track(clock), sample);
	clock->map.host_ns += sample->height_ns;
	clock_fit(clock);
}

/* ---- a batch, in each state ---- */

/* Whether a mapping that is not sure any more, because sure_ns has passed, must be started again:
 * no pair arrived for CLOCK_PAUSE_NS, or the mapping is in doubt. If pairs did arrive, the mapping
 * was sure for a short time only, because its error is large: it is kept, and learned again.
 */
static bool clock_expired(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	const struct timely_clock_track *track = timely_clock_track(clock);
	struct timely_clock_map *map = &clock->map;

	if (map->state == TIMELY_CLOCK_LEARNING ||
	    (s64)(sample->host_ns - map->host_ns) <= (s64)map->sure_ns)
		return false;
	if (map->state == TIMELY_CLOCK_DOUBT || !track->count ||
	    sample->host_ns - track->blocks[track->count - 1].host_ns > CLOCK_PAUSE_NS)
		return true;
	map_unsure(map);
	return false;
}

/* Process a batch while the mapping is learned: fit the mapping to its track. If there is no new
 * fit, a pair below the mapping moves the mapping down to the pair. Return: true if the mapping has
 * changed.
 */
static bool take_learning(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	if (abs(sample->height_ns) > CLOCK_MAX_Y_NS ||
	    timely_clock_track_late(timely_clock_track(clock), sample->nic_ns)) {
		clock_restart(clock, sample);
		return true;
	}
	if (timely_clock_track_add(clock, timely_clock_track(clock), sample) && clock_fit(clock))
		return true;
	if (sample->height_ns >= 0)
		return false;
	clock->map.host_ns += sample->height_ns;
	return true;
}

/* Detect that the host handles packets faster than before: a pair is lower than the measured
 * minimum handling delay. The mapping is right, and the minimum handling delay is measured again.
 */
static void take_faster_host(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	if (sample->height_ns >= (s64)clock->min_handling_ns - (s64)clock->map.below_ns)
		return;
	clock->min_handling_ns = max(sample->height_ns, 0LL);
	clock->anchored = true;
	timely_clock_track(clock)->count = 0;
}

/* Process a batch while the mapping is sure: put the mapping in doubt if the batch contradicts the
 * mapping, or else fit the mapping again. If a mapping from a cross-timestamp stays, only its
 * spread is corrected. Return: true if the mapping has changed.
 */
static bool take_sure(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	bool below = sample->height_ns < -(s64)clock->map.below_ns;

	if (below || clock_too_high(clock, sample)) {
		clock_doubt(clock, sample, below);
		return true;
	}
	if (clock->min_handling_ns)
		take_faster_host(clock, sample);
	if (!timely_clock_track_add(clock, timely_clock_track(clock), sample))
		return false;
	if (!clock_fit(clock))
		clock_spread(clock);
	return true;
}

/* A second batch has a pair below the mapping, so the doubt was not caused by a single wrong
 * timestamp. If other batches were close to the mapping, the mapping is slightly too high, because
 * the host handles only few packets without delay. Otherwise a clock was stepped.
 */
static void doubt_below(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	if (clock->near && sample->height_ns > -CLOCK_MAX_Y_NS)
		clock_lower(clock, sample);
	else
		clock_step(clock, sample);
}

/* Process a batch while the mapping is in doubt. The doubt ends when a second batch has a pair
 * below the mapping (doubt_below()), when pairs are close to the mapping (clock_trust()), or after
 * CLOCK_DOUBT_NS (clock_step()). Return: true if the mapping has changed.
 */
static bool take_doubt(struct timely_clock *clock, const struct timely_clock_sample *sample)
{
	bool below = sample->height_ns < -(s64)clock->map.below_ns;

	/* Another CPU collected this batch before the doubt started. */
	if (clock->doubted_ns - sample->host_ns < CLOCK_LATE_NS)
		return false;
	if (timely_clock_track_late(timely_clock_trial(clock), sample->nic_ns))
		timely_clock_trial(clock)->count = 0;
	clock->doubt_pairs = below ? 0 : min(clock->doubt_pairs + sample->pairs, CLOCK_MAX_PAIRS);
	if (below && clock->below++) {
		doubt_below(clock, sample);
		return true;
	}
	if (!below && doubt_near(clock, sample))
		clock->near++;
	if (clock->near && (!clock->below || clock->doubt_pairs >= CLOCK_TEST_PAIRS)) {
		clock_trust(clock);
		return true;
	}
	timely_clock_track_add(clock, timely_clock_trial(clock), sample);
	if (sample->now_ns - timely_clock_trial(clock)->blocks[0].opened_ns < CLOCK_DOUBT_NS ||
	    clock->doubt_pairs < CLOCK_TEST_PAIRS)
		return false;
	clock_step(clock, sample);
	return true;
}

/* ---- cross-timestamps ---- */

/* Compute the drift from the kept cross-timestamp and a new one: @nic_ns is the new reading of the
 * NIC's clock, @host_ns the middle of the interval by the host's clock, @width_ns the length of the
 * interval. Return: error of @drift_q32 in ppb, or 0 if the drift cannot be computed.
 */
static u64 cross_drift(const struct timely_clock *clock, u64 nic_ns, u64 host_ns,
		       u64 width_ns, s64 *drift_q32)
{
	s64 nic = (s64)(nic_ns - clock->cross_nic_ns);
	s64 host = (s64)(host_ns - clock->cross_host_ns);

	if (!clock->cross_width_ns || host < (s64)CLOCK_CROSS_MIN_NS ||
	    host > (s64)CLOCK_CROSS_MAX_NS || nic < host / 2 || nic > host * 2)
		return 0;
	/* More than twice the largest drift: a clock was stepped between the cross-timestamps. */
	if (abs(host - nic) > host / 512)
		return 0;
	*drift_q32 = clamp(div64_s64((host - nic) * CLOCK_Q32, nic),
			   -CLOCK_MAX_DRIFT_Q32, CLOCK_MAX_DRIFT_Q32);
	return div64_u64((width_ns + clock->cross_width_ns + 2 * CLOCK_GRAIN_NS) *
			 (CLOCK_PPB / 2), host) + 1;
}

/* Keep a cross-timestamp to compute a drift later, unless the kept one is younger than
 * CLOCK_MARK_NS. The stored length is larger by 1, because 0 means that none is kept.
 */
static void cross_keep(struct timely_clock *clock, u64 nic_ns, u64 host_ns, u64 width_ns)
{
	u64 age_ns = host_ns - clock->cross_host_ns;

	if (clock->cross_width_ns && age_ns < CLOCK_MARK_NS)
		return;
	clock->cross_nic_ns = nic_ns;
	clock->cross_host_ns = host_ns;
	clock->cross_width_ns = width_ns + 1;
}

/* Whether a drift from two cross-timestamps agrees with the mapping's drift within the errors of
 * both. If not, either a clock was stepped between the cross-timestamps, by too little to be
 * detected, or the drift has changed. The next cross-timestamp shows which; until then the error of
 * the drift includes the difference.
 */
static bool cross_agrees(struct timely_clock *clock, s64 drift_q32, u64 drift_ppb)
{
	u64 off_ppb = (abs(drift_q32 - clock->map.drift_q32) * CLOCK_PPB) >> 32;

	if (off_ppb <= clock->drift_error_ppb + drift_ppb + CLOCK_SERVO_PPB)
		return true;
	clock->drift_error_ppb = min(clock->drift_error_ppb + off_ppb, CLOCK_UNKNOWN_PPB);
	return false;
}

/* Make a cross-timestamp the mapping's reference point. @host_ns is the middle of the
 * cross-timestamp's interval and @width_ns the length.
 */
static void cross_map(struct timely_clock *clock, u64 nic_ns, u64 host_ns, u64 width_ns)
{
	struct timely_clock_map *map = &clock->map;

	map->nic_ns = nic_ns;
	map->host_ns = host_ns;
	clock->anchored = true;
	map->state = TIMELY_CLOCK_SURE;
	map_error(clock, width_ns / 2 + CLOCK_GRAIN_NS, clock->drift_error_ppb);
	/* Unlike a mapping fitted to the lowest pairs, this mapping may be too high by half of the
	 * interval. So a pair must be further below this mapping to contradict it.
	 */
	map->below_ns += width_ns;
}

/* Start the mapping again from a cross-timestamp. If the cross-timestamp is short and the drift is
 * known, the mapping is sure at once; otherwise the mapping must be learned. While it is learned, a
 * cross-timestamp that cannot make the mapping sure is not used. @error_ppb is added to the error
 * of the drift. Return: true if the mapping has changed.
 */
static bool clock_anchor(struct timely_clock *clock, u64 nic_ns, u64 host_ns,
			 u64 width_ns, u64 error_ppb)
{
	bool good = width_ns <= CLOCK_ANCHOR_NS && !clock->stepped &&
		    clock->drift_error_ppb <= CLOCK_ANCHOR_PPB;

	if (!good && clock->map.state == TIMELY_CLOCK_LEARNING)
		return false;
	clock_begin(clock, nic_ns, host_ns, error_ppb);
	timely_clock_track(clock)->count = 0;
	if (good)
		cross_map(clock, nic_ns, host_ns, width_ns);
	return true;
}

/* Move the mapping into the interval of a cross-timestamp, which reaches from @low_ns to @high_ns
 * above the mapping. The minimum handling delay falls by as much as the mapping rises, because the
 * lowest pairs do not move. Return: true if the mapping has changed.
 */
static bool clock_squeeze(struct timely_clock *clock, s64 low_ns, s64 high_ns)
{
	s64 move = low_ns > 0 ? low_ns : min(high_ns, 0LL);

	clock->map.host_ns += move;
	clock->min_handling_ns = clamp(clock->min_handling_ns - move, 0LL, CLOCK_MAX_HANDLING_NS);
	return move;
}

/**
 * timely_clock_cross_timestamp() - use a cross-timestamp
 * @clock: the clock, under its lock
 * @before_ns: host's time before the NIC's clock was read
 * @nic_ns: reading of the NIC's clock
 * @after_ns: host's time after the NIC's clock was read
 *
 * A cross-timestamp shows the minimum handling delay, which traffic alone does not show, and ends a
 * doubt. Two short cross-timestamps show the drift too. A mapping made from short cross-timestamps
 * stays until a fit to pairs has a smaller error.
 *
 * Cross-timestamps longer than 100 us, or in the state TIMELY_CLOCK_NONE, are not used.
 *
 * Return: true if @clock->map has changed and must be published.
 */
bool timely_clock_cross_timestamp(struct timely_clock *clock, u64 before_ns,
				  u64 nic_ns, u64 after_ns)
{
	struct timely_clock_map *map = &clock->map;
	s64 low = timely_clock_residual(map, nic_ns, before_ns);
	u64 width = after_ns - before_ns, host_ns = before_ns + width / 2;
	u64 drift_ppb = 0;
	s64 error, drift_q32;
	bool doubt;

	if (width > CLOCK_MAX_CROSS_NS || map->state == TIMELY_CLOCK_NONE)
		return false;
	clock->cross_timestamps++;
	if (width <= CLOCK_ANCHOR_NS) {
		drift_ppb = cross_drift(clock, nic_ns, host_ns, width, &drift_q32);
		cross_keep(clock, nic_ns, host_ns, width);
	}
	if (map->state == TIMELY_CLOCK_LEARNING ||
	    (s64)(after_ns - map->host_ns) > (s64)map->sure_ns) {
		if (drift_ppb && (clock->stepped || drift_ppb < clock->drift_error_ppb)) {
			map->drift_q32 = drift_q32;
			clock->drift_error_ppb = drift_ppb;
			clock->stepped = drift_ppb > CLOCK_ANCHOR_PPB;
		}
		return clock_anchor(clock, nic_ns, host_ns, width, 0);
	}
	/* One mapping in a hundred is off by more than its error. If mapping and cross-timestamp
	 * differ by up to twice the error, which may be chance, the cross-timestamp corrects the
	 * mapping. A larger difference is a clock step.
	 */
	error = 2 * (s64)map_uncertainty_ns(map, after_ns) + CLOCK_BELOW_NS;
	if (low > (s64)clock->min_handling_ns + error ||
	    low + (s64)width < (s64)clock->min_handling_ns - CLOCK_MAX_HANDLING_NS - error) {
		/* If instead the drift has changed, the next cross-timestamp shows the change. */
		clock->steps++;
		clock->stepped = true;
		clock->cross_width_ns = 0;
		if (width <= CLOCK_ANCHOR_NS)
			cross_keep(clock, nic_ns, host_ns, width);
		return clock_anchor(clock, nic_ns, host_ns, width, CLOCK_SLEEP_PPB);
	}
	doubt = map->state == TIMELY_CLOCK_DOUBT;
	if (doubt)
		clock_trust(clock);
	if (drift_ppb && timely_clock_uncertainty_ns(map, after_ns) > width / 2 + CLOCK_GRAIN_NS) {
		if (cross_agrees(clock, drift_q32, drift_ppb)) {
			map->drift_q32 = drift_q32;
			clock->drift_error_ppb = drift_ppb;
		} else {
			clock->cross_width_ns = 0;
			cross_keep(clock, nic_ns, host_ns, width);
		}
		cross_map(clock, nic_ns, host_ns, width);
		return true;
	}
	return clock_squeeze(clock, low, low + (s64)width) || doubt;
}
EXPORT_SYMBOL_GPL(timely_clock_cross_timestamp);

/* ---- the engine's interface ---- */

/**
 * timely_clock_init() - initialise the state of an unknown clock
 * @clock: the clock; its memory need not be initialised
 */
void timely_clock_init(struct timely_clock *clock)
{
	memset(clock, 0, sizeof(*clock));
	map_unsure(&clock->map);
	clock->map.state = TIMELY_CLOCK_NONE;
	clock->map.spread_ns = CLOCK_MIN_SPREAD_NS;
	clock_spread(clock);
	clock->drift_error_ppb = CLOCK_UNKNOWN_PPB;
	clock->wander_ppb_s = CLOCK_FIRST_WANDER_PPB_S;
}
EXPORT_SYMBOL_GPL(timely_clock_init);

/**
 * timely_clock_take() - process a batch of timestamp pairs
 * @clock: the clock, under its lock
 * @batch: the batch, which is emptied
 *
 * Return: true if @clock->map has changed and must be published.
 */
bool timely_clock_take(struct timely_clock *clock, struct timely_clock_batch *batch)
{
	struct timely_clock_map *map = &clock->map;
	struct timely_clock_sample sample = {
		.nic_ns = batch->nic_ns,
		.host_ns = batch->host_ns,
		.now_ns = batch->last_ns,
		/* The mapping may have changed since the batch was started. */
		.height_ns = timely_clock_residual(map, batch->nic_ns, batch->host_ns),
		.pairs = min(batch->count, CLOCK_MAX_PAIRS),
	};

	batch->count = 0;
	batch->since_ns = batch->last_ns;
	clock->pairs += sample.pairs;
	if (!sample.pairs || batch->epoch != map->epoch)
		return false;
	if (map->state == TIMELY_CLOCK_NONE || clock_expired(clock, &sample)) {
		clock_restart(clock, &sample);
		return true;
	}
	if (map->state == TIMELY_CLOCK_DOUBT)
		return take_doubt(clock, &sample);
	clock->spread_pairs = min(clock->spread_pairs + sample.pairs, CLOCK_MAX_PAIRS);
	clock->spread_above = min(clock->spread_above + batch->above, CLOCK_MAX_PAIRS);
	if (map->state == TIMELY_CLOCK_SURE)
		return take_sure(clock, &sample);
	return take_learning(clock, &sample);
}
EXPORT_SYMBOL_GPL(timely_clock_take);

/**
 * timely_clock_forget() - handle an event after which the clocks may differ otherwise: suspend, or
 * loss of the link
 * @clock: the clock, under its lock
 *
 * The next pair starts the mapping again. The drift is kept, with a larger error. The caller
 * publishes @clock->map afterwards.
 */
void timely_clock_forget(struct timely_clock *clock)
{
	map_unsure(&clock->map);
	clock->map.state = TIMELY_CLOCK_NONE;
	clock->map.epoch++;
	clock->drift_error_ppb = min(clock->drift_error_ppb + CLOCK_SLEEP_PPB,
				     CLOCK_UNKNOWN_PPB);
}
EXPORT_SYMBOL_GPL(timely_clock_forget);

/**
 * timely_clock_uncertainty_ns() - get the error of converted times
 * @map: a copy of the published mapping
 * @now_ns: current time, by the host's clock
 *
 * Return: the error, not exceeded with 99 % probability, ns; U32_MAX if the mapping is not sure.
 */
u32 timely_clock_uncertainty_ns(const struct timely_clock_map *map, u64 now_ns)
{
	s64 age_ns = (s64)(now_ns - map->host_ns);

	if (map->state != TIMELY_CLOCK_SURE || age_ns > (s64)map->sure_ns)
		return U32_MAX;
	return map_uncertainty_ns(map, now_ns);
}
EXPORT_SYMBOL_GPL(timely_clock_uncertainty_ns);
