# SPDX-License-Identifier: GPL-2.0
"""Make allocations fail, one site after the other, for alloc_faults.sh.

The kernel's fault injection fails an allocation if the call stack has an address of one chosen
function: a function of the modules, or one that the modules call. Its counters in debugfs
give the exact number of failures, also for allocations with __GFP_NOWARN, which the kernel
does not log. alloc_faults.sh runs each case's Python lines with this module imported. A case
calls sweep() or burst() for each allocation site in SITES; report() checks that no site was
forgotten.
"""

import errno
import glob

from acker import *
import json
import resource

from onramp_wire import TCA, TcpFlow, ctl, option

HERE = os.path.dirname(os.path.abspath(__file__))
DEBUG = "/sys/kernel/debug/"
MODULES = ("timely", "tcp_timely", "sch_timely", "timely_acker")
MANY = 1000000		# failures: no limit
ALL = 1 << 64		# one above the highest address
LIMITS_GET = 13		# TIMELY_CMD_LIMITS_GET
TEXT = "text"		# all functions of the modules

# Allocation sites: source file, part of the line, name of the site in the counts.
SITES = (
	("net/timely/tenant.c", "tenant->rtt = alloc_percpu", "tenant_net_init: counters"),
	("net/timely/tenant.c", "budget = kzalloc", "tenant_net_init: budget"),
	("net/timely/flow.c", "kmem_cache_create(", "timely_flow_init: cache"),
	("net/timely/flow.c", "rhashtable_init(", "timely_flow_init: table"),
	("net/timely/flow.c", "kmem_cache_zalloc(", "timely_flow_new"),
	("net/timely/nic.c", "*nic = kzalloc(", "timely_nic_add: record"),
	("net/timely/nic.c", "alloc_percpu(struct timely_clock_batch", "timely_nic_add: batches"),
	("net/timely/nic_table.c", "xa_store(", "timely_nic_note_napis"),
	("net/timely/link.c", "*link = kzalloc(", "timely_link_add"),
	("net/timely/netlink.c", "genlmsg_new(GENLMSG_DEFAULT_SIZE", "tn_nic_get"),
	("net/timely/netlink.c", "genlmsg_new(tn_counters_bytes(", "tn_rtt_get"),
	("net/timely/netlink.c", "genlmsg_new(tn_onramp_bytes(", "tn_onramp_get"),
	("net/timely/netlink.c", "genlmsg_new(tn_limits_bytes(", "tn_limits_get"),
	("net/timely/netlink.c", "genl_register_family(", "timely_netlink_init"),
	("net/timely/peer.c", "*peer = kzalloc(", "peer_alloc"),
	("net/timely/peer.c", "clock = kmalloc(", "timely_peer_want_clock"),
	("net/timely/peer.c", "*peers = kzalloc(", "peers_net_init"),
	("net/timely/peer.c", "rhashtable_init(", "timely_peer_init: table"),
	("net/timely/onramp_table.c", "kmem_cache_zalloc(", "timely_onramp_new"),
	("net/timely/onramp_rtt.c", "tracepoint_probe_register(", "onramp_probe_join"),
	("net/timely/onramp.c", "sock_create_kern(", "onramp_listen"),
	("net/timely/onramp_net.c", "*new = kmalloc(", "timely_onramp_key_set"),
	("net/timely/onramp_table.c", "*walk = kzalloc(", "timely_onramp_walk_begin"),
	("net/timely/onramp_net.c", "on->counters = alloc_percpu(", "onramp_net_init: counters"),
	("net/timely/onramp_table.c", "kmem_cache_create(", "timely_onramp_flows_init: cache"),
	("net/timely/onramp_table.c", "rhashtable_init(", "timely_onramp_flows_init: table"),
	("net/sched/sch_timely_table.c", "page = kzalloc(PAGE_SIZE, GFP_ATOMIC", "tq_table_reserve"),
	("net/sched/sch_timely_flow.c", "foreign = kzalloc(", "tq_alloc_foreign"),
	("net/sched/sch_timely_flow.c", "kmem_cache_zalloc(", "tq_alloc_flow"),
	("net/sched/sch_timely_split.c", "skb_unclone(", "tq_unshare_gso_size"),
	("net/sched/sch_timely_split.c", "__skb_gso_segment(", "tq_segment"),
	("net/sched/sch_timely_table.c", "page = kzalloc(PAGE_SIZE, GFP_KERNEL", "tq_reserve_page"),
	("net/sched/sch_timely_table.c", "kvcalloc(TQ_PAGES", "tq_reserve_buckets"),
	("net/sched/sch_timely_options.c", "kvzalloc_node(sizeof(**wheel)", "tq_prepare: wheel"),
	("net/sched/sch_timely.c", "kmem_cache_create(", "tq_load: cache"),
	("net/ipv4/tcp_timely_hooks.c", "tracepoint_probe_register(", "timely_hooks_join"),
	("net/ipv4/tcp_timely_params.c", "new = kzalloc(", "timely_net_change"),
	("net/ipv4/tcp_timely_params.c", "kmemdup(", "timely_net_init: setting"),
	("net/ipv4/tcp_timely_params.c", "kcalloc(", "timely_sysctl_table"),
	("net/ipv4/tcp_timely_params.c", "timely_register_sysctl(", "timely_net_init: sysctl"),
	("net/ipv4/timely_acker_send.c", "alloc_skb(", "acker_build"),
	("net/ipv4/timely_acker_cpu.c", "kvzalloc_node(", "acker_alloc_cpus"),
	("net/ipv4/timely_acker_hooks.c", "tracepoint_probe_register(", "timely_acker_hooks_join"),
	("net/ipv4/timely_acker_ctl.c", "*copy = kzalloc(", "acker_copy"),
	("net/ipv4/timely_acker_ctl.c", "genlmsg_new(acker_answer_bytes(", "acker_get"),
	("net/ipv4/timely_acker_ctl.c", "genl_register_family(", "acker_load"),
)
# Name in the counts: insertions into rhashtables, where the kernel allocates when a table grows.
GROWS = "rhashtable tables that grow"
ALLOCATES = re.compile(r"\b(\w*(?:[mz]alloc|calloc|memdup|strdup|realloc|alloc_skb|alloc_percpu)\w*|"
		       r"kmem_cache_create|alloc_\w*page\w*|skb_(?:\w*copy(?!_bits)\w*|\w*clone\w*)|"
		       r"pskb_\w*expand\w*|pskb_copy|__skb_gso_segment|(?:genl|nl)msg_new|rhashtable_init|"
		       r"alloc_workqueue|sock_create_kern|tracepoint_probe_register|xa_store|"
		       r"genl_register_family|timely_register_sysctl|alloc_netdev\w*)\(")

