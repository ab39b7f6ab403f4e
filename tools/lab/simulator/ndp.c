// SPDX-License-Identifier: GPL-2.0
/*
 * A packet simulator of NDP in user space: hosts with NDP's engines (net/timely/engine/ndp_*.c),
 * and switches that trim. The script "ndp" runs the scenarios of the NDP paper (SIGCOMM'17) on it.
 *
 * A host has a link with two queues, control packets first, and a pull queue. It handles packets
 * without delay, and one at a time. As at the kernel's hosts (net/ndp/conn.c, net/ndp/pull.c), one
 * ACK of each flow may wait for the flow's next pull, a pull asks for two packets if these are
 * short, and pulls leave room on the link for control packets and trimmed packets. Unlike there,
 * pulls are fair as in the paper, and leave no room for DATA packets that no pull asked for.
 *
 * A port of a switch has the two queues of the paper: one for @limit data packets, and one with the
 * same number of bytes for trimmed packets and control packets, served @ratio to 1. When a data
 * packet finds its queue full, a coin decides whether this packet or the one at the tail is
 * trimmed. A trimmed packet that finds no room is returned to its sender. Switches store and
 * forward.
 *
 * Networks: one switch, or a fat tree of three tiers of switches with k ports, k*k*k/4 hosts. The
 * sender chooses the path of a DATA packet by ndp_paths.c. Answers and pulls take the paths of a
 * list of their own.
 *
 *	ndp KEY=VALUE...	prints one JSON object
 *
 * KEY is a name in options[] below.
 */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/types.h>

#include <timely/engine/ndp_pull.h>
#include <timely/engine/ndp_receiver.h>
#include <timely/engine/ndp_sender.h>

/* Bytes of a packet: preamble, gap, Ethernet and its checksum around the IP packet. */
#define GAP		(8 + 12)	/* preamble and gap, which no queue holds */
#define ETHERNET	(GAP + 14 + 4)
#define IP_UDP		(20 + 8)
#define HEADERS		(IP_UDP + TIMELY_NDP_BYTES)
#define SPAN		1024
#define MAX_HELD	8		/* packets with one answer */
#define LONE_NS		5000		/* a pull of a lone flow waits so long for a packet */
#define ENDLESS		(1U << 30)	/* packets of a flow that does not end */
#define BIN_NS		50000		/* bins of the watched flow's goodput */
#define MAX_BINS	4096

enum scenario { INCAST, BESIDE, PERMUTATION, RANDOM, SCENARIOS };

static const char * const scenarios[SCENARIOS] = {
	[INCAST] = "incast",		/* @flows senders, @bytes each, to host 0 */
	[BESIDE] = "beside",		/* the same, beside @long flows that do not end */
	[PERMUTATION] = "permutation",	/* each host sends to one host and receives from one */
	[RANDOM] = "random",		/* messages of @bytes between two hosts; all other hosts
					 * send @long flows to random hosts
					 */
};

/* Names, units and defaults are in options[]. */
enum option {
	SCENARIO, K, HOSTS, FLOWS, BYTES, LONG, PRIORITY, ELSEWHERE, MTU, WINDOW, SLACK, LIMIT,
	RATIO, TRIM, ROOM, HOLD_NS, PAIR, DELAY_NS, KBPS, SLOW, LOSS_PPM, TRIMS, RETURNS,
	WARMUP_US, MEASURE_US, SEED, OPTIONS
};

static struct {
	const char *name;
	u64 value;
} options[OPTIONS] = {
	[SCENARIO] = { "scenario", INCAST },
	[K] = { "k", 0 },		/* ports of the fat tree's switches; 0: one switch */
	[HOSTS] = { "hosts", 16 },	/* with one switch */
	[FLOWS] = { "flows", 7 },
	[BYTES] = { "bytes", 100000 },	/* payload of a message */
	[LONG] = { "long", 0 },		/* flows that do not end */
	[PRIORITY] = { "priority", 0 },	/* the messages have priority over long flows */
	[ELSEWHERE] = { "elsewhere", 0 },	/* long flows go to host 1, and run first */
	[MTU] = { "mtu", 9000 },
	[WINDOW] = { "window", TIMELY_NDP_WINDOW },
	[SLACK] = { "slack", 8 },	/* pulls in a row after a pause, packets */
	[LIMIT] = { "limit", 8 },	/* data packets of a port's queue */
	[RATIO] = { "ratio", 10 },	/* control packets for each data packet */
	[TRIM] = { "trim", 86 },	/* bytes of a trimmed Ethernet frame without its checksum */
	[ROOM] = { "room", 1 },		/* 0: pulls leave no room for packets without data */
	[HOLD_NS] = { "hold_ns", 100000 },	/* an ACK waits for a pull at most this long */
	[PAIR] = { "pair", 2 * (1500 + ETHERNET) },	/* bytes of two packets for one pull */
	[DELAY_NS] = { "delay_ns", 500 },	/* of a link */
	[KBPS] = { "kbps", 10000000 },	/* rate of each link */
	[SLOW] = { "slow", 0 },		/* one link to a core switch has a tenth of the rate */
	[LOSS_PPM] = { "loss_ppm", 0 },	/* packets damaged on each link */
	[TRIMS] = { "trims", 1 },	/* 0: switches drop instead */
	[RETURNS] = { "returns", 1 },	/* 0: switches do not return packets */
	[WARMUP_US] = { "warmup_us", 0 },
	[MEASURE_US] = { "measure_us", 10000000 },	/* longest time after the warm-up */
	[SEED] = { "seed", 1 },
};

