// SPDX-License-Identifier: GPL-2.0
/*
 * The lab's traffic engine: all senders, receivers, pings and samplers of an experiment
 * in one process, with sockets in many network namespaces. timelylab writes the plan,
 * runs this program in the guest, and reads the result.
 *
 *	traffic PLAN RESULT
 *
 * The plan is a text with one command on each line, "verb key=value ...". Commands take
 * effect in their order. Times are in ns after the start, rates in bytes per second,
 * sizes in bytes. Keys in brackets are optional:
 *
 *	end at=                           stop and write the result
 *	sysctl ns= key= value=            write /proc/sys/KEY in that namespace
 *	tso_off ns= dev=                  switch TSO off, so that the stack segments
 *	timestamp ns= dev=                enable hardware timestamps of all received frames
 *	write path= value= [at= [every=]] write a file: now, or at a time, or repeatedly from then
 *	run file= at=                     run a shell script
 *	set_clock at= by=                 step CLOCK_REALTIME by that many ns
 *	bulk from= to= addr= port= cc= connect= start= [stop= pace= rate= sndbuf= rcvbuf=
 *	     tos=]                        send from the namespace @from to @to without end; @pace
 *	                                  sets SO_MAX_PACING_RATE, @rate limits the application,
 *	                                  @tos sets IP_TOS of the sender
 *	train from= to= addr= port= cc= connect= start= size= every= [sndbuf= rcvbuf=]
 *	                                  send a message of @size bytes every @every ns
 *	pingpong from= to= addr= port= cc= connect= start= size=
 *	                                  send one message back and forth, without end
 *	ping from= to= addr= port= start= every= size= tos= echo_tos= seed=
 *	                                  send UDP packets, which @to returns, and record the RTTs
 *	incast cc= start= every= size= [priority=]
 *	                                  request @size bytes from each member at the same time;
 *	                                  NDP pulls streams with a higher @priority first
 *	member from= to= addr= port=      member of the last incast: @to requests, @from answers
 *	workload cc= cdf= every= start= stop= seed= port= pool= reply= group= late= [on= off=]
 *	                                  send messages between random nodes, every @every ns on
 *	                                  average, with sizes from the file @cdf; reply=1: the
 *	                                  receiver sends as many bytes back; @group successive nodes
 *	                                  are a group and send nothing to each other; @pool: initial
 *	                                  connections between two nodes, or 0: each message opens a
 *	                                  connection, which closes after the message; with @on and
 *	                                  @off a node sends in on-times only, and @every is the time
 *	                                  between messages if all nodes are on: the mean lengths of
 *	                                  on-times and of the times between them; a message that is
 *	                                  sent more than @late ns late is an error: readings of the
 *	                                  clock take time, so this program may be too slow
 *	node ns= addr=                    node of the last workload
 *	queue ns= dev= handle= every= [ring=]
 *	                                  sample the queue of the qdisc @handle (hexadecimal), and
 *	                                  add bytes and frames from the file @ring of a NIC
 *	flows every=                      sample the connections of bulk, train and pingpong
 *
 * With cc=ndp a connection is one of NDP sockets instead of TCP.
 *
 * The result is JSON with raw samples only. In the guest a system call takes no virtual time,
 * except that reading the clock takes 256 ns. Therefore clocks are read sparingly, and all samples
 * between two readings are of one instant.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/rtnetlink.h>
#include <linux/gen_stats.h>
#include <linux/ndp.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <linux/types.h>
#include <math.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC	1000000000ULL
#define CHUNK		(256 << 10)	/* bytes per write */
#define NDP_CHUNK	(2 << 20)	/* the same with NDP: more than its send buffer */
#define NOTSENT_LOWAT	(256 << 10)	/* unsent bytes that a socket accepts */
/* Bytes that wake up a receiver. A wake-up for each packet makes runs ten times slower. */
#define SINK_LOWAT	(128 << 10)
#define REQUEST_SIZE	64		/* bytes of an incast's request */
#define SETTLE_NS	(100 * 1000000)	/* from the program's start to time 0, for set-up */
#define RATE_TICK_NS	1000000		/* interval at which senders with rate= get bytes to send */

#define FAR_NS		(NSEC_PER_SEC << 30)	/* 34 years */
#define NODES		64		/* limit of a workload's nodes */
#define CDF_POINTS	128		/* limit of the points of a distribution of sizes */

/* A descriptor that epoll watches, and the function to call with @obj when it is ready. */
struct source {
	int fd;
	void (*ready)(void *obj);
	void *obj;
};

/* A table of numbers for the result. */
struct series {
	unsigned int columns;
	const char *names;		/* of the columns, separated by spaces */
	size_t len, room;		/* numbers in use, and allocated */
	__u64 *v;			/* row after row */
};

/* A connection of TCP or NDP: a sender (snd), a listener and its accepted socket (rcv). */
struct flow {
	struct source snd, rcv, listener, timer;
	const char *from, *to, *addr, *cc;
	__u16 port;
	__u64 connect, start, stop, pace, rate, tos;	/* see the plan */
	__u64 budget;			/* bytes that a sender with rate= may send now */
	__u64 message;			/* bytes of a pingpong's or a train's message, or 0 */
	__u64 got[2];			/* bytes of it that arrived at sender and receiver */
	__u64 every;			/* ns between a train's messages, or 0 */
	int connected, sndbuf, rcvbuf;
	int ndp;			/* NDP sockets, not TCP */
	__u64 received;			/* bytes that the receiver has read */
	struct incast *incast;		/* NULL: not a member of an incast */
	struct workload *workload;	/* NULL: not part of a workload */
	__u64 to_send, to_come;		/* bytes of the message still to send, to receive */
	__u64 to_reply, reply_to_come;	/* bytes of the reply still to send, to receive */
	int blocked, reply_blocked;	/* the socket has no room; waits for EPOLLOUT */
	int lowat;			/* SO_RCVLOWAT of rcv as last set */
	size_t row;			/* index of the message in the workload's series */
	unsigned int pair;		/* index into the workload's idle connections */
	struct series samples, train;
	size_t arrived;			/* a train's messages that have arrived completely */
	struct flow *next, *next_idle;
};

struct incast {
	struct source timer;
	const char *cc, *to;
	int priority;
	__u64 start, every, size;
	__u64 issued;			/* time of the last request */
	__u64 left;			/* bytes still to be received for the last request */
	__u64 skipped;			/* requests not made, because one was under way */
	unsigned int members;
	struct series requests;
	struct incast *next;
};

/* Messages of random sizes at random times. A connection carries one message at a time: a message
 * takes an idle connection between its two nodes, or opens another. Without a pool connections are
 * not used again.
 */
struct workload {
	struct source timer;
	const char *cc;
	double every;			/* mean time between messages, ns */
	__u64 due, stop;		/* times of the next message, and of the end */
	unsigned short rng[3];		/* state of erand48() */
	__u16 port;			/* of the next listener */
	unsigned int pool, group;	/* see the plan */
	unsigned int nodes, points;	/* of node[] and cdf[] in use */
	int reply;
	__u64 on, off;			/* mean lengths of on-times and off-times, or 0 */
	__u64 late;			/* a message that is sent later is an error, ns */
	unsigned short phases[3];	/* state of erand48() for these lengths */
	unsigned long closed_retrans;	/* of connections that are closed */
	struct {
		const char *ns, *addr;
		int is_off;
		__u64 until;		/* end of the on-time or off-time */
	} node[NODES];
	struct {
		double size, percent;
	} cdf[CDF_POINTS];
	struct flow *idle[NODES * NODES];
	struct series messages;
	struct workload *next;
};

