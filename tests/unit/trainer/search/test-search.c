/* SPDX-License-Identifier: Apache-2.0 */

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/json-check.h"
#include "tests/unit/unit-test.h"
#include "trainer/search/halving.h"
#include "trainer/search/hosts.h"
#include "trainer/search/launch.h"
#include "trainer/search/search.h"
#include "trainer/search/spec.h"
#include "wire/announce.h"

/* Halving. */

static const struct search_rung rungs[] = { { 10, 2 }, { 30, 1 } };
static const struct search_method together = { .n_brackets = 1 };

UNIT_TEST(keeps_the_best_and_waits_for_the_last)
{
    struct search_rung announced[2];
    struct halving h;
    int ranking[4];

    halving_init(&h, rungs, 2, &together, 4);
    assert_int_equal(halving_target(&h, 2), 10);
    assert_int_equal(halving_rungs(&h, announced), 2);
    assert_int_equal(announced[0].iterations, 10);
    assert_int_equal(announced[0].keep, 2);
    assert_int_equal(announced[1].iterations, 30);
    halving_reached(&h, 2, 0.5);
    halving_reached(&h, 0, 0.9);
    halving_reached(&h, 3, 0.7);
    assert_false(halving_stage_is_over(&h));
    halving_reached(&h, 1, 0.6);
    assert_true(halving_stage_is_over(&h));
    assert_int_equal(halving_end_stage(&h, ranking), 4);
    assert_memory_equal(ranking, ((int[]) { 2, 1, 3, 0 }), sizeof ranking);
    assert_int_equal(h.jobs[2].state, HALVING_RUNNING);
    assert_int_equal(h.jobs[1].state, HALVING_RUNNING);
    assert_int_equal(h.jobs[3].state, HALVING_STOPPED);
    assert_false(halving_is_over(&h));

    assert_int_equal(halving_target(&h, 2), 30);
    assert_int_equal(halving_rungs(&h, announced), 1);
    assert_int_equal(announced[0].iterations, 30);
    halving_reached(&h, 1, 0.2);
    halving_reached(&h, 2, 0.3);
    assert_int_equal(halving_end_stage(&h, ranking), 2);
    assert_int_equal(ranking[0], 1);
    assert_int_equal(h.jobs[1].state, HALVING_DONE);
    assert_int_equal(h.jobs[2].state, HALVING_STOPPED);
    assert_true(halving_is_over(&h));
    halving_uninit(&h);
}

UNIT_TEST(announces_no_more_jobs_than_are_left)
{
    struct search_rung announced[2];
    struct halving h;

    halving_init(&h, rungs, 2, &together, 4);
    for (int i = 0; i < 3; i++) {
        halving_failed(&h, i);
    }
    assert_int_equal(halving_rungs(&h, announced), 2);
    assert_int_equal(announced[0].keep, 1);
    halving_uninit(&h);
}

UNIT_TEST(failures_leave_the_ranking)
{
    struct halving h;
    int ranking[4];

    halving_init(&h, rungs, 2, &together, 4);
    halving_failed(&h, 0);
    halving_reached(&h, 1, NAN);
    halving_reached(&h, 2, 0.5);
    halving_failed(&h, 2);      /* While it waits. */
    halving_reached(&h, 3, INFINITY);
    assert_int_equal(halving_end_stage(&h, ranking), 2);
    assert_int_equal(ranking[0], 3);
    assert_int_equal(ranking[1], 1);    /* Not a number is the worst. */
    halving_failed(&h, 1);
    assert_false(halving_is_over(&h));
    halving_failed(&h, 3);
    assert_true(halving_is_over(&h));
    halving_uninit(&h);
}

UNIT_TEST(equals_stay_in_order)
{
    struct halving h;
    int ranking[3];

    halving_init(&h, rungs, 2, &together, 3);
    for (int i = 2; i >= 0; i--) {
        halving_reached(&h, i, 1);
    }
    assert_int_equal(halving_end_stage(&h, ranking), 3);
    assert_memory_equal(ranking, ((int[]) { 0, 1, 2 }), sizeof ranking);
    halving_uninit(&h);
}

