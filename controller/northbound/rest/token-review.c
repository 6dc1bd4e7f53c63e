/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/token-review.h"

#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/dynamic-string.h"
#include "openvswitch/json.h"
#include "openvswitch/list.h"
#include "openvswitch/poll-loop.h"
#include "openvswitch/vlog.h"
#include "timeval.h"
#include "util.h"
#include "wire/api-source.h"
#include "wire/json-get.h"

VLOG_DEFINE_THIS_MODULE(token_review);

#define PATH "/apis/authentication.k8s.io/v1/tokenreviews"

#define MAX_REVIEWS 256       /* Those that have ended are forgotten first. */
#define MAX_TOKEN 8192        /* Bytes. */
#define MAX_REPLY (64 * 1024) /* Bytes. */
#define TIMEOUT_MS 5000L      /* Of a review. */
#define FAILED_MS 1000        /* A review that failed is not repeated. */
#define MAX_SOCKETS 64        /* That are waited for. */

struct review {
    struct ovs_list node; /* In struct token_reviews's 'reviews'. */
    uint8_t hash[crypto_generichash_BYTES]; /* Of the token. */
    enum token_state state;
    long long until; /* time_msec() when it is forgotten. */
    char *user;      /* If it is valid. */

    /* While it waits. */
    CURL *curl;
    char *body; /* Has the token. */
    struct ds reply;
    char why[CURL_ERROR_SIZE];
};

struct token_reviews {
    struct api_source source;
    char *url, *socket, *token, *ca; /* Of 'source'. */
    uint8_t key[crypto_generichash_KEYBYTES];
    struct ovs_list reviews; /* Of struct review, the last one first. */
    size_t n;
    CURLM *multi;
    struct curl_slist *headers;
    struct pollfd sockets[MAX_SOCKETS]; /* That curl waits for. */
    size_t n_sockets;
    bool ended; /* A review, since the last run. */
};

char *
token_reviews_check(const char *server)
{
    bool valid = ((!strncmp(server, "https://", 8) && server[8])
                  || (!strncmp(server, "unix:", 5) && server[5]));

    return (valid
                ? NULL
                : xasprintf("--api-server: \"%s\" is no API server; expected "
                            "https://HOST or unix:PATH",
                            server));
}

/* curl's callback: it waits for 'what' of socket 'fd', or no longer. */
static int
note_socket(CURL *curl OVS_UNUSED, curl_socket_t fd, int what, void *tr_,
            void *socketp OVS_UNUSED)
{
    struct token_reviews *tr = tr_;
    size_t i = 0;

    while (i < tr->n_sockets && tr->sockets[i].fd != fd) {
        i++;
    }
    if (what == CURL_POLL_REMOVE) {
        if (i < tr->n_sockets) {
            tr->sockets[i] = tr->sockets[--tr->n_sockets];
        }
    } else if (i < MAX_SOCKETS) {
        tr->sockets[i] =
            (struct pollfd){ .fd = fd,
                             .events =
                                 ((what & CURL_POLL_IN ? POLLIN : 0)
                                  | (what & CURL_POLL_OUT ? POLLOUT : 0)) };
        tr->n_sockets = MAX(tr->n_sockets, i + 1);
    }
    return 0;
}

struct token_reviews *
token_reviews_create(const char *server, const char *folder)
{
    struct token_reviews *tr = xzalloc(sizeof *tr);

    if (!strncmp(server, "unix:", 5)) {
        tr->socket = xstrdup(server + 5);
        tr->url = xstrdup("http://localhost" PATH);
    } else {
        tr->url = xasprintf("%s" PATH, server);
        tr->token = xasprintf("%s/token", folder);
        tr->ca = xasprintf("%s/ca.crt", folder);
    }
    tr->source = (struct api_source){ tr->url, tr->socket, tr->token, tr->ca };
    randombytes_buf(tr->key, sizeof tr->key);
    ovs_list_init(&tr->reviews);
    curl_global_init(CURL_GLOBAL_DEFAULT);
    tr->multi = curl_multi_init();
    ovs_assert(tr->multi);
    curl_multi_setopt(tr->multi, CURLMOPT_SOCKETFUNCTION, note_socket);
    curl_multi_setopt(tr->multi, CURLMOPT_SOCKETDATA, tr);
    tr->headers = curl_slist_append(NULL, "Content-Type: application/json");
    return tr;
}

