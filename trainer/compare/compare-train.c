/* SPDX-License-Identifier: Apache-2.0 */

#include <cjson/cJSON.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/compare/compare.h"
#include "base/clock.h"
#include "base/memory.h"
#include "trainer/net/token.h"
#include "trainer/search/hosts.h"
#include "trainer/search/launch.h"

#define START_S 30              /* Time limit for all members to start. */
#define END_S 5                 /* Time limit for all members to end by
                                 * themselves. */
#define MAX_ARGV 80

static const struct search_host this_host = {
    .name = (char *) "localhost", .launch = LAUNCH_LOCAL,
};

struct member {
    struct child child;
    bool ready;                 /* It listens, or waits for a target. */
    bool at_target;             /* It has reached its target. */
    int port;
};

struct team {
    const struct compare_spec *spec;
    const char *scheme;
    struct member *members;     /* Servers, then workers. */
    int n_servers, n;
    struct compare_curve *curve;
    char *token;                /* Environment variable of its secret. */
    double began;               /* Monotonic seconds, NAN before the begin. */
    char *error;
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

static double
number(const cJSON *event, const char *name)
{
    const cJSON *value = cJSON_GetObjectItem(event, name);

    return cJSON_IsNumber(value) ? value->valuedouble : NAN;
}

/* Stores an evaluation of rank 0. */
static void
add_point(struct team *team, const cJSON *event)
{
    struct compare_curve *curve = team->curve;
    struct compare_point point = {
        .seconds = clock_monotonic_s() - team->began,
        .iteration = number(event, "iteration"),
        .loss = number(event, "loss"), .accuracy = number(event, "accuracy"),
    };
    bool fresh = !curve->n_points
                 || point.loss != curve->points[curve->n_points - 1].loss;

    if (!isfinite(point.loss) || !fresh || isnan(team->began)
        || curve->reached) {
        return;
    }
    if (curve->n_points == curve->max_points) {
        curve->max_points = 2 * curve->max_points + 64;
        curve->points = reallocate(curve->points, curve->max_points,
                                   sizeof *curve->points);
    }
    curve->points[curve->n_points++] = point;
    curve->reached = point.loss <= team->spec->target_loss;
}

static void
take_line(struct team *team, struct member *m, const char *line)
{
    cJSON *event = cJSON_Parse(line);
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(event,
                                                                "event"));

    if (!type) {
        fail(team, message("%s: \"%s\" is no event", team->scheme, line));
    } else if (!strcmp(type, "listening")) {
        m->port = number(event, "port");
        m->ready = true;
    } else if (!strcmp(type, "paused")) {
        m->at_target = m->ready;
        m->ready = true;
    } else if (!strcmp(type, "progress")
               && m == &team->members[team->n_servers]) {
        add_point(team, event);
    }
    cJSON_Delete(event);
}

/* Handles reports of the members for up to 'seconds'. */
static void
listen_to(struct team *team, double seconds)
{
    struct pollfd *fds = allocate(team->n, sizeof *fds);

    for (int i = 0; i < team->n; i++) {
        fds[i].fd = team->members[i].child.out;
        fds[i].events = POLLIN;
    }
    poll(fds, team->n, seconds * 1e3);
    free(fds);
    for (int i = 0; i < team->n; i++) {
        struct member *m = &team->members[i];
        bool ended = child_reap(&m->child);
        char *line;

        while ((line = child_line(&m->child))) {
            take_line(team, m, line);
        }
        if (ended && m->child.status) {
            fail(team, message("%s: %s %d failed", team->scheme,
                               i < team->n_servers ? "server" : "worker",
                               i < team->n_servers ? i
                                                   : i - team->n_servers));
        }
    }
}

static void
await_ready(struct team *team, int first, int n)
{
    double deadline = clock_monotonic_s() + START_S;
    int n_ready;

    do {
        listen_to(team, 0.1);
        n_ready = 0;
        for (int i = first; i < first + n; i++) {
            n_ready += team->members[i].ready;
        }
        if (clock_monotonic_s() > deadline) {
            fail(team, message("%s: only %d of %d processes are ready",
                               team->scheme, n_ready, n));
        }
    } while (!team->error && n_ready < n);
}

static void
start(struct team *team, int i, const char *const argv[])
{
    const char *const env[] = { team->token, NULL };
    char *error = child_start(&team->members[i].child, &this_host, argv, env);

    if (error) {
        fail(team, error);
    }
}

