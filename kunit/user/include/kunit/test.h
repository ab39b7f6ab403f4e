/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of KUnit that the suites of the engines use, so that the suites also run in user space
 * under sanitizers. Each suite registers itself before main(). kunit_run() of ../../kunit.c runs
 * all suites and prints TAP.
 */
#ifndef _USER_KUNIT_TEST_H
#define _USER_KUNIT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define KUNIT_PARAM_DESC_SIZE	128
#define GFP_KERNEL		0
#ifndef __maybe_unused
#define __maybe_unused
#endif

struct kunit {
	const void *param_value;
	jmp_buf abort;
	bool failed;
	void *memory;
};

struct kunit_case {
	void (*run_case)(struct kunit *test);
	const char *name;
	const void *(*generate_params)(const void *prev, char *desc);
};

struct kunit_suite {
	const char *name;
	struct kunit_case *test_cases;
	struct kunit_suite *next;
};

void kunit_register(struct kunit_suite *suite);
/* Run all suites. @number is the number of the last line of TAP, before and after. Return: true if
 * all cases pass.
 */
bool kunit_run(u32 *number);

#define KUNIT_CASE(test)		{ .run_case = test, .name = #test }
#define KUNIT_CASE_PARAM(test, gen)	{ .run_case = test, .name = #test, .generate_params = gen }

#define kunit_test_suite(suite)						\
	static void __attribute__((constructor)) register_##suite(void)	\
	{								\
		kunit_register(&(suite));				\
	}								\
	_Static_assert(1, "")

#define KUNIT_ARRAY_PARAM(name, array, get_desc)			\
	static const void *name##_gen_params(const void *prev, char *desc) \
	{								\
		typeof(&(array)[0]) next = prev;			\
									\
		next = next ? next + 1 : (array);			\
		if (next >= (array) + ARRAY_SIZE(array))		\
			return NULL;					\
		get_desc(next, desc);					\
		return next;						\
	}

/* Only one allocation per case: the suites need no more. */
static inline void *kunit_kzalloc(struct kunit *test, size_t size, int flags)
{
	(void)flags;
	if (test->memory)
		return NULL;
	test->memory = calloc(1, size);
	return test->memory;
}

static inline int scnprintf(char *to, size_t size, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(to, size, format, args);
	va_end(args);
	return min(n, (int)size - 1);
}

#define KUNIT_RESULT(test, good, fatal, text, ...) do {			\
	if (!(good)) {							\
		printf("# %s:%d: %s: ", __FILE__, __LINE__, text);	\
		printf(" " __VA_ARGS__);				\
		printf("\n");						\
		(test)->failed = true;					\
		if (fatal)						\
			longjmp((test)->abort, 1);			\
	}								\
} while (0)

/* Print the values, too, as signed numbers. */
#define KUNIT_COMPARE(test, fatal, left, op, right, ...) do {		\
	typeof((left) + 0) _left = (left);				\
	typeof((right) + 0) _right = (right);			\
									\
	if (!(_left op _right))						\
		printf("# %lld %s %lld\n", (long long)_left, #op, (long long)_right); \
	KUNIT_RESULT(test, _left op _right, fatal, #left " " #op " " #right, __VA_ARGS__); \
} while (0)

#define KUNIT_EXPECT_TRUE(test, c)	KUNIT_RESULT(test, c, false, #c, "")
#define KUNIT_ASSERT_TRUE(test, c)	KUNIT_RESULT(test, c, true, #c, "")
#define KUNIT_EXPECT_FALSE(test, c)	KUNIT_RESULT(test, !(c), false, "not " #c, "")
#define KUNIT_EXPECT_TRUE_MSG(test, c, ...)	KUNIT_RESULT(test, c, false, #c, __VA_ARGS__)
#define KUNIT_EXPECT_EQ(test, a, b)	KUNIT_COMPARE(test, false, a, ==, b, "")
#define KUNIT_EXPECT_LT(test, a, b)	KUNIT_COMPARE(test, false, a, <, b, "")
#define KUNIT_EXPECT_LE(test, a, b)	KUNIT_COMPARE(test, false, a, <=, b, "")
#define KUNIT_EXPECT_GT(test, a, b)	KUNIT_COMPARE(test, false, a, >, b, "")
#define KUNIT_EXPECT_GE(test, a, b)	KUNIT_COMPARE(test, false, a, >=, b, "")
#define KUNIT_EXPECT_EQ_MSG(test, a, b, ...)	KUNIT_COMPARE(test, false, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_LE_MSG(test, a, b, ...)	KUNIT_COMPARE(test, false, a, <=, b, __VA_ARGS__)
#define KUNIT_EXPECT_GE_MSG(test, a, b, ...)	KUNIT_COMPARE(test, false, a, >=, b, __VA_ARGS__)
#define KUNIT_EXPECT_GT_MSG(test, a, b, ...)	KUNIT_COMPARE(test, false, a, >, b, __VA_ARGS__)
#define KUNIT_ASSERT_EQ(test, a, b)	KUNIT_COMPARE(test, true, a, ==, b, "")
#define KUNIT_ASSERT_LT(test, a, b)	KUNIT_COMPARE(test, true, a, <, b, "")
#define KUNIT_ASSERT_GE(test, a, b)	KUNIT_COMPARE(test, true, a, >=, b, "")
#define KUNIT_ASSERT_EQ_MSG(test, a, b, ...)	KUNIT_COMPARE(test, true, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_PTR_EQ(test, a, b)	KUNIT_RESULT(test, (a) == (b), false, #a " == " #b, "")
#define KUNIT_EXPECT_NULL(test, p)	KUNIT_RESULT(test, !(p), false, "not " #p, "")
#define KUNIT_ASSERT_NOT_NULL(test, p)	KUNIT_RESULT(test, p, true, #p, "")
#define KUNIT_EXPECT_STREQ(test, a, b)	\
	KUNIT_RESULT(test, !strcmp(a, b), false, #a " is " #b, "'%s', not '%s'", a, b)

#endif /* _USER_KUNIT_TEST_H */
