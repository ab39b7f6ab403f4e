/* SPDX-License-Identifier: GPL-2.0 */
/* User-space version of the kernel's time64.h. */
#ifndef _USER_LINUX_TIME64_H
#define _USER_LINUX_TIME64_H

/* These constants have the type long in the kernel, too. */
#define NSEC_PER_USEC	1000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L

#endif /* _USER_LINUX_TIME64_H */
