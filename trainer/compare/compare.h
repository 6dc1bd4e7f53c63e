/* SPDX-License-Identifier: Apache-2.0 */

#ifndef COMPARE_H
#define COMPARE_H 1

/* The same training under several synchronisation schemes.
 *
 * The time until a loss depends on the number of iterations and on their
 * duration.  A comparison runs the real programs over loopback, one scheme
 * after the other, with emulated speeds of workers, and records the loss of
 * rank 0 against time.
 *
 *    error = compare_spec_from_file("spec.json", &spec);
 *    error = compare_run(spec, NULL, &report);      // Minutes.
 *    error = report_write_html(report, "compare.html");
 *    report_destroy(report);
 *    compare_spec_destroy(spec);
 *
 * The specification is an object with
 *
 *    schemes         array of what '--sync' takes, and of schemes without a
 *                    server, such as "adpsgd" or "prague,group=2"; required
 *    workers         default 8
 *    servers         default 1
 *    profile         file of a speed profile, from the specification's folder
 *    arguments       array of strings, the workers' options
 *    target_loss     validation loss at which a scheme ends
 *    iterations      or after this number of iterations; default 1000
 *    limit_s         or after this number of seconds; default 60
 *
 * The caller owns specification and report.  One thread; compare_run()
 * blocks, and ends its processes before it returns. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct report;

struct compare_spec {
    char *name;                 /* Name of the file. */
    char **schemes;
    size_t n_schemes;
    int64_t n_workers, n_servers;
    char *profile;              /* NULL if none. */
    char **arguments;
    size_t n_arguments;
    double target_loss;         /* NAN if none. */
    int64_t iterations;
    double limit_s;
};

/* Return NULL or a message. */
char *compare_spec_from_file(const char *file, struct compare_spec **);
char *compare_spec_from_string(const char *name, const char *text,
                               struct compare_spec **);
void compare_spec_destroy(struct compare_spec *);

/* Stores a report with a policy for each scheme, in which rank 0 has a job of
 * the specification's name.  'program' is the path of the trainer; NULL: this
 * program.  At an interrupt (base/interrupt.h) the last policy has failed. */
char *compare_run(const struct compare_spec *, const char *program,
                  struct report **);

/* "stagecoach-trainer compare SPEC.json [--format text|json] [--html FILE]".
 *
 * 'argv' begins with "compare".  Prints messages.  Returns the exit status. */
int compare_command(int argc, char *argv[]);

#endif /* trainer/compare/compare.h */
