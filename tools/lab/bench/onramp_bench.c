// SPDX-License-Identifier: GPL-2.0
/*
 * onramp_bench: TSC cycles that a sender and a receiver of bulk TCP data need, for a
 * comparison with and without On-Ramp. onramp.sh builds and runs this module; README.md
 * describes the measurement.
 *
 * The module needs the lab's kernel: User Mode Linux in time-travel mode. There the
 * clock is virtual, so delays do not depend on the machine; the code runs natively, so
 * the TSC before and after a call shows the real cost of the call.
 *
 * The module provides two network devices, "ramp0" for the sender and "ramp1" for the
 * receiver, and the wire between them. onramp_cells.sh moves each device to a network
 * namespace and sets up qdiscs, keys and On-Ramp. The sockets are real; the module opens
 * them as programs would. Each connection in turn sends and receives one segment. Timed
 * are:
 *
 *	send	one write of one segment of 44 packets, down to the device
 *	receive	one or more polls of the receiver's device by a driver that copies
 *		headers and passes data in pages: packets up to TCP's receive queue, ACKs
 *		down to the device, and the work after the poll, which sends the OR-ACKs
 *	read	one read of the whole segment
 *	hear	the poll of the sender's device: ACKs, which free the data, and OR-ACKs
 *
 * Between send and receive the wire splits the segment into packets; this is not timed.
 * The delay of the path is below On-Ramp's threshold, so no flow is paused.
 *
 * After that the sender receives single packets, as in a flood: OR-ACKs that it had
 * already received (replayed), OR-ACKs with a wrong tag (forged), and for comparison UDP
 * packets of the same size to a socket that discards them.
 *
 * A read of the file onramp_bench/run in debugfs opens connections, makes a run with the
 * current module parameters, and returns the result as one JSON object. The read fails
 * with -EIO if a segment was not sent or received as expected; the kernel log has the
 * reason.
 */

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/sort.h>
#include <linux/tcp.h>
#include <linux/time-internal.h>
#include <linux/udp.h>
#include <linux/vmalloc.h>
#include <net/gso.h>
#include <net/tcp.h>
#include <net/udp.h>

#include <net/timely_onramp.h>

#include "native.h"

#define OB_SENDER_IP	0x0a000001	/* 10.0.0.1 */
#define OB_RECEIVER_IP	0x0a000002
#define OB_TCP_PORT	5001
#define OB_SINK_PORT	5002
#define OB_PACKETS	44	/* packets of a segment, 64 KB */
#define OB_BYTES_MAX	65536
#define OB_FLOWS_MAX	1000
/* Free packets in the congestion window. TCP may defer a segment if the window has room
 * for less than the largest skb.
 */
#define OB_ROOM_PACKETS	256
#define OB_BUFFER	(16 << 20)	/* bytes of a socket's buffers */
#define OB_WINDOW	(4 << 20)	/* bytes of the receive window */
/* Time between the turns of two connections, and one-way delay of the wire. */
#define OB_GAP_NS	1000
#define OB_WAY_NS	3000
/* First bytes of a packet, which a driver copies; all headers are among them. */
#define OB_COPY_BYTES	128
/* Bytes of a driver's page that each packet occupies, for the socket's memory accounting. */
#define OB_PAGE_SHARE	2048
/* Single packets of each kind in a round. */
#define OB_ROUND_PACKETS	8
/* Longer than the period of On-Ramp's limit of bad OR-ACKs. */
#define OB_PERIOD_MS	5
/* A call that takes longer may have been interrupted by the host; 10 us at 3 GHz. */
#define OB_LONG_CYCLES	30000
/* After this many turns the rest of the kernel may run. */
#define OB_BREATH	64
#define OB_WARM_TURNS	16	/* turns of each connection before the measurement */
#define OB_SAMPLES_MAX	(1 << 17)	/* samples of each kind; further ones are discarded */

static unsigned int flows = 1;
module_param(flows, uint, 0644);
MODULE_PARM_DESC(flows, "number of connections, 1 to 1000");

static bool gro;
module_param(gro, bool, 0644);
MODULE_PARM_DESC(gro, "pass received packets to GRO");

