// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of `timelyctl doctor` that look at the host: modules, kernel, sysctls, routes and clock.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include <linux/timely_version.h>

#include "doctor.h"

/* With fewer ACKs than this, the share of ACKs that gave no RTT says nothing. */
#define FEW_ACKS 1000

/* ---- modules ---- */

/*
 * Whether the kernel loads signed modules only, and by which file that is known; NULL if it loads
 * others too.
 */
static const char *signed_only(void)
{
	static const char * const enforce = "/sys/module/module/parameters/sig_enforce";
	static const char * const lockdown = "/sys/kernel/security/lockdown";
	char text[64];

	if (read_line(enforce, text, sizeof(text)) && text[0] == 'Y')
		return enforce;
	if (read_line(lockdown, text, sizeof(text)) && strchr(text, '[') &&
	    !strstr(text, "[none]"))
		return lockdown;
	return NULL;
}

static bool has_module(const struct host *host)
{
	/* Module timely alone does nothing. */
	for (int i = 0; i < MODULES; i++)
		if (i != MODULE_TIMELY && is_loaded(host, i))
			return true;
	return false;
}

void check_modules_loaded(struct host *host)
{
	if (has_module(host) || signed_only())
		return;
	found_err(host, "none of the modules tcp_timely, sch_timely, timely_acker, sch_trim and ndp is loaded");
	remedy_info(host, "modprobe tcp_timely; modprobe sch_timely");
}

void check_module_signature(struct host *host)
{
	const char *file = signed_only();

	if (has_module(host) || !file)
		return;
	found_err(host, "no module is loaded, and the kernel loads signed modules only, see %s",
		  file);
	remedy_info(host, "sign the modules with a key that the kernel trusts (mokutil --import), then modprobe tcp_timely");
}

void check_module_version(struct host *host)
{
	for (int i = 0; i < MODULES; i++) {
		if (!is_loaded(host, i) || strcmp(host->versions[i], TIMELY_VERSION) == 0)
			continue;
		found_warn(host, "module %s has version %s, but timelyctl has version %s",
			   module_names[i], host->versions[i], TIMELY_VERSION);
		remedy_info(host, "install modules and timelyctl of the same version; then timely-switch reload, or reboot");
		return;
	}
}

/* ---- the kernel ---- */

void check_kernel_version(struct host *host)
{
	unsigned int major, minor;
	char release[128];

	if (!read_line("/proc/sys/kernel/osrelease", release, sizeof(release)) ||
	    sscanf(release, "%u.%u", &major, &minor) != 2)
		return;
	if ((major == 6 && (minor == 1 || minor == 12)) || (major == 7 && minor == 3))
		return;
	if (major < 6 || (major == 6 && minor < 1)) {
		found_err(host, "kernels before 6.1 are not supported, and this kernel is %s",
			  release);
		remedy_info(host, "use kernel 6.1, 6.12 or 7.3");
		return;
	}
	found_info(host, "the modules were tested with the kernels 6.1, 6.12 and 7.3, but this kernel is %s",
		   release);
	remedy_info(host, "test your load before you rely on the modules, or use one of these kernels");
}

/* Taints after which the kernel may malfunction. The taint by out-of-tree modules is harmless. */
static const struct {
	unsigned int bit;
	const char *what;
} taints[] = {
	{ 1, "a module was loaded by force" },
	{ 3, "a module was unloaded by force" },
	{ 4, "a machine check (hardware error)" },
	{ 5, "a bad page" },
	{ 7, "an oops" },
	{ 9, "a kernel warning" },
	{ 14, "a CPU that hung (soft lockup)" },
};

void check_kernel_taint(struct host *host)
{
	__s64 taint;

	if (!read_number("/proc/sys/kernel/tainted", &taint))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(taints); i++) {
		if (!(taint & 1LL << taints[i].bit))
			continue;
		found_warn(host, "since it booted, the kernel has recorded %s (/proc/sys/kernel/tainted is %lld)",
			   taints[i].what, (long long)taint);
		remedy_info(host, "look for the cause in the kernel's log (dmesg), and reboot");
		return;
	}
}

/* ---- use of timely ---- */

void check_unused(struct host *host)
{
	if (!is_loaded(host, MODULE_TCP) || is_used(host))
		return;
	found_warn(host, "nothing uses tcp_timely: net.ipv4.tcp_congestion_control is %s, no route has congctl timely, no connection uses it",
		   host->control);
	remedy_info(host, "sysctl -w net.ipv4.tcp_congestion_control=timely, or ip route replace ... congctl timely");
}

