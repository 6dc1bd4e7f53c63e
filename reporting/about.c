/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/about.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/memory.h"

/* Appends the words of the command, without the folder of the program.  A word
 * that a shell would divide is in quotes. */
static void
put_command(FILE *stream)
{
    FILE *f = fopen("/proc/self/cmdline", "r");
    char *word = NULL;
    size_t size = 0;

    for (int i = 0; f && getdelim(&word, &size, '\0', f) > 0; i++) {
        const char *slash = i ? NULL : strrchr(word, '/');
        const char *quote = strpbrk(word, " \t\n'\"$&;<>()|*?") ? "'" : "";

        fprintf(stream, "%s%s%s%s", i ? " " : "", quote,
                slash ? slash + 1 : word, quote);
    }
    if (f) {
        fclose(f);
    }
    free(word);
}

/* Appends the name of the processors, "unknown processors" without one. */
static void
put_processors(FILE *stream)
{
    static const char member[] = "model name";
    FILE *f = fopen("/proc/cpuinfo", "r");
    const char *name = NULL;
    char *line = NULL;
    size_t size = 0;

    while (f && !name && getline(&line, &size, f) > 0) {
        if (!strncmp(line, member, strlen(member))) {
            name = strchr(line, ':');
        }
    }
    name = name ? name + strspn(name, ": ") : "unknown processors";
    fprintf(stream, "%ld x %.*s", sysconf(_SC_NPROCESSORS_ONLN),
            (int) strcspn(name, "\n"), name);
    if (f) {
        fclose(f);
    }
    free(line);
}

char *
about_this_run(void)
{
    struct utsname names;
    char *text;
    size_t size;
    FILE *stream = must(open_memstream(&text, &size));

    fputs("Stagecoach " STAGECOACH_VERSION ": ", stream);
    put_command(stream);
    fputs(", on ", stream);
    put_processors(stream);
    if (!uname(&names)) {
        fprintf(stream, ", %s %s", names.sysname, names.release);
    }
    fclose(stream);
    return make_printable(must(text));
}
