/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TEXT_FILE_H
#define TEXT_FILE_H 1

/* Opens text files that other programs have written.
 *
 * Some editors and exports begin UTF-8 with a byte order mark, which no format
 * has: it is skipped in all text that the programs read.
 *
 *    stream = text_file_open("topology.conf");  // As fopen().
 *    text += text_mark_size(text);              // Of text that is there. */

#include <stdio.h>
#include <string.h>

#define TEXT_MARK "\xef\xbb\xbf"

/* Returns the size of the byte order mark that 'text' begins with, or 0. */
static inline size_t
text_mark_size(const char *text)
{
    return strncmp(text, TEXT_MARK, 3) ? 0 : 3;
}

/* Skips the mark at the beginning of 'stream', which may be NULL.  Returns
 * it. */
static inline FILE *
text_file_begin(FILE *stream)
{
    int n = 0, c = EOF;

    while (stream && n < 3
           && (c = getc(stream)) == (unsigned char) TEXT_MARK[n]) {
        n++;
    }
    if (stream && n < 3) {
        ungetc(c, stream);
        while (n > 0) {
            ungetc((unsigned char) TEXT_MARK[--n], stream);
        }
    }
    return stream;
}

static inline FILE *
text_file_open(const char *file)
{
    return text_file_begin(fopen(file, "re"));
}

#endif /* base/text-file.h */
