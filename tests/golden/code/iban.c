/* Checks account numbers before money moves. */
#ifndef IBAN_C
#define IBAN_C

#include <ctype.h>
#include <string.h>
#include "iban.h"

#define IBAN_MAX 34
#define IS_DIGIT(c) ((c) >= '0' && (c) <= '9')

typedef enum { IBAN_OK = 0, IBAN_TOO_SHORT, IBAN_BAD_CHECKSUM } iban_status;

/* One country's rule. */
struct country_rule {
    char code[3];
    unsigned length;
};

typedef struct account {
    char iban[IBAN_MAX + 1];
    struct account *next;
    int (*validate)(const char *);
} account_t;

static const struct country_rule RULES[] = {
    {"DE", 22},
    {"FR", 27},
};

static int checksum(const char *iban, size_t length);

/**
 * Says whether an IBAN is well formed.
 */
iban_status iban_check(const char *iban, unsigned flags)
{
    size_t length = strlen(iban);
    if (length < 15)
        return IBAN_TOO_SHORT;
    return checksum(iban, length) == 1 ? IBAN_OK : IBAN_BAD_CHECKSUM;
}

static inline const struct country_rule *find_rule(const char code[2])
{
    for (size_t i = 0; i < sizeof RULES / sizeof *RULES; i++) {
        if (!strncmp(RULES[i].code, code, 2))
            return &RULES[i];
    }
    return NULL;
}

#ifdef IBAN_TRACE
void iban_trace(const char *format, ...);
#else
static void iban_trace(void) {}
#endif

static int checksum(const char *iban, size_t length)
{
    unsigned rest = 0;
    for (size_t i = 0; i < length; i++) {
        char c = iban[(i + 4) % length];
        rest = IS_DIGIT(c) ? rest * 10 + (unsigned)(c - '0') : rest * 100 + (unsigned)(toupper(c) - 'A' + 10);
        rest %= 97;
    }
    return (int)rest;
}

#endif /* IBAN_C */
