#!/bin/sh
# Fails when README's table of headers is stale; with --write, rewrites it between its two markers.
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/.." || exit 1
mkdir -p build

table() {
    version=$(sed -n 's/^#define FSI_VERSION_STRING "\(.*\)"/\1/p' fsi.h)
    echo "| file | version | lines | what for | includes |"
    echo "|---|---|---|---|---|"
    for header in fsi.h $(ls fsi_*.h 2> /dev/null); do
        purpose=$(sed -n "1s/^.*$header - //p" "$header" | sed 's/ *\*\/$//; s/\.$//')
        includes=$(sed -n 's/^#include "\(fsi[a-z_]*\.h\)".*/`\1`/p' "$header" | sort -u | paste -s -d , - | sed 's/,/, /g')
        echo "| [\`$header\`]($header) | $version | $(wc -l < "$header" | tr -d ' ') | $purpose | ${includes:--} |"
    done
}

{ sed '/<!-- headers -->/q' README.md; table; sed -n '/<!-- end headers -->/,$p' README.md; } > build/README.md
[ "$1" = --write ] && cp build/README.md README.md
if cmp -s build/README.md README.md; then
    echo "ok README.md: its table of headers is current"
    echo "1 passed, 0 failed"
else
    echo "README.md: its table of headers is stale; run scripts/header_table.sh --write"
    echo "0 passed, 1 failed"
    exit 1
fi
