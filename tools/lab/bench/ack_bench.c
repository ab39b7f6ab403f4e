// SPDX-License-Identifier: GPL-2.0
/*
 * ack_bench: TSC cycles that TCP needs to process an ACK (tcp_v4_do_rcv() on
 * established sockets), for several congestion controls in the same run. ack.sh
 * builds and runs this module; README.md describes the measurement.
 *
 * The module needs the lab's kernel: User Mode Linux in time-travel mode. There the
 * clock is virtual, so RTTs do not depend on the machine; the code runs natively, so
 * the TSC before and after a call shows the real cost of the call.
 *
 * The module provides two network devices, "ack0" and "ack1", and plays the peers
 * behind them: it answers SYNs, discards data, and passes an ACK for the data to the
 * sending socket when the RTT is over. The sockets are real; the module opens them as
 * a program would. tc sets up the qdiscs of the devices.
 *
 * A lane is a congestion control, the connections that use it, a device, and a kind
 * of timestamps. One step serves all lanes:
 *
 *	move the clock by about gap_ns
 *	send one segment (one skb) in each lane, from its		not timed
 *		connections in turn
 *	process in each lane, in random order of the lanes, the		timed
 *		ACK of the segment that was sent depth steps before
 *
 * So an RTT is about depth * gap_ns, and other load of the machine affects all lanes
 * alike. The time between two steps rises and falls slowly and has a random part, so that
 * gradients are never zero. ACKs may carry the hardware timestamp of a NIC whose clock
 * has a different epoch and a drift.
 *
 * All congestion controls must get the same ACKs, whatever they decide. Therefore
 *  - a segment leaves at once: the module overrides the pacing rate and the congestion
 *    window while it sends, and restores them;
 *  - no data waits in a socket when an ACK arrives;
 *  - sockets never look limited by the application, and always look limited by the
 *    congestion window: reno and its relatives would not increase the window otherwise.
 *
 * A read of the file ack_bench/run in debugfs opens connections, makes a run with the
 * current module parameters, and returns the result as one JSON object. The read fails
 * with -EIO if an ACK was not processed as expected or a congestion control was not in
 * its steady state; the kernel log has the reason.
 */

#include <linux/bvec.h>
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/ethtool.h>
#include <linux/inet_diag.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/net_tstamp.h>
#include <linux/platform_device.h>
#include <linux/prandom.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/sort.h>
#include <linux/tcp.h>
#include <linux/time-internal.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>
#include <net/busy_poll.h>
#include <net/ip.h>
#include <net/tcp.h>

#include <net/timely_counters.h>

#include "native.h"

/* Peers are 10.64.0.0/10 behind ack0 and 10.128.0.0/10 behind ack1. */
#define AB_PEER_NET(dev, lane)	(((dev) ? 0x0a800000 : 0x0a400000) | ((lane) + 1) << 16)
#define AB_PEER_PORT	5001
#define AB_PEER_ISN	1
#define AB_SEGMENT_PACKETS	11	/* 16 KB, the size that ack_cells.sh gives timely */
#define AB_PART_PACKETS		6	/* an ACK that completes no segment */
/* Free packets in the congestion window. TCP may defer a segment if the window has room
 * for less than the largest skb.
 */
#define AB_ROOM_PACKETS		256
#define AB_DEPTH_MAX	128	/* limit of the parameter depth */
#define AB_LANES_MAX	12
#define AB_DEVS		2
#define AB_CHUNKS_MAX	32
#define AB_PAGE_ORDER	2	/* a page of this order holds a segment */
/* Period of the RTT's rise and fall, in round trips. */
#define AB_SWING_TRIPS	32
/* Largest deviation of the time between two steps, in 256ths of gap_ns: the slow rise and
 * fall, and the random part.
 */
#define AB_SWING	80
#define AB_JITTER	40
/* Time from an ACK's arrival at the NIC until the host handles it: the least, and the random
 * part.
 */
#define AB_HOST_MIN_NS	1000
#define AB_HOST_SPREAD_NS	10000
/* The NIC's clock differs from the host's by this epoch and this drift. */
#define AB_NIC_EPOCH_NS	1700000000000000000ULL
#define AB_NIC_DRIFT_PPM	50
/* An ACK that takes longer may have been interrupted by the host; 10 us at 3 GHz. */
#define AB_LONG_CYCLES	30000
/* After this many steps the rest of the kernel may run. */
#define AB_BREATH	256
/* BBR's cwnd_gain is 2 in PROBE_BW and in no other state. */
#define AB_BBR_STEADY	512

static char *lanes = "reno";
module_param(lanes, charp, 0644);
MODULE_PARM_DESC(lanes,
		 "lanes: CC[/STAMPS[/DEV]], separated by commas; STAMPS 0: no timestamps, 1: driver timestamps, 2: hardware timestamps too; DEV 0: ack0, 1: ack1");

static unsigned int flows = 1;
module_param(flows, uint, 0644);
MODULE_PARM_DESC(flows, "connections of each lane, 1 to 60000");

static unsigned int gap_ns = 13000;
module_param(gap_ns, uint, 0644);
MODULE_PARM_DESC(gap_ns, "mean time between two segments of a lane, ns");

static unsigned int depth = 8;
module_param(depth, uint, 0644);
MODULE_PARM_DESC(depth, "segments of each lane in flight, 1 to 127");

static unsigned int segment_acks = 1;
module_param(segment_acks, uint, 0644);
MODULE_PARM_DESC(segment_acks, "ACKs for each segment, 1 or 2");

static unsigned int acks = 50000;
module_param(acks, uint, 0644);
MODULE_PARM_DESC(acks, "segments of each lane to measure; at least one for each chunk");

static unsigned int warm_ms = 400;
module_param(warm_ms, uint, 0644);
MODULE_PARM_DESC(warm_ms, "duration of the warm-up before the measurement, ms");

static unsigned int chunks = 5;
module_param(chunks, uint, 0644);
MODULE_PARM_DESC(chunks, "parts into which the measurement is divided, 1 to 32");

static unsigned int evict_kb;
module_param(evict_kb, uint, 0644);
MODULE_PARM_DESC(evict_kb, "memory to read before each ACK, so that caches are cold, KB, at most 65536; 0: none");

static bool parts;
module_param(parts, bool, 0644);
MODULE_PARM_DESC(parts, "time the congestion control's operations and the functions on tracepoint tcp_probe too");

