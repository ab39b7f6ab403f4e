/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock engine: maps the clock of a NIC to the host's clock. clock.c explains the method, and
 * clock_fit.c computes the mapping. net/timely/nic_clock.c uses the engine in the kernel.
 *
 * Each packet with a hardware timestamp gives a timestamp pair ("pair" for short): the hardware
 * timestamp and the time at which the host handled the packet. The height of a pair is the host's
 * time minus the hardware timestamp that the mapping has converted to the host's clock. The code
 * calls the height of a single packet's pair its residual.
 *
 * For each packet, a CPU checks the hardware timestamp with a copy of the mapping, and adds the
 * pair to the CPU's own batch. The functions for this are inline and take no lock. The caller
 * passes batches that are due, and cross-timestamps, to the engine under a lock. Time is an
 * argument, and nothing is allocated.
 */
#ifndef _TIMELY_ENGINE_CLOCK_H
#define _TIMELY_ENGINE_CLOCK_H

#include <linux/types.h>

/* Number of blocks of time of which the engine keeps the lowest pair. */
#define TIMELY_CLOCK_BLOCKS		64

/* A timestamp further than this (18 minutes) from the mapping's reference point cannot be
 * converted: the product with the drift would not fit in 64 bits.
 */
#define TIMELY_CLOCK_RANGE_NS		(1LL << 40)
/* Result of timely_clock_residual() for a timestamp out of this range: lower than any residual. */
#define TIMELY_CLOCK_NOWHERE		(-(1LL << 62))

/**
 * enum timely_clock_state - how reliable a mapping is
 * @TIMELY_CLOCK_NONE: no pair has been received, or no pair since timely_clock_forget()
 * @TIMELY_CLOCK_LEARNING: there is a mapping, but its error may be above 0.5 us, the limit for a
 *	mapping to become sure (1.5 us once all blocks are in use)
 * @TIMELY_CLOCK_SURE: the error of converted times is within the mapping's uncertainty
 * @TIMELY_CLOCK_DOUBT: pairs contradict a mapping that was sure: either the host handles
 *	packets late, or a clock was stepped; the pairs of the next 40 ms or so show which is true
 */
enum timely_clock_state {
	TIMELY_CLOCK_NONE,
	TIMELY_CLOCK_LEARNING,
	TIMELY_CLOCK_SURE,
	TIMELY_CLOCK_DOUBT,
};

/**
 * enum timely_clock_verdict - whether a hardware timestamp is usable
 * @TIMELY_TSTAMP_GOOD: the timestamp can be converted to the host's clock
 * @TIMELY_TSTAMP_UNSURE: the mapping is not sure, or the mapping is unreliable and the timestamp
 *	contradicts it: use a driver timestamp
 * @TIMELY_TSTAMP_DOUBTFUL: the timestamp contradicts a sure and reliable mapping, or the mapping is
 *	in doubt and reliable: use no timestamp of this packet
 */
enum timely_clock_verdict {
	TIMELY_TSTAMP_GOOD,
	TIMELY_TSTAMP_UNSURE,
	TIMELY_TSTAMP_DOUBTFUL,
};

/**
 * struct timely_clock_map - the mapping, as it is needed for each packet
 * @nic_ns: reference point of the mapping by the NIC's clock, ns
 * @host_ns: the reference point by the host's clock, CLOCK_MONOTONIC, ns
 * @drift_q32: host nanoseconds per NIC nanosecond, minus one, Q32
 * @sure_ns: the mapping is sure until this long after @host_ns
 * @below_ns: a timestamp contradicts the mapping if the packet was handled more than @below_ns
 *	before the converted timestamp
 * @gate_ns: a timestamp contradicts the mapping if the packet was handled more than @gate_ns after
 *	the converted timestamp
 * @spread_ns: 31 of 32 packets are handled within this time after their converted timestamps
 * @high_ns: a batch is due if it has TIMELY_CLOCK_HIGH_PAIRS or more pairs, all higher than this
 * @batch_ns: a batch is due when its pairs have been collected for this long
 * @uncertainty_ns: error of a converted time at the reference point, not exceeded with 99 %
 *	probability
 * @growth_ppb: growth of the uncertainty with time, ns per second
 * @batch_pairs: a batch is due when it has this many pairs
 * @epoch: changes when the engine starts another mapping; batches with an older epoch are discarded
 * @state: enum timely_clock_state
 * @unreliable: pairs have shown again and again that the mapping was wrong, so the reason why a
 *	timestamp contradicts the mapping need not be that the host handles packets late
 *
 * The structure fits in one cache line of 64 bytes. The caller publishes copies of it under a
 * sequence count.
 */
