// SPDX-License-Identifier: GPL-2.0
/*
 * An end's clock. It is a line over CLOCK_MONOTONIC from a known point, worked
 * out in integers and without a rest that is lost: whenever the line changes, the
 * point moves to that time with its fraction of a nanosecond. A wandering drift
 * makes a new line every 10 ms.
 */

#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/ptp_clock_kernel.h>

#include "hwnic.h"

/* A rate is in 2^-16 ppb: both ppb and adjfine's 2^-16 ppm are whole then. */
#define PPB		65536LL
#define SCALED_PPM	1000LL
#define HWNIC_PHC_UNIT	(65536LL * NSEC_PER_SEC)
#define RATE_MAX	(HWNIC_PPB_MAX * PPB)

#define WANDER_NS	(10 * NSEC_PER_MSEC)
#define WANDER_STEPS	100

/* Of the sum of two rates, each at most 2^36, this long makes less than 2^62. */
#define RUN_NS		BIT(25)

/* 285 years; what is left of 63 bits is for the clock to go on. */
#define PHC_NS_MAX	9000000000000000000LL

static void phc_run(struct hwnic_phc *phc, s64 elapsed_ns)
{
	s64 sum = (s64)phc->frac + elapsed_ns * (phc->drift + phc->fine);
	s64 gain = div64_s64(sum, HWNIC_PHC_UNIT);
	s64 rest = sum - gain * HWNIC_PHC_UNIT;

	/* Downwards, for clocks that lose. */
	if (rest < 0) {
		rest += HWNIC_PHC_UNIT;
		gain--;
	}
	phc->mono_ns += elapsed_ns;
	phc->ns += elapsed_ns + gain;
	phc->frac = rest;
}

static void phc_run_until(struct hwnic_phc *phc, u64 mono_ns)
{
	s64 left = mono_ns - phc->mono_ns;

	/* What asks for a time before the line was sampled as it changed. */
	left = max_t(s64, left, -(s64)RUN_NS);
	if (!(phc->drift + phc->fine)) {
		phc->mono_ns += left;
		phc->ns += left;
		return;
	}
	for (; left > (s64)RUN_NS; left -= RUN_NS)
		phc_run(phc, RUN_NS);
	phc_run(phc, left);
}

static void phc_wander_step(struct hwnic_phc *phc)
{
	s64 sum = phc->wander_ppb_per_s * PPB + (s64)phc->wander_rest;
	s64 step = div64_s64(sum, WANDER_STEPS);
	s64 rest = sum - step * WANDER_STEPS;

	if (rest < 0) {
		rest += WANDER_STEPS;
		step--;
	}
	phc->drift = clamp_t(s64, phc->drift + step, -RATE_MAX, RATE_MAX);
	phc->wander_rest = rest;
	phc->wander_ns += WANDER_NS;
}

/**
 * hwnic_phc_move - move the point where the clock's line begins
 * @phc: the clock
 * @mono_ns: to where
 *
 * The clock goes on as it would have. Nothing may be asked for times before.
 */
void hwnic_phc_move(struct hwnic_phc *phc, u64 mono_ns)
{
	while (phc->wander_ppb_per_s && mono_ns >= phc->wander_ns) {
		phc_run_until(phc, phc->wander_ns);
		phc_wander_step(phc);
	}
	phc_run_until(phc, mono_ns);
}

/**
 * hwnic_phc_ns - what the clock shows
 * @phc: the clock
 * @mono_ns: when
 *
 * Return: ns.
 */
u64 hwnic_phc_ns(const struct hwnic_phc *phc, u64 mono_ns)
{
	struct hwnic_phc moved = *phc;

	hwnic_phc_move(&moved, mono_ns);
	return moved.ns;
}

/* For each change: what was stamped before now keeps its stamp, the line goes on
 * from now.
 */
static void phc_break(struct hwnic *end)
{
	hwnic_phc_move(&end->phc, hwnic_catch_up(end));
}

/**
 * hwnic_phc_set - the clock restarts
 * @end: whose clock
 * @ns: from here
 *
 * Return: 0, or -ERANGE.
 */
int hwnic_phc_set(struct hwnic *end, s64 ns)
{
	if (ns < 0 || ns > PHC_NS_MAX)
		return -ERANGE;
	spin_lock_bh(&end->lock);
	phc_break(end);
	end->phc.ns = ns;
	end->phc.frac = 0;
	spin_unlock_bh(&end->lock);
	return 0;
}

