# `make demo` and `make check` do everything by themselves; `make help` lists the rest.

REBAR    ?= rebar3
LIB      := _build/default/lib/dyntrace
DEMO     := _build/demo
BENCH    := _build/bench
# A node of the stock VM with this build on its path.
ERL      := erl -noinput -pa $(LIB)/ebin

# What each job needs of the machine; tools/deps knows which package has it.
BUILD_NEEDS := cc make erl erl_nif.h sys/sdt.h lttng-ust
DEMO_NEEDS  := $(BUILD_NEEDS) bpftrace lttng babeltrace2
CHECK_NEEDS := $(DEMO_NEEDS) rebar3 bt2 gdb perf tplist-bpfcc runtime_tools common_test proper readelf clang elixir aarch64-linux-gnu-gcc
BENCH_NEEDS := $(DEMO_NEEDS) perf runtime_tools
SYSTEMTAP_NEEDS := $(BUILD_NEEDS) rebar3 common_test debootstrap qemu-system-x86_64
MATRIX_NEEDS := erl debootstrap
ARM64_NEEDS := debootstrap qemu-aarch64-static
# Another release compiles with its gcc alone.
RELEASE_NEEDS := $(filter-out clang aarch64-linux-gnu-gcc,$(CHECK_NEEDS))
LINT_NEEDS  := $(BUILD_NEEDS) rebar3 clang-format clang-tidy cppcheck dialyzer xref

.DEFAULT_GOAL := all

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 26

all: ## build into _build/default/lib/dyntrace (without rebar3, which only the tests and linters need)
	$(MAKE) -C c_src
	tools/build $(LIB)

