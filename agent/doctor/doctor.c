/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/doctor/checks.h"
#include "util.h"

const char *const doctor_result_names[] = {
    [DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_MISSING] = "missing",
};

static void (*const checks[])(struct doctor *) = {
    doctor_check_cgroup,
    doctor_check_capabilities,
    doctor_check_sock_diag,
    doctor_check_memory,
    doctor_check_ports,
    doctor_check_queueing,
    doctor_check_tcp,
    doctor_check_daemons,
    doctor_check_clock,
};

/* 'config' must outlive the doctor. */
struct doctor *
doctor_examine(const struct doctor_config *config)
{
    struct doctor *d = xzalloc(sizeof *d);

    d->config = config;
    for (size_t i = 0; i < ARRAY_SIZE(checks); i++) {
        checks[i](d);
    }
    return d;
}

void
doctor_destroy(struct doctor *d)
{
    if (d) {
        for (size_t i = 0; i < d->n; i++) {
            free(d->findings[i].what);
            free(d->findings[i].mend);
        }
        free(d->findings);
        free(d);
    }
}

bool
doctor_is_well(const struct doctor *d)
{
    for (size_t i = 0; i < d->n; i++) {
        if (d->findings[i].result == DOCTOR_MISSING) {
            return false;
        }
    }
    return true;
}

void
doctor_add(struct doctor *d, const char *check, enum doctor_result result,
           const char *mend, const char *what, ...)
{
    va_list args;

    if (d->n >= d->allocated) {
        d->findings = x2nrealloc(d->findings, &d->allocated,
                                 sizeof *d->findings);
    }
    va_start(args, what);
    d->findings[d->n++] = (struct doctor_finding) {
        .check = check, .result = result, .what = xvasprintf(what, args),
        .mend = nullable_xstrdup(mend),
    };
    va_end(args);
}

char *
doctor_path(const struct doctor *d, const char *path)
{
    return xasprintf("%s%s", d->config->root, path);
}

bool
doctor_has(const struct doctor *d, const char *path, int mode)
{
    char *full = doctor_path(d, path);
    bool has = !access(full, mode);

    free(full);
    return has;
}

char *
doctor_read(const struct doctor *d, const char *path)
{
    char *full = doctor_path(d, path);
    FILE *stream = fopen(full, "re");
    char line[256];
    char *text = NULL;

    if (stream) {
        if (fgets(line, sizeof line, stream)) {
            line[strcspn(line, "\n")] = '\0';
            text = xstrdup(line);
        }
        fclose(stream);
    }
    free(full);
    return text;
}

bool
doctor_kernel_from(const struct doctor *d, int major, int minor)
{
    char *release = doctor_read(d, "/proc/sys/kernel/osrelease");
    int a, b;
    bool from = (!release || sscanf(release, "%d.%d", &a, &b) != 2
                 || a > major || (a == major && b >= minor));

    free(release);
    return from;
}
