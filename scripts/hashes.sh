#!/bin/bash
# Prints the hash that each program of examples/ and studies/ ends with: a change that must not change results keeps it.
# SPDX-License-Identifier: MIT
#   [SCENES="examples/dam_break.c ..."] scripts/hashes.sh [ARGUMENTS OF THE PROGRAMS]
# SCENES: some of them, all by default. Arguments: --frames 2 --no-images by default.
# The bodies of the headers are compiled once, as the tests are; the programs leave out theirs.
cd "$(dirname "$0")/.." || exit 1
work=build/hashes
flags="-std=gnu99 -O2 -I."
[ $# -gt 0 ] || set -- --frames 2 --no-images
mkdir -p $work
make -s ${CC:+CC="$CC"} build/plain/fsi.a || exit 1
for done in $(sed -n 's/^#define \(FSI_[A-Z_]*IMPLEMENTATION_DONE\)$/\1/p' fsi*.h); do flags="$flags -D$done"; done
for scene in ${SCENES:-examples/*.c studies/*/*.c}; do
    name=$(basename $scene .c)
    ${CC:-cc} $flags $scene build/plain/fsi.a -lm -pthread -o $work/$name || { echo "$name does not build"; continue; }
    hash=$(cd $work && timeout 600 ./$name "$@" 2> /dev/null | grep -oE '(^| )hash=[0-9a-f]+' | tail -n 1)
    echo "$name ${hash:-no hash}"
done
