/* SPDX-License-Identifier: Apache-2.0 */

/* Checks that a switch obeyed one controller at a time.
 *
 *     switch-masters LOG
 *
 * LOG is the log of a switch (lab/measure/switch-log.h).  Exits with 1 if the
 * switch accepted changes of a second controller or a primary of an older
 * generation, or if no controller became primary. */

#include <config.h>

#include <stdio.h>
#include <stdlib.h>

#include "lab/measure/switch-log.h"

int
main(int argc, char *argv[])
{
    struct switch_log_counts c;
    char *error;

    if (argc != 2) {
        fprintf(stderr, "usage: switch-masters LOG\n");
        return EXIT_FAILURE;
    }
    error = switch_log_read(argv[1], &c);
    if (error) {
        fprintf(stderr, "%s\n", error);
        free(error);
        return EXIT_FAILURE;
    }
    printf("%u changes, %u primary roles, %u refused, %u backwards, "
           "%u foreign\n",
           c.changes, c.roles, c.refused, c.backwards, c.foreign);
    return c.backwards || c.foreign || !c.roles ? EXIT_FAILURE
                                                : EXIT_SUCCESS;
}
