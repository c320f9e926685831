#!/usr/sbin/dtrace -s
/*
 * The pairs of processes that exchange the most messages: when the script ends, it prints the number of messages and of
 * words. The busiest pair comes last.
 *
 *     /usr/sbin/dtrace -p PID -s messages.d
 *
 * Trace in the node: erlang:trace(all, true, [send, {tracer, dyntrace, []}]).
 *
 *     messages    words  from -> to
 *           20      100  <0.94.0> -> <0.93.0>
 *
 * The receiver is shown as the sender specifies it. A word is eight bytes.
 */
#pragma D option quiet

BEGIN
{
  printf("Counting messages... Ctrl-C ends.\n");
}

/* sender, receiver, size in words, token */
erlang$target:::message-send
{
  @messages[copyinstr(arg0), copyinstr(arg1)] = count();
  @words[copyinstr(arg0), copyinstr(arg1)] = sum(arg2);
}

END
{
  printf("messages    words  from -> to\n");
  printa("%@8d %@8d  %s -> %s\n", @messages, @words);
}
