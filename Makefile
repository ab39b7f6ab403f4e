# SPDX-License-Identifier: GPL-2.0
#
# Makefile of TIMELY for Linux. `make help` lists the targets. Kbuild describes the modules.

KDIR ?= /lib/modules/$(shell uname -r)/build
DEMO := build/demo

all: modules

modules modules_install clean: kdir
	$(MAKE) -C $(KDIR) M=$(CURDIR) $@

# depmod is called here, because modules_install skips it if the kernel headers have no System.map.
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
		echo "Install linux-headers-$(shell uname -r), or give a kernel's build directory: make KDIR=..." >&2; \
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
	@tools/lab/vm/soak.sh $(or $(HOURS),1) "$(SEED)" $(or $(KERNEL),debug)

bench: setup
	@tools/lab/bench/bench.sh
	@tools/lab/bench/ack.sh
	@tools/lab/bench/onramp.sh
	@tools/lab/bench/cpu.sh

results: setup
	@tools/docs/results.sh $(SCENARIOS)

matrix:
	@tools/lab/simulator/matrix run --out results/matrix

reproductions paper: setup
	@tools/docs/reproductions.sh $(FIGURES)

docs: setup
	@tools/docs/make.sh

docs-check: setup
	@tools/docs/make.sh --check

distclean:
	rm -rf build
	-@test ! -e $(KDIR)/Makefile || $(MAKE) clean

lint: setup
	@tools/check.sh full kernel-base style-c style-sh style-python kernel-doc spelling spdx

help:
	@echo 'Modules, for the running kernel or KDIR=...:'
	@echo '  all, modules     build timely.ko, tcp_timely.ko, sch_timely.ko, timely_acker.ko'
	@echo '  install          modules_install, depmod, the plugin for tc, timelyctl, completions,'
	@echo '                   man pages (INSTALL_MOD_PATH= as usual)'
	@echo '  clean            remove the built modules'
	@echo ''
	@echo 'Demonstration (on Debian 12; installs the packages that it needs):'
	@echo '  demo             timely beside cubic, bbr, dctcp, vegas, nv and cdg: table and plots in'
	@echo '                   $(DEMO)'
	@echo ''
	@echo 'Test a change:'
	@echo '  lint             style of C, shell and Python, kernel-doc, spelling, licences'
	@echo '  check-fast       lint, one build, engines, KUnit, a smoke test: minutes'
	@echo '  check            the tests that CI runs: half an hour; CHECKS="kunit figures" runs'
	@echo '                   only these jobs'
	@echo '  check-full       all kernels, sanitizers and figures, long fuzzing: hours'
	@echo '  soak             random actions on the modules in two guests with two CPUs; HOURS=1'
	@echo '  coverage         lines of net/ that the tests execute: build/coverage/report.txt'
	@echo ''
	@echo 'Measure:'
	@echo '  bench            CPU cycles: a packet beside fq and pfifo, 1 to 1 000 000 flows; an ACK'
	@echo '                   beside bbr, cubic, dctcp and reno; On-Ramp at sender and receiver;'
	@echo '                   a byte at sender and receiver, 1 to 100 flows at 10 to 100 Gb/s'
	@echo '  results          run every scenario that Documentation/results.md quotes: hours;'
	@echo '                   SCENARIOS="table1 qdisc" runs only these'
	@echo '  reproductions    run the figures of the papers and the hostile networks that results/'
	@echo '                   lacks; FIGURES="timely-fig9 loss" runs those again'
	@echo '  matrix           run the default rule in the simulator, at link rates beyond the testbed'
	@echo ''
	@echo 'Documents:'
	@echo '  docs             write the parts of documents that are generated from other files'
	@echo '  docs-check       fail if these parts are not up to date'
	@echo ''
	@echo 'Other:'
	@echo '  setup            install the Debian packages that demo and check need'
	@echo '  distclean        clean, and remove build/'
	@echo 'Test kernels are kept in $${TIMELY_CACHE:-~/.cache/timely}.'

.PHONY: all modules modules_install install clean kdir setup demo soak coverage check check-fast check-full bench results reproductions paper matrix lint \
	docs docs-check distclean help
