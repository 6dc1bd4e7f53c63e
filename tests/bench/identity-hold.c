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
 *    update N        MILLISECONDS: changes the claim of the cgroup N times
 *
 * The end of the input removes everything. */

#include <config.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/identify/bpf/identity.h"
#include "agent/identify/bpf/pods.h"
#include "timeval.h"
#include "util.h"

#define SLOT 1
#define LEASE_S 3600

static void
set_claim(struct identity *id, enum identity_map map, uint64_t key,
          uint32_t slot)
{
    const struct identity_claim claim = { .slot = slot };

    if (identity_set_claim(id, map, key, &claim)) {
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

        identity_rows(id)[slot] =
            (struct identity_row){ .dscp = 35, .used = true };
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
update(struct identity *id, const char *cgroup, int n)
{
    long long began = time_usec();
    struct stat st;

    if (stat(cgroup, &st)) {
        ovs_fatal(errno, "%s", cgroup);
    }
    for (int i = 0; i < n; i++) {
        set_claim(id, IDENTITY_CGROUPS, st.st_ino, SLOT);
        identity_raise_epoch(id);
    }
    printf("%.3f\n", (time_usec() - began) / 1e3);
}

int
main(int argc, char *argv[])
{
    struct identity_config config = { .mode = IDENTITY_ORDERS };
    struct identity *id;
    struct pods *pods;
    char line[64], *error;
    int n;

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
    if (error || pods_create(id, &argv[4], 1, &pods)) {
        ovs_fatal(0, "%s", error ? error : "cannot look at interfaces");
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        if (!strcmp(line, "show\n")) {
            show(id);
        } else if (sscanf(line, "claim %d", &n) == 1) {
            set_claim(id, IDENTITY_PROCESSES, n, SLOT);
            identity_raise_epoch(id);
            puts("claimed");
        } else if (sscanf(line, "update %d", &n) == 1) {
            update(id, argv[3], n);
        }
    }
    pods_destroy(pods);
    identity_close(id);
    error = identity_detach(config.pins);
    if (error) {
        ovs_fatal(0, "%s", error);
    }
    return 0;
}
