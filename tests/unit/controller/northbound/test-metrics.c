/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <stdlib.h>
#include <string.h>

#include "controller/model/cluster.h"
#include "controller/northbound/views/metrics.h"
#include "openvswitch/dynamic-string.h"
#include "tests/unit/unit-test.h"
#include "util.h"

/* Returns the metrics of 'c', which the caller frees.  No label is one that
 * Prometheus sets. */
static char *
metrics(const struct cluster *c)
{
    static const char *const scraped[] = {
        "job=",       "instance=", "namespace=", "pod=",
        "container=", "service=",  "endpoint=",  "node=",
    };
    struct ds out = DS_EMPTY_INITIALIZER;

    metrics_put_cluster(&out, c);
    for (size_t i = 0; i < ARRAY_SIZE(scraped); i++) {
        const char *at = ds_cstr(&out);

        while ((at = strstr(at, scraped[i]))) {
            assert_null(strchr("{,", at[-1]));
            at++;
        }
    }
    return ds_steal_cstr(&out);
}

static void
assert_has(const char *text, const char *line)
{
    if (!strstr(text, line)) {
        fail_msg("no \"%s\" in:\n%s", line, text);
    }
}

UNIT_TEST(each_host_and_live_job_has_its_values)
{
    struct cluster *c = cluster_create();
    struct host *host = cluster_get_host(c, "h0");
    struct cojob *cojob;
    struct job *job;
    char *text;

    host->connected = true;
    host->capacity_bps = 8e9;
    host->moved[DIR_TX] = 7;
    host_set_wanted(host, 5);
    cluster_intent_begin(c);
    cojob = cluster_put_cojob(c, "a", 1.5, true);
    cojob_set_owner(c, cojob, "a\"b", 1000);
    job = cojob_put_job(c, cojob, "live", true, 1000, 1);
    cojob_put_job(c, cojob, "over", false, 1000, 1);
    cluster_intent_end(c);
    job->level = 3;

    text = metrics(c);
    assert_has(text, "# TYPE stagecoach_agent_connected gauge\n"
               "stagecoach_agent_connected{host=\"h0\"} 1\n");
    assert_has(text, "\nstagecoach_agent_ordered{host=\"h0\"} 0\n");
    assert_has(text, "\nstagecoach_agent_wanted_version{host=\"h0\"} 5\n");
    assert_has(text, "\nstagecoach_shim_capacity_bytes_per_second"
               "{host=\"h0\"} 1000000000\n");
    assert_has(text, "\nstagecoach_shim_jobs_sent_bytes_total"
               "{host=\"h0\"} 7\n");
    assert_has(text, "\nstagecoach_hosts_behind{versions=\"1\"} 0\n"
                     "stagecoach_hosts_behind{versions=\"2-10\"} 1\n"
                     "stagecoach_hosts_behind{versions=\"more\"} 0\n");
    assert_has(text, "\nstagecoach_jobs_live 1\n");
    assert_has(text,
               "\nstagecoach_job_level{cojob=\"a\",job_name=\"live\"} 3\n");
    assert_has(text, "\nstagecoach_user_weight{user=\"a?b\",uid=\"1000\","
                     "pod_space=\"\"} 1.5\n");
    assert_has(text, "\nstagecoach_user_refused{user=\"a?b\",uid=\"1000\","
                     "pod_space=\"\",what=\"claims\"} 0\n");
    assert_null(strstr(text, "over\""));
    free(text);
    cluster_destroy(c);
}

UNIT_TEST(counters_of_a_shim_are_absent_until_known)
{
    struct cluster *c = cluster_create();
    struct host *host = cluster_get_host(c, "h0");
    char *text;

    host->reports = true;
    text = metrics(c);
    assert_null(strstr(text, "stagecoach_shim_queue_sent_bytes_total{"));
    free(text);
    host->shim.known = true;
    host->shim.level_bytes[2] = 9;
    text = metrics(c);
    assert_has(text, "\nstagecoach_shim_queue_sent_bytes_total{host=\"h0\","
               "queue=\"2\"} 9\n");
    free(text);
    cluster_destroy(c);
}

UNIT_TEST(hosts_beyond_the_limit_are_counted_only)
{
    struct cluster *c = cluster_create();
    char *text;

    for (int i = 0; i < METRICS_MAX_HOSTS + 2; i++) {
        char *name = xasprintf("h%05d", i);

        cluster_get_host(c, name)->reports = true;
        free(name);
    }
    text = metrics(c);
    assert_has(text, "\nstagecoach_hosts_known 2002\n");
    assert_has(text, "\nstagecoach_hosts_left_out 2\n");
    assert_has(text, "{host=\"h01999\"}");
    assert_null(strstr(text, "{host=\"h02000\"}"));
    free(text);
    cluster_destroy(c);
}
