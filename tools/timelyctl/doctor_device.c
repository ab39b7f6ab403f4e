// SPDX-License-Identifier: GPL-2.0
/*
 * Checks of `timelyctl doctor` that look at a device: its qdiscs, its link rate, its hardware
 * timestamps and its driver's settings.
 */
#include <string.h>

#include <arpa/inet.h>
#include <linux/timely.h>

#include "doctor.h"

/*
 * A clock mapping is sure after some hundred timestamp pairs. If it is not after this many,
 * something disturbs the clocks or the timestamps.
 */
#define MANY_PAIRS 10000

/* Programs that synchronise clocks may step a clock when they start, but not more often. */
#define MANY_STEPS 10

/* ---- the device and its qdiscs ---- */

void check_device_down(struct host *host, const struct device *device)
{
	if (device->link->up)
		return;
	found_warn(host, "the device is down");
	remedy_info(host, "ip link set %s up", plain(device->link->name));
}

void check_qdisc_mixed(struct host *host, const struct device *device)
{
	if (!device->timely || device->timely == device->queues)
		return;
	found_warn(host, "%u of %u transmit queues have the qdisc timely, the others have another qdisc",
		   device->timely, device->queues);
	remedy_info(host, "timelyctl setup %s; to give options: tc qdisc replace dev %s parent HANDLE:QUEUE timely OPTIONS",
		    plain(device->link->name), plain(device->link->name));
}

void check_qdisc_root(struct host *host, const struct device *device)
{
	__u32 queues = device->hw.queues ? device->hw.queues : device->link->queues;
	const char *name = plain(device->link->name);

	if (!device->root || strcmp(device->root->kind, "timely") != 0 || queues < 2)
		return;
	found_warn(host, "one qdisc timely serves %u transmit queues, so all CPUs wait for its lock",
		   queues);
	remedy_info(host, "timelyctl setup %s", name);
}

/* If some queues have timely, qdisc-mixed names the others. */
void check_qdisc_unpaced(struct host *host, const struct device *device)
{
	const char *name = plain(device->link->name);

	if (!device->unpaced || device->timely || !device->nic || !is_used(host))
		return;
	if (device->unpaced == device->root)
		found_warn(host, "the qdisc %s does not pace: TCP itself does, and new rates do not apply to packets that are already queued",
			   plain(device->root->kind));
	else
		found_warn(host, "%u of %u transmit queues have a qdisc that does not pace, such as %s: TCP itself does, and new rates do not apply to packets that are already queued",
			   device->queues - device->paced, device->queues,
			   plain(device->unpaced->kind));
	remedy_info(host, "modprobe sch_timely; timelyctl setup %s", name);
}

/* ---- the link rate ---- */

/* The sysctl link_rate_kbps; 0 for "auto", or without the module. */
static __s64 given_kbps(void)
{
	__s64 kbps;

	return read_number("/proc/sys/net/ipv4/timely/link_rate_kbps", &kbps) ? kbps : 0;
}

/* A NIC without a carrier has no link rate, and sends nothing. */
void check_link_rate(struct host *host, const struct device *device)
{
	if (!device->link->running || device->hw.speed_mbps || given_kbps() || !is_used(host) ||
	    (device->report && device->report->override_kbps))
		return;
	found_warn(host, "the driver does not report the link rate, so 10 Gb/s is assumed");
	/* The sysctl is for all NICs of the network namespace. */
	if (device->report)
		remedy_info(host, "timelyctl nic set %s link-rate RATE",
			    plain(device->link->name));
	else
		remedy_info(host, "sysctl -w net.ipv4.timely.link_rate_kbps=KBPS");
}

void check_link_rate_set(struct host *host, const struct device *device)
{
	__u64 speed_kbps = device->hw.speed_mbps * 1000ULL;
	__u64 override_kbps = device->report ? device->report->override_kbps : 0;
	__u64 kbps = given_kbps();
	char speed[32], set[32];

	rate_text(speed, sizeof(speed), speed_kbps);
	if (!speed_kbps)
		return;
	if (override_kbps && override_kbps != speed_kbps) {
		found_warn(host, "the driver reports %s, but the link rate was set to %s (timelyctl nic set)",
			   speed, rate_text(set, sizeof(set), override_kbps));
		remedy_info(host, "timelyctl nic set %s link-rate auto", plain(device->link->name));
	} else if (device->nic && kbps && kbps != speed_kbps && kbps != override_kbps) {
		found_warn(host, "the driver reports %s, but net.ipv4.timely.link_rate_kbps is %s",
			   speed, rate_text(set, sizeof(set), kbps));
		remedy_info(host, "sysctl -w net.ipv4.timely.link_rate_kbps=auto");
	}
}

