# SPDX-License-Identifier: GPL-2.0
"""What the kernel measured, beside what the test NICs know.

Read are the trace events of tcp_timely, one for each ACK that confirms something, and
the logs of the NICs: when each frame arrived (R) or had left (T), and how much the
port's ring held (Q). ACKs are joined to R by the NIC's stamp, to T by the sequence
number that ends their segment. All that is made of them is made from "acks", a
list of rows as ACK says.
"""
import bisect
import os

MS = 1_000_000
# One ACK. Times are ns; None: not known.
ACK = ("t_ns",          # when TCP processed it, after the start
       "host",          # index into "watch"
       "result",        # what became of it, or why nothing
       "rtt_ns",        # the RTT that was used, 0 if none was
       "error_ns",      # its arrival as mapped, less the true one
       "late_ns",       # when TCP processed it, less its true arrival
       "native_ns",     # by the NIC's clock: its arrival less when its segment had left
       "software_ns",   # the RTT, had it ended when TCP processed the ACK
       "queue_bytes")   # what the port held when the segment's end arrived there
# Verdicts by which a step is noticed: none of them uses a hardware stamp.
NOTICED = ("doubtful", "driver", "tcp")


def events(path):
    """Trace events, as dicts of text."""
    with open(path, encoding="ascii", errors="replace") as file:
        for line in file:
            _, found, fields = line.partition("timely_rtt: ")
            if found:
                yield dict(field.split("=", 1) for field in fields.split())


class Truth:
    """A host's R and T records. Ports are the host's own first, sequence numbers ends."""

    def __init__(self, path):
        self.by_stamp, self.by_ack, self.left = {}, {}, {}
        with open(path, encoding="ascii") as file:
            for line in file:
                word = line.split()
                if not word or word[0] not in "RT":
                    continue
                mono, phc, sport, dport, seq, ack = map(int, word[1:7])
                if word[0] == "T":
                    self.left.setdefault((sport, dport, seq), (mono, phc))
                else:
                    self.by_stamp[phc, dport, sport] = mono
                    self.by_ack.setdefault((dport, sport, ack), (mono, phc))

    def arrival(self, stamp_ns, ports, una):
        """When the ACK arrived, and the NIC's clock then."""
        mono = self.by_stamp.get((stamp_ns, *ports)) if stamp_ns else None
        return (mono, stamp_ns) if mono else self.by_ack.get((*ports, una))


class Queue:
    """Bytes in the port's ring, over time."""

    def __init__(self, path):
        self.times, self.bytes = [], []
        with open(path, encoding="ascii") as file:
            for line in file:
                word = line.split()
                if word and word[0] == "Q":
                    self.times.append(int(word[1]))
                    self.bytes.append(int(word[2]))

    def at(self, mono):
        i = bisect.bisect_right(self.times, mono) - 1
        return self.bytes[i] if i >= 0 else 0

    def histogram(self, start, end, step):
        """How often it held how much, looked at each @step ns."""
        counts, i, size = {}, bisect.bisect_right(self.times, start) - 1, 0
        for now in range(start, end, step):
            while i + 1 < len(self.times) and self.times[i + 1] <= now:
                i += 1
            size = self.bytes[i] if i >= 0 else 0
            counts[size] = counts.get(size, 0) + 1
        return sorted(counts.items())


def row(event, host, truth, queue, zero, to_port_ns):
    now, arrived, sent = (int(event[key]) for key in ("now_ns", "arrived_ns", "sent_ns"))
    rtt, stamp, ports = int(event["rtt_ns"]), int(event["stamp_ns"]), \
        (int(event["sport"]), int(event["dport"]))
    came = truth.arrival(stamp, ports, int(event["una"]))
    left = truth.left.get((*ports, int(event["end_seq"])))
    used = event["result"] in ("hardware", "driver", "tcp")
    out = [now - zero, host, event["result"], rtt, None, None, None, None, None]
    if came:
        out[4] = arrived - came[0] if arrived and used else None
        out[5] = now - came[0]
    if came and left and used:
        out[6] = came[1] - left[1]
    if used and sent:
        out[7] = rtt + now - (arrived or now)
    if queue and left:
        out[8] = queue.at(left[0] + to_port_ns)
    return out


