/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/measure/switch-log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "controller/ovsdb/rpc-call.h"
#include "sset.h"
#include "util.h"

#define ASK_MS 2000

/* A change by a connection that is not primary counts as accepted unless an
 * error follows.  'foreign' has "CONNECTION XID" of such changes without an
 * error so far. */
struct reader {
    char *primary;              /* Primary connection, NULL before there is
                                 * one. */
    char *wishes;               /* "CONNECTION XID" of the last request for the
                                 * primary role. */
    unsigned long long wished;  /* Generation in that request. */
    unsigned long long generation;      /* Generation of the primary
                                         * connection. */
    struct sset foreign;
    struct switch_log_counts *counts;
};

char *
switch_log_begin(const char *ctl)
{
    const char *const level[] = { "vconn:console:dbg" };
    const char *const all[] = { "vconn" };
    char *reply = NULL;
    char *error;
    int errnum;

    error = rpc_unixctl(ctl, "vlog/disable-rate-limit", 1, all, ASK_MS, &reply,
                        &errnum);
    if (!error) {
        free(reply);
        error = rpc_unixctl(ctl, "vlog/set", 1, level, ASK_MS, &reply,
                            &errnum);
    }
    free(reply);
    return error;
}

static bool
is_change(const char *message)
{
    return (!strncmp(message, "OFPT_FLOW_MOD", 13)
            || !strncmp(message, "OFPT_GROUP_MOD", 14)
            || !strncmp(message, "OFPT_BUNDLE_ADD_MESSAGE", 23));
}

static void
take_received(struct reader *r, const char *connection, const char *id,
              const char *message)
{
    if (!strncmp(message, "OFPT_ROLE_REQUEST", 17)
        && (strstr(message, "role=primary")
            || strstr(message, "role=master"))) {
        const char *generation = strstr(message, "generation_id=");

        free(r->wishes);
        r->wishes = xstrdup(id);
        r->wished = generation ? strtoull(generation + 14, NULL, 10) : 0;
    } else if (is_change(message)) {
        r->counts->changes++;
        /* The log begins after the first request for the role. */
        r->primary = r->primary ? r->primary : xstrdup(connection);
        if (strcmp(r->primary, connection)) {
            sset_add(&r->foreign, id);
        }
    }
}

static void
take_sent(struct reader *r, const char *connection, const char *id,
          const char *message)
{
    bool wished = r->wishes && !strcmp(r->wishes, id);

    if (!strncmp(message, "OFPT_ROLE_REPLY", 15) && wished) {
        r->counts->roles++;
        r->counts->backwards += r->wished < r->generation;
        r->generation = r->wished;
        free(r->primary);
        r->primary = xstrdup(connection);
    } else if (!strncmp(message, "OFPT_ERROR", 10)
               && (sset_find_and_delete(&r->foreign, id) || wished)) {
        r->counts->refused++;
    }
}

/* Handles "...|vconn|DBG|CONNECTION: received: MESSAGE ... (xid=XID): ..." or
 * "... sent (Success): ...". */
static void
take_line(struct reader *r, char *line)
{
    char *connection = strstr(line, "|vconn|DBG|");
    char *xid = strstr(line, "(xid=");
    char *received = strstr(line, ": received: ");
    char *sent = strstr(line, ": sent (Success): ");
    char *id;

    if (!connection || !xid || (!received && !sent)) {
        return;
    }
    connection += strlen("|vconn|DBG|");
    *(received ? received : sent) = '\0';
    id = xasprintf("%s %.*s", connection, (int) strcspn(xid + 5, ")"),
                   xid + 5);
    if (received) {
        take_received(r, connection, id, received + strlen(": received: "));
    } else {
        take_sent(r, connection, id, sent + strlen(": sent (Success): "));
    }
    free(id);
}

void
switch_log_parse(FILE *stream, struct switch_log_counts *counts)
{
    struct reader r = { .foreign = SSET_INITIALIZER(&r.foreign),
                        .counts = counts };
    char *line = NULL;
    size_t size = 0;

    *counts = (struct switch_log_counts) { .roles = 0 };
    while (getline(&line, &size, stream) >= 0) {
        take_line(&r, line);
    }
    counts->foreign = sset_count(&r.foreign);
    sset_destroy(&r.foreign);
    free(line);
    free(r.primary);
    free(r.wishes);
}

char *
switch_log_read(const char *file, struct switch_log_counts *counts)
{
    FILE *stream = fopen(file, "r");

    if (!stream) {
        return xasprintf("%s: cannot be read (%s)", file, ovs_strerror(errno));
    }
    switch_log_parse(stream, counts);
    fclose(stream);
    return NULL;
}
