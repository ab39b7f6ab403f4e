// SPDX-License-Identifier: GPL-2.0
/*
 * Print Documentation/parameters.md, which lists the parameters and presets of tcp_timely, the
 * limits of module timely and the options of the qdisc. They come from the same tables in the
 * source from which the modules are built. make.sh compiles and runs this program.
 */

#include <stdio.h>

#include <net/timely_qdisc.h>
#include <net/timely_tenant.h>
#include <timely/engine/rate.h>

/* The text of a parameter's value. The next call overwrites it. */
static const char *text_of(u32 value)
{
	static char text[16];

	if (value == TIMELY_AUTO)
		return TIMELY_AUTO_TEXT;
	snprintf(text, sizeof(text), "%u", value);
	return text;
}

/* Rows of the tables; TIMELY_BUDGETS() and TIMELY_QDISC_OPTIONS() call these macros. */
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
	     "This page lists the parameters and presets of tcp_timely, the parameters of module timely,\n"
	     "and the options of the qdisc timely, with ranges and defaults. ndp(7) has the parameters\n"
	     "of NDP, tc-trim(8) the options of the qdisc trim. Nothing here has to be set:\n"
	     "[tuning](tuning.md) says which three values some networks need, and how each connection\n"
	     "computes the parameters that are `auto`.\n\n"
	     "## Parameters of tcp_timely\n\n"
	     "Each network namespace has these parameters: `sysctl -w net.ipv4.timely.t_low_ns=100000`\n"
	     "sets one of them, `sysctl -w net.ipv4.timely.preset=paper` sets them all. Connections use\n"
	     "a new value from their next ACK on. A new namespace starts with the parameters that the\n"
	     "module was loaded with, for example `modprobe tcp_timely preset=paper t_low_ns=100000`;\n"
	     "`/sys/module/tcp_timely/parameters/` shows them. A value out of range is refused, and the\n"
	     "kernel's log names the parameter and the allowed values. The defaults are those of the\n"
	     "preset `target_delay`, the first column of the [table of presets](#presets).\n\n"
	     "Words in the last column: Algorithm 1, patched, FAST* (TCP FAST on the pacing rate),\n"
	     "target delay, Swift and PowerTCP (theta-PowerTCP) are the rules, see `rule`. \"paper\" is\n"
	     "TIMELY (SIGCOMM'15), with section or figure; CoNEXT'16 is \"ECN or Delay\", which\n"
	     "describes patched TIMELY; \"snippet\" is the code that TIMELY's authors published; ns-3\n"
	     "is HPCC's simulator.\n\n"
	     "| parameter | unit | range | what it is |\n|---|---|---|---|");
	for (i = 0; i < TIMELY_P_COUNT; i++) {
		const struct timely_param_desc *desc = &timely_param_descs[i];

		printf("| `%s` | %s | %u ... %u%s | %s |\n", desc->name, desc->unit,
		       desc->min, desc->max, desc->may_be_auto ? ", auto" : "", desc->doc);
	}

	puts("\nOld names, accepted for one release:\n");
	for (i = 0; i < TIMELY_OLD_P_COUNT; i++)
		printf("- `%s`: use `%s`\n", timely_deprecated_params[i].name,
		       timely_param_descs[timely_deprecated_params[i].index].name);
	printf("- preset `" TIMELY_DEPRECATED_PRESET "`: use `%s`\n", timely_presets[0].name);

	puts("\n### Presets\n\n"
	     "`preset=NAME` sets all parameters; the first preset is the default.\n");
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
	     "How many objects each network namespace may have. The limits are parameters of\n"
	     "module timely, which the host's administrator may change at any time:\n"
	     "`echo 1000 >/sys/module/timely/parameters/max_flows`. A limit below the present number\n"
	     "refuses new objects and frees none. `timelyctl limits` shows how many are in use.\n"
	     "When a limit is reached, new flows of that namespace get no such object; no other\n"
	     "namespace is affected.\n\n"
	     "| parameter | range | default | what is counted |\n|---|---|---|---|\n"
	     TIMELY_BUDGETS(LIMIT_ROW)
	     "\nOther parameters of module timely:\n\n"
	     "- `tenants`, 0 (default) or 1: 1 allows administrators of network namespaces to switch on\n"
	     "  features that all namespaces pay for.\n"
	     "- `orack_port`, 1 to 65535, default 20306, set when the module is loaded: the UDP port of\n"
	     "  OR-ACKs, the same on all hosts.\n"
	     "- `cross_timestamps`, 0 or 1 (default): whether clock mappings use readings of the NICs'\n"
	     "  PTP clocks.\n");

	puts("## Options of the qdisc timely\n\n"
	     "The options of `include/net/timely_qdisc.h`, in the units of the netlink attributes; tc\n"
	     "has names and units of its own, see tc-timely(8). The defaults of quantum and\n"
	     "initial_quantum are in packets of the device's MTU. A default is allowed even\n"
	     "where it lies outside the range.\n\n"
	     "| option | unit | range | default | what it is |\n|---|---|---|---|---|\n"
	     TIMELY_QDISC_OPTIONS(ROW)
	     "\npriomap: a band, 0 to 2, for each of 16 priorities; weights: at least 16384 bytes for\n"
	     "each of the three bands.");
	return 0;
}
