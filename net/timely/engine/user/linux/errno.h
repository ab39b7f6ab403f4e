/* SPDX-License-Identifier: GPL-2.0 */
/* The C library's <errno.h> includes <linux/errno.h>: give it the system's header. */
#include_next <linux/errno.h>
