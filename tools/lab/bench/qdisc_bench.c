// SPDX-License-Identifier: GPL-2.0
/*
 * qdisc_bench: TSC cycles that a qdisc needs for each packet, depending on the number of
 * flows. bench.sh builds and runs this module; README.md describes the measurement.
 *
 * The module needs the lab's kernel: User Mode Linux in time-travel mode. There the
 * clock is virtual, so flows are paced to the nanosecond on any machine; the code runs
 * natively, so the TSC before and after a call shows the real cost of the call.
 *
 * tc configures the qdisc. This module takes the root qdisc of a device and makes the
 * calls that the network stack would make, in the same order:
 *
 *	as __dev_xmit_skb()		enqueue a packet, dequeue until NULL
 *	when the watchdog fires		dequeue until NULL
 *
 * Flows are memory that looks like established TCP sockets to a qdisc. A packet that was
 * dequeued is enqueued again later. All runs in a guest use the same flows and packets,
 * so that their qdiscs can be compared.
 *
 * mode=paced: All flows together send at 100 Gb/s, a packet of 1500 bytes every 120 ns.
 * Each packet carries a departure time, as TCP sets it. Each step takes 120 ns and
 * enqueues a packet that has left with its next departure time. Most flows are throttled
 * at any time.
 *
 * mode=unpaced: Packets carry no departure times, flows have no rates, and packets of all
 * flows are queued. Each step is one dequeue and one enqueue; no call returns NULL. A
 * qdisc that does not pace is measured like this instead of paced.
 *
 * A read of the file qdisc_bench/run in debugfs makes a run with the current module
 * parameters and returns the result as one JSON object. The read fails with -EIO if
 * packets were lost or left too early or too late; the kernel log has the reason.
 */

#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/hrtimer.h>
#include <linux/ip.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <linux/skbuff.h>
#include <linux/sort.h>
#include <linux/tcp.h>
#include <linux/time-internal.h>
#include <linux/vmalloc.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>
#include <net/tcp.h>

#include "native.h"

#define QB_PACKET_BYTES	1500
#define QB_GAP_NS	120	/* time of a packet at 100 Gb/s */
#define QB_HEADERS	(sizeof(struct iphdr) + sizeof(struct tcphdr))

/* Least number of packets; few flows have several packets each. fq's timer slack of 10 us releases
 * 84 packets at once; twice as many stay queued.
 */
#define QB_BACKLOG_MIN	256
/* Packets outside of the qdisc in an unpaced run, as if they were on the wire. */
#define QB_WIRE		64
#define QB_CHUNKS_MAX	64	/* limit of the parameter chunks */
/* After this many new flows the rest of the kernel may run. */
#define QB_BREATH	1024
/* A call that takes longer may have been interrupted by the host; 10 us at 3 GHz. */
#define QB_LONG_CYCLES	30000

static char *dev = "d0";
module_param(dev, charp, 0644);
MODULE_PARM_DESC(dev, "device whose root qdisc is measured");

static char *mode = "paced";
module_param(mode, charp, 0644);
MODULE_PARM_DESC(mode, "paced or unpaced");

static unsigned int flows = 1;
module_param(flows, uint, 0444);
MODULE_PARM_DESC(flows, "number of flows, 1 to 4000000");

static unsigned int packets = 200000;
module_param(packets, uint, 0644);
MODULE_PARM_DESC(packets, "packets to measure; at least one for each chunk");

static unsigned int warm = 50000;
module_param(warm, uint, 0644);
MODULE_PARM_DESC(warm, "packets before the measurement; at least one of each flow in any case");

static unsigned int chunks = 5;
module_param(chunks, uint, 0644);
MODULE_PARM_DESC(chunks, "parts into which the measurement is divided, 1 to 64");

static bool shuffle;
module_param(shuffle, bool, 0644);
MODULE_PARM_DESC(shuffle, "let flows depart in another order than that of their memory");

static unsigned int late_max_ns = 16384;
module_param(late_max_ns, uint, 0644);
MODULE_PARM_DESC(late_max_ns,
		 "how long after its departure time a paced packet may leave, ns: timer slack, a slot, and 256 for reading the clock");

