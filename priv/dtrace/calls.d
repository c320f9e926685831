#!/usr/sbin/dtrace -s
/*
 * How long functions take: when the script ends, it prints the number of calls and of exceptions, and for each function
 * a histogram of the microseconds from call to return.
 *
 *     /usr/sbin/dtrace -p PID -s calls.d
 *
 * In the node, trace the functions and the processes that call them:
 *
 *     erlang:trace_pattern({my_mod, my_fun, '_'}, [{'_', [], [{exception_trace}]}], [local]).
 *     erlang:trace(all, true, [call, {tracer, dyntrace, []}]).
 *
 *        calls exceptions  function
 *            2          2  my_mod:parse/1
 *            5          0  my_mod:fetch/1
 *
 *     us to return:
 *       my_mod:fetch/1
 *                value  ------------- Distribution ------------- count
 *                 8192 |                                         0
 *                16384 |@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@         4
 *                32768 |@@@@@@@@                                 1
 *                65536 |                                         0
 *
 * If a function calls itself, the innermost call is timed.
 */
#pragma D option quiet

BEGIN
{
  printf("Timing calls... Ctrl-C ends.\n");
}

/* process, function */
org_erlang_dyntrace$target:::function_call
{
  called[copyinstr(arg0), copyinstr(arg1)] = timestamp;
  @calls[copyinstr(arg1)] = count();
  @exceptions[copyinstr(arg1)] = sum(0);
}

org_erlang_dyntrace$target:::function_return
/called[copyinstr(arg0), copyinstr(arg1)]/
{
  @us[copyinstr(arg1)] = quantize((timestamp - called[copyinstr(arg0), copyinstr(arg1)]) / 1000);
  called[copyinstr(arg0), copyinstr(arg1)] = 0;
}

org_erlang_dyntrace$target:::function_exception
{
  @exceptions[copyinstr(arg1)] = sum(1);
  called[copyinstr(arg0), copyinstr(arg1)] = 0;
}

END
{
  printf("   calls exceptions  function\n");
  printa("%@8d %@10d  %s\n", @calls, @exceptions);
  printf("\nus to return:");
  printa("\n  %s%@d", @us);
}
