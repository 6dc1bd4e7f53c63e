/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/ps/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "trainer/net/frame.h"
#include "trainer/schemes/sync.h"

#define MAGIC "SCckpt2\n"

/* Identifies the training. */
struct identity {
    uint64_t n_parameters, n_statistics, seed;
    uint32_t n_workers, shard, n_shards, optimiser;
    float momentum, learning_rate;
    struct rate_schedule schedule;
};

_Static_assert(sizeof(struct identity) == 72, "has no padding");

/* A file has this head, the spans, and the XXH3 of both. */
struct head {
    char magic[8];
    struct identity identity;
    char scheme[16];
    uint64_t iteration;
    uint64_t lengths[SYNC_MAX_SPANS];   /* Of the spans, in bytes. */
};

static char *
file_name(const char *dir, const struct frame_hello *hello,
          uint64_t iteration, const char *suffix)
{
    return message("%s/shard-%u-of-%u.%"PRIu64"%s", dir, hello->shard,
                   hello->n_shards, iteration, suffix);
}

/* Makes the head that a file must have to be read. */
static void
make_head(struct head *head, const struct frame_hello *hello,
          const struct sync_class *class, uint64_t iteration,
          const struct sync_span spans[], int n)
{
    *head = (struct head) {
        .magic = MAGIC,
        .identity = {
            .n_workers = hello->n_workers, .shard = hello->shard,
            .n_shards = hello->n_shards, .n_parameters = hello->n_parameters,
            .n_statistics = hello->n_statistics,
            .learning_rate = hello->learning_rate,
            .momentum = hello->momentum, .seed = hello->seed,
            .optimiser = hello->optimiser, .schedule = hello->schedule,
        },
        .iteration = iteration,
    };
    snprintf(head->scheme, sizeof head->scheme, "%s", class->name);
    for (int i = 0; i < n; i++) {
        head->lengths[i] = spans[i].length;
    }
}

static bool
write_part(FILE *file, const void *data, size_t n, XXH3_state_t *sum)
{
    XXH3_64bits_update(sum, data, n);
    return fwrite(data, 1, n, file) == n;
}

static bool
read_part(FILE *file, void *data, size_t n, XXH3_state_t *sum)
{
    bool ok = fread(data, 1, n, file) == n;

    XXH3_64bits_update(sum, data, n);
    return ok;
}

static bool
write_file(FILE *file, const struct head *head,
           const struct sync_span spans[], int n)
{
    XXH3_state_t sum;
    uint64_t digest;
    bool ok;

    XXH3_64bits_reset(&sum);
    ok = write_part(file, head, sizeof *head, &sum);
    for (int i = 0; i < n && ok; i++) {
        ok = write_part(file, spans[i].data, spans[i].length, &sum);
    }
    digest = XXH3_64bits_digest(&sum);
    return ok && fwrite(&digest, sizeof digest, 1, file) == 1
           && !fflush(file) && !fsync(fileno(file));
}

