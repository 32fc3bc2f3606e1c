#!/bin/bash
# Fails where a header departs from the conventions in CONTRIBUTING.md; names each place.
# SPDX-License-Identifier: MIT
cd "$(dirname "$0")/.." || exit 1
page=CONTRIBUTING.md
headers=$(echo fsi*.h)
passed=0 failed=0
shopt -s lastpipe # `found` counts in this shell, not in one of its own

# found NAME: the lines on stdin are faults; none is a pass.
found() {
    local faults
    faults=$(cat)
    if [ -z "$faults" ]; then passed=$((passed + 1)); echo "ok $1"; return; fi
    failed=$((failed + 1))
    echo "$1:"
    echo "$faults" | sed 's/^/   /'
}

# Text of the page between <!-- NAME --> and <!-- end NAME -->: the rows of its table, without its head.
rows() { sed -n "/<!-- $1 -->/,/<!-- end $1 -->/p" $page | grep '^|' | tail -n +3; }

# Declarations (up to the ;) of the public functions of a header, a line each, with the comment before them in front.
declared() {
    awk '/Stop here if you only want/ { exit }
         /^\/\*/ { comment = "" }
         /^(\/\*|   )/ { comment = comment " " $0 }
         /^$/ { comment = "" }
         /^FSI_API/ { print comment " " $0 }' "$1"
}

