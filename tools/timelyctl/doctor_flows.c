// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of `timelyctl doctor` that look at connections, and at the budgets of flows.
 */
#define _GNU_SOURCE
#include <stddef.h>
#include <string.h>

#include <arpa/inet.h>
#include <linux/timely.h>

#include "doctor.h"

/* A shortest RTT above this, ns, is that of a path across the Internet. */
#define LONG_RTT_NS 1000000

/* What TCP reports before it has measured an RTT, for example after a SYN cookie: 2^32-1 us. */
#define NO_RTT_NS (1000ULL * 0xffffffff)

/* A rate below this share of the link rate is near the minimum rate, which is 1/5000 by default. */
#define LOW_RATE_SHARE 4000

/* Bytes of an IP packet beside TCP's payload and options, for IPv4 and IPv6. */
#define HEADERS_V4 40
#define HEADERS_V6 60

/* ---- budgets ---- */

void check_limits(struct host *host)
{
	for (size_t i = 0; i < host->limits.count; i++) {
		const struct limit *limit = &host->limits.limit[i];
		bool is_near = limit->max && 10 * limit->used >= 9 * limit->max;

		if (is_near)
			found_warn(host, "%llu of %llu %s are in use, and %llu were refused",
				   (unsigned long long)limit->used, (unsigned long long)limit->max,
				   plain(limit->name), (unsigned long long)limit->refused);
		else if (limit->refused)
			found_info(host, "%llu %s were refused earlier, because the limit was reached; now %llu of %llu are in use",
				   (unsigned long long)limit->refused, plain(limit->name),
				   (unsigned long long)limit->used, (unsigned long long)limit->max);
		if (is_near || limit->refused)
			remedy_info(host, "to raise the limit, on the host: echo NUMBER >/sys/module/timely/parameters/max_%s",
				    plain(limit->name));
	}
}

/* ---- connections ---- */

/* The remote address and port of a connection, in @text. */
static const char *peer_text(char *text, size_t size, const struct tcp_socket *socket)
{
	return end_text(text, size, socket->key.daddr, socket->key.bytes,
			ntohs(socket->key.dport));
}

/* Count the connections that use timely and for which @is returns true; @first is one of them. */
static size_t count_connections(const struct host *host,
				bool (*is)(const struct host *host,
					   const struct tcp_socket *socket),
				const struct tcp_socket **first)
{
	size_t count = 0;

	for (size_t i = 0; i < host->sockets.count; i++) {
		const struct tcp_socket *socket = &host->sockets.socket[i];

		if (!socket->timely || !is(host, socket))
			continue;
		if (!count)
			*first = socket;
		count++;
	}
	return count;
}

/*
 * The base RTT in use is the shortest RTT of the last 134 to 268 ms, and timely drains its queues
 * every 67 ms. If the base RTT is far above the shortest RTT of the last minutes, other traffic
 * keeps the queue filled, or the probes of the hosts do not coincide. A base RTT that is set says
 * nothing, and rules without a target delay keep a queue themselves.
 */
static bool is_in_filled_queue(const struct host *host, const struct tcp_socket *socket)
{
	const struct timely_connection *timely = socket->timely;

	return host->auto_base_rtt && timely->target_ns &&
	       timely->state & TIMELY_STATE_SENDING && !(timely->state & TIMELY_STATE_APART) &&
	       timely->base_rtt_ns > socket->min_rtt_ns + 2ULL * timely->target_ns;
}

void check_filled_queue(struct host *host)
{
	const struct tcp_socket *first;
	size_t count = count_connections(host, is_in_filled_queue, &first);
	char peer[64], shortest[32], base[32];

	if (!count)
		return;
	found_warn(host, "the queue on the path of %zu connections, such as the one to %s, is never empty: the base RTT is %s now, and the shortest RTT of the last minutes %s. Other traffic fills the queue, probably with a loss-based congestion control",
		   count, peer_text(peer, sizeof(peer), first),
		   time_text(base, sizeof(base), first->timely->base_rtt_ns),
		   time_text(shortest, sizeof(shortest), first->min_rtt_ns));
	remedy_info(host, "use timely on all hosts that share the queue, or give the other traffic another queue (DSCP) in the switches");
}

/* Whether the rate is the minimum rate, or changes just above the minimum rate. */
static bool is_at_minimum(const struct host *host, const struct tcp_socket *socket)
{
	const struct timely_connection *timely = socket->timely;

	return timely->state & TIMELY_STATE_SENDING && !is_in_filled_queue(host, socket) &&
	       (timely->state & TIMELY_STATE_MINIMUM ||
		timely->rate_Bps / 125 < timely->link_kbps / LOW_RATE_SHARE);
}

/*
 * Why the rate of a connection is low: the most frequent cause of the last second to reduce the
 * rate at once. The connection counts the causes of its whole life.
 */
static const char *minimum_reason(struct host *host, const struct timely_connection *timely)
{
	static const char * const reasons[] = {
		[TIMELY_CUT_LOSS] = "packets were lost",
		[TIMELY_CUT_TIMEOUT] = "the retransmission timer expired",
		[TIMELY_CUT_ECN] = "a switch marked packets (ECN)",
		[TIMELY_CUT_QUEUE] = "RTTs were above t_high_ns",
	};
	const struct timely_connection *now = connection_again(host, timely);
	const char *reason = "queueing delays are above the target delay";
	__u32 most = 0;

	for (int i = 0; now && i < TIMELY_CUTS; i++) {
		__u32 cuts = now->cuts[i] - timely->cuts[i];

		/* Fewer than before: another connection has the same addresses now. */
		if (now->cuts[i] < timely->cuts[i] || cuts <= most)
			continue;
		most = cuts;
		reason = reasons[i];
	}
	return reason;
}