demo: deps-demo all ## trace a small live system on this machine's Erlang, print its story (VERBOSE=1: every event)
	@mkdir -p $(DEMO)
	erlc -o $(DEMO) demo/*.erl test/support/*.erl
	$(ERL) -pa $(DEMO) -s dyntrace_demo main

check: deps-check all check-docs ## all tests (SUITES=test/a_SUITE,test/b_SUITE: these)
	$(REBAR) ct $(if $(SUITES),--suite $(SUITES))

check-systemtap: deps-systemtap all ## SystemTap's scripts, in a virtual machine (root; makes its chroot at first)
	$(REBAR) ct --dir test/vm

soak: deps-check all ## a node under load while consumers come and go (SECONDS=1200)
	DYNTRACE_SOAK_S=$(or $(SECONDS),1200) $(REBAR) ct --dir test/soak

# OTP 25, 27 and 29, as Debian has them.
check-matrix: $(addprefix check-on-,bookworm trixie forky) ## the suites on three releases of OTP (root; makes their chroots at first)

check-on-%: deps-matrix
	tools/matrix $* check

chroot-of-%: deps-matrix
	tools/matrix $* prepare

# What tools/matrix runs in a release's chroot: all that its OTP or its tracers can make fail. The builds of build_SUITE
# and the races of threads_SUITE depend on neither.
comma := ,
empty :=
RELEASE_SUITES = $(subst $(empty) ,$(comma),$(strip $(filter-out test/build_SUITE test/threads_SUITE,$(basename $(wildcard test/*_SUITE.erl)))))

check-release: deps-release all check-docs
	$(REBAR) ct --suite $(or $(SUITES),$(RELEASE_SUITES))

check-arm64: deps-arm64 ## the suites that need no kernel, on arm64 in emulation (root; half an hour for its chroot at first)
	tools/emulated trixie-arm64

# The library with sanitizers, in a stock VM that has their runtime preloaded; what a VM starts does without.
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZERS = $(shell $(CC) -print-file-name=libasan.so) $(shell $(CC) -print-file-name=libubsan.so)
SANITIZE_SUITES := test/text_SUITE,test/annotation_SUITE,test/dyntrace_SUITE,test/usdt_SUITE,test/load_SUITE,test/lttng_SUITE,test/follow_SUITE,test/follow_others_SUITE

check-sanitize: deps-check ## the suites that run the library, with ASan and UBSan
	tools/copy _build/sanitize
	cd _build/sanitize && CFLAGS='$(SANITIZE)' $(REBAR) compile
	cd _build/sanitize && env CFLAGS='$(SANITIZE)' DYNTRACE_TEST_CFLAGS='$(SANITIZE)' DYNTRACE_CASES=$${DYNTRACE_CASES:-10000} DYNTRACE_ATTACHES=100 DYNTRACE_RELOADS=10 \
	  ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD='$(SANITIZERS)' DYNTRACE_PRELOAD='$(SANITIZERS)' ERL_AFLAGS='-eval os:unsetenv(\"LD_PRELOAD\").' \
	  $(REBAR) ct --suite $(or $(SUITES),$(SANITIZE_SUITES))

# It builds its own library, and runs it in a stock VM that has ThreadSanitizer's runtime preloaded. Part of `make check`.
check-threads: deps-check all ## the library's threads, with ThreadSanitizer
	$(REBAR) ct --suite test/threads_SUITE

# The suites that attach a consumer to a node.
ATTACHING_SUITES := test/usdt_SUITE,test/lttng_SUITE,test/follow_SUITE,test/follow_others_SUITE,test/load_SUITE,test/tools_SUITE,test/recipes_SUITE,test/upgrade_SUITE,test/annotation_SUITE

check-busy: deps-check all ## the suites that attach consumers, ten times beside a busy core (RUNS=3, SUITES=...)
	tools/busy $(or $(RUNS),10) $(or $(SUITES),$(ATTACHING_SUITES))

# What is generated from the catalogue, and by which tool.
GENERATED := docs/PROBES.md:tools/probes_md priv/systemtap/dyntrace.stp:tools/tapset

bench: deps-bench all ## what an event costs, to bench/RESULTS.md (TABLES=following: that one alone; OTP_LTTNG=folder of an OTP that was built with LTTng: its own tracer too)
	rm -rf $(BENCH) && mkdir -p $(BENCH)
	erlc -o $(BENCH) bench/*.erl test/support/*.erl
	$(CC) -O2 -shared -fPIC -isystem "$$(erl -noinput -eval 'io:put_chars(filename:join(code:root_dir(), "usr/include")), halt().')" \
	  -o $(BENCH)/dyntrace_floor.so bench/dyntrace_floor.c
	$(if $(OTP_LTTNG),$(OTP_LTTNG)/bin/erl -noinput -pa $(BENCH) -s dyntrace_bench otp -extra $(BENCH))
	$(ERL) -pa $(BENCH) -s dyntrace_bench main -extra $(BENCH) bench/RESULTS.md $(TABLES)

check-docs: all
	@for g in $(GENERATED); do \
	  $${g#*:} $(LIB) | diff -u $${g%:*} - || { echo "$${g%:*} is stale: run 'make docs'"; exit 1; }; \
	done

docs: all ## write docs/PROBES.md and SystemTap's tapset from the catalogue
	for g in $(GENERATED); do $${g#*:} $(LIB) > $${g%:*}.new && mv $${g%:*}.new $${g%:*} || exit 1; done

lint: deps-lint all ## clang-format, clang-tidy, cppcheck, xref, dialyzer
	clang-format --dry-run --Werror c_src/*.c c_src/*.h
	$(MAKE) -C c_src lint
	$(REBAR) xref
	$(REBAR) dialyzer

deps: ## install what is missing for all of this
	tools/deps $(sort $(CHECK_NEEDS) $(BENCH_NEEDS) $(SYSTEMTAP_NEEDS) $(MATRIX_NEEDS) $(ARM64_NEEDS) $(LINT_NEEDS))

deps-arm64 deps-demo deps-check deps-release deps-bench deps-matrix deps-systemtap deps-lint: deps-%:
	@tools/deps $($(shell echo $* | tr a-z A-Z)_NEEDS)

clean: ## remove what was built
	$(MAKE) -C c_src clean
	rm -rf priv/beam _build

.PHONY: help all demo check check-threads check-arm64 check-busy check-matrix check-release check-sanitize check-systemtap check-docs soak docs lint deps deps-arm64 deps-demo deps-check deps-release deps-systemtap deps-lint deps-bench deps-matrix \
        bench clean
