/* SPDX-License-Identifier: Apache-2.0 */

#ifndef GZIP_FILE_H
#define GZIP_FILE_H 1

/* Opens files that gzip may have compressed.
 *
 *    stream = gzip_file_open("trace.txt.gz");   // As fopen(), for reading.
 *
 * Reading past what is there of a file that was cut fails, ferror() is then
 * true.  Needs zlib. */

#include <errno.h>
#include <stdio.h>
#include <sys/types.h>
#include <zlib.h>

static inline ssize_t
gzip_file_read(void *gz, char *bytes, size_t size)
{
    int n = gzread(gz, bytes, size), error;

    gzerror(gz, &error);
    if (n < 0 || (error && error != Z_STREAM_END)) {
        errno = error == Z_ERRNO ? errno : EBADMSG;
        return -1;
    }
    return n;
}

static inline int
gzip_file_seek(void *gz, off64_t *offset, int whence)
{
    *offset = gzseek(gz, *offset, whence);
    return *offset < 0 ? -1 : 0;
}

static inline int
gzip_file_close(void *gz)
{
    return gzclose_r(gz);
}

static inline FILE *
gzip_file_open(const char *file)
{
    const cookie_io_functions_t functions = { gzip_file_read, NULL,
                                              gzip_file_seek,
                                              gzip_file_close };
    gzFile gz = gzopen(file, "re");

    return gz ? fopencookie(gz, "r", functions) : NULL;
}

#endif /* base/gzip-file.h */
