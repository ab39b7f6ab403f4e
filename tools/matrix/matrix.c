// SPDX-License-Identifier: GPL-2.0
/*
 * One cell of the matrix: flows of the real rate engine, with the real defaults, at one
 * port. A packet simulator, thousands of times faster than the lab, for lines that the
 * lab is too slow for; where both can go they agree (see README.md).
 *
 *	host: paced segments -> line, in order -> half of the base RTT -> port: a FIFO of
 *	bytes -> the other half of each flow's RTT -> ACK -> timely_rate_update()
 *
 * What is not there: TCP, but for a window, a loss a round trip late and the 80 % rule;
 * and anything that drains: base RTTs are known, as is the line.
 *
 *	matrix KEY=VALUE...	prints one line of JSON
 *
 * Keys are those of options[] below, and the names of parameters, which override what is
 * derived from the path.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/minmax.h>
#include <linux/types.h>

#include <timely/engine/rate.h>
#include <timely/engine/tune.h>

#define HEADERS		90	/* bytes of a packet on the wire, beyond its payload */
#define NS		1e9

enum option {
	GBIT, HOST_GBIT, FLOWS, HOSTS, BASE_US, MIXED, MSS, BUFFER_KB, WARMUP_MS, MEASURE_MS,
	NOISE_NS, HOLD_US, MERGE_US, SEED, OPTIONS
};

static struct {
	const char *name;
	double value;
} options[OPTIONS] = {
	[GBIT] = { "gbit", 10 },		/* of the port */
	[HOST_GBIT] = { "host_gbit", 10 },	/* of each host's line */
	[FLOWS] = { "flows", 10 },
	[HOSTS] = { "hosts", 10 },
	[BASE_US] = { "base_us", 20 },
	[MIXED] = { "mixed", 1 },		/* the longest base RTT is so many times that */
	[MSS] = { "mss", 1448 },
	[BUFFER_KB] = { "buffer_kb", 2000 },
	[WARMUP_MS] = { "warmup_ms", 300 },
	[MEASURE_MS] = { "measure_ms", 300 },
	[NOISE_NS] = { "noise_ns", 500 },	/* of an RTT, evenly from 0 on */
	[HOLD_US] = { "hold_us", 0 },		/* ACKs are let through each so many us only */
	[MERGE_US] = { "merge_us", 0 },		/* the receiver looks so late at what arrived */
	[SEED] = { "seed", 1 },
};

#define option(which)	(options[which].value)

enum kind { START, DUE, PACKET, ACK, SAMPLE };

struct event {
	double at_ns;
	enum kind kind;
	u32 who;
	u32 what;
};

/* A segment on its way. */
struct segment {
	double sent_ns;
	double first_sent_ns;	/* TCP's rate sample: of the segment acknowledged last */
	double prior_ns;
	double answered_ns;	/* when its ACK arrives */
	u64 prior_packets;
	u32 packets;
	bool lost;
};

#define WINDOW	(1U << 14)	/* segments in flight at most; a ring that grows to it */

struct flow {
	struct timely_rate rate;
	struct timely_rate_law law;
	struct timely_params params;
	bool derived;		/* the size of its segments */
	double used_ns;		/* when it was last seen to use its rate */
	double back_ns;		/* from the port to the ACK's arrival */
	double clock_ns;	/* the pacer's: the last departure, as it should have been */
	double owed;		/* bytes sent then */
	double first_sent_ns;
	double acked_ns;
	u64 packets;		/* acknowledged */
	u64 received;		/* bytes, while measured */
	u32 host;
	u32 turn;		/* tells a DUE that is out of date */
	u32 in_flight;
	u32 head;		/* segments[] */
	u32 tail;
	u32 cut_until;		/* one loss a window */
	u32 size;
	struct segment *segments;
};

/* What a host's line still has to carry. */
struct departure {
	double start_ns;
	u32 flow;
	u32 segment;
	u32 packets;
};

struct host {
	struct departure *queue;
	u32 head;
	u32 tail;
	u32 size;
	u32 sent;		/* packets of the first one */
	double free_ns;
};

static struct event *heap;
static u32 events, heap_size;
static struct flow *flows;
static struct host *hosts;
static double now_ns, port_free_ns, wire, line_Bpns, port_Bpns, forth_ns, end_ns, measure_ns;
static float *queue_us, *rtt_us;
static double merged_ns;	/* when the receiver looks next */
static u32 queue_count, rtt_count;
static u64 drops, segments;
static u64 dice;

#define SAMPLES	(1U << 22)

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

	if (!new)
		exit(1);
	return new;
}

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

static double rate_of(const struct flow *f)
{
	return timely_rate_Bps(&f->rate) / NS;
}

/* ---- the host ---- */

static void pace(u32 id)
{
	struct flow *f = &flows[id];

	later(max(f->clock_ns + f->owed / rate_of(f), now_ns), DUE, id, ++f->turn);
}

