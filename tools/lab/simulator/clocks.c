// SPDX-License-Identifier: GPL-2.0
/*
 * A simulator of clock synchronisation in user space: hosts with clocks of their own, paths with
 * queues, and the engines probe_code.c, strip.c and clock_loop.c. The script "clocks" runs it for
 * many loads and numbers of peers; README.md explains the model.
 *
 * The way of a probe:
 *
 *	departure timestamp -> the sender's link, a queue -> base delay -> the port to the
 *	receiver, a queue -> arrival timestamp -> probe filter -> points of both hosts' strips
 *
 * A queue is M/G/1: bursts arrive at random times, with the sizes of web search messages up to
 * burst_kb, because larger messages are sent in several bursts. The load of each queue changes
 * every 100 ms. Both queues of a path are read at the probe's departure. A clock's drift is a
 * random walk.
 *
 *	clocks KEY=VALUE...	prints one line of JSON
 *
 * KEY is a name in options[] below. The engines get timestamps only. The simulator knows the true
 * offsets and compares each reading of each pair of hosts.
 */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include <timely/engine/clock_loop.h>
#include <timely/engine/probe_code.h>
#include <timely/engine/strip.h>

#define HOSTS_MAX	TIMELY_LOOP_HOSTS_MAX
#define POINTS		1024		/* per direction and strip */
#define TICK_NS		10000000LL	/* drifts change, and probes are drawn, this often */
#define LOAD_NS		100000000LL	/* loads change this often */
#define SAMPLE_NS	100000000LL	/* time from one reading of all pairs to the next */
#define FRESH_NS	1000000000ULL	/* a fit that is older does not count in a round */
#define SAMPLES		(1U << 22)

/* Names, units and defaults are in options[]. */
enum option {
	HOSTS, PEERS, LOAD, GBIT, BURST_KB, BUFFER_KB, BASE_US, SOFTWARE, GRAIN_NS, NOISE_NS,
	UNEVEN_NS, DRIFT_PPM, WANDER, PAIRS, SPACING_US, WINDOW_MS, ROUND_MS, LOSS, ASYMMETRY_US,
	LIAR_US, STEP_NS, STEP_S, LEAVE_S, WARMUP_S, MEASURE_S, SEED, OPTIONS
};

static struct {
	const char *name;
	double value;
} options[OPTIONS] = {
	[HOSTS] = { "hosts", 16 },		/* 2 to 64 */
	[PEERS] = { "peers", 8 },		/* of each host: even, or all others */
	[LOAD] = { "load", 80 },		/* of all links, percent */
	[GBIT] = { "gbit", 10 },		/* rate of all links, Gb/s */
	[BURST_KB] = { "burst_kb", 64 },	/* the largest burst */
	[BUFFER_KB] = { "buffer_kb", 1000 },	/* of a queue; probes beyond it are lost */
	[BASE_US] = { "base_us", 5 },		/* shortest delay of a path */
	[SOFTWARE] = { "software", 0 },		/* 1: software timestamps */
	[GRAIN_NS] = { "grain_ns", 8 },		/* resolution of hardware timestamps */
	[NOISE_NS] = { "noise_ns", 5 },		/* standard deviation of their noise */
	[UNEVEN_NS] = { "uneven_ns", 20 },	/* base delays differ by up to this, at random */
	[DRIFT_PPM] = { "drift_ppm", 50 },	/* largest drift of a clock at the start */
	[WANDER] = { "wander_ppb", 5 },		/* change of a drift in 1 s, standard deviation */
	[PAIRS] = { "pairs", 100 },		/* probe pairs per second on each path */
	[SPACING_US] = { "spacing_us", 20 },	/* between the two probes of a pair */
	[WINDOW_MS] = { "window_ms", 2000 },	/* of the strip */
	[ROUND_MS] = { "round_ms", 250 },	/* time from one round of a host to its next */
	[LOSS] = { "loss", 0 },			/* share of probes that are lost, percent */
	[ASYMMETRY_US] = { "asymmetry_us", 0 },	/* of the path between hosts 0 and 1 */
	[LIAR_US] = { "liar_us", 0 },		/* host 0 shifts timestamps, differently per peer */
	[STEP_NS] = { "step_ns", 0 },		/* step of the clock of host 0 */
	[STEP_S] = { "step_s", 40 },		/* when that happens */
	[LEAVE_S] = { "leave_s", 0 },		/* when all probes stop; 0: never */
	[WARMUP_S] = { "warmup_s", 30 },	/* before the measurement */
	[MEASURE_S] = { "measure_s", 60 },
	[SEED] = { "seed", 1 },
};

