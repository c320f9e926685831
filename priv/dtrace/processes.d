#!/usr/sbin/dtrace -s
/*
 * Spawns and exits: each process's parent, initial function, lifetime and exit reason. When the script ends, it prints
 * the number of exits for each reason.
 *
 *     /usr/sbin/dtrace -p PID -s processes.d
 *
 * Trace in the node: erlang:trace(all, true, [procs, {tracer, dyntrace, []}]).
 *
 *     spawn <0.96.0> by <0.95.0> in erlang:apply/2
 *     exit  <0.96.0> after 43935 us: normal
 *     spawn <0.97.0> by <0.95.0> in erlang:apply/2
 *     exit  <0.97.0> after 27360 us: kill
 *
 *        exits  reason
 *            1  kill
 *            1  normal
 *
 * A process that was spawned before the script started has no lifetime.
 */
#pragma D option quiet

BEGIN
{
  printf("Watching processes... Ctrl-C ends.\n");
}

/* process, parent, initial function */
org_erlang_dyntrace$target:::process_spawn
{
  spawned[copyinstr(arg0)] = timestamp;
  printf("spawn %s by %s in %s\n", copyinstr(arg0), copyinstr(arg1), copyinstr(arg2));
}

/* process, reason */
org_erlang_dyntrace$target:::process_exit
/spawned[copyinstr(arg0)]/
{
  printf("exit  %s after %d us: %s\n", copyinstr(arg0), (timestamp - spawned[copyinstr(arg0)]) / 1000,
         copyinstr(arg1));
}

org_erlang_dyntrace$target:::process_exit
/spawned[copyinstr(arg0)] == 0/
{
  printf("exit  %s: %s\n", copyinstr(arg0), copyinstr(arg1));
}

org_erlang_dyntrace$target:::process_exit
{
  @exits[copyinstr(arg1)] = count();
  spawned[copyinstr(arg0)] = 0;
}

END
{
  printf("\n   exits  reason\n");
  printa("%@8d  %s\n", @exits);
}
