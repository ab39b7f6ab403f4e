// SPDX-License-Identifier: GPL-2.0
/*
 * A packet simulator in user space: connections at one port, with the rate engine and the
 * default parameters of tcp_timely. It is thousands of times faster than the lab, and
 * simulates networks that the lab is too slow for. The script "matrix" runs it for many
 * link rates, base RTTs and numbers of flows; README.md has a comparison with the lab.
 *
 * The way of a segment:
 *
 *	pacing at the host -> the host's link, a FIFO -> half of the base RTT -> the port, a
 *	FIFO with a limited buffer -> rest of the flow's base RTT -> ACK ->
 *	timely_rate_update()
 *
 * Of TCP there are only a window, losses that are noticed when the segment's ACK would
 * arrive, and the rule that the rate grows only while the application uses it
 * (app_limited_percent). There are no base-RTT probes: the engine is given the base RTT
 * and the link rate.
 *
 *	matrix KEY=VALUE...	prints one line of JSON
 *
 * KEY is a name in options[] below, or a parameter of tcp_timely, which then is not
 * computed from the path.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/minmax.h>
#include <linux/types.h>

#include <timely/engine/rate.h>
#include <timely/engine/tune.h>

#define HEADERS		90	/* bytes of a packet on the link besides its payload */
#define NS		1e9

/* Names, units and defaults are in options[]. */
enum option {
	GBIT, HOST_GBIT, FLOWS, HOSTS, BASE_US, MIXED, MSS, BUFFER_KB, WARMUP_MS, MEASURE_MS,
	NOISE_NS, HOLD_US, MERGE_US, SEED, OPTIONS
};

static struct {
	const char *name;
	double value;
} options[OPTIONS] = {
	[GBIT] = { "gbit", 10 },		/* rate of the port, Gb/s */
	[HOST_GBIT] = { "host_gbit", 10 },	/* rate of each host's link, Gb/s */
	[FLOWS] = { "flows", 10 },
	[HOSTS] = { "hosts", 10 },		/* flows are distributed over the hosts in turn */
	[BASE_US] = { "base_us", 20 },		/* the shortest base RTT */
	[MIXED] = { "mixed", 1 },		/* the longest base RTT divided by the shortest */
	[MSS] = { "mss", 1448 },
	[BUFFER_KB] = { "buffer_kb", 2000 },	/* of the port; packets beyond it are lost */
	[WARMUP_MS] = { "warmup_ms", 300 },	/* before the measurement */
	[MEASURE_MS] = { "measure_ms", 300 },
	[NOISE_NS] = { "noise_ns", 500 },	/* host jitter of each RTT, uniform from 0 on */
	[HOLD_US] = { "hold_us", 0 },		/* ACKs pass only at multiples of this; 0: always */
	[MERGE_US] = { "merge_us", 0 },		/* delay until the receiver handles arrived data */
	[SEED] = { "seed", 1 },
};

#define option(which)	(options[which].value)

/* Kinds of events. */
enum kind {
	START,		/* a flow starts */
	DUE,		/* the departure time of a flow's next segment */
	PACKET,		/* the next packet of a host arrives at the port */
	ACK,		/* the ACK of a segment arrives at the sender */
	SAMPLE,		/* sample the queue */
};

struct event {
	double at_ns;
	enum kind kind;
	u32 who;		/* number of the flow; for PACKET of the host */
	u32 what;		/* DUE: flow.turn; ACK: number of the segment; otherwise unused */
};

/* A segment in flight. The rate sample is taken as TCP does (tcp_rate.c). */
struct segment {
	double sent_ns;
	double first_sent_ns;	/* departure of the segment that had been ACKed last, at sent_ns */
	double prior_ns;	/* arrival of the last ACK before sent_ns */
	double answered_ns;	/* when its ACK arrives */
	u64 prior_packets;	/* packets ACKed before sent_ns */
	u32 packets;
	bool lost;
};

#define WINDOW	(1U << 14)	/* limit of a flow's segments in flight */