/* The kinds of calls that are timed separately. */
enum qb_call {
	QB_ENQUEUE,
	QB_DEQUEUE,
	QB_EMPTY,	/* a dequeue that returned NULL */
	QB_CALLS,	/* their number */
};

/**
 * struct qb_sum - calls of one kind (enum qb_call)
 * @calls: number of calls
 * @timed: number of timed calls: those that the host did not interrupt
 * @cycles: cycles of all timed calls
 * @max: cycles of the longest timed call
 */
struct qb_sum {
	u64 calls;
	u64 timed;
	u64 cycles;
	u64 max;
};

/**
 * struct qb_chunk - a part of the measurement
 * @sum: calls, by kind
 * @wakes: how often the qdisc's watchdog fired
 * @elapsed: cycles from the beginning to the end of this part, with all that is not timed
 */
struct qb_chunk {
	struct qb_sum sum[QB_CALLS];
	u64 wakes;
	u64 elapsed;
};

/**
 * struct qb_run - the state and the result of a run
 * @sch: the qdisc
 * @paced: packets carry departure times
 * @tsc_cycles: cycles of reading the TSC, which each timed call contains
 * @host_switches: the host's count of involuntary context switches, as last read
 * @round_ns: time in which each packet leaves once; between two departures of a packet
 * @spare: packets that have left and wait to be enqueued again
 * @now: part of the run in which calls are counted now
 * @late_ns: longest time from a packet's departure time until it was dequeued
 * @early: packets that were dequeued before their departure time
 * @refused: packets for which enqueue returned an error
 * @warm: calls before and after the measurement
 * @chunk: the parts of the measurement
 */
struct qb_run {
	struct Qdisc *sch;
	bool paced;
	u64 tsc_cycles;
	long host_switches;
	u64 round_ns;
	struct sk_buff_head spare;
	struct qb_chunk *now;
	u64 late_ns;
	u64 early;
	u64 refused;
	struct qb_chunk warm;
	struct qb_chunk chunk[QB_CHUNKS_MAX];
};

/* Packets in the order of their memory, and shuffled. On a real host the order in which connections
 * send differs from the order of their sockets in memory, so that the processor cannot predict it.
 */
static struct sk_buff **qb_packets, **qb_shuffled;
static unsigned int qb_count;
static struct tcp_sock **qb_socks;
static struct kmem_cache *qb_sock_cache;
static struct dentry *qb_dir;
static DEFINE_MUTEX(qb_mutex);

/* ---- timing ---- */

/* Did another process have the processor since the last call of this function? Long calls are timed
 * unless this is the reason: a qdisc may really do much work in one call.
 */
static bool qb_interrupted(struct qb_run *run)
{
	long before = run->host_switches;

	run->host_switches = bench_host_switches();
	return run->host_switches != before;
}

static void qb_add(struct qb_run *run, enum qb_call call, u64 cycles)
{
	struct qb_sum *sum = &run->now->sum[call];

	sum->calls++;
	if (cycles > QB_LONG_CYCLES && qb_interrupted(run))
		return;
	cycles -= min(cycles, run->tsc_cycles);
	sum->timed++;
	sum->cycles += cycles;
	sum->max = max(sum->max, cycles);
}

/* ---- what the stack does ---- */

/* Touch the packet and its socket, which are in the cache after TCP has made the packet. */
static void qb_touch(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;

	READ_ONCE(skb->len);
	READ_ONCE(skb->priority);
	READ_ONCE(skb->end);
	READ_ONCE(skb_shinfo(skb)->gso_segs);
	READ_ONCE(*(const u8 *)ip_hdr(skb));
	READ_ONCE(sk->sk_state);
	READ_ONCE(sk->sk_hash);
	READ_ONCE(sk->sk_pacing_rate);
	READ_ONCE(sk->sk_pacing_status);
	READ_ONCE(sk->sk_type);
	READ_ONCE(sk->sk_protocol);
	READ_ONCE(inet_csk(sk)->icsk_ca_ops);
}

