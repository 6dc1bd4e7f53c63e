/* SPDX-License-Identifier: Apache-2.0 OR BSD-2-Clause OR GPL-2.0-only */

/* Programs that find the job of each packet in the kernel; identity.h has
 * their design.
 *
 * The programs need CAP_BPF and CAP_NET_ADMIN only.  Without CAP_PERFMON, the
 * kernels 6.1 and 6.12 refuse pointers that are tested for NULL twice, and
 * packet pointers plus a variable: so each lookup is tested once, and headers
 * are read by bpf_skb_load_bytes().  They also refuse to write a part of 8
 * bytes of the stack that have had a pointer, and 6.1 a number: so the
 * compiler saves whole registers (-mcpu=v2), numbers in structures on the
 * stack have 8 bytes, and what needs many registers is a function of its
 * own. */

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/pkt_cls.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stdbool.h>
#include <stddef.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "agent/identify/bpf/identity-maps.h"
#include "wire/slot-tag.h"

#define SOCK_STREAM 1
#define SOCK_RAW 3
#define AF_INET 2
#define AF_INET6 10
#define LOOPBACK 1 /* Index of "lo" in every namespace. */
#define N_CLAIMS 65536
#define N_QUEUES 512
#define N_QUESTIONS 8192
#define QUESTIONS_SIZE 65536 /* Bytes. */

enum direction { SENT, RECEIVED };

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct identity_settings);
} settings SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, IDENTITY_SLOTS);
    __type(key, __u32);
    __type(value, struct identity_row);
} rows SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, IDENTITY_SLOTS);
    __type(key, __u32);
    __type(value, struct identity_traffic);
} traffic SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, N_CLAIMS);
    __type(key, __u64);
    __type(value, struct identity_claim);
} processes SEC(".maps"), cgroups SEC(".maps"), namespaces SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, N_CLAIMS);
    __type(key, __u32);
    __type(value, __u8);
} control SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, IDENTITY_PAIRS);
    __type(key, struct identity_pair);
    __type(value, __u64);
} sent SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, N_QUEUES);
    __type(key, __u64);
    __type(value, __u32);
} priorities SEC(".maps");

/* By index of an interface. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, N_CLAIMS);
    __type(key, __u32);
    __type(value, struct identity_pod);
} pods SEC(".maps");

/* Cookies, by the id that the agent's namespace has for another, plus 1. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __uint(max_entries, N_CLAIMS);
    __type(key, __u32);
    __type(value, __u64);
} netns_ids SEC(".maps");

/* By thread group, and the kind of the question in the high half:
 * CLOCK_BOOTTIME in ns of the last one.  Its key has 64 bits, like the key of
 * 'processes': without CAP_PERFMON, Linux 6.1 refuses to write 32 bits over 64
 * on the stack. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, N_QUESTIONS);
    __type(key, __u64);
    __type(value, __u64);
} questioned SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, QUESTIONS_SIZE);
} questions SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_SK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
    __type(key, int);
    __type(value, struct identity_owner);
} owners SEC(".maps");

static __always_inline struct identity_settings *
get_settings(void)
{
    __u32 zero = 0;

    return bpf_map_lookup_elem(&settings, &zero);
}

/* Sockets. */

/* Sends the agent a question about a process, unless it has just done so. Many
 * processes of one user can fill the ring: the agent then finds a count of
 * lost questions, and inspects all processes. */
static __always_inline void
question_process(__u32 tgid, __u64 cgroup, __u64 now)
{
    __u64 key = tgid;
    __u64 *last = bpf_map_lookup_elem(&questioned, &key);
    struct identity_question *question;

    if (last && now - *last < IDENTITY_QUESTION_NS) {
        return;
    }
    question = bpf_ringbuf_reserve(&questions, sizeof *question, 0);
    if (question) {
        question->cgroup = cgroup;
        question->tgid = tgid;
        question->may_copy = 0;
        bpf_ringbuf_submit(question, 0);
        bpf_map_update_elem(&questioned, &key, &now, BPF_ANY);
    } else {
        struct identity_settings *s = get_settings();

        if (s) {
            __sync_fetch_and_add(&s->n_lost, 1);
        }
    }
}

