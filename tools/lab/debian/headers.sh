#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Unpack the headers of Debian's newest kernel of a series into $TIMELY_CACHE, without
# installing them. Print the directory for `make -C`; all other output goes to standard error.
#
#   headers.sh [--update] 6.1|6.12|7.3
#
# Headers that are already in the cache are used; --update looks for a newer kernel.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=debian.sh
. "$here/debian.sh"

update=
if [ "${1:-}" = --update ]; then
	update=1
	shift
fi
series=${1:?usage: headers.sh [--update] 6.1|6.12|7.3}
groups=$(suites "$series")
apt=$cache/apt-$series
# The result depends on the compiler (see below), so its version is part of the name. Increase layout
# when this script changes the result.
layout=1
gcc=$(gcc -dumpfullversion)
suffix=gcc$gcc-$layout

mkdir -p "$cache"
exec 9>"$cache/lock-headers-$series"
flock 9

# DIR of an unpacked tree.
dir_of() { find "$1/usr/src" -maxdepth 1 -name 'linux-headers-*-amd64'; }

tree=$(find "$cache" -maxdepth 1 -name "headers-$series-*-$suffix" | sort -V | tail -n 1)
if [ -n "$tree" ] && [ -z "$update" ]; then
	dir_of "$tree"
	exit 0
fi

found=
while read -r group; do
	# shellcheck disable=SC2086 # a list of suites
	use_suites $group
	found=$(newest "linux-headers-$series." -amd64)
	[ -z "$found" ] || break
done <<EOF
$groups
EOF
[ -n "$found" ] || die "no kernel $series in: $(echo "$groups" | tr '\n' ' ')"
name=${found% *}
version=${found#* }
tree=$cache/headers-$series-$version-$suffix
if [ -e "$tree" ]; then
	dir_of "$tree"
	exit 0
fi

tmp=$(mktemp -d -p "$cache")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM

new=$tmp/tree
packages=$name
for package in $(needs "$name=$version" '^linux-(headers|kbuild)-'); do
	packages="$packages $package=$version"
done
# shellcheck disable=SC2086 # a list of packages
unpack "$new" $packages
echo "$version" >"$new/version"
dir=$new/usr/src/$name

# The Makefile of the kernel's flavour includes that of the common headers by an absolute path, and since
# 7.x refers to itself, too. Make these paths relative to the unpacked tree.
# shellcheck disable=SC2016 # $(...) is make's
sed -i 's|^KBUILD_OUTPUT=|KBUILD_OUTPUT := |; s|/usr/src/|$(dir $(realpath $(lastword $(MAKEFILE_LIST))))../|' \
	"$dir/Makefile"

kbuild=$new/usr/lib/linux-kbuild-${name#linux-headers-}
kbuild=${kbuild%-amd64}
[ -d "$kbuild" ] || kbuild=$new/usr/lib/linux-kbuild-$series

# The tools (such as modpost) of a newer Debian need a newer libc: replace each by a script
# that runs the tool with that libc.
find "$kbuild" -type f -perm -u+x | while read -r tool; do
	[ "$(head -c 4 "$tool" | tail -c 3)" = ELF ] || continue
	case $(LC_ALL=C ldd "$tool" 2>&1) in
	*GLIBC_*" not found"*)	echo "$tool" ;;
	*" not found"*)		say "a library that ${tool##*/} needs is not installed" ;;
	esac
done >"$tmp/tools"
if [ -s "$tmp/tools" ]; then
	unpack "$new/libc" libc6
	while read -r tool; do
		with_libc "$tree/libc" "$tool"
	done <"$tmp/tools"
fi

# Since 7.x the Makefile first tests the checker (C=1) with a script that Debian's package lacks. Add a
# script that makes the same test.
if grep -q checker-valid.sh "$dir/../${name%amd64}common/Makefile" && [ ! -e "$kbuild/scripts/checker-valid.sh" ]; then
	cat >"$kbuild/scripts/checker-valid.sh" <<-'EOF'
	#!/bin/sh
	try='static inline int u(const int *q) { __typeof_unqual__(*q) v = *q; return v; }'
	[ -n "$(echo "$try" | "$@" - 2>&1)" ] || echo 1
	EOF
	chmod +x "$kbuild/scripts/checker-valid.sh"
fi

# Debian's headers require the compiler that the kernel was built with. If it is not installed, use gcc.
# Then the kernel's configuration has wrong options about the compiler; some, such as asm goto
# with outputs, would lead to wrong code. So let Kconfig test the compiler again. This needs the
# kernel's Kconfig files, which only the source package has.
cc=$(sed -n 's/^CC = .*(CROSS_COMPILE)//p' "$dir/.kernelvariables")
cross=$(sed -n 's/^override CROSS_COMPILE = \([^$]*\)$/\1/p' "$dir/.kernelvariables")
if ! command -v "$cross$cc" >/dev/null; then
	say "$cc is not installed: configuring the headers of $version for gcc $gcc"
	sed -i "s/(CROSS_COMPILE)$cc\$/(CROSS_COMPILE)gcc/" "$dir/.kernelvariables"
	unpack "$tmp/source" "linux-source-$series=$version"
	mkdir "$tmp/kconfig" "$tmp/out"
	tar -C "$tmp/kconfig" --strip-components=1 --wildcards \
		-xf "$tmp"/source/usr/src/linux-source-*.tar.* \
		"linux-source-$series/Makefile" "linux-source-$series/scripts" \
		'*/Kconfig*' "linux-source-$series/arch/x86/Makefile*"
	# Only options about the compiler may change. The version of pahole decides on the layout
	# of struct module, so a script claims the version that the kernel was built with. Rust is
	# off in any case.
	pahole=$(sed -n 's/^CONFIG_PAHOLE_VERSION=//p' "$dir/.config")
	printf '#!/bin/sh\necho v%s.%s\n' "${pahole%??}" "${pahole#?}" >"$tmp/pahole"
	chmod +x "$tmp/pahole"
	cp "$dir/.config" "$tmp/out/.config"
	make -C "$tmp/kconfig" O="$tmp/out" ARCH=x86 CC="${cross}gcc" LD="${cross}ld" PAHOLE="$tmp/pahole" \
		RUSTC=false BINDGEN=false olddefconfig syncconfig >"$tmp/log" 2>&1 9>&- ||
		{ tail -n 30 "$tmp/log" >&2; die "Kconfig failed, see above"; }
	diff "$dir/.config" "$tmp/out/.config" >"$new/config.diff" || :
	cp "$tmp/out/.config" "$dir/.config"
	cp "$tmp/out/include/config/auto.conf" "$dir/include/config/"
	cp "$tmp/out/include/generated/autoconf.h" "$dir/include/generated/"
	say "changes of the configuration are in $tree/config.diff"
fi

# Modules get no BTF, which needs the pahole that the kernel was built with, and which no check uses.
# Change the option for make only: in C it decides on the layout of struct module.
sed -i '/^CONFIG_DEBUG_INFO_BTF_MODULES=/d' "$dir/include/config/auto.conf"
# shellcheck disable=SC2016 # $(...) is make's
echo 'override PAHOLE_VERSION = $(CONFIG_PAHOLE_VERSION)' >>"$dir/.kernelvariables"

mv "$new" "$tree"
say "headers of $version are in $tree"
dir_of "$tree"
