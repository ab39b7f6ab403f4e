/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The engines of clock synchronisation as the daemon uses them. The engines' headers replace kernel
 * headers, so only estimate.c includes them. See estimate.c.
 */
#ifndef CLOCKD_ESTIMATE_H
#define CLOCKD_ESTIMATE_H

#include "message.h"

/* An error that says nothing about a clock, ns. */
#define ERROR_UNKNOWN_NS	UINT32_MAX

/**
 * struct reading - the offset between two clocks at one time
 * @known: there is an estimate
 * @offset_ns: the other clock minus the own clock, ns
 * @drift_q32: change of @offset_ns per nanosecond of the own clock, Q32
 * @error_ns: error of @offset_ns that 99.9 % of readings do not exceed, ns
 * @drift_error_ppb: error of @drift_q32, ppb
 * @wander_ppb_s: expected change of the drift, ppb per second
 * @half_width_ns: half of the distance between the bounds of @offset_ns, ns
 */
struct reading {
	bool known;
	int64_t offset_ns;
	int64_t drift_q32;
	uint32_t error_ns;
	uint32_t drift_error_ppb;
	uint32_t wander_ppb_s;
	uint32_t half_width_ns;
};

enum direction {
	FORWARD,	/* the own clock was read first: an upper bound of the offset */
	BACKWARD,	/* the other clock was read first: a lower bound of the offset */
};

enum solved {
	SOLVED,			/* there is a new estimate */
	SOLVED_LATER,		/* too few points yet */
	SOLVED_OVERLAP,		/* the points contradict each other */
};

enum pair_result {
	PAIR_WAIT,		/* the other probe is missing, or this one is not usable */
	PAIR_PURE,
	PAIR_SPREAD,
	PAIR_CLOSER,
	PAIR_SPACING,
};

struct line;
struct estimate;
struct group;

struct line *line_new(uint32_t points, uint64_t window_ns);
void line_free(struct line *line);
void line_forget(struct line *line);
void line_add(struct line *line, enum direction direction, uint64_t at_ns, int64_t offset_ns);
enum solved line_solve(struct line *line, uint64_t now_ns);
struct reading line_read(const struct line *line, uint64_t now_ns);

struct estimate *estimate_new(void);
void estimate_free(struct estimate *estimate);
void estimate_forget(struct estimate *estimate);
enum pair_result estimate_probe(struct estimate *estimate, enum direction direction, uint32_t seq,
				uint64_t sent_ns, uint64_t received_ns);
bool estimate_path_idle(const struct estimate *estimate, uint64_t now_ns);
uint64_t estimate_lost(const struct estimate *estimate);
enum solved estimate_solve(struct estimate *estimate, uint64_t now_ns);
struct reading estimate_read(const struct estimate *estimate, uint64_t now_ns);

/**
 * struct group_peer - a peer in a round of averaging
 * @estimate: the estimate of the peer's clock
 * @report: the peer's last report; NULL: there is no recent one
 * @settled: the peer's common time agrees with that of its peers
 * @surplus_ns: out: sum of the offsets around the loops through this peer, ns
 * @agrees: out: the peer was used
 * @excluded: out: the peer's clock or path contradicts those of others
 */
struct group_peer {
	struct estimate *estimate;
	const struct report *report;
	bool settled;
	int64_t surplus_ns;
	bool agrees;
	bool excluded;
};

enum round {
	ROUND_AVERAGED,
	ROUND_JUMPED,
	ROUND_ALONE,
	ROUND_SPLIT,
};

struct group *group_new(void);
void group_free(struct group *group);
void group_start(struct group *group, uint64_t now_ns, int64_t correction_ns, uint32_t scale);
void group_fix(struct group *group, uint64_t now_ns, int64_t correction_ns, int64_t rate_q32);
void group_release(struct group *group);
enum round group_round(struct group *group, struct group_peer *peers, size_t count,
		       uint64_t now_ns);
struct reading group_read(const struct group *group, uint64_t now_ns);
void group_report(const struct group *group, uint64_t now_ns, struct report *report);
bool group_settled(const struct group *group);
struct reading group_peer_offset(const struct group *group, const struct report *report,
				 const struct reading *measured, uint64_t now_ns);

/* a - b for times and offsets that may wrap. */
static inline int64_t difference(uint64_t a, uint64_t b)
{
	return (int64_t)(a - b);
}

static inline int64_t drift_to_ppb(int64_t drift_q32)
{
	return (drift_q32 * 1000000000LL) >> 32;
}

#endif /* CLOCKD_ESTIMATE_H */
