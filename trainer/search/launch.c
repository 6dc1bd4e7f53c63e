/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/search/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/memory.h"
#include "trainer/search/hosts.h"

/* Enters the network namespace only.  "ip netns exec" would also replace /sys
 * and thereby the cgroup file system. */
static int
enter_netns(const struct search_host *host)
{
    char path[512];
    int fd, error;

    snprintf(path, sizeof path, "%s%s",
             strchr(host->netns, '/') ? "" : "/run/netns/", host->netns);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return errno;
    }
    error = setns(fd, CLONE_NEWNET) ? errno : 0;
    close(fd);
    return error;
}

void
words_add(void *words, char *word)
{
    struct words *w = words;

    if (w->n < CHILD_MAX_WORDS) {
        w->words[w->n++] = word;
    } else {
        free(word);
    }
}

void
words_add_option(void *words, const char *name, char *value)
{
    words_add(words, duplicate(name));
    words_add(words, value);
}

void
words_uninit(struct words *w)
{
    while (w->n) {
        free(w->words[--w->n]);
    }
}

void
child_init(struct child *child)
{
    memset(child, 0, sizeof *child);
    child->in = child->out.fd = child->err.fd = -1;
}

static void
close_fd(int *fd)
{
    if (*fd >= 0) {
        close(*fd);
        *fd = -1;
    }
}

void
child_uninit(struct child *child)
{
    child_hang_up(child);
    close_fd(&child->out.fd);
    close_fd(&child->err.fd);
    if (child->pid > 0) {
        child_kill(child, SIGKILL);
        waitpid(child->pid, &child->status, 0);
    }
    child_init(child);
}

static void
set_environment(const struct search_host *host, const char *const env[])
{
    if (host->rundir) {
        setenv("STAGECOACH_RUNDIR", host->rundir, 1);
    }
    if (host->cgroup) {
        setenv("STAGECOACH_CGROUP", host->cgroup, 1);
    }
    for (; *env; env++) {
        putenv((char *) *env);
    }
}

/* Pipes of a child: its standard input, output and error. */
struct pipes {
    int fds[3][2];              /* The second is the writer's; -1 if none. */
};

/* Runs in the new process: executes the program, or writes an errno value to
 * 'report'. */
static void
become(const struct search_host *host, const char *const argv[],
       const char *const env[], const struct pipes *pipes, int report,
       pid_t parent)
{
    sigset_t none;
    int error = 0;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(127);             /* The parent died before the signal was
                                 * set. */
    }
    for (int i = 0; i < 3; i++) {
        int fd = pipes->fds[i][i != STDIN_FILENO];

        if (fd >= 0 && dup2(fd, i) < 0) {
            error = errno;
        }
    }
    if (!error && host->launch == LAUNCH_NETNS) {
        error = enter_netns(host);
    }
    if (!error) {
        set_environment(host, env);
        execvp(argv[0], (char **) argv);
        error = errno;
    }
    if (write(report, &error, sizeof error) < 0) {
        /* The parent reads the end of the pipe. */
    }
    _exit(127);
}

/* Returns 0 if the program runs, otherwise an errno value. */
static int
fork_and_become(struct child *child, const struct search_host *host,
                const char *const argv[], const char *const env[],
                const struct pipes *pipes)
{
    pid_t parent = getpid();
    int report[2], error = 0;

    if (pipe2(report, O_CLOEXEC)) {
        return errno;
    }
    child->pid = fork();
    if (!child->pid) {
        become(host, argv, env, pipes, report[1], parent);
    }
    if (child->pid < 0) {
        error = errno;
        child->pid = 0;
    }
    close(report[1]);
    if (!error) {
        setpgid(child->pid, child->pid);        /* Parent and child both set
                                                 * it: either may run first. */
        while (read(report[0], &error, sizeof error) < 0 && errno == EINTR) {
            continue;
        }
        if (error) {
            waitpid(child->pid, &child->status, 0);
            child->pid = 0;
        }
    }
    close(report[0]);
    return error;
}

