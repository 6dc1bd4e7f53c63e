/* SPDX-License-Identifier: Apache-2.0 */

#include "sim/fabric/line-reader.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdarg.h>

#include "base/text-file.h"
#include "order/problem/memory.h"

#define MAX_SHOWN 24 /* Characters of the text in a message. */

void
line_reader_uninit(struct line_reader *lr)
{
    free(lr->text);
}

/* Reports an error in the line if none has been reported yet. */
void
line_reader_fail(struct line_reader *lr, const char *format, ...)
{
    va_list args;
    char *what;

    if (lr->error) {
        return;
    }
    va_start(args, format);
    if (vasprintf(&what, format, args) < 0
        || asprintf(&lr->error, "%s:%d: %s", lr->name, lr->line, what) < 0) {
        abort();
    }
    va_end(args);
    free(what);
}

static bool
is_blank(const char *text)
{
    return !text[strspn(text, " \t\r\n")];
}

bool
line_reader_next(struct line_reader *lr, FILE *stream)
{
    ssize_t n;

    do {
        errno = 0;
        n = getline(&lr->text, &lr->allocated, stream);
        lr->line++;
        if (n < 0) {
            if (ferror(stream)) {
                line_reader_fail(lr, "%s", strerror(errno));
            }
            return false;
        }
        lr->at = lr->text;
        if (lr->line == 1) {
            lr->at += text_mark_size(lr->text);
        }
    } while (is_blank(lr->at) && strlen(lr->text) == (size_t) n);
    if (strlen(lr->text) != (size_t) n) {
        line_reader_fail(lr, "a NUL byte; expected only text");
    }
    return true;
}

/* Returns the next word of the line and ends it with a NUL, or reports that
 * 'what' is missing and returns NULL. */
char *
line_reader_word(struct line_reader *lr, const char *what)
{
    char *word;

    if (lr->error) {
        return NULL;
    }
    lr->at += strspn(lr->at, " \t\r\n");
    if (!*lr->at) {
        line_reader_fail(lr, "the line ends where %s is expected", what);
        return NULL;
    }
    word = lr->at;
    lr->at += strcspn(lr->at, " \t\r\n");
    if (*lr->at) {
        *lr->at++ = '\0';
    }
    return word;
}

/* Takes the quotes from the field at 'field', which begins with one.  Returns
 * what follows it. */
static char *
unquote(struct line_reader *lr, char *field)
{
    char *to = field, *from = field + 1;

    while (*from && (*from != '"' || *++from == '"')) {
        *to++ = *from++;
    }
    if (!*from && from[-1] != '"') {
        line_reader_fail(lr, "a quote has no end in its line");
    }
    *to = '\0';
    return from;
}

/* Returns what stands before the next 'separator' or the line's end, or
 * reports that 'what' is missing and returns NULL. */
char *
line_reader_field(struct line_reader *lr, char separator, const char *what)
{
    char ends[] = { separator, '\r', '\n', '\0' };
    char *field = lr->at, *end;

    if (lr->error) {
        return NULL;
    }
    if (!field) {
        line_reader_fail(lr, "the line ends where %s is expected", what);
        return NULL;
    }
    field += strspn(field, " ");
    end = field;
    if (*field == '"' && separator == ',') {
        end = unquote(lr, field);
    }
    end += strcspn(end, ends);
    lr->at = *end == separator ? end + 1 : NULL;
    *end = '\0';
    for (end = field + strlen(field); end > field && end[-1] == ' '; end--) {
        end[-1] = '\0';
    }
    return field;
}

/* Makes 'word' fit for a message. */
const char *
line_reader_shown(char *word)
{
    for (char *c = word; *c; c++) {
        if (c - word >= MAX_SHOWN) {
            strcpy(c - 3, "...");
            break;
        }
        *c = isprint((unsigned char) *c) ? *c : '?';
    }
    return word;
}

/* Converts 'word' to a number from 'min' to 'max', or reports that 'what' is
 * none and returns 'min'. */
double
line_reader_number(struct line_reader *lr, char *word, const char *what,
                   double min, double max, bool integer)
{
    char *end;
    double x;

    if (!word) {
        return min;
    }
    x = strtod(word, &end);
    if (end == word || *end || word[strspn(word, LINE_READER_DECIMAL)]
        || !(x >= min && x <= max) || (integer && x != floor(x))) {
        line_reader_fail(lr, "%s \"%s\" is not %s from %.0f to %.0f", what,
                         line_reader_shown(word),
                         integer ? "an integer" : "a number", min, max);
        return min;
    }
    return x;
}

/* Reports what stands after 'what', the last of the line. */
void
line_reader_end(struct line_reader *lr, const char *what)
{
    if (!lr->error && lr->at) {
        lr->at += strspn(lr->at, " \t\r\n");
        lr->at[strcspn(lr->at, " \t\r\n")] = '\0';
        if (*lr->at) {
            line_reader_fail(lr, "\"%s\" stands after %s",
                             line_reader_shown(lr->at), what);
        }
    }
}
