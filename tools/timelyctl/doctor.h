/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations shared by the files of `timelyctl doctor`: what is known about this host, and how
 * a check reports what it has found.
 */
#ifndef TIMELYCTL_DOCTOR_H
#define TIMELYCTL_DOCTOR_H

#include "timelyctl.h"

enum severity {
	SEVERITY_ERROR,		/* a part of timely does not work */
	SEVERITY_WARNING,	/* timely works worse than it could */
	SEVERITY_NOTE,		/* may be intended, or is a limit of the hardware */
};

/**
 * struct finding - what a check has found
 * @check: name of the check
 * @severity: error, warning or note
 * @ifname: the device; NULL if the finding is not about a device
 * @evidence: what was seen
 * @remedy: what to do
 */
struct finding {
	const char *check;
	enum severity severity;
	const char *ifname;
	char *evidence;
	char *remedy;
};

/* The modules, in the order in which they depend on each other. */
enum {
	MODULE_TIMELY, MODULE_TCP, MODULE_SCH, MODULE_ACKER, MODULE_TRIM, MODULE_NDP, MODULES
};

extern const char * const module_names[MODULES];

/**
 * struct device - a device to check
 * @link: the device
 * @hw: what its driver reports
 * @report: what module timely reports; NULL if the module does not know the NIC
 * @use: whether RTTs end with its hardware timestamps
 * @nic: `timelyctl nic` shows the device without being given its name
 * @root: its root qdisc; NULL for none
 * @queues: qdiscs that packets wait in: one for each transmit queue under mq, else 1
 * @timely: how many of @queues are of the kind timely
 * @paced: how many of @queues pace: they are timely or fq, or have such a qdisc below them
 * @unpaced: one of @queues that does not pace; NULL for none
 */
struct device {
	const struct link *link;
	struct hardware hw;
	const struct report *report;
	enum use use;
	bool nic;
	const struct qdisc *root;
	unsigned int queues;
	unsigned int timely;
	unsigned int paced;
	const struct qdisc *unpaced;
};

/**
 * struct control_route - a route of the main table, and the congestion control that it sets
 * @prefix: its destination
 * @control: the congestion control; "" for none
 */
struct control_route {
	struct prefix prefix;
	char control[16];
};

/**
 * struct routes - what routes set for TCP
 * @timely: routes with a congestion control of tcp_timely
 * @rto_min_ms: lowest rto_min of a route, ms; 0 if no route has one
 * @route: the routes of the main table
 * @count: their number
 */
struct routes {
	unsigned int timely;
	__u32 rto_min_ms;
	struct control_route *route;
	size_t count;
};

/**
 * struct socket_key - the ends of a connection, compared by memcmp()
 * @bytes: length of an address, 4 or 16
 * @daddr: remote address
 * @dport: remote port, network byte order
 * @saddr: local address
 * @sport: local port, network byte order
 */
struct socket_key {
	__u32 bytes;
	__u8 daddr[16];
	__be16 dport;
	__u8 saddr[16];
	__be16 sport;
};

/**
 * struct tcp_socket - an established TCP connection of this network namespace
 * @key: its ends
 * @control: congestion control
 * @mss: payload of a packet, with TCP's options, bytes
 * @narrow: @mss may be bounded by half the peer's window, and not by an MTU
 * @mtu: MTU of the device that has the local address, bytes; 0 if not known, or for loopback
 * @min_rtt_ns: shortest RTT of the last minutes, as TCP measures it, ns
 * @busy: has sent a megabyte, and sent something in the last second
 * @timely: what module timely reports; NULL if the connection does not use timely
 */
struct tcp_socket {
	struct socket_key key;
	char control[16];
	__u32 mss;
	bool narrow;
	__u32 mtu;
	__u64 min_rtt_ns;
	bool busy;
	const struct timely_connection *timely;
};

struct tcp_sockets {
	struct tcp_socket *socket;
	size_t count;
};

/**
 * struct again - counters, read a second time
 * @done: they have been read
 * @rtts: counters of RTTs
 * @onramp: counters of On-Ramp
 * @connections: connections of this network namespace
 * @module: NICs that module timely reports
 */
struct again {
	bool done;
	struct counters rtts;
	struct onramp onramp;
	struct connections connections;
	struct module module;
};

/**
 * struct host - what is known about this host and this network namespace
 * @versions: version of each loaded module; "" if it is not loaded
 * @control: default congestion control
 * @preset: preset of tcp_timely; "" if the module is not loaded
 * @auto_base_rtt: base RTTs are measured, and not set by the sysctl min_rtt_ns
 * @unsynchronised: the kernel does not know that its real-time clock is synchronised
 * @has_clock: timely-clockd has run since the boot
 * @clock: the last page that it has written
 * @links: all devices
 * @qdiscs: all qdiscs
 * @routes: what routes set
 * @module: NICs that module timely reports
 * @device: the devices to check
 * @devices: number of these
 * @connections: connections of this network namespace that use timely
 * @everywhere: connections of all network namespaces
 * @is_everywhere: @everywhere is complete; else it has those of this network namespace only
 * @rtts: counters of RTTs
 * @limits: budgets of this network namespace
 * @onramp: On-Ramp's keys and counters
 * @acker: settings of On-Ramp's receiver
 * @ndp: NDP, summed up; all zero if module ndp is not loaded
 * @sockets: established TCP connections of this network namespace, sorted by their keys
 * @again: a second reading of the counters, a second later
 * @check: name of the check that runs
 * @ifname: the device that is checked; NULL for none
 * @findings: what was found
 * @count: number of findings
 */
