#include "rows/row_lines.h"

#include "shared/json.h"

enum {
    /* Bytes of rows that are held until all nodes have a name. */
    HELD_MOST = 64 << 20,
    /* Bytes of rows that are written at once. */
    WRITTEN = 1 << 16,
};

static const struct {
    const char *text;
    gssize length;
} keys[DT_COLUMNS] = {
#define COLUMN(name) {",\"" #name "\":", sizeof(",\"" #name "\":") - 1},
#include "rows/columns.h"
#undef COLUMN
};

static const char *const kinds[] = {
#define KIND(name) ",\"kind\":\"" #name "\"",
    DT_EACH_ROW_KIND(KIND)
#undef KIND
};

/* The begin of the rows of a node: a brace, and the columns of the recording and the node. */
struct of_node {
    GString *begin;
    bool is_named;
};

/* A held row, without its begin. */
struct held {
    const struct of_node *of;
    size_t length;
};

struct dt_row_lines {
    struct dt_file *file;
    const char *recording, *release;
    GPtrArray *nodes;         /* struct of_node */
    struct of_node *other;    /* of rows without a node, or after the end of the model */
    GString *text;            /* rows that are not written yet; the current one is at its end */
    const struct of_node *of; /* of the current row */
    size_t at;                /* where the current row begins */
    GArray *held;             /* struct held: the rows in `text`, if it holds them */
    bool holds, is_full;      /* is_full: the limit was reached, so it holds no more */
};

/* -- Columns ---------------------------------------------------------------------------- */

static void append(GString *to, const GString *text) {
    g_string_append_len(to, text->str, (gssize)text->len);
}

static void put_key(GString *to, enum dt_column column) {
    g_string_append_len(to, keys[column].text, keys[column].length);
}

void dt_column_text(GString *to, enum dt_column column, const char *text) {
    if (!text || !*text)
        return;
    put_key(to, column);
    dt_json_raw_text(to, NULL, text);
}

void dt_column_number(GString *to, enum dt_column column, int64_t number) {
    if (number == DT_NO_VALUE)
        return;
    put_key(to, column);
    dt_json_number(to, NULL, number);
}

void dt_row_text(struct dt_row_lines *rows, enum dt_column column, const char *text) {
    dt_column_text(rows->text, column, text);
}

void dt_row_number(struct dt_row_lines *rows, enum dt_column column, int64_t number) {
    dt_column_number(rows->text, column, number);
}

void dt_row_flag(struct dt_row_lines *rows, enum dt_column column, bool is) {
    put_key(rows->text, column);
    dt_json_boolean(rows->text, NULL, is);
}

void dt_row_duration(struct dt_row_lines *rows, enum dt_column column, int64_t begin, int64_t end) {
    if (begin != DT_NO_VALUE && end != DT_NO_VALUE)
        dt_row_number(rows, column, MAX(end - begin, 0));
}

void dt_row_columns(struct dt_row_lines *rows, const GString *columns) {
    append(rows->text, columns);
}

/* -- Nodes ------------------------------------------------------------------------------ */

static void free_of_node(void *data) {
    struct of_node *of = data;

    g_string_free(of->begin, true);
    g_free(of);
}

static struct of_node *new_of_node(void) {
    struct of_node *of = g_new0(struct of_node, 1);

    of->begin = g_string_new(NULL);
    return of;
}

static void set_begin(const struct dt_row_lines *rows, struct of_node *of, const char *node,
                      const char *otp) {
    g_string_assign(of->begin, "{");
    dt_json_raw_text(of->begin, "recording", rows->recording);
    dt_column_text(of->begin, DT_COLUMN_release, rows->release);
    dt_column_text(of->begin, DT_COLUMN_node, node);
    dt_column_text(of->begin, DT_COLUMN_otp, otp);
}

static void write_text(struct dt_row_lines *rows) {
    dt_file_write(rows->file, rows->text->str, rows->text->len);
    g_string_truncate(rows->text, 0);
}

