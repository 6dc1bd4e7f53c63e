/* SPDX-License-Identifier: Apache-2.0 */

#ifndef HOST_LIST_H
#define HOST_LIST_H 1

/* Lists of host names as Slurm writes them: "login,node[01-16,20]".
 *
 * A number keeps the width of the first one of its range: "[08-10]" is 08, 09,
 * 10.  A name may have several brackets.
 *
 *    error = host_list_expand("node[1-3]", 4096, &names, &n);
 *    free_strings(names, n);
 */

#include <stddef.h>

/* Longest name that results. */
#define HOST_LIST_MAX_NAME 255

/* Stores the names in '*namesp', which the caller frees, also after an error.
 * Returns NULL or a message, for example for more than 'max' names. */
char *host_list_expand(const char *text, size_t max, char ***namesp,
                       size_t *np);

#endif /* cli/topology/host-list.h */
