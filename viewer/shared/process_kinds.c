#include "shared/process_kinds.h"

#include <string.h>

/* Short-lived means less than 1/SHORT_PART of the recording. */
enum { SHORT_PART = 4 };

bool dt_is_short_lived(const struct dt_process *process, int64_t whole) {
    return process->kind != DT_FOREIGN && process->began != DT_NO_VALUE &&
           process->ended != DT_NO_VALUE && process->ended - process->began < whole / SHORT_PART;
}

/* The name of a socket is its driver, a space, and its addresses. */
static int shared_length(const char *name) {
    return (int)strcspn(name, " ");
}

/* Labels of one kind differ in numbers and texts: {rabbit_reader,<<"127.0.0.1:59732 -> ...">>}.
   Each port of a pool has a different owner. */
char *dt_kind_of(const struct dt_process *process) {
    int label = (int)strcspn(process->label, "0123456789<\"#");
    const struct dt_process *parent = process->kind == DT_PORT ? NULL : process->parent;

    if (!*process->initial && !*process->name && label == 0)
        return NULL;
    return g_strdup_printf("%u %u %" PRIu64 " %s %.*s %.*s", process->kind,
                           process->node ? process->node->number : 0, parent ? parent->number : 0,
                           process->initial, label, process->label, shared_length(process->name),
                           process->name);
}

char *dt_kind_show(const char *name, const char *initial, unsigned members) {
    if (*name)
        return g_strdup_printf("%.*s × %u", shared_length(name), name, members);
    return g_strdup_printf("%s × %u", *initial ? initial : "processes", members);
}