/* Of those that were at a rung, a third goes on, or the best. */
UNIT_TEST(a_trial_stops_that_is_worse_than_those_before_it)
{
    static const struct search_method method = { 2, 3, 1 };
    static const struct {
        double loss;
        int64_t target; /* Then, or 0 if it is stopped. */
    } cases[] = { { 0.5, 30 }, { 0.6, 0 },  { NAN, 0 },
                  { 0.4, 30 }, { 0.45, 0 }, { 0.41, 30 } };
    struct halving h;
    int ranking[8];

    halving_init(&h, rungs, 2, &method, 6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(halving_begin(&h), i);
        assert_int_equal(halving_target(&h, i), 10);
        halving_reached(&h, i, cases[i].loss);
        assert_int_equal(h.jobs[i].state,
                         cases[i].target ? HALVING_RUNNING : HALVING_STOPPED);
        assert_int_equal(halving_target(&h, i),
                         cases[i].target ? cases[i].target : 10);
    }
    assert_int_equal(halving_begin(&h), -1);
    halving_reached(&h, 5, 0.3);
    halving_failed(&h, 0);
    assert_int_equal(h.jobs[5].state, HALVING_DONE);
    assert_false(halving_stage_is_over(&h));
    halving_reached(&h, 3, 0.35);
    assert_int_equal(h.jobs[3].state, HALVING_STOPPED);
    assert_true(halving_stage_is_over(&h));
    assert_int_equal(halving_end_stage(&h, ranking), 5);
    assert_memory_equal(ranking, ((int[]){ 5, 3, 4, 1, 2 }), sizeof(int[5]));
    assert_true(halving_is_over(&h));
    halving_uninit(&h);
}

/* Of both methods: trial 1 is of the second bracket. */
UNIT_TEST(a_bracket_is_judged_from_its_own_rung_on)
{
    struct search_method method = { 2, 2, 2 };
    struct halving h;
    int ranking[4];

    halving_init(&h, rungs, 2, &method, 2);
    assert_int_equal(halving_begin(&h), 0);
    assert_int_equal(halving_begin(&h), 1);
    assert_int_equal(halving_target(&h, 0), 10);
    assert_int_equal(halving_target(&h, 1), 30);
    halving_uninit(&h);

    method.places = 0;
    halving_init(&h, rungs, 2, &method, 4);
    for (int i = 0; i < 4; i++) {
        halving_reached(&h, i, i);
    }
    assert_int_equal(halving_end_stage(&h, ranking), 4);
    assert_int_equal(h.jobs[0].state, HALVING_RUNNING);
    assert_int_equal(h.jobs[1].state, HALVING_RUNNING);
    assert_int_equal(h.jobs[2].state, HALVING_STOPPED);
    assert_int_equal(h.jobs[3].state, HALVING_RUNNING);
    halving_uninit(&h);
}

/* Files. */

#define RUNGS "\"rungs\": [{\"iterations\": 20, \"keep\": 2}, " \
    "{\"iterations\": 60}]"
#define SPACE "\"space\": {\"learning_rate\": [0.01, 0.1], " \
    "\"width\": [16, 32], \"batch\": [16]}"
#define PLAIN_SPACE "\"space\": {\"learning_rate\": [0.01], \"batch\": [16]}"
#define PLACES "\"placements\": [{\"workers\": [\"h0\", \"h1\"], " \
    "\"servers\": [\"h1\"]}]"
#define PEERS "\"placements\": [{\"workers\": [\"h0\", \"h1\"]}]"
#define MODEL "\"model\": {\"inputs\": 16, \"hidden_layers\": 2, " \
    "\"classes\": 4}"
