#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Check the patch series that export.py writes for one of Debian's kernel sources: export.py refuses
# files that are in no patch, git am applies each patch, and checkpatch.pl has no complaint.
#
#	check.sh NAME 6.12|7.3 [STEP]...
#
# Further steps, for User Mode Linux:
#	builtin, modules	compile the files of the series with W=1; any warning is an error
#	each			the same after each patch, built in; no object may need
#				a symbol that a later patch defines
#	kunit			kunit.py builds kernels and runs the unit tests; in the second
#				kernel all of the series is built in
#	kselftest=TEST,...	run these functional tests in a guest, by make run_tests and by
#				run_kselftest.sh, and the unit tests as a module; kselftest=all
#				runs all
#	tdc			the cases of tc-testing in a guest, with the modules of kselftest
#
# The guest runs the lab's kernel of the same version, base for 6.12 and selftests for 7.3, or the
# kernel in the directory $TIMELY_KERNEL. Its configuration is also that of the other steps. Without
# a step no kernel is needed.
#
# The directory build/NAME gets the mails (patches), the tree with the patches (linux), and build
# directories.

set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -ge 2 ] || { echo "usage: check.sh NAME 6.12|7.3 [STEP]..." >&2; exit 2; }
work=$top/build/$1
series=$2
shift 2
linux=$work/linux
selftests=$linux/tools/testing/selftests

# The tables of sysctls belong to a network namespace and cannot be const. The other exceptions are the
# project's.
ignored=CONST_STRUCT,$(sed -n 's/^--ignore //p' "$top/.checkpatch.conf" | paste -sd ,)

# The identity of who submits the patches.
export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=check \
	GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=check@localhost

die() { echo "export: $*"; exit 1; }

# Without an identity export.py says what is missing; with one it signs the patches off.
wants_identity() {
	GIT_CONFIG_COUNT=0 GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_SYSTEM=/dev/null \
		"$top/tools/export/export.py" "$source" "$work/unsigned" 2>"$work/unsigned.log"
	grep -q '^export: no git identity: ' "$work/unsigned.log" || die "export.py does not ask for an identity"
	! grep -qE 'Signed-off-by|^\+M:.*localhost' "$work"/unsigned/*.patch || die "nobody signs patches off"
	rm -rf "$work/unsigned"
}

# export.py must refuse files of the project that are in no patch or that no Makefile compiles.
refuses_forgotten_files() {
	copy=$work/copy
	mkdir -p "$copy/tools"
	for part in Kbuild compat-include drivers include kunit net selftests tools/export; do
		cp -r "$top/$part" "$copy/$part"
	done
	for file in net/forgotten/forgotten.c net/sched/forgotten.c net/timely/onramp_forgotten.c \
		net/timely/engine/forgotten.h include/net/forgotten.h drivers/net/forgotten.c \
		kunit/forgotten_kunit.c selftests/net/forgotten.py; do
		mkdir -p "$copy/$(dirname "$file")"
		echo "/* forgotten */" >"$copy/$file"
		! "$copy/tools/export/export.py" "$source" "$work/refused" 2>"$work/refused.log" ||
			die "export.py does not miss $file"
		grep -q "^export: .*${file##*/}" "$work/refused.log" ||
			{ cat "$work/refused.log"; die "export.py does not name $file"; }
		rm "$copy/$file"
	done
	rm -rf "$copy"
}

# A copy of the kernel's source that consists of hard links. git am replaces files and changes none.
# Only the files that the series changes are in the repository.
unpack() {
	cp -al "$source" "$linux" 2>/dev/null ||
		{ rm -rf "$linux" && cp -a "$source" "$linux"; }
	cd "$linux"
	git init --quiet
	sed -n 's,^--- a/,,p' "$work"/patches/*.patch | sort -u | while read -r file; do
		[ ! -e "$file" ] || git add --force "$file"
	done
	git commit --quiet --message "Linux $series"
	git tag start
}

# The lab's kernel for the steps. The frequency of timer interrupts is a constant in the source: take that of
# the kernel.
prepare_steps() {
	flavour=base
	[ "$series" = 6.12 ] || flavour=selftests
	kernel=${TIMELY_KERNEL:-$("$top/tools/lab/uml/build.sh" $flavour "$series")}
	hz=$(sed -n 's/^CONFIG_HZ=//p' "$kernel/.config")
	sed -i "/^config HZ\$/,/default/ s/default .*/default $hz/" arch/um/Kconfig
}

