/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space version of the kernel's module.h. A program has no module information; the macros only
 * check that the text is not empty.
 */
#ifndef _USER_LINUX_MODULE_H
#define _USER_LINUX_MODULE_H

#define MODULE_LICENSE(text)		_Static_assert(sizeof(text) > 1, "license")
#define MODULE_DESCRIPTION(text)	_Static_assert(sizeof(text) > 1, "description")

#endif /* _USER_LINUX_MODULE_H */
