/* SPDX-License-Identifier: GPL-2.0 */
/*
 * References: hosts whose system clocks are right. See reference.c.
 */
#ifndef CLOCKD_REFERENCE_H
#define CLOCKD_REFERENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most references. */
#define REFERENCES_MAX		8

/**
 * struct reference - a reference, as a host sees it; or what several references agree on
 * @known: in: the members below were measured
 * @offset_ns: its system clock minus the common time, ns
 * @rate_ppb: change of @offset_ns, ppb
 * @bound_ns: error of @offset_ns, ns
 * @growth_ppb: growth of @bound_ns, ppb
 * @used: out: it agrees with most of the others
 * @inexact: out: its bound is too large to count
 */
struct reference {
	bool known;
	int64_t offset_ns;
	int64_t rate_ppb;
	uint64_t bound_ns;
	uint64_t growth_ppb;
	bool used;
	bool inexact;
};

unsigned int references_agree(struct reference *references, size_t count, struct reference *result);

#endif /* CLOCKD_REFERENCE_H */
