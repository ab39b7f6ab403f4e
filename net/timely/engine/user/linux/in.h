/* SPDX-License-Identifier: GPL-2.0 */
/* The C library's has IPPROTO_* too. */
#include <netinet/in.h>
