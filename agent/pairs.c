/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/pairs.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "agent/actuate/actuator.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/registry.h"
#include "openvswitch/json.h"
#include "util.h"
#include "wire/json-put.h"

#define SAMPLE_MS 1000

void
pairs_add(struct job *job, const uint8_t address[16], uint64_t bytes)
{
    size_t i = 0;

    while (i < job->n_remotes
           && memcmp(job->remotes[i].address, address, 16)) {
        i++;
    }
    if (i == PAIRS_MAX_REMOTES) {
        return;
    } else if (i == job->n_remotes) {
        job->remotes = xrealloc(job->remotes, ++job->n_remotes
                                              * sizeof *job->remotes);
        job->remotes[i] = (struct pairs_remote) { .bytes = 0 };
        memcpy(job->remotes[i].address, address, 16);
    }
    job->remotes[i].bytes += bytes;
}

/* Jobs by the number of their slots. */
struct slot_jobs {
    struct job *jobs[SHIM_MAX_SLOTS];
};

static void
take_pair(uint16_t slot, const uint8_t remote[16], uint64_t bytes, void *jobs_)
{
    const struct slot_jobs *jobs = jobs_;

    if (slot < SHIM_MAX_SLOTS && jobs->jobs[slot]) {
        pairs_add(jobs->jobs[slot], remote, bytes);
    }
}

bool
pairs_sample(struct pairs *pairs, const struct registry *registry,
             struct identity *identity, const struct actuator *actuator,
             long long now)
{
    struct slot_jobs jobs = { .jobs = { NULL } };
    struct job *job;

    identity_settings(identity)->max_pairs =
        pairs->wanted ? IDENTITY_PAIRS / MAX(hmap_count(&registry->jobs), 1)
                      : 0;
    if (!pairs->wanted || now < pairs->at + SAMPLE_MS) {
        return false;
    }
    pairs->at = now;
    HMAP_FOR_EACH (job, node, &registry->jobs) {
        jobs.jobs[actuator_slot(actuator, job->name)] = job;
    }
    jobs.jobs[0] = NULL;
    identity_take_pairs(identity, take_pair, &jobs);
    return true;
}

struct json *
pairs_to_json(const struct job *job)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < job->n_remotes; i++) {
        struct json *json = json_object_create();
        const uint8_t *remote = job->remotes[i].address;
        char address[INET6_ADDRSTRLEN];

        if (IN6_IS_ADDR_V4MAPPED(remote)) {
            inet_ntop(AF_INET, &remote[12], address, sizeof address);
        } else {
            inet_ntop(AF_INET6, remote, address, sizeof address);
        }
        json_object_put_string(json, "remote", address);
        json_put_integer(json, "bytes", job->remotes[i].bytes);
        json_array_add(array, json);
    }
    return array;
}
