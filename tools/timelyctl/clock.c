// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl clock`: what timely-clockd knows about the clocks of other hosts, and the common time.
 *
 * All of it is in the clock page, a file that the daemon keeps, so these commands need no privilege
 * and no answer of the daemon.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "timelyctl.h"

#define NS_PER_S	1000000000LL

static const char * const daemon_states[] = {
	[TIMELY_CLOCK_STARTING] = "starting",
	[TIMELY_CLOCK_RUNNING] = "running",
	[TIMELY_CLOCK_STOPPED] = "stopped",
};

static const char * const peer_states[] = {
	[TIMELY_CLOCK_PEER_SILENT] = "silent",
	[TIMELY_CLOCK_PEER_LEARNING] = "learning",
	[TIMELY_CLOCK_PEER_GOOD] = "good",
	[TIMELY_CLOCK_PEER_EXCLUDED] = "excluded",
};

/**
 * struct options - the words after the verb
 * @page: path of the clock page; NULL: the default one
 * @interval_ms: time between two readings, ms
 * @duration_s: time after which the command ends, s; 0: when a signal ends it
 */
struct options {
	const char *page;
	unsigned int interval_ms;
	unsigned int duration_s;
};

static const char *state_text(const char * const *names, size_t count, __u32 state)
{
	return state < count ? names[state] : "?";
}

/* Time since the daemon wrote the page, ns. */
static __u64 page_age_ns(const struct timely_clock_page *page)
{
	struct timespec now;
	__u64 now_ns;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	now_ns = now.tv_sec * NS_PER_S + now.tv_nsec;
	return now_ns > page->raw_ns ? now_ns - page->raw_ns : 0;
}

/* A daemon that publishes a time writes the page four times a second, unless it has been killed. */
static bool is_dead(const struct timely_clock_page *page)
{
	return page->state == TIMELY_CLOCK_RUNNING && page_age_ns(page) > TIMELY_CLOCK_FRESH_NS;
}

bool clock_has_ended(const struct timely_clock_page *page)
{
	return page->state == TIMELY_CLOCK_STOPPED || is_dead(page);
}

/* A daemon that has not joined the other hosts does not write the page. */
bool clock_has_not_joined(const struct timely_clock_page *page)
{
	return page->state == TIMELY_CLOCK_STARTING && page_age_ns(page) > TIMELY_CLOCK_FRESH_NS;
}

static const char *daemon_state(const struct timely_clock_page *page)
{
	if (is_dead(page))
		return "dead";
	return state_text(daemon_states, ARRAY_SIZE(daemon_states), page->state);
}

static const char *peer_state(const struct timely_clock_peer *peer)
{
	return state_text(peer_states, ARRAY_SIZE(peer_states), peer->state);
}

const char *clock_address_text(char *text, const __u8 *address)
{
	static const __u8 ipv4[12] = { [10] = 0xff, [11] = 0xff };

	if (memcmp(address, ipv4, sizeof(ipv4)) == 0)
		return address_text(text, address + 12, 4);
	return address_text(text, address, 16);
}

/* A time with its sign. */
static const char *signed_text(char *text, size_t size, __s64 ns)
{
	char number[24];

	snprintf(text, size, "%c%s", ns < 0 ? '-' : '+',
		 time_text(number, sizeof(number), ns < 0 ? -(__u64)ns : (__u64)ns));
	return text;
}

/* A bound, or "-" if it is not known. */
static const char *bound_text(char *text, size_t size, __u64 ns)
{
	if (ns == TIMELY_CLOCK_UNKNOWN_NS)
		snprintf(text, size, "-");
	else
		time_text(text, size, ns);
	return text;
}

/* Seconds since 1970 as UTC, with nanoseconds. */
static const char *utc_text(char *text, size_t size, __s64 ns)
{
	time_t seconds = ns / NS_PER_S;
	struct tm tm;
	size_t used;

	gmtime_r(&seconds, &tm);
	used = strftime(text, size, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + used, size - used, ".%09lldZ", (long long)(ns % NS_PER_S));
	return text;
}

/* ---- show ---- */

