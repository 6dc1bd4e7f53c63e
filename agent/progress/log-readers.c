/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/log-readers.h"

#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/identify/cgroup.h"
#include "agent/identify/environ.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "agent/progress/tail-process.h"
#include "base/memory.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"
#include "wire/log-spec.h"

/* Last, since it has macros with names of openvswitch/json.h. */
#include "base/json-check.h"

VLOG_DEFINE_THIS_MODULE(log_readers);

#define LOG_ENVIRON "STAGECOACH_LOG"
#define MAX_LOOKUPS_A_RUN 8     /* Jobs whose processes are read. */
#define MAX_LOOKS 16            /* Processes of a job that are read. */
#define MAX_CGROUPS 256         /* Below one of a job that are read. */

/* Time until a tail that has failed is replaced, in ms: doubles up to the
 * maximum, and begins again after a tail that has worked for GOOD_MS. */
#define MIN_BACKOFF_MS 1000
#define MAX_BACKOFF_MS 300000
#define GOOD_MS 300000

/* Times after the discovery of a job, in ms, at which its processes are read:
 * their environment and their user are final only once "stagecoach run" and
 * what it executes, such as setpriv, have executed the command.  A rule needs
 * no environment, so it waits for the time RULE_LOOKUP.  A process of root may
 * be about to become another user's, whose file names must not be opened as
 * root, so root's are used from the time ROOT_LOOKUP on only. */
static const int lookup_ms[] = { 50, 200, 500, 1500, 4000, 10000 };
#define RULE_LOOKUP 2
#define ROOT_LOOKUP 4

struct log_reader {
    struct ovs_list node; /* In struct log_readers's 'readers'. */
    struct job *job;
    long long began;            /* time_msec() of its discovery. */
    size_t n_lookups;           /* Number of reads of its processes. */

    char *spec;                 /* Specification, NULL if there is none. */
    bool own;                   /* It is from the job's environment. */
    struct tail_process *tail;  /* NULL while there is none. */
    long long next_start;       /* Earliest time_msec() of the next start, if
                                 * there is a specification. */
    int backoff;                /* Time until the start after the next
                                 * failure, ms. */
    bool refused;               /* The tail has refused the specification. */
    struct tail_report report;  /* Last one, also after the end of a tail. */
    char *reason;               /* What an operator should know; may be
                                 * NULL. */
};

struct log_readers {
    const char *cgroup_root;
    log_readers_func *tell;
    const struct registry *registry; /* Of the current run. */
    int program;                /* Descriptor of stagecoach-tail, -1 if it
                                 * could not be opened. */
    struct log_rules *rules;    /* NULL without a file of rules. */
    struct ovs_list readers;    /* Contains struct log_reader. */
    struct ovs_list old;        /* Contains tails of jobs that have ended, or
                                 * whose specification has changed, until
                                 * their end. */
};

struct log_readers *
log_readers_create(const char *cgroup_root, log_readers_func *tell)
{
    struct log_readers *lr = xzalloc(sizeof *lr);
    int error = tail_program_open(&lr->program);

    if (error) {
        VLOG_WARN("no logs are read: no "TAIL_PROGRAM" beside this program "
                  "(%s)", ovs_strerror(error));
    }
    lr->cgroup_root = cgroup_root;
    lr->tell = tell;
    ovs_list_init(&lr->readers);
    ovs_list_init(&lr->old);
    return lr;
}

/* Stores 'reason', of which the reader takes ownership, and logs it if it is
 * new. */
static void
set_reason(struct log_reader *r, char *reason)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(5, 10);

    if (reason && (!r->reason || strcmp(r->reason, reason))) {
        VLOG_WARN_RL(&rl, "%s: log: %s", r->job->name, reason);
    }
    free(r->reason);
    r->reason = reason;
}

/* Ends the reading of the job's log. */
static void
stop_tail(struct log_readers *lr, struct log_reader *r)
{
    if (r->tail) {
        tail_process_stop(r->tail);
        ovs_list_push_back(&lr->old, &r->tail->node);
        r->tail = NULL;
    }
}

/* Sets the specification, NULL for none. */
static void
set_spec(struct log_readers *lr, struct log_reader *r, const char *spec,
         bool own)
{
    if (spec && r->spec && !strcmp(spec, r->spec) && own == r->own) {
        return;
    }
    stop_tail(lr, r);
    free(r->spec);
    r->spec = nullable_xstrdup(spec);
    r->own = own;
    r->refused = false;
    r->next_start = 0;
    r->backoff = MIN_BACKOFF_MS;
    memset(&r->report, 0, sizeof r->report);
    set_reason(r, NULL);
    if (spec && strlen(spec) >= TAIL_MAX_SPEC) {
        r->refused = true;
        set_reason(r, xasprintf("the specification is longer than %d bytes",
                                TAIL_MAX_SPEC - 1));
    }
}

