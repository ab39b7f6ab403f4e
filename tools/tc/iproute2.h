/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What tc and its plugins share. Distributions ship no header for it, so this
 * declares the little that is used here of what tc exports to what it loads
 * (nm -D tc): the layout of struct qdisc_util and some helpers, all of which are
 * as they are below in iproute2 6.1 as in 6.15.
 *
 * Since 6.9 the callbacks take a const struct: the calls are the same.
 */
#ifndef _TOOLS_TC_IPROUTE2_H
#define _TOOLS_TC_IPROUTE2_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/types.h>

/* tc writes to @next, so an object of this type must not be constant. */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(const struct qdisc_util *qu, FILE *f, struct rtattr *xstats);
	int (*parse_copt)(const struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(const struct qdisc_util *qu, FILE *f, struct rtattr *opt);
};

/* Messages to the kernel. */
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);

/* "50%" of what sysfs says is the speed of a device, in bytes/s. */
int get_percent_rate64(__u64 *rate, const char *str, const char *dev);

/* A duration in us, and one in ns, as tc shows it. */
#define SPRINT_BSIZE 64
char *sprint_time(__u32 time, char *buf);
char *sprint_time64(__s64 time, char *buf);

/* Output goes through these: tc knows whether it is text or JSON. */
enum output_type {
	PRINT_FP = 1,
	PRINT_JSON = 2,
	PRINT_ANY = 4,
};

#define COLOR_NONE 6	/* the last of enum color_attr, whose others are not used */

int print_color_uint(enum output_type type, int color, const char *key,
		     const char *fmt, unsigned int value);
int print_color_lluint(enum output_type type, int color, const char *key,
		       const char *fmt, unsigned long long value);
int print_color_float(enum output_type type, int color, const char *key,
		      const char *fmt, double value);
int print_color_string(enum output_type type, int color, const char *key,
		       const char *fmt, const char *value);
int print_color_bool(enum output_type type, int color, const char *key,
		     const char *fmt, bool value);
int print_color_null(enum output_type type, int color, const char *key,
		     const char *fmt, const char *value);
int print_color_size(enum output_type type, int color, const char *key,
		     const char *fmt, __u32 bytes);
void tc_print_rate(enum output_type type, const char *key, const char *fmt,
		   unsigned long long rate);
void open_json_array(enum output_type type, const char *key);
void close_json_array(enum output_type type, const char *key);
void print_nl(void);

#endif /* _TOOLS_TC_IPROUTE2_H */
