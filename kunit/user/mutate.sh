#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Mutation tests: put one fault at a time into a copy of an engine (net/timely/engine), and run the
# engine's KUnit suites and fuzzer in user space. At least one test must fail for each fault.
#
#   mutate.sh [ENGINE-DIRECTORY [ENGINE...]]
#
# Without arguments, tests all engines of this tree. Prints TAP, with the kinds of tests that
# noticed each fault: vectors (test vectors of a reference), hand (KUnit cases), table (KUnit cases
# with parameters), random (promises of the fuzzer), crashed (a crash, or no end within 15 s). A
# fault whose edit does not change the source fails, too: adapt the edit to the new source.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
engine=$(cd "${1:-$here/../../net/timely/engine}" && pwd)
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- rate ack_wait target_delay swift powertcp wheel rtt clock pause owd orack trim probe_code \
	strip clock_loop ndp_wire ndp_sender ndp_receiver ndp_pull ndp_paths
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One fault per line: what the faulty engine does, "|", and the sed edit that makes the fault.
faults_of_target_delay() {
	cat <<-'FAULTS'
	the start grows beyond the link rate|s/ \&\& (!cfg->share_fp || r->rate_fp < cfg->share_fp))/)/
	data in the other direction do not count|s/return q0 + (theirs .*/return q0;/
	data in the other direction count without a square|s/c->ingress_q16 \* c->ingress_q16/c->ingress_q16 << 16/
	the senders of data in the other direction do not receive|s/(theirs \* square_q32/(q0 * square_q32/
	the senders of data receive where the receiver does not send|s/if (c->both_ways)$/if (1)/
	data in both directions do not count|s/c->both_ways \&\& /0 \&\& /
	data in both directions count where rates lag|s/ \&\& !cfg->lags \&\& !cfg->least_shift)/ \&\& !cfg->least_shift)/
	an overload begins at t_high|s/clamp_t(u64, ns, cfg->quiet_ns, cfg->t_high_ns)/cfg->t_high_ns/
	an overload may begin within two base RTTs|s/clamp_t(u64, ns, cfg->quiet_ns, cfg->t_high_ns)/min_t(u64, ns, cfg->t_high_ns)/
	an overload may begin above t_high|s/clamp_t(u64, ns, cfg->quiet_ns, cfg->t_high_ns)/max_t(u64, ns, cfg->quiet_ns)/
	an overload begins at five target delays|s/TARGET_OVERLOAD_QUEUES	6/TARGET_OVERLOAD_QUEUES	5/
	held ACKs are an overload|s/TARGET_OVERLOAD_ACK_AGGS	4/TARGET_OVERLOAD_ACK_AGGS	0/
	the start of a message is no overload|s/target_overload_ns(cfg, q0);/target_overload_ns(cfg, q0 + target_start_ns(r, cfg));/
	the delivery rate never counts|s/gain < 0 \&\& c->delivered_fp/0/
	the delivery rate counts in any overload|s/overload \&\& limit > cfg->quiet_ns/overload/
	the delivery rate counts above t_high only|s/overload \&\& limit > cfg->quiet_ns/0/
	one RTT is an overload|s/rtt > limit \&\& (!r->seeded || r->prev_rtt_ns > limit)/rtt > limit/
	an overload does not lower the rate of an application that sends little|s/ \&\& !overload ? 0 : / ? 0 : /
	a queue lowers the rate of an application that sends little|s/c->app_limited \&\& !c->may_rise \&\& !overload ? 0 : //
	the error may be eight|s/TARGET_ERROR_MAX_Q16	(4U/TARGET_ERROR_MAX_Q16	(8U/
	the target does not fall with the rate|s/15 + shift \/ 2/15/
	no square of the gradient term|s/TARGET_DAMP_EIGHTHS	3/TARGET_DAMP_EIGHTHS	0/
	one update may double the rate|s/gain = min(gain, TARGET_RISE_MAX_Q32);//
	messages start twice as fast|s/TARGET_START_RISE	4/TARGET_START_RISE	2/
	new connections yield like others|s/return clamp(fp, div_u64/return 0 * clamp(fp, div_u64/
	new connections have no share of the link|s/TARGET_OPENING_LEAST	10/TARGET_OPENING_LEAST	1000/
	new connections may have the whole link|s/TARGET_OPENING_MOST	2/TARGET_OPENING_MOST	1/
	new connections never yield|s/ || rtt > cfg->t_high_ns)$/)/
	rare completions weigh more|s/TARGET_RARE_QUEUES	24/TARGET_RARE_QUEUES	240/
	the start of a message never ends|s/r->start_kb -= .*;//
	hyperactive increase starts at once|s/!cfg->hai_threshold || r->low_ns < .*$/!cfg->hai_threshold)/
	FAULTS
}

faults_of_ack_wait() {
	cat <<-'FAULTS'
	any wait counts|s/min_t(u32, wait_us - 1, TIMELY_ACK_WAIT_MAX_US)/wait_us - 1/
	rounding is not taken off|s/wait_us - 1,/wait_us,/
	the lowest difference does not age|s/ - (max(age_us, 0) >> ACK_WAIT_DRIFT_SHIFT)//
	the lowest difference ages twice as fast|s/ACK_WAIT_DRIFT_SHIFT	14/ACK_WAIT_DRIFT_SHIFT	13/
	the lowest difference is never forgotten|s/ || age_us + ACK_WAIT_EARLY_US >= ACK_WAIT_AGE_US//
	an earlier arrival starts again|s/age_us + ACK_WAIT_EARLY_US >= ACK_WAIT_AGE_US/(u32)age_us >= ACK_WAIT_AGE_US/
	the lowest difference does not fall|s/wait_us <= 0 || //
	milliseconds are taken for microseconds|s/ \&\&$/ || 1 \&\&/
	the unit is measured once|s/ || age_us >= ACK_WAIT_UNSURE_US//
	any ID is an ACK time|s/if (timely_ack_time_id(time) != id) {/if (0) {/
	one ID is enough|s/ACK_TIME_SURE		8U/ACK_TIME_SURE		1U/
	equal IDs count|s/w->ids += .*/w->ids++;/
	another ID changes nothing|s/^\t\tw->ids = 0;$//
	times wrap too early|s/w->least_us, ACK_TIME_BITS - 1)/w->least_us, ACK_TIME_BITS - 2)/
	one unit is enough|s/ACK_WAIT_UNITS		16U/ACK_WAIT_UNITS		1U/
	FAULTS
}

faults_of_rate() {
	cat <<-'FAULTS'
	Tlow itself is below Tlow|s/if (rtt < cfg->t_low_ns) {/if (rtt <= cfg->t_low_ns) {/
	Thigh itself is above Thigh|s/rtt > cfg->t_high_ns/rtt >= cfg->t_high_ns/
	a flat gradient decreases|s/gradient <= 0/gradient < 0/
	no halving cap|s/max(rate + change, rate \/ 2)/rate + change/
	a cap of a quarter|s/rate + change, rate \/ 2/rate + change, rate \/ 4/
	no minimum rate|s/clamp_t(u64, rate, cfg->min_rate_fp,/clamp_t(u64, rate, 1,/
	HAI one completion late|s/r->hai >= cfg->hai_threshold/r->hai > cfg->hai_threshold/
	HAI steps are one fewer|s/weight \*= cfg->hai_factor/weight *= cfg->hai_factor - 1/
	below Tlow, HAI steps even if hai_below_t_low is 0|s/c, cfg->hai_below_t_low,/c, true,/
	patched rule: HAI steps at any w|s/c, w == 0,/c, true,/
	the HAI counter wraps|s/r->hai + 1, U8_MAX/r->hai + 1, 256/
	a flat RTT counts as falling|s/falls = diff < 0/falls = diff <= 0/
	a flat gradient counts as falling|s/falls = gradient < 0/falls = gradient <= 0/
	patched rule: any falling gradient counts for HAI|s/falls = timely_weight_q16(gradient) == 0/falls = gradient < 0/
	a decrease resets the HAI counter in mode raw|s/cfg->hai_count != TIMELY_HAI_RAW \&\& change < 0/change < 0/
	in mode increases, an unchanged rate counts|s/TIMELY_HAI_INCREASES \&\& change > 0/TIMELY_HAI_INCREASES \&\& change >= 0/
	a completion has full weight however soon it follows|s/return mul_u64_u64_shr(dt, .*/return Q16_ONE;/
	gradient decreases are always scaled by time|s/cfg->scale_decrease ? elapsed : Q16_ONE/elapsed/
	an app-limited flow keeps its HAI counter|/!c->may_rise/,/}/s/r->hai = 0;//
	the rate of an app-limited flow rises|s/change > 0 \&\& !c->may_rise/change > 0 \&\& false/
	RTTs below minRTT are not raised to minRTT|s/max(c->rtt_ns, cfg->min_rtt_ns)/c->rtt_ns/
	the first sample has a gradient|s/diff = r->seeded ? \(.*\) : 0/diff = \1/
	the average is rounded down|s/shift_round(gap \* cfg->alpha_q16, 16)/((gap * cfg->alpha_q16) >> 16)/
	the gradient is not smoothed|s/shift_round(gap \* cfg->alpha_q16, 16)/gap/
	once_per_rtt skips one more nanosecond|s/c->now_ns - r->updated_ns < r->prev/c->now_ns - r->updated_ns <= r->prev/
	a step counts up to 17 segments|s/STEP_MAX_SEGMENTS\t16/STEP_MAX_SEGMENTS\t17/
	steps are rounded down to whole bytes|s/return \(mul_u64_u.._shr(cfg->step_fp, weight, ..)\)/return \1 >> 16 << 16/
	w rises with half of the slope|s/2 \* gradient + Q16_ONE/gradient + Q16_ONE/
	the patched error saturates early|s/ERROR_MAX_Q16\t\t(1LL << 24)/ERROR_MAX_Q16\t\t(1LL << 23)/
	the patched error has no sign|s/error = -error/error = error/
	the patched share is not clamped|s/-(s64)Q32_ONE, Q32_ONE/-4 * (s64)Q32_ONE, 4 * Q32_ONE/
	the gradient share is not clamped|s/(u64)cfg->beta_q16 \* gradient, Q32_ONE/(u64)cfg->beta_q16 * gradient, 4 * Q32_ONE/
	FAST more than doubles|s/return min_t(s64, rise, r->rate_fp)/return rise/
	FAST reacts to the whole queue|s/mul_u64_u32_shr(queued_q32, cfg->alpha_q16, 16)/queued_q32/
	FAST adds alpha in full|s/rise = mul_u64_u32_shr(cfg->step_fp, cfg->alpha_q16, 16)/rise = cfg->step_fp/
	FAST divides the queue by minRTT|/timely_fast_fp/,/^}/s/<< 32, rtt)/<< 32, cfg->min_rtt_ns)/
	free losses do not use up the credit|s/credit - min(credit, drawn)/credit/
	the loss credit is at most 1 loss|s/LOSS_CREDIT_MAX_Q16	(10U/LOSS_CREDIT_MAX_Q16	(1U/
	the loss credit has no maximum|s/min_t(u64, credit, LOSS_CREDIT_MAX_Q16)/min_t(u64, credit, U32_MAX)/
	one loss more than the credit is free|s/drawn <= credit/drawn <= credit + Q16_ONE/
	delivered packets give credit again|s/loss->delivered = delivered;//
	above Thigh, beta instead of beta_high|s/excess_q32, cfg->beta_high_q16/excess_q32, cfg->beta_q16/
	a loss keeps the gradient|/^void timely_rate_loss/,/^}/s/timely_rate_reseed(r);//
	a limit is below the minimum rate|s/limit_fp = max(limit_fp, cfg->min_rate_fp);//
	a limit raises the rate|s/if (r->rate_fp <= limit_fp)/if (r->rate_fp == limit_fp)/
	a limit keeps the gradient|/^bool timely_rate_limit/,/^}/s/timely_rate_reseed(r);//
	a HAI threshold of 0 is always reached|s/hai_allowed \&\& cfg->hai_threshold \&\&/hai_allowed \&\&/
	a decrease never resets the HAI counter|s/TIMELY_HAI_RAW \&\& change < 0/TIMELY_HAI_RAW \&\& false/
	once_per_rtt delays the first sample|s/cfg->once_per_rtt \&\& r->seeded/cfg->once_per_rtt/
	the time of the last completion is not stored|s/r->updated_ns = c->now_ns;//
	the RTT of the last completion is not stored|s/r->prev_rtt_ns = rtt;//
	a restart is below the minimum rate|s/max(cfg->first_rate_fp, cfg->min_rate_fp)/cfg->first_rate_fp/
	Swift: a loss is no decrease|/^void timely_rate_loss/,/^}/s/r->recent_ns = U32_MAX;//
	window rules: the rate has no maximum|s/r->rate_fp = clamp(rate_fp, cfg->min_rate_fp, cfg->max_rate_fp);/r->rate_fp = max(rate_fp, cfg->min_rate_fp);/
	window rules: the window rises in a probe|s/c->may_rise = false;//
	Swift: the window is the rate times the base RTT|s/if (cfg->rule == TIMELY_RULE_SWIFT \&\& r->prev_rtt_ns)/if (0)/
	timeouts do not lead to the minimum rate|s/r->rate_fp = cfg->min_rate_fp;//
	FAULTS
}

faults_of_swift() {
	cat <<-'FAULTS'
	the window rises at the target, too|s/if (over_q16 < 0) {/if (over_q16 <= 65536) {/
	the window rises for an app-limited connection|s/c->may_rise \&\& !c->app_limited/c->may_rise/
	the window rises if it may not|s/c->may_rise \&\& !c->app_limited/!c->app_limited/
	the window falls with each completion|s/} else if (U32_MAX - r->recent_ns >= rtt) {/} else {/
	a decrease needs one more nanosecond|s/U32_MAX - r->recent_ns >= rtt/U32_MAX - r->recent_ns > rtt/
	a decrease needs the base RTT|s/U32_MAX - r->recent_ns >= rtt/U32_MAX - r->recent_ns >= cfg->min_rtt_ns/
	a decrease is not recorded|s/r->recent_ns = U32_MAX;//
	the time since the last decrease does not pass|s/r->recent_ns -= min_t.*//
	a window below one packet rises by 1 \/ window|s/if (root_q31 >= Q31_ONE)/if (0)/
	a window below one packet rises by a fourth|s/if (root_q31 >= Q31_ONE)/if (root_q31 >= 2 * Q31_ONE)/
	a window rises by 1 \/ sqrt(window)|s/mul_u64_u64_shr(mul_u64_u64_shr(rise_q24, root_q31, 31), root_q31, 31)/mul_u64_u64_shr(rise_q24, root_q31, 31)/
	flow scaling ends at 64 packets|s/SWIFT_FS_MAX_ROOT_Q31	(Q31_ONE \/ 10)/SWIFT_FS_MAX_ROOT_Q31	(Q31_ONE \/ 8)/
	flow scaling has no lower end|s/SWIFT_FS_MAX_ROOT_Q31	(Q31_ONE \/ 10)/SWIFT_FS_MAX_ROOT_Q31	0ULL/
	flow scaling begins at 1 packet|s/SWIFT_FS_MIN_Q24	((1ULL << WINDOW_SHIFT) \/ 10)/SWIFT_FS_MIN_Q24	(1ULL << WINDOW_SHIFT)/
	fs_range is one base target less|s/SWIFT_FS_RANGE		5/SWIFT_FS_RANGE		4/
	fs_range is in base RTTs|s/(u64)params->rtt_ref_ns \* SWIFT_FS_RANGE/(u64)params->min_rtt_ns * SWIFT_FS_RANGE/
	a is fs_range \/ 3|s/SWIFT_FS_MILLIONTHS	326554U/SWIFT_FS_MILLIONTHS	333333U/
	the target has no flow scaling|s/ + mul_u64_u64_shr(cfg->fs_ns, above_q31, 15)//
	the base target is the base RTT|s/((u64)cfg->rtt_ref_ns << 16)/((u64)cfg->min_rtt_ns << 16)/
	a decrease is not limited by max_mdf|s/return min(share, (u64)cfg->loss_beta_q16 << 16)/return share/
	a decrease has no factor beta|s/share = mul_u64_u32_shr(share, cfg->beta_q16, 16);//
	one step of Newton's method is missing|s/for (i = 0; i < 3; i++)/for (i = 0; i < 2; i++)/
	the window follows from the base RTT|s/r->prev_rtt_ns ?: cfg->min_rtt_ns/cfg->min_rtt_ns/
	the packet size is not used|s/div_u64(1ULL << 32, clamp(packet_bytes, 64U, 65535U))/div_u64(1ULL << 32, SWIFT_PACKET_BYTES)/
	packets of 0 bytes are allowed|s/clamp(packet_bytes, 64U, 65535U)/clamp(packet_bytes, 1U, 65535U)/
	the rate is not limited before it overflows|s/if (window_q24 >= swift_window_q24(cfg->max_rate_fp, rtt))/if (0)/
	FAULTS
}

faults_of_powertcp() {
	cat <<-'FAULTS'
	the gradient does not count|s/2 \* (diff_ns + dt_ns), dt_ns/2 * (s64)dt_ns, dt_ns/
	the gradient counts in half|s/2 \* (diff_ns + dt_ns)/diff_ns + 2 * (s64)dt_ns/
	steep falls are not limited|s/max_t(s64, 2 \* (diff_ns + dt_ns), dt_ns)/max_t(s64, 2 * (diff_ns + dt_ns), 0)/
	falls are limited to a quarter|s/max_t(s64, 2 \* (diff_ns + dt_ns), dt_ns)/max_t(s64, 2 * (diff_ns + dt_ns), dt_ns \/ 2)/
	a time above a base RTT counts as a base RTT|s/div_u64(twice_ns << (POWER_SHIFT - 1), dt_ns)/div_u64(twice_ns << (POWER_SHIFT - 1), cfg->min_rtt_ns)/
	the length of the queue does not count|s/powertcp_term_q24(cfg, diff_ns, dt_ns), length, POWER_SHIFT/powertcp_term_q24(cfg, diff_ns, dt_ns), 1ULL << POWER_SHIFT, POWER_SHIFT/
	power is not smoothed|s/(u64)r->power_q24 \* (cfg->min_rtt_ns - dt_ns)/(u64)(1U << POWER_SHIFT) * (cfg->min_rtt_ns - dt_ns)/
	power keeps its full weight|s/(u64)r->power_q24 \* (cfg->min_rtt_ns - dt_ns)/(u64)r->power_q24 * cfg->min_rtt_ns/
	power wraps|s/return min_t(u64, power, U32_MAX)/return power/
	the term with the gradient is not limited|s/return min(term, POWERTCP_TERM_MAX_Q24)/return term/
	the first RTT has a gradient|s/diff_ns = r->seeded ? (s64)rtt - r->prev_rtt_ns : 0/diff_ns = (s64)rtt - r->prev_rtt_ns/
	the first RTT counts for no time|s/U32_MAX) : cfg->min_rtt_ns/U32_MAX) : 0/
	the window is divided by the length only|s/max(r->power_q24, POWERTCP_LEAST_Q24)/max_t(u32, div_u64((u64)r->prev_rtt_ns << POWER_SHIFT, cfg->min_rtt_ns), POWERTCP_LEAST_Q24)/
	beta is not added|s/aim += cfg->step_fp;//
	gamma counts as 1|s/mul_u64_u32_shr(r->rate_fp - aim, cfg->alpha_q16, 16)/(r->rate_fp - aim)/
	gamma counts as 1 if the rate rises|s/mul_u64_u32_shr(aim - r->rate_fp, cfg->alpha_q16, 16)/(aim - r->rate_fp)/
	the window changes with each completion|s/if (U32_MAX - r->recent_ns < rtt)/if (0)/
	the window changes one nanosecond late|s/U32_MAX - r->recent_ns < rtt/U32_MAX - r->recent_ns <= rtt/
	the window changes once per base RTT|s/U32_MAX - r->recent_ns < rtt/U32_MAX - r->recent_ns < cfg->min_rtt_ns/
	an update is not recorded|s/r->recent_ns = U32_MAX;//
	the time since the last update does not pass|s/r->recent_ns -= min_t.*//
	the rate rises if it may not|s/return c->may_rise ? rate_fp : min(rate_fp, r->rate_fp)/return rate_fp/
	FAULTS
}

faults_of_wheel() {
	cat <<-'FAULTS'
	a time at a slot's start is rounded up to the next slot|s/!!(node->due_ns \& (width - 1))/1/
	times are rounded down, so nodes expire early|s/ + !!(node->due_ns \& (width - 1))//
	only times in the second half of a slot are rounded up|s/!!(node->due_ns \& (width - 1))/!!(node->due_ns \& (width \/ 2))/
	a past time is put into a past slot|s/tick = max(tick, w->tick);//
	the near ring takes one block too many|s/block <= present + 1/block <= present + 2/
	the near ring takes one block too few|s/block <= present + 1/block <= present/
	times beyond the far ring wrap around it|s/block = min(block, present + WHEEL_FAR_MASK);//
	the far ring takes one block too many|s/min(block, present + WHEEL_FAR_MASK)/min(block, present + TIMELY_WHEEL_SLOTS)/
	a far node sets next_tick to its own tick instead of its block's start|s/tick = block << TIMELY_WHEEL_BITS;//
	next_tick is that of the node added last|s/w->next_tick = min(w->next_tick, tick);/w->next_tick = tick;/
	adding an earlier node does not change next_tick|s/w->next_tick = min(w->next_tick, tick);//
	a far block moves near a slot late|s/max((block + blocks) << TIMELY_WHEEL_BITS, w->tick)/max((block + blocks) << TIMELY_WHEEL_BITS, w->tick) + 1/
	a far block hides earlier near slots|s/tick = min(tick, max(\(.*\)));/tick = max(\1);/
	near slots hide an earlier far block|s/if (blocks < TIMELY_WHEEL_SLOTS)/if (blocks < TIMELY_WHEEL_SLOTS \&\& tick == WHEEL_NEVER)/
	the search for a used slot ignores later slots of the first word|/^static u32 wheel_distance/,/^}/{s/if (bits)/if (bits \&\& !bit)/}
	the search does not recognise an empty ring|s/if (next == ring.words)/if (next > ring.words)/
	the distance to another word ignores the starting bit|s/ + 1) \* 64 - bit +/ + 1) * 64 +/
	the distance to another word is one word short|s/(ring.words - 1)) + 1) \* 64/(ring.words - 1))) * 64/
	the search starts again with the present word|s/start = (word + 1) \& (ring.words - 1)/start = word/
	the search goes through words from the first bit on|s/ring.full\[part\] \& (~0ULL << start % 64)/ring.full[part]/
	the search does not come back to the word where it started|s/i <= parts/i < parts/
	a slot is marked as used only with its second node|/^static void wheel_link/,/^}/s/} else {/} if (node->next) {/
	the word of a used slot is not marked|s/ring.full\[slot \/ 64 \/ 64\] |= /0 \& /
	the word of an emptied slot stays marked|s/ring.full\[slot \/ 64 \/ 64\] \&= .*/;/
	a word is unmarked when any of its slots becomes empty|s/if (!ring.bits\[slot \/ 64\])/if (1)/
	an emptied slot stays marked|s/ring.bits\[slot \/ 64\] \&= ~BIT_ULL(slot % 64);//
	a new node has no link to the next node|s/node->next = \*head;/node->next = NULL;/
	the node after a new one keeps its old back link|s/node->next->pprev = \&node->next;/;/
	deleting a node drops the nodes after it|s/\*pprev = node->next;/*pprev = NULL;/
	a deleted node still counts as queued|s/node->pprev = NULL;//
	the node after a deleted one keeps its back link to it|s/node->next->pprev = pprev;/;/
	deletion takes any list for a slot of the ring|s/if (offset >= ring.words \* 64 \* sizeof(\*head))/slot %= ring.words * 64; if (0)/
	near slots stay marked when they become empty|s/wheel_emptied(wheel_near(w), pprev);//
	far slots stay marked when they become empty|s/wheel_emptied(wheel_far(w), pprev);//
	the nodes left in a block are not moved when the block begins|s/wheel_spread(w, w->tick >> TIMELY_WHEEL_BITS, U32_MAX);//
	only one of the nodes left in a block is moved when the block begins|s/wheel_spread(w, w->tick >> TIMELY_WHEEL_BITS, U32_MAX);/wheel_spread(w, w->tick >> TIMELY_WHEEL_BITS, 1);/
	calls move nodes of the block after the next one|s/wheel_spread(w, (w->tick >> TIMELY_WHEEL_BITS) + 1, WHEEL_MOVES);/wheel_spread(w, (w->tick >> TIMELY_WHEEL_BITS) + 2, WHEEL_MOVES);/
	nodes of the present slot do not expire yet|s/while (w->next_tick <= last)/while (w->next_tick < last)/
	nodes expire a slot early|s/u64 last = now_ns >> w->shift;/u64 last = (now_ns >> w->shift) + 1;/
	the present tick jumps over nodes that are due|s/w->tick = max(w->tick, w->next_tick);/w->tick = last;/
	the present tick stays when nothing is due|s/w->tick = max(w->tick, last);//
	expired nodes stay in the wheel|/^struct timely_wheel_node \*timely_wheel_expire_slow/,/^}/s/timely_wheel_del(w, node);//
	next_ns is next_tick without a search|/^u64 timely_wheel_next_ns/,/^}/s/w->next_tick = wheel_find(w);//
	an empty wheel reports a next time|s/w->next_tick == WHEEL_NEVER ? WHEEL_NEVER :/0 ? 0 :/
	a new wheel starts at time 0|s/w->tick = now_ns >> shift;//
	a new wheel starts as if a node were due|s/w->next_tick = WHEEL_NEVER;//
	a new wheel keeps the former contents of its memory|s/memset(w, 0, sizeof(\*w));//
	FAULTS
}

faults_of_rtt() {
	cat <<-'FAULTS'
	an ACK that confirms no new data counts|s/if (!ack->new)/if (0)/
	a retransmitted segment counts|s/if (ack->retransmitted)/if (0)/
	an ACK in recovery counts|s/if (ack->recovery)/if (0)/
	a segment whose departure was skipped counts|s/if (ack->skipped)/if (0)/
	a delayed ACK may give an RTT below the base RTT|s/if (rtt_ns + TIMELY_RTT_LEAST_SLACK_NS < .*/if (0)/
	an ACK of part of a segment counts|s/if (timely_seq_after(ack->end_seq, ack->una) \&\& !ack->sent_ns)/if (0)/
	a segment that SACK completes is taken for a part|s/(ack->end_seq, ack->una) \&\& !ack->sent_ns)/(ack->end_seq, ack->una))/
	an ACK of the last byte is taken for a part|s/return (s32)(b - a) < 0;/return (s32)(b - a) <= 0;/
	sequence numbers do not wrap|s/return (s32)(b - a) < 0;/return a > b;/
	an ACK that TCP takes for delayed counts|s/if (ack->delayed)/if (0)/
	a doubtful timestamp is used|s/if (ack->source == TIMELY_RTT_doubtful)/if (0)/
	recovery is checked before retransmission|s/if (ack->retransmitted)/if (ack->retransmitted \&\& !ack->recovery)/
	partial ACKs are checked before recovery|s/if (ack->recovery)/if (ack->recovery \&\& !timely_seq_after(ack->end_seq, ack->una))/
	TCP's time is used instead of the timestamp|s/ack->arrived_ns ?: ack->now_ns/ack->now_ns/
	TCP's time is not used without a timestamp|s/ack->arrived_ns ?: ack->now_ns/ack->arrived_ns/
	the scheduled time is used instead of the departure|s/ack->sent_ns ?: ack->scheduled_ns/ack->scheduled_ns/
	the scheduled time is not used without a departure|s/ack->sent_ns ?: ack->scheduled_ns/ack->sent_ns/
	a negative RTT is not refused|s/if (end_ns < sent_ns)/if (0)/
	an RTT of zero is refused as negative|s/if (end_ns < sent_ns)/if (end_ns <= sent_ns)/
	a long RTT is not refused|s/if (rtt_ns > TIMELY_RTT_MAX_NS)/if (0)/
	an RTT of exactly ten seconds is refused|s/rtt_ns > TIMELY_RTT_MAX_NS/rtt_ns >= TIMELY_RTT_MAX_NS/
	a queue that outlasts the probe is taken for ACK aggregation|s/if (!drained)/if (0)/
	a queue that rises in the first probe is taken for ACK aggregation|s/return !ack_agg->past_first .*/return false;/
	a queue that rises in the first probe counts in the second|s/!ack_agg_counts(ack_agg, true) : queue)/!ack_agg_counts(ack_agg, true) : false)/
	an RTT is compared with the connection's previous one only, to see if RTTs fall|s/fall_ns = max(fall_ns,/jump_ns = max(jump_ns,/
	if rates lag, 32 RTTs of a little aggregation are enough|s/ \&\& ack_agg->samples == ACK_AGG_SAMPLES_MAX//
	a delayed last packet counts|s/if (rtt_ns > ack->tail_limit_ns \&\&/if (0 \&\&/
	with nothing in flight, an ACK is not of a last packet|s/ack->in_flight <= 1/ack->in_flight == 1/
	with two packets in flight, an ACK is taken for that of a last packet|s/ack->in_flight <= 1/ack->in_flight <= 2/
	a last packet's RTT at the limit is refused|s/rtt_ns > ack->tail_limit_ns/rtt_ns >= ack->tail_limit_ns/
	the RTT of any last packet is refused|s/if (rtt_ns > ack->tail_limit_ns \&\& /if (/
	several small last packets do not count as last|s/(ack->acked >= ack->in_flight \&\& bytes <= ack->mss)/false/
	small packets count as last with more in flight|s/ack->acked >= ack->in_flight \&\& bytes/bytes/
	the last packets count as last whatever their size|s/ \&\& bytes <= ack->mss)/)/
	one byte more than an MSS counts as last|s/bytes <= ack->mss)/bytes <= ack->mss + 1)/
	serialization of all completed bytes is subtracted|s/min(bytes, ack->segment_bytes);/bytes;/
	serialization of the completed bytes though the segment's size is known|s/return ack->sent_ns ? ack->segment_bytes :/return/
	serialization of a full segment is always subtracted|s/min(bytes, ack->segment_bytes);/ack->segment_bytes;/
	serialization is not subtracted|s/rtt_ns -= min(rtt_ns, serialisation_ns);//
	serialization overflows 32 bits|s/(u64)timely_rtt_segment/timely_rtt_segment/
	serialization makes RTTs negative|s/rtt_ns -= min(rtt_ns, serialisation_ns);/rtt_ns -= serialisation_ns;/
	serialization is computed in whole ns per byte|s/ack->ns_per_byte_q16 >> 16;/(ack->ns_per_byte_q16 >> 16);/
	RTTs above 4 s wrap|s/completion->rtt_ns = min_t(u64, rtt_ns, U32_MAX);/completion->rtt_ns = rtt_ns;/
	bytes are counted from packets only|s/return acked;/;/
	with SACK, only bytes in order are counted|s/if (!ack->sacked \&\& acked/if (acked/
	bytes are counted from sequence numbers only|s/if (!ack->sacked \&\& acked \&\& acked < delivered)/if (1)/
	bytes confirmed by SACK are not counted|s/if (!ack->sacked \&\& acked \&\& acked < delivered)/if (!ack->sacked \&\& acked < delivered)/
	bytes are counted in 32 bits|s/(u64)(u32)(ack->delivered - rtt->delivered)/(u32)(ack->delivered - rtt->delivered)/
	the count of packets does not wrap|s/(u64)(u32)(ack->delivered - rtt->delivered)/((u64)ack->delivered - rtt->delivered)/
	a completion may have no bytes|s/clamp_t(u64, delivered, 1, U32_MAX)/min_t(u64, delivered, U32_MAX)/
	the bytes of a completion wrap|s/clamp_t(u64, delivered, 1, U32_MAX)/max_t(u64, delivered, 1)/
	a completion has the time of the ACK's arrival|s/completion->now_ns = ack->now_ns/completion->now_ns = end_ns/
	completed bytes complete again|s/rtt->seq = ack->una;//
	completed packets complete again|s/rtt->delivered = ack->delivered;//
	data confirmed by refused ACKs is never completed|s/if (result != TIMELY_RTT_COUNTER_COUNT)$/rtt->delivered = ack->delivered; if (result != TIMELY_RTT_COUNTER_COUNT)/
	without a timestamp, the source is not TCP's time|s/ack->arrived_ns ? ack->source : TIMELY_RTT_tcp/ack->source/
	FAULTS
}

faults_of_clock() {
	cat <<-'FAULTS'
	a timestamp is judged while the mapping is being learnt|s/map->state < TIMELY_CLOCK_SURE ||/map->state == TIMELY_CLOCK_NONE ||/
	a timestamp is good while the mapping is in doubt|s/if (map->state == TIMELY_CLOCK_DOUBT || residual_ns/if (residual_ns/
	an expired mapping is used|s/(s64)(host_ns - map->host_ns) > (s64)map->sure_ns)/0)/
	the gate is not checked|s/residual_ns > (s64)map->gate_ns/0/
	a pair at the gate is refused|s/residual_ns > (s64)map->gate_ns/residual_ns >= (s64)map->gate_ns/
	a pair below the mapping is not refused|s/residual_ns < -(s64)map->below_ns ||$/0 ||/
	an arrival may be later than the handling|s/residual_ns > 0 ? (u64)residual_ns : 0/residual_ns/
	the drift is not applied|s/gain = (since \* map->drift_q32) >> 32;/gain = 0;/
	a mapping is used beyond its range|s/if (since > TIMELY_CLOCK_RANGE_NS || since < -TIMELY_CLOCK_RANGE_NS)/if (0)/
	residuals wrap|s/if (residual > -TIMELY_CLOCK_NOWHERE || residual < TIMELY_CLOCK_NOWHERE)/if (0)/
	a batch keeps the highest pair|s/residual_ns < batch->min_ns) {/residual_ns > batch->min_ns) {/
	a batch outlives its mapping|s/!batch->count || batch->epoch != map->epoch/!batch->count/
	an old batch is not due|s/host_ns - batch->since_ns >= map->batch_ns/0/
	a batch with a pair below the mapping is not due early|s/batch->min_ns < -(s64)map->below_ns/0/
	a batch of high pairs is not due early|s/batch->min_ns > (s64)map->high_ns/0/
	a batch of an earlier mapping is used|s/if (!sample.pairs || batch->epoch != map->epoch)/if (!sample.pairs)/
	a batch is not emptied|s/batch->count = 0;$/;/
	a taken batch keeps its start time|s/batch->since_ns = batch->last_ns;//
	blocks keep their first pair|/^static void track_lower/,/^}/s/block->nic_ns = nic_ns;/return;/
	an older pair may open a block|s/(s64)(sample->nic_ns - last->nic_ns) > 0;/1;/
	a late pair is added to the newest block|s/while (block > track->blocks \&\& .*)/while (0)/
	the block removed is the longest for its age|s/if (span \* best_age < best_span \* age)/if (best_span == U32_MAX || span * best_age > best_span * age)/
	blocks are removed, never merged|s/now_ns - gone->opened_ns < CLOCK_TRACK_NS/now_ns - gone->opened_ns < 1/
	the fit uses the upper hull|s/>= (y\[c\] - y\[a\]) \* (x\[a\] - x\[b\])/<= (y[c] - y[a]) * (x[a] - x[b])/
	the fit uses the newest edge of the hull|s/x\[clock->hull\[i + 1\]\] > middle)/false)/
	the fit uses the oldest edge of the hull|s/x\[clock->hull\[i + 1\]\] > middle)/true)/
	the fit has no slope|s/fit->slope_q32 = clamp(slope, .*/fit->slope_q32 = 0;/
	the fit has half of the slope|s/fit->slope_q32 = clamp(slope, /fit->slope_q32 = clamp(slope \/ 2, /
	the fit is at the height of the hull|s/fit->at_ns -= div64_u64(2 \* fit->density, work->pairs);//
	errors of fits are half as large|s/u64 error = div64_u64(density \* times, pairs);/u64 error = div64_u64(density * times, pairs) \/ 2;/
	errors of fits are four times as large|s/u64 error = div64_u64(density \* times, pairs);/u64 error = div64_u64(density * times, pairs) * 4;/
	fits need not agree|s/return range->low_ns <= range->high_ns;/return true;/
	only the shortest periods are fitted|s/agree = fit_stretch(clock, \&work, i + 1, \&fit);/agree = fit_stretch(clock, \&work, i + 1, \&fit) \&\& i < 8;/
	a step between two cross-timestamps is taken for drift|s/if (off_ppb <= clock->drift_error_ppb + drift_ppb + CLOCK_SERVO_PPB)/if (1)/
	the error of an edge counts all pairs|s/return min(4 \* old, work->pairs);/return work->pairs;/
	the error of the drift does not grow|s/best->slope_ppb \*= 2;/;/
	the density is 100 times too low|s/return abs(a_ns - b_ns) \* (pairs + 2);/return abs(a_ns - b_ns) * (pairs + 2) \/ 100;/
	the drift is never changed|s/map->drift_q32 = clamp(map->drift_q32 + fit.slope_q32, /map->drift_q32 = clamp(map->drift_q32, /
	the drift has no limits|s/map->drift_q32 = clamp(map->drift_q32 + fit.slope_q32, .*/map->drift_q32 += fit.slope_q32;/;s/^\t\t\t       CLOCK_MAX_DRIFT_Q32);//
	a change of the drift is not measured|s/if (ns < 2 \* CLOCK_MAX_X_NS \&\& change > error)/if (0)/
	the spread never changes|s/spread += div_s64(.*/;/
	the gate is below the spread|s/map->spread_ns + map->spread_ns \/ 4 + CLOCK_GATE_NS/map->spread_ns \/ 4 + CLOCK_GATE_NS/
	every mapping becomes sure|s/if (error_ns > limit) {/if (0) {/
	a mapping never expires|s/map->sure_ns = div64_u64(.*/map->sure_ns = U32_MAX;/
	a new mapping keeps the epoch|/^static void clock_begin/,/^}/s/map->epoch++;//
	high pairs never put the mapping in doubt|s/return evidence > CLOCK_EVIDENCE \* density;/return false;/
	too little evidence puts the mapping in doubt|s/return evidence > CLOCK_EVIDENCE \* density;/return evidence > 2 * density;/
	the height of one pair is not limited|s/height = clamp(height, 0LL, CLOCK_EVIDENCE_PAIR \* density);/height = clamp(height, 0LL, CLOCK_MAX_Y_NS);/
	a doubt keeps the pairs of the previous doubt|s/timely_clock_trial(clock)->count = 0;$/;/
	pairs near the mapping do not end a doubt|s/if (!below \&\& doubt_near(clock, sample))/if (0)/
	the scatter of heights does not end a doubt|s/if (clock->scatters < 4 || clock->below)/if (1)/
	pairs of any height end a doubt|s/if (height - floor <= (s64)(density \/ CLOCK_TEST_PAIRS))/if (1)/
	the first pair below the mapping is a step|s/if (below \&\& clock->below++) {/if (below) {/
	pairs below the mapping are never a step|s/if (below \&\& clock->below++) {/if (0) {/
	a doubt becomes a step too soon|s/opened_ns < CLOCK_DOUBT_NS ||/opened_ns < CLOCK_DOUBT_NS \/ 8 ||/
	a doubt never becomes a step|s/opened_ns < CLOCK_DOUBT_NS ||/opened_ns >= 0 ||/
	a step discards the pairs of the doubt|s/clock->track = !clock->track;//
	a host clock that was set back is taken for a late CPU|s/if (clock->doubted_ns - sample->host_ns < CLOCK_LATE_NS)/if ((s64)(sample->host_ns - clock->doubted_ns) <= 0)/
	a time without packets changes nothing|s/sample->host_ns - track->blocks\[track->count - 1\].host_ns > CLOCK_PAUSE_NS)/0)/
	learning continues after pairs of any height|s/if (abs(sample->height_ns) > CLOCK_MAX_Y_NS ||$/if (/
	timely_clock_forget() keeps the mapping|/^void timely_clock_forget/,/^}/s/clock->map.state = TIMELY_CLOCK_NONE;/clock->map.state = TIMELY_CLOCK_SURE;/
	timely_clock_forget() keeps the epoch|/^void timely_clock_forget/,/^}/s/clock->map.epoch++;//
	the uncertainty does not grow|s/(u64)max(age_ns, 0LL) \* map->growth_ppb/0/
	the uncertainty shrinks for times before the reference point|s/max(age_ns, 0LL)/age_ns/
	cross-timestamps of any width are used|s/if (width > CLOCK_MAX_CROSS_NS || /if (/
	cross-timestamps do not move the mapping|s/^\tclock->map.host_ns += move;//
	cross-timestamps do not change the minimum handling delay|s/clock->min_handling_ns = clamp(clock->min_handling_ns - move, .*/;/
	cross-timestamps do not end a doubt|/^bool timely_clock_cross_timestamp/,/^}/s/clock_trust(clock);/;/
	cross-timestamps do not detect steps up|s/if (low > (s64)clock->min_handling_ns + error ||$/if (/
	cross-timestamps do not detect steps down|s/low + (s64)width < (s64)clock->min_handling_ns - CLOCK_MAX_HANDLING_NS - error/0/
	no mapping is sure after a cross-timestamp|s/bool good = width_ns <= CLOCK_ANCHOR_NS \&\& .*/bool good = false;/
	a falling minimum handling delay is a step|s/^\tif (clock->min_handling_ns)$/\tif (0)/
	FAULTS
}

faults_of_pause() {
	cat <<-'FAULTS'
	b is 0 at first|s/pause->b = TIMELY_PAUSE_FIRST_B;/;/
	b is 1 at first|s/pause->b = TIMELY_PAUSE_FIRST_B;/pause->b = TIMELY_PAUSE_ONE;/
	the state is not set to zero|s/memset(pause, 0, sizeof(\*pause));//
	delays of any length count|s/if (signal->delay_ns > TIMELY_PAUSE_DELAY_MAX_NS)/if (0)/
	a delay of exactly a second is refused|s/if (signal->delay_ns > TIMELY_PAUSE_DELAY_MAX_NS)/if (signal->delay_ns >= TIMELY_PAUSE_DELAY_MAX_NS)/
	a start uses delays of any length|s/delay_ns > TIMELY_PAUSE_DELAY_MAX_NS || signal->now_ns/signal->now_ns/
	pauses longer than any delay count in full|s/min_t(u64, asserted_ns, TIMELY_PAUSE_DELAY_MAX_NS)/asserted_ns/
	a rise counts as a fall|s/if (black_ns <= green_ns)/if (0)/
	b is 1 for a fall that is one ns short of the pause|s/if (black_ns - green_ns >= asserted)/if (black_ns - green_ns + 1 >= asserted)/
	a measured b may be above 1|s/if (black_ns - green_ns >= asserted)/if (0)/
	a measured b is half as large|s/<< PAUSE_SHIFT, asserted/<< (PAUSE_SHIFT - 1), asserted/
	the gain may be above 1|s/min(cfg->gain, TIMELY_PAUSE_ONE)/cfg->gain/
	b is updated in strawman mode|s/!cfg->strawman \&\& pause->have_black/pause->have_black/
	b is updated with the first packet|s/ \&\& pause->have_black \&\& / \&\& /
	b is updated without a pause between two packets|s/(s64)asserted_ns > 0)/(s64)asserted_ns >= 0)/
	b is updated by packets out of order|s/(s64)asserted_ns > 0)/asserted_ns > 0)/
	b is rounded down|s/ +$/ + 0 */
	the average of b is without its old value|s/(TIMELY_PAUSE_ONE - gain)/0/
	the average of b never changes|s/(u64)b \* gain/(u64)pause->b * gain/
	the delay of the black packet is not stored|s/pause->black_delay_ns = signal->delay_ns;//
	C at the departure of the black packet is not stored|s/pause->black_asserted_ns = signal->asserted_ns;//
	the present C is stored for the black packet|s/black_asserted_ns = signal->asserted_ns/black_asserted_ns = pause->asserted_ns/
	every signal counts as the first one|s/pause->have_black = true;//
	a pause is in force one ns longer|s/before_ns > now_ns ? before_ns - now_ns : 0/before_ns >= now_ns ? before_ns - now_ns + 1 : 0/
	the time already paused does not count|s/paused_ns = now_ns > .*/paused_ns = 0;/
	a clock that runs backwards counts as a long pause|s/paused_ns = now_ns > .*/paused_ns = now_ns - pause->since_ns;/
	a pause may follow without a departure|s/if (before_ns \&\& signal->departures == pause->departures)/if (0)/
	the first pause requires a departure|s/if (before_ns \&\& signal->departures/if (signal->departures/
	the start of a pause is not stored|s/pause->since_ns = now_ns;//
	the departures at the start of a pause are not stored|s/pause->departures = signal->departures;//
	departures during a pause are stored as of its start|s/\(\t\)paused_ns = now_ns >/\1pause->departures = signal->departures; paused_ns = now_ns >/
	pause_max does not limit a pause|s/excess_ns = min(excess_ns, cfg->pause_max_ns - .*/;/
	a pause may go on after pause_max|s/min(cfg->pause_max_ns, paused_ns)/(cfg->pause_max_ns ? min(cfg->pause_max_ns - 1, paused_ns) : 0)/
	pause_max counts from now, not from the start of the pause|s/cfg->pause_max_ns - min(cfg->pause_max_ns, paused_ns)/cfg->pause_max_ns/
	the end of a pause wraps|s/excess_ns = min(excess_ns, U64_MAX - now_ns);//
	the end of a pause never becomes earlier|s/pause->until_ns = now_ns + excess_ns;/pause->until_ns = max(before_ns, now_ns + excess_ns);/
	the new pause is added to the present one|s/pause->until_ns = now_ns + excess_ns;/pause->until_ns = now_ns + excess_ns + rest_ns;/
	C counts the rest of the present pause twice|s/pause->asserted_ns += excess_ns - rest_ns;/pause->asserted_ns += excess_ns;/
	C does not fall|s/pause->asserted_ns += excess_ns - rest_ns;/pause->asserted_ns += excess_ns > rest_ns ? excess_ns - rest_ns : 0;/
	C counts more than the limited pause|s/pause->asserted_ns += excess_ns - rest_ns;/pause->asserted_ns += signal->delay_ns - rest_ns;/
	C does not count|s/pause->asserted_ns += .*//
	every call reports a change|s/return pause->until_ns != before_ns;/return true;/
	no call reports a change|s/return pause->until_ns != before_ns;/return false;/
	b is updated after it is used|/^bool timely_pause_update/,/^}/{s/^\tpause_learn(pause, cfg, signal);//;s/^\tpending_ns = pause->asserted_ns - .*/&\n\tu32 old = pause->b; pause_learn(pause, cfg, signal);/;s/pending_ns, pause->b, /pending_ns, old, /}
	a recorded C ahead of the present one counts|s/if ((s64)pending_ns < 0)/if (0)/
	C does not wrap|s/if ((s64)pending_ns < 0)/if (signal->asserted_ns > pause->asserted_ns)/
	P is without the rest of the present pause|s/^\tpending_ns = pause->asserted_ns - signal->asserted_ns;/&\n\tif (pause->until_ns > signal->now_ns) pending_ns -= pause->until_ns - signal->now_ns;/
	the delay falls by all of P|s/seen_ns = cfg->strawman ? 0 : .*/seen_ns = cfg->strawman ? 0 : pending_ns;/
	the delay does not fall by P|s/seen_ns = cfg->strawman ? 0 : .*/seen_ns = 0;/
	pauses count in strawman mode|s/seen_ns = cfg->strawman ? 0 : /seen_ns = /
	a delay that P explains completely is not recognised|s/if (signal->delay_ns <= seen_ns || signal->delay_ns/if (signal->delay_ns/
	a delay at the threshold pauses|s/signal->delay_ns - seen_ns <= cfg->threshold_ns/signal->delay_ns - seen_ns < cfg->threshold_ns/
	a pause lasts for the whole delay|s/signal->delay_ns - seen_ns - cfg->threshold_ns);/signal->delay_ns - seen_ns);/
	a signal without a new pause ends the present one|s/^\t\treturn false;$/\t\treturn (pause->until_ns = 0);/
	a turn during a pause|s/return turn_ns \&\& signal->now_ns >= pause->until_ns/return turn_ns/
	a turn of 0 is a pause|s/return turn_ns \&\& /return /
	a start during a pause|s/ || signal->now_ns < pause->until_ns)/)/
	no start at the end of a pause|s/signal->now_ns < pause->until_ns)/signal->now_ns <= pause->until_ns)/
	a start uses a delay that is shorter than its age|s/if (delay_ns <= age_ns || delay_ns/if (delay_ns/
	a start by a delay at the threshold|s/delay_ns - age_ns <= cfg->threshold_ns/delay_ns - age_ns < cfg->threshold_ns/
	a start does not subtract the age of the delay|s/delay_ns - age_ns - cfg->threshold_ns);/delay_ns - cfg->threshold_ns);/
	a start does not subtract the threshold|s/delay_ns - age_ns - cfg->threshold_ns);/delay_ns - age_ns);/
	a start updates b|s/return pause_assert(pause, cfg, signal, delay_ns/pause_learn(pause, cfg, signal); return pause_assert(pause, cfg, signal, delay_ns/
	the rate of a new flow is limited|s/rate_Bps = TIMELY_RESUME_UNLIMITED }/rate_Bps = 1 }/
	pauses long ago count|s/if (period_ns > RESUME_STALE_RTTS \* rtt_ns)/if (!resume->begun_ns)/
	no pause is recent enough|s/if (period_ns > RESUME_STALE_RTTS \* rtt_ns)/if (1)/
	pauses more than 8 RTTs ago do not count|s/RESUME_STALE_RTTS	16/RESUME_STALE_RTTS	8/
	a pause exactly 16 RTTs ago does not count|s/period_ns > RESUME_STALE_RTTS/period_ns >= RESUME_STALE_RTTS/
	the average is the last rate|s/rate_Bps = (3 \* resume->average_Bps + rate_Bps) \/ 4;/;/
	the limit is the average itself|s/RESUME_QUARTERS \* rate_Bps \/ 4/rate_Bps/
	no minimum rate|s/RESUME_MIN_BYTES \* NSEC_PER_SEC/0/
	the start time of a period is not stored|s/^\tresume->begun_ns = now_ns;//
	the bytes at the start of a period are not stored|s/^\tresume->begun_bytes = bytes;//
	the limit grows at the end of a pause|s/until_ns + RESUME_FIRST_RTTS \* rtt_ns/until_ns/
	the limit grows from the start of a pause|s/until_ns + RESUME_FIRST_RTTS \* rtt_ns/now_ns + RESUME_FIRST_RTTS * rtt_ns/
	the limit grows with each signal|s/resume->grow_ns = now_ns + rtt_ns;//
	the limit does not grow|s/resume->rate_Bps += .*;//
	the limit is never removed|s/if (resume->rate_Bps > RESUME_MAX_BPS)/if (0)/
	the average rate has no maximum|s/rate_Bps = min(rate_Bps, RESUME_MAX_BPS);//
	the minimum is 0 at first|s/filter->least = U64_MAX;/filter->least = 0;/
	the previous half keeps its memory's contents at first|/^void timely_min_filter_init/,/^}/s/filter->before = U64_MAX;//
	a clock that was set back starts no new window|s/if (back || gone_ns - /if (gone_ns - /
	any step back starts a new window|s/if (gone_ns >= half_length_ns) {/if (back || gone_ns >= half_length_ns) {/
	an earlier time counts as a much later one|s/bool back = .*/bool back = false;/
	a half ends one ns late|s/if (gone_ns >= half_length_ns) {/if (gone_ns > half_length_ns) {/
	the whole window expires one ns late|s/gone_ns - half_length_ns >= half_length_ns/gone_ns - half_length_ns > half_length_ns/
	the whole window never expires|s/if (back || gone_ns - half_length_ns >= half_length_ns)/if (back)/
	the whole window expires with each half|s/if (back || gone_ns - half_length_ns >= half_length_ns)/if (1)/
	a half starts with its first value|s/filter->half_ns += half_length_ns;/filter->half_ns = now_ns;/
	a new window has no start time|s/filter->half_ns = now_ns;/filter->half_ns = 0;/
	a new window keeps the previous half|s/^\t\t\tfilter->before = U64_MAX;//
	the minimum of a half is not kept for the next|s/filter->before = filter->least;//
	a new half keeps the old minimum|s/^\t\tfilter->least = U64_MAX;//
	any value becomes the minimum|s/filter->least = min(filter->least, value);/filter->least = value;/
	a shift changes an empty half|s/if (least == U64_MAX)/if (0)/
	a shift wraps below 0|s/least - min(least, -(u64)more)/least + more/
	a shift goes beyond the maximum|s/least + min_t(u64, more, room)/least + more/
	a shift does not change the present half|s/filter->least = min_filter_shifted.*//
	a shift does not change the previous half|s/filter->before = min_filter_shifted.*//
	the previous half does not count|s/return min(filter->least, filter->before);/return filter->least;/
	FAULTS
}

faults_of_owd() {
	cat <<-'FAULTS'
	the state is not set to zero|s/memset(owd, 0, sizeof(\*owd));//
	an offset is never too old|s/age_ns >= sync->valid_ns/0/
	the error of an offset does not grow|s/ + (age_ns \* sync->growth_q32 >> 32)//
	an offset does not drift|s/(u64)((s64)age_ns \* sync->drift_q32 >> 32)/0/
	an offset is never too inexact|s/return \*bound_ns <= bound_max_ns;/return true;/
	the error of an offset is rounded down|s/ + NSEC_PER_SEC - 1, NSEC_PER_SEC)/, NSEC_PER_SEC)/
	relative delays after absolute ones forget the minimum RTT|/if (owd->absolute_ns) {/,/}/s/owd->raw = owd->rtt;//
	the minimum filter of round trips starts with 0|s/timely_min_filter_init(&owd->rtt);//
	RTTs of TCP do not bound relative delays|s/^\ttimely_min_filter_add(&owd->rtt, now_ns, OWD_FILTER_HALF_NS, rtt_ns);//
	RTTs of TCP do not enter the filter of one-way delays|s/^\ttimely_min_filter_add(&owd->raw, now_ns, OWD_FILTER_HALF_NS, rtt_ns);//
	the receiver's turnaround is part of the round trip|s/signal->now_ns - signal->sent_ns - signal->turnaround_ns;/signal->now_ns - signal->sent_ns;/
	intervals need not meet from below|s/if (low > (s64)known->width_ns + drift_ns + OWD_OFFSET_SLACK_NS)/if (0)/
	intervals need not meet from above|s/if (high < -drift_ns - OWD_OFFSET_SLACK_NS)/if (0)/
	clocks may not drift|s/drift_ns = age_ns >> OWD_OFFSET_DRIFT_SHIFT;/drift_ns = 0;/
	intervals have no slack|s/((s64)(16 \* NSEC_PER_USEC))/((s64)0)/
	intervals are not narrowed from below|s/low = max(low, -drift_ns);/low = -drift_ns;/
	intervals are not narrowed from above|s/high = min(high, (s64)known->width_ns + drift_ns);/high = (s64)known->width_ns + drift_ns;/
	a narrowed interval keeps its lower end|s/known->low_ns += (u64)low;//
	an interval keeps its width|s/known->width_ns = (u64)(high - low);//
	an accepted interval keeps its old time|s/known->at_ns = sample->at_ns;//
	a new flow does not use the interval of other flows|s/timeline->known = owd_is_fresh(owd, signal->now_ns) ? owd->offset : sample;/timeline->known = sample;/
	the interval of other flows never expires|s/(s64)(now_ns - owd->offset.at_ns) < (s64)OWD_FRESH_NS/1/
	an OR-ACK that agrees does not reset the count of a step|/if (owd_offset_meets(&timeline->known, &sample)) {/,/}/s/timeline->count = 0;//
	any step is accepted at once|s/if (timeline->count < OWD_STEP_SIGNALS ||/if (0 \&\& (timeline->count < OWD_STEP_SIGNALS ||/;s/< (s64)OWD_STEP_NS)$/< (s64)OWD_STEP_NS))/
	a step is never accepted|s/timeline->count++;/timeline->count = 1;/
	a step is accepted after eight OR-ACKs in less than 20 ms|s/(s64)(signal->now_ns - timeline->since_ns) < (s64)OWD_STEP_NS/0/
	a step is accepted after 20 ms with fewer than eight OR-ACKs|s/timeline->count < OWD_STEP_SIGNALS ||/0 ||/
	OR-ACKs that disagree on the step count|s/ || !owd_offset_meets(&timeline->other, &sample)//
	a step is not counted|s/^\t\tif (owd)$/\t\tif (0)/
	the interval of a flow is not shared with others|s/^\tif (owd)$/\tif (0)/
	a clock mapping that cannot be right is kept|s/^\t\ttimely_clock_forget(owd->clock);//
	the round trip does not bound a relative delay|s/min(raw_ns - least_ns, excess_ns)/raw_ns - least_ns/
	a relative delay is the excess of the round trip|s/min(raw_ns - least_ns, excess_ns)/excess_ns/
	any receive time is accepted|s/if (!owd_believes(owd, timeline, signal))/if (0)/
	absolute delays below 0 are accepted|s/if (delay < -slack_ns || /if (/
	absolute delays above the round trip are accepted|s/delay > rtt_ns + slack_ns ||/0 ||/
	the error of clocks is not tolerated|s/max_t(s64, error_ns, OWD_SLACK_NS)/OWD_SLACK_NS/
	an absolute delay is not limited to the round trip|s/(u64)clamp(delay, 0LL, rtt_ns)/(u64)delay/
	a doubted delay is not bounded|s/\*delay_ns = min(\*delay_ns, excess_ns);//
	a delay at the minimum round trip is not exempt from doubt|s/!lowest \&\& delay_ns/delay_ns/
	delays that round trips explain cause doubt|s/delay_ns - threshold_ns > excess_ns/1/
	one delay causes doubt|s/OWD_STRANGE_SIGNALS\t16/OWD_STRANGE_SIGNALS\t1/
	doubt starts without waiting|s/(s64)(signal->now_ns - owd->strange_ns) >= (s64)OWD_STRANGE_NS/1/
	doubt does not end at delays below the threshold|/if (delay_ns <= threshold_ns) {/,/}/s/owd->doubted = false;//
	doubt does not end after a time without signals|s/if (silence_ns > (s64)OWD_DOUBT_NS)/if (0)/
	delays that are far apart count together|s/if (silence_ns > (s64)gap_ns)/if (0)/
	each doubted delay counts as a new doubt|s/owd->noticed += !owd->doubted;/owd->noticed++;/
	FAULTS
}

faults_of_orack() {
	cat <<-'FAULTS'
	the second word of the key is ignored|s/sip.key\[1\] = key->words\[1\];/sip.key[1] = 0;/
	the first word of the key is ignored|s/sip.key\[0\] = key->words\[0\];/sip.key[0] = 0;/
	the words of the key are exchanged|s/sip.key\[0\] = key->words\[0\];/sip.key[0] = key->words[1];/;s/sip.key\[1\] = key->words\[1\];/sip.key[1] = key->words[0];/
	the family is not in the tag|s/put_unaligned_be16(tuple->family, text);/put_unaligned_be16(0, text);/
	the source is not in the tag|s/memcpy(text + 2, tuple->saddr, /memset(text + 2, 0, /
	the destination is not in the tag|s/memcpy(text + 2 + ORACK_ADDRESS_BYTES, tuple->daddr, /memset(text + 2 + ORACK_ADDRESS_BYTES, 0, /
	the addresses may change places|s/memcpy(text + 2 + ORACK_ADDRESS_BYTES, tuple->daddr, .*/for (int i = 0; i < 16; i++) { text[2 + i] ^= ((u8 *)tuple->daddr)[i]; text[18 + i] = 0; }/
	the tag includes only four bytes of an address|s/ORACK_ADDRESS_BYTES);$/4);/;s/u8 text\[ORACK_PSEUDO_BYTES + ORACK_TAGGED_BYTES\] __aligned(8);/u8 text[ORACK_PSEUDO_BYTES + ORACK_TAGGED_BYTES] = {};/
	the contents are not in the tag|s/memcpy(text + ORACK_PSEUDO_BYTES, wire, /memset(text + ORACK_PSEUDO_BYTES, 0, /
	the turnaround is not in the tag|s/ORACK_TAGGED_BYTES\t28/ORACK_TAGGED_BYTES	24/;s/wire + ORACK_TAGGED_BYTES)/wire + 28)/
	without a key, the tag is that of a key of zeroes|s/^\tif (!key)$/\tstatic const struct timely_orack_key none; if (!key) key = \&none; if (0)/
	the number of the key is written without a key|s/wire\[3\] = key ? orack->key : 0;/wire[3] = orack->key;/
	the number of the key is not written|s/wire\[3\] = key ? orack->key : 0;/wire[3] = 0;/
	the flags are not written|s/wire\[5\] = orack->flags;/wire[5] = 0;/
	the turn is written without the flag|s/put_unaligned_be16(orack->flags \& TIMELY_ORACK_TRIMMED ?/put_unaligned_be16(1 ?/
	the turn is not written|s/orack->turn_ns >> TIMELY_ORACK_TURN_SHIFT : 0/0/
	the turn is not read|s/orack->turn_ns = (u32)get.*//
	the ports are exchanged when written|s/memcpy(wire + 6, \&tuple->sport, 2);/memcpy(wire + 6, \&tuple->dport, 2);/;s/memcpy(wire + 8, \&tuple->dport, 2);/memcpy(wire + 8, \&tuple->sport, 2);/
	the ports are exchanged when written and when read|s/wire + 6/wire + 99/;s/wire + 8/wire + 6/;s/wire + 99/wire + 8/
	the tag is not written|s/put_unaligned_be64(orack_tag(tuple, wire, key), .*/;/
	the tag is computed before the turnaround is written|s/put_unaligned_be32(orack->turnaround_ns, wire + 24);//;s/put_unaligned_be64(orack_tag(tuple, wire, key), .*/&\n\tput_unaligned_be32(orack->turnaround_ns, wire + 24);/
	longer packets are accepted|s/bytes != TIMELY_ORACK_BYTES/bytes < TIMELY_ORACK_BYTES/
	shorter packets are accepted|s/bytes != TIMELY_ORACK_BYTES/bytes > TIMELY_ORACK_BYTES/
	any magic number is accepted|s/get_unaligned_be16(wire) != TIMELY_ORACK_MAGIC || //
	only the first byte of the magic number is checked|s/get_unaligned_be16(wire) != TIMELY_ORACK_MAGIC/wire[0] != TIMELY_ORACK_MAGIC >> 8/
	any version is accepted|s/ || wire\[2\] != TIMELY_ORACK_VERSION//
	later versions are accepted|s/wire\[2\] != TIMELY_ORACK_VERSION/wire[2] < TIMELY_ORACK_VERSION/
	any protocol is accepted|s/if (wire\[4\] != IPPROTO_TCP \&\& wire\[4\] != IPPROTO_UDP)/if (0)/
	only TCP is accepted|s/ \&\& wire\[4\] != IPPROTO_UDP)/)/
	only UDP is accepted|s/wire\[4\] != IPPROTO_TCP \&\& //
	any flags are accepted|s/if (wire\[5\] & ~(TIMELY_ORACK_HARDWARE | TIMELY_ORACK_TRIMMED))/if (0)/
	no flags are accepted|s/if (wire\[5\] & ~(TIMELY_ORACK_HARDWARE | TIMELY_ORACK_TRIMMED))/if (wire[5])/
	source port 0 is accepted|s/!get_unaligned_be16(wire + 6) || //
	destination port 0 is accepted|s/ || !get_unaligned_be16(wire + 8))/)/
	only the low byte of the source port is checked|s/!get_unaligned_be16(wire + 6)/!wire[7]/
	reserved bytes may have any value|s/ || !get_unaligned_be16(wire + 10);/ || true;/
	the second reserved byte may have any value|s/ || !get_unaligned_be16(wire + 10);/ || !wire[10];/
	the result is not set to zero before it is filled|s/memset(orack, 0, sizeof(\*orack));//
	the result is set to zero before the packet is checked|s/^\tif (!orack_well_formed(wire, bytes))$/\tmemset(orack, 0, sizeof(*orack));\n&/
	the key is not read|s/orack->key = wire\[3\];//
	the protocol is not read|s/orack->tuple.protocol = wire\[4\];//
	the flags are not read|s/orack->flags = wire\[5\];//
	ports are not read|s/memcpy(\&orack->tuple.dport, wire + 8, 2);//
	the sequence number is not read|s/orack->seq = get.*//
	the time is not read|s/orack->received_ns = get.*//
	the turnaround is not read|s/orack->turnaround_ns = get.*//
	any tag is accepted|s/return !difference \&\& /return /
	only the lower half of the tag is checked|s/return !difference \&\& /return !(u32)difference \&\& /
	only the upper half of the tag is checked|s/return !difference \&\& /return !(difference >> 32) \&\& /
	without a key, any number of a key is accepted|s/ \&\& (key || !orack->key);/;/
	with a key, only the number 0 is accepted|s/(key || !orack->key)/!orack->key/
	the length is not in the digest|s/return jhash2(words, DIGEST_WORDS, bytes)/return jhash2(words, DIGEST_WORDS, 0)/
	a digest includes only 12 bytes|s/return jhash2(words, DIGEST_WORDS, bytes)/return jhash2(words, DIGEST_WORDS - 1, bytes)/
	a digest includes only 8 bytes|s/DIGEST_WORDS\t\t.*/DIGEST_WORDS		2/
	a digest may be 0|s/ ?: 1;/;/
	a hash of 0 becomes the digest 2|s/ ?: 1;/ ?: 2;/
	a digest reads words as big-endian|s/words\[i\] = get_unaligned_le32(text + 4 \* i);/words[i] = get_unaligned_be32(text + 4 * i);/
	FAULTS
}

faults_of_trim() {
	cat <<-'FAULTS'
	ESP is trimmed|/case IPPROTO_ESP:/d
	AH is trimmed|/case IPPROTO_AH:/d
	IPv6 fragments are trimmed|s/return TIMELY_TRIM_FRAGMENT;$/return TIMELY_TRIM_POSSIBLE;/
	last IPv4 fragments are trimmed|s/TRIM_IPV4_IS_FRAGMENT	0x3fff/TRIM_IPV4_IS_FRAGMENT	0x2000/
	first IPv4 fragments are trimmed|s/TRIM_IPV4_IS_FRAGMENT	0x3fff/TRIM_IPV4_IS_FRAGMENT	0x1fff/
	packets that must not be fragmented are not trimmed|s/TRIM_IPV4_IS_FRAGMENT	0x3fff/TRIM_IPV4_IS_FRAGMENT	0x7fff/
	hop-by-hop options are no extension header|s/protocol == IPPROTO_HOPOPTS || //
	routing headers are no extension header|s/protocol == IPPROTO_ROUTING ||/false ||/
	destination options are no extension header|s/protocol == IPPROTO_DSTOPTS/false/
	all extension headers have 8 bytes|s/8 \* (header\[1\] + 1U)/8/
	extension headers are 8 bytes too short|s/8 \* (header\[1\] + 1U)/8 * max(header[1], (u8)1)/
	IPv4 options are not skipped|s/packet->network + 4 \* (ip\[0\] & 15)/packet->network + 20/
	any version is accepted|s/ip\[0\] >> 4 != (ipv6 ? 6 : 4)/false/
	jumbograms are trimmed|s/bytes ? bytes + TRIM_IPV6_BYTES : 0/bytes + TRIM_IPV6_BYTES/
	the IPv6 header is not in the length|s/bytes ? bytes + TRIM_IPV6_BYTES : 0/bytes/
	IPv4 headers may have 16 bytes|s/(ip\[0\] & 15) < TRIM_IPV4_BYTES \/ 4/(ip[0] \& 15) < 4/
	IPv4 packets may be shorter than their header|s/ || bytes < 4U \* (ip\[0\] & 15)//
	the DSCP of IPv6 is read with ECN|s/get_unaligned_be16(ip) >> 6 & 63/get_unaligned_be16(ip) >> 4 \& 63/
	the DSCP of IPv4 is read with ECN|s/ : ip\[1\] >> 2;/ : ip[1] \& 63;/
	other ethertypes are IPv4|s/!ipv6 \&\& ethertype != TRIM_ETHERTYPE_IPV4/false/
	the packet may be longer than the frame|s/!ip_bytes || ip_bytes > length - network/!ip_bytes/
	all DSCPs are trimmable|s/if (!(cfg->trimmable >> .*/if (0)/
	padding counts as data|s/network + ip_bytes <= cfg->size/length <= cfg->size/
	packets as long as trimmed ones are trimmed|s/network + ip_bytes <= cfg->size/network + ip_bytes < cfg->size/
	the link header does not count|s/network + ip_bytes <= cfg->size/ip_bytes <= cfg->size/
	trimmed packets may lack their ports|s/TIMELY_TRIM_TRANSPORT_BYTES > min(bytes, cfg->size)/0 > min(bytes, cfg->size)/
	headers need not fit into a trimmed packet|s/> min(bytes, cfg->size)/> bytes/
	headers need not be within the frame|s/> min(bytes, cfg->size)/> cfg->size/
	the checksum is not adjusted for the old value|s/(u16)~get_unaligned_be16(ip + offset) + (u32)value/(u32)value/
	the checksum lacks a carry|0,/sum = (sum & 0xffff) + (sum >> 16);/s/sum = (sum & 0xffff) + (sum >> 16);/sum \&= 0xffff;/
	the checksum is not written|s/put_unaligned_be16((u16)~sum, ip + TRIM_IPV4_CHECK);//
	the IPv6 length contains the header|s/length - packet->network - TRIM_IPV6_BYTES,/length - packet->network,/
	the IPv4 length contains the link header|s/TRIM_IPV4_LENGTH, length - packet->network/TRIM_IPV4_LENGTH, length/
	the flow label is cleared|s/& 0xf03f) | dscp << 6/\& 0xf030) | dscp << 6/
	ECN is cleared in IPv6|s/& 0xf03f) | dscp << 6/\& 0xf00f) | dscp << 6/
	ECN is cleared in IPv4|s/& 0xff03) | dscp << 2/\& 0xff00) | dscp << 2/
	the old DSCP remains in IPv4|s/& 0xff03) | dscp << 2/\& 0xffff) | dscp << 2/
	the UDP length stays|s/packet->protocol == IPPROTO_UDP \&\&$/0 \&\&/
	the UDP length may grow|s/ \&\&$/ \&\& 1 ||/;s/get_unaligned_be16(udp + TRIM_UDP_LENGTH) > transport_bytes/0/
	the length of all protocols is that of UDP|s/if (packet->protocol == IPPROTO_UDP \&\&$/if (/
	packets return to 0.0.0.0|s/return address\[0\] \&\& /return /
	packets return to multicast addresses|s/address\[0\] < 224 \&\& //
	packets return to the loopback network|s/ \&\& address\[0\] != 127//
	packets return to IPv6 multicast addresses|s/if (address\[0\] == 0xff)/if (0)/
	packets return to ::1|s/i < 15; i++/i < 16; i++/
	other protocols than UDP return|s/return packet->protocol == IPPROTO_UDP \&\&/return/
	packets with options return|s/packet->transport == packet->network +$/packet->transport >= packet->network +/
	the destination may be any address|s/trim_is_unicast(source + address_bytes, packet->ipv6) \&\&//
	the source may be any address|s/trim_is_unicast(source, packet->ipv6) \&\&//
	the source port may be 0|s/get_unaligned_be16(udp) \&\& //
	the destination port may be 0|s/ \&\& get_unaligned_be16(udp + 2);/;/
	the addresses do not change places|s/trim_swap_bytes(source, .*//
	the ports do not change places|s/trim_swap_bytes(udp, .*//
	only four bytes of an address change places|s/trim_swap_bytes(source, source + address_bytes, address_bytes)/trim_swap_bytes(source, source + address_bytes, 4)/
	FAULTS
}

faults_of_probe_code() {
	cat <<-'FAULTS'
	the first probe of a pair is used|s/deviation < 0 ? \*second : \*first/*first/
	the slower probe is used|s/deviation < 0 ? \*second : \*first/deviation < 0 ? *first : *second/
	the tolerance is judged after learning|s/size > tolerance/size > code->tolerance_ns/
	a deviation at the tolerance is too large|s/size > tolerance/size >= tolerance/
	directions of a change are exchanged|s/deviation < 0 ? TIMELY_PROBE_CLOSER : TIMELY_PROBE_SPREAD/deviation < 0 ? TIMELY_PROBE_SPREAD : TIMELY_PROBE_CLOSER/
	a spacing of 0 is right|s/spacing - 1 >= /spacing > /
	the longest spacing is too long|s/spacing - 1 >= TIMELY/spacing >= TIMELY/
	the tolerance never changes|s/^\tcode_learn(code, size);//
	the noise has no lower limit|s/PROBE_NOISE_MIN_Q16, PROBE/1, PROBE/
	the noise falls slowly|s/PROBE_NOISE_DOWN	31/PROBE_NOISE_DOWN	1/
	the noise never falls|s/code->noise_q16 -= .*;/;/
	the noise never rises|s/code->noise_q16 += step;/;/
	duplicates are not noticed|s/entry->seen \& bit/0/
	late pairs are not noticed|s/code->newest - pair >= TIMELY_PROBE_PENDING/0/
	one pair fewer is kept|s/code->newest - pair >= TIMELY/code->newest - pair + 1 >= TIMELY/
	numbers do not wrap|s/(s32)(pair - code->newest) > 0/pair > code->newest/
	lost pairs are not counted|s/code->counts\[TIMELY_PROBE_LOST\]++;/;/
	complete pairs count as lost|s/entry->seen \&\& entry->seen != PROBE_BOTH/entry->seen/
	the order of the probes is that of arrival|s/return second ? code_judge/return true ? code_judge/
	forgetting keeps the numbers|s/code->started = false;//
	FAULTS
}

faults_of_strip() {
	cat <<-'FAULTS'
	hulls are upper hulls|s/return (y\[b\] - y\[a\]) \* (x\[a\] - x\[c\]) >= /return (y[b] - y[a]) * (x[a] - x[c]) <= /
	hulls lose their last point|s/while (count >= 2/while (count >= 3/
	the next slope is the smaller one|s/up_y \* down_x >= down_y \* up_x/up_y * down_x < down_y * up_x/
	only the hull of forward points turns the strip|s/if (!down_x ||/if (up_x || !down_x ||/
	the middle is the upper border|s/line->at_ns = at >> 1;/line->at_ns = at;/
	the middle ignores the slope|s/ - div64_s64(line->dy \* (up->x\[u\] + down->x\[d\]), line->dx)//
	the width ignores the slope|s/ - line->dy \* (up->x\[u\] - down->x\[d\])//
	the strip with the known drift uses the highest points|s/set->y\[i\] < set->y\[lowest/set->y[i] > set->y[lowest/
	no fit is held|s/ || uncertainty >= error_ns \/ 2 || / || 1 || /
	the free direction does not move a fit that is held|s/at_ns = clamp(0LL, .*;/at_ns = 0;/
	a free direction that is late does not count|s/waited - abs(level->line.at_ns - at_ns)/0/
	outliers are not left out|s/if (out == most || /if (1 || /
	the outlier is the point whose removal widens least|s/timely_strip_half_ns(\&without) <= timely/timely_strip_half_ns(\&without) >= timely/
	no outlier makes the strip narrow|s/strip->expected_ns \/ 2, 1, line/0, 1, line/
	a narrow strip has many outliers|s/strip->expected_ns \/ 2, 1, line/strip->expected_ns \/ 2, 64, line/
	points far away are used|s/ \&\&$/ \&\&/;s/y >= -STRIP_HEIGHT_NS \&\& y <= STRIP_HEIGHT_NS/1/
	lower bounds are not negated|s/direction == TIMELY_STRIP_FORWARD ? y : -y/y/
	the looser of two bounds is kept|s/direction == TIMELY_STRIP_FORWARD ? more < 0 : more > 0/direction == TIMELY_STRIP_FORWARD ? more > 0 : more < 0/
	points are added at the end|s/ring_at(ring, at - 1)->at_ns - point->at_ns) > 0)$/ring_at(ring, at - 1)->at_ns - point->at_ns) > 0 \&\& 0)/
	a point may be any number of places late|s/ring->count - at > STRIP_ORDER/0/
	a clock that was set back is not noticed|s/^\t\ttimely_strip_forget(strip);\n\t\tat = 0;//;s/(s64)strip->window_ns) {/(s64)strip->window_ns \&\& 0) {/
	old points are used|s/^\t\tring_expire(forward, from);//
	a few points suffice|s/ring->count, backward->count) < TIMELY_STRIP_POINTS_MIN/ring->count, backward->count) < 2/;s/forward->count, backward->count) < TIMELY_STRIP_POINTS_MIN/forward->count, backward->count) < 2/
	a short time suffices|s/(s64)TIMELY_STRIP_WINDOW_MIN_NS ?/1 ?/
	all points stay after a step|s/newest_ns - strip->window_ns \/ 4/newest_ns - strip->window_ns/
	the fit stays after a step|s/^\tstrip->fit.uncertainty_ns = TIMELY_STRIP_UNKNOWN_NS;\n\treturn/return/;s/memset(\&strip->fit, 0, sizeof(strip->fit));$//;s/uncertainty_ns = TIMELY_STRIP_UNKNOWN_NS;/uncertainty_ns = 5;/
	the drift has no limit|s/abs(free.drift_q32) > TIMELY_STRIP_DRIFT_MAX_Q32/0/
	the known drift is never used|s/return level->error_ns < free->error_ns ?/return 0 ?/
	the known drift is never replaced|s/if (free->drift_error_ppb < level->drift_error_ppb ||/if (0 \&\&/
	the excess of the width does not count|s/return max_t(s64, timely_strip_half_ns(line) - .*/return 0;/
	the scatter does not count|s/return STRIP_ERROR_TIMES \* int_sqrt64.*/return 0;/
	the uncertainty does not grow with the error of the drift|s/(age >> 10) \* drift_error_ppb/0 * drift_error_ppb/
	the uncertainty does not grow with the change of the drift|s/uncertainty_ns + bend_ns(.*) +$/uncertainty_ns +/
	old fits are certain|s/ || age > TIMELY_STRIP_AGE_MAX_NS//
	FAULTS
}

faults_of_clock_loop() {
	cat <<-'FAULTS'
	products of rates are rounded down|s/drift \* rate + (1LL << 31)/drift * rate/
	the correction ignores the rate|s/(u64)((since \* time->rate_q32) >> 32));/0);/
	the offset ignores the peer's rate|s/(u64)without_rate(since, peer->rate_q32)/(u64)since/
	the offset ignores the peer's bound|s/(u64)bound + peers/(u64)bound/
	impossible rates are used|s/return rate_q32 >= -TIMELY_STRIP.*/return true;/
	the surplus ignores the peer's correction|s/(u64)timely_loop_correction_ns(\&peer->time, now_ns + (u64)peer->offset_ns)/0/
	the median is the lowest value|s/return values\[(count - 1) \/ 2\] \/ 2 + values\[count \/ 2\] \/ 2 +/return values[0] +/
	all neighbours agree|s/<= far_ns;/<= far_ns || true;/
	credibility never falls|s/peer->credit_q16 -= .*;/;/
	credibility never rises|s/peer->credit_q16 += (TIMELY/peer->credit_q16 += 0 * (TIMELY/
	excluded neighbours never return|s/peer->excluded = false;/;/
	excluded neighbours are used|s/near \&\& !peers\[i\].excluded/near/
	hosts that are not settled count|s/vote->settled ? peer->time.settled :/vote->settled ? true :/
	the lowest number does not count|s/vote->scale = min(vote->scale, peers\[i\].time.scale);/;/
	a host joins half of the way|s/return vote->settled || vote->scale < loop->time.scale;/return false;/
	a stepped host does not jump|s/return vote->used >= LOOP_MAJORITY \&\&/return 0 \&\&/
	no majority is needed|s/!vote.used || vote.used \* 2 < vote.count/!vote.used/
	the mean is the median|s/vote->mean_q16 += rest \* (s64)weight;/;/
	a round moves too far|s/return difference - difference \/ 4;/return difference * 2;/
	parts of a nanosecond are lost|s/loop->rest_q16 -= move_ns \* (1 << 16);/loop->rest_q16 = 0;/
	the rate does not follow|s/vote->rate_q32 += rate \* (s64)weight;/;/
	a fixed host moves|s/if (loop->fixed) {/if (0) {/
	hosts are settled at once|s/LOOP_SETTLE_ROUNDS	8/LOOP_SETTLE_ROUNDS	0/
	the bound does not follow from surpluses|s/bound = LOOP_BOUND_TIMES \* .*/bound = 0;/
	edges may be there twice|s/^\t\t    work->edge\[a\]\[b\] || /		    /
	hosts may be their own neighbours|s/ || a == b ||/ ||/
	the sign of an edge is lost|s/return edge->a == from ? edge->offset_ns : -edge->offset_ns;/return edge->offset_ns;/
	triangles are counted at each edge|s/if (c > max(edge->a, edge->b)) {/if (1) {/
	no edge is excluded|s/edges\[i\].surplus_ns > limit_ns/0/
	percentiles are one bin too high|s/(u64)(LOOP_BINS + bin % LOOP_BINS)/(u64)(LOOP_BINS + 1 + bin % LOOP_BINS)/
	excluded edges are used in least squares|s/if (!work->edge\[a\]\[b\] || edge->excluded)/if (!work->edge[a][b])/
	least squares ends after one sweep|s/LOOP_SWEEPS		5000/LOOP_SWEEPS		1/
	least squares are not rounded|s/(work->rest_q16\[i\] + (1 << 15)) >> 16/work->rest_q16[i] >> 16/
	graphs need not be connected|s/if (graph_spread(edges, count, work, offsets_ns) < hosts)/if (graph_spread(edges, count, work, offsets_ns) < 1)/
	surpluses have no limit|s/abs(edges\[i\].residual_ns) > LOOP_RESIDUAL_MAX_NS/0/
	FAULTS
}

faults_of_ndp_wire() {
	cat <<-'FAULTS'
	the checksum does not cover the addresses|s/words\[i\] = get_unaligned_be32(\&addresses->saddr\[i\]) ^$/words[i] = 0 \&/
	the checksum depends on the order of the addresses|s/get_unaligned_be32(\&addresses->saddr\[i\]) ^$/get_unaligned_be32(\&addresses->saddr[i]) * 3 ^/
	the checksum does not cover the family|s/bytes \/ 4, addresses->family);/bytes \/ 4, 0);/
	the checksum does not cover the last word|s/i < bytes \/ 4; i++)/i < bytes \/ 4 - 1; i++)/;s/u32 words\[NDP_ADDRESS_WORDS + NDP_HEADER_WORDS\];/u32 words[NDP_ADDRESS_WORDS + NDP_HEADER_WORDS] = {};/
	the checksum covers itself|s/words\[NDP_ADDRESS_WORDS + NDP_CHECK_AT \/ 4\] = 0;//
	any checksum is accepted|s/if (get_unaligned_be32(wire + NDP_CHECK_AT) != .*/if (0)/
	the family is not in the tag|s/put_unaligned_be16(addresses->family, text);/put_unaligned_be16(0, text);/
	the destination is not in the tag|s/memcpy(text + 2 + NDP_ADDRESS_BYTES, addresses->daddr, NDP_ADDRESS_BYTES);/memset(text + 2 + NDP_ADDRESS_BYTES, 0, NDP_ADDRESS_BYTES);/
	the cookie is not in the tag|s/memcpy(at, wire, bytes);/memcpy(at, wire, bytes); memset(at + NDP_TAG_AT + 8, 0, bytes - NDP_TAG_AT - 8);/
	the key's number is not in the tag|s/memcpy(at, wire, bytes);/memcpy(at, wire, bytes); at[NDP_KEY_AT] = 0;/
	the tag covers the checksum|s/put_unaligned_be32(0, at + NDP_CHECK_AT);//
	the tag covers what is at its place|s/put_unaligned_be64(0, at + NDP_TAG_AT);//
	any tag is accepted|s/return ndp_tag(wire, timely_ndp_header_bytes(header), addresses, key) ==/return true ||/
	without a key, a tag is accepted|s/return !key \&\& !header->key;/return !key;/
	with a key, no tag is accepted, too|s/return !key \&\& !header->key;/return !header->key;/
	the flag of the tag is not written|s/wire\[1\] |= TIMELY_NDP_TAGGED;//
	the flag of the tag is passed on|s/header->flags = wire\[1\] \& ~TIMELY_NDP_TAGGED;/header->flags = wire[1];/
	a tag with the number 0 is accepted|s/ || !wire\[NDP_KEY_AT\])/)/
	the bytes behind the key's number may have any value|s/rest |= wire\[NDP_KEY_AT + 1\] | wire\[NDP_KEY_AT + 2\] | wire\[NDP_KEY_AT + 3\];/rest |= wire[NDP_KEY_AT + 1];/
	the cookie is not written|s/put_unaligned_be64(header->cookie, wire + bytes - TIMELY_NDP_COOKIE_BYTES);/;/
	the cookie is not read|s/found.cookie = get_unaligned_be64(wire + needs - TIMELY_NDP_COOKIE_BYTES);/;/
	the path is not written|s/wire\[6\] = header->path;//
	the transmission is not read|s/header->tries = wire\[7\];//
	the credits that were seen are not written|s/put_unaligned_be16(header->credits - header->seen, wire + 30);/;/
	the credits that were seen are not read|s/header->seen = header->credits - get_unaligned_be16(wire + 30);/;/
	the room is not read|s/header->limit = header->cum + get_unaligned_be16(wire + 30);/header->limit = header->cum;/
	the room is read as a packet number|s/header->limit = header->cum + get/header->limit = get/
	the credits owed are not read|s/header->owed = get_unaligned_be16(wire + 28);//
	the sum is not read|s/header->sum = get_unaligned_be32(wire + 24);//
	a header one byte too short is accepted|s/return bytes >= needs ? needs : 0;/return bytes + 1 >= needs ? needs : 0;/
	type 0 is accepted|s/header->type < TIMELY_NDP_DATA || //
	types after the last are accepted|s/ || header->type > TIMELY_NDP_COOKIE)/)/
	any flags are accepted|s/if (header->flags \& ~ndp_flags\[header->type\])/if (0)/
	any version is accepted|s/ || wire\[0\] >> NDP_VERSION_SHIFT != TIMELY_NDP_VERSION)/)/
	bytes after the end are accepted|s/ || total - needs > found.length ||$/ ||/
	payload of any length is accepted|s/found.length > TIMELY_NDP_MAX_PAYLOAD || //
	unused fields may have any value|s/return !rest;/return true;/
	source port 0 is accepted|s/!found.sport || //
	destination port 0 is accepted|s/ || !found.dport)/)/
	a trimmed packet counts as whole|s/return total - needs < found.length ? TIMELY_NDP_CUT : TIMELY_NDP_WHOLE;/return TIMELY_NDP_WHOLE;/
	a packet without one byte counts as whole|s/return total - needs < found.length ?/return total - needs + 1 < found.length ?/
	the header is set before the packet is checked|s/^	u32 needs = ndp_outline(\&found, wire, min(bytes, total));/	u32 needs = (memset(header, 0, sizeof(*header)), ndp_outline(\&found, wire, min(bytes, total)));/
	the length is not in the sum|s/u64 mix = sum->bytes;/u64 mix = 0;/
	the sum does not cover the last block|s/^	ndp_sum_blocks(sum->lanes, sum->rest, 1);$//
	the sum covers old bytes after the end|s/memset(sum->rest + have, 0, TIMELY_NDP_SUM_BLOCK - have);//
	lanes of the sum start with 0|s/sum->lanes\[i\] = (i + 1) \* NDP_SUM_FACTOR;/sum->lanes[i] = 0;/
	a word of a block is not in the sum|s/ndp_sum_step(d, at + 24)/ndp_sum_step(d, at + 16)/
	only the first of several blocks is in the sum|s/^	part = bytes \/ TIMELY_NDP_SUM_BLOCK;/	part = !!(bytes \/ TIMELY_NDP_SUM_BLOCK);/
	a piece of the sum starts a new block|s/u32 have = sum->bytes % TIMELY_NDP_SUM_BLOCK, part;/u32 have = 0, part;/
	a cookie is valid for one period|s/secret, period) ||$/secret, period);/;/ndp_cookie(header, addresses, secret, period - 1);/d
	a cookie is for any port|s/put_unaligned_be16(header->sport, at);/put_unaligned_be16(0, at);/
	a cookie is for any connection|s/put_unaligned_be64(header->conn, at + 4);/put_unaligned_be64(0, at + 4);/
	a cookie is valid for ever|s/put_unaligned_be64(period, at + 12);/put_unaligned_be64(0, at + 12);/
	a header without a cookie has a valid one|s/if (!(header->flags \& TIMELY_NDP_COOKIED))/if (0)/
	numbers do not wrap|s/return (s32)(a - b) < 0;/return a < b;/
	FAULTS
}

faults_of_ndp_sender() {
	cat <<-'FAULTS'
	an answer counts for one packet|s/if (slot->state == TIMELY_NDP_SLOT_SENT) {/if (0) {/
	the window may be larger than the span|s/ || config->window > span)/)/
	the span may be any number|s/ || span \& (span - 1))/)/
	the first limit is the span|s/s->limit = config->window;/s->limit = config->span;/
	one credit more than the window|s/return s->config.window + s->granted - s->used;/return s->config.window + 1 + s->granted - s->used;/
	credits need not be granted|s/return s->config.window + s->granted - s->used;/return 1;/
	retransmissions use no credit|s/^			sender_pay(s);$/			;/
	new packets use no credit|/^	\*seq = s->next++;/,/^}/s/sender_pay(s);//
	new packets come first|s/if (s->resend_list.count \&\& (s->free || s->pulled)) {/if (s->resend_list.count \&\& !sender_may_send_new(s) \&\& (s->free || s->pulled)) {/
	trimmed packets use what is left of the window|s/if (s->resend_list.count \&\& (s->free || s->pulled)) {/if (s->resend_list.count \&\& (s->free || sender_credits(s))) {/
	credits of pulls stay when they are used|s/s->pulled--;/;/
	credits of pulls count after an idle time|s/s->pulled = 0;//
	credits of pulls are not counted|s/s->pulled += header->credits - s->granted;//
	new packets ignore the limit|s/timely_ndp_before(s->next, s->limit) \&\&/1 \&\&/
	new packets ignore the span|s/s->next - s->una < s->config.span;/1;/
	each packet has the flag SYN|s/(s->answered ? 0 : TIMELY_NDP_SYN) |/TIMELY_NDP_SYN |/
	no packet has the flag LAST|s/(seq + 1 == s->end ? TIMELY_NDP_LAST : 0) |/0 |/
	the packet before the last has the flag LAST|s/seq + 1 == s->end ?/seq + 2 == s->end ?/
	each last packet ends the stream|s/s->finished \&\& seq == s->fin ?/seq + 1 == s->end ?/
	retransmissions lack their flag|s/(again ? TIMELY_NDP_RTX : 0)/0/
	the empty last packet is not added|s/timely_ndp_sender_queue(s, 1, now_ns);/;/
	a stream ends twice|s/if (s->finished)$/if (0)/
	retransmissions take any path|s/again ? slot->path : TIMELY_NDP_MAX_PATHS/TIMELY_NDP_MAX_PATHS/
	transmissions are not counted|s/again ? slot->tries + 1 : 0/0/
	packets do not say what credits were seen|s/header->seen = s->granted;//
	the first RTT has no variation|s/s->rttvar_ns = rtt_ns \/ 2;//
	RTTs are not smoothed|s/>> SENDER_SRTT_SHIFT), 1U)/>> 0), 1U)/
	the variation does not count|s/SENDER_RTO_VARS \* (u64)s->rttvar_ns/0/
	one RTT is a timeout|s/SENDER_RTO_RTTS		2/SENDER_RTO_RTTS		1/
	a timeout has no least value|s/clamp(rto, (u64)s->config.rto_min_ns,/clamp(rto, (u64)1,/
	a long RTT does not make timeouts longer|s/max_t(u64, s->config.rto_max_ns, 2 \* (u64)s->srtt_ns)/(u64)s->config.rto_max_ns/
	timeouts do not double|s/min(timeout << s->backoff,/min(timeout,/
	timeouts double without end|s/min(timeout << s->backoff, s->config.backoff_max_ns)/(timeout << s->backoff)/
	the gap between pulls does not count|s/timeout = max(timeout, SENDER_PROBE_GAPS \* s->pull_gap_ns);/;/
	no timer while data wait|s/if (sender_waits(s))$/if (0)/
	packets are lost before their time|s/if (now_ns < timely_ndp_sender_due_ns(s))/if (0)/
	only the first packet is lost|/^void timely_ndp_sender_timeout/,/^}/s/while (s->sent_list.count/if (s->sent_list.count/
	nothing is sent after a timeout|s/s->free = max(s->free, 1U);/;/
	all is sent after a timeout|s/s->free = max(s->free, 1U);/s->free = s->resend_list.count;/
	no PROBE|s/^		s->probe = true;/		;/
	a returned packet is asked for by a PROBE|s/if (s->resend_list.count \&\& !sender_expects_pulls(s))$/if (0)/
	a timeout sends a packet though pulls are expected|s/if (s->resend_list.count \&\& !sender_expects_pulls(s))$/if (s->resend_list.count)/
	timeouts without an answer are not counted|s/s->silent = min_t.*//
	packets may be acknowledged before they are sent|s/timely_ndp_before(s->next, header->cum) || //
	more credits may be granted than used|s/ || timely_ndp_before(s->used, header->credits))/)/
	any limit is possible|s/if (header->limit - header->cum >= SENDER_MAX_ROOM)/if (0)/
	an answer may be about a packet that was not sent|s/return header->type == TIMELY_NDP_PULL || timely_ndp_before(header->seq, s->next);/return true;/
	any type is an answer|s/	    header->type != TIMELY_NDP_PULL)/	    0)/
	the ACK of an earlier transmission gives a short RTT|s/if (header->tries == slot->tries) {/if (1) {/
	the ACK of an earlier transmission gives no RTT|s/sender_rtt(s, now_ns - slot->sent_ns + sender_rto(s));/;/
	the NACK of an earlier transmission counts|s/slot->state != TIMELY_NDP_SLOT_SENT || header->tries != slot->tries)$/slot->state != TIMELY_NDP_SLOT_SENT)/
	a NACK gives no RTT|/^static bool sender_nack/,/^}/s/sender_rtt(s, now_ns - slot->sent_ns);//
	each NACK shows that the network trims|s/if (header->flags \& TIMELY_NDP_TRIMMED) {/if (1) {/
	the first missing packet is not told from an ACK|s/progress |= sender_advance(s, header->cum);//
	packets before the first missing one stay in flight|s/sender_set_state(s, s->una, TIMELY_NDP_SLOT_FREE);//
	the peer may owe more than was used|s/promised = s->used;/;/
	what is owed is not noted|s/s->promised = promised;/;/
	the limit may fall|s/if (timely_ndp_before(s->limit, header->limit)) {/if (1) {/
	timeouts stay long after an answer|s/s->backoff = 0;//
	gaps count where switches trim|s/if (s->graceful)$/if (1)/
	gaps never count|s/if (s->graceful)$/if (0)/
	a loss does not show that the network does not trim|s/s->graceful = !s->trims;//
	a gap counts at once|s/>> SENDER_GAP_SHIFT;/>> 31;/
	returned packets are always sent at once|s/if (mostly_acks ||$/if (1 ||/
	returned packets are never sent at once|s/if (mostly_acks ||$/if (0 \&\&/
	a packet travels back and forth|s/(!slot->tries \&\& !s->sent_list.count/(!s->sent_list.count/
	returned packets are sent while others are in flight|s/!s->sent_list.count \&\& !sender_expects_pulls(s)))/!sender_expects_pulls(s)))/
	returned packets are sent while pulls are expected|s/!s->sent_list.count \&\& !sender_expects_pulls(s)))/!s->sent_list.count))/
	recent ACKs do not count|s/mostly_acks = s->ack_share >= SENDER_MOSTLY_ACKS/mostly_acks = false/
	a returned packet waits for long|s/s->backoff = min_t(u8, s->backoff, SENDER_RETURNED_BACKOFF);//
	the first slot of a list is not unlinked|s/list->first = slot->next;/;/
	the last slot of a list is not unlinked|s/list->last = slot->prev;/;/
	FAULTS
}

faults_of_ndp_receiver() {
	cat <<-'FAULTS'
	the span may be any number|s/ || span \& (span - 1))$/)/
	the limit may be beyond the span|s/if (!limit || limit > span)/if (!limit)/
	a packet before the first missing one is new|s/if (timely_ndp_before(seq, r->cum))$/if (0)/
	no packet is new a second time|s/return seq - r->cum < r->span \&\& receiver_has(r, seq);/return false;/
	any number of credits is possible|s/header->credits - r->granted <= TIMELY_NDP_MAX_CREDITS;/1;/
	a sender may have seen any credits|s/if (timely_ndp_before(r->granted, header->seen))/if (0)/
	any packet number is possible|s/if (!timely_ndp_before(header->seq, r->cum) \&\& header->seq - r->cum >= RECEIVER_MAX_AHEAD)/if (0)/
	packets may follow the end|s/if (r->fin_known \&\& timely_ndp_before(r->fin, header->seq))/if (0)/
	the end may move|s/return r->fin_known ? header->seq == r->fin :/return r->fin_known ? true :/
	the end may come before a packet that was seen|s/!timely_ndp_before(header->seq + 1, r->high);/true;/
	used credits may fall|s/if (timely_ndp_before(r->used, header->credits))/if (1)/
	what the sender has seen is not noted|s/r->seen = header->seen;/;/
	the flag LAST of any packet counts|s/if (!timely_ndp_before(header->seq + 1, r->high)) {/if (1) {/
	the flag LAST never ends|s/r->last = header->flags \& TIMELY_NDP_LAST;/r->last |= !!(header->flags \& TIMELY_NDP_LAST);/
	the end is not noted|s/r->fin_known = true;//
	a packet is not marked|s/\*receiver_word(r, seq) |= BIT_ULL(seq % 64);//
	marks are not removed|s/\*receiver_word(r, r->cum) \&= ~BIT_ULL(r->cum % 64);//
	packets ahead are not counted down|s/^		r->ahead--;//
	what is owed is granted though packets are missing|s/if (!timely_ndp_receiver_idle(r))/if (!r->last)/
	what is owed is granted though more packets come|s/if (!timely_ndp_receiver_idle(r))/if (r->cum != r->high)/
	what is owed is never granted at the end|s/^	r->granted = r->used;//
	answers do not say what is owed|s/answer->owed = min_t(u32, receiver_owed(r), U16_MAX);//
	answers have no limit|s/answer->limit = r->limit;//
	a trimmed packet counts as damaged|s/if (payload == TIMELY_NDP_PAYLOAD_CUT) {/if (0) {/
	a damaged packet is received|s/if (payload != TIMELY_NDP_PAYLOAD_WHOLE) {/if (0) {/
	a packet beyond the limit is received|s/if (!timely_ndp_before(seq, r->limit)) {/if (0) {/
	a packet that comes again is not acknowledged|s/ack = verdict != TIMELY_NDP_MISSED;/ack = verdict == TIMELY_NDP_RECEIVED;/
	any NACK says that the packet was trimmed|s/if (!ack \&\& payload == TIMELY_NDP_PAYLOAD_CUT)/if (!ack)/
	the ACK of a trimmed packet says that it was trimmed|s/if (!ack \&\& payload == TIMELY_NDP_PAYLOAD_CUT)/if (payload == TIMELY_NDP_PAYLOAD_CUT)/
	answers do not name the path|s/answer->path = header->path;//
	answers do not name the transmission|s/answer->tries = header->tries;//
	a PROBE does not tell of used credits|/^bool timely_ndp_receiver_probe/,/^}/s/receiver_take_credits(r, header);//
	room is told each time|s/bool stalled = !timely_ndp_before(r->high, r->told) \&\& !receiver_owed(r);/bool stalled = true;/
	room is never told|s/bool stalled = !timely_ndp_before(r->high, r->told) \&\& !receiver_owed(r);/bool stalled = false;/
	room is told though pulls are owed|s/r->told) \&\& !receiver_owed(r);/r->told);/
	there is room beyond the span|s/limit = r->cum + r->span;/;/
	room may shrink|s/if (!timely_ndp_before(r->limit, limit))/if (r->limit == limit)/
	pulls go on after the last packet|s/u32 end = r->last \&\& timely_ndp_before(r->high, r->limit) ? r->high : r->limit;/u32 end = r->limit;/
	pulls ask for packets without room|s/u32 end = r->last \&\& timely_ndp_before(r->high, r->limit) ? r->high : r->limit;/u32 end = r->last ? r->high : r->limit;/
	packets ahead are pulled again|s/missing = end - r->cum - r->ahead,/missing = end - r->cum,/
	pulls on their way are sent again|s/on_way = r->granted - r->seen;/on_way = 0;/
	more is granted than owed|s/pulls = min(pulls, receiver_owed(r));//
	an answer that waits does not tell of the room|/^void timely_ndp_receiver_grant/,/^}/s/answer->limit = r->limit;//
	room is told though an answer has told of it|/^void timely_ndp_receiver_grant/,/^}/s/r->told = r->limit;//
	a past connection is found after its time|s/entry->conn == conn \&\& now_ns < entry->until_ns;/entry->conn == conn;/
	any past connection is found|s/entry->conn == conn \&\& now_ns < entry->until_ns;/now_ns < entry->until_ns;/
	the first place is given up|s/if (set\[i\].until_ns < entry->until_ns)/if (0)/
	the record does not say when it forgets|s/p->full_until_ns = max(p->full_until_ns, entry->until_ns);/;/
	the record always forgets|s/if (now_ns < entry->until_ns \&\& entry->conn != conn)/if (1)/
	FAULTS
}

faults_of_ndp_pull() {
	cat <<-'FAULTS'
	a short message counts with priority 0 only|s/i < TIMELY_NDP_PRIORITIES; i++)$/i < 1; i++)/
	an empty queue has long messages|s/^	return q->flows;/	return true;/
	a rate of 0 is accepted|s/if (!rate_kbps)/if (0 \&\& !rate_kbps)/;s/div_u64(PULL_KBPS_NS << 24, rate_kbps)/div_u64(PULL_KBPS_NS << 24, rate_kbps ?: 1)/
	a new stream is first|s/^		flow->prev->next = flow;/		flow->prev->next = flow; *head = flow;/
	a stream is linked twice|s/if (wanted \&\& !flow->prev)/if (wanted)/
	a stream that wants nothing stays|s/else if (!wanted \&\& flow->prev)/else if (0)/
	the head stays when its stream leaves|s/if (\*head == flow)$/if (0)/
	the queue is never empty|s/\*head = flow->next == flow ? NULL : flow->next;/*head = flow->next;/
	streams are not counted down|s/q->flows--;/;/
	a pull may be early|s/ || now_ns < q->next_ns)/)/
	the lowest priority is first|s/priority = TIMELY_NDP_PRIORITIES - 1; !flow; priority--)/priority = 0; !flow; priority++)/
	the same stream gets all pulls|s/q->heads\[flow->priority\]\[flow->age\] = flow->next;//
	a stream's pulls do not end|s/if (!--flow->wanted)/if (0)/
	the queue makes up for any delay|s/max(q->next_ns, least_ns)/q->next_ns/
	the queue makes up for no delay|s/least_ns = now_ns > q->slack_ns ? now_ns - q->slack_ns : 0;/least_ns = now_ns;/
	parts of a ns are lost|s/ + q->rest_q24;/;/
	long packets overflow|s/min(bytes, PULL_MAX_BYTES)/bytes/
	a priority may be any number|s/min_t(u8, priority, TIMELY_NDP_PRIORITIES - 1)/priority \& 15/
	nothing is given back|s/q->next_ns -= min(q->next_ns, wire_ns);//
	more is given back than there is|s/q->next_ns -= min(q->next_ns, wire_ns);/q->next_ns -= wire_ns;/
	an age may be any number|s/min_t(u8, age, TIMELY_NDP_AGES - 1)/age \& 7/
	messages grow old late|s/fls64(bytes >> PULL_AGE_SHIFT) + 2/fls64(bytes >> PULL_AGE_SHIFT) + 1/
	long messages starve|s/ \&\& ++q->turns\[priority\]\[age\] % PULL_TURNS)/)/
	long messages get half of the pulls|s/% PULL_TURNS)/% 2)/
	a queued stream changes its priority in place|s/bool queued = flow->prev;/bool queued = false;/
	pulls are not counted|s/q->pulls++;//
	FAULTS
}

faults_of_ndp_paths() {
	cat <<-'FAULTS'
	no path is accepted as a list|s/if (!count || count > TIMELY_NDP_MAX_PATHS)/if (count > TIMELY_NDP_MAX_PATHS)/
	any number of paths is accepted|s/if (!count || count > TIMELY_NDP_MAX_PATHS)/if (!count)/
	a seed of 0 stops the random numbers|s/p->random = seed ?: 1;/p->random = seed;/
	the list is not shuffled|s/j = paths_random(p, p->used + 1);/j = p->used;/
	the shuffle prefers some paths|s/j = paths_random(p, p->used + 1);/j = paths_random(p, p->used + 1) \/ 2;/
	the last path of a round is not used|s/if (p->at >= paths_round(p))/if (p->at + 1 >= paths_round(p))/
	a path is not avoided|s/if (p->paths\[p->at\].order == avoid) {/if (0) {/
	a path is not avoided at the end of a round|s/if (p->at + 1 == paths_round(p))$/if (0)/
	a path is avoided though there is no other|s/order == avoid \&\& p->used > 1)/order == avoid)/
	answers of unknown paths count|s/if (path >= p->count)/if (0 \&\& path >= p->count)/
	NACKs do not count|s/p->paths\[path\].nacks++;//
	NACKs move no path|s/	paths_move(p, path);//
	a round has all paths|s/return min_t(u32, p->used, PATHS_ROUND);/return p->used;/
	each round has another order|s/if (paths_judge(p, now_ns) || !p->used)/paths_judge(p, now_ns); if (1)/
	paths outside the round do not come in|s/paths_exchange(p, i, paths_random(p, p->used));/paths_exchange(p, i, paths_random(p, paths_round(p)));/
	losses do not count|s/p->paths\[path\].losses++;//
	ACKs do not count|s/p->paths\[path\].acks++;//
	one NACK makes an outlier|s/PATHS_MIN_NACKS		4/PATHS_MIN_NACKS		1/
	one loss makes an outlier|s/path->losses >= PATHS_MIN_LOSSES \&\&$/path->losses \&\&/;s/(path->losses - 1) \* (paths - 1)/path->losses * (paths - 1)/
	paths outside the round share its losses|s/u32 paths = min_t(u32, sum->used, PATHS_ROUND);/u32 paths = sum->used;/
	an outlier is compared with itself|s/u32 losses = sum->losses - path->losses;/u32 losses = sum->losses;/
	many NACKs make no outlier|s/return path->nacks >= PATHS_MIN_NACKS \&\& others \&\&/return 0 \&\&/
	NACKs of other paths do not count|s/PATHS_NACK_TIMES \* (sum->nacks - path->nacks) \* mine +/0 +/
	all paths may be left out|s/i < p->count \&\& sum.used > (p->count + 1) \/ 2; i++)/i < p->count; i++)/
	a path is left out for ever|s/if (!path->out_until_ns || now_ns < path->out_until_ns)/if (1)/
	a path comes back early|s/if (!path->out_until_ns || now_ns < path->out_until_ns)/if (!path->out_until_ns)/
	a path comes back with its old scoreboard|s/^		path->nacks = 0;//
	each time lasts equally long|s/(PATHS_OUT_NS << path->strikes)/PATHS_OUT_NS/
	times have no longest value|s/min(path->strikes + 1, PATHS_MAX_STRIKES)/path->strikes + 1/
	strikes are never forgotten|s/path->strikes--;/;/
	answers of other paths forget strikes|s/ \&\& path->acks > path->losses)$/)/
	the scoreboard is never halved|s/if (++p->answers < PATHS_MEMORY \* p->count)/if (1)/
	FAULTS
}

# run DIRECTORY PART - print the kinds of tests that fail; "built" if the engine does not build
run() {
	case $2 in
	rate|target_delay|swift|powertcp)	fuzz=$1/out/rate_fuzz sets=500 ;;
	ndp_wire)	fuzz=$1/out/ndp_wire_fuzz sets=100 ;;
	ndp_*)	fuzz=$1/out/ndp_stream_fuzz sets=100 ;;
	*)	fuzz=$1/out/$2_fuzz sets=100 ;;
	esac
	make -s -C "$here" O="$1/out" ENGINE="$1/timely/engine" SANITIZE= "$fuzz" >"$1/log" 2>&1 || {
		echo built
		return
	}
	# A fault that causes an endless loop is noticed by the timeout.
	timeout 15 "$fuzz" $sets >"$1/log" 2>&1 ||
		[ $? -eq 1 ] || echo crashed
	for kind in 'vectors:follows_the_reference' "hand:timely_$2: [a-z_]*__[^:]*\$" \
		'table:timely_clock: [a-z_]*__[^:]*:' 'random:random:'; do
		! grep -q "^not ok .*${kind#*:}" "$1/log" || echo "${kind%%:*}"
	done
}

# try PART - put each fault of this part into the engine, test, print a line of TAP
try() {
	copy=$work/$1/timely/engine
	mkdir -p "$work/$1/timely"
	cp -r "$engine" "$copy"
	by=$(run "$work/$1" "$1" | tr '\n' ' ')
	[ -z "$by" ] || {
		echo "Bail out! $1: the engine without a fault fails these tests: $by"
		exit 1
	}
	# All faults are put into the same copy: the source may be edited meanwhile.
	start=$work/$1/start
	cp -r "$copy" "$start"
	"faults_of_$1" >"$work/faults"
	while IFS='|' read -r name edit; do
		number=$((number + 1))
		by=
		cp "$start"/*.[ch] "$copy"
		edited=
		# The edit is for the engine's file, for a file split off from it, or for a header.
		for file in "$start/$1.c" "$start/$1"_*.c "$start/$1.h" "$start/hull.h"; do
			[ -z "$edited" ] || break
			[ -e "$file" ] || continue
			sed "$edit" "$file" >"$copy/${file##*/}"
			cmp -s "$file" "$copy/${file##*/}" || edited=1
		done
		if [ -z "$edited" ]; then
			why="does not apply"
		else
			by=$(run "$work/$1" "$1" | tr '\n' ' ')
			why="noticed by ${by:-nothing}"
		fi
		case $by in
		''|*built*)	verdict="not ok"; missed=$((missed + 1)) ;;
		*)		verdict=ok ;;
		esac
		echo "$verdict $number - $1: $name # $why"
	done <"$work/faults"
}

echo "TAP version 13"
number=0
missed=0
for part; do try "$part"; done
echo "1..$number"
[ "$missed" -eq 0 ]
