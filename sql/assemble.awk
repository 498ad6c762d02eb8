# Joins the SQL parts into an install script. Parts that an upgrade replays say CREATE OR REPLACE.
# An install script must not: it would adopt objects that another role planted (CVE-2022-2625).
# A part that mentions @KEY@ is repeated for each type of KEYS.
function write_part(    types, count, i, text) {
    count = part ~ /@KEY@/ ? split(KEYS, types, " ") : 1
    for (i = 1; i <= count; i++) {
        text = part
        gsub(/@KEY@/, types[i], text)
        printf "%s", text
    }
}
FNR == 1 {
    write_part()
    name = FILENAME
    sub(/^.*\/sql\//, "sql/", name)
    part = "-- " name "\n"
}
/^CREATE OR REPLACE (FUNCTION|PROCEDURE|VIEW) / {
    sub(/ OR REPLACE/, "")
}
/^[ \t]*CREATE .*(OR REPLACE|IF NOT EXISTS)/ {
    print FILENAME ":" FNR ": an install script adopts nothing; use CREATE" > "/dev/stderr"
    failed = 1
}
{
    gsub(/@EXTENSION@/, EXTENSION)
    gsub(/@VERSION@/, VERSION)
    part = part $0 "\n"
}
END {
    write_part()
    exit failed
}
