/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The decisions of a switch that trims packets (NDP, SIGCOMM'17). See net/timely/engine/trim.c.
 */
#ifndef _TIMELY_ENGINE_TRIM_H
#define _TIMELY_ENGINE_TRIM_H

#include <linux/types.h>

/* Values of timely_trim_cfg.victim, those of TCA_TRIM_VICTIM. */
#define TIMELY_TRIM_COIN		0
#define TIMELY_TRIM_ONLY_ARRIVAL	1
#define TIMELY_TRIM_ONLY_TAIL		2

/* DSCP of a packet that has none, because it is not IP. */
#define TIMELY_TRIM_NO_DSCP		64

/* Headers are read up to this offset, bytes: link header, VLAN tags, and IPv6 extension headers. */
#define TIMELY_TRIM_HEADERS_MAX		256

/* Bytes behind the IP headers that a trimmed packet has at least: ports, or a UDP header. */
#define TIMELY_TRIM_TRANSPORT_BYTES	8

/**
 * enum timely_trim_kind - whether a packet can be trimmed, and if not, why
 * @TIMELY_TRIM_POSSIBLE: the packet can be trimmed
 * @TIMELY_TRIM_SHORT: it is not longer than a trimmed packet
 * @TIMELY_TRIM_DSCP: its DSCP is not trimmable
 * @TIMELY_TRIM_NOT_IP: it is neither IPv4 nor IPv6
 * @TIMELY_TRIM_FRAGMENT: it is a fragment: the receiver could not tell where its data end
 * @TIMELY_TRIM_IPSEC: it is ESP or AH, whose receiver would reject the packet
 * @TIMELY_TRIM_HEADERS: its headers are invalid, or do not fit into a trimmed packet
 * @TIMELY_TRIM_KINDS: number of kinds
 */
enum timely_trim_kind {
	TIMELY_TRIM_POSSIBLE,
	TIMELY_TRIM_SHORT,
	TIMELY_TRIM_DSCP,
	TIMELY_TRIM_NOT_IP,
	TIMELY_TRIM_FRAGMENT,
	TIMELY_TRIM_IPSEC,
	TIMELY_TRIM_HEADERS,
	TIMELY_TRIM_KINDS
};

/**
 * struct timely_trim_cfg - the options of a port, each within the range that TIMELY_TRIM_OPTIONS
 *	gives
 * @control: bit N: packets with DSCP N enter the header queue untrimmed; includes @dscp
 * @trimmable: bit N: packets with DSCP N may be trimmed
 * @limit: maximum length of the data queue, packets
 * @header_limit: maximum length of the header queue, bytes
 * @size: length of a trimmed packet, bytes
 * @ratio: packets sent from the header queue for each packet from the data queue
 * @dscp: DSCP of trimmed packets
 * @victim: which packet is trimmed, TIMELY_TRIM_COIN and so on
 * @give_back: trimmed packets are returned to their sender if the header queue is full
 */
struct timely_trim_cfg {
	u64 control;
	u64 trimmable;
	u32 limit;
	u32 header_limit;
	u32 size;
	u32 ratio;
	u8 dscp;
	u8 victim;
	bool give_back;
};

/**
 * struct timely_trim_packet - where the headers of a packet are
 * @network: offset of the IP header, bytes
 * @transport: offset of the header behind the IP header and its extension headers, bytes
 * @ipv6: the packet is IPv6, otherwise IPv4
 * @protocol: protocol of the transport header
 */
struct timely_trim_packet {
	u32 network;
	u32 transport;
	bool ipv6;
	u8 protocol;
};

/**
 * struct timely_trim_round - the state of the weighted round robin
 * @headers: packets sent from the header queue since the last packet from the data queue, while
 *	both queues had packets
 */
struct timely_trim_round {
	u32 headers;
};

/**
 * timely_trim_is_control() - decide whether a packet enters the header queue as it is
 * @cfg: the options
 * @dscp: the packet's DSCP, or TIMELY_TRIM_NO_DSCP
 *
 * Return: true if the packet is a control packet, or was trimmed before.
 */
static inline bool timely_trim_is_control(const struct timely_trim_cfg *cfg, u32 dscp)
{
	return dscp < TIMELY_TRIM_NO_DSCP && (cfg->control >> dscp & 1);
}

/**
 * timely_trim_headers_next() - decide which queue is served next
 * @round: the state; changed
 * @cfg: the options
 * @headers: the header queue has packets
 * @data: the data queue has packets
 *
 * Return: true for the header queue, false for the data queue.
 */
static inline bool timely_trim_headers_next(struct timely_trim_round *round,
					    const struct timely_trim_cfg *cfg,
					    bool headers, bool data)
{
	if (headers && !data)
		return true;
	if (headers && round->headers < cfg->ratio) {
		round->headers++;
		return true;
	}
	round->headers = 0;
	return false;
}

/**
 * timely_trim_fits() - decide whether a packet has room in the header queue
 * @cfg: the options
 * @queued: length of the header queue, bytes
 * @bytes: length of the packet, bytes
 *
 * Return: true if the packet may enter the queue.
 */
static inline bool timely_trim_fits(const struct timely_trim_cfg *cfg, u64 queued, u32 bytes)
{
	return queued + bytes <= cfg->header_limit;
}

/**
 * timely_trim_wants_tail() - decide which packet is trimmed when the data queue is full
 * @cfg: the options
 * @random: a random number, whose lowest bit is used
 *
 * Return: true for the last packet of the data queue, if that packet can be trimmed; false for the
 * arrival.
 */
static inline bool timely_trim_wants_tail(const struct timely_trim_cfg *cfg, u32 random)
{
	if (cfg->victim == TIMELY_TRIM_COIN)
		return random & 1;
	return cfg->victim == TIMELY_TRIM_ONLY_TAIL;
}

enum timely_trim_kind timely_trim_parse(struct timely_trim_packet *packet,
					const struct timely_trim_cfg *cfg, const u8 *frame,
					u32 bytes, u32 length, u32 network, u32 ethertype);
void timely_trim_rewrite(u8 *frame, const struct timely_trim_packet *packet, u32 length,
			 u8 dscp);
bool timely_trim_may_return(const u8 *frame, const struct timely_trim_packet *packet);
void timely_trim_return(u8 *frame, const struct timely_trim_packet *packet);

#endif /* _TIMELY_ENGINE_TRIM_H */
