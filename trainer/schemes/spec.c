/* SPDX-License-Identifier: Apache-2.0 */

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "trainer/balance/predictor.h"
#include "trainer/schemes/steal.h"
#include "trainer/schemes/sync.h"

static const struct {
    const char *name;
    unsigned int parameters;
    bool serverless;
} schemes[] = {
    { "bsp", 0 },
    { "asp", 0 },
    { "ssp", SYNC_STALENESS },
    { "essp", SYNC_STALENESS },
    { "backup", SYNC_BACKUPS | SYNC_PIECES },
    { "static", SYNC_RATIOS },
    { "lbbsp-cpu", SYNC_PREDICTOR },
    { "lbbsp-gpu", 0 },
    { "flexrr", SYNC_PIECES },
    { "groups", SYNC_GROUPS | SYNC_TAU },
    { "allreduce", 0, .serverless = true },
    { "allreduce-tree", 0, .serverless = true },
    { "adpsgd", 0, .serverless = true },
    { "prague", SYNC_GROUP, .serverless = true },
    { "netmax", 0, .serverless = true },
    { "netmax-published", SYNC_POLICY_EVERY, .serverless = true },
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
parse_seconds(const char *value, struct sync_spec *spec)
{
    char *end;
    double x = strtod(value, &end);

    if (end == value || *end || !(x >= 0.001 && x <= 1e6)) {
        return message("\"%s\" is not a number from 0.001 to 1e6", value);
    }
    spec->policy_every = x;
    return NULL;
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

#define AT(MEMBER) offsetof(struct sync_spec, MEMBER)

/* A parameter is a count from 'min' to 'max' at 'offset' in struct sync_spec,
 * unless it has a parser of its own. */
static const struct {
    const char *name;
    enum sync_parameter parameter;
    size_t offset;
    int64_t min, max;
    char *(*parse)(const char *, struct sync_spec *);
} parameters[] = {
    { "staleness", SYNC_STALENESS, AT(staleness), 0, 1000000 },
    { "backups", SYNC_BACKUPS, AT(backups), 0, 1023 },
    { "groups", SYNC_GROUPS, AT(groups), 0, 512 },
    { "max", SYNC_GROUPS, AT(max_groups), 1, 512 },
    { "pieces", SYNC_PIECES, AT(pieces), 1, 1000 },
    { "tau", SYNC_TAU, AT(tau), 1, 1000000 },
    { "ratios", SYNC_RATIOS, .parse = parse_ratios },
    { "predictor", SYNC_PREDICTOR, .parse = parse_predictor },
    { "group", SYNC_GROUP, AT(group), 2, SYNC_MAX_PEERS },
    { "policy-every", SYNC_POLICY_EVERY, .parse = parse_seconds },
};

static char *
set_parameter(size_t i, const char *value, struct sync_spec *spec)
{
    char *error = parameters[i].parse
                  ? parameters[i].parse(value, spec)
                  : parse_count(value, parameters[i].min, parameters[i].max,
                                (int64_t *) ((char *) spec
                                             + parameters[i].offset));

    if (!error && spec->groups & (spec->groups - 1)) {
        error = message("%lld is not a power of 2", (long long) spec->groups);
    }
    return error;
}

static char *
parse_parameter(char *text, struct sync_spec *spec)
{
    char *value = strchr(text, '=');

    if (value) {
        *value++ = '\0';
        for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
            if (!strcmp(parameters[i].name, text)
                && spec->parameters & parameters[i].parameter) {
                char *error = set_parameter(i, value, spec);
                char *whole = error ? message("%s: %s", text, error) : NULL;

                free(error);
                return whole;
            }
        }
    }
    return message("\"%s\" is not a parameter of %s", text, spec->name);
}

static char *
set_name(const char *name, struct sync_spec *spec)
{
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        if (!strcmp(schemes[i].name, name)) {
            spec->name = schemes[i].name;
            spec->parameters = schemes[i].parameters;
            spec->serverless = schemes[i].serverless;
            return NULL;
        }
    }
    return message("\"%s\" is not a scheme", name);
}

char *
sync_spec_read(const char *text, struct sync_spec *spec)
{
    char *copy = duplicate(text), *rest = copy, *error;

    *spec = (struct sync_spec) {
        .staleness = 3, .backups = 1, .predictor = "narx", .pieces = 1,
        .tau = 8, .group = 4, .policy_every = 120,
    };
    error = set_name(strsep(&rest, ","), spec);
    if (!error && !strcmp(spec->name, "flexrr")) {
        spec->pieces = 4;
    }
    while (!error && rest) {
        error = parse_parameter(strsep(&rest, ","), spec);
    }
    free(copy);
    return error;
}

void
sync_spec_peer_options(const struct sync_spec *spec,
                       void (*add)(void *aux, const char *name, char *value),
                       void *aux)
{
    add(aux, "--scheme", duplicate(spec->name));
    if (spec->parameters & SYNC_GROUP) {
        add(aux, "--group", message("%lld", (long long) spec->group));
    }
    if (spec->parameters & SYNC_POLICY_EVERY) {
        add(aux, "--policy-every", message("%.9g", spec->policy_every));
    }
}

char *
sync_spec_check(const struct sync_spec *spec, int n_workers)
{
    if (spec->serverless) {
        return n_workers > SYNC_MAX_PEERS
                   ? message("%s: %d workers; expected at most %d", spec->name,
                             n_workers, SYNC_MAX_PEERS)
                   : NULL;
    }
    if (!strcmp(spec->name, "flexrr") && n_workers > STEAL_MAX_WORKERS) {
        return message("flexrr: %d workers; expected at most %d", n_workers,
                       STEAL_MAX_WORKERS);
    }
    if (!strcmp(spec->name, "essp") && spec->staleness > SYNC_MAX_IN_FLIGHT) {
        return message("staleness: %lld; expected at most %d for essp",
                       (long long) spec->staleness, SYNC_MAX_IN_FLIGHT);
    }
    if (spec->parameters & SYNC_RATIOS && spec->n_ratios != n_workers) {
        return message("ratios: %d for %d workers", spec->n_ratios, n_workers);
    }
    if (spec->groups && spec->max_groups) {
        return message("max: not allowed with groups=%lld, which is exact",
                       (long long) spec->groups);
    }
    if (spec->groups > n_workers) {
        return message("groups: %lld of %d workers", (long long) spec->groups,
                       n_workers);
    }
    if (spec->parameters & SYNC_BACKUPS && spec->backups >= n_workers) {
        return message("backups: %lld of %d workers",
                       (long long) spec->backups, n_workers);
    }
    return NULL;
}
