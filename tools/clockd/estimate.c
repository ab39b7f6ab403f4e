// SPDX-License-Identifier: GPL-2.0
/*
 * The engines of clock synchronisation (net/timely/engine) as the daemon uses them. Pure: no socket
 * and no clock.
 *
 *	line		the offset between two clocks that are read again and again (strip)
 *	estimate	a peer's clock: a filter of coded probes for each direction, and two lines
 *	group		the common time: averaging with the peers (clock_loop)
 */
#include <stdlib.h>

#include "estimate.h"

#include "probe_code.h"
#include "strip.h"
#include "clock_loop.h"

/* Points of a peer's line for each direction, and its window, ns: Huygens' two seconds, doubled,
 * because there are fewer probes here. Room for 64 pairs per second.
 */
#define PEER_POINTS	256
#define PEER_WINDOW_NS	4000000000ULL
/* The window of a peer's long line, ns, and the error of the other line above which the long one is
 * tried. At a load of 80 % one of 25 pairs is free of queues, so few of the 64 in the short window
 * are. The long window has three times as many, but a drift that changes by 20 ppb/s bends the
 * offset by up to 360 ns in it. Departure from Huygens, which sends more probes and has one window
 * of two seconds.
 */
#define LONG_WINDOW_NS	12000000000ULL
#define LONG_ERROR_NS	500
/* Age of the newest point up to which an estimate takes part in averaging, ns: the uncertainty of
 * older ones is too small.
 */
#define ROUND_AGE_NS	1000000000
/* A path is idle if this many of the last 16 pairs of each direction have waited in queues for at
 * most this time, ns, and the error of the estimate is at most this, ns: five times that of NICs at
 * a load of 80 %. A packet of 1500 bytes takes 1.2 us on a link of 10 Gb/s.
 */
#define IDLE_FAST	8
#define IDLE_WAIT_NS	1000
#define IDLE_ERROR_NS	1000
/* Time after which a path can be idle, ns. Until then the drift is not known well enough to bridge
 * seconds in which each probe waits.
 */
#define IDLE_KNOWN_NS	8000000000ULL
/* An estimate takes part only if its error is at most this many times the bound of the common time,
 * or at most ROUND_ERROR_NS. While a port is busy for seconds, no probe finds it empty, and the
 * estimates through it have errors of some 10 us. The common time of before, with its rate, is then
 * more exact, until its growing bound says otherwise.
 */
#define ROUND_ERROR_TIMES	16
#define ROUND_ERROR_NS		1000

struct line {
	struct timely_strip strip;
	struct timely_strip_point *points;
};

/**
 * struct estimate - the clock of a peer
 * @code: the filters, by direction
 * @line: the line over the short window
 * @longer: the line over the long window
 * @best: the one of both lines with the smaller error
 * @loop: what the rounds of averaging know about the peer
 * @first_ns: time of the first pair since the estimate started, by the probe clock; 0: none
 * @fast: the last 16 pairs, by direction; bit 0: the newest one has hardly waited
 */
struct estimate {
	struct timely_probe_code code[2];
	struct line *line;
	struct line *longer;
	const struct line *best;
	struct timely_loop_peer loop;
	uint64_t first_ns;
	uint16_t fast[2];
};

struct group {
	struct timely_loop loop;
};

/* The daemon has one thread, so one working memory is enough. */
static struct timely_strip_work work;

static const enum timely_strip_direction directions[] = {
	[FORWARD] = TIMELY_STRIP_FORWARD,
	[BACKWARD] = TIMELY_STRIP_BACKWARD,
};

/* ---- lines ---- */

/* @points is the number of points for each direction. NULL: no memory. */
struct line *line_new(uint32_t points, uint64_t window_ns)
{
	struct line *line = calloc(1, sizeof(*line));

	if (!line)
		return NULL;
	line->points = calloc(2 * points, sizeof(*line->points));
	if (!line->points || timely_strip_init(&line->strip, line->points, points, window_ns)) {
		line_free(line);
		return NULL;
	}
	return line;
}

void line_free(struct line *line)
{
	if (line)
		free(line->points);
	free(line);
}

void line_forget(struct line *line)
{
	timely_strip_forget(&line->strip);
}

void line_add(struct line *line, enum direction direction, uint64_t at_ns, int64_t offset_ns)
{
	struct timely_strip_point point = { .at_ns = at_ns, .offset_ns = offset_ns };

	timely_strip_add(&line->strip, directions[direction], &point);
}

enum solved line_solve(struct line *line, uint64_t now_ns)
{
	switch (timely_strip_solve(&line->strip, &work, now_ns)) {
	case TIMELY_STRIP_GOOD:
		return SOLVED;
	case TIMELY_STRIP_OVERLAP:
		return SOLVED_OVERLAP;
	default:
		return SOLVED_LATER;
	}
}

