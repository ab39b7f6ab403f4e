// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of `timelyctl doctor` that follow On-Ramp's chain: qdisc, key, UDP port, OR-ACKs that
 * arrive, OR-ACKs that are accepted, and at the receiver rule, key and clock.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <linux/timely.h>

#include "doctor.h"

/* Packets below this mean length, bytes, are mostly pure ACKs, which no OR-ACK answers. */
#define SHORT_PACKETS 500

/* With fewer sent packets, or fewer OR-ACKs or signals than this, the checks say nothing. */
#define FEW_PACKETS 1000
#define FEW_SIGNALS 100

/* ---- the sender ---- */

/* A qdisc with On-Ramp that needs OR-ACKs, because its delays are not RTTs; NULL for none. */
static const struct qdisc *find_sender(const struct host *host)
{
	for (size_t i = 0; i < host->qdiscs.count; i++) {
		const struct qdisc *qdisc = &host->qdiscs.qdisc[i];

		if (qdisc->onramp_ns && qdisc->owd != TIMELY_OWD_RTT)
			return qdisc;
	}
	return NULL;
}

/* Bytes, packets, signals and pauses of all qdiscs with On-Ramp. */
static struct qdisc sum_onramp(const struct host *host)
{
	struct qdisc sum = {};

	for (size_t i = 0; i < host->qdiscs.count; i++) {
		const struct qdisc *qdisc = &host->qdiscs.qdisc[i];

		if (!qdisc->onramp_ns)
			continue;
		sum.bytes += qdisc->bytes;
		sum.packets += qdisc->packets;
		sum.stats.onramp_signals += qdisc->stats.onramp_signals;
		sum.stats.onramp_pauses += qdisc->stats.onramp_pauses;
	}
	return sum;
}

static __u64 onramp_counter(const struct host *host, const char *name)
{
	return counter_value(&host->onramp.counters, name);
}

void check_onramp_key(struct host *host)
{
	if (!find_sender(host) || host->onramp.key_count || host->onramp.unauthenticated)
		return;
	found_err(host, "a qdisc has On-Ramp, but there is no key, so no OR-ACK is accepted");
	remedy_info(host, "timelyctl key add NUMBER FILE, with the same key on all hosts");
}

void check_onramp_unauthenticated(struct host *host)
{
	if (!host->onramp.unauthenticated)
		return;
	found_warn(host, "OR-ACKs without a key are accepted: whoever can send packets to this host can pause its flows");
	remedy_info(host, "timelyctl key add NUMBER FILE on all hosts; timelyctl key use NUMBER; timelyctl onramp unauthenticated off");
}

/* Whether a line of /proc/net/udp or udp6 is about a socket with this local port. */
static bool is_bound(const char *line, unsigned int port)
{
	unsigned int bound;

	return sscanf(line, " %*u: %*32[0-9A-Fa-f]:%4x ", &bound) == 1 && bound == port;
}

static bool is_port_taken(const char *path, unsigned int port)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	bool taken = false;
	char line[512];

	if (fd >= 0 && !file)
		out_of_memory();
	while (file && !taken && fgets(line, sizeof(line), file))
		taken = is_bound(line, port);
	if (file)
		fclose(file);
	return taken;
}

/* The first qdisc with On-Ramp binds the port; without such a qdisc another program has it. */
void check_onramp_port(struct host *host)
{
	unsigned int port = host->onramp.port;

	if (!port || !is_loaded(host, MODULE_SCH) || find_sender(host) ||
	    (!is_port_taken("/proc/net/udp", port) && !is_port_taken("/proc/net/udp6", port)))
		return;
	found_warn(host, "another program uses UDP port %u, so a qdisc with On-Ramp would be refused",
		   port);
	remedy_info(host, "ss -ulpn 'sport = :%u' shows the program; or load module timely with another orack_port on all hosts",
		    port);
}

/* timely-clockd gives the qdisc the offsets of its peers' clocks, not those of other hosts. */
void check_onramp_clock(struct host *host)
{
	for (size_t i = 0; i < host->qdiscs.count; i++) {
		const struct qdisc *qdisc = &host->qdiscs.qdisc[i];

		if (!host->unsynchronised || !qdisc->onramp_ns ||
		    qdisc->owd != TIMELY_OWD_ABSOLUTE)
			continue;
		if (has_common_time(host))
			found_info(host, "a qdisc has owd absolute, but no program keeps the real-time clock synchronised: delays to hosts that are no peers of timely-clockd are wrong");
		else
			found_err(host, "a qdisc has owd absolute, but no program keeps the real-time clock synchronised");
		remedy_info(host, "use owd relative, or synchronise the clocks of all hosts to some microseconds (ptp4l and phc2sys)");
		return;
	}
}

