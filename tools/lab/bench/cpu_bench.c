// SPDX-License-Identifier: GPL-2.0
/*
 * cpu_bench: TSC cycles that a sender and a receiver of bulk TCP or NDP data need, with TCP's
 * connections paced to a share of a link. cpu.sh builds and runs this module; README.md describes
 * the measurement.
 *
 * The module needs the lab's kernel: User Mode Linux in time-travel mode. There the clock is
 * virtual, so delays and rates do not depend on the machine, and idle time costs nothing; the code
 * runs natively, so the TSC shows the real cost of the code.
 *
 * The module provides two network devices, "cpu0" for the sender and "cpu1" for the receiver, and
 * the link between them. cpu_cells.sh moves each device to a network namespace and sets up
 * congestion controls and qdiscs. The sockets are real. A driver sends frames at the link's rate,
 * does TSO, and has interrupt moderation. Applications write whenever the socket has room, and read
 * whenever data have arrived. So congestion control, qdisc, TCP small queues, GRO and ACKs interact
 * as on two hosts.
 *
 * One thread runs everything: cb_step() moves the clock to the next event and handles the event.
 * Cycles are counted by place (enum cb_where); cb_enter() changes the place. Code of this module
 * that a real host would not run, such as splitting skbs into frames, is counted as CB_BENCH and is
 * in no result.
 *
 * A process in the sender's namespace reads the file cpu_bench/run in debugfs. The read opens
 * connections, makes a run with the current module parameters, and returns the result as one JSON
 * object. It fails with -EIO if data are retransmitted or do not arrive; the kernel log has the
 * reason.
 */

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/platform_device.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/time-internal.h>
#include <linux/tracepoint.h>
#include <linux/udp.h>
#include <net/gso.h>
#include <net/tcp.h>
#include <uapi/linux/ndp.h>

#include "timely/engine/ndp_wire.h"

#include "native.h"

#define CB_RECEIVER_IP	0x0a000002	/* 10.0.0.2 */
#define CB_TCP_PORT	5001
#define CB_FLOWS_MAX	1000
#define CB_CHUNKS_MAX	64
#define CB_WRITE_BYTES	65536	/* bytes that an application writes at once */
#define CB_READ_BYTES	(1 << 20)	/* bytes that an application reads at once, at most */
/* A send buffer has room for the data of 2 ms, and for four large skbs; at most net.ipv4.tcp_wmem's
 * default maximum.
 */
#define CB_SNDBUF_NS	(2 * NSEC_PER_MSEC)
#define CB_SNDBUF_MORE	(256 << 10)
#define CB_SNDBUF_MAX	(4 << 20)
#define CB_RCVBUF	(16 << 20)	/* bytes of a receive buffer */
#define CB_WINDOW	(4 << 20)	/* bytes of the receive window */
/* One-way delay of the link. What a sender does shows at the receiver after this time at the
 * earliest, so the clock may advance by CB_STEP_NS while timers of the sender send packets.
 */
#define CB_WAY_NS	8000
#define CB_STEP_NS	4000
/* Bytes of a frame on the link besides what the skb has: checksum, preamble, inter-packet gap. */
#define CB_FRAME_BYTES	24
/* Largest MTU of a device. */
#define CB_MTU_MAX	9000
/* First bytes of a frame, which a driver copies; all headers are among them. */
#define CB_COPY_BYTES	128
/* A frame occupies a multiple of these bytes of a driver's pages, for the socket's memory
 * accounting.
 */
#define CB_PAGE_SHARE	2048
/* After this many steps the rest of the kernel may run. */
#define CB_BREATH	64
/* An interval that takes longer may have been interrupted by the host; 10 us at 3 GHz. */
#define CB_LONG_CYCLES	30000
/* A run without data for this long is not valid. */
#define CB_STALL_NS	(300 * NSEC_PER_MSEC)
#define CB_CALIBRATIONS	1001

static unsigned int flows = 1;
module_param(flows, uint, 0644);
MODULE_PARM_DESC(flows, "number of connections, 1 to 1000");

static bool ndp;
module_param(ndp, bool, 0644);
MODULE_PARM_DESC(ndp, "NDP's sockets instead of TCP's; pulls ask for the rate of the link, without a share");

static unsigned int link_mbps = 10000;
module_param(link_mbps, uint, 0644);
MODULE_PARM_DESC(link_mbps, "rate of the link, Mb/s; set the devices down and up after a change");

static unsigned int share = 90;
module_param(share, uint, 0644);
MODULE_PARM_DESC(share, "payload that all connections together may send, percent of the link (SO_MAX_PACING_RATE); 0: no limit");

static unsigned int moderation_ns = 8000;
module_param(moderation_ns, uint, 0644);
MODULE_PARM_DESC(moderation_ns, "least time between two interrupts of a device, ns");

static unsigned int warm_ms = 30;
module_param(warm_ms, uint, 0644);
MODULE_PARM_DESC(warm_ms, "virtual time before the measurement, ms");

