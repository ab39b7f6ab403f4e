// SPDX-License-Identifier: GPL-2.0
/*
 * The parameters of tcp_timely: where they come from, and in force.
 *
 * The module's own parameters are what each network namespace starts with. From
 * then on it has its own, in /proc/sys/net/ipv4/timely/, where its administrator
 * can change them: connections follow with their next ACK, as nothing but the
 * pointer to a set of parameters, which is never changed itself, is replaced.
 *
 * There are neither locks nor references on the path of an ACK: a connection looks
 * up its namespace's set each time. See timely_net_setting() for how long that lives.
 */

#include <linux/cred.h>
#include <linux/kstrtox.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sysctl.h>
#include <linux/user_namespace.h>

#include <net/timely_counters.h>
#include <timely_sysctl.h>
#include <timely/engine/tune.h>

#include "tcp_timely.h"

unsigned int timely_net_id __ro_after_init;

struct timely_setting timely_loaded __ro_after_init;

/* ---- a set of parameters ---- */

/**
 * timely_law_init() - make parameters ready for the path of an ACK
 * @law: filled in
 * @params: checked, and none of them TIMELY_AUTO
 * @given: the same before some were derived
 */
void timely_law_init(struct timely_law *law, const struct timely_params *params,
		     const struct timely_params *given)
{
	timely_rate_law_init(&law->rate, params);
	if (params->rule == TIMELY_RULE_STEER && given->first_rate_kbps == TIMELY_AUTO)
		law->rate.share_fp = law->rate.first_rate_fp * TIMELY_FIRST_SHARE;
	law->segment_bytes = params->segment_bytes;
	law->segment_derived = given->segment_bytes == TIMELY_AUTO;
	law->segment_log2 = order_base_2(params->segment_bytes);
	law->horizon_q24 = div_u64(2ULL * params->t_high_ns << 24, NSEC_PER_SEC);
	law->begin_q24 = law->horizon_q24;
	if (params->rule == TIMELY_RULE_STEER)
		law->begin_q24 = div_u64((u64)params->min_rtt_ns << 24, NSEC_PER_SEC);
	law->app_limited_q32 = div_u64((u64)params->app_limited_percent << 32,
				       100 * USEC_PER_SEC);
	law->loss_share_q16 = timely_loss_share_q16(params->loss_free_ppm);
	law->ns_per_byte_q16 = 0;
	if (params->line_rate_kbps)
		law->ns_per_byte_q16 = min_t(u64, div_u64(8000000ULL << 16, params->line_rate_kbps),
					     U32_MAX);
}

/**
 * timely_setting_init() - make a set of parameters
 * @setting: filled in
 * @params: checked
 * @generation: not that of the set it takes the place of
 */
void timely_setting_init(struct timely_setting *setting,
			 const struct timely_params *params, u16 generation)
{
	struct timely_params tuned = *params;

	setting->params = *params;
	setting->generation = generation;
	setting->is_auto = timely_params_are_auto(params);
	timely_tune(&tuned, &(struct timely_path){});
	timely_law_init(&setting->law, &tuned, params);
}

/* ---- text ---- */

static int timely_parse(u32 index, const char *text, u32 *value)
{
	const struct timely_param_desc *desc = &timely_param_descs[index];

	if (desc->may_be_auto && !strcmp(text, TIMELY_AUTO_TEXT)) {
		*value = TIMELY_AUTO;
		return 0;
	}
	/* The number that stands for it is none itself. */
	if (kstrtou32(text, 0, value) || *value == TIMELY_AUTO)
		return -EINVAL;
	return timely_param_allowed(index, *value) ? 0 : -EINVAL;
}

static int timely_print(char *text, size_t size, u32 value)
{
	if (value == TIMELY_AUTO)
		return scnprintf(text, size, TIMELY_AUTO_TEXT);
	return scnprintf(text, size, "%u", value);
}

/* Tell the host's operator why a value is refused. The administrator of a namespace that is
 * not the host's may be anybody, and gets EINVAL only: neither the host's log nor the limit of
 * its rate is for tenants to fill.
 */