/* Whether connections by @route do not use timely, although those by the larger @whole do. */
static bool is_bypass(const struct host *host, const struct control_route *route,
		      const struct control_route *whole)
{
	const char *control = route->control[0] ? route->control : host->control;

	return !is_timely(control) && is_timely(whole->control) &&
	       whole->prefix.length < route->prefix.length &&
	       prefix_contains(&whole->prefix, route->prefix.address, route->prefix.bytes);
}

/* A default route by another congestion control is what the manual advises for the Internet. */
static bool is_override(const struct host *host, const struct control_route *route)
{
	return is_timely(host->control) && route->control[0] && !is_timely(route->control) &&
	       route->prefix.length;
}

static const struct control_route *find_override(const struct host *host)
{
	for (size_t i = 0; i < host->routes.count; i++)
		if (is_override(host, &host->routes.route[i]))
			return &host->routes.route[i];
	return NULL;
}

/* Find a route by which connections bypass timely; *whole is the larger route. */
static const struct control_route *find_bypass(const struct host *host,
					       const struct control_route **whole)
{
	const struct routes *routes = &host->routes;

	for (size_t w = 0; w < routes->count; w++) {
		*whole = &routes->route[w];
		for (size_t i = 0; is_timely((*whole)->control) && i < routes->count; i++)
			if (is_bypass(host, &routes->route[i], *whole))
				return &routes->route[i];
	}
	return NULL;
}

void check_route_control(struct host *host)
{
	const struct control_route *route = find_override(host), *whole;
	char part[PREFIX_TEXT], larger[PREFIX_TEXT];

	if (route) {
		found_info(host, "timely is the default, but the route of %s has congctl %s",
			   prefix_text(part, &route->prefix), plain(route->control));
		remedy_info(host, "if connections to %s shall use timely: replace the route by one without congctl (ip route replace)",
			    part);
		return;
	}
	route = find_bypass(host, &whole);
	if (!route)
		return;
	found_info(host, "the route of %s has congctl timely, but connections to %s go by a route of their own, which has not",
		   prefix_text(larger, &whole->prefix), prefix_text(part, &route->prefix));
	remedy_info(host, "if connections to %s shall use timely: replace its route by one with congctl timely (ip route replace)",
		    part);
}

/* The list is that of the whole host, and the default congestion control is always in it. */
void check_allowed_control(struct host *host)
{
	char list[512];

	/* Connections by a route with congctl timely need no permission. */
	if (!is_loaded(host, MODULE_TCP) || host->routes.timely ||
	    !read_line("/proc/sys/net/ipv4/tcp_allowed_congestion_control", list, sizeof(list)))
		return;
	if (has_word(list, "timely"))
		return;
	found_info(host, "programs without privilege that choose timely for their sockets (TCP_CONGESTION) are refused: net.ipv4.tcp_allowed_congestion_control is \"%s\"",
		   plain(list));
	remedy_info(host, "if programs shall choose timely, add it to net.ipv4.tcp_allowed_congestion_control");
}

/* ---- settings ---- */

/* Parameters that the manual says to set where the default does not fit. */
static bool is_local(const char *name)
{
	return strcmp(name, "min_rtt_ns") == 0 || strcmp(name, "link_rate_kbps") == 0 ||
	       strcmp(name, "preset") == 0;
}

/*
 * Find a parameter whose value in this network namespace is not the one that the module was loaded
 * with. Writes "NAME is VALUE, not VALUE" to @text and returns true if there is one.
 */
static bool changed_parameter(char *text, size_t size)
{
	DIR *dir = opendir("/proc/sys/net/ipv4/timely");
	struct dirent *entry;
	bool is_changed = false;

	while (dir && !is_changed && (entry = readdir(dir))) {
		const char *name = entry->d_name;
		char path[512], now[32], loaded[32];

		snprintf(path, sizeof(path), "/proc/sys/net/ipv4/timely/%s", name);
		if (is_local(name) || !read_line(path, now, sizeof(now)))
			continue;
		snprintf(path, sizeof(path), "/sys/module/tcp_timely/parameters/%s", name);
		is_changed = read_line(path, loaded, sizeof(loaded)) && strcmp(now, loaded) != 0;
		snprintf(text, size, "%s is %s, not %s", plain(name), now, loaded);
	}
	if (dir)
		closedir(dir);
	return is_changed;
}

