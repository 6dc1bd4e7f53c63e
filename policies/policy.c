/* SPDX-License-Identifier: Apache-2.0 */

#include "policies/policy.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/json-check.h"
#include "base/memory.h"
#include "wire/shim-protocol.h"

#define MAX_DSCP 63

const char *const policy_folds[] = { "neighbours", "truncate", NULL };

const char *const policy_trials[] = { "neutral", "promising", NULL };

const char *const policy_trusts[] = { "registered", "environment", NULL };

static const uint8_t default_dscps[SHIM_N_LEVELS] = SHIM_LEVEL_DSCPS;

/* Functions that return whether an order reads a member; NULL is all. */

static bool
is_sincronia(enum order_kind kind)
{
    return kind == ORDER_SINCRONIA;
}

static bool
is_fifo_lm(enum order_kind kind)
{
    return kind == ORDER_FIFO_LM;
}

static bool
is_dclas(enum order_kind kind)
{
    return kind == ORDER_DCLAS;
}

static bool
is_stage_early(enum order_kind kind)
{
    return kind == ORDER_STAGE_EARLY;
}

static bool
has_iterations(enum order_kind kind)
{
    return order_classes[kind].iterating == ORDER_UNIT_ITERATION;
}

static bool
has_slack(enum order_kind kind)
{
    return (order_classes[kind].unit == ORDER_UNIT_STAGE
            && !order_is_equal(kind) && !order_is_whole(kind));
}

static bool
has_weights(enum order_kind kind)
{
    return order_classes[kind].certified || kind == ORDER_WORK;
}

#define ROW(SECTION, NAME, TYPE, MEMBER, SCALE, MIN, MAX, READ)               \
    {                                                                         \
        SECTION, NAME, POLICY_##TYPE, offsetof(struct policy, MEMBER), SCALE, \
            MIN, MAX, READ                                                    \
    }

const struct policy_member policy_members[POLICY_N_MEMBERS] = {
    ROW(NULL, "lease_ms", INT64, lease_ms, 1, 3000, 600000, NULL),
    ROW(NULL, "coalesce_ms", INT64, coalesce_ms, 1, 10, 50, NULL),
    ROW(NULL, "retag_ms", INT64, retag_ms, 1, 0, 60000, NULL),
    ROW(NULL, "refresh_ms", INT64, refresh_ms, 1, 20, 60000, has_iterations),
    ROW(NULL, "aging_s", DOUBLE, aging_s, 1, 0, 1e6, has_weights),
    ROW(NULL, "aging_slowdown", DOUBLE, aging_slowdown, 1, 0, 1e6,
        has_weights),
    ROW(NULL, "min_share", DOUBLE, min_share, 1, 0, 0.2, NULL),
    ROW(NULL, "slack_share", DOUBLE, order.slack_share, 1, 0, 1, has_slack),
    ROW("objective", "latest", DOUBLE, objective_latest, 1, 0, 1e6,
        has_iterations),
    ROW("owners", "memory_s", DOUBLE, owner_memory_s, 1, 0, 86400,
        has_iterations),
    ROW("lookahead", "core_share", DOUBLE, lookahead_core_share, 1, 0, 1,
        order_looks_ahead),
    ROW("lookahead", "runs", INT, lookahead_runs, 1, 0, 1e5,
        order_looks_ahead),
    ROW("congestion", "gamma", DOUBLE, congestion_gamma, 1, 0.5, 1, NULL),
    ROW("congestion", "beta", DOUBLE, congestion_beta, 1, 0, 1, NULL),
    ROW("congestion", "floor", DOUBLE, congestion_floor, 1, 0, 0.5, NULL),
    ROW("early", "theta", DOUBLE, order.early_theta, 1, 0.1, 1,
        order_uses_metrics),
    ROW("early", "samples", INT, early_samples, 1, 0, 1000,
        order_uses_metrics),
    ROW("early", "boot_s", DOUBLE, early_boot_s, 1, 0, 86400,
        order_uses_metrics),
    ROW("early", "period_s", DOUBLE, early_period_s, 1, 0.1, 3600,
        order_uses_metrics),
    ROW("early", "boost", DOUBLE, order.early_boost, 1, 0, 100,
        is_stage_early),
    ROW("improve", "moves", INT, order.improve_moves, 1, 0, 1e6,
        has_iterations),
    ROW("improve", "budget_ms", DOUBLE, order.improve_s, 1e-3, 0, 1000,
        has_iterations),
    ROW("sincronia", "epoch_ms", DOUBLE, order.epoch_s, 1e-3, 0, 60000,
        is_sincronia),
    ROW("fifo_lm", "heavy_mb", DOUBLE, order.heavy_bytes, 1e6, 1e-3, 1e6,
        is_fifo_lm),
    ROW("dclas", "first_mb", DOUBLE, order.first_bytes, 1e6, 1e-3, 1e6,
        is_dclas),
    ROW("dclas", "factor", DOUBLE, order.factor, 1, 1.1, 1000, is_dclas),
    ROW("dclas", "queues", INT, order.n_queues, 1, 1, 64, is_dclas),
};

