// SPDX-License-Identifier: GPL-2.0
/*
 * Module `timely`: the engines of net/timely/engine/, the state that tcp_timely, sch_timely and
 * timely_acker share, and the netlink family that shows it. This file holds the names of the
 * RTT counters, and loads and unloads the parts.
 */

#include <linux/module.h>

#include <net/timely_counters.h>
#include <net/timely_flow.h>
#include <net/timely_link.h>
#include <net/timely_netlink.h>
#include <net/timely_nic.h>
#include <net/timely_onramp.h>
#include <net/timely_path.h>
#include <net/timely_tenant.h>

/* ---- counters ---- */

#define TIMELY_RTT_NAME(name, doc)	#name,

const char * const timely_rtt_counter_names[TIMELY_RTT_COUNTER_COUNT] = {
	TIMELY_RTT_COUNTERS(TIMELY_RTT_NAME)
};

#define TIMELY_RTT_DOC(name, doc)	doc,

const char * const timely_rtt_counter_docs[TIMELY_RTT_COUNTER_COUNT] = {
	TIMELY_RTT_COUNTERS(TIMELY_RTT_DOC)
};

/* ---- loading ---- */

static int __init timely_load(void)
{
	int err;

	timely_path_init();
	err = timely_tenant_init();
	if (err)
		return err;
	err = timely_flow_init();
	if (err)
		goto no_flow;
	err = timely_nic_init();
	if (err)
		goto no_nic;
	err = timely_link_init();
	if (err)
		goto no_link;
	err = timely_onramp_init();
	if (err)
		goto no_onramp;
	err = timely_netlink_init();
	if (err)
		goto no_netlink;
	return 0;

no_netlink:
	timely_onramp_exit();
no_onramp:
	timely_link_exit();
no_link:
	timely_nic_exit();
no_nic:
	timely_flow_exit();
no_flow:
	timely_tenant_exit();
	return err;
}

static void __exit timely_unload(void)
{
	timely_netlink_exit();
	timely_onramp_exit();
	timely_link_exit();
	timely_nic_exit();
	timely_flow_exit();
	timely_tenant_exit();
}

module_init(timely_load);
module_exit(timely_unload);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TIMELY's engines: rate computation, RTT measurement, NIC clocks, timing wheel, flow records");
