// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl metrics`: the state of the modules in Prometheus' text format.
 *
 * The number of samples is bounded by the number of NICs and qdiscs: connections are summed up, as
 * counts by state and as histograms. Times are in seconds and rates in bytes per second, the units
 * that Prometheus recommends. All metrics are read before the first is written, so that an error
 * leaves no incomplete output. The clocks of other hosts come from timely-clockd, not from modules.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <linux/pkt_sched.h>
#include <sys/stat.h>

#include <linux/ndp.h>
#include <linux/timely.h>

#include "timelyctl.h"

/* Ends of the bins of RTTs and queueing delays, ns. */
static const __u64 delay_ends_ns[] = {
	1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000,
	10000000, 20000000, 50000000, 100000000,
};

/**
 * struct delays - a histogram of delays
 * @bins: number of delays by their bin; the last bin has no end
 * @sum_ns: sum of all delays, ns
 */
struct delays {
	__u64 bins[ARRAY_SIZE(delay_ends_ns) + 1];
	__u64 sum_ns;
};

/**
 * struct sums - the connections, summed up
 * @count: number of connections
 * @in_state: how many are in each state of state_names[]
 * @paused: how many On-Ramp pauses now
 * @rate_Bps: sum of their rates, bytes/s
 * @rtts: last RTTs, if they are recent
 * @queues: queueing delays of these RTTs
 */
struct sums {
	__u64 count;
	__u64 in_state[STATE_NAMES];
	__u64 paused;
	__u64 rate_Bps;
	struct delays rtts;
	struct delays queues;
};

/* Everything that is shown. The modules' parts are empty if the modules are not loaded. */
struct state {
	bool timely;
	bool acker;
	bool ndp;
	struct counters rtt;
	struct onramp onramp;
	struct limits limits;
	struct reports nics;
	struct links links;
	struct qdiscs qdiscs;
	struct sums connections;
	struct ndp_sums ndp_sums;
	bool clocks;
	struct timely_clock_page clock;
};

/* ---- the text format ---- */

static FILE *out;

/* Start a metric. Its samples follow. */
static void start_metric(const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s ", name);
	for (; *help; help++)
		fputs(*help == '\\' ? "\\\\" : (char []){ *help, 0 }, out);
	fprintf(out, "\n# TYPE %s %s\n", name, type);
}

/* Write KEY="VALUE" to @text. Bytes that are not printable ASCII become \xNN. */
static const char *label_text(char *text, size_t size, const char *key, const char *value)
{
	size_t used = snprintf(text, size, "%s=\"", key);

	for (; *value && used + sizeof("\\\\xff\"") <= size; value++) {
		unsigned char byte = *value;

		if (byte < ' ' || byte > '~')
			used += sprintf(text + used, "\\\\x%02x", byte);
		else
			used += sprintf(text + used, "%s%c",
					byte == '"' || byte == '\\' ? "\\" : "", byte);
	}
	memcpy(text + used, "\"", 2);
	return text;
}

static void start_sample(const char *name, const char *labels)
{
	fprintf(out, labels[0] ? "%s{%s} " : "%s%s ", name, labels);
}

static void sample(const char *name, const char *labels, __u64 value)
{
	start_sample(name, labels);
	fprintf(out, "%llu\n", (unsigned long long)value);
}

static void sample_seconds(const char *name, const char *labels, __u64 ns)
{
	start_sample(name, labels);
	fprintf(out, "%llu.%09llu\n", (unsigned long long)ns / 1000000000,
		(unsigned long long)ns % 1000000000);
}

static void metric(const char *name, const char *type, const char *help, __u64 value)
{
	start_metric(name, type, help);
	sample(name, "", value);
}

