// SPDX-License-Identifier: GPL-2.0
/*
 * The parameters of tcp_timely: module parameters, and sysctls of each network namespace.
 *
 * A new network namespace starts with the values of the module parameters. The administrator of the
 * namespace can change the namespace's values in /proc/sys/net/ipv4/timely/. Each change makes a
 * new set of parameters and replaces the pointer to the set. Connections use the new set from their
 * next ACK on.
 *
 * The code that handles ACKs takes no lock and no reference: at each ACK, it reads the pointer of
 * the namespace under RCU. The old set is freed after an RCU grace period. The last set is freed
 * with the namespace, which sockets with a reference to the namespace keep alive; for other sockets
 * see timely_net_param_set().
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

/* The parameters that the module was loaded with, which new namespaces start with. */
struct timely_param_set timely_module_params __ro_after_init;

/* ---- a set of parameters ---- */

/**
 * timely_cfg_init() - prepare parameters for the code that handles ACKs
 * @cfg: the prepared parameters
 * @params: valid parameters, in which values have replaced TIMELY_AUTO
 * @given: the parameters in @params as they were set, possibly with TIMELY_AUTO
 * @link_kbps: link rate that @params were computed for, kbit/s, from timely_tune()
 */
void timely_cfg_init(struct timely_cfg *cfg, const struct timely_params *params,
		     const struct timely_params *given, u32 link_kbps)
{
	timely_rate_cfg_init(&cfg->rate, params);
	/* share_fp is the link rate, which connections share at the start of a message. A computed
	 * first rate shows the link rate; a first rate that a user has set does not.
	 */
	if (params->rule == TIMELY_RULE_TARGET_DELAY && given->first_rate_kbps == TIMELY_AUTO)
		cfg->rate.share_fp = cfg->rate.first_rate_fp * TIMELY_FIRST_SHARE;
	cfg->link_kbps = link_kbps;
	cfg->segment_bytes = params->segment_bytes;
	cfg->segment_auto = given->segment_bytes == TIMELY_AUTO;
	cfg->segment_grows = false;
	cfg->segment_log2 = order_base_2(params->segment_bytes);
	/* The window is twice the data that the rate sends in t_high_ns, so the window does not
	 * limit a connection whose RTTs are below t_high_ns.
	 */
	cfg->horizon_q24 = div_u64(2ULL * params->t_high_ns << 24, NSEC_PER_SEC);
	cfg->start_q24 = cfg->horizon_q24;
	if (params->rule == TIMELY_RULE_TARGET_DELAY)
		cfg->start_q24 = div_u64((u64)params->min_rtt_ns << 24, NSEC_PER_SEC);
	/* Divide by 100 for percent, and by 10^6 because rate samples have intervals in us. */
	cfg->app_limited_q32 = div_u64((u64)params->app_limited_percent << 32,
				       100 * USEC_PER_SEC);
	cfg->loss_share_q16 = timely_loss_share_q16(params->loss_free_ppm);
	cfg->ns_per_byte_q16 = 0;
	/* A byte takes 8 bits * 10^6 / (kbit/s) ns. */
	if (params->link_rate_kbps)
		cfg->ns_per_byte_q16 = min_t(u64, div_u64(8000000ULL << 16, params->link_rate_kbps),
					     U32_MAX);
}

/**
 * timely_param_set_init() - fill in a set of parameters
 * @set: the set
 * @params: parameters that timely_params_check() has accepted
 * @generation: a number other than the generation of the set that is replaced
 */
void timely_param_set_init(struct timely_param_set *set,
			   const struct timely_params *params, u16 generation)
{
	struct timely_params tuned = *params;
	u32 link_kbps;

	set->params = *params;
	set->generation = generation;
	set->is_auto = timely_params_any_auto(params);
	link_kbps = timely_tune(&tuned, &(struct timely_path){});
	timely_cfg_init(&set->cfg, &tuned, params, link_kbps);
}

/* ---- text ---- */

/* Convert text to a value of the parameter @index. Return: 0, or -EINVAL if the text is no number
 * or the value is not allowed.
 */
