// SPDX-License-Identifier: GPL-2.0
/*
 * What users see of a connection: the answer to the netlink command TIMELY_CMD_CONNECTION_GET, for
 * `timelyctl flows`.
 *
 * The state of a connection is read without a lock of the socket: a value may be older than another
 * by an ACK. On 32-bit machines, the two halves of a 64-bit value may be of different times.
 */

#include <net/tcp.h>

#include <net/timely_flow.h>
#include <timely/engine/target_delay.h>

#include "tcp_timely.h"

/* Lowest rate that a parameter allows, 1 kbit/s, as in timely_rate.rate_fp. */
#define TIMELY_RATE_LEAST_FP	(125ULL << TIMELY_RATE_SHIFT)

static u8 timely_info_state(const struct sock *sk, const struct timely_flow *flow,
			    const struct timely_cfg *cfg)
{
	const struct timely_sock *ts = inet_csk_ca(sk);
	u8 state = 0;

	if (READ_ONCE(ts->rate.start_kb))
		state |= TIMELY_STATE_STARTING;
	if (ts->counted)
		state |= TIMELY_STATE_SENDING;
	if (READ_ONCE(ts->ca_state) >= TCP_CA_Recovery)
		state |= TIMELY_STATE_RECOVERY;
	if (ts->path && timely_probe_rtt_is_on(&flow->path.probe, ktime_get_ns()))
		state |= TIMELY_STATE_PROBE;
	if (timely_flow_rates_lag(flow))
		state |= TIMELY_STATE_LAG;
	if (ts->path && flow->path.apart)
		state |= TIMELY_STATE_APART;
	if (READ_ONCE(ts->rate.rate_fp) <= cfg->rate.min_rate_fp)
		state |= TIMELY_STATE_MINIMUM;
	if (ts->path && timely_ack_wait_is_known(&flow->path.ack_wait))
		state |= TIMELY_STATE_ACK_WAIT;
	return state;
}

static void timely_info_counts(const struct timely_flow *flow, struct timely_connection *connection)
{
	u32 i;

	for (i = 0; i < TIMELY_CUTS; i++)
		connection->cuts[i] = READ_ONCE(flow->path.cuts[i]);
	for (i = 0; i < TIMELY_REJECTIONS; i++)
		connection->rejected[i] = READ_ONCE(flow->path.rejected[i]);
}

/**
 * timely_describe() - describe a connection, see timely_flow_describe
 * @sk: the socket, which may end, or change its congestion control, meanwhile
 * @flow: the connection's entry
 * @connection: the description
 *
 * Return: false if the socket has changed its congestion control.
 */
bool timely_describe(const struct sock *sk, const struct timely_flow *flow,
		     struct timely_connection *connection)
{
	const struct tcp_congestion_ops *ops = READ_ONCE(inet_csk(sk)->icsk_ca_ops);
	const struct timely_sock *ts = inet_csk_ca(sk);
	u64 rate_fp = READ_ONCE(ts->rate.rate_fp);
	const struct timely_cfg *cfg;

	BUILD_BUG_ON(TIMELY_RTT_too_long - TIMELY_RTT_retransmitted + 1 != TIMELY_REJECTIONS);
	/* timely_sock.source, an enum timely_rtt_result, is shown as TIMELY_SOURCE_*. */
	BUILD_BUG_ON((int)TIMELY_RTT_hardware != TIMELY_SOURCE_HARDWARE);
	BUILD_BUG_ON((int)TIMELY_RTT_driver != TIMELY_SOURCE_DRIVER);
	BUILD_BUG_ON((int)TIMELY_RTT_tcp != TIMELY_SOURCE_TCP);
	if (!timely_is_ours(ops))
		return false;
	cfg = ts->path ? &flow->path.cfg : &timely_param_set_of(sk, ops)->cfg;
	strscpy(connection->control, ops->name, sizeof(connection->control));
	connection->rate_Bps = rate_fp >> TIMELY_RATE_SHIFT;
	connection->pacing_Bps = READ_ONCE(sk->sk_pacing_rate);
	connection->rtt_age_ns = READ_ONCE(ts->rate.updated_ns) ?
				 timely_rate_age_ns(&ts->rate, ktime_get_ns()) : U64_MAX;
	connection->source = ts->source;
	connection->rtt_ns = READ_ONCE(ts->rate.prev_rtt_ns);
	connection->base_rtt_ns = cfg->rate.min_rtt_ns;
	if (cfg->rate.rule == TIMELY_RULE_TARGET_DELAY)
		connection->target_ns = timely_target_ref_ns(&cfg->rate,
							     max(rate_fp, TIMELY_RATE_LEAST_FP)) -
					cfg->rate.min_rtt_ns;
	connection->t_high_ns = cfg->rate.t_high_ns;
	connection->link_kbps = cfg->link_kbps;
	connection->ack_wait_ns = ts->path ? READ_ONCE(flow->path.ack_wait_ns) : 0;
	connection->state = timely_info_state(sk, flow, cfg);
	timely_info_counts(flow, connection);
	return true;
}
