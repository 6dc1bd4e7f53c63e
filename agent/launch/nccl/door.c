/* SPDX-License-Identifier: Apache-2.0 */

#include "agent/launch/nccl/door.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/name.h"
#include "wire/agent-call.h"
#include "wire/hold-page.h"

#define LOOKUP_MS 1000       /* Between two lookups of the name of the page. */
#define REPORTING UINT64_MAX /* Of 'next_report': a thread does. */

static struct {
    int fd; /* Socket for datagrams, or -1: there is no job. */
    struct sockaddr_un agent;
    const char *cojob, *job;
    char page_name[sizeof(struct sockaddr_un) + 2 * NAME_SIZE];

    /* Bytes that are not reported yet. */
    _Atomic uint64_t sent, received, posted;

    _Atomic int64_t counted; /* Iterations, -1 if unknown. */
    _Atomic uint64_t
        next_report; /* In ms; a thread that moves it on may report. */
    const struct hold_page *_Atomic page;

    /* Of the thread that reports. */
    uint64_t next_lookup; /* In ms. */
    ino_t inode;          /* Of the page. */
} door = { .fd = -1, .counted = -1 };

static uint64_t
now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * UINT64_C(1000) + t.tv_nsec / 1000000;
}

__attribute__((constructor)) static void
open_door(void)
{
    const char *rundir = getenv("STAGECOACH_RUNDIR");
    size_t n;

    rundir = rundir && rundir[0] ? rundir : AGENT_RUNDIR;
    door.cojob = getenv("STAGECOACH_COJOB");
    door.job = getenv("STAGECOACH_JOB");
    door.agent.sun_family = AF_UNIX;
    n = snprintf(door.agent.sun_path, sizeof door.agent.sun_path,
                 "%s/progress.sock", rundir);
    if (door.cojob && name_is_valid(door.cojob) && door.job
        && name_is_valid(door.job) && n < sizeof door.agent.sun_path) {
        snprintf(door.page_name, sizeof door.page_name, HOLD_PAGE_PATH, rundir,
                 door.cojob, door.job);
        door.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
}

/* Maps the page if another file has its name now than before.  The
 * previous one stays mapped, because threads may be reading it. */
static void
look_up_page(uint64_t now)
{
    struct stat s;
    void *page;
    int fd;

    if (door.page && now < door.next_lookup) {
        return;
    }
    door.next_lookup = now + LOOKUP_MS;
    if (stat(door.page_name, &s) || s.st_ino == door.inode
        || s.st_size < HOLD_PAGE_BYTES) {
        return;
    }
    fd = open(door.page_name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0) {
        page = mmap(NULL, HOLD_PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
        if (page != MAP_FAILED) {
            door.inode = s.st_ino;
            door.page = page;
        }
        close(fd);
    }
}

/* Reports what has moved.  One thread at a time. */
static void
send_report(uint64_t now)
{
    uint64_t sent = atomic_exchange(&door.sent, 0);
    uint64_t received = atomic_exchange(&door.received, 0);
    uint64_t posted = atomic_exchange(&door.posted, 0);
    char text[2 * NAME_SIZE + 160];
    int n =
        snprintf(text, sizeof text,
                 "{\"cojob\": \"%s\", \"job\": \"%s\", \"sent\": %llu, "
                 "\"received\": %llu, \"posted\": %llu",
                 door.cojob, door.job, (unsigned long long) sent,
                 (unsigned long long) received, (unsigned long long) posted);

    if (door.counted >= 0) {
        n += snprintf(text + n, sizeof text - n, ", \"counted\": %lld",
                      (long long) door.counted);
    }
    text[n++] = '}';
    if (sendto(door.fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *) &door.agent, sizeof door.agent)
        != n) {
        door.sent += sent;
        door.received += received;
        door.posted += posted;
    }
    look_up_page(now);
}

/* Reports if it is time to. */
static void
report(uint64_t now)
{
    uint64_t due = door.next_report;

    if (door.fd >= 0 && now >= due
        && atomic_compare_exchange_strong(&door.next_report, &due,
                                          REPORTING)) {
        send_report(now);
        door.next_report = now + DOOR_REPORT_MS;
    }
}

void
door_moved(uint64_t sent, uint64_t received, uint64_t posted)
{
    door.sent += sent;
    door.received += received;
    door.posted += posted;
    report(now_ms());
}

void
door_counted(int64_t iterations)
{
    door.counted = iterations;
    report(now_ms());
}

void
door_leave(void)
{
    uint64_t due = door.next_report;

    if (due != REPORTING) {
        atomic_compare_exchange_strong(&door.next_report, &due, 0);
        report(now_ms());
    }
}

bool
door_holds(void)
{
    const struct hold_page *page = door.page;
    uint64_t until, now;

    if (!page) {
        return false;
    }
    until = __atomic_load_n(&page->until_ms, __ATOMIC_RELAXED);
    now = now_ms();
    return until > now && until - now <= HOLD_MAX_MS;
}

void *
door_open_inner(const char *variable, const char *kind)
{
    const char *name = getenv(variable);
    void *library = NULL;
    char *file;

    if (name && name[0]
        && asprintf(&file, "libnccl-%s-%s.so", kind, name) >= 0) {
        library = dlopen(strchr(name, '/') ? name : file, RTLD_NOW);
        if (!library) {
            fprintf(stderr,
                    "stagecoach: %s: %s; expected the path of a "
                    "plug-in, or NAME of a %s that is found\n",
                    variable, dlerror(), file);
        }
        free(file);
    }
    return library;
}
