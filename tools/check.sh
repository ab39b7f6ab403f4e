#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Run the project's tests and checks:
#
#	check.sh fast|check|full [JOB]...
#
# These are tiers; each includes the tiers before it. `fast` is for every edit, `check` is
# for every change and for CI, `full` is for a release. If jobs are named, only those run,
# whatever their tier; an unknown name prints all jobs.
#
# A job is a command that fails if something is wrong. $JOBS jobs run at a time (default:
# the number of processors). The output of a job goes to build/check/JOB.log. If it is TAP or
# KTAP, each test case counts, otherwise the job counts as one. Each result shows the
# duration in seconds. The last line is `N passed, N failed`.

set -u

top=$(cd "$(dirname "$0")/.." && pwd)
cd "$top" || exit 1
logs=$top/build/check
JOBS=${JOBS:-$(nproc)}

# Tiers and jobs, in the order in which they start. Jobs of the tier quick belong to `fast` only,
# because other jobs of `check` include their tests. Jobs of the tier instead run only if they are named, or
# if a longer job of `check` is skipped. Preparations build kernels and modules for other jobs; each uses all
# processors. Of the other jobs the longest come first, so that all processors end at the same time.
preparations="
	fast	kernel-base
	check	kernel-debug
	check	kernel-selftests
	check	headers
	fast	modules
"
jobs="
	check	walk-bookworm			1900	2
	full	selftests-debug-onramp
	full	selftests-debug-nic
	full	selftests-debug-qdisc
	full	selftests-debug-tcp
	full	selftests-debug-tenant
	full	selftests-debug-ndp
	full	selftests-debug-faults
	full	selftests-probe-rtt
	full	selftests-debug-clock
	full	selftests-debug-long
	full	tdc-debug
	full	export-7.3
	full	export-6.12
	full	upstream-mptcp
	full	upstream-tls
	full	upstream-packetdrill
	full	figures-all
	full	hostile-rest
	check	selftests-tcp
	check	selftests-debug-core
	check	selftests-nic
	check	selftests-onramp
	check	selftests-qdisc
	fast	style-c
	check	figures
	check	selftests-ndp
	check	tdc
	fast	timelyctl
	check	install
	fast	fuzz
	check	build-7.3
	check	build-6.12
	check	selftests-tenant
	check	build-6.1
	full	fuzz-long
	full	engines-i386
	full	engines-s390x
	full	build-i386
	full	build-s390x
	full	build-rt
	full	demo-page
	full	soak-cfi
	full	soak-kcsan
	full	soak-rt
	full	walk-trixie
	full	mutate
	quick	smoke
	quick	build-um
	instead	walk-short-bookworm
	instead	walk-short-trixie
	check	kunit-debug
	fast	style-sh
	check	noipv6
	fast	style-python
	fast	clockd
	fast	tc
	fast	kunit
	fast	library
	check	examples
	check	manual-nft
	check	upstream-tdc
	check	upstream-tls-short
	check	upstream-mptcp-sockopt
	fast	cycles
	fast	vectors
	check	ndp-sim
	fast	documents
	fast	lab
	fast	spelling
	fast	spdx
	fast	kernel-doc
"
# Jobs of `check` that run last. CI ends a run after 90 minutes, and some machines are several times slower
# than others. Therefore these jobs, and walk-bookworm, have the seconds that they take here beside another
# job. In `check` they start only if they end within $END_S seconds although they take four times as long, or
# so many times as the last column says; otherwise they are reported as skipped.
late="
	check	selftests-debug-rest		466
	check	selftests-clock			335
	check	packages			420
	check	vm-7.3				235
	check	selftests-long			230
	check	vm-6.1				219
	check	vm-6.12				163
	check	export				260
	check	lab-hosts			133
	check	upstream-packetdrill-ipv4	131
	check	hostile				88
	check	monitoring			41
"
END_S=${END_S:-5000}

# Count the lines "ok" or "not ok" of test cases. In nested (K)TAP the line of a suite is not
# counted, because it repeats the result of its cases.
count() {
	awk -v word="$1" '
		{ match($0, /^ */); depth = RLENGTH; line = substr($0, depth + 1) }
		line !~ /^(not )?ok / { next }
		{ if (depth >= last) n[line ~ /^not/ ? "not" : "ok"]++
		  else if (line ~ /^not/ && !n["not"]) n["not"]++
		  last = depth }
		END { print n[word] + 0 }' "$2"
}