#define option(which)	(options[which].value)

/* ---- packets and ports ---- */

enum place { HOST, EDGE, AGGREGATION, CORE };

struct packet {
	struct packet *next;
	struct packet *prev;
	struct timely_ndp_header header;
	u32 flow;
	u32 from;		/* host */
	u32 to;			/* host */
	u32 bytes;		/* on the wire, with preamble and gap */
	u16 path;
	bool control;		/* belongs into the queue for control packets */
	bool trimmed;
	bool returned;
	enum place place;	/* where the packet arrives next */
	u32 number;		/* of the host or switch */
};

struct list {
	struct packet *first;
	struct packet *last;
	u32 count;
	u64 bytes;
};

struct port {
	struct list data;
	struct list control;
	u64 free_ns;		/* when the packet on the link has left */
	bool waiting;		/* an event for @free_ns is pending */
	bool host;		/* no limits */
	u8 served;		/* control packets since the last data packet */
	u64 kbps;
	enum place at;		/* the device that the port belongs to */
	u32 number;
	enum place to;		/* the device at the other end */
	u32 to_number;
};

struct flow {
	u32 from;
	u32 to;
	u32 packets;
	u32 last_bytes;		/* payload of the last packet */
	u64 start_ns;
	u64 end_ns;		/* when all has arrived */
	u64 measured;		/* payload that has arrived since the warm-up */
	bool message;
	u64 timer_ns;
	struct timely_ndp_sender s;
	struct timely_ndp_slot *slots;
	struct timely_ndp_paths paths;
	struct timely_ndp_receiver r;
	u64 *map;
	struct timely_ndp_pull_flow pull;
	u32 unit;		/* packets that the next pull asks for */
	struct timely_ndp_header answer;	/* the one that waits for a pull */
	u32 held;		/* packets that @answer is for; 0 if none waits */
	u64 held_ns;		/* since when */
	u64 hold_timer_ns;
	struct timely_ndp_paths back;
};

struct host {
	struct timely_ndp_pull pull;
	u64 timer_ns;
};

enum kind { ARRIVAL, FREE, TIMER, PULL, HOLD, BEGIN };

struct event {
	u64 at_ns;
	u64 order;
	enum kind kind;
	u32 who;
	struct packet *packet;
};

static struct {
	u64 now_ns;
	u64 random;
	u32 k;
	u32 hosts;
	struct host *host;
	struct port *ports;
	u32 nports;
	struct flow *flows;
	u32 nflows;
	u32 open;		/* messages that have not arrived */
	struct packet *unused;
	struct event *events;
	u32 pending, room;
	u64 order;
	u64 count;
	u64 queue_bytes;	/* of control packets at a port, without preambles and gaps */
	u64 trimmed, dropped, damaged;
	u64 uplink_trimmed, uplink_data;	/* on the way up to core switches */
	u32 bins[MAX_BINS];	/* payload of the first long flow */
} sim;

static u64 draw(void)
{
	u64 x = sim.random;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	sim.random = x;
	return x * 0x2545f4914f6cdd1dULL >> 16;
}

static void fail(const char *why)
{
	fprintf(stderr, "ndp: %s\n", why);
	exit(1);
}

/* Time that a packet takes on a link, ns. */
static double wire_ns(u32 bytes)
{
	return bytes * 8e6 / option(KBPS);
}

static void *zeroed(size_t n, size_t bytes)
{
	void *memory = calloc(n, bytes);

	if (!memory)
		fail("out of memory");
	return memory;
}

/* ---- events, in a heap with four children ---- */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void add_event(u64 at_ns, enum kind kind, u32 who, struct packet *packet)
{
	struct event event = { at_ns, sim.order++, kind, who, packet };
	u32 i = sim.pending++, up;

	if (sim.pending > sim.room) {
		sim.room = max(2 * sim.room, 65536U);
		sim.events = realloc(sim.events, sim.room * sizeof(*sim.events));
		if (!sim.events)
			fail("out of memory");
	}
	for (; i; i = up) {
		up = (i - 1) / 4;
		if (!earlier(&event, &sim.events[up]))
			break;
		sim.events[i] = sim.events[up];
	}
	sim.events[i] = event;
}

static struct event take_event(void)
{
	struct event first = sim.events[0], last = sim.events[--sim.pending];
	u32 i = 0, child, best;

