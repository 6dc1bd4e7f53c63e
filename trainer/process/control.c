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

struct control {
    bool heard;                 /* Standard input is one that can speak. */
    bool at_end;                /* Of standard input. */
    bool stop;
    uint64_t target;
    int n_targets;
    char line[128];             /* The line that is not yet complete. */
    size_t length;
};

/* Readable after a signal; -1 if there is none.  A handler and not a
 * signalfd, because that needs every thread to block the signal, and the
 * arithmetic library has started some before main(). */
static int signal_fd = -1;

static void
take_signal(int signal)
{
    uint64_t one = 1;
    int saved = errno;

    if (write(signal_fd, &one, sizeof one) < 0) {
        /* There is no better way to say it. */
    }
    errno = saved;
}

/* A device that is no terminal, such as /dev/null, says nothing. */
static bool
input_can_speak(void)
{
    struct stat st;

    return !fstat(STDIN_FILENO, &st)
           && (!S_ISCHR(st.st_mode) || isatty(STDIN_FILENO));
}

struct control *
control_create(uint64_t until)
{
    struct control *control = allocate(1, sizeof *control);
    struct sigaction action = {
        .sa_handler = take_signal, .sa_flags = SA_RESTART,
    };

    signal_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (signal_fd >= 0) {
        sigaction(SIGTERM, &action, NULL);
        sigaction(SIGINT, &action, NULL);
    }
    control->heard = input_can_speak();
    control->target = until;
    control->n_targets = until > 0;
    return control;
}

void
control_destroy(struct control *control)
{
    if (control) {
        /* The end is near: there is nothing left to interrupt. */
        signal(SIGTERM, SIG_IGN);
        signal(SIGINT, SIG_IGN);
        if (signal_fd >= 0) {
            close(signal_fd);
            signal_fd = -1;
        }
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
    return control->heard && !control->at_end ? STDIN_FILENO : -1;
}

static void
take_line(struct control *control, const char *line)
{
    unsigned long long until;
    int n = 0;

    if (!strcmp(line, "stop")) {
        control->stop = true;
    } else if (sscanf(line, "until %llu%n", &until, &n) == 1 && !line[n]
               && line[6] != '-') {
        control->target = until;
        control->n_targets += until > 0;
    } else {
        fprintf(stderr, "standard input: \"%s\", \"until ITERATIONS\" and "
                "\"stop\" are allowed\n", line);
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

    if (signal_fd >= 0
        && read(signal_fd, &n_signals, sizeof n_signals) > 0) {
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
control_silent(const struct control *control)
{
    return !control->heard || control->at_end;
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
