/* Distinguishes crashes from orderly exits. */
#include "model/entities/life_cycle.h"

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

bool dt_is_crash(const struct process *p, const char *reason) {
    for (size_t i = 0; i < G_N_ELEMENTS(orderly); i++)
        if (is_of(p, orderly[i].kind) && matches(orderly[i].reason, reason))
            return false;
    return true;
}