#define DATA "\"data\": {\"kind\": \"generated\", \"samples\": 256}"
#define SEARCH(SPACE_, RUNGS_, PLACES_, MODEL_, DATA_)                  \
    "{\"name\": \"a\", \"trials\": 3, " SPACE_ ", " RUNGS_ ", " PLACES_ \
    ", " MODEL_ ", " DATA_ "}"

static const char good_search[] = SEARCH(SPACE, RUNGS, PLACES, MODEL, DATA);

/* Each row is one mistake and the words for it. */
static const struct {
    const char *text;
    const char *error;
} bad_searches[] = {
    { SEARCH(SPACE, RUNGS,
             "\"placements\": [{\"workers\": [\"h9\"], "
             "\"servers\": [\"h0\"]}]",
             MODEL, DATA),
      "/placements/0/workers/0: no such host \"h9\"" },
    { SEARCH(SPACE, RUNGS,
             "\"placements\": [{\"workers\": [\"h0\"], "
             "\"servers\": [\"h1\", \"h1\", \"h1\"]}]",
             MODEL, DATA),
      "/placements/0/servers/0: needs 9 processes on h1; expected at most 6" },
    { SEARCH("\"space\": {\"learning_rate\": {\"min\": 0.1, \"max\": 0.01, "
             "\"scale\": \"log\"}, \"width\": [16], \"batch\": [16]}",
             RUNGS, PLACES, MODEL, DATA),
      "/space/learning_rate/max: 0.01; expected at least \"min\", 0.1" },
    { SEARCH("\"space\": {\"learning_rate\": [0.1], \"width\": [60000], "
             "\"batch\": [16]}",
             RUNGS, PLACES, MODEL, DATA),
      "/space: width 60000: 3601320004 parameters with 1 server; expected at "
      "least 7 servers" },
    { SEARCH("\"space\": {\"learning_rate\": [0.1], \"width\": [65536], "
             "\"batch\": [16]}",
             RUNGS, PLACES, MODEL, DATA),
      "/space: width 65536: 4296409092 parameters; expected at most 4294967296" },
    { SEARCH(SPACE, RUNGS, PLACES, MODEL,
             "\"data\": {\"kind\": \"mnist\", "
             "\"path\": \"/data\"}"),
      "/model: 16 inputs and 4 classes, MNIST has 784 and 10" },
    { "{\"name\": \"a\", \"trials\": 3, \"trails\": 3, " SPACE ", " RUNGS
      ", " PLACES ", " MODEL ", " DATA "}",
      "/trails: " },
    { "{\"name\": \"a/b\", \"trials\": 3, " SPACE ", " RUNGS ", " PLACES
      ", " MODEL ", " DATA "}",
      "/name: " },
    { SEARCH(SPACE, RUNGS, PLACES, MODEL, "\"data\": {\"kind\": \"cifar\"}"),
      "/data/kind: " },
    { SEARCH(SPACE, RUNGS, PLACES, MODEL,
             "\"data\": {\"kind\": \"cifar10\", "
             "\"path\": \"/data\"}"),
      "/model: 16 inputs and 4 classes, CIFAR-10 has 3072 and 10" },
    { SEARCH(SPACE, RUNGS, PLACES, MODEL,
             "\"data\": {\"kind\": \"libsvm\", "
             "\"path\": \"/data\"}"),
      "/data: libsvm is not for the model \"mlp\"" },
    { SEARCH(SPACE, RUNGS, PLACES, "\"model\": {\"name\": \"cifarnet\"}",
             DATA),
      "/space/width: " },
    { SEARCH(PLAIN_SPACE, RUNGS, PLACES, MODEL, DATA), "/space/width: " },
    { SEARCH(PLAIN_SPACE, RUNGS, PLACES, "\"model\": {\"name\": \"linear\"}",
             DATA),
      "/model/features: " },
    { SEARCH(PLAIN_SPACE, RUNGS, PLACES,
             "\"model\": {\"name\": \"resnet32\", "
             "\"inputs\": 16}",
             DATA),
      "/model/inputs: " },
    { SEARCH(PLAIN_SPACE, RUNGS, PLACES,
             "\"model\": {\"name\": \"cifarnet\", "
             "\"image\": [32, 32]}",
             DATA),
      "/model/image: " },
    { SEARCH(PLAIN_SPACE, RUNGS, PLACES,
             "\"model\": {\"name\": \"cifarnet\", "
             "\"image\": [32, 300, 3]}",
             DATA),
      "/model/image/1: 300" },
    { SEARCH(PLAIN_SPACE, RUNGS, PLACES,
             "\"model\": {\"name\": \"linear\", "
             "\"features\": 536870912}",
             DATA),
      "/model: 536870913 parameters with 1 server; expected at least 2 servers" },
    { SEARCH(SPACE, RUNGS, PLACES, MODEL, DATA ", \"sync\": \"psb\""),
      "/sync: \"psb\" is not a scheme" },
    { SEARCH(SPACE, RUNGS, PLACES, MODEL, DATA ", \"sync\": \"adpsgd\""),
      "/placements/0/servers: not allowed, \"sync\": \"adpsgd\" has no "
      "servers" },
    { SEARCH(SPACE, RUNGS, PEERS, MODEL, DATA), "/placements/0/servers: " },
    { SEARCH(SPACE, RUNGS, PEERS, MODEL,
             DATA ", \"sync\": "
                  "\"prague,group=129\""),
      "/sync: group: \"129\" is not an integer from 2 to 128" },
    { SEARCH(SPACE, RUNGS, PEERS, MODEL,
             DATA ", \"sync\": "
                  "\"netmax-published,policy-every=0\""),
      "/sync: policy-every: \"0\" is not a number from 0.001 to 1e6" },
    { SEARCH(SPACE, RUNGS, PLACES, MODEL,
             DATA ", \"sync\": "
                  "\"backup,backups=2\""),
      "/sync: backups: 2 of 2 workers" },
    { SEARCH(SPACE, RUNGS, PLACES, MODEL,
             DATA ", \"sync\": "
                  "\"groups,groups=4\""),
      "/sync: groups: 4 of 2 workers" },
    { SEARCH(SPACE, RUNGS,
             "\"placements\": [{\"workers\": "
             "[\"h0\"], \"servers\": [\"h0\", \"h1\"]}]",
             MODEL, DATA ", \"sync\": \"groups\""),
      "/sync: groups: 2 servers in /placements/0; expected 1" },
    { "{}", "/name: " },
    { "[]", "" },
};

