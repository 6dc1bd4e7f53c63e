/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATABASE_FOLDER_H
#define DATABASE_FOLDER_H 1

/* Watches the directory of the databases: free space, and damaged files.
 *
 * A database that cannot write gives up its membership, so the controller
 * deletes old rows of its history before the disk is full, and has an alarm.
 * The files NAME.db.alarm say what was lost with a damaged database
 * (database-file.h): each is an alarm until an operator removes it.
 *
 *    folder = database_folder_create("/var/lib/stagecoach");
 *    if (database_folder_run(folder)) {
 *        ...delete what is dispensable...
 *    }
 *    database_folder_alarms(folder, alarms);
 *    database_folder_wait(folder);
 *
 * Main thread only; reads the directory once a second. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct database_folder;
struct json;

/* Less free space than this is an alarm. */
#define DATABASE_FOLDER_MIN_SPACE (INT64_C(64) << 20)

/* 'directory' is null if it is not watched. */
struct database_folder *database_folder_create(const char *directory);
void database_folder_destroy(struct database_folder *);

/* Returns true if there is too little space and it is time to delete
 * something: once when space becomes low, and every ten seconds from then. */
bool database_folder_run(struct database_folder *);
void database_folder_wait(const struct database_folder *);

/* Returns true once after each time that a database was found to be
 * damaged. */
bool database_folder_take_damage(struct database_folder *);

/* Bytes that are free, INT64_MAX if unknown; databases with an alarm. */
int64_t database_folder_space(const struct database_folder *);
size_t database_folder_n_damaged(const struct database_folder *);

/* Appends each alarm (wire/alarm.h). */
void database_folder_alarms(const struct database_folder *,
                            struct json *alarms);

#endif /* controller/ovsdb/database-folder.h */
