/* SPDX-License-Identifier: Apache-2.0 */

/* Runs a fuzz target once on each file of a folder.  Without libFuzzer this
 * checks that the target still builds and that fixed defects stay fixed.
 *
 *    fuzz-NAME FOLDER */

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/fuzz/must.h"

#define MAX_BYTES (1 << 20)

static void
die(const char *name, const char *what)
{
    fprintf(stderr, "%s: %s\n", name, what);
    exit(EXIT_FAILURE);
}

/* Passes a copy of exactly the file's size, so that a sanitizer detects reads
 * beyond it. */
static void
give(const char *folder, const char *name)
{
    static uint8_t buffer[MAX_BYTES];
    char path[4096];
    uint8_t *data;
    size_t size;
    FILE *f;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    f = fopen(path, "rb");
    if (!f) {
        die(path, "cannot be read");
    }
    size = fread(buffer, 1, sizeof buffer, f);
    fclose(f);
    data = malloc(size ? size : 1);
    if (!data) {
        die(path, "no memory");
    }
    for (size_t i = 0; i < size; i++) {
        data[i] = buffer[i];
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

int
main(int argc, char *argv[])
{
    const struct dirent *entry;
    int n = 0;
    DIR *dir;

    if (argc != 2) {
        die(argv[0], "one folder is needed");
    }
    dir = opendir(argv[1]);
    if (!dir) {
        die(argv[1], "cannot be read");
    }
    while ((entry = readdir(dir))) {
        if (entry->d_name[0] != '.') {
            give(argv[1], entry->d_name);
            n++;
        }
    }
    closedir(dir);
    if (!n) {
        die(argv[1], "has no file");
    }
    return EXIT_SUCCESS;
}
