/* SPDX-License-Identifier: Apache-2.0 */

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "sim/workload/job-trace.h"
#include "sim/workload/workload-jobs.h"
#include "sim/workload/workload.h"
#include "tests/unit/unit-test.h"

#define TIRESIAS "job_id,num_gpu,submit_time,iterations,model_name," \
                 "duration,interval\n"
#define OPENB "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos," \
              "pod_phase,creation_time,deletion_time,scheduled_time\n"

static char *
read_trace(const char *text, struct job_trace **tracep)
{
    FILE *stream = fmemopen((void *) text, strlen(text), "r");
    char *error = job_trace_read("t", stream, tracep);

    fclose(stream);
    return error;
}

static struct workload *
read_workload(const char *text, const char *settings)
{
    struct jobs_options options = JOBS_OPTIONS_INIT;
    FILE *stream = fmemopen((void *) text, strlen(text), "r");
    struct workload *w;

    assert_null(jobs_options_parse(settings, &options));
    assert_null(workload_jobs_read("t", stream, &options, &w));
    fclose(stream);
    return w;
}

/* One job in each format, as it is in the public traces. */
static const struct {
    const char *text;
    size_t n;
    const char *model;          /* Of the first job, like the rest. */
    int n_gpus;
    double arrival, length;     /* NAN: not known. */
} samples[] = {
    { "LM (batch size 5)\tcd %s && python main.py \t--steps\t1\t7632500\t"
      "2734360.000000\t4\n", 1, "LM", 4, 2734360, 7632500 },
    { TIRESIAS "0,2,30,606,vgg19,164,30\n1,8,40,133,vgg11,147,23\n\n",
      2, "vgg19", 2, 30, 164 },
    { OPENB "p-0,20000,65536,0,0,,LS,Running,2759674,12902960,2759676\n"
      "p-1,12000,16384,1,460,V100M16,LS,Failed,10,110,\n",
      1, "12000/16384/460", 1, 10, 100 },
    { "runtime\r\n5.0\r\n7\r\n", 2, NULL, 1, NAN, 5 },
};

UNIT_TEST(reads_every_format)
{
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const struct trace_job *job;
        struct job_trace *trace;

        assert_null(read_trace(samples[i].text, &trace));
        assert_true(job_trace_begins(samples[i].text));
        assert_int_equal(trace->n, samples[i].n);
        job = &trace->jobs[0];
        if (samples[i].model) {
            assert_string_equal(job->model, samples[i].model);
        } else {
            assert_null(job->model);
        }
        assert_int_equal(job->n_gpus, samples[i].n_gpus);
        assert_true(job->length == samples[i].length);
        assert_true(job->arrival == samples[i].arrival
                    || isnan(samples[i].arrival));
        job_trace_destroy(trace);
    }
}

UNIT_TEST(knows_by_the_first_line)
{
    assert_true(job_trace_begins(TIRESIAS));
    assert_true(job_trace_begins(OPENB));
    assert_true(job_trace_begins("runtime"));
    assert_true(job_trace_begins("A3C\tx\n"));
    assert_false(job_trace_begins("150 526\n"));
    assert_false(job_trace_begins("150\t526\n"));
    assert_true(job_trace_begins("bytes, \"iterations\",job\n"));
    assert_true(job_trace_begins("num_gpu,duration\n"));
    assert_false(job_trace_begins("num_gpu,job\n"));
    assert_false(job_trace_begins("runtimes\n"));
    assert_false(job_trace_begins(""));
}

static const struct {
    const char *text, *error;
} mistakes[] = {
    { "x\n", "t:1: no trace of jobs; expected " JOB_TRACE_FORMATS },
    { TIRESIAS, "t:2: the trace ends without a job that has workers and "
                "times" },
    { TIRESIAS "0,0,5,1,vgg11,3,4\n1,1,,1,vgg11,3,4\n2,1,5,1,vgg11,,4\n",
      "t:5: the trace ends without a job that has workers and times" },
    { TIRESIAS "0,1,5\n", "t:2: 3 fields; expected 7, as in the header" },
    { TIRESIAS "0,1.5,5,1,vgg11,3,4\n",
      "t:2: number of workers \"1.5\" is not an integer from 0 to 100000" },
    { TIRESIAS "0,1,-5,1,vgg11,3,4\n",
      "t:2: submit_time \"-5\" is not a number from 0 to 1000000000000" },
    { TIRESIAS "0,1,5,1,vgg11,3,4,9\n",
      "t:2: 8 fields; expected 7, as in the header" },
    { TIRESIAS "0,1,5,1,vgg11,nan,4\n",
      "t:2: duration \"nan\" is not a number from 0 to 1000000000000" },
    { TIRESIAS "0,1,5,1,\"vgg11,3,4\n",
      "t:2: a quote has no end in its line" },
    { "LM\tcd\t-n\t1\t5\n",
      "t:1: 5 fields between tabs; expected 7 or 10, as in traces of Gavel" },
    { OPENB "p,1,2,1,5,,LS,Running,x,9,9\n",
      "t:2: creation_time \"x\" is not a number from 0 to 1000000000000" },
    { "runtime\n1\n\n7 8\n",
      "t:4: runtime \"7 8\" is not a number from 0 to 1000000000000" },
    { "job,iterations\na,0\n",
      "t:2: iterations \"0\" is not a number from 1 to 1000000000000000" },
};