/* The samples of a histogram without its sum. Bin i ends at ends_ns[i]; the last bin has no end. */
static void sample_bins(const char *name, const char *labels, const __u64 *ends_ns,
			const __u64 *bins, size_t count)
{
	const char *comma = labels[0] ? "," : "";
	char bucket[128], text[256];
	__u64 sum = 0;

	snprintf(bucket, sizeof(bucket), "%s_bucket", name);
	for (size_t i = 0; i + 1 < count; i++) {
		snprintf(text, sizeof(text), "%s%sle=\"%.9g\"", labels, comma, ends_ns[i] / 1e9);
		sum += bins[i];
		sample(bucket, text, sum);
	}
	snprintf(text, sizeof(text), "%s%sle=\"+Inf\"", labels, comma);
	sum += bins[count - 1];
	sample(bucket, text, sum);
	snprintf(bucket, sizeof(bucket), "%s_count", name);
	sample(bucket, labels, sum);
}

/* ---- the modules ---- */

/* Modules without a netlink family. */
static const char * const more_modules[] = { "tcp_timely", "sch_timely", "sch_trim" };

static bool is_module_loaded(const char *name)
{
	char path[64], version[32];

	snprintf(path, sizeof(path), "/sys/module/%s/version", name);
	return read_line(path, version, sizeof(version));
}

static void put_modules(const struct state *state)
{
	char label[64];

	start_metric("timely_module_loaded", "gauge", "Whether a module is loaded: 1 or 0");
	sample("timely_module_loaded", "module=\"timely\"", state->timely);
	sample("timely_module_loaded", "module=\"timely_acker\"", state->acker);
	sample("timely_module_loaded", "module=\"ndp\"", state->ndp);
	for (size_t i = 0; i < ARRAY_SIZE(more_modules); i++)
		sample("timely_module_loaded",
		       label_text(label, sizeof(label), "module", more_modules[i]),
		       is_module_loaded(more_modules[i]));
}

/* Whether the module's name for something may be a part of a metric's name. */
static bool name_allowed(const char *name)
{
	return name[0] && !name[strspn(name, "abcdefghijklmnopqrstuvwxyz_0123456789")];
}

/* Counters that the modules name and describe. Those whose name is not allowed are skipped. */
static void put_counters(const char *prefix, const struct counters *counters)
{
	char name[128];

	for (size_t i = 0; i < counters->count; i++) {
		const struct counter *counter = &counters->counter[i];

		if (!name_allowed(counter->name))
			continue;
		snprintf(name, sizeof(name), "timely_%s_%s_total", prefix, counter->name);
		metric(name, "counter", plain(counter->doc), counter->value);
	}
}

static void put_limits(const struct limits *limits)
{
	static const struct {
		const char *name;
		const char *type;
		const char *help;
		size_t offset;
	} members[] = {
		{ "timely_limit_used", "gauge", "Objects that this network namespace has",
		  offsetof(struct limit, used) },
		{ "timely_limit_max", "gauge", "Objects that this network namespace may have",
		  offsetof(struct limit, max) },
		{ "timely_limit_refused_total", "counter",
		  "Objects that were not created because of the limit",
		  offsetof(struct limit, refused) },
	};
	char label[128];

	for (size_t m = 0; m < ARRAY_SIZE(members); m++) {
		start_metric(members[m].name, members[m].type, members[m].help);
		for (size_t i = 0; i < limits->count; i++) {
			const struct limit *limit = &limits->limit[i];
			const void *value = (const char *)limit + members[m].offset;

			if (name_allowed(limit->name))
				sample(members[m].name,
				       label_text(label, sizeof(label), "limit", limit->name),
				       *(const __u64 *)value);
		}
	}
}

/* ---- devices ---- */

/* The label of a device; its index if the device is new. */
static const char *device_label(char *text, size_t size, const struct links *links, int ifindex)
{
	char number[16];

	for (size_t i = 0; i < links->count; i++)
		if (links->link[i].ifindex == ifindex)
			return label_text(text, size, "device", links->link[i].name);
	snprintf(number, sizeof(number), "%d", ifindex);
	return label_text(text, size, "device", number);
}

