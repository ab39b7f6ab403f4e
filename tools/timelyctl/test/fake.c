// SPDX-License-Identifier: GPL-2.0
/*
 * A simulated driver for timelyctl's tests, which need no NIC and no root.
 *
 * timelyctl is linked with this file and with --wrap=ioctl, so that __wrap_ioctl() below replaces
 * ioctl(). It answers for every device, as a driver would.
 *
 * The environment variable FAKE_NIC has words KEY=NUMBER that change the values in the table
 * knobs[]. Each configuration that timelyctl sets is appended to the file that FAKE_LOG names, as
 * "rx RX tx TX".
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/ethtool.h>
#include <linux/net_tstamp.h>
#include <linux/sockios.h>
#include <linux/types.h>
#include <net/if.h>
#include <sys/ioctl.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

static struct {
	const char *key;
	long value;
} knobs[] = {
	{ "info_errno", 0 },	/* errno of ETHTOOL_GET_TS_INFO; 0: success */
	{ "so", 0x5f },		/* SOF_TIMESTAMPING_*: hardware and software */
	{ "filters", 3 },	/* bits of rx filters: none and all */
	{ "tx_types", 3 },	/* bits: off and on */
	{ "phc", 0 },
	{ "get_errno", 0 },	/* errno of SIOCGHWTSTAMP */
	{ "set_errno", 0 },	/* errno of SIOCSHWTSTAMP */
	{ "rx", 0 },		/* present HWTSTAMP_FILTER_* */
	{ "tx", 0 },		/* present HWTSTAMP_TX_* */
	{ "narrow", -1 },	/* filter that the driver sets if asked for all packets; -1: all */
	{ "lies", 0 },		/* 1: the driver sets "narrow" but answers that it set all */
	{ "tx_made", -1 },	/* HWTSTAMP_TX_* that the driver always sets; -1: as asked */
	{ "stuck", 0 },		/* 1: SIOCSHWTSTAMP works once and then fails */
	{ "speed", 25000 },
	{ "coalesce_errno", 0 },
	{ "usecs", 0 },
	{ "frames", 1 },
	{ "adaptive", 0 },
	{ "features", 4 },	/* number of offloads that the driver reports */
	{ "on", 3 },		/* offloads that are on, bits: gro, tso, lro, gro-hw */
	{ "random", 0 },	/* seed for answers of random bytes; 0: no random answers */
};

static const char * const feature_names[] = {
	"rx-gro", "tx-tcp-segmentation", "rx-lro", "rx-gro-hw",
};

static long *knob(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		if (strcmp(knobs[i].key, key) == 0)
			return &knobs[i].value;
	fprintf(stderr, "fake: unknown key %s\n", key);
	abort();
}

static void read_knobs(void)
{
	static int done;
	char *text = getenv("FAKE_NIC");
	char *word;

	if (done++ || !text)
		return;
	for (word = strtok(strdup(text), " "); word; word = strtok(NULL, " ")) {
		char *value = strchr(word, '=');

		*value++ = 0;
		*knob(word) = strtol(value, NULL, 0);
	}
	srandom(*knob("random"));
}

static int answer(long error)
{
	errno = error;
	return error ? -1 : 0;
}

/* Overwrites an answer with random bytes if "random" is set. */
static void randomize(void *data, size_t bytes)
{
	unsigned char *to = data;

	while (*knob("random") && bytes--)
		*to++ = random() % 3 ? random() : 0xff;
}

static int set_config(struct hwtstamp_config *config)
{
	const char *log = getenv("FAKE_LOG");
	long error = *knob("set_errno");
	static int changes;
	FILE *file;

	if (error || (changes++ && *knob("stuck")))
		return answer(error ? error : EIO);
	*knob("rx") = config->rx_filter;
	if (config->rx_filter == HWTSTAMP_FILTER_ALL && *knob("narrow") >= 0) {
		*knob("rx") = *knob("narrow");
		if (!*knob("lies"))
			config->rx_filter = *knob("rx");
	}
	*knob("tx") = config->tx_type;
	if (*knob("tx_made") >= 0) {
		*knob("tx") = *knob("tx_made");
		config->tx_type = *knob("tx");
	}
	file = log ? fopen(log, "a") : NULL;
	if (file) {
		fprintf(file, "rx %ld tx %ld\n", *knob("rx"), *knob("tx"));
		fclose(file);
	}
	return 0;
}

