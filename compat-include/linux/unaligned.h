/* SPDX-License-Identifier: GPL-2.0 */
/* Before Linux 6.12 it was the architecture's. */
#if __has_include_next(<linux/unaligned.h>)
#include_next <linux/unaligned.h>
#else
#include <asm/unaligned.h>
#endif