static void put_nics(const struct state *state)
{
	static const char in_use[] = "timely_nic_hardware_timestamps_used";
	static const char error[] = "timely_nic_clock_error_seconds";
	static const char steps[] = "timely_nic_clock_steps_total";
	const struct reports *nics = &state->nics;
	char label[128];

	start_metric(in_use, "gauge",
		     "Whether RTTs end with hardware timestamps of the NIC: 1 or 0");
	for (size_t i = 0; i < nics->count; i++)
		sample(in_use, device_label(label, sizeof(label), &state->links,
					    nics->report[i].ifindex),
		       nics->report[i].state == TIMELY_NIC_SURE);
	start_metric(error, "gauge", "Error of a hardware timestamp by the host's clock");
	for (size_t i = 0; i < nics->count; i++)
		if (nics->report[i].state == TIMELY_NIC_SURE)
			sample_seconds(error, device_label(label, sizeof(label), &state->links,
							   nics->report[i].ifindex),
				       nics->report[i].uncertainty_ns);
	start_metric(steps, "counter", "Detected steps of the NIC's or the host's clock");
	for (size_t i = 0; i < nics->count; i++)
		sample(steps, device_label(label, sizeof(label), &state->links,
					   nics->report[i].ifindex),
		       nics->report[i].steps);
}

/* ---- qdiscs ---- */

enum unit { COUNT, SECONDS };

#define STAT(member, name, type, unit, help)						\
	{ "timely_qdisc_" name, type, help, unit, offsetof(struct qdisc, member),	\
	  sizeof(((struct qdisc *)NULL)->member) }
#define STATS_COUNTER(member, help)	STAT(stats.member, #member "_total", "counter", COUNT, help)

/* The descriptions of struct tc_timely_stats in <linux/timely.h> say more. */
static const struct {
	const char *name;
	const char *type;
	const char *help;
	enum unit unit;
	size_t offset;
	size_t bytes;
} stats[] = {
	STAT(bytes, "sent_bytes_total", "counter", COUNT, "Bytes sent"),
	STAT(packets, "sent_packets_total", "counter", COUNT, "Packets sent"),
	STAT(queue.drops, "drops_total", "counter", COUNT, "Packets dropped"),
	STAT(queue.requeues, "requeues_total", "counter", COUNT,
	     "Packets that the device did not take at once"),
	STAT(queue.qlen, "queued_packets", "gauge", COUNT, "Packets in the queue"),
	STAT(queue.backlog, "queued_bytes", "gauge", COUNT, "Bytes in the queue"),
	STAT(stats.flows, "flows", "gauge", COUNT, "Flows"),
	STAT(stats.inactive_flows, "inactive_flows", "gauge", COUNT, "Flows without packets"),
	STAT(stats.throttled_flows, "throttled_flows", "gauge", COUNT,
	     "Flows that wait until a packet is due"),
	STAT(stats.unthrottle_latency_ns, "unthrottle_latency_seconds", "gauge", SECONDS,
	     "How long after their due time waiting flows leave the timing wheel, moving average"),
	STATS_COUNTER(gc_flows, "Idle flows that were freed"),
	STATS_COUNTER(throttled, "How often flows began to wait for their next packet to be due"),
	STATS_COUNTER(flows_plimit, "Packets dropped because of flow_limit"),
	STATS_COUNTER(pkts_too_long, "Packets that take a second or more at their flow's rate"),
	STATS_COUNTER(allocation_errors, "Flows that could not be allocated"),
	STATS_COUNTER(ce_mark, "Packets marked CE because of ce_threshold"),
	STATS_COUNTER(horizon_drops, "Packets dropped because their timestamp was beyond horizon"),
	STATS_COUNTER(horizon_caps,
		      "Packets with a timestamp beyond horizon that were delayed by horizon"),
	STATS_COUNTER(fastpath_packets, "Packets that were not queued in a flow"),
	STATS_COUNTER(put_back, "Times that a due packet waited again"),
	STATS_COUNTER(brought_forward, "Times that a waiting flow became due earlier"),
	STATS_COUNTER(segmented, "Packets that were split into sub-segments"),
	STATS_COUNTER(segments, "Sub-segments of split packets"),
	STATS_COUNTER(segment_errors, "Packets that could not be split"),
	STATS_COUNTER(acks_first, "Pure ACKs that overtook all packets queued in flows"),
	STATS_COUNTER(acks_marked, "Pure ACKs whose DSCP was set"),
	STATS_COUNTER(acks_timed, "Pure ACKs that got the time as IPv4 ID"),
	STATS_COUNTER(acks_thinned, "Pure ACKs that a later one replaced while they waited"),
	STATS_COUNTER(wrong_clock, "Packets with a timestamp of another clock"),
	STATS_COUNTER(wrong_clock_drops, "Packets dropped because of a timestamp of another clock"),
	STATS_COUNTER(departures, "Departure times that were recorded"),
	STATS_COUNTER(paused, "Packets that waited for the end of a pause"),
	STATS_COUNTER(shared_packets,
		      "Packets in flows that several sockets share because of max_queues"),
	STATS_COUNTER(onramp_signals, "On-Ramp: delays that were compared with the threshold"),
	STATS_COUNTER(onramp_pauses, "On-Ramp: pauses started"),
	STAT(stats.onramp_paused_ns, "onramp_paused_seconds_total", "counter", SECONDS,
	     "On-Ramp: duration of all pauses"),
	STATS_COUNTER(onramp_acks_passed,
		      "On-Ramp: pure ACKs that overtook paused data of their flow"),
};

