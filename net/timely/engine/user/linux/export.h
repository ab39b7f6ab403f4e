/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _USER_LINUX_EXPORT_H
#define _USER_LINUX_EXPORT_H

#define EXPORT_SYMBOL_GPL(symbol)	extern typeof(symbol) symbol

#endif /* _USER_LINUX_EXPORT_H */
