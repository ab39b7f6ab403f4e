/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rule of theta-PowerTCP, which rate.c calls. See net/timely/engine/powertcp.c.
 */
#ifndef _TIMELY_ENGINE_POWERTCP_H
#define _TIMELY_ENGINE_POWERTCP_H

#include "rate.h"

u64 timely_powertcp_fp(struct timely_rate *r, const struct timely_rate_cfg *cfg,
		       const struct timely_completion *c, u32 rtt);

#endif /* _TIMELY_ENGINE_POWERTCP_H */
