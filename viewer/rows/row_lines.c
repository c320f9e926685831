#include "rows/row_lines.h"

#include "shared/json.h"

/* Bytes of rows that are held until all nodes have a name. */
enum { HELD_MOST = 64 << 20 };

static const struct {
    const char *text;
    gssize length;
} keys[DT_COLUMNS] = {
#define COLUMN(name) {",\"" #name "\":", sizeof(",\"" #name "\":") - 1},
#include "rows/columns.h"
#undef COLUMN
};

static const char *const kind_names[] = {
#define KIND(name) #name,
    DT_EACH_ROW_KIND(KIND)
#undef KIND
};

/* The begin of the rows of a node: the recording, the release and the node. */
struct of_node {
    GString *begin;
    bool is_named;
};

/* A held row. */
struct held {
    const struct of_node *of;
    size_t length;
};

struct dt_row_lines {
    struct dt_file *file;
    const char *recording, *release;
    GPtrArray *nodes;      /* struct of_node */
    struct of_node *other; /* of rows without a node, or after the end of the model */
    const struct of_node *of;
    GString *line; /* the current row without its begin */
    bool holds, is_full; /* is_full: the limit was reached, so it holds no more */
    GString *held_text;
    GArray *held;
};

/* -- Columns ---------------------------------------------------------------------------- */

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
    dt_column_text(rows->line, column, text);
}

void dt_row_number(struct dt_row_lines *rows, enum dt_column column, int64_t number) {
    dt_column_number(rows->line, column, number);
}

void dt_row_flag(struct dt_row_lines *rows, enum dt_column column, bool is) {
    put_key(rows->line, column);
    dt_json_boolean(rows->line, NULL, is);
}

void dt_row_duration(struct dt_row_lines *rows, enum dt_column column, int64_t begin, int64_t end) {
    if (begin != DT_NO_VALUE && end != DT_NO_VALUE)
        dt_row_number(rows, column, MAX(end - begin, 0));
}

void dt_row_columns(struct dt_row_lines *rows, const GString *columns) {
    g_string_append_len(rows->line, columns->str, (gssize)columns->len);
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
    const struct {
        enum dt_column column;
        const char *text;
    } columns[] = {{DT_COLUMN_recording, rows->recording},
                   {DT_COLUMN_release, rows->release},
                   {DT_COLUMN_node, node},
                   {DT_COLUMN_otp, otp}};

    g_string_truncate(of->begin, 0);
    for (size_t i = 0; i < G_N_ELEMENTS(columns); i++)
        dt_column_text(of->begin, columns[i].column, columns[i].text);
}

/* `begin` starts with a comma, or is empty; so does the row, which is never empty. */
static void write_row(const struct dt_row_lines *rows, const struct of_node *of, const char *text,
                      size_t length) {
    dt_file_write(rows->file, "{", 1);
    if (of->begin->len) {
        dt_file_write(rows->file, of->begin->str + 1, of->begin->len - 1);
        dt_file_write(rows->file, text, length);
    } else {
        dt_file_write(rows->file, text + 1, length - 1);
    }
}

static void release_held(struct dt_row_lines *rows) {
    const char *at = rows->held_text->str;

    for (unsigned i = 0; i < rows->held->len; i++) {
        const struct held *held = &g_array_index(rows->held, struct held, i);

        write_row(rows, held->of, at, held->length);
        at += held->length;
    }
    g_string_free(rows->held_text, true);
    rows->held_text = g_string_new(NULL);
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
    rows->holds = !rows->is_full && !are_all_named(rows);
    if (!rows->holds)
        release_held(rows);
}

/* -- Rows ------------------------------------------------------------------------------- */

static void begin(struct dt_row_lines *rows, const struct of_node *of, enum dt_row_kind kind,
                  int64_t time) {
    rows->of = of;
    g_string_truncate(rows->line, 0);
    dt_row_text(rows, DT_COLUMN_kind, kind_names[kind]);
    dt_row_number(rows, DT_COLUMN_time_ns, time);
}

void dt_row_begin(struct dt_row_lines *rows, const struct dt_node *node, enum dt_row_kind kind,
                  int64_t time) {
    begin(rows, node && node->of_sink ? node->of_sink : rows->other, kind, time);
}

void dt_row_begin_late(struct dt_row_lines *rows, const char *node, const char *otp,
                       enum dt_row_kind kind, int64_t time) {
    release_held(rows);
    rows->holds = false;
    set_begin(rows, rows->other, node, otp);
    begin(rows, rows->other, kind, time);
}

void dt_row_end(struct dt_row_lines *rows) {
    g_string_append(rows->line, "}\n");
    if (!rows->holds) {
        write_row(rows, rows->of, rows->line->str, rows->line->len);
        return;
    }
    struct held held = {rows->of, rows->line->len};
    g_array_append_val(rows->held, held);
    g_string_append_len(rows->held_text, rows->line->str, (gssize)rows->line->len);
    if (rows->held_text->len < HELD_MOST)
        return;
    release_held(rows);
    rows->holds = false;
    rows->is_full = true;
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
    rows->line = g_string_new(NULL);
    rows->held_text = g_string_new(NULL);
    rows->held = g_array_new(false, false, sizeof(struct held));
    return rows;
}

bool dt_row_lines_close(struct dt_row_lines *rows, GError **error) {
    release_held(rows);
    return dt_file_close(g_steal_pointer(&rows->file), error);
}

void dt_row_lines_free(struct dt_row_lines *rows) {
    if (!rows)
        return;
    dt_file_discard(rows->file);
    g_ptr_array_free(rows->nodes, true);
    free_of_node(rows->other);
    g_string_free(rows->line, true);
    g_string_free(rows->held_text, true);
    g_array_free(rows->held, true);
    g_free(rows);
}

const GError *dt_row_lines_failed(const struct dt_row_lines *rows) {
    return dt_file_failed(rows->file);
}