	while ((child = 4 * i + 1) < sim.pending) {
		u32 end = min(child + 4, sim.pending);

		for (best = child++; child < end; child++)
			if (earlier(&sim.events[child], &sim.events[best]))
				best = child;
		if (!earlier(&sim.events[best], &last))
			break;
		sim.events[i] = sim.events[best];
		i = best;
	}
	sim.events[i] = last;
	return first;
}

/* ---- queues ---- */

static struct packet *new_packet(void)
{
	struct packet *p = sim.unused;

	if (!p)
		return zeroed(1, sizeof(*p));
	sim.unused = p->next;
	memset(p, 0, sizeof(*p));
	return p;
}

static void free_packet(struct packet *p)
{
	p->next = sim.unused;
	sim.unused = p;
}

static void append(struct list *list, struct packet *p)
{
	p->next = NULL;
	p->prev = list->last;
	if (list->last)
		list->last->next = p;
	else
		list->first = p;
	list->last = p;
	list->count++;
	list->bytes += p->bytes;
}

static void unlink_packet(struct list *list, struct packet *p)
{
	if (p->prev)
		p->prev->next = p->next;
	else
		list->first = p->next;
	if (p->next)
		p->next->prev = p->prev;
	else
		list->last = p->prev;
	list->count--;
	list->bytes -= p->bytes;
}

/* The packet that a port sends next, or NULL. */
static struct packet *next_packet(struct port *port)
{
	bool control = port->control.first &&
		       (!port->data.first || port->host || port->served < option(RATIO));
	struct list *list = control ? &port->control : &port->data;
	struct packet *p = list->first;

	if (!p)
		return NULL;
	/* The ratio counts only while both queues have packets. */
	port->served = control && port->data.first ? port->served + 1 : 0;
	unlink_packet(list, p);
	return p;
}

static void start(struct port *port)
{
	struct packet *p;

	if (port->waiting)
		return;
	if (sim.now_ns < port->free_ns) {
		port->waiting = true;
		add_event(port->free_ns, FREE, port - sim.ports, NULL);
		return;
	}
	p = next_packet(port);
	if (!p)
		return;
	port->free_ns = sim.now_ns + (p->bytes * 8000000ULL + port->kbps / 2) / port->kbps;
	p->place = port->to;
	p->number = port->to_number;
	if (option(LOSS_PPM) && draw() % 1000000 < option(LOSS_PPM)) {
		sim.damaged++;
		free_packet(p);
	} else {
		add_event(port->free_ns + option(DELAY_NS), ARRIVAL, 0, p);
	}
	if (port->data.first || port->control.first) {
		port->waiting = true;
		add_event(port->free_ns, FREE, port - sim.ports, NULL);
	}
}

/* ---- the network ---- */

/* Ports of a fat tree, N for each kind: from hosts, edge switches down and up, aggregation switches
 * down and up, core switches.
 */
enum { FROM_HOST, EDGE_DOWN, EDGE_UP, AGGREGATION_DOWN, AGGREGATION_UP, CORE_DOWN, PORT_KINDS };

static struct port *port_of(u32 kind, u32 number)
{
	return &sim.ports[kind * sim.hosts + number];
}

static u32 edge_of(u32 host)
{
	return sim.k ? host / (sim.k / 2) : 0;
}

static u32 pod_of(u32 host)
{
	return edge_of(host) / (sim.k / 2);
}

static u32 paths_between(u32 a, u32 b)
{
	if (edge_of(a) == edge_of(b))
		return 1;
	return pod_of(a) == pod_of(b) ? sim.k / 2 : sim.k / 2 * (sim.k / 2);
}

static u32 links_between(u32 a, u32 b)
{
	if (edge_of(a) == edge_of(b))
		return 2;
	return pod_of(a) == pod_of(b) ? 4 : 6;
}

/* The port by which a switch forwards a packet. */
static struct port *route(enum place at, u32 number, const struct packet *p)
{
	u32 half = sim.k / 2, path = p->path % (half * half ?: 1);
	/* Within a pod, a path is an aggregation switch. */
	bool pod = sim.k && pod_of(p->from) == pod_of(p->to);
	u32 aggregation = pod ? p->path % half : half ? path / half : 0;

	switch (at) {
	case HOST:
		return port_of(FROM_HOST, number);
	case EDGE:
		if (edge_of(p->to) == number)
			return port_of(EDGE_DOWN, p->to);
		return port_of(EDGE_UP, number * half + aggregation);
	case AGGREGATION:
		if (pod_of(p->to) == number / half)
			return port_of(AGGREGATION_DOWN, number * half + edge_of(p->to) % half);
		return port_of(AGGREGATION_UP, number * half + path % half);
	default:
		return port_of(CORE_DOWN, number * sim.k + pod_of(p->to));
	}
}

