/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations shared by the files of the module ndp:
 *
 *	main.c		loads and unloads the module
 *	net.c		state of a network namespace: UDP sockets, limits, counters
 *	socket.c	calls of programs that create and end connections, and socket options
 *	stream.c	calls of programs that send and receive data
 *	conn.c		a connection: feeds the engines (net/timely/engine/ndp_*.c), keeps the data
 *	child.c		connections that a peer opens
 *	memory.c	limits of memory, and accounting of data to sockets
 *	input.c		received packets: decodes them and finds the connection
 *	output.c	builds packets and sends them in UDP
 *	pull.c		the pull queues of the interfaces
 *	later.c		answers that wait until the driver's poll is over
 *	table.c		ports and connections
 *	timer.c		timers that hold a reference to what they belong to
 *	icmp.c		ICMP errors about sent packets
 *	netlink.c	shows sockets, pull queues and counters
 *	trace.c		trace events (include/trace/events/ndp.h)
 *
 * Order of locks: the socket's lock (lock_sock()), the lock of a listener, ndp_sock.lock, the lock
 * of a pull queue or of a table. Packets are collected in a struct sk_buff_head under
 * ndp_sock.lock and sent after the lock is released.
 */
#ifndef _NDP_H
#define _NDP_H

#include <linux/hrtimer.h>
#include <linux/list.h>
#include <linux/poll.h>
#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/sysctl.h>
#include <linux/uio.h>
#include <net/inet_sock.h>
#include <net/netns/generic.h>

#include <timely_inet.h>

#include <timely/engine/ndp_pull.h>
#include <timely/engine/ndp_receiver.h>
#include <timely/engine/ndp_sender.h>
#include <timely/engine/ndp_wire.h>

struct ndp_info;
struct udp_tunnel_sock_cfg;
struct ndp_pull_queue;
struct ndp_queue;

/* Packets of one direction that may be between the first one that has not arrived and the newest:
 * 384 KB of 1500-byte packets, which is 300 us at 10 Gb/s, and 2.3 MB of 9000-byte packets.
 */
#define NDP_SPAN	256

/* Paths of a connection: so many UDP source ports, from NDP's port on. ECMP of switches maps them
 * to routes. A switch may return a packet with its UDP ports exchanged, so there is a socket for
 * each.
 */
#define NDP_PATHS	16

/* What a past connection's record has instead of a number of packets if the connection was reset:
 * late packets are answered by a RESET.
 */
#define NDP_PAST_RESET	U32_MAX

/* Default sizes of the socket's buffers, bytes. */
#define NDP_SNDBUF	(1 << 20)
#define NDP_RCVBUF	(2 << 20)

/* The longest of so many packets of a peer is a full packet of its path. */
#define NDP_RECENT	64

/* Lengths of trimmed packets that a connection remembers for its pulls; a power of two. */
#define NDP_AGAIN	64

/* Memory that a connection takes beside its data, for the limit of the namespace, bytes. */
#define NDP_CONN_BYTES	16384

/* Page fragments of a packet up to which one of another page may be added to it. */
#define NDP_APPEND_FRAGS	3

/* Ethernet header, frame check sequence, preamble and gap, bytes for each packet. */
#define NDP_FRAME_BYTES	(14 + 4 + 8 + 12)

/**
 * struct ndp_key - what identifies a connection in a network namespace, hashed as bytes
 * @local: address of this host; IPv4 addresses are mapped
 * @peer: address of the peer
 * @conn: number of the connection, which the side that opened it has chosen at random
 * @local_port: port of this host's socket
 * @peer_port: port of the peer's socket
 * @initiator: 1 if this host has opened the connection, else 0
 */
struct ndp_key {
	struct in6_addr local;
	struct in6_addr peer;
	u64 conn;
	__be16 local_port;
	__be16 peer_port;
	u32 initiator;
};

/**
 * struct ndp_timer - the timer of a connection or of a pull queue, see timer.c
 * @hr: the timer of the kernel
 * @due_ns: when the timer is due, CLOCK_MONOTONIC; TIMELY_NDP_NEVER: it is not set
 * @held: the timer has a reference to the object that it belongs to
 *
 * All members are protected by the object's lock.
 */
