# Builds and runs the tests, checks, benches and examples; the headers themselves need no build.
# SPDX-License-Identifier: MIT
#
#   make test        every property at the smallest size that shows it (under 5 minutes)
#   make check-all   compile matrix, names, sanitizers, float, valgrind, other solvers where installed (under 30 minutes)
#   make validate    figures at full size, hours; writes docs/validation/
#   make bench       time per unit of work
#   make lib         build/lib/libfsi.a, the bodies of each header compiled by themselves
#   make examples    builds every program of examples/ and studies/ by the cc line in its first comment
#   make test-cuda   the tests of fsi_cuda.cu on a GPU (needs nvcc); "skipped: no device" where there is none
#   make fuzz        clang's fuzzer on tests/fuzz/*.c, FUZZ_SECONDS each
#   make clean

CC = cc
NVCC = nvcc
JOBS = 2
MAKEFLAGS += -j$(JOBS) --no-print-directory
FUZZ_SECONDS = 60
WARN = -Wall -Wextra -pedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Wstrict-prototypes -Werror

# Each set of flags builds into a folder of its own: build/plain/test_ground.exe, build/asan/test_ground.exe ...
FLAGS_plain    = -O2 $(WARN)
FLAGS_float    = -O2 $(WARN) -DFSI_REAL_FLOAT -DTEST_SLOWED=1
FLAGS_asan     = -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all
FLAGS_tsan     = -O1 -g1 -fsanitize=thread -DFSI__DISPATCH_WORTH=1
FLAGS_valgrind = -O1 -g1 -DTEST_SLOWED=2
FLAGS_native   = -O3 -march=native $(WARN) -DFSI__DISPATCH_WORTH=1
FLAGS_validate = -O3 -march=native
FLAGS_bench    = -O3 -march=native
FLAGS_lib      = -O2

# Only tests that start threads are of use there: their names say so. They promise the same bits, so they also run as the
# benches are built, where compilers contract and vectorise as they like. There every loop is dispatched, however little
# it carries.
TSAN = $(filter $(TESTS),$(basename $(notdir $(shell grep -l "_threads" tests/test_*.c))))

# Programs that valgrind finishes within a minute, and that need no long double, which it rounds to 64 bits.
VALGRIND = test_body test_ground test_io test_mesh test_neighbors test_sph_double

# Programs of physics alone, for many seconds each, on code that the others run under sanitizers.
PHYSICS = test_couple_together test_couple_rest test_levelset_tension test_levelset_use test_levelset_momentum \
          test_elastic test_flip test_flip_inside test_shell_physics test_viscosity test_sph_moving \
          test_sph_tension test_sph_viscosity test_wcsph_floats test_wcsph_rest test_wcsph_scenes test_membrane

# Other solvers behind fsi_solver: those that are installed.
PEERS := $(shell $(CC) -E -include suitesparse/cholmod.h -x c /dev/null > /dev/null 2>&1 && echo peer_cholmod) \
         $(shell command -v mpicc > /dev/null && pkg-config --exists PETSc 2> /dev/null && echo peer_petsc)

