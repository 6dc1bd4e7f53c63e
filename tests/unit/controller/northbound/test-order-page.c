/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/northbound/dashboard/dashboard.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "reporting/ui-file.h"
#include "tests/unit/unit-test.h"
#include "util.h"

#define STATUS                                         \
    "{\"state\": \"active\", \"policy\": \"stage\", "  \
    "\"version\": 7, \"bound_s\": 10, \"gap\": 1.25, " \
    "\"bound_kind\": \"ports\"}"
#define HOSTS                                                                 \
    "{\"hosts\": ["                                                           \
    "{\"connected\": true, \"wanted\": 7, \"applied\": 7, \"coverage\": 1}, " \
    "{\"connected\": true, \"wanted\": 7, \"applied\": 6, \"lag_s\": 0.3, "   \
    "\"coverage\": 0.5},"                                                     \
    "{\"connected\": false, \"wanted\": 7, \"applied\": 7, \"coverage\": 0}]}"
#define ROW(RANK, COJOB, BOTTLENECK, DEMAND, REST)                            \
    "{\"rank\": " RANK ", \"cojob\": \"" COJOB "\", \"rung\": 2, "            \
    "\"level\": 0, \"weight\": 1, \"completion_s\": 120, "                    \
    "\"remaining_s\": 3, \"bottleneck\": \"" BOTTLENECK "\", "                \
    "\"demand\": {" DEMAND "}, \"jobs\": [\"a/t0\", \"a/t1\"]" REST "}"

static char *
page(const char *status, const char *order, const char *hosts)
{
    struct json *s = json_from_string(status);
    struct json *o = json_from_string(order);
    struct json *h = json_from_string(hosts);
    struct ds html = DS_EMPTY_INITIALIZER;

    dashboard_put_state(&html, s, o, h);
    json_destroy(s);
    json_destroy(o);
    json_destroy(h);
    return ds_steal_cstr(&html);
}

/* Checks that each argument, up to NULL, is in 'html', and frees it. */
static void
assert_has(char *html, ...)
{
    va_list args;
    const char *part;

    va_start(args, html);
    while ((part = va_arg(args, const char *)) != NULL) {
        if (!strstr(html, part)) {
            fail_msg("\"%s\" is not in %s", part, html);
        }
    }
    va_end(args);
    free(html);
}

UNIT_TEST(the_page_shows_the_state)
{
    assert_has(page(STATUS, "{\"order\": []}", HOSTS),
               "Stagecoach " STAGECOACH_VERSION ": stagecoach-controller on ",
               "<dt>Controller</dt><dd>active</dd>",
               "<dt>Hosts connected</dt><dd>2 of 3</dd>",
               "<dt>Slowest host behind the order</dt><dd>0.3 s</dd>",
               "<dt>Coverage</dt><dd>75.0 %</dd>",
               "<dt>Remaining transfers, without computing</dt>"
               "<dd>at most 25.0 % above any order (bound: ports)</dd>",
               "No stage is running.", NULL);
    assert_has(page("{\"bound_s\": 10, \"bound_strict_s\": 8, "
                    "\"estimate_s\": 12, \"gap\": 1.2}",
                    "{\"order\": []}", HOSTS),
               "<dt>Distance to the bound of these stages</dt>"
               "<dd>1.20 (fluid form), 1.50 (strict form)</dd>",
               NULL);
}

UNIT_TEST(what_is_unknown_is_not_shown_as_a_number)
{
    assert_has(page(STATUS,
                    "{\"order\": [{\"rank\": 0, \"cojob\": \"typo\","
                    " \"idle\": \"no-process\"}]}",
                    "{\"hosts\": [{\"connected\": true}]}"),
               "<dt>Coverage</dt><dd>unknown</dd>", "\">unknown</td>",
               "no process of its jobs has joined; ", NULL);
}

