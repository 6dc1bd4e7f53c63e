/* SPDX-License-Identifier: Apache-2.0 */

#include "shim/replay/command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/interrupt.h"
#include "base/memory.h"
#include "shim/capture/file.h"
#include "shim/ports/eal.h"
#include "shim/replay/replay.h"
#include "shim/replay/rules.h"

struct files {
    struct capture_reader *in;
    struct capture_writer *out, *to_host;
};

static void
write_frame(const struct capture_frame *frame, bool to_host, void *files_)
{
    struct files *files = files_;

    if (!to_host) {
        capture_write(files->out, frame);
    } else if (files->to_host) {
        capture_write(files->to_host, frame);
    }
}

/* Returns a message if 'path' and 'other' are the same file. */
static char *
check_differs(const char *option, const char *path, const char *other)
{
    struct stat a, b;

    if (stat(path, &a) || stat(other, &b) || a.st_ino != b.st_ino
        || a.st_dev != b.st_dev || !S_ISREG(a.st_mode)) {
        return NULL;
    }
    return message("%s: %s is also %s, another file is needed", option, path,
                   other);
}

static char *
open_files(const struct replay_files *names, struct files *files)
{
    char *error = capture_open(names->in, &files->in);

    error = error ? error : check_differs("--out", names->out, names->in);
    error = error ? error : capture_create(names->out, &files->out);
    if (!error && names->to_host) {
        error = check_differs("--to-host", names->to_host, names->in);
        error = error ? error : check_differs("--to-host", names->to_host,
                                              names->out);
        error = error ? error : capture_create(names->to_host,
                                               &files->to_host);
    }
    return error;
}

/* Closes all files.  Returns 'error', or the first error of writing. */
static char *
close_files(struct files *files, char *error)
{
    char *errors[] = { capture_finish(files->out),
                       capture_finish(files->to_host) };

    capture_close(files->in);
    for (int i = 0; i < 2; i++) {
        if (error) {
            free(errors[i]);
        } else {
            error = errors[i];
        }
    }
    return error;
}

static char *
run_capture(struct replay *r, struct capture_reader *in)
{
    struct capture_frame frame;
    char *error = NULL;

    interrupt_catch();
    while (!interrupt_caught() && !(error = capture_next(in, &frame))
           && frame.data) {
        replay_frame(r, &frame);
    }
    replay_finish(r);
    return error;
}

static void
print_bursts(const char *job, const char *direction,
             const struct shim_burst_stats *b)
{
    if (b->period_ns) {
        printf("bursts %s %s period_us %"PRIu64" bytes %"PRIu64" duty %.3f "
               "regularity %.3f\n", job, direction, b->period_ns / 1000,
               b->bytes, b->duty / 1e6, b->regularity / 1e6);
    }
}

/* Returns the number of frames. */
static uint64_t
print_counts(const struct replay *r, const struct replay_rules *rules)
{
    struct replay_counts c;

    replay_counts(r, &c);
    printf("frames %"PRIu64" sent %"PRIu64" delivered %"PRIu64
           " skipped %"PRIu64" too_long %"PRIu64" queue_dropped %"PRIu64
           " port_dropped %"PRIu64"\n",
           c.in, c.sent, c.delivered, c.skipped, c.too_long, c.queue_dropped,
           c.port_dropped);
    printf("reordered %" PRIu64 " malformed %" PRIu64 " untagged %" PRIu64
           "\n",
           c.reordered, c.shim.malformed, c.shim.untagged);
    printf("bytes sent %"PRIu64" ip %"PRIu64" default %"PRIu64
           " delivered %"PRIu64"\n", c.shim.tx_bytes, c.shim.tx_ip_bytes,
           c.shim.tx_default_bytes, c.shim.rx_bytes);
    for (size_t i = 0; i < rules->n_jobs; i++) {
        struct shim_slot_stats s;

        if (replay_job(r, rules->jobs[i].slot, &s)) {
            printf("job %s level %u dscp %u tx_packets %"PRIu64
                   " tx_bytes %"PRIu64" rx_packets %"PRIu64
                   " rx_bytes %"PRIu64" tx_dropped %"PRIu64"\n",
                   rules->jobs[i].name, s.level, s.dscp, s.tx_packets,
                   s.tx_bytes, s.rx_packets, s.rx_bytes, s.tx_dropped);
            print_bursts(rules->jobs[i].name, "tx", &s.tx_bursts);
            print_bursts(rules->jobs[i].name, "rx", &s.rx_bursts);
        }
    }
    return c.in;
}

static char *
run_replay(struct files *files, const struct replay_rules *rules,
           uint64_t *n_frames)
{
    struct replay *r = NULL;
    char *error = eal_init_offline(replay_memory(rules));

    if (error) {
        return error;
    }
    error = replay_create(rules, write_frame, files, &r);
    if (!error) {
        error = run_capture(r, files->in);
        *n_frames = print_counts(r, rules);
    }
    replay_destroy(r);
    eal_uninit();
    return error;
}

char *
replay_command(const struct replay_files *names, uint64_t *n_frames)
{
    struct replay_rules *rules;
    struct files files;
    char *error = replay_rules_read(names->rules, &rules);

    memset(&files, 0, sizeof files);
    error = error ? error : open_files(names, &files);
    error = error ? error : run_replay(&files, rules, n_frames);
    error = close_files(&files, error);
    replay_rules_destroy(rules);
    return error;
}
