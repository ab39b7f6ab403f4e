// SPDX-License-Identifier: GPL-2.0
/*
 * The plugin by which tc supports the qdisc "trim": the command line, and the options and
 * statistics as text and as JSON. tc loads q_trim.so when a command line or the kernel names the
 * qdisc. tc-trim(8) describes the options.
 *
 * The table options[] has one line for each option, in the order in which they are shown. Only
 * options that were given are sent, so that `tc qdisc change` changes nothing else. The ranges come
 * from the header that the kernel module takes them from. Options and statistics that the module
 * does not send, because it is older, are not shown or 0; those of a newer module are skipped.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <linux/timely_trim.h>
#include <net/timely_trim.h>

#include "iproute2.h"
#include "value.h"

/* Room for the whole message. All options together take less than 100 bytes. */
#define MESSAGE_BYTES 2048

#define DSCPS 64
/* Room for the text of a list of DSCPs: names of up to 4 letters and commas. */
#define LIST_BYTES (DSCPS * 5 + 1)

/* How the value of an option is written and shown. */
enum value_type {
	TYPE_PACKETS,		/* a number, shown as "8p" */
	TYPE_NUMBER,
	TYPE_SIZE,
	TYPE_LIMIT,		/* a size, or "auto" */
	TYPE_DSCP,		/* a number or a name */
	TYPE_MASK,		/* a list of DSCPs, "any" or "none" */
	TYPE_VICTIM,
	TYPE_FLAG,		/* two words without a value: on and off */
};

/**
 * struct option - an option of the qdisc
 * @word: the option's word on the command line and its key in JSON
 * @type: how the value is written and shown
 * @attr: netlink attribute, TCA_TRIM_*
 * @bits: width of the attribute
 * @min: least value
 * @max: largest value
 * @unit: unit of the values, for messages
 */
struct option {
	const char *word;
	enum value_type type;
	unsigned short attr;
	unsigned short bits;
	__u64 min;
	__u64 max;
	const char *unit;
};

/* The word and the type of each field of TIMELY_TRIM_OPTIONS. */
#define FORM_limit "limit", TYPE_PACKETS
#define FORM_header_limit "header_limit", TYPE_LIMIT
#define FORM_size "size", TYPE_SIZE
#define FORM_dscp "dscp", TYPE_DSCP
#define FORM_trimmable "trimmable", TYPE_MASK
#define FORM_control "control", TYPE_MASK
#define FORM_ratio "ratio", TYPE_NUMBER
#define FORM_victim "victim", TYPE_VICTIM
#define FORM_give_back "return", TYPE_FLAG