static u32 segment_packets(const struct flow *f)
{
	u32 slice = timely_rate_Bps(&f->rate) >> TIMELY_SEGMENT_SHIFT;
	u32 most = f->params.segment_bytes / option(MSS);

	return f->derived ? timely_segment_packets(slice / option(MSS), most) : max(most, 2U);
}

static u32 window(const struct flow *f)
{
	double packets = rate_of(f) * 2 * f->params.t_high_ns / option(MSS);

	return max(min(packets + 3 * segment_packets(f), 1e9), 10.0);
}

static void to_line(u32 id, u32 segment, u32 packets)
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
	h->free_ns = start_ns + packets * wire / line_Bpns;
	if (!count)
		later(start_ns + wire / line_Bpns + forth_ns, PACKET, flows[id].host, 0);
}

static void depart(u32 id)
{
	struct flow *f = &flows[id];
	double rate = rate_of(f), due_ns = f->clock_ns + f->owed / rate;
	u32 packets = segment_packets(f);

	if ((f->in_flight && f->in_flight + packets > window(f)) ||
	    f->tail - f->head >= WINDOW)
		return;
	if (f->tail - f->head == f->size) {
		/* As it is a ring: only a whole one can be moved this way. */
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
	/* The qdisc makes good up to half of a segment's time. */
	f->clock_ns = max(due_ns, now_ns - f->owed / rate / 2);
	f->owed = packets * wire;
	segments += now_ns >= measure_ns;
	to_line(id, f->tail++, packets);
	pace(id);
}

/* ---- the port ---- */

/* When the ACK of what leaves the port at a time is back. Receivers that merge look at what
 * arrived so long after the first of it, and make one ACK of it for each flow.
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
	later(d->start_ns + (h->sent + 1) * wire / line_Bpns + forth_ns, PACKET, id, 0);
}

/* ---- the ACK ---- */

/* Bytes a nanosecond, over the last round trip; 0 if that is not known. */
static double arrived(const struct flow *f, const struct segment *s)
{
	double interval_ns = max(s->sent_ns - s->first_sent_ns, now_ns - s->prior_ns);

	return interval_ns <= 0 ? 0 :
	       (f->packets - s->prior_packets) * option(MSS) / interval_ns;
}

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
	rtt_ns = max(now_ns - s->sent_ns - s->packets * wire / line_Bpns, 0.0);
	if (lost) {
		if ((s32)(last - f->cut_until) >= 0) {
			timely_rate_lose(&f->rate, &f->law);
			f->cut_until = f->tail;
		}
	} else {
		rate = arrived(f, s);
		if (!rate || rate * 100 >= f->params.app_limited_percent * rate_of(f))
			f->used_ns = now_ns;
		timely_rate_update(&f->rate, &f->law, &(struct timely_completion){
			.now_ns = now_ns, .rtt_ns = rtt_ns, .bytes = packets * option(MSS),
			.may_rise = now_ns - f->used_ns <=
				(f->law.least_shift ? 2 * rtt_ns : 0),
			.delivered_fp = rate * NS * (1 << TIMELY_RATE_SHIFT),
		});
		if (now_ns >= measure_ns && rtt_count < SAMPLES)
			rtt_us[rtt_count++] = rtt_ns / 1000;
	}
	f->acked_ns = now_ns;
	f->first_sent_ns = s->sent_ns;
	pace(id);
}

/* ---- setting up, and telling ---- */

static void begin(u32 id)
{
	struct flow *f = &flows[id];
	/* Eight lengths of path, evenly. */
	double base_ns = option(BASE_US) * 1000 * (1 + (option(MIXED) - 1) * (id % 8) / 7);
	u32 i;

	f->host = id % (u32)option(HOSTS);
	f->back_ns = base_ns - forth_ns;
	f->derived = f->params.segment_bytes == TIMELY_AUTO;
	timely_tune(&f->params, &(struct timely_path){
		.base_rtt_ns = base_ns + wire / port_Bpns,
		.line_kbps = option(HOST_GBIT) * 1000000, .mss = option(MSS),
	});
	if (timely_params_check(&f->params, &i)) {
		fprintf(stderr, "matrix: %s is wrong\n", timely_param_descs[i].name);
		exit(2);
	}
	timely_rate_law_init(&f->law, &f->params);
	timely_rate_init(&f->rate, &f->law);
	/* Over the first part of the warm-up. */
	later(option(WARMUP_MS) * 1e6 * (0.001 + 0.05 * chance()), START, id, 0);
}

static void go(struct event e)
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

static void tell(void)
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

static void set(struct timely_params *params, char *text)
{
	char *value = strchr(text, '=');
	u32 i;

	if (!value)
		exit(2);
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
	fprintf(stderr, "matrix: no option %s\n", text);
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
	line_Bpns = option(HOST_GBIT) / 8;
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
		go(e);
	tell();
	return 0;
}
