/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock of a NIC, told in the host's time: pure, told the time, allocating
 * nothing. See net/timely/engine/clock.c.
 */
#ifndef _TIMELY_ENGINE_CLOCK_H
#define _TIMELY_ENGINE_CLOCK_H

#include <linux/types.h>

/* Blocks of time whose lowest pairs the line is fitted to. */
#define TIMELY_CLOCK_BLOCKS		64

/* A stamp further than this from the line's point (18 minutes) says nothing. */
#define TIMELY_CLOCK_RANGE_NS		(1LL << 40)
/* What timely_clock_residual() says of it: below everything. */
#define TIMELY_CLOCK_NOWHERE		(-(1LL << 62))

/**
 * enum timely_clock_state - how far the line may be trusted
 * @TIMELY_CLOCK_NONE: no pair was seen
 * @TIMELY_CLOCK_LEARNING: there is a line, but it is not sure
 * @TIMELY_CLOCK_SURE: times on the line are good to its uncertainty
 * @TIMELY_CLOCK_DOUBT: pairs contradict a line that was sure: either the host
 *	is late, or a clock was stepped; milliseconds tell
 */
enum timely_clock_state {
	TIMELY_CLOCK_NONE,
	TIMELY_CLOCK_LEARNING,
	TIMELY_CLOCK_SURE,
	TIMELY_CLOCK_DOUBT,
};

/**
 * enum timely_clock_verdict - what a hardware stamp is worth
 * @TIMELY_STAMP_GOOD: its time on the host's clock is known
 * @TIMELY_STAMP_UNSURE: the line is not sure, use a software stamp
 * @TIMELY_STAMP_DOUBTFUL: the stamp contradicts a line that was sure: use
 *	nothing of this packet
 */
enum timely_clock_verdict {
	TIMELY_STAMP_GOOD,
	TIMELY_STAMP_UNSURE,
	TIMELY_STAMP_DOUBTFUL,
};

/**
 * struct timely_clock_line - the line, as each packet needs it
 * @nic_ns: a point of the line: time on the NIC's clock
 * @host_ns: and on the host's, CLOCK_MONOTONIC
 * @drift_q32: the host's nanoseconds for one of the NIC's, less one, Q32
 * @sure_ns: after this much of the host's time the line is sure no more
 * @below_ns: a packet handled earlier than this before its time on the line
 *	is doubtful
 * @gate_ns: and so is one handled later than this after it
 * @spread_ns: all but one packet of 32 are handled within this
 * @high_ns: a batch of a few pairs that are all later than this tells at once
 * @batch_ns: a batch goes to the clock when it is this old
 * @uncertainty_ns: of a time on the line at its point, 99 %
 * @growth_ppb: how fast it grows after that
 * @batch_pairs: or has so many pairs
 * @epoch: another one when what was known before is void
 * @state: enum timely_clock_state
 *
 * One cache line, to be copied under the caller's seqcount.
 */
struct timely_clock_line {
	u64 nic_ns;
	u64 host_ns;
	s64 drift_q32;
	u32 sure_ns;
	u32 below_ns;
	u32 gate_ns;
	u32 spread_ns;
	u32 high_ns;
	u32 batch_ns;
	u32 uncertainty_ns;
	u32 growth_ppb;
	u16 batch_pairs;
	u16 epoch;
	u8 state;
};

/* What a batch that is too high has at least. */
#define TIMELY_CLOCK_HIGH_PAIRS		32

/**
 * struct timely_clock_batch - pairs seen by one CPU since it last told
 * @nic_ns: NIC's time of the pair that is lowest above the line
 * @host_ns: and the host's
 * @min_ns: how far above the line that is
 * @since_ns: when the batch was last emptied, host's time
 * @last_ns: when the latest pair came
 * @count: pairs
 * @above: of them, how many were later than the line's spread
 * @epoch: of the line they were compared with
 *
 * To start with, all zero.
 */
struct timely_clock_batch {
	u64 nic_ns;
	u64 host_ns;
	s64 min_ns;
	u64 since_ns;
	u64 last_ns;
	u32 count;
	u32 above;
	u16 epoch;
};

/**
 * struct timely_clock_block - the lowest pair of a stretch of time
 * @nic_ns: NIC's time of it
 * @host_ns: and the host's
 * @opened_ns: when the stretch began, host's time
 * @pairs: how many pairs it was the lowest of
 */
struct timely_clock_block {
	u64 nic_ns;
	u64 host_ns;
	u64 opened_ns;
	u32 pairs;
};

