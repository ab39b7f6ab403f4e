// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl ndp`: the sockets, paths, pull queues and counters of NDP in this network namespace
 * (module ndp, family "ndp" of generic netlink, see <linux/ndp.h>).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <netinet/tcp.h>

#include <linux/ndp.h>

#include "timelyctl.h"

/* Paths of a connection: further ones than the module has today are not read. */
#define PATHS 16

/**
 * struct entry - a socket of NDP
 * @socket: as the module reports it
 * @paths: scoreboard of its paths
 * @path_count: number of paths; 0 for a listener
 */
struct entry {
	struct ndp_socket socket;
	struct ndp_path paths[PATHS];
	size_t path_count;
};

/**
 * struct ndp - all that is shown
 * @choice: which sockets the command asks for
 * @entry: these sockets
 * @count: number of sockets
 * @queue: pull queues
 * @queue_count: number of pull queues
 * @counts: counters of the namespace
 */
struct ndp {
	struct choice choice;
	struct entry *entry;
	size_t count;
	struct ndp_pull_queue *queue;
	size_t queue_count;
	struct ndp_counts counts;
};

/* ---- reading ---- */

/* Copies a structure, which may have more or fewer members in a kernel of another version. */
static void copy_struct(void *to, size_t size, const struct nlattr *attr)
{
	size_t bytes = mnl_attr_get_payload_len(attr);

	memset(to, 0, size);
	memcpy(to, mnl_attr_get_payload(attr), bytes < size ? bytes : size);
}

static unsigned int address_bytes(const struct ndp_socket *socket)
{
	return socket->family == AF_INET6 ? 16 : 4;
}

static bool in_prefix(const struct prefix *prefix, const struct ndp_socket *socket,
		      const __u8 *address)
{
	return !prefix->bytes || prefix_contains(prefix, address, address_bytes(socket));
}

static bool is_wanted(const struct choice *choice, const struct ndp_socket *socket)
{
	return in_prefix(&choice->from, socket, socket->saddr) &&
	       in_prefix(&choice->to, socket, socket->daddr) &&
	       (!choice->port || choice->port == ntohs(socket->sport) ||
		choice->port == ntohs(socket->dport));
}

static void read_entry(struct entry *entry, const struct nlmsghdr *message)
{
	const struct nlattr *attr;

	memset(entry, 0, sizeof(*entry));
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) == NDP_A_SOCKET)
			copy_struct(&entry->socket, sizeof(entry->socket), attr);
		if (mnl_attr_get_type(attr) != NDP_A_PATHS)
			continue;
		copy_struct(entry->paths, sizeof(entry->paths), attr);
		entry->path_count = mnl_attr_get_payload_len(attr) / sizeof(entry->paths[0]);
		if (entry->path_count > PATHS)
			entry->path_count = PATHS;
	}
}

static void add_entry(const struct nlmsghdr *message, void *data)
{
	struct ndp *ndp = data;
	struct entry entry;

	if (!message) {
		ndp->count = 0;
		return;
	}
	read_entry(&entry, message);
	if (!is_wanted(&ndp->choice, &entry.socket))
		return;
	ndp->entry = reallocarray(ndp->entry, ndp->count + 1, sizeof(entry));
	if (!ndp->entry)
		out_of_memory();
	ndp->entry[ndp->count++] = entry;
}

static void add_queue(const struct nlmsghdr *message, void *data)
{
	struct ndp *ndp = data;
	const struct nlattr *attr;

	if (!message) {
		ndp->queue_count = 0;
		return;
	}
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) != NDP_A_QUEUE)
			continue;
		ndp->queue = reallocarray(ndp->queue, ndp->queue_count + 1, sizeof(*ndp->queue));
		if (!ndp->queue)
			out_of_memory();
		copy_struct(&ndp->queue[ndp->queue_count++], sizeof(*ndp->queue), attr);
	}
}

static void read_counts(const struct nlmsghdr *message, void *data)
{
	struct ndp_counts *counts = data;
	const struct nlattr *attr;

	if (!message) {
		counts->counters.count = 0;
		return;
	}
	mnl_attr_for_each(attr, message, sizeof(struct genlmsghdr)) {
		if (mnl_attr_get_type(attr) == NDP_A_COUNTER)
			counters_add(&counts->counters, attr);
		else if (mnl_attr_get_type(attr) == NDP_A_MEMORY)
			counts->memory = attr_unsigned(attr);
		else if (mnl_attr_get_type(attr) == NDP_A_MAX_MEMORY)
			counts->max_memory = attr_unsigned(attr);
	}
}

static int dump(struct family *family, __u8 command, talk_each each, void *data)
{
	char buffer[REQUEST_BYTES] = { 0 };

	return talk_ask(&family->talk, family_request(family, buffer, NLM_F_DUMP, command), each,
			data);
}

