/* Texts of calls: requests and replies by the protocols of protocols.def, and exit reasons. */
#pragma once

#include "shared/model_events.h"

enum { DT_REFERENCE = 100 }; /* maximum length of a reference or pid, including the NUL */

struct dt_protocol {
    const char *server, *request, *reply, *loop, *input;
};

enum dt_protocol_number {
#define PROTOCOL(name, server, request, reply, loop, input) DT_PROTOCOL_##name,
#include "model/parts/server_calls/protocols.def"
    DT_PROTOCOLS
};
extern const struct dt_protocol dt_protocols[DT_PROTOCOLS];

/* A request or a reply. */
struct dt_call_text {
    enum dt_protocol_number protocol;
    char caller[DT_REFERENCE]; /* "" in a reply */
    char id[DT_REFERENCE];     /* reference, alias or pid that identifies the call; "" if none */
    bool is_alias;             /* of the reference; with an infinite timeout, `gen` uses no alias */
    const char *term;          /* including the bracket that ends the message */
};

/* Whether the message is a request to this server that will be answered without input. */
bool dt_call_request(const char *text, const struct dt_process *server, struct dt_call_text *call);
/* Whether the message looks like a reply: by the first protocol whose replies look so. */
bool dt_call_reply(const char *text, struct dt_call_text *call);
/* Whether replies of the two protocols look the same. */
bool dt_call_replies_match(enum dt_protocol_number a, enum dt_protocol_number b);
/* Whether it is the loop of a server of one of the protocols. */
bool dt_call_is_loop(const char *function);

/* Moves past "#Ref<0.1.2.3>". */
bool dt_gen_reference(const char **text, char to[DT_REFERENCE]);
/* A term without the bracket that ends the enclosing message, which a truncated text lacks; to be
   freed by g_free. */
char *dt_gen_inner(const char *text);

/* The outcome of a call of `gen` whose caller exits with this reason. */
enum dt_outcome dt_gen_outcome(const char *reason);
