#!/bin/sh
# Builds one program of examples/ or studies/ into build/examples by the `cc` line in its first comment.
# SPDX-License-Identifier: MIT
set -e
name=$(basename "$1" .c)
line=$(sed -n 's/^[^a-z]*\(cc .* -o [^ &]*\).*/\1/p' "$1" | head -n 1)
[ -n "$line" ] || { echo "$1: no cc line in its first comment"; exit 1; }
mkdir -p build/examples
line=$(echo "$line" | sed "s|-o .*|-o build/examples/$name|")
echo "$line"
eval "$line"
