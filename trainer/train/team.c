/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/train/team.h"

#include <cjson/cJSON.h>
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
#include "trainer/process/options.h"
#include "trainer/search/hosts.h"
#include "trainer/search/launch.h"

#define START_S 30              /* Time limit for all processes to start, from
                                 * the last event on. */
#define END_S 30                /* Time limit for all processes to end by
                                 * themselves. */
#define HOLD_S 0.5              /* Delay of lines on standard error. */
#define MAX_ARGV 256
#define PROGRAM "stagecoach-trainer"

static const struct search_host this_host = { .name = (char *) "localhost",
                                              .launch = LAUNCH_LOCAL };

struct member {
    struct child child;
    bool ready;                 /* It listens, or waits for a target. */
    int port;                   /* Of a server or a peer. */
    int64_t paused;             /* Iteration at which a worker waits, or -1. */
    char *last_words;           /* Line with the cause of its failure, or
                                 * NULL. */
};

struct team {
    const struct team_config *config;
    char program[4096];         /* Path of the trainer. */
    struct member *members;     /* Servers, then workers. */
    int n_servers, n;
    char *token;                /* Environment variable of its secret. */
    double event_s;             /* Time of the last event, seconds. */
    char *error;                /* First failure that was not returned. */
    char **held;                /* Lines to print, unless a member turns out to
                                 * have died: then they are about that. */
    size_t n_held;
    double held_since;          /* Time of the first of them, seconds. */
    bool ending;                /* team_end() was called. */
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

static char *
take_error(struct team *team)
{
    char *error = team->error;

    team->error = NULL;
    return error;
}

/* Returns the name of member 'i', which the caller must free. */
static char *
name_of(const struct team *team, int i)
{
    bool server = i < team->n_servers;

    return message("%s %d", server ? "server"
                            : team->n_servers ? "worker" : "peer",
                   server ? i : i - team->n_servers);
}

static void
take_line(struct team *team, int i, const char *line)
{
    struct member *m = &team->members[i];
    cJSON *event = cJSON_Parse(line);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(event,
                                                                "event"));

    team->event_s = clock_monotonic_s();
    if (!type) {
        char *name = name_of(team, i);

        fail(team, message("%s: \"%s\" is no event", name, line));
        free(name);
    } else if (!strcmp(type, "listening")) {
        m->port = cJSON_GetNumberValue(cJSON_GetObjectItem(event, "port"));
        m->ready = true;
    } else if (!strcmp(type, "paused")) {
        m->paused = cJSON_GetNumberValue(cJSON_GetObjectItem(event,
                                                             "iteration"));
        m->ready = true;
    }
    if (type && i >= team->n_servers && team->config->report) {
        team->config->report(team->config->aux, i - team->n_servers, event);
    }
    cJSON_Delete(event);
}

