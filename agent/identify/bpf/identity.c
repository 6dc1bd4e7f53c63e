/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/bpf/identity.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "agent/identify/bpf/interfaces.h"
#include "base/clock.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "shim/ports/route-socket.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(identity);

/* The object file of identity.bpf.c, made by the build. */
extern const unsigned char identity_program[];
extern const size_t identity_program_size;

#define CHECK_MS 1000     /* Between checks of the interfaces. */
#define CONTROL_GAP_MS 10 /* Between epochs for ports that a job reports. */
#define MAX_UPLINKS 16
#define MAX_FDS 4096 /* Of a process, in identity_adopt(). */

struct uplink {
    char name[IFNAMSIZ];
    int ifindex; /* Where the program was attached, 0: not. */
    int lock;    /* Socket that keeps other agents out. */
};

struct identity {
    char *pins;
    struct bpf_object *object;
    struct ring_buffer *ring;
    identity_question_func *take; /* Of the current call. */
    void *aux;
    struct identity_settings *settings;
    struct identity_row *rows;
    struct identity_traffic *traffic;
    uint8_t n_control[IDENTITY_SLOTS]; /* Ports of the control class. */
    bool control_changed;              /* Sockets do not know yet. */
    long long next_control;            /* time_msec() when they may. */
    struct uplink uplinks[MAX_UPLINKS];
    size_t n_uplinks;
    bool observes; /* It changes nothing. */
    long long next_check;
};

static const char *const map_names[] = {
    [IDENTITY_PROCESSES] = "processes",
    [IDENTITY_CGROUPS] = "cgroups",
    [IDENTITY_NAMESPACES] = "namespaces",
};

_Static_assert(sizeof(struct identity_row) % 8 == 0
                   && sizeof(struct identity_traffic) % 8 == 0,
               "elements are where the kernel has them");

/* Programs of an interface. */
static const struct hook {
    const char *program;
    enum tc_program_place place;
} hooks[] = {
    [IDENTITY_OUT] = { "stagecoach_out", TC_PROGRAM_EGRESS },
    [IDENTITY_VETH] = { "stagecoach_pod", TC_PROGRAM_INGRESS },
    [IDENTITY_TAP] = { "stagecoach_pod", TC_PROGRAM_INGRESS },
    [IDENTITY_NETKIT] = { "stagecoach_pod", TC_PROGRAM_NETKIT },
};

static int
map_fd(const struct identity *id, const char *name)
{
    return id->object ? bpf_object__find_map_fd_by_name(id->object, name) : -1;
}

/* Loading. */

static int
print_library(enum libbpf_print_level level OVS_UNUSED, const char *format,
              va_list args)
{
    vlog_valist(&this_module, VLL_DBG, format, args);
    return 0;
}

/* Opens the object, with pins for its maps. */
static struct bpf_object *
open_object(const char *pins)
{
    LIBBPF_OPTS(bpf_object_open_opts, opts, .object_name = "stagecoach");
    struct bpf_object *object =
        bpf_object__open_mem(identity_program, identity_program_size, &opts);
    struct bpf_map *map;

    if (libbpf_get_error(object)) {
        return NULL;
    }
    bpf_object__for_each_map(map, object)
    {
        char *pin = xasprintf("%s/%s", pins, bpf_map__name(map));

        bpf_map__set_pin_path(map, pin);
        free(pin);
    }
    return object;
}