static void print_peer(const struct timely_clock_peer *peer)
{
	char address[INET6_ADDRSTRLEN], system[24] = "-", error[24], bound[24], surplus[24] = "-";

	if (peer->system_bound_ns != TIMELY_CLOCK_UNKNOWN_NS)
		signed_text(system, sizeof(system), peer->system_offset_ns);
	if (peer->loops)
		signed_text(surplus, sizeof(surplus), peer->surplus_ns);
	tell_info("%-24s %-8s %-8s %10s %8s %9lld %8s %10s %9llu %9llu %7llu",
		  clock_address_text(address, peer->address), peer_state(peer),
		  peer->hardware ? "hardware" : "kernel", system,
		  bound_text(error, sizeof(error), peer->system_bound_ns),
		  (long long)peer->drift_ppb, bound_text(bound, sizeof(bound), peer->bound_ns),
		  surplus, (unsigned long long)peer->pure, (unsigned long long)peer->rejected,
		  (unsigned long long)peer->lost);
}

static void print_time(const struct timely_clock_page *page, const struct timely_clock_time *now,
		       int err)
{
	char text[40], bound[24], offset[24];

	if (err)
		tell_info("common time not known%s",
			  err == -ESTALE ? ": the last estimate is too old" : " yet");
	else
		tell_info("common time %s, known to %s; the system clock differs by %s",
			  utc_text(text, sizeof(text), now->time_ns),
			  bound_text(bound, sizeof(bound), now->latest_ns - now->time_ns),
			  signed_text(offset, sizeof(offset), -page->system_offset_ns));
}

static void print_reference(const struct timely_clock_page *page,
			    const struct timely_clock_time *now, int err)
{
	char text[40], bound[24], offset[24];

	if (!page->references)
		return;
	if (err)
		tell_info("reference time not known: %u of %u references are used",
			  page->references_used, page->references);
	else
		tell_info("reference time %s, known to %s; the system clock differs by %s; %u of %u references are used",
			  utc_text(text, sizeof(text), now->time_ns),
			  bound_text(bound, sizeof(bound), now->latest_ns - now->time_ns),
			  signed_text(offset, sizeof(offset),
				      -page->system_offset_ns - page->reference_offset_ns),
			  page->references_used, page->references);
}

/**
 * struct times - both times of a page, at one moment
 * @common: the common time
 * @common_err: 0; -ENODATA or -ESTALE: it is not known
 * @reference: the reference time
 * @reference_err: the same for it
 */
struct times {
	struct timely_clock_time common;
	int common_err;
	struct timely_clock_time reference;
	int reference_err;
};

static void print_page(const struct timely_clock_page *page, const struct times *times)
{
	char address[INET6_ADDRSTRLEN], age[64] = "", text[24];

	if (clock_has_ended(page))
		snprintf(age, sizeof(age), " (all of this is %s old)",
			 time_text(text, sizeof(text), page_age_ns(page)));
	tell_info("%s: timely-clockd is %s%s, probes are timestamped by %s, %u peers of %u members",
		  clock_address_text(address, page->own), daemon_state(page), age,
		  page->nic[0] ? plain(page->nic) : "the kernel", page->peer_count, page->members);
	print_time(page, &times->common, times->common_err);
	print_reference(page, &times->reference, times->reference_err);
	tell_info("%-24s %-8s %-8s %10s %8s %9s %8s %10s %9s %9s %7s", "peer", "state",
		  "stamps", "system", "error", "drift ppb", "bound", "surplus", "used",
		  "rejected", "lost");
	for (size_t i = 0; i < page->peer_count && i < TIMELY_CLOCK_PEERS; i++)
		print_peer(&page->peers[i]);
	for (size_t i = 0; i < TIMELY_CLOCK_COUNTERS; i++)
		if (page->counters[i])
			tell_info("%-18s %14llu  %s", timely_clock_counter_names[i],
				  (unsigned long long)page->counters[i],
				  timely_clock_counter_docs[i]);
}

static void json_bound(const char *key, __u64 ns)
{
	if (ns == TIMELY_CLOCK_UNKNOWN_NS)
		json_null(key);
	else
		json_unsigned(key, ns);
}