/* Ends the request of 'r': its state is 'state' for 'ms' from now on. */
static void
end_request(struct token_reviews *tr, struct review *r, enum token_state state,
            int ms)
{
    r->state = state;
    r->until = time_msec() + ms;
    tr->ended = true;
    if (r->curl) {
        curl_multi_remove_handle(tr->multi, r->curl);
        curl_easy_cleanup(r->curl);
        r->curl = NULL;
    }
    if (r->body) {
        sodium_memzero(r->body, strlen(r->body));
        free(r->body);
        r->body = NULL;
    }
    ds_destroy(&r->reply);
}

static void
review_destroy(struct token_reviews *tr, struct review *r)
{
    end_request(tr, r, TOKEN_FAILED, 0);
    ovs_list_remove(&r->node);
    tr->n--;
    free(r->user);
    free(r);
}

void
token_reviews_destroy(struct token_reviews *tr)
{
    struct review *r;

    if (!tr) {
        return;
    }
    LIST_FOR_EACH_SAFE(r, node, &tr->reviews)
    {
        review_destroy(tr, r);
    }
    curl_multi_cleanup(tr->multi);
    curl_slist_free_all(tr->headers);
    curl_global_cleanup();
    sodium_memzero(tr->key, sizeof tr->key);
    free(tr->url);
    free(tr->socket);
    free(tr->token);
    free(tr->ca);
    free(tr);
}

static size_t
take(char *data, size_t one OVS_UNUSED, size_t n, void *r_)
{
    struct review *r = r_;

    if (r->reply.length + n > MAX_REPLY) {
        return 0;
    }
    ds_put_buffer(&r->reply, data, n);
    return n;
}

/* Returns a TokenReview of 'token', as text. */
static char *
make_body(const char *token)
{
    struct json *spec = json_object_create();
    struct json *json = json_object_create();
    char *text;

    json_object_put_string(spec, "token", token);
    json_object_put(
        spec, "audiences",
        json_array_create_1(json_string_create(TOKEN_REVIEW_AUDIENCE)));
    json_object_put_string(json, "apiVersion", "authentication.k8s.io/v1");
    json_object_put_string(json, "kind", "TokenReview");
    json_object_put(json, "spec", spec);
    text = json_to_string(json, 0);
    json_destroy(json);
    return text;
}

static void
fail(struct token_reviews *tr, struct review *r, const char *why)
{
    static struct vlog_rate_limit rl = VLOG_RATE_LIMIT_INIT(1, 5);

    VLOG_WARN_RL(&rl, "%s: a token was not reviewed (%s)", tr->url, why);
    end_request(tr, r, TOKEN_FAILED, FAILED_MS);
}

