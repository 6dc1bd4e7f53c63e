/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach-tail: reads the log of one job and reports its progress.
 *
 * The agent starts it; see tail-protocol.h.  It takes the rights of the job
 * before it reads anything of the tenant, reports each progress, and exits
 * with the agent.  It uses at most a tenth of a core: after each round it
 * pauses nine times as long as the round has computed. */

#include <config.h>

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <math.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/tail/log-job.h"
#include "agent/tail/tail-protocol.h"
#include "base/clock.h"
#include "util.h"

#define PAUSE_SHARE 9
/* Time until a report for which there was no space is sent again. */
#define RETRY_MS 50

struct tail {
    struct log_job log;
    struct progress progress; /* Last one, 'iteration' is -1 without. */
    long long next_report;
};

/* Returns false if the agent has no space for the report. */
static bool
report(const struct tail *t, enum tail_state state, const char *words)
{
    const struct progress *p = &t->progress;
    struct tail_report r = { .state = state,
                             .iteration = p->iteration,
                             .stage = p->stage,
                             .value = p->has_value ? p->value : NAN };

    if (p->has_value) {
        ovs_strlcpy(r.metric, p->metric, sizeof r.metric);
    }
    log_job_report(&t->log, &r);
    if (words) {
        ovs_strlcpy(r.words, words, sizeof r.words);
    }
    return send(TAIL_CONTROL, &r, sizeof r, MSG_DONTWAIT | MSG_NOSIGNAL) > 0;
}

static void OVS_NO_RETURN
leave(const struct tail *t, enum tail_state state, const char *words)
{
    report(t, state, words);
    exit(EXIT_FAILURE);
}

static void
on_progress(const struct progress *progress, void *t_)
{
    struct tail *t = t_;

    t->progress = *progress;
    t->next_report = 0;
}

/* Sends a report if one is due. */
static void
beat(struct tail *t)
{
    long long now = clock_monotonic_ms();

    if (now >= t->next_report) {
        t->next_report =
            now + (report(t, TAIL_READING, NULL) ? TAIL_REPORT_MS : RETRY_MS);
    }
}

/* Waits until 'until'.  Exits if the agent has. */
static void
wait_until(struct tail *t, long long until)
{
    struct pollfd pfd = { .fd = TAIL_CONTROL, .events = POLLIN };
    long long now;

    while ((now = clock_monotonic_ms()) < until) {
        beat(t);
        poll(&pfd, 1, MIN(until, t->next_report) - now);
        if (pfd.revents) {
            exit(EXIT_SUCCESS);
        }
    }
}

static void OVS_NO_RETURN
run(struct tail *t)
{
    for (;;) {
        long long began = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
        const char *words =
            log_job_run(&t->log, clock_monotonic_ms(), on_progress, t);
        long long now, next, pause;

        if (words) {
            leave(t, TAIL_REFUSED, words);
        }
        beat(t);
        pause = (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - began) * PAUSE_SHARE
                / 1000000;
        now = clock_monotonic_ms();
        next = log_job_next(&t->log);
        wait_until(t, MAX(next, now + pause));
    }
}

/* The place and the rights of a job.
 *
 * The process begins with the agent's capabilities and must read a
 * tenant's files as the tenant would.  It enters the mount namespace of a
 * process of the job, so that it has the files of a container or of a private
 * /tmp, and those of /home and /tmp that the agent's unit hides.  Then it
 * gives up all rights but those of the job's user, for good.
 *
 * The process is given as a pidfd, which never refers to another process.  The
 * agent opened it before it read the user, the groups and the job of the
 * process, found the process in the job again afterwards, and checked last
 * that it still lived: all of that belongs to one process.  It refuses a
 * process with rights that its program has raised (AT_SECURE): a tenant
 * chooses the environment of a set-user-ID program, but is not its user.
 *
 * The process can change its mount namespace later, to one that the tenant has
 * made.  That gains nothing.  Between entering the namespace and the change of
 * user, no path is used; afterwards the tenant's user opens the tenant's
 * files.  No descriptor of a directory leads back: the agent passes none, and
 * entering a namespace moves root and working directory.  The program and its
 * libraries are loaded before, from the agent's namespace, and nothing is
 * executed later.
 *
 * Before the change of user the process is limited: address space, CPU time,
 * open files, no file of its own, no new process, no core.  After the change
 * it has no capabilities (also as user 0), cannot gain any
 * (PR_SET_NO_NEW_PRIVS), and no user can trace it (not dumpable), although the
 * tenant can kill it.
 *
 * Single thread: setns() requires that for mount namespaces. */