/* Writes the current process into the socket of 'owner'. */
static __always_inline void
stamp(struct identity_owner *owner, __u64 netns)
{
    __u64 tgid = bpf_get_current_pid_tgid() >> 32;
    __u64 now = bpf_ktime_get_boot_ns();
    __u32 uid = bpf_get_current_uid_gid();
    struct identity_claim *claim;

    if (!owner) {
        return;
    }
    owner->netns = netns;
    owner->cgroups[0] = bpf_get_current_ancestor_cgroup_id(1);
    owner->cgroups[1] = bpf_get_current_ancestor_cgroup_id(2);
    owner->cgroups[2] = bpf_get_current_ancestor_cgroup_id(3);
    owner->cgroups[3] = bpf_get_current_ancestor_cgroup_id(4);
    owner->cgroups[4] = bpf_get_current_ancestor_cgroup_id(5);
    owner->cgroups[5] = bpf_get_current_ancestor_cgroup_id(6);
    owner->cgroups[6] = bpf_get_current_ancestor_cgroup_id(7);
    owner->cgroups[7] = bpf_get_current_ancestor_cgroup_id(8);
    owner->tgid = tgid;
    owner->uid = uid;
    owner->made = now;
    owner->slot = 0;
    claim = bpf_map_lookup_elem(&processes, &tgid);
    if (!claim || now < claim->born || claim->ended
        || (uid && claim->uid != uid)) {
        question_process(tgid, bpf_get_current_cgroup_id(), now);
    }
}

SEC("cgroup/sock_create")
int
stagecoach_sock(struct bpf_sock *sk)
{
    if (sk->family == AF_INET || sk->family == AF_INET6) {
        stamp(bpf_sk_storage_get(&owners, sk, 0, BPF_SK_STORAGE_GET_F_CREATE),
              bpf_get_netns_cookie(sk));
    }
    return 1;
}

/* Returns a question about a socket that may copy a connection, and the caller
 * fills in its addresses before it submits it; else NULL. */
static __always_inline struct identity_copy *
question_copy(const struct bpf_sock_addr *ctx, const struct bpf_sock *sk)
{
    __u32 tgid = bpf_get_current_pid_tgid() >> 32;
    __u64 key = 1ull << 32 | tgid;
    __u64 now = bpf_ktime_get_boot_ns();
    __u64 *last = bpf_map_lookup_elem(&questioned, &key);
    struct identity_copy *copy;

    if (last && now - *last < IDENTITY_QUESTION_NS) {
        return NULL;
    }
    bpf_map_update_elem(&questioned, &key, &now, BPF_ANY);
    copy = bpf_ringbuf_reserve(&questions, sizeof *copy, 0);
    if (copy) {
        copy->question.cgroup = 0;
        copy->question.tgid = tgid;
        copy->question.may_copy = 1;
        copy->uid = bpf_get_current_uid_gid();
        copy->ports[0] = bpf_htons(sk->src_port);
        copy->ports[1] = ctx->user_port;
    }
    return copy;
}

/* Stamps a socket.  Returns true if it may copy a connection. */
static __always_inline bool
stamp_connecting(struct bpf_sock_addr *ctx, struct bpf_sock *sk)
{
    const struct identity_settings *s = get_settings();
    __u64 netns = bpf_get_netns_cookie(ctx);

    stamp(bpf_sk_storage_get(&owners, sk, 0, BPF_SK_STORAGE_GET_F_CREATE),
          netns);
    return s && netns != s->netns && sk->src_port && sk->type == SOCK_STREAM;
}

