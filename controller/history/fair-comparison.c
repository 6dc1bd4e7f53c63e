/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/history/fair-comparison.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/directory.h"
#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "policies/policy.h"
#include "socket-util.h"
#include "timeval.h"
#include "util.h"
#include "wire/json-get.h"
#include "wire/json-put.h"

VLOG_DEFINE_THIS_MODULE(fair_comparison);

#define PERIOD_MS 60000         /* Shortest time between two simulations. */
#define MAX_CPU_S 30            /* CPU time of one simulation. */
#define MAX_OUTPUT 65536        /* Bytes that a child may print. */

/* File descriptors of the child: its inputs, as files in memory. */
enum { RECORDING_FD = 3, POLICY_FD, FAIR_FD, N_CHILD_FDS };

struct fair_comparison {
    pid_t pid;                  /* Of the child, 0 if none runs. */
    int fd;                     /* Pipe from its standard output and error, -1
                                 * if none runs. */
    struct ds output;           /* Read from 'fd'. */
    long long next;             /* time_msec() of the next simulation. */
    int64_t newest;             /* Epoch ms, end of the newest stage that was
                                 * simulated, -1 before the first. */
    double running_mean;        /* Measured mean completion time of the stages
                                 * of the running simulation, seconds. */
    char *running_policy;       /* Name of the policy it simulates. */

    struct json *result;        /* The last one, or NULL. */
};

struct fair_comparison *
fair_comparison_create(void)
{
    struct fair_comparison *fc = xzalloc(sizeof *fc);

    fc->fd = -1;
    fc->newest = -1;
    return fc;
}

static void
close_child(struct fair_comparison *fc)
{
    close(fc->fd);
    fc->fd = -1;
    fc->pid = 0;
    ds_destroy(&fc->output);
    ds_init(&fc->output);
}

void
fair_comparison_destroy(struct fair_comparison *fc)
{
    if (fc) {
        if (fc->pid) {
            kill(fc->pid, SIGKILL);
            waitpid(fc->pid, NULL, 0);
            close_child(fc);
        }
        free(fc->running_policy);
        json_destroy(fc->result);
        free(fc);
    }
}

/* Returns the path of "stagecoach" beside this program, installed or in a
 * build tree, otherwise its name, to be found in PATH.  The caller frees. */
static char *
find_stagecoach(void)
{
    static const char *const folders[] = { ".", "../cli", NULL };
    char *path = directory_find(folders, "stagecoach", X_OK);

    return path ? path : xstrdup("stagecoach");
}

/* Child: sets its limits and file descriptors and executes 'program'. */
OVS_NO_RETURN static void
run_child(const char *program, int output, const int inputs[N_CHILD_FDS])
{
    const struct rlimit cpu = { MAX_CPU_S, MAX_CPU_S };
    const struct rlimit none = { 0, 0 };
    sigset_t signals;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int signr = 1; signr < NSIG; signr++) {
        signal(signr, SIG_DFL);
    }
    sigemptyset(&signals);
    sigprocmask(SIG_SETMASK, &signals, NULL);
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &none);
    setpriority(PRIO_PROCESS, 0, 19);

    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    /* 'inputs' are at least N_CHILD_FDS, so that none is overwritten. */
    for (int fd = RECORDING_FD; fd < N_CHILD_FDS; fd++) {
        dup2(inputs[fd], fd);
    }
    closefrom(N_CHILD_FDS);
    execlp(program, "stagecoach", "policy", "whatif",
           "--trace", "/proc/self/fd/3", "--policy", "/proc/self/fd/4",
           "--policy", "/proc/self/fd/5", "--format", "json", (char *) NULL);
    _exit(127);
}

/* Returns a file in memory that contains 'text', or -1 and sets 'errno'.  Its
 * file descriptor is at least N_CHILD_FDS. */
static int
memory_file(const char *text)
{
    int low = memfd_create("stagecoach-whatif", MFD_CLOEXEC);
    int fd = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, N_CHILD_FDS);
    size_t n;

    if (low >= 0) {
        close(low);
    }
    if (fd >= 0) {
        int error = write_fully(fd, text, strlen(text), &n);

        if (error) {
            close(fd);
            errno = error;
            return -1;
        }
    }
    return fd;
}

/* Returns 'policy' with the order "plain"; the caller frees. */
static char *
plain_policy(const struct policy *policy)
{
    struct json *json = json_from_string(policy->text);
    char *text;

    json_object_put_string(json, "order", "plain");
    text = json_to_string(json, 0);
    json_destroy(json);
    return text;
}

/* Starts a child with the inputs 'texts'.  Returns 0 or a positive errno
 * value. */