struct ping {
	struct source client, server, timer;
	__u64 every;
	size_t size;
	unsigned short rng[3];
	struct series samples;
	struct ping *next;
};

struct queue {
	struct source timer;
	const char *ns, *dev;
	int nl, ring;
	__u32 ifindex, handle;
	struct series samples;
	struct queue *next;
};

/* A command of the plan that is executed at a given time: write, run or set_clock. */
struct event {
	struct source timer;
	const char *path, *value;	/* file to write, or NULL; text */
	const char *command;		/* command for the shell, or NULL */
	__s64 by;			/* ns to set the clock forward, if neither is given */
};

static struct flow *flows, **last_flow = &flows;
static struct incast *incasts;
static struct workload *workloads;
static struct ping *pings;
static struct queue *queues;
static struct series flow_times = { .columns = 1, .names = "t_ns" };
static struct source sampler, finish, far;
static const char *result_path;
static int epfd, zeros;			/* zeros: a memfd, the data of all messages */
static char ndp_zeros[NDP_CHUNK];	/* the same for NDP */
static __u64 t0;			/* time 0 of the plan, by CLOCK_MONOTONIC */

/* A macro, so that the compiler checks the format. */
#define die(...) \
	(fprintf(stderr, "traffic: " __VA_ARGS__), fputc('\n', stderr), exit(1))

static void *zalloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		die("out of memory");
	return p;
}

/* Time since the start, ns. Takes 256 ns of virtual time. */
static __u64 now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec - t0;
}

/* Time since the start, ns, without taking virtual time: the time until a far timer expires tells
 * it. For frequent events, where 256 ns for each reading would keep the engine busy.
 */
static __u64 cheap_now(void)
{
	struct itimerspec its;

	if (timerfd_gettime(far.fd, &its))
		die("timerfd_gettime: %m");
	return FAR_NS - its.it_value.tv_sec * NSEC_PER_SEC - its.it_value.tv_nsec - t0;
}

/* Append a row of zeros, and return it. The next call may move the table. */
static __u64 *push(struct series *s)
{
	__u64 *row;

	if (s->len + s->columns > s->room) {
		s->room = 2 * s->room + 1024 * s->columns;
		s->v = realloc(s->v, s->room * sizeof(*s->v));
		if (!s->v)
			die("out of memory");
	}
	row = s->v + s->len;
	memset(row, 0, s->columns * sizeof(*row));
	s->len += s->columns;
	return row;
}

static void watch(struct source *src, void (*ready)(void *obj), void *obj, __u32 events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	src->ready = ready;
	src->obj = obj;
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, src->fd, &ev))
		die("epoll_ctl: %m");
}

/* main() may still have an event of this source from epoll; it ignores sources without @ready. */
static void unwatch(struct source *src)
{
	epoll_ctl(epfd, EPOLL_CTL_DEL, src->fd, NULL);
	src->ready = NULL;
}

/* Call @ready at time @at, then every @every ns; 0: once. A timer that is armed is set anew. */
static void set_timer(struct source *src, void (*ready)(void *obj), void *obj,
		      __u64 at, __u64 every)
{
	__u64 abs = t0 + at;
	struct itimerspec its = {
		.it_value = { abs / NSEC_PER_SEC, abs % NSEC_PER_SEC },
		.it_interval = { every / NSEC_PER_SEC, every % NSEC_PER_SEC },
	};

	if (!src->ready) {
		src->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
		if (src->fd < 0)
			die("timerfd_create: %m");
		watch(src, ready, obj, EPOLLIN);
	}
	src->ready = ready;
	if (timerfd_settime(src->fd, TFD_TIMER_ABSTIME, &its, NULL))
		die("timerfd_settime: %m");
}

static void never(void *obj)
{
}

/* Return how often the timer has expired since the last call. */
static __u64 timer_ack(struct source *src)
{
	__u64 n = 0;

	if (read(src->fd, &n, sizeof(n)) < 0 && errno != EAGAIN)
		die("cannot read a timer: %m");
	return n;
}

static void enter_ns(const char *ns)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/run/netns/%s", ns);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || setns(fd, CLONE_NEWNET))
		die("cannot enter namespace %s: %m", ns);
	close(fd);
}

static int open_socket(const char *ns, int family, int type, int protocol)
{
	int fd;

	enter_ns(ns);
	fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		die("%s: socket: %m", ns);
	return fd;
}

static void set_option(const char *ns, int fd, int level, int opt, const char *name,
		       const void *value, socklen_t len)
{
	if (setsockopt(fd, level, opt, value, len))
		die("%s: cannot set %s: %m", ns, name);
}

#define SET(ns, fd, level, opt, type, val) \
	set_option(ns, fd, level, opt, #opt, &(type) { val }, sizeof(type))

static struct sockaddr_in to_sockaddr(const char *addr, __u16 port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	if (!inet_aton(addr, &sin.sin_addr))
		die("bad address %s", addr);
	return sin;
}

/* --- TCP and NDP ------------------------------------------------------ */

static void set_cc(const char *ns, int fd, const char *cc)
{
	if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, cc, strlen(cc)))
		die("%s: congestion control '%s' is not available (is its module loaded?): %m",
		    ns, cc);
}

/* A stream socket of a flow, with the flow's congestion control. */
static int open_stream(const struct flow *f, const char *ns)
{
	int fd = open_socket(ns, AF_INET, SOCK_STREAM, f->ndp ? IPPROTO_NDP : 0);

	if (!f->ndp)
		set_cc(ns, fd, f->cc);
	return fd;
}

static void check_cc(const struct flow *f, const char *ns, int fd)
{
	char got[32] = "";
	socklen_t len = sizeof(got) - 1;

	if (f->ndp)
		return;
	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, got, &len))
		die("%s: cannot read TCP_CONGESTION: %m", ns);
	if (strcmp(got, f->cc))
		die("%s: asked for congestion control '%s' but the socket runs '%s'", ns, f->cc,
		    got);
}

/* Send up to @bytes zeros. TCP takes pages of a memfd by reference, so that no data is copied. NDP
 * cuts the data of each call into packets of its own, so a call gets all that the socket may take.
 */
static ssize_t send_zeros(const struct flow *f, int fd, __u64 bytes)
{
	off_t off = 0;

	if (f->ndp)
		return send(fd, ndp_zeros, bytes < NDP_CHUNK ? bytes : NDP_CHUNK, MSG_NOSIGNAL);
	return sendfile(fd, zeros, &off, bytes < CHUNK ? bytes : CHUNK);
}

static void send_some(struct flow *f, __u32 events);
static void expect(struct flow *f);

