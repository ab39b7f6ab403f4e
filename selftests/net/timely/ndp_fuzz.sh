#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Valid, malformed, repeated and cut packets of NDP arrive at a listener whose program accepts, reads
# and closes: see ndp_fuzz.c. Afterwards transfers work, and no memory is lost.
# TIMELY_FUZZ_PACKETS and TIMELY_FUZZ_SEED set the number of packets, 40000 by default, and the seed.
# Topology: h1 -- mid -- h2; the packets come from mid.

. "$(dirname "$0")/ndp_lib.sh"

packets=${TIMELY_FUZZ_PACKETS:-40000}
seed=${TIMELY_FUZZ_SEED:-1}

hosts() {
	ndp_hosts
}

# fuzz PACKETS PROOF_S: the listener of h2 needs a proof of the source address if PROOF_S is not 0
fuzz() {
	ndp <<-EOF
		sysctl("h2", "timeout_ms", 500)
		sysctl("h2", "proof_s", $2)
		listener = listen()
		fuzz = subprocess.Popen(["ip", "netns", "exec", "mid", "$modules/ndp_fuzz", "$seed", "$1",
		                         "10.7.2.1", V4], stdout=subprocess.DEVNULL)
		children, accepted, read = [], 0, 0
		while fuzz.poll() is None or wait(listener, seconds=0.01):
		    if wait(listener, seconds=0.01):
		        children.append(accept(listener))
		        accepted += 1
		        with contextlib.suppress(OSError):
		            children[-1].send(b"answer" * 1000)
		    for child in children:
		        with contextlib.suppress(OSError):
		            read += len(child.recv(100000))
		    if len(children) > 100:
		        children.pop(0).close()
		listener.close()
		for child in children:
		    child.close()
		seen = stat("h2")
		result(status=fuzz.returncode, accepted=accepted, read=read, received=seen["received"],
		       malformed=seen["malformed"], damaged=seen["damaged"], trimmed=seen["trimmed"],
		       answered=sum(seen[name] for name in ("late", "unknown", "refused", "challenged", "bad_cookie")))
	EOF
	expect status -eq 0
	expect received -ge $(($1 - $1 / 100))
	expect malformed -ge $(($1 / 20))
	expect damaged -ge $(($1 / 100))
	expect trimmed -ge $(($1 / 100))
	expect answered -ge $(($1 / 100))
}

a_listener_survives() {
	fuzz "$packets" 0
	expect accepted -ge 50
	expect read -ge 10000
}

no_connection_without_proof() {
	fuzz 5000 60
	expect accepted -eq 0
}

works_afterwards() {
	ndp <<-'EOF'
		result(same=both_ways()[0])
	EOF
	expect same -eq 1
	within_seconds 70 ndp_idle || fail "memory is not given back: $memory bytes"
}

run_cases hosts no_connection_without_proof a_listener_survives works_afterwards
