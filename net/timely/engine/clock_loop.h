/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Clock synchronisation of many hosts: the common time, and errors that loops of hosts show.
 * clock_loop.c explains the method.
 *
 * Hosts and the measured offsets between their clocks are a graph; an edge is a pair of hosts that
 * send clock probes to each other. True offsets around any loop add up to zero. The sum of measured
 * offsets is the surplus of the loop. Surpluses show how large errors are, and which edges have
 * large ones, because a path is asymmetric or a host lies.
 *
 * The default is distributed averaging, as in Firefly (SIGCOMM'25): struct timely_loop is one host,
 * which knows only its own measurements and what its neighbours publish. Least squares on a whole
 * graph, as in Huygens (NSDI'18), is the reference. Time is an argument, and nothing is allocated.
 */
#ifndef _TIMELY_ENGINE_CLOCK_LOOP_H
#define _TIMELY_ENGINE_CLOCK_LOOP_H

#include <linux/types.h>

/* Largest number of neighbours of a host. */
#define TIMELY_LOOP_PEERS_MAX		64
/* Largest number of hosts and of edges of a graph. */
#define TIMELY_LOOP_HOSTS_MAX		64
#define TIMELY_LOOP_EDGES_MAX		(TIMELY_LOOP_HOSTS_MAX * (TIMELY_LOOP_HOSTS_MAX - 1) / 2)
/* Full credibility of an edge, Q16. */
#define TIMELY_LOOP_CREDIT_MAX		(1U << 16)
/* Bound that says nothing about the time, ns. */
#define TIMELY_LOOP_UNKNOWN_NS		0xffffffffU

/**
 * struct timely_loop_time - the common time by a host's clock; what hosts publish
 * @at_ns: reference point: a time by the host's clock, ns
 * @correction_ns: common time minus the host's clock at @at_ns, ns; wraps
 * @rate_q32: change of the correction per nanosecond of the host's clock, Q32, at most
 *	TIMELY_STRIP_DRIFT_MAX_Q32 up or down; a larger published value is refused
 * @bound_ns: error of the correction at @at_ns that 99.9 % of readings do not exceed, ns;
 *	TIMELY_LOOP_UNKNOWN_NS: the common time is not known
 * @growth_ppb: error of @rate_q32, ppb: growth of the bound per second
 * @wander_ppb_s: change of the rate per second to be expected, ppb/s
 * @scale: number of the common time that the host follows until it is settled; the lowest number of
 *	a neighbour replaces the own one
 * @settled: the host agrees with most of its neighbours
 */
struct timely_loop_time {
	u64 at_ns;
	s64 correction_ns;
	s64 rate_q32;
	u32 bound_ns;
	u32 growth_ppb;
	u32 wander_ppb_s;
	u32 scale;
	bool settled;
};

/**
 * struct timely_loop_peer - a neighbour, as the host sees it
 * @fresh: in: the fields below were measured and published in the last second; false: the peer does
 *	not count in this round
 * @offset_ns: in: the peer's clock minus the own clock at the time of the round, ns; wraps
 * @drift_q32: in: change of @offset_ns per nanosecond of the own clock, Q32
 * @error_ns: in: uncertainty of @offset_ns, ns: see timely_strip_uncertainty_ns()
 * @drift_error_ppb: in: error of @drift_q32, ppb
 * @wander_ppb_s: in: change of the drift per second to be expected, ppb/s
 * @time: in: what the peer published last, by the peer's clock
 * @surplus_ns: out: surplus of the loops through this edge: the common time by the peer minus the
 *	own one before the round, ns, within +-2^60
 * @agrees: out: the peer was used in the last round
 * @credit_q16: credibility of the edge, Q16: 0 to TIMELY_LOOP_CREDIT_MAX; starts at half, and moves
 *	by an eighth of the rest in each round
 * @excluded: out: the peer lies or its path is asymmetric: its credibility fell below a quarter,
 *	and has not reached three quarters since
 *
 * timely_loop_peer_init() sets the initial state.
 */
struct timely_loop_peer {
	bool fresh;
	s64 offset_ns;
	s64 drift_q32;
	u32 error_ns;
	u32 drift_error_ppb;
	u32 wander_ppb_s;
	struct timely_loop_time time;
	s64 surplus_ns;
	bool agrees;
	u32 credit_q16;
	bool excluded;
};

/**
 * enum timely_loop_verdict - the result of a round of averaging
 * @TIMELY_LOOP_AVERAGED: the correction moved towards the average of the neighbours that agree
 * @TIMELY_LOOP_JUMPED: the correction was set to that of the neighbours: the host joined, or its
 *	clock was stepped
 * @TIMELY_LOOP_ALONE: no neighbour is fresh and credible: the correction goes on with its rate, and
 *	the bound grows
 * @TIMELY_LOOP_SPLIT: no majority of the neighbours agree: the correction is unchanged
 * @TIMELY_LOOP_VERDICTS: number of values above
 */
enum timely_loop_verdict {
	TIMELY_LOOP_AVERAGED,
	TIMELY_LOOP_JUMPED,
	TIMELY_LOOP_ALONE,
	TIMELY_LOOP_SPLIT,
	TIMELY_LOOP_VERDICTS
};

/**
 * struct timely_loop - the state of a host
 * @time: the common time, to be published after each round
 * @rest_q16: part of the correction below 1 ns, Q16
 * @variance_q8: variance of the correction by the surpluses, mean of several rounds, ns^2, Q8
 * @rate_variance_q8: variance of the rate, the same, ppb^2, Q8
 * @spread_ns: in the last round, median distance of the neighbours' surpluses from their median, ns
 * @used: number of neighbours used in the last round
 * @calm: number of rounds in a row in which the host moved by little, at most 8: then it is settled
 * @fixed: the host's own time is the common time: it keeps its correction; set by the caller
 * @counts: number of rounds by verdict
 */
struct timely_loop {
	struct timely_loop_time time;
	s64 rest_q16;
	u64 variance_q8;
	u64 rate_variance_q8;
	u32 spread_ns;
	u32 used;
	u32 calm;
	bool fixed;
	u64 counts[TIMELY_LOOP_VERDICTS];
};

/**
 * struct timely_loop_offset - a peer's clock relative to the own clock, by the common time
 * @offset_ns: the peer's clock minus the own clock, ns; wraps
 * @drift_q32: change of @offset_ns per nanosecond of the own clock, Q32
 * @bound_ns: error of @offset_ns that 99.9 % of readings do not exceed, ns;
 *	TIMELY_LOOP_UNKNOWN_NS: not known
 */
struct timely_loop_offset {
	s64 offset_ns;
	s64 drift_q32;
	u32 bound_ns;
};

void timely_loop_init(struct timely_loop *loop, u64 now_ns, s64 correction_ns, u32 scale);
void timely_loop_peer_init(struct timely_loop_peer *peer);
enum timely_loop_verdict timely_loop_round(struct timely_loop *loop,
					   struct timely_loop_peer *peers, u32 count, u64 now_ns);
s64 timely_loop_correction_ns(const struct timely_loop_time *time, u64 clock_ns);
u32 timely_loop_bound_ns(const struct timely_loop_time *time, u64 clock_ns);
void timely_loop_offset(const struct timely_loop_time *own, const struct timely_loop_time *peer,
			u64 now_ns, struct timely_loop_offset *offset);

/**
 * struct timely_loop_edge - an edge of a graph
 * @a: number of a host, below TIMELY_LOOP_HOSTS_MAX
 * @b: number of another host
 * @offset_ns: measured: clock of @b minus clock of @a, ns, within +-2^60
 * @loops: out: number of triangles that the edge is part of
 * @surplus_ns: out: median of the absolute surpluses of these triangles, ns; 0 if @loops is 0
 * @excluded: out: most triangles of this edge have a surplus far above that of most triangles of
 *	the graph; timely_loop_least_squares() ignores the edge
 * @residual_ns: out of timely_loop_least_squares(): @offset_ns minus the offset by all edges, ns
 */
struct timely_loop_edge {
	u16 a;
	u16 b;
	s64 offset_ns;
	u32 loops;
	u64 surplus_ns;
	bool excluded;
	s64 residual_ns;
};

/**
 * struct timely_loop_surplus - the distribution of the surpluses of all triangles of a graph
 * @loops: number of triangles
 * @p50_ns: median of the absolute surpluses, ns, at most 6 % too low
 * @p99_ns: 99th percentile of the absolute surpluses, ns, at most 6 % too low
 * @max_ns: largest absolute surplus, ns
 * @edges: number of edges that are in a triangle
 * @excluded: number of excluded edges
 */
struct timely_loop_surplus {
	u32 loops;
	u64 p50_ns;
	u64 p99_ns;
	u64 max_ns;
	u32 edges;
	u32 excluded;
};

/**
 * struct timely_loop_work - working memory for a graph, 14 KiB
 * @edge: number of the edge between two hosts, plus 1; 0: none
 * @degree: number of edges of each host
 * @counts: histogram of the surpluses of triangles
 * @rest_q16: least squares: offset of each host, Q16 below 1 ns
 */
struct timely_loop_work {
	u16 edge[TIMELY_LOOP_HOSTS_MAX][TIMELY_LOOP_HOSTS_MAX];
	u16 degree[TIMELY_LOOP_HOSTS_MAX];
	u32 counts[1024];
	s64 rest_q16[TIMELY_LOOP_HOSTS_MAX];
};

int timely_loop_triangles(struct timely_loop_edge *edges, u32 count,
			  struct timely_loop_work *work, struct timely_loop_surplus *surplus);
int timely_loop_least_squares(struct timely_loop_edge *edges, u32 count, u32 hosts,
			      struct timely_loop_work *work, s64 *offsets_ns);

#endif /* _TIMELY_ENGINE_CLOCK_LOOP_H */