static void json_peer(const struct timely_clock_peer *peer)
{
	bool known = peer->bound_ns != TIMELY_CLOCK_UNKNOWN_NS;
	bool system = peer->system_bound_ns != TIMELY_CLOCK_UNKNOWN_NS;
	char address[INET6_ADDRSTRLEN];

	json_open(NULL, '{');
	json_string("address", clock_address_text(address, peer->address));
	json_string("state", peer_state(peer));
	json_bool("hardware", peer->hardware);
	if (known) {
		json_signed("offset_ns", peer->offset_ns);
		json_signed("drift_ppb", peer->drift_ppb);
		json_unsigned("half_width_ns", peer->half_width_ns);
	}
	json_bound("bound_ns", peer->bound_ns);
	if (system) {
		json_signed("system_offset_ns", peer->system_offset_ns);
		json_signed("system_drift_ppb", peer->system_drift_ppb);
	}
	json_bound("system_bound_ns", peer->system_bound_ns);
	if (peer->loops)
		json_signed("surplus_ns", peer->surplus_ns);
	json_unsigned("sent", peer->sent);
	json_unsigned("received", peer->received);
	json_unsigned("used", peer->pure);
	json_unsigned("rejected", peer->rejected);
	json_unsigned("lost", peer->lost);
	json_close('}');
}

static void json_time(const struct timely_clock_time *now, int err)
{
	if (err) {
		json_null("time_ns");
		return;
	}
	json_signed("time_ns", now->time_ns);
	json_signed("earliest_ns", now->earliest_ns);
	json_signed("latest_ns", now->latest_ns);
	json_signed("age_ns", now->age_ns);
}

static void json_reference(const struct timely_clock_time *now, int err)
{
	if (err) {
		json_null("reference_time_ns");
		return;
	}
	json_signed("reference_time_ns", now->time_ns);
	json_signed("reference_earliest_ns", now->earliest_ns);
	json_signed("reference_latest_ns", now->latest_ns);
}

static void json_page(const struct timely_clock_page *page, const struct times *times)
{
	char address[INET6_ADDRSTRLEN];

	json_open(NULL, '{');
	json_string("address", clock_address_text(address, page->own));
	json_string("state", daemon_state(page));
	json_unsigned("page_age_ns", page_age_ns(page));
	json_string("nic", page->nic);
	json_unsigned("members", page->members);
	json_unsigned("probe_ns", page->probe_ns);
	json_time(&times->common, times->common_err);
	json_reference(&times->reference, times->reference_err);
	json_unsigned("raw_ns", page->raw_ns);
	json_unsigned("common_ns", page->common_ns);
	json_signed("rate_ppb", page->rate_ppb);
	json_bound("bound_ns", page->bound_ns);
	json_unsigned("growth_ppb", page->growth_ppb);
	json_signed("system_offset_ns", page->system_offset_ns);
	json_unsigned("references", page->references);
	json_unsigned("references_used", page->references_used);
	if (page->references_used) {
		json_signed("reference_offset_ns", page->reference_offset_ns);
		json_signed("reference_rate_ppb", page->reference_rate_ppb);
		json_unsigned("reference_bound_ns", page->reference_bound_ns);
	}
	json_open("peers", '[');
	for (size_t i = 0; i < page->peer_count && i < TIMELY_CLOCK_PEERS; i++)
		json_peer(&page->peers[i]);
	json_close(']');
	json_open("counters", '{');
	for (size_t i = 0; i < TIMELY_CLOCK_COUNTERS; i++)
		json_unsigned(timely_clock_counter_names[i], page->counters[i]);
	json_close('}');
	json_close('}');
	json_end();
}

/* ---- reading ---- */

static int tell_failed(const struct options *options, int err)
{
	const char *path = options->page ?: TIMELY_CLOCK_PAGE;

	if (err == -ENOENT)
		tell_err("there is no \"%s\": timely-clockd has not run since the boot: systemctl start timely-clockd",
			 plain(path));
	else if (err == -EPROTO)
		tell_err("\"%s\" is not the clock page of this version: install timelyctl and timely-clockd of the same version, and restart the daemon",
			 plain(path));
	else if (err == -EAGAIN)
		tell_err("timely-clockd ended while it wrote \"%s\": systemctl restart timely-clockd",
			 plain(path));
	else if (err == -ENODATA)
		tell_err("the common time is not known yet: timelyctl clock shows the peers");
	else if (err == -ESTALE)
		tell_err("the last estimate is too old, or this host was suspended: systemctl status timely-clockd");
	else
		tell_err("cannot read \"%s\": %s", plain(path), error_text(err));
	return STATUS_FAILED;
}

