#include "page/message_chunks.h"

#include "shared/json.h"
#include "shared/texts.h"

enum {
    CHUNK = 250,
    /* If few messages are kept, chunks are smaller, so that there are at least this many. */
    CHUNKS_LEAST = 10,
    DEAD_COUNTS = 1000000, /* ns: a message to the dead counts as at least this slow */
    TEXT_MOST = 160,
};

struct chunk {
    GArray *of; /* of struct dt_page_message */
    int64_t begin, end;
    int64_t slowest; /* ns in flight */
};

struct dt_page_messages {
    GPtrArray *chunks; /* the last one is filled */
    unsigned per_chunk;
    uint64_t most, kept, seen;
    GArray *sorted;
};

static void message_clear(void *data) {
    struct dt_page_message *message = data;

    dt_page_lane_unref(message->from);
    dt_page_lane_unref(message->to);
    g_free(message->text);
}

static void chunk_free(void *data) {
    struct chunk *chunk = data;

    g_array_free(chunk->of, true);
    g_free(chunk);
}

static struct chunk *chunk_new(void) {
    struct chunk *chunk = g_new0(struct chunk, 1);

    chunk->of = g_array_new(false, false, sizeof(struct dt_page_message));
    g_array_set_clear_func(chunk->of, message_clear);
    chunk->begin = INT64_MAX;
    chunk->end = INT64_MIN;
    return chunk;
}

struct dt_page_messages *dt_page_messages_new(unsigned most) {
    struct dt_page_messages *messages = g_new0(struct dt_page_messages, 1);

    messages->chunks = g_ptr_array_new_with_free_func(chunk_free);
    messages->per_chunk = CLAMP(most / CHUNKS_LEAST, 1, CHUNK);
    messages->most = most;
    return messages;
}

void dt_page_messages_free(struct dt_page_messages *messages) {
    if (!messages)
        return;
    if (messages->sorted)
        g_array_free(messages->sorted, true);
    g_ptr_array_free(messages->chunks, true);
    g_free(messages);
}

static void drop_the_fastest(struct dt_page_messages *messages) {
    const struct chunk *dropped = g_ptr_array_index(messages->chunks, 0);
    unsigned fastest = 0;

    for (unsigned n = 1; n < messages->chunks->len; n++) {
        const struct chunk *chunk = g_ptr_array_index(messages->chunks, n);

        if (chunk->slowest < dropped->slowest) {
            dropped = chunk;
            fastest = n;
        }
    }
    messages->kept -= dropped->of->len;
    g_ptr_array_remove_index(messages->chunks, fastest);
}

static struct chunk *to_fill(struct dt_page_messages *messages) {
    struct chunk *last = NULL;

    if (messages->kept >= messages->most)
        drop_the_fastest(messages);
    if (messages->chunks->len > 0)
        last = g_ptr_array_index(messages->chunks, messages->chunks->len - 1);
    if (last && last->of->len < messages->per_chunk)
        return last;
    last = chunk_new();
    g_ptr_array_add(messages->chunks, last);
    return last;
}

static int64_t first_time(const struct dt_page_message *message) {
    return message->sent != DT_NO_VALUE ? message->sent : message->delivered;
}

void dt_page_messages_add(struct dt_page_messages *messages, const struct dt_message *message,
                          struct dt_page_lane *from, struct dt_page_lane *to) {
    struct dt_page_message kept = {
        .sent = message->sent,
        .delivered = message->delivered,
        .matched = (uint8_t)message->matched,
        .is_dead = message->is_dead,
    };
    struct chunk *chunk;
    int64_t way = 0;

    messages->seen++;
    if (messages->most == 0)
        return;
    chunk = to_fill(messages);
    kept.from = dt_page_lane_ref(from);
    kept.to = dt_page_lane_ref(to);
    kept.text = dt_cut(message->text, TEXT_MOST, "…");
    g_array_append_val(chunk->of, kept);
    messages->kept++;
    if (kept.sent != DT_NO_VALUE && kept.delivered != DT_NO_VALUE)
        way = kept.delivered - kept.sent;
    chunk->slowest = MAX(chunk->slowest, kept.is_dead ? MAX(way, DEAD_COUNTS) : way);
    chunk->begin = MIN(chunk->begin, first_time(&kept));
    chunk->end = MAX(chunk->end, MAX(kept.sent, kept.delivered));
}

uint64_t dt_page_messages_seen(const struct dt_page_messages *messages) {
    return messages->seen;
}

static int by_first(const void *a, const void *b) {
    return dt_compare(first_time(a), first_time(b));
}

const GArray *dt_page_messages_sorted(struct dt_page_messages *messages) {
    if (messages->sorted)
        g_array_free(messages->sorted, true);
    messages->sorted = g_array_new(false, false, sizeof(struct dt_page_message));
    for (unsigned n = 0; n < messages->chunks->len; n++) {
        const struct chunk *chunk = g_ptr_array_index(messages->chunks, n);

        g_array_append_vals(messages->sorted, chunk->of->data, chunk->of->len);
    }
    g_array_sort(messages->sorted, by_first);
    return messages->sorted;
}

static int by_chunk_begin(const void *a, const void *b) {
    const struct chunk *one = *(struct chunk *const *)a, *other = *(struct chunk *const *)b;

    return dt_compare(one->begin, other->begin);
}

void dt_page_messages_covered(const struct dt_page_messages *messages, int64_t zero, GString *to) {
    unsigned size = messages->chunks->len;
    bool has_all = messages->seen <= messages->most;

    g_ptr_array_sort(messages->chunks, by_chunk_begin);
    dt_json_open(to, "covered", '[');
    for (unsigned n = 0; n < size;) {
        const struct chunk *chunk = g_ptr_array_index(messages->chunks, n++);
        int64_t begin = chunk->begin, end = chunk->end;

        for (; n < size; n++) {
            const struct chunk *next = g_ptr_array_index(messages->chunks, n);

            if (next->begin > end && !has_all)
                break;
            end = MAX(end, next->end);
        }
        dt_json_open(to, NULL, '[');
        dt_json_number(to, NULL, begin - zero);
        dt_json_number(to, NULL, end - zero);
        dt_json_close(to, ']');
    }
    dt_json_close(to, ']');
}
