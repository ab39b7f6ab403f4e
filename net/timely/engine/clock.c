// SPDX-License-Identifier: GPL-2.0
/*
 * The clock of a NIC, told in the host's time.
 *
 * A NIC stamps packets by a clock of its own, which runs from an epoch of its
 * own and a little too fast or too slow. Each packet gives a pair of stamps: the
 * NIC's, and when the host handled it, which is never before it came. So over
 * the NIC's time the pairs lie above a line, the one that is sought, and the
 * lowest of them close to it. (TIMELY, SIGCOMM'15, section 5 joins the clocks by
 * a line but does not say how.)
 *
 * The line is fitted to the lowest pairs of blocks of time (clock_fit.c).
 *
 * What contradicts a line: a pair below it, which no delay can explain, and
 * pairs that are all too high. Either puts the line in doubt. It comes back when
 * pairs lie on it again, else it goes and the pairs since make the next one.
 *
 * Lowest pairs are handled late too, by a floor that nothing in traffic tells
 * from the clock's offset. A cross-timestamp (a bracket) does: the host's time
 * before and after the NIC's clock was read.
 */

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "clock_fit.h"

#define CLOCK_Q32		(1LL << 32)
#define CLOCK_UNKNOWN_PPB	1000000ULL
/* A batch, in pairs and ns, while the line is sure and while it is not. */
#define CLOCK_SURE_BATCH	256
#define CLOCK_SURE_BATCH_NS	(2 * NSEC_PER_MSEC)
#define CLOCK_BATCH		64
#define CLOCK_BATCH_NS		(NSEC_PER_MSEC / 2)
/* After a pause of this length what was known of an unsure line is of no use. */
#define CLOCK_PAUSE_NS		(200 * NSEC_PER_MSEC)

/* Sure up to this error, from so many blocks on, as the density, on which the error
 * depends, is not known from fewer; with all the blocks there can be, up to this; and
 * no longer from there.
 */
#define CLOCK_SURE_NS		500
#define CLOCK_SURE_POINTS	24
#define CLOCK_LATE_SURE_NS	1500
#define CLOCK_UNSURE_NS		2000
/* Lower than on the line by twice its error and this: not by chance. */
#define CLOCK_BELOW_NS		250
#define CLOCK_LEARNING_BELOW_NS	10000

/* A drift is marked once a second. What it changes by each second, ppb: until
 * two marks tell, and within what. What a servo may do between two fits.
 */
#define CLOCK_MARK_NS		NSEC_PER_SEC
#define CLOCK_FIRST_WANDER_PPB_S	1000
#define CLOCK_MIN_WANDER_PPB_S	20ULL
#define CLOCK_MAX_WANDER_PPB_S	20000ULL
#define CLOCK_SERVO_PPB		2000
/* What a drift may have changed by when a line is begun anew, or after sleep. */
#define CLOCK_STEP_PPB		1000
#define CLOCK_SLEEP_PPB		10000

/* The spread is looked at anew after this many pairs. What is later than a
 * quarter more, and this, is refused.
 */
#define CLOCK_SPREAD_PAIRS	32
#define CLOCK_MIN_SPREAD_NS	512
#define CLOCK_GATE_NS		1000

/* The lowest of 64 pairs is measured in what it should be on average. What is in
 * excess of 2 adds up; from 16 on the line is in doubt: by chance once in 300 000
 * tests. One pair counts 4 at most, as a single one may be late for any reason.
 */
#define CLOCK_EVIDENCE		16
#define CLOCK_EVIDENCE_LEAK	2
#define CLOCK_EVIDENCE_PAIR	4
/* A host that is late for so long was not late: a clock was stepped. */
#define CLOCK_DOUBT_NS		(40 * NSEC_PER_MSEC)

/* A bracket that is wider is none, and a floor that is higher is a step. One makes
 * a line if it is this narrow and the drift known this well.
 */
#define CLOCK_MAX_BRACKET_NS	100000
#define CLOCK_MAX_FLOOR_NS	100000
#define CLOCK_ANCHOR_NS		3000
#define CLOCK_ANCHOR_PPB	60000
/* Two tell the drift if they are so far apart; the older one is kept so long. */
#define CLOCK_BRACKETS_MIN_NS	(10 * NSEC_PER_MSEC)
#define CLOCK_BRACKETS_MAX_NS	(4ULL * NSEC_PER_SEC)

