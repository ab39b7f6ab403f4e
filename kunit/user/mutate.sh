#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Put one fault at a time into a copy of an engine and see whether the tests
# notice: the reference's vectors, the cases written by hand, the random ones.
#
#   mutate.sh [ENGINE-DIRECTORY [rate|wheel]...]
#
# Prints TAP. A fault that no longer applies to the source fails too: it has to
# follow the source.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
engine=$(cd "${1:-$here/../../net/timely}" && pwd)
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- rate wheel
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
	an idle application keeps HAI|/may_rise) {/,/}/s/r->hai = 0;//
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
	only one part of the words is looked at|s/part = (part + 1) \& (parts - 1);/;/
	a slot is marked only with its second node|/^static void wheel_link/,/^}/s/} else {/} if (node->next) {/
	the word of a slot is not marked|s/ring.full\[slot \/ 64 \/ 64\] |= /0 \& /
	another word is marked|s/ring.full\[slot \/ 64 \/ 64\] |= /ring.full[0] |= /
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

# run DIRECTORY PART: which kinds of tests fail; "built" if it does not build.
run() {
	make -s -C "$here" O="$1/out" ENGINE="$1" SANITIZE= "$1/out/$2_fuzz" >"$1/log" 2>&1 || {
		echo built
		return
	}
	# One that never returns is noticed too.
	timeout 15 "$1/out/$2_fuzz" "$([ "$2" = rate ] && echo 500 || echo 100)" >"$1/log" 2>&1 ||
		[ $? -eq 1 ] || echo crashed
	for kind in 'vectors:follows_the_reference' "hand:timely_$2: [a-z]*__[^:]*\$" 'random:random:'; do
		! grep -q "^not ok .*${kind#*:}" "$1/log" || echo "${kind%%:*}"
	done
}

# try PART: its faults, one after the other.
try() {
	mkdir "$work/$1"
	cp "$engine"/*.c "$work/$1"
	by=$(run "$work/$1" "$1" | tr '\n' ' ')
	[ -z "$by" ] || {
		echo "Bail out! Without a fault, too, failed: $by"
		exit 1
	}
	"faults_of_$1" >"$work/faults"
	while IFS='|' read -r name edit; do
		number=$((number + 1))
		sed "$edit" "$engine/$1.c" >"$work/$1/$1.c"
		by=
		if cmp -s "$engine/$1.c" "$work/$1/$1.c"; then
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
