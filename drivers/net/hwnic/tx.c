// SPDX-License-Identifier: GPL-2.0
/*
 * The sending side: puts packets of the stack into the TX ring and computes when each frame leaves.
 *
 * The ring keeps the packet of the stack until its last bit has left, so that TCP small queues and
 * BQL see the same as with a real NIC. The receiver gets copies, one for each frame, as if by DMA.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/math64.h>
#include <linux/netdevice.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/skbuff.h>
#include <net/gso.h>

#include "hwnic.h"

/* A fixed key: the same flow hashes in each run. */
static const siphash_key_t tx_flow_key = { { 0x6877, 0x6e6963 } };

/* A byte takes BYTE_NS_MBPS / (link rate in Mb/s) ns on the link. */
#define BYTE_NS_MBPS	8000

/* Size of a frame with its VLAN tag, at least 60 bytes; without HWNIC_WIRE_BYTES. */
static u32 tx_frame_bytes(const struct sk_buff *skb)
{
	u32 bytes = skb->len + (skb_vlan_tag_present(skb) ? VLAN_HLEN : 0);

	return max_t(u32, bytes, ETH_ZLEN);
}

/* When the last bit of frame number @index, from 0, leaves: CLOCK_MONOTONIC. */
static u64 tx_departure_ns(const struct hwnic_tx_cb *cb, u32 index)
{
	u64 bytes = (u64)(index + 1) * (cb->frame_bytes + HWNIC_WIRE_BYTES);

	if (index + 1 == cb->frames)
		bytes = bytes + cb->last_bytes - cb->frame_bytes;
	return cb->start_ns + div_u64(cb->rest + bytes * BYTE_NS_MBPS, cb->speed_mbps);
}

/* The last bit of the packet's next frame has left. */
static void tx_frame_gone(struct hwnic *end, struct sk_buff *skb, u64 departure_ns)
{
	struct hwnic_tx_cb *cb = hwnic_tx_cb(skb);
	u32 index = cb->gone++;
	u32 bytes = cb->gone == cb->frames ? cb->last_bytes : cb->frame_bytes;

	end->tx_frames--;
	end->tx_bytes -= bytes;
	end->count.tx_frames++;
	end->count.tx_bytes += bytes;
	if (hwnic_truth_wants(end, HWNIC_TRUTH_T))
		hwnic_truth_tcp(end, HWNIC_TRUTH_T, skb, departure_ns, index);
	if (hwnic_truth_wants(end, HWNIC_TRUTH_Q))
		hwnic_truth_queue(end, departure_ns);
}

/**
 * hwnic_tx_catch_up() - process departures
 * @end: the end, locked
 * @now_ns: up to this time
 */
void hwnic_tx_catch_up(struct hwnic *end, u64 now_ns)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&end->tx_pending))) {
		struct hwnic_tx_cb *cb = hwnic_tx_cb(skb);

		while (cb->gone < cb->frames) {
			u64 departure_ns = tx_departure_ns(cb, cb->gone);

			if (departure_ns > now_ns)
				return;
			tx_frame_gone(end, skb, departure_ns);
		}
		if (cb->stamp)
			cb->start_ns = hwnic_stamp_ns(end, cb->done_ns - cb->early_ns);
		__skb_unlink(skb, &end->tx_pending);
		__skb_queue_tail(&end->tx_done, skb);
	}
}

/* Moves packets that have left from the TX ring to @done. Call it with the lock held. */
void hwnic_tx_complete(struct hwnic *end, struct sk_buff_head *done)
{
	u32 packets = 0, bytes = 0;
	struct sk_buff *skb;

	skb_queue_walk(&end->tx_done, skb) {
		end->tx_used -= hwnic_tx_cb(skb)->frames;
		bytes += hwnic_tx_cb(skb)->bql_bytes;
		packets += !!hwnic_tx_cb(skb)->bql_bytes;
	}
	skb_queue_splice_tail_init(&end->tx_done, done);
	if (packets)
		netdev_tx_completed_queue(netdev_get_tx_queue(end->dev, 0), packets, bytes);
	if (end->up && netif_queue_stopped(end->dev) && end->tx_used < end->tx_ring)
		netif_wake_queue(end->dev);
}