# kmemleak of the debug kernel makes an allocation of its own, which may fail, for each allocation.
NOTES = "__alloc_object"

resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 14, 1 << 14))
# Errors of the kernel for lack of memory; ENFILE is that of sockets.
WITHOUT_MEMORY = errno.ENOMEM, errno.ENOBUFS, errno.ENFILE
counts_file = os.environ["TIMELY_WORK"] + "/alloc_faults.counts"


# ---- where allocations fail ----

def symbols():
	"""Addresses of functions by name, [first, end)."""
	with open("/proc/kallsyms", encoding="ascii") as file:
		lines = [line.split() for line in file]
	found = sorted((int(words[0], 16), words[2], words[3][1:-1] if len(words) > 3 else "")
		       for words in lines if words[1] in "tTwW")
	ranges = {}
	for (at, name, module), (end, _, _) in zip(found, found[1:] + [(found[-1][0] + 4096, "", "")]):
		if at == end or name.endswith(".cold"):
			continue
		# Variants that the compiler has made (name.isra.0) count as the function itself.
		ranges.setdefault(name.split(".")[0], (at, end))
		if module in MODULES:
			first, last = ranges.get(TEXT, (at, end))
			ranges[TEXT] = min(first, at), max(last, end)
	return ranges


known = {}


def learn():
	"""Read the addresses of functions; to be called again after modules were loaded."""
	known.update(symbols())


