// SPDX-License-Identifier: GPL-2.0
/*
 * The qdisc "timely" for tc: a plugin that an unmodified tc loads when it meets
 * the name.
 *
 * A table has a line for each option, in the order in which they are shown.
 * What was given on the command line is collected first, as numbers in the
 * kernel's units, and then sent: only that, so that `change` changes nothing
 * else. Ranges come from the header that the kernel module has them from.
 *
 * The words of fq's options, the values they take and how they are shown are
 * fq's, see tc-fq(8).
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linux/pkt_sched.h>

#include <linux/timely.h>
#include <net/timely_qdisc.h>

#include "iproute2.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Of the message, for all the attributes: they take less than 400. */
#define MESSAGE_BYTES 2048

#define NONE32 4294967295ULL
#define NONE64 18446744073709551615ULL
/* No value of the option means that there is none. */
#define NO_NONE (NONE64 - 1)

/* What fractions are parts of, to the kernel. */
#define ONE 65536

enum form {
	PACKETS,
	NUMBER,
	BUCKETS,	/* a number, its logarithm to the kernel */
	SIZE,
	RATE,
	TIME,		/* in the unit of the option's range */
	SLOT,		/* a time that is shown to the nanosecond */
	FLAG,		/* two words without a value */
	HORIZON_DROP,	/* a flag that is shown as fq shows it */
	CLOCK,		/* send or drop */
	DSCP,
	PRIORITY,
	PRIOMAP,
	WEIGHTS,
	DEFRATE,
	THRESHOLD,	/* a time, or off */
	FRACTION,	/* in 65536ths */
	OWD,		/* what delay is */
};

/**
 * struct option - an option of the qdisc
 * @word: on the command line and, unless noted, the key in JSON
 * @other: of a flag, the word that turns it off
 * @attr: TCA_TIMELY_*
 * @form: what its value looks like
 * @none: the value that is not shown, and is given as "none"; or NO_NONE
 */
struct option {
	const char *word;
	const char *other;
	unsigned short attr;
	enum form form;
	__u64 none;
};

static const struct option options[] = {
	{ "limit", NULL, TCA_TIMELY_LIMIT, PACKETS, NO_NONE },
	{ "flow_limit", NULL, TCA_TIMELY_FLOW_LIMIT, PACKETS, NO_NONE },
	{ "buckets", NULL, TCA_TIMELY_BUCKETS_LOG, BUCKETS, NO_NONE },
	{ "orphan_mask", NULL, TCA_TIMELY_ORPHAN_MASK, NUMBER, NO_NONE },
	{ "pacing", "nopacing", TCA_TIMELY_PACING, FLAG, 1 },
	{ "bands", NULL, TCA_TIMELY_PRIOMAP, PRIOMAP, NO_NONE },
	{ "weights", NULL, TCA_TIMELY_WEIGHTS, WEIGHTS, NO_NONE },
	{ "quantum", NULL, TCA_TIMELY_QUANTUM, SIZE, NO_NONE },
	{ "initial_quantum", NULL, TCA_TIMELY_INITIAL_QUANTUM, SIZE, NO_NONE },
	{ "maxrate", NULL, TCA_TIMELY_MAXRATE, RATE, NONE64 },
	{ "defrate", NULL, TCA_TIMELY_UNSPEC, DEFRATE, NO_NONE },
	{ "low_rate_threshold", NULL, TCA_TIMELY_LOW_RATE_THRESHOLD, RATE, 0 },
	{ "refill_delay", NULL, TCA_TIMELY_REFILL_DELAY, TIME, NO_NONE },
	{ "ce_threshold", NULL, TCA_TIMELY_CE_THRESHOLD, TIME, NONE32 },
	{ "timer_slack", NULL, TCA_TIMELY_TIMER_SLACK, TIME, NO_NONE },
	{ "horizon", NULL, TCA_TIMELY_HORIZON, TIME, NO_NONE },
	{ "horizon_drop", "horizon_cap", TCA_TIMELY_HORIZON_DROP, HORIZON_DROP, NO_NONE },
	{ "offload_horizon", NULL, TCA_TIMELY_OFFLOAD_HORIZON, TIME, NO_NONE },

	{ "slot", NULL, TCA_TIMELY_SLOT, SLOT, NO_NONE },
	{ "lazy", "nolazy", TCA_TIMELY_LAZY, FLAG, NO_NONE },
	{ "segment", NULL, TCA_TIMELY_SEGMENT, SIZE, NO_NONE },
	{ "segment_rate", NULL, TCA_TIMELY_SEGMENT_RATE, RATE, 0 },
	{ "ack_first", "noack_first", TCA_TIMELY_ACK_FIRST, FLAG, NO_NONE },
	{ "ack_dscp", NULL, TCA_TIMELY_ACK_DSCP, DSCP, NO_NONE },
	{ "ack_priority", NULL, TCA_TIMELY_ACK_PRIORITY, PRIORITY, NO_NONE },
	{ "wrong_clock", NULL, TCA_TIMELY_WRONG_CLOCK_DROP, CLOCK, NO_NONE },

	/* These are shown only while On-Ramp is on. */
	{ "onramp", NULL, TCA_TIMELY_ONRAMP, THRESHOLD, 0 },
	{ "gain", NULL, TCA_TIMELY_ONRAMP_GAIN, FRACTION, NO_NONE },
	{ "owd", NULL, TCA_TIMELY_ONRAMP_OWD, OWD, NO_NONE },
	{ "pause_max", NULL, TCA_TIMELY_ONRAMP_PAUSE_MAX, TIME, NO_NONE },
	{ "strawman", "nostrawman", TCA_TIMELY_ONRAMP_STRAWMAN, FLAG, NO_NONE },
	{ "clock_error", NULL, TCA_TIMELY_ONRAMP_CLOCK_ERROR, TIME, NO_NONE },
};

