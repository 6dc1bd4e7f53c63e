/* SPDX-License-Identifier: Apache-2.0 */

#ifndef TOKEN_REVIEW_H
#define TOKEN_REVIEW_H 1

/* The user of a token of Kubernetes that a request carries.
 *
 * A pod has no certificate of ours, but it can have a token of its service
 * account for the audience "stagecoach".  Only the API server knows whether
 * such a token is valid, and its user: it is requested by a TokenReview, at
 * most once in TOKEN_REVIEW_MS for each token.  So a token that has been
 * revoked counts for that long.
 *
 * The API server can be slow or unreachable, and the controller does not wait
 * for it: a request waits, and without a reply in time the token is refused.
 *
 *    tokens = token_reviews_create("https://kubernetes.default.svc", folder);
 *
 *    state = token_reviews_request(tokens, token, &user);
 *    if (state == TOKEN_WAITS) {
 *        ...request again after token_reviews_run() has returned true...
 *    }
 *    token_reviews_wait(tokens);
 *    token_reviews_destroy(tokens);
 *
 * Tokens are in no log, and in memory only until their review ends: what was
 * found is kept under a hash of the token with a random key.  Main thread
 * only. */

#include <stdbool.h>

#define TOKEN_REVIEW_AUDIENCE "stagecoach"
#define TOKEN_REVIEW_MS 60000

/* Where a pod has the token for its own requests, and the authority. */
#define TOKEN_REVIEW_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

enum token_state {
    TOKEN_WAITS, /* For the API server. */
    TOKEN_VALID,
    TOKEN_REFUSED, /* It is not valid, or for another audience. */
    TOKEN_FAILED,  /* The API server has not replied. */
};

struct token_reviews;

/* Returns NULL if 'server' is an address of an API server, "https://HOST" or
 * "unix:PATH", otherwise a message that the caller frees. */
char *token_reviews_check(const char *server);

/* 'folder' has the files "token" and "ca.crt" for https. */
struct token_reviews *token_reviews_create(const char *server,
                                           const char *folder);
void token_reviews_destroy(struct token_reviews *);

/* Stores the name of a valid token's user in '*user', until the next call. */
enum token_state token_reviews_request(struct token_reviews *,
                                       const char *token, const char **user);

/* Returns true if reviews have ended. */
bool token_reviews_run(struct token_reviews *);
void token_reviews_wait(const struct token_reviews *);

#endif /* controller/northbound/rest/token-review.h */