static void set_port(u32 kind, u32 i, enum place at, u32 number, enum place to, u32 to_number)
{
	struct port *port = port_of(kind, i);

	port->host = kind == FROM_HOST;
	port->kbps = option(KBPS);
	port->at = at;
	port->number = number;
	port->to = to;
	port->to_number = to_number;
}

static void build_network(void)
{
	u32 k, half, i;

	sim.k = option(K);
	sim.hosts = sim.k ? sim.k * sim.k * sim.k / 4 : option(HOSTS);
	sim.nports = sim.hosts * PORT_KINDS;
	sim.ports = zeroed(sim.nports, sizeof(*sim.ports));
	sim.host = zeroed(sim.hosts, sizeof(*sim.host));
	sim.queue_bytes = option(LIMIT) * (option(MTU) + ETHERNET - GAP);
	k = sim.k;
	half = k / 2;
	for (i = 0; i < sim.hosts; i++) {
		timely_ndp_pull_init(&sim.host[i].pull, option(KBPS),
				     option(SLACK) * (u32)wire_ns(option(MTU) + ETHERNET));
		set_port(FROM_HOST, i, HOST, i, EDGE, edge_of(i));
		set_port(EDGE_DOWN, i, EDGE, edge_of(i), HOST, i);
		if (!k)
			continue;
		/* Switch i / half has its port i % half to one switch of the other tier. */
		set_port(EDGE_UP, i, EDGE, i / half, AGGREGATION,
			 i / half / half * half + i % half);
		set_port(AGGREGATION_DOWN, i, AGGREGATION, i / half, EDGE,
			 i / half / half * half + i % half);
		set_port(AGGREGATION_UP, i, AGGREGATION, i / half, CORE,
			 i / half % half * half + i % half);
		set_port(CORE_DOWN, i, CORE, i / k, AGGREGATION, i % k * half + i / k / half);
	}
	if (option(SLOW)) {
		/* Between core switch 0 and aggregation switch 0 of pod 0. */
		port_of(AGGREGATION_UP, 0)->kbps /= 10;
		port_of(CORE_DOWN, 0)->kbps /= 10;
	}
}

static void enqueue(struct port *port, struct packet *p);

/* The queue for control packets is full. */
static void overflow(struct port *port, struct packet *p)
{
	u32 from = p->from;

	if (!p->trimmed || p->returned || !option(RETURNS)) {
		sim.dropped++;
		free_packet(p);
		return;
	}
	p->returned = true;
	p->from = p->to;
	p->to = from;
	enqueue(route(port->at, port->number, p), p);
}

static void enqueue_control(struct port *port, struct packet *p)
{
	u64 bytes = port->control.bytes + p->bytes - GAP * (port->control.count + 1);

	if (!port->host && bytes > sim.queue_bytes) {
		overflow(port, p);
		return;
	}
	append(&port->control, p);
	start(port);
}

static void trim(struct port *port, struct packet *p)
{
	if (!option(TRIMS)) {
		sim.dropped++;
		free_packet(p);
		return;
	}
	sim.trimmed++;
	if (port->to == CORE || (port->at == EDGE && port->to == AGGREGATION))
		sim.uplink_trimmed++;
	p->trimmed = true;
	p->control = true;
	p->bytes = min_t(u32, p->bytes, option(TRIM) + ETHERNET - 14);
	enqueue_control(port, p);
}

static void enqueue(struct port *port, struct packet *p)
{
	struct packet *victim = p;

	if (p->control) {
		enqueue_control(port, p);
		return;
	}
	if (port->to == CORE || (port->at == EDGE && port->to == AGGREGATION))
		sim.uplink_data++;
	if (!port->host && port->data.count >= option(LIMIT)) {
		if (option(TRIMS) && draw() & 1) {
			victim = port->data.last;
			unlink_packet(&port->data, victim);
			append(&port->data, p);
		}
		trim(port, victim);
		return;
	}
	append(&port->data, p);
	start(port);
}

/* ---- hosts ---- */

static u32 payload(const struct flow *f, u32 seq)
{
	return seq + 1 == f->packets ? f->last_bytes : option(MTU) - HEADERS;
}

static void send_packet(struct flow *f, const struct timely_ndp_header *header, bool forward)
{
	struct packet *p = new_packet();

	p->header = *header;
	p->flow = f - sim.flows;
	p->from = forward ? f->from : f->to;
	p->to = forward ? f->to : f->from;
	p->control = header->type != TIMELY_NDP_DATA;
	p->bytes = ETHERNET + IP_UDP + timely_ndp_header_bytes(header);
	if (!p->control) {
		p->bytes += payload(f, header->seq);
		p->path = header->path;
	} else {
		p->path = timely_ndp_paths_next(&f->back, sim.now_ns, TIMELY_NDP_MAX_PATHS);
	}
	enqueue(port_of(FROM_HOST, p->from), p);
}