#define timely_refuse(format, ...)						\
do {										\
	if (current_user_ns() == &init_user_ns)					\
		pr_err_ratelimited("tcp_timely: " format "\n", ##__VA_ARGS__);	\
} while (0)

/* Text of a user's, with what is not printable escaped. */
#define TIMELY_ESCAPED		"%*pE"
#define timely_escaped(text)	(int)strlen(text), (text)

static void timely_refuse_value(u32 index, const char *text)
{
	const struct timely_param_desc *desc = &timely_param_descs[index];

	timely_refuse("%s=" TIMELY_ESCAPED " refused: allowed are %u to %u (%s)%s", desc->name,
		      timely_escaped(text), desc->min, desc->max, desc->unit,
		      desc->may_be_auto ? " and " TIMELY_AUTO_TEXT : "");
}

static void timely_refuse_preset(const char *name)
{
	timely_refuse("preset=" TIMELY_ESCAPED " refused: allowed are " TIMELY_PRESET_NAMES,
		      timely_escaped(name));
}

/* Each is allowed alone: do they go together? */
static int timely_refuse_contradiction(const struct timely_params *params)
{
	u32 index;
	int err = timely_params_check(params, &index);

	if (!err)
		return 0;
	if (index == TIMELY_P_t_low_ns)
		timely_refuse("t_low_ns=%u refused: it must not be above t_high_ns=%u",
			      params->t_low_ns, params->t_high_ns);
	else
		timely_refuse("min_rate_kbps=%u refused: it must not be above max_rate_kbps=%u",
			      params->min_rate_kbps, params->max_rate_kbps);
	return -EINVAL;
}

/* ---- the parameters, as the module takes them ---- */

static char *preset = "linux";
module_param(preset, charp, 0444);
MODULE_PARM_DESC(preset, "parameters to start from: " TIMELY_PRESET_NAMES);

static struct timely_override {
	u32 value;
	bool given;
} timely_overrides[TIMELY_P_COUNT];

static int timely_param_set(const char *text, const struct kernel_param *kp)
{
	struct timely_override *override = kp->arg;
	u32 index = override - timely_overrides;

	if (timely_parse(index, text, &override->value)) {
		timely_refuse_value(index, text);
		return -EINVAL;
	}
	override->given = true;
	return 0;
}

static int timely_param_get(char *buffer, const struct kernel_param *kp)
{
	u32 index = (struct timely_override *)kp->arg - timely_overrides;
	struct timely_params params = timely_loaded.params;
	int size = timely_print(buffer, PAGE_SIZE - 1, *timely_param_ref(&params, index));

	buffer[size] = '\n';
	return size + 1;
}

static const struct kernel_param_ops timely_param_ops = {
	.set = timely_param_set,
	.get = timely_param_get,
};

#define TIMELY_RANGE_GIVEN(min, max, unit)	" [" #min " to " #max " " unit "]"
#define TIMELY_RANGE_AUTO(min, max, unit)	\
	" [" #min " to " #max " " unit ", or " TIMELY_AUTO_TEXT "]"
#define TIMELY_MODULE_PARAM(field, unit, min, max, source, doc)		\
	module_param_cb(field, &timely_param_ops,			\
			&timely_overrides[TIMELY_P_##field], 0444);	\
	MODULE_PARM_DESC(field, doc TIMELY_RANGE_##source(min, max, unit));
TIMELY_PARAMS(TIMELY_MODULE_PARAM)

static int __init timely_load_params(void)
{
	const struct timely_preset *start = timely_preset_find(preset);
	struct timely_params params;
	u32 i;
	int err;

	if (!start) {
		timely_refuse_preset(preset);
		return -EINVAL;
	}
	params = start->params;
	for (i = 0; i < TIMELY_P_COUNT; i++)
		if (timely_overrides[i].given)
			*timely_param_ref(&params, i) = timely_overrides[i].value;
	err = timely_refuse_contradiction(&params);
	if (err)
		return err;
	timely_setting_init(&timely_loaded, &params, 0);
	return 0;
}

/* ---- a namespace's ---- */

/* Of all who change a namespace's parameters: that is rare. */
static DEFINE_MUTEX(timely_settings_lock);

/* Put @params in force in a namespace whose administrator wants that. */
static int timely_net_change(struct timely_net *ours, const struct timely_params *params)
{
	struct timely_setting *old, *new;
	int err = timely_refuse_contradiction(params);

	if (err)
		return err;
	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	if (!new)
		return -ENOMEM;
	old = rcu_dereference_protected(ours->setting,
					lockdep_is_held(&timely_settings_lock));
	timely_setting_init(new, params, old->generation + 1);
	rcu_assign_pointer(ours->setting, new);
	kfree_rcu(old, rcu);
	return 0;
}

/* Read a line of text into @text, or write it; what proc_dostring() does, for a
 * table's entry whose data is something else.
 */
static int timely_sysctl_text(timely_ctl_table *table, int write, void *buffer,
			      size_t *size, loff_t *pos, char *text, int max)
{
	struct ctl_table line = *table;
	int err;

	line.data = text;
	line.maxlen = max;
	err = proc_dostring(&line, write, buffer, size, pos);
	if (!err && write && strlen(text) == max - 1)
		return -EINVAL;
	return err;
}

/* Longer than any name or number; what is as long may have been cut. */
#define TIMELY_TEXT_MAX		32

static int timely_sysctl_param(timely_ctl_table *table, int write, void *buffer,
			       size_t *size, loff_t *pos)
{
	u32 index = (unsigned long)table->extra1;
	struct timely_net *ours = table->data;
	char text[TIMELY_TEXT_MAX] = "";
	struct timely_params params;
	u32 value;
	int err;

	mutex_lock(&timely_settings_lock);
	params = rcu_dereference_protected(ours->setting, true)->params;
	if (!write)
		timely_print(text, sizeof(text), *timely_param_ref(&params, index));
	err = timely_sysctl_text(table, write, buffer, size, pos, text, sizeof(text));
	if (err || !write)
		goto out;
	err = timely_parse(index, text, &value);
	if (err) {
		timely_refuse_value(index, text);
		goto out;
	}
	*timely_param_ref(&params, index) = value;
	err = timely_net_change(ours, &params);
out:
	mutex_unlock(&timely_settings_lock);
	return err;
}

/* What the file says of parameters that are no preset's. */
#define TIMELY_PRESET_NONE	"custom"

static const char *timely_preset_name(const struct timely_params *params)
{
	u32 i;

	for (i = 0; i < timely_preset_count; i++)
		if (!memcmp(&timely_presets[i].params, params, sizeof(*params)))
			return timely_presets[i].name;
	return TIMELY_PRESET_NONE;
}

static int timely_sysctl_preset(timely_ctl_table *table, int write, void *buffer,
				size_t *size, loff_t *pos)
{
	struct timely_net *ours = table->data;
	const struct timely_preset *chosen;
	char text[TIMELY_TEXT_MAX] = "";
	struct timely_setting *setting;
	int err;

	mutex_lock(&timely_settings_lock);
	setting = rcu_dereference_protected(ours->setting, true);
	if (!write)
		strscpy(text, timely_preset_name(&setting->params), sizeof(text));
	err = timely_sysctl_text(table, write, buffer, size, pos, text, sizeof(text));
	/* What was read may be written again: all the rest is in the other files. */
	if (err || !write || !strcmp(text, TIMELY_PRESET_NONE))
		goto out;
	chosen = timely_preset_find(text);
	if (chosen) {
		err = timely_net_change(ours, &chosen->params);
	} else {
		timely_refuse_preset(text);
		err = -EINVAL;
	}
out:
	mutex_unlock(&timely_settings_lock);
	return err;
}

#define TIMELY_SYSCTLS		(TIMELY_P_COUNT + 1)

static struct ctl_table *timely_sysctl_table(struct timely_net *ours)
{
	/* The last is the end of the table, where that is how kernels tell it. */
	struct ctl_table *table = kcalloc(TIMELY_SYSCTLS + 1, sizeof(*table),
					  GFP_KERNEL_ACCOUNT);
	u32 i;

	if (!table)
		return NULL;
	for (i = 0; i < TIMELY_P_COUNT; i++) {
		table[i].procname = timely_param_descs[i].name;
		table[i].proc_handler = timely_sysctl_param;
		table[i].extra1 = (void *)(unsigned long)i;
	}
	table[i].procname = "preset";
	table[i].proc_handler = timely_sysctl_preset;
	for (i = 0; i < TIMELY_SYSCTLS; i++) {
		table[i].data = ours;
		table[i].mode = 0644;
	}
	return table;
}

static int __net_init timely_net_init(struct net *net)
{
	struct timely_net *ours = net_generic(net, timely_net_id);
	struct timely_setting *setting;
	struct ctl_table *table;

	setting = kmemdup(&timely_loaded, sizeof(*setting), GFP_KERNEL_ACCOUNT);
	table = timely_sysctl_table(ours);
	if (!setting || !table)
		goto no_memory;
	ours->counters = timely_rtt_counters_of(net);
	RCU_INIT_POINTER(ours->setting, setting);
	ours->sysctl = timely_register_sysctl(net, "net/ipv4/timely", table,
					      TIMELY_SYSCTLS);
	if (!ours->sysctl)
		goto no_memory;
	return 0;

no_memory:
	RCU_INIT_POINTER(ours->setting, NULL);
	kfree(setting);
	kfree(table);
	return -ENOMEM;
}

static void __net_exit timely_net_exit(struct net *net)
{
	struct timely_net *ours = net_generic(net, timely_net_id);
	const struct ctl_table *table = ours->sysctl->ctl_table_arg;

	unregister_net_sysctl_table(ours->sysctl);
	kfree(table);
	kfree(rcu_dereference_protected(ours->setting, true));
}

static struct pernet_operations timely_net_ops = {
	.init = timely_net_init,
	.exit = timely_net_exit,
	.id = &timely_net_id,
	.size = sizeof(struct timely_net),
};

/**
 * timely_settings_init() - take the module's parameters, give each namespace its own
 *
 * Return: 0 or a negative error.
 */
int __init timely_settings_init(void)
{
	int err = timely_load_params();

	return err ?: register_pernet_subsys(&timely_net_ops);
}

/** timely_settings_exit() - no socket uses them any more */
void timely_settings_exit(void)
{
	unregister_pernet_subsys(&timely_net_ops);
}