/* Frees sent packets and delivers their TX timestamps. Call it without the lock. */
void hwnic_tx_free(struct hwnic *end, struct sk_buff_head *done, int budget)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(done))) {
		if (hwnic_tx_cb(skb)->stamp) {
			struct skb_shared_hwtstamps stamps = {
				.hwtstamp = ns_to_ktime(hwnic_tx_cb(skb)->start_ns),
			};

			skb_tstamp_tx(skb, &stamps);
		}
		napi_consume_skb(skb, budget);
	}
}

/* The device is closed: packets in the TX ring are lost. */
void hwnic_tx_flush(struct hwnic *end)
{
	__skb_queue_purge(&end->tx_pending);
	__skb_queue_purge(&end->tx_done);
	end->tx_used = 0;
	end->tx_frames = 0;
	end->tx_bytes = 0;
	end->link_free_ns = 0;
	netdev_tx_reset_queue(netdev_get_tx_queue(end->dev, 0));
}

/* Returns copies of a packet's frames as a list; NULL if there is no memory. Segmentation would
 * move the packet's socket and destructor to the frames. Both are removed meanwhile, so that the
 * packet keeps them until its last bit has left.
 */
static struct sk_buff *tx_make_frames(struct sk_buff *skb, struct net_device *dev)
{
	netdev_features_t features = dev->features & ~NETIF_F_GSO_MASK;
	void (*destructor)(struct sk_buff *skb) = skb->destructor;
	struct sock *sk = skb->sk;
	struct sk_buff *frames;

	if (!skb_is_gso(skb))
		return pskb_copy(skb, GFP_ATOMIC);
	skb->destructor = NULL;
	skb->sk = NULL;
	frames = skb_gso_segment(skb, features);
	skb->sk = sk;
	skb->destructor = destructor;
	return IS_ERR(frames) ? NULL : frames;
}

/* Clears the fields of the skbs that a cable does not carry, gives all frames the hash of their
 * flow, and sets the frames' number and sizes in @cb. Returns the sum of the sizes, bytes.
 */
static u32 tx_prepare_frames(struct sk_buff *skb, struct sk_buff *frames,
			     struct hwnic_tx_cb *cb)
{
	u32 flow = skb_get_hash_perturb(skb, &tx_flow_key);
	struct sk_buff *frame;
	u32 bytes = 0;

	cb->frames = 0;
	cb->gone = 0;
	cb->frame_bytes = tx_frame_bytes(frames);
	for (frame = frames; frame; frame = frame->next) {
		cb->last_bytes = tx_frame_bytes(frame);
		cb->frames++;
		bytes += cb->last_bytes;
		skb_scrub_packet(frame, true);
		/* Scrubbing keeps the departure time for forwarding. */
		skb_set_delivery_time(frame, 0, 0);
		frame->priority = 0;
#if defined(CONFIG_NET_RX_BUSY_POLL) || defined(CONFIG_XPS)
		/* The NAPI ID by which a forwarded packet came in. */
		frame->napi_id = 0;
#endif
		skb_shinfo(frame)->tx_flags = 0;
		skb_shinfo(frame)->tskey = 0;
		skb_set_hash(frame, flow, PKT_HASH_TYPE_L4);
	}
	return bytes;
}

/* Computes when the packet starts to leave, when each frame arrives, and when the link is free
 * again.
 */
