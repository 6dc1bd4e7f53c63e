/* SPDX-License-Identifier: Apache-2.0 */

#include <config.h>

#include "controller/northbound/rest/rest-message.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "openvswitch/json.h"
#include "util.h"

/* Returns true if 'path' matches 'pattern', in which a segment "{...}" matches
 * any segment of 1 to REST_MAX_ARG - 1 bytes, and stores these segments in
 * 'args'.  Otherwise 'args' is undefined. */
bool
rest_path_match(const char *pattern, const char *path,
                char args[REST_MAX_ARGS][REST_MAX_ARG])
{
    size_t n = 0;

    for (;;) {
        if (*pattern == '{') {
            size_t size = strcspn(path, "/");

            if (!size || size >= REST_MAX_ARG) {
                return false;
            }
            ovs_assert(n < REST_MAX_ARGS);
            memcpy(args[n], path, size);
            args[n++][size] = '\0';
            path += size;
            pattern += strcspn(pattern, "/");
        } else if (*pattern != *path) {
            return false;
        } else if (!*path) {
            return true;
        } else {
            pattern++;
            path++;
        }
    }
}

/* Returns 'path' truncated to REST_MAX_QUOTE characters and with '?' for each
 * character that is not printable ASCII.  The caller frees. */
char *
rest_path_quote(const char *path)
{
    char *quote = xmemdup0(path, strnlen(path, REST_MAX_QUOTE));

    for (char *p = quote; *p; p++) {
        if (*p <= ' ' || *p > '~') {
            *p = '?';
        }
    }
    return quote;
}

/* Returns the answer 'json'; takes ownership of 'json'. */
struct rest_answer
rest_answer_json(struct json *json)
{
    return (struct rest_answer) { .status = MHD_HTTP_OK, .json = json };
}

/* Returns the answer 'text' of MIME type 'type'; takes ownership of 'text'. */
struct rest_answer
rest_answer_text(const char *type, char *text)
{
    return (struct rest_answer) {
        .status = MHD_HTTP_OK, .text = text, .type = type,
    };
}

/* Returns an error; takes ownership of 'message', "PLACE: WHAT, what is
 * allowed". */
struct rest_answer
rest_answer_message(unsigned int status, char *message)
{
    struct json *json = json_object_create();

    json_object_put(json, "error", json_string_create_nocopy(message));
    return (struct rest_answer) { .status = status, .json = json };
}

struct rest_answer
rest_answer_error(unsigned int status, const char *format, ...)
{
    va_list args;
    char *message;

    va_start(args, format);
    message = xvasprintf(format, args);
    va_end(args);
    return rest_answer_message(status, message);
}

static bool
add_headers(struct MHD_Response *response, const struct rest_answer *answer)
{
    const char *type = answer->json ? "application/json" : answer->type;

    return (MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                    type)
            && MHD_add_response_header(response,
                                       MHD_HTTP_HEADER_CACHE_CONTROL,
                                       "no-store")
            && (!answer->allow
                || MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW,
                                           answer->allow))
            && (answer->status == MHD_HTTP_OK
                || MHD_add_response_header(response,
                                           MHD_HTTP_HEADER_CONNECTION,
                                           "close")));
}

/* Sends and uninitializes 'answer'.  An error closes the connection, because
 * the rest of the request may not have been read. */
enum MHD_Result
rest_answer_send(struct MHD_Connection *mc, struct rest_answer *answer)
{
    enum MHD_Result result = MHD_NO;
    struct MHD_Response *response;
    char *text;

    text = (answer->json ? json_to_string(answer->json, JSSF_SORT)
            : xstrdup(answer->text));
    response = MHD_create_response_from_buffer(strlen(text), text,
                                               MHD_RESPMEM_MUST_FREE);
    if (!response) {
        free(text);
    } else {
        if (add_headers(response, answer)) {
            result = MHD_queue_response(mc, answer->status, response);
        }
        MHD_destroy_response(response);
    }
    rest_answer_uninit(answer);
    return result;
}

void
rest_answer_uninit(struct rest_answer *answer)
{
    json_destroy(answer->json);
    free(answer->text);
    *answer = (struct rest_answer) { .status = 0 };
}