HEADERS := $(wildcard fsi*.h tests/kit/*.h tests/peer/*.h validate/*.h examples/kit/*.h studies/*/*.h bench/*.h)
# fsi_cuda.cu is C++: without such a compiler its test is skipped.
HAVE_CXX := $(shell command -v $(CXX))
TESTS   := $(filter-out $(if $(HAVE_CXX),,test_cuda),$(basename $(notdir $(wildcard tests/test_*.c))))
# Tests that bring bodies, to look inside: in float and at -O3 they take long to compile and show what the others show.
INSIDE  := $(shell grep -l "^.define FSI_[A-Z_]*IMPLEMENTATION" tests/test_*.c)
LOOKING := $(basename $(notdir $(INSIDE)))
CASES   := $(basename $(notdir $(wildcard validate/*.c)))
SCENES  := $(wildcard examples/*.c studies/*/*.c)
BENCHES := $(basename $(notdir $(wildcard bench/*.c)))
FUZZERS := $(basename $(notdir $(wildcard tests/fuzz/*.c)))
UNITS   := $(basename $(wildcard fsi*.h))
bodies_of = $(if $(filter fsi,$(1)),FSI_GROUND,$(shell echo $(1) | tr a-z A-Z))_IMPLEMENTATION
SCRIPTS := compile_matrix names function_lengths header_table conventions

logs = $(foreach name,$(2),build/$(1)/$(name).log)
TEST_LOGS  = $(call logs,plain,$(TESTS))
# Long programs first: at the end no core waits for one of them.
CHECK_LOGS = $(call logs,scripts,$(SCRIPTS)) $(call logs,valgrind,$(filter $(VALGRIND),$(TESTS))) $(call logs,peer,$(PEERS)) \
             $(call logs,tsan,$(TSAN)) $(call logs,native,$(filter-out $(LOOKING),$(TSAN))) $(call logs,asan,$(filter-out $(PHYSICS),$(TESTS))) \
             $(call logs,float,$(filter-out $(LOOKING),$(TESTS)))

.PHONY: test test-cuda check-all lib validate bench examples fuzz clean FORCE
.SECONDARY:
.SECONDEXPANSION:

test: $(TEST_LOGS)
	@$(if $(HAVE_CXX),,echo "skipped test_cuda: no C++ compiler")
	@scripts/summary.sh $^

test-cuda: $(if $(shell command -v $(NVCC)),build/cuda/test_cuda.exe)
	@$(if $^,./$<,echo "skipped: no $(NVCC)")

check-all: $(CHECK_LOGS)
	@scripts/summary.sh $^

VALIDATE := $(CASES) $(sort $(shell sed -n "s/^\([a-z][a-z_]*\).*/\1/p" validate/validate_runs.txt))

validate: $(VALIDATE:%=build/validate/%.exe)
	scripts/validate.sh docs/validation "$(CC) $(FLAGS_validate)" $(JOBS) validate/validate_runs.txt build/validate $(CASES)

lib: build/lib/libfsi.a
build/lib/libfsi.a: build/lib/fsi.a
	@cp $< $@

bench: $(BENCHES:%=build/bench/%.exe)
	@for b in $^; do ./$$b || exit 1; done

examples:
	@for e in $(SCENES); do scripts/build_example.sh $$e || exit 1; done

fuzz: $(FUZZERS:%=build/fuzz/%.exe)
	@for f in $^; do mkdir -p $$f.corpus; ./$$f -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $$f.corpus || exit 1; done

clean:
	rm -rf build single

# A log holds what a program printed and its exit status; summary.sh reads it. Logs are made anew every time.
build/scripts/%.log: FORCE
	@mkdir -p $(@D)
	@scripts/$*.sh > $@ 2>&1; echo "exit $$?" >> $@

build/valgrind/%.log: build/valgrind/%.exe FORCE
	@valgrind -q --leak-check=full --error-exitcode=99 ./$< > $@ 2>&1; echo "exit $$?" >> $@

build/tsan/%.log: build/tsan/%.exe FORCE
	@./$< threads > $@ 2>&1; echo "exit $$?" >> $@

build/native/%.log: build/native/%.exe FORCE
	@./$< threads > $@ 2>&1; echo "exit $$?" >> $@

build/%.log: build/%.exe FORCE
	@./$< > $@ 2>&1; echo "exit $$?" >> $@

vpath %.c validate $(sort $(dir $(SCENES)))
build/validate/%.exe: %.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=c99 -I. $(FLAGS_validate) $< -o $@ -lm -pthread

build/bench/%.exe: bench/%.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=c99 $(FLAGS_bench) $< -o $@ -lm -pthread

build/fuzz/%.exe: tests/fuzz/%.c $(HEADERS)
	@mkdir -p $(@D)
	clang -std=c99 -g -O1 -fsanitize=fuzzer,address,undefined,float-cast-overflow -fno-sanitize-recover=undefined,float-cast-overflow $< -o $@ -lm

build/validate/validate_solve.exe: tests/test_solve_matrices.c

build/peer/peer_cholmod.exe: tests/peer/peer_cholmod.c $(HEADERS)
	@mkdir -p $(@D)
	$(CC) -std=c99 -O2 $(WARN) $< -o $@ -lcholmod -lm -pthread

build/peer/peer_petsc.exe: tests/peer/peer_petsc.c $(HEADERS)
	@mkdir -p $(@D)
	mpicc -std=c99 -O2 $$(pkg-config --cflags PETSc) $< -o $@ $$(pkg-config --libs PETSc) -lm -pthread

# The bodies of each header are compiled once for all tests of a folder, which themselves take longer to compile than to
# run: -O1 is enough for those that bring no bodies (INSIDE does). From an archive the linker takes only what is
# undefined: a test that brings the bodies of one header, to look inside, gets no second ones.
build/%.o: tests/$$(notdir $$*).c
	@mkdir -p $(@D)
	$(CC) -std=c99 $(FLAGS_$(notdir $(@D))) $(if $(filter $<,$(INSIDE)),,-O1) -DTEST_LINKED -MMD -MP -c $< -o $@

build/%.o: $$(notdir $$*).h
	@mkdir -p $(@D)
	$(CC) -std=c99 $(FLAGS_$(notdir $(@D))) -D$(call bodies_of,$(notdir $*)) -MMD -MP -x c -c $< -o $@

-include $(wildcard build/*/*.d)

build/%/fsi.a: $$(addprefix build/$$*/,$$(addsuffix .o,$$(UNITS)))
	@rm -f $@; $(AR) rcs $@ $^

# The shim of fsi_cuda.cu is linked with the C++ compiler.
SHIMS := $(foreach f,plain float asan tsan native,build/$(f)/)
$(SHIMS:%=%fsi_cuda.o): build/%/fsi_cuda.o: fsi_cuda.cu
	@mkdir -p $(@D)
	$(CXX) -std=c++11 $(filter-out -Wstrict-prototypes,$(FLAGS_$*)) -MMD -MP -x c++ -c $< -o $@

$(SHIMS:%=%test_cuda.exe): build/%/test_cuda.exe: build/%/test_cuda.o build/%/fsi_cuda.o build/%/fsi.a
	@$(CXX) $(filter-out -Wstrict-prototypes,$(FLAGS_$*)) $^ -o $@ -lm -pthread

build/cuda/fsi_cuda.o: fsi_cuda.cu fsi.h fsi_pressure.h
	@mkdir -p $(@D)
	$(NVCC) -O3 -fmad=false -c $< -o $@

build/cuda/test_cuda.exe: build/plain/test_cuda.o build/cuda/fsi_cuda.o build/plain/fsi.a
	@$(NVCC) $^ -o $@ -lm -lpthread

build/valgrind/%.exe: build/valgrind/%.o build/plain/fsi.a
	@$(CC) $(FLAGS_valgrind) $^ -o $@ -lm -pthread

build/%.exe: build/%.o build/$$(dir $$*)fsi.a
	@$(CC) $(FLAGS_$(notdir $(@D))) $^ -o $@ -lm -pthread
