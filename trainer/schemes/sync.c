/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/schemes/sync.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/schemes/shard.h"

const struct sync_class *const sync_classes[] = {
    &sync_bsp, &sync_asp, &sync_ssp, &sync_essp, &sync_backup, &sync_static,
    &sync_lbbsp_cpu, &sync_lbbsp_gpu, &sync_flexrr, &sync_groups, NULL,
};

char *
sync_spec_parse(const char *text, struct sync_spec *spec)
{
    char *error = sync_spec_read(text, spec);

    for (size_t i = 0; !error && !spec->class; i++) {
        assert(sync_classes[i]);        /* Each that can be named is here. */
        if (!strcmp(sync_classes[i]->name, spec->name)) {
            spec->class = sync_classes[i];
        }
    }
    return error;
}

char *
sync_assigned_shard(const struct sync_message *m, uint64_t batch,
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