/* Removes the files in the folder of pins. */
static void
remove_pins(const char *pins)
{
    DIR *dir = opendir(pins);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        if (entry->d_name[0] != '.') {
            unlinkat(dirfd(dir), entry->d_name, 0);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Loads the object with the pinned maps, or, if these are of another layout,
 * in place of them. */
static int
load(struct identity *id)
{
    int error = EINVAL;

    for (int attempt = 0; error && attempt < 2; attempt++) {
        if (attempt) {
            remove_pins(id->pins);
            bpf_object__close(id->object);
        }
        id->object = open_object(id->pins);
        error = id->object ? -bpf_object__load(id->object) : errno;
        if (error == EPERM || !id->object) {
            break;
        }
    }
    return error;
}

/* Arrays of the kernel, and the members for them. */
static const struct array {
    const char *name;
    size_t size, member;
} arrays[] = {
    { "settings", sizeof(struct identity_settings),
      offsetof(struct identity, settings) },
    { "rows", IDENTITY_SLOTS * sizeof(struct identity_row),
      offsetof(struct identity, rows) },
    { "traffic", IDENTITY_SLOTS * sizeof(struct identity_traffic),
      offsetof(struct identity, traffic) },
};

static void **
array_of(struct identity *id, const struct array *a)
{
    return (void **) ((char *) id + a->member);
}

/* Maps the kernel's arrays into memory, or without programs empty ones. */
static int
map_arrays(struct identity *id)
{
    int flags = MAP_SHARED | (id->object ? 0 : MAP_ANONYMOUS);

    for (const struct array *a = arrays; a < &arrays[ARRAY_SIZE(arrays)];
         a++) {
        void *at = mmap(NULL, a->size, PROT_READ | PROT_WRITE, flags,
                        map_fd(id, a->name), 0);

        if (at == MAP_FAILED) {
            return errno;
        }
        *array_of(id, a) = at;
    }
    return 0;
}

/* Attaches a program to the cgroup 'fd', in place of the one that the pinned
 * link has. */
static int
attach_to_cgroup(const struct identity *id, struct bpf_program *program,
                 int fd)
{
    char *pin = xasprintf("%s/link-%s", id->pins, bpf_program__name(program));
    int link = bpf_obj_get(pin), error = 0;

    if (link < 0 || bpf_link_update(link, bpf_program__fd(program), NULL)) {
        if (link >= 0) {
            close(link);
        }
        unlink(pin);
        link =
            bpf_link_create(bpf_program__fd(program), fd,
                            bpf_program__expected_attach_type(program), NULL);
        error = link < 0 ? -link : bpf_obj_pin(link, pin) ? errno : 0;
    }
    if (link >= 0) {
        close(link);
    }
    free(pin);
    return error;
}

static int
attach_to_cgroups(struct identity *id, const char *cgroup)
{
    int fd = open(cgroup, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct bpf_program *program;
    int error = fd < 0 ? errno : 0;

    bpf_object__for_each_program(program, id->object)
    {
        if (!error && bpf_program__type(program) != BPF_PROG_TYPE_SCHED_CLS) {
            error = attach_to_cgroup(id, program, fd);
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return error;
}

/* Returns the cookie of the thread's network namespace, 0 on error. */
static uint64_t
own_cookie(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    uint64_t cookie = 0;
    socklen_t size = sizeof cookie;

    getsockopt(fd, SOL_SOCKET, SO_NETNS_COOKIE, &cookie, &size);
    close(fd);
    return cookie;
}

static int
take_question(void *id_, void *data, size_t size OVS_UNUSED)
{
    struct identity *id = id_;
    id->take(data, id->aux);
    return 0;
}

#define BPFFS "/sys/fs/bpf"
#define BPFFS_MAGIC 0xcafe4a11

/* Makes the folder of pins, and the one that it is in.  Mounts the file system
 * at its usual place if it is not mounted. */
static int
make_folder(const char *pins)
{
    char *parent = dir_name(pins);
    struct statfs fs;
    int error;

    if (!strncmp(pins, BPFFS "/", strlen(BPFFS "/")) && !statfs(BPFFS, &fs)
        && fs.f_type != BPFFS_MAGIC) {
        mount("bpf", BPFFS, "bpf", 0, "mode=0700");
    }
    mkdir(parent, 0700);
    error = mkdir(pins, 0700) && errno != EEXIST ? errno : 0;
    free(parent);
    return error;
}

char *
identity_open(const struct identity_config *config, struct identity **idp)
{
    struct identity *id = xzalloc(sizeof *id);
    const char *what = "cannot make the folder";
    uint64_t netns = own_cookie();
    char *message;
    int error = make_folder(config->pins);

    *idp = NULL;
    id->pins = xstrdup(config->pins);
    libbpf_set_print(print_library);
    if (!error) {
        what = "cannot load the programs of the kernel";
        error = load(id);
    }
    if (!error) {
        what = "cannot map the arrays of the kernel";
        error = map_arrays(id);
    }
    if (!error) {
        what = "cannot read the questions of the kernel";
        id->ring =
            ring_buffer__new(map_fd(id, "questions"), take_question, id, NULL);
        error = id->ring ? 0 : errno;
    }
    if (!error) {
        what = "cannot attach the programs to the cgroup";
        error = attach_to_cgroups(id, config->cgroup);
    }
    if (!error) {
        id->settings->mark_shift = config->mark_shift;
        id->settings->netns = netns;
        id->observes = config->mode == IDENTITY_COUNTS;
        if (config->mode != IDENTITY_TAGS
            || id->settings->mode != IDENTITY_COUNTS) {
            id->settings->mode = config->mode;
        }
        *idp = id;
        return NULL;
    }
    message = xasprintf("%s: %s (%s); expected a mount of bpffs, CAP_BPF and "
                        "a kernel of 6.1 or later",
                        config->pins, what, ovs_strerror(error));
    identity_close(id);
    return message;
}

struct identity *
identity_open_blind(void)
{
    struct identity *id = xzalloc(sizeof *id);
    int error = map_arrays(id);

    ovs_assert(!error);
    return id;
}

bool
identity_is_blind(const struct identity *id)
{
    return !id->object;
}

void
identity_close(struct identity *id)
{
    if (!id) {
        return;
    }
    for (size_t i = 0; i < id->n_uplinks; i++) {
        close(id->uplinks[i].lock);
    }
    ring_buffer__free(id->ring);
    for (size_t i = 0; i < ARRAY_SIZE(arrays); i++) {
        munmap(*array_of(id, &arrays[i]), arrays[i].size);
    }
    bpf_object__close(id->object);
    free(id->pins);
    free(id);
}

/* Interfaces. */

static char *
pin_of(const char *pins, const char *program, int ifindex)
{
    return xasprintf("%s/link-%s-%d", pins, program, ifindex);
}

static int
attach(struct identity *id, int ifindex, enum identity_hook hook)
{
    struct bpf_program *program =
        bpf_object__find_program_by_name(id->object, hooks[hook].program);
    char *pin = pin_of(id->pins, hooks[hook].program, ifindex);
    int error = tc_program_attach(bpf_program__fd(program), ifindex,
                                  hooks[hook].place, pin);

    free(pin);
    return error;
}

static int
ethtool(const char *iface, struct ethtool_value value, uint32_t *datap)
{
    struct ifreq ifr = { .ifr_data = (void *) &value };
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error;

    ovs_strzcpy(ifr.ifr_name, iface, sizeof ifr.ifr_name);
    error = ioctl(fd, SIOCETHTOOL, &ifr);
    close(fd);
    *datap = value.data;
    return error;
}

bool
identity_has_gro(const char *iface)
{
    uint32_t on;

    return !ethtool(iface, (struct ethtool_value){ ETHTOOL_GGRO, 0 }, &on)
           && on;
}

/* Switches GRO of an interface.  Returns true if it was different. */
static bool
switch_gro(int ifindex, uint32_t on)
{
    char iface[IFNAMSIZ];

    return if_indextoname(ifindex, iface) && identity_has_gro(iface) != on
           && !ethtool(iface, (struct ethtool_value){ ETHTOOL_SGRO, on }, &on);
}

int
identity_add_pod(struct identity *id, int ifindex, enum identity_hook hook,
                 int bridge, int netns)
{
    struct identity_pod pod = { .had_gro = false };
    int fd = map_fd(id, "pods");

    bpf_map_lookup_elem(fd, &ifindex, &pod);
    pod.bridge = bridge;
    pod.netns = netns + 1;
    pod.had_gro |=
        hook == IDENTITY_VETH && !id->observes && switch_gro(ifindex, false);
    bpf_map_update_elem(fd, &ifindex, &pod, BPF_ANY);
    return attach(id, ifindex, hook);
}

void
identity_remove_pod(struct identity *id, int ifindex)
{
    char *pin = pin_of(id->pins, hooks[IDENTITY_VETH].program, ifindex);

    unlink(pin);
    free(pin);
    bpf_map_delete_elem(map_fd(id, "pods"), &ifindex);
}

/* Binds a name of this network namespace, which the kernel frees when the
 * agent ends.  Returns the fd or a negative errno. */
static int
lock_uplink(const char *iface)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int n = snprintf(address.sun_path + 1, sizeof address.sun_path - 1,
                     "stagecoach/uplink/%s", iface);

    if (fd >= 0
        && bind(fd, (struct sockaddr *) &address,
                offsetof(struct sockaddr_un, sun_path) + 1 + n)) {
        int error = errno;

        close(fd);
        return -error;
    }
    return fd < 0 ? -errno : fd;
}

/* Attaches the program to the uplink if it is not there. */
static int
check_uplink(struct identity *id, struct uplink *uplink)
{
    int ifindex = if_nametoindex(uplink->name);
    char *pin = pin_of(id->pins, hooks[IDENTITY_OUT].program, ifindex);
    bool there =
        ifindex && ifindex == uplink->ifindex
        && tc_program_is_attached(ifindex, hooks[IDENTITY_OUT].place, pin);
    int error = there     ? 0
                : ifindex ? attach(id, ifindex, IDENTITY_OUT)
                          : ENODEV;

    free(pin);
    if (!error && !there && uplink->ifindex) {
        VLOG_WARN(
            "%s: the program that marks packets had been removed, it is back",
            uplink->name);
    }
    if (uplink->ifindex != ifindex) {
        identity_set_priorities(id, uplink->ifindex,
                                NULL); /* It was removed. */
    }
    uplink->ifindex = error ? 0 : ifindex;
    return error;
}

char *
identity_add_uplink(struct identity *id, const char *iface)
{
    struct uplink *uplink = &id->uplinks[id->n_uplinks];
    int lock, error;

    if (id->n_uplinks == MAX_UPLINKS) {
        return xasprintf("%s: too many uplinks; expected %d", iface,
                         MAX_UPLINKS);
    }
    lock = lock_uplink(iface);
    if (lock < 0) {
        return xasprintf("%s: %s", iface,
                         lock == -EADDRINUSE
                             ? "another agent marks its packets, only one may"
                             : ovs_strerror(-lock));
    }
    *uplink = (struct uplink){ .lock = lock };
    ovs_strzcpy(uplink->name, iface, sizeof uplink->name);
    error = check_uplink(id, uplink);
    if (error && error != ENODEV) {
        close(lock);
        return xasprintf("%s: cannot attach a program (%s)", iface,
                         ovs_strerror(error));
    }
    id->n_uplinks++;
    return NULL;
}

void
identity_for_each_uplink(const struct identity *id, identity_uplink_func *see,
                         void *aux)
{
    for (size_t i = 0; i < id->n_uplinks; i++) {
        if (id->uplinks[i].ifindex) {
            see(id->uplinks[i].name, id->uplinks[i].ifindex, aux);
        }
    }
}

void
identity_set_priorities(struct identity *id, int ifindex,
                        const uint32_t priority[IDENTITY_ORDER_LEVELS])
{
    int fd = map_fd(id, "priorities");

    for (uint32_t i = 0; i < IDENTITY_ORDER_LEVELS; i++) {
        uint64_t queue = identity_queue(ifindex, i);

        if (priority) {
            bpf_map_update_elem(fd, &queue, &priority[i], BPF_ANY);
        } else {
            bpf_map_delete_elem(fd, &queue);
        }
    }
}

void
identity_run(struct identity *id, long long now)
{
    if (id->control_changed && now >= id->next_control) {
        id->control_changed = false;
        id->next_control = now + CONTROL_GAP_MS;
        identity_raise_epoch(id);
    }
    if (now < id->next_check) {
        return;
    }
    id->next_check = now + CHECK_MS;
    for (size_t i = 0; i < id->n_uplinks; i++) {
        static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);
        int error = check_uplink(id, &id->uplinks[i]);

        if (error) {
            VLOG_WARN_RL(&rl, "%s: no program marks its packets (%s)",
                         id->uplinks[i].name, ovs_strerror(error));
        }
    }
}

bool
identity_recheck(struct identity *id, const char *iface)
{
    for (size_t i = 0; i < id->n_uplinks; i++) {
        if (!strcmp(id->uplinks[i].name, iface)) {
            id->next_check = 0;
            return true;
        }
    }
    return false;
}

void
identity_wait(const struct identity *id)
{
    if (id->control_changed) {
        poll_timer_wait_until(id->next_control);
    }
    if (id->ring) {
        poll_timer_wait_until(id->next_check);
        poll_fd_wait(identity_question_fd(id), POLLIN);
    }
}

/* Maps. */

struct identity_settings *
identity_settings(struct identity *id)
{
    return id->settings;
}

struct identity_row *
identity_rows(struct identity *id)
{
    return id->rows;
}

struct identity_traffic *
identity_traffic(struct identity *id)
{
    return id->traffic;
}

int
identity_set_claims(struct identity *id, enum identity_map map,
                    const uint64_t keys[],
                    const struct identity_claim claims[], size_t n,
                    size_t *setp)
{
    uint32_t count = n;
    int error = n && id->object ? -bpf_map_update_batch(
                    map_fd(id, map_names[map]), keys, claims, &count, NULL)
                                : 0;

    *setp = error ? MIN(count, n - 1) : n;
    return error;
}

int
identity_remove_claim(struct identity *id, enum identity_map map, uint64_t key)
{
    return id->object ? -bpf_map_delete_elem(map_fd(id, map_names[map]), &key)
                      : 0;
}

void
identity_raise_epoch(struct identity *id)
{
    id->settings->epoch++;
}

void
identity_set_control_port(struct identity *id, uint16_t slot, uint16_t port)
{
    int fd = map_fd(id, "control");
    uint32_t key = identity_port(slot, port);
    uint8_t value = 1;

    if (fd < 0 || !slot || !bpf_map_lookup_elem(fd, &key, &value)) {
        return;
    }
    if (id->n_control[slot] == IDENTITY_MAX_CONTROL_PORTS) {
        identity_clear_control_ports(id, slot);
    }
    id->n_control[slot]++;
    bpf_map_update_elem(fd, &key, &value, BPF_ANY);
    id->control_changed = true;
}

void
identity_clear_control_ports(struct identity *id, uint16_t slot)
{
    int fd = map_fd(id, "control");
    uint32_t key, next;
    bool more = !bpf_map_get_next_key(fd, NULL, &key);

    id->n_control[slot] = 0;
    while (more) {
        more = !bpf_map_get_next_key(fd, &key, &next);
        if (key >> 16 == slot) {
            bpf_map_delete_elem(fd, &key);
        }
        key = next;
    }
    id->control_changed = true;
}

void
identity_take_pairs(struct identity *id, identity_pair_func *take, void *aux)
{
    int fd = map_fd(id, "sent");
    struct identity_pair pair, next;
    bool more = !bpf_map_get_next_key(fd, NULL, &pair);
    uint64_t bytes;

    while (more) {
        more = !bpf_map_get_next_key(fd, &pair, &next);
        if (!bpf_map_lookup_elem(fd, &pair, &bytes)
            && !bpf_map_delete_elem(fd, &pair)) {
            take(pair.slot, pair.remote, bytes, aux);
        }
        pair = next;
    }
    for (int i = 0; i < IDENTITY_SLOTS; i++) {
        id->traffic[i].n_pairs = 0;
    }
}

/* Questions. */

int
identity_question_fd(const struct identity *id)
{
    return ring_buffer__epoll_fd(id->ring);
}

void
identity_take_questions(struct identity *id, identity_question_func *take,
                        void *aux)
{
    id->take = take;
    id->aux = aux;
    if (id->ring) {
        ring_buffer__consume(id->ring);
    }
}

/* Returns the id that this namespace has for the one of 'fd', -1 on error. */
static int
netns_id(int fd)
{
    struct route_socket *rs;
    int id = -1;

    if (!route_socket_open(-1, &rs)) {
        id = route_socket_get_nsid(rs, fd);
        if (id < 0) { /* No interface has led there yet. */
            struct nlmsghdr *nlh =
                route_socket_begin(rs, RTM_NEWNSID, NLM_F_ACK);

            mnl_nlmsg_put_extra_header(nlh, sizeof(struct rtgenmsg));
            mnl_attr_put_u32(nlh, NETNSA_FD, fd);
            mnl_attr_put_u32(nlh, NETNSA_NSID, -1); /* Any. */
            route_socket_transact(rs, nlh, NULL, NULL);
            id = route_socket_get_nsid(rs, fd);
        }
        route_socket_close(rs);
    }
    return id;
}

int
identity_add_netns(struct identity *id, const char *path, uint64_t *cookiep)
{
    int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    int other = open(path, O_RDONLY | O_CLOEXEC);
    int error = 0;

    if (home < 0 || other < 0 || setns(other, CLONE_NEWNET)) {
        error = errno;
    } else {
        uint32_t key;

        *cookiep = own_cookie();
        /* The thread must not continue in the wrong namespace. */
        ovs_assert(!setns(home, CLONE_NEWNET));
        key = netns_id(other) + 1;
        if (key && *cookiep != id->settings->netns) {
            bpf_map_update_elem(map_fd(id, "netns_ids"), &key, cookiep,
                                BPF_ANY);
        }
    }
    close(home);
    close(other);
    return error;
}

void
identity_remove_netns_id(struct identity *id, int netns)
{
    uint32_t key = netns + 1;

    bpf_map_delete_elem(map_fd(id, "netns_ids"), &key);
}

int
identity_owners_fd(const struct identity *id)
{
    return map_fd(id, "owners");
}

/* Writes 'pid' into the socket 'fd' if no program has seen it being made. */
static void
adopt_socket(int map, int fd, pid_t pid)
{
    struct identity_owner owner = { .tgid = 0 };
    int domain = 0;
    socklen_t size = sizeof domain;

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size)
        || (domain != AF_INET && domain != AF_INET6)) {
        return;
    }
    bpf_map_lookup_elem(map, &fd, &owner);
    if (!owner.tgid) {
        owner.tgid = pid;
        owner.made = clock_ns(CLOCK_BOOTTIME);
        owner.slot = 0;
        bpf_map_update_elem(map, &fd, &owner, BPF_ANY);
    }
}

void
identity_adopt(struct identity *id, pid_t pid)
{
    int map = identity_owners_fd(id);
    int process = map < 0 ? -1 : syscall(SYS_pidfd_open, pid, 0);

    for (int i = 0, missing = 0;
         process >= 0 && i < MAX_FDS && missing < MAX_FDS / 16; i++) {
        int fd = syscall(SYS_pidfd_getfd, process, i, 0);

        missing = fd < 0 ? missing + 1 : 0;
        if (fd >= 0) {
            adopt_socket(map, fd, pid);
            close(fd);
        }
    }
    if (process >= 0) {
        close(process);
    }
}

/* Gives an interface of a pod its GRO back. */
static void
restore_gro(const char *pins, int ifindex)
{
    char *pin = xasprintf("%s/pods", pins);
    struct identity_pod pod;
    int fd = bpf_obj_get(pin);

    if (!bpf_map_lookup_elem(fd, &ifindex, &pod) && pod.had_gro) {
        switch_gro(ifindex, true);
    }
    close(fd);
    free(pin);
}

char *
identity_detach(const char *pins)
{
    struct if_nameindex *ifaces = if_nameindex();

    libbpf_set_print(print_library);
    for (size_t i = 0; ifaces && ifaces[i].if_index; i++) {
        restore_gro(pins, ifaces[i].if_index);
        for (size_t k = 0; k < ARRAY_SIZE(hooks); k++) {
            char *pin = pin_of(pins, hooks[k].program, ifaces[i].if_index);

            tc_program_detach(ifaces[i].if_index, hooks[k].place, pin);
            free(pin);
        }
    }
    if_freenameindex(ifaces);
    remove_pins(pins);
    return rmdir(pins) && errno != ENOENT ? xasprintf(
               "%s: cannot remove the folder (%s)", pins, ovs_strerror(errno))
                                          : NULL;
}