#define QDISC_LABELS 256

/* The labels of a qdisc: its device, and the class that it is attached to, as tc writes it. */
static const char *qdisc_labels(char *text, const struct links *links, const struct qdisc *qdisc)
{
	char parent[16] = "root";
	size_t used;

	if (qdisc->parent != TC_H_ROOT)
		snprintf(parent, sizeof(parent), "%x:%x", qdisc->parent >> 16,
			 qdisc->parent & 0xffff);
	used = strlen(device_label(text, QDISC_LABELS / 2, links, qdisc->ifindex));
	text[used++] = ',';
	label_text(text + used, QDISC_LABELS - used, "parent", parent);
	return text;
}

static void put_bands(const struct state *state, const char *name, const char *type,
		      const char *help, __u64 (*value)(const struct qdisc *qdisc, int band))
{
	char labels[QDISC_LABELS], text[QDISC_LABELS + 16];

	start_metric(name, type, help);
	for (size_t i = 0; i < state->qdiscs.count; i++) {
		qdisc_labels(labels, &state->links, &state->qdiscs.qdisc[i]);
		for (int band = 0; band < TIMELY_BANDS; band++) {
			snprintf(text, sizeof(text), "%s,band=\"%d\"", labels, band);
			sample(name, text, value(&state->qdiscs.qdisc[i], band));
		}
	}
}

static __u64 band_packets(const struct qdisc *qdisc, int band)
{
	return qdisc->stats.band_pkt_count[band];
}

static __u64 band_drops(const struct qdisc *qdisc, int band)
{
	return qdisc->stats.band_drops[band];
}

/* On-Ramp's delays, of the qdiscs that have had a signal. The kernel does not sum delays up. */
static void put_onramp_delays(const struct state *state)
{
	static const char name[] = "timely_qdisc_onramp_delay_seconds";
	__u64 ends_ns[TIMELY_ONRAMP_BINS];
	char labels[QDISC_LABELS];

	for (size_t i = 0; i < TIMELY_ONRAMP_BINS; i++)
		ends_ns[i] = (__u64)TIMELY_ONRAMP_FIRST_BIN_NS << i;
	start_metric(name, "histogram", "On-Ramp: delays that were compared with the threshold");
	for (size_t i = 0; i < state->qdiscs.count; i++) {
		const struct qdisc *qdisc = &state->qdiscs.qdisc[i];

		if (qdisc->stats.onramp_signals)
			sample_bins(name, qdisc_labels(labels, &state->links, qdisc), ends_ns,
				    qdisc->stats.onramp_delays, TIMELY_ONRAMP_BINS);
	}
}

