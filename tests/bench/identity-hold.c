/* SPDX-License-Identifier: Apache-2.0 */

/* Keeps the kernel's programs of identity.h at an uplink, for the bench bpf.
 *
 *    identity-hold PINS MOUNT CGROUP UPLINK N
 *
 * Claims the cgroup for slot 1 and N - 1 ids of nothing for the next slots,
 * all with rows, and prints "ready".  Then each line of standard input is
 * answered by a line:
 *
 *    show            BYTES-OF-SLOT-1 BYTES-OF-ALL-SLOTS
 *    claim PID       claimed: the process is of slot 1
 *    update N        CALLS MILLISECONDS: gives N new jobs their slots and
 *                    orders, by the agent's actuator and claims; CALLS are
 *                    those of bpf()
 *    idle S          RUNS WAKES: how often programs ran, and how often the
 *                    agent was to wake for a question, in S seconds
 *    cost            NANOSECONDS: of a run of the program at the uplink until
 *                    the next line of the input; answered then
 *
 * The end of the input removes everything. */

#include <config.h>

#include <bpf/bpf.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/actuate/actuator.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/bpf/interfaces.h"
#include "agent/identify/registry.h"
#include "agent/identify/tracker.h"
#include "timeval.h"
#include "util.h"

#define SLOT 1
#define LEASE_S 3600

/* Calls of bpf(), which libbpf makes by this function of the C library. */
static int n_calls;

