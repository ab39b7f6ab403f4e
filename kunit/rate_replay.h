/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replays the sequences of rate_vectors.h on the rate engine, and compares each result with that of
 * reference.py. rate_kunit.c uses this file, in the kernel and in user space.
 */
#ifndef _TIMELY_RATE_REPLAY_H
#define _TIMELY_RATE_REPLAY_H

#include <linux/math64.h>

#include <timely/engine/rate.h>

#include "rate_vectors.h"

/**
 * struct timely_miss - the first wrong row of a sequence
 * @what: the wrong value
 * @row: index of the row in the sequence
 * @got: the engine's value
 * @want: the reference's value
 */
struct timely_miss {
	const char *what;
	u32 row;
	u64 got;
	u64 want;
};

/* Whether two rates, bytes per second, Q16, differ by at most @tolerance_ppm of @want. */
static inline bool timely_rate_is_near(u64 got, u64 want, u32 tolerance_ppm)
{
	u64 off = got > want ? got - want : want - got;

	/* No overflow: 800 Gb/s in Q16 times 255 is less than a tenth of 2^64. */
	return off <= div_u64(want * tolerance_ppm, 1000000);
}

/* Pass the event of a row to the engine. Return: the zone of the last completion. */
static inline enum timely_zone
timely_replay_row(struct timely_rate *r, const struct timely_rate_cfg *cfg,
		  const struct timely_vector *v, u64 *now_ns)
{
	enum timely_zone zone = TIMELY_ZONE_NONE;
	struct timely_completion c = {
		.rtt_ns = v->rtt_ns,
		.bytes = v->bytes,
		.may_rise = v->may_rise,
	};
	u32 i;

	switch (v->op) {
	case TIMELY_V_SYNC:
		r->rate_fp = v->rate_fp;
		break;
	case TIMELY_V_INIT:
		timely_rate_init(r, cfg);
		break;
	case TIMELY_V_RESEED:
		timely_rate_reseed(r);
		break;
	case TIMELY_V_LOSE:
		timely_rate_loss(r, cfg);
		break;
	case TIMELY_V_RESTART:
		timely_rate_restart(r, cfg);
		break;
	default:
		for (i = 0; i < v->repeat; i++) {
			*now_ns += v->gap_ns;
			c.now_ns = *now_ns;
			zone = timely_rate_update(r, cfg, &c);
		}
	}
	return zone;
}

/* Replay a sequence. Return: false if a result is wrong; @miss is set then. */
static inline bool timely_replay(const struct timely_sequence *s,
				 struct timely_miss *miss)
{
	u64 now_ns = TIMELY_VECTORS_START_NS;
	struct timely_rate_cfg cfg;
	enum timely_zone zone;
	struct timely_rate r;
	u32 i;

	timely_rate_cfg_init(&cfg, s->params);
	timely_rate_init(&r, &cfg);
	for (i = 0; i < s->count; i++) {
		const struct timely_vector *v = &s->vectors[i];

		zone = timely_replay_row(&r, &cfg, v, &now_ns);
		if (zone != v->zone)
			*miss = (struct timely_miss){ "zone", i, zone, v->zone };
		else if (r.hai != v->hai)
			*miss = (struct timely_miss){ "HAI counter", i, r.hai, v->hai };
		else if (!timely_rate_is_near(r.rate_fp, v->rate_fp, v->tolerance_ppm))
			*miss = (struct timely_miss){ "rate", i, r.rate_fp, v->rate_fp };
		else
			continue;
		return false;
	}
	return true;
}

#endif /* _TIMELY_RATE_REPLAY_H */