#define OPTION(field, ATTR, width, low, high, value, unit, doc) \
	{ FORM_##field, TCA_TRIM_##ATTR, width, low##ULL, high##ULL, unit },
static const struct option options[] = {
	TIMELY_TRIM_OPTIONS(OPTION)
};

static const char * const victims[] = {
	[TIMELY_TRIM_RANDOM] = "random",
	[TIMELY_TRIM_ARRIVAL] = "arrival",
	[TIMELY_TRIM_TAIL] = "tail",
};

static void print_usage(FILE *f)
{
	fputs("Usage: ... trim [ limit PACKETS ] [ header_limit BYTES | auto ]\n"
	      "\t[ size BYTES ] [ dscp DSCP ]\n"
	      "\t[ trimmable DSCP-LIST | any | none ] [ control DSCP-LIST | none ]\n"
	      "\t[ ratio PACKETS ] [ victim { random | arrival | tail } ]\n"
	      "\t[ [no]return ]\n"
	      "Manual: man tc-trim\n", f);
}

/* ---- the command line: parsers print an error and return false if a value is wrong ---- */

static bool refuse(const struct option *o, const char *word, const char *allowed)
{
	fprintf(stderr, "trim: %s: allowed are %s, not \"%s\"\n", o->word, allowed, word);
	return false;
}

/* A name of a DSCP, or a number. */
static bool parse_dscp(const char *word, __u64 *value)
{
	int named = dscp_by_name(word);

	*value = named;
	return named >= 0 || (parse_number(word, value) && *value < DSCPS);
}

/* A DSCP, or a range such as 0-7. */
static bool parse_item(char *item, __u64 *mask)
{
	char *dash = strchr(item, '-');
	__u64 first, last;

	if (dash)
		*dash = 0;
	if (!parse_dscp(item, &first) || !parse_dscp(dash ? dash + 1 : item, &last) || first > last)
		return false;
	while (first <= last)
		*mask |= 1ULL << first++;
	return true;
}

static bool parse_mask(const char *word, __u64 *mask)
{
	char *list, *rest, *item;
	bool good = true;

	*mask = strcmp(word, "any") == 0 ? ~0ULL : 0;
	if (*mask || strcmp(word, "none") == 0)
		return true;
	list = strdup(word);
	if (!list)
		return false;
	for (rest = list; good && (item = strsep(&rest, ",")); )
		good = parse_item(item, mask);
	free(list);
	return good;
}

static bool parse_victim(const char *word, __u64 *value)
{
	for (*value = 0; *value < ARRAY_SIZE(victims); ++*value)
		if (strcmp(word, victims[*value]) == 0)
			return true;
	return false;
}

static bool parse_quantity(const struct option *o, const char *word, __u64 *value)
{
	long double scaled;
	char allowed[96];
	bool good;

	if (o->type == TYPE_LIMIT && strcmp(word, "auto") == 0) {
		*value = 0;
		return true;
	}
	good = parse_number(word, value);
	if (!good && o->type != TYPE_PACKETS && o->type != TYPE_NUMBER &&
	    parse_scaled(word, sizes, &scaled) && scaled <= o->max) {
		*value = scaled + 0.5L;
		good = true;
	}
	if (good && *value >= o->min && *value <= o->max)
		return true;
	snprintf(allowed, sizeof(allowed), "%llu to %llu %s", o->min, o->max, o->unit);
	return refuse(o, word, allowed);
}

static bool parse_value(const struct option *o, const char *word, __u64 *value)
{
	switch (o->type) {
	case TYPE_DSCP:
		return parse_dscp(word, value) ||
		       refuse(o, word, "0 to 63 and a name such as CS6, AF41 or EF");
	case TYPE_MASK:
		return parse_mask(word, value) ||
		       refuse(o, word, "DSCPs such as AF11,AF12,40-47, any and none");
	case TYPE_VICTIM:
		return parse_victim(word, value) ||
		       refuse(o, word, "random, arrival and tail");
	default:
		return parse_quantity(o, word, value);
	}
}

/* The option that @word names; NULL if it names none. @off: the word is "no" and a flag. */
static const struct option *find_option(const char *word, bool *off)
{
	*off = false;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (strcmp(word, options[i].word) == 0)
			return &options[i];
		if (options[i].type == TYPE_FLAG && strncmp(word, "no", 2) == 0 &&
		    strcmp(word + 2, options[i].word) == 0) {
			*off = true;
			return &options[i];
		}
	}
	if (strcmp(word, "help") != 0)
		fprintf(stderr, "trim: unknown option \"%s\"\n", word);
	print_usage(stderr);
	return NULL;
}

/* Adds an attribute in the width that the kernel expects. */
static int send_number(struct nlmsghdr *n, const struct option *o, __u64 value)
{
	__u32 value32 = value;
	__u8 value8 = value;

	switch (o->bits) {
	case 8:
		return addattr_l(n, MESSAGE_BYTES, o->attr, &value8, sizeof(value8));
	case 32:
		return addattr_l(n, MESSAGE_BYTES, o->attr, &value32, sizeof(value32));
	default:
		return addattr_l(n, MESSAGE_BYTES, o->attr, &value, sizeof(value));
	}
}

