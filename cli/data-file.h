/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATA_FILE_H
#define DATA_FILE_H 1

/* Files that are installed with the program, and policies by name.
 *
 * The name of a policy that has a '/' or ends in ".json" is a file.  Any other
 * name is an installed policy; '+' stands for '-', so that "stage+early" is
 * the policy "stage-early". */

struct policy;

/* Returns the path of 'name', such as "policies/fair.json", in the data
 * directory of the installed program or in the source tree of the build, or
 * NULL if neither has the file.  The caller must free it. */
char *data_file_find(const char *name);

/* Returns the names of the installed policies, sorted and followed by NULL.
 * The caller frees the names and the array. */
char **policy_names(void);

/* Stores the path of the policy, which the caller must free, or NULL.  Returns
 * NULL or a malloc()'d message. */
char *policy_find(const char *name, char **filep);

/* Reads the policy, which the caller must free, or stores NULL.  Returns NULL
 * or a malloc()'d message. */
char *policy_open(const char *name, struct policy **);

#endif /* cli/data-file.h */
