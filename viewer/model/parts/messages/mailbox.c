#include "model/parts/messages/mailbox.h"

void dt_mailbox_changed(struct process *p, int by) {
    p->seen.mailbox += by;
    DT_EMIT(p->node->world, mailbox, &p->seen, p->node->world->now);
}
