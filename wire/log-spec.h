/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_SPEC_H
#define LOG_SPEC_H 1

/* Where a job writes how far it is, and what of it counts.
 *
 *
 * Motivation
 * ==========
 *
 * Frameworks log their progress without being asked, each in its own way.  A
 * specification names one of five formats, the files, and the keys in them.
 * An operator writes rules, JSON, that say which jobs have which files; an
 * engineer gives one specification to "stagecoach run --log".
 *
 *    {"readers": [{"match": {"cojob": "asha*", "job": "*"},
 *                  "format": "json-lines",
 *                  "path": "/runs/%c/%j/result.json",
 *                  "iteration": "training_iteration",
 *                  "metric": "mean_accuracy"}]}
 *
 *    FORMAT:PATH[,iteration=KEY][,metric=KEY][,stage=KEY][,name=NAME]
 *
 * A path is absolute; %c and %j stand for the names of cojob and job, %% for
 * a percent sign, and a part of it may have the wildcards of a shell.  Keys
 * are
 *
 *    json-lines  members of the line's object
 *    csv         columns, named by the file's first line
 *    regex       extended regular expressions, each with a group around the
 *                number
 *    tfevents    the tag of the metric, no other
 *    mlflow      none: the file is the metric's
 *
 * Intervals ("a{2,3}") and back-references ("\1") are not allowed in
 * expressions: with them an expression of a few bytes takes gigabytes or
 * hours.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain data, owned by the caller, immutable after it is read.  No library
 * but base/json-check, since the command line tool reads it too. */

#include <stdbool.h>
#include <stddef.h>

enum log_format {
    LOG_JSON_LINES,
    LOG_CSV,
    LOG_REGEX,
    LOG_TFEVENTS,
    LOG_MLFLOW,
};
extern const char *const log_format_names[];    /* Null-terminated. */

struct log_spec {
    enum log_format format;
    char *path;
    char *iteration;            /* NULL for tfevents and mlflow. */
    char *metric;               /* NULL if only iterations count. */
    char *stage;                /* NULL if rungs are not told. */
    char *name;                 /* What the metric is called, a name as a
                                 * job's; NULL if there is none. */
};

/* A specification for the jobs whose names match. */
struct log_rule {
    char *cojob, *job;          /* Patterns as of fnmatch(). */
    struct log_spec spec;
};

struct log_rules {
    size_t n;
    struct log_rule *rules;
};

/* Each returns NULL and stores what it read, or returns a malloc()'d message
 * that begins with 'name' and stores nothing; the one of rules is a line for
 * each error. */
char *log_spec_parse(const char *name, const char *text, struct log_spec *);
char *log_rules_parse(const char *name, const char *text,
                      struct log_rules **);

void log_spec_clone(struct log_spec *, const struct log_spec *);
void log_spec_uninit(struct log_spec *);
void log_rules_destroy(struct log_rules *);

/* Returns the path of 'spec' for a job, with %c and %j replaced. */
char *log_spec_path(const struct log_spec *, const char *cojob,
                    const char *job);

/* Returns how many bytes of the path's beginning are the same for all jobs and
 * have no wildcards: whole directories. */
size_t log_spec_fixed(const struct log_spec *);

#endif /* wire/log-spec.h */
