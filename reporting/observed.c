/* SPDX-License-Identifier: Apache-2.0 */

#include "reporting/observed.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "reporting/about.h"

/* Lines of each list, so that the page stays one. */
#define MAX_CARDS 12
#define MAX_JOBS 16
#define MAX_LINKS 8
#define MAX_NAMES 4 /* Jobs named in a line of a link. */

#define HOUR_MS 3600000.

/* How the GPUs of a job are known. */
enum gpus_source { GPUS_LAUNCHER, GPUS_DEVICES, GPUS_HOSTS, N_GPUS_SOURCES };

static const char *const gpus_names[N_GPUS_SOURCES] = { "launcher",
                                                        "processes", "hosts" };

struct observed_stage {
    const char *cojob;
    double began, ended, rung;
    const cJSON *jobs;
    double plain, ordered; /* Seconds, simulated; 0 if not. */
};

struct observed_card {
    char *port;
    double of_jobs, all;
};

/* A job in one stage, or in all its stages. */
struct part {
    char *name; /* "COJOB/JOB". */
    size_t stage;
    double hours, gpus, gpu_hours, bytes, hosts;
    double waited_h; /* NAN if it was not measured. */
    enum gpus_source source;
};

/* A job on a link during a stage. */
struct use {
    const char *port;
    const struct part *part;
    double began, ended;
    bool shares;
};

/* A link that jobs have used at the same time. */
struct shared_link {
    const char *port;
    double hours;
    const struct use *uses; /* 'n' of the link, in the order in which they
                             * began. */
    size_t n;
};

/* Sums of all stages for the page. */
struct sums {
    struct part *parts; /* By stage. */
    size_t n_parts;
    struct part *jobs; /* Merged, the most waiting first. */
    size_t n_jobs;
    struct use *uses;
    size_t n_uses;
    struct shared_link *links; /* The longest first. */
    size_t n_links;
    size_t n_sources[N_GPUS_SOURCES]; /* Of jobs. */
    double gpu_hours, waited_gpu_hours, saved_gpu_hours;
    double plain, ordered; /* Sums, simulated. */
};

static double
number(const cJSON *object, const char *name, double otherwise)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) ? item->valuedouble : otherwise;
}

static const char *
string(const cJSON *object, const char *name)
{
    const char *s =
        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));

    return s ? s : "";
}

/* Reading. */

static int
compare_stages(const void *a_, const void *b_)
{
    const struct observed_stage *a = a_, *b = b_;
    int cmp = strcmp(a->cojob, b->cojob);

    return (cmp ? cmp
            : a->began != b->began
                ? (a->began < b->began ? -1 : 1)
                : (a->rung > b->rung) - (a->rung < b->rung));
}

char *
observed_create(const char *name, const char *text, struct observed **op)
{
    cJSON *root = cJSON_Parse(text);
    const cJSON *stages = cJSON_GetObjectItemCaseSensitive(root, "stages");
    struct observed *o;
    const cJSON *item;

    *op = NULL;
    if (!cJSON_IsArray(stages)) {
        cJSON_Delete(root);
        return message("%s: no recording; expected {\"stages\": [...]}", name);
    }
    o = allocate(1, sizeof *o);
    o->recording = root;
    o->stages = allocate(cJSON_GetArraySize(stages) + 1, sizeof *o->stages);
    cJSON_ArrayForEach(item, stages)
    {
        struct observed_stage s = { .cojob = string(item, "cojob"),
                                    .began = number(item, "began", 0),
                                    .ended = number(item, "ended", 0),
                                    .rung = number(item, "rung", 0),
                                    .jobs = cJSON_GetObjectItemCaseSensitive(
                                        item, "jobs") };

        if (s.ended > 0) {
            o->stages[o->n_stages++] = s;
        }
    }
    qsort(o->stages, o->n_stages, sizeof *o->stages, compare_stages);
    *op = o;
    return NULL;
}

void
observed_destroy(struct observed *o)
{
    if (o) {
        for (size_t i = 0; i < o->n_cards; i++) {
            free(o->cards[i].port);
        }
        free(o->cards);
        free(o->stages);
        cJSON_Delete(o->recording);
        free(o);
    }
}

void
observed_add_card(struct observed *o, const char *port, double of_jobs,
                  double all)
{
    o->cards = reallocate(o->cards, o->n_cards + 1, sizeof *o->cards);
    o->cards[o->n_cards++] = (struct observed_card){ .port = duplicate(port),
                                                     .of_jobs = of_jobs,
                                                     .all = all };
}