/* Send as much as the socket and the budget allow. */
static void pump(void *obj)
{
	struct flow *f = obj;
	__u64 want;
	ssize_t n;

	while ((want = f->rate ? f->budget : NDP_CHUNK)) {
		n = send_zeros(f, f->snd.fd, want);
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)
			die("flow %s -> %s: %m", f->from, f->to);
		if (f->rate)
			f->budget -= n;
	}
}

static void flow_stop(void *obj)
{
	struct flow *f = obj;

	unwatch(&f->timer);
	if (!f->rate)
		unwatch(&f->snd);
	if (shutdown(f->snd.fd, SHUT_WR))
		die("flow %s -> %s: shutdown: %m", f->from, f->to);
}

/* Add a tick's bytes to the budget of a sender with rate=. Unsent bytes stay in the budget, up to
 * 0.1 s of them.
 */
static void rate_tick(void *obj)
{
	struct flow *f = obj;

	f->budget += timer_ack(&f->timer) * (f->rate / (NSEC_PER_SEC / RATE_TICK_NS));
	if (f->budget > CHUNK + f->rate / 10)
		f->budget = CHUNK + f->rate / 10;
	if (f->stop && now() >= f->stop)
		flow_stop(f);
	else
		pump(f);
}

/* Send the next message of a train; it waits for the messages before it. */
static void train_tick(void *obj)
{
	struct flow *f = obj;
	__u64 *row, n = timer_ack(&f->timer), at = cheap_now();

	for (; n; n--) {
		row = push(&f->train);
		row[0] = at;
		f->to_send += f->message;
	}
	if (!f->blocked)
		send_some(f, 0);
}

/* Bytes of a train have arrived: record the time of each message that is complete now. */
static void train_received(struct flow *f, size_t n)
{
	__u64 *row, at = cheap_now();

	for (f->got[1] += n; f->got[1] >= f->message; f->got[1] -= f->message) {
		row = f->train.v + f->arrived++ * f->train.columns;
		row[1] = at - row[0];
	}
	f->to_come = f->message - f->got[1];
	expect(f);
}

static void train_send(void *obj)
{
	send_some(obj, 0);
}

static void flow_start(void *obj)
{
	struct flow *f = obj;

	timer_ack(&f->timer);
	if (f->every) {
		watch(&f->snd, train_send, f, 0);
		set_timer(&f->timer, train_tick, f, f->start + f->every, f->every);
		return;
	}
	if (f->rate) {
		set_timer(&f->timer, rate_tick, f, now() + RATE_TICK_NS, RATE_TICK_NS);
		return;
	}
	watch(&f->snd, pump, f, EPOLLOUT);
	if (f->stop)
		set_timer(&f->timer, flow_stop, f, f->stop, 0);
}

/* --- Messages of known lengths --- */

static void poll_for(struct source *src, __u32 events)
{
	struct epoll_event ev = { .events = events, .data.ptr = src };

	if (epoll_ctl(epfd, EPOLL_CTL_MOD, src->fd, &ev))
		die("epoll_ctl: %m");
}

/* Send as much as the socket has room for, and poll for room for the rest. */
static void send_some(struct flow *f, __u32 events)
{
	ssize_t n;

	while (f->to_send) {
		n = send_zeros(f, f->snd.fd, f->to_send);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			die("%s cannot send: %m", f->from);
		f->to_send -= n;
	}
	if (f->blocked == !!f->to_send)
		return;
	f->blocked = !f->blocked;
	poll_for(&f->snd, f->blocked ? events | EPOLLOUT : events);
}

/* Wake the receiver when all expected bytes, or SINK_LOWAT of them, have arrived. */
static void expect(struct flow *f)
{
	int lowat = f->to_come < SINK_LOWAT ? f->to_come : SINK_LOWAT;

	if (f->rcv.fd <= 0 || !lowat || lowat == f->lowat)
		return;
	SET(f->to, f->rcv.fd, SOL_SOCKET, SO_RCVLOWAT, int, lowat);
	f->lowat = lowat;
}

/* A member has received a request: send the answer. */
static void incast_answer(void *obj)
{
	struct flow *f = obj;
	char request[REQUEST_SIZE];
	ssize_t n = recv(f->snd.fd, request, sizeof(request), 0);

	if (n == sizeof(request))
		f->to_send += f->incast->size;
	else if (n >= 0 || errno != EAGAIN)
		die("incast: %s did not receive a whole request: %m", f->from);
	send_some(f, EPOLLIN);
}

/* --- Messages back and forth --- */

static void send_message(const struct flow *f, const char *who, int fd)
{
	if (send_zeros(f, fd, f->message) != (ssize_t)f->message)
		die("%s cannot send a whole message: %m", who);
}

/* Answer each complete message with one of the same size. */
static void receive_message(struct flow *f, int end)
{
	int fd = end ? f->rcv.fd : f->snd.fd;
	ssize_t n = recv(fd, NULL, 64 << 20, MSG_TRUNC | MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0)
		die("pingpong %s - %s: receive: %m", f->from, f->to);
	f->got[end] += n;
	f->received += end ? n : 0;
	if (f->got[end] < f->message)
		return;
	f->got[end] -= f->message;
	send_message(f, end ? f->to : f->from, fd);
}

static void ping_side(void *obj)
{
	receive_message(obj, 0);
}

static void pong_side(void *obj)
{
	receive_message(obj, 1);
}

static void pingpong_start(void *obj)
{
	struct flow *f = obj;

	timer_ack(&f->timer);
	watch(&f->snd, ping_side, f, EPOLLIN);
	send_message(f, f->from, f->snd.fd);
}

/* --- Workload --- */

static void workload_done(struct flow *f);
static void get_info(int fd, struct tcp_info *info);

/* Bytes of the reply have arrived at the node that asked. */
static void reply_received(struct flow *f)
{
	ssize_t n = recv(f->snd.fd, NULL, 64 << 20, MSG_TRUNC | MSG_DONTWAIT);
	int lowat;

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0 || (__u64)n > f->reply_to_come)
		die("workload: a reply of the wrong size: %m");
	f->reply_to_come -= n;
	if (!f->reply_to_come) {
		workload_done(f);
		return;
	}
	lowat = f->reply_to_come < SINK_LOWAT ? f->reply_to_come : SINK_LOWAT;
	SET(f->from, f->snd.fd, SOL_SOCKET, SO_RCVLOWAT, int, lowat);
}

static void workload_send(void *obj)
{
	struct flow *f = obj;

	send_some(f, EPOLLIN);
	if (f->reply_to_come)
		reply_received(f);
}

