/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/history/gain.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "openvswitch/json.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/shash.h"
#include "openvswitch/vlog.h"
#include "policies/policy.h"
#include "sim/run/by-policy.h"
#include "sim/run/simulate.h"
#include "sim/workload/workload-recording.h"
#include "sim/workload/workload.h"
#include "timeval.h"
#include "util.h"

VLOG_DEFINE_THIS_MODULE(gain);

#define PERIOD_MS 60000         /* From one simulation to the next. */
#define MAX_CPU_S 30            /* Of a simulation. */
#define MAX_ANSWER 256          /* Characters that a child says. */

/* Where the child has its pipe. */
#define CHILD_FD 3

struct gain {
    pid_t pid;                  /* Of the child, 0: none. */
    int fd;                     /* What it says. */
    char answer[MAX_ANSWER];
    size_t n;                   /* Characters of 'answer'. */
    long long next;             /* time_msec() of the next simulation. */
    int64_t newest;             /* Epoch ms, end of the last stage that was
                                 * asked about, -1 before the first. */
    double running_mean;        /* As measured, seconds, of the stages of the
                                 * running simulation. */
    char *running_policy;

    /* The last answer. */
    bool known;
    int64_t at;                 /* Epoch ms. */
    int n_stages;
    double measured_s;          /* Means, in seconds: as measured, */
    double policy_s, fair_s;    /* and as simulated. */
    char *policy;
};

struct gain *
gain_create(void)
{
    struct gain *gain = xzalloc(sizeof *gain);

    gain->fd = -1;
    gain->newest = -1;
    return gain;
}

static void
forget_child(struct gain *gain)
{
    close(gain->fd);
    gain->fd = -1;
    gain->pid = 0;
    gain->n = 0;
}

void
gain_destroy(struct gain *gain)
{
    if (gain) {
        if (gain->pid) {
            kill(gain->pid, SIGKILL);
            waitpid(gain->pid, NULL, 0);
            forget_child(gain);
        }
        free(gain->running_policy);
        free(gain->policy);
        free(gain);
    }
}

/* Everything below is done by the child. */

static double
simulate_mean(const struct workload *w, const struct policy *policy)
{
    struct sim_result result;
    double mean;

    simulate_by_policy(w, policy, NULL, &result);
    mean = result.mean;
    sim_result_uninit(&result);
    return mean;
}

/* Returns the mean under fair sharing with the levels of 'policy'. */
static double
simulate_fair(const struct workload *w, const struct policy *policy)
{
    struct policy fair = *policy;

    fair.order.kind = ORDER_FAIR;
    return simulate_mean(w, &fair);
}

static void
limit_child(void)
{
    struct rlimit cpu = { MAX_CPU_S, MAX_CPU_S };
    struct rlimit none = { 0, 0 };

    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &none);
    setpriority(PRIO_PROCESS, 0, 19);
}

/* Gives up all that the parent has open and handles. */
static void
leave_parent(int fd)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int signr = 1; signr < NSIG; signr++) {
        signal(signr, SIG_DFL);
    }
    dup2(fd, CHILD_FD);
    closefrom(CHILD_FD + 1);
}

OVS_NO_RETURN static void
run_child(int fd, const char *text, const struct policy *policy)
{
    struct workload *w;
    char answer[MAX_ANSWER];
    int n;

    leave_parent(fd);
    limit_child();
    if (workload_recording_from_string("history", text, &w)) {
        _exit(1);
    }
    n = snprintf(answer, sizeof answer, "%zu %.17g %.17g\n", w->n_cojobs,
                 simulate_mean(w, policy), simulate_fair(w, policy));
    _exit(write(CHILD_FD, answer, n) == n ? 0 : 1);
}

/* And this by the parent. */

static double
number(const struct json *object, const char *name)
{
    const struct json *json = (object->type == JSON_OBJECT
                               ? shash_find_data(json_object(object), name)
                               : NULL);

    return json && json->type == JSON_INTEGER ? json->integer : 0;
}

/* Returns how long the stages took in the mean, 0 if none has ended. */
static double
measure(const struct json *stages)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = 0; i < stages->array.n; i++) {
        double ended = number(stages->array.elems[i], "ended");

        if (ended > 0) {
            sum += (ended - number(stages->array.elems[i], "began")) / 1000;
            n++;
        }
    }
    return n ? sum / n : 0;
}

