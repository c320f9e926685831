/* Arrays of pointers for sorting; the caller frees them. */
#pragma once

#include <glib.h>

/* Pointers to the elements of an array. */
GPtrArray *dt_pointers(const GArray *array);
/* The values of a hash table, in no order. */
GPtrArray *dt_rows_of(GHashTable *table);