/* Both times by a copy of the page. */
static void times_now(const struct timely_clock_page *page, struct times *times)
{
	__u64 suspended_ns = timely_clock_suspended_ns(), raw_ns;
	struct timespec raw;

	clock_gettime(CLOCK_MONOTONIC_RAW, &raw);
	raw_ns = raw.tv_sec * NS_PER_S + raw.tv_nsec;
	times->common_err = timely_clock_at(page, raw_ns, suspended_ns, &times->common);
	times->reference_err = timely_clock_reference_at(page, raw_ns, suspended_ns,
							 &times->reference);
}

/* Show the page, and whether the daemon @ended. */
static int show(struct timely_clock *clock, const struct options *options, bool json, bool *ended)
{
	struct timely_clock_page page;
	struct times times = {};
	int err = timely_clock_read(clock, &page);

	if (err)
		return tell_failed(options, err);
	page.nic[sizeof(page.nic) - 1] = 0;
	*ended = clock_has_ended(&page);
	times_now(&page, &times);
	if (json)
		json_page(&page, &times);
	else
		print_page(&page, &times);
	return STATUS_OK;
}

static int show_once(struct timely_clock *clock, const struct options *options, bool json)
{
	bool ended = false;
	int status = show(clock, options, json, &ended);

	return ended ? STATUS_FAILED : status;
}

static void print_range(const char *which, const struct timely_clock_time *now)
{
	char text[40];

	tell_info("%stime      %s", which, utc_text(text, sizeof(text), now->time_ns));
	tell_info("%searliest  %s", which, utc_text(text, sizeof(text), now->earliest_ns));
	tell_info("%slatest    %s", which, utc_text(text, sizeof(text), now->latest_ns));
}

static int show_now(struct timely_clock *clock, const struct options *options, bool json)
{
	struct timely_clock_page page;
	struct times times;
	int err = timely_clock_read(clock, &page);

	if (err)
		return tell_failed(options, err);
	times_now(&page, &times);
	if (times.common_err)
		return tell_failed(options, times.common_err);
	if (json) {
		json_open(NULL, '{');
		json_time(&times.common, 0);
		json_reference(&times.reference, times.reference_err);
		json_close('}');
		json_end();
		return STATUS_OK;
	}
	print_range("", &times.common);
	if (page.references && times.reference_err)
		tell_info("reference time not known");
	else if (page.references)
		print_range("reference ", &times.reference);
	return STATUS_OK;
}

/* Show again and again, on a terminal always at the same place, until a signal comes. */
static int watch(struct timely_clock *clock, const struct options *options)
{
	const char *clear = isatty(STDOUT_FILENO) ? "\033[H\033[J" : "";
	struct ending ending;
	bool ended;
	int status;

	ending_begin(&ending, options->interval_ms, options->duration_s);
	do {
		fputs(clear, stdout);
		status = show(clock, options, false, &ended);
		fflush(stdout);
	} while (!status && ending_wait(&ending));
	return status;
}

/* ---- record ---- */

static void record_peer(FILE *file, const struct timely_clock_peer *peer)
{
	char address[INET6_ADDRSTRLEN];
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	fprintf(file, "%lld.%06ld,%s,%s,", (long long)now.tv_sec, now.tv_nsec / 1000,
		clock_address_text(address, peer->address), peer_state(peer));
	if (peer->bound_ns == TIMELY_CLOCK_UNKNOWN_NS)
		fputs(",,,", file);
	else
		fprintf(file, "%lld,%lld,%llu,", (long long)peer->offset_ns,
			(long long)peer->drift_ppb, (unsigned long long)peer->bound_ns);
	if (peer->system_bound_ns == TIMELY_CLOCK_UNKNOWN_NS)
		fputs(",,", file);
	else
		fprintf(file, "%lld,%llu,", (long long)peer->system_offset_ns,
			(unsigned long long)peer->system_bound_ns);
	if (peer->loops)
		fprintf(file, "%lld", (long long)peer->surplus_ns);
	fprintf(file, ",%llu,%llu,%llu\n", (unsigned long long)peer->pure,
		(unsigned long long)peer->rejected, (unsigned long long)peer->lost);
}

