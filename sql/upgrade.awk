# Makes an upgrade script: what begins each, the changes of structure, then all function parts.
#
#   awk -v VERSION=NEW -f upgrade.awk role=old INSTALL_SCRIPT_OF_OLD role=structure PARTS
#     role=print BEGIN DELTA role=functions PARTS
#
# A function or view of the old version keeps its CREATE OR REPLACE, so users' grants on it stay. A
# new one gets a plain CREATE, because OR REPLACE would adopt an object that another role planted on
# a server before 14.5. The delta drops each old one that the new version lacks, or whose arguments
# change, and renames each that only has another name. What the delta creates is replaced: so a
# function with more arguments takes over the grants of the one that the delta drops.

function fail(place, what) {
    print place ": " what > "/dev/stderr"
    failed = 1
}
# The name with the arguments as written, without defaults and white space. CREATE OR REPLACE finds
# a function by these, and refuses to rename an argument.
function identity(text) {
    sub(/^CREATE (OR REPLACE )?/, "", text)
    if (text ~ /^VIEW /) {
        sub(/ AS.*/, "", text)
        return text
    }
    gsub(/ = ('[^']*'|[^,()]+)/, "", text)
    gsub(/[ \t\n]+/, " ", text)
    gsub(/\( /, "(", text)
    sub(/\).*/, ")", text)
    return text
}
function name_of(id) {
    sub(/[(;].*/, "", id)
    sub(/^[A-Z]+ /, "", id)
    return id
}
# Reads up to the parenthesis that closes the arguments, into header.
function read_header(    line) {
    header = $0
    if ($2 == "VIEW" || $4 == "VIEW") return
    while (header !~ /\)/ && (getline line) > 0) header = header "\n" line
}
function put_object(    id) {
    read_header()
    id = identity(header)
    current[id] = 1
    if (!(id in made) && (!(id in old || name_of(id) in exists) || name_of(id) in dropped)) {
        sub(/ OR REPLACE/, "", header)
    }
    print header
}

FNR == 1 && (role == "print" || role == "functions") {
    part = FILENAME
    sub(/^.*\/sql\//, "sql/", part)
    print "-- " part
}
/^CREATE (OR REPLACE )?(FUNCTION|PROCEDURE|VIEW) / {
    if (role == "functions") {
        put_object()
        next
    }
    read_header()
    if (role == "old") old[identity(header)] = 1
    if (role == "structure") current[identity(header)] = 1
    if (role == "print") {
        made[identity(header)] = 1
        print header
    }
    next
}
role == "print" && /^DROP (FUNCTION|PROCEDURE|VIEW) / {
    dropped[name_of($3)] = 1
}
# A delta that moves internal objects moves all of them, and takes the underscore off their names.
role == "print" && /SET SCHEMA pulse_internal/ {
    for (id in old) {
        new_id = id
        gsub(/pulse\._/, "pulse_internal.", new_id)
        moved[new_id] = 1
    }
    split("", old)
    for (id in moved) old[id] = 1
}
# A renamed object keeps its dependents, and is replaced under its new name.
role == "print" && /^ALTER (FUNCTION|PROCEDURE|VIEW) .* RENAME TO / {
    dropped[name_of($3)] = 1
    renamed = $3
    sub(/\..*/, "." $NF, renamed)
    sub(/;$/, "", renamed)
    exists[name_of(renamed)] = 1
}
role == "print" || role == "functions" {
    gsub(/@VERSION@/, VERSION)
    if (/^[ \t]*CREATE .*(OR REPLACE|IF NOT EXISTS)/) {
        fail(FILENAME ":" FNR, "an upgrade adopts nothing; use CREATE")
    }
    print
}
END {
    for (id in old) {
        if (!(id in current) && !(name_of(id) in dropped)) {
            fail("sql/upgrade", "does not drop the " id ", which " VERSION " does not have")
        }
    }
    exit failed
}
