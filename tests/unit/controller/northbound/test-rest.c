/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/northbound/rest/peer.h"
#include "controller/northbound/rest/rest-body.h"
#include "controller/northbound/rest/rest-listen.h"
#include "controller/northbound/rest/rest-routes.h"
#include "openvswitch/json.h"
#include "openvswitch/shash.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/progress-datagram.h"

UNIT_TEST(segments_of_a_path_are_extracted)
{
    static const struct {
        const char *pattern, *path;
        bool matches;
        const char *args[REST_MAX_ARGS];
    } cases[] = {
        { "/v1", "/v1", true, { NULL } },
        { "/v1", "/v1/", false, { NULL } },
        { "/v1/{a}", "/v1/x", true, { "x" } },
        { "/v1/{a}", "/v1/", false, { NULL } },
        { "/v1/{a}", "/v1/x/", false, { NULL } },
        { "/v1/{a}/j/{b}", "/v1/x/j/y", true, { "x", "y" } },
        { "/v1/{a}/j/{b}", "/v1/x/k/y", false, { NULL } },
        { "/v1/{a}/{b}/{c}", "/v1/1/2/3", true, { "1", "2", "3" } },
        { "/v1/{a}/{b}/{c}", "/v1/1//3", false, { NULL } },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char args[REST_MAX_ARGS][REST_MAX_ARG];

        assert_int_equal(rest_path_match(cases[i].pattern, cases[i].path,
                                         args), cases[i].matches);
        for (int j = 0; j < REST_MAX_ARGS && cases[i].args[j]; j++) {
            assert_string_equal(args[j], cases[i].args[j]);
        }
    }
}

UNIT_TEST(long_segments_do_not_match)
{
    char args[REST_MAX_ARGS][REST_MAX_ARG];
    char path[REST_MAX_ARG + 2] = "/";

    memset(path + 1, 'x', REST_MAX_ARG - 1);
    assert_true(rest_path_match("/{a}", path, args));
    assert_int_equal(strlen(args[0]), REST_MAX_ARG - 1);
    path[REST_MAX_ARG] = 'x';
    assert_false(rest_path_match("/{a}", path, args));
}

UNIT_TEST(quoted_paths_are_short_and_printable)
{
    assert_is(rest_path_quote("/a b\n\xff~"), "/a?b??~");
}

UNIT_TEST(members_of_a_body_are_read)
{
    const char *text = "{\"workers\": [{\"host\": \"h0\"}, {\"host\": \"h1\", "
                       "\"role\": \"server\", \"index\": 0}], "
                       "\"model_bytes\": 5}";
    struct intent_edit edit;

    assert_null(rest_body_edit(INTENT_JOB_BEGIN, text, strlen(text), &edit));
    assert_int_equal(edit.n, 2);
    assert_string_equal(edit.workers[0].role, "worker");
    assert_int_equal(edit.workers[0].index, 0);
    assert_string_equal(edit.workers[1].host, "h1");
    assert_string_equal(edit.workers[1].role, "server");
    assert_int_equal(edit.model_bytes, 5);
    intent_edit_uninit(&edit);
}

UNIT_TEST(an_empty_body_has_the_defaults)
{
    struct intent_edit edit;

    assert_null(rest_body_edit(INTENT_COJOB_BEGIN, "", 0, &edit));
    assert_true(edit.weight >= 1 && edit.weight <= 1);
    intent_edit_uninit(&edit);
}