static void set_timer(struct flow *f)
{
	u64 due = timely_ndp_sender_due_ns(&f->s);

	/* A timer that is too early asks again when it fires. */
	if (due == TIMELY_NDP_NEVER || (f->timer_ns && f->timer_ns <= due))
		return;
	f->timer_ns = due;
	add_event(max(due, sim.now_ns), TIMER, f - sim.flows, NULL);
}

static void send_all(struct flow *f)
{
	struct timely_ndp_header header;

	while (timely_ndp_sender_next(&f->s, &header, sim.now_ns) != TIMELY_NDP_SEND_NOTHING)
		send_packet(f, &header, true);
	set_timer(f);
}

static void set_pulls(struct host *h, struct flow *f, u32 wanted)
{
	u32 bytes = option(MTU) + ETHERNET;

	f->unit = wanted > 1 && 2 * bytes <= option(PAIR) ? 2 : 1;
	f->pull.bytes = f->unit * bytes;
	timely_ndp_pull_set(&h->pull, &f->pull, (wanted + f->unit - 1) / f->unit);
}

/* A lone flow takes its pulls when packets arrive, so the timer leaves time for the next one. */
static void set_pull_timer(struct host *h)
{
	u64 due = max(timely_ndp_pull_due_ns(&h->pull), sim.now_ns);

	if (!h->pull.flows)
		return;
	if (h->pull.flows == 1)
		due += LONE_NS;
	if (h->timer_ns && h->timer_ns <= due)
		return;
	h->timer_ns = due;
	add_event(due, PULL, h - sim.host, NULL);
}

/* Grant credits: with the ACK that waits, or in a PULL. */
static void send_pull(struct flow *f)
{
	if (f->held)
		timely_ndp_receiver_grant(&f->r, f->unit, &f->answer);
	else
		timely_ndp_receiver_pull(&f->r, f->unit, &f->answer);
	f->held = 0;
	send_packet(f, &f->answer, false);
}

/* Send the pulls that are due. */
static void pull(struct host *h)
{
	struct timely_ndp_pull_flow *next;

	while ((next = timely_ndp_pull_next(&h->pull, sim.now_ns))) {
		struct flow *f = container_of(next, struct flow, pull);

		send_pull(f);
		set_pulls(h, f, timely_ndp_receiver_wanted(&f->r));
	}
	set_pull_timer(h);
}

/* Take the pulls of a lone flow that are due. Other flows get theirs from the timer. */
static u32 due_pulls(struct host *h, struct flow *f, u32 wanted)
{
	u32 due = 0, pulled;

	set_pulls(h, f, wanted);
	while (wanted && h->pull.flows == 1 && timely_ndp_pull_next(&h->pull, sim.now_ns)) {
		pulled = min(f->unit, wanted);
		due += pulled;
		wanted -= pulled;
		set_pulls(h, f, wanted);
	}
	set_pull_timer(h);
	return due;
}

static void set_hold_timer(struct flow *f)
{
	if (f->hold_timer_ns)
		return;
	f->hold_timer_ns = f->held_ns + option(HOLD_NS);
	add_event(f->hold_timer_ns, HOLD, f - sim.flows, NULL);
}

/* Send the answer that waits, with the pulls that are due. @hold: an ACK may wait for a pull. */
static void release_answer(struct flow *f, bool hold)
{
	u32 wanted = timely_ndp_receiver_wanted(&f->r);
	u32 due = due_pulls(&sim.host[f->to], f, wanted);

	hold &= wanted || timely_ndp_receiver_pulls_on_way(&f->r);
	if (hold && !due && f->answer.type == TIMELY_NDP_ACK &&
	    sim.now_ns < f->held_ns + option(HOLD_NS)) {
		set_hold_timer(f);
		return;
	}
	f->held = 0;
	timely_ndp_receiver_grant(&f->r, due, &f->answer);
	send_packet(f, &f->answer, false);
}

static void hold_expires(struct flow *f)
{
	f->hold_timer_ns = 0;
	if (!f->held)
		return;
	if (sim.now_ns < f->held_ns + option(HOLD_NS))
		set_hold_timer(f);
	else
		release_answer(f, false);
}

/* Answer a packet. @hold: an ACK may wait. It need not be sent if a later answer or PULL says that
 * this one has arrived.
 */
static void send_answer(struct flow *f, const struct timely_ndp_header *answer, bool hold)
{
	if (f->held && !timely_ndp_says_arrived(answer, f->answer.seq))
		release_answer(f, false);
	f->answer = *answer;
	if (!f->held++)
		f->held_ns = sim.now_ns;
	release_answer(f, hold && f->held < MAX_HELD && !timely_ndp_receiver_done(&f->r));
}

static void measure(struct flow *f)
{
	u64 now_us = sim.now_ns / 1000, bin = sim.now_ns / BIN_NS;
	u32 bytes = option(MTU) - HEADERS;

	if (now_us >= option(WARMUP_US) && now_us < option(WARMUP_US) + option(MEASURE_US))
		f->measured += bytes;
	if (f == sim.flows && bin < MAX_BINS)
		sim.bins[bin] += bytes;
	if (timely_ndp_receiver_done(&f->r) && !f->end_ns) {
		f->end_ns = sim.now_ns;
		sim.open -= f->message;
	}
}

