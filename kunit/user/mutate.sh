#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Put one fault at a time into a copy of an engine and see whether the tests
# notice: the reference's vectors, the cases written by hand, the random ones.
#
#   mutate.sh [ENGINE-DIRECTORY [rate|wheel|rtt|clock|pause|owd|orack]...]
#
# Prints TAP. A fault that no longer applies to the source fails too: it has to
# follow the source.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
engine=$(cd "${1:-$here/../../net/timely/engine}" && pwd)
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- rate wheel rtt clock pause owd orack
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# One a line: what is wrong then, and the edit that makes it so.
faults_of_rate() {
	cat <<-'FAULTS'
	Tlow itself is below Tlow|s/if (rtt < law->t_low_ns) {/if (rtt <= law->t_low_ns) {/
	Thigh itself is above Thigh|s/rtt > law->t_high_ns/rtt >= law->t_high_ns/
	a flat gradient decreases|s/gradient <= 0/gradient < 0/
	no halving cap|s/max(rate + change, rate \/ 2)/rate + change/
	a cap of a quarter|s/rate + change, rate \/ 2/rate + change, rate \/ 4/
	no least rate|s/clamp_t(u64, rate, law->min_rate_fp,/clamp_t(u64, rate, 1,/
	HAI one completion late|s/r->hai >= law->hai_threshold/r->hai > law->hai_threshold/
	N is one less|s/weight \*= law->hai_factor/weight *= law->hai_factor - 1/
	N below Tlow always|s/c, law->hai_below_t_low,/c, true,/
	N at any w|s/c, w == 0,/c, true,/
	the HAI counter wraps|s/r->hai + 1, U8_MAX/r->hai + 1, 256/
	a flat RTT counts as falling|s/falls = diff < 0/falls = diff <= 0/
	a flat gradient counts as falling|s/falls = gradient < 0/falls = gradient <= 0/
	any fall counts in the patched rule|s/falls = timely_weight_q16(gradient) == 0/falls = gradient < 0/
	a decrease resets the raw count|s/law->hai_count != TIMELY_HAI_RAW \&\& change < 0/change < 0/
	decreases count as increases|s/TIMELY_HAI_INCREASES \&\& change > 0/TIMELY_HAI_INCREASES \&\& change >= 0/
	every completion counts in full|s/return mul_u64_u64_shr(dt, .*/return Q16_ONE;/
	the gradient decrease always scaled|s/law->scale_decrease ? elapsed : Q16_ONE/elapsed/
	an idle application keeps HAI|/!c->may_rise/,/}/s/r->hai = 0;//
	an idle application may rise|s/change > 0 \&\& !c->may_rise/change > 0 \&\& false/
	RTTs below minRTT|s/max(c->rtt_ns, law->min_rtt_ns)/c->rtt_ns/
	a first sample with a gradient|s/diff = r->seeded ? \(.*\) : 0/diff = \1/
	averages rounded down|s/shift_round(gap \* law->alpha_q16, 16)/((gap * law->alpha_q16) >> 16)/
	a gradient from the last difference|s/shift_round(gap \* law->alpha_q16, 16)/gap/
	skips one more nanosecond|s/c->now_ns - r->updated_ns < r->prev/c->now_ns - r->updated_ns <= r->prev/
	17 segments at most|s/STEP_MAX_SEGMENTS\t16/STEP_MAX_SEGMENTS\t17/
	steps of whole bytes|s/return \(mul_u64_u.._shr(law->step_fp, weight, ..)\)/return \1 >> 16 << 16/
	half of w's slope|s/2 \* gradient + Q16_ONE/gradient + Q16_ONE/
	the patched error saturates early|s/ERROR_MAX_Q16\t\t(1LL << 24)/ERROR_MAX_Q16\t\t(1LL << 23)/
	the patched error has no sign|s/error = -error/error = error/
	the patched share is not clamped|s/-(s64)Q32_ONE, Q32_ONE/-4 * (s64)Q32_ONE, 4 * Q32_ONE/
	the gradient share is not clamped|s/(u64)law->beta_q16 \* gradient, Q32_ONE/(u64)law->beta_q16 * gradient, 4 * Q32_ONE/
	FAST more than doubles|s/return min_t(s64, rise, r->rate_fp)/return rise/
	FAST takes the queue in full|s/mul_u64_u32_shr(queued_q32, law->alpha_q16, 16)/queued_q32/
	FAST adds alpha in full|s/rise = mul_u64_u32_shr(law->step_fp, law->alpha_q16, 16)/rise = law->step_fp/
	FAST measures the queue by the idle path|/timely_fast_fp/,/^}/s/<< 32, rtt)/<< 32, law->min_rtt_ns)/
	losses are free for ever|s/credit - min(credit, drawn)/credit/
	no losses in a row|s/LOSS_CREDIT_MAX_Q16	(10U/LOSS_CREDIT_MAX_Q16	(1U/
	credit without an end|s/min_t(u64, credit, LOSS_CREDIT_MAX_Q16)/min_t(u64, credit, U32_MAX)/
	one loss more than the credit|s/drawn <= credit/drawn <= credit + Q16_ONE/
	what was delivered counts again|s/loss->delivered = delivered;//
	beta above Thigh|s/excess_q32, law->beta_high_q16/excess_q32, law->beta_q16/
	a loss keeps the gradient|/^void timely_rate_lose/,/^}/s/timely_rate_reseed(r);//
	a threshold of 0 is always reached|s/hai_allowed \&\& law->hai_threshold \&\&/hai_allowed \&\&/
	a decrease keeps HAI|s/TIMELY_HAI_RAW \&\& change < 0/TIMELY_HAI_RAW \&\& false/
	a first sample held back|s/law->once_per_rtt \&\& r->seeded/law->once_per_rtt/
	the time is not kept|s/r->updated_ns = c->now_ns;//
	the RTT is not kept|s/r->prev_rtt_ns = rtt;//
	a restart below the least rate|s/max(law->first_rate_fp, law->min_rate_fp)/law->first_rate_fp/
	FAULTS
}

faults_of_wheel() {
	cat <<-'FAULTS'
	a time on a slot's start belongs to the next|s/!!(node->due_ns \& (width - 1))/1/
	times are rounded down: early|s/ + !!(node->due_ns \& (width - 1))//
	rounded to the nearest|s/!!(node->due_ns \& (width - 1))/!!(node->due_ns \& (width \/ 2))/
	the past goes into the past|s/tick = max(tick, w->tick);//
	the near ring takes one block too many|s/block <= present + 1/block <= present + 2/
	the near ring takes one block too few|s/block <= present + 1/block <= present/
	what is beyond both rings goes round|s/block = min(block, present + WHEEL_FAR_MASK);//
	the far ring takes one block too many|s/min(block, present + WHEEL_FAR_MASK)/min(block, present + TIMELY_WHEEL_SLOTS)/
	a far node is noted at its own tick|s/tick = block << TIMELY_WHEEL_BITS;//
	the note of the first is the last|s/w->next_tick = min(w->next_tick, tick);/w->next_tick = tick;/
	the note of the first is kept from before|s/w->next_tick = min(w->next_tick, tick);//
	a far block is spread a slot late|s/max((block + blocks) << TIMELY_WHEEL_BITS, w->tick)/max((block + blocks) << TIMELY_WHEEL_BITS, w->tick) + 1/
	a far block hides near slots|s/tick = min(tick, max(\(.*\)));/tick = max(\1);/
	near slots hide a far block|s/if (blocks < TIMELY_WHEEL_SLOTS)/if (blocks < TIMELY_WHEEL_SLOTS \&\& tick == WHEEL_NEVER)/
	the present word is not looked at|/^static u32 wheel_distance/,/^}/{s/if (bits)/if (bits \&\& !bit)/}
	an empty ring is as any other|s/if (next == ring.words)/if (next > ring.words)/
	a step to another word forgets the bit|s/ + 1) \* 64 - bit +/ + 1) * 64 +/
	a step to another word is one word short|s/(ring.words - 1)) + 1) \* 64/(ring.words - 1))) * 64/
	the present word is looked at first again|s/start = (word + 1) \& (ring.words - 1)/start = word/
	words are looked at from the first on|s/ring.full\[part\] \& (~0ULL << start % 64)/ring.full[part]/
	the ring of words does not close|s/i <= parts/i < parts/
	a slot is marked only with its second node|/^static void wheel_link/,/^}/s/} else {/} if (node->next) {/
	the word of a slot is not marked|s/ring.full\[slot \/ 64 \/ 64\] |= /0 \& /
	the word of a slot stays marked|s/ring.full\[slot \/ 64 \/ 64\] \&= .*/;/
	the word is unmarked with its first slot|s/if (!ring.bits\[slot \/ 64\])/if (1)/
	an emptied slot stays marked|s/ring.bits\[slot \/ 64\] \&= ~BIT_ULL(slot % 64);//
	a new node does not know what follows|s/node->next = \*head;/node->next = NULL;/
	the next one keeps its old predecessor|s/node->next->pprev = \&node->next;/;/
	deleting the first loses the rest|s/\*pprev = node->next;/*pprev = NULL;/
	a deleted node still counts as queued|s/node->pprev = NULL;//
	what follows a deleted node points at it|s/node->next->pprev = pprev;/;/
	the last of a list empties its slot always|s/if (offset >= ring.words \* 64 \* sizeof(\*head))/slot %= ring.words * 64; if (0)/
	slots of the near ring are never empty again|s/wheel_emptied(wheel_near(w), pprev);//
	blocks of the far ring are never empty again|s/wheel_emptied(wheel_far(w), pprev);//
	a block is not spread|s/wheel_spread(w, w->tick >> TIMELY_WHEEL_BITS, U32_MAX);//
	only one node of a block is spread|s/wheel_spread(w, w->tick >> TIMELY_WHEEL_BITS, U32_MAX);/wheel_spread(w, w->tick >> TIMELY_WHEEL_BITS, 1);/
	the block after the next is spread|s/wheel_spread(w, (w->tick >> TIMELY_WHEEL_BITS) + 1, WHEEL_MOVES);/wheel_spread(w, (w->tick >> TIMELY_WHEEL_BITS) + 2, WHEEL_MOVES);/
	what is due in the present slot waits|s/while (w->next_tick <= last)/while (w->next_tick < last)/
	it comes a slot early|s/u64 last = now_ns >> w->shift;/u64 last = (now_ns >> w->shift) + 1;/
	the present runs ahead|s/w->tick = max(w->tick, w->next_tick);/w->tick = last;/
	the present stays when nothing is due|s/w->tick = max(w->tick, last);//
	expired nodes stay in|/^struct timely_wheel_node \*timely_wheel_expire_slow/,/^}/s/timely_wheel_del(w, node);//
	next is what was noted last|/^u64 timely_wheel_next_ns/,/^}/s/w->next_tick = wheel_find(w);//
	an empty wheel has a next|s/w->next_tick == WHEEL_NEVER ? WHEEL_NEVER :/0 ? 0 :/
	it starts at time 0|s/w->tick = now_ns >> shift;//
	it starts as if something were due|s/w->next_tick = WHEEL_NEVER;//
	it starts with what was in the memory|s/memset(w, 0, sizeof(\*w));//
	FAULTS
}

faults_of_rtt() {
	cat <<-'FAULTS'
	an ACK that confirms nothing new counts|s/if (!ack->new)/if (0)/
	what was sent twice counts|s/if (ack->retransmitted)/if (0)/
	what is acknowledged in recovery counts|s/if (ack->recovery)/if (0)/
	a segment whose departure was skipped counts|s/if (ack->skipped)/if (0)/
	an ACK that waited may be shorter than the path|s/if (rtt_ns + TIMELY_RTT_LEAST_SLACK_NS < .*/if (0)/
	part of a segment counts|s/if (timely_seq_after(ack->end_seq, ack->una) \&\& !ack->sent_ns)/if (0)/
	a segment confirmed by SACK is a part|s/(ack->end_seq, ack->una) \&\& !ack->sent_ns)/(ack->end_seq, ack->una))/
	the last byte is a part|s/return (s32)(b - a) < 0;/return (s32)(b - a) <= 0;/
	sequence numbers do not wrap|s/return (s32)(b - a) < 0;/return a > b;/
	what TCP takes for delayed counts|s/if (ack->delayed)/if (0)/
	a doubtful stamp is used|s/if (ack->source == TIMELY_RTT_doubtful)/if (0)/
	recovery before retransmission|s/if (ack->retransmitted)/if (ack->retransmitted \&\& !ack->recovery)/
	a partial ACK before recovery|s/if (ack->recovery)/if (ack->recovery \&\& !timely_seq_after(ack->end_seq, ack->una))/
	TCP's time instead of the stamp|s/ack->arrived_ns ?: ack->now_ns/ack->now_ns/
	only stamps|s/ack->arrived_ns ?: ack->now_ns/ack->arrived_ns/
	the plan instead of the departure|s/ack->sent_ns ?: ack->scheduled_ns/ack->scheduled_ns/
	only departures|s/ack->sent_ns ?: ack->scheduled_ns/ack->sent_ns/
	no RTT is negative|s/if (end_ns < sent_ns)/if (0)/
	an RTT of zero is negative|s/if (end_ns < sent_ns)/if (end_ns <= sent_ns)/
	no RTT is too long|s/if (rtt_ns > TIMELY_RTT_MAX_NS)/if (0)/
	ten seconds are too long|s/rtt_ns > TIMELY_RTT_MAX_NS/rtt_ns >= TIMELY_RTT_MAX_NS/
	a delayed tail counts|s/if (rtt_ns > ack->tail_limit_ns \&\&/if (0 \&\&/
	nothing in flight is no tail|s/ack->in_flight <= 1/ack->in_flight == 1/
	two packets are a tail|s/ack->in_flight <= 1/ack->in_flight <= 2/
	a tail at the limit is late|s/rtt_ns > ack->tail_limit_ns/rtt_ns >= ack->tail_limit_ns/
	any tail is late|s/if (rtt_ns > ack->tail_limit_ns \&\& /if (/
	several small packets are no tail|s/(ack->acked >= ack->in_flight \&\& bytes <= ack->mss)/false/
	any small flight is a tail|s/ack->acked >= ack->in_flight \&\& bytes/bytes/
	any last flight is a tail|s/ \&\& bytes <= ack->mss)/)/
	more than an MSS is a tail|s/bytes <= ack->mss)/bytes <= ack->mss + 1)/
	serialisation of all that was completed|s/min(bytes, ack->segment_bytes);/bytes;/
	serialisation of what completed where the segment is known|s/return ack->sent_ns ? ack->segment_bytes :/return/
	serialisation of a full segment always|s/min(bytes, ack->segment_bytes);/ack->segment_bytes;/
	serialisation is left in|s/rtt_ns -= min(rtt_ns, serialisation_ns);//
	serialisation overflows 32 bits|s/(u64)timely_rtt_segment/timely_rtt_segment/
	serialisation makes RTTs negative|s/rtt_ns -= min(rtt_ns, serialisation_ns);/rtt_ns -= serialisation_ns;/
	serialisation in whole ns a byte|s/ack->ns_per_byte_q16 >> 16;/(ack->ns_per_byte_q16 >> 16);/
	RTTs above 4 s wrap|s/completion->rtt_ns = min_t(u64, rtt_ns, U32_MAX);/completion->rtt_ns = rtt_ns;/
	bytes of packets only|s/return acked;/;/
	bytes in order only, under SACK|s/if (!ack->sacked \&\& acked/if (acked/
	bytes of sequence numbers only|s/if (!ack->sacked \&\& acked \&\& acked < delivered)/if (1)/
	what SACK confirmed is no byte|s/if (!ack->sacked \&\& acked \&\& acked < delivered)/if (!ack->sacked \&\& acked < delivered)/
	bytes are counted in 32 bits|s/(u64)(u32)(ack->delivered - rtt->delivered)/(u32)(ack->delivered - rtt->delivered)/
	the count of packets does not wrap|s/(u64)(u32)(ack->delivered - rtt->delivered)/((u64)ack->delivered - rtt->delivered)/
	no byte may complete|s/clamp_t(u64, delivered, 1, U32_MAX)/min_t(u64, delivered, U32_MAX)/
	bytes wrap|s/clamp_t(u64, delivered, 1, U32_MAX)/max_t(u64, delivered, 1)/
	the completion is of the ACK's arrival|s/completion->now_ns = ack->now_ns/completion->now_ns = end_ns/
	what is completed completes again|s/rtt->seq = ack->una;//
	packets complete again|s/rtt->delivered = ack->delivered;//
	refused ACKs complete what they confirm|s/if (result != TIMELY_RTT_COUNTER_COUNT)$/rtt->delivered = ack->delivered; if (result != TIMELY_RTT_COUNTER_COUNT)/
	a missing stamp is the driver's|s/ack->arrived_ns ? ack->source : TIMELY_RTT_tcp/ack->source/
	FAULTS
}

faults_of_clock() {
	cat <<-'FAULTS'
	a stamp is judged while the line is learnt|s/line->state < TIMELY_CLOCK_SURE ||/line->state == TIMELY_CLOCK_NONE ||/
	a stamp is good while the line is in doubt|s/if (line->state == TIMELY_CLOCK_DOUBT || residual_ns/if (residual_ns/
	an old line is as good as a new one|s/(s64)(host_ns - line->host_ns) > (s64)line->sure_ns)/0)/
	the gate is not looked at|s/residual_ns > (s64)line->gate_ns/0/
	the gate itself is too late|s/residual_ns > (s64)line->gate_ns/residual_ns >= (s64)line->gate_ns/
	below is not looked at|s/residual_ns < -(s64)line->below_ns ||$/0 ||/
	packets arrive after they were handled|s/residual_ns > 0 ? (u64)residual_ns : 0/residual_ns/
	the drift is not applied|s/gain = (since \* line->drift_q32) >> 32;/gain = 0;/
	a line reaches anywhere|s/if (since > TIMELY_CLOCK_RANGE_NS || since < -TIMELY_CLOCK_RANGE_NS)/if (0)/
	residuals wrap|s/if (residual > -TIMELY_CLOCK_NOWHERE || residual < TIMELY_CLOCK_NOWHERE)/if (0)/
	a batch keeps the highest|s/residual_ns < batch->min_ns) {/residual_ns > batch->min_ns) {/
	a batch outlives its line|s/!batch->count || batch->epoch != line->epoch/!batch->count/
	a batch is never old|s/host_ns - batch->since_ns >= line->batch_ns/0/
	a batch waits with what is below|s/batch->min_ns < -(s64)line->below_ns/0/
	a batch waits with what is too high|s/batch->min_ns > (s64)line->high_ns/0/
	a void batch is taken|s/if (!news.pairs || batch->epoch != line->epoch)/if (!news.pairs)/
	a batch is not emptied|s/batch->count = 0;$/;/
	a batch is never as old again|s/batch->since_ns = batch->last_ns;//
	blocks keep their first pair|/^static void track_lower/,/^}/s/block->nic_ns = nic_ns;/return;/
	blocks go by the order of batches|s/(s64)(news->nic_ns - last->nic_ns) > 0;/1;/
	what comes late changes the last block|s/while (block > track->blocks \&\& .*)/while (0)/
	the shortest for its age is the longest|s/if (span \* best_age < best_span \* age)/if (best_span == U32_MAX || span * best_age > best_span * age)/
	blocks as old as may be|s/now_ns - gone->opened_ns < CLOCK_TRACK_NS/now_ns - gone->opened_ns < 1/
	the upper hull|s/>= (y\[c\] - y\[a\]) \* (x\[a\] - x\[b\])/<= (y[c] - y[a]) * (x[a] - x[b])/
	the newest edge of the hull|s/x\[clock->hull\[i + 1\]\] > middle)/false)/
	the oldest edge of the hull|s/x\[clock->hull\[i + 1\]\] > middle)/true)/
	no slope|s/fit->slope_q32 = clamp(slope, .*/fit->slope_q32 = 0;/
	half the slope|s/fit->slope_q32 = clamp(slope, /fit->slope_q32 = clamp(slope \/ 2, /
	a hull's height is the line's|s/fit->at_ns -= div64_u64(2 \* fit->density, work->pairs);//
	errors are half|s/u64 error = div64_u64(density \* times, pairs);/u64 error = div64_u64(density * times, pairs) \/ 2;/
	errors are four times as large|s/u64 error = div64_u64(density \* times, pairs);/u64 error = div64_u64(density * times, pairs) * 4;/
	lines need not agree|s/return range->low_ns <= range->high_ns;/return true;/
	only the shortest line|s/agree = fit_stretch(clock, \&work, i + 1, \&fit);/agree = fit_stretch(clock, \&work, i + 1, \&fit) \&\& i < 8;/
	a step between two brackets is drift|s/if (off_ppb <= clock->drift_error_ppb + drift_ppb + CLOCK_SERVO_PPB)/if (1)/
	an edge rests on all pairs|s/return min(4 \* old, work->pairs);/return work->pairs;/
	the drift is known for ever|s/best->slope_ppb \*= 2;/;/
	the density of 100 times as many pairs|s/return abs(a_ns - b_ns) \* (pairs + 2);/return abs(a_ns - b_ns) * (pairs + 2) \/ 100;/
	the drift is what it was first|s/line->drift_q32 = clamp(line->drift_q32 + fit.slope_q32, /line->drift_q32 = clamp(line->drift_q32, /
	the drift has no bounds|s/line->drift_q32 = clamp(line->drift_q32 + fit.slope_q32, .*/line->drift_q32 += fit.slope_q32;/;s/^\t\t\t\tCLOCK_MAX_DRIFT_Q32);//
	a drift's change is not seen|s/if (ns < 2 \* CLOCK_MAX_X_NS \&\& change > error)/if (0)/
	a spread that never changes|s/spread += div_s64(.*/;/
	no gate above the spread|s/line->spread_ns + line->spread_ns \/ 4 + CLOCK_GATE_NS/line->spread_ns \/ 4 + CLOCK_GATE_NS/
	always sure|s/if (error_ns > limit) {/if (0) {/
	sure for ever|s/line->sure_ns = div64_u64(.*/line->sure_ns = U32_MAX;/
	a line begun anew keeps its epoch|/^static void clock_begin/,/^}/s/line->epoch++;//
	too high is never too high|s/return evidence > CLOCK_EVIDENCE \* density;/return false;/
	too high sooner|s/return evidence > CLOCK_EVIDENCE \* density;/return evidence > 2 * density;/
	one late pair is too high|s/height = clamp(height, 0LL, CLOCK_EVIDENCE_PAIR \* density);/height = clamp(height, 0LL, CLOCK_MAX_Y_NS);/
	a doubt remembers the last one's pairs|s/clock_trial(clock)->count = 0;$/;/
	nothing ends a doubt but a step|s/if (!below \&\& doubt_near(clock, news))/if (0)/
	scatter ends no doubt|s/if (clock->scatters < 4 || clock->below)/if (1)/
	any height ends a doubt|s/if (height - floor <= (s64)(density \/ CLOCK_TEST_PAIRS))/if (1)/
	the first pair below is a step|s/if (below \&\& clock->below++) {/if (below) {/
	pairs below the line are no step|s/if (below \&\& clock->below++) {/if (0) {/
	a doubt that lasts is a step at once|s/opened_ns < CLOCK_DOUBT_NS ||/opened_ns < CLOCK_DOUBT_NS \/ 8 ||/
	a doubt lasts for ever|s/opened_ns < CLOCK_DOUBT_NS ||/opened_ns >= 0 ||/
	a step learns nothing from the doubt|s/clock->track = !clock->track;//
	a host set back is another CPU|s/if (clock->doubted_ns - news->host_ns < CLOCK_LATE_NS)/if ((s64)(news->host_ns - clock->doubted_ns) <= 0)/
	a pause changes nothing|s/news->host_ns - track->blocks\[track->count - 1\].host_ns > CLOCK_PAUSE_NS)/0)/
	learning goes on over any gap|s/if (abs(news->height_ns) > CLOCK_MAX_Y_NS ||$/if (/
	forgetting keeps the line|/^void timely_clock_forget/,/^}/s/clock->line.state = TIMELY_CLOCK_NONE;/clock->line.state = TIMELY_CLOCK_SURE;/
	forgetting keeps the epoch|/^void timely_clock_forget/,/^}/s/clock->line.epoch++;//
	uncertainty does not grow|s/(u64)max(age_ns, 0LL) \* line->growth_ppb/0/
	uncertainty of the future|s/max(age_ns, 0LL)/age_ns/
	brackets of any width|s/if (width > CLOCK_MAX_BRACKET_NS || /if (/
	brackets say nothing of the floor|s/^\tclock->line.host_ns += move;//
	brackets move the line and not the floor|s/clock->floor_ns = clamp(clock->floor_ns - move, .*/;/
	brackets do not end a doubt|/^bool timely_clock_bracket/,/^}/s/clock_trust(clock);/;/
	brackets see no step up|s/if (low > (s64)clock->floor_ns + error ||$/if (/
	brackets see no step down|s/low + (s64)width < (s64)clock->floor_ns - CLOCK_MAX_FLOOR_NS - error/0/
	a bracket makes no line|s/bool good = width_ns <= CLOCK_ANCHOR_NS \&\& .*/bool good = false;/
	a floor that sinks is a step|s/^\tif (clock->floor_ns)$/\tif (0)/
	FAULTS
}

faults_of_pause() {
	cat <<-'FAULTS'
	b is 0 at first|s/pause->b = TIMELY_PAUSE_FIRST_B;/;/
	b is 1 at first|s/pause->b = TIMELY_PAUSE_FIRST_B;/pause->b = TIMELY_PAUSE_ONE;/
	the state is not emptied|s/memset(pause, 0, sizeof(\*pause));//
	delays of any length|s/if (signal->delay_ns > TIMELY_PAUSE_DELAY_MAX_NS)/if (0)/
	a second is too long|s/if (signal->delay_ns > TIMELY_PAUSE_DELAY_MAX_NS)/if (signal->delay_ns >= TIMELY_PAUSE_DELAY_MAX_NS)/
	a start from delays of any length|s/delay_ns > TIMELY_PAUSE_DELAY_MAX_NS || signal->now_ns/signal->now_ns/
	a pause of any length|s/min_t(u64, asserted_ns, TIMELY_PAUSE_DELAY_MAX_NS)/asserted_ns/
	a rise counts as a fall|s/if (black_ns <= green_ns)/if (0)/
	no more than b of 1, one early|s/if (black_ns - green_ns >= asserted)/if (black_ns - green_ns + 1 >= asserted)/
	b beyond 1|s/if (black_ns - green_ns >= asserted)/if (0)/
	half of what was shown|s/<< PAUSE_SHIFT, asserted/<< (PAUSE_SHIFT - 1), asserted/
	a gain beyond 1|s/min(law->gain, TIMELY_PAUSE_ONE)/law->gain/
	the strawman learns|s/!law->strawman \&\& pause->heard/pause->heard/
	the first packet teaches|s/ \&\& pause->heard \&\& / \&\& /
	a pause of nothing between|s/(s64)asserted_ns > 0)/(s64)asserted_ns >= 0)/
	packets out of order teach|s/(s64)asserted_ns > 0)/asserted_ns > 0)/
	b is rounded down|s/ +$/ + 0 */
	the average takes the last alone|s/(TIMELY_PAUSE_ONE - gain)/0/
	the average never moves|s/(u64)b \* gain/(u64)pause->b * gain/
	the black delay is not kept|s/pause->black_delay_ns = signal->delay_ns;//
	the black note is not kept|s/pause->black_asserted_ns = signal->asserted_ns;//
	the black note is C|s/black_asserted_ns = signal->asserted_ns/black_asserted_ns = pause->asserted_ns/
	nothing was ever heard|s/pause->heard = true;//
	a hold lasts one ns more|s/before_ns > now_ns ? before_ns - now_ns : 0/before_ns >= now_ns ? before_ns - now_ns + 1 : 0/
	a hold lasts as long again|s/held_ns = now_ns > .*/held_ns = 0;/
	time that runs backwards is held|s/held_ns = now_ns > .*/held_ns = now_ns - pause->since_ns;/
	holds without a departure|s/if (before_ns \&\& signal->departures == pause->departures)/if (0)/
	the first hold wants a departure|s/if (before_ns \&\& signal->departures/if (signal->departures/
	a hold's beginning is not noted|s/pause->since_ns = now_ns;//
	its departures are not noted|s/pause->departures = signal->departures;//
	departures of the present hold are noted|s/\(\t\)held_ns = now_ns >/\1pause->departures = signal->departures; held_ns = now_ns >/
	no longest hold|s/excess_ns = min(excess_ns, law->pause_max_ns - .*/;/
	a hold may last for ever after its longest|s/min(law->pause_max_ns, held_ns)/(law->pause_max_ns ? min(law->pause_max_ns - 1, held_ns) : 0)/
	the longest hold from now|s/law->pause_max_ns - min(law->pause_max_ns, held_ns)/law->pause_max_ns/
	the end of time wraps|s/excess_ns = min(excess_ns, U64_MAX - now_ns);//
	the end is a maximum|s/pause->until_ns = now_ns + excess_ns;/pause->until_ns = max(before_ns, now_ns + excess_ns);/
	the end is added to|s/pause->until_ns = now_ns + excess_ns;/pause->until_ns = now_ns + excess_ns + rest_ns;/
	C counts what was left twice|s/pause->asserted_ns += excess_ns - rest_ns;/pause->asserted_ns += excess_ns;/
	C does not fall|s/pause->asserted_ns += excess_ns - rest_ns;/pause->asserted_ns += excess_ns > rest_ns ? excess_ns - rest_ns : 0;/
	C counts before the bound|s/pause->asserted_ns += excess_ns - rest_ns;/pause->asserted_ns += signal->delay_ns - rest_ns;/
	C does not count|s/pause->asserted_ns += .*//
	a change is always told|s/return pause->until_ns != before_ns;/return true;/
	a change is never told|s/return pause->until_ns != before_ns;/return false;/
	b is learnt afterwards|/^bool timely_pause_hear/,/^}/{s/^\tpause_learn(pause, law, signal);//;s/^\tpending_ns = pause->asserted_ns - .*/&\n\tu32 old = pause->b; pause_learn(pause, law, signal);/;s/pending_ns, pause->b, /pending_ns, old, /}
	notes ahead of C count|s/if ((s64)pending_ns < 0)/if (0)/
	C does not wrap|s/if ((s64)pending_ns < 0)/if (signal->asserted_ns > pause->asserted_ns)/
	P leaves out what is still to come|s/^\tpending_ns = pause->asserted_ns - signal->asserted_ns;/&\n\tif (pause->until_ns > signal->now_ns) pending_ns -= pause->until_ns - signal->now_ns;/
	all of P shows|s/seen_ns = law->strawman ? 0 : .*/seen_ns = law->strawman ? 0 : pending_ns;/
	nothing of P shows|s/seen_ns = law->strawman ? 0 : .*/seen_ns = 0;/
	the strawman sees pauses|s/seen_ns = law->strawman ? 0 : /seen_ns = /
	a delay that is all seen|s/if (signal->delay_ns <= seen_ns || signal->delay_ns/if (signal->delay_ns/
	the threshold itself is too much|s/signal->delay_ns - seen_ns <= law->threshold_ns/signal->delay_ns - seen_ns < law->threshold_ns/
	a pause of all of the delay|s/signal->delay_ns - seen_ns - law->threshold_ns);/signal->delay_ns - seen_ns);/
	nothing due ends a hold|s/^\t\treturn false;$/\t\treturn (pause->until_ns = 0);/
	a start within a hold|s/ || signal->now_ns < pause->until_ns)/)/
	no start as a hold ends|s/signal->now_ns < pause->until_ns)/signal->now_ns <= pause->until_ns)/
	a start by an old delay|s/if (delay_ns <= age_ns || delay_ns/if (delay_ns/
	a start at the threshold|s/delay_ns - age_ns <= law->threshold_ns/delay_ns - age_ns < law->threshold_ns/
	a start forgets the age|s/delay_ns - age_ns - law->threshold_ns);/delay_ns - law->threshold_ns);/
	a start forgets the threshold|s/delay_ns - age_ns - law->threshold_ns);/delay_ns - age_ns);/
	a start teaches|s/return pause_assert(pause, law, signal, delay_ns/pause_learn(pause, law, signal); return pause_assert(pause, law, signal, delay_ns/
	a flow is limited from the start|s/rate_Bps = TIMELY_RESUME_UNLIMITED }/rate_Bps = 1 }/
	holds long ago count|s/if (period_ns > RESUME_STALE_RTTS \* rtt_ns)/if (!resume->begun_ns)/
	no hold is near enough|s/if (period_ns > RESUME_STALE_RTTS \* rtt_ns)/if (1)/
	the last hold is always long ago|s/RESUME_STALE_RTTS	16/RESUME_STALE_RTTS	8/
	a hold is not long ago at 16 round trips|s/period_ns > RESUME_STALE_RTTS/period_ns >= RESUME_STALE_RTTS/
	the average is the last period|s/rate_Bps = (3 \* resume->average_Bps + rate_Bps) \/ 4;/;/
	no more than the average|s/RESUME_QUARTERS \* rate_Bps \/ 4/rate_Bps/
	no least rate|s/RESUME_MIN_BYTES \* NSEC_PER_SEC/0/
	the period does not begin anew|s/^\tresume->begun_ns = now_ns;//
	nor do its bytes|s/^\tresume->begun_bytes = bytes;//
	it grows at once|s/until_ns + RESUME_FIRST_RTTS \* rtt_ns/until_ns/
	it grows from the hold's beginning|s/until_ns + RESUME_FIRST_RTTS \* rtt_ns/now_ns + RESUME_FIRST_RTTS * rtt_ns/
	it grows with each signal|s/resume->grow_ns = now_ns + rtt_ns;//
	it does not grow|s/resume->rate_Bps += .*;//
	it grows for ever|s/if (resume->rate_Bps > RESUME_MAX_BPS)/if (0)/
	a rate beyond reason|s/rate_Bps = min(rate_Bps, RESUME_MAX_BPS);//
	the floor is 0 at first|s/floor->least = U64_MAX;/floor->least = 0;/
	the half before is 0 at first|/^void timely_floor_init/,/^}/s/floor->before = U64_MAX;//
	a time that was set back stays|s/if (back || gone_ns - /if (gone_ns - /
	any step back is a new time|s/if (gone_ns >= half_length_ns) {/if (back || gone_ns >= half_length_ns) {/
	time never runs back|s/bool back = .*/bool back = false;/
	halves move one late|s/if (gone_ns >= half_length_ns) {/if (gone_ns > half_length_ns) {/
	the whole window is dropped one late|s/gone_ns - half_length_ns >= half_length_ns/gone_ns - half_length_ns > half_length_ns/
	the whole window is never dropped|s/if (back || gone_ns - half_length_ns >= half_length_ns)/if (back)/
	the whole window is dropped at each half|s/if (back || gone_ns - half_length_ns >= half_length_ns)/if (1)/
	halves begin with a value|s/floor->half_ns += half_length_ns;/floor->half_ns = now_ns;/
	a new window begins at 0|s/floor->half_ns = now_ns;/floor->half_ns = 0;/
	a new window keeps the half before|s/^\t\t\tfloor->before = U64_MAX;//
	the half before is not kept|s/floor->before = floor->least;//
	the half is not emptied|s/^\t\tfloor->least = U64_MAX;//
	a value is the least|s/floor->least = min(floor->least, value);/floor->least = value;/
	what is empty moves|s/if (least == U64_MAX)/if (0)/
	it moves below 0|s/least - min(least, -(u64)more)/least + more/
	it moves beyond the last|s/least + min_t(u64, more, room)/least + more/
	the present half stays|s/floor->least = floor_shifted.*//
	the half before stays|s/floor->before = floor_shifted.*//
	the half before does not count|s/return min(floor->least, floor->before);/return floor->least;/
	FAULTS
}

faults_of_owd() {
	cat <<-'FAULTS'
	nothing is emptied|s/memset(owd, 0, sizeof(\*owd));//
	the least round trip is 0 at first|s/timely_floor_init(&owd->rtt);//
	round trips measured otherwise do not count|s/^\ttimely_floor_add(&owd->rtt, now_ns, OWD_FLOOR_HALF_NS, rtt_ns);//
	ways measured otherwise do not count|s/^\ttimely_floor_add(&owd->raw, now_ns, OWD_FLOOR_HALF_NS, rtt_ns);//
	the turnaround is part of the round trip|s/signal->now_ns - signal->sent_ns - signal->turnaround_ns;/signal->now_ns - signal->sent_ns;/
	intervals need not meet from below|s/if (low > (s64)known->width_ns + drift_ns + OWD_OFFSET_SLACK_NS)/if (0)/
	intervals need not meet from above|s/if (high < -drift_ns - OWD_OFFSET_SLACK_NS)/if (0)/
	no drift|s/drift_ns = age_ns >> OWD_OFFSET_DRIFT_SHIFT;/drift_ns = 0;/
	no slack|s/((s64)(16 \* NSEC_PER_USEC))/((s64)0)/
	intervals are not narrowed from below|s/low = max(low, -drift_ns);/low = -drift_ns;/
	intervals are not narrowed from above|s/high = min(high, (s64)known->width_ns + drift_ns);/high = (s64)known->width_ns + drift_ns;/
	an interval stays where it was|s/known->low_ns += (u64)low;//
	an interval keeps its width|s/known->width_ns = (u64)(high - low);//
	an interval keeps its time|s/known->at_ns = news->at_ns;//
	other flows never count|s/timeline->known = owd_is_fresh(owd, signal->now_ns) ? owd->offset : news;/timeline->known = news;/
	other flows count for ever|s/(s64)(now_ns - owd->offset.at_ns) < (s64)OWD_FRESH_NS/1/
	one that agrees does not end a doubt|/if (owd_offset_meets(&timeline->known, &news)) {/,/}/s/timeline->count = 0;//
	any step is believed at once|s/if (timeline->count < OWD_STEP_SIGNALS ||/if (0 \&\& (timeline->count < OWD_STEP_SIGNALS ||/;s/< (s64)OWD_STEP_NS)$/< (s64)OWD_STEP_NS))/
	a step is never believed|s/timeline->count++;/timeline->count = 1;/
	a step is believed after eight, however fast|s/(s64)(signal->now_ns - timeline->since_ns) < (s64)OWD_STEP_NS/0/
	a step is believed after 20 ms, however few|s/timeline->count < OWD_STEP_SIGNALS ||/0 ||/
	those that disagree on the step count|s/ || !owd_offset_meets(&timeline->other, &news)//
	a step is not counted|s/^\t\tif (owd)$/\t\tif (0)/
	what a flow knows is not told|s/^\tif (owd)$/\tif (0)/
	a line that cannot be right stays|s/^\t\ttimely_clock_forget(owd->clock);//
	the round trip does not bound a relative delay|s/min(raw_ns - least_ns, excess_ns)/raw_ns - least_ns/
	a relative delay is the round trip's excess|s/min(raw_ns - least_ns, excess_ns)/excess_ns/
	receive times of any kind|s/if (!owd_believes(owd, timeline, signal))/if (0)/
	absolute delays below 0|s/if (delay < -slack_ns || /if (/
	absolute delays beyond the round trip|s/delay > rtt_ns + slack_ns ||/0 ||/
	clocks may not be apart|s/max_t(s64, error_ns, OWD_SLACK_NS)/OWD_SLACK_NS/
	an absolute delay is not clamped|s/(u64)clamp(delay, 0LL, rtt_ns)/(u64)delay/
	doubt changes nothing|s/\*delay_ns = min(\*delay_ns, excess_ns);//
	the least round trip ever is doubted|s/!lowest \&\& delay_ns/delay_ns/
	delays that round trips explain are doubted|s/delay_ns - threshold_ns > excess_ns/1/
	doubt after one|s/OWD_STRANGE_SIGNALS\t16/OWD_STRANGE_SIGNALS\t1/
	doubt without waiting|s/(s64)(signal->now_ns - owd->strange_ns) >= (s64)OWD_STRANGE_NS/1/
	doubt does not end below the threshold|/if (delay_ns <= threshold_ns) {/,/}/s/owd->doubted = false;//
	doubt does not end after a silence|s/if (silence_ns > (s64)OWD_DOUBT_NS)/if (0)/
	what is far apart counts together|s/if (silence_ns > (s64)gap_ns)/if (0)/
	doubt is counted each time|s/owd->noticed += !owd->doubted;/owd->noticed++;/
	FAULTS
}

faults_of_orack() {
	cat <<-'FAULTS'
	the first word of the key only|s/sip.key\[1\] = key->words\[1\];/sip.key[1] = 0;/
	the second word of the key only|s/sip.key\[0\] = key->words\[0\];/sip.key[0] = 0;/
	the key's words exchanged|s/sip.key\[0\] = key->words\[0\];/sip.key[0] = key->words[1];/;s/sip.key\[1\] = key->words\[1\];/sip.key[1] = key->words[0];/
	the family is not in the tag|s/put_unaligned_be16(tuple->family, text);/put_unaligned_be16(0, text);/
	the source is not in the tag|s/memcpy(text + 2, tuple->saddr, /memset(text + 2, 0, /
	the destination is not in the tag|s/memcpy(text + 2 + ORACK_ADDRESS_BYTES, tuple->daddr, /memset(text + 2 + ORACK_ADDRESS_BYTES, 0, /
	the addresses may change places|s/memcpy(text + 2 + ORACK_ADDRESS_BYTES, tuple->daddr, .*/for (int i = 0; i < 16; i++) { text[2 + i] ^= ((u8 *)tuple->daddr)[i]; text[18 + i] = 0; }/
	only four bytes of addresses|s/ORACK_ADDRESS_BYTES);$/4);/;s/u8 text\[ORACK_PSEUDO_BYTES + ORACK_TAGGED_BYTES\] __aligned(8);/u8 text[ORACK_PSEUDO_BYTES + ORACK_TAGGED_BYTES] = {};/
	the contents are not in the tag|s/memcpy(text + ORACK_PSEUDO_BYTES, wire, /memset(text + ORACK_PSEUDO_BYTES, 0, /
	the turnaround is not in the tag|s/ORACK_TAGGED_BYTES\t28/ORACK_TAGGED_BYTES	24/;s/wire + ORACK_TAGGED_BYTES)/wire + 28)/
	no key is a key of zeroes|s/^\tif (!key)$/\tstatic const struct timely_orack_key none; if (!key) key = \&none; if (0)/
	a key's number without a key|s/wire\[3\] = key ? orack->key : 0;/wire[3] = orack->key;/
	the key's number is not written|s/wire\[3\] = key ? orack->key : 0;/wire[3] = 0;/
	the flags are not written|s/wire\[5\] = orack->flags;/wire[5] = 0;/
	reserved bytes are not written|s/put_unaligned_be16(0, wire + 10);//
	ports exchanged on the wire|s/memcpy(wire + 6, \&tuple->sport, 2);/memcpy(wire + 6, \&tuple->dport, 2);/;s/memcpy(wire + 8, \&tuple->dport, 2);/memcpy(wire + 8, \&tuple->sport, 2);/
	ports exchanged both ways|s/wire + 6/wire + 99/;s/wire + 8/wire + 6/;s/wire + 99/wire + 8/
	the tag is not written|s/put_unaligned_be64(orack_tag(tuple, wire, key), .*/;/
	the tag before the contents|s/put_unaligned_be32(orack->turnaround_ns, wire + 24);//;s/put_unaligned_be64(orack_tag(tuple, wire, key), .*/&\n\tput_unaligned_be32(orack->turnaround_ns, wire + 24);/
	longer packets|s/bytes != TIMELY_ORACK_BYTES/bytes < TIMELY_ORACK_BYTES/
	shorter packets|s/bytes != TIMELY_ORACK_BYTES/bytes > TIMELY_ORACK_BYTES/
	any magic|s/get_unaligned_be16(wire) != TIMELY_ORACK_MAGIC || //
	half of the magic|s/get_unaligned_be16(wire) != TIMELY_ORACK_MAGIC/wire[0] != TIMELY_ORACK_MAGIC >> 8/
	any version|s/ || wire\[2\] != TIMELY_ORACK_VERSION//
	later versions|s/wire\[2\] != TIMELY_ORACK_VERSION/wire[2] < TIMELY_ORACK_VERSION/
	any protocol|s/if (wire\[4\] != IPPROTO_TCP \&\& wire\[4\] != IPPROTO_UDP)/if (0)/
	TCP only|s/ \&\& wire\[4\] != IPPROTO_UDP)/)/
	UDP only|s/wire\[4\] != IPPROTO_TCP \&\& //
	any flags|s/if (wire\[5\] & ~TIMELY_ORACK_HARDWARE)/if (0)/
	no flags|s/if (wire\[5\] & ~TIMELY_ORACK_HARDWARE)/if (wire[5])/
	source port 0|s/!get_unaligned_be16(wire + 6) || //
	destination port 0|s/ || !get_unaligned_be16(wire + 8))/)/
	a port's low byte only|s/!get_unaligned_be16(wire + 6)/!wire[7]/
	reserved bytes of any value|s/return !get_unaligned_be16(wire + 10);/return true;/
	one reserved byte of any value|s/return !get_unaligned_be16(wire + 10);/return !wire[10];/
	what is read is not emptied|s/memset(orack, 0, sizeof(\*orack));//
	it is emptied before it is looked at|s/^\tif (!orack_well_formed(wire, bytes))$/\tmemset(orack, 0, sizeof(*orack));\n&/
	the key is not read|s/orack->key = wire\[3\];//
	the protocol is not read|s/orack->tuple.protocol = wire\[4\];//
	the flags are not read|s/orack->flags = wire\[5\];//
	ports are not read|s/memcpy(\&orack->tuple.dport, wire + 8, 2);//
	the sequence number is not read|s/orack->seq = get.*//
	the time is not read|s/orack->received_ns = get.*//
	the turnaround is not read|s/orack->turnaround_ns = get.*//
	any tag|s/return !difference \&\& /return /
	half of the tag|s/return !difference \&\& /return !(u32)difference \&\& /
	the other half of the tag|s/return !difference \&\& /return !(difference >> 32) \&\& /
	without a key, any number of one|s/ \&\& (key || !orack->key);/;/
	with a key, only number 0|s/(key || !orack->key)/!orack->key/
	the length is not in the digest|s/return jhash2(words, DIGEST_WORDS, bytes)/return jhash2(words, DIGEST_WORDS, 0)/
	a digest of 12 bytes|s/return jhash2(words, DIGEST_WORDS, bytes)/return jhash2(words, DIGEST_WORDS - 1, bytes)/
	a digest of 8 bytes|s/DIGEST_WORDS\t\t.*/DIGEST_WORDS		2/
	a digest of 0|s/ ?: 1;/;/
	never 1 but 2|s/ ?: 1;/ ?: 2;/
	digests by the host's byte order|s/words\[i\] = get_unaligned_le32(text + 4 \* i);/words[i] = get_unaligned_be32(text + 4 * i);/
	FAULTS
}

# run DIRECTORY PART: which kinds of tests fail; "built" if it does not build.
run() {
	make -s -C "$here" O="$1/out" ENGINE="$1/timely/engine" SANITIZE= "$1/out/$2_fuzz" >"$1/log" 2>&1 || {
		echo built
		return
	}
	# One that never returns is noticed too.
	timeout 15 "$1/out/$2_fuzz" "$([ "$2" = rate ] && echo 500 || echo 100)" >"$1/log" 2>&1 ||
		[ $? -eq 1 ] || echo crashed
	for kind in 'vectors:follows_the_reference' "hand:timely_$2: [a-z]*__[^:]*\$" \
		'table:timely_clock: [a-z]*__[^:]*:' 'random:random:'; do
		! grep -q "^not ok .*${kind#*:}" "$1/log" || echo "${kind%%:*}"
	done
}

# try PART: its faults, one after the other.
try() {
	copy=$work/$1/timely/engine
	mkdir -p "$work/$1/timely"
	cp -r "$engine" "$copy"
	by=$(run "$work/$1" "$1" | tr '\n' ' ')
	[ -z "$by" ] || {
		echo "Bail out! Without a fault, too, failed: $by"
		exit 1
	}
	# Somebody may be at work on the source.
	start=$work/$1/start
	cp -r "$copy" "$start"
	"faults_of_$1" >"$work/faults"
	while IFS='|' read -r name edit; do
		number=$((number + 1))
		by=
		cp "$start"/*.[ch] "$copy"
		edited=
		# In the engine's file, or what is split off from it, or, inline, in its header.
		for file in "$start/$1.c" "$start/$1"_*.c "$start/$1.h"; do
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
