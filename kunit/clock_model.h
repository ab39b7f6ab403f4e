/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated NIC, a simulated host, and the clock engine between them. Packets arrive at random
 * times, get timestamps of a NIC's clock that drifts and is stepped, and are handled by a host with
 * random delays. The engine sees the timestamps only; the model knows the true times and checks
 * each result of the engine against promises that must always hold. clock_kunit.c runs the model in
 * the kernel, user/clock_fuzz.c runs it longer in user space.
 */
#ifndef _KUNIT_CLOCK_MODEL_H
#define _KUNIT_CLOCK_MODEL_H

#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/types.h>

#include <timely/engine/clock.h>

/* Largest number of packets that wait for the host; further packets are lost. */
#define CLOCK_MODEL_PENDING	8192
#define CLOCK_MODEL_CPUS	8
/* The histogram of errors has bins of 2^1 ns, up to 8 us, and one for larger errors. */
#define CLOCK_MODEL_BINS	4096
#define CLOCK_MODEL_BIN_SHIFT	1

/* Distribution of the host's delays, from arrival to handling; see struct clock_model. */
enum clock_model_delay {
	CLOCK_DELAY_UNIFORM,		/* min_handling_ns to min_handling_ns + span_ns */
	CLOCK_DELAY_EXPONENTIAL,	/* min_handling_ns plus a mean of span_ns */
	CLOCK_DELAY_OUTLIERS,		/* uniform; 1 % of the delays are up to 5 ms */
	CLOCK_DELAY_CONSTANT,		/* min_handling_ns */
	CLOCK_DELAY_MODERATED,		/* until an interrupt, span_ns after the first packet */
};

/* What must always hold; clock_promises[] has the texts. */
enum clock_promise {
	CLOCK_NOT_LATER, CLOCK_NOT_EARLIER, CLOCK_ONLY_SURE, CLOCK_BOUNDS, CLOCK_ORDER,
	CLOCK_UNCERTAIN, CLOCK_RECOVERS, CLOCK_PROMISES
};

static const char * const clock_promises[CLOCK_PROMISES] = {
	[CLOCK_NOT_LATER] = "no good timestamp is later than the handling of its packet",
	[CLOCK_NOT_EARLIER] = "no good timestamp is earlier than the handling by more than gate_ns",
	[CLOCK_ONLY_SURE] = "timestamps are good only while the mapping is sure",
	[CLOCK_BOUNDS] = "drift, gate_ns, uncertainty and sure_ns of a mapping are within limits",
	[CLOCK_ORDER] = "blocks are in the order of the NIC's time",
	[CLOCK_UNCERTAIN] = "the uncertainty is known while the mapping is sure, and only then",
	[CLOCK_RECOVERS] = "after half a second of right timestamps the mapping is sure and right",
};

/**
 * struct clock_model_packet - a packet that the host has not handled yet
 * @handled_ns: when the host will handle the packet, true time
 * @arrived_ns: when the packet arrived, true time
 * @nic_ns: hardware timestamp of the packet
 */
struct clock_model_packet {
	u64 handled_ns;
	u64 arrived_ns;
	u64 nic_ns;
};

/**
 * struct clock_model - the simulation
 * @dice: state of the random numbers, not 0
 * @input: a fuzzer's bytes to use instead of random numbers
 * @left: number of bytes left in @input
 * @rate: packets per second
 * @delay: distribution of the host's delays
 * @min_handling_ns: minimum delay
 * @bias_ns: converted timestamps are expected to be later than the true time by this: by the
 *	least delay, which the engine cannot see, or by 0 where cross-timestamps show it
 * @span_ns: additional delay, depending on @delay
 * @late_ns: constant further delay of all packets, for a host that stops for a while
 * @cpus: CPUs that handle packets
 * @now_ns: true time of the last arrival
 * @host_offset_ns: host's clock minus true time
 * @nic_ns: the NIC's clock at @now_ns
 * @nic_rest: fraction of @nic_ns, in 10^-9 ns
 * @drift_ppb: drift of the NIC's clock against true time
 * @wander_ppb_s: change of the drift per second
 * @wander_rest: fraction of @drift_ppb, in 10^-9 ppb
 * @interrupt_ns: CLOCK_DELAY_MODERATED: end of the poll of the latest packet, true time
 * @pending: packets that have not been handled, a heap by @handled_ns
 * @count: number of packets in @pending
 * @clock: the engine
 * @map: the published mapping
 * @batches: one batch for each CPU
 * @total: judged timestamps
 * @good: timestamps with the verdict TIMELY_TSTAMP_GOOD
 * @unsure: timestamps with the verdict TIMELY_TSTAMP_UNSURE
 * @doubtful: timestamps with the verdict TIMELY_TSTAMP_DOUBTFUL
 * @worst_ns: largest error of a good timestamp
 * @wrong: good timestamps with an error above 1 us
 * @beyond: good timestamps with an error above the uncertainty
 * @sum_ns: sum of the signed errors of good timestamps
 * @bins: histogram of the errors of good timestamps
 * @taken: batches processed
 * @published: mappings published
 * @was_sure: the mapping was sure after the last packet
 * @sure_ns: when the mapping last became sure, host's time
 * @lost_ns: when the mapping last stopped being sure, host's time
 * @kept: how often each promise was checked
 * @broken: how often each promise was broken
 */