struct reading line_read(const struct line *line, uint64_t now_ns)
{
	const struct timely_strip_fit *fit = &line->strip.fit;
	struct reading reading = {};

	reading.error_ns = timely_strip_uncertainty_ns(fit, now_ns);
	reading.known = reading.error_ns != TIMELY_STRIP_UNKNOWN_NS;
	if (!reading.known)
		return reading;
	reading.offset_ns = timely_strip_offset_ns(fit, now_ns);
	reading.drift_q32 = fit->drift_q32;
	reading.drift_error_ppb = fit->drift_error_ppb;
	reading.wander_ppb_s = fit->wander_ppb_s;
	reading.half_width_ns = fit->half_width_ns;
	return reading;
}

/* Age of the newest point, ns. */
static int64_t line_age(const struct line *line, uint64_t now_ns)
{
	return difference(now_ns, line->strip.fit.at_ns);
}

/* ---- the clock of a peer ---- */

struct estimate *estimate_new(void)
{
	struct estimate *estimate = calloc(1, sizeof(*estimate));

	if (!estimate)
		return NULL;
	estimate->line = line_new(PEER_POINTS, PEER_WINDOW_NS);
	estimate->longer = line_new(PEER_POINTS, LONG_WINDOW_NS);
	estimate->best = estimate->line;
	if (!estimate->line || !estimate->longer) {
		estimate_free(estimate);
		return NULL;
	}
	timely_probe_code_init(&estimate->code[FORWARD]);
	timely_probe_code_init(&estimate->code[BACKWARD]);
	timely_loop_peer_init(&estimate->loop);
	return estimate;
}

void estimate_free(struct estimate *estimate)
{
	if (estimate) {
		line_free(estimate->line);
		line_free(estimate->longer);
	}
	free(estimate);
}

/* One of the two clocks is another one now, or was stepped. */
void estimate_forget(struct estimate *estimate)
{
	estimate->fast[FORWARD] = 0;
	estimate->fast[BACKWARD] = 0;
	estimate->first_ns = 0;
	timely_probe_code_forget(&estimate->code[FORWARD]);
	timely_probe_code_forget(&estimate->code[BACKWARD]);
	line_forget(estimate->line);
	line_forget(estimate->longer);
	estimate->best = estimate->line;
}

static enum pair_result result_of(enum timely_probe_verdict verdict)
{
	switch (verdict) {
	case TIMELY_PROBE_PURE:
		return PAIR_PURE;
	case TIMELY_PROBE_SPREAD:
		return PAIR_SPREAD;
	case TIMELY_PROBE_CLOSER:
		return PAIR_CLOSER;
	case TIMELY_PROBE_SPACING:
		return PAIR_SPACING;
	default:
		return PAIR_WAIT;
	}
}

/* Whether the delay of a probe exceeds the least delay by at most IDLE_WAIT_NS. */
static bool is_fast(const struct estimate *estimate, enum direction direction,
		    const struct timely_strip_point *point)
{
	struct reading reading = estimate_read(estimate, point->at_ns);
	int64_t over_ns = direction == FORWARD ? difference(point->offset_ns, reading.offset_ns) :
						 difference(reading.offset_ns, point->offset_ns);

	return reading.known && over_ns <= (int64_t)reading.half_width_ns + IDLE_WAIT_NS;
}

/* A probe as a point of a line. */
static struct timely_strip_point point_of(const struct timely_probe *probe,
					  enum direction direction)
{
	if (direction == FORWARD)
		return (struct timely_strip_point){
			.at_ns = probe->sent_ns,
			.offset_ns = difference(probe->received_ns, probe->sent_ns),
		};
	return (struct timely_strip_point){
		.at_ns = probe->received_ns,
		.offset_ns = difference(probe->sent_ns, probe->received_ns),
	};
}

/*
 * Take the timestamps of a probe: the departure by the sender's clock, and the arrival by the
 * receiver's clock. Probes 2n and 2n + 1 are a pair.
 */
enum pair_result estimate_probe(struct estimate *estimate, enum direction direction, uint32_t seq,
				uint64_t sent_ns, uint64_t received_ns)
{
	struct timely_probe probe = { .sent_ns = sent_ns, .received_ns = received_ns }, pure;
	struct timely_probe_code *code = &estimate->code[direction];
	enum pair_result result = result_of(timely_probe_code_add(code, seq / 2, seq % 2, &probe,
								  &pure));
	struct timely_strip_point point = point_of(&probe, direction);

	if (result == PAIR_WAIT)
		return result;
	if (!estimate->first_ns)
		estimate->first_ns = point.at_ns;
	estimate->fast[direction] <<= 1;
	estimate->fast[direction] |= is_fast(estimate, direction, &point);
	if (result != PAIR_PURE)
		return result;
	point = point_of(&pure, direction);
	line_add(estimate->line, direction, point.at_ns, point.offset_ns);
	line_add(estimate->longer, direction, point.at_ns, point.offset_ns);
	return result;
}

