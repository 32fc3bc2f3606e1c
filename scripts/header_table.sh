#!/bin/bash
# Fails when README's table of headers is stale; --write rewrites it between its two markers, --time measures as well.
# SPDX-License-Identifier: MIT
# A row holds a header and its parts: fsi_sph.h, fsi_sph_walls.h ..., and what only serves it. Seconds are those of the
# compiler at -O2 for their bodies alone. They are measured only on request, as each machine has its own; else the table
# keeps what it has.
cd "$(dirname "$0")/.." || exit 1
mkdir -p build

serves() { # NAME: the header in whose row it stands
    case $1 in
    fsi_collide|fsi_contact|fsi_detect|fsi_joints) echo fsi_rigid ;;
    fsi_elements) echo fsi_shell ;;
    *) echo "$1" ;;
    esac
}

seconds() { # HEADER...
    local h bodies TIMEFORMAT=%U
    for h in "$@"; do
        [ $h = fsi.h ] && bodies=FSI_GROUND || bodies=$(basename $h .h | tr a-z A-Z)
        { time ${CC:-cc} -std=c99 -O2 -D${bodies}_IMPLEMENTATION -x c -c $h -o build/unit.o; } 2>&1
    done | awk '{ s += $1 } END { printf "%.1f", s }'
}

table() { # 1: measure
    echo "| files | lines | s | what for | includes |"
    echo "|---|---|---|---|---|"
    for header in fsi.h $(ls fsi_*.h); do
        name=${header%.h}
        owner=$name
        while [ "${owner%_*}" != fsi ] && owner=${owner%_*} && [ "$owner" != fsi ] && [ ! -f $owner.h ]; do :; done
        [ $owner != $name ] && [ $owner != fsi ] && [ -f $owner.h ] && continue
        [ "$(serves $name)" != $name ] && continue
        parts=$([ $name = fsi ] || ls ${name}_*.h 2> /dev/null)
        for h in fsi_*.h; do [ "$(serves ${h%.h})" = $name ] && [ $h != $header ] && parts="$parts $h"; done
        files="[\`$header\`]($header)"
        for p in $parts; do files="$files, [\`${p#"$name"}\`]($p)"; done
        own=$(echo $parts | sed 's/\.h//g; s/ /|/g')
        lines=$(cat $header $parts | wc -l | tr -d ' ')
        purpose=$(sed -n "1s/^.*$header - //p" "$header" | sed 's/ *\*\/$//; s/\.$//')
        includes=$(sed -n 's/^#include "\(fsi[a-z_]*\)\.h".*/\1/p' $header $parts | sort -u | grep -v -E "^($name|${own:-$name})(_|\$)" |
                   sed 's/^fsi_//; s/^fsi$/fsi.h/' | paste -s -d , - | sed 's/,/, /g')
        if [ "$1" ]; then s=$(seconds $header $parts); else s=$(sed -n "s/^| \[\`$header\`\][^|]*|[^|]*| \([0-9]*\.[0-9]\) |.*/\1/p" README.md); fi
        echo "| $files | $lines | ${s:--} | $purpose | ${includes:--} |"
    done
}

{ sed '/<!-- headers -->/q' README.md; table $([ "$1" = --time ] && echo 1); sed -n '/<!-- end headers -->/,$p' README.md; } > build/README.md
case $1 in --write|--time) cp build/README.md README.md ;; esac
if cmp -s build/README.md README.md; then
    echo "ok README.md: its table of headers is current"
    echo "1 passed, 0 failed"
else
    echo "README.md: its table of headers is stale; run scripts/header_table.sh --write"
    echo "0 passed, 1 failed"
    exit 1
fi
