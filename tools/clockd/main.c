// SPDX-License-Identifier: GPL-2.0
/*
 * timely-clockd: a daemon that exchanges probes with other hosts, estimates the offsets of their
 * clocks after Huygens (NSDI'18), and computes a time that all of them agree on. See daemon.c.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include <linux/timely_version.h>

#include "clockd.h"

#define CONFIG_PATH	"/etc/timely/clockd.conf"

static void show_help(FILE *file)
{
	fprintf(file,
		"Usage: timely-clockd [OPTION]...\n"
		"\n"
		"  -f, --config FILE  configuration, by default " CONFIG_PATH "\n"
		"  -c, --check        check the configuration and end\n"
		"  -h, --help         show this text\n"
		"  -V, --version      show the version\n"
		"\n"
		"timelyctl clock shows the state. See timely-clockd(8).\n");
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'f' },
		{ "check", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{},
	};
	const char *path = CONFIG_PATH;
	struct config *config;
	bool check = false;
	int option;

	while ((option = getopt_long(argc, argv, "f:chV", options, NULL)) >= 0) {
		switch (option) {
		case 'f':
			path = optarg;
			break;
		case 'c':
			check = true;
			break;
		case 'h':
			show_help(stdout);
			return EXIT_SUCCESS;
		case 'V':
			puts("timely-clockd " TIMELY_VERSION);
			return EXIT_SUCCESS;
		default:
			show_help(stderr);
			return 2;
		}
	}
	if (optind < argc) {
		tell_err("unexpected word \"%s\"", argv[optind]);
		show_help(stderr);
		return 2;
	}
	config = config_read(path);
	if (!config)
		return EXIT_FAILURE;
	if (!check)
		return daemon_run(path, config);
	config_free(config);
	return EXIT_SUCCESS;
}
