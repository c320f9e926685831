#include "model/parts/server_calls/gen_messages.h"

#include <string.h>

#include <glib.h>

#include "shared/texts.h"

bool dt_gen_reference(const char **text, char to[DT_REFERENCE]) {
    return dt_take(text, "#Ref<", to, DT_REFERENCE);
}

bool dt_gen_tag(const char **text, char to[DT_REFERENCE], bool *is_alias) {
    *is_alias = dt_skip(text, "[alias|");

    return dt_gen_reference(text, to) && (!*is_alias || dt_skip(text, "]"));
}

bool dt_gen_request(const char *text, struct dt_gen_request *request) {
    if (!dt_skip(&text, "{'$gen_call',{") ||
        !dt_take(&text, "<", request->caller, sizeof request->caller) || !dt_skip(&text, ",") ||
        !dt_gen_tag(&text, request->reference, &request->is_alias) || !dt_skip(&text, "},"))
        return false;
    request->term = text;
    return true;
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
