/* SPDX-License-Identifier: Apache-2.0 */

/* Checks of the kernel: features and settings. */

#include <config.h>

#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timex.h>
#include <unistd.h>

#include "agent/doctor/checks.h"
#include "wire/cgroup-path.h"
#include "util.h"

/* Returns the deepest existing directory of 'path' below the root. */
static char *
deepest(const struct doctor *d, const char *path)
{
    char *there = xstrdup(path);

    while (*there && !doctor_has(d, there, F_OK)) {
        *strrchr(there, '/') = '\0';
    }
    return there;
}

/* Checks that the root of the tree of jobs exists or can be created. */
void
doctor_check_cgroup(struct doctor *d)
{
    char *mounts = doctor_path(d, "/proc/mounts");
    char *mount = cgroup_mount_from(mounts);

    if (!mount) {
        doctor_add(d, "cgroup", DOCTOR_MISSING,
                   "mount -t cgroup2 none /sys/fs/cgroup/unified, or boot "
                   "with systemd.unified_cgroup_hierarchy=1",
                   "no cgroup v2 file system is mounted: no job can be "
                   "found");
    } else {
        char *tree = xasprintf("%s/%s", mount, d->config->cgroup);
        char *there = deepest(d, tree);

        if (doctor_has(d, there, W_OK | X_OK)) {
            doctor_add(d, "cgroup", DOCTOR_OK, NULL, "jobs have theirs below "
                       "%s", tree);
        } else {
            char *mend = xasprintf("as root: mkdir -p %s, and make the user "
                                   "of \"stagecoach run\" its owner", tree);

            doctor_add(d, "cgroup", DOCTOR_MISSING, mend, "%s cannot be "
                       "written: \"stagecoach run\" can tag no job", there);
            free(mend);
        }
        free(there);
        free(tree);
    }
    free(mount);
    free(mounts);
}

static uint64_t
effective_capabilities(const struct doctor *d)
{
    char *path = doctor_path(d, "/proc/self/status");
    FILE *stream = fopen(path, "re");
    uint64_t set = 0;
    char line[256];

    while (stream && fgets(line, sizeof line, stream)) {
        if (sscanf(line, "CapEff: %"SCNx64, &set) == 1) {
            break;
        }
    }
    if (stream) {
        fclose(stream);
    }
    free(path);
    return set;
}

void
doctor_check_capabilities(struct doctor *d)
{
    const struct {
        int number;
        const char *name, *what_for;
        bool needed;
    } caps[] = {
        { CAP_NET_ADMIN, "CAP_NET_ADMIN",
          "no socket of another user's is seen, and no bypass is made", true },
        { CAP_SYS_ADMIN, "CAP_SYS_ADMIN",
          "other network namespaces cannot be entered",
          d->config->netns || d->config->bypass },
        { CAP_NET_RAW, "CAP_NET_RAW",
          "a shim cannot open af_packet and pcap ports",
          d->config->n_ports > 0 },
        { CAP_SYS_PTRACE, "CAP_SYS_PTRACE",
          "the environment of other users' processes is not read", false },
    };
    uint64_t set = effective_capabilities(d);
    bool all = true;

    for (size_t i = 0; i < ARRAY_SIZE(caps); i++) {
        if (!(set & (UINT64_C(1) << caps[i].number))) {
            char *mend = xasprintf("run as root, or AmbientCapabilities=%s in "
                                   "the unit", caps[i].name);

            doctor_add(d, "capabilities",
                       caps[i].needed ? DOCTOR_MISSING : DOCTOR_NOTE, mend,
                       "without %s %s", caps[i].name, caps[i].what_for);
            free(mend);
            all = false;
        }
    }
    if (all) {
        doctor_add(d, "capabilities", DOCTOR_OK, NULL, "all that agent and "
                   "shim use");
    }
}

/* A kernel feature: the symbol that is present with it, and the module that
 * provides it. */
struct part {
    const char *symbol, *module, *config;
    bool found;
};

static void
find_symbols(const struct doctor *d, struct part *parts, size_t n)
{
    char *path = doctor_path(d, "/proc/kallsyms");
    FILE *stream = fopen(path, "re");
    char line[512], name[256];

    while (stream && fgets(line, sizeof line, stream)) {
        if (sscanf(line, "%*s %*s %255s", name) == 1) {
            for (size_t i = 0; i < n; i++) {
                parts[i].found |= !strcmp(name, parts[i].symbol);
            }
        }
    }
    if (stream) {
        fclose(stream);
    }
    free(path);
}

