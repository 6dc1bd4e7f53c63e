/* SPDX-License-Identifier: Apache-2.0 */

#include "policies/policy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json-check.h"
#include "policies/policy-members.h"

#define MAX_DSCP 63

const char *const policy_folds[] = { "neighbours", "truncate", NULL };

static const uint8_t default_levels[POLICY_MAX_LEVELS] = {
    48, 40, 32, 24, 16, 8,      /* CS6 to CS1. */
};

static void *
must(void *p)
{
    if (!p) {
        fputs("out of memory\n", stderr);
        abort();
    }
    return p;
}

/* FNV-1a, 64 bits: tells one text from another, protects nothing. */
static uint64_t
hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (; *text; text++) {
        hash = (hash ^ (unsigned char) *text) * 0x100000001b3;
    }
    return hash;
}

/* A DSCP value and where it stands. */
struct dscp {
    int value;
    char name[24];              /* In "levels": "control_dscp", "dscp/2". */
    const struct json_at *place;        /* NULL if it is a default. */
    const char *member;         /* Of 'place'; NULL for the place itself. */
};

static struct dscp
dscp_member(const struct json_at *levels, const char *member, int value)
{
    struct dscp dscp = {
        .value = value,
        .place = json_has(levels, member) ? levels : NULL,
        .member = member,
    };

    snprintf(dscp.name, sizeof dscp.name, "%s", member);
    return dscp;
}

/* 'place' is the level's element, NULL for a default. */
static struct dscp
dscp_level(const struct json_at *place, int level, int value)
{
    struct dscp dscp = { .value = value, .place = place };

    snprintf(dscp.name, sizeof dscp.name, "dscp/%d", level);
    return dscp;
}

/* Fails if a switch would not put 'low' behind 'high'.  The place of the
 * message is one that stands in the text. */
static void
check_falls(const struct dscp *high, const struct dscp *low)
{
    const struct dscp *at = low->place ? low : high;
    const struct dscp *other = at == low ? high : low;

    if (low->value >= high->value) {
        json_fail(at->place, at->member, "%d is not %s %d of /levels/%s",
                  at->value, at == low ? "below" : "above", other->value,
                  other->name);
    } else if (low->value >> 3 == high->value >> 3) {
        json_fail(at->place, at->member,
                  "%d has the same first three bits as %d of /levels/%s, a "
                  "switch could not tell them apart",
                  at->value, other->value, other->name);
    }
}

/* Checks the rules between the members of "levels". */
static void
check_levels(const struct json_at *levels, const struct json_at *array,
             const struct policy *policy)
{
    struct dscp high, low;

    high = dscp_member(levels, "control_dscp", policy->control_dscp);
    for (int i = 0; i < policy->n_levels; i++) {
        low = dscp_level(json_element(array, i), i, policy->dscp[i]);
        check_falls(&high, &low);
        high = low;
    }
    low = dscp_member(levels, "default_dscp", policy->default_dscp);
    check_falls(&high, &low);
}

/* Reads "levels", which may be null or lack members. */
static void
read_levels(const struct json_check *jc, const struct json_at *levels,
            struct policy *policy)
{
    size_t n_errors = json_n_errors(jc);
    const struct json_at *array;

    policy->control_dscp = json_integer_or(levels, "control_dscp",
                                           0, MAX_DSCP, 56);
    policy->default_dscp = json_integer_or(levels, "default_dscp",
                                           0, MAX_DSCP, 0);
    array = json_array_or_null(levels, "dscp", 1, POLICY_MAX_LEVELS);
    policy->n_levels = array ? json_n(array) : POLICY_MAX_LEVELS;
    for (int i = 0; i < policy->n_levels; i++) {
        policy->dscp[i] = array
            ? json_at_integer(json_element(array, i), 0, MAX_DSCP)
            : default_levels[i];
    }
    if (json_n_errors(jc) == n_errors) {
        check_levels(levels, array, policy);
    }
    policy->order.n_levels = policy->n_levels;
    policy->order.truncate = json_enum_or(levels, "fold", policy_folds, 0);
}

static void
read_factors(const struct json_at *weights, const char *member,
             struct policy_factors *f)
{
    const struct json_at *map = json_object_or_null(weights, member);
    size_t n = json_n(map);

    if (n > POLICY_MAX_FACTORS) {
        json_fail(weights, member, "%zu members, at most %d are allowed",
                  n, POLICY_MAX_FACTORS);
        n = 0;
    }
    f->factors = must(calloc(n ? n : 1, sizeof *f->factors));
    for (; f->n < n; f->n++) {
        const char *name = "";
        const struct json_at *at = json_member(map, f->n, &name);

        f->factors[f->n].factor = json_at_number(at, 0.001, 1000);
        f->factors[f->n].name = must(strdup(name));
    }
}

