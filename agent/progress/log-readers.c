/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/log-readers.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/progress/log-environ.h"
#include "agent/progress/log-file.h"
#include "agent/progress/log-paths.h"
#include "agent/progress/log-spec.h"
#include "agent/progress/log-watch.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "policies/json-check.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(log_readers);

/* However often files change, each is read and directories are looked at only
 * so often. */
#define READ_MS 50
#define MORE_MS 5               /* The same while there is more to read. */
#define LOOK_MS 100
#define MAX_READS_A_RUN 32

/* When a new job's environment is looked at, ms after it was seen: it has
 * it only once "stagecoach run" has become the command. */
static const int environ_ms[] = { 50, 200, 500, 1500, 4000, 10000 };

/* A job and its files. */
struct reader {
    struct hmap_node node;      /* In struct log_readers's 'readers', by
                                 * 'job'. */
    char *job;                  /* "COJOB/JOB". */
    long long began;            /* time_msec(). */
    size_t n_looks;             /* At its environment. */

    bool has_spec;              /* The rest has a meaning. */
    bool own;                   /* It is from the job's environment. */
    uid_t uid;                  /* Who must own the files, if 'own'. */
    struct log_spec spec;
    char *path;
    size_t n_files;
    struct log_file *files[LOG_MAX_FILES];      /* The latest last. */
    struct log_watch_set watches;

    bool look, read;            /* There may be something new. */
    long long next_look, next_read;     /* The earliest times for both. */
    long long safety;           /* When to look in any case. */
    bool told_bad;              /* A line has said that a file is bad. */
    uint64_t n_refused;         /* Files of another user. */
};

struct log_readers {
    char *cgroup_root;
    log_tell_func *tell;
    void *aux;
    struct log_rules *rules;    /* NULL if there are none. */
    struct log_watch *watch;
    struct hmap readers;        /* Contains struct reader. */
};

struct log_readers *
log_readers_create(const char *cgroup_root, log_tell_func *tell, void *aux)
{
    struct log_readers *lr = xzalloc(sizeof *lr);

    lr->cgroup_root = nullable_xstrdup(cgroup_root);
    lr->tell = tell;
    lr->aux = aux;
    lr->watch = log_watch_create();
    hmap_init(&lr->readers);
    return lr;
}

/* Readers. */

static struct reader *
find_reader(const struct log_readers *lr, const char *job)
{
    struct reader *r;

    HMAP_FOR_EACH_WITH_HASH (r, node, hash_string(job, 0), &lr->readers) {
        if (!strcmp(r->job, job)) {
            return r;
        }
    }
    return NULL;
}

/* Lets 'r' have no files and no specification. */
static void
clear_spec(struct log_readers *lr, struct reader *r)
{
    if (!r->has_spec) {
        return;
    }
    for (size_t i = 0; i < r->n_files; i++) {
        log_file_destroy(r->files[i]);
    }
    r->n_files = 0;
    log_watch_set_clear(lr->watch, &r->watches);
    log_spec_uninit(&r->spec);
    free(r->path);
    r->path = NULL;
    r->has_spec = r->own = false;
}

static void
set_spec(struct log_readers *lr, struct reader *r,
         const struct log_spec *spec)
{
    char *cojob = xstrdup(r->job);
    char *slash = strchr(cojob, '/');

    clear_spec(lr, r);
    *slash = '\0';
    log_spec_clone(&r->spec, spec);
    r->path = log_spec_path(spec, cojob, slash + 1);
    r->has_spec = true;
    r->look = true;
    r->told_bad = false;
    r->next_look = r->next_read = 0;
    free(cojob);
}

/* Gives 'r' the first rule that is for it, if any is. */
static void
apply_rules(struct log_readers *lr, struct reader *r)
{
    size_t n = lr->rules ? lr->rules->n : 0;
    const char *slash = strchr(r->job, '/');
    char cojob[PROGRESS_NAME_SIZE];

    ovs_strlcpy(cojob, r->job, MIN(sizeof cojob, slash + 1 - r->job));
    clear_spec(lr, r);
    for (size_t i = 0; i < n; i++) {
        const struct log_rule *rule = &lr->rules->rules[i];

        if (!fnmatch(rule->cojob, cojob, 0)
            && !fnmatch(rule->job, slash + 1, 0)) {
            set_spec(lr, r, &rule->spec);
            return;
        }
    }
}

void
log_readers_job_begin(struct log_readers *lr, const char *job)
{
    struct reader *r = find_reader(lr, job);

    if (!r) {
        r = xzalloc(sizeof *r);
        r->job = xstrdup(job);
        r->began = time_msec();
        log_watch_set_init(&r->watches);
        hmap_insert(&lr->readers, &r->node, hash_string(job, 0));
        apply_rules(lr, r);
    }
}

