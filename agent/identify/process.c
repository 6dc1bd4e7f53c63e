/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/process.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
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

#include "base/name.h"
#include "openvswitch/util.h"
#include "util.h"
#include "wire/cgroup-path.h"

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

    if (process_read_file(pid, "stat", text, sizeof text) <= 0) {
        return false;
    }
    /* The name before it, in parentheses, may contain any character.  sscanf()
     * would take most of the time of a question of the kernel. */
    p = strrchr(text, ')');
    if (!p || !p[1] || !p[2]) {
        return false;
    }
    state = p[2];
    process->pid = pid;
    process->parent = atoi(p + 3);
    for (int field = 3; p && field <= 22; field++) {
        p = strchr(p + 1, ' ');
    }
    process->born = p ? strtoull(p, NULL, 10) : 0;
    return p && state != 'Z' && state != 'X';
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

        /* The kernel hides the namespaces above the agent's own. */
        above = ioctl(fd, NS_GET_PARENT);
        if (above >= 0 && !ioctl(fd, NS_GET_OWNER_UID, &owner) && owner) {
            uid = owner;
        }
        close(fd);
        fd = above;
    }
    return uid;
}

static bool
read_status(pid_t pid, struct job_process *p)
{
    char text[8192];

    return process_read_file(pid, "status", text, sizeof text) > 0
           && job_process_parse_status(text, p);
}

bool
process_real_user(pid_t pid, uid_t *uidp)
{
    struct job_process p;

    if (!read_status(pid, &p)) {
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
    int other = open(path, O_RDONLY | O_CLOEXEC);
    bool entered = home >= 0 && other >= 0 && !setns(other, CLONE_NEWUTS);
    struct utsname names;

    uname(&names);
    if (entered) {
        ovs_assert(!setns(home, CLONE_NEWUTS));
    }
    if (home >= 0) {
        close(home);
    }
    if (other >= 0) {
        close(other);
    }
    free(path);
    return other >= 0 ? xstrdup(names.nodename) : NULL;
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
    p->pid = pid;
    p->pidfd = syscall(SYS_pidfd_open, pid, 0);
    if (p->pidfd < 0) {
        return false;
    }
    if (read_status(pid, p) && is_plain(pid)) {
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

/* The tree of cgroups. */

/* Limits above what any job needs, so that a job cannot keep the agent busy by
 * a deep or large tree; each cojob has its own, because its directory may
 * belong to a user. */
#define MAX_DEPTH 16
#define MAX_DIRS 8192
#define MAX_JOBS 1024

static DIR *
open_dir_at(int dirfd, const char *name)
{
    int fd =
        openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (fd >= 0 && !dir) {
        close(fd);
    }
    return dir;
}

static bool
is_dir(const struct dirent *entry)
{
    return entry->d_type == DT_DIR && entry->d_name[0] != '.';
}

/* Calls 'see' for each job in the directory of 'cojob'. */
static void
scan_cojob(int root, const char *cojob, cgroup_see_func *see, void *aux)
{
    DIR *dir = open_dir_at(root, cojob);
    const struct dirent *entry;
    int left = MAX_JOBS;

    while (dir && left > 0 && (entry = readdir(dir))) {
        struct stat s;

        if (is_dir(entry) && name_is_valid(entry->d_name)
            && !fstatat(dirfd(dir), entry->d_name, &s, AT_SYMLINK_NOFOLLOW)) {
            char *job = xasprintf("%s/%s", cojob, entry->d_name);

            see(job, s.st_ino, s.st_uid, aux);
            free(job);
            left--;
        }
    }
    if (dir) {
        closedir(dir);
    }
}

/* Calls 'see' with 'aux' for each job below 'root'.  Returns 0, also if there
 * is no such tree yet, otherwise a positive errno value. */
int
cgroup_scan(const char *root, cgroup_see_func *see, void *aux)
{
    DIR *dir = open_dir_at(AT_FDCWD, root);
    const struct dirent *entry;
    int left = MAX_DIRS;

    if (!dir) {
        return errno == ENOENT ? 0 : errno;
    }
    while (left > 0 && (entry = readdir(dir))) {
        if (is_dir(entry) && name_is_valid(entry->d_name)) {
            scan_cojob(dirfd(dir), entry->d_name, see, aux);
            left--;
        }
    }
    closedir(dir);
    return 0;
}

/* Calls 'see' with 'aux' for the job called 'job', a valid name, if it has a
 * cgroup. */
void
cgroup_see_job(const char *root, const char *job, cgroup_see_func *see,
               void *aux)
{
    char *path = xasprintf("%s/%s", root, job);
    struct stat s;

    if (!lstat(path, &s) && S_ISDIR(s.st_mode)) {
        see(job, s.st_ino, s.st_uid, aux);
    }
    free(path);
}

/* Returns true if 'job' has a process, in its cgroup or below, or if that is
 * unknown although the cgroup exists. */
bool
cgroup_is_populated(const char *root, const char *job)
{
    char *path = xasprintf("%s/%s/cgroup.events", root, job);
    char text[256];
    ssize_t n = small_file_read(path, text, sizeof text);

    free(path);
    return n < 0 ? n != -ENOENT && n != -ENODEV : !strstr(text, "populated 0");
}

static void
walk(const char *path, int depth, int *left, cgroup_path_func *see, void *aux)
{
    DIR *dir = open_dir_at(AT_FDCWD, path);
    const struct dirent *entry;

    while (dir && depth < MAX_DEPTH && 0 < *left && (entry = readdir(dir))) {
        if (is_dir(entry)) {
            char *below = xasprintf("%s/%s", path, entry->d_name);

            --*left;
            walk(below, depth + 1, left, see, aux);
            free(below);
        }
    }
    if (dir) {
        closedir(dir);
    }
    see(path, aux);
}

/* Calls 'see' with 'aux' for at most 'max' cgroups below 'path', each before
 * the one that it is in, and for 'path'. */
void
cgroup_walk(const char *path, int max, cgroup_path_func *see, void *aux)
{
    walk(path, 0, &max, see, aux);
}

static void
remove_one(const char *path, void *aux OVS_UNUSED)
{
    rmdir(path);
}

/* Removes the cgroups of 'job', and its cojob's if that has no other job.  The
 * kernel refuses to remove a cgroup with a process.  Returns 0, or EBUSY if
 * the job still exists. */
int
cgroup_remove(const char *root, const char *job)
{
    char *path = xasprintf("%s/%s", root, job);
    int error = 0;

    cgroup_walk(path, MAX_DIRS, remove_one, NULL);
    if (!access(path, F_OK)) {
        error = EBUSY;
    } else {
        *strrchr(path, '/') = '\0';
        ignore(rmdir(path));
    }
    free(path);
    return error;
}

/* Returns the name of the job to which the cgroup at 'path' belongs in the
 * tree of jobs at 'root'.  The caller frees the name.  Returns NULL if it
 * belongs to no job. */
char *
cgroup_job_at(const char *root, const char *path)
{
    size_t n = strlen(root);
    char *job, *slash;

    if (strncmp(path, root, n) || path[n] != '/') {
        return NULL;
    }
    job = xstrdup(path + n + 1);
    slash = strchr(job, '/');
    if (slash) {
        slash[1 + strcspn(slash + 1, "/")] = '\0';
    }
    if (!cgroup_job_is_valid(job)) {
        free(job);
        job = NULL;
    }
    return job;
}
