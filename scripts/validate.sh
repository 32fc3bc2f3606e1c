#!/bin/sh
# Runs the validation programs and examples, several at a time, and writes their figures, with date, compiler, flags and
# machine, as pages, one for each header. What has run since its program was built is not run again, so that hours cut short go on.
# SPDX-License-Identifier: MIT
# Each figure gets its bound from validate/validate_bounds.txt, and a verdict; fails when a figure is out of its bound and not known to be, when
# one has no bound, and when one that is known to fail does not.
# usage: validate.sh verdicts PAGES     only gives the figures of the pages in a folder their bounds and verdicts
#        validate.sh whole PAGES        prints all pages as one
#        validate.sh judge PAGE         gives the figures of one page theirs
#        validate.sh section - - - FOLDER "RUN"   prints the section of a program, or of an example with its switches, from its log in FOLDER
#        validate.sh PAGES "COMPILER FLAGS" JOBS RUNS FOLDER PROGRAM...   FOLDER holds the built programs; each PROGRAM prints
#        lines `key value unit` (unit may be absent), or `key value unit reference tolerance verdict`; RUNS lists examples with their switches, a line each, whose last line
#        is `key=value ...`
set -e
cd "$(dirname "$0")/.." || exit 1
pages=$1
case $pages in verdicts | whole | judge) shift ;; esac
build=$2 jobs=$3 runs=$4 folder=$5
case $pages in verdicts | whole | judge | section) ;; *) shift 5 ;; esac

# Rows of a page, as printed below or with an older verdict, with bounds and verdicts; the sums go to standard error.
verdicts() {
    awk -v bounds=validate/validate_bounds.txt '
        BEGIN {
            number = "[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)(e[-+]?[0-9]+)?"
            while ((getline line < bounds) > 0) {
                if (line ~ /^#/ || line ~ /^ *$/) continue
                split(line, f)
                if (f[1] == "known") { known[++knowns] = f[2] " ^(" f[3] ")$"; continue }
                section[++n] = f[1]; key[n] = "^(" f[2] ")$"; bound[n] = f[3]; why[n] = f[4]
                if (f[3] == "-" ? f[4] !~ /^(cost|size|compared|judged|scene|hash)$/ : f[3] !~ "^((<=|>=|=)" number "|" number "[.][.]" number ")$") {
                    print "no bound: cannot be read: " line > "/dev/stderr"
                    wrong++
                }
            }
        }
        function here(s) { return s == "*" || (s == "run" && run) || part ~ "^(" s ")$" || heading ~ "^(" s ")$" }
        # ok, FAIL, or the reason why there is no bound
        function judge(k, v, i) {
            for (i = 1; i <= n; i++) if (here(section[i]) && k ~ key[i]) break
            if (i > n) { must = "none"; return "no bound" }
            must = bound[i]
            if (must == "-" && why[i] == "hash") return why[i]
            if (!finite(v)) return "FAIL"
            if (must == "-") return why[i]
            if (must ~ /^<=/) return v + 0 <= substr(must, 3) + 0 ? "ok" : "FAIL"
            if (must ~ /^>=/) return v + 0 >= substr(must, 3) + 0 ? "ok" : "FAIL"
            if (must ~ /^=/) return v + 0 == substr(must, 2) + 0 ? "ok" : "FAIL"
            split(must, ends, "[.][.]")
            return v + 0 >= ends[1] + 0 && v + 0 <= ends[2] + 0 ? "ok" : "FAIL"
        }
        function finite(v) { return v ~ "^" number "$" && v + 0 < 1e300 && v + 0 > -1e300 }
        # Is this failure expected? Then its line of the list has been of use.
        function is_known(k, i, f) {
            for (i = 1; i <= knowns; i++) {
                split(known[i], f, " ")
                if (here(f[1]) && k ~ f[2]) return met[i] = 1
            }
            return 0
        }
        function tell(verdict, k, v) { print verdict ": " heading " " k " is " v ", must be " must > "/dev/stderr" }
        /^## / {
            part = $2; heading = substr($0, 4)
            sub(/ [(][0-9]* s[)]$/, "", heading)
            gsub(/ /, "_", heading)
            run = system("test -f validate/validate_" part ".c") != 0
        }
        /^[|] figure / { print "| figure | value | unit | bound | verdict |"; next }
        /^[|]---/ { print "|---|---|---|---|---|"; next }
        /^[|] / {
            split($0, c, " *[|] *")
            if (c[5] ~ /[+]-/) { # given by the program
                must = c[5]; verdict = c[6]
                if (must ~ /: [a-zA-Z]*$/) { verdict = must ~ /: (pass|ok)$/ ? "ok" : "FAIL"; sub(/: [a-zA-Z]*$/, "", must) }
                sub(/, known$/, "", verdict)
                if (!finite(c[3]) || verdict != "ok") verdict = "FAIL"
            } else verdict = judge(c[2], c[3])
            if (verdict == "FAIL" && is_known(c[2])) verdict = "FAIL, known"
            kind = verdict ~ /^(ok|FAIL|FAIL, known|no bound)$/ ? verdict : "information"
            count[kind]++
            if (kind == "FAIL" || kind == "no bound") tell(verdict, c[2], c[3])
            print "| " c[2] " | " c[3] " | " (c[4] == "" ? "" : c[4]) " | " must " | " verdict " |"
            next
        }
        { print }
        END {
            for (i = 1; i <= knowns; i++) if (!met[i]) {
                print "stale: known, but no figure fails: " known[i] > "/dev/stderr"
                wrong++
            }
            printf "%d figures are in their bounds, %d are not, %d are not and known, %d are for information, %d have no bound\n",
                count["ok"], count["FAIL"], count["FAIL, known"], count["information"], count["no bound"] > "/dev/stderr"
            exit count["FAIL"] + count["no bound"] + wrong > 0
        }' "$1"
}

