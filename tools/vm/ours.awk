# SPDX-License-Identifier: GPL-2.0
#
# A kernel log without KCSAN's reports of data races that no function of this project has a
# part in: the kernel has some of its own. How many were left out is said in the last line.

function decide()
{
	if (!report)
		return
	if (ours)
		printf "%s", report
	else
		others++
	report = ""
	ours = 0
}

/BUG: KCSAN:/	{ decide(); inside = 1 }
!inside		{ print; next }
		{ report = report $0 "\n" }
/\[(timely|tcp_timely|sch_timely|timely_acker)\]/	{ ours = 1 }
/====================/	{ inside = 0; decide() }
END		{ decide(); if (others) print others " reports of data races elsewhere in the kernel" }
