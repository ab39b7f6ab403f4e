/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numeric options of the project's qdiscs, as netlink attributes of 8, 32 or 64 bits. Only
 * sch_timely_options.c and sch_trim_options.c use this header. The qdisc trim works without module
 * timely, so these functions are in no module.
 */
#ifndef _NET_SCHED_TIMELY_OPTION_H
#define _NET_SCHED_TIMELY_OPTION_H

#include <net/netlink.h>

/**
 * struct timely_option_desc - a numeric option
 * @min: lowest value
 * @max: highest value
 * @initial: default
 * @message: error message for values out of range
 * @type: netlink attribute of the option
 * @bits: number of bits of the attribute's value
 */
struct timely_option_desc {
	u64 min;
	u64 max;
	u64 initial;
	const char *message;
	u8 type;
	u8 bits;
};

/* An element of a table of options: @qdisc is its name, a string, and @attribute its number. */
#define TIMELY_OPTION_DESC(qdisc, attribute, field, width, low, high, deflt, unit)	\
	{										\
		.type = attribute,							\
		.bits = width,								\
		.min = low##ULL,							\
		.max = high##ULL,							\
		.initial = deflt##ULL,							\
		.message = qdisc ": " #field ": allowed are " #low " to " #high " " unit, \
	}

/**
 * timely_option_get() - get the value of an option
 * @attr: the attribute
 * @bits: number of bits of the value: 8, 32 or 64
 *
 * Return: the value.
 */
static inline u64 timely_option_get(const struct nlattr *attr, u8 bits)
{
	switch (bits) {
	case 8:
		return nla_get_u8(attr);
	case 32:
		return nla_get_u32(attr);
	default:
		return nla_get_u64(attr);
	}
}

/**
 * timely_option_put() - add an option to a netlink message
 * @skb: the message
 * @desc: the option
 * @value: its value
 * @pad: attribute that aligns values of 64 bits
 *
 * Return: 0, or -EMSGSIZE if there is no room.
 */
static inline int timely_option_put(struct sk_buff *skb, const struct timely_option_desc *desc,
				    u64 value, int pad)
{
	switch (desc->bits) {
	case 8:
		return nla_put_u8(skb, desc->type, value);
	case 32:
		return nla_put_u32(skb, desc->type, value);
	default:
		return nla_put_u64_64bit(skb, desc->type, value, pad);
	}
}

/**
 * timely_option_refuse() - report a refused attribute to user space
 * @extack: gets the report; may be NULL
 * @attr: the attribute
 * @why: the message
 *
 * Return: -EINVAL.
 */
static inline int timely_option_refuse(struct netlink_ext_ack *extack, const struct nlattr *attr,
				       const char *why)
{
	/* The macro for messages takes only literals. */
	if (extack)
		extack->_msg = why;
	NL_SET_BAD_ATTR(extack, attr);
	return -EINVAL;
}

#endif /* _NET_SCHED_TIMELY_OPTION_H */