static const struct search_hosts two_hosts = {
    .n = 2,
    .hosts = (struct search_host[]) {
        { .name = (char *) "h0", .address = (char *) "127.0.0.1",
          .launch = LAUNCH_LOCAL, .slots = 6 },
        { .name = (char *) "h1", .address = (char *) "127.0.0.1",
          .launch = LAUNCH_LOCAL, .slots = 6 },
    },
};

static char *
read_search(const char *text, const struct search_hosts *hosts,
            struct search_spec **spec)
{
    struct json_check *jc = json_check_open("s.json", text);

    search_spec_from_json(json_check_top(jc), spec);
    search_spec_check(json_check_top(jc), *spec, hosts);
    return json_check_close(jc);
}

UNIT_TEST(names_the_member_at_fault)
{
    for (size_t i = 0; i < sizeof bad_searches / sizeof bad_searches[0];
         i++) {
        struct search_spec *spec;
        char *error = read_search(bad_searches[i].text, &two_hosts, &spec);

        assert_non_null(error);
        if (!strstr(error, bad_searches[i].error)) {
            fail_msg("\"%s\" instead of \"%s\"", error,
                     bad_searches[i].error);
        }
        search_spec_destroy(spec);
        free(error);
    }
}

UNIT_TEST(trials_go_through_the_space_without_repetition)
{
    struct search_spec *spec;
    int seen = 0;

    assert_null(read_search(good_search, &two_hosts, &spec));
    spec->n_trials = 4;
    for (int i = 0; i < 4; i++) {
        struct search_trial t = search_spec_trial(spec, i);

        assert_true(t.width == 16 || t.width == 32);
        assert_true(t.learning_rate == 0.01 || t.learning_rate == 0.1);
        seen |= 1 << ((t.width == 32) + 2 * (t.learning_rate == 0.1));
    }
    assert_int_equal(seen, 15);

    /* Of a range, every trial has a part of its own. */
    spec->n_rates = 0;
    spec->rate_min = 0.001;
    spec->rate_max = 10;
    spec->rate_log = true;
    seen = 0;
    for (int i = 0; i < 4; i++) {
        double rate = search_spec_trial(spec, i).learning_rate;

        assert_true(rate == search_spec_trial(spec, i).learning_rate);
        seen |= 1 << (int) floor(log10(rate) + 3);
    }
    assert_int_equal(seen, 15);
    search_spec_destroy(spec);
}

