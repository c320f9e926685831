/* Terms as text, as far as pictures need to understand them. */
#ifndef DT_VIEWER_SHARED_TERM_H
#define DT_VIEWER_SHARED_TERM_H

#include <stddef.h>

/* A request without what differs from call to call: {get,17} -> {get,_}. */
void dt_term_shape(const char *request, char *shape, size_t size);

/* Past a term: the comma or the bracket after it, or the text's end. */
const char *dt_term_end(const char *term);

#endif