/* Returns 'x' without the rounding errors of a change of unit. */
static double
rounded(double x)
{
    char text[32];

    snprintf(text, sizeof text, "%.12g", x);
    return strtod(text, NULL);
}

double
policy_member_get(const struct policy_member *m, const struct policy *policy)
{
    const char *p = (const char *) policy + m->offset;

    switch (m->type) {
    case POLICY_INT:
        return *(const int *) p / m->scale;
    case POLICY_INT64:
        return *(const int64_t *) p / m->scale;
    case POLICY_DOUBLE:
        return rounded(*(const double *) p / m->scale);
    }
    abort();
}

void
policy_member_set(const struct policy_member *m, struct policy *policy,
                  double value)
{
    char *p = (char *) policy + m->offset;

    switch (m->type) {
    case POLICY_INT:
        *(int *) p = value * m->scale;
        break;
    case POLICY_INT64:
        *(int64_t *) p = value * m->scale;
        break;
    case POLICY_DOUBLE:
        *(double *) p = value * m->scale;
        break;
    }
}

/* Returns the 64-bit FNV-1a hash, which identifies texts but does not
 * authenticate them. */
static uint64_t
hash_text(const char *text)
{
    uint64_t hash = 0xcbf29ce484222325;

    for (; *text; text++) {
        hash = (hash ^ (unsigned char) *text) * 0x100000001b3;
    }
    return hash;
}

/* Calls 'visit' for the DSCP of each level and its pointer in the text. */
static void
visit_levels(const struct policy *policy,
             void (*visit)(const char *member, int dscp, void *), void *aux)
{
    visit("control_dscp", policy->control_dscp, aux);
    for (int i = 0; i < policy->n_levels; i++) {
        char member[] = { 'd', 's', 'c', 'p', '/', '0' + i, '\0' };

        visit(member, policy->dscp[i], aux);
    }
    visit("default_dscp", policy->default_dscp, aux);
}

struct dscp_check {
    const struct json_at *top;
    char *users[MAX_DSCP + 1]; /* Member that has each DSCP, or NULL. */
};

static void
check_dscp(const char *member, int dscp, void *check_)
{
    struct dscp_check *check = check_;

    if (check->users[dscp]) {
        json_fail(check->top, "levels",
                  "%s and %s are both %d; expected "
                  "a different DSCP for each level",
                  check->users[dscp], member, dscp);
    } else {
        check->users[dscp] = duplicate(member);
    }
}

/* Reports levels of the same DSCP, which nothing could distinguish. */
static void
check_levels(const struct json_at *top, const struct policy *policy)
{
    struct dscp_check check = { .top = top };

    visit_levels(policy, check_dscp, &check);
    for (int i = 0; i <= MAX_DSCP; i++) {
        free(check.users[i]);
    }
}

/* Returns the well-known traffic that has 'dscp', or NULL. */
static const char *
dscp_user(int dscp)
{
    return (dscp == 46   ? "voice (EF)"
            : dscp == 48 ? "routing protocols (CS6), and of RoCE's "
                           "congestion notifications by usual settings"
            : dscp > 48  ? "routing and network control (CS6, CS7)"
            : dscp >= 24 && dscp < 32 ? "RoCE by usual settings"
                                      : NULL);
}