static unsigned int chunks = 7;
module_param(chunks, uint, 0644);
MODULE_PARM_DESC(chunks, "parts of the measurement, 1 to 64");

static unsigned int chunk_kb = 16384;
module_param(chunk_kb, uint, 0644);
MODULE_PARM_DESC(chunk_kb, "data of each part, KB");

/* Where cycles are counted. */
enum cb_where {
	CB_BENCH,	/* this module's own work, in no result */
	CB_WRITE,	/* sender: the system call, and what it sends */
	CB_TIMER,	/* sender: timers, and what they send; with NDP, the receiver's pulls. Also
			 * the step of the clock
			 */
	CB_DONE,	/* sender: the driver frees what it has sent */
	CB_ACK,		/* sender: ACKs, what they send, and other work after the poll */
	CB_RECEIVE,	/* receiver: interrupts: data up to TCP's receive queue, ACKs */
	CB_READ,	/* receiver: the system call, and the ACKs it sends */
	CB_WHERES,	/* their number */
};

static const char * const cb_names[CB_WHERES] = {
	[CB_BENCH]	= "bench",
	[CB_WRITE]	= "write",
	[CB_TIMER]	= "timer",
	[CB_DONE]	= "done",
	[CB_ACK]	= "ack",
	[CB_RECEIVE]	= "receive",
	[CB_READ]	= "read",
};

/**
 * struct cb_counts - what happened in one part of the measurement
 * @cycles: TSC cycles, by place; the cost of reading the TSC is in them
 * @pieces: intervals that @cycles is the sum of, by place
 * @lost: intervals that are not in @cycles, because the host took the processor away, by place
 * @steps: steps of the clock
 * @written: bytes that applications have written
 * @sent: bytes of payload that the driver of the sender got
 * @read: bytes that applications have read
 * @writes: system calls that wrote
 * @reads: system calls that read
 * @packets: skbs that the driver of the sender got
 * @frames: frames that these skbs became
 * @acks: frames that arrived at the sender
 * @interrupts: interrupts of the sender's device
 * @rx_interrupts: interrupts of the receiver's device
 * @by_timer: skbs that a timer sent
 * @timers: high-resolution timers that expired; counted outside of timed parts only
 */
struct cb_counts {
	u64 cycles[CB_WHERES];
	u64 pieces[CB_WHERES];
	u64 lost[CB_WHERES];
	u64 steps;
	u64 written;
	u64 sent;
	u64 read;
	u64 writes;
	u64 reads;
	u64 packets;
	u64 frames;
	u64 acks;
	u64 interrupts;
	u64 rx_interrupts;
	u64 by_timer;
	u64 timers;
};

/**
 * struct cb_chunk - one part of the measurement
 * @counts: what happened
 * @ns: length in virtual time
 */
struct cb_chunk {
	struct cb_counts counts;
	u64 ns;
};

/**
 * struct cb_flow - a connection
 * @from: the sender's socket
 * @to: the receiver's socket
 * @writable: entry in the list of connections whose application may write
 * @readable: entry in the list of connections whose application may read
 */
struct cb_flow {
	struct socket *from;
	struct socket *to;
	struct list_head writable;
	struct list_head readable;
};

/**
 * struct cb_run - the state and the result of a run
 * @flow: array of connections
 * @listener: socket at which the receiver accepts connections
 * @buffer: memory for the data that is written and read
 * @writable: connections whose application may write
 * @readable: connections whose application may read
 * @now: counts of the current part
 * @chunk: the parts
 * @traced: a part before the first, in which timers are counted
 * @steps: number of steps since the start
 * @read_ns: time of the last read
 * @piece_cycles: cycles of reading the TSC, which each interval contains
 * @step_cycles: cycles of a step of the clock in which no timer expires
 * @again: packets of NDP that were retransmitted since the start
 * @retransmitted: packets that were retransmitted in the measurement
 * @wrong: reason why the run is invalid; NULL: valid
 */
struct cb_run {
	struct cb_flow *flow;
	struct socket *listener;
	void *buffer;
	struct list_head writable;
	struct list_head readable;
	struct cb_counts now;
	struct cb_chunk chunk[CB_CHUNKS_MAX];
	struct cb_chunk traced;
	u64 steps;
	u64 read_ns;
	u64 piece_cycles;
	u64 step_cycles;
	u32 again;
	u32 retransmitted;
	const char *wrong;
};

/**
 * struct cb_port - a device, at one end of the link
 * @napi: the device's NAPI instance
 * @dev: the device
 * @wire: frames on the way to the device, by time of arrival
 * @ready: frames that the next poll finds
 * @polled: frames that were polled, to be freed
 * @sending: skbs that the driver sends, by time of their end
 * @sent: skbs that the next poll frees
 * @free_ns: when the device has sent all it has got
 * @quiet_ns: time before which there is no interrupt
 */
struct cb_port {
	struct napi_struct napi;
	struct net_device *dev;
	struct sk_buff_head wire;
	struct sk_buff_head ready;
	struct sk_buff_head polled;
	struct sk_buff_head sending;
	struct sk_buff_head sent;
	u64 free_ns;
	u64 quiet_ns;
};