SEC("cgroup/connect4")
int
stagecoach_con4(struct bpf_sock_addr *ctx)
{
    struct bpf_sock *sk = ctx->sk;
    struct identity_copy *copy;

    if (!sk || !stamp_connecting(ctx, sk) || !sk->src_ip4) {
        return 1;
    }
    copy = question_copy(ctx, sk);
    if (copy) {
        copy->local[0] = copy->local[1] = 0;
        copy->remote[0] = copy->remote[1] = 0;
        copy->local[2] = copy->remote[2] = bpf_htonl(0xffff);
        copy->local[3] = sk->src_ip4;
        copy->remote[3] = ctx->user_ip4;
        bpf_ringbuf_submit(copy, 0);
    }
    return 1;
}

SEC("cgroup/connect6")
int
stagecoach_con6(struct bpf_sock_addr *ctx)
{
    struct bpf_sock *sk = ctx->sk;
    struct identity_copy *copy;

    if (!sk || !stamp_connecting(ctx, sk) || !sk->src_ip6[3]) {
        return 1;
    }
    copy = question_copy(ctx, sk);
    if (copy) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            copy->local[i] = sk->src_ip6[i];
            copy->remote[i] = ctx->user_ip6[i];
        }
        bpf_ringbuf_submit(copy, 0);
    }
    return 1;
}

/* Slots. */

/* Takes the slot of 'claim' if its source decides against '*best', which has
 * the source in the high half. */
static __always_inline void
consider(const struct identity_claim *claim, __u64 *best)
{
    if (claim) {
        __u64 found = (__u64) claim->source << 32 | claim->slot;

        *best = found >> 32 < *best >> 32 ? found : *best;
    }
}

static __always_inline void
consider_process(const struct identity_owner *owner, __u64 *best)
{
    __u64 tgid = owner->tgid;
    const struct identity_claim *claim =
        bpf_map_lookup_elem(&processes, &tgid);

    if (claim && owner->made >= claim->born
        && (!owner->uid || owner->uid == claim->uid)
        && (!claim->ended || owner->made < claim->ended)) {
        __u64 found = (__u64) claim->source << 32 | claim->slot;

        *best = found >> 32 < *best >> 32 ? found : *best;
    }
}

/* Returns the slot of the socket of 'owner' by the claims of now. */
static __always_inline __u32
resolve(const struct identity_owner *owner)
{
    __u64 best = (__u64) -1 << 32;
    __u64 netns = owner->netns;

    consider_process(owner, &best);
#pragma unroll
    for (int i = IDENTITY_LEVELS - 1; i >= 0; i--) {
        __u64 id = owner->cgroups[i];

        if (id) {
            consider(bpf_map_lookup_elem(&cgroups, &id), &best);
        }
    }
    consider(bpf_map_lookup_elem(&namespaces, &netns), &best);
    return best;
}

static __always_inline __u32
slot_of_owner(struct identity_owner *owner, __u32 epoch)
{
    __u64 known = owner->slot;

    if (known >> 32 != epoch) {
        known = (__u64) epoch << 32 | resolve(owner);
        owner->slot = known;
    }
    return (__u32) known % IDENTITY_SLOTS;
}

/* Returns the record of a socket that was there before the programs: its
 * cgroups are known to the kernel, its process is not. */
static __always_inline struct identity_owner *
adopt(struct __sk_buff *skb, struct bpf_sock *sk)
{
    struct identity_owner *owner =
        bpf_sk_storage_get(&owners, sk, 0, BPF_SK_STORAGE_GET_F_CREATE);

    if (owner) {
        owner->cgroups[0] = bpf_skb_ancestor_cgroup_id(skb, 1);
        owner->cgroups[1] = bpf_skb_ancestor_cgroup_id(skb, 2);
        owner->cgroups[2] = bpf_skb_ancestor_cgroup_id(skb, 3);
        owner->cgroups[3] = bpf_skb_ancestor_cgroup_id(skb, 4);
        owner->cgroups[4] = bpf_skb_ancestor_cgroup_id(skb, 5);
        owner->cgroups[5] = bpf_skb_ancestor_cgroup_id(skb, 6);
        owner->cgroups[6] = bpf_skb_ancestor_cgroup_id(skb, 7);
        owner->cgroups[7] = bpf_skb_ancestor_cgroup_id(skb, 8);
    }
    return owner;
}

