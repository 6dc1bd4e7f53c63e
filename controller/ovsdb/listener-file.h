/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LISTENER_FILE_H
#define LISTENER_FILE_H 1

/* Database with the TLS port of a database server.
 *
 * If the machine of the active controller is cut off, and the leader of the
 * intent database is on another one, no packet ends the controller's
 * connection.  The server gives the lock of the leadership to another
 * controller only once it has given that connection up.  It sends a probe to
 * a client that has been silent for an interval, and disconnects it after as
 * much time again.  The interval is 5 s for a port on the command line, and no
 * option changes it; if the port is a row of a database, a column of the row
 * is the interval.  The rows of the server's own database are on all members,
 * but a port has the address of one machine.  So each server gets a second
 * database, with one row.
 *
 *    error = listener_file_write("/run/x/intent-port.db",
 *                                "pssl:6641:192.0.2.1");
 *    ...execute "ovsdb-server" with LISTENER_REMOTE and the file...
 *
 * The file is written before each start of the server.  No state. */

/* Longest silence of a client.  Controllers send a probe after
 * ANSWERS_PROBE_MS (answers.h), so one that stops for less than the rest,
 * 1.75 s, keeps the leadership.  Agents come to the next controller 3 to 4 s
 * after the last lease: until then it should lead. */
#define LISTENER_SILENT_MS 3000

#define LISTENER_REMOTE "--remote=db:Stagecoach_Port,Global,connections"

/* Writes a database with the port 'target' to 'file', in place of an old one.
 * Returns NULL, or a message that the caller frees. */
char *listener_file_write(const char *file, const char *target);

#endif /* controller/ovsdb/listener-file.h */
