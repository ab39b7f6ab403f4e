// SPDX-License-Identifier: GPL-2.0
/*
 * Output of timelyctl: messages, hints, rates, and JSON.
 *
 * The name of a device may contain any bytes but a slash, a colon and white space. Text output
 * replaces bytes that are not printable ASCII by '?'. JSON output replaces bytes that are not UTF-8
 * by the characters with their numbers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <arpa/inet.h>

#include "timelyctl.h"

/* ---- messages ---- */

void tell_err(const char *format, ...)
{
	va_list args;

	/* Keeps the order of messages if stdout and stderr are the same file. */
	fflush(stdout);
	fputs("timelyctl: ", stderr);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
}

void tell_info(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

int usage_err(const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tell_err("%s; see timelyctl help", text);
	return STATUS_USAGE;
}

void out_of_memory(void)
{
	tell_err("out of memory");
	exit(STATUS_FAILED);
}

const char *error_text(int err)
{
	return strerror(err < 0 ? -err : err);
}

const char *plain(const char *name)
{
	static char texts[4][4096]; /* names of control groups may be long */
	static unsigned int calls;
	char *text = texts[calls++ % ARRAY_SIZE(texts)];
	size_t i;

	for (i = 0; name[i] && i < sizeof(texts[0]) - 1; i++)
		text[i] = name[i] >= ' ' && name[i] <= '~' ? name[i] : '?';
	text[i] = 0;
	return text;
}

void hint_info(struct hints *hints, const char *format, ...)
{
	va_list args;

	if (hints->count == ARRAY_SIZE(hints->text))
		return;
	va_start(args, format);
	if (vasprintf(&hints->text[hints->count++], format, args) < 0)
		out_of_memory();
	va_end(args);
}

void hints_free(struct hints *hints)
{
	while (hints->count)
		free(hints->text[--hints->count]);
}

/* ---- JSON ---- */

/* Whether a comma is needed before the next value, at each depth. */
static bool json_more[8];
static unsigned int json_depth;

/* Length of the UTF-8 character at text in bytes; 0 if the bytes are not UTF-8 (RFC 3629). */
static size_t utf8_bytes(const unsigned char *text)
{
	size_t bytes = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 :
		       text[0] < 0xf0 ? 3 : text[0] < 0xf5 ? 4 : 0;

	for (size_t i = 1; i < bytes; i++)
		if ((text[i] & 0xc0) != 0x80)
			return 0;
	/* An overlong encoding, a surrogate, or a character beyond the last one. */
	if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
	    (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
		return 0;
	return bytes;
}

static void json_text(const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	putchar('"');
	while (*at) {
		size_t bytes = utf8_bytes(at);

		if (*at < ' ' || *at == 0x7f || !bytes) {
			printf("\\u%04x", *at++);
			continue;
		}
		if (*at == '"' || *at == '\\')
			putchar('\\');
		fwrite(at, 1, bytes, stdout);
		at += bytes;
	}
	putchar('"');
}

static void json_key(const char *key)
{
	if (json_more[json_depth])
		putchar(',');
	json_more[json_depth] = true;
	if (key) {
		json_text(key);
		putchar(':');
	}
}

void json_open(const char *key, char bracket)
{
	json_key(key);
	putchar(bracket);
	json_more[++json_depth] = false;
}

void json_close(char bracket)
{
	json_depth--;
	putchar(bracket);
}

void json_end(void)
{
	putchar('\n');
	json_more[json_depth] = false;
}

void json_null(const char *key)
{
	json_key(key);
	fputs("null", stdout);
}

void json_string(const char *key, const char *text)
{
	json_key(key);
	json_text(text);
}

void json_signed(const char *key, __s64 value)
{
	json_key(key);
	printf("%lld", (long long)value);
}

void json_unsigned(const char *key, __u64 value)
{
	json_key(key);
	printf("%llu", (unsigned long long)value);
}

void json_bool(const char *key, bool value)
{
	json_key(key);
	fputs(value ? "true" : "false", stdout);
}

void json_fraction(const char *key, __u32 parts)
{
	json_key(key);
	printf("%g", parts / 65536.0);
}

/* ---- counters ---- */

void counters_print(const struct counters *counters)
{
	int width = 0;

	for (size_t i = 0; i < counters->count; i++) {
		int length = strlen(counters->counter[i].name);

		width = length > width ? length : width;
	}
	for (size_t i = 0; i < counters->count; i++)
		tell_info("%-*s %14llu  %s", width, counters->counter[i].name,
			  (unsigned long long)counters->counter[i].value, counters->counter[i].doc);
}

void counters_json(const char *key, const struct counters *counters)
{
	json_open(key, '{');
	for (size_t i = 0; i < counters->count; i++) {
		const struct counter *counter = &counters->counter[i];

		json_unsigned(counter->name, counter->value);
		/* The counter's name in the last release remains for one release. */
		if (strcmp(counter->name, "probes_apart") == 0)
			json_unsigned("drains_apart", counter->value);
	}
	json_close('}');
}

/* ---- numbers, addresses, rates and times ---- */

/* Write an address to INET6_ADDRSTRLEN bytes: IPv4 for 4 bytes, IPv6 for 16 bytes, else "?". */
const char *address_text(char *text, const unsigned char *address, unsigned int bytes)
{
	int family = bytes == 4 ? AF_INET : bytes == 16 ? AF_INET6 : AF_UNSPEC;

	if (!inet_ntop(family, address, text, INET6_ADDRSTRLEN))
		memcpy(text, "?", sizeof("?"));
	return text;
}

/* An address and a port as ss prints them: IPv6 addresses in brackets. */
const char *end_text(char *text, size_t size, const unsigned char *address, unsigned int bytes,
		     unsigned int port)
{
	char buffer[INET6_ADDRSTRLEN];

	snprintf(text, size, bytes == 16 ? "[%s]:%u" : "%s:%u",
		 address_text(buffer, address, bytes), port);
	return text;
}

/* Parse a decimal number without other characters. */
bool parse_number(const char *word, __s64 min, __s64 max, __s64 *value)
{
	char *end;

	if (!strchr("-0123456789", word[0]))
		return false;
	errno = 0;
	*value = strtoll(word, &end, 10);
	return end != word && !*end && !errno && *value >= min && *value <= max;
}

/* Parse PREFIX or PREFIX/LENGTH. */
bool parse_prefix(const char *word, struct prefix *prefix)
{
	char text[INET6_ADDRSTRLEN] = "";
	size_t bytes = strcspn(word, "/");
	__s64 length;

	if (bytes >= sizeof(text))
		return false;
	memcpy(text, word, bytes);
	if (inet_pton(AF_INET, text, prefix->address) == 1)
		prefix->bytes = 4;
	else if (inet_pton(AF_INET6, text, prefix->address) == 1)
		prefix->bytes = 16;
	else
		return false;
	length = prefix->bytes * 8;
	if (word[bytes] && !parse_number(word + bytes + 1, 0, length, &length))
		return false;
	prefix->length = length;
	return true;
}

/* Write a prefix to PREFIX_TEXT bytes. */
const char *prefix_text(char *text, const struct prefix *prefix)
{
	char address[INET6_ADDRSTRLEN];

	snprintf(text, PREFIX_TEXT, "%s/%u", address_text(address, prefix->address, prefix->bytes),
		 prefix->length);
	return text;
}

/* The bits beyond the length must be 0: otherwise the prefix is probably a mistake. */
bool prefix_has_host_bits(const struct prefix *prefix)
{
	for (unsigned int bit = prefix->length; bit < prefix->bytes * 8; bit++)
		if (prefix->address[bit / 8] & 0x80 >> bit % 8)
			return true;
	return false;
}

/* Whether an address of @bytes is in the prefix. */
bool prefix_contains(const struct prefix *prefix, const unsigned char *address, unsigned int bytes)
{
	unsigned int whole = prefix->length / 8, rest = prefix->length % 8;

	if (prefix->bytes != bytes || memcmp(address, prefix->address, whole) != 0)
		return false;
	return !rest || (address[whole] ^ prefix->address[whole]) >> (8 - rest) == 0;
}

/* A time, rounded down, in the unit that leaves one to four digits: "9999 ns", "10 us". */
const char *time_text(char *text, size_t size, __u64 ns)
{
	if (ns < 10000)
		snprintf(text, size, "%llu ns", (unsigned long long)ns);
	else if (ns < 10000000)
		snprintf(text, size, "%llu us", (unsigned long long)ns / 1000);
	else if (ns < 10000000000)
		snprintf(text, size, "%llu ms", (unsigned long long)ns / 1000000);
	else
		snprintf(text, size, "%llu s", (unsigned long long)ns / 1000000000);
	return text;
}

/* Units in kbit/s. As in tc, a number without a unit is in bit/s, and "bps" is bytes per second. */
static const struct {
	const char *name;
	double kbps;
} rate_units[] = {
	{ "", 0.001 }, { "bit", 0.001 }, { "bps", 0.008 },
	{ "kbit", 1 }, { "kbps", 8 }, { "kibit", 1.024 }, { "kibps", 8 * 1.024 },
	{ "mbit", 1e3 }, { "mbps", 8e3 }, { "mibit", 0x1p20 / 1e3 },
	{ "mibps", 0x1p23 / 1e3 },
	{ "gbit", 1e6 }, { "gbps", 8e6 }, { "gibit", 0x1p30 / 1e3 },
	{ "gibps", 0x1p33 / 1e3 },
	{ "tbit", 1e9 }, { "tbps", 8e9 }, { "tibit", 0x1p40 / 1e3 },
	{ "tibps", 0x1p43 / 1e3 },
};

/* Parse a rate, rounded to kbit/s, from 1 kbit/s to 1 Tbit/s. */
bool parse_rate_kbps(const char *word, __u32 *kbps)
{
	size_t digits = strspn(word, "0123456789.");
	double value;
	char *end;

	if (!digits || digits > 32)
		return false;
	value = strtod(word, &end);
	/* Refuse 0x10, 1e3 and 1.2.3, which strtod() or strtoul() accept in part. */
	if (end != word + digits)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(rate_units); i++) {
		if (strcasecmp(end, rate_units[i].name) != 0)
			continue;
		value = value * rate_units[i].kbps + 0.5;
		if (value < 1 || value >= 1000000001)
			return false;
		*kbps = value;
		return true;
	}
	return false;
}

/* A rate with up to three decimals, without zeros at the end: "2.5 Gb/s". */
const char *rate_text(char *text, size_t size, __u64 kbps)
{
	static const char * const units[] = { "kb/s", "Mb/s", "Gb/s", "Tb/s" };
	unsigned int unit = 0;
	__u64 scale = 1;
	char number[32];
	char *end;

	while (unit < 3 && kbps / scale >= 1000) {
		scale *= 1000;
		unit++;
	}
	snprintf(number, sizeof(number), "%.3f", (double)kbps / scale);
	end = number + strlen(number);
	while (end[-1] == '0')
		end--;
	if (end[-1] == '.')
		end--;
	*end = 0;
	snprintf(text, size, "%s %s", number, units[unit]);
	return text;
}
