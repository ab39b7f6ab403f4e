/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels in the arguments of tracepoints.
 */
#ifndef _TIMELY_COMPAT_PROBE_H
#define _TIMELY_COMPAT_PROBE_H

/* Whether the packet of tcp_probe is const: a probe must be just that. */
#ifdef HAVE_TCP_PROBE_CONST
#define TIMELY_PROBE_CONST	const
#else
#define TIMELY_PROBE_CONST
#endif

#endif /* _TIMELY_COMPAT_PROBE_H */