#define option(which)	(options[which].value)

/* A queue: a link from a host, or a port to a host. */
struct queue {
	double at_ns;		/* time of @work_ns */
	double work_ns;		/* time to send all that waits at @at_ns */
	double next_ns;		/* arrival of the next burst */
	double mean_ns;		/* mean time from one burst to the next */
};

struct host {
	double clock_ns;	/* the clock at the start of the tick, relative to true time, ns */
	double drift;		/* ns per ns */
	s64 far_ns;		/* constant part of the clock, which a double cannot hold */
	struct queue up;
	struct queue down;
	struct timely_loop loop;
	struct timely_loop_peer peers[HOSTS_MAX];
	u32 peer[HOSTS_MAX];	/* numbers of the neighbours */
	u32 peer_count;
	s64 round_ns;		/* time of the next round */
};

/* What host a knows of host b. */
struct path {
	bool used;
	double base_ns;		/* least delay from a to b */
	double lie_ns;		/* what b adds to timestamps for a */
	u32 pair;
	struct timely_probe_code code;		/* of probes from a to b */
	struct timely_strip strip;		/* of b's clock by a's */
	struct timely_strip_point points[2 * POINTS];
};

/* A probe that will be sent in this tick. */
struct probe {
	double at_ns;
	u16 from;
	u16 to;
	bool second;
};

static struct host hosts[HOSTS_MAX];
static struct path (*paths)[HOSTS_MAX];
static struct timely_strip_work work;
static struct probe *probes;
static u32 probe_count;
static double start_ns;			/* start of the tick, true time */
static u64 dice;

/* The distribution of message sizes: bytes and percent. */
static const double sizes[][2] = {
	{ 0, 0 }, { 10000, 15 }, { 20000, 20 }, { 30000, 30 }, { 50000, 40 }, { 80000, 53 },
	{ 200000, 60 }, { 1000000, 70 }, { 2000000, 80 }, { 5000000, 90 }, { 10000000, 97 },
	{ 30000000, 100 },
};

/* Figures of readings. */
struct figures {
	float *values;
	u32 count;
};

static struct figures errors, edge_errors, bounds, others;
static u64 readings, outside, unknown, edges_seen, edges_outside;
static u64 lost, recovered_ns;
static double worst_ratio;

/* A pseudo-random number from 0 to 1 (xorshift). */
static double chance(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (dice >> 11) / 9007199254740992.0;
}

static double exponential(void)
{
	return -log(1 - chance());
}

static double gauss(void)
{
	return sqrt(2 * exponential()) * cos(2 * M_PI * chance());
}

/* ---- queues ---- */

/* Time to send a burst, ns. A message larger than burst_kb is several bursts: the bytes of a burst
 * are those of a message drawn with the probability of its number of bursts. For the load, only the
 * distribution matters: most bursts are full.
 */
static double burst_ns(void)
{
	static double full_share = -1;
	double most = option(BURST_KB) * 1000, size, percent, bursts = 0, full = 0;
	u32 i, j;

	if (full_share < 0) {
		for (i = 0; i < 100000; i++) {
			percent = (i + 0.5) / 1000;
			for (j = 1; sizes[j][1] < percent; j++)
				;
			size = sizes[j - 1][0] + (sizes[j][0] - sizes[j - 1][0]) *
			       (percent - sizes[j - 1][1]) / (sizes[j][1] - sizes[j - 1][1]);
			bursts += floor(size / most) + 1;
			full += floor(size / most);
		}
		full_share = full / bursts;
	}
	size = chance() < full_share ? most : most * chance();
	return size * 8 / option(GBIT);
}

/* A load for the next 100 ms: the mean load, plus or minus up to an eighth of what is left. */
static void queue_load(struct queue *q, double mean_burst_ns)
{
	double load = option(LOAD) / 100;

	load += (chance() - 0.5) * min(load, 1 - load) / 2;
	q->mean_ns = load > 0 ? mean_burst_ns / load : 1e18;
}

