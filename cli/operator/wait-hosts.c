/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "cli/operator/wait-hosts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/operator/controller-query.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "timeval.h"
#include "util.h"

#define CALL_MS 3000            /* Timeout of a call of the controller. */
#define PAUSE_MS 50             /* Pause between two calls. */

char *
wait_hosts_parse(const char *text, void *wait)
{
    *(bool *) wait = true;
    return (strcmp(text, "hosts")
            ? xasprintf("\"%s\" is not one of \"hosts\"", text) : NULL);
}

/* Prints the hosts that have not applied the order. */
static void
print_lagging(const char *command, const struct json *json)
{
    const struct json *behind = member_array(json, "behind");
    struct ds names = DS_EMPTY_INITIALIZER;

    for (size_t i = 0; i < behind->array.n; i++) {
        ds_put_format(&names, "%s%s", i ? ", " : ": ",
                      json_string(behind->array.elems[i]));
    }
    fprintf(stderr, "stagecoach %s: --wait: after %d s %.0f of %.0f hosts "
            "with an agent and %.0f %% of the switches' flows have "
            "applied the order%s%s\n", command, WAIT_HOSTS_MS / 1000,
            member_number(json, "hosts_applied"),
            member_number(json, "hosts"),
            100 * member_number(json, "switches_applied"),
            behind->array.n ? "; lagging" : "", ds_cstr(&names));
    ds_destroy(&names);
}

int
wait_hosts(const char *command, const char *const args[], size_t n_args)
{
    long long int deadline = time_msec() + WAIT_HOSTS_MS;
    int status = -1;

    while (status < 0) {
        struct json *json;
        char *reply, *error;
        int errnum;

        error = controller_call("controller/rollout", n_args, args, CALL_MS,
                                &reply, &errnum);
        if (error) {
            fprintf(stderr, "stagecoach %s: --wait: %s\n", command, error);
            free(error);
            status = errnum ? EXIT_UNREACHABLE : EXIT_NO;
            break;
        }
        json = json_from_string(reply);
        if (member_number(json, "done")) {
            status = EXIT_OK;
        } else if (time_msec() > deadline) {
            print_lagging(command, json);
            status = EXIT_NO;
        } else {
            xnanosleep(PAUSE_MS * 1000000LL);
        }
        json_destroy(json);
        free(reply);
    }
    return status;
}