struct ndp_timer {
	struct hrtimer hr;
	u64 due_ns;
	bool held;
};

/**
 * struct ndp_sock - an NDP socket
 * @inet: the socket
 * @bound: entry in the table of ports
 * @hashed: entry in the table of connections; entered once
 * @unbound: @bound was removed from the table of ports
 * @key: identity of the connection
 * @destruct: the destructor of the socket's family
 * @route_cookie: validity of the socket's cached route
 * @lock: protects all members below, the queues of @inet.sk, and its accounted memory
 * @accept_queue: for a listener: connections that wait to be accepted
 * @accept_node: entry in @accept_queue of the listener
 * @started: the socket has, or had, a connection
 * @ended: the connection has ended: no packets and no timer any more
 * @reset: the connection was reset by either side
 * @opened: the peer was told about the connection, or will be with the first data
 * @cookie: cookie to send with the packets, 0: none
 * @sender: engine of the sent stream
 * @paths: engine of the paths
 * @path_memory: memory of @paths
 * @slots: memory of @sender
 * @unsent: first packet of sk_write_queue that was never sent; NULL: none
 * @last: state of the checksum of the packet that was written last, and its bytes; calls that write
 *	change and read this member under the socket's lock
 * @freed: number of the first packet of the sent stream that is still kept
 * @sent: packets that were sent and have not arrived, by number modulo NDP_SPAN
 * @credit_ns: smoothed time between two credits of the peer; 0: not known
 * @credits_last: credits that the last answer granted that granted any
 * @receiver: engine of the received stream
 * @map: memory of @receiver
 * @message: packets received before the message that arrives: a message ends when all packets that
 *	the peer had to send have arrived
 * @ahead: received packets that wait for earlier ones, by number modulo NDP_SPAN
 * @delivered: number of the first packet that was not given to the program's queue
 * @unread: bytes in the program's queue that the program has not read
 * @reading: a call of the program waits for data, of any length
 * @truesize: most memory that a received packet took, bytes
 * @starved: a packet was refused because there was no memory, and none was kept and the program has
 *	read nothing since
 * @peer_payload: most payload that a packet of the peer had lately, bytes
 * @peer_longest: the same since the last multiple of NDP_RECENT packets
 * @peer_packets: packets of the peer with data
 * @peer_tagged: the last of them had a tag
 * @again: payload lengths of packets that arrived trimmed, in the order in which the peer sends
 *	them again, by number modulo NDP_AGAIN
 * @again_first: number of the first length in @again that was not pulled
 * @again_end: number behind the last length in @again
 * @trimmed: a bit for each number modulo 64: a packet with this number has arrived trimmed
 * @guessed: bytes on the wire that pulls for packets of unknown length were for, less those of the
 *	packets that have arrived
 * @coming: packets that were pulled and have not arrived; 0 when all of the message has arrived
 * @unit: packets that the connection's next pull asks for
 * @answer: the answer to the last DATA packet
 * @unanswered: DATA packets that @answer, which was not sent, is to answer
 * @unanswered_ns: when the first of them arrived
 * @later: @later_node is in a list of later.c, which has a reference to the socket
 * @wake_later: the reader is woken after @answer has been sent
 * @later_node: entry in a list of later.c; used without @lock
 * @flow: entry in the pull queue @queue
 * @queue: pull queue of the interface that the packets arrive at; NULL: none yet
 * @elsewhere: packets in a row that arrived at another interface than that of @queue
 * @timer: timer of the sender, and of the limits below
 * @heard_ns: when the last packet of the peer arrived
 * @probed_ns: when the last PROBE of ndp_probe_ns() was sent
 * @waits_ns: since when this side waits for an answer; 0: it does not
 * @orphan_ns: when the connection without a program is given up; 0: never
 */
