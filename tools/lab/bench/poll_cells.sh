#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Make all runs of poll.sh. poll.sh starts this script in the guest.
#
#   poll_cells.sh PROGRAMS MODULES CONNECTIONS POLLS REPEATS
#
# PROGRAMS is the directory of timelyctl and many_sockets, MODULES that of the modules. Prints
# "begin COMMAND" before a command is repeated POLLS times, and "end COMMAND POLLS" after that.

set -eu

programs=$1
modules=$2
connections=$3
polls=$4
repeats=$5

here() { ip netns exec here "$@"; }
count() { here "$programs/timelyctl" metrics | sed -n 's/^timely_connections //p'; }

# poll COMMAND: run timelyctl COMMAND again and again, but record and watch once, as they look each second
poll() {
	echo "begin $1"
	case $1 in
	record*)
		# shellcheck disable=SC2086 # a list of words
		here "$programs/timelyctl" $1 duration "$polls" >/dev/null ;;
	watch*)
		# A terminal of 24 lines; watch counts with the program script, which passes the lines on.
		{ sleep "$polls"; printf q; } | here script -qec "$programs/timelyctl $1" /dev/null >/dev/null ;;
	*)
		# shellcheck disable=SC2016 # for the inner shell, where $1 is a list of words
		here sh -c 'n=0; while [ $n -lt "$2" ]; do "$0" $1 >/dev/null || exit; n=$((n + 1)); done' \
			"$programs/timelyctl" "$1" "$polls" ;;
	esac
	echo "end $1 $polls"
}

insmod "$modules/timely.ko"
insmod "$modules/tcp_timely.ko"
ip netns add here
ip -n here link set lo up
here "$programs/many_sockets" tcp 127.0.0.1 "$connections" "$connections" 4000000 here timely >/dev/null &
tries=0
while [ "$(count)" -ne "$connections" ]; do
	tries=$((tries + 1))
	[ $tries -le 600 ] || { echo "poll bench: there are $(count) connections" >&2; exit 1; }
	sleep 1
done
for _ in $(seq "$repeats"); do
	for command in --version "record - limit 20" watch "flows limit 20" "flows port 1" flows metrics top; do
		poll "$command"
		sleep 1
	done
done
[ "$(count)" -eq "$connections" ] || { echo "poll bench: connections have ended" >&2; exit 1; }
