/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>

#include "sim/run/simulate.h"
#include "sim/workload/workload-recording.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define STAGE(COJOB, RUNG, BEGAN, ENDED, DEMAND)                       \
    "{\"cojob\": \"" COJOB "\", \"rung\": " RUNG ", \"began\": " BEGAN \
    ", \"ended\": " ENDED ", \"demand\": {" DEMAND "}, \"jobs\": ["    \
    "{\"job\": \"t\", \"bytes\": {" DEMAND "}}]}"
#define RECORDING(STAGES)                                               \
    "{\"stages\": [" STAGES "], \"bound_mean_s\": 1, "                   \
    "\"bound_kind\": \"ports\", \"gap_mean\": 1, "                       \
    "\"gap_worst\": 1, \"decisions\": 7}"

static void
assert_near(double a, double b)
{
    if (!(fabs(a - b) <= 1e-6 * (1 + fabs(b)))) {
        fail_msg("%.12g is not %.12g", a, b);
    }
}

static struct workload *
read_workload(const char *text)
{
    struct workload *w;

    assert_no_error(workload_recording_from_string("r.json", text, &w));
    return w;
}

/* Seconds that cojob 'index' takes of 'port'. */
static double
port_seconds(const struct workload *w, size_t index, int port)
{
    const struct workload_job *job = &w->cojobs[index].jobs[0];
    double seconds = 0;

    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];

        assert_int_not_equal(t->src, t->dst);
        if (port == 2 * t->src || port == 2 * t->dst + 1) {
            seconds += t->bytes / w->fabric->capacity[port];
        }
    }
    return seconds;
}

/* A stage of three hosts, one that still runs, and one that began later. */
UNIT_TEST(puts_on_each_port_what_was_measured)
{
    struct workload *w = read_workload(RECORDING(
        STAGE("a", "1", "1700000004000", "1700000009000",
              "\"x:tx\": 2, \"x:rx\": 1, \"y:tx\": 1.5, \"y:rx\": 2.5,"
              " \"z:tx\": 0, \"z:rx\": 0") ","
        STAGE("b", "0", "1700000001000", "0", "\"q:tx\": 4") ","
        STAGE("b", "2", "1700000001500", "1700000002000",
              "\"z:tx\": 3, \"x:rx\": 3.0000000001")));

    assert_int_equal(w->n_cojobs, 2);
    assert_string_equal(w->cojobs[0].name, "a/1");
    assert_near(w->cojobs[0].arrival, 2.5);
    assert_near(w->cojobs[1].arrival, 0);
    assert_near(port_seconds(w, 0, 0), 2);
    assert_near(port_seconds(w, 0, 1), 1);
    assert_near(port_seconds(w, 0, 2), 1.5);
    assert_near(port_seconds(w, 0, 3), 2.5);
    assert_near(port_seconds(w, 0, 4), 0);
    assert_near(port_seconds(w, 1, 4), 3);
    assert_int_equal(w->cojobs[1].jobs[0].n_transfers, 1);
    workload_destroy(w);
}

/* What x sends went to a host without an agent; it could not have gone to x
 * itself.  So did what y sends, elsewhere: both take 4 s under any order. */
UNIT_TEST(meets_those_who_were_not_measured)
{
    struct workload *w = read_workload(RECORDING(
        STAGE("a", "0", "0", "5", "\"x:tx\": 4, \"x:rx\": 4") ","
        STAGE("b", "0", "0", "5", "\"y:tx\": 4, \"y:rx\": 4")));
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
        .service = SIM_SERVICE_EXACT,
    };
    struct sim_result r;

    assert_int_equal(w->fabric->n_hosts, 4);
    assert_near(port_seconds(w, 0, 0), 4);
    assert_near(port_seconds(w, 0, 1), 4);
    simulate(w, &options, &r);
    assert_near(r.mean, 4);
    assert_near(r.bound, 4);
    sim_result_uninit(&r);
    workload_destroy(w);
}

/* Two stages of four iterations at one port, which is used half of the time by
 * each: iterations of one fit into the computing of the other.  As one
 * exchange each, they would take 4 and 8 s under any order of the port. */
UNIT_TEST(repeats_the_iterations_and_their_computing)
{
#define ITERATING(COJOB)                                                  \
    "{\"cojob\": \"" COJOB "\", \"rung\": 0, \"began\": 1, \"ended\": 9," \
    " \"iterations\": 4, \"compute_s\": 1, \"demand\": {\"x:tx\": 4},"    \
    " \"jobs\": [{\"job\": \"t\", \"bytes\": {\"x:tx\": 4}}]}"
    struct workload *w =
        read_workload(RECORDING(ITERATING("a") "," ITERATING("b")));
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
        .service = SIM_SERVICE_EXACT,
    };
    struct sim_result r;

    assert_int_equal(w->cojobs[0].rungs[0].iterations, 4);
    assert_near(w->cojobs[0].jobs[0].compute, 1);
    assert_near(port_seconds(w, 0, 0), 1);
    assert_true(workload_iterates(w));
    simulate(w, &options, &r);
    assert_near(r.mean, 8.5);
    assert_near(r.max, 9);
    sim_result_uninit(&r);
    workload_destroy(w);
}

