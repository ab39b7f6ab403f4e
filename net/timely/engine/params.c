// SPDX-License-Identifier: GPL-2.0
/*
 * The parameters of tcp_timely: descriptions, presets and checks. params.h has the table.
 *
 * minRTT, alpha and beta belong together: a gradient is a difference of RTTs divided by minRTT, so
 * with a tenth of the minRTT the same beta decreases the rate ten times as much. Therefore each
 * preset takes its values from one source.
 *
 * The engine knows no socket and no clock.
 */

#include <linux/errno.h>
#include <linux/export.h>
#include <linux/string.h>
#include <linux/types.h>

#include "rate.h"

#define TIMELY_PARAM_AUTO	true
#define TIMELY_PARAM_GIVEN	false
#define TIMELY_PARAM_DESC(field, unit, min, max, source, doc) \
	[TIMELY_P_##field] = { #field, unit, doc, min, max, TIMELY_PARAM_##source },

const struct timely_param_desc timely_param_descs[TIMELY_P_COUNT] = {
	TIMELY_PARAMS(TIMELY_PARAM_DESC)
};
EXPORT_SYMBOL_GPL(timely_param_descs);

#define TIMELY_DEPRECATED_PARAM(old, field) \
	[TIMELY_OLD_P_##old] = { #old, TIMELY_P_##field },

const struct timely_deprecated_param timely_deprecated_params[TIMELY_OLD_P_COUNT] = {
	TIMELY_DEPRECATED_PARAMS(TIMELY_DEPRECATED_PARAM)
};
EXPORT_SYMBOL_GPL(timely_deprecated_params);

/* Values that all presets except the default share. Some are not given by the presets' sources. */
#define TIMELY_COMMON							\
	.t_low_ns = 50000,	/* paper 6, for 16 KB segments */	\
	.rtt_ref_ns = 50000,	/* CoNEXT'16: about Tlow */		\
	.segment_bytes = 16384,	/* paper 6 */				\
	.hai_threshold = 5,	/* paper 4.3 */				\
	.hai_factor = 5,	/* paper 4.3 */				\
	.scale_decrease = 1,	/* paper 5 */				\
	.max_rate_kbps = 800000000,					\
	.loss_beta_ppm = 500000,					\
	.loss_free_ppm = 20000		/* cables and line cards lose less */

/* The values of the paper (section 6), and safe values for the lowest and first rate of a
 * connection, which the paper does not give.
 */
#define TIMELY_PAPER							\
	TIMELY_COMMON,							\
	.min_rtt_ns = 20000,						\
	.t_high_ns = 500000,						\
	.beta_high_ppm = 800000,					\
	.scale_step = 1,						\
	.app_limited_percent = 80, /* paper 5 */			\
	.min_rate_kbps = 1000,						\
	.first_rate_kbps = 500000

/* Simulators and eRPC start at the link rate, here 10 Gb/s, and assume that connections are never
 * app-limited: app_limited_percent is 0.
 */
#define TIMELY_LINK_RATE_START						\
	.first_rate_kbps = 10000000

/* The window rules compute everything else from the path. Any loss decreases the window; the share
 * is Swift's max_mdf, and PowerTCP's paper gives none. HAI and steps are not used.
 */
#define TIMELY_WINDOW							\
	.min_rtt_ns = TIMELY_AUTO,					\
	.t_low_ns = TIMELY_AUTO,					\
	.t_high_ns = TIMELY_AUTO,					\
	.rtt_ref_ns = TIMELY_AUTO,					\
	.beta_high_ppm = 800000,					\
	.delta_kbps = TIMELY_AUTO,					\
	.segment_bytes = TIMELY_AUTO,					\
	.hai_threshold = 5,						\
	.hai_factor = 5,						\
	.rtt_ref_1g_ns = TIMELY_AUTO,					\
	.scale_decrease = 1,						\
	.scale_step = 1,						\
	.min_rate_kbps = TIMELY_AUTO,					\
	.max_rate_kbps = TIMELY_AUTO,					\
	.first_rate_kbps = TIMELY_AUTO,					\
	.link_rate_kbps = TIMELY_AUTO,					\
	.loss_beta_ppm = 500000

const struct timely_preset timely_presets[] = {
	{
		.name = "target_delay",
		.doc = "the target-delay rule, parameters computed for each path",
		.params = {
			.min_rtt_ns = TIMELY_AUTO,
			.t_low_ns = TIMELY_AUTO,
			.t_high_ns = TIMELY_AUTO,
			.rtt_ref_ns = TIMELY_AUTO,
			.alpha_ppm = 875000,	/* used by the other rules only */
			.beta_ppm = TIMELY_AUTO,
			.beta_high_ppm = 800000,
			.delta_kbps = TIMELY_AUTO,
			.segment_bytes = TIMELY_AUTO,
			.hai_threshold = 5,
			.hai_factor = 5,
			.hai_below_t_low = 1,
			.rule = TIMELY_RULE_TARGET_DELAY,
			.damp_ppm = 400000,
			.rtt_ref_1g_ns = TIMELY_AUTO,
			.ack_aggregation_ns = TIMELY_AUTO,
			.scale_decrease = 1,
			.scale_step = 1,
			.min_rate_kbps = TIMELY_AUTO,
			.max_rate_kbps = TIMELY_AUTO,
			.first_rate_kbps = TIMELY_AUTO,
			.link_rate_kbps = TIMELY_AUTO,
			.app_limited_percent = 80, /* paper 5 */
			.loss_beta_ppm = 500000,
			.loss_free_ppm = 20000,
		},
	}, {
		.name = "paper",
		.doc = "Algorithm 1 (SIGCOMM'15), gains of the authors' snippet",
		.params = {
			TIMELY_PAPER,
			.alpha_ppm = 20000,
			.beta_ppm = 800000,
			.delta_kbps = 10000,
		},
	}, {
		.name = "ns3",
		.doc = "Algorithm 1 as HPCC's simulator and its descendants have it",
		.params = {
			TIMELY_COMMON,
			TIMELY_LINK_RATE_START,
			.min_rtt_ns = 20000,
			.t_high_ns = 500000,
			.alpha_ppm = 875000,
			.beta_ppm = 800000,
			.beta_high_ppm = 800000,
			.delta_kbps = 10000,
			.hai_count = TIMELY_HAI_INCREASES,
			.hai_below_t_low = 1,
			.once_per_rtt = 1,
			.min_rate_kbps = 1000,
		},
	}, {
		.name = "erpc",
		.doc = "Algorithm 1 as eRPC has it (NSDI'19)",
		.params = {
			TIMELY_COMMON,
			TIMELY_LINK_RATE_START,
			.min_rtt_ns = 2000,
			.t_high_ns = 1000000,
			.alpha_ppm = 460000,
			.beta_ppm = 260000,
			.beta_high_ppm = 260000,
			.delta_kbps = 40000,	/* 5 MB/s */
			.hai_count = TIMELY_HAI_RAW,
			.min_rate_kbps = 120000, /* 15 MB/s */
		},
	}, {
		.name = "patched",
		.doc = "patched TIMELY (CoNEXT'16)",
		.params = {
			TIMELY_PAPER,
			.alpha_ppm = 875000,
			.beta_ppm = 8000,
			.delta_kbps = 10000,
			.rule = TIMELY_RULE_PATCHED,
		},
	}, {
		.name = "fast",
		.doc = "FAST*, which the TIMELY paper compares itself with (Table 1)",
		.params = {
			TIMELY_COMMON,
			.min_rtt_ns = TIMELY_AUTO,
			.t_high_ns = 500000,
			.alpha_ppm = 500000,	/* gamma: above 0, up to 1 */
			.beta_ppm = 800000,
			.beta_high_ppm = 800000,
			.delta_kbps = 50000,	/* alpha: Table 1 has 10, 50 and 100 Mb/s */
			.rule = TIMELY_RULE_FAST,
			.scale_step = 1,
			.once_per_rtt = 1,
			.app_limited_percent = 80,
			.min_rate_kbps = 1000,
			.first_rate_kbps = 500000,
		},
	}, {
		.name = "testbed",
		.doc = "the patched rule with gains for the testbed: 20 Gb/s, 17 us",
		.params = {
			TIMELY_PAPER,
			.alpha_ppm = 875000,
			.beta_ppm = 25000,
			.delta_kbps = 2500,
			.hai_below_t_low = 1,
			.rule = TIMELY_RULE_PATCHED,
		},
	}, {
		.name = "swift",
		.doc = "Swift (SIGCOMM'20), gains of public simulators",
		.params = {
			TIMELY_WINDOW,
			.alpha_ppm = 875000,	/* not used */
			.beta_ppm = 800000,
			.rule = TIMELY_RULE_SWIFT,
		},
	}, {
		.name = "powertcp",
		.doc = "theta-PowerTCP (NSDI'22)",
		.params = {
			TIMELY_WINDOW,
			.alpha_ppm = 900000,	/* gamma, NSDI'22 */
			.beta_ppm = 800000,	/* not used */
			.rule = TIMELY_RULE_POWERTCP,
		},
	},
};
EXPORT_SYMBOL_GPL(timely_presets);

const u32 timely_preset_count = sizeof(timely_presets) / sizeof(timely_presets[0]);
EXPORT_SYMBOL_GPL(timely_preset_count);

/**
 * timely_preset_find() - find a preset by its name
 * @name: name of the preset; TIMELY_DEPRECATED_PRESET is an old name of the default preset
 *
 * Return: the preset; NULL if no preset has that name.
 */
const struct timely_preset *timely_preset_find(const char *name)
{
	u32 i;

	if (!strcmp(name, TIMELY_DEPRECATED_PRESET))
		return &timely_presets[0];
	for (i = 0; i < timely_preset_count; i++)
		if (!strcmp(timely_presets[i].name, name))
			return &timely_presets[i];
	return NULL;
}
EXPORT_SYMBOL_GPL(timely_preset_find);

/**
 * timely_param_ref() - get the address of a parameter
 * @params: the parameters
 * @index: index of the parameter, enum timely_param_index
 *
 * Return: the parameter in @params; NULL if there is no parameter @index.
 */
u32 *timely_param_ref(struct timely_params *params, u32 index)
{
#define TIMELY_PARAM_REF(field, unit, min, max, source, doc) \
	case TIMELY_P_##field: return &params->field;
	switch (index) {
	TIMELY_PARAMS(TIMELY_PARAM_REF)
	}
#undef TIMELY_PARAM_REF
	return NULL;
}
EXPORT_SYMBOL_GPL(timely_param_ref);

/**
 * timely_param_allowed() - check the value of a single parameter
 * @index: index of the parameter, enum timely_param_index, below TIMELY_P_COUNT
 * @value: the value
 *
 * Return: true if the value is in the parameter's range, or is TIMELY_AUTO where that is allowed.
 */
bool timely_param_allowed(u32 index, u32 value)
{
	const struct timely_param_desc *desc = &timely_param_descs[index];

	if (value == TIMELY_AUTO)
		return desc->may_be_auto;
	return value >= desc->min && value <= desc->max;
}
EXPORT_SYMBOL_GPL(timely_param_allowed);

/**
 * timely_params_any_auto() - check whether any parameter is computed from the path
 * @params: the parameters
 *
 * Return: true if a parameter is TIMELY_AUTO, which timely_tune() replaces by a computed value.
 */
bool timely_params_any_auto(const struct timely_params *params)
{
	struct timely_params copy = *params;
	u32 i;

	for (i = 0; i < TIMELY_P_COUNT; i++)
		if (*timely_param_ref(&copy, i) == TIMELY_AUTO)
			return true;
	return false;
}
EXPORT_SYMBOL_GPL(timely_params_any_auto);

/* Whether @low is not above @high. If one of them is TIMELY_AUTO they do not contradict:
 * timely_tune() limits computed values by given values.
 */
static bool timely_in_order(u32 low, u32 high)
{
	return low == TIMELY_AUTO || high == TIMELY_AUTO || low <= high;
}

/**
 * timely_params_check() - check ranges of parameters, and contradictions between parameters
 * @params: the parameters
 * @index: set to the first wrong parameter, enum timely_param_index; undefined without an error
 *
 * t_low_ns must not exceed t_high_ns, and min_rate_kbps must not exceed max_rate_kbps.
 * first_rate_kbps may be anything: connections limit it to the rates from min_rate_kbps to
 * max_rate_kbps.
 *
 * Return: 0; -ERANGE if parameter @index is out of its range; -EINVAL if it contradicts another.
 */
int timely_params_check(const struct timely_params *params, u32 *index)
{
	struct timely_params copy = *params;

	for (*index = 0; *index < TIMELY_P_COUNT; ++*index)
		if (!timely_param_allowed(*index, *timely_param_ref(&copy, *index)))
			return -ERANGE;

	*index = TIMELY_P_t_low_ns;
	if (!timely_in_order(params->t_low_ns, params->t_high_ns))
		return -EINVAL;
	*index = TIMELY_P_min_rate_kbps;
	if (!timely_in_order(params->min_rate_kbps, params->max_rate_kbps))
		return -EINVAL;
	return 0;
}
EXPORT_SYMBOL_GPL(timely_params_check);