static void put_qdiscs(const struct state *state)
{
	char labels[QDISC_LABELS];

	for (size_t s = 0; s < ARRAY_SIZE(stats); s++) {
		start_metric(stats[s].name, stats[s].type, stats[s].help);
		for (size_t i = 0; i < state->qdiscs.count; i++) {
			const struct qdisc *qdisc = &state->qdiscs.qdisc[i];
			const void *value = (const char *)qdisc + stats[s].offset;
			__u64 number = stats[s].bytes == sizeof(__u32) ? *(const __u32 *)value :
									*(const __u64 *)value;

			qdisc_labels(labels, &state->links, qdisc);
			if (stats[s].unit == SECONDS)
				sample_seconds(stats[s].name, labels, number);
			else
				sample(stats[s].name, labels, number);
		}
	}
	put_bands(state, "timely_qdisc_band_packets", "gauge", "Packets queued in each band",
		  band_packets);
	put_bands(state, "timely_qdisc_band_drops_total", "counter",
		  "Packets dropped because their band had limit packets", band_drops);
	put_onramp_delays(state);
}

/* ---- connections ---- */

static void add_delay(struct delays *delays, __u64 ns)
{
	size_t i = 0;

	while (i < ARRAY_SIZE(delay_ends_ns) && ns > delay_ends_ns[i])
		i++;
	delays->bins[i]++;
	delays->sum_ns += ns;
}

static void put_delays(const char *name, const char *help, const struct delays *delays)
{
	char sum[128];

	start_metric(name, "histogram", help);
	sample_bins(name, "", delay_ends_ns, delays->bins, ARRAY_SIZE(delays->bins));
	snprintf(sum, sizeof(sum), "%s_sum", name);
	sample_seconds(sum, "", delays->sum_ns);
}

static void put_states(const struct sums *sums)
{
	static const char name[] = "timely_connections_in_state";
	char label[64];

	start_metric(name, "gauge", "Connections by state; a connection may have several");
	for (size_t s = 0; s < STATE_NAMES; s++)
		sample(name, label_text(label, sizeof(label), "state", state_names[s].name),
		       sums->in_state[s]);
}

/* Add a connection up; NULL: start again. */
static void add_connection(const struct timely_connection *connection, void *data)
{
	struct sums *sums = data;

	if (!connection) {
		memset(sums, 0, sizeof(*sums));
		return;
	}
	sums->count++;
	for (size_t s = 0; s < STATE_NAMES; s++)
		sums->in_state[s] += !!(connection->state & state_names[s].bit);
	sums->paused += !!connection->pause_left_ns;
	sums->rate_Bps += connection->rate_Bps;
	if (!connection_rtt_is_recent(connection))
		return;
	add_delay(&sums->rtts, connection->rtt_ns);
	add_delay(&sums->queues, connection_queue_ns(connection));
}

static void put_connections(const struct sums *sums)
{
	metric("timely_connections", "gauge", "Connections that use timely", sums->count);
	metric("timely_connections_paused", "gauge", "Connections that On-Ramp pauses now",
	       sums->paused);
	metric("timely_connections_rate_bytes_per_second", "gauge",
	       "Sum of the rates of all connections", sums->rate_Bps);
	put_states(sums);
	put_delays("timely_connections_rtt_seconds",
		   "Last RTTs of the connections that had one in the last minute; not cumulative",
		   &sums->rtts);
	put_delays("timely_connections_queueing_delay_seconds",
		   "Queueing delays of the connections that had an RTT in the last minute; not cumulative",
		   &sums->queues);
}

