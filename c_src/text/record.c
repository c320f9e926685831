#include "text/record.h"

#include <string.h>

#include "text/heap.h"

struct instance {
    ERL_NIF_TERM header, definition, values[];
};

/* The elements of a definition. */
enum { MODULE = 2, NAME = 3, KEYS = 5 };

/* Measured: the header of a record without fields, and the increment per field. */
static struct {
    bool measured;
    ERL_NIF_TERM header, step;
} layout;

static const struct instance *instance_of(ERL_NIF_TERM term) {
    return (const struct instance *)dt_heap_of(term);
}

/* False unless the definition matches the number of fields. */
static bool get_fields(ErlNifEnv *env, const struct instance *instance, ERL_NIF_TERM fields,
                       struct dt_record *record) {
    const ERL_NIF_TERM *el;
    int arity;

    if (!enif_get_tuple(env, instance->definition, &arity, &el) || arity < KEYS ||
        (ERL_NIF_TERM)(arity - KEYS) != fields || !enif_is_atom(env, el[MODULE]) ||
        !enif_is_atom(env, el[NAME]))
        return false;
    *record = (struct dt_record){.module = el[MODULE],
                                 .name = el[NAME],
                                 .definition = instance->definition,
                                 .keys = el + KEYS,
                                 .values = instance->values,
                                 .fields = (unsigned)fields};
    return true;
}

bool dt_record_get(ErlNifEnv *env, ERL_NIF_TERM term, struct dt_record *record) {
    ERL_NIF_TERM above;

    if (!layout.measured || !dt_heap_is_pointer(term))
        return false;
    above = instance_of(term)->header - layout.header;
    return above % layout.step == 0 &&
           get_fields(env, instance_of(term), above / layout.step, record);
}

/* -- The layout in this runtime ---------------------------------------------------------- */

/* Samples have 1 to SAMPLES fields: a, b, …, with the codes of these letters as values. */
enum { SAMPLES = 3 };

static const char module_name[] = "dyntrace", record_name[] = "dt_sample";

static unsigned char *put_atom(unsigned char *to, const char *name, size_t n) {
    enum { SMALL_ATOM_UTF8 = 119 };

    *to++ = SMALL_ATOM_UTF8;
    *to++ = (unsigned char)n;
    memcpy(to, name, n);
    return to + n;
}

/* Decodes it from the external format. False in releases without native records. */
static bool make_sample(ErlNifEnv *env, unsigned fields, ERL_NIF_TERM *record) {
    enum { VERSION = 131, RECORD = 67, EXPORTED = 1, SMALL_INTEGER = 97 };
    unsigned char external[64] = {VERSION, RECORD, 0, 0, 0, (unsigned char)fields, EXPORTED};
    unsigned char *end = external + 7;

    end = put_atom(end, module_name, strlen(module_name));
    end = put_atom(end, record_name, strlen(record_name));
    for (unsigned i = 0; i < fields; i++)
        end = put_atom(end, (const char[]){(char)('a' + i)}, 1);
    for (unsigned i = 0; i < fields; i++) {
        *end++ = SMALL_INTEGER;
        *end++ = (unsigned char)('a' + i);
    }
    return enif_binary_to_term(env, external, (size_t)(end - external), record, 0) > 0;
}

/* A sample and its definition are allocated together. So if the word is a pointer to an address
   nearby, it is safe to dereference. */
static bool is_near(ERL_NIF_TERM definition, ERL_NIF_TERM record) {
    const ERL_NIF_TERM near = 1024;

    return dt_heap_is_pointer(definition) && definition - record + near < 2 * near;
}

static bool is_sample(ErlNifEnv *env, ERL_NIF_TERM term, unsigned fields) {
    struct dt_record record;

    if (!dt_heap_is_pointer(term) || enif_is_tuple(env, term) ||
        !is_near(instance_of(term)->definition, term) ||
        !get_fields(env, instance_of(term), fields, &record) ||
        record.module != enif_make_atom(env, module_name) ||
        record.name != enif_make_atom(env, record_name))
        return false;
    for (unsigned i = 0; i < fields; i++) {
        char key[2];

        if (!enif_get_atom(env, record.keys[i], key, sizeof key, ERL_NIF_LATIN1) ||
            record.values[i] != enif_make_int(env, key[0]))
            return false;
    }
    return true;
}

void dt_record_calibrate(ErlNifEnv *env) {
    ERL_NIF_TERM sample, headers[SAMPLES + 1];

    for (unsigned fields = 1; fields <= SAMPLES; fields++) {
        if (!make_sample(env, fields, &sample) || !is_sample(env, sample, fields))
            return;
        headers[fields] = instance_of(sample)->header;
    }
    layout.step = headers[2] - headers[1];
    layout.header = headers[1] - layout.step;
    layout.measured = layout.step > 0 && headers[3] - headers[2] == layout.step;
}
