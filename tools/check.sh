#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# All the project's tests and checks, or those whose names are given:
#
#   check.sh [NAME]...
#
# Each is a command that fails when something is wrong. Its output goes to
# build/check/NAME.log; where that is TAP or KTAP its test cases are counted one
# by one, otherwise the command counts as one. Ends in `N passed, N failed`.

set -u

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
logs=$top/build/check
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}
passed=0
failed=0
wanted=" $* "

# Lines of test cases; in nested (K)TAP a suite's own line repeats its cases'.
count() {
	awk -v word="$1" '
		{ match($0, /^ */); depth = RLENGTH; line = substr($0, depth + 1) }
		line !~ /^(not )?ok / { next }
		{ if (depth >= last) n[line ~ /^not/ ? "not" : "ok"]++
		  else if (line ~ /^not/ && !n["not"]) n["not"]++
		  last = depth }
		END { print n[word] + 0 }' "$2"
}

is_wanted() {
	case $wanted in
	"  "|*" $1 "*) ;;
	*) return 1 ;;
	esac
}

check() {
	is_wanted "$1" || return 0
	name=$1
	shift
	printf '# %s ...\n' "$name"
	start=$(date +%s)
	"$@" >"$logs/$name.log" 2>&1 </dev/null
	judge "$name" $? $(($(date +%s) - start))
}

# Like check, but what follows is done meanwhile, up to the await of its name: a
# guest keeps one processor busy.
beside() {
	is_wanted "$1" || return 0
	printf '# %s, beside what follows ...\n' "$1"
	rm -f "$logs/$1.status"
	{
		name=$1
		shift
		start=$(date +%s)
		"$@" >"$logs/$name.log" 2>&1 </dev/null
		echo $? $(($(date +%s) - start)) >"$logs/$name.status"
	} &
}

await() {
	is_wanted "$1" || return 0
	wait
	read -r status seconds <"$logs/$1.status" || { status=1 seconds=0; }
	judge "$1" "$status" "$seconds"
}

# judge NAME STATUS SECONDS
judge() {
	name=$1 status=$2 seconds=$3
	log=$logs/$name.log
	good=$(count ok "$log")
	bad=$(count not "$log")
	if [ $((good + bad)) -eq 0 ] && [ "$status" -eq 0 ]; then
		good=1
	elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1
	fi
	passed=$((passed + good))
	failed=$((failed + bad))
	if [ "$bad" -eq 0 ]; then
		printf 'ok - %s: %s passed (%s s)\n' "$name" "$good" "$seconds"
	else
		printf 'not ok - %s: %s passed, %s failed (%s s), the end of %s:\n' \
			"$name" "$good" "$bad" "$seconds" "build/check/$name.log"
		grep -n '^ *not ok ' "$log" | head -n 20
		tail -n 25 "$log" | sed 's/^/#   /'
	fi
}

# ---- the checks ----

# Sources of ours, by ending.
sources() { git ls-files -co --exclude-standard -- "$@"; }

style_c() {
	script=$(find "$cache" -maxdepth 1 -name 'linux-source-6.12-*' -type d |
		sort -V | tail -n 1)/scripts/checkpatch.pl
	# shellcheck disable=SC2046 # file names of ours hold no spaces
	perl "$script" --strict --no-summary --quiet -f \
		$(sources '*.c' '*.h' | grep -v '_vectors\.h$') >"$logs/checkpatch" 2>&1
	rm -f .checkpatch-camelcase.*
	! grep -E -A 4 '^(ERROR|WARNING|CHECK)' "$logs/checkpatch"
}

style_sh() {
	# shellcheck disable=SC2046
	shellcheck -x -P SCRIPTDIR $(sources '*.sh') .ci/run tools/tc/completion/tc-timely \
		tools/timelyctl/completion/timelyctl
}

style_python() {
	# shellcheck disable=SC2046
	grep -lE '^#!/usr/bin/python3' $(sources) | while read -r file; do
		/usr/bin/python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' \
			"$file" || exit 1
	done
}

spelling() {
	# names of modinfo's, of man's bullet, of a file in sysfs, of an incoming interface
	# shellcheck disable=SC2046
	codespell -q 3 -L parm,bu,inflight,iif,ect,clos $(sources '*.c' '*.h' '*.sh' '*.py' '*.md' '*.7' '*.8' '*.toml' '*.json' Makefile Kbuild)
}

spdx() {
	missing=
	for file in $(sources '*.c' '*.h' '*.sh' '*.py' '*.7' '*.8' '*.mk' Makefile Kbuild '*/Kbuild' '*/Makefile' tools/tc/completion tools/timelyctl/completion); do
		head -n 4 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0' ||
			missing="$missing $file"
	done
	[ -z "$missing" ] || { echo "no SPDX line:$missing"; return 1; }
}

kernel_doc() {
	script=$(find "$cache" -maxdepth 1 -name 'linux-source-6.12-*' -type d |
		sort -V | tail -n 1)/scripts/kernel-doc
	# shellcheck disable=SC2046
	perl "$script" -none -Wall $(sources 'net/*.c' 'include/*.h') >"$logs/kernel-doc" 2>&1 &&
		! grep -E 'warning|error' "$logs/kernel-doc"
}

