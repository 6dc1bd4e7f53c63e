/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/options-private.h"

#include <stdio.h>
#include <string.h>

#define ANY (ROLE_SERVER | LEARNS)
#define LISTENS (ROLE_SERVER | ROLE_PEER | ROLE_NODE)
#define LEARNS (TRAINS | ROLE_NODE)
#define TRAINS (ROLE_WORKER | ROLE_LOCAL | ROLE_PEER)

#define AT(MEMBER) offsetof(struct options, MEMBER)

const struct row options_rows[] = {
    { "address", LISTENS, STRING, AT(address), 0, 0, "127.0.0.1", "ADDRESS",
      "Listen at ADDRESS." },
    { "port", LISTENS, INTEGER, AT(port), 0, 65535, "0",
      "PORT", "Listen at PORT; 0 lets the kernel choose." },
    { "server", ROLE_WORKER, SERVER, 0, 0, 0, NULL, "HOST:PORT",
      "A server; repeat it for each one, in the same order at every worker." },
    { "workers", ROLE_SERVER | ROLE_WORKER, INTEGER, AT(n_workers), 1, 1024,
      "1", "N", "The job has N workers." },
    { "rank", ROLE_WORKER | ROLE_PEER | ROLE_NODE, INTEGER, AT(rank), 0, 1023,
      "0", "R",
      "This is worker, peer or node R, 0 to N - 1; 0 reports progress." },
    { "peers", ROLE_PEER, STRING, AT(peers), 0, 0, NULL,
      "HOST[:PORT],...", "All peers by rank, 32 at most; without a port at "
      "that of --port." },
    { "nodes", ROLE_NODE, STRING, AT(nodes), 0, 0, NULL, "HOST[:PORT],...",
      "All nodes by rank, 32 at most; without a port at that of --port." },
    { "store", ROLE_NODE, WORD, AT(store), 0, 0, "localize",
      "classic|classic-local|localize|ssp|essp|manual",
      "Whether keys stay with servers, that are reached by messages or in "
      "memory, move, or are copied; manual: no keys but blocks, of "
      "factorise." },
    { "staleness", ROLE_NODE, INTEGER, AT(staleness), 0, 1000, "1", "S",
      "Of ssp and essp, by how many clocks copies may be older." },
    { "location-caches", ROLE_NODE, FLAG, AT(location_caches), 0, 0, NULL,
      NULL, "Of localize: look for keys where they were last." },
    { "scheme", ROLE_PEER, WORD, AT(scheme), 0, 0, "netmax",
      "allreduce|allreduce-tree|adpsgd|adpsgd-atomic|prague|netmax",
      "How models are kept together." },
    { "group", ROLE_PEER, INTEGER, AT(group), 2, 32, "4", "N",
      "Of prague, peers of a group." },
    { "congestion", ANY & ~ROLE_LOCAL, STRING, AT(congestion), 0, 0, NULL,
      "NAME", "Use this TCP congestion control, such as cubic." },
    { "sync", ROLE_SERVER, SYNC, AT(sync), 0, 0, "bsp", "SCHEME",
      "When gradients become weights: bsp, asp, ssp[,staleness=S], "
      "essp[,staleness=S], backup[,backups=B][,pieces=P], "
      "static,ratios=R0:R1..., lbbsp-cpu[,predictor=P], lbbsp-gpu, "
      "flexrr[,pieces=P] or groups[,groups=G][,tau=T]." },
    { "control-port", ROLE_SERVER, INTEGER, AT(control_port), 0, 65535, "0",
      "PORT", "Take heartbeats at PORT; 0 lets the kernel choose." },
    { "central", ROLE_SERVER, STRING, AT(central), 0, 0, NULL, "HOST:PORT",
      "Serve one group of the server at HOST:PORT, which has --sync groups." },
    { "no-group-servers", ROLE_SERVER, FLAG, AT(group_servers_elsewhere), 0,
      0, NULL, NULL, "With --sync groups: start none; they come from "
      "elsewhere, with --central." },
    { "patience", ROLE_SERVER | ROLE_WORKER, REAL, AT(patience), 0, 1e6, "3",
      "S", "How many seconds a peer whose connection broke may be away." },
    { "deadline", ANY & ~ROLE_LOCAL, REAL, AT(deadline), 0, 1e6, "10",
      "S", "A peer without a heartbeat for so many seconds has died; 0: "
      "never." },
    { "checkpoint", ROLE_SERVER, STRING, AT(checkpoint), 0, 0, NULL, "FOLDER",
      "Keep the last two checkpoints in FOLDER." },
    { "checkpoint-every", ROLE_SERVER, INTEGER, AT(checkpoint_every), 1, 1e15,
      "100", "N", "Write one after every N iterations." },
    { "resume", ROLE_SERVER, FLAG, AT(resume), 0, 0, NULL, NULL,
      "Go on from the last checkpoint, if there is one." },
    { "model", TRAINS, WORD, AT(model), 0, 0, "mlp",
      "mlp|cifarnet|resnet32|linear", "What is trained." },
    { "shape", TRAINS, SHAPE, AT(shape), 0, 0, "64,256,256,10", "WIDTHS",
      "Of mlp, the widths of the layers: inputs, hidden ones, classes." },
    { "image", TRAINS, IMAGE, AT(image), 0, 0, "32x32x3",
      "HEIGHTxWIDTHxCHANNELS",
      "Of cifarnet and resnet32, the samples that are generated." },
    { "features", TRAINS, INTEGER, AT(features), 1, 1 << 26, "1024", "N",
      "Of linear, the features of a sample." },
    { "loss", TRAINS, WORD, AT(loss), 0, 0, "logistic", "logistic|hinge",
      "Of linear: logistic regression, or a support vector machine." },
    { "data", LEARNS, STRING, AT(data), 0, 0, "generated", "SOURCE",
      "\"generated\", mnist:FOLDER, cifar10:FOLDER (of the gunzipped files), "
      "or libsvm:FILE; a FOLDER alone is MNIST's; of a node, \"generated\" or "
      "what its task reads." },
    { "samples", LEARNS, INTEGER, AT(samples), 1, 1 << 24, "8192", "N",
      "Samples to train on; of files at most so many." },
    { "held-out", LEARNS, INTEGER, AT(held_out), 1, 1 << 24, "512", "N",
      "Samples to judge by; of files, and of what a node's task holds out, "
      "at most so many." },
    { "batch", TRAINS, INTEGER, AT(batch), 1, 65536, "64", "N",
      "Samples of one iteration, of all workers together." },
    { "learning-rate", LEARNS, REAL, AT(learning_rate), 1e-9, 1e3, "0.05",
      "X", "Step of SGD." },
    { "momentum", TRAINS, REAL, AT(momentum), 0, 0.9999, "0.9", "X",
      "Part of the last step that goes on." },
    { "optimiser", TRAINS, WORD, AT(optimiser), 0, 0, "momentum",
      "sgd|momentum|adagrad|adam", "How servers, or peers, make steps of "
      "gradients." },
    { "seed", LEARNS, INTEGER, AT(seed), 0, 1e15, "1", "N",
      "Of data, first weights and the order of samples." },
    { "until", LEARNS, INTEGER, AT(until), 0, 1e15, "100", "N",
      "Pause after N iterations; 0 pauses before the first.  A node ends "
      "after N epochs." },
    { "eval-every", LEARNS, INTEGER, AT(eval_every), 1, 1e15, "10", "N",
      "Evaluate after every N iterations, and whenever pausing." },
    { "sample-cost-us", LEARNS, REAL, AT(sample_cost_us), 0, 1e9, "0", "US",
      "Emulate a slower worker: a sample takes at least so long." },
    { "speed-profile", LEARNS, STRING, AT(speed_profile), 0, 0, NULL, "FILE",
      "Emulate the machine that FILE has for this rank." },
    { "backend", TRAINS, WORD, AT(backend), 0, 0, "auto", "auto|cpu|cuda",
      "Where to compute; \"auto\" is a GPU if there is one, else the CPU." },
    { "tf32", TRAINS, WORD, AT(tf32), 0, 0, "off", "on|off",
      "Whether a GPU may round what it multiplies to 10 bits." },
    { "overlap", ROLE_WORKER, WORD, AT(overlap), 0, 0, "on", "on|off",
      "Whether gradients leave in parts, while others are computed." },
    { "threads", ANY, INTEGER, AT(n_threads), 1, 1024, "1", "N",
      "Threads of the CPU's linear algebra; of a node, its workers." },
    { "task", ROLE_NODE, WORD, AT(task), 0, 0, "factorise",
      "factorise|knowledge|skipgram", "What is trained." },
    { "epoch-limit", ROLE_NODE, REAL, AT(epoch_limit), 0, 1e6, "0", "S",
      "End an epoch after S seconds; 0: when it is over." },
    { "dimension", ROLE_NODE, INTEGER, AT(dimension), 1, 1024, "100", "N",
      "Of vectors; those of complex numbers have twice as many values." },
    { "rows", ROLE_NODE, INTEGER, AT(rows), 1, 1 << 26, "4000", "N",
      "Of factorise, of a matrix that is generated." },
    { "columns", ROLE_NODE, INTEGER, AT(columns), 1, 1 << 26, "2000", "N",
      "Likewise." },
    { "shrink", ROLE_NODE, REAL, AT(shrink), 0, 1e6, "1", "X",
      "Of factorise, the weight of the squares of both factors." },
    { "embedding", ROLE_NODE, WORD, AT(embedding), 0, 0, "complex",
      "rescal|complex", "Of knowledge, the model." },
    { "entities", ROLE_NODE, INTEGER, AT(entities), 2, 1 << 26, "2000", "N",
      "Of knowledge, of a graph that is generated." },
    { "relations", ROLE_NODE, INTEGER, AT(relations), 1, 1 << 20, "40", "N",
      "Likewise." },
    { "vocabulary", ROLE_NODE, INTEGER, AT(vocabulary), 2, 1 << 26, "5000",
      "N", "Of skipgram, words of a text that is generated." },
    { "min-count", ROLE_NODE, INTEGER, AT(min_count), 1, 1 << 30, "5", "N",
      "Of skipgram, words of a file that are there less often are left "
      "out." },
    { "often", ROLE_NODE, REAL, AT(often), 0, 1, "0.001", "X",
      "Of skipgram, words that are more of a text are skipped at times; 0: "
      "none." },
    { "window", ROLE_NODE, INTEGER, AT(window), 1, 100, "5", "N",
      "Of skipgram, words on each side that are near." },
    { "negatives", ROLE_NODE, INTEGER, AT(negatives), 1, 100, "5", "N",
      "Of knowledge and skipgram, wrong ones drawn beside each right one." },
    { "draws", ROLE_NODE, INTEGER, AT(draws), 1, 1000, "16", "N",
      "Of these, when keys move, draws of each until one is here; 1: take "
      "any, which is slower and a little better." },
    { "ahead", ROLE_NODE, INTEGER, AT(ahead), 1, 1 << 20, "200", "N",
      "Of knowledge and skipgram, samples whose keys are on their way." },
    { .name = NULL },
};

