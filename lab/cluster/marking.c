/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/marking.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <net/if.h>
#include <stddef.h>
#include <unistd.h>

#include "lab/cluster/spawn.h"
#include "util.h"

#define NS_PER_S INT64_C(1000000000)

/* Time to send a byte, in 1/TIME_UNIT nanoseconds: 64 bits are enough for a
 * frame of 64 kB at 1 kbit/s. */
#define TIME_SHIFT 8

#define INSN(CODE, DST, SRC, OFF, IMM)                                  \
    ((struct bpf_insn) { .code = (CODE), .dst_reg = (DST),              \
                         .src_reg = (SRC), .off = (OFF), .imm = (IMM) })
#define MOVE(DST, SRC) INSN(BPF_ALU64 | BPF_MOV | BPF_X, DST, SRC, 0, 0)
#define SET(DST, IMM) INSN(BPF_ALU64 | BPF_MOV | BPF_K, DST, 0, 0, IMM)
#define ALU(OP, DST, IMM) INSN(BPF_ALU64 | (OP) | BPF_K, DST, 0, 0, IMM)
#define ALU_REG(OP, DST, SRC) INSN(BPF_ALU64 | (OP) | BPF_X, DST, SRC, 0, 0)
#define LOAD(SIZE, DST, SRC, OFF)                                       \
    INSN(BPF_LDX | BPF_MEM | (SIZE), DST, SRC, OFF, 0)
#define STORE(SIZE, DST, SRC, OFF)                                      \
    INSN(BPF_STX | BPF_MEM | (SIZE), DST, SRC, OFF, 0)
#define STORE_IMM(SIZE, DST, OFF, IMM)                                  \
    INSN(BPF_ST | BPF_MEM | (SIZE), DST, 0, OFF, IMM)
#define JUMP(OP, DST, SRC, OFF) INSN(BPF_JMP | (OP) | BPF_X, DST, SRC, OFF, 0)
#define JUMP_IMM(OP, DST, IMM, OFF)                                     \
    INSN(BPF_JMP | (OP) | BPF_K, DST, 0, OFF, IMM)
#define CALL(FUNCTION) INSN(BPF_JMP | BPF_CALL, 0, 0, 0, FUNCTION)
#define EXIT() INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0)

/* Loads the program for a link that needs 'per_byte' units of time for a byte
 * and marks what waits for longer than 'limit_ns'.  'map' has one element: the
 * time, in ns, when the link will have sent all earlier packets.  Returns its
 * descriptor or a negative errno. */
static int
load_program(int map, int32_t per_byte, int32_t limit_ns)
{
    /* r6: the packet, r7: the element, r8: when the link is free, r9: how long
     * the packet waits. */
    const struct bpf_insn program[] = {
        MOVE(BPF_REG_6, BPF_REG_1),
        STORE_IMM(BPF_W, BPF_REG_10, -4, 0),
        MOVE(BPF_REG_2, BPF_REG_10),
        ALU(BPF_ADD, BPF_REG_2, -4),
        INSN(BPF_LD | BPF_IMM | BPF_DW, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, map),
        INSN(0, 0, 0, 0, 0),
        CALL(BPF_FUNC_map_lookup_elem),
        JUMP_IMM(BPF_JEQ, BPF_REG_0, 0, 15),
        MOVE(BPF_REG_7, BPF_REG_0),
        CALL(BPF_FUNC_ktime_get_ns),
        LOAD(BPF_DW, BPF_REG_8, BPF_REG_7, 0),
        JUMP(BPF_JGE, BPF_REG_8, BPF_REG_0, 1),
        MOVE(BPF_REG_8, BPF_REG_0),
        MOVE(BPF_REG_9, BPF_REG_8),
        ALU_REG(BPF_SUB, BPF_REG_9, BPF_REG_0),
        LOAD(BPF_W, BPF_REG_1, BPF_REG_6, offsetof(struct __sk_buff, len)),
        ALU(BPF_MUL, BPF_REG_1, per_byte),
        ALU(BPF_RSH, BPF_REG_1, TIME_SHIFT),
        ALU_REG(BPF_ADD, BPF_REG_8, BPF_REG_1),
        STORE(BPF_DW, BPF_REG_7, BPF_REG_8, 0),
        JUMP_IMM(BPF_JLE, BPF_REG_9, limit_ns, 2),
        MOVE(BPF_REG_1, BPF_REG_6),
        CALL(BPF_FUNC_skb_ecn_set_ce),
        SET(BPF_REG_0, -1),             /* TC_ACT_UNSPEC: go on. */
        EXIT(),
    };

    return bpf_prog_load(BPF_PROG_TYPE_SCHED_CLS, "marking", "Apache-2.0",
                         program, ARRAY_SIZE(program), NULL);
}

struct port {
    const char *dev;
    int64_t rate_bps;
};

/* Attaches the program in this network namespace. */
static int
attach(void *port_)
{
    const struct port *port = port_;
    int64_t per_byte = (8 * NS_PER_S << TIME_SHIFT) / port->rate_bps;
    int64_t limit_ns = MARKING_BYTES * 8 * NS_PER_S / port->rate_bps;
    int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "marking", sizeof(uint32_t),
                             sizeof(uint64_t), 1, NULL);
    int program = map < 0 ? map
                  : load_program(map, MIN(per_byte, INT32_MAX),
                                 MIN(limit_ns, INT32_MAX));
    LIBBPF_OPTS(bpf_tc_hook, hook, .attach_point = BPF_TC_EGRESS,
                .ifindex = if_nametoindex(port->dev));
    LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = program);
    int error = program < 0 ? program : bpf_tc_hook_create(&hook);

    error = error && error != -EEXIST ? error : bpf_tc_attach(&hook, &opts);
    if (program >= 0) {
        close(program);
    }
    if (map >= 0) {
        close(map);
    }
    return error;
}

char *
marking_attach(const char *ns, const char *dev, int64_t rate_bps)
{
    struct port port = { .dev = dev, .rate_bps = rate_bps };
    int error = netns_call(ns, attach, &port);

    return error ? xasprintf("%s: cannot mark packets by a BPF program (%s); "
                             "the lab needs the kernel's CONFIG_NET_CLS_BPF "
                             "for \"queues\": \"ecn\"", dev,
                             ovs_strerror(-error)) : NULL;
}
