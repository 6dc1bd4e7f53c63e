/* SPDX-License-Identifier: Apache-2.0 */

#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/policy.h"
#include "tests/unit/unit-test.h"

/* A policy of order "stage" with more members or with "levels" of MEMBERS. */
#define WITH(MEMBERS) "{\"name\": \"p\", \"order\": \"stage\", " MEMBERS "}"
#define LEVELS(MEMBERS) WITH("\"levels\": {" MEMBERS "}")

#define ORDERS                                                         \
    "\"fair\", \"plain\", \"mltcp\", \"stage\", \"early\", \"maif\", " \
    "\"stage+early\", \"fifo\", \"fifo-lm\", \"grouper\", "            \
    "\"sincronia\", \"sebf-static\", \"sebf\", \"dclas\", \"las\", "   \
    "\"tcf\", \"work\", \"intensity\""

/* Each row is one mistake that an operator can make and the words they get. */
static const struct {
    const char *text;
    const char *error;
} mistakes[] = {
    { "{\"name\": \"p\",\n\"order\": stage}",
      "p.json:2: not valid JSON near \"stage}\"" },
    { "[]", "p.json: /: [] is not an object" },
    { "{\"order\": \"fair\"}", "p.json: /name: required member is missing" },
    { "{\"name\": \"two words\", \"order\": \"fair\"}",
      "p.json: /name: \"two words\" is not a name of 1 to 253 letters, digits, "
      "'.', '_' and '-' that begins with a letter, a digit or '_'" },
    { "{\"name\": \"p\"}", "p.json: /order: required member is missing" },
    { "{\"name\": \"p\", \"order\": \"sjf\"}",
      "p.json: /order: \"sjf\" is not one of " ORDERS },
    { "{\"name\": \"p\", \"order\": 1}",
      "p.json: /order: 1 is not one of " ORDERS },
    { "{\"name\": \"p\", \"order\": \"fair\", \"order\": \"stage\"}",
      "p.json: /order: stands here twice" },
    { WITH("\"describtion\": \"\""),
      "p.json: /describtion: unknown member, did you mean "
      "\"description\"" },
    { WITH("\"description\": 3"), "p.json: /description: 3 is not a string" },
    { WITH("\"lease_ms\": 2999"),
      "p.json: /lease_ms: 2999 is not an integer from 3000 to 600000" },
    { WITH("\"coalesce_ms\": 51"),
      "p.json: /coalesce_ms: 51 is not an integer from 10 to 50" },
    { WITH("\"coalesce_ms\": 10.5"),
      "p.json: /coalesce_ms: 10.5 is not an integer from 10 to 50" },
    { WITH("\"retag_ms\": \"100\""),
      "p.json: /retag_ms: \"100\" is not an integer from 0 to 60000" },
    { WITH("\"aging_s\": -1"),
      "p.json: /aging_s: -1 is not a number from 0 to 1e+06" },
    { WITH("\"aging_s\": null"),
      "p.json: /aging_s: null is not a number from 0 to 1e+06" },
    { WITH("\"levels\": 4"), "p.json: /levels: 4 is not an object" },
    { LEVELS("\"queues\": 4"), "p.json: /levels/queues: unknown member" },
    { LEVELS("\"dscp\": []"),
      "p.json: /levels/dscp: 0 elements; expected 1 to 6" },
    { LEVELS("\"dscp\": [55,48,40,32,24,16,8]"),
      "p.json: /levels/dscp: 7 elements; expected 1 to 6" },
    { LEVELS("\"dscp\": [40, 64]"),
      "p.json: /levels/dscp/1: 64 is not an integer from 0 to 63" },
    { LEVELS("\"default_dscp\": -1"),
      "p.json: /levels/default_dscp: -1 is not an integer from 0 to 63" },
    { LEVELS("\"control_dscp\": true"),
      "p.json: /levels/control_dscp: true is not an integer from 1 to 63" },
    { LEVELS("\"control_dscp\": 0, \"default_dscp\": 1"),
      "p.json: /levels/control_dscp: 0 is not an integer from 1 to 63" },
    { LEVELS("\"dscp\": [40, 24, 24]"),
      "p.json: /levels: dscp/1 and dscp/2 are both 24; expected a different "
      "DSCP for each level" },
    { LEVELS("\"dscp\": [39]"),
      "p.json: /levels: control_dscp and dscp/0 are both 39; expected a "
      "different DSCP for each level" },
    { LEVELS("\"default_dscp\": 7"),
      "p.json: /levels: dscp/5 and default_dscp are both 7; expected a "
      "different DSCP for each level" },
    { LEVELS("\"fold\": \"all\""),
      "p.json: /levels/fold: \"all\" is not one of \"neighbours\", "
      "\"truncate\"" },
    { WITH("\"weights\": {\"users\": {\"ann\": 0}}"),
      "p.json: /weights/users/ann: 0 is not a number from 0.001 to 1000" },
    { WITH("\"weights\": {\"limit\": 0.5, \"total\": 10}"),
      "p.json: /weights/limit: 0.5 is not a number from 1 to 1000" },
    { WITH("\"weights\": {\"cojobs\": {\"-\": 1}}"),
      "p.json: /weights/cojobs/-: its name is not a name of 1 to 253 letters, "
      "digits, '.', '_' and '-' that begins with a letter, a digit or '_'" },
    { WITH("\"min_shares\": 0.02"),
      "p.json: /min_shares: unknown member, did you mean \"min_share\"" },
    { WITH("\"refresh_ms\": 20, \"coalesce_ms\": 21"),
      "p.json: /refresh_ms: 20 ms between two orders are less than the 21 ms "
      "of /coalesce_ms within which events make one" },
    { WITH("\"early\": {\"theta\": 2}"),
      "p.json: /early/theta: 2 is not a number from 0.1 to 1" },
    { WITH("\"early\": {\"Theta\": 1}"),
      "p.json: /early/Theta: unknown member, did you mean \"theta\"" },
    { WITH("\"dclas\": {\"queues\": 1.5}"),
      "p.json: /dclas/queues: 1.5 is not an integer from 1 to 64" },
    { WITH("\"lookahead\": {\"runs\": -1}"),
      "p.json: /lookahead/runs: -1 is not an integer from 0 to 100000" },
    { WITH("\"improve\": []"), "p.json: /improve: [] is not an object" },
};

