#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Run `timelyctl watch` at a pseudo-terminal: watch.py TIMELYCTL CASE, see the end of this file.

FAKE_FAMILY describes the connections. A case fails by an exception.
"""

import atexit
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

ENTER, LEAVE = "\033[?1049h\033[?25l", "\033[?25h\033[?1049l"
KEYS = "q: quit  d r c p: sort by delay, rate, cuts, pauses  space: hold  j k: scroll"
WAIT_S = 20


def lead_session(report):
    """Return in a new process; this one leads the session, and writes two numbers to the file report:
    the number of the new process, and its wait status. It does not end by itself: when the leader of
    a session ends, the kernel discards the output that the test has not read yet.
    """
    ignored = signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGTSTP
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    pid = os.fork()
    if not pid:
        for number in ignored:
            signal.signal(number, signal.SIG_DFL)
        return
    os.write(report, struct.pack("i", pid))
    os.write(report, struct.pack("i", os.waitpid(pid, 0)[1]))
    while True:
        signal.pause()


class Watch:
    """The program, the other end of its terminal, and what the program has written."""

    def __init__(self, *words, shell=False, rows=10, columns=100):
        self.text = ""
        self.report, report = os.pipe()
        leader, self.end = pty.fork()
        if not leader:
            lead_session(report)
            # The test changes the terminal's size first, and notes its settings.
            os.read(0, 1)
            if shell:
                os.execv("/bin/bash", ["bash", "--norc", "--noediting", "-i"])
            os.execv(sys.argv[1], [sys.argv[1], "watch", *words])
        atexit.register(os.kill, leader, signal.SIGKILL)
        self.pid, = struct.unpack("i", os.read(self.report, 4))
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.end)
        self.key("\n")
        if shell:
            self.key(f"{sys.argv[1]} watch\n")
        self.until(lambda: ENTER in self.text)

    def resize(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("4H", rows, columns, 0, 0))

    def key(self, text):
        os.write(self.end, text.encode())

    def read(self):
        ready, _, _ = select.select([self.end], [], [], .05)
        try:
            self.text += os.read(self.end, 65536).decode() if ready else ""
        except OSError:     # the program has closed the terminal
            time.sleep(.01)

    def until(self, condition):
        """Read the program's output until the condition is true."""
        end = time.monotonic() + WAIT_S
        while not condition():
            assert time.monotonic() < end, self.text[-3000:]
            self.read()

    def screen(self):
        """The lines of the last complete screen: a frame begins at the top left corner."""
        end = f"\033[{self.rows}H\033[K{KEYS[:self.columns]}"
        frame = [part for part in self.text.split("\033[H") if part.endswith(end)][-1]
        frame = frame.replace(f"\033[J\033[{self.rows}H", "")
        return [re.sub(r"\033\[[0-9;?]*[a-zA-Z]", "", line) for line in frame.split("\r\n")]

    def shows(self, condition):
        """Wait for a screen for which condition(lines) is true, and check its size."""
        def is_shown():
            try:
                return condition(self.screen())
            except IndexError:
                return False
        self.until(is_shown)
        lines = self.screen()
        assert len(lines) <= self.rows and max(map(len, lines)) <= self.columns, lines

    def restored(self):
        """The terminal is as it was before the program."""
        return self.text.endswith(LEAVE) and termios.tcgetattr(self.end) == self.before

    def has_ended(self):
        return select.select([self.report], [], [], 0)[0]

    def ends(self, wanted):
        """The program restores the terminal and ends with this wait status."""
        end = time.monotonic() + WAIT_S
        while not self.has_ended():
            assert time.monotonic() < end, "the program does not end"
            self.read()
        status, = struct.unpack("i", os.read(self.report, 4))
        self.read()
        assert "Sanitizer" not in self.text and "runtime error" not in self.text, self.text
        # 128 says that there is a core file.
        assert status & ~128 == wanted, (status, self.text[-2000:])


def ports(lines):
    """The local ports on a screen."""
    return [int(found[1]) for found in (re.search(r":(1\d\d\d) ", line) for line in lines) if found]