void
observed_simulated(struct observed *o, size_t stage, double plain_s,
                   double ordered_s)
{
    o->stages[stage].plain = plain_s;
    o->stages[stage].ordered = ordered_s;
}

/* Jobs. */

static struct part
part_of(const struct observed *o, size_t stage, const cJSON *job)
{
    const struct observed_stage *s = &o->stages[stage];
    double launcher = number(job, "gpus", 0);
    double devices = number(job, "devices", 0);
    struct part p = { .name = message("%s/%s", s->cojob, string(job, "job")),
                      .stage = stage,
                      .hours = (s->ended - s->began) / HOUR_MS,
                      .hosts = number(job, "hosts", 0),
                      .waited_h = number(job, "waited_s", NAN) / 3600,
                      .source = launcher > 0  ? GPUS_LAUNCHER
                                : devices > 0 ? GPUS_DEVICES
                                              : GPUS_HOSTS };
    const cJSON *item;

    p.gpus = launcher > 0 ? launcher : devices > 0 ? devices : p.hosts;
    p.gpu_hours = p.gpus * p.hours;
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(job, "bytes"))
    {
        size_t n = strlen(item->string);

        p.bytes += n > 3 && !strcmp(item->string + n - 3, ":tx")
                       ? item->valuedouble
                       : 0;
    }
    return p;
}

static void
add_parts(const struct observed *o, struct sums *sums)
{
    for (size_t i = 0; i < o->n_stages; i++) {
        const cJSON *job;

        cJSON_ArrayForEach(job, o->stages[i].jobs)
        {
            sums->parts = reallocate(sums->parts, sums->n_parts + 1,
                                     sizeof *sums->parts);
            sums->parts[sums->n_parts++] = part_of(o, i, job);
        }
    }
}

static int
compare_names(const void *a_, const void *b_)
{
    const struct part *a = a_, *b = b_;

    return strcmp(a->name, b->name);
}

/* The most waiting in GPU-hours first, then by name. */
static int
compare_waiting(const void *a_, const void *b_)
{
    const struct part *a = a_, *b = b_;
    double x = isnan(a->waited_h) ? -1 : a->waited_h * a->gpus;
    double y = isnan(b->waited_h) ? -1 : b->waited_h * b->gpus;

    return x != y ? (x > y ? -1 : 1) : strcmp(a->name, b->name);
}

/* Adds a later stage of the same job. */
static void
merge(struct part *job, const struct part *p)
{
    job->hours += p->hours;
    job->gpu_hours += p->gpu_hours;
    job->bytes += p->bytes;
    job->hosts = fmax(job->hosts, p->hosts);
    job->gpus = fmax(job->gpus, p->gpus);
    if (!isnan(p->waited_h)) {
        job->waited_h =
            (isnan(job->waited_h) ? 0 : job->waited_h) + p->waited_h;
    }
    job->source = p->source < job->source ? p->source : job->source;
}

static void
merge_jobs(struct sums *sums)
{
    size_t n = sums->n_parts;

    sums->jobs = allocate(n + 1, sizeof *sums->jobs);
    if (n) {
        memcpy(sums->jobs, sums->parts, n * sizeof *sums->jobs);
        qsort(sums->jobs, n, sizeof *sums->jobs, compare_names);
    }
    for (size_t i = 0; i < n; i++) {
        struct part *last = sums->jobs + sums->n_jobs - 1;

        if (sums->n_jobs && !strcmp(last->name, sums->jobs[i].name)) {
            merge(last, &sums->jobs[i]);
        } else {
            sums->jobs[sums->n_jobs++] = sums->jobs[i];
        }
    }
    qsort(sums->jobs, sums->n_jobs, sizeof *sums->jobs, compare_waiting);
    for (size_t i = 0; i < sums->n_jobs; i++) {
        sums->n_sources[sums->jobs[i].source]++;
    }
}

/* Links. */

