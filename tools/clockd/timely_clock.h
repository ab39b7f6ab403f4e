/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The C interface to the time of timely-clockd: the current time with its earliest and latest
 * value.
 *
 *	struct timely_clock *clock;
 *	struct timely_clock_time now;
 *
 *	if (!timely_clock_open(&clock, NULL) && !timely_clock_now(clock, &now))
 *		printf("%lld to %lld\n", now.earliest_ns, now.latest_ns);
 *
 * timely-clockd writes a file, the clock page, and programs map the file into memory, so a reading
 * costs a few clock_gettime() calls and no message to the daemon. A reading stays possible for
 * TIMELY_CLOCK_EXPIRE_NS after the daemon has died; the range from earliest to latest time grows
 * meanwhile. man timely-clockd(8) says which clock is meant.
 */
#ifndef TIMELY_CLOCK_H
#define TIMELY_CLOCK_H

#include <stdint.h>

#define TIMELY_CLOCK_PAGE	"/run/timely-clockd/clock"
#define TIMELY_CLOCK_MAGIC	0x54434c4b50414745ULL
#define TIMELY_CLOCK_VERSION	3
/* Most peers that a host exchanges probes with. */
#define TIMELY_CLOCK_PEERS	32
/* Age up to which the daemon's last line is used, ns. */
#define TIMELY_CLOCK_EXPIRE_NS	1000000000000ULL
/* Age up to which the daemon's own growth of the bound holds; afterwards the bound also grows by
 * TIMELY_CLOCK_STALE_PPB, the largest drift of an oscillator that is out of order.
 */
#define TIMELY_CLOCK_FRESH_NS	3000000000ULL
#define TIMELY_CLOCK_STALE_PPB	200000U
/* A bound that is not known. */
#define TIMELY_CLOCK_UNKNOWN_NS	UINT64_MAX

/**
 * enum timely_clock_state - whether the time can be used
 * @TIMELY_CLOCK_STARTING: the daemon has no estimate yet
 * @TIMELY_CLOCK_RUNNING: the daemon publishes estimates
 * @TIMELY_CLOCK_STOPPED: the daemon has ended; the last estimate remains
 */
enum timely_clock_state {
	TIMELY_CLOCK_STARTING,
	TIMELY_CLOCK_RUNNING,
	TIMELY_CLOCK_STOPPED,
};

/**
 * enum timely_clock_counter - counters of the daemon
 *
 * timely_clock_counter_names and timely_clock_counter_docs say what each of them counts.
 */
enum timely_clock_counter {
	TIMELY_CLOCK_SENT,
	TIMELY_CLOCK_RECEIVED,
	TIMELY_CLOCK_MALFORMED,
	TIMELY_CLOCK_STRANGER,
	TIMELY_CLOCK_NO_KEY,
	TIMELY_CLOCK_BAD_TAG,
	TIMELY_CLOCK_REFLECTED,
	TIMELY_CLOCK_REPLAYED,
	TIMELY_CLOCK_UNPROVEN,
	TIMELY_CLOCK_NO_TX_TIMESTAMP,
	TIMELY_CLOCK_NO_RX_TIMESTAMP,
	TIMELY_CLOCK_BAD_TIMESTAMP,
	TIMELY_CLOCK_NOT_SENT,
	TIMELY_CLOCK_PAIRS_PURE,
	TIMELY_CLOCK_PAIRS_SPREAD,
	TIMELY_CLOCK_PAIRS_CLOSER,
	TIMELY_CLOCK_PAIRS_SPACING,
	TIMELY_CLOCK_PAIRS_LOST,
	TIMELY_CLOCK_FITS,
	TIMELY_CLOCK_OVERLAPS,
	TIMELY_CLOCK_EXCLUDED,
	TIMELY_CLOCK_PEER_RESTARTS,
	TIMELY_CLOCK_SYSTEM_STEPS,
	TIMELY_CLOCK_NIC_STEPS,
	TIMELY_CLOCK_NIC_CHANGES,
	TIMELY_CLOCK_SUSPENDS,
	TIMELY_CLOCK_COMMON_STEPS,
	TIMELY_CLOCK_REFCLOCK_SAMPLES,
	TIMELY_CLOCK_REFCLOCK_ERRORS,
	TIMELY_CLOCK_COUNTERS
};

/**
 * enum timely_clock_peer_state - the state of a peer
 * @TIMELY_CLOCK_PEER_SILENT: the peer has not answered in the last seconds
 * @TIMELY_CLOCK_PEER_LEARNING: the peer answers, but there is no estimate yet
 * @TIMELY_CLOCK_PEER_GOOD: the estimate is used
 * @TIMELY_CLOCK_PEER_EXCLUDED: the estimate contradicts those of other peers, and is not used
 */