/* Members without effect, by order. */
static const struct {
    const char *text, *warnings;
} ineffective[] = {
    { "{\"name\": \"a\", \"order\": \"stage\","
      " \"objective\": {\"latest\": 2}, \"aging_s\": 9}",
      NULL },
    { "{\"name\": \"a\", \"order\": \"stage\","
      " \"improve\": {\"moves\": 1}, \"dclas\": {\"queues\": 2}}",
      "p.json: /improve/moves: warning, no effect where jobs iterate: serves "
      "traces of coflows only\n"
      "p.json: /dclas/queues: warning, no effect under the order \"stage\"" },
    { "{\"name\": \"a\", \"order\": \"work\","
      " \"lookahead\": {\"runs\": 60}}",
      "p.json: /lookahead/runs: warning, no effect under the order \"work\"" },
    { "{\"name\": \"a\", \"order\": \"fair\", \"refresh_ms\": 300,"
      " \"weights\": {\"users\": {\"ann\": 2}}}",
      "p.json: /refresh_ms: warning, no effect under the order \"fair\"\n"
      "p.json: /weights: warning, no effect under the order \"fair\"" },
    { "{\"name\": \"a\", \"order\": \"maif\","
      " \"early\": {\"boost\": 1, \"theta\": 0.5}}",
      "p.json: /early/boost: warning, no effect under the order \"maif\"" },
};

UNIT_TEST(warns_of_members_without_effect)
{
    for (size_t i = 0; i < N_ELEMENTS(ineffective); i++) {
        struct policy *policy;
        char *warnings;

        assert_null(
            policy_from_string("p.json", ineffective[i].text, &policy));
        warnings = policy_warnings("p.json", policy);
        if (ineffective[i].warnings) {
            assert_non_null(warnings);
            assert_string_equal(warnings, ineffective[i].warnings);
        } else {
            assert_null(warnings);
        }
        free(warnings);
        policy_destroy(policy);
    }
}

