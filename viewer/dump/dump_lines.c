#include "dump/dump_lines.h"

static void put_number(struct dt_lines *s, int64_t number, int64_t base) {
    if (number == DT_NO_VALUE)
        g_string_append_c(s->line, '-');
    else
        g_string_append_printf(s->line, "%" PRId64, number - base);
}

void dt_line_begin(struct dt_lines *s, int64_t time, const char *kind) {
    if (s->base == DT_NO_VALUE)
        s->base = time;
    g_string_truncate(s->line, 0);
    put_number(s, time, s->base);
    g_string_append_printf(s->line, " %s", kind);
}

static void put_text(struct dt_lines *s, const char *quote, const char *text) {
    g_autofree char *escaped = g_strescape(text, NULL);

    g_string_append_printf(s->line, "%s%s%s", quote, escaped, quote);
}

static void put_item(struct dt_lines *s, const struct dt_item *item) {
    bool is_absent = item->type == DT_NONE || (item->type == DT_TEXT && !*item->text) ||
                     (item->type == DT_FLAG && !item->number);

    if (is_absent)
        return;
    g_string_append_printf(s->line, " %s%s", item->name, item->type == DT_FLAG ? "" : "=");
    switch (item->type) {
    case DT_AT:
        put_number(s, item->number, s->base);
        break;
    case DT_COUNT:
        put_number(s, item->number, 0);
        break;
    case DT_NAME:
        put_text(s, "", item->text);
        break;
    case DT_TEXT:
        put_text(s, "\"", item->text);
        break;
    case DT_ID:
        if (item->process)
            g_string_append_printf(s->line, "%s#%" PRIu64, item->process->pid,
                                   item->process->number);
        else
            g_string_append_c(s->line, '-');
        break;
    default:
        break;
    }
}

void dt_line_add(struct dt_lines *s, const struct dt_item *items) {
    for (; items->name; items++)
        put_item(s, items);
}

void dt_line_end(struct dt_lines *s) {
    g_string_append_c(s->line, '\n');
    dt_file_write(s->file, s->line->str, s->line->len);
}
