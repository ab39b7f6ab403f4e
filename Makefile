# SPDX-License-Identifier: GPL-2.0
#
# Makefile of TIMELY for Linux. `make help` lists the targets. Kbuild describes the modules.

KDIR ?= /lib/modules/$(shell uname -r)/build
DEMO := build/demo

# Where `make install` puts files. DESTDIR comes before all paths but those of the modules, which lie
# in $(INSTALL_MOD_PATH)/lib/modules. KUNIT=1 includes the module with the unit tests.
PREFIX ?= /usr/local
INSTALL_MOD_PATH ?= $(DESTDIR)
KUNIT ?= 0
export PREFIX

INSTALLED_MODULES := timely tcp_timely sch_timely sch_trim timely_acker ndp timely_kunit
MODULE_DIRS = updates extra $(INSTALL_MOD_DIR)
# Directories below PREFIX, in the order in which they can be removed when they are empty.
TOOL_DIRS := bin include lib sbin share/bash-completion/completions share/bash-completion $(addprefix share/man/,man1 man7 man8) \
	share/man share
COMPLETION_DIR = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
# Commands whose completion is that of timely-switch.
COMPLETED := ndp timely-clockd timely-plot
MANUALS := man7/tcp_timely.7 man7/timely-onramp.7 man8/tc-timely.8 man8/tc-trim.8 man8/timely-switch.8
# The kernel's release, such as 6.1.0-40-amd64, and the directory of its modules. To uninstall modules no headers are needed
# if KDIR names the release.
release = $(or $(shell sed -n 's/.*UTS_RELEASE "\(.*\)".*/\1/p' $(KDIR)/include/generated/utsrelease.h 2>/dev/null),\
	$(patsubst /lib/modules/%/build,%,$(filter /lib/modules/%/build,$(KDIR))))
module_dir = $(INSTALL_MOD_PATH)/lib/modules/$(release)
depmod := PATH="$$PATH:/sbin:/usr/sbin" depmod

all: modules

modules modules_install clean: kdir
	$(MAKE) -C $(KDIR) M=$(CURDIR) KUNIT=$(KUNIT) $@

tools: tools-dependencies
	$(MAKE) -C tools/tc
	$(MAKE) -C tools/timelyctl
	$(MAKE) -C tools/clockd
	$(MAKE) -C tools/ndp

# Everything is built before anything is installed.
install: tools modules
	$(MAKE) install-modules
	$(MAKE) install-tools

# depmod is called here, because modules_install skips it if the kernel headers have no System.map.
install-modules: modules
	$(MAKE) modules_install INSTALL_MOD_PATH=$(INSTALL_MOD_PATH)
	$(depmod) $(addprefix -b ,$(INSTALL_MOD_PATH)) $(release)

