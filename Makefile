# `make demo` and `make check` install what they need; `make help` lists all targets.

export REBAR ?= rebar3
LIB      := _build/default/lib/dyntrace
DEMO     := _build/demo
BENCH    := _build/bench
# A node on the stock VM with this build in its code path.
ERL      := erl -noinput -pa $(LIB)/ebin

# Tests use file names that are not ASCII, and terminals. Services and cron set neither variable.
export LANG ?= C.UTF-8
export TERM ?= linux

# The makefiles of folders print what they build, not which directory they enter.
MAKEFLAGS += --no-print-directory

# What each target needs on the machine. tools/deps maps each need to its packages.
BUILD_NEEDS := cc make erl erl_nif.h sys/sdt.h lttng-ust
# For the babeltrace2 plugin. A build without these skips it.
VIEWER_NEEDS := pkg-config libbabeltrace2 glib-2.0
DEMO_NEEDS  := $(BUILD_NEEDS) $(VIEWER_NEEDS) lttng babeltrace2
DEB_NEEDS   := $(BUILD_NEEDS) $(VIEWER_NEEDS) python3 musl-gcc build-essential dh dh_python3 dpkg-buildpackage lintian
PACKAGES_NEEDS := $(DEB_NEEDS) debootstrap rebar3 common_test
# Tarballs are built on Debian for x86-64; the libraries for arm64 come from Debian's archive.
DIST_NEEDS  := $(BUILD_NEEDS) $(VIEWER_NEEDS) python3 musl-gcc aarch64-linux-gnu-gcc apt-get
CHECK_NEEDS := $(DEMO_NEEDS) bpftrace ccache rebar3 bt2 editorconfig gdb perf tplist-bpfcc runtime_tools common_test \
               proper ip python3 readelf clang elixir aarch64-linux-gnu-gcc /usr/bin/dtrace node npm chromium protoc \
               groff jsonschema promtool $(DEB_NEEDS) $(DIST_NEEDS) zsh qemu-aarch64-static
MUSL_NEEDS  := musl-gcc make erl erl_nif.h sys/sdt.h
FAST_NEEDS  := $(BUILD_NEEDS) $(VIEWER_NEEDS) babeltrace2 bt2 rebar3 common_test proper python3
BENCH_NEEDS := $(DEMO_NEEDS) bpftrace bt2 runtime_tools python3
VM_NEEDS := $(BUILD_NEEDS) rebar3 common_test debootstrap qemu-system-x86_64
MATRIX_NEEDS := erl debootstrap
# The third-party services that test/systems observes.
SYSTEMS_NEEDS = $(CHECK_NEEDS) /usr/sbin/rabbitmq-server /usr/sbin/ejabberdctl /usr/sbin/clickhouse-server \
                pika yaws tsung mnesia
ARM64_NEEDS := debootstrap qemu-aarch64-static
# On other releases, everything is compiled with gcc only. The JavaScript programs that read rendered recordings behave
# the same on every release.
RELEASE_NEEDS := $(filter-out clang editorconfig node npm chromium protoc promtool zsh qemu-aarch64-static, \
                              $(CHECK_NEEDS))
PAGE_NEEDS  := node npm chromium babeltrace2
LINT_NEEDS  := $(BUILD_NEEDS) $(VIEWER_NEEDS) rebar3 editorconfig clang-format clang-tidy cppcheck dialyzer xref \
               mypy pylint shellcheck node npm

.DEFAULT_GOAL := all

help: ## print this list
	@sed -n 's/^\([a-z0-9._-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 30

all: ## build into _build/default/lib/dyntrace, without rebar3 (V=1: show the commands)
	@$(MAKE) -C c_src
	@$(MAKE) -C viewer
	@$(MAKE) -C scripts
	@tools/build $(LIB)

