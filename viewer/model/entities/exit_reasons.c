/* Distinguishes crashes from orderly exits. */
#include "model/entities/life_cycle.h"

#include <string.h>

#include "shared/term.h"

/* Texts, terminated by NULL. */
typedef const char *const texts[];

/* Reasons of any process. */
static texts orderly = {"normal", "shutdown", NULL};
static texts orderly_begin = {"{shutdown,", NULL};

/* A process spawned by erpc or rpc returns its result as its exit reason. An exception is raised in
   the caller. */
static texts remote_calls = {"erts_internal:spawn_init/1", "erts_internal:dist_spawn_init/1",
                             "erpc:execute_call/", NULL};
static texts results = {"{#Ref<..>,return,", "{#Ref<..>,throw,", "{#Ref<..>,error,",
                        "{#Ref<..>,exit,", NULL};

/* The process of a distribution connection ends with the connection, and so do its socket and,
   during setup, its timer, which are linked to it. `remarked`: both nodes tried to connect, and one
   of the two connections stays. `killed`: a VM that halts also kills its ports. `tcp_closed` and
   `cancel_setup_timer`: OTP 27 and later. */
static texts connections = {
    "inet_tcp_dist:", "inet6_tcp_dist:", "inet_tls_dist:", "inet6_tls_dist:", "dist_util:", NULL};
static texts closed = {"connection_closed",     "disconnect", "killed",
                       "net_kernel_terminated", "remarked",   "tcp_closed",
                       "cancel_setup_timer",    NULL};

/* When nodes connect, `global` starts processes that compare names, and kills those that it no
   longer needs. */
static texts of_global = {"#Fun<global.", "global:", NULL};
static texts killed = {"killed", NULL};

/* Regular ends of OTP's own processes: prefixes of initial calls and reasons. `or_unknown`: the
   reason suffices if the recording does not have the initial call, because the process started
   before it. */
static const struct {
    const char *const *initials, *const *reasons;
    bool or_unknown;
} of_otp[] = {
    {remote_calls, results, true},
    {connections, closed, false},
    {of_global, killed, false},
};

static bool is_one(const char *text, texts of) {
    while (*of && strcmp(text, *of) != 0)
        of++;
    return *of;
}

static bool begins(const char *text, texts of) {
    while (*of && !g_str_has_prefix(text, *of))
        of++;
    return *of;
}

static bool is_of_otp(const struct process *p, const char *reason) {
    if (p->seen.kind == DT_PORT)
        return is_one(reason, closed);
    g_autofree char *folded = dt_term_fold(reason);
    for (size_t i = 0; i < G_N_ELEMENTS(of_otp); i++) {
        bool is_its =
            *p->seen.initial ? begins(p->seen.initial, of_otp[i].initials) : of_otp[i].or_unknown;

        if (is_its && begins(folded, of_otp[i].reasons))
            return true;
    }
    return false;
}

bool dt_is_crash(const struct process *p, const char *reason) {
    if (is_one(reason, orderly) || begins(reason, orderly_begin) || is_of_otp(p, reason))
        return false;
    return strcmp(reason, "killed") != 0 || !p->parent_unlinked;
}