/* What the kernel takes. */
struct range {
	unsigned int bits;
	__u64 min;
	__u64 max;
	const char *unit;
};

static struct range range_of(unsigned int attr)
{
#define RANGE(field, ATTR, bits, min, max, value, unit, doc) \
	case TCA_TIMELY_##ATTR: return (struct range){ bits, min##ULL, max##ULL, unit };
	switch (attr) {
	TIMELY_QDISC_OPTIONS(RANGE)
	}
#undef RANGE
	return (struct range){};
}

/* What was given on the command line. */
struct given {
	bool is[TCA_TIMELY_MAX + 1];
	__u64 value[TCA_TIMELY_MAX + 1];
	struct tc_prio_qopt priomap;
	__s32 weights[TIMELY_BANDS];
};

/* What is left of the command line; the first is an option's word. */
struct args {
	int left;
	char **word;
	const char *dev;
};

/* ---- numbers with units ---- */

struct unit {
	long double scale;
	const char *name;
};

/* In ns. */
static const struct unit times[] = {
	{ 1e9, "s" }, { 1e9, "sec" }, { 1e9, "secs" },
	{ 1e6, "ms" }, { 1e6, "msec" }, { 1e6, "msecs" },
	{ 1e3, "us" }, { 1e3, "usec" }, { 1e3, "usecs" },
	{ 1, "ns" }, { 1, "nsec" }, { 1, "nsecs" },
	{ 0, NULL }
};

/* In bytes; to tc a k of them is 1024, also of bits. */
static const struct unit sizes[] = {
	{ 1, "" }, { 1, "b" },
	{ 1024, "k" }, { 1024, "kb" }, { 1024 / 8, "kbit" },
	{ 1 << 20, "m" }, { 1 << 20, "mb" }, { (1 << 20) / 8, "mbit" },
	{ 1 << 30, "g" }, { 1 << 30, "gb" }, { (1 << 30) / 8, "gbit" },
	{ 0, NULL }
};

/* In bytes/s; to tc a number without a unit is in bit/s. */
static const struct unit rates[] = {
	{ 0.125, "" }, { 0.125, "bit" }, { 1, "bps" },
	{ 1e3 / 8, "kbit" }, { 1e3, "kbps" }, { 0x1p7, "kibit" }, { 0x1p10, "kibps" },
	{ 1e6 / 8, "mbit" }, { 1e6, "mbps" }, { 0x1p17, "mibit" }, { 0x1p20, "mibps" },
	{ 1e9 / 8, "gbit" }, { 1e9, "gbps" }, { 0x1p27, "gibit" }, { 0x1p30, "gibps" },
	{ 1e12 / 8, "tbit" }, { 1e12, "tbps" }, { 0x1p37, "tibit" }, { 0x1p40, "tibps" },
	{ 0, NULL }
};

