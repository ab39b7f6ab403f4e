// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of NIC objects: their removal, the table of NAPI IDs, and the reading of a PTP clock.
 *
 * White-box tests: the sources are included, so that static functions can be called, and two
 * functions of the kernel are replaced, so that a test decides what happens during a grace period.
 */
#include <kunit/test.h>

#include <linux/device.h>
#include <linux/etherdevice.h>
#include <linux/posix-clock.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>

static void during_grace_period(void);
static void before_free(void);

#define synchronize_net()	during_grace_period()
#define free_percpu(pointer)	do { before_free(); (free_percpu)(pointer); } while (0)
/* Module timely exports the same functions: the copies in this module must not be exported. */
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)	extern typeof(symbol) symbol
#include "../net/timely/nic_table.c"
#include "../net/timely/phc.c"
#include "../net/timely/nic_clock.c"
#include "../net/timely/nic.c"
#undef synchronize_net
#undef free_percpu

#define START_NS	NSEC_PER_SEC
#define EPOCH_NS	(1000ULL * NSEC_PER_SEC)
#define NAPIS		4

/**
 * struct nic_bench - state that the test cases and the replaced functions share
 * @test: the running test
 * @dev: a network device that is never registered
 * @napis: its NAPI instances
 * @parent: parent device of PTP clocks; also stands for a PTP clock that is never read
 * @late: a reader still uses this NIC while it is deleted
 * @armed: the reader has scheduled the NIC's work
 * @left: the work was still scheduled when the NIC was freed
 */
static struct nic_bench {
	struct kunit *test;
	struct net_device *dev;
	struct napi_struct napis[NAPIS];
	struct device *parent;
	struct timely_nic *late;
	bool armed;
	bool left;
} bench;

/* Replaces synchronize_net(): the reader gets one packet each microsecond, until the clock mapping
 * changes and the reader schedules the work.
 */
static void during_grace_period(void)
{
	struct timely_nic *nic = bench.late;
	u64 now_ns = START_NS, arrived_ns;
	s64 residual_ns;

	while (nic && !bench.armed && now_ns < START_NS + NSEC_PER_SEC) {
		now_ns += NSEC_PER_USEC;
		local_bh_disable();
		timely_nic_judge(nic, now_ns + EPOCH_NS, now_ns, &arrived_ns, &residual_ns);
		timely_nic_note_pair(nic, residual_ns, now_ns + EPOCH_NS, now_ns);
		local_bh_enable();
		bench.armed = delayed_work_pending(&nic->phc_work);
	}
	synchronize_rcu();
}

/* Replaces free_percpu(), by which the NIC's memory begins to be freed. */
static void before_free(void)
{
	struct timely_nic *nic = bench.late;

	if (!nic)
		return;
	bench.left = delayed_work_pending(&nic->phc_work);
	cancel_delayed_work_sync(&nic->phc_work);
	bench.late = NULL;
}

/* A NAPI instance gets its ID when it is added; on newer kernels, when it is enabled. */
static void napi_up(struct napi_struct *napi)
{
	netif_napi_add(bench.dev, napi, NULL);
	napi_enable(napi);
}

static void napi_down(struct napi_struct *napi)
{
	napi_disable(napi);
	netif_napi_del(napi);
}

static struct timely_nic *add_nic(struct kunit *test)
{
	struct timely_nic *nic;

	KUNIT_ASSERT_EQ(test, timely_nic_add(bench.dev), 0);
	nic = timely_nic_find(bench.dev);
	KUNIT_ASSERT_NOT_NULL(test, nic);
	return nic;
}

/* Runs the search for NAPI IDs without waiting for the work. */
static void search_now(void)
{
	cancel_delayed_work_sync(&timely_napi_search);
	timely_napi_search_fn(NULL);
}

/* ---- cases ---- */

/* A packet that is being received while the NIC is deleted may schedule the work that reads the PTP
 * clock. No timer may refer to the NIC when its memory is freed.
 */
static void del__late_packet_arms_the_work(struct kunit *test)
{
	struct timely_nic *nic;

	rtnl_lock();
	nic = add_nic(test);
	nic->phc_dev = get_device(bench.parent);
	bench.late = nic;
	timely_nic_del(nic);
	rtnl_unlock();
	KUNIT_EXPECT_TRUE(test, bench.armed);
	KUNIT_EXPECT_FALSE_MSG(test, bench.left, "the work is scheduled, and its memory is freed");
}

