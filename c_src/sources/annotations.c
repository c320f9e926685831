#include "sources/annotations.h"

#include <stddef.h>

#include "backends/backends.h"
#include "catalogue/atoms.h"
#include "text/id.h"
#include "text/string.h"

/* -- Asking ------------------------------------------------------------------------ */

static ERL_NIF_TERM boolean(bool is) {
    return is ? atom_true : atom_false;
}

/* Each checks only the backend that has the probe, to save loads. */
static bool i4s4_is_enabled(void) {
    return dt_usdt_is_enabled(DT_user_trace__i4s4) || dt_lttng_is_enabled(DT_user_trace_i4s4);
}

static bool label_is_enabled(unsigned label) {
    return dt_usdt_label_is_enabled(label) || dt_lttng_is_enabled(DT_user_trace_n);
}

static bool get_label(ErlNifEnv *env, ERL_NIF_TERM term, unsigned *label) {
    return enif_get_uint(env, term, label) && *label < DT_LABELS;
}

DT_NIF(dt_annotation_wants_i4s4) {
    return boolean(i4s4_is_enabled());
}

DT_NIF(dt_annotation_wants_n) {
    unsigned label;

    return boolean(get_label(env, argv[0], &label) && label_is_enabled(label));
}

DT_NIF(dt_annotation_wants_mark) {
    return boolean(dt_is_enabled(DT_user_mark));
}

DT_NIF(dt_annotation_wants_span) {
    return boolean(dt_is_enabled(DT_user_span_start) || dt_is_enabled(DT_user_span_stop));
}

/* -- Arguments --------------------------------------------------------------------- */

/* The calling process. */
static const char *self(ErlNifEnv *env, struct dt_text *text) {
    ErlNifPid pid;

    return enif_self(env, &pid) ? dt_text_id(text, env, pid.pid) : "";
}

/* A term that is not an integer of 64 bits counts as missing. */
static int64_t integer(ErlNifEnv *env, ERL_NIF_TERM term) {
    ErlNifSInt64 i;

    return enif_get_int64(env, term, &i) ? i : 0;
}

/* The probes for p and pn begin with the same fields, the catalogue's USER_TRACE_FIELDS. So one
   function can fill them for all. */
_Static_assert(sizeof(struct dt_user_trace_i4s4) == sizeof(struct dt_user_trace__i4s4) &&
                   sizeof(struct dt_user_trace__n) == sizeof(struct dt_user_trace__i4s4) &&
                   offsetof(struct dt_user_trace_n, label) == sizeof(struct dt_user_trace__i4s4),
               "a probe for p or pn has other fields");

/* Tag, I1, …, I4, S1, …, S4 */
static void fill(ErlNifEnv *env, struct dt_text *text, const ERL_NIF_TERM argv[],
                 union dt_event *event) {
    struct dt_user_trace__i4s4 *e = &event->user_trace__i4s4;

    dt_text_open(text);
    e->proc = self(env, text);
    e->user_tag = dt_text_string(text, env, argv[0]);
    e->i1 = integer(env, argv[1]);
    e->i2 = integer(env, argv[2]);
    e->i3 = integer(env, argv[3]);
    e->i4 = integer(env, argv[4]);
    e->s1 = dt_text_string(text, env, argv[5]);
    e->s2 = dt_text_string(text, env, argv[6]);
    e->s3 = dt_text_string(text, env, argv[7]);
    e->s4 = dt_text_string(text, env, argv[8]);
}

/* -- Firing ------------------------------------------------------------------------ */

DT_NIF(dt_annotation_trace_s1) {
    struct dt_text text;
    union dt_event event;

    if (!dt_is_enabled(DT_user_trace__s1) && !dt_is_enabled(DT_user_trace_s1))
        return atom_false;
    dt_text_open(&text);
    event.user_trace__s1.message = dt_text_string(&text, env, argv[0]);
    dt_fire(DT_user_trace__s1, &event);
    dt_fire(DT_user_trace_s1, &event);
    return atom_true;
}

DT_NIF(dt_annotation_trace_i4s4) {
    struct dt_text text;
    union dt_event event;

    if (!i4s4_is_enabled())
        return atom_false;
    fill(env, &text, argv, &event);
    dt_fire(DT_user_trace__i4s4, &event);
    dt_fire(DT_user_trace_i4s4, &event);
    return atom_true;
}

DT_NIF(dt_annotation_trace_n) {
    struct dt_text text;
    union dt_event event;
    unsigned label;

    if (!get_label(env, argv[0], &label) || !label_is_enabled(label))
        return atom_false;
    fill(env, &text, argv + 1, &event);
    event.user_trace_n.label = (int32_t)label;
    if (dt_usdt_label_is_enabled(label))
        dt_usdt_fire_label(label, &event.user_trace__n);
    dt_fire(DT_user_trace_n, &event);
    return atom_true;
}

DT_NIF(dt_annotation_mark) {
    struct dt_text text;
    union dt_event event;
    struct dt_user_mark *e = &event.user_mark;

    if (!dt_is_enabled(DT_user_mark))
        return atom_false;
    dt_text_open(&text);
    e->pid = self(env, &text);
    e->name = dt_text_name(&text, env, argv[0]);
    e->value = integer(env, argv[1]);
    e->text = dt_text_string(&text, env, argv[2]);
    dt_fire(DT_user_mark, &event);
    return atom_true;
}

DT_NIF(dt_annotation_span_start) {
    struct dt_text text;
    union dt_event event;
    struct dt_user_span_start *e = &event.user_span_start;

    if (!dt_is_enabled(DT_user_span_start))
        return atom_false;
    dt_text_open(&text);
    e->pid = self(env, &text);
    e->name = dt_text_name(&text, env, argv[0]);
    e->id = (uint64_t)integer(env, argv[1]);
    dt_fire(DT_user_span_start, &event);
    return atom_true;
}

DT_NIF(dt_annotation_span_stop) {
    struct dt_text text;
    union dt_event event;
    struct dt_user_span_stop *e = &event.user_span_stop;

    if (!dt_is_enabled(DT_user_span_stop))
        return atom_false;
    dt_text_open(&text);
    e->pid = self(env, &text);
    e->name = dt_text_name(&text, env, argv[0]);
    e->id = (uint64_t)integer(env, argv[1]);
    e->duration = (uint64_t)integer(env, argv[2]);
    e->outcome = dt_text_name(&text, env, argv[3]);
    dt_fire(DT_user_span_stop, &event);
    return atom_true;
}
