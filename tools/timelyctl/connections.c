// SPDX-License-Identifier: GPL-2.0
/*
 * The connections that use timely: reads them from module timely, chooses those that a command asks
 * for, sorts them, and names their states and counters.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <sys/stat.h>

#include <linux/timely.h>
#include <linux/timely_version.h>

#include "timelyctl.h"

const char * const cut_names[TIMELY_CUTS] = {
	[TIMELY_CUT_LOSS]	= "loss",
	[TIMELY_CUT_TIMEOUT]	= "timeout",
	[TIMELY_CUT_ECN]	= "ecn",
	[TIMELY_CUT_QUEUE]	= "queue",
};

const char * const rejected_names[TIMELY_REJECTIONS] = {
	[TIMELY_REJECTED_RETRANSMITTED]	= "retransmitted",
	[TIMELY_REJECTED_RECOVERY]	= "recovery",
	[TIMELY_REJECTED_DELAYED]	= "delayed",
	[TIMELY_REJECTED_DOUBTFUL]	= "doubtful",
	[TIMELY_REJECTED_NEGATIVE]	= "negative",
	[TIMELY_REJECTED_TOO_LONG]	= "too_long",
};

const struct state_name state_names[STATE_NAMES] = {
	{ TIMELY_STATE_SENDING, "sending" },
	{ TIMELY_STATE_STARTING, "starting" },
	{ TIMELY_STATE_MINIMUM, "minimum-rate" },
	{ TIMELY_STATE_RECOVERY, "recovery" },
	{ TIMELY_STATE_PROBE, "probe" },
	{ TIMELY_STATE_APART, "probes-apart" },
	{ TIMELY_STATE_LAG, "other-qdisc" },
	{ TIMELY_STATE_ACK_WAIT, "acks-timed" },
};

const char *source_name(unsigned int source)
{
	static const char * const names[] = {
		[TIMELY_SOURCE_HARDWARE] = "hardware",
		[TIMELY_SOURCE_DRIVER] = "driver",
		[TIMELY_SOURCE_TCP] = "tcp",
	};

	return source < ARRAY_SIZE(names) ? names[source] : "?";
}

/* The queueing delay of the last RTT, ns. */
__u32 connection_queue_ns(const struct timely_connection *connection)
{
	if (connection->rtt_ns < connection->base_rtt_ns)
		return 0;
	return connection->rtt_ns - connection->base_rtt_ns;
}

/*
 * An idle connection keeps the RTT that it had last. An RTT is recent if it is not older than this,
 * ns: longer than the usual interval between two looks at a host.
 */
#define RECENT_NS	60000000000ULL

bool connection_rtt_is_recent(const struct timely_connection *connection)
{
	return connection->rtt_ns && connection->rtt_age_ns <= RECENT_NS;
}

/* How often there was a cause to reduce the rate at once. */
__u64 connection_cuts(const struct timely_connection *connection)
{
	__u64 sum = 0;

	for (size_t i = 0; i < TIMELY_CUTS; i++)
		sum += connection->cuts[i];
	return sum;
}

unsigned int connection_address_bytes(const struct timely_connection *connection)
{
	return connection->family == AF_INET6 ? 16 : 4;
}

/* ---- choosing ---- */

/* Whether the address is in the prefix, or the prefix is not given. */
static bool in_prefix(const struct prefix *prefix, const struct timely_connection *connection,
		      const __u8 *address)
{
	return !prefix->bytes ||
	       prefix_contains(prefix, address, connection_address_bytes(connection));
}

/* Whether the command asks for the connection, apart from its control group. */
static bool connection_wanted(const struct choice *choice,
			      const struct timely_connection *connection)
{
	if (!in_prefix(&choice->from, connection, connection->saddr) ||
	    !in_prefix(&choice->to, connection, connection->daddr))
		return false;
	if (choice->port && choice->port != ntohs(connection->sport) &&
	    choice->port != ntohs(connection->dport))
		return false;
	return true;
}

