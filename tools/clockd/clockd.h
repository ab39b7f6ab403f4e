/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations shared by the files of timely-clockd that use the operating system. Functions that
 * can fail return 0 or a negative errno, and print nothing unless their comments say so.
 */
#ifndef CLOCKD_H
#define CLOCKD_H

#include <net/if.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "graph.h"
#include "peer.h"
#include "reference.h"

#define NS_PER_S	1000000000ULL
#define NS_PER_MS	1000000ULL
#define KEYS_MAX	8
#define NAMES_MAX	1024
#define PATH_BYTES	108

/* ---- service.c: the log, the service manager, privileges ---- */

enum level { LEVEL_ERROR = 3, LEVEL_WARNING = 4, LEVEL_NOTICE = 5, LEVEL_INFO = 6 };

/* A line to standard error, for systemd with its priority. */
[[gnu::format(printf, 2, 3)]] void tell(enum level level, const char *format, ...);

#define tell_err(...)		tell(LEVEL_ERROR, __VA_ARGS__)
#define tell_warn(...)		tell(LEVEL_WARNING, __VA_ARGS__)
#define tell_notice(...)	tell(LEVEL_NOTICE, __VA_ARGS__)
#define tell_info(...)		tell(LEVEL_INFO, __VA_ARGS__)

/* A message to the service manager, such as "READY=1"; nothing without one. */
[[gnu::format(printf, 1, 2)]] void service_info(const char *format, ...);
/* Keep only CAP_NET_ADMIN, if @admin, and no way to get more. */
int drop_capabilities(bool admin);
uint64_t clock_ns(clockid_t id);
/* Read the clock @id, and the clock @other minus it. Returns the error of the difference, ns. */
uint32_t clock_difference(clockid_t id, clockid_t other, uint64_t *at_ns, int64_t *offset_ns);
uint64_t random_number(void);
const char *error_text(int err);

/* ---- address.c ---- */

#define ADDRESS_TEXT	48

bool address_parse(const char *text, struct address *address);
bool address_of_one_host(const struct address *address);
bool address_is_ipv4(const struct address *address);
bool address_is_loopback(const struct address *address);
int address_family(const struct address *address);
const char *address_text(char *text, const struct address *address);
void address_from(struct address *address, const struct sockaddr_storage *from);
socklen_t address_to(const struct address *address, uint16_t port, struct sockaddr_storage *to);
int address_interface(const struct address *address, char *name);
/* The first member that is an address of this host. The members are sorted. */
bool address_of_host(const struct members *members, struct address *own);

/* ---- config.c ---- */

/**
 * struct config - the configuration
 * @members: addresses and ranges of the list of members
 * @names: names of the list, which members_start() resolves
 * @name_count: number of names
 * @own: this host's address, if @has_own
 * @has_own: the configuration names it; otherwise the member is used that this host has
 * @family: AF_INET or AF_INET6: that of all members
 * @degree: number of peers
 * @port: UDP port
 * @pairs: pairs of probes per second to each peer whose path is not idle
 * @clock: "auto", "system" or the name of a NIC
 * @keys: the keys; the first one signs
 * @key_count: number of keys
 * @fixed: the system clock of this host is the common time ("reference yes")
 * @references: the references that all hosts know ("reference ADDRESS"), which are members, too
 * @reference_count: number of references
 * @page: path of the clock page
 * @sock: path of chrony's socket; "" for none
 * @shm: unit of the NTP SHM segment; -1 for none
 * @onramp: give offsets to On-Ramp
 * @tcp_timely: give the common time to tcp_timely
 * @test_lie_ns: for tests: added to the arrival times that this host reports, ns
 * @test_clock_ns: for tests: added to the system clock that this host reports, ns
 */
struct config {
	struct members members;
	char *names[NAMES_MAX];
	size_t name_count;
	struct address own;
	bool has_own;
	int family;
	unsigned int degree;
	uint16_t port;
	unsigned int pairs;
	char clock[IFNAMSIZ];
	struct key keys[KEYS_MAX];
	size_t key_count;
	bool fixed;
	struct address references[REFERENCES_MAX];
	size_t reference_count;
	char page[PATH_BYTES];
	char sock[PATH_BYTES];
	int shm;
	bool onramp;
	bool tcp_timely;
	long test_lie_ns;
	long test_clock_ns;
};

/* Prints errors; returns NULL then. */
struct config *config_read(const char *path);
void config_free(struct config *config);
bool config_has_reference(const struct config *config, const struct address *address);
const struct key *config_key(const struct config *config, uint8_t number);

/* ---- resolve.c: names ---- */

/**
 * struct resolver - a child process that resolves the names of the list
 * @pid: the process; 0: none runs
 * @fd: its results, to be read when readable
 * @found: addresses of all names, not sorted
 * @next: addresses that the process has found so far
 * @found_name: hash of the name of each address of @found
 * @next_name: the same of @next
 */