/* Finds available modules, which are loaded on demand. */
static void
find_modules(const struct doctor *d, struct part *parts, size_t n)
{
    char *release = doctor_read(d, "/proc/sys/kernel/osrelease");
    char *list = xasprintf("/lib/modules/%s/modules.dep",
                           release ? release : "");
    char *path = doctor_path(d, list);
    FILE *stream = fopen(path, "re");
    char line[4096];

    while (stream && fgets(line, sizeof line, stream)) {
        line[strcspn(line, ":")] = '\0';
        for (size_t i = 0; i < n; i++) {
            char *file = xasprintf("/%s.ko", parts[i].module);

            parts[i].found |= strstr(line, file) != NULL;
            free(file);
        }
    }
    if (stream) {
        fclose(stream);
    }
    free(path);
    free(list);
    free(release);
}

/* Checks the features that the bypass needs. */
void
doctor_check_queueing(struct doctor *d)
{
    struct part parts[] = {
        { "ingress_init", "sch_ingress", "CONFIG_NET_SCH_INGRESS", false },
        { "u32_classify", "cls_u32", "CONFIG_NET_CLS_U32", false },
        { "tcf_mirred_init", "act_mirred", "CONFIG_NET_ACT_MIRRED", false },
    };
    bool all = true;

    find_symbols(d, parts, ARRAY_SIZE(parts));
    find_modules(d, parts, ARRAY_SIZE(parts));
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
        if (!parts[i].found) {
            char *mend = xasprintf("a kernel with %s, or the package with its "
                                   "extra modules", parts[i].config);

            doctor_add(d, "queueing",
                       d->config->bypass ? DOCTOR_MISSING : DOCTOR_NOTE, mend,
                       "%s is not there: when the shim dies the host is cut "
                       "off", parts[i].module);
            free(mend);
            all = false;
        }
    }
    if (all) {
        doctor_add(d, "queueing", DOCTOR_OK, NULL, "the kernel can join the "
                   "shim's interfaces when it dies");
    }
}

#define RTO_MAX "/proc/sys/net/ipv4/tcp_rto_max_ms"
#define LONG_RTO_MS 5000        /* A job with the lowest rank may wait so
                                 * long. */

void
doctor_check_tcp(struct doctor *d)
{
    char *text = doctor_read(d, RTO_MAX);
    int ms = text ? atoi(text) : 0;

    if (!text) {
        doctor_add(d, "tcp", DOCTOR_NOTE,
                   "keep the policy's min_share above 0, or Linux 6.15",
                   "the kernel has no tcp_rto_max_ms: a job that was starved "
                   "may sleep for up to 120 s after its link is free");
    } else if (ms > LONG_RTO_MS) {
        doctor_add(d, "tcp", DOCTOR_NOTE,
                   "sysctl -w net.ipv4.tcp_rto_max_ms=1000",
                   "tcp_rto_max_ms is %d: a job that was starved may sleep "
                   "for as long after its link is free", ms);
    } else {
        doctor_add(d, "tcp", DOCTOR_OK, NULL, "retransmissions wait for "
                   "%d ms at most", ms);
    }
    free(text);
}

/* Returns true if the host's clock is synchronised, as far as the running
 * kernel knows. */
static bool
is_synchronised(void)
{
    struct timex t = { .modes = 0 };

    return adjtimex(&t) >= 0 && !(t.status & STA_UNSYNC);
}

void
doctor_check_clock(struct doctor *d)
{
    char *source = doctor_read(d, "/sys/devices/system/clocksource/"
                               "clocksource0/current_clocksource");
    bool slow = source && (!strcmp(source, "hpet")
                           || !strcmp(source, "acpi_pm")
                           || !strcmp(source, "jiffies"));

    if (slow) {
        doctor_add(d, "clock", DOCTOR_NOTE,
                   "boot with clocksource=tsc, if the processor's is constant",
                   "the clock is %s, which takes a microsecond to read",
                   source);
    }
    if (!*d->config->root && !is_synchronised()) {
        doctor_add(d, "clock", DOCTOR_NOTE,
                   "start chrony or systemd-timesyncd",
                   "the clock follows no other: times that hosts tell cannot "
                   "be compared");
    } else if (!slow) {
        doctor_add(d, "clock", DOCTOR_OK, NULL, "%s",
                   source ? source : "nothing against it");
    }
    free(source);
}
