// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl flows`: the connections that use timely, the worst first.
 */
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <linux/timely.h>

#include "timelyctl.h"

/* The names of the states of a connection, and of the nonzero counters, with their values. */
static void detail_text(char *text, size_t size, const struct timely_connection *connection)
{
	size_t used = 0;

	text[0] = 0;
	for (size_t i = 0; i < STATE_NAMES && used < size; i++)
		if (connection->state & state_names[i].bit)
			used += snprintf(text + used, size - used, " %s", state_names[i].name);
	for (size_t i = 0; i < TIMELY_CUTS && used < size; i++)
		if (connection->cuts[i])
			used += snprintf(text + used, size - used, " cuts:%s=%u", cut_names[i],
					 connection->cuts[i]);
	for (size_t i = 0; i < TIMELY_REJECTIONS && used < size; i++)
		if (connection->rejected[i])
			used += snprintf(text + used, size - used, " rejected:%s=%u",
					 rejected_names[i], connection->rejected[i]);
}

/**
 * struct columns - a line about a connection, without its state and counters
 * @from: local address and port
 * @to: remote address and port
 * @rate: rate
 * @rtt: last RTT
 * @base: base RTT
 * @queue: queueing delay of the last RTT
 * @target: target delay
 * @pauses: pauses by On-Ramp
 * @paused: duration of these pauses
 */
struct columns {
	char from[64];
	char to[64];
	char rate[32];
	char rtt[32];
	char base[32];
	char queue[32];
	char target[32];
	char pauses[32];
	char paused[32];
};

/* A time, or "-" if it is not known. */
static void column_time(char *text, size_t size, bool known, __u64 ns)
{
	if (known)
		time_text(text, size, ns);
	else
		snprintf(text, size, "-");
}

static void write_columns(struct columns *to, const struct timely_connection *connection)
{
	unsigned int bytes = connection_address_bytes(connection);

	end_text(to->from, sizeof(to->from), connection->saddr, bytes, ntohs(connection->sport));
	end_text(to->to, sizeof(to->to), connection->daddr, bytes, ntohs(connection->dport));
	rate_text(to->rate, sizeof(to->rate), connection->rate_Bps / 125);
	column_time(to->rtt, sizeof(to->rtt), connection->rtt_ns, connection->rtt_ns);
	column_time(to->base, sizeof(to->base), true, connection->base_rtt_ns);
	column_time(to->queue, sizeof(to->queue), connection->rtt_ns,
		    connection_queue_ns(connection));
	column_time(to->target, sizeof(to->target), connection->target_ns, connection->target_ns);
	column_time(to->paused, sizeof(to->paused), connection->pauses, connection->paused_ns);
	snprintf(to->pauses, sizeof(to->pauses), "-");
	if (connection->pauses)
		snprintf(to->pauses, sizeof(to->pauses), "%llu",
			 (unsigned long long)connection->pauses);
}

/* The headings of connection_text(). */
const char *connection_headings(char *text, size_t size)
{
	snprintf(text, size, "%-21s %-21s %11s %9s %9s %9s %9s %-8s %6s %s", "from", "to", "rate",
		 "RTT", "base RTT", "queue", "target", "RTT by", "pauses", "state and counters");
	return text;
}

/* A line about a connection. */
const char *connection_text(char *text, size_t size, const struct timely_connection *connection)
{
	struct columns columns;
	char detail[512];

	write_columns(&columns, connection);
	detail_text(detail, sizeof(detail), connection);
	snprintf(text, size, "%-21s %-21s %11s %9s %9s %9s %9s %-8s %6s %s", columns.from,
		 columns.to, columns.rate, columns.rtt, columns.base, columns.queue,
		 columns.target, connection->rtt_ns ? source_name(connection->source) : "-",
		 columns.pauses, detail + !!detail[0]);
	return text;
}

/* The headings of narrow_text(). */
const char *narrow_headings(char *text, size_t size)
{
	snprintf(text, size, "%11s %9s %9s %6s %9s %-21s %-21s %9s %9s %-8s %s", "rate", "queue",
		 "RTT", "cuts", "paused", "to", "from", "base RTT", "target", "RTT by",
		 "state and counters");
	return text;
}

