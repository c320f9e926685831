/*
 * The decoders of identities: those of spawned processes and opened ports.
 *
 * The initial call of a process is translated as in proc_lib:translate_initial_call/1, from the
 * arguments of the spawn: the raw initial call would be a function of proc_lib or gen, not that of
 * the user's module.
 */
#include <string.h>

#include "catalogue/atoms.h"
#include "sources/parts.h"
#include "text/alias.h"
#include "text/string.h"

/* -- Arguments -------------------------------------------------------------------------- */

/* The first elements of a list. Their number is MORE for a longer list, 0 for an improper one. */
enum { ARGS = 7, MORE = ARGS + 1 };

struct args {
    ERL_NIF_TERM at[ARGS];
    int count;
};

static struct args get_args(ErlNifEnv *env, ERL_NIF_TERM list) {
    struct args args = {.count = 0};
    ERL_NIF_TERM head;

    while (enif_get_list_cell(env, list, &head, &list)) {
        if (args.count == ARGS) {
            args.count = MORE;
            return args;
        }
        args.at[args.count++] = head;
    }
    if (!enif_is_empty_list(env, list))
        args.count = 0;
    return args;
}

static bool is(ERL_NIF_TERM term, ERL_NIF_TERM atom) {
    return enif_is_identical(term, atom);
}

/* -- The initial call --------------------------------------------------------------------- */

/* A process that starts as `module`:`function`/1 of a behaviour. */
static bool set_call(struct dt_location *call, ErlNifEnv *env, ERL_NIF_TERM module,
                     ERL_NIF_TERM function) {
    *call = (struct dt_location){.module = module, .function = function, .arity = 1};
    return enif_is_atom(env, module) && enif_is_atom(env, function);
}

/* A supervisor is a gen_server whose argument names the module: {Name, Module, _}, for a bridge
   [Module, …]. */
static bool get_supervised(ErlNifEnv *env, ERL_NIF_TERM behaviour, ERL_NIF_TERM argument,
                           struct dt_location *call) {
    const ERL_NIF_TERM *el;
    ERL_NIF_TERM head, tail;
    int size;

    if (is(behaviour, atom_supervisor))
        return enif_get_tuple(env, argument, &size, &el) && size == 3 &&
               set_call(call, env, behaviour, el[1]);
    return is(behaviour, atom_supervisor_bridge) &&
           enif_get_list_cell(env, argument, &head, &tail) && set_call(call, env, behaviour, head);
}

/* gen:init_it(Behaviour, Starter, Parent, [Name,] Module, Argument, Options) */
static bool get_behaviour(ErlNifEnv *env, const struct args *args, struct dt_location *call) {
    int module = args->count == 6 ? 3 : 4;

    if (args->count > 0 && is(args->at[0], atom_gen_event)) {
        *call =
            (struct dt_location){.module = atom_gen_event, .function = atom_init_it, .arity = 6};
        return true;
    }
    if (args->count < 5)
        return false;
    if ((args->count == 6 || args->count == 7) && is(args->at[0], atom_gen_server) &&
        get_supervised(env, args->at[module], args->at[module + 1], call))
        return true;
    return set_call(call, env, args->at[module], atom_init);
}

/* proc_lib:init_p(Parent, Ancestors, Module, Function, Args) */
static bool get_started(struct dt_traced *trace, const struct args *args,
                        struct dt_location *call) {
    struct args of;

    if (is(args->at[2], atom_gen) && is(args->at[3], atom_init_it)) {
        of = get_args(trace->env, args->at[4]);
        if (get_behaviour(trace->env, &of, call))
            return true;
    }
    return dt_get_call(trace, args->at[2], args->at[3], args->at[4], call);
}

/* The function of a fun that is applied, or the call itself. */
static const char *get_applied(struct dt_traced *trace, const ERL_NIF_TERM mfa[3],
                               const struct args *args) {
    bool is_fun = is(mfa[0], atom_erlang) && is(mfa[1], atom_apply) && args->count == 2;

    return is_fun ? dt_text_fun(trace->text, trace->env, args->at[0]) : NULL;
}

/* Task.Supervised:noreply(Owner, Callers, {M,F,Args}), and so for every task of Elixir whose
   function is its last argument. */
static const char *get_task(struct dt_traced *trace, const struct args *started) {
    static const char module[] = "Elixir.Task.Supervised";
    char name[sizeof module + 1];
    const ERL_NIF_TERM *mfa;
    int size;

    if (enif_get_atom(trace->env, started->at[2], name, sizeof name, ERL_NIF_LATIN1) !=
            sizeof module ||
        memcmp(name, module, sizeof module) != 0)
        return NULL;
    struct args of = get_args(trace->env, started->at[4]);
    if (of.count == 0 || of.count == MORE ||
        !enif_get_tuple(trace->env, of.at[of.count - 1], &size, &mfa) || size != 3)
        return NULL;
    struct args args = get_args(trace->env, mfa[2]);
    const char *fun = get_applied(trace, mfa, &args);
    return fun ? fun : dt_mfa(trace, of.at[of.count - 1]);
}

static const char *get_initial(struct dt_traced *trace, ERL_NIF_TERM mfa) {
    const ERL_NIF_TERM *el;
    struct dt_location call;
    struct args args;
    const char *fun;
    int size;

    if (!enif_get_tuple(trace->env, mfa, &size, &el) || size != 3)
        return NULL;
    args = get_args(trace->env, el[2]);
    fun = get_applied(trace, el, &args);
    if (is(el[0], atom_proc_lib) && is(el[1], atom_init_p)) {
        if (args.count == 3)
            fun = dt_text_fun(trace->text, trace->env, args.at[2]);
        if (args.count == 5 && (fun = get_task(trace, &args)))
            return fun;
        if (args.count == 5 && get_started(trace, &args, &call) &&
            (fun = dt_location_text(trace, &call)))
            return fun;
    }
    return fun ? fun : dt_mfa(trace, mfa);
}

/* -- The decoders --------------------------------------------------------------------------- */

/* {spawned, Parent, {M,F,Args}} */
enum dt_decoded dt_decode_process_identity(struct dt_traced *trace, union dt_event *event) {
    struct dt_process_identity *e = &event->process_identity;
    ERL_NIF_TERM mfa, node;

    if (!dt_extra(trace, &mfa) || !dt_get_node(trace->env, trace->tracee, &node))
        return DT_UNDECODED;
    DT_TRY(e->pid, dt_id(trace, trace->tracee));
    DT_TRY(e->parent, dt_id(trace, trace->term));
    DT_TRY(e->initial, dt_text_alias(trace->text, get_initial(trace, mfa)));
    DT_TRY(e->node, dt_id(trace, node));
    e->name = e->label = "";
    return DT_DECODED;
}

/* {open, Owner, Name} */
enum dt_decoded dt_decode_port_identity(struct dt_traced *trace, union dt_event *event) {
    struct dt_port_identity *e = &event->port_identity;
    ERL_NIF_TERM name;

    if (!dt_extra(trace, &name))
        return DT_UNDECODED;
    DT_TRY(e->port, dt_id(trace, trace->tracee));
    DT_TRY(e->owner, dt_id(trace, trace->term));
    DT_TRY(e->name, dt_text_name(trace->text, trace->env, name));
    e->os_pid = 0;
    return DT_DECODED;
}
