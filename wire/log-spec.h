/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LOG_SPEC_H
#define LOG_SPEC_H 1

/* Specification of a job's log: its files, format and keys.
 *
 * Frameworks log their progress, each in its own format.  A specification
 * names one of five formats, the files, and the keys of the values.  An
 * operator writes rules in JSON, each with a specification for matching jobs;
 * an engineer passes one specification to "stagecoach run --log", which stores
 * it in the environment of the job.  The agent finds it there, however late it
 * starts.
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
 *    json-lines  members of the line's object; "a/b" may be member "b" of "a"
 *    csv         columns, named by the file's first line
 *    regex       extended regular expressions, each with a group around the
 *                number; see log-expression.h
 *    mlflow      none: each metric has its own file
 *
 * Plain data, owned by the caller, immutable after parsing. */

#include <stddef.h>

enum log_format {
    LOG_JSON_LINES,
    LOG_CSV,
    LOG_REGEX,
    LOG_MLFLOW,
};
extern const char *const log_format_names[];    /* Null-terminated. */

enum log_key {
    LOG_ITERATION,            /* NULL for mlflow. */
    LOG_METRIC,               /* NULL if there is no metric. */
    LOG_STAGE,                /* NULL if the log has no rungs. */
    LOG_N_NUMBERS,            /* The keys before it name numbers. */
    LOG_NAME = LOG_N_NUMBERS, /* Name of the metric, a valid name; NULL if
                               * there is no metric. */
    LOG_N_KEYS,
};

struct log_spec {
    enum log_format format;
    char *path;
    char *keys[LOG_N_KEYS];
};

/* Specification for the jobs with matching names. */
struct log_rule {
    char *cojob, *job;          /* Patterns for fnmatch(). */
    struct log_spec spec;
};

struct log_rules {
    size_t n;
    struct log_rule *rules;
};

/* Return NULL and store the result, or return a malloc()'d message that begins
 * with 'name' and store nothing; the message of rules has a line per error. */
char *log_spec_parse(const char *name, const char *text, struct log_spec *);
char *log_rules_parse(const char *name, const char *text, struct log_rules **);

void log_spec_uninit(struct log_spec *);
void log_rules_destroy(struct log_rules *);

/* Returns the path of 'spec' for "COJOB/JOB", with %c and %j replaced. */
char *log_spec_path(const struct log_spec *, const char *job);

/* Returns the text from which log_spec_parse() makes the same specification.
 */
char *log_spec_to_text(const struct log_spec *);

/* Returns the length of the path at 'text', which follows "FORMAT:", in a text
 * that need not be valid. */
size_t log_spec_path_length(const char *text);

#endif /* wire/log-spec.h */
