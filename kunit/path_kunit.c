// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of the table of paths (net/timely/path.c): which path a new one replaces. Cases are named
 * function__case.
 *
 * White-box tests: the source is included, so that static functions can be called.
 */
#include <kunit/test.h>
#include <linux/export.h>

/* Module timely exports the same functions: the copies in this module must not be exported. */
#undef EXPORT_SYMBOL_GPL
#define EXPORT_SYMBOL_GPL(symbol)	extern typeof(symbol) symbol
#include "../net/timely/path.c"

#define US	NSEC_PER_USEC
#define A	1
#define B	2

static struct path_set bench_set;

/* Report an RTT of a path of the network namespace @net. Keys of namespaces differ, as in use. */
static void report(u64 net, u64 path, u64 now_ns)
{
	u64 key = net << 32 | path;
	struct path_entry *entry = path_find(&bench_set, key);

	entry = entry ?: path_add(&bench_set, key, net, now_ns);
	entry->reported_ns = now_ns;
}

static bool is_there(u64 net, u64 path)
{
	return path_find(&bench_set, net << 32 | path);
}

static int path_suite_init(struct kunit *test)
{
	memset(&bench_set, 0, sizeof(bench_set));
	return 0;
}

/* With one namespace, the path whose last report is the oldest goes. */
static void path_add__replaces_the_oldest(struct kunit *test)
{
	u32 i;

	for (i = 0; i < PATH_WAYS; i++)
		report(A, i, (i + 1) * US);
	report(A, 0, 100 * US);
	report(A, 1000, 101 * US);
	KUNIT_EXPECT_TRUE(test, is_there(A, 0));
	KUNIT_EXPECT_FALSE(test, is_there(A, 1));
	KUNIT_EXPECT_EQ(test, path_count(&bench_set, A, 0), PATH_WAYS);
}

/* A tenant with any number of paths replaces none of a namespace that has fewer. */
static void path_add__a_tenant_replaces_its_own(struct kunit *test)
{
	u32 i;

	report(A, 0, US);
	report(A, 1, 2 * US);
	for (i = 0; i < 1000; i++)
		report(B, i, (3 + i) * US);
	KUNIT_EXPECT_TRUE(test, is_there(A, 0));
	KUNIT_EXPECT_TRUE(test, is_there(A, 1));
	KUNIT_EXPECT_EQ(test, path_count(&bench_set, B, 0), PATH_WAYS - 2);
	/* The other namespace gets its half of the set back. */
	for (i = 2; i < 1000; i++)
		report(A, i, (3 + i) * US);
	KUNIT_EXPECT_EQ(test, path_count(&bench_set, A, 0), PATH_WAYS / 2);
	KUNIT_EXPECT_EQ(test, path_count(&bench_set, B, 0), PATH_WAYS / 2);
	KUNIT_EXPECT_TRUE(test, is_there(A, 999));
	KUNIT_EXPECT_TRUE(test, is_there(B, 999));
}

/* Paths of namespaces that are gone, or silent, keep no entry from others. */
static void path_add__replaces_the_expired(struct kunit *test)
{
	u64 now_ns = PATH_AGE_NS + 10 * US;
	u32 i;

	for (i = 0; i < PATH_WAYS; i++)
		report(10 + i, 0, (1 + i) * US);
	for (i = 0; i < PATH_WAYS; i++)
		report(A, i, now_ns + i);
	KUNIT_EXPECT_EQ(test, path_count(&bench_set, A, now_ns), PATH_WAYS);
}

/* If each path is of another namespace, the oldest goes. */
static void path_add__of_many_namespaces(struct kunit *test)
{
	u32 i;

	for (i = 0; i < PATH_WAYS; i++)
		report(10 + i, 0, (100 - i) * US);
	report(A, 0, 200 * US);
	KUNIT_EXPECT_TRUE(test, is_there(A, 0));
	KUNIT_EXPECT_FALSE(test, is_there(10 + PATH_WAYS - 1, 0));
	report(A, 1, 201 * US);
	KUNIT_EXPECT_FALSE(test, is_there(A, 0));
	KUNIT_EXPECT_TRUE(test, is_there(10, 0));
}

static struct kunit_case path_cases[] = {
	KUNIT_CASE(path_add__replaces_the_oldest),
	KUNIT_CASE(path_add__a_tenant_replaces_its_own),
	KUNIT_CASE(path_add__replaces_the_expired),
	KUNIT_CASE(path_add__of_many_namespaces),
	{}
};

static struct kunit_suite path_suite = {
	.name = "timely_path",
	.init = path_suite_init,
	.test_cases = path_cases,
};

kunit_test_suite(path_suite);
