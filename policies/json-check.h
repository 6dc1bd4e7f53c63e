/* SPDX-License-Identifier: Apache-2.0 */

#ifndef JSON_CHECK_H
#define JSON_CHECK_H 1

/* Reads JSON that a person wrote, and says what is wrong with it.
 *
 *
 * Motivation
 * ==========
 *
 * Policies, scenarios and searches are written by hand.  A misspelt member
 * that is silently ignored costs an operator a day, so every member must be
 * asked for by name, and what nobody asked for is an error.  All messages have
 * one form, "FILE: /json/pointer: what was found, what is allowed".
 *
 *
 * Usage
 * =====
 *
 * The reader asks for members one after the other without looking at errors,
 * which stick: after the first, every call returns a harmless default.
 *
 *    struct json_check *jc = json_check_open(name, text);
 *    const struct json_at *top = json_check_top(jc);
 *    policy->name = json_string(top, "name", NULL);       // Required.
 *    policy->lease = json_integer(top, "lease_ms", JSON_OPTIONAL(10000),
 *                                 100, 600000);
 *    JSON_FOR_EACH_ELEMENT (at, json_array(top, "levels", 1, 8)) {
 *        ...
 *    }
 *    error = json_check_close(jc);       // First error, or unknown member.
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * A 'struct json_at' is a place in the text and lives until
 * json_check_close().  Strings returned are copies that the caller frees.
 * Not thread-safe per json_check; independent ones are. */

/* (The helper who fills this in fixes the exact prototypes below.) */

#endif /* policies/json-check.h */
