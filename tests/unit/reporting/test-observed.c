/* SPDX-License-Identifier: Apache-2.0 */

/* A recording of a few stages, and its page. */

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporting/observed.h"
#include "tests/unit/unit-test.h"

/* Search "a" trains "t0" for two hours and waits half an hour of these on one
 * of its two hosts, with a launcher that knows of 4 GPUs; then alone for an
 * hour.  Job "t1" of "b" has 2 processes and runs with the second hour of
 * "a/t0", and "c" has no part in that.  "d" still runs. */
static const char recording[] =
    "{\"stages\": ["
    "{\"cojob\": \"b\", \"rung\": 0, \"began\": 3600000, \"ended\": 7200000,"
    " \"policy\": \"stage\", \"demand\": {}, \"jobs\": [{\"job\": \"t1\","
    "  \"hosts\": 1, \"devices\": 2, \"waited_s\": 360,"
    "  \"bytes\": {\"h0:tx\": 2000000000, \"h0:rx\": 1}}]},"
    "{\"cojob\": \"a\", \"rung\": 1, \"began\": 7200000, \"ended\": 10800000,"
    " \"jobs\": [{\"job\": \"t0\", \"hosts\": 2, \"gpus\": 4, \"waited_s\": 0,"
    "  \"bytes\": {\"h0:tx\": 500000000, \"h1:tx\": 500000000}}]},"
    "{\"cojob\": \"a\", \"rung\": 0, \"began\": 1, \"ended\": 7200001,"
    " \"jobs\": [{\"job\": \"t0\", \"hosts\": 2, \"gpus\": 4,"
    "  \"waited_s\": 1800,"
    "  \"bytes\": {\"h0:tx\": 1000000000, \"h1:tx\": 3000000000}}]},"
    "{\"cojob\": \"c\", \"rung\": 0, \"began\": 0, \"ended\": 3600000,"
    " \"jobs\": [{\"job\": \"t2\", \"hosts\": 3,"
    "  \"bytes\": {\"h2:rx\": 7}}]},"
    "{\"cojob\": \"d\", \"rung\": 0, \"began\": 0, \"ended\": 0,"
    " \"jobs\": [{\"job\": \"t3\", \"hosts\": 3, \"bytes\": {\"h2:rx\": 7}}]}"
    "]}";

static struct observed *
open_recording(void)
{
    struct observed *o;

    assert_null(observed_create("r.json", recording, &o));
    assert_int_equal(o->n_stages, 4);
    o->policy = "stage";
    o->until = 864000000;
    return o;
}

static char *
page_of(const struct observed *o)
{
    char *text;
    size_t size;
    FILE *f = open_memstream(&text, &size);

    observed_put_page(o, f);
    fclose(f);
    return text;
}

static void
assert_has(const struct observed *o, const char *line)
{
    char *page = page_of(o);

    if (!strstr(page, line)) {
        fail_msg("no \"%s\" in\n%s", line, page);
    }
    free(page);
}

static double
number(const cJSON *o, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, name);

    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

/* GPU-hours: "a/t0" 3 h of 4 GPUs, "b/t1" 1 h of 2, "c/t2" 1 h of 3 hosts.
 * Waiting: half an hour of 4 GPUs, and a tenth of an hour of 2.  The first
 * stage, of 8 GPU-hours, would take half of its time, and the one of "b" 1.5
 * times its time: 4 GPU-hours are saved, and 1 is lost. */
UNIT_TEST(adds_up_hours_and_waiting)
{
    struct observed *o = open_recording();
    cJSON *json;

    observed_simulated(o, 0, 100, 50);
    observed_simulated(o, 1, 20, 20);
    observed_simulated(o, 2, 20, 30);
    observed_simulated(o, 3, 20, 20);
    json = observed_to_json(o);
    assert_float_equal(number(json, "gpu_hours"), 17, 1e-6);
    assert_float_equal(number(json, "waited_gpu_hours"), 2.2, 1e-6);
    assert_float_equal(number(json, "saved_gpu_hours"), 3, 1e-6);
    assert_float_equal(number(json, "ratio"), 0.75, 1e-6);
    cJSON_Delete(json);
    assert_has(o, "3 jobs in 4 stages, 17 GPU-hours\n");
    assert_has(o, "\nStagecoach " STAGECOACH_VERSION ": test-observed, on ");
    assert_has(o, "\na/t0                             2     4         3"
                  "         5       0.5   16.7%         2\n"
                  "b/t1                             1     2         1"
                  "         2       0.1   10.0%       0.2\n"
                  "c/t2                             3     3         1"
                  "         0   unknown       -         -\n");
    assert_has(o, "launcher of 1 jobs, those of 1 are taken as one for each\n"
                  "process that computes, and those of 1 as one for each "
                  "host\n");
    assert_has(o, "\nwaiting took 2.2 of 17 GPU-hours\n"
                  "the order \"stage\" would have saved 3 GPU-hours: in the "
                  "simulator, stages complete\nin 0.75 of their time\n");
    observed_destroy(o);
}

/* Only the second hour at h0:tx has two jobs; a stage that begins when
 * another one ends shares nothing. */
UNIT_TEST(names_the_links_that_jobs_share)
{
    struct observed *o = open_recording();
    cJSON *json = observed_to_json(o), *links;

    links = cJSON_GetObjectItem(json, "links");
    assert_int_equal(cJSON_GetArraySize(links), 1);
    assert_float_equal(number(cJSON_GetArrayItem(links, 0), "hours"), 1, 1e-6);
    cJSON_Delete(json);
    assert_has(o, "\nh0:tx                        1  a/t0, b/t1\n");
    observed_destroy(o);
}

UNIT_TEST(says_how_much_of_each_card_it_saw)
{
    struct observed *o = open_recording();

    observed_add_card(o, "h0:tx", 9e9, 10e9);
    observed_add_card(o, "h0:rx", 2e9, 0);
    assert_has(o, "\nh0:tx                           9           10    90.0%\n"
                  "h0:rx                           2      unknown        -\n"
                  "RDMA passes a card without the kernel");
    observed_destroy(o);
}

UNIT_TEST(says_when_the_recording_was_cut)
{
    struct observed *o = open_recording();
    char *whole = page_of(o);

    setenv("TZ", "UTC", 1);
    assert_null(strstr(whole, "deleted"));
    free(whole);
    o->cut = 86400000;
    assert_has(o, "observed from 1970-01-02 00:00 to 1970-01-11 00:00: ");
    assert_has(o, "\nwhat is older was deleted, because the recording had "
                  "reached its limit\n");
    observed_destroy(o);
}

UNIT_TEST(an_empty_recording_has_a_page)
{
    struct observed *o;

    assert_null(observed_create("r.json", "{\"stages\": []}", &o));
    o->policy = "stage";
    assert_has(o, "0 jobs in 0 stages, 0 GPU-hours\n");
    assert_has(o, "\nno link was shared by jobs\n");
    assert_has(o, "\nwaiting took 0 of 0 GPU-hours\n");
    observed_destroy(o);
}

UNIT_TEST(what_is_no_recording_is_an_error)
{
    struct observed *o;
    char *error = observed_create("r.json", "{\"stages\": 1}", &o);

    assert_null(o);
    assert_is(error, "r.json: no recording; expected "
                     "{\"stages\": [...]}");
}
