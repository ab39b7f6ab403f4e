#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# The tests of walk.sh, as an administrator of a Debian system would do them by hand. walk.sh runs this script
# in a guest at each boot, and the kernel's parameter walk=STAGE says which part of the tests. Prints TAP.

set -u
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin
share=/share
peer=10.9.0.2
stage=${1-$(sed -n 's/.*\<walk=\([a-z]*\).*/\1/p' /proc/cmdline)}

# The compiler's results, see fill_cache() of walk.sh.
export PATH=/usr/lib/ccache:$PATH CCACHE_DIR=$share/ccache
[ "$stage" = fill ] || export CCACHE_READONLY=1

# test_that WHAT COMMAND...: one test, which passes if COMMAND succeeds
test_that() {
	what="$stage: $1"
	shift
	start=$(date +%s)
	"$@" >/run/test.out 2>&1
	set -- $? "($(($(date +%s) - start)) s)"
	if [ "$1" -eq 0 ]; then
		echo "ok - $what $2"
	else
		echo "not ok - $what $2"
		tail -n 60 /run/test.out | sed 's/^/# /'
	fi
}

# soon COMMAND...: repeat the command until it succeeds, at most 120 times
soon() {
	tries=0
	until "$@"; do
		tries=$((tries + 1))
		[ $tries -lt 120 ] || return 1
		sleep 1
	done
}

# ---- the state of the system ----

qdiscs() { tc qdisc show; }

# Settings of the network and of the modules. Other settings change by themselves, some with the free memory at boot.
sysctls() { sysctl -a 2>/dev/null | grep '^net\.' | grep -v -e conntrack -e '\(tcp\|udp\)_mem '; }

modules() { find /sys/module -maxdepth 1 -name '*timely*'; }