/* In skb->cb of frames and of skbs that the driver has got. */
struct cb_skb_cb {
	u64 due_ns;
};

enum { CB_SENDER, CB_RECEIVER, CB_PORTS };

static struct cb_port *cb_port[CB_PORTS];
/* The parent of the devices: tcp_timely asks only devices with a parent for their link rate. */
static struct platform_device *cb_hardware;
static struct dentry *cb_dir;
static DEFINE_MUTEX(cb_mutex);
static struct tracepoint *cb_tracepoint;

/* The run that uses the link; NULL: packets are dropped. */
static struct cb_run *cb_now;
/* Where cycles are counted at present, and since when. */
static enum cb_where cb_current;
static u64 cb_since;
/* The host's count of involuntary context switches, as last read. */
static long cb_switches;

/* ---- counting ---- */

/* Did another process have the processor since the last call of this function? Long intervals count
 * unless this is the reason.
 */
static bool cb_interrupted(void)
{
	long before = cb_switches;

	cb_switches = bench_host_switches();
	return cb_switches != before;
}

/* From now on count cycles at @where. Return: the place before. */
static enum cb_where cb_enter(struct cb_run *run, enum cb_where where)
{
	enum cb_where before = cb_current;
	u64 cycles = bench_tsc() - cb_since;

	cb_current = where;
	if (unlikely(cycles > CB_LONG_CYCLES) && cb_interrupted()) {
		run->now.lost[before]++;
		cb_since = bench_tsc();
		return before;
	}
	run->now.cycles[before] += cycles;
	run->now.pieces[before]++;
	cb_since += cycles;
	return before;
}

static void cb_fail(struct cb_run *run, const char *wrong)
{
	if (!run->wrong)
		run->wrong = wrong;
}

/* In a process, reading the clock advances the clock, except with bottom halves disabled. */
static u64 cb_ns(void)
{
	u64 ns;

	local_bh_disable();
	ns = ktime_get_ns();
	local_bh_enable();
	return ns;
}

static u64 cb_last_cycles(struct cb_run *run, enum cb_where where, u64 *before)
{
	u64 cycles = run->now.cycles[where] - *before;

	*before = run->now.cycles[where];
	return cycles;
}

static u64 cb_median(u64 *sample)
{
	sort(sample, CB_CALIBRATIONS, sizeof(*sample), bench_compare, NULL);
	return sample[CB_CALIBRATIONS / 2];
}

/* Measure an empty interval, and a step of the clock in which no timer expires. */
static int cb_calibrate(struct cb_run *run)
{
	u64 *sample = kvcalloc(CB_CALIBRATIONS, sizeof(*sample), GFP_KERNEL);
	u64 before = run->now.cycles[CB_TIMER];
	unsigned int i;

	if (!sample)
		return -ENOMEM;
	for (i = 0; i < CB_CALIBRATIONS; i++) {
		cb_enter(run, CB_TIMER);
		cb_enter(run, CB_BENCH);
		sample[i] = cb_last_cycles(run, CB_TIMER, &before);
	}
	run->piece_cycles = cb_median(sample);
	for (i = 0; i < CB_CALIBRATIONS; i++) {
		cb_enter(run, CB_TIMER);
		ndelay(CB_STEP_NS);
		cb_enter(run, CB_BENCH);
		sample[i] = cb_last_cycles(run, CB_TIMER, &before);
	}
	run->step_cycles = cb_median(sample);
	run->step_cycles -= min(run->step_cycles, run->piece_cycles);
	kvfree(sample);
	return 0;
}

/* A function on the tracepoint hrtimer_expire_entry. */
static void cb_timer_expires(void *data, struct hrtimer *timer, ktime_t *now)
{
	struct cb_run *run = data;

	run->now.timers++;
}

static void cb_find_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "hrtimer_expire_entry"))
		cb_tracepoint = tp;
}

/* ---- the link ---- */

static struct cb_skb_cb *cb_cb(const struct sk_buff *skb)
{
	return (struct cb_skb_cb *)skb->cb;
}

/* Copies of the frames that a NIC makes of the skb, linked by skb->next. The skb keeps its socket,
 * until the driver frees the skb.
 */
static struct sk_buff *cb_frames(struct sk_buff *skb)
{
	void (*destructor)(struct sk_buff *skb) = skb->destructor;
	struct sock *sk = skb->sk;
	struct sk_buff *list;

	if (!skb_is_gso(skb))
		return pskb_copy(skb, GFP_ATOMIC);
	skb->destructor = NULL;
	skb->sk = NULL;
	list = skb_gso_segment(skb, NETIF_F_SG | NETIF_F_HW_CSUM);
	skb->destructor = destructor;
	skb->sk = sk;
	return IS_ERR(list) ? NULL : list;
}

/* Bytes of headers, from Ethernet's to TCP's or NDP's. */
static u32 cb_headers(const struct sk_buff *skb)
{
	if (!ndp)
		return skb_tcp_all_headers(skb);
	return skb_transport_offset(skb) + sizeof(struct udphdr) + TIMELY_NDP_BYTES;
}