/* Time that a packet waits in the queue at a time, ns; negative: it is lost. */
static double queue_wait(struct queue *q, double at_ns)
{
	while (q->next_ns <= at_ns) {
		q->work_ns = max(q->work_ns - (q->next_ns - q->at_ns), 0.0) + burst_ns();
		q->at_ns = q->next_ns;
		q->next_ns += exponential() * q->mean_ns;
	}
	if (at_ns > q->at_ns) {
		q->work_ns = max(q->work_ns - (at_ns - q->at_ns), 0.0);
		q->at_ns = at_ns;
	}
	return q->work_ns * option(GBIT) / 8 > option(BUFFER_KB) * 1000 ? -1 : q->work_ns;
}

/* ---- clocks and timestamps ---- */

/* A host's clock at a true time in this tick. */
static u64 clock_at(const struct host *h, double at_ns)
{
	double part = h->clock_ns + (at_ns - start_ns) * h->drift;

	return (u64)((s64)floor(at_ns) + (s64)floor(part + (at_ns - floor(at_ns))) + h->far_ns);
}

/* How late a software timestamp is: the time until an interrupt is handled. */
static double late_ns(void)
{
	double ns = 200 + 300 * exponential();

	if (chance() < 0.3)
		ns += 20000 * chance();		/* interrupt moderation */
	if (chance() < 0.01)
		ns += 50000 * exponential();	/* the CPU is busy */
	return ns;
}

/* A host's timestamp of something that happens at a true time. A software timestamp of a departure
 * is too early, one of an arrival too late.
 */
static u64 timestamp(const struct host *h, double at_ns, bool arrival)
{
	if (option(SOFTWARE))
		return clock_at(h, at_ns + (arrival ? late_ns() : -200 - 100 * exponential()));
	at_ns += gauss() * option(NOISE_NS);
	return clock_at(h, at_ns) / (u64)option(GRAIN_NS) * (u64)option(GRAIN_NS);
}

/* ---- probes ---- */

static void strip_point(struct path *path, enum timely_strip_direction direction, u64 at_ns,
			u64 there_ns)
{
	timely_strip_add(&path->strip, direction, &(struct timely_strip_point){
		.at_ns = at_ns, .offset_ns = (s64)(there_ns - at_ns),
	});
}

/* Send a probe. If its pair is accepted, both hosts get a point. */
static void probe_send(const struct probe *p)
{
	struct path *path = &paths[p->from][p->to], *back = &paths[p->to][p->from];
	struct host *from = &hosts[p->from], *to = &hosts[p->to];
	double up = queue_wait(&from->up, p->at_ns), down = queue_wait(&to->down, p->at_ns);
	struct timely_probe probe, pure;

	path->pair += !p->second;
	if (up < 0 || down < 0 || chance() * 100 < option(LOSS)) {
		lost++;
		return;
	}
	probe.sent_ns = timestamp(from, p->at_ns, false);
	probe.received_ns = timestamp(to, p->at_ns + up + path->base_ns + down, true);
	if (timely_probe_code_add(&path->code, path->pair, p->second, &probe, &pure) !=
	    TIMELY_PROBE_PURE)
		return;
	/* A liar adds to the timestamps that it reports. */
	strip_point(path, TIMELY_STRIP_FORWARD, pure.sent_ns,
		    pure.received_ns + (s64)path->lie_ns);
	strip_point(back, TIMELY_STRIP_BACKWARD, pure.received_ns,
		    pure.sent_ns + (s64)back->lie_ns);
}

static int by_time(const void *a, const void *b)
{
	double x = ((const struct probe *)a)->at_ns, y = ((const struct probe *)b)->at_ns;

	return x < y ? -1 : x > y;
}

/* Draw the probes of a tick, and send them in the order of time. */
static void probes_send(void)
{
	double per_tick = option(PAIRS) * TICK_NS / 1e9, at_ns;
	u32 a, b, i;

	probe_count = 0;
	for (a = 0; a < option(HOSTS); a++)
		for (b = 0; b < option(HOSTS); b++) {
			u32 n = paths[a][b].used ? (u32)per_tick +
						   (chance() < per_tick - (u32)per_tick) : 0;

			for (i = 0; i < n; i++) {
				at_ns = start_ns + (i + chance() * 0.99) / n * TICK_NS;
				probes[probe_count++] = (struct probe){ at_ns, a, b, false };
				probes[probe_count++] = (struct probe){
					at_ns + option(SPACING_US) * 1000, a, b, true };
			}
		}
	qsort(probes, probe_count, sizeof(*probes), by_time);
	for (i = 0; i < probe_count; i++)
		probe_send(&probes[i]);
}

