/* Distinguishes crashes, orderly exits and results. */
#include "model/entities/life_cycle.h"

#include <string.h>

#include "shared/term.h"

/* The kinds of processes in the table. */
enum kind { any, child, remote_call, connection, global, file, KINDS };

/* Prefixes of the initial calls of OTP's own processes, terminated by NULL. */
static const char *const *const initials[KINDS] = {
    /* A process spawned by erpc or rpc returns its result as its exit reason. An exception is
       raised in the caller. */
    [remote_call] =
        (const char *const[]){"erts_internal:spawn_init/1", "erts_internal:dist_spawn_init/1",
                              "erpc:execute_call/", NULL},
    /* The process of a distribution connection ends with the connection, and so do its socket and,
       during setup, its timer, which are linked to it. `remarked`: both nodes tried to connect, and
       one of the two connections stays. `killed`: a VM that halts also kills its ports.
       `tcp_closed` and `cancel_setup_timer`: OTP 27 and later. */
    [connection] = (const char *const[]){"inet_tcp_dist:", "inet6_tcp_dist:", "inet_tls_dist:",
                                         "inet6_tls_dist:", "dist_util:", NULL},
    /* When nodes connect, `global` starts processes that compare names, and kills those that it no
       longer needs. */
    [global] = (const char *const[]){"#Fun<global.", "global:", NULL},
    /* The process of a file that `file:open` could not open. The caller gets the error. */
    [file] = (const char *const[]){"#Fun<file_io_server.", "file_io_server:", NULL},
};

static const struct {
    enum kind kind;
    const char *reason;
} orderly[] = {
#define ORDERLY(kind, reason) {kind, reason},
#include <model/entities/orderly_exits.h>
};

/* Returns whether the text matches the pattern, in which `*` is any text. */
static bool matches(const char *pattern, const char *text) {
    const char *star = NULL, *after = NULL; /* the last `*`, and the text that it has not taken */
    while (*text) {
        if (*pattern == '*') {
            star = pattern++;
            after = text;
        } else if (*pattern == *text) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star + 1;
            text = ++after;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

static bool begins(const char *text, const char *const *prefixes) {
    while (*prefixes && !g_str_has_prefix(text, *prefixes))
        prefixes++;
    return *prefixes;
}

static bool is_of(const struct process *p, enum kind kind) {
    if (kind == any)
        return true;
    if (p->seen.kind == DT_PORT)
        return kind == connection;
    /* A supervisor unlinks a child before it kills it. */
    if (kind == child)
        return p->parent_unlinked;
    /* The process may have started before the recording. No other process has such reasons. */
    if (kind == remote_call && !*p->seen.initial)
        return true;
    return begins(p->seen.initial, initials[kind]);
}

static bool is_orderly(const struct process *p, const char *reason) {
    for (size_t i = 0; i < G_N_ELEMENTS(orderly); i++)
        if (is_of(p, orderly[i].kind) && matches(orderly[i].reason, reason))
            return true;
    return false;
}

/* -- Signs of a crash ------------------------------------------------------------------- */

/* The classes of the VM's errors, as atoms or tags. A process may pass such a reason on without
   its stack trace, and long reasons are recorded without their end. */
static const char *const errors[] = {
    "badarg",       "badarith",      "badarity",        "badfun",    "badkey",
    "badmap",       "badmatch",      "badrecord",       "badsig",    "case_clause",
    "cond_clause",  "else_clause",   "function_clause", "if_clause", "nocatch",
    "system_limit", "timeout_value", "try_clause",      "undef",     "with_clause",
};

/* Whether the term is an exception of Elixir. From OTP 26 on, its keys have any order. */
static bool is_exception(const char *term) {
    if (!g_str_has_prefix(term, "#{"))
        return false;
    for (const char *s = term + 2, *end; *s && *s != '}'; s = end + (*end == ',')) {
        if (g_str_has_prefix(s, "'__exception__'=>"))
            return true;
        end = dt_term_end(s);
        if (g_str_has_prefix(end, "=>"))
            end = dt_term_end(end + 2);
        if (*end && !strchr(",}", *end))
            return false;
    }
    return false;
}

static bool is_error(const char *reason) {
    const char *end;

    reason += strspn(reason, "{");
    if (is_exception(reason))
        return true;
    end = reason + strspn(reason, "abcdefghijklmnopqrstuvwxyz_");
    for (size_t i = 0; i < G_N_ELEMENTS(errors); i++)
        if (strlen(errors[i]) == (size_t)(end - reason) &&
            strncmp(errors[i], reason, (size_t)(end - reason)) == 0)
            return !*end || strchr(",}", *end);
    return false;
}

/* proc_lib reports each such exit as a crash. */
static bool is_of_proc_lib(const struct process *p) {
    const struct dt_process *parent = p->seen.parent;

    return p->is_of_proc_lib || (parent && g_str_has_prefix(parent->initial, "supervisor:"));
}

enum dt_exit_kind dt_exit_kind(const struct process *p, const char *reason) {
    /* The links of a process that started before the recording are unknown. */
    bool may_be_linked =
        p->seen.began == DT_NO_VALUE || (p->links && g_hash_table_size(p->links) > 0);

    if (is_orderly(p, reason))
        return DT_ORDERLY;
    if (p->seen.kind == DT_PORT || is_error(reason) || dt_term_has_stack(reason) ||
        is_of_proc_lib(p) || (p->registered && may_be_linked))
        return DT_CRASH;
    /* Without a link, only a monitor passes the reason on. */
    return may_be_linked ? DT_RESULT_OR_CRASH : DT_RESULT;
}
