# SPDX-License-Identifier: GPL-2.0
"""Completion times of a workload's messages on an idle network, and on an ideal fluid network.

The time alone
--------------
A packet of h1 to h2 takes this way (see network.py), and waits at these places:

    h1's qdisc      no rate, so that a sender that is not paced does not wait here
    in-h1 (netem)   the frame's time at the link rate, after the frames before it; then delay_ns
    h2 (tbf)        nothing: the bucket has two frames when the network is idle, and fills as fast as
                    frames arrive. The ports between the switches of a Clos are faster, and have
                    no delay
    h2's TCP        nothing: processing takes no virtual time

So the last byte of a message arrives after delay_ns and the time that all its frames need at the
sender's link. Each frame has up to mtu - 52 bytes of payload and 66 bytes of headers: Ethernet, IP,
TCP with timestamps. netem rounds the time of each frame down to a ns, as wire_ns() does. A reply
takes the same time again. A message on a new connection (pool = 0) first waits for the handshake:
a SYN one way and a SYN-ACK back, of 74 bytes each, and data leaves behind the handshake's last ACK.

The time alone is the least time of any sender. TCP takes longer, even on an idle network, because
connections start with a small window or a low rate.

The ideal network
-----------------
A message is a fluid. The only limits are the links of hosts and, in a Clos, all links of a leaf to
the spines together: an ideal network spreads load over the spines evenly. Work is measured in ns of
a host's link, so that the link's capacity is 1. A message takes all its links at the same time, and
ends one latency after its last drop left: a message that meets no other takes its time alone.
Nothing else takes capacity: neither ACKs nor requests of [incast] nor pings. There are two
networks, which know everything and decide at once:

    fair            each message has its max-min fair share
    shortest first  the message with the least work left has what it can use, then the next one (SRPT)
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

TCP_HEADERS = 52                # bytes of IP and TCP with timestamps
ETHERNET = 14                   # bytes of a frame's Ethernet header, as tc counts frames
SYN, ACK = 74, 66               # bytes of these frames

# A message: arrival at the sender in ns, size in bytes, numbers of sender and receiver (from 1).
Message = tuple[int, int, int, int]
Links = tuple[int, ...]


class Network(NamedTuple):
    """The network of a scenario, and how the workload uses it."""

    hosts: int
    gbit: float                 # rate of a host's link
    delay_ns: float             # of a host's link
    mtu: int
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
    return Network(topo["hosts"], topo["host_gbit"], topo["delay_ns"], topo["mtu"], leaf_hosts,
                   capacity, reply, pool == 0)


def frame_ns(net: Network, size: int) -> int:
    """Time of a frame on a host's link."""
    return int(size * 8 / net.gbit)


def wire_ns(net: Network, size: int) -> int:
    """Time of a message's frames on a host's link, one way."""
    payload, headers = net.mtu - TCP_HEADERS, TCP_HEADERS + ETHERNET
    full, rest = divmod(size, payload)
    return full * frame_ns(net, net.mtu + ETHERNET) + (frame_ns(net, rest + headers) if rest else 0)


def connect_ns(net: Network) -> float:
    """Time from the arrival of a message until its data may leave."""
    if not net.connect:
        return 0
    return 2 * (net.delay_ns + frame_ns(net, SYN)) + frame_ns(net, ACK)


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
    return connect_ns(net) + directions * (wire_ns(net, size) / slowest + net.delay_ns)


# --- sharing of links ---------------------------------------------------------

class Group:
    """The transfers that take the same links.

    queue: a heap of (key, rank, rest); the first transfer of the heap ends first. rate: of each
    transfer that is served. served: only Fair uses this, see there.
    """

    __slots__ = ("links", "queue", "rate", "served")

    def __init__(self, links: Links) -> None:
        self.links = links
        self.queue: list[tuple[float, int, float]] = []
        self.rate = 0.
        self.served = 0.


