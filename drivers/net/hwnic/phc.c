// SPDX-License-Identifier: GPL-2.0
/*
 * The PTP clock of one end.
 *
 * The clock is a linear function of CLOCK_MONOTONIC with a reference point (struct hwnic_phc). At
 * each change of its rate, the reference point moves to the time of the change. The computation is
 * in integers and keeps all remainders, so the clock has no rounding error. While the drift
 * wanders, it changes every 10 ms.
 */

#include <linux/math64.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/ptp_clock_kernel.h>

#include "hwnic.h"

/* Drifts are in units of 2^-16 ppb: PPB is 1 ppb, SCALED_PPM is adjfine's unit of 2^-16 ppm. */
#define PPB		65536LL
#define SCALED_PPM	1000LL
/* 1 ns in units of hwnic_phc.frac. A unit is what a drift of 2^-16 ppb gains in 1 ns. */
#define HWNIC_PHC_UNIT	(65536LL * NSEC_PER_SEC)
#define RATE_MAX	(HWNIC_PPB_MAX * PPB)

/* The wandering drift changes every WANDER_NS, WANDER_STEPS times per second. */
#define WANDER_NS	(10 * NSEC_PER_MSEC)
#define WANDER_STEPS	100

/* Longest time that is computed at once, ns: multiplied by the sum of two drifts, each up to 2^36
 * units, the product stays below 2^62.
 */
#define RUN_NS		BIT(25)

/* Latest time that may be set, 285 years. It leaves room in 63 bits for the clock to advance. */
#define PHC_NS_MAX	9000000000000000000LL

/* Moves the reference point by at most RUN_NS. */
static void phc_run(struct hwnic_phc *phc, s64 elapsed_ns)
{
	s64 sum = (s64)phc->frac + elapsed_ns * (phc->drift + phc->fine);
	s64 gain = div64_s64(sum, HWNIC_PHC_UNIT);
	s64 rest = sum - gain * HWNIC_PHC_UNIT;

	/* Round down, also for clocks that run slow. */
	if (rest < 0) {
		rest += HWNIC_PHC_UNIT;
		gain--;
	}
	phc->mono_ns += elapsed_ns;
	phc->ns += elapsed_ns + gain;
	phc->frac = rest;
}

