#!/usr/sbin/dtrace -s
/*
 * How often and how long processes ran. When the script ends, it prints the processes, those that ran longest last, and
 * for five of them a histogram of the microseconds of each run.
 *
 *     /usr/sbin/dtrace -p PID -s scheduling.d
 *
 * Trace in the node: erlang:trace(all, true, [running, {tracer, dyntrace, []}]).
 *
 *          us     runs  process
 *        8258       10  <0.102.0>
 *
 *     us of a run:
 *       <0.102.0>
 *                value  ------------- Distribution ------------- count
 *                   64 |                                         0
 *                  128 |@@@@@@@@@@@@@@@@                         4
 *                  256 |@@@@@@@@                                 2
 *                  512 |                                         0
 *                 1024 |@@@@@@@@@@@@                             3
 *                 2048 |@@@@                                     1
 *                 4096 |                                         0
 */
#pragma D option quiet

BEGIN
{
  printf("Timing runs... Ctrl-C ends.\n");
}

/* A process runs on one thread until it is scheduled out. */
erlang$target:::process-scheduled
{
  self->since = timestamp;
}

/* process */
erlang$target:::process-unscheduled
/self->since/
{
  @us[copyinstr(arg0)] = sum((timestamp - self->since) / 1000);
  @runs[copyinstr(arg0)] = count();
  @run[copyinstr(arg0)] = quantize((timestamp - self->since) / 1000);
  self->since = 0;
}

END
{
  printf("     us     runs  process\n");
  printa("%@7d %@8d  %s\n", @us, @runs);
  printf("\nus of a run:");
  trunc(@run, 5);
  printa("\n  %s%@d", @run);
}