/* Children. */

UNIT_TEST(children_speak_in_bounded_lines)
{
    static const char script[] =
        "echo one; head -c 10000 /dev/zero | tr '\\0' x; echo; echo two; "
        "read line; echo \"$STAGECOACH_JOB $line\"; exit 7";
    const char *const argv[] = { "/bin/sh", "-c", script, NULL };
    const char *const env[] = { "STAGECOACH_JOB=t5", NULL };
    char *lines[3];
    struct child child;
    int n = 0;

    child_init(&child);
    assert_null(child_start(&child, &two_hosts.hosts[0], argv, env));
    child_say(&child, "hello\n");
    for (int ms = 0; ms < 5000 && n < 3; ms++) {
        char *line = child_line(&child.out);

        if (line) {
            lines[n++] = strdup(line);
        } else {
            usleep(1000);
        }
    }
    assert_int_equal(n, 3);
    assert_string_equal(lines[0], "one");
    assert_string_equal(lines[1], "two");
    assert_string_equal(lines[2], "t5 hello");
    for (int ms = 0; ms < 5000 && !child_reap(&child); ms++) {
        usleep(1000);
    }
    assert_int_equal(WEXITSTATUS(child.status), 7);
    while (n > 0) {
        free(lines[--n]);
    }
    child_uninit(&child);
}

UNIT_TEST(programs_that_are_not_there_are_said)
{
    const char *const argv[] = { "/nowhere/trainer", NULL };
    const char *const env[] = { NULL };
    struct child child;
    char *error;

    child_init(&child);
    error = child_start(&child, &two_hosts.hosts[0], argv, env);
    assert_is(error, "h0: cannot start /nowhere/trainer "
                     "(No such file or directory)");
    child_uninit(&child);
}

/* Whole searches on this machine. */

struct record {
    char text[4096];            /* What was announced, a word each. */
    int n_progress;
    double bytes, exchange_s;   /* Of all jobs. */
    double rate;                /* Learning rate of the best job. */
    double seconds[4];          /* Of the stages. */
    pid_t kill_pid;             /* Gets SIGTERM when a job is ready. */
    const char *wrapper;        /* Starts the processes of jobs, or NULL. */
    const char *trained;        /* File to make when a job has trained, or
                                 * NULL. */
};

static void
add_word(struct record *r, const char *format, ...)
{
    size_t length = strlen(r->text);
    va_list args;

    va_start(args, format);
    vsnprintf(r->text + length, sizeof r->text - length, format, args);
    va_end(args);
}

