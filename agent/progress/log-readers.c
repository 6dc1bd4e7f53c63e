/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/progress/log-readers.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/identify/environ.h"
#include "agent/identify/process.h"
#include "agent/identify/registry.h"
#include "agent/tail/tail-protocol.h"
#include "base/directory.h"
#include "base/memory.h"
#include "base/name.h"
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
#define MAX_LOOKUPS_A_RUN 8 /* Jobs with processes to be read. */
#define MAX_INSPECTED 16    /* Processes of a job that are read. */
#define MAX_CGROUPS 256     /* Below one of a job that are read. */

/* Time until a tail that has failed is replaced, in ms: doubles up to the
 * maximum, and begins again after a tail that has worked for GOOD_MS. */
#define MIN_BACKOFF_MS 1000
#define MAX_BACKOFF_MS 300000
#define GOOD_MS 300000

/* Times after the discovery of a job, in ms, at which its processes are read:
 * their environment and their user are final only once "stagecoach run" and
 * what it executes, such as setpriv, have executed the command.  A rule needs
 * no environment, so it waits for the time RULE_LOOKUP.  A process of root may
 * be about to become another user's process, and the file names of that user
 * must not be opened as root.  So processes of root are used only from the
 * time ROOT_LOOKUP on. */
static const int lookup_ms[] = { 50, 200, 500, 1500, 4000, 10000 };
#define RULE_LOOKUP 2
#define ROOT_LOOKUP 4

/* One stagecoach-tail.
 *
 * The agent must never wait for a tail: its file system may not reply, and
 * its tenant can stop or kill it.  So starting, reading reports and killing do
 * not block, and the agent judges by its own clock: a tail without a report
 * for TAIL_LATE_MS is killed.  A process that waits for a dead file system may
 * not even end then; it is stopping until the kernel reports its end. */

#define TAIL_LATE_MS 10000

struct tail_process {
    struct ovs_list node; /* In a list of the owner, or unused. */
    pid_t pid;
    uid_t uid;                 /* User of the job. */
    int pidfd;                 /* Of the tail. */
    int control;               /* TAIL_CONTROL's other end, -1 after it was
                                * closed. */
    long long started;         /* time_msec(). */
    long long last_rx;         /* time_msec() of the last report. */
    bool stopping;             /* SIGKILL was sent. */
    bool late;                 /* It was sent because of TAIL_LATE_MS. */
    struct tail_report report; /* The last one, 'words' printable and
                                * terminated. */
    char end[64];              /* How it ended. */
};

/* Descriptors of a tail are first moved above those that it gets. */
#define FIRST_FD 16

/* Opens the program beside this one and stores a descriptor, -1 on error.  A
 * later version that replaces the file is not used.  Returns 0 or a positive
 * errno value. */
static int
tail_program_open(int *fdp)
{
    static const char *const folders[] = { ".", NULL };
    char *path = directory_find(folders, TAIL_PROGRAM, X_OK);
    int error;

    *fdp = path ? open(path, O_PATH | O_CLOEXEC) : -1;
    error = !path ? ENOENT : *fdp < 0 ? errno : 0;
    free(path);
    return error;
}

/* Executes 'program' with its descriptors.  Returns 0 or a positive errno
 * value. */
static int
spawn(int program, const char *job, int control, int process, pid_t *pidp)
{
    char *argv[] = { (char *) TAIL_PROGRAM, (char *) job, NULL };
    char *envp[] = { NULL };
    const int fds[][2] = {
        { control, TAIL_CONTROL },
        { process, TAIL_PROCESS },
        { program, TAIL_SELF },
    };
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    char path[64];
    sigset_t none;
    int error;

    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attr);
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&attr, &none);
    posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK);
    for (int i = 0; i < 3; i++) {
        posix_spawn_file_actions_addopen(&actions, i, "/dev/null", O_RDWR, 0);
    }
    for (size_t i = 0; i < ARRAY_SIZE(fds); i++) {
        posix_spawn_file_actions_adddup2(&actions, fds[i][0], fds[i][1]);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, TAIL_SELF + 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", TAIL_SELF);
    error = posix_spawn(pidp, path, &actions, &attr, argv, envp);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
    return error;
}

