/* SPDX-License-Identifier: Apache-2.0 */

#ifndef LAB_SCENARIO_H
#define LAB_SCENARIO_H 1

/* Scenarios of the lab, read from JSON.
 *
 * A scenario has the number of hosts, the rate of their links, and the start
 * times of searches and of cojobs that run arbitrary commands.  All of it is
 * checked before anything starts.
 *
 *    {"name": "smoke", "hosts": 3, "rate": "50Mbit", "mtu": 9000,
 *     "fabric": "ovs", "policies": ["fair", "stage"], "timeout_s": 60,
 *     "searches": [{"start_s": 0, "search": {...as in a search.json...}}]}
 *
 * The hosts of the jobs are "placements" of each search, or they are drawn at
 * random (scenario/random-placements.h).
 *
 * Instead of one switch, the fabric may have racks.  The hosts are divided
 * among the leaves in order, each leaf has one link to each spine, and a
 * leaf's hosts can send "over" times what its links carry:
 *
 *    "fabric": {"leaf_spine": {"leaves": 2, "spines": 1, "over": 4}}
 *
 * A search of stagecoach-trainer announces the ends of its stages.  Other
 * commands do not, so the scenario sets the number of iterations after which a
 * stage ends, and the lab counts the iterations of the jobs.
 *
 *    {"name": "ddp", "weight": 1, "start_s": 0, "end": "exit",
 *     "stages": [{"iterations": 20}, {"iterations": 60}],
 *     "jobs": [{"name": "t0", "hosts": ["h0", "h1"],
 *               "command": ["python3", "%scenario/ddp.py", "--rank", "%rank"],
 *               "log": "csv:%log/ddp-%rank.csv,iteration=step"}]}
 *
 * One process of a job runs on each of its hosts, by rank.  "%" and a word of
 * enum scenario_word are replaced in the command and in "log", the argument of
 * "stagecoach run --log" (wire/log-spec.h).
 *
 * Plain data, owned by the caller, immutable after it is read. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SCENARIO_MAX_HOSTS 64

enum fabric_kind {
    FABRIC_OVS,                 /* Open vSwitch. */
    FABRIC_BRIDGE,              /* A kernel bridge, for comparison. */
    FABRIC_LEAF_SPINE,          /* Several bridges of Open vSwitch. */
};

/* Switches of a FABRIC_LEAF_SPINE, all zeros for others. */
struct leaf_spine {
    int leaves;                 /* Divides the number of hosts. */
    int spines;
    double over;                /* What the hosts of a leaf can send, relative
                                 * to the capacity of its links to spines. */
};

/* What forwards the packets of Open vSwitch. */
enum ovs_datapath {
    DATAPATH_USERSPACE,         /* ovs-vswitchd itself.  It ignores the
                                 * set_queue of the controller's flows. */
    DATAPATH_KERNEL,            /* The kernel's module openvswitch. */
};

/* The queues of a port of the fabric. */
enum port_queues {
    QUEUES_STRICT,              /* Eight levels by DSCP, strict priority. */
    QUEUES_FIFO,                /* One queue, which drops at its end. */
    QUEUES_ECN,                 /* The same; it marks ECN-capable packets. */
};

/* What marks and orders the traffic of a host. */
enum host_actuator {
    ACTUATOR_SHIM,    /* A shim before its uplink. */
    ACTUATOR_BPF,     /* The kernel, by programs and queues of the agent. */
    ACTUATOR_OBSERVE, /* Nothing: the agent's programs only count. */
    ACTUATOR_NONE,    /* Nothing: the host has no agent. */
};

struct search_spec;

/* Words that may follow a "%": "rank" of the process, "world"
 * (number of processes of the job), "hosts" (their addresses, separated by
 * commas), "master" (the first address), "port" (a port that only this job
 * uses), "scenario" (folder of the scenario), "log" (folder of the lab's
 * logs), "trainer" (path of stagecoach-trainer).  "%%" is a percent sign. */