struct clock_model {
	u64 dice;
	const u8 *input;
	size_t left;
	u32 rate;
	enum clock_model_delay delay;
	u32 min_handling_ns;
	u32 bias_ns;
	u32 span_ns;
	u32 late_ns;
	u32 cpus;
	u64 now_ns;
	s64 host_offset_ns;
	u64 nic_ns;
	s64 nic_rest;
	s64 drift_ppb;
	s64 wander_ppb_s;
	s64 wander_rest;
	u64 interrupt_ns;
	struct clock_model_packet pending[CLOCK_MODEL_PENDING];
	u32 count;
	struct timely_clock clock;
	struct timely_clock_map map;
	struct timely_clock_batch batches[CLOCK_MODEL_CPUS];
	u64 total;
	u64 good;
	u64 unsure;
	u64 doubtful;
	s64 worst_ns;
	u64 wrong;
	u64 beyond;
	s64 sum_ns;
	u32 bins[CLOCK_MODEL_BINS + 1];
	u64 taken;
	u64 published;
	bool was_sure;
	u64 sure_ns;
	u64 lost_ns;
	u64 kept[CLOCK_PROMISES];
	u64 broken[CLOCK_PROMISES];
};

/* A random number, or one from three bytes of a fuzzer's input. */
static inline u64 clock_roll(struct clock_model *m)
{
	u64 x = m->dice;
	u32 i;

	if (m->left) {
		for (x = 0, i = 0; i < 3 && m->left; i++, m->left--)
			x = x << 8 | *m->input++;
		return x * 0x9e3779b97f4a7c15ULL;
	}
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	m->dice = x;
	return x * 0x2545f4914f6cdd1dULL;
}

/* A random number from 0 to @n - 1. */
static inline u32 clock_below(struct clock_model *m, u32 n)
{
	return (u32)(((clock_roll(m) >> 32) * n) >> 32);
}

/* An exponentially distributed number: @mean * ln 2 * (whole + u). Each step of whole has the
 * probability 1/2. u, from 0 to 1 in Q16, has the density 2^-u: random numbers u are drawn until
 * one is accepted with the probability 2^-u.
 */
static inline u64 clock_exponential(struct clock_model *m, u64 mean)
{
	u64 whole = 0, u, v;

	while (whole < 40 && clock_roll(m) >> 63)
		whole++;
	do {
		u = clock_roll(m) >> 48;
		v = clock_roll(m) >> 48;
		/* 2^-u = 1 - 0.6565 u + 0.1565 u^2, to 0.3 % */
	} while (v > 65536 - ((43024 * u) >> 16) + ((10256 * ((u * u) >> 16)) >> 16));
	/* ln 2 = 45426 / 65536 */
	return (mean * (((whole << 16) + u) * 45426 >> 16)) >> 16;
}

/* Count a promise as checked, and as broken if @kept is false. */
static inline void clock_promise(struct clock_model *m, enum clock_promise which, bool kept)
{
	m->kept[which]++;
	m->broken[which] += !kept;
}

/* ---- the clocks ---- */

/* Let @ns of true time pass: the NIC's clock runs on, and its drift wanders. */
static inline void clock_model_advance(struct clock_model *m, u64 ns)
{
	s64 rest = m->nic_rest + (s64)ns * m->drift_ppb;
	s64 whole = div64_s64(rest, 1000000000);

	m->nic_ns += ns + (u64)whole;
	m->nic_rest = rest - whole * 1000000000;
	m->now_ns += ns;
	m->wander_rest += (s64)ns * m->wander_ppb_s;
	whole = div64_s64(m->wander_rest, 1000000000);
	m->drift_ppb += whole;
	m->wander_rest -= whole * 1000000000;
}

/* ---- the host ---- */

