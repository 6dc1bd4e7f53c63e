/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/guests.h"

#include <assert.h>

#include "sim/rates/member.h"
#include "order/problem/memory.h"

static bool
is_before(const struct guest *guest, const struct member *m)
{
    return guest->rank != m->rank ? guest->rank < m->rank
           : guest->member->id < m->id;
}

size_t
guests_find(const struct guests *port, const struct member *m)
{
    size_t low = 0;
    size_t high = port->n;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (is_before(&port->guests[middle], m)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void
guests_add(struct guests *port, struct member *m)
{
    size_t i = guests_find(port, m);

    port->guests = order_grow(port->guests, port->n + 1, &port->allocated,
                            sizeof *port->guests);
    memmove(&port->guests[i + 1], &port->guests[i],
            (port->n - i) * sizeof *port->guests);
    port->guests[i] = (struct guest) { .member = m, .rank = m->rank };
    port->n++;
}

void
guests_remove(struct guests *port, const struct member *m)
{
    size_t i = guests_find(port, m);

    assert(i < port->n && port->guests[i].member == m);
    port->n--;
    memmove(&port->guests[i], &port->guests[i + 1],
            (port->n - i) * sizeof *port->guests);
}

/* The list is nearly sorted as a rule. */
void
guests_sort(struct guests *port)
{
    for (size_t i = 0; i < port->n; i++) {
        struct guest guest = port->guests[i];
        size_t j = i;

        guest.rank = guest.member->rank;
        for (; j && !is_before(&port->guests[j - 1], guest.member); j--) {
            port->guests[j] = port->guests[j - 1];
        }
        port->guests[j] = guest;
    }
}
