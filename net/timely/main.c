// SPDX-License-Identifier: GPL-2.0
/*
 * Loads and unloads module timely.
 *
 * The module contains what tcp_timely, sch_timely and timely_acker share: the engines
 * (net/timely/engine/), flow entries, links, NICs and their clock mappings, paths and peers,
 * On-Ramp's sender, budgets of network namespaces, and the netlink family that shows this state.
 * Each part is initialised after the parts that it uses.
 */

#include <linux/module.h>
#include <uapi/linux/timely_version.h>

#include <net/timely_common_time.h>
#include <net/timely_flow.h>
#include <net/timely_link.h>
#include <net/timely_netlink.h>
#include <net/timely_nic.h>
#include <net/timely_onramp.h>
#include <net/timely_path.h>
#include <net/timely_tenant.h>

static int __init timely_load(void)
{
	int err;

	timely_path_init();
	err = timely_tenant_init();
	if (err)
		return err;
	err = timely_common_time_init();
	if (err)
		goto no_common_time;
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
	timely_common_time_exit();
no_common_time:
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
	timely_common_time_exit();
	timely_tenant_exit();
}

module_init(timely_load);
module_exit(timely_unload);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(TIMELY_VERSION);
MODULE_DESCRIPTION("TIMELY: rate computation, RTT measurement, clock mappings of NICs, timing wheel, flow entries");
