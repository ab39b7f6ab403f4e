// SPDX-License-Identifier: GPL-2.0
/*
 * What the window rules, Swift and theta-PowerTCP, need besides the rate. tcp_timely.c calls these
 * functions; the rules are in net/timely/engine/swift.c and powertcp.c.
 *
 * With a window rule, the window limits a connection as in the papers, and the connection is paced
 * at the rate that follows from the window. With Swift, the rate is the window divided by the last
 * RTT. If the RTT has grown since, this rate is too high, and the window keeps the connection from
 * sending more than a window per RTT. theta-PowerTCP's rate is the window divided by the base RTT,
 * which the window allows for on an empty path only.
 *
 * Differences from the papers (Documentation/deviations.md lists all):
 *  - Swift's windows of one packet and more are paced, too. TCP's window is in whole packets, and
 *    has a minimum.
 *  - The base RTT is measured, in base-RTT probes.
 */

#include <linux/math64.h>
#include <linux/minmax.h>
#include <net/tcp.h>

#include <net/timely_cfg.h>
#include <net/timely_flow.h>
#include <timely/engine/rate.h>
#include <timely/engine/swift.h>

#include "tcp_timely.h"

/* Smallest window, packets. A receiver acknowledges every second packet, and might delay its ACK of
 * a single packet by 40 ms. Swift's pacing rate limits connections whose window is smaller.
 */
#define TIMELY_WINDOW_MIN	2

/* Upper limit of the window, packets: the rule's window, rounded. Rounded up, the windows of many
 * connections would make a longer queue than the rules allow for.
 */
u32 timely_window_packets(const struct timely_sock *ts, const struct timely_cfg *cfg)
{
	u64 bytes = timely_rate_window(&ts->rate, &cfg->rate) + ts->mss / 2;

	return max_t(u32, timely_packets(ts, bytes), TIMELY_WINDOW_MIN);
}

/* Pacing rate in a base-RTT probe before the reduction, bytes per second: for a window rule, the
 * window divided by TCP's smoothed RTT before the probe. While RTTs fall in the probe, the same
 * window allows for higher rates, and the queue would not drain. For other rules, the rate.
 *
 * The connection has a flow entry.
 */
u64 timely_window_probe_Bps(const struct timely_sock *ts, const struct timely_cfg *cfg)
{
	u32 rtt_ns = ts->flow->path.window_rtt_ns;
	u64 window;

	if (!timely_rate_has_window(&cfg->rate) || !rtt_ns)
		return timely_rate_Bps(&ts->rate);
	window = min_t(u64, timely_rate_window(&ts->rate, &cfg->rate), U32_MAX);
	return div_u64(window * NSEC_PER_SEC, rtt_ns);
}

/* TCP's timer has expired: decrease Swift's window if this timeout follows another timeout. The
 * last of TIMELY_SWIFT_TIMEOUTS in a row decreases the rate to the minimum. Return: whether the
 * rate was decreased.
 */
bool timely_window_timeout(struct sock *sk, const struct timely_cfg *cfg)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	struct timely_sock *ts = inet_csk_ca(sk);

	if (cfg->rate.rule != TIMELY_RULE_SWIFT || !icsk->icsk_retransmits)
		return false;
	if (icsk->icsk_retransmits + 1 < TIMELY_SWIFT_TIMEOUTS)
		timely_rate_loss(&ts->rate, &cfg->rate);
	else
		timely_rate_minimum(&ts->rate, &cfg->rate);
	return true;
}