/* Reads "levels", which may be null or lack members. */
static void
read_levels(struct json_check *jc, const struct json_at *levels,
            struct policy *policy)
{
    size_t n_errors = json_n_errors(jc);
    const struct json_at *array;

    policy->control_dscp = json_integer_or(levels, "control_dscp", 1, MAX_DSCP,
                                           SHIM_CONTROL_DSCP);
    policy->default_dscp = json_integer_or(levels, "default_dscp",
                                           0, MAX_DSCP, 0);
    array = json_array_or_null(levels, "dscp", 1, POLICY_MAX_LEVELS);
    policy->n_levels = array ? json_n(array) : POLICY_MAX_LEVELS;
    for (int i = 0; i < policy->n_levels; i++) {
        policy->dscp[i] =
            array ? json_at_integer(json_element(array, i), 0, MAX_DSCP)
                  : default_dscps[1 + i];
    }
    if (json_n_errors(jc) == n_errors) {
        check_levels(json_check_top(jc), policy);
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
        json_fail(weights, member, "%zu members; expected at most %d", n,
                  POLICY_MAX_FACTORS);
        n = 0;
    }
    f->factors = allocate(n, sizeof *f->factors);
    for (; f->n < n; f->n++) {
        const char *name = "";
        const struct json_at *at = json_member(map, f->n, &name);

        f->factors[f->n].factor = json_at_number(at, 0.001, 1000);
        f->factors[f->n].name = duplicate(name);
    }
}

/* Reads the numbers of the text; the others keep their defaults. */
static void
read_members(const struct json_at *top, struct policy *policy)
{
    const struct json_at *object = top;
    const char *section = NULL;

    for (size_t i = 0; i < POLICY_N_MEMBERS; i++) {
        const struct policy_member *m = &policy_members[i];

        if (m->section && (!section || strcmp(m->section, section))) {
            section = m->section;
            object = json_object_or_null(top, section);
        }
        if (json_has(object, m->name)) {
            policy_member_set(
                m, policy,
                m->type == POLICY_DOUBLE
                    ? json_number(object, m->name, m->min, m->max)
                    : json_integer(object, m->name, m->min, m->max));
        }
    }
}

/* Checks the rules between numbers, if each of them is valid. */
static void
check_members(const struct json_check *jc, const struct json_at *top,
              const struct policy *policy)
{
    int n_classes = policy->n_levels + 2; /* Control and default, too. */

    if (!json_ok(jc)) {
        return;
    }
    if (policy->refresh_ms < policy->coalesce_ms) {
        json_fail(
            top, json_has(top, "refresh_ms") ? "refresh_ms" : "coalesce_ms",
            "%" PRId64 " ms between two orders are less than the "
            "%" PRId64 " ms of /coalesce_ms within which events make one",
            policy->refresh_ms, policy->coalesce_ms);
    }
    if (policy->retag_ms >= policy->lease_ms) {
        json_fail(top, "retag_ms",
                  "%" PRId64 " ms between two changes of a "
                  "level are not below the %" PRId64
                  " ms of /lease_ms, within "
                  "which an order expires",
                  policy->retag_ms, policy->lease_ms);
    }
    if (policy->min_share * n_classes > 1) {
        json_fail(top, "min_share",
                  "%g for each of %d levels, control and "
                  "default with them, is more than the link",
                  policy->min_share, n_classes);
    }
}

