// SPDX-License-Identifier: GPL-2.0
/*
 * The command line of the qdisc "timely": words become numbers in the kernel's units,
 * and these become netlink attributes.
 *
 * Values are collected in struct given first. If a value is wrong, a message on standard
 * error says which values are allowed, and nothing is sent. The same option may be given
 * several times; the last value counts, as with other qdiscs.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "q_timely.h"

/* Room for the whole message. All options together take less than 400 bytes. */
#define MESSAGE_BYTES 2048

/**
 * struct given - the options of a command line
 * @is: for each attribute TCA_TIMELY_*: its option was given
 * @value: for each attribute: the value in the kernel's unit
 * @priomap: value of priomap
 * @weights: value of weights
 */
struct given {
	bool is[TCA_TIMELY_MAX + 1];
	__u64 value[TCA_TIMELY_MAX + 1];
	struct tc_prio_qopt priomap;
	__s32 weights[TIMELY_BANDS];
};

/**
 * struct args - the rest of the command line
 * @left: number of words that are left, the present one included
 * @word: the present word
 * @dev: name of the device, for rates in per cent of its speed
 */
struct args {
	int left;
	char **word;
	const char *dev;
};

/* ---- numbers with units ---- */

/* In ns. */
static const struct unit times[] = {
	{ 1e9, "s" }, { 1e9, "sec" }, { 1e9, "secs" },
	{ 1e6, "ms" }, { 1e6, "msec" }, { 1e6, "msecs" },
	{ 1e3, "us" }, { 1e3, "usec" }, { 1e3, "usecs" },
	{ 1, "ns" }, { 1, "nsec" }, { 1, "nsecs" },
	{ 0, NULL }
};

/* In bytes/s. tc takes a rate without a unit in bit/s. */
static const struct unit rates[] = {
	{ 0.125, "" }, { 0.125, "bit" }, { 1, "bps" },
	{ 1e3 / 8, "kbit" }, { 1e3, "kbps" }, { 0x1p7, "kibit" }, { 0x1p10, "kibps" },
	{ 1e6 / 8, "mbit" }, { 1e6, "mbps" }, { 0x1p17, "mibit" }, { 0x1p20, "mibps" },
	{ 1e9 / 8, "gbit" }, { 1e9, "gbps" }, { 0x1p27, "gibit" }, { 0x1p30, "gibps" },
	{ 1e12 / 8, "tbit" }, { 1e12, "tbps" }, { 0x1p37, "tibit" }, { 0x1p40, "tibps" },
	{ 0, NULL }
};

/* @unit: unit of the result, and of a word without a unit */
static bool parse_time(const char *word, const char *unit, long double *value)
{
	long double scale = strcmp(unit, "us") == 0 ? 1e3 : 1;
	const struct unit none[] = { { scale, "" }, { 0, NULL } };

	if (!parse_scaled(word, none, value) && !parse_scaled(word, times, value))
		return false;
	*value /= scale;
	return true;
}

/* ---- messages ---- */

/* Prints that the value of an option is wrong, and which values are allowed. Returns false. */
static bool refuse(const char *option, const char *word, const char *allowed)
{
	fprintf(stderr, "timely: %s: allowed are %s, not \"%s\"\n", option, allowed, word);
	return false;
}

/* As refuse(), for a range. The kernel's message for such a value has the same words. */
static bool refuse_range(const char *option, const char *word, __u64 min, __u64 max,
			 const char *unit)
{
	char allowed[96];

	snprintf(allowed, sizeof(allowed), "%llu to %llu %s", min, max, unit);
	return refuse(option, word, allowed);
}

/* ---- values: the parsers print an error and return false if a value is wrong ---- */

/* Advances to the next word and returns it; NULL at the end. */
static const char *next_word(struct args *args)
{
	if (args->left < 2)
		return NULL;
	args->left--;
	return *++args->word;
}

/* The logarithm to base 2, rounded up. */
static unsigned int log2_up(__u64 value)
{
	unsigned int log = 0;

	while (log < 63 && (1ULL << log) < value)
		log++;
	return log;
}

static bool parse_buckets(const struct option *o, const char *word, struct given *given)
{
	struct range range = range_of(o->attr);
	__u64 value;

	if (!parse_number(word, &value) || value < 1ULL << range.min ||
	    value > 1ULL << range.max)
		return refuse_range(o->word, word, 1ULL << range.min, 1ULL << range.max,
				    "buckets");
	given->value[o->attr] = log2_up(value);
	return true;
}

static bool parse_dscp(const struct option *o, const char *word, struct given *given)
{
	__u64 *value = &given->value[o->attr];
	int named = dscp_by_name(word);

	if (strcmp(word, "keep") == 0) {
		*value = TIMELY_DSCP_KEEP;
		return true;
	}
	if (named >= 0) {
		*value = named;
		return true;
	}
	if (parse_number(word, value) && *value <= range_of(o->attr).max)
		return true;
	return refuse(o->word, word, "0 to 63, a name such as CS6, AF41 or EF, and keep");
}

