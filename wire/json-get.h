/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JSON_GET_H
#define JSON_GET_H 1

/* Reads members of JSON of libopenvswitch.  Any value is accepted: what is
 * not an object has no members. */

#include "openvswitch/json.h"
#include "openvswitch/shash.h"

/* Returns member 'name' of 'json', or NULL if it is missing or not of
 * 'type'. */
static inline const struct json *
json_get(const struct json *json, const char *name, enum json_type type)
{
    const struct json *member = (json && json->type == JSON_OBJECT
                                 ? shash_find_data(json_object(json), name)
                                 : NULL);

    return member && member->type == type ? member : NULL;
}

/* Returns member 'name' of 'json', or 0 if it is missing or not a number. */
static inline double
json_get_number(const struct json *json, const char *name)
{
    const struct json *integer = json_get(json, name, JSON_INTEGER);
    const struct json *real = json_get(json, name, JSON_REAL);

    return integer ? integer->integer : real ? real->real : 0;
}

#endif /* wire/json-get.h */
