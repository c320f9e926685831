/*
 * Two traces have the same clock if their hosts, their clock offsets and their clock frequencies
 * are equal. LTTng writes the offset when it creates a session, so two sessions of one host may
 * differ by a few microseconds.
 */
#include "reading/clocks.h"

#include <string.h>

#include <glib.h>

/* A clock with its description. */
struct described {
    struct dt_clock seen;
    char *text;
};

struct dt_clocks {
    GHashTable *by_text;
    GHashTable *by_stream; /* holds references to the streams */
    GPtrArray *all;
};

static void put_stream(void *stream) {
    bt_stream_put_ref(stream);
}

static void free_described(void *clock) {
    g_free(((struct described *)clock)->text);
    g_free(clock);
}

struct dt_clocks *dt_clocks_new(void) {
    struct dt_clocks *clocks = g_new0(struct dt_clocks, 1);

    clocks->by_text = g_hash_table_new(g_str_hash, g_str_equal);
    clocks->by_stream = g_hash_table_new_full(NULL, NULL, put_stream, NULL);
    clocks->all = g_ptr_array_new_with_free_func(free_described);
    return clocks;
}

void dt_clocks_free(struct dt_clocks *clocks) {
    if (!clocks)
        return;
    g_hash_table_destroy(clocks->by_text);
    g_hash_table_destroy(clocks->by_stream);
    g_ptr_array_free(clocks->all, true);
    g_free(clocks);
}

static char *describe(const bt_stream *stream) {
    const bt_clock_class *class =
        bt_stream_class_borrow_default_clock_class_const(bt_stream_borrow_class_const(stream));
    const bt_value *host = bt_trace_borrow_environment_entry_value_by_name_const(
        bt_stream_borrow_trace_const(stream), "hostname");
    int64_t seconds = 0;
    uint64_t cycles = 0, frequency = 0;
    GString *text = g_string_new(host && bt_value_is_string(host) ? bt_value_string_get(host) : "");

    if (class) {
        bt_clock_class_get_offset(class, &seconds, &cycles);
        frequency = bt_clock_class_get_frequency(class);
    }
    g_string_append_printf(text, " %" PRId64 " %" PRIu64 " %" PRIu64, seconds, cycles, frequency);
    return g_string_free(text, false);
}

static struct dt_clock *clock_of(struct dt_clocks *clocks, char *text) {
    struct described *clock = g_hash_table_lookup(clocks->by_text, text);

    if (clock) {
        g_free(text);
        return &clock->seen;
    }
    clock = g_new0(struct described, 1);
    clock->text = text;
    clock->seen.number = clocks->all->len;
    clock->seen.uncertainty = DT_NO_VALUE;
    g_ptr_array_add(clocks->all, clock);
    g_hash_table_insert(clocks->by_text, text, clock);
    return &clock->seen;
}

static int by_text(const void *a, const void *b) {
    const struct described *x = *(struct described *const *)a, *y = *(struct described *const *)b;

    return strcmp(x->text, y->text);
}

void dt_clocks_sort(struct dt_clocks *clocks) {
    g_ptr_array_sort(clocks->all, by_text);
    for (unsigned i = 0; i < clocks->all->len; i++)
        dt_clocks_nth(clocks, i)->number = i;
}

struct dt_clock *dt_clocks_of(struct dt_clocks *clocks, const bt_stream *stream) {
    struct dt_clock *clock = g_hash_table_lookup(clocks->by_stream, stream);

    if (clock)
        return clock;
    clock = clock_of(clocks, describe(stream));
    bt_stream_get_ref(stream);
    g_hash_table_insert(clocks->by_stream, (void *)stream, clock);
    return clock;
}

struct dt_clock *dt_clocks_nth(const struct dt_clocks *clocks, unsigned number) {
    return &((struct described *)clocks->all->pdata[number])->seen;
}

unsigned dt_clocks_count(const struct dt_clocks *clocks) {
    return clocks->all->len;
}