/* ---- hardware timestamps ---- */

void check_timestamps(struct host *host, const struct device *device)
{
	const char *name = plain(device->link->name);

	if (!device->nic)
		return;
	if (device->use == USE_NOT_ENABLED) {
		found_warn(host, "the NIC can timestamp all packets, but does not: delays of this host count as queueing delay");
		remedy_info(host, "timelyctl nic enable %s", name);
	} else if (device->use == USE_OFF) {
		found_warn(host, "the NIC's hardware timestamps are not used (timelyctl nic set hardware off)");
		remedy_info(host, "timelyctl nic set %s hardware on", name);
	} else if (device->use == USE_CANNOT) {
		found_info(host, "the NIC timestamps %s, so delays of this host count as queueing delay",
			   device->hw.can_stamp == CAN_STAMP_PTP ? "PTP packets only" :
			   "no packets in hardware");
		remedy_info(host, "keep interrupt coalescing short, or use a NIC that timestamps all packets");
	}
}

/* Whether a connection has measured an RTT in the last second. */
static bool has_rtts(const struct host *host)
{
	for (size_t i = 0; i < host->connections.count; i++)
		if (host->connections.connection[i].rtt_age_ns < 1000000000)
			return true;
	return false;
}

void check_nic_clock(struct host *host, const struct device *device)
{
	if (device->use != USE_LEARNING || device->report->pairs < MANY_PAIRS || !has_rtts(host))
		return;
	found_warn(host, "the mapping of the NIC's clock is not sure after %llu timestamp pairs, so hardware timestamps are not used",
		   (unsigned long long)device->report->pairs);
	remedy_info(host, "check whether programs (ptp4l, phc2sys, chrony) change the speed of the NIC's or the host's clock often; keep the parameter cross_timestamps=1 of module timely");
}

void check_nic_clock_steps(struct host *host, const struct device *device)
{
	bool now;

	if (!device->report || device->report->steps <= MANY_STEPS)
		return;
	now = steps_growth(host, device);
	found(host, now ? SEVERITY_WARNING : SEVERITY_NOTE,
	      "the NIC's or the host's clock was stepped %u times, and after each step hardware timestamps are not used for a moment%s",
	      device->report->steps, now ? "" : EARLIER);
	remedy_info(host, "check which program (ptp4l, phc2sys, chrony) steps a clock, and let only one of them set each clock");
}

/* ---- the driver's settings ---- */

void check_coalescing(struct host *host, const struct device *device)
{
	const struct hardware *hw = &device->hw;

	if (!hw->coalesce || hw->rx_usecs < LONG_COALESCING_US || hw->rx_frames == 1)
		return;
	found_warn(host, "interrupts are delayed by %u us%s, and ACKs with them%s",
		   hw->rx_usecs, hw->adaptive_rx ? " at present (adaptive)" : "",
		   device->use == USE_IN_USE ? "" : ", which counts as queueing delay");
	remedy_info(host, "ethtool -C %s adaptive-rx off rx-usecs 5", plain(device->link->name));
}

void check_merged_packets(struct host *host, const struct device *device)
{
	const char *name = plain(device->link->name);

	if (device->hw.can_stamp != CAN_STAMP_ALL ||
	    (device->hw.lro != 1 && device->hw.gro_hw != 1))
		return;
	found_warn(host, "%s merges received packets in the NIC, and the merged packet has only one timestamp",
		   device->hw.lro == 1 ? "LRO" : "GRO-HW");
	remedy_info(host, "ethtool -K %s %s off", name, device->hw.lro == 1 ? "lro" : "rx-gro-hw");
}

void check_offloads(struct host *host, const struct device *device)
{
	const char *name = plain(device->link->name);

	if (!device->nic || (device->hw.gro && device->hw.tso))
		return;
	found_info(host, "%s off, which costs much CPU time and gains nothing",
		   device->hw.gro ? "TSO is" : device->hw.tso ? "GRO is" : "GRO and TSO are");
	remedy_info(host, "ethtool -K %s gro on tso on", name);
}
