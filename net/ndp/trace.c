// SPDX-License-Identifier: GPL-2.0
/*
 * Defines the trace events of NDP, and raises those that are found by comparing a connection before
 * and after an event: the engines know no trace events.
 */

#include "ndp.h"

#define CREATE_TRACE_POINTS
#include <trace/events/ndp.h>

/* A bit for each path that is left out. */
static u32 ndp_paths_out(const struct ndp_sock *ndp, u64 now_ns)
{
	u32 out = 0, i;

	for (i = 0; i < NDP_PATHS; i++)
		if (ndp->path_memory[i].out_until_ns > now_ns)
			out |= BIT(i);
	return out;
}

/**
 * ndp_trace_begin() - remember the state of a connection if ndp_repair or ndp_path_out is traced
 * @sk: the socket, under the connection's lock
 * @before: what ndp_trace_changes() compares with
 * @now_ns: current time
 */
void ndp_trace_begin(struct sock *sk, struct ndp_before *before, u64 now_ns)
{
	before->known = trace_ndp_repair_enabled() || trace_ndp_path_out_enabled();
	if (!before->known)
		return;
	before->stats = ndp_sk(sk)->sender.stats;
	before->paths_out = ndp_paths_out(ndp_sk(sk), now_ns);
}

/**
 * ndp_trace_changes() - raise ndp_repair and ndp_path_out
 * @sk: the socket, under the connection's lock
 * @before: from ndp_trace_begin()
 * @now_ns: as in ndp_trace_begin()
 */
void ndp_trace_changes(struct sock *sk, const struct ndp_before *before, u64 now_ns)
{
	struct ndp_sock *ndp = ndp_sk(sk);
	const struct net *net = sock_net(sk);
	u32 out, i;

	if (!before->known)
		return;
	if (ndp->sender.stats.lost != before->stats.lost)
		trace_ndp_repair(net, &ndp->key, &ndp->sender, &before->stats);
	out = ndp_paths_out(ndp, now_ns) & ~before->paths_out;
	for (i = 0; i < NDP_PATHS; i++)
		if (out & BIT(i))
			trace_ndp_path_out(net, &ndp->key, &ndp->path_memory[i], i,
					   ndp_net_port(i), now_ns);
}
