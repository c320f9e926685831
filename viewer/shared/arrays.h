/* Arrays of pointers, to be sorted; the caller frees them. */
#ifndef DT_VIEWER_SHARED_ARRAYS_H
#define DT_VIEWER_SHARED_ARRAYS_H

#include <glib.h>

/* Those of an array's elements. */
GPtrArray *dt_pointers(const GArray *array);
/* The values of a table, in no order. */
GPtrArray *dt_rows_of(GHashTable *table);

#endif
