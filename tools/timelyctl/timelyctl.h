/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations shared by the files of timelyctl. Functions that can fail return 0 or a negative
 * errno, and print nothing unless their comments say so.
 */
#ifndef TIMELYCTL_H
#define TIMELYCTL_H

#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/net_tstamp.h>
#include <linux/timely.h>
#include <linux/types.h>
#include <net/if.h>

#include "../clockd/timely_clock.h"

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * The lowest rto_min that gets no warning, ms: the value that tcp_timely(7) recommends. Receivers
 * delay ACKs for 40 ms and more, and a much shorter timer expires without a loss.
 */
#define LEAST_RTO_MIN_MS 25

/* Exit statuses, see the manual. */
enum {
	STATUS_OK,
	STATUS_FAILED,		/* the kernel or the device refuses */
	STATUS_USAGE,
	STATUS_CANNOT,		/* the NIC cannot timestamp all packets */
	STATUS_WARNINGS,	/* doctor has found no error, but what it warns of */
};

/* ---- text.c: messages and JSON ---- */

/**
 * struct hints - advice about a NIC
 * @count: number of hints; further hints than @text has room for are dropped
 * @text: the hints, one line each, which hints_free() frees
 */
struct hints {
	unsigned int count;
	char *text[8];
};

/* Prints to standard error, after the program's name. */
[[gnu::format(printf, 1, 2)]] void tell_err(const char *format, ...);
/* Prints to standard output. */
[[gnu::format(printf, 1, 2)]] void tell_info(const char *format, ...);
/* As tell_err(), followed by the command for help; returns STATUS_USAGE. */
[[gnu::format(printf, 1, 2)]] int usage_err(const char *format, ...);
/* Prints an error and ends the program. */
[[gnu::noreturn]] void out_of_memory(void);
/* Takes an errno, positive or negative. */
const char *error_text(int err);
/* A copy of the name with '?' for bytes that are not printable ASCII. Three more calls keep it. */
const char *plain(const char *name);

[[gnu::format(printf, 2, 3)]] void hint_info(struct hints *hints, const char *format, ...);
void hints_free(struct hints *hints);

/* JSON on standard output. @key is the key of a value in an object, NULL for an array's element. */
void json_open(const char *key, char bracket);
void json_close(char bracket);
/* Ends the line after the outermost value. */
void json_end(void);
void json_null(const char *key);
void json_string(const char *key, const char *text);
void json_signed(const char *key, __s64 value);
void json_unsigned(const char *key, __u64 value);
void json_bool(const char *key, bool value);
/* @parts is in 65536ths. */
void json_fraction(const char *key, __u32 parts);

struct counters;
void counters_print(const struct counters *counters);
void counters_json(const char *key, const struct counters *counters);

/**
 * struct prefix - a range of addresses
 * @bytes: length of an address, 4 for IPv4 or 16 for IPv6
 * @address: first address of the range
 * @length: length of the prefix in bits
 */
struct prefix {
	unsigned int bytes;
	unsigned char address[16];
	__u8 length;
};

/* Size of the text of a prefix: an address of 45 characters, "/128" and 0. */
#define PREFIX_TEXT 50

/* The functions *_text() write to @text and return it; parse_*() return false for a wrong word. */
const char *address_text(char *text, const unsigned char *address, unsigned int bytes);
const char *end_text(char *text, size_t size, const unsigned char *address, unsigned int bytes,
		     unsigned int port);
bool parse_number(const char *word, __s64 min, __s64 max, __s64 *value);
bool parse_rate_kbps(const char *word, __u32 *kbps);
bool parse_prefix(const char *word, struct prefix *prefix);
const char *prefix_text(char *text, const struct prefix *prefix);
bool prefix_has_host_bits(const struct prefix *prefix);
bool prefix_contains(const struct prefix *prefix, const unsigned char *address, unsigned int bytes);
const char *rate_text(char *text, size_t size, __u64 kbps);
const char *time_text(char *text, size_t size, __u64 ns);

/* ---- files.c: files of /proc and /sys, and signals ---- */