void check_minimum_rate(struct host *host)
{
	const struct tcp_socket *first;
	size_t count = count_connections(host, is_at_minimum, &first);
	char peer[64], rtt[32], base[32];

	if (!count)
		return;
	found_warn(host, "%zu connections send at the minimum rate or little above, such as the one to %s, because %s; its RTT is %s, its base RTT %s",
		   count, peer_text(peer, sizeof(peer), first), minimum_reason(host, first->timely),
		   time_text(rtt, sizeof(rtt), first->timely->rtt_ns),
		   time_text(base, sizeof(base), first->timely->base_rtt_ns));
	remedy_info(host, "timelyctl flows sort rate lists them; look for other traffic, lost packets or slow hosts on the path");
}

static bool is_apart(const struct host *host, const struct tcp_socket *socket)
{
	(void)host;
	return socket->timely->state & TIMELY_STATE_APART;
}

void check_probes_apart(struct host *host)
{
	const struct tcp_socket *first;
	size_t count = count_connections(host, is_apart, &first);
	char peer[64];

	if (!count)
		return;
	found_warn(host, "RTTs of %zu connections, such as the one to %s, do not fall during base-RTT probes: the real-time clocks of the hosts that share the path differ",
		   count, peer_text(peer, sizeof(peer), first));
	remedy_info(host, "synchronise the clocks of all hosts to 0.5 ms (chronyc tracking), or set the base RTT: sysctl -w net.ipv4.timely.min_rtt_ns=NS");
}

void check_probes_unsynced(struct host *host)
{
	__u64 unsynced = counter_value(&host->rtts, "probes_unsynced");

	__u64 now;

	if (!unsynced)
		return;
	now = rtts_growth(host, "probes_unsynced");
	found(host, now ? SEVERITY_WARNING : SEVERITY_NOTE,
	      "%llu base-RTT probes started by the real-time clock, as the common time of timely-clockd was too old or not exact to 0.25 ms; %llu by the common time%s",
	      (unsigned long long)unsynced,
	      (unsigned long long)counter_value(&host->rtts, "probes_common"),
	      now ? "" : EARLIER);
	remedy_info(host, "systemctl status timely-clockd; timelyctl clock shows whether the peers are good");
}

static bool is_long(const struct host *host, const struct tcp_socket *socket)
{
	(void)host;
	return socket->min_rtt_ns > LONG_RTT_NS && socket->min_rtt_ns != NO_RTT_NS;
}

void check_long_path(struct host *host)
{
	const struct tcp_socket *first;
	size_t count = count_connections(host, is_long, &first);
	char peer[64], shortest[32];

	if (!count)
		return;
	found_warn(host, "%zu connections use timely on long paths, such as the one to %s, whose shortest RTT is %s; timely is for paths within a datacentre",
		   count, peer_text(peer, sizeof(peer), first),
		   time_text(shortest, sizeof(shortest), first->min_rtt_ns));
	remedy_info(host, "for destinations outside the datacentre: ip route replace PREFIX ... congctl cubic");
}

/* ---- all TCP connections ---- */

/* Whether a busy connection uses neither timely nor DCTCP, which keeps queues short, too. */
static bool fills_queues(const struct tcp_socket *socket)
{
	return socket->busy && !is_timely(socket->control) &&
	       strcmp(socket->control, "dctcp") != 0;
}

/* Packets of a connection of the host with itself reach no queue. */
static bool is_inside(const struct socket_key *key)
{
	return memcmp(key->saddr, key->daddr, sizeof(key->saddr)) == 0;
}

/* Looks at the connections to one other host after the other. */
void check_other_traffic(struct host *host)
{
	const struct tcp_socket *timely = NULL, *other = NULL;
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < host->sockets.count && !(timely && other); i++) {
		const struct tcp_socket *socket = &host->sockets.socket[i];

		if (i && memcmp(&socket->key, &socket[-1].key,
				offsetof(struct socket_key, dport)) != 0) {
			timely = NULL;
			other = NULL;
		}
		if (is_inside(&socket->key))
			continue;
		if (socket->busy && is_timely(socket->control))
			timely = socket;
		else if (fills_queues(socket))
			other = socket;
	}
	if (!timely || !other)
		return;
	found_warn(host, "this host sends to %s with %s as well as with timely: the queue of the former slows timely down",
		   address_text(text, other->key.daddr, other->key.bytes), plain(other->control));
	remedy_info(host, "ss -ti dst %s shows these connections; let all of them use timely, or none",
		    text);
}

void check_mtu(struct host *host)
{
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < host->sockets.count; i++) {
		const struct tcp_socket *socket = &host->sockets.socket[i];
		__u32 packet = socket->mss + (socket->key.bytes == 4 ? HEADERS_V4 : HEADERS_V6);

		if (!is_timely(socket->control) || !socket->mss || socket->narrow ||
		    packet >= socket->mtu)
			continue;
		found_warn(host, "packets to %s have at most %u bytes, but the MTU of this host's device is %u: a device on the path or the other host has a smaller MTU",
			   address_text(text, socket->key.daddr, socket->key.bytes), packet,
			   socket->mtu);
		remedy_info(host, "set the same MTU on all hosts and switches: ip link set IFACE mtu BYTES");
		return;
	}
}

void check_ndp_trim(struct host *host)
{
	if (!host->ndp.graceful)
		return;
	found_warn(host, "%llu of %llu NDP connections have lost packets, and no switch has trimmed any of their packets: timeouts and gaps find the losses",
		   (unsigned long long)host->ndp.graceful,
		   (unsigned long long)host->ndp.connections);
	remedy_info(host, "let the switches on the path trim packets, such as tc-trim(8), with the DSCP values of net.ndp.data_dscp and control_dscp; or use TCP on this path");
}
