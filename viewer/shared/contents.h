/*
 * Texts of the recording without the contents of what they show: exit reasons and log lines contain
 * whole states of processes, and with these keys and passwords.
 *
 * What identifies a crash stays: atoms, functions, files and lines of a stack trace, pids, short
 * numbers, and how all that is nested. Of the rest, the kind and the size are shown:
 *
 *     <<48,130,4,189>>, <<"secret">>    <<4 bytes>>, <<6 bytes>>
 *     "secret"                          [6 characters]
 *     48,130,4,189,2,1,0,2,130          9 integers        more than 8 in a row
 *     13407807929942597099              integer()         more than 15 digits
 *     MIIEvQIBADANBgkqhkiG9w0BAQEFAASC  [32 characters]   32 letters and digits in a row
 *
 * The command has the same for the texts of triggers: priv/python/dyntrace_command/contents.py.
 */
#ifndef DT_VIEWER_SHARED_CONTENTS_H
#define DT_VIEWER_SHARED_CONTENTS_H

#include <glib.h>

/* Bytes of a reason that are shown. */
enum { DT_REASON_MOST = 160 };

/* Sets `to` to the text without contents. */
void dt_contents_hide(GString *to, const char *text);

/* A text with its contents hidden and its length bounded by DT_REASON_MOST. */
void dt_contents_of_reason(GString *to, const char *reason);

#endif