void hold_signals(sigset_t *before);
bool read_line(const char *path, char *text, size_t size);
bool read_number(const char *path, __s64 *value);
bool has_word(const char *list, const char *word);
int write_line(const char *path, const char *text);

/* ---- netlink.c: requests and replies ---- */

/**
 * struct talk - a netlink socket
 * @socket: libmnl's socket
 * @seq: sequence number of the last request
 * @why: the kernel's message about the last request if it refused that request, else ""
 */
struct talk {
	struct mnl_socket *socket;
	unsigned int seq;
	char why[160];
};

/* Size of a request. Callers zero the buffer: libmnl does not write the padding of attributes. */
#define REQUEST_BYTES 256

/* Handles one message of a reply, see talk_ask(). */
typedef void (*talk_each)(const struct nlmsghdr *message, void *data);

/* @bus is the netlink protocol, NETLINK_*. */
int talk_open(struct talk *talk, int bus);
void talk_close(struct talk *talk);
int talk_ask(struct talk *talk, struct nlmsghdr *request, talk_each each, void *data);
int talk_dump_route(__u16 type, size_t header_bytes, talk_each each, void *data);

void attr_text(char *to, size_t size, const struct nlattr *attr);

/* ---- links.c: the devices of this network namespace ---- */

/**
 * struct link - a network device
 * @name: name
 * @kind: type of a virtual device, as in `ip link add ... type`; else ""
 * @ifindex: interface index
 * @master: interface index of the bond or bridge that the device is a port of; 0 for none
 * @lower: interface index of the device below; 0 for none
 * @elsewhere: the device below is in another network namespace, where @lower is an index
 * @mtu: largest IP packet, bytes
 * @queues: transmit queues that the driver has allocated
 * @up: the device is up
 * @running: the device is up and has a carrier
 * @ethernet: the device has an Ethernet link layer and is not the loopback device
 * @loopback: the device is the loopback device
 */
struct link {
	char name[IFNAMSIZ];
	char kind[32];
	int ifindex;
	int master;
	int lower;
	__u32 mtu;
	__u32 queues;
	bool elsewhere;
	bool up;
	bool running;
	bool ethernet;
	bool loopback;
};

struct links {
	struct link *link;
	size_t count;
};

int links_get(struct links *links);
void links_free(struct links *links);
/* NULL if there is no such device. */
const struct link *link_by_index(const struct links *links, int ifindex);
const struct link *link_by_name(const struct links *links, const char *name);
bool link_is_upper(const struct link *link);
size_t link_leaves(const struct links *links, const struct link *upper, const struct link **leaves,
		   size_t room);

/* ---- qdiscs.c: the qdiscs of this network namespace ---- */

/**
 * struct qdisc - a qdisc
 * @kind: its kind, such as "timely"
 * @ifindex: interface index of its device
 * @handle: its handle
 * @parent: handle of the class that it is attached to, TC_H_*
 * @bytes: bytes sent
 * @packets: packets sent
 * @queue: packets and bytes that are queued now, and counters
 * @onramp_ns: timely: threshold of On-Ramp, ns; 0: off
 * @split: timely: maximum of a sub-segment, bytes; 0: packets are not split
 * @owd: timely: which delay the threshold is for, TIMELY_OWD_*
 * @stats: timely: statistics of the module
 */
struct qdisc {
	char kind[IFNAMSIZ];
	int ifindex;
	__u32 handle;
	__u32 parent;
	__u64 bytes;
	__u64 packets;
	struct gnet_stats_queue queue;
	__u32 onramp_ns;
	__u32 split;
	__u8 owd;
	struct tc_timely_stats stats;
};

/**
 * struct qdiscs - a list of qdiscs
 * @qdisc: the qdiscs
 * @count: number of qdiscs
 * @kind: the list has qdiscs of this kind only; NULL: of all kinds
 */
struct qdiscs {
	struct qdisc *qdisc;
	size_t count;
	const char *kind;
};

/* The caller frees the list, also after an error. */
int qdiscs_get(struct qdiscs *qdiscs, const char *kind);

