/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What connections on the same path report to each other about the path. A path is identified by
 * the peer's address, the network namespace and the device. See net/timely/path.c.
 */
#ifndef _NET_TIMELY_PATH_H
#define _NET_TIMELY_PATH_H

#include <linux/types.h>

struct sock;
struct timely_probe_sample;

/* A value in place of a reported RTT: the caller reports no RTT, and only reads the reports. */
#define TIMELY_PATH_ASK		U32_MAX

/**
 * struct timely_path_report - what connections reported about the path
 * @base_ns: base RTT of the path without the serialization time of a segment, ns; U32_MAX if not
 *	known
 * @ack_agg_ns: mean of what ACK aggregation adds to RTTs, ns; 0 if not known or not large enough to
 *	count
 * @apart: the base-RTT probes of the hosts on the path do not coincide
 */
struct timely_path_report {
	u32 base_ns;
	u32 ack_agg_ns;
	bool apart;
};

/**
 * struct timely_path_probe - what a connection measured in a base-RTT probe
 * @before_ns: last RTT before the probe, ns
 * @least_ns: lowest RTT since the report before the last one, ns
 * @rtt_ns: an RTT in the second half of the probe, ns
 * @base_ns: base RTT that the connection uses, ns
 * @due_ns: target delay of the connection, ns
 */
struct timely_path_probe {
	u32 before_ns;
	u32 least_ns;
	u32 rtt_ns;
	u32 base_ns;
	u32 due_ns;
};

void timely_path_init(void);
void timely_path_exchange(struct sock *sk, u64 now_ns, u32 rtt_ns,
			  struct timely_path_report *report);
bool timely_path_probed(struct sock *sk, const struct timely_path_probe *probe);
void timely_path_forget(struct sock *sk);
void timely_path_received(struct sock *sk, u64 now_ns);
bool timely_path_receives(struct sock *sk, u64 now_ns);
void timely_path_probe_sample(struct sock *sk, const struct timely_probe_sample *sample);

#endif /* _NET_TIMELY_PATH_H */
