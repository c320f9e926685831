/* Texts of OTP's `gen` module: requests, replies and exit reasons. */
#pragma once

#include "shared/model_events.h"

enum { DT_REFERENCE = 100 }; /* maximum length of a reference or pid, including the NUL */

struct dt_gen_request {
    char caller[DT_REFERENCE], reference[DT_REFERENCE];
    bool is_alias;    /* of the reference; with an infinite timeout, `gen` uses no alias */
    const char *term; /* including the bracket that ends the message */
};

/* Whether the message is a request. */
bool dt_gen_request(const char *text, struct dt_gen_request *request);
/* Moves past "#Ref<0.1.2.3>". */
bool dt_gen_reference(const char **text, char to[DT_REFERENCE]);
/* Moves past a tag: [alias|#Ref<0.1.2.3>], or the reference alone. */
bool dt_gen_tag(const char **text, char to[DT_REFERENCE], bool *is_alias);
/* A term without the bracket that ends the enclosing message, which a truncated text lacks; to be
   freed by g_free. */
char *dt_gen_inner(const char *text);

/* The outcome of a call whose caller exits with this reason. */
enum dt_outcome dt_gen_outcome(const char *reason);
