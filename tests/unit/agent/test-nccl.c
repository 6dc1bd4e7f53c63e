/* SPDX-License-Identifier: Apache-2.0 */

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "agent/launch/nccl/repeats.h"
#include "tests/unit/agent/nccl-drive.h"
#include "tests/unit/unit-test.h"
#include "wire/hold-page.h"

/* A directory of an agent, whose socket the test reads, and the page of job
 * asha/t0. */
struct fixture {
    char dir[64];
    int socket;
    struct hold_page *page;
    void *plugin;
};

static void
make_page(struct fixture *f)
{
    char path[128];
    int fd;

    snprintf(path, sizeof path, "%s/holds/asha/t0", f->dir);
    fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0644);
    assert_true(fd >= 0 && !ftruncate(fd, HOLD_PAGE_BYTES));
    f->page =
        mmap(NULL, HOLD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(f->page, MAP_FAILED);
    close(fd);
}

FIXTURE_SET_UP
{
    struct sockaddr_un at = { .sun_family = AF_UNIX };
    char path[128];

    strcpy(f->dir, "/tmp/sct-nccl-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/holds%s", f->dir, i ? "/asha" : "");
        assert_int_equal(mkdir(path, 0755), 0);
    }
    make_page(f);
    snprintf(at.sun_path, sizeof at.sun_path, "%s/progress.sock", f->dir);
    f->socket = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(bind(f->socket, (void *) &at, sizeof at), 0);
    setenv("STAGECOACH_RUNDIR", f->dir, 1);
    setenv("STAGECOACH_COJOB", "asha", 1);
    setenv("STAGECOACH_JOB", "t0", 1);
    unsetenv("STAGECOACH_NCCL_NET");
    unsetenv("STAGECOACH_NCCL_PROFILER");
}

FIXTURE_TEAR_DOWN
{
    static const char *const paths[] = { "progress.sock", "holds/asha/t0",
                                         "holds/asha", "holds", "." };
    char path[128];

    if (f->plugin) {
        dlclose(f->plugin);
    }
    munmap(f->page, HOLD_PAGE_BYTES);
    close(f->socket);
    for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
        snprintf(path, sizeof path, "%s/%s", f->dir, paths[i]);
        remove(i + 1 < N_ELEMENTS(paths) ? path : f->dir);
    }
}

static void *
open_library(struct fixture *f, const char *path)
{
    f->plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(f->plugin);
    return f->plugin;
}

struct told {
    int n; /* Datagrams. */
    unsigned long long sent, received, posted;
    long long counted; /* The last one, -1 without one. */
};

/* Reads the datagrams that wait, at most 'max'. */
static struct told
read_told(struct fixture *f, int max)
{
    struct told told = { .counted = -1 };
    char text[512];
    ssize_t n;

    while (told.n < max
           && (n = recv(f->socket, text, sizeof text - 1, MSG_DONTWAIT)) > 0) {
        unsigned long long sent, received, posted;

        text[n] = '\0';
        told.n++;
        assert_true(sscanf(text,
                           "{\"cojob\": \"asha\", \"job\": \"t0\", "
                           "\"sent\": %llu, \"received\": %llu, "
                           "\"posted\": %llu, \"counted\": %lld",
                           &sent, &received, &posted, &told.counted)
                    >= 3);
        assert_int_equal(text[n - 1], '}');
        told.sent += sent;
        told.received += received;
        told.posted += posted;
    }
    return told;
}

static uint64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000) + t.tv_nsec / 1000000;
}

/* Network plug-in. */

static const char *const wires[] = { WIRE, WIRE_11 };

FIXTURE_TEST(each_version_is_passed_on)
{
    struct nccl_net net = { .table = NULL };

    for (size_t w = 0; w < N_ELEMENTS(wires); w++) {
        setenv("STAGECOACH_NCCL_NET", wires[w], 1);
        open_library(f, GATE);
        for (int v = 8; v <= 12; v++) {
            struct ring_rank *ranks[3];
            struct ring_op ops[3];

            if (w && v == 12) {
                assert_false(nccl_net_open(&net, f->plugin, v));
                continue;
            }
            assert_true(nccl_net_open(&net, f->plugin, v));
            assert_string_equal(net.table[NCCL_NAME], "wire");
            for (int i = 0; i < 3; i++) {
                ranks[i] = test_calloc(1, sizeof *ranks[i]);
                ranks[i]->net = &net;
            }
            ring_connect(ranks, 3);
            for (int kind = 0; kind < N_KINDS; kind++) {
                for (int i = 0; i < 3; i++) {
                    ops[i] = (struct ring_op){
                        .kind = kind, .root = 1, .n_chunks = 9, .bytes = 4096
                    };
                }
                while (!(ring_progress(ranks[0], &ops[0])
                         & ring_progress(ranks[1], &ops[1])
                         & ring_progress(ranks[2], &ops[2]))) {
                    continue;
                }
            }
            for (int i = 0; i < 3; i++) {
                test_free(ranks[i]);
            }
        }
        dlclose(f->plugin);
        f->plugin = NULL;
    }
}