# Lines of shell, Python and JSON and generated vectors may be longer than checkpatch allows; the
# jobs style-sh and style-python check the scripts.
check_style() {
	git format-patch --quiet --stat --output-directory="$work/style" start -- \
		. ':!*_vectors.h' ':!*.sh' ':!*.py' ':!*.json'
	[ "$(find "$work/style" -name '*.patch' | wc -l)" -gt 10 ] || die "no patches to check"
	printf '%s\n' "$work"/style/* | xargs -P "$(nproc)" -n 4 perl scripts/checkpatch.pl \
		--strict --no-summary --quiet --ignore "$ignored" >"$work/checkpatch" 2>&1 && return
	head -n 100 "$work/checkpatch"
	die "checkpatch has complaints"
}

# configure DIRECTORY y|m: the configuration of the lab's kernel with the options of the series.
# Some unit tests are in the module only.
configure() {
	o=$work/$1
	mkdir -p "$o"
	cp "$kernel/.config" "$o"
	for option in NET_TIMELY TCP_CONG_TIMELY NET_SCH_TIMELY NET_SCH_TRIM TIMELY_ACKER; do
		echo "CONFIG_$option=$2"
	done >>"$o/.config"
	echo CONFIG_TIMELY_KUNIT_TEST=m >>"$o/.config"
	logged uml olddefconfig
}

# uml ARGUMENT...: make for User Mode Linux in the directory $o. LOCALVERSION: the kernel's version
# gets no mark of a git repository.
uml() { make -C "$linux" O="$o" ARCH=um LOCALVERSION= -j"$(nproc)" "$@"; }

# logged COMMAND...: print the end of the command's output if it fails
logged() { "$@" >"$o/log" 2>&1 || { tail -n 30 "$o/log"; die "failed: $*"; }; }

# compile DIRECTORY y|m: compile the files of the series
compile() {
	configure "$@"
	git diff --name-only start HEAD -- 'net/*.c' | sed 's/c$/o/' >"$o/objects"
	# shellcheck disable=SC2046 # a list of files
	logged uml W=1 $(cat "$o/objects")
	! grep -A 5 -E 'warning|error' "$o/log" || die "$o: the compiler has warnings"
}

# Compile after each patch. olddefconfig removes the options that a later patch adds.
each() {
	last=$(git rev-parse HEAD)
	for commit in $(git rev-list --reverse start..HEAD); do
		git checkout --quiet "$commit"
		git log -1 --format=%s
		compile each y
		is_closed
	done
	git checkout --quiet "$last"
}

# Each function and variable that an object of the series uses must be in the kernel without the series or in
# an object that exists.
is_closed() {
	# shellcheck disable=SC2016 # fields of awk
	(cd "$o" && grep -v '^net/timely/tests/' objects | xargs nm) | cat "$kernel/System.map" - | awk '
		NF < 2 { next }
		$(NF - 1) == "U" { used[$NF] }
		$(NF - 1) ~ /^[A-TVWa-tvw]$/ { defined[$NF] }
		END {
			for (name in used) if (!(name in defined)) { print name; missing = 1 }
			exit missing
		}' ||
		die "these symbols are defined by a later patch"
}

# unit_tests NAME [ARGUMENT]...: arguments of kunit.py
unit_tests() {
	log=$work/$1.log
	shift
	/usr/bin/python3 tools/testing/kunit/kunit.py run --kunitconfig net/timely/tests \
		--build_dir "$work/kunit" --jobs "$(nproc)" "$@" >"$log" 2>&1 ||
		{ tail -n 30 "$log"; die "kunit.py fails"; }
	grep 'Testing complete' "$log"
}

# The series changes no other code of the kernel, so its modules can be loaded into the lab's kernel
# if the rest of the configuration is the same. The guest finds the modules, tc's plugin and
# timelyctl as if they were installed.
build_modules() {
	configure kselftest m
	grep -vE 'TIMELY|NET_SCH_TRIM' "$o/.config" >"$o/config"
	diff "$kernel/.config" "$o/config" || die "$kernel has another configuration"
	sed -n 's/=.*//p' "$selftests/net/timely/config" | while read -r option; do
		grep -q "^$option=" "$o/.config" || die "the kernel has no $option"
	done
	ln -sf "$kernel"/vmlinux.o "$kernel"/modules.builtin* "$kernel"/System.map "$o"
	logged uml modules
	logged uml modules_install INSTALL_MOD_PATH="$o/root"
	logged make -s -C "$top/tools/tc" OUT="$o/tools"
	logged make -s -C "$top/tools/timelyctl" OUT="$o/tools"
}

