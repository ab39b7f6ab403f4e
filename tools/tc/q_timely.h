/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations shared by the files of the plugin by which tc supports the qdisc "timely": the
 * table of options, and one function for each callback of tc. tc-timely(8) describes the options.
 *
 *	q_timely.c	struct qdisc_util, which tc looks up; the table of options; the usage
 *	parse.c		command line -> netlink attributes
 *	show.c		netlink attributes -> text and JSON
 *	stats.c		statistics -> text and JSON
 *
 * These files and value.c are linked into one object, q_timely.so. Only struct qdisc_util is
 * visible to tc.
 */
#ifndef _TOOLS_TC_Q_TIMELY_H
#define _TOOLS_TC_Q_TIMELY_H

#include <linux/pkt_sched.h>

#include <linux/timely.h>
#include <net/timely_qdisc.h>

#include "iproute2.h"
#include "value.h"

/* Values of option.none: the largest value of a range of 32 or 64 bits. */
#define NONE32 4294967295ULL
#define NONE64 18446744073709551615ULL
/* A value of option.none that no option has: each value of the option is shown. */
#define NO_NONE (NONE64 - 1)

/* The fraction 1 in the kernel's unit: fractions are in 65536ths. */
#define ONE 65536

/* How the value of an option is written and shown. */
enum value_type {
	TYPE_PACKETS,		/* a number, shown as "100p" */
	TYPE_NUMBER,
	TYPE_BUCKETS,		/* a number; netlink carries its logarithm to base 2 */
	TYPE_SIZE,
	TYPE_RATE,
	TYPE_TIME,		/* netlink carries it in the unit of the option's range */
	TYPE_SLOT,		/* a time that is shown in ns, not rounded */
	TYPE_FLAG,		/* two words without a value: on and off */
	TYPE_HORIZON_DROP,	/* a flag that is shown as fq shows it */
	TYPE_CLOCK,		/* send or drop: packets whose departure time is of a wrong clock */
	TYPE_DSCP,		/* a number or a name; "keep" */
	TYPE_PRIORITY,		/* a number; "keep" */
	TYPE_PRIOMAP,		/* "3 priomap" and 16 bands, as for fq */
	TYPE_WEIGHTS,		/* a number for each of the 3 bands */
	TYPE_DEFRATE,		/* checked, then ignored */
	TYPE_THRESHOLD,		/* a time, or off */
	TYPE_FRACTION,		/* netlink carries it in 65536ths */
	TYPE_OWD,		/* absolute, relative or rtt */
};

/**
 * struct option - an option of the qdisc
 * @word: the option's word on the command line and its key in JSON
 * @off_word: for a flag, the word that turns the flag off; otherwise NULL
 * @attr: netlink attribute, TCA_TIMELY_*; TCA_TIMELY_UNSPEC if nothing is sent
 * @type: how the value is written and shown
 * @none: the value that is not shown. If this is the largest value of the range, users write it
 *	as "none". NO_NONE: every value is shown
 */
struct option {
	const char *word;
	const char *off_word;
	unsigned short attr;
	enum value_type type;
	__u64 none;
};

/* In the order in which tc shows the options. */
#define OPTION_COUNT 34
extern const struct option options[OPTION_COUNT];

/**
 * struct old_name - the former name of an option, which works for one release
 * @old: former word and key in JSON
 * @word: present word
 */
struct old_name {
	const char *old;
	const char *word;
};

#define OLD_NAME_COUNT 2
extern const struct old_name old_names[OLD_NAME_COUNT];

/**
 * struct range - values that the kernel accepts for an option
 * @bits: width of the netlink attribute
 * @min: least value, in @unit
 * @max: largest value, in @unit
 * @unit: unit of the attribute, for messages
 */
struct range {
	unsigned int bits;
	__u64 min;
	__u64 max;
	const char *unit;
};

/* @attr: TCA_TIMELY_*. All members are 0 if the attribute is not a number. */
struct range range_of(unsigned int attr);

/* Words of the option owd, by TIMELY_OWD_*. */
#define OWD_COUNT (TIMELY_OWD_RTT + 1)
extern const char * const owd_words[OWD_COUNT];

void print_usage(FILE *f);

/* Callbacks of tc, see struct qdisc_util. */
int parse_options(const struct qdisc_util *qu, int argc, char **argv, struct nlmsghdr *n,
		  const char *dev);
int show_options(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
int show_stats(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats);

/* Was On-Ramp on in the qdisc whose options were shown last? tc shows its statistics next. */
extern bool onramp_is_on;

#endif /* _TOOLS_TC_Q_TIMELY_H */