/* Reads "weights", which may be null. */
static void
read_weights(const struct json_at *weights, bool has_aging,
             struct policy *policy)
{
    const struct policy_member *aging = policy_member_find(NULL, "aging_s");

    read_factors(weights, "users", &policy->users);
    read_factors(weights, "cojobs", &policy->cojobs);
    policy->aging_s = json_number_or(weights, "age_s", aging->min, aging->max,
                                     policy->aging_s);
    if (has_aging && json_has(weights, "age_s")) {
        json_fail(weights, "age_s", "is the same as /aging_s, only one of "
                  "them is allowed");
    }
}

/* Reads the numbers that are there; the others keep what they have. */
static void
read_members(const struct json_at *top, struct policy *policy)
{
    const struct json_at *place = top;
    const char *section = NULL;

    for (size_t i = 0; i < POLICY_N_MEMBERS; i++) {
        const struct policy_member *m = &policy_members[i];

        if (m->section && (!section || strcmp(m->section, section))) {
            section = m->section;
            place = json_object_or_null(top, section);
        }
        if (json_has(place, m->name)) {
            policy_member_set(
                m, policy, m->type == POLICY_DOUBLE
                ? json_number(place, m->name, m->min, m->max)
                : json_integer(place, m->name, m->min, m->max));
        }
    }
}

/* Reads all of 'policy'; 'jc' has the errors. */
static void
read_policy(struct json_check *jc, struct policy *policy)
{
    const struct json_at *top = json_check_top(jc);

    *policy = (struct policy) {
        .lease_ms = 10000, .coalesce_ms = 20, .retag_ms = 100,
        .aging_slowdown = 4.5, .hysteresis = 0.02, .guard_share = 0.02,
        .congestion_gamma = 0.97, .congestion_beta = 0.3,
        .congestion_floor = 0.02,
        .early_samples = 4, .early_boot_s = 300, .early_period_s = 5,
    };
    free(json_string_or(top, "$schema", NULL));
    policy->name = json_name(top, "name");
    policy->description = json_string_or(top, "description", "");
    policy->order = (struct order_options) ORDER_OPTIONS_INIT(
        json_enum(top, "order", order_names));
    read_levels(jc, json_object_or_null(top, "levels"), policy);
    read_members(top, policy);
    read_weights(json_object_or_null(top, "weights"),
                 json_has(top, "aging_s"), policy);
}

char *
policy_from_string(const char *name, const char *text,
                   struct policy **policyp)
{
    struct policy *policy = must(calloc(1, sizeof *policy));
    struct json_check *jc = json_check_open(name, text);
    char *error;

    read_policy(jc, policy);
    policy->text = must(strdup(text));
    snprintf(policy->hash, sizeof policy->hash, "%016"PRIx64,
             hash_text(text));
    error = json_check_close(jc);
    if (error) {
        policy_destroy(policy);
        policy = NULL;
    }
    *policyp = policy;
    return error;
}

char *
policy_errors(const char *name, const char *text)
{
    struct policy *policy = must(calloc(1, sizeof *policy));
    struct json_check *jc = json_check_open(name, text);

    read_policy(jc, policy);
    policy_destroy(policy);
    return json_check_close_all(jc);
}

char *
policy_from_file(const char *file, struct policy **policyp)
{
    char *text, *error;

    *policyp = NULL;
    error = json_read_file(file, &text);
    if (!error) {
        error = policy_from_string(file, text, policyp);
        free(text);
    }
    return error;
}

static void
factors_uninit(struct policy_factors *f)
{
    for (size_t i = 0; i < f->n; i++) {
        free(f->factors[i].name);
    }
    free(f->factors);
}

void
policy_destroy(struct policy *policy)
{
    if (policy) {
        free(policy->name);
        free(policy->description);
        free(policy->text);
        factors_uninit(&policy->users);
        factors_uninit(&policy->cojobs);
        free(policy);
    }
}

static double
factor_of(const struct policy_factors *f, const char *name)
{
    for (size_t i = 0; name && i < f->n; i++) {
        if (!strcmp(f->factors[i].name, name)) {
            return f->factors[i].factor;
        }
    }
    return 1;
}

double
policy_weight(const struct policy *policy, const char *user,
              const char *cojob)
{
    return factor_of(&policy->users, user) * factor_of(&policy->cojobs, cojob);
}
