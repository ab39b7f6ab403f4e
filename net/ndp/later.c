// SPDX-License-Identifier: GPL-2.0
/*
 * Answers to DATA packets that wait until the driver's poll is over. A driver delivers the packets
 * of an interrupt in a row, and one answer may do for several of them, see ndp_answer(). Each CPU
 * has a list of connections with an answer that waits, and a tasklet, which runs after the softirq
 * that received the packets.
 *
 * Only the CPU itself uses its list, in softirq. When the CPU goes offline, its tasklet runs on
 * another one, and the CPU does not add connections any more.
 */

#include <linux/interrupt.h>
#include <linux/percpu.h>

#include "ndp.h"

/**
 * struct ndp_cpu - the connections with an answer that waits
 * @conns: list of connections, by their member later_node
 * @tasklet: sends the answers
 */
struct ndp_cpu {
	struct list_head conns;
	struct tasklet_struct tasklet;
};

static DEFINE_PER_CPU(struct ndp_cpu, ndp_cpus);

/* Sends the answer of a connection; see ndp_later_init(). */
static void (*ndp_later_answer)(struct sock *sk) __ro_after_init;

/**
 * ndp_later() - send the answer of a connection when the driver's poll is over
 * @sk: the socket, under the connection's lock, with bottom halves disabled
 */
void ndp_later(struct sock *sk)
{
	struct ndp_cpu *cpu = this_cpu_ptr(&ndp_cpus);
	struct ndp_sock *ndp = ndp_sk(sk);

	if (ndp->later)
		return;
	ndp->later = true;
	sock_hold(sk);
	list_add_tail(&ndp->later_node, &cpu->conns);
	tasklet_schedule(&cpu->tasklet);
}

static void ndp_later_run(struct tasklet_struct *tasklet)
{
	struct ndp_cpu *cpu = from_tasklet(cpu, tasklet, tasklet);
	struct ndp_sock *ndp;

	while ((ndp = list_first_entry_or_null(&cpu->conns, struct ndp_sock, later_node))) {
		struct sock *sk = ndp_sock_of(ndp);

		/* The node is free before the next call lets another CPU use it. */
		list_del(&ndp->later_node);
		ndp_later_answer(sk);
		sock_put(sk);
	}
}

/**
 * ndp_later_init() - initialise the lists, before there are connections
 * @answer: called in softirq to send the answer of a connection
 */
void __init ndp_later_init(void (*answer)(struct sock *sk))
{
	struct ndp_cpu *cpu;
	int i;

	ndp_later_answer = answer;
	for_each_possible_cpu(i) {
		cpu = per_cpu_ptr(&ndp_cpus, i);
		INIT_LIST_HEAD(&cpu->conns);
		tasklet_setup(&cpu->tasklet, ndp_later_run);
	}
}

/**
 * ndp_later_exit() - wait for tasklets that still run; no socket is left
 */
void ndp_later_exit(void)
{
	int i;

	for_each_possible_cpu(i)
		tasklet_kill(&per_cpu_ptr(&ndp_cpus, i)->tasklet);
}