# `dyntrace load` copies this build into containers with musl, such as Alpine's. Of the system's headers, it sees only
# the USDT headers, which are the same for every C library.
MUSL := $(CURDIR)/_build/musl
MUSL_BUILD := $(CURDIR)/priv/builds/$(shell uname -m)-musl
musl: SDT = $(shell printf '\043include <sys/sdt.h>\n' | $(CC) -E -x c - | sed -n 's/^. 1 "\(.*sys\)\/sdt.h".*/\1/p')
musl: deps-musl ## build the library for nodes with musl, without LTTng
	@mkdir -p $(MUSL)/include/sys
	@ln -sf $(SDT)/sdt.h $(SDT)/sdt-config.h $(MUSL)/include/sys
	@$(MAKE) -C c_src CC=musl-gcc LTTNG=no OBJ=$(MUSL)/obj PRIV=$(MUSL_BUILD) CPPFLAGS='-isystem $(MUSL)/include'

demo: deps-demo all ## record a small live system, narrate its events (VERBOSE=1: print all), render the recording
	@mkdir -p $(DEMO)
	@erlc -o $(DEMO) demo/*.erl test/support/*.erl
	$(ERL) -pa $(DEMO) -s dyntrace_demo main

# Suites build the library many times, in separate folders. If ccache is installed, each source is compiled only once.
# The links are made here because Debian's /usr/lib/ccache lacks compilers that were installed after it. By default,
# ccache includes the working directory (with debugging information) and the locale in its hash. The settings below turn
# that off, because mix runs in its own locale. CCACHE_DEPEND takes the headers from the compiler's dependency list, so
# ccache does not need to preprocess each source first.
#
# Suites start the host command hundreds of times. So its modules are compiled beforehand, as in an installation, and
# python3 links to the real interpreter, because the wrapper script of a version manager takes longer than the command.
# The python3 of a virtual environment is used as it is, because it is not a script.
CACHED := $(CURDIR)/_build/ccache
COMPILERS := cc gcc clang musl-gcc aarch64-linux-gnu-gcc
compiled = umask 022 && python3 -IS -m compileall -q '$(1)'
WITH_CACHE := check check-fast check-release build build-tests check-sanitize check-systems check-packages soak
$(WITH_CACHE): export PATH := $(CACHED):$(PATH)
$(WITH_CACHE): export CCACHE_NOHASHDIR := 1
$(WITH_CACHE): export CCACHE_SLOPPINESS := locale
$(WITH_CACHE): export CCACHE_DEPEND := 1

cached:
	@rm -rf '$(CACHED)' && mkdir -p '$(CACHED)'
	@! cache=$$(command -v ccache) || for compiler in $(COMPILERS); do \
	  ! command -v $$compiler >/dev/null || ln -s "$$cache" '$(CACHED)'/$$compiler || exit 1; done
	@python3 -c 'import os, sys; sys.prefix != sys.base_prefix or os.symlink(sys.executable, "$(CACHED)/python3")'
	-@$(call compiled,priv/python)

# How often the storms and random terms of a test repeat; with FULL=yes, before a release, as often as the suites say.
ifneq ($(FULL),yes)
check: export DYNTRACE_ATTACHES ?= 40
check: export DYNTRACE_LABELS ?= 100
check: export DYNTRACE_CASES ?= 10000
endif

check: deps-check cached all check-docs ## run all tests (SUITES=usdt,lttng: only these)
	$(if $(SUITES),tools/apart tools/ct $(call suites,$(SUITES)),\
	  tools/lanes $(foreach lane,$(LANES),$(call suites,$(LANE_$(lane)))))

# The folders whose suites run one after the other. `make check` runs the lanes in parallel, .ci/run runs one per job.
LANES := builds pictures command library nodes
LANE_builds := test/build
LANE_pictures := test/viewer
LANE_command := test/command
LANE_library := test/library test/compat test/scripts
LANE_nodes = $(filter-out $(foreach lane,$(filter-out nodes,$(LANES)),$(LANE_$(lane))),$(SUITE_FOLDERS))

$(addprefix check-,$(LANES)): check-%:
	$(MAKE) check SUITES='$(LANE_$*)'

# The lane of the command in two parts that take about as long, for .ci/run.
LONG_COMMANDS := command cluster
check-command-long:
	$(MAKE) check SUITES='$(LONG_COMMANDS)'
check-command-rest:
	$(MAKE) check SUITES='$(filter-out $(LONG_COMMANDS),$(call named,$(LANE_command)))'

# Suites for a quick check: they attach no consumer and build little. Half of the time goes to viewer_model.
FAST_SUITES := catalogue command_units dyntrace records report start
check-fast: export DYNTRACE_CASES ?= 2000
check-fast: deps-fast cached all ## run the suites that need no tracer, in two minutes
	tools/lanes $(call suites,viewer_model) $(call suites,$(FAST_SUITES))

# Expands usdt,lttng to test/library/usdt_SUITE,test/library/lttng_SUITE, as rebar3 expects. A path also works, and a
# folder expands to all of its suites.
comma := ,
empty :=
suites = $(subst $(empty) ,$(comma),$(foreach name,$(subst $(comma), ,$(1)),$(call suite,$(name))))
suite = $(or $(basename $(wildcard $(1)/*_SUITE.erl)),\
             $(basename $(wildcard test/*/$(patsubst %_SUITE,%,$(notdir $(1)))_SUITE.erl)),\
             $(error no suite is named $(1)))
