/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between kernels in answers to netlink requests.
 */
#ifndef _TIMELY_COMPAT_EXTACK_H
#define _TIMELY_COMPAT_EXTACK_H

#include <linux/netlink.h>

/* 6.3: an answer may have numbers in it. Before, @plain is the answer. */
#ifdef NL_SET_ERR_MSG_FMT_MOD
#define timely_set_err_fmt(extack, plain, fmt, args...) \
	NL_SET_ERR_MSG_FMT_MOD(extack, fmt, ##args)
#else
#define timely_set_err_fmt(extack, plain, fmt, args...) \
	NL_SET_ERR_MSG_MOD(extack, plain)
#endif

#endif /* _TIMELY_COMPAT_EXTACK_H */
