/* SPDX-License-Identifier: Apache-2.0 */

#include "base/json-place.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE (16u << 20)    /* Bytes. */

char *
json_read_file(const char *file, char **textp)
{
    FILE *stream = fopen(file, "r");
    size_t n, allocated = 4096;
    char *text;

    *textp = NULL;
    if (!stream) {
        return json_message("%s: %s", file, strerror(errno));
    }
    text = json_must(malloc(allocated));
    n = 0;
    while (n < MAX_FILE) {
        size_t got = fread(text + n, 1, allocated - n - 1, stream);

        if (!got) {
            break;
        }
        n += got;
        if (n + 1 == allocated) {
            allocated *= 2;
            text = json_must(realloc(text, allocated));
        }
    }
    if (ferror(stream) || n >= MAX_FILE) {
        char *error = ferror(stream)
            ? json_message("%s: %s", file, strerror(errno))
            : json_message("%s: longer than %u MiB", file, MAX_FILE >> 20);

        fclose(stream);
        free(text);
        return error;
    }
    fclose(stream);
    text[n] = '\0';
    if (strlen(text) != n) {
        char *error = json_message("%s: byte %zu is 0, only text is "
                                   "allowed", file, strlen(text));

        free(text);
        return error;
    }
    *textp = text;
    return NULL;
}