/* Returns the record of the packet's socket; for a SYN-ACK, which belongs to a
 * request, the owner of the listener. */
static __always_inline struct identity_owner *
owner_of(struct __sk_buff *skb)
{
    struct bpf_sock *sk = skb->sk, *full;
    struct identity_owner *owner;

    if (!sk) {
        return NULL;
    }
    full = bpf_sk_fullsock(sk);
    if (!full) {
        full = bpf_get_listener_sock(sk);
    }
    if (!full) {
        return NULL;
    }
    owner = bpf_sk_storage_get(&owners, full, 0, 0);
    return owner ? owner : adopt(skb, full);
}

/* Returns the slot of a packet without a socket that came from this interface:
 * the slot of the namespace behind it. */
static __always_inline __u32
slot_of_interface(__u32 ifindex)
{
    const struct identity_pod *pod = bpf_map_lookup_elem(&pods, &ifindex);
    const struct identity_claim *claim;
    const __u64 *known;
    __u32 netns;
    __u64 cookie;

    if (!pod) {
        return 0;
    }
    netns = pod->netns;
    known = bpf_map_lookup_elem(&netns_ids, &netns);
    if (!known) {
        return 0;
    }
    cookie = *known;
    claim = bpf_map_lookup_elem(&namespaces, &cookie);
    return claim ? claim->slot % IDENTITY_SLOTS : 0;
}

/* Packets. */

/* An IPv4 header and the part of a TCP header that is read. */
#define USUAL_SIZE (sizeof(struct iphdr) + 13)

struct packet {
    __u64 now;           /* bpf_ktime_get_coarse_ns(). */
    __u64 ip;            /* Offset of the IP header. */
    __u64 transport;     /* Offset of TCP's or UDP's header, 0 if the
                          * packet has none. */
    __u64 headers;       /* Bytes up to the payload of a segment. */
    __u64 family;        /* 4, 6, or 0 if it is not IP. */
    __u64 traffic_class; /* DSCP and ECN. */
    __be16 ports[2];     /* Valid with 'transport'. */
    __u64 control;       /* A port is of its job's control class. */
};

/* Parses a packet like most: of IPv4 without options, TCP or UDP, its headers
 * in one piece.  Returns false if it is another. */
static __always_inline bool
parse_usual(struct __sk_buff *skb, const __u32 offset, struct packet *p)
{
    const __u8 *ip = (const __u8 *) (long) skb->data + offset;
    const __u8 *end = (const __u8 *) (long) skb->data_end;

    if (ip + USUAL_SIZE > end || ip[0] != 0x45 || (ip[6] & 0x3f) || ip[7]
        || (ip[9] != IPPROTO_TCP && ip[9] != IPPROTO_UDP)) {
        return false;
    }
    p->family = 4;
    p->traffic_class = ip[1];
    p->transport = offset + sizeof(struct iphdr);
    p->ports[0] = *(const __be16 *) (ip + sizeof(struct iphdr));
    p->ports[1] = *(const __be16 *) (ip + sizeof(struct iphdr) + 2);
    p->headers = p->transport
                 + (ip[9] == IPPROTO_TCP ? (ip[USUAL_SIZE - 1] >> 4) * 4
                                         : sizeof(struct udphdr));
    return true;
}

static __always_inline void
parse_transport(struct __sk_buff *skb, __u8 protocol, __u32 offset,
                struct packet *p)
{
    __u8 words;

    p->headers = offset;
    if ((protocol != IPPROTO_TCP && protocol != IPPROTO_UDP)
        || bpf_skb_load_bytes(skb, offset, p->ports, sizeof p->ports)) {
        return;
    }
    p->transport = offset;
    p->headers = offset + sizeof(struct udphdr);
    if (protocol == IPPROTO_TCP
        && !bpf_skb_load_bytes(skb, offset + 12, &words, 1)) {
        p->headers = offset + (words >> 4) * 4;
    }
}

/* Parses the packet with its IP header at 'offset'.  A global function, which
 * the kernel verifies once and not with each path to it. */
