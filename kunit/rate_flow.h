/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection whose completions a test chooses one by one, for the suites of the rate engine
 * (rate_kunit.c), of the target-delay rule (target_delay_kunit.c), of Swift (swift_kunit.c) and of
 * theta-PowerTCP (powertcp_kunit.c).
 */
#ifndef _KUNIT_RATE_FLOW_H
#define _KUNIT_RATE_FLOW_H

#include <linux/string.h>
#include <linux/types.h>

#include <timely/engine/rate.h>

/* Time at which connections start; not 0, which could be taken for an unset time. */
#define START_NS	1000000000ULL

/**
 * struct flow - a connection
 * @cfg: the parameters
 * @rate: state of the engine
 * @now_ns: time of the last completion
 * @may_rise: passed with the next completions, see struct timely_completion; true at first
 * @app_limited: passed with the next completions; false at first
 * @ingress_q16: passed with the next completions; 0 at first
 * @both_ways: passed with the next completions; false at first
 * @opening_bytes: passed with the next completions; 0 at first
 * @delivered_fp: passed with the next completions, bytes per second, Q16; 0 at first
 */
struct flow {
	struct timely_rate_cfg cfg;
	struct timely_rate rate;
	u64 now_ns;
	bool may_rise;
	bool app_limited;
	u32 ingress_q16;
	bool both_ways;
	u32 opening_bytes;
	u64 delivered_fp;
};

/* Start a connection at its first rate, without completions. */
static inline void start(struct flow *f, const struct timely_params *params)
{
	memset(f, 0, sizeof(*f));
	timely_rate_cfg_init(&f->cfg, params);
	timely_rate_init(&f->rate, &f->cfg);
	f->now_ns = START_NS;
	f->may_rise = true;
}

/* A completion of @bytes with an RTT of @rtt_ns, @gap_ns after the last one. */
static inline enum timely_zone ack_bytes(struct flow *f, u64 gap_ns, u32 rtt_ns, u32 bytes)
{
	struct timely_completion c = {
		.now_ns = f->now_ns + gap_ns,
		.rtt_ns = rtt_ns,
		.bytes = bytes,
		.may_rise = f->may_rise,
		.app_limited = f->app_limited,
		.ingress_q16 = f->ingress_q16,
		.both_ways = f->both_ways,
		.opening_bytes = f->opening_bytes,
		.delivered_fp = f->delivered_fp,
	};

	f->now_ns = c.now_ns;
	return timely_rate_update(&f->rate, &f->cfg, &c);
}

/* A completion of a 16 KB segment with an RTT of @rtt_ns, @gap_ns after the last one. */
static inline enum timely_zone ack_after(struct flow *f, u64 gap_ns, u32 rtt_ns)
{
	return ack_bytes(f, gap_ns, rtt_ns, 16384);
}

/* A completion a minRTT after the last one, so that the update has its full weight. */
static inline enum timely_zone ack(struct flow *f, u32 rtt_ns)
{
	return ack_after(f, f->cfg.min_rtt_ns, rtt_ns);
}

/* Start a connection with one completion with an RTT of @rtt_ns. Afterwards it has its first rate
 * and is not at the start of a message.
 */
static inline void start_seeded(struct flow *f, const struct timely_params *params, u32 rtt_ns)
{
	start(f, params);
	ack(f, rtt_ns);
	f->rate.rate_fp = f->cfg.first_rate_fp;
	f->rate.hai = 0;
	f->rate.low_ns = 0;
	f->rate.start_kb = 0;
}

#endif /* _KUNIT_RATE_FLOW_H */