static void
record_edit(void *r, const struct intent_edit *e)
{
    switch (e->kind) {
    case INTENT_COJOB_BEGIN:
        add_word(r, "+%s ", e->cojob);
        break;
    case INTENT_JOB_BEGIN:
        add_word(r, "+%s:%zu:%s:%s:%lld ", e->job, e->n, e->workers[0].role,
                 e->workers[e->n - 1].role, e->model_bytes);
        break;
    case INTENT_STAGE_BEGIN:
        add_word(r, "[%d:%" PRId64 ":%zu", e->rung, e->rungs[0].iterations,
                 e->n);
        add_word(r, e->eta ? "+%lld " : " ", e->to_come);
        break;
    case INTENT_STAGE_END:
        add_word(r, "%d] ", e->rung);
        break;
    case INTENT_JOB_END:
        add_word(r, "-%s ", e->outcome);
        break;
    case INTENT_COJOB_END:
        add_word(r, "-%s", e->cojob);
        break;
    case N_INTENT_KINDS:
    default:
        fail();
    }
}

static void
record_event(void *r_, const cJSON *event)
{
    const char *type = cJSON_GetStringValue(cJSON_GetObjectItem(event,
                                                                "event"));
    struct record *r = r_;

    assert_non_null(type);
    assert_true(cJSON_IsNumber(cJSON_GetObjectItem(event, "time")));
    assert_true(cJSON_IsString(cJSON_GetObjectItem(event, "cojob")));
    r->n_progress += !strcmp(type, "progress");
    if (!strcmp(type, "job-end")) {
        r->bytes += cJSON_GetNumberValue(cJSON_GetObjectItem(event,
                                                             "bytes"));
        r->exchange_s +=
            cJSON_GetNumberValue(cJSON_GetObjectItem(event, "exchange_s"));
    } else if (!strcmp(type, "stage-end")) {
        int rung = cJSON_GetNumberValue(cJSON_GetObjectItem(event, "rung"));

        r->seconds[rung] = cJSON_GetNumberValue(
            cJSON_GetObjectItem(event, "seconds"));
    } else if (!strcmp(type, "job-ready")) {
        add_word(r, "ready ");
        assert_true(cJSON_GetNumberValue(cJSON_GetObjectItem(event, "seconds"))
                    >= 0);
        if (r->kill_pid) {
            kill(r->kill_pid, SIGTERM);
        }
    } else if (!strcmp(type, "progress") && r->trained) {
        close(open(r->trained, O_CREAT | O_WRONLY, 0600));
    }
}

static char *
trainer_path(void)
{
    char path[4096], *slash;
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

    path[n > 0 ? n : 0] = '\0';
    slash = strrchr(path, '/');
    assert_non_null(slash);
    strcpy(slash, "/../../trainer/stagecoach-trainer");
    return strdup(path);
}

static struct search_result
execute(const char *text, struct record *r)
{
    struct search_result result = { .best = -2 };
    char *trainer = trainer_path();
    struct search_spec *spec;

    assert_null(read_search(text, &two_hosts, &spec));
    assert_null(search_execute(
        &(struct search_config){
            .spec = spec,
            .hosts = &two_hosts,
            .trainer = trainer,
            .wrapper = r->wrapper,
            .announce = record_edit,
            .announce_aux = r,
            .event = record_event,
            .event_aux = r,
        },
        &result));
    if (result.best >= 0) {
        r->rate = search_spec_trial(spec, result.best).learning_rate;
    }
    search_spec_destroy(spec);
    free(trainer);
    return result;
}