/* ---- the line ---- */

/* How far from the truth it is at a time, 99 %. */
static u32 line_off_ns(const struct timely_clock_line *line, u64 now_ns)
{
	s64 age_ns = (s64)(now_ns - line->host_ns);

	return line->uncertainty_ns +
	       (u32)div_u64((u64)max(age_ns, 0LL) * line->growth_ppb, CLOCK_PPB);
}

/* How fast the drift changes: by what it did since it was marked, less what may be
 * an error.
 */
static void clock_wander(struct timely_clock *clock, const struct timely_clock_fit *fit)
{
	u64 middle_ns = clock->line.host_ns - fit->stretch_ns / 2;
	u64 ns = middle_ns - clock->mark_ns, error = fit->slope_ppb + clock->mark_error_ppb;
	s64 drift = clock->line.drift_q32, change;
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

/* All but a 32nd of the pairs should be within the spread. Counted are those that
 * were above the published one, so it is changed only as it is published.
 */
static void clock_spread(struct timely_clock *clock)
{
	struct timely_clock_line *line = &clock->line;
	s64 spread = line->spread_ns, above = clock->spread_above;
	u32 pairs = clock->spread_pairs;

	if (pairs >= CLOCK_SPREAD_PAIRS) {
		spread += div_s64(spread * (above * 32 - pairs), 32 * pairs);
		line->spread_ns = clamp_t(s64, spread, CLOCK_MIN_SPREAD_NS, CLOCK_MAX_Y_NS);
		clock->spread_pairs = 0;
		clock->spread_above = 0;
	}
	line->gate_ns = line->spread_ns + line->spread_ns / 4 + CLOCK_GATE_NS;
}

/* A line that is not sure is asked for often, and never says below. */
static void line_unsure(struct timely_clock_line *line)
{
	line->state = TIMELY_CLOCK_LEARNING;
	line->below_ns = CLOCK_LEARNING_BELOW_NS;
	line->high_ns = U32_MAX;
	line->batch_pairs = CLOCK_BATCH;
	line->batch_ns = CLOCK_BATCH_NS;
}

/* How good the line is, for how long, and what contradicts it. */
static void line_error(struct timely_clock *clock, u64 error_ns, u64 slope_ppb)
{
	struct timely_clock_line *line = &clock->line;
	u64 density = max_t(u64, clock->density, CLOCK_MIN_DENSITY), high;
	u32 limit = CLOCK_SURE_NS;

	if (line->state == TIMELY_CLOCK_SURE)
		limit = CLOCK_UNSURE_NS;
	else if (timely_clock_track(clock)->count == TIMELY_CLOCK_BLOCKS)
		limit = CLOCK_LATE_SURE_NS;
	else if (timely_clock_track(clock)->count < CLOCK_SURE_POINTS)
		limit = 0;
	slope_ppb = min(slope_ppb + CLOCK_SERVO_PPB, CLOCK_UNKNOWN_PPB);
	line->uncertainty_ns = min_t(u64, error_ns, CLOCK_MAX_Y_NS);
	line->growth_ppb = slope_ppb;
	if (error_ns > limit) {
		line_unsure(line);
		return;
	}
	line->state = TIMELY_CLOCK_SURE;
	clock->stepped = false;
	line->sure_ns = div64_u64((CLOCK_UNSURE_NS - error_ns) * CLOCK_PPB, slope_ppb) + 1;
	line->below_ns = 2 * error_ns + CLOCK_BELOW_NS +
			 div_u64(2 * CLOCK_BLOCK_NS * slope_ppb, CLOCK_PPB);
	high = div_u64((CLOCK_EVIDENCE + CLOCK_EVIDENCE_LEAK + 1) * density,
		       TIMELY_CLOCK_HIGH_PAIRS);
	line->high_ns = min_t(u64, high + error_ns + clock->floor_ns, U32_MAX);
	line->batch_pairs = CLOCK_SURE_BATCH;
	line->batch_ns = CLOCK_SURE_BATCH_NS;
}

/* What the floor is, if a bracket's line is known and the lowest pairs are at a height.
 * That line stays until there is a better one.
 */
static bool clock_floor(struct timely_clock *clock, const struct timely_clock_fit *fit, u64 now_ns)
{
	if (!clock->anchored)
		return true;
	if (fit->error_ns > timely_clock_uncertainty_ns(&clock->line, now_ns))
		return false;
	clock->floor_ns = clamp(fit->at_ns, 0LL, CLOCK_MAX_FLOOR_NS);
	clock->anchored = false;
	return true;
}

/* Fit the line to its track: true if there is another one. */
static bool clock_fit(struct timely_clock *clock)
{
	const struct timely_clock_track *track = timely_clock_track(clock);
	const struct timely_clock_block *newest = &track->blocks[track->count - 1];
	struct timely_clock_line *line = &clock->line;
	s64 height = timely_clock_height(clock, newest);
	struct timely_clock_fit fit;

	clock->blocks++;
	if (height == TIMELY_CLOCK_NOWHERE || !timely_clock_fit_line(clock, &fit))
		return false;
	clock->density = fit.density;
	if (!clock_floor(clock, &fit, newest->host_ns))
		return false;
	line->nic_ns = newest->nic_ns;
	line->host_ns = newest->host_ns - height + fit.at_ns - clock->floor_ns;
	line->drift_q32 = clamp(line->drift_q32 + fit.slope_q32, -CLOCK_MAX_DRIFT_Q32,
				CLOCK_MAX_DRIFT_Q32);
	clock->drift_error_ppb = min(fit.slope_ppb + CLOCK_STEP_PPB, CLOCK_UNKNOWN_PPB);
	clock_wander(clock, &fit);
	line_error(clock, fit.error_ns,
		   fit.slope_ppb + timely_clock_bend_ppb(clock, fit.stretch_ns));
	clock_spread(clock);
	return true;
}

/* Begin anew from a point. What is known of the drift stays. */
static void clock_begin(struct timely_clock *clock, u64 nic_ns, u64 host_ns, u64 error_ppb)
{
	struct timely_clock_line *line = &clock->line;

	line->nic_ns = nic_ns;
	line->host_ns = host_ns;
	line->uncertainty_ns = CLOCK_MAX_Y_NS;
	line->epoch++;
	line_unsure(line);
	clock->drift_error_ppb = min(clock->drift_error_ppb + error_ppb, CLOCK_UNKNOWN_PPB);
	clock->anchored = false;
	clock->evidence = 0;
	clock->run_pairs = 0;
	clock->spread_pairs = 0;
	clock->spread_above = 0;
	clock->restarts++;
}

/* Begin anew from a pair, the first one or after a pause. */
static void clock_restart(struct timely_clock *clock, const struct timely_clock_news *news)
{
	u64 idle_ns = news->host_ns - clock->line.host_ns;

	if (clock->line.state == TIMELY_CLOCK_NONE)
		idle_ns = 0;
	/* Temperature: 1 ppm each second. */
	clock_begin(clock, news->nic_ns, news->host_ns, div_u64(idle_ns, 1000000));
	timely_clock_track(clock)->count = 0;
	timely_clock_track_add(clock, timely_clock_track(clock), news);
}

/* ---- doubt ---- */

/* Is the lowest of the pairs since the last test too high? */
static bool clock_too_high(struct timely_clock *clock, const struct timely_clock_news *news)
{
	s64 height = news->height_ns - clock->floor_ns - clock->line.uncertainty_ns;
	s64 density = max_t(s64, clock->density, CLOCK_MIN_DENSITY);
	s64 evidence;

	/* A bracket's line knows nothing of delays but the gate. */
	if (clock->anchored)
		return news->height_ns > (s64)clock->line.gate_ns;
	height = clamp(height, 0LL, CLOCK_EVIDENCE_PAIR * density);
	if (!clock->run_pairs || height < clock->run_min_ns)
		clock->run_min_ns = height;
	clock->run_pairs += news->pairs;
	evidence = clock->evidence + clock->run_min_ns * clock->run_pairs -
		   CLOCK_EVIDENCE_LEAK * density;
	if (clock->run_pairs >= CLOCK_TEST_PAIRS) {
		clock->evidence = max(evidence, 0LL);
		clock->run_pairs = 0;
	}
	return evidence > CLOCK_EVIDENCE * density;
}

static void clock_doubt(struct timely_clock *clock, const struct timely_clock_news *news, u32 below)
{
	struct timely_clock_line *line = &clock->line;

	line->state = TIMELY_CLOCK_DOUBT;
	line->batch_pairs = CLOCK_BATCH;
	line->batch_ns = CLOCK_BATCH_NS;
	clock->doubted_ns = news->now_ns;
	clock->doubt_pairs = 0;
	clock->below = below;
	clock->near = 0;
	clock->scatter = 0;
	clock->scatters = 0;
	/* Some of these pairs may be from before a step: they are no measure. */
	clock->run_pairs = 0;
	clock->evidence = CLOCK_MAX_Y_NS;
	timely_clock_trial(clock)->count = 0;
}

/* Is the line back? Pairs are as near to it as the lowest of 64 is, or they scatter
 * so widely by now that their being high shows nothing.
 */
static bool doubt_near(struct timely_clock *clock, const struct timely_clock_news *news)
{
	s64 height = clamp(news->height_ns, -CLOCK_MAX_Y_NS, CLOCK_MAX_Y_NS);
	s64 floor = (s64)clock->floor_ns + clock->line.uncertainty_ns;
	u64 density;

	if (clock->run_pairs) {
		clock->scatter += timely_clock_scatter(height, news->pairs, clock->run_min_ns,
						clock->run_pairs);
		clock->scatters++;
	}
	clock->run_min_ns = height;
	clock->run_pairs = news->pairs;
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

/* The line is right after all. */
static void clock_trust(struct timely_clock *clock)
{
	struct timely_clock_line *line = &clock->line;

	line->state = TIMELY_CLOCK_SURE;
	line->batch_pairs = CLOCK_SURE_BATCH;
	line->batch_ns = CLOCK_SURE_BATCH_NS;
	clock->evidence = 0;
	clock->run_pairs = 0;
	clock->doubts++;
}

/* The line is wrong: its place takes what the pairs since say, of the drift too,
 * which may be what has changed.
 */
static void clock_step(struct timely_clock *clock, const struct timely_clock_news *news)
{
	clock->steps++;
	clock->stepped = true;
	clock->bracket_width_ns = 0;
	clock->track = !clock->track;
	clock_begin(clock, news->nic_ns, news->host_ns, CLOCK_UNKNOWN_PPB);
	timely_clock_track_add(clock, timely_clock_track(clock), news);
	clock_fit(clock);
}

/* Pairs on the line and pairs below it: it is not low enough. */
static void clock_lower(struct timely_clock *clock, const struct timely_clock_news *news)
{
	clock->doubts++;
	clock->evidence = 0;
	clock->run_pairs = 0;
	line_unsure(&clock->line);
	timely_clock_track_add(clock, timely_clock_track(clock), news);
	clock->line.host_ns += news->height_ns;
	clock_fit(clock);
}

/* ---- a batch, in each state ---- */

/* Has nothing come for so long that the line is sure no more? If it was sure for a
 * short time only, and pairs do come, it is not known well: that is all.
 */
static bool clock_expired(struct timely_clock *clock, const struct timely_clock_news *news)
{
	const struct timely_clock_track *track = timely_clock_track(clock);
	struct timely_clock_line *line = &clock->line;

	if (line->state == TIMELY_CLOCK_LEARNING ||
	    (s64)(news->host_ns - line->host_ns) <= (s64)line->sure_ns)
		return false;
	if (line->state == TIMELY_CLOCK_DOUBT || !track->count ||
	    news->host_ns - track->blocks[track->count - 1].host_ns > CLOCK_PAUSE_NS)
		return true;
	line_unsure(line);
	return false;
}

static bool take_learning(struct timely_clock *clock, const struct timely_clock_news *news)
{
	if (abs(news->height_ns) > CLOCK_MAX_Y_NS ||
	    timely_clock_track_late(timely_clock_track(clock), news->nic_ns)) {
		clock_restart(clock, news);
		return true;
	}
	if (timely_clock_track_add(clock, timely_clock_track(clock), news) && clock_fit(clock))
		return true;
	if (news->height_ns >= 0)
		return false;
	clock->line.host_ns += news->height_ns;
	return true;
}

/* Lower than ever, yet above a line that brackets have shown to be far below: the
 * host has become faster, the line is right.
 */
static void take_sunk(struct timely_clock *clock, const struct timely_clock_news *news)
{
	if (news->height_ns >= (s64)clock->floor_ns - (s64)clock->line.below_ns)
		return;
	clock->floor_ns = max(news->height_ns, 0LL);
	clock->anchored = true;
	timely_clock_track(clock)->count = 0;
}

static bool take_sure(struct timely_clock *clock, const struct timely_clock_news *news)
{
	bool below = news->height_ns < -(s64)clock->line.below_ns;

	if (below || clock_too_high(clock, news)) {
		clock_doubt(clock, news, below);
		return true;
	}
	if (clock->floor_ns)
		take_sunk(clock, news);
	return timely_clock_track_add(clock, timely_clock_track(clock), news) && clock_fit(clock);
}

/* Below the line once more: no stray, unless of a host that handles few pairs as
 * soon as it can.
 */
static void doubt_below(struct timely_clock *clock, const struct timely_clock_news *news)
{
	if (clock->near && news->height_ns > -CLOCK_MAX_Y_NS)
		clock_lower(clock, news);
	else
		clock_step(clock, news);
}

static bool take_doubt(struct timely_clock *clock, const struct timely_clock_news *news)
{
	bool below = news->height_ns < -(s64)clock->line.below_ns;

	/* Another CPU's, from before. */
	if (clock->doubted_ns - news->host_ns < CLOCK_LATE_NS)
		return false;
	if (timely_clock_track_late(timely_clock_trial(clock), news->nic_ns))
		timely_clock_trial(clock)->count = 0;
	clock->doubt_pairs = below ? 0 : min(clock->doubt_pairs + news->pairs, CLOCK_MAX_PAIRS);
	if (below && clock->below++) {
		doubt_below(clock, news);
		return true;
	}
	if (!below && doubt_near(clock, news))
		clock->near++;
	if (clock->near && (!clock->below || clock->doubt_pairs >= CLOCK_TEST_PAIRS)) {
		clock_trust(clock);
		return true;
	}
	timely_clock_track_add(clock, timely_clock_trial(clock), news);
	if (news->now_ns - timely_clock_trial(clock)->blocks[0].opened_ns < CLOCK_DOUBT_NS ||
	    clock->doubt_pairs < CLOCK_TEST_PAIRS)
		return false;
	clock_step(clock, news);
	return true;
}

/* ---- brackets ---- */

/* The drift between this bracket and one before: within what, ppb, or 0 if that
 * cannot be told.
 */
static u64 bracket_drift(const struct timely_clock *clock, u64 nic_ns, u64 host_ns,
			 u64 width_ns, s64 *drift_q32)
{
	s64 nic = (s64)(nic_ns - clock->bracket_nic_ns);
	s64 host = (s64)(host_ns - clock->bracket_host_ns);

	if (!clock->bracket_width_ns || host < (s64)CLOCK_BRACKETS_MIN_NS ||
	    host > (s64)CLOCK_BRACKETS_MAX_NS || nic < host / 2 || nic > host * 2)
		return 0;
	if (abs(host - nic) > host / 512)
		return 0;
	*drift_q32 = clamp(div64_s64((host - nic) * CLOCK_Q32, nic),
			   -CLOCK_MAX_DRIFT_Q32, CLOCK_MAX_DRIFT_Q32);
	return div64_u64((width_ns + clock->bracket_width_ns + 2 * CLOCK_GRAIN_NS) *
			 (CLOCK_PPB / 2), host) + 1;
}

static void bracket_keep(struct timely_clock *clock, u64 nic_ns, u64 host_ns, u64 width_ns)
{
	u64 age_ns = host_ns - clock->bracket_host_ns;

	if (clock->bracket_width_ns && age_ns < CLOCK_MARK_NS)
		return;
	clock->bracket_nic_ns = nic_ns;
	clock->bracket_host_ns = host_ns;
	clock->bracket_width_ns = width_ns + 1;
}

/* Is a drift by two brackets what the line's may be? If not, one of both clocks was stepped
 * in between, by too little to show, or the drift has changed: the next bracket tells.
 */
static bool bracket_agrees(struct timely_clock *clock, s64 drift_q32, u64 drift_ppb)
{
	u64 off_ppb = (abs(drift_q32 - clock->line.drift_q32) * CLOCK_PPB) >> 32;

	if (off_ppb <= clock->drift_error_ppb + drift_ppb + CLOCK_SERVO_PPB)
		return true;
	clock->drift_error_ppb = min(clock->drift_error_ppb + off_ppb, CLOCK_UNKNOWN_PPB);
	return false;
}

/* The line goes through a bracket, of @width_ns, from now on. */
static void bracket_line(struct timely_clock *clock, u64 nic_ns, u64 host_ns, u64 width_ns)
{
	struct timely_clock_line *line = &clock->line;

	line->nic_ns = nic_ns;
	line->host_ns = host_ns;
	clock->anchored = true;
	line->state = TIMELY_CLOCK_SURE;
	line_error(clock, width_ns / 2 + CLOCK_GRAIN_NS, clock->drift_error_ppb);
	/* Of what is below it pairs know better than half of the bracket. */
	line->below_ns += width_ns;
}

/* A line through a bracket, if the drift is known. */
static bool clock_anchor(struct timely_clock *clock, u64 nic_ns, u64 host_ns,
			 u64 width_ns, u64 error_ppb)
{
	bool good = width_ns <= CLOCK_ANCHOR_NS && !clock->stepped &&
		    clock->drift_error_ppb <= CLOCK_ANCHOR_PPB;

	if (!good && clock->line.state == TIMELY_CLOCK_LEARNING)
		return false;
	clock_begin(clock, nic_ns, host_ns, error_ppb);
	timely_clock_track(clock)->count = 0;
	if (good)
		bracket_line(clock, nic_ns, host_ns, width_ns);
	return true;
}

/* Move the line into a bracket that lies at @low_ns to @high_ns from it. */
static bool clock_squeeze(struct timely_clock *clock, s64 low_ns, s64 high_ns)
{
	s64 move = low_ns > 0 ? low_ns : min(high_ns, 0LL);

	clock->line.host_ns += move;
	clock->floor_ns = clamp(clock->floor_ns - move, 0LL, CLOCK_MAX_FLOOR_NS);
	return move;
}

/**
 * timely_clock_bracket() - learn from a cross-timestamp
 * @clock: the clock, locked
 * @before_ns: host's time before the NIC's clock was read
 * @nic_ns: what it read
 * @after_ns: host's time after
 *
 * It tells the floor of delays, which traffic alone does not, and ends a doubt.
 * Two that are narrow tell the drift, and so make a line, which stays as long as
 * that of the pairs is not better.
 *
 * Return: true if @clock->line has changed and is to be published.
 */
bool timely_clock_bracket(struct timely_clock *clock, u64 before_ns,
			  u64 nic_ns, u64 after_ns)
{
	struct timely_clock_line *line = &clock->line;
	s64 low = timely_clock_residual(line, nic_ns, before_ns);
	u64 width = after_ns - before_ns, host_ns = before_ns + width / 2;
	u64 drift_ppb = 0;
	s64 error, drift_q32;
	bool doubt;

	if (width > CLOCK_MAX_BRACKET_NS || line->state == TIMELY_CLOCK_NONE)
		return false;
	clock->brackets++;
	if (width <= CLOCK_ANCHOR_NS) {
		drift_ppb = bracket_drift(clock, nic_ns, host_ns, width, &drift_q32);
		bracket_keep(clock, nic_ns, host_ns, width);
	}
	if (line->state == TIMELY_CLOCK_LEARNING ||
	    (s64)(after_ns - line->host_ns) > (s64)line->sure_ns) {
		if (drift_ppb && (clock->stepped || drift_ppb < clock->drift_error_ppb)) {
			line->drift_q32 = drift_q32;
			clock->drift_error_ppb = drift_ppb;
			clock->stepped = drift_ppb > CLOCK_ANCHOR_PPB;
		}
		return clock_anchor(clock, nic_ns, host_ns, width, 0);
	}
	/* A line is wrong by more than its error once in a hundred times: as long as
	 * that may be chance the bracket mends the line, and nothing was stepped.
	 */
	error = 2 * (s64)line_off_ns(line, after_ns) + CLOCK_BELOW_NS;
	if (low > (s64)clock->floor_ns + error ||
	    low + (s64)width < (s64)clock->floor_ns - CLOCK_MAX_FLOOR_NS - error) {
		/* Or it is the drift that has changed: the next one tells. */
		clock->steps++;
		clock->stepped = true;
		clock->bracket_width_ns = 0;
		if (width <= CLOCK_ANCHOR_NS)
			bracket_keep(clock, nic_ns, host_ns, width);
		return clock_anchor(clock, nic_ns, host_ns, width, CLOCK_SLEEP_PPB);
	}
	doubt = line->state == TIMELY_CLOCK_DOUBT;
	if (doubt)
		clock_trust(clock);
	if (drift_ppb && timely_clock_uncertainty_ns(line, after_ns) > width / 2 + CLOCK_GRAIN_NS) {
		if (bracket_agrees(clock, drift_q32, drift_ppb)) {
			line->drift_q32 = drift_q32;
			clock->drift_error_ppb = drift_ppb;
		} else {
			clock->bracket_width_ns = 0;
			bracket_keep(clock, nic_ns, host_ns, width);
		}
		bracket_line(clock, nic_ns, host_ns, width);
		return true;
	}
	return clock_squeeze(clock, low, low + (s64)width) || doubt;
}
EXPORT_SYMBOL_GPL(timely_clock_bracket);

/* ---- and the rest ---- */

/**
 * timely_clock_init() - make a clock that nothing is known of
 * @clock: the clock
 */
void timely_clock_init(struct timely_clock *clock)
{
	memset(clock, 0, sizeof(*clock));
	line_unsure(&clock->line);
	clock->line.state = TIMELY_CLOCK_NONE;
	clock->line.spread_ns = CLOCK_MIN_SPREAD_NS;
	clock_spread(clock);
	clock->drift_error_ppb = CLOCK_UNKNOWN_PPB;
	clock->wander_ppb_s = CLOCK_FIRST_WANDER_PPB_S;
}
EXPORT_SYMBOL_GPL(timely_clock_init);

/**
 * timely_clock_take() - learn from a batch of pairs
 * @clock: the clock, locked
 * @batch: the batch, emptied thereby
 *
 * Return: true if @clock->line has changed and is to be published.
 */
bool timely_clock_take(struct timely_clock *clock, struct timely_clock_batch *batch)
{
	struct timely_clock_line *line = &clock->line;
	struct timely_clock_news news = {
		.nic_ns = batch->nic_ns,
		.host_ns = batch->host_ns,
		.now_ns = batch->last_ns,
		/* Above the line as it is now. */
		.height_ns = timely_clock_residual(line, batch->nic_ns, batch->host_ns),
		.pairs = min(batch->count, CLOCK_MAX_PAIRS),
	};

	batch->count = 0;
	batch->since_ns = batch->last_ns;
	clock->pairs += news.pairs;
	if (!news.pairs || batch->epoch != line->epoch)
		return false;
	if (line->state == TIMELY_CLOCK_NONE || clock_expired(clock, &news)) {
		clock_restart(clock, &news);
		return true;
	}
	if (line->state == TIMELY_CLOCK_DOUBT)
		return take_doubt(clock, &news);
	clock->spread_pairs = min(clock->spread_pairs + news.pairs, CLOCK_MAX_PAIRS);
	clock->spread_above = min(clock->spread_above + batch->above, CLOCK_MAX_PAIRS);
	if (line->state == TIMELY_CLOCK_SURE)
		return take_sure(clock, &news);
	return take_learning(clock, &news);
}
EXPORT_SYMBOL_GPL(timely_clock_take);

/**
 * timely_clock_forget() - the clocks may have gone apart: suspend, link down
 * @clock: the clock, locked
 *
 * Nothing is sure until pairs show it anew. Publish @clock->line afterwards.
 */
void timely_clock_forget(struct timely_clock *clock)
{
	line_unsure(&clock->line);
	clock->line.state = TIMELY_CLOCK_NONE;
	clock->line.epoch++;
	clock->drift_error_ppb = min(clock->drift_error_ppb + CLOCK_SLEEP_PPB,
				     CLOCK_UNKNOWN_PPB);
}
EXPORT_SYMBOL_GPL(timely_clock_forget);

/**
 * timely_clock_uncertainty_ns() - how far from the truth times on a line are
 * @line: a copy of the published line
 * @now_ns: the time
 *
 * Return: that, 99 %, now; all ones if the line is not sure.
 */
u32 timely_clock_uncertainty_ns(const struct timely_clock_line *line, u64 now_ns)
{
	s64 age_ns = (s64)(now_ns - line->host_ns);

	if (line->state != TIMELY_CLOCK_SURE || age_ns > (s64)line->sure_ns)
		return U32_MAX;
	return line_off_ns(line, now_ns);
}
EXPORT_SYMBOL_GPL(timely_clock_uncertainty_ns);