/**
 * struct timely_clock_track - what a line is fitted to
 * @blocks: oldest first; the last one is still open
 * @count: how many there are
 *
 * When it is full, the two neighbours become one that are closest together for
 * their age: so far back they are long, the latest short.
 */
struct timely_clock_track {
	struct timely_clock_block blocks[TIMELY_CLOCK_BLOCKS];
	u32 count;
};

/**
 * struct timely_clock - all that is known of a NIC's clock
 * @line: what the caller publishes
 * @track: which of @tracks is behind the line
 * @density: of pairs above the line: the height that the lowest of some pairs
 *	has on average, times the pairs
 * @drift_error_ppb: how well the drift is known
 * @wander_ppb_s: how fast it changes, each second
 * @mark_ns: a time in the past, host's
 * @mark_drift_q32: the drift then
 * @mark_error_ppb: how well it is known
 * @run_pairs: pairs since the line was last tested; in doubt, of the last batch
 * @run_min_ns: the lowest height of them
 * @evidence: of pairs too high for the line, in heights times pairs; in doubt,
 *	the lowest height since
 * @spread_pairs: pairs since the spread was last looked at
 * @spread_above: of them, how many were above it
 * @doubted_ns: when the doubt arose, host's time
 * @doubt_pairs: pairs since, or since one was last seen below the line
 * @below: times that pairs were seen below the line since
 * @near: times that pairs were seen on it
 * @scatter: how widely heights scatter meanwhile, summed up
 * @scatters: over how many batches
 * @floor_ns: how far above the line the lowest pairs are, as brackets tell
 * @anchored: the line is a bracket's, and the floor not known yet
 * @bracket_nic_ns: NIC's time in the middle of a bracket some time ago
 * @bracket_host_ns: and the host's
 * @bracket_width_ns: how wide it was, 0 if there was none
 * @stepped: a clock was, or its drift; which is not known before two brackets
 *	or a sure line since
 * @steps: steps noticed of either clock
 * @doubts: doubts that came and went
 * @restarts: lines begun anew
 * @pairs: pairs of stamps seen
 * @brackets: cross-timestamps used
 * @blocks: blocks of time that the line was fitted after
 * @tracks: pairs behind the line, and those since it is in doubt
 * @x: scratch of the fit: block's time less the newest one's
 * @y: its height above the line
 * @n: its pairs
 * @hull: blocks on the lower hull, newest first
 */
struct timely_clock {
	struct timely_clock_line line;
	u32 track;
	u64 density;
	u64 drift_error_ppb;
	u64 wander_ppb_s;
	u64 mark_ns;
	s64 mark_drift_q32;
	u64 mark_error_ppb;
	u32 run_pairs;
	s64 run_min_ns;
	s64 evidence;
	u32 spread_pairs;
	u32 spread_above;
	u64 doubted_ns;
	u32 doubt_pairs;
	u32 below;
	u32 near;
	u32 scatters;
	u64 scatter;
	u32 floor_ns;
	bool anchored;
	u64 bracket_nic_ns;
	u64 bracket_host_ns;
	u32 bracket_width_ns;
	bool stepped;
	u32 steps;
	u32 doubts;
	u32 restarts;
	u64 pairs;
	u64 brackets;
	u64 blocks;
	struct timely_clock_track tracks[2];
	s64 x[TIMELY_CLOCK_BLOCKS];
	s64 y[TIMELY_CLOCK_BLOCKS];
	u32 n[TIMELY_CLOCK_BLOCKS];
	u8 hull[TIMELY_CLOCK_BLOCKS];
};

void timely_clock_init(struct timely_clock *clock);
bool timely_clock_take(struct timely_clock *clock,
		       struct timely_clock_batch *batch);
bool timely_clock_bracket(struct timely_clock *clock, u64 before_ns,
			  u64 nic_ns, u64 after_ns);
void timely_clock_forget(struct timely_clock *clock);
u32 timely_clock_uncertainty_ns(const struct timely_clock_line *line, u64 now_ns);

/**
 * timely_clock_residual() - how much later than on the line a packet was seen
 * @line: the line
 * @nic_ns: hardware stamp
 * @host_ns: when the host handled the packet
 *
 * Return: that, or TIMELY_CLOCK_NOWHERE if the line does not reach so far.
 */
