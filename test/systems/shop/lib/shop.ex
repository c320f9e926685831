# A shop: each customer has a cart, which a registry finds, pays at the till, and starts a task.
defmodule Shop do
  use Application

  def start(_type, _args) do
    customers = for n <- 1..6, do: Supervisor.child_spec({Task, fn -> Shop.buy(n) end}, id: n)

    Supervisor.start_link(
      [{Registry, keys: :unique, name: Shop.Registry}, {Task.Supervisor, name: Shop.Tasks}, Shop.Till] ++
        Enum.map(1..6, &Supervisor.child_spec({Shop.Cart, &1}, id: {:cart, &1})) ++ customers,
      strategy: :one_for_one,
      name: Shop.Supervisor
    )
  end

  def buy(n) do
    :ok = GenServer.call(Shop.Cart.name(n), {:add, :apple})
    :ok = GenServer.call(Shop.Till, {:pay, n})
    Task.await(Task.Supervisor.async(Shop.Tasks, fn -> Enum.sum(1..1000) end))
    Process.sleep(20)
    buy(n)
  end
end

defmodule Shop.Cart do
  use GenServer

  def start_link(n), do: GenServer.start_link(__MODULE__, n, name: name(n))
  def name(n), do: {:via, Registry, {Shop.Registry, {:cart, n}}}

  def init(n), do: {:ok, n}
  def handle_call({:add, _}, _from, n), do: {:reply, :ok, n}
end

# It takes no time, until {:slow, ms}.
defmodule Shop.Till do
  use GenServer

  def start_link(_), do: GenServer.start_link(__MODULE__, 0, name: __MODULE__)
  def init(ms), do: {:ok, ms}

  def handle_call({:pay, _}, _from, ms) do
    if ms > 0, do: Process.sleep(ms)
    {:reply, :ok, ms}
  end

  def handle_cast({:slow, ms}, _), do: {:noreply, ms}
end