UNIT_TEST(names_the_line_at_fault)
{
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        struct job_trace *trace;

        assert_is(read_trace(mistakes[i].text, &trace), mistakes[i].error);
        assert_null(trace);
    }
}

/* Five alike jobs at once are a search of three rungs, another model's is one
 * of its own, and so is one that comes much later.  The trace's middle job
 * takes 100 s; the others' lengths are half, 10 and 100 times that. */
static const char jobs[] =
    TIRESIAS
    "0,1,0,1,vgg11,100,1\n" "1,2,1,1,vgg11,100,1\n" "2,4,2,1,vgg11,100,1\n"
    "3,8,2,1,vgg11,100,1\n" "4,99,3,1,vgg11,100,1\n"
    "5,1,3,1,alexnet,50,1\n" "6,2,4,1,other,1000,1\n"
    "7,1,900,1,vgg11,10000,1\n";

UNIT_TEST(makes_searches_of_alike_jobs)
{
    struct workload *w = read_workload(jobs, "hosts=20,window=1,load=0.01");
    const struct workload_cojob *search = &w->cojobs[0];

    assert_int_equal(w->n_cojobs, 4);
    assert_int_equal(search->n_jobs, 5);
    assert_int_equal(search->n_rungs, 3);
    assert_int_equal(search->rungs[1].n_jobs, 3);
    assert_int_equal(search->rungs[2].n_jobs, 2);
    assert_int_equal(search->rungs[2].iterations, 24);
    assert_int_equal(w->cojobs[1].rungs[0].iterations, 12);
    assert_int_equal(w->cojobs[2].rungs[0].iterations, 240);
    assert_int_equal(w->cojobs[3].n_jobs, 1);
    assert_true(w->cojobs[3].arrival > 10 * w->cojobs[2].arrival);
    for (size_t i = 0; i < search->n_jobs; i++) {
        assert_true(search->jobs[i].devices <= 8);
        assert_true(search->jobs[i].n_transfers > 0);
    }
    /* alexnet has 244 MB on one server, which sends as much as it gets. */
    assert_int_equal(w->cojobs[1].jobs[0].n_transfers, 2);
    assert_true(w->cojobs[1].jobs[0].transfers[0].bytes == 244e6);
    workload_destroy(w);
}

UNIT_TEST(obeys_the_options)
{
    struct workload *a = read_workload(jobs, "jobs=3,hosts=2,compute=0.5");
    struct workload *b = read_workload(jobs, "jobs=3,hosts=2,compute=0.5");
    struct workload *c = read_workload(jobs, "jobs=3,hosts=2,seed=2");
    const struct workload_job *job = &a->cojobs[0].jobs[0];
    double alone = workload_exchange_time(job, a->fabric);

    assert_int_equal(a->fabric->n_hosts, 2);
    assert_int_equal(a->n_cojobs, 1);
    assert_int_equal(a->cojobs[0].n_jobs, 3);
    assert_true(job->compute >= 0.8 * alone && job->compute <= 1.2 * alone);
    assert_true(job->compute == b->cojobs[0].jobs[0].compute);
    assert_true(job->compute != c->cojobs[0].jobs[0].compute);
    workload_destroy(a);
    workload_destroy(b);
    workload_destroy(c);
}

UNIT_TEST(refuses_bad_options)
{
    struct jobs_options options = JOBS_OPTIONS_INIT;
    char *error = jobs_options_parse("jobs=0", &options);

    assert_is(error, "jobs: jobs: \"0\" is not an integer from 1 to "
                     "100000");
    error = jobs_options_parse("hosts=4,cojobs=3", &options);
    assert_is(error, "jobs: \"cojobs\" is not one of \"hosts=\", "
                     "\"jobs=\", \"window=\", \"compute=\", \"load=\", "
                     "\"seed=\"");
}
