/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "lab/cluster/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "util.h"

#define TAIL_BYTES 4096

/* Whether the terminal's last line is a status line. */
static bool status_shown;

static void
erase_status(void)
{
    if (status_shown) {
        fputs("\r\033[K", stderr);
        status_shown = false;
    }
}

void
say(const char *format, ...)
{
    va_list args;

    erase_status();
    fputs("lab: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    putc('\n', stderr);
}

void
say_status(const char *line, const char *plain)
{
    struct winsize size;

    if (!isatty(STDERR_FILENO)) {
        if (plain) {
            say("%s", plain);
        }
        return;
    }
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20) {
        size.ws_col = 80;
    }
    erase_status();
    fprintf(stderr, "%.*s", size.ws_col - 1, line);
    fflush(stderr);
    status_shown = true;
}

void
say_status_end(void)
{
    erase_status();
    fflush(stderr);
}

char *
say_tail(const char *file, int n_lines)
{
    FILE *stream = fopen(file, "re");
    char *text = xzalloc(TAIL_BYTES + 1);
    char *start;

    if (stream) {
        if (fseek(stream, -TAIL_BYTES, SEEK_END)) {
            rewind(stream);
        }
        text[fread(text, 1, TAIL_BYTES, stream)] = '\0';
        fclose(stream);
    }
    start = text + strlen(text);
    while (start > text && (start[-1] != '\n' || n_lines-- > 0)) {
        start--;
    }
    start = xstrdup(start);
    free(text);
    return start;
}
