/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DASHBOARD_FILE_H
#define DASHBOARD_FILE_H 1

/* The files of the dashboard, in the program.
 *
 * A controller is one program without files beside it that could be of
 * another version, so embed.py makes a table of ui/ when it is built.  All of
 * it lives as long as the program. */

#include <stddef.h>

struct dashboard_file {
    const char *path;           /* "/ui/main.js". */
    const char *type;           /* As Content-Type has it. */
    const char *tag;            /* As ETag has it, with its quotes. */
    const unsigned char *bytes;
    size_t n;
};

extern const struct dashboard_file dashboard_files[];   /* By path. */
extern const size_t n_dashboard_files;

#endif /* controller/northbound/dashboard/dashboard-file.h */