/* The identifier of a control group: the inode number of its directory. Prints errors. */
static bool parse_cgroup(const char *path, __u64 *cgroup)
{
	struct stat status;

	if (stat(path, &status) || !S_ISDIR(status.st_mode)) {
		tell_err("\"%s\" is no directory of a control group, such as /sys/fs/cgroup/system.slice",
			 plain(path));
		return false;
	}
	*cgroup = status.st_ino;
	return true;
}

static const struct {
	const char *name;
	enum order order;
} orders[] = {
	{ "delay", ORDER_DELAY }, { "rate", ORDER_RATE }, { "cuts", ORDER_CUTS },
	{ "pauses", ORDER_PAUSES },
};

const char *order_name(enum order order)
{
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++)
		if (orders[i].order == order)
			return orders[i].name;
	return "?";
}

static bool parse_order(const char *word, enum order *order)
{
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		if (strcmp(word, orders[i].name) == 0) {
			*order = orders[i].order;
			return true;
		}
	}
	return false;
}

/* Parse the value of one word of a choice. Prints errors; returns an exit status. */
static int parse_value(const char *command, const char *key, const char *value,
		       unsigned int more, struct choice *choice)
{
	__s64 number;

	if (strcmp(key, "from") == 0 || strcmp(key, "to") == 0) {
		if (!parse_prefix(value, key[0] == 'f' ? &choice->from : &choice->to))
			return usage_err("%s %s: \"%s\" is no PREFIX/LENGTH, such as 10.1.0.0/16",
					 command, key, plain(value));
	} else if (strcmp(key, "port") == 0) {
		if (!parse_number(value, 1, 65535, &number))
			return usage_err("%s port: allowed are 1 to 65535, not \"%s\"", command,
					 plain(value));
		choice->port = number;
	} else if (strcmp(key, "limit") == 0) {
		if (!parse_number(value, 1, 1000000000, &number))
			return usage_err("%s limit: allowed are 1 to 1000000000, not \"%s\"",
					 command, plain(value));
		choice->limit = number;
	} else if (strcmp(key, "sort") == 0) {
		if (!parse_order(value, &choice->order))
			return usage_err("sort: allowed are delay, rate, cuts, pauses, not \"%s\"",
					 plain(value));
	} else if (more & WORD_PREFIX && strcmp(key, "prefix") == 0) {
		if (!parse_number(value, 1, 128, &number))
			return usage_err("%s prefix: allowed are 1 to 128, not \"%s\"", command,
					 plain(value));
		choice->length = number;
	} else if (more & WORD_INTERVAL && strcmp(key, "interval") == 0) {
		if (!parse_number(value, 10, 3600000, &number))
			return usage_err("%s interval: allowed are 10 to 3600000 ms, not \"%s\"",
					 command, plain(value));
		choice->interval_ms = number;
	} else if (more & WORD_DURATION && strcmp(key, "duration") == 0) {
		if (!parse_number(value, 1, 1000000000, &number))
			return usage_err("%s duration: allowed are 1 to 1000000000 s, not \"%s\"",
					 command, plain(value));
		choice->duration_s = number;
	} else if (strcmp(key, "cgroup") == 0) {
		if (!parse_cgroup(value, &choice->cgroup))
			return STATUS_USAGE;
	} else {
		return usage_err("%s: unknown word \"%s\"; see man timelyctl", command,
				 plain(key));
	}
	return STATUS_OK;
}

/*
 * Parse the words that say which connections a command shows. @command is the command's name, for
 * messages, and @more are the WORD_* that the command has beside those of all. What no word changes
 * stays as it is. Prints errors; returns an exit status.
 */
int choice_parse(const char *command, char **words, int count, unsigned int more,
		 struct choice *choice)
{
	int status = STATUS_OK;

	for (int i = 0; i < count && !status; i++) {
		if (strcmp(words[i], "all") == 0) {
			choice->all = true;
			continue;
		}
		if (i + 1 == count)
			return usage_err("%s: a value is missing after \"%s\"", command,
					 plain(words[i]));
		status = parse_value(command, words[i], words[i + 1], more, choice);
		i++;
	}
	return status;
}

