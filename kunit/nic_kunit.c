// SPDX-License-Identifier: GPL-2.0
/*
 * White-box tests of how records of NICs come and go: the source is part of this file, and
 * what happens during a grace period is the test's.
 */
#include <kunit/test.h>

#include <linux/etherdevice.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

#include <net/timely_link.h>

static void during_grace_period(void);
static void before_free(void);
static void kunit_link_changed(void);

#define synchronize_net()	during_grace_period()
#define free_percpu(pointer)	do { before_free(); (free_percpu)(pointer); } while (0)
#define timely_link_changed	kunit_link_changed
#include "../net/timely/nic.c"
#undef synchronize_net
#undef free_percpu

#define START_NS	NSEC_PER_SEC
#define EPOCH_NS	(1000 * NSEC_PER_SEC)
#define NAPIS		4

/**
 * struct nic_bench - what the tests share
 * @test: the test that runs
 * @dev: a device that was never registered
 * @napis: its NAPI instances
 * @phc: stands for its PTP clock, which is never read
 * @late: a reader has this record in hand when it is deleted
 * @armed: the reader armed the record's work
 * @left: the work was armed when the record was freed
 */
static struct nic_bench {
	struct kunit *test;
	struct net_device *dev;
	struct napi_struct napis[NAPIS];
	struct device *phc;
	struct timely_nic *late;
	bool armed;
	bool left;
} bench;

static void kunit_link_changed(void)
{
}

/* The reader's packets, one each microsecond, until the clock's line is another. */
static void during_grace_period(void)
{
	struct timely_nic *nic = bench.late;
	u64 now_ns = START_NS, arrived_ns;
	s64 residual_ns;

	while (nic && !bench.armed && now_ns < START_NS + NSEC_PER_SEC) {
		now_ns += NSEC_PER_USEC;
		local_bh_disable();
		timely_nic_judge(nic, now_ns + EPOCH_NS, now_ns, &arrived_ns, &residual_ns);
		timely_nic_pair(nic, residual_ns, now_ns + EPOCH_NS, now_ns);
		local_bh_enable();
		bench.armed = delayed_work_pending(&nic->bracket);
	}
	synchronize_rcu();
}

static void before_free(void)
{
	struct timely_nic *nic = bench.late;

	if (!nic)
		return;
	bench.left = delayed_work_pending(&nic->bracket);
	cancel_delayed_work_sync(&nic->bracket);
	bench.late = NULL;
}

static struct timely_nic *add_nic(struct kunit *test)
{
	struct timely_nic *nic;

	KUNIT_ASSERT_EQ(test, timely_nic_add(bench.dev, -1), 0);
	nic = timely_nic_find(bench.dev);
	KUNIT_ASSERT_NOT_NULL(test, nic);
	return nic;
}

/* ---- cases ---- */

/* A packet that is on its way when the device goes may find that the PTP clock is to be
 * read. Nothing of the record may be left in a timer then.
 */
static void del__late_packet_arms_the_work(struct kunit *test)
{
	struct timely_nic *nic;

	rtnl_lock();
	nic = add_nic(test);
	nic->phc_dev = get_device(bench.phc);
	bench.late = nic;
	timely_nic_del(nic);
	rtnl_unlock();
	KUNIT_EXPECT_TRUE(test, bench.armed);
	KUNIT_EXPECT_FALSE_MSG(test, bench.left, "the work is armed in memory that is freed");
}

/* ---- coming and going ---- */

static int nic_suite_init(struct kunit *test)
{
	u32 i;

	bench = (struct nic_bench){ .test = test };
	cross_timestamps = false;
	bench.phc = root_device_register("timely_nic_kunit");
	if (IS_ERR(bench.phc))
		return PTR_ERR(bench.phc);
	bench.dev = alloc_etherdev(0);
	if (!bench.dev) {
		root_device_unregister(bench.phc);
		return -ENOMEM;
	}
	for (i = 0; i < NAPIS; i++)
		netif_napi_add(bench.dev, &bench.napis[i], NULL);
	return 0;
}

static void nic_suite_exit(struct kunit *test)
{
	u32 i;

	cancel_work_sync(&timely_nic_resolve);
	if (IS_ERR_OR_NULL(bench.dev))
		return;
	for (i = 0; i < NAPIS; i++)
		netif_napi_del(&bench.napis[i]);
	free_netdev(bench.dev);
	root_device_unregister(bench.phc);
}

static struct kunit_case nic_cases[] = {
	KUNIT_CASE(del__late_packet_arms_the_work),
	{}
};

static struct kunit_suite nic_suite = {
	.name = "timely_nic",
	.init = nic_suite_init,
	.exit = nic_suite_exit,
	.test_cases = nic_cases,
};

kunit_test_suite(nic_suite);
