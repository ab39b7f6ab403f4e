// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl record`: writes the connections that use timely to a CSV file at regular intervals.
 * timely-plot draws such a file.
 *
 * The file has a line for each connection and reading. Its columns are named in its first line; new
 * columns may be added at the end.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "timelyctl.h"

#define NS_PER_S	1000000000ULL

static __u64 now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Columns about the last RTT are empty before the first RTT. */
static void write_connection(FILE *file, __u64 time_ns, const struct timely_connection *connection)
{
	unsigned int bytes = connection_address_bytes(connection);
	char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN], rtt[32] = ",";

	if (connection->rtt_ns)
		snprintf(rtt, sizeof(rtt), "%u,%u", connection->rtt_ns,
			 connection_queue_ns(connection));
	fprintf(file, "%llu.%06llu,%s,%u,%s,%u,%llu,%s,%u,%llu,%llu,%llu,%llu\n",
		(unsigned long long)(time_ns / NS_PER_S),
		(unsigned long long)(time_ns % NS_PER_S / 1000),
		address_text(from, connection->saddr, bytes), ntohs(connection->sport),
		address_text(to, connection->daddr, bytes), ntohs(connection->dport),
		(unsigned long long)connection->rate_Bps * 8, rtt, connection->target_ns,
		(unsigned long long)connection_cuts(connection),
		(unsigned long long)connection->pauses, (unsigned long long)connection->paused_ns,
		(unsigned long long)connection->net_cookie);
}

/* Prints errors; returns an exit status. */
static int read_connections(struct family *family, struct choice *choice, struct connections *list)
{
	int err = connections_get(family, choice, list);

	if (!err)
		return STATUS_OK;
	connections_tell_failed(family, "record", err);
	return STATUS_FAILED;
}

/* Read the connections and write them. Prints errors; returns an exit status. */
static int write_reading(FILE *file, struct family *family, struct choice *choice,
			 struct connections *list)
{
	int status = read_connections(family, choice, list);
	__u64 time_ns = now_ns(CLOCK_REALTIME);

	if (status)
		return status;
	for (size_t i = 0; i < list->count; i++)
		write_connection(file, time_ns, &list->connection[i]);
	if (fflush(file)) {
		tell_err("cannot write: %s", error_text(errno));
		return STATUS_FAILED;
	}
	return STATUS_OK;
}

/* Block the signals that end the recording, so that its last line is complete. Returns them. */
static sigset_t block_ending(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action;
	sigset_t ending;

	sigemptyset(&ending);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		/* Under nohup, SIGHUP is ignored. */
		if (!sigaction(numbers[i], NULL, &action) && action.sa_handler != SIG_IGN)
			sigaddset(&ending, numbers[i]);
	sigprocmask(SIG_BLOCK, &ending, NULL);
	return ending;
}

void ending_begin(struct ending *ending, unsigned int interval_ms, unsigned int duration_s)
{
	ending->signals = block_ending();
	ending->interval_ns = interval_ms * 1000000ULL;
	ending->due_ns = now_ns(CLOCK_MONOTONIC);
	ending->end_ns = duration_s ? ending->due_ns + duration_s * NS_PER_S : ~0ULL;
}

bool ending_wait(struct ending *ending)
{
	__u64 now = now_ns(CLOCK_MONOTONIC), left;
	struct timespec timeout;
	int number;

	/* Readings that are late are left out. */
	do {
		ending->due_ns += ending->interval_ns;
	} while (ending->due_ns < now);
	if (ending->due_ns >= ending->end_ns)
		return false;
	left = ending->due_ns - now;
	timeout = (struct timespec){ .tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S };
	do {
		number = sigtimedwait(&ending->signals, NULL, &timeout);
	} while (number < 0 && errno == EINTR);
	return number < 0;
}

/* Write readings until the duration is over or a signal comes. Returns an exit status. */
static int record(FILE *file, struct family *family, struct choice *choice)
{
	struct connections list = {};
	struct ending ending;
	int status;

	fputs("unix_time_s,from,from_port,to,to_port,rate_bps,rtt_ns,queue_ns,target_ns,", file);
	fputs("cuts,pauses,paused_ns,net_cookie\n", file);
	ending_begin(&ending, choice->interval_ms, choice->duration_s);
	do {
		status = write_reading(file, family, choice, &list);
	} while (!status && ending_wait(&ending));
	connections_free(&list);
	return status;
}

FILE *record_open(const char *path)
{
	FILE *file;

	if (strcmp(path, "-") == 0)
		return stdout;
	file = fopen(path, "wxe");
	if (!file)
		tell_err("cannot create \"%s\": %s%s", plain(path), error_text(errno),
			 errno == EEXIST ? ": give the name of a new file" : "");
	return file;
}

int command_record(char **words, int count, bool json)
{
	struct choice choice = { .interval_ms = 1000 };
	struct connections list = {};
	struct family family;
	FILE *file = NULL;
	int status;

	if (!count)
		return usage_err("record: the file's name is missing");
	status = choice_parse("record", words + 1, count - 1, WORD_INTERVAL | WORD_DURATION,
			      &choice);
	if (status)
		return status;
	if (json)
		return usage_err("record: -j is not possible: the output is CSV");
	if (!connections_open(&family))
		return STATUS_FAILED;
	/* A user without privilege must not leave a file that stops the next attempt. */
	if (!read_connections(&family, &choice, &list))
		file = record_open(words[0]);
	connections_free(&list);
	status = file ? record(file, &family, &choice) : STATUS_FAILED;
	if (file && file != stdout && fclose(file) && !status) {
		tell_err("cannot write \"%s\": %s", plain(words[0]), error_text(errno));
		status = STATUS_FAILED;
	}
	family_close(&family);
	return status;
}
