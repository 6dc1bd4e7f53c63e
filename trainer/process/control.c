/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/control.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

#define MAX_LINE 8192           /* Addresses of all peers. */

struct control {
    bool has_input;             /* Standard input may have commands. */
    bool at_end;                /* Standard input has ended. */
    bool stop;
    uint64_t target;
    int n_targets;
    char *peers;                /* Of the line "peers", or NULL. */
    char line[MAX_LINE];        /* Start of the next line. */
    size_t length;
};

/* Readable after a signal; -1 if it could not be created.  A signalfd would
 * need all threads to block the signals, and the arithmetic library starts
 * some before main(). */
static int signal_fd = -1;

static void
take_signal(int signal)
{
    uint64_t one = 1;
    int saved = errno;

    if (write(signal_fd, &one, sizeof one) < 0) {
        /* A handler cannot report an error. */
    }
    errno = saved;
}

/* A device other than a terminal, such as /dev/null, has no commands. */
static bool
input_has_commands(void)
{
    struct stat st;

    return !fstat(STDIN_FILENO, &st)
           && (!S_ISCHR(st.st_mode) || isatty(STDIN_FILENO));
}

struct control *
control_create(uint64_t until)
{
    struct control *control = allocate(1, sizeof *control);
    struct sigaction action = { .sa_handler = take_signal,
                                .sa_flags = SA_RESTART };

    signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (signal_fd >= 0) {
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGINT, &action, NULL);
    }
    control->has_input = input_has_commands();
    control->target = until;
    control->n_targets = until > 0;
    return control;
}

void
control_destroy(struct control *control)
{
    if (control) {
        /* The process ends: there is nothing to interrupt. */
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        if (signal_fd >= 0) {
            close(signal_fd);
            signal_fd = -1;
        }
        free(control->peers);
        free(control);
    }
}

int
control_signal_fd(const struct control *control)
{
    return signal_fd;
}

int
control_input_fd(const struct control *control)
{
    return control->has_input && !control->at_end ? STDIN_FILENO : -1;
}

static void
take_line(struct control *control, const char *line)
{
    unsigned long long until;
    int n = 0;

    if (!strcmp(line, "stop")) {
        control->stop = true;
    } else if (!strncmp(line, "peers ", 6)) {
        free(control->peers);
        control->peers = duplicate(line + 6);
    } else if (sscanf(line, "until %llu%n", &until, &n) == 1 && !line[n]
               && line[6] != '-') {
        control->target = until;
        control->n_targets += until > 0;
    } else {
        fprintf(stderr,
                "standard input: \"%s\"; expected \"until ITERATIONS\", "
                "\"peers HOST:PORT,...\" or \"stop\"\n",
                line);
    }
}

static void
take_bytes(struct control *control, const char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] == '\n') {
            control->line[control->length] = '\0';
            control->length = 0;
            take_line(control, control->line);
        } else if (control->length < sizeof control->line - 1) {
            control->line[control->length++] = bytes[i];
        }
    }
}

static bool
readable(int fd)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };

    return poll(&pfd, 1, 0) > 0;
}

void
control_run(struct control *control)
{
    uint64_t n_signals;
    char bytes[256];

    if (signal_fd >= 0 && read(signal_fd, &n_signals, sizeof n_signals) > 0) {
        control->stop = true;
    }
    while (control_input_fd(control) >= 0 && readable(STDIN_FILENO)) {
        ssize_t n = read(STDIN_FILENO, bytes, sizeof bytes);

        if (n > 0) {
            take_bytes(control, bytes, n);
        } else if (!n || (errno != EINTR && errno != EAGAIN)) {
            control->at_end = true;
        }
    }
}

void
control_wait(struct control *control)
{
    struct pollfd fds[2] = {
        { .fd = signal_fd, .events = POLLIN },
        { .fd = control_input_fd(control), .events = POLLIN },
    };

    poll(fds, 2, -1);
    control_run(control);
}

bool
control_stopped(const struct control *control)
{
    return control->stop;
}

bool
control_ended(const struct control *control)
{
    return control->stop || control->at_end;
}

bool
control_input_closed(const struct control *control)
{
    return !control->has_input || control->at_end;
}

uint64_t
control_target(const struct control *control)
{
    return control->target;
}

int
control_n_targets(const struct control *control)
{
    return control->n_targets;
}

const char *
control_peers(const struct control *control)
{
    return control->peers;
}

char *
thread_start(pthread_t *thread, const char *place, void *(*main)(void *),
             void *aux)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(thread, NULL, main, aux);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error ? message("%s: cannot start a thread: %s", place,
                           strerror(error)) : NULL;
}
