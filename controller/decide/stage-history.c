/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/decide/stage-history.h"

#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/model/demand.h"
#include "openvswitch/json.h"
#include "util.h"
#include "wire/json-put.h"

/* Returns the host of 'part' with most bytes in one direction: what is slowest
 * there is the job.  NULL if it has moved none. */
static const struct stage_bytes *
busiest(const struct stage_part *part)
{
    const struct stage_bytes *busiest = NULL;
    const struct shash_node *node;
    uint64_t most = 0;

    SHASH_FOR_EACH (node, &part->moved) {
        const struct stage_bytes *b = node->data;
        uint64_t bytes = MAX(b->bytes[DIR_TX], b->bytes[DIR_RX]);

        if (bytes > most) {
            most = bytes;
            busiest = b;
        }
    }
    return busiest;
}

static struct json *
part_to_json(const char *job, const struct stage_part *part)
{
    const struct stage_bytes *slowest = busiest(part);
    struct json *servers = json_array_create_empty();
    struct json *links = json_object_create();
    struct json *json = json_object_create();
    const struct shash_node *node;
    int gpus = 0;

    SHASH_FOR_EACH (node, &part->moved) {
        const struct stage_bytes *b = node->data;

        gpus += b->gpus;
        if (b->serves) {
            json_array_add(servers, json_string_create(b->host->name));
        }
        for (int dir = 0; dir < N_DIRS; dir++) {
            if (b->bytes[dir]) {
                json_object_put_nocopy(links, demand_port_name(b->host, dir),
                                       json_integer_create(b->bytes[dir]));
            }
        }
    }
    json_object_put_string(json, "job", job);
    json_object_put(json, "bytes", links);
    if (servers->array.n) {
        json_object_put(json, "servers", servers);
    } else {
        json_destroy(servers);
    }
    if (gpus) {
        json_put_integer(json, "gpus", gpus);
    }
    if (part->devices) {
        json_put_integer(json, "devices", part->devices);
    }
    json_put_integer(json, "hosts", shash_count(&part->moved));
    if (slowest && slowest->busy > 0) {
        json_put_real(json, "busy_s", slowest->busy);
        json_put_real(json, "waited_s", slowest->waited);
    }
    return json;
}

/* Returns the seconds of an iteration of the ended 'stage' without transfers:
 * as predicted, or less if one of its jobs was seen to be silent for less. */
static double
compute_of(const struct stage *stage)
{
    double seconds = (stage->ended - stage->began) / 1000.0;
    double compute = stage->compute;
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &stage->parts) {
        const struct stage_bytes *b = busiest(node->data);

        if (b && b->busy > 0) {
            double silent = MAX(0, seconds - b->busy) / MAX(1, stage->done);

            compute = compute > 0 ? MIN(compute, silent) : silent;
        }
    }
    return compute;
}

struct json *
stage_history_row(const struct stage *stage)
{
    struct json *jobs = json_array_create_empty();
    struct json *demand = json_object_create();
    struct json *json = json_object_create();
    const struct shash_node *node;

    SHASH_FOR_EACH (node, &stage->moved) {
        const struct stage_bytes *b = node->data;

        for (int dir = 0; dir < N_DIRS; dir++) {
            json_object_put_nocopy(demand, demand_port_name(b->host, dir),
                                   json_real_create(b->bytes[dir] * 8.0
                                                    / host_capacity(b->host)));
        }
    }
    SHASH_FOR_EACH (node, &stage->parts) {
        json_array_add(jobs, part_to_json(node->name, node->data));
    }
    json_object_put(json, "jobs", jobs);
    json_object_put_string(json, "cojob", stage->cojob_name);
    json_put_integer(json, "rung", stage->rung);
    json_put_integer(json, "began", stage->began);
    json_put_integer(json, "ended", stage->ended);
    json_object_put(json, "demand", demand);
    if (stage->plain.id) {
        json_put_real(json, "plain_s", plain_stage(&stage->plain));
    }
    if (stage->ended) {
        json_put_integer(json, "iterations", MAX(1, stage->done));
        json_put_real(json, "compute_s", compute_of(stage));
    }
    return json;
}

/* Returns the members of "controller/stages", without those of decisions:
 * ended and running stages. */
struct json *
stage_history_to_json(const struct cluster *c)
{
    struct json *array = json_array_create_empty();
    struct json *json = json_object_create();
    const struct stage *stage;
    struct stage **running;
    size_t n;

    LIST_FOR_EACH_REVERSE (stage, node, &c->ended) {
        json_array_add(array, stage_history_row(stage));
    }
    running = cluster_running_stages(c, &n);
    for (size_t i = 0; i < n; i++) {
        json_array_add(array, stage_history_row(running[i]));
    }
    free(running);

    json_object_put(json, "stages", array);
    return json;
}