/* ---- NDP ---- */

static void put_ndp(const struct ndp_sums *sums)
{
	put_counters("ndp", &sums->counts.counters);
	metric("timely_ndp_memory_bytes", "gauge", "NDP: memory of connections and their data",
	       sums->counts.memory);
	metric("timely_ndp_max_memory_bytes", "gauge", "NDP: limit of the memory",
	       sums->counts.max_memory);
	metric("timely_ndp_connections", "gauge", "NDP: connections", sums->connections);
	metric("timely_ndp_connections_graceful", "gauge",
	       "NDP: connections that lost packets and met no switch that trims",
	       sums->graceful);
	metric("timely_ndp_paths_left_out", "gauge", "NDP: paths of connections that are left out",
	       sums->paths_out);
}

/* ---- timely-clockd ---- */

static const char *peer_label(char *text, size_t size, const struct timely_clock_peer *peer)
{
	char address[INET6_ADDRSTRLEN];

	return label_text(text, size, "peer", clock_address_text(address, peer->address));
}

/* A gauge of the peers, in seconds. Peers of which the value is not known have no sample. */
static void put_peer_times(const struct timely_clock_page *page, const char *name,
			   const char *help, __s64 (*get)(const struct timely_clock_peer *peer),
			   bool (*known)(const struct timely_clock_peer *peer))
{
	char label[64];

	start_metric(name, "gauge", help);
	for (size_t i = 0; i < page->peer_count && i < TIMELY_CLOCK_PEERS; i++) {
		const struct timely_clock_peer *peer = &page->peers[i];

		if (!known(peer))
			continue;
		start_sample(name, peer_label(label, sizeof(label), peer));
		fprintf(out, "%.9f\n", get(peer) / 1e9);
	}
}

static bool has_bound(const struct timely_clock_peer *peer)
{
	return peer->bound_ns != TIMELY_CLOCK_UNKNOWN_NS;
}

static bool has_system(const struct timely_clock_peer *peer)
{
	return peer->system_bound_ns != TIMELY_CLOCK_UNKNOWN_NS;
}

static __s64 get_bound(const struct timely_clock_peer *peer)
{
	return peer->bound_ns;
}

static __s64 get_system(const struct timely_clock_peer *peer)
{
	return peer->system_offset_ns;
}

static bool has_surplus(const struct timely_clock_peer *peer)
{
	return peer->loops;
}

static __s64 get_surplus(const struct timely_clock_peer *peer)
{
	return peer->surplus_ns;
}

static void put_peer_states(const struct timely_clock_page *page)
{
	char label[64];

	start_metric("timely_clock_peer_good", "gauge",
		     "Whether the clock of a peer is known and not excluded: 1 or 0");
	for (size_t i = 0; i < page->peer_count && i < TIMELY_CLOCK_PEERS; i++)
		sample("timely_clock_peer_good", peer_label(label, sizeof(label), &page->peers[i]),
		       page->peers[i].state == TIMELY_CLOCK_PEER_GOOD);
}

/* Without references in the configuration there are no samples. */
static void put_reference(const struct timely_clock_page *page)
{
	if (!page->references)
		return;
	metric("timely_clock_references", "gauge", "References that the configuration names",
	       page->references);
	metric("timely_clock_references_used", "gauge", "References that agree",
	       page->references_used);
	if (!page->references_used)
		return;
	start_metric("timely_clock_reference_bound_seconds", "gauge",
		     "Error of the reference time minus the common time");
	sample_seconds("timely_clock_reference_bound_seconds", "", page->reference_bound_ns);
	start_metric("timely_clock_reference_offset_seconds", "gauge",
		     "Reference time minus common time");
	start_sample("timely_clock_reference_offset_seconds", "");
	fprintf(out, "%.9f\n", page->reference_offset_ns / 1e9);
}