/* Is this packet of NDP a retransmission? The flags follow version and type. */
static bool cb_ndp_again(const struct sk_buff *skb)
{
	const u8 *header = skb_transport_header(skb) + sizeof(struct udphdr);

	return ndp && header[1] & TIMELY_NDP_RTX;
}

static u64 cb_wire_ns(u32 bytes)
{
	return div_u64(8000ULL * (bytes + CB_FRAME_BYTES), link_mbps);
}

static void cb_transmit(struct cb_run *run, struct cb_port *port, struct sk_buff *skb)
{
	struct cb_port *peer = cb_port[port == cb_port[CB_SENDER]];
	struct sk_buff *frame = cb_frames(skb), *next;

	if (!frame)
		cb_fail(run, "a packet could not be split into frames");
	port->free_ns = max(port->free_ns, ktime_get_ns());
	for (; frame; frame = next) {
		next = frame->next;
		skb_mark_not_on_list(frame);
		port->free_ns += cb_wire_ns(frame->len);
		cb_cb(frame)->due_ns = port->free_ns + CB_WAY_NS;
		__skb_queue_tail(&peer->wire, frame);
		run->now.frames += port == cb_port[CB_SENDER];
	}
	if (port == cb_port[CB_SENDER]) {
		run->now.packets++;
		run->now.sent += skb->len - cb_headers(skb);
		run->again += cb_ndp_again(skb);
	}
	netdev_sent_queue(port->dev, skb->len);
	cb_cb(skb)->due_ns = port->free_ns;
	__skb_queue_tail(&port->sending, skb);
}

static netdev_tx_t cb_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct cb_port *port = netdev_priv(dev);
	enum cb_where where;

	if (!cb_now || skb->protocol != htons(ETH_P_IP)) {
		dev_consume_skb_any(skb);
		return NETDEV_TX_OK;
	}
	where = cb_enter(cb_now, CB_BENCH);
	cb_now->now.by_timer += where == CB_TIMER;
	cb_transmit(cb_now, port, skb);
	cb_enter(cb_now, where);
	return NETDEV_TX_OK;
}

static void cb_discard(void)
{
	unsigned int i;

	for (i = 0; i < CB_PORTS; i++) {
		struct cb_port *port = cb_port[i];

		__skb_queue_purge(&port->wire);
		__skb_queue_purge(&port->ready);
		__skb_queue_purge(&port->polled);
		__skb_queue_purge(&port->sending);
		__skb_queue_purge(&port->sent);
		netdev_reset_queue(port->dev);
	}
}

/* ---- interrupts ---- */

/* Build an skb as a driver does: copy the first bytes of the frame, and refer to the pages of the
 * rest.
 */
static struct sk_buff *cb_build(struct cb_port *port, const struct sk_buff *frame)
{
	u32 copied = min_t(u32, skb_headlen(frame), CB_COPY_BYTES);
	struct sk_buff *skb = napi_alloc_skb(&port->napi, CB_COPY_BYTES);
	unsigned int i;

	if (!skb)
		return NULL;
	skb_put_data(skb, frame->data, copied);
	for (i = 0; i < skb_shinfo(frame)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(frame)->frags[i];

		get_page(skb_frag_page(frag));
		skb_add_rx_frag(skb, i, skb_frag_page(frag), skb_frag_off(frag),
				skb_frag_size(frag),
				i ? 0 : roundup(frame->len, CB_PAGE_SHARE));
	}
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb->protocol = eth_type_trans(skb, port->dev);
	return skb;
}

/* Free what has been sent. */
static void cb_clean(struct cb_port *port, int budget)
{
	unsigned int packets = 0, bytes = 0;
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(&port->sent))) {
		packets++;
		bytes += skb->len;
		napi_consume_skb(skb, budget);
	}
	if (packets)
		netdev_completed_queue(port->dev, packets, bytes);
}

static int cb_poll(struct napi_struct *napi, int budget)
{
	struct cb_port *port = container_of(napi, struct cb_port, napi);
	bool sender = port == cb_port[CB_SENDER];
	struct sk_buff *frame, *skb;
	int work = 0;

	if (sender)
		cb_enter(cb_now, CB_DONE);
	cb_clean(port, budget);
	if (sender)
		cb_enter(cb_now, CB_ACK);
	while (work < budget && (frame = __skb_dequeue(&port->ready))) {
		skb = cb_build(port, frame);
		if (skb)
			napi_gro_receive(napi, skb);
		__skb_queue_tail(&port->polled, frame);
		work++;
	}
	if (work < budget)
		napi_complete_done(napi, work);
	return work;
}

/* When the device's next interrupt is due. */
static u64 cb_interrupt_ns(const struct cb_port *port)
{
	const struct sk_buff *frame = skb_peek(&port->wire);
	const struct sk_buff *skb = skb_peek(&port->sending);
	u64 ns = U64_MAX;

	if (frame)
		ns = cb_cb(frame)->due_ns;
	if (skb)
		ns = min(ns, cb_cb(skb)->due_ns);
	return max(ns, port->quiet_ns);
}

