#!/bin/sh
# Runs the validation programs and examples, several at a time, and writes their figures, with date, compiler, flags and
# machine, as a page. What has run since its program was built is not run again, so that hours cut short go on.
# SPDX-License-Identifier: MIT
# Each figure gets its bound from tests/validate_bounds.txt, and a verdict; fails when a figure is out of its bound or has none.
# usage: validate.sh verdicts PAGE      only gives the figures of a page that is there their bounds and verdicts
#        validate.sh PAGE "COMPILER FLAGS" JOBS RUNS FOLDER PROGRAM...   FOLDER holds the built programs; each PROGRAM prints
#        lines `key value unit` (unit may be absent), or `key value unit reference tolerance verdict`; RUNS lists examples with their switches, a line each, whose last line
#        is `key=value ...`
set -e
cd "$(dirname "$0")/.." || exit 1
page=$1
[ "$page" = verdicts ] && shift
build=$2 jobs=$3 runs=$4 folder=$5
[ "$page" = verdicts ] || shift 5

# Rows of a page, as printed below or with an older verdict, with bounds and verdicts; the sums go to standard error.
verdicts() {
    awk -v bounds=tests/validate_bounds.txt '
        BEGIN {
            while ((getline line < bounds) > 0) {
                if (line ~ /^#/ || line ~ /^ *$/) continue
                split(line, f)
                section[++n] = f[1]; key[n] = "^(" f[2] ")$"; bound[n] = f[3]; why[n] = f[4]
            }
        }
        # ok, FAIL, or the reason why there is no bound
        function judge(k, v, i) {
            for (i = 1; i <= n; i++)
                if ((section[i] == part || section[i] == "*" || (section[i] == "run" && run)) && k ~ key[i]) break
            if (i > n) { must = "none"; return "no bound" }
            must = bound[i]
            if (bound[i] == "-") return why[i]
            if (v !~ /^[-+]?[0-9.]+(e[-+]?[0-9]+)?$/) return "FAIL"
            if (bound[i] ~ /^<=/) return v + 0 <= substr(must, 3) + 0 ? "ok" : "FAIL"
            if (bound[i] ~ /^>=/) return v + 0 >= substr(must, 3) + 0 ? "ok" : "FAIL"
            if (bound[i] ~ /^=/) return v + 0 == substr(must, 2) + 0 ? "ok" : "FAIL"
            split(must, ends, "[.][.]")
            return v + 0 >= ends[1] + 0 && v + 0 <= ends[2] + 0 ? "ok" : "FAIL"
        }
        /^## / { part = $2; run = system("test -f tests/validate_" part ".c") != 0; }
        /^[|] figure / { print "| figure | value | unit | bound | verdict |"; next }
        /^[|]---/ { print "|---|---|---|---|---|"; next }
        /^[|] / {
            split($0, c, " *[|] *")
            if (c[5] ~ /[+]-/) { # given by the program
                must = c[5]; verdict = c[6]
                if (must ~ /: (pass|fail)$/) { verdict = must ~ /: pass$/ ? "ok" : "FAIL"; sub(/: (pass|fail)$/, "", must) }
            } else verdict = judge(c[2], c[3])
            count[verdict == "ok" || verdict == "FAIL" || verdict == "no bound" ? verdict : "information"]++
            if (verdict == "FAIL" || verdict == "no bound") print verdict ": " part " " c[2] " is " c[3] ", must be " must > "/dev/stderr"
            print "| " c[2] " | " c[3] " | " (c[4] == "" ? "" : c[4]) " | " must " | " verdict " |"
            next
        }
        { print }
        END {
            printf "%d figures are in their bounds, %d are not, %d are for information, %d have no bound\n",
                count["ok"], count["FAIL"], count["information"], count["no bound"] > "/dev/stderr"
            exit count["FAIL"] + count["no bound"] > 0
        }' "$1"
}

if [ "$page" = verdicts ]; then
    status=0
    verdicts "$1" > "$1.new" || status=$?
    mv "$1.new" "$1"
    exit $status
fi

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
    echo "Written by \`make validate\`, not by hand. Bounds and where they come from: \`tests/validate_bounds.txt\`. A verdict other than ok"
    echo "and FAIL says why a figure has no bound: cost (time and memory of one machine), size (how much was run), compared (set beside"
    echo "another figure, method or paper in docs/; no promise by itself)."
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
        echo "| figure | value | unit | bound | verdict |"
        echo "|---|---|---|---|---|"
        awk '$1 != "exit" && (NF == 2 || NF == 3 || NF == 6) { print "| " $1 " | " $2 " | " $3 " | " (NF == 6 ? $4 " +- " $5 " | " ($6 == "pass" ? "ok" : "FAIL") : " | ") " |" }' "$log"
    done
    echo "$examples" | while read -r run; do
        # shellcheck disable=SC2086 # a run is words
        log=$(log $run)
        echo
        echo "## ${run% --threads*} ($(sed -n 's/^exit 0 //p' "$log") s)"
        echo
        echo "| figure | value | unit | bound | verdict |"
        echo "|---|---|---|---|---|"
        tr '\r' '\n' < "$log" | tail -n 2 | head -n 1 | tr ' ' '\n' | awk -F= 'NF == 2 { print "| " $1 " | " $2 " | | | |" }'
    done
} > "$page.new"
mv "$page.new" "$page"
status=0
verdicts "$page" > "$page.new" || status=$?
mv "$page.new" "$page"
exit $status
