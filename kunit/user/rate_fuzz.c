// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suites, then improbable completions under improbable parameters that
 * timely_params_check() accepts. The rate engine must keep its promises for any input. Built with
 * ASan and UBSan, which detect overflows and divisions by zero. A wrap of an unsigned 64-bit number
 * is not an error for them; it shows in the comparison with the same formulas in floating point.
 *
 *   rate_fuzz [SETS [SEED]]
 *
 * Runs SETS sets of parameters with STEPS completions each. Prints TAP. Built with
 * -DTIMELY_LIBFUZZER, the random numbers are the fuzzer's input.
 */
#include <math.h>

#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/math64.h>

#include <timely/engine/rate.h>
#include <timely/engine/swift.h>
#include <timely/engine/tune.h>

#define STEPS	256
#define U	(1.0 / 65536)

/* ---- random numbers ---- */

static struct {
	u64 state;
	const u8 *input;
	size_t left;
} dice;

static u64 roll(void)
{
	u64 x = 0;

#ifdef TIMELY_LIBFUZZER
	for (int i = 0; i < 4 && dice.left; i++, dice.left--)
		x = x << 8 | *dice.input++;
#else
	/* xorshift64* */
	x = dice.state;
	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	dice.state = x;
	x = x * 0x2545f4914f6cdd1dULL;
#endif
	return x;
}

static u32 below(u32 n)
{
	return (u32)((roll() >> 16 ^ roll() << 16) % n);
}

/* A number from low to high; any magnitude has the same probability. */
static u32 between(u32 low, u32 high)
{
	u32 span = high - low;

	if (!span)
		return low;
	switch (below(8)) {
	case 0:
		return low;
	case 1:
		return high;
	case 2:
		return low + (u32)((roll() & U32_MAX) % (1ULL + span));
	default:
		return low + (u32)((roll() & U32_MAX) % (1ULL + (span >> below(32))));
	}
}

static struct timely_params random_params(void)
{
	u32 i, preset = below(timely_preset_count + 6);
	struct timely_params p;

	if (preset < timely_preset_count) {
		p = timely_presets[preset].params;
		timely_tune(&p, &(struct timely_path){});
		return p;
	}
	for (i = 0; i < TIMELY_P_COUNT; i++)
		*timely_param_ref(&p, i) = between(timely_param_descs[i].min,
						   timely_param_descs[i].max);
	/* Most sets of parameters have all zones. */
	if (below(4)) {
		p.t_high_ns = (u32)min((u64)p.t_high_ns,
				       p.min_rtt_ns * (1 + between(0, 640) / 16ULL));
		p.t_high_ns = max(p.t_high_ns, 1000u);
	}
	p.t_low_ns = min(p.t_low_ns, p.t_high_ns);
	p.min_rate_kbps = min(p.min_rate_kbps, p.max_rate_kbps);
	return p;
}

static u32 random_rtt(const struct timely_params *p, u32 prev)
{
	u32 near[] = { p->t_low_ns, p->t_high_ns, p->rtt_ref_ns, p->min_rtt_ns, prev, prev };
	u32 at = near[below(ARRAY_SIZE(near))];

	switch (below(8)) {
	case 0:
		return between(0, U32_MAX);
	case 1:
		return (u32)(at + (s64)below(3) - 1);
	case 2:
		return at;
	default:
		return (u32)((s64)at + (s64)between(0, p->min_rtt_ns) - p->min_rtt_ns / 2);
	}
}

static u64 random_time(const struct timely_params *p, const struct timely_rate *r)
{
	switch (below(16)) {
	case 0:
		return roll() ^ roll() << 24 ^ roll() << 48;
	case 1:
		return r->updated_ns;
	case 2:
		return r->updated_ns - between(1, U32_MAX);
	case 3:
		return r->updated_ns + r->prev_rtt_ns - 1 + below(3);
	case 4:
		return r->updated_ns + p->min_rtt_ns;
	default:
		return r->updated_ns + between(0, p->min_rtt_ns) * (1ULL + below(3));
	}
}

