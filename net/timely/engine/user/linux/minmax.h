/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space version of the kernel's minmax.h. Each argument is evaluated once. The types of the
 * arguments are not compared: the kernel's macros do that when the same code is built as a module.
 */
#ifndef _USER_LINUX_MINMAX_H
#define _USER_LINUX_MINMAX_H

#define min(a, b) \
	({ typeof(a) _a = (a); typeof(b) _b = (b); _a < _b ? _a : _b; })
#define max(a, b) \
	({ typeof(a) _a = (a); typeof(b) _b = (b); _a > _b ? _a : _b; })
#define max3(a, b, c)	max(max(a, b), c)
#define min_t(type, a, b)	min((type)(a), (type)(b))
#define max_t(type, a, b)	max((type)(a), (type)(b))
#define clamp(val, lo, hi) \
	({ typeof(val) _v = (val), _l = (lo), _h = (hi); \
	   _v < _l ? _l : _v > _h ? _h : _v; })
#define clamp_t(type, val, lo, hi)	clamp((type)(val), (type)(lo), (type)(hi))

#endif /* _USER_LINUX_MINMAX_H */
