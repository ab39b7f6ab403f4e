# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154
#
# Build a bench's kernel and modules. A bench sources this file; it must define die(),
# here, top and lab.

# bench_kernel KERNEL: print the directory of a kernel: native (kernel.sh), a directory,
# or a kernel of the lab, such as base.
bench_kernel() {
	case $1 in
	/*)	echo "$1" ;;
	native)	"$here/kernel.sh" ;;
	*)	"$lab/uml/build.sh" "$1" ;;
	esac || die "cannot build the kernel, see above"
}

# bench_build: build the kernel $kernel, as for bench_kernel, and the project's modules for it, if
# $modules is empty. Sets kernel and modules to the directories.
bench_build() {
	# Remove variables that a calling make passes on.
	unset OUT MAKEFLAGS MFLAGS
	kernel=$(bench_kernel "$kernel") || exit 1
	# Compile modules with the flags that kernel.sh compiled the kernel with.
	KCFLAGS=$(cat "$kernel/.timely-kcflags" 2>/dev/null || :)
	export KCFLAGS
	[ -n "$modules" ] || modules=$("$lab/modules.sh" "$kernel") || die "cannot build the modules, see above"
}

# bench_module NAME KERNEL BUILD: build the module NAME in the directory BUILD
bench_module() {
	mkdir -p "$3"
	for file in Kbuild native.h "$1.c"; do
		cmp -s "$here/$file" "$3/$file" || cp "$here/$file" "$3/$file"
	done
	make -C "$2" ARCH=um M="$3" TIMELY="$top" modules >"$3/build.log" 2>&1 || {
		tail -n 20 "$3/build.log" >&2
		die "cannot build $1, log: $3/build.log"
	}
}