UNIT_TEST(warns_of_the_dscps_of_other_traffic)
{
    struct policy *policy;
    char *warnings;

    assert_null(policy_from_string("p.json", LEVELS("\"fold\": \"truncate\""),
                                   &policy));
    assert_null(policy_warnings("p.json", policy));
    policy_destroy(policy);
    assert_null(policy_from_string(
        "p.json",
        LEVELS("\"dscp\": [48, 46, 45, 26], \"control_dscp\": 56,"
               "\"default_dscp\": 23"),
        &policy));
    warnings = policy_warnings("p.json", policy);
    assert_string_equal(
        warnings,
        "p.json: /levels/control_dscp: warning, 56 is the DSCP of routing and "
        "network control (CS6, CS7); expected another one, such as 35\n"
        "p.json: /levels/dscp/0: warning, 48 is the DSCP of routing protocols "
        "(CS6), and of RoCE's congestion notifications by usual settings; "
        "expected another one, such as 35\n"
        "p.json: /levels/dscp/1: warning, 46 is the DSCP of voice (EF); "
        "expected another one, such as 35\n"
        "p.json: /levels/dscp/3: warning, 26 is the DSCP of RoCE by usual "
        "settings; expected another one, such as 35");
    free(warnings);
    policy_destroy(policy);
}

UNIT_TEST(names_the_member_at_fault)
{
    for (size_t i = 0; i < N_ELEMENTS(mistakes); i++) {
        struct policy *policy;
        char *error = policy_from_string("p.json", mistakes[i].text, &policy);

        assert_is(error, mistakes[i].error);
        assert_null(policy);
    }
}

static struct policy *
read_policy(const char *text)
{
    struct policy *policy;

    assert_no_error(policy_from_string("p.json", text, &policy));
    return policy;
}

UNIT_TEST(has_defaults_for_all_but_name_and_order)
{
    static const uint8_t dscp[] = { 35, 23, 19, 15, 11, 7 };
    struct order_options options = ORDER_OPTIONS_INIT(ORDER_FAIR);
    struct policy *policy = read_policy("{\"name\": \"p\","
                                        " \"order\": \"fair\"}");

    assert_string_equal(policy->name, "p");
    assert_string_equal(policy->description, "");
    assert_int_equal(policy->order.kind, ORDER_FAIR);
    assert_int_equal(policy->n_levels, 6);
    assert_memory_equal(policy->dscp, dscp, sizeof dscp);
    assert_int_equal(policy->default_dscp, 0);
    assert_int_equal(policy->control_dscp, 39);
    assert_int_equal(policy->lease_ms, 10000);
    assert_int_equal(policy->coalesce_ms, 20);
    assert_int_equal(policy->retag_ms, 100);
    assert_true(policy->aging_s == 0);
    assert_true(policy->aging_slowdown == 4.5);
    assert_true(policy->min_share == 0.02);
    assert_int_equal(policy->early_samples, 4);
    assert_true(policy->early_boot_s == 300);
    assert_true(policy->early_period_s == 5);
    assert_memory_equal(&policy->order, &options, sizeof options);
    assert_true(policy_weight(policy, "ann", "asha") == 1);
    policy_destroy(policy);
}