static bool require_hardware = true;
module_param(require_hardware, bool, 0644);
MODULE_PARM_DESC(require_hardware,
		 "fail a run in which timely does not use the hardware timestamps of lanes with STAMPS 2");

/* The kinds of intervals that are timed. */
enum ab_what {
	AB_WHOLE,	/* an ACK that completes a segment */
	AB_PART,	/* an ACK that completes no segment */
	AB_PROBE,	/* part of a completing ACK: functions on the tracepoint tcp_probe */
	AB_HOOKS,	/* part of a completing ACK: operations of the congestion control */
	AB_WHATS,	/* their number */
};

static const char * const ab_names[AB_WHATS] = {
	[AB_WHOLE]	= "whole",
	[AB_PART]	= "part",
	[AB_PROBE]	= "probe",
	[AB_HOOKS]	= "hooks",
};

/**
 * struct ab_stats - intervals of one kind (enum ab_what) in one part of the measurement
 * @timed: number of timed intervals
 * @interrupted: number of intervals not timed, because the host took the processor away
 * @sum: cycles of all timed intervals
 * @min: cycles of the shortest timed interval
 * @p10: tenth percentile of the timed intervals' cycles
 * @p50: median
 * @p90: ninetieth percentile
 * @p99: ninety-ninth percentile
 */
struct ab_stats {
	u32 timed;
	u32 interrupted;
	u64 sum;
	u32 min;
	u32 p10;
	u32 p50;
	u32 p90;
	u32 p99;
};

/**
 * struct ab_flow - a connection
 * @sock: the sender's socket; NULL: not open
 */
struct ab_flow {
	struct socket *sock;
};

/**
 * struct ab_segment - a segment in flight
 * @flow: the connection that sent it
 * @end_seq: sequence number after its last byte
 * @tsval: value of its TCP timestamp option
 * @sent_ns: departure time, by CLOCK_MONOTONIC
 */
struct ab_segment {
	struct ab_flow *flow;
	u32 end_seq;
	u32 tsval;
	u64 sent_ns;
};

/**
 * struct ab_lane - a congestion control, and the connections that use it
 * @cc: name of the congestion control
 * @stamps: timestamps of the ACKs: 0: none, 1: driver timestamps, 2: hardware timestamps too
 * @dev: index of the device in ab_dev
 * @index: number of the lane
 * @flow: array of the lane's connections
 * @segment: ring of segments in flight
 * @head: number of segments sent; modulo AB_DEPTH_MAX, the ring's slot of the next one
 * @tail: number of segments acknowledged; modulo AB_DEPTH_MAX, the slot of the oldest in flight
 * @sample: cycles of each timed interval of the current part of the measurement, by kind
 * @timed: number of samples, by kind
 * @moved: measured ACKs that changed the pacing rate or the congestion window
 * @acked: number of measured ACKs that completed a segment
 * @steady: connections whose congestion control was in its steady state at the end
 * @chunk: results of each part of the measurement, by kind
 */
struct ab_lane {
	char cc[TCP_CA_NAME_MAX];
	u8 stamps;
	u8 dev;
	u8 index;
	struct ab_flow *flow;
	struct ab_segment segment[AB_DEPTH_MAX];
	u64 head;
	u64 tail;
	u32 *sample[AB_WHATS];
	u32 timed[AB_WHATS];
	u64 moved;
	u64 acked;
	u32 steady;
	struct ab_stats chunk[AB_CHUNKS_MAX][AB_WHATS];
};

/**
 * struct ab_run - the state and the result of a run
 * @lane: array of lanes
 * @count: number of lanes
 * @order: order in which the lanes are served in this step
 * @steps: number of steps since the start
 * @chunk: current part of the measurement; -1: not measuring
 * @tsc_cycles: cycles of reading the TSC, which each timed interval contains
 * @host_switches: the host's count of involuntary context switches, as last read
 * @arrived_ns: when the last ACK reached each device
 * @rtt_min_ns: least RTT
 * @rtt_max_ns: greatest RTT
 * @hardware: RTTs for which timely used a hardware timestamp
 * @wrong: reason why the run is invalid; NULL: valid
 * @wrong_lane: lane in which @wrong happened
 * @random: generator of all random numbers
 */
struct ab_run {
	struct ab_lane *lane;
	unsigned int count;
	u8 order[AB_LANES_MAX];
	u64 steps;
	int chunk;
	u64 tsc_cycles;
	long host_switches;
	u64 arrived_ns[AB_DEVS];
	u64 rtt_min_ns;
	u64 rtt_max_ns;
	u64 hardware;
	const char *wrong;
	const struct ab_lane *wrong_lane;
	struct rnd_state random;
};

static struct net_device *ab_dev[AB_DEVS];
/* Parent of the devices: tcp_timely treats a device without a parent as virtual. */
static struct platform_device *ab_hardware;
/* The data of all segments. */
static struct page *ab_page;
/* Memory that is read to empty the caches. */
static u8 *ab_evict;
static struct dentry *ab_dir;
static DEFINE_MUTEX(ab_mutex);

/* The data skbs that the devices got since @count was set to 0: their number, and the TCP timestamp
 * and the number of packets of the last skb.
 */
static struct {
	u32 count;
	u32 tsval;
	u32 packets;
} ab_sent;

/* ---- timing ---- */

