/* SPDX-License-Identifier: GPL-2.0 */
/* The address families AF_*, for which the kernel's code includes <linux/socket.h>. */
#include <sys/socket.h>
