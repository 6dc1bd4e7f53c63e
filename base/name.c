/* SPDX-License-Identifier: Apache-2.0 */

#include "base/name.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HASH_DIGITS 16

static bool
is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')
           || (c >= '0' && c <= '9') || c == '_';
}

/* Returns true if 'name' has letters, digits, '_' and, behind the first
 * character, 'others' only. */
static bool
has_only(const char *name, const char *others)
{
    size_t n = 0;

    while (is_word(name[n]) || (n && name[n] && strchr(others, name[n]))) {
        n++;
    }
    return n >= 1 && n <= NAME_MAX_LEN && !name[n];
}

bool
name_is_valid(const char *name)
{
    return has_only(name, ".-");
}

bool
name_is_valid_user(const char *name)
{
    return has_only(name, ".-@+");
}

/* Returns the number of bytes of the UTF-8 character at 's', 0 without one:
 * the shortest form of a code point that is no surrogate (RFC 3629, section
 * 4). */
static size_t
utf8_length(const unsigned char *s)
{
    static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
    size_t n = *s < 0x80       ? 1
               : *s >> 5 == 6  ? 2
               : *s >> 4 == 14 ? 3
               : *s >> 3 == 30 ? 4
                               : 0;
    uint32_t code = n == 1 ? *s : n ? *s & (0x7f >> n) : 0;

    for (size_t i = 1; i < n; i++) {
        if (s[i] >> 6 != 2) {
            return 0;
        }
        code = code << 6 | (s[i] & 0x3f);
    }
    return n && code >= least[n] && code <= 0x10ffff && code >> 11 != 27 ? n
                                                                         : 0;
}

bool
name_is_valid_metric(const char *name)
{
    const unsigned char *s = (const unsigned char *) name;
    size_t n, length = strnlen(name, METRIC_SIZE);

    if (!length || length == METRIC_SIZE) {
        return false;
    }
    for (; *s; s += n) {
        n = utf8_length(s);
        if (!n) {
            return false;
        }
    }
    return true;
}

/* FNV-1a. */
static uint64_t
hash(const char *text)
{
    uint64_t hash = 14695981039346656037u;

    for (; *text; text++) {
        hash = (hash ^ (unsigned char) *text) * 1099511628211u;
    }
    return hash;
}

void
name_shorten(const char *name, char *out, size_t size)
{
    size_t n = strlen(name), kept = size - 1 - HASH_DIGITS - 1;

    if (n < size) {
        memcpy(out, name, n + 1);
    } else {
        memcpy(out, name, kept);
        snprintf(out + kept, size - kept, "-%016" PRIx64, hash(name));
    }
}

void
name_fit(const char *text, char name[NAME_SIZE])
{
    name_shorten(text, name, NAME_SIZE);
    for (char *p = name; *p; p++) {
        if (!is_word(*p) && (p == name || !strchr(".-", *p))) {
            *p = p == name ? 'x' : '-';
        }
    }
}