UNIT_TEST(reads_every_member)
{
    const char *text =
        "{\"$schema\": \"s\", \"name\": \"p.1\", \"description\": \"d\","
        " \"order\": \"stage\", \"levels\": {\"dscp\": [46, 26],"
        " \"default_dscp\": 10, \"control_dscp\": 63}, \"lease_ms\": 3000,"
        " \"coalesce_ms\": 50, \"retag_ms\": 0, \"aging_s\": 0.5}";
    struct policy *policy = read_policy(text);

    assert_string_equal(policy->name, "p.1");
    assert_string_equal(policy->description, "d");
    assert_string_equal(policy->text, text);
    assert_int_equal(policy->order.kind, ORDER_STAGE);
    assert_int_equal(policy->n_levels, 2);
    assert_int_equal(policy->dscp[0], 46);
    assert_int_equal(policy->dscp[1], 26);
    assert_int_equal(policy->default_dscp, 10);
    assert_int_equal(policy->control_dscp, 63);
    assert_int_equal(policy->lease_ms, 3000);
    assert_int_equal(policy->coalesce_ms, 50);
    assert_int_equal(policy->retag_ms, 0);
    assert_true(policy->aging_s == 0.5);
    policy_destroy(policy);
}

/* Each number goes where it belongs, in the unit that is kept there. */
UNIT_TEST(reads_the_numbers_of_orders)
{
    struct policy *policy = read_policy(WITH(
        "\"aging_slowdown\": 20,"
        "\"min_share\": 0.125,"
        "\"refresh_ms\": 250, \"slack_share\": 0.5,"
        "\"levels\": {\"fold\": \"truncate\"},"
        "\"congestion\": {\"gamma\": 0.75, \"beta\": 0.5, \"floor\": 0.25},"
        "\"early\": {\"theta\": 0.5, \"samples\": 7, \"boot_s\": 8,"
        " \"period_s\": 9, \"boost\": 10},"
        "\"improve\": {\"moves\": 11, \"budget_ms\": 500},"
        "\"sincronia\": {\"epoch_ms\": 250},"
        "\"fifo_lm\": {\"heavy_mb\": 12},"
        "\"dclas\": {\"first_mb\": 13, \"factor\": 14, \"queues\": 15}"));

    assert_true(policy->aging_slowdown == 20);
    assert_true(policy->min_share == 0.125);
    assert_int_equal(policy->refresh_ms, 250);
    assert_true(policy->order.slack_share == 0.5);
    assert_true(policy->congestion_gamma == 0.75);
    assert_true(policy->congestion_beta == 0.5);
    assert_true(policy->congestion_floor == 0.25);
    assert_true(policy->order.truncate);
    assert_true(policy->order.early_theta == 0.5);
    assert_int_equal(policy->early_samples, 7);
    assert_true(policy->early_boot_s == 8);
    assert_true(policy->early_period_s == 9);
    assert_true(policy->order.early_boost == 10);
    assert_int_equal(policy->order.improve_moves, 11);
    assert_true(policy->order.improve_s == 0.5);
    assert_true(policy->order.epoch_s == 0.25);
    assert_true(policy->order.heavy_bytes == 12e6);
    assert_true(policy->order.first_bytes == 13e6);
    assert_true(policy->order.factor == 14);
    assert_int_equal(policy->order.n_queues, 15);
    policy_destroy(policy);
}

UNIT_TEST(multiplies_weights)
{
    struct policy *policy = read_policy(
        WITH("\"weights\": {\"users\": {\"ann\": 2, \"bob\": 0.5},"
             " \"cojobs\": {\"asha\": 3, \"ann\": 7}, \"limit\": 2},"
             " \"aging_s\": 60"));

    assert_true(policy_weight(policy, "ann", "asha") == 6);
    assert_true(policy_weight(policy, "bob", "pbt") == 0.5);
    assert_true(policy_weight(policy, "eve", "pbt") == 1);
    assert_true(policy_weight(policy, NULL, "asha") == 3);
    assert_true(policy_weight(policy, NULL, "ann") == 7);
    assert_true(policy->weight_limit == 2 && policy->weight_total == 10);
    assert_true(policy->aging_s == 60);
    policy_destroy(policy);
}

UNIT_TEST(gets_and_sets_numbers)
{
    struct policy *policy = read_policy(WITH("\"retag_ms\": 3"));

    for (size_t i = 0; i < POLICY_N_MEMBERS; i++) {
        const struct policy_member *m = &policy_members[i];

        policy_member_set(m, policy, m->max);
        assert_true(policy_member_get(m, policy) == m->max);
        policy_member_set(m, policy, m->min);
        assert_true(policy_member_get(m, policy) == m->min);
    }
    assert_true(policy->order.epoch_s == 0);
    policy_destroy(policy);
}

