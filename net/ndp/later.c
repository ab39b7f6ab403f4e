// SPDX-License-Identifier: GPL-2.0
/*
 * Answers to DATA packets that wait until the driver's poll is over. A driver delivers the packets
 * of an interrupt in a row, and one answer may do for several of them, see ndp_answer(). Each CPU
 * has a list of connections with an answer that waits, and a tasklet, which runs after the softirq
 * that received the packets.
 *
 * The locks are taken in the order: lock of the connection, lock of the list.
 */

#include <linux/interrupt.h>
#include <linux/percpu.h>

#include "ndp.h"

/**
 * struct ndp_cpu - the connections with an answer that waits
 * @lock: protects @conns: softirqs of a CPU may preempt each other in a kernel with PREEMPT_RT, and
 *	the tasklet of a CPU that went offline runs on another one
 * @conns: list of connections, by their member later_node
 * @tasklet: sends the answers
 */
struct ndp_cpu {
	spinlock_t lock; /* of @conns */
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
	spin_lock(&cpu->lock);
	list_add_tail(&ndp->later_node, &cpu->conns);
	spin_unlock(&cpu->lock);
	tasklet_schedule(&cpu->tasklet);
}

/* Takes the first connection from a list. Its node is free then, before ndp_later_answer() lets
 * another CPU use it. Return: NULL if the list is empty.
 */
static struct sock *ndp_later_next(struct ndp_cpu *cpu)
{
	struct ndp_sock *ndp;

	spin_lock(&cpu->lock);
	ndp = list_first_entry_or_null(&cpu->conns, struct ndp_sock, later_node);
	if (ndp)
		list_del(&ndp->later_node);
	spin_unlock(&cpu->lock);
	return ndp ? ndp_sock_of(ndp) : NULL;
}

static void ndp_later_run(struct tasklet_struct *tasklet)
{
	struct ndp_cpu *cpu = from_tasklet(cpu, tasklet, tasklet);
	struct sock *sk;

	while ((sk = ndp_later_next(cpu))) {
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
		spin_lock_init(&cpu->lock);
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
