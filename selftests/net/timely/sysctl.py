#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Cases of sysctl.sh that read and write the files of net.ipv4.timely in namespaces:

	sysctl.py CASE MODINFO [NAMESPACE]...

MODINFO is a file with modinfo's output, from which names and ranges of the parameters are
read. Exits with a message at the first expectation that is not met.
"""

import ctypes
import errno
import os
import re
import subprocess
import sys
import threading

DIRECTORY = "/proc/sys/net/ipv4/timely/"
LOADED = "/sys/module/tcp_timely/parameters/"
CLONE_NEWNET = 0x40000000
# With these values any other parameter may have any value of its range.
WIDEST = {"t_low_ns": "0", "t_high_ns": "2000000000",
	  "min_rate_kbps": "1", "max_rate_kbps": "800000000"}


# Names of the previous release, and those that replace them
DEPRECATED = {"line_rate_kbps": "link_rate_kbps", "rtt_noise_ns": "ack_aggregation_ns"}


class Parameter:
	def __init__(self, name, least, most, rest):
		self.name, self.least, self.most = name, int(least), int(most)
		self.may_be_auto = rest.endswith(", or auto")


def read_modinfo(path):
	with open(path, encoding="ascii") as file:
		text = file.read()
	found = re.findall(r"^parm: *(\w+):.* \[(\d+) to (\d+) (.*)\]$", text, re.M)
	presets = re.search(r"^parm: *preset:.*: (.*) \(charp\)$", text, re.M).group(1)
	return [Parameter(*each) for each in found], presets.split(", ")


def expect(what, got, wanted):
	if got != wanted:
		sys.exit("%s is %r, expected %r" % (what, got, wanted))


def read(name):
	with open(DIRECTORY + name, encoding="ascii") as file:
		return file.read().rstrip("\n")


def write(name, value, end="\n"):
	fd = os.open(DIRECTORY + name, os.O_WRONLY)
	try:
		os.write(fd, (value + end).encode())
	finally:
		os.close(fd)


def state():
	return {name: read(name) for name in os.listdir(DIRECTORY)}


def refused(name, value, end="\n", why=errno.EINVAL):
	"""The write must fail with the error WHY and change no parameter."""
	before = state()
	try:
		write(name, value, end)
	except OSError as error:
		expect("errno of %s=%s" % (name, value), errno.errorcode[error.errno],
		       errno.errorcode[why])
	else:
		sys.exit("%s=%s was not refused" % (name, value))
	expect("all after %s=%s" % (name, value), state(), before)


def widen():
	write("preset", "paper")
	write("t_low_ns", WIDEST["t_low_ns"])
	write("t_high_ns", WIDEST["t_high_ns"])
	write("min_rate_kbps", WIDEST["min_rate_kbps"])
	write("max_rate_kbps", WIDEST["max_rate_kbps"])


# ---- cases ----

def case_are_there():
	names = [each.name for each in PARAMETERS] + ["preset"]
	expect("what is in " + DIRECTORY, sorted(os.listdir(DIRECTORY)),
	       sorted(names + list(DEPRECATED)))
	for name in names:
		expect("mode of " + name, os.stat(DIRECTORY + name).st_mode & 0o777, 0o644)
	for name in names[:-1]:
		with open(LOADED + name, encoding="ascii") as file:
			expect(name, read(name), file.read().rstrip("\n"))


def case_deprecated():
	"""Names of the previous release set and show the parameters that replace them."""
	for old, name in DEPRECATED.items():
		expect("mode of " + old, os.stat(DIRECTORY + old).st_mode & 0o777, 0o644)
		expect(old, read(old), read(name))
		write(old, "1500")
		expect(name, read(name), "1500")
		write(name, "auto")
		expect(old, read(old), "auto")
		refused(old, "4294967295")
	write("preset", "paper")
	write("preset", "linux")
	expect("preset", read("preset"), PRESETS[0])


def case_both_ends():
	for each in PARAMETERS:
		widen()
		for value in each.least, each.most, each.least:
			write(each.name, str(value))
			expect(each.name, read(each.name), str(value))
		if each.may_be_auto:
			write(each.name, "auto")
			expect(each.name, read(each.name), "auto")
	widen()
	# Hexadecimal, and without a newline
	write("delta_kbps", "0x10", end="")
	expect("delta_kbps", read("delta_kbps"), "16")


def case_refusals():
	for each in PARAMETERS:
		widen()
		refused(each.name, str(each.least - 1))
		refused(each.name, str(each.most + 1))
		for value in ("", "-1", "12x", "20us", "1 2", "4294967295", "4294967297",
			      "18446744073709551617", "0x" + "0" * 40 + "5", "autos", "AUTO"):
			refused(each.name, value)
		if not each.may_be_auto:
			refused(each.name, "auto")


def case_contradictions():
	write("preset", "paper")
	refused("t_low_ns", "500001")
	refused("t_high_ns", "49999")
	write("t_low_ns", "500000")
	expect("t_low_ns", read("t_low_ns"), "500000")
	refused("t_high_ns", "499999")
	write("max_rate_kbps", "1000")
	refused("max_rate_kbps", "999")
	refused("min_rate_kbps", "1001")
	# "auto" contradicts no other value.
	write("t_high_ns", "auto")
	write("t_low_ns", "1000000000")
	refused("t_high_ns", "999999999")
	write("t_high_ns", "1000000000")


def case_presets(namespace):
	"""Writing a preset's name gives the parameters that loading with this preset gives."""
	seen = {}
	for preset in PRESETS:
		write("t_high_ns", "2000000000")
		write("hai_factor", "77")
		write("loss_beta_ppm", "77")
		expect("preset of other values", read("preset"), "custom")
		write("preset", preset)
		expect("preset", read("preset"), preset)
		seen[preset] = state()
		for name in "", preset + "s", "LINUX", "no such":
			refused("preset", name)
		# All values that were read can be written back, in alphabetical order.
		write("delta_kbps", "777")
		saved = state()
		expect("preset", saved["preset"], "custom")
		write("preset", "custom")
		expect("all after preset=custom", state(), saved)
		write("preset", "paper")
		for name in sorted(saved):
			write(name, saved[name])
		expect("all after being restored", state(), saved)
	expect("sets that differ", len({str(sorted(each.items())) for each in seen.values()}),
	       len(PRESETS))
	for preset in PRESETS:
		subprocess.run(["rmmod", "tcp_timely"], check=True)
		subprocess.run(["insmod", MODULE, "preset=" + preset], check=True)
		enter(namespace)
		expect("all of " + preset, state(), seen[preset])


