/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAINER_THREAD_H
#define TRAINER_THREAD_H 1

/* Threads beside the main one.
 *
 *    error = thread_start(&id, "heartbeats", heartbeat_main, heartbeat);
 *    if (!error) {
 *        pthread_join(id, NULL);
 *    }
 *
 * Such a thread blocks all signals: the main thread polls for them. */

#include <pthread.h>

/* Returns NULL or a message "PLACE: cannot start a thread: WHY". */
char *thread_start(pthread_t *, const char *place, void *(*main)(void *),
                   void *aux);

#endif /* trainer/process/thread.h */