FIXTURE_TEST(without_another_plug_in_there_is_none)
{
    open_library(f, GATE);
    for (int v = 8; v <= 12; v++) {
        struct nccl_net net;

        assert_false(nccl_net_open(&net, f->plugin, v));
    }
    assert_null(dlsym(f->plugin, "ncclGinPlugin_v13"));
}

/* Returns true if the rank can send a chunk now; if not, it keeps 'op'. */
static bool
can_send(struct ring_rank *rank, struct ring_op *op)
{
    *op = op->n_chunks
              ? *op
              : (struct ring_op){ .kind = SHIFT, .n_chunks = 1, .bytes = 64 };
    if (!ring_progress(rank, op) && !op->posted) {
        return false;
    }
    while (!ring_progress(rank, op)) {
        continue;
    }
    op->n_chunks = op->posted = op->sent = op->expected = op->received = 0;
    return true;
}

/* Opens the plug-in with a ring of one rank, which sends a first chunk. */
static struct ring_rank *
open_ring(struct fixture *f, struct nccl_net *net)
{
    struct ring_rank *rank = test_calloc(1, sizeof *rank);
    struct ring_op op = { .n_chunks = 0 };

    setenv("STAGECOACH_NCCL_NET", WIRE, 1);
    assert_true(nccl_net_open(net, open_library(f, GATE), 12));
    rank->net = net;
    ring_connect(&rank, 1);
    assert_true(can_send(rank, &op));
    return rank;
}

FIXTURE_TEST(sends_wait_until_the_lease_ends)
{
    struct ring_op op = { .n_chunks = 0 };
    struct nccl_net net;
    struct ring_rank *rank = open_ring(f, &net);
    uint64_t until = now_ms() + HOLD_MAX_MS - 10;

    assert_int_equal(read_told(f, 1).posted, 64);
    __atomic_store_n(&f->page->until_ms, until, __ATOMIC_RELAXED);
    while (!can_send(rank, &op)) {
        continue;
    }
    assert_true(now_ms() >= until);
    assert_int_equal(read_told(f, 1).posted, 64); /* At once after a pause. */

    /* A time beyond a lease does not hold. */
    __atomic_store_n(&f->page->until_ms, now_ms() + 100 * HOLD_MAX_MS,
                     __ATOMIC_RELAXED);
    assert_true(can_send(rank, &op));
    test_free(rank);
}

FIXTURE_TEST(the_page_of_the_next_agent_is_found)
{
    struct ring_op op = { .n_chunks = 0 };
    struct nccl_net net;
    struct ring_rank *rank = open_ring(f, &net);
    uint64_t end = now_ms() + 5000;
    char path[128];

    snprintf(path, sizeof path, "%s/holds/asha/t0", f->dir);
    munmap(f->page, HOLD_PAGE_BYTES);
    remove(path);
    make_page(f);
    do {
        assert_true(now_ms() < end);
        __atomic_store_n(&f->page->until_ms, 0, __ATOMIC_RELAXED);
        assert_true(can_send(rank, &op));
        usleep(20000);
        __atomic_store_n(&f->page->until_ms, now_ms() + 60, __ATOMIC_RELAXED);
    } while (can_send(rank, &op));
    test_free(rank);
}

FIXTURE_TEST(a_process_without_a_job_is_not_concerned)
{
    struct nccl_net net;

    unsetenv("STAGECOACH_JOB");
    f->page->until_ms = now_ms() + 90;
    test_free(open_ring(f, &net));
    assert_int_equal(read_told(f, 1).n, 0);
}

/* Profiler. */

/* As NCCL has it: place, number and sizes of the members are the interface. */
struct call {
    uint64_t kind;
    void *parent;
    int rank;
    uint64_t number;
    const char *name;
    void *from, *to;
    size_t count;
    int root;
    const char *type;
};

struct profiler {
    void *const *table;
    void *context;
    int kinds, version;
};

static bool
profiler_open(struct fixture *f, struct profiler *p, int version)
{
    char symbol[32];
    int error;

    snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", version);
    *p = (struct profiler){ .table = dlsym(f->plugin, symbol),
                            .version = version };
    if (!p->table) {
        return false;
    }
    if (version == 4) {
        error = ((int (*)(void **, int *, const char *, uint64_t, int, int,
                          int, void *)) p->table[1])(&p->context, &p->kinds,
                                                     "c", 1, 2, 2, 0, NULL);
    } else {
        error = ((int (*)(void **, uint64_t, int *, const char *, int, int,
                          int, void *)) p->table[1])(&p->context, 1, &p->kinds,
                                                     "c", 2, 2, 0, NULL);
    }
    assert_int_equal(error, 0);
    return true;
}

