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

void timely_path_init(void);
u32 timely_path_least_ns(struct sock *sk, u64 now_ns, u32 rtt_ns, u32 *noise_ns);
void timely_path_late(struct sock *sk, const struct timely_late *late);

#endif /* _NET_TIMELY_PATH_H */