struct ndp_sock {
	struct inet_sock inet;
	struct hlist_node bound;
	struct hlist_node hashed;
	bool unbound;
	struct ndp_key key;
	void (*destruct)(struct sock *sk);
	u32 route_cookie;
	spinlock_t lock; /* of all members below */
	struct list_head accept_queue;
	struct list_head accept_node;
	bool started;
	bool ended;
	bool reset;
	bool opened;
	u64 cookie;
	struct timely_ndp_sender sender;
	struct timely_ndp_paths paths;
	struct timely_ndp_path path_memory[NDP_PATHS];
	struct timely_ndp_slot *slots;
	struct sk_buff *unsent;
	struct timely_ndp_sum last;
	u32 freed;
	struct sk_buff **sent;
	u64 credit_ns;
	u32 credits_last;
	struct timely_ndp_receiver receiver;
	u64 map[NDP_SPAN / 64];
	u64 message;
	struct sk_buff **ahead;
	u32 delivered;
	atomic_t unread;
	bool reading;
	u32 truesize;
	bool starved;
	u32 peer_payload;
	u32 peer_longest;
	u32 peer_packets;
	bool peer_tagged;
	u16 again[NDP_AGAIN];
	u8 again_first;
	u8 again_end;
	u64 trimmed;
	u32 guessed;
	u32 coming;
	u8 unit;
	struct timely_ndp_header answer;
	u8 unanswered;
	u64 unanswered_ns;
	bool later;
	bool wake_later;
	struct list_head later_node;
	struct timely_ndp_pull_flow flow;
	struct ndp_queue *queue;
	u8 elsewhere;
	struct ndp_timer timer;
	u64 heard_ns;
	u64 probed_ns;
	u64 waits_ns;
	u64 orphan_ns;
};

/**
 * struct ndp6_sock - an NDP socket of AF_INET6
 * @ndp: the socket
 * @inet6: the part that IPv6 uses; it must be the last member
 */
struct ndp6_sock {
	struct ndp_sock ndp;
	struct ipv6_pinfo inet6;
};

static inline struct ndp_sock *ndp_sk(const struct sock *sk)
{
	return (struct ndp_sock *)sk;
}

static inline struct sock *ndp_sock_of(const struct ndp_sock *ndp)
{
	return (struct sock *)ndp;
}

/* Sets the state of a socket, which is also read without locks. */
static inline void ndp_set_state(struct sock *sk, int state)
{
	/* A reader that sees the state also sees what was written before. */
	smp_store_release(&sk->sk_state, state);
}

/* IPv4 addresses are stored as IPv6 addresses. */
static inline void ndp_map(struct in6_addr *addr, __be32 v4)
{
	ipv6_addr_set_v4mapped(v4, addr);
}

static inline __be32 ndp_v4(const struct in6_addr *addr)
{
	return addr->s6_addr32[3];
}

/**
 * struct ndp_cb - what a packet in a queue of a socket has in its control block
 * @offset: received: bytes that the program has read
 * @sum: to be sent: checksum of the payload
 */
struct ndp_cb {
	u32 offset;
	u32 sum;
};

#define NDP_CB(skb)	((struct ndp_cb *)(skb)->cb)

/**
 * struct ndp_packet - a received packet
 * @skb: the packet, whose data starts with the header
 * @header: the header
 * @addresses: the addresses, for the engine
 * @key: identity of the connection
 * @cut: a switch has trimmed the packet
 * @exchanged: the tag is that of a packet to the peer: a switch has returned the packet
 * @header_bytes: length of the header
 * @now_ns: current time, CLOCK_MONOTONIC
 */
struct ndp_packet {
	struct sk_buff *skb;
	struct timely_ndp_header header;
	struct timely_ndp_addresses addresses;
	struct ndp_key key;
	bool cut;
	bool exchanged;
	u32 header_bytes;
	u64 now_ns;
};

/*
 * Counters of a network namespace, shown in /proc/net/ndp_stat:
 *
 *	X(name, description)
 */