static const struct {
    const char *name;
    enum role role;
    const char *help;
} roles[] = {
    { "server", ROLE_SERVER, "Hold a shard of a job's parameters." },
    { "worker", ROLE_WORKER, "Train, with servers and other workers." },
    { "local", ROLE_LOCAL, "Train in one process without a network." },
    { "peer", ROLE_PEER, "Train with others like it, without a server." },
    { "node", ROLE_NODE, "Train what has a parameter for each of many keys, "
      "with others like it." },
};

const struct row *
options_find_row(const char *name, size_t length)
{
    for (const struct row *row = options_rows; row->name; row++) {
        if (strlen(row->name) == length
            && !memcmp(row->name, name, length)) {
            return row;
        }
    }
    return NULL;
}

enum role
options_find_role(const char *name)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (!strcmp(name, roles[i].name)) {
            return roles[i].role;
        }
    }
    return 0;
}

static void
help_role(enum role role, const char *name, const char *help)
{
    printf("stagecoach-trainer %s [OPTION...]\n    %s\n\n", name, help);
    for (const struct row *row = options_rows; row->name; row++) {
        if (row->roles & role) {
            printf("    --%s%s%s\n        %s", row->name,
                   row->value ? " " : "", row->value ? row->value : "",
                   row->help);
            if (row->kind == INTEGER || row->kind == REAL) {
                printf(" %.10g to %.10g.", row->min, row->max);
            }
            if (row->deflt) {
                printf(" Default: %s.", row->deflt);
            }
            putchar('\n');
        }
    }
    putchar('\n');
}