static void
start_servers(struct team *team, const char *program, const char *workers)
{
    const char *const argv[] = {
        program, "server", "--workers", workers, "--sync", team->scheme, NULL,
    };

    for (int i = 0; i < team->n_servers; i++) {
        start(team, i, argv);
    }
    await_ready(team, 0, team->n_servers);
}

static void
start_worker(struct team *team, const char *program, const char *workers,
             int rank)
{
    const struct compare_spec *spec = team->spec;
    char number[16], servers[8][24];
    const char *argv[MAX_ARGV] = {
        program, "worker", "--workers", workers, "--rank", number,
    };
    int n = 6;

    snprintf(number, sizeof number, "%d", rank);
    for (int i = 0; i < team->n_servers; i++) {
        snprintf(servers[i], sizeof servers[i], "127.0.0.1:%d",
                 team->members[i].port);
        argv[n++] = "--server";
        argv[n++] = servers[i];
    }
    if (spec->profile) {
        argv[n++] = "--speed-profile";
        argv[n++] = spec->profile;
    }
    for (size_t i = 0; i < spec->n_arguments; i++) {
        argv[n++] = spec->arguments[i];
    }
    argv[n++] = "--iterations";
    argv[n++] = "0";
    start(team, team->n_servers + rank, argv);
}

static void
say(struct team *team, const char *text)
{
    for (int i = team->n_servers; i < team->n; i++) {
        child_say(&team->members[i].child, text);
    }
}

/* Trains until the target, the last iteration, or the limit. */
static void
train(struct team *team)
{
    const struct compare_spec *spec = team->spec;
    const struct member *first = &team->members[team->n_servers];
    char until[48];

    snprintf(until, sizeof until, "until %lld\n",
             (long long) spec->iterations);
    team->began = clock_monotonic_s();
    say(team, until);
    while (!team->error && !team->curve->reached && !first->at_target
           && clock_monotonic_s() - team->began < spec->limit_s) {
        listen_to(team, 0.1);
    }
    say(team, "stop\n");
}

/* Returns true if all have ended. */
static bool
all_ended(const struct team *team)
{
    for (int i = 0; i < team->n; i++) {
        if (team->members[i].child.pid) {
            return false;
        }
    }
    return true;
}

/* Trains under one scheme. */
static char *
train_scheme(const struct compare_spec *spec, const char *program,
             const char *scheme, struct compare_curve *curve)
{
    struct team team = {
        .spec = spec, .scheme = scheme, .n_servers = spec->n_servers,
        .n = spec->n_servers + spec->n_workers, .curve = curve, .began = NAN,
    };
    char workers[16], *token = token_create();
    double deadline;

    snprintf(workers, sizeof workers, "%d", (int) spec->n_workers);
    team.token = message(TOKEN_VARIABLE "=%s", token);
    free(token);
    team.members = allocate(team.n, sizeof *team.members);
    for (int i = 0; i < team.n; i++) {
        child_init(&team.members[i].child);
    }
    start_servers(&team, program, workers);
    for (int i = 0; i < spec->n_workers && !team.error; i++) {
        start_worker(&team, program, workers, i);
    }
    if (!team.error) {
        await_ready(&team, team.n_servers, spec->n_workers);
    }
    if (!team.error) {
        train(&team);
    }
    deadline = clock_monotonic_s() + END_S;
    while (!team.error && !all_ended(&team)
           && clock_monotonic_s() < deadline) {
        listen_to(&team, 0.1);
    }
    for (int i = 0; i < team.n; i++) {
        child_uninit(&team.members[i].child);
    }
    free(team.members);
    free(team.token);
    return team.error;
}

char *
compare_run(const struct compare_spec *spec, const char *program,
            struct compare_curve **curvesp)
{
    struct compare_curve *curves = allocate(spec->n_schemes, sizeof *curves);
    char *error = NULL;

    signal(SIGPIPE, SIG_IGN);   /* A member may have ended. */
    for (size_t i = 0; i < spec->n_schemes && !error; i++) {
        fprintf(stderr, "%s\n", spec->schemes[i]);
        error = train_scheme(spec, program, spec->schemes[i], &curves[i]);
    }
    if (error) {
        compare_curves_destroy(spec, curves);
        curves = NULL;
    }
    *curvesp = curves;
    return error;
}
