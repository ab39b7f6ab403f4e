/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What connections to the same destination tell each other of their path. See
 * net/timely/path.c.
 */
#ifndef _NET_TIMELY_PATH_H
#define _NET_TIMELY_PATH_H

#include <linux/types.h>

struct sock;
struct timely_late;

/* A round trip that was not measured: only to ask. */
#define TIMELY_PATH_ASK		U32_MAX

/**
 * struct timely_path_news - what connections hear of their path
 * @base_ns: its base RTT, as the connections on it know it; U32_MAX if they do not
 * @noise_ns: mean of what receivers are known to add to RTTs, 0 for nothing
 * @apart: the drains of the hosts that use it do not coincide
 */
struct timely_path_news {
	u32 base_ns;
	u32 noise_ns;
	bool apart;
};

/**
 * struct timely_path_drain - what a connection saw of a drain
 * @before_ns: its last RTT before
 * @rtt_ns: an RTT in the drain's second half
 * @base_ns: what it takes for the base RTT
 * @due_ns: the queue that it steers to
 */
struct timely_path_drain {
	u32 before_ns;
	u32 rtt_ns;
	u32 base_ns;
	u32 due_ns;
};

void timely_path_init(void);
void timely_path_tell(struct sock *sk, u64 now_ns, u32 rtt_ns, struct timely_path_news *news);
bool timely_path_drained(struct sock *sk, const struct timely_path_drain *drain);
void timely_path_forget(struct sock *sk);
void timely_path_late(struct sock *sk, const struct timely_late *late);

#endif /* _NET_TIMELY_PATH_H */
