/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/team.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/net/token.h"
#include "trainer/search/hosts.h"
#include "trainer/search/launch.h"

#define START_MS                                                     \
    60000            /* Time limit until all workers are ready, from \
                      * the last event on. */
#define END_S 30     /* Time limit of team_end(). */
#define TERM_MS 2000 /* From SIGTERM to SIGKILL. */
#define HOLD_MS 500  /* Delay of lines on standard error. */
#define PROGRAM "stagecoach-trainer"

static const struct search_host this_host = { .name = (char *) "localhost",
                                              .address = (char *) "127.0.0.1",
                                              .launch = LAUNCH_LOCAL };

struct member {
    struct child child;
    const struct search_host *host;
    int port;         /* Of a server or a peer; 0: unknown. */
    int64_t paused;   /* Iteration at which a worker waits, or -1. */
    char *last_words; /* Line with the cause of its failure, or NULL. */
};

struct team {
    const struct team_config *config;
    char program[4096];     /* Path of the trainer. */
    struct member *members; /* Servers, then workers. */
    int n_servers, n;
    char *token; /* Its secret. */
    enum team_state state;
    int64_t target;      /* Of the workers. */
    int64_t deadline_ms; /* Time limit of the start, or time of the next
                          * signal. */
    int signal;          /* Last signal sent. */
    char *error;         /* First failure that was not returned. */
    char **held;         /* Lines to print, unless a member turns out to
                          * have died: then they are about that. */
    size_t n_held;
    int64_t held_since_ms; /* Time of the first of them. */
};

static void
fail(struct team *team, char *error)
{
    if (team->error) {
        free(error);
    } else {
        team->error = error;
    }
}

