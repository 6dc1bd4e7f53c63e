/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_STAGE_NAME_H
#define BASE_STAGE_NAME_H 1

/* How people read the name of a stage: "COJOB/RUNG".  All C and CUDA code uses
 * this format (unit test check-stage-names).
 *
 *    printf("stage " STAGE_NAME_FMT " has begun\n", "asha7", 2); */

#define STAGE_NAME_FMT "%s/%d"

#endif /* base/stage-name.h */
