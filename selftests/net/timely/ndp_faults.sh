#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Allocations of the module ndp fail. A call without memory is refused and changes nothing; packets
# without memory are lost and sent again. Needs a kernel with fault injection: the debug kernel.
# Topology: h1 -- mid -- h2.

. "$(dirname "$0")/ndp_lib.sh"

injection=/sys/kernel/debug/failslab

kernel_can_fail_allocations() {
	if [ ! -e $injection/require-start ] || [ ! -e /proc/self/fail-nth ]; then
		fail "this kernel cannot fail allocations of one function: use the debug kernel"
	fi
}

# Python lines before those of each case. ndp_text() makes allocations fail only with a function of
# the module on the stack, function() only with that function, and without sysfs_slab_add(), where
# the kernel leaks memory on failure. nth() fails the N-th allocation of a call, from the first to the
# last; without UNDO it ends when the call has succeeded.
cat >"$work/faults.py" <<'END'
FAIL = "/sys/kernel/debug/failslab/"
REFUSED = errno.ENOMEM, errno.ENOBUFS, errno.ENFILE

def put(name, value):
	with open(FAIL + name, "w") as file:
		file.write(str(value))

def between(first, end):
	for name, value in (("probability", 0), ("interval", 1), ("times", -1), ("space", 0), ("verbose", 0),
	                    ("ignore-gfp-wait", "N"), ("task-filter", "N"), ("stacktrace-depth", 32),
	                    ("require-start", hex(first)), ("require-end", hex(end))):
		put(name, value)

def function(name):
	def ends(name):
		at = next(where for where, word in found if word == name)
		return at, next(where for where, _ in found if where > at)
	with open("/proc/kallsyms") as file:
		found = sorted((int(words[0], 16), words[2]) for words in map(str.split, file))
	between(*ends(name))
	for name, value in zip(("reject-start", "reject-end"), ends("sysfs_slab_add")):
		put(name, hex(value))

def ndp_text():
	with open("/proc/kallsyms") as file:
		found = [int(words[0], 16) for words in map(str.split, file) if words[-1] == "[ndp]" and words[1] in "tT"]
	between(min(found), max(found) + 4096)

def nth(operate, undo):
	"""How often the call was refused, and how many allocations were made to fail."""
	nth = os.open("/proc/thread-self/fail-nth", os.O_RDWR)
	refused = failed = 0
	for number in range(1, 300):
		os.pwrite(nth, str(number).encode(), 0)
		failure = error(operate)
		left = int(os.pread(nth, 20, 0).split(b"\0")[0])
		os.pwrite(nth, b"0", 0)
		assert not failure or failure in REFUSED, errno.errorcode[failure]
		refused += failure != 0
		if not failure and undo:
			undo()
		if left or (not failure and not undo):
			break
		failed += 1
	os.close(nth)
	return refused, failed
END

faults() {
	{
		cat "$work/faults.py"
		cat
	} >"$work/faults.plan"
	ndp <"$work/faults.plan"
}

loads_or_does_not() {
	must insmod "$modules/timely.ko"
	faults <<-EOF
		function("do_one_initcall")
		module = os.open("$modules/ndp.ko", os.O_RDONLY)
		def load():
		    if libc.syscall(313, module, b"", 0) < 0:
		        raise OSError(ctypes.get_errno(), "finit_module")
		refused, failed = nth(load, lambda: command("rmmod", "ndp"))
		result(refused=refused, failed=failed, loaded=os.path.exists("/sys/module/ndp"))
	EOF
	expect failed -ge 5
	expect refused -ge 5
	expect loaded -eq 0
	unload_timely
	ndp_hosts
}

calls_are_refused() {
	faults <<-'EOF'
		listener = listen()
		ndp_text()
		made = []
		def create():
		    made.append(ndp_socket("h1"))
		# kvmalloc() finds other memory for the records of the namespace.
		refused, failed = nth(create, lambda: None)
		result(socket=refused, socket_failed=failed)
		client = ndp_socket("h1")
		refused, failed = nth(lambda: client.connect((V4, PORT)), None)
		result(connect=refused)
		client.send(b"x")
		result(works=wait(accept(listener)) > 0)
	EOF
	expect socket_failed -ge 1
	expect socket -eq 0
	expect connect -ge 1
	expect works -eq 1
}

# A fifth of the allocations for packets, data and connections fails.
everything_arrives() {
	faults <<-'EOF'
		listener = listen()
		pairs = [pair(listener=listener) for _ in range(4)]
		ndp_text()
		put("probability", 20)
		flows = [Flow(c, s, data(500000, n), end=False) for n, (c, s) in enumerate(pairs)]
		def send(self, plain=Flow.send):
		    try:
		        plain(self)
		    except OSError as failure:
		        if failure.errno not in REFUSED:
		            raise
		        time.sleep(0.001)
		Flow.send = send
		same, _ = move(flows)
		clients = []
		for _ in range(50):
		    with contextlib.suppress(OSError):
		        client = connect()
		        client.send(b"x" * 1000)
		        clients.append(client)
		accepted = sum(wait(accept(listener)) > 0 for _ in clients)
		put("probability", 0)
		result(same=same, without=stat("h1")["no_memory"] + stat("h2")["no_memory"],
		       some=len(clients), accepted=accepted)
	EOF
	expect same -eq 1
	expect without -ge 50
	expect some -ge 5
	expect accepted -eq "$some"
	within_seconds 5 ndp_idle || fail "memory is not given back: $memory bytes"
}

run_cases kernel_can_fail_allocations loads_or_does_not calls_are_refused everything_arrives
