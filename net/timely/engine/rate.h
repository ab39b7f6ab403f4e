/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The rate computation engine: computes the rate of a TCP connection from the RTTs of its completed
 * segments. rate.c has TIMELY's rules and the losses that are tolerated, target_delay.c has the
 * default rule, swift.c and powertcp.c have the window rules, and params.h lists the parameters.
 *
 * Like all engines in this directory, this engine knows no socket, packet or clock: time is an
 * argument. The files also run under KUnit, and in a user-space build under sanitizers.
 */
#ifndef _TIMELY_ENGINE_RATE_H
#define _TIMELY_ENGINE_RATE_H

#include <linux/types.h>

#include "params.h"

/* Rates are bytes per second with 16 fraction bits: 800 Gb/s needs 37 + 16 bits, and additive steps
 * below one byte per second are not lost.
 */
#define TIMELY_RATE_SHIFT	16

/* 2^60 / 10^9: a time in ns times this is the time in seconds, Q60. */
#define TIMELY_NS_Q60		1152921505ULL

/**
 * enum timely_rule - the rule that computes a connection's rate
 * @TIMELY_RULE_GRADIENT: Algorithm 1 of the TIMELY paper (SIGCOMM'15)
 * @TIMELY_RULE_PATCHED: patched TIMELY (CoNEXT'16) between the thresholds Tlow and Thigh
 * @TIMELY_RULE_FAST: the equation of FAST TCP, which has no thresholds
 * @TIMELY_RULE_TARGET_DELAY: keeps a target queueing delay (net/timely/engine/target_delay.c)
 * @TIMELY_RULE_SWIFT: Swift, SIGCOMM'20 (net/timely/engine/swift.c)
 * @TIMELY_RULE_POWERTCP: theta-PowerTCP, NSDI'22 (net/timely/engine/powertcp.c)
 *
 * Swift and theta-PowerTCP are window rules: they compute a congestion window, and the rate follows
 * from the window. See timely_rate_has_window().
 */
enum timely_rule {
	TIMELY_RULE_GRADIENT,
	TIMELY_RULE_PATCHED,
	TIMELY_RULE_FAST,
	TIMELY_RULE_TARGET_DELAY,
	TIMELY_RULE_SWIFT,
	TIMELY_RULE_POWERTCP,
};

/**
 * struct timely_rate_cfg - parameters prepared for the code that handles ACKs
 *
 * timely_rate_cfg_init() fills in the structure from struct timely_params. The code that handles
 * ACKs only reads the structure, and multiplies by its reciprocals instead of dividing.
 *
 * @max_rate_fp: highest rate, bytes per second, Q16
 * @min_rate_fp: lowest rate, bytes per second, Q16
 * @step_fp: additive step of the rate for a whole segment (delta), bytes per second, Q16;
 *	theta-PowerTCP: beta / minRTT
 * @inv_min_rtt: 2^56 / @min_rtt_ns
 * @inv_rtt_ref: 2^56 / @rtt_ref_ns; not for the target-delay rule
 * @inv_scale: target-delay rule: 2^56 / @scale_ns
 * @inv_segment: 2^32 / segment size in bytes
 * @min_rtt_ns: minRTT, the base RTT of the path: divides the gradient, ns
 * @t_low_ns: Tlow, ns
 * @t_high_ns: Thigh, ns
 * @alpha_q16: weight of a new RTT difference in the average, Q16; FAST*, theta-PowerTCP: gamma
 * @hai_threshold: completions until hyperactive increase, with the target-delay rule round
 *	trips; 0 for never
 * @hai_factor: additive steps per completion in hyperactive increase; target-delay rule:
 *	multiple of @beta_q16 by which the rate grows per round trip
 * @hai_count: which completions count towards @hai_threshold, enum timely_hai_count
 * @hai_below_t_low: hyperactive increase below Tlow, too
 * @rule: enum timely_rule
 * @scale_decrease: scale the decrease between the thresholds by the time since the last
 *	update; all other changes of Algorithm 1 are always scaled
 * @scale_step: scale the additive step by the bytes completed
 * @once_per_rtt: ignore completions that come less than an RTT after the last update
 * @rtt_ref_ns: RTTref of the patched rule; target-delay rule: minRTT plus the target delay of
 *	a very fast connection; Swift: base target, ns
 * @beta_q16: factor of a decrease between the thresholds; target-delay rule: gain of the
 *	error; Swift: beta, Q16
 * @beta_high_q16: factor of a decrease above Thigh, Q16
 * @loss_beta_q16: share of the rate to subtract from the rate at a loss; Swift: max_mdf, Q16
 * @first_rate_fp: rate of a new connection, bytes per second, Q16
 * @share_fp: link rate, which the connections of this host share when messages start, and up to
 *	which a message's rate grows fast, bytes per second, Q16; 0: each connection starts with
 *	@first_rate_fp. The caller sets @share_fp after timely_rate_cfg_init()
 * @flow_term: target-delay rule: a connection adds @flow_term / sqrt(rate) ns to @rtt_ref_ns,
 *	with the rate in bytes per second, Q16
 * @scale_ns: target-delay rule: shortest round trip that changes of the rate are computed
 *	for: minRTT, and more with ACK aggregation, ns
 * @least_shift: target-delay rule: the recent minimum of the queueing delay rises to larger
 *	delays within about 2^@least_shift completions; 0 without ACK aggregation
 * @damp_q16: target-delay rule: gain of the gradient term, Q16
 * @quiet_ns: RTTs up to this value are no overload, and the rule does not look at the delivery
 *	rate, ns; U32_MAX for rules that never do
 * @overload_ns: target-delay rule: two successive RTTs above @overload_ns and six times the
 *	target delay, but at least @quiet_ns and at most @t_high_ns, are an overload, ns
 * @inv_packet: Swift: 2^32 / packet size in bytes. The caller sets @inv_packet by
 *	timely_swift_cfg_packet() after timely_rate_cfg_init()
 * @fs_ns: Swift: a of the flow scaling, ns
 * @start_ns: target-delay rule: addition to the target delay at the start of a message, ns
 * @lags: target-delay rule: new rates do not apply to packets that are queued in the host,
 *	see enum timely_rate_lag. The caller sets @lags after timely_rate_cfg_init()
 */
