// SPDX-License-Identifier: GPL-2.0
/*
 * Runs the KUnit suites of NDP's engines, then random streams from several senders to one interface
 * through a network that loses, repeats, reorders, trims, damages and returns packets, and that is
 * sometimes cut. Sender, receiver, pull queue, paths and the format of packets work together.
 * Packet numbers and credits wrap. In some rounds, forged packets arrive, too. Built with ASan and
 * UBSan.
 *
 *   ndp_stream_fuzz [ROUNDS [SEED]]
 *
 * A round is the life of up to FLOWS streams. Prints TAP. Built with -DTIMELY_LIBFUZZER, the random
 * numbers are the fuzzer's input.
 */
#include <kunit/test.h>
#include <linux/kernel.h>
#include <linux/limits.h>
#include <linux/socket.h>

#include <timely/engine/ndp_pull.h>
#include <timely/engine/ndp_receiver.h>
#include <timely/engine/ndp_sender.h>

#define FLOWS		4
#define SPAN		128
#define PATHS		8
#define MAX_PAYLOAD	64
#define HEADER_BYTES	(TIMELY_NDP_BYTES + TIMELY_NDP_TAG_BYTES)
#define WIRE_BYTES	(TIMELY_NDP_MAX_BYTES + MAX_PAYLOAD)
#define EVENTS		8192
/* A stream that needs longer has stopped for good. Timeouts double up to 100 ms. */
#define END_NS		120000000000ULL
/* The network has no more faults from this time on, so that each stream must end. */
#define CALM_NS		3000000000ULL
#define LINK_KBPS	10000000
#define PACKET_BYTES	1500
#define PACKET_NS	1200

enum promise {
	BYTES, ONCE, ROOM, UNPULLED, GRANTED, CREDITS, ENDS, LISTS, SOON, PACE, FAIR, PRIORITY,
	IDLE, ANOTHER_PATH, PATH, DETECTED, TAKEN_OUT, PROMISES
};

static const char * const promises[PROMISES] = {
	[BYTES] = "the application reads each packet in order and intact",
	[ONCE] = "a packet is received once",
	[ROOM] = "no packet is received for which there is no room",
	[UNPULLED] = "never more credits in use than the initial window and the pulls",
	[GRANTED] = "never more credits granted than used",
	[CREDITS] = "when all has arrived, no credit is owed",
	[ENDS] = "each stream ends",
	[LISTS] = "lists and states of packets agree",
	[SOON] = "a sender that has data is never without a timer",
	[PACE] = "pulls are not faster than the link rate",
	[FAIR] = "streams of one priority get pulls in turn",
	[PRIORITY] = "a stream of a higher priority gets its pulls first",
	[IDLE] = "a stream that has arrived wants no pulls",
	[ANOTHER_PATH] = "a retransmission takes another path than before",
	[PATH] = "each path of a round without NACKs is used once",
	[DETECTED] = "no damaged packet passes for an intact one",
	[TAKEN_OUT] = "a stream that wants no pulls is not in the pull queue",
};

#define FUZZ_ROUND	"streams"
#include "fuzz.h"

/* What the network does to packets, each in 1024. */
struct faults {
	u32 lost;
	u32 repeated;
	u32 late;
	u32 trimmed;
	u32 damaged;
	u32 returned;
	u32 forged;
	u64 cut_from_ns;
	u64 cut_until_ns;
};

struct flow {
	struct timely_ndp_sender s;
	struct timely_ndp_slot slots[SPAN];
	struct timely_ndp_paths paths;
	struct timely_ndp_path path[PATHS];
	struct timely_ndp_receiver r;
	u64 map[SPAN / 64];
	struct timely_ndp_pull_flow pull;
	u8 stored[SPAN];		/* by packet number: the first byte of the payload */
	bool has[SPAN];
	u32 first;			/* number of the first packet */
	u32 total;			/* packets that the application will write */
	u32 written;
	u32 read;			/* number of the first packet not read */
	u32 room;			/* packets that the application's memory holds */
	u32 credit_sends;		/* DATA packets that used a credit */
	u32 used;			/* @s.used after the last packet */
	u32 granted;			/* credits granted by all answers of the receiver */
	u64 timer_ns;
	u64 last_pull;			/* number of the pull that was this stream's last */
	bool used_path[PATHS];
	u32 round;			/* packets in this round of paths */
	u64 nacks;			/* when the round began */
	bool done;
};

