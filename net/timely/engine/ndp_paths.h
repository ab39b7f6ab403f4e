/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The paths of an NDP sender: which path a packet takes, and which paths are left out for a while.
 * See net/timely/engine/ndp_paths.c.
 */
#ifndef _TIMELY_ENGINE_NDP_PATHS_H
#define _TIMELY_ENGINE_NDP_PATHS_H

#include <linux/types.h>

/* Most paths of a list. A fat tree for 432 hosts has 36 paths between two pods. */
#define TIMELY_NDP_MAX_PATHS	256

/**
 * struct timely_ndp_path - the scoreboard of one path
 * @out_until_ns: the path is left out until this time; 0: it is in use
 * @acks: ACKs of packets on this path, halved from time to time
 * @nacks: NACKs and returned packets of this path, halved with @acks
 * @losses: lost packets of this path, halved with @acks
 * @strikes: how often the path was left out lately; each time lasts twice as long as the one before
 * @order: an entry of the list: the number of a path, independent of this path
 */
struct timely_ndp_path {
	u64 out_until_ns;
	u16 acks;
	u16 nacks;
	u16 losses;
	u8 strikes;
	u8 order;
};

/**
 * struct timely_ndp_paths - the paths to one destination
 * @paths: memory of the caller, an element for each path
 * @random: state of the random numbers, not 0
 * @answers: number of answers since the scoreboard was last halved
 * @count: number of paths, 1 to TIMELY_NDP_MAX_PATHS
 * @at: number of paths of the list that this round has used
 * @used: number of paths in the list: those that are not left out
 * @outliers: how often a path was left out
 */
struct timely_ndp_paths {
	struct timely_ndp_path *paths;
	u64 random;
	u32 answers;
	u16 count;
	u16 at;
	u16 used;
	u32 outliers;
};

int timely_ndp_paths_init(struct timely_ndp_paths *p, struct timely_ndp_path *memory, u32 count,
			  u64 seed);
u32 timely_ndp_paths_next(struct timely_ndp_paths *p, u64 now_ns, u32 avoid);
void timely_ndp_paths_ack(struct timely_ndp_paths *p, u32 path);
void timely_ndp_paths_nack(struct timely_ndp_paths *p, u32 path);
void timely_ndp_paths_loss(struct timely_ndp_paths *p, u32 path);

#endif /* _TIMELY_ENGINE_NDP_PATHS_H */