struct flow {
	struct timely_rate rate;
	struct timely_rate_cfg cfg;
	struct timely_params params;
	bool computed;		/* segment_bytes is auto: the size follows the rate */
	double used_ns;		/* when the flow last used its rate */
	double back_ns;		/* time from the port to the ACK's arrival */
	double clock_ns;	/* the pacer's last departure, as scheduled */
	double owed;		/* bytes of that departure, to be paced before the next */
	double first_sent_ns;	/* departure of the segment that was ACKed last */
	double acked_ns;	/* arrival of the last ACK */
	u64 packets;		/* packets acknowledged */
	u64 received;		/* bytes acknowledged during the measurement */
	u32 host;
	u32 turn;		/* number of the latest DUE event; earlier ones are out of date */
	u32 in_flight;		/* packets */
	u32 head;		/* number of the oldest segment in flight */
	u32 tail;		/* number of the next segment to be sent */
	u32 cut_until;		/* losses of earlier segments do not reduce the rate again */
	u32 size;		/* of the ring, which grows */
	struct segment *segments;	/* ring: segment n is at n % size */
};

/* A segment that waits for the host's link or is being sent over it. */
struct departure {
	double start_ns;	/* when the link begins to send it */
	u32 flow;
	u32 segment;
	u32 packets;
};

struct host {
	struct departure *queue;
	u32 head;
	u32 tail;
	u32 size;
	u32 sent;		/* packets of the first segment that have arrived at the port */
	double free_ns;		/* when the link has sent all that it was given */
};

/* Future events, a binary heap by time. */
static struct event *heap;
static u32 events, heap_size;
static struct flow *flows;
static struct host *hosts;
static double now_ns, measure_ns, end_ns;	/* current time, start and end of the measurement */
static double wire;				/* bytes of a packet on the link */
static double link_Bpns, port_Bpns;		/* rates of a host's link and of the port */
static double forth_ns;				/* time from a host's link to the port */
static double port_free_ns;			/* when the port has sent all that it was given */
static float *queue_us, *rtt_us;
static double merged_ns;	/* when the receiver handles arrived data next, with merge_us */
static u32 queue_count, rtt_count;
static u64 drops, segments;
static u64 dice;

#define SAMPLES	(1U << 22)	/* limit of samples of queue and RTT; later ones are ignored */

/* A pseudo-random number from 0 to 1 (xorshift). */
static double chance(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (dice >> 11) / 9007199254740992.0;
}

static void *room(void *old, u32 count, size_t size)
{
	void *new = realloc(old, count * size);

	if (!new) {
		fputs("matrix: out of memory\n", stderr);
		exit(1);
	}
	return new;
}