struct timely_clock_map {
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
	bool unreliable;
};

/* A batch with fewer pairs is not due for their heights: all of them may be high by chance. */
#define TIMELY_CLOCK_HIGH_PAIRS		32

/**
 * struct timely_clock_batch - timestamp pairs that a CPU has collected
 * @nic_ns: the lowest pair: hardware timestamp
 * @host_ns: the lowest pair: time by the host's clock
 * @min_ns: the lowest pair: height above the mapping, negative if the pair is below it, ns
 * @since_ns: when the batch was last emptied, by the host's clock
 * @last_ns: the latest pair: time by the host's clock
 * @count: number of pairs in the batch
 * @above: number of these pairs whose height exceeds timely_clock_map.spread_ns
 * @epoch: epoch of the mapping that the pairs were compared with
 *
 * The initial state is all zero.
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
 * struct timely_clock_block - the lowest pair in a block of time
 * @nic_ns: the pair's hardware timestamp
 * @host_ns: the pair's time by the host's clock
 * @opened_ns: start of the block, by the host's clock
 * @pairs: number of pairs in the block, at most 2^20
 */
struct timely_clock_block {
	u64 nic_ns;
	u64 host_ns;
	u64 opened_ns;
	u32 pairs;
};

/**
 * struct timely_clock_track - the blocks that a mapping is fitted to
 * @blocks: oldest first; the last one is still open
 * @count: number of blocks
 *
 * When the track is full, its oldest block is removed if that block is older than 8 s. Else the two
 * neighbouring blocks that are shortest relative to their age are merged. So old blocks are long
 * and recent blocks are short.
 */
struct timely_clock_track {
	struct timely_clock_block blocks[TIMELY_CLOCK_BLOCKS];
	u32 count;
};

/**
 * struct timely_clock - the clock engine's state of a NIC
 * @map: the mapping, which the caller publishes
 * @track: index in @tracks of the track that the mapping is fitted to
 * @density: mean height of the lowest of n pairs above the true mapping, times n, ns. A large value
 *	means that few pairs are close to the mapping. 0 if not known
 * @drift_error_ppb: error of @map.drift_q32, ppb
 * @wander_ppb_s: change of the drift per second, ppb/s
 * @mark_ns: when the drift was last recorded to measure @wander_ppb_s, by the host's clock
 * @mark_drift_q32: drift at @mark_ns, Q32
 * @mark_error_ppb: error of @mark_drift_q32, ppb
 * @run_pairs: pairs in the present test of a sure mapping; in doubt, pairs of the last batch
 * @run_min_ns: lowest height of the @run_pairs pairs; in a test, minus error and @min_handling_ns
 * @evidence: accumulated height of pairs that are too high, ns times pairs, to be compared with
 *	@density; in doubt, the lowest height since the doubt started, ns
 * @spread_pairs: pairs since the spread was last computed
 * @spread_above: number of the @spread_pairs pairs that were higher than the spread
 * @doubted_ns: start of the doubt, by the host's clock
 * @doubt_pairs: pairs since the doubt started, or since the last batch in @below
 * @below: batches with a pair below the mapping, from the one that started the doubt on
 * @near: batches with a pair close to the mapping since the doubt started
 * @scatter: sum of the estimates of @density from @scatters neighbouring batches in doubt, ns
 * @scatters: number of estimates in @scatter
 * @min_handling_ns: minimum handling delay: height of the lowest pairs above the mapping, measured
 *	with cross-timestamps; 0 if not known
 * @anchored: the mapping was made from a cross-timestamp, and @min_handling_ns is not known yet
 * @cross_nic_ns: the cross-timestamp that is kept to compute a drift: time by the NIC's clock
 * @cross_host_ns: the kept cross-timestamp: middle of its interval, by the host's clock
 * @cross_width_ns: the kept cross-timestamp: length of its interval plus 1, ns; 0: none is kept
 * @stepped: a clock or its drift was stepped; cleared by two cross-timestamps or a sure mapping
 * @wrongs: how often doubts have ended with another mapping, each within two seconds of the one
 *	before; at most 3
 * @wrong_ns: when a doubt last ended with another mapping, by the host's clock
 * @steps: number of detected steps of the NIC's or the host's clock
 * @doubts: number of doubts that ended without a clock step
 * @restarts: how often the mapping was started again
 * @pairs: number of pairs received
 * @cross_timestamps: number of cross-timestamps, except for those whose interval was too long or
 *	that came before the first pair
 * @blocks: number of attempts to fit the mapping; most are made when a block is opened
 * @tracks: @tracks[@track] has the pairs that the mapping is fitted to, the other track the pairs
 *	since the doubt started
 * @x: working memory of the fit: time of each block relative to the newest, ns of the NIC's clock
 * @y: working memory of the fit: height of each block's lowest pair above the mapping, ns
 * @n: working memory of the fit: pairs of each block
 * @hull: working memory of the fit: indices of blocks on the lower convex hull, newest first
 */
