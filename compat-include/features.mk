# SPDX-License-Identifier: GPL-2.0
#
# Finds out from the kernel's headers which functions and types this kernel has, and defines HAVE_*
# for the headers of this directory. A kernel's version number does not tell, because distributions
# backport changes.

# $(call have,MACRO,header,pattern): -DMACRO if there is such a header below include/ and a line of it matches the
# extended regular expression; else nothing. Headers that a kernel lacks give no message.
have = $(if $(shell grep -Eqs '$(3)' $(srctree)/include/$(2) && echo y),-D$(1))

ccflags-y += $(call have,HAVE_CONG_CONTROL_ACK,net/tcp.h,[(][*]cong_control[)].*u32 ack)
ccflags-y += $(call have,HAVE_CWND_EVENT_TX_START,net/tcp.h,[(][*]cwnd_event_tx_start[)])
ccflags-y += $(call have,HAVE_NET_GSO_H,net/gso.h,__skb_gso_segment)
ccflags-y += $(call have,HAVE_PACING_OFFLOAD,linux/netdevice.h,max_pacing_offload_horizon)
ccflags-y += $(call have,HAVE_QDISC_DROP_REASON,net/sch_generic.h,enum qdisc_drop_reason reason)
ccflags-y += $(call have,HAVE_QDISC_PKT_SEGS,net/sch_generic.h,pkt_segs)
ccflags-y += $(call have,HAVE_SKB_FRAGS_READABLE,linux/skbuff.h,skb_frags_readable[(]const struct sk_buff [*]skb[)])
ccflags-y += $(call have,HAVE_SKB_TSTAMP_TYPE,linux/skbuff.h,^enum skb_tstamp_type)
ccflags-y += $(call have,HAVE_DEVICE_MATCH_CONST,linux/device.h,device_match_t match)
ccflags-y += $(call have,HAVE_LINUX_UNALIGNED_H,linux/unaligned.h,get_unaligned_be16)
ccflags-y += $(call have,HAVE_TCP_PROBE_CONST,trace/events/tcp.h,TP_PROTO[(]struct sock [*]sk. const struct sk_buff [*]skb[)])
ccflags-y += $(call have,HAVE_LOOKUP_HASHINFO,net/inet6_hashtables.h,struct inet_hashinfo [*]hashinfo)
ccflags-y += $(call have,HAVE_SOCKADDR_UNSIZED,linux/net.h,struct sockaddr_unsized)
ccflags-y += $(call have,HAVE_ETHTOOL_TS_INFO_BY_LAYER,linux/ethtool.h,ethtool_get_ts_info_by_layer)
ccflags-y += $(call have,HAVE_CTL_TABLE_CONST,linux/sysctl.h,int proc_handler.const struct ctl_table)
ccflags-y += $(call have,HAVE_NET_SYSCTL_SIZE,net/net_namespace.h,register_net_sysctl_sz)
ccflags-y += $(call have,HAVE_FLOWI4_DSCP,net/flow.h,define flowi4_dscp)
ccflags-y += $(call have,HAVE_INET_FL_LIST,net/inet_sock.h,ipv6_fl_list)
ccflags-y += $(call have,HAVE_IPV6_PINFO_OFFSET,net/sock.h,ipv6_pinfo_offset)
ccflags-y += $(call have,HAVE_PROTO_ACCEPT_ARG,net/sock.h,^struct proto_accept_arg)
ccflags-y += $(call have,HAVE_PROTO_IOCTL_KARG,net/sock.h,int [*]karg)
ccflags-y += $(call have,HAVE_RECVMSG_ADDR_LEN,net/sock.h,int flags. int [*]addr_len)
ccflags-y += $(call have,HAVE_UDP_TUNNEL_IPCB_FLAGS,net/udp_tunnel.h,u16 ipcb_flags)
ccflags-y += $(call have,HAVE_UDP_TUNNEL_SOCK,net/udp_tunnel.h,udp_tunnel_sock_release.struct sock [*]sk)
ccflags-y += $(call have,HAVE_UDP_ENCAP_ERR_PAYLOAD,linux/udp.h,[(][*]encap_err_rcv[)].*int err)
ccflags-y += $(call have,HAVE_HRTIMER_SETUP,linux/hrtimer.h,hrtimer_setup)

# For the test NIC only, drivers/net/hwnic.
ccflags-y += $(call have,HAVE_NDO_HWTSTAMP,linux/netdevice.h,[(][*]ndo_hwtstamp_get[)])
ccflags-y += $(call have,HAVE_NEWLINK_PARAMS,net/rtnetlink.h,^struct rtnl_newlink_params)