enum scenario_word {
    WORD_RANK, WORD_WORLD, WORD_HOSTS, WORD_MASTER, WORD_PORT, WORD_SCENARIO,
    WORD_LOG, WORD_TRAINER, N_WORDS
};

struct scenario_job {
    char *name;
    size_t n_hosts;
    int *hosts;                 /* Host of each process, by rank. */
    size_t n_command;
    char **command;             /* Before replacements. */
    char *log;                  /* Before replacements; NULL for no log. */
};

struct scenario_cojob {
    double start_s;             /* Seconds from the beginning of the run. */
    char *name;
    double weight;
    bool until_exit;            /* The last stage ends with the processes and
                                 * not with its iterations. */
    size_t n_stages;
    int64_t *stages;            /* Iteration at which each stage ends,
                                 * rising. */
    size_t n_jobs;
    struct scenario_job *jobs;
};

/* One search of a scenario. */
struct scenario_search {
    double start_s;             /* Seconds from the beginning of the run. */
    char *cojob;                /* Name of the search. */
    char *text;                 /* Its JSON, as "search run" reads it. */
    struct search_spec *spec;   /* The same, read. */
};

/* Under which policies the shims control congestion. */
enum scenario_cc {
    SCENARIO_CC_ORDERED,        /* All that order; under fair sharing TCP
                                 * controls it alone. */
    SCENARIO_CC_ON,             /* All. */
    SCENARIO_CC_OFF,            /* None. */
};

struct scenario {
    char *name;
    char *dir;                  /* Where its file is; "." without a file. */
    char *description;          /* Or NULL. */
    int n_hosts;                /* Named h0, h1... */
    int slots;                  /* Processes that a host takes at most. */
    int64_t rate_bps;           /* Of each link, in each direction. */
    int mtu;                    /* Bytes of IP. */
    enum host_actuator actuators[SCENARIO_MAX_HOSTS]; /* Of 'n_hosts'. */
    enum scenario_cc cc; /* The shims' congestion control; not
                          * SCENARIO_CC_ON without shims. */
    enum fabric_kind fabric;
    struct leaf_spine leaf_spine;
    enum ovs_datapath datapath; /* DATAPATH_USERSPACE for a bridge. */
    enum port_queues queues;
    size_t n_policies;
    char **policies;            /* Names or files, in the order to run. */
    double timeout_s;           /* Of one policy's run. */
    bool random;                /* Some searches have random placements. */
    int64_t seed;               /* Seed of the random placements. */
    size_t n_searches;
    struct scenario_search *searches;
    size_t n_cojobs;
    struct scenario_cojob *cojobs;
};

/* 'name' is what messages begin with.  'seed' replaces the one of
 * "random_placements", unless it is null.  Each returns NULL and stores the
 * scenario in '*scenariop' or returns a malloc()'d message and stores NULL. */
char *scenario_from_string(const char *name, const char *text,
                           const int64_t *seed, struct scenario **scenariop);
char *scenario_from_file(const char *file, const int64_t *seed,
                         struct scenario **scenariop);
void scenario_destroy(struct scenario *);

/* Returns the fabric in words, such as "leaf-spine 2 x 1, 4:1"; the caller
 * frees. */
char *scenario_fabric_to_string(const struct scenario *);

/* Returns the number of hosts with 'actuator'. */
int scenario_n_actuators(const struct scenario *, enum host_actuator);

/* Returns what orders the traffic of hosts in words that follow others, "" for
 * shims at all of them; the caller frees. */
char *scenario_actuators_to_string(const struct scenario *);

/* Returns the number of processes on 'host' of the first 'n_searches' searches
 * and the first 'n_cojobs' cojobs. */
int scenario_processes(const struct scenario *, int host, size_t n_searches,
                       size_t n_cojobs);

/* Returns 'text' with each word replaced by its element of 'values'; the
 * caller frees. */
char *scenario_substitute(const char *text, const char *const values[]);

#endif /* scenario/scenario.h */
