/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/model/cluster.h"
#include "controller/model/fabric.h"
#include "controller/northbound/views/cojobs-report.h"
#include "openvswitch/json.h"
#include "tests/unit/unit-test.h"
#include "util.h"

static void
assert_report(const struct cluster *c, const char *expected)
{
    struct json *json = ports_report(c);

    assert_is(json_to_string(json, JSSF_SORT), expected);
    json_destroy(json);
}

/* Hosts h0 and h1 with uplinks of 1 Mbit/s. */
static struct host *
add_host(struct cluster *c, const char *name)
{
    struct host *host = cluster_get_host(c, name);
    struct simap ports = SIMAP_INITIALIZER(&ports);

    simap_put(&ports, "uplink", 1000);
    host_set_ports(c, host, &ports);
    simap_destroy(&ports);
    return host;
}

UNIT_TEST(uplinks_are_busy_for_what_jobs_moved)
{
    struct cluster *c = cluster_create();
    struct host *h0 = add_host(c, "h0");

    h0->moved[DIR_TX] = 250000;
    assert_report(c, "{\"ports\":[{\"busy_s\":2,\"port\":\"h0:tx\"},"
                  "{\"busy_s\":0,\"port\":\"h0:rx\"}]}");
    cluster_destroy(c);
}

UNIT_TEST(links_are_busy_for_what_live_jobs_sent_across)
{
    struct cluster *c = cluster_create();
    struct fabric *f = fabric_create(2);
    uint64_t bytes = 500000;
    struct cojob *cojob;
    struct job *job;
    struct host *h0;

    fabric_add_crossing(f, 0, 1, fabric_add_port(f, "a>b"), 0.5e-6);
    fabric_add_host(f, "h0", 1, 0);
    fabric_add_host(f, "h1", 2, 1);
    cluster_set_fabric(c, f);
    h0 = add_host(c, "h0");
    add_host(c, "h1");
    for (int live = 1; live >= 0; live--) {
        cluster_intent_begin(c);
        cojob = cluster_put_cojob(c, "s", 1, true);
        job = cojob_put_job(c, cojob, "t0", live, 1000, 0);
        cluster_intent_end(c);
        if (live) {
            shash_add(&job_get_traffic(job, h0)->sent_to, "h1",
                      xmemdup(&bytes, sizeof bytes));
        }
        assert_report(c, live
                      ? "{\"ports\":[{\"busy_s\":0,\"port\":\"h0:tx\"},"
                        "{\"busy_s\":0,\"port\":\"h0:rx\"},"
                        "{\"busy_s\":0,\"port\":\"h1:tx\"},"
                        "{\"busy_s\":0,\"port\":\"h1:rx\"},"
                        "{\"busy_s\":2,\"port\":\"a>b\"}]}"
                      : "{\"ports\":[{\"busy_s\":0,\"port\":\"h0:tx\"},"
                        "{\"busy_s\":0,\"port\":\"h0:rx\"},"
                        "{\"busy_s\":0,\"port\":\"h1:tx\"},"
                        "{\"busy_s\":0,\"port\":\"h1:rx\"},"
                        "{\"busy_s\":0,\"port\":\"a>b\"}]}");
    }
    cluster_destroy(c);
}
