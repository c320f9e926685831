/* The text of terms, made by the library's own sources and by the runtime's %T. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "text/heap.h"
#include "text/id.h"
#include "text/string.h"
#include "text/term.h"
#include "test_work.h"

static ERL_NIF_TERM binary(ErlNifEnv *env, const char *s) {
    ERL_NIF_TERM term;

    memcpy(enif_make_new_binary(env, strlen(s), &term), s, strlen(s));
    return term;
}

/* Both may return NULL, for a term that they do not accept. */
static ERL_NIF_TERM made(ErlNifEnv *env, const char *s) {
    return s ? binary(env, s) : enif_make_atom(env, "none");
}

typedef const char *text_of(struct dt_text *text, ErlNifEnv *env, ERL_NIF_TERM term);

static ERL_NIF_TERM made_by(text_of *of, ErlNifEnv *env, ERL_NIF_TERM term) {
    struct dt_text text;

    dt_text_open(&text);
    return made(env, of(&text, env, term));
}

#define TEXT(name, of)                                                                             \
    static ERL_NIF_TERM name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {                \
        (void)argc;                                                                                \
        return made_by(of, env, argv[0]);                                                          \
    }

TEXT(text, dt_text_term)
TEXT(arguments, dt_text_arguments)
TEXT(id, dt_text_id)
TEXT(string, dt_text_string)
TEXT(dotted, dt_text_dotted)

/* The buffer is as long as the runtime's text, up to a limit. */
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

/* The time for the text, in nanoseconds: the minimum of several, because other programs also use
 * the machine. */
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

static unsigned long steps_of(ErlNifEnv *env, ERL_NIF_TERM term) {
    unsigned long before = test_work;
    struct dt_text text;

    dt_text_open(&text);
    (void)dt_text_term(&text, env, term);
    return test_work - before;
}

/* The number of steps for the text. */
static ERL_NIF_TERM steps(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    return enif_make_ulong(env, steps_of(env, argv[0]));
}

static struct dt_heap_marks read_by_calls(void) {
    const struct dt_heap_marks found = dt_heap_marks;

    dt_heap_marks = (struct dt_heap_marks){DT_NO_MARK, DT_NO_MARK};
    return found;
}

/* The same if lists and integers are read by calls of erl_nif, which are counted. */
static ERL_NIF_TERM work(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    const struct dt_heap_marks found = read_by_calls();
    unsigned long steps = steps_of(env, argv[0]);

    (void)argc;
    dt_heap_marks = found;
    return enif_make_ulong(env, steps);
}

/* Whether lists and small integers are read without calls. */
static ERL_NIF_TERM reads(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    (void)argc;
    (void)argv;
    return enif_make_tuple2(
        env, enif_make_atom(env, dt_heap_marks.list != DT_NO_MARK ? "direct" : "calls"),
        enif_make_atom(env, dt_heap_marks.small != DT_NO_MARK ? "direct" : "calls"));
}

/* The text in a buffer with this many bytes left; `overrun` if it wrote past them. */
static ERL_NIF_TERM text_in(size_t room, struct dt_cache *cache, text_of *of, ErlNifEnv *env,
                            ERL_NIF_TERM term) {
    enum { BEHIND = 64, UNTOUCHED = 0x55 };
    struct {
        struct dt_text text;
        char behind[BEHIND];
    } memory;
    char *end = (char *)&memory + offsetof(struct dt_text, buffer) + DT_TEXT_SIZE;
    const char *s;
    bool overrun = false;

    memset(&memory, UNTOUCHED, sizeof memory);
    memory.text.cache = cache;
    memory.text.next = end - room;
    s = of(&memory.text, env, term);
    for (const char *c = end; c < (const char *)(&memory + 1); c++)
        overrun |= *c != UNTOUCHED;
    return overrun ? enif_make_atom(env, "overrun") : made(env, s);
}

/* ways(Room, text | arguments, Term): the text as calls read it, as it is read at first, and when
   its words are cached. */
static ERL_NIF_TERM ways(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]) {
    static const struct dt_cache empty;
    struct dt_cache *cache = malloc(sizeof *cache);
    ERL_NIF_TERM called, uncached, cached;
    struct dt_heap_marks found;
    text_of *of = dt_text_term;
    unsigned room;

    (void)argc;
    if (!cache || !enif_get_uint(env, argv[0], &room) || room > DT_TEXT_SIZE) {
        free(cache);
        return enif_make_badarg(env);
    }
    if (enif_is_identical(argv[1], enif_make_atom(env, "arguments")))
        of = dt_text_arguments;
    *cache = empty;
    found = read_by_calls();
    called = text_in(room, cache, of, env, argv[2]);
    dt_heap_marks = found;
    *cache = empty;
    uncached = text_in(room, cache, of, env, argv[2]);
    cached = text_in(room, cache, of, env, argv[2]);
    free(cache);
    return enif_make_list3(env, called, uncached, cached);
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
    return !enif_get_tuple(env, load_info, &size, &el) || size != 3 || !dt_id_reserve(env, el[0]) ||
           !dt_term_calibrate(env, el[1], el[2]);
}

static ErlNifFunc functions[] = {{"text", 1, text, 0},
                                 {"text_dirty_cpu", 1, text, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"text_dirty_io", 1, text, ERL_NIF_DIRTY_JOB_IO_BOUND},
                                 {"arguments", 1, arguments, 0},
                                 {"id", 1, id, 0},
                                 {"string", 1, string, 0},
                                 {"dotted", 1, dotted, 0},
                                 {"runtime", 1, runtime, 0},
                                 {"duration", 1, duration, 0},
                                 {"work", 1, work, 0},
                                 {"steps", 1, steps, 0},
                                 {"reads", 0, reads, 0},
                                 {"ways", 3, ways, 0},
                                 {"show", 1, show, 0}};

ERL_NIF_INIT(test_text_nif, functions, load, NULL, NULL, NULL)
