#!/bin/sh
# Adds up the `N passed, N failed` lines of test logs, shows what failed, and fails when anything did.
# SPDX-License-Identifier: MIT
# Each log ends in `N passed, N failed` and `exit STATUS`. A program that died, or found nothing to run, counts as failed.
awk '
    FNR == 1 { finish(); p = f = 0; lines = 0; file = FILENAME; status = "none"; text = "" }
    /^[0-9]+ passed, [0-9]+ failed/ { p = $1; f = $3; next }
    /^exit / { status = $2; next }
    /^skipped / { skips[$0] }
    !/^ok / && ++lines <= 60 { text = text "   " substr($0, 1, 240) "\n" }
    END { finish(); for (s in skips) print s; printf "%d passed, %d failed\n", passed, failed; exit failed > 0 || passed == 0 }
    function finish() {
        if (status == "") return
        if (f == 0 && (status != "0" || p == 0)) { f = 1; text = text "   ended with exit status " status "\n" }
        if (f > 0) printf "%s\n%s", file, text
        passed += p; failed += f
    }
' "$@"