static unsigned int poll;
module_param(poll, uint, 0644);
MODULE_PARM_DESC(poll, "packets that each poll of the receiver's device finds, at most; 0: all packets of a segment");

static unsigned int segments = 2000;
module_param(segments, uint, 0644);
MODULE_PARM_DESC(segments, "segments to measure, at least 1");

static unsigned int rounds;
module_param(rounds, uint, 0644);
MODULE_PARM_DESC(rounds, "rounds of single packets after the segments; needs at least one OR-ACK; 0: none");

static unsigned int evict_kb;
module_param(evict_kb, uint, 0644);
MODULE_PARM_DESC(evict_kb, "memory to read before each timed interval, so that caches are cold, KB; 0: none");

/* The kinds of intervals that are timed. */
enum ob_what {
	OB_SEND,
	OB_RECEIVE,
	OB_AFTER,	/* part of OB_RECEIVE: work after the poll */
	OB_READ,
	OB_HEAR,
	OB_ACK,		/* part of OB_HEAR: a TCP packet */
	OB_ORACK,	/* part of OB_HEAR: an OR-ACK */
	OB_SINK,	/* a single packet to a UDP socket that does not belong to On-Ramp */
	OB_OLD,		/* a replayed OR-ACK */
	OB_FORGED,	/* an OR-ACK with a wrong tag */
	OB_WHATS,	/* their number */
};

static const char * const ob_names[OB_WHATS] = {
	[OB_SEND]	= "send",
	[OB_RECEIVE]	= "receive",
	[OB_AFTER]	= "after",
	[OB_READ]	= "read",
	[OB_HEAR]	= "hear",
	[OB_ACK]	= "ack",
	[OB_ORACK]	= "orack",
	[OB_SINK]	= "sink",
	[OB_OLD]	= "old",
	[OB_FORGED]	= "forged",
};

/**
 * struct ob_flow - a connection
 * @from: the sender's socket
 * @to: the receiver's socket
 */
struct ob_flow {
	struct socket *from;
	struct socket *to;
};

/**
 * struct ob_samples - intervals of one kind (enum ob_what)
 * @count: number of timed intervals
 * @interrupted: number of intervals not timed, because the host took the processor away
 * @cycles: array of the timed intervals' cycles
 */
struct ob_samples {
	u32 count;
	u32 interrupted;
	u32 *cycles;
};

/**
 * struct ob_run - the state and the result of a run
 * @flow: array of connections
 * @listener: TCP socket at which the receiver accepts connections
 * @sink: UDP socket of the sender that discards packets
 * @buffer: memory for the data that is sent and read
 * @turns: number of turns since the start
 * @measuring: true while samples are recorded
 * @tsc_cycles: cycles of reading the TSC, which each timed interval contains
 * @host_switches: the host's count of involuntary context switches, as last read
 * @heard: packets timed one by one during the current poll of the sender's device
 * @wrong: reason why the run is invalid; NULL: valid
 * @samples: timed intervals, by kind
 */
struct ob_run {
	struct ob_flow *flow;
	struct socket *listener;
	struct socket *sink;
	void *buffer;
	u64 turns;
	bool measuring;
	u64 tsc_cycles;
	long host_switches;
	u32 heard;
	const char *wrong;
	struct ob_samples samples[OB_WHATS];
};

/**
 * struct ob_port - a device, at one end of the wire
 * @napi: the device's NAPI instance
 * @dev: the device
 * @wire: skbs on the way to the device
 * @ready: packets that the next poll finds
 * @done: packets that were polled, to be freed after the measurement
 */
struct ob_port {
	struct napi_struct napi;
	struct net_device *dev;
	struct sk_buff_head wire;
	struct sk_buff_head ready;
	struct sk_buff_head done;
};

enum { OB_SENDER, OB_RECEIVER, OB_PORTS };

static struct ob_port *ob_port[OB_PORTS];
static struct dentry *ob_dir;
static DEFINE_MUTEX(ob_mutex);