/* ---- rounds and readings ---- */

static void host_round(u32 number)
{
	struct host *h = &hosts[number];
	u64 now_ns = clock_at(h, start_ns);
	u32 i;

	for (i = 0; i < h->peer_count; i++) {
		struct timely_loop_peer *peer = &h->peers[i];
		struct timely_strip *strip = &paths[number][h->peer[i]].strip;

		timely_strip_solve(strip, &work, now_ns);
		peer->fresh = strip->fit.uncertainty_ns != TIMELY_STRIP_UNKNOWN_NS &&
			      now_ns - strip->fit.at_ns < FRESH_NS;
		peer->offset_ns = timely_strip_offset_ns(&strip->fit, now_ns);
		peer->drift_q32 = strip->fit.drift_q32;
		peer->error_ns = timely_strip_uncertainty_ns(&strip->fit, now_ns);
		peer->drift_error_ppb = strip->fit.drift_error_ppb;
		peer->wander_ppb_s = strip->fit.wander_ppb_s;
		peer->time = hosts[h->peer[i]].loop.time;
		if (option(LIAR_US) && !h->peer[i])
			peer->time.correction_ns += (s64)(option(LIAR_US) * 1000 *
							  (chance() - 0.5));
	}
	timely_loop_round(&h->loop, h->peers, h->peer_count, now_ns);
	h->round_ns += option(ROUND_MS) * 1000000;
}

static void figure(struct figures *f, double value)
{
	if (!f->values)
		f->values = malloc(SAMPLES * sizeof(*f->values));
	if (f->values && f->count < SAMPLES)
		f->values[f->count++] = value;
}

/* Error of an offset of host b's clock from host a's, ns. */
static double offset_error(const struct host *a, const struct host *b, s64 offset_ns)
{
	return fabs(offset_ns - (b->far_ns - a->far_ns) - (b->clock_ns - a->clock_ns));
}

/* Read the offset of host b by host a, and compare it with the truth. */
static void read_pair(u32 a, u32 b)
{
	u64 now_ns = clock_at(&hosts[a], start_ns);
	struct timely_loop_offset offset;
	struct path *path = &paths[a][b];
	double error;

	timely_loop_offset(&hosts[a].loop.time, &hosts[b].loop.time, now_ns, &offset);
	readings++;
	if (offset.bound_ns == TIMELY_LOOP_UNKNOWN_NS) {
		unknown++;
	} else {
		error = offset_error(&hosts[a], &hosts[b], offset.offset_ns);
		figure(&errors, error);
		if (a > 1 && b > 1)
			figure(&others, error);
		figure(&bounds, offset.bound_ns);
		outside += error > offset.bound_ns + 1;
		worst_ratio = max(worst_ratio, error / (offset.bound_ns + 1));
	}
	if (!path->used || path->strip.fit.uncertainty_ns == TIMELY_STRIP_UNKNOWN_NS)
		return;
	error = offset_error(&hosts[a], &hosts[b],
			     timely_strip_offset_ns(&path->strip.fit, now_ns));
	figure(&edge_errors, error);
	edges_seen++;
	edges_outside += error > timely_strip_uncertainty_ns(&path->strip.fit, now_ns) + 1;
}

static void read_all(void)
{
	u64 before = outside + unknown;
	u32 a, b, first = option(LIAR_US) ? 1 : 0;

	for (a = first; a < option(HOSTS); a++)
		for (b = first; b < option(HOSTS); b++)
			if (a != b)
				read_pair(a, b);
	if (outside + unknown > before)
		recovered_ns = start_ns;
}

/* ---- set-up and output ---- */

static void connect(u32 a, u32 b)
{
	paths[a][b].used = true;
	paths[b][a].used = true;
	hosts[a].peer[hosts[a].peer_count++] = b;
	hosts[b].peer[hosts[b].peer_count++] = a;
}