static void
add_uses(const struct observed *o, struct sums *sums)
{
    const struct part *p = sums->parts;

    for (size_t i = 0; i < o->n_stages; i++) {
        const cJSON *job, *item;

        cJSON_ArrayForEach(job, o->stages[i].jobs)
        {
            cJSON_ArrayForEach(item,
                               cJSON_GetObjectItemCaseSensitive(job, "bytes"))
            {
                sums->uses = reallocate(sums->uses, sums->n_uses + 1,
                                        sizeof *sums->uses);
                sums->uses[sums->n_uses++] =
                    (struct use){ .port = item->string,
                                  .part = p,
                                  .began = o->stages[i].began,
                                  .ended = o->stages[i].ended };
            }
            p++;
        }
    }
}

static int
compare_uses(const void *a_, const void *b_)
{
    const struct use *a = a_, *b = b_;
    int cmp = strcmp(a->port, b->port);

    return (cmp                    ? cmp
            : a->began != b->began ? (a->began < b->began ? -1 : 1)
                                   : strcmp(a->part->name, b->part->name));
}

/* Finds the time in which two or more jobs of the 'n' uses of a link overlap:
 * each use from its begin up to the latest end of those that began before. */
static struct shared_link
share(struct use *uses, size_t n)
{
    struct shared_link link = { .port = uses->port, .uses = uses, .n = n };
    struct use *latest = uses;
    double counted = uses->began;

    for (size_t i = 1; i < n; i++) {
        double to = fmin(uses[i].ended, latest->ended);

        if (uses[i].began < to
            && strcmp(uses[i].part->name, latest->part->name)) {
            uses[i].shares = latest->shares = true;
            link.hours += fmax(0, to - fmax(uses[i].began, counted)) / HOUR_MS;
            counted = fmax(counted, to);
        }
        latest = uses[i].ended > latest->ended ? &uses[i] : latest;
    }
    return link;
}

/* The longest first. */
static int
compare_links(const void *a_, const void *b_)
{
    const struct shared_link *a = a_, *b = b_;

    return (a->hours != b->hours ? (a->hours > b->hours ? -1 : 1)
                                 : strcmp(a->port, b->port));
}

static void
find_links(struct sums *sums)
{
    size_t n;

    sums->links = allocate(sums->n_uses + 1, sizeof *sums->links);
    qsort(sums->uses, sums->n_uses, sizeof *sums->uses, compare_uses);
    for (size_t i = 0; i < sums->n_uses; i += n) {
        struct shared_link link;

        n = 1;
        while (i + n < sums->n_uses
               && !strcmp(sums->uses[i].port, sums->uses[i + n].port)) {
            n++;
        }
        link = share(&sums->uses[i], n);
        if (link.hours > 0) {
            sums->links[sums->n_links++] = link;
        }
    }
    qsort(sums->links, sums->n_links, sizeof *sums->links, compare_links);
}

/* Sums. */

static void
sums_init(const struct observed *o, struct sums *sums)
{
    *sums = (struct sums){ .n_parts = 0 };
    add_parts(o, sums);
    merge_jobs(sums);
    add_uses(o, sums);
    if (sums->n_uses) {
        find_links(sums);
    }
    for (size_t i = 0; i < sums->n_parts; i++) {
        const struct part *p = &sums->parts[i];
        const struct observed_stage *s = &o->stages[p->stage];

        sums->gpu_hours += p->gpu_hours;
        sums->waited_gpu_hours +=
            isnan(p->waited_h) ? 0 : p->waited_h * p->gpus;
        if (s->plain > 0) {
            sums->saved_gpu_hours +=
                p->gpu_hours * (1 - s->ordered / s->plain);
        }
    }
    for (size_t i = 0; i < o->n_stages; i++) {
        sums->plain += o->stages[i].plain;
        sums->ordered += o->stages[i].ordered;
    }
}

static void
sums_uninit(struct sums *sums)
{
    for (size_t i = 0; i < sums->n_parts; i++) {
        free(sums->parts[i].name);
    }
    free(sums->parts);
    free(sums->jobs);
    free(sums->uses);
    free(sums->links);
}

/* The page. */

static void
put_time(double ms, FILE *f)
{
    time_t at = ms / 1000;
    char text[32];
    struct tm tm;

    strftime(text, sizeof text, "%Y-%m-%d %H:%M", localtime_r(&at, &tm));
    fputs(text, f);
}

static void
put_more(size_t n, size_t shown, const char *noun, FILE *f)
{
    if (n > shown) {
        fprintf(f, "and %zu more %s\n", n - shown, noun);
    }
}

