/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/job-process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "util.h"

#define MAX_PIDS 4096
#define MAX_DIRS 256            /* Cgroups of a job that are read. */
#define MAX_DEPTH 8             /* Of cgroups below that of a job. */

struct pids {
    pid_t *pids;
    size_t n;
    int left;                   /* Cgroups that may still be read. */
};

static void
add(struct pids *p, const pid_t *pids, size_t n)
{
    n = MIN(n, MAX_PIDS - p->n);
    if (n) {
        p->pids = xrealloc(p->pids, (p->n + n) * sizeof *p->pids);
        memcpy(p->pids + p->n, pids, n * sizeof *pids);
        p->n += n;
    }
}

/* Adds the processes in the cgroup at 'path' and in those below it. */
static void
add_cgroups(struct pids *p, const char *path, int depth)
{
    const struct dirent *entry;
    pid_t *pids;
    size_t n;
    DIR *dir;

    if (p->left-- <= 0 || depth > MAX_DEPTH) {
        return;
    }
    n = processes_of_cgroup(path, &pids);
    add(p, pids, n);
    free(pids);
    dir = opendir(path);
    while (dir && (entry = readdir(dir))) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.') {
            char *below = xasprintf("%s/%s", path, entry->d_name);

            add_cgroups(p, below, depth + 1);
            free(below);
        }
    }
    if (dir) {
        closedir(dir);
    }
}

size_t
job_pids(const struct registry *r, const char *root, const struct job *job,
         pid_t **pidsp)
{
    struct pids p = { .left = MAX_DIRS };
    const struct claim *claim;

    if (root) {
        char *path = xasprintf("%s/%s", root, job->name);

        add_cgroups(&p, path, 0);
        free(path);
    }
    HMAP_FOR_EACH (claim, node, &r->claims) {
        pid_t pid = claim->what.id;

        if (claim->job != job) {
            continue;
        }
        if (claim->what.kind == CLAIMS_PROCESS) {
            add(&p, &pid, 1);
        } else if (claim->what.kind == CLAIMS_CGROUP && claim->path) {
            add_cgroups(&p, claim->path, 0);
        }
    }
    *pidsp = p.pids;
    return p.n;
}

bool
job_process_parse_status(const char *status, struct job_process *p)
{
    /* Line breaks in the name above them are escaped. */
    const char *uid = strstr(status, "\nUid:");
    const char *gid = strstr(status, "\nGid:");
    const char *groups = strstr(status, "\nGroups:");
    unsigned int group;
    int n;

    if (!uid || !gid || !groups || sscanf(uid, "\nUid: %u", &p->uid) != 1
        || sscanf(gid, "\nGid: %u", &p->gid) != 1) {
        return false;
    }
    p->n_groups = 0;
    groups += strlen("\nGroups:");
    for (; sscanf(groups, "%*[ \t]%u%n", &group, &n) == 1; groups += n) {
        if (p->n_groups == JOB_PROCESS_MAX_GROUPS) {
            p->n_groups = 0;
            break;
        }
        p->groups[p->n_groups++] = group;
    }
    return true;
}

/* Returns true if the program of 'pid' had not raised its rights when it was
 * executed. */
static bool
is_plain(pid_t pid)
{
    char text[64 * sizeof(Elf64_auxv_t)];
    ssize_t n = process_read_file(pid, "auxv", text, sizeof text);

    for (ssize_t at = 0; at + (ssize_t) sizeof(Elf64_auxv_t) <= n;
         at += sizeof(Elf64_auxv_t)) {
        Elf64_auxv_t entry;

        memcpy(&entry, text + at, sizeof entry);
        if (entry.a_type == AT_SECURE) {
            return !entry.a_un.a_val;
        }
    }
    return false;
}

bool
job_process_open(pid_t pid, struct job_process *p)
{
    char status[8192];

    p->pid = pid;
    p->pidfd = syscall(SYS_pidfd_open, pid, 0);
    if (p->pidfd < 0) {
        return false;
    }
    if (process_read_file(pid, "status", status, sizeof status) > 0
        && job_process_parse_status(status, p) && is_plain(pid)) {
        return true;
    }
    job_process_close(p);
    return false;
}

bool
job_process_is_alive(const struct job_process *p)
{
    return !syscall(SYS_pidfd_send_signal, p->pidfd, 0, NULL, 0)
           || errno == EPERM;
}

void
job_process_close(struct job_process *p)
{
    close(p->pidfd);
    p->pidfd = -1;
}
