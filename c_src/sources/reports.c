#include "sources/reports.h"

#include <string.h>

#include "backends/backends.h"
#include "catalogue/atoms.h"
#include "catalogue/choose.h"
#include "catalogue/probes.h"
#include "sources/gate.h"
#include "text/alias.h"
#include "text/id.h"
#include "text/string.h"
#include "text/term.h"

struct report {
    ErlNifEnv *env;
    const ERL_NIF_TERM *values; /* the next one first */
    int count;                  /* remaining values */
    struct dt_text text;
};

/* -- One value ----------------------------------------------------------------------- */

static bool is_mfa(ErlNifEnv *env, ERL_NIF_TERM value, const ERL_NIF_TERM **mfa,
                   unsigned long *arity) {
    int size;

    return enif_get_tuple(env, value, &size, mfa) && size == 3 &&
           enif_get_ulong(env, (*mfa)[2], arity);
}

/* A string, an identifier or {Module,Function,Arity}. */
static const char *string(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM value) {
    const ERL_NIF_TERM *mfa;
    unsigned long arity;

    if (enif_is_binary(env, value) || enif_is_list(env, value))
        return dt_text_name(text, env, value);
    return is_mfa(env, value, &mfa, &arity) ? dt_text_mfa(text, env, mfa[0], mfa[1], arity)
                                            : dt_text_id(text, env, value);
}

static bool get_string(struct report *report, ERL_NIF_TERM value, const char **field) {
    *field = string(&report->text, report->env, value);
    return *field != NULL;
}

static bool get_alias(struct report *report, ERL_NIF_TERM value, const char **field) {
    return get_string(report, value, field) && dt_text_alias(&report->text, *field);
}

static bool is_empty_atom(ErlNifEnv *env, ERL_NIF_TERM value) {
    unsigned length;

    return enif_get_atom_length(env, value, &length, ERL_NIF_LATIN1) && length == 0;
}

/* The empty atom is an empty text. */
static bool get_term(struct report *report, ERL_NIF_TERM value, const char **field) {
    if (is_empty_atom(report->env, value)) {
        *field = "";
        return true;
    }
    *field = dt_text_term(&report->text, report->env, value);
    return *field != NULL;
}

#define NUMBER_GETTER(type, number, get)                                                           \
    static __attribute__((unused)) bool get_##type(struct report *report, ERL_NIF_TERM value,      \
                                                   type##_t *field) {                              \
        number n;                                                                                  \
                                                                                                   \
        if (!get(report->env, value, &n))                                                          \
            return false;                                                                          \
        *field = n;                                                                                \
        return true;                                                                               \
    }

NUMBER_GETTER(int32, int, enif_get_int)
NUMBER_GETTER(uint32, unsigned, enif_get_uint)
NUMBER_GETTER(int64, ErlNifSInt64, enif_get_int64)
NUMBER_GETTER(uint64, ErlNifUInt64, enif_get_uint64)

/* -- All fields of a probe ------------------------------------------------------------- */

typedef bool filler(struct report *report, union dt_event *event);

#define NEXT(type, name) &&report->count-- > 0 && get_##type(report, *report->values++, &e->name)
#define STR(name, ...) NEXT(string, name)
#define NAME(name, ...) NEXT(alias, name)
#define TEXT(name, ...) NEXT(term, name)
#define NUMBER(type, name, ...) NEXT(type, name)
#define FILL(name, fields)                                                                         \
    static bool fill_##name(struct report *report, union dt_event *event) {                        \
        struct dt_##name *e = &event->name;                                                        \
                                                                                                   \
        return true fields && report->count == 0;                                                  \
    }
#define FROM(source) , 1,
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    DT_CHOOSE(FILL, DT_NOTHING, backends)(name, fields)
#include "catalogue/probes.def"

static const struct reported {
    const char *name;
    enum dt_probe probe;
    filler *fill;
} reported[] = {
#define FROM(source) , 1,
#define ENTRY(name) {#name, DT_##name, fill_##name},
#define PROBE(name, provider, backends, ...) DT_CHOOSE(ENTRY, DT_NOTHING, backends)(name)
#include "catalogue/probes.def"
};

/* A dump limits its own rate. If it used the budget, each dump of a large node would be truncated,
   and tracing would pause after it. */
static bool is_budgeted(enum dt_probe probe) {
    return strcmp(dt_probe_sources[probe], "identities") != 0;
}

/* -- Reporting ------------------------------------------------------------------------- */

static const struct reported *find(ErlNifEnv *env, ERL_NIF_TERM name) {
    char text[256];

    if (enif_get_atom(env, name, text, sizeof text, ERL_NIF_LATIN1))
        for (size_t i = 0; i < sizeof reported / sizeof *reported; i++)
            if (strcmp(reported[i].name, text) == 0)
                return &reported[i];
    return NULL;
}

DT_NIF(dt_report) {
    const struct reported *to = find(env, argv[0]);
    struct report report = {.env = env};
    union dt_event event;

    if (!to || !enif_get_tuple(env, argv[1], &report.count, &report.values))
        return enif_make_badarg(env);
    dt_text_open(&report.text);
    if (!to->fill(&report, &event))
        return enif_make_badarg(env);
    if (dt_is_enabled(to->probe) && dt_gate_allows(to->probe) &&
        (!is_budgeted(to->probe) || dt_gate_take()))
        dt_fire(to->probe, &event);
    return atom_ok;
}