double
team_number(const cJSON *event, const char *name)
{
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(event, name);

    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

static const char *
role_of(const struct team *team, int i)
{
    return i < team->n_servers ? "server"
           : team->n_servers   ? "worker"
                               : "peer";
}

/* Fails with "ROLE NUMBER WHAT", about member 'i'; takes ownership. */
static void
fail_by(struct team *team, int i, char *what)
{
    fail(team, message("%s %d %s", role_of(team, i),
                       i < team->n_servers ? i : i - team->n_servers, what));
    free(what);
}

struct team *
team_create(const struct team_config *config)
{
    struct team *team = allocate(1, sizeof *team);

    signal(SIGPIPE, SIG_IGN); /* A member may have ended. */
    team->config = config;
    if (config->program) {
        snprintf(team->program, sizeof team->program, "%s", config->program);
    } else if (readlink("/proc/self/exe", team->program,
                        sizeof team->program - 1)
               < 0) {
        fail(team, duplicate("/proc/self/exe: cannot be read"));
    }
    team->n_servers = config->n_servers;
    team->n = config->n_servers + config->n_workers;
    team->token = token_create();
    team->members = allocate(team->n, sizeof *team->members);
    for (int i = 0; i < team->n; i++) {
        struct member *m = &team->members[i];

        child_init(&m->child);
        m->child.has_err = config->reads_errors;
        m->host = config->hosts ? config->hosts[i] : &this_host;
        m->paused = -1;
    }
    return team;
}

void
team_destroy(struct team *team)
{
    if (team) {
        for (int i = 0; i < team->n; i++) {
            child_kill(&team->members[i].child, SIGKILL);
        }
        for (int i = 0; i < team->n; i++) {
            child_uninit(&team->members[i].child);
            free(team->members[i].last_words);
        }
        free_strings(team->held, team->n_held);
        free(team->members);
        free(team->token);
        free(team->error);
        free(team);
    }
}

enum team_state
team_state(const struct team *team)
{
    return team->state;
}

/* Starting. */

static void
add_all(struct words *w, const char *const words[])
{
    while (*words) {
        words_add(w, duplicate(*words++));
    }
}

static void
add_address(char **list, const struct member *m)
{
    char *longer = message(
        strchr(m->host->address, ':') ? "%s%s[%s]:%d" : "%s%s%s:%d",
        *list ? *list : "", *list ? "," : "", m->host->address, m->port);

    free(*list);
    *list = longer;
}

static void
add_arguments(const struct team *team, int i, struct words *w)
{
    const struct team_config *c = team->config;
    bool server = i < c->n_servers;

    if (c->wrapper) {
        add_all(w,
                (const char *const[]){ c->wrapper, "run", "--cojob", c->cojob,
                                       "--job", c->job, "--", NULL });
    }
    words_add(w, duplicate(team->program));
    words_add(w, duplicate(role_of(team, i)));
    words_add(w, c->n_servers ? message("--workers=%d", c->n_workers)
                              : duplicate("--peers=-"));
    if (server || !c->n_servers) {
        words_add(w, message("--address=%s", team->members[i].host->address));
    }
    if (server) {
        add_all(w, c->server_arguments);
        return;
    }
    for (int j = 0; j < c->n_servers; j++) {
        char *address = NULL;

        add_address(&address, &team->members[j]);
        words_add_option(w, "--server", address);
    }
    words_add_option(w, "--rank", message("%d", i - c->n_servers));
    add_all(w, c->worker_arguments);
    words_add(w, duplicate("--iterations=0"));
}

/* Starts the members from 'begin' on, before 'end'. */
static void
start_some(struct team *team, int begin, int end)
{
    for (int i = begin; i < end && !team->error; i++) {
        const struct team_config *c = team->config;
        struct words argv = { .n = 0 }, env = { .n = 0 };

        words_add(&env, message(TOKEN_VARIABLE "=%s", team->token));
        if (c->cojob) {
            words_add(&env, message("STAGECOACH_COJOB=%s", c->cojob));
            words_add(&env, message("STAGECOACH_JOB=%s", c->job));
        }
        add_arguments(team, i, &argv);
        team->error = child_start(
            &team->members[i].child, team->members[i].host,
            (const char *const *) argv.words, (const char *const *) env.words);
        words_uninit(&argv);
        words_uninit(&env);
    }
}

/* Returns the number of members that start first. */
static int
n_first(const struct team *team)
{
    return team->n_servers ? team->n_servers : team->n;
}

void
team_start(struct team *team)
{
    team->deadline_ms = clock_monotonic_ms() + START_MS;
    start_some(team, 0, n_first(team));
}

/* Commands to members. */

static void
tell_workers(struct team *team, int first, char *line)
{
    for (int i = first; i < team->n; i++) {
        child_say(&team->members[i].child, line);
    }
    free(line);
}

/* Sends all peers, which listen, the addresses of all, by rank. */
static void
send_addresses(struct team *team)
{
    char *list = NULL;

    for (int i = 0; i < team->n; i++) {
        add_address(&list, &team->members[i]);
    }
    tell_workers(team, 0, message("peers %s\n", list));
    free(list);
}

void
team_until(struct team *team, int64_t iterations)
{
    team->target = iterations;
    if (team->state == TEAM_RUNNING) {
        tell_workers(team, team->n_servers,
                     message("until %lld\n", (long long) iterations));
    }
}

void
team_stop(struct team *team, int grace_ms)
{
    if (team->state < TEAM_ENDING) {
        team->state = TEAM_ENDING;
        team->deadline_ms = clock_monotonic_ms() + grace_ms;
        tell_workers(team, team->n_servers, duplicate("stop\n"));
    }
}

static void
signal_all(struct team *team, int signal, int grace_ms)
{
    team->signal = signal;
    team->deadline_ms = clock_monotonic_ms() + grace_ms;
    for (int i = 0; i < team->n; i++) {
        child_kill(&team->members[i].child, signal);
    }
}

void
team_kill(struct team *team, int grace_ms)
{
    if (team->state != TEAM_GONE) {
        team->state = TEAM_ENDING;
        signal_all(team, SIGTERM, grace_ms);
    }
}

/* Events of members. */

static void
take_event(struct team *team, int i, const cJSON *event)
{
    const char *type =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "event"));
    struct member *m = &team->members[i];

    if (!type) {
        return;
    }
    if (!strcmp(type, "listening")) {
        m->port = team_number(event, "port");
    } else if (!strcmp(type, "paused")) {
        m->paused = team_number(event, "iteration");
    }
    if (i >= team->n_servers && team->config->report) {
        team->config->report(team->config->aux, i - team->n_servers, event);
    }
}

static void
take_lines(struct team *team, int i)
{
    char *line;

    while ((line = child_line(&team->members[i].child.out))) {
        cJSON *event = cJSON_Parse(line);

        take_event(team, i, event);
        cJSON_Delete(event);
        if (team->state < TEAM_RUNNING) {
            team->deadline_ms = clock_monotonic_ms() + START_MS;
        }
    }
}

/* Reads what member 'i' writes on standard error.  The last words of a process
 * that fails begin with PROGRAM and are kept; other lines wait in 'held', or
 * are dropped at the end of the job, where they are about connections that
 * close. */
static void
take_words(struct team *team, int i)
{
    struct member *m = &team->members[i];
    char *line;

    while ((line = child_line(&m->child.err))) {
        if (!strncmp(line, PROGRAM, strlen(PROGRAM))) {
            free(m->last_words);
            m->last_words = duplicate(line);
        } else if (team->state < TEAM_ENDING) {
            team->held_since_ms =
                team->n_held ? team->held_since_ms : clock_monotonic_ms();
            team->held =
                reallocate(team->held, team->n_held + 1, sizeof *team->held);
            team->held[team->n_held++] = duplicate(line);
        }
    }
}

/* Notes that member 'i' has ended, if that is a failure. */
static void
take_end(struct team *team, int i)
{
    const struct member *m = &team->members[i];
    const char *why = m->last_words ? strstr(m->last_words, ": ") : NULL;
    int signal = WIFSIGNALED(m->child.status) ? WTERMSIG(m->child.status) : 0;

    if (signal) {
        fail_by(team, i,
                message("was killed by signal %d (%s)", signal,
                        strsignal(signal)));
    } else if (m->child.status) {
        fail_by(team, i, message("failed%s", why ? why : ""));
    } else if (team->state < TEAM_ENDING) {
        fail_by(team, i, duplicate("has ended"));
    }
}