/* ---- hardware.c: what the driver reports ---- */

/* Which received packets a device can timestamp, from the least to the most. */
enum can_stamp {
	CAN_STAMP_NONE,
	CAN_STAMP_SOFTWARE,	/* only the kernel timestamps packets */
	CAN_STAMP_PTP,		/* in hardware, but not all packets */
	CAN_STAMP_ALL,		/* in hardware, all packets */
};

/**
 * struct hardware - what the driver of a device reports
 * @driver: name of the driver, or ""
 * @can_stamp: which received packets the device can timestamp
 * @can_stamp_tx: the device can timestamp sent packets in hardware
 * @tx_on: the driver supports HWTSTAMP_TX_ON
 * @phc: index of the PTP clock; -1 for none
 * @config_err: 0 if @config is known, else the errno of SIOCGHWTSTAMP, negative
 * @config: which packets are timestamped now
 * @speed_mbps: speed of the link, Mb/s; 0 if not known
 * @queues: transmit queues in use; 0 if not known
 * @coalesce: @adaptive_rx, @rx_usecs and @rx_frames are known
 * @adaptive_rx: the driver adapts @rx_usecs and @rx_frames to the load
 * @rx_usecs: longest time from a received packet to its interrupt, us; 0: only @rx_frames counts
 * @rx_frames: number of received packets that causes an interrupt at once; 0: only @rx_usecs counts
 * @gro: merging of received packets by the kernel: 1 on, 0 off, -1 not known
 * @tso: segmentation of sent packets by the NIC: as @gro
 * @lro: merging of received packets by the NIC, without their headers: as @gro
 * @gro_hw: merging of received packets by the NIC as GRO does it: as @gro
 */
struct hardware {
	char driver[32];
	enum can_stamp can_stamp;
	bool can_stamp_tx;
	bool tx_on;
	int phc;
	int config_err;
	struct hwtstamp_config config;
	__u32 speed_mbps;
	__u32 queues;
	bool coalesce;
	bool adaptive_rx;
	__u32 rx_usecs;
	__u32 rx_frames;
	int gro;
	int tso;
	int lro;
	int gro_hw;
};

/* Returns a socket for the following functions, or a negative errno. */
int hardware_open(void);
void hardware_get(int fd, const char *name, struct hardware *hw);
int hardware_get_config(int fd, const char *name, struct hwtstamp_config *config);
int hardware_set_config(int fd, const char *name, struct hwtstamp_config *config);
const char *filter_name(int filter);
const char *tx_name(int tx_type);

/* ---- family.c: what the modules report ---- */

/**
 * struct report - what module timely reports about a NIC
 * @ifindex: interface index of the device
 * @state: TIMELY_NIC_*
 * @use: the administrator allows that RTTs end with hardware timestamps (`nic set hardware`)
 * @has_map: there is a clock mapping: @uncertainty_ns to @drift_q32 are known
 * @link_kbps: link rate that the driver reports, kbit/s; 0 if not known
 * @override_kbps: link rate that the administrator has set, kbit/s; 0 for none
 * @uncertainty_ns: error of a timestamp that the clock mapping has converted, ns
 * @drift_ppb: by how much the host's clock runs faster than the NIC's, ppb
 * @nic_ns: reference point of the clock mapping, time of the NIC's clock
 * @host_ns: time of the host's clock at @nic_ns
 * @drift_q32: as @drift_ppb, in units of 2^-32
 * @pairs: timestamp pairs used
 * @cross_timestamps: cross-timestamps of the PTP clock used
 * @steps: detected steps of either clock
 */
struct report {
	int ifindex;
	__u8 state;
	bool use;
	bool has_map;
	__u32 link_kbps;
	__u32 override_kbps;
	__u32 uncertainty_ns;
	__s32 drift_ppb;
	__u64 nic_ns;
	__u64 host_ns;
	__s64 drift_q32;
	__u64 pairs;
	__u64 cross_timestamps;
	__u32 steps;
};

