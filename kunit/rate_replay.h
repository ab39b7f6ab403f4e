/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replays the sequences of rate_vectors.h on the rate engine: for KUnit and for
 * the user-space tests alike.
 */
#ifndef _TIMELY_RATE_REPLAY_H
#define _TIMELY_RATE_REPLAY_H

#include <linux/math64.h>

#include <timely/engine/rate.h>

#include "rate_vectors.h"

/**
 * struct timely_miss - the first row of a sequence that came out wrong
 * @what: what of it
 * @row: which row, from 0
 * @got: what the engine made of it
 * @want: what the reference expects
 */
struct timely_miss {
	const char *what;
	u32 row;
	u64 got;
	u64 want;
};

static inline bool timely_rate_is_near(u64 got, u64 want, u32 tolerance_ppm)
{
	u64 off = got > want ? got - want : want - got;

	/* 800 Gb/s in Q16 times 100 is a tenth of what 64 bits hold. */
	return off <= div_u64(want * tolerance_ppm, 1000000);
}

static inline enum timely_zone
timely_replay_row(struct timely_rate *r, const struct timely_rate_law *law,
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
		timely_rate_init(r, law);
		break;
	case TIMELY_V_RESEED:
		timely_rate_reseed(r);
		break;
	case TIMELY_V_LOSE:
		timely_rate_lose(r, law);
		break;
	case TIMELY_V_RESTART:
		timely_rate_restart(r, law);
		break;
	default:
		for (i = 0; i < v->repeat; i++) {
			*now_ns += v->gap_ns;
			c.now_ns = *now_ns;
			zone = timely_rate_update(r, law, &c);
		}
	}
	return zone;
}

static inline bool timely_replay(const struct timely_sequence *s,
				 struct timely_miss *miss)
{
	u64 now_ns = TIMELY_VECTORS_START_NS;
	struct timely_rate_law law;
	enum timely_zone zone;
	struct timely_rate r;
	u32 i;

	timely_rate_law_init(&law, s->params);
	timely_rate_init(&r, &law);
	for (i = 0; i < s->count; i++) {
		const struct timely_vector *v = &s->vectors[i];

		zone = timely_replay_row(&r, &law, v, &now_ns);
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