void check_onramp_silent(struct host *host)
{
	const struct qdisc sum = sum_onramp(host);

	if (sum.packets < FEW_PACKETS || sum.bytes / sum.packets < SHORT_PACKETS)
		return;
	if (find_sender(host) && !onramp_counter(host, "received")) {
		found_err(host, "%llu packets were sent with On-Ramp, and no OR-ACK has arrived",
			  (unsigned long long)sum.packets);
		remedy_info(host, "on the receivers: modprobe timely_acker; timelyctl acker add PREFIX; timelyctl key use NUMBER; on firewalls pass UDP port %u",
			    host->onramp.port);
	} else if (!find_sender(host) && !onramp_counter(host, "rtts")) {
		found_err(host, "%llu packets were sent with On-Ramp (owd rtt), and no RTT was measured: only TCP connections have RTTs",
			  (unsigned long long)sum.packets);
		remedy_info(host, "for UDP use owd relative, with timely_acker on the receivers");
	}
}

/*
 * Why OR-ACKs had no effect. A reason for more than a hundredth of the OR-ACKs is a warning, for
 * more than half of them an error. Reasons of normal operation (@normal) are only an error.
 */
static const struct {
	const char *counter;
	bool normal;
	const char *what;
	const char *remedy;
} refusals[] = {
	{ "unknown_key", false, "are signed with a key that this host does not have",
	  "give all hosts the same keys under the same numbers: timelyctl key list" },
	{ "bad_tag", false, "are signed with another key under the same number, or are forged",
	  "give all hosts the same keys under the same numbers: timelyctl key add" },
	{ "malformed", false, "have a wrong length or format",
	  "use the same version of the modules on all hosts" },
	{ "flooded", false, "were dropped because too many were refused before",
	  "timelyctl onramp shows why OR-ACKs are refused" },
	{ "no_flow", false, "match no flow that OR-ACKs can pause",
	  "set up On-Ramp on all devices that send data, or limit the rules of the receivers" },
	{ "bad_time", false, "report impossible times",
	  "find out which program steps the clocks of the receivers; or use owd relative" },
	{ "out_of_step", false, "report delays that contradict the RTTs",
	  "synchronise the clocks of all hosts; or use owd relative" },
	{ "no_offset", false, "gave relative delays: offsets of clocks are old or inexact",
	  "look whether the clock daemon runs on all hosts; timelyctl onramp peers" },
	{ "not_in_flight", true, "match no packet in flight",
	  "find out why OR-ACKs arrive late: firewalls, busy hosts" },
	{ "old", true, "were replayed or reordered",
	  "find out what repeats or reorders packets on the path" },
};

/* How bad it is that @count of @received OR-ACKs were refused; a note: not bad. */
static enum severity refusal_severity(__u64 count, __u64 received, bool is_normal)
{
	if (count > received / 2)
		return SEVERITY_ERROR;
	return is_normal || count <= received / 100 ? SEVERITY_NOTE : SEVERITY_WARNING;
}

void check_onramp_refused(struct host *host)
{
	__u64 received = onramp_counter(host, "received");

	for (size_t i = 0; i < ARRAY_SIZE(refusals) && received >= FEW_SIGNALS; i++) {
		const char *name = refusals[i].counter;
		__u64 count = onramp_counter(host, name);
		enum severity all = refusal_severity(count, received, refusals[i].normal), now;

		if (all == SEVERITY_NOTE)
			continue;
		now = refusal_severity(onramp_growth(host, name), onramp_growth(host, "received"),
				       refusals[i].normal);
		if (now < all)
			now = all; /* a second has too few OR-ACKs for a worse verdict */
		found(host, now, "%llu of %llu OR-ACKs %s (%s)%s", (unsigned long long)count,
		      (unsigned long long)received, refusals[i].what, name,
		      now == SEVERITY_NOTE ? EARLIER : "");
		remedy_info(host, "%s", refusals[i].remedy);
	}
}

void check_onramp_threshold(struct host *host)
{
	const struct qdisc sum = sum_onramp(host);
	unsigned long long signals = sum.stats.onramp_signals, pauses = sum.stats.onramp_pauses;

	if (signals < FEW_SIGNALS || pauses <= signals / 2)
		return;
	found_warn(host, "%llu of %llu signals of On-Ramp have paused a flow: the threshold is too low, or the path is always overloaded",
		   pauses, signals);
	remedy_info(host, "choose a threshold above nearly all delays that tc -s qdisc shows (onramp delays) while the network is idle");
}

void check_onramp_split(struct host *host)
{
	for (size_t i = 0; i < host->qdiscs.count; i++) {
		const struct qdisc *qdisc = &host->qdiscs.qdisc[i];

		if (!qdisc->onramp_ns || qdisc->split)
			continue;
		found_info(host, "a qdisc has On-Ramp without split, so packets of 64 KB make bursts that On-Ramp cannot pause");
		remedy_info(host, "tc qdisc change ... timely split 16k");
		return;
	}
}

