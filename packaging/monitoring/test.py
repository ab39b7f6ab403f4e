#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Test the alert rules and the dashboard: test.py DIR, with the metrics of a guest in DIR/N.prom.

test.sh runs this program. A test fails by an exception; TAP on standard output.
"""

import http.server
import json
import os
import re
import socketserver
import subprocess
import sys
import threading
import time
import traceback
import urllib.error
import urllib.parse
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
WORK = sys.argv[1]
RULES = f"{HERE}/timely.rules.yml"
# The guest has no timely-clockd, so its metrics are looked up in the source.
SOURCE = f"{HERE}/../../tools/timelyctl/metrics.c"
FILES = [f"{WORK}/{number}.prom" for number in (1, 2, 3, 4)]
WAIT_S = 100
# test.sh makes a network namespace in which nobody else uses the port.
ADDRESS = "127.0.0.1:9090"
# The guest has no NIC with hardware timestamps, and node_exporter writes its own metrics.
ABSENT = re.compile(r"timely_nic_|node_")


def text_of(path):
    """The contents of a file."""
    with open(path, encoding="utf-8") as file:
        return file.read()


DASHBOARD = json.loads(text_of(f"{HERE}/timely-dashboard.json"))


def run(*command, **options):
    """Run a command, which must succeed and must not warn."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          text=True, **options)
    assert not done.returncode and "warn" not in done.stdout.lower(), done.stdout


def metrics_are_valid():
    for path in FILES:
        with open(path, encoding="utf-8") as file:
            run("promtool", "check", "metrics", stdin=file)


def rules_are_valid():
    run("promtool", "check", "rules", RULES)


def rules_raise_alerts():
    run("promtool", "test", "rules", f"{HERE}/timely.rules.test.yml")


def names_exist():
    """The rules and the dashboard use metrics that timelyctl writes."""
    known = set(re.findall(r"^# TYPE (\w+)", text_of(FILES[0]), re.M))
    known.update(re.findall(r'"(timely_clock_\w+)"', text_of(SOURCE)))
    # In a namespace without On-Ramp's signals, the histogram has no samples, but a type.
    for path in (RULES, f"{HERE}/timely-dashboard.json"):
        used = set(re.findall(r"\btimely_(?!metrics)\w+", text_of(path)))
        unknown = {name for name in used if re.sub("_(bucket|count|sum)$", "", name) not in known}
        assert len(used) > 5 and not unknown, unknown


def panels_are_apart():
    places = [panel["gridPos"] for panel in DASHBOARD["panels"]]
    cells = [(place["x"] + x, place["y"] + y) for place in places
             for x in range(place["w"]) for y in range(place["h"])]
    assert len(cells) == len(set(cells)) and max(x for x, _ in cells) < 24
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(ids) == len(set(ids))


# ---- with a Prometheus server ----

class Metrics(http.server.BaseHTTPRequestHandler):
    """Each request gets the next file, later requests the last one."""
    requests = 0

    def do_GET(self):
        path = FILES[min(Metrics.requests, len(FILES) - 1)]
        Metrics.requests += 1
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(text_of(path).encode())

    def log_message(self, *args):
        pass


class Exporter(socketserver.BaseRequestHandler):
    """Each connection starts a program, as that of timely-exporter.socket does."""

    def handle(self):
        subprocess.run([f"{WORK}/timelyctl", "metrics", "http"], stdin=self.request,
                       stdout=self.request, check=True)