/* The same option may be given several times; the last value counts, as with other qdiscs. */
static int parse_options(const struct qdisc_util *qu, int argc, char **argv,
			 struct nlmsghdr *n, const char *dev)
{
	bool given[ARRAY_SIZE(options)] = {}, off;
	__u64 values[ARRAY_SIZE(options)];
	const struct option *o;
	struct rtattr *nest;
	int status = 0;

	(void)qu;
	(void)dev;
	for (; argc > 0; argc--, argv++) {
		o = find_option(*argv, &off);
		if (!o)
			return -1;
		given[o - options] = true;
		values[o - options] = !off;
		if (o->type == TYPE_FLAG)
			continue;
		if (argc-- < 2) {
			fprintf(stderr, "trim: %s: a value is missing\n", o->word);
			return -1;
		}
		if (!parse_value(o, *++argv, &values[o - options]))
			return -1;
	}
	nest = addattr_nest(n, MESSAGE_BYTES, TCA_OPTIONS | NLA_F_NESTED);
	for (size_t i = 0; i < ARRAY_SIZE(options) && !status; i++)
		if (given[i])
			status = send_number(n, &options[i], values[i]);
	addattr_nest_end(n, nest);
	return status;
}

/* ---- output ---- */

static void show_uint(const char *key, const char *format, unsigned int value)
{
	show_text("%s ", key);
	print_color_uint(PRINT_FP, COLOR_NONE, NULL, format, value);
	print_color_uint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

static void show_dscp(const char *key, unsigned int value)
{
	const char *name = dscp_name(value);

	if (!name) {
		show_uint(key, "%u ", value);
		return;
	}
	show_text("%s ", key);
	show_text("%s ", name);
	print_color_uint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

static bool has(__u64 mask, unsigned int dscp)
{
	return dscp < DSCPS && mask >> dscp & 1;
}

/* Text that parse_mask() understands: names, and three or more DSCPs in a row as a range. */
static void write_list(char *text, __u64 mask)
{
	unsigned int dscp, last;
	char item[16];

	*text = 0;
	for (dscp = 0; dscp < DSCPS; dscp = last + 1) {
		last = dscp;
		if (!has(mask, dscp))
			continue;
		while (has(mask, last + 1))
			last++;
		if (last < dscp + 2)
			last = dscp;
		if (last > dscp)
			snprintf(item, sizeof(item), "%u-%u", dscp, last);
		else if (dscp_name(dscp))
			snprintf(item, sizeof(item), "%s", dscp_name(dscp));
		else
			snprintf(item, sizeof(item), "%u", dscp);
		if (*text)
			strcat(text, ",");
		strcat(text, item);
	}
}

/* JSON has an array of numbers. */
static void show_mask(const char *key, __u64 mask)
{
	char text[LIST_BYTES];

	write_list(text, mask);
	show_text("%s ", key);
	show_text("%s ", mask == ~0ULL ? "any" : mask ? text : "none");
	open_json_array(PRINT_JSON, key);
	for (unsigned int dscp = 0; dscp < DSCPS; dscp++)
		if (has(mask, dscp))
			print_color_uint(PRINT_JSON, COLOR_NONE, NULL, NULL, dscp);
	close_json_array(PRINT_JSON, NULL);
}

/* A victim of a newer module is shown as a number. */
static void show_victim(const char *key, __u64 value)
{
	if (value >= ARRAY_SIZE(victims)) {
		show_uint(key, "%u ", value);
		return;
	}
	show_text("%s ", key);
	print_color_string(PRINT_ANY, COLOR_NONE, key, "%s ", victims[value]);
}

static void show_option(const struct option *o, __u64 value)
{
	switch (o->type) {
	case TYPE_PACKETS:
		show_uint(o->word, "%up ", value);
		break;
	case TYPE_SIZE:
	case TYPE_LIMIT:
		/* Not print_size(): it rounds, and the line would not give the same qdisc. */
		show_uint(o->word, "%ub ", value);
		break;
	case TYPE_DSCP:
		show_dscp(o->word, value);
		break;
	case TYPE_MASK:
		show_mask(o->word, value);
		break;
	case TYPE_VICTIM:
		show_victim(o->word, value);
		break;
	case TYPE_FLAG:
		show_text(value ? "%s " : "no%s ", o->word);
		print_color_bool(PRINT_JSON, COLOR_NONE, o->word, NULL, value);
		break;
	default:
		show_uint(o->word, "%u ", value);
	}
}

/* Shows an attribute, unless it is shorter than this plugin expects. */
static void show_attribute(const struct option *o, const struct rtattr *attr)
{
	__u64 value = 0;
	__u32 value32;

	if (RTA_PAYLOAD(attr) < o->bits / 8U)
		return;
	if (o->bits == 8) {
		value = *(const __u8 *)RTA_DATA(attr);
	} else if (o->bits == 32) {
		memcpy(&value32, RTA_DATA(attr), sizeof(value32));
		value = value32;
	} else {
		memcpy(&value, RTA_DATA(attr), sizeof(value));
	}
	show_option(o, value);
}

static int show_options(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	const struct rtattr *attrs[TCA_TRIM_MAX + 1] = {};
	const struct rtattr *attr;
	int left;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	left = RTA_PAYLOAD(opt);
	for (attr = RTA_DATA(opt); RTA_OK(attr, left); attr = RTA_NEXT(attr, left))
		if ((attr->rta_type & NLA_TYPE_MASK) <= TCA_TRIM_MAX)
			attrs[attr->rta_type & NLA_TYPE_MASK] = attr;
	for (size_t i = 0; i < ARRAY_SIZE(options); i++)
		if (attrs[options[i].attr])
			show_attribute(&options[i], attrs[options[i].attr]);
	return 0;
}

static void count(const char *key, __u64 value)
{
	show_text(" %s", key);
	print_color_lluint(PRINT_FP, COLOR_NONE, NULL, " %llu", value);
	print_color_lluint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

/* A counter that text has only if it is not 0. */
static void count_if(const char *key, __u64 value)
{
	if (value)
		count(key, value);
	else
		print_color_lluint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

static void new_line(void)
{
	print_nl();
	show_text("%s", " ");
}

static int show_stats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct tc_trim_stats st = {};
	size_t size;

	(void)qu;
	(void)f;
	if (!xstats)
		return 0;
	size = RTA_PAYLOAD(xstats);
	memcpy(&st, RTA_DATA(xstats), size < sizeof(st) ? size : sizeof(st));
	show_text("%s", " ");
	count("data_packets", st.data_packets);
	count("data_bytes", st.data_bytes);
	count("header_packets", st.header_packets);
	count("header_bytes", st.header_bytes);
	new_line();
	count("trim_packets", st.trim_packets);
	count("tx_trim_packets", st.tx_trim_packets);
	count("dropped_trim_packets", st.dropped_trim_packets);
	count("trim_bytes", st.trim_bytes);
	count("trim_tail", st.trim_tail);
	new_line();
	count("control", st.control);
	count("short_packets", st.short_packets);
	count_if("dropped_control", st.dropped_control);
	count_if("returned", st.returned);
	count_if("return_failed", st.return_failed);
	count_if("segmented", st.segmented);
	count_if("segments", st.segments);
	if (st.dropped_dscp || st.dropped_not_ip || st.dropped_fragment || st.dropped_ipsec ||
	    st.dropped_headers || st.dropped_memory)
		new_line();
	count_if("dropped_dscp", st.dropped_dscp);
	count_if("dropped_not_ip", st.dropped_not_ip);
	count_if("dropped_fragment", st.dropped_fragment);
	count_if("dropped_ipsec", st.dropped_ipsec);
	count_if("dropped_headers", st.dropped_headers);
	count_if("dropped_memory", st.dropped_memory);
	return 0;
}

/* tc finds this symbol by the name of the qdisc. */
__attribute__((visibility("default")))
struct qdisc_util trim_qdisc_util = {
	.id = "trim",
	.parse_qopt = parse_options,
	.print_qopt = show_options,
	.print_xstats = show_stats,
};