static void data_arrives(struct flow *f, const struct packet *p)
{
	enum timely_ndp_payload payload = p->trimmed ? TIMELY_NDP_PAYLOAD_CUT :
						       TIMELY_NDP_PAYLOAD_WHOLE;
	const u16 at_once = TIMELY_NDP_SYN | TIMELY_NDP_LAST | TIMELY_NDP_FIN;
	struct timely_ndp_header answer, room;
	enum timely_ndp_verdict verdict;

	verdict = timely_ndp_receiver_data(&f->r, &p->header, payload, &answer);
	if (verdict == TIMELY_NDP_REFUSED)
		fail("a receiver refused a packet");
	/* The application reads at once, so the room never ends. */
	timely_ndp_receiver_room(&f->r, f->r.cum + SPAN, &room);
	answer.limit = f->r.limit;
	send_answer(f, &answer, !(p->header.flags & at_once));
	if (verdict == TIMELY_NDP_RECEIVED)
		measure(f);
}

static void to_receiver(struct flow *f, const struct packet *p)
{
	struct timely_ndp_header answer;

	if (p->header.type == TIMELY_NDP_DATA)
		data_arrives(f, p);
	else if (timely_ndp_receiver_probe(&f->r, &p->header, &answer))
		send_answer(f, &answer, false);
}

static void arrive(struct packet *p)
{
	struct flow *f = &sim.flows[p->flow];
	struct host *h;

	if (p->place != HOST) {
		enqueue(route(p->place, p->number, p), p);
		return;
	}
	h = &sim.host[p->number];
	/* Without pulls to wait, nothing would change. */
	if (option(ROOM) && p->control && h->pull.flows)
		timely_ndp_pull_leave_room(&h->pull, p->bytes, sim.now_ns);
	if (p->returned) {
		timely_ndp_sender_returned(&f->s, &p->header, sim.now_ns);
		send_all(f);
	} else if (p->to == f->to) {
		to_receiver(f, p);
	} else {
		if (!timely_ndp_sender_answer(&f->s, &p->header, sim.now_ns))
			fail("a sender refused an answer");
		send_all(f);
	}
	free_packet(p);
}

/* ---- flows ---- */

static struct flow *add_flow(u32 from, u32 to, u64 bytes, u64 start_ns, u8 priority)
{
	struct timely_ndp_sender_config config = {
		.window = option(WINDOW), .span = SPAN, .rto_min_ns = 1000000,
		.rto_max_ns = 1000000, .backoff_max_ns = 100000000,
	};
	u32 room = option(MTU) - HEADERS, count = paths_between(from, to);
	struct flow *f = &sim.flows[sim.nflows++];

	f->from = from;
	f->to = to;
	f->message = bytes;
	f->packets = bytes ? (bytes + room - 1) / room : ENDLESS;
	f->last_bytes = bytes ? bytes - (u64)(f->packets - 1) * room : room;
	f->start_ns = start_ns;
	f->pull.bytes = option(MTU) + ETHERNET;
	f->pull.priority = priority;
	f->slots = zeroed(SPAN, sizeof(*f->slots));
	f->map = zeroed(SPAN / 64, sizeof(*f->map));
	if (timely_ndp_paths_init(&f->paths, zeroed(count, sizeof(struct timely_ndp_path)), count,
				  draw()) ||
	    timely_ndp_paths_init(&f->back, zeroed(count, sizeof(struct timely_ndp_path)), count,
				  draw()) ||
	    timely_ndp_sender_init(&f->s, &config, f->slots, &f->paths) ||
	    timely_ndp_receiver_init(&f->r, f->map, SPAN, SPAN))
		fail("impossible window or number of paths");
	sim.open += f->message;
	add_event(start_ns, BEGIN, f - sim.flows, NULL);
	return f;
}

static void begin(struct flow *f)
{
	timely_ndp_sender_queue(&f->s, f->packets, sim.now_ns);
	if (f->message)
		timely_ndp_sender_finish(&f->s, sim.now_ns);
	send_all(f);
}

/* The first messages start within a microsecond. */
static u64 soon(void)
{
	return option(WARMUP_US) * 1000 + draw() % 1000;
}

static void add_incast(u32 to)
{
	u32 i, from;

	for (i = 0; i < option(FLOWS); i++) {
		from = (to + 1 + i % (sim.hosts - 1)) % sim.hosts;
		add_flow(from, to, option(BYTES), soon(), option(PRIORITY) ? 1 : 0);
	}
}