static void qb_enqueue(struct qb_run *run, struct sk_buff *skb)
{
	struct sk_buff *to_free = NULL;
	u64 start;
	int ret;

	qb_touch(skb);
	start = bench_tsc();
	ret = run->sch->enqueue(skb, run->sch, &to_free);
	qb_add(run, QB_ENQUEUE, bench_tsc() - start);
	/* The list to_free can stay as it is: the bench holds a reference to each packet. */
	run->refused += ret != NET_XMIT_SUCCESS;
}

static struct sk_buff *qb_dequeue(struct qb_run *run)
{
	u64 start = bench_tsc();
	struct sk_buff *skb = run->sch->dequeue(run->sch);

	qb_add(run, skb ? QB_DEQUEUE : QB_EMPTY, bench_tsc() - start);
	if (skb)
		__skb_queue_tail(&run->spare, skb);
	return skb;
}

static void qb_check_time(struct qb_run *run, const struct sk_buff *skb)
{
	s64 late = ktime_get_ns() - skb->tstamp;

	if (!run->paced)
		return;
	run->early += late < 0;
	if (late > 0)
		run->late_ns = max_t(u64, run->late_ns, late);
}

/* Dequeue as __qdisc_run() does. */
static void qb_transmit(struct qb_run *run)
{
	struct sk_buff *skb;

	while ((skb = qb_dequeue(run)))
		qb_check_time(run, skb);
}

/* If the watchdog has fired, dequeue as the softirq would. The watchdog sets __QDISC_STATE_SCHED
 * and requests a softirq, which cannot run while BH are off. When BH are enabled, the softirq finds
 * that the qdisc is already running and only clears the state.
 */
static void qb_answer_watchdog(struct qb_run *run)
{
	if (!test_bit(__QDISC_STATE_SCHED, &run->sch->state))
		return;
	local_bh_enable();
	local_bh_disable();
	run->now->wakes++;
	qb_transmit(run);
}

static void qb_step_paced(struct qb_run *run)
{
	struct sk_buff *skb;

	ndelay(QB_GAP_NS);
	qb_answer_watchdog(run);
	skb = __skb_dequeue(&run->spare);
	if (!skb)
		return;
	skb_set_delivery_time(skb, skb->tstamp + run->round_ns,
			      SKB_CLOCK_MONOTONIC);
	qb_enqueue(run, skb);
	qb_transmit(run);
}

static void qb_step_unpaced(struct qb_run *run)
{
	ndelay(QB_GAP_NS);
	qb_dequeue(run);
	if (!skb_queue_empty(&run->spare))
		qb_enqueue(run, __skb_dequeue(&run->spare));
}

static int qb_measure(struct qb_run *run, struct qb_chunk *chunk, u64 count)
{
	u64 steps_left = 4 * count + QB_BACKLOG_MIN;
	u64 start = bench_tsc();

	run->now = chunk;
	while (chunk->sum[QB_ENQUEUE].calls < count) {
		if (!steps_left--)
			return -EIO;
		if (run->paced)
			qb_step_paced(run);
		else
			qb_step_unpaced(run);
	}
	chunk->elapsed = bench_tsc() - start;
	return 0;
}

/* Dequeue until all packets have left; no packet waits longer than a second. */
static void qb_dequeue_all(struct qb_run *run)
{
	unsigned int i;

	run->now = &run->warm;
	for (i = 0; i < 1000000 && run->sch->q.qlen; i++) {
		qb_transmit(run);
		if (run->sch->q.qlen)
			ndelay(1000);
	}
}

/* ---- a run ---- */

static void qb_fill_one(struct qb_run *run, struct sk_buff *skb, u64 time_ns)
{
	skb_mark_not_on_list(skb);
	skb->prev = NULL;
	skb->dev = qdisc_dev(run->sch);
	skb_set_delivery_time(skb, time_ns, SKB_CLOCK_MONOTONIC);
	qb_enqueue(run, skb);
}

static void qb_set_rates(const struct qb_run *run)
{
	unsigned long rate_Bps = ~0UL;
	unsigned int i;

	if (run->paced)
		rate_Bps = QB_PACKET_BYTES * (NSEC_PER_SEC / QB_GAP_NS) / flows;
	for (i = 0; i < flows; i++)
		WRITE_ONCE(((struct sock *)qb_socks[i])->sk_pacing_rate, rate_Bps);
}