static u32 cb_move_due(struct sk_buff_head *from, struct sk_buff_head *to, u64 now_ns)
{
	struct sk_buff *skb;
	u32 moved = 0;

	while ((skb = skb_peek(from)) && cb_cb(skb)->due_ns <= now_ns) {
		__skb_unlink(skb, from);
		__skb_queue_tail(to, skb);
		moved++;
	}
	return moved;
}

static void cb_interrupt(struct cb_run *run, struct cb_port *port, u64 now_ns)
{
	bool sender = port == cb_port[CB_SENDER];
	u32 arrived;

	cb_move_due(&port->sending, &port->sent, now_ns);
	arrived = cb_move_due(&port->wire, &port->ready, now_ns);
	if (sender) {
		run->now.interrupts++;
		run->now.acks += arrived;
	} else {
		run->now.rx_interrupts++;
	}
	local_bh_disable();
	cb_enter(run, sender ? CB_ACK : CB_RECEIVE);
	napi_schedule(&port->napi);
	local_bh_enable();
	cb_enter(run, CB_BENCH);
	__skb_queue_purge(&port->polled);
	port->quiet_ns = now_ns + moderation_ns;
}

/* ---- applications ---- */

static void cb_write_space(struct sock *sk)
{
	struct cb_flow *flow = sk->sk_user_data;

	if (!flow || !sk_stream_is_writeable(sk) || !list_empty(&flow->writable))
		return;
	clear_bit(SOCK_NOSPACE, &sk->sk_socket->flags);
	list_add_tail(&flow->writable, &cb_now->writable);
}

static void cb_data_ready(struct sock *sk)
{
	struct cb_flow *flow = sk->sk_user_data;

	if (flow && list_empty(&flow->readable))
		list_add_tail(&flow->readable, &cb_now->readable);
}

/* Write until the socket has no room. The write takes no virtual time, because bottom halves are
 * disabled: see cb_ns().
 */
static void cb_write(struct cb_run *run, struct cb_flow *flow)
{
	struct kvec vec = { .iov_base = run->buffer, .iov_len = CB_WRITE_BYTES };
	int ret;

	list_del_init(&flow->writable);
	do {
		struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL };

		local_bh_disable();
		cb_enter(run, CB_WRITE);
		ret = kernel_sendmsg(flow->from, &msg, &vec, 1, vec.iov_len);
		local_bh_enable();
		cb_enter(run, CB_BENCH);
		run->now.writes++;
		run->now.written += max(ret, 0);
	} while (ret == vec.iov_len);
	if (ret < 0 && ret != -EAGAIN)
		cb_fail(run, "a write failed");
}

/* Read what has arrived. */
static void cb_read(struct cb_run *run, struct cb_flow *flow)
{
	struct kvec vec = { .iov_base = run->buffer, .iov_len = CB_READ_BYTES };
	struct msghdr msg = {};
	int ret;

	list_del_init(&flow->readable);
	local_bh_disable();
	cb_enter(run, CB_READ);
	ret = kernel_recvmsg(flow->to, &msg, &vec, 1, vec.iov_len, MSG_DONTWAIT);
	local_bh_enable();
	cb_enter(run, CB_BENCH);
	run->now.reads++;
	if (ret == 0 || (ret < 0 && ret != -EAGAIN))
		cb_fail(run, "a read failed");
	if (ret <= 0)
		return;
	run->now.read += ret;
	run->read_ns = cb_ns();
	if (ret == vec.iov_len && list_empty(&flow->readable))
		list_add_tail(&flow->readable, &run->readable);
}

static void cb_run_applications(struct cb_run *run)
{
	struct cb_flow *flow;

	while ((flow = list_first_entry_or_null(&run->readable, struct cb_flow, readable)))
		cb_read(run, flow);
	while ((flow = list_first_entry_or_null(&run->writable, struct cb_flow, writable)))
		cb_write(run, flow);
}

/* ---- the clock ---- */

/* Advance the clock to the next event, by at most CB_STEP_NS, and handle the event. */
static void cb_step(struct cb_run *run)
{
	u64 now_ns = cb_ns(), next_ns = now_ns + CB_STEP_NS;
	unsigned int i;

	for (i = 0; i < CB_PORTS; i++)
		next_ns = min(next_ns, cb_interrupt_ns(cb_port[i]));
	if (next_ns > now_ns) {
		cb_enter(run, CB_TIMER);
		ndelay(next_ns - now_ns);
		cb_enter(run, CB_BENCH);
		run->now.steps++;
	}
	now_ns = cb_ns();
	for (i = 0; i < CB_PORTS; i++)
		if (cb_interrupt_ns(cb_port[i]) <= now_ns)
			cb_interrupt(run, cb_port[i], now_ns);
	cb_run_applications(run);
	if (!(++run->steps % CB_BREATH))
		cond_resched();
}

/* ---- connections ---- */