class Kind:
	"""One of the kernel's fault injectors: failslab or fail_page_alloc."""

	def __init__(self, name):
		self.directory = DEBUG + name + "/"
		self.set(probability=0, interval=1, verbose=0, space=0, times=MANY)
		self.set(**{"ignore-gfp-wait": "N", "task-filter": "N", "stacktrace-depth": 32})
		self.has_orders = name == "fail_page_alloc"
		if self.has_orders:
			self.set(**{"ignore-gfp-highmem": "N"})

	def set(self, **values):
		for name, value in values.items():
			with open(self.directory + name, "w", encoding="ascii") as file:
				file.write(str(value))

	def where(self, require, reject, used):
		if self.has_orders:
			self.set(**{"min-order": 0 if used else 64})
		for word, (first, end) in (("require", require), ("reject", reject)):
			self.set(**{word + "-start": hex(first), word + "-end": hex(min(end, ALL - 1))})

	def times(self):
		with open(self.directory + "times", encoding="ascii") as file:
			return int(file.read())


class Faults:
	def __init__(self):
		self.slab, self.pages = Kind("failslab"), Kind("fail_page_alloc")
		self.nth = os.open("/proc/thread-self/fail-nth", os.O_RDWR)

	def arm(self, where, but=None, nth=0, times=0, kinds=None):
		"""Fail this task's NTH allocation, or the next TIMES allocations of all tasks, with
		function WHERE and without function BUT on the stack. A failed page allocation need
		not fail its caller: a slab that gets no large page takes a small one."""
		armed = kinds or ((self.slab, self.pages) if times else (self.slab,))
		for kind in self.slab, self.pages:
			kind.set(probability=0, times=times or MANY)
			kind.where(known[where], known[but] if but else (0, 0), kind in armed)
		self.began = times or MANY
		if times:
			for kind in armed:
				kind.set(probability=100)
		if nth:
			os.pwrite(self.nth, str(nth).encode(), 0)

	def disarm(self):
		"""Stop, and return the number of allocations that have failed."""
		os.pwrite(self.nth, b"0", 0)
		for kind in self.slab, self.pages:
			kind.set(probability=0)
		return sum(self.began - kind.times() for kind in (self.slab, self.pages))


faults = Faults()
SLAB, PAGES = (faults.slab,), (faults.pages,)


def count(name, failures, attempts, refused):
	with open(counts_file, "a", encoding="ascii") as file:
		print(name, failures, attempts, refused, sep="\t", file=file)


def attempt(operate, where, unchanged=None, may=WITHOUT_MEMORY, **how):
	"""Run an operation with failures. Returns the number of failures and the operation's
	error. An operation that is refused must leave the value of unchanged() as it was."""
	before = unchanged() if unchanged else None
	faults.arm(where, **how)
	try:
		error = operate()
	finally:
		failures = faults.disarm()
	assert not error or failures, f"{errno.errorcode.get(error, error)} without a failure"
	assert not error or error in may, f"refused with {errno.errorcode.get(error, error)}, not for lack of memory"
	if error and unchanged:
		now = unchanged()
		assert now == before, f"refused, but changed from {before} to {now}"
	return failures, error


