/* SPDX-License-Identifier: GPL-2.0 */
/* The C library's <errno.h> includes this one for the numbers. */
#include_next <linux/errno.h>
