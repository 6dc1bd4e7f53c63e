/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LATENESS_H
#define LATENESS_H 1

/* How late a search is, compared with a network without an order.
 *
 * An order serves some searches before others, so some end later than if all
 * had shared the network.  The policy limits that: no search should take more
 * than 'latest' times its time in a plain network, from its arrival to its
 * end.  Plans avoid orders by which one would, see lookahead/judge.h.  Where
 * the key of iterations decides, the weight of a search is multiplied by
 *
 *    1 + (age of its stage / seconds that the stage may take)^4
 *
 * where the stage may take what is left until 'latest' times the end of that
 * stage in the plain network.  So a search that is ahead of the plain network
 * may wait, and one that is behind catches up.  If less than half of 'latest'
 * times the stage's time there is left, it is that half, since the search is
 * late already.  The weight has doubled when the stage reaches its limit, and
 * hardly changes the order of searches that wait a little.
 *
 * That guides and does not enforce the limit: weights that do cost 9 % of the
 * mean, because most searches that have waited are served faster than in the
 * plain network afterwards, and only a simulation tells which are not
 * (docs/notes/order.md).
 *
 * Times in the plain network are estimates, see lookahead/plain-network.h.
 *
 * Pure functions. */

#include <math.h>
#include <stdint.h>

/* Times of a search in seconds, without the pauses between its stages. */
struct plain_times {
    uint64_t id;   /* Of the running stage in the plain network; 0 before it is
                    * there, and then no time in it is known. */
    uint64_t last; /* Of the stage before, likewise. */
    double spent;  /* In the real network, of the stages before. */

    /* In the plain network, since the arrival of the search. */
    double before; /* Until the running stage begins, */
    double end;    /* until it ends, and */
    double whole;  /* until all that has been announced has ended. */
};

/* Returns the time of the running stage in the plain network, 0 if unknown. */
static inline double
plain_stage(const struct plain_times *t)
{
    return t->id ? t->end - t->before : 0;
}

/* Makes 't' the times of the next stage of a search after its running stage
 * has ended after 'seconds'.  If it was not in the plain network, its time
 * does not count. */
static inline void
plain_next(struct plain_times *t, double seconds)
{
    if (t->id) {
        *t =
            (struct plain_times){ .last = t->id, .spent = t->spent + seconds };
    }
}

/* Returns the factor of the weight of a search with stages before the running
 * one that have taken 'spent' seconds.  The running one is 'age' seconds old
 * and lasts from 'before' to 'end' in the plain network, both 0 if unknown.
 * 'latest' 0 is no limit. */
static inline double
lateness_weight(double spent, double age, double before, double end,
                double latest)
{
    double limit = fmax(latest * end - spent, latest * (end - before) / 2);

    return limit > 0 ? 1 + pow(fmax(age, 0) / limit, 4) : 1;
}

#endif /* order/problem/lateness.h */