static int ab_compare(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* Did another process have the processor since the last call of this function? Long calls are timed
 * unless this is the reason.
 */
static bool ab_interrupted(struct ab_run *run)
{
	long before = run->host_switches;

	run->host_switches = bench_host_switches();
	return run->host_switches != before;
}

static void ab_add(const struct ab_run *run, struct ab_lane *lane,
		   enum ab_what what, u64 cycles)
{
	if (run->chunk < 0)
		return;
	cycles -= min(cycles, run->tsc_cycles);
	lane->sample[what][lane->timed[what]++] = min_t(u64, cycles, U32_MAX);
}

static void ab_sum_up(struct ab_stats *stats, u32 *sample, u32 n)
{
	unsigned int i;

	stats->timed = n;
	if (!n)
		return;
	for (i = 0; i < n; i++)
		stats->sum += sample[i];
	sort(sample, n, sizeof(*sample), ab_compare, NULL);
	stats->min = sample[0];
	stats->p10 = sample[n / 10];
	stats->p50 = sample[n / 2];
	stats->p90 = sample[n - 1 - n / 10];
	stats->p99 = sample[n - 1 - n / 100];
}

static void ab_close_chunk(struct ab_run *run)
{
	unsigned int i, what;

	for (i = 0; i < run->count; i++)
		for (what = 0; what < AB_WHATS; what++) {
			struct ab_lane *lane = &run->lane[i];

			ab_sum_up(&lane->chunk[run->chunk][what],
				  lane->sample[what], lane->timed[what]);
			lane->timed[what] = 0;
		}
}

/* ---- the parts of an ACK ---- */

/* Cycles of the parts of the ACK that is being processed. @start: when the first function on the
 * tracepoint ran; @calls: timed operations, each of which contains one read of the TSC.
 */
static struct {
	u64 start;
	u64 probe;
	u64 hooks;
	u32 calls;
} ab_part;

static struct tracepoint *ab_tracepoint;

/* The original operations of the congestion controls whose operations are timed. */
static struct {
	struct tcp_congestion_ops *ops;
	struct tcp_congestion_ops saved;
} ab_hooked[AB_LANES_MAX];

/* The original operations of the socket's congestion control. */
static const struct tcp_congestion_ops *ab_saved_of(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;
	unsigned int i = 0;

	while (ab_hooked[i].ops != ops)
		i++;
	return &ab_hooked[i].saved;
}

/* The first and the last function on the tracepoint. */
static void ab_probe_first(void *data, struct sock *sk, struct sk_buff *skb)
{
	ab_part.start = bench_tsc();
}

static void ab_probe_last(void *data, struct sock *sk, struct sk_buff *skb)
{
	ab_part.probe = bench_tsc() - ab_part.start;
}

static void ab_find_tracepoint(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "tcp_probe"))
		ab_tracepoint = tp;
}

static void ab_hook_done(u64 start)
{
	ab_part.hooks += bench_tsc() - start;
	ab_part.calls++;
}

static void ab_cong_control(struct sock *sk, u32 ack, int flag,
			    const struct rate_sample *rs)
{
	const struct tcp_congestion_ops *saved = ab_saved_of(sk);
	u64 start = bench_tsc();

	saved->cong_control(sk, ack, flag, rs);
	ab_hook_done(start);
}

static void ab_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	const struct tcp_congestion_ops *saved = ab_saved_of(sk);
	u64 start = bench_tsc();

	saved->cong_avoid(sk, ack, acked);
	ab_hook_done(start);
}

static void ab_in_ack_event(struct sock *sk, u32 flags)
{
	const struct tcp_congestion_ops *saved = ab_saved_of(sk);
	u64 start = bench_tsc();

	saved->in_ack_event(sk, flags);
	ab_hook_done(start);
}

static void ab_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct tcp_congestion_ops *saved = ab_saved_of(sk);
	u64 start = bench_tsc();

	saved->pkts_acked(sk, sample);
	ab_hook_done(start);
}

/* Replace the operations in place: the kernel knows a congestion control by the address of its
 * operations.
 */
static void ab_wrap_hooks(struct tcp_congestion_ops *ops)
{
	unsigned int i;

	for (i = 0; ab_hooked[i].ops; i++)
		if (ab_hooked[i].ops == ops)
			return;
	ab_hooked[i].ops = ops;
	ab_hooked[i].saved = *ops;
	if (ops->cong_control)
		ops->cong_control = ab_cong_control;
	if (ops->cong_avoid)
		ops->cong_avoid = ab_cong_avoid;
	if (ops->in_ack_event)
		ops->in_ack_event = ab_in_ack_event;
	if (ops->pkts_acked)
		ops->pkts_acked = ab_pkts_acked;
}

static void ab_unwrap_hooks(void)
{
	unsigned int i;

	for (i = 0; i < AB_LANES_MAX && ab_hooked[i].ops; i++) {
		struct tcp_congestion_ops *ops = ab_hooked[i].ops;

		ops->cong_control = ab_hooked[i].saved.cong_control;
		ops->cong_avoid = ab_hooked[i].saved.cong_avoid;
		ops->in_ack_event = ab_hooked[i].saved.in_ack_event;
		ops->pkts_acked = ab_hooked[i].saved.pkts_acked;
		ab_hooked[i].ops = NULL;
	}
}

static int ab_watch_parts(const struct ab_run *run)
{
	unsigned int i;
	int err;

	for_each_kernel_tracepoint(ab_find_tracepoint, NULL);
	if (!ab_tracepoint)
		return -ENOENT;
	err = tracepoint_probe_register_prio(ab_tracepoint, ab_probe_first, NULL,
					     INT_MAX);
	if (err)
		return err;
	err = tracepoint_probe_register_prio(ab_tracepoint, ab_probe_last, NULL, 0);
	if (err) {
		tracepoint_probe_unregister(ab_tracepoint, ab_probe_first, NULL);
		return err;
	}
	for (i = 0; i < run->count; i++)
		ab_wrap_hooks((struct tcp_congestion_ops *)
			      inet_csk(run->lane[i].flow->sock->sk)->icsk_ca_ops);
	return 0;
}

static void ab_unwatch_parts(void)
{
	ab_unwrap_hooks();
	tracepoint_probe_unregister(ab_tracepoint, ab_probe_first, NULL);
	tracepoint_probe_unregister(ab_tracepoint, ab_probe_last, NULL);
	tracepoint_synchronize_unregister();
}

static void ab_add_parts(const struct ab_run *run, struct ab_lane *lane)
{
	u64 reads = ab_part.calls * run->tsc_cycles;

	if (!parts)
		return;
	ab_add(run, lane, AB_PROBE, ab_part.probe);
	/* ab_add() subtracts one read of the TSC. */
	ab_add(run, lane, AB_HOOKS, ab_part.hooks - min(ab_part.hooks, reads) +
	       run->tsc_cycles);
}

/* ---- the peers ---- */

/* A packet from a peer. The caller fills in the TCP header. */
static struct sk_buff *ab_packet(struct net_device *dev, __be32 from, __be32 to,
				 unsigned int tcp_bytes)
{
	unsigned int bytes = sizeof(struct iphdr) + tcp_bytes;
	struct sk_buff *skb = alloc_skb(NET_SKB_PAD + bytes, GFP_ATOMIC);
	struct iphdr *ip;

	if (!skb)
		return NULL;
	skb_reserve(skb, NET_SKB_PAD);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*ip));
	ip = skb_put_zero(skb, bytes);
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tot_len = htons(bytes);
	ip->ttl = 64;
	ip->protocol = IPPROTO_TCP;
	ip->saddr = from;
	ip->daddr = to;
	ip_send_check(ip);
	tcp_hdr(skb)->doff = tcp_bytes / 4;
	tcp_hdr(skb)->ack = 1;
	skb->dev = dev;
	skb->skb_iif = dev->ifindex;
	skb->protocol = htons(ETH_P_IP);
	skb->pkt_type = PACKET_HOST;
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb_mark_napi_id(skb, netdev_priv(dev));
	return skb;
}