struct host {
	char versions[MODULES][32];
	char control[16];
	char preset[32];
	bool auto_base_rtt;
	bool unsynchronised;
	bool has_clock;
	struct timely_clock_page clock;
	struct links links;
	struct qdiscs qdiscs;
	struct routes routes;
	struct module module;
	struct device *device;
	size_t devices;
	struct connections connections;
	struct connections everywhere;
	bool is_everywhere;
	struct counters rtts;
	struct limits limits;
	struct onramp onramp;
	struct acker acker;
	struct ndp_sums ndp;
	struct tcp_sockets sockets;
	struct again again;
	const char *check;
	const char *ifname;
	struct finding *findings;
	size_t count;
};

/* ---- doctor.c ---- */

/*
 * found_*() report a finding of the running check: an error, a warning or a note. The next call
 * must be remedy_info(), which adds the remedy.
 */
[[gnu::format(printf, 3, 4)]] void found(struct host *host, enum severity severity,
					 const char *format, ...);
[[gnu::format(printf, 2, 3)]] void remedy_info(struct host *host, const char *format, ...);

/* What a finding adds if its counters do not grow any more. The finding is then a note. */
#define EARLIER		"; this was earlier, and not in the last second"

#define found_err(host, ...)	found(host, SEVERITY_ERROR, __VA_ARGS__)
#define found_warn(host, ...)	found(host, SEVERITY_WARNING, __VA_ARGS__)
#define found_info(host, ...)	found(host, SEVERITY_NOTE, __VA_ARGS__)

/* ---- doctor_read.c ---- */

/* Reads all of struct host; @only is the only device to check, or NULL for all. */
void host_read(struct host *host, const struct link *only);
void host_free(struct host *host);
/*
 * Counters tell what has happened since a module was loaded, and not whether that goes on. A check
 * whose counters look bad asks by how much they have grown within a second.
 */
__u64 rtts_growth(struct host *host, const char *name);
__u64 onramp_growth(struct host *host, const char *name);
__u32 steps_growth(struct host *host, const struct device *device);
/* The same connection a second later; NULL if it has ended. */
const struct timely_connection *connection_again(struct host *host,
						 const struct timely_connection *connection);
bool is_loaded(const struct host *host, int module);
bool is_used(const struct host *host);
bool is_timely(const char *control);

/* ---- doctor_sockets.c ---- */

int sockets_get(struct tcp_sockets *sockets, const struct links *links);
/* Sets @timely of each socket whose connection is in @connections. */
void sockets_join(struct tcp_sockets *sockets, const struct connections *connections);

/* ---- doctor_host.c: the host and TCP ---- */

void check_modules_loaded(struct host *host);
void check_module_signature(struct host *host);
void check_module_version(struct host *host);
void check_kernel_version(struct host *host);
void check_kernel_taint(struct host *host);
void check_unused(struct host *host);
void check_route_control(struct host *host);
void check_allowed_control(struct host *host);
void check_preset(struct host *host);
void check_rto_min(struct host *host);
void check_clock(struct host *host);
void check_clock_daemon(struct host *host);
void check_clock_references(struct host *host);
bool has_common_time(const struct host *host);
void check_default_qdisc(struct host *host);
void check_rejected_rtts(struct host *host);
void check_late_rtts(struct host *host);

/* ---- doctor_device.c ---- */

void check_device_down(struct host *host, const struct device *device);
void check_qdisc_mixed(struct host *host, const struct device *device);
void check_qdisc_root(struct host *host, const struct device *device);
void check_qdisc_unpaced(struct host *host, const struct device *device);
void check_link_rate(struct host *host, const struct device *device);
void check_link_rate_set(struct host *host, const struct device *device);
void check_timestamps(struct host *host, const struct device *device);
void check_nic_clock(struct host *host, const struct device *device);
void check_nic_clock_steps(struct host *host, const struct device *device);
void check_coalescing(struct host *host, const struct device *device);
void check_merged_packets(struct host *host, const struct device *device);
void check_offloads(struct host *host, const struct device *device);

/* ---- doctor_flows.c: connections, and the budgets of flows ---- */

void check_limits(struct host *host);
void check_minimum_rate(struct host *host);
void check_filled_queue(struct host *host);
void check_other_traffic(struct host *host);
void check_probes_apart(struct host *host);
void check_probes_unsynced(struct host *host);
void check_long_path(struct host *host);
void check_mtu(struct host *host);
void check_ndp_trim(struct host *host);

/* ---- doctor_onramp.c: On-Ramp's sender and receiver ---- */

void check_onramp_key(struct host *host);
void check_onramp_unauthenticated(struct host *host);
void check_onramp_port(struct host *host);
void check_onramp_clock(struct host *host);
void check_onramp_silent(struct host *host);
void check_onramp_refused(struct host *host);
void check_onramp_threshold(struct host *host);
void check_onramp_split(struct host *host);
void check_onramp_queues(struct host *host, const struct device *device);
void check_acker_module(struct host *host);
void check_acker_rule(struct host *host);
void check_acker_key(struct host *host);
void check_acker_clock(struct host *host);
void check_acker_errors(struct host *host);
void check_acker_limited(struct host *host);

#endif /* TIMELYCTL_DOCTOR_H */
