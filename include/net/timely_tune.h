/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parameters that nobody gave: derived from what a connection knows of its path.
 */
#ifndef _NET_TIMELY_TUNE_H
#define _NET_TIMELY_TUNE_H

#include <linux/types.h>

#include <net/timely_params.h>

/* A round trip counts towards the path's for one to two times this. */
#define TIMELY_BASE_HALF_NS	5000000000ULL

/**
 * struct timely_path - what a connection knows of its path
 * @base_rtt_ns: the least round trip of late, 0 if none is known
 * @line_kbps: of the device that it leaves by, 0 if not known
 * @mss: bytes of payload in a packet
 */
struct timely_path {
	u32 base_rtt_ns;
	u32 line_kbps;
	u32 mss;
};

void timely_tune(struct timely_params *params, const struct timely_path *path);

#endif /* _NET_TIMELY_TUNE_H */
