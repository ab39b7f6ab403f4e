// SPDX-License-Identifier: GPL-2.0
/*
 * Timers that hold a reference to the object that they belong to: a connection or a pull queue.
 *
 * A timer may be set again while its function waits for the object's lock on another CPU. Nobody
 * can cancel it then: hrtimer_try_to_cancel() only says that the function runs, not whether the
 * timer is queued as well. So references are not counted for each start. There is one reference
 * from the first start until the function has seen, under the object's lock, that the timer was
 * not set again.
 */

#include "ndp.h"

/**
 * ndp_timer_init() - initialise a timer that is not set
 * @timer: the timer
 * @expired: called in softirq when the timer expires
 */
void ndp_timer_init(struct ndp_timer *timer, enum hrtimer_restart (*expired)(struct hrtimer *hr))
{
	timely_hrtimer_setup(&timer->hr, expired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	timer->due_ns = TIMELY_NDP_NEVER;
	timer->held = false;
}

/**
 * ndp_timer_set() - let a timer expire at a time, or earlier if it is set to an earlier one
 * @timer: the timer, under the object's lock
 * @due_ns: when the timer is due, CLOCK_MONOTONIC; TIMELY_NDP_NEVER: nothing is due
 *
 * Most events only move the time of the next timeout to a later one, and cost nothing here.
 *
 * Return: true if the caller must take a reference to the object for the timer.
 */
bool ndp_timer_set(struct ndp_timer *timer, u64 due_ns)
{
	bool held = timer->held;

	if (due_ns >= timer->due_ns)
		return false;
	timer->due_ns = due_ns;
	timer->held = true;
	hrtimer_start(&timer->hr, ns_to_ktime(due_ns), HRTIMER_MODE_ABS_SOFT);
	return !held;
}

/**
 * ndp_timer_due() - begin the function of a timer
 * @timer: the timer, under the object's lock
 * @now_ns: current time
 *
 * Return: true if the timer is due; it is no longer set then. False if it was set to a later time
 * before the function took the lock.
 */
bool ndp_timer_due(struct ndp_timer *timer, u64 now_ns)
{
	if (now_ns < timer->due_ns)
		return false;
	timer->due_ns = TIMELY_NDP_NEVER;
	return true;
}

/**
 * ndp_timer_done() - end the function of a timer
 * @timer: the timer, under the object's lock
 *
 * While the function runs the timer does not expire again, so it stays queued if it is.
 *
 * Return: true if the caller must release the timer's reference to the object.
 */
bool ndp_timer_done(struct ndp_timer *timer)
{
	timer->held = hrtimer_is_queued(&timer->hr);
	return !timer->held;
}

/**
 * ndp_timer_stop() - the object ends and needs its timer no more
 * @timer: the timer, under the object's lock
 *
 * If the function runs it releases the reference: at once, or if the timer was set again, when it
 * is called the next time, which is soon.
 *
 * Return: true if the caller must release the timer's reference to the object.
 */
bool ndp_timer_stop(struct ndp_timer *timer)
{
	if (!timer->held)
		return false;
	if (hrtimer_try_to_cancel(&timer->hr) == 1) {
		timer->held = false;
		return true;
	}
	if (hrtimer_is_queued(&timer->hr))
		hrtimer_start(&timer->hr, 0, HRTIMER_MODE_ABS_SOFT);
	return false;
}
