# SPDX-License-Identifier: GPL-2.0
"""Completion times of a workload's messages on an idle network, and on an ideal fluid network.

The time alone
--------------
A packet of h1 to h2 takes this way (see network.py), and waits at these places:

    h1's qdisc      no rate, so that a sender that is not paced does not wait here
    in-h1 (netem)   the frame's time at the link rate, after the frames before it; then delay_ns
    h2 (tbf)        nothing: the bucket has two frames when the network is idle, and fills as
                    fast as frames arrive. The ports between the switches of a Clos are faster, and
                    have no delay
    h2's TCP        nothing: processing takes no virtual time

So the last byte of a message arrives after delay_ns and the time that all its frames need at the
sender's link. Each frame has up to mtu - 52 bytes of payload and 66 bytes of headers: Ethernet, IP,
TCP with timestamps. netem rounds the time of each frame down to a ns, as wire_ns() does. A reply
takes the same time again. A message on a new connection (pool = 0) first waits for the handshake:
a SYN one way and a SYN-ACK back, of 74 bytes each, and data leaves behind the handshake's last ACK.

On the testbed of NICs (see nicbed.py) a frame has 24 more bytes on the wire, and the switch sends a
frame on only when it has the whole frame. So the last byte arrives later by the time of the
message's largest frame.

The time alone is the least time of any sender. TCP takes longer, even on an idle network, because
connections start with a small window or a low rate.

The ideal network
-----------------
A message is a fluid. The only limits are the links of hosts and, in a Clos, all links of a leaf to
the spines together: an ideal network spreads load over the spines evenly. Work is measured in ns of
a host's link, so that the link's capacity is 1. A message takes all its links at the same time. A
message that meets no other takes its time alone: its work, and the delays and the handshake above.
Nothing else takes capacity: neither ACKs nor requests of [incast] nor pings. There are two
rules; both know all messages under way and act at once:

    fair            each message has its max-min fair share
    shortest first  the message with the least work left gets all that it can use, then the
                    message with the next least (SRPT, shortest remaining processing time)
"""
import hashlib
import heapq
import math
import threading
from array import array
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .clos import hosts_per_leaf, is_clos
from .common import Scenario
from .topology import TCP_HEADERS, link_headers

SYN, ACK = 60, 52               # bytes of these packets
REQUEST = 64                    # bytes of a request of [incast]

# A message: arrival at the sender in ns, size in bytes, numbers of sender and receiver (from 1).
Message = tuple[int, int, int, int]
Links = tuple[int, ...]


class Network(NamedTuple):
    """The network of a scenario, and how the workload uses it."""

    hosts: int
    gbit: float                 # rate of a host's link
    delay_ns: float             # of a host's link
    mtu: int
    headers: int                # bytes of a frame besides the packet
    stored: bool                # the switch sends a frame on when it has the whole frame
    leaf_hosts: int             # hosts below each leaf; 0: one switch
    leaf_capacity: float        # of a leaf's links to the spines, in links of hosts
    reply: bool
    connect: bool               # each message opens a connection


def network_of(scenario: Scenario, reply: bool, pool: int) -> Network:
    """The network of a cell's scenario."""
    topo = scenario["topology"]
    leaf_hosts, capacity = 0, math.inf
    if is_clos(topo):
        leaf_hosts = hosts_per_leaf(topo)
        capacity = topo["spines"] * topo["uplink_gbit"] / topo["host_gbit"]
    return Network(topo["hosts"], topo["host_gbit"], topo["delay_ns"], topo["mtu"],
                   link_headers(scenario), "nic" in scenario, leaf_hosts, capacity, reply,
                   pool == 0)


def frame_ns(net: Network, size: int) -> int:
    """Time of the frame of a packet on a host's link."""
    return int((size + net.headers) * 8 / net.gbit)


def wire_ns(net: Network, size: int) -> int:
    """Time of a message's frames on a host's link, one way."""
    payload = net.mtu - TCP_HEADERS
    full, rest = divmod(size, payload)
    return full * frame_ns(net, net.mtu) + (frame_ns(net, rest + TCP_HEADERS) if rest else 0)


def latency_ns(net: Network, size: int) -> float:
    """Time from when a message's last byte has left the sender until it has arrived."""
    largest = min(size + TCP_HEADERS, net.mtu)
    return net.delay_ns + (frame_ns(net, largest) if net.stored else 0)


def connect_ns(net: Network) -> float:
    """Time from the arrival of a message until its data may leave."""
    if not net.connect:
        return 0
    hops = 2 if net.stored else 1
    return 2 * (net.delay_ns + hops * frame_ns(net, SYN)) + frame_ns(net, ACK)


