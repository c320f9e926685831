#include "model/parts/tasks.h"

#include <string.h>

#include "model/entities/identity.h"
#include "model/entities/processes.h"
#include "shared/elixir.h"
#include "shared/term.h"
#include "shared/texts.h"

/* Until that message. */
static const char waiting[] = "Task.Supervised.reply/2";

/* The last of the five elements: {Owner,Ref,ReplyTo,Callers,{Module,Function,Args}}. */
static const char *function_in(const char *text) {
    if (*text != '{')
        return NULL;
    for (unsigned n = 0; n < 4; n++) {
        text = dt_term_end(text + 1);
        if (*text != ',')
            return NULL;
    }
    return text[1] == '{' ? text + 2 : NULL;
}

/* #Fun<Elixir.Shop.3.61> is #Fun<Shop.3.61>. */
static char *fun_in(const char *apply) {
    GString *to = g_string_new(NULL);
    g_autofree char *fun = g_strndup(apply, strcspn(apply, ">") + 1);

    dt_elixir_term(to, fun);
    return g_string_free(to, false);
}

/* Module:Function/Arity; NULL if the text is truncated before. */
static char *initial_in(const char *mfa) {
    const char *s = mfa;
    unsigned arity = 0;

    if (dt_skip(&s, "erlang,apply,[") && g_str_has_prefix(s, "#Fun<"))
        return fun_in(s);
    const char *module_end = dt_term_end(mfa);
    if (*module_end != ',')
        return NULL;
    const char *name = module_end + 1, *args = dt_term_end(name);
    if (!g_str_has_prefix(args, ",["))
        return NULL;
    for (s = args + 1; *s && *s != ']'; arity++)
        s = s[1] == ']' ? s + 1 : dt_term_end(s + 1);
    if (!*s)
        return NULL;
    arity -= args[2] == ']';
    return g_strdup_printf("%.*s:%.*s/%u", (int)(module_end - mfa), mfa, (int)(args - name), name,
                           arity);
}

/* The label is "Shop.Cart.add/2 for Shop.Till". */
static void learn(struct process *task, const char *initial, const struct process *owner) {
    const char *name = !owner ? "" : *owner->seen.name ? owner->seen.name : owner->seen.initial;
    bool is_new = dt_identity_learn(task, &(struct identity){NULL, initial, "", ""});
    g_autofree char *label = g_strdup_printf("%s for %s", task->seen.initial, name);

    if (*name)
        is_new |= dt_identity_learn(task, &(struct identity){NULL, "", "", label});
    if (is_new)
        dt_identity_emit(task);
}

/* {Tag,{ok,Task}} of a supervisor of tasks; NULL for any other message. */
static struct process *started_in(struct node *node, const struct process *from, const char *text) {
    static const char begin[] = ",{ok,";
    char pid[64];

    if (!from || strcmp(from->seen.initial, "supervisor:Task.Supervisor/1") != 0 || *text != '{')
        return NULL;
    const char *reply = dt_term_end(text + 1);
    if (!dt_skip(&reply, begin) || !dt_take(&reply, "<", pid, sizeof pid))
        return NULL;
    struct process *task = dt_process_of(node, pid);
    return task && task->seen.parent == &from->seen && !*task->seen.label ? task : NULL;
}

void dt_tasks_sent(struct node *node, struct process *from, struct process *to, const char *text) {
    const char *function = to && strcmp(to->seen.initial, waiting) == 0 ? function_in(text) : NULL;
    g_autofree char *initial = function ? initial_in(function) : NULL;
    struct process *task = started_in(node, from, text);

    if (initial)
        learn(to, initial, from);
    if (task)
        learn(task, "", to);
}
