/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints of the kernel's own that modules may join, but that no symbol names.
 */
#ifndef _NET_TIMELY_TRACEPOINT_H
#define _NET_TIMELY_TRACEPOINT_H

struct tracepoint;

struct tracepoint *timely_tracepoint_find(const char *name);

#endif /* _NET_TIMELY_TRACEPOINT_H */
