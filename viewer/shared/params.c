#include "shared/params.h"

#include <string.h>

#include "shared/file.h"

static bool read_word(const char *const *words, const char *text, unsigned *number) {
    for (*number = 0; words[*number]; ++*number)
        if (strcmp(text, words[*number]) == 0)
            return true;
    return false;
}

static bool read_flag(const char *text, bool *is) {
    static const char *const words[] = {"no", "yes", "false", "true", "0", "1", NULL};
    unsigned number;

    if (!read_word(words, text, &number))
        return false;
    *is = number % 2;
    return true;
}

/* Rejects a folder here: otherwise the error would come only from the rename at the end. */
static bool read_file(const char *path, const char **file) {
    *file = path;
    return *path && !g_file_test(path, G_FILE_TEST_IS_DIR);
}

static void read_standard(const struct dt_param *param, union dt_value *value) {
    switch (param->type) {
    case DT_STRING:
    case DT_FILE:
        value->string = param->standard;
        break;
    case DT_WORD:
        read_word(param->words, param->standard, &value->word);
        break;
    case DT_INTEGER:
        value->integer = g_ascii_strtoll(param->standard, NULL, 10);
        break;
    case DT_BOOL:
        read_flag(param->standard, &value->is);
        break;
    }
}

static bool integer(const bt_value *given, int64_t *value) {
    if (bt_value_is_signed_integer(given))
        *value = bt_value_integer_signed_get(given);
    else if (bt_value_is_unsigned_integer(given) &&
             bt_value_integer_unsigned_get(given) <= INT64_MAX)
        *value = (int64_t)bt_value_integer_unsigned_get(given);
    else
        return false;
    return true;
}

static bool boolean(const bt_value *given, bool *value) {
    int64_t n;

    if (bt_value_is_bool(given)) {
        *value = bt_value_bool_get(given);
        return true;
    }
    if (integer(given, &n)) {
        *value = n == 1;
        return n == 0 || n == 1;
    }
    return bt_value_is_string(given) && read_flag(bt_value_string_get(given), value);
}

static bool read_given(const struct dt_param *param, const bt_value *given, union dt_value *value) {
    switch (param->type) {
    case DT_STRING:
        if (!bt_value_is_string(given))
            return false;
        value->string = bt_value_string_get(given);
        return true;
    case DT_FILE:
        return bt_value_is_string(given) && read_file(bt_value_string_get(given), &value->string);
    case DT_WORD:
        return bt_value_is_string(given) &&
               read_word(param->words, bt_value_string_get(given), &value->word);
    case DT_INTEGER:
        return integer(given, &value->integer) && value->integer >= param->least &&
               value->integer <= param->most;
    case DT_BOOL:
        return boolean(given, &value->is);
    }
    return false;
}

/* The allowed values of a parameter: "an integer from 1 to 200". */
static char *expected(const struct dt_param *param) {
    switch (param->type) {
    case DT_FILE:
        return g_strdup("a file's path, not empty and not a folder's");
    case DT_WORD: {
        char *words = g_strjoinv(", ", (char **)param->words);
        char *text = g_strconcat("one of ", words, NULL);

        g_free(words);
        return text;
    }
    case DT_INTEGER:
        return g_strdup_printf("an integer from %" PRId64 " to %" PRId64, param->least,
                               param->most);
    case DT_BOOL:
        return g_strdup("a boolean");
    default:
        return g_strdup("a string");
    }
}

struct unknown {
    const struct dt_param *tables[2];
    const char *name;
};

static bool has(const struct dt_param *table, const char *name) {
    for (const struct dt_param *p = table; p && p->name; p++)
        if (strcmp(p->name, name) == 0)
            return true;
    return false;
}

static bt_value_map_foreach_entry_const_func_status is_known(const char *name,
                                                             const bt_value *value, void *data) {
    struct unknown *unknown = data;

    (void)value;
    if (has(unknown->tables[0], name) || has(unknown->tables[1], name))
        return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_OK;
    unknown->name = name;
    return BT_VALUE_MAP_FOREACH_ENTRY_CONST_FUNC_STATUS_INTERRUPT;
}

static bool read_one(const struct dt_param *p, const bt_value *map, union dt_value *value,
                     GError **error) {
    const bt_value *given = bt_value_map_borrow_entry_value_const(map, p->name);
    char *what;

    if (!given && p->standard) {
        read_standard(p, value);
        return true;
    }
    if (given && read_given(p, given, value))
        return true;
    what = expected(p);
    g_set_error(error, DT_ERROR, 0, "parameter %s %s %s", p->name,
                given ? "has to be" : "is missing:", given ? what : p->meaning);
    g_free(what);
    return false;
}

union dt_value *dt_params_read(const struct dt_param *table, const struct dt_param *also,
                               const bt_value *given, GError **error) {
    struct unknown unknown = {{table, also}, NULL};
    union dt_value *values;
    unsigned count = 0;

    bt_value_map_foreach_entry_const(given, is_known, &unknown);
    if (unknown.name) {
        g_set_error(error, DT_ERROR, 0, "unknown parameter %s", unknown.name);
        return NULL;
    }
    while (table && table[count].name)
        count++;
    values = g_new0(union dt_value, count + 1);
    for (unsigned i = 0; i < count; i++)
        if (!read_one(&table[i], given, &values[i], error)) {
            g_free(values);
            return NULL;
        }
    return values;
}

static void put_help(GString *help, const struct dt_param *table) {
    for (const struct dt_param *p = table; p && p->name; p++) {
        char *what = expected(p);

        g_string_append_printf(help, "\n  %s (%s", p->name, what);
        if (p->standard)
            g_string_append_printf(help, ", \"%s\" if it is not given", p->standard);
        g_string_append_printf(help, ")\n      %s\n", p->meaning);
        g_free(what);
    }
}

char *dt_params_help(const struct dt_param *table, const struct dt_param *also) {
    GString *help = g_string_new("Parameters:\n");

    put_help(help, table);
    put_help(help, also);
    return g_string_free(help, false);
}
