/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATA_FILE_H
#define DATA_FILE_H 1

/* Returns 'dir'/'name' ("policies", "fair.json") in the data directory of the
 * installed program or in the source tree that it was built from, or NULL if
 * neither has it.  The caller frees it. */
char *data_file_find(const char *dir, const char *name);

#endif /* cli/data-file.h */
