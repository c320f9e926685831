/* Arrays of pointers for sorting; the caller frees them. */
#ifndef DT_VIEWER_SHARED_ARRAYS_H
#define DT_VIEWER_SHARED_ARRAYS_H

#include <glib.h>

/* Pointers to the elements of an array. */
GPtrArray *dt_pointers(const GArray *array);
/* The values of a hash table, in no order. */
GPtrArray *dt_rows_of(GHashTable *table);

#endif
