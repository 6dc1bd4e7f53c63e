/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/data/fields.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool
fields_integer(char **s, uint32_t *x)
{
    uint64_t sum = 0;
    char *p = *s;

    if (!isdigit((unsigned char) *p)) {
        return false;
    }
    for (; isdigit((unsigned char) *p); p++) {
        sum = 10 * sum + (*p - '0');
        if (sum > UINT32_MAX) {
            return false;
        }
    }
    *x = sum;
    *s = p;
    return true;
}

bool
fields_number(char **s, float *x)
{
    char *end;
    float value;

    if (!isdigit((unsigned char) **s) && **s != '-' && **s != '.') {
        return false;           /* Without white space, "inf" and "nan". */
    }
    value = strtof(*s, &end);
    if (end == *s || !isfinite(value)) {
        return false;
    }
    *x = value;
    *s = end;
    return true;
}

bool
fields_word(char **s, const char *word)
{
    size_t length = strlen(word);

    if (strncmp(*s, word, length)) {
        return false;
    }
    *s += length;
    return true;
}

bool
fields_end(const char *s)
{
    return !s[strspn(s, " \t\r\n")];
}