__noinline int
parse(struct __sk_buff *skb, __u32 offset, struct packet *p)
{
    __u8 header[sizeof(struct ipv6hdr)];

    if (!p) {
        return 0;
    }
    *p = (struct packet){ .now = bpf_ktime_get_coarse_ns(), .ip = offset };
    if (skb->protocol == bpf_htons(ETH_P_IP)) {
        if (offset == ETH_HLEN ? parse_usual(skb, ETH_HLEN, p)
                               : !offset && parse_usual(skb, 0, p)) {
            return 0;
        }
        if (!bpf_skb_load_bytes(skb, offset, header, sizeof(struct iphdr))) {
            bool first = !(header[6] & 0x1f) && !header[7];

            p->family = 4;
            p->traffic_class = header[1];
            parse_transport(skb, first ? header[9] : 0,
                            offset + (header[0] & 15) * 4, p);
        }
    } else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
        if (!bpf_skb_load_bytes(skb, offset, header, sizeof header)) {
            p->family = 6;
            p->traffic_class = header[0] << 4 | header[1] >> 4;
            parse_transport(skb, header[6], offset + sizeof header, p);
        }
    }
    return 0;
}

/* Adds the packet to the counters of its slot.  'more' are the bytes of a
 * segment's frame that 'skb' does not have. */
static __noinline __u64
count(struct identity_traffic *t, struct __sk_buff *skb,
      const struct packet *p, enum direction direction, __u32 more)
{
    __u32 bytes = skb->len + more, segments = skb->gso_segs;
    __u64 bin = p->now / IDENTITY_BIN_NS;
    __u64 *at = &t->bins[direction][bin % IDENTITY_BINS], old = *at;

    if (skb->gso_size && !segments && skb->len > p->headers) {
        segments = (skb->len - p->headers + skb->gso_size - 1) / skb->gso_size;
    }
    if (segments > 1) {
        bytes += (segments - 1) * (p->headers + more);
    }
    if (direction == SENT) {
        __sync_fetch_and_add(&t->tx_packets, segments ? segments : 1);
        __sync_fetch_and_add(&t->tx_bytes, bytes);
    } else {
        __sync_fetch_and_add(&t->rx_packets, segments ? segments : 1);
        __sync_fetch_and_add(&t->rx_bytes, bytes);
    }

    /* The first packet of a bin empties it. */
    if (old >> 32 != (bin & 0xffffffff)) {
        __sync_val_compare_and_swap(at, old, bin << 32);
    }
    __sync_fetch_and_add(at, bytes);
    return bytes;
}

/* A global function. */
__noinline int
count_pair(struct __sk_buff *skb, const struct packet *p, __u32 slot,
           __u64 bytes)
{
    const struct identity_settings *s = get_settings();
    struct identity_traffic *t = bpf_map_lookup_elem(&traffic, &slot);
    struct identity_pair pair = { .slot = 0 };
    __u64 *sum;
    long error;

    if (!p || !s || !t) {
        return 0;
    }
    if (p->family == 4) {
        error = bpf_skb_load_bytes(skb, p->ip + offsetof(struct iphdr, daddr),
                                   &pair.remote[12], 4);
        pair.remote[10] = pair.remote[11] = 0xff;
    } else {
        error =
            bpf_skb_load_bytes(skb, p->ip + offsetof(struct ipv6hdr, daddr),
                               pair.remote, sizeof pair.remote);
    }
    if (error) {
        return 0;
    }
    pair.slot = slot;
    sum = bpf_map_lookup_elem(&sent, &pair);
    if (sum) {
        __sync_fetch_and_add(sum, bytes);
    } else if (t->n_pairs < s->max_pairs) {
        __sync_fetch_and_add(&t->n_pairs, 1);
        bpf_map_update_elem(&sent, &pair, &bytes, BPF_ANY);
    }
    return 0;
}

/* Returns 1 if a port of the packet is of the control class of its job, else
 * 0.  A global function. */
