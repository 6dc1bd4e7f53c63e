/* SPDX-License-Identifier: Apache-2.0 */

#include "base/options.h"

#include <assert.h>
#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define EXIT_USAGE 2

/* Values that getopt_long() returns for the options of the table. */
#define HELP 'h'
#define VERSION 'V'
#define FIRST_ROW 0x10000

/* Column at which --help prints the descriptions, and width of its lines. */
#define HELP_COLUMN 24
#define HELP_WIDTH 79

struct names {
    struct option options[2 * OPTION_MAX_ROWS];
    size_t n;
    char letters[2 * OPTION_MAX_ROWS];
};

static bool
has_value(const struct option_row *row)
{
    return row->kind != OPTION_FLAG && row->value;
}

static bool
in_modes(const struct option_row *row, unsigned int modes)
{
    return !row->modes || !modes || row->modes & modes;
}

static void
add_letter(struct names *names, char letter, int has_arg)
{
    size_t n = strlen(names->letters);

    names->letters[n++] = letter;
    memset(&names->letters[n], ':', has_arg);   /* "::" if it is optional. */
}

static void
add_name(struct names *names, const char *name, int has_arg, int val)
{
    assert(names->n + 1 < sizeof names->options / sizeof *names->options);
    names->options[names->n++] =
        (struct option){ .name = name, .has_arg = has_arg, .val = val };
}

/* Adds the rows that are in the modes of 'table', or those that are not.  The
 * first of equal names counts. */
static void
add_rows(struct names *names, const struct option_table *table, bool in)
{
    for (int i = 0; table->rows[i].name; i++) {
        const struct option_row *row = &table->rows[i];
        int has_arg = has_value(row) ? required_argument : no_argument;

        assert(i < OPTION_MAX_ROWS);
        if (in_modes(row, table->modes) == in) {
            add_name(names, row->name, has_arg, FIRST_ROW + i);
            if (row->letter) {
                add_letter(names, row->letter, has_arg);
            }
        }
    }
}

static void
collect_names(const struct option_table *table, struct names *names)
{
    bool in_order = table->in_order || !table->max_operands;

    memset(names, 0, sizeof *names);
    strcpy(names->letters, in_order ? "+:" : ":");
    add_rows(names, table, true);
    add_rows(names, table, false);
    for (const struct option *o = table->others; o && o->name; o++) {
        add_name(names, o->name, o->has_arg, o->val);
        if (o->val <= UCHAR_MAX) {
            add_letter(names, o->val, o->has_arg);
        }
    }
    add_name(names, "help", no_argument, HELP);
    add_letter(names, HELP, no_argument);
    if (table->version) {
        add_name(names, "version", no_argument, VERSION);
        add_letter(names, VERSION, no_argument);
    }
}

static char *
store_number(const struct option_row *row, const char *text, void *to)
{
    bool integer = row->kind == OPTION_INTEGER;
    char *end;
    double x = strtod(text, &end);

    if (end == text || *end || text[strspn(text, "0123456789+-.eE")]
        || !isfinite(x) || x < row->min || x > row->max
        || (integer && x != floor(x))) {
        return message(integer ? "\"%s\" is not an integer from %.16g to %.16g"
                               : "\"%s\" is not a number from %.10g to %.10g",
                       text, row->min, row->max);
    }
    if (!integer) {
        *(double *) to = x;
    } else if (row->size == 8) {
        *(int64_t *) to = x;
    } else if (row->size == 4) {
        *(uint32_t *) to = (int64_t) x;
    } else if (row->size == 2) {
        *(uint16_t *) to = (int64_t) x;
    } else {
        *(uint8_t *) to = (int64_t) x;
    }
    return NULL;
}

/* Returns "'text' is not one of" and the words in 'row->value', or NULL and
 * the index of 'text' among them. */
static char *
find_word(const struct option_row *row, const char *text, int *index)
{
    char *error = message("\"%s\" is not one of", text);
    const char *word = row->value;

    for (*index = 0;; ++*index) {
        int length = strcspn(word, "|");
        char *longer = message("%s%s \"%.*s\"", error, *index ? "," : "",
                               length, word);
        bool same = strlen(text) == length && !memcmp(word, text, length);

        free(error);
        error = longer;
        if (same) {
            free(error);
            return NULL;
        }
        if (!word[length]) {
            return error;
        }
        word += length + 1;
    }
}

