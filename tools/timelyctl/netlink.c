// SPDX-License-Identifier: GPL-2.0
/*
 * Netlink requests and their replies, with the kernel's message if it refuses a request.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/netlink.h>

#include "timelyctl.h"

/* Largest datagram that the kernel sends. */
#define DATAGRAM_BYTES 65536

/* How many times a dump is requested if its contents change meanwhile. */
#define TRIES 10

int talk_open(struct talk *talk, int bus)
{
	int one = 1;

	memset(talk, 0, sizeof(*talk));
	talk->socket = mnl_socket_open2(bus, SOCK_CLOEXEC);
	if (!talk->socket)
		return -errno;
	if (mnl_socket_bind(talk->socket, 0, MNL_SOCKET_AUTOPID) < 0) {
		int err = -errno;

		talk_close(talk);
		return err;
	}
	/* Request error messages in text. */
	mnl_socket_setsockopt(talk->socket, NETLINK_EXT_ACK, &one, sizeof(one));
	mnl_socket_setsockopt(talk->socket, NETLINK_CAP_ACK, &one, sizeof(one));
	talk->seq = time(NULL);
	return 0;
}

void talk_close(struct talk *talk)
{
	if (talk->socket)
		mnl_socket_close(talk->socket);
	talk->socket = NULL;
}

/*
 * Keep the kernel's text about a refused request, without the module's prefix. @offset is the
 * number of bytes of the message before its attributes.
 */
static void keep_why(struct talk *talk, const struct nlmsghdr *message, size_t offset)
{
	static const char * const prefixes[] = { "timely: ", "timely_acker: " };
	const struct nlattr *attr;

	if (!(message->nlmsg_flags & NLM_F_ACK_TLVS))
		return;
	mnl_attr_for_each(attr, message, offset) {
		const char *text = mnl_attr_get_payload(attr);
		int bytes = mnl_attr_get_payload_len(attr);

		if (mnl_attr_get_type(attr) != NLMSGERR_ATTR_MSG || bytes < 1)
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
			int length = strlen(prefixes[i]);

			if (bytes > length && memcmp(text, prefixes[i], length) == 0) {
				text += length;
				bytes -= length;
			}
		}
		snprintf(talk->why, sizeof(talk->why), "%.*s", bytes, text);
	}
}

/*
 * Read the NLMSG_ERROR message that ends a reply, and return its error. The message may include a
 * copy of the request before its attributes.
 */
static int end_of_request(struct talk *talk, const struct nlmsghdr *message)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(message);
	size_t offset = sizeof(*error);

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*error))
		return -EBADMSG;
	if (!(message->nlmsg_flags & NLM_F_CAPPED) &&
	    error->msg.nlmsg_len >= sizeof(error->msg))
		offset += MNL_ALIGN(error->msg.nlmsg_len - sizeof(error->msg));
	keep_why(talk, message, offset);
	return error->error;
}

/* Read the message that ends a dump, and return its error. */
static int end_of_dump(struct talk *talk, const struct nlmsghdr *message)
{
	int err = 0;

	if (mnl_nlmsg_get_payload_len(message) >= sizeof(err)) {
		memcpy(&err, mnl_nlmsg_get_payload(message), sizeof(err));
		keep_why(talk, message, sizeof(err));
	}
	return err;
}

/**
 * struct answer - state of a reply
 * @ended: the reply is complete, and @err is known
 * @interrupted: the contents of the dump changed while the kernel wrote it
 * @err: 0 or a negative errno
 */
struct answer {
	bool ended;
	bool interrupted;
	int err;
};

static void handle_message(struct talk *talk, const struct nlmsghdr *message,
			   struct answer *answer, talk_each each, void *data)
{
	/* Skip the rest of the reply to an earlier request, and messages of other senders. */
	if (message->nlmsg_seq != talk->seq ||
	    message->nlmsg_pid != mnl_socket_get_portid(talk->socket))
		return;
	if (message->nlmsg_flags & NLM_F_DUMP_INTR)
		answer->interrupted = true;
	switch (message->nlmsg_type) {
	case NLMSG_ERROR:
		answer->ended = true;
		answer->err = end_of_request(talk, message);
		break;
	case NLMSG_DONE:
		answer->ended = true;
		answer->err = end_of_dump(talk, message);
		break;
	default:
		if (message->nlmsg_type >= NLMSG_MIN_TYPE && each)
			each(message, data);
	}
}

/*
 * Send a request once. Reads the reply to its end even after an error, so that the next request
 * does not find the rest of this reply in the socket.
 */
static int ask_once(struct talk *talk, struct nlmsghdr *request, talk_each each, void *data)
{
	static union {
		char bytes[DATAGRAM_BYTES];
		struct nlmsghdr first;
	} datagram;
	struct answer answer = {};

	request->nlmsg_seq = ++talk->seq;
	if (mnl_socket_sendto(talk->socket, request, request->nlmsg_len) < 0)
		return -errno;
	while (!answer.ended) {
		const struct nlmsghdr *message = &datagram.first;
		ssize_t bytes = mnl_socket_recvfrom(talk->socket, &datagram, sizeof(datagram));
		int left = bytes;

		if (bytes < 0)
			return -errno;
		for (; mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left))
			handle_message(talk, message, &answer, each, data);
	}
	return answer.interrupted && !answer.err ? -EINTR : answer.err;
}

/**
 * talk_ask() - send a request and process the reply
 * @talk: the socket
 * @request: the request; its flags are NLM_F_REQUEST and one of NLM_F_ACK and NLM_F_DUMP, by which
 *	the kernel marks the end of the reply
 * @each: called with NULL when a reply starts, then for each message of the reply. A dump whose
 *	contents changed meanwhile starts again. NULL: messages are ignored
 * @data: argument of @each
 *
 * Return: 0, or a negative errno: talk->why then has the kernel's message, if there is one. -EINTR
 * if the contents of a dump have changed each of ten times.
 */
int talk_ask(struct talk *talk, struct nlmsghdr *request, talk_each each, void *data)
{
	int tries = TRIES;
	int err;

	do {
		talk->why[0] = 0;
		if (each)
			each(NULL, data);
		err = ask_once(talk, request, each, data);
	} while (err == -EINTR && --tries);
	return err;
}

/**
 * talk_dump_route() - ask for all objects of a kind in this network namespace
 * @type: the request's type, RTM_GET*
 * @header_bytes: length of the header that requests of this type have
 * @each: as in talk_ask()
 * @data: argument of @each
 *
 * Return: 0 or a negative errno.
 */
int talk_dump_route(__u16 type, size_t header_bytes, talk_each each, void *data)
{
	char buffer[REQUEST_BYTES] = { 0 };
	struct nlmsghdr *request = mnl_nlmsg_put_header(buffer);
	struct talk talk;
	int err;

	request->nlmsg_type = type;
	request->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	mnl_nlmsg_put_extra_header(request, header_bytes);
	err = talk_open(&talk, NETLINK_ROUTE);
	if (err)
		return err;
	err = talk_ask(&talk, request, each, data);
	talk_close(&talk);
	return err;
}

/* Copy a string attribute, which may be unterminated, and cut it to @size - 1 bytes. */
void attr_text(char *to, size_t size, const struct nlattr *attr)
{
	size_t bytes = strnlen(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));

	if (bytes >= size)
		bytes = size - 1;
	memcpy(to, mnl_attr_get_payload(attr), bytes);
	to[bytes] = 0;
}
