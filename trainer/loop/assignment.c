/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/loop/assignment.h"

#include "base/memory.h"
#include "trainer/schemes/sync.h"

char *
assignment_take(const struct sync_message *m, uint64_t batch,
                struct shard *share)
{
    uint64_t end = (uint64_t) m->first + m->n;

    if (!m->total || end > m->total) {
        return message("assignment of %u samples from %u of %u", m->n,
                       m->first, m->total);
    }
    share->first = batch * m->first / m->total;
    share->n = batch * end / m->total - share->first;
    return NULL;
}