/**
 * hwnic_phc_step - the clock jumps
 * @end: whose clock
 * @ns: so far
 *
 * Return: 0, or -ERANGE: it would leave its range.
 */
int hwnic_phc_step(struct hwnic *end, s64 ns)
{
	int err = 0;

	spin_lock_bh(&end->lock);
	phc_break(end);
	if (ns > PHC_NS_MAX - (s64)end->phc.ns || ns < -(s64)end->phc.ns)
		err = -ERANGE;
	else
		end->phc.ns += ns;
	spin_unlock_bh(&end->lock);
	return err;
}

/**
 * hwnic_phc_drift - the oscillator is another one
 * @end: whose clock
 * @ppb: how much too fast it is
 */
void hwnic_phc_drift(struct hwnic *end, s64 ppb)
{
	spin_lock_bh(&end->lock);
	phc_break(end);
	end->phc.drift = ppb * PPB;
	end->phc.wander_rest = 0;
	spin_unlock_bh(&end->lock);
}

/**
 * hwnic_phc_wander - the oscillator gets warmer
 * @end: whose clock
 * @ppb_per_s: how its drift moves from now on, every 10 ms
 */
void hwnic_phc_wander(struct hwnic *end, s64 ppb_per_s)
{
	spin_lock_bh(&end->lock);
	phc_break(end);
	end->phc.wander_ppb_per_s = ppb_per_s;
	end->phc.wander_ns = end->phc.mono_ns + WANDER_NS;
	end->phc.wander_rest = 0;
	spin_unlock_bh(&end->lock);
}

/**
 * hwnic_phc_drift_ppb - how much too fast is it by now?
 * @end: whose clock
 *
 * Return: ppb, without adjfine's part.
 */
s64 hwnic_phc_drift_ppb(struct hwnic *end)
{
	s64 drift;

	spin_lock_bh(&end->lock);
	phc_break(end);
	drift = end->phc.drift;
	spin_unlock_bh(&end->lock);
	return div64_s64(drift, PPB);
}

static struct hwnic *phc_end(struct ptp_clock_info *info)
{
	return container_of(info, struct hwnic, ptp_info);
}

static int phc_gettimex64(struct ptp_clock_info *info, struct timespec64 *ts,
			  struct ptp_system_timestamp *sts)
{
	struct hwnic *end = phc_end(info);
	u64 ns;

	spin_lock_bh(&end->lock);
	ptp_read_system_prets(sts);
	ns = hwnic_phc_ns(&end->phc, ktime_get_ns());
	ptp_read_system_postts(sts);
	spin_unlock_bh(&end->lock);
	*ts = ns_to_timespec64(ns);
	return 0;
}

static int phc_settime64(struct ptp_clock_info *info, const struct timespec64 *ts)
{
	/* timespec64_to_ns() stays at the ends of its range. */
	return hwnic_phc_set(phc_end(info), timespec64_to_ns(ts));
}

static int phc_adjtime(struct ptp_clock_info *info, s64 ns)
{
	return hwnic_phc_step(phc_end(info), ns);
}

static int phc_adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
	struct hwnic *end = phc_end(info);

	spin_lock_bh(&end->lock);
	phc_break(end);
	end->phc.fine = scaled_ppm * SCALED_PPM;
	spin_unlock_bh(&end->lock);
	return 0;
}

static int phc_enable(struct ptp_clock_info *info, struct ptp_clock_request *request, int on)
{
	return -EOPNOTSUPP;
}

static const struct ptp_clock_info phc_info = {
	.owner = THIS_MODULE,
	.name = "hwnic",
	.max_adj = HWNIC_PPB_MAX,
	.gettimex64 = phc_gettimex64,
	.settime64 = phc_settime64,
	.adjtime = phc_adjtime,
	.adjfine = phc_adjfine,
	.enable = phc_enable,
};

/* The clock runs whether the kernel can show it or not (then: NULL). */
int hwnic_phc_register(struct hwnic *end, u64 epoch_ns)
{
	end->phc.mono_ns = ktime_get_ns();
	end->phc.ns = epoch_ns;
	end->ptp_info = phc_info;
	end->ptp = ptp_clock_register(&end->ptp_info, &end->parent->dev);
	return PTR_ERR_OR_ZERO(end->ptp);
}

void hwnic_phc_unregister(struct hwnic *end)
{
	if (!IS_ERR_OR_NULL(end->ptp))
		ptp_clock_unregister(end->ptp);
}
