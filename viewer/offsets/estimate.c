/*
 * A message from clock A to clock B bounds their offsets: sent + offset(A) <= delivered +
 * offset(B), so offset(A) - offset(B) <= delivered - sent. The fastest message of each direction
 * gives the tightest bound.
 *
 * Only unambiguous messages count: exactly one was sent and one delivered in the whole recording
 * between these nodes with this text or, with sequential tracing, this serial. They are looked up
 * at the end, when the names of all nodes are known. A delivery that is recorded too late, such as
 * a seq_trace_receive, does no harm, because it only loosens the bound.
 *
 * A send that is recorded too late is harmful. The runtime calls the tracer after it has passed the
 * message for another node to the connection, and the thread may have to wait in between. The
 * sender's previous event therefore makes a second, safe bound. seq_trace_send precedes the send.
 */
#include "offsets/estimate.h"

#include <string.h>

#include "model/entities/peers.h"
#include "offsets/bounds.h"
#include "shared/remote_ids.h"
#include "shared/texts.h"

enum {
    /* The maximum number of sends, and of deliveries; later ones are ignored. */
    SAMPLES_MAX = 500000,
};

/* One end of a message: its send or its delivery. */
struct sample {
    struct node *node; /* where it was recorded */
    uint64_t hash;     /* of the data that both ends have */
    int64_t time;
    int64_t sure; /* of a send: it was not before this time; DT_NO_VALUE if unknown */
    unsigned clock;
    bool is_repeated;
    uint64_t other; /* the number of the other end's node; 0: `name` is its name */
    const char *name;
};

/* The last event of a process. Processes whose hashes begin with the same bits share an entry. */
struct last {
    uint64_t process; /* a hash of its node, its pid and the clock */
    int64_t time;
};

enum { LAST_BITS = 12 };

struct dt_estimate {
    struct last lasts[1 << LAST_BITS];
    struct world *world; /* only the nodes, with their names and numbers */
    GHashTable *sent, *delivered;
    GStringChunk *names;
};

static unsigned hash_sample(const void *data) {
    const struct sample *s = data;

    return (unsigned)(s->hash ^ s->hash >> 32) ^ g_direct_hash(s->node);
}

static gboolean equal_samples(const void *a, const void *b) {
    const struct sample *x = a, *y = b;

    return x->hash == y->hash && x->node == y->node;
}

struct dt_estimate *dt_estimate_new(void) {
    static const struct dt_sink none;
    static const struct dt_hooks nodes_alone = {.node_new = {dt_peers_new},
                                                .node_free = {dt_peers_free}};
    struct dt_estimate *e = g_new0(struct dt_estimate, 1);

    e->world = dt_world_new(&none, NULL, &nodes_alone);
    e->sent = g_hash_table_new_full(hash_sample, equal_samples, g_free, NULL);
    e->delivered = g_hash_table_new_full(hash_sample, equal_samples, g_free, NULL);
    e->names = g_string_chunk_new(4096);
    return e;
}

void dt_estimate_free(struct dt_estimate *e) {
    if (!e)
        return;
    g_hash_table_destroy(e->sent);
    g_hash_table_destroy(e->delivered);
    g_string_chunk_free(e->names);
    dt_world_free(e->world);
    g_free(e);
}

/* -- Samples ------------------------------------------------------------------------ */

/* Includes the end of the text, so that adjacent texts do not run together. */
static uint64_t hash_text(uint64_t hash, const char *text) {
    return dt_hash_number(dt_hash_text(hash, text), 0xff);
}

/* `serial` is 0 without sequential tracing. */
static uint64_t hash_message(const char *text, const char *label, uint64_t serial) {
    uint64_t hash = dt_hash_number(DT_HASH, serial);
    char key[DT_REMOTE_KEY];

    dt_remote_key(label, key);
    hash = hash_text(hash, key);
    dt_remote_key(text, key);
    return hash_text(hash, key);
}

/* Returns the time of the process's previous event; DT_NO_VALUE if it is unknown. */
static int64_t last_event(struct dt_estimate *e, const struct sample *now, const char *pid) {
    uint64_t process =
        hash_text(((uint64_t)(uintptr_t)now->node + now->clock) * 0x9e3779b97f4a7c15, pid);
    struct last *last = &e->lasts[process >> (64 - LAST_BITS)];
    int64_t before = last->process == process ? last->time : DT_NO_VALUE;

    *last = (struct last){process, now->time};
    return before;
}

