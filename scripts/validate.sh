#!/bin/sh
# Runs the validation programs and examples, several at a time, and writes their figures, with date, compiler, flags and
# machine, as a page. What has run since its program was built is not run again, so that hours cut short go on.
# SPDX-License-Identifier: MIT
# usage: validate.sh PAGE "COMPILER FLAGS" JOBS RUNS FOLDER PROGRAM...   FOLDER holds the built programs; each PROGRAM prints
#        lines `key value unit` (unit may be absent), or `key value unit reference tolerance verdict`; RUNS lists examples with their switches, a line each, whose last line
#        is `key=value ...`
set -e
page=$1 build=$2 jobs=$3 runs=$4 folder=$5
shift 5

log() { echo "$folder/$(echo "$*" | tr ' ' '_').txt"; }

# A run, as a child of xargs: its log ends in its exit status and seconds.
if [ "$page" = run ]; then
    log=$(log "$@")
    if [ "$log" -nt "$folder/$1.exe" ]; then exit 0; fi
    echo "$* ..." >&2
    start=$(date +%s)
    status=0
    ("$folder/$1.exe" $(shift; echo "$@") > "$log.new" 2> "$log.err") || status=$?
    seconds=$(($(date +%s) - start))
    echo "exit $status $seconds" >> "$log.new"
    if [ $status -ne 0 ]; then echo "$* failed ($status), see $log.err" >&2; exit 1; fi
    mv "$log.new" "$log"
    echo "$* took $seconds s" >&2
    exit 0
fi

examples=$(grep -v '^#' "$runs" | sed '/^$/d; s/$/ --threads 1 --no-images/')
{ printf '%s\n' "$@"; echo "$examples"; } | xargs -P "$jobs" -I{} sh -c "\"$0\" run - - - '$folder' {}" || exit 1

machine=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo 2>/dev/null | head -n 1)
mkdir -p "$(dirname "$page")"
{
    echo "# Validation: figures at full size"
    echo
    echo "Written by \`make validate\`, not by hand."
    echo
    echo "- date: $(date -u +%Y-%m-%d)"
    echo "- compiler: $(${build%% *} --version | head -n 1)"
    echo "- flags: \`${build#* }\`"
    echo "- machine: ${machine:-$(uname -m)}, $(getconf _NPROCESSORS_ONLN) logical CPUs, $(uname -s); $jobs runs at a time, a thread each"
    for program in "$@"; do
        log=$(log "$program")
        echo
        echo "## ${program#validate_} ($(sed -n 's/^exit 0 //p' "$log") s)"
        echo
        echo "| figure | value | unit | must be |"
        echo "|---|---|---|---|"
        awk '$1 != "exit" && (NF == 2 || NF == 3 || NF == 6) { print "| " $1 " | " $2 " | " $3 " | " (NF == 6 ? $4 " +- " $5 ": " $6 : "") " |" }' "$log"
    done
    echo "$examples" | while read -r run; do
        # shellcheck disable=SC2086 # a run is words
        log=$(log $run)
        echo
        echo "## ${run% --threads*} ($(sed -n 's/^exit 0 //p' "$log") s)"
        echo
        echo "| figure | value |"
        echo "|---|---|"
        tr '\r' '\n' < "$log" | tail -n 2 | head -n 1 | tr ' ' '\n' | awk -F= 'NF == 2 { print "| " $1 " | " $2 " |" }'
    done
} > "$page.new"
mv "$page.new" "$page"