static u32 ab_ms(void)
{
	return div_u64(ktime_get_ns(), NSEC_PER_MSEC);
}

/* MSS, SACK permitted, timestamps, no operation, window scale: the order in which Linux writes
 * them, so the sender's timestamp is at a known place of @syn.
 */
static void ab_write_syn_options(struct tcphdr *tcp, const struct tcphdr *syn)
{
	__be32 *option = (__be32 *)(tcp + 1);

	option[0] = htonl(TCPOPT_MSS << 24 | TCPOLEN_MSS << 16 | 1460);
	option[1] = htonl(TCPOPT_SACK_PERM << 24 | TCPOLEN_SACK_PERM << 16 |
			  TCPOPT_TIMESTAMP << 8 | TCPOLEN_TIMESTAMP);
	option[2] = htonl(ab_ms());
	option[3] = ((const __be32 *)(syn + 1))[2];
	option[4] = htonl(TCPOPT_NOP << 24 | TCPOPT_WINDOW << 16 |
			  TCPOLEN_WINDOW << 8 | 7);
}

static void ab_answer_syn(const struct sk_buff *syn)
{
	const struct tcphdr *theirs = tcp_hdr(syn);
	struct sk_buff *skb = ab_packet(syn->dev, ip_hdr(syn)->daddr,
					ip_hdr(syn)->saddr,
					sizeof(struct tcphdr) + 20);
	struct tcphdr *tcp;

	if (!skb)
		return;
	tcp = tcp_hdr(skb);
	tcp->source = theirs->dest;
	tcp->dest = theirs->source;
	tcp->seq = htonl(AB_PEER_ISN);
	tcp->ack_seq = htonl(ntohl(theirs->seq) + 1);
	tcp->syn = 1;
	/* Accept ECN if the sender asks for it, as dctcp does. */
	tcp->ece = theirs->ece && theirs->cwr;
	tcp->window = htons(65535);
	ab_write_syn_options(tcp, theirs);
	netif_rx(skb);
}

static netdev_tx_t ab_xmit(struct sk_buff *skb, struct net_device *dev)
{
	const struct tcphdr *tcp = tcp_hdr(skb);

	if (skb->protocol != htons(ETH_P_IP) || ip_hdr(skb)->protocol != IPPROTO_TCP)
		goto out;
	if (tcp->syn)
		ab_answer_syn(skb);
	if (skb->len > skb_tcp_all_headers(skb)) {
		ab_sent.count++;
		ab_sent.packets = skb_shinfo(skb)->gso_segs ?: 1;
		/* The timestamp option: two no-operations, kind, length, and then the value. */
		ab_sent.tsval = ntohl(((const __be32 *)(tcp + 1))[1]);
	}
out:
	dev_consume_skb_any(skb);
	return NETDEV_TX_OK;
}

/* ---- segments and ACKs ---- */

/* Record the first reason why the run is invalid. */
static void ab_fail(struct ab_run *run, const struct ab_lane *lane,
		    const char *wrong)
{
	if (run->wrong)
		return;
	run->wrong = wrong;
	run->wrong_lane = lane;
}

/* Send one segment now, whatever rate and window the congestion control has set. */
static void ab_transmit(struct ab_run *run, const struct ab_lane *lane,
			struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	unsigned long rate_Bps = READ_ONCE(sk->sk_pacing_rate);
	u32 cwnd = tcp_snd_cwnd(tp), bytes = AB_SEGMENT_PACKETS * tp->mss_cache;
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT | MSG_SPLICE_PAGES };
	struct bio_vec vec;

	bvec_set_page(&vec, ab_page, bytes, 0);
	iov_iter_bvec(&msg.msg_iter, ITER_SOURCE, &vec, 1, bytes);
	WRITE_ONCE(sk->sk_pacing_rate, ~0UL);
	tcp_snd_cwnd_set(tp, tcp_packets_in_flight(tp) + AB_ROOM_PACKETS);
	ab_sent.count = 0;
	if (tcp_sendmsg_locked(sk, &msg, bytes) != bytes)
		ab_fail(run, lane, "a socket refused data");
	else if (ab_sent.count != 1 || ab_sent.packets != AB_SEGMENT_PACKETS)
		ab_fail(run, lane, "a segment did not leave at once as one skb");
	tcp_snd_cwnd_set(tp, cwnd);
	WRITE_ONCE(sk->sk_pacing_rate, rate_Bps);
	tp->is_cwnd_limited = true;
}

static void ab_send(struct ab_run *run, struct ab_lane *lane)
{
	struct ab_flow *flow = &lane->flow[lane->head % flows];
	struct ab_segment *segment = &lane->segment[lane->head++ % AB_DEPTH_MAX];
	struct sock *sk = flow->sock->sk;

	lock_sock(sk);
	local_bh_disable();
	ab_transmit(run, lane, sk);
	*segment = (struct ab_segment) {
		.flow = flow,
		.end_seq = tcp_sk(sk)->snd_nxt,
		.tsval = ab_sent.tsval,
		.sent_ns = ktime_get_ns(),
	};
	release_sock(sk);
	local_bh_enable();
}

/* The hardware timestamp of an ACK that the host handles at @now_ns. ACKs arrive in order. */
static u64 ab_nic_ns(struct ab_run *run, u8 dev, u64 now_ns)
{
	u64 arrived_ns = now_ns - AB_HOST_MIN_NS -
		prandom_u32_state(&run->random) % AB_HOST_SPREAD_NS;

	arrived_ns = max(run->arrived_ns[dev] + 1, arrived_ns);
	run->arrived_ns[dev] = arrived_ns;
	return AB_NIC_EPOCH_NS + arrived_ns +
	       div_u64(arrived_ns * AB_NIC_DRIFT_PPM, 1000000);
}