/* From 0 to twice the flow's rate. */
static u64 random_rate_fp(const struct timely_rate *r)
{
	return r->rate_fp / 512 * below(1025);
}

static struct timely_completion random_completion(const struct timely_params *p,
						  const struct timely_rate *r)
{
	return (struct timely_completion){
		.now_ns = random_time(p, r),
		.rtt_ns = random_rtt(p, r->prev_rtt_ns),
		.bytes = below(4) ? between(1, 64 * p->segment_bytes) : between(0, U32_MAX),
		.may_rise = below(8) != 0,
		.app_limited = below(4) == 0,
		.ingress_q16 = below(2) ? 0 : below(65537),
		.both_ways = below(2),
		.opening_bytes = below(2) ? 0 : below((1 << 24) + 1),
		.delivered_fp = below(2) ? 0 : random_rate_fp(r),
	};
}

/* ---- promises ---- */

enum promise {
	BOUNDS, HALF, NO_RISE, SKIP, ZONE, STATE, AVERAGE, SIGN, COUNTER, AMOUNT, RTT_UP, TIME_UP,
	BYTES_UP, EVENTS, PROMISES
};

static const char * const promises[PROMISES] = {
	[BOUNDS] = "the rate stays between min_rate and max_rate",
	[HALF] = "a completion takes at most half of the rate, except with a window rule",
	[NO_RISE] = "the rate does not rise if it may not",
	[SKIP] = "once_per_rtt skips when it should, and changes nothing",
	[ZONE] = "the zone follows from the RTT",
	[STATE] = "the sample is stored",
	[AVERAGE] = "the smoothed difference is within one unit of the exact one",
	[SIGN] = "the rate changes in the direction that the zone requires",
	[COUNTER] = "the HAI counter counts as the mode says",
	[AMOUNT] = "the rate changes by as much as the formulas say",
	[RTT_UP] = "a larger RTT never makes a higher rate",
	[TIME_UP] = "more time never makes a smaller change",
	[BYTES_UP] = "more bytes never make a lower rate",
	[EVENTS] = "reseed, loss and restart set the state as documented",
};

static struct {
	struct timely_params p;
	struct timely_rate_cfg cfg;
	struct timely_rate before;
	struct timely_rate after;
	struct timely_completion c;
	enum timely_zone zone;
	u64 kept[PROMISES];
	u64 broken[PROMISES];
} now;

static void explain(enum promise promise, u64 want)
{
	const struct timely_rate *b = &now.before, *a = &now.after;
	u32 i;

	printf("# broken: %s\n", promises[promise]);
	for (i = 0; i < TIMELY_P_COUNT; i++)
		printf("# %s = %u%s", timely_param_descs[i].name,
		       *timely_param_ref(&now.p, i), i % 4 == 3 ? "\n" : " ");
	printf("\n# before: rate_fp %llu updated %llu diff_fp %lld prev %u hai %u seeded %u\n",
	       b->rate_fp, b->updated_ns, b->diff_fp, b->prev_rtt_ns, b->hai, b->seeded);
	printf("# completion: now %llu rtt %u bytes %u may_rise %d app_limited %d\n",
	       now.c.now_ns, now.c.rtt_ns, now.c.bytes, now.c.may_rise, now.c.app_limited);
	printf("# after: zone %d rate_fp %llu updated %llu diff_fp %lld prev %u hai %u; %llu\n",
	       now.zone, a->rate_fp, a->updated_ns, a->diff_fp, a->prev_rtt_ns, a->hai, want);
}

static void promise(enum promise which, bool kept, u64 want)
{
	now.kept[which]++;
	if (kept)
		return;
	if (!now.broken[which]++)
		explain(which, want);
#ifdef TIMELY_LIBFUZZER
	abort();
#endif
}

/* ---- the same formulas in floating point ---- */

