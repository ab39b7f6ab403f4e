/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parameters of TIMELY: the one place where each is named, bounded and
 * described. The module's parameters, the sysctls, the presets' checks, the
 * tools and Documentation/parameters.md are all made from this table.
 *
 *   P(field, unit, min, max, AUTO or GIVEN, description)
 *
 * Every field is a u32 in struct timely_params. AUTO may be left to each connection,
 * which derives it from its path (timely_tune()). Sources are the TIMELY paper
 * (SIGCOMM'15, "paper"), its authors' code snippet ("snippet"), patched TIMELY
 * ("ECN or Delay", CoNEXT'16) and eRPC (NSDI'19).
 */
#ifndef _TIMELY_ENGINE_PARAMS_H
#define _TIMELY_ENGINE_PARAMS_H

#include <linux/limits.h>
#include <linux/types.h>

#define TIMELY_PARAMS(P)							\
	P(min_rtt_ns, "ns", 1000, 1000000000, AUTO,				\
	  "round trip of the idle path; divides the gradient (paper 4.3)")	\
	P(t_low_ns, "ns", 0, 1000000000, AUTO,					\
	  "below this RTT the rate always rises (paper 4.3, Fig 15)")		\
	P(t_high_ns, "ns", 1000, 2000000000, AUTO,				\
	  "above this RTT the rate always falls (paper 4.3, Fig 17)")		\
	P(rtt_ref_ns, "ns", 1000, 1000000000, AUTO,				\
	  "RTT that the patched rule and steering aim at (CoNEXT'16 5.1)")		\
	P(alpha_ppm, "ppm", 10, 1000000, GIVEN,					\
	  "weight of a new RTT difference in the average (snippet); FAST's gamma") \
	P(beta_ppm, "ppm", 0, 1000000, AUTO,					\
	  "decrease between t_low_ns and t_high_ns (paper 4.3); steering: its pull") \
	P(beta_high_ppm, "ppm", 0, 1000000, GIVEN,				\
	  "decrease above t_high_ns (paper 4.3)")				\
	P(delta_kbps, "kbit/s", 1, 100000000, AUTO,				\
	  "additive step for a completed segment (paper 4.3); FAST's alpha")	\
	P(segment_bytes, "bytes", 512, 65536, AUTO,				\
	  "largest burst handed to the device at once (paper 3.3)")		\
	P(hai_threshold, "completions", 0, 255, GIVEN,				\
	  "completions (steering: RTTs) until hyperactive increase, 0: never (paper 4.3)") \
	P(hai_factor, "steps", 1, 255, GIVEN,					\
	  "steps a completion in hyperactive increase (paper 4.3); steering: pulls") \
	P(hai_count, "mode", 0, 2, GIVEN,					\
	  "what counts: 0 gradient < 0 (paper), 1 RTT fell (snippet), 2 increases (ns-3)") \
	P(hai_below_t_low, "bool", 0, 1, GIVEN,					\
	  "hyperactive increase also below t_low_ns (paper Fig 18)")		\
	P(rule, "mode", 0, 3, GIVEN,						\
	  "0 Algorithm 1 (paper 4.3), 1 patched TIMELY, 2 FAST* (paper 6.1), 3 steering") \
	P(damp_ppm, "ppm", 0, 1000000, GIVEN,					\
	  "steering: part of the overload that the gradient shows that is taken off at once") \
	P(rtt_ref_1g_ns, "ns", 0, 1000000000, AUTO,				\
	  "steering: added to rtt_ref_ns at 1 Gb/s; at a quarter of the rate twice as much") \
	P(rtt_noise_ns, "ns", 0, 1000000, AUTO,				\
	  "steering: what holding and merging of ACKs adds to RTTs, on average")	\
	P(scale_decrease, "bool", 0, 1, GIVEN,					\
	  "scale the gradient decrease too by time passed / min_rtt_ns, up to 1 (paper 5)") \
	P(scale_step, "bool", 0, 1, GIVEN,					\
	  "scale the additive step by completed bytes / segment_bytes")		\
	P(once_per_rtt, "bool", 0, 1, GIVEN,					\
	  "one update an RTT instead of one a completion (ns-3)")		\
	P(min_rate_kbps, "kbit/s", 1, 800000000, AUTO,				\
	  "lowest rate of a flow")						\
	P(max_rate_kbps, "kbit/s", 1, 800000000, AUTO,				\
	  "highest rate of a flow (paper 5: the line rate)")			\
	P(first_rate_kbps, "kbit/s", 1, 800000000, AUTO,			\
	  "rate of a new flow, and the most after a long idle time")		\
	P(line_rate_kbps, "kbit/s", 0, 800000000, AUTO,				\
	  "take a segment's serialisation at this NIC rate off its RTT, 0: no (paper 3.1)") \
	P(app_limited_percent, "percent", 0, 100, GIVEN,			\
	  "rise only while the flow sends this share of its rate, 0: always (paper 5)") \
	P(loss_beta_ppm, "ppm", 0, 500000, GIVEN,				\
	  "decrease for losses, once a window, and at ECN echo")		\
	P(loss_free_ppm, "ppm", 0, 500000, GIVEN,				\
	  "losses up to this share of the packets are not answered, 0: all are") \
	P(linear_timeouts, "timeouts", 0, 20, GIVEN,				\
	  "timeouts in a row after the first that do not double TCP's timer (see tcp_timely(7))")

#define TIMELY_PARAM_ENUM(field, unit, min, max, source, doc) TIMELY_P_##field,
enum timely_param_index { TIMELY_PARAMS(TIMELY_PARAM_ENUM) TIMELY_P_COUNT };
#undef TIMELY_PARAM_ENUM

#define TIMELY_PARAM_FIELD(field, unit, min, max, source, doc) u32 field;
/* The parameters in the units that people use: fields, units and ranges are
 * those of TIMELY_PARAMS().
 */
struct timely_params { TIMELY_PARAMS(TIMELY_PARAM_FIELD) };
#undef TIMELY_PARAM_FIELD

/* In the place of a value: derived from the path; in text, "auto". */
#define TIMELY_AUTO		U32_MAX
#define TIMELY_AUTO_TEXT	"auto"

/**
 * struct timely_param_desc - what is known of one parameter
 * @name: its name, as in the module's parameters
 * @unit: its unit
 * @doc: one line on what it does
 * @min: least value allowed
 * @max: greatest value allowed
 * @may_be_auto: so is TIMELY_AUTO
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
 * struct timely_preset - a named set of parameters
 * @name: its name
 * @doc: one line on where it comes from
 * @params: its values
 */
struct timely_preset {
	const char *name;
	const char *doc;
	struct timely_params params;
};

/* The names in timely_presets[], the default first. */
#define TIMELY_PRESET_NAMES	"linux, paper, ns3, erpc, patched, fast, testbed"

extern const struct timely_param_desc timely_param_descs[TIMELY_P_COUNT];
extern const struct timely_preset timely_presets[];
extern const u32 timely_preset_count;

const struct timely_preset *timely_preset_find(const char *name);
u32 *timely_param_ref(struct timely_params *params, u32 index);
bool timely_param_allowed(u32 index, u32 value);
bool timely_params_are_auto(const struct timely_params *params);
int timely_params_check(const struct timely_params *params, u32 *index);

#endif /* _TIMELY_ENGINE_PARAMS_H */