/* A random graph: rings through all hosts in random orders that share no edge. */
static void graph(void)
{
	u32 n = option(HOSTS), order[HOSTS_MAX], rings, i, j;
	bool again;

	if (option(PEERS) >= n - 1) {
		for (i = 0; i < n; i++)
			for (j = i + 1; j < n; j++)
				connect(i, j);
		return;
	}
	for (i = 0; i < n; i++)
		order[i] = i;
	for (rings = 0; rings < option(PEERS) / 2; rings += !again) {
		for (i = n - 1; i; i--) {
			u32 swap = order[i];

			j = chance() * (i + 1);
			order[i] = order[j];
			order[j] = swap;
		}
		again = false;
		for (i = 0; i < n; i++)
			again |= paths[order[i]][order[(i + 1) % n]].used;
		for (i = 0; !again && i < n; i++)
			connect(order[i], order[(i + 1) % n]);
	}
}

static void set_up(void)
{
	u32 n = option(HOSTS), a, b;

	for (a = 0; a < n; a++) {
		struct host *h = &hosts[a];

		h->far_ns = (s64)(chance() * 1e18);
		h->drift = (2 * chance() - 1) * option(DRIFT_PPM) / 1e6;
		h->round_ns = 2e9 + chance() * option(ROUND_MS) * 1e6;
		/* The first guess is right to a millisecond, as with NTP. */
		timely_loop_init(&h->loop, clock_at(h, 0), -h->far_ns + (s64)(2e6 * chance()),
				 chance() * U32_MAX);
		for (b = 0; b < n; b++)
			timely_loop_peer_init(&h->peers[b]);
	}
	for (a = 0; a < n; a++)
		for (b = 0; b < n; b++) {
			struct path *path = &paths[a][b];
			double uneven = chance() * option(UNEVEN_NS);

			path->base_ns = option(BASE_US) * 1000 + uneven;
			if (!a && option(LIAR_US))
				path->lie_ns = 0;
			timely_probe_code_init(&path->code);
			timely_strip_init(&path->strip, path->points, POINTS,
					  option(WINDOW_MS) * 1000000);
			if (!b && a)
				path->lie_ns = option(LIAR_US) * 1000 * (2 * chance() - 1);
		}
	graph();
	paths[0][hosts[0].peer[0]].base_ns += option(ASYMMETRY_US) * 1000;
}

static void tick(s64 number, double mean_burst_ns)
{
	u32 i;

	for (i = 0; i < option(HOSTS); i++) {
		struct host *h = &hosts[i];

		h->clock_ns += TICK_NS * h->drift;
		h->drift += gauss() * option(WANDER) / 1e9 * sqrt(TICK_NS / 1e9);
		if (!(number % (LOAD_NS / TICK_NS))) {
			queue_load(&h->up, mean_burst_ns);
			queue_load(&h->down, mean_burst_ns);
		}
	}
	start_ns = (double)number * TICK_NS;
	if (option(STEP_NS) && number == (s64)(option(STEP_S) * 1e9) / TICK_NS)
		hosts[0].far_ns += (s64)option(STEP_NS);
	for (i = 0; i < option(HOSTS); i++)
		if (hosts[i].round_ns <= start_ns)
			host_round(i);
	if (start_ns >= option(WARMUP_S) * 1e9 && !(number % (SAMPLE_NS / TICK_NS)))
		read_all();
	if (!option(LEAVE_S) || start_ns < option(LEAVE_S) * 1e9)
		probes_send();
}

static int by_value(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return x < y ? -1 : x > y;
}

static double quantile(struct figures *f, double share)
{
	qsort(f->values, f->count, sizeof(*f->values), by_value);
	return f->count ? f->values[(u32)(share * (f->count - 1))] : 0;
}

