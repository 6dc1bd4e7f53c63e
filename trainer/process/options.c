/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/process/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/options.h"
#include "trainer/schemes/shard.h"

#define IMAGE_CLASSES 10        /* Classes of image data sets. */
#define TRAIN_WORKERS 2         /* Default of "train --workers". */
#define GENERATED 8192          /* Default number of generated samples. */

#define ANY (ROLE_SERVER | LEARNS)
#define READS (ROLE_EVALUATE | ROLE_EXPORT)
#define KNOWS_MODEL (TRAINS | READS)
#define HAS_DATA (LEARNS | ROLE_EVALUATE)
#define LISTENS (ROLE_SERVER | ROLE_PEER | ROLE_NODE)
#define LEARNS (TRAINS | ROLE_NODE)
#define TRAINS (ROLE_TRAIN | ROLE_WORKER | ROLE_LOCAL | ROLE_PEER)

static const struct {
    const char *name;
    enum role role;
    const char *help;
} roles[] = {
    { "train", ROLE_TRAIN,
      "Train on this machine: starts servers and workers "
      "and shows progress." },
    { "server", ROLE_SERVER, "Hold a shard of a job's parameters." },
    { "worker", ROLE_WORKER, "Train, with servers and other workers." },
    { "local", ROLE_LOCAL, "Train in one process without a network." },
    { "peer", ROLE_PEER, "Train with other peers, without a server." },
    { "node", ROLE_NODE,
      "Train models with a vector for each of many keys, "
      "with other nodes." },
    { "evaluate", ROLE_EVALUATE, "Print loss and accuracy of a checkpoint." },
    { "export", ROLE_EXPORT,
      "Write the weights of a checkpoint to a file "
      "that PyTorch loads." },
};

static char *
add_server(const char *text, void *options)
{
    struct options *o = options;

    if (o->n_servers >= OPTIONS_MAX_SERVERS) {
        return message("expected at most %d", OPTIONS_MAX_SERVERS);
    }
    o->servers[o->n_servers++] = text;
    return *text ? NULL : message("\"\" is not HOST:PORT");
}

/* Image sizes are small enough that no product of them overflows. */
static char *
parse_image(const char *text, void *to)
{
    struct image *image = to;
    int end = -1;

    if (sscanf(text, "%4dx%4dx%4d%n", &image->height, &image->width,
               &image->channels, &end) != 3 || end < 0 || text[end]
        || image->height < 8 || image->height > 256 || image->width < 8
        || image->width > 256 || image->channels < 1
        || image->channels > 16) {
        return message("\"%s\" is not HEIGHTxWIDTHxCHANNELS, up to "
                       "256x256x16", text);
    }
    return NULL;
}

static char *
parse_shape(const char *text, void *shape)
{
    return shape_from_string(text, shape);
}

static char *
parse_sync(const char *text, void *spec)
{
    return sync_spec_parse(text, spec);
}

#define AT(MEMBER) OPTION_AT(struct options, MEMBER)
#define STRING(X) #X
#define EXPANDED(X) STRING(X)
#define MAX_RANKS EXPANDED(SYNC_MAX_PEERS)