/* A rename is durable only when the folder is synced. */
static bool
sync_folder(const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = fd >= 0 && !fsync(fd);

    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

char *
checkpoint_write(const char *dir, const struct frame_hello *hello,
                 const struct sync_class *class, struct sync *sync,
                 uint64_t iteration)
{
    struct sync_span spans[SYNC_MAX_SPANS];
    char *path = file_name(dir, hello, iteration, "");
    char *temporary = file_name(dir, hello, iteration, ".new");
    char *error = NULL;
    int n = sync_spans(sync, spans);
    struct head head;
    FILE *file;
    bool ok;

    make_head(&head, hello, class, iteration, spans, n);
    file = fopen(temporary, "we");
    ok = file && write_file(file, &head, spans, n);
    if (file) {
        ok = !fclose(file) && ok;
    }
    if (!ok || rename(temporary, path) || !sync_folder(dir)) {
        error = message("%s: %s", path, strerror(errno));
        unlink(temporary);
    }
    free(path);
    free(temporary);
    return error;
}

/* Returns the iteration of the last checkpoint before 'limit', or
 * FRAME_NONE. */
static uint64_t
last_before(const char *dir, uint32_t shard, uint32_t n_shards, uint64_t limit)
{
    DIR *stream = opendir(dir);
    uint64_t last = FRAME_NONE;
    struct dirent *entry;
    char prefix[64];
    size_t length;

    length = snprintf(prefix, sizeof prefix, "shard-%u-of-%u.", shard,
                      n_shards);
    while (stream && (entry = readdir(stream))) {
        const char *number = entry->d_name + length;
        uint64_t iteration;
        char *end;

        if (strncmp(entry->d_name, prefix, length)
            || *number < '0' || *number > '9') {
            continue;
        }
        iteration = strtoull(number, &end, 10);
        if (!*end && iteration < limit
            && (last == FRAME_NONE || iteration > last)) {
            last = iteration;
        }
    }
    if (stream) {
        closedir(stream);
    }
    return last;
}

uint64_t
checkpoint_last(const char *dir, uint32_t shard, uint32_t n_shards)
{
    return last_before(dir, shard, n_shards, UINT64_MAX);
}

uint64_t
checkpoint_common(const char *dir, uint32_t n_shards)
{
    uint64_t least = FRAME_NONE;

    for (uint32_t i = 0; i < n_shards; i++) {
        uint64_t last = checkpoint_last(dir, i, n_shards);

        if (last == FRAME_NONE) {
            return last;
        }
        least = least == FRAME_NONE || last < least ? last : least;
    }
    return least;
}

void
checkpoint_prune(const char *dir, const struct frame_hello *hello,
                 uint64_t first, uint64_t end)
{
    while ((end = last_before(dir, hello->shard, hello->n_shards, end))
           != FRAME_NONE && end >= first) {
        char *path = file_name(dir, hello, end, "");

        unlink(path);
        free(path);
    }
}

/* Whether the rest of 'file' is what its last 8 bytes, a sum that began with
 * 'sum', say. */
static bool
has_right_sum(FILE *file, XXH3_state_t *sum)
{
    uint8_t bytes[65536 + sizeof(uint64_t)];
    size_t n = 0, got;
    uint64_t digest;

    while ((got = fread(bytes + n, 1, sizeof bytes - n, file)) > 0) {
        n += got;
        if (n > sizeof digest) {
            size_t before = n - sizeof digest;

            XXH3_64bits_update(sum, bytes, before);
            memmove(bytes, bytes + before, sizeof digest);
            n = sizeof digest;
        }
    }
    memcpy(&digest, bytes, sizeof digest);
    return n == sizeof digest && digest == XXH3_64bits_digest(sum);
}

/* Opens the file and checks all of it.  Stores its head, and whether it is not
 * as it was written in '*damaged'. */
static char *
open_file(const char *path, struct head *head, bool *damaged, FILE **filep)
{
    FILE *file = fopen(path, "re");
    XXH3_state_t sum;

    *filep = file;
    *damaged = false;
    if (!file) {
        return message("%s: %s", path, strerror(errno));
    }
    errno = 0;
    XXH3_64bits_reset(&sum);
    *damaged = !read_part(file, head, sizeof *head, &sum)
               || !has_right_sum(file, &sum);
    return !*damaged ? NULL
                     : message("%s: %s", path,
                               errno ? strerror(errno)
                                     : "damaged: its sum is wrong");
}

/* Reads the first spans of the file. */
static char *
read_spans(FILE *file, const char *path, const struct sync_span spans[], int n)
{
    bool ok = !fseek(file, sizeof(struct head), SEEK_SET);

    for (int i = 0; i < n && ok; i++) {
        ok = fread(spans[i].data, 1, spans[i].length, file) == spans[i].length;
    }
    return ok ? NULL : message("%s: %s", path, strerror(errno));
}

/* Compares the file's head with the one that it must have, but for the rate if
 * 'new_rate'. */
static char *
check_head(const char *path, const struct head *head, struct head *wanted,
           bool new_rate)
{
    const struct identity *is = &head->identity;
    struct identity *other = &wanted->identity;
    bool same =
        is->learning_rate == other->learning_rate
        && !memcmp(&is->schedule, &other->schedule, sizeof is->schedule);

    other->learning_rate = is->learning_rate;
    other->schedule = is->schedule;
    if (memcmp(head, wanted, sizeof *head)) {
        return message("%s: of another training, --no-resume deletes it",
                       path);
    }
    return same || new_rate
               ? NULL
               : message(
                   "%s: of learning rate %g, or another schedule; expected "
                   "the same, or --new-rate",
                   path, is->learning_rate);
}

/* Reads the checkpoint of 'iteration'. */
static char *
read_one(const char *dir, const struct frame_hello *hello, bool new_rate,
         uint64_t iteration, const struct sync_class *class, struct sync *sync,
         bool *damaged)
{
    struct sync_span spans[SYNC_MAX_SPANS];
    int n = sync_spans(sync, spans);
    char *path = file_name(dir, hello, iteration, ""), *error;
    struct head head, wanted;
    FILE *file;

    make_head(&wanted, hello, class, iteration, spans, n);
    error = open_file(path, &head, damaged, &file);
    error = error ? error : check_head(path, &head, &wanted, new_rate);
    error = error ? error : read_spans(file, path, spans, n);
    if (file) {
        fclose(file);
    }
    free(path);
    if (!error) {
        sync_resume(sync, iteration);
    }
    return error;
}

/* Renames a damaged file, so that it is not the last checkpoint any more. */
static void
set_aside(const char *dir, const struct frame_hello *hello, uint64_t iteration)
{
    char *from = file_name(dir, hello, iteration, "");
    char *to = file_name(dir, hello, iteration, ".damaged");

    rename(from, to);
    free(from);
    free(to);
}

char *
checkpoint_read(const char *dir, const struct frame_hello *hello,
                bool new_rate, uint64_t *iteration,
                const struct sync_class *class, struct sync *sync)
{
    uint64_t last = last_before(dir, hello->shard, hello->n_shards,
                                *iteration + 1);

    if (last != FRAME_NONE) {
        *iteration = last;
    }
    for (;;) {
        uint64_t earlier;
        bool damaged;
        char *error =
            read_one(dir, hello, new_rate, *iteration, class, sync, &damaged);

        if (!damaged) {
            return error;
        }
        earlier = last_before(dir, hello->shard, hello->n_shards, *iteration);
        if (earlier == FRAME_NONE) {
            return error;
        }
        fprintf(stderr, "server: %s, iteration %"PRIu64" is read instead\n",
                error, earlier);
        free(error);
        set_aside(dir, hello, *iteration);
        *iteration = earlier;
    }
}

/* Returns the number of shards of the checkpoints in the folder, or 0. */
static uint32_t
find_n_shards(const char *dir)
{
    for (uint32_t n = 1; n <= CHECKPOINT_MAX_SHARDS; n++) {
        if (checkpoint_last(dir, 0, n) != FRAME_NONE) {
            return n;
        }
    }
    return 0;
}

/* Reads the weights of a shard; the first one also has the statistics. */
static char *
load_shard(const char *path, const struct frame_hello *hello, float *weights,
           float *statistics)
{
    struct shard shard =
        shard_range(hello->n_parameters, hello->shard, hello->n_shards);
    size_t n_statistics = hello->shard ? 0 : hello->n_statistics;
    const struct sync_span spans[] = {
        { weights + shard.first, shard.n * sizeof *weights },
        { statistics, n_statistics * sizeof *statistics },
    };
    struct head head;
    bool damaged;
    FILE *file;
    char *error = open_file(path, &head, &damaged, &file);
    const struct identity *is = &head.identity;

    if (!error
        && (is->n_parameters != hello->n_parameters
            || is->n_statistics != n_statistics)) {
        error = message("%s: %" PRIu64 " parameters, %" PRIu64 " statistics; "
                        "expected %" PRIu64 " and %zu, as --model has",
                        path, is->n_parameters, is->n_statistics,
                        hello->n_parameters, n_statistics);
    }
    error = error ? error : read_spans(file, path, spans, 2);
    if (file) {
        fclose(file);
    }
    return error;
}

char *
checkpoint_load(const char *dir, size_t n, float *weights, size_t n_statistics,
                float *statistics, uint64_t *iteration)
{
    struct frame_hello hello = { .n_parameters = n,
                                 .n_statistics = n_statistics,
                                 .n_shards = find_n_shards(dir) };
    char *error = NULL;

    *iteration = checkpoint_common(dir, hello.n_shards);
    if (*iteration == FRAME_NONE) {
        return message("%s: no checkpoint; expected a folder of \"train\" or "
                       "\"server --checkpoint\"",
                       dir);
    }
    for (; hello.shard < hello.n_shards && !error; hello.shard++) {
        char *path = file_name(dir, &hello, *iteration, "");

        error = load_shard(path, &hello, weights, statistics);
        free(path);
    }
    return error;
}