judge_page() {
    status=0
    verdicts "$1" > "$1.new" || status=$?
    mv "$1.new" "$1"
    return $status
}

# All pages of a folder as one, their first lines once.
whole() {
    for f in "$1"/*.md; do sed '/^## /,$d' "$f"; break; done
    for f in "$1"/*.md; do sed -n '/^## /,$p' "$f"; done
}

# The header that a program is about: by its name, by its folder, or the last that it includes.
header_of() {
    if [ -f "fsi_$1.h" ]; then echo "$1"; return; fi
    for f in studies/*/"$1".c; do
        if [ -f "$f" ]; then f=${f#studies/}; echo "${f%%/*}"; return; fi
    done
    cat "examples/$1.c" "validate/validate_$1.c" 2>/dev/null | sed -n 's/^#include ".*fsi_\([a-z_]*\)\.h"/\1/p' | tail -n 1
}

# Cuts a page into those of a folder, each with its first lines.
cut_page() {
    mkdir -p "$2"
    rm -f "$2"/*.md
    sed -n 's/^## \([a-z_]*\).*/\1/p' "$1" | sort -u | while read -r name; do echo "$name $(header_of "$name")"; done > "$1.headers"
    awk -v headers="$1.headers" -v folder="$2" '
        BEGIN { while ((getline line < headers) > 0) { split(line, f, " "); header[f[1]] = f[2] } }
        /^## / {
            file = folder "/" header[$2] ".md"
            if (!(file in begun)) printf "%s", first > file
            begun[file] = 1
        }
        file == "" { first = first $0 "\n"; next }
        { print > file }' "$1"
    rm -f "$1.headers"
}

case $pages in
judge) judge_page "$1"; exit ;;
whole) whole "$1"; exit ;;
verdicts)
    mkdir -p build
    whole "$1" > build/validation.md
    status=0
    judge_page build/validation.md || status=$?
    cut_page build/validation.md "$1"
    exit $status ;;
esac

log() { echo "$folder/$(echo "$*" | tr ' ' '_').txt"; }

# The section of a program, or of an example with its switches, from its log.
section() {
    # shellcheck disable=SC2086 # a run is words
    log=$(log $1)
    name=${1#validate_}
    printf '\n## %s (%s s)\n\n| figure | value | unit | bound | verdict |\n|---|---|---|---|---|\n' "${name% --threads*}" "$(sed -n 's/^exit 0 //p' "$log")"
    case $1 in
    validate_*) awk '$1 != "exit" && (NF == 2 || NF == 3 || NF == 6) { print "| " $1 " | " $2 " | " $3 " | " (NF == 6 ? $4 " +- " $5 " | " ($6 == "pass" ? "ok" : "FAIL") : " | ") " |" }' "$log" ;;
    *) tr '\r' '\n' < "$log" | tail -n 2 | head -n 1 | tr ' ' '\n' | awk -F= 'NF == 2 { print "| " $1 " | " $2 " | | | |" }' ;;
    esac
}

if [ "$pages" = section ]; then section "$6"; exit; fi

# A run, as a child of xargs: its log ends in its exit status and seconds.
if [ "$pages" = run ]; then
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
page=$folder/validation.md
{
    echo "# Validation: figures at full size"
    echo
    echo "Written by \`make validate\`, not by hand. Bounds, where they come from, and where failures that are known are told:"
    echo "\`validate/validate_bounds.txt\`. A verdict other than ok and FAIL says why a figure has no bound: cost (time and memory of one"
    echo "machine), size (how much was run), compared (set beside another figure, method or paper in docs/; no promise by itself), judged"
    echo "(by another figure of the same run), scene (how it went; nobody promises a value), hash (no number)."
    echo
    echo "- date: $(date -u +%Y-%m-%d)"
    echo "- compiler: $(${build%% *} --version | head -n 1)"
    echo "- flags: \`${build#* }\`"
    echo "- machine: ${machine:-$(uname -m)}, $(getconf _NPROCESSORS_ONLN) logical CPUs, $(uname -s); $jobs runs at a time, a thread each"
    for program in "$@"; do section "$program"; done
    echo "$examples" | while read -r run; do section "$run"; done
} > "$page"
status=0
judge_page "$page" || status=$?
cut_page "$page" "$pages"
exit $status
