#!/usr/sbin/dtrace -s
/*
 * The program's annotations: one line per annotation, and histograms of its spans when the script ends.
 *
 *     /usr/sbin/dtrace -p PID -s annotations.d
 *
 * The node needs no tracing. Of the labels of dyntrace:pn, this script shows only 42.
 *
 *     message: checkpoint
 *     <0.10.0> [request 12] 7 -8 0 0 'one' 'two' '' ''
 *     <0.10.0> [request 12] label 42: 1 2 0 0
 *     <0.10.0> mark cache_miss 17: user 4711
 *
 *     us of spans:
 *       checkout, ok
 *                value  ------------- Distribution ------------- count
 *                 8192 |                                         0
 *                16384 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@ 5
 *                32768 |                                         0
 *
 * A string that the program does not supply is a NULL pointer.
 */
#pragma D option quiet

BEGIN
{
  printf("Watching annotations... Ctrl-C ends.\n");
}

/* process, name, value, text */
org_erlang_dyntrace$target:::user_mark
{
  printf("%s mark %s %d: %s\n", copyinstr(arg0), copyinstr(arg1), arg2, copyinstr(arg3));
}

/* message */
erlang$target:::user_trace-s1
{
  printf("message: %s\n", copyinstr(arg0));
}

/* process, tag, four integers, four strings */
erlang$target:::user_trace-i4s4
{
  printf("%s [%s] %d %d %d %d '%s' '%s' '%s' '%s'\n", copyinstr(arg0), arg1 == 0 ? "" : copyinstr(arg1), arg2, arg3,
         arg4, arg5, arg6 == 0 ? "" : copyinstr(arg6), arg7 == 0 ? "" : copyinstr(arg7),
         arg8 == 0 ? "" : copyinstr(arg8), arg9 == 0 ? "" : copyinstr(arg9));
}

erlang$target:::user_trace-n42
{
  printf("%s [%s] label 42: %d %d %d %d\n", copyinstr(arg0), arg1 == 0 ? "" : copyinstr(arg1), arg2, arg3, arg4,
         arg5);
}

/* process, name, id, duration in ns, outcome */
org_erlang_dyntrace$target:::user_span_stop
{
  @us[copyinstr(arg1), copyinstr(arg4)] = quantize(arg3 / 1000);
}

END
{
  printf("\nus of spans:");
  printa("\n  %s, %s%@d", @us);
}