/* ---- sorting ---- */

/*
 * The value to sort by, the largest first; with ORDER_RATE the smallest rate. The delay of an RTT
 * that is not recent says nothing about the queue now.
 */
static __u64 sort_key(enum order order, const struct timely_connection *connection)
{
	switch (order) {
	case ORDER_RATE:
		return ~connection->rate_Bps;
	case ORDER_CUTS:
		return connection_cuts(connection);
	case ORDER_PAUSES:
		return connection->paused_ns;
	case ORDER_DELAY:
		break;
	}
	return connection_rtt_is_recent(connection) ? connection_queue_ns(connection) : 0;
}

static int compare_connections(const void *a, const void *b, void *data)
{
	const struct choice *choice = data;
	__u64 one = sort_key(choice->order, a), other = sort_key(choice->order, b);

	return (one < other) - (one > other);
}

/* Sort the connections, the worst first, and shorten the list to the limit. */
void connections_sort(struct connections *list, const struct choice *choice)
{
	if (list->count)
		qsort_r(list->connection, list->count, sizeof(*list->connection),
			compare_connections, (void *)choice);
	if (choice->limit && list->count > choice->limit)
		list->count = choice->limit;
}

/* ---- reading ---- */

/**
 * struct reading - what is done with the connections that are read
 * @choice: which of them the command asks for
 * @all: the module has not chosen connections
 * @each: called for each of these, see connections_each()
 * @data: argument of @each
 */
struct reading {
	const struct choice *choice;
	bool all;
	connection_each each;
	void *data;
};

/*
 * Whether the connection is in the control group. Only the module knows the groups above that of
 * the socket: with a module that does not choose, connections of the groups below are left out.
 */
static bool in_cgroup(const struct reading *reading, const struct timely_connection *connection)
{
	__u64 cgroup = reading->choice->cgroup;

	return !cgroup || !reading->all || cgroup == connection->cgroup;
}

static void read_connection(const struct nlmsghdr *message, void *data)
{
	const struct reading *reading = data;
	struct timely_connection connection;
	const struct nlattr *attr;

	if (!message) {
		reading->each(NULL, reading->data);
		return;
	}
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr)) {
		size_t bytes = mnl_attr_get_payload_len(attr);

		if (mnl_attr_get_type(attr) != TIMELY_A_CONNECTION)
			continue;
		/* A kernel of another version may have more or fewer members. */
		memset(&connection, 0, sizeof(connection));
		memcpy(&connection, mnl_attr_get_payload(attr),
		       bytes < sizeof(connection) ? bytes : sizeof(connection));
		connection.control[sizeof(connection.control) - 1] = 0;
		if (connection_wanted(reading->choice, &connection) &&
		    in_cgroup(reading, &connection))
			reading->each(&connection, reading->data);
	}
}

/* Let the module choose the connections, so that it reports fewer. */
static void put_choice(struct nlmsghdr *request, const struct choice *choice)
{
	const struct prefix *any = choice->from.bytes ? &choice->from : &choice->to;
	struct timely_choice wanted = { .cgroup = choice->cgroup, .port = htons(choice->port) };

	if (any->bytes)
		wanted.family = any->bytes == 16 ? AF_INET6 : AF_INET;
	if (choice->from.bytes == any->bytes) {
		memcpy(wanted.saddr, choice->from.address, sizeof(wanted.saddr));
		wanted.slen = choice->from.length;
	}
	if (choice->to.bytes == any->bytes) {
		memcpy(wanted.daddr, choice->to.address, sizeof(wanted.daddr));
		wanted.dlen = choice->to.length;
	}
	if (any->bytes || choice->port || choice->cgroup)
		mnl_attr_put(request, TIMELY_A_CHOICE, sizeof(wanted), &wanted);
}

/*
 * Read the connections that a command asks for, without its limit, and call @each for each of them.
 * @each is first called with NULL, and again if the dump was interrupted and starts again.
 */
