#include "page/strings.h"

#include "shared/json.h"

struct dt_page_strings {
    GHashTable *numbers; /* text -> number; owns the texts */
    GPtrArray *texts;
    unsigned most;
};

struct dt_page_strings *dt_page_strings_new(unsigned most) {
    struct dt_page_strings *strings = g_new0(struct dt_page_strings, 1);

    strings->numbers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    strings->texts = g_ptr_array_new();
    strings->most = most;
    g_ptr_array_add(strings->texts, (char *)"");
    return strings;
}

void dt_page_strings_free(struct dt_page_strings *strings) {
    if (!strings)
        return;
    g_hash_table_destroy(strings->numbers);
    g_ptr_array_free(strings->texts, true);
    g_free(strings);
}

uint32_t dt_page_strings_number(struct dt_page_strings *strings, const char *text) {
    uint32_t number;
    char *copy;

    if (!text || !*text)
        return 0;
    number = GPOINTER_TO_UINT(g_hash_table_lookup(strings->numbers, text));
    if (number || strings->texts->len > strings->most)
        return number;
    copy = g_strdup(text);
    number = strings->texts->len;
    g_hash_table_insert(strings->numbers, copy, GUINT_TO_POINTER(number));
    g_ptr_array_add(strings->texts, copy);
    return number;
}

const char *dt_page_strings_text(const struct dt_page_strings *strings, uint32_t number) {
    return g_ptr_array_index(strings->texts, number);
}

void dt_page_strings_json(const struct dt_page_strings *strings, GString *to) {
    dt_json_open(to, "strings", '[');
    for (unsigned n = 0; n < strings->texts->len; n++)
        dt_json_text(to, NULL, g_ptr_array_index(strings->texts, n));
    dt_json_close(to, ']');
}
