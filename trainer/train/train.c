/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/train/train.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "trainer/net/frame.h"
#include "trainer/process/options.h"
#include "trainer/ps/checkpoint.h"
#include "trainer/search/launch.h"
#include "trainer/search/team.h"
#include "trainer/train/progress.h"

#define EXIT_TRAINING 1
#define BAR_S 0.1               /* Time between two bars. */
#define LINE_S 10               /* Time between two lines. */

struct train {
    const struct options *o;
    struct team *team;
    struct progress progress;
    bool terminal;              /* Standard output is one. */
    bool has_bar;               /* A bar is in the last line of it. */
    bool ending;                /* The workers have been stopped. */
    int64_t first;              /* Iteration at which the job began. */
    double began, ended;        /* Monotonic seconds. */
    double shown;               /* Time of the last bar or line. */
    int64_t iterations[TEAM_MAX_WORKERS];
    double bytes;               /* Sent and received by workers that ended. */
    char backend[16];           /* Of worker 0. */
};

static volatile sig_atomic_t n_signals, last_signal;

static void
take_signal(int signal)
{
    n_signals++;
    last_signal = signal;
}

/* The first signal stops the job, the second one its end. */
static bool
train_stopped(void *train_)
{
    const struct train *train = train_;

    return n_signals > train->ending;
}

/* Output. */

static void
remove_bar(struct train *train)
{
    if (train->has_bar) {
        fputs("\r\033[K", stdout);
        fflush(stdout);
        train->has_bar = false;
    }
}

static void
print_line(void *train, const char *line)
{
    remove_bar(train);
    fprintf(stderr, "%s\n", line);
}

static void
print_event(cJSON *event)
{
    char *text = cJSON_PrintUnformatted(event);

    puts(text);
    fflush(stdout);
    free(text);
    cJSON_Delete(event);
}

static cJSON *
new_event(const char *name)
{
    cJSON *event = cJSON_CreateObject();

    cJSON_AddStringToObject(event, "event", name);
    cJSON_AddNumberToObject(event, "time", clock_wall_ms());
    return event;
}

/* Adds a number with 6 digits, or null if it is NAN. */
static void
add_number(cJSON *event, const char *name, double value)
{
    char text[32];

    snprintf(text, sizeof text, "%.6g", value);
    cJSON_AddNumberToObject(event, name, strtod(text, NULL));
}

static cJSON *
progress_event(const struct train *train, const char *name)
{
    const struct progress *p = &train->progress;
    cJSON *event = new_event(name);

    cJSON_AddNumberToObject(event, "iteration", p->iteration);
    cJSON_AddNumberToObject(event, "iterations", p->target);
    add_number(event, "loss", p->loss);
    add_number(event, "accuracy", p->accuracy);
    add_number(event, "iterations_s", p->iterations_s);
    add_number(event, "samples_s", p->samples_s);
    return event;
}

static int
terminal_width(void)
{
    struct winsize size;

    return !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col > 1
           ? size.ws_col - 1 : 79;
}

static void
show_progress(struct train *train)
{
    double now = clock_monotonic_s();
    char *text;

    if (train->o->json) {
        cJSON *event = progress_event(train, "progress");

        add_number(event, "eta_s", train->progress.eta_s);
        print_event(event);
        return;
    }
    if (now - train->shown < (train->terminal ? BAR_S : LINE_S)) {
        return;
    }
    train->shown = now;
    if (train->terminal) {
        text = progress_bar(&train->progress, terminal_width());
        printf("\r%s\033[K", text);
        train->has_bar = true;
    } else {
        text = progress_line(&train->progress);
        puts(text);
    }
    fflush(stdout);
    free(text);
}

static uint64_t
last_checkpoint(const struct options *o)
{
    return o->checkpoint ? checkpoint_common(o->checkpoint, o->n_team_servers)
                         : FRAME_NONE;
}

