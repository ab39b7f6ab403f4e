/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the plugins for tc have in common: numbers with units, names of DSCPs, and text output. Each
 * plugin has a copy of value.c.
 */
#ifndef _TOOLS_TC_VALUE_H
#define _TOOLS_TC_VALUE_H

#include <stdbool.h>
#include <linux/types.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/**
 * struct unit - a unit that may follow a number
 * @scale: value of the unit
 * @name: the unit's name; NULL ends a table
 */
struct unit {
	long double scale;
	const char *name;
};

/* Units of sizes, in bytes. In sizes of tc k is 1024, in kbit too. */
extern const struct unit sizes[];

/*
 * A number with one of the units. A sign and "inf" are refused. On x86-64 a long double
 * holds every __u64. Where long double is no wider than double, rates above 2^53 bytes/s
 * are rounded.
 */
bool parse_scaled(const char *word, const struct unit *unit, long double *value);
/* Decimal, hexadecimal or octal, as elsewhere in tc. */
bool parse_number(const char *word, __u64 *value);

/* The name of a DSCP, such as "CS6"; NULL if it has none. */
const char *dscp_name(unsigned int value);
/* The DSCP of a name, in upper or lower case; -1 if there is no such name. */
int dscp_by_name(const char *name);

/* Prints text if tc does not print JSON. @format has one %s. */
void show_text(const char *format, const char *value);

#endif /* _TOOLS_TC_VALUE_H */
