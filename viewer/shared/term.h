/* A minimal parser for terms as text. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The end of a term within another one: the separator or bracket after it, or the end of the
   text. */
const char *dt_term_end(const char *term);

/* A request without the parts that differ from call to call: {get,17} -> {get,_}. */
void dt_term_shape(const char *request, char *shape, size_t size);

/* The shape of a reason, equal for reasons that differ only in data: numbers, strings and binaries
   are `_`, the numbers of references, pids and ports `..`. The arities and lines of a stack trace
   stay. {badmatch,#Ref<0.1.2.3>,[1,2]} -> {badmatch,#Ref<..>,[_]}. To be freed by g_free. */
char *dt_term_fold(const char *text);

/* Whether the text contains a stack trace, or the function of a failed call: {noproc,{gen_server,
   call,[...]}}. */
bool dt_term_has_stack(const char *text);