/* ---- the queues of a device ---- */

static bool is_same_onramp(const struct qdisc *one, const struct qdisc *other)
{
	return one->onramp_ns == other->onramp_ns && (!one->onramp_ns || one->owd == other->owd);
}

void check_onramp_queues(struct host *host, const struct device *device)
{
	const struct qdisc *first = NULL;

	for (size_t i = 0; i < host->qdiscs.count; i++) {
		const struct qdisc *qdisc = &host->qdiscs.qdisc[i];

		if (qdisc->ifindex != device->link->ifindex || strcmp(qdisc->kind, "timely") != 0)
			continue;
		if (!first)
			first = qdisc;
		if (is_same_onramp(first, qdisc))
			continue;
		found_warn(host, "the qdiscs of this device have different thresholds or kinds of delay (owd), or only some have On-Ramp");
		remedy_info(host, "tc qdisc show dev %s shows the options; give each queue the same onramp and owd with tc qdisc change",
			    plain(device->link->name));
		return;
	}
}

/* ---- the receiver ---- */

/*
 * Whether this network namespace seems to be meant to send OR-ACKs: it has a key for that, and no
 * qdisc with On-Ramp, as senders have, which may have a key too.
 */
static bool is_receiver(const struct host *host)
{
	for (size_t i = 0; i < host->qdiscs.count; i++)
		if (host->qdiscs.qdisc[i].onramp_ns)
			return false;
	return host->onramp.used;
}

void check_acker_module(struct host *host)
{
	if (!is_receiver(host) || is_loaded(host, MODULE_ACKER))
		return;
	found_warn(host, "key %u signs OR-ACKs, but no module sends any: timely_acker is not loaded",
		   host->onramp.used);
	remedy_info(host, "modprobe timely_acker; timelyctl acker add PREFIX");
}

void check_acker_rule(struct host *host)
{
	if (!is_receiver(host) || !is_loaded(host, MODULE_ACKER) || host->acker.count)
		return;
	found_warn(host, "key %u signs OR-ACKs, but no data is answered: timely_acker has no rule",
		   host->onramp.used);
	remedy_info(host, "timelyctl acker add PREFIX, with the addresses of the senders");
}

void check_acker_key(struct host *host)
{
	if (!host->acker.count || host->onramp.used || host->onramp.unauthenticated)
		return;
	found_err(host, "timely_acker has rules, but no key is used, so no OR-ACKs are sent");
	remedy_info(host, "timelyctl key add NUMBER FILE; timelyctl key use NUMBER");
}

void check_acker_clock(struct host *host)
{
	if (!host->acker.offset_ns && !host->acker.drift_ppb)
		return;
	found_err(host, "OR-ACKs report wrong times: timely_acker's test clock is set");
	remedy_info(host, "timelyctl acker set test-clock-offset 0 test-clock-drift 0");
}

/* Whether the counter @name, OR-ACKs that were not sent, is too small to matter. */
static bool is_rare(const struct host *host, const char *name)
{
	__u64 sent = onramp_counter(host, "sent"), count = onramp_counter(host, name);

	return count + sent < FEW_SIGNALS || count <= sent / 100;
}

/* A warning if such OR-ACKs were frequent in the last second, too. */
static enum severity unsent_severity(struct host *host, const char *name)
{
	return onramp_growth(host, name) > onramp_growth(host, "sent") / 100 ? SEVERITY_WARNING :
									      SEVERITY_NOTE;
}

void check_acker_errors(struct host *host)
{
	enum severity severity;

	if (!host->acker.count || !host->onramp.used || is_rare(host, "send_errors"))
		return;
	severity = unsent_severity(host, "send_errors");
	found(host, severity, "%llu OR-ACKs could not be sent, %llu were sent%s",
	      (unsigned long long)onramp_counter(host, "send_errors"),
	      (unsigned long long)onramp_counter(host, "sent"),
	      severity == SEVERITY_NOTE ? EARLIER : "");
	remedy_info(host, "ip route get ADDRESS shows the route to a sender; look for a lack of memory in the kernel's log");
}

void check_acker_limited(struct host *host)
{
	enum severity severity;

	if (is_rare(host, "send_limited"))
		return;
	severity = unsent_severity(host, "send_limited");
	found(host, severity,
	      "%llu OR-ACKs were not sent because of the rate limit, %llu were sent; the limit is %u per second to each peer%s",
	      (unsigned long long)onramp_counter(host, "send_limited"),
	      (unsigned long long)onramp_counter(host, "sent"), host->acker.rate,
	      severity == SEVERITY_NOTE ? EARLIER : "");
	remedy_info(host, "timelyctl acker set rate NUMBER, or answer less data: timelyctl acker set every BYTES");
}
