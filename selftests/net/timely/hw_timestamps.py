#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Set hardware timestamps, and compare RTTs with the logs of the test NICs.

	hw_timestamps.py filter DEVICE none|all|ptp
		select the received packets that get hardware timestamps (SIOCSHWTSTAMP)
	hw_timestamps.py judge TRACE [after_us=N] [until_us=N] [step_ns=TIME] [sport=PORT] LOG...
		compare the trace events timely:timely_rtt in TRACE with the entries R (received)
		and T (transmitted) of the NICs' logs, and print KEY=NUMBER

judge prints acks, the number of events, and the number of events with each result. The
following results are of events from after_us to until_us after the first one:

measured	RTTs that were used
NAME_later	events with the result NAME: hardware, driver, tcp or doubtful
error_p50 error_p99 error_max	error of the ACK's arrival by a hardware timestamp, ns
error_wrong	number of these errors above 1 us
software_min software_max	how late the arrival by a driver timestamp is, ns
tcp_min tcp_max	how late the arrival without a timestamp is, ns
unjoined	RTTs used whose ACK is in no log
sure_us	from the first ACK to the first RTT by a hardware timestamp; -1 for never
noticed_us	from step_ns to the first ACK whose hardware timestamp was not used
back_us	from step_ns to the first RTT by a hardware timestamp after that
twice	RTTs of segments that had been sent more than once
sacked	RTTs of segments that SACK has confirmed
early_max	longest time from the qdisc's hand-over of a segment to its first bit, ns
early_min	negative: the RTT started after the segment had left, or if it is from an
	estimated departure, could have
estimated	RTTs from estimated departures
serial_min serial_max	serialization time that was subtracted, ps per byte, of segments of more
	than 5000 bytes