UNIT_TEST(a_search_halves_its_jobs)
{
    static const char text[] =
        "{\"name\": \"a\", \"trials\": 3, \"seed\": 2, \"eval_every\": 5, "
        "\"space\": {\"learning_rate\": [0.00001, 0.05, 0.00002], "
        "\"width\": [16], \"batch\": [16]}, \"sample_cost_us\": 2000, "
        RUNGS ", " PLACES ", " MODEL ", " DATA "}";
    const int parameters = 16 * 16 + 16 + 16 * 16 + 16 + 16 * 4 + 4;
    struct record r = { .n_progress = 0 };
    struct search_result result = execute(text, &r);
    struct search_spec *spec;
    char expected[512];

    assert_null(read_search(text, &two_hosts, &spec));
    assert_true(result.best >= 0);
    assert_true(search_spec_trial(spec, result.best).learning_rate == 0.05);
    search_spec_destroy(spec);
    assert_int_equal(result.n_failed, 0);
    assert_int_equal(result.signal, 0);

    snprintf(expected, sizeof expected,
             "+a +t0:3:worker:server:%1$d +t1:3:worker:server:%1$d "
             "+t2:3:worker:server:%1$d [0:20:3 ready ready ready 0] -stopped "
             "[1:60:2 1] -done -stopped -a",
             parameters * 4);
    assert_string_equal(r.text, expected);
    assert_true(r.n_progress > 5);

    /* 16 samples of 2 ms for two workers: 16 ms an iteration at least. */
    assert_true(r.seconds[0] >= 20 * 0.016);
    assert_true(r.seconds[1] >= 40 * 0.016);

    /* Both ways, both workers: one model an iteration, and the first. */
    assert_true(r.bytes > (20 + 60 + 60) * 4.0 * parameters * 4);
    assert_true(r.bytes < (21.5 + 61.5 + 61.5) * 4.0 * parameters * 4 + 1e5);

    /* Two workers of three, then of two jobs, less than all the time. */
    assert_true(r.exchange_s > 0);
    assert_true(r.exchange_s < 6 * r.seconds[0] + 4 * r.seconds[1]);
}

/* The first at a rung passes it, though it learns nothing; trial 1 learns. */
UNIT_TEST(an_asynchronous_search_stops_trials_one_by_one)
{
    static const char text[] =
        "{\"name\": \"a\", \"trials\": 3, \"seed\": 2, "
        "\"method\": \"asynchronous\", \"places\": 1, \"eta\": 2, "
        "\"space\": {\"learning_rate\": [0.00001, 0.05, 0.00002], "
        "\"width\": [16], \"batch\": [16]}, "
        "\"rungs\": [{\"iterations\": 20}, {\"iterations\": 60}], " PLACES
        ", " MODEL ", " DATA "}";
    struct record r = { .n_progress = 0 };
    struct search_result result = execute(text, &r);

    assert_int_equal(result.n_failed, 0);
    assert_true(r.rate == 0.05);
    assert_string_equal(
        r.text, "+a +t0:3:worker:server:2448 [0:20:1+2 ready -done [0:20:0+2 "
                "+t1:3:worker:server:2448 [0:20:1+1 ready -done [0:20:0+1 "
                "+t2:3:worker:server:2448 [0:20:1+0 ready -stopped 0] -a");
}

/* Under each scheme, with servers and of peers, jobs pause at the end of a
 * rung and go on. */
UNIT_TEST(every_scheme_pauses_between_rungs)
{
    static const struct {
        const char *scheme, *placements, *first, *last;
        int n;
    } cases[] = {
        { "ssp", PLACES, "worker", "server", 3 },
        { "essp", PLACES, "worker", "server", 3 },
        { "backup", PLACES, "worker", "server", 3 },
        { "lbbsp-cpu", PLACES, "worker", "server", 3 },
        { "flexrr", PLACES, "worker", "server", 3 },
        { "groups,groups=2", PLACES, "worker", "server", 3 },
        { "allreduce", PEERS, "peer", "peer", 2 },
        { "adpsgd", PEERS, "peer", "peer", 2 },
        { "prague,group=2", PEERS, "peer", "peer", 2 },
        { "netmax", PEERS, "peer", "peer", 2 },
        { "netmax-published,policy-every=1", PEERS, "peer", "peer", 2 },
    };
    const int bytes = (16 * 16 + 16 + 16 * 16 + 16 + 16 * 4 + 4) * 4;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct record r = { .n_progress = 0 };
        struct search_result result;
        char text[1024], expected[512];

        snprintf(text, sizeof text,
                 "{\"name\": \"a\", \"trials\": 2, \"seed\": 2, "
                 "\"sync\": \"%s\", \"space\": {\"learning_rate\": "
                 "[0.00001, 0.2], \"width\": [16], \"batch\": [16]}, "
                 "\"sample_cost_us\": 500, "
                 "\"rungs\": [{\"iterations\": 10, \"keep\": 1}, "
                 "{\"iterations\": 60}], %s, " MODEL ", " DATA "}",
                 cases[i].scheme, cases[i].placements);
        result = execute(text, &r);
        assert_int_equal(result.n_failed, 0);
        snprintf(expected, sizeof expected,
                 "+a +t0:%1$d:%2$s:%3$s:%4$d +t1:%1$d:%2$s:%3$s:%4$d [0:10:2 "
                 "ready ready 0] -stopped [1:60:1 1] -done -a",
                 cases[i].n, cases[i].first, cases[i].last, bytes);
        assert_string_equal(r.text, expected);

        /* The job with the other rate learns nothing. */
        assert_true(r.rate == 0.2);

        /* Two workers send and receive a model each in an iteration, if no
         * peer is alone in it. */
        assert_true(r.bytes > 100 * bytes);
    }
}

