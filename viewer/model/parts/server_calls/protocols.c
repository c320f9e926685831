#include "model/parts/server_calls/protocols.h"

#include <string.h>

#include <glib.h>

#include "shared/texts.h"

const struct dt_protocol dt_protocols[DT_PROTOCOLS] = {
#define PROTOCOL(name, server, request, reply, loop, input)                                        \
    [DT_PROTOCOL_##name] = {server, request, reply, loop, input},
#include "model/parts/server_calls/protocols.def"
};

bool dt_gen_reference(const char **text, char to[DT_REFERENCE]) {
    return dt_take(text, "#Ref<", to, DT_REFERENCE);
}

/* A tag: [alias|#Ref<0.1.2.3>], or the reference alone. */
static bool tag(const char **text, struct dt_call_text *call) {
    call->is_alias = dt_skip(text, "[alias|");

    return dt_gen_reference(text, call->id) && (!call->is_alias || dt_skip(text, "]"));
}

static bool pid(const char **text, char to[DT_REFERENCE]) {
    return dt_take(text, "<", to, DT_REFERENCE);
}

static bool atom(const char **text) {
    size_t size = **text == '\'' ? dt_quoted(*text) : strcspn(*text, ",}");

    *text += size;
    return size > 0;
}

/* Skips the text that a letter of a pattern matches. */
static bool variable(char letter, const char **text, struct dt_call_text *call) {
    char server[DT_REFERENCE];

    switch (letter) {
    case 'P':
        return pid(text, call->caller);
    case 'T':
        return tag(text, call);
    case 'R':
        return dt_gen_reference(text, call->id) || pid(text, call->id);
    case 'S':
        return pid(text, server);
    default:
        return atom(text);
    }
}

/* Whether the text begins like the pattern; what follows is the term. */
static bool matches(const char *pattern, const char *text, struct dt_call_text *call) {
    *call->caller = *call->id = '\0';
    call->is_alias = false;
    for (; *pattern; pattern++) {
        if (g_ascii_isupper(*pattern)) {
            if (!variable(*pattern, &text, call))
                return false;
        } else if (*text++ != *pattern) {
            return false;
        }
    }
    call->term = text;
    return true;
}

bool dt_call_request(const char *text, const struct dt_process *server, struct dt_call_text *call) {
    for (unsigned i = 0; i < DT_PROTOCOLS; i++) {
        const struct dt_protocol *protocol = &dt_protocols[i];

        if ((*protocol->server && strcmp(protocol->server, server->name) != 0) ||
            !matches(protocol->request, text, call))
            continue;
        call->protocol = i;
        return !*protocol->input || !g_str_has_prefix(call->term, protocol->input);
    }
    return false;
}

bool dt_call_reply(const char *text, struct dt_call_text *call) {
    for (unsigned i = 0; i < DT_PROTOCOLS; i++)
        if (matches(dt_protocols[i].reply, text, call)) {
            call->protocol = i;
            return true;
        }
    return false;
}

bool dt_call_replies_match(enum dt_protocol_number a, enum dt_protocol_number b) {
    return strcmp(dt_protocols[a].reply, dt_protocols[b].reply) == 0;
}

bool dt_call_is_loop(const char *function) {
    for (unsigned i = 0; i < DT_PROTOCOLS; i++)
        if (*dt_protocols[i].loop && g_str_has_prefix(function, dt_protocols[i].loop))
            return true;
    return false;
}

char *dt_gen_inner(const char *text) {
    size_t size = strlen(text);

    return g_strndup(text, size && text[size - 1] == '}' ? size - 1 : size);
}

/* {timeout,{gen_server,call,[...]}}, also of Elixir, and with the stack trace of an error. */
static bool is_reason(const char *reason, const char *first) {
    if (g_str_has_prefix(reason, "{{"))
        reason++;
    return dt_skip(&reason, "{") && dt_skip(&reason, first) &&
           (dt_skip(&reason, ",{gen_") || dt_skip(&reason, ",{'Elixir.GenServer',"));
}

enum dt_outcome dt_gen_outcome(const char *reason) {
    if (is_reason(reason, "timeout"))
        return DT_OUTCOME_TIMEOUT;
    return is_reason(reason, "noproc") ? DT_OUTCOME_DOWN : DT_OUTCOME_UNKNOWN;
}
