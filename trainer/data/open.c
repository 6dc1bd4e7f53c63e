/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/data/readers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/gzip-file.h"
#include "base/memory.h"
#include "base/text-file.h"

/* Returns the name with ".gz" behind it if only that file exists. */
static char *
find(const char *name)
{
    return access(name, F_OK) ? message("%s.gz", name) : duplicate(name);
}

bool
data_exists(const char *name)
{
    char *path = find(name);
    bool exists = !access(path, F_OK);

    free(path);
    return exists;
}

char *
data_open(const char *name, FILE **streamp)
{
    char *path = find(name);

    *streamp = text_file_begin(gzip_file_open(path));
    free(path);
    return *streamp ? NULL : message("%s: %s", name, strerror(errno));
}

char *
data_close(const char *name, FILE *stream, char *error)
{
    if (ferror(stream)) {
        free(error);
        error = message("%s: truncated or damaged; expected all of the gzip "
                        "file",
                        name);
    }
    fclose(stream);
    return error;
}
