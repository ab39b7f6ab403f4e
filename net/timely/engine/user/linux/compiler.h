/* SPDX-License-Identifier: GPL-2.0 */
/* User-space version of the kernel's compiler.h: what the engines use of it. */
#ifndef _USER_LINUX_COMPILER_H
#define _USER_LINUX_COMPILER_H

#define READ_ONCE(x)	(*(const volatile typeof(x) *)&(x))

#endif /* _USER_LINUX_COMPILER_H */
