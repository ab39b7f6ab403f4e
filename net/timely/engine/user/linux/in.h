/* SPDX-License-Identifier: GPL-2.0 */
/* The protocol numbers IPPROTO_*, for which the kernel's code includes <linux/in.h>. */
#include <netinet/in.h>