static void
free_reader(struct log_readers *lr, struct reader *r)
{
    clear_spec(lr, r);
    hmap_remove(&lr->readers, &r->node);
    log_watch_set_uninit(&r->watches);
    free(r->job);
    free(r);
}

void
log_readers_job_end(struct log_readers *lr, const char *job)
{
    struct reader *r = find_reader(lr, job);

    if (r) {
        free_reader(lr, r);
    }
}

void
log_readers_destroy(struct log_readers *lr)
{
    if (lr) {
        struct reader *r;

        HMAP_FOR_EACH_SAFE (r, node, &lr->readers) {
            free_reader(lr, r);
        }
        hmap_destroy(&lr->readers);
        log_rules_destroy(lr->rules);
        log_watch_destroy(lr->watch);
        free(lr->cgroup_root);
        free(lr);
    }
}

char *
log_readers_load(struct log_readers *lr, const char *file)
{
    struct log_rules *rules;
    struct reader *r;
    char *text;
    char *error = json_read_file(file, &text);

    if (!error) {
        error = log_rules_parse(file, text, &rules);
        free(text);
    }
    if (error) {
        return error;
    }
    log_rules_destroy(lr->rules);
    lr->rules = rules;
    HMAP_FOR_EACH (r, node, &lr->readers) {
        if (!r->own) {
            apply_rules(lr, r);
        }
    }
    return NULL;
}

/* What the environment says goes before rules: somebody wrote it for this job
 * alone. */
static void
look_at_environ(struct log_readers *lr, struct reader *r)
{
    char *dir = xasprintf("%s/%s", lr->cgroup_root, r->job);
    struct log_spec spec;
    char *error;
    uid_t uid;
    char *value = log_environ_find(dir, &uid);

    free(dir);
    if (!value) {
        return;
    }
    r->n_looks = ARRAY_SIZE(environ_ms);
    error = log_spec_parse(LOG_ENVIRON, value, &spec);
    if (error) {
        VLOG_WARN("%s: %s", r->job, error);
        free(error);
    } else {
        set_spec(lr, r, &spec);
        log_spec_uninit(&spec);
        r->own = true;
        r->uid = uid;
    }
    free(value);
}

static long long
next_environ(const struct log_readers *lr, const struct reader *r)
{
    return lr->cgroup_root && r->n_looks < ARRAY_SIZE(environ_ms)
           ? r->began + environ_ms[r->n_looks] : LLONG_MAX;
}

/* Looks for the files of a reader. */

struct look {
    struct log_readers *lr;
    struct reader *reader;
    size_t n;
    struct log_file *files[LOG_MAX_FILES];      /* The latest last. */
};

static void
say_unwatched(const struct reader *r, int error)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 1);

    if (error) {
        VLOG_WARN_RL(&rl, "%s: cannot watch the files (%s), looking at them "
                     "each %d s", r->job, ovs_strerror(error),
                     LOG_SAFETY_MS / 1000);
    }
}

static void
see_dir(int fd, void *look_)
{
    struct look *look = look_;
    struct reader *r = look->reader;

    say_unwatched(r, log_watch_dir(look->lr->watch, &r->watches, fd));
}

static bool
is_older(const struct log_file *a, const struct log_file *b)
{
    return a->mtime.tv_sec != b->mtime.tv_sec
           ? a->mtime.tv_sec < b->mtime.tv_sec
           : a->mtime.tv_nsec < b->mtime.tv_nsec;
}

/* Returns the reader's file that is the same as 's', and takes it off the
 * reader, NULL if it is new. */
static struct log_file *
take_known(struct reader *r, const struct stat *s)
{
    for (size_t i = 0; i < r->n_files; i++) {
        struct log_file *f = r->files[i];

        if (f && f->ino == s->st_ino && f->dev == s->st_dev) {
            r->files[i] = NULL;
            f->mtime = s->st_mtim;
            return f;
        }
    }
    return NULL;
}

static void
see_file(int fd, const struct stat *s, void *look_)
{
    struct look *look = look_;
    struct reader *r = look->reader;
    struct log_file *f;
    size_t i;

    if (r->own && r->uid && s->st_uid != r->uid) {
        r->n_refused++;
        close(fd);
        return;
    }
    f = take_known(r, s);
    if (f) {
        close(fd);
    } else {
        f = log_file_create(fd, s, &r->spec);
    }
    if (look->n == LOG_MAX_FILES) {
        if (is_older(f, look->files[0])) {
            log_file_destroy(f);
            return;
        }
        log_file_destroy(look->files[0]);
        look->n--;
        memmove(look->files, look->files + 1, look->n * sizeof *look->files);
    }
    for (i = look->n++; i > 0 && is_older(f, look->files[i - 1]); i--) {
        look->files[i] = look->files[i - 1];
    }
    look->files[i] = f;
}

