/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "agent/host-facts.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/agent.h"
#include "agent/doctor/doctor.h"
#include "util.h"
#include "wire/certificate.h"
#include "wire/daemon-options.h"

#define COLLECT_MS 60000

void
host_facts_init(struct host_facts *f)
{
    *f = (struct host_facts) { .next = LLONG_MIN };
    smap_init(&f->map);
}

void
host_facts_uninit(struct host_facts *f)
{
    smap_destroy(&f->map);
    free(f->about);
}

static void
add_fact(struct smap *map, const char *kind, const char *name,
         const char *value)
{
    char *key = xasprintf("%s_%s", kind, name);

    smap_replace(map, key, value);
    free(key);
}

/* Adds each line "NAME VALUE" of the shim. */
static void
add_shim(struct smap *map, const char *about)
{
    char *text = xstrdup(about), *rest = text, *line;

    while ((line = strsep(&rest, "\n"))) {
        char *value = strchr(line, ' ');

        if (value) {
            *value++ = '\0';
            add_fact(map, "shim", line, value);
        }
    }
    free(text);
}

static void
add_certificate(struct smap *map)
{
    const char *file = tls_file('c');
    struct certificate cert;

    if (file) {
        char *error = certificate_read(file, &cert);

        if (!error) {
            smap_replace(map, "certificate", cert.name);
            smap_add_format(map, "certificate_expires", "%"PRId64,
                            cert.expires * 1000);
        }
        free(error);
        free(cert.name);
    }
}

static void
add_findings(struct smap *map, const struct agent_config *c)
{
    const struct doctor_config config = {
        .root = "",
        .rundir = c->rundir,
        .cgroup = c->cgroup,
        .quick = true,
    };
    struct doctor *d = doctor_examine(&config);

    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];

        if (f->result != DOCTOR_OK) {
            add_fact(map, "check", f->check, doctor_result_names[f->result]);
            add_fact(map, "what", f->check, f->what);
            add_fact(map, "remedy", f->check, f->mend ? f->mend : "");
        }
    }
    doctor_destroy(d);
}

void
host_facts_run(struct host_facts *f, const struct agent_config *c,
               const char *about, long long now)
{
    struct utsname uts;

    if (now < f->next && f->about && !strcmp(f->about, about)) {
        return;
    }
    f->next = now + COLLECT_MS;
    free(f->about);
    f->about = xstrdup(about);
    smap_clear(&f->map);
    if (!uname(&uts)) {
        smap_add(&f->map, "kernel", uts.release);
    }
    if (c->n_tc) {
        smap_add_format(&f->map, "tc", "%"PRIuSIZE, c->n_tc);
    }
    add_shim(&f->map, about);
    add_certificate(&f->map);
    add_findings(&f->map, c);
}