void check_preset(struct host *host)
{
	char text[256];

	if (!host->preset[0] || strcmp(host->preset, "target_delay") == 0)
		return;
	if (strcmp(host->preset, "custom") != 0)
		snprintf(text, sizeof(text), "preset is %s", host->preset);
	else if (!changed_parameter(text, sizeof(text)))
		return;
	found_info(host, "the parameters are not the default ones: net.ipv4.timely.%s",
		   text);
	remedy_info(host, "if this is not intended: sysctl -w net.ipv4.timely.preset=target_delay");
}

void check_rto_min(struct host *host)
{
	__s64 least_us;

	if (!is_used(host))
		return;
	if (read_number("/proc/sys/net/ipv4/tcp_rto_min_us", &least_us) &&
	    least_us < 1000 * LEAST_RTO_MIN_MS) {
		found_warn(host, "net.ipv4.tcp_rto_min_us is %lld: receivers may delay ACKs for longer, and TCP then retransmits packets that were not lost",
			   (long long)least_us);
		remedy_info(host, "sysctl -w net.ipv4.tcp_rto_min_us=%u", 1000 * LEAST_RTO_MIN_MS);
	} else if (host->routes.rto_min_ms && host->routes.rto_min_ms < LEAST_RTO_MIN_MS) {
		found_warn(host, "a route has rto_min %u ms: receivers may delay ACKs for longer, and TCP then retransmits packets that were not lost",
			   host->routes.rto_min_ms);
		remedy_info(host, "ip route show | grep rto_min shows the route; replace it with rto_min %ums",
			    LEAST_RTO_MIN_MS);
	}
}

/* Whether timely-clockd publishes the common time. It does not set the real-time clock. */
bool has_common_time(const struct host *host)
{
	return host->has_clock && host->clock.state == TIMELY_CLOCK_RUNNING &&
	       !clock_has_ended(&host->clock);
}

/* Base-RTT probes of hosts coincide if they know the common time, or their clocks agree. */
void check_clock(struct host *host)
{
	if (!host->unsynchronised || !host->auto_base_rtt || !is_used(host) ||
	    has_common_time(host))
		return;
	found_warn(host, "no program keeps the real-time clock synchronised, but base RTTs are measured at times that all hosts must agree on to 0.5 ms");
	remedy_info(host, "run chrony or a PTP program on all hosts, and look at chronyc tracking; or set the base RTT: sysctl -w net.ipv4.timely.min_rtt_ns=NS");
}

/* Peers are silent until the daemon has the first answers, and then learning. */
static const struct timely_clock_peer *find_lost_peer(const struct timely_clock_page *page)
{
	for (size_t i = 0; i < page->peer_count && i < TIMELY_CLOCK_PEERS; i++) {
		__u32 state = page->peers[i].state;

		if (state != TIMELY_CLOCK_PEER_GOOD && state != TIMELY_CLOCK_PEER_LEARNING)
			return &page->peers[i];
	}
	return NULL;
}

void check_clock_daemon(struct host *host)
{
	const struct timely_clock_peer *peer;
	char text[INET6_ADDRSTRLEN];

	if (!host->has_clock)
		return;
	if (clock_has_ended(&host->clock)) {
		found_warn(host, "timely-clockd has ended: this host does not know the common time any more");
		remedy_info(host, "systemctl status timely-clockd; timelyctl clock. If the daemon was stopped on purpose: rm %s",
			    TIMELY_CLOCK_PAGE);
		return;
	}
	if (clock_has_not_joined(&host->clock)) {
		found_warn(host, "timely-clockd has not joined the other hosts: it cannot use its address, port or clock, or has ended while it started");
		remedy_info(host, "systemctl status timely-clockd; its log says what is missing: journalctl -u timely-clockd");
		return;
	}
	peer = has_common_time(host) ? find_lost_peer(&host->clock) : NULL;
	if (!peer)
		return;
	found_warn(host, "timely-clockd does not know the clock of %s: the peer %s",
		   clock_address_text(text, peer->address),
		   peer->state == TIMELY_CLOCK_PEER_SILENT ? "does not answer" :
		   "contradicts the other peers");
	remedy_info(host, "systemctl status timely-clockd there and here; timelyctl clock");
}