/* The run that uses the wire; NULL: packets are delivered at once, for instance handshakes. */
static struct ob_run *ob_now;
/* TSC at the end of the last poll. */
static u64 ob_polled;
/* Memory that is read to empty the caches. */
static u8 *ob_evict;
/* An OR-ACK as it arrived at the sender, kept for replays. */
static struct sk_buff *ob_orack;

/* ---- timing ---- */

static int ob_compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

static void ob_fail(struct ob_run *run, const char *wrong)
{
	if (!run->wrong)
		run->wrong = wrong;
}

/* Did another process have the processor since the last call of this function? Long calls are timed
 * unless this is the reason.
 */
static bool ob_interrupted(struct ob_run *run)
{
	long before = run->host_switches;

	run->host_switches = bench_host_switches();
	return run->host_switches != before;
}

/* Record an interval. It contains @reads reads of the TSC, besides the one that every interval
 * contains.
 */
static void ob_add(struct ob_run *run, enum ob_what what, u64 cycles, u32 reads)
{
	struct ob_samples *samples = &run->samples[what];

	if (!run->measuring || samples->count == OB_SAMPLES_MAX)
		return;
	if (cycles > OB_LONG_CYCLES && ob_interrupted(run)) {
		samples->interrupted++;
		return;
	}
	cycles -= min(cycles, (reads + 1) * run->tsc_cycles);
	samples->cycles[samples->count++] = min_t(u64, cycles, U32_MAX);
}

/* ---- the wire ---- */

/* Is the packet, which is on the wire and begins with its Ethernet header, an OR-ACK? */
static bool ob_is_orack(const struct sk_buff *skb)
{
	const struct iphdr *ip = (const struct iphdr *)(skb->data + ETH_HLEN);

	return ip->protocol == IPPROTO_UDP &&
	       ((const struct udphdr *)(ip + 1))->dest == htons(TIMELY_ORACK_PORT);
}

/* Prepare the skb as the stack expects it from a driver. */
static void ob_arrive(struct sk_buff *skb, struct net_device *dev)
{
	skb_orphan(skb);
	skb_scrub_packet(skb, true);
	skb->protocol = eth_type_trans(skb, dev);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
}

static netdev_tx_t ob_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct ob_port *peer = ob_port[dev == ob_port[OB_SENDER]->dev];

	if (skb->protocol != htons(ETH_P_IP)) {
		dev_consume_skb_any(skb);
	} else if (ob_now) {
		skb_queue_tail(&peer->wire, skb);
	} else {
		ob_arrive(skb, peer->dev);
		netif_rx(skb);
	}
	return NETDEV_TX_OK;
}

/* Split a segment into packets as a NIC does. */
static void ob_split(struct ob_run *run, struct ob_port *port, struct sk_buff *skb)
{
	struct sk_buff *next;

	/* Tell the sender that its skb is done, as a NIC does when it has read the data. */
	skb_orphan(skb);
	if (skb_is_gso(skb)) {
		struct sk_buff *list = skb_gso_segment(skb, NETIF_F_SG | NETIF_F_HW_CSUM);

		consume_skb(skb);
		if (IS_ERR_OR_NULL(list)) {
			ob_fail(run, "a segment could not be split into packets");
			return;
		}
		skb = list;
	}
	for (; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		__skb_queue_tail(&port->ready, skb);
	}
}

/* Move all skbs from the wire to the packets that the next poll finds. */
static void ob_carry(struct ob_run *run, struct ob_port *port)
{
	struct sk_buff *skb;

	while ((skb = skb_dequeue(&port->wire)))
		ob_split(run, port, skb);
}

static void ob_discard(void)
{
	unsigned int i;

	for (i = 0; i < OB_PORTS; i++) {
		skb_queue_purge(&ob_port[i]->wire);
		__skb_queue_purge(&ob_port[i]->ready);
		__skb_queue_purge(&ob_port[i]->done);
	}
	kfree_skb(ob_orack);
	ob_orack = NULL;
}

/* ---- polls ---- */

/* Build an skb as a driver does: copy the first bytes of the frame, and refer to the pages of the
 * rest.
 */