def case_differ(first, second):
	"""Each namespace has its own parameters; a new one starts with the module's."""
	enter(first)
	before = state()
	write("delta_kbps", "1111")
	enter(second)
	expect("the other's", state(), before)
	write("preset", "erpc")
	enter(first)
	expect("delta_kbps", read("delta_kbps"), "1111")
	expect("min_rtt_ns", read("min_rtt_ns"), before["min_rtt_ns"])
	subprocess.run(["ip", "netns", "add", "another"], check=True)
	enter("another")
	expect("a new namespace's", state(), before)
	subprocess.run(["ip", "netns", "del", "another"], check=True)


def as_nobody(value, *options):
	"""Write delta_kbps as user "nobody": the exit status, and the value afterwards."""
	done = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
			       *options, "sh", "-c", "echo %s >%sdelta_kbps" % (value, DIRECTORY)],
			      check=False, stderr=subprocess.DEVNULL)
	return done.returncode, read("delta_kbps")


def case_permissions(first):
	"""A process with CAP_NET_ADMIN over the namespace may write, no other process."""
	enter(first)
	before = read("delta_kbps")
	expect("write without CAP_NET_ADMIN", as_nobody(5), (2, before))
	may = "--inh-caps=+net_admin", "--ambient-caps=+net_admin"
	expect("write with CAP_NET_ADMIN", as_nobody(4321, *may), (0, "4321"))
	expect("wrong value with CAP_NET_ADMIN", as_nobody(0, *may), (1, "4321"))


def case_unload_while_open(first):
	"""Open files, and reads and writes in progress, do not prevent unloading."""
	done = []

	def write_on():
		enter(first)
		count = 0
		while not done:
			try:
				write("preset", PRESETS[count % len(PRESETS)])
				state()
			except OSError as error:
				if error.errno not in (errno.ENOENT, errno.EINVAL):
					done.append(error)
			count += 1

	threads = [threading.Thread(target=write_on) for _ in range(2)]
	for each in threads:
		each.start()
	for _ in range(20):
		fd = os.open(DIRECTORY + "delta_kbps", os.O_RDWR)
		os.write(fd, b"4444\n")
		subprocess.run(["rmmod", "tcp_timely"], check=True)
		for call in (lambda: os.pread(fd, 16, 0)), (lambda: os.pwrite(fd, b"5555\n", 0)):
			try:
				call()
			except OSError as error:
				expect("errno after the end", errno.errorcode[error.errno], "ENOENT")
			else:
				sys.exit("a file works without the module")
		os.close(fd)
		subprocess.run(["insmod", MODULE], check=True)
	broken = list(done)
	done.append(None)
	for each in threads:
		each.join()
	expect("errors of the writing threads", broken, [])


def enter(namespace):
	with open("/run/netns/" + namespace, encoding="ascii") as file:
		setns(file.fileno())


def setns(fd):
	if LIBC.setns(fd, CLONE_NEWNET):
		sys.exit("setns failed")


def main():
	case = globals()["case_" + sys.argv[1]]
	namespaces = sys.argv[3:]
	if namespaces:
		enter(namespaces[0])
	case(*namespaces[:case.__code__.co_argcount])


if __name__ == "__main__":
	LIBC = ctypes.CDLL(None, use_errno=True)
	MODULE = os.environ["TIMELY_MODULES"] + "/tcp_timely.ko"
	PARAMETERS, PRESETS = read_modinfo(sys.argv[2])
	main()
