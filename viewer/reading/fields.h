/* Integer fields of babeltrace2. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <babeltrace2/babeltrace.h>

static inline bool dt_is_integer(const bt_field_class *class, bool *is_signed) {
    bt_field_class_type type = bt_field_class_get_type(class);

    *is_signed = bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_SIGNED_INTEGER);
    return *is_signed || bt_field_class_type_is(type, BT_FIELD_CLASS_TYPE_UNSIGNED_INTEGER);
}

static inline int64_t dt_integer(const bt_field *field, bool is_signed) {
    return is_signed ? bt_field_integer_signed_get_value(field)
                     : (int64_t)bt_field_integer_unsigned_get_value(field);
}