static int
start_child(struct fair_comparison *fc,
            const char *const texts[N_CHILD_FDS])
{
    char *program;
    int inputs[N_CHILD_FDS], fds[2];
    int error = pipe2(fds, O_CLOEXEC) ? errno : 0;

    if (error) {
        return error;
    }
    for (int fd = RECORDING_FD; fd < N_CHILD_FDS; fd++) {
        inputs[fd] = memory_file(texts[fd]);
        error = inputs[fd] < 0 ? errno : error;
    }
    program = find_stagecoach();        /* The child must not allocate. */
    fc->pid = error ? -1 : fork();
    if (!fc->pid) {
        run_child(program, fds[1], inputs);
    } else if (fc->pid < 0) {
        error = error ? error : errno;
        fc->pid = 0;
        close(fds[0]);
    } else {
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        fc->fd = fds[0];
    }
    close(fds[1]);
    for (int fd = RECORDING_FD; fd < N_CHILD_FDS; fd++) {
        if (inputs[fd] >= 0) {
            close(inputs[fd]);
        }
    }
    free(program);
    return error;
}

/* Returns the measured mean completion time of 'stages', in seconds, 0 if none
 * has ended. */
static double
measured_mean(const struct json *stages)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; stages && i < stages->array.n; i++) {
        const struct json *stage = stages->array.elems[i];
        double ended = json_get_number(stage, "ended");

        if (ended > 0) {
            sum += (ended - json_get_number(stage, "began")) / 1000;
            n++;
        }
    }
    return n ? sum / n : 0;
}

static void
start_simulation(struct fair_comparison *fc, const struct json *recording,
                 const struct policy *policy)
{
    double mean = measured_mean(json_get(recording, "stages", JSON_ARRAY));
    char *text, *fair;
    int error;

    if (mean <= 0) {
        return;                 /* No stage has ended. */
    }
    text = json_to_string(recording, 0);
    fair = plain_policy(policy);
    error = start_child(fc, (const char *const [N_CHILD_FDS]) {
        [RECORDING_FD] = text, [POLICY_FD] = policy->text, [FAIR_FD] = fair,
    });
    free(text);
    free(fair);
    if (error) {
        VLOG_WARN("cannot start the simulation of fair sharing (%s)",
                  ovs_strerror(error));
        return;
    }
    fc->running_mean = mean;
    free(fc->running_policy);
    fc->running_policy = xstrdup(policy->name);
}

/* Stores the result of a child that has printed 'json'.  Returns false if it
 * has printed something else. */
static bool
store_result(struct fair_comparison *fc, const struct json *json)
{
    const struct json *policies = json_get(json, "policies", JSON_ARRAY);
    double policy_s, fair_s;

    if (!policies || policies->array.n != 2) {
        return false;
    }
    policy_s = json_get_number(policies->array.elems[0], "mean");
    fair_s = json_get_number(policies->array.elems[1], "mean");
    json_destroy(fc->result);
    fc->result = json_object_create();
    json_put_integer(fc->result, "at", time_wall_msec());
    json_put_integer(fc->result, "stages", json_get_number(json, "stages"));
    json_object_put_string(fc->result, "policy", fc->running_policy);
    json_put_real(fc->result, "measured_mean_s", fc->running_mean);
    json_put_real(fc->result, "policy_mean_s", policy_s);
    json_put_real(fc->result, "fair_mean_s", fair_s);
    json_put_real(fc->result, "ratio", fair_s > 0 ? policy_s / fair_s : 1);
    return true;
}

static void
finish_child(struct fair_comparison *fc)
{
    struct json *json = json_from_string(ds_cstr(&fc->output));
    int status;

    if (waitpid(fc->pid, &status, 0) != fc->pid || status
        || !store_result(fc, json)) {
        VLOG_INFO("simulation of the last stages failed, keeping the previous "
                  "result (%.*s)", (int) strcspn(ds_cstr(&fc->output), "\n"),
                  ds_cstr(&fc->output));
    }
    json_destroy(json);
    close_child(fc);
}

/* Reads the child's output until it closes its end. */
static void
read_child(struct fair_comparison *fc)
{
    for (;;) {
        char buffer[4096];
        ssize_t n = read(fc->fd, buffer, sizeof buffer);

        if (n > 0 && fc->output.length < MAX_OUTPUT) {
            ds_put_buffer(&fc->output, buffer, n);
        } else if (!n || (n < 0 && errno != EINTR && errno != EAGAIN)) {
            finish_child(fc);
            return;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        }
    }
}

bool
fair_comparison_is_due(const struct fair_comparison *fc, int64_t newest)
{
    return !fc->pid && newest != fc->newest && time_msec() >= fc->next;
}

bool
fair_comparison_is_running(const struct fair_comparison *fc)
{
    return fc->pid != 0;
}

void
fair_comparison_run(struct fair_comparison *fc, struct json *stages,
                    int64_t newest, const struct policy *policy)
{
    if (fc->pid) {
        read_child(fc);
    } else if (stages) {
        start_simulation(fc, stages, policy);
        fc->newest = newest;
        fc->next = time_msec() + (fc->pid ? PERIOD_MS : 0);
    }
    json_destroy(stages);
}

void
fair_comparison_wait(const struct fair_comparison *fc, int64_t newest)
{
    if (fc->pid) {
        poll_fd_wait(fc->fd, POLLIN);
    } else if (newest != fc->newest) {
        poll_timer_wait_until(fc->next);
    }
}

struct json *
fair_comparison_to_json(const struct fair_comparison *fc)
{
    return fc->result ? json_clone(fc->result) : json_object_create();
}
