#include "dump/dump_lines.h"

static void put_time(struct dt_lines *s, int64_t time) {
    if (time == DT_NO_VALUE)
        g_string_append_c(s->line, '-');
    else
        g_string_append_printf(s->line, "%" PRId64, time - s->base);
}

void dt_line_begin(struct dt_lines *s, int64_t time, const char *kind) {
    if (s->base == DT_NO_VALUE)
        s->base = time;
    g_string_truncate(s->line, 0);
    put_time(s, time);
    g_string_append_printf(s->line, " %s", kind);
}

static void key(struct dt_lines *s, const char *key) {
    g_string_append_printf(s->line, " %s=", key);
}

void dt_line_at(struct dt_lines *s, const char *name, int64_t time) {
    key(s, name);
    put_time(s, time);
}

void dt_line_number(struct dt_lines *s, const char *name, int64_t n) {
    key(s, name);
    if (n == DT_NO_VALUE)
        g_string_append_c(s->line, '-');
    else
        g_string_append_printf(s->line, "%" PRId64, n);
}

void dt_line_word(struct dt_lines *s, const char *name, const char *text) {
    char *escaped = g_strescape(text, NULL);

    key(s, name);
    g_string_append(s->line, escaped);
    g_free(escaped);
}

void dt_line_text(struct dt_lines *s, const char *name, const char *text) {
    char *escaped;

    if (!*text)
        return;
    escaped = g_strescape(text, NULL);
    key(s, name);
    g_string_append_printf(s->line, "\"%s\"", escaped);
    g_free(escaped);
}

void dt_line_process(struct dt_lines *s, const char *name, const struct dt_process *p) {
    key(s, name);
    if (p)
        g_string_append_printf(s->line, "%s#%" PRIu64, p->pid, p->number);
    else
        g_string_append_c(s->line, '-');
}

void dt_line_flag(struct dt_lines *s, const char *name, bool is) {
    if (is)
        g_string_append_printf(s->line, " %s", name);
}

void dt_line_end(struct dt_lines *s) {
    g_string_append_c(s->line, '\n');
    dt_file_write(s->file, s->line->str, s->line->len);
}