static struct sk_buff *ob_build(struct ob_port *port, const struct sk_buff *frame)
{
	u32 copied = min_t(u32, skb_headlen(frame), OB_COPY_BYTES);
	struct sk_buff *skb = napi_alloc_skb(&port->napi, OB_COPY_BYTES);
	unsigned int i;

	if (!skb)
		return NULL;
	skb_put_data(skb, frame->data, copied);
	for (i = 0; i < skb_shinfo(frame)->nr_frags; i++) {
		const skb_frag_t *frag = &skb_shinfo(frame)->frags[i];

		get_page(skb_frag_page(frag));
		skb_add_rx_frag(skb, i, skb_frag_page(frag), skb_frag_off(frag),
				skb_frag_size(frag), i ? 0 : OB_PAGE_SHARE);
	}
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb->protocol = eth_type_trans(skb, port->dev);
	return skb;
}

static void ob_pass(struct ob_port *port, const struct sk_buff *frame)
{
	struct sk_buff *skb = ob_build(port, frame);

	if (!skb)
		return;
	if (gro)
		napi_gro_receive(&port->napi, skb);
	else
		netif_receive_skb(skb);
}

/* Process one packet in the sender's poll. */
static void ob_pass_timed(struct ob_run *run, struct ob_port *port, const struct sk_buff *frame)
{
	bool orack = ob_is_orack(frame);
	u64 start = bench_tsc();

	ob_pass(port, frame);
	ob_add(run, orack ? OB_ORACK : OB_ACK, bench_tsc() - start, 0);
	run->heard++;
}

static int ob_poll(struct napi_struct *napi, int budget)
{
	struct ob_port *port = container_of(napi, struct ob_port, napi);
	int work = 0, most = budget;
	struct sk_buff *skb;

	if (poll && port == ob_port[OB_RECEIVER])
		most = min_t(int, poll, budget - 1);
	while (work < most && (skb = __skb_dequeue(&port->ready))) {
		if (port == ob_port[OB_SENDER])
			ob_pass_timed(ob_now, port, skb);
		else
			ob_pass(port, skb);
		__skb_queue_tail(&port->done, skb);
		work++;
	}
	if (work < budget)
		napi_complete_done(napi, work);
	ob_polled = bench_tsc();
	return work;
}

/* Replace the contents of the caches. */
static void ob_cool(const struct ob_run *run)
{
	unsigned int i;

	if (!run->measuring)
		return;
	for (i = 0; i < evict_kb * 1024; i += SMP_CACHE_BYTES)
		READ_ONCE(ob_evict[i]);
}

/* Interrupt, poll, and the work that they leave for after the poll. Returns the cycles of all; sets
 * @after to the cycles after the poll.
 */
static u64 ob_interrupt(const struct ob_run *run, struct ob_port *port, u64 *after)
{
	u64 start, end;

	ob_cool(run);
	local_bh_disable();
	start = bench_tsc();
	napi_schedule(&port->napi);
	local_bh_enable();
	end = bench_tsc();
	__skb_queue_purge(&port->done);
	*after = end - ob_polled;
	return end - start;
}

/* ---- a connection's turn ---- */

static void ob_wait(u32 ns)
{
	local_bh_disable();
	ndelay(ns);
	local_bh_enable();
}

static u32 ob_bytes(const struct ob_flow *flow)
{
	return OB_PACKETS * tcp_sk(flow->from->sk)->mss_cache;
}

/* Send one segment now, whatever rate and window the congestion control has set. */
static void ob_send(struct ob_run *run, struct ob_flow *flow)
{
	struct kvec vec = { .iov_base = run->buffer, .iov_len = ob_bytes(flow) };
	struct tcp_sock *tp = tcp_sk(flow->from->sk);
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT };
	const struct sk_buff *skb;
	u64 start;
	int ret;

	WRITE_ONCE(flow->from->sk->sk_pacing_rate, ~0UL);
	tcp_snd_cwnd_set(tp, tcp_packets_in_flight(tp) + OB_ROOM_PACKETS);
	ob_cool(run);
	start = bench_tsc();
	ret = kernel_sendmsg(flow->from, &msg, &vec, 1, vec.iov_len);
	ob_add(run, OB_SEND, bench_tsc() - start, 0);
	skb = skb_peek(&ob_port[OB_RECEIVER]->wire);
	if (run->measuring && (ret != vec.iov_len || !skb ||
			       skb_shinfo(skb)->gso_segs != OB_PACKETS ||
			       skb_queue_len(&ob_port[OB_RECEIVER]->wire) != 1))
		ob_fail(run, "a segment did not leave at once as one skb");
}

