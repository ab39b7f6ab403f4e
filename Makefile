# SPDX-License-Identifier: GPL-2.0
#
# TIMELY for Linux. `make help` lists the targets; Kbuild holds the modules.

KDIR ?= /lib/modules/$(shell uname -r)/build
RESULTS ?= build/demo

all: modules

modules modules_install clean: kdir
	$(MAKE) -C $(KDIR) M=$(CURDIR) $@

# A kernel developer's `make install`.
install: modules
	$(MAKE) modules_install
	depmod $(DEPMOD_ARGS)

uninstall: kdir
	rm -f $(addprefix $(INSTALL_MOD_PATH)/lib/modules/$(shell uname -r)/,\
		$(addprefix $(or $(INSTALL_MOD_DIR),updates)/,timely.ko tcp_timely.ko net/ipv4/tcp_timely.ko))
	depmod $(DEPMOD_ARGS)

kdir:
	@test -e $(KDIR)/Makefile || { \
		echo "No kernel headers in $(KDIR)." >&2; \
		echo "Install them (apt-get install linux-headers-$(shell uname -r)) or name a tree: make KDIR=..." >&2; \
		exit 1; }