/* Reads what member 'i' writes to standard error.  The last words of a process
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
        } else if (!team->ending) {
            team->held_since = team->n_held ? team->held_since
                                            : clock_monotonic_s();
            team->held = reallocate(team->held, team->n_held + 1,
                                    sizeof *team->held);
            team->held[team->n_held++] = duplicate(line);
        }
    }
}

/* Notes that member 'i' has ended, if that is a failure. */
static void
take_end(struct team *team, int i)
{
    const struct member *m = &team->members[i];
    char *name = name_of(team, i);

    take_words(team, i);
    if (WIFSIGNALED(m->child.status)) {
        fail(team, message("%s was killed by signal %d (%s)", name,
                           WTERMSIG(m->child.status),
                           strsignal(WTERMSIG(m->child.status))));
    } else if (WEXITSTATUS(m->child.status)) {
        const char *why = m->last_words ? strstr(m->last_words, ": ") : NULL;

        fail(team, message("%s failed%s", name, why ? why : ""));
    }
    free(name);
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

/* Waits until there is something to read. */
static void
team_poll(struct team *team, double seconds)
{
    struct pollfd *fds = allocate(2 * team->n, sizeof *fds);

    for (int i = 0; i < team->n; i++) {
        fds[2 * i].fd = team->members[i].child.out.fd;
        fds[2 * i + 1].fd = team->members[i].child.err.fd;
        fds[2 * i].events = fds[2 * i + 1].events = POLLIN;
    }
    poll(fds, 2 * team->n, seconds * 1e3);
    free(fds);
}

char *
team_run(struct team *team, double seconds)
{
    team_poll(team, seconds);
    for (int i = 0; i < team->n; i++) {
        take_words(team, i);
    }
    for (int i = 0; i < team->n; i++) {
        struct child *child = &team->members[i].child;
        bool ended = child_reap(child);
        char *line;

        while ((line = child_line(&child->out))) {
            take_line(team, i, line);
        }
        if (ended) {
            take_end(team, i);
        }
    }
    if (!team->error && team->n_held
        && clock_monotonic_s() - team->held_since > HOLD_S) {
        print_held(team);
    }
    return take_error(team);
}

static bool
stopped(const struct team *team)
{
    return team->config->stopped && team->config->stopped(team->config->aux);
}

/* Waits until 'n' members from 'first' on are ready. */
static char *
await_ready(struct team *team, int first, int n)
{
    char *error = NULL;
    int n_ready;

    team->event_s = clock_monotonic_s();
    do {
        error = team_run(team, 0.1);
        n_ready = 0;
        for (int i = first; i < first + n; i++) {
            n_ready += team->members[i].ready;
        }
        if (!error && n_ready < n
            && clock_monotonic_s() > team->event_s + START_S) {
            error = message("only %d of %d %s are ready", n_ready, n,
                            first ? "workers"
                            : team->n_servers ? "servers" : "peers");
        }
    } while (!error && n_ready < n && !stopped(team));
    return error;
}

/* Starts member 'i' with the 'n' arguments in 'argv', and those in 'more'. */
static char *
start(struct team *team, int i, const char *argv[], int n,
      const char *const *more)
{
    const char *const env[] = { team->token, NULL };

    while (*more && n < MAX_ARGV - 3) {
        argv[n++] = *more++;
    }
    if (i >= team->n_servers) {
        argv[n++] = "--iterations=0";
    }
    argv[n] = NULL;
    return child_start(&team->members[i].child, &this_host, argv, env);
}

static char *
start_server(struct team *team, int i, const char *workers)
{
    const char *argv[MAX_ARGV] = { team->program, "server", "--workers",
                                   workers };

    return start(team, i, argv, 4, team->config->server_arguments);
}

static char *
start_worker(struct team *team, int rank, const char *workers)
{
    char number[16], servers[TEAM_MAX_SERVERS][24];
    const char *argv[MAX_ARGV] = { team->program, "worker", "--workers",
                                   workers,       "--rank", number };
    int n = 6;

    snprintf(number, sizeof number, "%d", rank);
    for (int i = 0; i < team->n_servers; i++) {
        snprintf(servers[i], sizeof servers[i], "127.0.0.1:%d",
                 team->members[i].port);
        argv[n++] = "--server";
        argv[n++] = servers[i];
    }
    return start(team, team->n_servers + rank, argv, n,
                 team->config->worker_arguments);
}

static char *
start_peer(struct team *team, int rank)
{
    char number[16];
    const char *argv[MAX_ARGV] = { team->program, "peer",   "--peers",
                                   "-",           "--rank", number };

    snprintf(number, sizeof number, "%d", rank);
    return start(team, rank, argv, 6, team->config->worker_arguments);
}

/* Sends all peers, which listen, the addresses. */
static void
send_addresses(struct team *team)
{
    char *list = NULL;

    for (int i = 0; i < team->n; i++) {
        add_peer_address(&list, "127.0.0.1", team->members[i].port);
    }
    for (int i = 0; i < team->n; i++) {
        team->members[i].ready = false;
        child_say_peers(&team->members[i].child, list);
    }
    free(list);
}

/* Starts servers, and then workers with their addresses. */
static char *
start_with_servers(struct team *team)
{
    int n_workers = team->n - team->n_servers;
    char *error = NULL;
    char workers[16];

    snprintf(workers, sizeof workers, "%d", n_workers);
    for (int i = 0; i < team->n_servers && !error; i++) {
        error = start_server(team, i, workers);
    }
    error = error ? error : await_ready(team, 0, team->n_servers);
    for (int i = 0; i < n_workers && !error && !stopped(team); i++) {
        error = start_worker(team, i, workers);
    }
    return error;
}

static char *
start_peers(struct team *team)
{
    char *error = NULL;

    for (int i = 0; i < team->n && !error; i++) {
        error = start_peer(team, i);
    }
    error = error ? error : await_ready(team, 0, team->n);
    if (!error && !stopped(team)) {
        send_addresses(team);
    }
    return error;
}

char *
team_start(const struct team_config *config, struct team **teamp)
{
    struct team *team = *teamp = allocate(1, sizeof *team);
    char *token, *error;

    signal(SIGPIPE, SIG_IGN);   /* A member may have ended. */
    team->config = config;
    if (config->program) {
        snprintf(team->program, sizeof team->program, "%s", config->program);
    } else if (readlink("/proc/self/exe", team->program,
                        sizeof team->program - 1) < 0) {
        return message("/proc/self/exe: cannot be read");
    }
    team->n_servers = config->n_servers;
    team->n = config->n_servers + config->n_workers;
    token = token_create();
    team->token = message(TOKEN_VARIABLE "=%s", token);
    free(token);
    team->members = allocate(team->n, sizeof *team->members);
    for (int i = 0; i < team->n; i++) {
        child_init(&team->members[i].child);
        team->members[i].child.has_err = true;
        team->members[i].paused = -1;
    }
    error = team->n_servers ? start_with_servers(team) : start_peers(team);
    return error || stopped(team)
           ? error : await_ready(team, team->n_servers, config->n_workers);
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
        for (size_t i = 0; i < team->n_held; i++) {
            free(team->held[i]);
        }
        free(team->held);
        free(team->members);
        free(team->token);
        free(team->error);
        free(team);
    }
}

void
team_say(struct team *team, const char *line)
{
    for (int i = team->n_servers; i < team->n; i++) {
        child_say(&team->members[i].child, line);
    }
}

int64_t
team_paused(const struct team *team)
{
    return team->members[team->n_servers].paused;
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

char *
team_end(struct team *team)
{
    double deadline = clock_monotonic_s() + END_S;
    char *error = NULL;
    int i;

    print_held(team);
    team->ending = true;
    team_say(team, "stop\n");
    while (!error && !stopped(team)
           && (i = find_running(team, 0, team->n)) < team->n) {
        if (find_running(team, team->n_servers, team->n) == team->n) {
            for (int j = 0; j < team->n_servers; j++) {
                child_hang_up(&team->members[j].child);
            }
        }
        error = team_run(team, 0.1);
        if (!error && clock_monotonic_s() > deadline) {
            char *name = name_of(team, i);

            error = message("%s did not end within %d s", name, END_S);
            free(name);
        }
    }
    return error;
}
