// SPDX-License-Identifier: GPL-2.0
/*
 * Sets up qdiscs and sends traffic for smoke-init.sh, whose guest has busybox, but no tc.
 *
 *	qdisc set DEVICE KIND		make KIND the root qdisc, with its defaults
 *	qdisc onramp DEVICE NS		make timely the root qdisc, with On-Ramp's threshold
 *					NS and one-way delays by the clocks of both ends
 *	qdisc del DEVICE		delete the qdisc at the root
 *	qdisc stats DEVICE		print figures of the root qdisc as KEY=NUMBER
 *	qdisc flood SECONDS		send UDP packets over loopback from every processor:
 *					with a pacing rate, with a departure time, with a
 *					departure time of another clock, and plain
 *
 * The program uses netlink without a library, so that it can be linked statically.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/gen_stats.h>
#include <linux/net_tstamp.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/timely.h>

#define SOCKETS 12	/* sockets of each processor */
#define NSEC_PER_SEC 1000000000ULL

struct request {
	struct nlmsghdr nlh;
	struct tcmsg tcm;
	char attrs[64];
};

static int give_up(const char *what)
{
	fprintf(stderr, "qdisc: %s: %s\n", what, strerror(errno));
	return 1;
}

/* ---- netlink ---- */

static int ask(struct request *req, const char *device, int type, int flags)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	int nl = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);

	req->nlh.nlmsg_type = type;
	req->nlh.nlmsg_flags = NLM_F_REQUEST | flags;
	req->tcm.tcm_ifindex = if_nametoindex(device);
	req->tcm.tcm_parent = TC_H_ROOT;
	if (!req->nlh.nlmsg_len)
		req->nlh.nlmsg_len = NLMSG_LENGTH(sizeof(req->tcm));
	if (nl < 0 || !req->tcm.tcm_ifindex ||
	    sendto(nl, req, req->nlh.nlmsg_len, 0, (void *)&kernel, sizeof(kernel)) < 0)
		exit(give_up(device));
	return nl;
}

static int acknowledged(int nl, const char *what)
{
	char buffer[4096];
	struct nlmsghdr *nlh = (void *)buffer;
	struct nlmsgerr *err = NLMSG_DATA(nlh);

	if (recv(nl, buffer, sizeof(buffer), 0) < 0 || nlh->nlmsg_type != NLMSG_ERROR)
		return give_up(what);
	errno = -err->error;
	return errno ? give_up(what) : 0;
}

/* The length of a nested attribute is set by nest_end(). */
static struct rtattr *put(struct request *req, int type, const void *data, size_t bytes)
{
	struct rtattr *attr = (void *)((char *)req + req->nlh.nlmsg_len);

	attr->rta_type = type;
	attr->rta_len = RTA_LENGTH(bytes);
	memcpy(RTA_DATA(attr), data, bytes);
	req->nlh.nlmsg_len += RTA_ALIGN(attr->rta_len);
	return attr;
}

static void nest_end(struct request *req, struct rtattr *nest)
{
	nest->rta_len = (char *)req + req->nlh.nlmsg_len - (char *)nest;
}

/* @onramp_ns: threshold of On-Ramp; 0 sets the qdisc's defaults */
static int set_qdisc(const char *device, const char *kind, __u32 onramp_ns)
{
	struct request req = { .nlh.nlmsg_len = NLMSG_LENGTH(sizeof(req.tcm)) };
	const __u8 owd = TIMELY_OWD_ABSOLUTE;
	struct rtattr *nest;

	if (strlen(kind) >= IFNAMSIZ)
		return 2;
	put(&req, TCA_KIND, kind, strlen(kind) + 1);
	if (onramp_ns) {
		nest = put(&req, TCA_OPTIONS, NULL, 0);
		put(&req, TCA_TIMELY_ONRAMP, &onramp_ns, sizeof(onramp_ns));
		put(&req, TCA_TIMELY_ONRAMP_OWD, &owd, sizeof(owd));
		nest_end(&req, nest);
	}
	return acknowledged(ask(&req, device, RTM_NEWQDISC,
				NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE), kind);
}

static int del_qdisc(const char *device)
{
	struct request req = {};

	return acknowledged(ask(&req, device, RTM_DELQDISC, NLM_F_ACK), "del");
}

static void show_app(const struct rtattr *attr)
{
	struct tc_timely_stats stats = {};
	size_t bytes = RTA_PAYLOAD(attr);

	memcpy(&stats, RTA_DATA(attr), bytes < sizeof(stats) ? bytes : sizeof(stats));
	printf("throttled=%llu\nwrong_clock=%llu\nflows=%u\n", stats.throttled,
	       stats.wrong_clock, stats.flows);
	printf("departures=%llu\n", stats.departures);
	printf("onramp_signals=%llu\nonramp_pauses=%llu\nonramp_paused_us=%llu\n",
	       stats.onramp_signals, stats.onramp_pauses, stats.onramp_paused_ns / 1000);
}

static void show_stats(struct rtattr *stats2)
{
	struct rtattr *attr = RTA_DATA(stats2);
	int left = RTA_PAYLOAD(stats2);

	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		const struct gnet_stats_queue *queue = RTA_DATA(attr);

		if (attr->rta_type == TCA_STATS_QUEUE)
			printf("qlen=%u\n", queue->qlen);
		if (attr->rta_type == TCA_STATS_APP)
			show_app(attr);
	}
}

