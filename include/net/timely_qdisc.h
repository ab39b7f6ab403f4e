/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The numeric options of the qdisc "timely": the only definition of their ranges and defaults, used
 * by the module, the tc plugin, tests and documents. The file has only macros, so that user-space
 * programs can include it.
 *
 * TIMELY_QDISC_OPTIONS(X) expands to X(field, ATTR, bits, min, max, default, unit, doc) for each
 * option. The netlink attribute TCA_TIMELY_<ATTR> contains the value as an unsigned number of @bits
 * bits. Values from min to max are allowed, and the default, which may be outside of this range.
 * The defaults of quantum and initial_quantum are in packets of the device's MTU including the link
 * header. The options priomap and weights are defined below.
 */
#ifndef _NET_TIMELY_QDISC_H
#define _NET_TIMELY_QDISC_H

#define TIMELY_QDISC_OPTIONS(X) \
	X(limit, LIMIT, 32, 1, 4294967295, 10000, "packets", \
	  "packets queued in a band") \
	X(flow_limit, FLOW_LIMIT, 32, 1, 4294967295, 100, "packets", \
	  "packets queued in a flow") \
	X(quantum, QUANTUM, 32, 1, 1048576, 2, "bytes", \
	  "bytes that a flow may send in a round-robin slot; less than 256 counts as 256") \
	X(initial_quantum, INITIAL_QUANTUM, 32, 0, 1048576, 10, "bytes", \
	  "bytes that a new flow may send at once") \
	X(pacing, PACING, 32, 0, 1, 1, "flag", \
	  "enforce the pacing rates of sockets") \
	X(maxrate, MAXRATE, 64, 1, 18446744073709551615, 18446744073709551615, "bytes/s", \
	  "highest rate of a flow; all ones for none") \
	X(buckets_log, BUCKETS_LOG, 32, 1, 18, 10, "log2", \
	  "log2 of the initial size of the flow table, which grows with the flows") \
	X(refill_delay, REFILL_DELAY, 32, 0, 4294967295, 40000, "us", \
	  "idle time after which a flow has its quantum again") \
	X(orphan_mask, ORPHAN_MASK, 32, 0, 4294967295, 1023, "mask", \
	  "mask of the hash that groups packets into flows which have no socket, or an " \
	  "unconnected one without SO_MAX_PACING_RATE") \
	X(low_rate_threshold, LOW_RATE_THRESHOLD, 32, 0, 4294967295, 68750, "bytes/s", \
	  "below this rate each packet is paced, with any quantum") \
	X(ce_threshold, CE_THRESHOLD, 32, 0, 4294967295, 4294967295, "us", \
	  "mark ECN-capable packets that leave later than this after their due time") \
	X(timer_slack, TIMER_SLACK, 32, 0, 4294967295, 10000, "ns", \
	  "how late the timer may expire, to share interrupts; for fast flows less") \
	X(horizon, HORIZON, 32, 0, 4294967295, 10000000, "us", \
	  "how far in the future a packet's timestamp may be") \
	X(horizon_drop, HORIZON_DROP, 8, 0, 1, 1, "flag", \
	  "drop packets with a timestamp beyond the horizon; 0: send them at the horizon") \
	X(offload_horizon, OFFLOAD_HORIZON, 32, 0, 4294967295, 0, "us", \
	  "pass packets that are due within this time to a device that paces in hardware") \
	X(slot, SLOT, 32, 256, 1048576, 1024, "ns", \
	  "width of the timing wheel's slots, rounded up to a power of two") \
	X(lazy, LAZY, 8, 0, 1, 1, "flag", \
	  "read a flow's rate again when its packet is due") \
	X(split, SPLIT, 32, 0, 524288, 0, "bytes", \
	  "split GSO packets into paced sub-segments of at most this size; 0: do not split") \
	X(split_rate, SPLIT_RATE, 64, 0, 18446744073709551615, 0, "bytes/s", \
	  "rate of the sub-segments of a packet; 0: the flow's rate") \
	X(ack_first, ACK_FIRST, 8, 0, 1, 0, "flag", \
	  "pure ACKs overtake other packets") \
	X(ack_dscp, ACK_DSCP, 8, 0, 63, 255, "DSCP", \
	  "DSCP of pure ACKs; 255: unchanged") \
	X(ack_priority, ACK_PRIORITY, 8, 0, 15, 255, "priority", \
	  "skb priority of pure ACKs; 255: unchanged") \
	X(ack_time, ACK_TIME, 8, 0, 1, 1, "flag", \
	  "write the time into the IPv4 ID of pure ACKs") \
	X(ack_thin, ACK_THIN, 8, 0, 1, 1, "flag", \
	  "a pure ACK replaces an earlier one of its connection that still waits") \
	X(wrong_clock_drop, WRONG_CLOCK_DROP, 8, 0, 1, 0, "flag", \
	  "drop packets with a timestamp of another clock; 0: ignore the timestamp") \
	X(onramp, ONRAMP, 32, 1000, 1000000000, 0, "ns", \
	  "pause flows while the delay of their path exceeds this; 0: never") \
	X(onramp_gain, ONRAMP_GAIN, 32, 1, 65536, 4096, "65536ths", \
	  "weight of a new value in the moving average of On-Ramp's b") \
	X(onramp_owd, ONRAMP_OWD, 8, 0, 2, 1, "kind", \
	  "delay: 0 absolute one-way, 1 relative one-way, 2 RTT") \
	X(onramp_pause_max, ONRAMP_PAUSE_MAX, 32, 1000, 1000000000, 10000000, "ns", \
	  "longest pause") \
	X(onramp_strawman, ONRAMP_STRAWMAN, 8, 0, 1, 0, "flag", \
	  "ignore pauses whose effect is not visible yet (the paper's strawman)") \
	X(onramp_clock_error, ONRAMP_CLOCK_ERROR, 32, 0, 1000000000, 0, "ns", \
	  "largest error of synchronised clocks, added to the threshold of absolute delays")

/* Option weights: bytes that a band may send before the next band. The minimum, and the defaults of
 * the three bands, are those of fq.
 */
#define TIMELY_QDISC_MIN_WEIGHT		16384
#define TIMELY_QDISC_DEFAULT_WEIGHTS	{ 9 << 16, 3 << 16, 1 << 16 }
/* Option priomap: the band of each of the 16 priorities; the default is that of pfifo_fast. */
#define TIMELY_QDISC_DEFAULT_PRIOMAP \
	{ 1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1 }

#endif /* _NET_TIMELY_QDISC_H */