/*
 * Whether the path is idle: at least half of the last pairs of each direction have hardly waited in
 * queues, and the estimate is exact.
 */
bool estimate_path_idle(const struct estimate *estimate, uint64_t now_ns)
{
	struct reading reading = estimate_read(estimate, now_ns);

	return estimate->first_ns &&
	       difference(now_ns, estimate->first_ns) >= (int64_t)IDLE_KNOWN_NS && reading.known &&
	       reading.error_ns <= IDLE_ERROR_NS &&
	       __builtin_popcount(estimate->fast[FORWARD]) >= IDLE_FAST &&
	       __builtin_popcount(estimate->fast[BACKWARD]) >= IDLE_FAST;
}

/* Pairs of which one probe never came, since the estimate was created. */
uint64_t estimate_lost(const struct estimate *estimate)
{
	return estimate->code[FORWARD].counts[TIMELY_PROBE_LOST] +
	       estimate->code[BACKWARD].counts[TIMELY_PROBE_LOST];
}

enum solved estimate_solve(struct estimate *estimate, uint64_t now_ns)
{
	enum solved solved = line_solve(estimate->line, now_ns);
	struct reading reading = line_read(estimate->line, now_ns), longer;

	estimate->best = estimate->line;
	/* A clock was stepped, or its drift has jumped. */
	if (solved == SOLVED_OVERLAP) {
		line_forget(estimate->longer);
		estimate->first_ns = 0;
	}
	if (reading.known && reading.error_ns <= LONG_ERROR_NS)
		return solved;
	line_solve(estimate->longer, now_ns);
	longer = line_read(estimate->longer, now_ns);
	if (longer.known && (!reading.known || longer.error_ns < reading.error_ns / 2))
		estimate->best = estimate->longer;
	return solved;
}

struct reading estimate_read(const struct estimate *estimate, uint64_t now_ns)
{
	return line_read(estimate->best, now_ns);
}

/* ---- the common time ---- */

struct group *group_new(void)
{
	return calloc(1, sizeof(struct group));
}

void group_free(struct group *group)
{
	free(group);
}

/* Start with the own system clock. @scale: a random number. */
void group_start(struct group *group, uint64_t now_ns, int64_t correction_ns, uint32_t scale)
{
	timely_loop_init(&group->loop, now_ns, correction_ns, scale);
}

/* The own system clock is the common time: to be called before each round. */
void group_fix(struct group *group, uint64_t now_ns, int64_t correction_ns, int64_t rate_q32)
{
	group->loop.fixed = true;
	group->loop.time.at_ns = now_ns;
	group->loop.time.correction_ns = correction_ns;
	group->loop.time.rate_q32 = rate_q32;
}

/* Undo group_fix(): averaging moves the common time again. */
void group_release(struct group *group)
{
	group->loop.fixed = false;
}

/* The common time minus the own probe clock. */
struct reading group_read(const struct group *group, uint64_t now_ns)
{
	const struct timely_loop_time *time = &group->loop.time;
	struct reading reading = { .error_ns = timely_loop_bound_ns(time, now_ns) };

	reading.known = reading.error_ns != TIMELY_LOOP_UNKNOWN_NS;
	reading.offset_ns = timely_loop_correction_ns(time, now_ns);
	reading.drift_q32 = time->rate_q32;
	reading.drift_error_ppb = time->growth_ppb;
	reading.wander_ppb_s = time->wander_ppb_s;
	return reading;
}

bool group_settled(const struct group *group)
{
	return group->loop.time.settled;
}

static struct timely_loop_time report_time(const struct report *report, bool settled)
{
	return (struct timely_loop_time){
		.at_ns = report->at_ns,
		.correction_ns = report->correction_ns,
		.rate_q32 = report->rate_q32,
		.bound_ns = report->bound_ns,
		.growth_ppb = report->growth_ppb,
		.wander_ppb_s = report->wander_ppb_s,
		.scale = report->scale,
		.settled = settled,
	};
}

/* What the round needs to know about a peer. @most_ns: largest error of an estimate that is used */
static void round_fill(struct timely_loop_peer *to, const struct group_peer *from, uint64_t now_ns,
		       uint64_t most_ns)
{
	struct reading reading = estimate_read(from->estimate, now_ns);

	*to = from->estimate->loop;
	to->fresh = from->report && reading.known && reading.error_ns <= most_ns &&
		    line_age(from->estimate->best, now_ns) <= ROUND_AGE_NS;
	if (!to->fresh)
		return;
	to->offset_ns = reading.offset_ns;
	to->drift_q32 = reading.drift_q32;
	to->error_ns = reading.error_ns;
	to->drift_error_ppb = reading.drift_error_ppb;
	to->wander_ppb_s = reading.wander_ppb_s;
	to->time = report_time(from->report, from->settled);
}

