/* SPDX-License-Identifier: Apache-2.0 */

#ifndef DATABASE_FILE_H
#define DATABASE_FILE_H 1

/* Finds damage in the file of a database before its server reads it.
 *
 * The file of an OVSDB server is a log: each record has a length and a SHA-1.
 * A server that finds a wrong record at its start logs one warning, continues
 * with the records before it, and with its next write truncates the file: the
 * records behind the wrong one, perhaps most of the database, are gone.
 *
 * So the file is checked before each start of the server.  If it is sound, a
 * copy of it becomes FILE.good; it is replaced again while the server runs
 * (database-guard.h).  If it is damaged, it is copied to FILE.damaged-N before
 * the server can truncate it, and FILE.alarm gets a line about what was lost.
 * The controller shows that as an alarm until an operator has restored what
 * was lost and removes FILE.alarm.
 *
 * A record that is cut off by the end of the file is no damage: the power
 * failed before it was complete, so that its writer has received no
 * confirmation.
 *
 *    error = database_file_protect("/var/lib/x/intent.db");
 *
 * No state. */

#include <stddef.h>

struct database_file {
    size_t size;                /* Bytes of the file. */
    size_t good;                /* Bytes of whole records at its start. */
    size_t n_lost;              /* Records behind 'good', the damaged one
                                 * included; 0 if the file is sound. */
};

/* Checks 'file'.  Returns NULL, or a message that the caller frees if the file
 * cannot be read. */
char *database_file_check(const char *file, struct database_file *);

/* Makes FILE.good, or FILE.damaged-N and FILE.alarm.  Does nothing without
 * 'file'.  Returns NULL if the file is sound, otherwise a message that the
 * caller frees. */
char *database_file_protect(const char *file);

#endif /* controller/ovsdb/database-file.h */