/* Applies the first matching rule to 'r', if any. */
static void
apply_rules(struct log_readers *lr, struct log_reader *r)
{
    size_t n = lr->rules ? lr->rules->n : 0;
    const char *name = r->job->name;
    size_t n_cojob = strcspn(name, "/");
    char *cojob = xmemdup0(name, n_cojob);
    char *spec = NULL;

    for (size_t i = 0; i < n && !spec; i++) {
        const struct log_rule *rule = &lr->rules->rules[i];

        if (!fnmatch(rule->cojob, cojob, 0)
            && !fnmatch(rule->job, name + n_cojob + 1, 0)) {
            spec = log_spec_to_text(&rule->spec);
        }
    }
    set_spec(lr, r, spec, false);
    free(spec);
    free(cojob);
}

void
log_readers_job_begin(struct log_readers *lr, struct job *job)
{
    struct log_reader *r = job->log = xzalloc(sizeof *r);

    r->job = job;
    r->began = time_msec();
    ovs_list_push_back(&lr->readers, &r->node);
    apply_rules(lr, r);
}

static void
free_reader(struct log_readers *lr, struct log_reader *r)
{
    stop_tail(lr, r);
    free(r->spec);
    free(r->reason);
    free(r);
}

void
log_readers_job_end(struct log_readers *lr, struct job *job)
{
    ovs_list_remove(&job->log->node);
    free_reader(lr, job->log);
    job->log = NULL;
}

void
log_readers_destroy(struct log_readers *lr)
{
    if (lr) {
        struct tail_process *old;
        struct log_reader *r;

        LIST_FOR_EACH_POP(r, node, &lr->readers)
        {
            free_reader(lr, r);
        }
        LIST_FOR_EACH_POP (old, node, &lr->old) {
            tail_process_destroy(old);
        }
        log_rules_destroy(lr->rules);
        if (lr->program >= 0) {
            close(lr->program);
        }
        free(lr);
    }
}

char *
log_readers_load(struct log_readers *lr, const char *file)
{
    struct log_rules *rules;
    struct log_reader *r;
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
    LIST_FOR_EACH (r, node, &lr->readers) {
        if (!r->own) {
            apply_rules(lr, r);
        }
    }
    return NULL;
}

/* Processes of the job. */

/* Returns the processes in the job's cgroup of the tree, in cgroups that are
 * claimed for it, in those below, and those that are claimed themselves.
 * Processes in claimed network namespaces are not among them.  The caller
 * frees the ids. */
static struct pids
find_pids(const struct log_readers *lr, const struct job *job)
{
    struct pids p = { .n = 0 };
    const struct claim *claim;

    if (lr->cgroup_root) {
        char *path = xasprintf("%s/%s", lr->cgroup_root, job->name);

        cgroup_walk(path, MAX_CGROUPS, pids_add_cgroup, &p);
        free(path);
    }
    HMAP_FOR_EACH (claim, node, &lr->registry->claims) {
        if (claim->job != job) {
            continue;
        }
        if (claim->what.kind == CLAIMS_PROCESS) {
            pids_add(&p, claim->what.id);
        } else if (claim->what.kind == CLAIMS_CGROUP && claim->path) {
            cgroup_walk(claim->path, MAX_CGROUPS, pids_add_cgroup, &p);
        }
    }
    return p;
}

/* Returns the log specification in the environment of process 'pid', or
 * NULL. */
static char *
read_spec(pid_t pid)
{
    size_t size;
    char *block = process_environ(pid, &size);

    /* The last byte is not part of the environment. */
    char *value = nullable_xstrdup(block ? environ_get(block, size - 1,
                                                       LOG_ENVIRON) : NULL);

    free(block);
    return value;
}

/* Returns true if 'p', which was one of the job's processes before it was
 * opened, is still one. */
static bool
is_still(const struct log_readers *lr, const struct job *job,
         const struct job_process *p)
{
    struct pids now = find_pids(lr, job);
    bool found = false;

    for (size_t i = 0; i < now.n && !found; i++) {
        found = now.pids[i] == p->pid;
    }
    free(now.pids);
    return found && job_process_is_alive(p);
}

/* Returns how good a process is to read the log with its rights, 0 if it must
 * not be used. */
static int
rate_process(const struct log_reader *r, const struct job_process *p,
             const char *spec)
{
    return p->uid ? (spec ? 4 : 3)
           : r->n_lookups <= ROOT_LOOKUP ? 0 : spec ? 2 : 1;
}