/* Let the rest of the kernel run: a qdisc may have left work to a kernel thread. */
static void qb_breathe(void)
{
	local_bh_enable();
	usleep_range(1, 2);
	local_bh_disable();
}

/* Send a packet of each flow in the order of the flows' memory, so that the qdisc allocates its own
 * objects for the flows in this order, too.
 */
static void qb_introduce_flows(struct qb_run *run)
{
	bool paced = run->paced;
	unsigned int i;

	run->paced = false;
	qb_set_rates(run);
	for (i = 0; i < qb_count; i++) {
		qb_fill_one(run, qb_packets[i], 0);
		if (!(i % QB_BREATH))
			qb_breathe();
	}
	qb_dequeue_all(run);
	__skb_queue_head_init(&run->spare);
	run->paced = paced;
}

/* Enqueue the packets with which the run starts. */
static void qb_fill(struct qb_run *run)
{
	struct sk_buff **order = shuffle ? qb_shuffled : qb_packets;
	u64 start_ns = ktime_get_ns();
	unsigned int i;

	qb_set_rates(run);
	for (i = 0; i < qb_count; i++) {
		if (run->paced) {
			qb_fill_one(run, order[i],
				    start_ns + (i + 1ULL) * QB_GAP_NS);
		} else if (i < QB_WIRE) {
			skb_set_delivery_time(order[i], 0, 0);
			__skb_queue_tail(&run->spare, order[i]);
		} else {
			qb_fill_one(run, order[i], 0);
		}
	}
	/* This dequeue arms the watchdog. */
	if (run->paced)
		qb_transmit(run);
}

static int qb_run_locked(struct qb_run *run)
{
	unsigned int i;
	int err;

	run->tsc_cycles = bench_calibrate();
	run->now = &run->warm;
	qb_introduce_flows(run);
	qb_fill(run);
	memset(&run->warm, 0, sizeof(run->warm));
	err = qb_measure(run, &run->warm, max(warm, qb_count));
	for (i = 0; i < chunks && !err; i++)
		err = qb_measure(run, &run->chunk[i], packets / chunks);
	qb_dequeue_all(run);
	return err;
}

static int qb_verdict(const struct qb_run *run)
{
	unsigned int out = skb_queue_len(&run->spare);

	if (out == qb_count && !run->early && !run->refused &&
	    run->late_ns <= late_max_ns)
		return 0;
	pr_err("qdisc_bench: run is not valid: %s, %u flows, %s: %u of %u packets came out, %llu refused, %llu early, latest by %llu ns (allowed: %u)\n",
	       run->sch->ops->id, flows, mode, out, qb_count, run->refused,
	       run->early, run->late_ns, late_max_ns);
	return -EIO;
}

static int qb_run_on(struct qb_run *run, struct net_device *device)
{
	struct Qdisc *sch = rtnl_dereference(device->qdisc);
	int err, verdict;

	if (!sch || !sch->enqueue || (sch->flags & TCQ_F_NOLOCK) || sch->q.qlen) {
		pr_err("qdisc_bench: the root qdisc of %s must be empty and use the qdisc lock\n",
		       dev);
		return -EINVAL;
	}
	if (hrtimer_resolution > 1) {
		pr_err("qdisc_bench: timers have no high resolution yet; try again later\n");
		return -EAGAIN;
	}
	run->sch = sch;
	local_bh_disable();
	/* Mark the qdisc as running, so that its watchdog does not run it. */
	if (!qdisc_run_begin(sch)) {
		local_bh_enable();
		return -EBUSY;
	}
	err = qb_run_locked(run);
	qdisc_run_end(sch);
	local_bh_enable();
	verdict = qb_verdict(run);
	return err ?: verdict;
}

static int qb_run(struct qb_run *run)
{
	struct net_device *device;
	int err = -ENODEV;

	if (!chunks || chunks > QB_CHUNKS_MAX || packets < chunks)
		return -EINVAL;
	if (!sysfs_streq(mode, "paced") && !sysfs_streq(mode, "unpaced"))
		return -EINVAL;
	run->paced = sysfs_streq(mode, "paced");
	run->round_ns = (u64)qb_count * QB_GAP_NS;
	__skb_queue_head_init(&run->spare);
	rtnl_lock();
	device = __dev_get_by_name(&init_net, strim(dev));
	if (device)
		err = qb_run_on(run, device);
	rtnl_unlock();
	return err;
}

