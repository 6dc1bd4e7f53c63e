/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "lab/cluster/console.h"
#include "openvswitch/poll-loop.h"
#include "process.h"
#include "util.h"

#define TAIL_BYTES 4096
#define FAILURE_LINES 5         /* Lines of the log in say_failure(). */

/* True if the last line of the terminal is a status line. */
static bool status_shown;

static void
erase_status(void)
{
    if (status_shown) {
        fputs("\r\033[K", stderr);
        status_shown = false;
    }
}

void
say(const char *format, ...)
{
    va_list args;

    erase_status();
    fputs("lab: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    putc('\n', stderr);
}

void
say_status(const char *line, const char *plain)
{
    struct winsize size;

    if (!isatty(STDERR_FILENO)) {
        if (plain) {
            say("%s", plain);
        }
        return;
    }
    if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) || size.ws_col < 20) {
        size.ws_col = 80;
    }
    erase_status();
    fprintf(stderr, "%.*s", size.ws_col - 1, line);
    fflush(stderr);
    status_shown = true;
}

void
say_status_end(void)
{
    erase_status();
    fflush(stderr);
}

char *
say_tail(const char *file, int n_lines)
{
    FILE *stream = fopen(file, "re");
    char *text = xzalloc(TAIL_BYTES + 1);
    char *start;

    if (stream) {
        if (fseek(stream, -TAIL_BYTES, SEEK_END)) {
            rewind(stream);
        }
        text[fread(text, 1, TAIL_BYTES, stream)] = '\0';
        fclose(stream);
    }
    start = text + strlen(text);
    while (start > text && (start[-1] != '\n' || n_lines-- > 0)) {
        start--;
    }
    start = xstrdup(start);
    free(text);
    return start;
}

char *
say_failure(const char *what, int status, const char *log)
{
    char *how = process_status_msg(status);
    char *tail = say_tail(log, FAILURE_LINES);
    char *error = xasprintf("%s failed (%s)%s%s", what, how,
                            *tail ? ":\n" : "", tail);

    free(tail);
    free(how);
    return error;
}

static int fd = -1;
static int first;               /* Return value of interrupt_signal(). */

void
interrupt_init(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGPIPE, SIG_IGN);
    if (fd < 0) {
        fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
        if (fd < 0) {
            ovs_fatal(errno, "signalfd");
        }
    }
}

int
interrupt_signal(void)
{
    struct signalfd_siginfo info;

    while (read(fd, &info, sizeof info) == sizeof info) {
        if (info.ssi_signo != SIGCHLD && !first) {
            first = info.ssi_signo;
        }
    }
    return first;
}

void
interrupt_wait(void)
{
    poll_fd_wait(fd, POLLIN);
}

void
interrupt_sleep(int ms)
{
    struct pollfd pfd = { .fd = fd, .events = POLLIN };

    poll(&pfd, 1, ms);
}