static void tx_schedule(struct hwnic *end, struct hwnic_tx_cb *cb, struct sk_buff *frames,
			u32 bytes, u64 now_ns)
{
	u64 wire_bytes = bytes + cb->frames * HWNIC_WIRE_BYTES;
	struct sk_buff *frame;
	u32 index = 0;

	cb->speed_mbps = end->speed_mbps;
	if (end->link_free_ns < now_ns) {
		cb->start_ns = now_ns;
		cb->rest = 0;
	} else {
		/* The rate has changed: the fraction has another unit and is rounded up. */
		bool same = end->link_free_mbps == cb->speed_mbps;

		cb->start_ns = end->link_free_ns + (!same && end->link_free_rest);
		cb->rest = same ? end->link_free_rest : 0;
	}
	for (frame = frames; frame; frame = frame->next)
		hwnic_rx_cb(frame)->arrival_ns = tx_departure_ns(cb, index++) + end->delay_ns;
	end->link_free_ns = cb->start_ns + div_u64_rem(cb->rest + wire_bytes * BYTE_NS_MBPS,
						  cb->speed_mbps, &end->link_free_rest);
	end->link_free_mbps = cb->speed_mbps;
	cb->done_ns = end->link_free_ns;
}

/* Puts a packet into the TX ring, and stops the queue if the ring is full. */
static void tx_enqueue(struct hwnic *end, struct sk_buff *skb, u32 bytes, u64 now_ns)
{
	struct netdev_queue *queue = netdev_get_tx_queue(end->dev, 0);
	struct hwnic_tx_cb *cb = hwnic_tx_cb(skb);

	cb->stamp = end->tx_type == HWTSTAMP_TX_ON &&
		    skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP;
	cb->early_ns = end->stamp_host ? min_t(u64, cb->done_ns - now_ns, U32_MAX) : 0;
	if (cb->stamp) {
		skb_shinfo(skb)->tx_flags |= SKBTX_IN_PROGRESS;
		end->count.tx_stamped++;
	}
	skb_tx_timestamp(skb);
	cb->bql_bytes = end->flags & HWNIC_FLAG_BQL ? skb->len : 0;
	if (cb->bql_bytes)
		netdev_tx_sent_queue(queue, cb->bql_bytes);
	__skb_queue_tail(&end->tx_pending, skb);
	end->count.tx_packets++;
	end->tx_frames += cb->frames;
	end->tx_bytes += bytes;
	end->tx_used += cb->frames;
	end->count.tx_ring_max = max_t(u64, end->count.tx_ring_max, end->tx_used);
	if (end->tx_used >= end->tx_ring) {
		netif_stop_queue(end->dev);
		end->count.tx_ring_full++;
	}
}

/**
 * hwnic_xmit() - ndo_start_xmit
 * @skb: the packet; a GSO packet of any size that its fields describe
 * @dev: the sending device
 *
 * Return: NETDEV_TX_OK always: the queue is stopped before the TX ring has no room.
 */
netdev_tx_t hwnic_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct hwnic *end = netdev_priv(dev), *peer;
	struct sk_buff *frames;
	u64 now_ns;
	u32 bytes;

	frames = tx_make_frames(skb, dev);
	if (!frames) {
		spin_lock_bh(&end->lock);
		end->count.tx_no_memory++;
		spin_unlock_bh(&end->lock);
		dev_kfree_skb_any(skb);
		return NETDEV_TX_OK;
	}
	bytes = tx_prepare_frames(skb, frames, hwnic_tx_cb(skb));

	spin_lock_bh(&end->lock);
	now_ns = ktime_get_ns();
	hwnic_tx_catch_up(end, now_ns);
	tx_schedule(end, hwnic_tx_cb(skb), frames, bytes, now_ns);
	tx_enqueue(end, skb, bytes, now_ns);
	if (hwnic_truth_wants(end, HWNIC_TRUTH_Q))
		hwnic_truth_queue(end, now_ns);
	hwnic_arm(end);
	spin_unlock_bh(&end->lock);

	rcu_read_lock();
	peer = rcu_dereference(end->peer);
	if (peer)
		hwnic_rx_send(peer, frames);
	else
		kfree_skb_list(frames);
	rcu_read_unlock();
	return NETDEV_TX_OK;
}