class Prometheus:
    """A server that reads the metrics every second, and loads the rules."""

    def __init__(self):
        self.exporter = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Exporter)
        threading.Thread(target=self.exporter.serve_forever, daemon=True).start()
        self.exporter_address = f"127.0.0.1:{self.exporter.server_address[1]}"
        self.metrics = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metrics)
        threading.Thread(target=self.metrics.serve_forever, daemon=True).start()
        with open(f"{WORK}/prometheus.yml", "w", encoding="utf-8") as file:
            json.dump({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                       "rule_files": [RULES],
                       "scrape_configs": [
                           {"job_name": "node", "static_configs": [
                               {"targets": [f"127.0.0.1:{self.metrics.server_port}"]}]},
                           {"job_name": "timely", "static_configs": [
                               {"targets": [self.exporter_address]}]}]}, file)
        self.url = f"http://{ADDRESS}/api/v1/"
        with open(f"{WORK}/prometheus.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["prometheus", f"--config.file={WORK}/prometheus.yml",
                 f"--storage.tsdb.path={WORK}/tsdb", f"--web.listen-address={ADDRESS}"],
                stdout=log, stderr=subprocess.STDOUT)

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.metrics.shutdown()
        self.exporter.shutdown()

    def ask(self, path, **words):
        """The answer to a request, which must be a success."""
        url = f"{self.url}{path}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=WAIT_S) as answer:
            answer = json.load(answer)
        assert answer["status"] == "success", answer
        return answer["data"]

    def query(self, expression):
        """The values of an expression."""
        return [float(one["value"][1])
                for one in self.ask("query", query=expression)["result"]]

    def until(self, condition):
        end = time.monotonic() + WAIT_S
        while True:
            try:
                if condition():
                    return
            except OSError:     # the server does not answer yet
                pass
            assert time.monotonic() < end and self.process.poll() is None, \
                text_of(f"{WORK}/prometheus.log")
            time.sleep(.2)


def values_are_stored(server):
    server.until(lambda: server.query("count_over_time(timely_connections[5m]) >= 6"))
    last = dict(line.rsplit(" ", 1) for line in text_of(FILES[-1]).splitlines() if line[0] != "#")
    assert len(last) > 100
    for sample in ("timely_connections", 'timely_module_loaded{module="timely"}',
                   'timely_qdisc_sent_bytes_total{device="eth0",parent="root"}',
                   'timely_qdisc_onramp_paused_seconds_total{device="eth0",parent="root"}'):
        name, _, labels = sample.rstrip("}").partition("{")
        series = f'{name}{{{labels + "," if labels else ""}job="node"}}'
        assert server.query(series) == [float(last[sample])], sample
    assert server.query("rate(timely_qdisc_sent_bytes_total[1m])")[0] > 0


def queries_have_answers(server):
    words = {"$instance": ".*", "$__rate_interval": "1m"}
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            expression = target["expr"]
            for word, value in words.items():
                expression = expression.replace(word, value)
            values = server.query(expression)
            assert "$" not in expression, expression
            assert values and values[0] == values[0] or ABSENT.search(expression), expression
    assert server.ask("label/instance/values", **{"match[]": "timely_module_loaded"})


def rules_are_evaluated(server):
    def rules():
        return [rule for group in server.ask("rules")["groups"] for rule in group["rules"]]
    server.until(lambda: all(rule["health"] == "ok" for rule in rules()))
    assert len(rules()) == text_of(RULES).count("- alert:")


def exporter_answers(server):
    """Prometheus reads the exporter, which refuses other requests."""
    server.until(lambda: server.query('up{job="timely"}') == [1])
    assert server.query('timely_module_loaded{job="timely",module="tcp_timely"}') == [0]
    for path, method, status in (("/", "GET", 404), ("/metrics", "POST", 405)):
        request = urllib.request.Request(f"http://{server.exporter_address}{path}", method=method)
        try:
            urllib.request.urlopen(request, timeout=WAIT_S)
        except urllib.error.HTTPError as error:
            assert error.code == status, error
        else:
            raise AssertionError(path)


def main():
    """Run the tests and return the number of failures."""
    failed = 0
    tests = (metrics_are_valid, rules_are_valid, rules_raise_alerts, names_exist, panels_are_apart,
             values_are_stored, queries_have_answers, rules_are_evaluated, exporter_answers)
    server = Prometheus()
    try:
        for number, test in enumerate(tests, 1):
            try:
                test(*[server] * test.__code__.co_argcount)
                print(f"ok {number} - {test.__name__}")
            except Exception:       # any error is a failed test
                failed += 1
                print("# " + traceback.format_exc().replace("\n", "\n# "))
                print(f"not ok {number} - {test.__name__}")
    finally:
        server.close()
    print(f"1..{len(tests)}")
    return failed


sys.exit(1 if main() else 0)