/* Any number of NAPI IDs of other devices, such as a tenant's veths, removes none of a NIC's. */
static void napi__foreign_ids_displace_none(struct kunit *test)
{
	u32 id, nic_id = bench.napis[0].napi_id, found = 0;
	struct timely_nic *nic;
	bool foreign;

	rtnl_lock();
	nic = add_nic(test);
	rtnl_unlock();
	rcu_read_lock();
	timely_nic_of_napi(nic_id, &foreign);
	rcu_read_unlock();
	search_now();
	for (id = 0; id < 2 * TIMELY_NAPIS_MAX; id++) {
		rcu_read_lock();
		timely_nic_of_napi(1000000 + id, &foreign);
		if (timely_nic_of_napi(nic_id, &foreign) == nic)
			found++;
		rcu_read_unlock();
		search_now();
	}
	KUNIT_EXPECT_EQ(test, found, 2 * TIMELY_NAPIS_MAX);
	rcu_read_lock();
	KUNIT_EXPECT_NULL(test, timely_nic_of_napi(1000000, &foreign));
	KUNIT_EXPECT_TRUE(test, foreign);
	rcu_read_unlock();
	rtnl_lock();
	timely_nic_del(nic);
	rtnl_unlock();
}

/* A driver may create NAPI instances without any event. */
static void napi__new_ids_are_found(struct kunit *test)
{
	struct timely_nic *nic;
	bool foreign;
	u32 id;

	rtnl_lock();
	nic = add_nic(test);
	timely_nic_note_napis(nic);
	napi_down(&bench.napis[0]);
	napi_up(&bench.napis[0]);
	rtnl_unlock();
	id = bench.napis[0].napi_id;
	rcu_read_lock();
	KUNIT_EXPECT_NULL(test, timely_nic_of_napi(id, &foreign));
	KUNIT_EXPECT_FALSE(test, foreign);
	rcu_read_unlock();
	search_now();
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, timely_nic_of_napi(id, &foreign), nic);
	rcu_read_unlock();
	rtnl_lock();
	timely_nic_del(nic);
	rtnl_unlock();
	KUNIT_EXPECT_TRUE(test, xa_empty(&timely_napis));
}

/* ---- the PTP clock ---- */

#define PHC_NS	(1234ULL * NSEC_PER_SEC + 567)

static int phc_gettime64(struct ptp_clock_info *info, struct timespec64 *time)
{
	*time = ns_to_timespec64(PHC_NS);
	return 0;
}

/* Newer kernels register no clock without this function. */
static int phc_settime64(struct ptp_clock_info *info, const struct timespec64 *time)
{
	return -EOPNOTSUPP;
}

static struct ptp_clock_info phc_info = {
	.owner = THIS_MODULE,
	.name = "timely_nic_kunit",
	.gettime64 = phc_gettime64,
	.settime64 = phc_settime64,
};

/* Guards what phc.c assumes of the kernel: a PTP clock is found beside a network device by its
 * index, is read, and reads as gone once its driver has unregistered it.
 */
static void phc__is_found_and_read(struct kunit *test)
{
	u64 before_ns = 0, phc_ns = 0, after_ns = 0;
	struct ptp_clock *ptp;
	struct device *phc;
	int index;

	ptp = ptp_clock_register(&phc_info, bench.parent);
	if (!ptp)
		kunit_skip(test, "this kernel has no PTP clocks");
	KUNIT_ASSERT_FALSE(test, IS_ERR(ptp));
	index = ptp_clock_index(ptp);
	bench.dev->dev.parent = bench.parent;
	phc = timely_phc_find(bench.dev, index);
	KUNIT_EXPECT_NOT_NULL(test, phc);
	KUNIT_EXPECT_NULL(test, timely_phc_find(bench.dev, index + 1));
	KUNIT_EXPECT_NULL(test, timely_phc_find(bench.dev, -1));
	if (phc) {
		KUNIT_EXPECT_TRUE(test, timely_phc_read(phc, &before_ns, &phc_ns, &after_ns));
		KUNIT_EXPECT_EQ(test, phc_ns, PHC_NS);
		KUNIT_EXPECT_GT(test, before_ns, 0ULL);
		KUNIT_EXPECT_LE(test, before_ns, after_ns);
	}
	ptp_clock_unregister(ptp);
	if (phc)
		KUNIT_EXPECT_FALSE(test, timely_phc_read(phc, &before_ns, &phc_ns, &after_ns));
	put_device(phc);
	bench.dev->dev.parent = NULL;
}

/* Registers a PTP clock beside bench.dev, and lets the NIC find it. Returns the clock. */
static struct ptp_clock *phc_up(struct kunit *test, struct timely_nic *nic)
{
	struct ptp_clock *ptp = ptp_clock_register(&phc_info, bench.parent);

	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(ptp));
	rtnl_lock();
	timely_nic_clock_bind(nic, ptp_clock_index(ptp));
	rtnl_unlock();
	return ptp;
}

