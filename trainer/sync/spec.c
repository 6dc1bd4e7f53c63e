/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/balance/predictor.h"
#include "trainer/message.h"
#include "trainer/sync/steal.h"
#include "trainer/sync/sync.h"

const struct sync_class *const sync_classes[] = {
    &sync_bsp, &sync_asp, &sync_ssp, &sync_backup, &sync_static,
    &sync_lbbsp_cpu, &sync_lbbsp_gpu, &sync_flexrr,
    &sync_groups, NULL,
};

static char *
parse_count(const char *value, int64_t min, int64_t max, int64_t *to)
{
    char *end;
    long long x;

    errno = 0;
    x = strtoll(value, &end, 10);
    if (end == value || *end || errno || x < min || x > max) {
        return message("\"%s\" is not an integer from %lld to %lld", value,
                       (long long) min, (long long) max);
    }
    *to = x;
    return NULL;
}

static char *
parse_staleness(const char *value, struct sync_spec *spec)
{
    return parse_count(value, 0, 1000000, &spec->staleness);
}

static char *
parse_backups(const char *value, struct sync_spec *spec)
{
    return parse_count(value, 0, 1023, &spec->backups);
}

static char *
parse_ratios(const char *value, struct sync_spec *spec)
{
    for (const char *p = value; ; p++) {
        char *end;
        double x = strtod(p, &end);

        if (end == p || (*end && *end != ':') || !isfinite(x) || x <= 0
            || x > 1e6 || spec->n_ratios >= SYNC_MAX_RATIOS) {
            return message("\"%s\" is not up to %d numbers from 0 to 1e6 "
                           "with colons", value, SYNC_MAX_RATIOS);
        }
        spec->ratios[spec->n_ratios++] = x;
        if (!*end) {
            return NULL;
        }
        p = end;
    }
}

static char *
parse_predictor(const char *value, struct sync_spec *spec)
{
    if (!predictor_class_find(value)) {
        return message("\"%s\" is not a predictor", value);
    }
    snprintf(spec->predictor, sizeof spec->predictor, "%s", value);
    return NULL;
}

static char *
parse_pieces(const char *value, struct sync_spec *spec)
{
    return parse_count(value, 1, 1000, &spec->pieces);
}

static char *
parse_groups(const char *value, struct sync_spec *spec)
{
    char *error = parse_count(value, 0, 512, &spec->groups);

    if (!error && spec->groups & (spec->groups - 1)) {
        error = message("%lld is not a power of 2",
                        (long long) spec->groups);
    }
    return error;
}

static char *
parse_tau(const char *value, struct sync_spec *spec)
{
    return parse_count(value, 1, 1000000, &spec->tau);
}

static const struct {
    const char *name;
    enum sync_parameter parameter;
    char *(*parse)(const char *, struct sync_spec *);
} parameters[] = {
    { "staleness", SYNC_STALENESS, parse_staleness },
    { "backups", SYNC_BACKUPS, parse_backups },
    { "ratios", SYNC_RATIOS, parse_ratios },
    { "predictor", SYNC_PREDICTOR, parse_predictor },
    { "groups", SYNC_GROUPS, parse_groups },
    { "pieces", SYNC_PIECES, parse_pieces },
    { "tau", SYNC_TAU, parse_tau },
};

static char *
parse_parameter(char *text, struct sync_spec *spec)
{
    char *value = strchr(text, '=');

    if (value) {
        *value++ = '\0';
        for (size_t i = 0; i < sizeof parameters / sizeof parameters[0];
             i++) {
            if (!strcmp(parameters[i].name, text)
                && spec->class->parameters & parameters[i].parameter) {
                char *error = parameters[i].parse(value, spec);
                char *whole = error ? message("%s: %s", text, error) : NULL;

                free(error);
                return whole;
            }
        }
    }
    return message("\"%s\" is not a parameter of %s", text,
                   spec->class->name);
}

static const struct sync_class *
find_class(const char *name)
{
    for (size_t i = 0; sync_classes[i]; i++) {
        if (!strcmp(sync_classes[i]->name, name)) {
            return sync_classes[i];
        }
    }
    return NULL;
}

char *
sync_spec_parse(const char *text, struct sync_spec *spec)
{
    char *copy = duplicate(text), *rest = copy, *error = NULL;
    const char *name = strsep(&rest, ",");

    *spec = (struct sync_spec) {
        .class = find_class(name), .staleness = 3, .backups = 1,
        .predictor = "narx", .pieces = 4, .tau = 8,
    };
    if (!spec->class) {
        error = message("\"%s\" is not a scheme", name);
    }
    while (!error && rest) {
        error = parse_parameter(strsep(&rest, ","), spec);
    }
    free(copy);
    return error;
}

char *
sync_spec_check(const struct sync_spec *spec, int n_workers)
{
    if (spec->class == &sync_flexrr && n_workers > STEAL_MAX_WORKERS) {
        return message("flexrr: %d workers, at most %d are allowed",
                       n_workers, STEAL_MAX_WORKERS);
    }
    if (spec->class->parameters & SYNC_RATIOS
        && spec->n_ratios != n_workers) {
        return message("ratios: %d for %d workers", spec->n_ratios,
                       n_workers);
    }
    if (spec->groups > n_workers) {
        return message("groups: %lld of %d workers",
                       (long long) spec->groups, n_workers);
    }
    if (spec->class->parameters & SYNC_BACKUPS
        && spec->backups >= n_workers) {
        return message("backups: %lld of %d workers",
                       (long long) spec->backups, n_workers);
    }
    return NULL;
}
