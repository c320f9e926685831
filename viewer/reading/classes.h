/*
 * Event classes of traces. Each class is mapped once to a probe of the catalogue, and the members
 * of its payload and contexts to fields.
 */
#pragma once

#include <babeltrace2/babeltrace.h>

#include "shared/recorded.h"

struct dt_class;
struct dt_classes;

struct dt_classes *dt_classes_new(void);
void dt_classes_free(struct dt_classes *classes);

/* Whether the trace has event classes of this probe: with LTTng, whether it was recorded. */
bool dt_classes_have(const bt_trace_class *trace, enum dt_probe probe);

/* NULL for a class of another provider, or one that has fields of the wrong type. */
const struct dt_class *dt_class_of(struct dt_classes *classes, const bt_event_class *class);
/* Sets the probe and its fields, and vpid, vtid, hostname and procname if the event has them. */
void dt_class_read(const struct dt_class *class, const bt_event *event, struct dt_recorded *to);

/* Integer fields of babeltrace2. */
static inline bool dt_is_integer(const bt_field_class *class, bool *is_signed) {
    bt_field_class_type type = bt_field_class_get_type(class);

    *is_signed = bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER);
    return *is_signed || bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER);
}

static inline int64_t dt_integer(const bt_field *field, bool is_signed) {
    return is_signed ? bt_field_integer_signed_get_value(field)
                     : (int64_t)bt_field_integer_unsigned_get_value(field);
}
