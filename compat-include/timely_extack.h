/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Differences between kernel versions in error messages to netlink requests.
 */
#ifndef _TIMELY_COMPAT_EXTACK_H
#define _TIMELY_COMPAT_EXTACK_H

#include <linux/netlink.h>

/* Set an error message. Since Linux 6.2 the message may contain formatted values: @fmt and @args.
 * Before, the message is @plain.
 */
#ifdef NL_SET_ERR_MSG_FMT_MOD
#define timely_set_err_fmt(extack, plain, fmt, args...) \
	NL_SET_ERR_MSG_FMT_MOD(extack, fmt, ##args)
#else
#define timely_set_err_fmt(extack, plain, fmt, args...) \
	NL_SET_ERR_MSG_MOD(extack, plain)
#endif

#endif /* _TIMELY_COMPAT_EXTACK_H */