/* Starts a process of this machine. */
static char *
start_here(struct child *child, const struct search_host *host,
           const char *const argv[], const char *const env[])
{
    struct pipes pipes = { .fds = { { -1, -1 }, { -1, -1 }, { -1, -1 } } };
    int *in = pipes.fds[0], *out = pipes.fds[1], *err = pipes.fds[2];
    int error = 0;

    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)
        || fcntl(in[1], F_SETFL, O_NONBLOCK)
        || fcntl(out[0], F_SETFL, O_NONBLOCK)
        || (child->has_err && (pipe2(err, O_CLOEXEC)
                               || fcntl(err[0], F_SETFL, O_NONBLOCK)))) {
        error = errno;
    }
    if (!error) {
        error = fork_and_become(child, host, argv, env, &pipes);
    }
    if (!error) {
        child->in = in[1];
        child->out.fd = out[0];
        child->err.fd = err[0];
        in[1] = out[0] = err[0] = -1;
    }
    for (int i = 0; i < 3; i++) {
        close_fd(&pipes.fds[i][0]);
        close_fd(&pipes.fds[i][1]);
    }
    return error ? message("%s: cannot start %s (%s)", host->name, argv[0],
                           strerror(error)) : NULL;
}

/* Writes a word for a shell. */
static void
write_word(FILE *stream, const char *word)
{
    fputs(" '", stream);
    for (; *word; word++) {
        if (*word == '\'') {
            fputs("'\\'", stream);
        }
        putc(*word, stream);
    }
    putc('\'', stream);
}

/* Returns the command for the shell of another machine that executes 'argv'.
 * It reads 'n_env' variables from its standard input, because all users can
 * see command lines. */
static char *
remote_command(const char *const argv[], size_t n_env)
{
    char *command = NULL;
    size_t size;
    FILE *stream = must(open_memstream(&command, &size));

    fputs("set -e;", stream);
    for (size_t i = 0; i < n_env; i++) {
        fputs(" IFS= read -r v; export \"$v\";", stream);
    }
    fputs(" exec", stream);
    for (; *argv; argv++) {
        write_word(stream, *argv);
    }
    fclose(stream);
    return must(command);
}

/* Starts 'argv' by the ssh client.  Variables are sent when it runs. */
static char *
start_by_ssh(struct child *child, const struct search_host *host,
             const char *const argv[], const char *const env[])
{
    const struct search_host here = { .name = host->name };
    const char *const none[] = { NULL };
    size_t n_env = 0;
    char *command, *error;

    while (env[n_env]) {
        n_env++;
    }
    command = remote_command(argv, n_env);
    error = start_here(child, &here, (const char *const[]) {
        "ssh", "-oBatchMode=yes", "--", host->address, command, NULL,
    }, none);
    free(command);
    for (size_t i = 0; !error && i < n_env; i++) {
        child_say(child, env[i]);
        child_say(child, "\n");
    }
    return error;
}

char *
child_start(struct child *child, const struct search_host *host,
            const char *const argv[], const char *const env[])
{
    return host->launch == LAUNCH_SSH ? start_by_ssh(child, host, argv, env)
                                      : start_here(child, host, argv, env);
}

/* Reads once.  Returns false if there are no data. */
static bool
output_read(struct child_output *output)
{
    size_t room = sizeof output->buffer - output->length;
    ssize_t n;

    if (output->fd < 0) {
        return false;
    }
    n = read(output->fd, output->buffer + output->length, room);
    if (n > 0) {
        output->length += n;
        return true;
    }
    if (!n || (errno != EAGAIN && errno != EINTR)) {
        close_fd(&output->fd);
    }
    return false;
}

char *
child_line(struct child_output *output)
{
    for (;;) {
        char *line, *newline;

        memmove(output->buffer, output->buffer + output->taken,
                output->length - output->taken);
        output->length -= output->taken;
        output->taken = 0;

        line = output->buffer;
        newline = memchr(line, '\n', output->length);
        if (newline) {
            bool whole = !output->skipping;

            *newline = '\0';
            output->taken = newline + 1 - line;
            output->skipping = false;
            if (whole) {
                return line;
            }
        } else if (output->length == sizeof output->buffer) {
            output->taken = output->length;
            output->skipping = true;
        } else if (!output_read(output)) {
            return NULL;
        }
    }
}

/* Data that a child does not read are dropped: the search never waits. */
void
child_say(struct child *child, const char *text)
{
    if (child->in >= 0
        && write(child->in, text, strlen(text)) != (ssize_t) strlen(text)) {
        child_hang_up(child);
    }
}

void
child_hang_up(struct child *child)
{
    close_fd(&child->in);
}

void
child_kill(const struct child *child, int signal)
{
    if (child->pid > 0) {
        kill(-child->pid, signal);
    }
}

bool
child_reap(struct child *child)
{
    if (child->pid <= 0 || waitpid(child->pid, &child->status, WNOHANG)
                           != child->pid) {
        return false;
    }
    child_kill(child, SIGKILL); /* Remaining processes of its group. */
    child->pid = 0;
    child_hang_up(child);
    return true;
}