static char *
store_word(const struct option_row *row, const char *text, void *to)
{
    int index;
    char *error = find_word(row, text, &index);

    if (error) {
        return error;
    }
    if (row->kind == OPTION_WORD) {
        *(const char **) to = text;
    } else if (row->size == sizeof(int)) {
        *(int *) to = index;
    } else {
        assert(row->size == 1);
        *(uint8_t *) to = index;
    }
    return NULL;
}

static char *
store_value(const struct option_row *row, const char *text, void *to)
{
    void *member = (char *) to + row->offset;

    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *) member = true;
        return NULL;
    case OPTION_TEXT:
        *(const char **) member = text;
        return *text ? NULL : message("\"\" is not %s", row->value);
    case OPTION_COPY:
        free(*(char **) member);
        *(char **) member = duplicate(text);
        return NULL;
    case OPTION_WORD:
    case OPTION_CHOICE:
        return store_word(row, text, member);
    case OPTION_INTEGER:
    case OPTION_REAL:
        return store_number(row, text, member);
    case OPTION_CUSTOM:
        return row->parse(text, member);
    }
    return NULL;
}

/* Returns "--NAME: WHY" and frees 'why'. */
static char *
name_error(const struct option_row *row, char *why)
{
    char *error = message("--%s: %s", row->name, why);

    free(why);
    return error;
}

static char *
parse_row(const struct option_table *table, int i, const char *command,
          void *to, struct option_outcome *outcome)
{
    const struct option_row *row = &table->rows[i];
    char *error;

    if (!in_modes(row, table->modes)) {
        return message("--%s: not an option of \"%s\"", row->name, command);
    }
    outcome->seen[i] = true;
    outcome->text[i] = optarg;
    error = store_value(row, optarg, to);
    return error ? name_error(row, error) : NULL;
}

/* Returns the index of the row with the letter 'val', or -1. */
static int
find_letter(const struct option_table *table, int val)
{
    for (int i = 0; table->rows[i].name; i++) {
        if (table->rows[i].letter == val) {
            return i;
        }
    }
    return -1;
}

/* Returns a message about the option that getopt_long() refused with 'c'. */
static char *
refuse_option(const struct option_table *table, int c, const char *word)
{
    int length = strcspn(word, "=");

    if (c == ':') {
        int i = optopt >= FIRST_ROW ? optopt - FIRST_ROW
                                    : find_letter(table, optopt);

        return i >= 0 ? message("--%s: needs a value, %s",
                                table->rows[i].name, table->rows[i].value)
                      : message("%s: needs a value", word);
    }
    if (word[length] && optopt) {
        return message("%.*s: \"%s\" is too much, it takes no value", length,
                       word, word + length + 1);
    }
    return strncmp(word, "--", 2) && optopt
           ? message("-%c: unknown option, --help lists them", optopt)
           : message("%.*s: unknown option, --help lists them", length, word);
}

static char *
parse_option(const struct option_table *table, int c, char *argv[], void *to,
             struct option_outcome *outcome)
{
    int letter = find_letter(table, c);

    if (c >= FIRST_ROW || (letter >= 0 && c)) {
        return parse_row(table, c >= FIRST_ROW ? c - FIRST_ROW : letter,
                         argv[0], to, outcome);
    }
    if (c == HELP) {
        outcome->help = true;
    } else if (c == VERSION && table->version) {
        outcome->version = true;
    } else if (c == '?' || c == ':') {
        return refuse_option(table, c, argv[optind - 1]);
    } else {
        table->parse_other(c, optarg);
    }
    return NULL;
}

static char *
set_defaults(const struct option_table *table, void *to)
{
    for (const struct option_row *row = table->rows; row->name; row++) {
        if (row->deflt) {
            char *error = store_value(row, row->deflt, to);

            if (error) {
                return name_error(row, error);
            }
        }
    }
    return NULL;
}

/* Checks what is missing and what is too much. */
static char *
check_complete(const struct option_table *table, int argc, char *argv[],
               const struct option_outcome *outcome)
{
    int n = argc - outcome->operand;

    for (int i = 0; table->rows[i].name; i++) {
        const struct option_row *row = &table->rows[i];

        if (row->required && !outcome->seen[i]
            && in_modes(row, table->modes)) {
            return message("--%s: required option is missing", row->name);
        }
    }
    if (n < table->min_operands) {
        return message("%s: required argument is missing", table->operand);
    }
    if (table->max_operands >= 0 && n > table->max_operands) {
        return message("\"%s\": unexpected argument%s",
                       argv[outcome->operand + table->max_operands],
                       table->max_operands ? "" : ", there are only options");
    }
    return NULL;
}