def collect(base, scenario, nic, raw):
    """The rows of a cell, from the files that it left: added to @raw."""
    topo, zero = scenario["topology"], raw["zero_ns"]
    queue = Queue(base + ".truth-sw") if nic["queue_truth"] else None
    truths = [Truth(f"{base}.truth-{host}") for host in nic["watch"]]
    # Which host's flow it is tells the server's port.
    owner = {flow["port"]: nic["watch"].index(flow["from"]) for flow in raw["flows"]
             if flow["from"] in nic["watch"]}
    rows = []
    if nic["watch"]:
        for event in events(base + ".trace"):
            host = owner.get(int(event["dport"]))
            # Connections that are closed have no stamps.
            if host is not None and int(event["now_ns"]) < zero + raw["end_ns"]:
                rows.append(row(event, host, truths[host], queue, zero, topo["delay_ns"] // 2))
    raw["acks_columns"], raw["acks"] = ACK, rows
    if queue:
        run = scenario["run"]
        start = zero + run["warmup_ms"] * MS
        raw["queue_bytes_counts"] = queue.histogram(start, start + run["measure_ms"] * MS, 1000)
    for name in os.listdir(os.path.dirname(base)):
        if name.startswith(os.path.basename(base) + "."):
            os.unlink(os.path.join(os.path.dirname(base), name))


# --- figures ------------------------------------------------------------------

def quantile(ordered, q):
    return ordered[min(len(ordered) - 1, max(0, -int(-q * len(ordered) // 1) - 1))]


def spread(values, scale=1):
    ordered = sorted(values)
    if not ordered:
        return {"count": 0}
    return {"count": len(ordered), "min": ordered[0] / scale, "max": ordered[-1] / scale,
            "avg": sum(ordered) / len(ordered) / scale,
            **{f"p{round(q * 1000) / 10:g}".replace(".", ""): quantile(ordered, q) / scale
               for q in (.01, .1, .5, .9, .99, .999)}}


def columns(rows, *names):
    indices = [ACK.index(name) for name in names]
    for line in rows:
        picked = [line[i] for i in indices]
        if None not in picked:
            yield picked if len(picked) > 1 else picked[0]


def event_name(event):
    for key in ("step_ns", "set_ns", "real_step_ns", "drift_ppb", "wander_ppb_per_s"):
        if key in event:
            return f"{key} {event[key]:+d}" if "step" in key else f"{key} {event[key]}"
    return "?"


def event_figures(rows, start, end):
    """What was done with ACKs that arrived in [start, end) after an event at start."""
    mine = [line for line in rows if line[5] is not None and start <= line[0] - line[5] < end]
    noticed = next((line[0] for line in mine if line[2] in NOTICED), None)
    used = [(line[0], abs(line[4])) for line in mine if line[2] == "hardware"]
    wrong = [t for t, error in used if error > 1000]
    again = next((t for t, error in used if noticed is not None and t > noticed and error <= 1000),
                 None)
    return {"noticed_ms": None if noticed is None else (noticed - start) / MS,
            "sure_again_ms": None if again is None else (again - start) / MS,
            "used": len(used), "used_wrong": len(wrong),
            "wrong_until_ms": (max(wrong) - start) / MS if wrong else 0,
            "error_max_ns": max((error for _, error in used), default=0),
            "driver_outside": sum(1 for line in mine if line[2] == "driver"
                                  and line[4] is not None and not 0 <= line[4] <= line[5])}


def worst(scenario, found):
    """The greatest of each figure, over steps that one packet shows (large), over those
    that hide among late ones (small), and over those that are as good as a change of the
    host's lateness (tiny)."""
    late = scenario["nic"].get("noise_ns", 0)
    out = {}
    for event in scenario["events"]:
        step = abs(event.get("step_ns", event.get("set_ns", 0) or late + 1)
                   if "real_step_ns" not in event else 0)
        kind = "real" if not step else "large" if step > late else \
            "small" if step > late / 4 else "tiny"
        mine = out.setdefault(kind, {})
        for key, value in found[event_name(event)].items():
            known = mine.get(key, value)
            mine[key] = None if value is None or known is None else max(value, known)
    return out


def figures(scenario, raw, start, end):
    rows = raw.get("acks")
    if not rows:
        return {}
    window = [line for line in rows if start <= line[0] < end]
    out = {"results": {}}
    for line in window:
        out["results"][line[2]] = out["results"].get(line[2], 0) + 1
    total = len(window)
    hardware = [line for line in window if line[2] == "hardware"]
    completions = [line for line in window if line[2] in ("hardware", "driver", "tcp")]
    out["hardware_share"] = len(hardware) / max(1, len(completions))
    out["refused_share"] = out["results"].get("doubtful", 0) / max(1, total)
    # What is left out counts as well for the line.
    out["pairs_per_s"] = round(total * 1e9 / (end - start)) if hardware else None
    errors = list(columns(hardware, "error_ns"))
    out["error_ns"] = spread([abs(e) for e in errors])
    out["bias_ns"] = sum(errors) / len(errors) if errors else None
    out["used_wrong"] = sum(1 for e in errors if abs(e) > 1000)
    out["late_us"] = spread(columns(window, "late_ns"), 1000)
    out["used_us"] = spread(columns(completions, "rtt_ns"), 1000)
    out["hardware_us"] = spread(columns(hardware, "rtt_ns"), 1000)
    out["native_us"] = spread(columns(completions, "native_ns"), 1000)
    out["software_us"] = spread(columns(completions, "software_ns"), 1000)
    out["nic_queue_us"] = spread([rtt - native for rtt, native, error in
                                  columns(hardware, "rtt_ns", "native_ns", "error_ns")], 1000)
    first = min(line[0] for line in rows)
    sure = next((line[0] for line in rows if line[2] == "hardware"), None)
    out["sure_after_ms"] = None if sure is None else (sure - first) / MS
    if happened := scenario.get("events"):
        times = [event["at_ms"] * MS for event in happened] + [end]
        out["events"] = {event_name(event): event_figures(rows, at, until)
                         for event, at, until in zip(happened, times, times[1:])}
        out["worst"] = worst(scenario, out["events"])
    if "queue_bytes_counts" in raw:
        out |= queue_figures(scenario, raw, hardware)
    return out


def cdf_of_counts(counts):
    total, seen, out = sum(n for _, n in counts), 0, []
    for value, n in counts:
        seen += n
        out.append((value, seen / total))
    return out


def inverse(cdf, q):
    return next(value for value, share in cdf if share >= q)


def queue_ns(size, scenario):
    """How long a port needs for that many bytes in its ring."""
    topo = scenario["topology"]
    frame = topo["mtu"] + 14
    return size * (frame + 24) / frame * 8 / topo["server_gbit"]


def base_ns(scenario):
    """RTT of a segment in an empty network, beyond its serialisation at the NIC: links,
    the port's time for its last frame, and two links' for an ACK of 66 bytes."""
    topo = scenario["topology"]
    ack = (66 + 24) * 8
    return 2 * topo["delay_ns"] + (topo["mtu"] + 38) * 8 / topo["server_gbit"] + \
        ack / topo["server_gbit"] + ack / topo["host_gbit"]


def queue_figures(scenario, raw, hardware):
    """RTTs less what an empty network takes, beside the port's queue."""
    queue = [(queue_ns(size, scenario), share) for size, share in
             cdf_of_counts(raw["queue_bytes_counts"])]
    base = base_ns(scenario)
    waits = sorted(rtt - base for rtt in columns(hardware, "rtt_ns"))
    distance = {q: quantile(waits, q / 100) - inverse(queue, q / 100) for q in range(10, 100)}
    own = [rtt - base - queue_ns(size, scenario)
           for rtt, size in columns(hardware, "rtt_ns", "queue_bytes")]
    worst = max(distance, key=lambda q: abs(distance[q]))
    return {"queueing_us": spread(waits, 1000),
            "queue_us": {f"p{q}": inverse(queue, q / 100) / 1000 for q in (1, 10, 50, 90, 99)},
            "cdf_distance_us": abs(distance[worst]) / 1000, "cdf_distance_at": f"p{worst}",
            "own_queue_difference_us": spread(own, 1000)}


# --- lines for plots ------------------------------------------------------------

STEPS = [i / 200 for i in range(1, 198)] + [.99 + i / 2000 for i in range(21)]


def cdf(values, scale=1000):
    ordered = sorted(values)
    return [(quantile(ordered, q) / scale, q) for q in STEPS] if ordered else []


def thin(points):
    """As many as a plot can show."""
    out, last = [], -1
    for value, share in points:
        if share >= last + .005 or value == points[-1][0]:
            out.append((value, share))
            last = share
    return out


def plot_lines(scenario, raw, start, end, what):
    """CDFs of a cell: [(name, points)]."""
    window = [line for line in raw.get("acks", []) if start <= line[0] < end]
    hardware = [line for line in window if line[2] == "hardware"]
    completions = [line for line in window if line[2] in ("hardware", "driver", "tcp")]
    if what == "error":
        return [("|mapped - true|", cdf([abs(e) for e in columns(hardware, "error_ns")], 1))]
    if what == "queue":
        base = base_ns(scenario)
        waits = [rtt - base for rtt in columns(hardware, "rtt_ns")]
        return [("queueing delay by RTTs", cdf(waits)),
                ("queue at the switch, each us",
                 thin([(queue_ns(size, scenario) / 1000, share)
                       for size, share in cdf_of_counts(raw["queue_bytes_counts"])]))]
    lines = [("hardware stamps", cdf(columns(hardware, "rtt_ns"))),
             ("software stamps", cdf(columns(completions, "software_ns")))]
    if what == "native":
        lines.insert(1, ("NIC's clock alone", cdf(columns(completions, "native_ns"))))
    return lines
