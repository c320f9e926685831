#include "summary/waits.h"

#include <string.h>

#include "shared/recorded.h"
#include "shared/texts.h"

/* A sample reports at most a few dozen processes. */
enum { WAITS = 1000 };

static void wait_free(void *data) {
    struct dt_wait *wait = data;

    dt_actor_drop(wait->target);
    dt_actor_drop(wait->actor);
    g_free(wait->target_text);
    g_free(wait->kind);
    g_free(wait);
}

void dt_waits_init(struct dt_waits *waits) {
    waits->rows = g_hash_table_new_full(NULL, NULL, NULL, wait_free);
}

void dt_waits_free(struct dt_waits *waits) {
    g_hash_table_destroy(waits->rows);
}

static void set_target(struct dt_wait *wait, struct dt_actor *target) {
    dt_actor_keep(target);
    dt_actor_drop(wait->target);
    wait->target = target;
}

void dt_waits_add(struct dt_waits *waits, struct dt_actor *actor, struct dt_actor *target,
                  const struct dt_process_wait *event, int64_t time) {
    struct dt_wait *wait = g_hash_table_lookup(waits->rows, actor);

    if (!wait) {
        if (g_hash_table_size(waits->rows) >= WAITS)
            return;
        wait = g_new0(struct dt_wait, 1);
        wait->actor = dt_actor_keep(actor);
        wait->since = time;
        g_hash_table_insert(waits->rows, actor, wait);
    }
    bool is_new = dt_set(&wait->kind, event->kind);
    is_new |= dt_set(&wait->target_text, event->target);
    if (is_new)
        wait->since = time;
    set_target(wait, target);
    wait->callers = event->callers;
    wait->last = time;
}

void dt_waits_called(struct dt_waits *waits, struct dt_actor *caller, struct dt_actor *server) {
    struct dt_wait *wait = g_hash_table_lookup(waits->rows, caller);

    if (!wait || strcmp(wait->kind, "call") != 0)
        return;
    set_target(wait, server);
}

const struct dt_wait *dt_waits_of(const struct dt_waits *waits, const struct dt_actor *actor) {
    return actor ? g_hash_table_lookup(waits->rows, actor) : NULL;
}
