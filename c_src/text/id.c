#include "text/id.h"

#include <string.h>

#include "text/put.h"

/*
 * The runtime's %T writes pids, ports, references and almost all atoms as
 * Erlang does. For identifiers, two differences in atoms are corrected here:
 * it does not quote reserved words, and quotes names with an @ (node names).
 */

enum { RESERVED_MAX = 64 };

static ERL_NIF_TERM reserved[RESERVED_MAX];
static unsigned reserved_count;

bool dt_id_reserve(ErlNifEnv *env, ERL_NIF_TERM words) {
    ERL_NIF_TERM word;
    unsigned count = 0;

    while (count < RESERVED_MAX && enif_get_list_cell(env, words, &word, &words)) {
        if (!enif_is_atom(env, word))
            return false;
        reserved[count++] = word;
    }
    reserved_count = count;
    return enif_is_empty_list(env, words);
}

static bool is_reserved(ERL_NIF_TERM atom) {
    for (unsigned i = 0; i < reserved_count; i++)
        if (reserved[i] == atom)
            return true;
    return false;
}

bool dt_put_handle(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM handle) {
    char *start = text->next;
    ErlNifPid pid;
    ErlNifPort port;

    if (dt_put_cached(text, DT_AS_BOTH, handle))
        return true;
    if (!dt_put_runtime(text, handle))
        return false;
    if (enif_get_local_pid(env, handle, &pid) || enif_get_local_port(env, handle, &port))
        dt_cache_store_word(text->cache, DT_AS_BOTH, handle, start, (size_t)(text->next - start));
    return true;
}

/*
 * The syntax of unquoted atoms: letters and digits of Latin-1, _ and @, a
 * lower-case letter first. In UTF-8 the letters past ASCII are C3 80 to C3 BF
 * without C3 97 and C3 B7 (the signs × and ÷); the lower-case ones begin at C3 9F.
 */
static bool is_plain_name(const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool lower = c >= 'a' && c <= 'z';
        bool plain =
            lower || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '@';

        if (c == 0xC3 && i + 1 < n) {
            unsigned char d = (unsigned char)s[i + 1];
            plain = d != 0x97 && d != 0xB7;
            lower = plain && d >= 0x9F;
        }
        if (!plain || (i == 0 && !lower))
            return false;
        if (c == 0xC3)
            i++;
    }
    return n > 0;
}

/* The escapes of %T in a quoted atom, and those of Erlang. */
static const struct {
    const char *from, *to;
} escapes[] = {
    {"\\\\", "\\\\"}, /* an escaped backslash does not start another escape */
    {"\\033", "\\e"},
    {"\x7F", "\\d"},
};

static bool put_escaped(struct dt_text *text, const char *s) {
    enum { ESCAPES = sizeof escapes / sizeof *escapes };

    while (*s) {
        size_t i = 0;

        while (i < ESCAPES && strncmp(s, escapes[i].from, strlen(escapes[i].from)) != 0)
            i++;
        if (!(i < ESCAPES ? dt_put_string(text, escapes[i].to) : dt_put(text, s, 1)))
            return false;
        s += i < ESCAPES ? strlen(escapes[i].from) : 1;
    }
    return true;
}

/* Sets `spellings` to DT_AS_BOTH if the runtime's text equals that of Erlang. */
static bool put_new_atom(struct dt_text *text, ERL_NIF_TERM atom, enum dt_spelling *spellings) {
    char raw[DT_ATOM_MAX + 1];
    int n;

    n = enif_snprintf(raw, sizeof raw, "%T", atom);
    if (n <= 0 || (size_t)n >= sizeof raw)
        return false;
    *spellings = DT_AS_ERLANG;
    if (is_reserved(atom))
        return dt_put_string(text, "'") && dt_put_string(text, raw) && dt_put_string(text, "'");
    if (raw[0] != '\'') {
        *spellings = DT_AS_BOTH;
        return dt_put(text, raw, (size_t)n);
    }
    if (is_plain_name(raw + 1, (size_t)n - 2))
        return dt_put(text, raw + 1, (size_t)n - 2);
    return put_escaped(text, raw);
}

static bool put_atom(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM atom) {
    char *start = text->next;
    enum dt_spelling spellings;

    if (!enif_is_atom(env, atom))
        return false;
    if (dt_put_cached(text, DT_AS_ERLANG, atom))
        return true;
    if (!put_new_atom(text, atom, &spellings))
        return false;
    dt_cache_store_word(text->cache, spellings, atom, start, (size_t)(text->next - start));
    return true;
}

static bool put_new_id(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM id) {
    const ERL_NIF_TERM *name_node;
    int arity;

    if (enif_is_pid(env, id) || enif_is_port(env, id) || enif_is_ref(env, id))
        return dt_put_handle(text, env, id);
    if (enif_get_tuple(env, id, &arity, &name_node) && arity == 2)
        return dt_put_string(text, "{") && put_atom(text, env, name_node[0]) &&
               dt_put_string(text, ",") && put_atom(text, env, name_node[1]) &&
               dt_put_string(text, "}");
    return put_atom(text, env, id);
}

const char *dt_text_new_id(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM id) {
    char *start = text->next;

    return dt_put_end(text, start, put_new_id(text, env, id));
}

static bool put_new_mfa(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM module,
                        ERL_NIF_TERM function, unsigned long arity) {
    char *start = text->next;

    if (!(put_atom(text, env, module) && dt_put_string(text, ":") &&
          put_atom(text, env, function) && dt_put_string(text, "/") &&
          (arity == DT_ARITY_MORE ? dt_put_string(text, "...") : dt_put_number(text, arity))))
        return false;
    dt_cache_store_call(text->cache, module, function, arity, start, (size_t)(text->next - start));
    return true;
}

const char *dt_text_new_mfa(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM module,
                            ERL_NIF_TERM function, unsigned long arity) {
    char *start = text->next;

    return dt_put_end(text, start, put_new_mfa(text, env, module, function, arity));
}
