/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations shared by the files of the module tcp_timely: the state of a connection, the state
 * of a network namespace, and a set of parameters. The comment at the top of tcp_timely.c defines
 * segment and packet and lists the files.
 */
#ifndef _TCP_TIMELY_H
#define _TCP_TIMELY_H

#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/sock.h>
#include <net/tcp.h>

#include <net/timely_counters.h>
#include <net/timely_cfg.h>
#include <net/timely_flow.h>
#include <net/timely_link.h>
#include <timely/engine/rate.h>
#include <timely/engine/rtt.h>
#include <timely/engine/tune.h>

/**
 * struct timely_param_set - a set of parameters
 * @cfg: the parameters prepared for the engines; path-dependent ones for an unknown path
 * @generation: a number that differs from the generation of the replaced set, so that connections
 *	notice the change
 * @is_auto: some parameters are "auto"; connections compute these parameters for their paths
 * @params: the parameters as they were set
 * @rcu: frees the set after an RCU grace period
 *
 * A set is never changed. A new set replaces it.
 */
struct timely_param_set {
	struct timely_cfg cfg;
	u16 generation;
	bool is_auto;
	struct timely_params params;
	struct rcu_head rcu;
};

/**
 * struct timely_net - state of a network namespace
 * @counters: counters of ACKs and RTTs of the namespace's connections
 * @set: the namespace's parameters, read under RCU
 * @sysctl: the namespace's files in /proc/sys/net/ipv4/timely
 * @load: use of a link that is not known
 */
struct timely_net {
	struct timely_rtt_counters __percpu *counters;
	struct timely_param_set __rcu *set;
	struct ctl_table_header *sysctl;
	struct timely_load load;
};

/**
 * struct timely_sock - state of a connection, in icsk_ca_priv
 * @rate: state of the rate engine
 * @flow: the connection's flow entry, shared with the qdisc; NULL if there was no memory or the
 *	budget of the namespace was used up
 * @hardware_ns: hardware timestamp of the skb in process, ns of the NIC's clock; 0 for none
 * @driver_ns: driver timestamp of the skb in process, ns, CLOCK_REALTIME; 0 for none
 * @napi_id: NAPI instance of the skb in process; 0 if not known
 * @rtt: state of the RTT measurement engine
 * @used_us: tp->tcp_mstamp when the connection last used its rate, low 32 bits, see
 *	timely_may_rise()
 * @completed_us: tp->tcp_mstamp at the last completion or timely_skip(), low 32 bits
 * @round_end: tp->delivered at the start of recovery; packet conservation ends with the first ACK
 *	of a packet sent since then
 * @mss_inv: 2^32 / @mss, rounded up
 * @cwnd_limit: upper limit of the window, packets
 * @mss: the MSS that @mss_inv was computed from, bytes; 0 before timely_init()
 * @gso_max_segs: the socket's sk_gso_max_segs before this congestion control lowered
 *	sk_gso_max_segs, packets; 0 if it was not lowered
 * @gso_segs: packets in a segment; sk_gso_max_segs is lowered to this number
 * @gso_most: packets in the largest segment that the configuration allows
 * @generation: generation of the parameters in use
 * @pacing_shift: the socket's original sk_pacing_shift, restored by timely_release()
 * @ca_state: TCP's congestion state at the previous ACK
 * @departure: position in the flow entry's ring at which the last departure was found
 * @dsfield: traffic class (DSCP and ECN) of the packet in process
 * @source: source of the end of the last RTT: TIMELY_RTT_hardware, _driver or _tcp
 * @conserve: packet conservation is on: the first round trip of recovery
 * @stamped: this socket has asked for driver timestamps
 * @path: the connection uses a configuration computed for its path, in @flow
 * @counted: the connection is counted as one that has data to send, see timely_count_sender()
 * @cut: the rate has been decreased for a loss, a timeout or an ECN echo of this window
 */
