#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Build the packages twice and compare them, check them by lintian and rpmlint, and install, upgrade and purge the
# Debian packages with DKMS and Debian's kernels 6.12 and 6.1; install, upgrade and remove the RPM packages. That
# happens in an overlay over this machine's root directory, so that the machine does not change. Prints TAP. Needs root.

set -u

here=$(cd "$(dirname "$0")" && pwd)
top=$(dirname "$here")

fail() {
	echo "$@" | sed 's/^/# /'
	exit 1
}

# cases FUNCTION...: each runs in a subshell, which ends at the first failure
cases() {
	failed=0
	for case; do
		if ("$case"); then
			echo "ok - $case"
		else
			echo "not ok - $case"
			failed=1
		fi
	done
	return $failed
}

# ---- packages ----

# The files that git archive would write, with changes that are not committed.
archive() {
	git -C "$top" ls-files -co --exclude-standard |
		tar -C "$top" --mtime="@$(git -C "$top" log -1 --format=%ct)" -cf - -T -
}

# The second build is from a tarball without git, in another directory, language, time zone and with another umask.
same_bytes() {
	mkdir "$work/some where" "$work/packages"
	: >"$work/packages/timely-dkms_0.0_all.deb"
	: >"$work/packages/timely-dkms-0.0-1.noarch.rpm"
	archive | tar -C "$work/some where" -xf - || fail "no copy"
	for kind in deb rpm; do
		TIMELY_PACKAGES=$work/packages "$here/build.sh" "$kind" || fail "build.sh $kind"
		(umask 077 && LANG=C.UTF-8 TZ=Asia/Tokyo TIMELY_PACKAGES=$work/again \
			"$work/some where/packaging/build.sh" "$kind") || fail "build.sh $kind, again"
	done
	for file in "$work"/packages/timely-dkms?0.0*; do
		[ ! -e "$file" ] || fail "a package of another version is left: $file"
	done
	for file in "$work"/packages/*.deb "$work"/packages/*.rpm; do
		cmp "$file" "$work/again/${file##*/}" || fail "differs: $file"
	done
}