/* References that contradict the others or do not answer are not used. */
void check_clock_references(struct host *host)
{
	const struct timely_clock_page *page = &host->clock;

	if (!has_common_time(host) || page->references_used >= page->references)
		return;
	if (page->references_used)
		found_warn(host, "timely-clockd uses only %u of the %u references of its configuration: the others do not answer, contradict these, or are not exact enough",
			   page->references_used, page->references);
	else if (page->members > TIMELY_CLOCK_PEERS + 1)
		found_warn(host, "timely-clockd uses no reference: it has %u members, and with references at most %u are possible",
			   page->members, TIMELY_CLOCK_PEERS + 1);
	else
		found_warn(host, "timely-clockd does not know the reference time: its references do not answer, or contradict each other");
	remedy_info(host, "journalctl -u timely-clockd names the references; see whether their system clocks are synchronised (chronyc tracking there)");
}

/* Queues get the default qdisc whenever mq is set up, or their number changes. */
void check_default_qdisc(struct host *host)
{
	char kind[32];

	if (!read_line("/proc/sys/net/core/default_qdisc", kind, sizeof(kind)) ||
	    strcmp(kind, "timely") == 0)
		return;
	for (size_t i = 0; i < host->devices; i++) {
		const struct device *device = &host->device[i];

		if (!device->timely || device->queues < 2)
			continue;
		found_info(host, "queues of %s have the qdisc timely, but new queues will have %s (net.core.default_qdisc)",
			   plain(device->link->name), kind);
		remedy_info(host, "sysctl -w net.core.default_qdisc=timely, if timely needs no options");
		return;
	}
}

/* ---- RTTs ---- */

/* Sum of the counters of RTTs with these names. */
static __u64 sum_rtts(const struct host *host, const char * const *names, size_t count)
{
	__u64 sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += counter_value(&host->rtts, names[i]);
	return sum;
}

/* By how much this sum has grown within a second. */
static __u64 sum_growth(struct host *host, const char * const *names, size_t count)
{
	__u64 sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += rtts_growth(host, names[i]);
	return sum;
}

/* Whether a tenth of the RTTs of enough ACKs were rejected. */
static bool rejects_many(__u64 good, __u64 bad)
{
	return good + bad >= FEW_ACKS && bad >= good / 10;
}

void check_rejected_rtts(struct host *host)
{
	static const char * const good_names[] = { "hardware", "driver", "tcp" };
	static const char * const bad_names[] = { "doubtful", "negative", "too_long" };
	__u64 good = sum_rtts(host, good_names, ARRAY_SIZE(good_names));
	__u64 bad = sum_rtts(host, bad_names, ARRAY_SIZE(bad_names));
	__u64 good_now = sum_growth(host, good_names, ARRAY_SIZE(good_names));
	__u64 now = sum_growth(host, bad_names, ARRAY_SIZE(bad_names));

	/* Where a host has been up for long, a fault of today hardly changes the totals. */
	if (!rejects_many(good, bad) && !rejects_many(good_now, now))
		return;
	if (now < good_now / 10)
		now = 0;
	found(host, now ? SEVERITY_WARNING : SEVERITY_NOTE,
	      "%llu RTTs were rejected because their timestamps are wrong, %llu were accepted%s",
	      (unsigned long long)bad, (unsigned long long)good, now ? "" : EARLIER);
	remedy_info(host, "timelyctl rtt shows the reasons; if fewer RTTs are rejected after timelyctl nic set IFACE hardware off, the NIC's timestamps are wrong");
}

void check_late_rtts(struct host *host)
{
	static const char * const stamped_names[] = { "hardware", "driver" };
	__u64 stamped = sum_rtts(host, stamped_names, ARRAY_SIZE(stamped_names));
	__u64 late = counter_value(&host->rtts, "tcp");
	__u64 now;

	if (late < FEW_ACKS || late < stamped)
		return;
	now = rtts_growth(host, "tcp");
	if (now < sum_growth(host, stamped_names, ARRAY_SIZE(stamped_names)))
		now = 0;
	found(host, now ? SEVERITY_WARNING : SEVERITY_NOTE,
	      "%llu RTTs ended only when TCP processed the ACK, %llu at a timestamp%s",
	      (unsigned long long)late, (unsigned long long)stamped, now ? "" : EARLIER);
	remedy_info(host, "use a kernel with the tracepoint tcp_probe (CONFIG_TRACEPOINTS)");
}
