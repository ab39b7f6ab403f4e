#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Random frames through a full qdisc "trim", and random netlink messages that change its options.
# TIMELY_FUZZ_SEED sets the seed. Topology: h1 -- h2, a veth pair; h1 sends the frames.

. "$(dirname "$0")/trim_lib.sh"

zcat /proc/config.gz | grep -q '^CONFIG_KASAN=y' && kasan=1 || kasan=
rounds=$([ -n "$kasan" ] && echo 300 || echo 1500)
seed=${TIMELY_FUZZ_SEED:-1}

hosts() {
	must insmod "$modules/sch_trim.ko"
	pair_up
	below_tbf h1 eth0
}

# Bursts of 20 frames: IPv4 and IPv6 with options, extension headers, fragments, IPsec and VLAN tags;
# a third of them has random bytes in the headers. All frames must leave, be counted as dropped, or
# be sent back.
frames() {
	trim_packets <<-EOF
		import errno
		rng = random.Random($seed)
		MACS = bytes.fromhex("020000000002020000000001")

		def word(value):
		    return struct.pack(">H", value & 0xffff)

		def ipv4(length):
		    options = rng.choice([0, 0, 0, 4, 40])
		    proto = rng.choice([17, 17, 17, 6, 50, 51, 4, 47, rng.randrange(256)])
		    head = bytearray(bytes([0x45 + options // 4, rng.randrange(256)]) + word(length) + word(1) +
		                     word(rng.choice([0, 0x4000, 0, 0x2000, 7])) + bytes([64, proto, 0, 0]) +
		                     socket.inet_aton(H1) + socket.inet_aton(H2) + bytes(options))
		    head[10:12] = word(~checksum(bytes(head)))
		    return bytes(head) + word(5000) + word(9) + word(length - len(head)) + word(0)

		def ipv6(length):
		    kinds = [rng.choice([0, 43, 60, 44]) for _ in range(rng.choice([0, 0, 0, 1, 2, 30]))]
		    last = rng.choice([17, 17, 17, 6, 50, 51])
		    head = struct.pack(">IHBB", 0x60000000 | rng.randrange(1 << 28), max(length - 40, 0),
		                       (kinds + [last])[0], 64)
		    head += rng.choice([bytes.fromhex("fd" + "00" * 14 + "01"), bytes(16), b"\xff" * 16]) * 2
		    for i in range(len(kinds)):
		        head += bytes([(kinds + [last])[i + 1], rng.choice([0, 0, 1, 255])]) + rng.randbytes(6)
		    return head + word(5000) + word(9) + word(length - len(head)) + word(0)

		def frame():
		    length = rng.choice([rng.randrange(1500), rng.randrange(100, 1490), 1480])
		    six = rng.random() < 0.4
		    link = MACS if rng.random() < 0.9 else rng.randbytes(12)
		    for _ in range(rng.choice([0, 0, 0, 1, 2, 3])):
		        link += word(0x8100) + word(rng.randrange(4096))
		    link += word(0x86dd if six else 0x0800) if rng.random() < 0.95 else rng.randbytes(2)
		    data = bytearray((link + (ipv6 if six else ipv4)(length)).ljust(length + len(link), b"x"))
		    data = data[:1514]
		    if rng.random() < 0.33:
		        for _ in range(rng.randrange(1, 12)):
		            data[rng.randrange(12, min(len(data), 100))] = rng.randrange(256)
		    return bytes(data)

		# Without this socket h1 would answer returned packets by ICMP.
		back = Sink(ns="h1", addr=H1, port=5000)
		with inside("h1"):
		    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
		raw.bind(("eth0", 0))
		raw.setsockopt(socket.SOL_SOCKET, SO_SNDBUFFORCE, 1 << 26)
		sent = 0
		for number in range($rounds):
		    if number % 20 == 0:
		        tc("qdisc", "change", "dev", "eth0", "parent", "1:1", "handle", "2:", "trim",
		           "size", str(rng.choice([64, 65, 128, 200, 1000])), "limit", str(rng.randrange(1, 10)),
		           "header_limit", str(rng.choice([64, 500, 12000])), rng.choice(["return", "noreturn"]))
		    for _ in range(20):
		        try:
		            raw.send(frame())
		            sent += 1
		        except OSError as error:
		            # ENOBUFS: the qdisc has dropped the frame. The socket itself refuses others.
		            sent += error.errno == errno.ENOBUFS
		    time.sleep(0.0005)
		time.sleep(0.2)
		q = trim("h1", "eth0")
		reasons = ["dropped_dscp", "dropped_not_ip", "dropped_fragment", "dropped_ipsec", "dropped_headers",
		           "dropped_memory", "dropped_control", "dropped_trim_packets"]
		say({name: q[name] for name in ["trim_packets", "returned", "short_packets", *reasons]})
		result(sent=sent, left=q["left"], trimmed=q["trim_packets"], returned=q["returned"],
		       fragments=q["dropped_fragment"], ipsec=q["dropped_ipsec"], headers=q["dropped_headers"],
		       all=q["packets"] + q["returned"] + q["return_failed"] + q["drops"],
		       # A change to shorter queues drops packets, too.
		       others=q["drops"] - sum(q[name] for name in reasons))
	EOF
	expect left -eq 0
	expect all -eq "$sent" "frames are missing"
	expect others -ge 0
	expect others -le $((rounds / 20))
	expect sent -ge $((rounds * 15))
	expect returned -ge 1
	for kind in trimmed fragments ipsec headers; do
		expect $kind -ge 100
	done
}

# Messages with options of random lengths and values. A refused message changes nothing, and an
# accepted one only what it names.
messages() {
	below_tbf h1 eth0
	trim_packets <<-EOF
		rng = random.Random($seed)
		LENGTHS = {1: 4, 2: 4, 3: 4, 4: 1, 5: 8, 6: 8, 7: 4, 8: 1, 9: 1}
		RANGES = {1: (1, 10**6), 2: (0, 2**32 - 1), 3: (64, 65535), 4: (0, 63), 5: (0, 2**64 - 1),
		          6: (0, 2**64 - 1), 7: (1, 10**6), 8: (0, 2), 9: (0, 1)}
		with inside("h1"):
		    netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
		    index = socket.if_nametoindex("eth0")
		netlink.bind((0, 0))

		def attribute(kind, data):
		    return struct.pack("=HH", len(data) + 4, kind) + data + bytes(-len(data) % 4)

		def change(options):
		    body = struct.pack("=BxxxiIII", 0, index, 0x20000, 0x10001, 0)
		    body += attribute(1, b"trim\0") + attribute(2, options)
		    netlink.send(struct.pack("=IHHII", 16 + len(body), 36, 5, 1, 0) + body)
		    answer = netlink.recv(65536)
		    return struct.unpack_from("=i", answer, 16)[0]

		def options():
		    found = [q for q in qdiscs("h1").values() if q["kind"] == "trim"]
		    return {kind: int.from_bytes(data, sys.byteorder) for kind, data in attributes(found[0]["options"])
		            if kind in LENGTHS}

		def value(kind):
		    low, high = RANGES[kind]
		    top = 256 ** LENGTHS[kind] - 1
		    return rng.choice([low, high, max(low - 1, 0), min(high + 1, top), top, rng.randint(low, high)])

		accepted = refused = wrong = 0
		before = options()
		for number in range($rounds):
		    good, asked, message = True, {}, b""
		    for kind in rng.sample(list(LENGTHS), rng.randrange(5)):
		        length = LENGTHS[kind] if rng.random() < 0.9 else rng.randrange(12)
		        asked[kind] = value(kind)
		        data = asked[kind].to_bytes(LENGTHS[kind], sys.byteorder)
		        if length != LENGTHS[kind]:
		            data = rng.randbytes(length)
		            good = False
		        elif not RANGES[kind][0] <= asked[kind] <= RANGES[kind][1]:
		            good = False
		        message += attribute(kind, data)
		    if rng.random() < 0.1:
		        message += attribute(rng.randrange(11, 200), rng.randbytes(rng.randrange(9)))
		        good = False
		    error = change(message)
		    after = options()
		    if error:
		        refused += 1
		        wrong += good or after != before
		    else:
		        accepted += 1
		        # The limit of the header queue that is shown may be computed from others.
		        wrong += not good or any(after[kind] != asked.get(kind, before[kind])
		                                 for kind in LENGTHS if kind != 2)
		    before = after
		say(accepted, "accepted,", refused, "refused")
		result(accepted=accepted, refused=refused, wrong=wrong)
	EOF
	expect wrong -eq 0
	expect accepted -ge $((rounds / 5))
	expect refused -ge $((rounds / 5))
}

run_cases hosts frames messages
