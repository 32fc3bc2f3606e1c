#!/bin/sh
# Runs the validation programs and writes their figures, with date, compiler, flags and machine, as a page.
# SPDX-License-Identifier: MIT
# usage: validate.sh PAGE "COMPILER FLAGS" RUNS PROGRAM...   each program prints lines `key value unit` (unit may be absent);
#        RUNS lists examples with their switches, a line each, whose last line is `key=value ...`
set -e
page=$1 build=$2 runs=$3
shift 3
mkdir -p "$(dirname "$page")"
machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
compiler=$(${build%% *} --version | head -n 1)
{
    echo "# Validation: figures at full size"
    echo
    echo "Written by \`make validate\`, not by hand."
    echo
    echo "- date: $(date -u +%Y-%m-%d)"
    echo "- compiler: $compiler"
    echo "- flags: \`${build#* }\`"
    echo "- machine: ${machine:-$(uname -m)}, $(getconf _NPROCESSORS_ONLN) logical CPUs, $(uname -s)"
} > "$page.new"
for program in "$@"; do
    name=$(basename "$program" .exe)
    echo "$name ..." >&2
    start=$(date +%s)
    "./$program" > "$program.txt" || { echo "$name failed:" >&2; tail -n 5 "$program.txt" >&2; exit 1; }
    {
        echo
        echo "## ${name#validate_} ($(($(date +%s) - start)) s)"
        echo
        echo "| figure | value | unit |"
        echo "|---|---|---|"
        awk 'NF == 2 || NF == 3 { print "| " $1 " | " $2 " | " $3 " |" }' "$program.txt"
    } >> "$page.new"
done
mkdir -p build/validate
while read -r example switches; do
    case $example in ''|'#'*) continue ;; esac
    echo "$example $switches ..." >&2
    start=$(date +%s)
    $build -std=c99 -I. "examples/$example.c" -o "build/validate/$example.exe" -lm -pthread
    # shellcheck disable=SC2086 # switches are words
    "build/validate/$example.exe" $switches --no-images > "build/validate/$example.txt" || { echo "$example failed" >&2; exit 1; }
    {
        echo
        echo "## $example $switches ($(($(date +%s) - start)) s)"
        echo
        echo "| figure | value |"
        echo "|---|---|"
        tr '\r' '\n' < "build/validate/$example.txt" | tail -n 1 | tr ' ' '\n' | awk -F= 'NF == 2 { print "| " $1 " | " $2 " |" }'
    } >> "$page.new"
done < "$runs"
mv "$page.new" "$page"
