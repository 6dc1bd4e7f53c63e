/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/process.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

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

/* Environments. */

struct block {
    const char *text; /* Strings that each end in a null byte. */
    size_t size;
};

/* Row of a framework.  All variables that it names must be present. */
struct row {
    const char *cojob;          /* Cojob, or its prefix. */
    const char *cojob_variable; /* Variable whose value follows the prefix
                                 * and '-', or is the whole name if 'cojob'
                                 * is NULL; may be NULL. */
    const char *job;            /* Variable with the job. */
    const char *job_more;       /* Variable whose value follows after '-',
                                 * or NULL. */

    /* Derives the job from the value of 'job'; returns NULL to skip the row.
     * NULL if the value is the job. */
    char *(*extract)(const char *value, const struct block *);
};

const char *
environ_get(const char *environ, size_t size, const char *name)
{
    size_t n = strlen(name);

    for (const char *p = environ, *next; p < environ + size; p = next) {
        const char *end = memchr(p, '\0', environ + size - p);

        if (!end) {
            break; /* The environment was truncated. */
        }
        next = end + 1;
        if (!strncmp(p, name, n) && p[n] == '=') {
            return p + n + 1;
        }
    }
    return NULL;
}

/* Returns the value of 'name', NULL if it is missing or empty. */
static const char *
get(const struct block *b, const char *name)
{
    const char *value = environ_get(b->text, b->size, name);

    return value && value[0] ? value : NULL;
}

/* Default run id of torchrun. */
static char *
extract_run_id(const char *value, const struct block *b OVS_UNUSED)
{
    return strcmp(value, "none") ? xstrdup(value) : NULL;
}

/* The name of a pod of an indexed job consists of the job's name and its
 * index. */
static char *
extract_pod_job(const char *value, const struct block *b)
{
    const char *index = get(b, "JOB_COMPLETION_INDEX");
    size_t n = strlen(value), m = index ? strlen(index) : 0;

    return (m && n > m + 1 && value[n - m - 1] == '-'
                    && !strcmp(value + n - m, index)
                ? xmemdup0(value, n - m - 1)
                : NULL);
}

/* First task in the description of a TensorFlow cluster. */
static char *
extract_tf_config(const char *value, const struct block *b OVS_UNUSED)
{
    static const char *const types[] = { "chief", "master", "worker", "ps" };
    cJSON *config = cJSON_Parse(value);
    const cJSON *cluster = cJSON_GetObjectItemCaseSensitive(config, "cluster");
    char *job = NULL;

    for (size_t i = 0; i < ARRAY_SIZE(types) && !job; i++) {
        const cJSON *task =
            cJSON_GetObjectItemCaseSensitive(cluster, types[i]);
        const cJSON *first = cJSON_GetArrayItem(task, 0);

        if (cJSON_IsArray(task) && cJSON_IsString(first)
            && first->valuestring[0]) {
            job = xstrdup(first->valuestring);
        }
    }
    cJSON_Delete(config);
    return job;
}

/* More specific rows first: a framework runs below a launcher, and the search
 * is known to its tool. */
static const struct row rows[] = {
    { NULL, "STAGECOACH_COJOB", "STAGECOACH_JOB", NULL, NULL },
    { "nni", "NNI_EXP_ID", "NNI_TRIAL_JOB_ID", NULL, NULL },
    { "katib", NULL, "KATIB_TRIAL_NAME", NULL, NULL },
    { "slurm", "SLURM_ARRAY_JOB_ID", "SLURM_ARRAY_TASK_ID", NULL, NULL },
    { "slurm", NULL, "SLURM_JOB_ID", NULL, NULL },
    { "torch", NULL, "TORCHELASTIC_RUN_ID", NULL, extract_run_id },
    { "torch", NULL, "MASTER_ADDR", "MASTER_PORT", NULL },
    { "ps-lite", NULL, "DMLC_PS_ROOT_URI", "DMLC_PS_ROOT_PORT", NULL },
    { "horovod", NULL, "HOROVOD_GLOO_RENDEZVOUS_ADDR",
      "HOROVOD_GLOO_RENDEZVOUS_PORT", NULL },
    { "tensorflow", NULL, "TF_CONFIG", NULL, extract_tf_config },
    { "mpi", NULL, "PMIX_NAMESPACE", NULL, NULL },
    { "ray", NULL, "RAY_JOB_ID", NULL, NULL },
    { "kubernetes", NULL, "HOSTNAME", NULL, extract_pod_job },
};

static char *
job_of_row(const struct row *row, const struct block *b)
{
    const char *value = get(b, row->job);
    const char *more = row->job_more ? get(b, row->job_more) : NULL;

    if (!value || (row->job_more && !more)) {
        return NULL;
    }
    if (row->extract) {
        return row->extract(value, b);
    }
    return more ? xasprintf("%s-%s", value, more) : xstrdup(value);
}

static char *
cojob_of_row(const struct row *row, const struct block *b, uid_t uid)
{
    const char *value =
        row->cojob_variable ? get(b, row->cojob_variable) : NULL;
    const char *told = get(b, "STAGECOACH_COJOB");

    if (row->cojob_variable && !value) {
        return NULL;
    }
    if (told) {
        return xstrdup(told);
    }
    return value ? xasprintf("%s-%s-u%lu", row->cojob, value,
                             (unsigned long) uid)
                 : xasprintf("%s-u%lu", row->cojob, (unsigned long) uid);
}

/* Returns the job, "COJOB/JOB", of a process of user 'uid' with the 'size'
 * bytes of environment at 'environ', or NULL if no row matches. */
char *
environ_job(const char *environ, size_t size, uid_t uid)
{
    const struct block b = { environ, size };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char *job = job_of_row(&rows[i], &b);
        char *cojob = job ? cojob_of_row(&rows[i], &b, uid) : NULL;
        char job_name[32] = "", cojob_name[32] = "";

        if (cojob) {
            cgroup_name_fit(job, job_name);
            cgroup_name_fit(cojob, cojob_name);
        }
        free(cojob);
        free(job);
        if (cojob_name[0] && job_name[0]) {
            return xasprintf("%s/%s", cojob_name, job_name);
        }
    }
    return NULL;
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

        if (is_dir(entry) && cgroup_name_is_valid(entry->d_name)
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
        if (is_dir(entry) && cgroup_name_is_valid(entry->d_name)) {
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

/* Returns the name of the job whose cgroup, or one below it, is at 'path' in
 * the tree of jobs at 'root'.  The caller frees the name.  Returns NULL if it
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
