/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_DIRECTORY_H
#define BASE_DIRECTORY_H 1

/* Creates the directory 'path' and those above it that do not exist.  Returns
 * NULL, or a message() that the caller frees. */
char *directory_create(const char *path);

#endif /* base/directory.h */