static u64 cb_flow_Bps(void)
{
	return div_u64((u64)link_mbps * (1000000 / 8 / 100) * (share ?: 100), flows);
}

static int cb_protocol(void)
{
	return ndp ? IPPROTO_NDP : IPPROTO_TCP;
}

static int cb_listen(struct cb_run *run)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(CB_TCP_PORT),
		.sin_addr.s_addr = htonl(CB_RECEIVER_IP),
	};
	int err;

	err = sock_create_kern(dev_net(cb_port[CB_RECEIVER]->dev), PF_INET, SOCK_STREAM,
			       cb_protocol(), &run->listener);
	if (!err)
		err = kernel_bind(run->listener, (struct sockaddr *)&address, sizeof(address));
	if (!err)
		err = kernel_listen(run->listener, CB_FLOWS_MAX);
	return err;
}

/* Prepare an end of a connection. From here on, TCP or NDP calls the functions of the
 * application.
 */
static int cb_set_up(struct cb_flow *flow, struct socket *sock, bool sender)
{
	unsigned long Bps = cb_flow_Bps();
	u64 room = div_u64(Bps * (u64)CB_SNDBUF_NS, NSEC_PER_SEC) + CB_SNDBUF_MORE;
	struct sock *sk = sock->sk;
	int err = 0;

	if (sender && share && !ndp)
		err = sock_setsockopt(sock, SOL_SOCKET, SO_MAX_PACING_RATE, KERNEL_SOCKPTR(&Bps),
				      sizeof(Bps));
	sock_no_linger(sk);
	lock_sock(sk);
	sk->sk_allocation = GFP_ATOMIC;
	sk->sk_sndbuf = min_t(u64, room, CB_SNDBUF_MAX);
	sk->sk_rcvbuf = CB_RCVBUF;
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK;
	if (!ndp) {
		tcp_sk(sk)->window_clamp = CB_WINDOW;
		tcp_sk(sk)->rcv_ssthresh = CB_WINDOW;
	}
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = flow;
	if (sender)
		sk->sk_write_space = cb_write_space;
	else
		sk->sk_data_ready = cb_data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	release_sock(sk);
	return err;
}

static int cb_open_flow(struct cb_run *run, struct cb_flow *flow)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(CB_TCP_PORT),
		.sin_addr.s_addr = htonl(CB_RECEIVER_IP),
	};
	u64 end_ns = cb_ns() + CB_STALL_NS;
	int err;

	/* In the caller's namespace. Kernel sockets would not use the namespace's parameters of
	 * tcp_timely.
	 */
	err = sock_create(PF_INET, SOCK_STREAM, cb_protocol(), &flow->from);
	if (err)
		return err;
	if (!ndp)
		tcp_sock_set_nodelay(flow->from->sk);
	err = kernel_connect(flow->from, (struct sockaddr *)&address, sizeof(address), O_NONBLOCK);
	if (err && err != -EINPROGRESS)
		return err;
	do {
		cb_step(run);
		err = kernel_accept(run->listener, &flow->to, O_NONBLOCK);
	} while (err == -EAGAIN && cb_ns() < end_ns);
	if (!err)
		err = cb_set_up(flow, flow->from, true);
	if (!err)
		err = cb_set_up(flow, flow->to, false);
	return err;
}

static void cb_close(struct socket *sock)
{
	if (!sock)
		return;
	write_lock_bh(&sock->sk->sk_callback_lock);
	sock->sk->sk_user_data = NULL;
	write_unlock_bh(&sock->sk->sk_callback_lock);
	sock_release(sock);
}

static void cb_close_all(struct cb_run *run)
{
	unsigned int i;

	for (i = 0; run->flow && i < flows; i++) {
		cb_close(run->flow[i].from);
		cb_close(run->flow[i].to);
	}
	if (run->listener)
		sock_release(run->listener);
}

static int cb_open_all(struct cb_run *run)
{
	unsigned int i;
	int err = cb_listen(run);

	for (i = 0; i < flows && !err; i++)
		err = cb_open_flow(run, &run->flow[i]);
	if (err) {
		pr_err("cpu_bench: connection does not open: error %d\n", err);
		return err;
	}
	return 0;
}

/* ---- a run ---- */

static u32 cb_retransmissions(const struct cb_run *run)
{
	u32 sum = 0, i;

	if (ndp)
		return run->again;
	for (i = 0; i < flows; i++)
		sum += tcp_sk(run->flow[i].from->sk)->total_retrans;
	return sum;
}

static bool cb_goes_on(struct cb_run *run)
{
	if (cb_ns() - run->read_ns > CB_STALL_NS)
		cb_fail(run, "no data arrived");
	return !run->wrong;
}

static void cb_measure_chunk(struct cb_run *run, struct cb_chunk *chunk)
{
	u64 start_ns = cb_ns();

	memset(&run->now, 0, sizeof(run->now));
	cb_current = CB_BENCH;
	cb_since = bench_tsc();
	while (run->now.read < 1024ULL * chunk_kb && cb_goes_on(run))
		cb_step(run);
	cb_enter(run, CB_BENCH);
	chunk->counts = run->now;
	chunk->ns = cb_ns() - start_ns;
}

