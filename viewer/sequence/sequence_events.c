#include "sequence/sequence_events.h"

#include <string.h>

#include "shared/texts.h"

static struct dt_party *keep(struct dt_party *party) {
    party->references++;
    return party;
}

static void drop(void *data) {
    struct dt_party *party = data;

    if (!party || --party->references)
        return;
    g_free(party->show);
    g_free(party->pid);
    g_free(party);
}

static void clear_step(void *data) {
    struct dt_step *step = data;

    drop(step->from);
    drop(step->to);
    g_free(step->text);
}

struct dt_sequence *dt_sequence_new(void) {
    struct dt_sequence *s = g_new0(struct dt_sequence, 1);

    s->begin = DT_NO_VALUE;
    s->parties = g_hash_table_new_full(NULL, NULL, NULL, drop);
    s->others = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, drop);
    s->nodes = g_ptr_array_new_with_free_func(g_free);
    s->steps = g_array_new(false, false, sizeof(struct dt_step));
    g_array_set_clear_func(s->steps, clear_step);
    return s;
}

void dt_sequence_free(struct dt_sequence *s) {
    if (!s)
        return;
    g_array_free(s->steps, true);
    g_hash_table_destroy(s->parties);
    g_hash_table_destroy(s->others);
    g_ptr_array_free(s->nodes, true);
    g_strfreev(s->processes);
    g_free(s->label);
    g_free(s);
}

/* -- Participants ------------------------------------------------------------------------- */

static bool is_chosen_by(const struct dt_sequence *s, const struct dt_process *process) {
    for (char **name = s->processes; *name; name++)
        if (strcmp(*name, process->pid) == 0 || strcmp(*name, process->name) == 0)
            return true;
    return false;
}

static void name(const struct dt_sequence *s, struct dt_party *party,
                 const struct dt_process *process) {
    party->was_named |= is_chosen_by(s, process);
    dt_set(&party->show, process->show);
}

static struct dt_party *new_party(const char *pid) {
    struct dt_party *party = g_new0(struct dt_party, 1);

    party->references = 1;
    party->pid = g_strdup(pid);
    return party;
}

static struct dt_party *party_of(struct dt_sequence *s, struct dt_process *process) {
    struct dt_party *party = g_hash_table_lookup(s->parties, process);

    if (party)
        return party;
    party = new_party(process->pid);
    party->is_process = true;
    party->node = process->node->number;
    name(s, party, process);
    g_hash_table_insert(s->parties, process, party);
    return party;
}

/* The participant for a receiver that is not a known process, or for unknown senders. */
static struct dt_party *other(struct dt_sequence *s, const char *text) {
    struct dt_party *party = g_hash_table_lookup(s->others, text);

    if (party)
        return party;
    party = new_party("");
    party->show = g_strdup(text);
    g_hash_table_insert(s->others, g_strdup(text), party);
    return party;
}

static bool is_in_time(const struct dt_sequence *s, int64_t time) {
    return time - s->begin >= s->from && time - s->begin <= s->to;
}

/* An end of a message: a process, or a text if the trace has no process. */
struct end {
    struct dt_process *process;
    const char *text;
};

static bool is_end_chosen(struct dt_sequence *s, const struct end *end) {
    if (end->process)
        return party_of(s, end->process)->was_named;
    return g_strv_contains((const char *const *)s->processes, end->text);
}

static bool is_chosen(struct dt_sequence *s, const struct end *from, const struct end *to) {
    unsigned n = g_strv_length(s->processes);

    if (n == 0)
        return true;
    bool is_from = is_end_chosen(s, from), is_to = is_end_chosen(s, to);
    return n == 1 ? is_from || is_to : is_from && is_to;
}

static struct dt_party *party_at(struct dt_sequence *s, const struct end *end) {
    return end->process ? party_of(s, end->process) : other(s, end->text);
}

/* -- Steps ------------------------------------------------------------------------------ */

