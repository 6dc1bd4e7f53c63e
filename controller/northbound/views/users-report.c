/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/users-report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/model/owners.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-put.h"

/* Less than this is nothing, seconds. */
#define LEAST_SERVED 0.001

const char *const user_refusal_names[N_USER_REFUSALS] = {
    [REFUSED_REQUESTS] = "requests",
    [REFUSED_CLAIMS] = "claims",
    [REFUSED_ENTRIES] = "entries",
};

/* Returns the row of 'key', a new one if it is missing. */
static struct user_row *
get_row(struct shash *rows, const char *key)
{
    struct user_row *row = shash_find_data(rows, key);

    if (!row) {
        row = xmalloc(sizeof *row);
        *row = (struct user_row){ .name = "", .pod = "" };
        shash_add(rows, key, row);
    }
    return row;
}

static struct user_row *
get_uid(struct shash *rows, uint64_t uid)
{
    char *key = xasprintf("%" PRIu64, uid);
    struct user_row *row = get_row(rows, key);

    row->uid = uid;
    free(key);
    return row;
}

static void
add_owners(struct shash *rows, const struct cluster *c)
{
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &c->owners) {
        const struct owner *owner = node->data;
        struct user_row *row;

        if (*node->name == '@') {
            row = get_row(rows, node->name);
            row->name = node->name + 1;
        } else {
            row = get_uid(rows, strtoull(node->name, NULL, 10));
        }
        row->owner = owner;
        row->served = owner_served(owner, c->owner_memory_s);
        row->refused[REFUSED_REQUESTS] = owner->refused;
    }
}

static void
add_cojob(struct user_row *row, const struct cojob *cojob)
{
    const struct shash_node *node;

    if (cojob->owner) {
        row->name = cojob->owner;
    }
    row->served += cojob->served;
    if (cojob->running) {
        row->cojobs++;
        row->weight += cojob->weight;
    }
    SHASH_FOR_EACH (node, &cojob->jobs) {
        const struct job *job = node->data;

        row->jobs += job->live;
        for (int role = 0; role < N_ROLES; role++) {
            row->places += job->workers[role];
        }
    }
}

/* Counts the jobs of 'cojob' that processes of others claim. */
static void
add_claims(struct shash *rows, const struct cojob *cojob)
{
    const struct shash_node *job, *host;

    SHASH_FOR_EACH (job, &cojob->jobs) {
        SHASH_FOR_EACH (host, &((const struct job *) job->data)->refused) {
            const struct job_refusal *r = host->data;

            if (r->has_uid && time_msec() < r->at + OWNER_REFUSED_MS) {
                get_uid(rows, r->uid)->refused[REFUSED_CLAIMS]++;
            }
        }
    }
}

static void
add_tables(struct shash *rows, const struct host *host)
{
    for (size_t i = 0; i < host->n_users; i++) {
        const struct telemetry_user *user = &host->users[i];
        char *key = xasprintf("pod %s", user->pod);
        struct user_row *row =
            (*user->pod ? get_row(rows, key) : get_uid(rows, user->uid));

        row->pod = user->pod;
        row->entries += user->entries;
        row->refused[REFUSED_ENTRIES] += user->refused;
        free(key);
    }
}

static bool
is_shown(const struct user_row *row)
{
    bool shown = row->cojobs || row->served >= LEAST_SERVED || row->entries;

    for (int i = 0; i < N_USER_REFUSALS; i++) {
        shown |= row->refused[i] > 0;
    }
    return shown;
}

struct user_row *
users_collect(const struct cluster *c, size_t *np)
{
    struct shash rows = SHASH_INITIALIZER(&rows);
    const struct shash_node **sorted, *node;
    struct user_row *array;
    size_t n = 0;

    add_owners(&rows, c);
    SHASH_FOR_EACH (node, &c->cojobs) {
        const struct cojob *cojob = node->data;

        if (cojob->account) {
            add_cojob(get_row(&rows, cojob->account->name), cojob);
        }
        add_claims(&rows, cojob);
    }
    SHASH_FOR_EACH (node, &c->hosts) {
        add_tables(&rows, node->data);
    }
    sorted = shash_sort(&rows);
    array = xcalloc(shash_count(&rows) + 1, sizeof *array);
    for (size_t i = 0; i < shash_count(&rows); i++) {
        const struct user_row *row = sorted[i]->data;

        if (is_shown(row)) {
            array[n++] = *row;
        }
    }
    free(sorted);
    shash_destroy_free_data(&rows);
    *np = n;
    return array;
}

static struct json *
row_to_json(const struct user_row *row)
{
    struct json *refused = json_object_create();
    struct json *json = json_object_create();
    const char *why = owner_refusal(row->owner);

    json_object_put_string(json, "user", row->name);
    if (row->uid && row->uid <= MEMBERSHIP_MAX_UID) {
        json_put_integer(json, "uid", row->uid);
    }
    if (*row->pod) {
        json_object_put_string(json, "pod", row->pod);
    }
    json_put_integer(json, "cojobs", row->cojobs);
    json_put_integer(json, "jobs", row->jobs);
    json_put_integer(json, "places", row->places);
    json_put_real(json, "weight", row->weight);
    json_put_real(json, "served_s", row->served);
    json_put_integer(json, "entries", row->entries);
    for (int i = 0; i < N_USER_REFUSALS; i++) {
        json_put_integer(refused, user_refusal_names[i], row->refused[i]);
    }
    json_object_put(json, "refused", refused);
    if (why) {
        json_object_put_string(json, "why", why);
    }
    return json;
}

struct json *
users_report(const struct cluster *c)
{
    size_t n;
    struct user_row *rows = users_collect(c, &n);
    struct json *array = json_array_create_empty();
    struct json *json = json_object_create();

    for (size_t i = 0; i < n; i++) {
        json_array_add(array, row_to_json(&rows[i]));
    }
    free(rows);
    json_object_put(json, "users", array);
    return json;
}
