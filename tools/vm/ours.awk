# SPDX-License-Identifier: GPL-2.0
#
# A kernel log without KCSAN's reports of data races between functions that are not this
# project's, whoever called them: the kernel has some of its own. How many were left out is
# said in the last line.

/BUG: KCSAN:/ {
	other = !/\[(timely|tcp_timely|sch_timely|timely_acker)\]/
	others += other
}
!other
/====================/	{ other = 0 }
END	{ if (others) print others " reports of data races elsewhere in the kernel" }