static bool is_before(const struct dt_step *a, const struct dt_step *b) {
    if (a->time != b->time)
        return a->time < b->time;
    return a->kind != b->kind ? a->kind < b->kind : a->number < b->number;
}

/* Takes ownership of the step's text, and references to its parties. */
static void add(struct dt_sequence *s, struct dt_step step) {
    unsigned low = 0, high = s->steps->len;

    while (low < high) {
        unsigned middle = (low + high) / 2;

        if (is_before(&step, &g_array_index(s->steps, struct dt_step, middle)))
            high = middle;
        else
            low = middle + 1;
    }
    keep(step.from);
    if (step.to)
        keep(step.to);
    g_array_insert_val(s->steps, low, step);
    if (s->steps->len <= s->limit)
        return;
    const struct dt_step *last = &g_array_index(s->steps, struct dt_step, s->steps->len - 1);
    s->left_out += last->kind == DT_STEP_MESSAGE;
    g_array_set_size(s->steps, s->limit);
}

/* Whether a step at this time fits. If the diagram is full, later steps are only counted. */
static bool has_room(const struct dt_sequence *s, int64_t time) {
    unsigned n = s->steps->len;

    return n < s->limit || time < g_array_index(s->steps, struct dt_step, n - 1).time;
}

static void node(void *data, struct dt_node *node) {
    struct dt_sequence *s = data;

    if (s->begin == DT_NO_VALUE)
        s->begin = node->first;
    if (node->number >= s->nodes->len)
        g_ptr_array_set_size(s->nodes, (int)node->number + 1);
    dt_set((char **)&g_ptr_array_index(s->nodes, node->number), node->name);
}

static void process(void *data, struct dt_process *process, int64_t time) {
    (void)time;
    struct dt_sequence *s = data;
    struct dt_party *party = g_hash_table_lookup(s->parties, process);
    if (party)
        name(s, party, process);
    else if (is_chosen_by(s, process))
        party_of(s, process);
}

static void process_gone(void *data, struct dt_process *process) {
    struct dt_sequence *s = data;

    g_hash_table_remove(s->parties, process);
}

static void message_gone(void *data, struct dt_message *m) {
    struct dt_sequence *s = data;
    int64_t time = m->sent != DT_NO_VALUE ? m->sent : m->delivered;

    s->messages++;
    if (!is_in_time(s, time) || (s->label && strcmp(s->label, m->label) != 0))
        return;
    struct end from = {m->from, *m->timer ? m->timer : "unknown"};
    struct end to = {m->to, *m->to_text ? m->to_text : "unknown"};
    if (!is_chosen(s, &from, &to))
        return;
    if (!has_room(s, time)) {
        s->left_out++;
        return;
    }
    add(s, (struct dt_step){.kind = DT_STEP_MESSAGE,
                            .time = time,
                            .number = m->number,
                            .from = party_at(s, &from),
                            .to = party_at(s, &to),
                            .text = g_strdup(m->text),
                            .inferred = dt_is_inferred(m->matched),
                            .is_early = m->matched == DT_MATCHED_EARLY,
                            .is_dead = m->is_dead});
}

/* Only exits of processes in the diagram: selected ones, or those that have sent or received. */
static void process_exited(void *data, const struct dt_exit *e) {
    struct dt_sequence *s = data;
    struct dt_party *party = g_hash_table_lookup(s->parties, e->process);
    bool is_of_some = s->processes[0];

    if (!party || (is_of_some && !party->was_named) || !is_in_time(s, e->time) ||
        !has_room(s, e->time))
        return;
    add(s, (struct dt_step){
               .kind = DT_STEP_EXIT, .time = e->time, .from = party, .text = g_strdup(e->reason)});
}

const struct dt_sink dt_sequence_collector = {
    .node = node,
    .node_gone = node,
    .process = process,
    .process_named = process,
    .process_exited = process_exited,
    .process_gone = process_gone,
    .message_gone = message_gone,
};
