/* SPDX-License-Identifier: GPL-2.0 */
/*
 * User-space version of the kernel's unaligned.h: numbers at any address, big-endian, and
 * little-endian where an engine needs it.
 */
#ifndef _USER_TIMELY_UNALIGNED_H
#define _USER_TIMELY_UNALIGNED_H

#include <linux/types.h>

/* Reads a big-endian number of @bytes bytes. */
static inline u64 unaligned_get(const void *from, int bytes)
{
	const u8 *byte = (const u8 *)from;
	u64 value = 0;

	while (bytes--)
		value = value << 8 | *byte++;
	return value;
}

/* Writes the lowest @bytes bytes of @value as a big-endian number. */
static inline void unaligned_put(u64 value, void *to, int bytes)
{
	u8 *byte = (u8 *)to;

	for (; bytes--; value >>= 8)
		byte[bytes] = (u8)value;
}

#define get_unaligned_be16(from)	((u16)unaligned_get(from, 2))
#define get_unaligned_be32(from)	((u32)unaligned_get(from, 4))
#define get_unaligned_be64(from)	unaligned_get(from, 8)
#define put_unaligned_be16(value, to)	unaligned_put(value, to, 2)
#define put_unaligned_be32(value, to)	unaligned_put(value, to, 4)
#define put_unaligned_be64(value, to)	unaligned_put(value, to, 8)

static inline u32 get_unaligned_le32(const void *from)
{
	return __builtin_bswap32(get_unaligned_be32(from));
}

static inline u64 get_unaligned_le64(const void *from)
{
	return __builtin_bswap64(get_unaligned_be64(from));
}

#endif /* _USER_TIMELY_UNALIGNED_H */
