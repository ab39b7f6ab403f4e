/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between tc and its plugins: the layout of struct qdisc_util, and the
 * functions that tc exports to the objects that it loads (nm -D tc).
 *
 * Distributions ship no header for this interface, so this file declares the part that the
 * plugin uses. It is the same in iproute2 6.1 and 6.15. Since 6.9 the callbacks take a
 * pointer to a const struct; the binary interface is the same.
 */
#ifndef _TOOLS_TC_IPROUTE2_H
#define _TOOLS_TC_IPROUTE2_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/types.h>

/* tc links the qdiscs in a list through @next, so an object of this type must be writable. */
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

/* Netlink messages. @maxlen is the size of the buffer that @n is in. */
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data, int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);

/* @rate: the share @str, such as "50%", of the device's speed in sysfs, in bytes/s */
int get_percent_rate64(__u64 *rate, const char *str, const char *dev);

/* A time as text: sprint_time() takes us, sprint_time64() takes ns. */
#define SPRINT_BSIZE 64
char *sprint_time(__u32 time, char *buf);
char *sprint_time64(__s64 time, char *buf);

/* Output. The functions print only if tc writes the kind of output that @type names. */
enum output_type {
	PRINT_FP = 1,		/* text */
	PRINT_JSON = 2,
	PRINT_ANY = 4,		/* both */
};

#define COLOR_NONE 6	/* the last value of enum color_attr */

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
