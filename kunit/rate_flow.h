/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A flow whose every completion a test decides, for the suites of the rate
 * computation engine and its rules.
 */
#ifndef _KUNIT_RATE_FLOW_H
#define _KUNIT_RATE_FLOW_H

#include <linux/string.h>
#include <linux/types.h>

#include <timely/engine/rate.h>

#define START_NS	1000000000ULL

/**
 * struct flow - a flow
 * @law: what it obeys
 * @rate: the engine's state
 * @now_ns: when it had its last completion
 * @may_rise: whether the next ones may raise its rate
 * @app_limited: and whether its application had nothing more to send
 * @delivered_fp: and what arrived over the last round trip
 */
struct flow {
	struct timely_rate_law law;
	struct timely_rate rate;
	u64 now_ns;
	bool may_rise;
	bool app_limited;
	u64 delivered_fp;
};

static inline void start(struct flow *f, const struct timely_params *params)
{
	memset(f, 0, sizeof(*f));
	timely_rate_law_init(&f->law, params);
	timely_rate_init(&f->rate, &f->law);
	f->now_ns = START_NS;
	f->may_rise = true;
}

static inline enum timely_zone ack_bytes(struct flow *f, u64 gap_ns, u32 rtt_ns, u32 bytes)
{
	struct timely_completion c = {
		.now_ns = f->now_ns + gap_ns,
		.rtt_ns = rtt_ns,
		.bytes = bytes,
		.may_rise = f->may_rise,
		.app_limited = f->app_limited,
		.delivered_fp = f->delivered_fp,
	};

	f->now_ns = c.now_ns;
	return timely_rate_update(&f->rate, &f->law, &c);
}

static inline enum timely_zone ack_after(struct flow *f, u64 gap_ns, u32 rtt_ns)
{
	return ack_bytes(f, gap_ns, rtt_ns, 16384);
}

/* A completion that counts in full. */
static inline enum timely_zone ack(struct flow *f, u32 rtt_ns)
{
	return ack_after(f, f->law.min_rtt_ns, rtt_ns);
}

/* A flow at its first rate that has seen one completion, of this RTT. */
static inline void start_seeded(struct flow *f, const struct timely_params *params, u32 rtt_ns)
{
	start(f, params);
	ack(f, rtt_ns);
	f->rate.rate_fp = f->law.first_rate_fp;
	f->rate.hai = 0;
	f->rate.low_ns = 0;
	f->rate.fresh_kb = 0;
}

#endif /* _KUNIT_RATE_FLOW_H */
