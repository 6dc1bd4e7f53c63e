/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/options.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/message.h"

#define ANY (ROLE_SERVER | LEARNS)
#define LISTENS (ROLE_SERVER | ROLE_PEER | ROLE_NODE)
#define LEARNS (TRAINS | ROLE_NODE)
#define TRAINS (ROLE_WORKER | ROLE_LOCAL | ROLE_PEER)

enum kind {
    STRING,
    WORD,                       /* One of those that 'value' has. */
    INTEGER,
    REAL,
    SHAPE,
    IMAGE,
    SERVER,                     /* May be repeated. */
    FLAG,                       /* Has no value. */
    SYNC,
};

struct row {
    const char *name;
    int roles;                  /* Whose option it is. */
    enum kind kind;
    size_t offset;              /* In struct options. */
    double min, max;            /* Of a number. */
    const char *deflt;          /* As a person would write it; NULL: none. */
    const char *value;          /* What help calls the value. */
    const char *help;
};

#define AT(MEMBER) offsetof(struct options, MEMBER)

static const struct row rows[] = {
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
};

#define IMAGE_CLASSES 10        /* Of images, generated or not. */
#define N_ROWS (sizeof rows / sizeof rows[0])

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

static const struct row *
find_row(const char *name, size_t length)
{
    for (size_t i = 0; i < N_ROWS; i++) {
        if (strlen(rows[i].name) == length
            && !memcmp(rows[i].name, name, length)) {
            return &rows[i];
        }
    }
    return NULL;
}

static char *
set_number(const struct row *row, const char *value, void *to)
{
    bool integer = row->kind == INTEGER;
    char *end;
    double x;

    errno = 0;
    x = strtod(value, &end);
    if (end == value || *end || errno || !isfinite(x) || x < row->min
        || x > row->max || (integer && x != floor(x))) {
        return message("--%s: \"%s\" is not %s from %.10g to %.10g",
                       row->name, value, integer ? "an integer" : "a number",
                       row->min, row->max);
    }
    if (integer) {
        *(int64_t *) to = x;
    } else {
        *(double *) to = x;
    }
    return NULL;
}

/* The words are between bars in 'row->value'. */
static char *
set_word(const struct row *row, const char *value, const char **to)
{
    size_t length = strlen(value);

    for (const char *word = row->value; ; word += strcspn(word, "|") + 1) {
        if (strcspn(word, "|") == length && !memcmp(word, value, length)) {
            *to = value;
            return NULL;
        }
        if (!strchr(word, '|')) {
            return message("--%s: \"%s\" is not one of %s", row->name, value,
                           row->value);
        }
    }
}

/* Image sizes are small enough for no product of them to overflow. */
static char *
set_image(const struct row *row, const char *value, struct image *image)
{
    int end = -1;

    if (sscanf(value, "%4dx%4dx%4d%n", &image->height, &image->width,
               &image->channels, &end) != 3 || end < 0 || value[end]
        || image->height < 8 || image->height > 256 || image->width < 8
        || image->width > 256 || image->channels < 1
        || image->channels > 16) {
        return message("--%s: \"%s\" is not %s, up to 256x256x16", row->name,
                       value, row->value);
    }
    return NULL;
}

/* Says before 'why', which it frees, what it is about. */
static char *
named(const struct row *row, char *why)
{
    char *error = message("--%s: %s", row->name, why);

    free(why);
    return error;
}

static char *
set_value(const struct row *row, const char *value, struct options *o)
{
    void *to = (char *) o + row->offset;
    char *error = NULL;

    switch (row->kind) {
    case STRING:
        if (!*value) {
            return message("--%s: empty", row->name);
        }
        *(const char **) to = value;
        break;
    case WORD:
        return set_word(row, value, to);
    case INTEGER:
    case REAL:
        return set_number(row, value, to);
    case SHAPE:
        error = shape_from_string(value, to);
        break;
    case IMAGE:
        return set_image(row, value, to);
    case SYNC:
        error = sync_spec_parse(value, to);
        break;
    case SERVER:
        if (o->n_servers >= OPTIONS_MAX_SERVERS) {
            return message("--%s: more than %d", row->name,
                           OPTIONS_MAX_SERVERS);
        }
        o->servers[o->n_servers++] = value;
        break;
    case FLAG:
        *(bool *) to = true;
        break;
    }
    return error ? named(row, error) : NULL;
}

static bool
is_model(const struct options *o, const char *name)
{
    return !strcmp(o->model, name);
}

int
options_n_inputs(const struct options *o)
{
    return is_model(o, "mlp") ? shape_inputs(&o->shape)
           : is_model(o, "linear") ? o->features
           : o->image.height * o->image.width * o->image.channels;
}

int
options_n_classes(const struct options *o)
{
    return is_model(o, "mlp") ? shape_classes(&o->shape)
           : is_model(o, "linear") ? 2 : IMAGE_CLASSES;
}

static const struct {
    const char *prefix;
    enum data_kind kind;
} sources[] = {
    { "mnist:", DATA_MNIST },
    { "cifar10:", DATA_CIFAR },
    { "libsvm:", DATA_LIBSVM },
    { "", DATA_MNIST },
};

