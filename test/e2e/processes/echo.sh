#!/bin/bash
# A process whose results are the lines that it got.
echo '{"takes": 1}'
while read -r line; do
    if [[ $line =~ ^\{\"id\":([0-9]+) ]]; then
        echo "{\"id\":${BASH_REMATCH[1]},\"result\":$line}"
    fi
done