static const struct option_row rows[] = {
    { "workers", OPTION_INTEGER, AT(n_workers), 1, TEAM_MAX_WORKERS, "N",
      .shown = "2", .modes = ROLE_TRAIN, .subject = "Job",
      .help = "number of workers to start" },
    { "servers", OPTION_INTEGER, AT(n_team_servers), 1, TEAM_MAX_SERVERS, "N",
      "1", .modes = ROLE_TRAIN,
      .help = "number of servers to start; each holds a shard of the "
              "parameters" },
    { "workers", OPTION_INTEGER, AT(n_workers), 1, 1024, "N", "1",
      .modes = ROLE_SERVER | ROLE_WORKER,
      .help = "number of workers of the job" },
    { "rank", OPTION_INTEGER, AT(rank), 0, 1023, "R", "0",
      .modes = ROLE_WORKER | ROLE_PEER | ROLE_NODE,
      .help = "rank of this worker, peer or node, 0 to N - 1; rank 0 reports "
              "progress" },
    { "iterations", OPTION_INTEGER, AT(target), 0, 1e15, "N", "100",
      .modes = TRAINS,
      .help = "number of iterations, those before a checkpoint included; a "
              "worker then pauses, and continues with a higher number" },
    { "epochs", OPTION_INTEGER, AT(target), 0, 1e15, "N", "100",
      .modes = ROLE_NODE, .help = "number of epochs" },
    { "epoch-limit", OPTION_REAL, AT(epoch_limit), 0, 1e6, "S", "0",
      .modes = ROLE_NODE,
      .help = "maximum duration of an epoch, seconds; 0 is no limit" },
    { "eval-every", OPTION_INTEGER, AT(eval_every), 1, 1e15, "N", "10",
      .modes = LEARNS,
      .help = "interval of evaluations, iterations; each pause evaluates "
              "too" },
    { "seed", OPTION_INTEGER, AT(seed), 0, 1e15, "N", "1", .modes = HAS_DATA,
      .help = "seed of generated data, first weights and the order of "
              "samples" },
    { "format", OPTION_CHOICE, AT(json), .value = "text|json", .deflt = "text",
      .modes = ROLE_TRAIN,
      .help = "output: a progress bar on a terminal and otherwise a line now "
              "and then, or one JSON object for each event" },
    { "format", OPTION_CHOICE, AT(json), .value = "text|json", .deflt = "text",
      .modes = ROLE_EVALUATE, .help = "a line or a JSON object" },
    { "output", OPTION_TEXT, AT(output), .value = "FILE", .required = true,
      .modes = ROLE_EXPORT, .help = "safetensors file to write" },
    { "outputs", OPTION_FLAG, AT(outputs), .modes = ROLE_EVALUATE,
      .help = "with --format json: also the outputs of the net" },
    { "checkpoint", OPTION_TEXT, AT(checkpoint), .value = "FOLDER",
      .required = true, .modes = READS,
      .help = "folder of the checkpoints, of which the last one counts" },

    { "model", OPTION_WORD, AT(model), .value = "mlp|cifarnet|resnet32|linear",
      .deflt = "mlp", .modes = KNOWS_MODEL, .subject = "Model",
      .help = "model to train" },
    { "shape", OPTION_CUSTOM, AT(shape), .value = "WIDTHS",
      .deflt = "64,256,256,10", .parse = parse_shape, .modes = KNOWS_MODEL,
      .help = "mlp: widths of the layers: inputs, hidden layers, classes" },
    { "image", OPTION_CUSTOM, AT(image), .value = "HEIGHTxWIDTHxCHANNELS",
      .deflt = "32x32x3", .parse = parse_image, .modes = KNOWS_MODEL,
      .help = "cifarnet and resnet32: size of generated samples" },
    { "features", OPTION_INTEGER, AT(features), 1, 1 << 30, "N", "1024",
      .modes = LEARNS | READS,
      .help = "linear: number of features of a sample" },
    { "loss", OPTION_WORD, AT(loss), .value = "logistic|hinge",
      .deflt = "logistic", .modes = HAS_DATA,
      .help = "linear: loss function of logistic regression or of a support "
              "vector machine" },
    { "batch", OPTION_INTEGER, AT(batch), 1, 65536, "N", "64", .modes = LEARNS,
      .help = "batch size of an iteration over all workers, samples; of nodes "
              "only with the task linear, like momentum and optimiser" },
    { "learning-rate", OPTION_REAL, AT(learning_rate), 1e-9, 1e3, "X", "0.05",
      .modes = LEARNS, .help = "learning rate of SGD" },
    { "schedule", OPTION_CHOICE, AT(schedule.kind),
      .value = "constant|step|cosine", .deflt = "constant", .modes = TRAINS,
      .help = "learning rate by the iteration" },
    { "schedule-period", OPTION_INTEGER, AT(schedule.period), 0, 1e15, "N",
      "0", .modes = TRAINS,
      .help = "iterations between two steps, or until the cosine ends" },
    { "schedule-factor", OPTION_REAL, AT(schedule.factor), 0, 1, "X", "0.1",
      .modes = TRAINS,
      .help = "what each step multiplies the learning rate by, or its part at "
              "the cosine's end" },
    { "warm-up", OPTION_INTEGER, AT(schedule.warm_up), 0, 1e9, "N", "0",
      .modes = TRAINS,
      .help = "iterations in which the learning rate rises linearly" },
    { "momentum", OPTION_REAL, AT(momentum), 0, 0.9999, "X", "0.9",
      .modes = LEARNS,
      .help = "share of the previous step that is added to the next" },
    { "optimiser", OPTION_WORD, AT(optimiser),
      .value = "sgd|momentum|adagrad|adam", .deflt = "momentum",
      .modes = LEARNS,
      .help = "optimiser that servers or peers apply to gradients" },
    { "task", OPTION_WORD, AT(task),
      .value = "factorise|knowledge|skipgram|linear", .deflt = "factorise",
      .modes = ROLE_NODE, .help = "task to train" },
    { "dimension", OPTION_INTEGER, AT(dimension), 1, 1024, "N", "100",
      .modes = ROLE_NODE,
      .help = "dimension of vectors; complex vectors have twice as many "
              "values" },
    { "weight-decay", OPTION_REAL, AT(weight_decay), 0, 1e6, "X", "1",
      .modes = ROLE_NODE,
      .help = "factorise: L2 coefficient of both factors" },
    { "embedding", OPTION_WORD, AT(embedding), .value = "rescal|complex",
      .deflt = "complex", .modes = ROLE_NODE, .help = "knowledge: model" },
    { "window", OPTION_INTEGER, AT(window), 1, 100, "N", "5",
      .modes = ROLE_NODE,
      .help = "skipgram: size of the context on each side, words" },
    { "negatives", OPTION_INTEGER, AT(negatives), 1, 100, "N", "5",
      .modes = ROLE_NODE,
      .help = "knowledge and skipgram: number of negative samples for each "
              "positive one" },

    { "data", OPTION_TEXT, AT(data), .value = "SOURCE", .deflt = "generated",
      .modes = LEARNS | READS, .subject = "Data",
      .help = "source of the samples: generated, mnist:FOLDER, cifar10:FOLDER "
              "(binary version), libsvm:FILE, each also with gzip; a FOLDER "
              "alone is MNIST; nodes: generated, or a file or folder of the "
              "task" },
    { "samples", OPTION_INTEGER, AT(samples), 0, 1 << 24, "N", "0",
      "all of files, 8192 generated", .modes = HAS_DATA,
      .help = "number of training samples; of files at most this number" },
    { "validation", OPTION_INTEGER, AT(validation), 1, 1 << 24, "N",
      .shown = "all of files, 512 generated", .modes = ROLE_EVALUATE,
      .help = "number of validation samples" },
    { "validation", OPTION_INTEGER, AT(validation), 1, 1 << 24, "N", "512",
      .modes = LEARNS,
      .help = "number of validation samples; of files, and of the validation "
              "set of a task, at most this number" },
    { "shards", OPTION_WORD, AT(shards), .value = "iid|by-label",
      .deflt = "iid", .modes = ROLE_PEER,
      .help = "division of the samples among peers: at random, or such that "
              "each has few labels, by the seed" },
    { "rows", OPTION_INTEGER, AT(rows), 1, 1 << 26, "N", "4000",
      .modes = ROLE_NODE,
      .help = "factorise: number of rows of the generated matrix" },
    { "columns", OPTION_INTEGER, AT(columns), 1, 1 << 26, "N", "2000",
      .modes = ROLE_NODE,
      .help = "factorise: number of columns of the generated matrix" },
    { "entities", OPTION_INTEGER, AT(entities), 2, 1 << 26, "N", "2000",
      .modes = ROLE_NODE,
      .help = "knowledge: number of entities of the generated graph" },
    { "relations", OPTION_INTEGER, AT(relations), 1, 1 << 20, "N", "40",
      .modes = ROLE_NODE,
      .help = "knowledge: number of relations of the generated graph" },
    { "vocabulary", OPTION_INTEGER, AT(vocabulary), 2, 1 << 26, "N", "5000",
      .modes = ROLE_NODE,
      .help = "skipgram: number of different words of the generated text" },
    { "min-count", OPTION_INTEGER, AT(min_count), 1, 1 << 30, "N", "5",
      .modes = ROLE_NODE,
      .help = "skipgram: leave out the words of a file that occur less "
              "often" },
    { "subsample", OPTION_REAL, AT(subsample), 0, 1, "X", "0.001",
      .modes = ROLE_NODE,
      .help = "skipgram: randomly skip words whose relative frequency is "
              "above this; 0 keeps all" },

    { "sync", OPTION_CUSTOM, AT(sync), .value = "SCHEME", .deflt = "bsp",
      .parse = parse_sync, .modes = ROLE_SERVER | ROLE_TRAIN,
      .subject = "Synchronisation",
      .help = "rule by which gradients become weights: bsp, asp, "
              "ssp[,staleness=S], essp[,staleness=S], "
              "backup[,backups=B][,pieces=P], static,ratios=R0:R1..., "
              "lbbsp-cpu[,predictor=P], lbbsp-gpu, flexrr[,pieces=P] or "
              "groups[,groups=G|max=G][,tau=T]" },
    { "central", OPTION_TEXT, AT(central), .value = "HOST:PORT",
      .modes = ROLE_SERVER,
      .help = "serve one group of the server at this address, which has "
              "--sync groups" },
    { "no-group-servers", OPTION_FLAG, AT(group_servers_elsewhere),
      .modes = ROLE_SERVER,
      .help = "--sync groups: do not start group servers; they are started "
              "elsewhere, with --central" },
    { "scheme", OPTION_WORD, AT(scheme),
      .value = "allreduce|allreduce-tree|adpsgd|prague|netmax|"
               "netmax-published",
      .deflt = "netmax", .modes = ROLE_PEER,
      .help = "algorithm that keeps the models of the peers together" },
    { "group", OPTION_INTEGER, AT(group), 2, SYNC_MAX_PEERS, "N", "4",
      .modes = ROLE_PEER, .help = "prague: maximum size of a group, peers" },
    { "policy-every", OPTION_REAL, AT(policy_every), 0.001, 1e6, "S", "120",
      .modes = ROLE_PEER,
      .help = "netmax-published: interval of policies, seconds" },
    { "overlap", OPTION_WORD, AT(overlap), .value = "on|off", .deflt = "on",
      .modes = ROLE_WORKER | ROLE_TRAIN,
      .help = "send gradients in parts while others are computed" },
    { "store", OPTION_WORD, AT(store),
      .value = "classic|classic-local|localize|localize-messages|ssp|essp|"
               "manual",
      .deflt = "localize", .modes = ROLE_NODE,
      .help = "placement of keys: at servers reached by messages (classic) or "
              "in memory (classic-local), moved to the node that uses them "
              "(localize), moved but always reached by messages "
              "(localize-messages), copied (ssp, essp); manual has no keys "
              "but blocks, for factorise" },
    { "staleness", OPTION_INTEGER, AT(staleness), 0, 1000, "S", "1",
      .modes = ROLE_NODE,
      .help = "ssp and essp: maximum age of a copy, clocks" },
    { "exchange", OPTION_INTEGER, AT(exchange), 1, 1024, "N", "1",
      .modes = ROLE_NODE,
      .help = "with --store localize, classic or classic-local: number of "
              "samples whose vectors are pulled and pushed at once, while "
              "those of the next ones are requested; 1 is one after the "
              "other" },
    { "prefetch", OPTION_INTEGER, AT(prefetch), 1, 1 << 20, "N", "200",
      .modes = ROLE_NODE,
      .help = "knowledge and skipgram: number of samples whose keys are "
              "requested in advance" },
    { "draws", OPTION_INTEGER, AT(draws), 1, 1000, "N", "16",
      .modes = ROLE_NODE,
      .help = "knowledge and skipgram, with --store localize: redraw each "
              "negative sample up to this number of times until its key is "
              "local; 1 accepts the first" },

    { "address", OPTION_TEXT, AT(address), .value = "ADDRESS",
      .deflt = "127.0.0.1", .modes = LISTENS, .subject = "Network",
      .help = "address to listen on" },
    { "port", OPTION_INTEGER, AT(port), 0, 65535, "PORT", "0",
      .modes = LISTENS,
      .help = "port to listen on; 0 lets the kernel choose" },
    { "control-port", OPTION_INTEGER, AT(control_port), 0, 65535, "PORT", "0",
      .modes = ROLE_SERVER,
      .help = "port to receive heartbeats on; 0 lets the kernel choose" },
    { "server", OPTION_CUSTOM, .value = "HOST:PORT", .parse = add_server,
      .repeated = true, .modes = ROLE_WORKER,
      .help = "address of a server; give all servers, in the same order at "
              "every worker" },
    { "peers", OPTION_TEXT, AT(peers), .value = "HOST[:PORT],...",
      .modes = ROLE_PEER,
      .help = "addresses of all peers by rank, at most " MAX_RANKS "; the "
              "default port is that of --port; -: they follow on standard "
              "input, in a line \"peers HOST:PORT,...\"" },
    { "nodes", OPTION_TEXT, AT(nodes), .value = "HOST[:PORT],...",
      .modes = ROLE_NODE,
      .help = "addresses of all nodes by rank, at most " MAX_RANKS "; the "
              "default port is that of --port" },
    { "token-file", OPTION_TEXT, AT(token_file), .value = "FILE",
      .modes = LISTENS | ROLE_WORKER,
      .help = "secret of the job, the first word of this file; without it, "
              "that in $STAGECOACH_TOKEN; processes with another one are "
              "refused" },
    { "congestion", OPTION_TEXT, AT(congestion), .value = "NAME",
      .modes = ANY & ~ROLE_LOCAL,
      .help = "TCP congestion control, such as cubic" },
    { "reconnect-timeout", OPTION_REAL, AT(reconnect_timeout), 0, 1e6, "S",
      "3", .modes = ROLE_SERVER | ROLE_WORKER | ROLE_TRAIN,
      .help = "time to wait for a broken connection to be re-established, "
              "seconds" },
    { "heartbeat-timeout", OPTION_REAL, AT(heartbeat_timeout), 0, 1e6, "S",
      "10", .modes = ANY & ~ROLE_LOCAL,
      .help = "time without a heartbeat after which a process counts as dead, "
              "seconds; 0 disables it" },

    { "checkpoint", OPTION_TEXT, AT(checkpoint), .value = "FOLDER",
      .modes = ROLE_SERVER | ROLE_TRAIN, .subject = "Checkpoints",
      .help = "keep the last two checkpoints in this folder" },
    { "checkpoint-every", OPTION_INTEGER, AT(checkpoint_every), 1, 1e15, "N",
      "100", .modes = ROLE_SERVER | ROLE_TRAIN,
      .help = "interval of checkpoints, iterations" },
    { "no-resume", OPTION_FLAG, AT(no_resume),
      .modes = ROLE_SERVER | ROLE_TRAIN,
      .help = "delete the checkpoints in the folder and begin at iteration "
              "0, instead of continuing from the last one" },
    { "new-rate", OPTION_FLAG, AT(new_rate), .modes = ROLE_SERVER | ROLE_TRAIN,
      .help = "continue with another learning rate or schedule than the "
              "checkpoint's" },

    { "backend", OPTION_WORD, AT(backend), .value = "auto|cpu|cuda",
      .deflt = "auto", .modes = TRAINS | ROLE_EVALUATE, .subject = "Machine",
      .help = "processor to compute on; auto is a GPU if there is one" },
    { "tf32", OPTION_WORD, AT(tf32), .value = "on|convolutions|off",
      .deflt = "off", .modes = TRAINS,
      .help = "let a GPU round the factors of all products, or only of "
              "convolutions, to 10 bits" },
    { "threads", OPTION_INTEGER, AT(n_threads), 1, 1024, "N", "1",
      .modes = ANY | ROLE_EVALUATE,
      .help = "number of threads of the linear algebra on the CPU; nodes: "
              "number of workers" },
    { "max-batch", OPTION_INTEGER, AT(max_batch), 0, 1 << 24, "N", "0",
      .modes = TRAINS,
      .help = "largest number of samples of an iteration on this device; 0 "
              "is what there is memory for" },
    { "sample-cost-us", OPTION_REAL, AT(sample_cost_us), 0, 1e9, "US", "0",
      .modes = LEARNS,
      .help = "emulate a slower worker: minimum time per sample, "
              "microseconds" },
    { "speed-profile", OPTION_TEXT, AT(speed_profile), .value = "FILE",
      .modes = LEARNS,
      .help = "emulate the machine that this file has for the rank, with the "
              "load by others" },
    { .name = NULL },
};

