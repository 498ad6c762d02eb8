# Debian's changelog from CHANGELOG.md: an entry for each version, newest first.
#
#   awk -v PACKAGE=pg-pulse -v MAINTAINER='NAME <ADDRESS>' -v TODAY=YYYY-MM-DD -f changelog.awk

function rfc_date(day,    command, date) {
    command = "date -u -R -d '" (day ~ /^[0-9]+-[0-9]+-[0-9]+$/ ? day : TODAY) "'"
    command | getline date
    close(command)
    return date
}
function put_item(    line, count, words, i) {
    if (item == "") return
    gsub(/\[|\]\([^)]*\)/, "", item)
    count = split(item, words, / +/)
    line = "  *"
    for (i = 1; i <= count; i++) {
        if (length(line " " words[i]) > 78 && line != "   ") {
            print line
            line = "   "
        }
        line = line " " words[i]
    }
    print line
    item = ""
}
function end_entry() {
    put_item()
    if (day != "") print "\n -- " MAINTAINER "  " rfc_date(day) "\n"
}

/^## \[/ {
    end_entry()
    version = $2
    gsub(/[][]/, "", version)
    day = $4
    print PACKAGE " (" version "-1) unstable; urgency=medium\n"
    next
}
/^- / {
    put_item()
    item = substr($0, 3)
    next
}
/^  [^ ]/ && item != "" {
    item = item " " substr($0, 3)
}
END {
    end_entry()
}
