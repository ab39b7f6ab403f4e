#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Loading of tcp_timely: the module's files, and which parameter values are accepted or refused.
# No hosts, no traffic.

. "$(dirname "$0")/lib.sh"

need_tools insmod rmmod modinfo dmesg awk
own_parameters=/sys/module/tcp_timely/parameters

# "NAME MIN MAX" of every parameter with a range, from modinfo
modinfo "$modules/tcp_timely.ko" >"$work/modinfo"
sed -n 's/^par.: *\([a-z0-9_]*\):.* \[\([0-9]*\) to \([0-9]*\) .*\]$/\1 \2 \3/p' \
	"$work/modinfo" >"$work/ranges"
# names of the path-dependent parameters, which may be "auto"
sed -n 's/^par.: *\([a-z0-9_]*\):.* \[[0-9]* to [0-9]* .*, or auto\]$/\1/p' \
	"$work/modinfo" >"$work/autos"
presets=$(sed -n 's/^par.: *preset:.*: \(.*\) (charp)$/\1/p' "$work/modinfo")

is_not_there() {
	! is_loaded tcp_timely || fail "tcp_timely is loaded after: $*"
	! available timely || fail "timely is registered after: $*"
}

# refused_at_load NAME=VALUE MESSAGE: loading with this parameter must fail. The message is looked
# for later, by messages_are_there.
refused_at_load() {
	refused insmod "$modules/tcp_timely.ko" "$1"
	is_not_there "$1"
	echo "$2" >>"$work/messages"
}

messages_are_there() {
	said=$(klog)
	while IFS= read -r message; do
		case $said in
		*"$message"*) ;;
		*) fail "the kernel's log does not have: $message" ;;
		esac
	done <"$work/messages"
}

begin_refusals() {
	: >"$work/messages"
	is_loaded timely || must insmod "$modules/timely.ko"
}

shows_up() {
	! available timely || fail "timely is available before it is loaded"
	load_timely
	available timely || fail "timely is not among the available congestion controls"
	for module in timely tcp_timely; do
		is_loaded $module || fail "$module is not in /sys/module"
	done
	while read -r name min max; do
		read -r seen <"$own_parameters/$name" || fail "no parameter $name in sysfs"
		if [ "$seen" = auto ]; then
			grep -q "^$name$" "$work/autos" || fail "$name is auto, but may not be"
			continue
		fi
		expect seen -ge "$min" "$name"
		expect seen -le "$max" "$name"
	done <"$work/ranges"
	for entry in "$own_parameters"/*; do
		name=${entry##*/}
		case $name in
		preset|test_*) continue ;;
		esac
		grep -q "^$name " "$work/ranges" || fail "parameter $name has no range in modinfo"
	done
	writable=$(find "$own_parameters" -type f -perm /222 ! -name 'test_*')
	[ -z "$writable" ] || fail "writable, but read only at load time: $writable"
	[ "$(grep -c . "$work/ranges")" -ge 20 ] || fail "not even 20 parameters in modinfo"
	unload_timely
}

# Both ends of every range are accepted, and the parameter has the given value.
takes_both_ends() {
	must insmod "$modules/timely.ko"
	for end in 2 3; do
		# All minima together, then all maxima: min_rate_kbps must not exceed max_rate_kbps.
		words=$(awk -v end=$end '{ print $1 "=" $end }' "$work/ranges")
		must insmod "$modules/tcp_timely.ko" $words
		for word in $words; do
			read -r seen <"$own_parameters/${word%%=*}"
			expect seen -eq "${word#*=}" "${word%%=*}"
		done
		must rmmod tcp_timely
	done
}

# "auto" is accepted for the parameters for which modinfo says so, and for no others.
takes_auto() {
	begin_refusals
	while read -r name min max; do
		if grep -q "^$name$" "$work/autos"; then
			must insmod "$modules/tcp_timely.ko" "$name=auto"
			read -r seen <"$own_parameters/$name"
			[ "$seen" = auto ] || fail "$name is $seen, not auto"
			must rmmod tcp_timely
		else
			refused_at_load "$name=auto" "$name=auto refused: allowed are $min to $max"
		fi
		refused_at_load "$name=4294967295" "$name=4294967295 refused: allowed are $min to $max"
	done <"$work/ranges"
	[ "$(grep -c . "$work/autos")" -ge 5 ] || fail "not even 5 parameters may be auto"
	messages_are_there
}