/* What the daemon has measured. */
static void put_times(const struct timely_clock_page *page)
{
	if (page->bound_ns != TIMELY_CLOCK_UNKNOWN_NS) {
		start_metric("timely_clock_bound_seconds", "gauge", "Error of the common time");
		sample_seconds("timely_clock_bound_seconds", "", page->bound_ns);
		start_metric("timely_clock_system_offset_seconds", "gauge",
			     "Common time minus the system clock");
		start_sample("timely_clock_system_offset_seconds", "");
		fprintf(out, "%.9f\n", page->system_offset_ns / 1e9);
	}
	put_reference(page);
	put_peer_states(page);
	put_peer_times(page, "timely_clock_peer_bound_seconds",
		       "Error of the offset between a peer's probe clock and that of this host",
		       get_bound, has_bound);
	put_peer_times(page, "timely_clock_peer_surplus_seconds",
		       "Surplus of the loops through a peer", get_surplus, has_surplus);
	put_peer_times(page, "timely_clock_peer_system_offset_seconds",
		       "A peer's system clock minus that of this host", get_system, has_system);
}

static void put_clock(const struct timely_clock_page *page)
{
	bool running = page->state == TIMELY_CLOCK_RUNNING && !clock_has_ended(page);
	char name[64];

	metric("timely_clock_running", "gauge", "Whether timely-clockd publishes a time: 1 or 0",
	       running);
	/* The measurements of a daemon that has ended are not true any more. */
	if (running)
		put_times(page);
	for (size_t i = 0; i < TIMELY_CLOCK_COUNTERS; i++) {
		snprintf(name, sizeof(name), "timely_clock_%s_total",
			 timely_clock_counter_names[i]);
		metric(name, "counter", timely_clock_counter_docs[i], page->counters[i]);
	}
}

/* ---- the command ---- */

/* Read the clock page, if timely-clockd has run. */
static void read_clock(struct state *state)
{
	struct timely_clock *clock;

	if (timely_clock_open(&clock, NULL))
		return;
	state->clocks = !timely_clock_read(clock, &state->clock);
	timely_clock_close(clock);
}

/* Read what module timely knows. Prints errors; returns an exit status. */
static int read_timely(struct state *state, bool all)
{
	const struct choice choice = { .all = all };
	struct family family;
	int err = family_open(&family, TIMELY_GENL_NAME);

	state->timely = family.id;
	if (!err && family.id) {
		err = family_counters(&family, &state->rtt);
		if (!err)
			err = onramp_get(&family, &state->onramp);
		if (!err)
			err = limits_get(&family, &state->limits);
		if (!err)
			err = family_nics(&family, &state->nics);
		if (!err)
			err = connections_each(&family, &choice, add_connection,
					       &state->connections);
	}
	if (err)
		connections_tell_failed(&family, "metrics", err);
	family_close(&family);
	return err ? STATUS_FAILED : STATUS_OK;
}

static int read_ndp(struct state *state)
{
	struct family family;
	int err = family_open(&family, NDP_GENL_NAME);

	state->ndp = family.id;
	if (!err && family.id)
		err = ndp_sums_get(&family, &state->ndp_sums);
	family_close(&family);
	return err;
}

/* As read_timely(), for everything else. */
static int read_rest(struct state *state)
{
	struct family family;
	int err = family_open(&family, TIMELY_ACKER_GENL_NAME);

	state->acker = family.id;
	family_close(&family);
	if (!err)
		err = read_ndp(state);
	if (!err)
		err = links_get(&state->links);
	if (!err)
		err = qdiscs_get(&state->qdiscs, "timely");
	if (err)
		tell_err("a netlink request to the kernel failed: %s", error_text(err));
	return err ? STATUS_FAILED : STATUS_OK;
}

