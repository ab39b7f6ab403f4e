/* SPDX-License-Identifier: GPL-2.0 */
/* User-space version of the kernel's compiler.h: what the engines use of it. User space has only
 * one thread, so a value that is read does not change meanwhile.
 */
#ifndef _USER_LINUX_COMPILER_H
#define _USER_LINUX_COMPILER_H

#define READ_ONCE(x)	(x)

#endif /* _USER_LINUX_COMPILER_H */