/* A line about a connection, of which the first 71 columns say the most. */
const char *narrow_text(char *text, size_t size, const struct timely_connection *connection)
{
	struct columns columns;
	char detail[512];

	write_columns(&columns, connection);
	detail_text(detail, sizeof(detail), connection);
	snprintf(text, size, "%11s %9s %9s %6llu %9s %-21s %-21s %9s %9s %-8s %s", columns.rate,
		 columns.queue, columns.rtt, (unsigned long long)connection_cuts(connection),
		 columns.paused, columns.to, columns.from, columns.base, columns.target,
		 connection->rtt_ns ? source_name(connection->source) : "-", detail + !!detail[0]);
	return text;
}

static void print_connections(const struct connections *list)
{
	char text[CONNECTION_TEXT];

	if (!list->count) {
		connections_tell_none();
		return;
	}
	puts(connection_headings(text, sizeof(text)));
	for (size_t i = 0; i < list->count; i++)
		puts(connection_text(text, sizeof(text), &list->connection[i]));
}

static void json_counts(const char *key, const char * const *names, const __u32 *counts,
			size_t count)
{
	json_open(key, '{');
	for (size_t i = 0; i < count; i++)
		json_unsigned(names[i], counts[i]);
	json_close('}');
}

/* An RTT or a part of it; null before the first RTT. */
static void json_rtt(const char *key, const struct timely_connection *connection, __u32 ns)
{
	if (connection->rtt_ns)
		json_unsigned(key, ns);
	else
		json_null(key);
}

static void connection_json(const struct timely_connection *connection)
{
	unsigned int bytes = connection_address_bytes(connection);
	char text[INET6_ADDRSTRLEN];

	json_open(NULL, '{');
	json_string("from", address_text(text, connection->saddr, bytes));
	json_unsigned("from_port", ntohs(connection->sport));
	json_string("to", address_text(text, connection->daddr, bytes));
	json_unsigned("to_port", ntohs(connection->dport));
	json_string("control", connection->control);
	json_unsigned("net_cookie", connection->net_cookie);
	json_unsigned("cgroup", connection->cgroup);
	json_unsigned("rate_bps", connection->rate_Bps * 8);
	json_unsigned("pacing_bps", connection->pacing_Bps * 8);
	json_rtt("rtt_ns", connection, connection->rtt_ns);
	json_rtt("queue_ns", connection, connection_queue_ns(connection));
	json_rtt("rtt_age_ns", connection, connection->rtt_age_ns);
	json_unsigned("base_rtt_ns", connection->base_rtt_ns);
	json_unsigned("target_ns", connection->target_ns);
	json_unsigned("ack_wait_ns", connection->ack_wait_ns);
	json_unsigned("t_high_ns", connection->t_high_ns);
	json_string("rtt_by", connection->rtt_ns ? source_name(connection->source) : "");
	json_unsigned("link_kbps", connection->link_kbps);
	json_open("states", '[');
	for (size_t i = 0; i < STATE_NAMES; i++)
		if (connection->state & state_names[i].bit)
			json_string(NULL, state_names[i].name);
	json_close(']');
	json_counts("cuts", cut_names, connection->cuts, TIMELY_CUTS);
	json_counts("rejected", rejected_names, connection->rejected, TIMELY_REJECTIONS);
	json_unsigned("pauses", connection->pauses);
	json_unsigned("paused_ns", connection->paused_ns);
	json_unsigned("pause_left_ns", connection->pause_left_ns);
	json_close('}');
}

static void json_connections(const struct connections *list)
{
	json_open(NULL, '[');
	for (size_t i = 0; i < list->count; i++)
		connection_json(&list->connection[i]);
	json_close(']');
	json_end();
}

int command_flows(char **words, int count, bool json)
{
	struct connections list = {};
	struct choice choice = {};
	int status = choice_parse("flows", words, count, 0, &choice);

	if (!status)
		status = connections_list("flows", &choice, &list);
	if (status)
		return status;
	if (json)
		json_connections(&list);
	else
		print_connections(&list);
	connections_free(&list);
	return status;
}
