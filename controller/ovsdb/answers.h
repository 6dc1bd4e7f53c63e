/* SPDX-License-Identifier: Apache-2.0 */

#ifndef ANSWERS_H
#define ANSWERS_H 1

/* Whether the database of an IDL answers.
 *
 * A connection is weak evidence that a server works: the kernel accepts
 * connections in the name of a process that hangs, and an IDL counts as
 * connected from there.  With probes alone a server that hangs therefore seems
 * to be connected again after each probe that it did not answer.
 *
 * A server answers if it has sent the contents of the database on the current
 * connection, and its last message is less than ANSWERS_MS old.  The library
 * guarantees the second half: after ANSWERS_PROBE_MS without a message it
 * sends a probe, and after as much time again it disconnects.
 *
 *    answers_run(&answers, connected, seqno);    // After ovsdb_idl_run().
 *    if (answers.now) {
 *        ...
 *    }
 *
 * The IDL must have the probe interval ANSWERS_PROBE_MS; 'connected' and
 * 'seqno' are its ovsdb_idl_is_connected() and ovsdb_idl_get_seqno().
 *
 * Must run after each ovsdb_idl_run().  No resources. */

#include <stdbool.h>

#define ANSWERS_MS 2500
#define ANSWERS_PROBE_MS (ANSWERS_MS / 2)

struct answers {
    bool now;                   /* The server answers. */
    unsigned int seqno;         /* Of the IDL while it was last disconnected:
                                 * the contents of the database change it. */
};

static inline void
answers_run(struct answers *a, bool connected, unsigned int seqno)
{
    if (!connected) {
        a->seqno = seqno;
    }
    a->now = connected && seqno != a->seqno;
}

#endif /* controller/ovsdb/answers.h */
