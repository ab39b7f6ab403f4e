# SPDX-License-Identifier: GPL-2.0
"""A headless Chromium for tests, controlled by the Chrome DevTools Protocol over two pipes."""
import fcntl
import json
import os
import subprocess
import tempfile
from typing import Any, Self

LIFE_S = 300                            # then the browser is ended, so that no test waits forever


class Browser:
    """A browser with one page. Use it as a context."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.last = 0
        self.rest = b""
        self.session = ""

    def __enter__(self) -> Self:
        self.home = tempfile.TemporaryDirectory(prefix="timely-browser.",
                                                ignore_cleanup_errors=True)
        commands, self.to_browser = os.pipe()
        self.from_browser, answers = os.pipe()
        # The browser reads commands from file descriptor 3 and writes answers to 4.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in (commands, answers)]

        def connect() -> None:
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            ["timeout", str(LIFE_S), "chromium", "--headless", "--disable-gpu",
             "--no-first-run", "--remote-debugging-pipe", f"--user-data-dir={self.home.name}",
             *(["--no-sandbox"] if os.geteuid() == 0 else []), "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=connect, close_fds=False)
        for end in (commands, answers, *ends):
            os.close(end)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        self.home.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command; the result is its answer. Events until then are kept."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != self.last:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']['message']}")
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def receive(self) -> dict[str, Any]:
        """The next message of the browser."""
        while b"\0" not in self.rest:
            part = os.read(self.from_browser, 1 << 16)
            if not part:
                raise RuntimeError("the browser ended")
            self.rest += part
        text, self.rest = self.rest.split(b"\0", 1)
        message: dict[str, Any] = json.loads(text)
        return message

    def wait(self, method: str) -> dict[str, Any]:
        """The next event of a kind; it may have come already. The event is taken from the list."""
        while True:
            for i, event in enumerate(self.events):
                if event.get("method") == method:
                    return self.events.pop(i)
            self.events.append(self.receive())

    def open(self, path: str) -> None:
        """Load a file, and forget the events of pages before."""
        self.events.clear()
        self.call("Page.navigate", url="file://" + os.path.abspath(path))
        self.wait("Page.loadEventFired")

    def value(self, expression: str) -> Any:
        """The value of an expression in JavaScript."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")