#define NDP_COUNTERS(X)								\
	X(received, "NDP packets received")					\
	X(malformed, "packets that are no NDP packets of this version")		\
	X(damaged, "packets whose header has a wrong checksum")			\
	X(trimmed, "DATA packets whose payload a switch removed")		\
	X(returned, "own DATA packets that a switch returned")			\
	X(opened, "connections that this host opened")				\
	X(accepted, "connections that peers opened")				\
	X(refused, "first packets that no socket listens for")			\
	X(overflowed, "first packets that found the queue of the listener full") \
	X(challenged, "first packets answered by a COOKIE, which asks for proof of the address") \
	X(bad_cookie, "first packets with a wrong cookie")			\
	X(untagged, "packets without a tag, which net.ndp.authentication requires") \
	X(bad_tag, "packets with a wrong tag: forged, or made with another key") \
	X(errors, "ICMP errors about packets in flight")			\
	X(bad_errors, "ICMP errors that quote no packet in flight: late or forged") \
	X(unknown, "packets of connections that do not exist")			\
	X(late, "packets of connections that have ended lately")		\
	X(no_memory, "packets or connections for which there was no memory")	\
	X(resets_sent, "RESET packets sent")					\
	X(resets_received, "connections that the peer has reset")		\
	X(timeouts, "connections whose peer no longer answered")		\
	X(completed, "connections that both sides have closed")			\
	X(no_route, "packets for which there was no route")

#define NDP_COUNTER_INDEX(name, doc)	NDP_##name,
enum ndp_counter {
	NDP_COUNTERS(NDP_COUNTER_INDEX)
	NDP_COUNTER_COUNT
};

/**
 * struct ndp_counters - counters of a network namespace on one CPU
 * @count: the counts, by enum ndp_counter
 */
struct ndp_counters {
	u64 count[NDP_COUNTER_COUNT];
};

/* Number of places for addresses that were proved lately. */
#define NDP_PROVED	4096

/**
 * struct ndp_net - NDP's state of a network namespace
 * @net: the namespace
 * @counters: counters of each CPU
 * @lock: serialises opening of @sockets
 * @sockets: UDP sockets for IPv4 and IPv6, for each path; NULL until an NDP socket is created
 * @open: @sockets and @past may be used
 * @memory: bytes of data and connections
 * @proved: addresses of peers that were proved, see child.c
 * @past_lock: protects @past
 * @past: connections that have ended (time-wait)
 * @past_memory: memory of @past
 * @secret: key of the cookies, chosen at random
 * @table: the sysctls
 * @link_rate_kbps: link rate for interfaces whose rate is not known, kbit/s
 * @window: packets that a sender sends without a pull
 * @time_wait_ms: how long an ended connection is remembered, ms
 * @timeout_ms: how long a peer may not answer, ms
 * @keepalive_ms: idle time after which SO_KEEPALIVE asks the peer, ms
 * @proof_s: how long the proof of an address holds, s; 0: no proof is needed
 * @short_first: whether messages of which little has arrived get more pulls, 0 or 1
 * @data_dscp: DSCP of DATA packets
 * @control_dscp: DSCP of all other packets
 * @authentication: whether packets have tags, enum ndp_authentication
 */
struct ndp_net {
	struct net *net;
	struct ndp_counters __percpu *counters;
	struct mutex lock; /* of opening */
	struct socket *sockets[2][NDP_PATHS];
	bool open;
	atomic_long_t memory;
	u64 *proved;
	spinlock_t past_lock; /* of past */
	struct timely_ndp_past past;
	struct timely_ndp_past_entry *past_memory;
	struct timely_orack_key secret;
	struct ctl_table_header *table;
	u32 link_rate_kbps;
	u32 window;
	u32 time_wait_ms;
	u32 timeout_ms;
	u32 keepalive_ms;
	u32 proof_s;
	u32 short_first;
	u32 data_dscp;
	u32 control_dscp;
	u32 authentication;
};

/**
 * enum ndp_authentication - whether packets have tags, made with the keys of On-Ramp
 * @NDP_AUTH_OFF: sent packets have no tag
 * @NDP_AUTH_SIGN: sent packets have a tag if a key is used; received packets need none
 * @NDP_AUTH_REQUIRE: as @NDP_AUTH_SIGN, and received packets without a tag are dropped
 */
enum ndp_authentication {
	NDP_AUTH_OFF,
	NDP_AUTH_SIGN,
	NDP_AUTH_REQUIRE,
};

extern unsigned int ndp_net_id;

static inline struct ndp_net *ndp_net(const struct net *net)
{
	return net_generic(net, ndp_net_id);
}

