# SPDX-License-Identifier: GPL-2.0
"""Tests of ideal networks: times alone, known answers, laws, comparisons with slow references."""
import math
import random
import unittest
from collections.abc import Callable
from fractions import Fraction

import support   # noqa: F401, sets the path of the package
from timelylab import ideal
from timelylab.ideal import Fair, Message, Network, ShortestFirst
from timelylab.scenario import load_scenario

# Four hosts with links of 8 Gb/s: a byte takes a ns. The delay is 1000 ns.
NET = Network(hosts=5, gbit=8, delay_ns=1000, mtu=1500, headers=14, stored=False, leaf_hosts=0,
              leaf_capacity=math.inf, reply=False, connect=False)
CLOS = NET._replace(hosts=6, leaf_hosts=2, leaf_capacity=1.5)
# A message of ten full frames, and the time of its frames.
SIZE, WORK = 14_480, 15_140
RULES = (Fair, ShortestFirst)


class Alone(unittest.TestCase):
    """alone_ns(), by hand"""

    def test_frames(self) -> None:
        """A frame has 66 bytes of headers and up to 1448 of payload."""
        for size, wire in ((1, 67), (1448, 1514), (1449, 1514 + 67), (2896, 2 * 1514)):
            self.assertEqual(ideal.alone_ns(NET, size), wire + 1000)

    def test_rounding(self) -> None:
        """The time of each frame is rounded down: 1514 bytes take 1211.2 ns at 10 Gb/s."""
        net = NET._replace(gbit=10)
        self.assertEqual(ideal.alone_ns(net, 1448 * 1000 + 10), 1211 * 1000 + 60 + 1000)

    def test_reply(self) -> None:
        """A reply takes the same time again."""
        self.assertEqual(ideal.alone_ns(NET._replace(reply=True), SIZE), 2 * (WORK + 1000))

    def test_handshake(self) -> None:
        """SYN and SYN-ACK take 74 bytes and a delay each; an ACK of 66 bytes is before the data."""
        net = NET._replace(connect=True)
        self.assertEqual(ideal.alone_ns(net, SIZE), 2 * 1074 + 66 + WORK + 1000)

    def test_stored(self) -> None:
        """On the testbed of NICs frames have 90 bytes of headers, and the switch stores each."""
        net = NET._replace(headers=38, stored=True)
        for size, wire in ((1, 2 * 91), (1448, 2 * 1538), (1449, 2 * 1538 + 91)):
            self.assertEqual(ideal.alone_ns(net, size), wire + 1000)
        self.assertEqual(ideal.times(net, [(0, 1449, 1, 2)], Fair), [2 * 1538 + 91 + 1000])
        self.assertEqual(ideal.alone_ns(net._replace(connect=True), 1),
                         2 * (1000 + 2 * 98) + 90 + 2 * 91 + 1000)

    def test_request(self) -> None:
        """A request takes 130 bytes; its answers share the link, but for the port's burst."""
        asked = 130 + 1000
        self.assertEqual(ideal.request_ns(NET, 1, SIZE, 3028), asked + WORK + 1000)
        self.assertEqual(ideal.request_ns(NET, 40, SIZE, 3028),
                         asked + 1514 + 40 * WORK - 3028 + 1000)
        net = NET._replace(headers=38, stored=True)
        self.assertEqual(ideal.request_ns(net, 40, 1448, 0),
                         2 * 154 + 1000 + 1538 + 40 * 1538 + 1000)

    def test_narrow_leaf(self) -> None:
        """A leaf with less capacity than a host limits messages to other leafs only."""
        net = CLOS._replace(leaf_capacity=.5)
        self.assertEqual(ideal.alone_ns(net, SIZE, 1, 2), WORK + 1000)
        self.assertEqual(ideal.alone_ns(net, SIZE, 1, 3), 2 * WORK + 1000)

    def test_networks(self) -> None:
        """The networks of two scenarios. In the Clos the leafs' links are never a limit."""
        net = ideal.network_of(load_scenario("onramp-websearch"), False, 4)
        self.assertEqual(net, Network(11, 10, 8100, 1500, 14, False, 0, math.inf, False, False))
        net = ideal.network_of(load_scenario("clos"), True, 1)
        self.assertEqual(net, Network(16, 10, 8100, 1500, 14, False, 4, 4, True, False))
        self.assertEqual(ideal.links_of(net, 1, 16), (0, 31))
        self.assertEqual(ideal.alone_ns(net, 65_536), 2 * (45 * 1211 + int(442 * .8) + 8100))

    def test_same_as_ideal(self) -> None:
        """A message that meets no other takes its time alone in both ideal networks."""
        for net in (NET, CLOS, NET._replace(reply=True), NET._replace(connect=True, reply=True),
                    CLOS._replace(leaf_capacity=.5)):
            for rule in RULES:
                for receiver in (2, 3):
                    self.assertAlmostEqual(
                        ideal.times(net, [(500, SIZE, 1, receiver)], rule)[0],
                        ideal.alone_ns(net, SIZE, 1, receiver))


