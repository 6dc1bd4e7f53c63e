/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/steal.h"

#include <assert.h>

static void
post(struct steal *s, enum sync_kind kind, uint32_t to, uint64_t iteration,
     uint32_t first, uint32_t n)
{
    assert(s->n_posts < STEAL_MAX_POSTS);
    s->posts[(s->first_post + s->n_posts++) % STEAL_MAX_POSTS] =
        (struct sync_message) {
            .kind = kind, .worker = to, .iteration = iteration,
            .first = first, .n = n,
        };
}

bool
steal_post(struct steal *s, struct sync_message *m)
{
    if (!s->n_posts) {
        return false;
    }
    *m = s->posts[s->first_post];
    s->first_post = (s->first_post + 1) % STEAL_MAX_POSTS;
    s->n_posts--;
    return true;
}

/* Messages of the iteration before stay queued. */
void
steal_begin(struct steal *s, uint32_t rank, uint32_t n_workers,
            uint64_t iteration, uint32_t first, uint32_t n)
{
    s->rank = rank;
    s->n_workers = n_workers;
    s->iteration = iteration;
    s->state = STEAL_OWN;
    s->first = first;
    s->end = first + n;
    s->help_first = s->help_end = 0;
}

bool
steal_idle(const struct steal *s)
{
    return s->state == STEAL_DONE;
}

static void
ask_others(struct steal *s)
{
    if (s->n_workers == 1) {
        s->state = STEAL_DONE;
        return;
    }
    s->state = STEAL_ASKING;
    s->n_statuses = 0;
    s->best.n = 0;
    post(s, SYNC_FIND, s->rank, s->iteration, 0, 0);
}

bool
steal_next(struct steal *s, uint32_t piece, uint32_t *firstp, uint32_t *np)
{
    uint32_t *first, end;

    s->piece = piece;
    if (s->state == STEAL_OWN) {
        first = &s->first;
        end = s->end;
    } else if (s->state == STEAL_HELPING) {
        first = &s->help_first;
        end = s->help_end;
    } else {
        return false;
    }
    if (*first == end) {
        ask_others(s);
        return false;
    }
    *firstp = *first;
    *np = end - *first < piece ? end - *first : piece;
    *first += *np;
    return true;
}

/* All have answered: asks the worker with the most samples left for half of
 * them, at most a piece, since other helpers ask at the same time.  Less than
 * half a piece is not worth it. */
static void
ask_for_samples(struct steal *s)
{
    uint32_t n = s->best.n / 2;

    n = n < s->piece ? n : s->piece;
    if (!n || s->best.n < s->piece / 2) {
        s->state = STEAL_DONE;
        return;
    }
    s->state = STEAL_CLAIMING;
    post(s, SYNC_HELP, s->best.worker, s->iteration,
         s->best.first + s->best.n - n, n);
}

static void
give_status(struct steal *s, const struct sync_message *m)
{
    bool gives = s->state == STEAL_OWN && m->iteration == s->iteration;

    post(s, SYNC_STATUS, m->worker, m->iteration, s->first,
         gives ? s->end - s->first : 0);
}

/* A helper asks for the end of our range: gives it, if that has not moved and
 * has not been started. */
static void
give_work(struct steal *s, const struct sync_message *m)
{
    bool gives = s->state == STEAL_OWN && m->iteration == s->iteration
                 && m->first >= s->first && m->first < s->end
                 && m->n == s->end - m->first;

    if (gives) {
        s->end = m->first;
    }
    post(s, gives ? SYNC_CONFIRM : SYNC_CANCEL, m->worker, m->iteration,
         m->first, m->n);
}

void
steal_take(struct steal *s, const struct sync_message *m)
{
    bool now = m->iteration == s->iteration;

    switch (m->kind) {
    case SYNC_FIND:
        give_status(s, m);
        break;
    case SYNC_STATUS:
        if (now && s->state == STEAL_ASKING) {
            if (m->n > s->best.n) {
                s->best = *m;
            }
            if (++s->n_statuses == s->n_workers - 1) {
                ask_for_samples(s);
            }
        }
        break;
    case SYNC_HELP:
        give_work(s, m);
        break;
    case SYNC_CONFIRM:
        if (now && s->state == STEAL_CLAIMING) {
            s->state = STEAL_HELPING;
            s->help_first = m->first;
            s->help_end = m->first + m->n;
        }
        break;
    case SYNC_CANCEL:
        if (now && s->state == STEAL_CLAIMING) {
            ask_others(s);
        }
        break;
    default:
        break;
    }
}
