#include "model/parts/messages/port_answers.h"

#include <string.h>

#include "shared/texts.h"

/* The replacement of an identifier in a text with hidden contents. */
#define PID_SHAPE "pid()"
#define PORT_SHAPE "port()"

enum { IDENTIFIER_MAX = 64 };

/* Of a port. */
struct answers {
    unsigned connects;                                /* requests by message, not yet answered */
    char closed[IDENTIFIER_MAX + sizeof "{,closed}"]; /* the answer to a close by message; "" */
};

static struct answers *answers_of(struct process *port) {
    if (!port->answers)
        port->answers = g_new0(struct answers, 1);
    return port->answers;
}

void dt_answers_requested(struct process *port, const char *text) {
    char owner[IDENTIFIER_MAX];
    bool is_shape;

    if (!dt_skip(&text, "{"))
        return;
    is_shape = dt_skip(&text, PID_SHAPE);
    if (!is_shape && !dt_take(&text, "<", owner, sizeof owner))
        return;
    if (dt_skip(&text, ",{connect,"))
        answers_of(port)->connects++;
    else if (strcmp(text, ",close}") == 0)
        g_snprintf(answers_of(port)->closed, sizeof answers_of(port)->closed, "{%s,closed}",
                   is_shape ? PORT_SHAPE : port->pid);
}

const char *dt_answers_text(struct process *port, const char *text) {
    struct answers *answers = port->answers;
    const char *rest = text;

    if (answers && *answers->closed && strcmp(text, "closed") == 0)
        return answers->closed;
    if (!dt_skip(&rest, "{") || (!dt_skip(&rest, port->pid) && !dt_skip(&rest, PORT_SHAPE)))
        return text;
    if (strcmp(rest, ",connected}") == 0)
        return answers && answers->connects && answers->connects-- ? text : NULL;
    return dt_skip(&rest, ",{control,") || dt_skip(&rest, ",{call,") ? NULL : text;
}
