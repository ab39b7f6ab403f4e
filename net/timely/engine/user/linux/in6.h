/* SPDX-License-Identifier: GPL-2.0 */
/* The protocol numbers of IPv6 extension headers, for which the kernel's code includes <linux/in6.h>. */
#include <netinet/in.h>
