// SPDX-License-Identifier: GPL-2.0
/*
 * What the plugins for tc have in common, see value.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "iproute2.h"
#include "value.h"

const struct unit sizes[] = {
	{ 1, "" }, { 1, "b" },
	{ 1024, "k" }, { 1024, "kb" }, { 1024 / 8, "kbit" },
	{ 1 << 20, "m" }, { 1 << 20, "mb" }, { (1 << 20) / 8, "mbit" },
	{ 1 << 30, "g" }, { 1 << 30, "gb" }, { (1 << 30) / 8, "gbit" },
	{ 0, NULL }
};

bool parse_scaled(const char *word, const struct unit *unit, long double *value)
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

bool parse_number(const char *word, __u64 *value)
{
	char *end;

	if (word[0] < '0' || word[0] > '9')
		return false;
	errno = 0;
	*value = strtoull(word, &end, 0);
	return !*end && !errno;
}

/* Names of DSCPs: RFC 2474, 2597, 3246, 5865, 8622. */
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

const char *dscp_name(unsigned int value)
{
	for (size_t i = 0; i < ARRAY_SIZE(dscps); i++)
		if (dscps[i].value == value)
			return dscps[i].name;
	return NULL;
}

int dscp_by_name(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(dscps); i++)
		if (strcasecmp(name, dscps[i].name) == 0)
			return dscps[i].value;
	return -1;
}

void show_text(const char *format, const char *value)
{
	print_color_string(PRINT_FP, COLOR_NONE, NULL, format, value);
}
