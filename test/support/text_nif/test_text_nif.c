/* The text of terms, from the library's own sources, beside what the runtime's %T makes of them. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text/id.h"
#include "text/string.h"
#include "text/term.h"
#include "test_work.h"

static ERL_NIF_TERM binary(ErlNifEnv *env, const char *s) {
    ERL_NIF_TERM term;

    memcpy(enif_make_new_binary(env, strlen(s), &term), s, strlen(s));
    return term;
}

/* Either may answer NULL, for a term that it does not take. */
static ERL_NIF_TERM made(ErlNifEnv *env, const char *s) {
    return s ? binary(env, s) : enif_make_atom(env, "none");
}

static ERL_NIF_TERM text(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    struct dt_text text;

    (void)argc;
    dt_text_open(&text);
    return made(env, dt_text_term(&text, env, argv[0]));
}

static ERL_NIF_TERM arguments(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    struct dt_text text;

    (void)argc;
    dt_text_open(&text);
    return made(env, dt_text_arguments(&text, env, argv[0]));
}

static ERL_NIF_TERM id(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    struct dt_text text;

    (void)argc;
    dt_text_open(&text);
    return made(env, dt_text_id(&text, env, argv[0]));
}

static ERL_NIF_TERM string(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    struct dt_text text;

    (void)argc;
    dt_text_open(&text);
    return made(env, dt_text_string(&text, env, argv[0]));
}

/* As long as the runtime makes it, within reason. */
static ERL_NIF_TERM runtime(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    enum { SIZE = 1 << 16 };
    char *raw = malloc(SIZE);
    ERL_NIF_TERM term;

    (void)argc;
    if (!raw || enif_snprintf(raw, SIZE, "%T", argv[0]) < 0) {
        free(raw);
        return enif_make_badarg(env);
    }
    term = binary(env, raw);
    free(raw);
    return term;
}

/* The time that the text takes, in nanoseconds: the least of some, since others use the machine
 * too. */
static ERL_NIF_TERM duration(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    long least = -1;

    (void)argc;
    for (int i = 0; i < 20; i++) {
        struct timespec from, to;
        struct dt_text text;
        long ns;

        clock_gettime(CLOCK_MONOTONIC, &from);
        dt_text_open(&text);
        (void)dt_text_term(&text, env, argv[0]);
        clock_gettime(CLOCK_MONOTONIC, &to);
        ns = (to.tv_sec - from.tv_sec) * 1000000000L + to.tv_nsec - from.tv_nsec;
        if (least < 0 || ns < least)
            least = ns;
    }
    return enif_make_long(env, least);
}

/* The steps that the text takes. */
static ERL_NIF_TERM work(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    unsigned long before = test_work;
    struct dt_text text;

    (void)argc;
    dt_text_open(&text);
    (void)dt_text_term(&text, env, argv[0]);
    return enif_make_ulong(env, test_work - before);
}

static ERL_NIF_TERM show(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    dt_term_show_shapes(enif_is_identical(argv[0], enif_make_atom(env, "shape")));
    return enif_make_atom(env, "ok");
}

/* {ReservedWords, LeastInteger, GreatestInteger} */
static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info) {
    const ERL_NIF_TERM *el;
    int size;

    (void)priv_data;
    return !enif_get_tuple(env, load_info, &size, &el) || size != 3 ||
           !dt_id_reserve(env, el[0]) || !dt_term_calibrate(env, el[1], el[2]);
}

static ErlNifFunc functions[] = {{"text", 1, text, 0},
                                 {"text_dirty_cpu", 1, text, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"text_dirty_io", 1, text, ERL_NIF_DIRTY_JOB_IO_BOUND},
                                 {"arguments", 1, arguments, 0},
                                 {"id", 1, id, 0},
                                 {"string", 1, string, 0},
                                 {"runtime", 1, runtime, 0},
                                 {"duration", 1, duration, 0},
                                 {"work", 1, work, 0},
                                 {"show", 1, show, 0}};

ERL_NIF_INIT(test_text_nif, functions, load, NULL, NULL, NULL)
