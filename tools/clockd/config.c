// SPDX-License-Identifier: GPL-2.0
/*
 * The configuration of timely-clockd: lines of a word and its values. timely-clockd(8) describes
 * them.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include "clockd.h"

#define LINE_BYTES	512
#define WORDS		3
/* Largest value of test-clock: a day, ns. */
#define TEST_CLOCK_MAX_NS	86400000000000

/**
 * struct source - where a line comes from, for messages
 * @path: the file
 * @line: number of the line
 * @wrong: an error was printed
 */
struct source {
	const char *path;
	unsigned int line;
	bool wrong;
};

[[gnu::format(printf, 2, 3)]] static void line_err(struct source *source, const char *format, ...)
{
	char text[LINE_BYTES + 256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	tell_err("%s, line %u: %s", source->path, source->line, text);
	source->wrong = true;
}

/* ---- members ---- */

static void add_member(struct source *source, struct config *config, const struct address *address)
{
	int family = address_family(address);

	if (!address_of_one_host(address)) {
		line_err(source, "a member is an unspecified, link-local, multicast or broadcast address: give addresses of hosts");
		return;
	}
	if (!config->family)
		config->family = family;
	if (config->family != family)
		line_err(source, "the list has IPv4 and IPv6 addresses: use one kind for all hosts");
	else if (!members_add(&config->members, address))
		line_err(source, "more than %u members: use a shorter range", MEMBERS_MAX);
}

/* The next address; false after the last one. */
static bool next_address(struct address *address)
{
	for (int i = 15; i >= 0; i--)
		if (++address->bytes[i])
			return true;
	return false;
}

static void add_range(struct source *source, struct config *config, struct address first,
		      const struct address *last)
{
	while (memcmp(&first, last, sizeof(first)) <= 0 && !source->wrong) {
		add_member(source, config, &first);
		if (!next_address(&first))
			break;
	}
}

/* FIRST-LAST. Returns false if the text is no range of addresses; it may be a name with a '-'. */
static bool take_range(struct source *source, struct config *config, const char *text)
{
	const char *dash = strchr(text, '-');
	struct address first, last;
	char first_text[ADDRESS_TEXT];

	if (!dash || dash - text >= ADDRESS_TEXT)
		return false;
	memcpy(first_text, text, dash - text);
	first_text[dash - text] = 0;
	if (!address_parse(first_text, &first))
		return false;
	if (!address_parse(dash + 1, &last) || address_is_ipv4(&first) != address_is_ipv4(&last) ||
	    memcmp(&first, &last, sizeof(first)) > 0)
		line_err(source, "\"%s\" is no range: give the first and the last address", text);
	else
		add_range(source, config, first, &last);
	return true;
}

/* PREFIX/LENGTH; without the first and the last address of an IPv4 prefix up to /30. */
static void add_prefix(struct source *source, struct config *config, const char *text,
		       const char *length_text)
{
	struct address first, last;
	unsigned int length, bits;
	char end;

	if (!address_parse(text, &first) || sscanf(length_text, "%u%c", &length, &end) != 1 ||
	    length > (address_is_ipv4(&first) ? 32U : 128U)) {
		line_err(source, "%s/%s is no prefix", text, length_text);
		return;
	}
	bits = length + (address_is_ipv4(&first) ? 96 : 0);
	last = first;
	for (unsigned int bit = bits; bit < 128; bit++) {
		if (first.bytes[bit / 8] & 0x80 >> bit % 8) {
			line_err(source, "%s/%s: the bits after the prefix length must be 0", text,
				 length_text);
			return;
		}
		last.bytes[bit / 8] |= 0x80 >> bit % 8;
	}
	if (address_is_ipv4(&first) && length <= 30) {
		first.bytes[15]++;
		last.bytes[15]--;
	}
	add_range(source, config, first, &last);
}

static void take_member(struct source *source, struct config *config, char *text)
{
	char *slash = strchr(text, '/');
	struct address address;

	if (address_parse(text, &address)) {
		add_member(source, config, &address);
	} else if (slash) {
		*slash = 0;
		add_prefix(source, config, text, slash + 1);
	} else if (take_range(source, config, text)) {
		return;
	} else if (config->name_count == NAMES_MAX) {
		line_err(source, "more than %u names: use addresses", NAMES_MAX);
	} else {
		config->names[config->name_count++] = strdup(text);
	}
}

/* ---- keys ---- */

static int hex_digit(int c)
{
	return isdigit(c) ? c - '0' : tolower(c) - 'a' + 10;
}

/* Read a file of `timelyctl key generate`: 32 hex digits, with white space around them. */
static bool parse_key(const char *text, struct key *key)
{
	uint8_t secret[16];

	text += strspn(text, " \t\r\n");
	for (size_t i = 0; i < sizeof(secret); i++, text += 2) {
		if (!isxdigit((unsigned char)text[0]) || !isxdigit((unsigned char)text[1]))
			return false;
		secret[i] = hex_digit(text[0]) << 4 | hex_digit(text[1]);
	}
	memcpy(key->words, secret, sizeof(secret));
	for (size_t i = 0; i < ARRAY_LENGTH(key->words); i++)
		key->words[i] = le64toh(key->words[i]);
	explicit_bzero(secret, sizeof(secret));
	return !text[strspn(text, " \t\r\n")];
}

static void read_key(struct source *source, struct key *key, const char *path)
{
	FILE *file = fopen(path, "re");
	char text[128] = "";
	struct stat stat;

	if (!file) {
		line_err(source, "cannot read the key \"%s\": %s", path, error_text(errno));
		return;
	}
	/* No buffer that is freed with the key in it. */
	setvbuf(file, NULL, _IONBF, 0);
	if (!fstat(fileno(file), &stat) && stat.st_mode & 077)
		tell_warn("other users may read the key \"%s\": chmod 600 it", path);
	text[fread(text, 1, sizeof(text) - 1, file)] = 0;
	fclose(file);
	if (!parse_key(text, key))
		line_err(source, "\"%s\" is no key, which is one line of 32 hex digits: timelyctl key generate prints a new one",
			 path);
	explicit_bzero(text, sizeof(text));
}

const struct key *config_key(const struct config *config, uint8_t number)
{
	for (size_t i = 0; i < config->key_count; i++)
		if (config->keys[i].number == number)
			return &config->keys[i];
	return NULL;
}

/* ---- lines ---- */

static long take_number(struct source *source, const char *name, const char *text, long min,
			long max)
{
	char *end;
	long value;

	errno = 0;
	value = strtol(text, &end, 10);
	if (end == text || *end || errno || value < min || value > max) {
		line_err(source, "%s: allowed are %ld to %ld, not \"%s\"", name, min, max, text);
		return min;
	}
	return value;
}

bool config_has_reference(const struct config *config, const struct address *address)
{
	for (size_t i = 0; i < config->reference_count; i++)
		if (memcmp(&config->references[i], address, sizeof(*address)) == 0)
			return true;
	return false;
}

static bool take_switch(struct source *source, const char *name, const char *text)
{
	bool yes = strcmp(text, "yes") == 0;

	if (!yes && strcmp(text, "no") != 0)
		line_err(source, "%s: allowed are yes and no, not \"%s\"", name, text);
	return yes;
}

static void take_text(struct source *source, const char *name, char *to, size_t size,
		      const char *text)
{
	if (strlen(text) >= size)
		line_err(source, "%s: \"%s\" is longer than %zu characters", name, text, size - 1);
	else
		memcpy(to, text, strlen(text) + 1);
}

static void take_key(struct source *source, struct config *config, char **words)
{
	struct key *key = &config->keys[config->key_count];

	if (config->key_count == KEYS_MAX) {
		line_err(source, "more than %u keys", KEYS_MAX);
		return;
	}
	key->number = take_number(source, "key", words[1], 1, 255);
	if (config_key(config, key->number))
		line_err(source, "key %u is given twice", key->number);
	read_key(source, key, words[2]);
	config->key_count++;
}

static void take_own(struct source *source, struct config *config, const char *text)
{
	config->has_own = address_parse(text, &config->own) && address_of_one_host(&config->own);
	if (!config->has_own)
		line_err(source, "own: \"%s\" is no address of a host", text);
}

/* "yes" and "no" are about this host; an address is that of a reference for all hosts. */
static void take_reference(struct source *source, struct config *config, const char *text)
{
	bool yes = strcmp(text, "yes") == 0;
	struct address address;

	if (yes || strcmp(text, "no") == 0) {
		config->fixed = yes;
	} else if (!address_parse(text, &address)) {
		line_err(source, "reference: allowed are yes, no, and the address of a host, not \"%s\"",
			 text);
	} else if (config_has_reference(config, &address)) {
		line_err(source, "reference: %s is given twice", text);
	} else if (config->reference_count == REFERENCES_MAX) {
		line_err(source, "more than %u references", REFERENCES_MAX);
	} else {
		config->references[config->reference_count++] = address;
		add_member(source, config, &address);
	}
}

static void take_members_file(struct source *source, struct config *config, const char *path);

/* A line with one value. Returns false for an unknown word. */
static bool take_value(struct source *source, struct config *config, char **words)
{
	const char *name = words[0];

	if (strcmp(name, "member") == 0)
		take_member(source, config, words[1]);
	else if (strcmp(name, "members-file") == 0)
		take_members_file(source, config, words[1]);
	else if (strcmp(name, "own") == 0)
		take_own(source, config, words[1]);
	else if (strcmp(name, "degree") == 0)
		config->degree = take_number(source, name, words[1], 2, TIMELY_CLOCK_PEERS);
	else if (strcmp(name, "port") == 0)
		config->port = take_number(source, name, words[1], 1024, 65535);
	else if (strcmp(name, "pairs") == 0)
		config->pairs = take_number(source, name, words[1], 4, 60);
	else if (strcmp(name, "clock") == 0)
		take_text(source, name, config->clock, sizeof(config->clock), words[1]);
	else if (strcmp(name, "reference") == 0)
		take_reference(source, config, words[1]);
	else if (strcmp(name, "page") == 0)
		take_text(source, name, config->page, sizeof(config->page), words[1]);
	else if (strcmp(name, "chrony") == 0)
		take_text(source, name, config->sock, sizeof(config->sock), words[1]);
	else if (strcmp(name, "ntp-shm") == 0)
		config->shm = take_number(source, name, words[1], 0, 255);
	else if (strcmp(name, "onramp") == 0)
		config->onramp = take_switch(source, name, words[1]);
	else if (strcmp(name, "tcp-timely") == 0)
		config->tcp_timely = take_switch(source, name, words[1]);
	else if (strcmp(name, "test-lie") == 0)
		config->test_lie_ns = take_number(source, name, words[1], -1000000000,
						  1000000000);
	else if (strcmp(name, "test-clock") == 0)
		config->test_clock_ns = take_number(source, name, words[1], -TEST_CLOCK_MAX_NS,
						    TEST_CLOCK_MAX_NS);
	else
		return false;
	return true;
}

/* Split a line into words, of which @words gets up to WORDS. Returns their number. */
static size_t split(char *line, char **words)
{
	size_t count = 0;
	char *save, *word;

	line[strcspn(line, "#\n")] = 0;
	for (word = strtok_r(line, " \t\r", &save); word; word = strtok_r(NULL, " \t\r", &save)) {
		if (count < WORDS)
			words[count] = word;
		count++;
	}
	return count;
}

static void take_line(struct source *source, struct config *config, char *line)
{
	char *words[WORDS];
	size_t count = split(line, words);
	size_t needed = count && strcmp(words[0], "key") == 0 ? 3 : 2;

	if (!count)
		return;
	if (count != needed)
		line_err(source, "\"%s\" needs %zu value%s", words[0], needed - 1,
			 needed > 2 ? "s" : "");
	else if (needed == 3)
		take_key(source, config, words);
	else if (!take_value(source, config, words))
		line_err(source, "unknown word \"%s\": see timely-clockd(8)", words[0]);
}

static void take_members_line(struct source *source, struct config *config, char *line)
{
	char *words[WORDS];
	size_t count = split(line, words);

	if (count > 1)
		line_err(source, "one member on each line");
	else if (count)
		take_member(source, config, words[0]);
}

static void take_file(struct source *source, struct config *config, const char *path,
		      void (*take)(struct source *source, struct config *config, char *line))
{
	FILE *file = fopen(path, "re");
	char line[LINE_BYTES];

	if (!file) {
		tell_err("cannot read \"%s\": %s", path, error_text(errno));
		source->wrong = true;
		return;
	}
	errno = 0;
	while (fgets(line, sizeof(line), file)) {
		source->line++;
		if (!strchr(line, '\n') && !feof(file)) {
			line_err(source, "the line is longer than %d characters", LINE_BYTES - 2);
			break;
		}
		take(source, config, line);
		errno = 0;
	}
	if (ferror(file)) {
		tell_err("cannot read \"%s\": %s", path, error_text(errno));
		source->wrong = true;
	}
	fclose(file);
}

static void take_members_file(struct source *source, struct config *config, const char *path)
{
	struct source inner = { .path = path };

	take_file(&inner, config, path, take_members_line);
	source->wrong |= inner.wrong;
}

static void check(struct source *source, const struct config *config)
{
	if (source->wrong)
		return;
	source->wrong = true;
	if (!config->key_count)
		tell_err("%s: there is no key, without which anybody could shift this host's clock: timelyctl key generate >FILE, copy FILE to all hosts, and add the line: key 1 FILE",
			 source->path);
	else if (!config->members.count && !config->name_count)
		tell_err("%s: there are no members: add lines such as: member 10.0.0.0/24",
			 source->path);
	else if (config->has_own && config->members.count &&
		 config->family != address_family(&config->own))
		tell_err("%s: own and the members are not of one kind: use IPv4 or IPv6 for all hosts",
			 source->path);
	else if (config->fixed && config->reference_count)
		tell_err("%s: \"reference yes\" makes this host's system clock the common time, and reference with an address does not: use one kind on all hosts",
			 source->path);
	else if (config->reference_count && config->members.count > TIMELY_CLOCK_PEERS + 1)
		tell_err("%s: %zu members: a reference is a peer of all members, so at most %u are possible: list only hosts that exist, or remove the references",
			 source->path, config->members.count, TIMELY_CLOCK_PEERS + 1);
	else if (config->fixed && (config->sock[0] || config->shm >= 0))
		tell_err("%s: with \"reference yes\" the common time is this host's system clock, so chrony and ntpd cannot follow it here: remove chrony and ntp-shm, or reference",
			 source->path);
	else
		source->wrong = false;
}

struct config *config_read(const char *path)
{
	struct config *config = calloc(1, sizeof(*config));
	struct source source = { .path = path };

	if (!config)
		return NULL;
	config->degree = 10;
	config->pairs = 16;
	config->port = CLOCKD_PORT;
	config->shm = -1;
	snprintf(config->clock, sizeof(config->clock), "auto");
	snprintf(config->page, sizeof(config->page), "%s", TIMELY_CLOCK_PAGE);
	take_file(&source, config, path, take_line);
	members_sort(&config->members);
	check(&source, config);
	if (!config->family)
		config->family = config->has_own ? address_family(&config->own) : AF_INET;
	if (!source.wrong)
		return config;
	config_free(config);
	return NULL;
}

void config_free(struct config *config)
{
	if (!config)
		return;
	members_free(&config->members);
	for (size_t i = 0; i < config->name_count; i++)
		free(config->names[i]);
	explicit_bzero(config->keys, sizeof(config->keys));
	free(config);
}
