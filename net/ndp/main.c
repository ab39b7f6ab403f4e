// SPDX-License-Identifier: GPL-2.0
/*
 * Loads and unloads module ndp: NDP (SIGCOMM'17) as stream sockets.
 *
 * The protocol is in the engines of module timely (net/timely/engine/ndp_*.c). This module connects
 * them to sockets, UDP and timers. ndp.h lists the files.
 *
 * Each socket holds a reference to the module, so the module cannot be unloaded while there are
 * sockets or connections. A module with sockets is not loaded by socket(): an administrator decides
 * that programs may use NDP.
 */

#include <linux/module.h>
#include <net/udp_tunnel.h>
#include <uapi/linux/timely_version.h>

#include "ndp.h"

static int __init ndp_load(void)
{
	const struct udp_tunnel_sock_cfg tunnel = {
		.encap_type = 1,
		.encap_rcv = ndp_input,
		.encap_err_lookup = ndp_icmp_lookup,
		.encap_err_rcv = ndp_icmp_error,
	};
	int err;

	ndp_table_init();
	ndp_later_init(ndp_conn_answer);
	err = ndp_net_init(&tunnel);
	if (err)
		return err;
	err = ndp_pull_register(ndp_conn_pull);
	if (err)
		goto no_pull;
	err = ndp_netlink_register();
	if (err)
		goto no_netlink;
	/* The last step: afterwards there may be sockets. */
	err = ndp_socket_register();
	if (err)
		goto no_socket;
	return 0;

no_socket:
	ndp_netlink_unregister();
no_netlink:
	ndp_pull_unregister();
no_pull:
	ndp_net_exit();
	return err;
}

static void __exit ndp_unload(void)
{
	ndp_socket_unregister();
	ndp_netlink_unregister();
	ndp_net_exit();
	ndp_later_exit();
	ndp_pull_unregister();
}

module_init(ndp_load);
module_exit(ndp_unload);

MODULE_AUTHOR("The TIMELY for Linux authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(TIMELY_VERSION);
MODULE_DESCRIPTION("NDP: stream sockets with pulled data over networks that trim packets");
