/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TRAINER_SEARCH_LAUNCH_H
#define TRAINER_SEARCH_LAUNCH_H 1

/* Starts programs on hosts.
 *
 * A search starts programs on hosts and communicates with them by their
 * standard input and output.  A host is this machine, a network namespace of
 * it, or another machine with the same programs, which the ssh client starts
 * there, without a password.  They end with their standard input, so the end
 * of the client ends them too.
 *
 *    error = child_start(&child, host, argv, env);
 *    ...poll for child.out.fd...
 *    while ((line = child_line(&child.out))) {
 *        ...
 *    }
 *    child_say(&child, "until 40\n");
 *    if (child_reap(&child)) {
 *        ...child.status...
 *    }
 *    child_uninit(&child);
 *
 * A child is the leader of its own process group, and gets SIGTERM when the
 * search dies.  It inherits standard error, unless 'has_err' is set before
 * child_start(): then 'err' has its lines.
 *
 * The caller owns the struct.  One thread. */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define CHILD_MAX_LINE 4096     /* Longer lines are dropped. */
#define CHILD_MAX_WORDS 256

struct search_host;

/* A list of words that owns them and ends with a null pointer, such as an
 * 'argv'.  Begins as zeros; words beyond CHILD_MAX_WORDS are dropped. */
struct words {
    char *words[CHILD_MAX_WORDS + 1];
    int n;
};

/* An output of a child. */
struct child_output {
    int fd;                     /* -1 after its end. */
    char buffer[CHILD_MAX_LINE];
    size_t length;              /* Bytes in the buffer. */
    size_t taken;               /* Bytes already returned by child_line(). */
    bool skipping;              /* Skips the rest of a line that is too
                                 * long. */
};

struct child {
    pid_t pid;                  /* 0 before it starts and after its end. */
    int in;                     /* Its standard input, -1 when closed. */
    struct child_output out, err;       /* Its standard output and error. */
    bool has_err;               /* Standard error is read, not inherited. */
    int status;                 /* Status from waitpid(), after the end. */
};

/* Take ownership of 'word' and 'value'.  'words' is a struct words. */
void words_add(void *words, char *word);
void words_add_option(void *words, const char *name, char *value);
void words_uninit(struct words *);

void child_init(struct child *);
void child_uninit(struct child *);      /* Kills a running child. */

/* Starts a child.  'argv[0]' is a path on the host.  'env' has strings
 * "NAME=VALUE" to add to the environment, and a final NULL.  Returns NULL, or
 * a message if the program could not be executed. */
char *child_start(struct child *, const struct search_host *,
                  const char *const argv[], const char *const env[]);

/* Returns the next complete line without its newline, or NULL.  Valid until
 * the next call. */
char *child_line(struct child_output *);

void child_say(struct child *, const char *text);
void child_hang_up(struct child *);     /* Closes its standard input. */
void child_kill(const struct child *, int signal);      /* And its group. */

/* Returns true once, after the end of the child.  Remaining lines can be read
 * after that. */
bool child_reap(struct child *);

#endif /* trainer/search/launch.h */