class Known(unittest.TestCase):
    """Answers by hand. Times are without the delay of 1000 ns, as parts of WORK."""

    def check(self, rule: type[ideal.Sharing], messages: list[Message],
              expected: list[float], net: Network = NET) -> None:
        """The times of messages, in units of WORK after the latency."""
        found = [(took - net.delay_ns) / WORK for took in ideal.times(net, messages, rule)]
        self.assertEqual([round(x, 9) for x in found], [round(x, 9) for x in expected])

    def test_shared_link(self) -> None:
        """Two messages to one host: half of the link each, or one after the other."""
        messages = [(0, SIZE, 1, 3), (0, SIZE, 2, 3)]
        self.check(Fair, messages, [2, 2])
        self.check(ShortestFirst, messages, [1, 2])

    def test_other_links(self) -> None:
        """Messages without a common link do not disturb each other, nor do the two directions."""
        for rule in RULES:
            self.check(rule, [(0, SIZE, 1, 2), (0, SIZE, 2, 1), (0, SIZE, 3, 4)], [1, 1, 1])

    def test_max_min(self) -> None:
        """Three share the link to host 4; the one from host 1 leaves the rest to its neighbour.

        Rates: 2/3 and three times 1/3. After 1.5 the first message has ended. After 3 the others.
        """
        self.check(Fair, [(0, SIZE, 1, 3), (0, SIZE, 1, 4), (0, SIZE, 2, 4), (0, SIZE, 5, 4)],
                   [1.5, 3, 3, 3])

    def test_shortest_chain(self) -> None:
        """The second message needs links of the first and of the third, and waits for both."""
        messages = [(0, SIZE, 1, 3), (0, 2 * SIZE, 1, 4), (0, SIZE, 2, 4)]
        self.check(ShortestFirst, messages, [1, 3, 1])
        self.check(Fair, messages, [2, 3, 2])

    def test_preempt(self) -> None:
        """A short message interrupts a long one, but not one with less work left."""
        long, short = (0, 10 * SIZE, 1, 3), (WORK, SIZE, 2, 3)
        self.check(ShortestFirst, [long, short], [11, 1])
        self.check(ShortestFirst, [long, (9 * WORK + WORK // 2, SIZE, 2, 3)], [10, 1.5])
        self.check(Fair, [long, short], [11, 2])

    def test_ties(self) -> None:
        """Equal messages at the same time end one after the other, or all together."""
        messages = [(7, SIZE, 1, 2)] * 50
        self.check(Fair, messages, [50] * 50)
        self.check(ShortestFirst, messages, list(range(1, 51)))

    def test_reply(self) -> None:
        """The reply starts when the request has arrived, and shares links with other messages."""
        net = NET._replace(reply=True, delay_ns=0)
        self.check(Fair, [(0, SIZE, 1, 2), (0, SIZE, 1, 3)], [4, 4], net)
        self.check(ShortestFirst, [(0, SIZE, 1, 2), (0, SIZE, 1, 3)], [2, 3], net)
        latency = ideal.times(net._replace(delay_ns=70), [(0, SIZE, 1, 2)], Fair)[0]
        self.assertEqual(latency, 2 * (WORK + 70))

    def test_leaf(self) -> None:
        """Two hosts share 1.5 links of a leaf; messages below the leaf do not use these links."""
        messages = [(0, SIZE, 1, 3), (0, SIZE, 2, 5), (0, SIZE, 3, 4)]
        self.check(Fair, messages, [4 / 3, 4 / 3, 1], CLOS)
        self.check(ShortestFirst, messages, [1, 1.5, 1], CLOS)

    def test_end(self) -> None:
        """A message that has not arrived by the end of the run has no time."""
        messages = [(0, SIZE, 1, 2), (0, SIZE, 1, 2)]
        for end, expected in ((WORK + 1000, [WORK + 1000, math.inf]), (WORK, [math.inf] * 2)):
            self.assertEqual(ideal.times(NET, messages, ShortestFirst, end), expected)


def random_messages(rng: random.Random, net: Network, count: int) -> list[Message]:
    """Messages at random times between random hosts, many of them at the same time."""
    out = []
    for _ in range(count):
        sender, receiver = rng.sample(range(1, net.hosts + 1), 2)
        out.append((rng.choice((0, 5_000, rng.randrange(100_000))), rng.randrange(1, 60_000),
                    sender, receiver))
    return out


class Transfer:
    """A transfer of the references: work left, work that will follow, links, rank, direction."""

    def __init__(self, net: Network, rank: int, message: Message, back: bool) -> None:
        _, size, sender, receiver = message
        ends = (receiver, sender) if back else (sender, receiver)
        self.left = Fraction(ideal.wire_ns(net, size))
        self.rest = 0 if back or not net.reply else ideal.wire_ns(net, size)
        self.links, self.rank, self.back = ideal.links_of(net, *ends), rank, back


Rates = Callable[[list[Fraction], list[Transfer]], list[Fraction]]


def raise_together(capacity: list[Fraction], transfers: list[Transfer]) -> list[Fraction]:
    """Max-min fairness by its definition: raise all rates until a link is full, then the others."""
    rates, going = [Fraction(0)] * len(transfers), set(range(len(transfers)))
    while going:
        used = [sum((rates[i] for i, t in enumerate(transfers) if link in t.links), Fraction(0))
                for link in range(len(capacity))]
        count = [sum(link in transfers[i].links for i in going) for link in range(len(capacity))]
        step = min((capacity[link] - used[link]) / n for link, n in enumerate(count) if n)
        for i in going:
            rates[i] += step
        full = {link for link, n in enumerate(count) if capacity[link] == used[link] + n * step}
        going = {i for i in going if not full.intersection(transfers[i].links)}
    return rates


def one_by_one(capacity: list[Fraction], transfers: list[Transfer]) -> list[Fraction]:
    """Shortest remaining first: each transfer takes what those with less work left it."""
    room, rates = list(capacity), [Fraction(0)] * len(transfers)
    for i in sorted(range(len(transfers)), key=lambda i: (transfers[i].left + transfers[i].rest,
                                                         transfers[i].rank)):
        rates[i] = min(room[link] for link in transfers[i].links)
        for link in transfers[i].links:
            room[link] -= rates[i]
    return rates


def reference(net: Network, messages: list[Message], rule: Rates) -> list[Fraction]:
    """times() with exact numbers, and without groups and heaps."""
    capacity = [Fraction(x) for x in ideal.capacities(net)]
    order = sorted(range(len(messages)), key=messages.__getitem__)
    waiting = [(Fraction(messages[i][0]), rank, False) for rank, i in enumerate(order)]
    active: list[Transfer] = []
    out, now = [Fraction(0)] * len(messages), Fraction(0)
    while waiting or active:
        rates = rule(capacity, active)
        times = [now + t.left / rate for t, rate in zip(active, rates) if rate]
        then = min(times + [at for at, _, _ in waiting])
        for transfer, rate in zip(active, rates):
            transfer.left -= rate * (then - now)
        now = then
        for transfer in [t for t in active if not t.left]:
            active.remove(transfer)
            index = order[transfer.rank]
            out[index] = now + int(net.delay_ns) - messages[index][0]
            if net.reply and not transfer.back:
                waiting.append((now + int(net.delay_ns), transfer.rank, True))
        for start in [start for start in waiting if start[0] <= now]:
            waiting.remove(start)
            active.append(Transfer(net, start[1], messages[order[start[1]]], start[2]))
    return out


class Laws(unittest.TestCase):
    """What holds for any messages"""

    def test_references(self) -> None:
        """The fast networks agree with the references."""
        rng = random.Random(1)
        for case in range(60):
            net = (NET, NET._replace(reply=True), CLOS, CLOS._replace(reply=True))[case % 4]
            messages = random_messages(rng, net, rng.randrange(2, 25))
            for rule, slow in ((Fair, raise_together), (ShortestFirst, one_by_one)):
                with self.subTest(case=case, rule=rule.__name__):
                    found = ideal.times(net, messages, rule)
                    for took, exact in zip(found, reference(net, messages, slow)):
                        self.assertAlmostEqual(took, float(exact), places=3)

    def test_permutation(self) -> None:
        """The order of the rows changes nothing."""
        rng = random.Random(2)
        messages = random_messages(rng, NET, 300)
        order = rng.sample(range(300), 300)
        for rule in RULES:
            found = ideal.times(NET, messages, rule)
            mixed = ideal.times(NET, [messages[i] for i in order], rule)
            self.assertEqual(mixed, [found[i] for i in order])

    def test_work(self) -> None:
        """A link with work is never idle: the last message to one host ends when a queue would."""
        rng = random.Random(3)
        messages = [(at, size, sender, 1) for at, size, sender, _ in
                    random_messages(rng, NET, 200) if sender != 1]
        free = 0
        for at, size, _, _ in sorted(messages):
            free = max(free, at) + ideal.wire_ns(NET, size)
        for rule in RULES:
            found = ideal.times(NET, messages, rule)
            last = max(took + message[0] for took, message in zip(found, messages))
            self.assertAlmostEqual(last, free + 1000, places=3)

    def test_slowdown(self) -> None:
        """No message is faster than alone, and on one link shortest first has the least mean."""
        rng = random.Random(4)
        for net in (NET, CLOS, NET._replace(reply=True, connect=True)):
            messages = random_messages(rng, net, 200)
            for rule in RULES:
                for took, (_, size, *ends) in zip(ideal.times(net, messages, rule), messages):
                    self.assertGreater(took, ideal.alone_ns(net, size, *ends) - 1e-3)
        messages = [(at, size, 1, 2) for at, size, _, _ in random_messages(rng, NET, 200)]
        fair, shortest = (sum(ideal.times(NET, messages, rule)) for rule in RULES)
        self.assertLess(shortest, fair)

    def test_kept(self) -> None:
        """The same messages are computed once."""
        messages = random_messages(random.Random(5), NET, 20)
        first = ideal.all_times(NET, messages, 1e9)
        self.assertIs(ideal.all_times(NET, list(messages), 1e9), first)
        self.assertIsNot(ideal.all_times(NET, messages[1:], 1e9), first)
        self.assertEqual(list(first["ideal_fair"]), ideal.times(NET, messages, Fair, 1e9))


if __name__ == "__main__":
    unittest.main()