/* Long flows to host 0, or to host 1 from other pods, then the messages to host 0. */
static void add_beside(void)
{
	u32 elsewhere = option(ELSEWHERE), i;

	for (i = 0; i < option(LONG); i++)
		add_flow(sim.hosts - 1 - i, elsewhere ? 1 : 0, 0, elsewhere ? 0 : soon(), 0);
	if (!elsewhere) {
		add_incast(0);
		return;
	}
	for (i = 0; i < option(FLOWS); i++)
		add_flow(2 + i % (sim.hosts - 2 - option(LONG)), 0, option(BYTES), soon(), 0);
}

/* A random permutation in which no host sends to itself (Sattolo). */
static void add_permutation(void)
{
	u32 *to = zeroed(sim.hosts, sizeof(*to)), i, j, other;

	for (i = 0; i < sim.hosts; i++)
		to[i] = i;
	for (i = sim.hosts - 1; i; i--) {
		j = draw() % i;
		other = to[i];
		to[i] = to[j];
		to[j] = other;
	}
	for (i = 0; i < sim.hosts; i++)
		add_flow(i, to[i], 0, draw() % 100000, 0);
	free(to);
}

/* Two hosts of different pods send each other messages, one after the other; all others send long
 * flows to hosts that are not these two.
 */
static void add_random(void)
{
	u32 a = 0, b = sim.hosts - 1, i, j, to;

	for (i = 1; i < b; i++) {
		for (j = 0; j < option(LONG); j++) {
			do {
				to = 1 + draw() % (sim.hosts - 2);
			} while (to == i);
			add_flow(i, to, 0, draw() % 100000, 0);
		}
	}
	/* Each next message starts when the one before it must have arrived. */
	for (i = 0; i < option(FLOWS); i++)
		add_flow(i % 2 ? b : a, i % 2 ? a : b, option(BYTES),
			 option(WARMUP_US) * 1000 + i * 500000ULL, 0);
}

static void build_flows(void)
{
	u32 most = option(FLOWS) + option(LONG) * (option(SCENARIO) == RANDOM ? sim.hosts : 1) +
		   sim.hosts;

	sim.flows = zeroed(most, sizeof(*sim.flows));
	switch (option(SCENARIO)) {
	case INCAST:
		add_incast(0);
		break;
	case BESIDE:
		add_beside();
		break;
	case PERMUTATION:
		add_permutation();
		break;
	default:
		add_random();
	}
}

static bool over(void)
{
	u64 end_ns = (option(WARMUP_US) + option(MEASURE_US)) * 1000;

	if (sim.now_ns >= end_ns)
		return true;
	/* Without messages, or to see what follows them, the run lasts the whole time. */
	return !sim.open && option(SCENARIO) != PERMUTATION && !option(ELSEWHERE);
}

static void run(void)
{
	while (sim.pending && !over()) {
		struct event event = take_event();

		sim.now_ns = event.at_ns;
		sim.count++;
		switch (event.kind) {
		case ARRIVAL:
			arrive(event.packet);
			break;
		case FREE:
			sim.ports[event.who].waiting = false;
			start(&sim.ports[event.who]);
			break;
		case TIMER:
			/* Only the newest timer counts. */
			if (sim.flows[event.who].timer_ns > event.at_ns)
				break;
			sim.flows[event.who].timer_ns = 0;
			timely_ndp_sender_timeout(&sim.flows[event.who].s, sim.now_ns);
			send_all(&sim.flows[event.who]);
			break;
		case PULL:
			/* Only the newest timer counts. */
			if (sim.host[event.who].timer_ns != event.at_ns)
				break;
			sim.host[event.who].timer_ns = 0;
			pull(&sim.host[event.who]);
			break;
		case HOLD:
			hold_expires(&sim.flows[event.who]);
			break;
		case BEGIN:
			begin(&sim.flows[event.who]);
		}
	}
}

/* ---- results ---- */