struct timely_clock {
	struct timely_clock_map map;
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
	u32 min_handling_ns;
	bool anchored;
	u64 cross_nic_ns;
	u64 cross_host_ns;
	u32 cross_width_ns;
	bool stepped;
	u32 wrongs;
	u64 wrong_ns;
	u32 steps;
	u32 doubts;
	u32 restarts;
	u64 pairs;
	u64 cross_timestamps;
	u64 blocks;
	struct timely_clock_track tracks[2];
	s64 x[TIMELY_CLOCK_BLOCKS];
	s64 y[TIMELY_CLOCK_BLOCKS];
	u32 n[TIMELY_CLOCK_BLOCKS];
	u16 hull[TIMELY_CLOCK_BLOCKS];
};

void timely_clock_init(struct timely_clock *clock);
bool timely_clock_take(struct timely_clock *clock,
		       struct timely_clock_batch *batch);
bool timely_clock_cross_timestamp(struct timely_clock *clock, u64 before_ns,
				  u64 nic_ns, u64 after_ns);
void timely_clock_forget(struct timely_clock *clock);
u32 timely_clock_uncertainty_ns(const struct timely_clock_map *map, u64 now_ns);

/**
 * timely_clock_residual() - compute the height of a timestamp pair
 * @map: the mapping
 * @nic_ns: hardware timestamp of the packet
 * @host_ns: when the host handled the packet
 *
 * Return: @host_ns minus the converted timestamp, ns, negative if @host_ns is earlier;
 * TIMELY_CLOCK_NOWHERE if the timestamp is out of the mapping's range.
 */
static inline s64 timely_clock_residual(const struct timely_clock_map *map,
					u64 nic_ns, u64 host_ns)
{
	s64 since = (s64)(nic_ns - map->nic_ns);
	s64 gain, residual;

	if (since > TIMELY_CLOCK_RANGE_NS || since < -TIMELY_CLOCK_RANGE_NS)
		return TIMELY_CLOCK_NOWHERE;
	gain = (since * map->drift_q32) >> 32;
	residual = (s64)(host_ns - map->host_ns - (u64)since - (u64)gain);
	if (residual > -TIMELY_CLOCK_NOWHERE || residual < TIMELY_CLOCK_NOWHERE)
		return TIMELY_CLOCK_NOWHERE;
	return residual;
}

/**
 * timely_clock_verdict() - judge a hardware timestamp with a known residual
 * @map: a copy of the published mapping
 * @residual_ns: height of the timestamp pair, from timely_clock_residual()
 * @host_ns: when the host handled the packet; if the mapping is not sure at this time, the
 *	verdict is TIMELY_TSTAMP_UNSURE
 * @arrived_ns: set to the packet's time of arrival by the host's clock if the verdict is
 *	TIMELY_TSTAMP_GOOD; else unchanged
 *
 * Return: the verdict.
 */
