#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The project's tests and checks:
#
#	check.sh fast|check|full [JOB]...
#
# A tier includes the tiers before it. `fast` is for every edit, `check` is what CI and
# the README run, `full` is for the end of an issue. With jobs named only those run,
# whatever their tier.
#
# A job is a command that fails when something is wrong. As many jobs run at a time as
# there are processors ($JOBS). A job's output goes to build/check/JOB.log; where it is TAP
# or KTAP, test cases are counted one by one, otherwise the job counts as one. Each result
# shows how many seconds it took. The last line is `N passed, N failed`.

set -u

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
logs=$top/build/check
cache=${TIMELY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/timely}
JOBS=${JOBS:-$(nproc)}

# Tier and job, in the order in which they start. The first group prepares what the
# others share and uses all processors; of the rest the longest come first.
preparations="
	fast	kernel-base
	check	kernel-debug
	check	headers
	fast	modules
"
jobs="
	full	selftests-debug-onramp
	full	selftests-debug-nic
	full	selftests-debug-qdisc
	full	selftests-debug-tcp
	full	selftests-debug-tenant
	full	selftests-debug-faults
	full	selftests-drains
	check	selftests-debug-core
	check	selftests-nic
	check	selftests-tcp
	check	selftests-onramp
	check	selftests-qdisc
	check	selftests-tenant
	full	tdc-debug
	check	tdc
	full	figures-all
	check	figures
	full	hostile-all
	check	hostile
	check	vm-7.3
	check	vm-6.1
	check	vm-6.12
	check	build-7.3
	check	build-6.12
	check	build-6.1
	check	kunit-debug
	check	install
	fast	kunit
	fast	style-c
	fast	fuzz
	fast	library
	full	fuzz-long
	full	engines-i386
	full	engines-s390x
	full	build-i386
	full	build-s390x
	full	build-rt
	full	soak-cfi
	full	soak-kcsan
	full	soak-rt
	full	mutate
	check	noipv6
	fast	smoke
	fast	build-um
	fast	kernel-doc
	fast	timelyctl
	fast	tc
	fast	documents
	fast	vectors
	fast	style-sh
	fast	style-python
	fast	spelling
	fast	spdx
"

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

# ---- what the jobs do ----

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

# run_lab SCENARIO [OPTION]...: run cells of a scenario, one guest at a time, and hold
# them against what the scenario expects.
run_lab() {
	scenario=$1
	shift
	out=$logs/lab/$job/$scenario
	rm -rf "$out"
	tools/lab/lab run "$scenario" --jobs 1 "$@" --out "$out" && tools/lab/lab verify "$out"
}

# What the documents promise of the default. One seed shows a mistake; the spread over all
# seeds is for the end of an issue.
figures() {
	run_lab table1 --cc timely "$@" &&
		run_lab qdisc --cc timely,timely-2mtu "$@" &&
		run_lab alone --cc timely,own-pacing,sch_timely --seeds 1
}

# Paths that lose, hold back, fall silent, change.
hostile() {
	for cell in loss:timely-1,bbr-1 limited:app ack-path:timely-held-50 \
		blackout:timely,timely-linear "$@"; do
		run_lab "${cell%%:*}" --cc "${cell#*:}" --seeds 1 || return 1
	done
}

# Selftests in a guest. Guests that run beside each other have a share of the processors.
selftests() { selftests/run-in-guest.sh "$@"; }

# Kernel modules for one of Debian's kernels. What sparse says does not depend on the
# kernel: the newest one's headers are the strictest.
build_debian() {
	sparse=
	[ "$1" != 7.3 ] || sparse=--sparse
	tools/kernels/build-module.sh --werror $sparse "$1" "$top" W=1 &&
		tools/kernels/build-module.sh --werror $sparse "$1" selftests/hwnic W=1 \
			compat="$top/compat-include"
}

# Kernel modules for another architecture, or for a kernel of ours in QEMU. A 32-bit kernel
# exports no helpers for 64-bit division: what calls one compiles, but does not load.
build_cross() {
	kernel=$(tools/vm/kernel.sh "$1") || return 1
	# shellcheck disable=SC2046 # arguments of make
	built=$(tools/lab/modules.sh "$kernel" $(cat "$kernel/.timely-make") KBUILD_MODPOST_WARN=1) || return 1
	find "$built" -name '*.ko' -exec nm {} + >"$logs/$job.symbols" || return 1
	! grep -E 'U __(u?div|u?mod|u?divmod)[sd]i' "$logs/$job.symbols"
}

headers() {
	for series in 6.1 6.12 7.3; do
		tools/kernels/image.sh "$series" || return 1
	done
	tools/kernels/sparse.sh
}

modules() {
	tools/lab/modules.sh base && selftests/hwnic/build.sh base || return 1
	[ "$tier" = fast ] || { tools/lab/modules.sh debug && selftests/hwnic/build.sh debug; }
}

# Do the engines need nothing but their own directory?
library() {
	rm -rf "$logs/library"
	cp -r net/timely/engine "$logs/library" &&
		make -s -C "$logs/library" CFLAGS='-O2 -Wall -Wextra -Wno-sign-compare -Wno-unused-parameter -Werror'
}

