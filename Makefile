# sasstop: flat Makefile. All output under build/ (ASan objects: build-asan/). `make help` lists targets.
#
# A .c file in a folder joins that folder's archive by itself; programs link archives, so adding a
# file needs no edit here. Kernels: kernels/FAMILY/NAME.cu -> build/cubin/sm_ARCH/FAMILY/NAME.cubin.

CC       ?= gcc
B        ?= build
CSTD     := -std=c11 -D_GNU_SOURCE -ffp-contract=off
WARN     := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes
OPT      ?= -O2 -g
SAN      ?=
CFLAGS    = $(CSTD) $(WARN) $(OPT) $(SAN) -I. -MMD -MP -pthread $(XCFLAGS)
LDFLAGS   = $(SAN) -pthread
STATIC   := -Wl,-Bstatic -lzstd -llz4 -lxxhash -lpcre2-8 -lsqlite3 -lelf -lz -Wl,-Bdynamic
LIBS     := $(STATIC) -lcjson -lm -ldl
CURSES   := -lncursesw -ltinfo
# `make V=1` shows whole commands.
ifeq ($(V),1)
say =
Q   =
else
say = @echo "  $(1)	$@";
Q   = @
endif
VERSION  := 0.1.0
COMMIT   := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)

NVCC     ?= $(firstword $(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc 2>/dev/null))
ARCHS    ?= 90a 121
NVFLAGS  := -cubin -O3 -std=c++17 -I.

# Packages come before anything is compiled, also with -j, which is the default.
ifneq ($(filter-out clean help format deps,$(or $(MAKECMDGOALS),all)),)
ifneq ($(shell sh tools/deps.sh >&2 && echo ok),ok)
$(error packages are missing: see the line above)
endif
endif
ifeq ($(filter -j%,$(MAKEFLAGS)),)
MAKEFLAGS += -j$(shell nproc 2>/dev/null || echo 2)
endif

FOLDERS  := base sass_view kernels cupti session engine tui
# Programs' main files stay out of the archives.
MAINS    := tui/main.c engine/main.c kernels/kcheck_main.c
src       = $(filter-out $(MAINS),$(wildcard $(1)/*.c $(1)/*/*.c))
obj       = $(patsubst %.c,$(B)/o/%.o,$(1))
lib       = $(patsubst %,$(B)/lib%.a,$(1))

SASSTOP_LIBS := tui session kernels cupti sass_view base
ENGINE_LIBS  := engine session cupti kernels sass_view base
KCHECK_LIBS  := kernels sass_view base

