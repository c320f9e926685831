#include "shared/remote_ids.h"

#include <string.h>

#include <glib.h>

#include "shared/texts.h"

static const char *const heads[] = {"<", "#Ref<", "#Port<"};

/* The number of bytes before the node number if the text begins with an identifier; else 0. */
static size_t head_of(const char *text) {
    for (unsigned i = 0; i < G_N_ELEMENTS(heads); i++) {
        size_t size = strlen(heads[i]);

        if (strncmp(text, heads[i], size) == 0 && g_ascii_isdigit(text[size]))
            return size;
    }
    return 0;
}

static size_t digits(const char *text) {
    return strspn(text, "0123456789");
}

struct key {
    char *to;
    size_t size;
};

static void put(struct key *key, const char *text, size_t size) {
    size = MIN(size, DT_REMOTE_KEY - 1 - key->size);
    memcpy(key->to + key->size, text, size);
    key->size += size;
}

void dt_remote_key(const char *text, char to[DT_REMOTE_KEY]) {
    struct key key = {to, 0};

    while (*text && key.size < DT_REMOTE_KEY - 1) {
        size_t head = head_of(text), number = digits(text + head);
        bool is_quoted = *text == '"' || *text == '\'';
        size_t size = head ? head : is_quoted ? dt_quoted(text) : 1;

        put(&key, text, size);
        text += size;
        /* <<1,2>> is a binary: in an identifier, a dot follows the node number. */
        if (head && text[number] == '.')
            text += number;
    }
    to[key.size] = '\0';
}

bool dt_remote_number(const char *text, uint64_t *number) {
    size_t head = head_of(text);
    char *end;

    if (!head)
        return false;
    *number = g_ascii_strtoull(text + head, &end, 10);
    return *end == '.';
}

char *dt_remote_at_home(const char *identifier) {
    size_t head = head_of(identifier);

    if (!head)
        return NULL;
    return g_strdup_printf("%.*s0%s", (int)head, identifier,
                           identifier + head + digits(identifier + head));
}

char *dt_remote_node(const char *name) {
    size_t size = strlen(name);
    bool is_quoted = size >= 2 && name[0] == '\'' && name[size - 1] == '\'';

    return is_quoted ? g_strndup(name + 1, size - 2) : g_strdup(name);
}

bool dt_remote_name(const char *text, char **name, char **node) {
    const char *comma, *end = text + strlen(text);
    char *quoted_node;

    if (!dt_skip(&text, "{") || end[-1] != '}' || *text == '<' || *text == '#' || *text == '{')
        return false;
    comma = text + (*text == '\'' ? dt_quoted(text) : strcspn(text, ","));
    if (*comma != ',' || comma == text)
        return false;
    *name = g_strndup(text, (size_t)(comma - text));
    quoted_node = g_strndup(comma + 1, (size_t)(end - 1 - (comma + 1)));
    *node = dt_remote_node(quoted_node);
    g_free(quoted_node);
    return true;
}
