#include "model/entities/ends.h"

#include <string.h>

#include "shared/term.h"

/* Ends of whatever process. */
static const char *const orderly[] = {"normal", "shutdown", "{shutdown,"};

/*
 * Ends of OTP's own processes: initial call and reason, both by how they begin.
 *
 * A process that erpc and rpc have spawned returns its result as the reason of its exit. An
 * exception is the caller's, who gets it as one.
 *
 * The process of a connection to another node ends with it: closed by the other side, by this one,
 * or before it was up.
 */
static const struct {
    const char *initial, *reason;
} of_otp[] = {
#define RESULTS(initial)                                                                           \
    {initial, "{#Ref<..>,return,"}, {initial, "{#Ref<..>,throw,"}, {initial, "{#Ref<..>,error,"},  \
    {                                                                                              \
        initial, "{#Ref<..>,exit,"                                                                 \
    }
    RESULTS("erts_internal:spawn_init/1"), RESULTS("erts_internal:dist_spawn_init/1"),
    RESULTS("erpc:execute_call/"),
#undef RESULTS
#define CONNECTION(module)                                                                         \
    {module, "connection_closed"}, {module, "disconnect"}, {module, "killed"}, {                   \
        module, "net_kernel_terminated"                                                            \
    }
    CONNECTION("inet_tcp_dist:"),          CONNECTION("inet6_tcp_dist:"),
    CONNECTION("inet_tls_dist:"),          CONNECTION("inet6_tls_dist:"),
#undef CONNECTION
};

static bool is_orderly(const char *reason) {
    for (size_t i = 0; i < G_N_ELEMENTS(orderly); i++)
        if (strcmp(reason, orderly[i]) == 0 ||
            (orderly[i][0] == '{' && g_str_has_prefix(reason, orderly[i])))
            return true;
    return false;
}

static bool is_of_otp(const struct process *p, const char *reason) {
    g_autofree char *folded = dt_term_fold(reason);
    for (size_t i = 0; i < G_N_ELEMENTS(of_otp); i++)
        if (g_str_has_prefix(p->seen.initial, of_otp[i].initial) &&
            g_str_has_prefix(folded, of_otp[i].reason))
            return true;
    return false;
}

bool dt_is_crash(const struct process *p, const char *reason) {
    if (is_orderly(reason) || is_of_otp(p, reason))
        return false;
    /* A VM that halts kills its ports. */
    return strcmp(reason, "killed") != 0 || (!p->parent_unlinked && p->seen.kind != DT_PORT);
}