static void ob_receive(struct ob_run *run)
{
	u64 cycles = 0, after = 0, more;
	u32 interrupts = 0;

	ob_carry(run, ob_port[OB_RECEIVER]);
	do {
		cycles += ob_interrupt(run, ob_port[OB_RECEIVER], &more);
		after += more;
		interrupts++;
	} while (!skb_queue_empty(&ob_port[OB_RECEIVER]->ready));
	ob_add(run, OB_RECEIVE, cycles, 2 * interrupts - 1);
	ob_add(run, OB_AFTER, after, interrupts - 1);
}

static void ob_read(struct ob_run *run, struct ob_flow *flow)
{
	struct kvec vec = { .iov_base = run->buffer, .iov_len = ob_bytes(flow) };
	struct msghdr msg = {};
	u64 start;
	int ret;

	ob_cool(run);
	start = bench_tsc();
	ret = kernel_recvmsg(flow->to, &msg, &vec, 1, vec.iov_len, MSG_DONTWAIT);
	ob_add(run, OB_READ, bench_tsc() - start, 0);
	if (run->measuring && ret != ob_bytes(flow))
		ob_fail(run, "a segment did not arrive completely");
}

/* Keep a copy of the first OR-ACK, for replays. */
static void ob_keep_orack(const struct sk_buff_head *ready)
{
	struct sk_buff *skb;

	skb_queue_walk(ready, skb) {
		if (!ob_is_orack(skb))
			continue;
		kfree_skb(ob_orack);
		ob_orack = skb_copy(skb, GFP_KERNEL);
		return;
	}
}

static void ob_hear(struct ob_run *run)
{
	struct ob_port *port = ob_port[OB_SENDER];
	u64 cycles, after;

	ob_carry(run, port);
	if (!ob_orack)
		ob_keep_orack(&port->ready);
	run->heard = 0;
	cycles = ob_interrupt(run, port, &after);
	ob_add(run, OB_HEAR, cycles, run->heard + 1);
}

static void ob_turn(struct ob_run *run)
{
	struct ob_flow *flow = &run->flow[run->turns++ % flows];

	ob_wait(OB_GAP_NS);
	ob_send(run, flow);
	ob_wait(OB_WAY_NS);
	ob_receive(run);
	ob_read(run, flow);
	ob_wait(OB_WAY_NS);
	ob_hear(run);
	if (!(run->turns % OB_BREATH))
		cond_resched();
}

/* ---- single packets ---- */

static void ob_sink_ready(struct sock *sk)
{
	struct sk_buff *skb;
	int err;

	while ((skb = skb_recv_udp(sk, MSG_DONTWAIT, &err)))
		consume_skb(skb);
}

/* A copy of the kept OR-ACK: addressed to the UDP socket (OB_SINK), unchanged (OB_OLD), or with a
 * changed tag (OB_FORGED).
 */
static struct sk_buff *ob_single(enum ob_what what)
{
	struct sk_buff *skb = skb_copy(ob_orack, GFP_ATOMIC);
	struct udphdr *uh;

	if (!skb)
		return NULL;
	uh = (struct udphdr *)(skb->data + ETH_HLEN + sizeof(struct iphdr));
	if (what == OB_SINK)
		uh->dest = htons(OB_SINK_PORT);
	else if (what != OB_OLD)
		((u8 *)(uh + 1))[TIMELY_ORACK_BYTES - 1] ^= 1;
	ob_arrive(skb, ob_port[OB_SENDER]->dev);
	return skb;
}

