/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _USER_LINUX_MINMAX_H
#define _USER_LINUX_MINMAX_H

/* Each argument once; the kernel's check of equal types is the kernel's job. */
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
