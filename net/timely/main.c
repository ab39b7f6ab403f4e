// SPDX-License-Identifier: GPL-2.0
/*
 * Module `timely`: the engines, for the modules that are doors to them. The
 * engines' own files stay free of the kernel's module machinery, so that they
 * compile in user space as they are.
 */

#include <linux/export.h>
#include <linux/module.h>

#include <net/timely.h>

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

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("TIMELY's engines: rate computation");
