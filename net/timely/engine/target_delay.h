/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The target-delay rule. rate.c calls these functions; tcp_timely also calls
 * timely_target_ref_ns(). See net/timely/engine/target_delay.c.
 */
#ifndef _TIMELY_ENGINE_TARGET_DELAY_H
#define _TIMELY_ENGINE_TARGET_DELAY_H

#include "rate.h"

/* The first 128 KB of a message are the start of the message, with a higher target delay. */
#define TIMELY_TARGET_START_KB	128U

void timely_target_cfg_init(struct timely_rate_cfg *cfg, const struct timely_params *params);
u32 timely_target_ref_ns(const struct timely_rate_cfg *cfg, u64 rate_fp);
s64 timely_target_fp(struct timely_rate *r, const struct timely_rate_cfg *cfg,
		     const struct timely_completion *c, u32 rtt);

#endif /* _TIMELY_ENGINE_TARGET_DELAY_H */