UNIT_TEST(errors_name_the_member)
{
    static const struct {
        enum intent_kind kind;
        const char *text, *beginning;
    } cases[] = {
        { INTENT_COJOB_BEGIN, "{\"weight\": 0}", "/weight: " },
        { INTENT_COJOB_BEGIN, "{\"wait\": 1}", "/wait: " },
        { INTENT_COJOB_BEGIN, "{", "/: line 1: " },
        { INTENT_COJOB_BEGIN, "[]", "/: " },
        { INTENT_COJOB_END, "{\"weight\": 1}", "/weight: " },
        { INTENT_JOB_BEGIN, "{\"workers\": [{\"host\": \"/\"}]}",
          "/workers/0/host: " },
        { INTENT_STAGE_BEGIN, "{\"jobs\": [\"a\"]}", "/iterations: " },
        { INTENT_STAGE_BEGIN, "{\"iterations\": 1.5, \"jobs\": [\"a\"]}",
          "/iterations: " },
        { INTENT_STAGE_BEGIN,
          "{\"rungs\": [{\"iterations\": -1}], "
          "\"jobs\": [\"a\"]}",
          "/rungs/0/iterations: -1 " },
        { INTENT_STAGE_BEGIN,
          "{\"rungs\": [{\"iterations\": 1, \"keep\": 2}], "
          "\"jobs\": [\"a\"]}",
          "/rungs/0/keep: 2 " },
        { INTENT_STAGE_BEGIN,
          "{\"rungs\": [{\"iterations\": 1, \"at\": 2}], "
          "\"jobs\": [\"a\"]}",
          "/rungs/0/at: " },
        { INTENT_STAGE_BEGIN,
          "{\"iterations\": 1, "
          "\"rungs\": [{\"iterations\": 1}], "
          "\"jobs\": [\"a\"]}",
          "/iterations: " },
        { INTENT_STAGE_BEGIN, "{\"iterations\": 1, \"jobs\": []}", "/jobs: " },
        { INTENT_STAGE_BEGIN,
          "{\"iterations\": 1, \"jobs\": [\"a\"], "
          "\"bytes_per_iteration\": -1}",
          "/bytes_per_iteration: -1 " },
        { INTENT_STAGE_BEGIN,
          "{\"iterations\": 1, \"jobs\": [\"a\"], "
          "\"compute_s\": -1}",
          "/compute_s: -1 " },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct intent_edit edit;
        char *error = rest_body_edit(cases[i].kind, cases[i].text,
                                     strlen(cases[i].text), &edit);

        assert_non_null(error);
        assert_memory_equal(error, cases[i].beginning,
                            strlen(cases[i].beginning));
        free(error);
    }
}

UNIT_TEST(null_bytes_are_refused)
{
    struct progress p;
    char *error = rest_body_progress("{}\0", 3, &p);

    assert_is(error, "/: a null byte in the body; expected text");
}

UNIT_TEST(progress_needs_an_iteration)
{
    static const struct {
        const char *body, *error;
        bool has_value, left_out;
    } cases[] = {
        { "{\"iteration\": 3, \"metric\": \"loss\", \"value\": 0.5, "
          "\"time\": 1, \"stage\": 0}",
          NULL, true, false },
        { "{\"iteration\": 3}", NULL, false, false },
        { "{\"iteration\": 3, \"metric\": \"loss\", \"value\": -Infinity}",
          NULL, false, true },
        { "{\"iteration\": 3, \"metric\": {\"a\": NaN}, \"value\": 1}", NULL,
          false, true },
        { "{\"metric\": \"loss\", \"value\": 0.5}",
          "/iteration: not an integer; expected 0 to 2^53" },
        { "{\"iteration\": NaN}",
          "/iteration: not an integer; expected 0 to 2^53" },
        { "{\"iteration\": 3, \"loss\": 1}", "/loss: unknown member" },
        { "{\"iteration\": 3, \"loss\": nan}", "/: not valid JSON" },
        { "[1]", "/: not an object" },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct progress p;
        char *error =
            rest_body_progress(cases[i].body, strlen(cases[i].body), &p);

        if (cases[i].error) {
            assert_is(error, cases[i].error);
        } else {
            assert_null(error);
            assert_int_equal(p.iteration, 3);
            assert_int_equal(p.has_value, cases[i].has_value);
            assert_int_equal(p.left_out, cases[i].left_out);
        }
    }
}

/* Checks the status and the start of the error of 'reply', and frees it. */
static void
assert_error(struct rest_reply reply, unsigned int status, const char *start)
{
    const struct json *error =
        shash_find_data(json_object(reply.json), "error");

    assert_int_equal(reply.status, status);
    assert_true(strlen(json_string(error)) >= strlen(start));
    assert_memory_equal(json_string(error), start, strlen(start));
    rest_reply_uninit(&reply);
}

/* The query "outcome=VALUE" if 'aux' is VALUE. */
static const char *
get_outcome(const void *aux, const char *name)
{
    return aux && !strcmp(name, "outcome") ? aux : NULL;
}

