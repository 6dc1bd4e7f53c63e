/* SPDX-License-Identifier: Apache-2.0 */

/* stagecoach shim: shows the counters of a shim, or captures its frames.  The
 * shim only sends copies of frames, so that a slow disk does not delay it, and
 * the file belongs to the user of this program. */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "cli/command.h"
#include "shim/capture/file.h"
#include "shim/capture/pcapng.h"
#include "shim/control/show.h"
#include "wire/shim-client.h"

#define TIMEOUT_MS 2000
#define NS_PER_S UINT64_C(1000000000)

struct options {
    char *socket;
    const char *job;            /* NULL for all frames. */
    const char *write;
    uint64_t packets;           /* Number of frames, 0 without a limit. */
    double seconds;             /* Duration, 0 without a limit. */
    uint32_t snap;
};

struct capture {
    struct shim_client *client;
    struct pcapng *file;
    uint64_t n, max;            /* Number of frames, written and at most. */
    uint32_t dropped;
    uint64_t epoch;             /* CLOCK_REALTIME minus CLOCK_MONOTONIC, ns. */
};

#define AT(MEMBER) OPTION_AT(struct options, MEMBER)

static const struct option_row rows[] = {
    { "write", OPTION_TEXT, AT(write), .value = "FILE", .required = true,
      .help = "output file" },
    { "job", OPTION_TEXT, AT(job), .value = "COJOB/JOB",
      .help = "capture only the frames of this job" },
    { "packets", OPTION_INTEGER, AT(packets), 1, 1e15, "N",
      .help = "end after this number of frames" },
    { "seconds", OPTION_REAL, AT(seconds), 0.001, 1e9, "S",
      .help = "end after this time, seconds" },
    { "snap", OPTION_INTEGER, AT(snap), 1, SHIM_MAX_SNAP, "BYTES", "65535",
      .help = "bytes to keep of each frame" },
    { "socket", OPTION_COPY, AT(socket), .value = "PATH",
      .shown = "shim.sock in $STAGECOACH_RUNDIR or /run/stagecoach",
      .help = "control socket of the shim" },
    { .name = NULL },
};

static const struct option_table table = {
    .name = "stagecoach shim capture", .rows = rows,
    .usage =
        "usage: stagecoach shim capture --write FILE [OPTION...]\n"
        "\n"
        "Writes the frames that a shim of this host forwards to a pcapng "
        "file, with\n"
        "times in nanoseconds and directions.  Frames to the uplink are "
        "captured\n"
        "after marking and pacing, frames to the host on arrival.  Ends after "
        "the\n"
        "number of frames, after the time, or with SIGINT.\n",
    .footer =
        "Exit status: 0 written, 1 not written or no such job, 2 usage, 3 the "
        "shim\n"
        "does not reply.\n",
};

/* Returns the control socket of this host's shim, to be freed. */
static char *
shim_default_socket(void)
{
    return message("%s/shim.sock", command_rundir());
}

/* Finds the slot of 'job'.  Returns 0 or a positive errno, ENOENT if there is
 * none. */
static int
find_slot(struct shim_client *client, const char *job, uint16_t *slot)
{
    const void *body;
    size_t size;
    int error = shim_client_transact(client, SHIM_SLOT_LIST, NULL, 0,
                                     TIMEOUT_MS, &body, &size);

    for (size_t at = 0; !error && at + sizeof(struct shim_slot) <= size;
         at += sizeof(struct shim_slot)) {
        struct shim_slot row;

        memcpy(&row, (const char *) body + at, sizeof row);
        if (!strncmp(row.name, job, sizeof row.name)) {
            *slot = row.slot;
            return 0;
        }
    }
    return error ? error : ENOENT;
}

static uint64_t
clock_ns(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

/* Writes the records of an event.  Returns 0, or EPROTO if it is malformed. */
static int
write_frames(struct capture *c, const uint8_t *body, size_t size)
{
    c->epoch = clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC);
    while (size && (!c->max || c->n < c->max)) {
        struct shim_captured record;

        if (size < sizeof record) {
            return EPROTO;
        }
        memcpy(&record, body, sizeof record);
        if (record.size > size || record.size < sizeof record
            || record.captured > record.size - sizeof record) {
            return EPROTO;
        }
        pcapng_write(c->file, &(struct capture_frame) {
            .time = record.time + c->epoch,
            .data = body + sizeof record,
            .captured = record.captured,
            .length = record.length,
        }, record.to_host);
        c->n++;
        c->dropped = record.dropped;
        body += record.size;
        size -= record.size;
    }
    return 0;
}

