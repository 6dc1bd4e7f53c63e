/* SPDX-License-Identifier: Apache-2.0 */

#include "policies/policy-json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/json-place.h"
#include "policies/policy-members.h"
#include "policies/policy.h"

/* Returns object 'name' in 'json', a new one if there is none. */
static cJSON *
section(cJSON *json, const char *name)
{
    cJSON *object = cJSON_GetObjectItemCaseSensitive(json, name);

    return object ? object : json_must(cJSON_AddObjectToObject(json, name));
}

static void
add_factors(cJSON *weights, const char *name, const struct policy_factors *f)
{
    cJSON *map = section(weights, name);

    for (size_t i = 0; i < f->n; i++) {
        cJSON_AddNumberToObject(map, f->factors[i].name,
                                f->factors[i].factor);
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

/* Returns all that is in force with 'policy'. */
static cJSON *
policy_to_json(const struct policy *policy)
{
    cJSON *json = json_must(cJSON_CreateObject());

    cJSON_AddStringToObject(json, "name", policy->name);
    cJSON_AddStringToObject(json, "description", policy->description);
    cJSON_AddStringToObject(json, "order", order_names[policy->order.kind]);
    add_factors(section(json, "weights"), "users", &policy->users);
    add_factors(section(json, "weights"), "cojobs", &policy->cojobs);
    add_levels(section(json, "levels"), policy);
    for (size_t i = 0; i < POLICY_N_MEMBERS; i++) {
        const struct policy_member *m = &policy_members[i];

        cJSON_AddNumberToObject(m->section ? section(json, m->section) : json,
                                m->name, policy_member_get(m, policy));
    }
    return json;
}

/* Returns the text of 'policy', with the age of weights where it is kept. */
static cJSON *
parse_text(const struct policy *policy)
{
    cJSON *json = json_must(cJSON_Parse(policy->text));
    cJSON *weights = cJSON_GetObjectItemCaseSensitive(json, "weights");
    cJSON *age = cJSON_DetachItemFromObjectCaseSensitive(weights, "age_s");

    if (age) {
        cJSON_AddItemToObject(json, "aging_s", age);
    }
    return json;
}

/* Adds what is in 'item', which 'given' is the text's if it has it, to
 * 'rows'. */
static void
add_rows(struct policy_rows *rows, const char *pointer, const cJSON *item,
         const cJSON *given)
{
    const cJSON *child;

    if (!cJSON_IsObject(item)) {
        if (rows->n == rows->allocated) {
            rows->allocated = 2 * rows->allocated + 32;
            rows->rows = json_must(reallocarray(rows->rows, rows->allocated,
                                                sizeof *rows->rows));
        }
        rows->rows[rows->n++] = (struct policy_row) {
            .member = json_message("%s", pointer),
            .value = json_must(cJSON_PrintUnformatted(item)),
            .given = given != NULL,
        };
        return;
    }
    cJSON_ArrayForEach (child, item) {
        char *inside = json_message("%s/%s", pointer, child->string);

        add_rows(rows, inside, child,
                 cJSON_GetObjectItemCaseSensitive(given, child->string));
        free(inside);
    }
}

void
policy_rows_init(struct policy_rows *rows, const struct policy *policy)
{
    cJSON *json = policy_to_json(policy);
    cJSON *given = parse_text(policy);

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

const struct policy_row *
policy_rows_find(const struct policy_rows *rows, const char *member)
{
    for (size_t i = 0; i < rows->n; i++) {
        if (!strcmp(rows->rows[i].member, member)) {
            return &rows->rows[i];
        }
    }
    return NULL;
}

/* Puts 'value' in the place of member 'name' of 'object', or at its end. */
static void
put(cJSON *object, const char *name, cJSON *value)
{
    if (cJSON_GetObjectItemCaseSensitive(object, name)) {
        cJSON_ReplaceItemInObjectCaseSensitive(object, name, value);
    } else {
        cJSON_AddItemToObject(object, name, value);
    }
}

/* Puts the value of 'row' into 'json'. */
static void
put_row(cJSON *json, const struct policy_row *row)
{
    const char *name = row->member + 1;
    const char *slash = strchr(name, '/');
    cJSON *object = json;

    if (slash) {
        char *outer = json_message("%.*s", (int) (slash - name), name);

        object = section(json, outer);
        free(outer);
        name = slash + 1;
    }
    put(object, name, json_must(cJSON_Parse(row->value)));
}

char *
policy_rewrite(const struct policy *policy, const struct policy *changed,
               const char *name, const char *description)
{
    cJSON *json = parse_text(policy);
    struct policy_rows old, new;
    char *text;

    policy_rows_init(&old, policy);
    policy_rows_init(&new, changed);
    put(json, "name", cJSON_CreateString(name));
    put(json, "description", cJSON_CreateString(description));
    for (size_t i = 0; i < new.n; i++) {
        const struct policy_row *row = policy_rows_find(&old,
                                                        new.rows[i].member);

        if (!row || strcmp(row->value, new.rows[i].value)) {
            put_row(json, &new.rows[i]);
        }
    }
    policy_rows_uninit(&old);
    policy_rows_uninit(&new);
    text = json_must(cJSON_Print(json));
    cJSON_Delete(json);
    return text;
}
