/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A simulated NIC, a simulated host and the clock engine between them: packets
 * come at random times, are stamped by a NIC's clock that drifts and is stepped,
 * and are handled by a host that is late by random delays. The engine sees the
 * stamps; the model knows the truth, and judges what the engine says of every
 * packet. clock_kunit.c runs it in the kernel, user/clock_fuzz.c and
 * user/clock_sim.c for longer in user space.
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

#define CLOCK_MODEL_PENDING	8192
#define CLOCK_MODEL_CPUS	8
/* Errors are counted in steps of 2^1 ns up to 8 us. */
#define CLOCK_MODEL_BINS	4096
#define CLOCK_MODEL_BIN_SHIFT	1

/* How late the host is. */
enum clock_model_delay {
	CLOCK_DELAY_UNIFORM,		/* 0 to span_ns */
	CLOCK_DELAY_EXPONENTIAL,	/* floor_ns and a mean of span_ns on top */
	CLOCK_DELAY_OUTLIERS,		/* uniform, 1 % up to 5 ms */
	CLOCK_DELAY_CONSTANT,		/* floor_ns */
	CLOCK_DELAY_MODERATED,		/* interrupts span_ns after the first packet */
};

enum clock_promise {
	CLOCK_NOT_LATER, CLOCK_NOT_EARLIER, CLOCK_ONLY_SURE, CLOCK_BOUNDS, CLOCK_ORDER,
	CLOCK_UNCERTAIN, CLOCK_RECOVERS, CLOCK_PROMISES
};

static const char * const clock_promises[CLOCK_PROMISES] = {
	[CLOCK_NOT_LATER] = "no packet arrives after it was handled",
	[CLOCK_NOT_EARLIER] = "nor longer before than the gate",
	[CLOCK_ONLY_SURE] = "stamps are good only while the line is sure",
	[CLOCK_BOUNDS] = "drift, gate, error and age of a line are within their bounds",
	[CLOCK_ORDER] = "blocks are in order of the NIC's time",
	[CLOCK_UNCERTAIN] = "the uncertainty is known exactly while the line is sure",
	[CLOCK_RECOVERS] = "after half a second of sane stamps the line is sure and right",
};

/**
 * struct clock_model_packet - a packet that was not handled yet
 * @handled_ns: when it will be, true time
 * @arrived_ns: when it came, true time
 * @nic_ns: its stamp
 */
struct clock_model_packet {
	u64 handled_ns;
	u64 arrived_ns;
	u64 nic_ns;
};

/**
 * struct clock_model - the simulation
 * @dice: state of the random numbers, not 0
 * @input: bytes to use first
 * @left: how many of them
 * @rate: packets a second
 * @delay: the shape of delays
 * @floor_ns: least delay
 * @bias_ns: errors are counted from this much after the truth: the floor, unless
 *	brackets tell it
 * @span_ns: what comes on top, by shape
 * @late_ns: comes on top of everything: a host that hiccups
 * @cpus: that handle packets
 * @now_ns: true time of the last arrival
 * @host_offset_ns: the host's clock less true time
 * @nic_ns: the NIC's clock at @now_ns
 * @nic_rest: and parts of 10^-9 ns
 * @drift_ppb: NIC's clock against true time
 * @wander_ppb_s: what the drift changes by each second
 * @wander_rest: parts of ppb
 * @interrupt_ns: moderation: when the next interrupt comes
 * @pending: packets that have not been handled, a heap
 * @count: how many
 * @clock: the engine
 * @line: as published
 * @batches: one for each CPU
 * @total: judged
 * @good: of these, by verdict
 * @unsure: of these, by verdict
 * @doubtful: of these, by verdict
 * @worst_ns: largest error of a good one
 * @wrong: good ones that were wrong by more than 1 us
 * @beyond: good ones further from the truth than the uncertainty
 * @sum_ns: of errors, signed
 * @bins: good ones by error
 * @taken: batches
 * @published: lines
 * @was_sure: after the last packet
 * @sure_ns: when it was last found sure that was not before, host's time
 * @lost_ns: when it was last found not sure that was before, host's time
 * @kept: how often each promise was put to the test
 * @broken: how often it was broken
 */
