/* SPDX-License-Identifier: Apache-2.0 */

#include "policies/policy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policies/json-check.h"

#define MAX_DSCP 63

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

/* Reads "levels", which may be null or lack members. */
static void
read_levels(const struct json_at *levels, struct policy *policy)
{
    const struct json_at *array;
    struct dscp high, low;

    policy->control_dscp = json_integer_or(levels, "control_dscp",
                                           0, MAX_DSCP, 56);
    policy->default_dscp = json_integer_or(levels, "default_dscp",
                                           0, MAX_DSCP, 0);
    array = json_array_or_null(levels, "dscp", 1, POLICY_MAX_LEVELS);
    policy->n_levels = array ? json_n(array) : POLICY_MAX_LEVELS;

    high = dscp_member(levels, "control_dscp", policy->control_dscp);
    for (int i = 0; i < policy->n_levels; i++) {
        const struct json_at *place = json_element(array, i);

        policy->dscp[i] = place ? json_at_integer(place, 0, MAX_DSCP)
            : default_levels[i];
        low = dscp_level(place, i, policy->dscp[i]);
        check_falls(&high, &low);
        high = low;
    }
    low = dscp_member(levels, "default_dscp", policy->default_dscp);
    check_falls(&high, &low);
}

char *
policy_from_string(const char *name, const char *text,
                   struct policy **policyp)
{
    struct policy *policy = must(calloc(1, sizeof *policy));
    struct json_check *jc = json_check_open(name, text);
    const struct json_at *top = json_check_top(jc);
    char *error;

    policy->text = must(strdup(text));
    snprintf(policy->hash, sizeof policy->hash, "%016"PRIx64,
             hash_text(text));

    free(json_string_or(top, "$schema", NULL));
    policy->name = json_name(top, "name");
    policy->description = json_string_or(top, "description", "");
    policy->order = (struct order_options) ORDER_OPTIONS_INIT(
        json_enum(top, "order", order_names));
    read_levels(json_object_or_null(top, "levels"), policy);
    policy->order.n_levels = policy->n_levels;
    policy->lease_ms = json_integer_or(top, "lease_ms", 100, 600000, 10000);
    policy->coalesce_ms = json_integer_or(top, "coalesce_ms", 10, 50, 20);
    policy->retag_ms = json_integer_or(top, "retag_ms", 0, 60000, 100);
    policy->aging_s = json_number_or(top, "aging_s", 0, 1e6, 600);

    error = json_check_close(jc);
    if (error) {
        policy_destroy(policy);
        policy = NULL;
    }
    *policyp = policy;
    return error;
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

void
policy_destroy(struct policy *policy)
{
    if (policy) {
        free(policy->name);
        free(policy->description);
        free(policy->text);
        free(policy);
    }
}
