// SPDX-License-Identifier: GPL-2.0
/*
 * The kernel's own tracepoints, which modules may join, found by name.
 *
 * Why tracepoints: neither TCP nor the receive path calls a module for each packet of every
 * connection with the packet at hand. A congestion control sees its own connections only,
 * and no packet; a netfilter hook runs before the socket is known, for every packet of a
 * namespace; a BPF program cannot call a module's functions without kfuncs of its own,
 * which 6.1 does not offer. tcp_probe has the socket and the packet; the tracepoints of
 * the receive path run before anything else has delayed the packet.
 *
 * What the modules rely on: the name, the arguments, and the place. Tracepoints are no
 * stable interface, and their symbols are not exported, so that register_trace_NAME() cannot
 * be used and the look-up by name is not checked by the compiler. Therefore:
 *
 * - The name: a tracepoint that is gone is not found. The feature is refused with a
 *   message, or, in tcp_timely, RTTs end when TCP processes the ACK.
 * - The arguments: each file that has a probe passes it to check_trace_callback_type_NAME()
 *   of the header that declares the tracepoint. Another argument, or another const, is then
 *   an error of the build, under -Werror or not. A probe of another type would be a trap
 *   with CONFIG_CFI_CLANG, and silent corruption without.
 * - The header is the one of the running kernel: the module loader compares the module's
 *   version magic with the kernel's. struct tracepoint does not record the number of
 *   arguments, so that nothing more can be checked at load.
 * - The place: the selftests compare departures, arrivals and RTTs with exact ones.
 */

#include <linux/export.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include <net/timely_tracepoint.h>

/**
 * struct timely_sought - a tracepoint that is looked for
 * @name: its name
 * @found: the tracepoint, or NULL
 */
struct timely_sought {
	const char *name;
	struct tracepoint *found;
};

static void timely_compare_tracepoint(struct tracepoint *tracepoint, void *arg)
{
	struct timely_sought *sought = arg;

	if (!strcmp(tracepoint->name, sought->name))
		sought->found = tracepoint;
}

/**
 * timely_tracepoint_find() - find one of the kernel's own tracepoints
 * @name: its name
 *
 * The caller checks its probe's type with check_trace_callback_type_NAME().
 *
 * Return: the tracepoint, NULL if this kernel has none of that name.
 */
struct tracepoint *timely_tracepoint_find(const char *name)
{
	struct timely_sought sought = { .name = name };

	for_each_kernel_tracepoint(timely_compare_tracepoint, &sought);
	return sought.found;
}
EXPORT_SYMBOL_GPL(timely_tracepoint_find);
