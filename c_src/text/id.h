/*
 * Identifiers and locations as text: never cut, as Erlang writes them.
 */
#ifndef DT_TEXT_ID_H
#define DT_TEXT_ID_H

#include "text/put.h"

/* Sets the list of words that Erlang quotes as atoms. They depend on the release, so Erlang passes
   them when it loads the library. */
bool dt_id_reserve(ErlNifEnv *env, ERL_NIF_TERM words);

/* For a text that is not cached. */
const char *dt_text_new_id(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM id);

/* A pid, port, reference, atom or {Name,Node}. */
static inline const char *dt_text_id(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM id) {
    const struct dt_cached_word *cached = dt_cache_find_word(text->cache, DT_AS_ERLANG, id);
    char *start = text->next;

    if (cached && dt_put_entry(text, cached->text, sizeof cached->text, cached->size + 1U))
        return start;
    return dt_text_new_id(text, env, id);
}

/* More arguments than a function can have: a process may be spawned with that many, but does not
   start. */
enum { DT_ARITY_MORE = 256 };

/* For a text that is not cached. */
const char *dt_text_new_mfa(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM module,
                            ERL_NIF_TERM function, unsigned long arity);

/* module:function/arity; DT_ARITY_MORE is written "...". */
static inline const char *dt_text_mfa(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM module,
                                      ERL_NIF_TERM function, unsigned long arity) {
    const struct dt_cached_call *cached = dt_cache_find_call(text->cache, module, function, arity);
    char *start = text->next;

    if (cached && dt_put_entry(text, cached->text, sizeof cached->text, cached->size + 1U))
        return start;
    return dt_text_new_mfa(text, env, module, function, arity);
}

/* Appends a pid, port or reference as a part of another text. */
bool dt_put_handle(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM handle);

#endif
