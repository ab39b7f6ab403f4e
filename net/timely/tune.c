// SPDX-License-Identifier: GPL-2.0
/*
 * Parameters that nobody gave.
 *
 * Pure, like rate.c.
 */

#include <linux/limits.h>
#include <linux/minmax.h>

#include <net/timely.h>
#include <net/timely_tune.h>

static void tune_one(u32 *value, u32 derived)
{
	if (*value == TIMELY_AUTO)
		*value = derived;
}

/**
 * timely_tune() - put a value in the place of each TIMELY_AUTO
 * @params: checked by timely_params_check(), which they pass afterwards too
 * @path: what is known of the path
 */
void timely_tune(struct timely_params *params, const struct timely_path *path)
{
	tune_one(&params->min_rtt_ns, 20000);
	if (params->t_low_ns == TIMELY_AUTO)
		params->t_low_ns = min(50000U, params->t_high_ns);
	if (params->t_high_ns == TIMELY_AUTO)
		params->t_high_ns = max(500000U, params->t_low_ns);
	tune_one(&params->rtt_ref_ns, 50000);
	tune_one(&params->beta_ppm, 25000);
	tune_one(&params->delta_kbps, 2500);
	tune_one(&params->segment_bytes, 16384);
	tune_one(&params->max_rate_kbps, 800000000);
	tune_one(&params->first_rate_kbps, 500000);
	tune_one(&params->line_rate_kbps, 0);
}
