// SPDX-License-Identifier: GPL-2.0
/*
 * `tc qdisc show`: the options of a qdisc "timely", as text and as JSON.
 *
 * The kernel sends one attribute for each option. The options are shown in the order of
 * the table options[]. Attributes of a newer module that the table does not have are
 * skipped; attributes that an older module does not send are not shown.
 *
 * tc's helpers print a value only if tc writes the output that @type names: PRINT_FP is
 * text, PRINT_JSON is JSON, PRINT_ANY is both.
 */
#include <string.h>

#include "q_timely.h"

bool onramp_is_on;

static void show_uint(const char *key, const char *format, unsigned int value)
{
	show_text("%s ", key);
	print_color_uint(PRINT_FP, COLOR_NONE, NULL, format, value);
	print_color_uint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

/* JSON has times in the unit of the attribute, us or ns, as fq's JSON has. */
static void show_time(const char *key, bool is_us, __u32 value)
{
	char buffer[SPRINT_BSIZE];

	show_text("%s ", key);
	show_text("%s ", is_us ? sprint_time(value, buffer) : sprint_time64(value, buffer));
	print_color_uint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

/* A flag may have a value that is not shown, because nearly all qdiscs have it. */
static void show_flag(const struct option *o, bool on)
{
	if (on == o->none)
		return;
	show_text("%s ", on ? o->word : o->off_word);
	print_color_bool(PRINT_JSON, COLOR_NONE, o->word, NULL, on);
}

/* A DSCP or a priority. "keep" is 255 in netlink and null in JSON. */
static void show_keep(const struct option *o, unsigned int value, const char *name)
{
	if (value == TIMELY_DSCP_KEEP) {
		show_text("%s keep ", o->word);
		print_color_null(PRINT_JSON, COLOR_NONE, o->word, NULL, NULL);
	} else if (name) {
		show_text("%s ", o->word);
		show_text("%s ", name);
		print_color_uint(PRINT_JSON, COLOR_NONE, o->word, NULL, value);
	} else {
		show_uint(o->word, "%u ", value);
	}
}

static void show_array(const char *key, const __s32 *value, int count)
{
	show_text("%s ", key);
	open_json_array(PRINT_JSON, key);
	for (int i = 0; i < count; i++)
		print_color_uint(PRINT_ANY, COLOR_NONE, NULL, "%u ", value[i]);
	close_json_array(PRINT_JSON, NULL);
}

static void show_priomap(const struct rtattr *attr)
{
	const struct tc_prio_qopt *qopt = RTA_DATA(attr);
	__s32 bands[TC_PRIO_MAX + 1];

	if (RTA_PAYLOAD(attr) < sizeof(*qopt))
		return;
	for (int i = 0; i <= TC_PRIO_MAX; i++)
		bands[i] = qopt->priomap[i];
	show_uint("bands", "%u ", qopt->bands);
	show_array("priomap", bands, TC_PRIO_MAX + 1);
}

static void show_weights(const struct rtattr *attr)
{
	if (RTA_PAYLOAD(attr) >= TIMELY_BANDS * sizeof(__s32))
		show_array("weights", RTA_DATA(attr), TIMELY_BANDS);
}

/* In fq's JSON horizon_drop and horizon_cap are two keys without a value. */
static void show_horizon_drop(const struct option *o, bool drop)
{
	const char *word = drop ? o->word : o->off_word;

	show_text("%s ", word);
	print_color_null(PRINT_JSON, COLOR_NONE, word, NULL, NULL);
}

static void show_clock(const struct option *o, bool drop)
{
	show_text("%s ", o->word);
	print_color_string(PRINT_ANY, COLOR_NONE, o->word, "%s ", drop ? "drop" : "send");
}

/* Text has 1/16 where the fraction allows that, JSON has 0.0625. */
static void show_fraction(const char *key, __u64 value)
{
	show_text("%s ", key);
	if (value && value < ONE && ONE % value == 0)
		print_color_uint(PRINT_FP, COLOR_NONE, NULL, "1/%u ", ONE / value);
	else
		print_color_float(PRINT_FP, COLOR_NONE, NULL, "%g ", (double)value / ONE);
	print_color_float(PRINT_JSON, COLOR_NONE, key, NULL, (double)value / ONE);
}

/* A mode of a newer module is shown as a number. */
static void show_owd(const struct option *o, __u64 value)
{
	if (value >= OWD_COUNT) {
		show_uint(o->word, "%u ", value);
		return;
	}
	show_text("%s ", o->word);
	print_color_string(PRINT_ANY, COLOR_NONE, o->word, "%s ", owd_words[value]);
}

/* For one release, JSON has a renamed option under the old name too. */
static void show_old_key(const char *word, __u64 value)
{
	for (size_t i = 0; i < OLD_NAME_COUNT; i++)
		if (strcmp(old_names[i].word, word) == 0)
			print_color_lluint(PRINT_JSON, COLOR_NONE, old_names[i].old, NULL, value);
}

/* Options whose value @none is not shown. */
static void show_quantity(const struct option *o, __u64 value)
{
	if (value == o->none)
		return;
	switch (o->type) {
	case TYPE_SIZE:
		show_text("%s ", o->word);
		print_color_size(PRINT_ANY, COLOR_NONE, o->word, "%s ", value);
		break;
	case TYPE_RATE:
		show_text("%s ", o->word);
		tc_print_rate(PRINT_ANY, o->word, "%s ", value);
		break;
	case TYPE_TIME:
	case TYPE_THRESHOLD:
		show_time(o->word, strcmp(range_of(o->attr).unit, "us") == 0, value);
		break;
	default:
		/*
		 * sprint_time64() has three digits: it shows 2048 ns as 2.05us, which as an
		 * option would be rounded up to 4096 ns.
		 */
		show_uint(o->word, "%uns ", value);
	}
	show_old_key(o->word, value);
}

static void show_number(const struct option *o, __u64 value)
{
	switch (o->type) {
	case TYPE_PACKETS:
		show_uint(o->word, "%up ", value);
		break;
	case TYPE_NUMBER:
		show_uint(o->word, "%u ", value);
		break;
	case TYPE_BUCKETS:
		show_uint(o->word, "%u ", 1U << (value & 31));
		break;
	case TYPE_FLAG:
		show_flag(o, value);
		break;
	case TYPE_HORIZON_DROP:
		show_horizon_drop(o, value);
		break;
	case TYPE_CLOCK:
		show_clock(o, value);
		break;
	case TYPE_DSCP:
		show_keep(o, value, dscp_name(value));
		break;
	case TYPE_PRIORITY:
		show_keep(o, value, NULL);
		break;
	case TYPE_FRACTION:
		show_fraction(o->word, value);
		break;
	case TYPE_OWD:
		show_owd(o, value);
		break;
	default:
		show_quantity(o, value);
	}
}

/* Reads an attribute of @bits. False if the attribute is shorter than this plugin expects. */
static bool read_number(const struct rtattr *attr, unsigned int bits, __u64 *value)
{
	__u32 value32;

	if (RTA_PAYLOAD(attr) < bits / 8)
		return false;
	switch (bits) {
	case 8:
		*value = *(const __u8 *)RTA_DATA(attr);
		break;
	case 32:
		memcpy(&value32, RTA_DATA(attr), sizeof(value32));
		*value = value32;
		break;
	default:
		memcpy(value, RTA_DATA(attr), sizeof(*value));
	}
	return true;
}

/* @attrs: by type, the attributes in @opt; NULL for those that are not there */
static void index_attributes(struct rtattr *opt, const struct rtattr *attrs[])
{
	int left = RTA_PAYLOAD(opt);

	for (struct rtattr *attr = RTA_DATA(opt); RTA_OK(attr, left);
	     attr = RTA_NEXT(attr, left)) {
		unsigned int type = attr->rta_type & NLA_TYPE_MASK;

		if (type <= TCA_TIMELY_MAX)
			attrs[type] = attr;
	}
}

static bool threshold_is_set(const struct rtattr *attr)
{
	__u64 threshold_ns;

	return attr && read_number(attr, range_of(TCA_TIMELY_ONRAMP).bits, &threshold_ns) &&
	       threshold_ns;
}

static bool is_of_onramp(const struct option *o)
{
	return o->attr >= TCA_TIMELY_ONRAMP && o->attr <= TCA_TIMELY_ONRAMP_CLOCK_ERROR;
}

int show_options(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	const struct rtattr *attrs[TCA_TIMELY_MAX + 1] = {};
	__u64 value;

	(void)qu;
	(void)f;
	onramp_is_on = false;
	if (!opt)
		return 0;
	index_attributes(opt, attrs);
	onramp_is_on = threshold_is_set(attrs[TCA_TIMELY_ONRAMP]);
	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option *o = &options[i];

		if (!attrs[o->attr] || o->attr == TCA_TIMELY_UNSPEC)
			continue;
		if (is_of_onramp(o) && !onramp_is_on)
			continue;
		if (o->type == TYPE_PRIOMAP)
			show_priomap(attrs[o->attr]);
		else if (o->type == TYPE_WEIGHTS)
			show_weights(attrs[o->attr]);
		else if (read_number(attrs[o->attr], range_of(o->attr).bits, &value))
			show_number(o, value);
	}
	return 0;
}