serial_all_min serial_all_max	the same, of segments of more than 500 bytes
late_max	longest time from the arrival of an ACK to its processing, ns
rtt_min rtt_max	RTTs, ns; from estimated departures the longest that they may have been
"""

import ctypes
import fcntl
import socket
import struct
import sys

SIOCSHWTSTAMP = 0x89b0
FILTERS = {"none": 0, "all": 1, "ptp": 12}
RESULTS = ("hardware", "driver", "tcp", "nothing_new", "partial", "retransmitted",
	   "recovery", "delayed", "doubtful", "negative", "too_long")
MEASURED = RESULTS[:3]
US = 1000


def set_filter(device, name):
	config = ctypes.create_string_buffer(struct.pack("iii", 0, 0, FILTERS[name]))
	request = struct.pack("16sP16x", device.encode(), ctypes.addressof(config))
	with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
		fcntl.ioctl(sock, SIOCSHWTSTAMP, request)


def events(path):
	with open(path, encoding="ascii", errors="replace") as file:
		for line in file:
			_, found, fields = line.partition("timely_rtt: ")
			if found:
				event = dict(field.split("=", 1) for field in fields.split())
				for port, address in (("sport", "src"), ("dport", "dest")):
					event[port] = event.pop(address).rpartition(":")[2]
				yield {key: value if key == "result" else int(value)
				       for key, value in event.items()}


class Truth:
	"""The log entries that belong to trace events; logs have many others."""

	def __init__(self, paths, seen):
		self.by_timestamp, self.acked, self.left = {}, {}, {}
		self.timestamps = {event["hw_timestamp_ns"] for event in seen}
		self.unas = {event["una"] for event in seen}
		self.ends = {event["end_seq"] for event in seen}
		for path in paths:
			with open(path, encoding="ascii") as file:
				for line in file:
					self.read(line.split())

	def read(self, words):
		if not words or words[0] not in "RT":
			return
		mono, phc, sport, dport, end, ack = map(int, words[1:7])
		if words[0] == "T":
			if end in self.ends:
				self.left.setdefault((sport, dport, end), []).append(mono)
			return
		if phc in self.timestamps:
			self.by_timestamp[phc, dport, sport] = mono
		if ack in self.unas:
			self.acked.setdefault((dport, sport, ack), mono)

	def arrival(self, event):
		ports = event["sport"], event["dport"]
		# A timestamp that was not used may be an earlier packet's.
		if event["result"] in ("hardware", "doubtful"):
			return self.by_timestamp.get((event["hw_timestamp_ns"], *ports))
		return self.acked.get((*ports, event["una"]))

	def departures(self, event, before):
		times = self.left.get((event["sport"], event["dport"], event["end_seq"]), ())
		return [time for time in times if time <= before]


def quantile(values, share):
	return sorted(values)[int((len(values) - 1) * share)] if values else -1


def judge(path, truths, after_us="0", until_us="1000000000", step_ns=None, sport=None):
	seen = [event for event in events(path)
		if sport is None or event["sport"] == int(sport)]
	truth = Truth(truths, seen)
	out = {"acks": len(seen)}
	for name in RESULTS:
		out[name] = sum(event["result"] == name for event in seen)
	if not seen:
		return out
	first = seen[0]["now_ns"]
	sure = [e["now_ns"] for e in seen if e["result"] == "hardware"]
	out["sure_us"] = (sure[0] - first) // US if sure else -1
	if step_ns:
		step = int(step_ns)
		later = [e for e in seen if e["now_ns"] >= step]
		lost = [e["now_ns"] for e in later if e["result"] in ("doubtful", "driver", "tcp")]
		out["noticed_us"] = (lost[0] - step) // US if lost else -1
		back = [t for t in sure if lost and t > lost[0]]
		out["back_us"] = (back[0] - step) // US if back else -1
	window = [e for e in seen if int(after_us) <= (e["now_ns"] - first) / US <= int(until_us)]
	used = [e for e in window if e["result"] in MEASURED]
	out["measured"] = len(used)
	for name in (*MEASURED, "doubtful"):
		out[name + "_later"] = sum(e["result"] == name for e in window)
	errors = {name: [] for name in MEASURED}
	early, serial, serial_all, late = [], [], [], []
	out["unjoined"] = out["twice"] = 0
	out["sacked"] = sum(0 < (e["end_seq"] - e["una"]) % 2**32 < 2**31 for e in used)
	for event in used:
		arrived = event["arrived_ns"] or event["now_ns"]
		begun = event["sent_ns"] or event["scheduled_ns"]
		true = truth.arrival(event)
		if true is None:
			out["unjoined"] += 1
			continue
		errors[event["result"]].append(arrived - true)
		late.append(event["now_ns"] - true)
		taken_off = arrived - begun - event["rtt_ns"]
		# The size of a segment is known only if its departure was recorded.
		if event["rtt_ns"] and event["sent_ns"] and event["bytes"] > 500:
			serial_all.append(taken_off * 1000 // event["bytes"])
			if event["bytes"] > 5000:
				serial.append(serial_all[-1])
		left = truth.departures(event, true)
		out["twice"] += len(left) > 1
		if event["sent_ns"] and len(left) == 1:
			early.append(left[0] - taken_off - begun + event["unsure_ns"])
	hardware = [abs(error) for error in errors["hardware"]]
	out["error_p50"] = quantile(hardware, 0.5)
	out["error_p99"] = quantile(hardware, 0.99)
	out["error_max"] = max(hardware, default=-1)
	out["error_wrong"] = sum(error > 1000 for error in hardware)
	out["estimated"] = sum(e["unsure_ns"] > 0 for e in used)
	rtts = [event["rtt_ns"] + event["unsure_ns"] for event in used]
	for name, values in (("software", errors["driver"]), ("tcp", errors["tcp"]),
			     ("early", early), ("serial", serial), ("serial_all", serial_all),
			     ("late", late), ("rtt", rtts)):
		if values:
			out[name + "_min"] = min(values)
			out[name + "_max"] = max(values)
	return out


def main(command, *args):
	if command == "filter":
		return set_filter(*args)
	options = dict(arg.split("=", 1) for arg in args if "=" in arg)
	paths = [arg for arg in args if "=" not in arg]
	for key, value in judge(paths[0], paths[1:], **options).items():
		print(f"{key}={value}")


main(*sys.argv[1:])
