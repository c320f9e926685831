defmodule Shop.MixProject do
  use Mix.Project

  def project do
    [
      app: :shop,
      version: "1.0.0",
      elixir: "~> 1.14",
      deps: deps(),
      releases: [shop: [steps: [:assemble, :tar]]]
    ]
  end

  # runtime_tools also has a module dyntrace. A release can contain both.
  def application do
    [mod: {Shop.Application, []}, extra_applications: [:logger, :runtime_tools]]
  end

  # In your own project: {:dyntrace, git: "URL", manager: :rebar3}, and {:telemetry, "~> 1.0"} from hex
  defp deps do
    [
      {:dyntrace, path: "../..", manager: :rebar3},
      {:telemetry, path: "telemetry", manager: :rebar3}
    ]
  end
end