/* Moves the reference point to @mono_ns. The drift must not change before. */
static void phc_run_until(struct hwnic_phc *phc, u64 mono_ns)
{
	s64 left = mono_ns - phc->mono_ns;

	/* Negative if @mono_ns was read just before another CPU moved the reference point. */
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

/* Changes the drift, as hwnic_phc.wander_ppb_per_s requires for WANDER_NS. */
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
 * hwnic_phc_move() - move the clock's reference point
 * @phc: the clock
 * @mono_ns: time of the new reference point, CLOCK_MONOTONIC
 *
 * The clock continues unchanged. Earlier times must not be converted any more: the drift may have
 * been another one.
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
 * hwnic_phc_ns() - the time of the clock
 * @phc: the clock
 * @mono_ns: the time to convert, CLOCK_MONOTONIC; not before the reference point
 *
 * Return: the clock's time, ns.
 */
u64 hwnic_phc_ns(const struct hwnic_phc *phc, u64 mono_ns)
{
	struct hwnic_phc moved = *phc;

	hwnic_phc_move(&moved, mono_ns);
	return moved.ns;
}

/**
 * hwnic_stamp_ns() - the timestamp that the NIC gives at a time
 * @end: the end
 * @mono_ns: the time, CLOCK_MONOTONIC; not before the clock's reference point
 *
 * A NIC whose clock counts in steps cannot see where within a step a frame has come.
 *
 * Return: the clock's time, rounded down to a multiple of the clock's step, ns.
 */
u64 hwnic_stamp_ns(const struct hwnic *end, u64 mono_ns)
{
	u64 phc_ns = hwnic_phc_ns(&end->phc, mono_ns);
	u32 rest_ns = 0;

	if (end->stamp_step_ns)
		div_u64_rem(phc_ns, end->stamp_step_ns, &rest_ns);
	return phc_ns - rest_ns;
}

/* Begins a change of the clock: processes the events up to now with the clock as it was, and moves
 * the reference point to now.
 */
static void phc_begin_change(struct hwnic *end)
{
	hwnic_phc_move(&end->phc, hwnic_catch_up(end));
}

/**
 * hwnic_phc_set() - set the clock
 * @end: the end
 * @ns: the new time, ns, 0 to PHC_NS_MAX
 *
 * Return: 0, or -ERANGE if @ns is out of this range.
 */
int hwnic_phc_set(struct hwnic *end, s64 ns)
{
	if (ns < 0 || ns > PHC_NS_MAX)
		return -ERANGE;
	spin_lock_bh(&end->lock);
	phc_begin_change(end);
	end->phc.ns = ns;
	end->phc.frac = 0;
	spin_unlock_bh(&end->lock);
	return 0;
}

/**
 * hwnic_phc_step() - step the clock
 * @end: the end
 * @ns: size of the step, ns
 *
 * Return: 0, or -ERANGE if the clock would leave the range from 0 to PHC_NS_MAX.
 */
int hwnic_phc_step(struct hwnic *end, s64 ns)
{
	int err = 0;

	spin_lock_bh(&end->lock);
	phc_begin_change(end);
	if (ns > PHC_NS_MAX - (s64)end->phc.ns || ns < -(s64)end->phc.ns)
		err = -ERANGE;
	else
		end->phc.ns += ns;
	spin_unlock_bh(&end->lock);
	return err;
}

/**
 * hwnic_phc_drift() - set the drift of the clock
 * @end: the end
 * @ppb: how much faster than CLOCK_MONOTONIC the clock runs, ppb
 */
void hwnic_phc_drift(struct hwnic *end, s64 ppb)
{
	spin_lock_bh(&end->lock);
	phc_begin_change(end);
	end->phc.drift = ppb * PPB;
	end->phc.wander_rest = 0;
	spin_unlock_bh(&end->lock);
}

/**
 * hwnic_phc_wander() - let the drift change over time, as an oscillator does that gets warmer
 * @end: the end
 * @ppb_per_s: change of the drift, ppb per second; applied every 10 ms
 */
void hwnic_phc_wander(struct hwnic *end, s64 ppb_per_s)
{
	spin_lock_bh(&end->lock);
	phc_begin_change(end);
	end->phc.wander_ppb_per_s = ppb_per_s;
	end->phc.wander_ns = end->phc.mono_ns + WANDER_NS;
	end->phc.wander_rest = 0;
	spin_unlock_bh(&end->lock);
}

/**
 * hwnic_phc_drift_ppb() - the present drift of the clock
 * @end: the end
 *
 * Return: ppb, without the correction of adjfine.
 */
s64 hwnic_phc_drift_ppb(struct hwnic *end)
{
	s64 drift;

	spin_lock_bh(&end->lock);
	phc_begin_change(end);
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
	/* timespec64_to_ns() saturates, so hwnic_phc_set() refuses times out of range. */
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
	phc_begin_change(end);
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

/* Registers the PTP clock of a kernel with PTP support. Returns 0 or a negative errno. */
static int phc_register(struct hwnic *end)
{
	end->ptp = ptp_clock_register(&end->ptp_info, &end->parent->dev);
	return PTR_ERR_OR_ZERO(end->ptp);
}

/* Starts the clock at @epoch_ns. The clock also runs in kernels without PTP support, where end->ptp
 * is NULL. Returns 0 or a negative errno.
 */
int hwnic_phc_register(struct hwnic *end, u64 epoch_ns)
{
	end->phc.mono_ns = ktime_get_ns();
	end->phc.ns = epoch_ns;
	end->ptp_info = phc_info;
	return phc_register(end);
}

/* The end comes up (@up) or goes down: with the setting phc_again, removes the PTP clock when the
 * end goes down, and registers another one when the end comes up. The clock runs on. Under RTNL.
 */
void hwnic_phc_again(struct hwnic *end, bool up)
{
	if (up && end->phc_gone) {
		end->phc_gone = false;
		/* Without memory the NIC has no PTP clock. */
		if (phc_register(end))
			end->ptp = NULL;
	} else if (!up && READ_ONCE(end->phc_again) && end->ptp) {
		end->phc_gone = true;
		ptp_clock_unregister(end->ptp);
		end->ptp = NULL;
	}
}

void hwnic_phc_unregister(struct hwnic *end)
{
	if (!IS_ERR_OR_NULL(end->ptp))
		ptp_clock_unregister(end->ptp);
}
