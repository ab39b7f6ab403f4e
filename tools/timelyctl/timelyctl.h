/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the parts of timelyctl share. Functions that can fail return 0 or a
 * negative errno, and have told nothing unless they say that they have.
 */
#ifndef TIMELYCTL_H
#define TIMELYCTL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include <libmnl/libmnl.h>
#include <linux/net_tstamp.h>
#include <linux/types.h>
#include <net/if.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/* Exit statuses, see the manual. */
enum {
	STATUS_OK,
	STATUS_FAILED,		/* the kernel or the device says no */
	STATUS_USAGE,
	STATUS_CANNOT,		/* the NIC cannot stamp all packets */
};

/* ---- text.c: what goes to the terminal, and JSON ---- */

/**
 * struct hints - advice on a NIC
 * @count: how many
 * @text: each a line, allocated
 */
struct hints {
	unsigned int count;
	char *text[8];
};

/* To standard error, after the program's name. */
[[gnu::format(printf, 1, 2)]] void tell_err(const char *format, ...);
/* To standard output. */
[[gnu::format(printf, 1, 2)]] void tell_info(const char *format, ...);
/* As tell_err(), and where the right usage is; returns STATUS_USAGE. */
[[gnu::format(printf, 1, 2)]] int usage_err(const char *format, ...);
[[gnu::noreturn]] void out_of_memory(void);
const char *error_text(int err);
/* A name with nothing in it that a terminal obeys; good until its fourth use. */
const char *plain(const char *name);

[[gnu::format(printf, 2, 3)]] void hint_info(struct hints *hints, const char *format, ...);
void hints_free(struct hints *hints);

void json_open(const char *key, char bracket);
void json_close(char bracket);
void json_end(void);
void json_null(const char *key);
void json_string(const char *key, const char *text);
void json_signed(const char *key, __s64 value);
void json_unsigned(const char *key, __u64 value);
void json_bool(const char *key, bool value);
/* Of parts in 65536. */
void json_fraction(const char *key, __u32 parts);

struct counters;
void counters_print(const struct counters *counters);
void counters_json(const char *key, const struct counters *counters);

const char *address_text(char *text, const unsigned char *address, unsigned int bytes);
bool parse_number(const char *word, __s64 min, __s64 max, __s64 *value);
bool parse_rate_kbps(const char *word, __u32 *kbps);
const char *rate_text(char *text, size_t size, __u64 kbps);
const char *time_text(char *text, size_t size, __u64 ns);

/* ---- netlink.c: a request and its answer ---- */

/**
 * struct talk - a netlink socket
 * @socket: libmnl's
 * @seq: of the last request
 * @why: what the kernel said when it refused that, or ""
 */
struct talk {
	struct mnl_socket *socket;
	unsigned int seq;
	char why[160];
};

typedef void (*talk_each)(const struct nlmsghdr *message, void *data);

int talk_open(struct talk *talk, int bus);
void talk_close(struct talk *talk);
int talk_ask(struct talk *talk, struct nlmsghdr *request, talk_each each, void *data);

void attr_text(char *to, size_t size, const struct nlattr *attr);

/* ---- links.c: the devices of this network namespace ---- */

/**
 * struct link - a network device
 * @name: its name
 * @kind: of a virtual device, as `ip link add ... type` has it; else ""
 * @ifindex: its number
 * @master: the number of the bond, bridge or such it is a port of, or 0
 * @lower: the number of the device it is on top of, or 0
 * @elsewhere: that is in another network namespace
 * @up: it is set up
 * @ethernet: it has Ethernet's link layer, and is no loopback
 */
struct link {
	char name[IFNAMSIZ];
	char kind[32];
	int ifindex;
	int master;
	int lower;
	bool elsewhere;
	bool up;
	bool ethernet;
};

struct links {
	struct link *link;
	size_t count;
};

int links_get(struct links *links);
void links_free(struct links *links);
const struct link *link_by_name(const struct links *links, const char *name);
bool link_is_upper(const struct link *link);
size_t link_leaves(const struct links *links, const struct link *upper, const struct link **leaves,
		   size_t room);

/* ---- hardware.c: what the driver tells ---- */

enum can_stamp {
	CAN_STAMP_NONE,
	CAN_STAMP_SOFTWARE,
	CAN_STAMP_PTP,		/* in hardware, but not all packets */
	CAN_STAMP_ALL,
};

