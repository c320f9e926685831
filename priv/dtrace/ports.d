#!/usr/sbin/dtrace -s
/*
 * Ports: each one that is opened or closed, with its driver, lifetime and exit reason. When the script ends, it prints
 * how much processes wrote to each port, the most bytes last.
 *
 *     /usr/sbin/dtrace -p PID -s ports.d
 *
 * Trace in the node: erlang:trace(all, true, [ports, send, 'receive', {tracer, dyntrace, []}]).
 *
 *     open  #Port<0.22> by <0.10.0>: cat
 *     close #Port<0.22> (cat) after 319768 us: normal
 *
 *        bytes   writes  port (driver or command)
 *           17        3  #Port<0.22> (cat)
 *
 * A port that was opened before the script started has no lifetime.
 */
#pragma D option quiet

BEGIN
{
  printf("Watching ports... Ctrl-C ends.\n");
}

/* process, name, port */
erlang$target:::port-open
{
  opened[copyinstr(arg2)] = timestamp;
  printf("open  %s by %s: %s\n", copyinstr(arg2), copyinstr(arg0), copyinstr(arg1));
}

/* owner, port, name, reason */
erlang$target:::port-exit
/opened[copyinstr(arg1)]/
{
  printf("close %s (%s) after %d us: %s\n", copyinstr(arg1), copyinstr(arg2),
         (timestamp - opened[copyinstr(arg1)]) / 1000, copyinstr(arg3));
}

erlang$target:::port-exit
/opened[copyinstr(arg1)] == 0/
{
  printf("close %s (%s): %s\n", copyinstr(arg1), copyinstr(arg2), copyinstr(arg3));
}

erlang$target:::port-exit
{
  opened[copyinstr(arg1)] = 0;
}

/* process, port, name, bytes */
erlang$target:::driver-output,
erlang$target:::driver-outputv
{
  @bytes[copyinstr(arg1), copyinstr(arg2)] = sum(arg3);
  @writes[copyinstr(arg1), copyinstr(arg2)] = count();
}

END
{
  printf("\n   bytes   writes  port (driver or command)\n");
  printa("%@8d %@8d  %s (%s)\n", @bytes, @writes);
}