enum timely_clock_peer_state {
	TIMELY_CLOCK_PEER_SILENT,
	TIMELY_CLOCK_PEER_LEARNING,
	TIMELY_CLOCK_PEER_GOOD,
	TIMELY_CLOCK_PEER_EXCLUDED,
};

/**
 * struct timely_clock_peer - what is known about a peer
 * @address: IPv6 address, or IPv4 address in the form ::ffff:a.b.c.d
 * @state: enum timely_clock_peer_state
 * @hardware: both ends of the path timestamp by their NICs' clocks
 * @offset_ns: the peer's probe clock minus this host's probe clock, ns
 * @drift_ppb: how much faster the peer's probe clock runs, ppb
 * @bound_ns: error of @offset_ns that is hardly ever exceeded, ns; TIMELY_CLOCK_UNKNOWN_NS: there
 *	is no estimate
 * @system_offset_ns: the peer's system clock minus this host's, ns
 * @system_drift_ppb: how much faster the peer's system clock runs, ppb
 * @system_bound_ns: error of @system_offset_ns, ns; TIMELY_CLOCK_UNKNOWN_NS: not known
 * @surplus_ns: smallest sum of the offsets around a loop through this peer, ns
 * @loops: 1: @surplus_ns is known; 0: it is not
 * @half_width_ns: half of the distance between the bounds that probes set to the offset, ns
 * @sent: probes sent to the peer
 * @received: probes received from the peer
 * @pure: pairs of probes that were used
 * @rejected: pairs of probes that were not used, because a probe had waited in a queue
 * @lost: pairs of probes of which one probe never came
 */
struct timely_clock_peer {
	uint8_t address[16];
	uint32_t state;
	uint32_t hardware;
	int64_t offset_ns;
	int64_t drift_ppb;
	uint64_t bound_ns;
	int64_t system_offset_ns;
	int64_t system_drift_ppb;
	uint64_t system_bound_ns;
	int64_t surplus_ns;
	uint64_t loops;
	uint64_t half_width_ns;
	uint64_t sent;
	uint64_t received;
	uint64_t pure;
	uint64_t rejected;
	uint64_t lost;
};

/**
 * struct timely_clock_page - the contents of the clock page
 * @magic: TIMELY_CLOCK_MAGIC
 * @version: TIMELY_CLOCK_VERSION; other versions have another layout
 * @bytes: size of this structure
 * @sequence: odd while the daemon changes the members below
 * @state: enum timely_clock_state
 * @raw_ns: when the daemon wrote the page, by CLOCK_MONOTONIC_RAW, ns
 * @common_ns: common time at @raw_ns, ns since 1970; 0: not known
 * @rate_ppb: how much faster the common time runs than CLOCK_MONOTONIC_RAW, ppb
 * @bound_ns: error of @common_ns at @raw_ns, ns; TIMELY_CLOCK_UNKNOWN_NS: not known
 * @growth_ppb: growth of the error with time, ppb
 * @suspended_ns: CLOCK_BOOTTIME minus CLOCK_MONOTONIC at @raw_ns: if this changes, the host was
 *	suspended, and the line is void
 * @system_offset_ns: common time minus this host's system clock (CLOCK_REALTIME) at @raw_ns, ns
 * @references: number of references that the configuration names
 * @references_used: number of them that agree; 0: the members about the reference time are not
 *	known
 * @reference_offset_ns: reference time minus common time at @raw_ns, ns
 * @reference_rate_ppb: how much faster the reference time runs than the common time, ppb
 * @reference_bound_ns: error of @reference_offset_ns at @raw_ns, ns
 * @reference_growth_ppb: growth of this error with time, ppb
 * @own: this host's address, as in struct timely_clock_peer
 * @nic: name of the NIC whose clock timestamps the probes; "" for the system clock
 * @boot: the boot of the host that the page is of, see timely_clock_boot(); zeros: not known
 * @probe_ns: time by this host's probe clock that the offsets of @peers are for, ns
 * @members: number of hosts in the list of members
 * @peer_count: number of entries in @peers
 * @counters: counters since the daemon's start, by enum timely_clock_counter
 * @peers: the peers
 */
