// SPDX-License-Identifier: GPL-2.0
/*
 * The receiving side: takes frames from the cable, and gives them to the host when their interrupt
 * and their random delay are over.
 *
 * A frame's arrival is known when the frame is sent. So the time of its interrupt and its random
 * delay are decided at once, in order of arrival, and a tree holds the frames in order of their
 * host times. Timestamp, log record and the limit of the RX ring wait until the frame arrives: the
 * clock, the filter or the ring may have changed by then.
 */

#include <linux/etherdevice.h>
#include <linux/if_vlan.h>
#include <linux/net_tstamp.h>
#include <linux/netdevice.h>
#include <linux/ptp_classify.h>
#include <linux/rbtree.h>
#include <linux/skbuff.h>

#include "hwnic.h"

static struct hwnic_rx_cb *rx_node_cb(struct rb_node *node)
{
	return rb_entry(node, struct hwnic_rx_cb, node);
}

/* The order of hwnic.hosts. */
static bool rx_sooner(struct rb_node *left, const struct rb_node *right)
{
	return rx_node_cb(left)->host_ns <
	       rb_entry(right, struct hwnic_rx_cb, node)->host_ns;
}

static struct sk_buff *rx_cb_skb(struct hwnic_rx_cb *cb)
{
	return container_of((char (*)[sizeof_field(struct sk_buff, cb)])cb, struct sk_buff, cb);
}

/* Sets the host time of a frame: its interrupt plus a random delay, but not before the preceding
 * frame of its flow.
 */
static void rx_interrupt(struct hwnic *end, struct sk_buff *skb, u64 interrupt_ns)
{
	struct hwnic_rx_cb *cb = hwnic_rx_cb(skb);

	cb->host_ns = interrupt_ns;
	if (end->jitter_ns) {
		u32 jitter_ns = ((u64)prandom_u32_state(&end->jitter) * (end->jitter_ns + 1)) >> 32;

		end->count.rx_jitter_max_ns = max_t(u64, end->count.rx_jitter_max_ns, jitter_ns);
		cb->host_ns += jitter_ns;
	}
	/* After jitter_ns was set to 0, frames with random delays may still be in the tree. */
	if (end->jitter_ns || cb->host_ns < end->jitter_until_ns) {
		u64 *flow = &end->flow_host_ns[skb->hash & (HWNIC_FLOWS - 1)];

		cb->host_ns = max(cb->host_ns, *flow);
		*flow = cb->host_ns;
		end->jitter_until_ns = max(end->jitter_until_ns, cb->host_ns);
	}
	rb_add_cached(&cb->node, &end->hosts, rx_sooner);
}

/* All frames that wait for an interrupt get it at this time. */
static void rx_batch_interrupt(struct hwnic *end, u64 interrupt_ns)
{
	struct sk_buff *skb, *next;

	for (skb = end->batch; skb; skb = next) {
		next = hwnic_rx_cb(skb)->next;
		rx_interrupt(end, skb, interrupt_ns);
	}
	end->batch = NULL;
	end->batch_frames = 0;
}

/* Interrupt moderation: decides when the interrupt of an arriving frame comes. */
static void rx_plan(struct hwnic *end, struct sk_buff *skb)
{
	u64 arrival_ns = hwnic_rx_cb(skb)->arrival_ns;

	if (end->batch && arrival_ns > end->batch_ns)
		rx_batch_interrupt(end, end->batch_ns);
	if (!end->batch && (!end->rx_usecs || end->rx_batch_frames == 1)) {
		rx_interrupt(end, skb, arrival_ns);
		return;
	}
	hwnic_rx_cb(skb)->next = NULL;
	if (end->batch) {
		hwnic_rx_cb(end->batch_tail)->next = skb;
	} else {
		end->batch = skb;
		end->batch_ns = arrival_ns + (u64)end->rx_usecs * NSEC_PER_USEC;
	}
	end->batch_tail = skb;
	end->batch_frames++;
	if (end->rx_batch_frames && end->batch_frames >= end->rx_batch_frames)
		rx_batch_interrupt(end, arrival_ns);
}

/**
 * hwnic_rx_send() - put frames into the cable
 * @end: the receiving end
 * @frames: list of frames, with hwnic_rx_cb.arrival_ns
 */
void hwnic_rx_send(struct hwnic *end, struct sk_buff *frames)
{
	struct sk_buff *skb, *lost = NULL;

	spin_lock_bh(&end->lock);
	while ((skb = frames)) {
		struct hwnic_rx_cb *cb = hwnic_rx_cb(skb);

		frames = skb->next;
		skb_mark_not_on_list(skb);
		if (!end->up || skb_queue_len(&end->wire) >= HWNIC_FLIGHT_MAX) {
			end->count.wire_lost++;
			skb->next = lost;
			lost = skb;
			continue;
		}
		/* The delay of the cable may have been reduced: keep the order. */
		cb->arrival_ns = max(cb->arrival_ns, end->last_arrival_ns);
		end->last_arrival_ns = cb->arrival_ns;
		cb->dropped = false;
		__skb_queue_tail(&end->wire, skb);
		rx_plan(end, skb);
	}
	hwnic_arm(end);
	spin_unlock_bh(&end->lock);
	kfree_skb_list(lost);
}

