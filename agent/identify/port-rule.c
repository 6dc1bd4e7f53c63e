/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/identify/port-rule.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "wire/cgroup-path.h"
#include "wire/shim-protocol.h"
#include "util.h"

/* Returns the first of the 'n' rules that names a port of 'key', or NULL. */
const struct port_rule *
port_rules_match(const struct port_rule *rules, size_t n,
                 const struct shim_flow_key *key)
{
    uint16_t ports[] = { ntohs(key->local_port), ntohs(key->remote_port) };

    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < ARRAY_SIZE(ports); j++) {
            if (ports[j] >= rules[i].first && ports[j] <= rules[i].last) {
                return &rules[i];
            }
        }
    }
    return NULL;
}

/* Parses "FIRST[-LAST]=COJOB/JOB" into '*rule'.  Returns NULL or a malloc()'d
 * message. */
char *
port_rule_parse(const char *text, struct port_rule *rule)
{
    const char *slash = strchr(text, '/');
    char cojob[32], job[32];
    int first, last, n = 0;

    if (sscanf(text, "%d-%d=%n", &first, &last, &n) != 2 || !n) {
        n = 0;
        last = sscanf(text, "%d=%n", &first, &n) == 1 && n ? first : -1;
    }
    if (!n || first < 1 || last < first || last > 65535) {
        return xasprintf("\"%.80s\" has no ports, such as 29500-29510=asha/t0 "
                         "is allowed", text);
    }
    if (slash) {
        ovs_strlcpy(cojob, text + n, MIN(sizeof cojob,
                                         (size_t) (slash - text - n) + 1));
        ovs_strlcpy(job, slash + 1, sizeof job);
    }
    if (!slash || slash - text - n > 31 || strlen(slash + 1) > 31
        || !cgroup_name_is_valid(cojob) || !cgroup_name_is_valid(job)) {
        return xasprintf("\"%.80s\" is not a job, COJOB/JOB, each of "
                         CGROUP_NAME_RULE, text + n);
    }
    rule->first = first;
    rule->last = last;
    snprintf(rule->job, sizeof rule->job, "%s/%s", cojob, job);
    return NULL;
}
