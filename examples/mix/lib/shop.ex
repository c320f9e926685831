defmodule Shop do
  @moduledoc "A shop: one process takes orders. Each order is a span, for dyntrace and for telemetry."
  use Agent

  def start_link(_) do
    Agent.start_link(fn -> 0 end, name: __MODULE__)
  end

  @doc "Returns the number of the order."
  def order(item) do
    :telemetry.span([:shop, :order], %{route: "/orders"}, fn ->
      number =
        :dyntrace.span(:order, fn -> Agent.get_and_update(__MODULE__, &take(item, &1 + 1)) end)

      {number, %{route: "/orders", status: 200}}
    end)
  end

  defp take(item, number) do
    :dyntrace.mark(:sold, number, item)
    {number, number}
  end
end
