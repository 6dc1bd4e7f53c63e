/* SPDX-License-Identifier: Apache-2.0 */

#ifndef NCCL_DOOR_H
#define NCCL_DOOR_H 1

/* What the plug-ins of NCCL report to the agent, and get from it.
 *
 * A process belongs to the job that STAGECOACH_COJOB and STAGECOACH_JOB name,
 * which its launcher sets; without them everything here does nothing.  What
 * has moved is reported in a datagram of progress at most every
 * DOOR_REPORT_MS, and at once after a pause: the agent derives from it that
 * the job is active.  Bytes that could not be sent wait for the next datagram.
 * The page of the job (wire/hold-page.h) is mapped when the agent has made it,
 * and looked up again every second, as the agent may have been restarted.
 *
 *    door_moved(sent, received, 0);    // With each transfer, or
 *    door_moved(0, 0, posted);         // of the network plug-in.
 *    door_counted(iterations);
 *    if (door_holds()) ...post nothing yet...
 *    door_leave();                     // Reports the rest.
 *
 * Nothing blocks, fails or allocates.  One door per process and library;
 * thread-safe. */

#include <stdbool.h>
#include <stdint.h>

#define DOOR_REPORT_MS 40

void door_moved(uint64_t sent, uint64_t received, uint64_t posted);
void door_counted(int64_t iterations);
void door_leave(void);
bool door_holds(void);

/* Opens the plug-in that the environment names by 'variable': a path, or the
 * part of "libnccl-KIND-NAME.so" that NCCL takes, too.  Returns a handle of
 * dlopen(); or NULL, after one line on standard error unless the variable is
 * not set. */
void *door_open_inner(const char *variable, const char *kind);

#endif /* agent/launch/nccl/door.h */