static void release_held(struct dt_row_lines *rows) {
    GString *held_text = rows->text;
    const char *at = held_text->str;

    rows->holds = false;
    if (!rows->held->len)
        return;
    rows->text = g_string_new(NULL);
    for (unsigned i = 0; i < rows->held->len; i++) {
        const struct held *held = &g_array_index(rows->held, struct held, i);

        append(rows->text, held->of->begin);
        g_string_append_len(rows->text, at, (gssize)held->length);
        at += held->length;
        if (rows->text->len >= WRITTEN)
            write_text(rows);
    }
    g_string_free(held_text, true);
    g_array_set_size(rows->held, 0);
}

static bool are_all_named(const struct dt_row_lines *rows) {
    for (unsigned i = 0; i < rows->nodes->len; i++)
        if (!((struct of_node *)rows->nodes->pdata[i])->is_named)
            return false;
    return true;
}

/* A node's identity has its name and its release. */
void dt_row_lines_node(struct dt_row_lines *rows, struct dt_node *node) {
    struct of_node *of = node->of_sink;

    if (!of) {
        node->of_sink = of = new_of_node();
        g_ptr_array_add(rows->nodes, of);
    }
    of->is_named = *node->otp;
    set_begin(rows, of, node->name, node->otp);
    if (rows->is_full || are_all_named(rows)) {
        release_held(rows);
    } else if (!rows->holds) {
        write_text(rows);
        rows->holds = true;
    }
}

/* -- Rows ------------------------------------------------------------------------------- */

static void begin(struct dt_row_lines *rows, const struct of_node *of, enum dt_row_kind kind,
                  int64_t time) {
    rows->of = of;
    rows->at = rows->text->len;
    if (!rows->holds)
        append(rows->text, of->begin);
    g_string_append(rows->text, kinds[kind]);
    dt_row_number(rows, DT_COLUMN_time_ns, time);
}

void dt_row_begin(struct dt_row_lines *rows, const struct dt_node *node, enum dt_row_kind kind,
                  int64_t time) {
    begin(rows, node && node->of_sink ? node->of_sink : rows->other, kind, time);
}

void dt_row_begin_late(struct dt_row_lines *rows, const char *node, const char *otp,
                       enum dt_row_kind kind, int64_t time) {
    release_held(rows);
    set_begin(rows, rows->other, node, otp);
    begin(rows, rows->other, kind, time);
}

static void hold(struct dt_row_lines *rows) {
    struct held held = {rows->of, rows->text->len - rows->at};

    g_array_append_val(rows->held, held);
    if (rows->text->len < HELD_MOST)
        return;
    rows->is_full = true;
    release_held(rows);
}

void dt_row_end(struct dt_row_lines *rows) {
    g_string_append_len(rows->text, "}\n", 2);
    if (rows->holds)
        hold(rows);
    else if (rows->text->len >= WRITTEN)
        write_text(rows);
}

/* -- Begin and end ---------------------------------------------------------------------- */

struct dt_row_lines *dt_row_lines_open(const char *path, const char *recording, const char *release,
                                       GError **error) {
    struct dt_file *file = dt_file_open(path, error);
    struct dt_row_lines *rows;

    if (!file)
        return NULL;
    rows = g_new0(struct dt_row_lines, 1);
    rows->file = file;
    rows->recording = recording;
    rows->release = release;
    rows->nodes = g_ptr_array_new_with_free_func(free_of_node);
    rows->other = new_of_node();
    set_begin(rows, rows->other, "", "");
    rows->text = g_string_new(NULL);
    rows->held = g_array_new(false, false, sizeof(struct held));
    return rows;
}

bool dt_row_lines_close(struct dt_row_lines *rows, GError **error) {
    release_held(rows);
    write_text(rows);
    return dt_file_close(g_steal_pointer(&rows->file), error);
}

void dt_row_lines_free(struct dt_row_lines *rows) {
    if (!rows)
        return;
    dt_file_discard(rows->file);
    g_ptr_array_free(rows->nodes, true);
    free_of_node(rows->other);
    g_string_free(rows->text, true);
    g_array_free(rows->held, true);
    g_free(rows);
}

const GError *dt_row_lines_failed(const struct dt_row_lines *rows) {
    return dt_file_failed(rows->file);
}