/*
 * Neither sign nor "inf". A long double holds every __u64 on the common 64 bit
 * machines; elsewhere only rates beyond 2^53 bytes/s are inexact.
 */
static bool parse_scaled(const char *word, const struct unit *unit, long double *value)
{
	char *end;

	if (!strchr("0123456789.", word[0]))
		return false;
	*value = strtold(word, &end);
	if (end == word)
		return false;
	for (; unit->name; unit++) {
		if (strcasecmp(end, unit->name) == 0) {
			*value *= unit->scale;
			return true;
		}
	}
	return false;
}

/* Hexadecimal and octal too, as tc has it. */
static bool parse_number(const char *word, __u64 *value)
{
	char *end;

	if (word[0] < '0' || word[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(word, &end, 0);
	return !*end && !errno;
}

/* A time in the unit of the range, which is also that of a number without one. */
static bool parse_time(const char *word, const char *unit, long double *value)
{
	long double scale = strcmp(unit, "us") == 0 ? 1e3 : 1;
	const struct unit none[] = { { scale, "" }, { 0, NULL } };

	if (!parse_scaled(word, none, value) && !parse_scaled(word, times, value))
		return false;
	*value /= scale;
	return true;
}

/* ---- the command line ---- */

static void explain(FILE *f)
{
	fputs("Usage: ... timely [ limit PACKETS ] [ flow_limit PACKETS ]\n"
	      "\t[ quantum BYTES ] [ initial_quantum BYTES ]\n"
	      "\t[ maxrate RATE | none ] [ buckets NUMBER ]\n"
	      "\t[ [no]pacing ] [ refill_delay TIME ]\n"
	      "\t[ bands 3 priomap P0 P1 ... P14 P15 ]\n"
	      "\t[ weights W0 W1 W2 ]\n"
	      "\t[ low_rate_threshold RATE ]\n"
	      "\t[ orphan_mask MASK ]\n"
	      "\t[ timer_slack TIME ]\n"
	      "\t[ ce_threshold TIME | none ]\n"
	      "\t[ horizon TIME ] [ horizon_{cap|drop} ]\n"
	      "\t[ offload_horizon TIME ]\n"
	      "\t[ slot TIME ] [ [no]lazy ]\n"
	      "\t[ segment SIZE ] [ segment_rate RATE ]\n"
	      "\t[ [no]ack_first ] [ ack_dscp DSCP | keep ]\n"
	      "\t[ ack_priority PRIORITY | keep ]\n"
	      "\t[ wrong_clock { send | drop } ]\n"
	      "\t[ onramp THRESHOLD | off ] [ gain FRACTION ]\n"
	      "\t[ owd { absolute | relative | rtt } ]\n"
	      "\t[ pause_max TIME ] [ [no]strawman ]\n"
	      "\t[ clock_error TIME ]\n", f);
}

/* The word after the present one; it is the present one then. */
static const char *next_word(struct args *args)
{
	if (args->left < 2)
		return NULL;
	args->left--;
	return *++args->word;
}

static bool refuse(const char *option, const char *word, const char *allowed)
{
	fprintf(stderr, "timely: %s: allowed are %s, not \"%s\"\n", option, allowed, word);
	return false;
}

/* In the kernel's words. */
static bool refuse_range(const char *option, const char *word, __u64 min, __u64 max,
			 const char *unit)
{
	char allowed[96];

	snprintf(allowed, sizeof(allowed), "%llu to %llu %s", min, max, unit);
	return refuse(option, word, allowed);
}

/* log2, rounded up. */
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

/* RFC 2474, 2597, 3246, 5865, 8622; the class selectors are made of a number. */
static const struct {
	const char *name;
	unsigned int value;
} dscps[] = {
	{ "CS0", 0 }, { "CS1", 8 }, { "CS2", 16 }, { "CS3", 24 },
	{ "CS4", 32 }, { "CS5", 40 }, { "CS6", 48 }, { "CS7", 56 },
	{ "AF11", 10 }, { "AF12", 12 }, { "AF13", 14 },
	{ "AF21", 18 }, { "AF22", 20 }, { "AF23", 22 },
	{ "AF31", 26 }, { "AF32", 28 }, { "AF33", 30 },
	{ "AF41", 34 }, { "AF42", 36 }, { "AF43", 38 },
	{ "EF", 46 }, { "VA", 44 }, { "LE", 1 },
};

static const char *dscp_name(unsigned int value)
{
	for (size_t i = 0; i < ARRAY_SIZE(dscps); i++)
		if (dscps[i].value == value)
			return dscps[i].name;
	return NULL;
}

static bool parse_dscp(const struct option *o, const char *word, struct given *given)
{
	__u64 *value = &given->value[o->attr];

	if (strcmp(word, "keep") == 0) {
		*value = TIMELY_DSCP_KEEP;
		return true;
	}
	for (size_t i = 0; i < ARRAY_SIZE(dscps); i++) {
		if (strcasecmp(word, dscps[i].name) == 0) {
			*value = dscps[i].value;
			return true;
		}
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

static const char * const owds[] = {
	[TIMELY_OWD_ABSOLUTE] = "absolute",
	[TIMELY_OWD_RELATIVE] = "relative",
	[TIMELY_OWD_RTT] = "rtt",
};

static bool parse_owd(const struct option *o, const char *word, struct given *given)
{
	for (size_t i = 0; i < ARRAY_SIZE(owds); i++) {
		if (strcmp(word, owds[i]) == 0) {
			given->value[o->attr] = i;
			return true;
		}
	}
	return refuse(o->word, word, "absolute, relative and rtt");
}

/* 1/16 or .0625 */
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

/* "3 priomap" and a band for each priority. */
static bool parse_priomap(struct args *args, struct given *given)
{
	const char *word = *args->word;
	__u64 value;

	if (strcmp(word, "3") != 0)
		return refuse("bands", word, "3");
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
			fprintf(stderr, "timely: weights: %d of 3 are missing\n", TIMELY_BANDS - i);
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

/* tc itself says what is wrong with a percentage. */
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

/* To no purpose since Linux 3.13, but command lines still have it. */
static bool parse_defrate(const char *word, const char *dev)
{
	long double ignored;

	if (!parse_rate(word, dev, &ignored))
		return refuse("defrate", word, "rates, which are ignored");
	fputs("timely: defrate: ignored, as fq ignores it\n", stderr);
	return true;
}

/* The forms whose value is a number in a range. */
static bool parse_measure(const struct option *o, const char *word, const char *dev,
			  long double *value)
{
	__u64 number;

	switch (o->form) {
	case RATE:
		return parse_rate(word, dev, value);
	case TIME:
	case SLOT:
	case THRESHOLD:
		return parse_time(word, range_of(o->attr).unit, value);
	default:
		if (!parse_number(word, &number))
			return o->form == SIZE && parse_scaled(word, sizes, value);
		*value = number;
		return true;
	}
}

static bool parse_ranged(const struct option *o, const char *word, const char *dev,
			 struct given *given)
{
	long double value;
	struct range range = range_of(o->attr);

	if (strcmp(word, "none") == 0 && o->none != NO_NONE && o->none == range.max) {
		given->value[o->attr] = o->none;
		return true;
	}
	if (!parse_measure(o, word, dev, &value))
		return refuse_range(o->word, word, range.min, range.max, range.unit);
	/* To the nearest: 1.1ms is a little less in binary. */
	if (value < 0x1p52L)
		value = (__u64)(value + 0.5L);
	if (value < range.min || value > range.max)
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
	switch (o->form) {
	case BUCKETS:
		return parse_buckets(o, word, given);
	case CLOCK:
		return parse_clock(o, word, given);
	case DSCP:
		return parse_dscp(o, word, given);
	case PRIORITY:
		return parse_priority(o, word, given);
	case PRIOMAP:
		return parse_priomap(args, given);
	case WEIGHTS:
		return parse_weights(args, given);
	case DEFRATE:
		return parse_defrate(word, args->dev);
	case THRESHOLD:
		return parse_threshold(o, word, given);
	case FRACTION:
		return parse_fraction(o, word, given);
	case OWD:
		return parse_owd(o, word, given);
	default:
		return parse_ranged(o, word, args->dev, given);
	}
}

static bool parse_option(struct args *args, struct given *given)
{
	const char *word = *args->word;

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];
		bool on = strcmp(word, o->word) == 0;

		if (!on && (!o->other || strcmp(word, o->other) != 0))
			continue;
		if (o->other)
			given->value[o->attr] = on;
		else if (!parse_value(o, args, given))
			return false;
		given->is[o->attr] = o->attr != TCA_TIMELY_UNSPEC;
		return true;
	}
	if (strcmp(word, "help") != 0)
		fprintf(stderr, "timely: what is \"%s\"?\n", word);
	explain(stderr);
	return false;
}

/* The one attribute in the width that the kernel expects. */
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

static int timely_parse_opt(const struct qdisc_util *qu, int argc, char **argv,
			    struct nlmsghdr *n, const char *dev)
{
	struct args args = { argc, argv, dev };
	struct given given = {};

	(void)qu;
	for (; args.left > 0; args.left--, args.word++)
		if (!parse_option(&args, &given))
			return -1;
	return send_options(n, &given);
}

/* ---- the options shown ---- */

static void show_text(const char *fmt, const char *value)
{
	print_color_string(PRINT_FP, COLOR_NONE, NULL, fmt, value);
}

static void show_uint(const char *key, const char *fmt, unsigned int value)
{
	show_text("%s ", key);
	print_color_uint(PRINT_FP, COLOR_NONE, NULL, fmt, value);
	print_color_uint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

/* fq's JSON has durations in the kernel's units. */
static void show_time(const char *key, bool is_us, __u32 value)
{
	char buffer[SPRINT_BSIZE];

	show_text("%s ", key);
	show_text("%s ", is_us ? sprint_time(value, buffer) : sprint_time64(value, buffer));
	print_color_uint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

/* Only false is shown where true is the usual. */
static void show_flag(const struct option *o, bool on)
{
	if (on == o->none)
		return;
	show_text("%s ", on ? o->word : o->other);
	print_color_bool(PRINT_JSON, COLOR_NONE, o->word, NULL, on);
}

/* A number or, for the 255 that means keep, null to a program. */
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

/* fq has a key without a value for each of the two. */
static void show_horizon_drop(const struct option *o, bool drop)
{
	const char *word = drop ? o->word : o->other;

	show_text("%s ", word);
	print_color_null(PRINT_JSON, COLOR_NONE, word, NULL, NULL);
}

static void show_clock(const struct option *o, bool drop)
{
	show_text("%s ", o->word);
	print_color_string(PRINT_ANY, COLOR_NONE, o->word, "%s ", drop ? "drop" : "send");
}

/* What a program gets is a fraction too. */
static void show_fraction(const char *key, __u64 value)
{
	show_text("%s ", key);
	if (value && value < ONE && ONE % value == 0)
		print_color_uint(PRINT_FP, COLOR_NONE, NULL, "1/%u ", ONE / value);
	else
		print_color_float(PRINT_FP, COLOR_NONE, NULL, "%g ", (double)value / ONE);
	print_color_float(PRINT_JSON, COLOR_NONE, key, NULL, (double)value / ONE);
}

/* One that a newer module has gets its number. */
static void show_owd(const struct option *o, __u64 value)
{
	if (value >= ARRAY_SIZE(owds)) {
		show_uint(o->word, "%u ", value);
		return;
	}
	show_text("%s ", o->word);
	print_color_string(PRINT_ANY, COLOR_NONE, o->word, "%s ", owds[value]);
}

/* tc's helpers put the value in both outputs, the word only in JSON. */
static void show_measure(const struct option *o, __u64 value)
{
	if (value == o->none)
		return;
	switch (o->form) {
	case SIZE:
		show_text("%s ", o->word);
		print_color_size(PRINT_ANY, COLOR_NONE, o->word, "%s ", value);
		break;
	case RATE:
		show_text("%s ", o->word);
		tc_print_rate(PRINT_ANY, o->word, "%s ", value);
		break;
	case TIME:
	case THRESHOLD:
		show_time(o->word, strcmp(range_of(o->attr).unit, "us") == 0, value);
		break;
	default:
		/* Three digits would make 2.05us of 2048ns, to round up again. */
		show_uint(o->word, "%uns ", value);
	}
}

static void show_number(const struct option *o, __u64 value)
{
	switch (o->form) {
	case PACKETS:
		show_uint(o->word, "%up ", value);
		break;
	case NUMBER:
		show_uint(o->word, "%u ", value);
		break;
	case BUCKETS:
		show_uint(o->word, "%u ", 1U << (value & 31));
		break;
	case FLAG:
		show_flag(o, value);
		break;
	case HORIZON_DROP:
		show_horizon_drop(o, value);
		break;
	case CLOCK:
		show_clock(o, value);
		break;
	case DSCP:
		show_keep(o, value, dscp_name(value));
		break;
	case PRIORITY:
		show_keep(o, value, NULL);
		break;
	case FRACTION:
		show_fraction(o->word, value);
		break;
	case OWD:
		show_owd(o, value);
		break;
	default:
		show_measure(o, value);
	}
}

/* False if it is not as wide as we know it. */
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

/* The newer module's attributes that we do not know are left out. */
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

/* Of the qdisc whose options were shown last: its statistics follow. */
static bool onramp_is_on;

static bool onramp_on(const struct rtattr *attr)
{
	__u64 threshold_ns;

	return attr && read_number(attr, range_of(TCA_TIMELY_ONRAMP).bits, &threshold_ns) &&
	       threshold_ns;
}

static int timely_print_opt(const struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	const struct rtattr *attrs[TCA_TIMELY_MAX + 1] = {};
	__u64 value;

	(void)qu;
	(void)f;
	onramp_is_on = false;
	if (!opt)
		return 0;
	index_attributes(opt, attrs);
	onramp_is_on = onramp_on(attrs[TCA_TIMELY_ONRAMP]);
	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		const struct option *o = &options[i];

		if (!attrs[o->attr] || o->attr == TCA_TIMELY_UNSPEC)
			continue;
		if (o->attr >= TCA_TIMELY_ONRAMP && !onramp_is_on)
			continue;
		if (o->form == PRIOMAP)
			show_priomap(attrs[o->attr]);
		else if (o->form == WEIGHTS)
			show_weights(attrs[o->attr]);
		else if (read_number(attrs[o->attr], range_of(o->attr).bits, &value))
			show_number(o, value);
	}
	return 0;
}

/* ---- statistics ---- */

static void count(const char *key, __u64 value)
{
	show_text(" %s", key);
	print_color_lluint(PRINT_FP, COLOR_NONE, NULL, " %llu", value);
	print_color_lluint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

/* In text only when there is something to say, as fq has it. */
static void count_if(const char *key, __u64 value)
{
	if (value)
		count(key, value);
	else
		print_color_lluint(PRINT_JSON, COLOR_NONE, key, NULL, value);
}

/* Less than none is of no time at all: no flow waits. */
static void count_time(const char *key, __s64 ns)
{
	char buffer[SPRINT_BSIZE];

	if (ns < 0)
		return;
	if (ns > 0) {
		show_text(" %s", key);
		show_text(" %s", sprint_time64(ns, buffer));
	}
	print_color_lluint(PRINT_JSON, COLOR_NONE, key, NULL, ns);
}

static void new_line(void)
{
	print_nl();
	show_text("%s", " ");
}

/*
 * fq's JSON has "throttled" twice, as a number of flows and as a counter. A
 * reader who takes the last sees the counter, which is what it is here.
 */
static void show_flows(const struct tc_timely_stats *st)
{
	show_text("%s", " ");
	count("flows", st->flows);
	print_color_uint(PRINT_ANY, COLOR_NONE, "inactive", " (inactive %u", st->inactive_flows);
	print_color_uint(PRINT_ANY, COLOR_NONE, "throttled_flows", " throttled %u)",
			 st->throttled_flows);
	count("band0_pkts", st->band_pkt_count[0]);
	count("band1_pkts", st->band_pkt_count[1]);
	count("band2_pkts", st->band_pkt_count[2]);
	count_time("next_packet_delay", st->time_next_delayed_flow);
	if (st->buckets_log)
		count("buckets", 1ULL << (st->buckets_log & 63));
	new_line();
	count("gc", st->gc_flows);
	count_if("fastpath", st->fastpath_packets);
	count("throttled", st->throttled);
	count_time("latency", st->unthrottle_latency_ns);
	count_if("ce_mark", st->ce_mark);
	count_if("flows_plimit", st->flows_plimit);
	count_if("shared", st->shared_packets);
}

static void show_drops(const struct tc_timely_stats *st)
{
	if (st->pkts_too_long || st->allocation_errors || st->horizon_drops ||
	    st->horizon_caps || st->band_drops[0] || st->band_drops[1] || st->band_drops[2])
		new_line();
	count_if("pkts_too_long", st->pkts_too_long);
	count_if("alloc_errors", st->allocation_errors);
	count_if("horizon_drops", st->horizon_drops);
	count_if("horizon_caps", st->horizon_caps);
	count_if("band0_drops", st->band_drops[0]);
	count_if("band1_drops", st->band_drops[1]);
	count_if("band2_drops", st->band_drops[2]);
}

static void show_ours(const struct tc_timely_stats *st)
{
	new_line();
	count("put_back", st->put_back);
	count("brought_forward", st->brought_forward);
	count("paused", st->paused);
	count("departures", st->departures);
	new_line();
	count("segmented", st->segmented);
	count("segments", st->segments);
	count("segment_errors", st->segment_errors);
	new_line();
	count("acks_first", st->acks_first);
	count("acks_marked", st->acks_marked);
	count("wrong_clock", st->wrong_clock);
	count("wrong_clock_drops", st->wrong_clock_drops);
}

static void word_count(const char *word, __u64 value)
{
	show_text(" %s", word);
	print_color_lluint(PRINT_FP, COLOR_NONE, NULL, " %llu", value);
}

/* Below 2 us, 4 us ... 512 us, 1 ms ...; these are powers of two of 1024 ns. */
static void word_bin(unsigned int bin, __u64 signals)
{
	bool last = bin == TIMELY_ONRAMP_BINS - 1;
	unsigned int log = last ? bin : bin + 1;
	char word[16];

	snprintf(word, sizeof(word), "%s%u%s", last ? ">=" : "<", 1U << log % 10,
		 log < 10 ? "us" : "ms");
	word_count(word, signals);
}

static void show_onramp_text(const struct tc_timely_stats *st)
{
	char buffer[SPRINT_BSIZE];

	new_line();
	show_text("%s", " onramp:");
	word_count("signals", st->onramp_signals);
	word_count("pauses", st->onramp_pauses);
	show_text(" paused_time %s", sprint_time64(st->onramp_paused_ns, buffer));
	print_color_float(PRINT_FP, COLOR_NONE, NULL, " b %.2f", (double)st->onramp_b / ONE);
	word_count("acks_passed", st->onramp_acks_passed);
	if (!st->onramp_signals)
		return;
	new_line();
	show_text("%s", " onramp delays:");
	for (int i = 0; i < TIMELY_ONRAMP_BINS; i++)
		if (st->onramp_delays[i])
			word_bin(i, st->onramp_delays[i]);
}

static void show_onramp_json(const struct tc_timely_stats *st)
{
	print_color_lluint(PRINT_JSON, COLOR_NONE, "onramp_signals", NULL, st->onramp_signals);
	print_color_lluint(PRINT_JSON, COLOR_NONE, "onramp_pauses", NULL, st->onramp_pauses);
	print_color_lluint(PRINT_JSON, COLOR_NONE, "onramp_paused_ns", NULL, st->onramp_paused_ns);
	print_color_float(PRINT_JSON, COLOR_NONE, "onramp_b", NULL, (double)st->onramp_b / ONE);
	print_color_lluint(PRINT_JSON, COLOR_NONE, "onramp_acks_passed", NULL,
			   st->onramp_acks_passed);
	open_json_array(PRINT_JSON, "onramp_delays");
	for (int i = 0; i < TIMELY_ONRAMP_BINS; i++)
		print_color_lluint(PRINT_JSON, COLOR_NONE, NULL, NULL, st->onramp_delays[i]);
	close_json_array(PRINT_JSON, NULL);
}

/* In text only if it is on, or was. */
static void show_onramp(const struct tc_timely_stats *st)
{
	show_onramp_json(st);
	if (onramp_is_on || st->onramp_signals || st->onramp_pauses)
		show_onramp_text(st);
}

/* The module's struct may be older and shorter, or newer and longer. */
static int timely_print_xstats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats)
{
	struct tc_timely_stats st = {};
	size_t size;

	(void)qu;
	(void)f;
	if (!xstats)
		return 0;
	size = RTA_PAYLOAD(xstats);
	memcpy(&st, RTA_DATA(xstats), size < sizeof(st) ? size : sizeof(st));
	show_flows(&st);
	show_drops(&st);
	show_ours(&st);
	show_onramp(&st);
	return 0;
}

struct qdisc_util timely_qdisc_util = {
	.id = "timely",
	.parse_qopt = timely_parse_opt,
	.print_qopt = timely_print_opt,
	.print_xstats = timely_print_xstats,
};