/* Returns the request 'method' for 'path' with 'body' and, if it is not null,
 * the query parameter "outcome". */
static struct rest_request
make_request(const char *method, const char *path, const char *body,
             const char *outcome)
{
    static char name[] = "eva";
    static const struct peer eva = { PEER_OPERATOR, name, 0 };

    return (struct rest_request){ .method = method,
                                  .path = path,
                                  .peer = &eva,
                                  .body = body,
                                  .body_size = strlen(body),
                                  .query = get_outcome,
                                  .query_aux = outcome,
                                  .n_query = outcome != NULL };
}

/* A stage with trials that are judged one by one has none now. */
#define ONE_BY_ONE ", \"method\": \"asynchronous\""
#define TRIALS(MEMBERS)                                                             \
    "{\"jobs\": [], \"rungs\": [{\"iterations\": 5}, {\"iterations\": 75}]" MEMBERS \
    "}"

UNIT_TEST(requests_without_a_route_are_refused)
{
    static const struct {
        const char *method, *path, *body, *outcome;
        unsigned int status;
        const char *error;
    } cases[] = {
        { "GET", "/v1/nothing", "", NULL, 404,
          "/v1/nothing: not found; expected one of /v1/cojobs, " },
        { "GET", "/v1/\n", "", NULL, 404, "/v1/?: not found; " },
        { "PUT", "/v1/status", "", NULL, 405,
          "/v1/status: PUT is not for "
          "this; expected GET, HEAD" },
        { "POST", "/v1/cojobs/a", "", NULL, 405,
          "/v1/cojobs/a: POST is not "
          "for this; expected GET, HEAD, PUT, DELETE" },
        { "GET", "/v1/cojobs/a/jobs/b/progress", "", NULL, 405,
          "/v1/cojobs/a/jobs/b/progress: GET is not for this; expected POST" },
        { "DELETE", "/v1/cojobs/a", "{}", NULL, 413,
          "/v1/cojobs/a: the request has a body; expected none" },
        { "DELETE", "/v1/cojobs/a", "", "done", 400,
          "/v1/cojobs/a: the request has a query; expected none" },
        { "DELETE", "/v1/cojobs/a/jobs/b", "", "lost", 400,
          "/outcome: \"lost\" is " },
        { "PUT", "/v1/cojobs/a/stages/1001", "{}", NULL, 400,
          "/rung: \"1001\" is " },
        { "PUT", "/v1/cojobs/a/stages/-1", "{}", NULL, 400,
          "/rung: \"-1\" is " },
        { "PUT", "/v1/cojobs/a", "{\"weight\": 0}", NULL, 400, "/weight: " },
        { "PUT", "/v1/cojobs/a/stages/0",
          "{\"jobs\": [\"b\"], \"iterations\": 9, \"eta\": 3}", NULL, 400,
          "/eta: " },
        { "PUT", "/v1/cojobs/a/stages/0", TRIALS(", \"method\": \"asha\""),
          NULL, 400, "/method: \"asha\" is " },
        { "PUT", "/v1/cojobs/a/stages/0", TRIALS(ONE_BY_ONE ", \"eta\": 1"),
          NULL, 400, "/eta: 1 is " },
        { "PUT", "/v1/cojobs/a/stages/0",
          TRIALS(ONE_BY_ONE ", \"trials\": \"best\""), NULL, 400,
          "/trials: \"best\" is " },
        { "PUT", "/v1/cojobs/a/stages/0",
          TRIALS(ONE_BY_ONE ", \"to_come\": -1"), NULL, 400,
          "/to_come: -1 is " },
        { "PUT", "/v1/cojobs/a/stages/0",
          "{\"jobs\": []" ONE_BY_ONE
          ", \"rungs\": [{\"iterations\": 5, \"keep\": 1}]}",
          NULL, 400, "/rungs/0/keep: " },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rest_request r = make_request(cases[i].method, cases[i].path,
                                             cases[i].body,
                                             cases[i].outcome);

        assert_error(rest_route(&r), cases[i].status, cases[i].error);
    }
}

