/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/intent/intent-client.h"

#include <stdlib.h>

#include "controller/intent/intent-edit.h"
#include "controller/intent/intent-writer.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(intent_client);

/* Longest time that an announcement waits during an outage. */
#define OUTAGE_TIMEOUT_MS 50

/* Longest time that intent_client_destroy() waits.  An election takes less. */
#define LAST_TIMEOUT_MS 5000

struct intent_client {
    struct intent_writer *writer;
    char *remote;               /* For messages. */
    int timeout_ms;             /* Of each call. */
    bool outage;                /* The last announcement is still queued. */
};

struct intent_client *
intent_client_create(const char *remote, int timeout_ms)
{
    struct intent_client *ic = xzalloc(sizeof *ic);

    ic->writer = intent_writer_create(remote, 0);
    ic->remote = xstrdup(remote);
    ic->timeout_ms = timeout_ms;
    return ic;
}

/* Runs the writer until its queue is empty, for at most 'timeout_ms'.  Returns
 * false if edits are left. */
static bool
run_writer(struct intent_client *ic, int timeout_ms)
{
    long long deadline = time_msec() + timeout_ms;

    for (;;) {
        intent_writer_run(ic->writer);
        if (intent_writer_is_idle(ic->writer)) {
            return true;
        } else if (time_msec() >= deadline) {
            return false;
        }
        intent_writer_wait(ic->writer);
        poll_timer_wait_until(deadline);
        poll_block();
    }
}

/* Announcements that are still queued are written now if the database replies
 * in time. */
void
intent_client_destroy(struct intent_client *ic)
{
    if (ic) {
        run_writer(ic, LAST_TIMEOUT_MS);
        intent_writer_destroy(ic->writer);
        free(ic->remote);
        free(ic);
    }
}

struct outcome {
    bool done;                  /* The other members are set. */
    enum intent_result result;
    char *error;                /* NULL if the edit is written. */
};

static void
store_outcome(void *outcome_, enum intent_result result,
              bool changed OVS_UNUSED, char *error)
{
    struct outcome *outcome = outcome_;

    *outcome = (struct outcome) { true, result, error };
}

char *
intent_client_write(struct intent_client *ic, const struct intent_edit *edit)
{
    struct outcome outcome = { .done = false };
    char *error = intent_edit_check(edit);

    if (error) {
        return error;
    }
    intent_writer_add(ic->writer, edit, NULL, ic->timeout_ms, store_outcome,
                      &outcome);
    do {
        run_writer(ic, ic->timeout_ms);
    } while (!outcome.done);
    if (outcome.result == INTENT_FAILED) {
        error = xasprintf("%s: %s", ic->remote, outcome.error);
        free(outcome.error);
        return error;
    }
    return outcome.error;
}

static void
log_error(void *aux OVS_UNUSED, enum intent_result result,
          bool changed OVS_UNUSED, char *error)
{
    if (result == INTENT_REFUSED || result == INTENT_FAILED) {
        VLOG_WARN("%s", error);
    }
    free(error);
}

void
intent_client_announce(void *ic_, const struct intent_edit *edit)
{
    struct intent_client *ic = ic_;
    int timeout_ms = ic->outage ? OUTAGE_TIMEOUT_MS : ic->timeout_ms;
    char *error = intent_edit_check(edit);
    bool written;

    if (error) {
        VLOG_WARN("%s", error);
        free(error);
        return;
    }
    intent_writer_add(ic->writer, edit, NULL, 0, log_error, NULL);
    written = run_writer(ic, timeout_ms);
    if (!written && !ic->outage) {
        VLOG_WARN("%s: no answer within %d ms; the search goes on without the "
                  "controller", ic->remote, timeout_ms);
    } else if (written && ic->outage) {
        VLOG_INFO("%s: the controller's database answers again", ic->remote);
    }
    ic->outage = !written;
}
