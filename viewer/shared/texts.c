#include "shared/texts.h"

#include <string.h>

#include <glib.h>

bool dt_set(char **to, const char *text) {
    if (g_strcmp0(*to, text) == 0)
        return false;
    g_free(*to);
    *to = g_strdup(text);
    return true;
}

bool dt_skip(const char **text, const char *head) {
    size_t size = strlen(head);

    if (strncmp(*text, head, size) != 0)
        return false;
    *text += size;
    return true;
}

bool dt_take(const char **text, const char *head, char *to, size_t room) {
    const char *rest = *text, *end;
    size_t size;

    if (!dt_skip(&rest, head) || !(end = strchr(rest, '>')))
        return false;
    size = (size_t)(end + 1 - *text);
    if (size >= room)
        return false;
    memcpy(to, *text, size);
    to[size] = '\0';
    *text += size;
    return true;
}

size_t dt_quoted(const char *text) {
    size_t size = 1;

    while (text[size] && text[size] != text[0])
        size += text[size] == '\\' && text[size + 1] ? 2 : 1;
    return text[size] ? size + 1 : size;
}

size_t dt_head(const char *text, size_t most) {
    size_t size = strnlen(text, most + 1);

    if (size <= most)
        return size;
    for (size = most; size > 0 && ((unsigned char)text[size] & 0xc0) == 0x80;)
        size--;
    return size;
}

char *dt_cut(const char *text, size_t most, const char *mark) {
    size_t size;

    if (!text)
        return g_strdup("");
    size = dt_head(text, most);
    return g_strdup_printf("%.*s%s", (int)size, text, text[size] ? mark : "");
}