/* Send as much of the reply as the socket has room for, as send_some() does at the other end. */
static void send_reply(struct flow *f)
{
	ssize_t n;

	while (f->to_reply) {
		n = send_zeros(f, f->rcv.fd, f->to_reply);
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0)
			die("%s cannot reply: %m", f->to);
		f->to_reply -= n;
	}
	if (f->reply_blocked == !!f->to_reply)
		return;
	f->reply_blocked = !f->reply_blocked;
	poll_for(&f->rcv, f->reply_blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void put_idle(struct flow *f)
{
	struct flow **head = &f->workload->idle[f->pair];

	f->next_idle = *head;
	*head = f;
}

/* A message may already wait for the connection; otherwise the connection is idle. */
static void workload_connected(struct flow *f)
{
	watch(&f->snd, workload_send, f, EPOLLIN);
	if (f->to_send)
		send_some(f, EPOLLIN);
	else
		put_idle(f);
}

/* Close the sender's end. The other end closes when it has received the end of the data. */
static void workload_close(struct flow *f)
{
	struct tcp_info info;

	get_info(f->snd.fd, &info);
	f->workload->closed_retrans += info.tcpi_total_retrans;
	unwatch(&f->snd);
	unwatch(&f->timer);
	close(f->snd.fd);
	close(f->timer.fd);
	f->snd.fd = -1;
}

static void workload_done(struct flow *f)
{
	__u64 *row = f->workload->messages.v + f->row;

	row[2] = cheap_now() - row[0];
	if (f->workload->pool)
		put_idle(f);
	else
		workload_close(f);
}

static void workload_received(struct flow *f, size_t n)
{
	__u64 size;
	int lowat;

	if (n > f->to_come)
		die("workload: more data than was sent");
	f->to_come -= n;
	if (f->to_come) {
		expect(f);
		return;
	}
	if (!f->workload->reply) {
		workload_done(f);
		return;
	}
	size = f->workload->messages.v[f->row + 1];
	lowat = size < SINK_LOWAT ? size : SINK_LOWAT;
	SET(f->from, f->snd.fd, SOL_SOCKET, SO_RCVLOWAT, int, lowat);
	f->to_reply = size;
	f->reply_to_come = size;
	send_reply(f);
}

static void flow_setup(struct flow *f);

static struct flow *workload_open(struct workload *w, unsigned int from, unsigned int to,
				  __u64 at)
{
	struct flow *f = zalloc(sizeof(*f));

	if (!w->port)
		die("workload: no port is left for a connection: make the run shorter");
	f->workload = w;
	f->cc = w->cc;
	f->from = w->node[from].ns;
	f->to = w->node[to].ns;
	f->addr = w->node[to].addr;
	f->port = w->port++;
	f->pair = from * NODES + to;
	f->connect = at;
	flow_setup(f);
	return f;
}

/* Draw a size in bytes from the distribution, by linear interpolation. */
static __u64 workload_size(struct workload *w)
{
	double percent = 100 * erand48(w->rng), share;
	unsigned int i = 1;

	while (i < w->points - 1 && w->cdf[i].percent < percent)
		i++;
	share = (percent - w->cdf[i - 1].percent) / (w->cdf[i].percent - w->cdf[i - 1].percent);
	return 1 + w->cdf[i - 1].size + share * (w->cdf[i].size - w->cdf[i - 1].size);
}

/* Begin an on-time or off-time of a node. Its length is exponential. */
static void workload_phase(struct workload *w, unsigned int node, int is_off, __u64 start)
{
	w->node[node].is_off = is_off;
	w->node[node].until = start + 1 - (is_off ? w->off : w->on) * log(1 - erand48(w->phases));
}

/* May a node send the message that is due? */
static int workload_is_on(struct workload *w, unsigned int node)
{
	if (!w->on)
		return 1;
	while (w->node[node].until <= w->due)
		workload_phase(w, node, !w->node[node].is_off, w->node[node].until);
	return !w->node[node].is_off;
}

static void workload_message(struct workload *w, unsigned int from, unsigned int to, __u64 size)
{
	struct flow *f = w->idle[from * NODES + to];
	__u64 *row;

	if (f)
		w->idle[from * NODES + to] = f->next_idle;
	else
		f = workload_open(w, from, to, w->due);
	f->row = w->messages.len;
	row = push(&w->messages);
	row[0] = w->due;
	row[1] = size;
	row[3] = from + 1;
	row[4] = to + 1;
	f->to_send = size;
	f->to_come = size;
	expect(f);
	if (f->connected)
		send_some(f, EPOLLIN);
}

/* Send the message that is due, and draw the time of the next one. Times and sizes depend on the
 * seed alone, so that runs with different congestion controls can be compared message by message.
 */
static void workload_arrival(void *obj)
{
	struct workload *w = obj;
	unsigned int from = w->nodes * erand48(w->rng);
	unsigned int to = (w->nodes - w->group) * erand48(w->rng);
	__u64 size = workload_size(w);

	timer_ack(&w->timer);
	if (cheap_now() > w->due + w->late)
		die("workload: messages are over %llu us late: fewer hosts, less load, or late_us",
		    w->late / 1000);
	if (to >= from / w->group * w->group)
		to += w->group;
	if (workload_is_on(w, from))
		workload_message(w, from, to, size);
	w->due += 1 - w->every * log(1 - erand48(w->rng));
	if (w->due < w->stop)
		set_timer(&w->timer, workload_arrival, w, w->due, 0);
}

static void connected(void *obj)
{
	struct flow *f = obj;
	socklen_t len = sizeof(int);
	int err = 0;

	getsockopt(f->snd.fd, SOL_SOCKET, SO_ERROR, &err, &len);
	if (err)
		die("flow %s -> %s: connect: %s", f->from, f->to, strerror(err));
	check_cc(f, f->from, f->snd.fd);
	f->connected = 1;
	unwatch(&f->snd);
	if (f->incast)
		watch(&f->snd, incast_answer, f, EPOLLIN);
	else if (f->workload)
		workload_connected(f);
	else if (f->message && !f->every)
		set_timer(&f->timer, pingpong_start, f, f->start, 0);
	else
		set_timer(&f->timer, flow_start, f, f->start, 0);
}

static void flow_connect(void *obj)
{
	struct flow *f = obj;
	struct sockaddr_in sin = to_sockaddr(f->addr, f->port);

	timer_ack(&f->timer);
	f->snd.fd = open_stream(f, f->from);
	if (!f->ndp)
		SET(f->from, f->snd.fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, int, NOTSENT_LOWAT);
	if (f->incast || f->workload || f->message)
		SET(f->from, f->snd.fd, IPPROTO_TCP, TCP_NODELAY, int, 1);
	if (f->pace)
		SET(f->from, f->snd.fd, SOL_SOCKET, SO_MAX_PACING_RATE, __u64, f->pace);
	if (f->tos)
		SET(f->from, f->snd.fd, IPPROTO_IP, IP_TOS, int, f->tos);
	if (f->sndbuf)
		SET(f->from, f->snd.fd, SOL_SOCKET, SO_SNDBUF, int, f->sndbuf);
	if (connect(f->snd.fd, (void *)&sin, sizeof(sin)) && errno != EINPROGRESS)
		die("%s: connect to %s: %m", f->from, f->addr);
	watch(&f->snd, connected, f, EPOLLOUT);
}

/* The last byte of the last member's answer completes a request. */
static void incast_received(struct flow *f, size_t n)
{
	struct incast *inc = f->incast;
	__u64 *row;

	if (n > f->to_come)
		die("incast: more data than was sent");
	f->to_come -= n;
	inc->left -= n;
	expect(f);
	if (inc->left)
		return;
	row = push(&inc->requests);
	row[0] = inc->issued;
	row[1] = now() - inc->issued;
}

static void sink(void *obj)
{
	struct flow *f = obj;
	ssize_t n;

	n = recv(f->rcv.fd, NULL, 64 << 20, MSG_TRUNC | MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN)
		die("flow %s -> %s: receive: %m", f->from, f->to);
	if (n > 0)
		f->received += n;
	if (!n)
		unwatch(&f->rcv);
	if (!n && f->workload)
		close(f->rcv.fd);
	if (n > 0 && f->incast)
		incast_received(f, n);
	else if (n > 0 && f->workload)
		workload_received(f, n);
	else if (n > 0 && f->every)
		train_received(f, n);
	if (f->to_reply)
		send_reply(f);
}

static void accepted(void *obj)
{
	struct flow *f = obj;

	f->rcv.fd = accept4(f->listener.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (f->rcv.fd < 0)
		die("%s: accept: %m", f->to);
	check_cc(f, f->to, f->rcv.fd);
	if (f->message || f->workload)
		SET(f->to, f->rcv.fd, IPPROTO_TCP, TCP_NODELAY, int, 1);
	if (f->incast || f->workload || f->every)
		expect(f);
	else if (!f->message)
		SET(f->to, f->rcv.fd, SOL_SOCKET, SO_RCVLOWAT, int, SINK_LOWAT);
	watch(&f->rcv, f->message && !f->every ? pong_side : sink, f, EPOLLIN);
	unwatch(&f->listener);
	close(f->listener.fd);
}

/* Listen for the flow's connection and schedule the connect. The receiver uses the same congestion
 * control: with DCTCP the SYN-ACK must agree to ECN.
 */
static void flow_setup(struct flow *f)
{
	struct sockaddr_in sin = to_sockaddr(f->addr, f->port);

	f->ndp = !strcmp(f->cc, "ndp");
	f->listener.fd = open_stream(f, f->to);
	if (f->rcvbuf)
		SET(f->to, f->listener.fd, SOL_SOCKET, SO_RCVBUF, int, f->rcvbuf);
	if (f->ndp && f->incast)
		SET(f->to, f->listener.fd, SOL_SOCKET, SO_PRIORITY, int, f->incast->priority);
	if (bind(f->listener.fd, (void *)&sin, sizeof(sin)) || listen(f->listener.fd, 1))
		die("%s: cannot listen on %s:%u: %m", f->to, f->addr, f->port);
	watch(&f->listener, accepted, f, EPOLLIN);
	f->samples.columns = 5;
	f->samples.names = "received_bytes pacing_Bps srtt_us cwnd retrans";
	f->train.columns = 2;
	f->train.names = "sent_ns took_ns";
	set_timer(&f->timer, flow_connect, f, f->connect, 0);
	*last_flow = f;
	last_flow = &f->next;
}

/* Send the next request to all members, unless an earlier request is still under way. */
static void incast_tick(void *obj)
{
	struct incast *inc = obj;
	static const char request[REQUEST_SIZE];
	struct flow *f;

	timer_ack(&inc->timer);
	if (inc->left) {
		inc->skipped++;
		return;
	}
	inc->issued = now();
	inc->left = inc->members * inc->size;
	for (f = flows; f; f = f->next) {
		if (f->incast != inc)
			continue;
		if (!f->connected)
			die("incast: %s is not connected by the first request", f->from);
		f->to_come = inc->size;
		expect(f);
		if (send(f->rcv.fd, request, sizeof(request), 0) != sizeof(request))
			die("incast: %s cannot send a request: %m", f->to);
	}
}

static void get_info(int fd, struct tcp_info *info)
{
	socklen_t len = sizeof(*info);

	memset(info, 0, sizeof(*info));
	if (fd > 0 && getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &len))
		die("TCP_INFO: %m");
}

/* Bytes that the receiver has in order. NDP does not count bytes. */
static __u64 received_bytes(const struct flow *f)
{
	struct tcp_info rcv;
	int queued = 0;

	if (!f->ndp) {
		get_info(f->rcv.fd, &rcv);
		return rcv.tcpi_bytes_received;
	}
	if (f->rcv.fd > 0 && ioctl(f->rcv.fd, SIOCINQ, &queued))
		die("SIOCINQ: %m");
	return f->received + queued;
}

static void sample_flows(void *obj)
{
	struct tcp_info snd;
	struct flow *f;
	__u64 *row;

	timer_ack(obj);
	*push(&flow_times) = now();
	for (f = flows; f; f = f->next) {
		if (f->incast || f->workload)
			continue;
		get_info(f->connected ? f->snd.fd : -1, &snd);
		row = push(&f->samples);
		row[0] = received_bytes(f);
		row[1] = f->connected ? snd.tcpi_pacing_rate : 0;
		row[2] = snd.tcpi_rtt;
		row[3] = snd.tcpi_snd_cwnd;
		row[4] = snd.tcpi_total_retrans;
	}
}

/* --- Pings ------------------------------------------------------------ */

/* Send a ping. Intervals are random, 0.5 to 1.5 times the mean, so that pings do not keep in step
 * with other periodic events.
 */
static void ping_tick(void *obj)
{
	struct ping *p = obj;
	__u32 seq = p->samples.len / p->samples.columns;
	__u64 t, buf[8192] = { seq };

	timer_ack(&p->timer);
	t = now();
	push(&p->samples)[0] = t;
	if (send(p->client.fd, buf, p->size, 0) < 0 && errno != ENOBUFS)
		die("ping: send: %m");
	set_timer(&p->timer, ping_tick, p, t + p->every * (0.5 + erand48(p->rng)), 0);
}

static void ping_echo(void *obj)
{
	struct ping *p = obj;
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);
	__u64 buf[8192];
	ssize_t n;

	n = recvfrom(p->server.fd, buf, p->size, 0, (void *)&sin, &len);
	if (n > 0 && sendto(p->server.fd, buf, n, 0, (void *)&sin, len) < 0 && errno != ENOBUFS)
		die("ping: echo: %m");
}

