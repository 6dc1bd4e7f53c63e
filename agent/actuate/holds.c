/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/actuate/holds.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "util.h"
#include "wire/hold-page.h"
#include "wire/shim-protocol.h"

VLOG_DEFINE_THIS_MODULE(holds);

#define DEFAULT_MIN_SHARE (SHIM_MIN_SHARE_UNIT / 50)

struct hold {
    struct hold_page *page; /* NULL if it could not be made. */
    char *path;
    long long moved_at; /* time_msec(). */
    uint64_t place;     /* As of the current run. */
};

static int
remove_one(const char *path, const struct stat *s OVS_UNUSED,
           int kind OVS_UNUSED, struct FTW *ftw OVS_UNUSED)
{
    ignore(remove(path));
    return 0;
}

void
holds_init(struct holds *h, const char *rundir)
{
    h->dir = xasprintf("%s/holds", rundir);
    shash_init(&h->all);
    nftw(h->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static void
set_until(struct hold *hold, uint64_t until)
{
    if (hold->page) {
        __atomic_store_n(&hold->page->until_ms, until, __ATOMIC_RELAXED);
    }
}

static void
hold_destroy(struct hold *hold)
{
    set_until(hold, 0);
    if (hold->page) {
        munmap(hold->page, HOLD_PAGE_BYTES);
        unlink(hold->path);
        *strrchr(hold->path, '/') = '\0';
        rmdir(hold->path); /* Of the cojob, if it is empty. */
    }
    free(hold->path);
    free(hold);
}

void
holds_uninit(struct holds *h)
{
    struct shash_node *node;

    SHASH_FOR_EACH (node, &h->all) {
        hold_destroy(node->data);
    }
    shash_destroy(&h->all);
    rmdir(h->dir);
    free(h->dir);
}

/* Makes the page at 'path', below 'dir'.  Returns NULL and sets errno if that
 * is impossible. */
static struct hold_page *
make_page(const char *dir, char *path)
{
    char *slash = strrchr(path, '/');
    void *page = MAP_FAILED;
    int error, fd;

    *slash = '\0';
    mkdir(dir, 0755);
    mkdir(path, 0755);
    *slash = '/';
    fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (fd >= 0 && !ftruncate(fd, HOLD_PAGE_BYTES)) {
        page = mmap(NULL, HOLD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                    fd, 0);
    }
    error = errno;
    if (fd >= 0) {
        close(fd);
    }
    errno = error;
    return page == MAP_FAILED ? NULL : page;
}

/* 'job' has transferred something. */
void
holds_moved(struct holds *h, const char *job, long long now)
{
    struct hold *hold = shash_find_data(&h->all, job);

    if (!hold) {
        hold = xzalloc(sizeof *hold);
        hold->path = xasprintf("%s/%s", h->dir, job);
        hold->page = make_page(h->dir, hold->path);
        if (!hold->page) {
            static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

            VLOG_WARN_RL(&rl, "%s: cannot be made, its job is not held (%s)",
                         hold->path, ovs_strerror(errno));
        }
        shash_add(&h->all, job, hold);
    }
    hold->moved_at = now;
}

void
holds_remove(struct holds *h, const char *job)
{
    struct hold *hold = shash_find_and_delete(&h->all, job);

    if (hold) {
        hold_destroy(hold);
    }
}

static int
compare_places(const void *a_, const void *b_)
{
    const struct hold *a = *(struct hold *const *) a_;
    const struct hold *b = *(struct hold *const *) b_;

    return a->place < b->place ? -1 : a->place > b->place;
}

/* Sets until when each job of 'list' is held, in order of their places, but
 * not beyond 'limit'. */
static void
hold_all(struct hold **list, size_t n, long long limit, long long now)
{
    long long before = 0; /* The last progress of an earlier place. */

    for (size_t i = 0; i < n;) {
        uint64_t place = list[i]->place;
        long long until = MIN(before + HOLD_MS, limit);

        for (; i < n && list[i]->place == place; i++) {
            set_until(list[i], until > now ? until : 0);
            before = MAX(before, list[i]->moved_at);
        }
    }
}

/* Holds jobs by 'order'.  'wall' is the time of the clock in ms. */
void
holds_run(struct holds *h, const struct holds_order *order, long long now,
          long long wall)
{
    uint32_t share = order->min_share == SHIM_MIN_SHARE_DEFAULT
                         ? DEFAULT_MIN_SHARE
                         : order->min_share;
    long long open = (double) HOLD_PERIOD_MS * share / SHIM_MIN_SHARE_UNIT;
    long long phase = wall % HOLD_PERIOD_MS;
    size_t n = shash_count(&h->all), i = 0;
    struct shash_node *node;
    struct hold **list;

    if (n < 2) {
        return;
    }
    list = xmalloc(n * sizeof *list);
    SHASH_FOR_EACH (node, &h->all) {
        list[i] = node->data;
        list[i++]->place = order->place(node->name, order->aux);
    }
    qsort(list, n, sizeof *list, compare_places);
    if (phase < open) {
        hold_all(list, n, 0, now);
        poll_timer_wait_until(now + open - phase);
    } else {
        hold_all(list, n, MIN(order->until, now + HOLD_PERIOD_MS - phase),
                 now);
    }
    free(list);
}
