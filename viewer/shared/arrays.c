#include "shared/arrays.h"

GPtrArray *dt_pointers(const GArray *array) {
    GPtrArray *pointers = g_ptr_array_sized_new(array->len);
    size_t size = g_array_get_element_size((GArray *)array);

    for (unsigned i = 0; i < array->len; i++)
        g_ptr_array_add(pointers, array->data + i * size);
    return pointers;
}

GPtrArray *dt_rows_of(GHashTable *table) {
    GPtrArray *array = g_ptr_array_sized_new(g_hash_table_size(table));
    GHashTableIter iter;
    void *row;

    g_hash_table_iter_init(&iter, table);
    while (g_hash_table_iter_next(&iter, NULL, &row))
        g_ptr_array_add(array, row);
    return array;
}