# Excludes the suites that need the virtual machine, packaged services or other releases, and the soak test.
SUITE_FOLDERS := $(filter-out test/vm test/systems test/packages test/soak test/support,\
                              $(patsubst %/,%,$(wildcard test/*/)))
# The names of the suites in these folders.
named = $(patsubst %_SUITE.erl,%,$(notdir $(wildcard $(addsuffix /*_SUITE.erl,$(1)))))
ALL_SUITES = $(call named,$(SUITE_FOLDERS))

check-vm: deps-vm all ## test the scripts of SystemTap and DTrace in a virtual machine (root; makes a chroot)
	$(REBAR) ct --dir test/vm

check-systems: deps-systems cached all ## observe RabbitMQ, ejabberd, yaws and others, healthy and with faults (root)
	tools/apart tools/ct $(call suites,$(or $(SUITES),test/systems))

check-packages: deps-check deps-packages cached all ## build all packages, and use them; Debian's on each release (root)
	tools/apart tools/ct $(call suites,test/packages)

soak: deps-check cached all ## load a node while consumers attach and detach (SECONDS=1200)
	DYNTRACE_SOAK_S=$(or $(SECONDS),1200) tools/apart tools/ct $(call suites,test/soak)

# OTP 25, 27 and 29, as packaged by Debian.
RELEASES := bookworm trixie forky

check-matrix: $(addprefix check-on-,$(RELEASES)) ## run the suites on OTP 25, 27 and 29 (root; makes chroots)

# check-on-trixie runs all suites of the release, check-on-trixie-library those of one lane, and
# check-on-trixie-sessions the suites that run again with trace sessions.
check-on-%: deps-matrix
	tools/apart tools/matrix $(firstword $(subst -, ,$*)) $(or $(word 2,$(subst -, ,$*)),check)

chroot-of-%: deps-matrix
	tools/matrix $* prepare

# tools/matrix runs these in a release's chroot: every suite whose result can depend on the release's OTP or tracers.
# That excludes the bench, the builds of build_, contributing_ and native_SUITE, the races of threads_SUITE, the events
# of the viewer's model, and the attacks on the command.
# Suites in which other programs read the output, such as JavaScript programs and Prometheus:
READING_SUITES := flame kubernetes mcp openmetrics otlp page perfetto report rows sequence
# NOT_HERE: the suites that a lane of tools/matrix leaves out.
RELEASE_SUITES = $(filter-out $(NOT_HERE) attacks bench build contributing native threads viewer_model \
                              $(READING_SUITES),$(ALL_SUITES))

# With LANE, only the suites of that lane.
check-release: FOLDERS = $(if $(LANE),$(or $(LANE_$(LANE)),$(error no lane is named $(LANE))),$(SUITE_FOLDERS))
check-release: build
	tools/ct $(call suites,$(or $(SUITES),$(filter $(call named,$(FOLDERS)),$(RELEASE_SUITES)))) \
	  $(if $(CASES),--case $(CASES))

# Builds with the compiler cache, which the jobs of .ci/run share.
build: deps-release cached
	$(MAKE) all

# The lanes of a release share this result in their chroot (tools/debian).
build-tests: build check-docs
	$(REBAR) ct --compile_only

# Runs suites again, with trace sessions (OTP 27 and later).
check-sessions:
	DYNTRACE_SESSIONS=true $(MAKE) check-release SUITES='$(SESSION_SUITES)'

check-arm64: deps-arm64 ## run the suites that need no kernel on emulated arm64 (root; the first run takes half an hour)
	tools/emulated trixie-arm64

# The library is built with sanitizers and runs in a stock VM that preloads their runtime. Programs that this VM starts
# do not preload it.
SANITIZE := -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZERS = $(shell $(CC) -print-file-name=libasan.so) $(shell $(CC) -print-file-name=libubsan.so)
SANITIZE_PARTS := calls consumers viewer
SANITIZE_calls := text annotation dyntrace usdt builtins load
SANITIZE_consumers := lttng
SANITIZE_viewer := viewer viewer_model

check-sanitize: deps-check cached ## run the library's and the viewer's suites with ASan and UBSan
	tools/copy _build/sanitize
	cd _build/sanitize && CFLAGS='$(SANITIZE)' $(REBAR) compile
	cd _build/sanitize && tools/apart env CFLAGS='$(SANITIZE)' DYNTRACE_TEST_CFLAGS='$(SANITIZE)' \
	  DYNTRACE_CASES=$${DYNTRACE_CASES:-10000} DYNTRACE_ATTACHES=40 DYNTRACE_EACH_ALONE=no \
	  ASAN_OPTIONS=detect_leaks=0 LD_PRELOAD='$(SANITIZERS)' DYNTRACE_PRELOAD='$(SANITIZERS)' \
	  ERL_AFLAGS='-eval os:unsetenv(\"LD_PRELOAD\").' \
	  tools/ct $(call suites,$(or $(SUITES),$(foreach part,$(SANITIZE_PARTS),$(SANITIZE_$(part)))))

# One part of the suites. The jobs of .ci/run divide the parts among themselves.
$(addprefix check-sanitize-,$(SANITIZE_PARTS)): check-sanitize-%:
	$(MAKE) check-sanitize SUITES='$(SANITIZE_$*)'

# The suites that attach a consumer to a node.
ATTACHING_SUITES := usdt builtins lttng otp_provider follow follow_others sources vm_events identity delivery \
                    counters process_samples table_samples port_samples socket_samples log load tools recipes upgrade \
                    annotation viewer

check-busy: deps-check all ## run the suites that attach consumers ten times while a core is busy (RUNS=3, SUITES=...)
	tools/apart tools/busy $(or $(RUNS),10) $(call suites,$(or $(SUITES),$(ATTACHING_SUITES)))

# The files that are generated from tables, each with its generator.
GENERATED := docs/PROBES.md:tools/probes_md priv/systemtap/dyntrace.stp:tools/tapset \
             docs/findings.md:tools/findings_md docs/rows.md:tools/rows_md \
             priv/python/dyntrace_command/common/event_groups.py:tools/event_groups

# OTP_LTTNG is the folder of an OTP that was built with LTTng and is at least as new as the OTP of this build. If it is
# set, the bench also measures OTP's own tracer, for at most two minutes.
bench: deps-bench all bench-built ## measure what events cost, write bench/RESULTS.md, in 20 minutes (TABLES=latency)
	$(if $(OTP_LTTNG),ERL_TOP=$(OTP_LTTNG) timeout --kill-after=5 120 \
	  $(OTP_LTTNG)/bin/erl +Bd -noinput -pa $(BENCH) -s dyntrace_bench otp -extra $(BENCH) || \
	  echo "OTP's own tracer could not be measured" >&2)
	$(ERL) +Bd -pa $(BENCH) -s dyntrace_bench main -extra $(BENCH) bench/RESULTS.md $(TABLES)

# The modules with which the bench runs real systems.
OBSERVING := packaged packaged_rabbitmq packaged_ejabberd ejabberd_names place client observed perf_paths fault

bench-built:
	rm -rf $(BENCH) && mkdir -p $(BENCH)
	erlc -pa $(BENCH) -o $(BENCH) bench/*.erl test/support/*.erl $(OBSERVING:%=test/systems/%.erl)
	include=$$(erl -noinput -eval 'io:put_chars(filename:join(code:root_dir(), "usr/include")), halt().') && \
	$(CC) -O2 -shared -fPIC -isystem "$$include" -o $(BENCH)/dyntrace_floor.so bench/dyntrace_floor.c

page: deps-page ## generate the page's template, priv/babeltrace2/page.html, from viewer/page/browser
	tools/page > priv/babeltrace2/page.html.new && mv priv/babeltrace2/page.html.new priv/babeltrace2/page.html

check-page: deps-page
	@tools/page | cmp - priv/babeltrace2/page.html || \
	  { echo "priv/babeltrace2/page.html is stale: run 'make page'"; exit 1; }

# RECORDING is the folder of an LTTng recording, by default the one that the demo leaves.
RECORDING ?= $(DEMO)/recording
screenshot: deps-page all ## make docs/page.png, a screenshot of a page (RECORDING=folder)
	@mkdir -p _build/page
	babeltrace2 --plugin-path=priv/babeltrace2 $(RECORDING) \
	  --component=page:sink.dyntrace.html --params='path="_build/page/page.html"'
	MESSAGES=60 AT=load tools/screenshot _build/page/page.html docs/page.png

check-docs: all
	@for g in $(GENERATED); do \
	  $${g#*:} $(LIB) | diff -u $${g%:*} - || { echo "$${g%:*} is stale: run 'make docs'"; exit 1; }; \
	done

docs: all ## generate the files that repeat tables
	for g in $(GENERATED); do $${g#*:} $(LIB) > $${g%:*}.new && mv $${g%:*}.new $${g%:*} || exit 1; done

# The host command with everything it needs on the host, which does not include Erlang. PREFIX must not be this folder.
PREFIX ?= /usr/local
SHIPPED := $(DESTDIR)$(PREFIX)/lib/dyntrace
SHARE   := $(DESTDIR)$(PREFIX)/share
UNITS   := $(DESTDIR)$(PREFIX)/lib/systemd/system
PACKAGE  = $(shell cd priv && find python -name '*.py' -o -name '*.bt' -o -name '*.tsv' -o -name '*.json')
# The builds of the library for `dyntrace load` that exist, in a folder for each machine and C library: x86_64-gnu.
BUILDS   = $(shell cd priv && find builds -name '*.so' 2>/dev/null)
TARGET   = $(shell $(CC) -dumpmachine | sed 's/-.*-/-/')
VERSION  = $(shell sed -n 's/.*{vsn, "\(.*\)"}.*/\1/p' src/dyntrace.app.src)
install: ## install the command `dyntrace` with scripts, plugin, manual and completion (PREFIX=/usr/local DESTDIR=)
	@$(MAKE) -C scripts
	rm -rf $(SHIPPED)/python $(SHIPPED)/ebin $(SHIPPED)/builds
	rm -f $(SHIPPED)/*.so
	install -d $(SHIPPED)/bpftrace $(SHIPPED)/babeltrace2 $(SHIPPED)/ebin
	install -m 644 src/dyntrace.app.src $(SHIPPED)
	install -D priv/bin/dyntrace $(DESTDIR)$(PREFIX)/bin/dyntrace
	install -m 644 priv/bpftrace/*.bt $(SHIPPED)/bpftrace
	install -m 644 priv/babeltrace2/* $(SHIPPED)/babeltrace2
	for file in $(PACKAGE) $(BUILDS); do install -D -m 644 priv/$$file $(SHIPPED)/$$file || exit 1; done
	for file in $(wildcard priv/*.so); do \
	  install -D -m 644 $$file $(SHIPPED)/builds/$(TARGET)/$${file#priv/} || exit 1; done
	$(call compiled,$(SHIPPED)/python)
	for file in $(wildcard $(LIB)/ebin/*); do install -m 644 $$file $(SHIPPED)/ebin || exit 1; done
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(UNITS)
	umask 022 && tools/from_parser priv/share/dyntrace.1.in > $(SHARE)/man/man1/dyntrace.1
	sed -i '/^\.TH/s/ dyntrace / "dyntrace $(VERSION)" /' $(SHARE)/man/man1/dyntrace.1
	umask 022 && tools/from_parser priv/share/dyntrace.bash.in > $(SHARE)/bash-completion/completions/dyntrace
	umask 022 && tools/from_parser priv/share/dyntrace.zsh.in > $(SHARE)/zsh/site-functions/_dyntrace
	umask 022 && sed 's|@PREFIX@|$(PREFIX)|' priv/share/dyntrace-recorder@.service.in > $(UNITS)/dyntrace-recorder@.service

# Packages of this release, for Debian: the command, the library, the plugin.
deb: deps-deb ## build the Debian packages into _build/deb, and check them with lintian
	rm -rf _build/deb
	tools/copy _build/deb/dyntrace
	cd _build/deb/dyntrace && DEB_BUILD_OPTIONS='noautodbgsym $(DEB_BUILD_OPTIONS)' dpkg-buildpackage -b -us -uc
# An override may name a tag that only some releases have.
	lintian --allow-root --suppress-tags alien-tag --fail-on error,warning _build/deb/*.changes

dist: deps-dist ## build the tarballs for x86-64 and arm64 into _build/dist
	tools/dist _build/dist

hex: ## build the hex package into _build/hex
	tools/hex_package _build/hex

# The Python code with type hints: the host command, its tests and two tools. The rest is small scripts.
COMMAND := priv/python/dyntrace_command
PYTHON  := $(COMMAND) priv/bin/dyntrace tools/imports tools/from_parser $(wildcard test/command/*.py)

# priv/bin/dyntrace is Python, but for its first lines.
SHELL_SCRIPTS = $(shell grep -rlE --exclude-dir=_build --exclude-dir=deps '^\#!.*[/ ](ba)?sh$$' \
                  .ci tools test examples debian) priv/share/dyntrace.bash.in
JAVASCRIPT = $(shell find viewer test tools -name '*.js' -o -name '*.mjs' -o -name '*.css')

lint: deps-lint deps-page all check-page ## run all linters and formatters: C, Python, shell, JavaScript, Erlang
	tools/lines .
	tools/links .
	shellcheck $(SHELL_SCRIPTS)
	node tools/validators/validate.mjs "$$(tools/npm tools/validators)" docs/kubernetes/Dockerfile \
	  $(wildcard .github/*/*)
	node "$$(tools/npm tools/prettier)"/prettier/bin/prettier.cjs --log-level=warn --check $(JAVASCRIPT)
	clang-format --dry-run --Werror $$(find c_src viewer -name obj -prune -o -name '*.[ch]' -print)
	tools/includes .
	tools/imports $(COMMAND)
	mypy $(PYTHON)
	pylint --score=n $(PYTHON)
	$(MAKE) -C c_src lint
	$(MAKE) -C viewer lint
	$(REBAR) xref
	$(REBAR) dialyzer

compile_commands.json: all ## write the compilation database of the C sources, for clangd
	@{ $(MAKE) -C c_src compile-commands; $(MAKE) -C viewer compile-commands; } | \
	  sed '1s/^/[/; $$!s/$$/,/; $$s/$$/]/' > $@

deps: ## install the packages that any target needs
	tools/deps $(sort $(CHECK_NEEDS) $(BENCH_NEEDS) $(VM_NEEDS) $(MATRIX_NEEDS) $(ARM64_NEEDS) $(SYSTEMS_NEEDS) \
	  $(LINT_NEEDS) $(MUSL_NEEDS) $(DEB_NEEDS) $(DIST_NEEDS))

deps-musl deps-page deps-arm64 deps-demo deps-check deps-fast deps-release deps-bench deps-matrix deps-vm deps-systems \
deps-lint deps-deb deps-packages deps-dist: deps-%:
	@tools/deps $($(shell echo $* | tr a-z A-Z)_NEEDS)

clean: ## remove all build results
	$(MAKE) -C c_src clean
	$(MAKE) -C viewer clean
	$(MAKE) -C scripts clean
	rm -rf priv/beam priv/builds _build compile_commands.json
	find priv/python -name __pycache__ -prune -exec rm -rf {} +

.PHONY: help all build build-tests cached musl demo page check-page screenshot compile_commands.json check \
        $(addprefix check-,$(LANES)) check-command-long check-command-rest check-arm64 check-busy check-fast \
        check-matrix check-release check-sanitize check-sessions check-packages check-systems \
        check-vm check-docs $(addprefix check-sanitize-,$(SANITIZE_PARTS)) \
        soak docs install deb dist hex lint bench bench-built clean deps deps-arm64 deps-deb deps-packages deps-dist \
        deps-demo deps-musl deps-page deps-check deps-fast deps-release deps-vm deps-systems deps-lint deps-bench \
        deps-matrix
