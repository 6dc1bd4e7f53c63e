/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/machine-use.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

#define MIN_US 10000            /* Between two samples. */
#define FIND_US 1000000         /* Between two searches for cgroups, which
                                 * may change. */
#define MAX_CPUS 4096
#define MAX_LEVELS 16           /* Cgroups, one below the other. */
#define TEXT_SIZE 65536         /* The part of a file that is read. */

/* The files that a number comes from. */
enum source {
    SOURCE_STATUS, SOURCE_SCHEDSTAT, SOURCE_CGROUP, SOURCE_MEMINFO,
    SOURCE_STATM, SOURCE_PRESSURE, N_SOURCES,
};

static const char *const source_names[N_SOURCES] = {
    "/proc/self/status", "/proc/self/task/N/schedstat", "/proc/self/cgroup",
    "/proc/meminfo", "/proc/self/statm", "memory.pressure",
};

/* Numbers that only grow. */
struct counters {
    double ran_s, waited_s;     /* Of this process's threads. */
    double stalled_us;
};

struct machine_use {
    char *root;
    int n_threads;
    bool bad[N_SOURCES], warned;

    int n_allowed;              /* Processors; 0: unknown. */
    char *levels[MAX_LEVELS];   /* Folders of cgroups with the CPU
                                 * controller, the own one first. */
    int n_levels;
    bool v2;                    /* Version of these. */
    char *pressure;             /* The file "memory.pressure". */
    int64_t found_us;           /* Time of the last search; 0: none. */

    int64_t read_us;            /* Time of the last sample; 0: none. */
    struct counters last;
    struct machine_sample sample;
    char text[TEXT_SIZE];
};

static double
fraction(double x)
{
    return x > 0 ? fmin(x, 1) : 0;      /* NAN is 0. */
}

/* Reads a file into 'text'.  Returns false if it cannot be read. */
static bool
read_path(struct machine_use *use, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t length = 0;
    ssize_t n = -1;

    if (fd >= 0) {
        while (length < TEXT_SIZE - 1
               && (n = read(fd, use->text + length,
                            TEXT_SIZE - 1 - length)) > 0) {
            length += n;
        }
        close(fd);
    }
    use->text[length] = '\0';
    return n >= 0 || length;
}

/* Reads "FOLDER/NAME". */
static bool
read_file(struct machine_use *use, const char *folder, const char *name)
{
    char *path = message("%s/%s", folder, name);
    bool ok = read_path(use, path);

    free(path);
    return ok;
}

static bool
read_proc(struct machine_use *use, const char *name)
{
    return read_file(use, use->root, name);
}

/* Returns the text after 'key' at the start of a line, or NULL. */
static const char *
find_key(const struct machine_use *use, const char *key)
{
    const char *line = use->text;

    while (line && strncmp(line, key, strlen(key))) {
        line = strchr(line, '\n');
        line = line ? line + 1 : NULL;
    }
    return line ? line + strlen(key) : NULL;
}

/* Stores the number after 'key'. */
static bool
find_number(const struct machine_use *use, const char *key, double *value)
{
    const char *text = find_key(use, key);
    char *end;

    *value = text ? strtod(text, &end) : 0;
    return text && end != text && isfinite(*value) && *value >= 0;
}

/* Counts the processors in "0-3,8,10-11\n". */
static void
count_allowed(struct machine_use *use)
{
    const char *p = read_proc(use, "proc/self/status")
                    ? find_key(use, "Cpus_allowed_list:") : NULL;

    use->n_allowed = 0;
    while (p) {
        int first, last, n = 0;

        if (sscanf(p, " %d%n-%d%n", &first, &n, &last, &n) == 1) {
            last = first;
        }
        if (!n || first < 0 || last < first || last >= MAX_CPUS) {
            break;
        }
        use->n_allowed += last - first + 1;
        p = p[n] == ',' ? p + n + 1 : NULL;
    }
    use->bad[SOURCE_STATUS] = !use->n_allowed;
}

/* Returns true if 'words', separated by commas, contain 'word'. */
static bool
has_word(const char *words, const char *word)
{
    size_t n = strlen(word);

    for (const char *p = words; p && *p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, word, n) && (!p[n] || p[n] == ',')) {
            return true;
        }
    }
    return false;
}

/* Finds where a hierarchy of cgroups is mounted: the mount of 'controller', or
 * if 'controller' is NULL, of v2.  Stores the mount's folder, and the cgroup
 * that is visible there. */