long
syscall(long number, ...)
{
    long (*next)(long, ...) =
        (long (*)(long, ...)) dlsym(RTLD_NEXT, "syscall");
    long a[6];
    va_list args;

    va_start(args, number);
    for (size_t i = 0; i < ARRAY_SIZE(a); i++) {
        a[i] = va_arg(args, long);
    }
    va_end(args);
    n_calls += number == SYS_bpf;
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void
set_claim(struct identity *id, enum identity_map map, uint64_t key,
          uint32_t slot)
{
    const struct identity_claim claim = { .slot = slot };
    size_t set;

    if (identity_set_claims(id, map, &key, &claim, 1, &set)) {
        ovs_fatal(0, "cannot set a claim");
    }
}

static void
set_up(struct identity *id, const char *cgroup, int n)
{
    struct identity_settings *s = identity_settings(id);
    struct timespec now;
    struct stat st;

    clock_gettime(CLOCK_MONOTONIC, &now);
    s->lease_until = (now.tv_sec + LEASE_S) * UINT64_C(1000000000);
    s->level_dscps = UINT64_C(1) << 35;
    s->control_dscp = 39;
    if (stat(cgroup, &st)) {
        ovs_fatal(errno, "%s", cgroup);
    }
    for (int i = 0; i < n; i++) {
        int slot = SLOT + i % (IDENTITY_SLOTS - SLOT);

        identity_rows(id)[slot] = (struct identity_row){ .dscp = 35,
                                                         .has_control = true,
                                                         .used = true };
        set_claim(id, IDENTITY_CGROUPS, i ? UINT64_C(1) << 40 | i : st.st_ino,
                  slot);
    }
    identity_raise_epoch(id);
}

static void
show(struct identity *id)
{
    const struct identity_traffic *t = identity_traffic(id);
    unsigned long long others = 0, job;

    for (int slot = 0; slot < IDENTITY_SLOTS; slot++) {
        others += slot == SLOT ? 0 : t[slot].tx_bytes;
    }
    job = t[SLOT].tx_bytes; /* Read once: it grows. */
    printf("%llu %llu\n", job, job + others);
}

static void
on_traffic(const char *job OVS_UNUSED, uint64_t tx OVS_UNUSED,
           uint64_t rx OVS_UNUSED, void *aux OVS_UNUSED)
{
}

static void
on_bursts(const char *job OVS_UNUSED,
          const struct shim_burst_stats *tx OVS_UNUSED,
          const struct shim_burst_stats *rx OVS_UNUSED, void *aux OVS_UNUSED)
{
}

static void
on_bins(const char *job OVS_UNUSED, uint64_t first OVS_UNUSED,
        const struct shim_bin *bins OVS_UNUSED, size_t n OVS_UNUSED,
        void *aux OVS_UNUSED)
{
}

static uint16_t
slot_of(const char *name, void *actuator)
{
    return actuator_slot(actuator, name);
}

/* Does what the agent does with 'n' jobs in cgroups, and its first order. */
static void
update(struct identity *id, int n)
{
    static const struct actuator_events events = { .traffic = on_traffic,
                                                   .bursts = on_bursts,
                                                   .bins = on_bins };
    static const struct kernel_config config;
    struct actuator *actuator =
        kernel_actuator_create(id, &config, &events, NULL);
    struct registry registry;
    struct kernel_claims *claims = kernel_claims_create(id, &registry);
    long long began;

    registry_init(&registry);
    registry.class.slot = slot_of;
    registry.aux = actuator;
    registry_begin(&registry);
    for (int i = 0; i < n; i++) {
        char *name = xasprintf("bench/j%d", i);

        registry_see(&registry, name, UINT64_C(1) << 41 | i, 0, 0);
        free(name);
    }
    actuator_run(
        actuator); /* Looks at the uplinks' queues for the first time. */
    n_calls = 0;
    began = time_usec();
    for (int i = 0; i < n; i++) {
        struct shim_slot row = { .level = i % 8, .dscp = 35 };

        char *name = xasprintf("bench/j%d", i);

        actuator_set_job(actuator, name, &row, true);
        free(name);
    }
    actuator_run(actuator);
    kernel_claims_run(claims, time_msec());
    printf("%d %.3f\n", n_calls, (time_usec() - began) / 1e3);
    kernel_claims_destroy(claims);
    registry_uninit(&registry);
    actuator_destroy(actuator);
}

/* Adds up the runs of the program that a link is of, if its pin's name begins
 * with 'prefix'. */
static void
add_runs(const char *pins, const char *name, const char *prefix,
         struct bpf_prog_info *sum)
{
    char *path = xasprintf("%s/%s", pins, name);
    struct bpf_link_info link = { .id = 0 };
    struct bpf_prog_info program = { .id = 0 };
    uint32_t size = sizeof link;
    int fd = strncmp(name, prefix, strlen(prefix)) ? -1 : bpf_obj_get(path);
    int program_fd = -1;

    if (fd >= 0 && !bpf_obj_get_info_by_fd(fd, &link, &size)) {
        program_fd = bpf_prog_get_fd_by_id(link.prog_id);
        size = sizeof program;
        if (program_fd >= 0
            && !bpf_obj_get_info_by_fd(program_fd, &program, &size)) {
            sum->run_cnt += program.run_cnt;
            sum->run_time_ns += program.run_time_ns;
        }
    }
    close(program_fd);
    close(fd);
    free(path);
}

static struct bpf_prog_info
get_runs(const char *pins, const char *prefix)
{
    struct bpf_prog_info sum = { .run_cnt = 0 };
    DIR *dir = opendir(pins);
    struct dirent *entry;

    while (dir && (entry = readdir(dir))) {
        add_runs(pins, entry->d_name, prefix, &sum);
    }
    closedir(dir);
    return sum;
}

static void
idle(struct identity *id, const char *pins, int seconds)
{
    int stats = bpf_enable_stats(BPF_STATS_RUN_TIME), wakes = 0;
    uint64_t before = get_runs(pins, "link-").run_cnt;
    struct pollfd question = { .fd = identity_question_fd(id),
                               .events = POLLIN };

    for (int i = 0; i < 10 * seconds; i++) {
        wakes += poll(&question, 1, 0);
        usleep(100000);
    }
    printf("%llu %d\n",
           (unsigned long long) get_runs(pins, "link-").run_cnt - before,
           wakes);
    close(stats);
}

static void
cost(const char *pins)
{
    int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
    struct bpf_prog_info before = get_runs(pins, "link-stagecoach_out"), after;
    char line[64];

    if (fgets(line, sizeof line, stdin)) {
        after = get_runs(pins, "link-stagecoach_out");
        printf("%.1f\n", (double) (after.run_time_ns - before.run_time_ns)
                             / MAX(after.run_cnt - before.run_cnt, 1));
    }
    close(stats);
}

static void
answer(struct identity *id, const char *pins, const char *line)
{
    int n;

    if (!strcmp(line, "show\n")) {
        show(id);
    } else if (!strcmp(line, "cost\n")) {
        cost(pins);
    } else if (sscanf(line, "claim %d", &n) == 1) {
        set_claim(id, IDENTITY_PROCESSES, n, SLOT);
        identity_raise_epoch(id);
        puts("claimed");
    } else if (sscanf(line, "update %d", &n) == 1) {
        update(id, n);
    } else if (sscanf(line, "idle %d", &n) == 1) {
        idle(id, pins, n);
    }
}

int
main(int argc, char *argv[])
{
    struct identity_config config = { .mode = IDENTITY_ORDERS };
    struct identity *id;
    struct pods *pods;
    char line[64], *error;

    set_program_name(argv[0]);
    if (argc != 6) {
        ovs_fatal(0, "usage: identity-hold PINS MOUNT CGROUP UPLINK N");
    }
    config.pins = argv[1];
    config.cgroup = argv[2];
    error = identity_open(&config, &id);
    if (!error) {
        set_up(id, argv[3], atoi(argv[5]));
        error = identity_add_uplink(id, argv[4]);
    }
    error = error ? error : pods_create(id, &pods);
    if (error) {
        ovs_fatal(0, "%s", error);
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        answer(id, config.pins, line);
    }
    pods_destroy(pods);
    identity_close(id);
    error = identity_detach(config.pins);
    if (error) {
        ovs_fatal(0, "%s", error);
    }
    return 0;
}
