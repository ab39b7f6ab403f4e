/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Lookup of the kernel's tracepoints by name. The kernel does not export the symbols of the
 * tracepoints that these modules need. See net/timely/tracepoint.c.
 */
#ifndef _NET_TIMELY_TRACEPOINT_H
#define _NET_TIMELY_TRACEPOINT_H

struct tracepoint;

struct tracepoint *timely_tracepoint_find(const char *name);

#endif /* _NET_TIMELY_TRACEPOINT_H */
