/* SPDX-License-Identifier: Apache-2.0 */

/* Fuzzes the readers of topologies of other systems.  The first byte selects
 * the format. */

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/topology/import.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Checks that the tree of 'im' is complete. */
static void
check_tree(const struct import *im)
{
    must(im->n_switches);
    for (size_t i = 0; i < im->n_switches; i++) {
        must(im->switches[i].added);
        must(im->switches[i].parent < (int) im->n_switches);
        must(import_find_switch(im, im->switches[i].name) == (int) i);
    }
    for (size_t i = 0; i < im->n_hosts; i++) {
        must(*im->hosts[i].name && strlen(im->hosts[i].name) <= 31);
        must(im->hosts[i].parent >= 0
             && im->hosts[i].parent < (int) im->n_switches);
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
    im = import_create("fuzz");
    if (*data == 's') {
        import_slurm(im, text);
    } else if (*data == 't') {
        import_topograph(im, text, NULL);
    } else {
        import_volcano(im, text);
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
