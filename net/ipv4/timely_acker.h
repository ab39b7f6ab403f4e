/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The data structures of On-Ramp's receiver (timely_acker.ko): the configuration of a network
 * namespace, and the state of a CPU. timely_acker.c explains how the files of the receiver work
 * together.
 */
#ifndef _TIMELY_ACKER_H
#define _TIMELY_ACKER_H

#include <linux/cache.h>
#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/rcupdate.h>
#include <linux/types.h>

#include <timely/engine/orack.h>

struct net;
struct sk_buff;

/* The table of flows of each CPU: 512 sets of 2 flows, 64 bytes each. A new flow replaces a flow of
 * its set.
 */
#define ACKER_SETS_LOG		9
#define ACKER_SETS		(1 << ACKER_SETS_LOG)
#define ACKER_WAYS		2

/* Maximum number of OR-ACKs that a CPU can queue for its tasklet. OR-ACKs beyond this number are
 * not sent, but counted as send_limited.
 */
#define ACKER_RING		256

/* Times of flows are in units of 2^10 ns. These 32-bit times wrap every 73 minutes. A flow that was
 * idle for about 73 minutes may not count as idle, and then gets one OR-ACK less.
 */
#define ACKER_TIME_SHIFT	10

/**
 * struct acker_rule - a rule: which data packets are answered with OR-ACKs
 * @prefix: prefix of the source address; IPv4 uses the first word only, the others are 0
 * @family: AF_INET or AF_INET6
 * @length: length of @prefix in bits, 0 to 32 or 128
 * @port_first: lowest destination port, host byte order; 0 for all ports
 * @port_last: highest destination port, host byte order; 0 for all ports
 *
 * The structure has no padding, so that rules can be compared with memcmp().
 */
struct acker_rule {
	__be32 prefix[4];
	u16 family;
	u16 length;
	u16 port_first;
	u16 port_last;
};

/**
 * struct acker_config - the configuration of a network namespace; replaced, never changed
 * @rcu: frees the configuration after an RCU grace period
 * @interval_ns: lowest average time between OR-ACKs to a peer, ns, computed from @rate
 * @test_since_ns: when the test clock was set, CLOCK_MONOTONIC; 0 without a test clock. A test
 *	clock replaces the real-time clock in OR-ACKs
 * @test_offset_ns: by how much the test clock was ahead of the real-time clock at @test_since_ns
 * @test_drift_ppb: by how much the test clock is faster than the real-time clock
 * @link_kbps: rate of the receiver's link, which gives trimmed packets their turns, kbit/s
 * @trimmed_tos: TOS or traffic class of trimmed packets, without the ECN bits; 0: trimmed packets
 *	are not looked for
 * @every: a flow gets an OR-ACK for this many bytes of IP packets
 * @rate: highest average number of OR-ACKs per second to a peer
 * @generation: changes with each change of the rules and is unique among all namespaces; never 0 if
 *	there are rules
 * @count: number of elements of @rules
 * @rules: the rules, in the order in which they were added; one match is enough
 */
struct acker_config {
	struct rcu_head rcu;
	u64 interval_ns;
	u64 test_since_ns;
	s64 test_offset_ns;
	s32 test_drift_ppb;
	u32 link_kbps;
	u8 trimmed_tos;
	u32 every;
	u32 rate;
	u32 generation;
	u32 count;
	struct acker_rule rules[];
};

/**
 * struct acker_net - the receiver's state of a network namespace
 * @config: the configuration; NULL until something is configured, and when the namespace exits.
 *	While @config is NULL, no packet is answered
 * @turn_ns: when the turn of the next trimmed packet begins, CLOCK_MONOTONIC
 */
struct acker_net {
	struct acker_config __rcu *config;
	atomic64_t turn_ns;
};

/**
 * struct acker_flow - a CPU's state of a flow that the CPU received packets of
 * @tuple: the flow's addresses
 * @generation: generation of the rules that @wanted was computed with; 0 marks an unused entry
 * @bytes: bytes of IP packets since the last OR-ACK
 * @seen: time of the last packet in units of 2^ACKER_TIME_SHIFT ns
 * @answer: value of acker_cpu.head, the low 16 bits, when the flow's last OR-ACK was queued
 * @first: how many of the first packets of the flow, each of which is answered, are still to come
 * @wanted: a rule matches the flow, and the flow's destination is this host
 */
