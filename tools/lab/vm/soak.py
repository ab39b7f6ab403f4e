#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Execute random actions on the modules for a given time. soak.sh runs this in its two guests.

    soak.py SEED SECONDS HOST MODULES

HOST is the number of the guest, 1 or 2. MODULES is a directory with the modules and
timelyctl. Each action is printed with its number before it starts, so that the last line
before a crash names the action; the same SEED draws the same sequence of actions. An action may
fail, because many actions contradict each other. The run fails if the kernel's log has
a warning or if a command hangs. The last line is "# soak: N actions, M hung".
"""
import ctypes
import os
import random
import socket
import subprocess
import sys
import threading
import time

SEED, SECONDS, HOST, MODULES = int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
HERE = os.path.dirname(os.path.realpath(__file__))
dice = random.Random(SEED * 1000 + HOST)
began = time.monotonic()
libc = ctypes.CDLL(None, use_errno=True)
ME, PEER = f"10.9.0.{HOST}", f"10.9.0.{3 - HOST}"
PORT = 7000
CONTROLS = ["timely", "timely_patched", "timely_paper", "timely_fast", "timely_swift", "timely_powertcp", "cubic",
            "bbr", "dctcp"]
COMPLAINTS = ("BUG:", "WARNING:", "KASAN", "UBSAN", "ODEBUG", "INFO: task", "INFO: possible",
              "suspicious RCU", "refcount_t:", "unregister_netdevice: waiting", "CFI failure")
pods = []           # names of network namespaces
failed = 0


def run(*command, timeout=60):
    """Run a command, and return whether it succeeded. Only a command that hangs is an error."""
    global failed
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        print(f"not ok - hangs: {' '.join(command)}", flush=True)
        failed += 1
        return False
    return done.returncode == 0


def enter(ns):
    """Move the calling thread to a network namespace."""
    with open(f"/run/netns/{ns}") as there:
        assert libc.setns(there.fileno(), 0) == 0


# ---- traffic ----

def serve():
    """Answer TCP connections and UDP datagrams for ever, in the first namespace."""
    for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
        listener = socket.socket(family, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((address, PORT))
        listener.listen(64)
        threading.Thread(target=accept, args=(listener,), daemon=True).start()
    sink = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sink.bind(("0.0.0.0", PORT))
    threading.Thread(target=lambda: [sink.recv(65536) for _ in iter(int, 1)], daemon=True).start()


def accept(listener):
    while True:
        client, _ = listener.accept()
        threading.Thread(target=read_all, args=(client,), daemon=True).start()


def read_all(client):
    try:
        while client.recv(1 << 18):
            pass
    except OSError:
        pass
    client.close()


def tcp(ns, to, control, seconds, switch):
    """Send for some seconds, perhaps changing the congestion control under way."""
    try:
        if ns:
            enter(ns)
        sock = socket.create_connection((to, PORT), timeout=5)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, control.encode())
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            sock.send(bytes(32768))
            if switch and switch.random() < .05:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION,
                                switch.choice(CONTROLS).encode())
        sock.close()
    except (OSError, AssertionError):
        pass


def udp(ns, to, count, size):
    try:
        if ns:
            enter(ns)
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.connect((to, PORT))
        for _ in range(count):
            sock.send(bytes(size))
    except (OSError, AssertionError):
        pass


def raw(to):
    """Send random TCP headers from a raw socket."""
    try:
        sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
        sock.connect((to, 0))
        for _ in range(20):
            sock.send(dice_raw.randbytes(20) + b"payload")
    except OSError:
        pass


dice_raw = random.Random(SEED)


def background(target, *args):
    threading.Thread(target=target, args=args, daemon=True).start()


def somewhere():
    """A namespace to send from, and an address to send to."""
    if pods and dice.random() < .5:
        return dice.choice(pods), "10.8.0.1"
    return None, dice.choice([PEER, PEER, "127.0.0.1"])


# ---- actions ----

def act_tcp():
    ns, to = somewhere()
    switch = random.Random(dice.random()) if dice.random() < .4 else None
    background(tcp, ns, to, dice.choice(CONTROLS), dice.uniform(.5, 10), switch)


def act_short():
    ns, to = somewhere()
    for _ in range(dice.randrange(1, 20)):
        background(tcp, ns, to, dice.choice(CONTROLS), .05, None)


def act_udp():
    ns, to = somewhere()
    background(udp, ns, to, dice.randrange(1, 500), dice.choice([1, 100, 1400, 20000]))


def act_raw():
    background(raw, dice.choice([PEER, "127.0.0.1"]))


def timely_options():
    options = ["timely"]
    draws = [("segment", ["0", "3000", "16k"]), ("flow_limit", ["10", "100", "1000"]),
             ("limit", ["5", "1000", "10000"]), ("slot", ["1us", "8us", "64us"]),
             ("maxrate", ["10mbit", "1gbit", "100gbit"]), ("buckets", ["64", "1024", "65536"])]
    for name, values in draws:
        if dice.random() < .3:
            options += [name, dice.choice(values)]
    for flag in ("lazy", "nolazy", "pacing", "nopacing", "ack_first", "noack_time", "noack_thin"):
        if dice.random() < .1:
            options.append(flag)
    if dice.random() < .5:
        options += ["onramp", dice.choice(["off", "20us", "50us", "1ms"]),
                    "owd", dice.choice(["relative", "rtt", "absolute"])]
    return options


def device():
    devices = ["eth0", "eth0", "br0", "many0", "lo"]
    return dice.choice(devices)


def act_qdisc():
    run("tc", "qdisc", dice.choice(["replace", "change"]), "dev", device(), "root", *timely_options())


def act_qdisc_gone():
    run("tc", "qdisc", "del", "dev", device(), "root")


def act_qdisc_other():
    run("tc", "qdisc", "replace", "dev", device(), "root", dice.choice(["fq", "pfifo_fast", "fq_codel"]))


def act_mq():
    if run("tc", "qdisc", "replace", "dev", "many0", "root", "handle", "1:", "mq"):
        for queue in range(1, 5):
            run("tc", "qdisc", "replace", "dev", "many0", "parent", f"1:{queue}", *timely_options())


def act_child():
    run("tc", "qdisc", "replace", "dev", "br0", "root", "handle", "2:", "prio")
    run("tc", "qdisc", "replace", "dev", "br0", "parent", "2:1", *timely_options())


def act_default_qdisc():
    write("/proc/sys/net/core/default_qdisc", dice.choice(["timely", "fq", "pfifo_fast"]))


def act_xps():
    write(f"/sys/class/net/many0/queues/tx-{dice.randrange(4)}/xps_cpus", dice.choice(["0", "1", "2", "3"]))


def act_pod():
    name = f"pod{dice.randrange(1000)}"
    if len(pods) >= 4 or not run("ip", "netns", "add", name):
        return
    host = dice.randrange(2, 250)
    run("ip", "link", "add", f"v{name}", "mtu", "1500", "numtxqueues", "4", "type", "veth",
        "peer", "name", "eth0", "netns", name)
    run("ip", "link", "set", f"v{name}", "master", "br0", "up")
    run("ip", "-n", name, "address", "add", f"10.8.0.{host}/24", "dev", "eth0")
    run("ip", "-n", name, "link", "set", "eth0", "up")
    if dice.random() < .5:
        run("tc", "-n", name, "qdisc", "replace", "dev", "eth0", "root", *timely_options())
    pods.append(name)


def act_pod_gone():
    if pods:
        run("ip", "netns", "del", pods.pop(dice.randrange(len(pods))))


def act_link():
    name = dice.choice(["many0", "br0", "eth0"])
    run("ip", "link", "set", name, "down")
    run("ip", "link", "set", name, "up")
    if name == "eth0":
        run("ip", "route", "replace", "10.9.0.0/24", "dev", "eth0")


def act_mtu():
    run("ip", "link", "set", dice.choice(["eth0", "many0", "br0"]), "mtu", dice.choice(["1500", "1280", "600", "1400"]))


def act_device_churn():
    kind = dice.choice(["dummy", "veth", "ifb"])
    run("ip", "link", "add", "churn0", "type", kind)
    run("ip", "link", "set", "churn0", "up")
    run("tc", "qdisc", "replace", "dev", "churn0", "root", *timely_options())
    run("ip", "link", "del", "churn0")


def act_clock():
    step = dice.choice([-3600, -1, -.001, .001, 1, 3600])
    time.clock_settime(time.CLOCK_REALTIME, time.time() + step)


def act_sysctl():
    names = os.listdir("/proc/sys/net/ipv4/timely")
    name = dice.choice(names)
    value = dice.choice(["0", "1", "100", "20000", "1000000", "auto", "-1", "x\x1b[2J"])
    if name == "preset":
        value = dice.choice(["target_delay", "linux", "paper", "patched", "fast", "ns3", "swift", "powertcp",
                              "nonsense"])
    write(f"/proc/sys/net/ipv4/timely/{name}", value)


def act_control():
    write("/proc/sys/net/ipv4/tcp_congestion_control", dice.choice(CONTROLS))


def act_keys():
    tool = f"{MODULES}/timelyctl"
    number = str(dice.randrange(1, 4))
    dice.choice([lambda: run(tool, "key", "add", number, f"{MODULES}/key"),
                 lambda: run(tool, "key", "use", number),
                 lambda: run(tool, "key", "del", number)])()


def act_acker():
    tool = f"{MODULES}/timelyctl"
    run(tool, "acker", dice.choice(["add", "add", "del"]), dice.choice(["10.9.0.0/24", "10.8.0.0/24", "127.0.0.0/8"]))


def act_show():
    tool = f"{MODULES}/timelyctl"
    run(*dice.choice([("tc", "-s", "-j", "qdisc", "show"), (tool, "onramp", "-j"), (tool, "onramp", "flows"),
                      (tool, "rtt"), (tool, "acker"), (tool, "limits"), (tool, "nic"), ("ss", "-ti")]))


def act_unload():
    """Unload some modules, which fails if they are in use, and load them again."""
    for module in dice.sample(["timely_acker", "sch_timely", "tcp_timely"], dice.randrange(1, 4)):
        run("rmmod", module)
    load()


def act_unload_all():
    for name in ("eth0", "br0", "many0", "lo"):
        run("tc", "qdisc", "del", "dev", name, "root")
    write("/proc/sys/net/ipv4/tcp_congestion_control", "cubic")
    write("/proc/sys/net/core/default_qdisc", "pfifo_fast")
    while pods:
        run("ip", "netns", "del", pods.pop())
    for module in ("timely_acker", "sch_timely", "tcp_timely", "timely"):
        run("rmmod", module)
    load()


def write(path, text):
    try:
        with open(path, "w") as file:
            file.write(text)
    except OSError:
        pass


def load():
    for module in ("timely", "tcp_timely", "sch_timely", "timely_acker"):
        if not os.path.exists(f"/sys/module/{module}"):
            run("insmod", f"{MODULES}/{module}.ko")
    write("/proc/sys/net/ipv4/tcp_allowed_congestion_control", " ".join(CONTROLS))


def set_up():
    load()
    with open(f"{MODULES}/key", "w") as key:
        key.write("00112233445566778899aabbccddeeff\n")
    for command in ("ip link set eth0 up", f"ip address add {ME}/24 dev eth0",
                    "ip link add br0 type bridge", "ip address add 10.8.0.1/24 dev br0", "ip link set br0 up",
                    "ip link add many0 numtxqueues 4 type veth peer name many1 numtxqueues 4",
                    "ip link set many1 up", "ip link set many0 up", "ip address add 10.7.0.1/24 dev many0"):
        run(*command.split())
    serve()


def complaint():
    log = subprocess.run(f"dmesg | awk -f {HERE}/ours.awk", shell=True, capture_output=True, text=True,
                         errors="replace").stdout
    return next((line for line in log.splitlines() if any(word in line for word in COMPLAINTS)), None)


def main():
    weights = {act_tcp: 12, act_short: 4, act_udp: 6, act_raw: 2, act_qdisc: 8, act_qdisc_gone: 2,
               act_qdisc_other: 2, act_mq: 2, act_child: 1, act_default_qdisc: 1, act_xps: 2, act_pod: 4,
               act_pod_gone: 3, act_link: 2, act_mtu: 2, act_device_churn: 2, act_clock: 2, act_sysctl: 4,
               act_control: 2, act_keys: 3, act_acker: 3, act_show: 3, act_unload: 2, act_unload_all: 1}
    set_up()
    actions, weight = list(weights), list(weights.values())
    number, checked = 0, time.monotonic()
    while time.monotonic() - began < SECONDS:
        action = dice.choices(actions, weight)[0]
        number += 1
        print(f"{number} {time.monotonic() - began:.0f}s {action.__name__[4:]}", flush=True)
        action()
        time.sleep(dice.choice([0, 0, .05, .5]))
        if time.monotonic() - checked > 20:
            checked = time.monotonic()
            line = complaint()
            if line:
                print(f"not ok - warning in the kernel's log: {line}", flush=True)
                sys.exit(1)
    act_unload_all()
    line = complaint()
    print(f"{'not ' if failed or line else ''}ok - soak of host {HOST}{': ' + line if line else ''}")
    print(f"# soak: {number} actions, {failed} hung", flush=True)
    sys.exit(1 if failed or line else 0)


main()