static void ob_give(struct ob_run *run, enum ob_what what)
{
	struct sk_buff *skb = ob_single(what);
	u64 start;

	if (!skb) {
		ob_fail(run, "no memory for a packet");
		return;
	}
	local_bh_disable();
	start = bench_tsc();
	netif_receive_skb(skb);
	ob_add(run, what, bench_tsc() - start, 0);
	local_bh_enable();
}

static void ob_give_all(struct ob_run *run, enum ob_what what)
{
	unsigned int i;

	for (i = 0; i < OB_ROUND_PACKETS; i++)
		ob_give(run, what);
}

/* Wait until On-Ramp counts bad OR-ACKs from 0 again. */
static void ob_wait_period(void)
{
	unsigned int i;

	for (i = 0; i < OB_PERIOD_MS; i++)
		ob_wait(NSEC_PER_MSEC);
}

static void ob_round(struct ob_run *run)
{
	ob_wait_period();
	ob_give_all(run, OB_SINK);
	ob_give_all(run, OB_OLD);
	ob_wait_period();
	ob_give_all(run, OB_FORGED);
	/* Wait, so that the limit of bad OR-ACKs does not drop OR-ACKs of the next round or run. */
	ob_wait_period();
	cond_resched();
}

/* ---- connections ---- */

static struct sockaddr_in ob_address(u32 ip, u16 port)
{
	return (struct sockaddr_in) {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(ip),
	};
}

static int ob_bind(unsigned int port, int type, u32 ip, u16 number, struct socket **sock)
{
	struct sockaddr_in address = ob_address(ip, number);
	int err;

	err = sock_create_kern(dev_net(ob_port[port]->dev), PF_INET, type, 0, sock);
	if (err)
		return err;
	err = kernel_bind(*sock, (struct sockaddr *)&address, sizeof(address));
	if (!err && type == SOCK_STREAM)
		err = kernel_listen(*sock, OB_FLOWS_MAX);
	return err;
}

static void ob_set_up(struct sock *sk)
{
	lock_sock(sk);
	sk->sk_sndbuf = OB_BUFFER;
	sk->sk_rcvbuf = OB_BUFFER;
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK | SOCK_RCVBUF_LOCK;
	release_sock(sk);
}

/* Keep the receive window below the size of the buffer: so the window does not shrink while data
 * wait to be read, and TCP sends an ACK for every second packet.
 */
static void ob_limit_window(struct sock *sk)
{
	lock_sock(sk);
	tcp_sk(sk)->window_clamp = OB_WINDOW;
	tcp_sk(sk)->rcv_ssthresh = OB_WINDOW;
	release_sock(sk);
}

static int ob_open_flow(struct ob_run *run, struct ob_flow *flow)
{
	struct sockaddr_in address = ob_address(OB_RECEIVER_IP, OB_TCP_PORT);
	int err;

	err = sock_create_kern(dev_net(ob_port[OB_SENDER]->dev), PF_INET, SOCK_STREAM,
			       IPPROTO_TCP, &flow->from);
	if (err)
		return err;
	sock_no_linger(flow->from->sk);
	tcp_sock_set_nodelay(flow->from->sk);
	err = kernel_connect(flow->from, (struct sockaddr *)&address, sizeof(address), 0);
	if (!err)
		err = kernel_accept(run->listener, &flow->to, O_NONBLOCK);
	if (err)
		return err;
	ob_set_up(flow->from->sk);
	ob_set_up(flow->to->sk);
	return 0;
}

static int ob_open_all(struct ob_run *run)
{
	unsigned int i;
	int err;

	err = ob_bind(OB_RECEIVER, SOCK_STREAM, OB_RECEIVER_IP, OB_TCP_PORT, &run->listener);
	if (!err)
		err = ob_bind(OB_SENDER, SOCK_DGRAM, OB_SENDER_IP, OB_SINK_PORT, &run->sink);
	if (err)
		return err;
	write_lock_bh(&run->sink->sk->sk_callback_lock);
	run->sink->sk->sk_data_ready = ob_sink_ready;
	write_unlock_bh(&run->sink->sk->sk_callback_lock);
	for (i = 0; i < flows && !err; i++)
		err = ob_open_flow(run, &run->flow[i]);
	return err;
}