/* A random delay of the host for a packet that arrives now. */
static inline u64 clock_model_delay(struct clock_model *m)
{
	switch (m->delay) {
	case CLOCK_DELAY_EXPONENTIAL:
		return m->min_handling_ns + clock_exponential(m, m->span_ns);
	case CLOCK_DELAY_OUTLIERS:
		if (clock_below(m, 100) == 0)
			return clock_below(m, 5000000);
		return m->min_handling_ns + clock_below(m, m->span_ns + 1);
	case CLOCK_DELAY_CONSTANT:
		return m->min_handling_ns;
	case CLOCK_DELAY_MODERATED:
		if (m->interrupt_ns < m->now_ns)
			m->interrupt_ns = m->now_ns + m->span_ns;
		/* The driver handles packets one after the other and takes 200 ns for each. */
		m->interrupt_ns += 200;
		return m->interrupt_ns - m->now_ns + m->min_handling_ns;
	default:
		return m->min_handling_ns + clock_below(m, m->span_ns + 1);
	}
}

/* Add a packet to the heap of pending packets. */
static inline void clock_model_push(struct clock_model *m, struct clock_model_packet p)
{
	u32 i = m->count++;

	while (i && m->pending[(i - 1) / 2].handled_ns > p.handled_ns) {
		m->pending[i] = m->pending[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	m->pending[i] = p;
}

/* Remove the pending packet that is handled first. */
static inline struct clock_model_packet clock_model_pop(struct clock_model *m)
{
	struct clock_model_packet first = m->pending[0], last = m->pending[--m->count];
	u32 i = 0, next;

	while ((next = 2 * i + 1) < m->count) {
		if (next + 1 < m->count &&
		    m->pending[next + 1].handled_ns < m->pending[next].handled_ns)
			next++;
		if (m->pending[next].handled_ns >= last.handled_ns)
			break;
		m->pending[i] = m->pending[next];
		i = next;
	}
	m->pending[i] = last;
	return first;
}

/* Add the error of a good timestamp to the statistics. */
static inline void clock_model_count(struct clock_model *m, s64 error, u64 host_ns)
{
	s64 size = error < 0 ? -error : error;

	m->sum_ns += error;
	m->worst_ns = max(m->worst_ns, size);
	m->wrong += size > 1000;
	m->beyond += size > timely_clock_uncertainty_ns(&m->map, host_ns);
	m->bins[min_t(s64, size >> CLOCK_MODEL_BIN_SHIFT, CLOCK_MODEL_BINS)]++;
}

/* Check the promises for every mapping. */
static inline void clock_model_check(struct clock_model *m)
{
	const struct timely_clock_track *track = &m->clock.tracks[m->clock.track];
	const struct timely_clock_map *map = &m->map;
	bool sure = map->state == TIMELY_CLOCK_SURE, order = true;
	u32 at = timely_clock_uncertainty_ns(map, map->host_ns), i;

	clock_promise(m, CLOCK_BOUNDS,
		      map->drift_q32 <= 1 << 22 && map->drift_q32 >= -(1 << 22) &&
		      map->gate_ns >= map->spread_ns && map->state <= TIMELY_CLOCK_DOUBT &&
		      (!sure || (map->uncertainty_ns <= 2000 && map->sure_ns &&
				 map->sure_ns <= 1000000001)));
	clock_promise(m, CLOCK_UNCERTAIN,
		      at == (sure ? map->uncertainty_ns : U32_MAX) &&
		      timely_clock_uncertainty_ns(map, map->host_ns + map->sure_ns + 1) ==
		      U32_MAX);
	for (i = 1; i < track->count; i++)
		order &= (s64)(track->blocks[i].nic_ns - track->blocks[i - 1].nic_ns) > 0;
	clock_promise(m, CLOCK_ORDER, order && track->count <= TIMELY_CLOCK_BLOCKS);
}

/* Check the promises for every good timestamp. */
static inline void clock_model_good(struct clock_model *m, u64 arrived_ns, u64 host_ns)
{
	clock_promise(m, CLOCK_NOT_LATER, (s64)(host_ns - arrived_ns) >= 0);
	clock_promise(m, CLOCK_NOT_EARLIER, host_ns - arrived_ns <= m->map.gate_ns);
	clock_promise(m, CLOCK_ONLY_SURE, m->map.state == TIMELY_CLOCK_SURE &&
		      (s64)(host_ns - m->map.host_ns) <= (s64)m->map.sure_ns);
}

/* The engine has changed the mapping: publish it. */
static inline void clock_model_publish(struct clock_model *m)
{
	m->map = m->clock.map;
	m->published++;
	clock_model_check(m);
}

/* Whether the mapping is sure at a time of the host. */
static inline bool clock_model_sure(const struct clock_model *m, u64 host_ns)
{
	return timely_clock_uncertainty_ns(&m->map, host_ns) != U32_MAX;
}

/* The host handles a packet: judges the timestamp, and adds the timestamp pair to the batch of a
 * random CPU. @truth_ns is the expected converted timestamp.
 */
static inline void clock_model_handle(struct clock_model *m, u64 nic_ns, u64 host_ns,
				      u64 truth_ns)
{
	struct timely_clock_batch *batch = &m->batches[m->cpus > 1 ? clock_below(m, m->cpus) : 0];
	u64 arrived_ns = 0;
	bool sure;

	m->total++;
	switch (timely_clock_judge(&m->map, nic_ns, host_ns, &arrived_ns)) {
	case TIMELY_TSTAMP_GOOD:
		m->good++;
		clock_model_good(m, arrived_ns, host_ns);
		clock_model_count(m, (s64)(arrived_ns - truth_ns), host_ns);
		break;
	case TIMELY_TSTAMP_UNSURE:
		m->unsure++;
		break;
	default:
		m->doubtful++;
	}
	if (timely_clock_batch_add(batch, &m->map, nic_ns, host_ns)) {
		m->taken++;
		if (timely_clock_take(&m->clock, batch))
			clock_model_publish(m);
	}
	sure = clock_model_sure(m, host_ns);
	if (sure && !m->was_sure)
		m->sure_ns = host_ns;
	if (!sure && m->was_sure)
		m->lost_ns = host_ns;
	m->was_sure = sure;
}

/* The host handles all packets that are due until @until_ns, true time. */
static inline void clock_model_deliver(struct clock_model *m, u64 until_ns)
{
	struct clock_model_packet p;

	while (m->count && m->pending[0].handled_ns <= until_ns) {
		p = clock_model_pop(m);
		clock_model_handle(m, p.nic_ns, p.handled_ns + m->host_offset_ns,
				   p.arrived_ns + m->host_offset_ns + m->bias_ns);
	}
}

/* ---- actions of tests ---- */

/* Start with a NIC's clock without drift, one CPU and uniform delays of up to 100 us. @rate is in
 * packets per second.
 */
static inline void clock_model_init(struct clock_model *m, u64 seed, u32 rate)
{
	memset(m, 0, sizeof(*m));
	timely_clock_init(&m->clock);
	m->map = m->clock.map;
	m->dice = seed | 1ULL << 63;
	m->rate = rate;
	m->span_ns = 100000;
	m->cpus = 1;
	m->now_ns = 1000000000;
	m->nic_ns = 1600000000ULL * 1000000000;
}

/* A packet arrives after @gap_ns. */
static inline void clock_model_arrive(struct clock_model *m, u64 gap_ns)
{
	struct clock_model_packet p;

	clock_model_advance(m, gap_ns);
	p.arrived_ns = m->now_ns;
	p.nic_ns = m->nic_ns;
	p.handled_ns = m->now_ns + clock_model_delay(m) + m->late_ns;
	clock_model_deliver(m, m->now_ns);
	if (m->count < CLOCK_MODEL_PENDING)
		clock_model_push(m, p);
}

/* Let @ns pass, in which packets arrive at random times. */
static inline void clock_model_run(struct clock_model *m, u64 ns)
{
	u64 end_ns = m->now_ns + ns, gap;

	for (;;) {
		gap = 1 + clock_exponential(m, div_u64(1000000000, m->rate));
		if (m->now_ns + gap > end_ns)
			break;
		clock_model_arrive(m, gap);
	}
	clock_model_advance(m, end_ns - m->now_ns);
	clock_model_deliver(m, m->now_ns);
}

/* Let @ns pass without arrivals. All pending packets are handled first. */
static inline void clock_model_pause(struct clock_model *m, u64 ns)
{
	clock_model_deliver(m, U64_MAX);
	clock_model_advance(m, ns);
}

/* Take a cross-timestamp; the host's two times are @width_ns apart. */
static inline void clock_model_cross_timestamp(struct clock_model *m, u32 width_ns)
{
	u64 before_ns = m->now_ns + m->host_offset_ns - clock_below(m, width_ns + 1);

	if (timely_clock_cross_timestamp(&m->clock, before_ns, m->nic_ns, before_ns + width_ns))
		clock_model_publish(m);
}

/* Reset the statistics, but not the promises. */
static inline void clock_model_recount(struct clock_model *m)
{
	m->total = 0;
	m->good = 0;
	m->unsure = 0;
	m->doubtful = 0;
	m->worst_ns = 0;
	m->wrong = 0;
	m->beyond = 0;
	m->sum_ns = 0;
	memset(m->bins, 0, sizeof(m->bins));
}

/* The error that @permille of the good timestamps do not exceed, ns, rounded up to a bin's end. */
static inline u32 clock_model_error(const struct clock_model *m, u32 permille)
{
	u64 seen = 0;
	u32 i;

	for (i = 0; i < CLOCK_MODEL_BINS; i++) {
		seen += m->bins[i];
		if (seen * 1000 >= m->good * permille)
			break;
	}
	return (i + 1) << CLOCK_MODEL_BIN_SHIFT;
}

#endif /* _KUNIT_CLOCK_MODEL_H */
