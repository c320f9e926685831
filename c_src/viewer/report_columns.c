#include "viewer/report_columns.h"

#include <string.h>

enum { GAP = 2, NARROWEST = 8, GIVEN_WAY = 15 };

struct dt_columns {
    const char *const *names;
    guint n;
    GPtrArray *cells;
};

struct dt_columns *dt_columns_new(const char *const *names) {
    struct dt_columns *columns = g_new0(struct dt_columns, 1);
    columns->names = names;
    while (names[columns->n])
        columns->n++;
    columns->cells = g_ptr_array_new_with_free_func(g_free);
    return columns;
}

/* Control characters, those of C1 among them, move the cursor; marks of direction turn texts. */
static gboolean is_harmless(gunichar c) {
    switch (g_unichar_type(c)) {
    case G_UNICODE_CONTROL:
    case G_UNICODE_FORMAT:
    case G_UNICODE_SURROGATE:
    case G_UNICODE_LINE_SEPARATOR:
    case G_UNICODE_PARAGRAPH_SEPARATOR:
        return FALSE;
    default:
        return TRUE;
    }
}

void dt_columns_escape(GString *to, const char *text) {
    while (*text) {
        gunichar c = g_utf8_get_char_validated(text, -1);
        if (c == (gunichar)-1 || c == (gunichar)-2) {
            g_string_append_printf(to, "\\x%02x", (unsigned char)*text++);
            continue;
        }
        if (is_harmless(c))
            g_string_append_unichar(to, c);
        else if (c == '\n')
            g_string_append(to, "\\n");
        else if (c == '\t')
            g_string_append(to, "\\t");
        else
            g_string_append_printf(to, c < 0x100 ? "\\x%02x" : "\\x{%04x}", c);
        text = g_utf8_next_char(text);
    }
}

void dt_columns_text(struct dt_columns *columns, const char *text) {
    GString *cell = g_string_new(NULL);
    dt_columns_escape(cell, text ? text : "");
    g_ptr_array_add(columns->cells, g_string_free(cell, FALSE));
}

void dt_columns_printf(struct dt_columns *columns, const char *format, ...) {
    va_list args;
    va_start(args, format);
    g_ptr_array_add(columns->cells, g_strdup_vprintf(format, args));
    va_end(args);
}

static gboolean gives_way(const struct dt_columns *columns, guint column) {
    return columns->names[column][0] == '~';
}

static gboolean is_text(const struct dt_columns *columns, guint column) {
    return columns->names[column][0] == '<' || gives_way(columns, column);
}

static const char *name_of(const struct dt_columns *columns, guint column) {
    return columns->names[column] + is_text(columns, column);
}

static glong width_of(const char *text) {
    glong width = 0;
    for (; *text; text = g_utf8_next_char(text)) {
        gunichar c = g_utf8_get_char(text);
        width += g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
    }
    return width;
}

static void put(GString *to, const char *text, glong width, gboolean left) {
    if (width < 0)
        return;
    g_string_append_printf(to, "%*s", GAP, "");
    glong own = width_of(text);
    g_autoptr(GString) cut = g_string_new(text);
    if (own > width) {
        const char *end = text;
        glong room = width - 3;
        while (*end) {
            gunichar c = g_utf8_get_char(end);
            room -= g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
            if (room < 0)
                break;
            end = g_utf8_next_char(end);
        }
        g_string_truncate(cut, (gsize)(end - text));
        g_string_append(cut, "...");
        own = width_of(cut->str);
    }
    if (!left)
        g_string_append_printf(to, "%*s", (int)(width - own), "");
    g_string_append(to, cut->str);
    if (left)
        g_string_append_printf(to, "%*s", (int)(width - own), "");
}

static void drop_empty(const struct dt_columns *columns, glong *widths) {
    g_autofree gboolean *is_used = g_new0(gboolean, columns->n);
    for (guint i = 0; i < columns->cells->len; i++)
        is_used[i % columns->n] |= *(const char *)g_ptr_array_index(columns->cells, i) != '\0';
    for (guint i = 0; i < columns->n; i++)
        if (!is_used[i])
            widths[i] = -1;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): g_autofree frees it */
}

static glong width_of_all(const struct dt_columns *columns, const glong *widths) {
    glong all = 0;
    for (guint i = 0; i < columns->n; i++)
        all += widths[i] < 0 ? 0 : widths[i] + GAP;
    return all;
}

/* The widest text of those that are wider than `least`; columns->n if there is none. */
static guint widest(const struct dt_columns *columns, const glong *widths, gboolean is_way_given,
                    glong least) {
    guint widest = columns->n;
    for (guint i = 0; i < columns->n; i++)
        if (widths[i] > least && is_text(columns, i) && (gives_way(columns, i) || !is_way_given) &&
            (widest == columns->n || widths[i] > widths[widest]))
            widest = i;
    return widest;
}

static void narrow(const struct dt_columns *columns, glong *widths) {
    for (glong over = width_of_all(columns, widths) - DT_COLUMNS; over > 0; over--) {
        guint column = widest(columns, widths, TRUE, GIVEN_WAY);
        if (column == columns->n)
            column = widest(columns, widths, FALSE, NARROWEST);
        if (column == columns->n)
            return;
        widths[column]--;
    }
}

static void end_line(GString *to) {
    while (to->len && to->str[to->len - 1] == ' ')
        g_string_truncate(to, to->len - 1);
    g_string_append_c(to, '\n');
}

void dt_columns_end(struct dt_columns *columns, GString *to) {
    g_autofree glong *widths = g_new0(glong, columns->n);
    for (guint i = 0; i < columns->n; i++)
        widths[i] = width_of(name_of(columns, i));
    for (guint i = 0; i < columns->cells->len; i++)
        widths[i % columns->n] =
            MAX(widths[i % columns->n], width_of(g_ptr_array_index(columns->cells, i)));
    drop_empty(columns, widths);
    narrow(columns, widths);
    for (guint i = 0; i < columns->n; i++)
        put(to, name_of(columns, i), widths[i], is_text(columns, i));
    end_line(to);
    for (guint i = 0; i < columns->cells->len; i++) {
        guint column = i % columns->n;
        put(to, g_ptr_array_index(columns->cells, i), widths[column], is_text(columns, column));
        if (column + 1 == columns->n)
            end_line(to);
    }
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): g_autofree frees the widths */
    g_ptr_array_free(columns->cells, TRUE);
    g_free(columns);
}