static void show_root(struct nlmsghdr *nlh, int index)
{
	struct tcmsg *tcm = NLMSG_DATA(nlh);
	struct rtattr *attr = (void *)(tcm + 1);
	int left = nlh->nlmsg_len - NLMSG_LENGTH(sizeof(*tcm));

	if (nlh->nlmsg_type != RTM_NEWQDISC || tcm->tcm_ifindex != index ||
	    tcm->tcm_parent != TC_H_ROOT)
		return;
	for (; RTA_OK(attr, left); attr = RTA_NEXT(attr, left)) {
		if (attr->rta_type == TCA_KIND)
			printf("kind=%s\n", (char *)RTA_DATA(attr));
		if (attr->rta_type == TCA_STATS2)
			show_stats(attr);
	}
}

static int stats_of(const char *device)
{
	struct request req = {};
	int nl = ask(&req, device, RTM_GETQDISC, NLM_F_DUMP);
	static char buffer[1 << 16];

	for (;;) {
		struct nlmsghdr *nlh = (void *)buffer;
		int left = recv(nl, buffer, sizeof(buffer), 0);

		if (left <= 0)
			return give_up("stats");
		for (; NLMSG_OK(nlh, (unsigned int)left); nlh = NLMSG_NEXT(nlh, left)) {
			if (nlh->nlmsg_type == NLMSG_DONE)
				return 0;
			show_root(nlh, req.tcm.tcm_ifindex);
		}
	}
}

/* ---- flood ---- */

static __u64 now_ns(clockid_t clock)
{
	struct timespec at;

	clock_gettime(clock, &at);
	return at.tv_sec * NSEC_PER_SEC + at.tv_nsec;
}

struct source {
	int sock;
	clockid_t clock;	/* of the departure time; the kernel is told CLOCK_MONOTONIC */
	__u64 ahead_ns;		/* ns from now until departure; 0 for none */
};

/* The flood sends packets of every kind in turn. */
static struct source source_to(const struct sockaddr_in *sink, int number)
{
	struct source s = { socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0), CLOCK_MONOTONIC, 0 };
	struct sock_txtime txtime = { .clockid = CLOCK_MONOTONIC };
	__u64 rate = 1000000 * (number + 1);

	switch (number % 4) {
	case 0:
		setsockopt(s.sock, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate));
		break;
	case 1:
		s.ahead_ns = 1000000 * number;
		break;
	case 2:
		s.clock = CLOCK_TAI;
		s.ahead_ns = 1;
		break;
	}
	if (s.sock < 0 || connect(s.sock, (const void *)sink, sizeof(*sink)) < 0 ||
	    (s.ahead_ns && setsockopt(s.sock, SOL_SOCKET, SO_TXTIME, &txtime, sizeof(txtime)) < 0))
		exit(give_up("source"));
	return s;
}

static int send_one(const struct source *s)
{
	static char data[1000];
	char control[CMSG_SPACE(sizeof(__u64))] = {};
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	__u64 departure_ns = now_ns(s->clock) + s->ahead_ns;
	struct cmsghdr *cmsg;

	if (s->ahead_ns) {
		msg.msg_control = control;
		msg.msg_controllen = sizeof(control);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_TXTIME;
		cmsg->cmsg_len = CMSG_LEN(sizeof(departure_ns));
		memcpy(CMSG_DATA(cmsg), &departure_ns, sizeof(departure_ns));
	}
	return sendmsg(s->sock, &msg, 0) > 0;
}

/* The flood of one processor, until the time is over. */
static int flood_from(int cpu, int seconds)
{
	struct sockaddr_in sink = { AF_INET, 0, { htonl(INADDR_LOOPBACK) }, {} };
	socklen_t length = sizeof(sink);
	struct source sources[SOCKETS];
	__u64 end = now_ns(CLOCK_MONOTONIC) + seconds * NSEC_PER_SEC;
	long sent = 0, got = 0;
	char data[2000];
	cpu_set_t set;
	int in = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0 ||
	    bind(in, (void *)&sink, sizeof(sink)) < 0 ||
	    getsockname(in, (void *)&sink, &length) < 0)
		return give_up("sink");
	for (int i = 0; i < SOCKETS; i++)
		sources[i] = source_to(&sink, i);
	while (now_ns(CLOCK_MONOTONIC) < end) {
		for (int i = 0; i < SOCKETS; i++)
			sent += send_one(&sources[i]);
		while (recv(in, data, sizeof(data), 0) > 0)
			got++;
		usleep(100);
	}
	/* Count the packets that wait for their departure time. */
	usleep(100000);
	while (recv(in, data, sizeof(data), 0) > 0)
		got++;
	printf("CPU %d: sent %ld, received %ld\n", cpu, sent, got);
	return got < 100;
}

static int flood(int seconds)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int failed = cpus < 2;

	for (int cpu = 0; cpu < cpus; cpu++) {
		fflush(stdout);
		if (!fork())
			exit(flood_from(cpu, seconds));
	}
	for (int status; wait(&status) > 0; )
		failed |= status != 0;
	return failed;
}

int main(int argc, char **argv)
{
	/* A process that hangs has failed. */
	alarm(60);
	if (argc == 4 && strcmp(argv[1], "set") == 0)
		return set_qdisc(argv[2], argv[3], 0);
	if (argc == 4 && strcmp(argv[1], "onramp") == 0)
		return set_qdisc(argv[2], "timely", atoi(argv[3]));
	if (argc == 3 && strcmp(argv[1], "del") == 0)
		return del_qdisc(argv[2]);
	if (argc == 3 && strcmp(argv[1], "stats") == 0)
		return stats_of(argv[2]);
	if (argc == 3 && strcmp(argv[1], "flood") == 0)
		return flood(atoi(argv[2]));
	fputs("usage: qdisc set DEVICE KIND | onramp DEVICE NS | del DEVICE |\n"
	      "       stats DEVICE | flood SECONDS\n", stderr);
	return 2;
}