UNIT_TEST(tells_all_errors)
{
    char *errors = policy_errors("p.json", "{\"name\": \"p\", \"x\": 1,"
                                 " \"levels\": {\"dscp\": [64, 8]}}");

    assert_is(errors, "p.json: /order: required member is missing\n"
                      "p.json: /levels/dscp/0: 64 is not an integer from 0 "
                      "to 63\n"
                      "p.json: /x: unknown member");
    assert_null(policy_errors("p.json", WITH("\"retag_ms\": 1")));
}

static void
assert_row(const struct policy_rows *rows, const char *member,
           const char *value, bool given)
{
    size_t i = 0;

    while (strcmp(rows->rows[i].member, member)) {
        assert_true(++i < rows->n);
    }
    assert_string_equal(rows->rows[i].value, value);
    assert_int_equal(rows->rows[i].given, given);
}

UNIT_TEST(lists_what_is_in_force)
{
    struct policy *policy = read_policy(
        WITH("\"weights\": {\"cojobs\": {\"asha\": 2}}, \"aging_s\": 60,"
             "\"levels\": {\"dscp\": [40, 24]}, \"improve\": {\"moves\": 7},"
             "\"min_share\": 0.02"));
    struct policy_rows rows;

    policy_rows_init(&rows, policy);
    assert_row(&rows, "/order", "\"stage\"", true);
    assert_row(&rows, "/weights/cojobs/asha", "2", true);
    assert_row(&rows, "/aging_s", "60", true);
    assert_row(&rows, "/levels/dscp", "[40,24]", true);
    assert_row(&rows, "/levels/fold", "\"neighbours\"", false);
    assert_row(&rows, "/improve/moves", "7", true);
    assert_row(&rows, "/improve/budget_ms", "5", false);
    assert_row(&rows, "/min_share", "0.02", true);
    assert_row(&rows, "/dclas/first_mb", "10.48576", false);
    policy_rows_uninit(&rows);
    policy_destroy(policy);
}

UNIT_TEST(hashes_the_text)
{
    struct policy *a = read_policy(WITH("\"retag_ms\": 1"));
    struct policy *b = read_policy(WITH("\"retag_ms\": 2"));
    struct policy *c = read_policy(WITH("\"retag_ms\": 1"));

    assert_int_equal(strlen(a->hash), 16);
    assert_int_equal(strspn(a->hash, "0123456789abcdef"), 16);
    assert_string_not_equal(a->hash, b->hash);
    assert_string_equal(a->hash, c->hash);
    policy_destroy(a);
    policy_destroy(b);
    policy_destroy(c);
    policy_destroy(NULL);
}

/* There is one for each order, with the order's name as its name and file. */
UNIT_TEST(accepts_the_policies_that_are_shipped)
{
    bool seen[ORDER_N_KINDS] = { false };
    glob_t files;

    assert_int_equal(glob("policies/*.json", 0, NULL, &files), 0);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        const char *file = files.gl_pathv[i];
        struct policy *policy;
        char expected[64];

        if (strstr(file, ".schema.json")) {
            continue;
        }
        assert_no_error(policy_from_file(file, &policy));
        snprintf(expected, sizeof expected, "policies/%s.json", policy->name);
        assert_string_equal(file, expected);
        seen[policy->order.kind] = true;
        for (char *s = strcpy(expected, order_names[policy->order.kind]); *s;
             s++) {
            *s = *s == '+' ? '-' : *s;
        }
        assert_string_equal(policy->name, expected);
        policy_destroy(policy);
    }
    globfree(&files);
    for (int i = 0; i < ORDER_N_KINDS; i++) {
        assert_true(seen[i]);
    }
}

UNIT_TEST(says_which_file_it_cannot_read)
{
    struct policy *policy;
    char *error = policy_from_file("policies/no-such.json", &policy);

    assert_is(error, "policies/no-such.json: No such file or directory");
    assert_null(policy);
}
