# SPDX-License-Identifier: GPL-2.0
"""The common time of hosts, for probe_rtt.sh.

	common_time.py set VALID_MS BOUND_NS HOST...    give hosts a common time, as a clock daemon does
	common_time.py refusals HOST                    print how many wrong requests were not refused
	common_time.py probing COUNT HOST...            print which percentage of the senders were in a base-RTT
	                                                probe, in the middle of COUNT probes by the common time

The common time is CLOCK_MONOTONIC plus OFFSET: no real-time clock is near.
"""

import ctypes
import errno
import os
import struct
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.realpath(__file__)))
from packets import inside
from timelyctl_genl import CONNECTION_GET, DUMP, REQUEST, Family, attr

COMMON_TIME_SET, COMMON_TIME, CONNECTION = 17, 57, 53
OFFSET = 3_000_000_000_012_345_678
PERIOD = 1 << 26
STATE_AT, SENDING, PROBE = 103, 2, 8
MS = 1_000_000

# PR_SET_TIMERSLACK: time.sleep() without the default slack of 50 us
ctypes.CDLL(None).prctl(29, 1, 0, 0, 0)


def family_of(host):
	with inside(host):
		return Family()


def put(family, valid_ms=5000, bound=0, drift=0, growth=0, age=0):
	"""Set the common time: the errno and the kernel's message."""
	at = time.monotonic_ns() - age
	return family.ask(COMMON_TIME_SET, attr(COMMON_TIME, struct.pack(
		"=qQIiII", OFFSET, at, valid_ms, drift, bound, growth)))[:2]


def refusals(host):
	"""Requests that must be refused."""
	family = family_of(host)
	cases = [
		({"valid_ms": 100001}, "0 to 100000"), ({"age": -1000 * MS}, "past time"),
		({"drift": 1000001}, "drift_ppb"), ({"drift": -(1 << 31)}, "drift_ppb"),
		({"bound": 1000000001}, "bound_ns"), ({"growth": 1000001}, "growth_ppb"),
	]
	bad = 0
	for over, words in cases:
		error, said = put(family, **over)
		if error != errno.EINVAL or words not in said:
			print(over, error, said, file=sys.stderr)
			bad += 1
	bad += family.ask(COMMON_TIME_SET)[0] != errno.EINVAL
	bad += family.ask(COMMON_TIME_SET, attr(COMMON_TIME, bytes(31)))[0] not in (errno.EINVAL, errno.ERANGE)
	return bad


def probing(count, hosts):
	"""Percentage of senders in a probe."""
	families = [family_of(host) for host in hosts]
	senders = in_probe = 0
	for _ in range(count):
		left = PERIOD - (time.monotonic_ns() + OFFSET) % PERIOD
		time.sleep((left + 0.7 * MS) / 1e9)
		for family in families:
			for answer in family.ask(CONNECTION_GET, flags=REQUEST | DUMP)[2]:
				state = answer[CONNECTION][STATE_AT]
				senders += bool(state & SENDING)
				in_probe += state & SENDING and state & PROBE and 1
	return 100 * in_probe // max(senders, 1)


def main(verb, *args):
	if verb == "set":
		for host in args[2:]:
			error, words = put(family_of(host), int(args[0]), int(args[1]))
			assert not error, (host, error, words)
	elif verb == "refusals":
		print(refusals(*args))
	else:
		print(probing(int(args[0]), args[1:]))


main(*sys.argv[1:])