/**
 * struct family - a module's netlink family
 * @talk: the socket for requests
 * @id: number of the netlink family; 0: the module is not loaded
 */
struct family {
	struct talk talk;
	__u16 id;
};

struct reports {
	struct report *report;
	size_t count;
};

/* A counter as the module reports it. */
struct counter {
	char name[64];
	char doc[128];
	__u64 value;
};

struct counters {
	struct counter *counter;
	size_t count;
};

/* The settings that `nic set` changes, see struct report; NULL keeps a setting. */
struct change {
	const __u32 *override_kbps;
	const __u8 *use;
};

int family_open(struct family *family, const char *name);
/* Prints an error and returns false if the module is not loaded or does not answer. */
bool family_open_or_tell(struct family *family, const char *name, const char *missing);
void family_close(struct family *family);
int family_nics(struct family *family, struct reports *reports);
int family_set(struct family *family, int ifindex, const struct change *change);
int family_counters(struct family *family, struct counters *counters);
int family_get(struct family *family, __u8 command, talk_each each, void *data);
void counters_add(struct counters *counters, const struct nlattr *nest);

/* Starts a request in @buffer of REQUEST_BYTES; the caller adds attributes. */
struct nlmsghdr *family_request(const struct family *family, char *buffer, __u16 flags,
				__u8 command);
/* A number of 1, 2, 4 or 8 bytes; 0 for other sizes. Negative numbers need a cast to their type. */
__u64 attr_unsigned(const struct nlattr *attr);

/* ---- onramp.c: On-Ramp in this network namespace ---- */

/**
 * struct onramp - On-Ramp's settings and counters in a network namespace
 * @port: UDP port of OR-ACKs
 * @unauthenticated: OR-ACKs without a key are accepted
 * @used: number of the key that signs this host's OR-ACKs; 0 for none
 * @keys: numbers of all keys
 * @key_count: number of keys
 * @counters: how many OR-ACKs were sent, accepted, and ignored by reason
 */
struct onramp {
	__u16 port;
	bool unauthenticated;
	__u8 used;
	__u8 keys[255];
	unsigned int key_count;
	struct counters counters;
};

int onramp_get(struct family *family, struct onramp *onramp);
int peers_show(struct family *family, bool json);
/* 0 if there is no counter of this name. */
__u64 counter_value(const struct counters *counters, const char *name);

/* Commands print errors and return an exit status. @words are the words after the command. */
int command_onramp(char **words, int count, bool json);
int command_key(char **words, int count, bool json);

/* ---- acker.c: the receiver ---- */

/**
 * struct rule - a set of data packets that are answered with OR-ACKs
 * @source: source addresses
 * @first: lowest destination port; 0 for all ports
 * @last: highest destination port
 */
struct rule {
	struct prefix source;
	__u16 first;
	__u16 last;
};

/**
 * struct acker - the receiver's settings in a network namespace
 * @every: bytes of a flow for each OR-ACK
 * @rate: OR-ACKs per second to each peer
 * @trimmed: DSCP of trimmed packets; 0: they get no OR-ACKs
 * @link_kbps: rate of the receiver's link
 * @rules_max: largest number of rules; 0 if the module does not report it
 * @offset_ns: by how much the test clock is ahead
 * @drift_ppb: by how much the test clock is faster
 * @rule: the rules
 * @count: number of rules
 */
struct acker {
	__u32 every;
	__u32 rate;
	__u32 trimmed;
	__u32 link_kbps;
	__u32 rules_max;
	__s64 offset_ns;
	__s32 drift_ppb;
	struct rule *rule;
	size_t count;
};

int acker_get(struct family *family, struct acker *acker);
int command_acker(char **words, int count, bool json);

/* ---- limits.c: budgets of this network namespace ---- */

/**
 * struct limit - a budget of this network namespace
 * @name: name of the budget; the module parameter is max_NAME
 * @doc: description of the counted objects
 * @used: objects that exist
 * @max: objects that may exist
 * @refused: objects that were not created because of the limit
 */
struct limit {
	char name[32];
	char doc[128];
	__u64 used;
	__u64 max;
	__u64 refused;
};

