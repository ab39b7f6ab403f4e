/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space version of the kernel's export.h. Symbols of the library need no export; the macro
 * declares the symbol again, so that the line ends in a semicolon and a wrong name is an error.
 */
#ifndef _USER_LINUX_EXPORT_H
#define _USER_LINUX_EXPORT_H

#define EXPORT_SYMBOL_GPL(symbol)	extern typeof(symbol) symbol

#endif /* _USER_LINUX_EXPORT_H */