int connections_each(struct family *family, const struct choice *choice, connection_each each,
		     void *data)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct nlmsghdr *request = family_request(family, buffer, NLM_F_DUMP,
						  TIMELY_CMD_CONNECTION_GET);
	struct reading reading = { .choice = choice, .each = each, .data = data };
	__u32 bytes;
	int err;

	if (choice->all)
		mnl_attr_put_u8(request, TIMELY_A_ALL_NETS, 1);
	bytes = request->nlmsg_len;
	put_choice(request, choice);
	err = talk_ask(&family->talk, request, read_connection, &reading);
	/* An older module refuses a choice: read_connection() chooses from all. */
	if (err == -EINVAL && request->nlmsg_len != bytes) {
		request->nlmsg_len = bytes;
		reading.all = true;
		err = talk_ask(&family->talk, request, read_connection, &reading);
	}
	return err;
}

/**
 * struct selection - the worst connections of those that were read
 * @choice: their order and their number
 * @list: the connections: those chosen, and up to as many others
 * @full: as many as the limit have at least the sort key @least
 * @least: see @full
 */
struct selection {
	const struct choice *choice;
	struct connections *list;
	bool full;
	__u64 least;
};

static void select_connection(const struct timely_connection *connection, void *data)
{
	struct selection *selection = data;
	const struct choice *choice = selection->choice;
	struct connections *list = selection->list;

	if (!connection) {
		list->count = 0;
		list->matching = 0;
		selection->full = false;
		return;
	}
	list->matching++;
	if (selection->full && sort_key(choice->order, connection) <= selection->least)
		return;
	if (list->count == list->room) {
		list->room = list->room ? 2 * list->room : 64;
		list->connection = reallocarray(list->connection, list->room,
						sizeof(*list->connection));
		if (!list->connection)
			out_of_memory();
	}
	list->connection[list->count++] = *connection;
	if (!choice->limit || list->count < 2 * choice->limit)
		return;
	connections_sort(list, choice);
	selection->full = true;
	selection->least = sort_key(choice->order, &list->connection[list->count - 1]);
}

/*
 * List the connections that a command asks for, the worst first. With a limit the others are not
 * kept, so that a poll of many connections is cheap. The caller frees the list with
 * connections_free(), and may read into it again.
 */
int connections_get(struct family *family, const struct choice *choice, struct connections *list)
{
	struct selection selection = { .choice = choice, .list = list };
	int err = connections_each(family, choice, select_connection, &selection);

	connections_sort(list, choice);
	return err;
}

void connections_free(struct connections *list)
{
	free(list->connection);
	memset(list, 0, sizeof(*list));
}

/* Print an error of connections_get(). @again is the command line to repeat as root. */
void connections_tell_failed(const struct family *family, const char *again, int err)
{
	if (err == -EPERM)
		tell_err("listing connections needs CAP_NET_ADMIN, and for all namespaces root on the host: sudo timelyctl %s",
			 again);
	else if (err == -EOPNOTSUPP)
		tell_err("the module timely that is loaded does not list connections: it is older than timelyctl; load the module of version %s",
			 TIMELY_VERSION);
	else
		tell_err("a request to module timely failed: %s",
			 family->talk.why[0] ? family->talk.why : error_text(err));
}

bool connections_open(struct family *family)
{
	return family_open_or_tell(family, TIMELY_GENL_NAME,
				   "module timely is not loaded: modprobe tcp_timely");
}

/*
 * As connections_get(), but opens the family and prints errors; returns an exit status. The caller
 * frees the list if there was no error.
 */
int connections_list(const char *command, const struct choice *choice, struct connections *list)
{
	struct family family;
	int err;

	if (!connections_open(&family))
		return STATUS_FAILED;
	err = connections_get(&family, choice, list);
	if (err) {
		connections_tell_failed(&family, command, err);
		connections_free(list);
	}
	family_close(&family);
	return err ? STATUS_FAILED : STATUS_OK;
}

void connections_tell_none(void)
{
	tell_info("no connection uses timely, or none matches; ss -ti shows the congestion control of each connection");
}
