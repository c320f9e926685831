/*
 * Hides the contents of recorded texts. Exit reasons and log lines may contain complete process
 * states, including keys and passwords.
 *
 * Details that identify a crash stay: atoms, functions, files and lines of a stack trace, pids,
 * short numbers, and the nesting of terms. All other data is replaced by its type and size:
 *
 *     <<48,130,4,189>>, <<"secret">>    <<4 bytes>>, <<6 bytes>>
 *     "secret"                          [6 characters]
 *     48,130,4,189,2,1,0,2,130          9 integers        more than 8 in a row
 *     13407807929942597099              integer()         more than 15 digits
 *     MIIEvQIBADANBgkqhkiG9w0BAQEFAASC  [32 characters]   32 letters and digits in a row
 *
 * The command does the same for the texts of triggers:
 * priv/python/dyntrace_command/common/contents.py.
 */
#pragma once

#include <glib.h>

/* The maximum length of a displayed reason, in bytes. */
enum { DT_REASON_MOST = 160 };

/* Sets `to` to the text with its contents hidden. */
void dt_contents_hide(GString *to, const char *text);

/* Truncates a reason to DT_REASON_MOST bytes, between words if possible. */
void dt_contents_cut(GString *reason);