static void ab_write_ack(struct tcphdr *tcp, const struct ab_segment *segment,
			 u32 ack_seq)
{
	__be32 *option = (__be32 *)(tcp + 1);

	tcp->source = htons(AB_PEER_PORT);
	tcp->dest = inet_sk(segment->flow->sock->sk)->inet_sport;
	tcp->seq = htonl(AB_PEER_ISN + 1);
	tcp->ack_seq = htonl(ack_seq);
	tcp->window = htons(65535);
	option[0] = htonl(TCPOPT_NOP << 24 | TCPOPT_NOP << 16 |
			  TCPOPT_TIMESTAMP << 8 | TCPOLEN_TIMESTAMP);
	option[1] = htonl(ab_ms());
	option[2] = htonl(segment->tsval);
}

/* Prepare the skb as tcp_v4_rcv() does before it calls tcp_v4_do_rcv(). */
static void ab_prepare(struct sk_buff *skb)
{
	const struct tcphdr *tcp = skb_pull(skb, sizeof(struct iphdr));
	struct tcp_skb_cb *cb = TCP_SKB_CB(skb);

	cb->seq = ntohl(tcp->seq);
	cb->end_seq = cb->seq;
	cb->ack_seq = ntohl(tcp->ack_seq);
	cb->tcp_flags = tcp_flag_byte(tcp);
	cb->has_rxtstamp = skb->tstamp || skb_hwtstamps(skb)->hwtstamp;
	skb->dev = NULL;
}

static struct sk_buff *ab_ack(struct ab_run *run, const struct ab_lane *lane,
			      const struct ab_segment *segment, u32 ack_seq)
{
	const struct inet_sock *inet = inet_sk(segment->flow->sock->sk);
	struct sk_buff *skb = ab_packet(ab_dev[lane->dev], inet->inet_daddr,
					inet->inet_saddr,
					sizeof(struct tcphdr) +
					TCPOLEN_TSTAMP_ALIGNED);

	if (!skb)
		return NULL;
	ab_write_ack(tcp_hdr(skb), segment, ack_seq);
	if (lane->stamps)
		skb->tstamp = ktime_get_real();
	if (lane->stamps > 1)
		skb_hwtstamps(skb)->hwtstamp =
			ns_to_ktime(ab_nic_ns(run, lane->dev, ktime_get_ns()));
	ab_prepare(skb);
	return skb;
}

/* Replace the contents of the caches. */
static void ab_cool(void)
{
	unsigned int i;

	for (i = 0; i < evict_kb * 1024; i += SMP_CACHE_BYTES)
		READ_ONCE(ab_evict[i]);
}

/* Process the ACK as tcp_v4_rcv() would, with BH off. */
static void ab_receive(struct ab_run *run, struct ab_lane *lane,
		       const struct ab_segment *segment, u32 ack_seq,
		       enum ab_what what)
{
	struct sk_buff *skb = ab_ack(run, lane, segment, ack_seq);
	struct sock *sk = segment->flow->sock->sk;
	u64 start, cycles;

	if (!skb) {
		ab_fail(run, lane, "no memory for an ACK");
		return;
	}
	ab_cool();
	memset(&ab_part, 0, sizeof(ab_part));
	rcu_read_lock();
	bh_lock_sock(sk);
	start = bench_tsc();
	tcp_v4_do_rcv(sk, skb);
	cycles = bench_tsc() - start;
	bh_unlock_sock(sk);
	rcu_read_unlock();
	if (cycles > AB_LONG_CYCLES && ab_interrupted(run)) {
		if (run->chunk >= 0)
			lane->chunk[run->chunk][what].interrupted++;
		return;
	}
	ab_add(run, lane, what, cycles);
	if (what == AB_WHOLE)
		ab_add_parts(run, lane);
}

static void ab_check(struct ab_run *run, const struct ab_lane *lane,
		     const struct sock *sk, u32 ack_seq)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tp->snd_una != ack_seq)
		ab_fail(run, lane, "an ACK did not advance snd_una");
	else if (tp->total_retrans || inet_csk(sk)->icsk_ca_state != TCP_CA_Open)
		ab_fail(run, lane, "a connection assumed a loss");
	else if (tp->app_limited)
		ab_fail(run, lane, "a connection is app-limited");
}

static void ab_acknowledge_part(struct ab_run *run, struct ab_lane *lane)
{
	const struct ab_segment *segment =
		&lane->segment[lane->tail % AB_DEPTH_MAX];
	const struct tcp_sock *tp = tcp_sk(segment->flow->sock->sk);

	ab_receive(run, lane, segment,
		   tp->snd_una + AB_PART_PACKETS * tp->mss_cache, AB_PART);
}

static void ab_acknowledge(struct ab_run *run, struct ab_lane *lane)
{
	const struct ab_segment *segment =
		&lane->segment[lane->tail++ % AB_DEPTH_MAX];
	struct sock *sk = segment->flow->sock->sk;
	u64 rtt_ns = ktime_get_ns() - segment->sent_ns;
	unsigned long rate_Bps = READ_ONCE(sk->sk_pacing_rate);
	u32 cwnd = tcp_snd_cwnd(tcp_sk(sk));

	ab_receive(run, lane, segment, segment->end_seq, AB_WHOLE);
	ab_check(run, lane, sk, segment->end_seq);
	if (run->chunk < 0)
		return;
	lane->acked++;
	lane->moved += rate_Bps != READ_ONCE(sk->sk_pacing_rate) ||
		       cwnd != tcp_snd_cwnd(tcp_sk(sk));
	run->rtt_min_ns = min(run->rtt_min_ns, rtt_ns);
	run->rtt_max_ns = max(run->rtt_max_ns, rtt_ns);
}

/* ---- a run ---- */

/* Time until the next step: a triangle wave, and a random part. */
static u32 ab_gap_ns(struct ab_run *run)
{
	u32 period = AB_SWING_TRIPS * depth;
	u32 phase = (u32)run->steps % period;
	u32 up = min(phase, period - phase);	/* 0 to period / 2 and back */
	u32 scale = 256 - AB_SWING + 4 * AB_SWING * up / period;

	scale += prandom_u32_state(&run->random) % (2 * AB_JITTER);
	scale -= AB_JITTER;
	return (u64)gap_ns * scale >> 8;
}

/* Shuffle the lanes, so that no lane always follows the same other lane. */
static void ab_shuffle(struct ab_run *run)
{
	unsigned int i, j;

	for (i = run->count - 1; i; i--) {
		j = prandom_u32_state(&run->random) % (i + 1);
		swap(run->order[i], run->order[j]);
	}
}

