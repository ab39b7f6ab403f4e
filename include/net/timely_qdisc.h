/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The numeric options of the qdisc "timely": one definition of every range and
 * default for the module, tc's plugin, the tests and the documents. Only
 * macros, so that a tool can include it.
 *
 * TIMELY_QDISC_OPTIONS(X) is X(field, ATTR, bits, min, max, default, unit, doc)
 * for each: TCA_TIMELY_<ATTR> carries it as an unsigned number of that many
 * bits. The defaults of quantum and initial_quantum are in packets of the
 * device's MTU with its link header. priomap and weights are apart, below.
 */
#ifndef _NET_TIMELY_QDISC_H
#define _NET_TIMELY_QDISC_H

#define TIMELY_QDISC_OPTIONS(X) \
	X(limit, LIMIT, 32, 1, 4294967295, 10000, "packets", \
	  "packets queued in a band") \
	X(flow_limit, FLOW_LIMIT, 32, 1, 4294967295, 100, "packets", \
	  "packets queued of a flow") \
	X(quantum, QUANTUM, 32, 1, 1048576, 2, "bytes", \
	  "bytes a flow sends in its turn; below 256 counts as 256") \
	X(initial_quantum, INITIAL_QUANTUM, 32, 0, 1048576, 10, "bytes", \
	  "bytes a new flow may send at once") \
	X(pacing, PACING, 32, 0, 1, 1, "flag", \
	  "enforce the sockets' rates") \
	X(maxrate, MAXRATE, 64, 1, 18446744073709551615, 18446744073709551615, "bytes/s", \
	  "highest rate of a flow; all ones for none") \
	X(buckets_log, BUCKETS_LOG, 32, 1, 18, 10, "log2", \
	  "log2 of the flow table's first size; it grows with the flows") \
	X(refill_delay, REFILL_DELAY, 32, 0, 4294967295, 40000, "us", \
	  "idle time after which a flow has its quantum again") \
	X(orphan_mask, ORPHAN_MASK, 32, 0, 4294967295, 1023, "mask", \
	  "of the hash that makes flows of packets without a socket") \
	X(low_rate_threshold, LOW_RATE_THRESHOLD, 32, 0, 4294967295, 68750, "bytes/s", \
	  "below this rate each packet is paced, whatever the quantum") \
	X(ce_threshold, CE_THRESHOLD, 32, 0, 4294967295, 4294967295, "us", \
	  "mark ECN-capable packets that waited longer than this past their time") \
	X(timer_slack, TIMER_SLACK, 32, 0, 4294967295, 10000, "ns", \
	  "how late the timer may fire, to share interrupts") \
	X(horizon, HORIZON, 32, 0, 4294967295, 10000000, "us", \
	  "how far ahead a packet may be stamped") \
	X(horizon_drop, HORIZON_DROP, 8, 0, 1, 1, "flag", \
	  "drop what is stamped beyond the horizon; 0 sends it at the horizon") \
	X(offload_horizon, OFFLOAD_HORIZON, 32, 0, 4294967295, 0, "us", \
	  "packets due within this go to a device that paces by itself") \
	X(slot, SLOT, 32, 256, 1048576, 1024, "ns", \
	  "width of the timing wheel's slots, rounded up to a power of two") \
	X(lazy, LAZY, 8, 0, 1, 1, "flag", \
	  "read a flow's rate again when its packet is due") \
	X(segment, SEGMENT, 32, 0, 524288, 0, "bytes", \
	  "split GSO packets into paced pieces of at most this many bytes; 0 leaves them whole") \
	X(segment_rate, SEGMENT_RATE, 64, 0, 18446744073709551615, 0, "bytes/s", \
	  "rate at which the pieces of a packet follow each other; 0 for the flow's") \
	X(ack_first, ACK_FIRST, 8, 0, 1, 0, "flag", \
	  "pure ACKs jump the queue") \
	X(ack_dscp, ACK_DSCP, 8, 0, 63, 255, "DSCP", \
	  "DSCP of pure ACKs; 255 leaves it") \
	X(ack_priority, ACK_PRIORITY, 8, 0, 15, 255, "priority", \
	  "skb priority of pure ACKs; 255 leaves it") \
	X(wrong_clock_drop, WRONG_CLOCK_DROP, 8, 0, 1, 0, "flag", \
	  "drop packets stamped by another clock; 0 sends them unstamped") \
	X(onramp, ONRAMP, 32, 1000, 1000000000, 0, "ns", \
	  "hold flows while their path's delay exceeds this; 0 never does") \
	X(onramp_gain, ONRAMP_GAIN, 32, 1, 65536, 4096, "65536ths", \
	  "gain of the moving average of b") \
	X(onramp_owd, ONRAMP_OWD, 8, 0, 2, 0, "kind", \
	  "what delay is: 0 absolute, 1 relative, 2 of the RTT") \
	X(onramp_pause_max, ONRAMP_PAUSE_MAX, 32, 1000, 1000000000, 10000000, "ns", \
	  "no flow is held for longer") \
	X(onramp_strawman, ONRAMP_STRAWMAN, 8, 0, 1, 0, "flag", \
	  "take no account of pauses whose effect is not seen yet") \
	X(onramp_clock_error, ONRAMP_CLOCK_ERROR, 32, 0, 1000000000, 0, "ns", \
	  "how far clocks may be apart: added to the threshold of absolute delays")

/* Bytes of a band in a round, of each of the three; the least is as fq's. */
#define TIMELY_QDISC_MIN_WEIGHT		16384
#define TIMELY_QDISC_DEFAULT_WEIGHTS	{ 9 << 16, 3 << 16, 1 << 16 }
/* Band of each of the 16 priorities: pfifo_fast's. */
#define TIMELY_QDISC_DEFAULT_PRIOMAP \
	{ 1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 }

#endif /* _NET_TIMELY_QDISC_H */
