// SPDX-License-Identifier: GPL-2.0
/*
 * A netlink request and its answer, with what the kernel says when it refuses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <linux/netlink.h>

#include "timelyctl.h"

/* What the kernel sends in one datagram, at most. */
#define DATAGRAM_BYTES 65536

/* Times a dump is asked for again when devices came or went meanwhile. */
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
	/* Reasons in words. */
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

/* The text behind a refusal; `offset` bytes of the message come before it. */
static void note_why(struct talk *talk, const struct nlmsghdr *message, size_t offset)
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

/* The end of a request that is acknowledged; the request itself may come along. */
static int end_of_request(struct talk *talk, const struct nlmsghdr *message)
{
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(message);
	size_t offset = sizeof(*error);

	if (mnl_nlmsg_get_payload_len(message) < sizeof(*error))
		return -EBADMSG;
	if (!(message->nlmsg_flags & NLM_F_CAPPED) &&
	    error->msg.nlmsg_len >= sizeof(error->msg))
		offset += MNL_ALIGN(error->msg.nlmsg_len - sizeof(error->msg));
	note_why(talk, message, offset);
	return error->error;
}

static int end_of_dump(struct talk *talk, const struct nlmsghdr *message)
{
	int err = 0;

	if (mnl_nlmsg_get_payload_len(message) >= sizeof(err)) {
		memcpy(&err, mnl_nlmsg_get_payload(message), sizeof(err));
		note_why(talk, message, sizeof(err));
	}
	return err;
}

/**
 * struct answer - what has been seen of an answer
 * @ended: all of it, and with @err
 * @err: 0 or a negative errno
 * @interrupted: what a dump shows has changed meanwhile
 */
struct answer {
	bool ended;
	bool interrupted;
	int err;
};

static void hear(struct talk *talk, const struct nlmsghdr *message, struct answer *answer,
		 talk_each each, void *data)
{
	/* What is left of an answer that was given up, and what others send. */
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

/* To its end even when it is of no use any more: the next one waits for that. */
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
			hear(talk, message, &answer, each, data);
	}
	return answer.interrupted && !answer.err ? -EINTR : answer.err;
}

/**
 * talk_ask() - send a request and look at the answer
 * @talk: the socket
 * @request: NLM_F_REQUEST, and NLM_F_ACK or NLM_F_DUMP: that ends the answer
 * @each: called with NULL when an answer begins, which happens again when a dump
 *	was interrupted; then for each message of it
 * @data: its argument
 *
 * Return: 0, or a negative errno, and then talk->why may say more.
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

/* A string that may lack its end, or be too long. */
void attr_text(char *to, size_t size, const struct nlattr *attr)
{
	size_t bytes = strnlen(mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));

	if (bytes >= size)
		bytes = size - 1;
	memcpy(to, mnl_attr_get_payload(attr), bytes);
	to[bytes] = 0;
}
