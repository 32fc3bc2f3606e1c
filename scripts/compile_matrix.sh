#!/bin/bash
# Compiles the headers in every way that is promised; a line per failure, then `N passed, N failed`.
# SPDX-License-Identifier: MIT
# Tools that are missing are named as skipped. Inputs are generated in build/matrix; the others are in tests/compile.
cd "$(dirname "$0")/.." || exit 1
work=build/matrix
headers=$(echo fsi*.h)
warn="-Wall -Wextra -pedantic -Wconversion -Wsign-conversion -Wshadow -Wdouble-promotion -Werror"
cwarn="$warn -Wstrict-prototypes"
passed=0 failed=0
rm -rf $work && mkdir -p $work || exit 1

# try NAME COMMAND: the command must succeed and print nothing.
try() {
    if eval "$2" > $work/out 2>&1 && [ ! -s $work/out ]; then passed=$((passed + 1)); return; fi
    failed=$((failed + 1))
    echo "FAIL $1: $2"
    head -n 5 $work/out
}

# present TOOL...: those that this machine has.
present() { for t in "$@"; do command -v "$t" > /dev/null && echo "$t"; done; }
for t in gcc g++ clang clang++ tcc nvcc cmake pkg-config; do [ "$(present $t)" ] || echo "skipped $t: not found"; done

# ---- inputs --------------------------------------------------------------------------------------------------------

include() { for h in "$@"; do echo "#include \"$h\""; done; }
implement() { echo "#define FSI_IMPLEMENTATION"; include "$@"; }

# Names of the functions that headers declare or define FSI_API.
functions() { cat "$@" | sed -nE 's/^FSI_API [^(]*[ *](fsi_[A-Za-z0-9_]+)\(.*/\1/p' | sort -u; }

# A program that takes the address of each of them: it does not link when one is absent.
use() {
    echo "typedef void (*any_function)(void);"
    echo "static any_function volatile table[] = {"
    functions "$@" | sed 's/.*/    (any_function)\&&,/'
    echo "};"
    echo "int main(void)"
    echo "{"
    echo "    unsigned i, missing = 0;"
    echo "    for (i = 0; i < sizeof table / sizeof *table; i++) missing += !table[i];"
    echo "    return missing > 0;"
    echo "}"
}

for h in $headers; do
    implement $h > $work/alone_${h%.h}.c
    { include $h; echo "int main(void) { return 0; }"; } > $work/declared_${h%.h}.c
    { include $h; use $h; } > $work/use_${h%.h}.c
    { include $h; implement $h; use $h; } > $work/first_${h%.h}.c
done
reversed=$(echo $headers | tr ' ' '\n' | sort -r)
implement $headers > $work/all.c
implement $reversed > $work/reversed.c
{ include $headers $headers; implement $headers $headers; } > $work/twice.c
{ include $headers; use $headers; } > $work/use_all.c
{ implement $headers; use $headers; } > $work/use_static.c
{ implement $headers; echo "int other(void);"; echo "int other(void) { return fsi_version(); }"; } > $work/other_static.c
{ cat tests/compile/hostile.h; implement $headers; } > $work/hostile.c
sources=$(cd $work && echo alone_*.c all.c reversed.c twice.c declared_*.c)
# Headers that no other one includes: with what they include they are all. That each of the others is whole by itself, gcc and tcc tell.
tops=$(for h in $headers; do grep -q "^#include \"$h\"" fsi*.h || echo $h; done)
is_top() { case " $(echo $tops) " in *" $1 "*) return 0 ;; esac; return 1; }

# ---- every header alone, all together, reversed, twice, only declared, in each language and version -----------------

