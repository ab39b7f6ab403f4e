# SPDX-License-Identifier: GPL-2.0
#
# Filter a kernel log: remove KCSAN's reports of data races in which no function of this
# project's modules takes part. The kernel itself has some data races. The last line says
# how many reports were removed.

/BUG: KCSAN:/ {
	other = !/\[(timely|tcp_timely|sch_timely|timely_acker)\]/
	others += other
}
!other
/====================/	{ other = 0 }
END	{ if (others) print others " reports of data races elsewhere in the kernel" }