# ---- the commands of jobs ----

# sources PATTERN...: print the project's files that match, without ignored files.
sources() { git ls-files -co --exclude-standard -- "$@"; }

# Check C with checkpatch.pl of the kernel's source. Test vectors are generated, and left out.
style_c() {
	source=$(tools/lab/uml/build.sh source) || return 1
	# shellcheck disable=SC2046 # the project's file names have no spaces
	perl "$source/scripts/checkpatch.pl" --strict --no-summary --quiet -f \
		$(sources '*.c' '*.h' | grep -v '_vectors\.h$')
	status=$?
	rm -f .checkpatch-camelcase.*
	return $status
}

style_sh() {
	# shellcheck disable=SC2046
	shellcheck -x -P SCRIPTDIR $(sources '*.sh') .ci/run tools/ndp/ndp packaging/timely-switch packaging/kernel-install \
		packaging/debian/*_postinst packaging/debian/*.postinst packaging/debian/*.prerm packaging/debian/*.postrm \
		packaging/completion/timely-switch tools/tc/completion/tc-timely \
		tools/timelyctl/completion/timelyctl
}

# Check that all Python files can be parsed, and the types of the testbed with mypy.
style_python() {
	# shellcheck disable=SC2046
	{ sources '*.py' && grep -lE '^#!/usr/bin/(env )?python3' $(sources); } | sort -u |
	while read -r file; do
		/usr/bin/python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' \
			"$file" || exit 1
	done &&
		mypy --strict --cache-dir /dev/null tools/lab/timelylab tools/lab/tests &&
		MYPYPATH=tools/lab mypy --strict --cache-dir /dev/null tools/docs/figures.py tools/docs/misses.py tools/docs/test_*.py
}

spelling() {
	# These words look misspelt, but are right: of modinfo (parm), man (bu), sysfs (inflight), tc (iif),
	# ECN (ect), networks (clos), TCP Fast Open (fo).
	# shellcheck disable=SC2046
	codespell -q 3 -L parm,bu,inflight,iif,ect,clos,fo $(sources '*.c' '*.h' '*.sh' '*.py' '*.md' '*.1' '*.7' '*.8' '*.toml' '*.json' Makefile Kbuild)
}

spdx() {
	missing=
	for file in $(sources '*.c' '*.h' '*.sh' '*.py' '*.1' '*.7' '*.8' '*.mk' Makefile Kbuild '*/Kbuild' '*/Makefile' packaging/timely-switch packaging/dkms.conf packaging/timely.spec packaging/rpmlint.toml packaging/debian/rules 'packaging/*.service' packaging/completion packaging/kernel-install 'packaging/debian/*_postinst' 'packaging/debian/*.p*' tools/tc/completion tools/timelyctl/completion); do
		head -n 4 "$file" | grep -q 'SPDX-License-Identifier: GPL-2.0' ||
			missing="$missing $file"
	done
	[ -z "$missing" ] || { echo "no SPDX line in the first four lines of:$missing"; return 1; }
}

kernel_doc() {
	source=$(tools/lab/uml/build.sh source) || return 1
	# shellcheck disable=SC2046
	perl "$source/scripts/kernel-doc" -none -Wall $(sources 'net/*.[ch]' 'include/*.h') >"$logs/kernel-doc" 2>&1 &&
		! grep -E 'warning|error' "$logs/kernel-doc"
}

# Build the modules by kbuild's usual command, make -C KERNEL M=DIR modules, without the project's scripts.
build_um() {
	kernel=$(tools/lab/uml/build.sh base) || return 1
	dir=$(mktemp -d) || return 1
	cp -r Kbuild include net compat-include kunit "$dir"
	make -C "$kernel" ARCH=um M="$dir" W=1 modules >"$logs/build-um.make" 2>&1
	status=$?
	find "$dir" -name '*.ko'
	rm -rf "$dir"
	[ $status -eq 0 ] && ! grep -E 'warning|error' "$logs/build-um.make"
}

# Run make install and make uninstall with temporary directories, and compare the files with those expected. The
# compiler must not warn.
install_modules() {
	kernel=$(tools/lab/uml/build.sh base) || return 1
	dir=$(mktemp -d) || return 1
	mkdir "$dir/tools"
	cp -r Makefile Kbuild include net compat-include kunit man packaging "$dir"
	cp -r tools/tc tools/timelyctl tools/clockd tools/ndp "$dir/tools"
	install_and_uninstall
	status=$?
	rm -rf "$dir"
	return $status
}

# Files of install_and_uninstall: those below $dir/root and $dir/modules, without those of depmod.
installed() {
	(cd "$dir" && find root modules ! -type d ! -name 'modules.*' 2>/dev/null |
		sed 's,/lib/modules/[^/]*/[a-z]*/,/,; s,/usr/lib.*/tc/,/tc/,; s,[.]ko[.].*,.ko,' | sort)
}

