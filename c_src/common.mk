# The common part of c_src/Makefile and viewer/Makefile. Each has its sources in its own folder and adds to DT_FLAGS.
#
#   CC, CFLAGS, LDFLAGS   as usual
#   SYSTEM=Darwin         build as on this system; default: `uname -s`
#   V=1                   show the commands

PRIV     := ../priv
OBJ      := obj

CFLAGS   ?= -O2 -g
DT_FLAGS := -I. -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Werror -fvisibility=hidden -fPIC

SYSTEM   ?= $(shell uname -s)
SYSTEM   := $(SYSTEM)
# The systems with native DTrace. Neither the LTTng nor the babeltrace2 parts are built there.
NATIVE   := $(filter Darwin FreeBSD SunOS,$(SYSTEM))

comma := ,

.DEFAULT_GOAL := all

# Prints a line per generated file instead of its command.
MAKEFLAGS += --no-print-directory
Q    := $(if $(filter 1,$(V)),,@)
made = $(if $(Q),@printf '  %-4s %s\n' $(1) '$(patsubst $(OBJ)/%,%,$@)';)

# Changes of these files rebuild every object.
BUILD := $(OBJ)/flags $(MAKEFILE_LIST)

# The command that compiles a source. It also lists system headers, because ccache compares the contents of listed
# headers only (CCACHE_DEPEND in ../Makefile).
compile = $(CC) $(DT_FLAGS) $(CPPFLAGS) $(CFLAGS) -MD -MP -c -o $@ $<

$(OBJ)/%.o: %.c $(BUILD)
	@mkdir -p $(@D)
	$(call made,CC)$(compile)

# Prints, for editors, how each source is compiled: a JSON object per line.
compile-commands:
	@for source in $(SOURCES); do \
	  printf '{"directory": "%s", "file": "%s", "command": "%s"}\n' '$(CURDIR)' $$source \
	         "$$(echo '$(CC) $(DT_FLAGS) $(CPPFLAGS) $(CFLAGS)' | sed 's/["\\]/\\&/g') -c $$source"; done

# Rebuilds objects that were built with other flags.
$(OBJ)/flags: FORCE | $(OBJ)
	@echo '$(CC) $(DT_FLAGS) $(CPPFLAGS) $(CFLAGS)' | cmp -s - $@ || \
	  echo '$(CC) $(DT_FLAGS) $(CPPFLAGS) $(CFLAGS)' > $@

$(OBJ) $(PRIV):
	@mkdir -p $@

CPPCHECK := cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
              --suppress=missingIncludeSystem --suppress=toomanyconfigs --error-exitcode=1 -I.

FORCE:

.PHONY: all lint clean compile-commands FORCE