/* Packets that were sent again, or had to be. */
static __u64 resent(const struct ndp_info *info)
{
	return info->nacked + info->returned + info->lost;
}

/* Those with the most retransmissions first, then by the local port. */
static int compare_entries(const void *a, const void *b)
{
	const struct ndp_socket *one = &((const struct entry *)a)->socket;
	const struct ndp_socket *other = &((const struct entry *)b)->socket;
	__u64 x = resent(&one->info), y = resent(&other->info);

	if (x != y)
		return x < y ? 1 : -1;
	return ntohs(one->sport) - ntohs(other->sport);
}

static int read_all(struct family *family, struct ndp *ndp)
{
	int err = dump(family, NDP_CMD_SOCKET_GET, add_entry, ndp);

	if (!err)
		err = dump(family, NDP_CMD_QUEUE_GET, add_queue, ndp);
	if (!err)
		err = family_get(family, NDP_CMD_COUNTER_GET, read_counts, &ndp->counts);
	if (ndp->count)
		qsort(ndp->entry, ndp->count, sizeof(*ndp->entry), compare_entries);
	if (ndp->choice.limit && ndp->count > ndp->choice.limit)
		ndp->count = ndp->choice.limit;
	return err;
}

/* ---- sums ---- */

static bool listens(const struct ndp_socket *socket)
{
	return socket->info.state == TCP_LISTEN;
}

static size_t paths_left_out(const struct entry *entry)
{
	size_t count = 0;

	for (size_t i = 0; i < entry->path_count; i++)
		count += entry->paths[i].left_out_ns > 0;
	return count;
}

static void add_sums(const struct nlmsghdr *message, void *data)
{
	struct ndp_sums *sums = data;
	struct entry entry;

	if (!message) {
		sums->connections = 0;
		sums->graceful = 0;
		sums->paths_out = 0;
		return;
	}
	read_entry(&entry, message);
	if (listens(&entry.socket))
		return;
	sums->connections++;
	sums->graceful += !!(entry.socket.info.flags & NDP_INFO_GRACEFUL);
	sums->paths_out += paths_left_out(&entry);
}

int ndp_sums_get(struct family *family, struct ndp_sums *sums)
{
	int err = family_get(family, NDP_CMD_COUNTER_GET, read_counts, &sums->counts);

	return err ?: dump(family, NDP_CMD_SOCKET_GET, add_sums, sums);
}

/* ---- text ---- */

/* States as ss names them. */
static const char *state_name(const struct ndp_socket *socket)
{
	static const char * const names[] = {
		[TCP_ESTABLISHED] = "ESTAB", [TCP_FIN_WAIT1] = "FIN-WAIT-1",
		[TCP_FIN_WAIT2] = "FIN-WAIT-2", [TCP_CLOSE] = "UNCONN",
		[TCP_CLOSE_WAIT] = "CLOSE-WAIT", [TCP_LAST_ACK] = "LAST-ACK",
		[TCP_LISTEN] = "LISTEN",
	};
	__u32 state = socket->info.state;

	return state < ARRAY_SIZE(names) && names[state] ? names[state] : "?";
}

/* Rate at which the peer has pulled data lately, kbit/s; 0: not known. */
static __u64 pulled_kbps(const struct ndp_socket *socket)
{
	return socket->pull_gap_ns ? 8000000ULL * socket->info.payload / socket->pull_gap_ns : 0;
}

static bool is_unanswered(const struct ndp_socket *socket)
{
	return socket->initiator && !(socket->info.flags & NDP_INFO_ANSWERED);
}

static void print_entry(const struct entry *entry)
{
	const struct ndp_socket *socket = &entry->socket;
	const struct ndp_info *info = &socket->info;
	char from[64], to[64], rtt[24], credits[24], pulled[24], paths[48];

	end_text(from, sizeof(from), socket->saddr, address_bytes(socket), ntohs(socket->sport));
	end_text(to, sizeof(to), socket->daddr, address_bytes(socket), ntohs(socket->dport));
	if (listens(socket)) {
		tell_info("%-21s %-21s %-10s %llu of %llu connections wait to be accepted", from,
			  "-", state_name(socket), (unsigned long long)socket->rmem,
			  (unsigned long long)socket->wmem);
		return;
	}
	snprintf(credits, sizeof(credits), "%u/%u", info->credits, socket->window);
	snprintf(paths, sizeof(paths), "%zu/%zu", entry->path_count - paths_left_out(entry),
		 entry->path_count);
	tell_info("%-21s %-21s %-10s %9s %7u %7s %11s %9llu %7llu %9llu %7llu %5s%s%s%s", from, to,
		  state_name(socket),
		  info->rtt_us ? time_text(rtt, sizeof(rtt), 1000ULL * info->rtt_us) : "-",
		  info->unacked, credits,
		  socket->pull_gap_ns ?
			rate_text(pulled, sizeof(pulled), pulled_kbps(socket)) : "-",
		  (unsigned long long)info->sent, (unsigned long long)resent(info),
		  (unsigned long long)info->received, (unsigned long long)info->trimmed, paths,
		  is_unanswered(socket) ? " unanswered" : "",
		  info->flags & NDP_INFO_GRACEFUL ? " graceful" : "",
		  info->flags & NDP_INFO_ANSWERED && !info->room ? " no-room" : "");
}

