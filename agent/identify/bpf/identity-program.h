/* SPDX-License-Identifier: Apache-2.0 */

#ifndef IDENTITY_PROGRAM_H
#define IDENTITY_PROGRAM_H 1

/* The object file of identity.bpf.c, made by the build. */

#include <stddef.h>

extern const unsigned char identity_program[];
extern const size_t identity_program_size;

#endif /* agent/identify/bpf/identity-program.h */
