/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The window rules in floating point, for rate_fuzz.c. Include this file after the definitions of
 * now, seen, promise() and clamped(). A result of the engine is compared only where its rounding
 * errors do not decide between an increase and a decrease.
 */
#ifndef _KUNIT_USER_WINDOW_MODEL_H
#define _KUNIT_USER_WINDOW_MODEL_H

#define WINDOW_TINY	0.0000002
#define POWER_UNIT	(1.0 / (1 << 24))

/* Whether at least an RTT has passed since the last decrease or update of the window. */
static bool window_is_due(void)
{
	u64 passed = now.c.now_ns - now.before.updated_ns;
	u32 recent = now.before.recent_ns;

	return passed >= recent || U32_MAX - recent + passed >= seen.rtt;
}

/* Time since the last decrease or update of the window after the completion, if it was @changed. */
static void check_recent(bool changed)
{
	u64 passed = now.c.now_ns - now.before.updated_ns;
	u32 recent = now.before.recent_ns;

	recent = passed >= recent ? 0 : recent - (u32)passed;
	promise(STATE, now.after.recent_ns == (changed ? U32_MAX : recent), recent);
}

static void check_window_rate(double want, double slack)
{
	want = clamped(want, now.cfg.min_rate_fp * U, now.cfg.max_rate_fp * U);
	promise(AMOUNT, fabs(now.after.rate_fp * U - want) <= slack + 2 * U,
		(u64)(want * 65536));
}

/* Swift's target, ns, for a window in packets. @a is its coefficient, ns. */
static double swift_target(double cwnd, double a)
{
	return now.p.rtt_ref_ns + max(a * (1 / sqrt(max(cwnd, 0.1)) - 0.1), 0.0);
}

static void check_swift(void)
{
	u32 last = now.before.prev_rtt_ns ?: now.p.min_rtt_ns;
	double a = floor(now.p.rtt_ref_ns * 5.0 * 0.326554);
	double bytes = now.before.rate_fp * U * last / 1000000000;
	double packet = 4294967296.0 / now.cfg.inv_packet;
	double cwnd = bytes / packet, blur = WINDOW_TINY + 2 / bytes / (1 << 24);
	double over = seen.rtt - swift_target(cwnd, a);
	double vague = a * 4 * (blur + 0.000001) + 0.01, factor;

	if (fabs(over) <= vague)
		return;
	if (over < 0) {
		check_recent(false);
		if (now.c.may_rise && !now.c.app_limited) {
			bytes += now.c.bytes / max(cwnd, 1.0);
			blur += now.c.bytes / max(cwnd, 1.0) / bytes *
				(0.000001 + sqrt(cwnd) / (1 << 30) + 2 * blur);
		}
	} else if (window_is_due()) {
		check_recent(true);
		factor = max(1 - now.cfg.beta_q16 * U * over / seen.rtt,
			     1 - now.cfg.loss_beta_q16 * U);
		bytes *= factor;
		blur += (now.cfg.beta_q16 * U * vague / seen.rtt + WINDOW_TINY) / factor;
	} else {
		check_recent(false);
	}
	check_window_rate(bytes / seen.rtt * 1000000000, bytes / seen.rtt * 1000000000 * blur);
}

/* Smoothed power after the completion. */
static double powertcp_power(double *slack)
{
	const struct timely_rate *b = &now.before;
	double tau = now.p.min_rtt_ns, length = seen.rtt / tau, power, part;
	double dt = b->seeded ? min(now.c.now_ns - b->updated_ns, U32_MAX) : tau;

	part = max(seen.raw + dt, dt / 2) / max(dt, tau);
	power = min(part, 65536.0) * length;
	power += max(0.0, 1 - dt / tau) * b->power_q24 * POWER_UNIT;
	*slack = power * 4 * WINDOW_TINY + POWER_UNIT * (3 + length);
	return min(power, 256.0);
}

static void check_powertcp(void)
{
	double rate = now.before.rate_fp * U, gamma = now.cfg.alpha_q16 * U, want, slack;
	double power = powertcp_power(&slack);
	bool due = window_is_due();

	promise(STATE, fabs(now.after.power_q24 * POWER_UNIT - power) <= slack, (u64)(power * 1e6));
	check_recent(due);
	if (!due) {
		promise(AMOUNT, now.after.rate_fp == now.before.rate_fp, now.before.rate_fp);
		return;
	}
	power = max(power, 0.5);
	want = gamma * (rate / power + now.p.delta_kbps * 125.0) + (1 - gamma) * rate;
	slack = gamma * rate / power * (slack / power + WINDOW_TINY) + 4 * U;
	if (!now.c.may_rise)
		want = min(want, rate);
	check_window_rate(want, slack);
}

#endif /* _KUNIT_USER_WINDOW_MODEL_H */