/* Like spawn(), for descriptors with any numbers. */
static int
spawn_moved(const int from[3], const char *job, pid_t *pidp)
{
    int fds[3], error = 0;

    for (int i = 0; i < 3; i++) {
        fds[i] = fcntl(from[i], F_DUPFD_CLOEXEC, FIRST_FD);
        error = fds[i] < 0 && !error ? errno : error;
    }
    if (!error) {
        error = spawn(fds[0], job, fds[1], fds[2], pidp);
    }
    for (int i = 0; i < 3; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return error;
}

/* Kills a tail that has not ended, without waiting for its end. */
static void
tail_process_stop(struct tail_process *t)
{
    if (!t->stopping) {
        t->stopping = true;
        kill(t->pid, SIGKILL);
    }
}

/* Frees 't' after its end.  A tail that has not ended is killed, and the
 * kernel keeps its exit status until this process exits. */
static void
tail_process_destroy(struct tail_process *t)
{
    if (t) {
        if (t->pid) {
            tail_process_stop(t);
        }
        if (t->pidfd >= 0) {
            close(t->pidfd);
        }
        if (t->control >= 0) {
            close(t->control);
        }
        free(t);
    }
}

/* Starts a tail with the rights of 'start'.  'process' becomes TAIL_PROCESS;
 * the caller still owns it.  Returns 0 or a positive errno value. */
static int
tail_process_start(int program, const struct tail_start *start, int process,
                   long long now, struct tail_process **tp)
{
    struct tail_process *t;
    int pair[2], error;
    pid_t pid;

    *tp = NULL;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                   pair)) {
        return errno;
    }
    /* Sent before the tail exists, so that it never waits. */
    error = send(pair[0], start, sizeof *start, MSG_NOSIGNAL) < 0 ? errno : 0;
    if (!error) {
        const int fds[] = { program, pair[1], process };

        error = spawn_moved(fds, start->job, &pid);
    }
    close(pair[1]);
    if (error) {
        close(pair[0]);
        return error;
    }
    t = xzalloc(sizeof *t);
    t->pid = pid;
    t->uid = start->uid;
    t->control = pair[0];
    t->started = t->last_rx = now;
    t->report.iteration = -1;
    t->pidfd = syscall(SYS_pidfd_open, pid, 0);
    if (t->pidfd < 0) {
        error = errno;
        kill(pid, SIGKILL);
        tail_process_destroy(t);
        return error;
    }
    *tp = t;
    return 0;
}

static void
receive_reports(struct tail_process *t, long long now)
{
    struct tail_report r;
    ssize_t n;

    while (t->control >= 0
           && (n = recv(t->control, &r, sizeof r, MSG_DONTWAIT)) >= 0) {
        if (n == sizeof r) {
            t->report = r;
            t->last_rx = now;
            t->report.words[sizeof t->report.words - 1] = '\0';
            make_printable(t->report.words);
        } else if (!n) {
            close(t->control);
            t->control = -1;
        }
    }
}

/* Stores the progress of the last report.  Returns false if the report has no
 * valid progress. */
static bool
tail_process_progress(const struct tail_process *t, struct progress *p)
{
    const struct tail_report *r = &t->report;

    *p = (struct progress){ .iteration = r->iteration,
                            .stage = r->stage,
                            .value = r->value,
                            .has_value = isfinite(r->value) };
    ovs_strlcpy(p->metric, r->metric, sizeof p->metric);
    return r->iteration >= 0 && r->iteration <= PROGRESS_MAX_INTEGER
           && r->stage >= -1 && r->stage <= PROGRESS_MAX_INTEGER
           && (!p->metric[0] || name_is_valid_metric(p->metric));
}

static bool
has_ended(struct tail_process *t)
{
    int status;

    if (waitpid(t->pid, &status, WNOHANG) != t->pid) {
        return false;
    }
    t->pid = 0;
    if (WIFSIGNALED(status)) {
        snprintf(t->end, sizeof t->end, "killed by signal %d",
                 WTERMSIG(status));
    } else {
        snprintf(t->end, sizeof t->end, "exit status %d", WEXITSTATUS(status));
    }
    return true;
}

/* Receives reports, kills a late tail, and returns false once it has ended. */
static bool
tail_process_run(struct tail_process *t, long long now)
{
    receive_reports(t, now);
    if (!t->stopping && now - t->last_rx >= TAIL_LATE_MS) {
        t->late = true;
        tail_process_stop(t);
    }
    return !has_ended(t);
}

