// SPDX-License-Identifier: GPL-2.0
/*
 * Print Documentation/parameters.md from the table that the module uses, so
 * that the two can not differ.
 */

#include <stdio.h>

#include <net/timely_qdisc.h>
#include <net/timely_tenant.h>
#include <timely/engine/rate.h>

static const char *text_of(u32 value)
{
	static char text[16];

	if (value == TIMELY_AUTO)
		return TIMELY_AUTO_TEXT;
	snprintf(text, sizeof(text), "%u", value);
	return text;
}

#define LIMIT_ROW(name, limit, doc) \
	"| `max_" #name "` | 0 ... 1073741824 | " #limit " | " doc " |\n"

#define ROW(field, attr, bits, min, max, initial, unit, doc) \
	"| `" #field "` | " unit " | " #min " ... " #max " | " #initial " | " doc " |\n"

int main(void)
{
	u32 i, preset;

	puts("# Parameters\n\n"
	     "<!-- made by `make docs` from net/timely/engine/params.h,\n"
	     "     net/timely/engine/params.c, include/net/timely_qdisc.h and include/net/timely_tenant.h;\n"
	     "     do not edit -->\n\n"
	     "## Parameters of tcp_timely\n\n"
	     "Of each network namespace: `sysctl -w net.ipv4.timely.t_low_ns=100000`, or for all\n"
	     "at once `sysctl -w net.ipv4.timely.preset=paper`. Connections follow with their next\n"
	     "ACK. Namespaces start with what the module was loaded with, for example\n"
	     "`modprobe tcp_timely preset=paper t_low_ns=100000`, to be read in\n"
	     "`/sys/module/tcp_timely/parameters/`. A value out of range is refused, and the\n"
	     "kernel's log says which and why. What is `auto` each connection derives from its\n"
	     "path.\n\n"
	     "| parameter | unit | range | what it is |\n|---|---|---|---|");
	for (i = 0; i < TIMELY_P_COUNT; i++) {
		const struct timely_param_desc *desc = &timely_param_descs[i];

		printf("| `%s` | %s | %u ... %u%s | %s |\n", desc->name, desc->unit,
		       desc->min, desc->max, desc->may_be_auto ? ", auto" : "", desc->doc);
	}

	puts("\n### Presets\n\n`preset=NAME` sets them all; the first is the default.\n");
	for (preset = 0; preset < timely_preset_count; preset++)
		printf("- `%s`: %s\n", timely_presets[preset].name,
		       timely_presets[preset].doc);

	printf("\n| parameter |");
	for (preset = 0; preset < timely_preset_count; preset++)
		printf(" %s |", timely_presets[preset].name);
	printf("\n|---|");
	for (preset = 0; preset < timely_preset_count; preset++)
		printf("---|");
	puts("");
	for (i = 0; i < TIMELY_P_COUNT; i++) {
		printf("| `%s` |", timely_param_descs[i].name);
		for (preset = 0; preset < timely_preset_count; preset++) {
			struct timely_params params = timely_presets[preset].params;

			printf(" %s |", text_of(*timely_param_ref(&params, i)));
		}
		puts("");
	}

	puts("\n## Limits of module timely\n\n"
	     "How many objects exist at most on behalf of each network namespace. Parameters of\n"
	     "module timely, which the host's administrator may change at any time:\n"
	     "`echo 1000 >/sys/module/timely/parameters/max_flows`. A lower limit than what exists\n"
	     "refuses new objects and frees none. `timelyctl limits` shows what a namespace uses.\n"
	     "When a limit is reached, new flows of that namespace do without; no other namespace\n"
	     "is affected. `tenants` (0 or 1, default 0) allows administrators of network\n"
	     "namespaces to switch on what all namespaces pay for.\n\n"
	     "| parameter | range | default | what is counted |\n|---|---|---|---|\n"
	     TIMELY_BUDGETS(LIMIT_ROW));

	puts("## Options of the qdisc\n\n"
	     "Of `include/net/timely_qdisc.h`, in the units of its netlink attributes; tc takes\n"
	     "them with units of their own, see tc-timely(8). The defaults of quantum and\n"
	     "initial_quantum are in packets of the device's MTU. The default is allowed even\n"
	     "where it lies outside the range.\n\n"
	     "| option | unit | range | default | what it is |\n|---|---|---|---|---|\n"
	     TIMELY_QDISC_OPTIONS(ROW)
	     "\npriomap: a band, 0 to 2, for each of 16 priorities; weights: at least 16384 bytes for\n"
	     "each of the three bands.");
	return 0;
}