static bool phc_reads(const struct timely_nic *nic)
{
	u64 before_ns, phc_ns, after_ns;

	return nic->phc_dev && timely_phc_read(nic->phc_dev, &before_ns, &phc_ns, &after_ns);
}

/* A driver that removes its PTP clock when the device goes down, and registers another one when the
 * device comes up: the other clock is read, and has the index of the first one.
 */
static void phc__that_is_registered_again(struct kunit *test)
{
	struct netdev_notifier_info down = { .dev = bench.dev };
	struct timely_nic *nic;
	struct ptp_clock *ptp;
	int index;

	if (!IS_ENABLED(CONFIG_PTP_1588_CLOCK))
		kunit_skip(test, "this kernel has no PTP clocks");
	bench.dev->dev.parent = bench.parent;
	rtnl_lock();
	nic = add_nic(test);
	rtnl_unlock();
	ptp = phc_up(test, nic);
	index = nic->phc;
	KUNIT_EXPECT_TRUE(test, phc_reads(nic));
	ptp_clock_unregister(ptp);
	KUNIT_EXPECT_FALSE(test, phc_reads(nic));
	rtnl_lock();
	timely_nic_event(&timely_nic_notifier, NETDEV_DOWN, &down);
	rtnl_unlock();
	/* The work may still have a reference. */
	flush_delayed_work(&nic->phc_work);
	ptp = phc_up(test, nic);
	KUNIT_EXPECT_TRUE(test, phc_reads(nic));
	KUNIT_EXPECT_EQ(test, nic->phc, index);
	KUNIT_EXPECT_NE(test, work_busy(&nic->phc_work.work), 0U);
	/* Without an event between: the driver was told other settings. */
	ptp_clock_unregister(ptp);
	ptp = phc_up(test, nic);
	KUNIT_EXPECT_TRUE(test, phc_reads(nic));
	rtnl_lock();
	timely_nic_del(nic);
	rtnl_unlock();
	ptp_clock_unregister(ptp);
	bench.dev->dev.parent = NULL;
}

/* A device with a PTP clock's name, but with driver data that is no POSIX clock, is not used. */
static void phc__other_driver_data_is_rejected(struct kunit *test)
{
	static struct class class = { .name = "timely_nic_kunit" };
	struct posix_clock *data = kunit_kzalloc(test, sizeof(*data), GFP_KERNEL);
	struct device *phc;

	KUNIT_ASSERT_NOT_NULL(test, data);
	KUNIT_ASSERT_EQ(test, class_register(&class), 0);
	phc = device_create(&class, bench.parent, 0, data, "ptp1000000");
	KUNIT_EXPECT_FALSE(test, IS_ERR(phc));
	if (!IS_ERR(phc)) {
		bench.dev->dev.parent = bench.parent;
		KUNIT_EXPECT_NULL(test, timely_phc_find(bench.dev, 1000000));
		bench.dev->dev.parent = NULL;
		device_unregister(phc);
	}
	class_unregister(&class);
}

/* ---- the suite ---- */

static int nic_suite_init(struct kunit *test)
{
	u32 i;

	bench = (struct nic_bench){ .test = test };
	cross_timestamps = false;
	timely_napi_unknown = 0;
	timely_napi_searched = 0;
	/* Without an owner: on 6.1 this module's sysfs directory does not exist yet. */
	bench.parent = __root_device_register("timely_nic_kunit", NULL);
	if (IS_ERR(bench.parent))
		return PTR_ERR(bench.parent);
	bench.dev = alloc_etherdev(0);
	if (!bench.dev) {
		root_device_unregister(bench.parent);
		return -ENOMEM;
	}
	for (i = 0; i < NAPIS; i++)
		napi_up(&bench.napis[i]);
	return 0;
}

static void nic_suite_exit(struct kunit *test)
{
	u32 i;

	cancel_delayed_work_sync(&timely_napi_search);
	if (IS_ERR_OR_NULL(bench.dev))
		return;
	for (i = 0; i < NAPIS; i++)
		napi_down(&bench.napis[i]);
	free_netdev(bench.dev);
	root_device_unregister(bench.parent);
}

static struct kunit_case nic_cases[] = {
	KUNIT_CASE(del__late_packet_arms_the_work),
	KUNIT_CASE(napi__foreign_ids_displace_none),
	KUNIT_CASE(napi__new_ids_are_found),
	KUNIT_CASE(phc__is_found_and_read),
	KUNIT_CASE(phc__that_is_registered_again),
	KUNIT_CASE(phc__other_driver_data_is_rejected),
	{}
};

static struct kunit_suite nic_suite = {
	.name = "timely_nic",
	.init = nic_suite_init,
	.exit = nic_suite_exit,
	.test_cases = nic_cases,
};

kunit_test_suite(nic_suite);