struct resolver {
	pid_t pid;
	int fd;
	struct members found;
	struct members next;
	uint64_t found_name[MEMBERS_MAX];
	uint64_t next_name[MEMBERS_MAX];
};

int resolver_start(struct resolver *resolver, struct config *config);
/* Returns true when the process has ended and @found is up to date. */
bool resolver_read(struct resolver *resolver);
void resolver_stop(struct resolver *resolver, bool keep);

/* ---- nic.c: a NIC's timestamps and its clock ---- */

/**
 * struct cross - a reading of a NIC's clock
 * @before_ns: the system clock before, CLOCK_REALTIME, ns
 * @nic_ns: the NIC's clock, ns
 * @after_ns: the system clock after, ns
 */
struct cross {
	uint64_t before_ns;
	uint64_t nic_ns;
	uint64_t after_ns;
};

/**
 * struct nic - a NIC that timestamps in hardware
 * @name: name
 * @ifindex: interface index
 * @phc: number of the PTP clock
 * @fd: the open PTP clock; -1: none is used
 * @precise: the NIC supports PTP_SYS_OFFSET_PRECISE
 * @changed: timely-clockd has changed the configuration of timestamps
 * @rx_filter: filter before that
 * @tx_type: type of timestamps of sent packets before that
 */
struct nic {
	char name[IFNAMSIZ];
	int ifindex;
	int phc;
	int fd;
	bool precise;
	bool changed;
	int rx_filter;
	int tx_type;
};

/* -EOPNOTSUPP: the NIC does not timestamp all packets in both directions, or has no clock. */
int nic_open(struct nic *nic, const char *name);
void nic_close(struct nic *nic);
/* Whether the NIC is still there, and still timestamps; turns timestamps on again after a reset. */
int nic_check(struct nic *nic);
/* Whether the device can timestamp all packets in both directions. */
bool nic_usable(const char *name);
int nic_read(struct nic *nic, struct cross *cross);

/* ---- hostclock.c: the clocks of this host ---- */

/* What host_clock_tick() has noticed, as bits. */
enum {
	CLOCK_STEPPED = 1,		/* the system clock was stepped */
	CLOCK_SUSPENDED = 2,		/* the host was suspended */
	CLOCK_NIC_STEPPED = 4,		/* the NIC's clock was stepped */
	CLOCK_NIC_LOST = 8,		/* the NIC is gone, or does not timestamp any more */
};

/**
 * struct host_clock - the clocks of this host
 * @nic: the NIC whose clock is the probe clock; @nic.fd is -1 if CLOCK_MONOTONIC_RAW is
 * @map: the NIC's clock minus CLOCK_MONOTONIC_RAW
 * @system_ns: CLOCK_REALTIME minus CLOCK_MONOTONIC_RAW
 * @system_raw_ns: when this was read, CLOCK_MONOTONIC_RAW
 * @system_error_ns: error of @system_ns, ns
 * @before_ns: @system_ns as read by the host_clock_refresh() before the last one
 * @before_raw_ns: @system_raw_ns of that reading
 * @suspended_ns: CLOCK_BOOTTIME minus CLOCK_MONOTONIC
 * @step_ns: size of the last step, or length of the last suspension, ns
 * @noticed: CLOCK_STEPPED, until host_clock_tick() returns it
 * @mistrust: the system clock was stepped since the last host_clock_refresh(), so the kernel's
 *	timestamps may be from before
 */
struct host_clock {
	struct nic nic;
	struct line *map;
	int64_t system_ns;
	uint64_t system_raw_ns;
	uint32_t system_error_ns;
	int64_t before_ns;
	uint64_t before_raw_ns;
	uint64_t suspended_ns;
	int64_t step_ns;
	unsigned int noticed;
	bool mistrust;
};

/* Prints what was chosen, and errors unless @quiet. */
int host_clock_open(struct host_clock *clock, const char *setting, const struct address *own,
		    bool quiet);
void host_clock_close(struct host_clock *clock);
/* Read the system clock: before timestamps of the kernel are converted, and to notice steps. */
void host_clock_refresh(struct host_clock *clock);
unsigned int host_clock_tick(struct host_clock *clock);
bool host_clock_is_nic(const struct host_clock *clock);
/* The probe clock minus CLOCK_MONOTONIC_RAW at a time of the latter. */
struct reading host_clock_map(const struct host_clock *clock, uint64_t raw_ns);
/* The probe clock at a timestamp of the kernel (CLOCK_REALTIME); 0: it cannot be converted. */
uint64_t host_clock_from_system(const struct host_clock *clock, uint64_t real_ns);

/* ---- qdisc.c: whether packets are sent at their times ---- */

/**
 * struct qdisc_kinds - which qdiscs an interface has
 * @keep: one that sends packets at the times that are given with them
 * @drop: one that drops packets with a time of CLOCK_MONOTONIC
 */
