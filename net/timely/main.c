// SPDX-License-Identifier: GPL-2.0
/*
 * Module `timely`: the engines, for the modules that are doors to them, what
 * they share, and the netlink family that tells of it. The engines' own files
 * stay free of the kernel's module machinery, so that they compile in user space
 * as they are.
 */

#include <linux/export.h>
#include <linux/module.h>

#include <net/timely.h>
#include <net/timely_clock.h>
#include <net/timely_counters.h>
#include <net/timely_flow.h>
#include <net/timely_link.h>
#include <net/timely_netlink.h>
#include <net/timely_nic.h>
#include <net/timely_onramp.h>
#include <net/timely_orack.h>
#include <net/timely_owd.h>
#include <net/timely_path.h>
#include <net/timely_pause.h>
#include <net/timely_rtt.h>
#include <net/timely_steer.h>
#include <net/timely_tenant.h>
#include <net/timely_tune.h>
#include <net/timely_wheel.h>

EXPORT_SYMBOL_GPL(timely_rate_law_init);
EXPORT_SYMBOL_GPL(timely_rate_init);
EXPORT_SYMBOL_GPL(timely_rate_reseed);
EXPORT_SYMBOL_GPL(timely_rate_lose);
EXPORT_SYMBOL_GPL(timely_rate_begin);
EXPORT_SYMBOL_GPL(timely_rate_restart);
EXPORT_SYMBOL_GPL(timely_rate_update);
EXPORT_SYMBOL_GPL(timely_loss_share_q16);
EXPORT_SYMBOL_GPL(timely_loss_init);
EXPORT_SYMBOL_GPL(timely_loss_is_free);

EXPORT_SYMBOL_GPL(timely_rtt_refusal);
EXPORT_SYMBOL_GPL(timely_noise_add);

EXPORT_SYMBOL_GPL(timely_clock_init);
EXPORT_SYMBOL_GPL(timely_clock_take);
EXPORT_SYMBOL_GPL(timely_clock_bracket);
EXPORT_SYMBOL_GPL(timely_clock_forget);
EXPORT_SYMBOL_GPL(timely_clock_uncertainty_ns);

EXPORT_SYMBOL_GPL(timely_nic_arrival);
EXPORT_SYMBOL_GPL(timely_nic_stamp);

EXPORT_SYMBOL_GPL(timely_param_descs);
EXPORT_SYMBOL_GPL(timely_presets);
EXPORT_SYMBOL_GPL(timely_preset_count);
EXPORT_SYMBOL_GPL(timely_preset_find);
EXPORT_SYMBOL_GPL(timely_param_ref);
EXPORT_SYMBOL_GPL(timely_param_allowed);
EXPORT_SYMBOL_GPL(timely_params_are_auto);
EXPORT_SYMBOL_GPL(timely_params_check);

EXPORT_SYMBOL_GPL(timely_steer_ref_ns);
EXPORT_SYMBOL_GPL(timely_tune);
EXPORT_SYMBOL_GPL(timely_drain_init);
EXPORT_SYMBOL_GPL(timely_drain_set);
EXPORT_SYMBOL_GPL(timely_drain_look);
EXPORT_SYMBOL_GPL(timely_drain_watch_add);
EXPORT_SYMBOL_GPL(timely_drain_base_ns);
EXPORT_SYMBOL_GPL(timely_first_base_ns);

EXPORT_SYMBOL_GPL(timely_link_epoch);
EXPORT_SYMBOL_GPL(timely_link_get);
EXPORT_SYMBOL_GPL(timely_link_of);
EXPORT_SYMBOL_GPL(timely_link_put);

EXPORT_SYMBOL_GPL(timely_path_late);
EXPORT_SYMBOL_GPL(timely_path_tell);
EXPORT_SYMBOL_GPL(timely_path_drained);
EXPORT_SYMBOL_GPL(timely_path_forget);

EXPORT_SYMBOL_GPL(timely_pause_init);
EXPORT_SYMBOL_GPL(timely_pause_hear);
EXPORT_SYMBOL_GPL(timely_pause_start);
EXPORT_SYMBOL_GPL(timely_resume_init);
EXPORT_SYMBOL_GPL(timely_resume_hold);
EXPORT_SYMBOL_GPL(timely_resume_go_on);
EXPORT_SYMBOL_GPL(timely_floor_init);
EXPORT_SYMBOL_GPL(timely_floor_add);
EXPORT_SYMBOL_GPL(timely_floor_shift);

EXPORT_SYMBOL_GPL(timely_owd_init);
EXPORT_SYMBOL_GPL(timely_owd_least);
EXPORT_SYMBOL_GPL(timely_owd_rtt);
EXPORT_SYMBOL_GPL(timely_owd_relative);
EXPORT_SYMBOL_GPL(timely_owd_absolute);

EXPORT_SYMBOL_GPL(timely_orack_encode);
EXPORT_SYMBOL_GPL(timely_orack_decode);
EXPORT_SYMBOL_GPL(timely_orack_verify);
EXPORT_SYMBOL_GPL(timely_udp_digest);

EXPORT_SYMBOL_GPL(timely_wheel_init);
EXPORT_SYMBOL_GPL(timely_wheel_add);
EXPORT_SYMBOL_GPL(timely_wheel_del);
EXPORT_SYMBOL_GPL(timely_wheel_expire_slow);
EXPORT_SYMBOL_GPL(timely_wheel_next_ns);

EXPORT_SYMBOL_GPL(timely_flow_key);
EXPORT_SYMBOL_GPL(timely_flow_register);
EXPORT_SYMBOL_GPL(timely_flow_unregister);
EXPORT_SYMBOL_GPL(timely_flow_wanted_slow);
EXPORT_SYMBOL_GPL(timely_flow_open);
EXPORT_SYMBOL_GPL(timely_flow_close);
EXPORT_SYMBOL_GPL(timely_flow_get);
EXPORT_SYMBOL_GPL(timely_flow_put);
EXPORT_SYMBOL_GPL(timely_flow_attach);
EXPORT_SYMBOL_GPL(timely_flow_detach);
EXPORT_SYMBOL_GPL(timely_flow_hold);
EXPORT_SYMBOL_GPL(timely_flow_queue);
EXPORT_SYMBOL_GPL(timely_flow_changed);
EXPORT_SYMBOL_GPL(timely_flow_take_changed);
EXPORT_SYMBOL_GPL(timely_flow_depart);
EXPORT_SYMBOL_GPL(timely_flow_departure);
EXPORT_SYMBOL_GPL(timely_flow_pause);

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