static void ab_each(struct ab_run *run,
		    void (*what)(struct ab_run *run, struct ab_lane *lane))
{
	unsigned int i;

	ab_shuffle(run);
	for (i = 0; i < run->count; i++)
		what(run, &run->lane[run->order[i]]);
}

static void ab_step(struct ab_run *run)
{
	local_bh_disable();
	ndelay(ab_gap_ns(run));
	local_bh_enable();
	ab_each(run, ab_send);
	if (++run->steps > depth) {
		local_bh_disable();
		if (segment_acks > 1) {
			ab_each(run, ab_acknowledge_part);
			ndelay(gap_ns / 4);
		}
		ab_each(run, ab_acknowledge);
		local_bh_enable();
	}
	/* Let the rest of the kernel run, above all RCU. */
	if (!(run->steps % AB_BREATH))
		cond_resched();
}

/* tcp_timely's counter of RTTs with hardware timestamps, over all connections; 0 if tcp_timely is
 * not loaded.
 */
static u64 ab_hardware_rtts(void)
{
	u64 (*counter)(const struct net *net, enum timely_rtt_result index);
	u64 sum;

	counter = symbol_get(timely_rtt_counter);
	if (!counter)
		return 0;
	sum = counter(&init_net, TIMELY_RTT_hardware);
	symbol_put(timely_rtt_counter);
	return sum;
}

/* Check that lanes with hardware timestamps use them for at least 19 of 20 ACKs. */
static void ab_check_hardware(struct ab_run *run, u64 before)
{
	u64 expected = 0;
	unsigned int i;

	run->hardware = ab_hardware_rtts() - before;
	for (i = 0; i < run->count; i++)
		if (run->lane[i].stamps > 1 && !strcmp(run->lane[i].cc, "timely"))
			expected += run->lane[i].acked;
	if (require_hardware && run->hardware < expected - expected / 20)
		ab_fail(run, &run->lane[0], "hardware timestamps are not used");
}

static int ab_measure(struct ab_run *run)
{
	u64 warm_until_ns = ktime_get_ns() + warm_ms * (u64)NSEC_PER_MSEC;
	u64 hardware;
	unsigned int i, n;

	/* Serve each connection at least twice. */
	for (n = 0; !run->wrong && (n < 2 * flows + depth ||
				    ktime_get_ns() < warm_until_ns); n++)
		ab_step(run);
	hardware = ab_hardware_rtts();
	for (i = 0; i < chunks && !run->wrong; i++) {
		run->chunk = i;
		for (n = 0; n < acks / chunks && !run->wrong; n++)
			ab_step(run);
		ab_close_chunk(run);
	}
	run->chunk = -1;
	if (!run->wrong)
		ab_check_hardware(run, hardware);
	return run->wrong ? -EIO : 0;
}

/* Acknowledge all segments in flight. */
static void ab_acknowledge_rest(struct ab_run *run)
{
	local_bh_disable();
	while (run->lane[0].tail < run->lane[0].head)
		ab_each(run, ab_acknowledge);
	local_bh_enable();
}

/* BBR must be in PROBE_BW; it reports its state. Every state of other congestion controls is
 * accepted.
 */
static bool ab_is_steady(struct sock *sk)
{
	const struct tcp_congestion_ops *ops = inet_csk(sk)->icsk_ca_ops;
	union tcp_cc_info info;
	int attribute = 0;

	if (!ops->get_info ||
	    !ops->get_info(sk, 1 << (INET_DIAG_BBRINFO - 1), &attribute, &info) ||
	    attribute != INET_DIAG_BBRINFO)
		return true;
	return info.bbr.bbr_cwnd_gain == AB_BBR_STEADY;
}

static void ab_count_steady(struct ab_run *run, struct ab_lane *lane)
{
	unsigned int i;

	for (i = 0; i < flows; i++)
		lane->steady += ab_is_steady(lane->flow[i].sock->sk);
	/* One connection in ten may be in another state, as PROBE_RTT. */
	if (lane->steady < flows - flows / 10)
		ab_fail(run, lane, "the congestion control has not settled");
}

static int ab_run_lanes(struct ab_run *run)
{
	int err = parts ? ab_watch_parts(run) : 0;

	if (err)
		return err;
	run->tsc_cycles = bench_calibrate();
	err = ab_measure(run);
	if (parts)
		ab_unwatch_parts();
	if (err)
		return err;
	ab_each(run, ab_count_steady);
	ab_acknowledge_rest(run);
	return run->wrong ? -EIO : 0;
}

/* ---- connections ---- */

static int ab_choose(struct socket *sock, char *cc)
{
	return sock->ops->setsockopt(sock, SOL_TCP, TCP_CONGESTION,
				     KERNEL_SOCKPTR(cc), strlen(cc));
}

static void ab_set_up(struct sock *sk)
{
	lock_sock(sk);
	sk->sk_sndbuf = 16 << 20;
	sk->sk_userlocks |= SOCK_SNDBUF_LOCK;
	/* Tell TCP that the qdisc paces, as fq does, so that TCP sets no timer. */
	sk->sk_pacing_status = SK_PACING_FQ;
	/* The NIC always has data: the connection never looks app-limited. */
	refcount_add(SKB_TRUESIZE(1), &sk->sk_wmem_alloc);
	/* Start in congestion avoidance. */
	tcp_sk(sk)->snd_ssthresh = 2 * AB_SEGMENT_PACKETS;
	release_sock(sk);
}

