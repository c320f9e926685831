import Config

config :dyntrace, functions: [{Shop, :_, :_}]