/**
 * struct hardware - what the driver tells of a device
 * @driver: its name, or ""
 * @can_stamp: received packets
 * @can_stamp_tx: sent packets, in hardware
 * @tx_on: the driver knows HWTSTAMP_TX_ON
 * @phc: index of its PTP clock, -1 for none
 * @config_err: 0 if @config is known, else why not
 * @config: which packets are stamped now
 * @speed_mbps: of the link, 0 if not known
 * @coalesce: the next three are known
 * @adaptive_rx: they adapt to the load
 * @rx_usecs: an interrupt waits that long after a packet, us
 * @rx_frames: or for so many packets, 0: any number
 * @gro: receive offload by the kernel; this and the following: 1, 0, or -1 if
 *	not known
 * @tso: segmentation by the NIC
 * @lro: merging of received packets by the NIC, which forgets what they were
 * @gro_hw: merging of received packets by the NIC as GRO does it
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
	bool coalesce;
	bool adaptive_rx;
	__u32 rx_usecs;
	__u32 rx_frames;
	int gro;
	int tso;
	int lro;
	int gro_hw;
};

int hardware_open(void);
void hardware_get(int fd, const char *name, struct hardware *hw);
int hardware_get_config(int fd, const char *name, struct hwtstamp_config *config);
int hardware_set_config(int fd, const char *name, struct hwtstamp_config *config);
const char *filter_name(int filter);
const char *tx_name(int tx_type);

/* ---- family.c: what the modules know ---- */

/* Zeroed where it is used: libmnl leaves the bytes between attributes as they are. */
#define REQUEST_BYTES 256

/**
 * struct record - what the module knows of a NIC
 * @ifindex: of the device
 * @state: TIMELY_NIC_*
 * @use: hardware stamps may be used
 * @has_line: the line is known: @uncertainty_ns to @drift_q32
 * @line_kbps: line rate of the link, 0 if not known
 * @override_kbps: counts instead, 0 if there is none
 * @uncertainty_ns: of a time on the line
 * @drift_ppb: how much faster the host's clock runs
 * @nic_ns: a point of the line, NIC's clock
 * @host_ns: and the host's
 * @drift_q32: the drift, exactly
 * @pairs: pairs of stamps seen in traffic
 * @brackets: times the PTP clock was read
 * @steps: steps noticed
 */
struct record {
	int ifindex;
	__u8 state;
	bool use;
	bool has_line;
	__u32 line_kbps;
	__u32 override_kbps;
	__u32 uncertainty_ns;
	__s32 drift_ppb;
	__u64 nic_ns;
	__u64 host_ns;
	__s64 drift_q32;
	__u64 pairs;
	__u64 brackets;
	__u32 steps;
};

/**
 * struct family - a module's netlink family
 * @talk: the socket
 * @id: the family's number; 0: the module is not loaded
 */
struct family {
	struct talk talk;
	__u16 id;
};

struct records {
	struct record *record;
	size_t count;
};

struct counter {
	char name[64];
	char doc[128];
	__u64 value;
};

struct counters {
	struct counter *counter;
	size_t count;
};

/* What `nic set` changes; NULL leaves it. */
struct change {
	const __u32 *override_kbps;
	const __u8 *use;
};

int family_open(struct family *family, const char *name);
void family_close(struct family *family);
int family_nics(struct family *family, struct records *records);
int family_set(struct family *family, int ifindex, const struct change *change);
int family_counters(struct family *family, struct counters *counters);
int family_get(struct family *family, __u8 command, talk_each each, void *data);
void counters_add(struct counters *counters, const struct nlattr *nest);

/* For other requests, with attributes of their own. */
struct nlmsghdr *family_request(const struct family *family, char *buffer, __u16 flags,
				__u8 command);
__u64 attr_unsigned(const struct nlattr *attr);

/* ---- onramp.c: On-Ramp in this network namespace ---- */

/**
 * struct onramp - On-Ramp in a network namespace
 * @port: UDP port of OR-ACKs
 * @unauthenticated: OR-ACKs without a key count
 * @used: the key that OR-ACKs are made with, 0 for none
 * @keys: those that are known
 * @key_count: how many
 * @counters: what became of OR-ACKs
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
int command_onramp(char **words, int count, bool json);
int command_key(char **words, int count, bool json);

/* ---- acker.c: the receiver ---- */

int command_acker(char **words, int count, bool json);

/* ---- limits.c: budgets of this network namespace ---- */

int command_limits(char **words, int count, bool json);

/* ---- show.c ---- */

int show_nics(const char * const *names, int count, bool json);

#endif /* TIMELYCTL_H */