static int ab_open_flow(struct ab_lane *lane, unsigned int i)
{
	struct sockaddr_in peer = {
		.sin_family = AF_INET,
		.sin_port = htons(AB_PEER_PORT),
		.sin_addr.s_addr = htonl(AB_PEER_NET(lane->dev, lane->index) + 1 + i),
	};
	struct socket *sock;
	int err;

	err = sock_create_kern(&init_net, PF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return err;
	sock_no_linger(sock->sk);
	tcp_sock_set_nodelay(sock->sk);
	sock->sk->sk_allocation = GFP_ATOMIC;
	err = ab_choose(sock, lane->cc);
	if (!err)
		err = kernel_connect(sock, (struct sockaddr *)&peer, sizeof(peer), 0);
	if (err) {
		sock_release(sock);
		return err;
	}
	ab_set_up(sock->sk);
	lane->flow[i].sock = sock;
	return 0;
}

static void ab_close_flow(struct ab_flow *flow)
{
	struct socket *sock = flow->sock;

	if (!sock)
		return;
	WARN_ON(refcount_sub_and_test(SKB_TRUESIZE(1), &sock->sk->sk_wmem_alloc));
	sock_release(sock);
}

/* The window of a SYN is not scaled; this ACK opens the peer's window. */
static void ab_open_window(struct ab_run *run, struct ab_lane *lane,
			   struct ab_flow *flow)
{
	struct tcp_sock *tp = tcp_sk(flow->sock->sk);
	const struct ab_segment none = {
		.flow = flow,
		.tsval = tcp_time_stamp_ts(tp),
	};

	local_bh_disable();
	ab_receive(run, lane, &none, tp->snd_una, AB_PART);
	local_bh_enable();
}

static int ab_open_flows(struct ab_run *run, struct ab_lane *lane)
{
	unsigned int i;
	int err;

	for (i = 0; i < flows; i++) {
		err = ab_open_flow(lane, i);
		if (err) {
			pr_err("ack_bench: connection %u of %s does not open: error %d\n", i,
			       lane->cc, err);
			return err;
		}
		ab_open_window(run, lane, &lane->flow[i]);
	}
	return 0;
}

static int ab_alloc(struct ab_lane *lane)
{
	unsigned int what;

	lane->flow = kvcalloc(flows, sizeof(*lane->flow), GFP_KERNEL);
	if (!lane->flow)
		return -ENOMEM;
	for (what = 0; what < AB_WHATS; what++) {
		u32 n = acks / chunks;

		lane->sample[what] = kvcalloc(n, sizeof(u32), GFP_KERNEL);
		if (!lane->sample[what])
			return -ENOMEM;
		/* Touch the memory now, so that page faults do not happen during an ACK. */
		memset(lane->sample[what], 1, n * sizeof(u32));
	}
	return 0;
}

static void ab_free(struct ab_run *run)
{
	unsigned int i, j;

	for (i = 0; i < run->count; i++) {
		struct ab_lane *lane = &run->lane[i];

		for (j = 0; lane->flow && j < flows; j++)
			ab_close_flow(&lane->flow[j]);
		for (j = 0; j < AB_WHATS; j++) {
			kvfree(lane->sample[j]);
			lane->sample[j] = NULL;
		}
		kvfree(lane->flow);
		lane->flow = NULL;
	}
	vfree(ab_evict);
	ab_evict = NULL;
}

/* Parse CC[/STAMPS[/DEV]]. */
static int ab_parse_lane(struct ab_lane *lane, char *text)
{
	char *cc = strsep(&text, "/");
	char *stamps = strsep(&text, "/");

	if (strscpy(lane->cc, cc, sizeof(lane->cc)) < 1)
		return -EINVAL;
	if (stamps && (kstrtou8(stamps, 10, &lane->stamps) || lane->stamps > 2))
		return -EINVAL;
	if (text && (kstrtou8(text, 10, &lane->dev) || lane->dev >= AB_DEVS))
		return -EINVAL;
	return 0;
}

static int ab_parse_lanes(struct ab_run *run)
{
	char *text = kstrdup(lanes, GFP_KERNEL), *rest, *word;
	int err = text ? 0 : -ENOMEM;

	rest = text ? strim(text) : NULL;
	while (!err && (word = strsep(&rest, ","))) {
		if (run->count == AB_LANES_MAX) {
			err = -EINVAL;
			break;
		}
		run->lane[run->count].index = run->count;
		run->order[run->count] = run->count;
		err = ab_parse_lane(&run->lane[run->count++], word);
	}
	kfree(text);
	return err;
}

static int ab_prepare_run(struct ab_run *run)
{
	unsigned int i;
	int err;

	if (!chunks || chunks > AB_CHUNKS_MAX || acks < chunks || !flows ||
	    flows > 60000 || !depth || depth >= AB_DEPTH_MAX || !segment_acks ||
	    segment_acks > 2 || evict_kb > 1 << 16)
		return -EINVAL;
	run->chunk = -1;
	run->rtt_min_ns = U64_MAX;
	prandom_seed_state(&run->random, 1);
	run->lane = kvcalloc(AB_LANES_MAX, sizeof(*run->lane), GFP_KERNEL);
	if (!run->lane)
		return -ENOMEM;
	err = ab_parse_lanes(run);
	if (!err && evict_kb) {
		ab_evict = vzalloc(evict_kb * 1024);
		err = ab_evict ? 0 : -ENOMEM;
	}
	for (i = 0; i < run->count && !err; i++)
		err = ab_alloc(&run->lane[i]);
	for (i = 0; i < run->count && !err; i++)
		err = ab_open_flows(run, &run->lane[i]);
	return err;
}

static int ab_run(struct ab_run *run)
{
	int err = ab_prepare_run(run);

	if (!err)
		err = ab_run_lanes(run);
	if (run->wrong)
		pr_err("ack_bench: %s, timestamps %u, %u connections, step %llu: %s\n",
		       run->wrong_lane->cc, run->wrong_lane->stamps, flows,
		       run->steps, run->wrong);
	ab_free(run);
	return err;
}

/* ---- control ---- */

static void ab_show_stats(struct seq_file *m, const struct ab_stats *stats)
{
	seq_printf(m, "{\"timed\": %u, \"interrupted\": %u, \"sum\": %llu, ",
		   stats->timed, stats->interrupted, stats->sum);
	seq_printf(m, "\"min\": %u, \"p10\": %u, \"p50\": %u, \"p90\": %u, \"p99\": %u}",
		   stats->min, stats->p10, stats->p50, stats->p90, stats->p99);
}

static void ab_show_chunk(struct seq_file *m, const struct ab_stats *stats)
{
	const char *comma = "";
	unsigned int what;

	seq_puts(m, "{");
	for (what = 0; what < AB_WHATS; what++) {
		if (!stats[what].timed)
			continue;
		seq_printf(m, "%s\"%s\": ", comma, ab_names[what]);
		ab_show_stats(m, &stats[what]);
		comma = ", ";
	}
	seq_puts(m, "}");
}

static void ab_show_lane(struct seq_file *m, const struct ab_lane *lane)
{
	unsigned int i;

	seq_printf(m, "{\"cc\": \"%s\", \"stamps\": %u, \"dev\": %u, ", lane->cc,
		   lane->stamps, lane->dev);
	seq_printf(m, "\"processed\": %llu, \"acked\": %llu, \"moved\": %llu, \"steady\": %u, \"chunks\": [",
		   lane->tail, lane->acked, lane->moved, lane->steady);
	for (i = 0; i < chunks; i++) {
		seq_puts(m, i ? ", " : "");
		ab_show_chunk(m, lane->chunk[i]);
	}
	seq_puts(m, "]}");
}

static int ab_show(struct seq_file *m, void *unused)
{
	const struct ab_run *run = m->private;
	unsigned int i;

	seq_printf(m, "{\"flows\": %u, \"tsc_cycles\": %llu, ", flows,
		   run->tsc_cycles);
	seq_printf(m, "\"rtt_min_ns\": %llu, \"rtt_max_ns\": %llu, \"hardware\": %llu, \"lanes\": [",
		   run->rtt_min_ns, run->rtt_max_ns, run->hardware);
	for (i = 0; i < run->count; i++) {
		seq_puts(m, i ? ", " : "");
		ab_show_lane(m, &run->lane[i]);
	}
	seq_puts(m, "]}\n");
	return 0;
}

static void ab_put_run(struct ab_run *run)
{
	kvfree(run->lane);
	kfree(run);
}

static int ab_open(struct inode *inode, struct file *file)
{
	struct ab_run *run = kzalloc(sizeof(*run), GFP_KERNEL);
	int err;

	if (!run)
		return -ENOMEM;
	mutex_lock(&ab_mutex);
	err = ab_run(run);
	mutex_unlock(&ab_mutex);
	if (!err)
		err = single_open_size(file, ab_show, run, 1 << 18);
	if (err)
		ab_put_run(run);
	return err;
}

static int ab_release(struct inode *inode, struct file *file)
{
	ab_put_run(((struct seq_file *)file->private_data)->private);
	return single_release(inode, file);
}

static const struct file_operations ab_fops = {
	.owner		= THIS_MODULE,
	.open		= ab_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= ab_release,
};

/* ---- the device ---- */

static int ab_poll(struct napi_struct *napi, int budget)
{
	napi_complete_done(napi, 0);
	return 0;
}

static int ab_dev_open(struct net_device *dev)
{
	napi_enable(netdev_priv(dev));
	return 0;
}

static int ab_dev_stop(struct net_device *dev)
{
	napi_disable(netdev_priv(dev));
	return 0;
}

/* The device has timestamped all packets since it was made. */
static int ab_hwtstamp_get(struct net_device *dev,
			   struct kernel_hwtstamp_config *config)
{
	config->rx_filter = HWTSTAMP_FILTER_ALL;
	return 0;
}

static const struct net_device_ops ab_dev_ops = {
	.ndo_open		= ab_dev_open,
	.ndo_stop		= ab_dev_stop,
	.ndo_start_xmit		= ab_xmit,
	.ndo_hwtstamp_get	= ab_hwtstamp_get,
};

static int ab_ts_info(struct net_device *dev, struct kernel_ethtool_ts_info *info)
{
	info->so_timestamping = SOF_TIMESTAMPING_RX_HARDWARE |
				SOF_TIMESTAMPING_RAW_HARDWARE;
	info->rx_filters = BIT(HWTSTAMP_FILTER_ALL);
	/* The number of a PTP clock that cannot be read. */
	info->phc_index = 0;
	return 0;
}

static int ab_link(struct net_device *dev, struct ethtool_link_ksettings *link)
{
	link->base.speed = SPEED_100000;
	link->base.duplex = DUPLEX_FULL;
	return 0;
}

static const struct ethtool_ops ab_ethtool_ops = {
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= ab_link,
	.get_ts_info		= ab_ts_info,
};

static void ab_dev_setup(struct net_device *dev)
{
	ether_setup(dev);
	dev->netdev_ops = &ab_dev_ops;
	dev->ethtool_ops = &ab_ethtool_ops;
	/* A peer needs no MAC address of its own. */
	dev->flags |= IFF_NOARP;
	dev->flags &= ~IFF_MULTICAST;
	dev->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_ALL_TSO;
	dev->hw_features = dev->features;
	eth_hw_addr_random(dev);
}

static int ab_make_dev(unsigned int i)
{
	struct net_device *dev;
	int err;

	dev = alloc_netdev(sizeof(struct napi_struct), "ack%d", NET_NAME_ENUM,
			   ab_dev_setup);
	if (!dev)
		return -ENOMEM;
	SET_NETDEV_DEV(dev, &ab_hardware->dev);
	netif_napi_add(dev, netdev_priv(dev), ab_poll);
	err = register_netdev(dev);
	if (err)
		free_netdev(dev);
	else
		ab_dev[i] = dev;
	return err;
}

static void ab_delete(void)
{
	unsigned int i;

	debugfs_remove(ab_dir);
	for (i = 0; i < AB_DEVS && ab_dev[i]; i++) {
		unregister_netdev(ab_dev[i]);
		free_netdev(ab_dev[i]);
	}
	platform_device_unregister(ab_hardware);
	__free_pages(ab_page, AB_PAGE_ORDER);
}

static int __init ab_init(void)
{
	unsigned int i;
	int err = 0;

	if (time_travel_mode != TT_MODE_INFCPU) {
		pr_err("ack_bench: needs a virtual clock (time-travel=inf-cpu)\n");
		return -EOPNOTSUPP;
	}
	/* One compound page, as sockets use for their data. */
	ab_page = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP, AB_PAGE_ORDER);
	if (!ab_page)
		return -ENOMEM;
	ab_hardware = platform_device_register_simple(KBUILD_MODNAME, PLATFORM_DEVID_NONE, NULL, 0);
	if (IS_ERR(ab_hardware)) {
		__free_pages(ab_page, AB_PAGE_ORDER);
		return PTR_ERR(ab_hardware);
	}
	for (i = 0; i < AB_DEVS && !err; i++)
		err = ab_make_dev(i);
	if (err) {
		ab_delete();
		return err;
	}
	ab_dir = debugfs_create_dir("ack_bench", NULL);
	debugfs_create_file("run", 0400, ab_dir, NULL, &ab_fops);
	return 0;
}

static void __exit ab_exit(void)
{
	ab_delete();
}

module_init(ab_init);
module_exit(ab_exit);

MODULE_DESCRIPTION("Cost of an ACK, for the virtual-time lab");
MODULE_LICENSE("GPL");