static void ping_reply(void *obj)
{
	struct ping *p = obj;
	__u64 buf[8192], *row;

	if (recv(p->client.fd, buf, sizeof(buf), 0) < (ssize_t)sizeof(*buf))
		return;
	row = p->samples.v + buf[0] * p->samples.columns;
	row[1] = now() - row[0];
}

/* --- Queue sampler ---------------------------------------------------- */

static void queue_parse(struct queue *q, struct nlmsghdr *nlh)
{
	struct tcmsg *tcm = NLMSG_DATA(nlh);
	int len = TCA_PAYLOAD(nlh), slen;
	struct rtattr *rta, *st;
	__u64 *row = push(&q->samples);

	row[0] = now();
	for (rta = TCA_RTA(tcm); RTA_OK(rta, len); rta = RTA_NEXT(rta, len)) {
		if (rta->rta_type != TCA_STATS2)
			continue;
		slen = RTA_PAYLOAD(rta);
		for (st = RTA_DATA(rta); RTA_OK(st, slen); st = RTA_NEXT(st, slen)) {
			struct gnet_stats_queue *s = RTA_DATA(st);

			if (st->rta_type != TCA_STATS_QUEUE)
				continue;
			row[1] = s->backlog;
			row[2] = s->qlen;
			row[3] = s->drops;
			return;
		}
	}
	die("%s: no statistics in the answer for %s", q->ns, q->dev);
}

