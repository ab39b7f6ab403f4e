/* SPDX-License-Identifier: GPL-2.0 */
/* The C library's has AF_* too. */
#include <sys/socket.h>