class Sharing:
    """A rule that gives rates to transfers. A transfer has a rank, which breaks ties."""

    def __init__(self, capacity: Sequence[float]) -> None:
        self.capacity = capacity
        self.groups: dict[Links, Group] = {}        # those with transfers
        self.now = 0.
        self.next: Group | None = None              # the group in which a transfer ends first
        self.finish = math.inf                      # time at which it ends

    def advance(self, now: float) -> None:
        """Serve all transfers until a time."""
        span, self.now = now - self.now, now
        for group in self.groups.values():
            if group.rate:
                self.serve(group, group.rate * span)

    def start(self, links: Links, work: float, rest: float, rank: int) -> None:
        """Add a transfer. rest: work of the same message that will follow the transfer."""
        group = self.groups.get(links)
        if not group:
            group = self.groups[links] = Group(links)
        heapq.heappush(group.queue, (self.key(group, work, rest), rank, rest))

    def end(self) -> int:
        """Remove the transfer that ends first, and return its rank."""
        group = self.next
        assert group
        _, rank, _ = heapq.heappop(group.queue)
        if not group.queue:
            del self.groups[group.links]
        return rank

    def share(self) -> None:
        """Give new rates to all transfers, and find the one that ends first."""
        self.set_rates()
        self.next, self.finish = None, math.inf
        for group in self.groups.values():
            if group.rate:
                finish = self.now + max(0., self.left(group)) / group.rate
                if finish < self.finish:
                    self.next, self.finish = group, finish

    def key(self, group: Group, work: float, rest: float) -> float:
        """The key of a new transfer in the heap of a group."""
        raise NotImplementedError

    def serve(self, group: Group, work: float) -> None:
        """Each transfer of the group that has a rate has got this work done."""
        raise NotImplementedError

    def left(self, group: Group) -> float:
        """The work left of the group's first transfer."""
        raise NotImplementedError

    def set_rates(self) -> None:
        """Set the rates of all groups."""
        raise NotImplementedError


class Fair(Sharing):
    """Max-min fairness: no message can have more without taking from one that has no more.

    All transfers of a group have the same rate. "served" is the work that a transfer would have
    got since the group is there, and a transfer's key is the value of "served" at which it ends.
    """

    def key(self, group: Group, work: float, rest: float) -> float:
        return group.served + work

    def serve(self, group: Group, work: float) -> None:
        group.served += work

    def left(self, group: Group) -> float:
        return group.queue[0][0] - group.served

    def set_rates(self) -> None:
        """Progressive filling: the link with the least share for each transfer decides first."""
        room, count = list(self.capacity), [0] * len(self.capacity)
        users: list[list[Group]] = [[] for _ in room]
        for group in self.groups.values():
            group.rate = 0.
            for link in group.links:
                count[link] += len(group.queue)
                users[link].append(group)
        busy = [link for link in range(len(room)) if count[link]]
        # Each round sets the rates of all groups at a link, so that there are at most as many rounds
        # as links.
        while busy:
            share, first = math.inf, -1
            for link in busy:
                if room[link] < share * count[link]:
                    share, first = room[link] / count[link], link
            for group in users[first]:
                if not group.rate:
                    group.rate, transfers = share, len(group.queue)
                    for link in group.links:
                        count[link] -= transfers
                        room[link] -= transfers * share
            busy = [link for link in busy if count[link] and link != first]


class ShortestFirst(Sharing):
    """Shortest remaining first: in the order of the work left, each message takes what is free.

    The first transfer of a group takes all that the others of the group could use. A transfer's key
    is its message's work left, with that of a reply.
    """

    def key(self, group: Group, work: float, rest: float) -> float:
        return work + rest

    def serve(self, group: Group, work: float) -> None:
        key, rank, rest = group.queue[0]
        group.queue[0] = (max(rest, key - work), rank, rest)

    def left(self, group: Group) -> float:
        return group.queue[0][0] - group.queue[0][2]

    def set_rates(self) -> None:
        room = list(self.capacity)
        for _, _, group in sorted((*group.queue[0][:2], group) for group in self.groups.values()):
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
            if net.reply and not replied[rank]:
                replied[rank] = 1
                heapq.heappush(starts, (now + net.delay_ns, rank))
            elif now + net.delay_ns <= end:
                out[order[rank]] = now + net.delay_ns - messages[order[rank]][0]
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