/* Take a sample of a queue. Without NLM_F_ECHO the kernel's answer would go only to listeners of
 * the multicast group.
 */
static void queue_tick(void *obj)
{
	struct queue *q = obj;
	struct {
		struct nlmsghdr nlh;
		struct tcmsg tcm;
	} req = {
		.nlh = { .nlmsg_len = sizeof(req), .nlmsg_type = RTM_GETQDISC,
			 .nlmsg_flags = NLM_F_REQUEST | NLM_F_ECHO },
		.tcm = { .tcm_ifindex = q->ifindex, .tcm_handle = q->handle },
	};
	union {
		struct nlmsghdr nlh;
		char room[8192];
	} reply;
	unsigned long long bytes, frames;
	char text[64] = "";
	__u64 *row;
	ssize_t n;

	timer_ack(&q->timer);
	if (send(q->nl, &req, sizeof(req), 0) < 0)
		die("%s: netlink: %m", q->ns);
	n = recv(q->nl, &reply, sizeof(reply), 0);
	if (n < 0 || !NLMSG_OK(&reply.nlh, (size_t)n) || reply.nlh.nlmsg_type != RTM_NEWQDISC)
		die("%s: no qdisc %x: on %s", q->ns, q->handle >> 16, q->dev);
	queue_parse(q, &reply.nlh);
	if (q->ring < 0)
		return;
	if (pread(q->ring, text, sizeof(text) - 1, 0) < 0 ||
	    sscanf(text, "%llu %llu", &bytes, &frames) != 2)
		die("%s: cannot read bytes and frames in the ring of %s: %m", q->ns, q->dev);
	row = q->samples.v + q->samples.len - q->samples.columns;
	row[1] += bytes;
	row[2] += frames;
}

/* --- Events ----------------------------------------------------------- */

static void write_file(const char *path, const char *value)
{
	FILE *file = fopen(path, "w");

	if (!file || fputs(value, file) < 0 || fclose(file))
		die("cannot write '%s' to %s: %m", value, path);
}

static void execute(void *obj)
{
	struct event *e = obj;
	struct timespec ts;
	__s64 ns;

	timer_ack(&e->timer);
	if (e->path) {
		write_file(e->path, e->value);
		return;
	}
	if (e->command) {
		if (system(e->command))
			die("'%s' failed", e->command);
		return;
	}
	clock_gettime(CLOCK_REALTIME, &ts);
	ns = ts.tv_sec * (__s64)NSEC_PER_SEC + ts.tv_nsec + e->by;
	ts.tv_sec = ns / (__s64)NSEC_PER_SEC;
	ts.tv_nsec = ns % (__s64)NSEC_PER_SEC;
	if (clock_settime(CLOCK_REALTIME, &ts))
		die("cannot set the clock: %m");
}

/* --- Plan ------------------------------------------------------------- */

static struct {
	const char *verb, *key[16];
	char *value[16];
	int n, number;
} line;

/* The value of a key of the current line, or @fallback. A key whose value was taken is removed, so
 * that unknown keys remain.
 */
static char *arg_or(const char *key, char *fallback)
{
	int i;

	for (i = 0; i < line.n; i++)
		if (line.key[i] && !strcmp(line.key[i], key)) {
			line.key[i] = NULL;
			return line.value[i];
		}
	return fallback;
}

static char *arg(const char *key)
{
	char *value = arg_or(key, NULL);

	if (!value)
		die("plan, line %d: %s needs %s=", line.number, line.verb, key);
	return value;
}

static __u64 to_u64(const char *value)
{
	__u64 n;
	char *end;

	n = strtoull(value, &end, 0);
	if (end == value || *end)
		die("plan, line %d: '%s' is not a number", line.number, value);
	return n;
}

static void plan_sysctl(void)
{
	char path[256];

	enter_ns(arg("ns"));
	snprintf(path, sizeof(path), "/proc/sys/%s", arg("key"));
	write_file(path, arg("value"));
}

static void plan_write(void)
{
	struct event *e = zalloc(sizeof(*e));
	char *at = arg_or("at", NULL);

	e->path = arg("path");
	e->value = arg("value");
	if (at)
		set_timer(&e->timer, execute, e, to_u64(at), to_u64(arg_or("every", "0")));
	else
		write_file(e->path, e->value);
}

static void plan_run(void)
{
	struct event *e = zalloc(sizeof(*e));

	e->command = arg("file");
	set_timer(&e->timer, execute, e, to_u64(arg("at")), 0);
}

static void plan_set_clock(void)
{
	struct event *e = zalloc(sizeof(*e));

	e->by = strtoll(arg("by"), NULL, 0);
	set_timer(&e->timer, execute, e, to_u64(arg("at")), 0);
}

static void plan_timestamp(void)
{
	struct hwtstamp_config config = { .rx_filter = HWTSTAMP_FILTER_ALL };
	struct ifreq ifr = { .ifr_data = (void *)&config };
	char *dev = arg("dev"), *ns = arg("ns");
	int fd = open_socket(ns, AF_INET, SOCK_DGRAM, 0);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev);
	if (ioctl(fd, SIOCSHWTSTAMP, &ifr) || config.rx_filter != HWTSTAMP_FILTER_ALL)
		die("%s: %s does not timestamp all frames that it receives: %m", ns, dev);
	close(fd);
}

static void plan_tso_off(void)
{
	struct ethtool_value off = { .cmd = ETHTOOL_STSO };
	struct ifreq ifr = { .ifr_data = (void *)&off };
	char *dev = arg("dev"), *ns = arg("ns");
	int fd = open_socket(ns, AF_INET, SOCK_DGRAM, 0);

	snprintf(ifr.ifr_name, sizeof(ifr.ifr_name), "%s", dev);
	if (ioctl(fd, SIOCETHTOOL, &ifr))
		die("%s: cannot turn TSO off on %s: %m", ns, dev);
	close(fd);
}

enum flow_kind { BULK, PINGPONG, TRAIN, MEMBER };

static void plan_flow(enum flow_kind kind, struct incast *inc)
{
	struct flow *f = zalloc(sizeof(*f));

	f->from = arg("from");
	f->to = arg("to");
	f->addr = arg("addr");
	f->port = to_u64(arg("port"));
	f->incast = inc;
	if (inc) {
		f->cc = inc->cc;
		inc->to = f->to;
		inc->members++;
	} else {
		f->cc = arg("cc");
		f->connect = to_u64(arg("connect"));
		f->start = to_u64(arg("start"));
		f->message = kind == BULK ? 0 : to_u64(arg("size"));
		f->every = kind == TRAIN ? to_u64(arg("every")) : 0;
		f->to_come = f->message;
		f->sndbuf = to_u64(arg_or("sndbuf", "0"));
		f->rcvbuf = to_u64(arg_or("rcvbuf", "0"));
		f->stop = to_u64(arg_or("stop", "0"));
		f->pace = to_u64(arg_or("pace", "0"));
		f->rate = to_u64(arg_or("rate", "0"));
		f->tos = to_u64(arg_or("tos", "0"));
	}
	flow_setup(f);
}

