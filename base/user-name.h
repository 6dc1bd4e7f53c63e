/* SPDX-License-Identifier: Apache-2.0 */

#ifndef USER_NAME_H
#define USER_NAME_H 1

/* Names of users, for audit records and for the owners of searches.
 *
 * The kernel provides the user's number, so that no variable of the
 * environment can change the name, except SUDO_USER for root.  The caller
 * frees the names.  Thread-safe. */

#include <sys/types.h>

/* Returns the name of user 'uid', "uid-1234" for a user without a name. */
char *user_name_of(uid_t uid);

/* Returns the user of this process or, if root runs it with sudo, the user
 * that called sudo. */
char *user_name(void);

/* Returns the number of that user, 0 for root, which acts for all users. */
uid_t user_id(void);

#endif /* base/user-name.h */