struct clock_model {
	u64 dice;
	const u8 *input;
	size_t left;
	u32 rate;
	enum clock_model_delay delay;
	u32 floor_ns;
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
	struct timely_clock_line line;
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

/* Below @n, which is less than 2^32. */
static inline u32 clock_below(struct clock_model *m, u32 n)
{
	return (u32)(((clock_roll(m) >> 32) * n) >> 32);
}

/* Exponentially distributed. Halvings are counted by coin; what is left lies
 * between a half and 1, as likely as 2^-u, which 1 - u / 2 is near to.
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

static inline void clock_promise(struct clock_model *m, enum clock_promise which, bool kept)
{
	m->kept[which]++;
	m->broken[which] += !kept;
}

/* ---- the clocks ---- */

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

static inline u64 clock_model_delay(struct clock_model *m)
{
	switch (m->delay) {
	case CLOCK_DELAY_EXPONENTIAL:
		return m->floor_ns + clock_exponential(m, m->span_ns);
	case CLOCK_DELAY_OUTLIERS:
		if (clock_below(m, 100) == 0)
			return clock_below(m, 5000000);
		return m->floor_ns + clock_below(m, m->span_ns + 1);
	case CLOCK_DELAY_CONSTANT:
		return m->floor_ns;
	case CLOCK_DELAY_MODERATED:
		if (m->interrupt_ns < m->now_ns)
			m->interrupt_ns = m->now_ns + m->span_ns;
		/* A packet takes 200 ns of the poll. */
		m->interrupt_ns += 200;
		return m->interrupt_ns - m->now_ns + m->floor_ns;
	default:
		return m->floor_ns + clock_below(m, m->span_ns + 1);
	}
}

static inline void clock_model_push(struct clock_model *m, struct clock_model_packet p)
{
	u32 i = m->count++;

	while (i && m->pending[(i - 1) / 2].handled_ns > p.handled_ns) {
		m->pending[i] = m->pending[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	m->pending[i] = p;
}

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

static inline void clock_model_count(struct clock_model *m, s64 error, u64 host_ns)
{
	s64 size = error < 0 ? -error : error;

	m->sum_ns += error;
	m->worst_ns = max(m->worst_ns, size);
	m->wrong += size > 1000;
	m->beyond += size > timely_clock_uncertainty_ns(&m->line, host_ns);
	m->bins[min_t(s64, size >> CLOCK_MODEL_BIN_SHIFT, CLOCK_MODEL_BINS)]++;
}

/* What holds of every line. */
static inline void clock_model_check(struct clock_model *m)
{
	const struct timely_clock_track *track = &m->clock.tracks[m->clock.track];
	const struct timely_clock_line *line = &m->line;
	bool sure = line->state == TIMELY_CLOCK_SURE, order = true;
	u32 at = timely_clock_uncertainty_ns(line, line->host_ns), i;

	clock_promise(m, CLOCK_BOUNDS,
		      line->drift_q32 <= 1 << 22 && line->drift_q32 >= -(1 << 22) &&
		      line->gate_ns >= line->spread_ns && line->state <= TIMELY_CLOCK_DOUBT &&
		      (!sure || (line->uncertainty_ns <= 2000 && line->sure_ns &&
				 line->sure_ns <= 1000000001)));
	clock_promise(m, CLOCK_UNCERTAIN,
		      at == (sure ? line->uncertainty_ns : U32_MAX) &&
		      timely_clock_uncertainty_ns(line, line->host_ns + line->sure_ns + 1) ==
		      U32_MAX);
	for (i = 1; i < track->count; i++)
		order &= (s64)(track->blocks[i].nic_ns - track->blocks[i - 1].nic_ns) > 0;
	clock_promise(m, CLOCK_ORDER, order && track->count <= TIMELY_CLOCK_BLOCKS);
}

/* What holds of every good stamp. */
static inline void clock_model_good(struct clock_model *m, u64 arrived_ns, u64 host_ns)
{
	clock_promise(m, CLOCK_NOT_LATER, (s64)(host_ns - arrived_ns) >= 0);
	clock_promise(m, CLOCK_NOT_EARLIER, host_ns - arrived_ns <= m->line.gate_ns);
	clock_promise(m, CLOCK_ONLY_SURE, m->line.state == TIMELY_CLOCK_SURE &&
		      (s64)(host_ns - m->line.host_ns) <= (s64)m->line.sure_ns);
}

/* The clock has told its line. */
static inline void clock_model_publish(struct clock_model *m)
{
	m->line = m->clock.line;
	m->published++;
	clock_model_check(m);
}

static inline bool clock_model_sure(const struct clock_model *m, u64 host_ns)
{
	return timely_clock_uncertainty_ns(&m->line, host_ns) != U32_MAX;
}

/* The host handles a packet that came at a time. */
static inline void clock_model_handle(struct clock_model *m, u64 nic_ns, u64 host_ns,
				      u64 truth_ns)
{
	struct timely_clock_batch *batch = &m->batches[m->cpus > 1 ? clock_below(m, m->cpus) : 0];
	u64 arrived_ns = 0;
	bool sure;

	m->total++;
	switch (timely_clock_judge(&m->line, nic_ns, host_ns, &arrived_ns)) {
	case TIMELY_STAMP_GOOD:
		m->good++;
		clock_model_good(m, arrived_ns, host_ns);
		clock_model_count(m, (s64)(arrived_ns - truth_ns), host_ns);
		break;
	case TIMELY_STAMP_UNSURE:
		m->unsure++;
		break;
	default:
		m->doubtful++;
	}
	if (timely_clock_batch_add(batch, &m->line, nic_ns, host_ns)) {
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

static inline void clock_model_deliver(struct clock_model *m, u64 until_ns)
{
	struct clock_model_packet p;

	while (m->count && m->pending[0].handled_ns <= until_ns) {
		p = clock_model_pop(m);
		clock_model_handle(m, p.nic_ns, p.handled_ns + m->host_offset_ns,
				   p.arrived_ns + m->host_offset_ns + m->bias_ns);
	}
}

/* ---- what tests do ---- */

static inline void clock_model_init(struct clock_model *m, u64 seed, u32 rate)
{
	memset(m, 0, sizeof(*m));
	timely_clock_init(&m->clock);
	m->line = m->clock.line;
	m->dice = seed | 1ULL << 63;
	m->rate = rate;
	m->span_ns = 100000;
	m->cpus = 1;
	m->now_ns = 1000000000;
	m->nic_ns = 1600000000ULL * 1000000000;
}

/* Packets come for so long. */
static inline void clock_model_run(struct clock_model *m, u64 ns)
{
	u64 end_ns = m->now_ns + ns, gap;
	struct clock_model_packet p;

	for (;;) {
		gap = 1 + clock_exponential(m, div_u64(1000000000, m->rate));
		if (m->now_ns + gap > end_ns)
			break;
		clock_model_advance(m, gap);
		p.arrived_ns = m->now_ns;
		p.nic_ns = m->nic_ns;
		p.handled_ns = m->now_ns + clock_model_delay(m) + m->late_ns;
		clock_model_deliver(m, m->now_ns);
		if (m->count < CLOCK_MODEL_PENDING)
			clock_model_push(m, p);
	}
	clock_model_advance(m, end_ns - m->now_ns);
	clock_model_deliver(m, m->now_ns);
}

/* Nothing comes for so long. */
static inline void clock_model_pause(struct clock_model *m, u64 ns)
{
	clock_model_deliver(m, U64_MAX);
	clock_model_advance(m, ns);
}

/* The NIC's clock is read, which takes the host so long. */
static inline void clock_model_bracket(struct clock_model *m, u32 width_ns)
{
	u64 before_ns = m->now_ns + m->host_offset_ns - clock_below(m, width_ns + 1);

	if (timely_clock_bracket(&m->clock, before_ns, m->nic_ns, before_ns + width_ns))
		clock_model_publish(m);
}

/* Forget what was counted. */
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

/* The error that so many in 1000 good ones keep within. */
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