static const char *queue_name(char *name, const struct ndp_pull_queue *queue)
{
	if (!if_indextoname(queue->ifindex, name))
		snprintf(name, IF_NAMESIZE, "%u", queue->ifindex);
	return name;
}

static void print_queue(const struct ndp_pull_queue *queue)
{
	char name[IF_NAMESIZE], rate[24];

	tell_info("pull queue of %s: %s, %u connections wait, %llu pulls",
		  plain(queue_name(name, queue)), rate_text(rate, sizeof(rate), queue->kbps),
		  queue->flows, (unsigned long long)queue->pulls);
}

static void print_ndp(const struct ndp *ndp)
{
	if (ndp->count)
		tell_info("%-21s %-21s %-10s %9s %7s %7s %11s %9s %7s %9s %7s %5s %s", "from", "to",
			  "state", "RTT", "unacked", "credits", "pulled at", "sent", "resent",
			  "received", "trimmed", "paths", "notes");
	else
		tell_info("no program has an NDP socket that listens or is connected, or none matches");
	for (size_t i = 0; i < ndp->count; i++)
		print_entry(&ndp->entry[i]);
	for (size_t i = 0; i < ndp->queue_count; i++)
		print_queue(&ndp->queue[i]);
	tell_info("memory of connections: %llu of %llu bytes",
		  (unsigned long long)ndp->counts.memory,
		  (unsigned long long)ndp->counts.max_memory);
}

static void print_paths(const struct ndp *ndp)
{
	char from[64], to[64], left[24];

	tell_info("%-21s %-21s %8s %6s %6s %6s %7s %s", "from", "to", "UDP port", "ACKs", "NACKs",
		  "losses", "strikes", "left out for");
	for (size_t i = 0; i < ndp->count; i++) {
		const struct ndp_socket *socket = &ndp->entry[i].socket;
		unsigned int bytes = address_bytes(socket);

		for (size_t j = 0; j < ndp->entry[i].path_count; j++) {
			const struct ndp_path *path = &ndp->entry[i].paths[j];

			tell_info("%-21s %-21s %8u %6u %6u %6u %7u %s",
				  end_text(from, sizeof(from), socket->saddr, bytes,
					   ntohs(socket->sport)),
				  end_text(to, sizeof(to), socket->daddr, bytes,
					   ntohs(socket->dport)),
				  ntohs(path->sport), path->acks, path->nacks, path->losses,
				  path->strikes,
				  path->left_out_ns ?
					time_text(left, sizeof(left), path->left_out_ns) : "-");
		}
	}
}

/* ---- JSON ---- */

static void json_paths(const struct entry *entry)
{
	json_open("paths", '[');
	for (size_t i = 0; i < entry->path_count; i++) {
		const struct ndp_path *path = &entry->paths[i];

		json_open(NULL, '{');
		json_unsigned("udp_port", ntohs(path->sport));
		json_unsigned("acks", path->acks);
		json_unsigned("nacks", path->nacks);
		json_unsigned("losses", path->losses);
		json_unsigned("strikes", path->strikes);
		json_unsigned("left_out_ns", path->left_out_ns);
		json_close('}');
	}
	json_close(']');
}

