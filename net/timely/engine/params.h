/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The table of all parameters of tcp_timely: names, units, ranges and descriptions. Module
 * parameters, sysctls, checks of presets, tools and Documentation/parameters.md are generated from
 * this table. The files with the rules use the values, params.c has the presets.
 *
 *	P(field, unit, min, max, AUTO or GIVEN, description)
 *
 * Each field is a u32 in struct timely_params. A field marked AUTO may have the value "auto", for
 * which each connection computes a value from its path (timely_tune()). Sources in the descriptions
 * are the TIMELY paper (SIGCOMM'15, "paper"), its authors' code snippet ("snippet"), patched TIMELY
 * ("ECN or Delay", CoNEXT'16) and simulators for ns-3 ("ns-3"). Swift is SIGCOMM'20, PowerTCP is
 * theta-PowerTCP of NSDI'22.
 */
#ifndef _TIMELY_ENGINE_PARAMS_H
#define _TIMELY_ENGINE_PARAMS_H

#include <linux/limits.h>
#include <linux/types.h>

#define TIMELY_PARAMS(P)							\
	P(min_rtt_ns, "ns", 1000, 1000000000, AUTO,				\
	  "base RTT of the path; divides the gradient (paper 4.3)")	\
	P(t_low_ns, "ns", 0, 1000000000, AUTO,					\
	  "Algorithm 1, patched: below this RTT the rate rises (paper 4.3, Fig 15)")		\
	P(t_high_ns, "ns", 1000, 2000000000, AUTO,				\
	  "not FAST*: above this RTT the rate falls (paper 4.3, Fig 17)")		\
	P(rtt_ref_ns, "ns", 1000, 1000000000, AUTO,				\
	  "patched: RTT to keep (CoNEXT'16 5.1); target delay, Swift: min_rtt_ns + least target") \
	P(alpha_ppm, "ppm", 10, 1000000, GIVEN,					\
	  "weight of a new RTT difference in the average (snippet); FAST*, PowerTCP: gamma") \
	P(beta_ppm, "ppm", 0, 1000000, AUTO,					\
	  "factor of decreases below t_high_ns (paper 4.3); target delay: gain of the error; " \
	  "Swift: beta")								\
	P(beta_high_ppm, "ppm", 0, 1000000, GIVEN,				\
	  "factor of decreases above t_high_ns (paper 4.3)")				\
	P(delta_kbps, "kbit/s", 1, 100000000, AUTO,				\
	  "additive step for a completed segment (paper 4.3); FAST*: alpha; PowerTCP: beta " \
	  "/ min_rtt_ns")							\
	P(segment_bytes, "bytes", 512, 65536, AUTO,				\
	  "largest pacing segment: data passed to the device at once (paper 3.3)")		\
	P(hai_threshold, "completions", 0, 255, GIVEN,				\
	  "completions (target delay: RTTs) until hyperactive increase, 0: never (paper 4.3)") \
	P(hai_factor, "steps", 1, 255, GIVEN,					\
	  "steps in hyperactive increase (paper 4.3); target delay: times beta_ppm per RTT") \
	P(hai_count, "mode", 0, 2, GIVEN,					\
	  "what HAI counts: 0 gradient < 0 (paper), 1 RTT fell (snippet), 2 rate rose (ns-3)") \
	P(hai_below_t_low, "bool", 0, 1, GIVEN,					\
	  "hyperactive increase below t_low_ns, too (paper Fig 18)")		\
	P(rule, "mode", 0, 5, GIVEN,						\
	  "0 Algorithm 1 (paper 4.3), 1 patched TIMELY, 2 FAST* (paper 6.1), 3 target delay, " \
	  "4 Swift, 5 theta-PowerTCP")						\
	P(damp_ppm, "ppm", 0, 1000000, GIVEN,					\
	  "target delay: gain of the gradient, the share of the overload to take off at once") \
	P(rtt_ref_1g_ns, "ns", 0, 1000000000, AUTO,				\
	  "target delay: added to rtt_ref_ns at a rate of 1 Gb/s; twice as much at 250 Mb/s") \
	P(ack_aggregation_ns, "ns", 0, 1000000, AUTO,				\
	  "target delay: mean addition to RTTs by receivers that delay or merge ACKs")	\
	P(scale_decrease, "bool", 0, 1, GIVEN,					\
	  "scale decreases below t_high_ns by passed time / min_rtt_ns, up to 1 (paper 5)") \
	P(scale_step, "bool", 0, 1, GIVEN,					\
	  "scale the additive step by completed bytes / segment_bytes")		\
	P(once_per_rtt, "bool", 0, 1, GIVEN,					\
	  "one update per RTT instead of one per completion (ns-3)")		\
	P(min_rate_kbps, "kbit/s", 1, 800000000, AUTO,				\
	  "lowest rate of a connection")						\
	P(max_rate_kbps, "kbit/s", 1, 800000000, AUTO,				\
	  "highest rate of a connection (paper 5: the link rate)")			\
	P(first_rate_kbps, "kbit/s", 1, 800000000, AUTO,			\
	  "rate of a new connection, and highest rate after a long idle time")		\
	P(link_rate_kbps, "kbit/s", 0, 800000000, AUTO,				\
	  "subtract a segment's serialization at this rate from its RTT, 0: no (paper 3.1)") \
	P(app_limited_percent, "percent", 0, 100, GIVEN,			\
	  "raise the rate only while the application uses this share, 0: always (paper 5)") \
	P(loss_beta_ppm, "ppm", 0, 500000, GIVEN,				\
	  "share of the rate to take off for losses or an ECN echo, once per window; Swift: " \
	  "max_mdf")								\
	P(loss_free_ppm, "ppm", 0, 500000, GIVEN,				\
	  "share of packets that may be lost without a decrease, 0: any loss decreases the rate") \
	P(linear_timeouts, "timeouts", 0, 20, GIVEN,				\
	  "successive timeouts after the first that do not double TCP's timer (see tcp_timely(7))")

/* Old names of parameters and presets, accepted for one more release: D(old name, name). */
#define TIMELY_DEPRECATED_PARAMS(D)						\
	D(line_rate_kbps, link_rate_kbps)					\
	D(rtt_noise_ns, ack_aggregation_ns)
#define TIMELY_DEPRECATED_PRESET	"linux"

#define TIMELY_PARAM_ENUM(field, unit, min, max, source, doc) TIMELY_P_##field,
enum timely_param_index { TIMELY_PARAMS(TIMELY_PARAM_ENUM) TIMELY_P_COUNT };
#undef TIMELY_PARAM_ENUM

#define TIMELY_PARAM_FIELD(field, unit, min, max, source, doc) u32 field;
/* A set of parameters, with the units and ranges of TIMELY_PARAMS(). */
struct timely_params { TIMELY_PARAMS(TIMELY_PARAM_FIELD) };
#undef TIMELY_PARAM_FIELD

/* The value of a parameter that each connection computes from its path; "auto" in text. */
#define TIMELY_AUTO		U32_MAX
#define TIMELY_AUTO_TEXT	"auto"

/**
 * struct timely_param_desc - description of a parameter
 * @name: name of the parameter, as in the module's parameters
 * @unit: unit of its values
 * @doc: description in one line
 * @min: lowest allowed value
 * @max: highest allowed value
 * @may_be_auto: TIMELY_AUTO is allowed, too
 */
struct timely_param_desc {
	const char *name;
	const char *unit;
	const char *doc;
	u32 min;
	u32 max;
	bool may_be_auto;
};

/**
 * struct timely_deprecated_param - an old name of a parameter
 * @name: the old name
 * @index: index of the parameter that has replaced the old name, enum timely_param_index
 */
struct timely_deprecated_param {
	const char *name;
	u32 index;
};

#define TIMELY_DEPRECATED_ENUM(old, field) TIMELY_OLD_P_##old,
enum timely_deprecated_index {
	TIMELY_DEPRECATED_PARAMS(TIMELY_DEPRECATED_ENUM)
	TIMELY_OLD_P_COUNT
};

#undef TIMELY_DEPRECATED_ENUM

/**
 * struct timely_preset - a named set of values for all parameters
 * @name: name of the preset
 * @doc: origin of the preset's values in one line
 * @params: the preset's values
 */
struct timely_preset {
	const char *name;
	const char *doc;
	struct timely_params params;
};

/* Names of all presets in timely_presets[], for messages and modinfo; the first is the default. */
#define TIMELY_PRESET_NAMES	\
	"target_delay, paper, ns3, erpc, patched, fast, testbed, swift, powertcp"

extern const struct timely_param_desc timely_param_descs[TIMELY_P_COUNT];
extern const struct timely_deprecated_param timely_deprecated_params[TIMELY_OLD_P_COUNT];
extern const struct timely_preset timely_presets[];
extern const u32 timely_preset_count;

const struct timely_preset *timely_preset_find(const char *name);
u32 *timely_param_ref(struct timely_params *params, u32 index);
bool timely_param_allowed(u32 index, u32 value);
bool timely_params_any_auto(const struct timely_params *params);
int timely_params_check(const struct timely_params *params, u32 *index);

#endif /* _TIMELY_ENGINE_PARAMS_H */