/* What '--data' means, and the images that it has. */
static char *
check_data(struct options *o)
{
    size_t i = 0;

    if (!strcmp(o->data, "generated")) {
        o->data_kind = DATA_GENERATED;
        return NULL;
    }
    while (strncmp(o->data, sources[i].prefix, strlen(sources[i].prefix))) {
        i++;
    }
    o->data_kind = sources[i].kind;
    o->data_path = o->data + strlen(sources[i].prefix);
    if ((o->data_kind == DATA_LIBSVM) != is_model(o, "linear")) {
        return message("--data: \"%s\" is not for the model \"%s\"",
                       o->data, o->model);
    }
    o->image = o->data_kind == DATA_MNIST ? (struct image) { 28, 28, 1 }
                                          : (struct image) { 32, 32, 3 };
    return NULL;
}

static char *
check_node(const struct options *o)
{
    if (!o->nodes || (!o->port && !strchr(o->nodes, ':'))) {
        return message("--nodes, --port: all nodes and where they listen are "
                       "needed");
    }
    if (strcmp(o->store, "manual")) {
        return NULL;
    }
    if (strcmp(o->task, "factorise") || o->n_threads > 1) {
        return message("--store: manual is for factorise, one thread a node");
    }
    return o->epoch_limit > 0
           ? message("--epoch-limit: manual goes through whole epochs") : NULL;
}

static char *
check_server(const struct options *o)
{
    char *error = sync_spec_check(&o->sync, o->n_workers);

    if (error) {
        return named(find_row("sync", 4), error);
    }
    if (o->central && (o->checkpoint || o->resume || o->control_port
                       || o->group_servers_elsewhere)) {
        return message("--central: checkpoints, the control port and group "
                       "servers are options of the server at \"%s\"",
                       o->central);
    }
    if (o->sync.class == &sync_groups && !o->group_servers_elsewhere
        && (!strcmp(o->address, "0.0.0.0") || !strcmp(o->address, "::"))) {
        return message("--address: \"%s\" is not where workers reach group "
                       "servers", o->address);
    }
    return o->resume && !o->checkpoint
           ? message("--resume: --checkpoint says from where") : NULL;
}

static char *
check_together(struct options *o)
{
    if (o->role == ROLE_SERVER) {
        return check_server(o);
    }
    if (o->role == ROLE_WORKER && !o->n_servers) {
        return message("--server: at least one is needed");
    }
    if (o->role == ROLE_PEER && (!o->peers || (!o->port
                                 && !strchr(o->peers, ':')))) {
        return message("--peers, --port: all peers and where they listen "
                       "are needed");
    }
    if (o->role == ROLE_NODE) {
        return check_node(o);
    }
    if (o->role != ROLE_PEER && o->rank >= o->n_workers) {
        return message("--rank: %lld is not 0 to %lld", (long long) o->rank,
                       (long long) o->n_workers - 1);
    }
    if ((is_model(o, "mlp") && o->n_servers > shape_n_parameters(&o->shape))
        || (is_model(o, "linear") && o->n_servers > o->features + 1)) {
        return message("--server: more servers than parameters");
    }
    return check_data(o);
}

static char *
parse_role(const char *name, struct options *o)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (!strcmp(name, roles[i].name)) {
            o->role = roles[i].role;
            return NULL;
        }
    }
    return message("\"%s\" is not one of \"server\", \"worker\", \"local\", "
                   "\"peer\", \"node\"", name);
}

/* Takes the option at 'argv[*i]' and moves '*i' behind its value. */
static char *
parse_option(int argc, char *argv[], int *i, struct options *o)
{
    const char *arg = argv[*i] + 2;
    const char *equals = strchr(arg, '=');
    size_t length = equals ? equals - arg : strlen(arg);
    const struct row *row = find_row(arg, length);

    if (strncmp(argv[*i], "--", 2) || !row) {
        return message("\"%s\" is not an option, --help lists them",
                       argv[*i]);
    }
    if (!(row->roles & o->role)) {
        return message("--%s: not an option of \"%s\"", row->name, argv[0]);
    }
    if (row->kind == FLAG) {
        return equals ? message("--%s: has no value", row->name)
                      : set_value(row, "", o);
    }
    if (!equals && *i + 1 >= argc) {
        return message("--%s: needs a value", row->name);
    }
    return set_value(row, equals ? equals + 1 : argv[++*i], o);
}

char *
options_parse(int argc, char *argv[], struct options *o, bool *help)
{
    char *error = NULL;

    memset(o, 0, sizeof *o);
    *help = false;
    for (int i = 0; i < argc; i++) {
        *help = *help || !strcmp(argv[i], "--help") || !strcmp(argv[i], "-h");
    }
    if (*help) {
        return NULL;
    }
    if (argc < 1) {
        return message("\"server\", \"worker\", \"local\", \"peer\" or "
                       "\"node\" is needed, --help says more");
    }
    error = parse_role(argv[0], o);
    for (size_t i = 0; i < N_ROWS && !error; i++) {
        if (rows[i].deflt) {
            error = set_value(&rows[i], rows[i].deflt, o);
        }
    }
    for (int i = 1; i < argc && !error; i++) {
        error = parse_option(argc, argv, &i, o);
    }
    return error ? error : check_together(o);
}

static void
help_role(enum role role, const char *name, const char *help)
{
    printf("stagecoach-trainer %s [OPTION...]\n    %s\n\n", name, help);
    for (size_t i = 0; i < N_ROWS; i++) {
        const struct row *row = &rows[i];

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
