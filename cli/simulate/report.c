/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach report: what was observed of a cluster, on one page. */

#include <config.h>

#include <sqlite3.h>
#include <stdlib.h>

#include "base/interrupt.h"
#include "cli/command.h"
#include "cli/data-file.h"
#include "cli/duration.h"
#include "cli/simulate/policy.h"
#include "policies/policy.h"
#include "reporting/observed.h"
#include "sim/run/by-policy.h"
#include "sim/workload/workload-recording.h"
#include "sim/workload/workload.h"
#include "timeval.h"
#include "util.h"

struct report_args {
    int64_t age; /* ms. */
    const char *history, *policy;
    bool json;
    int n_left; /* Simulations that an interrupt has ended. */
};

#define AT(MEMBER) OPTION_AT(struct report_args, MEMBER)

static const struct option_row rows[] = {
    { "since", OPTION_CUSTOM, AT(age), .value = "AGE", .deflt = "7d",
      .parse = duration_option,
      .help = "report what has happened since then, such as 24h" },
    { "history", OPTION_TEXT, AT(history), .value = "FILE",
      .deflt = "/var/lib/stagecoach/history.db",
      .help = "history of the controller, which may be in use" },
    { "policy", OPTION_TEXT, AT(policy), .value = "P", .deflt = "stage",
      .help = "name or file of the policy whose order would have been" },
    FORMAT_ROW(struct report_args, json),
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach report",
    .rows = rows,
    .usage =
        "usage: stagecoach report [--since AGE] [--history FILE]\n"
        "                         [--policy P] [--format table|json]\n\n"
        "Prints how much of each card's traffic is of known jobs, which jobs\n"
        "share links, how long each waited for the network, and what an\n"
        "order would have saved.\n",
};

/* Reads the cards' bytes since 'since', and until when rows were deleted. */
static int
read_cards(sqlite3 *db, int64_t since, struct observed *o)
{
    sqlite3_stmt *stmt = NULL;
    int status = sqlite3_prepare_v2(
        db,
        "SELECT port, sum(bytes), sum(all_bytes) FROM port WHERE at > ?"
        " GROUP BY port UNION ALL SELECT NULL, max(at), 0 FROM cut",
        -1, &stmt, NULL);

    if (status == SQLITE_OK) {
        sqlite3_bind_int64(stmt, 1, since);
        while ((status = sqlite3_step(stmt)) == SQLITE_ROW) {
            const char *port = (const char *) sqlite3_column_text(stmt, 0);

            if (port) {
                observed_add_card(o, port, sqlite3_column_double(stmt, 1),
                                  sqlite3_column_double(stmt, 2));
            } else {
                o->cut = sqlite3_column_int64(stmt, 1);
            }
        }
    }
    sqlite3_finalize(stmt);
    return status == SQLITE_DONE ? SQLITE_OK : status;
}

/* Reads the history.  Stores the text of its stages in '*textp', which the
 * caller frees. */
static char *
read_history(const struct report_args *args, int64_t since, char **textp,
             struct observed **op)
{
    char *error = policy_history_read(args->history, since, true, textp);
    sqlite3 *db = NULL;

    error = error ? error : observed_create(args->history, *textp, op);
    if (!error
        && (sqlite3_open_v2(args->history, &db, SQLITE_OPEN_READONLY, NULL)
                != SQLITE_OK
            || read_cards(db, since, *op) != SQLITE_OK)) {
        error = xasprintf("%s: cannot be read (%s)", args->history,
                          db ? sqlite3_errmsg(db) : "no memory");
    }
    sqlite3_close(db);
    return error;
}

/* Returns the number of simulations that an interrupt has ended. */
static int
simulate_stages(const struct workload *w, struct policy *const policies[2],
                struct observed *o)
{
    struct sim_result results[2];
    int n = 0;

    interrupt_catch();
    for (int p = 0; p < 2; p++) {
        struct sim_result *r = &results[p];

        simulate_by_policy(w, policies[p], NULL, r);
        n += r->n_stages == w->n_stages;
        if (n > p) {
            sim_result_sort(r); /* As observed.h counts stages. */
        }
    }
    for (size_t i = 0; n == 2 && i < o->n_stages; i++) {
        const struct sim_stage *plain = &results[0].stages[i];
        const struct sim_stage *ordered = &results[1].stages[i];

        observed_simulated(o, i, plain->end - plain->begin,
                           ordered->end - ordered->begin);
    }
    sim_result_uninit(&results[0]);
    sim_result_uninit(&results[1]);
    return 2 - n;
}

/* Simulates the recorded stages, if there are any, without and with the
 * order. */
static char *
add_saving(struct report_args *args, const char *text, struct observed *o)
{
    struct policy *policies[2] = { NULL, NULL };
    struct workload *w = NULL;
    char *error = policy_open(args->policy, &policies[1]);

    error = error ? error : policy_open("plain", &policies[0]);
    if (!error && o->n_stages) {
        error = workload_recording_from_string(args->history, text, &w);
    }
    if (w) {
        args->n_left = simulate_stages(w, policies, o);
    }
    workload_destroy(w);
    policy_destroy(policies[0]);
    policy_destroy(policies[1]);
    return error;
}

static char *
report(struct report_args *args)
{
    int64_t now = time_wall_msec();
    struct observed *o = NULL;
    char *text = NULL;
    char *error = read_history(args, now - args->age, &text, &o);

    error = error ? error : add_saving(args, text, o);
    if (!error) {
        o->since = now - args->age;
        o->until = now;
        o->policy = args->policy;
        if (args->json) {
            command_print_json(observed_to_json(o));
        } else {
            observed_put_page(o, stdout);
        }
    }
    free(text);
    observed_destroy(o);
    return error;
}

int
cmd_report(int argc, char *argv[])
{
    struct report_args args = { .age = 0 };
    int status = option_table_command(&table, argc, argv, &args, NULL);
    char *error;

    if (status >= 0) {
        return status;
    }
    error = report(&args);
    return error         ? command_fail(NULL, error)
           : args.n_left ? interrupt_say(interrupt_caught(), 2 - args.n_left,
                                         2, "simulation")
                         : EXIT_OK;
}