static void plan_incast(void)
{
	struct incast *inc = zalloc(sizeof(*inc));

	inc->cc = arg("cc");
	inc->to = "";
	inc->priority = to_u64(arg_or("priority", "0"));
	inc->start = to_u64(arg("start"));
	inc->every = to_u64(arg("every"));
	inc->size = to_u64(arg("size"));
	inc->requests.columns = 2;
	inc->requests.names = "issued_ns took_ns";
	if (!inc->every || !inc->size)
		die("plan, line %d: incast needs every > 0 and size > 0", line.number);
	set_timer(&inc->timer, incast_tick, inc, inc->start, inc->every);
	inc->next = incasts;
	incasts = inc;
}

static void read_cdf(struct workload *w, const char *path)
{
	FILE *file = fopen(path, "r");
	double size, percent, before = -1;

	if (!file)
		die("cannot read %s: %m", path);
	while (fscanf(file, "%lf %lf", &size, &percent) == 2) {
		if (w->points == CDF_POINTS || percent <= before)
			die("%s: at most %d lines are allowed, with rising percentages", path,
			    CDF_POINTS);
		w->cdf[w->points].size = size;
		w->cdf[w->points++].percent = percent;
		before = percent;
	}
	if (w->points < 2 || w->cdf[0].percent || before != 100)
		die("%s: percentages must begin with 0 and end with 100", path);
	fclose(file);
}

static void plan_workload(void)
{
	struct workload *w = zalloc(sizeof(*w));

	w->cc = arg("cc");
	read_cdf(w, arg("cdf"));
	w->every = to_u64(arg("every"));
	w->due = to_u64(arg("start"));
	w->stop = to_u64(arg("stop"));
	w->rng[0] = to_u64(arg("seed"));
	w->port = to_u64(arg("port"));
	w->pool = to_u64(arg("pool"));
	w->reply = to_u64(arg("reply"));
	w->group = to_u64(arg("group"));
	w->on = to_u64(arg_or("on", "0"));
	w->off = to_u64(arg_or("off", "0"));
	w->late = to_u64(arg("late"));
	w->phases[0] = w->rng[0];
	w->phases[1] = 1;		/* other numbers than those of rng */
	w->messages.columns = 5;
	w->messages.names = "arrived_ns size took_ns from to";
	if (!w->every || !w->group)
		die("plan, line %d: workload needs every > 0 and group > 0", line.number);
	set_timer(&w->timer, workload_arrival, w, w->due, 0);
	w->next = workloads;
	workloads = w;
}

/* Add a node to the workload, with connections to and from all earlier nodes. */
static void plan_node(struct workload *w)
{
	unsigned int i, n, new = w->nodes++;

	if (w->nodes > NODES)
		die("plan, line %d: a workload can have at most %d nodes", line.number, NODES);
	w->node[new].ns = arg("ns");
	w->node[new].addr = arg("addr");
	if (w->on)
		workload_phase(w, new, erand48(w->phases) * (w->on + w->off) >= w->on, w->due);
	for (i = 0; i < new / w->group * w->group; i++)
		for (n = 0; n < w->pool; n++) {
			workload_open(w, i, new, 0);
			workload_open(w, new, i, 0);
		}
}

static void plan_ping(void)
{
	char *from = arg("from"), *to = arg("to");
	struct sockaddr_in sin = to_sockaddr(arg("addr"), to_u64(arg("port")));
	struct ping *p = zalloc(sizeof(*p));
	int tos = to_u64(arg("tos"));

	p->every = to_u64(arg("every"));
	p->size = to_u64(arg("size"));
	p->rng[0] = to_u64(arg("seed"));
	p->samples.columns = 2;
	p->samples.names = "sent_ns rtt_ns";
	if (!p->every || p->size < 8 || p->size > 65507)
		die("plan, line %d: ping needs every > 0 and 8 <= size <= 65507", line.number);
	p->server.fd = open_socket(to, AF_INET, SOCK_DGRAM, 0);
	p->client.fd = open_socket(from, AF_INET, SOCK_DGRAM, 0);
	if (bind(p->server.fd, (void *)&sin, sizeof(sin)))
		die("%s: cannot bind the socket that answers pings: %m", to);
	if (connect(p->client.fd, (void *)&sin, sizeof(sin)))
		die("%s: cannot connect the socket that sends pings: %m", from);
	SET(to, p->server.fd, IPPROTO_IP, IP_TOS, int, to_u64(arg("echo_tos")));
	SET(from, p->client.fd, IPPROTO_IP, IP_TOS, int, tos);
	watch(&p->server, ping_echo, p, EPOLLIN);
	watch(&p->client, ping_reply, p, EPOLLIN);
	set_timer(&p->timer, ping_tick, p, to_u64(arg("start")), 0);
	p->next = pings;
	pings = p;
}

