#include "summary/purges.h"

#include <string.h>

#include "shared/texts.h"

/* The requests that one erts_code_purger has not answered. With several, the module is unknown. */
struct pending {
    char *module;
    uint64_t requests;
    bool are_several;
    GArray *killed; /* struct dt_listed */
};

enum { MODULE = 256 };

static void pending_free(void *data) {
    struct pending *pending = data;

    g_free(pending->module);
    g_array_free(pending->killed, true);
    g_free(pending);
}

void dt_purges_init(struct dt_purges *purges) {
    purges->pending = g_hash_table_new_full(NULL, NULL, NULL, pending_free);
    dt_list_init(&purges->killed, false);
}

void dt_purges_free(struct dt_purges *purges) {
    g_hash_table_destroy(purges->pending);
    dt_list_free(&purges->killed);
}

static void requested(struct dt_purges *purges, struct dt_seen_node *node, const char *module) {
    struct pending *pending = g_hash_table_lookup(purges->pending, node);

    if (pending) {
        pending->requests++;
        pending->are_several = true;
        return;
    }
    pending = g_new0(struct pending, 1);
    pending->module = g_strndup(module, MIN(strcspn(module, ",}"), MODULE));
    pending->requests = 1;
    pending->killed = g_array_new(false, false, sizeof(struct dt_listed));
    g_array_set_clear_func(pending->killed, dt_listed_clear);
    g_hash_table_insert(purges->pending, node, pending);
}

static void confirm(struct dt_purges *purges, const struct pending *pending) {
    for (unsigned i = 0; i < pending->killed->len; i++) {
        const struct dt_listed *row = &g_array_index(pending->killed, struct dt_listed, i);

        dt_list_add(&purges->killed, (struct dt_listed){.actor = row->actor,
                                                        .node = row->node,
                                                        .time = row->time,
                                                        .text = g_strdup(pending->module)});
    }
}

static void answered(struct dt_purges *purges, struct dt_seen_node *node, bool did_kill) {
    struct pending *pending = g_hash_table_lookup(purges->pending, node);

    if (!pending)
        return;
    if (did_kill && !pending->are_several)
        confirm(purges, pending);
    if (--pending->requests == 0)
        g_hash_table_remove(purges->pending, node);
}

static bool is_purger(const struct dt_process *process) {
    return process && strcmp(process->name, "erts_code_purger") == 0;
}

void dt_purges_sent(struct dt_purges *purges, struct dt_seen_node *node,
                    const struct dt_message *message) {
    const char *text = message->text;

    if (is_purger(message->to) && dt_skip(&text, "{purge,"))
        requested(purges, node, text);
    else if (is_purger(message->from) && dt_skip(&text, "{reply,purge,"))
        answered(purges, node, g_str_has_prefix(text, "{true,true}"));
}

void dt_purges_exited(struct dt_purges *purges, struct dt_actor *actor,
                      const struct dt_exit *exit) {
    const struct pending *pending = g_hash_table_lookup(purges->pending, actor->node);

    if (!pending || strcmp(exit->reason, "killed") != 0 || pending->killed->len >= DT_LISTED)
        return;
    struct dt_listed row = {.actor = dt_actor_keep(actor), .node = actor->node, .time = exit->time};
    g_array_append_val(pending->killed, row);
}

void dt_purges_lost(struct dt_purges *purges) {
    g_hash_table_remove_all(purges->pending);
}

bool dt_purges_killed(const struct dt_purges *purges, const struct dt_actor *actor) {
    for (unsigned i = 0; i < purges->killed.rows->len; i++)
        if (g_array_index(purges->killed.rows, struct dt_listed, i).actor == actor)
            return true;
    return false;
}