static int record_page(FILE *file, struct timely_clock *clock, const struct options *options)
{
	struct timely_clock_page page;
	int err = timely_clock_read(clock, &page);

	if (err)
		return tell_failed(options, err);
	/* What a daemon that has ended has left would look like measurements of now. */
	if (clock_has_ended(&page))
		page.peer_count = 0;
	for (size_t i = 0; i < page.peer_count && i < TIMELY_CLOCK_PEERS; i++)
		record_peer(file, &page.peers[i]);
	if (!fflush(file))
		return STATUS_OK;
	tell_err("cannot write: %s", error_text(errno));
	return STATUS_FAILED;
}

static int record(struct timely_clock *clock, const struct options *options, const char *path)
{
	FILE *file = record_open(path);
	struct ending ending;
	int status = STATUS_OK;

	if (!file)
		return STATUS_FAILED;
	fputs("unix_time_s,peer,state,offset_ns,drift_ppb,bound_ns,system_offset_ns,", file);
	fputs("system_bound_ns,surplus_ns,used,rejected,lost\n", file);
	ending_begin(&ending, options->interval_ms, options->duration_s);
	do {
		status = record_page(file, clock, options);
	} while (!status && ending_wait(&ending));
	if (file != stdout && fclose(file) && !status) {
		tell_err("cannot write \"%s\": %s", plain(path), error_text(errno));
		status = STATUS_FAILED;
	}
	return status;
}

/* ---- the command line ---- */

static int parse_options(const char *verb, char **words, int count, struct options *options)
{
	for (int i = 0; i < count; i += 2) {
		bool interval = strcmp(words[i], "interval") == 0;
		bool repeats = strcmp(verb, "watch") == 0 || strcmp(verb, "record") == 0;
		bool page = strcmp(words[i], "page") == 0;
		__s64 value;

		if (!page && (!repeats || (!interval && strcmp(words[i], "duration") != 0)))
			return usage_err("clock %s: unexpected word \"%s\"", verb, plain(words[i]));
		if (i + 1 == count)
			return usage_err("clock %s: a value is missing after \"%s\"", verb,
					 plain(words[i]));
		if (page) {
			options->page = words[i + 1];
			continue;
		}
		if (!parse_number(words[i + 1], interval ? 10 : 1, 1000000, &value))
			return usage_err("%s: %d to 1000000 are allowed, not \"%s\"", words[i],
					 interval ? 10 : 1, plain(words[i + 1]));
		*(interval ? &options->interval_ms : &options->duration_s) = value;
	}
	return STATUS_OK;
}

static bool is_verb(const char *word)
{
	return strcmp(word, "show") == 0 || strcmp(word, "now") == 0 ||
	       strcmp(word, "watch") == 0 || strcmp(word, "record") == 0;
}

int command_clock(char **words, int count, bool json)
{
	struct options options = { .interval_ms = 1000 };
	const char *verb = "show", *path = NULL;
	struct timely_clock *clock;
	int status, err;

	if (count && is_verb(words[0])) {
		verb = *words++;
		count--;
	} else if (count && strcmp(words[0], "page") != 0) {
		return usage_err("clock: \"%s\" is unknown: allowed are show, now, watch, record",
				 plain(words[0]));
	}
	if (strcmp(verb, "record") == 0) {
		if (!count)
			return usage_err("clock record: the file's name is missing");
		path = *words++;
		count--;
	}
	status = parse_options(verb, words, count, &options);
	if (status)
		return status;
	if (json && (path || strcmp(verb, "watch") == 0))
		return usage_err("clock %s: -j is only for show and now", verb);
	err = timely_clock_open(&clock, options.page);
	if (err)
		return tell_failed(&options, err);
	if (path)
		status = record(clock, &options, path);
	else if (strcmp(verb, "watch") == 0)
		status = watch(clock, &options);
	else if (strcmp(verb, "now") == 0)
		status = show_now(clock, &options, json);
	else
		status = show_once(clock, &options, json);
	timely_clock_close(clock);
	return status;
}