__noinline int
is_of_control_port(const struct packet *p, __u32 slot)
{
    __u32 local, remote;

    if (!p || !p->transport) {
        return 0;
    }
    local = identity_port(slot, p->ports[0]);
    remote = identity_port(slot, p->ports[1]);
    return bpf_map_lookup_elem(&control, &local)
           || bpf_map_lookup_elem(&control, &remote);
}

/* Does the same for a packet of the socket of 'owner', which has the result
 * for its last packet: nearly always the same ports, in the same epoch. */
static __always_inline bool
is_control_of(struct identity_owner *owner, const struct packet *p, __u32 slot,
              __u32 epoch)
{
    __u64 known = owner->control;
    __u64 wanted = (__u64) p->ports[0] << 48 | (__u64) p->ports[1] << 32
                   | (__u32) (epoch << 1);

    if (known >> 1 != wanted >> 1) {
        known = wanted | is_of_control_port(p, slot);
        owner->control = known;
    }
    return known & 1;
}

/* Writes the class and the checksum into an IPv4 header where most are, by no
 * call: one takes 50 ns.  Returns false if the header is elsewhere. */
static __always_inline bool
set_tos(struct __sk_buff *skb, const struct packet *p, __u8 class)
{
    __u8 *ip = (__u8 *) (long) skb->data + ETH_HLEN;
    const __u8 *end = (const __u8 *) (long) skb->data_end;
    __u32 sum;

    if (p->ip != ETH_HLEN || ip + sizeof(struct iphdr) > end) {
        return false;
    }
    sum = (__u16) ~(ip[10] << 8 | ip[11]) + (__u16) ~(__u32) p->traffic_class
          + class;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = ~((sum & 0xffff) + (sum >> 16));
    ip[1] = class;
    ip[10] = sum >> 8;
    ip[11] = sum;
    return true;
}

static __noinline void
set_dscp(struct __sk_buff *skb, const struct packet *p, __u8 dscp)
{
    __u8 class = dscp << 2 | (p->traffic_class & 3);

    if (class == p->traffic_class) {
        return;
    }
    if (p->family == 4 && set_tos(skb, p, class)) {
        return;
    } else if (p->family == 4) {
        bpf_l3_csum_replace(skb, p->ip + offsetof(struct iphdr, check),
                            bpf_htons(p->traffic_class), bpf_htons(class), 2);
        bpf_skb_store_bytes(skb, p->ip + offsetof(struct iphdr, tos), &class,
                            1, 0);
    } else {
        __u8 bytes[2];

        if (!bpf_skb_load_bytes(skb, p->ip, bytes, sizeof bytes)) {
            bytes[0] = (bytes[0] & 0xf0) | class >> 4;
            bytes[1] = (bytes[1] & 0x0f) | class << 4;
            bpf_skb_store_bytes(skb, p->ip, bytes, sizeof bytes, 0);
        }
    }
}

/* Gives a packet of 'slot' its DSCP and priority, unless the kernel only
 * counts.  Returns 1 if they are the default ones, else 0.  A global
 * function. */
__noinline int
give_class(struct __sk_buff *skb, const struct packet *p, __u32 slot)
{
    const struct identity_settings *s = get_settings();
    const struct identity_row *row = bpf_map_lookup_elem(&rows, &slot);
    __u64 queue, level = IDENTITY_DEFAULT_LEVEL;
    const __u32 *priority;
    bool is_default;
    __u8 dscp;

    if (!p || !s || !row) {
        return 1;
    }
    is_default = !slot || !row->used;
    if (s->mode == IDENTITY_COUNTS) {
        return is_default;
    }
    is_default = is_default || p->now >= s->lease_until;
    dscp = p->traffic_class >> 2;
    if (is_default) {
        if (dscp == s->control_dscp || (s->level_dscps >> dscp & 1)) {
            dscp = s->default_dscp;
        }
    } else if (row->has_control && (dscp == s->control_dscp || p->control)) {
        dscp = s->control_dscp;
        level = IDENTITY_CONTROL_LEVEL;
    } else {
        dscp = row->dscp;
        level = row->level;
    }
    set_dscp(skb, p, dscp);
    queue = identity_queue(skb->ifindex, level);
    priority = bpf_map_lookup_elem(&priorities, &queue);
    if (priority) {
        skb->priority = *priority;
    }
    return is_default;
}

