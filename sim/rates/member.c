/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/rates/member.h"

#include "order/problem/memory.h"

/* Makes 'm', which has been all 0 or has no flows, that of 'unit'. */
void
member_begin(struct member *m, struct unit *unit)
{
    size_t before = m->allocated_ties;

    m->ties = order_grow(m->ties, unit->n_work, &m->allocated_ties,
                       sizeof *m->ties);
    for (size_t i = before; i < m->allocated_ties; i++) {
        m->ties[i] = (struct tie) { .entries = NULL };
    }
    m->n_ties = unit->n_work;
    for (size_t i = 0; i < m->n_ties; i++) {
        m->ties[i].port = unit->work[i].port;
    }
    m->unit = unit;
    m->rank = unit->rank;
    m->id = unit->id;
}

void
member_destroy(struct member *m)
{
    for (size_t i = 0; i < m->allocated_ties; i++) {
        free(m->ties[i].entries);
    }
    free(m->ties);
    free(m->moving);
    free(m);
}

/* Adds 'change', 1 or -1, to the flows of each port of 'flow'. */
static void
count(struct member *m, const struct flow *flow, const struct path *path,
      int change)
{
    int last = path->n_ports - 1;

    for (int k = 0; k <= last; k++) {
        size_t i = k == 0 ? flow->work[0] : k == last ? flow->work[1]
            : unit_find_work(m->unit, path->ports[k]);

        m->ties[i].n_flows += change;
    }
}

void
member_add(struct member *m, struct flow *flow, const struct path *path)
{
    struct tie *tie = &m->ties[flow->work[0]];

    tie->entries = order_grow(tie->entries, tie->n + 1, &tie->allocated,
                            sizeof *tie->entries);
    flow->index = tie->n;
    tie->entries[tie->n++] = (struct entry) {
        flow, path->ports[path->n_ports - 1],
    };
    m->n_flows++;
    count(m, flow, path, 1);
}

void
member_remove(struct member *m, struct flow *flow, const struct path *path)
{
    struct tie *tie = &m->ties[flow->work[0]];

    tie->entries[flow->index] = tie->entries[--tie->n];
    tie->entries[flow->index].flow->index = flow->index;
    m->n_flows--;
    count(m, flow, path, -1);
}