static inline enum timely_clock_verdict
timely_clock_verdict(const struct timely_clock_map *map, s64 residual_ns,
		     u64 host_ns, u64 *arrived_ns)
{
	if (map->state < TIMELY_CLOCK_SURE ||
	    (s64)(host_ns - map->host_ns) > (s64)map->sure_ns)
		return TIMELY_TSTAMP_UNSURE;
	if (map->state == TIMELY_CLOCK_DOUBT || residual_ns < -(s64)map->below_ns ||
	    residual_ns > (s64)map->gate_ns)
		return map->unreliable ? TIMELY_TSTAMP_UNSURE : TIMELY_TSTAMP_DOUBTFUL;
	/* A packet cannot be handled before it arrives. */
	*arrived_ns = host_ns - (residual_ns > 0 ? (u64)residual_ns : 0);
	return TIMELY_TSTAMP_GOOD;
}

/**
 * timely_clock_judge() - judge a hardware timestamp, and convert it to the host's clock
 * @map: a copy of the published mapping
 * @nic_ns: hardware timestamp of a packet
 * @host_ns: when the host handled the packet; if the mapping is not sure at this time, the
 *	verdict is TIMELY_TSTAMP_UNSURE
 * @arrived_ns: set to the packet's time of arrival by the host's clock if the verdict is
 *	TIMELY_TSTAMP_GOOD; else unchanged
 *
 * Return: the verdict.
 */
static inline enum timely_clock_verdict
timely_clock_judge(const struct timely_clock_map *map, u64 nic_ns,
		   u64 host_ns, u64 *arrived_ns)
{
	return timely_clock_verdict(map, timely_clock_residual(map, nic_ns, host_ns),
				    host_ns, arrived_ns);
}

/**
 * timely_clock_batch_note() - add a timestamp pair with a known residual to a batch
 * @batch: this CPU's batch
 * @map: a copy of the published mapping
 * @residual_ns: height of the pair, from timely_clock_residual()
 * @nic_ns: hardware timestamp of a packet
 * @host_ns: when the host handled the packet
 *
 * Return: true if the batch is due. The caller then passes the batch to timely_clock_take() under
 * the clock's lock. If another CPU has the lock, the caller need not wait: the batch stays due, and
 * the next pair returns true again.
 */
static inline bool timely_clock_batch_note(struct timely_clock_batch *batch,
					   const struct timely_clock_map *map,
					   s64 residual_ns, u64 nic_ns, u64 host_ns)
{
	if (!batch->count || batch->epoch != map->epoch) {
		batch->epoch = map->epoch;
		batch->count = 0;
		batch->above = 0;
	}
	if (!batch->count || residual_ns < batch->min_ns) {
		batch->nic_ns = nic_ns;
		batch->host_ns = host_ns;
		batch->min_ns = residual_ns;
	}
	batch->above += residual_ns > (s64)map->spread_ns;
	batch->last_ns = host_ns;
	batch->count++;
	/* @host_ns may be earlier than @since_ns, for example if another CPU read the time later
	 * but added its pair first. The difference wraps then and is large: the batch is due.
	 */
	return batch->count >= map->batch_pairs ||
	       host_ns - batch->since_ns >= map->batch_ns ||
	       batch->min_ns < -(s64)map->below_ns ||
	       (batch->min_ns > (s64)map->high_ns &&
		batch->count >= TIMELY_CLOCK_HIGH_PAIRS);
}

/**
 * timely_clock_batch_add() - add a timestamp pair to a batch
 * @batch: this CPU's batch
 * @map: a copy of the published mapping
 * @nic_ns: hardware timestamp of a packet
 * @host_ns: when the host handled the packet
 *
 * Return: true if the batch is due: see timely_clock_batch_note().
 */
static inline bool timely_clock_batch_add(struct timely_clock_batch *batch,
					  const struct timely_clock_map *map,
					  u64 nic_ns, u64 host_ns)
{
	return timely_clock_batch_note(batch, map,
				       timely_clock_residual(map, nic_ns, host_ns),
				       nic_ns, host_ns);
}

#endif /* _TIMELY_ENGINE_CLOCK_H */