static inline void ndp_count(const struct net *net, enum ndp_counter index)
{
	this_cpu_inc(ndp_net(net)->counters->count[index]);
}

/**
 * struct ndp_before - a connection before an event, for trace events
 * @known: the other members are valid; false: nobody traces
 * @paths_out: a bit for each path that is left out
 * @stats: counters of the sender
 */
struct ndp_before {
	bool known;
	u32 paths_out;
	struct timely_ndp_sender_stats stats;
};

/**
 * struct ndp_place - how far a reader of a hash table has come
 * @bucket: the bucket to be read next
 * @skip: entries of the bucket that were read
 */
struct ndp_place {
	u32 bucket;
	u32 skip;
};

/* net.c */
int ndp_net_init(const struct udp_tunnel_sock_cfg *tunnel);
void ndp_net_exit(void);
int ndp_net_open(struct net *net);
__be16 ndp_net_port(u32 path);
bool ndp_net_charge(struct net *net, long bytes);
void ndp_net_add(struct net *net, long bytes);
bool ndp_net_beyond(const struct net *net, u32 eighths);
u64 ndp_net_max_memory(void);
u64 ndp_net_counter(const struct net *net, enum ndp_counter index);
extern const char * const ndp_counter_names[];

/* socket.c */
int ndp_socket_register(void);
void ndp_socket_unregister(void);
void ndp_sock_init(struct sock *sk);
bool ndp_accept_add(struct sock *listener, struct sock *child);

/* stream.c */
int ndp_sendmsg(struct sock *sk, struct msghdr *msg, size_t len);
TIMELY_PROTO_RECVMSG(ndp_recvmsg);
int ndp_set_rcvlowat(struct sock *sk, int bytes);
__poll_t ndp_poll(struct file *file, struct socket *sock, struct poll_table_struct *wait);
bool ndp_stream_memory_free(const struct sock *sk, int wake);
void ndp_write_space(struct sock *sk);

/* conn.c */
void ndp_conn_init(struct sock *sk);
void ndp_conn_free(struct sock *sk);
int ndp_conn_prepare(struct sock *sk, gfp_t gfp);
int ndp_conn_start(struct sock *sk);
void ndp_conn_open(struct sock *sk);
bool ndp_conn_full(const struct sock *sk);
bool ndp_conn_readable(const struct sock *sk);
u32 ndp_conn_payload(struct sock *sk);
bool ndp_conn_write(struct sock *sk, struct sk_buff *skb, const struct timely_ndp_sum *sum,
		    bool more);
bool ndp_conn_append(struct sock *sk, struct page_frag *pfrag, u32 bytes, bool more);
void ndp_conn_push(struct sock *sk);
void ndp_conn_read(struct sock *sk, struct sk_buff *skb);
void ndp_conn_shutdown(struct sock *sk);
void ndp_conn_follow_shutdown(struct sock *sk);
void ndp_conn_abort(struct sock *sk);
void ndp_conn_orphaned(struct sock *sk);
void ndp_conn_keepalive(struct sock *sk, int on);
int ndp_conn_queued(struct sock *sk, int cmd);
void ndp_conn_info(struct sock *sk, struct ndp_info *info);
void ndp_conn_packet(struct sock *sk, struct ndp_packet *packet);
void ndp_conn_returned(struct sock *sk, const struct ndp_packet *packet);
void ndp_conn_answer(struct sock *sk);
void ndp_conn_pull(struct sock *sk, u32 packets);
bool ndp_conn_in_flight(struct sock *sk, const struct timely_ndp_header *header);
void ndp_conn_error(struct sock *sk, const struct timely_ndp_header *header, int err);

/* memory.c */
extern atomic_long_t ndp_memory_allocated;
extern long ndp_memory_limits[3];
void ndp_memory_init(void);
bool ndp_memory_short(const struct sock *sk);
bool ndp_memory_may_queue(const struct sock *sk);
bool ndp_charge_sent(struct sock *sk, u32 bytes);
void ndp_charge_fin(struct sock *sk, u32 bytes);
bool ndp_add_page(struct sk_buff *skb, struct page_frag *pfrag, u32 bytes);
void ndp_free_sent(struct sock *sk, struct sk_buff *skb);
bool ndp_charge_received(struct sock *sk, struct sk_buff *skb, bool next);
void ndp_uncharge_received(struct sock *sk, struct sk_buff *skb);
void ndp_free_received(struct sock *sk, struct sk_buff *skb);
u32 ndp_memory_wanted(const struct sock *sk);

