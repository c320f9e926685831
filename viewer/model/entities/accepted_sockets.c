#include "model/entities/accepted_sockets.h"

#include <string.h>

#include "model/entities/processes.h"
#include "shared/texts.h"

/* The driver of these listeners. */
static const char driver[] = "tcp_inet";

/* {inet_async,#Port<0.12>,25,{ok,#Port<0.55>}} from #Port<0.12> */
void dt_accepted(struct node *node, const struct dt_message_send *e) {
    const char *at = e->message;
    char listener[64], port[64];

    if (!dt_skip(&at, "{inet_async,") || !dt_take(&at, "#Port<", listener, sizeof listener) ||
        strcmp(listener, e->from) != 0)
        return;
    at = strchr(at, '{');
    if (!at || !dt_skip(&at, "{ok,") || !dt_take(&at, "#Port<", port, sizeof port) ||
        strcmp(at, "}}") != 0)
        return;
    dt_process_create(node, port,
                      &(struct identity){dt_process_of(node, listener), "", driver, ""});
}