static bool
is_model(const struct options *o, const char *name)
{
    return !strcmp(o->model, name);
}

int
options_n_inputs(const struct options *o)
{
    return is_model(o, "mlp") ? o->shape.width[0]
           : is_model(o, "linear") ? o->features
           : o->image.height * o->image.width * o->image.channels;
}

int
options_n_classes(const struct options *o)
{
    return is_model(o, "mlp") ? o->shape.width[o->shape.n - 1]
           : is_model(o, "linear") ? 2 : IMAGE_CLASSES;
}

bool
options_by_label(const struct options *o)
{
    return o->shards && !strcmp(o->shards, "by-label");
}

static const struct {
    const char *prefix;
    char *(*read)(const struct dataset_config *, const char *path,
                  struct dataset **);
} sources[] = {
    { "mnist:", dataset_mnist },
    { "cifar10:", dataset_cifar },
    { "libsvm:", dataset_libsvm },
    { "", dataset_mnist },
};

/* What '--data' means, and the images that it has. */
static char *
check_data(struct options *o)
{
    size_t i = 0;

    if (!strcmp(o->data, "generated")) {
        return NULL;
    }
    while (strncmp(o->data, sources[i].prefix, strlen(sources[i].prefix))) {
        i++;
    }
    o->read_data = sources[i].read;
    o->data_path = o->data + strlen(sources[i].prefix);
    if ((o->read_data == dataset_libsvm) != is_model(o, "linear")) {
        return message("--data: \"%s\" is not for the model \"%s\"",
                       o->data, o->model);
    }
    o->image = o->read_data == dataset_mnist ? (struct image) { 28, 28, 1 }
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
    if (o->exchange > 1 && strncmp(o->store, "classic", 7)
        && strcmp(o->store, "localize")) {
        return message("--exchange %lld: only with --store localize, classic "
                       "or classic-local", (long long) o->exchange);
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
    char *why = sync_spec_check(&o->sync, o->n_workers);

    if (why) {
        char *error = message("--sync: %s", why);

        free(why);
        return error;
    }
    if (o->central
        && (o->checkpoint || o->no_resume || o->control_port
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
    return o->no_resume && !o->checkpoint
               ? message("--no-resume: needs --checkpoint, the folder")
               : NULL;
}

static char *
check_train(const struct options *o)
{
    if (o->sync.class == &sync_groups && o->n_team_servers > 1) {
        return message("--servers: \"groups\" has one server");
    }
    return check_server(o);
}

/* Returns the number of parameters if options set it, otherwise 0. */
static size_t
n_known_parameters(const struct options *o)
{
    return !o->model ? 0
           : is_model(o, "mlp") ? shape_n_parameters(&o->shape)
           : is_model(o, "linear") ? (size_t) o->features + 1 : 0;
}

static char *
check_together(struct options *o)
{
    int64_t n_servers = o->role == ROLE_TRAIN ? o->n_team_servers
                                              : o->n_servers;
    char *error = o->role == ROLE_TRAIN ? check_train(o) : NULL;
    size_t n_known = n_known_parameters(o);

    if (o->role == ROLE_SERVER) {
        return check_server(o);
    }
    if (error || o->role & READS) {
        return error ? error : check_data(o);
    }
    if (o->schedule.kind && !o->schedule.period) {
        return message("--schedule-period: missing; expected the iterations "
                       "of the schedule");
    }
    if (o->role == ROLE_WORKER && !o->n_servers) {
        return message("--server: at least one is needed");
    }
    if (o->role == ROLE_PEER && (!o->peers || (!o->port
                                 && !strchr(o->peers, ':')
                                 && strcmp(o->peers, "-")))) {
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
    if (n_known && n_servers > n_known) {
        return message("--server: more servers than parameters");
    }
    if (n_known && n_servers) {
        error = shard_check(n_known, n_servers);
    }
    if (error) {
        char *why = error;

        error = message("--%s: %s", is_model(o, "mlp") ? "shape" : "features",
                        why);
        free(why);
        return error;
    }
    return check_data(o);
}

static bool
was_given(const struct options *o, const char *name)
{
    for (size_t i = 0; rows[i].name; i++) {
        if (o->given.seen[i] && !strcmp(rows[i].name, name)) {
            return true;
        }
    }
    return false;
}

static enum role
find_role(const char *name)
{
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (!strcmp(name, roles[i].name)) {
            return roles[i].role;
        }
    }
    return 0;
}

char *
options_parse(int argc, char *argv[], struct options *o, bool *help)
{
    struct option_table table = { .name = "stagecoach-trainer", .rows = rows };
    char *error;

    memset(o, 0, sizeof *o);
    *help = argc > 0 && (!strcmp(argv[0], "--help") || !strcmp(argv[0], "-h"));
    if (*help) {
        return NULL;
    }
    o->role = argc > 0 ? find_role(argv[0]) : 0;
    if (!o->role) {
        return argc > 0
               ? message("\"%s\" is not a command, --help lists them", argv[0])
               : message("a command is needed, --help lists them");
    }
    table.modes = o->role;
    error = option_table_parse(&table, argc, argv, o, &o->given);
    if (o->role == ROLE_TRAIN && !was_given(o, "workers")) {
        o->n_workers = TRAIN_WORKERS;
    }
    if (o->role == ROLE_EVALUATE && !was_given(o, "validation")) {
        o->validation = 0;
    }
    if (!error && o->data) {
        bool all = strcmp(o->data, "generated");

        o->samples = o->samples ? o->samples : all ? DATASET_ALL : GENERATED;
        o->validation = o->validation ? o->validation
                        : all         ? DATASET_ALL
                                      : DATASET_HELD;
    }
    *help = o->given.help;
    return error || *help ? error : check_together(o);
}

void
options_arguments(const struct options *o, enum role role,
                  void (*add)(void *aux, char *argument), void *aux)
{
    for (size_t i = 0; rows[i].name; i++) {
        if (o->given.seen[i] && (!rows[i].modes || rows[i].modes & role)) {
            add(aux, o->given.text[i]
                         ? message("--%s=%s", rows[i].name, o->given.text[i])
                         : message("--%s", rows[i].name));
        }
    }
}

static void
commands_help(void)
{
    puts("usage: stagecoach-trainer COMMAND [ARG...]\n\n"
         "Trains models by SGD, in one process or in many, and shares the "
         "parameters by\n"
         "servers or among peers.\n");
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        printf("  %s [OPTION...]\n      %s\n", roles[i].name, roles[i].help);
    }
    puts("  compare SPEC.json [OPTION...]\n"
         "      Train under several schemes, one after the other.\n\n"
         "\"stagecoach-trainer COMMAND --help\" lists the options of a "
         "command "
         "by subject:\n"
         "job, model, data, synchronisation, network, checkpoints, "
         "machine.\n\n"
         "Exit status: 0 ended as requested, 1 training failed, 2 usage.");
}

#define EVENTS \
    "Standard output is one JSON object a line.\n"
#define REPORTS \
    "\n" \
    "With STAGECOACH_COJOB and STAGECOACH_JOB set, rank 0 reports its " \
    "progress to\n" \
    "$STAGECOACH_RUNDIR/progress.sock (default /run/stagecoach).\n"
#define PAUSES \
    "At its target it keeps its connections and reads standard input: " \
    "\"until M\" goes\n" \
    "on to M iterations, \"stop\" or the end of the input ends it.  With " \
    "/dev/null as\n" \
    "standard input it ends at its target.\n"

static const char *
footer_of(enum role role)
{
    return role == ROLE_TRAIN
               ? "Exit status: 0 the target is reached, 1 training failed, 2 "
                 "usage, 128 + N\nended by signal N.\n"
           : role & READS
               ? "Exit status: 0 success, 1 no such checkpoint or data, 2 usage.\n"
           : role == ROLE_SERVER ? EVENTS
               "A server ends with its workers, or with its standard "
               "input.\n"
           : role == ROLE_NODE ? EVENTS REPORTS
                               : EVENTS PAUSES REPORTS;
}

void
options_help(const struct options *o)
{
    if (!o->role) {
        commands_help();
        return;
    }
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        if (roles[i].role == o->role) {
            char *usage = message("usage: stagecoach-trainer %s [OPTION...]"
                                  "\n\n%s\n", roles[i].name, roles[i].help);

            option_table_help(&(struct option_table) {
                .rows = rows, .modes = o->role, .usage = usage,
                .footer = footer_of(o->role),
            }, stdout);
            free(usage);
        }
    }
}
