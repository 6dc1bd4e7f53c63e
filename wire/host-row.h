/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_ROW_H
#define HOST_ROW_H 1

/* Limits of what a host may write to its row of Host_Reported.
 *
 * The schema limits the number of entries and the length of each; the sum of
 * all is limited by the agent, which cuts, and by the controller, which drops
 * the row of a host that does not keep to it.
 *
 *    host_row_cut(&health);
 *    fits = host_row_fits(&health);
 *
 * No state. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "smap.h"

#define HOST_ROW_MAX_BYTES (64 * 1024)
#define HOST_ROW_MAX_ENTRIES 1024
#define HOST_ROW_MAX_VALUE 4096 /* Bytes of a value, as in the schema. */

static inline bool
host_row_fits(const struct smap *health)
{
    const struct smap_node *node;
    size_t n = 0;

    SMAP_FOR_EACH (node, health) {
        n += strlen(node->key) + strlen(node->value);
    }
    return n <= HOST_ROW_MAX_BYTES
           && smap_count(health) <= HOST_ROW_MAX_ENTRIES;
}

/* Removes values that are too long, and the longest others until the rest
 * fits. */
static inline void
host_row_cut(struct smap *health)
{
    struct smap_node *node, *longest;

    do {
        longest = NULL;
        SMAP_FOR_EACH (node, health) {
            if (!longest || strlen(node->value) > strlen(longest->value)) {
                longest = node;
            }
        }
        if (longest && strlen(longest->value) <= HOST_ROW_MAX_VALUE
            && host_row_fits(health)) {
            return;
        } else if (longest) {
            smap_remove_node(health, longest);
        }
    } while (longest);
}

#endif /* wire/host-row.h */
