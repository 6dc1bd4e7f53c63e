/* SPDX-License-Identifier: Apache-2.0 */

#ifndef REST_ANSWER_H
#define REST_ANSWER_H 1

/* What a request is answered: JSON, or plain text.
 *
 * An error is {"error": "PLACE: WHAT, what is allowed"} with a 4xx or 5xx.
 * The JSON or text belongs to the answer until rest_answer_send(), which takes
 * all of it.  Main thread only. */

#include <microhttpd.h>
#include <stdbool.h>

#include "compiler.h"

struct json;

struct rest_answer {
    unsigned int status;        /* HTTP's, 0: there is no answer yet. */
    struct json *json;          /* Or NULL. */
    char *text;                 /* Or NULL. */
    const char *type;           /* Of 'text'. */
    const char *allow;          /* Methods of the path, of a 405. */
};

struct rest_answer rest_answer_json(struct json *);
struct rest_answer rest_answer_text(const char *type, char *text);
struct rest_answer rest_answer_error(unsigned int status, const char *format,
                                     ...) OVS_PRINTF_FORMAT(2, 3);
struct rest_answer rest_answer_message(unsigned int status, char *message);

enum MHD_Result rest_answer_send(struct MHD_Connection *,
                                 struct rest_answer *);
void rest_answer_uninit(struct rest_answer *);

#endif /* controller/northbound/rest/rest-answer.h */