/* A part in which timers are counted: the tracepoint costs cycles. */
static int cb_measure_timers(struct cb_run *run)
{
	int err = tracepoint_probe_register(cb_tracepoint, cb_timer_expires, run);

	if (err)
		return err;
	cb_measure_chunk(run, &run->traced);
	tracepoint_probe_unregister(cb_tracepoint, cb_timer_expires, run);
	tracepoint_synchronize_unregister();
	return 0;
}

/* Applications start to write one after the other, in half of the time before the measurement. If
 * their writes coincided, all data would be written in few parts of the measurement.
 */
static void cb_warm(struct cb_run *run)
{
	u64 warm_ns = warm_ms * (u64)NSEC_PER_MSEC, start_ns = cb_ns();
	unsigned int started = 0;

	run->read_ns = start_ns;
	while (cb_ns() - start_ns < warm_ns && cb_goes_on(run)) {
		while (started < flows &&
		       cb_ns() - start_ns >= div_u64(warm_ns * started, 2 * flows))
			list_add_tail(&run->flow[started++].writable, &run->writable);
		cb_step(run);
	}
}

static int cb_measure(struct cb_run *run)
{
	unsigned int i;
	u32 before;
	int err;

	cb_warm(run);
	before = cb_retransmissions(run);
	err = cb_measure_timers(run);
	for (i = 0; i < chunks && !run->wrong && !err; i++)
		cb_measure_chunk(run, &run->chunk[i]);
	run->retransmitted = cb_retransmissions(run) - before;
	if (run->retransmitted && share)
		cb_fail(run, "packets were retransmitted");
	return err;
}

static int cb_prepare(struct cb_run *run)
{
	unsigned int i;

	if (!flows || flows > CB_FLOWS_MAX || !chunks || chunks > CB_CHUNKS_MAX || !chunk_kb ||
	    !link_mbps || share > 100)
		return -EINVAL;
	INIT_LIST_HEAD(&run->writable);
	INIT_LIST_HEAD(&run->readable);
	run->buffer = kvzalloc(CB_READ_BYTES, GFP_KERNEL);
	run->flow = kvcalloc(flows, sizeof(*run->flow), GFP_KERNEL);
	if (!run->flow || !run->buffer)
		return -ENOMEM;
	for (i = 0; i < flows; i++) {
		INIT_LIST_HEAD(&run->flow[i].writable);
		INIT_LIST_HEAD(&run->flow[i].readable);
	}
	return 0;
}

static void cb_free(struct cb_run *run)
{
	kvfree(run->buffer);
	kvfree(run->flow);
	kvfree(run);
}

static int cb_run(struct cb_run *run)
{
	int err = cb_prepare(run);

	if (err)
		return err;
	cb_current = CB_BENCH;
	cb_switches = bench_host_switches();
	cb_since = bench_tsc();
	err = cb_calibrate(run);
	if (err)
		return err;
	cb_now = run;
	err = cb_open_all(run);
	if (!err)
		err = cb_measure(run);
	cb_now = NULL;
	if (!err && run->wrong) {
		pr_err("cpu_bench: run is not valid: %s, step %llu\n", run->wrong, run->steps);
		err = -EIO;
	}
	cb_close_all(run);
	cb_discard();
	return err;
}

/* ---- control ---- */

static void cb_show_chunk(struct seq_file *m, const struct cb_chunk *chunk)
{
	const struct cb_counts *counts = &chunk->counts;
	unsigned int i;

	seq_printf(m, "{\"ns\": %llu, \"steps\": %llu, ", chunk->ns, counts->steps);
	seq_printf(m, "\"bytes_written\": %llu, \"bytes_sent\": %llu, \"bytes_read\": %llu, \"writes\": %llu, \"reads\": %llu, ",
		   counts->written, counts->sent, counts->read, counts->writes, counts->reads);
	seq_printf(m, "\"packets\": %llu, \"frames\": %llu, \"acks\": %llu, \"interrupts\": %llu, ",
		   counts->packets, counts->frames, counts->acks, counts->interrupts);
	seq_printf(m, "\"rx_interrupts\": %llu, \"by_timer\": %llu, \"timers\": %llu",
		   counts->rx_interrupts, counts->by_timer, counts->timers);
	for (i = 0; i < CB_WHERES; i++)
		seq_printf(m, ", \"%s\": [%llu, %llu, %llu]", cb_names[i], counts->cycles[i],
			   counts->pieces[i], counts->lost[i]);
	seq_puts(m, "}");
}

static int cb_show(struct seq_file *m, void *unused)
{
	const struct cb_run *run = m->private;
	unsigned int i;

	seq_printf(m, "{\"flows\": %u, \"link_mbps\": %u, \"share\": %u, \"moderation_ns\": %u, ",
		   flows, link_mbps, share, moderation_ns);
	seq_printf(m, "\"piece_cycles\": %llu, \"step_cycles\": %llu, \"retransmitted\": %u, \"traced\": ",
		   run->piece_cycles, run->step_cycles, run->retransmitted);
	cb_show_chunk(m, &run->traced);
	seq_puts(m, ", \"chunks\": [");
	for (i = 0; i < chunks; i++) {
		seq_puts(m, i ? ", " : "");
		cb_show_chunk(m, &run->chunk[i]);
	}
	seq_puts(m, "]}\n");
	return 0;
}

