/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/ovsdb/database-file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sha1.h"
#include "util.h"

#define LEAD "OVSDB "           /* Begins the header of each record. */
#define MAX_HEADER 128          /* Bytes. */
#define MAX_COPIES 1000         /* Of damaged files. */

/* The contents of a file, mapped. */
struct contents {
    const char *data;
    size_t size;
};

/* Returns 0 or a positive errno value. */
static int
contents_init(struct contents *c, const char *file)
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    struct stat st;
    int error = 0;

    *c = (struct contents) { .data = NULL };
    if (fd < 0) {
        return errno;
    }
    if (fstat(fd, &st)) {
        error = errno;
    } else if (st.st_size) {
        void *map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);

        if (map == MAP_FAILED) {
            error = errno;
        } else {
            *c = (struct contents) { map, st.st_size };
        }
    }
    close(fd);
    return error;
}

static void
contents_uninit(const struct contents *c)
{
    if (c->data) {
        munmap(CONST_CAST(char *, c->data), c->size);
    }
}

/* Returns the length of the header at 'at' and stores the length and the SHA-1
 * of the data that follows, or returns 0 if there is no whole header. */
static size_t
parse_header(const struct contents *c, size_t at, size_t *lengthp,
             uint8_t sha1[SHA1_DIGEST_SIZE])
{
    size_t size = MIN(c->size - at, MAX_HEADER);
    const char *end = memchr(c->data + at, '\n', size);
    char header[MAX_HEADER + 1], hex[SHA1_HEX_DIGEST_LEN + 1];
    unsigned long long length;

    if (!end) {
        return 0;
    }
    size = end - (c->data + at);
    memcpy(header, c->data + at, size);
    header[size] = '\0';
    if (sscanf(header, LEAD "%*15s %llu %40[0-9a-f]", &length, hex) != 2
        || length > SIZE_MAX / 2 || !sha1_from_hex(sha1, hex)) {
        return 0;
    }
    *lengthp = length;
    return size + 1;
}

/* Returns the length of the record at 'at', 0 if it is not sound.  Stores in
 * '*cut' whether the file ends within it. */
static size_t
check_record(const struct contents *c, size_t at, bool *cut)
{
    uint8_t wanted[SHA1_DIGEST_SIZE], got[SHA1_DIGEST_SIZE];
    size_t header, length;

    header = parse_header(c, at, &length, wanted);
    *cut = (header ? length > c->size - at - header
            : !memchr(c->data + at, '\n', c->size - at));
    if (!header || *cut) {
        return 0;
    }
    sha1_bytes(c->data + at + header, length, got);
    return memcmp(wanted, got, sizeof got) ? 0 : header + length;
}

/* Returns how many records seem to begin behind 'at'. */
static size_t
count_records(const struct contents *c, size_t at)
{
    size_t n = 0;

    while (at < c->size) {
        const char *next = memmem(c->data + at, c->size - at, "\n" LEAD,
                                  sizeof "\n" LEAD - 1);

        if (!next) {
            break;
        }
        at = next + 1 - c->data;
        n++;
    }
    return n;
}

static struct database_file
check_contents(const struct contents *c)
{
    struct database_file check = { .size = c->size };
    bool cut = false;
    size_t length;

    while (check.good < c->size
           && (length = check_record(c, check.good, &cut)) > 0) {
        check.good += length;
    }
    if (check.good < c->size) {
        size_t behind = count_records(c, check.good);

        check.n_lost = cut && !behind ? 0 : behind + 1;
    }
    return check;
}

char *
database_file_check(const char *file, struct database_file *check)
{
    struct contents c;
    int error = contents_init(&c, file);

    *check = check_contents(&c);
    contents_uninit(&c);
    return error ? xasprintf("%s: cannot be read (%s)", file,
                             ovs_strerror(error)) : NULL;
}

/* Writes the first 'size' bytes of 'c' to 'file' by way of a temporary one. */
static char *
copy(const struct contents *c, size_t size, const char *file)
{
    char *temporary = xasprintf("%s.tmp", file);
    FILE *stream = fopen(temporary, "we");
    bool ok = (stream && !fchmod(fileno(stream), 0600)
               && fwrite(c->data, 1, size, stream) == size
               && !fflush(stream) && !fsync(fileno(stream)));
    int error = errno;

    if (stream && fclose(stream)) {
        ok = false;
        error = errno;
    }
    if (ok && rename(temporary, file)) {
        ok = false;
        error = errno;
    }
    if (!ok) {
        unlink(temporary);
    }
    free(temporary);
    return ok ? NULL : xasprintf("%s: cannot be written (%s)", file,
                                 ovs_strerror(error));
}

/* Returns an unused name for the copy of the damaged 'file'. */
static char *
damaged_name(const char *file)
{
    char *name = NULL;

    for (int i = 1; i <= MAX_COPIES; i++) {
        free(name);
        name = xasprintf("%s.damaged-%d", file, i);
        if (access(name, F_OK)) {
            break;
        }
    }
    return name;
}

/* Adds 'line' to FILE.alarm. */
static void
add_alarm(const char *file, const char *line)
{
    char *name = xasprintf("%s.alarm", file);
    FILE *stream = fopen(name, "ae");

    if (stream) {
        fprintf(stream, "%s\n", line);
        fclose(stream);
    }
    free(name);
}

/* Keeps the damaged file 'file', and returns what is lost. */
static char *
keep_damaged(const char *file, const struct contents *c,
             const struct database_file *check)
{
    char *name = damaged_name(file), *good = xasprintf("%s.good", file);
    char *error = copy(c, c->size, name);
    char *message = xasprintf(
        "%s was damaged at byte %"PRIuSIZE" of %"PRIuSIZE": %"PRIuSIZE" "
        "records from there are lost; %s%s, %s%s", file, check->good,
        check->size, check->n_lost, error ? error : name,
        error ? "" : " is the whole file", good,
        access(good, F_OK) ? " does not exist" : " is the last sound one");

    add_alarm(file, message);
    free(error);
    free(good);
    free(name);
    return message;
}

char *
database_file_protect(const char *file)
{
    struct database_file check;
    struct contents c;
    char *message;
    int error;

    error = contents_init(&c, file);
    if (error) {
        return (error == ENOENT ? NULL
                : xasprintf("%s: cannot be read (%s)", file,
                            ovs_strerror(error)));
    }
    check = check_contents(&c);
    if (check.n_lost) {
        message = keep_damaged(file, &c, &check);
    } else {
        char *name = xasprintf("%s.good", file);

        message = copy(&c, check.good, name);
        free(name);
    }
    contents_uninit(&c);
    return message;
}