def sweep(name, operate, where, but=NOTES, undo=None, unchanged=None, first=1, last=1000,
	  lesser=False, kinds=None):
	"""Repeat an operation of this task, with its first, second, third, ... allocation failed,
	until it has fewer allocations. If the first one fails, the operation must be refused;
	later ones may be the debug kernel's own, for example of timers. LESSER: the operation may
	also succeed, with less service. Several NAMEs are sites that allocate equally often, in
	this order."""
	done = []
	for nth in range(first, last + 1):
		failures, error = attempt(operate, where, unchanged, but=but, nth=nth, kinds=kinds)
		if not error and undo:
			undo()
		if not failures:
			break
		assert error or lesser or nth > first, f"{name}: succeeds with its allocation {nth} failed"
		done.append((failures, bool(error)))
	names = (name,) if isinstance(name, str) else name
	for index, each in enumerate(names):
		share = done[len(done) * index // len(names):len(done) * (index + 1) // len(names)]
		count(each, sum(failures for failures, _ in share), len(share) + (first + len(done) == nth),
		      sum(refused for _, refused in share))


def burst(name, operate, where, but=NOTES, undo=None, unchanged=None, times=(1, 2, 3, 100),
	  kinds=None):
	"""As sweep(), but also for allocations in softirqs and work items: the next 1, 2, 3 and
	100 allocations fail (TIMES)."""
	failed = refused = 0
	for most in times:
		failures, error = attempt(operate, where, unchanged, but=but, times=most, kinds=kinds)
		if not error and undo:
			undo()
		failed += failures
		refused += bool(error)
	count(name, failed, len(times), refused)


# ---- operations, which return an error or 0 ----

def insmod(name, parameters=""):
	file = os.open(f"{os.environ['TIMELY_MODULES']}/{name}.ko", os.O_RDONLY)

	def operate():
		done = libc.syscall(313, file, parameters.encode(), 0)	# finit_module
		return ctypes.get_errno() if done < 0 else 0
	return operate


def rmmod(name):
	end = time.monotonic() + 10
	while libc.syscall(176, name.encode(), os.O_NONBLOCK) < 0:	# delete_module
		assert time.monotonic() < end, f"{name}: {errno.errorcode[ctypes.get_errno()]}"
		time.sleep(0.05)


def loaded():
	return sorted(set(MODULES) & set(os.listdir("/sys/module")))


def new_namespace():
	"""Create a network namespace, which is freed when this task returns to its own."""
	failed = libc.unshare(0x40000000)
	error = ctypes.get_errno() if failed else 0
	setns(home)
	return error


def asked(family, command, body=b""):
	def operate():
		return family.refused(command, body)[0]
	return operate


def dumped(family, command):
	"""A dump, whose error may be in its last message."""
	def operate():
		family.seq += 1
		message = struct.pack("=BBH", command, 1, 0)
		family.sock.send(struct.pack("=IHHII", 16 + len(message), family.id, 0x301,
					     family.seq, 0) + message)
		while True:
			data = family.sock.recv(1 << 17)
			while len(data) >= 16:
				length, kind = struct.unpack_from("=IH", data)
				if kind in (2, 3):
					return -struct.unpack_from("=i", data, 16)[0]
				data = data[(length + 3) & ~3:]
	return operate


class Rtnetlink:
	def __init__(self, ns="h1", dev="eth0"):
		with inside(ns):
			self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
			self.index = socket.if_nametoindex(dev)
		self.sock.bind((0, 0))
		self.sock.setsockopt(270, 10, 1)	# NETLINK_CAP_ACK

	def qdisc(self, options, flags=0, parent=0xffffffff, kind=b"timely", verb=36):
		"""RTM_NEWQDISC, REQUEST | ACK and FLAGS."""
		body = struct.pack("=BxxxiIII", 0, self.index, 0, parent, 0)
		body += attr(1, kind + b"\0") + (attr(2, options) if options else b"")
		request = struct.pack("=IHHII", 16 + len(body), verb, 5 | flags, 1, 0) + body

		def operate():
			self.sock.send(request)
			while True:
				data = self.sock.recv(1 << 16)
				if struct.unpack_from("=H", data, 4)[0] == 2:
					return -struct.unpack_from("=i", data, 16)[0]
		return operate

	def plain(self, parent=0xffffffff):
		"""Replace the qdisc by pfifo."""
		done = self.qdisc(b"", 0x500, parent, b"pfifo")()
		assert not done, done


def options_of(ns="h1"):
	def read():
		return {parent: (q["kind"], q["options"]) for parent, q in qdiscs(ns).items()}
	return read


def sends(sock, data):
	def operate():
		try:
			sock.send(data)
		except OSError as error:
			return error.errno
		return 0
	return operate


def arrives(number=50, to=H2, size=1000):
	"""Check that datagrams of NUMBER new sockets arrive."""
	sink = Sink(addr=to, port=99)
	senders = [source(to=to, port=99) for _ in range(number)]
	for index, sender in enumerate(senders):
		sender.send(payload(index, 0, size))
	got = {packet.number for packet in sink.take(number, 2)}
	for sock in [sink.sock, *senders]:
		sock.close()
	assert len(got) == number, f"{len(got)} of {number} datagrams arrive"


# ---- percpu memory ----

CHUNK = "pcpu_create_chunk"


class Percpu:
	"""Uses up the kernel's percpu memory by routes, which take 8 bytes each. Meanwhile the
	kernel cannot allocate more chunks of it."""

	def __init__(self):
		self.sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
		self.sock.bind((0, 0))
		self.sock.setsockopt(270, 10, 1)	# NETLINK_CAP_ACK
		self.index = socket.if_nametoindex("dummy0")
		self.routes = 0

	def ask(self, verb, flags, metric):
		body = struct.pack("=8BI", 2, 32, 0, 0, 254, 3, 253, 1, 0)
		body += attr(1, bytes([198, 18, 0, 1])) + attr(4, struct.pack("=I", self.index))
		body += attr(6, struct.pack("=I", metric))
		self.sock.send(struct.pack("=IHHII", 16 + len(body), verb, 5 | flags, 1, 0) + body)
		return -struct.unpack_from("=i", self.sock.recv(1 << 12), 16)[0]

	def use_up(self):
		faults.arm(CHUNK, times=MANY)
		while not (error := self.ask(24, 0xc00, self.routes + 1)):
			self.routes += 1
			assert self.routes < 100000, "percpu memory does not end"
		faults.disarm()
		assert error in WITHOUT_MEMORY, errno.errorcode[error]

	def give(self, count):
		faults.arm(CHUNK, times=MANY)
		for _ in range(min(count, self.routes)):
			assert not self.ask(25, 0, self.routes)
			self.routes -= 1
		# Routes are freed after an RCU grace period.
		time.sleep(0.1)
		faults.disarm()


# ---- completeness of SITES ----

def allocations():
	"""(file, line) of all calls in the modules' sources that allocate."""
	top = os.path.join(HERE, "../../..")
	for pattern in "net/*/*.c", "net/*/*.h", "include/net/*.h", "compat-include/**/*.h":
		for path in glob.glob(os.path.join(top, pattern), recursive=True):
			# ndp_faults.sh tests the module ndp.
			if "hwnic" in path or "/net/ndp/" in path:
				continue
			with open(path, encoding="utf-8") as file:
				for line in file:
					if ALLOCATES.search(line) and not re.match(r"\s*(/\*|\* )|#|\w", line):
						yield os.path.relpath(path, top), line.strip()


def report():
	"""Check that all calls that allocate are in SITES, and that each site has failed."""
	lines = list(allocations())
	strangers = [line for path, line in lines
		     if not any(path == file and words in line for file, words, _ in SITES)]
	gone = [site for site in SITES
		if not any(path == site[0] and site[1] in line for path, line in lines)]
	done = {}
	with open(counts_file, encoding="ascii") as file:
		for line in file:
			name, *numbers = line.rstrip("\n").split("\t")
			done[name] = [a + int(b) for a, b in zip(done.get(name, (0, 0, 0)), numbers)]
	for name, (failures, attempts, refused) in sorted(done.items()):
		say(f"{name:32} {failures:5} failures in {attempts:4} attempts, {refused:4} refused")
	never = [name for _, _, name in SITES if not done.get(name, [0])[0]]
	for word, some in (("not in the list:", strangers), ("not in the source:", gone),
			   ("never failed:", never)):
		for each in some:
			say(word, each)
	result(sites=len(SITES), strangers=len(strangers), gone=len(gone), never=len(never))
