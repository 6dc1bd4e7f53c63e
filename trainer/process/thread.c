/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/thread.h"

#include <signal.h>
#include <string.h>

#include "base/memory.h"

char *
thread_start(pthread_t *thread, const char *place, void *(*main)(void *),
             void *aux)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, NULL, main, aux);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? message("%s: cannot start a thread: %s", place,
                           strerror(error)) : NULL;
}
