/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/loop/wake.h"

#include <errno.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

int
wake_init(struct wake *w)
{
    w->asleep = 0;
    w->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return w->fd < 0 ? errno : 0;
}

void
wake_uninit(struct wake *w)
{
    if (w->fd >= 0) {
        close(w->fd);
    }
}

/* To be called before sleeping.  The caller must read its rings after this. */
void
wake_prepare(struct wake *w)
{
    __atomic_fetch_or(&w->asleep, 1, __ATOMIC_SEQ_CST);
}

void
wake_finish(struct wake *w)
{
    uint64_t events;

    __atomic_store_n(&w->asleep, 0, __ATOMIC_RELAXED);
    if (read(w->fd, &events, sizeof events) < 0) {
        return;         /* No event; the file does not block. */
    }
}

/* Wakes the thread if it sleeps, after a ring was written.  The element was
 * written with an ordinary store, and only a read-modify-write orders that
 * before the load of the flag. */
void
wake_up(struct wake *w)
{
    uint64_t one = 1;

    if (__atomic_fetch_or(&w->asleep, 0, __ATOMIC_SEQ_CST)
        && write(w->fd, &one, sizeof one) < 0) {
        return;         /* It is readable already. */
    }
}