/* Three jobs send in rung 0, and one of them in rung 1, which was recorded to
 * begin when rung 0 ended.  Rung 0 of "b" is missing, rung 1 of "c" began much
 * later, and rung 1 of "d" has a job that rung 0 does not have. */
UNIT_TEST(chains_the_stages_of_a_search)
{
#define JOB(NAME, BYTES) "{\"job\": \"" NAME "\", \"bytes\": {" BYTES "}}"
#define PART(COJOB, RUNG, BEGAN, ENDED, DEMAND, JOBS)                  \
    "{\"cojob\": \"" COJOB "\", \"rung\": " RUNG ", \"began\": " BEGAN \
    ", \"ended\": " ENDED ", \"iterations\": 2, \"compute_s\": 1,"     \
    " \"demand\": {" DEMAND "}, \"jobs\": [" JOBS "]}"
    struct workload *w = read_workload(RECORDING(PART(
        "a", "0", "1000", "9000", "\"x:tx\": 2, \"y:tx\": 4, \"z:tx\": 6",
        JOB("t0", "\"x:tx\": 20") "," JOB("t1", "\"y:tx\": 40") "," JOB(
            "t2",
            "\"z:tx\": 60")) "," PART("b", "1", "1000", "9000", "\"q:tx\": 4",
                                      JOB("t", "\"q:tx\": 4")) "," PART("c",
                                                                        "0",
                                                                        "1000", "9000", "\"r:tx\": 4", JOB("t", "\"r:tx\": 4")) "," PART("a", "1", "9010", "19000", "\"y:tx\": 4.01", JOB("t1", "\"y:tx\": 40.1")) "," PART("c", "1", "19000", "29000", "\"r:tx\": 4", JOB("t", "\"r:tx\": 4")) "," PART("d",
                                                                                                                                                                                                                                                                                                         "0",
                                                                                                                                                                                                                                                                                                         "1000",
                                                                                                                                                                                                                                                                                                         "9000", "\"q:rx\": 1", JOB("t", "\"q:rx\": 1")) "," PART("d",
                                                                                                                                                                                                                                                                                                                                                                  "1",
                                                                                                                                                                                                                                                                                                                                                                  "9000",
                                                                                                                                                                                                                                                                                                                                                                  "29000",
                                                                                                                                                                                                                                                                                                                                                                  "\"q:rx\": 1",
                                                                                                                                                                                                                                                                                                                                                                  JOB("u",
                                                                                                                                                                                                                                                                                                                                                                      "\"q:rx\": 1"))));
    struct sim_options options = {
        .order = ORDER_OPTIONS_INIT(ORDER_STAGE),
        .service = SIM_SERVICE_EXACT,
    };
    struct sim_result r;

    assert_int_equal(w->n_cojobs, 6);
    assert_string_equal(w->cojobs[0].name, "a/0");
    assert_int_equal(w->cojobs[0].n_rungs, 2);
    assert_int_equal(w->cojobs[0].rungs[1].iterations, 4);
    assert_int_equal(w->cojobs[0].rungs[1].n_jobs, 1);
    assert_string_equal(w->cojobs[0].jobs[0].name, "t1");
    assert_int_equal(w->cojobs[0].jobs[0].n_transfers, 1);
    assert_string_equal(w->cojobs[1].name, "b/1");
    assert_string_equal(w->cojobs[3].name, "c/1");
    simulate(w, &options, &r);
    for (size_t i = 0; i < r.n_stages; i++) {
        if (!r.stages[i].cojob && r.stages[i].rung) {
            assert_near(r.stages[i].begin, 8); /* 2 iterations of 1 + 3 s. */
            assert_near(r.stages[i].end, 14.005);
        }
    }
    sim_result_uninit(&r);
    workload_destroy(w);
}

/* The demand does not have host y, and the other job has moved nothing. */
UNIT_TEST(what_the_stage_did_not_use_counts_nothing)
{
    struct workload *w = read_workload(RECORDING(
        PART("a", "0", "1000", "9000", "\"x:tx\": 4",
             JOB("t", "\"x:tx\": 1e9, \"y:tx\": 1e9") "," JOB("u", ""))));

    assert_near(port_seconds(w, 0, 0), 2);
    assert_int_equal(w->cojobs[0].jobs[0].n_transfers, 1);
    assert_int_equal(w->cojobs[0].jobs[1].n_transfers, 0);
    workload_destroy(w);
}