/* ---- control ---- */

static void qb_show_sum(struct seq_file *m, const char *name,
			const struct qb_sum *sum)
{
	seq_printf(m, "\"%s\": {\"calls\": %llu, \"timed\": %llu, \"cycles\": %llu, \"max\": %llu}",
		   name, sum->calls, sum->timed, sum->cycles, sum->max);
}

static int qb_show(struct seq_file *m, void *unused)
{
	const struct qb_run *run = m->private;
	unsigned int i;

	seq_printf(m, "{\"flows\": %u, \"packets_queued\": %u, \"tsc_cycles\": %llu, ",
		   flows, qb_count, run->tsc_cycles);
	seq_printf(m, "\"late_ns\": %llu, \"chunks\": [", run->late_ns);
	for (i = 0; i < chunks; i++) {
		const struct qb_chunk *chunk = &run->chunk[i];

		seq_printf(m, "%s{\"wakes\": %llu, \"elapsed\": %llu, ",
			   i ? ", " : "", chunk->wakes, chunk->elapsed);
		qb_show_sum(m, "enqueue", &chunk->sum[QB_ENQUEUE]);
		seq_puts(m, ", ");
		qb_show_sum(m, "dequeue", &chunk->sum[QB_DEQUEUE]);
		seq_puts(m, ", ");
		qb_show_sum(m, "empty", &chunk->sum[QB_EMPTY]);
		seq_puts(m, "}");
	}
	seq_puts(m, "]}\n");
	return 0;
}

static int qb_open(struct inode *inode, struct file *file)
{
	struct qb_run *run = kvzalloc(sizeof(*run), GFP_KERNEL);
	int err;

	if (!run)
		return -ENOMEM;
	mutex_lock(&qb_mutex);
	err = qb_run(run);
	mutex_unlock(&qb_mutex);
	if (!err)
		err = single_open_size(file, qb_show, run, 65536);
	if (err)
		kvfree(run);
	return err;
}

static int qb_release(struct inode *inode, struct file *file)
{
	kvfree(((struct seq_file *)file->private_data)->private);
	return single_release(inode, file);
}

static const struct file_operations qb_fops = {
	.owner		= THIS_MODULE,
	.open		= qb_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= qb_release,
};

/* ---- sockets and packets ---- */

static struct tcp_sock *qb_sock(unsigned int i)
{
	struct tcp_sock *tp = kmem_cache_zalloc(qb_sock_cache, GFP_KERNEL);
	struct sock *sk = (struct sock *)tp;

	if (!tp)
		return NULL;
	sk->sk_family = AF_INET;
	sk->sk_type = SOCK_STREAM;
	sk->sk_protocol = IPPROTO_TCP;
	sk->sk_state = TCP_ESTABLISHED;
	sk->sk_hash = hash_32(i + 1, 32);
	sk->sk_pacing_status = SK_PACING_NEEDED;
	sk->sk_max_pacing_rate = ~0UL;
	sk->sk_pacing_rate = ~0UL;
	sock_net_set(sk, &init_net);
	return tp;
}

static void qb_write_headers(struct sk_buff *skb, unsigned int i)
{
	struct iphdr *ip = skb_put_zero(skb, QB_HEADERS);
	struct tcphdr *tcp = (struct tcphdr *)(ip + 1);

	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tot_len = htons(QB_PACKET_BYTES - ETH_HLEN);
	ip->ttl = 64;
	ip->protocol = IPPROTO_TCP;
	ip->saddr = htonl(0x0a000001);
	ip->daddr = htonl(0x0a800000 + (i >> 14));
	tcp->source = htons(1024 + (i & 0x3fff));
	tcp->dest = htons(5001);
	tcp->doff = sizeof(*tcp) / 4;
	tcp->ack = 1;
	skb->protocol = htons(ETH_P_IP);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*ip));
}

/* A packet with headers. The payload has a length, but no memory. */
static struct sk_buff *qb_packet(struct sock *sk, unsigned int i)
{
	struct sk_buff *skb = alloc_skb(MAX_TCP_HEADER, GFP_KERNEL);
	struct ethhdr *eth;