static int timely_parse(u32 index, const char *text, u32 *value)
{
	const struct timely_param_desc *desc = &timely_param_descs[index];

	if (desc->may_be_auto && !strcmp(text, TIMELY_AUTO_TEXT)) {
		*value = TIMELY_AUTO;
		return 0;
	}
	/* TIMELY_AUTO is the number that stands for "auto"; it is not a valid value. */
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

/* Log why a value is refused, for the operator of the host. Administrators of other namespaces only
 * get EINVAL: tenants must not fill the host's log or use up its rate limit.
 */
#define timely_refuse(format, ...)						\
do {										\
	if (current_user_ns() == &init_user_ns)					\
		pr_err_ratelimited("tcp_timely: " format "\n", ##__VA_ARGS__);	\
} while (0)

/* Format and arguments of printk() for text from user space: escape unprintable characters. */
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

/* Log for the operator of the host that an old name is accepted for one more release. */
static void timely_deprecated(const char *what, const char *old, const char *name)
{
	if (current_user_ns() == &init_user_ns)
		pr_warn_ratelimited("tcp_timely: the name \"%s\" of a %s is deprecated: use \"%s\"\n",
				    old, what, name);
}

/* Log a warning if @given is an old name of the parameter @index. */
static void timely_warn_old_name(const char *given, u32 index)
{
	if (strcmp(given, timely_param_descs[index].name))
		timely_deprecated("parameter", given, timely_param_descs[index].name);
}

/* Find a preset by name, and log if there is no such preset or if @name is an old name. Return: the
 * preset, or NULL.
 */
static const struct timely_preset *timely_chosen_preset(const char *name)
{
	const struct timely_preset *chosen = timely_preset_find(name);

	if (!chosen)
		timely_refuse_preset(name);
	else if (strcmp(chosen->name, name))
		timely_deprecated("preset", name, chosen->name);
	return chosen;
}

/* Check whether values that are valid each by itself contradict each other. Return: 0, or -EINVAL
 * after a log message.
 */
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

/* ---- the module parameters ---- */

static char *preset = "target_delay";
module_param(preset, charp, 0444);
MODULE_PARM_DESC(preset, "parameters to start from: " TIMELY_PRESET_NAMES);

/* The values given as module parameters. They replace values of the preset, whatever the order of
 * the module's arguments is.
 */
static struct timely_override {
	u32 value;
	bool given;
} timely_overrides[TIMELY_P_COUNT];

static int timely_module_param_set(const char *text, const struct kernel_param *kp)
{
	struct timely_override *override = kp->arg;
	u32 index = override - timely_overrides;

	if (timely_parse(index, text, &override->value)) {
		timely_refuse_value(index, text);
		return -EINVAL;
	}
	override->given = true;
	timely_warn_old_name(kp->name, index);
	return 0;
}

static int timely_module_param_get(char *buffer, const struct kernel_param *kp)
{
	u32 index = (struct timely_override *)kp->arg - timely_overrides;
	struct timely_params params = timely_module_params.params;
	int size = timely_print(buffer, PAGE_SIZE - 1, *timely_param_ref(&params, index));

	buffer[size] = '\n';
	return size + 1;
}

static const struct kernel_param_ops timely_param_ops = {
	.set = timely_module_param_set,
	.get = timely_module_param_get,
};

#define TIMELY_RANGE_GIVEN(min, max, unit)	" [" #min " to " #max " " unit "]"
#define TIMELY_RANGE_AUTO(min, max, unit)	\
	" [" #min " to " #max " " unit ", or " TIMELY_AUTO_TEXT "]"
#define TIMELY_MODULE_PARAM(field, unit, min, max, source, doc)		\
	module_param_cb(field, &timely_param_ops,			\
			&timely_overrides[TIMELY_P_##field], 0444);	\
	MODULE_PARM_DESC(field, doc TIMELY_RANGE_##source(min, max, unit));
TIMELY_PARAMS(TIMELY_MODULE_PARAM)

#define TIMELY_DEPRECATED_MODULE_PARAM(old, field)			\
	module_param_cb(old, &timely_param_ops,				\
			&timely_overrides[TIMELY_P_##field], 0);	\
	MODULE_PARM_DESC(old, "deprecated: use " #field);
TIMELY_DEPRECATED_PARAMS(TIMELY_DEPRECATED_MODULE_PARAM)

/* Compute the module's parameters from the arguments: the preset, and values that replace some of
 * the preset's values.
 */
static int __init timely_load_params(void)
{
	const struct timely_preset *start = timely_chosen_preset(preset);
	struct timely_params params;
	u32 i;
	int err;

	if (!start)
		return -EINVAL;
	params = start->params;
	for (i = 0; i < TIMELY_P_COUNT; i++)
		if (timely_overrides[i].given)
			*timely_param_ref(&params, i) = timely_overrides[i].value;
	err = timely_refuse_contradiction(&params);
	if (err)
		return err;
	timely_param_set_init(&timely_module_params, &params, 0);
	return 0;
}

/* ---- the sysctls of a namespace ---- */

/* Guards the timely_net.set of all namespaces. One lock is enough, as changes are rare. */
static DEFINE_MUTEX(timely_params_lock);

/* Put @params into force in a namespace. Return: 0, -EINVAL if the values contradict each other, or
 * -ENOMEM.
 */
static int timely_net_change(struct timely_net *ours, const struct timely_params *params)
{
	struct timely_param_set *old, *new;
	int err = timely_refuse_contradiction(params);

	if (err)
		return err;
	new = kzalloc(sizeof(*new), GFP_KERNEL_ACCOUNT);
	if (!new)
		return -ENOMEM;
	old = rcu_dereference_protected(ours->set,
					lockdep_is_held(&timely_params_lock));
	timely_param_set_init(new, params, old->generation + 1);
	rcu_assign_pointer(ours->set, new);
	kfree_rcu(old, rcu);
	return 0;
}

/* Let proc_dostring() read or write @text, which has @max bytes, in place of the data of the table
 * entry: the data of the entry is not text. Return: the result of proc_dostring(), or -EINVAL if
 * text from user space is too long.
 */
static int timely_sysctl_text(timely_ctl_table *table, int write, void *buffer,
			      size_t *size, loff_t *pos, char *text, int max)
{
	struct ctl_table text_table = *table;
	int err;

	text_table.data = text;
	text_table.maxlen = max;
	err = proc_dostring(&text_table, write, buffer, size, pos);
	if (!err && write && strlen(text) == max - 1)
		return -EINVAL;
	return err;
}

/* Size of a buffer for the text of a sysctl, bytes, with the terminating zero. Any valid name or
 * number is shorter. Text that fills the buffer may have been truncated, and is refused.
 */
#define TIMELY_TEXT_MAX		32

/* Handler of a parameter's file: table->data is struct timely_net, extra1 the parameter's index. */
static int timely_sysctl_param(timely_ctl_table *table, int write, void *buffer,
			       size_t *size, loff_t *pos)
{
	u32 index = (unsigned long)table->extra1;
	struct timely_net *ours = table->data;
	char text[TIMELY_TEXT_MAX] = "";
	struct timely_params params;
	u32 value;
	int err;

	mutex_lock(&timely_params_lock);
	params = rcu_dereference_protected(ours->set, true)->params;
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
	if (!err)
		timely_warn_old_name(table->procname, index);
out:
	mutex_unlock(&timely_params_lock);
	return err;
}

/* Content of the file "preset" if the parameters in force are not those of a preset. */
#define TIMELY_PRESET_NONE	"custom"

static const char *timely_preset_name(const struct timely_params *params)
{
	u32 i;

	for (i = 0; i < timely_preset_count; i++)
		if (!memcmp(&timely_presets[i].params, params, sizeof(*params)))
			return timely_presets[i].name;
	return TIMELY_PRESET_NONE;
}

/* Handler of the file "preset". */
static int timely_sysctl_preset(timely_ctl_table *table, int write, void *buffer,
				size_t *size, loff_t *pos)
{
	struct timely_net *ours = table->data;
	const struct timely_preset *chosen;
	char text[TIMELY_TEXT_MAX] = "";
	struct timely_param_set *set;
	int err;

	mutex_lock(&timely_params_lock);
	set = rcu_dereference_protected(ours->set, true);
	if (!write)
		strscpy(text, timely_preset_name(&set->params), sizeof(text));
	err = timely_sysctl_text(table, write, buffer, size, pos, text, sizeof(text));
	/* A program that saves and restores all files writes "custom". The write succeeds and
	 * changes nothing: the files of the parameters restore the values.
	 */
	if (err || !write || !strcmp(text, TIMELY_PRESET_NONE))
		goto out;
	chosen = timely_chosen_preset(text);
	err = chosen ? timely_net_change(ours, &chosen->params) : -EINVAL;
out:
	mutex_unlock(&timely_params_lock);
	return err;
}

#define TIMELY_SYSCTLS		(TIMELY_P_COUNT + TIMELY_OLD_P_COUNT + 1)

static void timely_sysctl_entry(struct ctl_table *entry, const char *name, u32 index)
{
	entry->procname = name;
	entry->proc_handler = timely_sysctl_param;
	entry->extra1 = (void *)(unsigned long)index;
}

static struct ctl_table *timely_sysctl_table(struct timely_net *ours)
{
	/* The last entry ends the table in kernels that do not count entries. */
	struct ctl_table *table = kcalloc(TIMELY_SYSCTLS + 1, sizeof(*table),
					  GFP_KERNEL_ACCOUNT);
	struct ctl_table *entry = table;
	u32 i;

	if (!table)
		return NULL;
	for (i = 0; i < TIMELY_P_COUNT; i++)
		timely_sysctl_entry(entry++, timely_param_descs[i].name, i);
	for (i = 0; i < TIMELY_OLD_P_COUNT; i++)
		timely_sysctl_entry(entry++, timely_deprecated_params[i].name,
				    timely_deprecated_params[i].index);
	entry->procname = "preset";
	entry->proc_handler = timely_sysctl_preset;
	for (i = 0; i < TIMELY_SYSCTLS; i++) {
		table[i].data = ours;
		table[i].mode = 0644;
	}
	return table;
}

static int __net_init timely_net_init(struct net *net)
{
	struct timely_net *ours = net_generic(net, timely_net_id);
	struct timely_param_set *set;
	struct ctl_table *table;

	set = kmemdup(&timely_module_params, sizeof(*set), GFP_KERNEL_ACCOUNT);
	table = timely_sysctl_table(ours);
	if (!set || !table)
		goto no_memory;
	ours->counters = timely_rtt_counters_of(net);
	RCU_INIT_POINTER(ours->set, set);
	ours->sysctl = timely_register_sysctl(net, "net/ipv4/timely", table,
					      TIMELY_SYSCTLS);
	if (!ours->sysctl)
		goto no_memory;
	return 0;

no_memory:
	RCU_INIT_POINTER(ours->set, NULL);
	kfree(set);
	kfree(table);
	return -ENOMEM;
}

static void __net_exit timely_net_exit(struct net *net)
{
	struct timely_net *ours = net_generic(net, timely_net_id);
	const struct ctl_table *table = ours->sysctl->ctl_table_arg;

	unregister_net_sysctl_table(ours->sysctl);
	kfree(table);
	kfree(rcu_dereference_protected(ours->set, true));
}

static struct pernet_operations timely_net_ops = {
	.init = timely_net_init,
	.exit = timely_net_exit,
	.id = &timely_net_id,
	.size = sizeof(struct timely_net),
};

/**
 * timely_params_init() - read the module parameters, and create the sysctls of each namespace
 *
 * Context: process, when the module is loaded.
 * Return: 0; -EINVAL if a module parameter is not valid; another negative error code if the sysctls
 * cannot be created.
 */
int __init timely_params_init(void)
{
	int err = timely_load_params();

	return err ?: register_pernet_subsys(&timely_net_ops);
}

/**
 * timely_params_exit() - remove the sysctls and free the parameters of all namespaces
 *
 * Context: process, when the module is unloaded; no socket uses the parameters any more.
 */
void timely_params_exit(void)
{
	unregister_pernet_subsys(&timely_net_ops);
}
