// SPDX-License-Identifier: GPL-2.0
/*
 * The hook by which On-Ramp's receiver gets received packets: the tracepoints in the functions with
 * which network drivers pass packets to the stack.
 *
 * Why there is no better hook: the receiver needs each packet with the device's timestamp, before
 * GRO merges packets. netfilter, tc and generic XDP run after GRO. XDP in drivers runs before the
 * packet has an sk_buff, and a device has only one XDP program. A device also has only one
 * rx_handler, which bridges, bonds and macvlans use.
 *
 * What the hook relies on: each driver passes received packets to one of the functions that the
 * tracepoints below are named after, and these functions raise the tracepoint before they change
 * the packet. At this point skb->dev is set, skb->data is after the Ethernet header, and the
 * packet's hardware timestamp and NAPI ID are set.
 *
 * How a change of the kernel would be noticed: if a tracepoint has other arguments, this file does
 * not compile (check_trace_callback_type_*()). If the kernel has none of the tracepoints, rules are
 * refused with a message. If a tracepoint is raised at another place, the selftest "acker" fails,
 * which compares OR-ACKs with the packets on the wire.
 */

#include <linux/kernel.h>
#include <linux/tracepoint.h>
#include <linux/types.h>
#include <trace/events/net.h>

#include <net/timely_tracepoint.h>

#include "timely_acker.h"

static const char * const acker_point_names[] = {
	/* The first ACKER_POLLED tracepoints are raised only in NAPI polls. */
	"napi_gro_receive_entry",
	"napi_gro_frags_entry",
	/* The following tracepoints are raised in any context. */
	"netif_receive_skb_entry",
	"netif_receive_skb_list_entry",
	"netif_rx_entry",
};

#define ACKER_POLLED	2

/* The tracepoints, in the order of their names; NULL if the kernel has no tracepoint of that name.
 */
static struct tracepoint *acker_points[ARRAY_SIZE(acker_point_names)];

/**
 * timely_acker_hooks_init() - find the tracepoints of the running kernel; called once
 */
void timely_acker_hooks_init(void)
{
	acker_probe_t *probe = NULL; /* only the type of the pointer is checked */
	int i;

	check_trace_callback_type_napi_gro_receive_entry(probe);
	check_trace_callback_type_napi_gro_frags_entry(probe);
	check_trace_callback_type_netif_receive_skb_entry(probe);
	check_trace_callback_type_netif_receive_skb_list_entry(probe);
	check_trace_callback_type_netif_rx_entry(probe);
	for (i = 0; i < ARRAY_SIZE(acker_points); i++)
		acker_points[i] = timely_tracepoint_find(acker_point_names[i]);
}

/**
 * timely_acker_has_points() - check whether the kernel has any of the tracepoints
 *
 * Return: false if the kernel has none of the tracepoints, so that no packet can be answered.
 */
bool timely_acker_has_points(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(acker_points); i++)
		if (acker_points[i])
			return true;
	return false;
}

/* Get the first argument of the tracepoint probe: not NULL if the tracepoint is reached only from
 * NAPI polls.
 */
static void *acker_polled(int point)
{
	return (void *)(unsigned long)(point < ACKER_POLLED);
}

/* Leave the first @count tracepoints. No CPU runs @probe any more when the function returns. */
static void acker_leave_points(acker_probe_t *probe, int count)
{
	while (count--)
		if (acker_points[count])
			tracepoint_probe_unregister(acker_points[count], probe,
						    acker_polled(count));
	tracepoint_synchronize_unregister();
}

/**
 * timely_acker_hooks_join() - call a function with each packet that a driver passes to the stack
 * @probe: the function; the first argument is not NULL if the tracepoint is reached only from NAPI
 *	polls
 *
 * Context: process, under timely_acker_mutex.
 * Return: 0; or -ENOMEM, and no tracepoint calls @probe.
 */
int timely_acker_hooks_join(acker_probe_t *probe)
{
	int err, i;

	for (i = 0; i < ARRAY_SIZE(acker_points); i++) {
		if (!acker_points[i])
			continue;
		err = tracepoint_probe_register(acker_points[i], probe, acker_polled(i));
		if (err) {
			acker_leave_points(probe, i);
			return err;
		}
	}
	return 0;
}

/**
 * timely_acker_hooks_leave() - undo timely_acker_hooks_join()
 * @probe: the function; no CPU runs it any more when timely_acker_hooks_leave() returns
 *
 * Context: process, under timely_acker_mutex.
 */
void timely_acker_hooks_leave(acker_probe_t *probe)
{
	acker_leave_points(probe, ARRAY_SIZE(acker_points));
}