static void print_result(void)
{
	u64 counts[TIMELY_PROBE_VERDICTS] = {}, strips[TIMELY_STRIP_VERDICTS] = {}, all = 0;
	u64 rounds[TIMELY_LOOP_VERDICTS] = {}, excluded = 0;
	double tolerance = 0, width = 0, used = 0;
	u32 a, b, i;

	for (a = 0; a < option(HOSTS); a++) {
		for (i = 0; i < TIMELY_LOOP_VERDICTS; i++)
			rounds[i] += hosts[a].loop.counts[i];
		for (i = 0; i < hosts[a].peer_count; i++)
			excluded += hosts[a].peers[i].excluded;
		for (b = 0; b < option(HOSTS); b++) {
			struct path *path = &paths[a][b];

			if (!path->used)
				continue;
			used++;
			tolerance += path->code.tolerance_ns;
			width += path->strip.fit.half_width_ns;
			for (i = 0; i < TIMELY_PROBE_VERDICTS; i++)
				counts[i] += path->code.counts[i];
			for (i = 0; i < TIMELY_STRIP_VERDICTS; i++)
				strips[i] += path->strip.counts[i];
		}
	}
	all = counts[TIMELY_PROBE_PURE] + counts[TIMELY_PROBE_SPREAD] +
	      counts[TIMELY_PROBE_CLOSER];
	printf("{\"p50_ns\": %.1f, \"p99_ns\": %.1f, \"p999_ns\": %.1f, \"others_p99_ns\": %.1f, ",
	       quantile(&errors, 0.5), quantile(&errors, 0.99), quantile(&errors, 0.999),
	       quantile(&others, 0.99));
	printf("\"bound_p50_ns\": %.1f, \"covered\": %.6f, \"worst\": %.2f, \"unknown\": %.4f, ",
	       quantile(&bounds, 0.5),
	       1 - (double)outside / max(readings - unknown, 1ULL), worst_ratio,
	       (double)unknown / max(readings, 1ULL));
	printf("\"edge_p50_ns\": %.1f, \"edge_p99_ns\": %.1f, \"edge_covered\": %.6f, ",
	       quantile(&edge_errors, 0.5), quantile(&edge_errors, 0.99),
	       1 - (double)edges_outside / max(edges_seen, 1ULL));
	printf("\"pure\": %.4f, \"lost\": %llu, \"tolerance_ns\": %.0f, \"half_width_ns\": %.0f, ",
	       (double)counts[TIMELY_PROBE_PURE] / max(all, 1ULL), lost, tolerance / used,
	       width / used);
	printf("\"fits\": %llu, \"few\": %llu, \"short\": %llu, \"overlap\": %llu, ",
	       strips[TIMELY_STRIP_GOOD], strips[TIMELY_STRIP_FEW], strips[TIMELY_STRIP_SHORT],
	       strips[TIMELY_STRIP_OVERLAP]);
	printf("\"averaged\": %llu, \"jumped\": %llu, \"alone\": %llu, \"split\": %llu, ",
	       rounds[TIMELY_LOOP_AVERAGED], rounds[TIMELY_LOOP_JUMPED],
	       rounds[TIMELY_LOOP_ALONE], rounds[TIMELY_LOOP_SPLIT]);
	printf("\"excluded\": %llu, \"recovered_s\": %.2f}\n", excluded, recovered_ns / 1e9);
}

/* Apply one argument KEY=VALUE. */
static void set(char *text)
{
	char *value = strchr(text, '=');
	u32 i;

	for (i = 0; value && i < OPTIONS; i++)
		if (!strncmp(options[i].name, text, value - text) &&
		    !options[i].name[value - text]) {
			options[i].value = atof(value + 1);
			return;
		}
	fprintf(stderr, "clocks: %s is not an option\n", text);
	exit(2);
}

int main(int argc, char **argv)
{
	double mean = 0;
	s64 number;
	int i;

	for (i = 1; i < argc; i++)
		set(argv[i]);
	if (option(HOSTS) < 2 || option(HOSTS) > HOSTS_MAX) {
		fputs("clocks: hosts must be 2 to 64\n", stderr);
		return 2;
	}
	dice = 88172645463325252ULL + (u64)option(SEED) * 0x9e3779b97f4a7c15ULL;
	for (i = 0; i < 100000; i++)
		mean += burst_ns() / 100000;
	paths = calloc(HOSTS_MAX, sizeof(*paths));
	probes = calloc(option(HOSTS) * option(HOSTS) * (option(PAIRS) / 25 + 4), sizeof(*probes));
	if (!paths || !probes)
		return 1;
	set_up();
	for (number = 0; number * TICK_NS < (option(WARMUP_S) + option(MEASURE_S)) * 1e9; number++)
		tick(number, mean);
	print_result();
	return 0;
}