static bool parse_priority(const struct option *o, const char *word, struct given *given)
{
	__u64 *value = &given->value[o->attr];

	if (strcmp(word, "keep") == 0) {
		*value = TIMELY_PRIORITY_KEEP;
		return true;
	}
	if (parse_number(word, value) && *value <= range_of(o->attr).max)
		return true;
	return refuse(o->word, word, "0 to 15, and keep");
}

static bool parse_clock(const struct option *o, const char *word, struct given *given)
{
	given->value[o->attr] = strcmp(word, "drop") == 0;
	return given->value[o->attr] || strcmp(word, "send") == 0 ||
	       refuse(o->word, word, "send and drop");
}

static bool parse_owd(const struct option *o, const char *word, struct given *given)
{
	for (size_t i = 0; i < OWD_COUNT; i++) {
		if (strcmp(word, owd_words[i]) == 0) {
			given->value[o->attr] = i;
			return true;
		}
	}
	return refuse(o->word, word, "absolute, relative and rtt");
}

/* A fraction such as 1/16 or .0625, in 65536ths. */
static bool parse_parts(const char *word, long double *value)
{
	__u64 divisor = 1;
	char *end;

	if (!strchr("0123456789.", word[0]))
		return false;
	*value = strtold(word, &end);
	if (end == word)
		return false;
	if (*end == '/' && (!parse_number(end + 1, &divisor) || !divisor))
		return false;
	*value = *value * ONE / divisor;
	return *end == '/' || !*end;
}

static bool parse_fraction(const struct option *o, const char *word, struct given *given)
{
	long double value;
	struct range range = range_of(o->attr);

	if (!parse_parts(word, &value) || value < range.min || value > range.max)
		return refuse(o->word, word, "1/65536 to 1, such as 1/16 or .0625");
	given->value[o->attr] = value + 0.5L;
	return true;
}

/* "3 priomap", then a band for each priority. */
static bool parse_priomap(struct args *args, struct given *given)
{
	const char *word = *args->word;
	__u64 value;

	if (strcmp(word, "3") != 0) {
		fprintf(stderr, "timely: bands: the qdisc has 3 bands, not \"%s\"\n", word);
		return false;
	}
	given->priomap.bands = TIMELY_BANDS;
	word = next_word(args);
	if (!word || strcmp(word, "priomap") != 0) {
		fputs("timely: bands: \"priomap\" and 16 bands must follow\n", stderr);
		return false;
	}
	for (int i = 0; i <= TC_PRIO_MAX; i++) {
		word = next_word(args);
		if (!word) {
			fprintf(stderr, "timely: priomap: %d of 16 bands are missing\n",
				TC_PRIO_MAX + 1 - i);
			return false;
		}
		if (!parse_number(word, &value) || value >= TIMELY_BANDS)
			return refuse_range("priomap", word, 0, TIMELY_BANDS - 1, "bands");
		given->priomap.priomap[i] = value;
	}
	return true;
}

static bool parse_weights(struct args *args, struct given *given)
{
	const char *word = *args->word;
	__u64 value;

	for (int i = 0; i < TIMELY_BANDS; i++) {
		if (i > 0)
			word = next_word(args);
		if (!word) {
			fprintf(stderr, "timely: weights: %d of 3 weights are missing\n",
				TIMELY_BANDS - i);
			return false;
		}
		if (!parse_number(word, &value) || value < TIMELY_QDISC_MIN_WEIGHT ||
		    value > INT_MAX)
			return refuse_range("weights", word, TIMELY_QDISC_MIN_WEIGHT, INT_MAX,
					    "bytes");
		given->weights[i] = value;
	}
	return true;
}

/* tc prints a message of its own if it cannot compute a percentage. */
static bool parse_rate(const char *word, const char *dev, long double *value)
{
	__u64 rate;

	if (!strchr(word, '%'))
		return parse_scaled(word, rates, value);
	if (get_percent_rate64(&rate, word, dev))
		return false;
	*value = rate;
	return true;
}

/* fq ignores defrate since Linux 3.13, but command lines for fq still contain it. */
static bool parse_defrate(const char *word, const char *dev)
{
	long double ignored;

	if (!parse_rate(word, dev, &ignored))
		return refuse("defrate", word, "rates such as 1mbit, which are ignored");
	fputs("timely: defrate: ignored, as fq ignores it\n", stderr);
	return true;
}

/* The value of an option that is a number with a unit, in the unit of its range. */
static bool parse_quantity(const struct option *o, const char *word, const char *dev,
			   long double *value)
{
	__u64 number;

	switch (o->type) {
	case TYPE_RATE:
		return parse_rate(word, dev, value);
	case TYPE_TIME:
	case TYPE_SLOT:
	case TYPE_THRESHOLD:
		return parse_time(word, range_of(o->attr).unit, value);
	default:
		if (!parse_number(word, &number))
			return o->type == TYPE_SIZE && parse_scaled(word, sizes, value);
		*value = number;
		return true;
	}
}

static bool parse_ranged(const struct option *o, const char *word, const char *dev,
			 struct given *given)
{
	long double value;
	struct range range = range_of(o->attr);
	__u64 most = range.max;

