#!/bin/sh
# Greets, one job at a time: pulse-worker --program worker/examples/program.sh
# A shell reads no JSON: this takes the id, which is always in front, and a name of plain letters.
echo '{"hello":{"protocol":1,"tasks":{"greet":{}}}}' >&3
while IFS= read -r line <&3; do
  case $line in '{"cancel":'*) continue ;; esac
  id=${line#'{"id":"'}
  id=${id%%'"'*}
  name=$(printf '%s\n' "$line" | sed -n 's/^[^}]*"name": *"\([A-Za-z ]*\)".*/\1/p')
  if [ -n "$name" ]; then
    printf '{"id":"%s","result":{"greeted":"%s"}}\n' "$id" "$name" >&3
  else
    printf '{"id":"%s","error":"nobody to greet","retry":false}\n' "$id" >&3
  fi
done
