// SPDX-License-Identifier: GPL-2.0
/*
 * Defines the trace events of On-Ramp, which onramp_flow.c and onramp.c raise.
 */

#define CREATE_TRACE_POINTS
#include <trace/events/timely_onramp.h>