# Files that belong to no package, without those that change while a system runs. The new kernel, whose release is
# in /share/new, stays installed. DKMS makes a key of this system when it builds its first module.
files() {
	cat /var/lib/dpkg/info/*.list | sed 's,^/\(bin\|sbin\|lib[^/]*\)/,/usr/\1/,' | sort -u >/run/owned
	find / -xdev -not -type d | sed 's,^/\(bin\|sbin\|lib[^/]*\)/,/usr/\1/,' | sort | comm -23 - /run/owned |
		grep -v -e '^/var/\(cache\|log\|tmp\|backups\)/' -e '^/var/lib/\(dpkg\|apt\|systemd\|logrotate\)/' -e '^/tmp/systemd-private-' \
			-e '^/var/lib/dkms/mok\.\(key\|pub\)$' -e '^/\(vmlinuz\|initrd.img\)\(.old\)\?$' -e '/__pycache__/' |
		grep -vF "$(cat $share/new 2>/dev/null || echo none)"
}

# Files of packages that differ from those in the package. disk.sh leaves out drivers.
changed_files() { dpkg --verify | sed '\, /\(usr/\)\?lib/modules/[^/]*/kernel/,d'; }

# keep NAME...: write the output of these functions to files, for comparison
keep() {
	for name; do
		"$name" >"$share/$name" || return 1
	done
}

# same NAME...: the output of these functions is as it was
same() {
	for name; do
		"$name" | diff "$share/$name" - || return 1
	done
}

no_modules() { [ -z "$(modules)" ]; }

# Each unit of the system is as it should be. Wait for the end of the boot.
units_are_well() {
	[ "$(systemctl is-system-running --wait)" = running ] || { systemctl --failed --no-legend --plain; return 1; }
}

# ---- traffic ----

# The other guest answers each connection with the SHA-256 of what it has received.
digest() { socat -t 3600 - "TCP:$peer:5000" | cut -c1-64; }
digest_of() { sha256sum "$1" | cut -c1-64; }

# transfer [CPU]: send 4 MB from a processor; all bytes must arrive
transfer() {
	[ -s /run/data ] || head -c 4000000 /dev/urandom >/run/data
	[ "$(taskset -c "${1:-0}" socat -t 3600 - "TCP:$peer:5000" </run/data | cut -c1-64)" = "$(digest_of /run/data)" ]
}

# Open a connection that sends until let_go.
hold() {
	rm -f /run/let-go
	{ while [ ! -e /run/let-go ]; do head -c 120000 /run/data; sleep 2; done; } | tee /run/sent | digest >/run/digest &
	held=$!
	soon is_open
}
is_open() { ss -Htni state established "dst $peer" | grep -q bytes_acked; }

# Close this connection; all bytes must have arrived.
let_go() {
	touch /run/let-go
	wait "$held"
	[ "$(cat /run/digest)" = "$(digest_of /run/sent)" ] && [ "$(wc -c </run/sent)" -gt 100000 ]
}

uses() { ss -Htni state established "dst $peer" | grep -qw "$1"; }

# Every transmit queue of eth0 has the qdisc timely, and there are at least two.
queues_are_timely() {
	tc qdisc show dev eth0
	set -- /sys/class/net/eth0/queues/tx-*
	[ $# -ge 2 ] && tc qdisc show dev eth0 root | grep -q '^qdisc mq ' &&
		[ "$(tc qdisc show dev eth0 | grep -c '^qdisc timely ')" -eq $# ]
}

# Every queue of eth0 has sent packets.
queues_have_sent() {
	tc -s qdisc show dev eth0
	tc -s qdisc show dev eth0 | grep -A 1 '^qdisc timely ' | grep Sent |
		awk '$4 < 100 { few = 1 } END { exit few || NR < 2 }'
}

# ---- timely's tools ----

# doctor STATUS [CHECK]: doctor ends with this status, and reports an error of this check
doctor() {
	timelyctl doctor
	[ $? -eq "$1" ] && { [ $# -eq 1 ] || timelyctl doctor | grep "^error: $2: "; }
}

# Doctor finds no error. Warnings are right: the emulated network is slow, and the driver knows no link rate.
doctor_finds_no_error() { timelyctl doctor; [ $? -ne 1 ]; }

# Does the output of a command name the other guest?
names_peer() { "$@" | tee /run/names && grep -qF "$peer" /run/names; }

# watch needs a terminal, and ends when q is pressed.
watch_shows_peer() {
	{ sleep 10; while printf q; do sleep 1; done; } |
		timeout 600 script -qec 'stty cols 150 rows 40; timelyctl watch' /run/watch >/dev/null && grep -aF "$peer" /run/watch
}

# The metrics go to Prometheus' node_exporter, as packaging/monitoring describes.
export_metrics() {
	cp $share/monitoring/timely-metrics.* /etc/systemd/system/ && systemctl enable --now timely-metrics.timer
}
undo_export() {
	systemctl disable --now timely-metrics.timer && systemctl stop timely-metrics.service &&
		rm /etc/systemd/system/timely-metrics.* /var/lib/prometheus/node-exporter/timely.prom
}

# scraped METRIC...: node_exporter has these metrics, given as patterns.
scraped() {
	curl -sS http://127.0.0.1:9100/metrics >/run/metrics || return 1
	for metric; do
		grep "^$metric\$" /run/metrics || return 1
	done
}

# ---- packages ----

install_packages() { apt-get -y -o Dpkg::Use-Pty=0 -o DPkg::Path="$PATH" install "$@"; }

# install_timely DIR: install the packages of this directory of /share.
install_timely() { install_packages $share/"$1"/timely-dkms_*.deb $share/"$1"/timely-tools_*.deb; }

# Modules of a version are installed for each of these kernels.
built() {
	version=$1
	shift
	for release; do
		for module in timely tcp_timely sch_timely timely_acker; do
			[ "$(modinfo -k "$release" -F version $module)" = "$version" ] || { dkms status; return 1; }
		done
	done
}

# quiet_build VERSION RELEASE: the log of DKMS has no complaint.
quiet_build() {
	log=$(find "/var/lib/dkms/timely/$1/$2" -name make.log) && [ -s "$log" ] || return 1
	! grep -iE 'warning|error|No such file' "$log"
}

# The loaded modules have this version.
loaded() {
	for module in timely tcp_timely sch_timely; do
		[ "$(cat /sys/module/$module/version)" = "$1" ] || return 1
	done
}

# Upgrade the packages while a connection uses the modules.
upgrade_in_use() {
	install_timely newer >/run/upgrade 2>&1 || { cat /run/upgrade; return 1; }
	cat /run/upgrade
	grep -q 'remain in use' /run/upgrade
}

# The packages of the new kernel are in apt's cache.
install_kernel() {
	install_packages --no-install-recommends -t "$(. /etc/os-release && echo "$VERSION_CODENAME")-backports" \
		linux-image-amd64 linux-headers-amd64
}

upgrade_kernel() {
	install_kernel || return 1
	readlink /vmlinuz | sed 's/.*vmlinuz-//' >$share/new
	[ "$(cat $share/new)" != "$(uname -r)" ]
}

# The files of packaging/examples that set timely up at each boot. The unit sets the qdiscs.
make_permanent() {
	cp $share/examples/systemd/timely@.service /etc/systemd/system/ &&
		cp $share/examples/modules-load.d/timely.conf /etc/modules-load.d/ &&
		grep -v default_qdisc $share/examples/sysctl.d/90-timely.conf >/etc/sysctl.d/90-timely.conf &&
		systemctl daemon-reload && systemctl enable timely@eth0.service
}
undo_permanent() {
	systemctl disable --now timely@eth0.service && rm /etc/systemd/system/timely@.service &&
		rm /etc/modules-load.d/timely.conf /etc/sysctl.d/90-timely.conf && systemctl daemon-reload &&
		sysctl -w net.ipv4.tcp_congestion_control=cubic
}

# ---- the stages ----

first=$(cat $share/version)

# Install the packages and use them, while a connection stays open.
install_and_use() {
	test_that 'the system has booted, and all units are well' units_are_well
	test_that 'the other guest answers' soon transfer
	test_that 'the state before' keep qdiscs sysctls files changed_files
	test_that 'install the packages; DKMS builds the modules' install_timely packages
	test_that 'the modules of the running kernel are there' built "$first" "$(uname -r)"
	test_that 'the compiler and kbuild have not complained' quiet_build "$first" "$(uname -r)"
	test_that 'the installation has loaded no module' no_modules
	test_that 'the installation has changed no sysctl and no qdisc' same sysctls qdiscs
	test_that 'doctor says that no module is loaded' doctor 1 modules-loaded
	test_that 'load the modules' modprobe -a tcp_timely sch_timely
	test_that 'set timely up on eth0' timelyctl setup eth0 congctl
	test_that 'each queue of eth0 has the qdisc timely' queues_are_timely
	test_that 'all bytes of a transfer arrive' transfer 0
	test_that 'all bytes from the other processor arrive' transfer 1
	test_that 'each queue has sent packets' queues_have_sent
	test_that 'a connection that stays open' hold
	test_that 'the connection uses timely' uses timely
	test_that 'doctor finds no error' doctor_finds_no_error
	test_that 'flows lists the connection' names_peer timelyctl flows
	test_that 'top lists the other guest' names_peer timelyctl top
	test_that 'watch shows the connection' watch_shows_peer
	test_that 'export metrics' export_metrics
	test_that 'the timer of the metrics is active' systemctl status --no-pager timely-metrics.timer
	test_that 'metrics of the connection are exported' soon scraped 'timely_module_loaded{module="timely"} 1' \
		'timely_connections [1-9].*'
}

# The system's first kernel.
install_stage() {
	install_and_use
	test_that 'upgrade the packages while the connection is open' upgrade_in_use
	test_that 'the new modules are installed' built "$first.1" "$(uname -r)"
	test_that 'the old modules are still loaded' loaded "$first"
	test_that 'the connection still uses timely' uses timely
	test_that 'all bytes of the connection have arrived' let_go
	test_that 'each queue still has the qdisc timely' queues_are_timely
	test_that 'load the new modules' soon timely-switch reload
	test_that 'the new modules are loaded' loaded "$first.1"
	test_that 'each queue of eth0 has the qdisc timely again' queues_are_timely
	test_that 'all bytes of a transfer arrive with the new modules' transfer
	test_that 'undo the set-up of eth0' timelyctl teardown eth0
	test_that 'unload the modules' soon timely-switch unload
	test_that 'no module is loaded' no_modules
	test_that 'all sysctls and qdiscs are as before the installation' same sysctls qdiscs
}

set_up_again() { qdiscs >/run/qdiscs && timelyctl setup eth0 && queues_are_timely; }
former_qdiscs() { qdiscs | diff /run/qdiscs -; }

# What systemd keeps about units is in /run/systemd.
no_directory() { ! find / /run -xdev -iname '*timely*' -not -path '/var/log/*' -not -path '/run/systemd/*' | grep .; }

# Remove the packages, which undoes the set-up of devices.
remove() {
	test_that 'undo the export of metrics' undo_export
	test_that 'set timely up on eth0, to purge the packages without undoing that' set_up_again
	test_that 'purge the packages' apt-get -y purge timely-dkms timely-tools
	test_that 'the former qdiscs are restored' former_qdiscs
	test_that 'no module is loaded' no_modules
	test_that 'no file is left, and none is missing' same files
	test_that 'the files of other packages are as before' same changed_files
	test_that 'no directory is left' no_directory
	test_that 'the other guest still answers' transfer
}

# All of it in one boot, without upgrades.
short_stage() {
	install_and_use
	test_that 'all bytes of the connection have arrived' let_go
	test_that 'undo the set-up of eth0' timelyctl teardown eth0
	remove
	test_that 'all sysctls and qdiscs are as before the installation' same sysctls qdiscs
}

# ---- packaging/examples, read by the programs that they are for, with this network's addresses ----

# example FILE TARGET: copy a file.
example() {
	sed 's/10\.0\.0\.1\>/10.9.0.2/g; s/10\.0\.0\.2\>/10.9.0.1/g' "$share/examples/$1" >"$2"
}

# The route of two examples, by which new connections to another address of the peer use timely.
route_is_there() { ip route show 10.1.0.0/16 | tee /dev/stderr | grep -q 'congctl timely'; }
route_is_plain() { ip route show 10.1.0.0/16 | tee /dev/stderr | grep via | grep -qv congctl; }
route_is_used() {
	peer=10.1.0.1
	hold && uses timely && let_go || return 1
	peer=10.9.0.2
	hold && uses cubic && let_go
}
no_route() { ! ip route show 10.1.0.0/16 | grep .; }

# In the stage examples cloud-init has found the user data at boot.
cloud_init_is_done() {
	cloud-init status --wait --long && cat /var/log/cloud-init-output.log
	cloud-init status | grep -qx 'status: done' && ! grep ERROR /var/log/cloud-init.log
}

# Undo the unit as the README of the examples says.
unit_is_undone() {
	systemctl disable --now timely@eth0.service && rm /etc/systemd/system/timely@.service /etc/modules-load.d/timely.conf &&
		systemctl daemon-reload
}

# playbook CHANGES: Ansible applies its playbook to this system, and makes so many changes.
playbook() {
	printf '[timely]\nlocalhost ansible_connection=local\n' >/run/hosts
	ansible-playbook -i /run/hosts $share/examples/ansible/timely.yml | tee /run/playbook
	grep -E "^localhost .* changed=$1 .* failed=0 " /run/playbook
}

networkd_has_example() {
	example systemd-networkd/10-timely.network /etc/systemd/network/10-timely.network &&
		example systemd-networkd/timely-route.service /etc/systemd/system/timely-route.service &&
		systemctl daemon-reload && networkctl reload && networkctl reconfigure eth0 && soon route_is_plain
}
networkd_uses_example() { networkd_has_example && systemctl start timely-route.service && route_is_there; }
undo_networkd() {
	systemctl stop timely-route.service && rm /etc/systemd/system/timely-route.service /etc/systemd/network/10-timely.network &&
		systemctl daemon-reload && networkctl reload && networkctl reconfigure eth0 && soon no_route
}

# On a kernel without the modules the unit fails, and the device and the route are there.
networkd_goes_without() {
	networkd_has_example && ! systemctl start timely-route.service && route_is_plain &&
		networkctl status eth0 | tee /dev/stderr | grep -qF '(configured)'
}

stop_networkd() {
	systemctl stop systemd-networkd.socket systemd-networkd.service && ip address flush dev eth0
}

ifup_uses_example() { example ifupdown/timely /etc/network/interfaces.d/timely && ifup eth0 && route_is_there; }
ifup_goes_without() { example ifupdown/timely /etc/network/interfaces.d/timely && ifup eth0 && route_is_plain; }
undo_ifupdown() { ifdown eth0 && rm /etc/network/interfaces.d/timely && no_route; }

network_manager_uses_example() {
	install -m 755 $share/examples/NetworkManager/50-timely /etc/NetworkManager/dispatcher.d/ &&
		systemctl enable --now NetworkManager.service &&
		nmcli connection add con-name wire type ethernet ifname eth0 ipv4.method manual ipv4.addresses 10.9.0.1/24 &&
		nmcli connection up wire
}
undo_network_manager() {
	nmcli connection down wire && soon same qdiscs && rm /etc/NetworkManager/dispatcher.d/50-timely &&
		nmcli connection delete wire && systemctl stop NetworkManager.service
}

# Devices that appear after the sysctls are set have the qdisc timely.
sysctls_use_example() {
	cp $share/examples/sysctl.d/90-timely.conf /etc/sysctl.d/ && /usr/lib/systemd/systemd-sysctl &&
		rmmod virtio_net && systemctl start systemd-networkd.service && modprobe virtio_net && soon transfer
}

# The system's first kernel.
examples_stage() {
	test_that 'cloud-init has done what the user data says' cloud_init_is_done
	test_that 'all units are well' units_are_well
	test_that 'the other guest answers' soon transfer
	test_that 'the modules are loaded' loaded "$first.1"
	test_that 'each queue of eth0 has the qdisc timely' queues_are_timely
	test_that 'undo what cloud-init has done' unit_is_undone
	test_that 'the qdiscs are as before' same qdiscs
	test_that 'Ansible applies the playbook' playbook 3
	test_that 'each queue of eth0 has the qdisc timely' queues_are_timely
	test_that 'Ansible finds nothing to do' playbook 0
	test_that 'undo what Ansible has done' unit_is_undone
	test_that 'the qdiscs are as before' same qdiscs
	test_that 'networkd sets up the route' networkd_uses_example
	test_that 'connections on the route use timely, others do not' route_is_used
	test_that 'networkd removes the route' undo_networkd
	test_that 'stop networkd' stop_networkd
	test_that 'ifup sets up the device and the route' ifup_uses_example
	test_that 'each queue of eth0 has the qdisc timely' queues_are_timely
	test_that 'connections on the route use timely, others do not' route_is_used
	test_that 'ifdown removes the route' undo_ifupdown
	test_that 'the qdiscs are as before' same qdiscs
	test_that 'NetworkManager sets up the device' network_manager_uses_example
	test_that 'each queue of eth0 has the qdisc timely' soon queues_are_timely
	test_that 'all bytes of a transfer arrive' transfer
	test_that 'the qdiscs are as before when the device is down' undo_network_manager
	test_that 'unload the modules' soon timely-switch unload
	test_that 'load the modules that modules-load.d names' modprobe -a tcp_timely sch_timely
	test_that 'a device with timely as the default qdisc' sysctls_use_example
	test_that 'each queue of eth0 has the qdisc timely' queues_are_timely
	test_that 'a connection that stays open' hold
	test_that 'the connection uses timely' uses timely
	test_that 'all bytes of the connection have arrived' let_go
}

# After a reboot, before timely is set up for each boot.
upgrade_stage() {
	test_that 'the system has booted, and all units are well' units_are_well
	test_that 'the other guest answers' soon transfer
	test_that 'no module is loaded' no_modules
	test_that 'all sysctls and qdiscs are as before the installation' same sysctls qdiscs
	test_that 'set timely up at each boot' make_permanent
	test_that 'upgrade the kernel; DKMS builds the modules' upgrade_kernel
	test_that 'the modules of the new kernel are there' built "$first.1" "$(cat $share/new)"
	test_that 'the compiler and kbuild have not complained' quiet_build "$first.1" "$(cat $share/new)"
}

key_is_rejected() { modprobe tcp_timely 2>&1 | tee /dev/stderr | grep -q 'Key was rejected by service'; }

# Only these units have failed.
failed_are() {
	systemctl is-system-running --wait
	systemctl --failed --no-legend --plain | tee /run/failed
	[ "$(awk '{ print $1 }' /run/failed | sort | xargs)" = "$*" ]
}

# The new kernel loads only modules signed with a key that it knows, and does not know DKMS' key.
signature_stage() {
	test_that 'this is the new kernel' [ "$(uname -r)" = "$(cat $share/new)" ]
	test_that 'the other guest answers although timely is missing' soon transfer
	test_that 'the units that need the modules have failed, and no others' \
		failed_are systemd-modules-load.service timely-check.service timely@eth0.service
	test_that 'modprobe says that the key was rejected' key_is_rejected
	test_that 'doctor says that only signed modules are loaded' doctor 1 module-signature
	test_that 'no module is loaded' no_modules
	test_that 'the metrics say so' soon scraped 'timely_module_loaded{module="timely"} 0'
	test_that 'networkd sets up the route of the example without timely' networkd_goes_without
	test_that 'the other guest still answers' transfer
	test_that 'networkd removes the route' undo_networkd
	test_that 'stop networkd' stop_networkd
	test_that 'ifup sets up the device and the route of the example without timely' ifup_goes_without
	test_that 'the other guest still answers' transfer
	test_that 'ifdown removes the route' undo_ifupdown
}

# The new kernel, as it is. systemd starts timely@eth0 when udev announces the device, which may be after the boot.
kernel_stage() {
	test_that 'this is the new kernel' [ "$(uname -r)" = "$(cat $share/new)" ]
	test_that 'the system has booted, and all units are well' units_are_well
	test_that 'the other guest answers' soon transfer
	test_that 'the modules are loaded' loaded "$first.1"
	test_that 'each queue of eth0 has the qdisc timely' soon queues_are_timely
	test_that 'all bytes of a transfer arrive' transfer 0
	test_that 'all bytes from the other processor arrive' transfer 1
	test_that 'each queue has sent packets' queues_have_sent
	test_that 'a connection that stays open' hold
	test_that 'the connection uses timely' uses timely
	test_that 'flows lists the connection' names_peer timelyctl flows
	test_that 'metrics of the connection are exported' soon scraped 'timely_module_loaded{module="timely"} 1' \
		'timely_connections [1-9].*'
	test_that 'doctor finds no error' doctor_finds_no_error
	test_that 'all bytes of the connection have arrived' let_go
	test_that 'undo the set-up at boot' undo_permanent
	test_that 'restart the service whose listening socket keeps timely' systemctl restart prometheus-node-exporter
	remove
}

log_is_clean() { ! dmesg | grep -E 'BUG:|WARNING:|Oops|Call Trace'; }

if [ "$stage" = fill ]; then
	export INITRD=No
	install_timely packages || exit
	[ ! -d $share/newer ] || { install_timely newer && install_kernel; }
	exit
fi
exec >$share/tap 2>&1
"${stage}_stage"
test_that "the kernel's log is clean" log_is_clean
echo "# end of $stage"
# What a boot loader would load.
cp -L /vmlinuz $share/vmlinuz && cp -L /initrd.img $share/initrd
systemctl poweroff
