/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _USER_LINUX_STRING_H
#define _USER_LINUX_STRING_H

#include <stdio.h>
#include <string.h>

#define strscpy(to, from, size)	snprintf(to, size, "%s", from)

#endif /* _USER_LINUX_STRING_H */
