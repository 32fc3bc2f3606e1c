#!/bin/sh
# Writes single/fsi_NAME.h: one file that holds fsi_NAME.h and all headers that it includes.
# SPDX-License-Identifier: MIT
#   scripts/single.sh sph          writes single/fsi_sph.h
cd "$(dirname "$0")/.." || exit 1
[ -f "fsi_$1.h" ] || { echo "usage: scripts/single.sh NAME, where fsi_NAME.h is a header" >&2; exit 2; }
mkdir -p single

# What a header includes comes before it; each once. The declarations of all come first, then the bodies.
order=""
visit() {
    case " $order " in *" $1 "*) return ;; esac
    for below in $(sed -n 's/^#include "\(fsi[a-z_]*\.h\)".*/\1/p' "$1" | sort -u); do visit "$below"; done
    order="$order $1"
}
visit "fsi_$1.h"
{
    echo "/* fsi_$1.h and all that it includes, in one file, made by scripts/single.sh:"
    echo $order | fold -s -w 112 | sed 's/^/      /; s/ *$//'
    echo "   The page of fsi_$1.h is the last one before \"bodies\"."
    echo "   SPDX-License-Identifier: MIT */"
    for h in $order; do sed '/^\/\* ==== Stop here/,$d; /^#include "fsi/d' "$h"; done
    echo "/* ==== bodies: stop here if you only want the API ==== */"
    for h in $order; do sed '1,/^\/\* ==== Stop here/d; /^#include "fsi/d' "$h"; done
} > "single/fsi_$1.h"
echo "single/fsi_$1.h: $(wc -l < "single/fsi_$1.h") lines"