UNIT_TEST(changes_are_prepared_for_the_database)
{
    static const struct {
        const char *method, *path, *body, *outcome;
        enum intent_kind kind;
    } cases[] = {
        { "PUT", "/v1/cojobs/a", "", NULL, INTENT_COJOB_BEGIN },
        { "DELETE", "/v1/cojobs/a", "", NULL, INTENT_COJOB_END },
        { "PUT", "/v1/cojobs/a/jobs/b",
          "{\"workers\": [{\"host\": "
          "\"h0\"}]}",
          NULL, INTENT_JOB_BEGIN },
        { "DELETE", "/v1/cojobs/a/jobs/b", "", NULL, INTENT_JOB_END },
        { "DELETE", "/v1/cojobs/a/jobs/b", "", "failed", INTENT_JOB_END },
        { "PUT", "/v1/cojobs/a/stages/7",
          "{\"jobs\": [\"b\"], \"rungs\": "
          "[{\"iterations\": 5, \"keep\": 1}, {\"iterations\": 75}]}",
          NULL, INTENT_STAGE_BEGIN },
        { "PUT", "/v1/cojobs/a/stages/7",
          TRIALS(ONE_BY_ONE ", \"to_come\": 5, \"trials\": \"promising\""),
          NULL, INTENT_STAGE_BEGIN },
        { "DELETE", "/v1/cojobs/a/stages/7", "", NULL, INTENT_STAGE_END },
    };

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct rest_request r = make_request(cases[i].method, cases[i].path,
                                             cases[i].body,
                                             cases[i].outcome);
        struct rest_reply reply = rest_route(&r);

        assert_int_equal(reply.status, 0);
        assert_int_equal(r.edit.kind, cases[i].kind);
        assert_string_equal(r.edit.cojob, "a");
        if (cases[i].kind == INTENT_STAGE_BEGIN) {
            assert_int_equal(r.edit.n_rungs, 2);
            assert_int_equal(r.edit.rungs[1].iterations, 75);
            assert_float_equal(r.edit.eta, r.edit.n ? 0 : 3, 0);
            assert_int_equal(r.edit.to_come, r.edit.n ? 0 : 5);
            assert_int_equal(r.edit.trials != NULL, !r.edit.n);
        }
        if (cases[i].kind == INTENT_JOB_END) {
            assert_string_equal(r.edit.outcome,
                                cases[i].outcome ? cases[i].outcome : "done");
        } else if (cases[i].kind >= INTENT_STAGE_BEGIN) {
            assert_int_equal(r.edit.rung, 7);
        }
        intent_edit_uninit(&r.edit);
    }
}

UNIT_TEST(the_index_lists_views_and_routes)
{
    struct rest_request r = make_request("GET", "/v1", "", NULL);
    struct rest_reply reply = rest_route(&r);
    char *text;

    assert_int_equal(reply.status, 200);
    text = json_to_string(reply.json, JSSF_SORT);
    assert_non_null(strstr(text, "{\"method\":\"GET\","
                                 "\"path\":\"/v1/status\"}"));
    assert_says(text, "{\"method\":\"POST\",\"path\":"
                      "\"/v1/cojobs/{cojob}/jobs/{job}/progress\"}");
    rest_reply_uninit(&reply);
}

UNIT_TEST(tls_needs_files)
{
    static const struct {
        const char *remote, *error;     /* NULL: allowed with TLS. */
        const char *error_without_tls;  /* NULL: the same. */
    } cases[] = {
        { "unix:/run/x", NULL, NULL },
        { "pssl:6644", NULL, "--rest: \"pssl:6644\" needs TLS, " },
        { "unix:", "--rest: \"unix:\" is no address to listen on; ", NULL },
        { "tcp:1", "--rest: \"tcp:1\" is no address to listen on; ", NULL },
    };
    struct rest_tls none = { .key = NULL };
    struct rest_tls tls = { "key", "certificate", "ca" };
    char *error;

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        for (int with_tls = 0; with_tls < 2; with_tls++) {
            const char *start = (!with_tls && cases[i].error_without_tls
                                 ? cases[i].error_without_tls
                                 : cases[i].error);

            error = rest_listen_check(cases[i].remote,
                                      with_tls ? &tls : &none);
            if (start) {
                assert_non_null(error);
                assert_memory_equal(error, start, strlen(start));
            } else {
                assert_null(error);
            }
            free(error);
        }
    }
}