static void
print_held(struct team *team)
{
    for (size_t i = 0; i < team->n_held; i++) {
        if (team->config->print) {
            team->config->print(team->config->aux, team->held[i]);
        } else {
            fprintf(stderr, "%s\n", team->held[i]);
        }
        free(team->held[i]);
    }
    team->n_held = 0;
}

/* Returns the first member from 'first' on, before 'end', that has not ended,
 * or 'end'. */
static int
find_running(const struct team *team, int first, int end)
{
    while (first < end && !team->members[first].child.pid) {
        first++;
    }
    return first;
}

/* Returns the number of the first 'n' members that listen. */
static int
n_listening(const struct team *team, int n)
{
    int n_ready = 0;

    for (int i = 0; i < n; i++) {
        n_ready += team->members[i].port > 0;
    }
    return n_ready;
}

bool
team_has_reached(const struct team *team, int64_t iteration)
{
    for (int i = team->n_servers; i < team->n; i++) {
        if (team->members[i].paused < iteration) {
            return false;
        }
    }
    return true;
}

static void
run_start(struct team *team)
{
    int n = n_first(team), n_ready = n_listening(team, n);

    if (team->state == TEAM_SERVERS && n_ready == n) {
        team->state = TEAM_WORKERS;
        if (team->n_servers) {
            start_some(team, n, team->n);
        } else {
            send_addresses(team);
        }
    } else if (team->state == TEAM_WORKERS && team_has_reached(team, 0)) {
        team->state = TEAM_RUNNING;
        team_until(team, team->target);
    } else if (clock_monotonic_ms() > team->deadline_ms) {
        fail(team, n_ready < n
                       ? message("only %d of %d %s are ready", n_ready, n,
                                 team->n_servers ? "servers" : "peers")
                       : duplicate("workers are not ready"));
    }
}

/* Signals members that have not ended in time. */
static void
run_end(struct team *team)
{
    int i = find_running(team, 0, team->n);

    if (find_running(team, team->n_servers, team->n) == team->n) {
        for (int j = 0; j < team->n_servers; j++) {
            child_hang_up(&team->members[j].child);
        }
    }
    if (i == team->n) {
        team->state = TEAM_GONE;
    } else if (clock_monotonic_ms() >= team->deadline_ms) {
        if (!team->signal) {
            fail_by(team, i, duplicate("did not end in time"));
        }
        signal_all(team, team->signal ? SIGKILL : SIGTERM, TERM_MS);
    }
}

void
team_poll_fds(const struct team *team, struct pollfd *fds)
{
    for (int i = 0; i < team->n; i++) {
        const struct child *child = &team->members[i].child;

        *fds++ = (struct pollfd){ .fd = child->out.fd, .events = POLLIN };
        *fds++ = (struct pollfd){ .fd = child->err.fd, .events = POLLIN };
    }
}

static void
team_step(struct team *team)
{
    for (int i = 0; i < team->n; i++) {
        take_words(team, i);
    }
    for (int i = 0; i < team->n; i++) {
        bool ended = child_reap(&team->members[i].child);

        take_lines(team, i);
        if (ended) {
            take_words(team, i);
            take_end(team, i);
        }
    }
    if (team->state < TEAM_RUNNING && !team->error) {
        run_start(team);
    }
    if (team->error && team->state < TEAM_ENDING) {
        team_kill(team, TERM_MS);
    }
    if (team->state == TEAM_ENDING) {
        run_end(team);
    }
    if (!team->error && team->n_held
        && clock_monotonic_ms() - team->held_since_ms > HOLD_MS) {
        print_held(team);
    }
}

char *
team_run(struct team *team, double seconds)
{
    char *error;

    if (seconds > 0) {
        struct pollfd *fds = allocate(2 * team->n, sizeof *fds);

        team_poll_fds(team, fds);
        poll(fds, 2 * team->n, seconds * 1e3);
        free(fds);
    }
    if (team->state != TEAM_GONE) {
        team_step(team);
    }
    error = team->error;
    team->error = NULL;
    return error;
}

static bool
stopped(const struct team *team)
{
    return team->config->stopped && team->config->stopped(team->config->aux);
}

char *
team_await(struct team *team)
{
    char *error = NULL;

    while (!error && team->state < TEAM_RUNNING && !stopped(team)) {
        error = team_run(team, 0.1);
    }
    return error;
}

int64_t
team_paused(const struct team *team)
{
    return team->members[team->n_servers].paused;
}

char *
team_end(struct team *team)
{
    char *error = NULL;

    print_held(team);
    team_stop(team, END_S * 1000);
    while (!error && team->state != TEAM_GONE && !stopped(team)) {
        error = team_run(team, 0.1);
    }
    return error;
}