struct timely_rate_cfg {
	u64 max_rate_fp;
	u64 min_rate_fp;
	u64 step_fp;
	u64 inv_min_rtt;
	union {
		u64 inv_rtt_ref;
		u64 inv_scale;
	};
	u32 inv_segment;
	u32 min_rtt_ns;
	u32 t_low_ns;
	u32 t_high_ns;
	u32 alpha_q16;
	u8 hai_threshold;
	u8 hai_factor;
	u8 hai_count;
	u8 hai_below_t_low:1,
	   rule:3,
	   scale_decrease:1,
	   scale_step:1,
	   once_per_rtt:1;
	/* End of the first 64 bytes: Algorithm 1 needs no other member if the RTT is below Tlow. */
	u32 rtt_ref_ns;
	u32 beta_q16;
	u32 beta_high_q16;
	u32 loss_beta_q16;
	u64 first_rate_fp;
	u64 share_fp;
	u64 flow_term;
	union {
		struct {
			u32 scale_ns;
			u32 damp_q16;
		};
		struct {
			u32 inv_packet;
			u32 fs_ns;
		};
	};
	u32 start_ns;
	u32 quiet_ns;
	u32 overload_ns;
	u8 least_shift;
	bool lags;
};

/**
 * enum timely_hai_count - which completions count towards hyperactive increase
 * @TIMELY_HAI_SMOOTHED: completions with a smoothed gradient below zero (Algorithm 1)
 * @TIMELY_HAI_RAW: completions with an RTT below the previous RTT (the paper authors' snippet)
 * @TIMELY_HAI_INCREASES: completions that increase the rate (simulators)
 *
 * The target-delay rule counts the time with a short queue instead of completions.
 */
enum timely_hai_count {
	TIMELY_HAI_SMOOTHED,
	TIMELY_HAI_RAW,
	TIMELY_HAI_INCREASES,
};

/**
 * enum timely_zone - the branch of Algorithm 1 that an update took
 * @TIMELY_ZONE_NONE: none, the completion was skipped (once_per_rtt)
 * @TIMELY_ZONE_LOW: RTT below Tlow, additive increase
 * @TIMELY_ZONE_GRADIENT: RTT between the thresholds, by the gradient or by patched TIMELY;
 *	with all other rules, any update
 * @TIMELY_ZONE_HIGH: RTT above Thigh, multiplicative decrease
 */
enum timely_zone {
	TIMELY_ZONE_NONE,
	TIMELY_ZONE_LOW,
	TIMELY_ZONE_GRADIENT,
	TIMELY_ZONE_HIGH,
};

/**
 * struct timely_rate - the rate engine's state of a connection
 * @rate_fp: the rate, bytes per second, Q16
 * @updated_ns: when the rate was last computed, by the clock of timely_completion.now_ns
 * @diff_fp: smoothed RTT difference, ns, Q8, signed; Algorithm 1 and patched TIMELY only
 * @low_ns: target-delay rule: for how long the queueing delay has been below half of the
 *	target delay, ns; each completion counts for one round trip at most
 * @least_ns: target-delay rule: approximate recent minimum of the queueing delay, ns; only
 *	with ACK aggregation
 * @recent_ns: 2^32 - 1 minus the time since Swift's last decrease of the window or
 *	theta-PowerTCP's last update of the window, ns; 0: longer ago or not known
 * @power_q24: theta-PowerTCP: smoothed power, Q24; a larger power counts as 256
 * @prev_rtt_ns: RTT of the previous completion, ns; 0 before the first
 * @hai: completions counted towards hyperactive increase
 * @seeded: @prev_rtt_ns and @updated_ns are valid for the next gradient
 * @start_kb: target-delay rule: how much more data counts as the start of a message, KB
 *
 * The size is 32 bytes because the state is a part of icsk_ca_priv, the 104 bytes that a socket has
 * for its congestion control.
 */