struct limits {
	struct limit limit[32];
	size_t count;
};

int limits_get(struct family *family, struct limits *limits);
int command_limits(char **words, int count, bool json);

/* ---- connections.c: the connections that use timely ---- */

struct timely_connection;

/* What connections are sorted by, the worst first. */
enum order {
	ORDER_DELAY,	/* queueing delay of the last RTT */
	ORDER_RATE,
	ORDER_CUTS,	/* reductions of the rate at once */
	ORDER_PAUSES,
};

/**
 * struct choice - which connections a command shows
 * @from: range of local addresses; its member bytes is 0 for all
 * @to: range of remote addresses, likewise
 * @port: local or remote port; 0 for all
 * @cgroup: identifier of the socket's control group, or of one above that; 0 for all
 * @limit: number of connections to show; 0: all
 * @order: what they are sorted by
 * @all: connections of all network namespaces
 * @length: length of the prefix that destinations are summed up by (WORD_PREFIX)
 * @interval_ms: time between two readings, ms (WORD_INTERVAL)
 * @duration_s: time after which the command ends, s; 0: when a signal ends it (WORD_DURATION)
 */
struct choice {
	struct prefix from;
	struct prefix to;
	unsigned int port;
	__u64 cgroup;
	size_t limit;
	enum order order;
	bool all;
	unsigned int length;
	unsigned int interval_ms;
	unsigned int duration_s;
};

/* Words of a choice that only some commands have. */
#define WORD_PREFIX	(1 << 0)
#define WORD_INTERVAL	(1 << 1)
#define WORD_DURATION	(1 << 2)

/**
 * struct connections - a list of connections
 * @connection: the connections
 * @count: their number
 * @room: for how many there is memory
 * @matching: number of connections that match the choice, before its limit
 */
struct connections {
	struct timely_connection *connection;
	size_t count;
	size_t room;
	size_t matching;
};

/* Called for a connection that was read; see connections_each() for NULL. */
typedef void (*connection_each)(const struct timely_connection *connection, void *data);

struct state_name {
	__u8 bit;
	const char *name;
};

/* Names by TIMELY_CUT_*, TIMELY_REJECTED_* and TIMELY_STATE_*. */
#define STATE_NAMES 8
extern const char * const cut_names[];
extern const char * const rejected_names[];
extern const struct state_name state_names[STATE_NAMES];
const char *source_name(unsigned int source);

const char *order_name(enum order order);
int choice_parse(const char *command, char **words, int count, unsigned int more,
		 struct choice *choice);
bool connections_open(struct family *family);
int connections_each(struct family *family, const struct choice *choice, connection_each each,
		     void *data);
int connections_get(struct family *family, const struct choice *choice, struct connections *list);
void connections_sort(struct connections *list, const struct choice *choice);
int connections_list(const char *command, const struct choice *choice, struct connections *list);
void connections_free(struct connections *list);
void connections_tell_none(void);
void connections_tell_failed(const struct family *family, const char *again, int err);
bool connection_rtt_is_recent(const struct timely_connection *connection);
__u64 connection_cuts(const struct timely_connection *connection);
__u32 connection_queue_ns(const struct timely_connection *connection);
unsigned int connection_address_bytes(const struct timely_connection *connection);

/* ---- flows.c ---- */

/* Size of the line about a connection. */
#define CONNECTION_TEXT 768

const char *connection_headings(char *text, size_t size);
const char *connection_text(char *text, size_t size, const struct timely_connection *connection);
/* The same columns for a narrow screen: first all that connections can be sorted by. */
const char *narrow_headings(char *text, size_t size);
const char *narrow_text(char *text, size_t size, const struct timely_connection *connection);
int command_flows(char **words, int count, bool json);

/* ---- ndp.c: NDP in this network namespace ---- */

/**
 * struct ndp_counts - counters of NDP in a network namespace
 * @counters: the counters
 * @memory: memory of connections and their data, bytes
 * @max_memory: limit of @memory, bytes
 */
