// SPDX-License-Identifier: GPL-2.0
/*
 * Print Documentation/parameters.md from the table that the module uses, so
 * that the two can not differ.
 */

#include <stdio.h>

#include <net/timely.h>

int main(void)
{
	u32 i, preset;

	puts("# Parameters of tcp_timely\n\n"
	     "<!-- made by `make docs` from include/net/timely_params.h and\n"
	     "     net/timely/params.c; do not edit -->\n\n"
	     "Given when the module is loaded, for example\n"
	     "`modprobe tcp_timely preset=paper t_low_ns=100000`; those in force are in\n"
	     "`/sys/module/tcp_timely/parameters/`. A value out of range is refused, and the\n"
	     "kernel's log says which and why.\n\n"
	     "| parameter | unit | range | what it is |\n|---|---|---|---|");
	for (i = 0; i < TIMELY_P_COUNT; i++) {
		const struct timely_param_desc *desc = &timely_param_descs[i];

		printf("| `%s` | %s | %u ... %u | %s |\n", desc->name, desc->unit,
		       desc->min, desc->max, desc->doc);
	}

	puts("\n## Presets\n\n`preset=NAME` sets them all; the first is the default.\n");
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

			printf(" %u |", *timely_param_ref(&params, i));
		}
		puts("");
	}
	return 0;
}