# broken_* kernels live beside the good ones in kernels/FAMILY/broken/: built, never offered in the app.
KERNEL_SRC := $(wildcard kernels/*/*.cu kernels/*/broken/*.cu)
CUBINS     := $(if $(NVCC),$(foreach a,$(ARCHS),$(patsubst kernels/%.cu,$(B)/cubin/sm_$(a)/%.cubin,$(KERNEL_SRC))))

UNIT_SRC   := $(wildcard tests/unit/test_*.c)
UNIT_BIN   := $(patsubst tests/unit/%.c,$(B)/unit/%,$(UNIT_SRC))
# Helpers shared by tests: an archive, so that a program takes only what it names.
TESTLIB    := $(B)/libtestlib.a

.DEFAULT_GOAL := all
.SECONDARY:
.PHONY: all run test test-asan test-gpu accept help clean deps cubins cubins-all model bench format loc docs

all: $(B)/sasstop $(B)/sasstop-engine $(B)/kcheck cubins ## programs and cubins

cubins: $(CUBINS) ## kernels for ARCHS (default: 90a 121)
ifeq ($(NVCC),)
	@echo "no nvcc found: everything but the GPU kernels is built (install the CUDA toolkit, or set NVCC=)"
endif

cubins-all: ## kernels for every supported architecture
	$(MAKE) cubins ARCHS="80 86 89 90a 100a 120 121"

$(B)/sasstop: $(B)/o/tui/main.o $(call lib,$(SASSTOP_LIBS))
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS) $(CURSES)

$(B)/sasstop-engine: $(B)/o/engine/main.o $(call lib,$(ENGINE_LIBS))
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)

$(B)/kcheck: $(B)/o/kernels/kcheck_main.o $(call lib,$(KCHECK_LIBS))
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS)

define ARCHIVE
$(B)/lib$(1).a: $(call obj,$(call src,$(1)))
	@mkdir -p $$(@D); rm -f $$@; ar rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call ARCHIVE,$(f))))

$(B)/o/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<

# The version and commit are compiled into one object only, anew when they are others.
$(shell mkdir -p $(B); echo '$(VERSION) $(COMMIT)' | cmp -s - $(B)/commit || echo '$(VERSION) $(COMMIT)' >$(B)/commit)
$(B)/o/base/version.o: $(B)/commit
$(B)/o/base/version.o: XCFLAGS += -DSASSTOP_VERSION='"$(VERSION)"' -DSASSTOP_COMMIT='"$(COMMIT)"'
# The CPU backend's inner loops are worth the highest level, also in checking builds.
$(B)/o/engine/cpu/%.o: XCFLAGS += -O3

define CUBIN
$(B)/cubin/sm_$(1)/%.cubin: kernels/%.cu
	@mkdir -p $$(@D)
	$$(call say,NVCC)
	$$(Q)$(NVCC) $(NVFLAGS) -arch=sm_$(1) -MMD -MP -MF $$(@:.cubin=.d) -o $$@ $$<
endef
$(foreach a,$(ARCHS),$(eval $(call CUBIN,$(a))))

$(TESTLIB): $(patsubst %.c,$(B)/o/%.o,$(wildcard tests/lib/*.c))
	@mkdir -p $(@D); rm -f $@; ar rcs $@ $^

$(B)/unit/%: $(B)/o/tests/unit/%.o $(TESTLIB) $(call lib,$(FOLDERS))
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS) $(CURSES) -lcmocka

unit: $(UNIT_BIN)
.PHONY: unit

# Programs that need a GPU to say anything; without one they skip with the reason.
GPU_SRC := $(wildcard tests/gpu/*.c)
GPU_BIN := $(patsubst tests/gpu/%.c,$(B)/gpu/%,$(GPU_SRC))
GPU_CU  := $(if $(NVCC),$(patsubst tests/gpu/%.cu,$(B)/gpu/%.sm_90a.cubin,$(wildcard tests/gpu/*.cu)))

$(B)/gpu/%: $(B)/o/tests/gpu/%.o $(TESTLIB) $(call lib,$(FOLDERS))
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS) $(CURSES)

$(B)/gpu/%.sm_90a.cubin: tests/gpu/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC)
	$(Q)$(NVCC) $(NVFLAGS) -arch=sm_90a -MMD -MP -MF $(@:.cubin=.d) -o $@ $<

gpu-tests: $(GPU_BIN) $(GPU_CU)
.PHONY: gpu-tests

run: all ## start a live session (MODEL=file.gguf to choose the model)
	@sh tools/run.sh

test: all unit gpu-tests ## every test that this machine can run; ends in "N passed, N failed, N skipped"
	@sh tests/run.sh

test-asan: cubins ## the same under AddressSanitizer and UBSan, in build-asan/
	@mkdir -p build-asan && ln -sfn ../$(B)/cubin build-asan/cubin
	@$(MAKE) test B=build-asan OPT="-O1 -g" SAN="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"

test-gpu: all gpu-tests ## the tests that need an NVIDIA GPU
	@sh tests/gpu/run.sh

accept: all ## rewrite the screen goldens; review the diff
	@ACCEPT=1 sh tests/screens/run.sh

model: ## fetch the real test model (Gemma 3 270M, Q4_K_M) into the cache
	@sh tools/model.sh gemma

bench: all ## speed figures (never part of the tests)
	@sh tests/bench.sh

deps: ## install what is missing (apt)
	@sh tools/deps.sh install

format: ## clang-format every source
	@git ls-files '*.c' '*.h' '*.cu' '*.cuh' | xargs clang-format -i

clean: ## remove build/ and build-asan/
	rm -rf build build-asan

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

-include $(shell find $(B) -name '*.d' 2>/dev/null)
