/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The steering rule, for the rate engine. See net/timely/engine/steer.c.
 */
#ifndef _TIMELY_ENGINE_STEER_H
#define _TIMELY_ENGINE_STEER_H

#include "rate.h"

/* Of a message so much is its beginning, KB. */
#define TIMELY_STEER_FRESH_KB	128U

void timely_steer_law_init(struct timely_rate_law *law, const struct timely_params *params);
u32 timely_steer_ref_ns(const struct timely_rate_law *law, u64 rate_fp);
s64 timely_steer_fp(struct timely_rate *r, const struct timely_rate_law *law,
		    const struct timely_completion *c, u32 rtt);

#endif /* _TIMELY_ENGINE_STEER_H */
