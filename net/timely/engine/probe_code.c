// SPDX-License-Identifier: GPL-2.0
/*
 * The filter for coded probes of clock synchronisation: which pairs of probes were not queued.
 *
 * The two probes of a pair leave a known time apart, a few tens of microseconds, so closer together
 * than queues change by chance. If neither probe waits, both arrive the same time apart. If one of
 * them waits, or both wait for different times, the spacing changes. A pair is used if its spacing
 * changed by no more than the tolerance. Pairs that waited equally long pass the filter too. They
 * are harmless: their delay is above the minimum, and strip.c uses the points with the least delay.
 *
 * The tolerance has to be as small as the timestamps allow: some nanoseconds for NIC clocks, some
 * microseconds for software timestamps. So the filter follows the deviation that one of 32 pairs
 * does not exceed: if two links have a load of 80 %, one of 25 pairs is not queued. The tolerance
 * is 32 times that deviation: on an idle path four fifths of the pairs pass. If fewer pairs are
 * not queued, the tolerance rises to its maximum, and strip.c alone selects the points.
 *
 * Departure from Huygens: its paper gives no rule for the tolerance.
 */

#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "probe_code.h"

/* The tolerance as a multiple of the deviation that one of 32 pairs does not exceed. */
#define PROBE_TOLERANCE_SHIFT	5
/* Limits of timely_probe_code.noise_q16, ns, Q16. */
#define PROBE_NOISE_MIN_Q16	(TIMELY_PROBE_TOLERANCE_MIN_NS << (16 - PROBE_TOLERANCE_SHIFT))
#define PROBE_NOISE_MAX_Q16	(TIMELY_PROBE_TOLERANCE_MAX_NS << (16 - PROBE_TOLERANCE_SHIFT))
/* A deviation above the noise raises the noise by a 256th; one below lowers it by 31 256ths, so
 * that the noise stays where one of 32 pairs is below.
 */
#define PROBE_NOISE_SHIFT	8
#define PROBE_NOISE_DOWN	31

/* Both probes of a pair were received. */
#define PROBE_BOTH		3

/**
 * timely_probe_code_init() - initialise a filter
 * @code: the filter
 *
 * The tolerance starts at its maximum, and reaches that of NIC clocks after about 60 pairs.
 */
void timely_probe_code_init(struct timely_probe_code *code)
{
	memset(code, 0, sizeof(*code));
	timely_probe_code_forget(code);
}

/**
 * timely_probe_code_forget() - start again, for example because the sender restarted
 * @code: the filter; its counters go on
 *
 * To be called if the numbers of pairs start again, or if the kind of the timestamps changes.
 */
void timely_probe_code_forget(struct timely_probe_code *code)
{
	memset(code->pending, 0, sizeof(code->pending));
	code->started = false;
	code->noise_q16 = PROBE_NOISE_MAX_Q16;
	code->tolerance_ns = TIMELY_PROBE_TOLERANCE_MAX_NS;
}

/* Follow the deviation that one of 32 pairs does not exceed. */
static void code_learn(struct timely_probe_code *code, u64 deviation_ns)
{
	u32 step = code->noise_q16 >> PROBE_NOISE_SHIFT;

	if (deviation_ns << 16 > code->noise_q16)
		code->noise_q16 += step;
	else
		code->noise_q16 -= PROBE_NOISE_DOWN * step;
	code->noise_q16 = clamp_t(u32, code->noise_q16, PROBE_NOISE_MIN_Q16, PROBE_NOISE_MAX_Q16);
	code->tolerance_ns = code->noise_q16 >> (16 - PROBE_TOLERANCE_SHIFT);
}

/* Judge a complete pair. Of the two probes the one with the lower delay is used. */
static enum timely_probe_verdict code_judge(struct timely_probe_code *code,
					    const struct timely_probe *first,
					    const struct timely_probe *second,
					    struct timely_probe *pure)
{
	u64 spacing = second->sent_ns - first->sent_ns, tolerance = code->tolerance_ns;
	s64 deviation = (s64)(second->received_ns - first->received_ns - spacing);
	/* A larger deviation is as good as this one, and shifting it must not lose bits. */
	u64 size = min_t(u64, deviation < 0 ? -(u64)deviation : (u64)deviation, 1ULL << 40);

	/* A spacing of 0 or less has no order: 0 - 1 and negative numbers wrap, too large. */
	if (spacing - 1 >= TIMELY_PROBE_SPACING_MAX_NS)
		return TIMELY_PROBE_SPACING;
	code_learn(code, size);
	if (size > tolerance)
		return deviation < 0 ? TIMELY_PROBE_CLOSER : TIMELY_PROBE_SPREAD;
	*pure = deviation < 0 ? *second : *first;
	return TIMELY_PROBE_PURE;
}

/* Make the entry of a pair ready. Return: NULL if the pair is older than the filter knows. */
static struct timely_probe_pending *code_entry(struct timely_probe_code *code, u32 pair)
{
	struct timely_probe_pending *entry = &code->pending[pair % TIMELY_PROBE_PENDING];

	if (!code->started || (s32)(pair - code->newest) > 0)
		code->newest = pair;
	code->started = true;
	if (code->newest - pair >= TIMELY_PROBE_PENDING)
		return NULL;
	if (entry->seen && entry->pair == pair)
		return entry;
	if (entry->seen && entry->seen != PROBE_BOTH)
		code->counts[TIMELY_PROBE_LOST]++;
	entry->pair = pair;
	entry->seen = 0;
	return entry;
}

static enum timely_probe_verdict code_add(struct timely_probe_code *code, u32 pair, bool second,
					  const struct timely_probe *probe,
					  struct timely_probe *pure)
{
	struct timely_probe_pending *entry = code_entry(code, pair);
	u8 bit = second ? 2 : 1;

	if (!entry)
		return TIMELY_PROBE_LATE;
	if (entry->seen & bit)
		return TIMELY_PROBE_DUPLICATE;
	entry->seen |= bit;
	if (entry->seen != PROBE_BOTH) {
		entry->probe = *probe;
		return TIMELY_PROBE_WAIT;
	}
	return second ? code_judge(code, &entry->probe, probe, pure) :
			code_judge(code, probe, &entry->probe, pure);
}

/**
 * timely_probe_code_add() - add a probe whose two timestamps are known
 * @code: the filter
 * @pair: number of the pair; the sender counts its pairs, and the number wraps
 * @second: the probe is the second of its pair
 * @probe: timestamps of the probe, any values
 * @pure: set to the probe with the lower delay of the pair if the verdict is TIMELY_PROBE_PURE;
 *	else unchanged
 *
 * Probes may be lost, duplicated and reordered, also across pairs, as long as fewer than
 * TIMELY_PROBE_PENDING pairs are in between.
 *
 * Return: the verdict, which is also counted in @code->counts.
 */
enum timely_probe_verdict timely_probe_code_add(struct timely_probe_code *code, u32 pair,
						bool second, const struct timely_probe *probe,
						struct timely_probe *pure)
{
	enum timely_probe_verdict verdict = code_add(code, pair, second, probe, pure);

	code->counts[verdict]++;
	return verdict;
}
