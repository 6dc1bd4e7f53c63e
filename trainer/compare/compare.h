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
 *    error = compare_run(spec, NULL, &curves);      // Minutes.
 *    compare_write_svg(spec, curves, false, "plot.svg");
 *    compare_curves_destroy(spec, curves);
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
 * The caller owns specification and curves.  One thread; compare_run()
 * blocks, and ends its processes before it returns. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

struct compare_point {
    double seconds;             /* Since the start of all workers. */
    uint64_t iteration;
    double loss, accuracy;      /* Of the validation samples. */
};

/* Result of one scheme. */
struct compare_curve {
    struct compare_point *points;
    size_t n_points, max_points;
    bool reached;               /* The last point has reached the target. */
};

/* Return NULL or a message. */
char *compare_spec_from_file(const char *file, struct compare_spec **);
char *compare_spec_from_string(const char *name, const char *text,
                               struct compare_spec **);
void compare_spec_destroy(struct compare_spec *);

/* 'program' is the path of the trainer; NULL: this program.  After an
 * interrupt (base/interrupt.h) the specification has only the schemes before
 * it. */
char *compare_run(struct compare_spec *, const char *program,
                  struct compare_curve **);
void compare_curves_destroy(const struct compare_spec *,
                            struct compare_curve *);

/* Writes a chart of loss, or of accuracy, against time. */
char *compare_write_svg(const struct compare_spec *,
                        const struct compare_curve *, bool accuracy,
                        const char *file);

/* "stagecoach-trainer compare SPEC.json [--format text|json] [--svg FILE]
 * [--plot loss|accuracy]".
 *
 * 'argv' begins with "compare".  Prints messages.  Returns the exit status. */
int compare_command(int argc, char *argv[]);

#endif /* trainer/compare/compare.h */