struct timely_rate {
	u64 rate_fp;
	u64 updated_ns;
	union {
		s64 diff_fp;
		struct {
			u32 low_ns;
			u32 least_ns;
		};
		struct {
			u32 recent_ns;
			u32 power_q24;
		};
	};
	u32 prev_rtt_ns;
	u8 hai;
	u8 seeded;
	u16 start_kb;
};

/**
 * struct timely_loss - losses of a connection that do not decrease its rate
 * @credit_q16: number of packets that may still be lost without a decrease, Q16
 * @lost: the connection's total of lost packets at the last check; wraps
 * @delivered: the connection's total of delivered packets at the last check; wraps
 */
struct timely_loss {
	u32 credit_q16;
	u32 lost;
	u32 delivered;
};

/**
 * struct timely_completion - a segment was acknowledged
 * @now_ns: time of the completion, by any clock that does not run backwards
 * @rtt_ns: the segment's RTT without its serialization time at the NIC
 * @bytes: bytes completed since the last completion, at least 1
 * @may_rise: the application uses enough of the connection's rate (app_limited_percent)
 * @app_limited: the completed data were all that the application had to send at the time
 * @both_ways: this host has received much at some time lately, and the receiver of the segment
 *	sends data to this host; only the target-delay rule uses it; false if @rtt_ns does not
 *	include the wait of the ACK
 * @ingress_q16: share of the link rate at which this host has received lately, Q16, at most
 *	65536; 0 if not known, if the ACK does not wait behind what this host receives, or if
 *	@rtt_ns does not include the wait; only the target-delay rule uses it
 * @opening_bytes: the rate of a new connection does not fall below this much per RTT, bytes, at
 *	most 2^24; 0 if the connection is not new; only the target-delay rule uses it
 * @delivered_fp: delivery rate over the last round trip, bytes per second, Q16; 0 if not
 *	known; the target-delay rule uses it in an overload
 */
struct timely_completion {
	u64 now_ns;
	u32 rtt_ns;
	u32 bytes;
	bool may_rise;
	bool app_limited;
	bool both_ways;
	u32 ingress_q16;
	u32 opening_bytes;
	u64 delivered_fp;
};

void timely_rate_cfg_init(struct timely_rate_cfg *cfg,
			  const struct timely_params *params);
void timely_rate_init(struct timely_rate *r, const struct timely_rate_cfg *cfg);
void timely_rate_reseed(struct timely_rate *r);
void timely_rate_loss(struct timely_rate *r, const struct timely_rate_cfg *cfg);
void timely_rate_start(struct timely_rate *r, const struct timely_rate_cfg *cfg, u32 others);
void timely_rate_restart(struct timely_rate *r,
			 const struct timely_rate_cfg *cfg);
enum timely_zone timely_rate_update(struct timely_rate *r,
				    const struct timely_rate_cfg *cfg,
				    const struct timely_completion *c);

void timely_rate_probe(struct timely_rate *r, const struct timely_rate_cfg *cfg,
		       struct timely_completion *c);
u64 timely_rate_window(const struct timely_rate *r, const struct timely_rate_cfg *cfg);
bool timely_rate_limit(struct timely_rate *r, const struct timely_rate_cfg *cfg, u64 limit_fp);
void timely_rate_minimum(struct timely_rate *r, const struct timely_rate_cfg *cfg);

u32 timely_loss_share_q16(u32 ppm);
void timely_loss_init(struct timely_loss *loss, u32 lost, u32 delivered);
bool timely_loss_is_free(struct timely_loss *loss, u32 share_q16, u32 lost,
			 u32 delivered);

/**
 * timely_rate_Bps() - get the rate in whole bytes per second
 * @r: the connection's state
 *
 * Return: bytes per second.
 */
static inline u64 timely_rate_Bps(const struct timely_rate *r)
{
	return r->rate_fp >> TIMELY_RATE_SHIFT;
}

/**
 * timely_rate_has_window() - check whether the rule is a window rule
 * @cfg: the parameters
 *
 * Return: true if timely_rate_window() is the connection's congestion window.
 */
static inline bool timely_rate_has_window(const struct timely_rate_cfg *cfg)
{
	return cfg->rule > TIMELY_RULE_TARGET_DELAY;
}

/**
 * timely_rate_age_ns() - get the time since the rate was last computed
 * @r: the connection's state
 * @now_ns: current time, by the clock of timely_completion.now_ns
 *
 * The caller may use a cached time, which can be older than the last completion.
 *
 * Return: the time, ns; 0 if @now_ns is before the last computation.
 */
static inline u64 timely_rate_age_ns(const struct timely_rate *r, u64 now_ns)
{
	s64 age_ns = now_ns - r->updated_ns;

	return age_ns > 0 ? age_ns : 0;
}

#endif /* _TIMELY_ENGINE_RATE_H */
