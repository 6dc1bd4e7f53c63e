/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_DIRECTORY_H
#define BASE_DIRECTORY_H 1

/* Creates the directory 'path' and those above it that do not exist.  Returns
 * NULL, or a message() that the caller frees. */
char *directory_create(const char *path);

/* Returns the path of 'name' in the first of 'folders' (null-terminated) in
 * which it can be accessed with 'mode', or NULL.  Folders are absolute, or
 * relative to the folder of the running program.  The caller frees. */
char *directory_find(const char *const folders[], const char *name, int mode);

/* Checks before long work that its output can be written to the file 'path',
 * which may be null.  Returns NULL, or a message() that the caller frees. */
char *output_file_check(const char *path);

#endif /* base/directory.h */