struct ndp_counts {
	struct counters counters;
	__u64 memory;
	__u64 max_memory;
};

/**
 * struct ndp_sums - NDP in a network namespace, summed up
 * @counts: counters
 * @connections: number of connections
 * @graceful: of these, those that lost packets and met no switch that trims
 * @paths_out: paths that are left out, of all connections
 */
struct ndp_sums {
	struct ndp_counts counts;
	__u64 connections;
	__u64 graceful;
	__u64 paths_out;
};

/* The caller frees the counters. */
int ndp_sums_get(struct family *family, struct ndp_sums *sums);
int command_ndp(char **words, int count, bool json);

/* ---- setup.c ---- */

int command_setup(char **words, int count, bool json);
int command_teardown(char **words, int count, bool json);

/* ---- top.c ---- */

int command_top(char **words, int count, bool json);

/* ---- watch.c ---- */

int command_watch(char **words, int count, bool json);

/* ---- record.c ---- */

/**
 * struct ending - readings at regular intervals until a time or a signal
 * @signals: the signals that end the readings
 * @interval_ns: time between two readings, ns
 * @due_ns: when the last reading was due, CLOCK_MONOTONIC
 * @end_ns: when the readings end, CLOCK_MONOTONIC
 */
struct ending {
	sigset_t signals;
	__u64 interval_ns;
	__u64 due_ns;
	__u64 end_ns;
};

/* The first reading follows at once. @duration_s is 0: until a signal comes. */
void ending_begin(struct ending *ending, unsigned int interval_ms, unsigned int duration_s);
/* Wait for the next reading. Returns false if there is none. */
bool ending_wait(struct ending *ending);
/* Open a new file, so that no recording is lost; "-" is standard output. Prints errors. */
FILE *record_open(const char *path);

int command_record(char **words, int count, bool json);

/* ---- clock.c ---- */

/* Write an address of the clock page, where IPv4 addresses are ::ffff:a.b.c.d. */
const char *clock_address_text(char *text, const __u8 *address);
/* Has the daemon that wrote the page stopped or died? */
bool clock_has_ended(const struct timely_clock_page *page);
bool clock_has_not_joined(const struct timely_clock_page *page);
int command_clock(char **words, int count, bool json);

/* ---- http.c ---- */

int http_read(void);
void http_start(int status);

/* ---- metrics.c ---- */

int command_metrics(char **words, int count, bool json);

/* ---- trial.c ---- */

int command_trial(char **words, int count, bool json);

/* ---- doctor.c ---- */

int command_doctor(char **words, int count, bool json);

/* ---- show.c ---- */

/*
 * Coalescing of interrupts for as long as this, us, gets a hint. The project's choice: 10 us is a
 * large part of the RTTs of a datacentre, and an ACK that waits delays TIMELY's reaction.
 */
#define LONG_COALESCING_US 10

/* Whether RTTs end with a NIC's hardware timestamps, or why they do not. */
enum use {
	USE_IN_USE,
	USE_LEARNING,		/* the clock mapping is not sure yet */
	USE_UNSEEN,		/* no ACK with a timestamp has come through the NIC yet */
	USE_OFF,		/* the administrator has turned them off */
	USE_NOT_ENABLED,	/* the NIC is not configured to timestamp all packets */
	USE_NO_MODULE,		/* module timely is not loaded */
	USE_CANNOT,		/* the NIC cannot timestamp all packets */
	USE_UNKNOWN,		/* the module does not answer, or reports an unknown state */
};

/**
 * struct module - the reply of module timely
 * @loaded: the module is loaded
 * @err: 0, or the errno of the request, negative
 * @reports: the NICs that the module reported
 */
struct module {
	bool loaded;
	int err;
	struct reports reports;
};

void ask_module(struct module *module);
const struct report *nic_report(const struct module *module, const struct link *link);
enum use nic_use(const struct link *link, const struct hardware *hw, const struct report *report,
		 const struct module *module);
bool is_nic(const struct link *link, const struct hardware *hw);
int show_nics(const char * const *names, int count, bool json);

#endif /* TIMELYCTL_H */
