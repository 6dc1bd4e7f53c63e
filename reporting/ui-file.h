/* SPDX-License-Identifier: Apache-2.0 */

#ifndef UI_FILE_H
#define UI_FILE_H 1

/* Files for browsers that embed.py compiles into a program, so that a program
 * and its pages always have the same version.  All of it is static. */

#include <stddef.h>

struct ui_file {
    const char *path;           /* URL path, such as "/ui/main.js". */
    const char *type;           /* Value of the header Content-Type. */
    const char *tag;            /* Value of the header ETag, with quotes. */
    const unsigned char *bytes;
    size_t n;                   /* Size of 'bytes'. */
};

extern const struct ui_file dashboard_files[];  /* Sorted by file name. */
extern const size_t n_dashboard_files;

/* The template of a report's page, with styles and scripts inline: text with
 * marks such as "<!-- title -->".  See report-html.c. */
extern const char report_page[];

#endif /* reporting/ui-file.h */