# clang tells all it has to say from the syntax, gcc some of it only when it generates code, and some only when it optimises.
# So all.c is generated for each language, to be linked below, without the -O2 that fsi gives itself; and in C++ at -O2 in
# float, for what inlining across headers shows. The tests' builds show what gcc says of each header at -O2, in double and
# float, and at -O3 -march=native. Private functions cost nothing from -O1 on, as nobody
# calls them.
languages() { # COMPILER FLAGS STANDARD...
    local c=$1 flags=$2 std=$3 read=-fsyntax-only write="-c -o $work/o" f private
    for f in $sources; do
        case $f in alone_*) [ $c = gcc ] || is_top "$(echo $f | sed 's/alone_\(.*\)\.c/\1.h/')" || continue ;; esac
        [ $f = all.c ] || try "$c $std $f" "$c -std=$std $flags -I. $read $work/$f"
        case $f in declared_*|reversed.c|twice.c) continue ;; esac # private functions need their bodies; order and repetition are the same
        private="-O1 $write" # the code of a header that another one includes is generated with that
        case $f in alone_*) is_top "$(echo $f | sed 's/alone_\(.*\)\.c/\1.h/')" || private=$read ;; esac
        try "$c $std $f float static" "$c -std=$std $flags -DFSI_REAL_FLOAT -DFSI_STATIC -I. $private $work/$f"
    done
    try "$c $std all.c" "$c -std=$std $flags -DFSI_NO_OPTIMIZE -fPIC -I. -c -o $work/all_$c.o $work/all.c"
    for std in $4 $5; do try "$c $std" "$c -std=$std $flags -I. $read $work/all.c"; done
    try "$c openmp" "$c -std=$3 $flags -DFSI_NO_OPTIMIZE -fopenmp -I. $read $work/all.c"
}
for c in $(present gcc clang); do
    languages $c "$cwarn" c99 c11 c17
    try "$c names that are macros elsewhere" "$c -std=c99 -I. -fsyntax-only $work/hostile.c"
done
for c in $(present g++ clang++); do languages $c "$warn -x c++" c++11 c++17 c++20; done
include $headers > $work/included.c
for c in $(present g++ clang++); do
    try "$c: no old-style cast in declarations" \
        "$c -std=c++11 -Wold-style-cast -Werror -I. -x c++ -fsyntax-only $work/included.c"
done
[ -f $work/all_gcc.o ] && try "a shared library" "gcc -shared $work/all_gcc.o -o $work/libfsi.so -lm"
if [ "$(present g++)" ]; then
    try "g++ -O2 float" "g++ -std=c++11 $warn -x c++ -O2 -DFSI_REAL_FLOAT -I. -c -o $work/all_float.o $work/all.c"
