#include "model/parts/messages/message.h"

#include <string.h>

#include "model/entities/processes.h"
#include "shared/remote_ids.h"

/* Messages of links and monitors contain an exit reason. */
static bool has_reason(const char *text) {
    return g_str_has_prefix(text, "{'EXIT',") || g_str_has_prefix(text, "{'DOWN',");
}

struct message *dt_message_new(struct node *home, struct node *sender_node, struct process *from,
                               struct process *to, const char *text) {
    bool is_remote = sender_node != home;
    size_t size = strlen(text) + 1;
    struct message *m = g_malloc0(sizeof *m + size + (is_remote ? DT_REMOTE_KEY : 0));

    memcpy(m->text, text, size);
    m->key = m->text;
    if (is_remote) {
        dt_remote_key(text, m->text + size);
        m->key = m->text + size;
    }
    m->hash = g_str_hash(m->key);
    m->is_remote = is_remote;
    m->sender_node = is_remote ? sender_node : NULL;
    m->home = home;
    m->arrived = m->ran = DT_NO_VALUE;
    m->seen = (struct dt_message){.number = ++home->world->messages,
                                  .from = from ? &from->seen : NULL,
                                  .to = to ? &to->seen : NULL,
                                  .to_text = "",
                                  .text = m->text,
                                  .label = "",
                                  .timer = "",
                                  .sent = DT_NO_VALUE,
                                  .delivered = DT_NO_VALUE};
    if (has_reason(text))
        m->seen.text = m->shown = g_strdup(dt_world_text(home->world, text));
    if (from)
        dt_process_ref(from);
    if (to)
        dt_process_ref(to);
    return m;
}

void dt_message_end(struct node *node, struct message *m) {
    struct process *from = (struct process *)m->seen.from, *to = dt_receiver(m);

    if (m->token)
        m->token->message = NULL;
    DT_EMIT(node->world, message_gone, &m->seen);
    g_free(m->label);
    g_free(m->to_text);
    g_free(m->shown);
    g_free(m);
    if (from)
        dt_process_unref(from);
    if (to)
        dt_process_unref(to);
}

void dt_message_address(struct message *m, struct process *to) {
    if (m->seen.to)
        return;
    m->seen.to = &to->seen;
    dt_process_ref(to);
}

void dt_message_emit(struct node *node, const struct message *m, bool is_addressed) {
    DT_RUN_HOOKS(node->world, delivered, m->is_remote ? m->sender_node : node,
                 (struct process *)m->seen.from, dt_receiver(m), m->text,
                 is_addressed && m->seen.sent != DT_NO_VALUE);
}

void dt_message_deliver(struct node *node, struct message *m, const struct delivery *d) {
    bool is_addressed = m->seen.to;

    dt_message_address(m, d->to);
    m->seen.delivered = d->time;
    m->seen.matched = d->how;
    DT_EMIT(node->world, delivered, &m->seen);
    if (m->arrived == DT_NO_VALUE)
        dt_message_emit(node, m, is_addressed);
    dt_message_end(node, m);
}
