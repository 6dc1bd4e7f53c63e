/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATA_FILE_H
#define DATA_FILE_H 1

/* Returns the path of 'dir'/'name' (such as "policies", "fair.json") in the
 * data directory of the installed program or in the source tree of the build,
 * or NULL if neither has the file.  The caller must free it. */
char *data_file_find(const char *dir, const char *name);

#endif /* cli/data-file.h */