static bool
find_mount(struct machine_use *use, const char *controller,
           char mount[PATH_MAX], char top[PATH_MAX])
{
    char *save = NULL;

    if (!read_proc(use, "proc/self/mountinfo")) {
        return false;
    }
    for (char *line = strtok_r(use->text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        const char *rest = strstr(line, " - ");
        char type[32], options[1024];

        if (rest && sscanf(rest, " - %31s %*s %1023s", type, options) == 2
            && (controller ? !strcmp(type, "cgroup")
                             && has_word(options, controller)
                           : !strcmp(type, "cgroup2"))
            && sscanf(line, "%*s %*s %*s %4095s %4095s", top, mount) == 2) {
            return true;
        }
    }
    return false;
}

/* Returns this process's cgroup in a hierarchy as in /proc/self/cgroup: a
 * pointer into 'text', or NULL. */
static const char *
find_cgroup(struct machine_use *use, const char *controller)
{
    const char *found = NULL;
    char *save = NULL;

    if (!read_proc(use, "proc/self/cgroup")) {
        return NULL;
    }
    for (char *line = strtok_r(use->text, "\n", &save); line;
         line = strtok_r(NULL, "\n", &save)) {
        char *words = strchr(line, ':');        /* "N:WORDS:/PATH" */
        char *path = words ? strchr(words + 1, ':') : NULL;

        if (path) {
            *path++ = '\0';
            if (*path == '/'
                && (controller ? has_word(words + 1, controller)
                               : !words[1])) {
                found = path;
            }
        }
    }
    return found;
}

/* Returns the folder of this process's cgroup, or of the top of the mount if
 * the cgroup is not visible there; NULL if there is no such hierarchy.  Stores
 * the length of the top's folder. */
static char *
find_folder(struct machine_use *use, const char *controller,
            size_t *top_length)
{
    char mount[PATH_MAX], top[PATH_MAX], *folder;
    const char *path;
    size_t n;

    if (!find_mount(use, controller, mount, top)
        || !(path = find_cgroup(use, controller))) {
        return NULL;
    }
    n = strcmp(top, "/") ? strlen(top) : 0;
    path = strncmp(path, top, n) || (path[n] && path[n] != '/') ? ""
           : path + n;
    *top_length = strlen(use->root) + strlen(mount);
    folder = message("%s%s%s", use->root, mount, path);
    n = strlen(folder);
    while (n > *top_length && folder[n - 1] == '/') {
        folder[--n] = '\0';
    }
    return folder;
}

static void
forget_cgroups(struct machine_use *use)
{
    while (use->n_levels) {
        free(use->levels[--use->n_levels]);
    }
    free(use->pressure);
    use->pressure = NULL;
}

/* Finds the file with the waits for memory: the own cgroup's, otherwise the
 * machine's. */
static void
find_pressure(struct machine_use *use)
{
    size_t top;
    char *folder = find_folder(use, NULL, &top);

    use->pressure = message("%s/memory.pressure", folder ? folder : "");
    if (!folder || !read_path(use, use->pressure)) {
        free(use->pressure);
        use->pressure = message("%s/proc/pressure/memory", use->root);
    }
    free(folder);
}

/* Finds the cgroups with quotas, in v1 if its CPU controller is mounted. */
static void
find_levels(struct machine_use *use)
{
    size_t top = 0;
    char *folder = find_folder(use, "cpu", &top);

    use->v2 = !folder;
    folder = folder ? folder : find_folder(use, NULL, &top);
    use->bad[SOURCE_CGROUP] = !folder;
    while (folder && use->n_levels < MAX_LEVELS) {
        use->levels[use->n_levels++] = duplicate(folder);
        if (strlen(folder) <= top) {
            break;
        }
        *strrchr(folder, '/') = '\0';
    }
    free(folder);
}

/* Returns the processors that a level's quota allows, infinity if it has
 * none. */
static double
read_quota(struct machine_use *use, const char *level)
{
    double quota = -1, period = 0;

    if (use->v2) {
        if (read_file(use, level, "cpu.max")) {
            sscanf(use->text, "%lf %lf", &quota, &period);
        }
    } else {
        if (read_file(use, level, "cpu.cfs_quota_us")) {
            sscanf(use->text, "%lf", &quota);
        }
        if (read_file(use, level, "cpu.cfs_period_us")) {
            sscanf(use->text, "%lf", &period);
        }
    }
    return quota > 0 && period > 0 ? quota / period : INFINITY;
}

/* Returns the part of the wanted processors that quotas deny. */
static double
denied(struct machine_use *use)
{
    int wanted = use->n_threads;
    double allowed = INFINITY;

    if (use->n_allowed && wanted > use->n_allowed) {
        wanted = use->n_allowed;
    }
    for (int i = 0; i < use->n_levels; i++) {
        allowed = fmin(allowed, read_quota(use, use->levels[i]));
    }
    return fraction(1 - allowed / wanted);
}

static void
read_threads(struct machine_use *use, struct counters *c)
{
    char *folder = message("%s/proc/self/task", use->root);
    DIR *dir = opendir(folder);
    struct dirent *entry;
    bool found = false;

    while (dir && (entry = readdir(dir))) {
        char *path = message("%s/%s/schedstat", folder, entry->d_name);
        double ran, waited;

        if (entry->d_name[0] != '.' && read_path(use, path)
            && sscanf(use->text, "%lf %lf", &ran, &waited) == 2) {
            c->ran_s += ran * 1e-9;
            c->waited_s += waited * 1e-9;
            found = true;
        }
        free(path);
    }
    if (dir) {
        closedir(dir);
    }
    free(folder);
    use->bad[SOURCE_SCHEDSTAT] = !found;
}

/* Returns the part of the memory that others use. */
static double
read_memory(struct machine_use *use)
{
    double total = 0, available, own = 0;

    use->bad[SOURCE_MEMINFO] = !read_proc(use, "proc/meminfo")
                               || !find_number(use, "MemTotal:", &total)
                               || !find_number(use, "MemAvailable:",
                                               &available);
    use->bad[SOURCE_STATM] = !read_proc(use, "proc/self/statm")
                             || sscanf(use->text, "%*s %lf", &own) != 1
                             || own < 0;
    own *= sysconf(_SC_PAGESIZE) / 1024.;
    return use->bad[SOURCE_MEMINFO] || use->bad[SOURCE_STATM]
           ? 0 : fraction((total - available - own) / total);
}

static void
read_counters(struct machine_use *use, struct counters *c)
{
    const char *total;

    memset(c, 0, sizeof *c);
    read_threads(use, c);
    total = read_path(use, use->pressure) && !strncmp(use->text, "some ", 5)
            ? strstr(use->text, "total=") : NULL;
    use->bad[SOURCE_PRESSURE] = !total
                                || sscanf(total, "total=%lf",
                                          &c->stalled_us) != 1;
}

/* Computes what the counters since the last ones show.  A difference below 0,
 * as of threads that have ended, counts as 0. */
static void
compare(struct machine_use *use, const struct counters *c, double us)
{
    const struct counters *last = &use->last;
    struct machine_sample *s = &use->sample;
    double ran = fmax(0, c->ran_s - last->ran_s);
    double waited = fmax(0, c->waited_s - last->waited_s);

    s->waiting = use->bad[SOURCE_SCHEDSTAT] ? 0
                 : fraction(waited / (ran + waited));
    s->stalled = use->bad[SOURCE_PRESSURE] ? 0
                 : fraction((c->stalled_us - last->stalled_us) / us);
}

/* Of the processors that the quota leaves now, the threads will get as large a
 * part as they got of what the quota left before; that was the lower one of
 * two if it has changed. */
static void
predict(struct machine_use *use, double quota)
{
    struct machine_sample *s = &use->sample;
    double left = 1 - fmax(s->quota, quota), got = 1 - s->waiting;

    s->quota = quota;
    s->cpu = fraction(1 - (1 - quota) * (got < left ? got / left : 1));
}

static void
warn(struct machine_use *use)
{
    const char *separator = "";

    use->warned = true;
    for (int i = 0; i < N_SOURCES; i++) {
        if (use->bad[i]) {
            fprintf(stderr, "%s%s", separator, source_names[i]);
            separator = ", ";
        }
    }
    if (*separator) {
        fprintf(stderr, ": not readable; the use by others that they have "
                "counts as 0\n");
    }
}

/* Returns the bytes that a level's limit leaves, infinity without a limit. */
static double
read_left(struct machine_use *use, const char *level)
{
    double most, used, files = 0;

    if (!read_file(use, level, "memory.max")
        || sscanf(use->text, "%lf", &most) != 1
        || !read_file(use, level, "memory.current")
        || sscanf(use->text, "%lf", &used) != 1) {
        return INFINITY;
    }
    if (read_file(use, level, "memory.stat")) {
        find_number(use, "inactive_file ", &files);
    }
    return fmax(0, most - used + files);
}

double
machine_memory_left(const char *root)
{
    struct machine_use *use = machine_use_create(root, 1);
    double left = INFINITY, available;
    size_t top;
    char *folder;

    if (read_proc(use, "proc/meminfo")
        && find_number(use, "MemAvailable:", &available)) {
        left = 1024 * available;
    }
    folder = find_folder(use, NULL, &top);
    while (folder) {
        left = fmin(left, read_left(use, folder));
        if (strlen(folder) <= top) {
            break;
        }
        *strrchr(folder, '/') = '\0';
    }
    free(folder);
    machine_use_destroy(use);
    return left;
}

struct machine_use *
machine_use_create(const char *root, int n_threads)
{
    struct machine_use *use = allocate(1, sizeof *use);

    use->root = duplicate(root);
    use->n_threads = n_threads;
    return use;
}

void
machine_use_destroy(struct machine_use *use)
{
    if (use) {
        forget_cgroups(use);
        free(use->root);
        free(use);
    }
}

void
machine_use_read(struct machine_use *use, int64_t now_us,
                 struct machine_sample *sample)
{
    if (!use->read_us || now_us - use->read_us >= MIN_US) {
        struct counters counters;

        if (!use->found_us || now_us - use->found_us >= FIND_US) {
            count_allowed(use);
            forget_cgroups(use);
            find_pressure(use);
            find_levels(use);
            use->found_us = now_us;
        }
        read_counters(use, &counters);
        if (use->read_us) {
            compare(use, &counters, now_us - use->read_us);
        }
        predict(use, denied(use));
        use->sample.memory = read_memory(use);
        use->last = counters;
        use->read_us = now_us;
        if (!use->warned) {
            warn(use);
        }
    }
    *sample = use->sample;
}
