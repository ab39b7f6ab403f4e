// SPDX-License-Identifier: GPL-2.0
/*
 * Finds tracepoints of the kernel by name, so that modules can register tracepoint probes.
 *
 * Why tracepoints: every other hook lacks something. A congestion control is called for its own
 * connections only, and gets no packet. A netfilter hook runs after GRO has merged packets and
 * before the socket is known. A BPF program must be loaded from user space, and can call functions
 * of a module only as kfuncs. The tracepoint tcp_probe passes the socket and the packet of each
 * ACK. The tracepoints of the receive path run before anything else has delayed the packet.
 *
 * What the modules rely on: the name, the arguments, and the place of a tracepoint. Tracepoints are
 * no stable interface. The symbols of these tracepoints are not exported, so register_trace_NAME()
 * cannot be used, and the compiler does not check a lookup by name. Therefore:
 *
 * - The name: a tracepoint that the kernel has no longer is not found. The feature is then refused
 *   with a message, or, in tcp_timely, RTTs end when TCP processes the ACK.
 * - The arguments: each file that has a tracepoint probe passes the probe to
 *   check_trace_callback_type_NAME() of the header that declares the tracepoint. If the arguments
 *   differ, also in a const only, the build fails, with or without -Werror. Otherwise the kernel
 *   would call a function of the wrong type, which stops a kernel with CONFIG_CFI_CLANG and
 *   corrupts data on other kernels.
 * - The header is that of the running kernel: the module loader compares the module's version magic
 *   with the kernel's. struct tracepoint does not record the number of arguments, so nothing more
 *   can be checked when the module is loaded.
 * - The place: selftests compare departures, arrivals and RTTs with the times on the wire.
 */

#include <linux/export.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include <net/timely_tracepoint.h>

/**
 * struct timely_sought - search for a tracepoint
 * @name: name of the tracepoint
 * @found: the tracepoint; NULL if none has the name
 */
struct timely_sought {
	const char *name;
	struct tracepoint *found;
};

/* Called for each tracepoint of the kernel: stores the one whose name is sought. */
static void timely_compare_tracepoint(struct tracepoint *tracepoint, void *arg)
{
	struct timely_sought *sought = arg;

	if (!strcmp(tracepoint->name, sought->name))
		sought->found = tracepoint;
}

/**
 * timely_tracepoint_find() - find a tracepoint of the kernel by its name
 * @name: name of the tracepoint
 *
 * The caller checks the type of its tracepoint probe with check_trace_callback_type_NAME().
 *
 * Return: the tracepoint; NULL if the running kernel has none of this name.
 */
struct tracepoint *timely_tracepoint_find(const char *name)
{
	struct timely_sought sought = { .name = name };

	for_each_kernel_tracepoint(timely_compare_tracepoint, &sought);
	return sought.found;
}
EXPORT_SYMBOL_GPL(timely_tracepoint_find);
