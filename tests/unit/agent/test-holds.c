/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/actuate/holds.h"
#include "tests/unit/unit-test.h"
#include "util.h"
#include "wire/hold-page.h"
#include "wire/shim-protocol.h"

#define NOW 1000000
#define CLOSED (HOLD_PERIOD_MS / 2) /* A time at which some may not send. */

struct fixture {
    char dir[32];
    struct holds holds;
};

FIXTURE_SET_UP
{
    strcpy(f->dir, "/tmp/sct-holds-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    holds_init(&f->holds, f->dir);
}

FIXTURE_TEAR_DOWN
{
    holds_uninit(&f->holds);
    assert_int_equal(rmdir(f->dir), 0); /* Nothing is left. */
}

/* "a/0" is at place 0, and "a/x" at none. */
static uint64_t
place(const char *job, void *aux OVS_UNUSED)
{
    return job[2] == 'x' ? HOLD_LAST : job[2] - '0';
}

/* Returns until when the page of 'job' holds it, after NOW. */
static long long
held(struct fixture *f, const char *job)
{
    char *path = xasprintf("%s/holds/%s", f->dir, job);
    struct hold_page page;
    struct stat s;
    int fd = open(path, O_RDONLY);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &s), 0);
    assert_int_equal(s.st_size, HOLD_PAGE_BYTES);
    assert_int_equal(s.st_mode & 0777, 0644);
    assert_int_equal(read(fd, &page, sizeof page), sizeof page);
    close(fd);
    free(path);
    return page.until_ms ? (long long) page.until_ms - NOW : 0;
}

FIXTURE_TEST(jobs_wait_for_those_before_them)
{
    /* Time since the last progress of each job, and until when it is held. */
    static const struct {
        const char *name;
        int age, held, lease, share_of_100, wall;
    } rows[][3] = {
        { { "a/0", 10, 0 }, { "a/1", 20, 80 }, { "a/2", 5, 80 } },
        { { "a/0", 10, 0 }, { "a/0", 10, 0 }, { "a/x", 5, 80 } },
        { { "a/0", 99, 0 }, { "a/1", 20, 0 }, { "a/2", 5, 70 } },
        { { "a/x", 1, 70 }, { "b/x", 2, 70 }, { "a/7", 20, 0 } },
        /* The lease has ended, or ends. */
        { { "a/0", 1, 0, -1 }, { "a/1", 1, 0, -1 }, { "a/2", 1, 0, -1 } },
        { { "a/0", 1, 0, 30 }, { "a/1", 1, 30, 30 }, { "a/2", 1, 30, 30 } },
        /* The minimum share: all may send, or will. */
        { { "a/0", 1, 0, 900, 51 },
          { "a/1", 1, 0, 900, 51 },
          { "a/2", 1, 0, 900, 51 } },
        { { "a/0", 1, 0, 900, 5, 1960 },
          { "a/1", 1, 40, 900, 5, 1960 },
          { "a/2", 1, 40, 900, 5, 1960 } },
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct holds_order order = {
            .until = NOW + (rows[i][0].lease ? rows[i][0].lease : 900),
            .min_share =
                rows[i][0].share_of_100
                    ? SHIM_MIN_SHARE_UNIT / 100 * rows[i][0].share_of_100
                    : SHIM_MIN_SHARE_DEFAULT,
            .place = place
        };

        for (int j = 0; j < 3; j++) {
            holds_moved(&f->holds, rows[i][j].name, NOW - rows[i][j].age);
        }
        holds_run(&f->holds, &order, NOW,
                  rows[i][0].wall ? rows[i][0].wall : CLOSED);
        for (int j = 0; j < 3; j++) {
            assert_int_equal(held(f, rows[i][j].name), rows[i][j].held);
        }
        for (int j = 0; j < 3; j++) {
            holds_remove(&f->holds, rows[i][j].name);
        }
    }
}

FIXTURE_TEST(pages_of_an_earlier_agent_are_removed)
{
    struct holds next;
    char *path = xasprintf("%s/holds/a/0", f->dir);

    holds_moved(&f->holds, "a/0", NOW);
    assert_int_equal(access(path, F_OK), 0);
    holds_init(&next, f->dir);
    assert_int_equal(access(path, F_OK), -1);
    holds_uninit(&next);
    free(path);
}