def links_of(net: Network, sender: int, receiver: int) -> Links:
    """The links of a message, by number: see capacities()."""
    hosts = net.hosts
    links = (sender - 1, hosts + receiver - 1)
    # Links between switches that carry all that the hosts below a leaf send are never a limit.
    if not net.leaf_hosts or net.leaf_capacity >= net.leaf_hosts:
        return links
    leaf, other = (sender - 1) // net.leaf_hosts, (receiver - 1) // net.leaf_hosts
    if leaf == other:
        return links
    return links + (2 * hosts + leaf, 2 * hosts + hosts // net.leaf_hosts + other)


def capacities(net: Network) -> list[float]:
    """Capacities of links: from each host, to each host, from each leaf up, to each leaf down."""
    leafs = net.hosts // net.leaf_hosts if net.leaf_hosts else 0
    return [1.] * (2 * net.hosts) + [net.leaf_capacity] * (2 * leafs)


def alone_ns(net: Network, size: int, sender: int = 1, receiver: int = 2) -> float:
    """The time of a message that is alone on the network, see above."""
    slowest = 1. if len(links_of(net, sender, receiver)) == 2 else min(1., net.leaf_capacity)
    directions = 2 if net.reply else 1
    return connect_ns(net) + directions * (wire_ns(net, size) / slowest + latency_ns(net, size))


def request_ns(net: Network, answers: int, size: int, burst: int) -> float:
    """The least time of a request of [incast], on the network with the rate of the asker's link.

    A member gets the request and sends a frame. From then on the switch sends the answers by the
    asker's link, one after the other. burst: bytes that the switch's port sends at once.
    """
    asked = frame_ns(net, REQUEST + TCP_HEADERS) + latency_ns(net, REQUEST)
    first = 0 if net.stored else frame_ns(net, min(size + TCP_HEADERS, net.mtu))
    rest = answers * wire_ns(net, size) - burst * 8 / net.gbit
    return asked + max(wire_ns(net, size), first + rest) + latency_ns(net, size)


# --- sharing of links ---------------------------------------------------------

class Group:
    """The transfers that take the same links.

    queue: a heap of (key, rank, rest); the first transfer of the heap ends first. left: the work
    left of the first transfer. rate: of each transfer that is served.
    """

    __slots__ = ("links", "queue", "left", "rate")

    def __init__(self, links: Links) -> None:
        self.links = links
        self.queue: list[tuple[float, int, float]] = []
        self.left = 0.
        self.rate = 0.


class Sharing:
    """A rule that gives rates to transfers. A transfer has a rank, which breaks ties."""

    def __init__(self, capacity: Sequence[float]) -> None:
        self.capacity = capacity
        self.groups: dict[Links, Group] = {}        # those with transfers
        self.users: list[dict[Links, Group]] = [{} for _ in capacity]   # the groups at each link
        self.count = [0] * len(capacity)            # transfers at each link
        self.now = 0.
        self.next: Group | None = None              # the group in which a transfer ends first
        self.finish = math.inf                      # time at which it ends

    def advance(self, now: float) -> None:
        """Serve all transfers until a time."""
        span, self.now = now - self.now, now
        for group in self.groups.values():
            group.left -= group.rate * span

    def start(self, links: Links, work: float, rest: float, rank: int) -> None:
        """Add a transfer. rest: work of the same message that will follow the transfer."""
        group = self.groups.get(links)
        if not group:
            group = self.groups[links] = Group(links)
            for link in links:
                self.users[link][links] = group
        for link in links:
            self.count[link] += 1
        self.push(group, work, rest, rank)

    def end(self) -> int:
        """Remove the transfer that ends first, and return its rank."""
        group = self.next
        assert group
        rank = self.pop(group)
        for link in group.links:
            self.count[link] -= 1
        if not group.queue:
            del self.groups[group.links]
            for link in group.links:
                del self.users[link][group.links]
        return rank

    def share(self) -> None:
        """Give new rates to all transfers, and find the one that ends first."""
        self.set_rates()
        self.next, least = None, math.inf
        for group in self.groups.values():
            if group.rate:
                span = group.left / group.rate
                if span < least:
                    self.next, least = group, span
        # Rounding may have served a little more than the work left.
        self.finish = self.now + max(0., least)

    def push(self, group: Group, work: float, rest: float, rank: int) -> None:
        """Add a transfer to a group."""
        raise NotImplementedError

    def pop(self, group: Group) -> int:
        """Remove the first transfer of a group, which has ended, and return its rank."""
        raise NotImplementedError

    def set_rates(self) -> None:
        """Set the rates of all groups."""
        raise NotImplementedError


class Fair(Sharing):
    """Max-min fairness: no message can have more without taking from one that has no more.

    All transfers of a group have the same rate. So keys are the work that a transfer would have got
    when this one ends, if that transfer had been in the group from the start.
    """

    def push(self, group: Group, work: float, rest: float, rank: int) -> None:
        served = group.queue[0][0] - group.left if group.queue else 0.
        heapq.heappush(group.queue, (served + work, rank, rest))
        group.left = group.queue[0][0] - served

    def pop(self, group: Group) -> int:
        served, rank, _ = heapq.heappop(group.queue)
        if group.queue:
            group.left = group.queue[0][0] - served
        return rank

    def set_rates(self) -> None:
        """Progressive filling: the link with the least share for each transfer decides first."""
        room, count = list(self.capacity), list(self.count)
        for group in self.groups.values():
            group.rate = 0.
        busy = [link for link, transfers in enumerate(count) if transfers]
        # Each round sets the rates of all groups at one link, so that there are at most as many
        # rounds as links.
        while busy:
            share, first = math.inf, -1
            for link in busy:
                if room[link] < share * count[link]:
                    share, first = room[link] / count[link], link
            for group in self.users[first].values():
                if not group.rate:
                    group.rate, transfers = share, len(group.queue)
                    for link in group.links:
                        count[link] -= transfers
                        room[link] -= transfers * share
            busy = [link for link in busy if count[link] and link != first]


class ShortestFirst(Sharing):
    """Shortest remaining first: in the order of the work left, each message takes what is free.

    The first transfer of a group takes all that the others of the group could use. A transfer's key
    is its message's work left, with that of a reply; the key of the first one is set when another
    is added.
    """

    def push(self, group: Group, work: float, rest: float, rank: int) -> None:
        if group.queue:
            _, first, its_rest = group.queue[0]
            group.queue[0] = (group.left + its_rest, first, its_rest)
        heapq.heappush(group.queue, (work + rest, rank, rest))
        group.left = group.queue[0][0] - group.queue[0][2]

    def pop(self, group: Group) -> int:
        _, rank, _ = heapq.heappop(group.queue)
        if group.queue:
            group.left = group.queue[0][0] - group.queue[0][2]
        return rank

    def set_rates(self) -> None:
        room = list(self.capacity)
        for _, _, group in sorted([(group.left + group.queue[0][2], group.queue[0][1], group)
                                   for group in self.groups.values()]):
            group.rate = min(room[link] for link in group.links)
            if group.rate:
                for link in group.links:
                    room[link] -= group.rate


# --- all messages -------------------------------------------------------------

def times(net: Network, messages: Sequence[Message], sharing: type[Sharing],
          end: float = math.inf) -> list[float]:
    """The time of each message in ns; infinite if a message has not ended at a time.

    The order of the messages changes nothing: the messages are taken by time, then by size.
    """
    order = sorted(range(len(messages)), key=messages.__getitem__)
    out = [math.inf] * len(messages)
    network, first, replied = sharing(capacities(net)), connect_ns(net), bytearray(len(messages))
    starts = [(messages[i][0] + first, rank) for rank, i in enumerate(order)]
    while starts or network.next:
        now = min(network.finish, starts[0][0] if starts else math.inf)
        if now > end:
            break
        network.advance(now)
        if network.finish <= now:
            rank = network.end()
            arrived = now + latency_ns(net, messages[order[rank]][1])
            if net.reply and not replied[rank]:
                replied[rank] = 1
                heapq.heappush(starts, (arrived, rank))
            elif arrived <= end:
                out[order[rank]] = arrived - messages[order[rank]][0]
        while starts and starts[0][0] <= now:
            _, rank = heapq.heappop(starts)
            _, size, sender, receiver = messages[order[rank]]
            ends, work = (sender, receiver), wire_ns(net, size)
            if replied[rank]:
                ends = (receiver, sender)
            network.start(links_of(net, *ends), work,
                          work if net.reply and not replied[rank] else 0, rank)
        network.share()
    return out


# The networks by the names of their figures.
RULES: dict[str, type[Sharing]] = {"ideal_fair": Fair, "ideal_srpt": ShortestFirst}

_found: dict[tuple[Network, bytes, float], dict[str, "array[float]"]] = {}
_lock = threading.Lock()


def all_times(net: Network, messages: Sequence[Message],
              end: float) -> dict[str, "array[float]"]:
    """times() of each of the RULES.

    Cells with the same seed have the same messages, so that the results are kept for the next cell.
    """
    key = (net, digest(messages), end)
    with _lock:
        if key not in _found:
            _found[key] = {name: array("d", times(net, messages, rule, end))
                           for name, rule in RULES.items()}
        return _found[key]


def digest(messages: Iterable[Message]) -> bytes:
    """A number that tells lists of messages apart."""
    return hashlib.sha256(array("q", (n for message in messages for n in message))).digest()