/* What a connection has and a listener has not. */
static void json_conn(const struct entry *entry)
{
	const struct ndp_socket *socket = &entry->socket;
	const struct ndp_info *info = &socket->info;
	char text[INET6_ADDRSTRLEN];

	json_string("to", address_text(text, socket->daddr, address_bytes(socket)));
	json_unsigned("to_port", ntohs(socket->dport));
	json_bool("initiator", socket->initiator);
	json_unsigned("ifindex", socket->ifindex);
	json_bool("answered", info->flags & NDP_INFO_ANSWERED);
	json_bool("graceful", info->flags & NDP_INFO_GRACEFUL);
	json_unsigned("payload", info->payload);
	json_unsigned("rtt_us", info->rtt_us);
	json_unsigned("window", socket->window);
	json_unsigned("credits", info->credits);
	json_unsigned("room", info->room);
	json_unsigned("unacked", info->unacked);
	json_unsigned("pull_gap_ns", socket->pull_gap_ns);
	json_unsigned("pulled_bps", 1000 * pulled_kbps(socket));
	json_unsigned("pull_kbps", info->pull_kbps);
	json_unsigned("pulls_wanted", socket->wanted);
	json_unsigned("receive_memory", socket->rmem);
	json_unsigned("send_memory", socket->wmem);
	json_unsigned("sent", info->sent);
	json_unsigned("nacked", info->nacked);
	json_unsigned("returned", info->returned);
	json_unsigned("lost", info->lost);
	json_unsigned("timeouts", info->timeouts);
	json_unsigned("pulled", info->pulled);
	json_unsigned("received", info->received);
	json_unsigned("repeated", info->repeated);
	json_unsigned("trimmed", info->trimmed);
	json_unsigned("damaged", info->damaged);
	json_unsigned("no_room", info->no_room);
	json_unsigned("pulls", info->pulls);
	json_paths(entry);
}

static void json_entry(const struct entry *entry)
{
	const struct ndp_socket *socket = &entry->socket;
	char text[INET6_ADDRSTRLEN];

	json_open(NULL, '{');
	json_string("from", address_text(text, socket->saddr, address_bytes(socket)));
	json_unsigned("from_port", ntohs(socket->sport));
	json_string("state", state_name(socket));
	json_unsigned("uid", socket->uid);
	json_unsigned("inode", socket->inode);
	if (listens(socket)) {
		json_unsigned("waiting", socket->rmem);
		json_unsigned("backlog", socket->wmem);
	} else {
		json_conn(entry);
	}
	json_close('}');
}

static void json_queue(const struct ndp_pull_queue *queue)
{
	char name[IF_NAMESIZE];

	json_open(NULL, '{');
	json_string("ifname", queue_name(name, queue));
	json_unsigned("ifindex", queue->ifindex);
	json_unsigned("link_kbps", queue->kbps);
	json_unsigned("waiting", queue->flows);
	json_unsigned("pulls", queue->pulls);
	json_close('}');
}

static void json_ndp(const struct ndp *ndp)
{
	json_open(NULL, '{');
	json_open("sockets", '[');
	for (size_t i = 0; i < ndp->count; i++)
		json_entry(&ndp->entry[i]);
	json_close(']');
	json_open("queues", '[');
	for (size_t i = 0; i < ndp->queue_count; i++)
		json_queue(&ndp->queue[i]);
	json_close(']');
	counters_json("counters", &ndp->counts.counters);
	json_unsigned("memory", ndp->counts.memory);
	json_unsigned("max_memory", ndp->counts.max_memory);
	json_close('}');
	json_end();
}

/* ---- the command ---- */

/* NDP has no control groups, and other orders than flows. */
static int check_words(char **words, int count)
{
	for (int i = 0; i < count; i += 2)
		if (strcmp(words[i], "from") != 0 && strcmp(words[i], "to") != 0 &&
		    strcmp(words[i], "port") != 0 && strcmp(words[i], "limit") != 0)
			return usage_err("ndp: \"%s\" is unknown: %s", plain(words[i]),
					 "allowed are show, paths, counters, from, to, port, limit");
	return STATUS_OK;
}

static int show(const char *verb, struct ndp *ndp, bool json)
{
	struct family family;
	int err;

	if (!family_open_or_tell(&family, NDP_GENL_NAME, "module ndp is not loaded: modprobe ndp"))
		return STATUS_FAILED;
	err = read_all(&family, ndp);
	if (err)
		tell_err("a request to module ndp failed: %s",
			 family.talk.why[0] ? family.talk.why : error_text(err));
	else if (json)
		json_ndp(ndp);
	else if (strcmp(verb, "paths") == 0)
		print_paths(ndp);
	else if (strcmp(verb, "counters") == 0)
		counters_print(&ndp->counts.counters);
	else
		print_ndp(ndp);
	family_close(&family);
	return err ? STATUS_FAILED : STATUS_OK;
}

int command_ndp(char **words, int count, bool json)
{
	const char *verb = "show";
	struct ndp ndp = {};
	int status;

	if (count && (strcmp(words[0], "show") == 0 || strcmp(words[0], "paths") == 0 ||
		      strcmp(words[0], "counters") == 0)) {
		verb = *words++;
		count--;
	}
	status = check_words(words, count);
	if (!status)
		status = choice_parse("ndp", words, count, 0, &ndp.choice);
	if (!status)
		status = show(verb, &ndp, json);
	free(ndp.entry);
	free(ndp.queue);
	free(ndp.counts.counters.counter);
	return status;
}