static void
show_start(struct train *train)
{
    const struct options *o = train->o;

    if (o->json) {
        cJSON *event = new_event("started");

        cJSON_AddNumberToObject(event, "workers", o->n_workers);
        cJSON_AddNumberToObject(event, "servers", o->n_team_servers);
        cJSON_AddStringToObject(event, "sync", o->sync.class->name);
        cJSON_AddStringToObject(event, "backend", train->backend);
        cJSON_AddNumberToObject(event, "iteration", train->first);
        cJSON_AddNumberToObject(event, "iterations", o->target);
        print_event(event);
        return;
    }
    remove_bar(train);
    printf("%"PRId64" worker%s and %"PRId64" server%s, %s, on %s\n",
           o->n_workers, o->n_workers > 1 ? "s" : "", o->n_team_servers,
           o->n_team_servers > 1 ? "s" : "", o->sync.class->name,
           train->backend);
    if (train->first) {
        printf("continues from iteration %"PRId64", a checkpoint in %s\n",
               train->first, o->checkpoint);
    }
    fflush(stdout);
}

static void
show_weights(struct train *train, const cJSON *event)
{
    double made = team_number(event, "made"),
           all = team_number(event, "parameters");

    if (train->o->json) {
        print_event(cJSON_Duplicate(event, true));
        return;
    }
    if (!train->terminal && clock_monotonic_s() - train->shown < LINE_S) {
        return;
    }
    train->shown = clock_monotonic_s();
    printf("%sfirst weights: %.0f %% of %.0f%s", train->terminal ? "\r" : "",
           100 * made / all, all, train->terminal ? "\033[K" : "\n");
    fflush(stdout);
    train->has_bar = train->terminal;
}

/* The job has reached its target, or was stopped by a signal. */
static void
show_end(struct train *train)
{
    const struct options *o = train->o;
    struct progress *p = &train->progress;
    double seconds = train->ended - train->began;
    bool reached = p->iteration >= o->target;

    p->eta_s = NAN;
    if (seconds > 0 && p->iteration > train->first) {
        p->iterations_s = (p->iteration - train->first) / seconds;
    }
    if (o->json) {
        cJSON *event = progress_event(train, "done");

        cJSON_AddBoolToObject(event, "reached", reached);
        add_number(event, "seconds", seconds);
        cJSON_AddNumberToObject(event, "bytes", train->bytes);
        add_number(event, "rose_at", p->rose_at ? p->rose_at : NAN);
        print_event(event);
    } else {
        uint64_t last = last_checkpoint(o);
        char *text = progress_line(p);

        printf("%s: %s, %.1f s\n", reached ? "done" : "stopped", text,
               seconds);
        free(text);
        if (last != FRAME_NONE) {
            printf("checkpoint of iteration %"PRIu64" in %s\n", last,
                   o->checkpoint);
        }
        fflush(stdout);
    }
}

/* Events of workers. */

/* Returns the sum of the iterations of all workers. */
static int64_t
count_iterations(const struct train *train)
{
    int64_t total = 0;

    for (int i = 0; i < train->o->n_workers; i++) {
        total += train->iterations[i];
    }
    return total;
}

static void
take_progress(struct train *train, int rank, const cJSON *event)
{
    struct progress *p = &train->progress;
    double iteration = team_number(event, "iteration");

    train->iterations[rank] = isfinite(iteration) ? iteration : 0;
    if (rank) {
        return;
    }
    if (progress_rises(p, train->iterations[0], team_number(event, "loss"))) {
        char *text = message(
            "stagecoach-trainer train: the loss rises to %.4g by iteration "
            "%" PRId64 ", from %.4g at %" PRId64 "; expected a lower "
            "--learning-rate, or --warm-up",
            p->loss, p->rose_at, p->lowest_loss, p->lowest_at);

        print_line(train, text);
        free(text);
    }
    p->accuracy = team_number(event, "accuracy");
    if (train->ended) {
        p->iteration = train->iterations[0];
    } else if (train->began) {
        progress_count(p, clock_monotonic_s(), train->iterations[0],
                       count_iterations(train));
    }
}

