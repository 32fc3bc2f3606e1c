#!/bin/sh
# Prints count, median and longest functions of each header; fails above 80 lines. -v lists every function.
# SPDX-License-Identifier: MIT
# A function runs from the line with its name to the closing brace in column 0, as .clang-format lays it out.
cd "$(dirname "$0")/.." || exit 1
limit=80 passed=0 failed=0
for header in fsi*.h; do
    lengths=$(awk '
        /^(FSI_FN|FSI_API|static)[^;=]*[{].*}[^;]*$/ { name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name); print 1, name; next }
        /^[A-Za-z_].*\(/ && !/;/ { start = FNR; name = $0; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
        /^}$/ && start { print FNR - start + 1, name; start = 0 }
    ' "$header" | sort -n)
    [ "$1" = -v ] && echo "$lengths"
    if echo "$lengths" | awk -v header="$header" -v limit=$limit '
        { n[NR] = $1; name[NR] = $2 }
        END {
            if (NR < 3) { printf "%s: only %d functions found\n", header, NR; exit 1 }
            printf "ok %s: %d functions, median %d lines, longest", header, NR, n[int((NR + 1) / 2)]
            for (i = NR; i > NR - 3 && i > 0; i--) printf " %s (%d)", name[i], n[i]
            printf "\n"
            for (i = 1; i <= NR; i++) if (n[i] > limit) { printf "%s: %s has %d lines, more than %d\n", header, name[i], n[i], limit; bad = 1 }
            exit bad
        }'
    then passed=$((passed + 1)); else failed=$((failed + 1)); fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
