/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/bpf/tc-program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Of linux/bpf.h since 6.6. */
#define ATTACH_TCX_INGRESS 46
#define ATTACH_TCX_EGRESS 47
#define ATTACH_NETKIT_PEER 55 /* Since 6.7. */
#define LINK_TYPE_NETKIT 13
#define PLACE_FIRST (1u << 3) /* BPF_F_BEFORE without another program. */

static enum bpf_tc_attach_point
point_of(enum tc_program_place place)
{
    return place == TC_PROGRAM_EGRESS ? BPF_TC_EGRESS : BPF_TC_INGRESS;
}

static uint32_t
type_of(enum tc_program_place place)
{
    return place == TC_PROGRAM_EGRESS    ? ATTACH_TCX_EGRESS
           : place == TC_PROGRAM_INGRESS ? ATTACH_TCX_INGRESS
                                         : ATTACH_NETKIT_PEER;
}

/* Makes a link of TCX or netkit: the first one at ingress, where the packet
 * must still have its socket, and the last one at egress.  Returns its fd or a
 * negative errno.  Debian 12's libbpf and headers do not know it. */
static int
create_link(int program, int ifindex, enum tc_program_place place)
{
    struct {
        uint32_t program, ifindex, type, flags, relative, pad;
        uint64_t revision, rest[8];
    } attr = { .program = program, .ifindex = ifindex };
    long fd;

    attr.type = type_of(place);
    attr.flags = place == TC_PROGRAM_EGRESS ? 0 : PLACE_FIRST;
    fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof attr);
    return fd < 0 ? -errno : (int) fd;
}

static int
attach_filter(int program, int ifindex, enum tc_program_place place)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
                .attach_point = point_of(place));
    LIBBPF_OPTS(bpf_tc_opts, opts, .prog_fd = program,
                .handle = TC_PROGRAM_HANDLE, .priority = TC_PROGRAM_PRIORITY,
                .flags = BPF_TC_F_REPLACE);
    int error = bpf_tc_hook_create(&hook);

    return error && error != -EEXIST ? -error : -bpf_tc_attach(&hook, &opts);
}

/* Returns true if the pinned link 'fd' is of this interface.  A link of netkit
 * has the index of the other end, in its namespace, and 0 when that is gone.
 */
static bool
is_of(int fd, int ifindex)
{
    struct {
        uint32_t type, id, program, pad, ifindex, attach_type, rest[16];
    } info = { .type = 0 };
    uint32_t size = sizeof info;

    return !bpf_obj_get_info_by_fd(fd, &info, &size)
           && (info.type == LINK_TYPE_NETKIT
                   ? info.ifindex != 0
                   : info.ifindex == (uint32_t) ifindex);
}

/* Puts 'program' in place of the pinned link's.  Returns false if there
 * is no link, or of an interface that has gone. */
static bool
replace(int program, int ifindex, const char *pin)
{
    int fd = bpf_obj_get(pin);
    bool replaced =
        fd >= 0 && is_of(fd, ifindex) && !bpf_link_update(fd, program, NULL);

    if (fd >= 0) {
        close(fd);
    }
    if (!replaced) {
        unlink(pin);
    }
    return replaced;
}

int
tc_program_attach(int program, int ifindex, enum tc_program_place place,
                  const char *pin)
{
    int error = 0, fd;

    if (replace(program, ifindex, pin)) {
        return 0;
    }
    fd = create_link(program, ifindex, place);
    if (fd == -EINVAL && place != TC_PROGRAM_NETKIT) { /* No TCX. */
        return attach_filter(program, ifindex, place);
    } else if (fd < 0) {
        return -fd;
    }
    error = bpf_obj_pin(fd, pin) ? errno : 0;
    close(fd);
    return error;
}

bool
tc_program_is_attached(int ifindex, enum tc_program_place place,
                       const char *pin)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
                .attach_point = point_of(place));
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = TC_PROGRAM_HANDLE,
                .priority = TC_PROGRAM_PRIORITY);
    int fd = bpf_obj_get(pin);

    if (fd >= 0) {
        bool attached = is_of(fd, ifindex);

        close(fd);
        return attached;
    }
    return !bpf_tc_query(&hook, &opts);
}

size_t
tc_program_list(int ifindex, enum tc_program_place place, uint32_t *ids,
                size_t max)
{
    uint32_t n = max;

    return bpf_prog_query(ifindex, type_of(place), 0, NULL, ids, &n) ? 0 : n;
}

void
tc_program_detach(int ifindex, enum tc_program_place place, const char *pin)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = ifindex,
                .attach_point = point_of(place));
    LIBBPF_OPTS(bpf_tc_opts, opts, .handle = TC_PROGRAM_HANDLE,
                .priority = TC_PROGRAM_PRIORITY);

    if (unlink(pin) && ifindex) {
        bpf_tc_detach(&hook, &opts);
    }
}
