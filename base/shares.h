/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_SHARES_H
#define BASE_SHARES_H 1

/* Shares of a table: a user that fills it takes nothing from another.
 *
 * Tables of a host serve users that do not trust each other, and each has a
 * size.  While a table has space, each user gets the entries that it requests.
 * In a full one, a new entry takes the place of another, and the share
 * decides: the size by the number of users with entries.  A user with at most
 * its share loses no entry to another.  Of the users above it, the one with
 * most entries gives one up; among users with about as many as the one that
 * requests, the entry that was idle longest goes.  A user may replace its own
 * idle entries too.  Without such an entry the new one is refused.
 *
 * This module counts, and chooses; the caller has the entries and the users,
 * whatever a user is: a uid, a namespace of pods, a job.
 *
 *    struct shares shares = { .size = N };
 *    struct shares_user *user;           // All zeros at first.
 *
 *    if (shares_full(&shares)) {         // Or no place is free.
 *        struct shares_entry old[N_PROBES];
 *        int i = shares_choose(&shares, user, old, N_PROBES);
 *
 *        if (i < 0) {
 *            return NULL;                // Refused, and counted.
 *        }
 *        ...remove the entry of old[i]...
 *        shares_drop(&shares, old[i].user);
 *    }
 *    shares_take(&shares, user);
 *
 * The entries to choose from are those that the new one could replace.  A
 * table with a bounded number of probes for a lookup offers these places; its
 * size here is the number of entries that are sure to find one, such as an
 * eighth of its places if there are eight probes.  A table that is searched
 * as a whole offers the entry of each user that was idle longest.
 *
 * A table in memory that can grow needs no choice: when it is full,
 * shares_admit() still gives each user its share.  With the entries of 'n'
 * users the table has at most 1 + 1/2 + ... + 1/n times its size.
 *
 * Any number of threads may use a table, if they write its places atomically;
 * a choice is by the counts of that moment.  Nothing is allocated. */

#include <stdbool.h>
#include <stdint.h>

struct shares_user {
    uint32_t n;         /* Entries. */
    uint64_t n_refused; /* Entries that the user was refused, or that were
                         * replaced, because it had its share or no other
                         * could give one up.  Never decreases. */
};

struct shares {
    uint32_t size;
    uint32_t n;       /* Entries of all users. */
    uint32_t n_users; /* Users with entries. */
};

/* An entry that a new one could replace. */
struct shares_entry {
    struct shares_user *user;
    uint64_t last; /* Its last use, in any unit. */
    bool idle;     /* It is not used now, as far as is known. */
};

#define SHARES_LOAD(P) __atomic_load_n(P, __ATOMIC_RELAXED)
#define SHARES_ADD(P, N) __atomic_fetch_add(P, N, __ATOMIC_RELAXED)

/* Returns the share of a user that wants an entry. */
static inline uint32_t
shares_of(const struct shares *s, const struct shares_user *user)
{
    uint32_t others = SHARES_LOAD(&s->n_users) - (SHARES_LOAD(&user->n) > 0);

    return s->size / (others + 1);
}

/* Returns true if the table has as many entries as its size. */
static inline bool
shares_full(const struct shares *s)
{
    return SHARES_LOAD(&s->n) >= s->size;
}

static inline void
shares_take(struct shares *s, struct shares_user *user)
{
    SHARES_ADD(&s->n, 1);
    if (!SHARES_ADD(&user->n, 1)) {
        SHARES_ADD(&s->n_users, 1);
    }
}

static inline void
shares_drop(struct shares *s, struct shares_user *user)
{
    SHARES_ADD(&s->n, -1);
    if (SHARES_ADD(&user->n, -1) == 1) {
        SHARES_ADD(&s->n_users, -1);
    }
}

/* Takes an entry for 'user', unless the table is full and the user has its
 * share: then counts a refusal, and returns false. */
static inline bool
shares_admit(struct shares *s, struct shares_user *user)
{
    if (shares_full(s) && SHARES_LOAD(&user->n) >= shares_of(s, user)) {
        SHARES_ADD(&user->n_refused, 1);
        return false;
    }
    shares_take(s, user);
    return true;
}

/* Returns how much sooner than others the entry goes that a user with 'n'
 * entries and this share would replace; below 2, it stays. */
static inline uint64_t
shares_weight(const struct shares_entry *e, const struct shares_user *user,
              uint64_t n, uint32_t share)
{
    uint64_t has = SHARES_LOAD(&e->user->n);
    bool own = e->user == user;

    if (own ? !e->idle
            : has <= share || (e->idle ? 2 * has < n : has <= n + 1)) {
        return 0;
    }
    if (own) {
        has = n < share ? 0 : 1;
    } else {
        has = has <= 2 * n ? 1 : has + 1;
    }
    return 2 * (has + 1) + e->idle;
}

/* Chooses which of 'n' entries a new one of 'user' replaces.  Returns its
 * index, or -1 if the new one is refused.  Counts both. */
static inline int
shares_choose(const struct shares *s, struct shares_user *user,
              const struct shares_entry entries[], int n)
{
    uint32_t share = shares_of(s, user), has = SHARES_LOAD(&user->n);
    uint64_t most = 1;
    int best = -1;

    for (int i = 0; i < n; i++) {
        uint64_t weight = shares_weight(&entries[i], user, has, share);

        if (weight > most
            || (best >= 0 && weight == most
                && entries[i].last < entries[best].last)) {
            most = weight;
            best = i;
        }
    }
    if (best < 0) {
        SHARES_ADD(&user->n_refused, 1);
    } else if (entries[best].user != user || has >= share) {
        SHARES_ADD(&entries[best].user->n_refused, 1);
    }
    return best;
}

#endif /* base/shares.h */