/* child.c */
void ndp_child_packet(struct net *net, struct ndp_packet *packet);

/* input.c */
int ndp_input(struct sock *udp, struct sk_buff *skb);

/* icmp.c */
int ndp_icmp_lookup(struct sock *udp, struct sk_buff *skb);
TIMELY_UDP_ENCAP_ERROR(ndp_icmp_error);

/* output.c */
void ndp_addresses(const struct ndp_key *key, struct timely_ndp_addresses *addresses);
void ndp_output_control(struct sock *sk, struct timely_ndp_header *header,
			struct sk_buff_head *out);
void ndp_output_data(struct sock *sk, struct timely_ndp_header *header, struct sk_buff *data,
		     struct sk_buff_head *out);
void ndp_output_send(struct sock *sk, struct sk_buff_head *out);
void ndp_output_answer(struct net *net, const struct ndp_packet *to,
		       struct timely_ndp_header *header);
u32 ndp_output_header_bytes(struct net *net);
struct dst_entry *ndp_output_route(struct sock *sk);

/* pull.c */
int ndp_pull_register(void (*granted)(struct sock *sk, u32 packets));
void ndp_pull_unregister(void);
void ndp_pull_attach(struct sock *sk, const struct sk_buff *skb);
void ndp_pull_detach(struct sock *sk);
void ndp_pull_again(struct ndp_sock *ndp, u32 seq, u32 payload);
void ndp_pull_arrived(struct ndp_sock *ndp, const struct ndp_packet *packet);
void ndp_pull_done(struct ndp_sock *ndp, u32 packets);
void ndp_pull_leave_room(struct ndp_sock *ndp, const struct sk_buff *skb, u64 now_ns);
void ndp_pull_want(struct sock *sk, u32 wanted);
u32 ndp_pull_due(struct sock *sk, u32 wanted, u64 now_ns);
u32 ndp_pull_rate_kbps(struct sock *sk);
u32 ndp_pull_ifindex(struct sock *sk);
int ndp_pull_walk(const struct net *net, struct ndp_place *place,
		  int (*visit)(const struct ndp_pull_queue *queue, void *arg), void *arg);

/* later.c */
void ndp_later(struct sock *sk);
void ndp_later_init(void (*answer)(struct sock *sk));
void ndp_later_exit(void);

/* table.c */
void ndp_table_init(void);
int ndp_get_port(struct sock *sk, unsigned short port);
void ndp_put_port(struct sock *sk);
int ndp_listen_start(struct sock *sk);
struct sock *ndp_find_listener(struct net *net, const struct in6_addr *local, u16 port, int iif);
struct sock *ndp_find(struct net *net, const struct ndp_key *key);
bool ndp_insert(struct sock *sk);
bool ndp_remove(struct sock *sk);
u64 ndp_past_hash(const struct net *net, const struct ndp_key *key);
void ndp_bound_addr(const struct sock *sk, struct in6_addr *addr);
int ndp_table_walk(const struct net *net, struct ndp_place *place,
		   int (*visit)(struct sock *sk, void *arg), void *arg);

/* timer.c */
void ndp_timer_init(struct ndp_timer *timer, enum hrtimer_restart (*expired)(struct hrtimer *hr));
bool ndp_timer_set(struct ndp_timer *timer, u64 due_ns);
bool ndp_timer_due(struct ndp_timer *timer, u64 now_ns);
bool ndp_timer_done(struct ndp_timer *timer);
bool ndp_timer_stop(struct ndp_timer *timer);

/* trace.c */
void ndp_trace_begin(struct sock *sk, struct ndp_before *before, u64 now_ns);
void ndp_trace_changes(struct sock *sk, const struct ndp_before *before, u64 now_ns);

/* netlink.c */
int ndp_netlink_register(void);
void ndp_netlink_unregister(void);

#endif /* _NDP_H */
