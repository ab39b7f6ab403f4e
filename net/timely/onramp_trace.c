// SPDX-License-Identifier: GPL-2.0
/*
 * Defines the trace event of On-Ramp, which onramp_flow.c raises.
 */

#define CREATE_TRACE_POINTS
#include <trace/events/timely_onramp.h>
