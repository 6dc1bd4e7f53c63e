/* SPDX-License-Identifier: Apache-2.0 */

#ifndef STAGE_NAME_H
#define STAGE_NAME_H 1

/* "COJOB:RUNG", by which people name a stage to a cluster manager.
 *
 *
 * Motivation
 * ==========
 *
 * A person gives it to srun, or writes it into a pod's annotation ("/" in
 * place of ":").  What is misspelt must be refused where the person sees it,
 * so the message says what is allowed.
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
    int rung;                   /* -1 if it is not told: "asha7". */
};

/* Returns NULL or a malloc()'d message, in which case '*stage' is as it
 * was. */
char *stage_name_parse(const char *place, const char *text, char separator,
                       struct stage_name *stage);

#endif /* agent/launch/stage-name.h */