def shows():
    watch = Watch()
    assert not termios.tcgetattr(watch.end)[3] & (termios.ECHO | termios.ICANON)
    watch.shows(lambda lines: ports(lines) == list(range(1029, 1022, -1)))
    assert watch.screen()[0] == "30 connections, worst delay first, 1 to 7 shown"
    watch.key("q")
    watch.until(watch.restored)
    watch.ends(0)


def fits():
    """On a screen of 80 columns each connection has all that it can be sorted by, and its peer."""
    watch = Watch(columns=80)
    watch.shows(lambda lines: lines[1].split() == ["rate", "queue", "RTT", "cuts", "paused", "to", "from"])
    assert re.fullmatch(r" *240 Mb/s +29 us +59 us +29 +- \[ac00:209::1\]:80 +\[a00:1::.*", watch.screen()[2])
    watch.key("q")
    watch.ends(0)


def sorts():
    watch = Watch("limit", "20")
    watch.key("r")
    watch.shows(lambda lines: ports(lines) == list(range(1000, 1007)) and "rate first" in lines[0])
    watch.key("p")
    watch.shows(lambda lines: ports(lines)[0] == 1001 and "pauses first" in lines[0])
    watch.key("c")
    watch.shows(lambda lines: ports(lines)[0] == 1029 and "cuts first" in lines[0])
    watch.key("q")
    watch.ends(0)


def scrolls():
    watch = Watch("to", "172.0.0.0/8")
    watch.shows(lambda lines: ports(lines) == list(range(1028, 1014, -2)))
    watch.key("j")
    watch.shows(lambda lines: ports(lines)[:6] == list(range(1014, 1002, -2)))
    watch.key("\033[6~\033[B")
    # The delays of 1000 and 1002 are not known.
    watch.shows(lambda lines: ports(lines)[:5] == list(range(1012, 1002, -2)) and
                sorted(ports(lines)[5:]) == [1000, 1002] and "9 to 15" in lines[0])
    watch.key("\033[Akkk")
    watch.shows(lambda lines: ports(lines)[0] == 1028)
    watch.key(" ")
    watch.shows(lambda lines: "HELD" in lines[0])
    watch.key("j")
    watch.shows(lambda lines: ports(lines)[0] == 1014)
    watch.key("Ar\x01\033 ")
    watch.shows(lambda lines: "HELD" not in lines[0] and ports(lines)[0] == 1000)
    watch.key("q")
    watch.ends(0)


def resizes():
    watch = Watch()
    for rows, columns in ((24, 200), (5, 20), (4, 1), (50, 80)):
        watch.resize(rows, columns)
        watch.shows(lambda lines: len(lines) == min(rows, 33) and
                    max(map(len, lines)) == columns or columns == 200)
    for rows, columns in ((3, 80), (1, 1)):
        watch.resize(rows, columns)
        watch.until(lambda: watch.text.endswith(f"\033[{rows}H\033[K{KEYS[:columns]}"))
    watch.key("q")
    watch.ends(0)


def signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
        watch = Watch()
        os.kill(watch.pid, number)
        watch.until(watch.restored)
        watch.ends(number)
    watch = Watch()
    watch.key("\x03")
    watch.until(watch.restored)
    watch.ends(signal.SIGINT)


def stops():
    """Ctrl-Z stops the program, and fg of a shell goes on."""
    watch = Watch(shell=True)
    watch.shows(lambda lines: "delay first" in lines[0])
    watch.key("\x1a")
    watch.until(lambda: LEAVE in watch.text and "Stopped" in watch.text)
    assert termios.tcgetattr(watch.end)[3] & termios.ICANON
    watch.key("fg\n")
    watch.until(lambda: watch.text.count(ENTER) == 2)
    watch.key("c")
    watch.shows(lambda lines: "cuts first" in lines[0])
    watch.key("q")
    watch.until(lambda: watch.text.count(LEAVE) == 2)
    watch.key("exit\n")
    watch.ends(0)


def hangs_up():
    """The terminal is closed, as when an ssh connection ends."""
    watch = Watch()
    os.close(watch.end)
    end = time.monotonic() + WAIT_S
    while not watch.has_ended():
        assert time.monotonic() < end, "the program does not end"
        time.sleep(.01)


CASES = {function.__name__: function
         for function in (shows, fits, sorts, scrolls, resizes, signals, stops, hangs_up)}
CASES[sys.argv[2]]()