struct qdisc_kinds {
	bool keep;
	bool drop;
};

struct nlmsghdr;

/* Take a message of the kernel's list of qdiscs into account. */
void qdisc_note(struct qdisc_kinds *kinds, struct nlmsghdr *message, unsigned int ifindex);
/* Whether packets may have a time of sending; false, too, if the qdiscs cannot be listed. */
bool qdisc_keeps_times(const char *interface);

/* ---- wire.c: the socket ---- */

#define WIRE_TRACKED	4096

/**
 * struct wire - the UDP socket
 * @fd: the socket; -1 for none
 * @hardware: timestamps of the NIC are wanted, not those of the kernel
 * @timed: packets may have a time of sending
 * @port: UDP port
 * @next_id: number that the kernel gives to the next packet
 * @cookie: what wire_send() was told about the last WIRE_TRACKED packets
 */
struct wire {
	int fd;
	bool hardware;
	bool timed;
	uint16_t port;
	uint32_t next_id;
	uint64_t cookie[WIRE_TRACKED];
};

/**
 * struct arrival - a received packet
 * @from: its sender
 * @bytes: length of the payload
 * @wire: the payload
 * @ns: timestamp of the NIC or of the kernel, ns; 0: none
 */
struct arrival {
	struct address from;
	size_t bytes;
	uint8_t wire[MESSAGE_BYTES + 1];
	uint64_t ns;
};

int wire_open(struct wire *wire, const struct address *own, uint16_t port, const struct nic *nic);
void wire_close(struct wire *wire);
/*
 * Let the kernel drop what is no message of one of the @count @peers, at most TIMELY_CLOCK_PEERS,
 * before it takes room in the queue. @count 0: queue all packets again.
 */
int wire_filter(const struct wire *wire, const struct address *peers, size_t count);
/*
 * @cookie is returned with the timestamp of the packet; 0: none is wanted. @at_ns: when the packet
 * is to be sent, CLOCK_MONOTONIC; 0: at once.
 */
int wire_send(struct wire *wire, const struct address *to, const uint8_t *message, size_t bytes,
	      uint64_t cookie, uint64_t at_ns);
/* Wait until there is a timestamp of a packet that was sent, at most @ns. */
void wire_wait_sent(const struct wire *wire, uint64_t ns);
/* Returns 1 for a packet, 0 if there is none, or a negative errno. */
int wire_receive(struct wire *wire, struct arrival *arrival);
/* As wire_receive(), for the timestamp of a packet that was sent. */
int wire_sent(struct wire *wire, uint64_t *cookie, uint64_t *ns);

/* ---- refclock.c: chrony and ntpd ---- */

/**
 * struct refclock - the receivers of samples
 * @fd: socket to chrony; -1: not connected
 * @shm: the NTP SHM segment; NULL for none
 * @failed: the log has that chrony does not take samples
 */
struct refclock {
	int fd;
	void *shm;
	bool failed;
};

void refclock_open(struct refclock *refclock, const struct config *config);
void refclock_close(struct refclock *refclock);
/* Give a time minus the system clock, and its error, ns. Returns the samples given. */
int refclock_put(struct refclock *refclock, const struct config *config, int64_t offset_ns,
		 uint64_t error_ns);

/* ---- onramp.c: module timely ---- */

/**
 * struct onramp - the connection to module timely
 * @fd: netlink socket; -1 for none
 * @family: number of the module's family; 0: the module is not loaded
 * @tried_ns: when it was looked up last, CLOCK_MONOTONIC
 * @common: the module has a common time of this daemon
 * @told: the log has why the module does not take offsets
 */
struct onramp {
	int fd;
	uint16_t family;
	uint64_t tried_ns;
	bool common;
	bool told;
};

void onramp_open(struct onramp *onramp);
void onramp_close(struct onramp *onramp);
/*
 * Give the offset of a peer. If the peer is not good, take back an offset that was given before
 * (@before). Returns whether the module has an offset now.
 */
bool onramp_put(struct onramp *onramp, const struct timely_clock_peer *peer, uint64_t growth_ppb,
		bool before);
/* Give the common time of the page, which drifts against the system clock by @drift_ppb. */
void onramp_put_common(struct onramp *onramp, const struct timely_clock_page *page,
		       int64_t drift_ppb);
/* Take back the common time, if it was given. */
void onramp_withdraw_common(struct onramp *onramp);

/* ---- page.c: the clock page ---- */

/* Opens or creates the page, and maps it; prints errors; NULL then. */
struct timely_clock_page *page_open(const char *path);
void page_begin(struct timely_clock_page *page);
void page_end(struct timely_clock_page *page);
void page_write(struct timely_clock_page *page, const struct timely_clock_page *contents);

/* ---- daemon.c ---- */

int daemon_run(const char *path, struct config *config);

#endif /* CLOCKD_H */
