/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the telemetry that a compromised host sends to the controller. */

#include <config.h>

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "controller/model/telemetry-report.h"
#include "openvswitch/json.h"
#include "tests/fuzz/must.h"

static void
check_report(const struct telemetry_report *r)
{
    const struct simap_node *node;

    must(r->host && strlen(r->host) <= 31 && !strchr(r->host, '/'));
    must(!strcmp(r->state, "ordered") || !strcmp(r->state, "fair"));
    must(r->applied >= 0 && r->n_jobs <= TELEMETRY_MAX_JOBS);
    must(r->ip_bytes <= INT64_MAX && r->default_bytes <= INT64_MAX);
    must(simap_count(&r->ports) <= TELEMETRY_MAX_PORTS);
    SIMAP_FOR_EACH (node, &r->ports) {
        must(node->data >= 1 && strlen(node->name) <= 31);
    }
    for (size_t i = 0; i < r->n_jobs; i++) {
        const struct telemetry_job *job = &r->jobs[i];

        must(job->name && strlen(job->name) <= 63);
        must(strchr(job->name, '/') == strrchr(job->name, '/'));
        must(job->tx_bytes <= INT64_MAX && job->rx_bytes <= INT64_MAX);
        must(job->iteration >= -1);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = copy_text(data, size);
    struct json *json = json_from_string(text);
    struct telemetry_report *r;
    char *error = telemetry_report_from_json(json, &r);

    must(!error == !!r);
    if (r) {
        check_report(r);
    }
    telemetry_report_destroy(r);
    free(error);
    json_destroy(json);
    free(text);
    return 0;
}