static void free_state(struct state *state)
{
	free(state->rtt.counter);
	free(state->onramp.counters.counter);
	free(state->ndp_sums.counts.counters.counter);
	free(state->nics.report);
	links_free(&state->links);
	free(state->qdiscs.qdisc);
}

static void put_metrics(const struct state *state)
{
	put_modules(state);
	if (state->clocks)
		put_clock(&state->clock);
	if (state->ndp)
		put_ndp(&state->ndp_sums);
	if (!state->timely)
		return;
	put_counters("rtt", &state->rtt);
	put_counters("onramp", &state->onramp.counters);
	put_limits(&state->limits);
	put_nics(state);
	put_qdiscs(state);
	put_connections(&state->connections);
}

/* Write a new file, then rename it to @path: no reader finds a part. Returns 0 or an errno. */
static int replace_file(const struct state *state, const char *path)
{
	struct stat old;
	char *text;
	int err = 0;
	int fd;

	/* A device or a pipe must not be replaced by a file. */
	if (!stat(path, &old) && !S_ISREG(old.st_mode))
		return S_ISDIR(old.st_mode) ? EISDIR : EEXIST;
	if (asprintf(&text, "%s.XXXXXX", path) < 0)
		out_of_memory();
	fd = mkstemp(text);
	if (fd < 0) {
		err = errno;
		free(text);
		return err;
	}
	out = fdopen(fd, "w");
	if (!out)
		out_of_memory();
	put_metrics(state);
	/* The file is for another user, who collects the metrics. */
	if (fchmod(fd, 0644) || fflush(out) || ferror(out))
		err = errno;
	if (fclose(out) && !err)
		err = errno;
	if (!err && rename(text, path))
		err = errno;
	if (err)
		unlink(text);
	free(text);
	return err;
}

/* As replace_file(). Signals that end the program wait, or they would leave the new file behind. */
static int write_file(const struct state *state, const char *path)
{
	sigset_t before;
	int err;

	hold_signals(&before);
	err = replace_file(state, path);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}

/* Read everything. Prints errors; returns an exit status. */
static int read_state(struct state *state, bool all)
{
	int status = read_timely(state, all);

	if (!status)
		status = read_rest(state);
	read_clock(state);
	return status;
}

/* Print the metrics, or write them to a file. Prints errors; returns an exit status. */
static int show_metrics(bool all, const char *path)
{
	struct state state = {};
	int status = read_state(&state, all);
	int err = 0;

	out = stdout;
	if (!status && path)
		err = write_file(&state, path);
	else if (!status)
		put_metrics(&state);
	if (err) {
		tell_err("cannot write \"%s\": %s", plain(path), error_text(err));
		status = STATUS_FAILED;
	}
	free_state(&state);
	return status;
}

/* Answer a request of HTTP. A client's error is none of this program. */
static int answer_request(bool all)
{
	struct state state = {};
	int status = STATUS_OK, code = http_read();

	if (code == 200)
		status = read_state(&state, all);
	if (status)
		code = 500;
	http_start(code);
	out = stdout;
	if (code == 200)
		put_metrics(&state);
	free_state(&state);
	return status;
}

int command_metrics(char **words, int count, bool json)
{
	bool all = count && strcmp(words[0], "all") == 0;
	bool http;

	words += all;
	count -= all;
	http = count && strcmp(words[0], "http") == 0;
	if (count && !http && strcmp(words[0], "output") != 0)
		return usage_err("metrics: unexpected word \"%s\": allowed are all, output, http",
				 plain(words[0]));
	if (count == 1 && !http)
		return usage_err("metrics output: the file's name is missing");
	if (count > 2 - http)
		return usage_err("metrics: unexpected word \"%s\"", plain(words[2 - http]));
	if (json)
		return usage_err("metrics: -j is not possible: this is Prometheus' text format");
	return http ? answer_request(all) : show_metrics(all, count ? words[1] : NULL);
}
