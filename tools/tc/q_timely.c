// SPDX-License-Identifier: GPL-2.0
/*
 * The plugin by which tc supports the qdisc "timely": tc loads q_timely.so when a command
 * line or the kernel names the qdisc.
 *
 * The table options[] has one line for each option. parse.c reads a command line by this
 * table and sends only the options that were given, so that `tc qdisc change` changes
 * nothing else. show.c shows the options in the order of the table. The ranges come from
 * the header that the kernel module takes them from.
 *
 * The options that fq has too keep fq's words, units and output, see tc-fq(8).
 */
#include <string.h>
#include <strings.h>

#include "q_timely.h"

const struct option options[OPTION_COUNT] = {
	{ "limit", NULL, TCA_TIMELY_LIMIT, TYPE_PACKETS, NO_NONE },
	{ "flow_limit", NULL, TCA_TIMELY_FLOW_LIMIT, TYPE_PACKETS, NO_NONE },
	{ "buckets", NULL, TCA_TIMELY_BUCKETS_LOG, TYPE_BUCKETS, NO_NONE },
	{ "orphan_mask", NULL, TCA_TIMELY_ORPHAN_MASK, TYPE_NUMBER, NO_NONE },
	{ "pacing", "nopacing", TCA_TIMELY_PACING, TYPE_FLAG, 1 },
	{ "bands", NULL, TCA_TIMELY_PRIOMAP, TYPE_PRIOMAP, NO_NONE },
	{ "weights", NULL, TCA_TIMELY_WEIGHTS, TYPE_WEIGHTS, NO_NONE },
	{ "quantum", NULL, TCA_TIMELY_QUANTUM, TYPE_SIZE, NO_NONE },
	{ "initial_quantum", NULL, TCA_TIMELY_INITIAL_QUANTUM, TYPE_SIZE, NO_NONE },
	{ "maxrate", NULL, TCA_TIMELY_MAXRATE, TYPE_RATE, NONE64 },
	{ "defrate", NULL, TCA_TIMELY_UNSPEC, TYPE_DEFRATE, NO_NONE },
	{ "low_rate_threshold", NULL, TCA_TIMELY_LOW_RATE_THRESHOLD, TYPE_RATE, 0 },
	{ "refill_delay", NULL, TCA_TIMELY_REFILL_DELAY, TYPE_TIME, NO_NONE },
	{ "ce_threshold", NULL, TCA_TIMELY_CE_THRESHOLD, TYPE_TIME, NONE32 },
	{ "timer_slack", NULL, TCA_TIMELY_TIMER_SLACK, TYPE_TIME, NO_NONE },
	{ "horizon", NULL, TCA_TIMELY_HORIZON, TYPE_TIME, NO_NONE },
	{ "horizon_drop", "horizon_cap", TCA_TIMELY_HORIZON_DROP, TYPE_HORIZON_DROP, NO_NONE },
	{ "offload_horizon", NULL, TCA_TIMELY_OFFLOAD_HORIZON, TYPE_TIME, NO_NONE },

	{ "slot", NULL, TCA_TIMELY_SLOT, TYPE_SLOT, NO_NONE },
	{ "lazy", "nolazy", TCA_TIMELY_LAZY, TYPE_FLAG, NO_NONE },
	{ "split", NULL, TCA_TIMELY_SPLIT, TYPE_SIZE, NO_NONE },
	{ "split_rate", NULL, TCA_TIMELY_SPLIT_RATE, TYPE_RATE, 0 },
	{ "ack_first", "noack_first", TCA_TIMELY_ACK_FIRST, TYPE_FLAG, NO_NONE },
	{ "ack_dscp", NULL, TCA_TIMELY_ACK_DSCP, TYPE_DSCP, NO_NONE },
	{ "ack_priority", NULL, TCA_TIMELY_ACK_PRIORITY, TYPE_PRIORITY, NO_NONE },
	{ "ack_time", "noack_time", TCA_TIMELY_ACK_TIME, TYPE_FLAG, NO_NONE },
	{ "ack_thin", "noack_thin", TCA_TIMELY_ACK_THIN, TYPE_FLAG, NO_NONE },
	{ "wrong_clock", NULL, TCA_TIMELY_WRONG_CLOCK_DROP, TYPE_CLOCK, NO_NONE },

	/*
	 * On-Ramp's options, which are shown only while On-Ramp is on. `onramp THRESHOLD`
	 * sends no owd: a new qdisc then has the kernel's default, relative, which cannot
	 * pause all flows when clocks differ; an existing qdisc keeps the mode that it has.
	 */
	{ "onramp", NULL, TCA_TIMELY_ONRAMP, TYPE_THRESHOLD, 0 },
	{ "gain", NULL, TCA_TIMELY_ONRAMP_GAIN, TYPE_FRACTION, NO_NONE },
	{ "owd", NULL, TCA_TIMELY_ONRAMP_OWD, TYPE_OWD, NO_NONE },
	{ "pause_max", NULL, TCA_TIMELY_ONRAMP_PAUSE_MAX, TYPE_TIME, NO_NONE },
	{ "strawman", "nostrawman", TCA_TIMELY_ONRAMP_STRAWMAN, TYPE_FLAG, NO_NONE },
	{ "clock_error", NULL, TCA_TIMELY_ONRAMP_CLOCK_ERROR, TYPE_TIME, NO_NONE },
};

