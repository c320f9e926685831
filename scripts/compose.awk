# Prints a script with the parts of names.bt that it names:
#
#   awk -f compose.awk names.bt who_talks.bt
#
# `NAMES: PART` in a line of the script is replaced by that part. In the part, SCRIPT stands for the script's file name,
# and STATEMENTS for the rest of the line. If the script has no @ready, the lines of the part with @ready are left out.

FNR == NR && /^NAMES: / { part = $2; next }
FNR == NR { text[part] = text[part] $0 "\n"; next }

{ script[++count] = $0 }
/@ready/ { has_ready = 1 }

END {
    for (i = 1; i <= count; i++)
        if (match(script[i], /NAMES: [a-z]+/))
            insert(script[i], RSTART, RSTART + RLENGTH)
        else
            print script[i]
}

function insert(line, start, end,    part, statements, lines, last, i) {
    part = substr(line, start + 7, end - start - 7)
    statements = substr(line, end + 1)
    if (!(part in text)) {
        print FILENAME ": names.bt has no part " part | "cat >&2"
        exit 1
    }
    gsub(/; /, ";\n  ", statements)
    sub(/\n+$/, "", text[part])
    last = split(text[part], lines, "\n")
    printf "%s", substr(line, 1, start - 1)
    for (i = 1; i <= last; i++) {
        sub(/SCRIPT/, FILENAME, lines[i])
        sub(/STATEMENTS/, statements, lines[i])
        if (has_ready || lines[i] !~ /@ready/)
            print lines[i]
    }
}