static int
start_child(struct gain *gain, const char *text, const struct policy *policy)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC)) {
        return errno;
    }
    gain->pid = fork();
    if (!gain->pid) {
        run_child(fds[1], text, policy);
    }
    close(fds[1]);
    if (gain->pid < 0) {
        int error = errno;

        close(fds[0]);
        gain->pid = 0;
        return error;
    }
    fcntl(fds[0], F_SETFL, O_NONBLOCK);
    gain->fd = fds[0];
    return 0;
}

static void
start(struct gain *gain, const struct json *recording,
      const struct policy *policy)
{
    const struct json *stages = (recording->type == JSON_OBJECT
                                 ? shash_find_data(json_object(recording),
                                                   "stages") : NULL);
    double mean = (stages && stages->type == JSON_ARRAY
                   ? measure(stages) : 0);
    char *text;
    int error;

    if (mean <= 0) {
        return;                 /* None has ended. */
    }
    text = json_to_string(recording, 0);
    error = start_child(gain, text, policy);
    free(text);
    if (error) {
        VLOG_WARN("what fair sharing would have given stays unknown (%s)",
                  ovs_strerror(error));
        return;
    }
    gain->running_mean = mean;
    free(gain->running_policy);
    gain->running_policy = xstrdup(policy->name);
}

static void
take_answer(struct gain *gain)
{
    double policy_s, fair_s;
    int n_stages, status;

    gain->answer[MIN(gain->n, MAX_ANSWER - 1)] = '\0';
    if (waitpid(gain->pid, &status, 0) != gain->pid || status
        || !ovs_scan(gain->answer, "%d %lf %lf", &n_stages, &policy_s,
                     &fair_s)) {
        VLOG_INFO("a simulation of the last stages came to nothing");
    } else {
        gain->known = true;
        gain->at = time_wall_msec();
        gain->n_stages = n_stages;
        gain->policy_s = policy_s;
        gain->fair_s = fair_s;
        gain->measured_s = gain->running_mean;
        free(gain->policy);
        gain->policy = xstrdup(gain->running_policy);
    }
    forget_child(gain);
}

/* Reads what the child says until it has said all. */
static void
listen_to_child(struct gain *gain)
{
    for (;;) {
        char buffer[MAX_ANSWER];
        ssize_t n = read(gain->fd, buffer, sizeof buffer);

        if (n > 0) {
            size_t room = MAX_ANSWER - 1 - MIN(gain->n, MAX_ANSWER - 1);

            memcpy(&gain->answer[gain->n], buffer, MIN(room, (size_t) n));
            gain->n += MIN(room, (size_t) n);
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else {
            if (!n || errno != EAGAIN) {
                take_answer(gain);
            }
            return;
        }
    }
}

bool
gain_is_due(const struct gain *gain, int64_t newest)
{
    return (!gain->pid && newest != gain->newest
            && time_msec() >= gain->next);
}

bool
gain_is_running(const struct gain *gain)
{
    return gain->pid != 0;
}

void
gain_run(struct gain *gain, struct json *stages, int64_t newest,
         const struct policy *policy)
{
    if (gain->pid) {
        listen_to_child(gain);
    } else if (stages) {
        start(gain, stages, policy);
        gain->newest = newest;
        gain->next = time_msec() + (gain->pid ? PERIOD_MS : 0);
    }
    json_destroy(stages);
}

void
gain_wait(const struct gain *gain, int64_t newest)
{
    if (gain->pid) {
        poll_fd_wait(gain->fd, POLLIN);
    } else if (newest != gain->newest) {
        poll_timer_wait_until(gain->next);
    }
}

struct json *
gain_to_json(const struct gain *gain)
{
    struct json *json = json_object_create();

    if (gain->known) {
        json_object_put(json, "at", json_integer_create(gain->at));
        json_object_put(json, "stages", json_integer_create(gain->n_stages));
        json_object_put_string(json, "policy", gain->policy);
        json_object_put(json, "measured_mean_s",
                        json_real_create(gain->measured_s));
        json_object_put(json, "policy_mean_s",
                        json_real_create(gain->policy_s));
        json_object_put(json, "fair_mean_s", json_real_create(gain->fair_s));
        json_object_put(json, "ratio",
                        json_real_create(gain->fair_s > 0
                                         ? gain->policy_s / gain->fair_s
                                         : 1));
    }
    return json;
}