static void
tail_process_wait(const struct tail_process *t)
{
    poll_fd_wait(t->pidfd, POLLIN);
    if (t->control >= 0) {
        poll_fd_wait(t->control, POLLIN);
    }
    if (!t->stopping) {
        poll_timer_wait_until(t->last_rx + TAIL_LATE_MS);
    }
}

/* Readers. */

struct log_reader {
    struct ovs_list node; /* In struct log_readers's 'readers'. */
    struct job *job;
    long long began;            /* time_msec() of its discovery. */
    size_t n_lookups;           /* Number of reads of its processes. */

    char *spec;                 /* Specification, or NULL. */
    bool own;                   /* It is from the job's environment. */
    struct tail_process *tail;  /* Tail that runs, or NULL. */
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
    log_readers_func *tell; /* With 'aux'. */
    void *aux;
    const struct registry *registry; /* Of the current run. */
    int program;                /* Descriptor of stagecoach-tail, -1 if it
                                 * could not be opened. */
    struct log_rules *rules;    /* NULL without a file of rules. */
    struct ovs_list readers;    /* Contains struct log_reader. */
    struct ovs_list old;        /* Contains tails of jobs that have ended, or
                                 * have another specification now, until their
                                 * end. */
};

struct log_readers *
log_readers_create(const char *cgroup_root, log_readers_func *tell, void *aux)
{
    struct log_readers *lr = xzalloc(sizeof *lr);
    int error = tail_program_open(&lr->program);

    if (error) {
        VLOG_WARN("no logs are read: no "TAIL_PROGRAM" beside this program "
                  "(%s)", ovs_strerror(error));
    }
    lr->cgroup_root = cgroup_root;
    lr->tell = tell;
    lr->aux = aux;
    ovs_list_init(&lr->readers);
    ovs_list_init(&lr->old);
    return lr;
}

/* Stores 'reason', which the reader owns from now on, and logs it if it is
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

/* Returns the log specification in the environment of process 'pid', or NULL.
 * Stores the port of its rendezvous in '*portp', unless that has one. */
static char *
read_environ(pid_t pid, uint16_t *portp)
{
    size_t size;
    char *block = process_environ(pid, &size), *spec = NULL;

    if (block) {
        /* The last byte is not part of the environment. */
        spec = nullable_xstrdup(environ_get(block, size - 1, LOG_ENVIRON));
        *portp = *portp ? *portp : environ_rendezvous(block, size - 1);
        free(block);
    }
    return spec;
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
 * function stores in '*specp'.  Returns false if no process has one.
 * '*portp' is the port of a rendezvous that any of them names, or 0. */
static bool
find_process(const struct log_readers *lr, const struct log_reader *r,
             struct job_process *best, char **specp, uint16_t *portp)
{
    struct pids pids = find_pids(lr, r->job);
    int best_rate = 0;

    *specp = NULL;
    *portp = 0;
    for (size_t i = 0; i < MIN(pids.n, MAX_INSPECTED); i++) {
        struct job_process p;
        char *spec;
        int rate;

        if (!job_process_open(pids.pids[i], &p)) {
            continue;
        }
        spec = read_environ(p.pid, portp);
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
        fail(r, now,
             xasprintf("user %u has %d readers of logs; expected at most %d",
                       (unsigned int) p->uid, LOG_MAX_TAILS, LOG_MAX_TAILS));
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
 * rules, because it was written for this job.  Starts a tail if none runs, or
 * replaces one with the rights of another user. */
static void
look_up(struct log_readers *lr, struct log_reader *r, long long now)
{
    struct progress meets = { .iteration = -1 };
    struct job_process p;
    char *spec;
    bool found = find_process(lr, r, &p, &spec, &meets.control_port);

    if (meets.control_port) {
        lr->tell(r->job, &meets, lr->aux);
    }
    if (!found) {
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
        lr->tell(r->job, &progress, lr->aux);
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
    json_object_put_string(json, "state",
                           r->refused                            ? "refused"
                           : !r->tail                            ? "waiting"
                           : r->tail->stopping                   ? "stopping"
                           : r->tail->last_rx > r->tail->started ? "reading"
                                                                 : "starting");
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