/* Is the frame an event message of PTP version 2, over Ethernet or UDP? */
static bool rx_is_ptp_event(struct sk_buff *skb)
{
	unsigned int class = ptp_classify_raw(skb);
	struct ptp_header *header;

	if ((class & PTP_CLASS_VMASK) != PTP_CLASS_V2)
		return false;
	header = ptp_parse_header(skb, class);
	/* Sync 0, Delay_Req 1, Pdelay_Req 2, Pdelay_Resp 3. */
	return header && ptp_get_msgtype(header, class) < 4;
}

/* Gives a frame its hardware timestamp of a time, if the filter says so. */
static void rx_stamp(struct hwnic *end, struct sk_buff *skb, u64 mono_ns)
{
	u64 phc_ns;

	if (end->rx_filter == HWTSTAMP_FILTER_NONE)
		return;
	if (end->rx_filter != HWTSTAMP_FILTER_ALL && !rx_is_ptp_event(skb))
		return;
	phc_ns = hwnic_stamp_ns(end, mono_ns);
	if (end->stamp_wrong && ++end->stamped >= end->stamp_wrong) {
		end->stamped = 0;
		phc_ns -= min_t(u64, phc_ns, HWNIC_WRONG_NS);
	}
	skb_hwtstamps(skb)->hwtstamp = ns_to_ktime(phc_ns);
	end->count.rx_stamped++;
}

/* The last bit of a frame has arrived: log and timestamp the frame, or drop it. */
static void rx_arrive(struct hwnic *end, struct sk_buff *skb)
{
	struct hwnic_rx_cb *cb = hwnic_rx_cb(skb);

	if (hwnic_truth_wants(end, HWNIC_TRUTH_R))
		hwnic_truth_tcp(end, HWNIC_TRUTH_R, skb, cb->arrival_ns, 0);
	if (skb->len > end->dev->mtu + ETH_HLEN + VLAN_HLEN) {
		end->count.rx_length_errors++;
		cb->dropped = true;
	} else if (end->rx_used >= end->rx_ring) {
		end->count.rx_ring_drops++;
		cb->dropped = true;
	}
	if (cb->dropped)
		return;
	end->rx_used++;
	end->count.rx_ring_max = max_t(u64, end->count.rx_ring_max, end->rx_used);
	if (!end->stamp_host)
		rx_stamp(end, skb, cb->arrival_ns);
}

/**
 * hwnic_rx_catch_up() - process arrivals
 * @end: the end, locked
 * @now_ns: up to this time
 */
void hwnic_rx_catch_up(struct hwnic *end, u64 now_ns)
{
	struct sk_buff *skb;

	while ((skb = skb_peek(&end->wire)) && hwnic_rx_cb(skb)->arrival_ns <= now_ns) {
		__skb_unlink(skb, &end->wire);
		rx_arrive(end, skb);
	}
	if (end->batch && end->batch_ns <= now_ns)
		rx_batch_interrupt(end, end->batch_ns);
}

/**
 * hwnic_rx_take() - take the frames whose host time has come
 * @end: the end, locked, after hwnic_catch_up()
 * @now_ns: the present time
 * @budget: most frames to take
 * @due: list that the frames are appended to
 *
 * Return: the number of frames.
 */
int hwnic_rx_take(struct hwnic *end, u64 now_ns, int budget, struct sk_buff_head *due)
{
	struct rb_node *node;
	int taken = 0;

	while (taken < budget && (node = rb_first_cached(&end->hosts))) {
		struct hwnic_rx_cb *cb = rx_node_cb(node);

		if (cb->host_ns > now_ns)
			break;
		rb_erase_cached(node, &end->hosts);
		if (cb->dropped) {
			dev_kfree_skb_any(rx_cb_skb(cb));
			continue;
		}
		if (end->stamp_host)
			rx_stamp(end, rx_cb_skb(cb), cb->host_ns);
		end->rx_used--;
		end->count.rx_frames++;
		end->count.rx_bytes += rx_cb_skb(cb)->len;
		__skb_queue_tail(due, rx_cb_skb(cb));
		taken++;
	}
	end->count.rx_interrupts += !!taken;
	return taken;
}

/* Call it without the lock: the stack may send an answer through this device at once. */
void hwnic_rx_deliver(struct hwnic *end, struct sk_buff_head *due)
{
	struct sk_buff *skb;

	while ((skb = __skb_dequeue(due))) {
		skb->protocol = eth_type_trans(skb, end->dev);
		napi_gro_receive(&end->napi, skb);
	}
}

/* When the next frame or interrupt is due, CLOCK_MONOTONIC; U64_MAX: never. */
u64 hwnic_rx_next_ns(const struct hwnic *end)
{
	struct rb_node *node = rb_first_cached(&end->hosts);
	u64 next_ns = node ? rx_node_cb(node)->host_ns : U64_MAX;

	return end->batch ? min(next_ns, end->batch_ns) : next_ns;
}

/* The device is closed: frames in the cable and in the RX ring are lost. */
void hwnic_rx_flush(struct hwnic *end)
{
	struct rb_node *node;

	rx_batch_interrupt(end, 0);
	while ((node = rb_first_cached(&end->hosts))) {
		rb_erase_cached(node, &end->hosts);
		dev_kfree_skb_any(rx_cb_skb(rx_node_cb(node)));
	}
	/* All frames of the cable were also in the tree, and have been freed. */
	__skb_queue_head_init(&end->wire);
	end->rx_used = 0;
	end->jitter_until_ns = 0;
	memset(end->flow_host_ns, 0, HWNIC_FLOWS * sizeof(*end->flow_host_ns));
}