static void
put_head(const struct observed *o, const struct sums *sums, FILE *f)
{
    fputs("observed from ", f);
    put_time(fmax(o->since, o->cut), f);
    fputs(" to ", f);
    put_time(o->until, f);
    fprintf(f, ": %zu jobs in %zu stages, %.4g GPU-hours\n", sums->n_jobs,
            o->n_stages, sums->gpu_hours);
    if (o->cut > o->since) {
        fputs("what is older was deleted, because the recording had reached "
              "its limit\n",
              f);
    }
}

static void
put_cards(const struct observed *o, FILE *f)
{
    fprintf(f, "\n%-20s %12s %12s %8s\n", "link of a host", "GB of jobs",
            "GB of all", "seen");
    for (size_t i = 0; i < o->n_cards && i < MAX_CARDS; i++) {
        const struct observed_card *c = &o->cards[i];

        fprintf(f, "%-20s %12.4g ", c->port, c->of_jobs / 1e9);
        if (c->all > 0) {
            fprintf(f, "%12.4g %7.1f%%\n", c->all / 1e9,
                    100 * fmin(1, c->of_jobs / c->all));
        } else {
            fprintf(f, "%12s %8s\n", "unknown", "-");
        }
    }
    put_more(o->n_cards, MAX_CARDS, "links", f);
    fputs("RDMA passes a card without the kernel and is in neither number\n",
          f);
}

static void
put_jobs(const struct sums *sums, FILE *f)
{
    fprintf(f, "\n%-28s %5s %5s %9s %9s %9s %7s %9s\n", "job", "hosts", "GPUs",
            "hours", "GB sent", "waited h", "share", "GPU-h");
    for (size_t i = 0; i < sums->n_jobs && i < MAX_JOBS; i++) {
        const struct part *p = &sums->jobs[i];

        fprintf(f, "%-28s %5.0f %5.0f %9.4g %9.4g", p->name, p->hosts, p->gpus,
                p->hours, p->bytes / 1e9);
        if (isnan(p->waited_h)) {
            fprintf(f, " %9s %7s %9s\n", "unknown", "-", "-");
        } else {
            fprintf(f, " %9.4g %6.1f%% %9.4g\n", p->waited_h,
                    100 * p->waited_h / p->hours, p->waited_h * p->gpus);
        }
    }
    put_more(sums->n_jobs, MAX_JOBS, "jobs", f);
    fprintf(f,
            "a job waits while a burst of it takes longer than its bytes "
            "at the rate of the link\n"
            "GPUs are known from the launcher of %zu jobs, those of %zu are "
            "taken as one for each\nprocess that computes, and those of %zu "
            "as one for each host\n",
            sums->n_sources[GPUS_LAUNCHER], sums->n_sources[GPUS_DEVICES],
            sums->n_sources[GPUS_HOSTS]);
}

static int
compare_strings(const void *a, const void *b)
{
    return strcmp(*(const char *const *) a, *(const char *const *) b);
}

/* Calls 'put' with each job that shares the link, by name.  Returns their
 * number. */
static size_t
for_each_sharer(const struct shared_link *link,
                void (*put)(const char *job, size_t n, void *aux), void *aux)
{
    const char **names = allocate(link->n, sizeof *names);
    size_t n = 0, n_different = 0;

    for (size_t i = 0; i < link->n; i++) {
        if (link->uses[i].shares) {
            names[n++] = link->uses[i].part->name;
        }
    }
    qsort(names, n, sizeof *names, compare_strings);
    for (size_t i = 0; i < n; i++) {
        if (!i || strcmp(names[i - 1], names[i])) {
            put(names[i], n_different++, aux);
        }
    }
    free(names);
    return n_different;
}

static void
put_name(const char *job, size_t n, void *f)
{
    if (n < MAX_NAMES) {
        fprintf(f, "%s%s", n ? ", " : "  ", job);
    }
}

static void
put_links(const struct sums *sums, FILE *f)
{
    if (!sums->n_links) {
        fputs("\nno link was shared by jobs\n", f);
        return;
    }
    fprintf(f, "\n%-20s %9s  %s\n", "shared link", "hours", "by");
    for (size_t i = 0; i < sums->n_links && i < MAX_LINKS; i++) {
        size_t n;

        fprintf(f, "%-20s %9.4g", sums->links[i].port, sums->links[i].hours);
        n = for_each_sharer(&sums->links[i], put_name, f);
        if (n > MAX_NAMES) {
            fprintf(f, " and %zu more", n - MAX_NAMES);
        }
        putc('\n', f);
    }
    put_more(sums->n_links, MAX_LINKS, "links", f);
}