# The plain convention: make -C KERNEL M=DIR modules.
build_um() {
	kernel=$(tools/lab/kernel/build.sh base) || return 1
	dir=$(mktemp -d) || return 1
	cp -r Kbuild include net compat-include kunit "$dir"
	make -C "$kernel" ARCH=um M="$dir" W=1 modules >"$logs/build-um.make" 2>&1
	status=$?
	find "$dir" -name '*.ko'
	rm -rf "$dir"
	[ $status -eq 0 ] && ! grep -E 'warning|error' "$logs/build-um.make"
}

# make install, into a directory.
install_modules() {
	headers=$(tools/kernels/headers.sh 6.12) || return 1
	dir=$(mktemp -d) || return 1
	mkdir "$dir/tools"
	cp -r Makefile Kbuild include net compat-include man "$dir"
	cp -r tools/tc tools/timelyctl "$dir/tools"
	make -C "$dir" KDIR="$headers" INSTALL_MOD_PATH="$dir/root" install &&
		grep '/tcp_timely.ko.*: .*/timely.ko' "$dir"/root/lib/modules/*/modules.dep &&
		grep '/sch_timely.ko.*: .*/timely.ko' "$dir"/root/lib/modules/*/modules.dep &&
		grep '/timely_acker.ko.*: .*/timely.ko' "$dir"/root/lib/modules/*/modules.dep &&
		grep '/timely_acker.ko.*: .*/timely.ko' "$dir"/root/lib/modules/*/modules.dep &&
		[ -e "$dir/root/usr/local/share/man/man7/tcp_timely.7" ] &&
		[ -e "$dir/root/usr/local/share/man/man7/timely-onramp.7" ] &&
		[ -e "$dir/root/usr/local/share/man/man8/tc-timely.8" ] &&
		[ -e "$dir/root/usr/local/share/man/man8/timelyctl.8" ] &&
		[ -x "$dir/root/usr/local/sbin/timelyctl" ] &&
		[ "$(find "$dir/root/usr/lib" -path '*/tc/q_timely.so')" ]
	status=$?
	rm -rf "$dir"
	return $status
}

# What the documents promise of the default, on the testbed.
figures() {
	rm -rf "$logs/figures"
	tools/lab/lab run table1 --cc timely --out "$logs/figures/table1" &&
		tools/lab/lab verify "$logs/figures/table1" || return 1
	tools/lab/lab run qdisc --cc timely,timely-2mtu --out "$logs/figures/qdisc" &&
		tools/lab/lab verify "$logs/figures/qdisc" || return 1
	tools/lab/lab run alone --cc timely,own-pacing,sch_timely --seeds 1 \
		--out "$logs/figures/alone" && tools/lab/lab verify "$logs/figures/alone"
}

# Paths that lose, hold back, fall silent, change.
hostile() {
	rm -rf "$logs/hostile"
	for cell in loss:timely-1,bbr-1 reverse:first limited:app pauses:timely-100 \
		ack-path:timely-lost-10,timely-held-50,timely-told-held-50,timely-fq-held-50 \
		route:timely-200 blackout:timely; do
		out=$logs/hostile/${cell%%:*}
		tools/lab/lab run "${cell%%:*}" --cc "${cell#*:}" --seeds 1 --out "$out" &&
			tools/lab/lab verify "$out" || return 1
	done
}

mkdir -p "$logs"
tools/setup.sh || exit 1

check style-c style_c
check style-sh style_sh
check style-python style_python
check spelling spelling
check spdx spdx
check kernel-base tools/lab/kernel/build.sh base
check kernel-debug tools/lab/kernel/build.sh debug
check kernel-doc kernel_doc
check build-um build_um
for series in 6.1 6.12 7.3; do
	check "build-$series" tools/kernels/build-module.sh --werror --sparse "$series" "$top" W=1
	check "hwnic-$series" tools/kernels/build-module.sh --werror --sparse "$series" selftests/hwnic \
		W=1 compat="$top/compat-include"
	check "vm-$series" tools/vm/smoke.sh "$series"
done
check install install_modules
check vectors kunit/reference.py --check
check fuzz make -s -C kunit/user check
check tc tools/tc/test.sh
check timelyctl tools/timelyctl/test/test.sh
check documents tools/docs/make.sh --check
check kunit kunit/run.sh base
check kunit-debug kunit/run.sh debug
nic="hwnic hw_rtt hw_paths hw_line hw_unload timelyctl"
# shellcheck disable=SC2086 # a list of tests
{
	beside selftests selftests/run-in-guest.sh base --without $nic
	check selftests-nic selftests/run-in-guest.sh base $nic
	await selftests
	# The tests with NICs and of On-Ramp's throughput take most of an hour under the
	# checkers: by hand.
	beside selftests-debug selftests/run-in-guest.sh debug --without $nic onramp
	check tdc selftests/tc-testing/run.sh base
	check tdc-debug selftests/tc-testing/run.sh debug
	check figures figures
	check hostile hostile
	await selftests-debug
}

printf '%s passed, %s failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
