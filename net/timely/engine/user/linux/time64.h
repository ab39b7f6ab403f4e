/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _USER_LINUX_TIME64_H
#define _USER_LINUX_TIME64_H

/* Long, as in the kernel. */
#define NSEC_PER_USEC	1000L
#define NSEC_PER_MSEC	1000000L
#define NSEC_PER_SEC	1000000000L

#endif /* _USER_LINUX_TIME64_H */
