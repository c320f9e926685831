/* Terms as text, as far as pictures need to understand them. */
#ifndef DT_VIEWER_SHARED_TERM_H
#define DT_VIEWER_SHARED_TERM_H

#include <stddef.h>

/* A request without what differs from call to call: {get,17} -> {get,_}. */
void dt_term_shape(const char *request, char *shape, size_t size);

/* A text whose references, pids and ports are all alike: #Ref<0.1.2.3> -> #Ref<..>. To be freed by
   g_free. */
char *dt_term_fold(const char *text);

/* Past a term: the comma or the bracket after it, or the text's end. */
const char *dt_term_end(const char *term);

#endif