static void
look_for_files(struct log_readers *lr, struct reader *r, long long now)
{
    static const struct log_paths_class class = {
        .dir = see_dir, .file = see_file,
    };
    struct look look = { .lr = lr, .reader = r };

    log_watch_begin(&r->watches);
    r->look = false;
    r->next_look = now + LOOK_MS;
    r->safety = now + LOG_SAFETY_MS;
    log_paths_walk(r->path, r->own ? strlen(r->path)
                                   : log_spec_fixed(&r->spec), &class, &look);
    for (size_t i = 0; i < r->n_files; i++) {
        log_file_destroy(r->files[i]);
    }
    r->n_files = look.n;
    memcpy(r->files, look.files, sizeof r->files);
    for (size_t i = 0; i < r->n_files; i++) {
        say_unwatched(r, log_watch_file(lr->watch, &r->watches,
                                        r->files[i]->fd));
    }
    log_watch_end(lr->watch, &r->watches);
    r->read = true;
}

static void
read_files(struct log_readers *lr, struct reader *r, long long now)
{
    bool was_bad = r->told_bad;
    struct progress progress;

    r->read = r->told_bad = false;
    r->next_read = now + READ_MS;
    for (size_t i = 0; i < r->n_files; i++) {
        struct log_file *f = r->files[i];

        if (log_file_read(f)) {
            r->read = true;
            r->next_read = now + MORE_MS;
        }
        if (log_file_take(f, &progress)) {
            lr->tell(r->job, &progress, lr->aux);
        }
        r->told_bad |= f->bad;
    }
    if (r->told_bad && !was_bad) {
        VLOG_WARN("%s: a file of %s is not \"%s\", ignored until it is "
                  "replaced", r->job, r->path,
                  log_format_names[r->spec.format]);
    }
}

/* Takes in what the kernel has told. */
static void
take_news(struct reader *r)
{
    r->read |= r->watches.changed;
    r->look |= r->watches.moved;
    r->watches.changed = r->watches.moved = false;
}

static long long
next_event(const struct log_readers *lr, const struct reader *r)
{
    long long next = next_environ(lr, r);

    if (r->has_spec) {
        next = MIN(next, r->look ? r->next_look : r->safety);
        next = r->read ? MIN(next, r->next_read) : next;
    }
    return next;
}

void
log_readers_run(struct log_readers *lr)
{
    long long now = time_msec();
    int n_reads = 0;
    struct reader *r;

    log_watch_run(lr->watch);
    HMAP_FOR_EACH (r, node, &lr->readers) {
        take_news(r);
        if (now < next_event(lr, r) || n_reads >= MAX_READS_A_RUN) {
            continue;
        }
        n_reads++;
        if (now >= next_environ(lr, r)) {
            r->n_looks++;
            look_at_environ(lr, r);
        }
        if (r->has_spec && ((r->look && now >= r->next_look)
                            || now >= r->safety)) {
            look_for_files(lr, r, now);
        }
        if (r->has_spec && r->read && now >= r->next_read) {
            read_files(lr, r, now);
        }
    }
}

void
log_readers_wait(struct log_readers *lr)
{
    long long next = LLONG_MAX;
    const struct reader *r;

    HMAP_FOR_EACH (r, node, &lr->readers) {
        next = MIN(next, next_event(lr, r));
    }
    if (next != LLONG_MAX) {
        poll_timer_wait_until(next);
    }
    log_watch_wait(lr->watch);
}

static struct json *
reader_to_json(const struct reader *r)
{
    struct json *json = json_object_create();
    uint64_t records = 0, malformed = 0, skipped = 0, bad = 0;

    for (size_t i = 0; i < r->n_files; i++) {
        const struct log_counts *c = log_decoder_counts(r->files[i]->decoder);

        records += c->records;
        malformed += c->malformed;
        skipped += r->files[i]->skipped;
        bad += r->files[i]->bad;
    }
    json_object_put_string(json, "job", r->job);
    json_object_put_string(json, "format",
                           log_format_names[r->spec.format]);
    json_object_put_string(json, "path", r->path);
    json_object_put_string(json, "from", r->own ? "environment" : "rules");
    json_object_put(json, "files", json_integer_create(r->n_files));
    json_object_put(json, "bad", json_integer_create(bad));
    json_object_put(json, "refused", json_integer_create(r->n_refused));
    json_object_put(json, "records", json_integer_create(records));
    json_object_put(json, "malformed", json_integer_create(malformed));
    json_object_put(json, "skipped_bytes", json_integer_create(skipped));
    return json;
}

struct json *
log_readers_to_json(const struct log_readers *lr)
{
    struct json *array = json_array_create_empty();
    const struct reader *r;

    HMAP_FOR_EACH (r, node, &lr->readers) {
        if (r->has_spec) {
            json_array_add(array, reader_to_json(r));
        }
    }
    return array;
}