install-tools: tools
	$(MAKE) -C tools/tc install
	$(MAKE) -C tools/timelyctl install
	$(MAKE) -C tools/clockd install
	$(MAKE) -C tools/ndp install
	install -D -m 755 packaging/timely-switch $(DESTDIR)$(PREFIX)/sbin/timely-switch
	install -D -m 644 packaging/completion/timely-switch $(COMPLETION_DIR)/timely-switch
	for name in $(COMPLETED); do ln -sf timely-switch $(COMPLETION_DIR)/$$name || exit 1; done
	for page in $(MANUALS); do \
		install -D -m 644 man/$${page#*/} $(DESTDIR)$(PREFIX)/share/man/$$page || exit 1; \
	done

# Remove what `make install` with the same variables has installed. Modules of DKMS remain.
uninstall:
	$(MAKE) uninstall-tools
	$(MAKE) uninstall-modules

uninstall-modules:
	@test "$(release)" || { echo "No kernel headers in $(KDIR), which say whose modules are meant." >&2; exit 1; }
	rm -f $(foreach dir,$(MODULE_DIRS),$(INSTALLED_MODULES:%=$(module_dir)/$(dir)/%.ko*))
	for dir in $(MODULE_DIRS); do rmdir $(module_dir)/$$dir 2>/dev/null; done; true
	test ! -d $(module_dir) || $(depmod) $(addprefix -b ,$(INSTALL_MOD_PATH)) $(release)

# Directories of the system stay, also if they are empty.
uninstall-tools:
	$(MAKE) -C tools/tc uninstall
	$(MAKE) -C tools/timelyctl uninstall
	$(MAKE) -C tools/clockd uninstall
	$(MAKE) -C tools/ndp uninstall
	rm -f $(DESTDIR)$(PREFIX)/sbin/timely-switch $(addprefix $(COMPLETION_DIR)/,timely-switch $(COMPLETED)) \
		$(MANUALS:%=$(DESTDIR)$(PREFIX)/share/man/%)
	for dir in /lib/timely $(if $(filter /usr /usr/local,$(PREFIX)),,$(TOOL_DIRS:%=/%) /); do \
		rmdir $(DESTDIR)$(PREFIX)$$dir 2>/dev/null; \
	done; true

deb rpm:
	@packaging/build.sh $@

kdir:
	@test -e $(KDIR)/Makefile || { \
		echo "No kernel headers in $(KDIR)." >&2; \
		echo "Install linux-headers-$(shell uname -r), or give a kernel's build directory: make KDIR=..." >&2; \
		exit 1; }

# Name what is missing for the tools, before the compiler's messages do.
tools-dependencies:
	@missing=; \
	if ! command -v $(firstword $(CC)) >/dev/null; then \
		missing=" $(firstword $(CC))"; \
	elif ! echo '#include <libmnl/libmnl.h>' | $(CC) -E - >/dev/null 2>&1; then \
		missing=" libmnl/libmnl.h (libmnl-dev, libmnl-devel)"; \
	fi; \
	PATH="$$PATH:/sbin:/usr/sbin" command -v tc >/dev/null || missing="$$missing tc (iproute2)"; \
	test -z "$$missing" || { echo "Missing, with packages in parentheses:$$missing" >&2; exit 1; }

setup:
	@tools/setup.sh

demo:
	@tools/lab/demo.sh $(DEMO)

check check-fast check-full:
	@tools/check.sh $(@:check-%=%) $(CHECKS)

# A patch series for the kernel source in the directory KERNEL.
OUT ?= build/export
export:
	@test "$(KERNEL)" || { echo "Name the directory of a kernel's source: make export KERNEL=DIR" >&2; exit 1; }
	@tools/export/export.py "$(KERNEL)" "$(OUT)"

coverage:
	@tools/coverage.sh $(TESTS)

soak: setup
	@tools/lab/vm/soak.sh $(or $(HOURS),1) "$(SEED)" $(or $(KERNEL),debug)

bench: setup
	@tools/lab/bench/bench.sh
	@tools/lab/bench/ack.sh
	@tools/lab/bench/onramp.sh
	@tools/lab/bench/cpu.sh
	@tools/lab/bench/poll.sh

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
	@tools/check.sh full style-c style-sh style-python kernel-doc spelling spdx

help:
	@echo 'Modules, for the running kernel or KDIR=...:'
	@echo '  all, modules     build timely.ko, tcp_timely.ko, sch_timely.ko, timely_acker.ko, sch_trim.ko, ndp.ko'
	@echo '  tools            build timelyctl, timely-clockd, ndp and the plugins for tc'
	@echo '  install          build everything, then install-modules and install-tools'
	@echo '  install-modules  modules_install and depmod; KUNIT=1 includes the unit tests,'
	@echo '                   INSTALL_MOD_PATH=DIR comes before /lib/modules (default: DESTDIR)'
	@echo '  install-tools    the plugins for tc, timelyctl, timely-clockd, ndp, timely-switch, completions,'
	@echo '                   man pages; PREFIX=/usr/local, DESTDIR=DIR comes before all paths'
	@echo '  uninstall        remove what install with the same variables has installed: uninstall-tools,'
	@echo '                   and uninstall-modules, which needs the headers of the kernel, or'
	@echo '                   KDIR=/lib/modules/RELEASE/build also if this directory does not exist'
	@echo '  deb, rpm         packages for DKMS and of the tools, in build/packages'
	@echo '  clean            remove the built modules'
	@echo ''
	@echo 'Demonstration (on Debian 12; installs the packages that it needs):'
	@echo '  demo             timely beside cubic, dctcp, bbr, vegas, nv and cdg: a page with table and'
	@echo '                   charts, $(DEMO)/index.html'
	@echo ''
	@echo 'Test a change:'
	@echo '  lint             style of C, shell and Python, kernel-doc, spelling, licences'
	@echo '  check-fast       lint, one build, engines, KUnit, a smoke test: minutes'
	@echo '  check            the tests that CI runs: almost an hour; CHECKS="kunit figures" runs'
	@echo '                   only these jobs'
	@echo '  check-full       all kernels, sanitizers and figures, long fuzzing: hours'
	@echo '  soak             random actions on the modules in two guests with two CPUs; HOURS=1'
	@echo '  coverage         lines of net/ that the tests execute: build/coverage/report.txt'
	@echo ''
	@echo 'Measure:'
	@echo '  bench            CPU cycles: a packet beside fq and pfifo, 1 to 1 000 000 flows; an ACK'
	@echo '                   beside bbr, cubic, dctcp and reno; On-Ramp at sender and receiver;'
	@echo '                   a byte at sender and receiver, 1 to 100 flows at 10 to 100 Gb/s;'
	@echo '                   a look at 10 000 connections'
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
	@echo 'For the kernel tree:'
	@echo '  export           write a patch series for the source of a kernel, KERNEL=DIR, into OUT=build/export'
	@echo ''
	@echo 'Other:'
	@echo '  setup            install the Debian packages that demo and check need'
	@echo '  distclean        clean, and remove build/'
	@echo 'Test kernels are kept in $${TIMELY_CACHE:-~/.cache/timely}.'

.PHONY: all export modules modules_install tools tools-dependencies install install-modules install-tools uninstall uninstall-modules uninstall-tools deb rpm clean kdir setup demo soak coverage check check-fast check-full bench results reproductions paper matrix lint \
	docs docs-check distclean help
