/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the tests share: see unit.c.
 */
#ifndef CLOCKD_UNIT_H
#define CLOCKD_UNIT_H

#include <stdbool.h>
#include <stdio.h>

/* No condition of the current test was false. */
extern bool good;

#define EXPECT(condition) \
	do { \
		if (!(condition)) { \
			printf("# line %d: %s\n", __LINE__, #condition); \
			good = false; \
		} \
	} while (0)

/* Tests of daemon_unit.c. */
void take_events__a_suspension_withdraws_offsets(void);
void update_rate__a_step_keeps_the_rate(void);
void send_pairs__a_nic_timestamps_one_probe_at_a_time(void);
void send_pairs__waits_for_no_other_nic(void);
void send_pairs__goes_on_without_timestamps(void);
void send_pairs__probes_are_apart(void);
void write_page__continues_the_line_of_before(void);
void write_page__drops_the_line_when_a_peer_is_not_settled(void);
void give_refclock__follows_the_references(void);
void list_peers__references_are_peers_of_all(void);
void fill_reference__follows_an_unsteady_reference(void);
void fill_reference__follows_a_late_reference(void);
void announce_references__names_those_that_are_not_used(void);

#endif /* CLOCKD_UNIT_H */
