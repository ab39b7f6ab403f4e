// SPDX-License-Identifier: GPL-2.0
/*
 * What the references agree on. Pure: no clock and no network.
 *
 * A reference is a host whose system clock is right, because it has a GPS receiver or follows good
 * time servers. References take part in averaging as all hosts do, and nothing is steered: each
 * host measures by how much the system clock of each reference differs from the common time. So a
 * reference whose clock is slewed, stepped or wrong does not disturb how well hosts agree.
 *
 * The system clocks of two references differ by what their time servers are wrong. Two references
 * agree if their intervals are not further apart than REFERENCE_APART_NS. Those are used that agree
 * with the reference which most of the known ones agree with, if these are more than half. A
 * reference with a bound above REFERENCE_APART_NS counts only if all known ones have such bounds.
 * Of three or more that are used the middle offset is the result.
 */
#include "reference.h"

/* Difference of two right system clocks, beyond the errors of its measurement, ns: more than NTP
 * has in a data centre.
 */
#define REFERENCE_APART_NS	1000000
/* Largest bound of a reference that is known, ns. */
#define REFERENCE_BOUND_NS	1000000000

static bool agree(const struct reference *a, const struct reference *b)
{
	uint64_t apart_ns = a->offset_ns > b->offset_ns ?
			    (uint64_t)a->offset_ns - b->offset_ns :
			    (uint64_t)b->offset_ns - a->offset_ns;

	return apart_ns <= a->bound_ns + b->bound_ns + REFERENCE_APART_NS;
}

static unsigned int count_agreeing(const struct reference *references, size_t count, size_t with)
{
	unsigned int agreeing = 0;

	for (size_t i = 0; i < count; i++)
		agreeing += references[i].known && agree(&references[i], &references[with]);
	return agreeing;
}

/* The largest bound that counts. A reference that states a large error, as while its clock is
 * corrected, agrees with anybody, so such references count only if there is no better one.
 */
static uint64_t most_bound(const struct reference *references, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (references[i].known && references[i].bound_ns <= REFERENCE_APART_NS)
			return REFERENCE_APART_NS;
	return REFERENCE_BOUND_NS;
}

/* Of the @used references that are used the one with the middle offset. */
static const struct reference *middle(const struct reference *references, size_t count, int used)
{
	for (size_t i = 0; i < count; i++) {
		int below = 0;

		for (size_t j = 0; j < count; j++)
			below += references[j].used &&
				 (references[j].offset_ns < references[i].offset_ns ||
				  (references[j].offset_ns == references[i].offset_ns && j < i));
		if (references[i].used && below == used / 2)
			return &references[i];
	}
	return NULL;
}

/* An interval that contains those of all references that are used: around the middle offset if
 * there are three or more, so that no single one moves the result; otherwise the smallest one.
 */
static void unite(const struct reference *references, size_t count, struct reference *result)
{
	int64_t low_ns = INT64_MAX, high_ns = INT64_MIN, rates = 0;
	const struct reference *reference;
	int used = 0;

	for (size_t i = 0; i < count; i++) {
		reference = &references[i];
		if (!reference->used)
			continue;
		if (reference->offset_ns - (int64_t)reference->bound_ns < low_ns)
			low_ns = reference->offset_ns - (int64_t)reference->bound_ns;
		if (reference->offset_ns + (int64_t)reference->bound_ns > high_ns)
			high_ns = reference->offset_ns + (int64_t)reference->bound_ns;
		if (reference->growth_ppb > result->growth_ppb)
			result->growth_ppb = reference->growth_ppb;
		rates += reference->rate_ppb;
		used++;
	}
	result->offset_ns = low_ns + (high_ns - low_ns) / 2;
	result->bound_ns = (high_ns - low_ns + 1) / 2;
	result->rate_ppb = rates / used;
	if (used < 3)
		return;
	reference = middle(references, count, used);
	result->offset_ns = reference->offset_ns;
	result->rate_ppb = reference->rate_ppb;
	result->bound_ns = high_ns - reference->offset_ns > reference->offset_ns - low_ns ?
			   high_ns - reference->offset_ns : reference->offset_ns - low_ns;
}

/**
 * references_agree() - find what most references agree on
 * @references: the references; @used and @inexact are set, and @known is cleared if @inexact
 * @count: number of references
 * @result: set to an offset whose interval contains those of all references that are used
 *
 * Return: number of references that are used; 0: @result is not known.
 */
unsigned int references_agree(struct reference *references, size_t count, struct reference *result)
{
	uint64_t most_ns = most_bound(references, count);
	unsigned int known = 0, most = 0;
	size_t best = 0;

	*result = (struct reference){};
	for (size_t i = 0; i < count; i++) {
		references[i].used = false;
		references[i].inexact = references[i].known && references[i].bound_ns > most_ns;
		references[i].known &= !references[i].inexact;
	}
	for (size_t i = 0; i < count; i++) {
		unsigned int agreeing;

		if (!references[i].known)
			continue;
		known++;
		agreeing = count_agreeing(references, count, i);
		if (agreeing > most) {
			most = agreeing;
			best = i;
		}
	}
	if (most * 2 <= known)
		return 0;
	for (size_t i = 0; i < count; i++)
		references[i].used = references[i].known &&
				     agree(&references[i], &references[best]);
	unite(references, count, result);
	result->known = true;
	return most;
}