/* Reads all of 'policy'; 'jc' has the errors. */
static void
read_policy(struct json_check *jc, struct policy *policy)
{
    const struct json_at *top = json_check_top(jc);
    const struct json_at *weights;

    *policy = (struct policy){ .lease_ms = 10000,
                               .coalesce_ms = 20,
                               .retag_ms = 100,
                               .refresh_ms = 200,
                               .aging_slowdown = 4.5,
                               .objective_latest = 1.1,
                               .owner_memory_s = 600,
                               .min_share = 0.02,
                               .congestion_gamma = 0.97,
                               .congestion_beta = 0.3,
                               .congestion_floor = 0.02,
                               .early_samples = 4,
                               .early_boot_s = 300,
                               .early_period_s = 5 };
    free(json_string_or(top, "$schema", NULL));
    policy->name = json_name(top, "name");
    policy->description = json_string_or(top, "description", "");
    policy->order = (struct order_options) ORDER_OPTIONS_INIT(
        json_enum(top, "order", order_names));
    policy->order.trials =
        json_enum_or(top, "trials", policy_trials, ORDER_TRIALS_NEUTRAL);
    policy->trust = json_enum_or(top, "trust", policy_trusts,
                                 POLICY_REGISTERED);
    read_levels(jc, json_object_or_null(top, "levels"), policy);
    read_members(top, policy);
    weights = json_object_or_null(top, "weights");
    read_factors(weights, "users", &policy->users);
    read_factors(weights, "cojobs", &policy->cojobs);
    policy->weight_limit = json_number_or(weights, "limit", 1, 1000, 1);
    policy->weight_total = json_number_or(weights, "total", 1, 1e6, 10);
    check_members(jc, top, policy);
}

char *
policy_from_string(const char *name, const char *text, struct policy **policyp)
{
    struct policy *policy = allocate(1, sizeof *policy);
    struct json_check *jc = json_check_open(name, text);
    char *error;

    read_policy(jc, policy);
    policy->text = duplicate(text);
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
    struct policy *policy = allocate(1, sizeof *policy);
    struct json_check *jc = json_check_open(name, text);

    read_policy(jc, policy);
    policy_destroy(policy);
    return json_check_close_all(jc);
}

struct warning_ctx {
    FILE *stream;
    const char *name; /* Of the policy's file. */
};

static void
warn_dscp(const char *member, int dscp, void *ctx_)
{
    const struct warning_ctx *ctx = ctx_;
    const char *user = dscp_user(dscp);

    if (user) {
        fprintf(ctx->stream,
                "%s: /levels/%s: warning, %d is the DSCP of %s; "
                "expected another one, such as 35\n",
                ctx->name, member, dscp, user);
    }
}

/* Adds a warning that 'member' has no effect. */
static void
warn(FILE *stream, const char *name, const struct policy *policy,
     const char *section, const char *member)
{
    fprintf(stream, "%s: %s%s/%s: warning, ", name, section ? "/" : "",
            section ? section : "", member);
    if (section && !strcmp(section, "improve")
        && has_iterations(policy->order.kind)) {
        fputs("no effect where jobs iterate: serves traces of coflows only\n",
              stream);
    } else {
        fprintf(stream, "no effect under the order \"%s\"\n",
                order_names[policy->order.kind]);
    }
}

char *
policy_warnings(const char *name, const struct policy *policy)
{
    cJSON *json = must(cJSON_Parse(policy->text));
    enum order_kind kind = policy->order.kind;
    size_t size;
    char *text;
    FILE *stream = must(open_memstream(&text, &size));
    struct warning_ctx ctx = { stream, name };

    visit_levels(policy, warn_dscp, &ctx);
    for (size_t i = 0; i < POLICY_N_MEMBERS; i++) {
        const struct policy_member *m = &policy_members[i];
        const cJSON *object =
            m->section ? cJSON_GetObjectItemCaseSensitive(json, m->section)
                       : json;
        bool iterates = has_iterations(kind);

        if (cJSON_GetObjectItemCaseSensitive(object, m->name)
            && ((m->is_read && !m->is_read(kind))
                || (iterates && m->section
                    && !strcmp(m->section, "improve")))) {
            warn(stream, name, policy, m->section, m->name);
        }
    }
    if (!has_weights(kind) && policy->users.n + policy->cojobs.n) {
        warn(stream, name, policy, NULL, "weights");
    }
    if (!has_iterations(kind) && policy->order.trials) {
        warn(stream, name, policy, NULL, "trials");
    }
    cJSON_Delete(json);
    fclose(stream);
    if (!size) {
        free(text);
        return NULL;
    }
    text[size - 1] = '\0';
    return text;
}