	/* tc sends each 32-bit initial_quantum of fq, so the kernel refuses and tc exits with 2. */
	if (o->attr == TCA_TIMELY_INITIAL_QUANTUM)
		most = UINT_MAX;
	if (strcmp(word, "none") == 0 && o->none != NO_NONE && o->none == range.max) {
		given->value[o->attr] = o->none;
		return true;
	}
	if (!parse_quantity(o, word, dev, &value))
		return refuse_range(o->word, word, range.min, range.max, range.unit);
	/* Round to the nearest: in binary 1.1ms is slightly less than 1100 us. */
	if (value < 0x1p52L)
		value = (__u64)(value + 0.5L);
	if (value < range.min || value > most)
		return refuse_range(o->word, word, range.min, range.max, range.unit);
	given->value[o->attr] = value;
	return true;
}

static bool parse_threshold(const struct option *o, const char *word, struct given *given)
{
	given->value[o->attr] = 0;
	return strcmp(word, "off") == 0 || parse_ranged(o, word, NULL, given);
}

static bool parse_value(const struct option *o, struct args *args, struct given *given)
{
	const char *word = next_word(args);

	if (!word) {
		fprintf(stderr, "timely: %s: a value is missing\n", o->word);
		return false;
	}
	switch (o->type) {
	case TYPE_BUCKETS:
		return parse_buckets(o, word, given);
	case TYPE_CLOCK:
		return parse_clock(o, word, given);
	case TYPE_DSCP:
		return parse_dscp(o, word, given);
	case TYPE_PRIORITY:
		return parse_priority(o, word, given);
	case TYPE_PRIOMAP:
		return parse_priomap(args, given);
	case TYPE_WEIGHTS:
		return parse_weights(args, given);
	case TYPE_DEFRATE:
		return parse_defrate(word, args->dev);
	case TYPE_THRESHOLD:
		return parse_threshold(o, word, given);
	case TYPE_FRACTION:
		return parse_fraction(o, word, given);
	case TYPE_OWD:
		return parse_owd(o, word, given);
	default:
		return parse_ranged(o, word, args->dev, given);
	}
}

/* ---- options ---- */

/* The present name of an option; prints a notice if @word is its former name. */
static const char *present_name(const char *word)
{
	for (size_t i = 0; i < OLD_NAME_COUNT; i++) {
		if (strcmp(word, old_names[i].old) == 0) {
			fprintf(stderr,
				"timely: %s is deprecated and will be removed in the next release: use %s\n",
				word, old_names[i].word);
			return old_names[i].word;
		}
	}
	return word;
}

/* Parses an option and its value. Prints an error, or the usage, and returns false if it cannot. */
static bool parse_option(struct args *args, struct given *given)
{
	const char *word = present_name(*args->word);

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		const struct option *o = &options[i];
		bool on = strcmp(word, o->word) == 0;

		if (!on && (!o->off_word || strcmp(word, o->off_word) != 0))
			continue;
		if (o->off_word)
			given->value[o->attr] = on;
		else if (!parse_value(o, args, given))
			return false;
		given->is[o->attr] = o->attr != TCA_TIMELY_UNSPEC;
		return true;
	}
	if (strcmp(word, "help") != 0)
		fprintf(stderr, "timely: unknown option \"%s\"\n", word);
	print_usage(stderr);
	return false;
}

/* Adds an attribute in the width that the kernel expects. */
static int send_number(struct nlmsghdr *n, int attr, __u64 value)
{
	__u32 value32 = value;
	__u8 value8 = value;

	switch (range_of(attr).bits) {
	case 8:
		return addattr_l(n, MESSAGE_BYTES, attr, &value8, sizeof(value8));
	case 32:
		return addattr_l(n, MESSAGE_BYTES, attr, &value32, sizeof(value32));
	default:
		return addattr_l(n, MESSAGE_BYTES, attr, &value, sizeof(value));
	}
}

static int send_options(struct nlmsghdr *n, const struct given *given)
{
	struct rtattr *nest = addattr_nest(n, MESSAGE_BYTES, TCA_OPTIONS | NLA_F_NESTED);
	int status = 0;

	for (int attr = 1; attr <= TCA_TIMELY_MAX && !status; attr++) {
		if (!given->is[attr])
			continue;
		if (attr == TCA_TIMELY_PRIOMAP)
			status = addattr_l(n, MESSAGE_BYTES, attr, &given->priomap,
					   sizeof(given->priomap));
		else if (attr == TCA_TIMELY_WEIGHTS)
			status = addattr_l(n, MESSAGE_BYTES, attr, given->weights,
					   sizeof(given->weights));
		else
			status = send_number(n, attr, given->value[attr]);
	}
	addattr_nest_end(n, nest);
	return status;
}

int parse_options(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
		  const char *dev)
{
	struct args args = { argc, argv, dev };
	struct given given = {};

	(void)qu;
	for (; args.left > 0; args.left--, args.word++)
		if (!parse_option(&args, &given))
			return -1;
	return send_options(n, &given);
}
