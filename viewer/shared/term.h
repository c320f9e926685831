/* A minimal parser for terms as text. */
#pragma once

#include <stddef.h>

/* A request without the parts that differ from call to call: {get,17} -> {get,_}. */
void dt_term_shape(const char *request, char *shape, size_t size);

/* A text with the numbers of references, pids and ports removed: #Ref<0.1.2.3> -> #Ref<..>. To be
   freed by g_free. */
char *dt_term_fold(const char *text);