struct acker_flow {
	struct timely_tuple tuple;
	u32 generation;
	u32 bytes;
	u32 seen;
	u16 answer;
	u8 first;
	bool wanted;
};

/**
 * struct acker_answer - an OR-ACK in the ring of a CPU
 * @orack: the contents; the tasklet sets turnaround_ns and key. @orack.tuple.net is the address of
 *	the struct net; 0: the namespace has ended, do not send the OR-ACK
 * @arrived_ns: when the data arrived, CLOCK_MONOTONIC
 * @priority: skb->priority of the data
 * @oif: interface index of the L3 master device that the route must use, 0 for none
 * @tos: TOS or traffic class of the data, without the ECN bits
 * @ecn: ECN bits of the OR-ACK
 */
struct acker_answer {
	struct timely_orack orack;
	u64 arrived_ns;
	u32 priority;
	int oif;
	u8 tos;
	u8 ecn;
};

/**
 * struct acker_packet - the parsed headers of a packet
 * @tuple: addresses of the packet's flow
 * @bytes: length of the IP packet
 * @seq: TCP's sequence number; not set for UDP
 * @payload: offset of UDP's payload from skb->data in bytes; not set for TCP
 * @payload_bytes: length of UDP's payload; not set for TCP
 * @segment: offset of the transport header from skb->data in bytes
 * @turn_ns: time until the turn of a trimmed packet, ns; otherwise 0
 * @tos: IPv4's TOS or IPv6's traffic class
 * @trimmed: a switch has trimmed the packet
 */
struct acker_packet {
	struct timely_tuple tuple;
	u32 bytes;
	u32 seq;
	u32 payload;
	u32 payload_bytes;
	u32 segment;
	u32 turn_ns;
	u8 tos;
	bool trimmed;
};

/**
 * struct acker_cpu - the state of a CPU
 * @flows: flows that the CPU received packets of, a hash table with ACKER_WAYS entries per set
 * @last: the flow of the last packet
 * @poll: number of NET_RX softirqs of the CPU, as in kstat, when @now was read
 * @now: time when acker_now() last read the clock, in units of 2^ACKER_TIME_SHIFT ns
 * @packet: the packet that timely_acker_probe() handles
 * @tasklet: sends the OR-ACKs in @ring
 * @head: number of OR-ACKs ever put into @ring; written by timely_acker_probe()
 * @tail: number of OR-ACKs ever taken out of @ring; written by the tasklet, which runs on another
 *	CPU after this CPU went offline
 * @ring: queued OR-ACKs; OR-ACK number n is at @ring[n % ACKER_RING]
 */
struct acker_cpu {
	struct acker_flow flows[ACKER_SETS][ACKER_WAYS];
	struct acker_flow *last;
	u32 poll;
	u32 now;
	struct acker_packet packet;
	struct tasklet_struct tasklet;
	u32 head ____cacheline_aligned;
	u32 tail ____cacheline_aligned;
	struct acker_answer ring[ACKER_RING];
};

/* A tracepoint probe. @polled is not NULL if the tracepoint is reached only from NAPI polls. */
typedef void acker_probe_t(void *polled, const struct sk_buff *skb);

extern unsigned int timely_acker_net_id;
extern struct mutex timely_acker_mutex;
extern u32 timely_acker_seed;
DECLARE_PER_CPU(struct acker_cpu *, timely_acker_cpus);

/* Get the number after the last queued OR-ACK of the ring, for code that reads the ring. */
static inline u32 acker_head(const struct acker_cpu *cpu)
{
	/* Pairs with smp_store_release() in acker_push(): entries before head are complete. */
	return smp_load_acquire(&cpu->head);
}

/* timely_acker.c */
void timely_acker_probe(void *polled, const struct sk_buff *skb);

/* timely_acker_send.c */
void timely_acker_send_all(struct tasklet_struct *tasklet);

/* timely_acker_hooks.c */
void timely_acker_hooks_init(void);
bool timely_acker_has_points(void);
int timely_acker_hooks_join(acker_probe_t *probe);
void timely_acker_hooks_leave(acker_probe_t *probe);

/* timely_acker_cpu.c */
void timely_acker_init(void);
void timely_acker_stop(void);
void timely_acker_exit(void);
int timely_acker_get(void);
void timely_acker_put(void);
void timely_acker_forget(void);

#endif /* _TIMELY_ACKER_H */
