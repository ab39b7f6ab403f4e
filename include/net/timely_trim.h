/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The options of the qdisc "trim": the only definition of their ranges and defaults, used by the
 * module, the tc plugin and tests. The file has only macros, so that user-space programs can
 * include it.
 *
 * TIMELY_TRIM_OPTIONS(X) expands to X(field, ATTR, bits, min, max, default, unit, doc) for each
 * option. The netlink attribute TCA_TRIM_<ATTR> contains the value as an unsigned number of @bits
 * bits. Values from min to max are allowed.
 *
 * Sources of the defaults: limit, ratio, victim and the equal size of both queues are those of the
 * NDP paper (SIGCOMM'17, section 3.1), size is that of SAI. SAI's default DSCP is 0; trimmed
 * packets with DSCP 0 would enter the data queue of the next switch. The default here, CS6, is the
 * value in the examples of SONiC.
 */
#ifndef _NET_TIMELY_TRIM_H
#define _NET_TIMELY_TRIM_H

#define TIMELY_TRIM_OPTIONS(X) \
	X(limit, LIMIT, 32, 1, 1000000, 8, "packets", \
	  "packets in the data queue") \
	X(header_limit, HEADER_LIMIT, 32, 0, 4294967295, 0, "bytes", \
	  "bytes in the header queue; 0: those of limit packets of the device's MTU") \
	X(size, SIZE, 32, 64, 65535, 128, "bytes", \
	  "length of a trimmed packet, with the link header") \
	X(dscp, DSCP, 8, 0, 63, 48, "DSCP", \
	  "DSCP of trimmed packets") \
	X(trimmable, TRIMMABLE, 64, 0, 18446744073709551615, 18446744073709551615, "mask", \
	  "DSCPs of packets that may be trimmed") \
	X(control, CONTROL, 64, 0, 18446744073709551615, 0, "mask", \
	  "DSCPs of packets that enter the header queue untrimmed") \
	X(ratio, RATIO, 32, 1, 1000000, 10, "packets", \
	  "packets sent from the header queue for each packet from the data queue") \
	X(victim, VICTIM, 8, 0, 2, 0, "kind", \
	  "which packet is trimmed: 0 random, 1 the arrival, 2 the last packet of the data queue") \
	X(give_back, RETURN, 8, 0, 1, 0, "flag", \
	  "send a trimmed packet back to its sender if the header queue is full")

#endif /* _NET_TIMELY_TRIM_H */