	if (!skb)
		return NULL;
	skb_reserve(skb, MAX_TCP_HEADER - QB_HEADERS);
	qb_write_headers(skb, i);
	eth = skb_push(skb, ETH_HLEN);
	memset(eth, 0, ETH_HLEN);
	eth->h_proto = skb->protocol;
	skb_reset_mac_header(skb);
	skb->data_len = QB_PACKET_BYTES - skb->len;
	skb->len = QB_PACKET_BYTES;
	qdisc_skb_cb(skb)->pkt_len = QB_PACKET_BYTES;
	skb->sk = sk;
	/* A reference, so that a qdisc that drops the packet does not free it. */
	return skb_get(skb);
}

static void qb_free(void)
{
	unsigned int i;

	for (i = 0; qb_packets && i < qb_count && qb_packets[i]; i++) {
		struct sk_buff *skb = qb_packets[i];

		skb_mark_not_on_list(skb);
		skb->sk = NULL;
		refcount_set(&skb->users, 1);
		kfree_skb(skb);
	}
	for (i = 0; qb_socks && i < flows && qb_socks[i]; i++)
		kmem_cache_free(qb_sock_cache, qb_socks[i]);
	kvfree(qb_socks);
	kvfree(qb_packets);
	kvfree(qb_shuffled);
	kmem_cache_destroy(qb_sock_cache);
}

/* A pseudo-random order that is the same in each run. */
static void qb_shuffle(void)
{
	struct rnd_state rnd;
	unsigned int i, j;

	memcpy(qb_shuffled, qb_packets, qb_count * sizeof(*qb_shuffled));
	/* Packets of one flow stay in order. */
	if (qb_count != flows)
		return;
	prandom_seed_state(&rnd, 1);
	for (i = qb_count - 1; i; i--) {
		j = prandom_u32_state(&rnd) % (i + 1);
		swap(qb_shuffled[i], qb_shuffled[j]);
	}
}

static int qb_alloc(void)
{
	unsigned int i;

	qb_count = flows * DIV_ROUND_UP(max(flows, QB_BACKLOG_MIN), flows);
	qb_sock_cache = kmem_cache_create("qdisc_bench_sock", sizeof(struct tcp_sock),
					  0, SLAB_HWCACHE_ALIGN | SLAB_NO_MERGE, NULL);
	qb_socks = kvcalloc(flows, sizeof(*qb_socks), GFP_KERNEL);
	qb_packets = kvcalloc(qb_count, sizeof(*qb_packets), GFP_KERNEL);
	qb_shuffled = kvcalloc(qb_count, sizeof(*qb_shuffled), GFP_KERNEL);
	if (!qb_sock_cache || !qb_socks || !qb_packets || !qb_shuffled)
		return -ENOMEM;
	for (i = 0; i < flows; i++) {
		qb_socks[i] = qb_sock(i);
		if (!qb_socks[i])
			return -ENOMEM;
	}
	for (i = 0; i < qb_count; i++) {
		qb_packets[i] = qb_packet((struct sock *)qb_socks[i % flows],
					  i % flows);
		if (!qb_packets[i])
			return -ENOMEM;
		if (!(i % 1024))
			cond_resched();
	}
	qb_shuffle();
	return 0;
}

static int __init qb_init(void)
{
	int err;

	if (time_travel_mode != TT_MODE_INFCPU) {
		pr_err("qdisc_bench: needs a virtual clock (time-travel=inf-cpu)\n");
		return -EOPNOTSUPP;
	}
	if (!flows || flows > 4000000)
		return -EINVAL;
	err = qb_alloc();
	if (err) {
		qb_free();
		return err;
	}
	qb_dir = debugfs_create_dir("qdisc_bench", NULL);
	debugfs_create_file("run", 0400, qb_dir, NULL, &qb_fops);
	return 0;
}

static void __exit qb_exit(void)
{
	debugfs_remove(qb_dir);
	qb_free();
}

module_init(qb_init);
module_exit(qb_exit);

MODULE_DESCRIPTION("Cost of a qdisc per packet, for the virtual-time lab");
MODULE_LICENSE("GPL");
