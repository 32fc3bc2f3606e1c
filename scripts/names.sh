#!/bin/sh
# Fails on any file-scope name or macro of a header outside fsi_ / FSI_.
# SPDX-License-Identifier: MIT
# Macros are read from the text, in every branch. Functions, objects, types and enum constants come from clang's syntax
# tree, without clang from the symbols of an object file (then types and enum constants go unchecked).
cd "$(dirname "$0")/.." || exit 1
work=build/names passed=0 failed=0
mkdir -p $work

# The names that clang sees at file scope of the program on stdin.
tree_names() {
    clang -std=c99 -I. -x c - -fsyntax-only -Xclang -ast-dump 2>/dev/null | sed 's/\x1b\[[0-9;]*m//g' | awk '
        /^[|`]-(Function|Var|Typedef|Record|Enum)Decl / || /^[| ] [|`]-EnumConstantDecl / {
            sub(/^.*<[^>]*(<[^>]*>[^>]*)*> */, "")                            # node, address, source range
            for (i = 1; i <= NF; i++) {
                if ($i ~ /^[\047]/) break                                     # the type begins: no name came
                if ($i ~ /^(line|col):|^[^ ]*:[0-9]+:[0-9]+$|^(implicit|used|referenced|struct|union|enum|definition|invalid|prev|parent|0x[0-9a-f]*)$/) continue
                print $i; break
            }
        }' | sort -u
}

# The names that the symbol table of the program on stdin holds.
symbol_names() {
    ${CC:-cc} -std=c99 -I. -x c - -c -o $work/names.o && nm --defined-only $work/names.o | awk '{ print $NF }' | grep -v '\.' | sort -u
}

if command -v clang > /dev/null; then list=tree_names; else list=symbol_names; echo "skipped types and enum constants: no clang"; fi
for header in fsi*.h; do
    sed -n 's/^ *# *include *\(<.*>\)/#include \1/p' fsi*.h | grep -v omp.h | sort -u > $work/system.c
    $list < $work/system.c > $work/system.txt
    printf '#define FSI_IMPLEMENTATION\n#include "%s"\n' "$header" | cat $work/system.c - | $list > $work/all.txt
    bad=$(comm -13 $work/system.txt $work/all.txt | grep -v -E "^(fsi_|FSI_|__builtin_)")
    macros=$(sed -n 's/^ *# *define  *\([A-Za-z0-9_]*\).*/\1/p' "$header" | sort -u | grep -v '^FSI_')
    count=$(comm -13 $work/system.txt $work/all.txt | grep -c -E '^(fsi_|FSI_)')
    if [ -z "$bad$macros" ] && [ "$count" -gt 3 ]; then
        echo "ok $header: $count names"; passed=$((passed + 1))
    else
        echo "$header: $count good names, bad ones:" $bad $macros; failed=$((failed + 1))
    fi
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