static void
start_request(struct token_reviews *tr, struct review *r, const char *token)
{
    char *error;

    r->curl = curl_easy_init();
    ovs_assert(r->curl);
    r->body = make_body(token);
    error = api_source_prepare(&tr->source, r->curl, tr->url, take, r, r->why);
    if (error) {
        fail(tr, r, error);
        free(error);
        return;
    }
    curl_easy_setopt(r->curl, CURLOPT_PRIVATE, r);
    curl_easy_setopt(r->curl, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
    curl_easy_setopt(r->curl, CURLOPT_HTTPHEADER, tr->headers);
    curl_easy_setopt(r->curl, CURLOPT_POSTFIELDS, r->body);
    curl_multi_add_handle(tr->multi, r->curl);
}

/* Returns the name of the user of a valid token, or NULL. */
static char *
read_reply(const struct json *json)
{
    const struct json *status = json_get(json, "status", JSON_OBJECT);
    const struct json *user = json_get(status, "user", JSON_OBJECT);
    const struct json *name = json_get(user, "username", JSON_STRING);
    const struct json *all = json_get(status, "audiences", JSON_ARRAY);
    bool valid = false;

    /* A server that knows no audiences would accept tokens for itself. */
    for (size_t i = 0; all && i < all->array.n; i++) {
        const struct json *each = all->array.elems[i];

        valid |= (each->type == JSON_STRING
                  && !strcmp(json_string(each), TOKEN_REVIEW_AUDIENCE));
    }
    return (valid && name && json_get(status, "authenticated", JSON_TRUE)
                ? xstrdup(json_string(name))
                : NULL);
}

static void
finish(struct token_reviews *tr, struct review *r, CURLcode code)
{
    struct json *json;

    if (code != CURLE_OK) {
        fail(tr, r, r->why[0] ? r->why : curl_easy_strerror(code));
        return;
    }
    json = json_from_string(ds_cstr(&r->reply));
    if (!json_get(json, "status", JSON_OBJECT)) {
        fail(tr, r, "the reply is no TokenReview");
    } else {
        r->user = read_reply(json);
        end_request(tr, r, r->user ? TOKEN_VALID : TOKEN_REFUSED,
                    TOKEN_REVIEW_MS);
    }
    json_destroy(json);
}

/* Returns the review of the token with 'hash', or NULL.  Forgets old ones. */
static struct review *
find_review(struct token_reviews *tr, const uint8_t *hash)
{
    struct review *r, *found = NULL;

    LIST_FOR_EACH_SAFE(r, node, &tr->reviews)
    {
        if (r->state != TOKEN_WAITS && time_msec() >= r->until) {
            review_destroy(tr, r);
        } else if (!sodium_memcmp(r->hash, hash, sizeof r->hash)) {
            found = r;
        }
    }
    return found;
}

/* Forgets the oldest review that has ended.  Returns false if no place becomes
 * free. */
static bool
make_room(struct token_reviews *tr)
{
    struct review *r;

    LIST_FOR_EACH_REVERSE(r, node, &tr->reviews)
    {
        if (r->state != TOKEN_WAITS) {
            review_destroy(tr, r);
            return true;
        }
    }
    return false;
}

enum token_state
token_reviews_request(struct token_reviews *tr, const char *token,
                      const char **user)
{
    uint8_t hash[crypto_generichash_BYTES];
    size_t size = strlen(token);
    struct review *r;

    if (!size || size > MAX_TOKEN) {
        return TOKEN_REFUSED;
    }
    crypto_generichash(hash, sizeof hash, (const uint8_t *) token, size,
                       tr->key, sizeof tr->key);
    r = find_review(tr, hash);
    if (!r) {
        if (tr->n >= MAX_REVIEWS && !make_room(tr)) {
            return TOKEN_FAILED;
        }
        r = xzalloc(sizeof *r);
        memcpy(r->hash, hash, sizeof hash);
        ds_init(&r->reply);
        ovs_list_push_front(&tr->reviews, &r->node);
        tr->n++;
        start_request(tr, r, token);
    }
    *user = r->user;
    return r->state;
}

bool
token_reviews_run(struct token_reviews *tr)
{
    struct pollfd sockets[MAX_SOCKETS];
    size_t n = tr->n_sockets;
    bool ended;
    CURLMsg *msg;
    int left;

    memcpy(sockets, tr->sockets, n * sizeof *sockets);
    for (size_t i = 0; i < n; i++) {
        curl_multi_socket_action(tr->multi, sockets[i].fd, 0, &left);
    }
    curl_multi_socket_action(tr->multi, CURL_SOCKET_TIMEOUT, 0, &left);
    while ((msg = curl_multi_info_read(tr->multi, &left))) {
        CURLcode code = msg->data.result;
        char *r;

        curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &r);
        finish(tr, ALIGNED_CAST(struct review *, r), code);
    }
    ended = tr->ended;
    tr->ended = false;
    return ended;
}

void
token_reviews_wait(const struct token_reviews *tr)
{
    long ms;

    for (size_t i = 0; i < tr->n_sockets; i++) {
        poll_fd_wait(tr->sockets[i].fd, tr->sockets[i].events);
    }
    if (!curl_multi_timeout(tr->multi, &ms) && ms >= 0) {
        poll_timer_wait(ms);
    }
}