fi
for f in validate/*.c tests/fuzz/*.c bench/*.c; do try "$f" "${CC:-gcc} -std=c99 $cwarn -I. -fsyntax-only $f"; done
for c in $(present tcc); do for f in $sources; do try "tcc $f" "tcc -Wall -I. -c $work/$f -o $work/${f%.c}_tcc.o"; done; done

# ---- every macro that users may define ------------------------------------------------------------------------------

together=""
for m in $(grep -oh 'defined(FSI_[A-Z][A-Z_]*)' fsi*.h | sed 's/.*(\(.*\))/\1/' | sort -u | grep -v -E '_(IMPLEMENTATION|DONE|H)$'); do
    try "gcc -D$m" "gcc -std=c99 $cwarn -D$m -I. -fsyntax-only $work/all.c"
    [ $m = FSI_STATIC ] || together="$together -D$m" # generates nothing
done
for m in FSI_SPH_PARTS=1 FSI_SPH_PARTS=255; do try "gcc -D$m" "gcc -std=c99 $cwarn -D$m -I. -fsyntax-only $work/all.c"; done
try "gcc$together -DFSI_SPH_PARTS=1" "gcc -std=c99 $cwarn $together -DFSI_SPH_PARTS=1 -I. -c $work/all.c -o $work/o"

# ---- nothing is silently empty: every function links, from C and C++, shared and private ----------------------------

fastest=$(present tcc gcc | head -n 1)
for h in $headers; do
    n=${h%.h}
    try "$h linked alone" "$fastest -I. $work/alone_$n.c $work/use_$n.c -lm -o $work/x && $work/x"
    try "$h declares functions" "[ \$(functions $h | wc -l) -gt 0 ]"
    # As game.h includes fsi_sph.h, and game.c includes game.h before it asks for the bodies.
    try "$h, plainly first, linked" "$fastest -I. $work/first_$n.c -lm -o $work/x && $work/x"
    [ "$(present g++)" ] && is_top $h && try "$h, plainly first, linked in C++" \
        "g++ -x c++ $warn -DFSI_NO_OPTIMIZE -I. $work/first_$n.c -lm -o $work/x && $work/x"
done

# ---- the bodies of each header by themselves; a simulator in one file -----------------------------------------------

for h in $headers; do
    case $h in fsi.h) m=FSI_GROUND ;; *) m=$(echo ${h%.h} | tr a-z A-Z) ;; esac
    try "$h: its bodies alone" "$fastest -D${m}_IMPLEMENTATION -I. -x c -c $h -o $work/unit_${h%.h}.o"
done
try "bodies compiled by themselves link" "$fastest -I. $work/use_all.c $work/unit_*.o -lm -o $work/x && $work/x"
for n in sph wcsph levelset shell rigid elastic couple; do
    scripts/single.sh $n > /dev/null
    { implement fsi_$n.h; use single/fsi_$n.h; } > $work/single_$n.c
    try "single/fsi_$n.h" "$fastest -Isingle $work/single_$n.c -lm -o $work/x && $work/x"
done

# ---- installed by cmake, for a project elsewhere ---------------------------------------------------------------------

installed() { # SHARED PREFIX
    cmake -S . -B $2/build -DBUILD_SHARED_LIBS=$1 -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O0 -DFSI_NO_OPTIMIZE" &&
    cmake --build $2/build && cmake --install $2/build --prefix $2
}
found() { # PREFIX
    cmake -S $work/user -B $1/user -DCMAKE_PREFIX_PATH="$PWD/$1" && cmake --build $1/user && $1/user/user
}
# What programs that ask pkg-config are built with.
linked() { # PREFIX
    local path
    path=$(dirname "$(find $1 -path '*/pkgconfig/fsi.pc')") && export PKG_CONFIG_PATH=$path && [ -f $path/fsi.pc ] &&
    gcc $(pkg-config --cflags fsi) $work/user/use_all.c $(pkg-config --libs fsi) -o $work/x &&
    LD_LIBRARY_PATH=$(dirname "$path") $work/x
}
quietly() { "$@" > $work/said 2>&1 || { echo fails; tail -n 5 $work/said; }; }
if [ "$(present cmake)" ]; then
    mkdir $work/user && cp tests/compile/cmake/CMakeLists.txt $work/use_all.c $work/user
    for shared in OFF ON; do
        prefix=$work/shared_$shared
        try "cmake installs the library, shared $shared" "quietly installed $shared $prefix"
        try "the library is as asked, shared $shared" \
            "find $prefix/lib* -name 'libfsi.*' | grep -q '\.$([ $shared = ON ] && echo so || echo a)$' || echo it is not"
        try "find_package finds it, shared $shared" "quietly found $prefix"
        [ "$(present pkg-config)" ] && try "pkg-config finds it, shared $shared" "quietly linked $prefix"
    done
fi

# ---- mixed precision ------------------------------------------------------------------------------------------------

# What was compiled for another precision does not link, and the linker's message says which it was.
mixed() { # COMPILER USER-FLAGS WORD OTHER: an error that holds both words
    ! $1 $2 -I. $work/use_fsi.c $work/alone_$1.o -lm -o $work/x 2> $work/said && grep -q "$3.*$4" $work/said || { echo it links, or its message does not tell why not; cat $work/said; }
}
for c in $(present gcc clang g++ tcc); do
    $c -DFSI_NO_OPTIMIZE -I. -c $work/alone_fsi.c -o $work/alone_$c.o
    $c -DFSI_NO_OPTIMIZE -DFSI_REAL_FLOAT -I. -c $work/alone_fsi.c -o $work/alone_float_$c.o
    try "$c double with double" "$c -I. $work/use_fsi.c $work/alone_$c.o -lm -o $work/x && $work/x"
    try "$c float with float" "$c -DFSI_REAL_FLOAT -I. $work/use_fsi.c $work/alone_float_$c.o -lm -o $work/x && $work/x"
    try "$c float with double" "mixed $c -DFSI_REAL_FLOAT is_float is_double"
    cp $work/alone_float_$c.o $work/alone_$c.o
    try "$c double with float" "mixed $c '' is_double is_float"