/* Opens the process that is best to read the log with its rights: one of a
 * user that is not root, with a specification in its environment, which the
 * function stores in '*specp'.  Returns false if there is none. */
static bool
find_process(const struct log_readers *lr, const struct log_reader *r,
             struct job_process *best, char **specp)
{
    struct pids pids = find_pids(lr, r->job);
    int best_rate = 0;

    *specp = NULL;
    for (size_t i = 0; i < MIN(pids.n, MAX_LOOKS); i++) {
        struct job_process p;
        char *spec;
        int rate;

        if (!job_process_open(pids.pids[i], &p)) {
            continue;
        }
        spec = read_spec(p.pid);
        rate = rate_process(r, &p, spec);
        if (rate > best_rate && is_still(lr, r->job, &p)) {
            if (best_rate) {
                job_process_close(best);
            }
            free(*specp);
            *best = p;
            *specp = spec;
            best_rate = rate;
        } else {
            free(spec);
            job_process_close(&p);
        }
    }
    free(pids.pids);
    return best_rate > 0;
}

/* Tails. */

/* Returns true if a tail is to be started when that is possible. */
static bool
is_waiting(const struct log_reader *r)
{
    return r->spec && !r->tail && !r->refused
           && (r->own || r->n_lookups > RULE_LOOKUP);
}

static void
fail(struct log_reader *r, long long now, char *reason)
{
    r->next_start = now + r->backoff;
    r->backoff = MIN(2 * r->backoff, MAX_BACKOFF_MS);
    set_reason(r, reason);
}

/* Returns the number of tails of 'uid' that have not ended. */
static size_t
count_tails(const struct log_readers *lr, uid_t uid)
{
    const struct tail_process *old;
    const struct log_reader *r;
    size_t n = 0;

    LIST_FOR_EACH (r, node, &lr->readers) {
        n += r->tail && r->tail->uid == uid;
    }
    LIST_FOR_EACH (old, node, &lr->old) {
        n += old->uid == uid;
    }
    return n;
}

static void
start_tail(struct log_readers *lr, struct log_reader *r,
           const struct job_process *p, long long now)
{
    struct tail_start start = {
        .uid = p->uid, .gid = p->gid, .n_groups = p->n_groups,
    };
    int error;

    if (count_tails(lr, p->uid) >= LOG_MAX_TAILS) {
        fail(r, now, xasprintf("user %u has %d readers of logs, at most %d "
                               "are allowed", (unsigned int) p->uid,
                               LOG_MAX_TAILS, LOG_MAX_TAILS));
        return;
    }
    BUILD_ASSERT(sizeof start.groups == sizeof p->groups);
    memcpy(start.groups, p->groups, sizeof start.groups);
    ovs_strlcpy(start.job, r->job->name, sizeof start.job);
    ovs_strlcpy(start.spec, r->spec, sizeof start.spec);
    error = tail_process_start(lr->program, &start, p->pidfd, now, &r->tail);
    if (error) {
        fail(r, now, xasprintf("cannot start "TAIL_PROGRAM" (%s)",
                               ovs_strerror(error)));
    }
}

/* Reads the processes of the job: their specification has precedence over
 * rules, because it was written for this job.  Starts a tail if there is none,
 * or in place of one with the rights of another user. */
static void
look_up(struct log_readers *lr, struct log_reader *r, long long now)
{
    struct job_process p;
    char *spec;

    if (!find_process(lr, r, &p, &spec)) {
        if (is_waiting(r)) {
            fail(r, now, r->n_lookups <= ROOT_LOOKUP ? NULL
                         : xstrdup("no process of the job is known whose "
                                   "rights the reader could take"));
        }
        return;
    }
    if (spec) {
        set_spec(lr, r, spec, true);
        free(spec);
    }
    if (r->tail && r->tail->uid != p.uid) {
        stop_tail(lr, r);
        r->next_start = 0;
    }
    if (is_waiting(r) && now >= r->next_start) {
        start_tail(lr, r, &p, now);
    }
    job_process_close(&p);
}

/* Handles the end of the tail. */
static void
handle_end(struct log_reader *r, long long now)
{
    struct tail_process *t = r->tail;

    if (now - t->started >= GOOD_MS) {
        r->backoff = MIN_BACKOFF_MS;
    }
    if (t->report.state == TAIL_REFUSED) {
        r->refused = true;
        set_reason(r, xasprintf("reading has ended: %s", t->report.words));
    } else if (t->late) {
        fail(r, now, xasprintf("the reader was killed, no report for %d s",
                               TAIL_LATE_MS / 1000));
    } else {
        fail(r, now, xasprintf("the reader has ended (%s%s%s)", t->end,
                               t->report.words[0] ? "): " : "",
                               t->report.words));
    }
    tail_process_destroy(t);
    r->tail = NULL;
}

