// SPDX-License-Identifier: GPL-2.0
/*
 * Defines the trace events of tcp_timely, which tcp_timely.c and tcp_timely_path.c raise.
 */

#define CREATE_TRACE_POINTS
#include <trace/events/timely.h>