refuses_below_the_minimum() {
	begin_refusals
	while read -r name min max; do
		refused_at_load "$name=$((min - 1))" \
			"$name=$((min - 1)) refused: allowed are $min to $max"
	done <"$work/ranges"
	messages_are_there
}

refuses_above_the_maximum() {
	begin_refusals
	while read -r name min max; do
		refused_at_load "$name=$((max + 1))" \
			"$name=$((max + 1)) refused: allowed are $min to $max"
	done <"$work/ranges"
	messages_are_there
}

refuses_values_that_are_no_numbers() {
	begin_refusals
	while read -r name min max; do
		refused_at_load "$name=12x" "$name=12x refused: allowed are $min to $max"
	done <"$work/ranges"
	refused_at_load min_rtt_ns= "min_rtt_ns= refused"
	refused_at_load min_rtt_ns=4294987296 "min_rtt_ns=4294987296 refused"
	refused_at_load min_rtt_ns=20us "min_rtt_ns=20us refused"
	refused insmod "$modules/tcp_timely.ko" min_rtt_ns
	is_not_there "min_rtt_ns without a value"
	messages_are_there
}

refuses_contradictions() {
	begin_refusals
	refused insmod "$modules/tcp_timely.ko" t_low_ns=600000 t_high_ns=500000
	is_not_there "t_low_ns above t_high_ns"
	echo "t_low_ns=600000 refused: it must not be above t_high_ns=500000" >>"$work/messages"
	refused insmod "$modules/tcp_timely.ko" min_rate_kbps=2000 max_rate_kbps=1000
	is_not_there "min_rate_kbps above max_rate_kbps"
	echo "min_rate_kbps=2000 refused: it must not be above max_rate_kbps=1000" >>"$work/messages"
	messages_are_there
}

refuses_unknown_preset() {
	begin_refusals
	[ -n "$presets" ] || fail "modinfo does not name the presets"
	for preset in nonsense "" linux2 LINUX; do
		refused_at_load "preset=$preset" "preset=$preset refused: allowed are $presets"
	done
	messages_are_there
}

# Every preset loads, no two are equal, and a given parameter overrides the preset's value.
loads_every_preset() {
	begin_refusals
	seen_sets=
	for preset in $(echo "$presets" | tr -d ,); do
		must insmod "$modules/tcp_timely.ko" "preset=$preset" delta_kbps=777
		read -r seen <"$own_parameters/preset"
		[ "$seen" = "$preset" ] || fail "preset is $seen, expected $preset"
		read -r seen <"$own_parameters/delta_kbps"
		expect seen -eq 777
		set_of_it=
		for name in alpha_ppm beta_ppm min_rtt_ns t_high_ns hai_count rule hai_below_t_low; do
			read -r seen <"$own_parameters/$name"
			set_of_it=$set_of_it:$seen
		done
		case $seen_sets in
		*" $set_of_it "*) fail "preset $preset equals another preset: $set_of_it" ;;
		esac
		seen_sets="$seen_sets $set_of_it "
		must rmmod tcp_timely
	done
	must insmod "$modules/tcp_timely.ko"
	read -r seen <"$own_parameters/preset"
	[ "$seen" = "${presets%%,*}" ] || fail "the default is $seen, not the first: $presets"
	must rmmod tcp_timely
}

refuses_without_module_timely() {
	(unload_timely)
	refused insmod "$modules/tcp_timely.ko"
	is_not_there "loading without timely"
}

run_cases shows_up takes_both_ends takes_auto refuses_below_the_minimum refuses_above_the_maximum \
	refuses_values_that_are_no_numbers refuses_contradictions refuses_unknown_preset \
	loads_every_preset refuses_without_module_timely
