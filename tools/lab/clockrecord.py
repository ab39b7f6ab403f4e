#!/usr/bin/python3 -I
# SPDX-License-Identifier: GPL-2.0
"""Record what timely-clockd says beside the true clocks of test NICs, in a guest of the lab.

    clockrecord.py EVERY_MS PAGE_DIRECTORY HOST...

A host is a network namespace with the clock page PAGE_DIRECTORY/HOST and a test NIC, whose attributes are
in /run/sys/HOST. Prints one line of JSON for each host and time, until it is killed:

    [CLOCK_MONOTONIC, NIC's clock, CLOCK_MONOTONIC_RAW, header of the page, address, name of the NIC,
     probe_ns, counters, [peer...]]

Header and peers have the members of struct timely_clock_page and struct timely_clock_peer in their order.
"""
import json
import os
import struct
import sys
import time

# struct timely_clock_page (tools/clockd/timely_clock.h): up to own, up to counters, and a peer.
HEAD, NAMES, PEER = struct.Struct("=QIIIIQQqQQQqIIqqQQ"), struct.Struct("=16s16s16sQII"), struct.Struct("=16sIIqqQqqQqQQQQQQQ")
PEERS = 32


def page_of(path):
    """A page as JSON; None if the daemon is changing it or has not begun."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except FileNotFoundError:
        return None
    head = HEAD.unpack_from(data)
    own, nic, _, probe_ns, _, count = NAMES.unpack_from(data, HEAD.size)
    counters_at, peers_at = HEAD.size + NAMES.size, head[2] - PEERS * PEER.size
    if head[3] % 2 or not head[2] or not probe_ns:
        return None
    counters = struct.unpack_from(f"={(peers_at - counters_at) // 8}Q", data, counters_at)
    peers = [PEER.unpack_from(data, peers_at + i * PEER.size) for i in range(count)]
    return [head, own.hex(), nic.rstrip(b"\0").decode(), probe_ns, counters,
            [(peer[0].hex(), *peer[1:]) for peer in peers]]


def main(every_ms, pages, *hosts):
    """Record until the process is killed."""
    clocks = [os.open(f"/run/sys/{host}/class/net/eth0/hwnic/phc_now", os.O_RDONLY) for host in hosts]
    while True:
        time.sleep(int(every_ms) / 1000)
        for host, clock in zip(hosts, clocks):
            if not (page := page_of(f"{pages}/{host}")):
                continue
            phc_ns, mono_ns = map(int, os.pread(clock, 64, 0).split())
            raw_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)
            print(json.dumps([mono_ns, phc_ns, raw_ns, *page], separators=(",", ":")), flush=True)


main(*sys.argv[1:])