# Each fsi__fail(...) of the headers $@, up to its ;, on one line: FILE:LINE:code. Literals that continue each other are one.
calls() {
    awk 'FNR == 1 { text = "" }
         text == "" && /fsi__fail\(/ { text = FILENAME ":" FNR ":"; sub(/^ */, "") }
         text != "" {
             line = $0
             sub(/^ */, "", line)
             text = text line " "
             if (line ~ /;/) { gsub(/" +"/, "", text); print text; text = "" }
         }' "$@"
}

# Those whose text matches $1.
all_calls=$(calls $headers)
fails() { echo "$all_calls" | grep -E "fsi__fail\(.*\"[^\"]*($1)"; }

# ---- functions that siblings share ----------------------------------------------------------------------------------

simulators=$(sed -n 's/^| function | \(.*\) |$/\1/p' $page | tr -d '|')
column=2
for x in $simulators; do
    column=$((column + 1))
    rows functions | while IFS= read -r row; do
        name=$(echo "$row" | cut -d '|' -f 2 | tr -d ' ')
        cell=$(echo "$row" | cut -d '|' -f $column | sed 's/^ *//; s/ *$//')
        there=$(cat $(ls fsi_$x.h fsi_${x}_*.h 2> /dev/null) | grep -cE "^FSI_API [^(]*[ *]fsi_${x}_$name\(")
        if [ "$cell" = yes ] && [ "$there" -eq 0 ]; then echo "missing: fsi_${x}_$name"; fi
        if [ "$cell" != yes ] && [ "$there" -gt 0 ]; then echo "fsi_${x}_$name exists, the table says '$cell'"; fi
        if [ -z "$cell" ]; then echo "fsi_${x}_$name: no reason why it is missing"; fi
    done | found "fsi_$x.h: functions that its siblings have"
done
[ "$(rows functions | wc -l)" -gt 20 ] && [ $column -gt 6 ] || { echo "$page: its table of functions cannot be read"; failed=$((failed + 1)); }

# ---- steps ------------------------------------------------------------------------------------------------------------

for x in $simulators; do
    {
        grep -q 'fsi__check_dt(' fsi_$x.h || echo "fsi_${x}_step does not call fsi__check_dt"
        declared fsi_$x.h | grep -E "FSI_API fsi_status fsi_${x}_step\(" | grep -qE 'dt( =| is|) 0' || echo "fsi_${x}_step does not document dt = 0"
        fails 'dt is [^"]*(not finite|must be|seconds")' | grep "^fsi_$x.h:" | cut -c 1-150
    } | found "fsi_$x.h: dt"
    {
        fails max_substeps | grep "^fsi_$x.h:" | grep -v 'must be' | cut -c 1-200
        grep -qE '^    int max_substeps;' fsi_$x.h && ! grep -qE '^    int .*degraded' fsi_$x.h && echo "max_substeps without stats.degraded"
    } | found "fsi_$x.h: too many substeps degrade"
    {
        grep -qzE "fsi_${x}_error\([^;{]*\{[^}]*fsi__error_of\(" fsi_$x.h || echo "fsi_${x}_error does not return fsi__error_of"
    } | found "fsi_$x.h: errors of no simulator"
    {
        declared fsi_$x.h | grep -oE "fsi_${x}_add_obstacle\([^)]*\)" | grep -vE "\(fsi_$x \*[a-z]+, const fsi_${x}_obstacle_desc \*[a-z]+, int \*id\)"
        declared fsi_$x.h | grep -oE "fsi_${x}_add_mesh\([^)]*\)" | grep -vE "\(fsi_$x \*[a-z]+, (const )?fsi_mesh \*mesh, int \*id\)"
        declared fsi_$x.h | grep -oE "fsi_${x}_fill_[a-z]+\([^)]*\)" | grep -vE ", (int|double) \*added\)"
    } | found "fsi_$x.h: signatures"
    {
        grep -nE '^    fsi_real .*adhesion[;,].*;' fsi_$x.h | grep -vE '\[Pa\]' | cut -c 1-120
        grep -nE '^    fsi_real .*contact_angle.*;' fsi_$x.h | grep -vE 'degrees' | cut -c 1-120
    } | found "fsi_$x.h: adhesion in Pa, contact angles in degrees"
done

# ---- the guard of the bodies -----------------------------------------------------------------------------------------

mkdir -p build
for h in $headers; do
    m=$([ $h = fsi.h ] && echo FSI_GROUND || basename $h .h | tr a-z A-Z)_IMPLEMENTATION
    printf '#ifdef FSI_IMPLEMENTATION\n#undef %s\n#define %s\n#endif\n#ifdef %s\n' $m $m $m > build/guard
    tr '\n' '\r' < $h | grep -qF "$(tr '\n' '\r' < build/guard)" || echo "$h: its bodies do not stand under the five lines of $m"
done | found "the guard of bodies"

# ---- one version ----------------------------------------------------------------------------------------------------

{
    number() { sed -n "s/^#define FSI_VERSION_$1 \"*\([0-9.]*\)\"*$/\1/p" fsi.h; }
    version=$(number MAJOR).$(number MINOR).$(number PATCH)
    [ "$(number STRING)" = "$version" ] || echo "fsi.h: FSI_VERSION_STRING is not $version"
    [ "$(sed -n 's/^## \([0-9.]*\).*/\1/p' CHANGELOG.md | head -n 1)" = "$version" ] || echo "CHANGELOG.md does not begin with $version"
} | found "versions agree"

# ---- names of defaults -------------------------------------------------------------------------------------------------

for h in $headers; do
    {
        # Those there are: fsi_A_default_B returns fsi_A_B, fsi_default_A returns fsi_A.
        sed -nE 's/^FSI_API (fsi_[a-z_0-9]+) (fsi_[a-z_0-9]*default_[a-z_0-9]+)\(void\);.*/\1 \2/p' $h | while read -r type name; do
            want=$(echo "$type" | sed -E 's/^fsi_([a-z0-9]+)_(.*)/fsi_\1_default_\2/; t; s/^fsi_(.*)/fsi_default_\1/')
            [ "$name" = "$want" ] || echo "$name fills $type: it should be $want"
        done
        # Those there must be: every desc, in its header or one that includes it.
        sed -nE 's/^\} (fsi_[a-z_0-9]+_desc);/\1/p' $h | while read -r type; do
            grep -qE "^FSI_API $type fsi_[a-z_0-9]*default_[a-z_0-9]+\(void\);" $headers || echo "nothing fills $type"
        done
    } | found "$h: names of defaults"
done

# ---- the same error in the same words -----------------------------------------------------------------------------------

{
    fails 'not filled by' | grep -vE '"(desc|flow|material %d|link %d|body %d|the mesh|the system is NULL, or|[a-z_.%]+( %d)?) was not filled by (fsi_[a-z_%]+|%s) of this version and precision"' | grep -v 'the system is NULL'
    fails 'not made by' | grep -vE '"([a-z_.]+|the mesh|shape %d: mesh) was not made by fsi_[a-z_]+_create of this version and precision[":]'
    fails '(no such|unknown|does not exist|not there|is no) [a-z]* ?%d' | grep -vE '"there is no [a-z]+ %d'
    fails '(is NULL|null pointer|is missing|NULL [a-z]+"|must not be NULL)' | grep -E 'null pointer|is missing|NULL [a-z]+"|must not be NULL'
    fails '(is|are|became|becomes) (NaN|nan|infinite|inf)[ "]'
    fails 'finite (place|number|value)'
    fails '[a-z]+s are NULL' | grep -v 'buffer and size'
    fails '(out of|not enough|without) memory'
} | cut -c 1-200 | found "wording of errors"
[ "$(rows wording | wc -l)" -ge 5 ] || { echo "$page: its table of words cannot be read"; failed=$((failed + 1)); }

# ---- validation: every figure has a bound or a reason why it has none, and the page shows it; failures are those that are known ----

mkdir -p build && scripts/validate.sh whole docs/validation > build/validation_told.md
{
    cp build/validation_told.md build/validation_judged.md
    scripts/validate.sh judge build/validation_judged.md 2>&1 | grep -E '^(no bound|FAIL|stale)'
    cmp -s build/validation_told.md build/validation_judged.md || echo "verdicts are stale; run scripts/validate.sh verdicts docs/validation"
} | found "docs/validation: bounds and verdicts"

# The judge itself: a page in which one figure without a bound is no number, one that is known to fail does not, and one is not known.
awk -F ' *[|] *' '/[|] cost [|]$/ && !a++ { $0 = "| " $2 " | nan | | - | cost |" }
                  /[|] FAIL, known [|]$/ && !b++ { $0 = "| " $2 " | 0 | | | |" }
                  /[|] =0 [|] ok [|]$/ && !c++ { $0 = "| " $2 "_x9 | 0 | | | |" }
                  { print }' build/validation_told.md | sed '0,/^| \(.*\)_x9 /s//| x9 /' > build/validation_wrong.md
{
    told=$(scripts/validate.sh judge build/validation_wrong.md 2>&1)
    echo "$told" | grep -q '^FAIL: .* is nan' || echo "a figure that is no number passes"
    echo "$told" | grep -q '^stale: ' || echo "a figure that is known to fail and does not passes"
    echo "$told" | grep -q '^no bound: .* x9 ' || echo "a figure without a bound passes"
} | found "scripts/validate.sh: what must fail fails"

# ---- files: what programs leave behind is ignored; links lead somewhere -----------------------------------------------

for e in examples/*.c studies/*/*.c; do
    out=$(sed -n 's/^[^a-z]*cc .* -o \([^ &]*\).*/\1/p' "$e" | head -n 1)
    git check-ignore -q "$out" 2> /dev/null || grep -qxE "/?$out" .gitignore || echo "$e: its cc line makes $out, which .gitignore does not know"
done | found ".gitignore: programs that the cc lines of examples and studies make"

for page in *.md docs/*.md; do
    grep -noE '\]\([^)# ]+' "$page" | sed 's/](//' | while IFS=: read -r line target; do
        case $target in http*|mailto:*) continue ;; esac
        [ -e "$(dirname "$page")/$target" ] || echo "$page:$line links to $target, which is not there"
    done
done | found "pages: links"

echo "$passed passed, $failed failed"
[ $failed -eq 0 ] && [ $passed -gt 0 ]