static void *
start(struct profiler *p, uint64_t kind, void *parent, size_t count)
{
    struct call call = { .kind = kind,
                         .parent = parent,
                         .name = "AllReduce",
                         .count = count,
                         .type = "ncclFloat32" };
    void *handle = NULL;

    if (p->version == 4) { /* Which leaves the rest undefined. */
        memset((char *) &call.kind + 1, 0xee, sizeof call.kind - 1);
    }
    assert_int_equal(((int (*)(void *, void **, void *)) p->table[2])(
                         p->context, &handle, &call),
                     0);
    assert_ptr_equal(call.parent, parent);
    return handle;
}

static void
state(struct profiler *p, void *handle, int which, size_t bytes)
{
    assert_int_equal(
        ((int (*)(void *, int, void *)) p->table[4])(handle, which, &bytes),
        0);
}

static void
end(struct profiler *p, void *handle, int member)
{
    assert_int_equal(((int (*)(void *)) p->table[member])(handle), 0);
}

FIXTURE_TEST(bytes_and_iterations_are_told)
{
    for (int v = 4; v <= 6; v++) {
        struct profiler p, other;
        struct told told;

        open_library(f, PROFILER);
        assert_true(profiler_open(f, &p, v));
        assert_true(profiler_open(f, &other, v)); /* Without calls. */
        assert_int_equal(p.kinds & (2 | 4 | 16), 2 | 4 | 16);
        for (int i = 0; i < 60; i++) { /* Iterations of three buckets. */
            void *call = start(&p, 2, NULL, i % 3 ? 1000 : 500);
            void *step = start(&p, 16, call, 0);

            end(&p, call, 3);
            state(&p, step, 8, 0);
            state(&p, step, 9, 700);
            state(&p, step, 11, 300);
            end(&p, step, 3);
        }
        assert_int_equal(read_told(f, 1).sent, 700);
        end(&p, p.context, 5);
        told = read_told(f, INT_MAX);
        assert_int_equal(told.sent, 59 * 700);
        assert_int_equal(told.received, 60 * 300);
        assert_int_equal(told.counted, 20);
        end(&other, other.context, 5);
        assert_int_equal(read_told(f, INT_MAX).sent, 0);
        dlclose(f->plugin);
        f->plugin = NULL;
    }
}

FIXTURE_TEST(another_profiler_gets_what_it_wants)
{
    struct profiler p;
    void *call, *operation, *step;

    setenv("STAGECOACH_NCCL_PROFILER", CHAINED, 1);
    open_library(f, PROFILER);
    assert_false(profiler_open(f, &p, 4));
    assert_false(profiler_open(f, &p, 6));
    assert_true(profiler_open(f, &p, 5));
    assert_int_equal(p.kinds, 2 | 4 | 8 | 16);
    call = start(&p, 2, NULL, 1);
    operation = start(&p, 8, call, 0);
    step = start(&p, 16, operation, 0);
    state(&p, step, 9, 1);
    end(&p, step, 3);
    end(&p, operation, 3);
    end(&p, start(&p, 8, step, 0), 3);
    end(&p, call, 3);
    end(&p, start(&p, 1 << 12, NULL, 0), 3);
    end(&p, p.context, 5);
    assert_string_equal(
        dlsym(dlopen(CHAINED, RTLD_NOW | RTLD_NOLOAD), "chained_told"),
        "init c -; start context -; start context call; stop other -; "
        "start context -; stop other -; stop call -; finalize context -; ");
}

/* Iterations. */

UNIT_TEST(a_series_of_calls_has_its_iterations)
{
    /* "BEGIN", then 'n' times "ITERATION", of which two end with
     * "RARE". */
    static const struct {
        const char *begin, *iteration, *rare;
        int n, wanted;
    } series[] = {
        { "", "a", "", 31, -1 },
        { "", "a", "", 40, 40 },
        { "", "aaaaaaaaab", "", 50, 50 },
        { "", "aaaabaaaac", "", 50, 50 },
        { "xyzzy", "abc", "", 40, 41 },
        { "", "abcdefgh", "ez", 41, 41 },
        { "", "aabbccddaabbccdd", "", 10, 20 },
    };
    static struct repeats r;

    for (size_t i = 0; i < N_ELEMENTS(series); i++) {
        int64_t n = -1;

        memset(&r, 0, sizeof r);
        for (const char *p = series[i].begin; *p; p++) {
            n = repeats_add(&r, *p);
        }
        for (int j = 1; j <= series[i].n; j++) {
            for (const char *p = series[i].iteration; *p; p++) {
                n = repeats_add(&r, *p);
            }
            for (const char *p = series[i].rare; *p && (j == 9 || j == 30);
                 p++) {
                n = repeats_add(&r, *p);
            }
        }
        assert_int_equal(n, series[i].wanted);
    }
}

UNIT_TEST(calls_at_random_have_no_iterations)
{
    static struct repeats r;
    uint64_t x = 1;

    for (int i = 0; i < 3 * REPEATS_WINDOW; i++) {
        x = x * UINT64_C(6364136223846793005) + 1442695040888963407;
        assert_int_equal(repeats_add(&r, x >> 40), -1);
    }
}