/* Limits of a tail. */
#define TAIL_ADDRESS_SPACE (64 << 20) /* Bytes. */
#define TAIL_CPU_S 60                 /* The agent starts the next one. */
#define TAIL_OPEN_FILES 64

static int
limit(int resource, rlim_t soft, rlim_t hard)
{
    return setrlimit(resource, &(struct rlimit){ soft, hard });
}

/* These return 0, or another number after an error. */

static int
limit_all(void)
{
#ifndef __SANITIZE_ADDRESS__
    /* The sanitizer reserves terabytes. */
    if (limit(RLIMIT_AS, TAIL_ADDRESS_SPACE, TAIL_ADDRESS_SPACE)) {
        return -1;
    }
#endif
    return limit(RLIMIT_CPU, TAIL_CPU_S, TAIL_CPU_S + 1)
           || limit(RLIMIT_NOFILE, TAIL_OPEN_FILES, TAIL_OPEN_FILES)
           || limit(RLIMIT_FSIZE, 0, 0) || limit(RLIMIT_CORE, 0, 0)
           || limit(RLIMIT_NPROC, 0, 0) || limit(RLIMIT_MEMLOCK, 0, 0);
}

/* Gives up all capabilities, which user 0 keeps when it changes its user. */
static int
drop_capabilities(void)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

    memset(none, 0, sizeof none);
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
           || syscall(SYS_capset, &header, none);
}

/* Returns true if this process has the rights of 'start' and no others. */
static bool
has_changed(const struct tail_start *start)
{
    struct __user_cap_header_struct header = {
        .version = _LINUX_CAPABILITY_VERSION_3,
    };
    struct __user_cap_data_struct caps[_LINUX_CAPABILITY_U32S_3];
    uid_t uids[3];
    gid_t gids[3];

    return !getresuid(&uids[0], &uids[1], &uids[2])
           && !getresgid(&gids[0], &gids[1], &gids[2]) && uids[0] == start->uid
           && uids[1] == start->uid && uids[2] == start->uid
           && gids[0] == start->gid && gids[1] == start->gid
           && gids[2] == start->gid && !syscall(SYS_capget, &header, caps)
           && !caps[0].permitted && !caps[1].permitted
           && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
           && (!start->uid || setuid(0));
}

/* Returns a text that 'what' has failed by errno. */
static const char *
fail(const char *what)
{
    static char text[128];

    snprintf(text, sizeof text, "cannot %s (%s)", what, strerror(errno));
    return text;
}

/* Returns NULL, or what has failed; then this process must exit.  The result
 * is static. */
static const char *
enter(const struct tail_start *start)
{
    setpriority(PRIO_PROCESS, 0, 10);
    if (limit_all()) {
        return fail("set its limits");
    }
    if (setns(TAIL_PROCESS, CLONE_NEWNS)) {
        return fail("enter the mount namespace of the job");
    }
    close(TAIL_PROCESS);
    if (setgroups(start->n_groups, start->groups)
        || setresgid(start->gid, start->gid, start->gid)
        || setresuid(start->uid, start->uid, start->uid)) {
        return fail("become the user of the job");
    }
    if (drop_capabilities() || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
        || prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)) {
        return fail("give up its capabilities");
    }
    errno = EPERM;
    return has_changed(start) ? NULL : fail("give up its rights");
}

int
main(int argc OVS_UNUSED, char *argv[])
{
    struct tail_start start;
    struct tail t = { .progress = { .iteration = -1, .stage = -1 } };
    struct log_spec spec;
    const char *failed;
    char *error;

    set_program_name(argv[0]);
    prctl(PR_SET_NAME, TAIL_PROGRAM, 0, 0, 0); /* It was executed by number. */
    close(TAIL_SELF);
    if (recv(TAIL_CONTROL, &start, sizeof start, 0) != sizeof start) {
        fprintf(stderr, "%s: only stagecoach-agent starts this program\n",
                program_name);
        return EXIT_FAILURE;
    }
    start.job[sizeof start.job - 1] = '\0';
    start.spec[sizeof start.spec - 1] = '\0';
    failed = enter(&start);
    if (failed) {
        leave(&t, TAIL_FAILED, failed);
    }
    error = log_spec_parse("specification", start.spec, &spec);
    if (error) {
        leave(&t, TAIL_REFUSED, error);
    }
    log_job_init(&t.log, start.job, &spec);
    run(&t);
}