UNIT_TEST(a_search_whose_jobs_all_fail_ends)
{
    static const char text[] =
        "{\"name\": \"a\", \"trials\": 2, \"congestion\": \"nonsense\", "
        SPACE ", " RUNGS ", " PLACES ", " MODEL ", " DATA "}";
    struct record r = { .n_progress = 0 };
    struct search_result result = execute(text, &r);

    assert_int_equal(result.best, -1);
    assert_int_equal(result.n_failed, 2);
    assert_non_null(strstr(r.text, " [0:20:2 -failed -failed 0] -a"));
}

/* The processes of t1 do not start before t0 has trained, and then fail. */
UNIT_TEST(a_job_starts_in_the_stage_and_waits_for_no_other)
{
    static const char text[] = "{\"name\": \"a\", \"trials\": 2, " SPACE
                               ", " RUNGS ", " PLACES ", " MODEL ", " DATA "}";
    char folder[] = "/tmp/test-search-XXXXXX";
    char wrapper[64], trained[64];
    struct record r = { .wrapper = wrapper, .trained = trained };
    struct search_result result;
    FILE *file;

    assert_non_null(mkdtemp(folder));
    snprintf(wrapper, sizeof wrapper, "%s/wrapper", folder);
    snprintf(trained, sizeof trained, "%s/trained", folder);
    file = fopen(wrapper, "w");
    fprintf(file,
            "#!/bin/sh\n"
            "if [ \"$1 $4 $5\" = 'run --job t1' ]; then\n"
            "    until [ -e %s ]; do sleep 0.02; done\n"
            "    exit 1\n"
            "fi\n"
            "shift 6\n"
            "exec \"$@\"\n",
            trained);
    fclose(file);
    assert_int_equal(chmod(wrapper, 0700), 0);
    result = execute(text, &r);
    assert_int_equal(result.best, 0);
    assert_int_equal(result.n_failed, 1);
    assert_non_null(strstr(r.text, " [0:20:2 ready -failed 0] [1:60:1 1] "));
    unlink(wrapper);
    unlink(trained);
    rmdir(folder);
}

UNIT_TEST(a_signal_ends_a_search_and_all_its_processes)
{
    static const char text[] =
        "{\"name\": \"a\", \"trials\": 2, \"sample_cost_us\": 1000000, "
        SPACE ", " RUNGS ", " PLACES ", " MODEL ", " DATA "}";
    struct record r = { .kill_pid = getpid() };
    struct search_result result = execute(text, &r);

    assert_int_equal(result.signal, SIGTERM);
    assert_int_equal(result.best, -1);
    assert_non_null(strstr(r.text, "-a"));

    /* No child is left, not even one to reap. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

/* Skips all in a build without OpenBLAS, which has no trainer. */
int
unit_test_set_up(void **state)
{
    char *trainer = trainer_path();

    alarm(60);
    if (access(trainer, X_OK)) {
        exit(77);
    }
    free(trainer);
    return 0;
}
