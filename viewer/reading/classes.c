#include "reading/classes.h"

#include <string.h>

#include <glib.h>

#include "shared/probe_fields.h"

/* The names of the events, as tracers list them. */
static const char *const names[DT_PROBES] = {
#define PROBE(name, provider, ...) #provider ":" #name,
#include "catalogue/probes.def"
};

/* -- Maps --------------------------------------------------------------------------- */

enum { MAX_MEMBERS = 16 };

#define FIELD(name) +1
#define PROBE(name, provider, backends, when, differs, fields...)                                  \
    _Static_assert(0 fields <= MAX_MEMBERS, #name " has more fields than a class maps");
#include "catalogue/probes.def"

/* A member of an event's payload. */
struct member {
    uint64_t index;
    const struct dt_probe_field *field;
    bool is_signed;
};

enum scope { SCOPE_NONE, SCOPE_COMMON, SCOPE_SPECIFIC };

/* A member of one of an event's contexts. */
struct context {
    enum scope scope;
    uint64_t index;
    bool is_text, is_signed;
};

struct dt_class {
    const bt_event_class *class; /* with a reference, so that its address is not reused */
    bool is_ours;                /* of a probe in the catalogue, with fields of the right types */
    enum dt_probe probe;
    uint64_t has;
    unsigned members;
    struct member member[MAX_MEMBERS];
    union dt_event empty; /* the values of fields that the trace lacks */
    struct context vpid, vtid, procname, hostname;
};

struct dt_classes {
    GHashTable *all;
    struct dt_class *last;
};

static bool is_text(const bt_field_class *class) {
    return bt_field_class_type_is(bt_field_class_get_type(class), BT_FIELD_CLASS_TYPE_STRING);
}

static bool find_member(const bt_field_class *structure, const char *name, uint64_t *index,
                        const bt_field_class **class) {
    uint64_t count;

    if (!structure || !name)
        return false;
    count = bt_field_class_structure_get_member_count(structure);
    for (uint64_t i = 0; i < count; i++) {
        const bt_field_class_structure_member *m =
            bt_field_class_structure_borrow_member_by_index_const(structure, i);

        if (strcmp(bt_field_class_structure_member_get_name(m), name) == 0) {
            *index = i;
            *class = bt_field_class_structure_member_borrow_field_class_const(m);
            return true;
        }
    }
    return false;
}

/* Returns false if a field has the wrong type. */
static bool map_members(struct dt_class *map, const bt_field_class *payload) {
    const struct dt_probe_field *fields = dt_probe_fields(map->probe);

    for (unsigned n = 0; fields[n].name; n++) {
        const struct dt_probe_field *field = &fields[n];
        bool is_string = dt_field_is_text(field);
        struct member *m = &map->member[map->members];
        const bt_field_class *class;

        if (is_string)
            *dt_field_text(&map->empty, field) = "";
        if (!find_member(payload, field->name, &m->index, &class) &&
            !find_member(payload, field->alias, &m->index, &class))
            continue;
        if (is_string ? !is_text(class) : !dt_is_integer(class, &m->is_signed))
            return false;
        m->field = field;
        map->has |= UINT64_C(1) << n;
        map->members++;
    }
    return true;
}

static struct context find_context(const bt_event_class *class, const bt_stream_class *stream,
                                   const char *name) {
    struct context found = {.scope = SCOPE_NONE};
    const bt_field_class *member;

    if (find_member(bt_stream_class_borrow_event_common_context_field_class_const(stream), name,
                    &found.index, &member))
        found.scope = SCOPE_COMMON;
    else if (find_member(bt_event_class_borrow_specific_context_field_class_const(class), name,
                         &found.index, &member))
        found.scope = SCOPE_SPECIFIC;
    else
        return found;
    found.is_text = is_text(member);
    if (!found.is_text && !dt_is_integer(member, &found.is_signed))
        found.scope = SCOPE_NONE;
    return found;
}

static bool find_probe(const char *name, enum dt_probe *probe) {
    if (!name)
        return false;
    for (unsigned i = 0; i < DT_PROBES; i++)
        if (strcmp(names[i], name) == 0) {
            *probe = i;
            return true;
        }
    return false;
}

static bool is_of_probe(const bt_event_class *class, enum dt_probe probe) {
    enum dt_probe of;

    return find_probe(bt_event_class_get_name(class), &of) && of == probe;
}

bool dt_classes_have(const bt_trace_class *trace, enum dt_probe probe) {
    uint64_t streams = bt_trace_class_get_stream_class_count(trace);

    for (uint64_t s = 0; s < streams; s++) {
        const bt_stream_class *stream = bt_trace_class_borrow_stream_class_by_index_const(trace, s);
        uint64_t events = bt_stream_class_get_event_class_count(stream);

        for (uint64_t e = 0; e < events; e++)
            if (is_of_probe(bt_stream_class_borrow_event_class_by_index_const(stream, e), probe))
                return true;
    }
    return false;
}

static void context_of_type(struct context *context, bool is_text) {
    if (context->is_text != is_text)
        context->scope = SCOPE_NONE;
}

static struct dt_class *map_class(const bt_event_class *class) {
    const bt_stream_class *stream = bt_event_class_borrow_stream_class_const(class);
    struct dt_class *map = g_new0(struct dt_class, 1);

    map->class = class;
    bt_event_class_get_ref(class);
    if (!find_probe(bt_event_class_get_name(class), &map->probe))
        return map;
    map->is_ours = map_members(map, bt_event_class_borrow_payload_field_class_const(class));
    map->vpid = find_context(class, stream, "vpid");
    map->vtid = find_context(class, stream, "vtid");
    map->procname = find_context(class, stream, "procname");
    map->hostname = find_context(class, stream, "hostname");
    context_of_type(&map->vpid, false);
    context_of_type(&map->vtid, false);
    context_of_type(&map->procname, true);
    context_of_type(&map->hostname, true);
    return map;
}

static void free_map(void *data) {
    struct dt_class *map = data;

    bt_event_class_put_ref(map->class);
    g_free(map);
}

const struct dt_class *dt_class_of(struct dt_classes *classes, const bt_event_class *class) {
    struct dt_class *map = classes->last;

    if (!map || map->class != class) {
        map = g_hash_table_lookup(classes->all, class);
        if (!map) {
            map = map_class(class);
            g_hash_table_insert(classes->all, (void *)class, map);
        }
        classes->last = map;
    }
    return map->is_ours ? map : NULL;
}

struct dt_classes *dt_classes_new(void) {
    struct dt_classes *classes = g_new0(struct dt_classes, 1);

    classes->all = g_hash_table_new_full(NULL, NULL, NULL, free_map);
    return classes;
}

void dt_classes_free(struct dt_classes *classes) {
    g_hash_table_destroy(classes->all);
    g_free(classes);
}

/* -- Events ------------------------------------------------------------------------- */

/* Before 2.0.5, babeltrace2 returns an earlier text for an empty one; the length is correct. */
static const char *text(const bt_field *field) {
    return bt_field_string_get_length(field) ? bt_field_string_get_value(field) : "";
}

/* LTTng records a NULL string as "(null)". */
static const char *program_text(const bt_field *field) {
    const char *written = text(field);

    return strcmp(written, "(null)") == 0 ? "" : written;
}

static void read_member(const struct member *m, const bt_field *payload, union dt_event *fields) {
    const bt_field *field =
        bt_field_structure_borrow_member_field_by_index_const(payload, m->index);
    void *to = (char *)fields + m->field->offset;

    switch (m->field->type) {
    case DT_FIELD_IDENTIFIER:
    case DT_FIELD_TERM:
        *dt_field_text(fields, m->field) = text(field);
        break;
    case DT_FIELD_STRING:
        *dt_field_text(fields, m->field) = program_text(field);
        break;
    case DT_FIELD_int32:
    case DT_FIELD_uint32:
        *(uint32_t *)to = (uint32_t)dt_integer(field, m->is_signed);
        break;
    case DT_FIELD_int64:
    case DT_FIELD_uint64:
        *(uint64_t *)to = (uint64_t)dt_integer(field, m->is_signed);
        break;
    }
}

static const bt_field *context_field(const struct context *c, const bt_event *event) {
    const bt_field *context = c->scope == SCOPE_COMMON
                                  ? bt_event_borrow_common_context_field_const(event)
                                  : bt_event_borrow_specific_context_field_const(event);

    return bt_field_structure_borrow_member_field_by_index_const(context, c->index);
}

static void read_number(const struct context *c, const bt_event *event, int64_t *to) {
    if (c->scope != SCOPE_NONE)
        *to = dt_integer(context_field(c, event), c->is_signed);
}

static void read_text(const struct context *c, const bt_event *event, const char **to) {
    if (c->scope != SCOPE_NONE)
        *to = text(context_field(c, event));
}

void dt_class_read(const struct dt_class *class, const bt_event *event, struct dt_recorded *to) {
    const bt_field *payload = bt_event_borrow_payload_field_const(event);

    to->probe = class->probe;
    to->fields = class->empty;
    to->has = class->has;
    for (unsigned i = 0; i < class->members; i++)
        read_member(&class->member[i], payload, &to->fields);
    read_number(&class->vpid, event, &to->place.vpid);
    read_number(&class->vtid, event, &to->vtid);
    read_text(&class->hostname, event, &to->place.hostname);
    read_text(&class->procname, event, &to->procname);
}