/* Returns the index of the interface to which the host would send a reply to
 * the packet; 0 if to none, because the source is an address of its own, or
 * because it does not forward.  A global function. */
__noinline __u32
way_back(struct __sk_buff *skb, const struct packet *p)
{
    struct bpf_fib_lookup to = { .ifindex = skb->ifindex };
    long result = -1;

    if (!p) {
        return 0;
    }
    if (p->family == 4) {
        to.family = AF_INET;
        result = bpf_skb_load_bytes(skb, p->ip + offsetof(struct iphdr, saddr),
                                    &to.ipv4_dst, sizeof to.ipv4_dst);
    } else if (p->family == 6) {
        to.family = AF_INET6;
        result =
            bpf_skb_load_bytes(skb, p->ip + offsetof(struct ipv6hdr, saddr),
                               to.ipv6_dst, sizeof to.ipv6_dst);
    }
    if (!result) {
        result = bpf_fib_lookup(skb, &to, sizeof to, 0);
    }
    return result == BPF_FIB_LKUP_RET_SUCCESS
                   || result == BPF_FIB_LKUP_RET_NO_NEIGH
                   || result == BPF_FIB_LKUP_RET_FRAG_NEEDED
               ? to.ifindex
               : 0;
}

/* Returns true if the program that has sent the packet wrote its addresses. */
static __always_inline bool
is_raw(struct __sk_buff *skb)
{
    struct bpf_sock *sk = skb->sk;

    if (!sk) {
        return false;
    }
    sk = bpf_sk_fullsock(sk);
    return sk && sk->type == SOCK_RAW;
}

/* Returns true if a reply to the packet goes back to this interface of a
 * pod, or to its bridge. */
static __always_inline bool
is_replied_at(struct __sk_buff *skb, const struct packet *p, __u32 ifindex)
{
    const struct identity_pod *pod = bpf_map_lookup_elem(&pods, &ifindex);
    __u32 bridge = 0, back;

    if (is_raw(skb)) {
        return false;
    }
    if (pod) {
        bridge = pod->bridge;
    }
    back = way_back(skb, p);
    return back && (back == ifindex || back == bridge);
}

/* Returns true if a reply to a packet that has its socket comes to that
 * socket.  A raw socket can write any source, one of IPv6 can be bound to any,
 * and another namespace on the same wire can give itself any. */
static __always_inline bool
is_replied(struct __sk_buff *skb, const struct identity_settings *s,
           const struct packet *p, const struct identity_owner *owner)
{
    bool foreign = false;
    __u32 back;

    if (is_raw(skb)) {
        return false;
    }
    if (owner) {
        foreign = owner->netns && owner->netns != s->netns;
    }
    if (!foreign && p->family == 4) {
        return true;
    }
    back = way_back(skb, p);
    return back == skb->ifindex || (!foreign && !back);
}

/* Pushes the tag of the packet.  The shim must not learn from a source to
 * which replies do not come back. */
static __always_inline void
push_tag(struct __sk_buff *skb, const struct identity_settings *s,
         const struct packet *p, __u32 slot, bool learn)
{
    __u16 tag = slot;

    if (slot && p->family
        && (p->traffic_class >> 2 == s->control_dscp || p->control)) {
        tag |= SLOT_TAG_CONTROL;
    }
    if (!learn) {
        tag |= SLOT_TAG_NO_LEARN;
    }
    bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), tag);
}

