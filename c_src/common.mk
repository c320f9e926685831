# What c_src/Makefile and viewer/Makefile share. Each has its sources in its own folder and adds to DT_FLAGS.
#
#   CC, CFLAGS, LDFLAGS   as usual
#   SYSTEM=Darwin         build as on this system; `uname -s` when not given
#   V=1                   show the commands

PRIV     := ../priv
OBJ      := obj

CFLAGS   ?= -O2 -g
DT_FLAGS := -I. -std=gnu11 -Wall -Wextra -Wmissing-prototypes -Werror -fvisibility=hidden -fPIC

SYSTEM   ?= $(shell uname -s)
SYSTEM   := $(SYSTEM)
# The systems whose DTrace is native. Neither LTTng nor babeltrace2 is built there.
NATIVE   := $(filter Darwin FreeBSD SunOS,$(SYSTEM))

comma := ,

.DEFAULT_GOAL := all

# A line per file that is made, instead of its command.
MAKEFLAGS += --no-print-directory
Q    := $(if $(filter 1,$(V)),,@)
made = $(if $(Q),@printf '  %-4s %s\n' $(1) '$(patsubst $(OBJ)/%,%,$@)';)

# What every object is built again for.
BUILD := $(OBJ)/flags $(MAKEFILE_LIST)

# The command that compiles a source. It lists the system's headers, too, since ccache compares what is in those of the
# list, and no others (CCACHE_DEPEND in ../Makefile).
compile = $(CC) $(DT_FLAGS) $(CPPFLAGS) $(CFLAGS) -MD -MP -c -o $@ $<

$(OBJ)/%.o: %.c $(BUILD)
	@mkdir -p $(@D)
	$(call made,CC)$(compile)

# What was built with other flags is built again.
$(OBJ)/flags: FORCE | $(OBJ)
	@echo '$(CC) $(DT_FLAGS) $(CPPFLAGS) $(CFLAGS)' | cmp -s - $@ || \
	  echo '$(CC) $(DT_FLAGS) $(CPPFLAGS) $(CFLAGS)' > $@

$(OBJ) $(PRIV):
	@mkdir -p $@

CPPCHECK := cppcheck --quiet --std=c11 --enable=warning,performance,portability --inline-suppr \
              --suppress=missingIncludeSystem --suppress=toomanyconfigs --error-exitcode=1 -I.

FORCE:

.PHONY: all lint clean FORCE
