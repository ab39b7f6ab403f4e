// SPDX-License-Identifier: GPL-2.0
/*
 * `tc -s qdisc show`: the statistics of a qdisc "timely", as text and as JSON.
 *
 * The kernel sends struct tc_timely_stats. Statistics that fq has too keep fq's names; as
 * with fq, the text has most of them only if they are not 0. JSON has every counter.
 */
#include <string.h>

#include "q_timely.h"

/* A counter, in text and in JSON. */
static void count(const char *key, __u64 value)
{
	show_text(" %s", key);
	print_color_lluint(PRINT_FP, COLOR_NONE, NULL, " %llu", value);
	print_color_lluint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

/* A counter that text has only if it is not 0. */
static void count_if(const char *key, __u64 value)
{
	if (value)
		count(key, value);
	else
		print_color_lluint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

/* A time. Text has no zeros; a negative time stands for no time, because no flow waits. */
static void count_time(const char *key, __s64 ns)
{
	char buffer[SPRINT_BSIZE];

	if (ns < 0)
		return;
	if (ns > 0) {
		show_text(" %s", key);
		show_text(" %s", sprint_time64(ns, buffer));
	}
	print_color_lluint(PRINT_JSON, COLOR_NONE, key, NULL, ns);
}

static void new_line(void)
{
	print_nl();
	show_text("%s", " ");
}

/*
 * fq's JSON has the key "throttled" twice: the number of throttled flows, then a counter.
 * JSON readers that keep the last of two equal keys see the counter. So "throttled" is the
 * counter here, and the number of flows has a key of its own.
 */
static void show_flows(const struct tc_timely_stats *st)
{
	show_text("%s", " ");
	count("flows", st->flows);
	print_color_uint(PRINT_ANY, COLOR_NONE, "inactive", " (inactive %u", st->inactive_flows);
	print_color_uint(PRINT_ANY, COLOR_NONE, "throttled_flows", " throttled %u)",
			 st->throttled_flows);
	count("band0_pkts", st->band_pkt_count[0]);
	count("band1_pkts", st->band_pkt_count[1]);
	count("band2_pkts", st->band_pkt_count[2]);
	count_time("next_packet_delay", st->time_next_delayed_flow);
	if (st->buckets_log)
		count("buckets", 1ULL << (st->buckets_log & 63));
	new_line();
	count("gc", st->gc_flows);
	count_if("fastpath", st->fastpath_packets);
	count("throttled", st->throttled);
	count_time("latency", st->unthrottle_latency_ns);
	count_if("ce_mark", st->ce_mark);
	count_if("flows_plimit", st->flows_plimit);
	count_if("shared", st->shared_packets);
}

static void show_drops(const struct tc_timely_stats *st)
{
	if (st->pkts_too_long || st->allocation_errors || st->horizon_drops ||
	    st->horizon_caps || st->band_drops[0] || st->band_drops[1] || st->band_drops[2])
		new_line();
	count_if("pkts_too_long", st->pkts_too_long);
	count_if("alloc_errors", st->allocation_errors);
	count_if("horizon_drops", st->horizon_drops);
	count_if("horizon_caps", st->horizon_caps);
	count_if("band0_drops", st->band_drops[0]);
	count_if("band1_drops", st->band_drops[1]);
	count_if("band2_drops", st->band_drops[2]);
}

/* Counters that fq does not have; text has their zeros too. */
static void show_timely(const struct tc_timely_stats *st)
{
	new_line();
	count("put_back", st->put_back);
	count("brought_forward", st->brought_forward);
	count("paused", st->paused);
	count("departures", st->departures);
	new_line();
	count("segmented", st->segmented);
	count("segments", st->segments);
	count("segment_errors", st->segment_errors);
	new_line();
	count("acks_first", st->acks_first);
	count("acks_marked", st->acks_marked);
	count("acks_timed", st->acks_timed);
	count("acks_thinned", st->acks_thinned);
	count("wrong_clock", st->wrong_clock);
	count("wrong_clock_drops", st->wrong_clock_drops);
}

/* A counter in text; in JSON it has another key. */
static void text_count(const char *word, __u64 value)
{
	show_text(" %s", word);
	print_color_lluint(PRINT_FP, COLOR_NONE, NULL, " %llu", value);
}

/*
 * The bins end at 2048 ns, 4096 ns and so on, powers of two. Text has these bounds in us and
 * ms, rounded down: 2us ... 512us, 1ms ... 32ms.
 */
static void text_bin(unsigned int bin, __u64 signals)
{
	bool last = bin == TIMELY_ONRAMP_BINS - 1;
	unsigned int log = last ? bin : bin + 1;
	char word[16];

	snprintf(word, sizeof(word), "%s%u%s", last ? ">=" : "<", 1U << log % 10,
		 log < 10 ? "us" : "ms");
	text_count(word, signals);
}

static void show_onramp_text(const struct tc_timely_stats *st)
{
	char buffer[SPRINT_BSIZE];

	new_line();
	show_text("%s", " onramp:");
	text_count("signals", st->onramp_signals);
	text_count("pauses", st->onramp_pauses);
	show_text(" paused_time %s", sprint_time64(st->onramp_paused_ns, buffer));
	print_color_float(PRINT_FP, COLOR_NONE, NULL, " b %.2f", (double)st->onramp_b / ONE);
	text_count("acks_passed", st->onramp_acks_passed);
	if (!st->onramp_signals)
		return;
	new_line();
	show_text("%s", " onramp delays:");
	for (int i = 0; i < TIMELY_ONRAMP_BINS; i++)
		if (st->onramp_delays[i])
			text_bin(i, st->onramp_delays[i]);
}

static void show_onramp_json(const struct tc_timely_stats *st)
{
	print_color_lluint(PRINT_JSON, COLOR_NONE, "onramp_signals", NULL, st->onramp_signals);
	print_color_lluint(PRINT_JSON, COLOR_NONE, "onramp_pauses", NULL, st->onramp_pauses);
	print_color_lluint(PRINT_JSON, COLOR_NONE, "onramp_paused_ns", NULL, st->onramp_paused_ns);
	print_color_float(PRINT_JSON, COLOR_NONE, "onramp_b", NULL, (double)st->onramp_b / ONE);
	print_color_lluint(PRINT_JSON, COLOR_NONE, "onramp_acks_passed", NULL,
			   st->onramp_acks_passed);
	open_json_array(PRINT_JSON, "onramp_delays");
	for (int i = 0; i < TIMELY_ONRAMP_BINS; i++)
		print_color_lluint(PRINT_JSON, COLOR_NONE, NULL, NULL, st->onramp_delays[i]);
	close_json_array(PRINT_JSON, NULL);
}

/* Text has On-Ramp's statistics only if On-Ramp is on, or was on and had signals. */
static void show_onramp(const struct tc_timely_stats *st)
{
	show_onramp_json(st);
	if (onramp_is_on || st->onramp_signals || st->onramp_pauses)
		show_onramp_text(st);
}

/* An older module sends a shorter struct, a newer one a longer struct. */
int show_stats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct tc_timely_stats st = {};
	size_t size;

	(void)qu;
	(void)f;
	if (!xstats)
		return 0;
	size = RTA_PAYLOAD(xstats);
	memcpy(&st, RTA_DATA(xstats), size < sizeof(st) ? size : sizeof(st));
	show_flows(&st);
	show_drops(&st);
	show_timely(&st);
	show_onramp(&st);
	return 0;
}