/* Egress of an uplink. */
SEC("tc")
int
stagecoach_out(struct __sk_buff *skb)
{
    const struct identity_settings *s = get_settings();
    struct identity_owner *owner;
    struct identity_traffic *t;
    struct packet p = { .ip = 0 };
    bool learn = false, tags;
    __u32 slot = 0, from;
    __u64 bytes = 0;

    if (!s) {
        return TC_ACT_UNSPEC;
    }
    tags = s->mode == IDENTITY_TAGS;
    parse(skb, ETH_HLEN, &p);
    owner = owner_of(skb);
    if (owner) {
        learn = tags && is_replied(skb, s, &p, owner);
        slot = slot_of_owner(owner, s->epoch);
        if (slot) {
            p.control = is_control_of(owner, &p, slot, s->epoch);
        }
    } else if (!skb->sk) {
        if (s->mark_shift < IDENTITY_NO_MARK) {
            slot = (skb->mark >> s->mark_shift >> 1) % IDENTITY_SLOTS;
            learn = skb->mark >> s->mark_shift & 1;
        }
        if (!slot) {
            from = skb->ingress_ifindex;
            slot = slot_of_interface(from);
            learn = tags && slot && is_replied_at(skb, &p, from);
        }
        p.control = slot && is_of_control_port(&p, slot);
    }
    t = bpf_map_lookup_elem(&traffic, &slot);
    if (!t) {
        return TC_ACT_UNSPEC;
    }
    if (p.family) {
        bytes = count(t, skb, &p, SENT, 0);
        if (s->max_pairs && slot) {
            count_pair(skb, &p, slot, bytes);
        }
    } else {
        __sync_fetch_and_add(&t->other_bytes, skb->len);
    }
    if (tags) {
        push_tag(skb, s, &p, slot, learn);
    } else if (p.family && give_class(skb, &p, slot)) {
        __sync_fetch_and_add(&t->default_bytes, bytes);
    }
    return TC_ACT_UNSPEC;
}

/* Ingress of the host's end of a pod's interface: the packet still has the
 * pod's socket, which routing or bridging drops, so the mark carries the slot.
 * There the source is still the pod's, which the uplink may hide. */
SEC("tc")
int
stagecoach_pod(struct __sk_buff *skb)
{
    const struct identity_settings *s = get_settings();
    struct identity_owner *owner;
    __u32 mask, mark, slot;
    struct packet p = { .ip = 0 };

    if (!s || s->mark_shift >= IDENTITY_NO_MARK) {
        return TC_ACT_UNSPEC;
    }
    mask = ((1u << IDENTITY_MARK_BITS) - 1) << (s->mark_shift & 31);
    owner = owner_of(skb);
    slot = owner ? slot_of_owner(owner, s->epoch)
                 : slot_of_interface(skb->ifindex);
    if (slot) {
        slot <<= 1;
        if (s->mode == IDENTITY_TAGS) {
            parse(skb, ETH_HLEN, &p);
            slot |= is_replied_at(skb, &p, skb->ifindex);
        }
    }
    mark = (skb->mark & ~mask) | slot << (s->mark_shift & 31);
    barrier_var(skb); /* Else the address of the mark is kept, and
                       * the verifier refuses it. */
    skb->mark = mark;
    return TC_ACT_UNSPEC;
}

/* Received packets, in all namespaces; at this point they begin with the IP
 * header. */
SEC("cgroup_skb/ingress")
int
stagecoach_in(struct __sk_buff *skb)
{
    const struct identity_settings *s = get_settings();
    struct bpf_sock *sk = skb->sk;
    struct identity_owner *owner;
    struct identity_traffic *t;
    struct packet p = { .ip = 0 };
    __u32 slot;

    if (!s || !sk || skb->ifindex == LOOPBACK) {
        return 1;
    }
    sk = bpf_sk_fullsock(sk);
    if (!sk) {
        return 1;
    }
    owner = bpf_sk_storage_get(&owners, sk, 0, 0);
    if (!owner) {
        return 1;
    }
    slot = slot_of_owner(owner, s->epoch);
    t = slot ? bpf_map_lookup_elem(&traffic, &slot) : NULL;
    if (t) {
        parse(skb, 0, &p);
        count(t, skb, &p, RECEIVED, ETH_HLEN);
    }
    return 1;
}

/* The route to an address is for programs that are GPL-compatible. */
char _license[] SEC("license") = "Dual BSD/GPL";