static int compare_times(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The least time in which the messages to one host can arrive: each packet reaches the last switch
 * without waiting behind others than those of its sender, and the last link sends what is there.
 */
static double optimum_us(void)
{
	double full = wire_ns(option(MTU) + ETHERNET), now = 0, *ready;
	u32 count = 0, n = 0, i, j;

	for (i = 0; i < sim.nflows; i++)
		count += sim.flows[i].message ? sim.flows[i].packets : 0;
	ready = zeroed(max(count, 1U), sizeof(*ready));
	for (i = 0; i < sim.nflows; i++) {
		const struct flow *f = &sim.flows[i];
		u32 links = links_between(f->from, f->to);

		for (j = 0; f->message && j < f->packets; j++)
			ready[n++] = (j + links - 1) * full + links * (double)option(DELAY_NS);
	}
	qsort(ready, n, sizeof(*ready), compare_times);
	/* The packets that are shorter than others are the last ones of their messages. */
	for (i = 0; i < n; i++)
		now = max(now, ready[i]) + full;
	for (i = 0; i < sim.nflows; i++)
		if (sim.flows[i].message)
			now -= full - wire_ns(ETHERNET + HEADERS + sim.flows[i].last_bytes);
	free(ready);
	return now / 1000;
}

static void print_flow(const struct flow *f, const char *before)
{
	if (f->message)
		printf("%s%.3f", before, f->end_ns ? (f->end_ns - f->start_ns) / 1e3 : -1.);
	else
		printf("%s%.4f", before, f->measured * 8 / 1e3 / option(MEASURE_US));
}

static void print_flows(const char *name, bool message)
{
	const char *before = "";
	u32 i;

	printf("\"%s\": [", name);
	for (i = 0; i < sim.nflows; i++) {
		if (sim.flows[i].message != message)
			continue;
		print_flow(&sim.flows[i], before);
		before = ", ";
	}
	printf("], ");
}

static void print_bins(void)
{
	u32 end = min_t(u64, sim.now_ns / BIN_NS, MAX_BINS), i;

	printf("\"bins_gbit\": [");
	for (i = 0; i < end; i++)
		printf("%s%.3f", i ? ", " : "", sim.bins[i] * 8. / BIN_NS);
	printf("], ");
}

static void print_count(const char *name, u64 count)
{
	printf("\"%s\": %llu, ", name, count);
}

static void print_results(void)
{
	struct timely_ndp_sender_stats sum = {};
	u64 first = 0, last_ns = 0, outliers = 0;
	u32 i;

	for (i = 0; i < sim.nflows; i++) {
		const struct flow *f = &sim.flows[i];

		sum.sent += f->s.stats.sent;
		sum.nacked += f->s.stats.nacked;
		sum.returned += f->s.stats.returned;
		sum.returned_at_once += f->s.stats.returned_at_once;
		sum.lost += f->s.stats.lost;
		sum.spurious += f->s.stats.spurious;
		sum.probes += f->s.stats.probes;
		sum.pulls += f->s.stats.pulls;
		outliers += f->paths.outliers;
		first += f->s.next;
		last_ns = max(last_ns, f->message ? f->end_ns : 0);
	}
	printf("{\"hosts\": %u, \"end_us\": %.3f, \"open\": %u, ", sim.hosts, last_ns / 1e3,
	       sim.open);
	print_flows("messages_us", true);
	print_flows("long_gbit", false);
	if (option(LONG) && option(SCENARIO) == BESIDE)
		print_bins();
	if (option(SCENARIO) == INCAST || option(SCENARIO) == BESIDE)
		printf("\"optimum_us\": %.3f, ", optimum_us());
	printf("\"payload_gbit\": %.4f, ",
	       option(KBPS) / 1e6 * (option(MTU) - HEADERS) / (option(MTU) + ETHERNET));
	print_count("packets", first);
	print_count("sent", sum.sent);
	print_count("nacked", sum.nacked);
	print_count("returned", sum.returned);
	print_count("returned_at_once", sum.returned_at_once);
	print_count("lost", sum.lost);
	print_count("spurious", sum.spurious);
	print_count("probes", sum.probes);
	print_count("pulls", sum.pulls);
	print_count("outliers", outliers);
	print_count("trimmed", sim.trimmed);
	print_count("dropped", sim.dropped);
	print_count("damaged", sim.damaged);
	print_count("uplink_trimmed", sim.uplink_trimmed);
	print_count("uplink_data", sim.uplink_data);
	printf("\"events\": %llu}\n", sim.count);
}

/* ---- options ---- */

static bool set_scenario(const char *name)
{
	u32 i;

	for (i = 0; i < SCENARIOS; i++) {
		if (strcmp(name, scenarios[i]))
			continue;
		option(SCENARIO) = i;
		return true;
	}
	return false;
}

static bool set_option(const char *text)
{
	size_t length = strcspn(text, "=");
	char *end;
	u32 i;

	if (!text[length])
		return false;
	for (i = 0; i < OPTIONS; i++) {
		if (strlen(options[i].name) != length || strncmp(options[i].name, text, length))
			continue;
		if (i == SCENARIO)
			return set_scenario(text + length + 1);
		options[i].value = strtoull(text + length + 1, &end, 10);
		return end != text + length + 1 && !*end;
	}
	return false;
}

static bool options_possible(void)
{
	return option(K) % 2 == 0 && option(K) <= 32 && option(K) != 2 && option(HOSTS) >= 2 &&
	       option(MTU) > HEADERS && option(MTU) <= 65535 && option(KBPS) >= 1000 &&
	       option(LIMIT) && option(RATIO) && option(RATIO) < 256 && option(TRIM) >= 64 &&
	       option(MEASURE_US);
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (set_option(argv[i]))
			continue;
		fprintf(stderr, "ndp: what is %s? Options are KEY=VALUE; see ndp.c\n", argv[i]);
		return 1;
	}
	if (!options_possible())
		fail("an option is out of its range; see ndp.c");
	sim.random = option(SEED) * 0x9e3779b97f4a7c15ULL | 1;
	for (i = 0; i < 8; i++)
		draw();
	build_network();
	build_flows();
	run();
	print_results();
	return 0;
}