static int get_config(struct hwtstamp_config *config)
{
	if (*knob("get_errno"))
		return answer(*knob("get_errno"));
	config->rx_filter = *knob("rx");
	config->tx_type = *knob("tx");
	randomize(config, sizeof(*config));
	return 0;
}

static int get_info(struct ethtool_ts_info *info)
{
	if (*knob("info_errno"))
		return answer(*knob("info_errno"));
	info->so_timestamping = *knob("so");
	info->rx_filters = *knob("filters");
	info->tx_types = *knob("tx_types");
	info->phc_index = *knob("phc");
	randomize(info, sizeof(*info));
	return 0;
}

/* Has three words of link modes, as recent kernels do. */
static int get_link(struct ethtool_link_settings *link)
{
	if (link->link_mode_masks_nwords != 3) {
		memset(link, 0, sizeof(*link));
		link->link_mode_masks_nwords = -3;
		return 0;
	}
	memset(link->link_mode_masks, 0xff, 3 * 3 * sizeof(__u32));
	link->speed = *knob("speed");
	if (*knob("random"))
		link->speed = random();
	return 0;
}

static int get_coalescing(struct ethtool_coalesce *coalesce)
{
	if (*knob("coalesce_errno"))
		return answer(*knob("coalesce_errno"));
	coalesce->rx_coalesce_usecs = *knob("usecs");
	coalesce->rx_max_coalesced_frames = *knob("frames");
	coalesce->use_adaptive_rx_coalesce = *knob("adaptive");
	randomize(coalesce, sizeof(*coalesce));
	return 0;
}

/* The number of entries that the driver reports: @count, or sometimes a wrong one with "random". */
static __u32 reported_count(__u32 count)
{
	return *knob("random") && random() % 3 == 0 ? random() % (2 * count + 9) : count;
}

static int get_feature_names(struct ethtool_gstrings *names)
{
	for (__u32 i = 0; i < names->len; i++) {
		char *to = (char *)names->data + i * ETH_GSTRING_LEN;

		memset(to, 0, ETH_GSTRING_LEN);
		if (i < ARRAY_SIZE(feature_names))
			snprintf(to, ETH_GSTRING_LEN, "%s", feature_names[i]);
		randomize(to, ETH_GSTRING_LEN);
	}
	names->len = reported_count(names->len);
	return 0;
}

static int get_features(struct ethtool_gfeatures *features)
{
	for (__u32 i = 0; i < features->size; i++) {
		features->features[i].active = i ? 0 : *knob("on");
		randomize(&features->features[i], sizeof(features->features[i]));
	}
	features->size = reported_count(features->size);
	return 0;
}

static int ask_ethtool(void *data)
{
	struct ethtool_sset_info *sset = data;
	struct ethtool_drvinfo *driver = data;

	switch (*(__u32 *)data) {
	case ETHTOOL_GDRVINFO:
		snprintf(driver->driver, sizeof(driver->driver), "fake");
		randomize(driver->driver, sizeof(driver->driver));
		return 0;
	case ETHTOOL_GET_TS_INFO:
		return get_info(data);
	case ETHTOOL_GLINKSETTINGS:
		return get_link(data);
	case ETHTOOL_GCOALESCE:
		return get_coalescing(data);
	case ETHTOOL_GSSET_INFO:
		sset->data[0] = *knob("features");
		return 0;
	case ETHTOOL_GSTRINGS:
		return get_feature_names(data);
	case ETHTOOL_GFEATURES:
		return get_features(data);
	}
	return answer(EOPNOTSUPP);
}

int __real_ioctl(int fd, unsigned long request, ...);

int __wrap_ioctl(int fd, unsigned long request, ...)
{
	struct ifreq *ifr;
	va_list args;

	va_start(args, request);
	ifr = va_arg(args, struct ifreq *);
	va_end(args);
	read_knobs();
	switch (request) {
	case SIOCETHTOOL:
		return ask_ethtool(ifr->ifr_data);
	case SIOCGHWTSTAMP:
		return get_config((void *)ifr->ifr_data);
	case SIOCSHWTSTAMP:
		return set_config((void *)ifr->ifr_data);
	case TIOCGWINSZ:
		return __real_ioctl(fd, request, ifr);
	}
	return answer(ENOTTY);
}
