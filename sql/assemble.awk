# Joins the SQL parts into an install script. Parts that an upgrade replays say CREATE OR REPLACE.
# An install script must not: it would adopt objects that another role planted (CVE-2022-2625).
FNR == 1 {
    part = FILENAME
    sub(/^.*\/sql\//, "sql/", part)
    print "-- " part
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
    print
}
END {
    exit failed
}