static void
take_event(void *train_, int rank, const cJSON *event)
{
    const char *type = cJSON_GetObjectItem(event, "event")->valuestring;
    struct train *train = train_;

    if (!strcmp(type, "backend") && !rank) {
        const char *name = cJSON_GetStringValue(
            cJSON_GetObjectItem(event, "name"));

        snprintf(train->backend, sizeof train->backend, "%s",
                 name ? name : "");
    } else if (!strcmp(type, "weights")) {
        show_weights(train, event);
    } else if (!strcmp(type, "progress")) {
        take_progress(train, rank, event);
        if (!rank && train->began && !train->ended) {
            show_progress(train);
        }
    } else if (!strcmp(type, "done")) {
        take_progress(train, rank, event);
        train->bytes += team_number(event, "bytes_sent")
                        + team_number(event, "bytes_received");
    }
}

/* The job. */

/* Trains until the target, or until a signal. */
static char *
run(struct train *train)
{
    const struct options *o = train->o;
    char *error = NULL;

    train->first = team_paused(train->team);
    train->began = train->shown = clock_monotonic_s();
    progress_init(&train->progress, train->began, train->first,
                  count_iterations(train));
    show_start(train);
    team_until(train->team, o->target);
    while (!error && !train_stopped(train)
           && !team_has_reached(train->team, o->target)) {
        error = team_run(train->team, 0.1);
    }
    train->ended = clock_monotonic_s();
    return error;
}

static char *
start_and_run(struct train *train, const struct team_config *config)
{
    char *error;

    train->team = team_create(config);
    team_start(train->team);
    error = team_await(train->team);
    if (!error && !train_stopped(train)) {
        error = run(train);
    }
    if (!error) {
        train->ending = n_signals > 0;
        error = team_end(train->team);
        remove_bar(train);
    }
    if (!error && train->began) {
        show_end(train);
    }
    remove_bar(train);
    return error;
}

/* Prints 'error' and where the job can continue. */
static int
conclude(const struct options *o, char *error)
{
    uint64_t last = last_checkpoint(o);

    if (!error) {
        return n_signals ? 128 + last_signal : 0;
    }
    fprintf(stderr, "stagecoach-trainer train: %s", error);
    if (last != FRAME_NONE && last) {
        fprintf(stderr, "; the last checkpoint is that of iteration %"PRIu64,
                last);
    }
    putc('\n', stderr);
    free(error);
    return EXIT_TRAINING;
}

static void
catch_signals(void)
{
    static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction action = { .sa_handler = take_signal };

    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        sigaction(signals[i], &action, NULL);
    }
}

int
train_command(const struct options *o)
{
    struct words servers = { .n = 0 }, workers = { .n = 0 };
    const char *terminal = getenv("TERM");
    struct train train = {
        .o = o,
        .progress = {
            .target = o->target, .share = (double) o->batch / o->n_workers,
            .loss = NAN, .accuracy = NAN, .iterations_s = NAN,
            .samples_s = NAN, .eta_s = NAN,
        },
        .terminal = isatty(STDOUT_FILENO) && terminal
                    && strcmp(terminal, "dumb"),
    };
    struct team_config config = {
        .n_servers = o->n_team_servers,
        .n_workers = o->n_workers,
        .server_arguments = (const char *const *) servers.words,
        .worker_arguments = (const char *const *) workers.words,
        .report = take_event,
        .reads_errors = true,
        .print = print_line,
        .stopped = train_stopped,
        .aux = &train,
    };
    char *error;

    options_arguments(o, ROLE_SERVER, words_add, &servers);
    options_arguments(o, ROLE_WORKER, words_add, &workers);
    catch_signals();
    error = start_and_run(&train, &config);
    team_destroy(train.team);
    words_uninit(&servers);
    words_uninit(&workers);
    return conclude(o, error);
}