static void
put_saving(const struct observed *o, const struct sums *sums, FILE *f)
{
    fprintf(f, "\nwaiting took %.4g of %.4g GPU-hours\n",
            sums->waited_gpu_hours, sums->gpu_hours);
    if (sums->plain > 0) {
        fprintf(f,
                "the order \"%s\" would have saved %.4g GPU-hours: in the "
                "simulator, stages complete\nin %.2f of their time\n",
                o->policy, sums->saved_gpu_hours, sums->ordered / sums->plain);
    }
}

void
observed_put_page(const struct observed *o, FILE *f)
{
    char *about = about_this_run();
    struct sums sums;

    sums_init(o, &sums);
    put_head(o, &sums, f);
    put_cards(o, f);
    put_jobs(&sums, f);
    put_links(&sums, f);
    put_saving(o, &sums, f);
    fprintf(f, "\n%s\n", about);
    free(about);
    sums_uninit(&sums);
}

/* JSON. */

static cJSON *
cards_to_json(const struct observed *o)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < o->n_cards; i++) {
        cJSON *item = cJSON_CreateObject();

        cJSON_AddStringToObject(item, "port", o->cards[i].port);
        cJSON_AddNumberToObject(item, "bytes", o->cards[i].of_jobs);
        cJSON_AddNumberToObject(item, "all_bytes", o->cards[i].all);
        cJSON_AddItemToArray(array, item);
    }
    return array;
}

static cJSON *
jobs_to_json(const struct sums *sums)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < sums->n_jobs; i++) {
        const struct part *p = &sums->jobs[i];
        cJSON *item = cJSON_CreateObject();

        cJSON_AddStringToObject(item, "job", p->name);
        cJSON_AddNumberToObject(item, "hosts", p->hosts);
        cJSON_AddNumberToObject(item, "gpus", p->gpus);
        cJSON_AddStringToObject(item, "gpus_by", gpus_names[p->source]);
        cJSON_AddNumberToObject(item, "hours", p->hours);
        cJSON_AddNumberToObject(item, "tx_bytes", p->bytes);
        if (!isnan(p->waited_h)) {
            cJSON_AddNumberToObject(item, "waited_hours", p->waited_h);
        }
        cJSON_AddItemToArray(array, item);
    }
    return array;
}

static void
add_name(const char *job, size_t n, void *array)
{
    (void) n;
    cJSON_AddItemToArray(array, cJSON_CreateString(job));
}

static cJSON *
links_to_json(const struct sums *sums)
{
    cJSON *array = cJSON_CreateArray();

    for (size_t i = 0; i < sums->n_links; i++) {
        cJSON *item = cJSON_CreateObject();

        cJSON_AddStringToObject(item, "port", sums->links[i].port);
        cJSON_AddNumberToObject(item, "hours", sums->links[i].hours);
        for_each_sharer(&sums->links[i], add_name,
                        cJSON_AddArrayToObject(item, "jobs"));
        cJSON_AddItemToArray(array, item);
    }
    return array;
}

cJSON *
observed_to_json(const struct observed *o)
{
    cJSON *top = cJSON_CreateObject();
    char *about = about_this_run();
    struct sums sums;

    sums_init(o, &sums);
    cJSON_AddStringToObject(top, "about", about);
    free(about);
    cJSON_AddNumberToObject(top, "since", o->since);
    cJSON_AddNumberToObject(top, "until", o->until);
    cJSON_AddNumberToObject(top, "cut", o->cut);
    cJSON_AddNumberToObject(top, "stages", o->n_stages);
    cJSON_AddItemToObject(top, "cards", cards_to_json(o));
    cJSON_AddItemToObject(top, "jobs", jobs_to_json(&sums));
    cJSON_AddItemToObject(top, "links", links_to_json(&sums));
    cJSON_AddNumberToObject(top, "gpu_hours", sums.gpu_hours);
    cJSON_AddNumberToObject(top, "waited_gpu_hours", sums.waited_gpu_hours);
    cJSON_AddStringToObject(top, "policy", o->policy);
    if (sums.plain > 0) {
        cJSON_AddNumberToObject(top, "ratio", sums.ordered / sums.plain);
        cJSON_AddNumberToObject(top, "saved_gpu_hours", sums.saved_gpu_hours);
    }
    sums_uninit(&sums);
    return top;
}