struct timely_clock_page {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes;
	uint32_t sequence;
	uint32_t state;
	uint64_t raw_ns;
	uint64_t common_ns;
	int64_t rate_ppb;
	uint64_t bound_ns;
	uint64_t growth_ppb;
	uint64_t suspended_ns;
	int64_t system_offset_ns;
	uint32_t references;
	uint32_t references_used;
	int64_t reference_offset_ns;
	int64_t reference_rate_ppb;
	uint64_t reference_bound_ns;
	uint64_t reference_growth_ppb;
	uint8_t own[16];
	char nic[16];
	uint8_t boot[16];
	uint64_t probe_ns;
	uint32_t members;
	uint32_t peer_count;
	uint64_t counters[TIMELY_CLOCK_COUNTERS];
	struct timely_clock_peer peers[TIMELY_CLOCK_PEERS];
};

/**
 * struct timely_clock_time - a reading of the common time
 * @time_ns: best estimate, ns since 1970
 * @earliest_ns: earliest time that it can be, ns since 1970
 * @latest_ns: latest time that it can be, ns since 1970
 * @age_ns: time since the daemon wrote the page, ns
 */
struct timely_clock_time {
	int64_t time_ns;
	int64_t earliest_ns;
	int64_t latest_ns;
	int64_t age_ns;
};

struct timely_clock;

extern const char * const timely_clock_counter_names[TIMELY_CLOCK_COUNTERS];
extern const char * const timely_clock_counter_docs[TIMELY_CLOCK_COUNTERS];

/**
 * timely_clock_open() - open the clock page
 * @clock: set to a handle, which timely_clock_close() frees
 * @path: path of the page; NULL: TIMELY_CLOCK_PAGE
 *
 * Return: 0; -ENOENT: no daemon has written the page since the boot (on a file system that outlives
 * boots there may be a page of an earlier one); -EPROTO: the file is no clock page, or that of
 * another version; or another negative errno.
 */
int timely_clock_open(struct timely_clock **clock, const char *path);

/**
 * timely_clock_read() - copy the clock page
 * @clock: the handle
 * @page: set to a consistent copy
 *
 * Return: 0; -EAGAIN: the daemon died while it wrote the page; or an error of timely_clock_open(),
 * because the page of a daemon that has started again is opened again.
 */
int timely_clock_read(struct timely_clock *clock, struct timely_clock_page *page);

/**
 * timely_clock_now() - read the common time
 * @clock: the handle; one thread at a time may use it
 * @now: set to the time
 *
 * Return: 0; -ENODATA: the daemon has no estimate yet; -ESTALE: the page is older than
 * TIMELY_CLOCK_EXPIRE_NS or from another boot, or the host was suspended since; or an error of
 * timely_clock_read().
 */
int timely_clock_now(struct timely_clock *clock, struct timely_clock_time *now);

/**
 * timely_clock_at() - compute the common time from a copy of the page
 * @page: the copy
 * @raw_ns: the time by CLOCK_MONOTONIC_RAW, ns
 * @suspended_ns: timely_clock_suspended_ns()
 * @now: set to the time
 *
 * Return: 0, -ENODATA or -ESTALE, as timely_clock_now().
 */
int timely_clock_at(const struct timely_clock_page *page, uint64_t raw_ns, uint64_t suspended_ns,
		    struct timely_clock_time *now);

/**
 * timely_clock_reference_now() - read the reference time
 * @clock: the handle; one thread at a time may use it
 * @now: set to the reference time: the system clock of the hosts that the configuration names as
 *	references. It may step when other references are used
 *
 * Return: as timely_clock_now(); -ENODATA also if there is no reference, or if references disagree.
 */
int timely_clock_reference_now(struct timely_clock *clock, struct timely_clock_time *now);

/**
 * timely_clock_reference_at() - compute the reference time from a copy of the page
 * @page: the copy
 * @raw_ns: the time by CLOCK_MONOTONIC_RAW, ns
 * @suspended_ns: timely_clock_suspended_ns()
 * @now: set to the time
 *
 * Return: 0, -ENODATA or -ESTALE, as timely_clock_reference_now().
 */
int timely_clock_reference_at(const struct timely_clock_page *page, uint64_t raw_ns,
			      uint64_t suspended_ns, struct timely_clock_time *now);

/**
 * timely_clock_suspended_ns() - read for how long the host was suspended since its boot
 *
 * An interruption of the program for some milliseconds between the readings must not look like a
 * suspension, so they are repeated then.
 *
 * Return: CLOCK_BOOTTIME minus CLOCK_MONOTONIC, ns.
 */
uint64_t timely_clock_suspended_ns(void);

/**
 * timely_clock_boot() - identify this boot of the host
 * @boot: set to 16 bytes that each boot has others of; to zeros if /proc is not there
 */
void timely_clock_boot(uint8_t *boot);

/**
 * timely_clock_close() - free a handle
 * @clock: the handle, or NULL
 */
void timely_clock_close(struct timely_clock *clock);

#endif /* TIMELY_CLOCK_H */
