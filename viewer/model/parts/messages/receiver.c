#include "model/parts/messages/receiver.h"

#include "model/entities/registered_names.h"
#include "model/entities/peers.h"
#include "model/entities/processes.h"
#include "model/parts/server_calls/server_calls.h"
#include "shared/elixir.h"
#include "shared/remote_ids.h"

static void find_named(struct receiver *found, const char *recorded) {
    g_autofree char *of_elixir = dt_elixir_alias(recorded);
    const char *name = of_elixir ? of_elixir : recorded;

    found->process = dt_process_named(found->home, name);
    found->is_dead = !found->process && dt_name_is_free(found->home, name);
}

/* {shop,'b@host'} */
static void find_in_node(struct receiver *found, const char *text) {
    struct node *home;
    char *name, *node;

    if (!dt_remote_name(text, &name, &node))
        return;
    home = dt_peer_named(found->home, node);
    if (home) {
        found->home = home;
        find_named(found, name);
    }
    g_free(name);
    g_free(node);
}

struct receiver dt_receiver_of(struct node *node, const char *text) {
    struct receiver found = {NULL, node, false};
    struct node *home;

    if (dt_is_identifier(text)) {
        found.process = dt_process_anywhere(node, text);
        found.is_dead = found.process && found.process->has_exited;
    } else if (*text == '{') {
        find_in_node(&found, text);
    } else if (*text == '#') {
        found.process = dt_alias(node, text);
        home = dt_home(node, text);
        if (home)
            found.home = home;
    } else {
        find_named(&found, text);
    }
    if (found.process)
        found.home = found.process->node;
    return found;
}