/* Error of a fixed-point quotient in 1/65536. */
#define DOUBT	U
#define TINY	0.000000001

static struct {
	double g;		/* gradient, from the engine's average */
	double e;		/* elapsed share */
	u32 rtt;
	s64 raw;
	bool unsure;		/* rounding decides the gradient's sign, or w == 0 */
	bool steep;		/* w == 0 */
} seen;

static void see(void)
{
	const struct timely_rate *b = &now.before;
	u64 passed = now.c.now_ns - b->updated_ns;

	seen.rtt = max(now.c.rtt_ns, now.p.min_rtt_ns);
	seen.raw = b->seeded ? (s64)seen.rtt - b->prev_rtt_ns : 0;
	seen.e = !b->seeded || passed >= now.p.min_rtt_ns ? 1 :
		 (double)passed / now.p.min_rtt_ns;
	seen.g = now.after.diff_fp / 256.0 / now.p.min_rtt_ns;
	seen.steep = seen.g <= -0.25;
	seen.unsure = now.p.rule == TIMELY_RULE_PATCHED ? fabs(seen.g + 0.25) < 2 * DOUBT :
		      now.after.diff_fp && fabs(seen.g) < 2 * DOUBT;
}

/* The HAI counter that decides. */
static u32 counted(void)
{
	const struct timely_params *p = &now.p;
	bool falling;

	if (p->hai_count == TIMELY_HAI_INCREASES)
		return now.before.hai;
	if (p->hai_below_t_low && seen.rtt < p->t_low_ns)
		falling = true;
	else if (p->hai_count == TIMELY_HAI_RAW)
		falling = seen.raw < 0;
	else
		falling = p->rule == TIMELY_RULE_PATCHED ? seen.steep : seen.g < 0;
	return falling ? min(now.before.hai + 1, 255) : 0;
}

/* Whether that counter, or the number of steps, depends on rounding of the gradient. */
static bool is_rounding_decisive(void)
{
	const struct timely_params *p = &now.p;

	if (!seen.unsure)
		return false;
	if (seen.rtt < p->t_low_ns)
		return p->hai_count == TIMELY_HAI_SMOOTHED && !p->hai_below_t_low;
	return true;
}

static double whole_step(u32 hai)
{
	const struct timely_params *p = &now.p;
	bool hyper = p->hai_threshold && hai >= p->hai_threshold;
	double step = p->delta_kbps * 125.0;

	if (seen.rtt < p->t_low_ns)
		hyper = hyper && p->hai_below_t_low;
	else if (p->rule == TIMELY_RULE_PATCHED)
		hyper = hyper && seen.steep;
	if (p->scale_step)
		step *= min(16.0, (double)now.c.bytes / p->segment_bytes);
	return hyper ? step * p->hai_factor : step;
}

