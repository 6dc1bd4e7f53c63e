/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach doctor: examines the whole cluster. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "cli/command.h"
#include "cli/operator/cluster-check.h"
#include "cli/operator/controller-query.h"
#include "cli/operator/findings.h"
#include "openvswitch/json.h"
#include "util.h"

struct doctor_options {
    bool json;
};

static void
print_summary(const struct findings *f, size_t n_hosts)
{
    printf("%"PRIuSIZE" hosts; errors: %"PRIuSIZE", warnings: %"PRIuSIZE", "
           "notes: %"PRIuSIZE"\n", n_hosts, findings_count(f, FINDING_ERROR),
           findings_count(f, FINDING_WARNING),
           findings_count(f, FINDING_NOTE));
}

static int
report(const struct cluster_replies *r, bool as_json)
{
    struct findings findings = FINDINGS_INIT;
    size_t n_hosts = member_array(r->hosts, "hosts")->array.n;
    bool well;

    cluster_check(r, time(NULL), &findings);
    well = !findings_count(&findings, FINDING_ERROR);
    if (as_json) {
        struct json *json = json_object_create();

        json_object_put(json, "well", json_boolean_create(well));
        json_object_put(json, "hosts", json_integer_create(n_hosts));
        json_object_put(json, "findings", findings_to_json(&findings));
        print_and_destroy(json);
    } else {
        findings_print(&findings);
        print_summary(&findings, n_hosts);
    }
    findings_destroy(&findings);
    return well ? EXIT_OK : EXIT_NO;
}

int
cmd_doctor(int argc, char *argv[])
{
    static const struct option_row rows[] = {
        FORMAT_ROW(struct doctor_options, json), { .name = NULL }
    };
    static const struct option_table table = {
        .name = "stagecoach doctor", .rows = rows,
        .usage = "usage: stagecoach doctor [--format table|json]\n\n"
                 "Examines the controller, all hosts and the switches, and "
                 "prints what is wrong\nwith its remedy.  \"stagecoach agent "
                 "doctor\" examines this host.\n",
        .footer = "Exit status: 0 no error, 1 errors, 2 usage, 3 the "
                  "controller does not reply.\n",
    };
    static const char *const requests[] = {
        "controller/status", "controller/hosts", "controller/facts",
        "controller/switches",
    };
    struct json *replies[ARRAY_SIZE(requests)] = { NULL };
    struct doctor_options o = { .json = false };
    int status = option_table_command(&table, argc, argv, &o, NULL);

    if (status >= 0) {
        return status;
    }
    status = EXIT_OK;
    for (size_t i = 0; status == EXIT_OK && i < ARRAY_SIZE(requests); i++) {
        status = controller_get(argv[0], requests[i], &replies[i]);
    }
    if (status == EXIT_OK) {
        struct cluster_replies r = {
            .status = replies[0], .hosts = replies[1], .facts = replies[2],
            .switches = replies[3],
        };

        status = report(&r, o.json);
    }
    for (size_t i = 0; i < ARRAY_SIZE(requests); i++) {
        json_destroy(replies[i]);
    }
    return status;
}
