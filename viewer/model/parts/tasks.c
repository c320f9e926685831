#include "model/parts/tasks.h"

#include <string.h>

#include "model/entities/identity.h"
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

static char *label_of(const struct process *owner) {
    const char *name = !owner ? "" : *owner->seen.name ? owner->seen.name : owner->seen.initial;

    return *name ? g_strdup_printf("task of %s", name) : g_strdup("");
}

void dt_tasks_sent(struct node *node, struct process *from, struct process *to, const char *text) {
    const char *function;

    (void)node;
    if (!to || strcmp(to->seen.initial, waiting) != 0 || !(function = function_in(text)))
        return;
    g_autofree char *initial = initial_in(function), *label = label_of(from);
    if (initial && dt_identity_learn(to, &(struct identity){NULL, initial, "", label}))
        dt_identity_emit(to);
}