struct timely_sock {
	struct timely_rate rate;
	struct timely_flow *flow;
	u64 hardware_ns;
	u64 driver_ns;
	u32 napi_id;
	struct timely_rtt rtt;
	u32 used_us;
	u32 completed_us;
	u32 round_end;
	u32 mss_inv;
	u32 cwnd_limit;
	u16 mss;
	u16 gso_max_segs;
	u8 gso_segs;
	u8 gso_most;
	u16 generation;
	u8 pacing_shift;
	u8 ca_state;
	u8 departure;
	u8 dsfield;
	u8 source:2,
	   conserve:1,
	   stamped:1,
	   path:1,
	   counted:1,
	   cut:1;
};

/* The congestion controls. The first uses the parameters of the network namespace. Each of the
 * other controls uses an unchanged preset, for a socket or a route with parameters other than the
 * namespace's.
 */
enum timely_cc {
	TIMELY_CC_NET,
	TIMELY_CC_PATCHED,
	TIMELY_CC_PAPER,
	TIMELY_CC_FAST,
	TIMELY_CC_SWIFT,
	TIMELY_CC_POWERTCP,
	TIMELY_CC_COUNT
};

extern struct tcp_congestion_ops timely_ops[TIMELY_CC_COUNT];

/* Whether a socket with the operations @ops uses a congestion control of this module: whether @ops
 * points into the array timely_ops. The difference of an address below the array wraps to a large
 * value.
 */
static inline bool timely_is_ours(const struct tcp_congestion_ops *ops)
{
	return (unsigned long)ops - (unsigned long)timely_ops < sizeof(timely_ops);
}

/* Index of struct timely_net for net_generic(). */
extern unsigned int timely_net_id;

/* The parameters that the module was loaded with. */
extern struct timely_param_set timely_module_params;

void timely_cfg_init(struct timely_cfg *cfg, const struct timely_params *params,
		     const struct timely_params *given, u32 link_kbps);
void timely_param_set_init(struct timely_param_set *set,
			   const struct timely_params *params, u16 generation);

/* tcp_timely.c */
const struct timely_param_set *timely_param_set_of(const struct sock *sk,
						   const struct tcp_congestion_ops *ops);
int timely_register_controls(void);
void timely_unregister_controls(void);

/* tcp_timely_hooks.c */
int timely_hooks_join(void);
void timely_hooks_leave(void);

/* tcp_timely_info.c */
bool timely_describe(const struct sock *sk, const struct timely_flow *flow,
		     struct timely_connection *connection);

/* tcp_timely_timer.c */
void timely_timer_loss(struct sock *sk, u32 linear_timeouts);
bool timely_resume_slowly(struct sock *sk, const struct timely_cfg *cfg);

/* tcp_timely_window.c */
u32 timely_window_packets(const struct timely_sock *ts, const struct timely_cfg *cfg);
u64 timely_window_probe_Bps(const struct timely_sock *ts, const struct timely_cfg *cfg);
bool timely_window_timeout(struct sock *sk, const struct timely_cfg *cfg);

/* tcp_timely_path.c */

/**
 * enum timely_path_change - what timely_path_changed() found
 * @TIMELY_PATH_SAME: the configuration is still valid
 * @TIMELY_PATH_TUNED: the configuration was computed again
 * @TIMELY_PATH_LONGER: the configuration was computed again: the base RTT has more than doubled
 */
enum timely_path_change {
	TIMELY_PATH_SAME,
	TIMELY_PATH_TUNED,
	TIMELY_PATH_LONGER,
};

void timely_path_state_init(struct timely_path_state *path, const struct tcp_sock *tp);
void timely_first_base(struct sock *sk, const struct timely_param_set *set);
void timely_tune_path(struct sock *sk, const struct timely_param_set *set);
enum timely_path_change timely_path_changed(struct sock *sk, const struct timely_param_set *set,
					    u64 now_ns, u64 least_ns, bool same);
void timely_forget_base(struct sock *sk, u64 now_ns);
void timely_watch_ack_agg(struct sock *sk, const struct timely_param_set *set,
			  const struct timely_completion *completion, u64 age_ns);
void timely_count_sender(struct sock *sk);
void timely_uncount_sender(struct sock *sk);
u32 timely_other_senders(const struct sock *sk);
void timely_count_received(struct sock *sk, u32 bytes);
bool timely_exclude_ack_wait(struct sock *sk, const struct timely_cfg *cfg,
			     const struct timely_ack *ack, struct timely_completion *completion);
