/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STAGE_NAME_H
#define STAGE_NAME_H 1

/* Names of stages in cluster managers: "COJOB:RUNG".
 *
 *
 * Motivation
 * ==========
 *
 * Users pass them to srun, or write them into the annotation of a pod (with
 * "/" instead of ":").  Mistakes are reported where the user sees them, so the
 * message says what is allowed.
 *
 *
 * Usage
 * =====
 *
 *    error = stage_name_parse("--stagecoach", "asha7:2", ':', &stage);
 *
 *
 * Ownership and thread-safety
 * ===========================
 *
 * Plain C without any library.  Thread-safe. */

#define STAGE_NAME_MAX_RUNG 1000

struct stage_name {
    char cojob[32];
    int rung;                   /* -1 without a rung: "asha7". */
};

/* Returns NULL or a malloc()'d message; then '*stage' is unchanged. */
char *stage_name_parse(const char *place, const char *text, char separator,
                       struct stage_name *stage);

#endif /* agent/launch/stage-name.h */
