// SPDX-License-Identifier: GPL-2.0
/*
 * The retransmission timer of tcp_timely's connections.
 *
 * The timer is TCP's: the kernel's implementation of RFC 6298, with tcp_rto_min and the route's
 * rto_min, doubled at each timeout. At each timeout, TCP calls timely_set_state(), and doubles
 * icsk_rto afterwards. timely_spread_timer() and timely_keep_rto() change icsk_rto before it is
 * doubled. Neither makes the next timer shorter than the timer that has just expired.
 * timely_resume_slowly() decreases the rate.
 */

#include <linux/math64.h>
#include <linux/random.h>
#include <net/tcp.h>

#include <timely/engine/rate.h>

#include "tcp_timely.h"

/* The random part of the first back-off is at most the timer divided by 2^2. */
#define TIMELY_SPREAD_SHIFT	2

/* Packets per smoothed RTT at which a connection resumes, see timely_resume_slowly(). */
#define TIMELY_RESUME_PACKETS	2

/* When a link fails, the connections over the link time out together, and their doubled timers
 * would expire together again. So the first back-off adds a random part to the timer. Later
 * back-offs double this part with the timer. RFC 6298 and RFC 8961 allow a longer timer.
 */
static void timely_spread_timer(struct inet_connection_sock *icsk)
{
	u32 most = max(icsk->icsk_rto >> TIMELY_SPREAD_SHIFT, 1U);

	icsk->icsk_rto += reciprocal_scale(get_random_u32(), most + 1);
}

/* Keep the timer as it is: halve icsk_rto, which TCP doubles afterwards. The halved icsk_rto is at
 * least the timer that TCP computes without back-off.
 *
 * icsk_backoff, the number of doublings, must agree with icsk_rto: for some ICMP messages, TCP
 * reverts one back-off (RFC 6069) and computes the timer from icsk_backoff.
 */
static void timely_keep_rto(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 base = max(__tcp_set_rto(tcp_sk(sk)), tcp_rto_min(sk));

	icsk->icsk_rto = max(DIV_ROUND_UP(icsk->icsk_rto, 2), base);
	icsk->icsk_backoff--;
}

/* TCP has entered the state TCP_CA_Loss: change the timer if the reason is a timeout.
 * @linear_timeouts is the number of successive timeouts, after the first, that do not double the
 * timer.
 *
 * TCP also enters TCP_CA_Loss if packets are too large for the path. Then a timer is pending; after
 * a timeout no timer is. The timer of a SYN, which has no RTT yet and few retransmissions, is not
 * changed. If the receiver's window is zero, the timer is always doubled, because the receiver
 * answers each retransmission.
 */
void timely_timer_loss(struct sock *sk, u32 linear_timeouts)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (icsk->icsk_pending || !tp->srtt_us)
		return;
	if (!icsk->icsk_backoff)
		timely_spread_timer(icsk);
	else if (tp->snd_wnd && icsk->icsk_retransmits &&
		 icsk->icsk_retransmits <= linear_timeouts)
		timely_keep_rto(sk);
}

/* The timer has expired. If the smoothed RTT is above t_high_ns, a connection with the target-delay
 * rule resumes with at most two packets per smoothed RTT. Where a thousand connections start at
 * once, many lose their first packets and time out together; at their shares of the hosts' links
 * they would overflow the port again. Return: whether the rate was decreased.
 */
bool timely_resume_slowly(struct sock *sk, const struct timely_cfg *cfg)
{
	u64 srtt_us = tcp_sk(sk)->srtt_us >> 3;
	struct timely_sock *ts = inet_csk_ca(sk);
	u64 bytes_fp;

	if (cfg->rate.rule != TIMELY_RULE_TARGET_DELAY ||
	    srtt_us * NSEC_PER_USEC <= cfg->rate.t_high_ns)
		return false;
	bytes_fp = (u64)TIMELY_RESUME_PACKETS * ts->mss << TIMELY_RATE_SHIFT;
	return timely_rate_limit(&ts->rate, &cfg->rate, div_u64(bytes_fp * USEC_PER_SEC, srtt_us));
}