static void add(struct dt_estimate *e, GHashTable *samples, const struct sample *sample) {
    struct sample *former = g_hash_table_lookup(samples, sample), *added;

    if (former) {
        former->is_repeated = true;
    } else if (g_hash_table_size(samples) < SAMPLES_MAX) {
        added = g_memdup2(sample, sizeof *sample);
        if (added->name)
            added->name = g_string_chunk_insert_const(e->names, added->name);
        g_hash_table_add(samples, added);
    }
}

static void add_sent(struct dt_estimate *e, struct sample sample, const char *to) {
    char *name, *node;

    if (dt_remote_name(to, &name, &node)) {
        sample.name = node;
        add(e, e->sent, &sample);
        g_free(name);
        g_free(node);
    } else if (dt_remote_number(to, &sample.other) && sample.other) {
        add(e, e->sent, &sample);
    }
}

void dt_estimate_event(void *estimate, const struct dt_recorded *event) {
    struct dt_estimate *e = estimate;
    const union dt_event *f = &event->fields;
    struct node *node = dt_node_of(e->world, event);
    struct sample sample = {
        .node = node, .time = event->time, .clock = event->clock ? event->clock->number : 0};

    switch (event->probe) {
    case DT_node_identity:
        dt_node_identity(node, &f->node_identity);
        break;
    case DT_process_identity:
        dt_node_named(node, f->process_identity.node, "");
        break;
    case DT_process_scheduled:
        last_event(e, &sample, f->process_scheduled.pid);
        break;
    case DT_message_receive:
        last_event(e, &sample, f->message_receive.to);
        break;
    case DT_message_send:
        sample.hash = hash_message(f->message_send.message, "", 0);
        sample.sure = last_event(e, &sample, f->message_send.from);
        add_sent(e, sample, f->message_send.to);
        break;
    case DT_message_delivery:
        if (*f->message_delivery.from || !strchr(f->message_delivery.node, '@'))
            break;
        sample.hash = hash_message(f->message_delivery.message, "", 0);
        sample.name = f->message_delivery.node;
        add(e, e->delivered, &sample);
        break;
    case DT_seq_trace_send:
        sample.hash = hash_message(f->seq_trace_send.message, f->seq_trace_send.label,
                                   f->seq_trace_send.current + 1);
        last_event(e, &sample, f->seq_trace_send.from);
        sample.sure = sample.time;
        add_sent(e, sample, f->seq_trace_send.to);
        break;
    case DT_seq_trace_receive:
        sample.hash = hash_message(f->seq_trace_receive.message, f->seq_trace_receive.label,
                                   f->seq_trace_receive.current + 1);
        if (dt_remote_number(f->seq_trace_receive.from, &sample.other) && sample.other)
            add(e, e->delivered, &sample);
        break;
    default:
        break;
    }
}

/* -- The end ------------------------------------------------------------------------ */

static struct node *other(const struct sample *s) {
    return s->other ? dt_peer(s->node, s->other) : dt_peer_named(s->node, s->name);
}

void dt_estimate_end(struct dt_estimate *e, struct dt_clocks *clocks) {
    struct dt_bounds *bounds = dt_bounds_new(dt_clocks_count(clocks));
    GHashTableIter i;
    void *of;

    g_hash_table_iter_init(&i, e->sent);
    while (g_hash_table_iter_next(&i, &of, NULL)) {
        const struct sample *sent = of, *delivered;
        struct sample wanted = {.node = other(sent), .hash = sent->hash};

        if (sent->is_repeated || !wanted.node)
            continue;
        delivered = g_hash_table_lookup(e->delivered, &wanted);
        if (delivered && !delivered->is_repeated && other(delivered) == sent->node)
            dt_bounds_add(bounds, sent->clock, delivered->clock, delivered->time - sent->time,
                          sent->sure == DT_NO_VALUE ? DT_NO_VALUE : delivered->time - sent->sure);
    }
    dt_bounds_solve(bounds, clocks);
    dt_bounds_free(bounds);
}
