/* SPDX-License-Identifier: Apache-2.0 */

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "trainer/schemes/sync.h"

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
