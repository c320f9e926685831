#!/usr/sbin/dtrace -s
/*
 * Garbage collections by process: when the script ends, it prints their number of each kind, their time and the freed
 * words. The most expensive process comes last.
 *
 *     /usr/sbin/dtrace -p PID -s gc.d
 *
 * Trace in the node: erlang:trace(all, true, [garbage_collection, {tracer, dyntrace, []}]).
 *
 *          us minor major    words  process
 *       31832    39    10    40050  <0.100.0>
 *
 * The time is the time in which the process was stopped.
 */
#pragma D option quiet

BEGIN
{
  printf("Timing collections... Ctrl-C ends.\n");
}

/* A process collects from start to end on one thread. */
erlang$target:::gc_minor-start,
erlang$target:::gc_major-start
{
  self->began = timestamp;
}

/* process, freed words */
erlang$target:::gc_minor-end
/self->began/
{
  @minor[copyinstr(arg0)] = sum(1);
  @major[copyinstr(arg0)] = sum(0);
}

erlang$target:::gc_major-end
/self->began/
{
  @minor[copyinstr(arg0)] = sum(0);
  @major[copyinstr(arg0)] = sum(1);
}

erlang$target:::gc_minor-end,
erlang$target:::gc_major-end
/self->began/
{
  @us[copyinstr(arg0)] = sum((timestamp - self->began) / 1000);
  @words[copyinstr(arg0)] = sum(arg1);
  self->began = 0;
}

END
{
  printf("     us minor major    words  process\n");
  printa("%@7d %@5d %@5d %@8d  %s\n", @us, @minor, @major, @words);
}