char *
option_table_parse(const struct option_table *table, int argc, char *argv[],
                   void *to, struct option_outcome *outcome)
{
    struct names names;
    char *error;
    int c;

    memset(outcome, 0, sizeof *outcome);
    collect_names(table, &names);
    error = set_defaults(table, to);
    optind = 0;
    opterr = 0;
    while (!error && !outcome->help && !outcome->version
           && (c = getopt_long(argc, argv, names.letters, names.options,
                               NULL)) != -1) {
        error = parse_option(table, c, argv, to, outcome);
    }
    outcome->operand = optind;
    return error || outcome->help || outcome->version
           ? error : check_complete(table, argc, argv, outcome);
}

/* Prints 'text' with its lines wrapped and indented to HELP_COLUMN. */
static void
print_wrapped(FILE *stream, const char *text)
{
    int column = HELP_COLUMN;

    while (*text) {
        int length = strcspn(text, " ");

        if (column > HELP_COLUMN && column + 1 + length > HELP_WIDTH) {
            fprintf(stream, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            putc(' ', stream);
            column++;
        }
        fprintf(stream, "%.*s", length, text);
        column += length;
        text += length;
        text += strspn(text, " ");
    }
    putc('\n', stream);
}

/* Returns the help of 'row' with its range and default in parentheses. */
static char *
describe_row(const struct option_row *row)
{
    const char *deflt = row->shown ? row->shown : row->deflt;
    bool number = row->kind == OPTION_INTEGER || row->kind == OPTION_REAL;
    char *range = !number || row->max <= row->min ? duplicate("")
                  : row->max >= 1e9 ? message("at least %.10g", row->min)
                  : message("%.10g to %.10g", row->min, row->max);
    char *facts = message("%s%s%s%s%s%s%s", range,
                          *range && deflt ? ", " : "",
                          deflt ? "default " : "", deflt ? deflt : "",
                          row->required ? "required" : "",
                          (*range || deflt || row->required) && row->repeated
                          ? ", " : "",
                          row->repeated ? "may be repeated" : "");
    char *text = message(*facts ? "%s (%s)" : "%s", row->help, facts);

    free(range);
    free(facts);
    return text;
}

static void
print_row(const char *left, const char *text, FILE *stream)
{
    int column = fprintf(stream, "  %s", left);

    if (column > HELP_COLUMN - 2) {
        putc('\n', stream);
        column = 0;
    }
    fprintf(stream, "%*s", HELP_COLUMN - column, "");
    print_wrapped(stream, text);
}

/* Prints the options that 'table->modes' has, and a heading before the first
 * of each subject.  Returns true if it printed a heading. */
static bool
print_rows(const struct option_table *table, FILE *stream)
{
    const char *subject = NULL;
    bool headed = false;

    for (const struct option_row *row = table->rows; row->name; row++) {
        char letter[] = { '-', row->letter, ',', ' ', '\0' };
        char *left, *text;

        subject = row->subject ? row->subject : subject;
        if (!in_modes(row, table->modes)) {
            continue;
        }
        if (subject) {
            fprintf(stream, "%s%s:\n", headed ? "\n" : "", subject);
            subject = NULL;
            headed = true;
        }
        left = message("%s--%s%s%s", row->letter ? letter : "", row->name,
                       has_value(row) ? " " : "",
                       has_value(row) ? row->value : "");
        text = describe_row(row);
        print_row(left, text, stream);
        free(left);
        free(text);
    }
    return headed;
}

void
option_table_help(const struct option_table *table, FILE *stream)
{
    fprintf(stream, "%s\n", table->usage);
    if (print_rows(table, stream)) {
        putc('\n', stream);
    }
    print_row("-h, --help", "print this help", stream);
    if (table->version) {
        print_row("-V, --version", "print the version", stream);
    }
    if (table->footer) {
        fprintf(stream, "\n%s", table->footer);
    }
}

int
option_table_command(const struct option_table *table, int argc, char *argv[],
                     void *to, int *operand)
{
    struct option_outcome outcome;
    char *error = option_table_parse(table, argc, argv, to, &outcome);

    if (error) {
        fprintf(stderr, "%s: %s\n", table->name, error);
        free(error);
        return EXIT_USAGE;
    }
    if (outcome.help) {
        option_table_help(table, stdout);
        return EXIT_SUCCESS;
    }
    if (outcome.version) {
        puts(table->version);
        return EXIT_SUCCESS;
    }
    if (operand) {
        *operand = outcome.operand;
    }
    return -1;
}
