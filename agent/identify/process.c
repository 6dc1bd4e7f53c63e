/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/process.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "util.h"

/* Limits above what processes need, so that a process cannot keep the agent
 * busy. */
#define MAX_ENVIRON (128 * 1024)
#define MAX_PROCESSES 65536

ssize_t
small_file_read(const char *path, char *buffer, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, buffer, size - 1);

    n = n < 0 ? -errno : n;
    if (fd >= 0) {
        close(fd);
    }
    buffer[MAX(n, 0)] = '\0';
    return n;
}

ssize_t
process_read_file(pid_t pid, const char *name, char *buffer, size_t size)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%d/%s", (int) pid, name);
    return small_file_read(path, buffer, size);
}

/* Reads the data of 'pid'.  Returns false if there is no such process, or if
 * it is a zombie. */
bool
process_read(pid_t pid, struct process *process)
{
    char text[1024];
    const char *p;
    char state;
    int parent;

    if (process_read_file(pid, "stat", text, sizeof text) <= 0) {
        return false;
    }
    /* The name before it, in parentheses, may contain any character. */
    p = strrchr(text, ')');
    if (!p || sscanf(p + 1, " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
                     "%*u %*d %*d %*d %*d %*d %*d %"SCNu64, &state, &parent,
                     &process->born) != 3) {
        return false;
    }
    process->pid = pid;
    process->parent = parent;
    return state != 'Z' && state != 'X';
}

/* Returns the initial environment of 'pid', strings that each end in a null
 * byte, and stores its size in '*sizep'.  The caller must free it.  Returns
 * NULL if it cannot be read. */
char *
process_environ(pid_t pid, size_t *sizep)
{
    char *text = xmalloc(MAX_ENVIRON);
    ssize_t n = process_read_file(pid, "environ", text, MAX_ENVIRON);

    if (n <= 0) {
        free(text);
        return NULL;
    }
    *sizep = n + 1;
    return text;
}

/* Returns the user that has made the outermost namespace of users below the
 * agent's that 'pid' is in, 'uid' without one.  One that root has made counts
 * as none: its users are those that root has chosen. */
static uid_t
owner_of_namespace(pid_t pid, uid_t uid)
{
    char path[64];
    int fd, above;

    snprintf(path, sizeof path, "/proc/%d/ns/user", (int) pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0) {
        uid_t owner;

        /* The kernel does not tell what is above the agent's own. */
        above = ioctl(fd, NS_GET_PARENT);
        if (above >= 0 && !ioctl(fd, NS_GET_OWNER_UID, &owner) && owner) {
            uid = owner;
        }
        close(fd);
        fd = above;
    }
    return uid;
}

bool
process_real_user(pid_t pid, uid_t *uidp)
{
    char text[8192];
    struct job_process p;

    if (process_read_file(pid, "status", text, sizeof text) <= 0
        || !job_process_parse_status(text, &p)) {
        return false;
    }
    *uidp = p.uid;
    return true;
}

bool
process_user(pid_t pid, uid_t *uidp)
{
    if (!process_real_user(pid, uidp)) {
        return false;
    }
    *uidp = owner_of_namespace(pid, *uidp);
    return true;
}

char *
process_host_name(pid_t pid)
{
    char *path = xasprintf("/proc/%d/ns/uts", (int) pid);
    int home = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    int away = open(path, O_RDONLY | O_CLOEXEC);
    bool entered = home >= 0 && away >= 0 && !setns(away, CLONE_NEWUTS);
    struct utsname names;

    uname(&names);
    if (entered) {
        ovs_assert(!setns(home, CLONE_NEWUTS));
    }
    if (home >= 0) {
        close(home);
    }
    if (away >= 0) {
        close(away);
    }
    free(path);
    return away >= 0 ? xstrdup(names.nodename) : NULL;
}

/* Returns true if 'pid' is in the agent's namespace of processes: root in a
 * container is not root of the host. */
bool
process_is_of_host(pid_t pid)
{
    static ino_t own;
    struct stat s;
    char path[64];

    if (!own && !stat("/proc/self/ns/pid", &s)) {
        own = s.st_ino;
    }
    snprintf(path, sizeof path, "/proc/%d/ns/pid", (int) pid);
    return !stat(path, &s) && s.st_ino == own;
}

bool
process_parse_cgroup(const char *text, char *path, size_t size)
{
    const char *line =
        strncmp(text, "0::/", 4) ? strstr(text, "\n0::/") : text;
    size_t n;

    if (!line) {
        return false;
    }
    line = strchr(line, '/');
    n = strcspn(line, "\n");
    if (n >= size) {
        return false;
    }
    memcpy(path, line, n);
    path[n] = '\0';
    return true;
}

bool
process_cgroup(pid_t pid, char *path, size_t size)
{
    char text[8192];

    return process_read_file(pid, "cgroup", text, sizeof text) > 0
           && process_parse_cgroup(text, path, size);
}

void
pids_add(struct pids *p, pid_t pid)
{
    if (p->n >= p->allocated) {
        p->pids = x2nrealloc(p->pids, &p->allocated, sizeof *p->pids);
    }
    p->pids[p->n++] = pid;
}

void
pids_add_cgroup(const char *path, void *pids)
{
    char *file = xasprintf("%s/cgroup.procs", path);
    FILE *stream = fopen(file, "re");
    struct pids *p = pids;
    int pid;

    while (stream && p->n < MAX_PROCESSES && fscanf(stream, "%d", &pid) == 1) {
        pids_add(p, pid);
    }
    if (stream) {
        fclose(stream);
    }
    free(file);
}

/* A process with the rights of a job. */

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
