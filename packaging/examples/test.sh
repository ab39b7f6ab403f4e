#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Check the examples with the programs that read them, without changing this machine: systemd's unit,
# ifupdown, Ansible, YAML, the script for NetworkManager. TAP on standard output.
#
# selftests/net/timely/examples.sh applies them in a guest.

set -u

here=$(cd "$(dirname "$0")" && pwd)
top=$here/../..
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM HUP
cd "$here" || exit 1
python=/usr/bin/python3
number=0
failed=0

# check NAME COMMAND...: report whether the command succeeds; its output is in $work/output
check() {
	name=$1
	shift
	number=$((number + 1))
	if "$@" >"$work/output" 2>&1; then
		echo "ok $number - $name"
	else
		echo "not ok $number - $name"
		sed 's/^/# /' "$work/output"
		failed=$((failed + 1))
	fi
}

# Each module of the list is one that this project builds.
modules_exist() {
	grep -v '^#' modules-load.d/timely.conf >"$work/modules"
	[ -s "$work/modules" ] || return 1
	while read -r module; do
		grep -q "^obj-.* $module\.o" "$top/Kbuild" || {
			echo "no module $module in Kbuild"
			return 1
		}
	done <"$work/modules"
}

# systemd-analyze prints unknown settings as warnings, but succeeds.
units_are_valid() {
	mkdir -p "$work/root/etc/systemd/system" "$work/root/usr/local/sbin" "$work/root/lib/systemd"
	cp -r /lib/systemd/system "$work/root/lib/systemd"
	cp systemd/timely@.service systemd-networkd/timely-route.service ../monitoring/timely-* "$work/root/etc/systemd/system"
	cp "$work/timelyctl" "$work/root/usr/local/sbin"
	cp "$work/timelyctl" "$work/root/usr/local/sbin/ip"
	cp "$work/timelyctl" "$work/root/lib/systemd/systemd-networkd-wait-online"
	systemd-analyze verify --man=no --root="$work/root" timely@eth0.service timely-route.service timely-metrics.timer \
		timely-metrics.service timely-exporter.socket timely-exporter@1.service >"$work/verify" 2>&1 || {
		cat "$work/verify"
		return 1
	}
	! grep timely "$work/verify"
}

# The unit's commands, with the device's name in the place of %I.
unit_runs_timelyctl() {
	grep -q '^ExecStart=timelyctl setup %I$' systemd/timely@.service &&
		grep -q '^ExecStop=-timelyctl teardown %I$' systemd/timely@.service
}

# Without installing the package: it would become the network manager of this machine.
fetch_ifupdown() {
	(cd "$work" && { apt-get download ifupdown || {
		"$top/tools/setup.sh" apt-utils && apt-get update && apt-get download ifupdown; }; } &&
		dpkg-deb -x ifupdown_*.deb ifupdown && mkdir state)
}

# plans COMMAND LINE...: ifup or ifdown would run these commands
plans() {
	"$work/ifupdown/sbin/$1" --no-act --force --verbose -i ifupdown/timely \
		--state-dir "$work/state" eth0 >"$work/plan" 2>&1 || {
		cat "$work/plan"
		return 1
	}
	cat "$work/plan"
	shift
	for line; do
		grep -qF -- "$line" "$work/plan" || {
			echo "missing: $line"
			return 1
		}
	done
}

# The files in the user data are the examples of this directory.
user_data_is_valid() {
	head -n 1 cloud-init/user-data.yaml | grep -qx '#cloud-config' &&
		"$python" -I - cloud-init/user-data.yaml <<-'END'
			import sys, yaml
			with open(sys.argv[1], encoding="utf-8") as file:
			    data = yaml.safe_load(file)
			assert set(data) == {"write_files", "runcmd"}, data
			for file in data["write_files"]:
			    name = file["path"].replace("/etc/systemd/system", "systemd")
			    with open(name.replace("/etc/", ""), encoding="utf-8") as example:
			        assert file["content"] == example.read(), name
			    assert file["permissions"] == "0644"
			for command in data["runcmd"]:
			    assert all(isinstance(word, str) for word in command), command
		END
}

playbook_is_valid() {
	ansible-playbook --syntax-check -i 'timely,' ansible/timely.yml &&
		ansible-playbook --list-tasks -i 'timely,' ansible/timely.yml >"$work/tasks" &&
		[ "$(grep -c 'TAGS: \[\]' "$work/tasks")" -eq 5 ]
}

# dispatched DEVICE EVENT COMMAND: NetworkManager's event for a device runs this command of timelyctl
dispatched() {
	: >"$work/log"
	PATH=$work:$PATH NetworkManager/50-timely "$1" "$2" && [ "$(cat "$work/log")" = "$3" ]
}

"$top/tools/setup.sh" systemd python3-yaml ansible-core shellcheck >&2 || exit 1
printf '#!/bin/sh\necho "$*" >>%s/log\n' "$work" >"$work/timelyctl"
chmod +x "$work/timelyctl"

echo "TAP version 13"
check 'modules-load.d: the modules exist' modules_exist
check 'systemd: the units are valid' units_are_valid
check 'systemd: the unit runs timelyctl' unit_runs_timelyctl
check 'ifupdown: the package can be fetched' fetch_ifupdown
# shellcheck disable=SC2016 # a variable that ifupdown sets
check 'ifupdown: ifup' plans ifup 'timelyctl setup $IFACE || true' \
	'ip route add 10.1.0.0/16 via 10.0.0.1 congctl timely || ip route add 10.1.0.0/16 via 10.0.0.1' \
	'ip addr add 10.0.0.2/255.255.255.0'
# shellcheck disable=SC2016
check 'ifupdown: ifdown' plans ifdown 'timelyctl teardown $IFACE || true'
check 'cloud-init: the user data is valid' user_data_is_valid
check 'ansible: the playbook is valid' playbook_is_valid
check 'NetworkManager: shellcheck' shellcheck NetworkManager/50-timely
check 'NetworkManager: the device is up' dispatched eth0 up 'setup eth0'
check 'NetworkManager: the device is down' dispatched eth0 down 'teardown eth0'
check 'NetworkManager: other devices' dispatched eth1 up ''
check 'NetworkManager: other events' dispatched eth0 dhcp4-change ''
echo "1..$number"
echo "# $((number - failed)) passed, $failed failed"
[ $failed -eq 0 ]
