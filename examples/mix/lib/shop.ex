defmodule Shop do
  @moduledoc "A shop: one process takes orders, each of them a span."
  use Agent

  def start_link(_) do
    Agent.start_link(fn -> 0 end, name: __MODULE__)
  end

  @doc "Answers the order's number."
  def order(item) do
    :dyntrace.span(:order, fn -> Agent.get_and_update(__MODULE__, &take(item, &1 + 1)) end)
  end

  defp take(item, number) do
    :dyntrace.mark(:sold, number, item)
    {number, number}
  end
end
