/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/pairs.h"

#include <arpa/inet.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>

#include "agent/actuate/actuator.h"
#include "agent/identify/bpf/identity.h"
#include "agent/identify/flow-table.h"
#include "agent/identify/registry.h"
#include "agent/identify/tracker.h"
#include "openvswitch/json.h"
#include "util.h"
#include "wire/json-put.h"

#define SAMPLE_MS 1000

void
pairs_want(struct pairs *pairs, bool wanted)
{
    pairs->wanted = wanted;
}

void
pairs_add(struct job *job, const uint8_t address[4], uint64_t bytes)
{
    size_t i = 0;

    while (i < job->n_remotes && memcmp(job->remotes[i].address, address, 4)) {
        i++;
    }
    if (i == PAIRS_MAX_REMOTES) {
        return;
    } else if (i == job->n_remotes) {
        job->remotes = xrealloc(job->remotes, ++job->n_remotes
                                              * sizeof *job->remotes);
        job->remotes[i] = (struct pairs_remote) { .bytes = 0 };
        memcpy(job->remotes[i].address, address, 4);
    }
    job->remotes[i].bytes += bytes;
}

/* Adds what 'flow' of 'job' has sent since the last sample. */
static void
sample_flow(struct tracker *tracker, struct flow *flow, struct job *job)
{
    struct tcp_info info = { .tcpi_bytes_acked = 0 };
    size_t size = sizeof info;

    if (flow->key.family == 4 && flow->key.protocol == IPPROTO_TCP
        && !tracker_tcp_info(tracker, &flow->key, &info, &size)
        && size >= offsetof(struct tcp_info, tcpi_bytes_received)) {
        if (info.tcpi_bytes_acked < flow->acked) {
            flow->acked = 0;    /* Another connection of the same ports. */
        }
        if (info.tcpi_bytes_acked > flow->acked) {
            pairs_add(job, flow->key.remote,
                      info.tcpi_bytes_acked - flow->acked);
            flow->acked = info.tcpi_bytes_acked;
        }
    }
}

/* Jobs by the number of their slots. */
struct slot_jobs {
    struct job *jobs[SHIM_MAX_SLOTS];
};

static void
take_pair(uint16_t slot, const uint8_t remote[4], uint64_t bytes, void *jobs_)
{
    const struct slot_jobs *jobs = jobs_;

    if (slot < SHIM_MAX_SLOTS && jobs->jobs[slot]) {
        pairs_add(jobs->jobs[slot], remote, bytes);
    }
}

static void
sample_slots(const struct registry *registry, struct identity *identity,
             const struct actuator *actuator)
{
    struct slot_jobs jobs = { .jobs = { NULL } };
    struct job *job;

    HMAP_FOR_EACH (job, node, &registry->jobs) {
        jobs.jobs[actuator_slot(actuator, job->name)] = job;
    }
    jobs.jobs[0] = NULL;
    identity_take_pairs(identity, take_pair, &jobs);
}

bool
pairs_sample(struct pairs *pairs, struct tracker *tracker,
             struct identity *identity, const struct actuator *actuator,
             long long now)
{
    const struct registry *registry = tracker_registry(tracker);
    struct flow *flow;
    size_t n = 0;

    if (identity) {
        identity_settings(identity)->has_pairs = pairs->wanted;
    }
    if (!pairs->wanted || now < pairs->at + SAMPLE_MS) {
        return false;
    }
    pairs->at = now;
    if (identity) {
        sample_slots(registry, identity, actuator);
    }
    HMAP_FOR_EACH (flow, node, &tracker_flows(tracker)->flows) {
        if (n++ < PAIRS_MAX_FLOWS) {
            sample_flow(tracker, flow,
                        registry_find(registry, flow->job->name));
        }
    }
    return true;
}

struct json *
pairs_to_json(const struct job *job)
{
    struct json *array = json_array_create_empty();

    for (size_t i = 0; i < job->n_remotes; i++) {
        struct json *json = json_object_create();
        char address[INET_ADDRSTRLEN];

        inet_ntop(AF_INET, job->remotes[i].address, address, sizeof address);
        json_object_put_string(json, "remote", address);
        json_put_integer(json, "bytes", job->remotes[i].bytes);
        json_array_add(array, json);
    }
    return array;
}
