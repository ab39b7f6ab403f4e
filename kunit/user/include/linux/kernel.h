/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _USER_LINUX_KERNEL_H
#define _USER_LINUX_KERNEL_H

#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/types.h>

#define abs(x) ({ typeof(x) _x = (x); _x < 0 ? -_x : _x; })

#define container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#endif /* _USER_LINUX_KERNEL_H */
