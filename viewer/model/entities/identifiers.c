#include "model/entities/identifiers.h"

#include <string.h>

/* Parses a number of at most `bits` bits and moves past it. */
static bool number(const char **text, unsigned bits, uint64_t *n) {
    const char *s = *text;

    *n = 0;
    while (*s >= '0' && *s <= '9' && *n >> bits == 0)
        *n = *n * 10 + (uint64_t)(*s++ - '0');
    if (s == *text || *n >> bits)
        return false;
    *text = s;
    return true;
}

bool dt_is_identifier(const char *text) {
    return *text == '<' || g_str_has_prefix(text, "#Port<");
}

bool dt_is_no_receiver(const char *text) {
    /* A pid with all bits set: 28 bits, or 60 in later releases. */
    return strcmp(text, "<0.32767.8191>") == 0 || strcmp(text, "<0.268435455.4294967295>") == 0;
}

bool dt_key_of(const char *text, struct key *key, enum dt_kind *kind) {
    bool is_port = *text == '#';
    uint64_t node, id, serial = 0;

    if (!dt_is_identifier(text) || dt_is_no_receiver(text))
        return false;
    text += is_port ? sizeof "#Port<" - 1 : 1;
    if (!number(&text, 32, &node) || *text++ != '.' || !number(&text, is_port ? 60 : 32, &id))
        return false;
    if (!is_port && (*text++ != '.' || !number(&text, 32, &serial)))
        return false;
    if (strcmp(text, ">") != 0)
        return false;
    *key = (struct key){node << 1 | is_port, id ^ serial << 32};
    *kind = node ? DT_FOREIGN : is_port ? DT_PORT : DT_PROCESS;
    return true;
}

unsigned dt_key_hash(const void *key) {
    const struct key *k = key;
    uint64_t h = (k->number ^ k->kind_and_node << 40) * UINT64_C(0x9e3779b97f4a7c15);

    return (unsigned)(h >> 32);
}

gboolean dt_key_equal(const void *a, const void *b) {
    const struct key *x = a, *y = b;

    return x->number == y->number && x->kind_and_node == y->kind_and_node;
}