/* Two jobs have a server and two workers.  The server of the first job was
 * busy for the time of both directions, the server of the second job for the
 * time of one.  A third worker was not measured. */
UNIT_TEST(a_server_receives_and_then_sends)
{
#define SERVER(JOB, BUSY)                                                \
    "{\"job\": \"" JOB "\", \"busy_s\": " BUSY                           \
    ", \"waited_s\": 1, \"bytes\": "                                     \
    "{\"x:tx\": 6, \"x:rx\": 6, \"y:tx\": 2, \"y:rx\": 2, \"z:tx\": 2, " \
    "\"z:rx\": 2}}"
    struct workload *w = read_workload(RECORDING(
        "{\"cojob\": \"a\", \"rung\": 0, \"began\": 1, \"ended\": 9,"
        " \"demand\": {\"x:tx\": 12, \"x:rx\": 12, \"y:tx\": 4, \"y:rx\": 4,"
        " \"z:tx\": 4, \"z:rx\": 4}, \"jobs\": [" SERVER(
            "t0", "13") "," SERVER("t1", "7") "]}"));
    const struct workload_job *job = &w->cojobs[0].jobs[0];

    assert_int_equal(job->n_shards, 1);
    assert_int_equal(job->n_phases, 2);
    for (size_t i = 0; i < job->n_transfers; i++) {
        const struct workload_transfer *t = &job->transfers[i];

        assert_int_equal(t->phase, !t->src);
        assert_int_equal(!t->src + !t->dst, 1);
        assert_near(t->bytes / w->fabric->capacity[0], 2);
    }
    assert_int_equal(job->n_transfers, 6);
    assert_near(workload_exchange_time(job, w->fabric), 12);
    assert_int_equal(w->cojobs[0].jobs[1].n_phases, 1);
    workload_destroy(w);
}

UNIT_TEST(merges_iterations_of_long_recordings)
{
    struct workload *w = read_workload(
        RECORDING("{\"cojob\": \"a\", \"rung\": 0, \"began\": 1, \"ended\": 9,"
                  " \"iterations\": 500000, \"compute_s\": 0.001,"
                  " \"demand\": {\"x:tx\": 100}, \"jobs\": [{\"job\":"
                  " \"t\", \"bytes\": {\"x:tx\": 7}}]}"));

    assert_int_equal(w->cojobs[0].rungs[0].iterations,
                     RECORDING_MAX_ITERATIONS);
    assert_near(w->cojobs[0].jobs[0].compute, 0.01);
    assert_near(port_seconds(w, 0, 0), 100.0 / RECORDING_MAX_ITERATIONS);
    workload_destroy(w);
}

static const struct {
    const char *text, *error;
} mistakes[] = {
    { "{\"stages\": []}", "r.json: /stages: 0 elements; expected 1 to 20000" },
    { RECORDING(STAGE("a", "0", "1", "0", "")),
      "r.json: /stages: no stage has ended, at least one is needed" },
    { RECORDING(STAGE("a", "0", "7", "6", "")),
      "r.json: /stages/0/ended: 6 is before the stage began; expected 0 or "
      "from 7 on" },
    { RECORDING(STAGE("a", "-1", "7", "8", "")),
      "r.json: /stages/0/rung: -1 is not an integer from 0 to 1000000" },
    { RECORDING(STAGE("a", "0", "7", "8", "\"h0\": 1")),
      "r.json: /stages/0/demand/h0: no port; expected a name such as "
      "\"h0:tx\" or \"h0:rx\"" },
    { RECORDING(STAGE("a", "0", "7", "8", "\":tx\": 1")),
      "r.json: /stages/0/demand/:tx: no port; expected a name such as "
      "\"h0:tx\" or \"h0:rx\"" },
    { RECORDING(STAGE("a", "0", "7", "8", "\"h0:tx\": -1")),
      "r.json: /stages/0/demand/h0:tx: -1 is not a number from 0 to 1e+09" },
    { RECORDING(PART("a", "0", "7", "8", "\"x:tx\": 1",
                     JOB("t", "\"x:tx\": 1") "," JOB("t", "\"x:tx\": 1"))),
      "r.json: /stages/0/jobs/1/job: \"t\" is the name of another job; "
      "expected another name" },
    { "{\"stages\": [{}], \"demand\": 1}",
      "r.json: /stages/0/cojob: required member is missing" },
};

UNIT_TEST(names_the_member_at_fault)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct workload *w;
        char *error = workload_recording_from_string("r.json",
                                                     mistakes[i].text, &w);

        assert_is(error, mistakes[i].error);
        assert_null(w);
    }
}