/* Add an event. */
static void later(double at_ns, enum kind kind, u32 who, u32 what)
{
	u32 i = events++;

	if (events > heap_size) {
		heap_size = 2 * heap_size + 1024;
		heap = room(heap, heap_size, sizeof(*heap));
	}
	for (; i && heap[(i - 1) / 2].at_ns > at_ns; i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = (struct event){ at_ns, kind, who, what };
}

/* Remove and return the earliest event. */
static struct event next(void)
{
	struct event first = heap[0], last = heap[--events];
	u32 i = 0, child;

	while ((child = 2 * i + 1) < events) {
		if (child + 1 < events && heap[child + 1].at_ns < heap[child].at_ns)
			child++;
		if (heap[child].at_ns >= last.at_ns)
			break;
		heap[i] = heap[child];
		i = child;
	}
	heap[i] = last;
	return first;
}

/* Bytes per nanosecond. */
static double rate_of(const struct flow *f)
{
	return timely_rate_Bps(&f->rate) / NS;
}

/* ---- the host ---- */

/* Schedule the departure of the flow's next segment; an earlier DUE event becomes out of date. */
static void pace(u32 id)
{
	struct flow *f = &flows[id];

	later(max(f->clock_ns + f->owed / rate_of(f), now_ns), DUE, id, ++f->turn);
}

static u32 segment_packets(const struct flow *f)
{
	u32 slice = timely_rate_Bps(&f->rate) >> TIMELY_SEGMENT_SHIFT;
	u32 most = f->params.segment_bytes / option(MSS);

	return f->computed ? timely_segment_packets(slice / option(MSS), most) : max(most, 2U);
}

/* Congestion window in packets: what the rate needs for twice t_high, and three segments. */
static u32 window(const struct flow *f)
{
	double packets = rate_of(f) * 2 * f->params.t_high_ns / option(MSS);

	return max(min(packets + 3 * segment_packets(f), 1e9), 10.0);
}

/* Queue a segment at the host's link. */
static void to_link(u32 id, u32 segment, u32 packets)
{
	struct host *h = &hosts[flows[id].host];
	double start_ns = max(h->free_ns, now_ns);
	u32 i, count = h->tail - h->head;
	struct departure *queue;

	if (count == h->size) {
		queue = room(NULL, 2 * h->size + 16, sizeof(*queue));
		for (i = 0; i < count; i++)
			queue[i] = h->queue[(h->head + i) % h->size];
		free(h->queue);
		h->queue = queue;
		h->size = 2 * h->size + 16;
		h->head = 0;
		h->tail = count;
	}
	h->queue[h->tail++ % h->size] = (struct departure){ start_ns, id, segment, packets };
	h->free_ns = start_ns + packets * wire / link_Bpns;
	if (!count)
		later(start_ns + wire / link_Bpns + forth_ns, PACKET, flows[id].host, 0);
}

/* Send the flow's next segment, if the window has room. */
static void depart(u32 id)
{
	struct flow *f = &flows[id];
	double rate = rate_of(f), due_ns = f->clock_ns + f->owed / rate;
	u32 packets = segment_packets(f);

	if ((f->in_flight && f->in_flight + packets > window(f)) ||
	    f->tail - f->head >= WINDOW)
		return;
	if (f->tail - f->head == f->size) {
		/* The ring is full: move its segments to a larger ring. */
		struct segment *ring = room(NULL, 2 * f->size + 16, sizeof(*ring));
		u32 i, size = 2 * f->size + 16;

		for (i = f->head; i != f->tail; i++)
			ring[i % size] = f->segments[i % f->size];
		free(f->segments);
		f->segments = ring;
		f->size = size;
	}
	if (!f->in_flight) {
		f->first_sent_ns = now_ns;
		f->acked_ns = now_ns;
	}
	f->segments[f->tail % f->size] = (struct segment){
		.sent_ns = now_ns, .first_sent_ns = f->first_sent_ns, .prior_ns = f->acked_ns,
		.prior_packets = f->packets, .packets = packets,
	};
	f->in_flight += packets;
	/* A late departure may be made up for, as in the qdisc, by up to half a segment's time. */
	f->clock_ns = max(due_ns, now_ns - f->owed / rate / 2);
	f->owed = packets * wire;
	segments += now_ns >= measure_ns;
	to_link(id, f->tail++, packets);
	pace(id);
}

/* ---- the port ---- */

/* When the ACK of data that leaves the port at @at_ns arrives at the sender. With merge_us the
 * receiver handles arrived data merge_us after the first of it, and sends one ACK for each flow.
 */
static double answer(const struct flow *f, double at_ns)
{
	double hold_ns = option(HOLD_US) * 1000, merge_ns = option(MERGE_US) * 1000;

	if (merge_ns) {
		if (at_ns > merged_ns)
			merged_ns = at_ns + merge_ns;
		at_ns = merged_ns;
	}
	at_ns += f->back_ns + chance() * option(NOISE_NS) * !merge_ns;
	if (hold_ns)
		at_ns = ((u64)(at_ns / hold_ns) + 1) * hold_ns;
	return at_ns;
}

/* The next packet of host @id arrives at the port: queue or drop it, and schedule the arrival of
 * the packet after it.
 */
static void arrive(u32 id)
{
	struct host *h = &hosts[id];
	struct departure *d = &h->queue[h->head % h->size];
	struct flow *f = &flows[d->flow];
	double waits_ns = max(port_free_ns - now_ns, 0.0);
	bool last = ++h->sent == d->packets;

	if (waits_ns * port_Bpns + wire > option(BUFFER_KB) * 1000) {
		f->segments[d->segment % f->size].lost = true;
		drops++;
	} else {
		port_free_ns = now_ns + waits_ns + wire / port_Bpns;
		if (port_free_ns >= measure_ns)
			f->received += option(MSS);
	}
	if (last) {
		double at_ns = answer(f, max(port_free_ns, now_ns));

		f->segments[d->segment % f->size].answered_ns = at_ns;
		later(at_ns, ACK, d->flow, d->segment);
		h->head++;
		h->sent = 0;
		if (h->head == h->tail)
			return;
		d = &h->queue[h->head % h->size];
	}
	later(d->start_ns + (h->sent + 1) * wire / link_Bpns + forth_ns, PACKET, id, 0);
}

/* ---- the ACK ---- */

/* The delivery rate, bytes per nanosecond, as TCP samples it when segment @s is ACKed; 0: not
 * known.
 */
static double delivery_rate(const struct flow *f, const struct segment *s)
{
	double interval_ns = max(s->sent_ns - s->first_sent_ns, now_ns - s->prior_ns);

	return interval_ns <= 0 ? 0 :
	       (f->packets - s->prior_packets) * option(MSS) / interval_ns;
}

/* An ACK of all segments of flow @id up to number @last. */
static void acknowledge(u32 id, u32 last)
{
	struct flow *f = &flows[id];
	u32 packets = 0;
	struct segment *s = NULL;
	double rtt_ns, rate;
	bool lost = false;

	if ((s32)(last - f->head) < 0)
		return;
	while (option(MERGE_US) && (s32)(f->tail - last) > 1 &&
	       f->segments[(last + 1) % f->size].answered_ns == now_ns)
		last++;
	for (; (s32)(last - f->head) >= 0; f->head++) {
		s = &f->segments[f->head % f->size];
		packets += s->packets;
		lost |= s->lost;
	}
	f->in_flight -= packets;
	f->packets += packets;
	rtt_ns = max(now_ns - s->sent_ns - s->packets * wire / link_Bpns, 0.0);
	if (lost) {
		if ((s32)(last - f->cut_until) >= 0) {
			timely_rate_loss(&f->rate, &f->cfg);
			f->cut_until = f->tail;
		}
	} else {
		rate = delivery_rate(f, s);
		if (!rate || rate * 100 >= f->params.app_limited_percent * rate_of(f))
			f->used_ns = now_ns;
		timely_rate_update(&f->rate, &f->cfg, &(struct timely_completion){
			.now_ns = now_ns, .rtt_ns = rtt_ns, .bytes = packets * option(MSS),
			.may_rise = now_ns - f->used_ns <=
				(f->cfg.least_shift ? 2 * rtt_ns : 0),
			.delivered_fp = rate * NS * (1 << TIMELY_RATE_SHIFT),
		});
		if (now_ns >= measure_ns && rtt_count < SAMPLES)
			rtt_us[rtt_count++] = rtt_ns / 1000;
	}
	f->acked_ns = now_ns;
	f->first_sent_ns = s->sent_ns;
	pace(id);
}

/* ---- set-up and output ---- */

/* Set up flow @id and schedule its start. */
static void begin(u32 id)
{
	struct flow *f = &flows[id];
	/* Eight base RTTs, from base_us to mixed * base_us. */
	double base_ns = option(BASE_US) * 1000 * (1 + (option(MIXED) - 1) * (id % 8) / 7);
	u32 i;

	f->host = id % (u32)option(HOSTS);
	f->back_ns = base_ns - forth_ns;
	f->computed = f->params.segment_bytes == TIMELY_AUTO;
	timely_tune(&f->params, &(struct timely_path){
		.base_rtt_ns = base_ns + wire / port_Bpns,
		.link_kbps = option(HOST_GBIT) * 1000000, .mss = option(MSS),
	});
	if (timely_params_check(&f->params, &i)) {
		fprintf(stderr, "matrix: %s is out of range or does not fit the other parameters\n",
			timely_param_descs[i].name);
		exit(2);
	}
	timely_rate_cfg_init(&f->cfg, &f->params);
	timely_rate_init(&f->rate, &f->cfg);
	/* Flows start during the first part of the warm-up. */
	later(option(WARMUP_MS) * 1e6 * (0.001 + 0.05 * chance()), START, id, 0);
}

static void handle(struct event e)
{
	struct flow *f = &flows[e.who];

	now_ns = e.at_ns;
	switch (e.kind) {
	case START:
		f->clock_ns = now_ns;
		pace(e.who);
		break;
	case DUE:
		if (e.what == f->turn)
			depart(e.who);
		break;
	case PACKET:
		arrive(e.who);
		break;
	case ACK:
		acknowledge(e.who, e.what);
		break;
	case SAMPLE:
		if (queue_count < SAMPLES)
			queue_us[queue_count++] = max(port_free_ns - now_ns, 0.0) / 1000;
		later(now_ns + (0.5 + chance()) * (end_ns - measure_ns) / 20000, SAMPLE, 0, 0);
		break;
	}
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

static double quantile(const float *values, u32 count, double share)
{
	return count ? values[(u32)(share * (count - 1))] : 0;
}

/* Print the figures. Shares are of the payload that the port or the hosts' links can carry. */
static void print_result(void)
{
	double most = min(option(GBIT), option(HOST_GBIT) * option(HOSTS)) * option(MSS) / wire;
	double total = 0, squares = 0, mean = 0, least = 1e300, x;
	u32 i;

	for (i = 0; i < option(FLOWS); i++) {
		x = flows[i].received * 8 / (end_ns - measure_ns);
		total += x;
		squares += x * x;
		least = min(least, x);
	}
	for (i = 0; i < queue_count; i++)
		mean += queue_us[i] / queue_count;
	qsort(queue_us, queue_count, sizeof(*queue_us), by_value);
	qsort(rtt_us, rtt_count, sizeof(*rtt_us), by_value);
	printf("{\"gbit\": %.3f, \"share\": %.4f, \"jain\": %.4f, \"least\": %.3f, ",
	       total, total / most, total * total / option(FLOWS) / squares,
	       least * option(FLOWS) / total);
	printf("\"queue_us\": {\"avg\": %.2f, \"p50\": %.2f, \"p99\": %.2f}, ",
	       mean, quantile(queue_us, queue_count, 0.5), quantile(queue_us, queue_count, 0.99));
	printf("\"rtt_us\": {\"p50\": %.2f, \"p99\": %.2f}, \"drops\": %llu, ",
	       quantile(rtt_us, rtt_count, 0.5), quantile(rtt_us, rtt_count, 0.99),
	       (unsigned long long)drops);
	printf("\"segments_per_s\": %.0f}\n", segments / ((end_ns - measure_ns) / NS));
}

/* Apply one argument KEY=VALUE: an option or a parameter. */
static void set(struct timely_params *params, char *text)
{
	char *value = strchr(text, '=');
	u32 i;

	if (!value) {
		fprintf(stderr, "matrix: %s is not KEY=VALUE\n", text);
		exit(2);
	}
	*value++ = 0;
	for (i = 0; i < OPTIONS; i++)
		if (!strcmp(options[i].name, text)) {
			options[i].value = atof(value);
			return;
		}
	for (i = 0; i < TIMELY_P_COUNT; i++)
		if (!strcmp(timely_param_descs[i].name, text)) {
			*timely_param_ref(params, i) = strtoul(value, NULL, 0);
			return;
		}
	fprintf(stderr, "matrix: no option or parameter %s\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	struct timely_params params = timely_presets[0].params;
	struct event e;
	int i;

	for (i = 1; i < argc; i++)
		set(&params, argv[i]);
	dice = 88172645463325252ULL + (u64)option(SEED) * 0x9e3779b97f4a7c15ULL;
	for (i = 0; i < 20; i++)
		chance();
	wire = option(MSS) + HEADERS;
	link_Bpns = option(HOST_GBIT) / 8;
	port_Bpns = option(GBIT) / 8;
	forth_ns = option(BASE_US) * 500;
	measure_ns = option(WARMUP_MS) * 1e6;
	end_ns = measure_ns + option(MEASURE_MS) * 1e6;
	queue_us = room(NULL, SAMPLES, sizeof(*queue_us));
	rtt_us = room(NULL, SAMPLES, sizeof(*rtt_us));
	flows = calloc(option(FLOWS), sizeof(*flows));
	hosts = calloc(option(HOSTS), sizeof(*hosts));
	if (!flows || !hosts)
		return 1;
	for (i = 0; i < option(FLOWS); i++) {
		flows[i].params = params;
		begin(i);
	}
	later(measure_ns, SAMPLE, 0, 0);
	for (e = next(); e.at_ns < end_ns; e = next())
		handle(e);
	print_result();
	return 0;
}