static void plan_queue(void)
{
	struct queue *q = zalloc(sizeof(*q));
	char *ring;

	q->ns = arg("ns");
	q->dev = arg("dev");
	q->handle = strtoul(arg("handle"), NULL, 16) << 16;
	q->nl = open_socket(q->ns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
	q->ifindex = if_nametoindex(q->dev);
	if (!q->ifindex)
		die("%s: no device %s", q->ns, q->dev);
	ring = arg_or("ring", NULL);
	q->ring = ring ? open(ring, O_RDONLY | O_CLOEXEC) : -1;
	if (ring && q->ring < 0)
		die("cannot open %s: %m", ring);
	q->samples.columns = 4;
	q->samples.names = "t_ns bytes packets drops";
	set_timer(&q->timer, queue_tick, q, 0, to_u64(arg("every")));
	q->next = queues;
	queues = q;
}

static void done(void *obj);

static void plan_line(char *text)
{
	char *word, *save = NULL, *eq;
	int i;

	line.number++;
	line.n = 0;
	line.verb = strtok_r(text, "\n ", &save);
	if (!line.verb || line.verb[0] == '#')
		return;
	while ((word = strtok_r(NULL, "\n ", &save)) && line.n < 16) {
		eq = strchr(word, '=');
		if (!eq)
			die("plan, line %d: '%s' is not key=value", line.number, word);
		*eq = '\0';
		line.key[line.n] = word;
		line.value[line.n++] = eq + 1;
	}
	if (!strcmp(line.verb, "end"))
		set_timer(&finish, done, NULL, to_u64(arg("at")), 0);
	else if (!strcmp(line.verb, "sysctl"))
		plan_sysctl();
	else if (!strcmp(line.verb, "tso_off"))
		plan_tso_off();
	else if (!strcmp(line.verb, "timestamp"))
		plan_timestamp();
	else if (!strcmp(line.verb, "write"))
		plan_write();
	else if (!strcmp(line.verb, "run"))
		plan_run();
	else if (!strcmp(line.verb, "set_clock"))
		plan_set_clock();
	else if (!strcmp(line.verb, "bulk"))
		plan_flow(BULK, NULL);
	else if (!strcmp(line.verb, "pingpong"))
		plan_flow(PINGPONG, NULL);
	else if (!strcmp(line.verb, "train"))
		plan_flow(TRAIN, NULL);
	else if (!strcmp(line.verb, "incast"))
		plan_incast();
	else if (!strcmp(line.verb, "member") && incasts)
		plan_flow(MEMBER, incasts);
	else if (!strcmp(line.verb, "workload"))
		plan_workload();
	else if (!strcmp(line.verb, "node") && workloads)
		plan_node(workloads);
	else if (!strcmp(line.verb, "ping"))
		plan_ping();
	else if (!strcmp(line.verb, "queue"))
		plan_queue();
	else if (!strcmp(line.verb, "flows"))
		set_timer(&sampler, sample_flows, &sampler, 0, to_u64(arg("every")));
	else
		die("plan, line %d: '%s' is unknown, or lacks an incast or workload before it",
		    line.number, line.verb);
	for (i = 0; i < line.n; i++)
		if (line.key[i])
			die("plan, line %d: %s has no key %s=", line.number, line.verb,
			    line.key[i]);
}

/* The plan stays in memory, because flows keep pointers to names in it. */
static void read_plan(const char *path)
{
	FILE *file = fopen(path, "r");
	char *text = NULL;
	size_t room = 0;

	if (!file)
		die("cannot read the plan %s: %m", path);
	while (getline(&text, &room, file) > 0) {
		plan_line(text);
		text = NULL;
		room = 0;
	}
	fclose(file);
	if (!finish.ready)
		die("the plan %s has no command end", path);
}

/* --- Result ----------------------------------------------------------- */

/* Write a series as "NAME_columns":["a","b"],"NAME":[[1,2],...]. */
static void put_series(FILE *out, const char *name, const struct series *s)
{
	const char *sep = "", *word = s->names;
	unsigned int column;
	size_t i;

	fprintf(out, "\"%s_columns\":[", name);
	for (column = 0; column < s->columns; column++) {
		fprintf(out, "%s\"%.*s\"", sep, (int)strcspn(word, " "), word);
		word += strcspn(word, " ") + 1;
		sep = ",";
	}
	fprintf(out, "],\"%s\":[", name);
	for (i = 0; i < s->len; i++) {
		column = i % s->columns;
		if (!column)
			fputs(i ? ",[" : "[", out);
		fprintf(out, column ? ",%llu" : "%llu", s->v[i]);
		if (column == s->columns - 1)
			fputc(']', out);
	}
	fputc(']', out);
}

static void put_flows(FILE *out)
{
	const char *sep = "";
	struct flow *f;

	fputs("\"flows\":[", out);
	for (f = flows; f; f = f->next) {
		if (f->incast || f->workload)
			continue;
		if (f->rcv.fd <= 0)
			die("flow %s -> %s:%u never connected%s", f->from, f->to, f->port,
			    f->connected ? ": the receiver did not accept it" : "");
		fprintf(out, "%s\n{\"from\":\"%s\",\"to\":\"%s\",", sep, f->from, f->to);
		fprintf(out, "\"port\":%u,\"cc\":\"%s\",", f->port, f->cc);
		fprintf(out, "\"start_ns\":%llu,\"stop_ns\":%llu,", f->start, f->stop);
		put_series(out, "samples", &f->samples);
		if (f->every) {
			fputc(',', out);
			put_series(out, "train", &f->train);
		}
		fputs("}", out);
		sep = ",";
	}
	fputs("],\n", out);
}

/* A ping that was lost or still under way at the end has an RTT of 0. */
static void put_pings(FILE *out)
{
	const char *sep = "";
	struct ping *p;

	fputs("\"pings\":[", out);
	for (p = pings; p; p = p->next) {
		fprintf(out, "%s\n{", sep);
		put_series(out, "samples", &p->samples);
		fputs("}", out);
		sep = ",";
	}
	fputs("],\n", out);
}

static void put_queues(FILE *out)
{
	const char *sep = "";
	struct queue *q;

	fputs("\"queues\":[", out);
	for (q = queues; q; q = q->next) {
		fprintf(out, "%s\n{\"ns\":\"%s\",\"dev\":\"%s\",", sep, q->ns, q->dev);
		put_series(out, "samples", &q->samples);
		fputs("}", out);
		sep = ",";
	}
	fputs("],\n", out);
}

static void put_incasts(FILE *out)
{
	const char *sep = "";
	struct incast *inc;

	fputs("\"incasts\":[", out);
	for (inc = incasts; inc; inc = inc->next) {
		fprintf(out, "%s\n{\"to\":\"%s\",", sep, inc->to);
		fprintf(out, "\"members\":%u,\"size\":%llu,", inc->members, inc->size);
		fprintf(out, "\"skipped\":%llu,\"unfinished_since_ns\":%llu,", inc->skipped,
			inc->left ? inc->issued : 0);
		put_series(out, "requests", &inc->requests);
		fputs("}", out);
		sep = ",";
	}
	fputs("],\n", out);
}

/* A message that was still under way at the end has the completion time (took_ns) 0. */
static void put_workloads(FILE *out)
{
	unsigned long connections, retrans;
	const char *sep = "";
	struct workload *w;
	struct tcp_info info;
	struct flow *f;

	fputs("\"workloads\":[", out);
	for (w = workloads; w; w = w->next) {
		connections = 0;
		retrans = w->closed_retrans;
		for (f = flows; f; f = f->next) {
			if (f->workload != w || !f->connected)
				continue;
			get_info(f->snd.fd, &info);
			retrans += info.tcpi_total_retrans;
			connections++;
		}
		fprintf(out, "%s\n{\"connections\":%lu,\"retrans\":%lu,", sep, connections,
			retrans);
		put_series(out, "messages", &w->messages);
		fputs("}", out);
		sep = ",";
	}
	fputs("]}\n", out);
}

static void done(void *obj)
{
	FILE *out = fopen(result_path, "w");

	if (!out)
		die("cannot write %s: %m", result_path);
	fprintf(out, "{\"end_ns\":%llu,\"zero_ns\":%llu,\n", now(), t0);
	put_series(out, "flow_times", &flow_times);
	fputs(",\n", out);
	put_flows(out);
	put_pings(out);
	put_queues(out);
	put_incasts(out);
	put_workloads(out);
	if (fclose(out))
		die("cannot write %s: %m", result_path);
	exit(0);
}

int main(int argc, char **argv)
{
	struct rlimit files = { 1 << 16, 1 << 16 };
	struct epoll_event ev[64];
	int i, n;

	if (argc != 3)
		die("usage: traffic PLAN RESULT");
	result_path = argv[2];
	epfd = epoll_create1(EPOLL_CLOEXEC);
	zeros = memfd_create("zeros", MFD_CLOEXEC);
	if (epfd < 0 || zeros < 0 || ftruncate(zeros, CHUNK) ||
	    setrlimit(RLIMIT_NOFILE, &files))
		die("cannot start: %m");
	set_timer(&far, never, NULL, FAR_NS, 0);
	t0 = now() + SETTLE_NS;
	read_plan(argv[1]);
	for (;;) {
		n = epoll_wait(epfd, ev, 64, -1);
		for (i = 0; i < n; i++) {
			struct source *src = ev[i].data.ptr;

			if (src->ready)
				src->ready(src->obj);
		}
	}
}