# functional_tests TEST...|all
functional_tests() {
	build_modules
	# Linux exports no headers for User Mode Linux.
	logged make -C "$linux" O="$work/headers" ARCH=x86 headers_install \
		INSTALL_HDR_PATH="$linux/usr"
	logged make -C "$selftests" TARGETS=net/timely INSTALL_PATH="$o/tests" install
	# shellcheck disable=SC2046 # a list of tests
	[ "$*" != all ] || set -- $(sed -n 's/^net.timely://p' "$o/tests/kselftest-list.txt")
	status=0
	log=$work/kselftest.log
	"$top/tools/lab/guest.sh" -k "$kernel" -t 3600 -e "TC_LIB_DIR=$o/tools" \
		"$top/tools/export/guest.sh" "$linux" "$o" "$@" >"$log" 2>&1 || status=$?
	! grep -E '^not ok |# SKIP' "$log" || status=1
	for suite in nic path trim_qdisc; do
		grep -qE "^ok .*timely_$suite( |\$)" "$o/units" || { echo "no unit tests timely_$suite"; status=1; }
	done
	passed=$(grep -c '^ok ' "$log") || :
	echo "$passed of $((2 * $#)) functional tests passed"
	[ "$status:$passed" = "0:$((2 * $#))" ] || die "tests failed, see $log"
}

tdc() {
	TIMELY_MODULES=$work/kselftest/root TIMELY_TDC=$selftests/tc-testing \
		"$top/selftests/tc-testing/run.sh" "$kernel" >"$work/tdc.log" 2>&1 ||
		{ grep '^not ok' "$work/tdc.log"; die "cases of tdc failed, see $work/tdc.log"; }
	tail -n 1 "$work/tdc.log"
}

unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE KBUILD_OUTPUT KCONFIG_CONFIG MAKEFLAGS MFLAGS MAKELEVEL
unset ARCH CROSS_COMPILE
source=$("$top/tools/lab/uml/build.sh" source "$series")
rm -rf "$work"
mkdir -p "$work"
refuses_forgotten_files
wants_identity
"$top/tools/export/export.py" "$source" "$work/patches"
unpack
patches=$(find "$work/patches" -name '*.patch' ! -name '0000-*' | sort)
# shellcheck disable=SC2086 # a list of files
git am --quiet $patches || die "git am fails"
check_style
[ $# -eq 0 ] || prepare_steps
for step; do
	case $step in
	builtin)	compile builtin y ;;
	modules)	compile modules m ;;
	each)		each ;;
	kunit)		unit_tests kunit
			unit_tests kunit-builtin --kconfig_add CONFIG_NET_SCH_TIMELY=y \
				--kconfig_add CONFIG_TIMELY_ACKER=y \
				--kconfig_add CONFIG_TCP_CONG_ADVANCED=y \
				--kconfig_add CONFIG_TCP_CONG_TIMELY=y ;;
	kselftest=*)
			# shellcheck disable=SC2046 # a list of tests
			functional_tests $(echo "${step#*=}" | tr , ' ') ;;
	tdc)		tdc ;;
	*)		die "unknown step $step" ;;
	esac
done
echo "$(echo "$patches" | wc -l) patches apply to Linux $series${*:+, and build: $*}"