done
for c in $(present gcc clang tcc); do
    try "$c linked" "$c -I. $work/use_all.c $work/all_$c.o -lm -o $work/x && $work/x"
done
if [ "$(present g++)" ]; then
    try "C calls C++" "gcc -std=c99 -I. -c $work/use_all.c -o $work/b.o && g++ $work/b.o $work/all_g++.o -lm -o $work/x && $work/x"
    try "C calls C++ in float" "gcc -std=c99 -DFSI_REAL_FLOAT -I. -c $work/use_all.c -o $work/b.o && g++ $work/b.o $work/all_float.o -lm -o $work/x && $work/x"
    try "C++ calls C" "g++ -x c++ -I. -c $work/use_all.c -o $work/b.o && gcc $work/b.o $work/all_gcc.o -lm -o $work/x && $work/x"
fi
# What is private can stand beside a public copy: whatever had leaked would be defined twice.
for c in $(present gcc clang tcc g++); do
    try "$c FSI_STATIC beside another file" "$c -O1 -DFSI_STATIC -I. -c $work/other_static.c -o $work/other.o && $c -I. $work/use_all.c $work/other.o $work/all_$c.o -lm -o $work/x && $work/x"
done
for c in $(present tcc); do try "tcc FSI_STATIC, all of it used" "tcc -DFSI_STATIC -I. $work/use_static.c -lm -o $work/x && $work/x"; done
try "fsi_impl.c holds every header" "for h in $headers; do grep -q \"\\\"\$h\\\"\" fsi_impl.c || echo \$h is missing; done"

# ---- other compilers and targets ------------------------------------------------------------------------------------

for c in $(present nvcc); do
    try "nvcc" "nvcc -x cu -I. -c $work/all.c -o $work/o"
    try "nvcc fsi_cuda.cu" "nvcc -O3 -fmad=false -c fsi_cuda.cu -o $work/o"
    for f in "" -DFSI_REAL_FLOAT; do
        try "nvcc fsi_cuda.cu $f sm_80 sm_90" "nvcc -O3 -fmad=false $f -gencode arch=compute_80,code=sm_80 \
            -gencode arch=compute_90,code=sm_90 -c fsi_cuda.cu -o $work/o"
    done
done
for c in $(present g++ clang++); do
    for f in "-std=c++11 -O2" "-std=c++20 -O1 -DFSI_REAL_FLOAT"; do
        try "$c $f fsi_cuda.cu" "$c $f $warn -x c++ -c fsi_cuda.cu -o $work/o"
    done
done

if [ "$(present clang)" ]; then
    cl=$(dirname "$(readlink -f "$(command -v clang)")")/clang-cl
    if [ -x "$cl" ]; then
        for target in x86_64 i386 aarch64; do
            for mode in /Tc /Tp; do
                try "clang-cl $target $mode" "$cl --target=$target-pc-windows-msvc -imsvc tests/compile/stub -I. /W4 /WX /Zs $mode$work/all.c"
            done
        done
    else echo "skipped clang-cl: not found beside clang"; fi
    # Little and big endian, 32 and 64 bits, with stub headers.
    for target in aarch64-linux-gnu armv7-linux-gnueabihf s390x-linux-gnu powerpc-linux-gnu riscv64-linux-gnu wasm32-wasi; do
        try "clang $target" "clang --target=$target -std=c99 $cwarn -nostdlibinc -isystem tests/compile/stub -I. -fsyntax-only $work/all.c"
    done
