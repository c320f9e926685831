#include "summary/unclear_exits.h"

#include <string.h>

#include "summary/activity.h"
#include "summary/findings/limits.h"

/* Recent exits, at most: a linked process exits at once. */
enum { RECENT = 64 };

static void drop(struct dt_listed *exit) {
    dt_listed_clear(exit);
    g_free(exit);
}

void dt_unclear_free(struct dt_unclear_exits *exits) {
    while (exits->recent.length)
        drop(g_queue_pop_head(&exits->recent));
}

void dt_unclear_add(struct dt_unclear_exits *exits, struct dt_listed exit) {
    dt_actor_keep(exit.actor);
    g_queue_push_tail(&exits->recent, g_memdup2(&exit, sizeof exit));
    if (exits->recent.length > RECENT)
        drop(g_queue_pop_head(&exits->recent));
}

void dt_unclear_resolve(struct dt_unclear_exits *exits, struct dt_list *crashes,
                        const struct dt_actor *exited, int64_t time, const char *reason) {
    GList *next;

    for (GList *i = exits->recent.head; i; i = next) {
        struct dt_listed *exit = i->data;

        next = i->next;
        if (time - exit->time > dt_limits.crashes.together ||
            !g_ptr_array_find(exit->linked, exited, NULL) || strcmp(exit->text, reason) != 0)
            continue;
        g_queue_delete_link(&exits->recent, i);
        exit->actor->activity->has_crashed = true;
        dt_list_add(crashes, *exit);
        dt_actor_drop(exit->actor);
        g_free(exit);
    }
}