void timely_fill_ingress(struct sock *sk, struct timely_completion *completion);

/* tcp_timely_params.c */
int timely_params_init(void);
void timely_params_exit(void);

/* The parameters of the socket's network namespace. The caller is in an RCU read-side critical
 * section.
 *
 * Some sockets of the kernel hold no reference to their namespace, and might outlive the
 * namespace's parameters; these sockets use the module's parameters.
 */
static inline const struct timely_param_set *timely_net_param_set(const struct sock *sk)
{
	const struct net *net = sock_net(sk);
	const struct timely_net *ours;

	if (unlikely(!sk->sk_net_refcnt && !net_eq(net, &init_net)))
		return &timely_module_params;
	ours = net_generic(net, timely_net_id);
	return rcu_dereference(ours->set);
}

/* The connection's network namespace; for a socket of the kernel that holds no reference to its
 * namespace, and might outlive the namespace's state, the initial namespace.
 */
static inline const struct net *timely_live_net(const struct sock *sk)
{
	return likely(sk->sk_net_refcnt) ? sock_net(sk) : &init_net;
}

/* Increment a counter of the namespace that timely_live_net() returns. */
static inline void timely_count_ack(const struct sock *sk, enum timely_rtt_result index)
{
	const struct timely_net *ours = net_generic(timely_live_net(sk), timely_net_id);

	this_cpu_inc(ours->counters->count[index]);
}

/* Count a reduction of the rate at once. @reason is one of TIMELY_CUT_*. */
static inline void timely_count_cut(struct timely_sock *ts, u8 reason)
{
	if (ts->flow)
		ts->flow->path.cuts[reason]++;
}

/* Count an ACK that gave no RTT. ACKs of nothing new, and those that complete no segment, are part
 * of normal operation and do not count. The last results are counters only.
 */
static inline void timely_count_rejected(struct timely_sock *ts, enum timely_rtt_result result)
{
	u32 index = result - TIMELY_RTT_retransmitted;

	if (index < TIMELY_REJECTIONS && ts->flow)
		ts->flow->path.rejected[index]++;
}

/* The use of a link that is not known by the namespace's connections. The socket holds a reference
 * to its namespace, or is in the initial namespace.
 */
static inline struct timely_load *timely_net_load(const struct sock *sk)
{
	struct timely_net *ours = net_generic(sock_net(sk), timely_net_id);

	return &ours->load;
}

/* Number of whole packets in @bytes of payload, at most U16_MAX. */
static inline u32 timely_packets(const struct timely_sock *ts, u64 bytes)
{
	return min_t(u64, min_t(u64, bytes, U32_MAX) * ts->mss_inv >> 32, U16_MAX);
}

/* The connection's configuration: computed for its path, or else the configuration in @set. */
static inline const struct timely_cfg *timely_cfg(const struct timely_sock *ts,
						  const struct timely_param_set *set)
{
	return ts->path ? &ts->flow->path.cfg : &set->cfg;
}

/* Whether new rates apply to packets that are already queued, which depends on the qdisc. The
 * connection has a flow entry.
 */
static inline enum timely_rate_lag timely_rate_lag(const struct sock *sk)
{
	const struct timely_sock *ts = inet_csk_ca(sk);

	if (!timely_flow_rates_lag(ts->flow))
		return TIMELY_ON_TIME;
	return READ_ONCE(sk->sk_pacing_status) == SK_PACING_FQ ? TIMELY_RATE_LAG_SLACK :
								 TIMELY_RATE_LAG;
}

/* Whether the configuration is valid for a base RTT of @base_ns: @base_ns differs by at most about
 * an eighth from B, the base RTT that the configuration was computed for. base_low_ns is 7/8 of B,
 * and 9/8 of B are about base_low_ns times 1 + 1/4 + 1/32. If @base_ns is below base_low_ns, the
 * difference wraps to a large value.
 */
static inline bool timely_is_near_base(const struct timely_path_state *path, u64 base_ns)
{
	u32 low_ns = path->base_low_ns;

	return base_ns - low_ns <= low_ns / 4 + low_ns / 32;
}

#endif /* _TCP_TIMELY_H */
