#include "model/parts/messages/tokens.h"

#include <string.h>

enum { TOKENS_MAX = 10000 };

struct tokens {
    GHashTable *all; /* set of struct token */
    GQueue by_age;
};

static unsigned hash_token(const void *data) {
    const struct token *token = data;

    return g_str_hash(token->label) ^ (unsigned)token->serial ^ (unsigned)token->from << 16;
}

static gboolean equal_tokens(const void *a, const void *b) {
    const struct token *x = a, *y = b;

    return x->serial == y->serial && x->from == y->from && strcmp(x->label, y->label) == 0;
}

static void free_token(void *data) {
    struct token *token = data;

    if (token->message)
        token->message->token = NULL;
    g_free(token->label);
    g_free(token);
}

static void remove_token(struct tokens *all, struct token *token) {
    g_queue_delete_link(&all->by_age, token->link);
    g_hash_table_remove(all->all, token);
}

void dt_token_add(struct message *m, const char *label, uint64_t serial) {
    struct tokens *all = m->home->tokens;
    struct token *token = g_new0(struct token, 1), *former;

    token->serial = serial;
    token->from = m->seen.from ? m->seen.from->number : 0;
    token->label = g_strdup(label);
    token->message = m;
    m->token = token;
    m->seen.label = m->label = g_strdup(label);
    /* A counter may restart: the later token replaces the earlier one. */
    former = g_hash_table_lookup(all->all, token);
    if (former)
        remove_token(all, former);
    g_hash_table_add(all->all, token);
    g_queue_push_tail(&all->by_age, token);
    token->link = all->by_age.tail;
    if (all->by_age.length > TOKENS_MAX)
        remove_token(all, g_queue_peek_head(&all->by_age));
}

struct token *dt_token_find(const struct node *node, const struct process *from, const char *label,
                            uint64_t serial) {
    struct token wanted = {
        .serial = serial, .from = from ? from->seen.number : 0, .label = (char *)label};

    return g_hash_table_lookup(node->tokens->all, &wanted);
}

void dt_tokens_new(struct node *node) {
    struct tokens *all = node->tokens = g_new0(struct tokens, 1);

    all->all = g_hash_table_new_full(hash_token, equal_tokens, free_token, NULL);
}

void dt_tokens_free(struct node *node) {
    g_queue_clear(&node->tokens->by_age);
    g_hash_table_destroy(node->tokens->all);
    g_free(node->tokens);
}
