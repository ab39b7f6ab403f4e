/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The version of this project, defined only here: modinfo, timelyctl --version and the packages
 * read this file.
 */
#ifndef _UAPI_LINUX_TIMELY_VERSION_H
#define _UAPI_LINUX_TIMELY_VERSION_H

#define TIMELY_VERSION "0.9.0"

#endif /* _UAPI_LINUX_TIMELY_VERSION_H */
