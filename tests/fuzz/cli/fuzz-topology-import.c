/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the readers of topologies of other systems.  The first byte selects
 * the format. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/topology/import.h"
#include "tests/fuzz/must.h"

#define NODES                                                     \
    "{\"items\": [{\"metadata\": {\"name\": \"n1\", \"labels\": " \
    "{\"rack\": \"r1\"}}}, {\"metadata\": {\"name\": \"n2\"}}]}"

/* Checks that the tree of 'im' is complete. */
static void
check_tree(const struct import *im)
{
    must(im->n > im->n_hosts);
    for (size_t i = 0; i < im->n; i++) {
        const struct import_node *node = &im->nodes[i];

        must(node->is_host ? node->parent >= 0 : node->added);
        must(node->parent < (int) im->n);
        must(node->parent < 0 || !im->nodes[node->parent].is_host);
        must(*node->name && strlen(node->name) <= 31);
        must(import_find(im, node->name, node->is_host) == (int) i);
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct import *im;
    char *text, *error;

    if (!size) {
        return 0;
    }
    text = copy_text(data + 1, size - 1);
    if (strcasestr(text, "include")) { /* Reads no other files. */
        free(text);
        return 0;
    }
    im = import_create("fuzz");
    if (*data == 's') {
        import_slurm(im, text);
    } else if (*data == 't') {
        import_topograph(im, text, NULL);
    } else {
        import_volcano(im, text, NODES);
    }
    import_finish(im);
    if (import_ok(im)) {
        check_tree(im);
    }
    error = import_destroy(im);
    if (error) {
        must_be_message(error, "fuzz:");
    }
    free(error);
    free(text);
    return 0;
}