char *
policy_check_served(const char *name, const struct policy *policy)
{
    const struct order_class *class = &order_classes[policy->order.kind];

    if (class->unserved) {
        return message(
            "%s: /order: \"%s\" is for \"stagecoach sim\" only: %s; "
            "expected an order that shims serve, such as \"stage\"",
            name, order_names[policy->order.kind], class->unserved);
    }
    return NULL;
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
policy_weight(const struct policy *policy, const char *user, const char *cojob)
{
    return factor_of(&policy->users, user) * factor_of(&policy->cojobs, cojob);
}

/* Returns object 'name' in 'json'; creates it if it is missing. */
static cJSON *
get_section(cJSON *json, const char *name)
{
    cJSON *object = cJSON_GetObjectItemCaseSensitive(json, name);

    return object ? object : must(cJSON_AddObjectToObject(json, name));
}

static void
add_factors(cJSON *weights, const char *name, const struct policy_factors *f)
{
    cJSON *map = get_section(weights, name);

    for (size_t i = 0; i < f->n; i++) {
        cJSON_AddNumberToObject(map, f->factors[i].name, f->factors[i].factor);
    }
}

static void
add_levels(cJSON *levels, const struct policy *policy)
{
    cJSON *dscp = cJSON_AddArrayToObject(levels, "dscp");

    for (int i = 0; i < policy->n_levels; i++) {
        cJSON_AddItemToArray(dscp, cJSON_CreateNumber(policy->dscp[i]));
    }
    cJSON_AddNumberToObject(levels, "default_dscp", policy->default_dscp);
    cJSON_AddNumberToObject(levels, "control_dscp", policy->control_dscp);
    cJSON_AddStringToObject(levels, "fold",
                            policy_folds[policy->order.truncate]);
}

/* Returns all members of 'policy', including defaults. */
static cJSON *
policy_to_json(const struct policy *policy)
{
    cJSON *json = must(cJSON_CreateObject());
    cJSON *weights;

    cJSON_AddStringToObject(json, "name", policy->name);
    cJSON_AddStringToObject(json, "description", policy->description);
    cJSON_AddStringToObject(json, "order", order_names[policy->order.kind]);
    cJSON_AddStringToObject(json, "trials",
                            policy_trials[policy->order.trials]);
    cJSON_AddStringToObject(json, "trust", policy_trusts[policy->trust]);
    weights = get_section(json, "weights");
    add_factors(weights, "users", &policy->users);
    add_factors(weights, "cojobs", &policy->cojobs);
    cJSON_AddNumberToObject(weights, "limit", policy->weight_limit);
    cJSON_AddNumberToObject(weights, "total", policy->weight_total);
    add_levels(get_section(json, "levels"), policy);
    for (size_t i = 0; i < POLICY_N_MEMBERS; i++) {
        const struct policy_member *m = &policy_members[i];

        cJSON_AddNumberToObject(m->section
                                ? get_section(json, m->section) : json,
                                m->name, policy_member_get(m, policy));
    }
    return json;
}

/* Adds the members of 'item' to 'rows'.  'given' is the same item of the text,
 * or NULL if it is a default. */
static void
add_rows(struct policy_rows *rows, const char *pointer, const cJSON *item,
         const cJSON *given)
{
    const cJSON *child;

    if (!cJSON_IsObject(item)) {
        rows->rows =
            grow(rows->rows, rows->n, &rows->allocated, sizeof *rows->rows);
        rows->rows[rows->n++] =
            (struct policy_row){ .member = message("%s", pointer),
                                 .value = must(cJSON_PrintUnformatted(item)),
                                 .given = given != NULL };
        return;
    }
    cJSON_ArrayForEach (child, item) {
        char *inside = message("%s/%s", pointer, child->string);

        add_rows(rows, inside, child,
                 cJSON_GetObjectItemCaseSensitive(given, child->string));
        free(inside);
    }
}

void
policy_rows_init(struct policy_rows *rows, const struct policy *policy)
{
    cJSON *json = policy_to_json(policy);
    cJSON *given = must(cJSON_Parse(policy->text));

    *rows = (struct policy_rows) { 0 };
    add_rows(rows, "", json, given);
    cJSON_Delete(given);
    cJSON_Delete(json);
}

void
policy_rows_uninit(struct policy_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        free(rows->rows[i].member);
        cJSON_free(rows->rows[i].value);
    }
    free(rows->rows);
}
