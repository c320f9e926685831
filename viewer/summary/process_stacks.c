#include "summary/process_stacks.h"

#include <string.h>

#include "shared/texts.h"

enum { NODE, OS_PID, KIND_WORD, CLAUSE, PIDS, FIELDS };

/* The maximum length of what a process did, in bytes. */
enum { CLAUSE_MOST = 400 };

static const char *const kind_words[DT_STACK_KINDS] = {
#define KIND(name, word) [DT_STACK_##name] = (word),
    DT_EACH_STACK_KIND(KIND)
#undef KIND
};

/* Whether the field, which ends at `end`, is this text. */
static bool is_text(const char *field, const char *end, const char *text) {
    size_t length = strlen(text);

    return (size_t)(end - field) == length && memcmp(field, text, length) == 0;
}

/* Whether a list of words, which ends at `end`, has this word. */
static bool has_word(const char *list, const char *end, const char *word) {
    while (list < end) {
        const char *space = memchr(list, ' ', (size_t)(end - list));
        if (is_text(list, space ? space : end, word))
            return true;
        list = space ? space + 1 : end;
    }
    return false;
}

/* As an atom, a name may have quotes; nodes of the same name have their OS process after it. */
static bool is_node(const char *field, const char *end, const struct dt_seen_node *node) {
    const char *name = dt_seen_node_name(node);
    size_t length = (size_t)(end - field);

    name += *name == '\'';
    return length && strncmp(name, field, length) == 0 && strchr("',", name[length]);
}

/* Whether the recording has no other node of that name and process number, as in two containers. */
static bool is_only_one(const char *field, const char *end, const struct dt_actor *actor) {
    g_autoptr(GPtrArray) nodes = dt_seen_nodes_known(&actor->actors->nodes);
    unsigned count = 0;

    for (unsigned i = 0; i < nodes->len; i++) {
        const struct dt_seen_node *node = g_ptr_array_index(nodes, i);
        count += node->os_pid == actor->node->os_pid && is_node(field, end, node);
    }
    return count == 1;
}

/* The fields of a line and their ends; false if it does not have all. */
static bool split(const char *line, const char *end, const char *fields[FIELDS + 1]) {
    for (unsigned i = 0; i < FIELDS; i++) {
        fields[i] = line;
        if (i + 1 == FIELDS)
            break;
        const char *tab = memchr(line, '\t', (size_t)(end - line));
        if (!tab)
            return false;
        line = tab + 1;
    }
    fields[FIELDS] = end + 1;
    return true;
}

char *dt_process_clause(const char *stacks, const struct dt_actor *actor, enum dt_stack_kind kind) {
    if (!stacks || !actor || actor->is_sum || actor->kind != DT_PROCESS || !actor->node ||
        actor->ended != DT_NO_VALUE)
        return NULL;
    const char *pid = actor->process ? actor->process->pid : actor->pid;
    char os_pid[32];
    g_snprintf(os_pid, sizeof os_pid, "%" PRId64, actor->node->os_pid);

    for (const char *line = stacks; line && *line;) {
        const char *end = strchr(line, '\n'), *fields[FIELDS + 1];
        const char *next = end ? end + 1 : NULL;

        if (!end)
            end = line + strlen(line);
        /* A field ends before the separator ahead of the next one. */
        if (split(line, end, fields) && is_text(fields[OS_PID], fields[KIND_WORD] - 1, os_pid) &&
            is_text(fields[KIND_WORD], fields[CLAUSE] - 1, kind_words[kind]) &&
            is_node(fields[NODE], fields[OS_PID] - 1, actor->node) &&
            has_word(fields[PIDS], end, pid) &&
            is_only_one(fields[NODE], fields[OS_PID] - 1, actor)) {
            g_autofree char *clause =
                g_strndup(fields[CLAUSE], (size_t)(fields[PIDS] - 1 - fields[CLAUSE]));
            return dt_cut(clause, CLAUSE_MOST, "...");
        }
        line = next;
    }
    return NULL;
}