static double clamped(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

#include "window_model.h"

/* FAST's equation for the same completion; the caller limits the rate. */
static double fast_change(double *slack)
{
	double rate = now.before.rate_fp * U, gamma = now.cfg.alpha_q16 * U;
	double aim = (double)now.p.min_rtt_ns / seen.rtt * rate + now.p.delta_kbps * 125.0;

	*slack = rate / 1000000000 + U;
	return min(gamma * (aim - rate), rate);
}

/* The target-delay rule's error, and how far the engine may deviate if the target is off by @blur.
 */
static double target_error(double q, double q0, double blur, double *slack)
{
	double span = now.p.min_rtt_ns / 4;
	double room = max(q < q0 ? max(q, floor(min(q0, span) / 2)) : max(q0, span), 1.0);
	double error = (q - q0) / room;

	*slack = blur / max(room - blur, 1.0) * (1 + fabs(error)) + DOUBT;
	/* The engine uses 16 bits of the larger number, and fewer of the other. */
	*slack += fabs(error) * (1 + fabs(error)) / 65536;
	return clamped(error, -4, 4);
}

/* The queueing delay that the target-delay rule uses: with ACK aggregation, approximately the
 * recent minimum.
 */
static double target_queue(void)
{
	u32 q = seen.rtt - now.p.min_rtt_ns, least = now.before.least_ns, shift = 1;

	if (!now.p.ack_aggregation_ns || !now.before.seeded || q <= least)
		return q;
	while (2048U << (shift - 1) <= now.p.ack_aggregation_ns)
		shift++;
	return least + (q - least - 1) / (1U << shift) + 1;
}

/* The target-delay rule for the same completion. Not compared where the result depends on a target
 * that is known to a thousandth only.
 */
static bool target_change(double *delta, double *slack)
{
	const struct timely_rate_cfg *cfg = &now.cfg;
	double rate = now.before.rate_fp * U, beta = cfg->beta_q16 * U;
	double extra = now.p.rtt_ref_1g_ns * sqrt(125e6 / rate);
	/* Data in the other direction raise the target delay, and its uncertainty, too. */
	double square = pow(now.c.ingress_q16 * U, 2);
	double raised = 1 + square + (now.c.both_ways ? square * square : 0);
	double blur = (extra * 0.001 + 2) * raised + 2;
	bool allow = now.c.both_ways && !cfg->lags && !now.p.ack_aggregation_ns;
	double ack = allow ? floor(min(now.p.min_rtt_ns / 4, 4000)) : 0;
	double alone = max(min(now.p.rtt_ref_ns + extra, 1e9) - now.p.min_rtt_ns, 0.0);
	double aim = (alone + ack) * raised;
	double q = target_queue(), q0 = aim +
		floor(floor(now.p.min_rtt_ns * 0.4) * now.before.start_kb / 128);
	u64 scale = now.p.min_rtt_ns + 8ULL * now.p.ack_aggregation_ns;
	u64 passed = now.before.seeded ? now.c.now_ns - now.before.updated_ns : scale;
	/* By the longer of this RTT and the previous one, unless rates lag. */
	double trip = max((double)scale, seen.rtt - (cfg->lags ? 0 : min(seen.raw, 0)) - q0);
	double known = max(24 * q0, trip), vague = blur / max(q0, 1.0);
	/* The RTT above which there is an overload, by the target of a message that has started. */
	double held = now.p.min_rtt_ns + 4.0 * now.p.ack_aggregation_ns;
	double over = clamped(max(held + 6 * aim, held + 2.0 * now.p.min_rtt_ns), 0,
			      now.p.t_high_ns);
	bool overload = seen.rtt > over && seen.rtt - seen.raw > over;
	double first, high, gain, inverse, off, t, weight;
	u64 low;

	if (now.p.ack_aggregation_ns && now.before.seeded)
		passed = max((s64)(passed - seen.raw), 0LL);
	passed = min(passed, U32_MAX);
	t = fmax(passed, trip);
	weight = passed > known ? known / passed : min(passed / trip, 1.0);
	if (trip > scale)
		vague += blur / trip;
	/* The engine rounds 2^56 / t. */
	inverse = t / (1ULL << 56);
	vague += inverse;
	gain = -clamped(cfg->damp_q16 * U * clamped(seen.raw, -0x7fffffff, 0x7fffffff) / t, -1, 1);
	*slack = rate * fabs(gain) * (blur / max(trip - blur, 1.0) + inverse) * 2;
	if (!now.p.ack_aggregation_ns && !cfg->lags)
		gain += gain * gain * 3 / 8;
	gain -= beta * target_error(q, q0, blur, &off) * weight;
	*slack += rate * (beta * off + beta * 4 * (DOUBT + vague * weight) + TINY) + 2 * U;
	if (fabs(2 * q - q0) < 2 * blur + 2 ||
	    fabs(seen.rtt - over) < 6 * blur + 2 ||
	    fabs(seen.rtt - seen.raw - over) < 6 * blur + 2)
		return false;
	low = min(now.before.low_ns + min(passed, scale), U32_MAX);
	if (q < q0 / 2 && now.p.hai_threshold &&
	    low >= (u64)now.p.hai_threshold * scale) {
		gain = max(gain, beta * now.p.hai_factor * weight);
		*slack += rate * beta * now.p.hai_factor * (DOUBT + vague * weight);
	}
	gain = min(gain, 0.25);
	if (now.before.start_kb && q < q0 / 2 &&
	    (!cfg->share_fp || now.before.rate_fp < cfg->share_fp)) {
		gain = max(gain, clamped((double)passed / now.p.min_rtt_ns, 0, 4) / 4);
		*slack += rate * fabs(gain) * 20 * TINY;
	}
	if (overload && seen.raw >= 0) {
		high = cfg->beta_high_q16 * U * (1 - over / seen.rtt);
		gain = min(gain, -high * weight);
		*slack += rate * (high * (DOUBT + vague * weight) + U);
		*slack += rate * cfg->beta_high_q16 * U * 6 * blur / seen.rtt * weight;
	}
	gain = max(gain, -0.5);
	if (now.p.ack_aggregation_ns) {
		/* The engine rounds 2^56 / scale. */
		*slack += rate * scale / (1ULL << 56);
		*slack *= 1 + max(gain, 0.0);
		gain += gain * gain / 2;
	}
	*delta = rate * gain;
	if (fabs(*delta) <= *slack)
		return false;
	if (*delta < 0 && now.c.delivered_fp &&
	    (seen.rtt > now.p.t_high_ns || (overload && over > held + 2.0 * now.p.min_rtt_ns)))
		*delta = min(*delta, now.c.delivered_fp * U - rate);
	/* A new connection has opening_bytes per RTT, from a tenth to a half of the link rate. */
	if (*delta < 0 && now.c.opening_bytes && seen.rtt <= now.p.t_high_ns)
		*delta = max(*delta, -max(rate - clamped(now.c.opening_bytes * 1e9 / seen.rtt,
							 cfg->share_fp * U / 10,
							 cfg->share_fp * U / 2), 0.0));
	if (*delta < 0 && now.c.app_limited && !now.c.may_rise && !overload)
		*delta = 0;
	first = cfg->first_rate_fp * U;
	if (*delta > 0 && !now.c.may_rise)
		*delta = min(*delta, max(first - rate, 0.0));
	return true;
}

/* Check for how long the queue has been short. */
static void check_steer(void)
{
	double rate = now.before.rate_fp * U, delta, slack, want;

	if (!target_change(&delta, &slack))
		return;
	want = clamped(max(rate + delta, rate / 2), now.cfg.min_rate_fp * U,
		       now.cfg.max_rate_fp * U);
	promise(AMOUNT, fabs(now.after.rate_fp * U - want) <= slack + 2 * U,
		(u64)(want * 65536));
}

/* The change in bytes per second, and how far the engine may deviate. */
static double change(u32 hai, double *slack)
{
	const struct timely_rate_cfg *cfg = &now.cfg;
	const struct timely_params *p = &now.p;
	double rate = now.before.rate_fp * U;
	double step = whole_step(hai);
	/* Rounding of a step: the elapsed share, 1 / segment_bytes, the share of a segment in Q32,
	 * the last bits.
	 */
	double blur = step * (DOUBT + 0.000016) + 600 * U +
		      p->delta_kbps * 125.0 * p->hai_factor / 4294967296.0;
	double e = p->scale_decrease ? seen.e : 1;
	double w, wblur, error, share, beta;

	if (p->rule == TIMELY_RULE_FAST)
		return fast_change(slack);
	if (seen.rtt < p->t_low_ns) {
		*slack = blur;
		return step * seen.e;
	}
	if (seen.rtt > p->t_high_ns) {
		beta = cfg->beta_high_q16 * U;
		share = beta * (1 - (double)p->t_high_ns / seen.rtt);
		*slack = rate * (beta * U + share * DOUBT + U);
		return -rate * share * seen.e;
	}
	beta = cfg->beta_q16 * U;
	if (p->rule == TIMELY_RULE_PATCHED) {
		w = clamped(2 * seen.g + 0.5, 0, 1);
		wblur = w > 0 && w < 1 ? 2 * DOUBT : 0;
		error = clamped(((double)seen.rtt - p->rtt_ref_ns) / p->rtt_ref_ns, -1, 256);
		share = beta * w * error;
		*slack = rate * (beta * (w * DOUBT + fabs(error) * wblur) + 3 * U) +
			 blur + step * wblur;
		return step * seen.e * (1 - w) - rate * clamped(share, -1, 1) * e;
	}
	if (seen.g <= 0) {
		*slack = blur;
		return step * seen.e;
	}
	*slack = rate * (beta * DOUBT + 3 * U);
	return -rate * clamped(beta * seen.g, 0, 1) * e;
}

static void check_amount(void)
{
	const struct timely_rate_cfg *cfg = &now.cfg;
	double rate = now.before.rate_fp * U, slack, delta, want;
	u32 hai = counted();

	if (now.p.rule == TIMELY_RULE_TARGET_DELAY) {
		check_steer();
		return;
	}
	if (now.p.rule == TIMELY_RULE_SWIFT) {
		check_swift();
		return;
	}
	if (now.p.rule == TIMELY_RULE_POWERTCP) {
		check_powertcp();
		return;
	}
	if (now.p.rule != TIMELY_RULE_FAST && is_rounding_decisive())
		return;
	delta = change(hai, &slack);
	if (delta > 0 && !now.c.may_rise)
		delta = 0;
	want = clamped(max(rate + delta, rate / 2), cfg->min_rate_fp * U, cfg->max_rate_fp * U);
	promise(AMOUNT, fabs(now.after.rate_fp * U - want) <= slack + 2 * U,
		(u64)(want * 65536));

	if (now.p.rule == TIMELY_RULE_FAST)
		return;
	/* Rounding decides whether a tiny change counts. */
	delta = change(hai, &slack);
	if (delta != 0 && fabs(delta) <= slack)
		return;
	if (delta > 0 && !now.c.may_rise)
		hai = 0;
	else if (delta < 0 && now.p.hai_count != TIMELY_HAI_RAW)
		hai = 0;
	else if (delta > 0 && now.p.hai_count == TIMELY_HAI_INCREASES)
		hai = min(hai + 1, 255u);
	promise(COUNTER, now.after.hai == hai, hai);
}

/* ---- one completion ---- */

static void check_sample(void)
{
	const struct timely_rate *b = &now.before, *a = &now.after;
	u32 rtt = seen.rtt;
	double diff = b->diff_fp +
		now.cfg.alpha_q16 * U * (seen.raw * 256.0 - b->diff_fp);

	promise(STATE, a->prev_rtt_ns == rtt && a->updated_ns == now.c.now_ns && a->seeded, rtt);
	if (!timely_rate_has_window(&now.cfg))
		promise(HALF, a->rate_fp + 1 >= b->rate_fp / 2, b->rate_fp / 2);
	if (!now.c.may_rise && now.p.rule == TIMELY_RULE_TARGET_DELAY)
		promise(NO_RISE, a->rate_fp <= max(b->rate_fp, now.cfg.first_rate_fp), b->rate_fp);
	else if (!now.c.may_rise && now.p.rule != TIMELY_RULE_SWIFT)
		promise(NO_RISE, a->rate_fp <= b->rate_fp, b->rate_fp);
	if (now.p.rule >= TIMELY_RULE_FAST) {
		promise(ZONE, now.zone == TIMELY_ZONE_GRADIENT, TIMELY_ZONE_GRADIENT);
		return;
	}
	promise(AVERAGE, fabs(a->diff_fp - diff) <= 1, (u64)(s64)diff);
	promise(ZONE, now.zone == (rtt < now.p.t_low_ns ? TIMELY_ZONE_LOW :
				   rtt > now.p.t_high_ns ? TIMELY_ZONE_HIGH :
				   TIMELY_ZONE_GRADIENT), 0);
	if (now.zone == TIMELY_ZONE_LOW)
		promise(SIGN, a->rate_fp >= b->rate_fp, b->rate_fp);
	if (now.zone == TIMELY_ZONE_HIGH)
		promise(SIGN, a->rate_fp <= b->rate_fp, b->rate_fp);
	if (now.zone == TIMELY_ZONE_GRADIENT && now.p.rule != TIMELY_RULE_PATCHED) {
		if (a->diff_fp <= 0)
			promise(SIGN, a->rate_fp >= b->rate_fp, b->rate_fp);
		else if (!seen.unsure)
			promise(SIGN, a->rate_fp <= b->rate_fp, b->rate_fp);
	}
}

/* The same completion from the same state, with one difference. */
static enum timely_zone also(struct timely_completion c, struct timely_rate *r)
{
	*r = now.before;
	return timely_rate_update(r, &now.cfg, &c);
}

static void check_monotony(void)
{
	struct timely_completion c = now.c;
	struct timely_rate r;
	u64 passed;

	if (c.rtt_ns < U32_MAX) {
		c.rtt_ns += between(1, min(U32_MAX - c.rtt_ns, 2 * now.p.min_rtt_ns));
		/* Below RTTref patched TIMELY rises with w. With ACK aggregation, the target-delay
		 * rule takes the later of two ACKs for that of an older segment. Within a round
		 * trip, the elapsed part is smaller the longer the round trip is. A window rule
		 * changes the window once per RTT, so with a larger RTT perhaps not yet.
		 */
		if (also(c, &r) == now.zone && !now.p.ack_aggregation_ns &&
		    !timely_rate_has_window(&now.cfg) &&
		    (now.p.rule != TIMELY_RULE_TARGET_DELAY ||
		     (now.before.seeded && c.now_ns - now.before.updated_ns >= c.rtt_ns)) &&
		    (now.zone != TIMELY_ZONE_GRADIENT || now.p.rule != TIMELY_RULE_PATCHED ||
		     seen.rtt >= now.p.rtt_ref_ns))
			/* Shares of the rate have 32 fraction bits. */
			promise(RTT_UP, r.rate_fp <= now.after.rate_fp + (now.after.rate_fp >> 31),
				r.rate_fp);
	}

	c = now.c;
	passed = c.now_ns - now.before.updated_ns;
	if (passed < U32_MAX) {
		c.now_ns += between(1, now.p.min_rtt_ns);
		also(c, &r);
		if (now.zone == TIMELY_ZONE_LOW)
			promise(TIME_UP, r.rate_fp >= now.after.rate_fp, r.rate_fp);
		if (now.zone == TIMELY_ZONE_HIGH)
			promise(TIME_UP, r.rate_fp <= now.after.rate_fp, r.rate_fp);
	}

	c = now.c;
	if (c.bytes < U32_MAX) {
		c.bytes += between(1, min(U32_MAX - c.bytes, 4 * now.p.segment_bytes));
		also(c, &r);
		promise(BYTES_UP, r.rate_fp >= now.after.rate_fp, r.rate_fp);
	}
}

static bool is_in_bounds(const struct timely_rate *r)
{
	return r->rate_fp >= now.cfg.min_rate_fp && r->rate_fp <= now.cfg.max_rate_fp;
}

static void one_completion(struct timely_rate *r)
{
	u64 passed;
	bool skip;

	now.before = *r;
	now.c = random_completion(&now.p, r);
	now.zone = timely_rate_update(r, &now.cfg, &now.c);
	now.after = *r;

	passed = now.c.now_ns - now.before.updated_ns;
	skip = now.p.once_per_rtt && now.before.seeded && passed < now.before.prev_rtt_ns;
	promise(SKIP, (now.zone == TIMELY_ZONE_NONE) == skip &&
		(!skip || !memcmp(&now.before, &now.after, sizeof(now.after))), skip);
	promise(BOUNDS, is_in_bounds(r), 0);
	if (now.zone == TIMELY_ZONE_NONE)
		return;
	see();
	check_sample();
	check_amount();
	check_monotony();
}

static void one_event(struct timely_rate *r)
{
	double want, first = now.cfg.first_rate_fp;
	u32 what = below(5), others = below(100);

	now.before = *r;
	if (now.cfg.share_fp)
		first = max(now.cfg.share_fp / (others + 1), now.cfg.min_rate_fp);
	switch (what) {
	case 0:
		timely_rate_init(r, &now.cfg);
		want = now.cfg.first_rate_fp;
		want = clamped(want, now.cfg.min_rate_fp, now.cfg.max_rate_fp);
		break;
	case 1:
		timely_rate_reseed(r);
		want = now.before.rate_fp;
		break;
	case 2:
		timely_rate_loss(r, &now.cfg);
		want = clamped(now.before.rate_fp * (1 - now.cfg.loss_beta_q16 * U),
			       now.cfg.min_rate_fp, now.cfg.max_rate_fp);
		break;
	case 3:
		timely_rate_start(r, &now.cfg, others);
		want = now.before.rate_fp;
		if (now.p.rule == TIMELY_RULE_TARGET_DELAY)
			want = max(want, min(first, now.cfg.max_rate_fp));
		break;
	default:
		timely_rate_restart(r, &now.cfg);
		want = min(now.before.rate_fp, max(now.cfg.first_rate_fp, now.cfg.min_rate_fp));
	}
	now.after = *r;
	promise(BOUNDS, is_in_bounds(r), 0);
	promise(EVENTS, fabs(r->rate_fp - want) <= 2 && !r->hai && !r->seeded, what);
}

static void one_set(u32 steps)
{
	struct timely_rate r;
	u32 index, i;

	now.p = random_params();
	if (timely_params_check(&now.p, &index)) {
		printf("# the fuzzer's own fault: %s\n", timely_param_descs[index].name);
		abort();
	}
	timely_rate_cfg_init(&now.cfg, &now.p);
	now.cfg.lags = between(0, 1);
	if (now.p.rule == TIMELY_RULE_TARGET_DELAY && below(2))
		now.cfg.share_fp = now.cfg.first_rate_fp * between(1, 40);
	if (now.p.rule == TIMELY_RULE_SWIFT)
		timely_swift_cfg_packet(&now.cfg, between(0, 70000));
	timely_rate_init(&r, &now.cfg);
	for (i = 0; i < steps; i++) {
		if (below(32))
			one_completion(&r);
		else
			one_event(&r);
	}
}

#ifdef TIMELY_LIBFUZZER
int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	dice.input = data;
	dice.left = size;
	one_set((u32)(size / 32) + 1);
	return 0;
}
#else
int main(int argc, char **argv)
{
	u32 sets = argc > 1 ? (u32)strtoul(argv[1], NULL, 0) : 8000;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 20150817;
	u32 number = 0, i;
	bool good;

	/* Output must be visible when a sanitizer ends the program. */
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("TAP version 13\n");
	good = kunit_run(&number);

	printf("# %u sets of parameters, %u completions each, seed %llu\n", sets, STEPS, seed);
	dice.state = seed | 1ULL << 63;
	for (i = 0; i < sets; i++)
		one_set(STEPS);
	for (i = 0; i < PROMISES; i++) {
		/* A promise that was never tested counts as broken. */
		bool kept = !now.broken[i] && (now.kept[i] || !sets);

		printf("%sok %u - random: %s # %llu times\n", kept ? "" : "not ",
		       ++number, promises[i], now.kept[i]);
		good &= kept;
	}
	printf("1..%u\n", number);
	return good ? 0 : 1;
}
#endif