install_and_uninstall() {
	set -- make -s -C "$dir" KDIR="$kernel" ARCH=um DESTDIR="$dir/root" INSTALL_MOD_PATH="$dir/modules" \
		PREFIX=/opt/timely
	# Tools that cannot be built: nothing may be installed.
	! "$@" install LDFLAGS=-lno_such_library || return 1
	! "$@" install CC=no_such_compiler >"$dir/log" 2>&1 || return 1
	[ -z "$(installed)" ] && grep 'Missing, .* no_such_compiler' "$dir/log" || return 1
	"$@" W=1 install >"$dir/log" 2>&1 && installed >"$dir/got" && diff "$dir/got" - <<-EOF || return 1
		modules/ndp.ko
		modules/sch_timely.ko
		modules/sch_trim.ko
		modules/tcp_timely.ko
		modules/timely.ko
		modules/timely_acker.ko
		root/opt/timely/bin/ndp
		root/opt/timely/bin/timely-plot
		root/opt/timely/include/timely_clock.h
		root/opt/timely/lib/libtimely-clock.a
		root/opt/timely/lib/timely/ndp_preload.so
		root/opt/timely/sbin/timely-clockd
		root/opt/timely/sbin/timely-switch
		root/opt/timely/sbin/timelyctl
		root/opt/timely/share/bash-completion/completions/ndp
		root/opt/timely/share/bash-completion/completions/tc
		root/opt/timely/share/bash-completion/completions/timely-clockd
		root/opt/timely/share/bash-completion/completions/timely-plot
		root/opt/timely/share/bash-completion/completions/timely-switch
		root/opt/timely/share/bash-completion/completions/timelyctl
		root/opt/timely/share/man/man1/ndp.1
		root/opt/timely/share/man/man1/timely-plot.1
		root/opt/timely/share/man/man7/ndp.7
		root/opt/timely/share/man/man7/tcp_timely.7
		root/opt/timely/share/man/man7/timely-onramp.7
		root/opt/timely/share/man/man8/tc-timely.8
		root/opt/timely/share/man/man8/tc-trim.8
		root/opt/timely/share/man/man8/timely-clockd.8
		root/opt/timely/share/man/man8/timely-switch.8
		root/opt/timely/share/man/man8/timelyctl.8
		root/tc/q_timely.so
		root/tc/q_trim.so
	EOF
	for module in tcp_timely sch_timely timely_acker ndp; do
		grep "/$module.ko.*: .*/timely.ko" "$dir"/modules/lib/modules/*/modules.dep || return 1
	done
	"$@" W=1 KUNIT=1 install-modules >>"$dir/log" 2>&1 && installed | grep modules/timely_kunit.ko &&
		"$@" uninstall && [ -z "$(installed)" ] && [ ! -e "$dir/root/opt/timely" ] &&
		[ -z "$(find "$dir/modules" -type d -name updates)" ] && "$@" install-tools &&
		! "$@" KDIR="$dir/no_kernel" uninstall 2>>"$dir/log" && grep 'No kernel headers in .*no_kernel' "$dir/log" &&
		! installed | grep -q root/ && ! grep -E 'warning|error' "$dir/log"
}

# run_lab SCENARIO [OPTION]...: run cells of a scenario, one guest at a time, and compare
# the figures with the bounds in the scenario's [[expect]] tables.
run_lab() {
	scenario=$1
	shift
	out=$logs/lab/$job/$scenario
	rm -rf "$out"
	tools/lab/lab run "$scenario" --jobs 1 "$@" --out "$out" && tools/lab/lab verify "$out"
}

# figures [OPTION]...: check figures of the default rule and of NDP that the documents quote. `check` runs one
# seed, `full` runs all.
figures() {
	run_lab table1 --cc timely "$@" &&
		run_lab qdisc --cc timely,timely-2mtu "$@" &&
		run_lab alone --cc timely,own-pacing,sch_timely --seeds 1 &&
		run_lab churn-calls --cc timely-0.6 --seeds 2 &&
		run_lab ndp-incast --cc ndp-10000,ndp-100000,ndp-1000000 --seeds 1
}

# hostile SCENARIO:CC...: check figures of these cells: paths with losses, delayed ACKs and blackouts.
hostile() {
	failed=0
	for cell; do
		run_lab "${cell%%:*}" --cc "${cell#*:}" --seeds 1 || failed=1
	done
	return $failed
}

# Run selftests in a guest. Virtual time makes results independent of other guests on the machine.
selftests() { selftests/run-in-guest.sh "$@"; }

# Build the modules for one of Debian's kernels. sparse runs for the newest kernel only: its
# headers are the strictest, and the results for the other kernels are the same.
build_debian() {
	sparse=
	[ "$1" != 7.3 ] || sparse=--sparse
	tools/lab/debian/build-module.sh --werror $sparse "$1" "$top" W=1 &&
		tools/lab/debian/build-module.sh --werror $sparse "$1" drivers/net/hwnic W=1 \
			compat="$top/compat-include"
}

# Build the modules for another architecture or for a kernel of tools/lab/vm. A 32-bit kernel exports no
# helpers for 64-bit division: a module that calls one compiles but cannot be loaded. Warnings are errors:
# an expression of type long may overflow only there.
build_cross() {
	kernel=$(tools/lab/vm/kernel.sh "$1") || return 1
	# shellcheck disable=SC2046 # arguments of make
	built=$(tools/lab/modules.sh "$kernel" $(cat "$kernel/.timely-make") KBUILD_MODPOST_WARN=1 \
		KCFLAGS=-Werror) || return 1
	find "$built" -name '*.ko' -exec nm {} + >"$logs/$job.symbols" || return 1
	! grep -E 'U __(u?div|u?mod|u?divmod)[sd]i' "$logs/$job.symbols"
}

headers() {
	for series in 6.1 6.12 7.3; do
		tools/lab/debian/image.sh "$series" || return 1
	done
	tools/lab/debian/sparse.sh
}

modules() {
	tools/lab/modules.sh base && drivers/net/hwnic/build.sh base || return 1
	[ "$tier" = fast ] || { tools/lab/modules.sh debug && drivers/net/hwnic/build.sh debug; }
}

# Build the engines' library from a copy of their directory alone.
library() {
	rm -rf "$logs/library"
	cp -r net/timely/engine "$logs/library" &&
		make -s -C "$logs/library" CFLAGS='-O2 -Wall -Wextra -Wno-sign-compare -Wno-unused-parameter -Werror'
}

# Run the demonstration with short cells, and look at its page in a browser.
demo_page() {
	rm -rf "$logs/demo"
	tools/setup.sh chromium &&
		tools/lab/demo.sh "$logs/demo" --jobs 1 --seeds 1 --set run.warmup_ms=100 \
			--set run.measure_ms=100 &&
		PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 tools/lab/tests/page_in_browser.py \
			"$logs/demo/index.html"
}

run_job() {
	job=$1
	case $job in
	kernel-base)		tools/lab/uml/build.sh base ;;
	kernel-debug)		tools/lab/uml/build.sh debug ;;
	kernel-selftests)	tools/lab/uml/build.sh selftests ;;
	headers)		headers ;;
	modules)		modules ;;
	style-c)		style_c ;;
	export)			tools/export/check.sh export-check 6.12 builtin modules &&
					tools/export/check.sh export-check-7.3 7.3 ;;
	export-*)		tools/export/check.sh "$job" "${job#export-}" modules \
					kselftest=cap.sh,flows.sh,sysctl.sh,qdisc_pacing.sh,onramp.sh,onramp_ctl.sh,onramp_host.sh,tenant_fuzz.sh,trim.sh \
					tdc kunit each ;;
	style-sh)		style_sh ;;
	style-python)		style_python ;;
	spelling)		spelling ;;
	spdx)			spdx ;;
	kernel-doc)		kernel_doc ;;
	documents)		tools/docs/make.sh --check &&
				PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m unittest discover -s tools/docs ;;
	build-um)		build_um ;;
	build-i386|build-s390x|build-rt)
				build_cross "${job#build-}" ;;
	soak-*)			tools/lab/vm/soak.sh .2 "" "${job#soak-}" ;;
	engines-i386)		tools/setup.sh gcc-i686-linux-gnu libc6-dev-i386-cross qemu-user-static &&
					make -s -C kunit/user check-i386 ;;
	engines-s390x)		tools/setup.sh gcc-s390x-linux-gnu libc6-dev-s390x-cross qemu-user-static &&
					make -s -C kunit/user check-s390x ;;
	build-*)		build_debian "${job#build-}" ;;
	vm-*)			tools/lab/vm/smoke.sh "${job#vm-}" ;;
	install)		install_modules ;;
	walk-short-*)		tools/setup.sh mmdebstrap debhelper dh-dkms && tools/lab/vm/walk.sh --short "${job#walk-short-}" ;;
	walk-bookworm)		tools/setup.sh mmdebstrap debhelper dh-dkms &&
				WALK_END=${walk_end-} tools/lab/vm/walk.sh bookworm ;;
	walk-*)			tools/setup.sh mmdebstrap debhelper dh-dkms && tools/lab/vm/walk.sh "${job#walk-}" ;;
	packages)		tools/setup.sh ccache debhelper dh-dkms lintian rpm rpmlint man-db systemd &&
				packaging/test.sh ;;
	examples)		packaging/examples/test.sh ;;
	monitoring)		packaging/monitoring/test.sh ;;
	ndp-sim)		tools/lab/simulator/ndp run --out "$logs/ndp" seven neighbour >&2 &&
				tools/lab/simulator/ndp verify "$logs/ndp" seven neighbour ;;
	vectors)		kunit/reference.py --check && kunit/reference_ndp.py --check &&
				tools/setup.sh python3-numpy && kunit/reference_clock.py ;;
	lab)			PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m unittest discover -s tools/lab/tests ;;
	lab-hosts)		tools/lab/tests/machines.sh ;;
	demo-page)		demo_page ;;
	library)		library ;;
	cycles)			tools/cycles.py "$(tools/lab/modules.sh base)" ;;
	fuzz)			make -s -C kunit/user check ;;
	fuzz-long)		make -s -C kunit/user check SETS=400000 ROUNDS=50000 SEED=7 \
					O="$top/build/kunit-user-long" ;;
	mutate)			make -s -C kunit/user mutate ;;
	tc)			tools/tc/test.sh ;;
	timelyctl)		tools/timelyctl/test/test.sh ;;
	clockd)			tools/clockd/test/test.sh ;;
	kunit)			kunit/run.sh base ;;
	kunit-debug)		kunit/run.sh debug ;;
	smoke)			selftests base load transfer qdisc_tcp onramp_ctl ;;
	manual-nft)		selftests "$(tools/lab/uml/build.sh selftests)" manual ;;
	noipv6)			TIMELY_KERNEL_ARGUMENTS=ipv6.disable=1 selftests base onramp_noipv6 ;;
	selftests-debug-core)	selftests debug @core ;;
	selftests-debug-rest)	selftests debug sysctl qdisc_churn qdisc_fuzz onramp_unload \
					onramp_raw onramp_host onramp_peers ;;
	selftests-debug-faults)	selftests debug alloc_faults ndp_faults ;;
	selftests-probe-rtt)	selftests base probe_rtt ;;
	selftests-debug-*)	selftests debug "@${job#selftests-debug-}" ;;
	selftests-*)		selftests base "@${job#selftests-}" ;;
	tdc)			selftests/tc-testing/run.sh base ;;
	tdc-debug)		selftests/tc-testing/run.sh debug ;;
	upstream-packetdrill-ipv4)
				selftests/upstream/run.sh packetdrill -i ipv4 ;;
	upstream-tls-short)	selftests/upstream/run.sh tls -T mutliproc_even -T mutliproc_readers \
					-T mutliproc_writers -T mutliproc_sendpage_even \
					-T mutliproc_sendpage_readers -T mutliproc_sendpage_writers ;;
	upstream-mptcp-sockopt)	selftests/upstream/run.sh mptcp mptcp_sockopt ;;
	upstream-*)		selftests/upstream/run.sh "${job#upstream-}" ;;
	figures)		figures --seeds 1 ;;
	figures-all)		figures ;;
	hostile)		hostile loss:timely-1,bbr-1 limited:app,rwnd-fq route:timely-200,path-25 reorder:timely-1 \
					reverse:first,unmarked ack-path:timely-agg-50 \
					blackout:timely,timely-linear ;;
	hostile-rest)		hostile pfc:timely-100 \
					ack-path:timely-lost-10,timely-given-agg-50,timely-fq-agg-50 ;;
	*)			echo "check.sh: no job '$job'"; return 1 ;;
	esac
}

# ---- running jobs ----

# Run a job, print its result, and write "PASSED FAILED SECONDS SKIPPED" to JOB.result.
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
	skips=$(grep -c '# SKIP it is late' "$log")
	good=$((good - skips))
	echo "$good $bad $seconds $skips" >"$logs/$name.result"
	if [ "$skips" -gt 0 ]; then
		printf 'skipped - %s: a part of it: it is late; run make check CHECKS=%s\n' "$name" "$name"
	fi
	if [ "$bad" -eq 0 ]; then
		printf 'ok - %s: %s passed (%s s)\n' "$name" "$good" "$seconds"
		return
	fi
	# Print everything by one printf, because other jobs print at the same time.
	end=$(grep -n -B 8 '^ *not ok ' "$log" | head -n 100; tail -n 25 "$log" | sed 's/^/#   /')
	printf 'not ok - %s: %s passed, %s failed (%s s), the end of %s:\n%s\n' "$name" "$good" \
		"$bad" "$seconds" "build/check/$name.log" "$end"
}

# Print the jobs of a list that the tier or the command line selects, one on each line. In `check` a job that
# has a number of seconds is followed by the time until which it may start, in seconds since 1970.
wanted() {
	echo "$1" | while read -r job_tier job seconds times; do
		[ "$job" ] || continue
		if [ "$named" ]; then
			case " $named " in *" $job "*) echo "$job" ;; esac
		else
			case $tier:$job_tier in
			full:quick|full:instead) ;;
			check:fast|check:check)
				echo "$job${seconds:+ $((began + END_S - ${times:-4} * seconds))}" ;;
			full:*|fast:fast|fast:quick)
				echo "$job" ;;
			esac
		fi
	done
}

usage() {
	echo "usage: check.sh fast|check|full [JOB]..." >&2
	exit 2
}

# --job TIER JOB [TIME]: run the job unless it is later than TIME, in seconds since 1970.
if [ "${1-}" = --job ]; then
	tier=$2
	if [ $# -lt 4 ] || [ "$(date +%s)" -lt "$4" ]; then
		judged "$3"
	else
		echo "0 0 0 1" >"$logs/$3.result"
		printf 'skipped - %s: it is late; run make check CHECKS=%s\n' "$3" "$3"
		[ "$3" != walk-bookworm ] || judged walk-short-bookworm
	fi
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
	printf '%s %s %s' "$preparations" "$jobs" "$late" | grep -qw -- "$job" || {
		echo "check.sh: no job '$job'; the jobs are:" >&2
		echo "$preparations$jobs$late" | awk 'NF { print "  " $2 " (" $1 ")" }' >&2
		exit 2
	}
done

mkdir -p "$logs"
rm -f "$logs"/*.result
began=$(date +%s)
# CI ends a run after 90 minutes.
[ "$tier" != check ] || [ "$named" ] || export walk_end=$((began + END_S + 200))
tools/setup.sh || exit 1
wanted "$preparations" | xargs -r -n 1 "$top/tools/check.sh" --job "$tier"
wanted "$jobs$late" | xargs -r -L 1 -P "$JOBS" "$top/tools/check.sh" --job "$tier"

# A job without a result was interrupted and counts as failed.
wanted "$preparations$jobs$late" | while read -r job _; do
	[ -s "$logs/$job.result" ] || { echo "not ok - $job: was interrupted" >&2; echo 0 1 0 >"$logs/$job.result"; }
done
printf '%s s in all, with %s jobs at a time\n' $(($(date +%s) - began)) "$JOBS"
cat "$logs"/*.result 2>/dev/null | awk '
	{ passed += $1; failed += $2; skipped += $4 }
	END {
		printf "%d passed, %d failed", passed, failed
		printf skipped ? ", %d skipped\n" : "\n", skipped
		exit failed > 0 || passed == 0
	}'
