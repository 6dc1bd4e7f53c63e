/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TOKEN_H
#define TOKEN_H 1

/* The secret of a job, by which its processes know each other.
 *
 * A server believes the first worker that connects what the job trains, and
 * workers by their rank.  Without a secret, any program that reaches the port
 * could be the first, or take the place of a worker or of a group server that
 * is away.
 *
 * So a launcher makes a token for each job and gives it to all processes of
 * the job, in $STAGECOACH_TOKEN or in a file (--token-file).  The frames that
 * begin a connection contain it (frame.h), and one that has another token is
 * refused with one line.  Processes that have none accept others that have
 * none.  The token travels in plain text, like everything that a job sends: it
 * does not protect against attackers that read the network.
 *
 *    char *token = token_create();           // By the launcher.
 *
 *    error = token_load(file);               // Once, by each process.
 *    token_put(frame_token);
 *    if (!token_is_right(their_token)) ...
 *
 * One token for each process, loaded before its threads start. */

#include <stdbool.h>
#include <stdint.h>

#define TOKEN_LENGTH 16         /* Bytes, in a frame. */
#define TOKEN_VARIABLE "STAGECOACH_TOKEN"

/* Returns a new random token, 32 hexadecimal digits that the caller frees. */
char *token_create(void);

/* Makes the contents of 'file', or $STAGECOACH_TOKEN if it is null, the token
 * of this process; with neither it has none.  Returns NULL or a message. */
char *token_load(const char *file);

void token_put(uint8_t to[TOKEN_LENGTH]);

/* Takes the same time for each wrong token. */
bool token_is_right(const uint8_t theirs[TOKEN_LENGTH]);

#endif /* trainer/net/token.h */
