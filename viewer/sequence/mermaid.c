/* A sequence diagram in the syntax of Mermaid. */
#include "sequence/sequence_events.h"

#include <string.h>

enum { TEXT_CHARS = 80, NAME_CHARS = 60, REMARK_CHARS = 200 };

/* Mermaid has no quotes, only entities: #59; is a semicolon. Characters that are special in its
 * grammar, in HTML or in mathematics ($$) become entities; control characters become spaces. */
static void put(GString *to, const char *text, long most) {
    static const char own[] = ";#:<>&\"%\\`";
    long n = 0;

    while (*text) {
        gunichar c = g_utf8_get_char_validated(text, -1);
        bool is_valid = c != (gunichar)-1 && c != (gunichar)-2;

        if (n++ == most) {
            g_string_append(to, "...");
            return;
        }
        if (!is_valid)
            g_string_append_unichar(to, 0xFFFD);
        else if (c < 0x80 && (strchr(own, (int)c) || (c == '$' && text[1] == '$')))
            g_string_append_printf(to, "#%u;", c);
        else if (!g_unichar_isprint(c))
            g_string_append_c(to, ' ');
        else
            g_string_append_unichar(to, c);
        text = is_valid ? g_utf8_next_char(text) : text + 1;
    }
}

static void number(struct dt_party *party, GPtrArray *parties) {
    if (!party || party->alias)
        return;
    g_ptr_array_add(parties, party);
    party->alias = parties->len;
}

static bool has_two_nodes(const GPtrArray *parties) {
    const struct dt_party *first = NULL;

    for (unsigned i = 0; i < parties->len; i++) {
        const struct dt_party *party = g_ptr_array_index(parties, i);

        if (!party->is_process)
            continue;
        if (first && first->node != party->node)
            return true;
        first = party;
    }
    return false;
}

static void participants(GString *to, const struct dt_sequence *s, const GPtrArray *parties) {
    bool is_of_nodes = has_two_nodes(parties);

    for (unsigned i = 0; i < parties->len; i++) {
        const struct dt_party *party = g_ptr_array_index(parties, i);
        g_autoptr(GString) text = g_string_new(party->show);

        if (!strstr(party->show, party->pid))
            g_string_append_printf(text, " %s", party->pid);
        if (is_of_nodes && party->is_process)
            g_string_append_printf(text, " %s",
                                   (const char *)g_ptr_array_index(s->nodes, party->node));
        g_string_append_printf(to, "    participant p%u as ", party->alias);
        put(to, text->str, NAME_CHARS);
        g_string_append_c(to, '\n');
    }
}

/* Messages of OTP's behaviours: words, and patterns whose group is the content. */
static const struct {
    const char *word, *pattern;
} otp_messages[] = {
#define OTP_MESSAGE(word, pattern) {word, pattern},
#include <sequence/otp_messages.h>
};

static GPtrArray *compiled(void) {
    GPtrArray *patterns = g_ptr_array_new_with_free_func((GDestroyNotify)g_regex_unref);
    for (size_t i = 0; i < G_N_ELEMENTS(otp_messages); i++)
        /* Texts may have any bytes. */
        g_ptr_array_add(patterns, g_regex_new(otp_messages[i].pattern, G_REGEX_RAW, 0, NULL));
    return patterns;
}

/* Omits the wrapper of OTP's behaviours: "call {get,17}". */
static void put_message(GString *to, const GPtrArray *patterns, const char *text) {
    if (!text)
        return;
    for (guint i = 0; i < patterns->len; i++) {
        g_autoptr(GMatchInfo) match = NULL;
        if (!g_regex_match(g_ptr_array_index(patterns, i), text, 0, &match))
            continue;
        g_autofree char *content = g_match_info_fetch(match, 1);
        g_string_append_printf(to, "%s ", otp_messages[i].word);
        put(to, *content ? content : "...", TEXT_CHARS);
        return;
    }
    put(to, *text ? text : "message", TEXT_CHARS);
}

static void put_step(GString *to, const GPtrArray *patterns, const struct dt_step *step) {
    if (step->kind == DT_STEP_EXIT) {
        g_string_append_printf(to, "    Note over p%u: exits#58; ", step->from->alias);
        put(to, step->text, TEXT_CHARS);
        g_string_append_c(to, '\n');
        return;
    }
    const char *arrow = step->is_dead ? "-x" : step->inferred ? "-->>" : "->>";
    g_string_append_printf(to, "    p%u%sp%u: ", step->from->alias, arrow, step->to->alias);
    put_message(to, patterns, step->text);
    g_string_append(to, step->is_early   ? " inferred, clocks differ\n"
                        : step->inferred ? " inferred\n"
                                         : "\n");
}

void dt_sequence_mermaid(struct dt_sequence *s, const char *nothing, GString *to) {
    g_autoptr(GPtrArray) parties = g_ptr_array_new(), patterns = compiled();

    for (unsigned i = 0; i < s->steps->len; i++) {
        number(g_array_index(s->steps, struct dt_step, i).from, parties);
        number(g_array_index(s->steps, struct dt_step, i).to, parties);
    }
    g_string_append(to, "sequenceDiagram\n");
    if (s->left_out)
        g_string_append_printf(to, "    %%%% %" PRIu64 " later messages are left out\n",
                               s->left_out);
    if (nothing) {
        g_string_append(to, "    participant p1 as nothing to show\n    Note over p1: ");
        put(to, nothing, REMARK_CHARS);
        g_string_append_c(to, '\n');
    }
    participants(to, s, parties);
    for (unsigned i = 0; i < s->steps->len; i++)
        put_step(to, patterns, &g_array_index(s->steps, struct dt_step, i));
    if (s->left_out && parties->len)
        g_string_append_printf(to,
                               "    Note over p1,p%u: %" PRIu64 " later messages are left out\n",
                               parties->len, s->left_out);
}
