/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/views/status-report.h"

#include <stdarg.h>
#include <stdlib.h>

#include "controller/model/cluster.h"
#include "controller/northbound/views/control.h"
#include "controller/decide/decide.h"
#include "controller/northbound/views/fair-estimate.h"
#include "controller/history/fair-comparison.h"
#include "controller/hosts/hosts-db.h"
#include "controller/intent/intent-db.h"
#include "controller/decide/policy-file.h"
#include "controller/southbound/switches.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "util.h"
#include "wire/json-put.h"

/* A share of bytes of known jobs below LEAST_COVERAGE raises an alarm, once
 * COVERAGE_BYTES have been sent. */
#define LEAST_COVERAGE 0.9
#define COVERAGE_BYTES 10000000

/* Maximum number of hosts that an alarm lists. */
#define MAX_NAMED 5

/* A list of host names for an alarm. */
struct names {
    struct ds text;
    size_t n;                   /* Hosts, also those that are not listed. */
};

struct hosts_summary {
    size_t applied;             /* Hosts that have applied their order. */
    double ip_bytes;            /* IP bytes sent by all hosts. */
    double tagged_bytes;        /* Part of 'ip_bytes' of known jobs. */
    struct names disconnected, bypass, lagging;
};

static void
add_name(struct names *names, const char *name)
{
    if (names->n < MAX_NAMED) {
        ds_put_format(&names->text, "%s%s", names->n ? ", " : "", name);
    } else if (names->n == MAX_NAMED) {
        ds_put_cstr(&names->text, " and others");
    }
    names->n++;
}

static void
add_host(struct hosts_summary *s, const struct host *host)
{
    s->applied += host->connected && host->applied >= host->wanted;
    s->ip_bytes += host->ip_bytes;
    s->tagged_bytes += (host->ip_bytes > host->default_bytes
                        ? host->ip_bytes - host->default_bytes : 0);
    if (host->named && !host->connected) {
        add_name(&s->disconnected, host->name);
    }
    if (host->bypass) {
        add_name(&s->bypass, host->name);
    }
    if (host_is_lagging(host)) {
        add_name(&s->lagging, host->name);
    }
}

static void
summary_init(struct hosts_summary *s, const struct cluster *c)
{
    const struct shash_node **nodes = shash_sort(&c->hosts);

    *s = (struct hosts_summary) { .applied = 0 };
    for (size_t i = 0; i < shash_count(&c->hosts); i++) {
        add_host(s, nodes[i]->data);
    }
    free(nodes);
}

static void
summary_uninit(struct hosts_summary *s)
{
    ds_destroy(&s->disconnected.text);
    ds_destroy(&s->bypass.text);
    ds_destroy(&s->lagging.text);
}

/* Returns the share of the sent bytes that belong to known jobs, 0 to 1. */
static double
coverage(const struct hosts_summary *s)
{
    return s->ip_bytes > 0 ? s->tagged_bytes / s->ip_bytes : 1;
}

static void OVS_PRINTF_FORMAT(2, 3)
alarm_add(struct json *alarms, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    json_array_add(alarms, json_string_create_nocopy(xvasprintf(format,
                                                                args)));
    va_end(args);
}

static void
add_alarms(struct json *alarms, const struct status_facts *facts,
           struct hosts_summary *s)
{
    if (!facts->intent_connected) {
        alarm_add(alarms, "the intent database is unreachable: new stages "
                  "are not scheduled");
    }
    if (!facts->hosts_connected) {
        alarm_add(alarms, "the hosts database is unreachable: hosts keep "
                  "their last order");
    }
    if (facts->policy_error) {
        alarm_add(alarms, "the policy file is refused, the previous policy "
                  "stays in force: %s", facts->policy_error);
    }
    if (s->disconnected.n) {
        alarm_add(alarms, "agent disconnected on %s; live jobs run there",
                  ds_cstr(&s->disconnected.text));
    }
    if (s->bypass.n) {
        alarm_add(alarms, "shim down on %s: the kernel bypass forwards "
                  "traffic without priorities", ds_cstr(&s->bypass.text));
    }
    if (s->lagging.n) {
        alarm_add(alarms, "the last order is not in force on %s",
                  ds_cstr(&s->lagging.text));
    }
    if (s->ip_bytes >= COVERAGE_BYTES && coverage(s) < LEAST_COVERAGE
        && !facts->observes) {
        alarm_add(alarms, "%.0f %% of the traffic belongs to no known job",
                  100 * (1 - coverage(s)));
    }
}

void
status_add_alarms(struct json *alarms, const struct status_facts *facts)
{
    struct hosts_summary s;

    summary_init(&s, facts->cluster);
    add_alarms(alarms, facts, &s);
    summary_uninit(&s);
}

/* Compares the last order with fair sharing. */
static struct json *
prediction_to_json(const struct controller *ctl)
{
    struct json *json = json_object_create();
    double order_s, fair_s;

    fair_estimate(decide_last(ctl->decide), &order_s, &fair_s);
    json_put_real(json, "order_mean_s", order_s);
    json_put_real(json, "fair_mean_s", fair_s);
    json_put_real(json, "ratio", fair_s > 0 ? order_s / fair_s : 1);
    return json;
}

static void
put_overrides(struct json *json, const struct controller *ctl)
{
    const struct override *observe = overrides_observe(&ctl->overrides);
    const struct override *ov;
    size_t n = 0;

    LIST_FOR_EACH (ov, node, &ctl->overrides.all) {
        n += !ov->ended && ov->kind != OVERRIDE_OBSERVE;
    }
    json_put_integer(json, "overrides", n);
    json_put_boolean(json, "observe", control_observes(ctl));
    if (observe) {
        json_object_put(json, "observed_by", override_to_json(observe));
    }
}

void
status_report_put(struct json *json, const struct controller *ctl)
{
    struct status_facts facts = {
        .cluster = ctl->cluster,
        .intent_connected = intent_db_is_connected(ctl->intent),
        .hosts_connected = hosts_db_is_connected(ctl->hosts),
        .policy_error = policy_file_error(ctl->policy),
        .observes = control_observes(ctl),
    };
    struct json *alarms = json_array_create_empty();
    struct hosts_summary s;

    summary_init(&s, ctl->cluster);
    add_alarms(alarms, &facts, &s);
    switches_alarms(ctl->switches, alarms);
    json_put_integer(json, "hosts_applied", s.applied);
    json_put_real(json, "coverage", coverage(&s));
    json_object_put(json, "predicted", prediction_to_json(ctl));
    json_object_put(json, "gain", fair_comparison_to_json(ctl->fair));
    put_overrides(json, ctl);
    json_object_put(json, "alarms", alarms);
    summary_uninit(&s);
}