enum event_kind { TO_RECEIVER, TO_SENDER, WRITE, READ, TIMER, PULL };

struct event {
	u64 at_ns;
	u64 order;
	enum event_kind kind;
	u32 flow;
	u32 bytes;
	u8 wire[WIRE_BYTES];
};

static struct {
	struct flow flows[FLOWS];
	u32 count;
	struct timely_ndp_pull queue;
	struct faults faults;
	struct event *events[EVENTS];
	u32 pending;
	u64 now_ns;
	u64 order;
	u64 pull_timer_ns;
	u64 first_pull_ns;
	bool stop;
} world;

static const struct timely_ndp_addresses addresses = {
	.saddr = { 0x0100000a }, .daddr = { 0x0200000a }, .family = AF_INET
};

static const struct timely_orack_key key = { { 1, 2 } };

/* ---- events, in a binary heap ---- */

static bool earlier(const struct event *a, const struct event *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap_events(u32 a, u32 b)
{
	struct event *event = world.events[a];

	world.events[a] = world.events[b];
	world.events[b] = event;
}

static struct event *add_event(u64 at_ns, enum event_kind kind, u32 flow)
{
	struct event *event = calloc(1, sizeof(*event));
	u32 i = world.pending++;

	if (world.pending == EVENTS) {
		world.pending--;
		world.stop = true;
		i--;
		free(world.events[i]);
	}
	event->at_ns = at_ns;
	event->order = world.order++;
	event->kind = kind;
	event->flow = flow;
	world.events[i] = event;
	for (; i && earlier(world.events[i], world.events[(i - 1) / 2]); i = (i - 1) / 2)
		swap_events(i, (i - 1) / 2);
	return event;
}

static struct event *take_event(void)
{
	struct event *event = world.events[0];
	u32 i = 0, next;

	world.events[0] = world.events[--world.pending];
	while ((next = 2 * i + 1) < world.pending) {
		if (next + 1 < world.pending && earlier(world.events[next + 1], world.events[next]))
			next++;
		if (!earlier(world.events[next], world.events[i]))
			break;
		swap_events(i, next);
		i = next;
	}
	return event;
}

/* ---- the network ---- */

static bool happens(u32 in_1024)
{
	return in_1024 && world.now_ns < CALM_NS && below(1024) < in_1024;
}

static u8 content(const struct flow *f, u32 seq)
{
	return (u8)(f->first + 7 * seq);
}

static u32 payload_bytes(u32 seq)
{
	return 1 + seq % MAX_PAYLOAD;
}

static void deliver(struct flow *f, enum event_kind kind, const u8 *wire, u32 bytes)
{
	u64 delay = 5000 + below(2000) + (happens(world.faults.late) ? below(3000000) : 0);
	struct event *event = add_event(world.now_ns + delay, kind, f - world.flows);

	memcpy(event->wire, wire, bytes);
	event->bytes = bytes;
}

static bool is_data(const u8 *wire)
{
	return wire[3] == TIMELY_NDP_DATA;
}

/* Carry a packet, with faults. A packet is returned as its header. */
static void carry(struct flow *f, enum event_kind kind, const u8 *wire, u32 bytes)
{
	const struct faults *faults = &world.faults;
	u8 changed[WIRE_BYTES];
	bool cut = world.now_ns >= faults->cut_from_ns && world.now_ns < faults->cut_until_ns;

	if (cut || happens(faults->lost))
		return;
	if (is_data(wire) && happens(faults->returned)) {
		deliver(f, TO_SENDER, wire, HEADER_BYTES);
		return;
	}
	if (happens(faults->repeated))
		deliver(f, kind, wire, bytes);
	memcpy(changed, wire, bytes);
	if (happens(faults->damaged))
		changed[below(bytes)] ^= 1 << below(8);
	if (is_data(wire) && happens(faults->trimmed))
		bytes = below(4) ? HEADER_BYTES + below(bytes - HEADER_BYTES + 1) :
		       below(bytes);
	deliver(f, kind, changed, bytes);
}

static void send_header(struct flow *f, enum event_kind kind, struct timely_ndp_header *header,
			const u8 *payload)
{
	u8 wire[WIRE_BYTES];
	u32 bytes;

	header->conn = f - world.flows;
	header->sport = 1;
	header->dport = 2;
	header->key = 1;
	if (kind == TO_RECEIVER)
		header->flags |= TIMELY_NDP_INITIATOR;
	bytes = timely_ndp_encode(wire, header, &addresses, &key);
	if (payload)
		memcpy(wire + bytes, payload, header->length);
	carry(f, kind, wire, payload ? bytes + header->length : bytes);
}

/* ---- the sender ---- */

static void check_sender(const struct flow *f)
{
	u32 sent = 0, resend = 0, seq;

	for (seq = f->s.una; seq != f->s.next; seq++) {
		u8 state = f->slots[seq % SPAN].state;

		sent += state == TIMELY_NDP_SLOT_SENT;
		resend += state == TIMELY_NDP_SLOT_RESEND;
		if (state == TIMELY_NDP_SLOT_FREE)
			sent = SPAN;
	}
	promise(LISTS, sent == f->s.sent_list.count && resend == f->s.resend_list.count &&
		f->s.next - f->s.una <= SPAN);
	promise(UNPULLED, f->s.used - f->s.granted <= f->s.config.window);
	if (!timely_ndp_sender_done(&f->s))
		promise(SOON, timely_ndp_sender_due_ns(&f->s) != TIMELY_NDP_NEVER);
}

static void set_timer(struct flow *f)
{
	u64 due = timely_ndp_sender_due_ns(&f->s);

	if (due == TIMELY_NDP_NEVER || due == f->timer_ns)
		return;
	f->timer_ns = due;
	add_event(max(due, world.now_ns), TIMER, f - world.flows);
}

/* Follow the rounds of paths. A NACK may move a path that was used to a later place. */
static void check_path(struct flow *f, u32 path)
{
	u64 nacks = f->s.stats.nacked + f->s.stats.returned;

	if (f->paths.at <= f->round || f->paths.at == 1) {
		memset(f->used_path, 0, sizeof(f->used_path));
		f->round = 0;
		f->nacks = nacks;
	}
	promise(PATH, path < f->paths.count && (!f->used_path[path] || nacks != f->nacks));
	f->used_path[path] = true;
	f->round = f->paths.at;
}

static void send_all(struct flow *f)
{
	struct timely_ndp_header header;
	u8 payload[MAX_PAYLOAD], before[SPAN];
	enum timely_ndp_send what;
	u32 i;

	for (;;) {
		for (i = 0; i < SPAN; i++)
			before[i] = (u8)f->slots[i].path;
		what = timely_ndp_sender_next(&f->s, &header, world.now_ns);
		if (what == TIMELY_NDP_SEND_NOTHING)
			break;
		if (what == TIMELY_NDP_SEND_DATA) {
			check_path(f, header.path);
			if (header.flags & TIMELY_NDP_RTX && f->paths.used > 1)
				promise(ANOTHER_PATH, header.path != before[header.seq % SPAN]);
			header.length = header.flags & TIMELY_NDP_FIN && f->written < f->total + 1 ?
					0 : payload_bytes(header.seq);
			memset(payload, content(f, header.seq), sizeof(payload));
			header.sum = timely_ndp_sum(payload, header.length);
			f->credit_sends += f->s.used - f->used;
			f->used = f->s.used;
			promise(UNPULLED, f->credit_sends <= f->s.config.window + f->granted);
		}
		send_header(f, TO_RECEIVER, &header, payload);
	}
	check_sender(f);
	set_timer(f);
}

/* The application writes some packets; after the last, it closes the stream. */
static void write_some(struct flow *f)
{
	u32 n = min(1 + below(40), f->total - f->written);

	if (n) {
		timely_ndp_sender_queue(&f->s, n, world.now_ns);
		f->written += n;
	} else if (!f->s.finished) {
		if (!timely_ndp_sender_finish(&f->s, world.now_ns))
			f->written = f->total + 1;	/* the last packet ends the stream */
	}
	send_all(f);
	if (!f->s.finished)
		add_event(world.now_ns + 1 + below(below(8) ? 100000 : 30000000), WRITE,
			  f - world.flows);
}

/* ---- the receiver ---- */

static void set_pull_timer(void)
{
	u64 due = max(timely_ndp_pull_due_ns(&world.queue), world.now_ns);

	if (!world.queue.flows || due == world.pull_timer_ns)
		return;
	world.pull_timer_ns = due;
	add_event(due, PULL, 0);
}

static void check_receiver(struct flow *f)
{
	u32 wanted = timely_ndp_receiver_wanted(&f->r);

	f->granted = f->r.granted - (f->first * 3);
	promise(GRANTED, !timely_ndp_before(f->r.used, f->r.granted));
	if (timely_ndp_receiver_done(&f->r)) {
		promise(IDLE, !wanted);
		promise(CREDITS, f->r.used == f->r.granted);
	}
	timely_ndp_pull_set(&world.queue, &f->pull, wanted);
	/* A stream that comes back has its turn after all others. */
	if (!wanted)
		f->last_pull = 0;
	promise(TAKEN_OUT, !!f->pull.prev == !!wanted);
	set_pull_timer();
}

static void check_turn(const struct flow *f, const u32 *wanted, const u64 *last)
{
	u32 i;

	for (i = 0; i < world.count; i++) {
		const struct flow *other = &world.flows[i];

		if (other == f || !wanted[i])
			continue;
		promise(PRIORITY, other->pull.priority <= f->pull.priority);
		/* A stream that has waited since before this one's last turn would come first. */
		if (other->pull.priority == f->pull.priority && f->pull.prev)
			promise(FAIR, last[i] >= last[f - world.flows] || !last[i]);
	}
}

/* Take the next pull out of the queue. Return: the stream that gets the pull, or NULL. */
static struct flow *next_pull(void)
{
	struct timely_ndp_pull_flow *pull;
	u32 wanted[FLOWS], i;
	u64 last[FLOWS];
	struct flow *f;

	for (i = 0; i < world.count; i++) {
		wanted[i] = world.flows[i].pull.wanted;
		last[i] = world.flows[i].last_pull;
	}
	pull = timely_ndp_pull_next(&world.queue, world.now_ns);
	if (!pull)
		return NULL;
	f = container_of(pull, struct flow, pull);
	check_turn(f, wanted, last);
	f->last_pull = f->pull.prev ? world.queue.pulls : 0;
	if (!world.first_pull_ns)
		world.first_pull_ns = world.now_ns;
	/* The engine computes with 24 bits after the point. */
	promise(PACE, (world.queue.pulls - 1) * PACKET_NS <=
		world.now_ns - world.first_pull_ns + world.queue.slack_ns + 2);
	return f;
}

/* Send the pulls that are due. The pull of @mine, if not NULL, goes with its @answer. */
static void pull_some(struct flow *mine, struct timely_ndp_header *answer)
{
	struct timely_ndp_header header;
	struct flow *f;

	while ((f = next_pull())) {
		if (f == mine)
			timely_ndp_receiver_grant(&f->r, 1, answer);
		else
			timely_ndp_receiver_pull(&f->r, 1, &header);
		check_receiver(f);
		if (f != mine)
			send_header(f, TO_SENDER, &header, NULL);
	}
}

static void answer(struct flow *f, struct timely_ndp_header *header)
{
	check_receiver(f);
	/* A pull that is due may go with the answer. */
	if (below(2))
		pull_some(f, header);
	send_header(f, TO_SENDER, header, NULL);
}

static void received(struct flow *f, const struct timely_ndp_header *header, const u8 *payload)
{
	u32 i = header->seq % SPAN;

	promise(ONCE, !f->has[i] && !timely_ndp_before(header->seq, f->read));
	promise(ROOM, header->seq - f->read < f->room);
	f->has[i] = true;
	f->stored[i] = header->length ? payload[0] : content(f, header->seq);
}

static void data_arrives(struct flow *f, const struct timely_ndp_header *header, const u8 *wire,
			 bool cut)
{
	enum timely_ndp_payload state = TIMELY_NDP_PAYLOAD_CUT;
	const u8 *payload = wire + HEADER_BYTES;
	struct timely_ndp_header reply;
	u32 i;

	if (!cut) {
		bool good = header->sum == timely_ndp_sum(payload, header->length);

		for (i = 0; good && i < header->length; i++)
			promise(DETECTED, payload[i] == content(f, header->seq));
		state = good ? TIMELY_NDP_PAYLOAD_WHOLE : TIMELY_NDP_PAYLOAD_BAD;
	}
	switch (timely_ndp_receiver_data(&f->r, header, state, &reply)) {
	case TIMELY_NDP_RECEIVED:
		received(f, header, payload);
		break;
	case TIMELY_NDP_REFUSED:
		return;
	default:
		break;
	}
	answer(f, &reply);
}

static void to_receiver(struct flow *f, const struct event *event)
{
	enum timely_ndp_decoded decoded;
	struct timely_ndp_header header, reply;
	u8 *wire = malloc(event->bytes + 1);

	/* The copy ends where the packet ends, so that ASan detects reads beyond the end. */
	memcpy(wire, event->wire, event->bytes);
	wire = realloc(wire, event->bytes ? event->bytes : 1);
	decoded = timely_ndp_decode(&header, wire, event->bytes, event->bytes, &addresses);
	if (decoded <= TIMELY_NDP_CUT && timely_ndp_verify(&header, wire, &addresses, &key)) {
		if (header.type == TIMELY_NDP_DATA)
			data_arrives(f, &header, wire, decoded == TIMELY_NDP_CUT);
		else if (header.type == TIMELY_NDP_PROBE &&
			 timely_ndp_receiver_probe(&f->r, &header, &reply))
			answer(f, &reply);
	}
	free(wire);
}

static void to_sender(struct flow *f, const struct event *event)
{
	struct timely_ndp_header header;

	if (timely_ndp_decode(&header, event->wire, event->bytes, event->bytes, &addresses) >
	    TIMELY_NDP_CUT)
		return;
	if (header.flags & TIMELY_NDP_INITIATOR)
		timely_ndp_sender_returned(&f->s, &header, world.now_ns);
	else
		timely_ndp_sender_answer(&f->s, &header, world.now_ns);
	send_all(f);
}

/* The application reads some of what is there in order. */
static void read_some(struct flow *f)
{
	struct timely_ndp_header header;
	u32 n = 1 + below(f->room);

	for (; n && timely_ndp_before(f->read, f->r.cum); n--, f->read++) {
		promise(BYTES, f->has[f->read % SPAN] &&
			f->stored[f->read % SPAN] == content(f, f->read));
		f->has[f->read % SPAN] = false;
	}
	if (timely_ndp_receiver_room(&f->r, f->read + f->room, &header))
		answer(f, &header);
	else
		check_receiver(f);
	if (timely_ndp_receiver_done(&f->r) && f->read == f->r.cum) {
		promise(BYTES, f->read - f->first == f->s.end - f->first);
		f->done = timely_ndp_sender_done(&f->s);
	}
	if (!f->done)
		add_event(world.now_ns + 1000 + below(below(16) ? 50000 : 20000000), READ,
			  f - world.flows);
}

/* ---- a round ---- */

/* Give the engines a forged header, which the tag would stop. They must stay consistent. The stream
 * may be harmed, so it ends then.
 */
static void forge(struct flow *f)
{
	struct timely_ndp_header header = {}, reply;

	header.type = (u8)(TIMELY_NDP_DATA + below(5));
	header.seq = f->s.una + (below(4) ? below(200) : (u32)roll()) - 50;
	header.credits = f->s.granted + (below(4) ? below(100) : (u32)roll()) - 20;
	header.cum = f->s.una + (below(4) ? below(100) : (u32)roll()) - 20;
	header.seen = f->s.granted + (below(4) ? below(8) : (u32)roll()) - 4;
	header.limit = header.cum + (below(4) ? below(200) : (u32)roll());
	header.owed = (u16)roll();
	header.flags = (u8)below(256);
	header.tries = (u8)below(4);
	header.path = (u8)below(12);
	header.arrived = below(2) ? (u32)roll() : 0;
	switch (below(4)) {
	case 0:
		timely_ndp_sender_answer(&f->s, &header, world.now_ns);
		break;
	case 1:
		timely_ndp_sender_returned(&f->s, &header, world.now_ns);
		break;
	case 2:
		timely_ndp_receiver_data(&f->r, &header, below(3), &reply);
		break;
	default:
		timely_ndp_receiver_probe(&f->r, &header, &reply);
	}
	promise(GRANTED, !timely_ndp_before(f->r.used, f->r.granted));
	check_sender(f);
	timely_ndp_pull_set(&world.queue, &f->pull, timely_ndp_receiver_wanted(&f->r));
}

static void set_up(struct flow *f)
{
	struct timely_ndp_sender_config config = {
		.window = 1 + below(below(2) ? 4 : 60), .span = SPAN, .rto_min_ns = 200000,
		.rto_max_ns = 1000000, .backoff_max_ns = 100000000,
	};
	u32 first = below(2) ? 0 - below(200) : (u32)roll();

	memset(f, 0, sizeof(*f));
	timely_ndp_paths_init(&f->paths, f->path, 1 + below(PATHS), roll());
	timely_ndp_sender_init(&f->s, &config, f->slots, &f->paths);
	f->room = below(4) ? 1 + below(SPAN) : 1 + below(4);
	timely_ndp_receiver_init(&f->r, f->map, SPAN, f->room);
	f->first = first;
	f->read = first;
	/* Streams start with numbers that wrap soon, as after a long time. */
	f->s.una = first;
	f->s.next = first;
	f->s.end = first;
	f->s.limit += first;
	f->s.used = first * 3;
	f->s.granted = f->s.used;
	f->s.promised = f->s.used;
	f->used = f->s.used;
	f->r.cum = first;
	f->r.high = first;
	f->r.limit += first;
	f->r.told = f->r.limit;
	f->r.used = f->s.used;
	f->r.granted = f->s.used;
	f->r.seen = f->s.used;
	f->total = below(below(2) ? 20 : 300);
	f->pull.bytes = PACKET_BYTES;
	f->pull.priority = (u8)below(3);
	add_event(1 + below(100000), WRITE, f - world.flows);
	add_event(1 + below(100000), READ, f - world.flows);
}

static u32 share(void)
{
	return below(2) ? 0 : below(below(2) ? 16 : 200);
}

static void random_faults(void)
{
	struct faults *faults = &world.faults;

	memset(faults, 0, sizeof(*faults));
	faults->lost = share();
	faults->repeated = share();
	faults->late = share();
	faults->trimmed = share() * 4;
	faults->damaged = share();
	faults->returned = share();
	if (below(4) == 0) {
		faults->cut_from_ns = below(5000000);
		faults->cut_until_ns = faults->cut_from_ns + below(1000000000);
	}
	faults->forged = below(8) ? 0 : 1 + below(64);
}

static void one_event(struct event *event)
{
	struct flow *f = &world.flows[event->flow];

	world.now_ns = event->at_ns;
	switch (event->kind) {
	case TO_RECEIVER:
		to_receiver(f, event);
		break;
	case TO_SENDER:
		to_sender(f, event);
		break;
	case WRITE:
		write_some(f);
		break;
	case READ:
		read_some(f);
		break;
	case TIMER:
		if (event->at_ns < f->timer_ns)
			break;
		f->timer_ns = 0;
		timely_ndp_sender_timeout(&f->s, world.now_ns);
		send_all(f);
		break;
	case PULL:
		world.pull_timer_ns = 0;
		pull_some(NULL, NULL);
		set_pull_timer();
	}
}

static bool all_done(void)
{
	u32 i;

	for (i = 0; i < world.count; i++)
		if (!world.flows[i].done)
			return false;
	return true;
}

static void fuzz_round(void)
{
	bool forged;
	u32 i;

	memset(&world, 0, sizeof(world));
	timely_ndp_pull_init(&world.queue, LINK_KBPS, below(2) * 10 * PACKET_NS);
	random_faults();
	forged = world.faults.forged;
	world.count = 1 + below(FLOWS);
	for (i = 0; i < world.count; i++)
		set_up(&world.flows[i]);
	while (world.pending && !all_done() && world.now_ns < END_NS && !world.stop) {
		struct event *event = take_event();

		/* After forged packets, nothing but the engines' consistency is promised. */
		if (forged && below(1024) < world.faults.forged) {
			for (i = 0; i < 20; i++)
				forge(&world.flows[event->flow]);
			world.stop = true;
		} else {
			one_event(event);
		}
		free(event);
	}
	if (!forged)
		promise(ENDS, all_done());
	while (world.pending)
		free(take_event());
}

static void fuzz_input(void)
{
	fuzz_round();
}
