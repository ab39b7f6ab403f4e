/* SPDX-License-Identifier: GPL-2.0 */
/* Protocol numbers of IPv6 extension headers: the kernel's code includes <linux/in6.h> for them. */
#include <netinet/in.h>