/* Receives the available events.  Returns 0 or a positive errno value. */
static int
receive(struct capture *c)
{
    const struct shim_msg *msg;
    const void *body;
    int error;

    shim_client_run(c->client);
    while (!(error = shim_client_receive(c->client, &msg, &body))) {
        if (msg->type == SHIM_CAPTURE && msg->status) {
            return msg->status;
        }
        if (msg->type == SHIM_CAPTURED) {
            error = write_frames(c, body, msg->length - sizeof *msg);
            if (error) {
                return error;
            }
        }
    }
    return error == EAGAIN ? 0 : error;
}

/* Captures until a limit is reached.  Returns 0 or a positive errno value. */
static int
capture(struct capture *c, double seconds)
{
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    uint64_t end = seconds > 0 ? now + seconds * NS_PER_S : UINT64_MAX;
    int error = 0;

    while (!error && !interrupt_caught() && now < end
           && (!c->max || c->n < c->max)) {
        struct pollfd pfd = {
            .fd = shim_client_fd(c->client), .events = POLLIN
        };
        uint64_t wait = (end - now) / 1000000 + 1;

        poll(&pfd, 1, wait < 200 ? wait : 200);
        error = receive(c);
        now = clock_ns(CLOCK_MONOTONIC);
    }
    return error;
}

/* Prints a message about 'error' at 'place'.  Returns the exit status. */
static int
refuse(const char *place, int error)
{
    if (error == ENOENT) {
        fprintf(stderr, "%s: the shim has no such job, \"stagecoach shim "
                "stats\" lists them\n", place);
        return EXIT_NO;
    }
    fprintf(stderr, "%s: %s (%s)\n", place, error == EBUSY
            ? "another capture is running"
            : "no shim replies", strerror(error));
    return EXIT_UNREACHABLE;
}

static int
run(const struct options *o, struct capture *c)
{
    struct shim_capture what = { .all = !o->job, .snap = o->snap };
    char *failure;
    int error, status;

    error = shim_client_open(o->socket, &c->client);
    if (!error && o->job) {
        error = find_slot(c->client, o->job, &what.slot);
    }
    if (!error) {
        error = shim_client_transact(c->client, SHIM_CAPTURE, &what,
                                     sizeof what, TIMEOUT_MS, NULL, NULL);
    }
    if (error) {
        return refuse(error == ENOENT && o->job && c->client ? o->job
                      : o->socket, error == ENOENT && !c->client
                      ? ECONNREFUSED : error);
    }
    failure = pcapng_create(o->write, o->job ? o->job : "all jobs", &c->file);
    if (!failure) {
        error = capture(c, o->seconds);
        failure = pcapng_finish(c->file, c->dropped);
    }
    status = error ? refuse(o->socket, error) : EXIT_OK;
    if (failure) {
        return command_fail(NULL, failure);
    }
    fprintf(stderr, "%"PRIu64" frames, %"PRIu32" missed\n", c->n, c->dropped);
    return status;
}

static int
shim_capture(int argc, char *argv[])
{
    struct options o = { .socket = shim_default_socket() };
    struct capture c = { .client = NULL };
    int status = option_table_command(&table, argc, argv, &o, NULL);

    if (status < 0) {
        interrupt_catch();
        c.max = o.packets;
        status = run(&o, &c);
        shim_client_close(c.client);
    }
    free(o.socket);
    return status;
}

static int shim_stats(int argc, char *argv[]);

static const struct command commands[] = {
    { "stats", "[SOCKET]", "Print the counters and the jobs of the shim.",
      shim_stats },
    { "capture", "--write FILE [OPTION...]",
      "Write frames to a pcapng file.", shim_capture },
    { NULL, NULL, NULL, NULL },
};

static int
shim_stats(int argc, char *argv[])
{
    char *path, *error;

    if (command_help(commands, "stagecoach shim", argc, argv)) {
        return EXIT_OK;
    }
    if (argc > 2 || (argc == 2 && argv[1][0] == '-')) {
        fprintf(stderr, "stagecoach shim stats: \"%s\": unexpected argument, "
                "one SOCKET is allowed\n", argv[argc > 2 ? 2 : 1]);
        return EXIT_USAGE;
    }
    path = argc == 2 ? duplicate(argv[1]) : shim_default_socket();
    error = shim_show(path, stdout);
    free(path);
    if (error) {
        command_fail(NULL, error);
        return EXIT_UNREACHABLE;
    }
    return EXIT_OK;
}

int
cmd_shim(int argc, char *argv[])
{
    return command_dispatch(commands, "stagecoach shim", argc - 1, argv + 1);
}
