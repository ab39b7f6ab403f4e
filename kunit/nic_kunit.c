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
static void kunit_link_changed(const struct net *net);

#define synchronize_net()	during_grace_period()
#define free_percpu(pointer)	do { before_free(); (free_percpu)(pointer); } while (0)
#define timely_link_changed	kunit_link_changed
/* The module timely exports what nic.c defines; this copy is the suite's own. */
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)	extern typeof(symbol) symbol
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

static void kunit_link_changed(const struct net *net)
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

/* What the work would do, at once. */
static void resolve_now(void)
{
	cancel_delayed_work_sync(&timely_nic_resolve);
	timely_nic_resolve_fn(NULL);
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

/* Ids of NAPI instances that are no NIC's, as a tenant's veth makes them, cost a NIC's
 * nothing, however many there are.
 */
static void napi__others_ids_displace_none(struct kunit *test)
{
	u32 id, own = bench.napis[0].napi_id, looked = 0;
	struct timely_nic *nic;
	bool none;

	rtnl_lock();
	nic = add_nic(test);
	rtnl_unlock();
	rcu_read_lock();
	timely_nic_of_napi(own, &none);
	rcu_read_unlock();
	resolve_now();
	for (id = 0; id < 2 * TIMELY_NAPIS_MAX; id++) {
		rcu_read_lock();
		timely_nic_of_napi(1000000 + id, &none);
		if (timely_nic_of_napi(own, &none) == nic)
			looked++;
		rcu_read_unlock();
		resolve_now();
	}
	KUNIT_EXPECT_EQ(test, looked, 2 * TIMELY_NAPIS_MAX);
	rcu_read_lock();
	KUNIT_EXPECT_NULL(test, timely_nic_of_napi(1000000, &none));
	KUNIT_EXPECT_TRUE(test, none);
	rcu_read_unlock();
	rtnl_lock();
	timely_nic_del(nic);
	rtnl_unlock();
}

/* A driver may make new instances without a word. */
static void napi__new_ids_are_found(struct kunit *test)
{
	struct timely_nic *nic;
	bool none;
	u32 id;

	rtnl_lock();
	nic = add_nic(test);
	timely_nic_note_napis(nic);
	netif_napi_del(&bench.napis[0]);
	netif_napi_add(bench.dev, &bench.napis[0], NULL);
	rtnl_unlock();
	id = bench.napis[0].napi_id;
	rcu_read_lock();
	KUNIT_EXPECT_NULL(test, timely_nic_of_napi(id, &none));
	KUNIT_EXPECT_FALSE(test, none);
	rcu_read_unlock();
	resolve_now();
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, timely_nic_of_napi(id, &none), nic);
	rcu_read_unlock();
	rtnl_lock();
	timely_nic_del(nic);
	rtnl_unlock();
	KUNIT_EXPECT_TRUE(test, xa_empty(&timely_napis));
}

/* ---- coming and going ---- */

static int nic_suite_init(struct kunit *test)
{
	u32 i;

	bench = (struct nic_bench){ .test = test };
	cross_timestamps = false;
	timely_napi_asked = 0;
	timely_napi_seen = 0;
	/* Without an owner: on 6.1 the module has no directory in sysfs yet. */
	bench.phc = __root_device_register("timely_nic_kunit", NULL);
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

	cancel_delayed_work_sync(&timely_nic_resolve);
	if (IS_ERR_OR_NULL(bench.dev))
		return;
	for (i = 0; i < NAPIS; i++)
		netif_napi_del(&bench.napis[i]);
	free_netdev(bench.dev);
	root_device_unregister(bench.phc);
}

static struct kunit_case nic_cases[] = {
	KUNIT_CASE(del__late_packet_arms_the_work),
	KUNIT_CASE(napi__others_ids_displace_none),
	KUNIT_CASE(napi__new_ids_are_found),
	{}
};

static struct kunit_suite nic_suite = {
	.name = "timely_nic",
	.init = nic_suite_init,
	.exit = nic_suite_exit,
	.test_cases = nic_cases,
};

kunit_test_suite(nic_suite);
