/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/log-readers.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "agent/identify/environ.h"
#include "agent/identify/process.h"
#include "wire/log-spec.h"
#include "agent/progress/log-watch.h"
#include "hash.h"
#include "openvswitch/hmap.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "base/json-check.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(log_readers);

#define LOG_ENVIRON "STAGECOACH_LOG"
#define MAX_READS_A_RUN 32
#define MAX_LOOKS 16            /* Processes of a job whose environment is
                                 * read. */

/* Times after the discovery of a job, in ms, at which its environment is read:
 * it is complete only once "stagecoach run" has executed the command. */
static const int environ_ms[] = { 50, 200, 500, 1500, 4000, 10000 };

struct reader {
    struct hmap_node node;      /* In struct log_readers's 'readers', by
                                 * 'log.job'. */
    long long began;            /* time_msec() of its discovery. */
    size_t n_lookups;           /* Number of reads of its environment. */
    struct log_job log;
};

struct log_readers {
    const char *cgroup_root;
    log_report_func *tell;
    void *aux;
    struct log_rules *rules;    /* NULL without a file of rules. */
    struct log_watch *watch;
    struct hmap readers;        /* Contains struct reader. */
};

struct log_readers *
log_readers_create(const char *cgroup_root, log_report_func *tell, void *aux)
{
    struct log_readers *lr = xzalloc(sizeof *lr);

    lr->cgroup_root = cgroup_root;
    lr->tell = tell;
    lr->aux = aux;
    lr->watch = log_watch_create();
    hmap_init(&lr->readers);
    return lr;
}

static struct reader *
find_reader(const struct log_readers *lr, const char *job)
{
    struct reader *r;

    HMAP_FOR_EACH_WITH_HASH (r, node, hash_string(job, 0), &lr->readers) {
        if (!strcmp(r->log.job, job)) {
            return r;
        }
    }
    return NULL;
}

/* Applies the first matching rule to 'r', if any. */
static void
apply_rules(struct log_readers *lr, struct reader *r)
{
    size_t n = lr->rules ? lr->rules->n : 0;
    const char *job = r->log.job;
    const char *slash = strchr(job, '/');
    char cojob[PROGRESS_NAME_SIZE];

    ovs_strlcpy(cojob, job, MIN(sizeof cojob, slash + 1 - job));
    log_job_clear_spec(&r->log);
    for (size_t i = 0; i < n; i++) {
        const struct log_rule *rule = &lr->rules->rules[i];

        if (!fnmatch(rule->cojob, cojob, 0)
            && !fnmatch(rule->job, slash + 1, 0)) {
            log_job_set_spec(&r->log, &rule->spec, NULL);
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
        r->began = time_msec();
        log_job_init(&r->log, job, lr->watch);
        hmap_insert(&lr->readers, &r->node, hash_string(job, 0));
        apply_rules(lr, r);
    }
}

static void
free_reader(struct log_readers *lr, struct reader *r)
{
    hmap_remove(&lr->readers, &r->node);
    log_job_uninit(&r->log);
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
        if (!r->log.own) {
            apply_rules(lr, r);
        }
    }
    return NULL;
}

/* Returns the log specification in the environment of one of the first
 * processes in cgroup 'dir', and stores the user of the process in '*uidp'.
 * The owner of the directory in /proc is not used: it is root if the program
 * has a set-user-ID bit. */
static char *
find_spec(const char *dir, uid_t *uidp)
{
    char *spec = NULL;
    pid_t *pids;
    size_t n = processes_of_cgroup(dir, &pids);

    for (size_t i = 0; !spec && i < MIN(n, MAX_LOOKS); i++) {
        size_t size;
        char *block = process_environ(pids[i], &size);

        /* The last byte is not part of the environment. */
        const char *value = block ? environ_get(block, size - 1, LOG_ENVIRON)
                            : NULL;

        if (value && process_user(pids[i], uidp)) {
            spec = xstrdup(value);
        }
        free(block);
    }
    free(pids);
    return spec;
}

/* The environment has precedence over rules, because it was written for this
 * job. */
static void
read_job_environ(struct log_readers *lr, struct reader *r)
{
    char *dir = xasprintf("%s/%s", lr->cgroup_root, r->log.job);
    struct log_spec spec;
    char *error;
    uid_t uid;
    char *value = find_spec(dir, &uid);

    free(dir);
    if (!value) {
        return;
    }
    r->n_lookups = ARRAY_SIZE(environ_ms);
    error = log_spec_parse(LOG_ENVIRON, value, &spec);
    if (error) {
        VLOG_WARN("%s: %s", r->log.job, error);
        free(error);
    } else {
        log_job_set_spec(&r->log, &spec, &uid);
        log_spec_uninit(&spec);
    }
    free(value);
}

static long long
next_environ(const struct log_readers *lr, const struct reader *r)
{
    return lr->cgroup_root && r->n_lookups < ARRAY_SIZE(environ_ms)
           ? r->began + environ_ms[r->n_lookups] : LLONG_MAX;
}

static long long
next_event(const struct log_readers *lr, const struct reader *r)
{
    return MIN(next_environ(lr, r), log_job_next(&r->log));
}

void
log_readers_run(struct log_readers *lr)
{
    long long now = time_msec();
    int n_reads = 0;
    struct reader *r;

    log_watch_run(lr->watch);
    HMAP_FOR_EACH (r, node, &lr->readers) {
        log_job_handle_events(&r->log);
        if (now < next_event(lr, r) || n_reads >= MAX_READS_A_RUN) {
            continue;
        }
        n_reads++;
        if (now >= next_environ(lr, r)) {
            r->n_lookups++;
            read_job_environ(lr, r);
        }
        log_job_run(&r->log, now, lr->tell, lr->aux);
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

struct json *
log_readers_to_json(const struct log_readers *lr)
{
    struct json *array = json_array_create_empty();
    const struct reader *r;

    HMAP_FOR_EACH (r, node, &lr->readers) {
        if (r->log.has_spec) {
            json_array_add(array, log_job_to_json(&r->log));
        }
    }
    return array;
}