static inline s64 timely_clock_residual(const struct timely_clock_line *line,
					u64 nic_ns, u64 host_ns)
{
	s64 since = (s64)(nic_ns - line->nic_ns);
	s64 gain, residual;

	if (since > TIMELY_CLOCK_RANGE_NS || since < -TIMELY_CLOCK_RANGE_NS)
		return TIMELY_CLOCK_NOWHERE;
	gain = (since * line->drift_q32) >> 32;
	residual = (s64)(host_ns - line->host_ns - (u64)since - (u64)gain);
	if (residual > -TIMELY_CLOCK_NOWHERE || residual < TIMELY_CLOCK_NOWHERE)
		return TIMELY_CLOCK_NOWHERE;
	return residual;
}

/**
 * timely_clock_verdict() - what a hardware stamp with a known residual is worth
 * @line: a copy of the published line
 * @residual_ns: timely_clock_residual()
 * @host_ns: when the host handled the packet, not long ago
 * @arrived_ns: when it arrived in the host's time, if the stamp is good
 *
 * Return: the verdict.
 */
static inline enum timely_clock_verdict
timely_clock_verdict(const struct timely_clock_line *line, s64 residual_ns,
		     u64 host_ns, u64 *arrived_ns)
{
	if (line->state < TIMELY_CLOCK_SURE ||
	    (s64)(host_ns - line->host_ns) > (s64)line->sure_ns)
		return TIMELY_STAMP_UNSURE;
	if (line->state == TIMELY_CLOCK_DOUBT || residual_ns < -(s64)line->below_ns ||
	    residual_ns > (s64)line->gate_ns)
		return TIMELY_STAMP_DOUBTFUL;
	/* It cannot have been handled before it came. */
	*arrived_ns = host_ns - (residual_ns > 0 ? (u64)residual_ns : 0);
	return TIMELY_STAMP_GOOD;
}

/**
 * timely_clock_judge() - what a hardware stamp is worth, in the host's time
 * @line: a copy of the published line
 * @nic_ns: the stamp
 * @host_ns: when the host handled the packet, not long ago
 * @arrived_ns: the stamp in the host's time, if it is good
 *
 * Return: the verdict.
 */
static inline enum timely_clock_verdict
timely_clock_judge(const struct timely_clock_line *line, u64 nic_ns,
		   u64 host_ns, u64 *arrived_ns)
{
	return timely_clock_verdict(line, timely_clock_residual(line, nic_ns, host_ns),
				    host_ns, arrived_ns);
}

/**
 * timely_clock_batch_note() - note a pair of stamps with a known residual
 * @batch: this CPU's batch
 * @line: a copy of the published line
 * @residual_ns: timely_clock_residual()
 * @nic_ns: hardware stamp of a packet
 * @host_ns: when the host handled it
 *
 * Return: true if the batch is due: give it to timely_clock_take() under the
 * clock's lock. If that is taken, go on: it stays due.
 */
static inline bool timely_clock_batch_note(struct timely_clock_batch *batch,
					   const struct timely_clock_line *line,
					   s64 residual_ns, u64 nic_ns, u64 host_ns)
{
	if (!batch->count || batch->epoch != line->epoch) {
		batch->epoch = line->epoch;
		batch->count = 0;
		batch->above = 0;
	}
	if (!batch->count || residual_ns < batch->min_ns) {
		batch->nic_ns = nic_ns;
		batch->host_ns = host_ns;
		batch->min_ns = residual_ns;
	}
	batch->above += residual_ns > (s64)line->spread_ns;
	batch->last_ns = host_ns;
	batch->count++;
	/* A host's clock that was set back makes it due too. */
	return batch->count >= line->batch_pairs ||
	       host_ns - batch->since_ns >= line->batch_ns ||
	       batch->min_ns < -(s64)line->below_ns ||
	       (batch->min_ns > (s64)line->high_ns &&
		batch->count >= TIMELY_CLOCK_HIGH_PAIRS);
}

/**
 * timely_clock_batch_add() - note a pair of stamps
 * @batch: this CPU's batch
 * @line: a copy of the published line
 * @nic_ns: hardware stamp of a packet
 * @host_ns: when the host handled it
 *
 * Return: true if the batch is due, see timely_clock_batch_note().
 */
static inline bool timely_clock_batch_add(struct timely_clock_batch *batch,
					  const struct timely_clock_line *line,
					  u64 nic_ns, u64 host_ns)
{
	return timely_clock_batch_note(batch, line,
				       timely_clock_residual(line, nic_ns, host_ns),
				       nic_ns, host_ns);
}

#endif /* _TIMELY_ENGINE_CLOCK_H */