lintian_is_clean() {
	lintian --allow-root --fail-on error,warning "$work"/packages/*.changes || fail "see above"
}

rpmlint_is_clean() {
	rpmlint --strict -c "$here/rpmlint.toml" "$work"/packages/*.rpm || fail "see above"
}

# Packages of a newer version, for the upgrade.
newer_version() {
	for kind in deb rpm; do
		TIMELY_VERSION=$version.1 TIMELY_PACKAGES=$work/newer "$here/build.sh" "$kind" || fail "build.sh $kind"
	done
}

# ---- in the overlay ----

apt() {
	DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends -o DPkg::Path="$PATH" "$@" >log 2>&1 ||
		fail "$(cat log)"
}

# kernel RELEASE HEADERS: make DKMS see a kernel
kernel() {
	mkdir -p "/lib/modules/$1"
	ln -s "$2" "/lib/modules/$1/build"
}

# Do what the packages of kernels do. If this fails, the installation of the kernel fails.
kernel_is_installed() {
	run-parts --exit-on-error --arg="$1" /etc/kernel/header_postinst.d >log 2>&1 || fail "$(cat log)"
}

# has_modules RELEASE NUMBER
has_modules() {
	number=$(find "/lib/modules/$1" -path '*/updates/dkms/*.ko*' | wc -l)
	[ "$number" -eq "$2" ] || fail "$number modules for $1, expected $2: $(cat log)"
}

installation() {
	kernel "$kernel" "$headers"
	apt install "$work"/packages/timely-dkms_*.deb "$work"/packages/timely-tools_*.deb
	has_modules "$kernel" 6
	# The running kernel is none of Debian's.
	grep "no modules of TIMELY for the kernel $(uname -r)" log || fail "not reported: $(cat log)"
	[ "$(modinfo -k "$kernel" -F version tcp_timely)" = "$version" ] || fail "version of tcp_timely"
	modinfo -k "$kernel" tcp_timely | grep '^signer: .*DKMS' || fail "tcp_timely is not signed"
	timelyctl --version | grep -F "$version" || fail "version of timelyctl"
	unshare -n tc qdisc add dev lo root timely help 2>&1 | grep ack_first || fail "tc has no qdisc timely"
	unshare -n tc qdisc add dev lo root trim help 2>&1 | grep header_limit || fail "tc has no qdisc trim"
	man -w timely-switch timelyctl tc-timely tc-trim || fail "no manuals"
	# shellcheck disable=SC2016 # for bash
	bash -c '. /etc/bash_completion.d/tc-timely; [[ " $QDISC_KIND " == *" timely "* ]]' || fail "no completion"
	for command in timelyctl timely-switch timely-clockd timely-plot ndp; do
		bash -c '. "/usr/share/bash-completion/completions/$1" && complete -p "$1"' bash $command || fail "no completion of $command"
	done
	[ -e /etc/systemd/system/multi-user.target.wants/timely-check.service ] || fail "unit not enabled"
	systemd-analyze verify timely-check.service || fail "wrong unit"
	tools_are_complete
}

# An administrator enables the units of timely-tools. All links of its documents lead to files.
tools_are_complete() {
	for unit in timely@.service timely-clockd.service timely-metrics.service timely-metrics.timer; do
		[ -e "/lib/systemd/system/$unit" ] || fail "no unit $unit"
	done
	systemd-analyze verify timely-metrics.service timely-metrics.timer timely@eth0.service || fail "wrong unit"
	enabled=$(find /etc/systemd/system -name 'timely*' ! -name timely-check.service)
	[ -z "$enabled" ] || fail "enabled: $enabled"
	cd /usr/share/doc/timely-tools || fail "no documents"
	for file in examples/systemd-networkd/10-timely.network examples/ansible/timely.yml examples/monitoring/timely.rules.yml \
		Documentation/operations.md README.md CHANGELOG.md packaging/README.md; do
		[ -e "$file" ] || fail "no $file in /usr/share/doc/timely-tools"
	done
	find . -name '*.md' | while read -r file; do
		grep -o ']([^)#: ]*[)#]' "$file" | sed 's/^](//; s/.$//' | while read -r link; do
			[ -z "$link" ] || [ -e "${file%/*}/$link" ] || echo "$file: $link"
		done
	done >/root/dead
	cd - >/dev/null || exit 1
	[ ! -s /root/dead ] || fail "dead links: $(cat /root/dead)"
}

kernel_upgrade() {
	kernel "$kernel2" "$headers2"
	kernel_is_installed "$kernel2"
	has_modules "$kernel2" 6
	! grep 'no modules' log || fail "wrong report: $(cat log)"
	rm -r "/lib/modules/$kernel2"
}

unsupported_kernel() {
	kernel 5.10.0-1-amd64 "$headers"
	kernel_is_installed 5.10.0-1-amd64
	has_modules 5.10.0-1-amd64 0
	grep "no modules of TIMELY for the kernel 5.10.0-1-amd64" log || fail "not reported: $(cat log)"
	dkms build timely/"$version" -k 5.10.0-1-amd64 >log 2>&1
	grep BUILD_EXCLUSIVE log || fail "$(cat log)"
	kernel_without_headers /etc/kernel/postinst.d/zz-timely-dkms 5.10.0-1-amd64
	rm -r /lib/modules/5.10.0-1-amd64
}

# kernel_without_headers SCRIPT... RELEASE: the script that runs when a kernel is installed reports that headers are missing,
# but only if they are.
kernel_without_headers() {
	for release; do :; done
	"$@" >log 2>&1 || fail "$(cat log)"
	! grep 'kernel headers' log || fail "wrong report: $(cat log)"
	rm "/lib/modules/$release/build"
	"$@" >log 2>&1 || fail "$(cat log)"
	grep "install its kernel headers: linux-headers-$release" log || fail "not reported: $(cat log)"
}

upgrade() {
	apt install "$work"/newer/timely-dkms_*.deb "$work"/newer/timely-tools_*.deb
	has_modules "$kernel" 6
	[ "$(modinfo -k "$kernel" -F version tcp_timely)" = "$version.1" ] || fail "not upgraded: $(cat log)"
	[ ! -e "/usr/src/timely-$version" ] || fail "the old sources are left"
}

purge() {
	apt purge timely-dkms timely-tools
	has_modules "$kernel" 0
	nothing_is_left
}

# Modules that could not be unloaded keep what timely-switch and timelyctl would restore.
purge_of_loaded_modules() {
	mkdir -p /run/timely bin
	touch /run/timely-switch /run/timely-switch.lock
	printf '#!/bin/sh\nexit 1\n' >bin/ischroot
	chmod +x bin/ischroot
	# shellcheck disable=SC2016 # for the inner shell
	PATH=$PWD/bin:$PATH unshare -m sh -ec '
		mount -t tmpfs tmpfs /sys/module
		mkdir /sys/module/timely
		sh "$1" purge' sh "$here/debian/timely-dkms.postrm" || fail "postrm failed"
	[ "$(find /run/timely* | wc -l)" -eq 3 ] || fail "the records of loaded modules are gone"
	PATH=$PWD/bin:$PATH sh "$here/debian/timely-dkms.postrm" purge || fail "postrm failed"
	[ -z "$(find /run -maxdepth 1 -name 'timely*')" ] || fail "records are left"
}

# By the time of the last change of the inode: files of packages keep the time of the last commit as mtime. The
# program man keeps formatted manuals.
nothing_is_left() {
	left=$(find /etc /lib/modules /run /usr /var -xdev -path /var/cache/man -prune -o \
		\( -name '*timely*' -o -name '*_trim*' -o -name 'ndp*' \) -cnewer "$work/started" -print)
	[ -z "$left" ] || fail "left: $left"
}

# rpm ARGUMENT...: this machine has no RPM packages that the project's could depend on.
rpm() {
	command rpm --dbpath /root/rpm --nodeps --define "_install_script_path $PATH" "$@" >log 2>&1 || fail "$(cat log)"
}

# The running kernel has no headers, so that DKMS knows the modules, but does not build them. A repeated installation with
# headers builds them.
rpm_installation() {
	rpm -i "$work"/packages/*.rpm
	grep "no modules of TIMELY for the kernel $(uname -r)" log || fail "not reported: $(cat log)"
	[ "$(dkms status)" = "timely/$version: added" ] || fail "DKMS knows: $(dkms status)"
	kernel "$(uname -r)" "$headers"
	rpm -U --replacepkgs "$work"/packages/timely-dkms*.rpm
	has_modules "$(uname -r)" 6
	rm "/lib/modules/$(uname -r)/build"
	/usr/lib/kernel/install.d/95-timely.install add "$(uname -r)" >log 2>&1
	[ ! -s log ] || fail "wrong report: $(cat log)"
	kernel 5.10.0-1-amd64 "$headers"
	kernel_without_headers /usr/lib/kernel/install.d/95-timely.install add 5.10.0-1-amd64
	rm -r /lib/modules/5.10.0-1-amd64
	tools_are_complete
}

rpm_upgrade() {
	rpm -U "$work"/newer/*.rpm
	[ "$(dkms status)" = "timely/$version.1: added" ] || fail "DKMS knows: $(dkms status)"
	[ ! -e "/usr/src/timely-$version" ] || fail "the old sources are left"
	timelyctl --version | grep -F "$version.1" || fail "version of timelyctl"
}

rpm_removal() {
	rpm -e timely-dkms timely-tools
	[ -z "$(dkms status)" ] || fail "DKMS still knows: $(dkms status)"
	nothing_is_left
}

# The lines of the operations manual that begin with one of these words, in one of its sections.
manual_lines() {
	awk -v section="$1" -v words="$2" '
		/^#/ { inside = $0 == "## " section }
		inside && $0 ~ "^    (" words ") " { print substr($0, 5) }' "$top/Documentation/operations.md"
}

# The manual's commands that install and remove packages; then its other way to remove what make install has installed.
manual() {
	touch "$work/started"
	echo 'APT::Get::Assume-Yes "true"; APT::Install-Recommends "false"; quiet "2";' "DPkg::Path \"$PATH\";" >/etc/apt/apt.conf.d/99yes
	export DEBIAN_FRONTEND=noninteractive
	[ -e "/lib/modules/$(uname -r)/build" ] || kernel "$(uname -r)" "$headers"
	manual_lines Installing 'make|apt-get' >install
	[ "$(wc -l <install)" -eq 2 ] || fail "the manual installs by other commands: $(cat install)"
	(cd "$top" && sh -e) <install >log 2>&1 || fail "$(cat log)"
	timelyctl --version | grep -F "$version" || fail "version of timelyctl"
	manual_lines 'Turning everything off' 'apt-get|make' >remove
	[ "$(wc -l <remove)" -eq 2 ] || fail "the manual removes by other commands: $(cat remove)"
	grep apt-get remove | sh -e >log 2>&1 || fail "$(cat log)"
	[ ! -e /usr/sbin/timelyctl ] || fail "timelyctl is still installed: $(cat log)"
	(cd "$top" && make install) >log 2>&1 || fail "$(cat log)"
	[ -x /usr/local/sbin/timelyctl ] || fail "make install has installed no timelyctl"
	(cd "$top" && grep make | sh -e) <remove >log 2>&1 || fail "$(cat log)"
	nothing_is_left
}

if [ "${1-}" = --in-overlay ]; then
	cd /root || exit 1
	# DKMS compiles the same sources for the same kernel several times.
	export PATH="/usr/lib/ccache:$PATH" CCACHE_DIR=/root/ccache
	cases installation kernel_upgrade unsupported_kernel upgrade purge purge_of_loaded_modules rpm_installation rpm_upgrade \
		rpm_removal manual
	exit
fi

# ---- outside of it ----

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
version=$(sed -n 's/.* TIMELY_VERSION "\(.*\)"/\1/p' "$top/include/uapi/linux/timely_version.h")
headers=$("$top/tools/lab/debian/headers.sh" 6.12) && headers2=$("$top/tools/lab/debian/headers.sh" 6.1) || exit 1
kernel=${headers##*/linux-headers-}
kernel2=${headers2##*/linux-headers-}
export work version headers headers2 kernel kernel2

cases same_bytes lintian_is_clean rpmlint_is_clean newer_version || exit 1
touch "$work/started"
"$top/tools/overlay.sh" "$here/test.sh" --in-overlay