static void ob_close(struct socket *sock)
{
	if (sock)
		sock_release(sock);
}

static void ob_close_all(struct ob_run *run)
{
	unsigned int i;

	for (i = 0; run->flow && i < flows; i++) {
		ob_close(run->flow[i].from);
		ob_close(run->flow[i].to);
	}
	ob_close(run->sink);
	ob_close(run->listener);
}

/* ---- a run ---- */

static void ob_measure(struct ob_run *run)
{
	unsigned int i;

	for (i = 0; i < OB_WARM_TURNS * flows && !run->wrong; i++) {
		ob_turn(run);
		ob_limit_window(run->flow[i % flows].to->sk);
	}
	run->measuring = true;
	for (i = 0; i < segments && !run->wrong; i++)
		ob_turn(run);
	if (rounds && !ob_orack)
		ob_fail(run, "there was no OR-ACK");
	for (i = 0; i < rounds && !run->wrong; i++)
		ob_round(run);
	run->measuring = false;
}

static int ob_alloc(struct ob_run *run)
{
	unsigned int i;

	run->flow = kvcalloc(flows, sizeof(*run->flow), GFP_KERNEL);
	run->buffer = kvzalloc(OB_BYTES_MAX, GFP_KERNEL);
	ob_evict = vmalloc(evict_kb * 1024 + 1);
	if (!run->flow || !run->buffer || !ob_evict)
		return -ENOMEM;
	/* Write to the memory, so that the host allocates its pages before the measurement. */
	memset(ob_evict, 1, evict_kb * 1024);
	for (i = 0; i < OB_WHATS; i++) {
		run->samples[i].cycles = vzalloc(OB_SAMPLES_MAX * sizeof(u32));
		if (!run->samples[i].cycles)
			return -ENOMEM;
	}
	return 0;
}

static void ob_free(struct ob_run *run)
{
	unsigned int i;

	for (i = 0; i < OB_WHATS; i++)
		vfree(run->samples[i].cycles);
	kvfree(run->buffer);
	kvfree(run->flow);
	kfree(run);
}

static int ob_run(struct ob_run *run)
{
	int err;

	if (!flows || flows > OB_FLOWS_MAX || !segments)
		return -EINVAL;
	err = ob_alloc(run);
	if (!err)
		err = ob_open_all(run);
	if (!err) {
		run->tsc_cycles = bench_calibrate();
		run->host_switches = bench_host_switches();
		ob_now = run;
		ob_measure(run);
		ob_now = NULL;
		if (run->wrong) {
			pr_err("onramp_bench: run is not valid: %s, turn %llu\n", run->wrong,
			       run->turns);
			err = -EIO;
		}
	}
	ob_close_all(run);
	ob_discard();
	vfree(ob_evict);
	ob_evict = NULL;
	return err;
}

/* ---- control ---- */

/* The mean of the middle half of the sorted samples: disturbed samples do not count. */
static u64 ob_middle(const struct ob_samples *samples)
{
	u32 first = samples->count / 4, n = samples->count - 2 * first, i;
	u64 sum = 0;

	for (i = first; i < first + n; i++)
		sum += samples->cycles[i];
	return n ? div_u64(sum, n) : 0;
}

static void ob_show_samples(struct seq_file *m, const char *name, struct ob_samples *samples)
{
	u32 n = samples->count;

	sort(samples->cycles, n, sizeof(u32), ob_compare, NULL);
	seq_printf(m, ", \"%s\": {\"count\": %u, \"interrupted\": %u, \"middle\": %llu, \"p10\": %u, \"p50\": %u, \"p90\": %u}",
		   name, n, samples->interrupted, ob_middle(samples),
		   n ? samples->cycles[n / 10] : 0, n ? samples->cycles[n / 2] : 0,
		   n ? samples->cycles[n - 1 - n / 10] : 0);
}

