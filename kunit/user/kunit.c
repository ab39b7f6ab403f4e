// SPDX-License-Identifier: GPL-2.0
/*
 * Runs all registered KUnit suites in user space, see include/kunit/test.h.
 */
#include <kunit/test.h>

static struct kunit_suite *suites;

void kunit_register(struct kunit_suite *suite)
{
	suite->next = suites;
	suites = suite;
}

static bool run_one(const struct kunit_suite *suite, const struct kunit_case *c,
		    const void *param, const char *desc, u32 number)
{
	struct kunit test = { .param_value = param };

	if (!setjmp(test.abort))
		c->run_case(&test);
	free(test.memory);
	printf("%sok %u - %s: %s%s%s\n", test.failed ? "not " : "", number, suite->name,
	       c->name, desc[0] ? ": " : "", desc);
	return !test.failed;
}

static bool run_case(const struct kunit_suite *suite, const struct kunit_case *c,
		     u32 *number)
{
	char desc[KUNIT_PARAM_DESC_SIZE] = "";
	const void *param = NULL;
	bool good = true;

	if (!c->generate_params)
		return run_one(suite, c, NULL, desc, ++*number);
	while ((param = c->generate_params(param, desc)))
		good &= run_one(suite, c, param, desc, ++*number);
	return good;
}

bool kunit_run(u32 *number)
{
	const struct kunit_suite *suite;
	const struct kunit_case *c;
	bool good = true;

	for (suite = suites; suite; suite = suite->next)
		for (c = suite->test_cases; c->run_case; c++)
			good &= run_case(suite, c, number);
	return good;
}