UNIT_TEST(the_page_shows_why_a_stage_has_its_rank)
{
    assert_has(page(STATUS, "{\"order\": ["
                    ROW("0", "a", "h0:tx", "\"h0:tx\": 3", "") ","
                    ROW("1", "b", "h1:tx", "\"h1:tx\": 3", "") ","
                    ROW("2", "c", "h0:tx", "\"h0:tx\": 90", "") ","
                    ROW("3", "d", "h0:tx", "\"h0:tx\": 3", "") ","
                    ROW("4", "e", "", "", "") "]}", HOSTS),
               "<th scope=\"row\">a/2</th>", "\">2 min</td>", "t0, t1</td>",
               "needs h0:tx most, for 3.0 s; no stage is before it there</td>",
               "needs h1:tx most, for 3.0 s; no stage is before it there</td>",
               "; 1 stage before it needs 3.0 s</td>",
               "; 2 stages before it need 93 s</td>",
               "its traffic has not been measured yet</td>", NULL);
}

/* Overrides and alarms. */
UNIT_TEST(the_page_shows_overrides_and_alarms)
{
    assert_has(
        page(
            "{\"state\": \"active\", \"observe\": true,"
            " \"alarms\": ["
            "{\"text\": \"no agent on h1\"},"
            " {\"text\": \"<x>\"}],"
            " \"predicted\": {\"order_mean_s\": 3,"
            " \"plain_mean_s\": 4}}",
            "{\"order\": [" ROW(
                "0", "a", "h0:tx", "\"h0:tx\": 3",
                ", \"override\": \"pin\"") "," ROW("1", "b", "h0:tx",
                                                   "\"h0:tx\": 3",
                                                   ", \"override\": \"none\"") "]}",
            HOSTS),
        "<dd>active, only observes</dd>",
        "<li>no agent on h1</li>\n<li>&lt;x&gt;</li>\n</ul>",
        "no Stagecoach</dt><dd>25 % less</dd>", ">override: pin; needs h0:tx",
        ">needs h0:tx", NULL);
}

UNIT_TEST(names_are_escaped)
{
    char *html = page("{\"policy\": \"<b>&'\\\"\"}", "{\"order\": ["
                      ROW("0", "<script>", "<i>", "", "") "]}", "{}");

    assert_null(strstr(html, "<script>"));
    assert_null(strstr(html, "<b>"));
    assert_null(strstr(html, "<i>"));
    assert_has(html, "&lt;b&gt;&amp;&#39;&quot;", "&lt;script&gt;/2",
               "needs &lt;i&gt; most", NULL);
}

/* Another version of a view may lack members. */
UNIT_TEST(missing_members_leave_cells_empty)
{
    assert_has(page("{}", "{}", "{}"), "0 of 0", "No stage is running.", NULL);
    assert_has(page("{\"gap\": \"x\", \"state\": 3}",
                    "{\"order\": [{}, 3, {\"jobs\": [1, \"x\"]}]}",
                    "{\"hosts\": [{}]}"),
               "0 of 1", "its traffic has not been measured yet", NULL);
}

UNIT_TEST(rows_above_the_limit_are_counted)
{
    struct ds order = DS_EMPTY_INITIALIZER;

    ds_put_cstr(&order, "{\"order\": [");
    for (int i = 0; i < 250; i++) {
        ds_put_format(&order, "%s%s", i ? "," : "",
                      ROW("0", "a", "h0:tx", "\"h0:tx\": 0.5", ""));
    }
    ds_put_cstr(&order, "]}");
    assert_has(page(STATUS, ds_cstr(&order), HOSTS),
               "; 199 stages before it need 2 min</td>", ">And 50 more.</td>",
               NULL);
    ds_destroy(&order);
}

UNIT_TEST(the_dashboard_has_its_files)
{
    assert_true(dashboard_owns("/"));
    assert_true(dashboard_owns("/ui/now.html"));
    assert_true(dashboard_owns("/ui/main.js"));
    assert_true(dashboard_owns("/ui/uplot/uPlot.min.css"));
    assert_false(dashboard_owns("/ui/index.html"));
    assert_false(dashboard_owns("/ui/"));
    assert_false(dashboard_owns("/ui/uplot/LICENSE"));
    assert_false(dashboard_owns("/v1/order"));
    for (size_t i = 0; i < n_dashboard_files; i++) {
        assert_true(dashboard_files[i].n > 0);
        assert_int_equal(dashboard_files[i].tag[0], '"');
    }
}
