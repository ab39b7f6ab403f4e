/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in the arguments of tracepoints. features.mk defines HAVE_*.
 */
#ifndef _TIMELY_COMPAT_PROBE_H
#define _TIMELY_COMPAT_PROBE_H

/* "const" if the tracepoint tcp_probe passes a const packet. A function on a tracepoint must have
 * the same types of arguments as the tracepoint.
 */
#ifdef HAVE_TCP_PROBE_CONST
#define TIMELY_PROBE_CONST	const
#else
#define TIMELY_PROBE_CONST
#endif

#endif /* _TIMELY_COMPAT_PROBE_H */
