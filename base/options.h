/* SPDX-License-Identifier: Apache-2.0 */

#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H 1

/* Parser for the command lines of all programs, driven by a table.
 *
 * Each option is one row of a table: name, kind and range of its value, where
 * the value is stored, default, help.  Parser, --help and error messages come
 * from the same row, so they agree, and all programs report errors in the same
 * form, "--NAME: WHAT, what is allowed".
 *
 *    static const struct option_row rows[] = {
 *        { "rate", OPTION_REAL, OPTION_AT(struct args, rate), .min = 0,
 *          .max = 1e9, .value = "BPS", .deflt = "1e6",
 *          .help = "send rate in bit/s" },
 *        { "format", OPTION_CHOICE, OPTION_AT(struct args, json),
 *          .value = "table|json", .deflt = "table", .help = "output format" },
 *        { .name = NULL },
 *    };
 *    static const struct option_table table = {
 *        .name = "stagecoach example", .rows = rows,
 *        .usage = "usage: stagecoach example [OPTION...]\n\nDoes little.\n",
 *    };
 *    int status = option_table_command(&table, argc, argv, &args, NULL);
 *
 *    if (status >= 0) {
 *        return status;
 *    }
 *
 * A value is given as "--rate 5" or "--rate=5".  Unique prefixes of names are
 * accepted.  Each table has -h and --help, and -V and --version if it has a
 * version.  A program that handles errors itself calls option_table_parse().
 *
 * Strings are stored as pointers into 'argv', except for OPTION_COPY.  A
 * message belongs to the caller.  Uses getopt_long(): main thread only. */

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define OPTION_MAX_ROWS 96

enum option_kind {
    OPTION_FLAG,                /* No value; sets a bool to true. */
    OPTION_TEXT,                /* const char *, not empty. */
    OPTION_COPY,                /* char *, a malloc()'d copy; the previous
                                 * value is freed. */
    OPTION_WORD,                /* const char *, one of the words in 'value',
                                 * which are separated by '|'. */
    OPTION_CHOICE,              /* Integer or enum: index of the word in
                                 * 'value'. */
    OPTION_INTEGER,             /* Integer of 1, 2, 4 or 8 bytes. */
    OPTION_REAL,                /* double. */
    OPTION_CUSTOM,              /* Stored by 'parse'. */
};

struct option_row {
    const char *name;           /* Without the dashes. */
    enum option_kind kind;
    size_t offset, size;        /* Of the member; see OPTION_AT(). */

    double min, max;            /* Range of a number, inclusive. */
    const char *value;          /* Placeholder of the value in --help. */
    const char *deflt;          /* Default, written as a value; NULL leaves the
                                 * member unchanged. */
    const char *shown;          /* Default as --help shows it, if it is not
                                 * 'deflt'. */
    const char *help;           /* Noun with its unit, or imperative. */

    char letter;                /* Short option, or 0. */
    bool required;
    bool repeated;              /* May be given several times. */
    unsigned int modes;         /* Bits of the modes that have the option; 0
                                 * for all. */
    const char *subject;        /* Heading in --help of this row and of those
                                 * after it; NULL continues the last one. */

    /* Stores 'text' (NULL if the option has no 'value') in the member.
     * Returns NULL or a malloc()'d message without the option's name. */
    char *(*parse)(const char *text, void *member);
};

/* Initializes 'offset' and 'size' of a row. */
#define OPTION_AT(STRUCT, MEMBER) \
    .offset = offsetof(STRUCT, MEMBER), .size = sizeof ((STRUCT *) 0)->MEMBER

struct option;

struct option_table {
    const char *name;           /* Program or command, for messages. */
    const char *version;        /* Printed by --version, or NULL. */
    const char *usage;          /* Printed by --help before the options. */
    const char *footer;         /* Printed by --help after the options, or
                                 * NULL. */
    const struct option_row *rows;      /* Ends with a row without a name. */
    unsigned int modes;         /* Modes of this call; 0 for all rows. */

    const char *operand;        /* Name of the operands, for messages. */
    int min_operands, max_operands;     /* -1 for no maximum. */
    bool in_order;              /* The first operand ends the options. */

    const struct option *others;        /* Options of another library, ending
                                         * with a null element, or NULL. */
    void (*parse_other)(int val, char *argument);
};

struct option_outcome {
    bool help, version;         /* Requested: nothing else was checked. */
    int operand;                /* Index in 'argv' of the first operand. */
    bool seen[OPTION_MAX_ROWS]; /* Rows that were given. */
    const char *text[OPTION_MAX_ROWS];  /* Last value of such a row, NULL for
                                         * a flag. */
};

/* Sets the defaults in 'to' and parses 'argv' from the second element on.
 * Moves operands to its end if the table allows any.  Returns NULL or a
 * malloc()'d message. */
char *option_table_parse(const struct option_table *, int argc, char *argv[],
                         void *to, struct option_outcome *);

/* Prints 'usage', the options and the footer. */
void option_table_help(const struct option_table *, FILE *);

/* Parses like option_table_parse(), and prints errors, help and version.
 * Returns an exit status, or -1 to go on.  Stores the index of the first
 * operand in '*operand' unless that is NULL. */
int option_table_command(const struct option_table *, int argc, char *argv[],
                         void *to, int *operand);

#endif /* base/options.h */