void
options_help(void)
{
    puts("stagecoach-trainer: data-parallel training with parameter servers "
         "over TCP\n");
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        help_role(roles[i].role, roles[i].name, roles[i].help);
    }
    puts("stagecoach-trainer bench ps [--json]\n"
         "    Measure a parameter server beside plain sockets.\n");
    puts("stagecoach-trainer compare SPEC.json [OPTION...]\n"
         "    Train under several schemes, one after the other.\n\n"
         "    --format text|json\n"
         "        A table, or one object with all points.  Default: text.\n"
         "    --svg FILE\n"
         "        Plot loss against time.\n");
    puts("Standard output is one JSON object a line: listening, backend, "
         "progress,\n"
         "paused, done.\n"
         "A worker that has reached its target keeps its connections and "
         "reads standard\n"
         "input: \"until M\" goes on to M iterations, \"stop\" or the end of "
         "the input ends\n"
         "it.  A server ends with its workers, or with its standard input.  "
         "/dev/null as\n"
         "standard input says nothing: a worker then ends at its target.\n\n"
         "With STAGECOACH_COJOB and STAGECOACH_JOB set, rank 0 tells its "
         "progress to\n"
         "$STAGECOACH_RUNDIR/progress.sock (default /run/stagecoach).\n\n"
         "Exit status: 0 ended as told, 1 training failed, 2 usage.");
}
