/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Swift's rule. rate.c calls these functions; tcp_timely calls timely_swift_cfg_packet(). See
 * net/timely/engine/swift.c.
 */
#ifndef _TIMELY_ENGINE_SWIFT_H
#define _TIMELY_ENGINE_SWIFT_H

#include "rate.h"

/* After this many successive timeouts, the window is set to its minimum. The paper names no number
 * (RETX_RESET_THRESHOLD); htsim, a public simulator, has 5.
 */
#define TIMELY_SWIFT_TIMEOUTS	5

void timely_swift_cfg_init(struct timely_rate_cfg *cfg, const struct timely_params *params);
void timely_swift_cfg_packet(struct timely_rate_cfg *cfg, u32 packet_bytes);
u64 timely_swift_fp(struct timely_rate *r, const struct timely_rate_cfg *cfg,
		    const struct timely_completion *c, u32 rtt);

#endif /* _TIMELY_ENGINE_SWIFT_H */
