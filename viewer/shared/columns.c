#include "shared/columns.h"

#include <stdbool.h>

enum { GAP = 2, NARROWEST = 8, GIVEN_WAY = 15, ABSENT = -1 };

/* Without a limit, a longer text does not widen its column. */
enum { WIDEST = 100 };

struct dt_columns {
    const char *const *names;
    unsigned n;
    GPtrArray *cells;
    long *widths; /* of the columns, or ABSENT */
};

struct dt_columns *dt_columns_new(const char *const *names) {
    struct dt_columns *columns = g_new0(struct dt_columns, 1);

    columns->names = names;
    while (names[columns->n])
        columns->n++;
    columns->cells = g_ptr_array_new_with_free_func(g_free);
    columns->widths = g_new0(long, columns->n);
    return columns;
}

/* Control characters (including C1) move the cursor; direction marks reverse text. */
static bool is_harmless(gunichar c) {
    switch (g_unichar_type(c)) {
    case G_UNICODE_CONTROL:
    case G_UNICODE_FORMAT:
    case G_UNICODE_SURROGATE:
    case G_UNICODE_LINE_SEPARATOR:
    case G_UNICODE_PARAGRAPH_SEPARATOR:
        return false;
    default:
        return true;
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
    g_ptr_array_add(columns->cells, g_string_free(cell, false));
}

void dt_columns_printf(struct dt_columns *columns, const char *format, ...) {
    va_list args;

    va_start(args, format);
    g_ptr_array_add(columns->cells, g_strdup_vprintf(format, args));
    va_end(args);
}

static bool gives_way(const struct dt_columns *columns, unsigned column) {
    return columns->names[column][0] == '~';
}

static bool is_text(const struct dt_columns *columns, unsigned column) {
    return columns->names[column][0] == '<' || gives_way(columns, column);
}

static const char *name_of(const struct dt_columns *columns, unsigned column) {
    return columns->names[column] + is_text(columns, column);
}

static long width_of_char(gunichar c) {
    return g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
}

static long width_of(const char *text) {
    long width = 0;

    for (; *text; text = g_utf8_next_char(text))
        width += width_of_char(g_utf8_get_char(text));
    return width;
}

/* Truncates a text to `width`, including the mark. */
static void cut(GString *text, long width) {
    static const char mark[] = "...";
    const char *end = text->str;
    long room = width - width_of(mark);

    for (; (room -= width_of_char(g_utf8_get_char(end))) >= 0;)
        end = g_utf8_next_char(end);
    g_string_truncate(text, (size_t)(end - text->str));
    g_string_append(text, mark);
}

static void put(GString *to, const struct dt_columns *columns, unsigned column, const char *text,
                bool is_cut) {
    long width = columns->widths[column];

    if (width == ABSENT)
        return;
    g_autoptr(GString) cell = g_string_new(text);
    if (is_cut && width_of(text) > width)
        cut(cell, width);
    int rest = (int)MAX(width - width_of(cell->str), 0);
    g_string_append_printf(to, "%*s", GAP + (is_text(columns, column) ? 0 : rest), "");
    g_string_append_printf(to, "%s%*s", cell->str, is_text(columns, column) ? rest : 0, "");
}

/* A column whose cells are all empty is ABSENT. */
static void set_widths(struct dt_columns *columns) {
    for (unsigned cell = 0; cell < columns->cells->len;)
        for (unsigned i = 0; i < columns->n; i++, cell++)
            columns->widths[i] =
                MAX(columns->widths[i], width_of(g_ptr_array_index(columns->cells, cell)));
    for (unsigned i = 0; i < columns->n; i++)
        columns->widths[i] =
            columns->widths[i] ? MAX(columns->widths[i], width_of(name_of(columns, i))) : ABSENT;
}

static long width_of_all(const struct dt_columns *columns) {
    long all = 0;

    for (unsigned i = 0; i < columns->n; i++)
        all += columns->widths[i] == ABSENT ? 0 : columns->widths[i] + GAP;
    return all;
}

/* The widest text column that is wider than `least`; columns->n if there is none. */
static unsigned widest(const struct dt_columns *columns, bool is_way_given, long least) {
    const long *widths = columns->widths;
    unsigned widest = columns->n;

    for (unsigned i = 0; i < columns->n; i++)
        if (widths[i] > least && is_text(columns, i) && (gives_way(columns, i) || !is_way_given) &&
            (widest == columns->n || widths[i] > widths[widest]))
            widest = i;
    return widest;
}

static void narrow(struct dt_columns *columns, long width) {
    for (long over = width_of_all(columns) - width; over > 0; over--) {
        unsigned column = widest(columns, true, GIVEN_WAY);

        if (column == columns->n)
            column = widest(columns, false, NARROWEST);
        if (column == columns->n)
            return;
        columns->widths[column]--;
    }
}

static void limit_widths(struct dt_columns *columns) {
    for (unsigned i = 0; i < columns->n; i++)
        columns->widths[i] = MIN(columns->widths[i], WIDEST);
}

static void end_line(GString *to) {
    while (to->len && to->str[to->len - 1] == ' ')
        g_string_truncate(to, to->len - 1);
    g_string_append_c(to, '\n');
}

void dt_columns_end(struct dt_columns *columns, long width, GString *to) {
    set_widths(columns);
    if (width)
        narrow(columns, width);
    else
        limit_widths(columns);
    for (unsigned i = 0; i < columns->n; i++)
        put(to, columns, i, name_of(columns, i), width);
    end_line(to);
    for (unsigned cell = 0; cell < columns->cells->len;) {
        for (unsigned i = 0; i < columns->n; i++, cell++)
            put(to, columns, i, g_ptr_array_index(columns->cells, cell), width);
        end_line(to);
    }
    g_ptr_array_free(columns->cells, true);
    g_free(columns->widths);
    g_free(columns);
}