run_job() {
	job=$1
	case $job in
	kernel-base)		tools/lab/kernel/build.sh base ;;
	kernel-debug)		tools/lab/kernel/build.sh debug ;;
	headers)		headers ;;
	modules)		modules ;;
	style-c)		style_c ;;
	style-sh)		style_sh ;;
	style-python)		style_python ;;
	spelling)		spelling ;;
	spdx)			spdx ;;
	kernel-doc)		kernel_doc ;;
	documents)		tools/docs/make.sh --check ;;
	build-um)		build_um ;;
	build-i386|build-s390x|build-rt)
				build_cross "${job#build-}" ;;
	soak-*)			tools/vm/soak.sh .2 "" "${job#soak-}" ;;
	engines-i386)		tools/setup.sh gcc-i686-linux-gnu libc6-dev-i386-cross qemu-user-static &&
					make -s -C kunit/user check-i386 ;;
	engines-s390x)		tools/setup.sh gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static &&
					make -s -C kunit/user check-s390x ;;
	build-*)		build_debian "${job#build-}" ;;
	vm-*)			tools/vm/smoke.sh "${job#vm-}" ;;
	install)		install_modules ;;
	vectors)		kunit/reference.py --check ;;
	library)		library ;;
	fuzz)			make -s -C kunit/user check ;;
	fuzz-long)		make -s -C kunit/user check SETS=400000 ROUNDS=50000 SEED=7 \
					O="$top/build/kunit-user-long" ;;
	mutate)			make -s -C kunit/user mutate ;;
	tc)			tools/tc/test.sh ;;
	timelyctl)		tools/timelyctl/test/test.sh ;;
	kunit)			kunit/run.sh base ;;
	kunit-debug)		kunit/run.sh debug ;;
	smoke)			selftests base load transfer qdisc_tcp onramp_ctl ;;
	noipv6)			TIMELY_KERNEL_ARGUMENTS=ipv6.disable=1 selftests base onramp_noipv6 ;;
	selftests-debug-core)	selftests debug @core ;;
	selftests-debug-faults)	selftests debug alloc_faults ;;
	selftests-drains)	selftests base drains ;;
	selftests-debug-*)	selftests debug "@${job#selftests-debug-}" ;;
	selftests-*)		selftests base "@${job#selftests-}" ;;
	tdc)			selftests/tc-testing/run.sh base ;;
	tdc-debug)		selftests/tc-testing/run.sh debug ;;
	figures)		figures --seeds 1 ;;
	figures-all)		figures ;;
	hostile)		hostile ;;
	hostile-all)		hostile reverse:first pauses:timely-100 route:timely-200 \
					ack-path:timely-lost-10,timely-told-held-50,timely-fq-held-50 ;;
	*)			echo "no job '$job'"; return 1 ;;
	esac
}

# ---- running them ----

# Run a job, judge its output, and leave "PASSED FAILED SECONDS" in JOB.result.
judged() {
	name=$1
	log=$logs/$name.log
	start=$(date +%s)
	run_job "$name" >"$log" 2>&1 </dev/null
	status=$?
	seconds=$(($(date +%s) - start))
	good=$(count ok "$log")
	bad=$(count not "$log")
	if [ $((good + bad)) -eq 0 ] && [ "$status" -eq 0 ]; then
		good=1
	elif [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1
	fi
	echo "$good $bad $seconds" >"$logs/$name.result"
	if [ "$bad" -eq 0 ]; then
		printf 'ok - %s: %s passed (%s s)\n' "$name" "$good" "$seconds"
		return
	fi
	# In one piece, as other jobs print meanwhile.
	end=$(grep -n '^ *not ok ' "$log" | head -n 20; tail -n 25 "$log" | sed 's/^/#   /')
	printf 'not ok - %s: %s passed, %s failed (%s s), the end of %s:\n%s\n' "$name" "$good" \
		"$bad" "$seconds" "build/check/$name.log" "$end"
}

# Jobs of a list that are wanted, one a line.
wanted() {
	echo "$1" | while read -r job_tier job; do
		[ "$job" ] || continue
		if [ "$named" ]; then
			case " $named " in *" $job "*) echo "$job" ;; esac
		else
			case $tier:$job_tier in
			full:*|check:fast|check:check|fast:fast) echo "$job" ;;
			esac
		fi
	done
}

usage() {
	echo "usage: check.sh fast|check|full [JOB]..." >&2
	exit 2
}

if [ "${1-}" = --job ]; then
	tier=$2
	judged "$3"
	exit 0
fi

tier=${1:-check}
case $tier in
fast|check|full) ;;
*)	usage ;;
esac
[ $# -eq 0 ] || shift
named="$*"
for job; do
	printf '%s %s' "$preparations" "$jobs" | grep -qw -- "$job" || {
		echo "check.sh: no job '$job'; the jobs are:" >&2
		echo "$preparations$jobs" | awk 'NF == 2 { print "  " $2 " (" $1 ")" }' >&2
		exit 2
	}
done

mkdir -p "$logs"
rm -f "$logs"/*.result
tools/setup.sh || exit 1
began=$(date +%s)
wanted "$preparations" | xargs -r -n 1 "$top/tools/check.sh" --job "$tier"
wanted "$jobs" | xargs -r -n 1 -P "$JOBS" "$top/tools/check.sh" --job "$tier"

# A job that was cut short has left no result, and has failed.
{ wanted "$preparations"; wanted "$jobs"; } | while read -r job; do
	[ -s "$logs/$job.result" ] || { echo "not ok - $job: cut short" >&2; echo 0 1 0 >"$logs/$job.result"; }
done
printf '%s s in all, with %s jobs at a time\n' $(($(date +%s) - began)) "$JOBS"
cat "$logs"/*.result 2>/dev/null | awk '
	{ passed += $1; failed += $2 }
	END {
		printf "%d passed, %d failed\n", passed, failed
		exit failed > 0 || passed == 0
	}'