static void
run_tail(struct log_readers *lr, struct log_reader *r, long long now)
{
    struct tail_process *t = r->tail;
    bool running = tail_process_run(t, now);
    struct progress progress;

    r->report = t->report;
    if (t->last_rx == now && tail_process_progress(t, &progress)) {
        lr->tell(r->job, &progress);
    }
    if (!running) {
        handle_end(r, now);
    } else if (t->late) {
        set_reason(r, xasprintf("the reader is late and does not end, no "
                                "report for %d s", TAIL_LATE_MS / 1000));
    } else if (t->last_rx > t->started && t->report.state == TAIL_READING) {
        set_reason(r, t->report.words[0] ? xstrdup(t->report.words) : NULL);
    }
}

static void
run_old(struct log_readers *lr, long long now)
{
    struct tail_process *old;

    LIST_FOR_EACH_SAFE (old, node, &lr->old) {
        if (!tail_process_run(old, now)) {
            ovs_list_remove(&old->node);
            tail_process_destroy(old);
        }
    }
}

/* Returns the time of the next call of look_up(). */
static long long
next_lookup(const struct log_reader *r)
{
    long long next = r->n_lookups < ARRAY_SIZE(lookup_ms)
                     ? r->began + lookup_ms[r->n_lookups] : LLONG_MAX;

    return is_waiting(r) ? MIN(next, r->next_start) : next;
}

void
log_readers_run(struct log_readers *lr, const struct registry *registry)
{
    long long now = time_msec();
    int n_lookups = 0;
    struct log_reader *r;

    lr->registry = registry;
    run_old(lr, now);
    LIST_FOR_EACH (r, node, &lr->readers) {
        if (r->tail) {
            run_tail(lr, r, now);
        }
        if (now >= next_lookup(r) && n_lookups < MAX_LOOKUPS_A_RUN) {
            n_lookups++;
            if (r->n_lookups < ARRAY_SIZE(lookup_ms)
                && now >= r->began + lookup_ms[r->n_lookups]) {
                r->n_lookups++;
            }
            look_up(lr, r, now);
        }
    }
}

void
log_readers_wait(struct log_readers *lr)
{
    long long next = LLONG_MAX;
    const struct tail_process *old;
    const struct log_reader *r;

    LIST_FOR_EACH (r, node, &lr->readers) {
        next = MIN(next, next_lookup(r));
        if (r->tail) {
            tail_process_wait(r->tail);
        }
    }
    LIST_FOR_EACH (old, node, &lr->old) {
        tail_process_wait(old);
    }
    poll_timer_wait_until(next);
}

static const char *
state_name(const struct log_reader *r)
{
    return r->refused ? "refused"
           : !r->tail ? "waiting"
           : r->tail->stopping ? "stopping"
           : r->tail->last_rx > r->tail->started ? "reading" : "starting";
}

/* Adds the 'n' bytes at 'text', which a tenant may have written. */
static void
put_text(struct json *json, const char *name, const char *text, size_t n)
{
    json_object_put(
        json, name,
        json_string_create_nocopy(make_printable(xmemdup0(text, n))));
}

static struct json *
reader_to_json(const struct log_reader *r)
{
    struct json *json = json_object_create();
    size_t n_format = strcspn(r->spec, ":");
    const char *path = r->spec + n_format + (r->spec[n_format] == ':');

    json_object_put_string(json, "job", r->job->name);
    put_text(json, "format", r->spec, n_format);
    put_text(json, "path", path, log_spec_path_length(path));
    json_object_put_string(json, "from", r->own ? "environment" : "rules");
    json_object_put_string(json, "state", state_name(r));
    if (r->reason) {
        json_object_put_string(json, "reason", r->reason);
    }
    if (r->tail) {
        json_put_integer(json, "pid", r->tail->pid);
        json_put_integer(json, "uid", r->tail->uid);
    }
    json_put_integer(json, "files", r->report.n_files);
    json_put_integer(json, "bad", r->report.bad);
    json_put_integer(json, "refused", r->report.refused);
    json_put_integer(json, "records", r->report.records);
    json_put_integer(json, "malformed", r->report.malformed);
    json_put_integer(json, "no_value", r->report.no_value);
    json_put_integer(json, "skipped_bytes", r->report.skipped_bytes);
    return json;
}

struct json *
log_readers_to_json(const struct log_readers *lr)
{
    struct json *array = json_array_create_empty();
    const struct log_reader *r;

    LIST_FOR_EACH (r, node, &lr->readers) {
        if (r->spec) {
            json_array_add(array, reader_to_json(r));
        }
    }
    return array;
}
