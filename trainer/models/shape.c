/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/models/shape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"

char *
shape_from_string(const char *s, struct shape *shape)
{
    shape->n = 0;
    for (const char *p = s; ; p++) {
        char *end;
        long width;

        errno = 0;
        width = strtol(p, &end, 10);
        if (end == p || errno || width < 1 || width > SHAPE_MAX_WIDTH
            || (*end && *end != ',') || shape->n >= SHAPE_MAX_WIDTHS) {
            return message("\"%s\" is not 2 to %d widths of 1 to %d with "
                           "commas between them", s, SHAPE_MAX_WIDTHS,
                           SHAPE_MAX_WIDTH);
        }
        shape->width[shape->n++] = width;
        if (!*end) {
            break;
        }
        p = end;
    }
    if (shape->n < 2) {
        return message("%d widths; expected 2 to %d", shape->n,
                       SHAPE_MAX_WIDTHS);
    }
    if (shape_n_parameters(shape) > SHAPE_MAX_PARAMETERS) {
        return message("%zu parameters; expected at most %zu",
                       shape_n_parameters(shape), SHAPE_MAX_PARAMETERS);
    }
    return NULL;
}

size_t
shape_n_parameters(const struct shape *shape)
{
    size_t n = 0;

    for (int i = 1; i < shape->n; i++) {
        n += ((size_t) shape->width[i - 1] + 1) * shape->width[i];
    }
    return n;
}

char *
shape_to_string(const struct shape *shape)
{
    char text[SHAPE_MAX_WIDTHS * 8];
    size_t length = 0;

    for (int i = 0; i < shape->n; i++) {
        length += snprintf(text + length, sizeof text - length, "%s%d",
                           i ? "," : "", shape->width[i]);
    }
    return message("%s", text);
}
