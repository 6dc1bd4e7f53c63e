/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/history/plain-comparison.h"

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

VLOG_DEFINE_THIS_MODULE(plain_comparison);

#define PERIOD_MS 60000  /* Shortest time between two simulations. */
#define MAX_CPU_S 30     /* CPU time of one simulation. */
#define MAX_OUTPUT 65536 /* Bytes that a child may print. */

/* File descriptors of the child: its inputs, as files in memory. */
enum { RECORDING_FD = 3, POLICY_FD, PLAIN_FD, N_CHILD_FDS };

struct plain_comparison {
    pid_t pid;            /* Of the child, 0 if none runs. */
    int fd;               /* Pipe from its standard output and error, -1
                           * if none runs. */
    struct ds output;     /* Read from 'fd'. */
    long long next;       /* time_msec() of the next simulation. */
    int64_t newest;       /* Epoch ms, end of the newest stage that was
                           * simulated, -1 before the first. */
    double running_mean;  /* Measured mean completion time of the stages
                           * of the running simulation, seconds. */
    char *running_policy; /* Name of the policy it simulates. */

    struct json *result; /* The last one, or NULL. */
};

struct plain_comparison *
plain_comparison_create(void)
{
    struct plain_comparison *pc = xzalloc(sizeof *pc);

    pc->fd = -1;
    pc->newest = -1;
    return pc;
}

static void
close_child(struct plain_comparison *pc)
{
    close(pc->fd);
    pc->fd = -1;
    pc->pid = 0;
    ds_destroy(&pc->output);
    ds_init(&pc->output);
}

void
plain_comparison_destroy(struct plain_comparison *pc)
{
    if (pc) {
        if (pc->pid) {
            kill(pc->pid, SIGKILL);
            waitpid(pc->pid, NULL, 0);
            close_child(pc);
        }
        free(pc->running_policy);
        json_destroy(pc->result);
        free(pc);
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
    execlp(program, "stagecoach", "policy", "whatif", "--trace",
           "/proc/self/fd/3", "--policy", "/proc/self/fd/4", "--policy",
           "/proc/self/fd/5", "--format", "json", (char *) NULL);
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
start_child(struct plain_comparison *pc, const char *const texts[N_CHILD_FDS])
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
    program = find_stagecoach(); /* The child must not allocate. */
    pc->pid = error ? -1 : fork();
    if (!pc->pid) {
        run_child(program, fds[1], inputs);
    } else if (pc->pid < 0) {
        error = error ? error : errno;
        pc->pid = 0;
        close(fds[0]);
    } else {
        fcntl(fds[0], F_SETFL, O_NONBLOCK);
        pc->fd = fds[0];
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
start_simulation(struct plain_comparison *pc, const struct json *recording,
                 const struct policy *policy)
{
    double mean = measured_mean(json_get(recording, "stages", JSON_ARRAY));
    char *text, *plain;
    int error;

    if (mean <= 0) {
        return; /* No stage has ended. */
    }
    text = json_to_string(recording, 0);
    plain = plain_policy(policy);
    error = start_child(pc, (const char *const[N_CHILD_FDS]){
                                [RECORDING_FD] = text,
                                [POLICY_FD] = policy->text,
                                [PLAIN_FD] = plain,
                            });
    free(text);
    free(plain);
    if (error) {
        VLOG_WARN("cannot start the simulation without Stagecoach (%s)",
                  ovs_strerror(error));
        return;
    }
    pc->running_mean = mean;
    free(pc->running_policy);
    pc->running_policy = xstrdup(policy->name);
}

/* Stores the result of a child that has printed 'json'.  Returns false if it
 * has printed something else. */
static bool
store_result(struct plain_comparison *pc, const struct json *json)
{
    const struct json *policies = json_get(json, "policies", JSON_ARRAY);
    double policy_s, plain_s;

    if (!policies || policies->array.n != 2) {
        return false;
    }
    policy_s = json_get_number(policies->array.elems[0], "mean");
    plain_s = json_get_number(policies->array.elems[1], "mean");
    json_destroy(pc->result);
    pc->result = json_object_create();
    json_put_integer(pc->result, "at", time_wall_msec());
    json_put_integer(pc->result, "stages", json_get_number(json, "stages"));
    json_object_put_string(pc->result, "policy", pc->running_policy);
    json_put_real(pc->result, "measured_mean_s", pc->running_mean);
    json_put_real(pc->result, "policy_mean_s", policy_s);
    json_put_real(pc->result, "plain_mean_s", plain_s);
    json_put_real(pc->result, "ratio", plain_s > 0 ? policy_s / plain_s : 1);
    return true;
}

static void
finish_child(struct plain_comparison *pc)
{
    struct json *json = json_from_string(ds_cstr(&pc->output));
    int status;

    if (waitpid(pc->pid, &status, 0) != pc->pid || status
        || !store_result(pc, json)) {
        VLOG_INFO("simulation of the last stages failed, keeping the previous "
                  "result (%.*s)",
                  (int) strcspn(ds_cstr(&pc->output), "\n"),
                  ds_cstr(&pc->output));
    }
    json_destroy(json);
    close_child(pc);
}

/* Reads the child's output until it closes its end. */
static void
read_child(struct plain_comparison *pc)
{
    for (;;) {
        char buffer[4096];
        ssize_t n = read(pc->fd, buffer, sizeof buffer);

        if (n > 0 && pc->output.length < MAX_OUTPUT) {
            ds_put_buffer(&pc->output, buffer, n);
        } else if (!n || (n < 0 && errno != EINTR && errno != EAGAIN)) {
            finish_child(pc);
            return;
        } else if (n < 0 && errno == EAGAIN) {
            return;
        }
    }
}

bool
plain_comparison_is_due(const struct plain_comparison *pc, int64_t newest)
{
    return !pc->pid && newest != pc->newest && time_msec() >= pc->next;
}

bool
plain_comparison_is_running(const struct plain_comparison *pc)
{
    return pc->pid != 0;
}

void
plain_comparison_run(struct plain_comparison *pc, struct json *stages,
                     int64_t newest, const struct policy *policy)
{
    if (pc->pid) {
        read_child(pc);
    } else if (stages) {
        start_simulation(pc, stages, policy);
        pc->newest = newest;
        pc->next = time_msec() + (pc->pid ? PERIOD_MS : 0);
    }
    json_destroy(stages);
}

void
plain_comparison_wait(const struct plain_comparison *pc, int64_t newest)
{
    if (pc->pid) {
        poll_fd_wait(pc->fd, POLLIN);
    } else if (newest != pc->newest) {
        poll_timer_wait_until(pc->next);
    }
}

struct json *
plain_comparison_to_json(const struct plain_comparison *pc)
{
    return pc->result ? json_clone(pc->result) : json_object_create();
}
