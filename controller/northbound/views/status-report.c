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

/* Less of the bytes that could be tagged is worth a look, */
#define LEAST_COVERAGE 0.9
/* once there are so many. */
#define COVERAGE_BYTES 10000000

/* Hosts that an alarm names. */
#define MAX_NAMED 5

/* What hosts have in common, and who stands out. */
struct hosts_summary {
    size_t n, applied;          /* Hosts, and those whose order is in force. */
    double ip_bytes, tagged_bytes;
    struct ds away, bypass, late;       /* Names. */
    size_t n_away, n_bypass, n_late;
};

static void
add_name(struct ds *names, size_t *n, const char *name)
{
    if (*n < MAX_NAMED) {
        ds_put_format(names, "%s%s", *n ? ", " : "", name);
    } else if (*n == MAX_NAMED) {
        ds_put_cstr(names, " and others");
    }
    (*n)++;
}

static void
summarize_host(struct hosts_summary *s, const struct host *host)
{
    bool applied = host->connected && host->applied >= host->wanted;

    s->n++;
    s->applied += applied;
    s->ip_bytes += host->ip_bytes;
    s->tagged_bytes += (host->ip_bytes > host->default_bytes
                        ? host->ip_bytes - host->default_bytes : 0);
    if (host->named && !host->connected) {
        add_name(&s->away, &s->n_away, host->name);
    }
    if (host->bypass) {
        add_name(&s->bypass, &s->n_bypass, host->name);
    }
    if (host_is_lagging(host)) {
        add_name(&s->late, &s->n_late, host->name);
    }
}

static void
summarize(struct hosts_summary *s, const struct cluster *c)
{
    const struct shash_node **nodes = shash_sort(&c->hosts);

    *s = (struct hosts_summary) {
        .away = DS_EMPTY_INITIALIZER, .bypass = DS_EMPTY_INITIALIZER,
        .late = DS_EMPTY_INITIALIZER,
    };
    for (size_t i = 0; i < shash_count(&c->hosts); i++) {
        summarize_host(s, nodes[i]->data);
    }
    free(nodes);
}

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

static struct json *
find_alarms(const struct controller *ctl, struct hosts_summary *s)
{
    const char *error = policy_file_error(ctl->policy);
    struct json *alarms = json_array_create_empty();

    if (!intent_db_is_connected(ctl->intent)) {
        alarm_add(alarms, "the intent database is away: nobody hears of new "
                  "stages");
    }
    if (!hosts_db_is_connected(ctl->hosts)) {
        alarm_add(alarms, "the hosts database is away: hosts keep the order "
                  "that they have");
    }
    if (error) {
        alarm_add(alarms, "the policy's file is refused, the one before is "
                  "in force: %s", error);
    }
    if (s->n_away) {
        alarm_add(alarms, "no agent on %s, where jobs run", ds_cstr(&s->away));
    }
    if (s->n_bypass) {
        alarm_add(alarms, "the shim is gone on %s: the kernel forwards, "
                  "without order", ds_cstr(&s->bypass));
    }
    if (s->n_late) {
        alarm_add(alarms, "the last order is not in force on %s",
                  ds_cstr(&s->late));
    }
    if (s->ip_bytes >= COVERAGE_BYTES && coverage(s) < LEAST_COVERAGE
        && !control_observes(ctl)) {
        alarm_add(alarms, "%.0f %% of the traffic belong to no job that is "
                  "known", 100 * (1 - coverage(s)));
    }
    switches_alarms(ctl->switches, alarms);
    return alarms;
}

/* How the last order compares with none. */
static struct json *
gain_now(const struct controller *ctl)
{
    struct json *json = json_object_create();
    double order_s, fair_s;

    fair_estimate(decide_last(ctl->decide), &order_s, &fair_s);
    json_object_put(json, "order_mean_s", json_real_create(order_s));
    json_object_put(json, "fair_mean_s", json_real_create(fair_s));
    json_object_put(json, "ratio",
                    json_real_create(fair_s > 0 ? order_s / fair_s : 1));
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
    json_object_put(json, "overrides", json_integer_create(n));
    json_object_put(json, "observe",
                    json_boolean_create(control_observes(ctl)));
    if (observe) {
        json_object_put(json, "observed_by", override_to_json(observe));
    }
}

void
status_report_put(struct json *json, const struct controller *ctl)
{
    struct hosts_summary s;

    summarize(&s, ctl->cluster);
    json_object_put(json, "hosts_applied", json_integer_create(s.applied));
    json_object_put(json, "coverage", json_real_create(coverage(&s)));
    json_object_put(json, "predicted", gain_now(ctl));
    json_object_put(json, "gain", fair_comparison_to_json(ctl->fair));
    put_overrides(json, ctl);
    json_object_put(json, "alarms", find_alarms(ctl, &s));
    ds_destroy(&s.away);
    ds_destroy(&s.bypass);
    ds_destroy(&s.late);
}