/* @count is at most TIMELY_LOOP_PEERS_MAX. */
enum round group_round(struct group *group, struct group_peer *peers, size_t count, uint64_t now_ns)
{
	static struct timely_loop_peer loop[TIMELY_LOOP_PEERS_MAX];
	enum timely_loop_verdict verdict;
	uint64_t most_ns = (uint64_t)group_read(group, now_ns).error_ns * ROUND_ERROR_TIMES;

	/* All estimates count until the host has found the common time. */
	if (!group_settled(group))
		most_ns = UINT64_MAX;
	else if (most_ns < ROUND_ERROR_NS)
		most_ns = ROUND_ERROR_NS;
	for (size_t i = 0; i < count; i++)
		round_fill(&loop[i], &peers[i], now_ns, most_ns);
	verdict = timely_loop_round(&group->loop, loop, count, now_ns);
	for (size_t i = 0; i < count; i++) {
		peers[i].estimate->loop = loop[i];
		peers[i].surplus_ns = loop[i].surplus_ns;
		peers[i].agrees = loop[i].agrees;
		peers[i].excluded = loop[i].excluded;
	}
	switch (verdict) {
	case TIMELY_LOOP_AVERAGED:
		return ROUND_AVERAGED;
	case TIMELY_LOOP_JUMPED:
		return ROUND_JUMPED;
	case TIMELY_LOOP_SPLIT:
		return ROUND_SPLIT;
	default:
		return ROUND_ALONE;
	}
}

/* Set the members of the report that are about the common time. */
void group_report(const struct group *group, uint64_t now_ns, struct report *report)
{
	struct reading reading = group_read(group, now_ns);

	report->correction_ns = reading.offset_ns;
	report->rate_q32 = (int32_t)reading.drift_q32;
	report->bound_ns = reading.error_ns;
	report->growth_ppb = reading.drift_error_ppb;
	report->wander_ppb_s = reading.wander_ppb_s;
	report->scale = group->loop.time.scale;
}

/* Largest error of its rate that a peer may state to explain a drift, ppb. */
#define PEER_GROWTH_PPB		1000

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static uint32_t at_most_u32(uint64_t value)
{
	return value < UINT32_MAX ? value : UINT32_MAX;
}

/*
 * The peer's probe clock minus the own one: by the common time, if it is more exact, or as measured
 * while the common time is not known or contradicts the measurement: the intervals of both offsets
 * or of both drifts do not overlap. This shows peers that lie, or that have not noticed a step of
 * their clock. Which of the two readings is right is not known, so the errors cover both.
 */
struct reading group_peer_offset(const struct group *group, const struct report *report,
				 const struct reading *measured, uint64_t now_ns)
{
	struct reading reading = *measured;
	struct timely_loop_offset offset;
	struct timely_loop_time peer;
	uint64_t drift_error_ppb, apart_ppb, apart_ns;
	int64_t later_ns;

	if (!report || !measured->known)
		return reading;
	drift_error_ppb = (uint64_t)group->loop.time.growth_ppb +
			  (report->growth_ppb < PEER_GROWTH_PPB ? report->growth_ppb :
			   PEER_GROWTH_PPB);
	peer = report_time(report, true);
	timely_loop_offset(&group->loop.time, &peer, now_ns, &offset);
	if (offset.bound_ns == TIMELY_LOOP_UNKNOWN_NS)
		return reading;
	later_ns = difference((uint64_t)offset.offset_ns, (uint64_t)measured->offset_ns);
	apart_ns = later_ns < 0 ? -(uint64_t)later_ns : (uint64_t)later_ns;
	apart_ppb = llabs(drift_to_ppb(offset.drift_q32 - measured->drift_q32));
	if (apart_ns > (uint64_t)offset.bound_ns + measured->error_ns ||
	    apart_ppb > drift_error_ppb + measured->drift_error_ppb) {
		reading.error_ns = at_most_u32(larger(reading.error_ns,
						      apart_ns + offset.bound_ns));
		reading.drift_error_ppb = at_most_u32(larger(reading.drift_error_ppb,
							     apart_ppb + drift_error_ppb));
		return reading;
	}
	if (offset.bound_ns >= reading.error_ns)
		return reading;
	reading.offset_ns = offset.offset_ns;
	reading.drift_q32 = offset.drift_q32;
	reading.error_ns = offset.bound_ns;
	reading.drift_error_ppb = at_most_u32(drift_error_ppb);
	return reading;
}