fi
if echo 'int main(void) { return 0; }' | gcc -m32 -x c - -o $work/x 2> /dev/null; then
    # Kernels without 32-bit emulation refuse the program that was linked for it.
    if $work/x 2> /dev/null; then run="&& $work/x"; else run=""; echo "skipped running what gcc -m32 built: this kernel has no 32-bit programs"; fi
    try "gcc -m32" "gcc -m32 -msse2 -mfpmath=sse -std=c99 $cwarn -DFSI_NO_OPTIMIZE -DFSI_STATIC -I. $work/use_static.c -lm -o $work/x $run"
else echo "skipped gcc -m32: its libraries are not found"; fi

# ---- floating point: a*b+c is rounded twice inside fsi and as the user asked outside; NaN is seen -------------------

arithmetic() { $1 -I. -DFSI_HEADER="\"${2:-fsi.h}\"" tests/compile/arithmetic.c -lm -o $work/x && $work/x; }
show_unless() { grep -q "$1" $work/said || cat $work/said; }
# A copy without the strict regions shows that the probe can fail.
sed -E 's/^#define (FSI__STRICT_[A-Z_]*) .*/#define \1/' fsi.h > $work/loose.h
native="-O3 -march=native"
for c in $(present gcc clang g++ clang++); do
    case $c in *++) lang="-x c++ -std=gnu++11" ;; *) lang=-std=gnu99 ;; esac
    fma=$(echo | $c -march=native -dM -E - | grep __FMA__)
    [ "$fma" ] || echo "skipped contraction with $c: this CPU has no FMA"
    for real in "" -DFSI_REAL_FLOAT; do
        arithmetic "$c $lang $real $native" > $work/said 2>&1
        try "$c $real: no contraction inside" "show_unless contract=0"
        [ "$fma" ] && try "$c $real: contraction outside, as before" "show_unless user=1"
        cut -d ' ' -f 1 $work/said > $work/bits
        case $c in *++) continue ;; esac
        for o in -O0 "-O0 -DFSI_NO_OPTIMIZE" -O2; do arithmetic "$c $lang $real $o" 2>&1 | cut -d ' ' -f 1; done >> $work/bits
        try "$c $real: the same bits at every -O level" "[ \$(uniq $work/bits | wc -l) = 1 ] || cat $work/bits"
    done
    if [ "$fma" ]; then
        arithmetic "$c $lang $native" $work/loose.h > $work/said 2>&1
        try "$c: the probe sees contraction" "show_unless contract=1"
    fi
    try "$c: -ffast-math is refused" "! $c -ffast-math -I. -fsyntax-only $work/alone_fsi.c 2> /dev/null"
    for o in -O0 -O3; do
        try "$c $o: NaN is seen under -ffast-math" "$c $o $lang -ffast-math -w -I. tests/compile/finite.c -lm -o $work/x && $work/x"
    done
done

# ---- a debug build stays usable: gcc builds fsi at -O2 where the command line does not optimise ----------------------

for c in $(present gcc g++); do
    for o in -O0 -O2; do $c $o $([ $c = g++ ] && echo -x c++) -I. tests/compile/speed.c -lm -o $work/speed$o 2> $work/said; done
    try "$c -O0 takes less than three times what -O2 takes" \
        "cat $work/said; [ \$($work/speed-O0) -lt \$((3 * \$($work/speed-O2))) ] || echo it takes longer"
done

# Whole simulators: what libm or the compiler would do otherwise at -O0 shows here.
for c in $(present gcc clang); do
    for o in "-O0 -DFSI_NO_OPTIMIZE" -O2; do $c -std=c99 -w $o -I. tests/compile/coupled_bits.c -lm -o $work/x && $work/x || echo "$o fails"; done > $work/bits 2>&1
    try "$c: a coupled scene has the same bits at -O0 and -O2" "[ \$(uniq $work/bits | wc -l) = 1 ] || cat $work/bits"
done

# ---- the first program of the README -------------------------------------------------------------------------------

sed -n '/^```c$/,/^```$/p' README.md | sed '1d; $d; s/frame <= 30/frame <= 2/' > $work/readme.c
try "README.md: its program builds and runs" "${CC:-cc} -O1 -I. $work/readme.c -lm -o $work/x && [ \$($work/x | wc -l) = 2 ]"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