static int cb_open(struct inode *inode, struct file *file)
{
	struct cb_run *run = kvzalloc(sizeof(*run), GFP_KERNEL);
	int err;

	if (!run)
		return -ENOMEM;
	mutex_lock(&cb_mutex);
	err = cb_run(run);
	mutex_unlock(&cb_mutex);
	if (!err)
		err = single_open_size(file, cb_show, run, 1 << 16);
	if (err)
		cb_free(run);
	return err;
}

static int cb_release(struct inode *inode, struct file *file)
{
	cb_free(((struct seq_file *)file->private_data)->private);
	return single_release(inode, file);
}

static const struct file_operations cb_fops = {
	.owner		= THIS_MODULE,
	.open		= cb_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= cb_release,
};

/* ---- the devices ---- */

static int cb_dev_open(struct net_device *dev)
{
	struct cb_port *port = netdev_priv(dev);

	napi_enable(&port->napi);
	return 0;
}

static int cb_dev_stop(struct net_device *dev)
{
	struct cb_port *port = netdev_priv(dev);

	napi_disable(&port->napi);
	return 0;
}

static const struct net_device_ops cb_dev_ops = {
	.ndo_open		= cb_dev_open,
	.ndo_stop		= cb_dev_stop,
	.ndo_start_xmit		= cb_xmit,
};

static int cb_link(struct net_device *dev, struct ethtool_link_ksettings *link)
{
	link->base.speed = link_mbps;
	link->base.duplex = DUPLEX_FULL;
	return 0;
}

static const struct ethtool_ops cb_ethtool_ops = {
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= cb_link,
};

static void cb_dev_setup(struct net_device *dev)
{
	static const u8 address[ETH_ALEN] = { 2, 0, 0, 0, 0, 1 };

	ether_setup(dev);
	dev->netdev_ops = &cb_dev_ops;
	dev->ethtool_ops = &cb_ethtool_ops;
	/* Without ARP nobody asks for a MAC address, so both devices can have the same. */
	dev->flags |= IFF_NOARP;
	dev->flags &= ~IFF_MULTICAST;
	dev->max_mtu = CB_MTU_MAX;
	dev->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_ALL_TSO | NETIF_F_GRO;
	dev->hw_features = dev->features;
	eth_hw_addr_set(dev, address);
}

static int cb_make_port(unsigned int i)
{
	struct net_device *dev;
	struct cb_port *port;
	int err;

	dev = alloc_netdev(sizeof(*port), "cpu%d", NET_NAME_ENUM, cb_dev_setup);
	if (!dev)
		return -ENOMEM;
	SET_NETDEV_DEV(dev, &cb_hardware->dev);
	port = netdev_priv(dev);
	port->dev = dev;
	__skb_queue_head_init(&port->wire);
	__skb_queue_head_init(&port->ready);
	__skb_queue_head_init(&port->polled);
	__skb_queue_head_init(&port->sending);
	__skb_queue_head_init(&port->sent);
	netif_napi_add(dev, &port->napi, cb_poll);
	cb_port[i] = port;
	err = register_netdev(dev);
	if (err) {
		cb_port[i] = NULL;
		free_netdev(dev);
	}
	return err;
}

static void cb_delete(void)
{
	unsigned int i;

	debugfs_remove(cb_dir);
	for (i = 0; i < CB_PORTS && cb_port[i]; i++) {
		unregister_netdev(cb_port[i]->dev);
		free_netdev(cb_port[i]->dev);
	}
	platform_device_unregister(cb_hardware);
}

static int __init cb_init(void)
{
	unsigned int i;
	int err = 0;

	if (time_travel_mode != TT_MODE_INFCPU) {
		pr_err("cpu_bench: needs a virtual clock (time-travel=inf-cpu)\n");
		return -EOPNOTSUPP;
	}
	for_each_kernel_tracepoint(cb_find_tracepoint, NULL);
	if (!cb_tracepoint)
		return -ENOENT;
	cb_hardware = platform_device_register_simple(KBUILD_MODNAME, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(cb_hardware))
		return PTR_ERR(cb_hardware);
	for (i = 0; i < CB_PORTS && !err; i++)
		err = cb_make_port(i);
	if (err) {
		cb_delete();
		return err;
	}
	cb_dir = debugfs_create_dir("cpu_bench", NULL);
	debugfs_create_file("run", 0400, cb_dir, NULL, &cb_fops);
	return 0;
}

static void __exit cb_exit(void)
{
	cb_delete();
}

module_init(cb_init);
module_exit(cb_exit);

MODULE_DESCRIPTION("CPU cycles of senders and receivers, for the virtual-time lab");
MODULE_LICENSE("GPL");
