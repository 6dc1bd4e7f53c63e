/* SPDX-License-Identifier: Apache-2.0 */

#include "trainer/net/token.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/memory.h"
#include "base/text-file.h"

/* Of this process; zeros if it has none. */
static uint8_t own[TOKEN_LENGTH];

char *
token_create(void)
{
    uint8_t bytes[TOKEN_LENGTH];
    char text[2 * TOKEN_LENGTH + 1];

    while (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) {
        continue;               /* A signal has come first. */
    }
    for (int i = 0; i < TOKEN_LENGTH; i++) {
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    }
    return duplicate(text);
}

/* Stores the first word of 'file' in 'text', 'size' characters. */
static char *
read_word(const char *file, char *text, size_t size)
{
    FILE *stream = text_file_open(file);

    if (!stream) {
        return message("--token-file: %s: %s", file, strerror(errno));
    }
    if (!fgets(text, size, stream)) {
        *text = '\0';
    }
    fclose(stream);
    text[strcspn(text, " \t\r\n")] = '\0';
    return NULL;
}

static bool
parse(const char *text, uint8_t to[TOKEN_LENGTH])
{
    if (strlen(text) != 2 * TOKEN_LENGTH
        || strspn(text, "0123456789abcdefABCDEF") != 2 * TOKEN_LENGTH) {
        return false;
    }
    for (int i = 0; i < TOKEN_LENGTH; i++) {
        char digits[3] = { text[2 * i], text[2 * i + 1], '\0' };

        to[i] = strtoul(digits, NULL, 16);
    }
    return true;
}

char *
token_load(const char *file)
{
    const char *variable = getenv(TOKEN_VARIABLE);
    char word[2 * TOKEN_LENGTH + 3];
    char *error;

    memset(own, 0, sizeof own);
    if (!file && (!variable || !*variable)) {
        return NULL;
    }
    error = file ? read_word(file, word, sizeof word) : NULL;
    if (!error && !parse(file ? word : variable, own)) {
        error =
            message("%s: not a token; expected %d hexadecimal digits",
                    file ? "--token-file" : TOKEN_VARIABLE, 2 * TOKEN_LENGTH);
    }
    return error;
}

void
token_put(uint8_t to[TOKEN_LENGTH])
{
    memcpy(to, own, TOKEN_LENGTH);
}

bool
token_is_right(const uint8_t theirs[TOKEN_LENGTH])
{
    volatile uint8_t difference = 0;

    for (int i = 0; i < TOKEN_LENGTH; i++) {
        difference |= own[i] ^ theirs[i];
    }
    return !difference;
}
