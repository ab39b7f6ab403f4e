#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Put one fault at a time into a copy of rate.c and see whether the tests
# notice: the reference's vectors, the cases written by hand, the random ones.
#
#   mutate.sh [ENGINE-DIRECTORY]
#
# Prints TAP. A fault that no longer applies to the source fails too: it has to
# follow the source.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
engine=$(cd "${1:-$here/../../net/timely}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

faults() {
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

# run DIRECTORY: which kinds of tests fail; "built" if it does not build.
run() {
	make -s -C "$here" O="$1/out" ENGINE="$1" SANITIZE= "$1/out/rate_fuzz" >"$1/log" 2>&1 || {
		echo built
		return
	}
	timeout 120 "$1/out/rate_fuzz" 500 >"$1/log" 2>&1 || :
	for kind in 'vectors:follows_the_reference' 'hand:timely_rate: [a-z]*__[^:]*$' 'random:random:'; do
		! grep -q "^not ok .*${kind#*:}" "$1/log" || echo "${kind%%:*}"
	done
}

cp "$engine/rate.c" "$engine/params.c" "$work"
mkdir "$work/mutant"
cp "$engine/params.c" "$work/mutant"
faults >"$work/faults"
echo "TAP version 13"
cp "$work/rate.c" "$work/mutant"
by=$(run "$work/mutant" | tr '\n' ' ')
[ -z "$by" ] || {
	echo "Bail out! Without a fault, too, failed: $by"
	exit 1
}
number=0
missed=0
while IFS='|' read -r name edit; do
	number=$((number + 1))
	sed "$edit" "$work/rate.c" >"$work/mutant/rate.c"
	by=
	if cmp -s "$work/rate.c" "$work/mutant/rate.c"; then
		why="does not apply"
	else
		by=$(run "$work/mutant" | tr '\n' ' ')
		why="noticed by ${by:-nothing}"
	fi
	case $by in
	''|*built*)	verdict="not ok"; missed=$((missed + 1)) ;;
	*)		verdict=ok ;;
	esac
	echo "$verdict $number - $name # $why"
done <"$work/faults"
echo "1..$number"
[ "$missed" -eq 0 ]
