// SPDX-License-Identifier: GPL-2.0
/*
 * Loading and unloading of the module tcp_timely.
 *
 * The congestion controls are registered last and unregistered first: while they are registered,
 * sockets can use them, and need the parameters, flow entries and timestamps.
 */

#include <linux/module.h>
#include <uapi/linux/timely_version.h>

#include <net/timely_flow.h>

#include "tcp_timely.h"
#include "tcp_timely_realtime.h"

static int __init timely_register(void)
{
	int err;

	timely_realtime_init();
	err = timely_params_init();
	if (err)
		return err;
	err = timely_flow_register(timely_ops, TIMELY_CC_COUNT, timely_describe);
	if (err)
		goto no_entries;
	err = timely_hooks_join();
	if (err)
		goto no_hooks;
	err = timely_register_controls();
	if (err)
		goto no_controls;
	return 0;

no_controls:
	timely_hooks_leave();
no_hooks:
	timely_flow_unregister();
no_entries:
	timely_params_exit();
	return err;
}

static void __exit timely_unregister(void)
{
	timely_unregister_controls();
	timely_hooks_leave();
	timely_flow_unregister();
	timely_params_exit();
}

module_init(timely_register);
module_exit(timely_unregister);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(TIMELY_VERSION);
/* When a program selects a congestion control by name, the kernel loads the module tcp_<name>. */
MODULE_ALIAS("tcp_timely_patched");
MODULE_ALIAS("tcp_timely_paper");
MODULE_ALIAS("tcp_timely_fast");
MODULE_ALIAS("tcp_timely_swift");
MODULE_ALIAS("tcp_timely_powertcp");
MODULE_DESCRIPTION("Congestion control for the datacenter by RTTs. The default rule is a target-delay rule of this project, descended from TIMELY; timely_paper is the algorithm of the TIMELY paper");
