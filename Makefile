# SPDX-License-Identifier: GPL-2.0
#
# TIMELY for Linux. `make help` lists the targets; Kbuild holds the modules.

KDIR ?= /lib/modules/$(shell uname -r)/build
DEMO := build/demo

all: modules

modules modules_install clean: kdir
	$(MAKE) -C $(KDIR) M=$(CURDIR) $@

# modules_install leaves depmod out where headers come without a System.map.
install: modules
	$(MAKE) modules_install
	PATH="$$PATH:/sbin:/usr/sbin" depmod $(addprefix -b ,$(INSTALL_MOD_PATH)) \
		$$(sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' $(KDIR)/include/generated/utsrelease.h)
	$(MAKE) -C tools/tc install DESTDIR=$(INSTALL_MOD_PATH)
	$(MAKE) -C tools/timelyctl install DESTDIR=$(INSTALL_MOD_PATH)
	install -D -m 644 man/tcp_timely.7 $(INSTALL_MOD_PATH)/usr/local/share/man/man7/tcp_timely.7
	install -D -m 644 man/timely-onramp.7 $(INSTALL_MOD_PATH)/usr/local/share/man/man7/timely-onramp.7
	install -D -m 644 man/tc-timely.8 $(INSTALL_MOD_PATH)/usr/local/share/man/man8/tc-timely.8

kdir:
	@test -e $(KDIR)/Makefile || { \
		echo "No kernel headers in $(KDIR)." >&2; \
		echo "Install linux-headers-$(shell uname -r), or name a built kernel: make KDIR=..." >&2; \
		exit 1; }

setup:
	@tools/setup.sh

demo: setup
	@rm -rf $(DEMO)
	@tools/lab/lab run table1 --out $(DEMO)
	@tools/lab/lab report $(DEMO)

check check-fast check-full:
	@tools/check.sh $(@:check-%=%) $(CHECKS)

coverage:
	@tools/coverage.sh $(TESTS)

soak: setup
	@tools/vm/soak.sh $(or $(HOURS),1) "$(SEED)" $(or $(KERNEL),debug)

bench: setup
	@tools/bench/bench.sh
	@tools/bench/ack.sh
	@tools/bench/onramp.sh

results: setup
	@tools/docs/results.sh $(SCENARIOS)

matrix:
	@tools/matrix/matrix run --out results/matrix

paper: setup
	@tools/docs/paper.sh $(FIGURES)

docs: setup
	@tools/docs/make.sh

docs-check: setup
	@tools/docs/make.sh --check

distclean:
	rm -rf build
	-@test ! -e $(KDIR)/Makefile || $(MAKE) clean

help:
	@echo 'Modules (for the running kernel, or KDIR=...):'
	@echo '  all, modules     build timely.ko, tcp_timely.ko, sch_timely.ko, timely_acker.ko'
	@echo '  install          modules_install, depmod, the plugin for tc, timelyctl, completions,'
	@echo '                   man pages (INSTALL_MOD_PATH= as usual)'
	@echo '  clean            remove what was built'
	@echo 'To watch it work, and to test it (Debian 12; installs what it needs):'
	@echo '  demo             scenario table1: timely beside cubic, bbr, dctcp, vegas, nv, cdg;'
	@echo '                   table and plots in $(DEMO)'
	@echo '  check-fast       style, one build, engines, KUnit, a smoke test: minutes'
	@echo '  check            the tests that CI runs: half an hour; CHECKS="kunit figures" for some'
	@echo '  check-full       all kernels, sanitizers and figures, long fuzzing: hours'
	@echo '  coverage         which lines of net/ the tests execute; build/coverage/report.txt'
	@echo '  soak             HOURS=1: two guests with two processors do random things to the modules'
	@echo '  bench            what a packet costs: timely beside fq and pfifo, 1 to 1 000 000 flows;'
	@echo '                   what an ACK costs: timely beside bbr, cubic, dctcp and reno;'
	@echo '                   what On-Ramp costs a sender and a receiver'
	@echo '  results          run every scenario that the documents quote, then docs'
	@echo '  paper            the papers'"'"' figures and hostile networks: run what results/ lacks, then'
	@echo '                   Documentation/paper.md; FIGURES="fig9 table1" runs those again'
	@echo '  docs             write the parts of documents that are made from other files'
	@echo '  setup            only install what demo and check need'
	@echo '  distclean        remove build/ as well'
	@echo 'The test kernels are kept in $${TIMELY_CACHE:-~/.cache/timely}.'

.PHONY: all modules modules_install install clean kdir setup demo soak coverage check check-fast check-full bench results paper matrix \
	docs docs-check distclean help