static int ob_show(struct seq_file *m, void *unused)
{
	struct ob_run *run = m->private;
	unsigned int i;

	seq_printf(m, "{\"flows\": %u, \"gro\": %u, \"segments\": %u, \"packets\": %u, \"tsc_cycles\": %llu",
		   flows, gro, segments, OB_PACKETS, run->tsc_cycles);
	for (i = 0; i < OB_WHATS; i++)
		ob_show_samples(m, ob_names[i], &run->samples[i]);
	seq_puts(m, "}\n");
	return 0;
}

static int ob_open(struct inode *inode, struct file *file)
{
	struct ob_run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int err;

	if (!run)
		return -ENOMEM;
	mutex_lock(&ob_mutex);
	err = ob_run(run);
	mutex_unlock(&ob_mutex);
	if (!err)
		err = single_open_size(file, ob_show, run, 1 << 14);
	if (err)
		ob_free(run);
	return err;
}

static int ob_release(struct inode *inode, struct file *file)
{
	ob_free(((struct seq_file *)file->private_data)->private);
	return single_release(inode, file);
}

static const struct file_operations ob_fops = {
	.owner		= THIS_MODULE,
	.open		= ob_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= ob_release,
};

/* ---- the devices ---- */

static int ob_dev_open(struct net_device *dev)
{
	struct ob_port *port = netdev_priv(dev);

	napi_enable(&port->napi);
	return 0;
}

static int ob_dev_stop(struct net_device *dev)
{
	struct ob_port *port = netdev_priv(dev);

	napi_disable(&port->napi);
	return 0;
}

static const struct net_device_ops ob_dev_ops = {
	.ndo_open		= ob_dev_open,
	.ndo_stop		= ob_dev_stop,
	.ndo_start_xmit		= ob_xmit,
};

static void ob_dev_setup(struct net_device *dev)
{
	static const u8 address[ETH_ALEN] = { 2, 0, 0, 0, 0, 1 };

	ether_setup(dev);
	dev->netdev_ops = &ob_dev_ops;
	/* Without ARP nobody asks for a MAC address, so both devices can have the same. */
	dev->flags |= IFF_NOARP;
	dev->flags &= ~IFF_MULTICAST;
	dev->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_ALL_TSO;
	dev->hw_features = dev->features;
	eth_hw_addr_set(dev, address);
}

static int ob_make_port(unsigned int i)
{
	struct net_device *dev;
	struct ob_port *port;
	int err;

	dev = alloc_netdev(sizeof(*port), "ramp%d", NET_NAME_ENUM, ob_dev_setup);
	if (!dev)
		return -ENOMEM;
	port = netdev_priv(dev);
	port->dev = dev;
	skb_queue_head_init(&port->wire);
	__skb_queue_head_init(&port->ready);
	__skb_queue_head_init(&port->done);
	netif_napi_add(dev, &port->napi, ob_poll);
	ob_port[i] = port;
	err = register_netdev(dev);
	if (err) {
		ob_port[i] = NULL;
		free_netdev(dev);
	}
	return err;
}

static void ob_delete(void)
{
	unsigned int i;

	debugfs_remove(ob_dir);
	for (i = 0; i < OB_PORTS && ob_port[i]; i++) {
		unregister_netdev(ob_port[i]->dev);
		free_netdev(ob_port[i]->dev);
	}
}

static int __init ob_init(void)
{
	unsigned int i;
	int err = 0;

	if (time_travel_mode != TT_MODE_INFCPU) {
		pr_err("onramp_bench: needs a virtual clock (time-travel=inf-cpu)\n");
		return -EOPNOTSUPP;
	}
	for (i = 0; i < OB_PORTS && !err; i++)
		err = ob_make_port(i);
	if (err) {
		ob_delete();
		return err;
	}
	ob_dir = debugfs_create_dir("onramp_bench", NULL);
	debugfs_create_file("run", 0400, ob_dir, NULL, &ob_fops);
	return 0;
}

static void __exit ob_exit(void)
{
	ob_delete();
}

module_init(ob_init);
module_exit(ob_exit);

MODULE_DESCRIPTION("Cost of On-Ramp, for the virtual-time lab");
MODULE_LICENSE("GPL");
