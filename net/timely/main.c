// SPDX-License-Identifier: GPL-2.0
/*
 * Module `timely`: the engines, for the modules that are doors to them. The
 * engines' own files stay free of the kernel's module machinery, so that they
 * compile in user space as they are.
 */

#include <linux/export.h>
#include <linux/module.h>

#include <net/timely.h>
#include <net/timely_flow.h>
#include <net/timely_wheel.h>

EXPORT_SYMBOL_GPL(timely_rate_law_init);
EXPORT_SYMBOL_GPL(timely_rate_init);
EXPORT_SYMBOL_GPL(timely_rate_reseed);
EXPORT_SYMBOL_GPL(timely_rate_lose);
EXPORT_SYMBOL_GPL(timely_rate_restart);
EXPORT_SYMBOL_GPL(timely_rate_update);

EXPORT_SYMBOL_GPL(timely_param_descs);
EXPORT_SYMBOL_GPL(timely_presets);
EXPORT_SYMBOL_GPL(timely_preset_count);
EXPORT_SYMBOL_GPL(timely_preset_find);
EXPORT_SYMBOL_GPL(timely_param_ref);
EXPORT_SYMBOL_GPL(timely_params_check);

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
EXPORT_SYMBOL_GPL(timely_flow_queue);
EXPORT_SYMBOL_GPL(timely_flow_changed);
EXPORT_SYMBOL_GPL(timely_flow_take_changed);
EXPORT_SYMBOL_GPL(timely_flow_depart);
EXPORT_SYMBOL_GPL(timely_flow_departure);
EXPORT_SYMBOL_GPL(timely_flow_pause);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TIMELY's engines: rate computation, timing wheel, flow records");
