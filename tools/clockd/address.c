// SPDX-License-Identifier: GPL-2.0
/*
 * IP addresses: text, sockets, and the addresses of this host.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ifaddrs.h>
#include <string.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "clockd.h"

static const uint8_t ipv4_prefix[12] = { [10] = 0xff, [11] = 0xff };

/* Parse an IPv4 or IPv6 address. */
bool address_parse(const char *text, struct address *address)
{
	memcpy(address->bytes, ipv4_prefix, sizeof(ipv4_prefix));
	return inet_pton(AF_INET, text, address->bytes + 12) == 1 ||
	       inet_pton(AF_INET6, text, address->bytes) == 1;
}

bool address_is_ipv4(const struct address *address)
{
	return memcmp(address->bytes, ipv4_prefix, sizeof(ipv4_prefix)) == 0;
}

int address_family(const struct address *address)
{
	return address_is_ipv4(address) ? AF_INET : AF_INET6;
}

/* Whether the address names one host, and no interface has to be named with it. */
bool address_of_one_host(const struct address *address)
{
	static const struct address unspecified;
	const uint8_t *bytes = address->bytes;

	if (address_is_ipv4(address))
		return bytes[12] && bytes[12] < 224;
	return memcmp(address, &unspecified, sizeof(unspecified)) != 0 && bytes[0] != 0xff &&
	       !(bytes[0] == 0xfe && (bytes[1] & 0xc0) == 0x80);
}

bool address_is_loopback(const struct address *address)
{
	static const struct address loopback = { { [15] = 1 } };

	return address_is_ipv4(address) ? address->bytes[12] == 127 :
	       memcmp(address, &loopback, sizeof(loopback)) == 0;
}

/* Write an address to ADDRESS_TEXT bytes. */
const char *address_text(char *text, const struct address *address)
{
	if (address_is_ipv4(address))
		inet_ntop(AF_INET, address->bytes + 12, text, ADDRESS_TEXT);
	else
		inet_ntop(AF_INET6, address->bytes, text, ADDRESS_TEXT);
	return text;
}

void address_from(struct address *address, const struct sockaddr_storage *from)
{
	if (from->ss_family == AF_INET) {
		memcpy(address->bytes, ipv4_prefix, sizeof(ipv4_prefix));
		memcpy(address->bytes + 12, &((const struct sockaddr_in *)from)->sin_addr, 4);
	} else {
		memcpy(address->bytes, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
	}
}

socklen_t address_to(const struct address *address, uint16_t port, struct sockaddr_storage *to)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)to;
	struct sockaddr_in *four = (struct sockaddr_in *)to;

	memset(to, 0, sizeof(*to));
	if (address_is_ipv4(address)) {
		four->sin_family = AF_INET;
		four->sin_port = htons(port);
		memcpy(&four->sin_addr, address->bytes + 12, 4);
		return sizeof(*four);
	}
	six->sin6_family = AF_INET6;
	six->sin6_port = htons(port);
	memcpy(&six->sin6_addr, address->bytes, 16);
	return sizeof(*six);
}

/* Whether a list entry of getifaddrs() has an IP address. */
static bool has_address(const struct ifaddrs *each, struct address *address)
{
	if (!each->ifa_addr || (each->ifa_addr->sa_family != AF_INET &&
				each->ifa_addr->sa_family != AF_INET6))
		return false;
	address_from(address, (const struct sockaddr_storage *)each->ifa_addr);
	return true;
}

/* The name of the device with this address, in IFNAMSIZ bytes. Returns 0 or a negative errno. */
int address_interface(const struct address *address, char *name)
{
	int err = -EADDRNOTAVAIL;
	struct ifaddrs *list, *each;
	struct address own;

	if (getifaddrs(&list))
		return -errno;
	for (each = list; each && err; each = each->ifa_next) {
		if (!has_address(each, &own) || memcmp(&own, address, sizeof(own)) != 0)
			continue;
		memccpy(name, each->ifa_name, 0, IFNAMSIZ - 1);
		name[IFNAMSIZ - 1] = 0;
		/* An IPv4 address may have a label, such as eth0:1, instead of the name. */
		name[strcspn(name, ":")] = 0;
		err = 0;
	}
	freeifaddrs(list);
	return err;
}

bool address_of_host(const struct members *members, struct address *own)
{
	const struct address *best = NULL;
	struct ifaddrs *list, *each;
	struct address address;

	if (getifaddrs(&list))
		return false;
	for (each = list; each; each = each->ifa_next) {
		const struct address *member = has_address(each, &address) ?
					       members_find(members, &address) : NULL;

		if (member && (!best || member < best))
			best = member;
	}
	freeifaddrs(list);
	if (best)
		*own = *best;
	return best;
}