/* Deprecated in 0.9.0: remove with the next release. */
const struct old_name old_names[OLD_NAME_COUNT] = {
	{ "segment", "split" },
	{ "segment_rate", "split_rate" },
};

struct range range_of(unsigned int attr)
{
#define RANGE(field, ATTR, bits, min, max, value, unit, doc) \
	case TCA_TIMELY_##ATTR: return (struct range){ bits, min##ULL, max##ULL, unit };
	switch (attr) {
	TIMELY_QDISC_OPTIONS(RANGE)
	}
#undef RANGE
	return (struct range){};
}

const char * const owd_words[OWD_COUNT] = {
	[TIMELY_OWD_ABSOLUTE] = "absolute",
	[TIMELY_OWD_RELATIVE] = "relative",
	[TIMELY_OWD_RTT] = "rtt",
};

void print_usage(FILE *f)
{
	fputs("Usage: ... timely [ limit PACKETS ] [ flow_limit PACKETS ]\n"
	      "\t[ quantum BYTES ] [ initial_quantum BYTES ]\n"
	      "\t[ maxrate RATE | none ] [ buckets NUMBER ]\n"
	      "\t[ [no]pacing ] [ refill_delay TIME ]\n"
	      "\t[ bands 3 priomap P0 P1 ... P14 P15 ]\n"
	      "\t[ weights W0 W1 W2 ]\n"
	      "\t[ low_rate_threshold RATE ]\n"
	      "\t[ orphan_mask MASK ]\n"
	      "\t[ timer_slack TIME ]\n"
	      "\t[ ce_threshold TIME | none ]\n"
	      "\t[ horizon TIME ] [ horizon_{cap|drop} ]\n"
	      "\t[ offload_horizon TIME ]\n"
	      "\t[ slot TIME ] [ [no]lazy ]\n"
	      "\t[ split SIZE ] [ split_rate RATE ]\n"
	      "\t[ [no]ack_first ] [ ack_dscp DSCP | keep ]\n"
	      "\t[ ack_priority PRIORITY | keep ] [ [no]ack_time ] [ [no]ack_thin ]\n"
	      "\t[ wrong_clock { send | drop } ]\n"
	      "\t[ onramp THRESHOLD | off ] [ gain FRACTION ]\n"
	      "\t[ owd { relative | absolute | rtt } ]\n"
	      "\t[ pause_max TIME ] [ [no]strawman ]\n"
	      "\t[ clock_error TIME ]\n"
	      "Manual: man tc-timely\n", f);
}

/* tc finds this symbol by the name of the qdisc. */
__attribute__((visibility("default")))
struct qdisc_util timely_qdisc_util = {
	.id = "timely",
	.parse_qopt = parse_options,
	.print_qopt = show_options,
	.print_xstats = show_stats,
};
