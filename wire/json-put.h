/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JSON_PUT_H
#define JSON_PUT_H 1

/* Adds members of a type to a JSON object of libopenvswitch; strings are added
 * by its json_object_put_string(). */

#include "openvswitch/json.h"

static inline void
json_put_integer(struct json *object, const char *name, long long value)
{
    json_object_put(object, name, json_integer_create(value));
}

static inline void
json_put_real(struct json *object, const char *name, double value)
{
    json_object_put(object, name, json_real_create(value));
}

static inline void
json_put_boolean(struct json *object, const char *name, bool value)
{
    json_object_put(object, name, json_boolean_create(value));
}

#endif /* wire/json-put.h */
