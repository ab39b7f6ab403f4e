// SPDX-License-Identifier: GPL-2.0
/*
 * How the qdisc "trim" reads a packet's headers, trims a packet, and sends a trimmed packet back.
 * net/timely/engine/trim.c decides what the headers become; this file applies the decisions to
 * packet buffers.
 *
 * A packet goes back as if the neighbour at the other end of the link had sent it: with source and
 * destination exchanged in the link header, the IP header and the UDP header, it enters the receive
 * path of the device that it was about to leave by. A bridge then forwards the packet to its
 * sender, a router routes it, and the sending host itself delivers it to the socket. This happens
 * later, in a softirq: no lock of the qdisc is held then. At most net.core.netdev_max_backlog
 * packets wait for it on each CPU.
 *
 * No packet can travel in a loop. A packet is returned only after this qdisc has trimmed it, a
 * trimmed packet is not trimmed again unless another qdisc has a smaller size, and so each return
 * makes the packet shorter.
 */

#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>

#include "sch_trim.h"

/* A frame with more VLAN tags in its data counts as neither IPv4 nor IPv6. */
#define TRIM_VLAN_TAGS_MAX	2

/* The type and the offset of the network header. A tag in the packet buffer's metadata is not part
 * of the data; tags in the data are skipped.
 */
static __be16 trim_network(const struct sk_buff *skb, u32 *offset)
{
	const struct vlan_hdr *vlan;
	__be16 type = skb->protocol;
	struct vlan_hdr buffer;
	u32 i;

	*offset = skb_network_offset(skb);
	if (likely(!eth_type_vlan(type)))
		return type;
	*offset = ETH_HLEN;
	for (i = 0; i < TRIM_VLAN_TAGS_MAX && eth_type_vlan(type); i++) {
		vlan = skb_header_pointer(skb, *offset, sizeof(buffer), &buffer);
		if (!vlan)
			return 0;
		type = vlan->h_vlan_encapsulated_proto;
		*offset += VLAN_HLEN;
	}
	return type;
}

/**
 * trim_dscp() - get the DSCP of a packet
 * @skb: the packet
 *
 * Return: the DSCP; TIMELY_TRIM_NO_DSCP if the packet is not IP or has no IP header in its linear
 * part.
 */
u32 trim_dscp(const struct sk_buff *skb)
{
	u32 offset, linear = skb_headlen(skb);
	__be16 type = trim_network(skb, &offset);

	if (unlikely(offset > linear || linear - offset < sizeof(struct iphdr)))
		return TIMELY_TRIM_NO_DSCP;
	if (type == htons(ETH_P_IP))
		return ((const struct iphdr *)(skb->data + offset))->tos >> 2;
	if (type == htons(ETH_P_IPV6))
		return be16_to_cpup((const __be16 *)(skb->data + offset)) >> 6 & 63;
	return TIMELY_TRIM_NO_DSCP;
}

/**
 * trim_bytes() - get the length that a packet has for queues after it is trimmed
 * @skb: the packet
 * @size: bytes that remain of the packet, fewer than it has
 *
 * What a size table (tc-stab(8)) has added to the length of the packet, or subtracted, stays.
 *
 * Return: the length, bytes, at least 1.
 */
u32 trim_bytes(const struct sk_buff *skb, u32 size)
{
	u32 removed = skb->len - size, bytes = qdisc_pkt_len(skb);

	return bytes > removed ? bytes - removed : 1;
}

/**
 * trim_parse() - find a packet's headers, and decide whether the packet can be trimmed
 * @cfg: the options
 * @skb: the packet; not changed
 * @packet: gets the places of the headers
 *
 * Return: TIMELY_TRIM_POSSIBLE, or the reason why the packet cannot be trimmed.
 */
enum timely_trim_kind trim_parse(const struct timely_trim_cfg *cfg, const struct sk_buff *skb,
				 struct timely_trim_packet *packet)
{
	u32 network, bytes = min_t(u32, skb->len, TIMELY_TRIM_HEADERS_MAX);
	__be16 type = trim_network(skb, &network);
	u8 buffer[TIMELY_TRIM_HEADERS_MAX];
	const u8 *frame = skb_header_pointer(skb, 0, bytes, buffer);

	/* Another user of the same packet buffer would see the changes. */
	if (!frame || skb_shared(skb))
		return TIMELY_TRIM_HEADERS;
	return timely_trim_parse(packet, cfg, frame, bytes, skb->len, network, ntohs(type));
}

/**
 * trim_cut() - trim a packet
 * @cfg: the options
 * @skb: the packet, in no queue
 * @packet: result of trim_parse() for the packet
 *
 * The device must not compute a checksum of the trimmed packet, because the packet would look
 * intact. So a checksum that is still to be computed is computed before.
 *
 * Return: false if there is no memory; the packet can only be dropped then.
 */
bool trim_cut(const struct timely_trim_cfg *cfg, struct sk_buff *skb,
	      const struct timely_trim_packet *packet)
{
	u32 bytes = trim_bytes(skb, cfg->size);

	if (skb->ip_summed == CHECKSUM_PARTIAL && skb_csum_hwoffload_help(skb, 0))
		return false;
	if (pskb_trim(skb, cfg->size) ||
	    skb_ensure_writable(skb, packet->transport + TIMELY_TRIM_TRANSPORT_BYTES))
		return false;
	skb->ip_summed = CHECKSUM_NONE;
	timely_trim_rewrite(skb->data, packet, cfg->size, cfg->dscp);
	qdisc_skb_cb(skb)->pkt_len = bytes;
	return true;
}

/**
 * trim_may_return() - decide whether a packet may go back to its sender after it is trimmed
 * @sch: the qdisc
 * @skb: the packet, trimmed, with writable headers
 * @packet: where its headers are
 *
 * Return: true for UDP packets between unicast addresses on Ethernet devices.
 */
bool trim_may_return(const struct Qdisc *sch, const struct sk_buff *skb,
		     const struct timely_trim_packet *packet)
{
	const struct ethhdr *eth = (const struct ethhdr *)skb->data;

	return qdisc_dev(sch)->type == ARPHRD_ETHER && packet->network >= ETH_HLEN &&
	       is_valid_ether_addr(eth->h_source) && is_valid_ether_addr(eth->h_dest) &&
	       timely_trim_may_return(skb->data, packet);
}

/**
 * trim_return() - send a trimmed packet back to its sender
 * @sch: the qdisc
 * @skb: the packet, in no queue, for which trim_may_return() is true; belongs to the kernel
 *	afterwards, whatever the result is
 * @packet: where its headers are
 *
 * Return: false if the receive path drops the packet, because too many packets wait there or the
 * device is down.
 */
bool trim_return(struct Qdisc *sch, struct sk_buff *skb,
		 const struct timely_trim_packet *packet)
{
	struct ethhdr *eth = (struct ethhdr *)skb->data;
	u8 source[ETH_ALEN];

	ether_addr_copy(source, eth->h_source);
	ether_addr_copy(eth->h_source, eth->h_dest);
	ether_addr_copy(eth->h_dest, source);
	timely_trim_return(skb->data, packet);
	/* The packet has arrived: nothing of its departure is valid any more. */
	skb_orphan(skb);
	skb_clear_hash(skb);
	skb_set_queue_mapping(skb, 0);
	skb_set_delivery_time(skb, 0, 0);
	skb->encapsulation = 0;
	return dev_forward_skb(qdisc_dev(sch), skb) == NET_RX_SUCCESS;
}
